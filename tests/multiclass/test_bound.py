"""The bound for private voters through a stable rule, against corners and rules in fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from dpopt.multiclass.setting import vote_ratio_below
from dpopt.privacy import exp_lower, exp_upper
from dpopt.table import SortedHistograms
from experiments.ensembles.ladder import ladder
from experiments.ensembles.sampled import spent
from tests.ballots.pmfs import permute_and_flip
from tests.multiclass.pairs import corners

ZERO = Fraction(0)


def one_voter(r: Fraction, v: Fraction, delta: Fraction = ZERO) -> Fraction:
    """e^psi of the theorem: by how much one voter changes the output of a stable rule at most."""
    ratio = (r + delta) / (1 - delta)
    return max((ratio * v + 1) / (ratio + v), 1 + delta * (v - 1))


def dot(pmf: tuple[Fraction, ...], values: tuple[Fraction, ...]) -> Fraction:
    return sum((p * a for p, a in zip(pmf, values, strict=True)), ZERO)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("ratio", "step", "delta"),
    [
        ("2", "3", "0"),
        ("11/10", "5", "0"),
        ("9", "10/9", "0"),
        ("2", "3", "1/10"),
        # 1 + Delta (v - 1) above r: the other term decides.
        ("2", "7", "1/3"),
        ("11/10", "9", "1/2"),
        ("3", "5", "1/2"),
    ],
)
def test_one_voter_is_the_largest_ratio_over_corners(ratio: str, step: str, delta: str) -> None:
    r, v, shift = Fraction(ratio), Fraction(step), Fraction(delta)
    best = Fraction(0)
    # The ratio is monotone in each A_x: its extremes are 1 and v.
    for values in product((Fraction(1), v), repeat=4):
        for p, q in corners(4, r, shift):
            best = max(best, dot(p, values) / dot(q, values))
    assert one_voter(r, v, shift) == best
    draw = random.Random(3)
    for _ in range(30):
        inside = tuple(1 + (v - 1) * Fraction(draw.randrange(9), 8) for _ in range(4))
        assert all(dot(p, inside) <= best * dot(q, inside) for p, q in corners(4, r, shift))


def test_it_is_sharp_where_the_rule_answers_each_vote() -> None:
    """K voters, each answered by randomised response: the ratio of all answers is g^K."""
    r, v, voters = Fraction(2), Fraction(3), 3
    b, keep = r / (1 + r), v / (1 + v)
    one, other = Fraction(1), Fraction(1)
    for _ in range(voters):
        one *= b * keep + (1 - b) * (1 - keep)
        other *= (1 - b) * keep + b * (1 - keep)
    assert one / other == one_voter(r, v) ** voters


@pytest.mark.parametrize("voters", [2, 4, 6])
def test_rules_spend_no_more_than_the_bound(voters: int) -> None:
    r, inputs = Fraction(3, 2), SortedHistograms(voters, 3)
    for v in (Fraction(6, 5), Fraction(2), Fraction(9)):
        ladders = [ladder(state, v) for state in inputs.listed()]
        flips = [permute_and_flip(state, Fraction(6, 5)) for state in inputs.listed()]
        for rows, stable in ((ladders, v), (flips, Fraction(36, 25))):
            kernel = [
                row[state.index(count)]
                for state, row in zip(inputs.listed(), rows, strict=True)
                for count in dict.fromkeys(state)
            ]
            found = spent(inputs, kernel, r).ratio
            assert 1 < found <= one_voter(r, stable) ** voters


@pytest.mark.parametrize("shift", ["1/10", "2/3"])
def test_no_delta_is_left(shift: str) -> None:
    """(epsilon, Delta)-DP voters: the ratio of each set of outputs is bounded, Delta or not."""
    r, v, delta = Fraction(3, 2), Fraction(2), Fraction(shift)
    bound = one_voter(r, v, delta) ** 2
    votes = list(product(range(3), repeat=2))
    pmf = {both: ladder([both.count(y) for y in range(3)], v) for both in votes}
    largest = ZERO
    for (p, q), (s, t) in combinations_with_replacement(corners(3, r, delta), 2):
        for outputs in ((0,), (0, 1)):
            told = {both: sum((pmf[both][y] for y in outputs), ZERO) for both in votes}
            one = sum((p[x] * s[y] * told[x, y] for x, y in votes), ZERO)
            other = sum((q[x] * t[y] * told[x, y] for x, y in votes), ZERO)
            largest = max(largest, one / other)
    assert 1 < largest <= bound


def is_private(
    voters: int, epsilon: float, allowance: float, v: Fraction, shift: float = 0.0
) -> bool:
    """Whether the theorem proves it, in rationals: r rounded up and the budget down."""
    spent_by_one = one_voter(exp_upper(Fraction(epsilon)), v, Fraction(shift))
    return spent_by_one <= exp_lower(Fraction(allowance) * Fraction(epsilon) / voters)


@pytest.mark.parametrize(
    ("voters", "epsilon", "allowance", "shift"),
    [
        (11, 0.1, 3, 0),
        (11, 0.1, 1, 0),
        (7, 2.0, 6.5, 0),
        (1000, 0.01, 20, 0),
        (11, 0.1, 3, 1e-3),
        (11, 0.1, 11, 0.2),
        (5, 1.0, 4, 0.5),
    ],
)
def test_the_largest_ratio(voters: int, epsilon: float, allowance: float, shift: float) -> None:
    v = vote_ratio_below(voters, epsilon, allowance, shift)
    assert v is not None
    assert is_private(voters, epsilon, allowance, v, shift)
    assert not is_private(voters, epsilon, allowance, v * (1 + Fraction(1, 10**15)), shift)
    if not shift:
        # psi as the theorem writes it, in floats.
        step = math.log(v)
        psi = math.log((math.exp(epsilon + step) + 1) / (math.exp(epsilon) + math.exp(step)))
        assert voters * psi == pytest.approx(allowance * epsilon, rel=1e-9)


def test_all_rules_are_private_where_the_allowance_is_all() -> None:
    assert vote_ratio_below(11, 0.1, 11) is None
    assert is_private(11, 0.1, 11, Fraction(10**9))
