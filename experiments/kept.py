"""What a folder keeps of each experiment: its files, its record, when and how long it was run.

Tables are kept as CSV and JSON, figures as PNG and PDF with their captions, the same bytes every
time. One experiment's run renews its own files only, so that the report is put together from all
that were ever run into the folder.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from dpopt.files import replacing, versions, write_json
from experiments import style as styles
from experiments.entry import make_folder
from experiments.parameters import changed, plain, text_of
from experiments.refuted import CHECKER, Refutation, checker, refutations_of
from experiments.registry import Comparison, Experiment, Outcome, Table
from experiments.store import commit

PICTURES = ("png", "pdf")
"""Endings of the pictures of an experiment."""

_GENERATED = "generated data"
# What tells of a run, and what of that stands in the record too.
_SHARED = ("full", "style", "configuration", "own_parameters")
_RUN = ("when", "seconds", *_SHARED, "reused", "commit", "failure")


class _Record(TypedDict, total=False):
    """What is read of both; what else is written is for those who read the files alone."""

    when: str | None
    seconds: float | None
    failure: str | None
    full: bool
    style: str
    configuration: dict[str, Any]
    versions: dict[str, str]
    commit: str | None
    own_parameters: bool
    reused: bool
    data: str
    generated: bool
    comparisons: tuple[Comparison, ...]
    tables: dict[str, Table]


_READER: TypeAdapter[Any] = TypeAdapter(_Record)


@dataclass(frozen=True, repr=False)
class Entry:
    """One run of an experiment: its outcome, and when and how it was run or failed.

    Attributes:
        experiment: as registered.
        outcome: None if it failed.
        seconds: that computing and drawing took, when they were last done; None if that is not
            known.
        failure: why it failed; None if it did not.
        full: whether the configuration started from that of the full run.
        when: end of the run, in UTC; None if that is not known.
        configuration: parameters of the run as plain values; by default the experiment's own.
        versions: of the libraries that made it.
        style: of the pictures.
        commit: of the checkout that made it, with "+ changes" if its files differ; None if it was
            none, or that is not known.
        own_parameters: whether they are a reader's own, not the paper's; then there are no
            verdicts.
        reused: whether the tables were kept from an earlier run with the same code.
    """

    experiment: Experiment
    outcome: Outcome | None
    seconds: float | None
    failure: str | None = None
    full: bool = False
    when: str | None = field(
        default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    )
    configuration: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    style: str = "plain"
    commit: str | None = field(default_factory=commit)
    own_parameters: bool = False
    reused: bool = False

    def __post_init__(self) -> None:
        if not self.configuration:
            object.__setattr__(self, "configuration", self.experiment.parameters(self.full))

    def __repr__(self) -> str:
        parameters = "own" if self.own_parameters else "the paper's"
        tables = ", ".join(self.tables)
        return f"Entry({self.experiment.name!r}, {parameters} parameters, tables: {tables})"

    def _repr_html_(self) -> str:
        """Return the figure, and what was found, for notebooks."""
        pictures = draw(self.experiment, self.outcome or Outcome({}), self.style, ["png"])
        picture = b64encode(pictures["png"]).decode()
        title = escape(self.experiment.title, quote=True)
        said = [f"{c.verdict}: {c.claim} {c.ours}" for c in self.comparisons]
        items = "".join(f"<li>{escape(line)}</li>" for line in said)
        image = f'<img style="max-width: 100%" alt="{title}" src="data:image/png;base64,{picture}">'
        return f"<div>{image}<ul>{items}</ul></div>"

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name; none if it failed."""
        return {} if self.outcome is None else self.outcome.tables

    def figure(self, style: str | None = None) -> Figure:
        """Return the figure, laid out.

        Args:
            style: one of `experiments.style.STYLES`; that of the run if None.

        Raises:
            ParameterError: if there is no such style.
        """
        with styles.context(self.style if style is None else style):
            figure = drawn(self.experiment, self.outcome or Outcome({}))
            # Ticks are made as a figure is drawn: here, so that they too are of the style.
            figure.draw_without_rendering()
        return figure

    def save(self, folder: str | Path, pictures: Mapping[str, bytes] | None = None) -> None:
        """Write tables, figure and record to a folder, as the command does.

        Of a run that failed only that is written, and when it was.

        Args:
            folder: it is made if it is not there.
            pictures: as `draw` returns them; they are drawn if None.

        Raises:
            ParameterError: if it cannot be written to.
        """
        make_folder(Path(folder))
        if self.outcome is not None:
            write_outcome(self, Path(folder), pictures)
        keep_run(self, Path(folder))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What the paper says beside what was found; none if it failed."""
        return () if self.outcome is None else self.outcome.comparisons

    @property
    def refutations(self) -> tuple[Refutation, ...]:
        """The statements of its paper that it refutes, each with a file; none if it failed."""
        if self.outcome is None:
            return ()
        return refutations_of(self.experiment.paper, self.experiment.name, self.comparisons)

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters that are a reader's own."""
        return changed(self.experiment, self.configuration, self.full)

    @property
    def command(self) -> str:
        """The command that makes the same tables and pictures again."""
        words = ["python", "-m", "experiments", "run", self.experiment.name]
        words += ["--full"] if self.full else []
        for name, value in self.changed.items():
            words += ["--set", f"{name}={text_of(value)}"]
        words += ["--style", self.style] if self.style != "plain" else []
        return shlex.join(words)


def run_path(name: str, folder: Path) -> Path:
    """Return the file that tells when an experiment was run; it alone differs between equal runs.

    It is removed before a run writes its files, and written last: where it is missing, the run was
    interrupted, and its time is not known.
    """
    return folder / f"{name}.run.json"


def keep_run(entry: Entry, folder: Path) -> None:
    """Write when an experiment was run, how long it took, and why it failed if it did."""
    value = {"experiment": entry.experiment.name} | {name: getattr(entry, name) for name in _RUN}
    write_json(run_path(entry.experiment.name, folder), value)


def kept_run(name: str, folder: Path) -> dict[str, Any]:
    """Return what a folder tells of the last run of an experiment; nothing if it cannot be read."""
    try:
        return _read(run_path(name, folder))
    except (OSError, ValueError):
        return {}


def _read(path: Path) -> dict[str, Any]:
    return _READER.validate_json(path.read_bytes(), strict=True)


def last_seconds(experiment: Experiment, config: Any, folder: Path) -> float | None:  # noqa: ANN401
    """Return how long the last run into a folder took, if it had the same parameters."""
    about = kept_run(experiment.name, folder)
    same = plain(about.get("configuration")) == plain(asdict(config))
    return about.get("seconds") if same and about.get("failure") is None else None


def kept_entry(experiment: Experiment, folder: Path) -> Entry | None:
    """Return what a folder keeps of an experiment; None if it never ran into it."""
    record, run = folder / f"{experiment.name}.json", run_path(experiment.name, folder)
    if not record.exists() and not run.exists():
        return None
    try:
        about = _read(run) if run.exists() else {}
        # Of a failed run there is no record, or that of an earlier one.
        failure, outcome, made = about.get("failure"), None, about
        if failure is None:
            made = _read(record)
            parts = (made[name] for name in ("tables", "comparisons", "data", "generated"))
            outcome = Outcome(*parts)
        return Entry(
            experiment,
            outcome,
            about.get("seconds"),
            failure,
            full=made["full"],
            when=about.get("when"),
            configuration=plain(made["configuration"]),
            versions=made.get("versions", {}),
            style=made["style"],
            commit=about.get("commit"),
            own_parameters=made["own_parameters"],
            reused=about.get("reused", False),
        )
    except (OSError, ValueError, KeyError):
        said = "its files cannot be read; run it again."
        return Entry(experiment, None, None, said, when=None, commit=None)


def write_outcome(entry: Entry, folder: Path, pictures: Mapping[str, bytes] | None = None) -> None:
    """Write one CSV for each table, a JSON with everything, the figure twice, and its caption.

    What is refuted has a file of its own, and the checker of such files lies beside it.
    """
    experiment, outcome = entry.experiment, entry.outcome or Outcome({})
    if pictures is None:
        pictures = draw(experiment, outcome, entry.style)
    run_path(experiment.name, folder).unlink(missing_ok=True)
    texts = {f"{name}.csv": to_csv(table) for name, table in outcome.tables.items()}
    texts["json"] = json.dumps(record_of(entry), indent=2, allow_nan=False) + "\n"
    files = {f"{experiment.name}.{name}": text.encode() for name, text in texts.items()}
    files |= {f"{experiment.name}.{name}": content for name, content in pictures.items()}
    files[f"{experiment.name}.txt"] = _title(entry).encode() + pictures["txt"]
    files |= {refuted.file: refuted.content for refuted in entry.refutations}
    files |= {CHECKER: checker()} if entry.refutations else {}
    for path in folder.glob(f"{experiment.name}.*.csv"):
        if path.name not in files:
            path.unlink(missing_ok=True)
    for name, content in files.items():
        renew(folder / name, content)


def draw(
    experiment: Experiment, outcome: Outcome, style: str, kinds: Sequence[str] = PICTURES
) -> dict[str, bytes]:
    """Return the figure of each kind, as wide as the style says, and its remarks as "txt"."""
    import matplotlib as mpl

    found = {}
    with styles.context(style), mpl.rc_context({"savefig.bbox": None}):
        figure = drawn(experiment, outcome)
        for kind in kinds:
            buffer = io.BytesIO()
            metadata = {"CreationDate": None} if kind == "pdf" else None
            figure.savefig(buffer, format=kind, metadata=metadata)
            found[kind] = buffer.getvalue()
            # Laid out once: the PDF takes the places that the PNG found.
            figure.set_layout_engine("none")
    said = figure.remarks if isinstance(figure, styles.PrintedFigure) else ()
    found["txt"] = "".join(f"{remark.rstrip('.')}.\n" for remark in said).encode()
    return found


def drawn(experiment: Experiment, outcome: Outcome) -> Figure:
    """Return the figure in the style that is set; it says if the data are made up."""
    figure = experiment.plot(outcome)
    if outcome.generated:
        figure.suptitle(_GENERATED, x=0.99, ha="right", fontsize="small")
    return figure


def _title(entry: Entry) -> str:
    """Return the first lines of a caption: which figure, and with which parameters."""
    own = "; ".join(f"{name} = {text_of(value)}" for name, value in entry.changed.items())
    said = f"With {own}." if own else entry.experiment.summary
    return f"{entry.experiment.title}.\n{said}\n"


def to_csv(table: Table) -> str:
    """Return the table as CSV; floats with all their digits, empty for None."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return buffer.getvalue()


def record_of(entry: Entry) -> dict[str, Any]:
    """Return everything of a run but its figure and its time, as plain values."""
    experiment, outcome = entry.experiment, entry.outcome or Outcome({})
    return {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "item": experiment.item,
        **{name: getattr(entry, name) for name in _SHARED},
        "versions": entry.versions,
        "data": outcome.data,
        "generated": outcome.generated,
        "comparisons": [asdict(comparison) for comparison in outcome.comparisons],
        "tables": {name: vars(table) for name, table in outcome.tables.items()},
    }


def renew(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, unless it holds just that already."""
    if path.is_file() and path.read_bytes() == content:
        return
    with replacing(path) as temporary:
        temporary.write_bytes(content)
