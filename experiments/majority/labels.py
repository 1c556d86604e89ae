"""Many labels at one budget: designs under a curve, one label designed alone, and noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure
from scipy.optimize import brentq

import dpopt
from dpopt import Majority, Plurality
from dpopt.ballots.tabulate import largest
from dpopt.composition import interval
from dpopt.privacy import Guarantee, general_composition
from dpopt.table import Table as Kernel
from dpopt.table import rounded
from experiments import drawing
from experiments.ensembles.pmfs import gaussian_wins, gnmax_noise, ranged_share, rules_of
from experiments.parameters import Positive, Rising, Voters, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track

CURVE, EXACT = "under a curve", "composed exactly"
GENERAL, EQUAL = "general composition", "equal shares"
GNMAX, GNMAX_LABEL = "GNMax with its counts composed", "GNMax with its label composed exactly"
EXPONENTIAL, COIN = "exponential mechanism composed exactly", "random label"

LOOKS: drawing.Looks = {
    CURVE: (CURVE, drawing.line("optimum")),
    EXACT: (EXACT, drawing.line("variant")),
    GENERAL: (GENERAL, drawing.line("paper")),
    EQUAL: (EQUAL, drawing.line("baseline")),
    GNMAX: (GNMAX, drawing.line("baseline-3")),
    GNMAX_LABEL: (GNMAX_LABEL, drawing.line("baseline-3", linestyle=":", marker="p")),
    EXPONENTIAL: (EXPONENTIAL, drawing.line("baseline-2")),
    COIN: (COIN, drawing.beside("noise")),
}

# Cells of the grid on which k labels are composed, at least and over the root of k; relative
# width at which the search for a parameter ends.
_LEAST_CELLS, _CELLS, _WIDTH = 1_000, 300, 1e-4

Labels = Annotated[int, Ge(1), Le(1000)]
Several = Annotated[int, Ge(2), Le(1000)]
Epsilon = Annotated[float, Ge(0.1), Le(28.0)]
Delta = Annotated[float, Ge(1e-12), Le(0.1)]


@configuration
class Config:
    """How many labels, of which votes, and the guarantee of all of them together.

    Attributes:
        labels: numbers of labels k of private voters, from 1 to 1,000, rising.
        voters: K, up to 101; their votes are drawn afresh for each label.
        epsilon: of each voter, in nats, up to 3.
        total_epsilon: of all k labels together, in nats, from 0.1 to 28.
        total_delta: likewise, from 1e-12 to 0.1.
        ballot_labels: numbers of labels k of plain ballots, from 2 to 1,000, rising.
        ballots: of each label, from teachers without privacy, from 2 to 30.
        classes: of the ballots, from 2 to 4.
        ballot_epsilon: of all k labels of plain ballots together, in nats, from 0.1 to 28.
        ballot_delta: likewise, from 1e-12 to 0.1.
    """

    labels: Rising[Labels] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    voters: Annotated[Voters, Le(101)] = 11
    epsilon: Annotated[Positive, Le(3.0)] = 0.1
    total_epsilon: Epsilon = 3.5246
    total_delta: Delta = 1e-5
    ballot_labels: Rising[Several] = (2, 4, 8, 16, 32, 64, 128)
    ballots: Annotated[int, Ge(2), Le(30)] = 15
    classes: Annotated[int, Ge(2), Le(4)] = 3
    ballot_epsilon: Epsilon = 4.0
    ballot_delta: Delta = 1e-6

    @property
    def total(self) -> Guarantee:
        """Of all labels of private voters together."""
        return Guarantee(self.total_epsilon, self.total_delta)

    @property
    def ballot_total(self) -> Guarantee:
        """Of all labels of plain ballots together."""
        return Guarantee(self.ballot_epsilon, self.ballot_delta)


@experiment(
    "majority-labels",
    config=Config(),
    quick=Config(labels=(1, 5, 10, 20, 50, 200), ballot_labels=(2, 8, 16, 40)),
)
def run(config: Config) -> Outcome:
    """Design labels of private voters and of plain ballots for every number of labels."""
    voters = [row for k in track(config.labels) for row in _of_voters(config, k)]
    ballots = [row for k in track(config.ballot_labels) for row in _of_ballots(config, k)]
    return Outcome({"voters": Table.of(voters), "ballots": Table.of(ballots)})


def _of_voters(config: Config, labels: int) -> Iterator[dict[str, Cell]]:
    """Yield the error of a label of private voters for each way to share the total."""
    k, total, voter = config.voters, config.total, config.epsilon

    def row(way: str, error: float, m: float | None = None, mu: float | None = None) -> Any:  # noqa: ANN401
        return {"labels": labels, "way": way, "error": error, "m": m, "mu": mu}

    if labels == 1:
        m = min(total.epsilon / voter, float(k))
        yield row(CURVE, dpopt.design(Majority(k, voter, m, delta=total.delta)).expected_error, m)
    else:
        together: dict[str, Any] = {"total_epsilon": total.epsilon, "total_delta": total.delta}
        best = dpopt.design(Majority(k, voter, releases=labels, **together))
        pure, gaussian = best.curve == "pure", best.curve == "gaussian"
        m = best.curve_parameter / voter if pure else None
        yield row(CURVE, best.expected_error, m, best.curve_parameter if gaussian else None)
    one = cache(lambda m: dpopt.design(Majority(k, voter, m)))
    general = general_allowance(config, labels)
    exact = _largest(lambda m: one(m).table, one(k).setting, labels, total, general, float(k))
    equal = min(total.epsilon / labels / voter, float(k))
    for way, m in ((EXACT, exact), (GENERAL, general), (EQUAL, equal)):
        yield row(way, one(m).expected_error, m)
    coin = dpopt.majority.expected_error(np.zeros(k + 1), one(k).setting.prior)
    yield row(COIN, coin.value)


def general_allowance(config: Config, labels: int) -> float:
    """Return the largest m, up to K, whose labels by theorem 2.3 of the paper are within the total.

    All of total_delta is the slack delta'.
    """

    def within(m: float) -> bool:
        one = Guarantee(m * config.epsilon)
        return general_composition(one, labels, config.total_delta).epsilon <= config.total_epsilon

    return largest(within, 0.0, float(config.voters))


def _of_ballots(config: Config, labels: int) -> Iterator[dict[str, Cell]]:
    """Yield the mean regret of a label of plain ballots for each mechanism."""
    sizes, total = (config.ballots, config.classes), config.ballot_total
    together: dict[str, Any] = {"total_epsilon": total.epsilon, "total_delta": total.delta}
    best = dpopt.design(Plurality(*sizes, releases=labels, **together))
    one, rules = Plurality(*sizes, 1.0), rules_of(*sizes)
    inputs: Any = one.domain

    def gnmax(precision: float) -> Kernel:
        counts = inputs.histograms[inputs.rows]
        return rounded(inputs, gaussian_wins(counts, inputs.values, 1 / precision))

    def exponential(epsilon: float) -> Kernel:
        return rounded(inputs, rules.exponential(math.exp(epsilon / 2)))

    def row(way: str, table: Kernel, parameter: float | None) -> dict[str, Cell]:
        regret = one.value(table)
        return {"labels": labels, "way": way, "regret": regret, "parameter": parameter}

    yield row(CURVE, best.table, best.curve_parameter)
    noise, share = gnmax_noise(total, labels), ranged_share(total, labels)
    yield row(GNMAX, gnmax(1 / noise), noise)
    precision = _largest(gnmax, one, labels, total, least=1 / noise)
    yield row(GNMAX_LABEL, gnmax(precision), 1 / precision)
    epsilon = _largest(exponential, one, labels, total, least=share)
    yield row(EXPONENTIAL, exponential(epsilon), epsilon)
    equal = total.epsilon / labels
    yield row(EQUAL, dpopt.design(Plurality(*sizes, equal)).table, equal)
    yield row(COIN, rounded(inputs, np.ones(inputs.size)), None)


def _largest(
    table_at: Callable[[float], Kernel],
    setting: Any,  # noqa: ANN401
    labels: int,
    total: Guarantee,
    least: float,
    most: float = math.inf,
) -> float:
    """Return the largest parameter, to 1e-3 of it, whose labels together are within the total.

    By adaptive composition of all neighbours: an upper bound of their delta is at most the total's.
    """
    cells = max(_LEAST_CELLS, math.ceil(_CELLS * math.sqrt(labels)))

    @cache
    def excess(log_parameter: float) -> float:
        pairs = setting.output_pairs(table_at(min(math.exp(log_parameter), most)))
        spent = interval(pairs, labels, total.epsilon, cells, lower=False)[1]
        return math.log(max(spent, 1e-300) / total.delta)

    end = math.log(most) if math.isfinite(most) else math.inf
    low = high = math.log(least)
    while excess(high) <= 0:
        if high >= end:
            return most
        low, high = high, min(high + math.log(2), end)
    if low == high:
        # The grid is too coarse to show it.
        return least
    root = float(brentq(excess, low, high, xtol=_WIDTH / 2))
    return max(least, math.exp(root - _WIDTH / 2))


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the error of each way against the number of labels, private voters and plain ballots."""
    figure, panels = drawing.panels(2, 2, "labels $k$", height=0.8)
    shown = (("voters", "error", "private voters"), ("ballots", "regret", "plain ballots"))
    for axes, (name, number, title) in zip(panels, shown, strict=True):
        table = outcome.tables[name]
        drawing.draw(axes, table, "labels", number, LOOKS, by="way")
        labels, top = table.column("labels"), max(table.column(number))
        axes.set_xscale("log")
        wide = max(labels) >= 100 * min(labels)
        drawing.plain_ticks(axes.xaxis, subs=(1.0,) if wide else (1.0, 2.0, 5.0))
        name = f"{'expected' if number == 'error' else 'mean'} {number}"
        axes.set(ylim=(-0.04 * top, 1.08 * top), ylabel=name, title=title)
    return drawing.finish(figure, panels)
