"""An interior-point cutting-plane method for programs with lazy rows: each round has a gap.

Minimise c @ x subject to A x + s = b, 0 <= x <= u, with multipliers y of the rows and z, w of the
lower and upper bounds of x, by Mehrotra's primal-dual predictor-corrector method. For any y >= 0
there are z, w >= 0 with c + A'y = z - w, so that the multipliers are feasible at every step, and
weak duality bounds the optimum from below: min over the box of c @ x + y @ (A x - b).

Near the end s is 1e-12 where y is not small, and the normal equations lose the multipliers: y / s
times a rounding error of A x is 1e-8. Then the same step is computed from an orthogonal
factorisation of the weighted rows, whose residual gives the multipliers directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dgeqrf, dormqr

from dpopt._threads import one_blas_thread
from dpopt._types import Vector
from dpopt.lp.bounds import dual_bound
from dpopt.lp.model import Model, Rows, Separation, objective_size, stack
from dpopt.lp.problem import SlaterPoint

Matrix = npt.NDArray[np.float64]

# Ridge on the unit diagonal of a Cholesky factorisation: the first one, and the largest before it
# counts as failed.
_RIDGE, _MOST_RIDGE = 1e-15, 1e-6
# Least distance of x from its bounds, as a fraction of the range; least gap, to divide by.
_EDGE, _TINY = 2.0**-50, 1e-18
# At a restart: least distance of x from its bounds, as a fraction of the range, and the barrier
# parameter as a fraction of the gap per product.
_OFF, _LEAST = 1e-9, 0.01
# Rows per dense block; and the fraction of a row's largest entry below which an entry counts as 0.
_TOGETHER, _NOTHING = 32, 2.0**-60

_Solved = Callable[[Vector], tuple[Vector, Vector | None]]


@dataclass
class State:
    """An iterate: x, slacks s, multipliers y of the rows and z, w of the bounds of x."""

    x: Vector
    s: Vector
    y: Vector
    z: Vector
    w: Vector


class Interior:
    """One program and the iterate of the method on it.

    Args:
        cost: c, shape (variables,), of size about one.
        width: u, shape (variables,), finite and positive; lower bounds are 0.
    """

    def __init__(self, cost: Vector, width: Vector) -> None:
        self.cost, self.width = cost, width
        self.matrix: Matrix = np.empty((0, cost.size))
        # Consecutive rows, and the columns outside of which they are zero.
        self.blocks: list[tuple[slice, slice]] = []
        self.limit: Vector = np.empty(0)
        level = np.full(cost.size, float(np.max(np.abs(cost), initial=0.0)) or 1.0)
        self.state = State(0.5 * width, np.empty(0), np.empty(0), level, level.copy())

    def bound(self, y: Vector) -> float:
        """Return the lower bound on the optimum from multipliers y >= 0, by weak duality."""
        reduced = self.cost + self._transposed(y)
        return float(np.minimum(reduced, 0.0) @ self.width - self.limit @ y)

    def add(self, matrix: Matrix, limit: Vector, x: Vector) -> npt.NDArray[np.int64]:
        """Append rows matrix @ x <= limit in some order; restart from a point strictly within all.

        Entries below the rounding of their row's largest count as 0. Rows that are nonzero on
        nearly the same columns form one dense block: the pmf of the ones of s voters out of K, for
        example, has about 9 sqrt(s) entries that count. Return the order.
        """
        previous, count = self.state, self.limit.size
        # Columns first..last of each row hold its nonzeros; sort rows by log2 width, then by first.
        sizes = np.abs(matrix)
        counts = sizes > _NOTHING * np.max(sizes, axis=1, initial=0.0)[:, None]
        first = np.argmax(counts, axis=1)
        last = matrix.shape[1] - np.argmax(counts[:, ::-1], axis=1)
        order = np.lexsort((first, np.round(np.log2(last - first))))
        for start in range(0, order.size, _TOGETHER):
            batch = order[start : start + _TOGETHER]
            rows = slice(count + start, count + start + batch.size)
            self.blocks.append((rows, slice(int(first[batch].min()), int(last[batch].max()))))
        self.matrix = np.vstack([self.matrix, np.where(counts, matrix, 0.0)[order]])
        self.limit = np.concatenate([self.limit, limit[order]])
        y = np.concatenate([previous.y, np.zeros(limit.size)])
        # Raise multipliers to a common product s y = x z = (u - x) w, the barrier parameter.
        x = np.clip(x, _OFF * self.width, (1.0 - _OFF) * self.width)
        mean = _mean(previous, self.width)
        if previous.y.size:
            gap = max(float(self.cost @ x) - self.bound(y), _TINY)
            mean = _LEAST * gap / (y.size + 2 * x.size)
        s = np.maximum(self.limit - self._times(x), mean**0.5)
        self.state = State(
            x,
            s,
            np.maximum(y, mean / s),
            np.maximum(previous.z, mean / x),
            np.maximum(previous.w, mean / (self.width - x)),
        )
        self._balance()
        return order

    def solve(self, target_gap: Callable[[float], float], pause: Callable[[], object]) -> float:
        """Iterate until the gap is at most ``target_gap(best bound)``; return the best bound.

        ``pause`` is called before each step and may raise.
        """
        best, self._precise = -np.inf, False
        # At most 60 steps in one solve.
        for step in range(61):
            state = self.state
            bound = self.bound(state.y)
            best = max(best, bound)
            residual = np.max(np.abs(self.limit - self._times(state.x) - state.s), initial=0.0)
            within_aim = float(self.cost @ state.x) - bound <= target_gap(best)
            # Largest residual of A x + s = b at which x counts as a solution; rows have unit slack
            # inside.
            if step == 60 or (step and residual < 1e-9 and within_aim):
                break
            pause()
            self._step()
        return best

    def _balance(self) -> float:
        """Restore c + A'y = z - w by raising z or w; return the most that this adds to the gap."""
        state = self.state
        excess = self.cost + self._transposed(state.y) - state.z + state.w
        state.z = state.z + np.maximum(excess, 0.0)
        state.w = state.w + np.maximum(-excess, 0.0)
        return float(np.abs(excess) @ self.width)

    def _step(self) -> None:
        """Take one predictor-corrector step."""
        state = self.state
        x, s, y, z, w = state.x, state.s, state.y, state.z, state.w
        v = self.width - x
        rp = self.limit - self._times(x) - s
        mean = _mean(state, self.width)
        # Weights in the least-squares problem: of the rows of A, and of the identity for x.
        weights, diagonal = y / s, z / x + w / v
        # The normal equations are accurate up to row weights of 1e12 barrier parameters.
        precise = self._precise
        solve = (
            self._orthogonal(weights, diagonal, 1e12 * mean)
            if precise
            else self._normal(weights, diagonal)
        )

        def direction(rs: Vector, rx: Vector, rv: Vector) -> tuple[Vector, ...]:
            # s dy + y ds = rs, x dz + z dx = rx, v dw - w dx = rv, A dx + ds = rp and
            # A'dy = dz - dw: a least-squares problem in dx whose residual gives dy and dz - dw.
            target = np.concatenate(
                [(y * rp - rs) / s / np.sqrt(weights), (rx / x - rv / v) / np.sqrt(diagonal)]
            )
            dx, residual = solve(target)
            if residual is None:
                ds = rp - self._times(dx)
                return dx, ds, (rs - y * ds) / s, (rx - z * dx) / x, (rv + w * dx) / v
            dy, dzw = -np.sqrt(weights) * residual[: s.size], np.sqrt(diagonal) * residual[s.size :]
            ds = np.where(weights > 1.0, (rs - s * dy) / y, rp - self._times(dx))
            dz, dw = (rx - z * dx) / x, (rv + w * dx) / v
            # Where the lower bound is nearer, dz follows from dz - dw; elsewhere dw does.
            lower = z * v > w * x
            return dx, ds, dy, np.where(lower, dzw + dw, dz), np.where(lower, dw, dz - dzw)

        def stepped(changes: tuple[Vector, ...], share: float) -> State:
            dx, ds, dy, dz, dw = changes
            # Step lengths in (x, s) and in the multipliers.
            primal = share * min(1.0 / share, _max_step(x, dx), _max_step(v, -dx), _max_step(s, ds))
            dual = share * min(1.0 / share, _max_step(y, dy), _max_step(z, dz), _max_step(w, dw))
            forward = (x + primal * dx, s + primal * ds)
            return State(*forward, y + dual * dy, z + dual * dz, w + dual * dw)

        # Predictor: the affine direction; the cube of its progress is the centring parameter.
        dx, ds, dy, dz, dw = changes = direction(-s * y, -x * z, -v * w)
        level = (_mean(stepped(changes, 1.0), self.width) / mean) ** 3 * mean
        corrected = level - s * y - ds * dy, level - x * z - dx * dz, level - v * w + dx * dw
        # Step length as a fraction of the way to the boundary.
        self.state = stepped(direction(*corrected), 0.995)
        # Closer to its upper bound, u - x would be rounded to 0.
        edge = _EDGE * self.width
        self.state.x = np.clip(self.state.x, edge, self.width - edge)
        gap = _mean(self.state, self.width) * (s.size + 2 * x.size)
        # Fraction of the gap that a step may lose by rounding of the multipliers; above it, later
        # steps use the orthogonal factorisation.
        self._precise = self._precise or self._balance() > 1e-2 * gap

    def _normal(self, weights: Vector, diagonal: Vector) -> _Solved:
        """Return a least-squares solver by a Cholesky factor of the normal equations."""
        factor, scale = _factor(self._normal_matrix(weights, diagonal))
        rows, roots = weights.size, (np.sqrt(weights), np.sqrt(diagonal))

        def solve(target: Vector) -> tuple[Vector, None]:
            gradient = self._transposed(roots[0] * target[:rows]) + roots[1] * target[rows:]
            return scale * cho_solve((factor, False), scale * gradient, check_finite=False), None

        return solve

    def _times(self, x: Vector) -> Vector:
        """Return A x."""
        product = np.zeros(self.limit.size)
        for rows, columns in self.blocks:
            product[rows] = self.matrix[rows, columns] @ x[columns]
        return product

    def _transposed(self, y: Vector) -> Vector:
        """Return A'y."""
        product = np.zeros(self.cost.size)
        for rows, columns in self.blocks:
            product[columns] += y[rows] @ self.matrix[rows, columns]
        return product

    def _normal_matrix(self, weights: Vector, diagonal: Vector) -> Matrix:
        """Return A' diag(weights) A + diag(diagonal), shape (variables, variables)."""
        square, roots = np.zeros((diagonal.size, diagonal.size)), np.sqrt(weights)[:, None]
        for rows, columns in self.blocks:
            weighted = self.matrix[rows, columns] * roots[rows]
            square[columns, columns] += weighted.T @ weighted
        square[np.diag_indices_from(square)] += diagonal
        return square

    def _orthogonal(self, weights: Vector, diagonal: Vector, threshold: float) -> _Solved:
        """Return a least-squares solver with residuals, by an orthogonal factorisation.

        Rows of weight at most ``threshold`` (identity rows included) are first replaced by the
        Cholesky factor of their normal equations, whose rounding error is harmless at such weights.
        """
        count, size = weights.size, diagonal.size
        roots = np.sqrt(weights), np.sqrt(diagonal)
        # Indices of heavy rows: of A, and of the identity (variables close to a bound).
        heavy, pinned = np.flatnonzero(weights > threshold), np.flatnonzero(diagonal > threshold)
        light = (
            np.where(weights > threshold, 0.0, weights),
            np.where(diagonal > threshold, 0.0, diagonal),
        )
        # A column may have heavy rows only; its ridge is then negligible beside them.
        ridge = np.maximum(light[1], _RIDGE * np.minimum(diagonal, threshold))
        triangle, scale = _factor(self._normal_matrix(light[0], ridge))
        triangle = np.triu(triangle) / scale
        identity = np.zeros((pinned.size, size))
        identity[np.arange(pinned.size), pinned] = roots[1][pinned]
        weighted = np.vstack([self.matrix[heavy] * roots[0][heavy, None], identity, triangle])
        # Large rows first, so that Householder's method is accurate in each row.
        order = np.argsort(-np.max(np.abs(weighted), axis=1), kind="stable")
        block: Any = np.asfortranarray(weighted[order])
        factor, tau, _, _ = dgeqrf(block, lwork=64 * size, overwrite_a=1)

        def solve(target: Vector) -> tuple[Vector, Vector]:
            gradient = self._transposed(np.sqrt(light[0]) * target[:count])
            gradient += np.sqrt(light[1]) * target[count:]
            reduced = solve_triangular(triangle, gradient, trans="T", check_finite=False)
            stacked = np.concatenate([target[heavy], target[count + pinned], reduced])
            rotated, _, _ = dormqr("L", "T", factor, tau, stacked[order][:, None], lwork=64)
            dx = solve_triangular(factor[:size], rotated[:size, 0], check_finite=False)
            rotated[:size] = 0.0
            projected, _, _ = dormqr("L", "N", factor, tau, rotated, lwork=64)
            # Undo the ordering: first the heavy rows of A, then of the identity, then the triangle.
            reordered = np.empty(stacked.size)
            reordered[order] = projected[:, 0]
            residual = target - np.concatenate([roots[0] * self._times(dx), roots[1] * dx])
            residual[heavy] = reordered[: heavy.size]
            residual[count + pinned] = reordered[heavy.size : heavy.size + pinned.size]
            return dx, residual

        return solve


def _mean(state: State, width: Vector) -> float:
    """Return the barrier parameter: the mean of s y, x z and (u - x) w, 0 at an optimum."""
    total = state.s @ state.y + state.x @ state.z + (width - state.x) @ state.w
    return float(total) / (state.s.size + 2 * state.x.size)


def _max_step(values: Vector, change: Vector) -> float:
    """Return the step length at which the first of some positive values reaches 0."""
    decreasing = change < 0.0
    return float(np.min(values[decreasing] / -change[decreasing], initial=np.inf))


def _factor(matrix: Matrix) -> tuple[Matrix, Vector]:
    """Return the upper Cholesky factor of a matrix scaled to unit diagonal, and the scale.

    A ridge is added to the diagonal until the matrix is definite; the matrix is overwritten.
    """
    diagonal = np.diag_indices_from(matrix)
    scale = 1.0 / np.sqrt(matrix[diagonal])
    matrix *= scale[:, None] * scale
    ridge = _RIDGE
    while True:
        matrix[diagonal] = 1.0 + ridge
        try:
            return cho_factor(matrix, check_finite=False)[0], scale
        except np.linalg.LinAlgError:
            ridge *= 100.0
            if not ridge <= _MOST_RIDGE:
                raise


# Gap that a round aims for: a fraction of the present gap, at least a fraction of the target gap.
_AIM, _FINISH = 0.03, 0.3
# Rounds in all, and in a row without a smaller gap.
_MOST_ROUNDS, _MOST_IDLE = 200, 12


def suits(model: Model, slater: SlaterPoint) -> bool:
    """Whether the interior-point method applies to a program.

    It needs a Slater point that satisfies the model's rows, finite bounds lower < upper for every
    variable, and no equations.
    """
    width = model.upper - model.lower
    return bool(
        np.all(np.isfinite(width))
        and np.all(width > 0.0)
        and np.all(model.rows.lower < model.rows.upper)
        and np.all(model.rows.violation(slater.x) == 0.0)
    )


class Rounds:
    """Rounds of cutting planes at interior points of the relaxation.

    Each round solves the relaxation until its gap is a small fraction of the overall gap, and the
    oracles separate that central point. If it violates no row by more than v, and every row has a
    slack of at least r at the Slater point, then the point r / (r + v) of the way from the Slater
    point to it is feasible. The next round restarts from the best feasible point, moved slightly
    towards the Slater point so that the new rows hold strictly.

    Attributes:
        rows: rows of the relaxation, the model's own first.
        owners: the family of each lazy row.
        x: the point that was separated last; ``worst`` is its largest violation.
        best: best feasible point so far, of cost ``value``.
        bound: best lower bound so far.
        y: multipliers of the first rows that prove ``bound``, positive at a lower limit.
        steps: number of steps in all rounds.
    """

    def __init__(
        self,
        model: Model,
        slater: SlaterPoint,
        separate: Callable[[Vector], Mapping[str, Separation]],
        extra: Rows,
        owners: Sequence[str],
    ) -> None:
        self.model, self.slater, self.separate = model, slater, separate
        self.scale = float(np.max(np.abs(model.cost), initial=0.0)) or 1.0
        self.method = Interior(model.cost / self.scale, model.upper - model.lower)
        self.rows, self.owners = stack([], model.cost.size), [*owners]
        # For each row of the method: its index in ``rows``, its sign and its scale.
        self.lines = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
        self.x, self.worst, self.best = slater.x, np.inf, slater.x
        self.value = float(model.cost @ slater.x)
        self.bound, self.y, self.steps = -np.inf, np.empty(0), 0
        self.loaded = self._add(stack([model.rows, extra], model.cost.size))

    @one_blas_thread
    def run(
        self,
        relative_gap: float,
        max_rounds: int,
        pause: Callable[[], object],
        notify: Callable[[], None],
    ) -> None:
        """Run rounds until the best point is within a gap of the bound, or no progress is made.

        The gap is relative to `objective_size`. ``pause`` is called before each step and may raise,
        ``notify`` once a round.
        """
        idle, gap = 0, np.inf
        for _ in range(min(max_rounds, _MOST_ROUNDS) if self.loaded else 0):
            try:
                self._solve_relaxation(relative_gap, pause)
            except np.linalg.LinAlgError:
                return
            x = self.model.lower + self.method.state.x
            if not np.all(np.isfinite(x)):
                return
            self.x = np.clip(x, self.model.lower, self.model.upper)
            separations = self.separate(self.x)
            self.worst = max((answer.worst for answer in separations.values()), default=0.0)
            self._update_feasible()
            notify()
            idle = 0 if self.value - self.bound < gap else idle + 1
            gap = min(gap, self.value - self.bound)
            if self.within(relative_gap) or idle > _MOST_IDLE:
                return
            for name, answer in separations.items():
                self.owners += [name] * answer.rows.count
            if not self._add(stack([answer.rows for answer in separations.values()], x.size)):
                return

    def within(self, relative_gap: float) -> bool:
        """Whether the best point is within a relative gap of the bound."""
        unit = objective_size(self.model.cost, self.best)
        return self.value - self.bound <= relative_gap * unit

    def _solve_relaxation(self, relative_gap: float, pause: Callable[[], object]) -> None:
        """Solve the relaxation over the present rows, and update the bound if it improves."""
        fixed = float(self.model.cost @ self.model.lower)
        value = (self.value - fixed) / self.scale
        size = objective_size(self.model.cost, self.best)
        finish = _FINISH * relative_gap * size / self.scale
        bound_before = (self.bound - fixed) / self.scale

        def target_gap(best: float) -> float:
            return max(_AIM * (value - max(best, bound_before)), finish)

        def step() -> None:
            pause()
            self.steps += 1

        self.method.solve(target_gap, step)
        # Multipliers of the rows: undo scale and sign, and sum over the two limits of a row.
        indices, signs, units = self.lines
        y = np.zeros(self.rows.count)
        np.add.at(y, indices, -signs * self.method.state.y * units * self.scale)
        bound = dual_bound(replace(self.model, rows=self.rows), y)
        if bound > self.bound:
            self.bound, self.y = bound, y

    def _update_feasible(self) -> None:
        """Move the last point towards the Slater point until feasible; keep it if it is better."""
        if not np.isfinite(self.worst):
            return
        worst = max(self.worst, float(np.max(self.model.rows.violation(self.x), initial=0.0)))
        share = self.slater.slack / (self.slater.slack + worst)
        x = self.slater.x + share * (self.x - self.slater.x)
        value = float(self.model.cost @ x)
        if value < self.value:
            self.best, self.value = x, value

    def _add(self, rows: Rows) -> bool:
        """Append a row for each finite limit, scaled to slack 1 at the Slater point.

        False if a row has no positive slack there, or the dense matrix is too large.
        """
        count, size = self.rows.count, self.model.cost.size
        self.rows = stack([self.rows, rows], size)
        blocks = []
        at_inside, at_lower = rows.matrix @ self.slater.x, rows.matrix @ self.model.lower
        for sign, limit in ((1.0, rows.upper), (-1.0, rows.lower)):
            finite = np.flatnonzero(np.isfinite(limit))
            slack = sign * (limit[finite] - at_inside[finite])
            if np.any(slack <= 0.0):
                return False
            right = sign * (limit[finite] - at_lower[finite]) / slack
            blocks.append((finite, np.full(finite.size, sign), 1.0 / slack, right))
        index, sign, scale, limits = map(np.concatenate, zip(*blocks, strict=True))
        # Entries of the dense matrix: 800 MB.
        if (self.lines[0].size + index.size) * size > 100_000_000:
            return False
        matrix = rows.matrix[index].toarray() * (sign * scale)[:, None]
        order = self.method.add(matrix, limits, self._restart_point())
        added = index[order] + count, sign[order], scale[order]
        lines: Any = zip(self.lines, added, strict=True)
        indices, signs, scales = map(np.concatenate, lines)
        self.lines = indices, signs, scales
        return True

    def _restart_point(self) -> Vector:
        """Return a strictly feasible point near the best one; the iterate before any bound."""
        if not np.isfinite(self.bound):
            return self.method.state.x
        gain = float(self.model.cost @ self.slater.x) - self.value
        # Objective given up by restarting further inside, as a fraction of the gap.
        share = min(0.01 * (self.value - self.bound) / gain, 0.5) if gain > 0.0 else 0.5
        return self.best + share * (self.slater.x - self.best) - self.model.lower
