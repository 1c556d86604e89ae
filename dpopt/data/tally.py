"""Counting records over a public alphabet, also those of a file; errors never show a record."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.files import check_target

# Categories whose counts are held: memory fixes it.
_MOST_LABELS = 100_000_000
# Said of a record that is none of the labels, which it does not repeat.
_OUTSIDE = (
    "data holds a record that is none of the labels (not shown, it is private); labels must be "
    "public and list every value that a record can take, in the records' own type, and none may "
    "be missing."
)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of the categories of a public alphabet.

    Attributes:
        labels: the k categories, in the caller's order: a tuple, or a range for 0..k-1.
        counts: records of each category, shape (k,), read-only.
    """

    labels: Sequence[Hashable]
    counts: IntVector

    @classmethod
    def of_counts(cls, counts: npt.ArrayLike | Mapping[Any, Any], labels: object) -> Tally:
        """Return a tally of counts.

        Args:
            counts: non-negative integers, shape (k,); or a mapping from categories, or a pandas
                column whose index names categories, in any order; missing categories count 0.
            labels: the k categories, or k.

        Raises:
            ParameterError: for another shape or other values.
        """
        labels = labels_of(labels)
        if isinstance(counts, Mapping):
            return tally(counts, labels)
        index = getattr(counts, "index", None)
        if _library(counts) == "pandas" and type(index).__name__ not in ("NoneType", "RangeIndex"):
            return tally(dict(zip(cast(Any, index), cast(Any, counts), strict=True)), labels)
        array = _as_integers(_checks.array("counts", counts))
        if array.shape != (len(labels),):
            raise ParameterError(
                f"counts has shape {array.shape}; it must be ({len(labels)},), one for each "
                "category of the alphabet."
            )
        array.setflags(write=False)
        return cls(labels, array)

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the columns "category" and "count", one line per category."""
        return {"category": list(self.labels), "count": self.counts.tolist()}


def labels_of(labels: object, least: int = 2) -> Sequence[Hashable]:
    """Return the categories of an alphabet, checked; a number k stands for 0..k-1."""
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        return range(_checks.integer("labels", labels, least, _MOST_LABELS))
    if isinstance(labels, range) and labels[least - 1 :] and not labels[_MOST_LABELS:]:
        return labels
    unordered = isinstance(labels, str | bytes | set | frozenset | Mapping | range)
    if unordered or not isinstance(labels, Iterable) or getattr(labels, "ndim", 1) != 1:
        raise ParameterError(
            f"labels is {_checks.shown(labels)}; it must be a sequence of categories, or "
            "their number."
        )
    labels = tuple(item.item() if isinstance(item, np.generic) else item for item in labels)
    try:
        distinct = len(set(labels))
    except TypeError:
        raise ParameterError("labels holds a category that is not hashable.") from None
    if distinct != len(labels) or distinct < least:
        raise ParameterError(
            f"labels has {len(labels)} categories, {distinct} of them distinct; it must have at "
            f"least {least}, none twice."
        )
    if any(item is None or (isinstance(item, float) and item != item) for item in labels):
        raise ParameterError(
            "labels holds a missing value (None or NaN); give it a name, such as 'missing', in "
            "the alphabet and in the data."
        )
    return labels


def tally(data: object, labels: object) -> Tally:
    """Count records over a public alphabet.

    The alphabet must be fixed before looking at the data: which categories occur is private, so a
    record outside it is an error, not a new category. The error shows no record, but depends on
    the data, so only the curator may see it: if values may be unforeseen or missing, map them to a
    category of their own beforehand.

    A record matches a category if they are equal in Python and both or neither are booleans: 1.0
    matches 1, but "1" and True do not. None, NaN and masked entries are outside every alphabet.

    Args:
        data: the records: a sequence, an iterator, a one-dimensional array, a pandas or polars
            column; or a mapping from categories to counts; or a `Tally` over the same categories.
        labels: the k categories in order, or k for 0..k-1.

    Raises:
        ParameterError: if a record is outside the alphabet, or data is of another kind.

    Example:
        >>> from dpopt import roo
        >>> roo.tally(["Bern", "Chur", "Bern"], ["Basel", "Bern", "Chur"]).counts.tolist()
        [0, 2, 1]
    """
    labels = labels_of(labels)
    if isinstance(data, Tally):
        same = len(data.labels) == len(labels) and all(
            a == b and _is_boolean(a) == _is_boolean(b)
            for a, b in zip(data.labels, labels, strict=True)
        )
        if not same:
            raise ParameterError("data is a tally over another alphabet; they must be the same.")
        return data
    return Tally.of_counts(_counts_of(_pairs(data), labels), labels)


def tally_file(path: str | Path, column: str, labels: Iterable[str]) -> Tally:
    """Count a column of text of a CSV or Parquet file over a public alphabet, without loading it.

    Needs polars: ``pip install 'dpopt[data]'``. A CSV file has a header. Its text is compared as
    it is ("01" is not "1"). A categorical column of a Parquet file holds text. Empty fields,
    unreadable text and missing values are records outside the alphabet; see `tally` on who may see
    that error. No message shows a value of the file.

    Args:
        path: a file ending in .csv or .parquet.
        column: name of the column.
        labels: the k categories in order, all of them text.

    Raises:
        ParameterError: if polars is missing, the file cannot be read, the column is missing or
            holds no text, or a record is outside the alphabet.
    """
    names = labels_of(labels)
    if not isinstance(path, str | Path):
        raise ParameterError(f"path is {_checks.shown(path)}; it must be the path of a file.")
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet"):
        raise ParameterError(f"path is {str(path)!r}; it must end in .csv or .parquet.")
    check_target(target)
    if not target.is_file():
        raise ParameterError(f"path is {str(path)!r}; there is no such file.")
    if set(map(type, names)) != {str}:
        raise ParameterError("labels must hold only text to be looked for in a file.")
    try:
        pl: Any = importlib.import_module("polars")
    except ImportError:
        raise ParameterError(
            "tally_file needs polars; install it with pip install 'dpopt[data]'."
        ) from None
    try:
        text = target.suffix.lower() == ".csv"
        scan = pl.scan_csv(target, glob=False, infer_schema=False) if text else None
        scan = pl.scan_parquet(target, glob=False) if scan is None else scan
        dtype = scan.collect_schema().get(column)
        if dtype not in (pl.String, pl.Categorical, pl.Enum):
            what = "the file has none such" if dtype is None else f"it holds {dtype}, no text"
            raise ParameterError(f"column is {column!r}; {what}.")
        values = pl.col(column).cast(pl.String)
        # All values outside form one group: otherwise there could be as many groups as rows.
        group = pl.when(values.is_in(pl.Series(names).implode())).then(values).alias("value")
        counted = scan.group_by(group).agg(pl.len()).collect(engine="streaming").rows()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        # The message of polars may quote a record.
        raise ParameterError(
            f"path is {str(target)!r}; it cannot be read as a {target.suffix.lower()} file."
        ) from None
    if any(value is None for value, _ in counted):
        raise ParameterError(_OUTSIDE)
    return Tally.of_counts(_counts_of(counted, names), names)


def _counts_of(pairs: Iterable[tuple[Any, int]], labels: Sequence[Hashable]) -> IntVector:
    """Return the counts of the categories, shape (k,), from pairs of a value and its count."""
    counts = np.zeros(len(labels), dtype=np.int64)
    numbered = isinstance(labels, range)
    indices = {} if numbered else {(_is_boolean(x), x): index for index, x in enumerate(labels)}
    for value, count in pairs:
        if not count:
            continue
        boolean, index = _is_boolean(value), None
        try:
            if not numbered:
                index = indices.get((boolean, value))
            elif isinstance(value, Number) and not boolean and int(cast(int, value)) == value:
                index = labels.index(int(cast(int, value)))
        except (TypeError, ValueError, OverflowError):  # not hashable, NaN, infinite or no category
            index = None
        if index is None:
            raise ParameterError(_OUTSIDE) from None
        counts[index] += count
    return counts


def _pairs(data: Any) -> Iterable[tuple[Any, int]]:  # noqa: ANN401
    """Return pairs of a value and its count."""
    if isinstance(data, Mapping):
        return zip(data, _as_integers(np.array([*data.values()] or [0])).tolist(), strict=False)
    if _library(data) in ("pandas", "polars") and hasattr(data, "to_list"):
        data = data.to_list()
    elif hasattr(data, "__array__") and not _is_table(data):
        if np.ma.is_masked(data):
            raise ParameterError(_OUTSIDE)
        data = np.asarray(data)
        if data.ndim != 1:
            raise ParameterError(f"data has {data.ndim} dimensions; records have one.")
        if data.dtype.kind not in "biufUSOT":
            raise ParameterError(
                f"data has dtype {data.dtype}; records are numbers, strings, booleans or objects."
            )
        if data.dtype.kind in "iu" and data.size and 0 <= data.min() <= data.max() <= data.size:
            return enumerate(np.bincount(data.astype(np.int64)).tolist())
        if data.dtype.kind not in "OT":
            values, counts = np.unique(data, return_counts=True)
            return zip(values.tolist(), counts.tolist(), strict=True)
        data = data.tolist()
    elif isinstance(data, str | bytes) or not isinstance(data, Iterable) or _is_table(data):
        raise ParameterError(
            f"data is of type {type(data).__name__}; it must hold records, such as a sequence, an "
            "array or one column of a table."
        )
    try:
        if isinstance(data, list) and {bool, np.bool_}.isdisjoint(map(type, data)):
            return Counter(data).items()
        # True == 1 in Python, so booleans are counted separately.
        distinct = Counter((_is_boolean(value), value) for value in data)
    except TypeError:  # not hashable
        raise ParameterError(_OUTSIDE) from None
    return ((value, count) for (_, value), count in distinct.items())


def _as_integers(array: npt.NDArray[Any]) -> IntVector:
    finite = array.dtype.kind == "f" and bool(np.all(np.isfinite(array) & (array == array.round())))
    integral = array.dtype.kind in "iu" or finite
    if not integral or np.any(array < 0) or np.any(array > 1e15):
        raise ParameterError("counts must hold whole numbers from 0 to 1e15, no others.")
    return array.astype(np.int64)


def _library(data: object) -> str:
    return type(data).__module__.split(".")[0]


def _is_table(data: object) -> bool:
    return hasattr(type(data), "columns")


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool | np.bool_)
