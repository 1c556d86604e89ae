"""Counting one column of a file, a part at a time; only counts are kept.

Needs polars: ``pip install 'dpopt[data]'``.
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt.data.tally import OUTSIDE, Tally, counts_of, labels_of
from dpopt.files import check_target

# polars belongs to an extra, so its modules and expressions have no static type here.
Polars = Any


def tally_file(path: str | Path, column: str, labels: object) -> Tally:
    """Count a column of a CSV or Parquet file over a public alphabet, without loading it.

    The categories must all be strings, all numbers or all booleans. A Parquet column must have the
    same kind of values; categories are strings. A CSV file has a header and holds text, which is
    compared with strings as it stands ("01" is not "1"), read as integers if all categories are
    integers and as floats if some are not, and taken for a boolean if it is true or false in any
    case. Empty fields, text that cannot be read so, and missing values are records outside the
    alphabet; see `tally` on what that error tells. No message shows what is in the file.

    Args:
        path: a file ending in .csv or .parquet.
        column: its name.
        labels: the categories in order, or k for 0..k-1.

    Raises:
        ParameterError: if polars is missing, the file cannot be read, it has no such column or
            one of another kind, or a record is outside the alphabet.
    """
    labels = labels_of(labels)
    kind, target = _kind(labels), _file(path)
    try:
        pl: Polars = importlib.import_module("polars")
    except ImportError:
        raise ParameterError(
            "tally_file needs polars; install it with pip install 'dpopt[data]'."
        ) from None
    try:
        counted = _counted(pl, target, column, labels, kind)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        # What polars says may quote a record.
        raise ParameterError(
            f"path is {str(target)!r}; it cannot be read as a {target.suffix.lower()} file."
        ) from None
    if any(value is None for value, _ in counted):
        raise ParameterError(OUTSIDE)
    return Tally.of_counts(counts_of(counted, labels), labels)


def _file(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise ParameterError(f"path is {shown(path)}; it must be the path of a file.")
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet"):
        raise ParameterError(f"path is {str(path)!r}; it must end in .csv or .parquet.")
    check_target(target)
    if not target.is_file():
        raise ParameterError(f"path is {str(path)!r}; there is no such file.")
    return target


def _kind(labels: Sequence[Hashable]) -> str:
    """Return what all categories are."""
    types = {int} if isinstance(labels, range) else set(map(type, labels))
    for kind, held in (
        ("booleans", {bool}),
        ("strings", {str}),
        ("integers", {int}),
        ("numbers", {int, float}),
    ):
        if types <= held:
            return kind
    raise ParameterError(
        "labels must hold only strings, only numbers or only booleans to be looked for in a file."
    )


def _counted(
    pl: Polars, path: Path, column: str, labels: Sequence[Hashable], kind: str
) -> list[tuple[Any, int]]:
    """Return (value, rows) of what may be categories, and (None, rows) of all else together."""
    text = path.suffix.lower() == ".csv"
    scan = pl.scan_csv(path, glob=False, infer_schema=False) if text else None
    scan = pl.scan_parquet(path, glob=False) if scan is None else scan
    types = dict(scan.collect_schema())
    if column not in types:
        raise ParameterError(f"column is {column!r}; the file {str(path)!r} has none such.")
    values, dtype = pl.col(column), types[column]
    number = dtype.is_integer() or dtype.is_float()
    fits = {"booleans": dtype == pl.Boolean, "integers": number, "numbers": number}
    fits["strings"] = dtype in (pl.String, pl.Categorical, pl.Enum)
    read = {"integers": pl.Int64, "numbers": pl.Float64, "strings": pl.String}
    if text and kind == "booleans":
        lower, dtype = values.str.to_lowercase(), pl.Boolean
        values = pl.when(lower.is_in(["true", "false"])).then(lower == "true")
    elif text or (kind == "strings" and fits[kind]):
        dtype = read[kind]
        values = values.cast(dtype, strict=False)
    elif not fits[kind]:
        raise ParameterError(
            f"column is {column!r}, which holds {dtype}; the categories are {kind}."
        )
    if isinstance(labels, range) and labels.step == 1:
        known = values.is_between(labels.start, labels.stop - 1)
        known &= values == values.floor() if not dtype.is_integer() else True
    else:
        # What the type rounds may let in a value that is no category, which is refused later.
        held = [x for x in labels if not isinstance(x, int) or abs(x) < 1 << 63]
        wanted = pl.Series(held, strict=False).cast(dtype, strict=False).drop_nulls()
        known = values.is_in(wanted.implode())
    # One group for all that is outside, or as many distinct values as rows would be kept.
    grouped = scan.group_by(pl.when(known).then(values).alias("value")).agg(pl.len())
    return grouped.collect(engine="streaming").rows()
