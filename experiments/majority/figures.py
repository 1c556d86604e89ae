"""Figures 2, 6, 7 and 8 of the DaRRM paper, and Table 3, which holds Figure 6's parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dpopt.privacy import Guarantee, general_composition
from experiments.majority.noise_functions import Config, Target, plot_with_axis, run, steps
from experiments.registry import Experiment

_FULL = 100


def simple_targets(allowances: tuple[int, ...], mechanism_delta: float) -> tuple[Target, ...]:
    """Return delta = 1 - (1 - Delta)^m for each m."""
    return tuple(
        Target(m, float(m), -float(np.expm1(m * np.log1p(-mechanism_delta))), m) for m in allowances
    )


def composed_targets(
    mechanisms: int, epsilon: float, mechanism_delta: float, samples: tuple[int, ...], slack: float
) -> tuple[Target, ...]:
    """Return what the majority of M subsampled voters spends by general composition (D.1.1)."""
    voter = Guarantee(epsilon, mechanism_delta)
    whole = general_composition(voter, mechanisms, slack)
    targets = []
    for size in samples:
        spent = general_composition(voter, size, slack)
        # Simple composition is among the terms: no rounding may lift m or tau above it.
        tau = min(whole.epsilon / epsilon, mechanisms)
        m = min(spent.epsilon / epsilon, size)
        targets.append(Target(size, m, spent.delta, size, tau, whole.delta))
    return tuple(targets)


def _experiment(
    figure: int, config: Config, summary: str, published: str | None = None
) -> Experiment:
    return Experiment(
        name=f"majority-figure-{figure}",
        paper="DaRRM",
        item=f"Figure {figure}" + (" and Table 3" if figure == 6 else ""),
        summary=summary,
        published=published,
        config=replace(config, repeats=_FULL),
        quick=config,
        steps=steps,
        run=run,
        plot=partial(plot_with_axis, config.axis),
    )


EXPERIMENTS = (
    _experiment(
        2,
        Config(11, 0.1, 1e-5, simple_targets((1, 3, 5, 7), 1e-5)),
        "Noise functions at K = 11, epsilon = 0.1, Delta = 1e-5, and their errors. The paper's "
        "curves, and one more: the noise function that minimises the error that is plotted.",
    ),
    _experiment(
        6,
        Config(
            35,
            0.1,
            1e-5,
            composed_targets(35, 0.1, 1e-5, (10, 13, 15, 20), 0.1),
            axis="subsampled voters $M$",
        ),
        "The target is what the majority of M of K = 35 voters spends by general composition "
        "(delta' = 0.1), epsilon = 0.1, Delta = 1e-5.",
        "Table 3: m = 6.4521, 7.5742, 8.2708, 9.8823; tau = 14.0328; lambda = 0.1003; "
        "delta = 0.1001, 0.1001, 0.1001, 0.1002.",
    ),
    _experiment(
        7,
        Config(11, 0.1, 0.0, simple_targets((1, 3, 5, 7, 9, 11), 0.0)),
        "Pure differential privacy, K = 11: double subsampling joins the curves.",
    ),
    _experiment(
        8,
        Config(101, 0.1, 0.0, simple_targets((10, 20, 30, 40, 60, 80), 0.0)),
        "Pure differential privacy, K = 101.",
    ),
)
