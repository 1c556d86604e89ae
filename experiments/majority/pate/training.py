"""The parameters of a training run, and the parts of the data that its teachers see."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError


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
