"""The exact sums for delta(x), smoothed delta and one step of SGD against their linear programs."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import smoothed
from experiments import drawing
from experiments.parameters import Probability, Some, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.smoothed import program
from experiments.verdicts import statement

# Below this a difference of doubles is that of rounding; the picture shows it there.
_LEAST = 1e-17
_ITEMS = {"profile": "Definition 2", "smoothed": "Definition 3", "step": "Section 6"}


@configuration
class Config:
    """Small settings, whose programs are written out.

    Attributes:
        records: n; of each n half of the records are drawn, and of a batch two.
        epsilons: each with every n.
        shares: of the first category, in the pmfs that the adversary picks from.
        tolerance: differences up to this count as zero.
    """

    records: Some[Annotated[int, Ge(3), Le(12)]] = (4, 6, 8)
    epsilons: Some[float] = (0.1, 0.5, 1.0)
    shares: Some[float] = (0.3, 0.6)
    tolerance: Probability = 1e-9


@experiment("smoothed-programs", config=Config(), quick=Config(records=(4, 6), epsilons=(0.5,)))
def run(config: Config) -> Outcome:
    """Solve the programs of each setting, and compare them with the sums."""
    rows = [
        {"records": n, "epsilon": epsilon, "item": item, "difference": difference}
        for n in track(config.records)
        for epsilon in config.epsilons
        for item, difference in _differences(n, epsilon, config.shares).items()
    ]
    tables = {
        "differences": Table.of(rows),
        "tolerance": Table.of([{"tolerance": config.tolerance}]),
    }
    return Outcome(tables, _comparisons(tables["differences"], config.tolerance))


def _differences(records: int, epsilon: float, shares: tuple[float, ...]) -> dict[str, float]:
    mechanism = smoothed.SamplingHistogram(records, (records + 1) // 2)
    profile = smoothed.privacy_profile(mechanism, epsilon)
    largest = smoothed.smoothed_delta(mechanism, epsilon, shares)
    step = smoothed.sgd_profile(np.arange(records) % 3, 2, epsilon, lowest=-1, highest=3)
    profiles = dpopt.solve(program.profile_problem(mechanism, epsilon, profile.histograms))
    instance = program.smoothed_instance(mechanism, epsilon, largest.distributions)
    steps = dpopt.solve(program.step_problem(step))
    return {
        "profile": float(np.abs(profiles["delta"] - profile.delta).max()),
        "smoothed": abs(dpopt.solve(program.smoothed_problem(instance)).objective - largest.delta),
        "step": float(np.abs(steps["delta"] - step.delta).max()),
    }


def _comparisons(differences: Table, tolerance: float) -> tuple[Comparison, ...]:
    """Decide whether the sums are the optima of the definitions' linear programs."""
    judged = []
    for item, place in _ITEMS.items():
        worst = max(differences.select(item=item).column("difference"))
        judged.append(
            statement(
                f"Ours: the sum of {place} is the optimum of its program ({item}).",
                f"Largest difference {worst:.1e}.",
                "HiGHS; double precision",
                holds=worst <= tolerance,
                name=f"program, {item}",
            )
        )
    return tuple(judged)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the largest difference against n, with the tolerance."""
    figure, (axes,) = drawing.panels(1, across="records $n$", up="largest difference (probability)")
    table = outcome.tables["differences"]
    sizes = sorted(set(table.column("records")))
    for item, role in zip(_ITEMS, ("optimum", "variant", "paper"), strict=True):
        worst = [max(table.select(item=item, records=n).column("difference")) for n in sizes]
        axes.plot(sizes, np.maximum(worst, _LEAST), label=item, **drawing.line(role))
    (limit,) = outcome.tables["tolerance"].column("tolerance")
    axes.axhline(limit, label="tolerance", **drawing.beside("limit"))
    axes.set_xticks(sizes)
    axes.set_yscale("log")
    axes.legend()
    return figure
