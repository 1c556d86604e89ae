"""Votes as they are given: checked, counted, and never shown in a message."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.data.tally import Tally

IntTable = npt.NDArray[np.int64]

# Votes that are read at once: what stays in a core's cache.
_READ = 1 << 16
# Classes of which each is counted apart.
_FEW_CLASSES = 6


@dataclass(frozen=True, eq=False)
class Counts:
    """How many votes each class has: data of a plurality in place of the votes themselves.

    Attributes:
        counts: integers, sum K for each query, shape (C,) or (queries, C).
    """

    counts: npt.ArrayLike


def counted(data: Any, voters: int, classes: int) -> tuple[IntTable, bool]:  # noqa: ANN401
    """Return how many votes each class has on each query, and whether there is but one.

    Args:
        data: votes, shape (K,) or (queries, K); or `Counts`; or a `Tally`, the counts of one query.
        voters: K.
        classes: C.
    """
    if not isinstance(data, Counts | Tally):
        return count_queries(data, voters, classes)
    array = _checks.array("counts", data.counts)
    if array.ndim not in (1, 2) or array.shape[-1] != classes:
        raise ParameterError(
            f"counts has shape {array.shape}; it must be ({classes},) or (queries, {classes})."
        )
    table = whole(np.atleast_2d(array), voters) if array.dtype.kind in "iu" else None
    if table is None:
        raise ParameterError(
            f"counts holds a value that is none; counts are integers in 0..{voters}."
        )
    if np.any(np.einsum("qc->q", table) != voters):
        raise ParameterError(f"counts of a query must add up to {voters} records.")
    return table, array.ndim == 1


def count_queries(votes: npt.ArrayLike, voters: int, classes: int) -> tuple[IntTable, bool]:
    """Return how many votes each class has on each query, and whether votes were those of one.

    They are read some queries at a time, so that no second copy of them is in memory.

    Args:
        votes: shape (K,) or (queries, K); there may be no query.
        voters: K.
        classes: C.

    Returns:
        Counts, shape (queries, C), and whether the shape was (K,).

    Raises:
        ParameterError: for another shape, or a value outside the classes; none is shown. Which it
            is depends on the data: such a refusal is for the curator alone.
    """
    array = _checks.array("votes", votes)
    if array.ndim not in (1, 2) or array.shape[-1] != voters:
        raise ParameterError(
            f"votes has shape {array.shape}; it must be ({voters},) or (queries, {voters})."
        )
    table = np.atleast_2d(array)
    counts = np.empty((len(table), classes), dtype=np.int64)
    step = max(1, _READ // voters)
    for start in range(0, max(1, len(table)), step):
        part = _in_classes(table[start : start + step], classes)
        counts[start : start + step] = count_votes(part, classes)
    return counts, array.ndim == 1


def _in_classes(array: npt.NDArray[np.generic], classes: int) -> IntTable:
    found = whole(array, classes - 1)
    if found is None:
        raise ParameterError(f"votes holds a value other than {_range(classes)}.")
    return found


def count_votes(votes: IntTable, classes: int) -> IntTable:
    """Return how many votes each class has on each query, shape (queries, C)."""
    queries, voters = votes.shape
    if classes <= _FEW_CLASSES:
        # Sums along rows; of two classes, the votes are what is summed.
        own = [votes] if classes == 2 else [(votes == c).view(np.uint8) for c in range(1, classes)]
        others = [np.einsum("qk->q", one, dtype=np.int64) for one in own]
        return np.stack([voters - sum(others), *others], axis=1)
    places = votes + classes * np.arange(queries)[:, None]
    return np.bincount(places.ravel(), minlength=queries * classes).reshape(queries, classes)


def whole(array: npt.NDArray[np.generic], largest: int) -> IntTable | None:
    """Return the integers of an array, if it holds nothing but integers in 0..largest.

    Integers of 64 bits are the array itself.
    """
    if array.dtype.kind in "iu":
        # Read without a sign, negative numbers are the largest.
        unsigned = array.view(array.dtype.str.replace("i", "u"))
        fits = not array.size or int(unsigned.max()) <= largest
        return array.astype(np.int64, copy=False) if fits else None
    numeric = array.dtype.kind in "bf" or (
        array.dtype == object and all(isinstance(v, numbers.Real | np.bool_) for v in array.flat)
    )
    if not numeric or not np.all((array >= 0) & (array <= largest)):  # pyright: ignore[reportOperatorIssue]
        return None
    found = array.astype(np.int64)
    return found if np.all(found == array) else None


def _range(classes: int) -> str:
    return "0 and 1" if classes == 2 else f"0..{classes - 1}"
