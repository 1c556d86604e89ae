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
from dpopt.lp.bands import Bands, stretches
from dpopt.lp.model import Model, Rows, Separation, stack
from dpopt.lp.problem import Inside
from dpopt.lp.solution import dual_bound

Matrix = npt.NDArray[np.float64]

# Average of the products s y, x z and (u - x) w below which the normal equations are left; and the
# share of their sum that one step may lose of the multipliers.
_ORTHOGONAL, _LOST = 1e-9, 1e-2
# Share of the way to the boundary that a step takes; refinements of the normal equations.
_SHARE, _REFINED = 0.995, 2
_RIDGE, _MOST_RIDGE = 1e-15, 1e-6
_MOST_STEPS = 60
# Weights of rows, in units of the average of the products, up to which the normal equations do.
_LIGHT = 1e12
_EDGE, _TINY = 2.0**-50, 1e-18
# Residual of the rows at which a point is one of its program, in their own units.
_HOLDS, _NEARLY = 1e-9, 1e-7
# How far from the end the point is that the next round begins at, in units of this round's aim:
# at the end itself new rows would take all steps to turn around.
_BEFORE = 1e2
# Share of a variable's room that a point to go on from is away from its limits; and what products
# there are at least, as a share of their average.
_OFF, _LEAST = 1e-9, 0.01


@dataclass
class State:
    """A point, its slacks, and the multipliers of rows and of the limits of x."""

    x: Vector
    s: Vector
    y: Vector
    z: Vector
    w: Vector

    def copy(self) -> State:
        """Return the same numbers in arrays of their own."""
        return State(*(part.copy() for part in (self.x, self.s, self.y, self.z, self.w)))


class Interior:
    """One program and the state of the method on it.

    Args:
        cost: shape (variables,), of size about one.
        width: shape (variables,), upper limits, finite and positive; the lower ones are 0.
    """

    def __init__(self, cost: Vector, width: Vector) -> None:
        self.cost, self.width = cost, width
        self.matrix: Matrix = np.empty((0, cost.size))
        self._stretch = stretches(self.matrix)
        self._bands = Bands(self.matrix, self._stretch)
        self.limit: Vector = np.empty(0)
        size = float(np.max(np.abs(cost), initial=0.0)) or 1.0
        level = np.full(cost.size, size)
        self.state = State(0.5 * width, np.empty(0), np.empty(0), level, level.copy())
        self._warm, self._precise = self.state.copy(), False

    def bound(self, y: Vector) -> float:
        """Return the lower bound on the optimum that multipliers give."""
        reduced = self.cost + self._bands.transposed(y)
        return float(np.minimum(reduced, 0.0) @ self.width - self.limit @ y)

    def add(
        self,
        matrix: Matrix,
        limit: Vector,
        kept: npt.NDArray[np.bool_],
        x: Vector | None = None,
    ) -> None:
        """Put rows below those of the present ones that are kept, and step back from the end.

        Args:
            matrix: the new rows, shape (rows, variables).
            limit: shape (rows,).
            kept: of each present row whether it stays.
            x: a point to go on from, at which all rows hold with a slack; by default that where
                the method was before the end.
        """
        begun = self._warm
        self.matrix = np.vstack([self.matrix[kept], matrix])
        self._stretch = np.hstack([self._stretch[:, kept], stretches(matrix)])
        self._bands = Bands(self.matrix, self._stretch)
        self.limit = np.concatenate([self.limit[kept], limit])
        y = np.concatenate([begun.y[kept], np.zeros(limit.size)])
        if x is None:
            mean = _mean(begun, self.width)
            slack = np.maximum(limit - matrix @ begun.x, max(0.1 * mean**0.5, 1e-6))
            s = np.concatenate([begun.s[kept], slack])
            y[kept.sum() :] = mean / slack
            self.state = State(begun.x, s, y, begun.z, begun.w)
        else:
            x = np.clip(x, _OFF * self.width, (1.0 - _OFF) * self.width)
            s = self.limit - self._bands.times(x)
            gap = max(float(self.cost @ x) - self.bound(y), _TINY)
            mean = _LEAST * gap / (s.size + 2 * x.size)
            s = np.maximum(s, mean**0.5)
            self.state = State(
                x,
                s,
                np.maximum(y, mean / s),
                np.maximum(begun.z, mean / x),
                np.maximum(begun.w, mean / (self.width - x)),
            )
        self._balance()
        # More rows may come before the next step.
        self._warm = self.state.copy()

    def solve(self, aim: Callable[[float], float], pause: Callable[[], object]) -> float:
        """Step until the objective is within an aim of its bound; return the best bound.

        Args:
            aim: given the best bound so far, how near is near enough.
            pause: called before each step.
        """
        best, near, self._precise = -np.inf, None, False
        for step in range(_MOST_STEPS + 1):
            state = self.state
            bound = self.bound(state.y)
            best = max(best, bound)
            distance, wanted = float(self.cost @ state.x) - bound, aim(best)
            off = self.limit - self._bands.times(state.x) - state.s
            residual = float(np.max(np.abs(off), initial=0.0))
            if step and residual < _HOLDS and distance <= wanted:
                break
            if near is None and residual < _NEARLY and distance <= _BEFORE * wanted:
                near = state.copy()
            if step < _MOST_STEPS:
                pause()
                self._step()
        self._warm = self.state.copy() if near is None else near
        return best

    def _balance(self) -> float:
        """Make the multipliers of the limits fit those of the rows, by raising them.

        Returns:
            What that can add to the gap.
        """
        state = self.state
        excess = self.cost + self._bands.transposed(state.y) - state.z + state.w
        state.z = state.z + np.maximum(excess, 0.0)
        state.w = state.w + np.maximum(-excess, 0.0)
        return float(np.abs(excess) @ self.width)

    def _step(self) -> None:
        """Take one step of the predictor and the corrector."""
        state, rows = self.state, self._bands
        x, s, y, z, w = state.x, state.s, state.y, state.z, state.w
        v = self.width - x
        off = self.limit - rows.times(x) - s
        mean = _mean(state, self.width)
        # The weights of the rows, and of the variables themselves.
        heavy, own = y / s, z / x + w / v
        precise = self._precise or mean < _ORTHOGONAL
        if precise:
            solved = _orthogonal(rows, self.matrix, heavy, own, _LIGHT * mean)
        else:
            solved = _normal(rows, heavy, own)

        def direction(rs: Vector, rx: Vector, rv: Vector) -> tuple[Vector, ...]:
            # s dy + y ds = rs, x dz + z dx = rx, v dw - w dx = rv, A dx + ds = off and
            # A'dy = dz - dw: a problem of least squares in dx, whose residual is dy and dz - dw.
            wanted = np.concatenate(
                [(y * off - rs) / s / np.sqrt(heavy), (rx / x - rv / v) / np.sqrt(own)]
            )
            dx, left = solved(wanted)
            if left is None:
                ds = off - rows.times(dx)
                return dx, ds, (rs - y * ds) / s, (rx - z * dx) / x, (rv + w * dx) / v
            dy, both = -np.sqrt(heavy) * left[: s.size], np.sqrt(own) * left[s.size :]
            ds = np.where(heavy > 1.0, (rs - s * dy) / y, off - rows.times(dx))
            dz, dw = (rx - z * dx) / x, (rv + w * dx) / v
            lower = z * v > w * x
            return dx, ds, dy, np.where(lower, both + dw, dz), np.where(lower, dw, dz - both)

        dx, ds, dy, dz, dw = direction(-s * y, -x * z, -v * w)
        along = min(1.0, _room(x, dx), _room(v, -dx), _room(s, ds))
        across = min(1.0, _room(y, dy), _room(z, dz), _room(w, dw))
        ahead = State(
            x + along * dx, s + along * ds, y + across * dy, z + across * dz, w + across * dw
        )
        level = (_mean(ahead, self.width) / mean) ** 3 * mean
        dx, ds, dy, dz, dw = direction(
            level - s * y - ds * dy, level - x * z - dx * dz, level - v * w + dx * dw
        )
        along = min(1.0, _SHARE * min(_room(x, dx), _room(v, -dx), _room(s, ds)))
        across = min(1.0, _SHARE * min(_room(y, dy), _room(z, dz), _room(w, dw)))
        # So near to its upper limit a difference from it would be rounded to 0.
        edge = _EDGE * self.width
        self.state = State(
            np.clip(x + along * dx, edge, self.width - edge),
            s + along * ds,
            y + across * dy,
            z + across * dz,
            w + across * dw,
        )
        gap = _mean(self.state, self.width) * (s.size + 2 * x.size)
        self._precise = precise or self._balance() > _LOST * gap


def _mean(state: State, width: Vector) -> float:
    """Return the average of s y, x z and (u - x) w, which is 0 at an optimum."""
    total = state.s @ state.y + state.x @ state.z + (width - state.x) @ state.w
    return float(total) / (state.s.size + 2 * state.x.size)


def _room(values: Vector, change: Vector) -> float:
    """Return how often a change can be added before one of some positive values is 0."""
    falling = change < 0.0
    return float(np.min(values[falling] / -change[falling], initial=np.inf))


Solver = tuple[Matrix, Vector]
_Solved = Callable[[Vector], tuple[Vector, Vector | None]]


def _factor(square: Matrix) -> Solver:
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


def _normal(rows: Bands, heavy: Vector, own: Vector) -> _Solved:
    """Return what solves the least squares by a Cholesky factor of the normal equations."""
    square = rows.square(heavy)
    square[np.diag_indices_from(square)] += own
    factor, unit = _factor(square)
    count, roots = heavy.size, (np.sqrt(heavy), np.sqrt(own))

    def solved(wanted: Vector) -> tuple[Vector, None]:
        dx = np.zeros(own.size)
        for _ in range(1 + _REFINED):
            left = wanted[:count] - roots[0] * rows.times(dx), wanted[count:] - roots[1] * dx
            slope = rows.transposed(roots[0] * left[0]) + roots[1] * left[1]
            dx = dx + unit * cho_solve((factor, False), unit * slope, check_finite=False)
        return dx, None

    return solved


def _orthogonal(rows: Bands, matrix: Matrix, heavy: Vector, own: Vector, light: float) -> _Solved:
    """Return what solves the least squares by an orthogonal factorisation, with its residual.

    Rows of small weight, those of the variables among them, are first replaced by the Cholesky
    factor of their normal equations: its rounding is no more than that of the smallest weight.
    """
    count, size = heavy.size, own.size
    roots = np.sqrt(heavy), np.sqrt(own)
    large, wide = np.flatnonzero(heavy > light), np.flatnonzero(own > light)
    few = np.where(heavy > light, 0.0, heavy), np.where(own > light, 0.0, own)
    square = rows.square(few[0])
    diagonal = np.diag_indices_from(square)
    # A variable whose own row is large can have no other: then this is nothing beside it.
    square[diagonal] += np.maximum(few[1], _RIDGE * np.minimum(own, light))
    triangle, unit = _factor(square)
    triangle = np.triu(triangle) / unit
    own_rows = np.zeros((wide.size, size))
    own_rows[np.arange(wide.size), wide] = roots[1][wide]
    weighted = np.vstack([matrix[large] * roots[0][large, None], own_rows, triangle])
    # Large rows first: Householder's method is then accurate in each row.
    order = np.argsort(-np.max(np.abs(weighted), axis=1), kind="stable")
    block: Any = np.asfortranarray(weighted[order])
    factor, tau, _, _ = dgeqrf(block, lwork=64 * size, overwrite_a=1)

    def solved(wanted: Vector) -> tuple[Vector, Vector]:
        slope = rows.transposed(np.sqrt(few[0]) * wanted[:count]) + np.sqrt(few[1]) * wanted[count:]
        shown = solve_triangular(triangle, slope, trans="T", check_finite=False)
        both = np.concatenate([wanted[large], wanted[count + wide], shown])
        turned, _, _ = dormqr("L", "T", factor, tau, both[order][:, None], lwork=64)
        dx = solve_triangular(factor[:size], turned[:size, 0], check_finite=False)
        turned[:size] = 0.0
        left, _, _ = dormqr("L", "N", factor, tau, turned, lwork=64)
        back = np.empty(both.size)
        back[order] = left[:, 0]
        residual = wanted - np.concatenate([roots[0] * rows.times(dx), roots[1] * dx])
        residual[large] = back[: large.size]
        residual[count + wide] = back[large.size : large.size + wide.size]
        return dx, residual

    return solved


# Slack, as a share of that at the point inside, above which a row is left out, in the first rounds.
_FAR, _DROPPING = 0.2, 30
# Share of the gap between feasible value and bound that a round aims for.
_AIM, _FINISH = 0.03, 0.3
_MOST_ROUNDS, _MOST_IDLE = 200, 12
# How far towards the rows that a new point breaks the best one is moved.
_TOWARDS = 0.999
_MOST_ENTRIES = 100_000_000
# What going on from the best point costs by going back inside first, as a share of the gap.
_BACK = 0.01


@dataclass(frozen=True)
class Told:
    """One interior round.

    Attributes:
        x: the point that the families were asked about.
        worst: worst violation that they found.
        bound: best lower bound so far.
        best: best feasible point so far.
        value: its cost.
        rows: rows in the program of this round.
    """

    x: Vector
    worst: float
    bound: float
    best: Vector
    value: float
    rows: int


@dataclass(frozen=True)
class Found:
    """A feasible point, and multipliers that bound the optimum.

    Attributes:
        x: the point.
        rows: rows of the families that the multipliers are of.
        owners: the family of each row.
        y: multipliers of the written rows and then of these, positive at a lower limit.
        steps: steps in all rounds.
        close: whether point and bound are as near as was asked for.
    """

    x: Vector
    rows: Rows
    owners: list[str]
    y: Vector
    steps: int
    close: bool


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
    rows hold too. Bounds of earlier rounds stay bounds, whatever rows are left out later.

    Args:
        model: the program without families.
        inside: a point at which all rows hold with a slack.
        separate: asks the families about a point.
        extra: rows that they gave before.
        owners: the family of each.
        dropping: whether rows far from the point are left out in the first rounds; not where they
            were spread all over a family, to keep the point away from rows that are not there.
    """

    def __init__(
        self,
        model: Model,
        inside: Inside,
        separate: Callable[[Vector], Mapping[str, Separation]],
        extra: Rows,
        owners: Sequence[str],
        *,
        dropping: bool = True,
    ) -> None:
        self.model, self.inside, self.separate = model, inside, separate
        self.dropping = dropping
        self.scale = float(np.max(np.abs(model.cost), initial=0.0)) or 1.0
        width = model.upper - model.lower
        self.method = Interior(model.cost / self.scale, width)
        self.rows, self.owners = model.rows, [""] * model.rows.count
        # Of each line of the method its row here, the sign and the unit that it is given in.
        self.lines = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
        self.best, self.value = inside.x, float(model.cost @ inside.x)
        self.bound, self.proof = -np.inf, (self.rows, list(self.owners), np.zeros(self.rows.count))
        self.steps = 0
        self.begun = self._lines(self.rows, 0) and self._add(extra, list(owners), drop=False)

    @one_blas_thread
    def run(
        self,
        relative_gap: float,
        enough: float,
        left: int,
        pause: Callable[[], object],
        tell: Callable[[Told], None],
    ) -> Found | None:
        """Return what was found, near enough or not; None if the method cannot go on.

        Args:
            relative_gap: in units of sum |c x| or of the largest |c|, whichever is more.
            enough: a wider one that will do where this one is not reached.
            left: rounds that may be taken.
            pause: called before each step; it may raise.
            tell: called once a round.
        """
        if not self.begun:
            return None
        idle, gap = 0, np.inf
        for count in range(min(left, _MOST_ROUNDS)):
            try:
                self._bounded(relative_gap, pause)
            except np.linalg.LinAlgError:
                break
            x = self.model.lower + self.method.state.x
            if not np.all(np.isfinite(x)):
                break
            x = np.clip(x, self.model.lower, self.model.upper)
            separations = self.separate(x)
            worst = max((answer.worst for answer in separations.values()), default=0.0)
            self._improve(x, separations, worst)
            tell(Told(x, worst, self.bound, self.best, self.value, self.rows.count))
            if self.value - self.bound <= relative_gap * self._unit():
                return self._found(close=True)
            idle = 0 if self.value - self.bound < gap else idle + 1
            gap = min(gap, self.value - self.bound)
            rows = stack([answer.rows for answer in separations.values()], x.size)
            owners = [name for name, a in separations.items() for _ in range(a.rows.count)]
            drop = self.dropping and count < _DROPPING
            if idle > _MOST_IDLE or not self._add(rows, owners, drop=drop):
                break
        return self._found(close=self.value - self.bound <= enough * self._unit())

    def _unit(self) -> float:
        return max(float(np.sum(np.abs(self.model.cost * self.best))), self.scale)

    def _bounded(self, relative_gap: float, pause: Callable[[], object]) -> None:
        """Solve the program over the present rows, and keep its bound if it is better."""
        fixed = float(self.model.cost @ self.model.lower)
        value = (self.value - fixed) / self.scale
        finish = _FINISH * relative_gap * self._unit() / self.scale
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
        bound = dual_bound(replace(self.model, rows=self.rows), self.rows, y)
        if bound > self.bound:
            self.bound, self.proof = bound, (self.rows, list(self.owners), y)

    def _improve(self, x: Vector, separations: Mapping[str, Separation], worst: float) -> None:
        """Make feasible points of one, and keep the best."""
        if np.isfinite(worst):
            self._keep(self._inwards(x, max(worst, 0.0)))
        rows = stack([answer.rows for answer in separations.values()], x.size)
        if not rows.count or not np.isfinite(worst):
            return
        # From the best point towards this one, until a row that this one breaks is tight.
        share = _TOWARDS
        for sign, limit in ((1.0, rows.upper), (-1.0, rows.lower)):
            at, to = (sign * (limit - rows.matrix @ point) for point in (self.best, x))
            broken = np.isfinite(limit) & (to < 0.0)
            share = min(
                share,
                float(np.min(_TOWARDS * at[broken] / (at[broken] - to[broken]), initial=share)),
            )
        moved = self.best + max(share, 0.0) * (x - self.best)
        if float(self.model.cost @ moved) < self.value:
            worst = max((answer.worst for answer in self.separate(moved).values()), default=0.0)
            if np.isfinite(worst):
                self._keep(self._inwards(moved, max(worst, 0.0)))

    def _inwards(self, x: Vector, worst: float) -> Vector:
        worst = max(worst, float(np.max(self.model.rows.violation(x), initial=0.0)))
        share = self.inside.slack / (self.inside.slack + worst)
        return self.inside.x + share * (x - self.inside.x)

    def _keep(self, x: Vector) -> None:
        value = float(self.model.cost @ x)
        if value < self.value:
            self.best, self.value = x, value

    def _add(self, rows: Rows, owners: list[str], *, drop: bool) -> bool:
        """Give the method new rows, and leave out those far away; False if one is amiss."""
        kept = np.ones(self.lines[0].size, dtype=bool)
        if drop:
            # A row stays if a limit of it is near; written ones always do.
            near = np.zeros(self.rows.count, dtype=bool)
            near[: self.model.rows.count] = True
            near[self.lines[0][self.method.state.s < _FAR]] = True
            kept = near[self.lines[0]]
            place = np.cumsum(near) - 1
            self.lines = (place[self.lines[0][kept]], self.lines[1][kept], self.lines[2][kept])
            self.rows = self.rows.take(near)
            self.owners = [name for name, stays in zip(self.owners, near, strict=True) if stays]
        before = self.rows.count
        self.rows = stack([self.rows, rows], self.model.cost.size)
        self.owners += owners
        return self._lines(rows, before, kept)

    def _lines(self, rows: Rows, before: int, kept: npt.NDArray[np.bool_] | None = None) -> bool:
        """Give the method the finite limits of rows, each in units of its slack inside."""
        kept = np.ones(self.lines[0].size, dtype=bool) if kept is None else kept
        places, signs, units, limits = [], [], [], []
        middle, corner = rows.matrix @ self.inside.x, rows.matrix @ self.model.lower
        for sign, limit in ((1.0, rows.upper), (-1.0, rows.lower)):
            at = np.flatnonzero(np.isfinite(limit))
            slack = sign * (limit[at] - middle[at])
            if np.any(slack <= 0.0):
                return False
            places.append(at)
            signs.append(np.full(at.size, sign))
            units.append(1.0 / slack)
            limits.append(sign * (limit[at] - corner[at]) / slack)
        place, sign, unit = map(np.concatenate, (places, signs, units))
        total = kept.sum() + place.size
        if total * rows.matrix.shape[1] > _MOST_ENTRIES:
            return False
        matrix = rows.matrix[place].toarray() * (sign * unit)[:, None]
        self.lines = (
            np.concatenate([self.lines[0], place + before]),
            np.concatenate([self.lines[1], sign]),
            np.concatenate([self.lines[2], unit]),
        )
        self.method.add(matrix, np.concatenate(limits), kept, self._backed())
        return True

    def _backed(self) -> Vector | None:
        """Return a point inside of all rows, from the best one; None before there is a bound."""
        if not np.isfinite(self.bound):
            return None
        room = float(self.model.cost @ self.inside.x) - self.value
        share = min(_BACK * (self.value - self.bound) / room, 0.5) if room > 0.0 else 0.5
        return self.best + share * (self.inside.x - self.best) - self.model.lower

    def _found(self, *, close: bool) -> Found:
        rows, owners, y = self.proof
        written = self.model.rows.count
        kept = np.arange(rows.count) >= written
        return Found(self.best, rows.take(kept), owners[written:], y, self.steps, close)
