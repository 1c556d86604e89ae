"""The least epsilon or delta of a mechanism, enclosed by two floats."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Literal

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._page import result_page
from dpopt._types import Json, brief
from dpopt.privacy.exponential import log_enclosed


@dataclass(frozen=True)
class Least:
    """The least epsilon of a mechanism for a delta, or its least delta for an epsilon, enclosed.

    Attributes:
        parameter: which one is least: "epsilon" or "delta".
        lower: a float <= the exact value.
        upper: a float >= the exact value, equal to ``lower`` or a few floats above it; the
            mechanism is private for it. Both are infinite for an epsilon if an event is possible
            for an input and impossible for a neighbour.
        given: the other parameter's value: the delta, or the epsilon.
        inputs: neighbours (x, x') that attain it: numbers of a table's inputs, their names if they
            have any, or descriptions if data sets are too many to be numbered.
        outputs: an event S that attains it: K(S | x) = e^epsilon K(S | x') + delta, up to rounding;
            numbers of the outputs, or their names.
        moved: largest total variation between a row of the given table and the distribution that
            was analysed; 0 if its rows were distributions.
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
        numbers = {self.parameter: verify.not_below(self.upper), self._condition: self.given}
        return brief(self, **numbers, inputs=f"{x} and {other}", outputs=self.outputs)

    @property
    def _condition(self) -> str:
        return "delta" if self.parameter == "epsilon" else "epsilon"

    def _repr_html_(self) -> str:
        """Return the result and its fields as HTML, for notebooks."""
        x, other = self.inputs
        statement = (
            f"Private for {self.parameter} = {self.upper!r} at {self._condition} = {self.given:g}, "
            f"and for none below {self.lower!r}: inputs {x} and {other} need it."
        )
        return result_page(type(self).__name__, statement, None, self.to_dict())

    def to_dict(self) -> Json:
        """Return the fields as plain values; an infinite epsilon becomes None."""
        lower, upper = (x if math.isfinite(x) else None for x in (self.lower, self.upper))
        lists = {"inputs": list(self.inputs), "outputs": list(self.outputs)}
        return {**asdict(self), "lower": lower, "upper": upper, **lists}


def least_of_ratio(
    exp_epsilon: Fraction | None,
    inputs: tuple[int | str, int | str],
    outputs: tuple[int | str, ...],
    delta: float = 0.0,
    *,
    lower: Fraction | None = None,
) -> Least:
    """Return the least epsilon for a delta from the least e^epsilon, None if infinite.

    Or from bounds on it, ``lower`` and ``exp_epsilon``. The other arguments are those of `Least`.
    """
    if exp_epsilon is None:
        return Least("epsilon", math.inf, math.inf, delta, inputs, outputs)
    low, high = log_enclosed(exp_epsilon)
    if lower is not None:
        low = log_enclosed(lower)[0]
    return Least("epsilon", low, high, delta, inputs, outputs)


def require_pure(kind: str, epsilon: float | None, delta: float | None) -> None:
    """Check a request to a kind of mechanism that supports the least epsilon for delta = 0 only."""
    if epsilon is not None or delta != 0:
        request = "a least delta" if epsilon is not None else f"delta = {_checks.shown(delta)}"
        raise ParameterError(
            f"kind is {kind!r}; its least epsilon is found for delta = 0, and {request} is asked "
            "for."
        )
