"""``python -m experiments benchmarks [NAME ...] [--quick | --publish]``: speed, side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dpopt import ParameterError
from dpopt.files import write_json, write_text
from experiments.benchmarks.page import EXPERIMENT, run_config, steps, to_markdown, to_outcome
from experiments.benchmarks.results import Results, renewed
from experiments.benchmarks.suite import benchmarks
from experiments.entry import make_folder, run_command
from experiments.kept import Entry, keep_run, write_outcome
from experiments.report.pages import write_report
from experiments.runner import advancing

PUBLISHED = Path(__file__).parent
"""Where a whole run leaves RESULTS.md and results.json."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help="The smallest size of each, once.")
@click.option(
    "--publish",
    is_flag=True,
    help="Renew the published results of the NAMEd benchmarks, and leave the others.",
)
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
    names: tuple[str, ...],
    quick: bool,
    publish: bool,
    out: Path,
    jobs: int,
    rounds: int | None,
    listing: bool,
) -> int:
    """Time dpopt beside what one would use instead: all benchmarks, or those NAMEd.

    Writes tables, a figure, the report, RESULTS.md and results.json to the folder; a whole run
    (no NAME, not --quick) also renews experiments/benchmarks/RESULTS.md and results.json, and
    --publish there what was run.
    """
    known = benchmarks()
    if listing:
        for benchmark in known.values():
            click.echo(f"{benchmark.name:24} {benchmark.title}")
        return 0
    for name in names:
        if name not in known:
            raise ParameterError(f"benchmark is {name!r}; it must be one of {', '.join(known)}.")
    if quick and publish:
        raise ParameterError("publish is given with quick; it must be without, for whole runs.")
    make_folder(out)
    config = EXPERIMENT.quick if quick else EXPERIMENT.config
    config = replace(config, names=tuple(dict.fromkeys(names)), jobs=jobs)
    if rounds is not None:
        config = replace(config, effort=replace(config.effort, rounds=rounds))
    start = time.perf_counter()
    with advancing(EXPERIMENT.name, steps(config)) as advance:
        results = run_config(config, advance)
    write_results(results, out)
    if publish and names:
        write_results(renewed(published(), results, list(known)), PUBLISHED)
    elif not names and not quick:
        write_results(results, PUBLISHED)
    experiment = replace(EXPERIMENT, config=config, quick=config)
    outcome = to_outcome(results)
    entry = Entry(experiment, outcome, time.perf_counter() - start, full=not quick)
    write_outcome(entry, out)
    keep_run(entry, out)
    click.echo(f"report: {write_report([entry], out)}")
    return 0


def published() -> Results:
    """Return the published results."""
    return json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))


def write_results(results: Results, folder: Path) -> None:
    """Write results.json and RESULTS.md to a folder."""
    write_json(folder / "results.json", results)
    write_text(folder / "RESULTS.md", to_markdown(results))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if it failed, 2 for bad input."""
    run_command(command, "python -m experiments benchmarks", arguments)


if __name__ == "__main__":
    main()
