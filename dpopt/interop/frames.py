"""Results as tables of pandas or polars, one row for each number.

Needs the library that is asked for: ``pip install 'dpopt[interop]'``. The other way round no module
is needed: records, letters, votes, counts and priors are taken from columns and tables of both
libraries where they are taken from arrays.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.shape import Design

Columns = Mapping[str, Sequence[Any] | npt.NDArray[Any]]

LIBRARIES = ("pandas", "polars")


def to_frame(result: object, library: str = "pandas") -> Any:  # noqa: ANN401
    """Return a result as one tidy table.

    - A `Design`: the columns of its kind.
    - What has a method ``columns``, which returns columns by name: a `Table`, a
      `PublicPrior`, a `Tally`, a `VoteBatch`, a `Solution`.
    - What has a method ``to_records``, which returns records (mappings from names to values, all
      with the same names) or one mapping from names to columns.

    Args:
        result: one of these.
        library: "pandas" or "polars".

    Returns:
        A ``pandas.DataFrame`` with the default index, or a ``polars.DataFrame``; probabilities are
        floats, for reading only.

    Raises:
        ParameterError: for another object or library, or one whose table would be too long.
        ImportError: if the library is not installed; it names the extra.
    """
    name = _checks.choice("library", library, LIBRARIES)
    columns = _columns(result)
    module = _library(name)
    if name == "pandas":
        return module.DataFrame(dict(columns))
    return module.DataFrame([_polars_column(module, key, columns[key]) for key in columns])


def _library(name: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"to_frame needs {name}; install it with pip install 'dpopt[interop]'."
        ) from error


def _polars_column(module: Any, name: str, values: Any) -> Any:  # noqa: ANN401
    """Return a column; letters of several types stay what they are, as objects."""
    mixed = not isinstance(values, np.ndarray) and len({type(value) for value in values}) > 1
    return (
        module.Series(name, list(values), dtype=module.Object)
        if mixed
        else (module.Series(name, values))
    )


def _columns(result: object) -> Columns:
    """Return the columns of a result's table by name."""
    if isinstance(result, Design):
        return result.setting.columns(result.table)
    for name in ("columns", "to_records"):
        own = getattr(result, name, None)
        if callable(own):
            return _of_records(own())
    raise ParameterError(
        f"result is of type {type(result).__name__}; there is no table for it, and it has no "
        "method columns or to_records."
    )


def _of_records(found: object) -> Columns:
    if isinstance(found, Mapping):
        return found
    records = list(found) if isinstance(found, Sequence) else []
    if not all(isinstance(record, Mapping) for record in records) or not records:
        raise ParameterError("to_records of the result returned neither records nor columns.")
    names = list(records[0])
    if any(list(record) != names for record in records):
        raise ParameterError("to_records of the result returned records with different names.")
    return {name: [record[name] for record in records] for name in names}
