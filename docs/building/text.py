"""Docstrings and help as reStructuredText in which formulas stay what they are."""

from __future__ import annotations

import re

_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
_EMPHASIS = re.compile(r"(?<!\S)(\*\w[\w ]*\w\*)(?![\w*])")
_MARKUP = re.compile(r"[\\*|]|(?<=\w)_(?![\w:])")
_SHOWN = re.compile(r"(``.+?``|(?<![\w-])--[a-z][a-z-]*)")
_SECTION = re.compile(r"[A-Z]\w+:$", re.MULTILINE)
_BLANK = re.compile(r"(\n\s*\n)")


def plain_docstring(text: str) -> str:
    """Return a docstring in which backticks and emphasised words are the only inline markup.

    ``|2l - K|`` is then no substitution and ``m * epsilon`` no emphasis; doctests are untouched. A
    paragraph that is indented before the first section, a displayed program, keeps its lines.
    """
    paragraphs, within = _BLANK.split(text), False
    for i in range(0, len(paragraphs), 2):
        within = within or _SECTION.match(paragraphs[i].strip("\n")) is not None
        shown = not within and is_displayed(paragraphs[i])
        paragraphs[i] = f"::\n\n{paragraphs[i]}" if shown else _plain_paragraph(paragraphs[i])
    return "".join(paragraphs)


def is_displayed(paragraph: str) -> bool:
    """Whether every line of a paragraph is indented, and it is no doctest."""
    lines = [line for line in paragraph.split("\n") if line.strip()]
    indented = all(line.startswith("    ") for line in lines)
    return bool(lines) and indented and not lines[0].lstrip().startswith(">>>")


def plain_help(text: str) -> str:
    """Return help on one line: options and what stands in backticks as code, nothing as markup."""
    pieces = _SHOWN.split(" ".join(text.split()))
    pieces[::2] = [re.sub(r"[\\*`|_]", r"\\\g<0>", piece) for piece in pieces[::2]]
    pieces[1::2] = [f"``{piece.strip('`')}``" for piece in pieces[1::2]]
    return "".join(pieces)


def _plain_paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return text
    pieces = _CODE.split(text)
    for i in range(0, len(pieces), 2):
        words = _EMPHASIS.split(pieces[i])
        words[::2] = [_MARKUP.sub(r"\\\g<0>", word) for word in words[::2]]
        pieces[i] = "".join(words)
    return "".join(pieces)
