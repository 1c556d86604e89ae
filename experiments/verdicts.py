"""Verdicts on what a paper printed or stated: computed from a run, by rules stated with them.

Each function takes the claim of the paper with its place, what was found, and the certificate that
proves it; ``name`` is the identifier of the statement, the claim itself if it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from dpopt import Design
from dpopt.privacy.guarantee import Certificate
from experiments.registry import NOT_COMPARABLE, Comparison

_Design = TypeVar("_Design", bound=Design)
_ROUNDED = 1.0 + 1e-9
_EVERY_NUMBER = "agrees if every number lies within half a unit of the printed last digit"
_EVERY_CASE = "refuted if it fails in any case of the run"
_MORE = "; sharper if "
_MISPRINT = "; misprint if "


def proved(design: _Design) -> _Design:
    """Return a design that is proved private; others are refused."""
    design._require_private()
    return design


def proof_of(design: Design) -> Certificate:
    """Return the proof of a design, which is refused without one."""
    return cast(Certificate, proved(design).certificate)


def short(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}"


def rounds_to(found: float, printed: float, digits: int) -> bool:
    """Return whether a number lies within half a unit of the last of some printed decimals."""
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
    """Compare pairs (found, printed), printed with some decimals.

    "agrees" if all round to what is printed, "differs" otherwise.
    """
    same = all(rounds_to(found, printed, digits) for found, printed in pairs)
    verdict = "agrees" if same else "differs"
    return Comparison(claim, ours, verdict, certificate, _EVERY_NUMBER, name)


def columns(
    claim: str,
    rows: Sequence[Mapping[str, Any]],
    printed: Mapping[str, str],
    digits: int,
    certificate: str,
    *,
    said: str = "",
    name: str = "",
) -> Comparison:
    """Compare columns of rows with those of what is printed for them; see `numbers`.

    ``printed`` is the name of the latter by that of the former; the sentence lists ours, and what
    is ``said`` besides.
    """
    ours = (f"{c} = {', '.join(f'{row[c]:.{digits}f}' for row in rows)}" for c in printed)
    pairs = [(row[column], row[other]) for row in rows for column, other in printed.items()]
    sentence = f"{'; '.join(ours)}. {said}".rstrip()
    return numbers(claim, sentence, pairs, digits, certificate, name=name)


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
    """Judge a statement: "refuted" if it fails in a case of the run, otherwise "agrees".

    It is "sharper" if ``more`` holds than it says, which ``more_if`` asks for in words; and a
    "misprint" if it fails as printed, and holds ``corrected``: as what is plainly meant. Where the
    paper can be read in several ways, ``reading`` is the one that was judged.
    """
    verdict = "sharper" if more else "agrees"
    if not holds:
        verdict = "misprint" if corrected else "refuted"
    rule = _EVERY_CASE + (_MISPRINT + corrected_if if corrected_if else "")
    rule += _MORE + more_if if more_if else ""
    if reading:
        ours = f"{ours} Read as: {reading}."
    return Comparison(claim, ours, verdict, certificate, rule, name)


def judged(
    claim: str,
    rows: Sequence[Mapping[str, Any]],
    holds: Callable[[Mapping[str, Any]], bool],
    certificate: str,
    *,
    show: Sequence[str] = (),
    worst: Callable[[Mapping[str, Any]], float] | None = None,
    said: str = "",
    **about: Any,  # noqa: ANN401
) -> Comparison:
    """Judge a statement by the rows of a table: the sentence counts those for which it fails.

    It tells the columns ``show`` of the worst row, of those that fail if any do, and what is
    ``said`` besides; ``about`` is of `statement`.
    """
    failed = [row for row in rows if not holds(row)]
    told = failed or rows
    ours = f"Fails in {len(failed)} of {len(rows)} cases" if failed else f"Holds in all {len(rows)}"
    if show and told:
        row = told[0] if worst is None else max(told, key=worst)
        ours += f"; {listed(row, show)}"
    return statement(claim, f"{ours}. {said}".rstrip(), certificate, holds=not failed, **about)


def listed(row: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return some cells of a row by name, in words."""
    cells = ((name, row[name]) for name in names)
    return ", ".join(f"{n} = {f'{v:.5g}' if isinstance(v, float) else v}" for n, v in cells)


def observed(
    claim: str, ours: str, certificate: str, *, alike: bool, rule: str = "", name: str = ""
) -> Comparison:
    """Judge what a paper saw, on draws of the run's own: "agrees" if the run sees it too.

    ``rule`` says in words what ``alike`` asks for.
    """
    return Comparison(claim, ours, "agrees" if alike else "differs", certificate, rule, name)


def not_comparable(
    claim: str, ours: str, certificate: str, *, why: str, name: str = ""
) -> Comparison:
    """Put a run beside a paper without a verdict, and say why there can be none."""
    return Comparison(claim, ours, NOT_COMPARABLE, certificate, f"no verdict: {why}", name)
