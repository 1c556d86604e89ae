"""Counting one column of a file as a stream; only counts are held in memory.

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

    The categories must be all strings, all numbers or all booleans, and a Parquet column must hold
    the same kind of values; a categorical column holds strings. A CSV file has a header and holds
    text. For string categories the text is compared as it is ("01" is not "1"); for integers it is
    read as integers, for other numbers as floats; for booleans it must be true or false, in any
    case. Empty fields, unreadable text and missing values are records outside the alphabet; see
    `tally` on who may see that error. No message shows a value of the file.

    Args:
        path: a file ending in .csv or .parquet.
        column: name of the column.
        labels: the k categories in order, or k for 0..k-1.

    Raises:
        ParameterError: if polars is missing, the file cannot be read, the column is missing or of
            another kind, or a record is outside the alphabet.
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
        # The message of polars may quote a record.
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
    """Return the common kind of all categories."""
    types = {int} if isinstance(labels, range) else set(map(type, labels))
    for kind, allowed in (
        ("booleans", {bool}),
        ("strings", {str}),
        ("integers", {int}),
        ("numbers", {int, float}),
    ):
        if types <= allowed:
            return kind
    raise ParameterError(
        "labels must hold only strings, only numbers or only booleans to be looked for in a file."
    )


def _counted(
    pl: Polars, path: Path, column: str, labels: Sequence[Hashable], kind: str
) -> list[tuple[Any, int]]:
    """Return (value, rows) for values that may be categories, and (None, rows) for all others."""
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
        is_category = values.is_between(labels.start, labels.stop - 1)
        is_category &= values == values.floor() if not dtype.is_integer() else True
    else:
        # Rounding to the column's type may admit a non-category, which `counts_of` refuses.
        representable = [x for x in labels if not isinstance(x, int) or abs(x) < 1 << 63]
        categories = pl.Series(representable, strict=False).cast(dtype, strict=False).drop_nulls()
        is_category = values.is_in(categories.implode())
    # All values outside form one group: otherwise there could be as many groups as rows.
    grouped = scan.group_by(pl.when(is_category).then(values).alias("value")).agg(pl.len())
    return grouped.collect(engine="streaming").rows()
