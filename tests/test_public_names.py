"""Every public name says what it is, every field and every parameter too.

A function has an "Args:" section that names each of its parameters, in order; without one it has at
most three, which its sentence explains, or refers to the function that has the same ("see `x`").
The functions of `dpopt.verify.KINDS` have the same parameters, which are explained there. Those
that they use are read with the program that they display, and may have one parameter more.
A dataclass names its fields under "Attributes:", itself or in the base class that it has them from;
in `dpopt.verify`, which is read as one file, a comment stands beside a field or above it.

What is public is as tests/public_surface.txt has it, so that no change of it is unseen.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from docs.building.names import constant_docstring, public_modules, public_names
from dpopt import verify
from tests.public_surface import KEPT, public_members, surface

MODULES = {name: importlib.import_module(name) for name in public_modules()}


def public_objects() -> dict[str, Any]:
    """Every public function and class by its name, each once, those of modules first."""
    found: dict[int, tuple[str, Any]] = {}
    first, *modules = MODULES
    for name in (*modules, first):
        for public in public_names(MODULES[name]):
            value = getattr(MODULES[name], public)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(id(value), (f"{name}.{public}", value))
    return dict(sorted(found.values(), key=lambda pair: pair[0]))


OBJECTS = public_objects()


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions but those of a verifier's kinds, and the methods of public classes."""
    for name, value in OBJECTS.items():
        if inspect.isfunction(value) and value not in verify.KINDS.values():
            yield name, value
        for member, inner in public_members(value).items() if inspect.isclass(value) else ():
            function = getattr(inner, "__func__", inner)
            if inspect.isfunction(function) and function.__module__.startswith("dpopt"):
                yield f"{name}.{member}", function


def section(text: str, title: str) -> list[str] | None:
    """The names in a section of a google docstring; None if there is no such section."""
    lines = inspect.cleandoc(text).splitlines()
    if f"{title}:" not in lines:
        return None
    names: list[str] = []
    for line in lines[lines.index(f"{title}:") + 1 :]:
        if line and not line.startswith(" "):
            break
        entry = re.match(r" {4}([\w*]+(?:, [\w*]+)*): ", f"{line} ")
        names += entry[1].replace("*", "").split(", ") if entry else []
    return names


def complaint(function: Callable[..., Any]) -> str | None:
    """What a function's docstring lacks; None if nothing."""
    text, names = function.__doc__ or "", list(inspect.signature(function).parameters)
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    listed = section(text, "Args")
    if listed is not None:
        return None if listed == names else f"Args names {listed}, the function takes {names}"
    refers = re.search(r"\b(?:see|See|what|those of|as) `[\w.]+`", " ".join(text.split()))
    few = 3 + (function.__module__ == verify.__name__)
    return None if len(names) <= few or refers else f"no Args for {names}"


def test_the_public_surface_is_as_it_was() -> None:
    was, now = KEPT.read_text(encoding="utf-8").splitlines(), surface().splitlines()
    assert now == was, "if this is meant: python -m tests.public_surface, and CHANGELOG.md says so"


def without_docstring() -> Iterator[str]:
    """Yield what has no sentence of its own; what dataclass writes by itself is the signature."""
    for name, value in OBJECTS.items():
        own = vars(value).get("__doc__") if inspect.isclass(value) else None
        text = inspect.cleandoc((own or value.__doc__) or "")
        signature = text.startswith(f"{value.__name__}(")
        if signature or not re.search(r"[.:?]$", text.split("\n\n")[0]):
            yield name
        if inspect.isclass(value):
            members = public_members(value).items()
            yield from (f"{name}.{m}" for m, each in members if not (each.__doc__ or "").strip())


def commented(cls: type) -> set[str]:
    """The fields of a class beside which, or in the line above, its source has a comment."""
    lines = ["", *textwrap.dedent(inspect.getsource(cls)).splitlines()]
    fields = [re.match(r" {4}(\w+): ", line) for line in lines]
    return {
        field[1]
        for field, line, above in zip(fields[1:], lines[1:], lines, strict=False)
        if field and ("  # " in line or above.startswith("    # "))
    }


def unexplained_fields() -> Iterator[str]:
    for name, cls in OBJECTS.items():
        if not inspect.isclass(cls) or not dataclasses.is_dataclass(cls):
            continue
        texts = [base.__dict__.get("__doc__") or "" for base in cls.__mro__]
        explained = {field for text in texts for field in section(text, "Attributes") or []}
        explained |= commented(cls) if cls.__module__ == verify.__name__ else set()
        fields = [field.name for field in dataclasses.fields(cls) if field.name[0] != "_"]
        yield from (f"{name}.{field}" for field in fields if field not in explained)


def unexplained_constants() -> Iterator[str]:
    for name, module in MODULES.items():
        for public in public_names(module):
            value = getattr(module, public)
            named = callable(value) or inspect.ismodule(value) or public.startswith("__")
            if not named and not constant_docstring(module, public):
                yield f"{name}.{public}"


def test_all_that_is_public_is_explained() -> None:
    assert len(OBJECTS) > 200
    assert not list(without_docstring())
    assert not list(unexplained_fields())
    assert not list(unexplained_constants())
    assert not {name: lack for name, f in public_functions() if (lack := complaint(f))}
