"""What the experiments on Reveal-or-Obscure share: rules, all data sets, distances from each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import dpopt
from dpopt.shape import Design
from experiments import drawing
from experiments.roo.baselines import LaplaceProjection

VIOLATES = 1.0 + 1e-9
"""An excess factor above this is the rule's own; rounding q_m to 2^-62 stays far below."""


RULES = {
    "conference": ("conference's recursion", drawing.line("baseline")),
    "journal": ("journal's recursion", drawing.line("paper")),
    "journal-repaired": (
        "journal's, repaired",
        drawing.line("variant", markersize=5.5, markerfacecolor="white"),
    ),
    "exact": ("exact rule", drawing.line("optimum", linestyle="--")),
    "roo": ("ROO", drawing.line("baseline-2")),
}
"""Label and look of each rule, in the order in which they are drawn."""


def violates(sampler: Design) -> bool:
    """Return whether a rule exceeds e^epsilon by more than the rounding of its weights."""
    return sampler.audit.excess_factor > VIOLATES


def data_sets(sampler: Design) -> str:
    """Return the audit's neighbours in words: counts, or runs of counts for many categories."""
    witness = sampler.audit.witness
    if sampler.setting.categories <= 12:
        return f"{witness.counts} to {witness.neighbour}"
    sides = (
        ", ".join(f"{categories} x {count}" for count, categories in runs)
        for runs in (witness.runs, witness.neighbour_runs)
    )
    return " to ".join(sides)


def two_level(categories: int, least: float, low: int) -> np.ndarray:
    """Return P with ``low`` categories at the least probability, the others equal."""
    rest = (1 - low * least) / (categories - low)
    return np.concatenate([np.full(low, least), np.full(categories - low, rest)])


def smooth_floor(n: int, k: int, epsilon: float) -> Design | None:
    """Return the smooth floor, or None where epsilon is too small for so few records."""
    return dpopt.design(dpopt.SmoothFloor(n, k, epsilon)) if epsilon > math.log1p(1 / n) else None


@dataclass(frozen=True)
class DataSets:
    """All sorted counts, and the weight of each under the uniform distribution over counts."""

    counts: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, n: int, k: int) -> DataSets:
        """List them; P uniform on the simplex makes all counts alike likely."""
        rows = list(_partitions(n, k, n))
        orders = [
            math.factorial(k) // math.prod(math.factorial(row.count(c)) for c in set(row))
            for row in rows
        ]
        return cls(np.array(rows), np.array(orders) / math.comb(n + k - 1, k - 1))


def _partitions(n: int, k: int, most: int) -> Iterator[tuple[int, ...]]:
    if k == 1:
        if n <= most:
            yield (n,)
        return
    for first in range(min(n, most), -1, -1):
        for rest in _partitions(n - first, k - 1, first):
            yield (first, *rest)


def distances(sampler: Design, data: DataSets) -> np.ndarray:
    """Return the total variation of K(x) from the empirical distribution, for each data set."""
    pmfs = np.array([sampler.output_distribution(row) for row in data.counts])
    return np.abs(pmfs - data.counts / data.counts[0].sum()).sum(axis=1) / 2


def estimated_distances(
    noise: LaplaceProjection, data: DataSets, rng: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return an estimate of the distance on each data set, and its standard error."""
    values, errors = [], []
    for row in data.counts:
        pmfs = noise.noisy_pmfs(row, rng, draws)
        empirical = row / row.sum()
        gains = np.sign(pmfs.mean(axis=0) - empirical)
        each = (pmfs - empirical) @ gains / 2
        values.append(each.mean())
        errors.append(each.std(ddof=1) / math.sqrt(draws))
    return np.array(values), np.array(errors)
