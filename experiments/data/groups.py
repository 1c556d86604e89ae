"""Groups of users over the same categories, as loaders return them, and digits as such groups.

The digits are scikit-learn's: 1,797 images of 8 x 8 pixels with values 0..16, from the test set of
"Optical Recognition of Handwritten Digits" (Alpaydin, Kaynak, 1998); nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpopt import ParameterError


@dataclass(frozen=True)
class UserGroup:
    """What the users of one group chose.

    Attributes:
        attribute: what the users have in common, such as "age".
        value: its value.
        categories: names of the categories, those that some user of the group chose.
        counts: clicks or summed ratings, shape (users, categories); no row and no column is zero;
            read-only.
    """

    attribute: str
    value: str
    categories: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(
        cls, attribute: str, value: str, categories: tuple[str, ...], counts: np.ndarray
    ) -> UserGroup:
        """Return the group without the categories that no user chose, and the users without any."""
        users, used = counts.sum(axis=1) > 0, counts.sum(axis=0) > 0
        kept = np.ascontiguousarray(counts[np.ix_(users, used)])
        kept.setflags(write=False)
        names = tuple(name for name, chosen in zip(categories, used, strict=True) if chosen)
        return cls(attribute, value, names, kept)

    @property
    def users(self) -> int:
        """Number of users."""
        return self.counts.shape[0]

    @property
    def pmfs(self) -> np.ndarray:
        """Each user's own distribution p, shape (users, categories)."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    def prior(self, kind: str) -> np.ndarray:
        """Return the public prior q, shape (categories,), all positive."""
        weights = self.pmfs if kind == "average" else self.counts
        total = weights.sum(axis=0, dtype=float)
        return total / total.sum()


NAME = "scikit-learn's digits"
DIGITS = tuple(range(10))
_PIXELS = 8


@cache
def digits_of_sklearn() -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels of each image, shape (1797, 64), and its digit."""
    if importlib.util.find_spec("sklearn") is None:
        raise ParameterError("scikit-learn is not installed; install the extra `experiments`.")
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    images, labels = load_digits(return_X_y=True)
    return np.asarray(images, dtype=float), np.asarray(labels, dtype=np.int64)


def load_ink(side: int, digits: tuple[int, ...] = DIGITS) -> tuple[UserGroup, ...]:
    """Return a group for each digit: its images are the users, cells of a grid the categories.

    A count is the ink in a cell, the sum of its pixels.
    """
    images, labels = digits_of_sklearn()
    across = _PIXELS // side
    pixels = images.astype(np.int64).reshape(-1, side, across, side, across)
    ink = pixels.sum(axis=(2, 4)).reshape(-1, side * side)
    cells = tuple(f"row {i + 1}, column {j + 1}" for i in range(side) for j in range(side))
    return tuple(UserGroup.of("digit", str(d), cells, ink[np.asarray(labels) == d]) for d in digits)
