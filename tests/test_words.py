"""The field's words, in what a stranger reads: help of the commands, public docstrings, guides.

README and pages are asked by `tests/test_pages.py`. Proofs, and words with a meaning of their own
such as the name of a module, are left out.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

import dpopt
from dpopt.cli.group import loaded

ROOT = Path(__file__).resolve().parents[1]
# Of a distribution, a category, what is reported, an index, headroom, a weight, a verifier, a
# cvxpy interface, a reference optimum, several priors.
HOUSE_WORDS = re.compile(
    r"\b(laws?|letters?|told|tells|telling|spare|judged?|doors?|yardsticks?|hedged|limbs|rungs|leaps"
    r"|vouched|coherent)\b",
    re.IGNORECASE,
)


def texts_of(value: object) -> Iterator[str]:
    """The docstring of a public function or class, and of its public members."""
    yield inspect.getdoc(value) or ""
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_"):
                yield inspect.getdoc(member) or "" if callable(member) else ""


def house_words(text: str) -> list[str]:
    # A name in code has its own spelling.
    return HOUSE_WORDS.findall(re.sub(r"`[^`]*`", "", text))


def test_docstrings() -> None:
    for name in dir(dpopt):
        value = getattr(dpopt, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert [word for text in texts_of(value) for word in house_words(text)] == []


def test_help_of_the_commands() -> None:
    group = loaded()
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert house_words(command.get_help(click.Context(command, info_name=name))) == [], name


def test_guides() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        assert house_words(prose) == []


def test_a_house_word_is_found() -> None:
    assert house_words("The law of a letter is told; see `law`.") == ["law", "letter", "told"]
