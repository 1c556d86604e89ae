"""A simulation: the variance that the mechanism predicts, and the squared error of many runs."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import Workload
from experiments import drawing
from experiments.arrays import Ints
from experiments.parameters import Seed, Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track
from experiments.smoothed.elections import units
from experiments.workload.baselines import Categories, Epsilon, Queries

ELECTION, MADE = "election", "Zipf distribution"
DATA = (ELECTION, MADE)
# Shares of the second candidate between which states are put into classes of equal width.
_LOW, _HIGH = 0.3, 0.7
_ERRORS = 3
_SOURCE = "US presidential election of 2020, certified counts by state; a made distribution"


@configuration
class Config:
    """The queries, the people and the runs.

    Attributes:
        workload: histogram, prefix, range or marginals.
        categories: n, from 2 to 20.
        epsilon: in nats, from 0.01 to 12.
        people: N, one or more.
        runs: for each N, at least 2.
        seed: of the draws.
    """

    workload: Queries = "prefix"
    categories: Categories = 16
    epsilon: Epsilon = 1.0
    people: Several[Annotated[int, Ge(1), Le(10**9)]] = tuple(10**k for k in range(3, 8))
    runs: Annotated[int, Ge(2)] = 4_000
    seed: Seed = 5

    def pmfs(self) -> dict[str, np.ndarray]:
        """Return the pmf of the categories for each data set; Zipf's is as 1 / u."""
        made = 1 / np.arange(1, self.categories + 1, dtype=np.float64)
        return {ELECTION: self._voters(), MADE: made / made.sum()}

    def _voters(self) -> np.ndarray:
        """Return the share of voters whose state lies in each class.

        A voter's category is the class of their state by the share of the second candidate.
        Districts are omitted, because the totals of their states include them.
        """
        found = np.zeros(self.categories)
        for each in units():
            if "-" not in each.name:
                place = math.floor((each.share - _LOW) / (_HIGH - _LOW) * self.categories)
                found[min(max(place, 0), self.categories - 1)] += each.records
        return found / found.sum()


@experiment(
    "workload-simulation",
    config=Config(),
    quick=Config(categories=8, runs=1_000),
    effort=("runs", "seed"),
)
def run(config: Config) -> Outcome:
    """Design one mechanism, and let all people of either data answer many times."""
    design = dpopt.design(Workload(config.workload, config.epsilon, config.categories))
    rng = np.random.default_rng(config.seed)
    records: list[dict[str, Cell]] = []
    for data, pmf in track(config.pmfs().items()):
        for people in config.people:
            histogram = _histogram(pmf, people)
            squares = _squares(design, histogram, config.runs, rng)
            seen, predicted = float(squares.mean()), float(histogram @ design.category_variances)
            error = float(squares.std(ddof=1)) / math.sqrt(config.runs)
            records.append(
                {"data": data, "people": people, "runs": config.runs, "predicted": predicted}
                | {
                    "seen": seen,
                    "standard_error": error,
                    "errors_apart": (seen - predicted) / error,
                }
            )
    return Outcome({"variances": Table.of(records)}, data=_SOURCE)


def _histogram(pmf: np.ndarray, people: int) -> Ints:
    """Round a pmf to integer counts of ``people``, by the largest remainders."""
    found = np.floor(people * pmf).astype(np.int64)
    remainders = people * pmf - found
    found[np.argsort(-remainders, kind="stable")[: people - int(found.sum())]] += 1
    return found


def _squares(
    design: dpopt.Design, histogram: Ints, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the squared error of all answers in each run, shape (runs,).

    How many people of a category have each output is multinomial with the certified distribution,
    so that ten million people cost what ten do. The generator is seeded: nothing here is private.
    """
    truth = design.setting.matrix @ histogram
    pmfs = design.table.matrix()
    outputs = np.zeros((runs, pmfs.shape[1]))
    for pmf, people in zip(pmfs, histogram, strict=True):
        outputs += rng.multinomial(people, pmf / pmf.sum(), size=runs)
    return np.sum((outputs @ design.decoder.T - truth) ** 2, axis=1)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw observed over predicted variance, with three standard errors, for each data set."""
    table = outcome.tables["variances"]
    figure, panels = drawing.by_panel(
        table, ["data"], "{data}", 2, "people $N$", "observed / predicted", sharex=True, sharey=True
    )
    look = drawing.points("optimum", capsize=2, label=f"observed, {_ERRORS} standard errors")
    ends = [1.0]
    for axes, part in panels.items():
        predicted = np.array(part.column("predicted"))
        ratios = np.array(part.column("seen")) / predicted
        margins = _ERRORS * np.array(part.column("standard_error")) / predicted
        ends += [*(ratios - margins), *(ratios + margins)]
        axes.axhline(1.0, **drawing.beside("limit"), label="predicted")
        axes.errorbar(part.column("people"), ratios, yerr=margins, **look)
        axes.set_xscale("log")
        low, high = drawing.decades(min(part.column("people")), max(part.column("people")))
        axes.set_xlim(low / 3, high * 3)
    room = 0.1 * (max(ends) - min(ends))
    # The panels share their axis.
    figure.axes[0].set_ylim(min(ends) - room, max(ends) + room)
    return drawing.finish(figure, figure.axes)
