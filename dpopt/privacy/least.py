"""The least epsilon or delta of a mechanism: what it is, and its enclosure by floats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits_up
from dpopt._page import result_page
from dpopt._types import Json, brief
from dpopt.privacy.exponential import log_enclosed


@dataclass(frozen=True)
class Least:
    """The least epsilon of a mechanism for a delta, or its least delta for an epsilon, enclosed.

    Attributes:
        parameter: what is the least of its kind: "epsilon" or "delta".
        lower: a float of at most the exact value.
        upper: a float of at least the exact value, next to ``lower`` or a few floats above it; the
            mechanism is private for it. An epsilon is infinite, in both, where an event is possible
            for an input and impossible for a neighbour.
        given: the other one: the delta, or the epsilon, that the value is for.
        inputs: neighbours (x, x') that need it: places of a table's inputs, their names if they
            have any, or their words where data sets are too many to be numbered.
        outputs: an event S that needs it: K(S | x) = e^epsilon K(S | x') + delta, up to rounding;
            places of the outputs, or their names.
        moved: total variation between a row of the table as it was given and the distribution that
            was judged, at most; 0 if its rows were distributions.
    """

    parameter: Literal["epsilon", "delta"]
    lower: float
    upper: float
    given: float
    inputs: tuple[int | str, int | str]
    outputs: tuple[int | str, ...]
    moved: float = 0.0

    def __repr__(self) -> str:
        x, other = self.inputs
        return brief(
            self,
            **{
                self.parameter: digits_up(self.upper),
                "delta" if self.parameter == "epsilon" else "epsilon": self.given,
            },
            inputs=f"{x} and {other}",
            outputs=self.outputs,
        )

    def _repr_html_(self) -> str:
        """Return the statement and the fields, for notebooks."""
        x, other = self.inputs
        given = "delta" if self.parameter == "epsilon" else "epsilon"
        statement = (
            f"Private for {self.parameter} = {self.upper!r} at {given} = {self.given:g}, and "
            f"for none below {self.lower!r}: inputs {x} and {other} need it."
        )
        return result_page(type(self).__name__, statement, None, self.to_dict())

    def to_dict(self) -> Json:
        """Return the fields as plain values; an infinite epsilon becomes None."""
        return {
            "parameter": self.parameter,
            "lower": self.lower if math.isfinite(self.lower) else None,
            "upper": self.upper if math.isfinite(self.upper) else None,
            "given": self.given,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "moved": self.moved,
        }


def least_of_ratio(
    ratio: Fraction | None,
    inputs: tuple[int | str, int | str],
    outputs: tuple[int | str, ...],
    delta: float = 0.0,
    *,
    lower: Fraction | None = None,
) -> Least:
    """Return the least epsilon of a mechanism whose least e^epsilon is known.

    Args:
        ratio: at least 1; None if it is infinite. An upper bound, where ``lower`` is given.
        inputs: see `Least`, as for outputs and delta.
        outputs: see there.
        delta: see there.
        lower: a lower bound of the same ratio, at least 1; the ratio itself if None.
    """
    if ratio is None:
        return Least("epsilon", math.inf, math.inf, delta, inputs, outputs)
    low, high = log_enclosed(ratio)
    if lower is not None:
        low = log_enclosed(lower)[0]
    return Least("epsilon", low, high, delta, inputs, outputs)


def require_pure(kind: str, epsilon: float | None, delta: float | None) -> None:
    """Refuse what is asked of a kind of which the least epsilon is known for delta = 0 alone.

    Raises:
        ParameterError: if a delta is given, or the least one is asked for.
    """
    if epsilon is not None or delta != 0:
        asked = "a least delta" if epsilon is not None else f"delta = {_checks.shown(delta)}"
        raise ParameterError(
            f"kind is {kind!r}; its least epsilon is found for delta = 0, and {asked} is asked for."
        )
