"""Benchmarks of smoothed delta as the paper writes it: Algorithm 1, and Definition 3 term by term.

The experiment ``smoothed-theorem-2`` counts the products and the terms; these are their times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import smoothed
from experiments.benchmarks.spec import OURS, PAPER, Answer, Benchmark, Contender
from experiments.smoothed.runtime import algorithm_1, definition_3, laws

EPSILON, DRAWN = 0.5, 0.5
CATEGORIES, VERTICES = 2, 2

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """A mechanism and the distributions that records may have, shape (vertices, categories)."""

    mechanism: smoothed.SamplingHistogram
    distributions: Floats


@dataclass(frozen=True)
class Profiled:
    """The databases, shape (databases, categories), delta of each, and the distributions."""

    histograms: Integers
    delta: Floats
    distributions: Floats


def instance(records: int) -> Instance:
    """Return the sampling-histogram that draws half of the records."""
    drawn = max(1, math.ceil(DRAWN * records))
    mechanism = smoothed.SamplingHistogram(records, drawn, CATEGORIES)
    return Instance(mechanism, laws(CATEGORIES, VERTICES))


def profiled(records: int) -> Profiled:
    """Return what Algorithm 1 starts from: delta of every database."""
    made = instance(records)
    profile = smoothed.privacy_profile(made.mechanism, EPSILON)
    return Profiled(profile.histograms, profile.delta, made.distributions)


def certified(made: Instance) -> Answer:
    """Make the profile, evaluate or bound every composition, and certify the maximum."""
    found = smoothed.smoothed_delta(made.mechanism, EPSILON, made.distributions)
    certificate = found.certificate
    return Answer(found.delta, note=f"{certificate.evaluated} compositions evaluated")


def profile_alone(made: Instance) -> Answer:
    """Make the profile, which the others are given; the value is its maximum."""
    profile = smoothed.privacy_profile(made.mechanism, EPSILON)
    return Answer(float(profile.delta.max()), note="the largest delta of any database")


def as_written(made: Profiled) -> Answer:
    """Run Algorithm 1: the law of the whole histogram for every composition, by convolution."""
    delta, products = algorithm_1(made.histograms, made.delta, made.distributions)
    return Answer(delta, note=f"{products:,} products; the profile is given")


def naive(made: Profiled) -> Answer:
    """Evaluate Definition 3: every vector of distributions and every ordered database."""
    terms = made.distributions.size ** int(made.histograms[0].sum())
    delta = definition_3(made.histograms, made.delta, made.distributions)
    return Answer(delta, note=f"{terms:,} terms; the profile is given")


BENCHMARKS = (
    Benchmark(
        name="smoothed-theorem-2",
        title="Smoothed DP: Algorithm 1 and Definition 3 as written",
        measures="Smoothed delta of a sampling-histogram; ours includes the profile and the "
        "certificate, Algorithm 1 and Definition 3 start from the profile.",
        setting=f"half of the records drawn, epsilon = {EPSILON}, {CATEGORIES} categories, "
        f"{VERTICES} distributions: O(n^{2 * CATEGORIES + VERTICES - 3}) products in Algorithm 1",
        axis="records n",
        value="smoothed delta",
        sizes=(4, 8, 12, 128, 512, 1024),
        contenders=(
            Contender("dpopt.smoothed_delta", OURS, instance, certified),
            Contender("dpopt, the profile alone", OURS, instance, profile_alone, same=False),
            Contender("Algorithm 1 as written", PAPER, profiled, as_written),
            Contender("Definition 3, naive", PAPER, profiled, naive, largest=12),
        ),
        tolerance=1e-11,
        warm_up=2,
    ),
)
