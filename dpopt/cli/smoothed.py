"""``dpopt smoothed`` and ``dpopt profile``: what a sample reveals on its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpopt._errors import ParameterError
from dpopt._figure import STYLES, context, save_figure
from dpopt.cli.kind import ROWS, check_targets, table_lines, told_value
from dpopt.cli.output import show, to_json
from dpopt.cli.words import Row, Rows, Words
from dpopt.files import replacing

if TYPE_CHECKING:
    from dpopt.smoothed import SamplingHistogram
    from dpopt.smoothed.results import Found

_PATH = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--drawn", type=int, help="T, how many records are drawn, from 1 to n."),
    click.option(
        "--lost-rate",
        type=Words(),
        help="Share of the records that is lost, in [0, 1), instead of drawn.",
    ),
    click.option("--replacement", is_flag=True, help="Records are put back before the next draw."),
    click.option("--epsilon", type=float, required=True, help="From 0 to 700, in nats."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--all-rows", is_flag=True, help=f"Print all rows, not the first {ROWS}."),
    click.option("--plot", type=_PATH, help="Draw the result to .png, .pdf or .svg."),
    click.option(
        "--style",
        type=Words(*STYLES),
        default="plain",
        help=f"Size and fonts of the drawing: {', '.join(STYLES)}.  [plain]",
    ),
    click.option("--save", type=_PATH, help="Write the result as JSON."),
)


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(short_help="The largest expected delta(x) of a sample, over laws of its records")
@click.option("--records", type=int, required=True, help="N, at least 1.")
@click.option(
    "--distributions",
    type=Rows(),
    required=True,
    help="Laws of one record, a row each, summing to 1; for two categories also the shares of the "
    "first, such as 0.4,0.6.",
)
@_with_options
def smoothed(records: int, distributions: Any, epsilon: float, **given: Any) -> None:  # noqa: ANN401
    """Find the largest expected delta(x) when an adversary picks every record's law.

    T of n records are drawn and published as a histogram, without noise. Every composition of the
    records over the laws is evaluated or bounded.

    Example: dpopt smoothed --records 36 --drawn 34 --epsilon 0 --distributions 0.4,0.6
    """
    from dpopt import _checks
    from dpopt.smoothed import smoothed_delta

    laws = _checks.floats("distributions", distributions)
    categories = laws.shape[1] if laws.ndim == 2 else 2

    def found() -> Found[Any]:
        return smoothed_delta(_sample(records, categories, given), epsilon, laws)

    _tell(found, given)


@click.command(short_help="How private each database of a sample is: delta(x)")
@click.option(
    "--counts", type=Row(), help="The database, such as 60,40; every database if left out."
)
@click.option("--records", type=int, help="N, at least 1, where no counts are given.")
@click.option("--categories", type=int, help="M, at least 2, where no counts are given.  [2]")
@_with_options
def profile(
    counts: Any,  # noqa: ANN401
    records: int | None,
    categories: int | None,
    epsilon: float,
    **given: Any,  # noqa: ANN401
) -> None:
    """Find delta(x) of a database x, its largest divergence from or to a neighbour.

    T of its n records are drawn and published as a histogram, without noise. Without counts it is
    told of every database.

    Example: dpopt profile --counts 60,40 --drawn 90 --epsilon 0.5
    """
    from dpopt import _checks
    from dpopt.smoothed import privacy_profile

    if (counts is None) == (records is None):
        raise ParameterError("counts and records: give one of them.")
    if counts is not None and categories is not None:
        raise ParameterError("counts and categories: give one of them.")
    size, width = records, 2 if categories is None else categories
    if counts is not None:
        whole = [_checks.integer("counts", count, 0) for count in counts]
        size, width = sum(whole), len(whole)

    def found() -> Found[Any]:
        return privacy_profile(_sample(size or 0, width, given), epsilon, counts)

    _tell(found, given)


def _sample(records: int, categories: int, given: dict[str, Any]) -> SamplingHistogram:
    """Return the sample that the options describe."""
    from dpopt.smoothed import SamplingHistogram

    drawn, rate, again = given["drawn"], given["lost_rate"], given["replacement"]
    if (drawn is None) == (rate is None):
        raise ParameterError("drawn and lost_rate: give one of them.")
    if drawn is not None:
        return SamplingHistogram(records, drawn, categories, again)
    if again:
        raise ParameterError("lost_rate is of a sample without replacement; give drawn.")
    return SamplingHistogram.of_lost_rate(records, rate, categories)


def _tell(find: Callable[[], Found[Any]], given: dict[str, Any]) -> None:
    """Print, draw and save what is found."""
    plot, save = given["plot"], given["save"]
    check_targets(plot, save, given["style"])
    start = time.perf_counter()
    found = find()
    seconds = time.perf_counter() - start
    if save is not None:
        found.save(save)
    if plot is not None:
        with context(given["style"]), replacing(plot) as temporary:
            save_figure(found.plot(), temporary)
    if given["as_json"]:
        show(to_json({**found.to_dict(), "seconds": seconds}))
        return
    facts = {**found.facts(), "seconds": f"{seconds:.3f}"}
    lines = [f"{name:18s} {told_value(value)}" for name, value in facts.items()]
    most = None if given["all_rows"] else ROWS
    show("\n".join([*lines, "", *table_lines(found.columns(), most)]))
