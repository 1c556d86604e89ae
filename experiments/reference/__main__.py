"""``python -m experiments.reference [--out DIR]``: the API reference as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from experiments.entry import run_command
from experiments.reference.build import build


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results/reference"),
    help="Folder to write to; a reference that is there is replaced.  [results/reference]",
)
def command(out: Path) -> None:
    """Build the reference of every public name from its docstring (extra ``docs``)."""
    click.echo(f"reference: {build(out)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if Sphinx is missing or warns, 2 for bad input."""
    run_command(command, "python -m experiments.reference", arguments)


if __name__ == "__main__":
    main()
