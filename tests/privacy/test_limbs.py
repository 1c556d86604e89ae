"""Vectors of whole numbers against Python's own integers."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt.privacy.limbs import CHUNK, Integers, Limbs, larger, smaller, where

SIZES = (1, 27, 28, 29, 56, 62, 63, 64, 65, 126, 128, 200)


@st.composite
def numbers(draw: st.DrawFn, least: int | None = None, several: int = 1) -> list[list[int]]:
    """Draw vectors of one length, of numbers near a power of two or anywhere below it."""
    size = draw(st.integers(1, 12))
    vectors = []
    for _ in range(several):
        limit = 1 << draw(st.sampled_from(SIZES))
        lowest = -limit if least is None else least
        edges = st.sampled_from([limit - 1, limit // 2, lowest, least or 0])
        inside = st.one_of(st.integers(lowest, limit), edges)
        vectors.append(draw(st.lists(inside, min_size=size, max_size=size)))
    return vectors


def limbs(values: list[int]) -> Limbs:
    return Integers.of(values).limbs(0, len(values))


@given(numbers(several=2), st.integers(0, 140))
def test_arithmetic(vectors: list[list[int]], bits: int) -> None:
    a, b = vectors
    x, y = limbs(a), limbs(b)
    assert x.ints() == a
    assert (x + y).ints() == [i + j for i, j in zip(a, b, strict=True)]
    assert (x - y).ints() == [i - j for i, j in zip(a, b, strict=True)]
    assert (x * y).ints() == [i * j for i, j in zip(a, b, strict=True)]
    assert (x * b[0] + b[0] - b[-1]).ints() == [i * b[0] + b[0] - b[-1] for i in a]
    assert (x << bits).ints() == [i << bits for i in a]
    assert (x >> bits).ints() == [i >> bits for i in a]
    assert x.absolute().ints() == [abs(i) for i in a]
    assert x.negative.tolist() == [i < 0 for i in a]
    assert x.zero.tolist() == [i == 0 for i in a]
    assert smaller(x, y).ints() == [min(i, j) for i, j in zip(a, b, strict=True)]
    assert larger(x, y).ints() == [max(i, j) for i, j in zip(a, b, strict=True)]
    assert where(x.negative, x, y).ints() == [i if i < 0 else j for i, j in zip(a, b, strict=True)]
    assert x.sums(b[0]).ints() == list(accumulate(a, initial=b[0]))[1:]
    assert x.total() == sum(a)
    assert x.least() == (min(a), a.index(min(a)))
    assert x[x.negative].ints() == [i for i in a if i < 0]


@given(numbers(least=0), numbers(least=1))
def test_quotients(tops: list[list[int]], bottoms: list[list[int]]) -> None:
    (a,), (b,) = tops, bottoms
    b = (b * len(a))[: len(a)]
    quotients, rests = limbs(a).floor_divided(limbs(b))
    assert quotients.ints() == [i // j for i, j in zip(a, b, strict=True)]
    assert rests.ints() == [i % j for i, j in zip(a, b, strict=True)]
    assert (limbs(a) // b[0]).ints() == [i // b[0] for i in a]
    assert limbs(a).floats() == pytest.approx([float(i) for i in a], rel=1e-14)


def test_quotients_beyond_all_floats() -> None:
    a, b = [1 << 2000, (1 << 1500) + 1, 0], [(1 << 900) - 1, 3, 5]
    quotients, rests = limbs(a).floor_divided(limbs(b))
    assert quotients.ints() == [i // j for i, j in zip(a, b, strict=True)]
    assert rests.ints() == [i % j for i, j in zip(a, b, strict=True)]
    assert (limbs(a) // 7).ints() == [i // 7 for i in a]
    assert limbs([1 << 1000, 3]).floats().tolist() == [float(1 << 1000), 3.0]


@given(numbers(least=0), st.integers(0, 1 << 130))
def test_extremes_so_far(vectors: list[list[int]], before: int) -> None:
    (a,) = vectors
    found = limbs(a).running_largest(Limbs.one(before))
    assert found.ints() == list(accumulate(a, max, initial=before))
    found = limbs(a).running_least(Limbs.one(before))
    assert found.ints() == list(accumulate(a, min, initial=before))


@given(numbers())
def test_vectors_of_integers(vectors: list[list[int]]) -> None:
    (a,) = vectors
    kept = Integers.of(a)
    assert list(kept) == a == [kept[i] for i in range(len(a))]
    assert list(kept[1:]) == a[1:]
    assert list(kept[np.array([0, -1])]) == [a[0], a[-1]]
    assert list(kept.sums()) == list(accumulate(a, initial=0))
    assert kept.negative == (min(a) < 0)
    assert list(Integers.of([*a, 1 << 300])) == [*a, 1 << 300]
    assert list(Integers.of_limbs([limbs(a), limbs([1 << 99])])) == [*a, 1 << 99]
    assert list(Integers.of_limbs([limbs(a)], 512)) == a


def test_several_chunks() -> None:
    a = [(-1) ** k * (k << 70) for k in range(2 * CHUNK + 3)]
    kept = Integers.of(a)
    assert list(kept) == a
    assert [i for part in kept.parts() for i in part.ints()] == a
    assert list(kept.sums()) == list(accumulate(a, initial=0))
    assert list(Integers.of([])) == []
