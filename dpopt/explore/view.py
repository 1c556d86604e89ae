"""What a tab shows of a setting, before it is a page: numbers as text, a picture, the lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dpopt._numbers import shown
from dpopt._page import drawn
from dpopt.design import Answer, Design, Question, design
from dpopt.explore.fields import code_of, command_of

_MOST_ROWS = 60


@dataclass(frozen=True)
class Table:
    """A small table of text.

    Attributes:
        head: names of the columns; the first column names the rows.
        rows: as many texts each as ``head``.
        left_out: how many further rows there are.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


@dataclass(frozen=True)
class View:
    """What a tab shows for its parameters.

    Attributes:
        verdict: what was proved, in one sentence.
        good: whether there is nothing to warn of: a mechanism proved private, or a question.
        facts: single numbers, by name.
        table: the answer.
        picture: its plot, as SVG in the colour of the text around it, without links or scripts.
        code: lines of Python that compute what is shown.
        command: a command line that does.
    """

    verdict: str
    good: bool
    facts: Mapping[str, str]
    table: Table
    picture: str
    code: str
    command: str


def view_of(setting: Question[Any]) -> View:
    """Return what a page shows of the answer to a setting.

    Raises:
        DpoptError: where `dpopt.design` raises it.
    """
    answer = design(setting)
    return View(
        verdict=answer.statement,
        good=not isinstance(answer, Design) or answer.private,
        facts=_facts(answer),
        table=_table(setting.columns(answer.units)),
        picture=drawn(answer.plot),
        code=code_of(setting),
        command=command_of(setting),
    )


def _facts(answer: Answer) -> dict[str, str]:
    """Return value, bound and gap, what the repr tells beyond them, and what the proof leaves."""
    shared = {"value", "guarantee", "verdict", *answer.setting.to_dict()}
    facts = answer.known()
    facts |= {name: told for name, told in answer.headline().items() if name not in shared}
    if isinstance(answer, Design) and answer.certificate is not None:
        facts["slack of the proof"] = float(answer.certificate.slack)
    facts |= answer.details()
    return {name.replace("_", " "): number(told) for name, told in facts.items()}


def _table(columns: Mapping[str, Any]) -> Table:
    values = [list(column) for column in columns.values()]
    rows = tuple(tuple(map(number, row)) for row in zip(*values, strict=True))
    return Table(tuple(columns), rows[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS))


def number(value: object) -> str:
    """Return a value as it is shown: six significant digits, a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        # Minus 0 is 0.
        return f"{value + 0.0:.6g}"
    return shown(value) if isinstance(value, Real | list | tuple) else str(value)
