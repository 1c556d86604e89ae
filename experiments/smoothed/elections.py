"""Figures 1 and 3: what the published count of each election since 1920 reveals of one vote.

For the sources of the votes see data/SOURCES.md.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Lt
from matplotlib.figure import Figure

from dpopt import smoothed
from experiments import drawing
from experiments.parameters import Some, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.smoothed.utility import adversary_utility
from experiments.verdicts import not_comparable, observed

COUNTED = "US presidential popular vote, certified counts"
"""Where the votes come from."""


@dataclass(frozen=True)
class Election:
    """The votes of the two leading candidates.

    Attributes:
        name: the year, or the region's short name.
        first: votes of one of them.
        second: votes of the other.
    """

    name: str
    first: int
    second: int

    @property
    def records(self) -> int:
        """n, the votes of both."""
        return self.first + self.second

    @property
    def share(self) -> float:
        """Share of the second."""
        return self.second / self.records


@cache
def history() -> tuple[Election, ...]:
    """Return the national elections of 1920 to 2020."""
    return _read("popular_vote.csv")


@cache
def units() -> tuple[Election, ...]:
    """Return 2020 by state, the District of Columbia, and the districts of Maine and Nebraska."""
    return _read("units_2020.csv")


def _read(name: str) -> tuple[Election, ...]:
    """Return the elections of a file: names first, the votes in the last two columns."""
    with (Path(__file__).parent / "data" / name).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    return tuple(Election(row[0].strip(), int(row[-2]), int(row[-1])) for row in rows)


Pi = Literal["units", "history", "DC NE-2"]


def pmfs(name: Pi) -> dict[str, float]:
    """Return a set of distributions: the share of the second candidate, by name."""
    ends = [each for each in units() if each.name in ("DC", "NE-2")]
    chosen = {"units": units(), "history": history(), "DC NE-2": ends}[name]
    return {each.name: each.share for each in chosen}


@configuration
class Config:
    """What the adversary must reach, and how many votes are lost.

    Attributes:
        thresholds: t, accuracies that the adversary must be above, from 0.5 up to 1; epsilon is
            ln(t / (1 - t)).
        lost_rates: shares of the votes that are lost at random.
    """

    thresholds: Some[Annotated[float, Ge(0.5), Lt(1.0)]] = (0.51,)
    lost_rates: Some[Annotated[float, Ge(0.0), Lt(1.0)]] = (0.002,)


def run(config: Config) -> Outcome:
    """Compute delta(x) and the adversary's utility of every election."""
    records = [
        _record(election, lost_rate, threshold)
        for lost_rate, threshold in track(list(product(config.lost_rates, config.thresholds)))
        for election in history()
    ]
    table = Table.of(records)
    return Outcome({"elections": table}, _comparisons(table), data=COUNTED)


def _record(election: Election, lost_rate: float, threshold: float) -> dict[str, Any]:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(election.records, lost_rate)
    counts = (election.first, election.second)
    epsilon = math.log(threshold / (1.0 - threshold))
    profile = smoothed.privacy_profile(mechanism, epsilon, counts)
    logarithms = {
        "log10_delta": float(profile.log10_delta[0]),
        "log10_utility": adversary_utility(mechanism, threshold, counts) / math.log(10.0),
        "log10_one_over_n": -math.log10(election.records),
        "log10_dp_delta": smoothed.log_exposure(mechanism) / math.log(10.0),
    }
    return {
        "year": int(election.name),
        "records": election.records,
        "drawn": mechanism.drawn,
        "lost_rate": lost_rate,
        "threshold": threshold,
        "epsilon": epsilon,
    } | {name: value if math.isfinite(value) else None for name, value in logarithms.items()}


def _logarithms(table: Table, name: str) -> list[float]:
    return [-math.inf if cell is None else cell for cell in table.column(name)]


def _comparisons(table: Table) -> tuple[Comparison, ...]:
    """Return what the paper says of the utilities, where this run has the setting."""
    comparisons = []
    first = table.select(lost_rate=0.002, threshold=0.51)
    if first.rows:
        utility = _logarithms(first, "log10_utility")
        low, high = min(utility), max(utility)
        below = all(u < b for u, b in zip(utility, first.column("log10_one_over_n"), strict=True))
        orders = math.isfinite(low) and (math.floor(low), math.floor(high)) == (-32, -8)
        comparisons.append(
            observed(
                "0.2 % lost, t = 0.51: the adversary's utility is of the order of 1e-32 to 1e-8, "
                "always below 1/n (Section 1).",
                f"From {10**low:.2e} to {10**high:.2e}, {'' if below else 'not '}always below 1/n.",
                "exact sums of the hypergeometric tails",
                alike=orders and below,
                rule="agrees if the least is 1e-32 and the largest 1e-8 in its power of ten, and "
                "every one is below 1/n",
                name="utility of the elections",
            )
        )
    last = table.select(lost_rate=0.0001, threshold=0.6)
    if last.rows:
        delta = _logarithms(last, "log10_delta")
        below = all(d < b for d, b in zip(delta, last.column("log10_one_over_n"), strict=True))
        comparisons.append(
            not_comparable(
                "0.01 % lost, t = 0.6: delta is o(1/n) (Appendix A.2).",
                f"delta(x) is {'' if below else 'not '}below 1/n in every election, at most "
                f"10^{max(delta):.1f}.",
                "exact sums of the hypergeometric tails",
                why="o(1/n) is a statement on a limit",
            )
        )
    return tuple(comparisons)


def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each threshold and loss."""
    table = outcome.tables["elections"]
    settings = table.distinct("lost_rate", "threshold")
    thresholds = len(set(table.column("threshold")))
    columns = 3 if thresholds % 3 == 0 else min(2, thresholds)
    figure, panels = drawing.panels(
        len(settings),
        columns,
        across="year of the election",
        up=r"$\log_{10}$ of a probability",
        height=0.55 if columns < 3 else 0.85,
    )
    # The two are as close as the factor between them, 2 at most: one is a line, the other points.
    looks = {
        "log10_dp_delta": (r"$\delta$ of DP, $T/n$", drawing.beside("baseline")),
        "log10_one_over_n": ("$1/n$, the target", drawing.beside("limit")),
        "log10_delta": (r"$\delta(x)$", drawing.beside("optimum")),
        "log10_utility": ("adversary's utility", drawing.points("variant", markerfacecolor="none")),
    }
    for axes, (rate, threshold) in zip(panels, settings, strict=True):
        chosen = table.select(lost_rate=rate, threshold=threshold)
        years = chosen.column("year")
        alone: dict[str, Any] = {"marker": "o"} if len(chosen.rows) == 1 else {}
        for column, (label, look) in looks.items():
            axes.plot(years, _logarithms(chosen, column), label=label, **look | alone)
        # Six elections at most, none between two.
        axes.set_xticks(years[:: -(-len(years) // 6)])
        axes.margins(y=0.1)
        axes.locator_params(axis="y", steps=[1, 2, 5, 10])
        axes.set_title(f"{100 * rate:g} % lost, $t = {threshold:g}$")
    return drawing.finish(figure, panels)


experiment("smoothed-figure-1", config=Config())(run).figure(plot)
experiment("smoothed-figure-3", config=Config((0.5, 0.51, 0.6), (0.002, 0.0001)))(run).figure(plot)
