"""What the items on ensembles share: accuracies over seeds with their spreads, and drawing."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments import drawing
from experiments.arrays import Floats
from experiments.registry import Cell, Table

FOLDER = Path(__file__).parent
# Gains below it are rounding.
_SAME = 1e-9

thin = partial(drawing.line, markersize=2.6, linewidth=0.9)
"""Keywords of a thin curve, of which many fit into a panel."""


def error_note(*tables: Table) -> str:
    """Return a note on the largest standard error of tables, which is too small to draw."""
    errors = [error for table in tables for error in table.column("standard_error")]
    known = [error for error in errors if error is not None]
    return f"Standard errors are at most {max(known):.2g}." if known else ""


def error_of(values: Sequence[float] | Floats) -> float | None:
    """Return the standard error of a mean over seeds; None for one seed."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def measured(values: Floats, beside: Floats) -> dict[str, Cell]:
    """Return the mean over seeds and its standard error, and the same of the gain over others."""
    gains = values - beside
    return (
        {"accuracy": float(values.mean()), "standard_error": error_of(values)}
        | {"gain": float(gains.mean()), "gain_error": error_of(gains)}
        | {"seeds_ahead": int((gains > _SAME).sum()), "seeds": len(values)}
    )


def draw(axes: Axes, table: Table, across: str, up: str, looks: drawing.Looks) -> None:
    """Draw a curve for each method, and set the vertical limits around them and their errors."""
    drawing.draw(axes, table, across, up, looks, by="method")
    room(axes, table, up, looks)


def room(axes: Axes, table: Table, up: str, methods: Collection[str]) -> None:
    """Set the vertical limits around the curves of these methods and their errors."""
    errors = {"accuracy": "standard_error", "gain": "gain_error"}[up]
    ends = [
        row[up] + sign * (row[errors] or 0.0)
        for row in table.records
        if row["method"] in methods
        for sign in (-1, 1)
    ]
    air = 0.06 * (max(ends) - min(ends)) + 0.004
    axes.set_ylim(min(ends) - air, max(ends) + air)


def places(axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with a tick at each value."""
    axes.set_xscale("log")
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)
    axes.set_xlim(min(values) / 1.25, max(values) * 1.25)
