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
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from dpopt._errors import InfeasibleError, SolverError
from dpopt._types import IntVector, Matrix, SparseMatrix, Vector, frozen
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.lp.backends.highs import Highs, HighsSession
from dpopt.lp.model import Model
from dpopt.lp.solution import tight_bound
from dpopt.privacy import Problem
from dpopt.privacy.graph import links

if TYPE_CHECKING:
    from dpopt.kernel.setting import KernelSetting

# What the missing rays could still save, relative to the objective, that ends the rounds; and how
# many rounds without progress do.
_NEGLIGIBLE, _MOST_IDLE, _MOST_ROUNDS = 1e-13, 12, 400
# Gaps, relative to the objective, at which no other way is tried, and above which none is taken.
_GOOD, _POOR = 1e-9, 1e-6
# Rows from which on interior points are tried first, and the gap at which no other way of these is.
_MANY_ROWS, _CLOSE = 20_000, 1e-7
_CROSSED: tuple[dict[str, bool | float | int | str], ...] = (
    {"solver": "ipm"},
    {"solver": "ipm", "presolve": "off"},
)
# Of the rays that one round may add, and of the columns' local best ones the share of the best.
_MOST_ENTRIES, _SHARE = 10_000_000, 0.3
# Rays around each output's best inputs, and for each input the outputs that are best around it.
_NEAREST = 3
# Price of a row that does not sum to 1, in units of what multipliers of sums may reach at an even
# prior; what it is raised by where it is paid, and how often.
_PRICE, _DEARER, _RAISES = 4.0, 16.0, 4
# Of a weight that is not 0 by the solver's tolerance only.
_UNPAID = 1e-9
# Iterations of one round, for each of its rows, that tell of a stall; and the gap at which rows as
# they stand are then an answer.
_STALLED, _SMALL = 20, 1e-8
# Factor by which weights of rays may be corrected.
_LARGEST_CHANGE = 1e-3
# Shifts of the multipliers of sums that are tried for the best bound.
_SHIFTS = 24

Signs = npt.NDArray[np.bool_]


def solve_along_forest(
    setting: KernelSetting,
    problem: Problem,
    backend: str | Backend,
    time_limit: float | None,
    stop_at_gap: float = 0.0,
) -> Solution:
    """Solve a kernel program; through rays where they apply, as `dpopt.solve` does elsewhere.

    Raises:
        InfeasibleError: if no kernel satisfies every row; it names the blocks in conflict.
        SolverError: if the solver found no answer.
    """
    start = time.perf_counter()
    forest = _applies(setting, problem)
    if forest is None:
        many = setting.delta == 0 and setting.pairs is not None and backend == "highs"
        found = _by_interior_points(problem, time_limit, stop_at_gap) if many else None
        if found is None:
            left = _left(time_limit, start)
            found = solve(problem, backend, time_limit=left, stop_at_gap=stop_at_gap)
        return _tightened(problem, found)
    search = _Search(setting, problem, forest, backend, time_limit, stop_at_gap)
    try:
        found = search.run()
        if search.stalled:
            found = search.as_it_stands()
    except InfeasibleError:
        found = None
    except SolverError as error:
        if error.status == Status.TIME_LIMIT:
            raise
        found = None
    if found is not None and found.gap <= max(_POOR, stop_at_gap) * search.size:
        return found
    left = _left(time_limit, start)
    return _tightened(problem, solve(problem, backend, time_limit=left, stop_at_gap=stop_at_gap))


class _Crossed(Highs):
    """HiGHS by interior points, and from the last of them to a vertex."""

    def load(self, model: Model) -> HighsSession:
        """Hand the model to a new HiGHS instance."""
        return HighsSession(model, self.feasibility, _CROSSED)


def _tightened(problem: Problem, found: Solution) -> Solution:
    """Return a solution with the bound of its multipliers whose sums are exact, if it is better.

    `dpopt.solve` takes off what its sums may be rounded by: 1e-8 of it for 200 inputs.
    """
    if problem.families or not np.isfinite(found.bound):
        return found
    model, sign = problem.assemble(), -1.0 if problem.maximising else 1.0
    y = sign * np.concatenate([found.duals[name].ravel() for name in model.blocks])
    bound = tight_bound(model, y)
    if not bound > sign * found.bound:
        return found
    return replace(found, bound=sign * bound, gap=sign * found.objective - bound)


def _by_interior_points(
    problem: Problem, time_limit: float | None, stop_at_gap: float
) -> Solution | None:
    """Return the solution of a program of very many rows; None for others, or a wide gap.

    On such a one the simplex method takes 400 s where interior points take 30 (12 x 12 inputs).
    Where the last of these is too far off, the vertex next to it is tried, too.
    """
    if sum(rows.count for rows in problem.blocks.values()) < _MANY_ROWS:
        return None
    start, best = time.perf_counter(), None
    model = problem.assemble()
    for backend in (Highs(interior=True), _Crossed()):
        left = _left(time_limit, start)
        try:
            found = solve(
                problem, backend, relative_gap=_CLOSE, time_limit=left, stop_at_gap=stop_at_gap
            )
        except InfeasibleError:
            raise
        except SolverError as error:
            if error.status == Status.TIME_LIMIT:
                raise
            continue
        found = _tightened(problem, found)
        if best is None or abs(found.gap) < abs(best.gap):
            best = found
        if abs(best.gap) <= max(_GOOD, stop_at_gap) * _size(model.cost, best.x):
            return best
    close = best is not None and best.gap <= max(_POOR, stop_at_gap) * _size(model.cost, best.x)
    return best if close else None


def _size(cost: Vector, x: Vector) -> float:
    """Return the size that errors of the objective are measured by, above 0 if any cost is."""
    return max(float(np.sum(np.abs(cost * x))), 1e-6 * float(np.max(np.abs(cost))))


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


class _Search:
    """Rounds of a program over the weights of some rays, until no ray is missing.

    The multipliers of sums are the prices that rays compete by. With few rays they are wild, and
    lead to rays that nobody needs: so a row may miss its sum of 1 at a price, which bounds them.
    An optimum's are bounded: where 0 < h <= 1 - e^-epsilon, the sum of one row may be 1 - h or 1 +
    h, so that its multiplier is at most (greatest loss - least loss) / (1 - e^-epsilon) in size.
    """

    def __init__(
        self,
        setting: KernelSetting,
        problem: Problem,
        forest: Forest,
        backend: str | Backend,
        time_limit: float | None,
        stop_at_gap: float,
    ) -> None:
        self.start = time.perf_counter()
        self.setting, self.problem, self.forest = setting, problem, forest
        self.backend, self.time_limit = backend, time_limit
        self.stop_at_gap = stop_at_gap
        self.model = problem.assemble()
        self.kernel = problem.variables["kernel"]
        # Largest losses are nearly equal at an optimum: the simplex method may stall on such ties.
        self.level = "worst" in problem.variables
        first = first_rays(setting)
        self.known = set(keys_of(first))
        self.groups = [first]
        self.lifts = [first.over_kernel(setting.outputs)]
        reach = float(np.ptp(setting.losses)) / max(-math.expm1(-setting.epsilon), 1e-3)
        self.price = _PRICE * reach / setting.inputs or 1.0
        self.raises = 0
        self.iterations = 0
        self.size = 0.0
        self.stalled = False

    def run(self) -> Solution | None:
        """Return the best solution of the rounds; None if rows could not be made to sum to 1."""
        inner, best, least, idle, rounds = None, None, math.inf, 0, 0
        while rounds < _MOST_ROUNDS:
            rounds += 1
            inner = self._round(inner)
            if self.level and inner.iterations > _STALLED * inner.rows_used:
                self.stalled = True
                return None
            y = self._multipliers(inner)
            prices = price(self.forest, self._reduced(y), self.setting.epsilon)
            paid = max(float(np.max(inner[name])) for name in ("short", "over"))
            self.size = max(abs(inner.objective), 1e-6 * float(np.max(np.abs(self.model.cost))))
            if self.stop_at_gap and paid <= _UNPAID:
                found = self._solution(inner, y, len(self.groups), rounds)
                if found.gap <= self.stop_at_gap * self.size:
                    return found
            missing = -float(np.minimum(prices.least.min(axis=0), 0.0).sum())
            idle = 0 if missing <= 0.5 * least else idle + 1
            if missing < least and paid <= _UNPAID:
                best = (inner, y, len(self.groups))
            least = min(least, missing)
            done = missing <= _NEGLIGIBLE * self.size or idle >= _MOST_IDLE
            if not done and self._extend(prices, _NEGLIGIBLE * self.size):
                continue
            if paid <= _UNPAID:
                best = best or (inner, y, len(self.groups))
                break
            if self.raises == _RAISES:
                return None
            self.price, self.raises, least, idle = (
                _DEARER * self.price,
                self.raises + 1,
                math.inf,
                0,
            )
        return None if best is None else self._solution(*best, rounds)

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
        choices = [(y, tight_bound(model, y)), self._bounded(y)]
        y, bound = max(choices, key=lambda choice: choice[1])
        gap = sign * plain.objective - bound
        # What repair of the residual may cost, taken in proportion to the largest loss.
        repair = plain.residual * float(np.max(np.abs(model.cost))) * self.setting.inputs
        if gap > _SMALL * self.size or repair > 10 * _SMALL * self.size:
            return None
        duals = {name: frozen(sign * y[place]) for name, place in model.blocks.items()}
        return replace(plain, bound=sign * bound, gap=gap, duals=duals)

    def _round(self, before: Solution | None) -> Solution:
        """Solve over the present rays, from where the last round ended."""
        left = _left(self.time_limit, self.start)
        inner = solve(self._program(), self.backend, start=before, time_limit=left)
        self.iterations += inner.iterations
        return inner

    def _multipliers(self, inner: Solution) -> Vector:
        y = np.zeros(self.model.rows.count)
        for name, place in self.model.blocks.items():
            if name != "privacy":
                y[place] = inner.duals[name]
        return y

    def _program(self) -> Problem:
        """Return the program over weights of rays; a ray's largest entry is 1, so weights <= 1."""
        model, program = self.model, Problem("optimal kernel, over rays")
        cost = {}
        for place, lift in enumerate(self.lifts):
            program.add_variables(f"weights {place}", lift.shape[1], lower=0.0, upper=1.0)
            cost[f"weights {place}"] = lift.T @ model.cost[self.kernel]
        parts = {name: part for name, part in model.variables.items() if name != "kernel"}
        for name, part in parts.items():
            lower, upper = model.lower[part], model.upper[part]
            program.add_variables(name, lower.size, lower=lower, upper=upper)
            cost[name] = model.cost[part]
        inputs = self.setting.inputs
        for name in ("short", "over"):
            program.add_variables(name, inputs, lower=0.0, upper=1.0)
            cost[name] = np.full(inputs, self.price)
        for name, place in model.blocks.items():
            if name != "privacy":
                rows = model.rows.matrix[place]
                kernel = rows[:, self.kernel]
                sides = {f"weights {i}": kernel @ lift for i, lift in enumerate(self.lifts)}
                sides |= {other: rows[:, part] for other, part in parts.items()}
                if name == "sums":
                    one = sp.eye_array(inputs, format="csr")
                    sides |= {"short": one, "over": -one}
                lower, upper = model.rows.lower[place], model.rows.upper[place]
                program.add_rows(name, sides, lower=lower, upper=upper)
        program.minimise(cost)
        return program

    def _point(self, inner: Solution, groups: int) -> Vector:
        x = np.empty(self.model.cost.size)
        lift = sp.hstack(self.lifts[:groups], format="csr")
        weights = np.concatenate([inner[f"weights {place}"] for place in range(groups)])
        for name, part in self.model.variables.items():
            if name == "kernel":
                x[part] = lift @ self._evened(lift, weights)
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
        least = prices.least
        wanted = least < np.minimum(-negligible / least.shape[1], _SHARE * least.min(axis=0))
        # Neighbours of a root mostly have its ray, too.
        lowest = np.full(least.shape, np.inf)
        first, second = self.forest.pairs.T
        np.minimum.at(lowest, first, least[second])
        root, column = np.nonzero(wanted & (least <= lowest))
        found = Rays(prices.rays(root, column), column.astype(np.int64))
        new = []
        for place, key in enumerate(keys_of(found)):
            if key not in self.known:
                self.known.add(key)
                new.append(place)
        if not new:
            return False
        added = Rays(found.shapes[new], found.outputs[new])
        self.groups.append(added)
        self.lifts.append(added.over_kernel(self.setting.outputs))
        return True

    def _bounded(self, y: Vector) -> tuple[Vector, float]:
        """Return multipliers of all rows with the best bound among shifts of those of the sums.

        Rays that would still save something, if only the solver's tolerance, have <c, k> >= -s for
        some s, and as their largest entry is 1, c + s leaves none.
        """
        block, best, y = self.model.blocks["sums"], None, np.array(y)
        y[self.model.blocks["privacy"]] = 0.0
        reduced = self._reduced(y)
        prices = price(self.forest, reduced, self.setting.epsilon)
        unit = max(-float(prices.least.min()), 1e-17 * self.size)
        for shift in [0.0, *(unit * 2.0**k for k in range(_SHIFTS))]:
            prices = price(self.forest, reduced + shift, self.setting.epsilon)
            missed = float(np.minimum(prices.worst, 0.0).sum())
            value = missed - shift * self.setting.inputs
            if math.isfinite(value) and (best is None or value > best[0]):
                best = (value, shift, prices)
            if missed == 0.0:
                break
        if best is None:
            return y, -math.inf
        y[block] -= best[1]
        y[self.model.blocks["privacy"]] = -best[2].multipliers.ravel()
        return y, tight_bound(self.model, y) if np.all(np.isfinite(y)) else -math.inf

    def _solution(self, inner: Solution, y: Vector, groups: int, rounds: int) -> Solution:
        model, sign = self.model, -1.0 if self.problem.maximising else 1.0
        x = self._point(inner, groups)
        y, bound = self._bounded(y)
        value = float(model.cost @ x)
        far = _SMALL * self.size < value - bound <= self.stop_at_gap * self.size
        return Solution(
            status=Status.GAP if far else Status.OPTIMAL,
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

    @cached_property
    def children(self) -> list[list[int]]:
        """The nodes that hang from each node."""
        found: list[list[int]] = [[] for _ in self.order]
        for x in self.order[::-1].tolist():
            if self.parent[x] >= 0:
                found[self.parent[x]].append(x)
        return found


@dataclass(frozen=True, eq=False)
class Prices:
    """What the two passes find for each column c.

    Attributes:
        forest: the neighbours.
        epsilon: in nats.
        up: what x tells its parent of <c, k>, shape (inputs, columns).
        down: what the parent tells x, of the same shape.
        total: least <c, k> over private k with k_r = 1, for each root r, of the same shape.
        worst: the largest total of each component, shape (components, columns). Non-negative in all
            of them if and only if <c, k> >= 0 for every private k.
        multipliers: of e^-epsilon k_x <= k_x' for each directed pair (x, x'), shape
            (pairs, columns), at least 0; with them the reduced cost is ``worst`` at the roots that
            it is of and 0 elsewhere, up to rounding.
    """

    forest: Forest
    epsilon: float
    up: Matrix
    down: Matrix
    total: Matrix
    worst: Matrix
    multipliers: Matrix

    @cached_property
    def least(self) -> Matrix:
        """<c, k> of the k behind each total, its largest entry 1, shape (inputs, columns)."""
        with np.errstate(over="ignore", invalid="ignore"):
            heights = _heights(self.forest, self.up, self.down)
            return self.total * np.exp(-self.epsilon * heights)

    def rays(self, roots: IntVector, columns: IntVector) -> Matrix:
        """Return the k behind totals, largest entry 1, 0 outside the root's component.

        Args:
            roots: shape (rays,).
            columns: shape (rays,), the column of each.

        Returns:
            Shape (rays, inputs).
        """
        forest = self.forest
        by_node = np.broadcast_to(roots, (forest.part.size, roots.size))
        steps = _steps(forest, by_node, self.up[:, columns], self.down[:, columns])
        steps[forest.part[:, None] != forest.part[roots]] = -np.inf
        return np.exp(self.epsilon * (steps - steps.max(axis=0))).T if roots.size else steps.T


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
        multipliers = _multipliers(forest, roots, up, down, epsilon)
    worst = np.stack([total[root, np.arange(cost.shape[1])] for root in roots])
    return Prices(forest, epsilon, up, down, total, worst, multipliers)


def _messages(forest: Forest, cost: Matrix, epsilon: float) -> tuple[Matrix, Matrix, Matrix]:
    """Return what x tells its parent, what the parent tells x, and the value with x as root.

    Sums of the others' messages, never differences: a difference would lose the small ones.
    """
    up, down, total = cost.copy(), np.zeros_like(cost), cost.copy()
    for x in forest.order[::-1].tolist():
        above = int(forest.parent[x])
        if above >= 0:
            up[above] += _passed(up[x], epsilon)
    for x in forest.order.tolist():
        heard = [_passed(up[child], epsilon) for child in forest.children[x]]
        first = cost[x] + _passed(down[x], epsilon) if forest.parent[x] >= 0 else cost[x].copy()
        after = [np.zeros_like(first)]
        for message in heard[:0:-1]:
            after.append(after[-1] + message)
        for child, message, rest in zip(forest.children[x], heard, after[::-1], strict=False):
            down[child] = first + rest
            first = first + message
        total[x] = first
    return up, down, total


def _passed(value: Matrix, epsilon: float) -> Matrix:
    return value * np.where(value >= 0, math.exp(-epsilon), math.exp(epsilon))


def _heights(forest: Forest, up: Matrix, down: Matrix) -> Matrix:
    """Return the largest log k / epsilon of the k of least value with k_r = 1, for each root r."""
    below = np.zeros(up.shape)
    for x in forest.order[::-1].tolist():
        above = int(forest.parent[x])
        if above >= 0:
            np.maximum(below[above], below[x] + _towards(up[x]), out=below[above])
    beyond = np.zeros(up.shape)
    for x in forest.order.tolist():
        heard = [below[child] + _towards(up[child]) for child in forest.children[x]]
        first, after = beyond[x].copy(), [np.zeros(up.shape[1])]
        for height in heard[:0:-1]:
            after.append(np.maximum(after[-1], height))
        for child, height, rest in zip(forest.children[x], heard, after[::-1], strict=False):
            beyond[child] = np.maximum(np.maximum(first, rest) + _towards(down[child]), 0.0)
            first = np.maximum(first, height)
    return np.maximum(below, beyond)


def _towards(value: Vector) -> Vector:
    """Return the step to a part of the tree with this least value: down where it is dear."""
    return np.where(value >= 0, -1.0, 1.0)


def _steps(forest: Forest, roots: IntVector, up: Matrix, down: Matrix) -> Matrix:
    """Return log k / epsilon for the k of least value, up to a constant in each component.

    Args:
        forest: the neighbours.
        roots: of the component of each node in each column, shape (inputs, columns).
        up: as in `Prices`.
        down: likewise.
    """
    below = np.take_along_axis(forest.inside, roots, axis=1)
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

    Among inputs of equal loss those near the one of least loss come first. Then, for each i, for
    the outputs of least expected loss of this ray.
    """
    distance = _distances(setting)
    loss = setting.losses if setting.sense == "minimise" else -setting.losses
    prior = setting.weights
    weighed = loss / setting.inputs if prior is None else prior[:, None] * loss
    nearness = distance[np.argmin(loss, axis=0)]
    centres = np.lexsort((nearness, loss.T))[:, :_NEAREST]
    decay = _decay(setting.epsilon, distance)
    told = np.argsort(decay @ weighed, axis=1, kind="stable")[:, :_NEAREST]
    shapes = [decay[centres.ravel()], np.repeat(decay, told.shape[1], axis=0)]
    outputs = [np.repeat(np.arange(setting.outputs), centres.shape[1]), told.ravel()]
    found = Rays(np.concatenate(shapes), np.concatenate(outputs))
    _, places = np.unique(np.array(keys_of(found)), return_index=True)
    return Rays(found.shapes[np.sort(places)], found.outputs[np.sort(places)])


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
