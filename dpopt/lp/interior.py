"""Interior points of a program with families: rounds whose gap is known at each of them.

minimise c @ x subject to A x + s = b, 0 <= x <= u, with multipliers y of the rows and z, w of the
two limits of x: a primal-dual method with Mehrotra's predictor and corrector. For any y >= 0 there
are z, w >= 0 with c + A'y = z - w, so that the multipliers are feasible at every step, and weak
duality bounds the optimum: min over the box of c @ x + y @ (A x - b).

Near the end s is 1e-12 where y is not small, and a step computed from the normal equations loses
the multipliers: y / s times a rounding of A x is 1e-8. There the same step is taken from an
orthogonal factorisation of the weighted rows, whose residual gives the multipliers directly.
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
from dpopt.lp.problem import Inside

Matrix = npt.NDArray[np.float64]

# Share of the gap that a step may lose by the rounding of multipliers before the next ones leave
# the normal equations.
_LOST = 1e-2
# Share of the way to the boundary that a step takes.
_SHARE = 0.995
_RIDGE, _MOST_RIDGE = 1e-15, 1e-6
_MOST_STEPS = 60
# Weights of rows, in units of the average of the products, up to which the normal equations do.
_LIGHT = 1e12
_EDGE, _TINY = 2.0**-50, 1e-18
# Residual of the rows at which a point is one of its program, in their own units.
_HOLDS = 1e-9
# Share of a variable's range that a point to go on from is away from its limits; and what products
# there are at least, as a share of their average.
_OFF, _LEAST = 1e-9, 0.01
# Rows that are multiplied together, over the columns of any of them; and the share of its row's
# largest at which an entry is no more than rounding.
_TOGETHER, _NOTHING = 32, 2.0**-60


_Solved = Callable[[Vector], tuple[Vector, Vector | None]]


@dataclass
class State:
    """A point, its slacks, and the multipliers of rows and of the limits of x."""

    x: Vector
    s: Vector
    y: Vector
    z: Vector
    w: Vector


class Interior:
    """One program and the state of the method on it.

    Args:
        cost: shape (variables,), of size about one.
        width: shape (variables,), upper limits, finite and positive; the lower ones are 0.
    """

    def __init__(self, cost: Vector, width: Vector) -> None:
        self.cost, self.width = cost, width
        self.matrix: Matrix = np.empty((0, cost.size))
        # Rows that stand together, and the columns outside of which they are zero.
        self.blocks: list[tuple[slice, slice]] = []
        self.limit: Vector = np.empty(0)
        level = np.full(cost.size, float(np.max(np.abs(cost), initial=0.0)) or 1.0)
        self.state = State(0.5 * width, np.empty(0), np.empty(0), level, level.copy())

    def bound(self, y: Vector) -> float:
        """Return the lower bound on the optimum that multipliers give."""
        reduced = self.cost + self._transposed(y)
        return float(np.minimum(reduced, 0.0) @ self.width - self.limit @ y)

    def add(self, matrix: Matrix, limit: Vector, x: Vector) -> npt.NDArray[np.int64]:
        """Put rows below those present, and go on from a point.

        A binomial distribution over the ones of s voters out of K has about 9 sqrt(s) entries that
        count: rows that are zero but for nearly the same stretch are put together, entries that are
        no more than the rounding of their row's largest as 0.

        Args:
            matrix: the new rows, shape (rows, variables).
            limit: shape (rows,).
            x: the point; it should leave a slack in all rows.

        Returns:
            The order in which the rows are put.
        """
        before, count = self.state, self.limit.size
        sizes = np.abs(matrix)
        counts = sizes > _NOTHING * np.max(sizes, axis=1, initial=0.0)[:, None]
        first = np.argmax(counts, axis=1)
        last = matrix.shape[1] - np.argmax(counts[:, ::-1], axis=1)
        order = np.lexsort((first, np.round(np.log2(last - first))))
        for start in range(0, order.size, _TOGETHER):
            part = order[start : start + _TOGETHER]
            rows = slice(count + start, count + start + part.size)
            self.blocks.append((rows, slice(int(first[part].min()), int(last[part].max()))))
        self.matrix = np.vstack([self.matrix, np.where(counts, matrix, 0.0)[order]])
        self.limit = np.concatenate([self.limit, limit[order]])
        y = np.concatenate([before.y, np.zeros(limit.size)])
        x = np.clip(x, _OFF * self.width, (1.0 - _OFF) * self.width)
        mean = _mean(before, self.width)
        if before.y.size:
            gap = max(float(self.cost @ x) - self.bound(y), _TINY)
            mean = _LEAST * gap / (y.size + 2 * x.size)
        s = np.maximum(self.limit - self._times(x), mean**0.5)
        self.state = State(
            x,
            s,
            np.maximum(y, mean / s),
            np.maximum(before.z, mean / x),
            np.maximum(before.w, mean / (self.width - x)),
        )
        self._balance()
        return order

    def solve(self, aim: Callable[[float], float], pause: Callable[[], object]) -> float:
        """Step until the gap is at most ``aim(best bound)``; return the best bound."""
        best, self._precise = -np.inf, False
        for step in range(_MOST_STEPS + 1):
            state = self.state
            bound = self.bound(state.y)
            best = max(best, bound)
            residual = np.max(np.abs(self.limit - self._times(state.x) - state.s), initial=0.0)
            near = float(self.cost @ state.x) - bound <= aim(best)
            if step == _MOST_STEPS or (step and residual < _HOLDS and near):
                break
            pause()
            self._step()
        return best

    def _balance(self) -> float:
        """Make the multipliers of the limits fit those of the rows, by raising them.

        Returns:
            What that can add to the gap.
        """
        state = self.state
        excess = self.cost + self._transposed(state.y) - state.z + state.w
        state.z = state.z + np.maximum(excess, 0.0)
        state.w = state.w + np.maximum(-excess, 0.0)
        return float(np.abs(excess) @ self.width)

    def _step(self) -> None:
        """Take one step of the predictor and the corrector."""
        state = self.state
        x, s, y, z, w = state.x, state.s, state.y, state.z, state.w
        v = self.width - x
        off = self.limit - self._times(x) - s
        mean = _mean(state, self.width)
        # The weights of the rows, and of the variables themselves.
        heavy, own = y / s, z / x + w / v
        if self._precise:
            solved = self._orthogonal(heavy, own, _LIGHT * mean)
        else:
            solved = self._normal(heavy, own)

        def direction(rs: Vector, rx: Vector, rv: Vector) -> tuple[Vector, ...]:
            # s dy + y ds = rs, x dz + z dx = rx, v dw - w dx = rv, A dx + ds = off and
            # A'dy = dz - dw: a problem of least squares in dx, whose residual is dy and dz - dw.
            wanted = np.concatenate(
                [(y * off - rs) / s / np.sqrt(heavy), (rx / x - rv / v) / np.sqrt(own)]
            )
            dx, left = solved(wanted)
            if left is None:
                ds = off - self._times(dx)
                return dx, ds, (rs - y * ds) / s, (rx - z * dx) / x, (rv + w * dx) / v
            dy, both = -np.sqrt(heavy) * left[: s.size], np.sqrt(own) * left[s.size :]
            ds = np.where(heavy > 1.0, (rs - s * dy) / y, off - self._times(dx))
            dz, dw = (rx - z * dx) / x, (rv + w * dx) / v
            lower = z * v > w * x
            return dx, ds, dy, np.where(lower, both + dw, dz), np.where(lower, dw, dz - both)

        def moved(changes: tuple[Vector, ...], share: float) -> State:
            dx, ds, dy, dz, dw = changes
            along = share * min(1.0 / share, _room(x, dx), _room(v, -dx), _room(s, ds))
            across = share * min(1.0 / share, _room(y, dy), _room(z, dz), _room(w, dw))
            parts = (x + along * dx, s + along * ds)
            return State(*parts, y + across * dy, z + across * dz, w + across * dw)

        changes = direction(-s * y, -x * z, -v * w)
        level = (_mean(moved(changes, 1.0), self.width) / mean) ** 3 * mean
        dx, ds, dy, dz, dw = changes
        self.state = moved(
            direction(level - s * y - ds * dy, level - x * z - dx * dz, level - v * w + dx * dw),
            _SHARE,
        )
        # So near to its upper limit a difference from it would be rounded to 0.
        edge = _EDGE * self.width
        self.state.x = np.clip(self.state.x, edge, self.width - edge)
        gap = _mean(self.state, self.width) * (s.size + 2 * x.size)
        self._precise = self._precise or self._balance() > _LOST * gap

    def _normal(self, heavy: Vector, own: Vector) -> _Solved:
        """Return what solves the least squares by a Cholesky factor of the normal equations."""
        factor, unit = _factor(self._square(heavy, own))
        count, roots = heavy.size, (np.sqrt(heavy), np.sqrt(own))

        def solved(wanted: Vector) -> tuple[Vector, None]:
            slope = self._transposed(roots[0] * wanted[:count]) + roots[1] * wanted[count:]
            return unit * cho_solve((factor, False), unit * slope, check_finite=False), None

        return solved

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

    def _square(self, weights: Vector, own: Vector) -> Matrix:
        """Return A' diag(weights) A + diag(own)."""
        square, roots = np.zeros((own.size, own.size)), np.sqrt(weights)[:, None]
        for rows, columns in self.blocks:
            weighted = self.matrix[rows, columns] * roots[rows]
            square[columns, columns] += weighted.T @ weighted
        square[np.diag_indices_from(square)] += own
        return square

    def _orthogonal(self, heavy: Vector, own: Vector, light: float) -> _Solved:
        """Return what solves the least squares by an orthogonal factorisation, with its residual.

        Rows of small weight, those of the variables among them, are first replaced by the Cholesky
        factor of their normal equations: its rounding is no more than that of the smallest weight.
        """
        count, size = heavy.size, own.size
        roots = np.sqrt(heavy), np.sqrt(own)
        large, wide = np.flatnonzero(heavy > light), np.flatnonzero(own > light)
        few = np.where(heavy > light, 0.0, heavy), np.where(own > light, 0.0, own)
        # A variable whose own row is large can have no other: then this is nothing beside it.
        ridge = np.maximum(few[1], _RIDGE * np.minimum(own, light))
        triangle, unit = _factor(self._square(few[0], ridge))
        triangle = np.triu(triangle) / unit
        constraint_blocks = np.zeros((wide.size, size))
        constraint_blocks[np.arange(wide.size), wide] = roots[1][wide]
        weighted = np.vstack(
            [self.matrix[large] * roots[0][large, None], constraint_blocks, triangle]
        )
        # Large rows first: Householder's method is then accurate in each row.
        order = np.argsort(-np.max(np.abs(weighted), axis=1), kind="stable")
        block: Any = np.asfortranarray(weighted[order])
        factor, tau, _, _ = dgeqrf(block, lwork=64 * size, overwrite_a=1)

        def solved(wanted: Vector) -> tuple[Vector, Vector]:
            slope = self._transposed(np.sqrt(few[0]) * wanted[:count])
            slope += np.sqrt(few[1]) * wanted[count:]
            shown = solve_triangular(triangle, slope, trans="T", check_finite=False)
            both = np.concatenate([wanted[large], wanted[count + wide], shown])
            turned, _, _ = dormqr("L", "T", factor, tau, both[order][:, None], lwork=64)
            dx = solve_triangular(factor[:size], turned[:size, 0], check_finite=False)
            turned[:size] = 0.0
            left, _, _ = dormqr("L", "N", factor, tau, turned, lwork=64)
            back = np.empty(both.size)
            back[order] = left[:, 0]
            residual = wanted - np.concatenate([roots[0] * self._times(dx), roots[1] * dx])
            residual[large] = back[: large.size]
            residual[count + wide] = back[large.size : large.size + wide.size]
            return dx, residual

        return solved


def _mean(state: State, width: Vector) -> float:
    """Return the average of s y, x z and (u - x) w, which is 0 at an optimum."""
    total = state.s @ state.y + state.x @ state.z + (width - state.x) @ state.w
    return float(total) / (state.s.size + 2 * state.x.size)


def _room(values: Vector, change: Vector) -> float:
    """Return how often a change can be added before one of some positive values is 0."""
    falling = change < 0.0
    return float(np.min(values[falling] / -change[falling], initial=np.inf))


def _factor(square: Matrix) -> tuple[Matrix, Vector]:
    """Return the upper Cholesky factor of a matrix whose diagonal is scaled to 1, and the scale.

    What makes it definite is added to the diagonal; the matrix is overwritten.
    """
    diagonal = np.diag_indices_from(square)
    unit = 1.0 / np.sqrt(square[diagonal])
    square *= unit[:, None] * unit
    ridge = _RIDGE
    while True:
        square[diagonal] = 1.0 + ridge
        try:
            return cho_factor(square, check_finite=False)[0], unit
        except np.linalg.LinAlgError:
            ridge *= 100.0
            if not ridge <= _MOST_RIDGE:
                raise


# Share of the gap between feasible value and bound that a round aims for.
_AIM, _FINISH = 0.03, 0.3
_MOST_ROUNDS, _MOST_IDLE = 200, 12
_MOST_ENTRIES = 100_000_000
# How far inside the next round begins, as a share of the gap between feasible value and bound.
_BACK = 0.01


def suits(model: Model, inside: Inside | None) -> bool:
    """Whether interior rounds can solve a program.

    A point inside is known, every variable can move between finite limits, and no written row is
    an equation.
    """
    if inside is None:
        return False
    width = model.upper - model.lower
    return bool(
        np.all(np.isfinite(width))
        and np.all(width > 0.0)
        and np.all(model.rows.lower < model.rows.upper)
        and np.all(model.rows.violation(inside.x) == 0.0)
    )


class Rounds:
    """Cutting planes at interior points.

    The program over the rows so far is solved until its gap is a small share of that of the whole;
    the families are asked about this point, well inside of its program, and give rows. What they
    say makes it feasible: at the point inside every row holds with a slack of at least r, so that
    where none is broken by more than v, the point r / (r + v) of the way from there breaks none.
    The next round goes on from the best of these points, a little further inside, where the new
    rows hold too.

    Attributes:
        rows: of the program in this round, the written ones first.
        owners: the family of each row that is not written.
        x: the point that the families were asked about last; ``worst`` is broken there.
        best: best feasible point so far, of cost ``value``.
        bound: best lower bound so far.
        y: multipliers that give it, of the first of the rows, positive at a lower limit.
        steps: steps in all rounds.
    """

    def __init__(
        self,
        model: Model,
        inside: Inside,
        separate: Callable[[Vector], Mapping[str, Separation]],
        extra: Rows,
        owners: Sequence[str],
    ) -> None:
        self.model, self.inside, self.separate = model, inside, separate
        self.scale = float(np.max(np.abs(model.cost), initial=0.0)) or 1.0
        self.method = Interior(model.cost / self.scale, model.upper - model.lower)
        self.rows, self.owners = stack([], model.cost.size), [*owners]
        # Of each line of the method its row here, the sign and the unit that it is given in.
        self.lines = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
        self.x, self.worst, self.best = inside.x, np.inf, inside.x
        self.value = float(model.cost @ inside.x)
        self.bound, self.y, self.steps = -np.inf, np.empty(0), 0
        self.begun = self._add(stack([model.rows, extra], model.cost.size))

    @one_blas_thread
    def run(
        self,
        relative_gap: float,
        most: int,
        pause: Callable[[], object],
        tell: Callable[[], None],
    ) -> None:
        """Go on until the best point is within a gap of the bound, or the method cannot go on.

        ``pause`` is called before each step and may raise, ``tell`` once a round.
        """
        idle, gap = 0, np.inf
        for _ in range(min(most, _MOST_ROUNDS) if self.begun else 0):
            try:
                self._bounded(relative_gap, pause)
            except np.linalg.LinAlgError:
                return
            x = self.model.lower + self.method.state.x
            if not np.all(np.isfinite(x)):
                return
            self.x = np.clip(x, self.model.lower, self.model.upper)
            separations = self.separate(self.x)
            self.worst = max((answer.worst for answer in separations.values()), default=0.0)
            self._keep_feasible()
            tell()
            idle = 0 if self.value - self.bound < gap else idle + 1
            gap = min(gap, self.value - self.bound)
            if self.near(relative_gap) or idle > _MOST_IDLE:
                return
            for name, answer in separations.items():
                self.owners += [name] * answer.rows.count
            if not self._add(stack([answer.rows for answer in separations.values()], x.size)):
                return

    def near(self, relative_gap: float) -> bool:
        """Whether the best point is within a gap of the bound."""
        unit = objective_size(self.model.cost, self.best)
        return self.value - self.bound <= relative_gap * unit

    def _bounded(self, relative_gap: float, pause: Callable[[], object]) -> None:
        """Solve the program over the present rows, and keep its bound if it is better."""
        fixed = float(self.model.cost @ self.model.lower)
        value = (self.value - fixed) / self.scale
        unit = objective_size(self.model.cost, self.best)
        finish = _FINISH * relative_gap * unit / self.scale
        known = (self.bound - fixed) / self.scale

        def aim(best: float) -> float:
            return max(_AIM * (value - max(best, known)), finish)

        def step() -> None:
            pause()
            self.steps += 1

        self.method.solve(aim, step)
        places, signs, units = self.lines
        y = np.zeros(self.rows.count)
        np.add.at(y, places, -signs * self.method.state.y * units * self.scale)
        bound = dual_bound(replace(self.model, rows=self.rows), y)
        if bound > self.bound:
            self.bound, self.y = bound, y

    def _keep_feasible(self) -> None:
        """Make a feasible point of this one, and keep it if it is the best."""
        if not np.isfinite(self.worst):
            return
        worst = max(self.worst, float(np.max(self.model.rows.violation(self.x), initial=0.0)))
        share = self.inside.slack / (self.inside.slack + worst)
        x = self.inside.x + share * (self.x - self.inside.x)
        value = float(self.model.cost @ x)
        if value < self.value:
            self.best, self.value = x, value

    def _add(self, rows: Rows) -> bool:
        """Give the method the finite limits of rows, each in units of its slack inside.

        Returns:
            Whether all have a slack, and all rows together are not too large.
        """
        before, size = self.rows.count, self.model.cost.size
        self.rows = stack([self.rows, rows], size)
        parts = []
        middle, corner = rows.matrix @ self.inside.x, rows.matrix @ self.model.lower
        for sign, limit in ((1.0, rows.upper), (-1.0, rows.lower)):
            at = np.flatnonzero(np.isfinite(limit))
            slack = sign * (limit[at] - middle[at])
            if np.any(slack <= 0.0):
                return False
            ends = sign * (limit[at] - corner[at]) / slack
            parts.append((at, np.full(at.size, sign), 1.0 / slack, ends))
        place, sign, unit, limits = map(np.concatenate, zip(*parts, strict=True))
        if (self.lines[0].size + place.size) * size > _MOST_ENTRIES:
            return False
        matrix = rows.matrix[place].toarray() * (sign * unit)[:, None]
        order = self.method.add(matrix, limits, self._back())
        added = place[order] + before, sign[order], unit[order]
        places, signs, units = self.lines
        self.lines = (
            np.concatenate([places, added[0]]),
            np.concatenate([signs, added[1]]),
            np.concatenate([units, added[2]]),
        )
        return True

    def _back(self) -> Vector:
        """Return a point inside of all rows, from the best one; the middle before that."""
        if not np.isfinite(self.bound):
            return self.method.state.x
        room = float(self.model.cost @ self.inside.x) - self.value
        share = min(_BACK * (self.value - self.bound) / room, 0.5) if room > 0.0 else 0.5
        return self.best + share * (self.inside.x - self.best) - self.model.lower
