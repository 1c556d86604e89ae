"""What the form of the kernel's program costs: shifted, column by column, every ratio by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from dpopt import Solution, public_prior, solve
from experiments.benchmarks.timing import race
from experiments.registry import Advance, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Letters, epsilon, and repeats up to ``slow_from`` letters and from there on."""

    letters: tuple[int, ...] = (10, 20)
    epsilon: float = 1.0
    rounds: int = 3
    slow_from: int = 30
    slow_rounds: int = 1
    seed: int = 0


def run(config: Config, advance: Advance) -> Outcome:
    """Time the program of Gamma_TV in each form; the prior is uniform random, normalised."""
    records, apart = [], 0.0
    rng = np.random.default_rng(config.seed)
    for n in config.letters:
        prior = rng.uniform(size=n)
        prior /= prior.sum()
        optimum = public_prior.minimax_utility(prior, config.epsilon)
        contenders = _contenders(prior, config.epsilon)
        found: dict[str, float] = {}
        timed = {
            name: lambda name=name, run=run, found=found: found.update({name: run()})
            for name, run in contenders.items()
        }
        rounds = config.slow_rounds if n >= config.slow_from else config.rounds
        records += race("Gamma_TV by its program", f"n = {n}", timed, rounds)
        apart = max(apart, *(abs(value - optimum) for value in found.values()))
        advance()
    table = Table.of("Medians of alternating runs in one process; ratio to ours.", records)
    return Outcome({"times": table}, (*_findings(table), _agreement(apart)))


def _contenders(prior: npt.NDArray[np.float64], epsilon: float) -> dict[str, Callable[[], float]]:
    def ours(formulation: str) -> float:
        found: Solution = solve(public_prior.tv_problem(prior, epsilon, formulation))
        return found.objective

    return {
        "shifted (ours)": lambda: ours("shifted"),
        "columns, our backend": lambda: ours("columns"),
        "naive, our backend": lambda: ours("naive"),
        "naive, cvxpy and HiGHS": lambda: with_cvxpy(prior, epsilon),
    }


def with_cvxpy(prior: npt.NDArray[np.float64], epsilon: float, solver: str = "HIGHS") -> float:
    """Return the optimum of the program as the paper states it: a row for each ratio."""
    n = prior.size
    kernel, worst = cp.Variable((n, n), nonneg=True), cp.Variable()
    held = [cp.sum(kernel, axis=1) == 1, prior @ kernel == prior, 1 - cp.diag(kernel) <= worst]
    for i in range(n):
        held += [kernel[i] <= math.exp(epsilon) * kernel[j] for j in range(n) if j != i]
    problem = cp.Problem(cp.Minimize(worst), held)
    problem.solve(solver=solver)
    return float(np.asarray(problem.value))


def _findings(table: Table) -> tuple[str, ...]:
    return tuple(
        f"{row[1]}: {row[2]} takes {row[6]:.3g} times as long as ours ({row[3]:.3g} s)."
        for row in table.rows
        if isinstance(row[6], float) and isinstance(row[3], float) and "ours" not in str(row[2])
    )


def _agreement(apart: float) -> str:
    return f"All optima agree with Theorem 1's Gamma_TV within {max(apart, 1e-16):.0e}."


def plot(outcome: Outcome) -> Figure:
    """Draw a line for each form: median seconds against the number of letters."""
    from matplotlib.figure import Figure

    table = outcome.tables["times"]
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(table.column("contender")):
        rows = table.select(contender=name)
        axes.plot(rows.column("size"), rows.column("median_seconds"), marker="o", label=name)
    axes.set_yscale("log")
    axes.set_ylabel("median seconds")
    axes.legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    name="benchmark-kernel",
    paper="Benchmarks",
    item="Kernel programs",
    summary="The kernel program with a public prior: n^2 rows instead of n^2 (n - 1).",
    published=None,
    config=Config(letters=(10, 20, 40)),
    quick=Config(),
    steps=lambda config: len(config.letters),
    run=run,
    plot=plot,
    repeatable=False,
)
