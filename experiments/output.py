"""Files of a run: tables as CSV and JSON, figures as PNG and PDF, the same bytes every time."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpopt.files import replacing, write_json, write_text
from dpopt.provenance import versions
from experiments.kept import run_path
from experiments.registry import Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_outcome(experiment: Experiment, outcome: Outcome, folder: Path, *, full: bool) -> None:
    """Write one CSV for each table, a JSON with everything, and the figure twice."""
    figure = experiment.plot(outcome)
    run_path(experiment.name, folder).unlink(missing_ok=True)
    for name, table in outcome.tables.items():
        write_text(folder / f"{experiment.name}.{name}.csv", to_csv(table))
    write_json(folder / f"{experiment.name}.json", record_of(experiment, outcome, full=full))
    _write_figure(figure, folder / f"{experiment.name}.png")
    # Laid out once: the PDF takes the places that the PNG found.
    figure.set_layout_engine("none")
    _write_figure(figure, folder / f"{experiment.name}.pdf")


def to_csv(table: Table) -> str:
    """Return the table as CSV; floats with all their digits, empty for None."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_text(cell) for cell in row] for row in table.rows)
    return buffer.getvalue()


def _text(cell: Cell) -> str:
    return "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)


def record_of(experiment: Experiment, outcome: Outcome, *, full: bool) -> dict[str, Any]:
    """Return everything of a run but its figure and its time, as plain values."""
    return {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "item": experiment.item,
        "full": full,
        "configuration": experiment.parameters(full),
        "versions": versions(),
        "findings": list(outcome.findings),
        "comparisons": [asdict(comparison) for comparison in outcome.comparisons],
        "tables": {
            name: {
                "caption": table.caption,
                "columns": list(table.columns),
                "rows": [list(row) for row in table.rows],
            }
            for name, table in outcome.tables.items()
        },
    }


def _write_figure(figure: Figure, path: Path) -> None:
    metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata=metadata)
