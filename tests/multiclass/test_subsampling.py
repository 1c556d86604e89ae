"""The plurality of a sample of private voters, against enumeration of samples and votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import pytest

from dpopt.multiclass.setting import sampled_plurality
from dpopt.table import SortedHistograms
from experiments.ensembles.sampled import spent

ZERO = Fraction(0)
# e^0.1 up to 1e-6.
TENTH = Fraction(641, 580)


def told(votes: Sequence[int], sample: int, output: int) -> Fraction:
    """Pr[output] for given votes, by listing the samples."""
    total, count = ZERO, 0
    for chosen in combinations(votes, sample):
        count += 1
        tops = [chosen.count(y) for y in range(max(votes) + 1)]
        if output < len(tops) and tops[output] == max(tops):
            total += Fraction(1, tops.count(max(tops)))
    return total / count


@pytest.mark.parametrize(("voters", "classes"), [(4, 3), (5, 3), (4, 4), (5, 2)])
def test_distribution_is_that_of_listed_samples(voters: int, classes: int) -> None:
    inputs = SortedHistograms(voters, classes)
    for sample in range(1, voters + 1):
        pmf = sampled_plurality(inputs, sample)
        for counts, variables in zip(inputs.listed(), inputs.variables.tolist(), strict=True):
            votes = [y for y in range(classes) for _ in range(counts[y])]
            for y, variable in enumerate(variables):
                assert pmf[variable] == told(votes, sample, y)


def one_side(
    edges: dict[tuple[int, int], int], loops: Sequence[int], ratio: Fraction, sample: int
) -> tuple[Fraction, Fraction]:
    """Pr[output 0] under P and P', by listing what the voters on edges say."""
    ends = [edge for edge, many in edges.items() for _ in range(many)]
    fixed = [y for y, many in enumerate(loops) for _ in range(many)]
    both = [ZERO, ZERO]
    for picks in product((0, 1), repeat=len(ends)):
        votes = fixed + [edge[pick] for edge, pick in zip(ends, picks, strict=True)]
        chance = told(votes, sample, 0)
        ones = sum(picks)
        both[0] += chance * ratio ** (len(ends) - ones)
        both[1] += chance * ratio**ones
    return both[0], both[1]


@pytest.mark.parametrize(("voters", "classes"), [(3, 3), (4, 3), (3, 4), (4, 2)])
def test_spent_is_the_largest_over_all_corners(voters: int, classes: int) -> None:
    ratio, inputs = Fraction(3, 2), SortedHistograms(voters, classes)
    corners = [(y, z) for y in range(classes) for z in range(classes)]
    for sample in range(1, voters + 1):
        best = ZERO
        for chosen in combinations_with_replacement(corners, voters):
            edges = {pair: chosen.count(pair) for pair in set(chosen) if pair[0] != pair[1]}
            loops = [chosen.count((y, y)) for y in range(classes)]
            one, other = one_side(edges, loops, ratio, sample)
            assert (one == 0) == (other == 0)
            if other:
                best = max(best, one / other)
        found = spent(inputs, sampled_plurality(inputs, sample), ratio)
        assert found.ratio == best
        one, other = one_side(found.edges, found.loops, ratio, sample)
        assert one / other == best


@pytest.mark.slow
def test_double_subsampling_does_not_extend_to_three_classes() -> None:
    inputs = SortedHistograms(11, 3)
    pmfs = [sampled_plurality(inputs, sample) for sample in range(1, 12)]
    found = [spent(inputs, pmf, TENTH).ratio for pmf in pmfs]
    whole = {1: 1, 2: 1, 3: 2, 5: 3, 6: 4, 7: 4, 8: 5, 9: 6, 10: 6, 11: 7}
    for sample, times in whole.items():
        assert found[sample - 1] == TENTH**times
    assert math.log(found[3]) / math.log(TENTH) == pytest.approx(2.2039, abs=6e-5)
    at_one = spent(inputs, pmfs[3], Fraction(math.e)).ratio
    assert math.log(at_one) == pytest.approx(2.1917, abs=5e-5)


def test_two_classes_spend_half_of_the_sample() -> None:
    inputs = SortedHistograms(11, 2)
    for sample in range(1, 12):
        found = spent(inputs, sampled_plurality(inputs, sample), TENTH)
        assert found.ratio == TENTH ** -(-sample // 2)


def test_certificate_of_nine_of_eleven() -> None:
    """Three voters between 0 and 1, three between 1 and 2, five at 2: listed vote by vote."""
    one, other = one_side({(0, 1): 3, (1, 2): 3}, (0, 0, 5), TENTH, 9)
    assert one / other == TENTH**6 > TENTH**5


@pytest.mark.parametrize(
    ("voters", "classes", "share"), [(4, 3, 1), (7, 3, 2), (5, 4, 1), (6, 5, 1), (6, 2, 3)]
)
def test_theorem(voters: int, classes: int, share: int) -> None:
    edges = {(y, y + 1): share for y in range(classes - 1)}
    loops = [0] * (classes - 1) + [voters - share * (classes - 1)]
    one, other = one_side(edges, loops, Fraction(2), classes * share)
    assert one / other == 2 ** ((classes - 1) * share)
