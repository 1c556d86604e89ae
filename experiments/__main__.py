"""``python -m experiments [NAME ...] [--full]``: tables, figures, report; also ``benchmarks``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dpopt import ParameterError
from experiments.catalogue import all_experiments
from experiments.entry import make_folder, run_command
from experiments.report import write_report
from experiments.runner import run_all


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--full", is_flag=True, help="Sample as much as the figures of a paper would.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    help="Folder to write to.  [results]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    help="Experiments that run at the same time; benchmarks run alone.  [2]",
)
@click.option("--list", "listing", is_flag=True, help="List the experiments and stop.")
def command(names: tuple[str, ...], full: bool, out: Path, workers: int, listing: bool) -> int:
    """Regenerate figures and tables (all but benchmarks, or those NAMEd) and report.html.

    The report keeps what the folder holds of the experiments that are not run.
    """
    known = all_experiments()
    if listing:
        for experiment in known.values():
            click.echo(f"{experiment.name:24} {experiment.paper}, {experiment.item}")
        return 0
    for name in names:
        if name not in known:
            raise ParameterError(f"experiment is {name!r}; it must be one of {', '.join(known)}.")
    make_folder(out)
    if not names:
        names = tuple(name for name, experiment in known.items() if experiment.repeatable)
    chosen = [known[name] for name in dict.fromkeys(names)]
    entries = run_all(chosen, out, full=full, workers=workers)
    click.echo(f"report: {write_report(entries, out, full=full)}")
    failed = [entry for entry in entries if entry.failure is not None]
    for entry in failed:
        click.echo(f"{entry.experiment.name} failed: {entry.failure}", err=True)
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if an experiment failed, 2 for bad input."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["benchmarks"]:
        from experiments.benchmarks.__main__ import main as run_benchmarks

        run_benchmarks(given[1:])
    run_command(command, "python -m experiments", given)


if __name__ == "__main__":
    main()
