"""Records to counts over a public alphabet, a part at a time; nothing outside it, nothing shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Number
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
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
        whole_counts = array.astype(np.int64)
        whole_counts.setflags(write=False)
        return cls(letters, whole_counts)

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return letter and count as one tidy table."""
        return {"letter": list(self.letters), "count": self.counts.tolist()}


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
    ledger = Ledger(letters)
    if isinstance(data, str | bytes) or hasattr(type(data), "columns"):
        raise _no_records(data)
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
        raise _no_records(data)
    return Tally.of_counts(ledger.counts, letters)


def _no_records(data: object) -> ParameterError:
    return ParameterError(
        f"data is of type {type(data).__name__}; it must hold records, such as a sequence, an "
        "array or one column of a table."
    )


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
        table = column.value_counts(dropna=False, sort=False)
        ledger.add(table.index.tolist(), table.tolist())


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
                distinct = Counter(part)
                ledger.add(distinct.keys(), distinct.values())
            else:
                pairs = Counter((is_boolean(value), value) for value in part)
                ledger.add((value for _, value in pairs), pairs.values())
        except TypeError:  # not hashable
            raise ParameterError(OUTSIDE) from None


def _unique(part: npt.NDArray[Any]) -> tuple[list[Any], list[int]]:
    values, counts = np.unique(part, return_counts=True)
    return values.tolist(), counts.tolist()
