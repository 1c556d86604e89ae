"""How often each histogram of votes occurs: what the loss of a plurality is averaged over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import digits, shown, typed_rational
from dpopt._types import Vector
from dpopt.table import SortedHistograms

_LEAST, _LARGEST = 1e-4, 1e6
# Histograms of some of the classes, while those of one distribution are summed over their orders.
_MOST_PARTIAL = 2_000_000


@dataclass(frozen=True)
class VotePrior:
    """The votes are independent draws from one pmf p on the classes; p is a draw itself, or given.

    Attributes:
        concentration: A of p ~ Dirichlet(A, ..., A); 1 makes every histogram equally likely.
        p: the distribution, in any order of the classes, in place of a draw; None if there is none.
    """

    concentration: float = 1.0
    p: tuple[float, ...] | None = None

    def __str__(self) -> str:
        if self.p is None:
            one = self.concentration == 1
            return "uniform" if one else f"dirichlet:{digits(self.concentration)}"
        return "point:" + ",".join(map(digits, self.p))

    @classmethod
    def of(cls, text: object, classes: int) -> VotePrior:
        """Return the prior that "uniform", "dirichlet:1/2" or "point:0.6,0.3,0.1" names.

        Raises:
            ParameterError: for any other.
        """
        name, colon, numbers = text.partition(":") if isinstance(text, str) else ("", "", "")
        uniform = name == "uniform" and not colon
        try:
            values = tuple(float(typed_rational(number)) for number in numbers.split(","))
        except (ArithmeticError, ValueError):
            values = (1.0,) if uniform else (math.nan,)
        alone = len(values) == 1 and _LEAST <= values[0] <= _LARGEST
        if alone and (name == "dirichlet" or uniform):
            return cls(values[0])
        pmf = len(values) == classes and all(0.0 <= p <= 1.0 for p in values)
        if name == "point" and pmf and abs(math.fsum(values) - 1.0) <= 1e-9:
            return cls(p=values)
        raise ParameterError(
            f"prior is {shown(text)}; it must be 'uniform', 'dirichlet:A' with A in [{_LEAST:g}, "
            f"{_LARGEST:g}], or 'point:P,...' with {classes} probabilities that add up to 1."
        )

    def pmf(self, inputs: SortedHistograms) -> Vector:
        """Return the probability of each sorted histogram, shape (histograms,).

        A distribution p in another order of the classes gives the same: only sorted histograms
        count.
        """
        if self.p is not None:
            return self._multinomial(inputs)
        steps = np.arange(inputs.records)
        terms = np.cumsum(np.log((self.concentration + steps) / (steps + 1)))
        logs = np.append(0.0, terms)[inputs.histograms].sum(axis=1)
        # Of many classes the orders are beyond all floats, their ratios are not.
        orders = inputs.row_sizes
        most = max(orders)
        masses = np.exp(logs - logs.max()) * np.array([n / most for n in orders])
        return masses / masses.sum()

    def _multinomial(self, inputs: SortedHistograms) -> Vector:
        """Return sum over orders of K! prod p_i^n_i / n_i!: class after class, counts sorted."""
        partial: dict[tuple[int, ...], float] = {(): 1.0}
        last = inputs.categories - 1
        for place, p in enumerate(sorted(self.p or (), reverse=True)):
            longer: dict[tuple[int, ...], float] = {}
            for counts, mass in partial.items():
                remaining = inputs.records - sum(counts)
                for n in range(remaining if place == last else 0, remaining + 1):
                    chance = mass * math.comb(remaining, n) * p**n
                    if chance > 0.0:
                        key = tuple(sorted((*counts, n), reverse=True))
                        longer[key] = longer.get(key, 0.0) + chance
            if len(longer) > _MOST_PARTIAL:
                raise ParameterError(
                    f"prior is {shown(str(self))}; its distribution of the histograms of "
                    f"{inputs.records} votes is too large to be summed."
                )
            partial = longer
        masses = np.array([partial.get(state, 0.0) for state in inputs.listed()])
        return masses / masses.sum()
