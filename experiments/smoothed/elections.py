"""Figures 1 and 3: what the published count of each election since 1920 reveals of one vote.

For the sources of the votes see data/SOURCES.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Lt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

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


def history() -> tuple[Election, ...]:
    """Return the national elections of 1920 to 2020."""
    return _read("popular_vote.csv")


def units() -> tuple[Election, ...]:
    """Return 2020 by state, the District of Columbia, and the districts of Maine and Nebraska."""
    return _read("units_2020.csv")


@cache
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
    return Outcome({"elections": table}, tuple(_comparisons(table)), data=COUNTED)


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


def _against_target(table: Table, name: str) -> tuple[float, float, str]:
    """Return the least and the largest logarithm of a column, and whether all are below 1/n."""
    values = np.array([-math.inf if cell is None else cell for cell in table.column(name)])
    below = np.all(values < table.column("log10_one_over_n"))
    return float(values.min()), float(values.max()), "" if below else "not "


def _comparisons(table: Table) -> Iterator[Comparison]:
    """Yield what the paper says of the utilities, where this run has the setting."""
    certificate = "exact sums of the hypergeometric tails"
    if (first := table.select(lost_rate=0.002, threshold=0.51)).rows:
        low, high, unless = _against_target(first, "log10_utility")
        orders = math.isfinite(low) and (math.floor(low), math.floor(high)) == (-32, -8)
        yield observed(
            "0.2 % lost, t = 0.51: the adversary's utility is of the order of 1e-32 to 1e-8, "
            "always below 1/n (Section 1).",
            f"From {10**low:.2e} to {10**high:.2e}, {unless}always below 1/n.",
            certificate,
            alike=orders and not unless,
            rule="agrees if the least is 1e-32 and the largest 1e-8 in its power of ten, and "
            "every one is below 1/n",
            name="utility of the elections",
        )
    if (last := table.select(lost_rate=0.0001, threshold=0.6)).rows:
        _, high, unless = _against_target(last, "log10_delta")
        yield not_comparable(
            "0.01 % lost, t = 0.6: delta is o(1/n) (Appendix A.2).",
            f"delta(x) is {unless}below 1/n in every election, at most 10^{high:.1f}.",
            certificate,
            why="o(1/n) is a statement on a limit",
        )


def draw_targets(axes: Axes, across: ArrayLike, records: ArrayLike, of_dp: ArrayLike) -> None:
    """Draw the logarithms of DP's delta, which is ``of_dp``, and of 1/n, the target."""
    target = -np.log10(records)
    axes.plot(across, of_dp, label=r"$\delta$ of DP, $T/n$", **drawing.beside("baseline"))
    axes.plot(across, target, label="$1/n$, the target", **drawing.beside("limit"))
    axes.margins(y=0.1)
    axes.locator_params(axis="y", steps=[1, 2, 5, 10])


def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each threshold and loss."""
    table = outcome.tables["elections"]
    settings, thresholds = table.distinct("lost_rate", "threshold"), table.distinct("threshold")
    columns = 3 if len(thresholds) % 3 == 0 else min(2, len(thresholds))
    across, up = "year of the election", r"$\log_{10}$ of a probability"
    height = 0.55 if columns < 3 else 0.85
    figure, panels = drawing.panels(len(settings), columns, across, up, height=height)
    # The two are as close as the factor between them, 2 at most: one is a line, the other points.
    looks = {
        "log10_delta": (r"$\delta(x)$", drawing.beside("optimum")),
        "log10_utility": ("adversary's utility", drawing.points("variant", markerfacecolor="none")),
    }
    for axes, (rate, threshold) in zip(panels, settings, strict=True):
        chosen = table.select(lost_rate=rate, threshold=threshold)
        years, n, of_dp = map(chosen.column, ("year", "records", "log10_dp_delta"))
        draw_targets(axes, years, n, of_dp)
        drawing.draw_columns(axes, chosen, "year", looks)
        # Six elections at most, none between two.
        axes.set_xticks(years[:: -(-len(years) // 6)])
        axes.set_title(f"{100 * rate:g} % lost, $t = {threshold:g}$")
    return drawing.finish(figure, panels)


experiment("smoothed-figure-1", config=Config())(run).figure(plot)
experiment("smoothed-figure-3", config=Config((0.5, 0.51, 0.6), (0.002, 0.0001)))(run).figure(plot)
