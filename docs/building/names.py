"""The public modules and their public names, and the page that documents each."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import dpopt
import dpopt.interop

_WITHOUT_A_PAGE = {"cli"}


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

    It is the first one in the order of the pages, after `dpopt.shape` and `dpopt`: what a user
    takes from there is told of there.
    """
    value = getattr(module, name)
    if inspect.ismodule(value):
        return value.__name__
    return _homes().get((name, id(value)), module.__name__)


@cache
def _homes() -> Mapping[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    first = ("dpopt.shape", "dpopt")
    for name in (*first, *public_modules()):
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


def _module_of(path: Path) -> str:
    root = Path(dpopt.__path__[0])
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")
