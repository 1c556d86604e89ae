"""The parameters of a training run, its parts of the data, and the accuracy at each learning rate.

The paper does not give the learning rates.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from experiments.registry import Table

if TYPE_CHECKING:
    from experiments.majority.pate.votes import Bits

COLUMNS = ("teachers", "learning_rate", "seed", "lowest", "mean", "highest", "majority")
KINDS = ("private", "non-private")

CAPTION = (
    "Accuracy on all test images of single teachers (lowest, mean, highest of a run) and of their "
    "majority without noise, at each learning rate."
)


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

    def __post_init__(self) -> None:
        for name in ("teachers", "epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ParameterError(f"{name} is {value!r}; it must be an integer of at least 1.")
        if self.teachers % 2 == 0:
            raise ParameterError(
                f"teachers is {self.teachers}; it must be odd, so that no vote is tied."
            )
        for name in ("noise_multiplier", "clipping", "private_rate", "plain_rate"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise ParameterError(f"{name} is {value}; it must be a finite number above 0.")
        if not 0.0 < self.delta < 1.0:
            raise ParameterError(f"delta is {self.delta}; it must be a number in (0, 1).")

    def part_size(self, images: int) -> int:
        """Return how many of the training images each teacher gets: images / K, rounded down.

        Raises:
            ParameterError: if that is less than one batch.
        """
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

    Images left over by the division go to no teacher.
    """
    size = training.part_size(images)
    order = rng.permutation(images)
    return [order[i * size : (i + 1) * size] for i in range(training.teachers)]


SHIPPED = Path(__file__).parent / "votes" / "learning_rates.csv"
"""The scan that belongs to the recorded run."""


def accuracies(votes: Bits, labels: Bits) -> tuple[float, float, float, float]:
    """Return the lowest, mean and highest accuracy of the teachers, and that of their majority.

    Args:
        votes: zeros and ones, shape (K, images).
        labels: shape (images,).
    """
    single = (votes == labels).mean(axis=1)
    majority = (2 * votes.sum(axis=0, dtype=np.int64) > votes.shape[0]) == labels
    return float(single.min()), float(single.mean()), float(single.max()), float(majority.mean())


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
    return Table(CAPTION, COLUMNS, rows)
