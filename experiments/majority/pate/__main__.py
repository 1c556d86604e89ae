"""``python -m experiments.majority.pate``: train teachers and write their votes."""

from __future__ import annotations

from pathlib import Path

import click

from dpopt import ParameterError
from dpopt.files import check_target, write_text
from experiments.data.mnist import download, load_digits
from experiments.entry import run_command
from experiments.kept import to_csv
from experiments.majority.pate import rates as chosen
from experiments.majority.pate.rates import Training
from experiments.majority.pate.votes import save_votes
from experiments.runner import progress

_PATH = click.Path(path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", type=_PATH, help="Folder of IDX files, or an .npz archive.")
@click.option("--download", "folder", type=_PATH, help="Download the data to this folder.")
@click.option("--fashion", is_flag=True, help="The data are Fashion-MNIST.")
@click.option("--out", type=_PATH, default=Path("votes.json"), help="File.  [votes.json]")
@click.option("--seeds", type=click.IntRange(1), default=3, help="Number of training runs.  [3]")
@click.option("--threads", type=click.IntRange(1), default=2, help="Threads of PyTorch.  [2]")
@click.option("--rates", type=_PATH, help="Scan that --scan wrote.  [the shipped one]")
@click.option("--scan", is_flag=True, help="Choose learning rates, and write which is best.")
def command(
    data: Path | None,
    folder: Path | None,
    fashion: bool,
    out: Path,
    seeds: int,
    threads: int,
    rates: Path | None,
    scan: bool,
) -> None:
    """Train 11 private and 11 non-private teachers for each seed, and write their votes.

    About two minutes for each seed. Needs the extra `pate` (PyTorch, opacus). Learning rates are
    those that a scan chose on training images alone, of which a sixth were held out to compare them
    on; --scan makes it anew, and writes it as CSV.
    """
    check_target(out)
    dataset = "fashion-mnist" if fashion else "mnist"
    scanned = chosen.load_rates(chosen.SHIPPED if rates is None else rates)
    training = Training() if scan else chosen.at_chosen_rates(Training(), scanned, dataset)
    _require_torch(threads)
    from experiments.majority.pate import teachers

    if (data is None) == (folder is None):
        raise ParameterError("data is ambiguous; give one of --data and --download.")
    if folder is not None:
        download(dataset, folder)
    digits = load_digits(data or folder or Path())
    with progress("teachers"):
        if scan:
            table = teachers.scan(digits, training, tuple(range(seeds)), dataset)
            write_text(out, to_csv(table))
        else:
            votes = teachers.train_votes(digits, training, tuple(range(seeds)), dataset=dataset)
            save_votes(votes, out)
    click.echo(f"{'rates' if scan else 'votes'}: {out}")


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


if __name__ == "__main__":
    run_command(command, "python -m experiments.majority.pate", None)
