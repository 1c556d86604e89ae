"""Loaders of data sets that the user brings; the project ships none of them."""

from __future__ import annotations

from pathlib import Path

from dpopt import ParameterError


def refused(path: str | Path, why: str | OSError, name: str = "path") -> ParameterError:
    """Return one sentence on a file or a folder that cannot be taken."""
    said = why if isinstance(why, str) else (why.strerror or str(why)).lower()
    return ParameterError(f"{name} is {str(path)!r}; {said}.")
