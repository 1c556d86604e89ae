"""How accurate the teachers are at each learning rate, which the paper does not give."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpopt import ParameterError
from experiments.majority.pate.training import Training
from experiments.registry import Table

if TYPE_CHECKING:
    from experiments.data.mnist import Digits
    from experiments.majority.pate.votes import Bits

SHIPPED = Path(__file__).parent / "votes" / "learning_rates.csv"
"""The scan that belongs to the recorded run."""

COLUMNS = ("teachers", "learning_rate", "seed", "lowest", "mean", "highest", "majority")
KINDS = ("private", "non-private")

_CAPTION = (
    "Accuracy on all test images of single teachers (lowest, mean, highest of a run) and of their "
    "majority without noise, at each learning rate."
)


def accuracies(votes: Bits, labels: Bits) -> tuple[float, float, float, float]:
    """Return the lowest, mean and highest accuracy of the teachers, and that of their majority.

    Args:
        votes: zeros and ones, shape (K, images).
        labels: shape (images,).
    """
    single = (votes == labels).mean(axis=1)
    majority = (2 * votes.sum(axis=0, dtype=np.int64) > votes.shape[0]) == labels
    return float(single.min()), float(single.mean()), float(single.max()), float(majority.mean())


def scan(
    digits: Digits,
    training: Training,
    private_rates: tuple[float, ...],
    plain_rates: tuple[float, ...],
    seeds: tuple[int, ...],
    advance: Callable[[], None] = lambda: None,
) -> Table:
    """Train the teachers of every seed at every learning rate; return their accuracies.

    Args:
        digits: training and test images.
        training: everything but the rates.
        private_rates: of DP-SGD.
        plain_rates: of SGD.
        seeds: one run each.
        advance: called after each teacher.
    """
    from experiments.majority.pate.teachers import train_teachers

    rows = []
    for kind, rates in zip(KINDS, (private_rates, plain_rates), strict=True):
        for rate in rates:
            at = replace(training, private_rate=rate, plain_rate=rate)
            for seed in seeds:
                votes = train_teachers(digits, at, seed, private=kind == "private", advance=advance)
                rows.append((kind, rate, seed, *accuracies(votes, digits.test_labels)))
    return Table(_CAPTION, COLUMNS, tuple(rows))


def load_rates(path: Path = SHIPPED) -> Table:
    """Read a scan that was written as CSV.

    Raises:
        ParameterError: if it is missing, or is no such file.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        if tuple(header) != COLUMNS or not lines:
            raise ValueError
        rows = tuple(
            (kind, float(rate), int(seed), *(float(x) for x in (low, mean, high, majority)))
            for kind, rate, seed, low, mean, high, majority in lines
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ParameterError(f"rates is {str(path)!r}; {reason}.") from None
    except (ValueError, csv.Error):
        raise ParameterError(f"rates is {str(path)!r}; it must be a scan as CSV.") from None
    return Table(_CAPTION, COLUMNS, rows)
