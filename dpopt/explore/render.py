"""A view as HTML, every text escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dpopt._errors import DpoptError
from dpopt.design import Question
from dpopt.explore.fields import setting_of, summary_of
from dpopt.explore.view import Table, View, view_of

# Runs in the reader's browser; the text is that of the element before the button.
COPY = "navigator.clipboard.writeText(this.previousElementSibling.textContent)"


def html_of(kind: type[Question[Any]], texts: Mapping[str, str]) -> str:
    """Return the HTML of a setting's view, or that of the sentence of why there is none."""
    try:
        return page_of(view_of(setting_of(kind, texts)))
    except DpoptError as error:
        return refusal(str(error))
    except MemoryError:
        return refusal(f"{kind.kind} of this size needs more memory than this page takes.")


def page_of(shown: View) -> str:
    """Return a view as HTML: verdict, numbers, picture, table, lines; nothing is fetched."""
    mark = "private" if shown.good else "refuted"
    facts = "".join(
        f'<div><dt>{escape(name)}</dt><dd data-fact="{escape(name)}">{escape(text)}</dd></div>'
        for name, text in shown.facts.items()
    )
    return (
        f'<p class="verdict {mark}" role="status">{escape(shown.verdict)}</p>'
        f'<dl class="facts">{facts}</dl>'
        f'<figure role="img" aria-label="plot of the answer">{shown.picture}</figure>'
        + _table(shown.table)
        + _lines("The same in Python", shown.code)
        + _lines("The same in a terminal", shown.command)
    )


def about(kind: type[Question[Any]]) -> str:
    """Return what a kind's docstring says before its attributes, as HTML."""
    first, program = summary_of(kind)
    more = f"<details><summary>The program</summary><pre>{escape(program)}</pre></details>"
    return f'<p class="about">{escape(first)}</p>' + (more if program else "")


def refusal(sentence: str) -> str:
    """Return the HTML of an error: its sentence, and nothing of an earlier result."""
    return f'<p class="verdict refused" role="alert">{escape(sentence)}</p>'


def _lines(title: str, text: str) -> str:
    return (
        f'<section class="code"><h2>{title}</h2><pre data-code>{escape(text)}</pre>'
        f'<button type="button" onclick="{COPY}">Copy</button></section>'
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.head)
    body = "".join(
        f'<tr data-row="{escape(row[0])}"><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in row[1:])
        + "</tr>"
        for row in table.rows
    )
    whole = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    more = f"<p>{table.left_out:,} more rows.</p>" if table.left_out else ""
    return f'<div class="wide"><table>{whole}</table></div>{more}'
