"""What a tab shows of a setting, before it is a page: numbers as text, a picture, the lines."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpopt._errors import NotPrivateError
from dpopt._numbers import shown
from dpopt.design import Answer, Design, Question, design
from dpopt.explore.fields import code_of, command_of
from dpopt.privacy.exact import Certificate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 60
# Stands for the colour of the page's text, which the figure cannot know: light or dark.
_INK = "#010203"


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
    verdict, good = _verdict(answer)
    return View(
        verdict=verdict,
        good=good,
        facts=_facts(answer),
        table=_table(setting.columns(answer.units)),
        picture=_drawn(answer),
        code=code_of(setting),
        command=command_of(setting),
    )


def _verdict(answer: Answer) -> tuple[str, bool]:
    if not isinstance(answer, Design):
        return f"A question about privacy, answered: {number(answer.value)}.", True
    try:
        answer.require_private()
    except NotPrivateError as error:
        return f"Not private; it releases nothing. {error}", False
    target, proof = answer.guarantee, cast(Certificate, answer.certificate)
    promised = f"({number(target.epsilon)}, {number(target.delta)})-DP"
    decided = f"{proof.constraints:,} inequalities decided: {proof.arithmetic}"
    return f"{promised}: {proof.claim}. {decided}.", True


def _facts(answer: Answer) -> dict[str, str]:
    """Return value, bound and gap, what the repr tells beyond them, and what the proof leaves."""
    shared = {"value", "guarantee", "verdict", *answer.setting.to_dict()}
    facts = {"value": answer.value, "bound": answer.bound, "gap": answer.gap}
    facts |= {name: told for name, told in answer.headline().items() if name not in shared}
    if isinstance(answer, Design) and answer.certificate is not None:
        facts["slack of the proof"] = float(answer.certificate.slack)
    return {name.replace("_", " "): number(told) for name, told in facts.items()}


def _table(columns: Mapping[str, Any]) -> Table:
    values = [list(column) for column in columns.values()]
    rows = tuple(tuple(map(number, row)) for row in zip(*values, strict=True))
    return Table(tuple(columns), rows[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS))


def _drawn(answer: Answer) -> str:
    with drawing(6.0, 3.6) as figure:
        axes = answer.plot(figure.subplots())
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        return svg_of(figure)


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


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure of this size in inches, made for `svg_of`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = dict.fromkeys(inks, _INK) | {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "legend.framealpha": 0.0,
        "svg.hashsalt": "dpopt",
    }
    with mpl.rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def svg_of(figure: Figure) -> str:
    """Return a figure of `drawing` as an SVG element; call it while that is open."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    whole = buffer.getvalue()
    svg = whole[whole.index("<svg") :].replace(_INK, "currentColor")
    # What is left of the head names two web addresses that nothing has to read.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # As wide as the page allows, up to its own size; the view box gives the proportions.
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (?:width|height)="[^"]*"', "", opening)
    widest = f'style="max-width: {96 * figure.get_figwidth():.0f}px"'
    return f"{opening} {widest}>{rest}"
