"""What users bring: letters of their own, or counts that make up their distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import MOST_BITS
from dpopt._types import IntVector
from dpopt.privacy.exponential import rational
from dpopt.public_prior.prior import PublicPrior

_SMALL = 1 << 62

Counts = npt.NDArray[np.int64] | npt.NDArray[np.object_]


def places_of(prior: PublicPrior, own: object) -> tuple[IntVector, bool]:
    """Return the places of one letter or several, and whether it was one.

    The message for an unknown letter shows no letter: that would be to release it.

    Raises:
        ParameterError: for a letter that the prior does not have.
    """
    if isinstance(prior.letters, range):
        array = _checks.array("own", own)
        whole = array.dtype.kind in "iu" or array.size == 0
        if array.ndim > 1 or not whole:
            raise ParameterError("own must be a letter, or a sequence of them: integers.")
        if array.size and (array.min() < 0 or array.max() >= prior.size):
            raise ParameterError(f"own holds a letter outside 0..{prior.size - 1}.")
        return np.atleast_1d(array).astype(np.int64), array.ndim == 0
    if isinstance(own, Hashable) and own in prior.places:
        return np.array([prior.places[own]], dtype=np.int64), True
    unknown = ParameterError("own holds a letter that the prior does not have.")
    if isinstance(own, str | bytes) or not isinstance(own, Iterable):
        raise unknown
    try:
        places = [prior.places[letter] for letter in own]
    except (KeyError, TypeError):
        raise unknown from None
    return np.array(places, dtype=np.int64), False


def in_order(counts: Any, letters: Sequence[Hashable]) -> Any:  # noqa: ANN401
    """Return counts in the order of the letters, if they are the labels of a table or column."""
    if type(counts).__module__.split(".")[0] not in ("pandas", "polars"):
        return counts
    labels = getattr(counts, "columns", getattr(counts, "index", None))
    names = [] if labels is None else list(labels)
    if len(names) != len(letters) or set(names) != set(letters):
        return counts
    return counts[list(letters)]


def counts_of(counts: object, size: int) -> tuple[Counts, bool]:
    """Return the counts of one user or several as integers, and whether it was one.

    Args:
        counts: integers or Fractions, shape (size,) or (users, size).
        size: n.

    Returns:
        Shape (users, size): 64-bit integers where every user's sum fits, Python integers else.

    Raises:
        ParameterError: for another shape, other values, or a user without any.
    """
    size = _checks.integer("size", size, 1)
    array = _checks.array("counts", counts)
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise ParameterError(
            f"counts has shape {array.shape}; it must be ({size},) or (users, {size})."
        )
    table = np.atleast_2d(array)
    if table.dtype.kind == "O":
        table = np.array([_whole(row) for row in table], dtype=object).reshape(table.shape)
    elif table.dtype.kind not in "iu":
        raise ParameterError("counts must be integers or Fractions; floats are not exact.")
    if np.any(table < 0):
        raise ParameterError("counts holds a negative number.")
    if table.size and int(table.max()) > _SMALL // size:
        table = table.astype(object)
    else:
        table = table.astype(np.int64)
    if np.any(table.sum(axis=1) == 0):
        raise ParameterError("counts has a user whose counts are all 0; leave such users out.")
    return table, array.ndim == 1


def _whole(row: npt.NDArray[np.object_]) -> list[int]:
    """Return rationals times their common denominator."""
    if not all(isinstance(value, Rational) and not isinstance(value, bool) for value in row):
        raise ParameterError("counts must be integers or Fractions; floats are not exact.")
    exact = [rational("counts", value) for value in row]
    common = 1
    for value in exact:
        common = math.lcm(common, value.denominator)
        if common.bit_length() > MOST_BITS:
            raise ParameterError(f"counts have a common denominator beyond 2^{MOST_BITS}.")
    return [int(value * common) for value in exact]


def own_letters(counts: Counts, below: Callable[[int], int]) -> IntVector:
    """Return one letter for each user, drawn from their counts.

    Args:
        counts: from `counts_of`.
        below: returns a uniform integer below its argument.
    """
    sums: npt.NDArray[Any] = np.cumsum(counts, axis=1)
    drawn: npt.NDArray[Any] = np.array([below(int(s)) for s in sums[:, -1]], dtype=counts.dtype)
    return np.count_nonzero(sums <= drawn[:, None], axis=1).astype(np.int64)
