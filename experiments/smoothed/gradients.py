"""Sets of distributions of one quantised gradient, by their names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpopt import ParameterError
from experiments.smoothed.quantised import QuantisedGradient

_FAMILIES = {"gaussian": "N", "laplace": "L"}


@dataclass(frozen=True)
class Gradients:
    """A set Pi of distributions of one gradient.

    Attributes:
        label: what figures and tables call it.
        members: the distributions.
    """

    label: str
    members: tuple[QuantisedGradient, ...]

    @property
    def lowest(self) -> int:
        """The least value of a gradient."""
        return min(member.lowest for member in self.members)

    @property
    def highest(self) -> int:
        """The largest value of a gradient."""
        return max(member.highest for member in self.members)


def gradients(texts: Iterable[str], bits: int) -> tuple[Gradients, ...]:
    """Return the sets that texts name; several are numbered, as the paper numbers its settings.

    Args:
        texts: of words "family:mean,deviation" with blanks between them, such as
            "gaussian:0,0.12 laplace:0.2,0.12".
        bits: of the quantisation.

    Raises:
        ParameterError: if a word is anything else, or there is none.
    """
    given = tuple(texts)
    found = tuple(tuple(_gradient(word, text, bits) for word in text.split()) for text in given)
    if not found or not all(found):
        raise ParameterError(
            f"distributions is {given}; each text must name at least one distribution."
        )
    if len(set(found)) < len(found):
        raise ParameterError(f"distributions is {given}; each set must be there once.")
    numbered = len(found) > 1
    return tuple(
        Gradients(f"{place}: {_label(members)}" if numbered else _label(members), members)
        for place, members in enumerate(found, start=1)
    )


def _gradient(word: str, text: str, bits: int) -> QuantisedGradient:
    family, _, numbers = word.partition(":")
    mean = deviation = math.nan
    try:
        mean, deviation = map(float, numbers.split(","))
    except ValueError:
        family = ""
    if family not in _FAMILIES:
        raise ParameterError(
            f"distributions is {text!r}; each word must be 'gaussian:mean,deviation' or "
            "'laplace:mean,deviation'."
        )
    return QuantisedGradient(mean, deviation, family, bits)


def _label(members: Iterable[QuantisedGradient]) -> str:
    return ", ".join(
        f"{_FAMILIES[each.family]}({_short(each.mean)}, {_short(each.deviation)}²)"
        for each in members
    )


def _short(number: float) -> str:
    """Return a number as the paper prints it, without the 0 before the point."""
    text = f"{number:g}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
