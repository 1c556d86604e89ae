"""Small linear programs with known answers, shared by the tests of every solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dpopt import Problem
from dpopt.lp import Separation, make_rows


@dataclass(frozen=True, eq=False)
class Case:
    """A program and its answer, known without solving it by computer.

    Attributes:
        name: shown in test ids.
        build: returns a new `Problem`.
        objective: the optimum.
        x: the optimal point, None if it is not unique.
        duals: optimal duals of the blocks whose duals are unique.
    """

    name: str
    build: Callable[[], Problem]
    objective: float
    x: tuple[float, ...] | None = None
    duals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def _with_x(size: int, lower: float = 0.0, upper: float = 10.0) -> Problem:
    problem = Problem()
    problem.add_variables("x", size, lower=lower, upper=upper)
    return problem


def budget() -> Problem:
    problem = Problem("budget")
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_rows("budget", [[1.0, 2.0]], upper=2.0)
    problem.maximise([1.0, 1.0])
    return problem


def diet() -> Problem:
    problem = _with_x(2, upper=100.0)
    problem.add_rows("needs", [[1.0, 1.0], [1.0, 3.0]], lower=[4.0, 6.0])
    problem.minimise([2.0, 3.0])
    return problem


def equalities() -> Problem:
    problem = _with_x(3, upper=1.0)
    problem.add_rows("mass", [[1.0, 1.0, 1.0]], lower=1.0, upper=1.0)
    problem.add_rows("lead", [[1.0, -1.0, 0.0]], lower=0.2, upper=0.2)
    problem.minimise([1.0, 2.0, 3.0])
    return problem


def _band() -> Problem:
    problem = _with_x(2, lower=-10.0)
    problem.add_rows("band", [[1.0, 1.0], [1.0, -1.0]], lower=[1.0, -1.0], upper=[3.0, 1.0])
    return problem


def band_above() -> Problem:
    problem = _band()
    problem.maximise([2.0, 1.0])
    return problem


def band_below() -> Problem:
    problem = _band()
    problem.minimise([2.0, 1.0])
    return problem


def degenerate() -> Problem:
    problem = _with_x(2)
    problem.add_rows("sides", np.eye(2), upper=1.0)
    problem.add_rows("corner", [[1.0, 1.0]], upper=2.0)
    problem.maximise([1.0, 1.0])
    return problem


def redundant() -> Problem:
    problem = _with_x(2)
    problem.add_rows("sum", [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]], upper=[4.0, 4.0, 8.0])
    problem.add_rows("first", [[1.0, 0.0]], upper=3.0)
    problem.add_rows("idle", [[1.0, 0.0], [1.0, 1.0]], lower=-5.0, upper=100.0)
    problem.maximise([3.0, 2.0])
    return problem


def midrange() -> Problem:
    problem = Problem()
    problem.add_variables("centre", 1, lower=-np.inf, upper=np.inf)
    problem.add_variables("radius", 1, lower=-np.inf, upper=np.inf)
    points = np.array([0.0, 1.0, 5.0])
    ones = np.ones((3, 1))
    problem.add_rows("right", {"radius": ones, "centre": -ones}, lower=-points)
    problem.add_rows("left", {"radius": ones, "centre": ones}, lower=points)
    problem.minimise({"radius": 1.0})
    return problem


def no_objective() -> Problem:
    problem = _with_x(3, upper=1.0)
    problem.add_rows("mass", [[1.0, 1.0, 1.0]], lower=1.0, upper=1.0)
    return problem


def transport() -> Problem:
    problem = Problem()
    problem.add_variables("flow", 6, lower=0.0, upper=100.0)
    problem.add_rows("supply", np.kron(np.eye(2), np.ones((1, 3))), upper=[20.0, 30.0])
    problem.add_rows("demand", np.kron(np.ones((1, 2)), np.eye(3)), lower=[10.0, 25.0, 15.0])
    problem.minimise([2.0, 4.0, 5.0, 3.0, 1.0, 7.0])
    return problem


def badly_scaled() -> Problem:
    problem = Problem()
    problem.add_variables("x", 1, lower=0.0, upper=1.0)
    problem.add_variables("y", 1, lower=0.0, upper=1e4)
    problem.add_rows("big", [[1e6, 1e3]], upper=2e6)
    problem.add_rows("small", [[1e-4, 1e-4]], upper=1.0)
    problem.maximise({"x": 2e3, "y": 1.0})
    return problem


def klee_minty() -> Problem:
    size = 5
    problem = _with_x(size, upper=1e4)
    rows = np.eye(size)
    for i in range(size):
        rows[i, :i] = 2.0 ** (i - np.arange(i) + 1)
    problem.add_rows("cube", rows, upper=5.0 ** np.arange(1, size + 1))
    problem.maximise(2.0 ** np.arange(size - 1, -1, -1))
    return problem


def matrix_game() -> Problem:
    payoff = np.array([[3.0, -1.0], [-2.0, 4.0]])
    problem = Problem()
    problem.add_variables("play", 2, lower=0.0, upper=1.0)
    problem.add_variables("value", 1, lower=-np.inf, upper=np.inf)
    problem.add_rows("payoff", {"play": payoff.T, "value": -np.ones((2, 1))}, lower=0.0)
    problem.add_rows("mass", {"play": [[1.0, 1.0]]}, lower=1.0, upper=1.0)
    problem.maximise({"value": 1.0})
    return problem


def assignment() -> Problem:
    problem = _with_x(9, upper=1.0)
    problem.add_rows("workers", np.kron(np.eye(3), np.ones((1, 3))), lower=1.0, upper=1.0)
    problem.add_rows("tasks", np.kron(np.ones((1, 3)), np.eye(3)), lower=1.0, upper=1.0)
    problem.minimise([4.0, 2.0, 8.0, 4.0, 3.0, 9.0, 3.0, 1.0, 6.0])
    return problem


def bounds_only() -> Problem:
    problem = Problem()
    problem.add_variables("x", 3, lower=[-1.0, -2.0, 0.5], upper=[4.0, 3.0, 0.5])
    problem.maximise([1.0, -1.0, 1.0])
    return problem


def late_variables() -> Problem:
    problem = _with_x(1)
    problem.add_rows("first", [[1.0]], upper=2.0)
    problem.add_variables("y", 2, lower=-5.0, upper=np.inf)
    problem.add_rows("both", {"y": [[1.0, 1.0]], "x": [[1.0]]}, upper=[6.0])
    problem.add_rows("last", {"y": [[0.0, 1.0]]}, upper=1.0)
    problem.maximise({"x": 3.0, "y": [1.0, 2.0]})
    return problem


ZOO: tuple[Case, ...] = (
    Case("budget", budget, 1.5, (1.0, 0.5), {"budget": (0.5,)}),
    Case("diet", diet, 9.0, (3.0, 1.0), {"needs": (1.5, 0.5)}),
    Case("equalities", equalities, 1.4, (0.6, 0.4, 0.0), {"mass": (1.5,), "lead": (-0.5,)}),
    Case("band_above", band_above, 5.0, (2.0, 1.0), {"band": (1.5, 0.5)}),
    Case("band_below", band_below, 1.0, (0.0, 1.0), {"band": (1.5, 0.5)}),
    Case("degenerate", degenerate, 2.0, (1.0, 1.0)),
    Case("redundant", redundant, 11.0, (3.0, 1.0), {"first": (1.0,), "idle": (0.0, 0.0)}),
    Case(
        "midrange",
        midrange,
        2.5,
        (2.5, 2.5),
        {"right": (0.5, 0.0, 0.0), "left": (0.0, 0.0, 0.5)},
    ),
    Case("no_objective", no_objective, 0.0, None, {"mass": (0.0,)}),
    Case("transport", transport, 125.0, (5.0, 0.0, 15.0, 5.0, 25.0, 0.0)),
    Case("badly_scaled", badly_scaled, 3000.0, (1.0, 1000.0), {"big": (1e-3,), "small": (0.0,)}),
    Case("klee_minty", klee_minty, 3125.0, (0, 0, 0, 0, 3125.0), {"cube": (0, 0, 0, 0, 1.0)}),
    Case(
        "matrix_game", matrix_game, 1.0, (0.6, 0.4, 1.0), {"payoff": (-0.5, -0.5), "mass": (1.0,)}
    ),
    Case("assignment", assignment, 12.0, (0, 1, 0, 1, 0, 0, 0, 0, 1)),
    Case("bounds_only", bounds_only, 6.5, (4.0, -2.0, 0.5)),
    Case(
        "late_variables",
        late_variables,
        11.0,
        (2.0, 3.0, 1.0),
        {"first": (2.0,), "both": (1.0,), "last": (1.0,)},
    ),
)


def disc(x: np.ndarray) -> Separation:
    """Separate from the unit disc by the tangent in the direction of x."""
    length = float(np.linalg.norm(x))
    violated = length > 1.0
    tangent = make_rows(x[None, :] / length if violated else np.zeros((0, 2)), upper=1.0)
    return Separation(tangent, max(0.0, length - 1.0), 1)


@dataclass(frozen=True)
class RandomProgram:
    """A random feasible program over a box, as the arrays that `scipy.optimize.linprog` takes."""

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
