"""Shape and error of noise functions for several targets: figures 2, 6, 7 and 8 of DaRRM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpopt import NotPrivateError, majority
from experiments.majority.comparisons import of_noise_functions
from experiments.registry import Advance, Cell, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = {
    "expected-error": ("LP, expected error (ours)", "#0b6e4f", "o-"),
    "surrogate": ("LP, the paper's objective", "#c1432e", "s-"),
    "double": ("double subsampling", "#8a5aa8", "d--"),
    "subsampling": ("subsampling", "#2f5d9b", "^--"),
    "constant": ("randomised response", "#7a7a7a", "v:"),
}


@dataclass(frozen=True)
class Target:
    """What the majority may spend, and the baselines' parameters for it.

    Attributes:
        at: place on the figure's horizontal axis, and name of the panel.
        allowance: m.
        delta: of the majority.
        sample: number of voters that subsampling draws.
        tau: the majority is (tau epsilon, lam)-DP by composition; None for simple composition.
        lam: see there.
    """

    at: int
    allowance: float
    delta: float
    sample: int
    tau: float | None = None
    lam: float | None = None


@dataclass(frozen=True)
class Config:
    """Parameters of a figure; p is uniform on [0, 1]^K."""

    mechanisms: int
    epsilon: float
    mechanism_delta: float
    targets: tuple[Target, ...]
    axis: str = "privacy allowance $m$"
    draws: int = 10_000
    repeats: int = 10
    seed: int = 2

    @property
    def curves(self) -> tuple[str, ...]:
        """The curves drawn: double subsampling is for pure differential privacy only."""
        return tuple(c for c in CURVES if c != "double" or self.mechanism_delta == 0.0)


def steps(config: Config) -> int:
    """Return the number of noise functions."""
    return len(config.targets) * len(config.curves)


def run(config: Config, advance: Advance) -> Outcome:
    """Design, prove and measure each noise function for each target."""
    designs: dict[tuple[int, str], majority.MajorityDesign] = {}
    for target in config.targets:
        for curve in config.curves:
            designs[target.at, curve] = _design(config, target, curve)
            advance()
    means = _sampled(config, designs)
    errors: list[dict[str, Cell]] = []
    shapes: list[dict[str, Cell]] = []
    for key, design in designs.items():
        where: dict[str, Cell] = {"target": key[0], "curve": key[1]}
        errors.append({**where, **_record(design, means[key])})
        for ones, value in enumerate(design.gamma):
            shapes.append({**where, "l": ones, "gamma": float(value)})
    tables = {
        "errors": Table.of("Error under p ~ U[0, 1]^K and privacy of each noise function.", errors),
        "shapes": Table.of("The noise functions gamma(l), l = 0..K.", shapes),
    }
    return Outcome(tables, _findings(config, tables["errors"]), of_noise_functions(config, tables))


def _design(config: Config, target: Target, curve: str) -> majority.MajorityDesign:
    k, shift = config.mechanisms, config.mechanism_delta
    if curve in ("expected-error", "surrogate"):
        return majority.design(
            k,
            config.epsilon,
            target.allowance,
            mechanism_delta=shift,
            delta=target.delta,
            objective=curve,
        )
    setting = majority.MajoritySetting(k, config.epsilon, target.allowance, shift, target.delta)
    if curve == "subsampling":
        gamma = majority.subsampling(k, target.sample)
    elif curve == "double":
        gamma = majority.double_subsampling(k, target.sample)
    else:
        gamma = majority.constant(setting, target.tau, target.lam)
    return majority.assess(setting, gamma, repair=True)


def _sampled(
    config: Config, designs: Mapping[tuple[int, str], majority.MajorityDesign]
) -> dict[tuple[int, str], list[float]]:
    """Return, for each design, the mean error of each repeat; all share the same p."""
    rng = np.random.default_rng(config.seed)
    noise = np.array([1.0 - design.gamma[design.setting.middle :] for design in designs.values()])
    prior = majority.UniformPrior()
    means = []
    for _ in range(config.repeats):
        margins = majority.sampled_margins(config.mechanisms, prior, rng, config.draws)
        means.append(np.abs(margins @ noise.T).mean(axis=0))
    return {key: [float(m[i]) for m in means] for i, key in enumerate(designs)}


def _record(design: majority.MajorityDesign, means: list[float]) -> dict[str, Cell]:
    check, proof = design.check, design.certificate
    if proof is None:
        raise NotPrivateError(f"no proof for {design.objective} at {design.setting.allowance}.")
    return {
        "m": design.setting.allowance,
        "expected_error": design.expected_error,
        "sampled_error": float(np.mean(means)),
        "spread": float(np.std(means, ddof=1)),
        "target_epsilon": design.guarantee.epsilon,
        "spent_epsilon": None if check is None else check.epsilon,
        "delta": design.guarantee.delta,
        "worst_violation": design.worst_violation,
        "exact_slack": float(proof.slack),
        "constraints_proved": proof.constraints,
        "paper_constraints": majority.full_size(design.setting),
        "lp_gap": design.gap,
    }


def _findings(config: Config, errors: Table) -> tuple[str, ...]:
    found = []
    for target in config.targets:
        part = errors.select(target=target.at)
        at = dict(zip(part.column("curve"), part.column("expected_error"), strict=True))
        found.append(
            f"m = {target.allowance:.6g}: error {_short(at['expected-error'])} for the gamma that "
            f"minimises the plotted error, {_short(at['surrogate'])} for the paper's objective, "
            f"{_short(at['subsampling'])} for subsampling."
        )
    return tuple(found)


def _short(value: float) -> str:
    return f"{value:.2e}" if 0 < value < 1e-3 else f"{value:.4f}"


def plot_with_axis(axis: str, outcome: Outcome) -> Figure:
    """Draw the shapes above, the errors below, linear and logarithmic."""
    from matplotlib.figure import Figure

    shapes, errors = outcome.tables["shapes"], outcome.tables["errors"]
    targets = list(dict.fromkeys(shapes.column("target")))
    curves = list(dict.fromkeys(shapes.column("curve")))
    figure = Figure(figsize=(max(11.0, 2.5 * len(targets)), 6.0), layout="constrained")
    grid = figure.add_gridspec(2, 2 * len(targets), height_ratios=(1.0, 1.05))
    for place, target in enumerate(targets):
        axes = figure.add_subplot(grid[0, 2 * place : 2 * place + 2])
        part = shapes.select(target=target)
        _draw_shapes(axes, part, curves, f"{axis.split()[-1]} = {target}")
        if place == 0:
            axes.set_ylabel(r"noise function $\gamma(l)$")
    left = figure.add_subplot(grid[1, : len(targets)])
    right = figure.add_subplot(grid[1, len(targets) :])
    for axes, logarithmic in ((left, False), (right, True)):
        _draw_errors(axes, errors, curves, logarithmic=logarithmic)
        axes.set_xlabel(axis)
    left.legend(frameon=False, fontsize=9)
    return figure


def _draw_shapes(axes: Axes, shapes: Table, curves: list[str], title: str) -> None:
    last = max(shapes.column("l"))
    for curve in curves:
        label, colour, style = CURVES[curve]
        part = shapes.select(curve=curve)
        # Markers only where they do not run into each other.
        axes.plot(
            part.column("l"),
            part.column("gamma"),
            style,
            color=colour,
            label=label,
            markersize=4 if last < 40 else 0,
        )
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("number of ones $l$")
    axes.set_ylim(-0.04, 1.04)
    axes.set_xticks(range(0, last + 1, tick_step(last)))
    axes.grid(alpha=0.25)


def tick_step(last: int) -> int:
    """Return the least of 1, 2, 5, 10, 20, ... with at most eight ticks on 0..last, last >= 0."""
    scale = 1
    while True:
        for digit in (1, 2, 5):
            if last <= 7 * digit * scale:
                return digit * scale
        scale *= 10


def _draw_errors(axes: Axes, errors: Table, curves: list[str], *, logarithmic: bool) -> None:
    for curve in curves:
        label, colour, style = CURVES[curve]
        part = errors.select(curve=curve)
        axes.errorbar(
            part.column("target"),
            part.column("sampled_error"),
            yerr=part.column("spread"),
            fmt=style,
            color=colour,
            label=label,
            capsize=3,
            markersize=5,
        )
    axes.set_xticks(sorted(set(errors.column("target"))))
    axes.set_ylabel(r"error under $p_i \sim U[0, 1]$")
    axes.grid(alpha=0.25)
    if logarithmic:
        axes.set_yscale("symlog", linthresh=1e-7)
        axes.set_ylim(bottom=-2e-8)
