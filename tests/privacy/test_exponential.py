"""e^x, log x and roots in integers: bounds on the right side, and nobody's precision touched."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Event
from typing import cast

import flint
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt
from dpopt import Guarantee, NotPrivateError, ParameterError, majority
from dpopt.privacy import exp_lower, exp_upper, simple_composition
from dpopt.privacy.cost import DominatingPair
from dpopt.privacy.exact import least_float, log_near, log_upper, sqrt_upper
from tests.table.rows import certify

TINY = [5e-324, 1e-300, 1e-100, 1e-39, 1e-20, -1e-39]


def arb_bracket(exponent: float, bits: int) -> tuple[int, int]:
    """Arb's enclosure of e^x 2^bits: floor of its lower and ceiling of its upper end."""
    exact = Fraction(exponent)
    with flint.ctx.workprec(bits + 1500 + 2 * int(abs(exact))):
        value = flint.arb(flint.fmpq(exact.numerator, exact.denominator)).exp()
        value *= flint.arb(flint.fmpz(1) << bits)
        ends = [value.lower().floor().unique_fmpz(), value.upper().ceil().unique_fmpz()]
    low, high = (int(end) for end in ends if end is not None)
    return low, high


@given(
    exponent=st.one_of(st.floats(-2000.0, 2000.0), st.floats(-1e-3, 1e-3)),
    bits=st.integers(1, 1300),
)
def test_both_bounds_agree_with_those_of_arb(exponent: float, bits: int) -> None:
    low, high = arb_bracket(exponent, bits)
    ours = exp_lower(exponent, bits) * 2**bits, exp_upper(exponent, bits) * 2**bits
    assert ours[0] <= low <= high <= ours[1]
    # A unit more only where e^x is within 2^-60 of a multiple.
    assert low - ours[0] <= 1
    assert ours[1] - high <= 1


@pytest.mark.parametrize("exponent", TINY)
def test_the_grid_follows_a_tiny_exponent(exponent: float) -> None:
    low, high = exp_lower(exponent), exp_upper(exponent)
    exact = Fraction(exponent)
    # 1 + x <= e^x <= 1 + x + x^2 for |x| < 1
    assert low <= 1 + exact + exact**2
    assert high >= 1 + exact
    assert abs(high - 1 - exact) <= abs(exact) / 2**60
    assert abs(low - 1 - exact) <= abs(exact) / 2**60


def test_a_tiny_epsilon_is_told_from_0() -> None:
    rows = [[2**1199 + 2**200, 2**1199 - 2**200], [2**1199, 2**1199]]
    assert certify(rows, Guarantee(1e-300)).slack >= 0
    broken = [[2**1199 + 2**204, 2**1199 - 2**204], [2**1199, 2**1199]]
    with pytest.raises(NotPrivateError, match="breaks"):
        certify(broken, Guarantee(1e-300))


@given(st.fractions(min_value=1, max_value=10**40), st.integers(0, 2000))
def test_the_logarithm_is_above_by_two_floats_at_most(ratio: Fraction, shift: int) -> None:
    value = 1 + (ratio - 1) / 2**shift
    found = log_upper(value)
    with mpmath.workdps(1000):
        true = mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
        assert mpmath.mpf(found) >= true
        assert mpmath.mpf(found) - true <= 2 * mpmath.mpf(math.ulp(found))


@given(st.fractions(min_value=0, max_value=10**30))
def test_the_root_is_above_by_next_to_nothing(value: Fraction) -> None:
    found = sqrt_upper(value)
    assert found**2 >= value
    assert found**2 <= value * (1 + Fraction(1, 2**95)) or value < Fraction(1, 10**20)


def test_threads_neither_change_a_precision_nor_depend_on_it() -> None:
    """python-flint has one precision for all threads: somebody else's changes all the while."""
    setting = dpopt.Majority(5, 0.3, 2)
    design = dpopt.design(setting)
    alone = [exp_upper(x / 7, 256) for x in range(100)]
    before, stop = flint.ctx.prec, Event()

    def disturb() -> None:
        while not stop.is_set():
            for bits in (2, 53, 1000):
                flint.ctx.prec = bits

    def compute(_: int) -> list[Fraction]:
        majority.assess(setting, design.gamma, repair=True)
        return [exp_upper(x / 7, 256) for x in range(100)]

    with ThreadPoolExecutor(5) as pool:
        disturber = pool.submit(disturb)
        try:
            found = list(pool.map(compute, range(12)))
        finally:
            stop.set()
            disturber.result()
            flint.ctx.prec = before
    assert all(values == alone for values in found)


def test_the_precision_of_the_caller_is_the_same_within_and_after() -> None:
    seen: list[int] = []

    class Watching(Fraction):
        @property
        def numerator(self) -> int:
            seen.append(flint.ctx.prec)
            return super().numerator

    with flint.ctx.workprec(77):
        exp_lower(Watching(1, 3))
        with pytest.raises(ParameterError):
            exp_lower(1e9)
        with pytest.raises(ParameterError):
            exp_upper(Watching(1, 3), 10**9)
        assert flint.ctx.prec == 77
    assert seen
    assert set(seen) == {77}


@pytest.mark.parametrize("kind", [np.int8, np.uint64])
def test_numpy_integers_become_pythons(kind: type[np.integer]) -> None:
    """Left in a Fraction, they overflow in its products."""
    assert exp_lower(kind(5)) == exp_lower(5)
    assert simple_composition(Guarantee(0.1), cast(int, kind(100))).epsilon >= 10.0


FAR = [
    Fraction(1 + 2**300, 2**300),
    Fraction(1 + 2**1000, 2**1000),
    Fraction(1 + 2**5000, 2**5000),
    Fraction(2**15_000 + 1, 3),
    Fraction(3),
    Fraction(2),
    Fraction(2**53 + 1, 2**53),
    # Of many digits: the difference of two logarithms was 500 floats too large.
    exp_upper(1) + Fraction(1, 10**307),
]


@pytest.mark.parametrize("ratio", FAR, ids=lambda ratio: f"{float(log_near(ratio)):g}")
def test_the_logarithm_of_any_ratio_is_found_at_once(ratio: Fraction) -> None:
    # A walk from float to float would take 1e17 steps for the first ones.
    found = log_upper(ratio)
    with mpmath.workprec(12_000):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert exact <= mpmath.mpf(found)
        assert mpmath.mpf(found) <= max(exact * (1 + mpmath.mpf(2) ** -50), mpmath.mpf(5e-324))


@given(st.floats(0.0, 1e300), st.floats(0.0, 1e300))
def test_the_least_float_is_found(limit: float, start: float) -> None:
    calls = []

    def reached(value: float) -> bool:
        calls.append(value)
        return value >= limit

    assert least_float(reached, start) == max(limit, start)
    assert len(calls) < 150


def test_losses_of_distributions_that_hardly_differ() -> None:
    one = 1 << 400
    rows = [[one // 2 + 1, one // 2 - 1], [one // 2 - 1, one // 2 + 1]]
    pair = DominatingPair(tuple(rows[0]), tuple(rows[1]), one)
    # log((1 + x) / (1 - x)) = 2 x + ... with x = 2^-399.
    assert pair.largest_loss == pytest.approx(math.ldexp(2.0, -399), rel=1e-15)
