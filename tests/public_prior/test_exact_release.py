"""The integers that are drawn from: proved, and the law of what is released."""

from __future__ import annotations

import inspect
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpopt import NotPrivateError, ParameterError
from dpopt.privacy import Guarantee, certify_kernel, exp_lower, quantise_kernel
from dpopt.privacy.release import count_at_most
from dpopt.public_prior import SamplingKernel, leximin_kernel, minimax_kernel
from dpopt.public_prior.layers import LayeredRows
from dpopt.public_prior.proof import certify_rows, drift

DRAWS = 30_000
FALSE_ALARM = 1e-9
Maker = Callable[[npt.ArrayLike, float], SamplingKernel]
MAKERS: dict[str, Maker] = {"minimax": minimax_kernel, "leximin": leximin_kernel}
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


def probabilities(kernel: SamplingKernel) -> list[list[Fraction]]:
    total = 1 << kernel.certificate.bits
    return [[Fraction(weight, total) for weight in row] for row in kernel.weights()]


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 16.0, 100.0, 600.0])
@pytest.mark.parametrize("q", PRIORS, ids=str)
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_pair_of_rows_is_private(maker: Maker, q: list[float], epsilon: float) -> None:
    kernel = maker(q, epsilon)
    rows, r = probabilities(kernel), exp_lower(epsilon)
    slacks = []
    for row in rows:
        assert sum(row) == 1
        for other in rows:
            slacks += [r * b - a for a, b in zip(row, other, strict=True) if row is not other]
    assert all(entry > 0 for row in rows for entry in row)
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert kernel.exact.worst_ratio == pytest.approx(float(worst), rel=1e-9)
    if slacks:
        unit = Fraction(1, 1 << kernel.certificate.bits)
        # The certificate's bound may be off by one unit on either side of the inequality.
        assert 0 <= kernel.certificate.slack <= min(slacks)
        assert min(slacks) - kernel.certificate.slack <= (r + 1) * 2 * unit
    floats = np.array([[float(entry) for entry in row] for row in rows])
    assert floats == pytest.approx(kernel.matrix(), rel=1e-9, abs=3e-12)


@given(
    parts=st.lists(st.integers(1, 10**6), min_size=1, max_size=9),
    epsilon=st.floats(1e-4, 30.0),
    name=st.sampled_from(list(MAKERS)),
)
def test_drift_bounds_what_the_prior_moves(parts: list[int], epsilon: float, name: str) -> None:
    q = np.array(parts) / sum(parts)
    kernel = MAKERS[name](q, epsilon)
    exact = [Fraction(float(mass)) for mass in kernel.prior.masses]
    mass = sum(exact)
    rows = probabilities(kernel)
    after = [sum(m * row[j] for m, row in zip(exact, rows, strict=True)) for j in range(len(q))]
    moved = sum(abs(a - m) for a, m in zip(after, exact, strict=True)) / mass / 2
    assert moved <= kernel.drift < 1e-11
    # The masses are rounded to the bits of the weights first: less than one unit each.
    assert kernel.drift - moved <= Fraction(5 * len(q), 1 << kernel.certificate.bits)


def test_certificate_agrees_with_the_general_one() -> None:
    for maker in MAKERS.values():
        kernel = maker(REFERENCE, 2.0)
        general = certify_kernel(kernel.weights(), kernel.certificate.bits, Guarantee(2.0))
        assert general.constraints == kernel.certificate.constraints
        assert general.ratio == kernel.certificate.ratio
        rounded = quantise_kernel(kernel.matrix(), Guarantee(2.0), row=kernel.prior.masses)
        assert rounded.matrix() == pytest.approx(kernel.matrix(), abs=1e-9)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_broken_integers_are_refused(maker: Maker) -> None:
    rows = maker(REFERENCE, 1.0).exact.rows
    certify_rows(rows, 1.0)
    with pytest.raises(NotPrivateError, match="column"):
        certify_rows(rows, 0.999)
    for place in range(4):
        more = list(rows.extra)
        more[place] += more[place] >> 20
        with pytest.raises(NotPrivateError, match="breaks 1-LDP"):
            certify_rows(replace(rows, extra=tuple(more)), 1.0)
    taken = rows.base[0] >> 20
    base = (rows.base[0] - taken, *rows.base[1:])
    # The last row of a staircase has no rest that takes up what is missing.
    extra = (*rows.extra[:-1], rows.extra[-1] + (taken if rows.staircase else 0))
    with pytest.raises(NotPrivateError, match="column 0 of the kernel breaks 1-LDP"):
        certify_rows(replace(rows, base=base, extra=extra), 1.0)
    with pytest.raises(NotPrivateError, match="negative"):
        certify_rows(replace(rows, base=(-1, *rows.base[1:])), 1.0)
    with pytest.raises(NotPrivateError, match="does not sum"):
        certify_rows(replace(rows, extra=((1 << rows.bits) + 1, *rows.extra[1:])), 1.0)


@given(
    data=st.data(),
    staircase=st.booleans(),
    epsilon=st.sampled_from([0.5, 1.0, 3.0]),
    n=st.integers(2, 4),
)
def test_what_is_certified_is_private(
    data: st.DataObject, staircase: bool, epsilon: float, n: int
) -> None:
    small = st.lists(st.integers(0, 40), min_size=n, max_size=n).map(tuple)
    base, extra, shares = data.draw(small), data.draw(small), data.draw(small)
    if staircase:
        extra = (*extra[:-1], 128 - sum(base[:-1]))
    rows = LayeredRows(7, base, extra, shares, staircase)
    try:
        slack = certify_rows(rows, epsilon).slack
    except NotPrivateError:
        return
    assert all(sum(row) == 128 for row in rows.weights())
    exact = certify_kernel(rows.weights(), 7, Guarantee(epsilon))
    assert 0 <= slack <= exact.slack


def test_the_rest_of_other_rows_counts() -> None:
    rows = LayeredRows(7, (20, 20), (40, 8), (1, 0), staircase=False)
    assert rows.weights() == [[108, 20], [100, 28]]
    certify_rows(rows, 0.5)
    moved = replace(rows, extra=(0, 88), base=(20, 20), shares=(1, 0))
    assert moved.weights() == [[108, 20], [20, 108]]
    with pytest.raises(NotPrivateError, match="breaks"):
        certify_rows(moved, 1.6)
    nowhere = replace(rows, shares=(0, 0))
    with pytest.raises(NotPrivateError, match="row 0 of the kernel does not sum"):
        certify_rows(nowhere, 5.0)


def test_drift_sees_a_kernel_that_moves_the_prior() -> None:
    rows = minimax_kernel([0.5, 0.5], 1.0).exact.rows
    assert drift(rows, [1, 3]) > Fraction(1, 10)


@pytest.mark.parametrize("staircase", [True, False])
@pytest.mark.parametrize("bits", [3, 4, 6])
def test_all_integers_together_give_the_weights(bits: int, staircase: bool) -> None:
    base, extra = (1, 0, 2, 0), (2, 1, 3, (1 << bits) - 3 if staircase else 1)
    rows = LayeredRows(bits, base, extra, (2, 0, 3, 1), staircase)
    drawn = np.arange(1 << bits, dtype=np.uint8) << np.uint8(8 - bits)
    for i, weights in enumerate(rows.weights()):
        assert sum(weights) == 1 << bits
        given = BytesIO(drawn.tobytes())
        found = Counter(rows.draw(np.full(1 << bits, i), given.read).tolist())
        assert [found[j] for j in range(4)] == weights


def by_hand(rows: LayeredRows, i: int, u: int) -> int:
    """Return the letter of u: the base, the row's own, and the rest split by rounded shares."""
    base, shares = list(accumulate(rows.base)), list(accumulate(rows.shares, initial=0))
    total = base[i - 1] * (i > 0) if rows.staircase else base[-1]
    if u < total:
        return sum(c <= u for c in base)
    if u < total + rows.extra[i]:
        return i
    first = i + 1 if rows.staircase else 0
    rest, over = (1 << rows.bits) - total - rows.extra[i], shares[-1] - shares[first]
    marks = [rest * (c - shares[first]) // over for c in shares[first:]]
    return first + sum(mark <= u - total - rows.extra[i] for mark in marks) - 1


def layers_of(rows: LayeredRows, i: int) -> tuple[int, int, int]:
    """The base of a row in all, what it splits, and the sum of the shares that it is split over."""
    base = sum(rows.base[:i] if rows.staircase else rows.base)
    shares = sum(rows.shares[i + 1 :] if rows.staircase else rows.shares)
    return base, (1 << rows.bits) - base - rows.extra[i], shares


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0, 500.0])
@pytest.mark.parametrize("q", PRIORS, ids=str)
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_integers_next_to_every_border(maker: Maker, q: list[float], epsilon: float) -> None:
    """Each border of each layer, from below and from above."""
    rows = maker(q, epsilon).exact.rows
    bits, n = rows.bits, rows.size
    size = -(-bits // 8)
    for i in range(n):
        sums = list(accumulate(rows.row(i)))
        base, rest, over = layers_of(rows, i)
        own = (1 << bits) - rest
        shares = [rest * c // (over or 1) for c in rows.share_sums]
        borders = {*sums, *rows.base_sums, base, own, *(own + c for c in shares)}
        near = {
            b + step
            for b in borders
            for shift in (0, 1, 5, bits - 60, bits - 53, bits - 50, bits - 45)
            for step in (-(1 << shift), 0, 1 << shift, -(1 << shift) - 1)
        }
        chosen = sorted(u for u in near if 0 <= u < 1 << bits)
        for u in chosen:
            given = (u << (8 * size - bits)).to_bytes(size)
            found = rows.draw(np.array([i]), BytesIO(given).read)
            assert found.tolist() == [by_hand(rows, i, u)]


@pytest.mark.parametrize("size", [10, 10_000])
def test_counts_of_what_is_at_most(size: int) -> None:
    rng = np.random.default_rng(1)
    sums, values = np.sort(rng.integers(0, size // 3, size)), rng.integers(-1, size // 3 + 1, 500)
    found = count_at_most(sums, values)
    assert found.tolist() == [np.count_nonzero(sums <= value) for value in values]


def check_law(letters: object, law: np.ndarray) -> None:
    found = Counter(np.asarray(letters).tolist())
    assert set(found) <= set(range(law.size))
    assert law.min() * DRAWS >= 5
    observed = [found[i] for i in range(law.size)]
    assert chisquare(observed, law / law.sum() * DRAWS).pvalue > FALSE_ALARM


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_releases_follow_the_rows(maker: Maker) -> None:
    kernel = maker(REFERENCE, 1.5)
    for letter in range(5):
        own = np.full(DRAWS, letter)
        check_law(kernel.release(own), kernel.matrix()[letter])
        check_law(kernel.simulate(own, np.random.default_rng(letter)), kernel.matrix()[letter])


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_releases_from_counts_follow_pk(maker: Maker) -> None:
    kernel, counts = maker(REFERENCE, 2.5), np.array([4, 0, 1, 0, 3])
    law = kernel.apply(counts / 8)
    check_law(kernel.release_from(np.tile(counts, (DRAWS, 1))), law)
    large = [[Fraction(int(c), 8 * 10**30) for c in counts]] * DRAWS
    check_law(kernel.release_from(large), law)
    check_law(kernel.simulate_from(large, np.random.default_rng(0)), law)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_releases_of_many_words_follow_the_rows(maker: Maker) -> None:
    kernel = maker([0.1, 0.2, 0.3, 0.4], 3.0)
    assert kernel.certificate.bits < 200
    wide = maker([1e-60, 0.5, 0.5], 0.5)
    assert wide.certificate.bits > 200
    own = np.full(DRAWS, 1)
    found = np.asarray(wide.release(own))
    assert set(found.tolist()) <= {1, 2}
    kept = float(wide.diagonal[1])
    observed = [np.count_nonzero(found == 1), np.count_nonzero(found == 2)]
    assert chisquare(observed, [kept * DRAWS, (1 - kept) * DRAWS]).pvalue > FALSE_ALARM


def test_letters_keep_their_names() -> None:
    kernel = minimax_kernel([0.2, 0.3, 0.5], 30.0, letters=["c", ("a", 1), "b"])
    assert kernel.release("c") == "c"
    assert kernel.release(("a", 1)) == ("a", 1)
    assert kernel.release(["b", "c", "b"]) == ["b", "c", "b"]
    assert kernel.release_from([0, 0, 7]) == "b"
    assert kernel.release_from([[1, 0, 0], [0, 0, 1]]) == ["c", "b"]
    plain = leximin_kernel([0.2, 0.3, 0.5], 30.0)
    assert plain.release(1) == 1
    assert np.asarray(plain.release([2, 0])).tolist() == [2, 0]
    assert np.asarray(plain.release([])).tolist() == []


@pytest.mark.parametrize("own", ["z", 3, None, ["a", "z"], [["a"]]])
def test_unknown_names_are_refused_without_showing_them(own: object) -> None:
    kernel = minimax_kernel([0.4, 0.6], 1.0, letters=["a", "b"])
    with pytest.raises(ParameterError, match="does not have") as caught:
        kernel.release(own)
    assert "z" not in str(caught.value)


def test_release_uses_the_system_and_takes_no_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = minimax_kernel(REFERENCE, 1.0)
    assert not {"rng", "seed"} & set(inspect.signature(kernel.release).parameters)
    assert not {"rng", "seed"} & set(inspect.signature(kernel.release_from).parameters)
    # The lowest integer falls into the first layer of row 2 by mass: the letter of least mass.
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    assert kernel.release(3) == 1
    assert kernel.release_from([1, 1, 1, 1, 1]) == 1


def test_simulations_repeat_with_their_seed() -> None:
    kernel, own = leximin_kernel(REFERENCE, 1.0), np.arange(5).repeat(20)
    first = kernel.simulate(own, np.random.default_rng(1))
    again = kernel.simulate(own, np.random.default_rng(1))
    assert np.array_equal(np.asarray(first), np.asarray(again))
    with pytest.raises(ParameterError, match="rng"):
        kernel.simulate(own, 1)  # type: ignore[arg-type]


def test_twenty_thousand_letters_are_certified_and_released() -> None:
    rng = np.random.default_rng(2)
    q = rng.random(20_000) + 1e-6
    for maker in MAKERS.values():
        kernel = maker(q / q.sum(), 12.0)
        assert kernel.certificate.slack >= 0
        assert kernel.drift < 1e-15
        own = rng.integers(20_000, size=50_000)
        kept = np.count_nonzero(np.asarray(kernel.release(own)) == own)
        expected = kernel.diagonal[own]
        spread = np.sqrt((expected * (1 - expected)).sum())
        assert abs(kept - expected.sum()) < 7 * spread
