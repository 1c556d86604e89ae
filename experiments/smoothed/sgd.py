"""Figures 2 (right) and 5: one step of SGD with 8-bit gradients, without added noise."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt.smoothed import QuantisedGradient
from experiments.registry import Experiment, Outcome
from experiments.smoothed.common import PAPER
from experiments.smoothed.sgd_common import Config, Setting, run, steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#2f5d9b", "#0b6e4f", "#d98a29", "#8a5aa8", "#17a2b8", "#7a7a7a")
DP_COLOUR = "#d6409f"

FIGURE_2 = (
    Setting("N(0, .12²), N(.2, .12²)", QuantisedGradient(0.0, 0.12), QuantisedGradient(0.2, 0.12)),
)
FIGURE_5 = (
    Setting(
        "1: N(0, .15²), N(.2, .15²)", QuantisedGradient(0.0, 0.15), QuantisedGradient(0.2, 0.15)
    ),
    Setting("2: N(0, .1²), N(.2, .1²)", QuantisedGradient(0.0, 0.1), QuantisedGradient(0.2, 0.1)),
    Setting(
        "3: N(0, .12²), L(0, .12²)",
        QuantisedGradient(0.0, 0.12),
        QuantisedGradient(0.0, 0.12, "laplace"),
    ),
    Setting(
        "4: L(0, .12²), L(.2, .12²)",
        QuantisedGradient(0.0, 0.12, "laplace"),
        QuantisedGradient(0.2, 0.12, "laplace"),
    ),
)
PUBLISHED = (
    "delta falls exponentially in n, DP's delta does not; no numbers. Probabilities were estimated "
    "from independent trials, which makes delta too large at large epsilon (smoothed-sgd-bias)."
)


def plot(outcome: Outcome) -> Figure:
    """Draw delta against n for each setting: averages, bands, fits and DP's delta."""
    from matplotlib.figure import Figure

    tables = outcome.tables
    labels = list(dict.fromkeys(tables["smoothed"].column("setting")))
    columns = min(2, len(labels))
    rows = math.ceil(len(labels) / columns)
    figure = Figure(figsize=(5.6 * columns, 3.9 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, label in zip(grid.flat, labels, strict=False):
        parts = [
            tables["smoothed"].select(setting=label),
            tables["fits"].select(setting=label, variable="records"),
        ]
        _draw(axes, *([dict(zip(t.columns, r, strict=True)) for r in t.rows] for t in parts))
        axes.set_title(label, fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel("records $n$; batches of $\\sqrt{n}$")
    for axes in grid[:, 0]:
        axes.set_ylabel(r"$\delta$")
    grid[0, 0].legend(fontsize=8, frameon=False, loc="lower left")
    return figure


def _draw(axes: Axes, rows: list[dict[str, Any]], fits: list[dict[str, Any]]) -> None:
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    for epsilon, colour in zip(epsilons, cycle(COLOURS), strict=False):
        part = [row for row in rows if row["epsilon"] == epsilon]
        n = np.array([row["records"] for row in part])
        middle, lower, upper = (
            np.array([10.0 ** row[name] for row in part])
            for name in ("log10_delta", "log10_lower", "log10_upper")
        )
        axes.plot(
            n, middle, "o-", color=colour, markersize=3, label=rf"$\varepsilon = {epsilon:g}$"
        )
        axes.fill_between(n, lower, upper, color=colour, alpha=0.2, linewidth=0)
        fit = next(fit for fit in fits if fit["epsilon"] == epsilon)
        axes.plot(n, np.exp(fit["a"] + fit["b"] * n), ":", color=colour, linewidth=1)
    dp = {row["records"]: row["dp_delta"] for row in rows}
    axes.plot(list(dp), list(dp.values()), "--", color=DP_COLOUR, label=r"DP: $T / n$")
    axes.set_yscale("log")
    axes.grid(alpha=0.25)


def _experiment(name: str, item: str, quick: Config, full: Config) -> Experiment:
    return Experiment(
        name=name,
        paper=PAPER,
        item=item,
        summary="Smoothed delta of one SGD step with 8-bit gradients against n, batches of "
        "sqrt(n). delta of each database is exact, over all neighbours; its expectation is an "
        "average over sampled databases, with a 99 % band, for a grid of compositions that "
        "includes both ends. No delta is above T / n, and neither is the band. Dotted: "
        "exponential fits in n. Dashed: DP, T / n at every epsilon. sigma of a Laplace "
        "distribution is read as its standard deviation.",
        published=PUBLISHED,
        config=full,
        quick=quick,
        steps=steps,
        run=run,
        plot=plot,
    )


_QUICK_2 = Config(FIGURE_2, databases=10)
_QUICK_5 = Config(FIGURE_5, batches=(5, 8, 11), databases=6)
EXPERIMENTS = (
    _experiment(
        "smoothed-figure-2-right",
        "Figure 2 (right)",
        _QUICK_2,
        replace(
            _QUICK_2,
            batches=(5, 7, 9, 11, 13, 15, 17, 20),
            shares=(0.0, 0.25, 0.5, 0.75, 1.0),
            databases=40,
        ),
    ),
    _experiment(
        "smoothed-figure-5",
        "Figure 5",
        _QUICK_5,
        replace(
            _QUICK_5,
            batches=(5, 7, 9, 11, 13, 15),
            shares=(0.0, 0.25, 0.5, 0.75, 1.0),
            databases=20,
        ),
    ),
)
