"""What a clock tells of a release: ``python -m experiments.timing``.

Timing is outside every guarantee (SECURITY.md). Here it is measured: one release is timed again and
again in two situations that its output does not tell apart, in random order, and a threshold on the
time, fitted on one half of the measurements, is judged on the other. 0.5 is chance.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click
import numpy as np
import numpy.typing as npt

from dpopt import kernel, majority, public_prior, roo
from dpopt.roo import LetterSampler
from dpopt.roo.sampler import Below

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Situations:
    """Two calls between which a clock is to tell.

    Attributes:
        name: of the mechanism.
        first: what the first one is, and the second one.
        calls: the two.
    """

    name: str
    first: str
    calls: tuple[Callable[[], object], Callable[[], object]]


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


def measured(situations: Situations, repeats: int) -> float:
    """Return the accuracy of a clock over as many calls, half of each situation."""
    labels = np.arange(repeats) % 2 == 1
    np.random.default_rng(secrets.randbits(64)).shuffle(labels)
    times = np.empty(repeats)
    for call in situations.calls * 50:
        call()
    for place, label in enumerate(labels):
        call = situations.calls[int(label)]
        start = time.perf_counter_ns()
        call()
        times[place] = time.perf_counter_ns() - start
    return accuracy(times, labels)


def situations() -> Iterator[Situations]:
    """Yield what is measured: branches of one release first, then different data."""
    for k in (2, 10, 1000):
        rule = roo.min_count(10_000, k, 0.01, "roo")
        counts = np.full(k, 10_000 // k)
        branches = tuple(_forced(rule, counts, q) for q in (0, (1 << 62) - 1))
        yield Situations(f"min-count, k = {k}", "obscure or reveal", branches)  # type: ignore[arg-type]
    floor = roo.smooth_floor(1000, 10, 0.1)
    low = np.array([982] + [2] * 9)
    yield Situations(
        "smooth floor, k = 10",
        "lift or record",
        (_forced(floor, low, 0), _forced(floor, low, 1 << 4000)),
    )
    even, alone = np.full(10, 100), np.array([1000] + [0] * 9)
    for name, sampler in (
        ("min-count, k = 10", roo.min_count(1000, 10, 0.1)),
        ("smooth floor, k = 10", floor),
    ):
        calls = tuple(_released(sampler, c) for c in (even, alone))
        yield Situations(name, "even counts or one letter", calls)  # type: ignore[arg-type]
    optimal = roo.optimal_sampler(20, 3, 1.0)
    calls = tuple(_released(optimal, np.array(c)) for c in ([7, 7, 6], [20, 0, 0]))
    yield Situations("optimal sampler, k = 3", "even counts or one letter", calls)  # type: ignore[arg-type]
    design = majority.design(11, 0.5, 3)
    for ones in (5, 11):
        votes = [np.arange(11) < 0, np.arange(11) < ones]
        yield Situations(
            "majority, K = 11",
            f"0 ones or {ones}",
            (lambda v=votes[0]: design.release(v), lambda v=votes[1]: design.release(v)),
        )
    path = kernel.optimal_kernel(np.abs(np.subtract.outer(range(16), range(16))), epsilon=1.0)
    yield Situations(
        "kernel of 16 inputs",
        "input 0 or 15",
        (lambda: path.release(0), lambda: path.release(15)),
    )
    local = public_prior.minimax_kernel(np.arange(1.0, 101.0) / 5050, 1.0)
    yield Situations(
        "public prior of 100 letters",
        "rarest or likeliest letter",
        (lambda: local.release(0), lambda: local.release(99)),
    )


def _released(sampler: LetterSampler, counts: npt.NDArray[np.int64]) -> Callable[[], object]:
    return lambda: sampler.release(counts=counts)


def _forced(sampler: LetterSampler, counts: npt.NDArray[np.int64], first: int) -> Callable[[], int]:
    """Return a draw whose first uniform integer is given, so that its branch is known."""

    def draw() -> int:
        left = [first]

        def below(limit: int) -> int:
            drawn = secrets.randbelow(limit)
            return min(left.pop(), limit - 1) if left else drawn

        return _draw(sampler, counts, below)

    return draw


def _draw(sampler: LetterSampler, counts: npt.NDArray[np.int64], below: Below) -> int:
    return sampler._draw(counts, below)


def main() -> None:
    """Print the accuracy of a clock for each mechanism."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats",
        type=int,
        default=20_000,
        help="calls for each mechanism, at least 200 (%(default)s)",
    )
    repeats = max(parser.parse_args().repeats, 200)
    error = 0.5 / np.sqrt(repeats / 2)
    click.echo(f"accuracy of a clock, standard error {error:.4f}; 0.5 is chance\n")
    for each in situations():
        click.echo(f"{measured(each, repeats):.3f}  {each.name}: {each.first}")


if __name__ == "__main__":
    main()
