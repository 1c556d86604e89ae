"""``python -m experiments.majority.pate``: train teachers and write their votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from dpopt import ParameterError
from dpopt.files import check_target, write_text
from experiments.data.mnist import Digits, download, load_digits
from experiments.entry import run_command
from experiments.kept import to_csv
from experiments.majority.pate import rates as chosen
from experiments.majority.pate.rates import Training
from experiments.majority.pate.votes import save_votes
from experiments.runner import progress

_PATH = click.Path(path_type=Path)


@dataclass(frozen=True)
class _Source:
    """Where the data come from, and which runs to train on them."""

    data: Path | None
    folder: Path | None
    fashion: bool
    seeds: tuple[int, ...]
    threads: int

    @property
    def dataset(self) -> str:
        return "fashion-mnist" if self.fashion else "mnist"

    def digits(self) -> Digits:
        if (self.data is None) == (self.folder is None):
            raise ParameterError("data is ambiguous; give one of --data and --download.")
        if self.folder is None:
            return load_digits(self.data or Path())
        download(self.dataset, self.folder)
        return load_digits(self.folder)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", type=_PATH, help="Folder of IDX files, or an .npz archive.")
@click.option("--download", "folder", type=_PATH, help="Download the data to this folder.")
@click.option("--fashion", is_flag=True, help="The data are Fashion-MNIST.")
@click.option("--out", type=_PATH, default=Path("votes.json"), help="Votes file.  [votes.json]")
@click.option("--seeds", type=click.IntRange(1), default=3, help="Number of training runs.  [3]")
@click.option("--threads", type=click.IntRange(1), default=2, help="Threads of PyTorch.  [2]")
@click.option("--rates", type=_PATH, help="Scan that `rates` wrote.  [the shipped one]")
@click.pass_context
def command(
    context: click.Context,
    data: Path | None,
    folder: Path | None,
    fashion: bool,
    out: Path,
    seeds: int,
    threads: int,
    rates: Path | None,
) -> None:
    """Train 11 private and 11 non-private teachers for each seed, and write their votes.

    A scan on training images chose the learning rates.

    About two minutes for each seed. Needs the extra `pate` (PyTorch, opacus).
    """
    source = _Source(data, folder, fashion, tuple(range(seeds)), threads)
    context.obj = source
    if context.invoked_subcommand is not None:
        return
    check_target(out)
    scanned = chosen.load_rates(chosen.SHIPPED if rates is None else rates)
    training = chosen.at_chosen_rates(Training(), scanned, source.dataset)
    _require_torch(threads)
    from experiments.majority.pate.teachers import train_votes

    digits = source.digits()
    with progress("teachers"):
        votes = train_votes(digits, training, source.seeds, dataset=source.dataset)
    save_votes(votes, out)
    click.echo(f"votes: {out}")


@command.command("rates")
@click.option("--out", type=_PATH, default=Path("rates.csv"), help="CSV file.  [rates.csv]")
@click.pass_obj
def write_rates(source: _Source, out: Path) -> None:
    """Train at several learning rates on training images alone, and write which is best.

    A sixth of the training images are held out to compare them on.
    """
    check_target(out)
    _require_torch(source.threads)
    from experiments.majority.pate.teachers import scan

    digits, training = source.digits(), Training()
    with progress("teachers"):
        table = scan(digits, training, source.seeds, source.dataset)
    write_text(out, to_csv(table))
    click.echo(f"rates: {out}")


def _require_torch(threads: int) -> None:
    try:
        import opacus  # noqa: F401  # pyright: ignore[reportMissingImports]
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ParameterError(
            "training needs PyTorch and opacus, which are not installed; "
            "install the extra: pip install '.[pate]'."
        ) from None
    torch.set_num_threads(threads)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if it failed, 2 for bad input."""
    run_command(command, "python -m experiments.majority.pate", arguments)


if __name__ == "__main__":
    main()
