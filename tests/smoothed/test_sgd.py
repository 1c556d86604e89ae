"""One step of quantised SGD: batch distributions, and delta over all neighbours."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats

from dpopt.prob.batches import batch_distribution, leave_one_out, subsets
from dpopt.smoothed.sgd import sgd_profile
from experiments.smoothed.gradients import of_two_neighbours
from tests.oracles import stick

INDEX = np.arange(225)
REFERENCE = ((37 * INDEX**2 + 11 * INDEX) % 181) - 90
SMALL = [
    ([0], 1),
    ([5, 5, 5], 2),
    ([-3, 0, 0, 2, 4], 1),
    ([-3, 0, 0, 2, 4], 2),
    ([-3, 0, 0, 2, 4], 5),
    ([1, 2, 4, 8, 16, 32, 64], 3),
    ([-7, -7, -7, 1, 1, 9, 9, 10], 4),
    ([-10, -9, -3, -3, 0, 2, 2, 5, 8, 8], 6),
]


def enumerated(values: list[int], drawn: int, rounded: bool) -> dict[int, Fraction]:
    """Return the distribution from every batch: of the sum, or of the mean to the nearest."""
    sums = Counter(map(sum, combinations(values, drawn)))
    pmf: dict[int, Fraction] = defaultdict(Fraction)
    for total, count in sums.items():
        mean = math.floor(Fraction(total, drawn) + Fraction(1, 2))
        pmf[mean if rounded else total] += Fraction(count, math.comb(len(values), drawn))
    return dict(pmf)


def moved(values: list[int], replaced: int, replacement: int) -> list[int]:
    place = values.index(replaced)
    return [*values[:place], replacement, *values[place + 1 :]]


def brute_delta(
    values: list[int], drawn: int, factor: Fraction, low: int, high: int, rounded: bool
) -> Fraction:
    """Return delta over every record and every replacement, in fractions."""
    own = enumerated(values, drawn, rounded)
    largest = Fraction(0)
    for value, w in product({*values}, range(low, high + 1)):
        neighbour = enumerated(moved(values, value, w), drawn, rounded)
        largest = max(largest, stick(own, neighbour, factor), stick(neighbour, own, factor))
    return largest


def integer_counts(values: list[int], drawn: int) -> np.ndarray:
    """Return the exact counts of T-subsets by sum from 0, for values of at least 0."""
    table = np.zeros((drawn + 1, drawn * max(values) + 1), dtype=object)
    table[0, 0] = 1
    for value in values:
        table[1:, value:] = table[1:, value:] + table[:-1, : table.shape[1] - value]
    return table[-1]


@pytest.mark.sample(6)
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("values", "drawn"), SMALL)
def test_the_distribution_is_that_of_every_batch(
    values: list[int], drawn: int, rounded: bool
) -> None:
    pmf = batch_distribution(values, drawn, rounded=rounded)
    exact = enumerated(values, drawn, rounded)
    assert set(exact) <= set(pmf.outputs.tolist())
    expected = [float(exact.get(o, Fraction(0))) for o in pmf.outputs.tolist()]
    np.testing.assert_allclose(pmf.probabilities, expected, rtol=1e-15, atol=0)
    assert not pmf.probabilities.flags.writeable


def test_a_large_distribution_has_the_digits_of_the_exact_integers() -> None:
    pmf = batch_distribution(REFERENCE, 15)
    counts = integer_counts((REFERENCE + 90).tolist(), 15)
    total = math.comb(225, 15)
    assert sum(counts) == total
    assert pmf.lowest == -15 * 90
    expected = [float(Fraction(int(count), total)) for count in counts]
    np.testing.assert_allclose(pmf.probabilities, expected, rtol=1e-14, atol=0)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("records", "drawn", "deviation"), [(100, 30, 10), (400, 20, 12)])
def test_leave_one_out_has_the_digits_of_the_exact_integers(
    records: int, drawn: int, deviation: int
) -> None:
    """Settings like these are where division of floats by 1 + z y^v leaves no digit right."""
    rng = np.random.default_rng(3)
    values = np.rint(rng.normal(0, deviation, records)).astype(np.int64)
    values -= values.min()
    wanted = [0, int(np.median(values)), int(values.max())]
    found = [table for table in leave_one_out(values, drawn) if table[0] in wanted]
    assert [value for value, _, _ in found] == wanted
    scale = subsets(records, drawn)
    for value, without, others in found:
        rest = values.tolist()
        rest.remove(value)
        for counts, size in ((without, drawn), (others, drawn - 1)):
            exact = integer_counts(rest, size)
            ratios = [float(Fraction(int(c), math.comb(records, drawn))) for c in exact]
            np.testing.assert_allclose(
                counts[: len(ratios)] / scale, ratios, rtol=records * 2.0**-52, atol=0
            )
            assert not np.any(counts[len(ratios) :])


FACTORS = [Fraction(1), Fraction(5, 4), Fraction(3), Fraction(40)]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("values", "drawn"), SMALL)
def test_delta_is_that_of_every_neighbour_in_fractions(
    values: list[int], drawn: int, rounded: bool
) -> None:
    low, high = min(values) - 2, max(values) + 3
    at = [math.log(f) for f in FACTORS]
    found = sgd_profile(values, drawn, at, lowest=low, highest=high, rounded=rounded)
    for index, factor in enumerate(FACTORS):
        exact = brute_delta(values, drawn, factor, low, high, rounded)
        assert found.delta[index] == pytest.approx(float(exact), rel=1e-11, abs=1e-300)
        worst = found.worst[index]
        assert (worst is None) == (exact == 0)
        if worst is not None:
            # The neighbour that is named attains it.
            other = moved(values, worst.replaced, worst.replacement)
            pmfs = [enumerated(v, drawn, rounded) for v in (values, other)]
            one, two = pmfs if worst.direction == "d(x, x')" else pmfs[::-1]
            assert float(stick(one, two, factor)) == pytest.approx(float(exact), rel=1e-11)


def test_reference_values() -> None:
    found = sgd_profile(REFERENCE, 15, [0.5, 2.0])
    np.testing.assert_allclose(
        found.delta, [9.144733474356e-06, 2.454641855294e-10], rtol=3e-13, atol=0
    )


@pytest.mark.slow
def test_large_delta_against_exact_integers() -> None:
    """At e^epsilon = 3/2 and 100, with the neighbours that the profile names, in integers."""
    factors = [Fraction(3, 2), Fraction(100)]
    found = sgd_profile(REFERENCE, 15, [math.log(f) for f in factors], rounded=False)
    for index, factor in enumerate(factors):
        worst = found.worst[index]
        assert worst is not None
        x = (REFERENCE + 127).tolist()
        other = moved(x, worst.replaced + 127, worst.replacement + 127)
        one, two = (
            dict(enumerate(map(Fraction, integer_counts(v, 15).tolist()))) for v in (x, other)
        )
        pair = (one, two) if worst.direction == "d(x, x')" else (two, one)
        exact = stick(*pair, factor) / math.comb(225, 15)
        assert found.delta[index] == pytest.approx(float(exact), rel=1e-12)


def test_small_epsilon_keeps_its_digits() -> None:
    values, drawn = [0, 1, 1, 2, 3, 5, 8], 3
    epsilon = 2.0**-40
    factor = Fraction(1) + Fraction(math.expm1(epsilon))
    exact = brute_delta(values, drawn, factor, 0, 8, False)
    found = sgd_profile(values, drawn, epsilon, lowest=0, highest=8, rounded=False).log_delta
    assert math.exp(found[0]) == pytest.approx(float(exact), rel=1e-14)


def test_the_heuristic_neighbours_are_a_lower_bound_that_can_miss_everything() -> None:
    """Two values and one zero: any other value is seen whenever it is drawn, T / N."""
    values = [-127] * 60 + [128] * 60 + [0]
    everything = sgd_profile(values, 11, 0.5)
    heuristic = of_two_neighbours(np.array(values), 11, [0.5])
    assert everything.delta[0] == pytest.approx(11 / 121, rel=1e-12)
    assert heuristic[0] < 0.02 * everything.delta[0]
    worst = everything.worst[0]
    assert worst is not None
    assert not {worst.replaced, worst.replacement} <= {-127, 128}


@pytest.mark.parametrize(("values", "drawn"), SMALL)
def test_the_heuristic_neighbours_are_those_two(values: list[int], drawn: int) -> None:
    low, high = min(values) - 1, max(values) + 2
    found = of_two_neighbours(np.array(values), drawn, [math.log(2)], low, high)
    own, largest = enumerated(values, drawn, True), Fraction(0)
    for replaced, replacement in ((min(values), high), (max(values), low)):
        other = enumerated(moved(values, replaced, replacement), drawn, True)
        largest = max(largest, stick(own, other, Fraction(2)), stick(other, own, Fraction(2)))
    assert found[0] == pytest.approx(float(largest), rel=1e-12, abs=1e-16)


def test_invariances() -> None:
    rng = np.random.default_rng(8)
    x = np.rint(rng.normal(0, 20, 40)).astype(int)
    at = [0.0, 0.3, 1.0, 3.0]
    delta = sgd_profile(x, 6, at).log_delta
    shifted = sgd_profile(x - 1, 6, at, lowest=-128, highest=127).log_delta
    np.testing.assert_array_equal(delta, shifted)
    np.testing.assert_array_equal(delta, sgd_profile(rng.permutation(x), 6, at).log_delta)
    mirrored = sgd_profile(-x, 6, at, lowest=-128, highest=127, rounded=False).log_delta
    same = sgd_profile(x, 6, at, rounded=False).log_delta
    np.testing.assert_allclose(mirrored, same, rtol=1e-13)
    assert np.all(np.diff(delta) < 0)
    # The rounded mean is a function of the sum, and no record is seen more often than T / N.
    assert np.all(delta <= same + 1e-13)
    assert np.all(same <= math.log(6 / 40))


def test_beyond_every_ratio_delta_is_the_chance_of_outputs_of_one_side_only() -> None:
    values = [0, 0, 1, 3]
    far = sgd_profile(values, 2, [60.0, 700.0], lowest=0, highest=4, rounded=False).log_delta
    assert far[0] == far[1]
    pmfs = enumerated(values, 2, False), enumerated([0, 0, 1, 4], 2, False)
    assert math.exp(far[1]) >= float(sum(p for o, p in pmfs[1].items() if o not in pmfs[0]))
    alike = sgd_profile([0, 0, 0, 0, 1, 1, 1, 1], 2, 700.0, lowest=0, highest=1)
    assert alike.log_delta[0] == -math.inf
    assert alike.worst == (None,)
    assert alike.columns()["log10_delta"] == [None]


def test_half_of_a_thousand_values_have_a_distribution() -> None:
    whole = batch_distribution(np.arange(1000) % 2, 500)
    expected = scipy.stats.hypergeom(1000, 500, 500).logpmf(250)
    assert math.log(whole.probabilities[250]) == pytest.approx(expected, abs=1e-9)
    assert whole.probabilities[0] == pytest.approx(1 / math.comb(1000, 500), rel=1e-12)
