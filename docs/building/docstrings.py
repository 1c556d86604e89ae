"""Docstrings as they are: formulas are no markup, and types read as the source writes them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from sphinx.util.inspect import (
    TypeAliasForwardRef,
    stringify_signature,
)

from docs.building.names import home_of, public_modules, public_names
from docs.building.text import plain_docstring

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# For properties; elsewhere types are shown as they stand in the source (`_as_written`).
TYPE_ALIASES = {
    name: name for name in ("Vector", "Matrix", "IntVector", "Json", "GraphLike", "Names")
}
TypeAliasForwardRef.__repr__ = lambda self: self.name

# Napoleon takes the first line of a property for "type: description"; it does not know this colon.
_COLON = "\N{MODIFIER LETTER COLON}"
_VALUES = ("property", "attribute", "data")


def _before_napoleon(
    _app: Sphinx, what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    lines[:] = plain_docstring("\n".join(lines)).split("\n")
    if what in _VALUES:
        lines[0] = lines[0].replace(":", _COLON)


def _after_napoleon(
    _app: Sphinx, _what: str, _name: str, obj: object, _options: object, lines: list[str]
) -> None:
    """Write an attribute's type on the attribute's own line, and as the source has it."""
    written = {
        name: text
        for base in reversed(getattr(obj, "__mro__", ()))
        for name, text in vars(base).get("__annotations__", {}).items()
        if isinstance(text, str)
    }
    found: list[str] = []
    for line in lines:
        if line.startswith("   :type: "):
            continue
        found.append(line.replace(_COLON, ":"))
        name = line.removeprefix(".. attribute:: ")
        if name != line and name in written:
            found.append(f"   :type: {written[name]}")
    lines[:] = found


def _as_written(
    _app: Sphinx,
    what: str,
    _name: str,
    obj: Callable[..., object],
    _options: object,
    signature: str | None,
    _returns: str | None,
) -> tuple[str, str] | None:
    """Return a signature with the types that the source has, such as ArrayLike, not their parts."""
    if getattr(obj, "_is_protocol", False):
        return "", ""
    enum = isinstance(obj, type) and issubclass(obj, Enum)
    if signature is None or enum or what not in ("function", "method", "class", "exception"):
        return None
    written = inspect.signature(obj)
    listed = [item for item in written.parameters.values() if item.name != "self"]
    arguments, arrow, returned = stringify_signature(written.replace(parameters=listed)).rpartition(
        " -> "
    )
    return (arguments if arrow else returned), (returned if arrow and what[0] in "fm" else "")


def _skip_others(
    _app: Sphinx, what: str, name: str, obj: object, _skip: bool, _options: object
) -> bool | None:
    """Leave out what another library's base puts into a class of ours, and classes as values.

    A class as a value, such as a setting's ``answer``, stands under "Attributes:" already.
    """
    value = what == "class" and inspect.isclass(obj) and obj.__name__ != name
    foreign = inspect.isfunction(obj) and not obj.__module__.startswith("dpopt")
    return True if foreign or value else None


def _mark_aliases(_app: Sphinx, env: BuildEnvironment) -> None:
    """Let a type's bare name, such as Solution, mean its own page and not one that points there.

    Of two classes of one name, such as Problem, it means the one that stands on the other.
    """
    objects = env.domains.python_domain.objects
    classes: dict[str, set[type]] = {}
    for page in public_modules():
        module = importlib.import_module(page)
        for name in public_names(module):
            value = getattr(module, name, None)
            if isinstance(value, type):
                classes.setdefault(name, set()).add(value)
    for page in public_modules():
        module = importlib.import_module(page)
        for name in public_names(module):
            entry = objects.get(f"{page}.{name}")
            value = getattr(module, name, None)
            below = any(value is not c and value in c.__mro__ for c in classes.get(name, ()))
            if entry is not None and (below or home_of(module, name) != page):
                objects[f"{page}.{name}"] = entry._replace(aliased=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the functions above; napoleon itself reads docstrings at priority 500."""
    app.connect("autodoc-process-docstring", _before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=600)
    app.connect("autodoc-process-signature", _as_written)
    app.connect("autodoc-skip-member", _skip_others)
    app.connect("env-updated", _mark_aliases)
    return {"parallel_read_safe": True}
