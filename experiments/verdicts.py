"""Verdicts on what a paper printed or stated: computed from a run, by rules stated with them."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.registry import NOT_COMPARABLE, Comparison

_ROUNDED = 1.0 + 1e-9
_EVERY_NUMBER = "agrees if every number lies within half a unit of the printed last digit"
_EVERY_CASE = "refuted if it fails in any case of the run"
_MORE = "; sharper if "
_MISPRINT = "; misprint if "


def short(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}"


def rounds_to(found: float, printed: float, digits: int) -> bool:
    """Return whether a number lies within half a unit of the printed one's last digit.

    Args:
        found: the number of this run.
        printed: the number of the paper.
        digits: decimals that the paper prints.
    """
    return abs(found - printed) <= 0.5 * 10.0**-digits * _ROUNDED


def numbers(
    claim: str,
    ours: str,
    pairs: Iterable[tuple[float, float]],
    digits: int,
    certificate: str,
    *,
    name: str = "",
) -> Comparison:
    """Compare printed numbers: "agrees" if all round to them, "differs" otherwise.

    Args:
        claim: what the paper prints, and where.
        ours: what was found.
        pairs: found and printed.
        digits: decimals that the paper prints.
        certificate: what proves ours.
        name: identifier of the statement; the claim if empty.
    """
    same = all(rounds_to(found, printed, digits) for found, printed in pairs)
    verdict = "agrees" if same else "differs"
    return Comparison(claim, ours, verdict, certificate, _EVERY_NUMBER, name)


def statement(
    claim: str,
    ours: str,
    certificate: str,
    *,
    holds: bool,
    more: bool = False,
    more_if: str = "",
    corrected: bool = False,
    corrected_if: str = "",
    reading: str = "",
    name: str = "",
) -> Comparison:
    """Judge a statement: "refuted" if it fails, "sharper" if more than it holds, or "agrees".

    It is a "misprint" if it fails as printed, and holds as what is plainly meant.

    Args:
        claim: what the paper states, and where.
        ours: what was found.
        certificate: what proves ours.
        holds: whether it holds in every case of the run.
        more: whether the run shows more than it says.
        more_if: what ``more`` asks for, in words.
        corrected: whether it holds with the misprint undone.
        corrected_if: what ``corrected`` asks for, in words.
        reading: where the paper can be read in several ways, the one that was judged.
        name: identifier of the statement; the claim if empty.
    """
    verdict = "sharper" if more else "agrees"
    if not holds:
        verdict = "misprint" if corrected else "refuted"
    rule = _EVERY_CASE + (_MISPRINT + corrected_if if corrected_if else "")
    rule += _MORE + more_if if more_if else ""
    if reading:
        ours = f"{ours} Read as: {reading}."
    return Comparison(claim, ours, verdict, certificate, rule, name)


def observed(
    claim: str, ours: str, certificate: str, *, alike: bool, rule: str = "", name: str = ""
) -> Comparison:
    """Judge what a paper saw, on draws of the run's own: "agrees" or "differs".

    Args:
        claim: what the paper sees, and where.
        ours: what was found.
        certificate: how.
        alike: whether the run sees it too.
        rule: what ``alike`` asks for, in words.
        name: identifier of the statement; the claim if empty.
    """
    return Comparison(claim, ours, "agrees" if alike else "differs", certificate, rule, name)


def not_comparable(
    claim: str, ours: str, certificate: str, *, why: str, name: str = ""
) -> Comparison:
    """Put a run beside a paper without a verdict.

    Args:
        claim: what the paper prints or states, and where.
        ours: what was found.
        certificate: how.
        why: what of the run is not the paper's, or why no run can decide it.
        name: identifier of the statement; the claim if empty.
    """
    return Comparison(claim, ours, NOT_COMPARABLE, certificate, f"no verdict: {why}", name)
