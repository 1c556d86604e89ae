"""``python -m experiments [NAME ...] [--full] [--out DIR]``: tables, figures, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpopt import DpoptError, ParameterError
from experiments.entry import run_command
from experiments.output import write_outcome
from experiments.registry import Experiment, all_experiments
from experiments.report import Entry, write_report


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--full", is_flag=True, help="Sample as much as the figures of a paper would.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    help="Folder to write to.  [results]",
)
@click.option("--list", "listing", is_flag=True, help="List the experiments and stop.")
def command(names: tuple[str, ...], full: bool, out: Path, listing: bool) -> int:
    """Regenerate figures and tables (all but benchmarks, or those NAMEd) and report.html."""
    known = all_experiments()
    if listing:
        for experiment in known.values():
            click.echo(f"{experiment.name:24} {experiment.paper}, {experiment.item}")
        return 0
    for name in names:
        if name not in known:
            raise ParameterError(f"experiment is {name!r}; it must be one of {', '.join(known)}.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise ParameterError(f"out is {str(out)!r}; it must be a folder.") from None
    if not names:
        names = tuple(name for name, experiment in known.items() if experiment.repeatable)
    chosen = [known[name] for name in dict.fromkeys(names)]
    entries = _run_all(chosen, out, full)
    click.echo(f"report: {write_report(entries, out, full=full)}")
    failed = [entry for entry in entries if entry.failure is not None]
    for entry in failed:
        click.echo(f"{entry.experiment.name} failed: {entry.failure}", err=True)
    return 1 if failed else 0


def _run_all(chosen: Sequence[Experiment], out: Path, full: bool) -> list[Entry]:
    entries = []
    with Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as progress:
        for experiment in chosen:
            config = experiment.config if full else experiment.quick
            task = progress.add_task(experiment.name, total=experiment.steps(config))
            start = time.perf_counter()
            try:
                outcome = experiment.run(config, lambda task=task: progress.advance(task))
                write_outcome(experiment, outcome, out, full=full)
            except DpoptError as error:
                entries.append(Entry(experiment, None, time.perf_counter() - start, str(error)))
                continue
            entries.append(Entry(experiment, outcome, time.perf_counter() - start))
    return entries


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if an experiment failed, 2 for bad input."""
    run_command(command, "python -m experiments", arguments)


if __name__ == "__main__":
    main()
