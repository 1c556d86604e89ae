"""Options from annotations: how a parameter's text is read, written, and completed by Tab.

What is wrong with a value, the library says. Nothing here loads one before a value is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from dpopt._errors import ParameterError
from dpopt._kinds import Field, choices, hyphened, other_word, parted, text_of
from dpopt._numbers import shown, typed_rational
from dpopt.files import TABLES, number, parse_json, read_rows

SOLVERS = ("highs", "cvxpy", "cvxpy:CLARABEL", "cvxpy:SCS", "cvxpy:GUROBI", "cvxpy:MOSEK")

# An argument as a sentence of the library names it: rule='ladder', or inputs= without a value.
_ARGUMENT = re.compile(r"\b([a-z_]+)=(?:(['\"])([^'\"]*)\2|(?=[\s,.;]))")
# How the library refuses a parameter whose default is none.
_DEFAULT = re.compile(r"(\w+) is (?:None|0|0\.0)(?: and [^;]*)?; (.*)", re.DOTALL)


class Words(click.ParamType):
    """A text; Tab offers some words and, where it may be a file's name, the files.

    Attributes:
        words: what is offered.
        files: whether the text may be the name of a file.
    """

    name = "text"

    def __init__(self, *words: str, files: bool = False) -> None:
        self.words, self.files = words, files

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the words that begin as what was typed does, or leave it to the shell's files."""
        del ctx, param
        found = [CompletionItem(word) for word in self.words if word.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if self.files else found


class Row(Words):
    """A list of numbers such as 0.2,0.8, or a file of numbers."""

    name = "numbers"

    def __init__(self) -> None:
        super().__init__(files=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401
        """Return the numbers, whole ones as integers."""
        del ctx
        if value.startswith("["):
            return _listed(value, _name(param))
        found = _numbers(value.replace(",", " ").split())
        if found is not None:
            return found
        return [number for row in _in_file(value, _name(param)) for number in row]


class Rows(Words):
    """Rows of numbers such as 0.2:0.8,0.5:0.5, or a file with a row a line, or one of some words.

    Rows of one number each, without a colon, are a list of numbers.
    """

    name = "rows"

    def __init__(self, *words: str) -> None:
        super().__init__(*words, files=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401
        """Return the rows as lists of numbers, whole ones as integers; a word as it is."""
        del ctx
        if value in self.words:
            return value
        rows = [_numbers(row.split(":")) for row in value.split(",")]
        if not all(rows):
            return _in_file(value, _name(param), self.words)
        return rows if ":" in value else [row[0] for row in rows if row]


class OwnBlocks(Words):
    """A CSV file of a user's own rows over a kernel, or what `dpopt._kinds.text_of` writes."""

    name = "csv"

    def __init__(self) -> None:
        super().__init__(files=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401
        """Return the blocks of rows."""
        del ctx
        if value.startswith("["):
            return _listed(value, _name(param))
        from dpopt.kernel import read_own_rows

        return read_own_rows(value)


class Exact(Words):
    """A number that is read exactly: 12, 0.25, 1e-9 or 1/3."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401
        """Return the number as a fraction."""
        del ctx
        try:
            return typed_rational(value.strip())
        except ValueError:
            raise ParameterError(
                f"{_name(param)} is {shown(value)}; it must be a number or a fraction such as 1/3."
            ) from None


_TYPES: dict[str, type[click.ParamType] | click.ParamType] = {
    "int": click.INT,
    "float": click.FLOAT,
    "str": Words(),
    "Fraction": Exact(),
    "Numbers": Row(),
    "Table": Rows(),
    "ExtraRows": OwnBlocks(),
}


def option(field: Field) -> click.Option:
    """Return the option of a kind's parameter."""
    annotation, words = parted(field.annotation)
    name, help_text = hyphened(field.name), _help(field)
    if annotation == "bool":
        return click.Option([f"{name}/--no-{name[2:]}"], default=None, help=help_text)
    kind = _TYPES.get(annotation, Words())
    if annotation.startswith("Literal["):
        kind = Words(*choices(annotation))
    elif words:
        kind = Rows(*words)
    return click.Option([name], type=kind, required=field.required, help=help_text)


def flags(fields: Sequence[Field]) -> dict[str, tuple[str, str]]:
    """Return the words that are flags, --minimax for --objective minimax, each with what it sets.

    These are the words of choices between two that are not the default, where no parameter has
    their name.
    """
    taken = {field.name for field in fields}
    words = {other_word(field): field.name for field in fields}
    return {
        word.replace("-", "_"): (name, word)
        for word, name in words.items()
        if word is not None and word.replace("-", "_") not in taken
    }


def flag(name: str, parameter: str, word: str) -> click.Option:
    """Return the option of such a flag."""
    short = f"Short for {hyphened(parameter)} {word}."
    return click.Option([hyphened(name)], is_flag=True, help=short)


def with_flags(flags: dict[str, tuple[str, str]], given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as given, by flags or in words.

    Raises:
        ParameterError: if a flag says one thing and its parameter another.
    """
    values = {name: value for name, value in given.items() if name not in flags}
    for name, (parameter, word) in flags.items():
        if not given[name]:
            continue
        if values[parameter] not in (None, word):
            raise ParameterError(
                f"{parameter} is {values[parameter]!r} and {hyphened(name)} is given, which is "
                f"short for {word!r}; leave one out."
            )
        values[parameter] = word
    return values


def as_options(sentence: str, names: Sequence[str]) -> str:
    """Return a sentence of the library with arguments, rule='ladder', as options, --rule ladder."""

    def option(found: re.Match[str]) -> str:
        if found[1] not in names:
            return found[0]
        return f"{hyphened(found[1])} {found[3]}" if found[2] else hyphened(found[1])

    return _ARGUMENT.sub(option, sentence)


def missing_option(error: ParameterError, given: Mapping[str, object]) -> ParameterError:
    """Return the error for an option that was not typed, where the library refuses its default.

    Args:
        error: what the library said.
        given: the options of the command; None for one that was not typed.
    """
    found = _DEFAULT.fullmatch(str(error))
    if found is None or given.get(found[1], "") is not None:
        return error
    return ParameterError(f"Missing option {hyphened(found[1])!r}: {found[2]}")


def _help(field: Field) -> str:
    """Return what the docstring says, with the words of a choice and the default."""
    about = field.about.replace("`", "")
    if re.match(r"[a-z]{2,}[ ,:]", about):
        # The paper's letters stay as they are.
        about = f"{about[0].upper()}{about[1:]}"
    annotation = field.annotation.removesuffix(" | None")
    if annotation.startswith("Literal["):
        missing = [word for word in choices(annotation) if word not in about]
        about += f" One of {', '.join(choices(annotation))}." if missing else ""
    if annotation == "bool" or field.default in (None, (), ""):
        return about
    return f"{about}  [{text_of(field.default)}]"


def _name(param: click.Parameter | None) -> str:
    return "value" if param is None else str(param.name)


def _numbers(words: Sequence[str]) -> list[int | float] | None:
    """Return numbers of words; None if one is not, or there is none."""
    try:
        return [number(word) for word in words] or None
    except ValueError:
        return None


def _listed(text: str, name: str) -> Any:  # noqa: ANN401
    """Return the lists of a JSON text."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise ParameterError(f"{name} is {shown(text)}; {error}.") from None


def _in_file(text: str, name: str, words: Sequence[str] = ()) -> list[list[int | float]]:
    """Return the rows of the file that a text names, which is none of some words.

    Losses are whole numbers as a rule: a first line 0,1,2 are numbers here, no names of columns.
    """
    path = Path(text)
    try:
        rows = read_rows(path)
        if path.suffix.lower() not in TABLES or len(set(map(len, rows))) == 1:
            return rows
        return _table_in(path)
    except ParameterError as error:
        why = str(error).partition("; ")[2]
    try:
        if path.suffix.lower() in TABLES:
            return _table_in(path)
    except ParameterError as error:
        why = str(error).partition("; ")[2] or str(error)
    named = f"one of {', '.join(words)}, " if words else ""
    raise ParameterError(
        f"{name} is {shown(text)}; it must be {named}numbers such as 0.2,0.8, rows of them such as "
        f"0.2:0.8,0.5:0.5, or a file: {why}"
    )


def _table_in(path: Path) -> list[list[int | float]]:
    """Return the rows of a file of a table, as `dpopt.certify` reads it.

    Raises:
        ParameterError: if it is none, or its inputs have names whose order nobody said.
    """
    from dpopt.kernel.certify import given_table

    found = given_table(path)
    if not found.ordered:
        raise ParameterError(
            f"path is {str(path)!r}; its inputs have names, whose order is not known: number them "
            "0, 1, ..."
        )
    return found.table.tolist()
