"""A view as HTML, every text escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

from dpopt._errors import DpoptError
from dpopt.explore.view import Picture, Table, View

# Runs in the reader's browser; the text is that of the element before the button.
COPY = "navigator.clipboard.writeText(this.previousElementSibling.textContent)"


def html_of(make: Callable[..., View], values: Mapping[str, object]) -> str:
    """Return a view's HTML, or that of the sentence of why there is none."""
    try:
        return page_of(make(**values))
    except DpoptError as error:
        return refusal(str(error))


def page_of(view: View) -> str:
    """Return a view as HTML: verdict, numbers, pictures, code; nothing is fetched."""
    mark = "private" if view.private else "refuted"
    facts = "".join(
        f'<div><dt>{escape(name)}</dt><dd data-fact="{escape(name)}">{escape(text)}</dd></div>'
        for name, text in view.facts.items()
    )
    return (
        f'<p class="verdict {mark}" role="status">{escape(view.verdict)}</p>'
        f'<dl class="facts">{facts}</dl>'
        + "".join(_picture(shown) for shown in view.pictures)
        + "".join(_table(table) for table in view.tables)
        + '<section class="code"><h2>The same in Python</h2>'
        f'<pre data-code>{escape(view.code)}</pre><button type="button" onclick="{COPY}">'
        "Copy</button></section>"
    )


def refusal(sentence: str) -> str:
    """Return the HTML of an error: its sentence, and nothing of an earlier result."""
    return f'<p class="verdict refused" role="alert">{escape(sentence)}</p>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.head)
    body = "".join(
        f'<tr data-row="{escape(row[0])}"><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in row[1:])
        + "</tr>"
        for row in table.rows
    )
    whole = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{whole}</table></div>'


def _picture(shown: Picture) -> str:
    label = escape(shown.caption)
    return (
        f'<figure role="img" aria-label="{label}">{shown.svg}'
        f"<figcaption>{label}</figcaption></figure>"
    )
