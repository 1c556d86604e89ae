"""``python -m experiments.benchmarks [FOLDER]``: RESULTS.md of what a folder keeps of a run."""

from __future__ import annotations

from pathlib import Path

import click

from dpopt.files import write_text
from experiments.benchmarks.page import run, to_markdown
from experiments.benchmarks.spec import benchmarks
from experiments.entry import run_command
from experiments.kept import kept_entry

PUBLISHED = Path(__file__).with_name("RESULTS.md")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
def command(folder: Path) -> None:
    """Write RESULTS.md from FOLDER, where ``python -m experiments run benchmarks`` ran."""
    entry = kept_entry(run, folder)
    if entry is None or entry.outcome is None:
        raise click.ClickException(f"{folder} holds no run of the benchmarks.")
    write_text(PUBLISHED, to_markdown(entry.outcome, entry.configuration, benchmarks()))
    click.echo(f"page: {PUBLISHED}")


if __name__ == "__main__":
    run_command(command, "python -m experiments.benchmarks", None)
