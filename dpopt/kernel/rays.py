"""Solving a kernel program along a graph without cycles, through the rays of its columns.

Three inputs 0 - 1 - 2 on a path, one output: a column is k = (K[0], K[1], K[2]). It is private if
neighbours differ by a factor of e^epsilon at most, and these columns are a cone. With a =
e^-epsilon, its extreme rays change by exactly that factor along every edge, and there are 2^2 of
them: (1, a, a^2), (a, 1, a), (1, a, 1) and (a^2, a, 1). Every private column is a sum of rays with
weights >= 0, so that the weights may be the variables: privacy then needs no rows, and is kept
whatever the solver's tolerance. It matters, since along a path of 100 inputs entries of a kernel
fall like a^d with the distance d: far below any tolerance, which rows K[x] <= e^epsilon K[x'] would
be measured by.

There are too many rays to write all down. A program over some of them (`first_rays`) gives
multipliers of the other rows (sums, losses, ...), hence a reduced cost c of every entry of K, and
`price` finds the ray of least <c, k> exactly: if it is negative, that ray is missing, and the
program is solved again with it. If none is, the solution is that of all rays.

Pricing takes two passes over the tree. For a vector c, the least <c, k> over private k with k_r = 1
follows from messages along the edges: a part of the tree whose own least value is v adds v
e^-epsilon if v >= 0, and v e^epsilon if v < 0, to the node that it hangs from.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from dpopt._errors import InfeasibleError, SolverError
from dpopt._types import IntVector, Matrix, SparseMatrix, Vector, frozen
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.lp.backends.highs import Highs
from dpopt.lp.solution import tight_bound
from dpopt.privacy import Problem
from dpopt.privacy.graph import links

if TYPE_CHECKING:
    from dpopt.kernel.setting import KernelSetting

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
# Rows from which on interior points are tried first, and the gap at which no other way of these is.
_MANY_ROWS, _CLOSE = 20_000, 1e-7
# Inputs from which on the weights of rays for a largest loss are found by interior points.
_LONG = 150
# Loss that the first rays miss, relative to the objective, above which the rows are tried first as
# they stand: losses without structure need many rays, and many rounds to find them.
_ASTRAY = 1e-3
# Of the rays that one round may add.
_MOST_ENTRIES = 10_000_000
# Each output starts with rays around at least as many inputs; with more while entries are few.
_FEWEST, _ENTRIES = 3, 30_000

Signs = npt.NDArray[np.bool_]


def solve_along_forest(
    setting: KernelSetting,
    problem: Problem,
    backend: str | Backend,
    time_limit: float | None,
) -> Solution:
    """Solve a kernel program; through rays where they apply, as `dpopt.solve` does elsewhere.

    Raises:
        InfeasibleError: if no kernel satisfies every row; it names the blocks in conflict.
        SolverError: if the solver found no answer.
    """
    start = time.perf_counter()
    forest, best = _applies(setting, problem), None
    if forest is None:
        many = setting.delta == 0 and setting.pairs is not None and backend == "highs"
        found = _by_interior_points(problem, time_limit) if many else None
        left = _left(time_limit, start)
        return solve(problem, backend, time_limit=left) if found is None else found
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


def _by_interior_points(problem: Problem, time_limit: float | None) -> Solution | None:
    """Return the solution of a program of very many rows; None for others, or a wide gap.

    On such a one the simplex method takes 400 s where interior points take 30 (12 x 12 inputs).
    """
    if sum(rows.count for rows in problem.blocks.values()) < _MANY_ROWS:
        return None
    try:
        found = solve(problem, Highs(interior=True), relative_gap=_CLOSE, time_limit=time_limit)
    except InfeasibleError:
        raise
    except SolverError as error:
        if error.status == Status.TIME_LIMIT:
            raise
        return None
    model = problem.assemble()
    return found if found.gap <= _POOR * _size(model.cost, found.x) else None


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
        # Along a long path largest losses are nearly equal: the simplex method stalls on the ties.
        long = setting.inputs >= _LONG and "worst" in problem.variables
        self.backend = Highs(interior=True) if long and backend == "highs" else backend
        self.time_limit = time_limit
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
            block, rows = self.model.blocks["losses"], self.model.rows
            limit = (rows.lower if self.problem.maximising else rows.upper)[block]
            attained = rows.matrix[block][:, self.kernel] @ x[self.kernel] - limit
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


@dataclass(frozen=True, eq=False)
class Forest:
    """A graph without cycles, rooted anywhere in each of its components.

    Attributes:
        order: all nodes, every node after its parent, shape (inputs,).
        parent: the parent of each node, -1 for a root, shape (inputs,).
        part: number of the component of each node, shape (inputs,).
        inside: whether node r is x or below it, at place [x, r], shape (inputs, inputs).
        pairs: both directions of each edge, shape (pairs, 2).
    """

    order: IntVector
    parent: IntVector
    part: IntVector
    inside: Signs
    pairs: IntVector


@dataclass(frozen=True, eq=False)
class Prices:
    """What the two passes find for each column c.

    Attributes:
        worst: least <c, k> over private k with k_r = 1 at the root r of a component, where r is
            the node for which this is largest; shape (components, columns). Non-negative in all
            components if and only if <c, k> >= 0 for every private k.
        rays: the private k behind each of them, largest entry 1, zero outside the component;
            shape (components, inputs, columns).
        multipliers: of e^-epsilon k_x <= k_x' for each directed pair (x, x'), shape
            (pairs, columns), at least 0; with them the reduced cost is ``worst`` at the roots and
            0 elsewhere, up to rounding.
    """

    worst: Matrix
    rays: npt.NDArray[np.float64]
    multipliers: Matrix


def forest_of(pairs: IntVector, inputs: int) -> Forest | None:
    """Return the graph of directed neighbours as a forest; None if it has a cycle.

    Args:
        pairs: both directions of each edge, without repeats, shape (pairs, 2).
        inputs: number of nodes.
    """
    edges = links(pairs, inputs)
    count, part = connected_components(edges, directed=False)
    if len(pairs) != 2 * (inputs - count):
        return None
    orders, parent = [], np.full(inputs, -1, dtype=np.int64)
    for label in range(count):
        root = int(np.argmax(part == label))
        nodes, before = breadth_first_order(edges, root, directed=False)
        orders.append(nodes)
        parent[nodes[1:]] = before[nodes[1:]]
    order = np.concatenate(orders).astype(np.int64)
    inside = np.eye(inputs, dtype=bool)
    for x in order[::-1].tolist():
        if parent[x] >= 0:
            inside[parent[x]] |= inside[x]
    return Forest(order, parent, part.astype(np.int64), inside, pairs)


def price(forest: Forest, cost: Matrix, epsilon: float) -> Prices:
    """Return the least value of <c, k> over private columns k, for each column c of ``cost``.

    Args:
        forest: the neighbours.
        cost: shape (inputs, columns).
        epsilon: in nats.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        up, down, total = _messages(forest, cost, epsilon)
        parts = range(int(forest.part.max()) + 1)
        places = [np.flatnonzero(forest.part == label) for label in parts]
        roots = np.stack([nodes[np.argmax(total[nodes], axis=0)] for nodes in places])
        steps = _steps(forest, roots, up, down)
        rays = np.zeros((len(places), *cost.shape))
        for label, nodes in enumerate(places):
            local = steps[nodes]
            rays[label, nodes] = np.exp(epsilon * (local - local.max(axis=0)))
        multipliers = _multipliers(forest, roots, up, down, epsilon)
    worst = np.stack([total[root, np.arange(cost.shape[1])] for root in roots])
    return Prices(worst, rays, multipliers)


def _messages(forest: Forest, cost: Matrix, epsilon: float) -> tuple[Matrix, Matrix, Matrix]:
    """Return what x tells its parent, what the parent tells x, and the value with x as root.

    Sums of the others' messages, never differences: a difference would lose the small ones.
    """
    up, down, total = cost.copy(), np.zeros_like(cost), cost.copy()
    children: list[list[int]] = [[] for _ in forest.order]
    for x in forest.order[::-1].tolist():
        above = int(forest.parent[x])
        if above >= 0:
            children[above].append(x)
            up[above] += _passed(up[x], epsilon)
    for x in forest.order.tolist():
        heard = [_passed(up[child], epsilon) for child in children[x]]
        first = cost[x] + _passed(down[x], epsilon) if forest.parent[x] >= 0 else cost[x].copy()
        after = [np.zeros_like(first)]
        for message in heard[:0:-1]:
            after.append(after[-1] + message)
        for child, message, rest in zip(children[x], heard, after[::-1], strict=False):
            down[child] = first + rest
            first = first + message
        total[x] = first
    return up, down, total


def _passed(value: Matrix, epsilon: float) -> Matrix:
    return value * np.where(value >= 0, math.exp(-epsilon), math.exp(epsilon))


def _steps(forest: Forest, roots: IntVector, up: Matrix, down: Matrix) -> Matrix:
    """Return log k / epsilon for the k of least value, up to a constant in each component."""
    below = np.take_along_axis(forest.inside, roots[forest.part], axis=1)
    fall = np.where(below, np.where(down >= 0, 1.0, -1.0), np.where(up >= 0, -1.0, 1.0))
    steps = np.zeros_like(up)
    for x in forest.order.tolist():
        above = int(forest.parent[x])
        if above >= 0:
            steps[x] = steps[above] + fall[x]
    return steps


def _multipliers(
    forest: Forest, roots: IntVector, up: Matrix, down: Matrix, epsilon: float
) -> Matrix:
    below = np.take_along_axis(forest.inside, roots[forest.part], axis=1)
    grow = math.exp(epsilon)
    # A surplus at one end pays at the other at a discount; a debt is paid by the other end.
    rising = np.where(below, np.maximum(-down, 0.0) * grow, np.maximum(up, 0.0))
    falling = np.where(below, np.maximum(down, 0.0), np.maximum(-up, 0.0) * grow)
    first, second = forest.pairs.T
    return np.where((forest.parent[second] == first)[:, None], rising[second], falling[first])


@dataclass(frozen=True, eq=False)
class Rays:
    """Private columns, each for one output.

    Attributes:
        shapes: one column in each row, largest entry 1, shape (rays, inputs).
        outputs: the output that each is for, shape (rays,).
    """

    shapes: Matrix
    outputs: IntVector

    def over_kernel(self, outputs: int) -> SparseMatrix:
        """Return the matrix from weights to the flattened kernel, (inputs * outputs, rays)."""
        ray, x = np.nonzero(self.shapes)
        places = x * outputs + self.outputs[ray]
        size = (self.shapes.shape[1] * outputs, len(self.outputs))
        return sp.csr_array((self.shapes[ray, x], (places, ray)), shape=size)


def first_rays(setting: KernelSetting) -> Rays:
    """Return e^(-epsilon d(x, i)) for each output and the inputs i of least loss at it.

    Among inputs of equal loss those near the one of least loss come first.
    """
    distance = _distances(setting)
    loss = (setting.losses if setting.sense == "minimise" else -setting.losses).T
    nearness = distance[np.argmin(loss, axis=1)]
    taken = max(_FEWEST, _ENTRIES // (setting.inputs * setting.outputs))
    centres = np.lexsort((nearness, loss))[:, :taken]
    shapes = _decay(setting.epsilon, distance)[centres.ravel()]
    return Rays(shapes, np.repeat(np.arange(setting.outputs), centres.shape[1]))


def _distances(setting: KernelSetting) -> Matrix:
    """Return the lengths of shortest paths, infinite between components."""
    return shortest_path(links(setting.pairs, setting.inputs), unweighted=True)


def _decay(epsilon: float, distance: Matrix) -> Matrix:
    """Return e^(-epsilon d), 0 between components also for epsilon = 0."""
    near = np.isfinite(distance)
    return np.where(near, np.exp(-epsilon * np.where(near, distance, 0.0)), 0.0)


def keys_of(rays: Rays) -> list[bytes]:
    """Return a key for each ray; rays that differ by less than 1e-12 share it."""
    rounded = np.round(rays.shapes, 12)
    return [
        shape.tobytes() + int(y).to_bytes(8, "little")
        for shape, y in zip(rounded, rays.outputs, strict=True)
    ]
