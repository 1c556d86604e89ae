"""Programs over cones, and the bound on their optimum that any dual vector gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from dpopt._types import SparseMatrix, Vector
from dpopt.lp.model import Rows
from dpopt.lp.solution import reduced_noise

_UNIT = 2.0**-53
_PASSES = 4
# Rounds; and that they are worth it above this share of the noise, and below this one of the
# largest term.
_POLISH, _FINE, _ROUGH = 30, 1e-3, 1e-3


@dataclass(frozen=True)
class Cone:
    """One cone and the rows that lie in it.

    Attributes:
        kind: "zero", "nonnegative", "second-order" (t, u) with t >= |u|; "semidefinite", the
            triangle of a matrix; "exponential" (x, y, z) with z >= y e^(x / y); "power" (u, z) with
            prod_i u_i^(a_i) >= |z|.
        rows: the rows, one for each entry of the cone.
        size: side of the matrices of a semidefinite cone.
        upper: whether a triangle is the upper one, column by column; else the lower one.
        off_diagonal: what an entry outside the diagonal is multiplied by in the triangle.
        order: where x, y and z of an exponential cone stand.
        powers: the a_i of a power cone; they sum to 1.
    """

    kind: str
    rows: slice
    size: int = 0
    upper: bool = True
    off_diagonal: float = 1.0
    order: tuple[int, int, int] = (0, 1, 2)
    powers: tuple[float, ...] = ()

    def into_dual(self, z: Vector) -> Vector:
        """Return a point of the dual cone near ``z``, which is itself if it lies there."""
        if self.kind == "zero":
            return z
        if self.kind == "nonnegative":
            return np.maximum(z, 0.0)
        if self.kind == "second-order":
            least = float(np.linalg.norm(z[1:])) * (1 + (z.size + 4) * _UNIT)
            return np.concatenate([[max(z[0], least)], z[1:]])
        if self.kind == "semidefinite":
            return self._into_semidefinite(z)
        if self.kind == "exponential":
            x, y, last = self.order
            moved = z.copy()
            moved[[x, y, last]] = _into_exponential(*z[[x, y, last]].tolist())
            return moved
        # prod_i (v_i / a_i)^(a_i) >= |w|: less w rather than more v.
        powers = np.array(self.powers)
        sides = np.maximum(z[:-1], 0.0)
        most = float(np.prod((sides / powers) ** powers)) * (1 - 64 * _UNIT)
        return np.append(sides, np.clip(z[-1], -most, most))

    def violation(self, s: Vector) -> float:
        """Return by how much ``s`` is outside of the cone; 0 if it is inside."""
        if self.kind == "zero":
            return float(np.max(np.abs(s), initial=0.0))
        if self.kind == "nonnegative":
            return float(np.max(-s, initial=0.0))
        if self.kind == "second-order":
            return max(0.0, float(np.linalg.norm(s[1:])) - float(s[0]))
        if self.kind == "semidefinite":
            return max(0.0, -float(np.linalg.eigvalsh(self._matrix(s, self.off_diagonal))[0]))
        if self.kind == "exponential":
            x, y, z = s[list(self.order)].tolist()
            if y <= 0.0:
                return max(-y, x if y == 0.0 else 0.0, -z, 0.0)
            exponent = min(x / y, 700.0)
            return max(0.0, min(y * math.exp(exponent) - z, x - y * math.log(max(z, 1e-300) / y)))
        outside = float(np.max(-s[:-1], initial=0.0))
        inner = float(np.prod(np.maximum(s[:-1], 0.0) ** np.array(self.powers)))
        return max(outside, abs(float(s[-1])) - inner, 0.0)

    def _triangle(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return rows and columns of the triangle's entries, in order."""
        # The lower triangle row by row is the upper one column by column, turned over.
        row, column = (np.tril_indices if self.upper else np.triu_indices)(self.size)
        return row, column

    def _matrix(self, triangle: Vector, off_diagonal: float) -> npt.NDArray[np.float64]:
        row, column = self._triangle()
        matrix = np.zeros((self.size, self.size))
        matrix[row, column] = triangle / np.where(row == column, 1.0, off_diagonal)
        return matrix + np.tril(matrix, -1).T + np.triu(matrix, 1).T

    def _into_semidefinite(self, z: Vector) -> Vector:
        # Off the diagonal an entry stands once in the triangle and twice in the matrix: the inner
        # product of triangles is that of matrices if the dual's factor is 2 / off_diagonal.
        factor = 2.0 / self.off_diagonal
        values, vectors = np.linalg.eigh(self._matrix(z, factor))
        if values[0] >= 0.0:
            return z
        raised = (vectors * np.maximum(values, 0.0)) @ vectors.T
        # More than eigenvalues are off by.
        raised += np.eye(self.size) * 8 * self.size * _UNIT * float(np.max(np.abs(values)))
        row, column = self._triangle()
        return raised[row, column] * np.where(row == column, 1.0, factor)


def _into_exponential(u: float, v: float, w: float) -> tuple[float, float, float]:
    """Return a point of the dual cone {u < 0, -u e^(v / u - 1) <= w} or {u = 0, v, w >= 0}."""
    if u >= 0.0:
        return 0.0, max(v, 0.0), max(w, 0.0)
    exponent = v / u - 1.0
    higher_w = max(w, -u * math.exp(exponent) * (1 + 1e-15)) if exponent < 700 else math.inf
    if w > 0.0:
        higher_v = max(v, u * (1.0 + math.log(w / -u)) + 1e-15 * (abs(v) + abs(u)))
        if higher_v - v < higher_w - w:
            return u, higher_v, w
    if math.isinf(higher_w):
        return 0.0, max(v, 0.0), max(w, 0.0)
    return u, v, higher_w


@dataclass(frozen=True)
class ConeProgram:
    """Minimise x P x / 2 + cost @ x with limits - matrix @ x in the cones, lower <= x <= upper.

    Attributes:
        cost: shape (variables,).
        quadratic: P, positive semidefinite; None if there is none.
        matrix: shape (rows, variables).
        limits: shape (rows,).
        cones: of all rows, in order.
        lower: shape (variables,).
        upper: shape (variables,).
    """

    cost: Vector
    quadratic: SparseMatrix | None
    matrix: SparseMatrix
    limits: Vector
    cones: tuple[Cone, ...]
    lower: Vector
    upper: Vector

    def violation(self, x: Vector) -> float:
        """Return the worst violation of a cone or a bound at ``x``."""
        slack = self.limits - self.matrix @ x
        worst = max((cone.violation(slack[cone.rows]) for cone in self.cones), default=0.0)
        outside = np.maximum(self.lower - x, x - self.upper)
        return max(worst, float(np.max(outside, initial=0.0)))

    def relative_gap(self, x: Vector, bound: float) -> float:
        """Return (objective at ``x`` - bound) / max(sum |c x| + x P x / 2, max |c|)."""
        curved = 0.0 if self.quadratic is None else 0.5 * float(x @ (self.quadratic @ x))
        size = float(np.sum(np.abs(self.cost * x))) + abs(curved)
        unit = max(size, float(np.max(np.abs(self.cost), initial=0.0)))
        return (curved + float(self.cost @ x) - bound) / (unit or 1.0)

    def into_dual(self, z: Vector) -> Vector:
        """Return ``z`` moved into the dual cones, shape (rows,)."""
        moved = np.zeros(z.size)
        for cone in self.cones:
            moved[cone.rows] = cone.into_dual(z[cone.rows])
        return moved

    def linear_rows(self) -> Rows:
        """Return the rows of the zero and the nonnegative cones as limits on matrix @ x."""
        chosen = np.zeros(self.limits.size, dtype=bool)
        lower = np.full(self.limits.size, -np.inf)
        for cone in self.cones:
            if cone.kind in ("zero", "nonnegative"):
                chosen[cone.rows] = True
            if cone.kind == "zero":
                lower[cone.rows] = self.limits[cone.rows]
        return Rows(sp.csr_array(self.matrix), lower, self.limits).take(chosen)

    def boxed(self) -> ConeProgram:
        """Return the same program within the bounds that its linear rows imply."""
        lower, upper = implied_box(self.linear_rows(), self.lower, self.upper)
        return replace(self, lower=lower, upper=upper)


def cone_bound(program: ConeProgram, z: Vector, near: Vector) -> float:
    """Return a lower bound on the optimum of a program from any dual vector, by weak duality.

    For z in the dual cones and x in the cones' program z (limits - A x) >= 0, and x P x / 2 is at
    least its tangent at any point p:

        x P x / 2 + c x >= (P p + c + A' z) x - p P p / 2 - z limits.

    The bound is the least value of the right side over the box lower <= x <= upper. z is moved into
    the dual cones first; what it misses by at variables without bounds is spread over z again and
    again; there, a rest within `reduced_noise` of its own terms counts as zero. A bound on the
    rounding error of these sums is taken off.

    Args:
        program: with as finite a box as can be, see `ConeProgram.boxed`.
        z: shape (rows,), positive where a nonnegative row presses.
        near: p, shape (variables,), best the solver's point.

    Returns:
        The bound; -inf if the dual vector gives none.
    """
    if not np.all(np.isfinite(z)) or not np.all(np.isfinite(near)):
        return -math.inf
    curved, costs = np.zeros(program.cost.size), np.abs(program.cost)
    if program.quadratic is not None:
        curved = np.asarray(program.quadratic @ near)
        costs = costs + abs(program.quadratic) @ np.abs(near)
    matrix = program.matrix
    z, reduced = _polished(program, z, program.cost + curved, costs)
    noise = reduced_noise(costs, matrix, z)
    box = np.where(reduced > 0, program.lower, program.upper)
    silent = ~np.isfinite(box) & (np.abs(reduced) <= noise)
    terms = np.where(silent | (reduced == 0.0), 0.0, reduced) * np.where(
        silent | (reduced == 0.0), 0.0, box
    )
    if not np.all(np.isfinite(terms)):
        return -math.inf
    # A row without a limit has no multiplier.
    pressed = z * np.where(z == 0.0, 0.0, program.limits)
    value = float(np.sum(terms)) - float(np.sum(pressed)) - 0.5 * float(near @ curved)
    reach = np.maximum(
        *(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (program.lower, program.upper))
    )
    sizes = costs + abs(matrix).T @ np.abs(z)
    inner = float(sizes @ reach) + float(np.abs(near) @ np.abs(curved))
    outer = float(np.sum(np.abs(pressed))) + float(np.sum(np.abs(terms)))
    return value - (matrix.shape[0] + matrix.shape[1] + 8) * _UNIT * (inner + outer)


def _polished(
    program: ConeProgram, z: Vector, fixed: Vector, costs: Vector
) -> tuple[Vector, Vector]:
    """Return z in the dual cones and fixed + A' z, as near 0 as can be where a bound is missing."""
    loosely = np.flatnonzero(~np.isfinite(program.lower) | ~np.isfinite(program.upper))
    least, best = math.inf, (z, fixed)
    for _ in range(_POLISH):
        z = np.where(np.isfinite(program.limits), program.into_dual(z), 0.0)
        reduced = fixed + program.matrix.T @ z
        box = np.where(reduced > 0, program.lower, program.upper)
        missed = np.where(np.isfinite(box), 0.0, reduced)
        noise = reduced_noise(costs, program.matrix, z)
        worst = float(np.max(np.abs(missed) / np.maximum(noise, 1e-300), initial=0.0))
        if worst < least:
            least, best = worst, (z, reduced)
        largest = float(np.max(costs + abs(program.matrix).T @ np.abs(z), initial=0.0))
        if worst <= _FINE or float(np.max(np.abs(missed))) >= _ROUGH * largest:
            break
        columns = program.matrix[:, loosely]
        z = z + lsmr(columns.T, -missed[loosely], atol=1e-15, btol=1e-15)[0]
    return best


def implied_box(rows: Rows, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return bounds that every point of the rows within the given bounds satisfies.

    A row sum_j a_j x_j <= u leaves a_j x_j at most u less the least that the others may sum to;
    several rounds of that, each rounded outwards.

    Args:
        rows: shape (rows, variables).
        lower: shape (variables,).
        upper: shape (variables,).
    """
    entries = rows.matrix.tocoo()
    keep = entries.data != 0.0
    row, column, value = entries.row[keep], entries.col[keep], entries.data[keep]
    count = np.bincount(row, minlength=rows.count)
    lower, upper = lower.astype(float), upper.astype(float)
    for _ in range(_PASSES):
        before = lower.copy(), upper.copy()
        # A x <= upper, and then -A x <= -lower.
        for sign, limits in ((1.0, rows.upper), (-1.0, -rows.lower)):
            for sense, bounds in _limits_by_entry(
                row, column, sign * value, limits, count, lower, upper
            ):
                if sense > 0:
                    np.minimum.at(upper, column, bounds)
                else:
                    np.maximum.at(lower, column, bounds)
        if np.any(lower > upper):
            return before
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper


def _limits_by_entry(
    row: npt.NDArray[Any],
    column: npt.NDArray[Any],
    value: Vector,
    limits: Vector,
    count: npt.NDArray[np.intp],
    lower: Vector,
    upper: Vector,
) -> Iterator[tuple[int, Vector]]:
    """Yield (1, upper bounds) and (-1, lower bounds) of the entries' variables."""
    least = np.where(value > 0, value * lower[column], value * upper[column])
    finite = np.isfinite(least)
    known = np.where(finite, least, 0.0)
    total = np.bincount(row, known, minlength=limits.size)
    size = np.bincount(row, np.abs(known), minlength=limits.size)
    unknown = np.bincount(row, ~finite, minlength=limits.size)
    # The entry's own term may be the unknown one.
    told = (unknown[row] - ~finite == 0) & np.isfinite(limits[row])
    limit = np.where(told, limits[row], 0.0)
    room = limit - (total[row] - known)
    error = (count[row] + 4) * 2 * _UNIT * (np.abs(limit) + size[row])
    with np.errstate(over="ignore"):
        highest = (room + error) / value
    highest = highest + np.sign(value) * 4 * _UNIT * np.abs(highest)
    yield 1, np.where(told & (value > 0), highest, np.inf)
    yield -1, np.where(told & (value < 0), highest, -np.inf)
