"""Figure 2: a generated prior, and a user's distribution from nearly uniform to a point mass."""

from __future__ import annotations

import math
from itertools import product
from typing import Annotated

import numpy as np
from annotated_types import Ge
from matplotlib.figure import Figure

import dpopt
from dpopt import solve
from dpopt.prob import total_variation
from experiments import drawing, style
from experiments.parameters import Seed, Several, configuration
from experiments.public_prior.common import (
    METHODS,
    Epsilon,
    draw_points,
    kl_divergence,
    sampling_pmfs,
)
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import observed, short

_ERRORS = 3
_SHOWN = ("minimax", "leximin", "mollifier-kl", "mollifier-tv")


@configuration
class Config:
    """Parameters of the figure; categories, epsilon, prior and the number of runs as in the paper.

    Attributes:
        categories: n, at least 2.
        epsilon: one or more, in nats; a row of panels for each.
        runs: priors drawn, at least 2.
        points: values of p_1, evenly spaced from 1/n to 1, at least 2.
        seed: of the priors.
    """

    categories: Annotated[int, Ge(2)] = 100
    epsilon: Several[Epsilon] = (8.0,)
    runs: Annotated[int, Ge(2)] = 10
    points: Annotated[int, Ge(2)] = 15
    seed: Seed = 2

    @property
    def pmfs(self) -> np.ndarray:
        """P for each p_1, the other categories equal, shape (points, categories)."""
        first = np.linspace(1 / self.categories, 1.0, self.points)[:, None]
        others = np.repeat((1 - first) / (self.categories - 1), self.categories - 1, axis=1)
        return np.hstack([first, others])


@experiment("prior-figure-2", config=Config(points=41), quick=Config(), effort=("points", "seed"))
def run(config: Config) -> Outcome:
    """Measure both divergences for every epsilon, prior and p_1."""
    weights = np.random.default_rng(config.seed).random((config.runs, config.categories))
    priors = weights / weights.sum(axis=1, keepdims=True)
    rows: list[dict[str, Cell]] = []
    for epsilon in track(config.epsilon):
        values = np.empty((2, config.runs, len(_SHOWN), config.points))
        for repeat, prior in enumerate(priors):
            for place, method in enumerate(_SHOWN):
                pmfs = _released(method, prior, config.pmfs, epsilon)
                values[0, repeat, place] = total_variation(config.pmfs, pmfs)
                values[1, repeat, place] = kl_divergence(config.pmfs, pmfs)
        rows += _records(config, epsilon, values)
    table = Table.of(rows)
    compared = of_synthetic(table.select(epsilon=config.epsilon[0]))
    return Outcome({"divergences": table}, compared)


def _released(method: str, prior: np.ndarray, pmfs: np.ndarray, epsilon: float) -> np.ndarray:
    if method != "mollifier-tv":
        return sampling_pmfs(method, prior, pmfs, epsilon)
    programs = (dpopt.Mollifier(prior, epsilon, pmf).problem() for pmf in pmfs)
    released = np.array([solve(program)["pmf"] for program in programs])
    # The solver keeps the limits up to its tolerance.
    released = np.maximum(released, prior * math.exp(-epsilon / 2))
    return released / released.sum(axis=1, keepdims=True)


def _records(config: Config, epsilon: float, values: np.ndarray) -> list[dict[str, Cell]]:
    """Return means and standard errors; the axes of values are measure, prior, method, p_1."""
    means = values.mean(axis=1)
    errors = values.std(axis=1, ddof=1) / math.sqrt(config.runs)
    # Both methods meet the same priors, so that their difference varies less than either.
    gaps = values - values[:, :, :1]
    spreads = gaps.std(axis=1, ddof=1) / math.sqrt(config.runs)
    return [
        {
            "epsilon": epsilon,
            "method": method,
            "first": first,
            "tv": float(means[0, m, k]),
            "tv_error": float(errors[0, m, k]),
            "kl": float(means[1, m, k]),
            "kl_error": float(errors[1, m, k]),
            "tv_gap_error": float(spreads[0, m, k]),
            "kl_gap_error": float(spreads[1, m, k]),
        }
        for m, method in enumerate(_SHOWN)
        for k, first in enumerate(config.pmfs[:, 0].tolist())
    ]


def of_synthetic(table: Table) -> tuple[Comparison, ...]:
    """Compare what section 5.2 sees in Figure 2, in each divergence."""
    return tuple(_crossing(table, measure) for measure in ("tv", "kl"))


def _crossing(table: Table, measure: str) -> Comparison:
    ours = table.select(method="minimax").records
    other = table.select(method=f"mollifier-{measure}").records
    ahead = [a[measure] < b[measure] for a, b in zip(ours, other, strict=True)]
    first = ahead.index(True) if any(ahead) else len(ahead)
    where = f"from p_1 = {short(ours[first]['first'])} on" if any(ahead) else "nowhere"
    gaps = [b[measure] - a[measure] for a, b in zip(ours, other, strict=True)]
    spreads = [_ERRORS * row[f"{measure}_gap_error"] for row in other]
    ends = gaps[0] < -spreads[0] and gaps[-1] > spreads[-1]
    return observed(
        f"{measure.upper()}: the mollifier is better near uniform p, Algorithm 1 as p_1 grows "
        "(Figure 2).",
        f"Algorithm 1 is lower {where}; at p_1 = 1 {short(ours[-1][measure])} against "
        f"{short(other[-1][measure])}.",
        "no certificate: drawn priors, standard errors in table divergences",
        alike=ends and all(ahead[first:]),
        rule="agrees if the mollifier's mean is lower at p_1 = 1/n and Algorithm 1's at p_1 = 1, "
        f"by more than {_ERRORS} standard errors of the difference, and the order changes once",
        name=f"Figure 2, {measure}",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw total variation on the left and KL on the right, a row for each epsilon."""
    table = outcome.tables["divergences"]
    epsilons = table.distinct("epsilon")
    across = "$p_1$, the user's probability of the first category"
    figure, panels = drawing.panels(2 * len(epsilons), 2, across, height=0.86, sharex=True)
    cases = product(epsilons, (("tv", "total variation"), ("kl", "KL divergence (nats)")))
    for axes, (epsilon, (measure, label)) in zip(panels, cases, strict=True):
        top = 0.0
        for method in [name for name in METHODS if name in _SHOWN]:
            part = table.select(epsilon=epsilon, method=method)
            first, values, error = (
                np.array(part.column(name)) for name in ("first", measure, f"{measure}_error")
            )
            colour = style.ROLES[METHODS[method].role].colour
            axes.fill_between(first, values - error, values + error, color=colour, alpha=0.15, lw=0)
            draw_points(axes, method, first.tolist(), values.tolist(), joined=True)
            top = max(top, float((values + error).max()))
        axes.set(ylabel=label, xlim=(-0.02, 1.02), ylim=(-0.02 * top, 1.05 * top))
        axes.set_title(rf"$\varepsilon = {epsilon:g}$")
    return drawing.finish(figure, panels)
