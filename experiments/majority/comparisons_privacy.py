"""The DaRRM paper beside the runs of Figure 10 with Table 4, and of Tables 2, 5, 7 and 9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.registry import Comparison, Table
from experiments.verdicts import numbers, rounds_to, statement


def of_gnmax(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare Table 4 and what section D.2.1 says of the data-dependent bound.

    Args:
        tables: "calibration" and "data_dependent" of the run.
    """
    rows = _records(tables["calibration"])
    return (
        _column(rows, "sigma", "least over all Renyi orders, closed form"),
        _column(rows, "order", "stationary point of sigma over the order, closed form"),
        _label(rows),
        _conditions(rows, _records(tables["data_dependent"])),
    )


def _column(rows: list[dict[str, Any]], name: str, certificate: str) -> Comparison:
    shown = {"sigma": "sigma", "order": "lambda"}[name]
    printed = ", ".join(f"{row[f'printed_{name}']:.2f}" for row in rows)
    found = ", ".join(f"{row[name]:.2f}" for row in rows)
    ours = f"{shown} = {found}."
    if name == "order":
        needed = ", ".join(f"{row['sigma_at_printed_order']:.2f}" for row in rows)
        ours = f"{shown} = {found}; the printed orders would need sigma = {needed}."
    return numbers(
        f"Table 4: {shown} = {printed}.",
        ours,
        [(row[name], row[f"printed_{name}"]) for row in rows],
        2,
        f"{certificate}; half a unit of the last digit",
    )


def _label(rows: list[dict[str, Any]]) -> Comparison:
    """Return what the published noise is for, and what its label really spends."""
    at = rows[0]
    return statement(
        f"With sigma = {at['printed_sigma']}, a label of GNMax is ({at['epsilon']}, "
        f"{at['delta']:g})-private.",
        f"It spends {at['label_epsilon']:.4f}; sigma = {at['label_sigma']:.2f} is enough.",
        "exact law of the label, every vote and neighbour",
        holds=all(row["label_epsilon"] <= row["epsilon"] for row in rows),
        more=all(row["label_epsilon"] < 0.99 * row["epsilon"] for row in rows),
    )


def _conditions(rows: list[dict[str, Any]], bounds: list[dict[str, Any]]) -> Comparison:
    """Return whether the data-dependent bound applies to unanimous votes, and is of use."""
    used = {(row["target"], row[order]) for row in rows for order in ("order", "printed_order")}
    targets = {row["target"] for row in rows}
    tried = [bound for bound in bounds if bound["target"] in targets]
    met = [bound for bound in tried if bound["applies"]]
    useful = [bound for bound in met if bound["data_dependent"] < bound["gaussian"]]
    there = [bound for bound in met if (bound["target"], bound["order"]) in used]
    where = ", ".join(f"{bound['order']:g}" for bound in met)
    return statement(
        "Algorithm 6's conditions fail at K = 11 voters and 2 classes even if all agree (D.2.1).",
        f"They hold at {len(there)} of the {len(used)} orders in use, and at {len(met)} of "
        f"{len(tried)} tried{f' ({where})' if met else ''}; the bound is below the Gaussian one at "
        f"{len(useful)}.",
        "theorem of Papernot et al., evaluated in double precision",
        holds=not there,
    )


def of_totals(totals: Table) -> tuple[Comparison, ...]:
    """Compare every printed total of Tables 2, 5, 7 and 9, and the composition of GNMax."""
    rows = _records(totals)
    found = []
    for table in dict.fromkeys(row["table"] for row in rows):
        part = [row for row in rows if row["table"] == table]
        pairs = [
            (row[name], row[f"printed_{name}"]) for row in part for name in ("epsilon", "delta")
        ]
        same = sum(rounds_to(ours, printed, 3) for ours, printed in pairs)
        first = part[-1]
        found.append(
            numbers(
                f"Table {table}: totals over Q queries, such as ({first['printed_epsilon']:.3f}, "
                f"{first['printed_delta']:.3f}) at Q = {first['queries']} ({first['data']}).",
                f"({first['epsilon']:.3f}, {first['delta']:.3f}); {same} of {len(pairs)} numbers "
                "agree.",
                pairs,
                3,
                "closed form (theorem 2.3); half a unit of the last digit",
            )
        )
    at = max(rows, key=lambda row: row["epsilon"] - row["gnmax_rdp_epsilon"])
    found.append(
        statement(
            f"GNMax's {at['queries']} labels spend epsilon = {at['printed_epsilon']:.3f} "
            f"({at['data']}, m = {at['m']}).",
            f"Composed as Renyi divergences they spend {at['gnmax_rdp_epsilon']:.3f} at the same "
            "delta.",
            "closed form; theorem D.1 over all orders",
            holds=all(row["gnmax_rdp_epsilon"] <= row["epsilon"] for row in rows),
            more=at["gnmax_rdp_epsilon"] < at["epsilon"],
        )
    )
    return tuple(found)


def _records(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
