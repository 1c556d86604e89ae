"""The table: the least variance of linear queries, its bound, and what people use instead."""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np
from matplotlib.figure import Figure

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
    rngs = [np.random.default_rng([config.seed, place]) for place in range(config.tries)]
    kernels = (
        projected_gradient(gram, setting.epsilon, uniform, rng, steps=config.steps) for rng in rngs
    )
    return min(float(uniform @ category_variances(rows, gram, uniform)) for rows in kernels)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw each mechanism's variance over the bound, a panel for each epsilon."""
    table = outcome.tables["variances"]
    names = table.distinct("mechanism")
    shape = {"height": 1.1, "sharex": True, "sharey": True}
    title, across = r"$\varepsilon = {epsilon:g}$", "variance over bound"
    figure, panels = drawing.by_panel(table, ["epsilon"], title, 2, across, "mechanism", **shape)
    looks = drawing.curves(table.distinct("workload"))
    for axes, part in panels.items():
        axes.axvline(1.0, **drawing.beside("limit"))
        for place, (workload, look) in enumerate(looks.items()):
            over = part.select(workload=workload).column("over_bound")
            rows = np.arange(len(names)) + 0.22 * (place - (len(looks) - 1) / 2)
            axes.plot(over, rows, label=workload, linestyle="none", **look)
        axes.set_xscale("log")
        drawing.plain_ticks(axes.xaxis)
        axes.set(xlim=(0.9, 1.15 * max(table.column("over_bound"))), ylim=(len(names) - 0.4, -0.6))
        axes.set_yticks(range(len(names)), names)
    return drawing.finish(figure, figure.axes, "1 is the proved bound of every private mechanism")
