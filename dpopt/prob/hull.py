"""Distribution reduction: only the vertices of the convex hull of the set matter (Prop. 7).

Floats propose what can be left out, and rationals decide: no law is dropped without a mixture of
those kept that is nowhere smaller, up to a factor that `dropping_loss` accounts for.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._progress import track
from dpopt._types import IntVector, Matrix, Vector, frozen
from dpopt.prob.sum_law import Share

_SUM_TOLERANCE = 1e-9
_MOST_LAWS = 100_000
# A mixture may be below the law that it stands for by this part: the rounding of four additions.
_GIVEN_AWAY = Fraction(1, 1 << 50)
_TIED = 1e-12
_FAR = 1e-6


def checked_distributions(distributions: npt.ArrayLike, categories: int | None = None) -> Matrix:
    """Return the distributions divided by their sums, shape (l, m), read-only.

    Args:
        distributions: laws of one record, shape (l, m), l >= 1, m >= 2; for m = 2 also the shares
            of the first category, shape (l,).
        categories: m, where it is known; needed for shares.

    Raises:
        ParameterError: for another shape, a value below 0 or not finite, or a row whose sum is
            not 1 to 1e-9.
    """
    allowed = "laws of one record, shape (distributions, categories)"
    rows = _checks.floats("distributions", distributions)
    if rows.ndim == 1 and categories == 2:
        if not np.all((rows >= 0) & (rows <= 1)):
            raise ParameterError(f"distributions is {rows.tolist()}; shares must be in [0, 1].")
        rows = np.column_stack([rows, 1.0 - rows])
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] < 2:
        raise ParameterError(f"distributions have shape {rows.shape}; they must be {allowed}.")
    if categories is not None and rows.shape[1] != categories:
        raise ParameterError(
            f"distributions have {rows.shape[1]} categories; the mechanism has {categories}."
        )
    if not np.all(np.isfinite(rows) & (rows >= 0)):
        raise ParameterError("distributions hold a value that is not finite or below 0.")
    sums = rows.sum(axis=1)
    wrong = np.abs(sums - 1.0) > _SUM_TOLERANCE
    if np.any(wrong):
        raise ParameterError(
            f"a distribution has sum {digits(float(sums[wrong][0]))}; each must sum to 1."
        )
    return frozen(rows / sums[:, None])


def hull_vertices(distributions: npt.ArrayLike) -> IntVector:
    """Return which distributions are vertices of the convex hull, in the order given.

    An expected delta is linear in the law of each record, with no negative coefficient. So a law p
    may be left out if a mixture of those kept is at least p / (1 + 2^-50) in every category, and
    only then: weights are found in floats, solved for again in rationals, and the inequalities
    decided exactly. What cannot be proved stays. With m = 2 the vertices are the smallest and the
    largest share. Equal distributions count once.

    Args:
        distributions: laws of one record, shape (l, m); at most 100,000 distinct ones for m > 2.

    Returns:
        Increasing indices, shape (vertices,).

    Raises:
        ParameterError: if they are no laws, or too many.
    """
    rows = checked_distributions(distributions)
    if rows.shape[1] == 2:
        return np.unique(extremes(rows)).astype(np.int64)
    _, first = np.unique(rows, axis=0, return_index=True)
    distinct = np.sort(first).astype(np.int64)
    if distinct.size > _MOST_LAWS:
        raise ParameterError(
            f"distributions hold {distinct.size} distinct laws; at most {_MOST_LAWS} are reduced "
            "to their hull."
        )
    return distinct[_vertices(rows[distinct])]


def distribution_reduction(distributions: npt.ArrayLike) -> Matrix:
    """Return the vertices of the convex hull: smoothed delta over them is that over the set.

    Args:
        distributions: laws of one record, shape (l, m).

    Returns:
        Shape (vertices, m), in the order given, read-only.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Proposition 7.
    """
    rows = checked_distributions(distributions)
    return frozen(rows[hull_vertices(rows)])


def dropping_loss(records: int) -> float:
    """Return what the logarithm of an expectation can lose by all laws that were left out."""
    return records * math.log1p(float(_GIVEN_AWAY))


def binary_share(law: Vector) -> Share:
    """Return a law of two categories by the chance of the first, the smaller number exact."""
    one, zero = float(law[0]), float(law[1])
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
    from scipy.linalg import qr

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
        found = left.solve(fmpq_mat([[_flint(right[c])] for c in columns]))
    except ZeroDivisionError:
        return [Fraction(0)] * len(table)
    values = [found[i, 0] for i in range(len(table))]
    return [max(Fraction(0), Fraction(int(x.p), int(x.q))) for x in values]


def _flint(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)
