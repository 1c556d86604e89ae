"""Answers: their text, their files, and standard output.

What is drawn for standard output is drawn only once that can take any answer.
"""

from __future__ import annotations

import json
import math
import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from dpopt._errors import ParameterError
from dpopt.files import check_json_target, check_target, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.privacy import Guarantee

# Files that a figure is written to; rows of a table that are printed, and their width.
_FIGURE_ENDINGS = (".png", ".pdf", ".svg")
_ROWS, _WIDTH = 40, 72
# Ends of messages where the answer could not be written.
_SPENT = "what was drawn is lost, and its privacy is spent"

CLOSED = "standard output is closed; it must take the answer"


class OutputError(Exception):
    """Standard output did not take the answer."""


def escaped(text: str) -> str:
    """Return text with escapes for what is not printable: an end of line becomes two characters.

    Text of a file may hold what a terminal obeys, or ends of lines, which would forge another line.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def show(*lines: str) -> None:
    """Write lines, escaped, whole and flushed."""
    _write("\n".join(map(escaped, lines)))


def show_record(as_json: bool, record: Mapping[str, object], lines: Sequence[str]) -> None:
    """Write a record as JSON, or lines for a reader."""
    show(*([to_json(record)] if as_json else lines))


def listed(facts: Mapping[str, object]) -> list[str]:
    """Return facts by name, a line each."""
    return [f"{name:18s} {fact}" for name, fact in facts.items()]


def to_json(record: Mapping[str, object]) -> str:
    """Return a record as JSON, which has no infinity and no NaN; nor has the record."""
    # DEL is the one character that is not printable and that JSON in ASCII does not escape.
    return json.dumps(record, allow_nan=False).replace("\x7f", r"\u007f")


def check_targets(plot: Path | None, style: str, save: Path | None) -> None:
    """Refuse files that cannot be written, before anything is computed for them."""
    from dpopt._figure import context

    if plot is not None and plot == save:
        raise ParameterError(f"plot and save are both {str(plot)!r}; they must differ.")
    if save is not None:
        check_json_target(save)
    if plot is not None:
        check_target(plot)
        if plot.suffix.lower() not in _FIGURE_ENDINGS:
            raise ParameterError(
                f"plot is {str(plot)!r}; its ending must be {', '.join(_FIGURE_ENDINGS)}."
            )
        with context(style):
            return


def draw(plot: Callable[[], Axes], path: Path, style: str) -> None:
    """Draw to a file."""
    from dpopt._figure import context

    # A date would make two drawings of one result differ.
    dated = {"CreationDate": None} if path.suffix == ".pdf" else None
    with context(style), replacing(path) as temporary:
        cast(Any, plot().get_figure(root=True)).savefig(temporary, metadata=dated)


def table_lines(columns: Mapping[str, Sequence[Any]], all_rows: bool) -> list[str]:
    """Return rows of a table, aligned: all, or the first ones."""
    most = None if all_rows else _ROWS
    written = [[name, *map(told, list(column[:most]))] for name, column in columns.items()]
    widths = [min(_WIDTH, max(map(len, column))) for column in written]
    lines = [
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in zip(*written, strict=True)
    ]
    hidden = max(map(len, columns.values()), default=0) - (most or math.inf)
    return [*lines, f"... {hidden:,} more; --all-rows prints them"] if hidden > 0 else lines


def told(value: Any) -> str:  # noqa: ANN401
    """Return a value as the command line prints it."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def show_draw(
    draw: Callable[[], Sequence[object]],
    guarantee: Guarantee,
    as_json: bool,
    facts: Mapping[str, object] | None = None,
) -> None:
    """Write what ``draw`` releases, one in each line, and after them facts.

    All that can be known to fail fails before it is called.
    """
    extra = facts or {}
    _probe(_stream())
    try:
        drawn = draw()
        if as_json:
            plain = [each if isinstance(each, str) else int(str(each)) for each in drawn]
            spent = {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
            _write(to_json({"released": plain, "guarantee_of_each": spent, **extra}))
        else:
            show(*map(str, drawn), *listed(extra))
    except OutputError as error:
        raise OutputError(f"{error}; {_SPENT}") from None
    except KeyboardInterrupt:
        raise OutputError(f"interrupted at the draw; {_SPENT}") from None


def abandon() -> None:
    """Send what standard output still holds nowhere: nothing else is to fail at the exit."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
    except (OSError, ValueError, AttributeError):
        sys.stdout = None


def _stream() -> TextIO:
    """Return standard output, which is open."""
    if sys.stdout is None or sys.stdout.closed:
        raise OutputError(CLOSED)
    return sys.stdout


def _probe(stream: TextIO) -> None:
    """Find out what an empty write reveals: closed, for reading only, full, without a reader."""
    try:
        stream.flush()
        descriptor = stream.fileno()
        os.write(descriptor, b"")
    except ValueError:
        return  # No file of the system, such as a text in memory.
    except OSError as error:
        raise refused(error) from None
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
            raise OutputError("standard output took no answer: nobody reads it")


def _write(text: str) -> None:
    """Write text; a character that the encoding of standard output lacks becomes its escape."""
    stream = _stream()
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except (OSError, ValueError) as error:
        raise refused(error) from None


def refused(error: Exception) -> OutputError:
    """Return the error to raise where standard output raised another; nothing more goes there."""
    abandon()
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(f"standard output took no answer: {reason.lower()}")
