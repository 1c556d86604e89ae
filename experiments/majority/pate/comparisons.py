"""Tables 1, 6, 8 and 10 of the DaRRM paper beside the accuracies on the recorded votes.

Three training runs give wide intervals: that a printed mean lies within one says little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from experiments.majority.pate.published import METHODS
from experiments.majority.pate.rule import ORDERED, WITHIN
from experiments.registry import Comparison, Table
from experiments.verdicts import not_comparable, observed

_NAMES = {"gnmax": "GNMax", "subsampling": "Subsampling", "surrogate": "The optimised gamma"}
_VOTES = "exact accuracy on recorded votes; the teachers are not the paper's"
_ONE_RUN = "one training run has no spread"

Runs = Mapping[str, Sequence[float]]


def comparisons(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare every printed accuracy, and the orders that the paper sees in them.

    Args:
        tables: "accuracy" and "queries" of the run.
    """
    accuracy, queries = tables["accuracy"], tables["queries"]
    found = [row for method in METHODS for row in _printed(queries, method)]
    at = {m: _runs(accuracy.select(m=m)) for m in dict.fromkeys(accuracy.column("m"))}
    if 3 in at:
        found.append(_highest(at[3]))
    return (*found, _default(at), _private_teachers(at))


def _runs(accuracy: Table) -> Runs:
    """Return the accuracy of every training run, by method."""
    seeds = [name for name in accuracy.columns if name.startswith("seed_")]
    columns = zip(*(accuracy.column(name) for name in seeds), strict=True)
    return dict(zip(accuracy.column("method"), columns, strict=True))


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
    last = max(row["Q"] for row in part)
    shown = [row for row in part if row["Q"] == last]
    printed = ", ".join(f"{row['printed_mean']:.2f}" for row in shown)
    allowances = ", ".join(str(row["m"]) for row in shown)
    ours = ", ".join(_with_spread(row["exact_mean"], row["run_spread"]) for row in shown)
    words = f"{_NAMES[method]}: {printed} at m = {allowances}, Q = {last}, and for each other Q."
    name = f"Tables 1, 6, 8 and 10, {method}"
    gaps = fmean(row["exact_minus_printed"] for row in part)
    if any(row["within"] is None for row in part):
        found = f"{ours}; mean difference {gaps:+.3f}."
        return [not_comparable(words, found, _VOTES, why=_ONE_RUN, name=name)]
    near = sum(row["within"] for row in part)
    widths = [row["allowed_difference"] for row in part]
    return [
        observed(
            words,
            f"{ours}; {near} of {len(part)} within {min(widths):.2f} to {max(widths):.2f}, mean "
            f"difference {gaps:+.3f}.",
            _VOTES,
            alike=near == len(part),
            rule=WITHIN,
            name=name,
        )
    ]


def _with_spread(mean: float, spread: float | None) -> str:
    return f"{mean:.3f}" if spread is None else f"{mean:.3f} ({spread:.3f})"


def _highest(at: Runs) -> Comparison:
    runs = list(zip(*(at[method] for method in METHODS), strict=True))
    first = sum(max(run) == run[METHODS.index("surrogate")] for run in runs)
    means = ", ".join(f"{_NAMES[method]} {fmean(at[method]):.3f}" for method in METHODS)
    return observed(
        "At m = 3 the optimised gamma has the highest accuracy of the three (Table 1).",
        f"In {first} of {len(runs)} training runs; {means} in the mean.",
        _VOTES,
        alike=first == len(runs),
        rule=ORDERED,
        name="Table 1, order",
    )


def _default(at: Mapping[int, Runs]) -> Comparison:
    """Say where this package's own default loses to the paper's gamma: in the mean, of how many."""
    paper, default, common = (
        ", ".join(f"{fmean(row[method]):.3f}" for row in at.values())
        for method in ("surrogate", "expected-error", "common-p")
    )
    behind = {
        m: sum(a < b - 1e-9 for a, b in zip(row["expected-error"], row["surrogate"], strict=True))
        for m, row in at.items()
        if fmean(row["expected-error"]) < fmean(row["surrogate"]) - 1e-9
    }
    where = ", ".join(f"{m} ({lost} runs)" for m, lost in behind.items()) or "none"
    return observed(
        f"The paper's gamma is right with {paper} on these votes at m = {_list(list(at))}.",
        f"This package's default, for independent p_i, loses at m = {where}: {default}; for one p "
        f"common to all {common}.",
        _VOTES,
        alike=not behind,
        rule="agrees if the default's mean over the runs is nowhere lower",
        name="the default prior on real votes",
    )


def _private_teachers(at: Mapping[int, Runs]) -> Comparison:
    """Judge private teachers against GNMax at the same loss: with the noise that its label needs.

    The paper's sigma makes GNMax's noisy counts private; its label spends less than DaRRM's.
    """
    ahead, still, behind = (
        [m for m, row in at.items() if _always(row[better], row[worse])]
        for better, worse in (
            ("surrogate", "gnmax"),
            ("surrogate", "gnmax-label"),
            ("gnmax-label", "surrogate"),
        )
    )
    return observed(
        "There are regimes where ensembling private teachers gives a higher utility than GNMax, "
        "both with the same privacy loss (section 6.2).",
        f"With the paper's sigma in every run at m = {_list(ahead)}; with the least noise for its "
        f"label, the same loss, at m = {_list(still)}, and GNMax is ahead in every run at m = "
        f"{_list(behind)}.",
        _VOTES,
        alike=bool(still),
        rule="agrees if it holds in every training run at some m, against the least noise for the "
        "label",
        name="private teachers ahead of GNMax",
    )


def _always(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a > b for a, b in zip(one, other, strict=True))


def _list(allowances: list[int]) -> str:
    return ", ".join(map(str, allowances)) or "none"
