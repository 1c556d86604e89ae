"""What the reference holds: the public modules, their public names, and a page for each module."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import dpopt
import dpopt.interop
from dpopt.explore.fields import command_of
from experiments.reference.commands import command_page
from experiments.reference.text import plain_docstring

_WITHOUT_A_PAGE = {"cli"}
_COMMANDS = "command_line"


@cache
def public_modules() -> tuple[str, ...]:
    """Return the names of the modules that a user imports: no underscore, no second way.

    The command line has a page of its own. Modules whose optional library is not installed are
    left out.
    """
    names = all_modules()
    return tuple(name for name in names if _loads(name))


def all_modules() -> tuple[str, ...]:
    """Return `public_modules`, and those whose optional library is not installed."""
    found = [
        f"dpopt.{module.name}"
        for module in pkgutil.iter_modules(dpopt.__path__)
        if not module.name.startswith("_") and module.name not in _WITHOUT_A_PAGE
    ]
    other = [
        f"dpopt.interop.{module.name}" for module in pkgutil.iter_modules(dpopt.interop.__path__)
    ]
    return ("dpopt", *sorted([*found, *other]))


def _loads(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def public_names(module: ModuleType) -> tuple[str, ...]:
    """Return a module's ``__all__``; without one, what it defines.

    That is its functions and classes, and its constants with a docstring.
    """
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return tuple(listed)
    defined = {
        name
        for name, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }
    found = {*defined, *_constants(_file(module))}
    return tuple(sorted(name for name in found if not name.startswith("_")))


def home_of(module: ModuleType, name: str) -> str:
    """Return the module whose page documents a public name, where several list it.

    It is the first one in the order of the pages, and `dpopt` only if no other lists it.
    """
    value = getattr(module, name)
    if inspect.ismodule(value):
        return value.__name__
    return _homes().get((name, id(value)), module.__name__)


@cache
def _homes() -> Mapping[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    first, *others = public_modules()
    for name in (*others, first):
        module = importlib.import_module(name)
        for public in public_names(module):
            found.setdefault((public, id(getattr(module, public))), name)
    return found


def constant_docstring(module: ModuleType, name: str) -> str:
    """Return the string that follows ``name = ...`` where a public constant is defined.

    Args:
        module: a public module that has the constant; it is looked for in the files beside the
            module's.
        name: of the constant.

    Returns:
        The docstring; empty if there is none.
    """
    source = module
    for path in sorted(_file(source).parent.glob("*.py")):
        text = _constants(path).get(name)
        if text is not None:
            home = importlib.import_module(_module_of(path))
            if getattr(home, name) is getattr(module, name):
                return text
    return ""


@cache
def _constants(path: Path) -> Mapping[str, str]:
    """Return the constants of a file that a docstring follows, and this docstring."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {
        target.id: inspect.cleandoc(after.value.value)
        for statement, after in pairwise(body)
        if isinstance(statement, ast.Assign)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _file(module: ModuleType) -> Path:
    return Path(module.__file__ or "")


def all_pages() -> Mapping[str, str]:
    """Return the reStructuredText of every page by the name of its document."""
    modules = {name: importlib.import_module(name) for name in public_modules()}
    pages = {name: _module_page(module) for name, module in modules.items()}
    return {"index": _index_page(tuple(pages)), _COMMANDS: command_page(), **pages}


def _module_of(path: Path) -> str:
    root = Path(dpopt.__path__[0])
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _index_page(modules: tuple[str, ...]) -> str:
    homes = {".".join(kind.__module__.split(".")[:2]) for kind in dpopt.kinds()}
    papers = [name for name in modules if name in homes]
    interop = [name for name in modules if name.startswith("dpopt.interop")]
    rest = [name for name in modules if name not in (*papers, *interop)]
    groups = {
        "Mechanisms": papers,
        "Package": rest,
        "Other libraries": interop,
        "Command line": [_COMMANDS],
    }
    lines = [*_title(f"dpopt {dpopt.__version__}"), dpopt.__doc__ or "", ""]
    for caption, names in groups.items():
        lines += [".. toctree::", "   :maxdepth: 1", f"   :caption: {caption}", ""]
        lines += [f"   {name}" for name in names] + [""]
    missing = [f"`{name}`" for name in all_modules() if name not in modules]
    if missing:
        lines += [f"Left out, as their libraries are not installed: {', '.join(missing)}.", ""]
    return "\n".join([*lines, "All names in one list: :ref:`genindex`.", ""])


def _module_page(module: ModuleType) -> str:
    name = source = module.__name__
    lines = [*_title(name), f".. automodule:: {source}", "   :no-index:", ""]
    lines += [f".. py:module:: {name}", ""]
    inner = [public for public in public_names(module) if inspect.ismodule(getattr(module, public))]
    if inner:
        lines += ["Modules: " + ", ".join(f"`{name}.{public}`" for public in inner) + ".", ""]
    for public in public_names(module):
        if public in inner:
            continue
        value, home = getattr(module, public), home_of(module, public)
        if home != name:
            lines += _pointer(public, home, value)
        elif inspect.isclass(value):
            lines += [f".. autoclass:: {name}.{public}", "   :members:", *_options(value), ""]
            lines += _kind(value)
        elif inspect.isfunction(value):
            lines += [f".. autofunction:: {name}.{public}", ""]
        else:
            lines += _constant(module, public)
    return "\n".join([*lines, ""])


def _kind(cls: type) -> list[str]:
    """Return what follows a kind of settings: its command, and what to cite."""
    if cls not in dpopt.kinds():
        return []
    example = cls.example()
    bibtex = dpopt.cite(example.kind).splitlines()
    return [
        f".. rubric:: dpopt {example.kind}",
        "",
        "Its example as a command (:doc:`command_line`), and what to cite::",
        "",
        f"    {command_of(example)}",
        "",
        *(f"    {line}" for line in bibtex),
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


def _constant(module: ModuleType, name: str) -> list[str]:
    value = getattr(module, name)
    shown = f"   :value: {value!r}" if isinstance(value, str | int | float | tuple) else ""
    text = plain_docstring(constant_docstring(module, name))
    return [
        "",
        f".. py:data:: {name}",
        *([shown] if shown else []),
        "",
        *(f"   {line}" for line in text.splitlines()),
        "",
    ]


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]
