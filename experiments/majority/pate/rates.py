"""The parameters of a training run, its parts of the data, and the choice of learning rates.

The paper does not give the learning rates. They are chosen on training images alone, by a rule
that was stated before the scan was run: of the training images a sixth, drawn at random, are held
out; K teachers are trained on disjoint parts of the others at every rate; and the rate with
the highest mean accuracy of single teachers on the held-out images is chosen, the lowest such rate
if there are several. The choice is not included in epsilon: that would need a private selection,
which the paper does not mention.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from experiments.data import refused
from experiments.registry import Table

if TYPE_CHECKING:
    from experiments.majority.pate.votes import Bits

ACCURACIES = ("lowest", "mean", "highest", "majority")
COLUMNS = ("dataset", "teachers", "learning_rate", "seed", *ACCURACIES, "chosen")
KINDS = ("private", "non-private")

CAPTION = (
    "Accuracy on training images that were held out, of single teachers (lowest, mean, highest of "
    "a run) and of their majority without noise, at each learning rate; and whether the rate has "
    "the highest mean, so that the teachers of the tables are trained at it."
)

HELD_OUT = 6
"""One of this many training images is held out for the choice of learning rates."""

PRIVATE_RATES = (0.005, 0.01, 0.02, 0.03, 0.05)
PLAIN_RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
"""The learning rates that are tried."""


@dataclass(frozen=True)
class Training:
    """Parameters of the teachers of one run.

    The paper gives the number of teachers, the two convolutions, the epochs, the noise and the
    clipping bound. A batch size of 32 is the one at which its epsilon comes out. It gives no
    learning rate, padding, loss or scale of the pixels: here the rates below, padding 2,
    cross-entropy, SGD without momentum, pixels divided by 255.

    Attributes:
        teachers: K, odd.
        epochs: passes over a teacher's part, each of ceil(part / batch_size) steps.
        batch_size: of SGD; the expected one of DP-SGD, whose batches are Poisson samples.
        noise_multiplier: standard deviation of DP-SGD's noise over the clipping bound.
        clipping: largest Euclidean norm of an example's gradient.
        delta: at which the private teachers' epsilon is accounted.
        private_rate: learning rate of DP-SGD.
        plain_rate: learning rate of SGD, for the teachers of GNMax.
    """

    teachers: int = 11
    epochs: int = 5
    batch_size: int = 32
    noise_multiplier: float = 12.0
    clipping: float = 1.0
    delta: float = 1e-4
    private_rate: float = 0.03
    plain_rate: float = 0.1

    def part_size(self, images: int) -> int:
        """Return how many of the training images each teacher gets: images / K, rounded down."""
        size = images // self.teachers
        if size < self.batch_size:
            raise ParameterError(
                f"data has {images} training images, {size} for each of {self.teachers} teachers; "
                f"each needs a batch of at least {self.batch_size}."
            )
        return size

    def steps(self, size: int) -> int:
        """Return the steps of a teacher that sees ``size`` images."""
        return self.epochs * math.ceil(size / self.batch_size)


def disjoint_parts(
    images: int, training: Training, rng: np.random.Generator
) -> list[npt.NDArray[np.int64]]:
    """Return the indices of each teacher's images: random, disjoint, of equal size, in 0..images-1.

    The remainder of the division is not used.
    """
    size = training.part_size(images)
    order = rng.permutation(images)
    return [order[i * size : (i + 1) * size] for i in range(training.teachers)]


_TRUTH = {str(value): value for value in (True, False)}

SHIPPED = Path(__file__).parent / "votes" / "learning_rates.csv"
"""The scan by which the rates of the recorded runs were chosen."""


def accuracies(votes: Bits, labels: Bits) -> tuple[float, float, float, float]:
    """Return the lowest, mean and highest accuracy of the teachers, and that of their majority."""
    single = (votes == labels).mean(axis=1)
    majority = (2 * votes.sum(axis=0, dtype=np.int64) > votes.shape[0]) == labels
    return float(single.min()), float(single.mean()), float(single.max()), float(majority.mean())


def scan_table(records: Sequence[tuple[str, str, float, int, Bits, Bits]]) -> Table:
    """Return the table of a scan, with the chosen rates marked."""
    rows = [(*key, *accuracies(votes, labels)) for *key, votes, labels in records]
    table = Table(CAPTION, COLUMNS[:-1], tuple(rows))
    marked = tuple(
        (*row, row[2] == _best(table.select(dataset=row[0], teachers=row[1]))) for row in table.rows
    )
    return Table(CAPTION, COLUMNS, marked)


def _best(part: Table) -> float:
    rates = sorted(set(part.column("learning_rate")))
    return max(rates, key=lambda rate: fmean(part.select(learning_rate=rate).column("mean")))


def at_chosen_rates(training: Training, scan: Table, dataset: str) -> Training:
    """Return the training at the learning rates that a scan chose for a data set."""
    rates = []
    for kind in KINDS:
        part = scan.select(dataset=dataset, teachers=kind, chosen=True).column("learning_rate")
        if not part:
            raise ParameterError(
                f"rates has no {kind} teachers of {dataset!r}; make one with --scan first."
            )
        rates.append(part[0])
    return replace(training, private_rate=rates[0], plain_rate=rates[1])


def load_rates(path: Path = SHIPPED) -> Table:
    """Read a scan that was written as CSV."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        if tuple(header) != COLUMNS or not lines:
            raise ValueError
        rows = tuple(
            (name, kind, float(rate), int(seed), *map(float, found), _TRUTH[chosen])
            for name, kind, rate, seed, *found, chosen in lines
        )
        if any(len(row) != len(COLUMNS) for row in rows):
            raise ValueError
    except OSError as error:
        raise refused(path, error, "rates") from None
    except (KeyError, ValueError, csv.Error):
        raise refused(path, "it must be a scan as CSV", "rates") from None
    return Table(CAPTION, COLUMNS, rows)
