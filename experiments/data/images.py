"""scikit-learn's handwritten digits as users: where the ink of each image lies.

1,797 images of 8 x 8 pixels with values 0..16, from the test set of "Optical Recognition of
Handwritten Digits" (Alpaydin, Kaynak, 1998). They come with the library: nothing is downloaded.
"""

from __future__ import annotations

import importlib.util

import numpy as np

from dpopt import ParameterError
from experiments.data.groups import UserGroup

NAME = "scikit-learn's digits"
DIGITS = tuple(range(10))
SIDES = (1, 2, 4, 8)
_PIXELS = 8


def load_ink(side: int, digits: tuple[int, ...] = DIGITS) -> tuple[UserGroup, ...]:
    """Return a group for each digit: its images are the users, cells of a grid the categories.

    A count is the ink in a cell, the sum of its pixels.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise ParameterError("scikit-learn is not installed; install the extra `experiments`.")
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    images, labels = load_digits(return_X_y=True)
    across = _PIXELS // side
    pixels = np.asarray(images, dtype=np.int64).reshape(-1, side, across, side, across)
    ink = pixels.sum(axis=(2, 4)).reshape(-1, side * side)
    cells = tuple(f"row {i + 1}, column {j + 1}" for i in range(side) for j in range(side))
    return tuple(UserGroup.of("digit", str(d), cells, ink[np.asarray(labels) == d]) for d in digits)
