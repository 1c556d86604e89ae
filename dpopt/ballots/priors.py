"""The prior of the histograms of votes, over which the loss of a plurality is averaged."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import digits, shown, typed_rational
from dpopt._types import Vector
from dpopt.table import SortedHistograms

# Range of the concentration A.
_LEAST, _LARGEST = 1e-4, 1e6


@dataclass(frozen=True)
class VotePrior:
    """A prior of K votes that are independent draws from one pmf p, which is random or fixed.

    Attributes:
        concentration: A in [1e-4, 1e6] of p ~ Dirichlet(A, ..., A); A = 1 makes every histogram
            equally likely.
        p: the fixed pmf, shape (C,), in any order of the classes; None for a Dirichlet p.
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
        """Return the prior of a text: "uniform", "dirichlet:1/2" or "point:0.6,0.3,0.1"."""
        name, colon, numbers = text.partition(":") if isinstance(text, str) else ("", "", "")
        uniform = name == "uniform" and not colon
        try:
            values = tuple(float(typed_rational(number)) for number in numbers.split(","))
        except (ArithmeticError, ValueError):
            values = (1.0,) if uniform else (math.nan,)
        single = len(values) == 1 and _LEAST <= values[0] <= _LARGEST
        if single and (name == "dirichlet" or uniform):
            return cls(values[0])
        is_pmf = len(values) == classes and all(0.0 <= p <= 1.0 for p in values)
        if name == "point" and is_pmf and abs(math.fsum(values) - 1.0) <= 1e-9:
            return cls(p=values)
        raise ParameterError(
            f"prior is {shown(text)}; it must be 'uniform', 'dirichlet:A' with A in [{_LEAST:g}, "
            f"{_LARGEST:g}], or 'point:P,...' with {classes} probabilities that add up to 1."
        )

    def pmf(self, inputs: SortedHistograms) -> Vector:
        """Return the probability of each sorted histogram, shape (histograms,)."""
        if self.p is not None:
            return self._multinomial(inputs)
        # log of the Dirichlet-multinomial pmf: the sum over classes of log (A)_n / n!.
        steps = np.arange(inputs.records)
        log_terms = np.cumsum(np.log((self.concentration + steps) / (steps + 1)))
        logs = np.append(0.0, log_terms)[inputs.histograms].sum(axis=1)
        # For many classes the numbers of orders overflow a float, but their ratios do not.
        orders = inputs.row_sizes
        largest = max(orders)
        masses = np.exp(logs - logs.max()) * np.array([n / largest for n in orders])
        return masses / masses.sum()

    def _multinomial(self, inputs: SortedHistograms) -> Vector:
        """Return sum over orders of K! prod p_i^n_i / n_i! for each sorted histogram."""
        # The pmf of the sorted counts of the first classes, extended by one class at a time.
        partial: dict[tuple[int, ...], float] = {(): 1.0}
        last = inputs.categories - 1
        for index, p in enumerate(sorted(self.p or (), reverse=True)):
            extended: dict[tuple[int, ...], float] = {}
            for counts, mass in partial.items():
                remaining = inputs.records - sum(counts)
                for n in range(remaining if index == last else 0, remaining + 1):
                    chance = mass * math.comb(remaining, n) * p**n
                    if chance > 0.0:
                        key = tuple(sorted((*counts, n), reverse=True))
                        extended[key] = extended.get(key, 0.0) + chance
            # Sorted partial histograms held while a multinomial pmf is summed class by class:
            # bounds memory.
            if len(extended) > 2_000_000:
                raise ParameterError(
                    f"prior is {shown(str(self))}; its distribution of the histograms of "
                    f"{inputs.records} votes is too large to be summed."
                )
            partial = extended
        masses = np.array([partial.get(histogram, 0.0) for histogram in inputs.listed()])
        return masses / masses.sum()
