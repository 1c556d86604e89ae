"""Figures 1 and 3: what the published count of each election since 1920 tells of one vote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpopt import smoothed
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.smoothed import PAPER
from experiments.smoothed.votes import Election, history
from experiments.verdicts import not_comparable, observed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Thresholds t of the adversary's accuracy, and the shares of votes that are lost."""

    thresholds: tuple[float, ...] = (0.51,)
    lost_rates: tuple[str, ...] = ("0.002",)


def run(config: Config, advance: Advance) -> Outcome:
    """Compute delta(x) and the adversary's utility of every election."""
    records: list[dict[str, Cell]] = []
    for lost_rate in config.lost_rates:
        for threshold in config.thresholds:
            records += [_record(election, lost_rate, threshold) for election in history()]
            advance()
    table = Table.of(
        "delta(x) and the adversary's utility, as decimal logarithms, beside 1/n.", records
    )
    return Outcome({"elections": table}, tuple(_findings(records)), tuple(_comparisons(table)))


def _record(election: Election, lost_rate: str, threshold: float) -> dict[str, Cell]:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(election.records, lost_rate)
    counts = (election.first, election.second)
    epsilon = math.log(threshold / (1.0 - threshold))
    profile = smoothed.privacy_profile(mechanism, epsilon, counts)
    utility = smoothed.adversary_utility(mechanism, threshold, counts)
    return {
        "year": int(election.name),
        "records": election.records,
        "drawn": mechanism.drawn,
        "lost_rate": float(lost_rate),
        "threshold": threshold,
        "epsilon": epsilon,
        "log10_delta": float(profile.log10_delta[0]),
        "log10_utility": utility / math.log(10.0),
        "log10_one_over_n": -math.log10(election.records),
        "dp_delta": smoothed.worst_case_delta(mechanism, epsilon).delta,
    }


def _comparisons(table: Table) -> list[Comparison]:
    """Return what the paper says of the utilities, where this run has the setting."""
    found = []
    first = table.select(lost_rate=0.002, threshold=0.51)
    if first.rows:
        utility = first.column("log10_utility")
        low, high = min(utility), max(utility)
        below = all(u < b for u, b in zip(utility, first.column("log10_one_over_n"), strict=True))
        orders = (math.floor(low), math.floor(high)) == (-32, -8)
        found.append(
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
        below = all(
            d < b
            for d, b in zip(
                last.column("log10_delta"), last.column("log10_one_over_n"), strict=True
            )
        )
        found.append(
            not_comparable(
                "0.01 % lost, t = 0.6: delta is o(1/n) (Appendix A.2).",
                f"delta(x) is {'' if below else 'not '}below 1/n in every election, at most "
                f"10^{max(last.column('log10_delta')):.1f}.",
                "exact sums of the hypergeometric tails",
                why="o(1/n) is a statement on a limit",
            )
        )
    return found


def _findings(records: list[dict[str, Cell]]) -> list[str]:
    found = []
    keys = dict.fromkeys((row["lost_rate"], row["threshold"]) for row in records)
    for lost_rate, threshold in keys:
        part = [r for r in records if (r["lost_rate"], r["threshold"]) == (lost_rate, threshold)]
        values = [float(row["log10_delta"] or 0.0) for row in part]
        below = sum(
            float(row["log10_delta"] or 0.0) < float(row["log10_one_over_n"] or 0.0) for row in part
        )
        found.append(
            f"{float(lost_rate or 0):.2%} lost, t = {threshold}: delta(x) from "
            f"10^{min(values):.2f} to 10^{max(values):.2f}; below 1/n in {below} "
            f"of {len(part)} elections."
        )
    return found


def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each threshold and loss."""
    from matplotlib.figure import Figure

    table = outcome.tables["elections"]
    rates = list(dict.fromkeys(table.column("lost_rate")))
    thresholds = list(dict.fromkeys(table.column("threshold")))
    size = (4.6 * len(thresholds) + 1.0, 3.4 * len(rates) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rates), len(thresholds), squeeze=False)
    for row, rate in zip(grid, rates, strict=True):
        for axes, threshold in zip(row, thresholds, strict=True):
            _panel(axes, table.select(lost_rate=rate, threshold=threshold))
            axes.set_title(f"{rate:.2%} lost, $t = {threshold}$", fontsize=10)
    grid[0][0].legend(frameon=False, fontsize=9)
    return figure


def _panel(axes: Axes, part: Table) -> None:
    years = part.column("year")
    curves = (
        ("log10_delta", r"$\delta(x)$", "-", "#2f5d9b"),
        ("log10_utility", "adversary's utility", "o", "#c1432e"),
        ("log10_one_over_n", "$1/n$", ":", "#555555"),
    )
    for column, label, style, colour in curves:
        axes.plot(years, part.column(column), style, color=colour, markersize=3, label=label)
    axes.set_xlabel("election")
    axes.set_ylabel(r"$\log_{10}$")
    axes.grid(alpha=0.25)


_FIGURE_1 = Config()
_FIGURE_3 = Config((0.5, 0.51, 0.6), ("0.002", "0.0001"))

EXPERIMENTS = (
    Experiment(
        name="smoothed-figure-1",
        paper=PAPER,
        item="Figure 1",
        summary="delta(x) and the adversary's utility for the counts of each presidential election "
        "of the United States, 0.2 % of the votes lost at random, t = 0.51.",
        published="utility from the order of 1e-32 to 1e-8, always below 1/n",
        config=_FIGURE_1,
        quick=_FIGURE_1,
        steps=lambda config: len(config.thresholds) * len(config.lost_rates),
        run=run,
        plot=plot,
    ),
    Experiment(
        name="smoothed-figure-3",
        paper=PAPER,
        item="Figure 3",
        summary="The same for three thresholds and two losses.",
        published="far below DP's delta in all; delta = o(1/n) at 0.01 % lost and t = 0.6",
        config=_FIGURE_3,
        quick=_FIGURE_3,
        steps=lambda config: len(config.thresholds) * len(config.lost_rates),
        run=run,
        plot=plot,
    ),
)
