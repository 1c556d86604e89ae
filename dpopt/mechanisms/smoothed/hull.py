"""Distribution reduction: only the vertices of the convex hull of the set matter (Prop. 7)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Matrix, Vector, frozen

_SUM_TOLERANCE = 1e-9
_LARGEST_DIMENSION = 8


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

    The hull is computed in coordinates of the affine hull, scaled to about 1; with m = 2 the
    vertices are the smallest and the largest share, exactly. Equal distributions count once. A
    point that floating point cannot tell from the hull of the others may be left out; where the
    hull cannot be computed, all are kept, which changes no value (`distribution_reduction`).

    Args:
        distributions: laws of one record, shape (l, m).

    Returns:
        Increasing indices, shape (vertices,).

    Raises:
        ParameterError: if they are no laws, or their affine hull has more than 8 dimensions
            and fewer than all can be vertices.
    """
    rows = checked_distributions(distributions)
    _, first = np.unique(rows, axis=0, return_index=True)
    distinct = np.sort(first).astype(np.int64)
    points = rows[distinct]
    if rows.shape[1] == 2:
        ends = {int(points[:, 0].argmin()), int(points[:, 0].argmax())}
        return distinct[sorted(ends)]
    return distinct[_vertices(points)]


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


def _vertices(points: Matrix) -> IntVector:
    """Return the vertices among distinct points, as increasing indices."""
    count = points.shape[0]
    everything = np.arange(count, dtype=np.int64)
    coordinates = _affine(points)
    dimension = coordinates.shape[1]
    if dimension == 0:
        return everything[:1]
    if dimension == 1:
        line = coordinates[:, 0]
        return np.unique([line.argmin(), line.argmax()]).astype(np.int64)
    if count == dimension + 1:
        return everything
    if dimension > _LARGEST_DIMENSION:
        raise ParameterError(
            f"distributions span {dimension} dimensions; their hull is computed for at most "
            f"{_LARGEST_DIMENSION}, or for as many distributions as dimensions and one more."
        )
    from scipy.spatial import ConvexHull, QhullError

    try:
        found = ConvexHull(coordinates).vertices
    except QhullError:
        return everything
    return np.sort(found).astype(np.int64)


def _affine(points: Matrix) -> Matrix:
    """Return coordinates in the affine hull, shape (points, dimension), each of about size 1."""
    centred: Matrix = points - points.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    # Below this the differences are the rounding of probabilities, which are of size 1.
    noise = 4.0 * np.finfo(float).eps * max(points.shape) * max(1.0, float(sizes[0]))
    kept: Vector = left[:, sizes > noise] * np.sqrt(points.shape[0])
    return kept
