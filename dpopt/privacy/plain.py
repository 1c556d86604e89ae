"""Parameters of a design as plain values: for files, tables and drawings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from dpopt._numbers import exact_text


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a parameter as what JSON holds and a constructor takes."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return exact_text(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list | range):
        return [plain(part) for part in value]
    if is_dataclass(value) and "__str__" not in type(value).__dict__:
        return [plain(getattr(value, f.name)) for f in fields(cast(Any, value))]
    return str(value)
