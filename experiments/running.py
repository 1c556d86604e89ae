"""One experiment from Python, with parameters of one's own."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments import style as styles
from experiments.catalogue import named
from experiments.entry import make_folder
from experiments.kept import Entry, draw, drawn, keep_run, write_outcome
from experiments.parameters import configured
from experiments.registry import Experiment, Outcome, Table
from experiments.runner import CACHE, Job, Made, computed, entry_of, pictured
from experiments.store import Store


@dataclass(frozen=True, repr=False)
class Run:
    """What came of an experiment.

    Attributes:
        entry: what the report says of it: also when, how long and from which code.
        outcome: tables, and the paper beside them; verdicts only at the paper's own
            parameters.
    """

    entry: Entry
    outcome: Outcome

    @property
    def experiment(self) -> Experiment:
        """The experiment, as registered."""
        return self.entry.experiment

    @property
    def configuration(self) -> Mapping[str, Any]:
        """Its parameters as plain values."""
        return self.entry.configuration

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name."""
        return self.outcome.tables

    def __repr__(self) -> str:
        parameters = "own" if self.entry.own_parameters else "the paper's"
        tables = ", ".join(self.tables)
        return f"Run({self.experiment.name!r}, {parameters} parameters, tables: {tables})"

    def _repr_html_(self) -> str:
        """Return the figure, and what was found, for notebooks."""
        entry = self.entry
        drawn_as = draw(self.experiment, self.outcome, entry.style, entry.remarks, kinds=["png"])
        picture = b64encode(drawn_as["png"]).decode()
        title = escape(self.experiment.title, quote=True)
        said = [f"{c.verdict}: {c.claim} {c.ours}" for c in self.outcome.comparisons]
        items = "".join(f"<li>{escape(line)}</li>" for line in said)
        image = f'<img style="max-width: 100%" alt="{title}" src="data:image/png;base64,{picture}">'
        return f"<div>{image}<ul>{items}</ul></div>"

    def figure(self, style: str | None = None) -> Figure:
        """Return the figure, laid out.

        Args:
            style: one of `experiments.style.STYLES`; that of the run if None.

        Raises:
            ParameterError: if there is no such style.
        """
        chosen = self.entry.style if style is None else style
        with styles.context(chosen, remarks=self.entry.remarks):
            figure = drawn(self.experiment, self.outcome)
            # Ticks are made as a figure is drawn: here, so that they too are of the style.
            figure.draw_without_rendering()
        return figure

    def save(self, folder: str | Path) -> None:
        """Write tables, figure and record to a folder, as the command does.

        Args:
            folder: it is made if it is not there.

        Raises:
            ParameterError: if it cannot be written to.
        """
        target = Path(folder)
        make_folder(target)
        write_outcome(self.entry, target)
        keep_run(self.entry, target)


def run(
    name: str,
    /,
    *,
    full: bool = False,
    style: str = "plain",
    remarks: bool = True,
    out: str | Path | None = None,
    cache: str | Path | None = None,
    **settings: object,
) -> Run:
    """Run one experiment, with some parameters of one's own.

    Args:
        name: of the experiment; see ``python -m experiments list``.
        full: whether the other parameters are those of the full run.
        style: of the figure, one of `experiments.style.STYLES`.
        remarks: whether the figure carries its remarks, such as which curve lies under which; its
            caption file has them in any case.
        out: folder to write the files to; None to write none.
        cache: folder to keep results in, so that the same run takes no time again; by default
            ``.cache`` in ``out`` if that is given, else nothing is kept.
        settings: values by the name of their field; see ``python -m experiments show NAME``.

    Raises:
        ParameterError: if a name or a value is none that is allowed.
    """
    experiment = named(name)
    config = configured(experiment, full, settings)
    with styles.context(style):
        pass
    folder = None if out is None else Path(out)
    if folder is not None:
        make_folder(folder)
    kept = folder / CACHE if cache is None and folder is not None else cache
    job = Job(experiment, config, full, style, remarks)
    keys = job.keys
    store = Store(None if kept is None else Path(kept))
    outcome, seconds, reused = computed(job, keys, store)
    if folder is None:
        return Run(entry_of(job, Made(outcome, {}, seconds, reused)), outcome)
    pictures, drawing = pictured(job, outcome, keys, store)
    entry = entry_of(job, Made(outcome, pictures, seconds + drawing, reused))
    write_outcome(entry, folder, pictures)
    keep_run(entry, folder)
    return Run(entry, outcome)
