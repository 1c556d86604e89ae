"""Counting of records by letter, a part at a time; nothing outside the alphabet, nothing shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from numbers import Number
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt._types import IntVector

_CHUNK = 1 << 22
# Python objects take about 60 bytes each, so fewer of them at once.
_OBJECTS = 1 << 16
_MOST_LETTERS = 100_000_000
_COUNTED_KINDS = "biufUS"
OUTSIDE = (
    "data holds a record outside the alphabet (not shown, it is private); the alphabet must be "
    "public and list every value that a record can take, in the records' own type, and none may "
    "be missing."
)


class Ledger:
    """Counts of letters under way."""

    def __init__(self, letters: Sequence[Hashable]) -> None:
        # len() of a range overflows beyond 2^63.
        if letters[_MOST_LETTERS:]:
            raise ParameterError(f"alphabet has more than {_MOST_LETTERS} letters.")
        self._letters = letters
        self.counts: IntVector = np.zeros(len(letters), dtype=np.int64)
        self._places: tuple[dict[Hashable, int], dict[Hashable, int]] | None = None

    def add(self, values: Iterable[Any], counts: Iterable[int]) -> None:
        """Add values with how often each occurs; a value that occurs 0 times is not looked up.

        Raises:
            ParameterError: for a value that is no letter.
        """
        for value, count in zip(values, counts, strict=True):
            if count:
                self.counts[self._place(value)] += count

    def add_integers(self, part: npt.NDArray[Any]) -> None:
        """Add an array of integers; fast where the letters are consecutive ones.

        Raises:
            ParameterError: for a value that is no letter.
        """
        letters = self._letters
        if not isinstance(letters, range) or letters.step != 1 or abs(letters.stop) >> 62:
            self.add(*_unique(part))
            return
        if int(part.min()) < letters.start or int(part.max()) >= letters.stop:
            raise ParameterError(OUTSIDE)
        places = part.astype(np.int64) - letters.start
        self.counts += np.bincount(places, minlength=len(letters))

    def _place(self, value: Hashable) -> int:
        try:
            place = self._lookup(value)
        except (TypeError, ValueError, OverflowError):  # not hashable, NaN or infinite
            place = None
        if place is None:
            raise ParameterError(OUTSIDE) from None
        return place

    def _lookup(self, value: Any) -> int | None:  # noqa: ANN401
        boolean = is_boolean(value)
        if isinstance(self._letters, range):
            if boolean or not isinstance(value, Number) or int(cast(int, value)) != value:
                return None
            whole = int(cast(int, value))
            return self._letters.index(whole) if whole in self._letters else None
        if self._places is None:
            self._places = ({}, {})
            for place, letter in enumerate(self._letters):
                self._places[is_boolean(letter)][letter] = place
        return self._places[boolean].get(value)


def is_boolean(value: object) -> bool:
    """Return whether a value is True or False, which Python holds equal to 1 and 0."""
    return isinstance(value, bool | np.bool_)


class Column(Protocol):
    """What is used of a pandas or polars column."""

    @property
    def dtype(self) -> object:
        """The type of its values."""
        ...

    def to_list(self) -> list[Any]:
        """Return its values."""
        ...

    def value_counts(self, **options: object) -> Any:  # noqa: ANN401
        """Return how often each value occurs."""
        ...


def add_column(ledger: Ledger, column: Column) -> None:
    """Add a pandas or polars column through its own counts.

    Raises:
        ParameterError: for a record outside the alphabet.
    """
    if str(column.dtype).lower().startswith("object"):
        # Its counts would hold True and 1 for the same.
        add_objects(ledger, column.to_list())
    elif type(column).__module__.startswith("polars"):
        table = cast(Any, column).alias("letter").value_counts(name="records")
        ledger.add(table["letter"].to_list(), table["records"].to_list())
    else:
        found = column.value_counts(dropna=False, sort=False)
        ledger.add(found.index.tolist(), found.tolist())


def add_array(ledger: Ledger, data: object) -> None:
    """Add a one-dimensional array, in parts.

    Raises:
        ParameterError: for a record outside the alphabet, another shape, or a dtype such as dates.
    """
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise ParameterError(OUTSIDE)
    array = np.asarray(data)
    if array.ndim != 1:
        raise ParameterError(f"data has {array.ndim} dimensions; records have one.")
    if array.dtype.kind in "OT":
        for start in range(0, array.size, _OBJECTS):
            add_objects(ledger, array[start : start + _OBJECTS].tolist())
        return
    if array.dtype.kind not in _COUNTED_KINDS:
        raise ParameterError(
            f"data has dtype {array.dtype}; records are numbers, strings, booleans or objects."
        )
    for start in range(0, array.size, _CHUNK):
        part = array[start : start + _CHUNK]
        if array.dtype.kind in "iu":
            ledger.add_integers(part)
        else:
            ledger.add(*_unique(part))


def add_objects(ledger: Ledger, records: Iterable[Any]) -> None:
    """Add records that are Python objects, in parts.

    Raises:
        ParameterError: for a record outside the alphabet.
    """
    stream = iter(records)
    while part := list(islice(stream, _OBJECTS)):
        try:
            if {bool, np.bool_}.isdisjoint(map(type, part)):
                found = Counter(part)
                ledger.add(found.keys(), found.values())
            else:
                pairs = Counter((is_boolean(value), value) for value in part)
                ledger.add((value for _, value in pairs), pairs.values())
        except TypeError:  # not hashable
            raise ParameterError(OUTSIDE) from None


def _unique(part: npt.NDArray[Any]) -> tuple[list[Any], list[int]]:
    values, counts = np.unique(part, return_counts=True)
    return values.tolist(), counts.tolist()
