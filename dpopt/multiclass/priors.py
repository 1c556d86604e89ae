"""How often each histogram of votes occurs: what the error of a plurality is averaged over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, shown
from dpopt._types import Vector
from dpopt.ballots.partitions import Histogram, Partitions

_LARGEST = 1e6
# Histograms of some of the classes, while a law of one's own is summed over their orders.
_MOST_PARTIAL = 2_000_000


@dataclass(frozen=True)
class VotePrior:
    """The votes are independent draws from one law p on the classes; p is a draw itself, or given.

    Attributes:
        concentration: A of p ~ Dirichlet(A, ..., A); 1 makes every histogram equally likely.
        p: the law, in any order of the classes, in place of a draw; None if there is none.
    """

    concentration: float = 1.0
    p: tuple[float, ...] | None = None

    def __str__(self) -> str:
        if self.p is None:
            return f"dirichlet:{digits(self.concentration)}"
        return "point:" + ",".join(map(digits, self.p))

    @classmethod
    def of(cls, text: object, classes: int) -> VotePrior:
        """Return the prior that a text such as "dirichlet:1" or "point:0.6,0.3,0.1" names.

        Raises:
            ParameterError: for any other.
        """
        name, _, numbers = str(text).partition(":")
        try:
            values = tuple(float(number) for number in numbers.split(",")) if numbers else ()
        except ValueError:
            values = (math.nan,)
        if isinstance(text, str) and name == "dirichlet" and len(values) <= 1:
            values = values or (1.0,)
            if 0.0 < values[0] <= _LARGEST:
                return cls(values[0])
        if isinstance(text, str) and name == "point" and _is_law(values, classes):
            return cls(p=values)
        raise ParameterError(
            f"prior is {shown(text)}; it must be 'dirichlet:A' with A in (0, {_LARGEST:g}], or "
            f"'point:P,...' with {classes} probabilities that add up to 1."
        )

    def law(self, partitions: Partitions) -> Vector:
        """Return the probability of each sorted histogram, shape (states,).

        A law p in another order of the classes gives the same: only sorted histograms count.
        """
        if self.p is not None:
            return self._multinomial(partitions)
        terms = [0.0]
        for n in range(partitions.voters):
            terms.append(terms[-1] + math.log((self.concentration + n) / (n + 1)))
        logs = np.array([math.fsum(terms[n] for n in state) for state in partitions.states])
        masses = np.exp(logs - logs.max()) * np.array(partitions.orders, dtype=float)
        return masses / masses.sum()

    def _multinomial(self, partitions: Partitions) -> Vector:
        """Return sum over orders of K! prod p_i^n_i / n_i!: class after class, counts sorted."""
        partial: dict[Histogram, float] = {(): 1.0}
        last = partitions.classes - 1
        for place, p in enumerate(sorted(self.p or (), reverse=True)):
            more: dict[Histogram, float] = {}
            for counts, mass in partial.items():
                left = partitions.voters - sum(counts)
                for n in range(left if place == last else 0, left + 1):
                    chance = mass * math.comb(left, n) * p**n
                    if chance > 0.0:
                        key = tuple(sorted((*counts, n), reverse=True))
                        more[key] = more.get(key, 0.0) + chance
            if len(more) > _MOST_PARTIAL:
                raise ParameterError(
                    f"prior is {shown(str(self))}; its law of the histograms of "
                    f"{partitions.voters} votes is too large to be summed."
                )
            partial = more
        masses = np.array([partial.get(state, 0.0) for state in partitions.states])
        return masses / masses.sum()


def _is_law(values: tuple[float, ...], classes: int) -> bool:
    inside = all(0.0 <= p <= 1.0 for p in values)
    return len(values) == classes and inside and abs(math.fsum(values) - 1.0) <= 1e-9


def checked_prior(text: object, classes: int) -> str:
    """Return the text of a prior in its usual form; see `VotePrior.of`."""
    _checks.integer("classes", classes, 2)
    return str(VotePrior.of(text, classes))
