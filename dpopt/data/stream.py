"""Counting one column of a file, a part at a time; only counts are kept.

Needs polars: ``pip install 'dpopt[data]'``.
"""

from __future__ import annotations

import importlib
import stat
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from dpopt._errors import ParameterError
from dpopt.data.tally import OUTSIDE, Ledger, Tally, is_boolean, letters_of

# polars belongs to an extra, so its modules and expressions have no static type here.
Polars = Any

_ENDINGS = (".csv", ".parquet")
_LARGEST_INTEGER = (1 << 63) - 1


def tally_file(path: str | Path, column: str, alphabet: object) -> Tally:
    """Count a column of a CSV or Parquet file over a public alphabet, without loading it.

    The letters must all be strings, all numbers or all booleans. A Parquet column must have the
    same kind of values; categories are strings. A CSV file has a header and holds text, which is
    compared with strings as it stands ("01" is not "1"), read as integers if all letters are
    integers and as floats if some are not, and taken for a boolean if it is true or false in any
    case. Empty fields, text that cannot be read so, and missing values are records outside the
    alphabet; see `tally` on what that error tells. No message shows what is in the file.

    Args:
        path: a file ending in .csv or .parquet.
        column: its name.
        alphabet: the letters in order, or k for 0..k-1.

    Raises:
        ParameterError: if polars is missing, the file cannot be read, it has no such column or
            one of another kind, or a record is outside the alphabet.
    """
    letters = letters_of(alphabet)
    kind = _kind(letters)
    ledger = Ledger(letters)
    target = _file(path)
    pl = _polars()
    failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
    try:
        scan = _scan(pl, target)
        types = dict(scan.collect_schema())
        if column not in types:
            raise ParameterError(f"column is {column!r}; the file {str(target)!r} has none such.")
        text = target.suffix.lower() == ".csv"
        values, dtype = _values(pl, column, types[column], kind, text=text)
        counted = _counted(pl, scan, values, dtype, letters)
    except failures:
        # What polars says may quote a record.
        raise ParameterError(
            f"path is {str(target)!r}; it cannot be read as a {target.suffix.lower()} file."
        ) from None
    for value, count in counted:
        if value is None:
            raise ParameterError(OUTSIDE)
        ledger.add([value], [count])
    return Tally.of_counts(ledger.counts, letters)


def _polars() -> Polars:
    try:
        return importlib.import_module("polars")
    except ImportError:
        raise ParameterError(
            "tally_file needs polars; install it with pip install 'dpopt[data]'."
        ) from None


def _file(path: str | Path) -> Path:
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise ParameterError(f"path is {path!r}; it must be the path of a file.")
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise ParameterError(f"path is {str(path)!r}; it must end in {' or '.join(_ENDINGS)}.")
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):
        raise ParameterError(f"path is {str(path)!r}; there is no such file.") from None
    if stat.S_ISDIR(mode):
        raise ParameterError(f"path is {str(path)!r}, a directory; it must be a file.")
    if not stat.S_ISREG(mode):
        raise ParameterError(f"path is {str(path)!r}, a device or a pipe; it must be a file.")
    return target


def _kind(letters: Sequence[Hashable]) -> str:
    """Return "integers", "numbers", "booleans" or "strings": what all letters are."""
    if isinstance(letters, range):
        return "integers"
    if all(map(is_boolean, letters)):
        return "booleans"
    if all(isinstance(letter, str) for letter in letters):
        return "strings"
    if not any(map(is_boolean, letters)):
        if all(isinstance(letter, int) for letter in letters):
            return "integers"
        if all(isinstance(letter, int | float) for letter in letters):
            return "numbers"
    raise ParameterError(
        "alphabet must hold only strings, only numbers or only booleans to be looked for in a file."
    )


def _scan(pl: Polars, path: Path) -> Polars:
    if path.suffix.lower() == ".parquet":
        return pl.scan_parquet(path, glob=False)
    return pl.scan_csv(path, glob=False, infer_schema=False)


def _values(
    pl: Polars, column: str, dtype: Polars, kind: str, *, text: bool
) -> tuple[Polars, Polars]:
    """Return the expression of a column's values in the kind of the letters, and their type.

    Raises:
        ParameterError: if a Parquet column is of another kind.
    """
    values = pl.col(column)
    if text:
        if kind == "booleans":
            lower = values.str.to_lowercase()
            return pl.when(lower.is_in(["true", "false"])).then(lower == "true"), pl.Boolean
        parsed = {"integers": pl.Int64, "numbers": pl.Float64, "strings": pl.String}[kind]
        return values.cast(parsed, strict=False), parsed
    number = dtype.is_integer() or dtype.is_float()
    fits = {
        "booleans": dtype == pl.Boolean,
        "strings": dtype in (pl.String, pl.Categorical, pl.Enum),
        "integers": number,
        "numbers": number,
    }
    if not fits[kind]:
        raise ParameterError(f"column is {column!r}, which holds {dtype}; the letters are {kind}.")
    return (values.cast(pl.String), pl.String) if kind == "strings" else (values, dtype)


def _counted(
    pl: Polars, scan: Polars, values: Polars, dtype: Polars, letters: Sequence[Hashable]
) -> list[tuple[Any, int]]:
    """Return (value, rows) of what may be letters, and (None, rows) of all else together."""
    value = pl.col("value")
    if isinstance(letters, range) and letters.step == 1 and _fits(letters.stop):
        known = value.is_between(letters.start, letters.stop - 1)
        if not dtype.is_integer():
            known &= value == value.floor()
    else:
        known = value.is_in(_wanted(pl, letters, dtype).implode())
    # One group for all that is outside, or as many distinct values as rows would be kept.
    grouped = (
        scan.select(values.alias("value"))
        .group_by(pl.when(known).then(value).alias("value"))
        .agg(pl.len().alias("rows"))
    )
    return grouped.collect(engine="streaming").rows()


def _wanted(pl: Polars, letters: Sequence[Hashable], dtype: Polars) -> Polars:
    """Return the letters to look for, in the column's type.

    Those that it cannot hold do not occur. One that the type rounds may let in a value that is no
    letter; the ledger refuses it.
    """
    held = [letter for letter in letters if not isinstance(letter, int) or _fits(letter)]
    return pl.Series(held, strict=False).cast(dtype, strict=False).drop_nulls()


def _fits(integer: int) -> bool:
    return abs(integer) <= _LARGEST_INTEGER
