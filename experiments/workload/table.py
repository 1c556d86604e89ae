"""The table: the least variance of linear queries, its bound, and what people use instead."""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

import dpopt
from dpopt import Workload
from dpopt.local.decoder import category_variances
from experiments import drawing
from experiments.parameters import Count, Seed, Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track
from experiments.workload.baselines import (
    Categories,
    Epsilon,
    Queries,
    projected_gradient,
    variances,
)

OURS, GRADIENT = "this mechanism", "projected gradient"
_NOTE = "1 is the proved bound of every private mechanism"


@configuration
class Config:
    """Which queries, at which privacy, and how long the local search may take.

    Attributes:
        workloads: some of histogram, prefix, range, marginals.
        categories: n, from 2 to 20, so that all patterns are looked at.
        epsilons: in nats, from 0.01 to 12.
        tries: starts of projected gradient, at least 1; the best counts.
        steps: of each, at least 1.
        seed: of the starts.
    """

    workloads: Several[Queries] = ("prefix", "range", "histogram")
    categories: Categories = 16
    epsilons: Several[Epsilon] = (1.0, 3.0)
    tries: Count = 3
    steps: Count = 2_000
    seed: Seed = 0


@experiment(
    "workload-table",
    config=Config(),
    quick=Config(categories=8, tries=1, steps=300),
    effort=("tries", "steps", "seed"),
)
def run(config: Config) -> Outcome:
    """Design and prove a mechanism for each workload and epsilon, and evaluate the baselines."""
    records: list[dict[str, Cell]] = []
    for workload, epsilon in track(list(product(config.workloads, config.epsilons))):
        setting = Workload(workload, epsilon, config.categories)
        found = dpopt.design(setting)
        # Up to 20 categories there is one: all patterns are looked at.
        bound = cast(float, found._float_bound)
        # The mean over uniform categories has weights.
        weights = cast(np.ndarray, setting.weights)
        others = variances(config.categories, epsilon, setting.gram, weights)
        every = {OURS: found.value, **others, GRADIENT: _descended(config, setting)}
        records += [
            {
                "workload": workload,
                "categories": config.categories,
                "epsilon": epsilon,
                "mechanism": name,
                "variance": variance,
                "over_bound": variance / bound,
                "bound": bound,
                "bound_proved_by": found.proof,
            }
            for name, variance in every.items()
        ]
    return Outcome({"variances": Table.of(records)})


def _descended(config: Config, setting: Workload) -> float:
    """Return the least variance that projected gradient finds from some starts."""
    gram, uniform = setting.gram, np.full(config.categories, 1 / config.categories)
    epsilon, best = setting.epsilon, np.inf
    for place in range(config.tries):
        rng = np.random.default_rng([config.seed, place])
        rows = projected_gradient(gram, epsilon, uniform, rng, steps=config.steps)
        best = min(best, float(uniform @ category_variances(rows, gram, uniform)))
    return best


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw each mechanism's variance over the bound, a panel for each epsilon."""
    table = outcome.tables["variances"]
    epsilons = table.distinct("epsilon")
    workloads = table.distinct("workload")
    names = table.distinct("mechanism")
    figure, panels = drawing.panels(
        len(epsilons), 2, "variance over bound", "mechanism", height=1.1, sharex=True, sharey=True
    )
    looks = drawing.curves(range(len(workloads)))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        axes.axvline(1.0, **drawing.beside("limit"))
        for place, workload in enumerate(workloads):
            part = table.select(epsilon=epsilon, workload=workload)
            shift = 0.22 * (place - (len(workloads) - 1) / 2)
            axes.plot(
                part.column("over_bound"),
                [names.index(name) + shift for name in part.column("mechanism")],
                linestyle="none",
                label=workload,
                **looks[place],
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xticks([], minor=True)
        axes.set(xlim=(0.9, 1.15 * max(table.column("over_bound"))), ylim=(len(names) - 0.4, -0.6))
        axes.set_yticks(range(len(names)), names)
        axes.set_title(rf"$\varepsilon = {epsilon:g}$")
    return drawing.finish(figure, panels, _NOTE)
