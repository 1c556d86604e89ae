"""The verifier of samplers of a category, beside brute force over all data sets and orders."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import ParameterError, verify
from dpopt.shape import Setting, made
from dpopt.table import Table, rounded
from tests.oracles import compositions, neighbours
from tests.proofs.judging import alone, edited, optimum, program_of, run, saved
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


def displayed(setting: Setting, table: Any = None, ratio: Fraction | None = None) -> verify.Program:
    return program_of(setting, None if table is None else setting.plain(table), ratio)


def accepts(setting: Setting, table: Any, ratio: Fraction) -> bool:
    try:
        verify.decide(displayed(setting, table, ratio))
    except verify.Refused:
        return False
    return True


def test_a_row_that_the_program_does_not_have_is_no_proof(tmp_path: Path) -> None:
    for setting in [EXAMPLES[0], EXAMPLES[5], EXAMPLES[8], EXAMPLES[11], EXAMPLES[13]]:
        path, proof = saved(setting, tmp_path)
        lines = json.loads(proof.read_text())["multipliers"]
        for name in (["move", 3, 3, 9, 9], ["growth", 99], ["distance", [9, 9]], ["privacy", 0]):
            edited(proof, multipliers=[*lines, [*name, "1"]])
            code, shown, _ = run(path, proof)
            assert (code, [line for line in shown if line.startswith("optimal:")]) == (2, [])


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


def test_optima_by_hand() -> None:
    """2 / (1 + r) of one record; q_0 = 1 / r, q_1 = 0, by r p_0 = p_1 = 1/2; k / (k + r - 1)."""
    for n, k, value in ((1, 2, 1 / 2), (2, 2, 1 / 3), (1, 5, 5 / 7)):
        program = displayed(dpopt.RevealOrObscure(n, k, 1.0), ratio=R)
        assert optimum(program) == pytest.approx(value)
    # q / 2 + 1 - q <= 3 q / 2, so that q >= 1/2; a multiplier of 1/2 per k n shows it.
    program = displayed(dpopt.RevealOrObscure(1, 2, 1.0), (UNIT // 2,), R)
    assert verify.decide(program).rows == 1
    assert program.value == Fraction(1, 2)
    assert verify.bound(program, [(("move", 0, 0, 0, 1), Fraction(1, 4))]) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("rule", "q_6", "q_8"),
    [("journal", 0.649819693138, 0.609182098136), ("exact", 0.648185819618, 0.0)],
)
def test_values_of_the_rules_are_those_of_the_papers_recursions(
    rule: Any, q_6: float, q_8: float
) -> None:
    """The journal's rule is not the best, and both are proved."""
    design = dpopt.design(setting := dpopt.RevealOrObscure(24, 3, 0.05, rule))
    point = displayed(setting, design.table).point
    assert float(point["q", 6]) == pytest.approx(q_6, abs=1e-11)
    assert float(point.get(("q", 8), 0)) == pytest.approx(q_8, abs=1e-11)
    assert optimum(displayed(setting)) == pytest.approx(design.value, abs=1e-9)


@pytest.mark.parametrize("data", [(3, 2, 0.5, "journal"), (20, 3, 0.1, "conference")], ids=str)
def test_published_rules_that_fail_are_refused(data: Any, tmp_path: Path) -> None:
    units = dpopt.design(setting := dpopt.RevealOrObscure(*data)).table
    with pytest.raises(verify.Refused, match="not private"):
        verify.decide(displayed(setting, units))
    # The same integers in a file that calls them a design.
    path, _ = saved(dpopt.RevealOrObscure(*data[:3]), tmp_path)
    edited(path, body=json.loads(path.read_text())["body"] | {"table": list(map(str, units))})
    assert alone(tmp_path / "alone", path).returncode == 4


# --- the smooth floor ------------------------------------------------------------------------


def worst_ratio(n: int, k: int, weights_of: Callable[[Any], Sequence[int]]) -> Fraction:
    """The largest ratio of a category's chances under neighbours, over all data sets."""
    pmfs = {}
    for x in compositions(n, k):
        weights = weights_of(x)
        pmfs[x] = [Fraction(w, sum(weights)) for w in weights]
    pairs = ((pmf, pmfs[z]) for x, pmf in pmfs.items() for z in neighbours(x))
    return max(a / b for pmf, other in pairs for a, b in zip(pmf, other, strict=True))


def floor_ratio(n: int, k: int, table: list[int], unit: int) -> Fraction:
    """The same of a smooth floor."""
    return worst_ratio(n, k, lambda x: [table[c] if c < len(table) else c * unit for c in x])


def test_the_floor_of_a_growth_is_the_largest_of_its_lines() -> None:
    """w(c) = max over j of j (1 + s)^(c - j), s the growth that the integers have."""
    design = dpopt.design(dpopt.SmoothFloor(12, 3, 0.3))
    program = displayed(design.setting, design.table)
    bits, weights = design.table
    assert floor_ratio(12, 3, list(weights), 1 << bits) == design.worst_ratio
    last = len(weights)
    table = [Fraction(w, 1 << bits) for w in (*weights, last << bits)]
    grown = max(after / before for before, after in pairwise(table))
    assert design.growth == pytest.approx(float(grown - 1), rel=1e-9)
    least = [max(j * grown ** (c - j) for j in range(c, last + 1)) - c for c in range(last)]
    assert optimum(program) == pytest.approx(float(sum(least)), abs=1e-9)
    assert 0 <= program.value - sum(least) <= Fraction(1, 10**15)


# --- the best sampler of one category ----------------------------------------------------------


def best_distance(n: int, k: int, r: float, pmf: dict[Any, float] | None) -> float:
    """The least mean distance for a distribution of the counts, or the least largest one, by brute
    force.

    One variable for each data set and category, whatever the order of the categories is.
    """
    data = list(compositions(n, k))
    place = {pair: i for i, pair in enumerate(product(data, range(k)))}
    size = len(place)
    # Variables: K(y | counts), its shortfalls, and the largest distance.
    rows: list[tuple[dict[int, float], float]] = [
        ({place[z, y]: 1.0, place[x, y]: -r}, 0.0)
        for x in data
        for z in neighbours(x)
        for y in range(k)
    ]
    rows += [({i: -1.0, size + i: -1.0}, -x[y] / n) for (x, y), i in place.items()]
    cost = np.zeros(2 * size + 1)
    for x in data:
        shortfalls = [size + place[x, y] for y in range(k)]
        cost[shortfalls] = 0.0 if pmf is None else pmf[x]
        if pmf is None:
            rows.append(({**dict.fromkeys(shortfalls, 1.0), 2 * size: -1.0}, 0.0))
    cost[-1] = float(pmf is None)
    above = np.zeros((len(rows), 2 * size + 1))
    for line, (terms, _) in zip(above, rows, strict=True):
        line[list(terms)] = list(terms.values())
    sums = np.hstack([np.kron(np.eye(len(data)), np.ones(k)), np.zeros((len(data), size + 1))])
    limits = [limit for _, limit in rows]
    return float(linprog(cost, above, limits, sums, np.ones(len(data)), (0, 1)).fun)


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
    program = displayed(dpopt.BestSampler(n, k, 1.0))
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
    program = program_of(dpopt.BestSampler(4, 3, 1.0), ratio=(Fraction(2), Fraction(3)))
    rows = [(name, program.row(name)) for name in program.names() if len(name) == 5]
    assert rows
    for (_, x, c, z, d), row in rows:
        over, under = x.count(c), z.count(d)
        assert row.terms == {("K", z, d): over, ("K", x, c): (-3 * under, -2 * under)}


@pytest.mark.parametrize(("n", "k"), [(1, 2), (5, 2), (4, 3), (6, 3), (3, 4), (2, 5)])
def test_edges_of_histograms_imply_all_neighbours(n: int, k: int) -> None:
    setting, draws = dpopt.BestSampler(n, k, 1.0), np.random.default_rng(10 * n + k)
    for _ in range(5):
        table = rounded(setting.domain, draws.integers(1, UNIT, setting.domain.size).tolist())

        def weights_of(x: Any, table: Table = table) -> Any:
            return setting.output_weights(table, [y for y in range(k) for _ in range(x[y])])

        worst = worst_ratio(n, k, weights_of)
        program = displayed(setting, table, worst)
        assert verify.decide(program).rows == len(list(program.names()))
        assert not accepts(setting, table, worst * (1 - Fraction(1, 10**15)))


def test_sizes_that_are_decided_and_those_that_are_not() -> None:
    # n records over two categories have n // 2 + 1 histograms.
    largest = dpopt.BestSampler(3999, 2, 1.0)
    assert len(displayed(largest).pmfs) == 2000
    with pytest.raises(verify.Malformed, match="too many histograms"):
        verify.optimal_sampler({**largest.to_dict(), "records": 4000}, None, None, {})
    # Of many records, the few that matter.
    design = dpopt.design(dpopt.RevealOrObscure(10**9, 10, 1.0))
    assert verify.decide(displayed(design.setting, design.table)).rows == 11
    with pytest.raises(verify.Malformed, match="beyond"):
        displayed(dpopt.RevealOrObscure(10**9, 2, 1.0))
    # What is too large has a bound in floats.
    setting = dpopt.BestSampler(400, 2, 1.0, "mean", prior=0.3)
    table = rounded(setting.domain, [1] * setting.domain.size)
    design = made(setting, table, float_bound=0.0)
    assert design.bound is not None
    assert design.bound.how == "float"
    with pytest.raises(ParameterError, match="beyond"):
        _ = design.optimality


def test_weights_that_are_no_floor_are_refused() -> None:
    """They are above 0, do not fall, and rise by more and more up to a unit."""
    for weights in ([2, 4], [4, 4], [0, 4], [-1, 4], [5, 4], [1, 5], [2, 3], [2, 4, 5]):
        if weights in ([2, 4], [4, 4]):
            verify.Floor(9, 3, weights, 4)
            continue
        with pytest.raises(verify.Refused, match="not convex"):
            verify.Floor(9, 3, weights, 4)
    with pytest.raises(verify.Refused, match="not convex"):
        displayed(dpopt.SmoothFloor(12, 3, 0.3), (4, (8, 15, 20)))


def test_weights_and_steps_of_a_floor_by_hand() -> None:
    floor = verify.Floor(12, 3, [2, 4], 4)
    assert [floor.weight(c) for c in range(5)] == [2, 4, 8, 12, 16]
    assert [floor.step(c) for c in range(5)] == [2, 4, 4, 4, 4]
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
