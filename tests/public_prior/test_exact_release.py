"""The integers that are drawn from: proved, and the distribution of what is released."""

from __future__ import annotations

import inspect
import math
import secrets
from collections import Counter
from fractions import Fraction
from io import BytesIO
from itertools import accumulate

import numpy as np
import pytest

import dpopt
from dpopt import Design, ParameterError, verify
from dpopt.privacy import exp_lower
from dpopt.public_prior import draw_own_category
from dpopt.public_prior.layers import LayeredTable
from tests.kernel.brute import sure
from tests.oracles import follow
from tests.public_prior.closed_forms import kernel_for, over_objectives

DRAWS = 30_000
REFERENCE = [0.2, 0.05, 0.5, 0.1, 0.15]
PRIORS = [
    [1.0],
    [0.5, 0.5],
    [0.9, 0.1],
    [1 / 3, 1 / 3, 1 / 3],
    [0.7, 1e-12, 0.3 - 1e-12],
    [1e-30, 1.0],
    REFERENCE,
    [0.1, 0.1, 0.2, 0.2, 0.2, 0.2],
]


def weights_of(kernel: Design) -> list[list[int]]:
    return [kernel.table.row(category) for category in range(kernel.setting.labelled.size)]


def probabilities(kernel: Design) -> list[list[Fraction]]:
    total = 1 << kernel.table.bits
    return [[Fraction(weight, total) for weight in row] for row in weights_of(kernel)]


@pytest.mark.sample(32)
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 16.0, 100.0, 600.0])
@pytest.mark.parametrize("q", PRIORS, ids=str)
@over_objectives
def test_every_pair_of_rows_is_private(objective: str, q: list[float], epsilon: float) -> None:
    kernel = kernel_for(q, epsilon, objective)
    rows, r = probabilities(kernel), exp_lower(epsilon, 4000)
    slacks = []
    for row in rows:
        assert sum(row) == 1
        for other in rows:
            slacks += [r * b - a for a, b in zip(row, other, strict=True) if row is not other]
    assert all(entry > 0 for row in rows for entry in row)
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    spent = kernel.setting.spent(kernel.table, None, 0.0)
    assert spent.lower <= spent.upper == pytest.approx(math.log1p(float(worst - 1)), rel=1e-9)
    assert sure(kernel.certificate).constraints == len(slacks)
    if slacks:
        unit = Fraction(1, 1 << kernel.table.bits)
        # The certificate's bound may be off by two units on either side of the inequality.
        assert 0 <= sure(kernel.certificate).slack <= min(slacks)
        assert min(slacks) - sure(kernel.certificate).slack <= (r + 1) * 3 * unit
    floats = np.array([[float(entry) for entry in row] for row in rows])
    assert floats == pytest.approx(kernel.kernel, rel=1e-9, abs=3e-12)


class ByHand(LayeredTable):
    """A table whose integers are given."""

    def __init__(self, rows: verify.Layers) -> None:
        labelled = kernel_for(np.full(len(rows.w), 1 / len(rows.w)), 1.0).setting.labelled
        vars(self).update(vars(LayeredTable.of(labelled, 1.0, "minimax")))
        vars(self).update(bits=rows.bits, layers=rows)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("bits", [3, 4, 6])
def test_all_integers_together_give_the_weights(bits: int, flat: bool) -> None:
    base, extra = [1, 0, 2, 0], [2, 1, 3, 1 if flat else (1 << bits) - 3]
    # The masses are those that make the prior kept, or any.
    table = ByHand(verify.Layers(bits, flat, [1] * 4, base, extra, [2, 0, 3, 1]))
    drawn = np.arange(1 << bits, dtype=np.uint8) << np.uint8(8 - bits)
    for i in range(4):
        weights = table.row(i)
        assert sum(weights) == 1 << bits
        source = BytesIO(drawn.tobytes())
        found = Counter(table.drawn(np.full(1 << bits, i), source.read)[0].tolist())
        assert [found[j] for j in range(4)] == weights


def by_hand(rows: verify.Layers, i: int, u: int) -> int:
    """Return the category of u: the base, the row's own, and the rest split by rounded shares."""
    base, shares = list(accumulate(rows.w)), list(accumulate(rows.k, initial=0))
    total = base[-1] if rows.flat else base[i - 1] * (i > 0)
    if u < total:
        return sum(c <= u for c in base)
    if u < total + rows.e[i]:
        return i
    first = 0 if rows.flat else i + 1
    rest, over = (1 << rows.bits) - total - rows.e[i], shares[-1] - shares[first]
    marks = [rest * (c - shares[first]) // over for c in shares[first:]]
    return first + sum(mark <= u - total - rows.e[i] for mark in marks) - 1


@pytest.mark.sample(24)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0, 500.0])
@pytest.mark.parametrize("q", PRIORS, ids=str)
@over_objectives
def test_integers_next_to_every_border(objective: str, q: list[float], epsilon: float) -> None:
    """Each border of each layer, from below and from above."""
    table = kernel_for(q, epsilon, objective).table
    rows, bits, n = table.layers, table.bits, len(q)
    order = table.public.order.tolist()
    for i in range(n):
        row = table.row(order[i])
        sums = list(accumulate(row[category] for category in order))
        base = sum(rows.w if rows.flat else rows.w[:i])
        own, over = base + rows.e[i], sum(rows.k if rows.flat else rows.k[i + 1 :])
        rest = (1 << bits) - own
        shares = [rest * c // (over or 1) for c in accumulate(rows.k, initial=0)]
        bases = accumulate(rows.w, initial=0)
        borders = {*sums, *bases, base, own, *(own + c for c in shares)}
        near = {
            b + step
            for b in borders
            for shift in (0, 1, 5, bits - 60, bits - 53, bits - 50, bits - 45)
            for step in (-(1 << shift), 0, 1 << shift, -(1 << shift) - 1)
        }
        for u in sorted(u for u in near if 0 <= u < 1 << bits):
            assert table.category(i, u) == by_hand(rows, i, u)


@pytest.mark.sample(1)
@pytest.mark.slow
@over_objectives
def test_releases_from_counts_follow_pk(objective: str) -> None:
    kernel, counts = kernel_for(REFERENCE, 2.5, objective), np.array([4, 0, 1, 0, 3])
    pmf = kernel.apply(counts / 8)
    released = kernel.release(draw_own_category(np.tile(counts, (DRAWS, 1)), 5))
    assert follow(np.asarray(released).tolist(), pmf)
    large = [[Fraction(int(c), 8 * 10**30) for c in counts]] * DRAWS
    own = draw_own_category(large, 5, np.random.default_rng(0))
    assert follow(np.asarray(kernel.simulate(own, np.random.default_rng(1))).tolist(), pmf)


@over_objectives
def test_releases_of_many_words_follow_the_rows(objective: str) -> None:
    kernel = kernel_for([0.1, 0.2, 0.3, 0.4], 3.0, objective)
    assert kernel.table.bits < 200
    wide = kernel_for([1e-60, 0.5, 0.5], 0.5, objective)
    assert wide.table.bits > 200
    kept = float(wide.diagonal[1])
    found = np.asarray(wide.release(np.full(DRAWS, 1))).tolist()
    assert follow(found, {1: kept, 2: 1 - kept})


def test_labels_keep_their_names() -> None:
    names = ["c", 17, "b"]
    kernel = dpopt.design(dpopt.PublicPrior([0.2, 0.3, 0.5], 30.0, labels=names))
    assert kernel.release("c") == "c"
    assert kernel.release(17) == 17
    assert kernel.release(["b", "c", "b"]) == ["b", "c", "b"]
    assert draw_own_category([0, 0, 7], names) == "b"
    assert draw_own_category([[1, 0, 0], [0, 0, 1]], names) == ["c", "b"]
    assert draw_own_category([[1, 0, 0], [0, 0, 1]], 3).tolist() == [0, 2]
    plain = kernel_for([0.2, 0.3, 0.5], 30.0, "leximin")
    assert plain.release(1) == 1
    assert np.asarray(plain.release([2, 0])).tolist() == [2, 0]
    assert np.asarray(plain.release([])).tolist() == []


@pytest.mark.parametrize("own", ["z", 3, None, ["a", "z"], [["a"]]])
def test_unknown_names_are_refused_without_showing_them(own: object) -> None:
    kernel = dpopt.design(dpopt.PublicPrior([0.4, 0.6], 1.0, labels=["a", "b"]))
    with pytest.raises(ParameterError, match="does not have") as caught:
        kernel.release(own)
    assert "z" not in str(caught.value)


def test_release_uses_the_system_and_takes_no_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_for(REFERENCE, 1.0)
    assert not {"rng", "seed"} & set(inspect.signature(kernel.release).parameters)
    # The lowest integer falls into the first layer of row 2 by mass: the category of least mass.
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    assert kernel.release(3) == 1
    assert draw_own_category([1, 1, 1, 1, 1], 5) == 0


@pytest.mark.slow
def test_twenty_thousand_labels_are_certified_and_released() -> None:
    rng = np.random.default_rng(2)
    q = rng.random(20_000) + 1e-6
    for objective in ("minimax", "leximin"):
        kernel = kernel_for(q / q.sum(), 12.0, objective)
        assert sure(kernel.certificate).slack >= 0
        assert kernel.drift < 1e-15
        own = rng.integers(20_000, size=50_000)
        kept = np.count_nonzero(np.asarray(kernel.release(own)) == own)
        expected = kernel.diagonal[own]
        spread = np.sqrt((expected * (1 - expected)).sum())
        assert abs(kept - expected.sum()) < 7 * spread
