"""All data sets up to the order of their letters, and a sampler's distance from each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpopt import roo


@dataclass(frozen=True)
class DataSets:
    """All sorted counts, and how much of the uniform law over counts each stands for."""

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


def distances(sampler: roo.LetterSampler, data: DataSets) -> np.ndarray:
    """Return the total variation of K(x) from the empirical law, for each data set."""
    laws = np.array([sampler.output_distribution(row) for row in data.counts])
    return np.abs(laws - data.counts / data.counts[0].sum()).sum(axis=1) / 2


def estimated_distances(
    noise: roo.LaplaceProjection, data: DataSets, rng: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return an estimate of the distance on each data set, and its standard error."""
    values, errors = [], []
    for row in data.counts:
        laws = noise.noisy_laws(row, rng, draws)
        empirical = row / row.sum()
        gains = np.sign(laws.mean(axis=0) - empirical)
        each = (laws - empirical) @ gains / 2
        values.append(each.mean())
        errors.append(each.std(ddof=1) / math.sqrt(draws))
    return np.array(values), np.array(errors)
