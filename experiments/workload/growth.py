"""How the least variance grows with the alphabet, and of a histogram in closed form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic.dataclasses import dataclass

import dpopt
from dpopt.local import WorkloadSetting, query_matrix
from dpopt.local.subsets import best_subset
from experiments import drawing
from experiments.parameters import STRICT, Several
from experiments.registry import Cell, Outcome, Table, experiment, track
from experiments.verdicts import short
from experiments.workload.baselines import variances
from experiments.workload.common import PAPER, PROGRAM, Epsilon, least_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What holds for the optimum of the histogram, and is drawn beside it.
_CLOSED = "histogram"


@dataclass(frozen=True, config=STRICT)
class Config:
    """Sizes of the alphabet, and the queries.

    Attributes:
        workload: prefix or range.
        letters: n of the program, from 2 to 64; above 24 the bound is semidefinite.
        closed: n of the histogram, from 2 to 256, where the optimum has a closed form.
        epsilon: in nats, from 0.01 to 12.
    """

    workload: Literal["prefix", "range"] = "prefix"
    letters: Several[Annotated[int, Ge(2), Le(64)]] = (4, 8, 12, 16, 20, 24, 32, 48, 64)
    closed: Several[Annotated[int, Ge(2), Le(256)]] = (4, 8, 16, 32, 64, 128, 256)
    epsilon: Epsilon = 3.0


@experiment(
    "workload-growth",
    PAPER,
    "Growth with the alphabet",
    "The least variance as the alphabet grows, with what is proved of it: all patterns up "
    "to 24 letters, a semidefinite program beyond, and for a histogram the closed form.",
    config=Config(),
    quick=Config(letters=(4, 8, 12), closed=(4, 16, 64)),
    mathematics=(
        *PROGRAM,
        r"\text{histogram: } \min_k \frac{(n - 1)^2 (k e^\varepsilon + n - k)^2}"
        r"{n \, k (n - k) (e^\varepsilon - 1)^2} + \frac{1}{n} - 1",
    ),
)
def run(config: Config) -> Outcome:
    """Design and prove a mechanism for each size; evaluate the closed form of the histogram."""
    records: list[dict[str, Cell]] = []
    for n in track(config.letters):
        found = dpopt.design(WorkloadSetting(config.workload, n, config.epsilon))
        records.append(
            _record(config, config.workload, n, found.variance)
            | {"bound": found.bound, "bound_proved_by": found.proof}
        )
    for n in track(config.closed):
        least = best_subset(n, math.exp(config.epsilon), np.eye(n))[0] - 1
        records.append(
            _record(config, _CLOSED, n, least) | {"bound": least, "bound_proved_by": "symmetry"}
        )
    table = Table.of(
        "Least variance of all answers together, for each person, its bound, and the least of the "
        "mechanisms in use; letters uniform.",
        records,
    )
    return Outcome({"growth": table}, tuple(_findings(config, table)))


def _record(config: Config, workload: str, n: int, variance: float) -> dict[str, Cell]:
    matrix = query_matrix(workload, n)
    others = variances(n, config.epsilon, matrix.T @ matrix, np.full(n, 1 / n))
    used = least_of(others)
    return {
        "workload": workload,
        "letters": n,
        "epsilon": config.epsilon,
        "variance": variance,
        "bound": None,
        "bound_proved_by": None,
        "best_in_use": used,
        "variance_in_use": others[used],
    }


def _findings(config: Config, table: Table) -> list[str]:
    rows = table.select(workload=config.workload).records
    found = []
    for proof in dict.fromkeys(row["bound_proved_by"] for row in rows):
        part = [row for row in rows if row["bound_proved_by"] == proof]
        sizes = ", ".join(str(row["letters"]) for row in part)
        start = f"{config.workload}, n = {sizes}: the bound is by {proof}"
        known = [row["variance"] / row["bound"] - 1 for row in part if row["bound"] is not None]
        if known:
            missing = max(known)
            most = "within 1e-5" if missing < 1e-5 else f"at most {missing:.2%} off"
            found.append(f"{start}, and the variance {most}.")
        else:
            found.append(f"{start}, which proves none.")
    last = rows[-1]
    found.append(
        f"{config.workload}, n = {last['letters']}: {last['best_in_use']}, the best in use, has "
        f"{short(last['variance_in_use'] / last['variance'])} times the variance."
    )
    return found


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw variance, bound and the best in use against n, a panel for each workload."""
    table = outcome.tables["growth"]
    workloads = list(dict.fromkeys(table.column("workload")))
    figure, panels = drawing.panels(
        len(workloads), 2, "letters $n$", "variance per person", height=0.9
    )
    for axes, workload in zip(panels, workloads, strict=True):
        part = table.select(workload=workload)
        sizes = part.column("letters")
        axes.loglog(
            sizes, part.column("variance_in_use"), **drawing.line("baseline"), label="best in use"
        )
        axes.loglog(
            sizes, part.column("variance"), **drawing.line("optimum"), label="this mechanism"
        )
        bounds = [math.nan if bound is None else bound for bound in part.column("bound")]
        axes.loglog(sizes, bounds, **drawing.line("limit"), label="proved bound")
        axes.set_xscale("log", base=2)
        first, last = math.floor(math.log2(min(sizes))), math.ceil(math.log2(max(sizes)))
        axes.set_xlim(2.0 ** (first - 0.4), 2.0 ** (max(last, first + 1) + 0.4))
        lowest = min(*part.column("variance"), *(b for b in bounds if b == b))
        axes.set_ylim(*drawing.decades(lowest / 1.2, 1.2 * max(part.column("variance_in_use"))))
        axes.set_title(workload)
    drawing.finish(figure, panels)
    return figure
