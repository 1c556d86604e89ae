"""The exactness layer against plain fractions and mpmath at 100 digits and more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import Guarantee, NotPrivateError, ParameterError
from dpopt.privacy import (
    ExactKernel,
    certify_kernel,
    exp_lower,
    exp_upper,
    quantise_kernel,
    shrink_to_budget,
)
from tests.privacy.known import path

Edges = list[tuple[int, int]]

EXPONENTS = [0.0, 1e-300, 1e-9, 0.1, 1.0, 10.0, 100.0, 500.0, Fraction(1, 3), Fraction(-7, 5)]
NINE_QUARTERS = Fraction(9, 4)


def true_exp(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)


def as_mpf(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_exp_is_bracketed(exponent: float | Fraction) -> None:
    lower, upper = exp_lower(exponent), exp_upper(exponent)
    with mpmath.workdps(500):
        value = true_exp(Fraction(exponent))
        assert as_mpf(lower) <= value <= as_mpf(upper)
    assert upper - lower <= Fraction(4, 2**128)
    if abs(exponent) > 2**-63:
        assert (2**128 * lower).denominator == (2**128 * upper).denominator == 1
    else:  # what is proved of e^x - 1 is proved to within 2^-60 of it
        assert upper - lower <= Fraction(exponent) / 2**60


@given(exponent=st.floats(1e-6, 600.0), bits=st.integers(1, 200))
def test_exp_is_rounded_outward_to_the_next_multiple(exponent: float, bits: int) -> None:
    with mpmath.workdps(700):
        scaled = true_exp(Fraction(exponent)) * mpmath.mpf(2) ** bits
        below, above = int(mpmath.floor(scaled)), int(mpmath.ceil(scaled))
    assert exp_lower(exponent, bits) == Fraction(below, 2**bits)
    assert exp_upper(exponent, bits) == Fraction(above, 2**bits)


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-300, 1e-60, 1e-40, 1e-9])
def test_constant_kernels_are_private_for_every_epsilon(epsilon: float) -> None:
    assert exp_lower(epsilon) >= 1
    assert certify_kernel(UNIFORM, 1, Guarantee(epsilon)).slack >= 0


UNIFORM = [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    "ratio", [Fraction(99, 100), Fraction(0), Fraction(-9, 4), Fraction(23, 10)]
)
def test_a_ratio_out_of_range_is_refused(ratio: Fraction) -> None:
    with pytest.raises(ParameterError, match="ratio"):
        certify_kernel(UNIFORM, 1, Guarantee(math.log(2.25)), ratio=ratio)


@pytest.mark.parametrize("epsilon", [0.0, 1e-18, 1e-9])
def test_a_ratio_above_the_exponential_by_more_than_the_rounding_of_epsilon_is_refused(
    epsilon: float,
) -> None:
    ratio = exp_upper(epsilon) + Fraction(1, 2**51)
    assert ratio > exp_upper(math.nextafter(epsilon, 1.0))
    with pytest.raises(ParameterError, match="ratio"):
        certify_kernel(UNIFORM, 1, Guarantee(epsilon), ratio=ratio)


RATIOS = {"2": 2, "7": 7, "10^40": 10**40, "399^80": 399**80, "391^80": 391**80, "2^700": 2**700}


@pytest.mark.parametrize("ratio", RATIOS.values(), ids=RATIOS)
def test_the_float_logarithm_of_a_ratio_is_enough(ratio: int) -> None:
    guarantee = Guarantee(math.log(ratio))
    assert certify_kernel(UNIFORM, 1, guarantee, ratio=Fraction(ratio)).ratio == ratio


@dataclass(frozen=True)
class Verdict:
    slacks: dict[tuple[int, int, int | None], Fraction]
    constraints: int

    @property
    def slack(self) -> Fraction:
        return min(self.slacks.values())


def ordered_pairs(inputs: int) -> Edges:
    return [(x, y) for x in range(inputs) for y in range(inputs) if x != y]


def reference(
    weights: Sequence[Sequence[int]], bits: int, guarantee: Guarantee, edges: Edges, r: Fraction
) -> Verdict:
    """All slacks by the definition, one for each inequality."""
    kernel = [[Fraction(weight, 2**bits) for weight in row] for row in weights]
    slacks: dict[tuple[int, int, int | None], Fraction] = {}
    for x, other in edges:
        gaps = [r * b - a for a, b in zip(kernel[x], kernel[other], strict=True)]
        if guarantee.delta == 0:
            slacks.update({(x, other, y): gap for y, gap in enumerate(gaps)})
        else:
            excess = sum((-gap for gap in gaps if gap < 0), Fraction(0))
            slacks[x, other, None] = Fraction(guarantee.delta) - excess
    return Verdict(slacks, len(edges) * (len(weights[0]) if guarantee.delta == 0 else 1))


def check_refusal(error: NotPrivateError, verdict: Verdict, guarantee: Guarantee) -> None:
    x, other = map(int, error.inputs)
    y = None if error.output is None else int(error.output)
    assert (error.output is None) == (guarantee.delta > 0)
    assert error.excess == float(-verdict.slacks[x, other, y]) > 0
    assert verdict.slacks[x, other, y] == verdict.slack
    assert f"inputs {x} and {other}" in str(error)


def check_verdict(
    weights: Sequence[Sequence[int]],
    bits: int,
    guarantee: Guarantee,
    pairs: Edges | None,
    ratio: Fraction | None,
) -> bool:
    """Compare with the reference; return whether the kernel is private."""
    edges = ordered_pairs(len(weights)) if pairs is None else pairs
    r = exp_lower(guarantee.epsilon) if ratio is None else ratio
    verdict = reference(weights, bits, guarantee, edges, r)
    if verdict.slacks and verdict.slack < 0:
        with pytest.raises(NotPrivateError) as caught:
            certify_kernel(weights, bits, guarantee, pairs=pairs, ratio=ratio, one_way=True)
        check_refusal(caught.value, verdict, guarantee)
        return False
    proof = certify_kernel(weights, bits, guarantee, pairs=pairs, ratio=ratio, one_way=True)
    assert proof.constraints == verdict.constraints
    assert (proof.guarantee, proof.bits, proof.ratio) == (guarantee, bits, r)
    if verdict.slacks:
        assert proof.slack == verdict.slack
    return True


@st.composite
def graphs(draw: st.DrawFn, inputs: int) -> Edges | None:
    if inputs == 1:
        return None
    some = st.lists(st.sampled_from(ordered_pairs(inputs)), min_size=1, max_size=8, unique=True)
    return draw(st.one_of(st.none(), st.just(path(inputs)), some))


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
def test_verdict_on_random_kernels(
    data: st.DataObject, bits: int, inputs: int, outputs: int
) -> None:
    weights = data.draw(random_rows(bits, inputs, outputs))
    check_verdict(weights, bits, data.draw(GUARANTEES), data.draw(graphs(inputs)), None)


@dataclass(frozen=True)
class Limit:
    """A private kernel; one more unit on output 0 of input 0 breaks it."""

    weights: list[list[int]]
    bits: int
    guarantee: Guarantee
    ratio: Fraction | None
    pairs: Edges | None


@st.composite
def kernels_on_the_limit(draw: st.DrawFn) -> Limit:
    bits = draw(st.integers(6, 20))
    ratio = draw(st.sampled_from([None, NINE_QUARTERS, Fraction(2), Fraction(8, 7)]))
    epsilon = draw(st.sampled_from([0.3, 1.0])) if ratio is None else math.log(ratio)
    # Upwards, so that the ratio is certainly at most e^epsilon.
    guarantee = Guarantee(math.nextafter(epsilon, 9.0))
    r = exp_lower(guarantee.epsilon) if ratio is None else ratio
    total = 2**bits
    low = draw(st.integers(1, int(total / (2 * (r + 1)))))
    extra = draw(st.sampled_from([0, 1, total // 8]))
    guarantee = Guarantee(guarantee.epsilon, extra / total)
    high = int(r * low) + extra
    firsts = [high, low, *draw(st.lists(st.integers(low, high), max_size=3))]
    parts = draw(st.integers(1, 4))
    pairs = draw(st.sampled_from([None, [(0, 1), (1, 0)]]))
    return Limit([spread(first, total, parts) for first in firsts], bits, guarantee, ratio, pairs)


def spread(first: int, total: int, parts: int) -> list[int]:
    """Output 0 gets ``first``; the rest is shared in proportions that all rows have in common."""
    rest = total - first
    shares = [rest // 8 for _ in range(parts - 1)]
    return [first, *shares, rest - sum(shares)]


@given(limit=kernels_on_the_limit(), taken=st.integers(1, 4))
def test_one_unit_in_the_last_place_decides(limit: Limit, taken: int) -> None:
    rest = (limit.bits, limit.guarantee, limit.pairs, limit.ratio)
    assert check_verdict(limit.weights, *rest)
    broken = [list(row) for row in limit.weights]
    broken[0][0] += 1
    broken[0][1 + (taken - 1) % (len(broken[0]) - 1)] -= 1
    assert not check_verdict(broken, *rest)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 500.0])
@pytest.mark.parametrize("pairs", [None, [(0, 1), (1, 0)]])
def test_a_zero_beside_a_non_zero_fails(epsilon: float, pairs: Edges | None) -> None:
    with pytest.raises(NotPrivateError) as caught:
        certify_kernel([[0, 64], [1, 63]], 6, Guarantee(epsilon), pairs=pairs)
    assert (caught.value.inputs, caught.value.output) == (("1", "0"), "0")
    assert caught.value.excess == 1 / 64


def test_a_zero_beside_a_non_zero_is_within_delta() -> None:
    weights = [[0, 64], [1, 63]]
    assert certify_kernel(weights, 6, Guarantee(0.0, 1 / 64)).slack == 0
    with pytest.raises(NotPrivateError):
        certify_kernel(weights, 6, Guarantee(0.0, math.nextafter(1 / 64, 0.0)))


def test_one_direction_can_hold_without_the_other() -> None:
    weights = [[0, 64], [32, 32]]
    proof = certify_kernel(weights, 6, Guarantee(math.log(3)), pairs=[(0, 1)], one_way=True)
    assert proof.constraints == 2
    assert "1 of them in one direction only, which is not differential privacy" in proof.claim
    with pytest.raises(NotPrivateError):
        certify_kernel(weights, 6, Guarantee(math.log(3)), pairs=[(1, 0)], one_way=True)
    with pytest.raises(ParameterError, match=r"pairs holds \(0, 1\) without \(1, 0\)"):
        certify_kernel(weights, 6, Guarantee(math.log(3)), pairs=[(0, 1)])


@pytest.mark.parametrize("one_way", [True, False])
@pytest.mark.parametrize(
    ("pairs", "why"), [([], "empty"), ([(0, 0)], "own"), ([(0, 1), (1, 0), (1, 1)], "own")]
)
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_pairs_that_prove_nothing(pairs: Edges, why: str, delta: float, one_way: bool) -> None:
    guarantee = Guarantee(0.0, delta)
    calls: list[Callable[..., object]] = [
        lambda **more: certify_kernel(UNIFORM, 1, guarantee, pairs=pairs, **more),
        lambda **more: ExactKernel.make(UNIFORM, 1, guarantee, pairs=pairs, **more),
        lambda **more: quantise_kernel([[0.5, 0.5]] * 2, guarantee, pairs=pairs, **more),
    ]
    for call in calls:
        with pytest.raises(ParameterError, match=why):
            call(one_way=one_way)


def test_a_claim_counts_what_it_does_not_protect() -> None:
    weights = [[3, 1], [1, 3], [4, 0], [0, 4], [0, 4]]
    pairs = [(0, 1), (1, 0), (3, 4), (4, 3), (0, 1)]
    proof = certify_kernel(weights, 2, Guarantee(math.log(3)), pairs=pairs, ratio=Fraction(3))
    assert proof.constraints == 8
    assert proof.claim == (
        "kernel is private along 4 directed edges of 5 inputs; without a neighbour, and not "
        "protected: 1; no neighbours join its 2 parts, and privacy holds within each"
    )
    assert certify_kernel([[4, 0]], 2, Guarantee(0.0)).claim == (
        "kernel has one input, which has no neighbour: there was nothing to prove"
    )


def test_a_ratio_between_two_bounds_of_e_to_the_epsilon() -> None:
    # high / low is between the lower bound of 128 bits and e^1: private, and 128 bits do not tell.
    bits = 200
    low = 2**bits // 5
    high = int(exp_lower(1.0, 400) * low)
    assert Fraction(high, low) > exp_lower(1.0)
    for delta, pairs in product((0.0, 2.0**-199), (None, [(0, 1), (1, 0)])):
        part = int(delta * 2**bits)
        rows = [[high + part, 2**bits - high - part], [low, 2**bits - low]]
        guarantee = Guarantee(1.0, delta)
        proof = certify_kernel(rows, bits, guarantee, pairs=pairs)
        assert 0 <= proof.slack < Fraction(1, 2**199)
        assert exp_lower(1.0) < proof.ratio < exp_upper(1.0)
        rows[0] = [rows[0][0] + 1, rows[0][1] - 1]
        with pytest.raises(NotPrivateError, match="break"):
            certify_kernel(rows, bits, guarantee, pairs=pairs)


RATIONALS = st.fractions(0, 4, max_denominator=1000)


@given(worst=RATIONALS, budget=st.fractions(Fraction(1, 1000), 4, max_denominator=1000))
def test_shrinking_uses_the_whole_budget(worst: Fraction, budget: Fraction) -> None:
    factor = shrink_to_budget(worst, budget)
    assert 0 < factor <= 1
    assert factor * worst <= budget
    assert factor == 1 or factor * worst == budget
