"""Results as tables of pandas or polars, one row for each number.

Needs the library that is asked for: ``pip install 'dpopt[interop]'``. The other way round no module
is needed: records, categories, votes, counts and priors are taken from columns and tables of both
libraries where they are taken from arrays.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.shape import Design

# Libraries whose frames are made.
LIBRARIES = ("pandas", "polars")


def to_frame(result: object, library: str = "pandas") -> Any:  # noqa: ANN401
    """Return a result as one tidy table, a ``DataFrame``; probabilities are floats, for reading.

    Args:
        result: a `Design`, or what has a method ``columns``, which returns columns by name: an
            `Table`, a `PublicPrior`, a `Tally`, a `VoteBatch`, a `Solution`, a profile.
        library: "pandas" or "polars".

    Raises:
        ParameterError: for another object or library, or one whose table would be too long.
        ImportError: if the library is not installed; it names the extra.
    """
    name = _checks.choice("library", library, LIBRARIES)
    column_method: Any = getattr(result, "columns", None)
    if isinstance(result, Design):
        columns: dict[str, Any] = dict(result.setting.columns(result.table))
    elif callable(column_method):
        columns = dict(cast(Any, column_method)())
    else:
        raise ParameterError(
            f"result is of type {type(result).__name__}; there is no table for it, and it has no "
            "method columns."
        )
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"to_frame needs {name}; install it with pip install 'dpopt[interop]'."
        ) from error
    if name == "polars":
        # Categories of several types stay what they are, as objects.
        for key, values in columns.items():
            if not isinstance(values, np.ndarray) and len(set(map(type, values))) > 1:
                columns[key] = module.Series(key, list(values), module.Object)
    return module.DataFrame(columns)
