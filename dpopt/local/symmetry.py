"""Orders of the categories that leave the queries alike: they make the program smaller.

If the categories in another order have the same queries and the same prior, up to a query that all
categories answer alike, then a mechanism and the one in that order are as good; so is their mean,
for F is convex. Only such orders are looked for as are their own inverse, and commute: the reverse
one, and for words of bits the flips of each bit. A mean mechanism has a pattern beside all its
images, each as likely, and in a basis of vectors that each order keeps or negates M falls into
blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt._types import Matrix, Vector

# Rounding of entries of G, as a share of the largest.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Symmetry:
    """Some orders of the categories: a group, each its own inverse.

    Attributes:
        moves: place u of each holds the category that comes there, shape (orders, n); the first is
            that of the categories themselves.
        blocks: orthonormal columns, shape (n, size) each, that every order keeps or negates all
            alike; those that all orders keep come first.
    """

    moves: npt.NDArray[np.intp]
    blocks: tuple[Matrix, ...]

    @classmethod
    def none(cls, n: int) -> Symmetry:
        """Return that of queries without any."""
        return cls(np.arange(n)[None, :], (np.eye(n),))

    @classmethod
    def of(cls, centred: Matrix, prior: Vector) -> Symmetry:
        """Return that of queries and prior.

        Args:
            centred: (I - 1 p') G (I - p 1'), shape (n, n); see `centred`.
            prior: p, shape (n,).
        """
        n = len(centred)
        found, allowed = cls.none(n), _ROUNDING * float(np.abs(centred).max())
        place = np.arange(n)
        orders = [place[::-1]]
        if n & (n - 1) == 0:
            orders = [place ^ (1 << bit) for bit in range(n.bit_length() - 1)] + orders
        for order in orders:
            same = np.abs(centred[np.ix_(order, order)] - centred).max() <= allowed
            if same and np.ptp(prior - prior[order]) <= _ROUNDING and not found.has(order):
                found = found.with_order(order)
        return found

    def has(self, order: npt.NDArray[np.intp]) -> bool:
        """Whether an order is one of these."""
        return bool(np.any(np.all(self.moves == order, axis=1)))

    def with_order(self, order: npt.NDArray[np.intp]) -> Symmetry:
        """Return the group with one more order, which commutes with these."""
        blocks: list[Matrix] = []
        for block in self.blocks:
            # The order takes each of these columns to one of them, or to its negative.
            image = block.T @ block[order]
            partner = np.abs(image).argmax(axis=0)
            own = np.arange(len(partner))
            sign = np.sign(image[partner, own])
            pairs = own[own < partner]
            other = block[:, partner[pairs]] * sign[pairs]
            root = np.sqrt(0.5)
            blocks += [
                np.hstack(
                    [block[:, (own == partner) & (sign == s)], (block[:, pairs] + s * other) * root]
                )
                for s in (1.0, -1.0)
            ]
        kept = tuple(block for block in blocks if block.shape[1])
        return Symmetry(np.concatenate([self.moves, self.moves[:, order]]), kept)

    def first(self, patterns: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return one image of each pattern, the same for all of its images, each once."""
        if len(self.moves) > 1 and len(patterns):
            # Bits of a pattern as bytes, which compare as the patterns do.
            words = np.packbits(patterns[:, self.moves], axis=2)
            width = words.shape[2]
            padded = np.zeros((*words.shape[:2], -width % 8 + width), np.uint8)
            padded[..., :width] = words
            numbers = padded.view(">u8")
            # A second word, where there is one, decides among equals: one order after another.
            best = numbers[:, 0]
            place = np.zeros(len(patterns), np.intp)
            for at in range(1, len(self.moves)):
                other = numbers[:, at]
                differ = (other != best).argmax(axis=1)
                rows = np.arange(len(patterns))
                less = other[rows, differ] < best[rows, differ]
                best, place[less] = np.where(less[:, None], other, best), at
            patterns = np.take_along_axis(patterns, self.moves[place], axis=1)
        return np.unique(patterns, axis=0)

    def images(
        self, patterns: npt.NDArray[np.bool_], theta: Vector
    ) -> tuple[npt.NDArray[np.bool_], Vector]:
        """Return all images of patterns, each once, and the share of the weight of each."""
        if len(self.moves) == 1:
            return patterns, theta
        found = [np.unique(pattern[self.moves], axis=0) for pattern in patterns]
        shares = [np.full(len(each), t / len(each)) for each, t in zip(found, theta, strict=True)]
        return np.concatenate(found), np.concatenate(shares)


def centred(gram: Matrix, prior: Vector) -> tuple[Matrix, Vector]:
    """Return (I - 1 p') G (I - p 1') and v with G = that + 1 v' + v 1'.

    For every mechanism M p = 1, so that tr(M^-1 (1 v' + v 1')) = 2 v . p: F of both differs by a
    constant.
    """
    side = gram @ prior
    v = side - float(prior @ side) / 2
    rest = gram - v[:, None] - v
    return (rest + rest.T) / 2, v
