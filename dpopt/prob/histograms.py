"""Histograms of n records over m categories, and expectations when each record has its own pmf.

Three parts. *Listing*: all histograms in order, their places, their neighbours by one replaced
record. *Hulls*: an expectation is linear in the distribution of each record, so among the
distributions that a record may have only the vertices of their convex hull matter; floats propose
what can be left out, and rationals decide: no distribution is dropped without a mixture of those
kept that is nowhere smaller, up to a factor that `dropping_loss` accounts for. *Expectations*: E
V(histogram) for n records drawn from given distributions, and its maximum over all ways to choose
them (`largest_expectation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat
from scipy.linalg import qr

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._progress import expect, track
from dpopt._types import IntVector, Json, Matrix, Vector, frozen
from dpopt.prob.sum_pmf import Share

IntMatrix = npt.NDArray[np.int64]

LARGEST_TABLE = 20_000_000
_ALLOWED = "integers of at least 0, shape (histograms, categories)"
_SUM_TOLERANCE = 1e-9
_MOST_PMFS = 100_000
# A mixture may be below the distribution that it stands for by this part: the rounding of four
# additions.
_GIVEN_AWAY = Fraction(1, 1 << 50)
_TIED = 1e-12
_FAR = 1e-6
_LARGEST_WORK = 2 * 10**9
_LARGEST_LEVEL = 5 * 10**7
# Pairs a second.
_SPEED = 3e7
_DOUBLE_RANGE = 690.0


def histogram_count(records: int, categories: int) -> int:
    """Return C(n + m - 1, m - 1), the number of histograms of n records over m categories."""
    return math.comb(records + categories - 1, categories - 1)


def histograms(records: int, categories: int) -> IntMatrix:
    """Return all histograms of n records over m categories in lexicographic order.

    The first is (0, ..., 0, n), the last (n, 0, ..., 0); with m = 2 the row is the number of
    records of the first category.

    Args:
        records: n, at least 0.
        categories: m, at least 1.

    Returns:
        Shape (C(n + m - 1, m - 1), m), read-only.

    Raises:
        ParameterError: if an argument is out of range, or the table has more than 2e7 entries.
    """
    n = _checks.integer("records", records, 0)
    m = _checks.integer("categories", categories, 1)
    if m > LARGEST_TABLE or n > LARGEST_TABLE or histogram_count(n, m) * m > LARGEST_TABLE:
        raise ParameterError(
            f"records is {n} and categories {m}; the table of all histograms may have at most "
            f"{LARGEST_TABLE} entries, and this one has more."
        )
    columns: list[IntVector] = []
    left = np.array([n], dtype=np.int64)
    for _ in range(m - 1):
        repeats = left + 1
        starts = np.cumsum(repeats) - repeats
        value = np.arange(int(repeats.sum()), dtype=np.int64) - np.repeat(starts, repeats)
        columns = [np.repeat(column, repeats) for column in columns]
        columns.append(value)
        left = np.repeat(left, repeats) - value
    table = np.stack([*columns, left], axis=1)
    table.setflags(write=False)
    return table


def index_of(rows: npt.ArrayLike) -> IntVector:
    """Return the place of each histogram in the order of `histograms`.

    sum_j C(r_j + m - j - 1, m - j - 1) - C(r_{j+1} + m - j - 1, m - j - 1) with r_j the records
    that are left from category j on: the number of histograms with a smaller count there.

    Args:
        rows: shape (rows, categories), each with the same number of records or not.

    Raises:
        ParameterError: if the rows are no histograms, or places do not fit into 64 bits.
    """
    table = _integers(rows)
    m = table.shape[1]
    left = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    most = int(left.max(initial=0))
    if most > LARGEST_TABLE or histogram_count(most, m) > np.iinfo(np.int64).max:
        raise ParameterError(f"records is {most} for {m} categories; too many to number them.")
    places = np.zeros(table.shape[0], dtype=np.int64)
    for j in range(m - 1):
        free = m - j - 1
        counts = np.array([math.comb(r + free, free) for r in range(most + 1)], dtype=np.int64)
        places += counts[left[:, j]] - counts[left[:, j + 1]]
    return places


def replacements(table: IntMatrix) -> IntMatrix:
    """Return every pair of neighbours among all histograms: one record replaced by another.

    Args:
        table: from `histograms`, shape (N, m).

    Returns:
        Places of both in the table, shape (pairs, 2), each pair once, read-only.
    """
    m = table.shape[1]
    each = [np.empty((0, 2), dtype=np.int64)]
    for a in range(m):
        for b in range(a + 1, m):
            left = np.flatnonzero(table[:, a] > 0)
            each.append(np.stack([left, index_of(_moved(table[left], a, b))], axis=1))
    pairs = np.concatenate(each)
    pairs.setflags(write=False)
    return pairs


def neighbours(histogram: npt.ArrayLike) -> IntMatrix:
    """Return the histograms that one replaced record makes of this one.

    Args:
        histogram: counts, shape (m,).

    Returns:
        Shape (k (m - 1), m) for k categories that occur.
    """
    row = _integers([histogram])
    m = row.shape[1]
    moves = [(a, b) for a in range(m) if row[0, a] > 0 for b in range(m) if b != a]
    rows = [_moved(row, a, b) for a, b in moves]
    return np.concatenate([np.empty((0, m), dtype=np.int64), *rows])


def checked_histograms(rows: object, records: int, categories: int) -> IntMatrix:
    """Return the rows as histograms of so many records over so many categories.

    Raises:
        ParameterError: if they are not.
    """
    table = _integers(rows)
    # Counts above n first: sums of 64 bits could wrap around.
    fits = table.shape[1] == categories and not np.any(table > records)
    if not fits or np.any(table.sum(axis=1) != records):
        raise ParameterError(
            f"a histogram does not fit; it must have {records} records over {categories} "
            "categories."
        )
    return table


def checked_histogram(row: object, records: int, categories: int) -> IntVector:
    """Return the counts of one database as `checked_histograms` does, shape (categories,)."""
    return checked_histograms([row], records, categories)[0]


def _moved(rows: IntMatrix, a: int, b: int) -> IntMatrix:
    moved = rows.copy()
    moved[:, a] -= 1
    moved[:, b] += 1
    return moved


def _integers(rows: object) -> IntMatrix:
    table = _checks.array("histograms", rows)
    if table.ndim != 2 or table.shape[1] < 1:
        raise ParameterError(f"histograms have shape {table.shape}; they must be {_ALLOWED}.")
    if not np.issubdtype(table.dtype, np.integer) and table.size:
        numeric = np.issubdtype(table.dtype, np.floating)
        if not numeric or not np.all((np.abs(table) < 2.0**53) & (table == np.round(table))):
            raise ParameterError(f"histograms hold other values; they must be {_ALLOWED}.")
    counts = table.astype(np.int64)
    if np.any(counts < 0):
        raise ParameterError(f"histograms hold a count below 0; they must be {_ALLOWED}.")
    return counts


def checked_distributions(distributions: npt.ArrayLike, categories: int | None = None) -> Matrix:
    """Return the distributions divided by their sums, shape (l, m), read-only.

    Args:
        distributions: distributions of one record, shape (l, m), l >= 1, m >= 2; for m = 2 also the
            shares of the first category, shape (l,).
        categories: m, where it is known; needed for shares.

    Raises:
        ParameterError: for another shape, a value below 0 or not finite, or a row whose sum is
            not 1 to 1e-9.
    """
    allowed = "distributions of one record, shape (distributions, categories)"
    rows = _checks.floats("distributions", distributions)
    if rows.ndim == 1 and categories == 2:
        if not np.all((rows >= 0) & (rows <= 1)):
            raise ParameterError(f"distributions is {rows.tolist()}; shares must be in [0, 1].")
        rows = np.column_stack([rows, 1.0 - rows])
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] < 2:
        raise ParameterError(f"distributions have shape {rows.shape}; they must be {allowed}.")
    if categories is not None and rows.shape[1] != categories:
        raise ParameterError(
            f"distributions have {rows.shape[1]} categories; they must have {categories}."
        )
    if not np.all(np.isfinite(rows) & (rows >= 0)):
        raise ParameterError("distributions hold a value that is not finite or below 0.")
    sums = rows.sum(axis=1)
    wrong = np.abs(sums - 1.0) > _SUM_TOLERANCE
    if np.any(wrong):
        raise ParameterError(
            f"a distribution has sum {digits(float(sums[wrong][0]))}; each must sum to 1."
        )
    return frozen(rows / unit_sums(sums, rows.shape[1])[:, None])


def unit_sums(sums: Vector, terms: int) -> Vector:
    """Return the sums of rows of probabilities, 1 where they differ from it by rounding only.

    What was divided by its sum once is not divided again: its sum is within ``terms`` roundings of
    1, and a row that is read back from a file stays the same.
    """
    return np.where(np.abs(sums - 1.0) <= terms * 2.0**-52, 1.0, sums)


def hull_vertices(distributions: npt.ArrayLike) -> IntVector:
    """Return which distributions are vertices of the convex hull, in the order given.

    An expectation of what is at least 0 is linear in the distribution of each record, with no
    negative coefficient. So a distribution p may be left out if a mixture of those kept is at least
    p / (1 + 2^-50) in every category, and only then: weights are found in floats, solved for again
    in rationals, and the inequalities decided exactly. What cannot be proved stays. With m = 2 the
    vertices are the smallest and the largest share. Equal distributions count once.

    Args:
        distributions: distributions of one record, shape (l, m); at most 100,000 distinct ones for
            m > 2.

    Returns:
        Increasing indices, shape (vertices,).

    Raises:
        ParameterError: if they are no distributions, or too many.
    """
    rows = checked_distributions(distributions)
    if rows.shape[1] == 2:
        return np.unique(extremes(rows)).astype(np.int64)
    _, first = np.unique(rows, axis=0, return_index=True)
    distinct = np.sort(first).astype(np.int64)
    if distinct.size > _MOST_PMFS:
        raise ParameterError(
            f"pmfs hold {distinct.size} distinct pmfs; at most {_MOST_PMFS} are reduced "
            "to their hull."
        )
    return distinct[_vertices(rows[distinct])]


def distribution_reduction(distributions: npt.ArrayLike) -> Matrix:
    """Return the vertices of the convex hull: no distribution of the set has a larger expectation.

    Args:
        distributions: distributions of one record, shape (l, m).

    Returns:
        Shape (vertices, m), in the order given, read-only.
    """
    rows = checked_distributions(distributions)
    return frozen(rows[hull_vertices(rows)])


def dropping_loss(records: int) -> float:
    """Return what the logarithm of an expectation can lose by all pmfs that were left out."""
    return records * math.log1p(float(_GIVEN_AWAY))


def binary_share(pmf: Vector) -> Share:
    """Return a pmf of two categories by the chance of the first, the smaller number exact."""
    one, zero = float(pmf[0]), float(pmf[1])
    return Share(one, 1.0 - one) if one <= zero else Share(1.0 - zero, zero)


def extremes(rows: Matrix) -> tuple[int, int]:
    """Return the rows of the smallest and of the largest share of the first of two categories."""
    exact = [binary_share(row).exact for row in rows]
    places = range(len(exact))
    return min(places, key=exact.__getitem__), max(places, key=exact.__getitem__)


def _vertices(points: Matrix) -> IntVector:
    """Return the vertices among distinct points, as increasing indices.

    Each point is covered by vertices found so far, or a plane leaves it on the far side of all of
    them; what lies farthest from that plane is a vertex as well, until the point is covered or is
    the farthest itself.
    """
    everything = _homogeneous(points)
    kept = [_first(points, np.arange(len(points)))]
    for place in track(range(len(points)), "hull of the distributions"):
        while place not in kept and not _covered(points[kept], points[place]):
            heights = everything @ _plane(points[kept], points[place])
            top = float(heights.max())
            far = np.flatnonzero(heights >= top - _TIED * abs(top))
            beyond = 0.0 < heights[place] < top and not set(far.tolist()) & set(kept)
            kept.append(_first(points, far) if beyond else place)
    return np.array(sorted(kept), dtype=np.int64)


def _first(points: Matrix, places: IntVector) -> int:
    """Return the place of the lexicographically largest of some points, which is a vertex."""
    return int(places[np.lexsort(points[places].T[::-1])[-1]])


def _covered(points: Matrix, point: Vector) -> bool:
    """Whether some mixture of the points is proved to cover a point.

    Weights are proposed in two coordinates: relative to the point, where its smallest chance counts
    as much as its largest, and in the affine hull, stretched to size 1, for flat sets.
    """
    scale = _relative(point)
    weights, distance = _weights(_homogeneous(points) * scale, np.append(point, 1.0) * scale)
    if distance > _FAR or _proved(points, point, weights):
        return distance <= _FAR
    flat = _affine(np.vstack([points, point]))
    weights, _ = _weights(_homogeneous(flat[:-1]), np.append(flat[-1], 1.0))
    return _proved(points, point, weights)


def _plane(points: Matrix, point: Vector) -> Vector:
    """Return a plane with the points on one side or on it, and a point that they do not cover."""
    scale = _relative(point)
    columns, target = _homogeneous(points) * scale, np.append(point, 1.0) * scale
    return (target - columns.T @ _weights(columns, target)[0]) * scale


def _homogeneous(points: Matrix) -> Matrix:
    return np.column_stack([points, np.ones(len(points))])


def _relative(point: Vector) -> Vector:
    """Return the factors that make all chances of a point 1, 0 where they are 0."""
    return np.append(np.where(point > 0.0, 1.0 / np.maximum(point, 1e-150), 0.0), 1.0)


def _weights(columns: Matrix, target: Vector) -> tuple[Vector, float]:
    """Return the weights of the rows whose mixture comes nearest to a target, and how near."""
    from scipy.optimize import nnls

    try:
        weights, distance = nnls(columns.T, target)
    except RuntimeError:
        return np.zeros(len(columns)), math.inf
    return weights, float(distance)


def _affine(points: Matrix) -> Matrix:
    """Return coordinates in the affine hull, shape (points, dimension), each of about size 1."""
    centred: Matrix = points - points.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    # Below this the differences are the rounding of probabilities, which are of size 1.
    noise = 4.0 * np.finfo(float).eps * max(points.shape) * max(1.0, float(sizes[0]))
    return left[:, sizes > noise] * np.sqrt(points.shape[0])


def _proved(points: Matrix, point: Vector, weights: Vector) -> bool:
    """Decide in rationals whether a mixture of the points with weights above 0 covers a point.

    The weights are solved for again, from as many categories (or the sum) as there are weights.
    """
    chosen = np.flatnonzero(weights > 0.0)
    used = np.flatnonzero(point > 0.0)
    if not 0 < chosen.size <= used.size + 1:
        return False
    table = [[Fraction(x) for x in row] for row in points[np.ix_(chosen, used)].tolist()]
    wanted = [Fraction(x) for x in point[used].tolist()]
    exact = _solved(table, wanted, _pivots(points[np.ix_(chosen, used)] / point[used]))
    total = sum(exact, Fraction(0))
    mixed = (sum(map(Fraction.__mul__, exact, column)) for column in zip(*table, strict=True))
    rest = total / (1 + _GIVEN_AWAY)
    return total > 0 and all(sum_ >= rest * x for sum_, x in zip(mixed, wanted, strict=True))


def _pivots(scaled: Matrix) -> list[int]:
    """Return the strongest columns, one for each row; the last of them all is that of ones."""
    whole = np.column_stack([np.minimum(scaled, 1e150), np.ones(len(scaled))])
    return qr(whole, mode="r", pivoting=True)[1][: len(scaled)].tolist()


def _solved(
    table: list[list[Fraction]], wanted: list[Fraction], columns: list[int]
) -> list[Fraction]:
    """Return weights of the rows that give the columns' wanted sums, those below 0 as 0."""
    whole = [[*row, Fraction(1)] for row in table]
    right = [*wanted, Fraction(1)]
    left = fmpq_mat([[_flint(row[c]) for row in whole] for c in columns])
    try:
        solved = left.solve(fmpq_mat([[_flint(right[c])] for c in columns]))
    except ZeroDivisionError:
        return [Fraction(0)] * len(table)
    values = [solved[i, 0] for i in range(len(table))]
    return [max(Fraction(0), Fraction(int(x.p), int(x.q))) for x in values]


def _flint(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


@dataclass(frozen=True)
class MaximumCertificate:
    """The largest E V over compositions of n records, and why none has a larger one.

    Attributes:
        log_value: its natural logarithm, -inf if it is 0.
        composition: how many records come from each distribution, summing to n.
        log_bound: no composition's logarithm is larger.
        rounding: what rounding can have changed in either.
        method: "one composition", "ends of a V-shape" (total positivity), "every composition" or
            "branch and bound" (V-shaped majorants).
        evaluated: number of compositions whose expectation was computed.
        compositions: number of all, over the distributions that matter.
    """

    log_value: float
    composition: tuple[int, ...]
    log_bound: float
    rounding: float
    method: str
    evaluated: int
    compositions: int

    @property
    def claim(self) -> str:
        """What is proved, in words."""
        return (
            f"no composition of the {sum(self.composition)} records has an expectation above the "
            "bound, for the values as computed"
        )

    @property
    def excess(self) -> float:
        """What is left between the value and the bound, in the logarithm."""
        return 0.0 if self.log_bound == self.log_value else self.log_bound - self.log_value

    @property
    def slack(self) -> float:
        """Twice the rounding allowed, less the excess: at least 0 if the claim is proved."""
        return 2.0 * self.rounding - self.excess

    def to_dict(self) -> Json:
        """Return the claim and what proves it as plain values; None for the logarithm of 0."""
        told = ("claim", "method", "evaluated", "compositions", "excess", "slack")
        bound = self.log_bound if math.isfinite(self.log_bound) else None
        return {**{name: getattr(self, name) for name in told}, "log_bound": bound}


def largest_expectation(
    log_values: npt.ArrayLike, records: int, categories: int, vertices: npt.ArrayLike
) -> MaximumCertificate:
    """Return the largest E V(x) over all ways to draw the n records from the vertices.

    Drawing one more record from p turns a function V of histograms of k records into one of k - 1:
    (S_p V)[h] = sum_c p_c V[h + e_c], positive terms only. For n = 1 and V = (0.1, 0.5) at the
    histograms (0, 1) and (1, 0), p = (0.3, 0.7) gives 0.3 * 0.5 + 0.7 * 0.1 = 0.22. E V for
    n_1 records from p_1, n_2 from p_2, ... is S_{p_1}^{n_1} ... S_{p_l}^{n_l} V at the empty
    histogram. Functions with the same first vertices are shared: C(n + l + m - 1, n) values in all,
    level by level.

    The relative error is about n m rounding errors. Where logarithms range over more than doubles
    hold (about 690), the recursion runs on logarithms, and the error is about n m times the
    rounding of the largest |log|: ``rounding`` bounds either.

    Args:
        log_values: log V in the order of `histograms`, shape (N,), -inf for 0.
        records: n, at least 1.
        categories: m, at least 2.
        vertices: p_1, ..., p_l, distributions of one record, shape (l, m); see `hull_vertices`.

    Returns:
        The maximum, at the first composition that attains it up to rounding.

    Raises:
        ParameterError: if an argument is out of range, or there are too many pairs of a
            composition and a histogram: above 2e9 in all, or 5e7 held at once.
    """
    n = _checks.integer("records", records, 1)
    m = _checks.integer("categories", categories, 2)
    pmfs = checked_distributions(vertices, m)
    require_compositions(n, m, pmfs.shape[0])
    expect("compositions of distributions", math.comb(n + pmfs.shape[0] + m - 1, n), _SPEED)
    values = _checked_values(log_values, n, m)
    top, evaluated = float(values.max()), math.comb(n + pmfs.shape[0] - 1, n)
    every = "every composition", evaluated, evaluated
    if top == -math.inf:
        return MaximumCertificate(top, (n,) + (0,) * (pmfs.shape[0] - 1), top, 0.0, *every)
    linear = _fits_doubles(values, n, pmfs)
    state = (np.exp(values - top) if linear else values - top)[:, None]
    ends = [np.ones(pmfs.shape[0], dtype=np.int64)]
    for left in track(range(n - 1, -1, -1), "compositions of distributions"):
        state = _with_record(state, left, pmfs, ends[-1], linear=linear)
        ends.append(np.cumsum(ends[-1]))
    best = int(np.argmax(state[0]))
    value = top + _logarithm(float(state[0, best]), linear=linear)
    lost = _rounding(values, n, pmfs, value, linear=linear)
    return MaximumCertificate(value, _composition(best, ends), value + lost, lost, *every)


def log_composed(
    log_values: npt.ArrayLike,
    records: int,
    categories: int,
    pmfs: npt.ArrayLike,
    composition: Sequence[int],
) -> tuple[float, float]:
    """Return log E V(h) of one composition, and what rounding can have changed in it.

    Args:
        log_values: log V in the order of `histograms`, shape (N,), -inf for 0.
        records: n, at least 1.
        categories: m, at least 2.
        pmfs: of one record, shape (l, m).
        composition: how many records come from each distribution, shape (l,), summing to n.

    Raises:
        ParameterError: if an argument is out of range, or there are too many histograms of at most
            n records: above 2e9.
    """
    n = _checks.integer("records", records, 1)
    m = _checks.integer("categories", categories, 2)
    rows = checked_distributions(pmfs, m)
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
    for pmf in np.repeat(rows, composition, axis=0):
        left -= 1
        state = _with_record(state, left, pmf[None], one, linear=linear)
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
    state: Matrix, left: int, pmfs: Matrix, ends: IntVector, *, linear: bool
) -> Matrix:
    """Return S_p of every function that may be continued with p, for every vertex p.

    Args:
        state: functions of histograms of left + 1 records, shape (histograms, functions), those
            that end with the first vertex first.
        left: number of records of the new functions.
        pmfs: the vertices.
        ends: number of functions that end with vertex j or an earlier one, shape (l,); these and
            no others may be continued with vertex j.
        linear: whether the state is V, not log V.
    """
    m = pmfs.shape[1]
    table = histograms(left, m)
    parts = [state[index_of(table + np.eye(m, dtype=np.int64)[c])] for c in range(m)]
    pieces = []
    with np.errstate(divide="ignore"):
        given = pmfs if linear else np.log(pmfs)
    for pmf, end in zip(given, ends.tolist(), strict=True):
        times, plus = (np.multiply, np.add) if linear else (np.add, np.logaddexp)
        piece = times(pmf[0], parts[0][:, :end])
        for c in range(1, m):
            plus(piece, times(pmf[c], parts[c][:, :end]), out=piece)
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


def _fits_doubles(values: Vector, n: int, pmfs: Matrix) -> bool:
    """Whether no expectation that matters can underflow once V is scaled to a maximum of 1."""
    finite = values[np.isfinite(values)]
    lowest = float(finite.min() - finite.max())
    if finite.size < values.size:
        lowest += n * math.log(float(pmfs[pmfs > 0].min()))
    return lowest > -_DOUBLE_RANGE


def _rounding(values: Vector, n: int, pmfs: Matrix, log_value: float, *, linear: bool) -> float:
    """Bound the rounding error of the logarithm of an expectation.

    In doubles a step multiplies and adds m times, the distributions carry m roundings of their own,
    and the start and the end an exponential and a logarithm of at most 690. In logarithms every one
    of 2 m operations of a step rounds a number of at most the range of V and of the distributions
    together.
    """
    m, size = pmfs.shape[1], abs(log_value) if math.isfinite(log_value) else 0.0
    if linear:
        return 2.0**-52 * (n * (m + 2) + _DOUBLE_RANGE + size + 8)
    finite = values[np.isfinite(values)]
    least = -math.log(float(pmfs[pmfs > 0].min()))
    reach = float(finite.max() - finite.min()) + n * least + 4
    return 2.0**-52 * (n * m * (reach + 1) + reach + size + 8)


def require_compositions(n: int, m: int, vertices: int) -> None:
    """Refuse what `largest_expectation` does, from the sizes alone.

    Raises:
        ParameterError: if there are too many pairs of a composition and a histogram.
    """
    if max(n, m, vertices) < 10**6:
        work = math.comb(n + vertices + m - 1, n)
        level = max(
            math.comb(s + vertices - 1, s) * histogram_count(n - s, m)
            for s in range(0, n + 1, max(1, n // 64))
        )
        if work <= _LARGEST_WORK and level <= _LARGEST_LEVEL:
            return
    raise ParameterError(
        f"records is {n} with {m} categories and {vertices} vertices: too many compositions and "
        f"histograms; there may be at most {_LARGEST_WORK:,} pairs of them in all and "
        f"{_LARGEST_LEVEL:,} at once. Use fewer records, or merge categories."
    )
