"""The kinds of the package by name, and what a class or a function says of its parameters.

Names and first sentences stand here once more, so that the command line lists them without an
import; a kind is imported once its command is asked for.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple

from dpopt._errors import ParameterError
from dpopt._numbers import digits

VERBS = ("verify", "certify", "release", "mode", "sample", "ledger", "cite", "doctor")
"""The commands that are no kinds, in the order of the help."""

KINDS: dict[str, tuple[str, str]] = {
    "best-sampler": (
        "dpopt.roo.optimal",
        "The best private sampler of one category from n records",
    ),
    "kernel": (
        "dpopt.kernel.setting",
        "The best private kernel K[x, y] = Pr[output y | input x] for a finite set of inputs",
    ),
    "majority": (
        "dpopt.majority.setting",
        "The best private majority vote of K voters, each of whom is private (DaRRM)",
    ),
    "mollifier": (
        "dpopt.public_prior.mollifier",
        "The distribution nearest to a user's in the relative mollifier of a public one",
    ),
    "multiclass": (
        "dpopt.multiclass.setting",
        "The best private plurality vote over C classes of K voters who are private themselves",
    ),
    "noise": (
        "dpopt.noise.setting",
        "The noise Z for integers, such as counts, that has the least mean loss",
    ),
    "plurality": (
        "dpopt.plurality.setting",
        "The best private choice of the most common class of K records, or of K non-private votes",
    ),
    "population": (
        "dpopt.public_prior.setting",
        "The kernel nearest to given users on average, of those that keep a public distribution",
    ),
    "public-prior": (
        "dpopt.public_prior.setting",
        "The minimax optimal locally private kernel that keeps a public distribution q",
    ),
    "reveal-or-obscure": (
        "dpopt.roo.minimum",
        "A random record's category or, with probability q_m, a uniformly random category (DS-ROO)",
    ),
    "smooth-floor": (
        "dpopt.roo.floor",
        "One category y with probability proportional to w(c_y), its count with a smooth floor",
    ),
    "workload": (
        "dpopt.local.setting",
        "The locally private mechanism with unbiased linear estimates of least total variance",
    ),
}
"""The kinds of the package, each with its module and its docstring's first sentence."""


class Field(NamedTuple):
    """A parameter of a kind, or of a verb: its type as written, and what the docstring says."""

    name: str
    annotation: str
    required: bool
    default: Any
    about: str


class Described(NamedTuple):
    """A kind, or a verb: its command, its docstring up to the first section, a line that works."""

    name: str
    about: str
    fields: tuple[Field, ...]
    example: str


def described(of: Callable[..., Any]) -> Described:
    """Return what a class of settings, or the function of a verb, says of itself.

    Its docstring explains the parameters under "Attributes:", or "Args:".
    """
    # The description, then each section with its name before it.
    about, *named = re.split(r"^([A-Z]\w+):$", inspect.getdoc(of) or "", flags=re.MULTILINE)
    sections = dict(zip(named[::2], named[1::2], strict=True))
    helps = _entries(sections.get("Attributes") or sections.get("Args", ""))
    name = str(getattr(of, "kind", of.__name__))
    parameters = [
        Field(
            parameter.name,
            str(parameter.annotation),
            parameter.default is parameter.empty,
            None if parameter.default is parameter.empty else parameter.default,
            helps.get(parameter.name, ""),
        )
        for parameter in inspect.signature(of).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    lines = map(str.strip, sections.get("Example", "").splitlines())
    example = next((line for line in lines if line.startswith(f"dpopt {name}")), "")
    if not example and hasattr(of, "example"):
        # The command line of a kind's example, without what it is the same without.
        kind: Any = of
        setting = kind.example()
        named_fields = [f for f in fields(kind) if f.init and not is_default(setting, f)]
        plain = setting.to_dict()
        stated = {field.name: plain[field.name] for field in named_fields}
        example = shlex.join(["dpopt", kind.kind, *arguments(stated)])
    return Described(name, about.strip(), tuple(parameters), example)


def is_default(setting: Any, field: Any) -> bool:  # noqa: ANN401
    """Whether a setting is the same without a field, which it may fill in by itself."""
    if field.default is MISSING:
        return False
    try:
        return replace(setting, **{field.name: field.default}).to_dict() == setting.to_dict()
    except ParameterError:
        return False


def choices(annotation: str) -> tuple[str, ...]:
    """Return the words of an annotation ``Literal["a", "b"]``; none of any other."""
    if not annotation.startswith("Literal["):
        return ()
    return tuple(map(str, ast.literal_eval(annotation.removeprefix("Literal").strip())))


def parted(annotation: str) -> tuple[str, tuple[str, ...]]:
    """Return the type of an annotation without None, and the words that are allowed beside it.

    Of ``RowsOfNumbers | Literal["a", "b"] | None`` they are ``RowsOfNumbers``, and a and b.
    """
    base, mark, words = annotation.removesuffix(" | None").partition(" | Literal[")
    return base, choices(f"Literal[{words}") if mark else ()


def hyphened(name: str) -> str:
    """Return the option of a parameter's name."""
    return f"--{name.replace('_', '-')}"


def arguments(values: Mapping[str, Any]) -> list[str]:
    """Return the command line that gives parameters these plain values; None is left out."""
    words: list[str] = []
    for name, value in values.items():
        option = hyphened(name)
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        elif value is not None:
            words += [option, text_of(value)]
    return words


def text_of(value: object) -> str:
    """Return a plain value as an option takes it.

    A list is written with commas, a list of lists with colons inside, a list of texts with
    semicolons; deeper ones are JSON.
    """
    if not isinstance(value, list | tuple):
        return digits(value) if isinstance(value, float) else str(value)
    if value and all(isinstance(entry, str) for entry in value):
        return ";".join(value)
    entries = [entry for row in value if isinstance(row, list | tuple) for entry in row]
    if any(isinstance(entry, list | tuple) for entry in entries):
        return json.dumps(value)
    return ",".join(
        ":".join(map(text_of, row)) if isinstance(row, list | tuple) else text_of(row)
        for row in value
    )


def _entries(section: str) -> dict[str, str]:
    """Return the entries ``name: text`` of a section; lines indented more go on with the text."""
    entries = re.finditer(r"^ {4}(\w+):((?:.*\n?)(?:\n| {5}.*\n?)*)", section, re.MULTILINE)
    return {match[1]: " ".join(match[2].split()) for match in entries}
