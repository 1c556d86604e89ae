"""The exactness layer against plain fractions and mpmath at 100 digits and more."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import Guarantee, NotPrivateError
from dpopt.privacy import exp_lower, exp_upper
from tests.kernel.brute import is_private, sure
from tests.table.rows import certify

Edges = list[tuple[int, int]]


def true_exp(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)


@given(exponent=st.floats(1e-6, 600.0), bits=st.integers(1, 200))
def test_exp_is_rounded_outward_to_the_next_multiple(exponent: float, bits: int) -> None:
    with mpmath.workdps(700):
        scaled = true_exp(Fraction(exponent)) * mpmath.mpf(2) ** bits
        below, above = int(mpmath.floor(scaled)), int(mpmath.ceil(scaled))
    assert exp_lower(exponent, bits) == Fraction(below, 2**bits)
    assert exp_upper(exponent, bits) == Fraction(above, 2**bits)


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-300, 1e-60, 1e-40, 1e-9])
def test_constant_tables_are_private_for_every_epsilon(epsilon: float) -> None:
    assert exp_lower(epsilon) >= 1
    assert certify([[1, 1], [1, 1]], Guarantee(epsilon)).slack >= 0


@st.composite
def graphs(draw: st.DrawFn, inputs: int) -> Edges | None:
    if inputs == 1:
        return None
    edges = [(x, y) for y in range(inputs) for x in range(y)]
    some = st.lists(st.sampled_from(edges), min_size=1, max_size=8, unique=True)
    chosen = draw(st.one_of(st.none(), some))
    return None if chosen is None else [*chosen, *((y, x) for x, y in chosen)]


@st.composite
def random_rows(draw: st.DrawFn, bits: int, inputs: int, outputs: int) -> list[list[int]]:
    near = draw(st.booleans())
    low, high = (2**bits // 3, 2**bits // 2) if near and outputs == 2 else (0, 2**bits)
    rows = []
    for _ in range(inputs):
        cuts = sorted(draw(st.integers(low, high)) for _ in range(outputs - 1))
        ends = [0, *cuts, 2**bits]
        rows.append([b - a for a, b in pairwise(ends)])
    return rows


GUARANTEES = st.builds(
    Guarantee, st.sampled_from([0.0, 0.1, 1.0, 3.0]), st.sampled_from([0.0, 0.0, 1e-3, 0.25, 0.6])
)


@given(data=st.data(), bits=st.integers(6, 20), inputs=st.integers(1, 5), outputs=st.integers(1, 5))
def test_verdicts_on_random_tables(
    data: st.DataObject, bits: int, inputs: int, outputs: int
) -> None:
    rows = data.draw(random_rows(bits, inputs, outputs))
    guarantee, pairs = data.draw(GUARANTEES), data.draw(graphs(inputs))
    edges = [(x, y) for x in range(inputs) for y in range(inputs) if x != y]
    edges = edges if pairs is None else pairs
    if is_private(rows, 2**bits, edges, guarantee.epsilon, guarantee.delta):
        assert certify(rows, guarantee, pairs).slack >= 0
    else:
        with pytest.raises(NotPrivateError) as caught:
            certify(rows, guarantee, pairs)
        x, other = map(int, sure(caught.value.inputs))
        assert (x, other) in edges
        assert caught.value.excess > 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 500.0])
@pytest.mark.parametrize("pairs", [None, [(0, 1), (1, 0), (1, 2), (2, 1)]])
def test_a_zero_beside_a_non_zero_fails(epsilon: float, pairs: Edges | None) -> None:
    with pytest.raises(NotPrivateError) as caught:
        certify([[0, 64], [1, 63], [1, 63]], Guarantee(epsilon), pairs)
    assert sure(caught.value.inputs)[1] == "0"
    assert (caught.value.output, caught.value.excess) == ("0", 1 / 64)


def test_a_zero_beside_a_non_zero_is_within_delta() -> None:
    rows = [[0, 64], [1, 63]]
    assert certify(rows, Guarantee(0.0, 1 / 64)).slack == 0
    with pytest.raises(NotPrivateError):
        certify(rows, Guarantee(0.0, math.nextafter(1 / 64, 0.0)))


def test_a_claim_counts_what_it_does_not_protect() -> None:
    rows = [[3, 1], [2, 2], [4, 0], [0, 4], [0, 4]]
    pairs = [(0, 1), (1, 0), (3, 4), (4, 3)]
    proof = certify(rows, Guarantee(math.log(3)), pairs)
    assert proof.constraints == 8
    assert proof.claim == (
        "the kernel is private along 4 directed edges of 5 inputs; without a neighbour, and not "
        "protected: 1; no neighbours join its 2 parts, and privacy holds within each"
    )
    assert certify([[4, 0]], Guarantee(0.0)).claim == (
        "the kernel has one input, which has no neighbour: there was nothing to prove"
    )


def test_a_ratio_between_two_bounds_of_e_to_the_epsilon() -> None:
    # high / low is between the lower bound of 128 bits and e^1: private, and 128 bits do not tell.
    bits = 200
    low = 2**bits // 5
    high = int(exp_lower(1.0, 400) * low)
    assert Fraction(high, low) > exp_lower(1.0)
    for delta in (0.0, 2.0**-199):
        part = int(delta * 2**bits)
        rows = [[high + part, 2**bits - high - part], [low, 2**bits - low]]
        guarantee = Guarantee(1.0, delta)
        assert 0 <= certify(rows, guarantee).slack < Fraction(1, 2**199)
        rows[0] = [rows[0][0] + 1, rows[0][1] - 1]
        with pytest.raises(NotPrivateError, match="breaks"):
            certify(rows, guarantee)
