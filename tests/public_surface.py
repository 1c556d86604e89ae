"""The public surface as a text: ``python -m tests.public_surface`` writes public_surface.txt.

It is what docs/promise.md promises: the names in `dir(dpopt)` and those that its modules list, with
parameters, defaults and public members, and the commands with their options. Of a setting it is the
fields: its other members are for those who add mechanisms.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import click

import dpopt
from docs.building.names import public_names
from dpopt.cli.group import loaded

KEPT = Path(__file__).with_name("public_surface.txt")


def public_members(cls: type) -> dict[str, Any]:
    """What a class defines itself: methods, properties and class methods without underscore."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith("_")
        and name not in getattr(cls, "__dataclass_fields__", ())
        and (
            isinstance(value, property | cached_property | classmethod | staticmethod)
            or inspect.isfunction(value)
        )
    }


def parameters(function: Callable[..., Any]) -> str:
    """The public parameters of a call with their defaults; the reference says of which types."""
    given = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls") and not name.startswith("_")
    ]
    return str(inspect.Signature(given))


def members(cls: type) -> Iterator[str]:
    """Yield what a class and its bases of this package offer, except its fields."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("dpopt")]
    for name in sorted({name for base in bases for name in public_members(base)}):
        value = inspect.getattr_static(cls, name)
        function = getattr(value, "__func__", value)
        yield f".{name}{parameters(function) if inspect.isfunction(function) else ''}"


def described(value: Any) -> list[str]:
    """What follows a public name, and each of its members."""
    if inspect.isfunction(value):
        return [parameters(value)]
    if not inspect.isclass(value):
        return [""]
    if issubclass(value, Exception):
        return [f"({value.__bases__[0].__name__})"]
    if issubclass(value, str):
        return ["", *(f".{name}" for name in vars(value) if name.isupper())]
    called = not (inspect.isabstract(value) or getattr(value, "_is_protocol", False))
    built = parameters(value) if called else ""
    return [built] if issubclass(value, dpopt.Setting) else [built, *members(value)]


def names() -> Iterator[tuple[str, Any]]:
    """Yield each public name with what it is: those of the package, then those of its modules."""
    top = {name: getattr(dpopt, name) for name in dir(dpopt)}
    yield from ((f"dpopt.{n}", value) for n, value in top.items() if not inspect.ismodule(value))
    for module in filter(inspect.ismodule, top.values()):
        # What an interface needs besides may not be installed.
        if module is not dpopt.interop:
            for name in sorted(public_names(module)):
                yield f"{module.__name__}.{name}", getattr(module, name)


def surface() -> str:
    """The whole text: a line for each name or member, and for each command."""
    lines, seen = list[str](), dict[int, str]()
    for name, value in names():
        first = seen.setdefault(id(value), name)
        lines += (
            [name + end for end in described(value)] if first == name else [f"{name} = {first}"]
        )
    for name, command in sorted(loaded().commands.items()):
        given = command.get_params(click.Context(command))
        shown = [
            option.opts[-1] if option.opts[-1][0] == "-" else option.human_readable_name
            for option in given
        ]
        lines.append(" ".join(["dpopt", name, *shown]))
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    KEPT.write_text(surface(), encoding="utf-8", newline="\n")
