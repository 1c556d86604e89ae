"""Counting one column of a file as a stream; only counts are held in memory.

Needs polars: ``pip install 'dpopt[data]'``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt.data.tally import OUTSIDE, Tally, counts_of, labels_of
from dpopt.files import check_target


def tally_file(path: str | Path, column: str, labels: Iterable[str]) -> Tally:
    """Count a column of text of a CSV or Parquet file over a public alphabet, without loading it.

    A CSV file has a header. Its text is compared as it is ("01" is not "1"). A categorical column
    of a Parquet file holds text. Empty fields, unreadable text and missing values are records
    outside the alphabet; see `tally` on who may see that error. No message shows a value of the
    file.

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
        raise ParameterError(f"path is {shown(path)}; it must be the path of a file.")
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
        raise ParameterError(OUTSIDE)
    return Tally.of_counts(counts_of(counted, names), names)
