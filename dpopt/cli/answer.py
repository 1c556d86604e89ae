"""Answers on the command line: the options of every command that has a result, and its text."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpopt._errors import ParameterError
from dpopt._figure import context, save_figure
from dpopt._kinds import described
from dpopt.cli.options import Flag, parameters
from dpopt.cli.output import listed, show_record
from dpopt.files import check_json_target, check_target, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Files that a figure is written to.
_FIGURE_ENDINGS = (".png", ".pdf", ".svg")
_ROWS, _WIDTH = 40, 72


@dataclass(frozen=True)
class Answer:
    """What becomes of a result.

    Attributes:
        json: print the result as JSON.
        all_rows: print all rows, not the first 40.
        plot: draw the result to .png, .pdf or .svg.
        style: size and fonts of the drawing.
        save: write the result as JSON.
    """

    json: Flag = False
    all_rows: Flag = False
    plot: Path | None = None
    style: Literal["plain", "neurips", "icml", "ieee"] = "plain"
    save: Path | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Answer:
        """Take the options of an answer out of those of a command, and check them."""
        named = [field.name for field in fields(cls) if given.get(field.name) is not None]
        answer = cls(**{name: given.pop(name) for name in named})
        plot, save = answer.plot, answer.save
        if plot is not None and plot == save:
            raise ParameterError(f"plot and save are both {str(plot)!r}; they must differ.")
        if save is not None:
            check_json_target(save)
        if plot is None:
            return answer
        check_target(plot)
        if plot.suffix.lower() not in _FIGURE_ENDINGS:
            raise ParameterError(
                f"plot is {str(plot)!r}; its ending must be {', '.join(_FIGURE_ENDINGS)}."
            )
        with context(answer.style):
            return answer

    def draw(self, plot: Callable[[], Axes]) -> None:
        """Draw to the file that was asked for, if any."""
        if self.plot is not None:
            with context(self.style), replacing(self.plot) as temporary:
                save_figure(plot(), temporary)

    def give(self, find: Callable[[], Any]) -> None:
        """Save, draw and print what is found."""
        start = time.perf_counter()
        found = find()
        seconds = time.perf_counter() - start
        if self.save is not None:
            found.save(self.save)
        self.draw(found.plot)
        self.show(found.to_dict(), found.facts(), found.columns, seconds)

    def show(
        self,
        record: Mapping[str, Any],
        facts: Mapping[str, Any],
        columns: Callable[[], Mapping[str, Sequence[Any]]],
        seconds: float,
    ) -> None:
        """Print a result: its record as JSON; or its facts, a line each, and its table.

        Facts that are None or NaN are not known and left out; ``columns`` may refuse.
        """
        from dpopt.privacy.guarantee import Guarantee, in_short

        known = {
            name: in_short(value) if isinstance(value, Guarantee) else _told(value)
            for name, value in facts.items()
            # Some means are of tables that cannot be listed.
            if value is not None and not (isinstance(value, float) and math.isnan(value))
        }
        table = list[str]()
        if not self.json:
            try:
                table = _table(columns(), None if self.all_rows else _ROWS)
            except ParameterError as error:
                table = [f"no table: {error}"]
        lines = [*listed({**known, "seconds": f"{seconds:.3f}"}), "", *table]
        show_record(self.json, {**record, "seconds": seconds}, lines)


# The options of every command that prints an answer.
OPTIONS = parameters(described(Answer).fields)


def _table(columns: Mapping[str, Sequence[Any]], most: int | None) -> list[str]:
    """Return rows of a table, aligned: all, or the first ones."""
    written = [[name, *map(_told, list(column[:most]))] for name, column in columns.items()]
    widths = [min(_WIDTH, max(map(len, column))) for column in written]
    lines = [
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in zip(*written, strict=True)
    ]
    hidden = max(map(len, columns.values()), default=0) - (most or math.inf)
    return [*lines, f"... {hidden:,} more; --all-rows prints them"] if hidden > 0 else lines


def _told(value: Any) -> str:  # noqa: ANN401
    """Return a value as the command line prints it."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)
