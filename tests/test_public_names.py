"""Every public name says what it is, every field and every parameter too.

A function has an "Args:" section that names each of its parameters, in order; without one it has at
most three, which its sentence explains, or refers to the function that has the same ("see `x`").
The functions of `dpopt.verify.KINDS` have the same parameters, which are explained there. Those
that they use are read with the program that they display, and may have one parameter more.
A dataclass names its fields under "Attributes:", itself or in the base class that it has them from.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any

import pytest

from docs.building.names import (
    all_modules,
    constant_docstring,
    public_modules,
    public_names,
)
from dpopt import verify

MODULES = public_modules()
FEW = 3


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def public_objects() -> dict[str, Any]:
    """Every public function and class by its name, each once."""
    found: dict[int, tuple[str, Any]] = {}
    for name in MODULES[1:] + MODULES[:1]:
        module = load(name)
        for public in public_names(module):
            value = getattr(module, public)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(id(value), (f"{name}.{public}", value))
    return dict(sorted(found.values(), key=lambda pair: pair[0]))


OBJECTS = public_objects()
CLASSES = {name: value for name, value in OBJECTS.items() if inspect.isclass(value)}
DATACLASSES: dict[str, Any] = {
    name: cls for name, cls in CLASSES.items() if dataclasses.is_dataclass(cls)
}


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


def public_functions() -> dict[str, Callable[..., Any]]:
    """Public functions, and the methods of public classes."""
    found = {name: value for name, value in OBJECTS.items() if inspect.isfunction(value)}
    for name, cls in CLASSES.items():
        for member, value in public_members(cls).items():
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function) and function.__module__.startswith("dpopt"):
                found[f"{name}.{member}"] = function
    return found


FUNCTIONS = {
    name: function
    for name, function in public_functions().items()
    if function not in verify.KINDS.values()
}


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


def parameters(function: Callable[..., Any]) -> list[str]:
    names = list(inspect.signature(function).parameters)
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def complaint(function: Callable[..., Any]) -> str | None:
    """What a function's docstring lacks; None if nothing."""
    text, names = function.__doc__ or "", parameters(function)
    listed = section(text, "Args")
    if listed is not None:
        return None if listed == names else f"Args names {listed}, the function takes {names}"
    refers = re.search(r"\b(?:see|See|what|those of|as) `[\w.]+`", " ".join(text.split()))
    few = FEW + (function.__module__ == verify.__name__)
    return None if len(names) <= few or refers else f"no Args for {names}"


def test_the_package_has_all_its_modules() -> None:
    assert {"dpopt", "dpopt.majority", "dpopt.roo", "dpopt.public_prior"} <= set(MODULES)
    assert {"dpopt.kernel", "dpopt.smoothed", "dpopt.privacy"} <= set(MODULES)
    assert {"dpopt.prob", "dpopt.lp", "dpopt.interop"} <= set(MODULES)
    left_out = set(all_modules()) - set(MODULES)
    assert all(name.startswith("dpopt.interop.") for name in left_out)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_lists_its_names_once_and_in_order(name: str) -> None:
    module = load(name)
    assert module.__doc__
    names = list(getattr(module, "__all__", []))
    assert len(set(names)) == len(names)
    assert set(names) <= set(dir(module))


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_name_has_a_docstring(name: str) -> None:
    own = OBJECTS[name].__dict__.get("__doc__") if inspect.isclass(OBJECTS[name]) else None
    text = OBJECTS[name].__doc__ if own is None else own
    assert text
    # What dataclass writes by itself is the signature, not a sentence.
    assert not text.startswith(f"{OBJECTS[name].__name__}(")
    assert re.search(r"[.:?]$", inspect.cleandoc(text).split("\n\n")[0])


@pytest.mark.parametrize("name", CLASSES)
def test_a_member_has_a_docstring(name: str) -> None:
    for member, value in public_members(CLASSES[name]).items():
        assert inspect.cleandoc(value.__doc__ or ""), f"{name}.{member}"


@pytest.mark.parametrize("name", DATACLASSES)
def test_a_field_is_explained(name: str) -> None:
    cls = DATACLASSES[name]
    explained = {
        field
        for base in cls.__mro__
        for field in section(base.__dict__.get("__doc__") or "", "Attributes") or []
    }
    fields = {field.name for field in dataclasses.fields(cls) if field.name[0] != "_"}
    assert fields <= explained


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_parameter_is_explained(name: str) -> None:
    assert complaint(FUNCTIONS[name]) is None


@pytest.mark.parametrize("name", MODULES)
def test_a_constant_is_explained(name: str) -> None:
    module = load(name)
    for public in public_names(module):
        value = getattr(module, public)
        named = callable(value) or inspect.ismodule(value)
        if not named and not public.startswith("__"):
            assert constant_docstring(module, public), public


def test_the_rule_notices_what_is_missing() -> None:
    def half(alpha: int, beta: int) -> int:
        """Return a number.

        Args:
            alpha: the first.
        """
        return alpha + beta

    def many(a: int, b: int, c: int, d: int) -> int:
        """Return a number."""
        return a + b + c + d

    def told(a: int, b: int, c: int, d: int) -> int:
        """Return a number; see `many` for the arguments."""
        return a + b + c + d

    assert "['alpha']" in str(complaint(half))
    assert "no Args" in str(complaint(many))
    assert complaint(told) is None
    assert section(half.__doc__ or "", "Attributes") is None
