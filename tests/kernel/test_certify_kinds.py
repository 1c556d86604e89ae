"""What designs of every kind spend, against all neighbours and all events written out."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import dpopt
from dpopt import BestSampler, Majority, PublicPrior, RevealOrObscure, SmoothFloor
from dpopt._errors import ParameterError
from dpopt.data.tally import Tally
from dpopt.privacy import Least
from dpopt.roo.setting import UNIT
from dpopt.shape import made
from tests.kernel.brute import distances, optimal, rows_of
from tests.majority import brute
from tests.oracles import Counts, exponential, neighbours, poisson_binomial
from tests.roo.brute import Rule, histograms
from tests.table.rows import least_delta, least_epsilon

ONE = 1 << 62


def encloses(least: Least, ratio: Fraction | None, ulps: int = 4) -> bool:
    """Whether log(ratio) is between both ends, which are next to each other."""
    if ratio is None:
        return math.isinf(least.lower) and math.isinf(least.upper)
    with mpmath.workdps(120):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        # The oracle's own e^epsilon has 100 digits.
        inside = least.lower - 1e-90 <= exact <= least.upper + 1e-90
    return bool(inside) and least.upper - least.lower <= ulps * math.ulp(least.upper)


# Majorities


def sides(setting: Majority, units: Sequence[int]) -> Iterator[tuple[Fraction, Fraction]]:
    """Chances of both outputs under neighbours, over every choice of corners of lemma 5.1."""
    gamma = [Fraction(w, ONE) for w in (*reversed(units), *units)]
    k, half = setting.voters, Fraction(1, 2)
    one = [g * (2 * ones > k) + (1 - g) * half for ones, g in enumerate(gamma)]
    for pmf, other in brute.pmfs(*brute.voters_of(setting)):
        p, q = (
            sum((m * c for m, c in zip(side, one, strict=True)), Fraction(0))
            for side in (pmf, other)
        )
        yield p, q
        yield 1 - p, 1 - q


def worst_ratio(setting: Majority, units: Sequence[int], delta: float) -> Fraction | None:
    worst = Fraction(1)
    for p, q in sides(setting, units):
        over = p - Fraction(delta)
        if over > worst * q:
            if q == 0:
                return None
            worst = over / q
    return worst


SETTINGS = [
    Majority(1, 0.7, 1.0),
    Majority(3, 0.5, 1.0),
    Majority(5, 0.3, 2.0),
    Majority(5, 4.0, 3.0),
    Majority(3, 0.5, 2.0, voter_delta=0.01, delta=0.03),
    Majority(5, 0.5, 2.0, voter_delta=0.02, delta=0.05),
]


def gammas(setting: Majority) -> Iterator[tuple[int, ...]]:
    """Of the optimum, of a coin, of the majority itself, and at random."""
    yield brute.weights(dpopt.design(setting).table)
    yield (0,) * setting.middle
    yield (ONE,) * setting.middle
    chosen = random.Random(setting.voters)
    for _ in range(3):
        yield tuple(chosen.randrange(ONE + 1) for _ in range(setting.middle))


def chance_of_one(setting: Majority, units: Sequence[int], voters: str) -> Fraction:
    """Pr[1] for voters in words, such as "2 voters at b, 1 voters at 0"."""
    r, shift = exponential(Fraction(setting.epsilon)), Fraction(setting.voter_delta)
    values = {"0": Fraction(0), "1": Fraction(1), "Delta": shift, "1 - Delta": 1 - shift}
    values |= {"b": (r + shift) / (r + 1), "c": (1 - shift) / (r + 1)}
    named = [told.split(" voters at ") for told in voters.split(", ")]
    pmf = poisson_binomial(values[name] for count, name in named for _ in range(int(count)))
    signs = [-w for w in reversed(units)] + list(units)
    mean = sum((m * h for m, h in zip(pmf, signs, strict=True)), Fraction(0)) / ONE
    return (1 + mean) / 2


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_least_epsilon_of_a_gamma(setting: Majority) -> None:
    for units in gammas(setting):
        design = made(setting, brute.table(setting, units), strict=False, float_bound=None)
        for delta in {0.0, setting.delta, 0.02}:
            least = dpopt.certify(design, delta=delta)
            assert encloses(least, worst_ratio(setting, units, delta)), (units, delta, least)
            if least.lower > 0 and math.isfinite(least.upper):
                # The neighbours that are named need it.
                p, q = (chance_of_one(setting, units, str(voters)) for voters in least.inputs)
                ratio = (p - Fraction(delta)) / q
                assert math.log(ratio) == pytest.approx(least.upper, rel=1e-12)


def test_the_least_epsilon_of_a_gamma_is_where_its_proof_fails() -> None:
    table = dpopt.design(Majority(101, 0.1, 5.0)).table
    least = dpopt.certify(made(Majority(101, 0.1, 10.0), table))
    for spent, private in ((least.lower * (1 - 1e-12), False), (least.upper * (1 + 1e-12), True)):
        # The voters stay as they are: the allowance is what the target changes by.
        tried = Majority(101, 0.1, spent / 0.1)
        assert made(tried, table, strict=False, float_bound=None).private == private
    assert least.upper == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(("voters", "epsilon"), [(21, 5.0), (21, 100.0), (101, 3.0), (5, 1e-6)])
def test_the_majority_itself_spends_that_of_half_of_its_voters(voters: int, epsilon: float) -> None:
    """With (K + 1) / 2 voters at b or c and the others at 0, output 1 has b^n or c^n, b / c = r."""
    setting = Majority(voters, epsilon, 1.0)
    table = brute.table(setting, (ONE,) * setting.middle)
    design = made(setting, table, strict=False, float_bound=None)
    least = dpopt.certify(design)
    assert least.lower <= setting.middle * epsilon <= least.upper
    assert least.upper - least.lower <= 4 * math.ulp(least.upper)


def test_an_event_that_is_impossible_for_a_neighbour() -> None:
    setting = Majority(1, 1.0, 1.0, voter_delta=0.1, delta=0.1)
    design = made(setting, brute.table(setting, (ONE,)))
    assert math.isinf(dpopt.certify(design, delta=0.05).lower)
    # At the voter's own delta, a tie: P - delta is 0 where P' is.
    assert dpopt.certify(design, delta=0.1).upper == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(ParameterError, match="its least epsilon is known, not its least delta"):
        dpopt.certify(design, 1.0, None)


@pytest.mark.slow
def test_a_gamma_of_many_voters_is_refused() -> None:
    setting = Majority(2001, 0.1, 0.5)
    design = made(setting, brute.table(setting, (0,) * 1001))
    with pytest.raises(ParameterError, match="voters is 2001"):
        dpopt.certify(design)


# Reveal or obscure


def largest_ratio(design: Any, records: int, categories: int) -> Fraction | None:
    """Largest K(y | x') / K(y | x) over all counts and all changes of a record."""
    pmfs: dict[Counts, list[Fraction]] = {}

    def pmf(counts: Counts) -> list[Fraction]:
        if counts not in pmfs:
            tally = Tally.of_counts(list(counts), categories)
            weights = design.setting.output_weights(design.table, tally)
            pmfs[counts] = [Fraction(weight, sum(weights)) for weight in weights]
        return pmfs[counts]

    worst = Fraction(1)
    for counts in histograms(records, categories):
        for other in neighbours(counts):
            for p, q in zip(pmf(counts), pmf(other), strict=True):
                for one, two in ((p, q), (q, p)):
                    if one > worst * two:
                        if two == 0:
                            return None
                        worst = one / two
    return worst


@pytest.mark.parametrize(
    "setting",
    [
        *(RevealOrObscure(7, 3, 0.4, rule) for rule in ("exact", "roo", "journal", "conference")),
        RevealOrObscure(6, 2, 1.0),
        SmoothFloor(8, 3, 0.5),
        SmoothFloor(5, 2, 1.5),
        BestSampler(5, 3, 0.8),
        BestSampler(4, 2, 0.3, "mean"),
    ],
    ids=str,
)
def test_the_least_epsilon_of_samplers_of_a_symbol(setting: Any) -> None:
    design = dpopt.design(setting)
    least = dpopt.certify(design)
    assert encloses(least, largest_ratio(design, setting.records, setting.categories))
    assert least.upper <= setting.epsilon or not design.private


def test_a_published_rule_that_is_not_private_spends_more() -> None:
    design = dpopt.design(RevealOrObscure(20, 3, 0.1, "conference"))
    assert not design.private
    least = dpopt.certify(design)
    q = [Fraction(design.setting.obscuring_weight(design.table, m), UNIT) for m in range(7)]
    assert encloses(least, Rule(20, 3, q).worst_ratio())
    assert least.lower == pytest.approx(0.1 + math.log(1.00668), abs=1e-5)


# Public priors


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_least_epsilon_of_a_closed_form(objective: Any, epsilon: float) -> None:
    prior = np.random.default_rng(3).dirichlet(np.ones(9))
    design = dpopt.design(PublicPrior(prior, epsilon, objective=objective))
    least = dpopt.certify(design)
    rows = [design.setting.output_weights(design.table, symbol) for symbol in range(9)]
    exact = least_epsilon(rows)
    assert least.lower <= exact.upper
    assert exact.lower <= least.upper <= epsilon
    assert least.upper - least.lower <= 4 * math.ulp(epsilon)
    (x, other), (y,) = map(int, least.inputs), least.outputs
    assert math.log(rows[x][y] / rows[other][y]) == pytest.approx(epsilon, rel=1e-9)
    solved = dpopt.design(PublicPrior(prior, 1.0), backend="highs")
    assert dpopt.certify(solved) == least_epsilon(rows_of(solved))


# Kernels with symmetry, and with neighbours of their own


@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize(
    "asked",
    [
        {"loss": distances(6), "graph": "path", "symmetry": "reflection"},
        {"loss": distances(5), "graph": "complete", "symmetry": "reflection"},
        {"loss": "hamming", "graph": "hamming", "shape": (2, 2, 2), "symmetry": "hamming"},
        {"loss": "hamming", "graph": "complete", "shape": (3, 3), "symmetry": "hamming"},
    ],
    ids=lambda asked: f"{asked['graph']}-{asked['symmetry']}",
)
def test_the_least_epsilon_of_a_kernel_over_orbits(asked: Any, delta: float) -> None:
    design = optimal(**asked, epsilon=0.8, delta=delta)
    kernel = design.table
    assert kernel.inputs.size < kernel.inputs.inputs * kernel.inputs.outputs
    table, pairs = rows_of(design), design.setting.pairs
    for given in (design, kernel):
        for tolerated in (0.0, delta, 0.1):
            least = dpopt.certify(given, delta=tolerated)
            exact = least_epsilon(table, tolerated, pairs)
            assert (least.lower, least.upper) == (exact.lower, exact.upper)
            (x, other), event = map(int, least.inputs), least.outputs
            if least.upper > 0:
                mass, against = (sum(table[row][int(y)] for y in event) for row in (x, other))
                ratio = mass / kernel.total - tolerated, against / kernel.total
                assert math.log(ratio[0] / ratio[1]) == pytest.approx(least.upper, rel=1e-9)
        for epsilon in (0.0, 0.5):
            least, exact = (dpopt.certify(given, epsilon, None), least_delta(table, epsilon, pairs))
            assert (least.lower, least.upper) == (exact.lower, exact.upper)


def test_a_rule_that_never_obscures_has_no_epsilon() -> None:
    design = made(RevealOrObscure(4, 2, 1.0), (0,), strict=False, float_bound=None)
    assert math.isinf(dpopt.certify(design).lower)
