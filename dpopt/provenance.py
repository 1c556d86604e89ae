"""Which versions made a result."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("dpopt", "numpy", "scipy", "highspy", "cvxpy", "python-flint")


def versions() -> dict[str, str]:
    """Return the versions of Python, dpopt and the libraries that its numbers rest on."""
    return dict(_found())


@cache
def _found() -> tuple[tuple[str, str], ...]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return tuple(found.items())
