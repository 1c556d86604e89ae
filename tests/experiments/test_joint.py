"""Labels of voters trained once: optima, errors and corners against programs over ordered votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations, combinations_with_replacement, product
from math import exp, log, prod
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.stats import binom

import dpopt
from dpopt.privacy.exact import exp_lower, exp_upper
from experiments.majority.joint import JOINTLY, ONLINE, SEPARATELY, Answers, Config, run
from experiments.registry import Outcome
from tests.experiments.comparing import ran

VECTORS = list(product((0, 1), repeat=2))
SMALL = Config(voters=(3,), allowance=(2,), epsilon=(0.5, 2.0))


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return ran(run, SMALL)


def row_of(outcome: Outcome, way: str, epsilon: float, labels: int = 2) -> dict[str, Any]:
    (row,) = outcome.tables["errors"].select(way=way, epsilon=epsilon, labels=labels).records
    return row


def corners(ratio: Any, size: int = 4) -> list[tuple[list[Any], list[Any]]]:
    """All pairs of distributions of one vote at the corners, times r + 1."""

    def sides(u: int, w: int) -> list[Any]:
        return [ratio * (y == u) + (y == w) for y in range(size)]

    return [(sides(u, w), sides(w, u)) for u in range(size) for w in range(size)]


def of_votes(pmfs: Any) -> Any:
    """The pmf of ordered votes, of floats or exactly."""
    listed = list(pmfs)
    exact = not isinstance(listed[0][0], float)
    arrays = [np.array(pmf, dtype=object if exact else float) for pmf in listed]
    return reduce(lambda a, b: np.multiply.outer(a, b).ravel(), arrays)


VOTES = list(product(range(4), repeat=3))
MAJORITY = np.array([[sum(VECTORS[y][q] for y in vote) > 1 for q in (0, 1)] for vote in VOTES])
# Gaussian points of both halves of [0, 1], exact for the polynomials of three voters.
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)
GRID, MASS = np.concatenate([(POINTS + 1) / 4, (POINTS + 3) / 4]), np.tile(WEIGHTS, 2) / 4


def by_grid() -> Iterator[tuple[tuple[float, float], float, Any]]:
    """Yield p of both questions, their mass, and the pmf of three ordered votes."""
    for (p, one), (q, two) in product(zip(GRID, MASS, strict=True), repeat=2):
        vote = [(p if u else 1 - p) * (q if v else 1 - q) for u, v in VECTORS]
        yield (p, q), one * two, of_votes([vote] * 3)


def over_votes(epsilon: float, allowance: int, *, online: bool) -> float:
    """The optimum for three voters over kernels of ordered votes; no symmetry is used."""
    trios = list(product(corners(exp(epsilon)), repeat=3))
    sides = [np.array([of_votes(pair[side] for pair in trio) for trio in trios]) for side in (0, 1)]
    rows = sp.csr_array((sides[0] - exp(allowance * epsilon) * sides[1]) / len(trios))
    cost, constant = np.zeros((64, 4)), 0.0
    for both, mass, pmf in by_grid():
        for q, p in enumerate(both):
            share = mass * np.sign(p - 0.5) / 2 * pmf
            constant += share @ MAJORITY[:, q]
            cost -= share[:, None] * [y[q] for y in VECTORS]
    equal, right = [np.kron(np.eye(64), np.ones(4))], [np.ones(64)]
    if online:
        # As for voters with the same first answers, whose second answers are 0.
        first = np.kron(np.eye(64), [0, 0, 1, 1])
        same = [VOTES.index(tuple(2 * VECTORS[y][0] for y in vote)) for vote in VOTES]
        equal, right = [*equal, first - first[same]], [*right, np.zeros(64)]
    solved = linprog(
        cost.ravel(),
        A_ub=sp.vstack([sp.kron(rows, np.eye(4)[[y]]) for y in range(4)]),
        b_ub=np.zeros(4 * len(trios)),
        A_eq=np.vstack(equal),
        b_eq=np.concatenate(right),
        bounds=(0, 1),
    )
    return constant + solved.fun


@pytest.mark.parametrize(("way", "online"), [(JOINTLY, False), (ONLINE, True)])
def test_optima_are_those_over_all_kernels_of_ordered_votes(
    outcome: Outcome, way: str, online: bool
) -> None:
    error = row_of(outcome, way, 2.0)["error"]
    assert error == pytest.approx(over_votes(2.0, 2, online=online), abs=1e-7)


def of_ordered(answers: Answers, kernel: Any) -> Any:
    """A kernel of counts as one of ordered votes."""
    index = {tuple(n): x for x, n in enumerate(answers.counts.tolist())}
    votes = product(range(answers.size), repeat=answers.voters)
    return kernel[[index[tuple(vote.count(y) for y in range(answers.size))] for vote in votes]]


@pytest.mark.parametrize("online", [False, True])
def test_the_error_is_the_mean_of_absolute_differences(online: bool) -> None:
    """E |Pr[label is 1] - Pr[majority is 1]|, with the absolute values taken."""
    answers = Answers(2, 3)
    weights = answers.whole(answers.best(0.5, 2, online=online), online=online)
    kernel = of_ordered(answers, weights).astype(float) / float(weights[0].sum())
    labels = kernel @ np.array(VECTORS)
    error = sum(mass * np.abs(pmf @ (labels - MAJORITY)).mean() for _, mass, pmf in by_grid())
    assert answers.decided(weights, 0.5, 2)["error"] == pytest.approx(error, abs=1e-7)


@pytest.mark.parametrize("online", [False, True])
def test_every_corner_of_ordered_votes_in_integers(online: bool) -> None:
    """Nothing is left out: all 4,096 triples of corners, all outputs."""
    answers, epsilon, allowance = Answers(2, 3), 0.5, 2
    weights = answers.whole(answers.best(epsilon, allowance, online=online), online=online)
    assert {sum(row) for row in weights.tolist()} == {1 << 100}
    assert min(weights.ravel()) > 0
    if online:
        firsts = zip(answers.ones[:, 0].tolist(), weights[:, :2].sum(axis=1), strict=True)
        assert len(set(firsts)) == 4
    target, largest = Fraction(exp(allowance * epsilon)), Fraction(0)
    ratio, ordered = Fraction(exp(epsilon)), of_ordered(answers, weights)
    whole = [
        tuple([[int(x * ratio.denominator) for x in side] for side in pair])
        for pair in corners(ratio)
    ]
    for trio in combinations_with_replacement(whole, 3):
        mean, other = (of_votes(pair[side] for pair in trio) @ ordered for side in (0, 1))
        largest = max(largest, *map(Fraction, mean, other))
    assert largest <= target
    spent = answers.decided(weights, epsilon, allowance)
    assert spent["proved"] is True
    assert spent["spent"] == pytest.approx(log(largest) / epsilon, abs=1e-5)
    assert answers.decided(weights, epsilon, 1)["proved"] is False


def test_two_gammas_at_half_the_budget_spend_more_than_it_together(outcome: Outcome) -> None:
    """At a rational ratio below e^2, in fractions: each label spends epsilon, both more than 2."""
    epsilon, ratio = 2.0, Fraction(738905, 100_000)
    assert ratio < exp_lower(epsilon)
    gamma = dpopt.design(dpopt.Majority(3, epsilon, 1)).gamma
    share = [(1 + Fraction(g) * (1 if 2 * n > 3 else -1)) / 2 for n, g in enumerate(gamma)]
    ones = [[sum(VECTORS[y][q] for y in vote) for q in (0, 1)] for vote in VOTES]
    both = np.array([(1 - share[a]) * (1 - share[b]) for a, b in ones])
    first = np.array([1 - share[a] for a, _ in ones])
    largest = {"both": Fraction(0), "first": Fraction(0)}
    for trio in combinations_with_replacement(corners(ratio), 3):
        pmfs = [of_votes(pair[side] for pair in trio) for side in (0, 1)]
        for name, chance in (("both", both), ("first", first)):
            mean, other = (pmf @ chance for pmf in pmfs)
            assert (mean > 0) is (other > 0)
            largest[name] = max(largest[name], mean / other if other else Fraction(0))
    assert largest["first"] <= exp_upper(epsilon) < exp_upper(2 * epsilon) < largest["both"]
    found = row_of(outcome, SEPARATELY, epsilon)
    assert found["proved"] is False
    assert found["spent"] == pytest.approx(log(largest["both"]) / epsilon, abs=1e-5)
    assert row_of(outcome, SEPARATELY, 0.5)["proved"] is True


@pytest.mark.parametrize(("voters", "sample"), [(3, 1), (5, 3), (7, 3), (7, 5)])
def test_the_same_sample_for_both_questions_spends_all_its_voters(voters: int, sample: int) -> None:
    """One voter on 00 -> 01, t on 10 -> 01, t on 01 -> 11, others at 11; output 00."""
    half, ratio = sample // 2, Fraction(3, 2)
    zero, one, two, three = range(4)
    ends = [(zero, one)] + [(two, one)] * half + [(one, three)] * half
    ends += [(three, three)] * (voters - sample)
    sums = []
    for p in (ratio, Fraction(1)):
        total = Fraction(0)
        for few in combinations(ends, sample):
            for sides in product((0, 1), repeat=sample):
                said = [VECTORS[pair[side]] for pair, side in zip(few, sides, strict=True)]
                if all(2 * sum(answer) < sample for answer in zip(*said, strict=True)):
                    chances = (1 + ratio - p if side else p for side in sides)
                    total += prod(chances, start=Fraction(1))
        sums.append(total)
    assert sums[0] == ratio**sample * sums[1] > 0
    answers = Answers(2, voters)
    spent = answers.decided(answers.whole(answers.sampled(sample)), 0.4, sample)
    assert spent["proved"] is True
    assert spent["spent"] == pytest.approx(sample, rel=1e-5)


@pytest.mark.parametrize(("voters", "sample"), [(3, 2), (5, 3), (7, 3)])
def test_errors_of_sampled_voters_by_integration(voters: int, sample: int) -> None:
    points, weights = np.polynomial.legendre.leggauss(12)
    p = (points + 3) / 4
    few = binom.sf(sample / 2, sample, p) + binom.pmf(sample / 2, sample, p) / 2
    expected = (weights / 2 * np.abs(binom.sf(voters / 2, voters, p) - few)).sum()
    for labels in (1, 2):
        answers = Answers(labels, voters)
        errors = (answers.costs * answers.sampled(sample)[..., None]).sum(axis=(0, 1))
        assert errors == pytest.approx(expected, rel=1e-12)
        assert answers.sampled(sample).sum(axis=1) == pytest.approx(1.0, abs=1e-14)


def test_one_label_is_that_of_the_best_gamma(outcome: Outcome) -> None:
    for epsilon in SMALL.epsilon:
        best = dpopt.design(dpopt.Majority(3, epsilon, 2)).expected_error
        for way in (JOINTLY, ONLINE, SEPARATELY):
            error = row_of(outcome, way, epsilon, labels=1)["error"]
            assert error == pytest.approx(best, abs=1e-7)


def test_the_statement_is_judged_by_what_is_spent(outcome: Outcome) -> None:
    (judged,) = outcome.comparisons
    assert judged.verdict == "refuted"
    assert "1 of 2 cases; voters = 3, epsilon = 2, m = 2, spent = 2.0601." in judged.ours
    (judged,) = ran(run, replace(SMALL, epsilon=(0.5,))).comparisons
    assert judged.verdict == "agrees"
    assert ran(run, replace(SMALL, labels=(1,), epsilon=(0.5,))).comparisons == ()


@pytest.mark.slow
def test_seven_voters_and_three_times_their_epsilon() -> None:
    """The specification's errors, at epsilon = 0.1."""
    answers = Answers(2, 7)
    for online, error in ((False, 0.0160), (True, 0.0190)):
        weights = answers.whole(answers.best(0.1, 3, online=online), online=online)
        found = answers.decided(weights, 0.1, 3)
        assert found["error"] == pytest.approx(error, abs=5e-5)
        assert found["proved"] is True
    # In order, the first label errs less than the second: this was the last kernel.
    kernel = (weights / (1 << 100)).astype(float)
    errors = (answers.costs * kernel[..., None]).sum(axis=(0, 1))
    assert errors == pytest.approx([0.0142, 0.0237], abs=5e-5)
    sampled = (answers.costs.mean(axis=2) * answers.sampled(3)).sum()
    assert sampled == pytest.approx(0.0508, abs=5e-5)
