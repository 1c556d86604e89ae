"""Loaders of data sets that the user brings; the project ships none of them."""

from __future__ import annotations

from pathlib import Path

from dpopt import ParameterError


def made_folder(folder: str | Path) -> Path:
    """Return the path of a folder, made if it is missing; refuse one that cannot be."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ParameterError(f"folder is {str(path)!r}; {reason}.") from None
    return path
