"""Benchmark of smoothed differential privacy: one step of SGD with quantised gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import smoothed
from experiments.benchmarks.spec import OURS, PAPER, Answer, Benchmark, Contender, Target, limited

EPSILON = 1.0
_DRAWS, _BATCH = 10_000_000, 500_000

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batches:
    """A database of quantised gradients, shape (N,), and how many of them a step uses."""

    values: Integers
    drawn: int


def gradients(records: int) -> Batches:
    """Return v_i = ((37 i^2 + 11 i) mod 181) - 90 and T = sqrt N."""
    i = np.arange(records)
    return Batches((37 * i * i + 11 * i) % 181 - 90, math.isqrt(records))


def exact_step(instance: Batches) -> Answer:
    """Count the batches by their sum, for every replacement of one record."""
    profile = smoothed.sgd_profile(instance.values, instance.drawn, EPSILON)
    return Answer(float(profile.log_delta[0]) / math.log(10), note="every neighbour")


def monte_carlo(instance: Batches) -> Answer:
    """Draw 1e7 batches from the database and its two published neighbours, and compare."""
    rng = np.random.default_rng(5)
    x, count = instance.values, instance.values.size
    neighbours = []
    for place, value in ((int(x.argmin()), 128), (int(x.argmax()), -127)):
        moved = x.copy()
        moved[place] = value
        neighbours.append(moved)
    frequencies = [_frequencies(v, instance.drawn, rng) for v in (x, *neighbours)]
    own, factor, best = frequencies[0], math.exp(EPSILON), 0.0
    for other in frequencies[1:]:
        for p, q in ((own, other), (other, own)):
            best = max(best, float(np.maximum(p - factor * q, 0.0).sum()))
    note = f"estimate from {_DRAWS:,} batches of {instance.drawn} among {count}, two neighbours"
    return Answer(math.log10(best) if best > 0 else None, note=note)


def _frequencies(values: Integers, drawn: int, rng: np.random.Generator) -> Floats:
    """Return how often each rounded mean from -128 to 128 was drawn."""
    counts = np.zeros(257)
    left = _DRAWS
    while left:
        # A batch with a record twice is drawn again: what is left is uniform over the subsets.
        places = np.sort(rng.integers(values.size, size=(_BATCH, drawn), dtype=np.int32), axis=1)
        distinct = np.all(places[:, 1:] != places[:, :-1], axis=1)
        sums = values[places[distinct]].sum(axis=1)[:left]
        means = (2 * sums + drawn) // (2 * drawn)
        counts += np.bincount(means + 128, minlength=257)
        left -= sums.size
    return counts / _DRAWS


BENCHMARKS = (
    Benchmark(
        name="smoothed-sgd",
        title="Smoothed DP: one step of SGD with 8-bit gradients",
        measures="delta of one database of N gradients, of which sqrt N are drawn.",
        setting="epsilon = 1; gradients by a formula; rounded mean published",
        axis="records N",
        value="log10 delta",
        sizes=(64, 225, 400, 900),
        contenders=(
            Contender("dpopt.sgd_profile", OURS, gradients, exact_step),
            Contender("Monte Carlo, 1e7 draws", PAPER, gradients, monte_carlo, 400, same=False),
        ),
        tolerance=1e-9,
        warm_up=16,
        limits=limited(60),
        targets=(Target(225, "Monte Carlo, 1e7 draws", 1000.0),),
    ),
)
