"""Histograms of n records over m categories, and expectations when each record has its own pmf.

*Listing*: all histograms in order, their indices, and their neighbours by one replaced record.
*Hulls*: an expectation is linear in the distribution of each record, so that only the vertices of
the convex hull of the possible distributions matter. Floats propose which distributions to drop,
and rationals decide: each dropped one is covered by a mixture of the kept ones that is nowhere
smaller, up to a factor that `dropping_loss` accounts for. *Expectations*: E V(histogram) for n
records drawn from given distributions, and its maximum over all choices of these
(`largest_expectation`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations

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

# Entries of the table of all histograms, 160 MB.
LARGEST_TABLE = 20_000_000
# Fraction by which a mixture may be below the distribution that it covers: the rounding of four
# additions.
_GIVEN_AWAY = Fraction(1, 1 << 50)
# Range of logarithms up to which the recursion runs in doubles.
_DOUBLE_RANGE = 690.0


def histogram_count(records: int, categories: int) -> int:
    """Return C(n + m - 1, m - 1), the number of histograms of n records over m categories."""
    return math.comb(records + categories - 1, categories - 1)


def histograms(records: int, categories: int) -> IntMatrix:
    """Return all histograms of n records over m categories, shape (C(n + m - 1, m - 1), m).

    Their order is lexicographic: the first is (0, ..., 0, n), the last (n, 0, ..., 0); with m = 2
    the row index is the number of records in the first category.

    Args:
        records: n, at least 0.
        categories: m, at least 1.

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
    # Each pass appends a column: a row with r remaining records becomes r + 1 rows, value 0..r.
    columns: list[IntVector] = []
    remaining = np.array([n], dtype=np.int64)
    for _ in range(m - 1):
        repeats = remaining + 1
        starts = np.cumsum(repeats) - repeats
        value = np.arange(int(repeats.sum()), dtype=np.int64) - np.repeat(starts, repeats)
        columns = [np.repeat(column, repeats) for column in columns]
        columns.append(value)
        remaining = np.repeat(remaining, repeats) - value
    table = np.stack([*columns, remaining], axis=1)
    table.setflags(write=False)
    return table


def index_of(rows: npt.ArrayLike) -> IntVector:
    """Return the index of each histogram in the order of `histograms`.

    The index is sum_j C(r_j + m - j - 1, m - j - 1) - C(r_{j+1} + m - j - 1, m - j - 1), with r_j
    the records in categories j and above; term j counts the histograms that agree before category
    j and have a smaller count in it. The rows may differ in their number of records.
    """
    table = np.asarray(rows, dtype=np.int64)
    m = table.shape[1]
    remaining = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    largest = int(remaining.max(initial=0))
    if largest > LARGEST_TABLE or histogram_count(largest, m) > np.iinfo(np.int64).max:
        raise ParameterError(f"records is {largest} for {m} categories; too many to number them.")
    indices = np.zeros(table.shape[0], dtype=np.int64)
    for j in range(m - 1):
        later = m - j - 1
        # counts[r]: histograms of at most r records over the later categories.
        counts = np.array([math.comb(r + later, later) for r in range(largest + 1)], dtype=np.int64)
        indices += counts[remaining[:, j]] - counts[remaining[:, j + 1]]
    return indices


def replacements(table: IntMatrix) -> IntMatrix:
    """Return all pairs of histograms that differ by one replaced record, each once.

    They are pairs of indices in a table from `histograms`, shape (pairs, 2).
    """
    eye, blocks = np.eye(table.shape[1], dtype=np.int64), list[IntMatrix]()
    for a, b in combinations(range(len(eye)), 2):
        # Rows with a record in category a, and the indices of the rows with it moved to b.
        sources = np.flatnonzero(table[:, a] > 0)
        blocks.append(np.stack([sources, index_of(table[sources] - eye[a] + eye[b])], axis=1))
    return np.concatenate(blocks)


def neighbours(histogram: npt.ArrayLike) -> IntMatrix:
    """Return the histograms that differ from one, shape (m,), by one replaced record.

    Their shape is (k (m - 1), m) for k categories with a count above 0.
    """
    row = np.asarray(histogram, dtype=np.int64)
    eye = np.eye(row.size, dtype=np.int64)
    # Axes: category a that a record leaves, b that it enters, counts.
    moves = eye[None, :] - eye[:, None]
    return row + moves[(row > 0)[:, None] & (eye == 0)]


def checked_histograms(rows: object, records: int, categories: int) -> IntMatrix:
    """Return the rows as integers, after checking that they are histograms of these sizes."""
    table = _checks.array("histograms", rows)
    fits = table.ndim == 2 and table.shape[1] == categories and table.dtype.kind in "iuf"
    # Counts above n are rejected first, as 64-bit sums could wrap around.
    fits = fits and np.all((table >= 0) & (table <= records) & (table == np.round(table)))
    if not fits or np.any(table.astype(np.int64).sum(axis=1) != records):
        raise ParameterError(
            f"histograms hold {_checks.shown(rows)}; each must be counts of {records} records over "
            f"{categories} categories."
        )
    return table.astype(np.int64)


def checked_distributions(distributions: npt.ArrayLike, categories: int | None = None) -> Matrix:
    """Return distributions of one record divided by their sums, shape (l, m), read-only.

    The sums must be 1 to 1e-9. If there are m = 2 ``categories``, they may be the probabilities of
    the first, shape (l,).
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
    # The sum of what is no distribution may be beyond all floats.
    with np.errstate(over="ignore"):
        sums = rows.sum(axis=1, keepdims=True)
    wrong = np.abs(sums - 1.0) > 1e-9
    if np.any(wrong):
        raise ParameterError(
            f"distributions have a row of sum {digits(float(sums[wrong][0]))}; each must sum to 1."
        )
    # What was divided by its sum is not divided again, so that a row read back is unchanged.
    return frozen(rows / np.where(np.abs(sums - 1.0) <= rows.shape[1] * 2.0**-52, 1.0, sums))


def hull_vertices(distributions: npt.ArrayLike) -> IntVector:
    """Return the rising indices of the distributions that are vertices of the convex hull.

    The expectation of a nonnegative function is linear in the distribution of each record, with
    nonnegative coefficients. So a distribution p is dropped only if a mixture of kept ones is at
    least p / (1 + 2^-50) in every category: weights are proposed in floats, solved for in
    rationals, and the inequalities decided exactly; without a proof p is kept. With m = 2 the
    vertices are the smallest and the largest probability of the first category. Equal
    distributions count once.

    Args:
        distributions: distributions of one record, shape (l, m); at most 100,000 distinct ones for
            m > 2.

    Raises:
        ParameterError: if the rows are no distributions, or too many.
    """
    rows = checked_distributions(distributions)
    if rows.shape[1] == 2:
        return np.unique(extremes(rows)).astype(np.int64)
    _, first = np.unique(rows, axis=0, return_index=True)
    # First occurrences in the given order, not in the sorted order of np.unique.
    distinct = np.sort(first).astype(np.int64)
    # Distinct distributions that are reduced to their hull.
    if distinct.size > 100_000:
        raise ParameterError(
            f"distributions hold {distinct.size} distinct rows; at most 100000 are reduced "
            "to their hull."
        )
    return distinct[_vertices(rows[distinct])]


def dropping_loss(records: int) -> float:
    """Return the most by which dropped distributions could raise a log expectation."""
    return records * math.log1p(float(_GIVEN_AWAY))


def binary_share(pmf: Vector) -> Share:
    """Return a pmf over two categories as a `Share` of the first, the smaller entry exact."""
    one, zero = float(pmf[0]), float(pmf[1])
    return Share(one, 1.0 - one) if one <= zero else Share(1.0 - zero, zero)


def extremes(rows: Matrix) -> tuple[int, int]:
    """Return the rows with the smallest and the largest probability of the first category."""
    exact = [binary_share(row).exact for row in rows]
    indices = range(len(exact))
    return min(indices, key=exact.__getitem__), max(indices, key=exact.__getitem__)


def _vertices(points: Matrix) -> IntVector:
    """Return the vertices among distinct points, as increasing indices.

    Each point is covered by the vertices so far, or a plane separates it from all of them; then the
    farthest point beyond that plane is a vertex too, until the point is covered or is the farthest
    itself.
    """
    homogeneous = _homogeneous(points)
    vertices = [_first(points, np.arange(len(points)))]
    for index in track(range(len(points)), "hull of the distributions"):
        while index not in vertices and not _covered(points[vertices], points[index]):
            scale = _relative(points[index])
            columns, target = homogeneous[vertices] * scale, homogeneous[index] * scale
            # The normal of a plane that separates the point from the vertices.
            normal = (target - columns.T @ _weights(columns, target)[0]) * scale
            heights = homogeneous @ normal
            top = float(heights.max())
            # Relative difference of heights above a plane that counts as a tie.
            farthest = np.flatnonzero(heights >= top - 1e-12 * abs(top))
            has_farther = 0.0 < heights[index] < top and not set(farthest.tolist()) & set(vertices)
            vertices.append(_first(points, farthest) if has_farther else index)
    return np.array(sorted(vertices), dtype=np.int64)


def _first(points: Matrix, indices: IntVector) -> int:
    """Return the index of the lexicographically largest of some points, which is a vertex."""
    return int(indices[np.lexsort(points[indices].T[::-1])[-1]])


def _covered(points: Matrix, point: Vector) -> bool:
    """Whether a mixture of the points is proved to cover a point.

    Weights are proposed in two coordinate systems: relative to the point, where its smallest entry
    counts as much as its largest; and, for flat sets, in the affine hull scaled to size 1.
    """
    scale = _relative(point)
    weights, distance = _weights(_homogeneous(points) * scale, np.append(point, 1.0) * scale)
    # Distance from the nearest mixture above which a point is outside the hull.
    if distance > 1e-6 or _proved(points, point, weights):
        return distance <= 1e-6
    flat = _affine(np.vstack([points, point]))
    weights, _ = _weights(_homogeneous(flat[:-1]), np.append(flat[-1], 1.0))
    return _proved(points, point, weights)


def _homogeneous(points: Matrix) -> Matrix:
    return np.column_stack([points, np.ones(len(points))])


def _relative(point: Vector) -> Vector:
    """Return factors that scale the nonzero entries of a point to 1; 0 for its zeros."""
    return np.append(np.where(point > 0.0, 1.0 / np.maximum(point, 1e-150), 0.0), 1.0)


def _weights(columns: Matrix, target: Vector) -> tuple[Vector, float]:
    """Return the nonnegative row weights of the mixture nearest to a target, and its distance."""
    from scipy.optimize import nnls

    try:
        weights, distance = nnls(columns.T, target)
    except RuntimeError:
        return np.zeros(len(columns)), math.inf
    return weights, float(distance)


def _affine(points: Matrix) -> Matrix:
    """Return coordinates in the affine hull, shape (points, dimension), of about size 1."""
    centred: Matrix = points - points.mean(axis=0)
    directions, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    # Singular values below this are rounding errors of probabilities, which are of size 1.
    noise = 4.0 * np.finfo(float).eps * max(points.shape) * max(1.0, float(sizes[0]))
    return directions[:, sizes > noise] * np.sqrt(points.shape[0])


def _proved(points: Matrix, point: Vector, weights: Vector) -> bool:
    """Decide in rationals whether a mixture of the points with positive weights covers a point.

    The weights are solved for exactly, from as many categories (or the sum) as there are weights.
    """
    # Rows: points with positive weight; columns: categories in which the point is positive.
    support = np.flatnonzero(weights > 0.0)
    used = np.flatnonzero(point > 0.0)
    if not 0 < support.size <= used.size + 1:
        return False
    chosen = points[np.ix_(support, used)]
    # As many well-conditioned columns as rows.
    scaled = np.minimum(chosen / point[used], 1e150)
    pivots = qr(_homogeneous(scaled), mode="r", pivoting=True)[1][: support.size].tolist()
    # Equations by category, and last for the sum of the weights.
    sides = np.column_stack([_homogeneous(chosen).T, np.append(point[used], 1.0)]).tolist()
    rows = [[fmpq(*x.as_integer_ratio()) for x in side] for side in sides]
    try:
        matrix = fmpq_mat([rows[c][:-1] for c in pivots])
        solved = matrix.solve(fmpq_mat([[rows[c][-1]] for c in pivots])).entries()
    except ZeroDivisionError:
        return False
    exact = fmpq_mat([[max(x, fmpq(0))] for x in solved])
    total = sum(exact.entries(), fmpq(0))
    mixed = (fmpq_mat([row[:-1] for row in rows[:-1]]) * exact).entries()
    least = total / (1 + fmpq(*_GIVEN_AWAY.as_integer_ratio()))
    return total > 0 and all(s >= least * row[-1] for s, row in zip(mixed, rows, strict=False))


@dataclass(frozen=True)
class MaximumCertificate:
    """The largest E V over compositions of n records, with a bound on all compositions.

    Attributes:
        log_value: natural logarithm of the maximum, -inf if it is 0.
        composition: how many records come from each distribution, summing to n.
        log_bound: upper bound on the logarithm of E V of every composition.
        rounding: bound on the rounding error of ``log_value`` and ``log_bound``.
        method: "one composition", "ends of a V-shape" (total positivity), "every composition" or
            "branch and bound" (V-shaped majorants).
        evaluated: number of compositions whose expectation was computed.
        compositions: number of all compositions over the distributions that matter.
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
        """The proved statement, as a sentence."""
        return (
            f"no composition of the {sum(self.composition)} records has an expectation above the "
            "bound, for the values as computed"
        )

    @property
    def excess(self) -> float:
        """``log_bound`` - ``log_value``, the gap between bound and maximum."""
        return 0.0 if self.log_bound == self.log_value else self.log_bound - self.log_value

    @property
    def slack(self) -> float:
        """Twice the rounding error minus the excess; at least 0 if the claim is proved."""
        return 2.0 * self.rounding - self.excess

    def to_dict(self) -> Json:
        """Return the claim and its proof as plain values; None for the logarithm of 0."""
        fields = ("claim", "method", "evaluated", "compositions", "excess", "slack")
        bound = self.log_bound if math.isfinite(self.log_bound) else None
        return {**{name: getattr(self, name) for name in fields}, "log_bound": bound}


def largest_expectation(
    log_values: npt.ArrayLike, records: int, categories: int, vertices: npt.ArrayLike
) -> MaximumCertificate:
    """Return the largest E V(x) over compositions of n records, at the first that attains it.

    Averaging over one record drawn from p maps a function V of histograms of k records to one of
    k - 1 records: (S_p V)[h] = sum_c p_c V[h + e_c], with positive terms only. For n = 1, V = (0.1,
    0.5) at the histograms (0, 1) and (1, 0) and p = (0.3, 0.7), this is 0.3 * 0.5 + 0.7 * 0.1 =
    0.22. E V for n_1 records from p_1, n_2 from p_2, ... is S_{p_1}^{n_1} ... S_{p_l}^{n_l} V at
    the empty histogram. Functions with the same first vertices are shared, level by level:
    C(n + l + m - 1, n) values in all.

    The relative error is about n m rounding errors: each step multiplies and adds m times, the
    distributions have up to m roundings, and the ends add an exponential and a logarithm. If the
    logarithms span more than doubles can (about 690), the recursion runs on logarithms, where each
    of the 2 m operations of a step rounds a number of at most the range of log V plus that of the
    log pmfs. ``rounding`` bounds the error in either case.

    Args:
        log_values: log V in the order of `histograms`, shape (N,), -inf for 0.
        records: n, at least 1; for the sizes see `require_compositions`.
        categories: m, at least 2.
        vertices: p_1, ..., p_l, distributions of one record, shape (l, m); see `hull_vertices`.
    """
    n, m, values = records, categories, np.asarray(log_values, dtype=np.float64)
    pmfs = checked_distributions(vertices, m)
    # Pairs per second, for the estimate of time.
    expect("compositions of distributions", math.comb(n + len(pmfs) + m - 1, n), 3e7)
    top, evaluated = float(values.max()), math.comb(n + len(pmfs) - 1, n)
    every = "every composition", evaluated, evaluated
    if top == -math.inf:
        return MaximumCertificate(top, (n,) + (0,) * (len(pmfs) - 1), top, 0.0, *every)
    finite, least = values[np.isfinite(values)], -math.log(float(pmfs[pmfs > 0].min()))
    spread = float(finite.max() - finite.min())
    # Whether no expectation that matters underflows if V is scaled to a maximum of 1.
    linear = spread + (n * least if finite.size < values.size else 0.0) < _DOUBLE_RANGE
    # Axes of state: histogram, function. ends[-1][j]: functions whose last vertex is at most j.
    state = (np.exp(values - top) if linear else values - top)[:, None]
    ends = [np.ones(len(pmfs), dtype=np.int64)]
    for remaining in track(range(n - 1, -1, -1), "compositions of distributions"):
        state = _with_record(state, remaining, pmfs, ends[-1], linear=linear)
        ends.append(np.cumsum(ends[-1]))
    best = int(np.argmax(state[0]))
    value = float(state[0, best])
    if linear:
        value = math.log(value) if value > 0.0 else -math.inf
    value += top
    errors = n * (m + 2) + _DOUBLE_RANGE + 8
    if not linear:
        reach = spread + n * least + 4
        errors = n * m * (reach + 1) + reach + 8
    rounding = 2.0**-52 * (errors + (abs(value) if math.isfinite(value) else 0.0))
    return MaximumCertificate(value, _composition(best, ends), value + rounding, rounding, *every)


def _with_record(
    state: Matrix, records: int, pmfs: Matrix, ends: IntVector, *, linear: bool
) -> Matrix:
    """Return S_p of every function that may be continued with p, for every vertex p.

    The state holds V, or else log V, at histograms of records + 1 records, shape (histograms,
    functions), in the order of their last vertex. Only the first ends[j] functions, whose last
    vertex is j or an earlier one, are continued with vertex j: each composition occurs once.
    """
    table = histograms(records, pmfs.shape[1])
    # extended[c][h] is V[h + e_c]; axes of state: histogram, function.
    extended = [state[index_of(table + more)] for more in np.eye(pmfs.shape[1], dtype=np.int64)]
    times, plus = (np.multiply, np.add) if linear else (np.add, np.logaddexp)
    with np.errstate(divide="ignore"):
        factors = pmfs if linear else np.log(pmfs)
    functions = []
    for pmf, end in zip(factors, ends.tolist(), strict=True):
        terms = (times(p, part[:, :end]) for p, part in zip(pmf, extended, strict=True))
        functions.append(reduce(lambda total, term: plus(total, term, out=total), terms))
    return np.concatenate(functions, axis=1)


def _composition(index: int, ends: list[IntVector]) -> tuple[int, ...]:
    """Return how many records come from each vertex in the function at ``index``.

    Walks back through the levels: the functions of a level are sorted by their last vertex.
    """
    # starts[j]: first function of a level whose last vertex is j.
    counts = [0] * ends[0].size
    for sizes in reversed(ends[:-1]):
        starts = np.cumsum(sizes) - sizes
        vertex = int(np.searchsorted(starts, index, side="right")) - 1
        counts[vertex] += 1
        index -= int(starts[vertex])
    return tuple(counts)


def require_compositions(n: int, m: int, vertices: int) -> None:
    """Check that `largest_expectation` has not too much to do."""
    if max(n, m, vertices) < 10**6:
        work = math.comb(n + vertices + m - 1, n)
        level = max(
            math.comb(s + vertices - 1, s) * histogram_count(n - s, m)
            for s in range(0, n + 1, max(1, n // 64))
        )
        # Time fixes the pairs of a composition and a histogram, memory those at once: 400 MB.
        if work <= 2 * 10**9 and level <= 5 * 10**7:
            return
    raise ParameterError(
        f"records is {n} with {m} categories and {vertices} vertices: too many compositions and "
        f"histograms; there may be at most 2,000,000,000 pairs of them in all "
        "and 50,000,000 at once. Use fewer records, or merge categories."
    )
