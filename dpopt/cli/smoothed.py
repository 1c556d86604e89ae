"""``dpopt smoothed`` and ``dpopt profile``: the privacy of publishing a sample's histogram."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import click

from dpopt._errors import ParameterError
from dpopt.cli.output import show, to_json

if TYPE_CHECKING:
    from dpopt.smoothed import SamplingHistogram


@click.command()
@click.option("--records", type=int, required=True, help="Number of records n.")
@click.option("--lost-rate", help="Share r of the records that is lost: T = ceil((1 - r) n).")
@click.option("--drawn", type=int, help="Number T of records that are drawn, instead.")
@click.option("--epsilon", type=float, required=True, help="At least 0.")
@click.option(
    "--shares",
    required=True,
    help="The distributions: for two categories the shares p1,p2[,...] of the first; for more "
    "a:b:c,a:b:c[,...].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def smoothed(
    records: int,
    lost_rate: str | None,
    drawn: int | None,
    epsilon: float,
    shares: str,
    as_json: bool,
) -> None:
    """Compute smoothed delta of the sampling-histogram mechanism, over every composition.

    Example: dpopt smoothed --records 1000 --lost-rate 0.01 --epsilon 1 --shares 0.4,0.6
    """
    from dpopt.smoothed import smoothed_delta

    laws = _laws(shares)
    categories = len(laws[0]) if isinstance(laws[0], list) else 2
    mechanism = _mechanism(records, lost_rate, drawn, categories)
    start = time.perf_counter()
    found = smoothed_delta(mechanism, epsilon, laws)
    record = {
        "delta": found.delta,
        "log10_delta": _finite(found.log10_delta),
        "argmax": list(found.argmax),
        "certified": found.certified,
        "dp_delta": found.dp_delta,
        "evaluated": found.certificate.evaluated,
        "method": found.certificate.method,
        "drawn": mechanism.drawn,
        "seconds": time.perf_counter() - start,
    }
    _print(record, as_json)


@click.command()
@click.option("--counts", required=True, help="The database: how many records of each category.")
@click.option("--lost-rate", help="Share r of the records that is lost: T = ceil((1 - r) n).")
@click.option("--drawn", type=int, help="Number T of records that are drawn, instead.")
@click.option("--epsilon", type=float, required=True, help="At least 0.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def profile(
    counts: str, lost_rate: str | None, drawn: int | None, epsilon: float, as_json: bool
) -> None:
    """Compute delta(x) of one database and the adversary's utility at t = e^eps / (1 + e^eps).

    Example: dpopt profile --counts 81268924,74216154 --lost-rate 0.002 --epsilon 0.04
    """
    from dpopt.smoothed import adversary_utility, privacy_profile, worst_case_delta

    histogram = [_count(word) for word in counts.split(",")]
    if len(histogram) < 2:
        raise ParameterError(f"counts is {counts!r}; it must hold at least two, such as 60,40.")
    mechanism = _mechanism(sum(histogram), lost_rate, drawn, len(histogram))
    start = time.perf_counter()
    found = privacy_profile(mechanism, epsilon, histogram)
    threshold = 1.0 / (1.0 + math.exp(-epsilon))
    utility = adversary_utility(mechanism, threshold, histogram) if threshold < 1.0 else None
    record = {
        "delta": float(found.delta[0]),
        "log10_delta": _finite(float(found.log10_delta[0])),
        "log10_utility": None if utility is None else _finite(utility / math.log(10.0)),
        "threshold": threshold,
        "one_over_n": 1.0 / mechanism.records,
        "dp_delta": worst_case_delta(mechanism, epsilon).delta,
        "records": mechanism.records,
        "drawn": mechanism.drawn,
        "seconds": time.perf_counter() - start,
    }
    _print(record, as_json)


def _mechanism(
    records: int, lost_rate: str | None, drawn: int | None, categories: int
) -> SamplingHistogram:
    from dpopt.smoothed import SamplingHistogram

    if (lost_rate is None) == (drawn is None):
        raise ParameterError("give either --lost-rate or --drawn.")
    if drawn is not None:
        return SamplingHistogram(records, drawn, categories)
    return SamplingHistogram.of_lost_rate(records, str(lost_rate), categories)


def _laws(text: str) -> list[Any]:
    rows = [[_share(word, text) for word in row.split(":")] for row in text.split(",")]
    if len({len(row) for row in rows}) > 1:
        raise ParameterError(f"shares is {text!r}; all distributions must have as many categories.")
    return [row[0] for row in rows] if len(rows[0]) == 1 else rows


def _share(word: str, text: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ParameterError(
            f"shares is {text!r}; it must hold numbers, such as 0.4,0.6 or 0.2:0.3:0.5,0.1:0.1:0.8."
        ) from None


def _count(word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        value = -1
    if value < 0:
        raise ParameterError(f"counts holds {word!r}; each must be an integer of at least 0.")
    return value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _print(record: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show(to_json(record))
        return
    lines = []
    for name, value in record.items():
        shown = f"{value:.12g}" if isinstance(value, float) else value
        lines.append(f"{name:13s} {'-' if shown is None else shown}")
    show("\n".join(lines))
