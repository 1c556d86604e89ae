"""Pluralities in the file that checks designs alone: against fractions, brute force and mutations.

What is refused is decided here from all histograms in the order of their classes, and from all
choices of corners of all voters: nothing sorted, nothing reduced.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import verify
from dpopt.privacy import exp_lower
from dpopt.shape import Design, made
from dpopt.table import SortedHistograms, Table, rounded
from tests.kernel import brute
from tests.multiclass.brute import largest_excess
from tests.oracles import compositions, neighbours, votes
from tests.proofs.judging import displayed, program_of, solved

PLAIN: list[tuple[Any, ...]] = [
    (3, 3, 1.0, "mean", "regret"),
    (6, 3, 1.0, "mean", "regret"),
    (6, 3, 1.0, "worst-case", "regret"),
    (7, 2, 0.5, "worst-case", "error"),
    (5, 4, 0.5, "mean", "error", "optimal", "dirichlet:1/2"),
    (8, 8, 3.0, "worst-case", "regret"),
    (1, 2, 0.1),
    (2, 9, 1.0),
]
PRIVATE: list[tuple[Any, ...]] = [
    (5, 3, 0.5, 2.0),
    (4, 2, 0.3, 1.5),
    (4, 4, 0.5, 2.0),
    (4, 3, 0.5, 1.5, 0.0, 0.01),
    (5, 3, 0.2, 2.0, 0.0, 0.0, "point:0.5,0.3,0.2"),
    (5, 3, 0.2, 2.0, 0.0, 0.0, "dirichlet:0.3"),
    (1, 3, 0.5, 1.0),
    # More classes than K + 2.
    (1, 4, 0.5, 0.5),
    (2, 6, 0.3, 0.8, 0.0, 0.02),
    (1, 5, 1.0, 0.7, 0.0, 0.0, "point:0.5,0.2,0.1,0.1,0.1"),
]


def accepted(found: Design) -> bool:
    try:
        verify.decide(displayed(found))
    except verify.Refused:
        return False
    return True


def has_optimum(program: verify.Program, known: float) -> None:
    """Whether a program's optimum over all rows, and what its multipliers prove, is a known one."""
    value, multipliers = solved(program)
    assert value == pytest.approx(known, abs=1e-11)
    assert float(verify.bound(program, multipliers)) == pytest.approx(known, abs=1e-11)


@pytest.mark.parametrize("rule", ["ladder", "permute-and-flip", "exponential"])
def test_a_rule_is_private_and_says_nothing_of_others(rule: Any) -> None:
    for found in (
        dpopt.design(dpopt.Plurality(6, 3, 1.0, rule=rule)),
        dpopt.design(dpopt.Multiclass(5, 3, 0.5, 2, rule=rule)),
        # Too many corners, and voters with a Delta: stable in each vote.
        dpopt.design(dpopt.Multiclass(20, 5, 0.1, 3, rule=rule)),
        dpopt.design(dpopt.Multiclass(6, 3, 0.5, 2, rule=rule, voter_delta=1e-3)),
    ):
        assert accepted(found)
        assert displayed(found).value == pytest.approx(found.value, rel=1e-12)
        assert found.optimality is None


def test_a_step_is_not_decided() -> None:
    found = dpopt.design(dpopt.Plurality(10_000, 4, 1.0, rule="exponential"))
    with pytest.raises(verify.Refused, match="by a theorem"):
        displayed(found)


@pytest.mark.parametrize("loss", ["regret", "error"])
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_records_as_a_program_over_all_histograms(objective: Any, loss: Any) -> None:
    """The same optimum over kernels that need not treat classes alike."""
    inputs = list(compositions(4, 3))
    edges = [(at, inputs.index(z)) for at, x in enumerate(inputs) for z in neighbours(x)]
    losses = np.array([[max(x) - n for n in x] for x in inputs])
    losses = losses if loss == "regret" else losses.clip(max=1)
    prior = np.full(len(inputs), 1 / len(inputs)) if objective == "mean" else None
    least = brute.least_loss(losses, edges, math.log(2), prior=prior)
    has_optimum(program_of(dpopt.Plurality(4, 3, 1.0, objective, loss), ratio=2), least)


@pytest.mark.parametrize("classes", [4, 5, 9])
def test_one_voter_of_more_classes_than_can_have_a_vote(classes: int) -> None:
    """With s = e^(m epsilon), r = e^epsilon and a / b the ratio of k: a r + b <= s (a + b r)."""
    r, s = math.exp(0.5), math.exp(0.25)
    found = dpopt.design(dpopt.Multiclass(1, classes, 0.5, 0.5))
    assert found.value == pytest.approx(
        1 - 1 / (1 + (classes - 1) * (r - s) / (s * r - 1)), abs=1e-12
    )
    assert found.bound == pytest.approx(found.value, abs=1e-12)
    assert found.to_dict()["bound_is"] == "proved"


@pytest.mark.parametrize(("voters", "classes", "allowance"), [(3, 3, 2), (2, 5, 1)])
def test_voters_as_a_program_over_all_votes(voters: int, classes: int, allowance: int) -> None:
    """Rows of all choices of corners in order, over rules that need not treat classes alike."""
    ratio, counts = 2, list(compositions(voters, classes))
    above = set()
    for edges in product(product(range(classes), repeat=2), repeat=voters):
        first, second = (votes((0,) * classes, edges, Fraction(b, ratio + 1)) for b in (ratio, 1))
        line = [first.get(h, 0) - ratio**allowance * second.get(h, 0) for h in counts]
        lines = np.kron(np.array(line, float), np.eye(classes))
        above |= {*map(tuple, lines)}
    missed = [int(n < max(h)) / len(counts) for h in counts for n in h]
    equal = np.kron(np.eye(len(counts)), np.ones(classes))
    rows, ones = np.array(sorted(above)), np.ones(len(counts))
    best = linprog(missed, rows, np.zeros(len(rows)), equal, ones)
    setting = dpopt.Multiclass(voters, classes, 1.0, allowance)
    has_optimum(program_of(setting, ratio=ratio), best.fun)


def moved(table: Table, step: int) -> list[Table]:
    """All tables with so many units more for each class of a count, taken from another count."""
    found, counts = [], table.inputs.counts.tolist()
    for start, end in pairwise(table.inputs.starts.tolist()):
        for one, other in permutations(range(start, end), 2):
            weights = list(table.weights)
            weights[one] += step * counts[other]
            weights[other] -= step * counts[one]
            if weights[other] >= 0:
                found.append(Table(table.inputs, tuple(weights), table.total))
    return found


def broken(table: Table, ratio: Fraction) -> bool:
    """Whether a record replaced changes a probability by more, over all histograms in order."""
    inputs = table.inputs
    assert isinstance(inputs, SortedHistograms)
    rows = {h: table.row(np.array(h)) for h in compositions(inputs.records, inputs.categories)}
    pairs = ((rows[h], rows[z]) for h in rows for z in neighbours(h))
    return any(w > ratio * v for row, other in pairs for w, v in zip(row, other, strict=True))


@pytest.mark.parametrize(("records", "classes"), [(4, 3), (3, 4)])
def test_records_a_unit_beyond_are_refused(records: int, classes: int) -> None:
    found = dpopt.design(dpopt.Plurality(records, classes, 1.0))
    ratio, verdicts = exp_lower(1.0, 400), set()
    for exponent in range(0, 60, 4):
        for changed in moved(found.table, 1 << exponent):
            private = accepted(made(found.setting, changed, certificate=None, float_bound=None))
            assert private != broken(changed, ratio)
            verdicts.add((exponent, private))
    # Some of what is a few units away is private, all of what is far away is not.
    assert (0, True) in verdicts
    assert {private for _, private in verdicts} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_voters_a_unit_beyond_are_refused(delta: float) -> None:
    found, verdicts = dpopt.design(dpopt.Multiclass(3, 3, 0.5, 1.5, delta=delta)), set()
    for exponent in (0, 20, 56):
        for changed in moved(found.table, 1 << exponent):
            private = accepted(made(found.setting, changed, certificate=None, float_bound=None))
            excess = largest_excess(changed, 0.5, Fraction(3, 4), sets=delta > 0) - Fraction(delta)
            assert private == (excess <= 0)
            verdicts.add(private)
    assert verdicts == {True, False}


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_what_is_refused_is_named_and_measured(delta: float) -> None:
    """The row that is broken most, and by how much, of a table far from private."""
    setting = dpopt.Multiclass(3, 3, 0.5, 1.5, delta=delta)
    point = np.zeros(setting.domain.size)
    point[setting.domain.starts[:-1]] = 1.0
    program = displayed(made(setting, rounded(setting.domain, point), certificate=None))
    with pytest.raises(verify.Refused) as caught:
        verify.decide(program)
    row, missed = program.row(caught.value.at), caught.value.missed
    above = sum(verify.ends(a)[1] * program.point.get(v, 0) for v, a in row.terms.items())
    _, size, signed, loops = caught.value.at
    assert sum(map(abs, signed)) + sum(loops) == 3
    # The row is the corner's inequality, divided by a number of its own.
    assert above > verify.ends(row.limit)[0]
    table = rounded(setting.domain, point)
    excess = largest_excess(table, 0.5, Fraction(3, 4), sets=size > 1) - Fraction(delta)
    assert float(missed) == pytest.approx(float(excess), rel=1e-12)


def test_a_row_that_is_none_is_refused() -> None:
    ballots, voters = (
        displayed(dpopt.design(setting))
        for setting in (dpopt.Plurality(6, 3, 1.0), dpopt.Multiclass(5, 3, 0.5, 2))
    )
    for program, name in [
        (ballots, ("privacy", 0, 6, 2, 2)),
        *((ballots, ("privacy", at, 6, 1, 5)) for at in (99, -1, 7, 8)),
        (ballots, ("worst", 0)),
        *((voters, ("corner", 1, (1, 0, 0), loops)) for loops in ((5, 0, 0), (5, -1, 0), (4, 0))),
        *((voters, ("corner", size, (1, 0, 0), (4, 0, 0))) for size in (3, 0)),
        (voters, ("privacy", 1, (1, 0, 0), (4, 0, 0))),
    ]:
        with pytest.raises(verify.Malformed):
            program.row(name)


def test_neighbours_are_those_of_the_package() -> None:
    for records, classes in ((6, 3), (1, 2), (2, 9), (5, 5), (12, 4)):
        inputs = SortedHistograms(records, classes)
        program = program_of(dpopt.Plurality(records, classes, 1.0))
        names = list(program.names())
        assert len(set(names)) == len(names) == 2 * len(inputs.neighbours)
        assert sum(inputs.row_sizes) == math.comb(records + classes - 1, records)
        assert all(program.cost[v] > 0 for pmf, _ in program.pmfs for v in pmf[1:])


def test_a_prior_that_is_none_is_refused() -> None:
    """It may have forty characters a class."""
    chances, longest = verify.Ballots(3, 3, None).chances, "dirichlet:1." + "0" * 108
    assert len(longest) == 120
    assert chances(longest) == chances("uniform")
    for prior in ("dirichlet:1,1", "gauss:1", "point:0.5;0.5", f"{longest}0"):
        with pytest.raises(verify.Malformed, match="prior is "):
            chances(prior)


def test_states_are_as_many_as_the_limit_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """(6, 3) has seven sorted counts of three classes."""
    for most in (21, 22, 26):
        monkeypatch.setattr(verify, "MOST", most)
        assert len(verify.Ballots(6, 3, None).states) == 7
    for most in (20, 19, 15):
        monkeypatch.setattr(verify, "MOST", most)
        with pytest.raises(verify.Malformed, match="a size is beyond"):
            verify.Ballots(6, 3, None)


def test_limits_of_a_plurality_are_those_that_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program = verify.KINDS["plurality"]
    cases: list[tuple[Any, str]] = [("optimal", "SOLVED"), ("ladder", "TABLED")]
    for rule, name in cases:
        setting = dpopt.Plurality(6, 3, 1.0, rule=rule).to_dict()
        with monkeypatch.context() as patched:
            patched.setattr(verify, name, 7)
            program(setting, None, None, {})
            patched.setattr(verify, name, 6)
            with pytest.raises(verify.Malformed, match="more than 6 sorted counts"):
                program(setting, None, None, {})
    many = dpopt.Plurality(6, 2, 1.0, rule="ladder").to_dict()
    program({**many, "records": 10_000, "prior": "uniform"}, None, None, {})
    with pytest.raises(verify.Malformed, match="10000 ballots"):
        program({**many, "records": 10_001, "prior": "uniform"}, None, None, {})


GENTLE = {(3, 0, 0): (32, 8, 8), (2, 1, 0): (24, 14, 10), (1, 1, 1): (16, 16, 16)}
# Where a Delta counts for more than a ratio does.
STEEP = {(3, 0, 0): (44, 2, 2), (2, 1, 0): (36, 10, 2), (1, 1, 1): (16, 16, 16)}


@pytest.mark.parametrize(
    ("shift", "weights", "budget"),
    [(0.0, GENTLE, Fraction(8)), (0.125, GENTLE, Fraction(8)), (0.5, STEEP, Fraction(900))],
)
def test_a_rule_of_stable_votes_has_the_slack_of_its_formula(
    shift: float, weights: Any, budget: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One voter changes a probability by g(r, v) at most, K of them by g^K, against R."""
    low, high, width = Fraction(21, 8), Fraction(8, 3), Fraction(1, 64)
    monkeypatch.setattr(
        verify,
        "exp",
        lambda x, *_: {0: (1, 1), 1: (low, high), 2: (budget, budget + width)}[int(x)],
    )
    setting = dpopt.Multiclass(3, 3, 1.0, 2.0).to_dict()
    rows = [list(dict.fromkeys(weights[state])) for state in ((3, 0, 0), (2, 1, 0), (1, 1, 1))]
    ballots = verify.Ballots(3, 3, {"total": 48, "weights": rows})
    labels = verify.Labels({**setting, "voter_delta": shift}, ballots, None)
    verdict, worst = labels.stable(), Fraction(1)
    for state, chances in weights.items():
        for a, b in permutations(range(3), 2):
            if state[a]:
                moved = [n - (y == a) + (y == b) for y, n in enumerate(state)]
                order = sorted(range(3), key=lambda y: -moved[y])
                after = weights[tuple(moved[y] for y in order)]
                for place, y in enumerate(order):
                    both = Fraction(chances[y], after[place])
                    worst = max(worst, both, 1 / both)
    shift_ = Fraction(shift)
    r = (high + shift_) / (1 - shift_)
    ways = (r * worst + 1) / (r + worst), 1 + shift_ * (worst - 1)
    assert (ways[1] > ways[0]) == (weights is STEEP)
    exact = budget - max(ways) ** 3
    assert exact > 0
    assert verdict.slack <= exact <= verdict.slack + Fraction(1, 1 << 200)
    assert verdict.rows == len({(at, *far) for at in range(3) for far in ballots.near(at)})
    _, at, c, to, d = verdict.at
    assert Fraction(ballots.weights[at][c], ballots.weights[to][d]) == worst
    # A budget that is less than they need is refused, by what is missing.
    small = verify.Labels({**setting, "voter_delta": shift, "allowance": 0}, ballots, None)
    with pytest.raises(verify.Refused, match="not shown to be private") as caught:
        small.stable()
    assert 0 < caught.value.missed <= max(ways) ** 3 - 1 + Fraction(1, 1 << 200)


def test_a_vote_that_is_impossible_next_to_one_is_not_stable() -> None:
    setting = dpopt.Multiclass(3, 3, 1.0, 2.0).to_dict()
    ballots = verify.Ballots(3, 3, {"total": 6, "weights": [[6, 0], [3, 3, 0], [2]]})
    with pytest.raises(verify.Refused, match="not shown to be private") as caught:
        verify.Labels(setting, ballots, None).stable()
    assert caught.value.missed == 1


def test_which_corners_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify.corners_are_few(300, 2)
    assert verify.corners_are_few(4, 3)
    assert not verify.corners_are_few(301, 2)
    assert not verify.corners_are_few(90, 6)
    for most, few in ((verify.corner_count(5, 3), True), (verify.corner_count(5, 3) - 1, False)):
        monkeypatch.setattr(verify, "CORNERS", most)
        assert verify.corners_are_few(5, 3) is few
