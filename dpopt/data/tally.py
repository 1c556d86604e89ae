"""Records to counts over a public alphabet."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.data.ledger import (
    Column,
    Ledger,
    add_array,
    add_column,
    add_objects,
    is_boolean,
)


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each letter of a public alphabet occurs.

    Attributes:
        letters: the k letters, in the caller's order: a tuple, or a range for 0..k-1.
        counts: shape (k,), read-only.
    """

    letters: Sequence[Hashable]
    counts: IntVector

    @classmethod
    def of_counts(cls, counts: npt.ArrayLike | Mapping[Any, Any], alphabet: object) -> Tally:
        """Return given counts as a tally.

        Args:
            counts: non-negative integers, shape (k,); or a mapping from letters, or a pandas
                column whose index names letters, in any order, those left out being 0.
            alphabet: the k letters, or k.

        Raises:
            ParameterError: for another shape or other values.
        """
        letters = letters_of(alphabet)
        if isinstance(counts, Mapping):
            return tally(counts, letters)
        index = getattr(counts, "index", None)
        if index is not None and _is_pandas(counts) and type(index).__name__ != "RangeIndex":
            return tally(dict(zip(cast(Any, index), cast(Any, counts), strict=True)), letters)
        array = _checks.array("counts", counts)
        if array.shape != (len(letters),):
            raise ParameterError(
                f"counts has shape {array.shape}; it must be ({len(letters)},), one for each "
                "letter of the alphabet."
            )
        whole = array.dtype.kind in "iu" or (
            array.dtype.kind == "f" and bool(np.all(np.isfinite(array) & (array == array.round())))
        )
        if not whole or np.any(array < 0) or np.any(array > 1e15):
            raise ParameterError("counts must hold whole numbers from 0 to 1e15, no others.")
        found = array.astype(np.int64)
        found.setflags(write=False)
        return cls(letters, found)


def letters_of(alphabet: object) -> Sequence[Hashable]:
    """Return the letters of an alphabet: k for 0..k-1, or the distinct letters themselves.

    Raises:
        ParameterError: for fewer than two letters, repeated, unhashable or missing ones, or a set,
            which has no order.
    """
    if isinstance(alphabet, int | np.integer) and not isinstance(alphabet, bool):
        if alphabet < 2:
            raise ParameterError(f"alphabet is {alphabet}; it must have at least 2 letters.")
        if alphabet >> 62:
            raise ParameterError("alphabet is beyond 2^62; it must be the number of letters.")
        return range(int(alphabet))
    if isinstance(alphabet, range) and len(alphabet) >= 2:
        return alphabet
    if getattr(alphabet, "ndim", 1) != 1:
        raise ParameterError("alphabet is an array without exactly one axis; it must have one.")
    unordered = isinstance(alphabet, str | bytes | set | frozenset | Mapping)
    if unordered or not isinstance(alphabet, Iterable):
        raise ParameterError(
            f"alphabet is {_checks.shown(alphabet)}; it must be a sequence of letters, or "
            "their number."
        )
    letters = tuple(item.item() if isinstance(item, np.generic) else item for item in alphabet)
    try:
        distinct = len(set(letters))
    except TypeError:
        raise ParameterError("alphabet holds a letter that is not hashable.") from None
    if distinct != len(letters) or distinct < 2:
        raise ParameterError(
            f"alphabet has {len(letters)} letters, {distinct} of them distinct; it must have at "
            "least 2, none twice."
        )
    if any(item is None or (isinstance(item, float) and item != item) for item in letters):
        raise ParameterError(
            "alphabet holds a missing value (None or NaN); give it a name, such as 'missing', in "
            "the alphabet and in the data."
        )
    return letters


def tally(data: object, alphabet: object) -> Tally:
    """Count records over a public alphabet.

    The alphabet has to be fixed before the data are looked at: which letters occur is private,
    so it cannot be read off the data, and a record outside it is an error rather than a letter.
    The message of that error shows no record, since to show one is to release it. That there was
    an error is not private either, and is for the curator alone: where values may be unforeseen
    or missing, map them to a letter of their own before.

    A record is a letter if Python holds them equal and both or neither are booleans: 1.0 is 1,
    but neither "1" nor True is. None, NaN and masked entries are outside every alphabet.

    Args:
        data: the records: a sequence, an iterator, a one-dimensional array, a pandas or polars
            column, all counted in parts; or a mapping from letters to counts; or a `Tally` over
            the same letters.
        alphabet: the letters in order, or k for 0..k-1.

    Raises:
        ParameterError: if a record is outside the alphabet, or data is of another kind.

    Example:
        >>> from dpopt import roo
        >>> roo.tally(["Bern", "Chur", "Bern"], ["Basel", "Bern", "Chur"]).counts.tolist()
        [0, 2, 1]
    """
    letters = letters_of(alphabet)
    if isinstance(data, Tally):
        if not _same(data.letters, letters):
            raise ParameterError("data is a tally over another alphabet; they must be the same.")
        return data
    if isinstance(data, str | bytes) or hasattr(type(data), "columns"):
        raise ParameterError(
            f"data is of type {type(data).__name__}; it must hold records, such as a sequence, an "
            "array or one column of a table."
        )
    ledger = Ledger(letters)
    if isinstance(data, Mapping):
        ledger.add(data.keys(), _whole_counts(data))
    elif type(data).__module__.split(".")[0] in ("pandas", "polars") and hasattr(data, "to_list"):
        add_column(ledger, cast(Column, data))
    elif isinstance(data, range):
        add_array(ledger, np.asarray(data))
    elif hasattr(data, "__array__"):
        add_array(ledger, data)
    elif isinstance(data, Iterable):
        add_objects(ledger, data)
    else:
        raise ParameterError(
            f"data is of type {type(data).__name__}; it must hold records, such as a sequence, an "
            "array or one column of a table."
        )
    return Tally.of_counts(ledger.counts, letters)


def _is_pandas(data: object) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def _whole_counts(data: Mapping[Any, Any]) -> list[int]:
    """Return the counts of a mapping, checked."""
    # One more, because an alphabet has two letters at least.
    counts = [*data.values(), 0, 0]
    return Tally.of_counts(counts, len(counts)).counts[:-2].tolist()


def _same(left: Sequence[Hashable], right: Sequence[Hashable]) -> bool:
    """Return whether two alphabets are the same, in order; (False, True) is not (0, 1)."""
    if isinstance(left, range) and isinstance(right, range):
        return left == right
    return len(left) == len(right) and all(
        a == b and is_boolean(a) == is_boolean(b) for a, b in zip(left, right, strict=True)
    )
