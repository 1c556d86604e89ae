"""``python -m experiments.public_prior``: figures 3, 4 and 6 to 11 from the user's own download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dpopt import ParameterError
from experiments.data.avazu import USERS
from experiments.data.groups import PRIORS
from experiments.entry import make_folder, run_command
from experiments.public_prior import avazu, movielens
from experiments.registry import Experiment
from experiments.report import write_report
from experiments.runner import run_here


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--movielens", "ratings", help="Folder of MovieLens 1M or 100k (grouplens.org).")
@click.option("--avazu", "clicks", help="train.csv or train.gz of Avazu (Kaggle).")
@click.option("--user", type=click.Choice(USERS), default="device_id", help="[device_id]")
@click.option("--prior", type=click.Choice(PRIORS), default="average", help="[average]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    help="Folder to write to.  [results]",
)
def command(ratings: str | None, clicks: str | None, user: str, prior: str, out: Path) -> None:
    """Draw figure 4 from MovieLens, figures 3 and 6 to 11 from Avazu, and write report.html.

    Neither data set may be redistributed. --user and --prior are for Avazu: which column tells
    users apart, and whether the prior is the average of their laws or the total of their clicks.
    """
    chosen: list[Experiment] = []
    if ratings is not None:
        own = replace(movielens.EXPERIMENT.config, path=ratings)
        chosen.append(replace(movielens.EXPERIMENT, config=own))
    if clicks is not None:
        own = replace(avazu.EXPERIMENT.config, path=clicks, user=user, prior=prior)
        chosen.append(replace(avazu.EXPERIMENT, config=own))
    if not chosen:
        raise ParameterError("no data set is named; give --movielens, --avazu or both.")
    make_folder(out)
    entries = run_here(chosen, out, full=True)
    click.echo(f"report: {write_report(entries, out, full=True)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if it failed, 2 for bad input."""
    run_command(command, "python -m experiments.public_prior", arguments)


if __name__ == "__main__":
    main()
