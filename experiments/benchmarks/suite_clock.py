"""What a clock tells of a release, which is outside every guarantee (SECURITY.md).

One release is timed again and again in two situations that its output does not tell apart, in
random order, and a threshold on the time, fitted on one half of the measurements, is judged on the
other. Its accuracy is the value; 0.5 is chance.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import kernel, majority, public_prior, roo
from dpopt.shape import Design
from experiments.benchmarks.spec import OURS, Answer, Benchmark, Contender, limited

Floats = npt.NDArray[np.float64]
Calls = tuple[Callable[[], object], Callable[[], object]]


@dataclass(frozen=True)
class Situations:
    """Two calls between which a clock is to tell, and how often they are timed."""

    calls: Calls
    repeats: int


def alike(repeats: int) -> Situations:
    """Return one release twice: what chance gives."""
    call = partial(roo.min_count(1000, 10, 0.1).release, dict.fromkeys(range(10), 100))
    return Situations((call, call), repeats)


def data_of_min_count(repeats: int) -> Situations:
    """Return releases from even counts and from one letter alone."""
    return _of_counts(roo.min_count(1000, 10, 0.1), [100] * 10, [1000] + [0] * 9, repeats)


def data_of_smooth_floor(repeats: int) -> Situations:
    """Return the same of the smooth floor."""
    return _of_counts(roo.smooth_floor(1000, 10, 0.1), [100] * 10, [1000] + [0] * 9, repeats)


def data_of_optimal_sampler(repeats: int) -> Situations:
    """Return the same of the optimal sampler of 20 records over 3 letters."""
    return _of_counts(roo.optimal_sampler(20, 3, 1.0), [7, 7, 6], [20, 0, 0], repeats)


def votes(ones: int, repeats: int) -> Situations:
    """Return private majorities of 11 voters, of whom none or ``ones`` vote 1."""
    design = majority.design(11, 0.5, 3, prior="uniform:0,1")
    none, some = (partial(design.release, np.arange(11) < count) for count in (0, ones))
    return Situations((none, some), repeats)


def inputs_of_a_path(repeats: int) -> Situations:
    """Return releases from both ends of 16 inputs on a line."""
    path = dpopt.design(kernel.KernelSetting("absolute", 1.0, size=16))
    return Situations((partial(path.release, 0), partial(path.release, 15)), repeats)


def letters_of_a_prior(repeats: int) -> Situations:
    """Return releases of the rarest and of the likeliest of 100 letters."""
    local = public_prior.minimax_kernel(np.arange(1.0, 101.0) / 5050, 1.0)
    return Situations((partial(local.release, 0), partial(local.release, 99)), repeats)


def _of_counts(sampler: Design, one: list[int], other: list[int], repeats: int) -> Situations:
    tallies = (roo.Tally.of_counts(counts, len(counts)) for counts in (one, other))
    first, second = (partial(sampler.release, tally) for tally in tallies)
    return Situations((first, second), repeats)


def clocked(situations: Situations) -> Answer:
    """Time both situations in random order; return how often a threshold on the time is right."""
    error = 0.5 / math.sqrt(situations.repeats / 2)
    return Answer(measured(situations.calls, situations.repeats), error=error, note="0.5 is chance")


def measured(calls: Calls, repeats: int) -> float:
    """Return the accuracy of a clock over as many calls, half of each situation."""
    labels = np.arange(repeats) % 2 == 1
    np.random.default_rng(secrets.randbits(64)).shuffle(labels)
    times = np.empty(repeats)
    for call in calls * 50:
        call()
    for place, label in enumerate(labels):
        call = calls[int(label)]
        start = time.perf_counter_ns()
        call()
        times[place] = time.perf_counter_ns() - start
    return accuracy(times, labels)


def accuracy(times: Floats, labels: npt.NDArray[np.bool_]) -> float:
    """Return how often a threshold on the time is right on the second half of the measurements.

    Args:
        times: in any unit, shape (n,).
        labels: which situation each was, likewise.
    """
    half = times.size // 2
    limits = np.quantile(times[:half], np.linspace(0.01, 0.99, 99))
    above = times[:half, None] > limits
    right = np.mean(above == labels[:half, None], axis=0)
    best = int(np.argmax(np.maximum(right, 1 - right)))
    found = float(np.mean((times[half:] > limits[best]) == labels[half:]))
    return found if right[best] >= 0.5 else 1 - found


def _pair(name: str, prepare: Callable[[int], Situations]) -> Contender:
    return Contender(name, OURS, prepare, clocked, same=False)


BENCHMARKS = (
    Benchmark(
        name="release-clock",
        title="What a clock tells of a release",
        measures="Timing a release in two situations; the value is how often a threshold on the "
        "time tells them apart.",
        setting="situations by name; half of the measurements fit the threshold",
        axis="releases",
        value="accuracy",
        sizes=(200, 1000, 2000, 10_000, 20_000),
        contenders=(
            Contender("min-count twice: nothing to tell", OURS, alike, clocked),
            _pair("min-count, k = 10: even counts or one letter", data_of_min_count),
            _pair("smooth floor, k = 10: even counts or one letter", data_of_smooth_floor),
            _pair("optimal sampler, k = 3: even counts or one letter", data_of_optimal_sampler),
            _pair("majority, K = 11: 0 ones or 5", partial(votes, 5)),
            _pair("majority, K = 11: 0 ones or 11", partial(votes, 11)),
            _pair("kernel of 16 inputs: input 0 or 15", inputs_of_a_path),
            _pair("prior of 100 letters: rarest or likeliest", letters_of_a_prior),
        ),
        tolerance=0.0,
        warm_up=20,
        limits=limited(60),
    ),
)
