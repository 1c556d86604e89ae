"""Parse cases of the majority's experiments, and format priors and numbers in figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpopt import ParameterError, majority

_ANY = Callable[[str], Any]


def pmf_words(prior: str) -> str:
    """Return how a distribution of the p_i is written: "U[0, 1]" for "uniform:0,1"."""
    pmf = majority.parse_prior(prior)
    if isinstance(pmf, majority.CommonPrior):
        return f"{pmf_words(str(pmf.base))}, one p for all"
    if isinstance(pmf, majority.UniformPrior):
        parts = [f"[{_ends(pair)}]" for pair in pmf.intervals]
        return "U" + " or ".join(parts)
    if isinstance(pmf, majority.BetaPrior):
        return f"Beta({_ends((pmf.a, pmf.b))})"
    return f"p = {_ends(pmf.p)}"


def under(prior: str) -> str:
    """Return "p ~ U[0, 1]" for the axis of a figure, or "p = .5"."""
    words = pmf_words(prior)
    return rf"$p$ = {words[4:]}" if words.startswith("p = ") else rf"$p \sim$ {words}"


def _ends(values: Sequence[float]) -> str:
    return ", ".join(decimal(value) for value in values)


def decimal(value: float) -> str:
    """Return a number without the zero before its point."""
    text = f"{value:g}"
    return text[1:] if text.startswith("0.") else text


def whole(value: float) -> float:
    """Return a whole number as an integer, so that tables and panels show 3 and not 3.0."""
    return int(value) if float(value).is_integer() else float(value)


def cases(name: str, texts: Sequence[str], form: str, kinds: Sequence[_ANY]) -> list[tuple]:
    """Read texts such as "11,3" as tuples of numbers."""
    found = []
    for text in texts:
        parts = str(text).split(",")
        try:
            found.append(tuple(kind(part) for kind, part in zip(kinds, parts, strict=True)))
        except ValueError:
            raise ParameterError(f"{name} holds {text!r}; it must have the form {form}.") from None
    return found
