"""Expectations over compositions against exact rationals, closed forms and the spec's values."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.prob import compositions
from dpopt.prob.compositions import all_compositions
from dpopt.prob.sum_pmf import Sequence, Share, allowance, expectation, sum_pmf
from tests.oracles import poisson_binomial

shares = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 1e-12, 1.0 - 2.0**-40]), st.floats(1e-3, 1.0 - 1e-3)
)
share_pairs = st.tuples(shares, shares).map(lambda pair: (min(pair), max(pair)))
exponents = st.lists(
    st.one_of(st.just(-math.inf), st.floats(-4000, 0), st.integers(-3, 0).map(float)),
    min_size=2,
    max_size=14,
)


def share_of(one):
    return Share(one, 1.0 - one)


def maximise(log_values, low, high):
    return compositions.maximise(np.array(log_values, float), share_of(low), share_of(high))


def log_all_compositions(log_values, low, high):
    return all_compositions(np.array(log_values, dtype=float), share_of(low), share_of(high))


def log_composition(log_values, low, high, ones):
    values = np.asarray(log_values, float)
    shares = share_of(low), share_of(high)
    return expectation(Sequence(values), sum_pmf(*shares, values.size - 1 - ones, ones))


def log_expected(log_values, share):
    return log_composition(log_values, share, share, 0)


def exact_logs(log_values, low, high):
    """log E_{n1} for all n1, the chances in exact rationals."""
    n, logs = len(log_values) - 1, []
    with mpmath.workdps(50):
        values = [mpmath.exp(mpmath.mpf(x)) if x > -math.inf else mpmath.mpf(0) for x in log_values]
        for n1 in range(n + 1):
            chances = poisson_binomial([Fraction(high)] * n1 + [Fraction(low)] * (n - n1))
            pairs = zip(chances, values, strict=True)
            mean = sum(mpmath.mpf(c.numerator) / c.denominator * v for c, v in pairs)
            logs.append(float(mpmath.log(mean)) if mean else -math.inf)
    return np.array(logs)


def assert_logs_close(found, expected, tolerance=2e-13):
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=tolerance, atol=tolerance)


def saw_tooth(records, period=41, slope=8.0):
    ones = np.arange(records + 1)
    return slope * np.abs(ones / records - 0.5) - (ones % period) / period - slope


@pytest.mark.slow
@given(exponents, share_pairs)
def test_compositions_of_values_of_any_size(log_values, pair):
    expected = exact_logs(log_values, *pair)
    assert_logs_close(log_all_compositions(log_values, *pair), expected)
    low, high = pair
    single = [log_composition(log_values, low, high, n1) for n1 in range(len(log_values))]
    assert_logs_close(single, expected)


@pytest.mark.parametrize("searched", [False, pytest.param(True, marks=pytest.mark.slow)])
@settings(deadline=None)
@given(log_values=exponents, pair=share_pairs)
def test_maximum_is_that_of_all_compositions(log_values, pair, searched):
    """By enumeration, and by branch and bound."""
    expected = exact_logs(log_values, *pair)
    with pytest.MonkeyPatch.context() as patch:
        if searched:
            patch.setattr(compositions, "ALL_UP_TO", 0)
            patch.setattr(compositions, "LEAF", 2)
        found = maximise(log_values, *pair)
    assert found.slack >= 0
    assert not searched or found.method != "every composition"
    assert_logs_close(found.log_value, expected.max())
    assert_logs_close(expected[found.composition[1]], expected.max())
    assert found.log_bound >= expected.max()


@pytest.mark.slow
@given(st.lists(st.floats(-20, 0), min_size=2, max_size=12), share_pairs, st.data())
def test_a_v_shape_has_its_maximum_at_an_end(levels, pair, data):
    cut = data.draw(st.integers(0, len(levels)))
    values = sorted(levels[:cut], reverse=True)
    values += sorted(level for level in levels[cut:])
    found = maximise(values, *pair)
    assert found.method in {"ends of a V-shape", "one composition"}
    assert_logs_close(found.log_value, exact_logs(values, *pair).max())


@pytest.mark.sample(30)
@pytest.mark.parametrize(("low", "high"), [
    (0.0553, 0.7714), (0.4999, 0.5), (1e-6, 0.9999), (0.2, 0.20001), (1e-30, 1.0 - 2.0**-50),
    (0.0, 0.3), (0.5, 1.0), (0.3, 0.3),
])  # fmt: skip
@pytest.mark.parametrize("slope", [0.0, 1e-3, -0.5, -3.0, 5.0])
@pytest.mark.parametrize("ones", [0, 1000, 250000, 499999, 500000])
def test_exponential_values_have_a_closed_form(low, high, slope, ones):
    n = 500000
    log_values = slope * np.arange(n + 1.0)
    with mpmath.workdps(50):
        expected = sum(
            count * mpmath.log(1 + mpmath.mpf(p) * (mpmath.exp(mpmath.mpf(slope)) - 1))
            for count, p in ((ones, high), (n - ones, low))
        )
        found = log_composition(log_values, low, high, ones)
        error = float(abs(found - expected))
    assert error <= 1e-12 + 1e-15 * abs(float(expected)) + 2.0**-52 * abs(slope) * n
    assert error <= allowance(n, float(expected)) + 2.0**-52 * abs(slope) * n


@pytest.mark.sample(10)
@pytest.mark.parametrize("share", [0.0553, 0.5, 0.7714, 1e-9])
@pytest.mark.parametrize("ones", [0, 1, 15, 30000, 250123, 385700, 499990, 500000])
def test_one_cell_is_the_binomial_probability(share, ones):
    n = 500000
    log_values = np.full(n + 1, -np.inf)
    log_values[ones] = -7.0
    with mpmath.workdps(60):
        p = mpmath.mpf(share)
        log_count = (
            mpmath.loggamma(n + 1) - mpmath.loggamma(ones + 1) - mpmath.loggamma(n - ones + 1)
        )
        expected = log_count + ones * mpmath.log(p) + (n - ones) * mpmath.log1p(-p) - 7
        error = float(abs(log_expected(log_values, share) - expected))
    assert error <= 1e-12 + 1e-15 * abs(float(expected))


@pytest.mark.parametrize("ones", [0, 3, 400, 1200, 1999, 2000])
def test_one_cell_of_two_binomials(ones):
    n1, n2, high, low = 900, 1100, 0.7714, 0.0553
    log_values = np.full(n1 + n2 + 1, -np.inf)
    log_values[ones] = 0.0
    with mpmath.workdps(60):
        expected = mpmath.log(
            mpmath.fsum(
                mpmath.mpf(math.comb(n1, j))
                * mpmath.mpf(high) ** j
                * (1 - mpmath.mpf(high)) ** (n1 - j)
                * math.comb(n2, ones - j)
                * mpmath.mpf(low) ** (ones - j)
                * (1 - mpmath.mpf(low)) ** (n2 - ones + j)
                for j in range(max(0, ones - n2), min(n1, ones) + 1)
            )
        )
        error = float(abs(log_composition(log_values, low, high, n1) - expected))
    assert error <= 1e-13 + 4e-16 * abs(float(expected))


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("log_values", [
    saw_tooth(3000), saw_tooth(3000, 41, 0.0), saw_tooth(3000, 700, 0.1),
    saw_tooth(3000, 41, 60.0),
    -40.0 * (np.arange(3001) / 3000 - 0.35) ** 2,
    np.where(np.arange(3001) % 9 == 4, -np.inf, saw_tooth(3000, 5, 2.0)),
    -5.0 * np.random.default_rng(3).random(3001),
    np.where(np.random.default_rng(4).random(3001) < 0.002, 0.0, -np.inf),
])  # fmt: skip
@pytest.mark.parametrize("pair", [(0.0553, 0.7714), (0.4, 0.6), (0.0, 0.9), (0.3, 1.0)])
def test_branch_and_bound_above_the_size_of_enumeration(log_values, pair):
    every = log_all_compositions(log_values, *pair)
    found = maximise(log_values, *pair)
    assert found.method == "branch and bound"
    assert found.slack >= 0
    assert found.evaluated < 100
    assert found.log_value == pytest.approx(every.max(), rel=1e-13, abs=3e-13)
    assert every[found.composition[1]] == pytest.approx(every.max(), rel=1e-13, abs=3e-13)
    assert every.max() <= found.log_bound
    assert found.log_bound <= found.log_value + 2.0 * allowance(
        3000, found.log_value, compositions.LEAF
    )


def test_a_stopped_search_says_so_and_its_bound_holds():
    log_values = -40.0 * (np.arange(3001) / 3000 - 0.35) ** 2
    found = compositions.search(log_values, share_of(0.2), share_of(0.6), 2)
    every = log_all_compositions(log_values, 0.2, 0.6)
    assert found.slack < 0
    assert found.evaluated == 2
    assert found.log_value < every.max() <= found.log_bound


def test_moments_of_a_large_composition():
    n, ones = 400000, 150000
    count = np.arange(n + 1.0)
    with np.errstate(divide="ignore"):
        log_values = np.log(count * (count - 1.0))
    mean = ones * 0.7 + (n - ones) * 0.1
    variance = ones * 0.21 + (n - ones) * 0.09
    found = log_composition(log_values, 0.1, 0.7, ones)
    assert found == pytest.approx(math.log(mean**2 + variance - mean), abs=1e-13)


def test_equal_shares_are_one_composition():
    log_values = saw_tooth(2000)
    found = maximise(log_values, 0.3, 0.3)
    assert found.method == "one composition"
    assert found.log_value == log_expected(log_values, 0.3)
    np.testing.assert_allclose(
        log_all_compositions(log_values, 0.3, 0.3), found.log_value, rtol=0, atol=1e-12
    )


def test_no_records_and_no_values():
    assert maximise([-2.0], 0.1, 0.4).log_value == -2.0
    assert log_all_compositions([-2.0], 0.0, 0.0).tolist() == [-2.0]
    nothing = maximise(np.full(3000, -np.inf), 0.1, 0.4)
    assert nothing.log_value == nothing.log_bound == -math.inf
    assert nothing.slack >= 0
