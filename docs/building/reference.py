"""The pages of the reference: one for each public module, its names in the order of their use."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from types import ModuleType

import dpopt
from docs.building.names import (
    all_modules,
    constant_docstring,
    home_of,
    public_modules,
    public_names,
)
from docs.building.text import plain_docstring
from dpopt._kinds import described

_FIRST_PAGES = ("dpopt.shape", "dpopt")
FIRST = (
    "design",
    "load",
    "kinds",
    "certify",
    "privacy_constraints",
    "solve",
    "sweep",
    "interact",
    "progress_bar",
    "reporting",
)
"""Functions of these two pages in the order in which a user meets them."""

_SECTIONS = (
    "To design",
    "Settings",
    "Designs",
    "Functions",
    "Classes",
    "Errors",
    "Constants",
)


def all_pages() -> Mapping[str, str]:
    """Return the reStructuredText of every page by the name of its file."""
    modules = {name: importlib.import_module(name) for name in public_modules()}
    pages = {f"{name}.rst": _module_page(module) for name, module in modules.items()}
    return {"index.rst": _index_page(tuple(modules)), **pages}


def _index_page(modules: tuple[str, ...]) -> str:
    homes = {".".join(kind.__module__.split(".")[:2]) for kind in dpopt.kinds()}
    papers = [name for name in modules if name in homes]
    interop = [name for name in modules if name.startswith("dpopt.interop")]
    rest = [name for name in modules if name not in (*_FIRST_PAGES, *papers, *interop)]
    groups = {
        "Design, prove, release": _FIRST_PAGES,
        "Mechanisms": papers,
        "Below them": rest,
        "Other libraries": interop,
    }
    lines = [*_title("Reference")]
    lines += [
        "Every public name, on the page of the module that a user imports it from. `dpopt.design`",
        "answers any setting; settings are on the page of `dpopt`. Commands have",
        ":doc:`a page of their own </commands>`; all names in one list: :ref:`genindex`.",
        "",
    ]
    for caption, names in groups.items():
        lines += [".. toctree::", "   :maxdepth: 1", f"   :caption: {caption}", ""]
        lines += [f"   {name}" for name in names] + [""]
    missing = [f"`{name}`" for name in all_modules() if name not in modules]
    if missing:
        lines += [f"Left out, as their libraries are not installed: {', '.join(missing)}.", ""]
    return "\n".join(lines)


def _module_page(module: ModuleType) -> str:
    name = module.__name__
    lines = [*_title(name), f".. automodule:: {name}", "   :no-index:", ""]
    lines += [f".. py:module:: {name}", ""]
    public = public_names(module)
    inner = [each for each in public if inspect.ismodule(getattr(module, each))]
    if inner:
        lines += ["Modules: " + ", ".join(f"`{name}.{each}`" for each in inner) + ".", ""]
    own = [each for each in public if each not in inner and home_of(module, each) == name]
    for section, title in enumerate(_SECTIONS):
        listed = sorted((e for e in own if _section(module, e) == section), key=_order)
        if listed:
            lines += [title, "-" * len(title), "", *_summary(module, listed)]
            for each in listed:
                lines += _entry(module, each)
    others = [each for each in public if each not in inner and each not in own]
    if others:
        lines += [*_title("Documented elsewhere", "-")]
        for each in others:
            lines += _pointer(each, home_of(module, each), getattr(module, each))
    return "\n".join([*lines, ""])


def _order(name: str) -> tuple[int, bool, str]:
    place = FIRST.index(name) if name in FIRST else len(FIRST)
    return place, not name.startswith("design"), name


def _section(module: ModuleType, name: str) -> int:
    """Return where a name stands: what designs first, constants last."""
    value = getattr(module, name)
    if inspect.isfunction(value):
        returned = set(re.findall(r"\w+", str(value.__annotations__.get("return", ""))))
        first = module.__name__ in _FIRST_PAGES or name.startswith("design")
        return 0 if first or returned & _designs() else 3
    if not inspect.isclass(value):
        return 6
    if issubclass(value, dpopt.Setting):
        return 1
    if issubclass(value, dpopt.Design):
        return 2
    return 5 if issubclass(value, Exception) else 4


@cache
def _designs() -> frozenset[str]:
    """Return the names of all public classes of designs."""
    modules = [importlib.import_module(name) for name in public_modules()]
    values = (getattr(module, name) for module in modules for name in public_names(module))
    return frozenset(
        value.__name__
        for value in values
        if inspect.isclass(value) and issubclass(value, dpopt.Design)
    )


def _summary(module: ModuleType, names: list[str]) -> list[str]:
    """Return a table of names with their first sentences; none for constants or a single name."""
    called = [name for name in names if callable(getattr(module, name))]
    if len(called) < 2:
        return []
    lines = [".. autosummary::", "   :nosignatures:", ""]
    return [*lines, *(f"   {name}" for name in called), ""]


def _entry(module: ModuleType, name: str) -> list[str]:
    value, full = getattr(module, name), f"{module.__name__}.{name}"
    if inspect.isclass(value):
        lines = [f".. autoclass:: {full}", "   :members:", *_options(value), ""]
        return [*lines, *_kind(value)]
    if inspect.isfunction(value):
        return [f".. autofunction:: {full}", ""]
    return list(_constant(module, name))


def _kind(cls: type) -> list[str]:
    """Return what follows a kind of settings: its command."""
    if cls not in dpopt.kinds():
        return []
    example = cls.example()
    return [
        f".. rubric:: dpopt {example.kind}",
        "",
        "Its example as a command (:doc:`/commands`)::",
        "",
        f"    {described(type(example)).example}",
        "",
    ]


def _options(cls: type) -> list[str]:
    """Return what a class's entry shows besides its documented members."""
    bases = [] if cls.__bases__ == (object,) else ["   :show-inheritance:"]
    return [*bases, "   :undoc-members:"] if issubclass(cls, Enum) else bases


def _pointer(name: str, home: str, value: object) -> list[str]:
    """Return an entry of the index for a name that another page documents."""
    kind = "class" if inspect.isclass(value) else "data"
    kind = "function" if inspect.isfunction(value) else kind
    return [f".. py:{kind}:: {name}", "", f"   See `{home}.{name}`.", ""]


def _constant(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    yield from ("", f".. py:data:: {name}")
    if isinstance(value, str | int | float | tuple):
        yield f"   :value: {value!r}"
    text = plain_docstring(constant_docstring(module, name))
    yield from ("", *(f"   {line}" for line in text.splitlines()), "")


def _title(text: str, line: str = "=") -> list[str]:
    return [text, line * len(text), ""]
