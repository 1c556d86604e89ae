"""Benchmarks of a program that is solved again and again: at 50 levels of privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import Problem, Solution, solve
from experiments.benchmarks.spec import (
    OURS,
    SOLVER,
    Answer,
    Benchmark,
    Contender,
    Target,
    limited,
)

LEVELS = 50
_SEED, _LOW = 11, 0.6
_SECONDS = 300

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sweep:
    """A prior over n inputs, a graph, and the levels of epsilon."""

    prior: Floats
    graph: str
    levels: Floats

    @property
    def inputs(self) -> int:
        """Number of inputs, and of outputs."""
        return self.prior.size

    def cost(self) -> Floats:
        """Return the mean absolute error as a cost of each entry of K."""
        inputs = np.arange(self.inputs)
        return self.prior[:, None] * np.abs(np.subtract.outer(inputs, inputs))

    def low(self) -> Floats:
        """Return the row of how often an answer in the lower half is given."""
        row = np.zeros((self.inputs, self.inputs))
        row[:, : self.inputs // 2] = self.prior[:, None]
        return row


def over_path(inputs: int) -> Sweep:
    """Return a sweep over neighbours x, x + 1, from epsilon = 0.2 to 2."""
    return _sweep(inputs, "path")


def over_all_pairs(inputs: int) -> Sweep:
    """Return a sweep over all pairs of inputs, from epsilon = 0.2 to 2."""
    return _sweep(inputs, "complete")


def _sweep(inputs: int, graph: str) -> Sweep:
    prior = np.random.default_rng([_SEED, inputs]).random(inputs) + 0.1
    return Sweep(prior / prior.sum(), graph, np.linspace(0.2, 2.0, LEVELS))


def program(sweep: Sweep) -> Problem:
    """Return the program at the first level: least mean error, and a row of one's own."""
    problem = Problem("sweep")
    problem.add_variables("K", (sweep.inputs, sweep.inputs), lower=0.0, upper=1.0)
    problem.add_law("sums", "K")
    problem.add_private("privacy", "K", epsilon=float(sweep.levels[0]), graph=sweep.graph)
    problem.add_rows("low", {"K": sweep.low()}, lower=_LOW)
    problem.minimise({"K": sweep.cost()})
    return problem


def solutions(sweep: Sweep, *, warm: bool) -> list[Solution]:
    """Solve level after level, each from the solution of the one before or from nothing."""
    problem, done = program(sweep), []
    for level in sweep.levels:
        problem.replace_private("privacy", epsilon=float(level))
        done.append(solve(problem, start=done[-1] if warm and done else None))
    return done


def from_the_last(sweep: Sweep) -> Answer:
    """Start each level from the solution of the one before."""
    return _answer(solutions(sweep, warm=True))


def from_nothing(sweep: Sweep) -> Answer:
    """Start each level from nothing."""
    return _answer(solutions(sweep, warm=False))


def _answer(done: list[Solution]) -> Answer:
    iterations = sum(solution.iterations for solution in done)
    gap = max(abs(solution.gap) for solution in done)
    return Answer(
        sum(solution.objective for solution in done),
        note=f"{iterations:,} iterations, largest gap {gap:.0e}",
    )


def by_highs(sweep: Sweep) -> Answer:
    """Compile once in cvxpy with e^-epsilon as a parameter; HiGHS solves each level."""
    return _by_cvxpy(sweep, "HIGHS")


def by_clarabel(sweep: Sweep) -> Answer:
    """Compile once in cvxpy with e^-epsilon as a parameter; CLARABEL solves each level."""
    return _by_cvxpy(sweep, "CLARABEL")


def _by_cvxpy(sweep: Sweep, solver: str) -> Answer:
    import cvxpy as cp

    n = sweep.inputs
    kernel, shrink = cp.Variable((n, n), bounds=[0.0, 1.0]), cp.Parameter(nonneg=True)
    rows: list[Any] = [
        cp.sum(kernel, axis=1) == 1,
        cp.sum(cp.multiply(sweep.low(), kernel)) >= _LOW,
    ]
    if sweep.graph == "path":
        rows += [shrink * kernel[1:] <= kernel[:-1], shrink * kernel[:-1] <= kernel[1:]]
    else:
        # Between the greatest entry of a column and e^-epsilon of it, as ours.
        ceiling = cp.Variable((1, n), bounds=[0.0, 1.0])
        every = np.ones((n, 1)) @ ceiling
        rows += [kernel <= every, shrink * every <= kernel]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(sweep.cost(), kernel))), rows)
    total = 0.0
    for level in sweep.levels:
        shrink.value = math.exp(-level)
        problem.solve(solver=solver)
        if problem.status != cp.OPTIMAL:
            raise RuntimeError(f"cvxpy ended with status {problem.status}.")
        total += float(np.asarray(problem.value))
    return Answer(total, note="no bound")


def _benchmark(name: str, title: str, prepare: Callable[[int], Sweep]) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        measures=f"{LEVELS} optima: building, changing and solving the program.",
        setting="epsilon from 0.2 to 2; least mean |x - y|, 3 in 5 answers in the lower half",
        axis="inputs and outputs n",
        value="sum of the optima",
        sizes=(10, 14, 20, 28, 40),
        contenders=(
            Contender("dpopt, start=", OURS, prepare, from_the_last),
            Contender("dpopt, each from nothing", OURS, prepare, from_nothing),
            Contender("cvxpy + HiGHS, Parameter", SOLVER, prepare, by_highs),
            Contender("cvxpy + CLARABEL, Parameter", SOLVER, prepare, by_clarabel),
        ),
        tolerance=1e-6,
        warm_up=5,
        limits=limited(_SECONDS),
        targets=(Target(40, "dpopt, each from nothing", 3.0),),
    )


BENCHMARKS = (
    _benchmark("sweep-path", "Sweep of 50 epsilons over a path", over_path),
    _benchmark("sweep-complete", "Sweep of 50 epsilons over all pairs", over_all_pairs),
)
