"""How much noise a count needs, or several counts at one budget: the best noise and that in use."""

from __future__ import annotations

import math
from itertools import product
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure
from scipy.optimize import brentq

import dpopt
from dpopt import Noise
from dpopt.noise.many import gaussian
from experiments import drawing
from experiments.arrays import Floats
from experiments.parameters import Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track

BEST, LAPLACE, GAUSSIAN = "best noise", "discrete Laplace", "discrete Gaussian"
Epsilon = Annotated[float, Ge(0.05), Le(10.0)]
Sensitivity = Annotated[int, Ge(1), Le(20)]
Delta = Annotated[float, Ge(0.0), Le(0.1)]


@configuration
class Config:
    """Which integers, at which privacy, and what an error costs.

    Attributes:
        sensitivities: D, from 1 to 20.
        epsilons: in nats, from 0.05 to 10.
        deltas: from 0 to 0.1.
        loss: absolute or squared.
    """

    sensitivities: Several[Sensitivity] = (1, 3, 10)
    epsilons: Several[Epsilon] = (0.1, 0.3, 1.0, 3.0, 5.0)
    deltas: Several[Delta] = (0.0, 1e-6, 1e-3)
    loss: Literal["absolute", "squared"] = "absolute"


@experiment(
    "noise-table",
    config=Config(),
    quick=Config(sensitivities=(1, 3), epsilons=(0.3, 1.0, 3.0), deltas=(0.0, 1e-3)),
)
def run(config: Config) -> Outcome:
    """Design the best noise for every sensitivity, epsilon and delta, and evaluate the others."""
    records: list[dict[str, Cell]] = []
    every = product(config.sensitivities, config.deltas, config.epsilons)
    for sensitivity, delta, epsilon in track(list(every)):
        setting = Noise(sensitivity, epsilon, delta, config.loss)
        design = dpopt.design(setting)
        power = 1 if config.loss == "absolute" else 2
        errors = {BEST: design.value, LAPLACE: laplace_error(sensitivity, epsilon, power)}
        if delta > 0:
            errors[GAUSSIAN] = gaussian_error(sensitivity, epsilon, delta, power)
        records += [
            {
                "sensitivity": sensitivity,
                "delta": delta,
                "epsilon": epsilon,
                "noise": name,
                "error": error,
                "over_best": error / design.value,
                "bound": design.bound,
            }
            for name, error in errors.items()
        ]
    return Outcome({"errors": Table.of(records)})


def laplace_error(sensitivity: int, epsilon: float, power: int) -> float:
    """Return the mean of abs(Z)^power for p(x) in proportion to e^(-epsilon abs(x) / D)."""
    decay = math.exp(-epsilon / sensitivity)
    if power == 1:
        return 2 * decay / (1 - decay**2)
    return 2 * decay / (1 - decay) ** 2


def gaussian_error(sensitivity: int, epsilon: float, delta: float, power: int) -> float:
    """Return the mean of abs(Z)^power for the least sigma whose exact delta is small enough."""

    def pmf(sigma: float) -> tuple[Floats, Floats]:
        reach = math.ceil(sigma * math.sqrt(-2 * math.log(delta * 1e-6))) + sensitivity
        half = gaussian(reach, sigma)
        return np.arange(-reach, reach + 1.0), np.append(half[:0:-1], half)

    def excess(log_sigma: float) -> float:
        _, p = pmf(math.exp(log_sigma))
        ratio = math.exp(epsilon)
        moved = (
            np.maximum(p - ratio * np.append(p[d:], np.zeros(d)), 0).sum()
            for d in range(1, sensitivity + 1)
        )
        return math.log(max(*moved, 1e-300, 0.0) / delta)

    sigma = math.exp(float(brentq(excess, math.log(0.02), math.log(1e4 * sensitivity))))
    x, p = pmf(sigma)
    return float(np.abs(x) ** power @ p)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the error of each noise over the least one, a panel for each sensitivity."""
    table = outcome.tables["errors"]
    figure, panels = drawing.by_panel(
        table,
        ["sensitivity"],
        "$D = {sensitivity}$",
        3,
        r"$\varepsilon$",
        "error over the least",
        sharex=True,
        sharey=True,
    )
    others = [table.select(noise=name) for name in (LAPLACE, GAUSSIAN)]
    looks = drawing.curves(pair for part in others for pair in part.distinct("noise", "delta"))
    for axes, rows in panels.items():
        axes.axhline(1.0, **drawing.beside("limit"))
        for (name, delta), look in looks.items():
            part = rows.select(noise=name, delta=delta)
            label = rf"{name}, $\delta = {delta:g}$"
            axes.plot(part.column("epsilon"), part.column("over_best"), label=label, **look)
        axes.set(xscale="log", yscale="log", ylim=(0.9, 1.2 * max(table.column("over_best"))))
        drawing.plain_ticks(axes.xaxis, axes.yaxis)
    return drawing.finish(figure, figure.axes, "1 is the best noise on all integers")


NAMES = {"gaussian": "discrete Gaussian", "laplace": "discrete Laplace", "found": "found by search"}

Total = Annotated[float, Ge(0.1), Le(10.0)]
Releases = Annotated[int, Ge(2), Le(200)]
TotalDelta = Annotated[float, Ge(1e-9), Le(1e-2)]


@configuration
class SeveralConfig:
    """How many counts, and the guarantee of all of them together.

    Attributes:
        releases: numbers of counts k, from 2 to 200.
        epsilon: of all together, in nats, from 0.1 to 10.
        delta: likewise, from 1e-9 to 1e-2.
    """

    releases: Several[Releases] = (2, 4, 8, 16, 32)
    epsilon: Total = 4.0
    delta: TotalDelta = 1e-6


@experiment("noise-releases", config=SeveralConfig(), quick=SeveralConfig(releases=(4, 8, 16)))
def releases(config: SeveralConfig) -> Outcome:
    """Design noise for each number of counts, and state the variance of every candidate."""
    records: list[dict[str, Cell]] = []
    for count in track(config.releases):
        design = dpopt.design(Noise(1, config.epsilon, config.delta, "squared", count))
        records += [
            {
                "releases": count,
                "noise": name,
                "variance": getattr(design, key),
                "over_found": getattr(design, key) / design.found,
            }
            for key, name in NAMES.items()
        ]
    return Outcome({"variances": Table.of(records)})


@releases.figure
def plot_releases(outcome: Outcome) -> Figure:
    """Draw the variance of each candidate over that of the one found."""
    table = outcome.tables["variances"]
    figure, (axes,) = drawing.panels(1, 1, "number of counts $k$", "variance over that found")
    looks = {name: (name, look) for name, look in drawing.curves(NAMES.values()).items()}
    drawing.draw(axes, table, "releases", "over_found", looks, by="noise")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0.95)
    return drawing.finish(figure, [axes])
