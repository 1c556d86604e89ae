"""Solving a kernel program along a forest through the extreme rays of its private columns.

Along a path the entries of a kernel fall like e^-(epsilon d) with the distance d: below a solver's
tolerance, and the bases of the program are ill conditioned. A column that is private along a
forest is a sum of rays of `forest`'s cone. Over the weights of rays only the other rows are left,
and `forest.price` finds exactly which rays are missing.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from dpopt import _checks
from dpopt._errors import InfeasibleError, SolverError
from dpopt._types import Matrix, SparseMatrix, Vector, frozen
from dpopt.kernel.forest import Forest, Prices, forest_of, price
from dpopt.kernel.setting import KernelSetting
from dpopt.kernel.shapes import Rays, first_rays, keys_of
from dpopt.lp import Backend, Problem, Solution, Status, solve
from dpopt.lp.bound import tight_bound

# What the missing rays could still save, relative to the objective, that ends the rounds: at once,
# and after some rounds without progress, when it is the solver's own noise.
_NEGLIGIBLE, _SMALL, _PATIENCE = 1e-12, 1e-8, 2
_MOST_IDLE, _MOST_ROUNDS = 10, 100
# Factors of all rows, one after the other until the gap is good, relative to the objective: solvers
# measure absolutely, and not below 1e-10, what a row is missed by; the larger may make them stall.
_FACTORS, _GOOD = (16.0, 1.0, 4.0, 2.0), 1e-9
# Factor by which weights of rays may be corrected.
_LARGEST_CHANGE = 1e-3
# Gap, relative to the objective, above which the rows are solved as they stand.
_POOR = 1e-6
# Loss that the first rays miss, relative to the objective, above which the rows are tried first as
# they stand: losses without structure need many rays, and many rounds to find them.
_ASTRAY = 1e-3
# Of the rays that one round may add.
_MOST_ENTRIES = 10_000_000


def solve_kernel(
    setting: KernelSetting,
    problem: Problem,
    backend: str | Backend = "highs",
    *,
    time_limit: float | None = None,
) -> Solution:
    """Solve a kernel program; along a graph without cycles, through the rays of its columns.

    The solution is one of ``problem`` as `dpopt.solve` would return it: values, duals by block and
    the bound recomputed from them. With delta = 0 and a graph without cycles (a path, a star) it
    is found over weights w >= 0 of rays R with K = sum w R, where each R is 1 at some input and
    changes by e^epsilon or e^-epsilon along every edge: a program with the other rows only, whose
    entries are of size one. Where that would take many rays, and `dpopt.solve` comes within 1e-8
    of the bound, its answer is taken; other programs go there at once.

    Args:
        setting: the one that the problem was made from.
        problem: from `kernel_problem`, perhaps with further rows.
        backend: see `dpopt.solve`.
        time_limit: seconds for all solves; None for no limit.

    Raises:
        InfeasibleError: if no kernel satisfies every row; it names the blocks in conflict.
        SolverError: if the solver found no answer.
    """
    _checks.instance("problem", problem, Problem)
    _checks.instance("setting", setting, KernelSetting)
    if time_limit is not None:
        time_limit = _checks.real("time_limit", time_limit, 0.0)
    start = time.perf_counter()
    forest, best = _applies(setting, problem), None
    if forest is None:
        return solve(problem, backend, time_limit=time_limit)
    size = 0.0
    for factor in _FACTORS:
        search = _Search(setting, problem, forest, backend, _left(time_limit, start), factor)
        try:
            found = search.run(_ASTRAY if factor == _FACTORS[0] else math.inf)
            if search.astray:
                plain = search.as_it_stands()
                if plain is not None:
                    return replace(plain, seconds=time.perf_counter() - start)
                found = search.run()
        except InfeasibleError:
            break
        except SolverError as error:
            if error.status == Status.TIME_LIMIT:
                raise
            continue
        if found is not None:
            best = found if best is None else _joined(search, best, found)
            size = search.size
        if best is not None and best.gap <= _GOOD * size:
            break
    if best is not None and best.gap <= _POOR * size:
        return replace(best, seconds=time.perf_counter() - start)
    return solve(problem, backend, time_limit=_left(time_limit, start))


def _joined(search: _Search, one: Solution, two: Solution) -> Solution:
    """Return the better point of two solutions with the better dual vector of the two."""
    sign = -1.0 if search.problem.maximising else 1.0
    unit = float(np.max(np.abs(search.model.cost)))
    point = min((one, two), key=lambda found: sign * found.objective + unit * found.residual)
    dual = max((one, two), key=lambda found: sign * found.bound)
    gap = sign * (point.objective - dual.bound)
    return replace(point, bound=dual.bound, duals=dual.duals, gap=gap)


def _left(time_limit: float | None, start: float) -> float | None:
    return None if time_limit is None else max(0.0, time_limit - (time.perf_counter() - start))


def _applies(setting: KernelSetting, problem: Problem) -> Forest | None:
    known = set(problem.variables) <= {"kernel", "worst"} and "kernel" in problem.variables
    if setting.pairs is None or setting.delta > 0 or not known or problem.families:
        return None
    forest = forest_of(setting.pairs, setting.inputs)
    if forest is None or setting.losses.size * (int(forest.part.max()) + 1) > _MOST_ENTRIES:
        return None
    return forest


def _size(cost: Vector, x: Vector) -> float:
    """Return the size that errors of the objective are measured by, above 0 if any cost is."""
    return max(float(np.sum(np.abs(cost * x))), 1e-6 * float(np.max(np.abs(cost))))


class _Search:
    """Rounds of a program over the weights of some rays, until no ray is missing."""

    def __init__(
        self,
        setting: KernelSetting,
        problem: Problem,
        forest: Forest,
        backend: str | Backend,
        time_limit: float | None,
        factor: float,
    ) -> None:
        self.start, self.factor = time.perf_counter(), factor
        self.setting, self.problem, self.forest = setting, problem, forest
        self.backend, self.time_limit = backend, time_limit
        self.model = problem.assemble()
        self.kernel = problem.variables["kernel"]
        self.rays = first_rays(setting)
        self.known = set(keys_of(self.rays))
        self.iterations = 0
        self.size = 0.0
        self.astray = False

    def run(self, far: float = math.inf) -> Solution | None:
        """Return the best solution of the rounds; None if it is not good enough to be shown.

        None, and ``astray`` is set, if the first rays miss more than ``far`` of the objective.
        """
        best, least, idle = None, math.inf, 0
        for number in range(1, _MOST_ROUNDS + 1):
            x, y, inner = self._round()
            prices = price(self.forest, self._reduced(y), self.setting.epsilon)
            self.size = _size(self.model.cost, x)
            missing = -float(np.minimum(prices.worst, 0.0).sum())
            self.astray |= number == 1 and missing > far * self.size
            if self.astray and far < math.inf:
                return None
            idle = 0 if missing <= 0.5 * least else idle + 1
            if missing < least:
                best, least = (x, y, prices, inner, number), missing
            patience = _PATIENCE if least <= _SMALL * self.size else _MOST_IDLE
            done = least <= _NEGLIGIBLE * self.size or idle >= patience
            if done or not self._extend(prices, _NEGLIGIBLE * self.size):
                break
        return None if best is None else self._solution(*best)

    def as_it_stands(self) -> Solution | None:
        """Return the solution over the rows themselves, with the better of two bounds.

        One takes the solver's multipliers of the privacy rows, the other those that `price` finds
        for its multipliers of the other rows. None if the solver failed, or neither bound is near.
        """
        model, sign = self.model, -1.0 if self.problem.maximising else 1.0
        try:
            plain = solve(self.problem, self.backend, time_limit=_left(self.time_limit, self.start))
        except SolverError as error:
            if error.status == Status.TIME_LIMIT:
                raise
            return None
        y = sign * np.concatenate([plain.duals[name] for name in model.blocks])
        other = y.copy()
        other[model.blocks["privacy"]] = 0.0
        prices = price(self.forest, self._reduced(other), self.setting.epsilon)
        other[model.blocks["privacy"]] = -prices.multipliers.ravel()
        choices = [z for z in (y, other) if np.all(np.isfinite(z))]
        bound, y = max(((tight_bound(model, z), z) for z in choices), key=lambda pair: pair[0])
        gap = sign * plain.objective - bound
        # What repair of the residual may cost, taken in proportion to the largest loss.
        repair = plain.residual * float(np.max(np.abs(model.cost))) * self.setting.inputs
        if gap > _SMALL * self.size or repair > 10 * _SMALL * self.size:
            return None
        duals = {name: frozen(sign * y[place]) for name, place in model.blocks.items()}
        return replace(plain, bound=sign * bound, gap=gap, duals=duals)

    def _round(self) -> tuple[Vector, Vector, Solution]:
        """Solve over the present rays; return point and multipliers of the problem's own rows."""
        left = _left(self.time_limit, self.start)
        lift = self.rays.over_kernel(self.setting.outputs)
        inner = solve(self._program(lift), self.backend, time_limit=left)
        self.iterations += inner.iterations
        y = np.zeros(self.model.rows.count)
        for name, place in self.model.blocks.items():
            if name != "privacy":
                y[place] = self.factor * inner.duals[name]
        return self._point(lift, inner), y, inner

    def _program(self, lift: SparseMatrix) -> Problem:
        """Return the program over weights of rays; a ray's largest entry is 1, so weights <= 1."""
        model, program = self.model, Problem("optimal kernel, over rays")
        program.add_variables("weights", lift.shape[1], lower=0.0, upper=1.0)
        cost = {"weights": lift.T @ model.cost[self.kernel]}
        parts = {name: part for name, part in model.variables.items() if name != "kernel"}
        for name, part in parts.items():
            lower, upper = model.lower[part], model.upper[part]
            program.add_variables(name, lower.size, lower=lower, upper=upper)
            cost[name] = model.cost[part]
        for name, place in model.blocks.items():
            if name != "privacy":
                rows = self.factor * model.rows.matrix[place]
                sides = {"weights": rows[:, self.kernel] @ lift}
                sides |= {other: rows[:, part] for other, part in parts.items()}
                lower = self.factor * model.rows.lower[place]
                upper = self.factor * model.rows.upper[place]
                program.add_rows(name, sides, lower=lower, upper=upper)
        program.minimise(cost)
        return program

    def _point(self, lift: SparseMatrix, inner: Solution) -> Vector:
        x = np.empty(self.model.cost.size)
        for name, part in self.model.variables.items():
            if name == "kernel":
                x[part] = lift @ self._evened(lift, inner["weights"])
            else:
                x[part] = inner[name]
        if "worst" in self.model.variables:
            # What the kernel attains, not what the solver's tolerance made of it.
            losses = self.model.rows.matrix[self.model.blocks["losses"]][:, self.kernel]
            attained = losses @ x[self.kernel]
            worst = attained.min() if self.problem.maximising else attained.max()
            part = self.model.variables["worst"]
            x[part] = np.clip(worst, self.model.lower[part], self.model.upper[part])
        return x

    def _evened(self, lift: SparseMatrix, weights: Vector) -> Vector:
        """Return the weights, changed by factors close to 1 so that rows sum to 1 to rounding.

        The solver leaves its tolerance in the sums, and drops their smallest entries.
        """
        used = np.flatnonzero(weights)
        rows = self.model.rows.matrix[self.model.blocks["sums"]][:, self.kernel]
        sums = (rows @ lift)[:, used].toarray() * weights[used]
        change = np.linalg.lstsq(sums, 1.0 - sums.sum(axis=1), rcond=1e-9)[0]
        evened = np.array(weights)
        if np.max(np.abs(change)) <= _LARGEST_CHANGE:
            evened[used] *= 1.0 + change
        return evened

    def _reduced(self, y: Vector) -> Matrix:
        reduced = self.model.cost - self.model.rows.matrix.T @ y
        return reduced[self.kernel].reshape(self.setting.inputs, self.setting.outputs)

    def _extend(self, prices: Prices, negligible: float) -> bool:
        """Add the rays that would save something; whether any of them is new."""
        part, column = np.nonzero(prices.worst < -negligible / prices.worst.size)
        found = Rays(prices.rays[part, :, column], column.astype(np.int64))
        keys = keys_of(found)
        new = np.array([key not in self.known for key in keys], dtype=bool)
        self.known.update(keys)
        self.rays = Rays(
            np.concatenate([self.rays.shapes, found.shapes[new]]),
            np.concatenate([self.rays.outputs, found.outputs[new]]),
        )
        return bool(np.any(new))

    def _solution(
        self, x: Vector, y: Vector, prices: Prices, inner: Solution, rounds: int
    ) -> Solution | None:
        model, sign = self.model, -1.0 if self.problem.maximising else 1.0
        y[model.blocks["privacy"]] = -prices.multipliers.ravel()
        if not np.all(np.isfinite(y)):
            return None
        value, bound = float(model.cost @ x), tight_bound(model, y)
        return Solution(
            status=Status.OPTIMAL,
            values={name: frozen(x[part]) for name, part in model.variables.items()},
            objective=sign * value,
            bound=sign * bound,
            gap=value - bound,
            residual=float(np.max(model.rows.violation(x), initial=0.0)),
            duals={name: frozen(sign * y[place]) for name, place in model.blocks.items()},
            cuts={},
            constraints_checked=model.rows.count,
            rows_used=inner.rows_used,
            rounds=rounds,
            iterations=self.iterations,
            seconds=time.perf_counter() - self.start,
            backend=inner.backend,
        )
