"""The field's words, in what a stranger reads: help of commands, docstrings, guides, README, pages.

Proofs, and words with a meaning of their own such as the name of a module, are left out.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator

import click

import dpopt
from dpopt.cli.group import loaded
from tests.pages import ROOT

# Of a distribution, a category, what is reported, an index, headroom, a weight, a verifier, a
# cvxpy interface, a reference optimum, several priors.
HOUSE_WORDS = (
    r"laws?|letters?|told|tells|telling|spare|judged?|doors?|yardsticks?|hedged|limbs|rungs|leaps"
    r"|vouched|coherent"
)
# These have another meaning in the field.
OF_PAGES = "laws?|letters?|told|units?|places?|rooms?|spare|judged?|doors?"
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/*.md"))]


def docstrings(value: object) -> Iterator[str]:
    """Of a public function or class, and of its public members."""
    yield inspect.getdoc(value) or ""
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_"):
                yield inspect.getdoc(member) or "" if callable(member) else ""


def texts() -> Iterator[tuple[str, str]]:
    """What is read besides pages, by name."""
    for name in dir(dpopt):
        value = getattr(dpopt, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield from ((name, text) for text in docstrings(value))
    group = loaded()
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield name, command.get_help(click.Context(command, info_name=name))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield (
            path.name,
            "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"),
        )


def house_words(text: str, words: str = HOUSE_WORDS) -> list[str]:
    """The words that are of the house; code, and a name in it, has its own spelling."""
    prose = re.sub(r"^```.*?^```|`[^`]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"\b({words})\b", prose, re.IGNORECASE)


def test_what_is_read_is_in_the_words_of_the_field() -> None:
    assert house_words("The law of a letter is told; see `law`.") == ["law", "letter", "told"]
    assert [(name, words) for name, text in texts() if (words := house_words(text))] == []
    pages = [(path.name, path.read_text(encoding="utf-8")) for path in PAGES]
    assert [(n, words) for n, text in pages if (words := house_words(text, OF_PAGES))] == []
