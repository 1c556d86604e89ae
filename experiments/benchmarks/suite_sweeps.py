"""Benchmarks of sweeps: a program at 50 levels of privacy, and many designs on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import Problem, Solution, public_prior, solve, sweep
from experiments.benchmarks.spec import (
    LIBRARY,
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


WORKERS = 2
_LETTERS = 30
Grid = dict[str, list[float]]


def worst_distance(power: float, epsilon: float) -> float:
    """Return the largest total variation of Algorithm 1 for the law q_i ~ i^power: one design."""
    prior = np.arange(1, _LETTERS + 1) ** power
    return public_prior.minimax_kernel(prior / prior.sum(), epsilon).worst_tv


def grid(points: int) -> Grid:
    """Return ten levels of epsilon, and so many laws that there are ``points`` of both."""
    return {
        "power": np.linspace(0.1, 2.0, points // 10).tolist(),
        "epsilon": np.linspace(0.2, 2.0, 10).tolist(),
    }


@cache
def _cluster() -> Any:  # noqa: ANN401
    """Return the client of a cluster of this machine, which ends with this process."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0")
    return Client(cluster, set_as_default=False)


def grid_on_cluster(points: int) -> Grid:
    """Return the grid once there is a cluster."""
    _cluster()
    return grid(points)


def swept_on_cluster(points: Grid) -> Answer:
    """Sweep on the cluster, with a table on disk."""
    with _cluster().as_current():
        return _swept(points, backend="dask")


def swept_by_processes(points: Grid) -> Answer:
    """Sweep by as many processes, with a table on disk."""
    return _swept(points, workers=WORKERS)


def swept_here(points: Grid) -> Answer:
    """Sweep in this process, with a table on disk."""
    return _swept(points)


def _swept(points: Grid, **how: Any) -> Answer:  # noqa: ANN401
    with TemporaryDirectory() as folder:
        result = sweep(worst_distance, points, table=Path(folder) / "table.jsonl", **how)
    effort = result.effort
    total = math.fsum(record["value"] for record in result.records)
    note = f"{effort.throughput:,.0f} points per second, {effort.batches:,} batches"
    return Answer(total, note=f"{note}, {effort.repeated:,} repeated")


def mapped(points: Grid) -> Answer:
    """Hand Dask a task for each point, all at once; keep the values in memory."""
    client = _cluster()
    pairs = [(power, epsilon) for power in points["power"] for epsilon in points["epsilon"]]
    futures = client.map(worst_distance, *zip(*pairs, strict=True), pure=False)
    return Answer(math.fsum(client.gather(futures)), note=f"{len(futures):,} tasks")


def by_joblib(points: Grid) -> Answer:
    """Have joblib hand the points to Dask; keep the values in memory."""
    import joblib

    calls = (
        joblib.delayed(worst_distance)(power, epsilon)
        for power in points["power"]
        for epsilon in points["epsilon"]
    )
    with _cluster().as_current(), joblib.parallel_config(backend="dask"):
        return Answer(math.fsum(joblib.Parallel()(calls)))


_DASK = ("distributed", "test")

MANY = Benchmark(
    name="sweep-cluster",
    title="Many designs on a cluster",
    measures="Time of the process that hands out the points, which has client and scheduler in "
    "it: what a point costs beside its design. The two workers are not counted.",
    setting=f"Algorithm 1 for {_LETTERS} letters, a design of about 0.1 ms; a cluster of this "
    "machine, started before",
    axis="designs",
    value="sum of the largest distances",
    sizes=(100, 300, 1000, 3000, 10_000),
    contenders=(
        Contender("dpopt.sweep, Dask", OURS, grid_on_cluster, swept_on_cluster, needs=_DASK),
        Contender("dpopt.sweep, processes", OURS, grid, swept_by_processes),
        Contender("dpopt.sweep, this process", OURS, grid, swept_here),
        Contender("Dask, a task each", LIBRARY, grid_on_cluster, mapped, needs=_DASK),
        Contender("joblib on Dask", LIBRARY, grid_on_cluster, by_joblib, needs=_DASK),
    ),
    tolerance=1e-9,
    warm_up=20,
    limits=limited(_SECONDS),
)

BENCHMARKS = (
    _benchmark("sweep-path", "Sweep of 50 epsilons over a path", over_path),
    _benchmark("sweep-complete", "Sweep of 50 epsilons over all pairs", over_all_pairs),
    MANY,
)
