"""The verifier of samplers of a category, beside brute force over all data sets and orders."""

from __future__ import annotations

import io
import json
import random
from collections import Counter, defaultdict
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from itertools import pairwise, product
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import ParameterError, verify
from dpopt.roo.floor import floor_of
from dpopt.shape import Setting, made
from dpopt.table import Table, rounded
from tests.oracles import compositions, neighbours
from tests.proofs.judging import alone, optimum
from tests.roo import brute

R = Fraction(3)
UNIT = 1 << 62

EXAMPLES: tuple[Setting, ...] = (
    dpopt.RevealOrObscure.example(),
    dpopt.RevealOrObscure(24, 3, 0.05),
    dpopt.RevealOrObscure(31, 2, 0.3),
    dpopt.RevealOrObscure(4, 7, 0.5),
    dpopt.RevealOrObscure(12, 3, 0.3, "roo"),
    dpopt.RevealOrObscure(1000, 10, 0.1, "journal"),
    dpopt.RevealOrObscure(13, 3, 0.3, "journal-repaired"),
    dpopt.RevealOrObscure(21, 3, 0.1, "conference"),
    dpopt.SmoothFloor.example(),
    dpopt.SmoothFloor(50, 2, 0.1),
    dpopt.SmoothFloor(30, 10, 0.2),
    dpopt.BestSampler.example(),
    dpopt.BestSampler(5, 4, 0.5),
    dpopt.BestSampler(6, 3, 1.0, "mean", prior=0.3),
)


def plain(setting: Setting, table: Any) -> tuple[Any, Any]:
    """What a file holds of a setting and its table."""
    return tuple(json.loads(json.dumps([setting.to_dict(), setting.plain(table)])))


def displayed(setting: Setting, table: Any = None, ratio: Fraction | None = None) -> verify.Program:
    kept, integers = plain(setting, table) if table is not None else (setting.to_dict(), None)
    kept = json.loads(json.dumps(kept))
    between = None if ratio is None else (ratio, ratio)
    return verify.KINDS[setting.kind](kept, integers, between, {})


def accepts(setting: Setting, table: Any, ratio: Fraction) -> bool:
    try:
        verify.decide(displayed(setting, table, ratio))
    except verify.Refused:
        return False
    return True


def refused(folder: Path, *names: str) -> tuple[int, str, str]:
    """The referee's exit code and words for files in a folder, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = verify.main([str(folder / name) for name in names])
    return code, out.getvalue(), err.getvalue()


def test_a_row_that_the_program_does_not_have_is_no_proof(tmp_path: Path) -> None:
    for setting in [EXAMPLES[0], EXAMPLES[5], EXAMPLES[8], EXAMPLES[11], EXAMPLES[13]]:
        design = dpopt.design(setting)
        design.save(tmp_path / "x.json", proof=True)
        proof = json.loads((tmp_path / "x.proof.json").read_text())
        for name in (["move", 3, 3, 9, 9], ["growth", 99], ["distance", [9, 9]], ["privacy", 0]):
            changed = proof | {"multipliers": [*proof["multipliers"], [*name, "1"]]}
            (tmp_path / "y.proof.json").write_text(json.dumps(changed))
            code, said, _ = refused(tmp_path, "x.json", "y.proof.json")
            assert (code, said.count("optimal:")) == (2, 0)


# --- the rule of the smallest count ----------------------------------------------------------


@pytest.mark.sample(8)
@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 2), (7, 3), (9, 3), (9, 4), (3, 5)])
@pytest.mark.parametrize("ratio", [Fraction(9, 8), Fraction(2), Fraction(3)])
def test_the_displayed_optimum_is_that_over_all_data_sets(n: int, k: int, ratio: Fraction) -> None:
    most, r = n // k, float(ratio)
    rows, limits = [], []
    for m, c, low, d in brute.transitions(n, k):
        # q / k + (1 - q) c / n after, less r times that before.
        row = np.zeros(most + 1)
        row[low] += 1 / k - d / n
        row[m] -= r * (1 / k - c / n)
        rows.append(row)
        limits.append(r * c / n - d / n)
    found = linprog(np.ones(most + 1), np.array(rows), limits, bounds=(0, 1))
    program = displayed(dpopt.RevealOrObscure(n, k, 1.0), ratio=ratio)
    assert optimum(program) == pytest.approx(found.fun, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "k"), [(1, 2), (2, 2), (3, 2), (5, 2), (2, 3), (4, 3), (7, 3), (5, 4)]
)
def test_a_rule_is_decided_to_the_last_digit(n: int, k: int) -> None:
    """Of any q, rising or falling, the worst row that is looked at is the worst of all."""
    rng = random.Random(f"{n} {k}")
    for drawn in range(30):
        q = [rng.randrange(1, UNIT) for _ in range(n // k + 1)]
        if drawn % 3 == 0:
            q.sort(reverse=drawn % 2 == 0)
        same = drawn % 5 == 4
        shares = [Fraction(w, UNIT) for w in ([q[0]] * len(q) if same else q)]
        worst = brute.Rule(n, k, shares).worst_ratio()
        assert worst is not None
        assert verify.decide_rule(n, k, q[: 1 if same else None], same, worst).slack == 0
        with pytest.raises(verify.Refused, match="not private: row"):
            verify.decide_rule(n, k, q[: 1 if same else None], same, worst - Fraction(1, 10**40))


def test_published_rules_ask_for_the_rows_of_their_papers() -> None:
    """Rows f(m~, c~) <= e^epsilon f(m, c) as (m, c, m~, c~), written down by hand."""
    of = {
        "conference": [[(0, 0, 0, 1)], [(1, 1, 0, 2)], [(2, 2, 1, 3)]],
        "exact": [
            [],
            [(1, 1, 0, 0), (1, 4, 0, 5), (0, 0, 1, 1), (0, 5, 1, 4)],
            [(2, 2, 2, 3), (2, 2, 1, 1), (2, 3, 1, 4), (1, 1, 2, 2), (1, 4, 2, 3)],
        ],
        "journal": [
            [(0, 5, 0, 6), (0, 0, 0, 1)],
            [(1, 5, 1, 6), (1, 1, 1, 2), (1, 1, 0, 2), (1, 5, 0, 6), (0, 0, 1, 1), (0, 5, 1, 6)],
            [(2, 5, 2, 6), (2, 2, 1, 3), (2, 5, 1, 6), (1, 1, 2, 2), (1, 5, 2, 6)],
        ],
    }
    for rule, rows in of.items():
        for m, listed in enumerate(rows):
            assert verify.moves(5, 2, m, rule) == [("move", *row) for row in listed], (rule, m)
    repaired = verify.moves(5, 2, 2, "journal-repaired")
    assert set(repaired) - set(verify.moves(5, 2, 2, "journal")) == {("move", 2, 2, 2, 3)}
    assert ("move", 0, 0, 0, 1) in verify.moves(2, 3, 0, "journal")
    assert verify.moves(4, 2, 2, "conference") == []
    # Of three categories and more, a third one may take what the least count loses.
    assert verify.moves(5, 3, 1, "exact") == [
        ("move", *row)
        for row in [(1, 1, 1, 2), (1, 1, 0, 2), (1, 3, 0, 4), (0, 0, 1, 1), (0, 3, 1, 3)]
    ]


@pytest.mark.parametrize(
    ("n", "k", "value"),
    [
        (1, 2, Fraction(1, 2)),  # q_0 = 2 / (1 + r), one record
        (2, 2, Fraction(1, 3)),  # q_0 = 1 / r and q_1 = 0, by r p_0 = p_1 = 1/2
        (1, 5, Fraction(5, 7)),  # k / (k + r - 1)
    ],
)
def test_optima_by_hand(n: int, k: int, value: Fraction) -> None:
    assert optimum(displayed(dpopt.RevealOrObscure(n, k, 1.0), ratio=R)) == pytest.approx(
        float(value)
    )


def test_one_record_of_two_categories_by_hand() -> None:
    # q / 2 + 1 - q <= 3 q / 2, so that q >= 1/2; a multiplier of 1/2 per k n shows it.
    program = displayed(dpopt.RevealOrObscure(1, 2, 1.0), (UNIT // 2,), R)
    assert verify.decide(program).rows == 1
    assert program.value == Fraction(1, 2)
    assert verify.bound(program, [(("move", 0, 0, 0, 1), Fraction(1, 4))]) == Fraction(1, 2)


def test_values_of_the_rules_are_those_of_the_papers_recursions() -> None:
    """k = 3, n = 24, epsilon = 0.05: the journal's rule is not the best, and both are proved."""
    for rule, q_6, q_8 in (
        ("journal", 0.649819693138, 0.609182098136),
        ("exact", 0.648185819618, 0.0),
    ):
        named: Any = rule
        program = displayed(setting := dpopt.RevealOrObscure(24, 3, 0.05, named))
        design = dpopt.design(setting)
        point = displayed(setting, design.table).point
        assert float(point["q", 6]) == pytest.approx(q_6, abs=1e-11)
        assert float(point.get(("q", 8), 0)) == pytest.approx(q_8, abs=1e-11)
        assert optimum(program) == pytest.approx(design.value, abs=1e-9)


@pytest.mark.parametrize(
    "setting",
    [dpopt.RevealOrObscure(3, 2, 0.5, "journal"), dpopt.RevealOrObscure(20, 3, 0.1, "conference")],
    ids=repr,
)
def test_published_rules_that_fail_are_refused(
    setting: dpopt.RevealOrObscure, tmp_path: Path
) -> None:
    units = dpopt.design(setting).table
    with pytest.raises(verify.Refused, match="not private"):
        verify.decide(displayed(setting, units))
    # The same integers in a file that calls them a design.
    honest = dpopt.design(
        dpopt.RevealOrObscure(setting.records, setting.categories, setting.epsilon)
    )
    honest.save(tmp_path / "x.json")
    file = json.loads((tmp_path / "x.json").read_text())
    file["body"]["table"] = [str(w) for w in units]
    (tmp_path / "x.json").write_text(json.dumps(file))
    assert alone(tmp_path / "alone", tmp_path / "x.json").returncode == 4


def test_many_records_are_decided_from_the_few_that_matter() -> None:
    design = dpopt.design(dpopt.RevealOrObscure(10**9, 10, 1.0))
    assert verify.decide(displayed(design.setting, design.table)).rows == 11
    with pytest.raises(verify.Malformed, match="beyond"):
        displayed(dpopt.RevealOrObscure(10**9, 2, 1.0))


# --- the smooth floor ------------------------------------------------------------------------


def floor_ratio(n: int, k: int, table: list[int], unit: int) -> Fraction:
    """The largest ratio of a category's chances under neighbours, over all data sets."""
    worst = Fraction(1)
    for counts in brute.histograms(n, k):
        pmfs = []
        for data in (counts, *neighbours(counts)):
            weights = [table[c] if c < len(table) else c * unit for c in data]
            pmfs.append([Fraction(w, sum(weights)) for w in weights])
        for after in pmfs[1:]:
            for one, other in zip(pmfs[0], after, strict=True):
                worst = max(worst, one / other, other / one)
    return worst


def test_the_floor_of_a_growth_is_the_largest_of_its_lines() -> None:
    """w(c) = max over j of j (1 + s)^(c - j), s the growth that the integers have."""
    design = dpopt.design(dpopt.SmoothFloor(12, 3, 0.3))
    program = displayed(design.setting, design.table)
    bits, weights = design.table
    last = len(weights)
    table = [Fraction(w, 1 << bits) for w in (*weights, last << bits)]
    grown = max(after / before for before, after in pairwise(table))
    least = [max(j * grown ** (c - j) for j in range(c, last + 1)) - c for c in range(last)]
    assert optimum(program) == pytest.approx(float(sum(least)), abs=1e-9)
    assert 0 <= program.value - sum(least) <= Fraction(1, 10**15)


def test_a_floor_of_the_next_growth_is_refused() -> None:
    """The growth is the largest of 40 bits: the next one's table is not private."""
    setting = dpopt.SmoothFloor(12, 3, 0.3)
    best = dpopt.design(setting)
    units = floor_of(best.growth * (1 + 2.0**-38))
    assert floor_ratio(12, 3, list(units[1]), 1 << units[0]) > Fraction(exp(0.3))
    with pytest.raises(verify.Refused, match="not private"):
        verify.decide(displayed(setting, units))


def test_a_floor_that_is_not_convex_is_not_shown() -> None:
    with pytest.raises(verify.Refused, match="not convex"):
        displayed(dpopt.SmoothFloor(12, 3, 0.3), (4, (8, 15, 20)))


# --- the best sampler of one category ----------------------------------------------------------


def labelled(n: int, k: int, r: float) -> tuple[list[Any], dict[Any, int], list[Any], list[Any]]:
    """Data sets as counts, places of K(y | counts), and rows of privacy for neighbours."""
    data = list(compositions(n, k))
    place = {(x, y): i for i, (x, y) in enumerate(product(data, range(k)))}
    rows = []
    for x in data:
        for z in neighbours(x):
            for y in range(k):
                row = np.zeros(len(place))
                row[place[z, y]], row[place[x, y]] = 1.0, -r
                rows.append(row)
    sums = np.kron(np.eye(len(data)), np.ones(k))
    return data, place, rows, [sums, np.ones(len(data))]


def best_distance(n: int, k: int, r: float, pmf: dict[Any, float] | None) -> float:
    """The least mean distance for a distribution of the counts, or the least largest one, by brute
    force.

    One variable for each data set and category, whatever the order of the categories is.
    """
    data, place, rows, (sums, ones) = labelled(n, k, r)
    size = len(place)
    # Variables: K, its shortfalls, and the largest distance.
    above = [np.concatenate([row, np.zeros(size + 1)]) for row in rows]
    limits = [0.0] * len(rows)
    for (x, y), i in place.items():
        row = np.zeros(2 * size + 1)
        row[i], row[size + i] = -1.0, -1.0
        above.append(row)
        limits.append(-x[y] / n)
    cost = np.zeros(2 * size + 1)
    for x in data:
        shortfalls = [size + place[x, y] for y in range(k)]
        if pmf is None:
            row = np.zeros(2 * size + 1)
            row[shortfalls], row[-1] = 1.0, -1.0
            above.append(row)
            limits.append(0.0)
        else:
            cost[shortfalls] = pmf[x]
    cost[-1] = float(pmf is None)
    equal = np.hstack([sums, np.zeros((len(data), size + 1))])
    return float(linprog(cost, np.array(above), limits, equal, ones, (0, 1)).fun)


@pytest.mark.sample(7)
@pytest.mark.parametrize(("n", "k"), [(1, 2), (4, 2), (5, 2), (1, 4), (3, 3), (4, 3), (2, 4)])
@pytest.mark.parametrize("ratio", [Fraction(5, 4), R])
def test_the_best_sampler_is_that_over_all_data_sets(n: int, k: int, ratio: Fraction) -> None:
    found = optimum(displayed(dpopt.BestSampler(n, k, 1.0), ratio=ratio))
    assert found == pytest.approx(best_distance(n, k, float(ratio), None), abs=1e-9)


def test_randomised_response_by_hand() -> None:
    """One record: the other categories have (k - 1) / (r + k - 1)."""
    for k in (2, 3, 6):
        value = Fraction(k - 1) / (R + k - 1)
        found = optimum(displayed(dpopt.BestSampler(1, k, 1.0), ratio=R))
        assert found == pytest.approx(float(value), abs=1e-12)
    setting = dpopt.BestSampler(1, 2, 1.0)
    program = displayed(setting, Table(setting.domain, (3 * UNIT, UNIT), 4 * UNIT), R)
    verify.decide(program)
    assert program.value == Fraction(1, 4)


def test_a_dirichlet_prior_is_polyas_urn() -> None:
    """Each category is drawn in proportion to alpha plus what came before."""
    n, k, alpha = 4, 3, Fraction(1, 2)
    pmf: dict[Any, Fraction] = defaultdict(Fraction)
    for records in product(range(k), repeat=n):
        chance = Fraction(1)
        for i, category in enumerate(records):
            chance *= (alpha + records[:i].count(category)) / (k * alpha + i)
        pmf[tuple(sorted((records.count(y) for y in range(k)), reverse=True))] += chance
    program = displayed(dpopt.BestSampler(n, k, 1.0, "mean", prior=0.5))
    for x, chance in pmf.items():
        assert {program.cost["S", x, c] for c in x if c} == {chance}
    # All orders of the categories are alike: a data set has its share of the histogram's chance.
    orders = Counter(map(sorted_of, compositions(n, k)))
    equal = {z: float(pmf[sorted_of(z)]) / orders[sorted_of(z)] for z in compositions(n, k)}
    found = optimum(displayed(dpopt.BestSampler(n, k, 1.0, "mean", prior=0.5), ratio=R))
    assert found == pytest.approx(best_distance(n, k, 3.0, equal), abs=1e-9)


def sorted_of(counts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(counts, reverse=True))


@pytest.mark.parametrize(("n", "k"), [(1, 2), (4, 2), (5, 3), (4, 4), (2, 5)])
def test_histograms_and_their_passages_are_those_of_all_data(n: int, k: int) -> None:
    data = list(compositions(n, k))
    setting: Any = json.loads(json.dumps(dpopt.BestSampler(n, k, 1.0).to_dict()))
    program = verify.optimal_sampler(setting, None, None, None)
    found = sorted(set(map(sorted_of, data)), reverse=True)
    assert [row[0][1] for row, _ in program.pmfs] == found
    expected = {
        ("privacy", sorted_of(x), c, sorted_of(z), d)
        for x in data
        for z in neighbours(x)
        for c, d in zip(x, z, strict=True)
        if (sorted_of(x), c) != (sorted_of(z), d)
    }
    passed = [name for name in program.names() if name[0] == "privacy"]
    assert len(passed) == len(set(passed))
    assert set(passed) == expected


def test_rows_of_a_sampler_hold_all_that_e_epsilon_may_be() -> None:
    setting: dict[str, Any] = json.loads(json.dumps(dpopt.BestSampler(4, 3, 1.0).to_dict()))
    between = Fraction(2), Fraction(3)
    program = verify.optimal_sampler(setting, None, between, None)
    rows = [(name, program.row(name)) for name in program.names() if len(name) == 5]
    assert rows
    for (_, x, c, z, d), row in rows:
        over, under = x.count(c), z.count(d)
        assert row.terms == {("K", z, d): over, ("K", x, c): (-3 * under, -2 * under)}


def sampler_ratio(setting: dpopt.BestSampler, table: Table) -> Fraction:
    """The largest ratio of a category's chances under neighbours, over all data sets."""
    worst, n, k = Fraction(1), setting.records, setting.categories
    pmfs = {}
    for x in compositions(n, k):
        weights = setting.output_weights(table, [y for y in range(k) for _ in range(x[y])])
        pmfs[x] = [Fraction(w, sum(weights)) for w in weights]
    for x, pmf in pmfs.items():
        for z in neighbours(x):
            worst = max(worst, *(a / b for a, b in zip(pmf, pmfs[z], strict=True)))
    return worst


@pytest.mark.parametrize(("n", "k"), [(1, 2), (5, 2), (4, 3), (6, 3), (3, 4), (2, 5)])
def test_edges_of_histograms_imply_all_neighbours(n: int, k: int) -> None:
    setting, draws = dpopt.BestSampler(n, k, 1.0), np.random.default_rng(10 * n + k)
    for _ in range(5):
        table = rounded(setting.domain, draws.integers(1, UNIT, setting.domain.size).tolist())
        worst = sampler_ratio(setting, table)
        program = displayed(setting, table, worst)
        assert verify.decide(program).rows == len(list(program.names()))
        assert not accepts(setting, table, worst * (1 - Fraction(1, 10**15)))


@pytest.mark.parametrize("setting", EXAMPLES[11:], ids=repr)
def test_a_unit_that_is_too_large_is_refused(setting: dpopt.BestSampler, tmp_path: Path) -> None:
    design = dpopt.design(setting)
    design.save(tmp_path / "x.json")
    file = json.loads((tmp_path / "x.json").read_text())
    inputs, table = setting.domain, design.table
    program = displayed(setting, table)
    assert program.private is not None
    raised, lowered = program.private().at
    assert raised != lowered
    # 1e-12 of it is beyond any slack of the tightest row; another count of its histogram gives it.
    weights, counts = list(table.weights), inputs.counts.tolist()
    other = next(
        v for v in np.flatnonzero(inputs.rows == inputs.rows[raised]).tolist() if v != raised
    )
    more = weights[raised] // 10**12
    weights[raised] += more * counts[other]
    weights[other] -= more * counts[raised]
    wrong = Table(inputs, tuple(weights), table.total)
    assert sampler_ratio(setting, wrong) > Fraction(exp(setting.epsilon))
    file["body"]["table"] = wrong.plain()
    (tmp_path / "y.json").write_text(json.dumps(file))
    assert refused(tmp_path, "y.json")[:2] == (4, "")


def test_what_is_too_large_for_the_referee_has_a_bound_in_floats() -> None:
    setting = dpopt.BestSampler(400, 2, 1.0, "mean", prior=0.3)
    table = rounded(setting.domain, [1] * setting.domain.size)
    design = made(setting, table, float_bound=0.0)
    assert design.bound is not None
    assert design.bound.how == "float"
    with pytest.raises(ParameterError, match="beyond"):
        _ = design.optimality


@pytest.mark.parametrize("weights", [[0, 4], [-1, 4], [5, 4], [1, 5], [2, 3]], ids=str)
def test_weights_that_are_no_floor_are_refused(weights: list[int]) -> None:
    """They are above 0, do not fall, and rise by more and more up to a unit."""
    verify.Floor(9, 3, [2, 4], 4)
    verify.Floor(9, 3, [4, 4], 4)
    with pytest.raises(verify.Refused, match="not convex"):
        verify.Floor(9, 3, weights, 4)


def test_weights_steps_and_sums_of_a_floor_by_hand() -> None:
    floor = verify.Floor(12, 3, [2, 4], 4)
    assert [floor.weight(c) for c in range(5)] == [2, 4, 8, 12, 16]
    assert [floor.step(c) for c in range(5)] == [2, 4, 4, 4, 4]
    # The least sum of categories with so many records is that of even counts, the largest of one.
    for categories, records in product(range(4), range(9)):
        every = [
            sum(map(floor.weight, counts))
            for counts in product(range(records + 1), repeat=categories)
            if sum(counts) == records
        ]
        if categories == 0:
            assert floor.least(0, records) == floor.most(0, records) == 0
        else:
            assert (floor.least(categories, records), floor.most(categories, records)) == (
                min(every),
                max(every),
            )
    assert [floor.even(c) for c in range(0, 13, 3)] == [6, 4, 3, 1, 0]


def test_the_program_of_a_floor_by_hand() -> None:
    """W = 2, 4, 8 in units of 1/4 grows by 2: lifts 1/2 and 0 above c, and lift 0 from 2 on."""
    setting = {"records": 12, "categories": 3, "epsilon": 3.0}
    program = verify.smooth_floor(setting, [2, [2, 4]], None, {})
    assert program.point == {("lift", 0): Fraction(1, 2), ("lift", 1): 0}
    assert program.row(("growth", 0)) == verify.Row({("lift", 0): -2, ("lift", 1): 1}, -1)
    assert program.row(("growth", 1)) == verify.Row({("lift", 1): -2}, 0)
    assert (list(program.names()), program.value) == (
        [("growth", 0), ("growth", 1)],
        Fraction(1, 2),
    )
    for name in (("growth", 2), ("growth", -1), ("lift", 0), ("lift", 2)):
        with pytest.raises(verify.Malformed, match="no row"):
            program.row(name)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (8, 2), (7, 3), (8, 3)])
def test_gains_beyond_the_end_of_a_floor_are_never_the_worst(n: int, k: int) -> None:
    """Of weights that are even up to the end, all ratios are below 7 / 6: c = 6 is looked at."""
    floor, worst = verify.Floor(n, k, [4] * 5, 1), floor_ratio(n, k, [4] * 5, 1)
    assert floor.worst()[0] == worst < Fraction(7, 6)


def test_the_slack_of_a_floor_is_that_of_the_rarest_category() -> None:
    """No category is rarer than one with no record where another has all 12: 2 / (48 + 2 + 2)."""
    floor, worst = verify.Floor(12, 3, [2, 4], 4), floor_ratio(12, 3, [2, 4], 4)
    assert floor.decide(worst + 1).slack == Fraction(1, 26)
    with pytest.raises(verify.Refused, match="not private") as refusal:
        floor.decide(worst - 1)
    assert refusal.value.missed == Fraction(1, 26)


def test_as_many_histograms_as_can_be_decided() -> None:
    """n records over two categories have n // 2 + 1 histograms."""
    setting = {"records": 3999, "categories": 2, "epsilon": 1.0, "objective": "worst-case"}
    assert len(verify.optimal_sampler(setting, None, None, {}).pmfs) == 2000
    with pytest.raises(verify.Malformed, match="too many histograms"):
        verify.optimal_sampler(setting | {"records": 4000}, None, None, {})


@pytest.mark.parametrize(("n", "k"), [(4, 2), (9, 2), (5, 3), (10, 3), (7, 4), (9, 5), (3, 6)])
def test_inequalities_of_a_floor_imply_all_neighbours(n: int, k: int) -> None:
    draws, setting = np.random.default_rng(10 * n + k), dpopt.SmoothFloor(n, k, 3.0)
    for last in (1, 2, 3, 5, 8, 12):
        # Convex up to c* 2^30 by steps that rise to 2^30.
        steps = np.sort(draws.integers(0, 1 << 30, last) // draws.integers(1, 4)).tolist()
        top = last << 30
        table = [top - sum(steps[c:]) for c in range(last)]
        worst = floor_ratio(n, k, table, 1 << 30)
        assert accepts(setting, (30, tuple(table)), worst)
        less = 1 + (worst - 1) * (1 - Fraction(1, 10**15))
        assert not accepts(setting, (30, tuple(table)), less)
