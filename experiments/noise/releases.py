"""Several counts at one budget: discrete Gaussian, discrete Laplace, and the noise of a search."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le
from matplotlib.figure import Figure
from pydantic.dataclasses import dataclass

import dpopt
from dpopt import Noise
from experiments import drawing
from experiments.parameters import STRICT, Several
from experiments.registry import Cell, Outcome, Table, experiment, track

NAMES = {"gaussian": "discrete Gaussian", "laplace": "discrete Laplace", "found": "found by search"}

Epsilon = Annotated[float, Ge(0.1), Le(10.0)]
Releases = Annotated[int, Ge(2), Le(200)]
Delta = Annotated[float, Ge(1e-9), Le(1e-2)]


@dataclass(frozen=True, config=STRICT)
class Config:
    """How many counts, and the guarantee of all of them together.

    Attributes:
        releases: numbers of counts k, from 2 to 200.
        epsilon: of all together, in nats, from 0.1 to 10.
        delta: likewise, from 1e-9 to 1e-2.
    """

    releases: Several[Releases] = (2, 4, 8, 16, 32)
    epsilon: Epsilon = 4.0
    delta: Delta = 1e-6


@experiment("noise-releases", config=Config(), quick=Config(releases=(4, 8, 16)))
def run(config: Config) -> Outcome:
    """Design noise for each number of counts, and state the variance of every candidate."""
    records: list[dict[str, Cell]] = []
    for releases in track(config.releases):
        design = dpopt.design(Noise(1, config.epsilon, config.delta, "squared", releases))
        records += [
            {
                "releases": releases,
                "noise": name,
                "variance": getattr(design, key),
                "over_found": getattr(design, key) / design.found,
            }
            for key, name in NAMES.items()
        ]
    table = Table.of(records)
    return Outcome({"variances": table})


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the variance of each candidate over that of the one found."""
    table = outcome.tables["variances"]
    figure, panels = drawing.panels(1, 1, "number of counts $k$", "variance over that found")
    (axes,) = panels
    looks = drawing.curves(range(len(NAMES)))
    for place, name in enumerate(NAMES.values()):
        rows = table.select(noise=name)
        axes.plot(rows.column("releases"), rows.column("over_found"), label=name, **looks[place])
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0.95)
    return drawing.finish(figure, panels)
