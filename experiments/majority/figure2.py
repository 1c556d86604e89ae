"""Figure 2 of the DaRRM paper: shape and error of noise functions at K = 11."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpopt import NotPrivateError, majority
from experiments.registry import Advance, Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = {
    "expected-error": ("LP, expected error (ours)", "#0b6e4f", "o-"),
    "surrogate": ("LP, the paper's objective", "#c1432e", "s-"),
    "subsampling": ("subsampling", "#2f5d9b", "^--"),
    "constant": ("randomised response", "#7a7a7a", "v:"),
}


@dataclass(frozen=True)
class Config:
    """Parameters of the figure; delta is 1 - (1 - mechanism_delta)^m."""

    mechanisms: int = 11
    epsilon: float = 0.1
    mechanism_delta: float = 1e-5
    allowances: tuple[int, ...] = (1, 3, 5, 7)
    draws: int = 10_000
    repeats: int = 10
    seed: int = 2


def run(config: Config, advance: Advance) -> Outcome:
    """Design, check and measure each noise function for each allowance."""
    shapes: list[dict[str, Cell]] = []
    errors: list[dict[str, Cell]] = []
    for allowance in config.allowances:
        for curve, design in _designs(config, allowance).items():
            for ones, value in enumerate(design.gamma):
                shapes.append({"m": allowance, "curve": curve, "l": ones, "gamma": float(value)})
            errors.append({"m": allowance, "curve": curve, **_measured(config, design)})
            advance()
    tables = {
        "errors": Table.of("Error under p ~ U[0, 1]^K and privacy of each noise function.", errors),
        "shapes": Table.of("The noise functions gamma(l), l = 0..K.", shapes),
    }
    return Outcome(tables, _findings(config, tables["errors"]))


def _designs(config: Config, m: int) -> dict[str, majority.MajorityDesign]:
    setting = majority.MajoritySetting(
        config.mechanisms,
        config.epsilon,
        m,
        config.mechanism_delta,
        -float(np.expm1(m * np.log1p(-config.mechanism_delta))),
    )
    solved = {
        objective: majority.design(
            setting.mechanisms,
            setting.epsilon,
            setting.allowance,
            mechanism_delta=setting.mechanism_delta,
            delta=setting.delta,
            objective=objective,
        )
        for objective in ("expected-error", "surrogate")
    }
    subsampled = majority.assess(setting, majority.subsampling(setting.mechanisms, m), repair=True)
    randomised = majority.assess(setting, majority.constant(setting), repair=True)
    return {**solved, "subsampling": subsampled, "constant": randomised}


def _measured(config: Config, design: majority.MajorityDesign) -> dict[str, Cell]:
    rng = np.random.default_rng(config.seed)
    means = [design.sampled_error(rng, config.draws)[0] for _ in range(config.repeats)]
    check, proof = design.check, design.certificate
    if check is None or proof is None:
        raise NotPrivateError(f"no proof for {design.objective} at m = {design.setting.allowance}.")
    return {
        "expected_error": design.expected_error,
        "sampled_error": float(np.mean(means)),
        "spread": float(np.std(means, ddof=1)),
        "target_epsilon": design.guarantee.epsilon,
        "spent_epsilon": check.epsilon,
        "delta": design.guarantee.delta,
        "worst_violation": design.worst_violation,
        "exact_slack": float(proof.slack),
        "constraints_checked": check.constraints_checked,
        "lp_gap": design.gap,
    }


def _findings(config: Config, errors: Table) -> tuple[str, ...]:
    found = []
    for m in config.allowances:
        at = {row[1]: row[2] for row in errors.select(m=m).rows}
        ours, paper, sub = at["expected-error"], at["surrogate"], at["subsampling"]
        if isinstance(ours, float) and isinstance(paper, float) and isinstance(sub, float):
            found.append(
                f"m = {m}: error {_short(ours)} for the gamma that minimises the plotted error, "
                f"{_short(paper)} for the paper's objective, {_short(sub)} for subsampling."
            )
    return tuple(found)


def _short(value: float) -> str:
    return f"{value:.2e}" if 0 < value < 1e-3 else f"{value:.4f}"


def plot(outcome: Outcome) -> Figure:
    """Draw the shapes above, the errors below."""
    from matplotlib.figure import Figure

    shapes, errors = outcome.tables["shapes"], outcome.tables["errors"]
    allowances = list(dict.fromkeys(shapes.column("m")))
    figure = Figure(figsize=(11.0, 6.0), layout="constrained")
    grid = figure.add_gridspec(2, 2 * len(allowances), height_ratios=(1.0, 1.05))
    for place, m in enumerate(allowances):
        axes = figure.add_subplot(grid[0, 2 * place : 2 * place + 2])
        _draw_shapes(axes, shapes.select(m=m), f"$m = {m}$")
        if place == 0:
            axes.set_ylabel(r"noise function $\gamma(l)$")
    left = figure.add_subplot(grid[1, : len(allowances)])
    right = figure.add_subplot(grid[1, len(allowances) :])
    _draw_errors(left, errors, logarithmic=False)
    _draw_errors(right, errors, logarithmic=True)
    left.legend(frameon=False, fontsize=9)
    return figure


def _draw_shapes(axes: Axes, shapes: Table, title: str) -> None:
    for curve, (label, colour, style) in CURVES.items():
        part = shapes.select(curve=curve)
        axes.plot(
            part.column("l"), part.column("gamma"), style, color=colour, label=label, markersize=4
        )
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("number of ones $l$")
    axes.set_ylim(-0.04, 1.04)
    axes.set_xticks(range(0, max(shapes.column("l")) + 1, 2))
    axes.grid(alpha=0.25)


def _draw_errors(axes: Axes, errors: Table, *, logarithmic: bool) -> None:
    for curve, (label, colour, style) in CURVES.items():
        part = errors.select(curve=curve)
        axes.errorbar(
            part.column("m"),
            part.column("sampled_error"),
            yerr=part.column("spread"),
            fmt=style,
            color=colour,
            label=label,
            capsize=3,
            markersize=5,
        )
    axes.set_xlabel("privacy allowance $m$")
    axes.set_xticks(sorted(set(errors.column("m"))))
    axes.set_ylabel(r"error under $p_i \sim U[0, 1]$")
    axes.grid(alpha=0.25)
    if logarithmic:
        axes.set_yscale("symlog", linthresh=1e-5)
        axes.set_ylim(bottom=-2e-6)


EXPERIMENT = Experiment(
    name="majority-figure-2",
    paper="DaRRM",
    item="Figure 2",
    summary=(
        "Noise functions at K = 11, epsilon = 0.1, Delta = 1e-5, and their errors. The paper's "
        "curves, and one more: the noise function that minimises the error that is plotted."
    ),
    published=None,
    config=Config(repeats=100),
    quick=Config(),
    steps=lambda config: len(config.allowances) * len(CURVES),
    run=run,
    plot=plot,
)
