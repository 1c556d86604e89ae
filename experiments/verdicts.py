"""Verdicts on what a paper printed or stated, computed from the numbers of a run."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.registry import Comparison

_ROUNDED = 1.0 + 1e-9


def rounds_to(found: float, printed: float, digits: int) -> bool:
    """Return whether a number lies within half a unit of the printed one's last digit.

    Args:
        found: the number of this run.
        printed: the number of the paper.
        digits: decimals that the paper prints.
    """
    return abs(found - printed) <= 0.5 * 10.0**-digits * _ROUNDED


def numbers(
    claim: str, ours: str, pairs: Iterable[tuple[float, float]], digits: int, certificate: str
) -> Comparison:
    """Compare printed numbers: "agrees" if all round to them, "differs" otherwise.

    Args:
        claim: what the paper prints, and where.
        ours: what was found.
        pairs: found and printed.
        digits: decimals that the paper prints.
        certificate: what proves ours.
    """
    same = all(rounds_to(found, printed, digits) for found, printed in pairs)
    return Comparison(claim, ours, "agrees" if same else "differs", certificate)


def statement(
    claim: str, ours: str, certificate: str, *, holds: bool, more: bool = False
) -> Comparison:
    """Judge a statement: "refuted" if it fails, "sharper" if more than it holds, or "agrees".

    Args:
        claim: what the paper states, and where.
        ours: what was found.
        certificate: what proves ours.
        holds: whether it holds in every case of the run.
        more: whether the run shows more than it says.
    """
    verdict = "refuted" if not holds else "sharper" if more else "agrees"
    return Comparison(claim, ours, verdict, certificate)


def observed(claim: str, ours: str, certificate: str, *, alike: bool) -> Comparison:
    """Judge what a paper saw on data that are not those of the run: "agrees" or "differs"."""
    return Comparison(claim, ours, "agrees" if alike else "differs", certificate)
