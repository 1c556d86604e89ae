"""An interior-point method for the program of additive noise, with all of its rows at once.

With rows in shares of delta, slacks s of the rows A z <= s and g of what is left of them,

    minimise c z   subject to   A z - s + g = 0,   sum of s over the rows of a shift + b = 1,
                                m z = 1,   z, s, g, b >= 0,

with multipliers zeta, q, y, nu >= 0 of these four bounds: zeta = c + A'y - lambda m, q = nu - y.
Mehrotra's predictor-corrector method. A row has two variables, so that all but z is eliminated
from a step: what is left has a few hundred unknowns, whatever the number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from dpopt._errors import SolverError
from dpopt._progress import advance
from dpopt._threads import one_blas_thread
from dpopt._types import IntVector, Matrix, SparseMatrix, Vector
from dpopt.lp import Status

# Steps at most, and in a row without a smaller gap; the gap, relative, that is enough; how far a
# step goes towards the boundary; and the ridge on the unit diagonal of a Cholesky factorisation, at
# first and at most.
_STEPS, _IDLE, _GAP, _SHARE, _RIDGE = 250, 5, 1e-12, 0.9995, (1e-15, 1e-6)


@dataclass(frozen=True)
class Rows:
    """All rows A z <= s: first those of pairs of variables, then those beyond the grid.

    Attributes:
        matrix: A, over delta where there is any.
        group: shift of each row less one.
        of: the row of shift d and x = -L..L in column d - 1, -1 where it always holds.
    """

    matrix: SparseMatrix
    group: IntVector
    of: IntVector

    @cached_property
    def transposed(self) -> SparseMatrix:
        """A'."""
        return sp.csr_array(self.matrix.T)

    @cached_property
    def sums(self) -> SparseMatrix:
        """The matrix from rows to their sums by shift."""
        return sp.csr_array((np.ones(self.group.size), (self.group, np.arange(self.group.size))))

    def product(self, left: SparseMatrix, weights: Vector) -> Matrix:
        """Return left diag(weights) A."""
        weighted = left.copy()
        weighted.data *= weights[weighted.indices]
        return (weighted @ self.matrix).toarray()


@dataclass(frozen=True)
class Point:
    """A point z and multipliers that prove how good it is: of all rows, of delta, and of the mass.

    Attributes:
        z: the variables.
        rows: y, shape (rows,).
        prices: nu, by shift.
        mass: lambda.
    """

    z: Vector
    rows: Vector
    prices: Vector
    mass: float


@one_blas_thread
@np.errstate(all="ignore")
def optimum_of(
    rows: Rows, cost: Vector, mass: Vector, inside: Vector, time_limit: float | None
) -> Point:
    """Return the optimum, from a point inside: m z = 1 and A z < 0."""
    group, count = rows.group, rows.sums @ np.ones(rows.group.size)
    # Half of each delta is spread over the rows of its shift, the other half is left.
    s, level, start = 0.5 / count[group], 0.1 / inside.size, time.perf_counter()
    g, nu = s - rows.matrix @ inside, 2 * level * count
    y = np.minimum(level / g, nu[group] / 2)
    zeta = np.maximum(level / inside, cost + rows.transposed @ y)
    x, of_mass = np.concatenate([inside, s, g, np.full(count.size, 0.5)]), 0.0
    duals = np.concatenate([zeta, nu[group] - y, y, nu])
    ends = np.cumsum([inside.size, s.size, s.size])
    state, best, idle = (x, duals, of_mass), np.inf, 0
    for done in range(_STEPS):
        advance("additive noise", done)
        if time_limit is not None and time.perf_counter() - start > time_limit:
            raise SolverError("time for additive noise is used up.", Status.TIME_LIMIT)
        (z, s, g, b), (zeta, _, y, nu) = np.split(x, ends), np.split(duals, ends)
        # The gap, and what it may be wrong by where equations do not hold.
        gap = float(x @ duals + np.abs(s - g - rows.matrix @ z) @ y)
        gap += float(np.abs(rows.sums @ s + b - 1) @ nu)
        gap += float(np.abs(of_mass * mass + zeta - cost - rows.transposed @ y) @ z)
        idle = 0 if gap < best else idle + 1
        if gap < best:
            best, state = gap, (x, duals, of_mass)
        if best <= _GAP * (cost @ z) or idle > _IDLE:
            break
        try:
            x, duals, of_mass = stepped(rows, cost, mass, ends, x, duals, of_mass)
        except np.linalg.LinAlgError:
            break
    x, duals, of_mass = state
    _, _, y, nu = np.split(duals, ends)
    # By its rounding y may be above nu; a y cut there would miss its columns by much more.
    np.maximum.at(nu, group, y)
    return Point(x[: inside.size], y, nu, of_mass)


def stepped(
    rows: Rows,
    cost: Vector,
    mass: Vector,
    ends: IntVector,
    x: Vector,
    duals: Vector,
    of_mass: float,
) -> tuple[Vector, Vector, float]:
    """Return what x = (z, s, g, b), their multipliers and lambda are after one step."""
    (z, s, g, b), (zeta, q, y, nu) = np.split(x, ends), np.split(duals, ends)
    missing, short = s - g - rows.matrix @ z, 1 - float(mass @ z)
    excess = of_mass * mass + zeta - cost - rows.transposed @ y
    spend = s / q
    weights = 1 / (spend + g / y)
    by_shift = rows.product(rows.sums, spend * weights)
    left = rows.sums @ (spend * weights * g / y) + b / nu
    normal = (
        rows.product(rows.transposed, weights) + (by_shift.T / left) @ by_shift + np.diag(zeta / z)
    )
    solve = factored(normal)
    solved_mass = solve(mass)

    def direction(
        target: Vector, missing: Vector, excess: Vector, short: float
    ) -> tuple[Vector, Vector, float]:
        """Return the direction that changes products of x and multipliers by a target."""
        of_z, of_s, of_g, of_b = np.split(target, ends)
        needed = missing + of_s / q - of_g / y
        budget = rows.sums @ (spend * weights * needed - of_s / q) - of_b / nu
        right = excess + of_z / z + rows.transposed @ (weights * needed)
        dz = solve(right + by_shift.T @ (budget / left))
        more = (short - float(mass @ dz)) / float(mass @ solved_mass)
        dz = dz + more * solved_mass
        dnu = (by_shift @ dz - budget) / left
        dy = weights * (rows.matrix @ dz + spend * dnu[rows.group] - needed)
        dq = dnu[rows.group] - dy
        dx = np.concatenate([dz, (of_s - s * dq) / q, (of_g - g * dy) / y, (of_b - b * dnu) / nu])
        return dx, np.concatenate([(of_z - zeta * dz) / z, dq, dy, dnu]), more

    def refined(target: Vector) -> tuple[Vector, Vector, float]:
        """Return the same, and once more what rounding has left of the equations."""
        dx, change, more = direction(target, missing, excess, short)
        (dz, ds, dg, _), (dzeta, _, dy, _) = np.split(dx, ends), np.split(change, ends)
        unmet = excess + more * mass + dzeta - rows.transposed @ dy
        left_out = missing + ds - dg - rows.matrix @ dz
        again = direction(np.zeros(x.size), left_out, unmet, short - float(mass @ dz))
        return dx + again[0], change + again[1], more + again[2]

    # Predictor: the cube of its progress is the centring parameter.
    product = x * duals
    dx, change, _ = refined(-product)
    after = (x + furthest(x, dx) * dx) @ (duals + furthest(duals, change) * change)
    centred = (after / product.sum()) ** 3 * product.mean()
    dx, change, more = refined(centred - product - dx * change)
    ahead, up = furthest(x, dx), furthest(duals, change)
    if min(ahead, up) < 0.1:
        # So short a step is too close to the boundary: away from it first.
        dx, change, more = refined(0.5 * product.mean() - product)
        ahead, up = furthest(x, dx), furthest(duals, change)
    return x + ahead * dx, duals + up * change, of_mass + up * more


def furthest(values: Vector, change: Vector) -> float:
    """Return the length of a step, at most 1, after which positive values are still positive."""
    falls = change < 0
    return min(1.0, _SHARE * float(np.min(values[falls] / -change[falls], initial=np.inf)))


def factored(matrix: Matrix) -> Callable[[Vector], Vector]:
    """Return what solves with a positive definite matrix, which is overwritten."""
    diagonal, ridge = np.diag_indices_from(matrix), _RIDGE[0]
    scale = 1 / np.sqrt(matrix[diagonal])
    matrix *= scale[:, None] * scale
    while True:
        matrix[diagonal] = 1 + ridge
        try:
            factor = cho_factor(matrix, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 100
            if not ridge <= _RIDGE[1]:
                raise
            continue
        return lambda right: scale * cho_solve(factor, scale * right, check_finite=False)
