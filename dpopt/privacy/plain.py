"""Parameters and units of a design as plain values: for files, tables and drawings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import exact_text, shown, whole
from dpopt.privacy.kernel import ExactKernel
from dpopt.privacy.orbit import OrbitKernel


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


def plain_units(units: Any) -> Any:  # noqa: ANN401
    """Return units as what JSON holds; whole numbers as text, of any length."""
    if isinstance(units, ExactKernel | OrbitKernel):
        return units.plain()
    if isinstance(units, tuple | list):
        return [plain_units(part) for part in units]
    return exact_text(units) if isinstance(units, int) else plain(units)


def read_units(written: Any) -> Any:  # noqa: ANN401
    """Return what `plain_units` wrote, or anybody else: only its form is checked.

    Raises:
        ParameterError: for a text that is no whole number, or a kernel that is none.
    """
    if isinstance(written, dict):
        return ExactKernel.read(written)
    if isinstance(written, list):
        return tuple(read_units(part) for part in written)
    try:
        return whole(written) if isinstance(written, str) else written
    except ValueError:
        raise ParameterError(f"units hold {shown(written)}; it must be a whole number.") from None


def rows_of(units: Any) -> tuple[list[list[float]], bool]:  # noqa: ANN401
    """Return units as rows of floats, and whether these are laws: integers over their sum."""
    listed: Any = units.weights if isinstance(units, ExactKernel) else units
    listed = listed.tolist() if isinstance(listed, np.ndarray) else listed
    if not isinstance(listed, Sequence):
        return [[float(listed)]], False
    if not all(isinstance(row, Sequence) for row in listed):
        return [[float(value) for value in listed]], False
    # Integers are divided before they become floats, which end at 2^1024.
    totals = [sum(row) or 1 if all(isinstance(w, int) for w in row) else 1 for row in listed]
    return [[w / total for w in row] for row, total in zip(listed, totals, strict=True)], True
