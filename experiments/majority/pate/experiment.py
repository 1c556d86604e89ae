"""Tables 1, 6, 8 and 10 of the DaRRM paper, from the recorded votes of trained teachers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from experiments.majority.pate.aggregate import METHODS, aggregators
from experiments.majority.pate.comparisons import comparisons
from experiments.majority.pate.figure import plot
from experiments.majority.pate.findings import findings
from experiments.majority.pate.rates import load_rates
from experiments.majority.pate.tables import (
    Draws,
    agreement_table,
    drawn_records,
    exact_record,
    teacher_table,
    totals_table,
)
from experiments.majority.pate.votes import SHIPPED, load_votes
from experiments.registry import Advance, Cell, Experiment, Outcome, Table


@dataclass(frozen=True)
class Config:
    """Parameters of the tables.

    Attributes:
        votes: a votes file; None for the shipped one.
        allowances: m; the target of one label is (m epsilon, m Delta).
        queries: Q, labels asked for; each at most the number of test images.
        draws: how often Q images are drawn, for mean and spread as printed in the paper; at
            least 2.
        seed: of the draws and of the aggregators' noise.
    """

    votes: str | None = None
    allowances: tuple[int, ...] = (1, 3, 5, 7)
    queries: tuple[int, ...] = (20, 50, 100)
    draws: int = 10
    seed: int = 10


def steps(config: Config) -> int:
    """Return the number of targets."""
    return len(config.allowances)


def run(config: Config, advance: Advance) -> Outcome:
    """Aggregate the votes in every way, for every target."""
    votes = load_votes(SHIPPED if config.votes is None else Path(config.votes))
    exact: list[dict[str, Cell]] = []
    drawn: list[dict[str, Cell]] = []
    draws = Draws(config.draws, config.seed)
    for allowance in config.allowances:
        ways = aggregators(votes, allowance)
        exact += [exact_record(votes, way, allowance) for way in ways]
        for queries in config.queries:
            drawn += drawn_records(draws, votes, ways, allowance, queries)
        advance()
    tables = {
        "methods": Table.of(
            "The ways of aggregating.",
            [{"method": name, "meaning": meaning} for name, meaning in METHODS.items()],
        ),
        "accuracy": Table.of(
            "Expected accuracy of one label over all test images and over the aggregator's coins, "
            "without sampling: mean, standard deviation, lowest and highest over the training "
            "runs, and of each.",
            exact,
        ),
        "queries": Table.of(
            f"Accuracy of Q labels over {config.draws} draws of Q test images in each training "
            "run: mean and standard deviation of a run's draws; exactly, with the standard "
            "deviation between runs and each run; what the paper printed; how far it may lie from "
            "the mean (95 %, Welch, and half a printed unit), and whether it does.",
            drawn,
        ),
        "teachers": teacher_table(votes),
        "agreement": agreement_table(votes),
        "totals": totals_table(votes, config.allowances, config.queries),
    }
    if config.votes is None:
        tables["learning-rates"] = load_rates()
    found = findings(votes, tables, shipped=config.votes is None)
    return Outcome(tables, found, comparisons(tables))


QUICK = Config()
"""Ten draws, as in the paper."""

EXPERIMENT = Experiment(
    name="majority-tables-1-6-8-10",
    paper="DaRRM",
    item="Tables 1, 6, 8 and 10, MNIST",
    summary="Labels of MNIST images, 5 against 8, from K = 11 teachers at (m epsilon, m Delta) for "
    "each label, epsilon = 0.0892, Delta = 1e-4: GNMax on teachers without privacy, DaRRM on "
    "teachers trained by DP-SGD. The votes are those of three training runs of ours; those of the "
    "tables' other half, Fashion-MNIST, are not shipped.",
    published="GNMax / subsampling / optimised gamma at Q = 100: m = 1: .57 / .71 / .69; m = 3: "
    ".64 / .76 / .80; m = 5: .72 / .79 / .83; m = 7: .80 / .80 / .83; all of them in the table.",
    config=replace(QUICK, draws=1000),
    quick=QUICK,
    steps=steps,
    run=run,
    plot=plot,
)

EXPERIMENTS = (EXPERIMENT,)


def for_votes(path: Path) -> Experiment:
    """Return the experiment on a user's own votes file."""
    at = str(path)
    return replace(
        EXPERIMENT,
        summary="The same tables from the votes of another training run.",
        config=replace(EXPERIMENT.config, votes=at),
        quick=replace(QUICK, votes=at),
    )
