"""What the items on ensembles share: ways of choosing a label, spreads, checks, and drawing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments.arrays import Floats
from experiments.registry import Cell, Table

# Gains below it are rounding.
SAME = 1e-9


Looks = Mapping[str, tuple[str, dict[str, Any]]]
"""Label and line of each way of choosing a label, in figures."""


def error_note(*tables: Table) -> str:
    """Return a note on the largest standard error of tables, which is too small to draw."""
    errors = [error for table in tables for error in table.column("standard_error")]
    known = [error for error in errors if error is not None]
    return f"Standard errors are at most {max(known):.2g}." if known else ""


def error_of(values: Sequence[float] | Floats) -> float | None:
    """Return the standard error of a mean over seeds; None for one seed."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def meanings(known: Mapping[str, str]) -> Table:
    """Return the ways of choosing a label, in words."""
    rows = [{"method": name, "meaning": meaning} for name, meaning in known.items()]
    return Table.of(rows)


def measured(values: Floats, beside: Floats) -> dict[str, Cell]:
    """Return the mean over seeds and its standard error, and the same of the gain over others."""
    gains = values - beside
    return {
        "accuracy": float(values.mean()),
        "standard_error": error_of(values),
        "gain": float(gains.mean()),
        "gain_error": error_of(gains),
        "seeds_ahead": int((gains > SAME).sum()),
        "seeds": len(values),
    }


def draw(axes: Axes, table: Table, across: str, up: str, looks: Looks) -> None:
    """Draw a curve for each method."""
    for method, (label, look) in looks.items():
        part = table.select(method=method)
        line = {**look, "markersize": 2.6, "linewidth": 0.9}
        if part.rows:
            axes.plot(part.column(across), part.column(up), label=label, **line)


def room(axes: Axes, table: Table, up: str, looks: Collection[str] | None = None) -> None:
    """Set the vertical limits around the curves of these methods, or of all, and their errors."""
    errors = {"accuracy": "standard_error", "gain": "gain_error"}[up]
    ends = [
        row[up] + sign * (row[errors] or 0.0)
        for row in table.records
        if looks is None or row["method"] in looks
        for sign in (-1, 1)
    ]
    low, high = min(ends), max(ends)
    air = 0.06 * (high - low) + 0.004
    axes.set_ylim(low - air, high + air)


def places(axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with a tick at each value."""
    axes.set_xscale("log")
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)
    axes.set_xlim(min(values) / 1.25, max(values) * 1.25)
