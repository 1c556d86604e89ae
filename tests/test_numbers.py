"""One helper shows, writes and reads numbers of any size, and never raises where it shows."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt
from dpopt import ParameterError, majority
from dpopt._numbers import (
    decimal_rational,
    digits,
    exact_text,
    float_up,
    shown,
    typed_rational,
    whole,
)
from dpopt.verify import not_below

HUGE = 7**9000


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


ANY = [
    *(HUGE, -HUGE, Fraction(HUGE, 3), Fraction(1, HUGE), Fraction(HUGE + 1, HUGE), 10**400),
    *([HUGE], (HUGE, [Fraction(1, HUGE)]), {"a": HUGE}, np.array([HUGE], dtype=object)),
    *(np.float64(0.1), np.int64(-(2**63)), np.longdouble(1) / 3, 1 + 2j, math.nan, math.inf),
    *(True, np.True_, None, "x" * 1000, Hostile(), Hostile, [Hostile()], range(10**30)),
    b"\xff" * 200,
]


def test_anything_is_shown_in_a_short_line() -> None:
    for value in ANY:
        text = shown(value)
        assert 0 < len(text) <= 80
        assert "\n" not in text


@given(st.integers(-(2**400), 2**400), st.integers(1, 2**400), st.integers(0, 20_000))
def test_exact_text_is_read_back_exactly(top: int, bottom: int, shift: int) -> None:
    value = Fraction(top << shift, bottom)
    assert [int(part, 0) for part in exact_text(value).split("/")] == [
        *([value.numerator] if value.denominator == 1 else value.as_integer_ratio())
    ]
    assert whole(exact_text(top << shift)) == top << shift


def test_what_may_be_typed_and_what_may_not() -> None:
    for text in ["12", "1/3", ".5", "1e-9", "+2.5E+2", "-0", "3.", "1e4000"]:
        assert typed_rational(text) == Fraction(text)
    texts = ". e5 1e 1/0 1/2e3 nan inf 1e4001 1e-100000000 1e999999999999 0x10 1_000 \u0663x"
    for text in ["", "1 2", "9" * 4_001, *texts.split()]:
        with pytest.raises(ValueError, match=r"."):
            typed_rational(text)


def test_a_float_is_read_as_its_shortest_decimal() -> None:
    assert decimal_rational(0.002) == Fraction(2, 1000)
    assert decimal_rational(np.float64(0.1)) == Fraction(1, 10)
    assert decimal_rational(Fraction(1, HUGE)) == Fraction(1, HUGE)
    assert type(decimal_rational(np.int64(3)).numerator) is int


@given(st.fractions(), st.integers(-1200, 1200))
def test_rounding_up_gives_the_least_float(value: Fraction, shift: int) -> None:
    scaled = value * (Fraction(2) ** shift)
    found = float_up(scaled)
    assert math.isinf(found) or Fraction(found) >= scaled
    below = math.nextafter(found, -math.inf)
    assert math.isinf(below) or Fraction(below) < scaled


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_two_floats_that_differ_are_never_told_alike(value: float, up: bool) -> None:
    assert digits(value) != digits(math.nextafter(value, math.inf if up else -math.inf))
    assert float(digits(value)) == value


@given(st.floats(0, 1e300))
def test_a_bound_from_above_is_printed_rounded_up(value: float) -> None:
    shown = float(not_below(value))
    assert value * (1 - 2.0**-50) <= shown <= value * (1 + 1.01e-5) + 1e-323
    assert len(not_below(value).partition("e")[0].replace(".", "").lstrip("0")) <= 6


def comparing(path: Path) -> Iterator[str]:
    """f-strings raised as ParameterError with two or more fields cut to six digits."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ParameterError":
            fields = [part for part in ast.walk(node) if isinstance(part, ast.FormattedValue)]
            cut = [
                field
                for field in fields
                if field.format_spec is not None
                and ast.unparse(field.format_spec) in ("f'g'", "f'.3g'", "f'.6g'", "f'.12g'")
                and not getattr(field.value, "id", "").lstrip("_").isupper()
            ]
            if len(cut) > 1:
                yield f"{path.name}:{node.lineno}"


@pytest.mark.slow
def test_no_refusal_compares_numbers_cut_to_six_digits() -> None:
    package = Path(dpopt.__file__).parent
    assert [found for path in package.rglob("*.py") for found in comparing(path)] == []


def test_gamma_may_leave_its_interval_by_a_rounding() -> None:
    setting = dpopt.Majority(3, 0.1, 3)
    above = majority.assess(setting, [math.nextafter(1.0, 2.0), 1.0])
    assert above.gamma.tolist() == [1.0] * 4
    assert majority.assess(setting, [-1e-17, 0.5]).gamma[2] == 0
    for wrong in (1 + 1e-12, -1e-12, math.nan):
        with pytest.raises(ParameterError, match="outside"):
            majority.assess(setting, [wrong, 1.0])
