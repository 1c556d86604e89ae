"""Which versions made a result."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version


def versions(*further: str) -> dict[str, str]:
    """Return the versions of Python, dpopt and the libraries that its numbers rest on.

    Args:
        further: names of other packages whose versions are asked for.
    """
    installed = {
        package: _version(package)
        for package in (*("dpopt", "numpy", "scipy", "highspy", "cvxpy", "python-flint"), *further)
    }
    return {"python": platform.python_version(), **installed}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
