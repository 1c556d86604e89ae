"""Avazu click-through rates: users' clicks on sites, by attribute and subcategory.

The data set belongs to the Kaggle competition "Click-Through Rate Prediction" and may not be
redistributed. The file is read in blocks, and only its clicks are kept.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt import ParameterError
from experiments.data.groups import UserGroup

if TYPE_CHECKING:
    import polars as pl

SOURCE = (
    "download train.gz from www.kaggle.com/c/avazu-ctr-prediction/data; "
    "its terms do not allow redistribution"
)
_HEADER = (
    b"id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,"
    b"app_category,device_id,device_ip,device_model,device_type,device_conn_type,"
    b"C14,C15,C16,C17,C18,C19,C20,C21\n"
)
COLUMNS = tuple(_HEADER.decode().strip().split(","))
"""The header of train.csv."""
ATTRIBUTES = ("C1", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21")

_BLOCK = 1 << 26
_GZIP = b"\x1f\x8b"
_File = gzip.GzipFile | io.BufferedReader


@dataclass(frozen=True)
class Clicks:
    """The clicks of a file.

    Attributes:
        frame: columns user and site (the 8 hexadecimal digits as a number) and the attributes;
            one row for each click.
        rows: rows of the file, with those that were not clicked.
    """

    frame: pl.DataFrame
    rows: int


def load_clicks(path: str | Path, user: str = "device_id", block: int = _BLOCK) -> Clicks:
    """Read the clicks of train.csv, plain or gzipped (told apart by its first bytes).

    Memory is one block and 44 bytes for each click.

    Args:
        path: the file.
        user: column that tells users apart: "device_id" as in the paper, or "device_ip". In the
            published file most rows share one device_id, which stands for an unknown device.
        block: bytes read at once, at least 1.

    Raises:
        ParameterError: if polars is not installed, or the file is missing or malformed.
    """
    if importlib.util.find_spec("polars") is None:
        raise ParameterError("polars is not installed; install the extra `data`.")
    path = Path(path)
    try:
        with _opened(path) as file:
            return _read(path, file, user, block)
    except FileNotFoundError:
        raise ParameterError(f"path is {str(path)!r}, which is missing; {SOURCE}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ParameterError(f"path is {str(path)!r}; its gzip stream is damaged.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ParameterError(f"path is {str(path)!r}; {reason}.") from None


def _opened(path: Path) -> _File:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path, "rb") if packed else path.open("rb")


def _read(path: Path, file: _File, user: str, block: int) -> Clicks:
    import polars as pl

    header = tuple(file.readline(4096).decode("latin-1").strip().split(","))
    if header != COLUMNS:
        raise ParameterError(
            f"path is {str(path)!r}; its first line must be the header of Avazu's train.csv."
        )
    frames, rows = [], 0
    for content in _blocks(file, block):
        parsed = _parsed(path, content, rows, user)
        rows += parsed.height
        frames.append(_clicked(path, parsed))
    if not frames or not (frame := pl.concat(frames, rechunk=False)).height:
        raise ParameterError(f"path is {str(path)!r}; it holds no click.")
    return Clicks(frame, rows)


def _blocks(file: _File, size: int) -> Iterator[bytes]:
    """Yield whole lines, about ``size`` bytes at a time."""
    rest = b""
    while chunk := file.read(size):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield rest + chunk[:end]
            rest = chunk[end:]
        else:
            rest += chunk
    if rest:
        yield rest


def _parsed(path: Path, content: bytes, before: int, user: str) -> pl.DataFrame:
    import polars as pl

    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    # Polars tells a line too short by a missing last value, but says nothing of one too long.
    if content.count(b",") != lines * (len(COLUMNS) - 1):
        raise _malformed(path, before, lines)
    numbers: dict[str, Any] = dict.fromkeys(("click", *ATTRIBUTES), pl.Int32)
    names = ["click", user, "site_id", *ATTRIBUTES]
    try:
        frame = pl.read_csv(
            io.BytesIO(_HEADER + content),
            schema={name: numbers.get(name, pl.String) for name in COLUMNS},
            columns=names,
            quote_char=None,
        )
    except pl.exceptions.PolarsError:
        raise _malformed(path, before, lines) from None
    bad = frame.select(
        pl.any_horizontal(pl.all().is_null()) | ~pl.col("click").is_in([0, 1])
    ).to_series()
    if bad.any():
        raise _malformed(path, before + int(bad.arg_max() or 0), 1)
    return frame.rename({user: "user", "site_id": "site"})


def _malformed(path: Path, before: int, rows: int) -> ParameterError:
    where = f"row {before + 1}" if rows <= 1 else f"a row in {before + 1}..{before + rows}"
    return ParameterError(
        f"path is {str(path)!r}; {where} after the header must have {len(COLUMNS)} values, with "
        "click 0 or 1 and integers in C1 and C14 to C21."
    )


def _clicked(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the clicks, the hexadecimal names as numbers."""
    import polars as pl

    clicks = frame.filter(pl.col("click") == 1).select(
        *(
            pl.when(pl.col(name).str.len_bytes() == 8)
            .then(pl.col(name).str.to_integer(base=16, dtype=pl.UInt32, strict=False))
            .alias(name)
            for name in ("user", "site")
        ),
        *ATTRIBUTES,
    )
    if clicks["user"].null_count() or clicks["site"].null_count():
        raise ParameterError(
            f"path is {str(path)!r}; device and site names must be 8 hexadecimal digits."
        )
    return clicks


def subcategories(
    clicks: Clicks,
    attribute: str,
    *,
    sites: int = 100,
    minimum_clicks: int = 20,
    minimum_users: int = 1000,
) -> Iterator[UserGroup]:
    """Yield the subcategories of one attribute that have enough users, by value.

    A subcategory is the clicks with one value of the attribute. Its categories are the sites with
    the most clicks in it (ties: the smaller name first); its users those with enough clicks on
    these sites. Categories that none of these users clicked are left out.
    """
    import polars as pl

    counts = clicks.frame.group_by(attribute, "site", "user").agg(pl.len().alias("count"))
    top = (
        counts.group_by(attribute, "site")
        .agg(pl.col("count").sum().alias("total"))
        .sort(attribute, "total", "site", descending=[False, True, False])
        .with_columns(pl.int_range(pl.len()).over(attribute).alias("category"))
        .filter(pl.col("category") < sites)
    )
    enough = pl.col("count").sum().over(attribute, "user") >= minimum_clicks
    kept = counts.join(top.drop("total"), on=[attribute, "site"]).filter(enough)
    many = pl.col("user").n_unique().over(attribute) >= minimum_users
    kept = kept.filter(many).sort(attribute, "user", "category")
    for frame in kept.partition_by(attribute, maintain_order=True):
        value = frame[attribute][0]
        names = top.filter(pl.col(attribute) == value)["site"]
        categories = tuple(f"{name:08x}" for name in names)
        yield _group(attribute, str(value), categories, frame)


def _group(
    attribute: str, value: str, categories: tuple[str, ...], frame: pl.DataFrame
) -> UserGroup:
    _, rows = np.unique(frame["user"].to_numpy(), return_inverse=True)
    counts = np.zeros((int(rows[-1]) + 1, len(categories)), dtype=np.int64)
    counts[rows, frame["category"].to_numpy()] = frame["count"].to_numpy()
    return UserGroup.of(attribute, value, categories, counts)
