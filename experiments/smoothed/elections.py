"""Figures 1 and 3: what the published count of each election since 1920 tells of one vote."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Lt
from pydantic.dataclasses import dataclass

from dpopt import ParameterError, smoothed
from experiments import drawing, style
from experiments.parameters import STRICT, Some
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.smoothed import PAPER
from experiments.smoothed.utility import adversary_utility
from experiments.smoothed.votes import COUNTED, Election, history
from experiments.verdicts import not_comparable, observed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, config=STRICT)
class Config:
    """Which elections, what the adversary must reach, and how many votes are lost.

    Attributes:
        thresholds: t, accuracies that the adversary must be above, from 0.5 up to 1; epsilon is
            ln(t / (1 - t)).
        lost_rates: shares of the votes that are lost at random.
        since: the first year.
        until: the last year.
        years: some of the years between; all of them if none is named.
        votes: CSV file of one's own, with years in its first column and the votes of two
            candidates in its last two.
    """

    thresholds: Some[Annotated[float, Ge(0.5), Lt(1.0)]] = (0.51,)
    lost_rates: Some[Annotated[float, Ge(0.0), Lt(1.0)]] = (0.002,)
    since: int = 1920
    until: int = 2020
    years: tuple[int, ...] = ()
    votes: str | None = None

    def __post_init__(self) -> None:
        known = [year for year, _ in self._counted()]
        if missing := sorted(set(self.years) - set(known)):
            raise ParameterError(
                f"years is {self.years}; {missing[0]} must be an election from {self.since} to "
                f"{self.until}."
            )
        if not known:
            raise ParameterError(
                f"since is {self.since}; there must be an election from then to {self.until}."
            )

    def _counted(self) -> list[tuple[int, Election]]:
        counted = history(self.votes)
        try:
            dated = [(int(each.name), each) for each in counted]
        except ValueError:
            raise ParameterError(
                f"votes is {self.votes}; its first column must hold years."
            ) from None
        return [(year, each) for year, each in dated if self.since <= year <= self.until]

    def elections(self) -> list[tuple[int, Election]]:
        """Return the chosen elections by year."""
        return [
            (year, each) for year, each in self._counted() if not self.years or year in self.years
        ]


def run(config: Config) -> Outcome:
    """Compute delta(x) and the adversary's utility of every election."""
    elections = config.elections()
    records: list[dict[str, Cell]] = []
    for lost_rate, threshold in track(list(product(config.lost_rates, config.thresholds))):
        records += [_record(year, each, lost_rate, threshold) for year, each in elections]
    table = Table.of(
        "delta(x) and the adversary's utility, as decimal logarithms, beside 1/n.", records
    )
    return Outcome(
        {"elections": table},
        tuple(_findings(records)),
        tuple(_comparisons(table)),
        data=COUNTED if config.votes is None else config.votes,
    )


def _record(year: int, election: Election, lost_rate: float, threshold: float) -> dict[str, Cell]:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(election.records, lost_rate)
    counts = (election.first, election.second)
    epsilon = math.log(threshold / (1.0 - threshold))
    profile = smoothed.privacy_profile(mechanism, epsilon, counts)
    utility = adversary_utility(mechanism, threshold, counts)
    worst = smoothed.worst_case_delta(mechanism, epsilon)
    return {
        "year": year,
        "records": election.records,
        "drawn": mechanism.drawn,
        "lost_rate": lost_rate,
        "threshold": threshold,
        "epsilon": epsilon,
        "log10_delta": _finite(float(profile.log10_delta[0])),
        "log10_utility": _finite(utility / math.log(10.0)),
        "log10_one_over_n": -math.log10(election.records),
        "dp_delta": worst.delta,
        "log10_dp_delta": _finite(worst.log_delta / math.log(10.0)),
    }


def _finite(value: float) -> float | None:
    """Return None for the logarithm of 0."""
    return value if math.isfinite(value) else None


def _logarithm(value: Cell) -> float:
    return -math.inf if value is None else float(value)


def _comparisons(table: Table) -> list[Comparison]:
    """Return what the paper says of the utilities, where this run has the setting."""
    found = []
    first = table.select(lost_rate=0.002, threshold=0.51)
    if first.rows:
        utility = [_logarithm(cell) for cell in first.column("log10_utility")]
        low, high = min(utility), max(utility)
        below = all(u < b for u, b in zip(utility, first.column("log10_one_over_n"), strict=True))
        orders = math.isfinite(low) and (math.floor(low), math.floor(high)) == (-32, -8)
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
        delta = [_logarithm(cell) for cell in last.column("log10_delta")]
        below = all(d < b for d, b in zip(delta, last.column("log10_one_over_n"), strict=True))
        found.append(
            not_comparable(
                "0.01 % lost, t = 0.6: delta is o(1/n) (Appendix A.2).",
                f"delta(x) is {'' if below else 'not '}below 1/n in every election, at most "
                f"10^{max(delta):.1f}.",
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
        values = [_logarithm(row["log10_delta"]) for row in part]
        below = sum(
            value < float(row["log10_one_over_n"] or 0.0)
            for value, row in zip(values, part, strict=True)
        )
        found.append(
            f"{float(lost_rate or 0):.2%} lost, t = {threshold}: delta(x) from "
            f"10^{min(values):.2f} to 10^{max(values):.2f}; below 1/n in {below} "
            f"of {len(part)} elections."
        )
    return found


def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each threshold and loss."""
    table = outcome.tables["elections"]
    rates = list(dict.fromkeys(table.column("lost_rate")))
    thresholds = list(dict.fromkeys(table.column("threshold")))
    settings = list(product(rates, thresholds))
    columns = 3 if len(thresholds) % 3 == 0 else min(2, len(thresholds))
    height = 0.55 if columns < 3 else 0.85
    figure, panels = drawing.panels(
        len(settings),
        columns,
        across="year of the election",
        up=r"$\log_{10}$ of a probability",
        height=height,
    )
    for axes, (rate, threshold) in zip(panels, settings, strict=True):
        _panel(axes, table.select(lost_rate=rate, threshold=threshold))
        axes.margins(y=0.1)
        axes.locator_params(axis="y", steps=[1, 2, 5, 10])
        axes.set_title(f"{100 * rate:g} % lost, $t = {threshold:g}$")
    drawing.finish(figure, panels)
    return figure


def _panel(axes: Axes, part: Table) -> None:
    from matplotlib.ticker import MaxNLocator

    years = part.column("year")
    # The two are as close as the factor between them, 2 at most: one is a line, the other points.
    alone: dict[str, Any] = {} if len(years) == 1 else {"marker": ""}
    curves = (
        ("log10_dp_delta", r"$\delta$ of DP, $T/n$", style.role("baseline").line | alone),
        ("log10_one_over_n", "$1/n$, the target", style.role("limit").line | alone),
        ("log10_delta", r"$\delta(x)$", style.role("optimum").line | alone),
        (
            "log10_utility",
            "adversary's utility",
            drawing.points("variant", markerfacecolor="none"),
        ),
    )
    for column, label, look in curves:
        values = [_logarithm(cell) for cell in part.column(column)]
        axes.plot(years, values, label=label, **look)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


_MATHEMATICS = (
    r"\delta(x) = \max_{x' \simeq x} \max\{d_\varepsilon(x, x'),\, d_\varepsilon(x', x)\}, \qquad "
    r"d_\varepsilon(x, x') = \sum_a \max\{0,\, \Pr[M(x) = a] - e^\varepsilon \Pr[M(x') = a]\}",
    r"u(t, x_{-i}) = \frac{1}{1 - t} \max_{X_i} E_{a \sim M(x_{-i} \cup X_i)} "
    r"\left[\max\{0,\, \max_X \Pr[X | a, x_{-i}] - t\}\right], \qquad "
    r"t = \frac{e^\varepsilon}{e^\varepsilon + 1}",
)

_FIGURE_1 = Config()
_FIGURE_3 = Config((0.5, 0.51, 0.6), (0.002, 0.0001))


experiment(
    "smoothed-figure-1",
    PAPER,
    "Figure 1",
    "delta(x) and the adversary's utility for the counts of each presidential election "
    "of the United States, 0.2 % of the votes lost at random, t = 0.51.",
    published="utility from the order of 1e-32 to 1e-8, always below 1/n",
    config=_FIGURE_1,
    mathematics=_MATHEMATICS,
)(run).figure(plot)
experiment(
    "smoothed-figure-3",
    PAPER,
    "Figure 3",
    "The same for three thresholds and two losses.",
    published="far below DP's delta in all; delta = o(1/n) at 0.01 % lost and t = 0.6",
    config=_FIGURE_3,
    mathematics=_MATHEMATICS,
)(run).figure(plot)
