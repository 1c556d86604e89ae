"""How the cost of each method grows with the number of letters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpopt import public_prior, solve
from experiments.benchmarks.timing import race
from experiments.public_prior.common import PAPER, short
from experiments.registry import Advance, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVES = {
    "minimax": ("Algorithm 1, closed form", "#2f5d9b", "s-"),
    "leximin": ("leximin kernel", "#0b6e4f", "o-"),
    "mollifier": ("relative mollifier, KL", "#c1432e", "^-"),
    "printed": ("Algorithm 1 as printed", "#8a5aa8", "x-"),
    "program": ("linear program", "#d98a29", "v-"),
}


@dataclass(frozen=True)
class Config:
    """Sizes, and the largest of them for the methods that build a matrix or a program."""

    sizes: tuple[int, ...] = (10, 30, 100, 1000, 10_000, 100_000)
    printed_up_to: int = 1000
    program_up_to: int = 30
    epsilon: float = 4.0
    rounds: int = 3
    seed: int = 8


def run(config: Config, advance: Advance) -> Outcome:
    """Time from prior and law to the law of the released letter, at every size."""
    rng = np.random.default_rng(config.seed)
    records = []
    for size in config.sizes:
        prior, law = rng.random(size) + 1e-3, rng.random(size)
        contenders = _contenders(prior / prior.sum(), law / law.sum(), config)
        found = race("from prior and law to sampling law", str(size), contenders, config.rounds)
        records += [{"letters": size, **record} for record in found]
        advance()
    table = Table.of(
        "Medians of alternating runs in one process; ratio to the closed form of Algorithm 1.",
        records,
    )
    return Outcome({"times": table}, tuple(_findings(table)))


def _contenders(
    prior: np.ndarray, law: np.ndarray, config: Config
) -> dict[str, Callable[[], object]]:
    epsilon = config.epsilon
    contenders: dict[str, Callable[[], object]] = {
        "minimax": lambda: public_prior.minimax_kernel(prior, epsilon).apply(law),
        "leximin": lambda: public_prior.leximin_kernel(prior, epsilon).apply(law),
        "mollifier": lambda: public_prior.mollify(prior, law, epsilon),
    }
    if prior.size <= config.printed_up_to:
        contenders["printed"] = lambda: law @ printed_algorithm(prior, epsilon)
    if prior.size <= config.program_up_to:
        contenders["program"] = lambda: solve(public_prior.tv_problem(prior, epsilon))
    return contenders


def printed_algorithm(prior: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the matrix of Algorithm 1 by the paper's recursion, each level scaling its block.

    Args:
        prior: q, shape (n,), positive, summing to 1, in any order.
        epsilon: in nats.

    Returns:
        K, shape (n, n), in the order of ``prior``.
    """
    order = np.argsort(prior, kind="stable")
    q, n, ratio = prior[order], prior.size, math.exp(epsilon)
    kernel = np.ones((n, n))
    for i in range(n - 1):
        # The conditional law of the letters that are left.
        left = q[i:] / q[i:].sum()
        below = ratio * left[0] + 1 - left[0]
        kernel[i, i + 1 :] *= left[1:] / below
        kernel[i + 1 :, i] *= left[0] / below
        kernel[i, i] *= ratio * left[0] / below
        kernel[i + 1 :, i + 1 :] *= 1 - left[0] / below
    found = np.empty_like(kernel)
    found[np.ix_(order, order)] = kernel
    return found


def _findings(table: Table) -> list[str]:
    found = []
    for name, (label, _, _) in _CURVES.items():
        part = table.select(contender=name)
        size, seconds = part.column("letters")[-1], part.column("median_seconds")[-1]
        found.append(f"{label}: {short(1000 * seconds)} ms at n = {size:,}.")
    return found


def plot(outcome: Outcome) -> Figure:
    """Draw the median time of each method against the number of letters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    table = outcome.tables["times"]
    for name, (label, colour, style) in _CURVES.items():
        part = table.select(contender=name)
        axes.plot(
            part.column("letters"),
            part.column("median_seconds"),
            style,
            color=colour,
            label=label,
            markersize=5,
            markerfacecolor="none",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("letters n")
    axes.set_ylabel("seconds")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    return figure


EXPERIMENT = Experiment(
    name="prior-kernels-time",
    paper=PAPER,
    item="benchmark",
    summary="Time from a prior and a law to the law of the released letter: closed forms, the "
    "paper's recursion, the mollifier, and the linear program.",
    published=None,
    config=Config(sizes=(10, 30, 100, 1000, 10_000, 100_000, 1_000_000), rounds=5),
    quick=Config(),
    steps=lambda config: len(config.sizes),
    run=run,
    plot=plot,
    repeatable=False,
)
