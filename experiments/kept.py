"""What a folder keeps of each experiment: its files, its record, when and how long it was run.

Tables are kept as CSV and JSON, figures as PNG and PDF, the same bytes every time. One experiment's
run renews its own files only, so that the report is put together from all that were ever run into
the folder.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpopt.files import replacing, write_json, write_text
from dpopt.provenance import versions
from experiments.registry import Cell, Comparison, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Entry:
    """One experiment in the report: its outcome, and when and how it was run or failed.

    Attributes:
        experiment: as registered.
        outcome: None if it failed.
        seconds: that the run took; None if that is not known.
        failure: why it failed; None if it did not.
        full: whether the configuration was that of the full run.
        when: end of the run, in UTC; None if that is not known.
        configuration: parameters of the run; the experiment's own if None.
        versions: of the libraries that made it.
    """

    experiment: Experiment
    outcome: Outcome | None
    seconds: float | None
    failure: str | None = None
    full: bool = False
    when: str | None = field(default_factory=_now)
    configuration: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = field(default_factory=versions)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What the paper says beside what was found; none if it failed."""
        return () if self.outcome is None else self.outcome.comparisons

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The configuration of the run."""
        if self.configuration is not None:
            return self.configuration
        return self.experiment.parameters(self.full)


def run_path(name: str, folder: Path) -> Path:
    """Return the file that tells when an experiment was run; it alone differs between equal runs.

    It is removed before a run writes its files, and written last: where it is missing, the run was
    interrupted, and its time is not known.
    """
    return folder / f"{name}.run.json"


def keep_run(entry: Entry, folder: Path) -> None:
    """Write when an experiment was run, how long it took, and why it failed if it did."""
    value = {
        "experiment": entry.experiment.name,
        "when": entry.when,
        "seconds": entry.seconds,
        "full": entry.full,
        "failure": entry.failure,
    }
    write_json(run_path(entry.experiment.name, folder), value)


def kept_entry(experiment: Experiment, folder: Path) -> Entry | None:
    """Return what a folder keeps of an experiment; None if it never ran into it."""
    record, run = folder / f"{experiment.name}.json", run_path(experiment.name, folder)
    if not record.exists() and not run.exists():
        return None
    try:
        about = json.loads(run.read_text(encoding="utf-8")) if run.exists() else {}
        when, seconds = about.get("when"), about.get("seconds")
        if about.get("failure") is not None:
            return Entry(experiment, None, seconds, about["failure"], about["full"], when)
        return _of_record(experiment, json.loads(record.read_text("utf-8")), seconds, when)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Entry(experiment, None, None, "its files cannot be read; run it again.", when=None)


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


def _of_record(
    experiment: Experiment, record: dict[str, Any], seconds: float | None, when: str | None
) -> Entry:
    tables = {
        name: Table(part["caption"], tuple(part["columns"]), tuple(map(tuple, part["rows"])))
        for name, part in record["tables"].items()
    }
    comparisons = tuple(Comparison(**fields) for fields in record["comparisons"])
    return Entry(
        experiment,
        Outcome(tables, tuple(record["findings"]), comparisons),
        seconds,
        full=record["full"],
        when=when,
        configuration=record["configuration"],
        versions=record["versions"],
    )
