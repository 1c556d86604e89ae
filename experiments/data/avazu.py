"""Avazu click-through rates: users' clicks on sites, by attribute and subcategory.

The data set belongs to the Kaggle competition "Click-Through Rate Prediction" and may not be
redistributed. The file is read as a stream, and only its clicks are kept.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt import ParameterError
from experiments.data import refused
from experiments.data.groups import UserGroup

if TYPE_CHECKING:
    import polars as pl

SOURCE = (
    "download train.gz from www.kaggle.com/c/avazu-ctr-prediction/data; "
    "its terms do not allow redistribution"
)
_HEADER = (
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,"
    "app_category,device_id,device_ip,device_model,device_type,device_conn_type,"
    "C14,C15,C16,C17,C18,C19,C20,C21"
)
COLUMNS = tuple(_HEADER.split(","))
"""The header of train.csv."""
ATTRIBUTES = ("C1", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21")

_FORM = (
    f"each row after the header must have {len(COLUMNS)} values, with click 0 or 1 and integers in "
    "C1 and C14 to C21"
)


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


def load_clicks(path: str | Path, user: str = "device_id") -> Clicks:
    """Read the clicks of train.csv, plain or gzipped (told apart by its first bytes).

    Users are told apart by "device_id" as in the paper, or by "device_ip": in the published file
    most rows share one device_id, which stands for an unknown device.
    """
    if importlib.util.find_spec("polars") is None:
        raise ParameterError("polars is not installed; install the extra `data`.")
    import polars as pl

    numbers: dict[str, Any] = dict.fromkeys(("click", *ATTRIBUTES), pl.Int32)
    schema = {name: numbers.get(name, pl.String) for name in COLUMNS}
    used = pl.col("click", user, "site_id", *ATTRIBUTES)
    names = pl.col("user", "site")
    try:
        header = pl.scan_csv(path, glob=False, quote_char=None).collect_schema().names()
        if tuple(header) != COLUMNS:
            raise refused(path, "its first line must be the header of Avazu's train.csv")
        lines = pl.scan_csv(path, glob=False, schema=schema, quote_char=None)
        wrong = pl.any_horizontal(used.is_null()) | ~pl.col("click").is_in([0, 1])
        clicked = (
            lines.filter(pl.col("click") == 1)
            .select(pl.col(user).alias("user"), pl.col("site_id").alias("site"), *ATTRIBUTES)
            .with_columns(
                pl.when(names.str.len_bytes() == 8).then(
                    names.str.to_integer(base=16, dtype=pl.UInt32, strict=False)
                )
            )
        )
        # Of a column that is not parsed, polars would not see that its line is too long.
        frame, told = pl.collect_all(
            [clicked, lines.select(pl.len().alias("rows"), wrong.any().alias("wrong"))],
            engine="streaming",
            optimizations=pl.QueryOptFlags(projection_pushdown=False),
        )
    except FileNotFoundError:
        raise refused(path, f"it is missing; {SOURCE}") from None
    except OSError as error:
        raise refused(path, error) from None
    except pl.exceptions.PolarsError:
        raise refused(path, _FORM) from None
    if told["wrong"].item():
        raise refused(path, _FORM)
    if not frame.height:
        raise refused(path, "it holds no click")
    if frame["user"].null_count() or frame["site"].null_count():
        raise refused(path, "device and site names must be 8 hexadecimal digits")
    return Clicks(frame, told["rows"].item())


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
