"""Small linear programs with known answers, another solver of them, and one that says anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.optimize import linprog

from dpopt import Problem
from dpopt.lp import Model, Rows, Separation, make_rows
from dpopt.lp.backends import RawSolution

INF = np.inf


@dataclass(frozen=True, eq=False)
class Case:
    """A program and its answer, known without solving it by computer.

    Attributes:
        name: shown in test ids.
        variables: size, lower and upper bounds of each group of variables.
        rows: matrix, lower and upper limits of each block.
        sense: what is done to the objective; None if there is none.
        costs: of the objective.
        objective: the optimum.
        x: the optimal point, None if it is not unique.
        duals: optimal duals of the blocks whose duals are unique.
    """

    name: str
    variables: Mapping[str, tuple[int, Any, Any]]
    rows: Mapping[str, tuple[Any, Any, Any]]
    sense: Literal["minimise", "maximise"] | None
    costs: Any
    objective: float
    x: tuple[float, ...] | None = None
    duals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def build(self) -> Problem:
        """Return a new problem; each block is added as soon as its variables are there."""
        problem, waiting = Problem(self.name), deque(self.rows.items())
        for name, (size, lower, upper) in self.variables.items():
            problem.add_variables(name, size, lower=lower, upper=upper)
            while waiting:
                block, (matrix, least, most) = waiting[0]
                if isinstance(matrix, dict) and not matrix.keys() <= problem.variables.keys():
                    break
                problem.add_rows(block, matrix, lower=least, upper=most)
                waiting.popleft()
        if self.sense is not None:
            getattr(problem, self.sense)(self.costs)
        return problem


def _box(size: int, lower: Any = 0.0, upper: Any = 10.0) -> dict[str, tuple[int, Any, Any]]:
    return {"x": (size, lower, upper)}


_ONES, _ROW = np.ones((3, 1)), np.ones((1, 3))
_POINTS, _BAND = np.array([0.0, 1.0, 5.0]), ([[1.0, 1.0], [1.0, -1.0]], [1.0, -1.0], [3.0, 1.0])
# 2^(i - j + 1) below the diagonal of the cube of Klee and Minty.
_CUBE = np.eye(5) + np.tril(2.0 ** (1 + np.subtract.outer(np.arange(5), np.arange(5))), -1)

BUDGET = Case(
    *("budget", _box(2, upper=1.0), {"budget": ([[1.0, 2.0]], None, 2.0)}),
    *("maximise", [1.0, 1.0], 1.5, (1.0, 0.5), {"budget": (0.5,)}),
)
budget = BUDGET.build
ZOO: tuple[Case, ...] = (
    BUDGET,
    Case(
        *("diet", _box(2, upper=100.0), {"needs": ([[1.0, 1.0], [1.0, 3.0]], [4.0, 6.0], None)}),
        *("minimise", [2.0, 3.0], 9.0, (3.0, 1.0), {"needs": (1.5, 0.5)}),
    ),
    Case(
        *("equalities", _box(3, upper=1.0)),
        {"mass": (_ROW, 1.0, 1.0), "lead": ([[1.0, -1.0, 0.0]], 0.2, 0.2)},
        *("minimise", [1.0, 2.0, 3.0], 1.4, (0.6, 0.4, 0.0), {"mass": (1.5,), "lead": (-0.5,)}),
    ),
    Case(
        *("band_above", _box(2, -10.0), {"band": _BAND}),
        *("maximise", [2.0, 1.0], 5.0, (2.0, 1.0), {"band": (1.5, 0.5)}),
    ),
    Case(
        *("band_below", _box(2, -10.0), {"band": _BAND}),
        *("minimise", [2.0, 1.0], 1.0, (0.0, 1.0), {"band": (1.5, 0.5)}),
    ),
    Case(
        *("degenerate", _box(2)),
        {"sides": (np.eye(2), None, 1.0), "corner": ([[1.0, 1.0]], None, 2.0)},
        *("maximise", [1.0, 1.0], 2.0, (1.0, 1.0)),
    ),
    Case(
        *("redundant", _box(2)),
        {
            "sum": ([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]], None, [4.0, 4.0, 8.0]),
            "first": ([[1.0, 0.0]], None, 3.0),
            "idle": ([[1.0, 0.0], [1.0, 1.0]], -5.0, 100.0),
        },
        *("maximise", [3.0, 2.0], 11.0, (3.0, 1.0), {"first": (1.0,), "idle": (0.0, 0.0)}),
    ),
    Case(
        *("midrange", {"centre": (1, -INF, INF), "radius": (1, -INF, INF)}),
        {
            "right": ({"radius": _ONES, "centre": -_ONES}, -_POINTS, None),
            "left": ({"radius": _ONES, "centre": _ONES}, _POINTS, None),
        },
        *("minimise", {"radius": 1.0}, 2.5, (2.5, 2.5)),
        {"right": (0.5, 0.0, 0.0), "left": (0.0, 0.0, 0.5)},
    ),
    Case(
        *("no_objective", _box(3, upper=1.0), {"mass": (_ROW, 1.0, 1.0)}),
        *(None, None, 0.0, None, {"mass": (0.0,)}),
    ),
    Case(
        *("transport", {"flow": (6, 0.0, 100.0)}),
        {
            "supply": (np.kron(np.eye(2), _ROW), None, [20.0, 30.0]),
            "demand": (np.kron(np.ones((1, 2)), np.eye(3)), [10.0, 25.0, 15.0], None),
        },
        *("minimise", [2.0, 4.0, 5.0, 3.0, 1.0, 7.0], 125.0, (5.0, 0.0, 15.0, 5.0, 25.0, 0.0)),
    ),
    Case(
        *("badly_scaled", {"x": (1, 0.0, 1.0), "y": (1, 0.0, 1e4)}),
        {
            "big": ({"x": [[1e6]], "y": [[1e3]]}, None, 2e6),
            "small": ({"x": [[1e-4]], "y": [[1e-4]]}, None, 1.0),
        },
        *("maximise", {"x": 2e3, "y": 1.0}, 3000.0, (1.0, 1000.0)),
        {"big": (1e-3,), "small": (0.0,)},
    ),
    Case(
        *("klee_minty", _box(5, upper=1e4), {"cube": (_CUBE, None, 5.0 ** np.arange(1, 6))}),
        *("maximise", 2.0 ** np.arange(4, -1, -1), 3125.0, (0, 0, 0, 0, 3125.0)),
        {"cube": (0, 0, 0, 0, 1.0)},
    ),
    Case(
        *("matrix_game", {"play": (2, 0.0, 1.0), "value": (1, -INF, INF)}),
        {
            "payoff": ({"play": [[3.0, -2.0], [-1.0, 4.0]], "value": [[-1.0], [-1.0]]}, 0.0, None),
            "mass": ({"play": [[1.0, 1.0]]}, 1.0, 1.0),
        },
        *("maximise", {"value": 1.0}, 1.0, (0.6, 0.4, 1.0)),
        {"payoff": (-0.5, -0.5), "mass": (1.0,)},
    ),
    Case(
        *("assignment", _box(9, upper=1.0)),
        {
            "workers": (np.kron(np.eye(3), _ROW), 1.0, 1.0),
            "tasks": (np.kron(_ROW, np.eye(3)), 1.0, 1.0),
        },
        *("minimise", [4, 2, 8, 4, 3, 9, 3, 1, 6], 12.0, (0, 1, 0, 1, 0, 0, 0, 0, 1)),
    ),
    Case(
        *("bounds_only", _box(3, [-1.0, -2.0, 0.5], [4.0, 3.0, 0.5]), {}),
        *("maximise", [1.0, -1.0, 1.0], 6.5, (4.0, -2.0, 0.5)),
    ),
    Case(
        *("late_variables", {"x": (1, 0.0, 10.0), "y": (2, -5.0, INF)}),
        {
            "first": ([[1.0]], None, 2.0),
            "both": ({"y": [[1.0, 1.0]], "x": [[1.0]]}, None, [6.0]),
            "last": ({"y": [[0.0, 1.0]]}, None, 1.0),
        },
        *("maximise", {"x": 3.0, "y": [1.0, 2.0]}, 11.0, (2.0, 3.0, 1.0)),
        {"first": (2.0,), "both": (1.0,), "last": (1.0,)},
    ),
)


def disc(x: np.ndarray) -> Separation:
    """Separate from the unit disc by the tangent in the direction of x."""
    length = float(np.linalg.norm(x))
    violated = length > 1.0
    tangent = make_rows(x[None, :] / length if violated else np.zeros((0, 2)), upper=1.0)
    return Separation(tangent, max(0.0, length - 1.0), 1)


def disc_problem(cost: Any, separate: Any = disc, before: int = 0) -> Problem:
    """Maximise a cost over the unit disc, or over what an oracle separates from."""
    problem = Problem("disc")
    if before:
        problem.add_variables("before", before, lower=0.0, upper=1.0)
    problem.add_variables("x", 2, lower=-2.0, upper=2.0)
    problem.add_family("disc", separate, over="x" if before else None)
    problem.maximise({"x": cost})
    return problem


def by_scipy(cost: Any, matrix: Any, lower: Any, upper: Any, box: Any) -> float:
    """The least cost of lower <= matrix @ x <= upper in a box, by scipy's linprog."""
    above, below = np.isfinite(upper), np.isfinite(lower)
    answer = linprog(
        cost,
        A_ub=np.vstack([matrix[above], -matrix[below]]),
        b_ub=np.concatenate([upper[above], -lower[below]]),
        bounds=box,
    )
    assert answer.status == 0
    return float(answer.fun)


@dataclass(frozen=True)
class RandomProgram:
    """A random feasible program over a box, as the arrays that `by_scipy` takes."""

    cost: np.ndarray
    matrix: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    box: np.ndarray
    maximising: bool

    def problem(self) -> Problem:
        problem = Problem("random")
        problem.add_variables("x", self.cost.size, lower=self.box[:, 0], upper=self.box[:, 1])
        problem.add_rows("rows", self.matrix, lower=self.lower, upper=self.upper)
        (problem.maximise if self.maximising else problem.minimise)(self.cost)
        return problem

    def optimum(self) -> float:
        """The optimum according to scipy."""
        sign = -1.0 if self.maximising else 1.0
        return sign * by_scipy(sign * self.cost, self.matrix, self.lower, self.upper, self.box)


def random_program(seed: int, *, integral: bool = False) -> RandomProgram:
    """Return a program that is feasible by construction; every kind of row occurs."""
    rng = np.random.default_rng(seed)
    columns, count = int(rng.integers(1, 8)), int(rng.integers(1, 10))
    numbers = rng.normal(size=(count + 1, columns))
    if integral:
        numbers = np.round(4 * numbers)
    cost, matrix = numbers[0], numbers[1:]
    inside = rng.integers(-3, 4, columns).astype(float)
    values = matrix @ inside
    kind = rng.integers(0, 4, count)
    lower = np.where(kind == 1, -np.inf, values - np.where(kind == 0, 0, rng.integers(0, 5, count)))
    upper = np.where(kind == 2, np.inf, values + np.where(kind == 0, 0, rng.integers(0, 5, count)))
    box = np.stack([inside - rng.integers(0, 6, columns), inside + rng.integers(0, 6, columns)], 1)
    return RandomProgram(cost, matrix, lower, upper, box, bool(rng.integers(2)))


@dataclass
class Script:
    """A backend that answers by a script, once for each run.

    Attributes:
        answer: called with the way and the model; returns what the run says.
        runs: the way of every run so far.
    """

    answer: Callable[[int, Model], RawSolution]
    name: str = "script"
    tolerance: float = 1e-9
    runs: list[int] = field(default_factory=list)
    model: Model | None = None
    ways: int = 2

    def load(self, model: Model) -> Script:
        self.model = model
        return self

    def append(self, rows: Rows) -> None:
        del rows

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        del time_limit
        self.runs.append(way)
        assert self.model is not None
        return self.answer(way, self.model)
