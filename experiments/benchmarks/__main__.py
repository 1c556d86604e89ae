"""``python -m experiments benchmarks [NAME ...] [--quick]``: speed, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dpopt import ParameterError
from dpopt.files import write_json, write_text
from experiments.benchmarks.page import run, run_config, to_markdown, to_outcome
from experiments.benchmarks.spec import benchmarks
from experiments.entry import make_folder, run_command
from experiments.kept import Entry, keep_run, write_outcome
from experiments.report.pages import write_report
from experiments.runner import progress

PUBLISHED = Path(__file__).parent
"""Where a whole run leaves RESULTS.md."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help="The smallest size of each, once.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    help="Folder to write to.  [results]",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=2, help="Benchmarks at a time.  [2]")
@click.option("--rounds", type=click.IntRange(1, 99), help="Turns of each contender.  [3]")
@click.option("--list", "listing", is_flag=True, help="List the benchmarks and stop.")
def command(
    names: tuple[str, ...], quick: bool, out: Path, jobs: int, rounds: int | None, listing: bool
) -> int:
    """Time dpopt beside what one would use instead: all benchmarks, or those NAMEd.

    Writes tables, a figure, the report, RESULTS.md and results.json to the folder; a whole run
    (no NAME, not --quick) also renews experiments/benchmarks/RESULTS.md.
    """
    known = benchmarks()
    if listing:
        for benchmark in known.values():
            click.echo(f"{benchmark.name:24} {benchmark.title}")
        return 0
    for name in names:
        if name not in known:
            raise ParameterError(f"benchmark is {name!r}; it must be one of {', '.join(known)}.")
    make_folder(out)
    config = run.quick if quick else run.config
    config = replace(config, names=tuple(dict.fromkeys(names)), jobs=jobs)
    if rounds is not None:
        config = replace(config, rounds=rounds)
    start = time.perf_counter()
    with progress(run.name):
        results = run_config(config)
    write_json(out / "results.json", results)
    for folder in (out, *([PUBLISHED] if not names and not quick else [])):
        write_text(folder / "RESULTS.md", to_markdown(results))
    experiment = replace(run, config=config, quick=config)
    outcome = to_outcome(results)
    entry = Entry(experiment, outcome, time.perf_counter() - start, full=not quick)
    write_outcome(entry, out)
    keep_run(entry, out)
    click.echo(f"report: {write_report([entry], out)}")
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if it failed, 2 for bad input."""
    run_command(command, "python -m experiments benchmarks", arguments)


if __name__ == "__main__":
    main()
