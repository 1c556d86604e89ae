"""Array aliases used across the package; the shapes stand in the docstrings that use them."""

from __future__ import annotations

from dataclasses import fields
from numbers import Rational
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt._numbers import LONGEST_SHOWN, shown

T = TypeVar("T")
"""Any type, the same throughout a signature."""

Vector = npt.NDArray[np.float64]
"""One-dimensional float array."""

Matrix = npt.NDArray[np.float64]
"""Two-dimensional float array."""

IntVector = npt.NDArray[np.int64]
"""One-dimensional integer array."""

SparseMatrix: TypeAlias = sp.csr_array
"""Sparse matrix in compressed row form."""

MatrixLike = npt.ArrayLike | sp.sparray | sp.spmatrix
"""Anything that becomes a matrix: nested lists, a numpy array, a scipy sparse matrix."""

Numbers = npt.ArrayLike
"""A setting's row of numbers; on the command line a list 0.2,0.8 or a file of numbers."""

RowsOfNumbers = npt.ArrayLike
"""A setting's rows of numbers; on the command line a file, or rows a:b:c,a:b:c."""

Json = dict[str, Any]
"""A value of the JSON type "object"."""


def brief(result: object, **facts: object) -> str:
    """Return one line with a dataclass's type and some facts, or all its fields: a ``__repr__``."""
    if not facts:
        facts = {field.name: getattr(result, field.name) for field in fields(cast(Any, result))}
    words = (f"{name}={brief_of(value)}" for name, value in facts.items())
    return f"{type(result).__name__}({', '.join(words)})"


def brief_of(value: object) -> str:
    """Return a few words for a value: an array by its shape, a large object by its type."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Rational | list | tuple):
        return shown(value)
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"<array {'x'.join(map(str, cast(Any, value).shape))}>"
    text = " ".join(str(value).split())
    if len(text) <= LONGEST_SHOWN:
        return text
    # Words still say something when they are cut; what else is that long is a table of numbers.
    cut = text[: LONGEST_SHOWN - 3] + "..."
    return cut if isinstance(value, str) else f"<{type(value).__name__}>"


def frozen(array: npt.ArrayLike) -> Vector:
    """Return a read-only float copy of ``array``."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy
