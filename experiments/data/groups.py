"""Groups of users over the same categories, as the loaders return them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
