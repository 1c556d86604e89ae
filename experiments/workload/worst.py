"""The worst data against the mean: what it costs to protect against every histogram."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.figure import Figure

import dpopt
from dpopt import Workload
from experiments import drawing
from experiments.parameters import Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track
from experiments.workload.baselines import Categories, Epsilon, Queries

OBJECTIVES: dict[Literal["mean", "worst-case"], str] = {"mean": "optimum", "worst-case": "variant"}


@configuration
class Config:
    """Number of categories, queries and epsilon.

    Attributes:
        workload: histogram, prefix, range or marginals.
        categories: n, from 2 to 20.
        epsilon: in nats, from 0.01 to 12.
    """

    workload: Queries = "prefix"
    categories: Several[Categories] = (4, 8, 16)
    epsilon: Epsilon = 1.0


@experiment("workload-worst", config=Config(), quick=Config(categories=(4, 8)))
def run(config: Config) -> Outcome:
    """Design for the mean and for the worst data, and evaluate each mechanism on both."""
    records: list[dict[str, Cell]] = []
    by_category: list[dict[str, Cell]] = []
    for n in track(config.categories):
        for objective in OBJECTIVES:
            setting = Workload(config.workload, config.epsilon, n, objective=objective)
            design = dpopt.design(setting)
            each = design.category_variances
            records.append(
                {"workload": config.workload, "categories": n, "epsilon": config.epsilon}
                | {"objective": objective, "mean": float(each.mean()), "worst": float(each.max())}
                | {"bound_of_objective": design.bound, "bound_proved_by": design.proof}
            )
            where: dict[str, Cell] = {"categories": n, "objective": objective}
            by_category += [
                where | {"category": u, "variance": float(value)} for u, value in enumerate(each, 1)
            ]
    return Outcome({"variances": Table.of(records), "categories": Table.of(by_category)})


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw what each category adds, a panel for each alphabet."""
    table = outcome.tables["categories"]
    looks = {
        objective: (f"made for the {objective}", drawing.line(role))
        for objective, role in OBJECTIVES.items()
    }
    figure, panels = drawing.by_panel(
        table, ["categories"], "$n = {categories}$", 2, "category", "variance by category"
    )
    for axes, part in panels.items():
        drawing.draw(axes, part, "category", "variance", looks, by="objective")
        n, values = max(part.column("category")), part.column("variance")
        room = 0.15 * max(max(values) - min(values), 1e-3 * max(values))
        axes.set_ylim(min(values) - room, max(values) + room)
        axes.set_xlim(0.5 - 0.03 * n, n + 0.5 + 0.03 * n)
        axes.set_xticks(np.unique(np.linspace(1, n, min(n, 4)).round()))
    return drawing.finish(figure, figure.axes)
