"""A setting's fields as texts: what a page's controls hold, and what a command line is given."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, cast

from dpopt._errors import ParameterError
from dpopt._kinds import arguments, choices, parted, text_of
from dpopt._numbers import typed_rational
from dpopt._types import Json
from dpopt.design import Question
from dpopt.files import parse_json

_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_LARGEST_COUNTED = 50
_LONGEST_LINE = 60


@dataclass(frozen=True)
class Field:
    """A field of a kind of settings.

    Attributes:
        name: of the field.
        annotation: its type, as the source has it.
        says: what the class's docstring says of it.
        default: its value if none is given; MISSING if one must be.
        choices: what a ``Literal`` allows, else empty.
    """

    name: str
    annotation: str
    says: str
    default: object
    choices: tuple[str, ...]

    @property
    def base(self) -> str:
        """The type, None apart and the words that are allowed beside it."""
        return parted(self.annotation)[0]

    def read(self, text: str) -> object:
        """Return the value that a text stands for; a text that is none is left to the setting."""
        if not text.strip() and self.default is None:
            return None
        try:
            if text.startswith("["):
                return parse_json(text)
            if self.base in _READERS and text not in parted(self.annotation)[1]:
                return _READERS[self.base](text)
        except (ValueError, ArithmeticError, KeyError):
            return text
        return text


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _numbers(text: str) -> list[int | float]:
    return [_number(word) for word in text.replace(",", " ").split()]


def _table(text: str) -> list[Any]:
    """Return rows such as 1:2,3:4; without a colon, a row of numbers."""
    if ":" not in text:
        return _numbers(text)
    return [_numbers(row.replace(":", " ")) for row in text.split(",")]


_READERS: dict[str, Any] = {
    "int": int,
    "float": float,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "Fraction": typed_rational,
    "Numbers": _numbers,
    "Table": _table,
}


def fields_of(kind: type[Question[Any]]) -> tuple[Field, ...]:
    """Return the fields of a kind in their order."""
    says = dict(_ATTRIBUTE.findall(_part(kind, after="Attributes:\n")))
    return tuple(
        Field(
            known.name,
            str(known.type),
            " ".join(says.get(known.name, "").split()),
            known.default if known.default_factory is MISSING else known.default_factory(),
            choices(str(known.type)),
        )
        for known in fields(cast(Any, kind))
        if known.init
    )


def summary_of(kind: type[Question[Any]]) -> tuple[str, str]:
    """Return the first paragraph of a kind's docstring, and the others before its attributes."""
    first, _, rest = _part(kind, before="Attributes:\n").partition("\n\n")
    return " ".join(first.split()), inspect.cleandoc(rest)


def _part(kind: type, *, before: str = "", after: str = "") -> str:
    text = inspect.cleandoc(kind.__doc__ or "")
    return text.partition(before)[0] if before else text.partition(after)[2]


def texts_of(setting: Question[Any]) -> dict[str, str]:
    """Return a setting's fields as texts, from which `setting_of` makes it again.

    What is left out by default is empty, whatever the setting puts in its place.
    """
    stated = given(setting)
    left_out = {
        field.name
        for field in fields_of(type(setting))
        if field.default is None and field.name not in stated
    }
    plain = setting.to_dict()
    return {name: "" if name in left_out else _text(value) for name, value in plain.items()}


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else text_of(value)


def setting_of(kind: type[Question[Any]], texts: Mapping[str, str]) -> Question[Any]:
    """Return the setting that texts stand for.

    Raises:
        ParameterError: if one stands for nothing that the setting takes.
    """
    values = {field.name: field.read(texts[field.name]) for field in fields_of(kind)}
    return kind(**values)


def given(setting: Question[Any]) -> Json:
    """Return the fields that are not at their defaults, as plain values."""
    plain = setting.to_dict()
    return {
        field.name: plain[field.name]
        for field in fields_of(type(setting))
        if field.default is MISSING or not _is_default(setting, field, plain)
    }


def _is_default(setting: Question[Any], field: Field, plain: Json) -> bool:
    """Whether the setting is the same without the field, which it may fill in by itself."""
    try:
        return replace(cast(Any, setting), **{field.name: field.default}).to_dict() == plain
    except ParameterError:
        return False


def command_of(setting: Question[Any]) -> str:
    """Return the command line that answers the setting."""
    return shlex.join(["dpopt", setting.kind, *arguments(given(setting))])


def code_of(setting: Question[Any]) -> str:
    """Return the lines of Python that answer the setting."""
    kind = type(setting)
    arguments = [f"{name}={_source(value)}" for name, value in given(setting).items()]
    listed = ", ".join(arguments)
    if len(listed) > _LONGEST_LINE:
        listed = "\n" + "".join(f"    {argument},\n" for argument in arguments)
    return (
        f"import dpopt\nfrom {_home(kind)} import {kind.__name__}\n\n"
        f"setting = {kind.__name__}({listed})\n"
        "answer = dpopt.design(setting)\n"
        "print(answer)\nprint(answer.value, answer.bound, answer.gap)\n"
        "print(setting.columns(answer.units))\naxes = answer.plot()"
    )


def _source(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _home(kind: type) -> str:
    """Return the module that users import the class from: the package, if it shows it."""
    package = ".".join(kind.__module__.split(".")[:2])
    shown = getattr(sys.modules.get(package), kind.__name__, None) is kind
    return package if shown else kind.__module__


def near(setting: Question[Any], name: str) -> list[int] | list[float]:
    """Return the numbers around that of a field which the setting would take instead.

    Args:
        setting: the others of whose fields stay.
        name: of a field that is an int or a float, or is left out.

    Returns:
        The numbers in ascending order: whole numbers up to four times as large; of larger ones
        and of others ten a decade, up to a hundred times as small or as large. None around None.
    """
    value = getattr(setting, name)
    if value is None:
        return []
    if isinstance(value, int):
        if abs(value) <= _LARGEST_COUNTED:
            reach = 4 * max(abs(value), 5)
            return _taken(setting, name, range(-reach if value < 0 else 0, reach + 1))
        return _taken(setting, name, {round(number) for number in _around(value)} | {value})
    return _taken(setting, name, {*_around(value), value})


def _around(value: float) -> Iterable[float]:
    """Yield round numbers two decades around a value; around 0, the powers of ten below it."""
    if value == 0.0:
        yield from (10.0**power for power in range(-12, -1))
        return
    middle = int(f"{abs(value):e}".partition("e")[2])
    for power in range(middle - 2, middle + 3):
        yield from (float(f"{step}e{power}") * (1 if value > 0 else -1) for step in _STEPS)


def _taken(setting: Question[Any], name: str, numbers: Iterable[Any]) -> list[Any]:
    found = []
    for number in sorted(numbers):
        try:
            replace(cast(Any, setting), **{name: number})
        except ParameterError:
            continue
        found.append(number)
    return found
