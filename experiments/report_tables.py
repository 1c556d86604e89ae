"""A table of a run as a part of the report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from experiments.registry import Cell, Table

# Longer tables start folded; of the longest, the page shows the first rows, the CSV all.
_OPEN_ROWS, _SHOWN_ROWS = 40, 300
_LONG_WORDS = 40


def table_html(file: str, table: Table) -> str:
    """Return a table that folds and scrolls, with a link to its CSV.

    Args:
        file: name of the CSV beside the page.
        table: of the run.
    """
    style = [_style(table.column(name)) for name in table.columns]
    # A long name may break, so that its column is as narrow as its numbers allow.
    names = [escape(name).replace("_", "_<wbr>") for name in table.columns]
    head = "".join(f"<th{kind}>{name}</th>" for kind, name in zip(style, names, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{escape(_show(cell))}</td>" for kind, cell in zip(style, row, strict=True)
        )
        + "</tr>"
        for row in table.rows[:_SHOWN_ROWS]
    )
    count, shown = len(table.rows), " open" if len(table.rows) <= _OPEN_ROWS else ""
    rows = f"{count} rows" + (f", the first {_SHOWN_ROWS} here" if count > _SHOWN_ROWS else "")
    return (
        f"<details{shown}><summary>{escape(table.caption)} ({rows})</summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{body}</tbody></table></div><p><a href="{escape(file)}">CSV</a></p></details>'
    )


def _style(cells: Sequence[Cell]) -> str:
    """Return the class of a column: numbers, words, or sentences, which may break."""
    words = [len(cell) for cell in cells if isinstance(cell, str)]
    if not words:
        return ""
    return ' class="long"' if max(words) > _LONG_WORDS else ' class="words"'


def _show(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)
