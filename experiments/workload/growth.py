"""How the least variance grows with the alphabet, and of a histogram in closed form."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import Workload
from dpopt.local import query_matrix
from dpopt.local.bound import best_subset
from experiments import drawing
from experiments.parameters import Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track
from experiments.workload.baselines import Epsilon, least_of, variances

# Curve of the histogram's closed form.
_CLOSED = "histogram"


@configuration
class Config:
    """Sizes of the alphabet, and the queries.

    Attributes:
        workload: prefix or range.
        categories: n of the program, from 2 to 64; above 24 the bound is semidefinite.
        closed: n of the histogram, from 2 to 256, where the optimum has a closed form.
        epsilon: in nats, from 0.01 to 12.
    """

    workload: Literal["prefix", "range"] = "prefix"
    categories: Several[Annotated[int, Ge(2), Le(64)]] = (4, 8, 12, 16, 20, 24, 32, 48, 64)
    closed: Several[Annotated[int, Ge(2), Le(256)]] = (4, 8, 16, 32, 64, 128, 256)
    epsilon: Epsilon = 3.0


@experiment(
    "workload-growth", config=Config(), quick=Config(categories=(4, 8, 12), closed=(4, 16, 64))
)
def run(config: Config) -> Outcome:
    """Design and prove a mechanism for each size; evaluate the closed form of the histogram."""
    records: list[dict[str, Cell]] = []
    for n in track(config.categories):
        design = dpopt.design(Workload(config.workload, config.epsilon, n))
        proved = (design.value, design.bound, design.proof)
        records.append(_record(config, config.workload, n, *proved))
    for n in track(config.closed):
        least = best_subset(n, math.exp(config.epsilon), np.eye(n))[0] - 1
        records.append(_record(config, _CLOSED, n, least, least, "symmetry"))
    return Outcome({"growth": Table.of(records)})


def _record(
    config: Config, workload: str, n: int, variance: float, bound: float | None, proof: str | None
) -> dict[str, Cell]:
    matrix = query_matrix(workload, n)
    others = variances(n, config.epsilon, matrix.T @ matrix, np.full(n, 1 / n))
    used = least_of(others)
    return (
        {"workload": workload, "categories": n, "epsilon": config.epsilon, "variance": variance}
        | {"bound": bound, "bound_proved_by": proof}
        | {"best_in_use": used, "variance_in_use": others[used]}
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw how many times the least variance the best in use has, for either workload."""
    table = outcome.tables["growth"]
    figure, (axes,) = drawing.panels(1, 1, "categories $n$", "best in use / this mechanism")
    workloads = table.distinct("workload")
    for workload, role in zip(workloads, ("optimum", "variant"), strict=False):
        part = table.select(workload=workload).records
        ratios = [row["variance_in_use"] / row["variance"] for row in part]
        sizes = [row["categories"] for row in part]
        axes.plot(sizes, ratios, label=workload, clip_on=False, **drawing.line(role))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.margins(0.06)
    known = [row for row in table.records if row["bound"] is not None]
    off = max((row["variance"] / row["bound"] - 1 for row in known), default=0.0)
    proved = "within 1e-5" if off < 1e-5 else f"within {off:.2g}"
    return drawing.finish(figure, [axes], f"This mechanism is {proved} of what is proved least.")
