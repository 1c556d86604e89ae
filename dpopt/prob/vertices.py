"""Smoothed delta over any number of categories: every composition of the records (Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import expect, track
from dpopt._types import IntVector, Matrix, Vector
from dpopt.prob.histograms import histogram_count, histograms, index_of
from dpopt.prob.hull import checked_distributions

_LARGEST_WORK = 2 * 10**9
_LARGEST_LEVEL = 5 * 10**7
# Pairs a second.
_SPEED = 3e7
_DOUBLE_RANGE = 690.0


class GeneralMaximum(NamedTuple):
    """The largest expected profile over compositions.

    Attributes:
        log_value: its natural logarithm.
        composition: how many records come from each vertex, summing to n.
        evaluated: number of compositions, all of which were evaluated.
        rounding: what rounding can have changed in any of the logarithms.
    """

    log_value: float
    composition: tuple[int, ...]
    evaluated: int
    rounding: float


def general_smoothed(
    log_values: npt.ArrayLike, records: int, categories: int, vertices: npt.ArrayLike
) -> GeneralMaximum:
    """Return the largest E V(x) over all ways to draw the n records from the vertices.

    Drawing one more record from p turns a function V of histograms of k records into one of k - 1:
    (S_p V)[h] = sum_c p_c V[h + e_c], positive terms only. E V for n_1 records from p_1, n_2 from
    p_2, ... is S_{p_1}^{n_1} ... S_{p_l}^{n_l} V at the empty histogram. Functions with the same
    first vertices are shared: C(n + l + m - 1, n) values in all, level by level.

    The relative error is about n m rounding errors. Where logarithms range over more than doubles
    hold (about 690), the recursion runs on logarithms, and the error is about n m times the
    rounding of the largest |log|: ``rounding`` bounds either.

    Args:
        log_values: log V in the order of `histograms`, shape (N,), -inf for 0.
        records: n, at least 1.
        categories: m, at least 2.
        vertices: p_1, ..., p_l, laws of one record, shape (l, m); see `hull_vertices`.

    Returns:
        The maximum, at the first composition that attains it up to rounding.

    Raises:
        ParameterError: if an argument is out of range, or there are too many pairs of a
            composition and a histogram: above 2e9 in all, or 5e7 held at once.
    """
    n = _checks.integer("records", records, 1)
    m = _checks.integer("categories", categories, 2)
    laws = checked_distributions(vertices, m)
    _require_feasible(n, m, laws.shape[0])
    values = _checked_values(log_values, n, m)
    top, evaluated = float(values.max()), math.comb(n + laws.shape[0] - 1, n)
    if top == -math.inf:
        return GeneralMaximum(top, (n,) + (0,) * (laws.shape[0] - 1), evaluated, 0.0)
    linear = _fits_doubles(values, n, laws)
    state = (np.exp(values - top) if linear else values - top)[:, None]
    ends = [np.ones(laws.shape[0], dtype=np.int64)]
    for left in track(range(n - 1, -1, -1), "compositions of distributions"):
        state = _with_record(state, left, laws, ends[-1], linear=linear)
        ends.append(np.cumsum(ends[-1]))
    best = int(np.argmax(state[0]))
    value = top + _logarithm(float(state[0, best]), linear=linear)
    lost = _rounding(values, n, laws, value, linear=linear)
    return GeneralMaximum(value, _composition(best, ends), evaluated, lost)


def log_composed(
    log_values: npt.ArrayLike,
    records: int,
    categories: int,
    laws: npt.ArrayLike,
    composition: Sequence[int],
) -> tuple[float, float]:
    """Return log E V(h) of one composition, and what rounding can have changed in it.

    Args:
        log_values: log V in the order of `histograms`, shape (N,), -inf for 0.
        records: n, at least 1.
        categories: m, at least 2.
        laws: of one record, shape (l, m).
        composition: how many records come from each law, shape (l,), summing to n.

    Raises:
        ParameterError: if an argument is out of range, or there are too many histograms of at most
            n records: above 2e9.
    """
    n = _checks.integer("records", records, 1)
    m = _checks.integer("categories", categories, 2)
    rows = checked_distributions(laws, m)
    if max(n, m) >= 10**6 or math.comb(n + m, m) > _LARGEST_WORK:
        raise ParameterError(
            f"records is {n} with {m} categories: more than {_LARGEST_WORK:,} histograms of at "
            "most as many records. Use fewer records, or merge categories."
        )
    values, used = _checked_values(log_values, n, m), rows[np.asarray(composition) > 0]
    top, left = float(values.max()), n
    if top == -math.inf:
        return top, 0.0
    linear, one = _fits_doubles(values, n, used), np.ones(1, dtype=np.int64)
    state = (np.exp(values - top) if linear else values - top)[:, None]
    for law in np.repeat(rows, composition, axis=0):
        left -= 1
        state = _with_record(state, left, law[None], one, linear=linear)
    value = top + _logarithm(float(state[0, 0]), linear=linear)
    return value, _rounding(values, n, used, value, linear=linear)


def _logarithm(value: float, *, linear: bool) -> float:
    return value if not linear else math.log(value) if value > 0.0 else -math.inf


def _checked_values(log_values: npt.ArrayLike, n: int, m: int) -> Vector:
    values, wanted = np.asarray(log_values, dtype=np.float64), histogram_count(n, m)
    if values.shape != (wanted,) or not np.all(values < np.inf):
        raise ParameterError(
            f"log_values has shape {values.shape}; it must be ({wanted},) and below infinity."
        )
    return values


def _with_record(
    state: Matrix, left: int, laws: Matrix, ends: IntVector, *, linear: bool
) -> Matrix:
    """Return S_p of every function that may be continued with p, for every vertex p.

    Args:
        state: functions of histograms of left + 1 records, shape (histograms, functions), those
            that end with the first vertex first.
        left: number of records of the new functions.
        laws: the vertices.
        ends: number of functions that end with vertex j or an earlier one, shape (l,); these and
            no others may be continued with vertex j.
        linear: whether the state is V, not log V.
    """
    m = laws.shape[1]
    table = histograms(left, m)
    parts = [state[index_of(table + np.eye(m, dtype=np.int64)[c])] for c in range(m)]
    pieces = []
    for law, end in zip(laws, ends.tolist(), strict=True):
        if linear:
            piece = law[0] * parts[0][:, :end]
            for c in range(1, m):
                piece += law[c] * parts[c][:, :end]
        else:
            with np.errstate(divide="ignore"):
                logs = np.log(law)
            piece = logs[0] + parts[0][:, :end]
            for c in range(1, m):
                piece = np.logaddexp(piece, logs[c] + parts[c][:, :end])
        pieces.append(piece)
    return np.concatenate(pieces, axis=1)


def _composition(place: int, ends: list[IntVector]) -> tuple[int, ...]:
    """Return the counts of the vertices for one of the last functions."""
    counts = [0] * ends[0].size
    for sizes in reversed(ends[:-1]):
        starts = np.cumsum(sizes) - sizes
        vertex = int(np.searchsorted(starts, place, side="right")) - 1
        counts[vertex] += 1
        place -= int(starts[vertex])
    return tuple(counts)


def _fits_doubles(values: Vector, n: int, laws: Matrix) -> bool:
    """Whether no expectation that matters can underflow once V is scaled to a maximum of 1."""
    finite = values[np.isfinite(values)]
    lowest = float(finite.min() - finite.max())
    if finite.size < values.size:
        lowest += n * math.log(float(laws[laws > 0].min()))
    return lowest > -_DOUBLE_RANGE


def _rounding(values: Vector, n: int, laws: Matrix, log_value: float, *, linear: bool) -> float:
    """Bound the rounding error of the logarithm of an expectation.

    In doubles a step multiplies and adds m times, the laws carry m roundings of their own, and the
    start and the end an exponential and a logarithm of at most 690. In logarithms every one of 2 m
    operations of a step rounds a number of at most the range of V and of the laws together.
    """
    m, size = laws.shape[1], abs(log_value) if math.isfinite(log_value) else 0.0
    if linear:
        return 2.0**-52 * (n * (m + 2) + _DOUBLE_RANGE + size + 8)
    finite = values[np.isfinite(values)]
    least = -math.log(float(laws[laws > 0].min()))
    reach = float(finite.max() - finite.min()) + n * least + 4
    return 2.0**-52 * (n * m * (reach + 1) + reach + size + 8)


def _require_feasible(n: int, m: int, vertices: int) -> None:
    if max(n, m, vertices) < 10**6:
        work = math.comb(n + vertices + m - 1, n)
        level = max(
            math.comb(s + vertices - 1, s) * histogram_count(n - s, m)
            for s in range(0, n + 1, max(1, n // 64))
        )
        if work <= _LARGEST_WORK and level <= _LARGEST_LEVEL:
            expect("compositions of distributions", work, _SPEED)
            return
    raise ParameterError(
        f"records is {n} with {m} categories and {vertices} vertices: too many compositions and "
        f"histograms; there may be at most {_LARGEST_WORK:,} pairs of them in all and "
        f"{_LARGEST_LEVEL:,} at once. Use fewer records, or merge categories."
    )
