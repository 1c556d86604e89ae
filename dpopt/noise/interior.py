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

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpopt._errors import SolverError
from dpopt._progress import advance
from dpopt._threads import one_blas_thread
from dpopt._types import IntVector, Matrix, Vector
from dpopt.lp import Status

# Steps at most, and in a row without a smaller gap; the gap, relative, that is enough; how far a
# step goes towards the boundary; and the ridge on the unit diagonal of a Cholesky factorisation, at
# first and at most.
_STEPS, _IDLE, _GAP, _SHARE, _RIDGE = 250, 5, 1e-12, 0.9995, (1e-15, 1e-6)


@dataclass(frozen=True)
class Rows:
    """All rows: a z[v] - b z[w] <= s, and those beyond the grid, dense.

    Attributes:
        v: first variable of each sparse row, shape (sparse rows,).
        w: second variable, another one.
        a: weight of the row, over delta where there is any.
        b: a times the row's ratio.
        dense: the rows beyond, likewise, shape (D, variables).
        group: shift of each row less one, the dense ones last.
        of: the sparse row of shift d and x = -L..L in column d - 1, -1 where it always holds.
    """

    v: IntVector
    w: IntVector
    a: Vector
    b: Vector
    dense: Matrix
    group: IntVector
    of: IntVector

    def times(self, z: Vector) -> Vector:
        """Return A z."""
        return np.concatenate([self.a * z[self.v] - self.b * z[self.w], self.dense @ z])

    def transposed(self, y: Vector) -> Vector:
        """Return A'y."""
        size, sparse = self.dense.shape[1], y[: self.v.size]
        product = np.bincount(self.v, self.a * sparse, size)
        product -= np.bincount(self.w, self.b * sparse, size)
        return product + y[self.v.size :] @ self.dense

    def sums(self, of_rows: Vector) -> Vector:
        """Return the sums over the rows of each shift."""
        return np.bincount(self.group, of_rows, minlength=len(self.dense)).astype(float)

    def by_shift(self, weights: Vector) -> Matrix:
        """Return the weighted sums of the rows of each shift, shape (D, variables)."""
        shifts, size = self.dense.shape
        first, sparse = self.group[: self.v.size] * size, weights[: self.v.size]
        product = np.bincount(first + self.v, self.a * sparse, shifts * size)
        product -= np.bincount(first + self.w, self.b * sparse, shifts * size)
        return product.reshape(shifts, size) + weights[self.v.size :, None] * self.dense

    def normal(self, weights: Vector) -> Matrix:
        """Return A' diag(weights) A."""
        size, sparse = self.dense.shape[1], weights[: self.v.size]
        off = np.bincount(self.v * size + self.w, -sparse * self.a * self.b, size * size)
        product = off.reshape(size, size) + off.reshape(size, size).T
        product[np.diag_indices(size)] += np.bincount(self.v, sparse * self.a**2, size)
        product[np.diag_indices(size)] += np.bincount(self.w, sparse * self.b**2, size)
        return product + (self.dense.T * weights[self.v.size :]) @ self.dense


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
    group, count = rows.group, rows.sums(np.ones(rows.group.size))
    # Half of each delta is spread over the rows of its shift, the other half is left.
    s, level, start = 0.5 / count[group], 0.1 / inside.size, time.perf_counter()
    g, nu = s - rows.times(inside), 2 * level * count
    y = np.minimum(level / g, nu[group] / 2)
    zeta = np.maximum(level / inside, cost + rows.transposed(y))
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
        gap = float(x @ duals + np.abs(s - g - rows.times(z)) @ y)
        gap += float(np.abs(rows.sums(s) + b - 1) @ nu)
        gap += float(np.abs(of_mass * mass + zeta - cost - rows.transposed(y)) @ z)
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
    missing, short = s - g - rows.times(z), 1 - float(mass @ z)
    excess = of_mass * mass + zeta - cost - rows.transposed(y)
    spend = s / q
    weights = 1 / (spend + g / y)
    by_shift = rows.by_shift(spend * weights)
    left = rows.sums(spend * weights * g / y) + b / nu
    normal = rows.normal(weights) + (by_shift.T / left) @ by_shift + np.diag(zeta / z)
    solve = factored(normal)
    solved_mass = solve(mass)

    def direction(
        target: Vector, missing: Vector, excess: Vector, short: float
    ) -> tuple[Vector, Vector, float]:
        """Return the direction that changes products of x and multipliers by a target."""
        of_z, of_s, of_g, of_b = np.split(target, ends)
        needed = missing + of_s / q - of_g / y
        budget = rows.sums(spend * weights * needed - of_s / q) - of_b / nu
        right = excess + of_z / z + rows.transposed(weights * needed)
        dz = solve(right + by_shift.T @ (budget / left))
        more = (short - float(mass @ dz)) / float(mass @ solved_mass)
        dz = dz + more * solved_mass
        dnu = (by_shift @ dz - budget) / left
        dy = weights * (rows.times(dz) + spend * dnu[rows.group] - needed)
        dq = dnu[rows.group] - dy
        dx = np.concatenate([dz, (of_s - s * dq) / q, (of_g - g * dy) / y, (of_b - b * dnu) / nu])
        return dx, np.concatenate([(of_z - zeta * dz) / z, dq, dy, dnu]), more

    def refined(target: Vector) -> tuple[Vector, Vector, float]:
        """Return the same, and once more what rounding has left of the equations."""
        dx, change, more = direction(target, missing, excess, short)
        (dz, ds, dg, _), (dzeta, _, dy, _) = np.split(dx, ends), np.split(change, ends)
        unmet = excess + more * mass + dzeta - rows.transposed(dy)
        left_out = missing + ds - dg - rows.times(dz)
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
