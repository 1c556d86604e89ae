"""The checker judges kernels of public priors, mollifiers and populations."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt
from dpopt import Mollifier, Population, PublicPrior, verify
from tests.kernel import brute
from tests.proofs.judging import alone, displayed, edited, optimum, program_of, run, saved

MASSES = [0.05, 0.1, 0.15, 0.2, 0.5]
PUBLIC = PublicPrior(MASSES, 1.0)
USERS = [[0.4, 0.1, 0.1, 0.4], [0.0, 0.5, 0.5, 0.0], [0.1, 0.2, 0.3, 0.4]]
CASES = {
    "Algorithm 1": (PublicPrior.example(), None),
    "leximin": (PublicPrior(MASSES, 1.0, objective="leximin"), None),
    "program of the prior": (PublicPrior.example(), "highs"),
    "mollifier": (Mollifier.example(), None),
    "program of the mollifier": (Mollifier.example(), "highs"),
    "population": (Population.example(), None),
    "diagonal": (
        Population([0.1, 0.2, 0.3, 0.4], 1.0, USERS, slack=0.1, objective="diagonal"),
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_bounds_are_the_optimum_of_the_displayed_program(name: str) -> None:
    setting, backend = CASES[name]
    found = dpopt.design(setting, backend=backend)
    assert found.bound == pytest.approx(optimum(displayed(found)), abs=1e-8)


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_two_rows_of_a_prior_prove_what_the_whole_program_has_as_optimum(
    objective: Any, epsilon: float
) -> None:
    """All n^2 (n - 1) rows of privacy, written out by others."""
    q, edges = np.array([0.3, 0.1, 0.4, 0.2]), list(permutations(range(4), 2))
    least = brute.least_loss(1 - np.eye(4), edges, epsilon, fixed=q)
    bound = dpopt.design(PublicPrior(q, epsilon, objective=objective)).bound
    assert bound == pytest.approx(least, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=12),
    st.floats(1e-6, 500.0),
    st.sampled_from(["minimax", "leximin"]),
)
def test_the_checker_makes_the_integers_that_are_drawn_from(
    masses: list[float], epsilon: float, objective: Any
) -> None:
    prior = np.array(masses) / sum(masses)
    found = dpopt.design(PublicPrior(prior, epsilon, objective=objective))
    setting, bits = json.loads(json.dumps(found.setting.to_dict())), found.table.bits
    made, unit = verify.layers(setting, bits), 1 << bits
    q = sorted(Fraction(mass) * unit // 1 for mass in setting["public"])
    assert made == found.table.layers
    assert made.q == q
    grown = verify.growth(Fraction(epsilon))
    verdict, kept = verify.decide_layers(made, grown)
    # Against all n^2 integers: the diagonal within two units, the drift from above, each column.
    order = found.setting.labelled.order.tolist()
    rows = [found.table.row(category) for category in order]
    weights = [[row[category] for category in order] for row in rows]
    assert 0 <= min(row[i] for i, row in enumerate(weights)) - kept * unit <= 2
    low, moved = grown(64)[0], Fraction(0)
    for j, column in enumerate(zip(*weights, strict=True)):
        moved += abs(sum(a * b for a, b in zip(q, column, strict=True)) - q[j] * unit)
        assert grown(64)[2] * max(column) <= low * min(column)
    assert moved / (2 * sum(q) * unit) <= verdict.missed


@pytest.mark.parametrize("name", ["program of the prior", "population"])
def test_units_moved_beyond_the_slack_of_a_kernel_are_refused(name: str, tmp_path: Path) -> None:
    path, _ = saved(CASES[name][0], tmp_path, CASES[name][1])
    table, low = dpopt.load(path).table, verify.exp(Fraction(1))[0]
    weights = [table.row(x) for x in range(table.inputs.inputs)]
    slack, x, y = min(
        (low * b[y] - a[y], x, y)
        for (x, a), (_, b) in permutations(enumerate(weights), 2)
        for y in range(len(a))
    )
    assert slack >= 0
    body = json.loads(path.read_text())["body"]
    row, units = body["table"]["weights"][x], slack // 1 + 1
    other = (y + 1) % len(row)
    row[y], row[other] = str(int(row[y]) + units), str(int(row[other]) - units)
    edited(path, body=body)
    ended = alone(tmp_path / "empty", path)
    assert (ended.returncode, "above e^epsilon" in ended.stderr) == (4, True)


def test_units_that_are_beyond_or_none_are_refused(tmp_path: Path) -> None:
    path, _ = saved(Mollifier.example(), tmp_path)
    body = json.loads(path.read_text())["body"]
    # Category 0 is at its upper limit, category 1 at none: q e^(1/2) = 0.412... of 2^64.
    first, second, third = (int(unit) for unit in body["table"])
    assert 0 <= verify.exp(Fraction(1, 2))[0] / 4 * (first + second + third) - first < 1
    edited(path, body=body | {"table": [str(first + 1), str(second), str(third - 1)]})
    assert run(path)[0] == 4
    for units in (["1", "1"], ["0", "0", "0"]):
        with pytest.raises(verify.Malformed, match="not those of the categories"):
            program_of(Mollifier.example(), units)
    # Too few bits.
    path, _ = saved(PublicPrior.example(), tmp_path)
    body = json.loads(path.read_text())["body"]
    for bits in (1, 30):
        edited(path, body=body | {"table": body["table"] | {"bits": bits}})
        assert run(path)[0] == 4


@pytest.mark.slow
def test_a_file_that_states_no_residuals_is_told_what_it_misses(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(12))
    path, proof = saved(Population(prior, 2.0, rng.dirichlet(np.ones(12), size=10)), tmp_path)
    done = alone(tmp_path / "empty", path, proof)
    assert (done.returncode, done.stderr) == (0, "")
    missed = float(verify.decide(displayed(dpopt.load(path))).missed)
    said = done.stdout.partition("missed by at most ")[2]
    assert float(said.split()[0]) == pytest.approx(missed, rel=1e-2)
    assert missed < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["minimax", "leximin"])
def test_many_categories_have_a_proof_of_two_multipliers(objective: Any, tmp_path: Path) -> None:
    masses = np.random.default_rng(3).uniform(size=20_000)
    setting = PublicPrior(masses / masses.sum(), 8.0, objective=objective)
    path, proof = saved(setting, tmp_path)
    held, normal = json.loads(proof.read_text()), list(map(Fraction, setting.labelled.masses))
    assert held["multipliers"] == [["lemma 3", "1"], ["worst", "1"]]
    least = min(normal) / sum(normal)
    # Theorem 1 with e^8 from its series.
    r = sum(Fraction(8**k, math.factorial(k)) for k in range(80))
    assert float(verify.number(held["bound"])) == pytest.approx(
        float((1 - least) / (r * least + 1 - least)), rel=1e-14
    )
    assert run(path, proof)[0] == 0


def rows_of(made: verify.Layers) -> list[list[int]]:
    """All integers of a closed form, as its docstring says."""
    rows, total, left = [], 1 << made.bits, 1 << made.bits
    for i, (own, extra) in enumerate(zip(made.w, made.e, strict=True)):
        shares = [k if made.flat or j > i else 0 for j, k in enumerate(made.k)]
        rest = total - sum(made.w) - extra if made.flat else left - extra
        ends = [rest * sum(shares[: j + 1]) // (sum(shares) or 1) for j in range(len(shares))]
        given = [b - a for a, b in zip([0, *ends], ends, strict=False)]
        row = [
            (w if made.flat or j < i else 0) + (extra if j == i else 0) + given[j]
            for j, w in enumerate(made.w)
        ]
        assert sum(row) == total
        rows.append(row)
        left -= own
    return rows


@pytest.fixture
def any_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a prior drift as far as it does in integers that were written down for their columns."""
    monkeypatch.setattr(verify, "RESIDUAL", Fraction(1))


def ratio(low: int, high: int, unit: int) -> verify.Growth:
    """An enclosure that stays as it is, to however many bits it is asked for."""
    return lambda _: (low, high, unit)


# Row 0 gives the last category a whole number and 1 / S: what is given is rounded up.
_SUM = (1 << 100) - 3
_SHARE = pow(1 << 100, -1, _SUM)
LAYERED = [
    verify.Layers(
        12, False, [1, 2, 4, 9], [300, 500, 700, 0], [700, 900, 1100, 2596], [1, 2, 4, 9]
    ),
    verify.Layers(12, False, [3, 3, 3], [900, 1000, 0], [1400, 1300, 2196], [1, 1, 1]),
    # Nobody keeps as much as row 0 gives to the last category, and the first share is 0.
    verify.Layers(12, False, [1, 2, 4, 9], [100, 2000, 1500, 0], [0, 50, 60, 496], [0, 2, 4, 9]),
    verify.Layers(12, False, [1, 2, 4, 9], [100, 2000, 1500, 0], [50, 50, 60, 496], [0, 2, 4, 9]),
    verify.Layers(
        100,
        False,
        [1, _SUM - _SHARE, _SHARE],
        [0, 1 << 99, 0],
        [0, (1 << 100) - 10, 1 << 99],
        [1, _SUM - _SHARE, _SHARE],
    ),
    verify.Layers(12, True, [1, 2, 4, 9], [200, 300, 400, 400], [500, 700, 900, 900], [0, 1, 2, 5]),
    verify.Layers(12, True, [5, 6, 7], [1000, 1000, 1000], [700, 800, 900], [3, 4, 5]),
    *(
        verify.layers(PublicPrior(MASSES, epsilon, objective=objective).to_dict(), 20)
        for epsilon in (0.25, 1.0, 3.0)
        for objective in ("minimax", "leximin")
    ),
]


@pytest.mark.parametrize("made", LAYERED, ids=range(len(LAYERED)))
def test_columns_and_drift_of_layers_are_those_of_all_their_integers(made: verify.Layers) -> None:
    rows = rows_of(made)
    columns, total = list(zip(*rows, strict=True)), 1 << made.bits
    for j, (kept, least, most) in enumerate(made.columns()):
        column = list(columns[j])
        if made.flat:
            # As if the category itself were given no more than the others are.
            rests = [total - sum(made.w) - extra for extra in made.e]
            column += [made.w[j] + rest * made.k[j] // sum(made.k) for rest in rests]
        assert kept <= columns[j][j] <= kept + 2
        assert least <= min(columns[j])
        assert most >= max(columns[j])
        assert min(column) <= least + 2
        assert max(column) >= most - 2
    mass = sum(made.q)
    moved = [
        abs(sum(q * a for q, a in zip(made.q, column, strict=True)) - q_j * total)
        for q_j, column in zip(made.q, columns, strict=True)
    ]
    exact = Fraction(sum(moved), 2 * mass * total)
    assert exact <= made.drift() <= exact + Fraction(2 * len(made.q), total)
    # A rate is a row's rest for each share rounded down.
    fine = 1 << made.bits + 64
    for (rest, shares), rate in zip(made.rests, made.rates, strict=True):
        assert 0 <= Fraction(rest * fine, shares) - rate < 1


@pytest.mark.usefixtures("any_drift")
def test_integers_that_are_no_distribution_are_refused() -> None:
    verify.decide_layers(LAYERED[0], ratio(9, 9, 1))
    # A category may keep no more than what others are given.
    assert replace(LAYERED[0], e=[0, 900, 1100, 2596]).rests[0] == (4096, 15)
    changes: list[Any] = [
        {"w": [-1, 500, 700, 0]},
        {"e": [-1, 900, 1100, 2596]},
        {"k": [1, 2, -4, 9]},
        {"e": [4097, 900, 1100, 2596]},
        # The last category has nobody to give its rest to.
        {"e": [700, 900, 1100, 2595]},
    ]
    for change in changes:
        with pytest.raises(verify.Refused, match="no distribution"):
            replace(LAYERED[0], **change).rests  # noqa: B018


@pytest.mark.usefixtures("any_drift")
def test_a_prior_s_slack_rows_and_drift_are_those_of_all_entries() -> None:
    made, n = LAYERED[0], 4
    columns = list(zip(*rows_of(made), strict=True))
    grown = Fraction(9)
    verdict, kept = verify.decide_layers(made, ratio(9, 9, 1))
    slacks = [(grown * min(column) - max(column)) / (1 << 12) for column in columns]
    assert min(slacks) - Fraction(20, 1 << 12) <= verdict.slack <= min(slacks)
    assert verdict.at == slacks.index(min(slacks))
    assert verdict.rows == n * n * (n - 1)
    assert verdict.missed == made.drift()
    least = min(columns[j][j] for j in range(n))
    assert 0 <= Fraction(least, 1 << 12) - kept <= Fraction(2, 1 << 12)


def test_a_column_and_a_drift_at_their_limits_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    layers, exact = LAYERED[0], ratio(9, 9, 1)
    monkeypatch.setattr(verify, "RESIDUAL", layers.drift())
    verify.decide_layers(layers, exact)
    # The ratio of a column's bounds as e^epsilon is exactly enough, and a little less is not.
    largest = max(Fraction(most, least) for _, least, most in layers.columns())
    over, under = largest.numerator, largest.denominator
    assert verify.decide_layers(layers, ratio(over, over, under))[0].slack == 0
    with pytest.raises(verify.Refused, match="not private") as caught:
        verify.decide_layers(layers, ratio(over - 1, over, under))
    assert caught.value.missed > 0
    monkeypatch.setattr(verify, "RESIDUAL", layers.drift() - Fraction(1, 1 << 40))
    with pytest.raises(verify.Refused, match="the prior is kept up to"):
        verify.decide_layers(layers, exact)
    # The most that e^epsilon times a column's other entries allow, and a unit more.
    grown, layers = verify.growth(Fraction(1)), verify.layers(PUBLIC.to_dict(), 62)
    low, _, unit = grown(126)
    monkeypatch.undo()
    for place in range(3):
        e = list(layers.e)
        e[place] = low * layers.w[place] // unit
        verify.decide_layers(replace(layers, e=e), grown)
        e[place] += 1
        with pytest.raises(verify.Refused, match=f"not private: category {place}"):
            verify.decide_layers(replace(layers, e=e), grown)


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
@pytest.mark.parametrize("epsilon", [2.0**-20, 0.3, 1.0, 4.0])
def test_integers_of_a_prior_are_those_of_their_formulas(epsilon: float, objective: str) -> None:
    """The docstring of `verify.layers` in fractions, e^epsilon from its series."""
    bits, masses = 40, sorted(map(Fraction, MASSES))
    x, terms = Fraction(epsilon), 120
    grown = sum((x**k / math.factorial(k) for k in range(terms)), Fraction(0))
    r = grown - (grown - 1) / (1 << 40)
    q = [int(mass * 2**bits) for mass in masses]
    made = verify.layers(
        PublicPrior(MASSES, epsilon, objective=objective).to_dict(),  # type: ignore[arg-type]
        bits,
    )
    assert [int(a) for a in made.q] == q
    total, n, left = 1 << bits, len(q), Fraction(1 << bits)
    if objective == "minimax":
        for i, mass in enumerate(q[:-1]):
            w = left * mass / (r * mass + sum(q[i + 1 :]))
            # Below the formula, by roundings of the w before it and of its own.
            assert 0 <= w - made.w[i] < 1 + Fraction(1, 1 << 30)
            assert 0 <= r * made.w[i] - made.e[i] < 1 + Fraction(1, 1 << 30)
            left -= made.w[i]
        assert (made.w[-1], made.e[-1]) == (0, left)
        assert made.k == made.q
        return
    level, i = Fraction(0), 0
    for i in range(n):
        level = left / ((r - 1) + (n - i))
        own = Fraction(total * q[i]) / ((r - 1) * q[i] + sum(q))
        if i == n - 1 or level <= own:
            break
        assert 0 <= own - made.w[i] < 1 + Fraction(1, 1 << 30)
        left -= made.w[i]
    first = i
    for i in range(n):
        assert 0 <= (r - 1) * made.w[i] - made.e[i] < 1 + Fraction(1, 1 << 30)
        if i >= first:
            assert 0 <= level - made.w[i] < 1 + Fraction(1, 1 << 30)
    # The rest is split by what each has less than its mass asks for.
    asked = [max(Fraction(0), a * (total - level * (r - 1)) - level * sum(q)) for a in q[first:]]
    if any(asked):
        shares = [a / sum(asked) for a in asked]
        assert [float(k / sum(made.k)) for k in made.k[first:]] == pytest.approx(
            [float(a) for a in shares], abs=1e-6
        )
    assert made.k[:first] == [0] * first


def box(pmf: list[int], q: list[int], low: Fraction) -> tuple[Fraction, int]:
    """The least slack of q / h <= r <= q h, times h for the first one, and its category."""
    r, mass = [Fraction(a, sum(pmf)) for a in pmf], [Fraction(a, sum(q)) for a in q]
    slacks = [low * min(a, b) - max(a, b) for a, b in zip(r, mass, strict=True)]
    return min(slacks), slacks.index(min(slacks))


@pytest.mark.parametrize("pmf", [[3, 4, 5], [4, 4, 4], [1, 5, 6], [8, 1, 3]])
def test_a_box_has_the_slack_of_its_categories(pmf: list[int]) -> None:
    q, unit = [4, 3, 5], 1 << 10
    for low in range(unit, 4 * unit, 97):
        exact, at = box(pmf, q, Fraction(low, unit))
        grown = ratio(low, low + 1, unit)
        if exact >= 0:
            verdict = verify.decide_box(pmf, q, grown)
            assert (verdict.slack, verdict.at[0] % 3, verdict.rows) == (exact, at, 6)
            continue
        with pytest.raises(verify.Refused) as caught:
            verify.decide_box(pmf, q, grown)
        assert (caught.value.missed, caught.value.at[0] % 3) == (-exact, at)
        outside = box(pmf, q, Fraction(low + 1, unit))[0] < 0
        assert ("not private" if outside else "too close to be decided") in str(caught.value)


def test_a_distribution_at_the_end_of_its_box_is_private_and_a_unit_beyond_is_not() -> None:
    q, exact = [1, 1], ratio(2, 2, 1)
    # 2/3 is twice 1/3, and 1/2 h = 1: the end is at r = 1/4.
    assert verify.decide_box([1, 3], q, exact).slack == 0
    with pytest.raises(verify.Refused, match="is above e.epsilon"):
        verify.decide_box([99, 301], q, exact)
    with pytest.raises(verify.Refused, match="too close to be decided"):
        verify.decide_box([1, 3], q, ratio(15, 16, 8))
    # So is what e^(epsilon / 2) is not known well enough for.
    with pytest.raises(verify.Refused, match="too close to be decided"):
        verify.decide_box([99, 301], q, ratio(7, 9, 4))
