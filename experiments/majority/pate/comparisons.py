"""Tables 1, 6, 8 and 10 of the DaRRM paper beside the accuracies on the recorded votes."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from statistics import fmean
from typing import Any

from experiments.majority.pate.published import METHODS
from experiments.registry import Comparison, Table
from experiments.verdicts import observed

_NAMES = {"gnmax": "GNMax", "subsampling": "Subsampling", "surrogate": "The optimised gamma"}
# The paper's means are over ten draws and have two decimals.
_DRAWS, _HALF_UNIT, _ERRORS = 10, 0.005, 3
_VOTES = "exact accuracy on recorded votes; the teachers are not the paper's"


def comparisons(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare every printed accuracy, and the orders that the paper sees in them.

    Args:
        tables: "accuracy" and "queries" of the run.
    """
    accuracy, queries = tables["accuracy"], tables["queries"]
    found = [row for method in METHODS for row in _printed(queries, method)]
    allowances = list(dict.fromkeys(accuracy.column("m")))
    at = {
        m: dict(zip(part.column("method"), part.column("accuracy"), strict=True))
        for m in allowances
        for part in [accuracy.select(m=m)]
    }
    if 3 in at:
        found.append(_highest(at[3]))
    found += [_default(at), _private_teachers(at)]
    return tuple(found)


def _printed(queries: Table, method: str) -> list[Comparison]:
    """Compare the printed means of one method; none if the paper has none for these votes."""
    part: list[dict[str, Any]] = [
        row
        for cells in queries.select(method=method).rows
        for row in [dict(zip(queries.columns, cells, strict=True))]
        if row["printed_mean"] is not None
    ]
    if not part:
        return []
    gaps = [row["exact_minus_printed"] for row in part]
    near = [
        abs(gap) <= _ERRORS * row["printed_std"] / sqrt(_DRAWS) + _HALF_UNIT
        for gap, row in zip(gaps, part, strict=True)
    ]
    last = max(row["Q"] for row in part)
    printed = ", ".join(f"{row['printed_mean']:.2f}" for row in part if row["Q"] == last)
    ours = ", ".join(f"{row['exact_mean']:.3f}" for row in part if row["Q"] == last)
    allowances = ", ".join(str(row["m"]) for row in part if row["Q"] == last)
    return [
        observed(
            f"{_NAMES[method]}: {printed} at m = {allowances}, Q = {last}, and for each other Q.",
            f"{ours}; {sum(near)} of {len(part)} within three standard errors of the printed, mean "
            f"difference {fmean(gaps):+.3f}.",
            _VOTES,
            alike=all(near),
        )
    ]


def _highest(at: Mapping[str, float]) -> Comparison:
    best = max(METHODS, key=lambda method: at[method])
    return observed(
        "At m = 3 the optimised gamma has the highest accuracy of the three (Table 1).",
        ", ".join(f"{_NAMES[method]} {at[method]:.3f}" for method in METHODS) + ".",
        _VOTES,
        alike=best == "surrogate",
    )


def _default(at: Mapping[int, Mapping[str, float]]) -> Comparison:
    """Say where this package's own default loses to the paper's gamma."""
    behind = [m for m, row in at.items() if row["expected-error"] < row["surrogate"] - 1e-9]
    paper, default, common = (
        ", ".join(f"{row[method]:.3f}" for row in at.values())
        for method in ("surrogate", "expected-error", "common-p")
    )
    return observed(
        f"The paper's gamma is right with {paper} on these votes at m = {_list(list(at))}.",
        f"This package's default, for independent p_i, loses at m = {_list(behind)}: {default}; "
        f"for one p common to all {common}.",
        _VOTES,
        alike=not behind,
    )


def _private_teachers(at: Mapping[int, Mapping[str, float]]) -> Comparison:
    """Judge private teachers against GNMax with the noise that its label needs."""
    ahead = [m for m, row in at.items() if row["surrogate"] > row["gnmax"]]
    still = [m for m, row in at.items() if row["surrogate"] > row["gnmax-label"]]
    return observed(
        "Private teachers with the optimised gamma are ahead of GNMax (Table 1 and its like).",
        f"At m = {_list(ahead)}; of GNMax with the least noise for its label only at m = "
        f"{_list(still)}.",
        _VOTES,
        alike=still == list(at),
    )


def _list(allowances: list[int]) -> str:
    return ", ".join(map(str, allowances)) or "none"
