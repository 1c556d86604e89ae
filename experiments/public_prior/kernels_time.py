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
from experiments.registry import Advance, Cell, Experiment, Outcome, Table

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
    materialised: int = 1000
    largest: int = 1_000_000
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
    whole = Table.of(
        "The matrix made, one law applied, and as many exact releases as letters; each task's "
        "ratio to its first contender.",
        [*_matrices(config, rng), *_largest(config, rng)],
    )
    advance()
    findings = (*_findings(table), *_said(whole))
    return Outcome({"times": table, "whole kernels": whole}, findings)


def _matrices(config: Config, rng: np.random.Generator) -> list[dict[str, Cell]]:
    """Time the matrix of Algorithm 1, by its closed form and by the printed recursion."""
    prior = rng.random(config.materialised) + 1e-3
    prior /= prior.sum()
    contenders: dict[str, Callable[[], object]] = {
        "closed form": lambda: public_prior.minimax_kernel(prior, config.epsilon).matrix(),
        "recursion in place": lambda: printed_algorithm(prior, config.epsilon),
        "recursion as printed": lambda: grown_algorithm(prior, config.epsilon),
    }
    return race("matrix of Algorithm 1", str(prior.size), contenders, config.rounds)


def _largest(config: Config, rng: np.random.Generator) -> list[dict[str, Cell]]:
    """Time what one kernel over very many letters does, once it is made and certified."""
    prior, law = rng.random(config.largest) + 1e-3, rng.random(config.largest)
    law /= law.sum()
    kernel = public_prior.minimax_kernel(prior / prior.sum(), config.epsilon)
    own = rng.integers(0, config.largest, config.largest)
    kernel.release(own[:1])
    size = str(config.largest)
    applied = race("p K of one user", size, {"apply": lambda: kernel.apply(law)}, config.rounds)
    released = race(
        "one release for each of as many users", size, {"release": lambda: kernel.release(own)}, 1
    )
    return [*applied, *released]


def _said(table: Table) -> list[str]:
    return [
        f"{row[0]}, n = {int(str(row[1])):,}: {row[2]} takes {float(str(row[3])):.3g} s, "
        f"{float(str(row[6])):.3g} times its task's first."
        for row in table.rows
    ]


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


def grown_algorithm(prior: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the same as the paper writes it: from two letters up, each level a new matrix."""
    order = np.argsort(prior, kind="stable")
    q, n, ratio = prior[order], prior.size, math.exp(epsilon)
    a = q[-2] / (q[-2] + q[-1])
    kernel = np.array([[ratio * a, 1 - a], [a, (ratio - 1) * a + 1 - a]]) / (ratio * a + 1 - a)
    for i in range(n - 3, -1, -1):
        left = q[i:] / q[i:].sum()
        below = ratio * left[0] + 1 - left[0]
        larger = np.empty((n - i, n - i))
        larger[0, 0] = ratio * left[0] / below
        larger[1:, 0] = left[0] / below
        larger[0, 1:] = left[1:] / below
        larger[1:, 1:] = (1 - left[0] / below) * kernel
        kernel = larger
    found = np.empty_like(kernel)
    found[np.ix_(order, order)] = kernel
    return found


def _findings(table: Table) -> list[str]:
    found = []
    for name, (label, _, _) in _CURVES.items():
        part = table.select(contender=name)
        if not part.rows:
            continue
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
    steps=lambda config: len(config.sizes) + 1,
    run=run,
    plot=plot,
    repeatable=False,
)
