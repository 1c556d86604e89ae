"""Differentially private mechanisms designed by linear programming."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dpopt._errors import (
    DpoptError,
    InfeasibleError,
    NotPrivateError,
    ParameterError,
    SolverError,
)

if TYPE_CHECKING:
    from dpopt import gnmax, kernel, majority, public_prior, roo
    from dpopt._cite import cite
    from dpopt._load import load
    from dpopt.lp import Problem, Solution, Status, solve
    from dpopt.privacy import Guarantee

__version__ = "0.1.0"

__all__ = [
    "DpoptError",
    "Guarantee",
    "InfeasibleError",
    "NotPrivateError",
    "ParameterError",
    "Problem",
    "Solution",
    "SolverError",
    "Status",
    "__version__",
    "cite",
    "gnmax",
    "kernel",
    "load",
    "majority",
    "public_prior",
    "roo",
    "solve",
]

# Loaded when first used: a script that needs one mechanism does not wait for the libraries of all.
_HOMES = {
    "Guarantee": "dpopt.privacy",
    "Problem": "dpopt.lp",
    "Solution": "dpopt.lp",
    "Status": "dpopt.lp",
    "cite": "dpopt._cite",
    "load": "dpopt._load",
    "solve": "dpopt.lp",
}
_MODULES = ("gnmax", "kernel", "majority", "public_prior", "roo")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"dpopt.{name}")
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'dpopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
