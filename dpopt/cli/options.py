"""Options from annotations: how a parameter's text is read, written, and completed by Tab.

What is wrong with a value, the library says. Nothing here loads one before a value is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from dpopt._errors import ParameterError
from dpopt._kinds import Described, Field, choices, described, hyphened, parted, text_of
from dpopt._numbers import shown, typed_rational
from dpopt.files import TABLES, number, parse_json, read_rows


class Words(click.ParamType):
    """A text, or what is read from it; Tab offers some words and, where one may stand, files.

    Attributes:
        read: returns the value of a text that is none of the words, for a parameter.
        words: what is offered.
        files: whether the text may be the name of a file.
    """

    def __init__(
        self,
        name: str = "text",
        read: Callable[[Any, str], Any] | None = None,
        words: tuple[str, ...] = (),
        files: bool = False,
    ) -> None:
        self.name, self.read, self.words, self.files = name, read, words, files

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401
        """Return what was read, or a word as it is."""
        del ctx
        return value if self.read is None or value in self.words else self.read(param, value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the words that begin as what was typed does, or leave it to the shell's files."""
        del ctx, param
        begun = [CompletionItem(word) for word in self.words if word.startswith(incomplete)]
        return [*begun, CompletionItem(incomplete, type="file")] if self.files else begun


def _rows(param: click.Parameter, text: str) -> Any:  # noqa: ANN401
    """Return rows of numbers such as 0.2:0.8,0.5:0.5, those of a file, or lists as JSON.

    Whole numbers are integers. Rows of one number each, without a colon, are a list of numbers.
    """
    if text.startswith("["):
        return _listed(param, text)
    try:
        rows = [[number(word) for word in row.split(":")] for row in text.split(",")]
    except ValueError:
        return _in_file(param, text)
    return rows if ":" in text else [row[0] for row in rows]


def _row(param: click.Parameter, text: str) -> Any:  # noqa: ANN401
    """Return a list of numbers such as 0.2,0.8 or 0.2 0.8, or all those of a file."""
    try:
        return [number(word) for word in text.replace(",", " ").split()] or _in_file(param, text)
    except ValueError:
        rows = _rows(param, text)
    return rows if text.startswith("[") else [number for row in rows for number in row]


def _blocks(param: click.Parameter, text: str) -> Any:  # noqa: ANN401
    """Return a user's own rows over a kernel, of a JSON file or as `text_of` writes them."""
    if text.startswith("["):
        return _listed(param, text)
    from dpopt.kernel import read_constraints

    return read_constraints(text)


def _exact(param: click.Parameter, text: str) -> Fraction:
    """Return a number that is read exactly: 12, 0.25, 1e-9 or 1/3."""
    try:
        return typed_rational(text.strip())
    except ValueError:
        raise ParameterError(
            f"{param.name} is {shown(text)}; it must be a number or a fraction such as 1/3."
        ) from None


File = Path
"""In the signature of a verb, a path that is an argument and no option."""

TextOrFile = str
"""Likewise, a text that may be the name of a file: Tab offers files."""

Flag = bool
"""Likewise, an option that is there or not."""

# How a parameter is read, by the name of its annotation.
PATH = click.Path(path_type=Path)
_TYPES: dict[str, click.ParamType] = {
    "int": click.INT,
    "float": click.FLOAT,
    "Path": PATH,
    "Fraction": Words("number", _exact),
    "Numbers": Words("numbers", _row, files=True),
    "PublicLike": Words("numbers", _row, files=True),
    "RowsOfNumbers": Words("rows", _rows, files=True),
    "Constraints": Words("json", _blocks, files=True),
    "TextOrFile": Words(files=True),
}


def command(*more: click.Parameter) -> Callable[[Callable[..., None]], click.Command]:
    """Return what makes a command of a function: its parameters, then some more options."""

    def made(function: Callable[..., None]) -> click.Command:
        about = described(function)

        def callback(**given: Any) -> None:  # noqa: ANN401
            # What was not typed has the default of the function.
            function(**{name: value for name, value in given.items() if value is not None})

        options = [*parameters(about.fields), *more]
        short = about.about.partition(".")[0]
        words, program = help_of(about)
        return click.Command(about.name, None, callback, options, words, program, short_help=short)

    return made


def help_of(about: Described) -> tuple[str, str]:
    """Return a docstring for click: what stands before the options, and after them.

    Of what displays a program the first paragraph and the example come first, the mathematics last,
    with its lines kept.
    """
    paragraphs = [
        f"\b\n{text}" if "\n  " in f"\n{text}" else text
        for text in about.about.replace("`", "").split("\n\n")
    ]
    first = 1 if any(text.startswith("\b") for text in paragraphs) else len(paragraphs)
    example = f"\b\nExample: {about.example}"
    return "\n\n".join([*paragraphs[:first], example]), "\n\n".join(paragraphs[first:])


def parameters(fields: Sequence[Field]) -> list[click.Parameter]:
    """Return the arguments and options of a command's parameters."""
    options = list[click.Parameter]()
    for field in fields:
        name, about = hyphened(field.name), _help(field)
        annotation, words = parted(field.annotation)
        if annotation == "File":
            options.append(click.Argument([field.name], type=PATH, required=field.required))
        elif annotation == "Flag":
            options.append(click.Option([name], is_flag=True, help=about))
        elif annotation == "bool":
            options.append(click.Option([f"{name}/--no-{name[2:]}"], default=None, help=about))
        else:
            kind = _TYPES.get(annotation, Words(words=choices(annotation)))
            if words:
                kind = Words(kind.name, _reader(kind), words, getattr(kind, "files", False))
            options.append(click.Option([name], type=kind, required=field.required, help=about))
    return options


def _reader(kind: click.ParamType) -> Callable[[Any, str], Any] | None:
    """Return how a type reads a text that is none of the words beside it."""
    if isinstance(kind, Words):
        return kind.read
    return lambda param, text: kind.convert(text, param, None)


def _help(field: Field) -> str:
    """Return what the docstring says, with the words of a choice and the default."""
    about = field.about.replace("`", "")
    if re.match(r"[a-z]{2,}[ ,:]", about):
        # The paper's categories stay as they are.
        about = f"{about[0].upper()}{about[1:]}"
    words = choices(parted(field.annotation)[0])
    if any(word not in about for word in words):
        about += f" One of {', '.join(words)}."
    if field.annotation.startswith(("bool", "Flag")) or field.default in (None, (), ""):
        return about
    return f"{about}  [{text_of(field.default)}]"


def _listed(param: click.Parameter, text: str) -> Any:  # noqa: ANN401
    """Return the lists of a JSON text."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise ParameterError(f"{param.name} is {shown(text)}; {error}.") from None


def _in_file(param: click.Parameter, text: str) -> list[list[int | float]]:
    """Return the rows of the file that a text names.

    Losses are whole numbers as a rule: a first line 0,1,2 are numbers here, no names of columns.
    """
    path = Path(text)
    readers = [read_rows, _table_in] if path.suffix.lower() in TABLES else [read_rows]
    why = ""
    for reader in readers:
        try:
            rows = reader(path)
            if reader is readers[-1] or len(set(map(len, rows))) == 1:
                return rows
        except ParameterError as error:
            why = str(error).partition("; ")[2] or str(error)
    words = cast(Words, param.type).words
    named = f"one of {', '.join(words)}, " if words else ""
    raise ParameterError(
        f"{param.name} is {shown(text)}; it must be {named}numbers such as 0.2,0.8, rows of "
        f"them such as 0.2:0.8,0.5:0.5, or a file: {why}"
    )


def _table_in(path: Path) -> list[list[int | float]]:
    """Return the rows of a file of a table, as `dpopt.certify` reads it."""
    from dpopt.kernel.certify import given_table

    table = given_table(path)
    if not table.ordered:
        raise ParameterError(
            f"path is {str(path)!r}; its inputs have names, whose order is not known: number them "
            "0, 1, ..."
        )
    return table.table.tolist()
