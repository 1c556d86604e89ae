"""Array aliases used across the package; the shapes stand in the docstrings that use them."""

from __future__ import annotations

from dataclasses import fields
from numbers import Rational
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt._numbers import shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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

Json = dict[str, Any]
"""A value of the JSON type "object"."""


def brief(result: object, **facts: object) -> str:
    """Return one line that names a result's type and some facts, for ``__repr__``."""
    words = (f"{name}={_told(fact)}" for name, fact in facts.items())
    return f"{type(result).__name__}({', '.join(words)})"


def short_repr(result: DataclassInstance) -> str:
    """Return one line with all fields of a dataclass, long numbers by their leading digits."""
    return brief(result, **{field.name: getattr(result, field.name) for field in fields(result)})


def _told(fact: object) -> str:
    if isinstance(fact, float):
        return f"{fact:.6g}"
    return shown(fact) if isinstance(fact, Rational | list | tuple) else str(fact)


def frozen(array: npt.ArrayLike) -> Vector:
    """Return a read-only float copy of ``array``."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy
