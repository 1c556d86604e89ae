"""Figures 2, 6, 7 and 8 of DaRRM: noise functions for several targets and their errors; Table 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpopt import NotPrivateError, majority
from dpopt.privacy import Guarantee, general_composition
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.verdicts import numbers, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BASELINES = ("double", "subsampling", "constant")
_TOLERANCE = 1e-9
# The least gain that is called one: below it the two programs' errors are rounding.
_GAIN = 1e-6

# The largest distance at which two drawn noise functions overlap.
_OVERLAP = 1e-3
# Names of statements that more than one figure shows.
AT_ONE, BEST = "lemma 3.2", "equation 3"
BEST_OF_ALL = (
    "With a small m and epsilon, the optimised gamma achieves the best utility among all gamma "
    "functions (section 1.1, Figure 2)."
)

# Table 3 of the paper, for K, epsilon, Delta, delta' and M = 10, 13, 15, 20.
_SAMPLES = (10, 13, 15, 20)
_VOTERS = (35, 0.1, 1e-5)
_TABLE_3 = {
    "m": (6.4521, 7.5742, 8.2708, 9.8823),
    "target_epsilon": (0.6452, 0.7574, 0.8271, 0.9882),
    "delta": (0.1001, 0.1001, 0.1001, 0.1002),
}
_TAU, _LAMBDA = 14.0328, 0.1003

CURVES = {
    "expected-error": ("LP, expected error (ours)", "#0b6e4f", "o-"),
    "surrogate": ("LP, the paper's objective", "#c1432e", "s-"),
    "double": ("double subsampling", "#8a5aa8", "d--"),
    "subsampling": ("subsampling", "#2f5d9b", "^--"),
    "constant": ("randomised response", "#7a7a7a", "v:"),
}

_FULL = 100


@dataclass(frozen=True)
class Target:
    """What the majority may spend, and the baselines' parameters for it.

    Attributes:
        at: place on the figure's horizontal axis, and name of the panel.
        allowance: m.
        delta: of the majority.
        sample: number of voters that subsampling draws.
        tau: the majority is (tau epsilon, lam)-DP by composition; None for simple composition.
        lam: the delta of that bound; None likewise.
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


def of_noise_functions(config: Config, tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare what sections 6.1 and D.1 say of figures 2, 6, 7 and 8.

    Args:
        config: of the run; it tells which of the figures it is.
        tables: "errors" and "shapes" of the run.
    """
    errors, shapes = tables["errors"], tables["shapes"]
    found: list[Comparison] = []
    if _is_table_3(config):
        found.append(_table_3(config, errors))
    for target in config.targets:
        if target.allowance == 1.0:
            found += _at_one(errors, shapes, target.at)
    above = [target.at for target in config.targets if target.allowance > 1.0]
    if above:
        found += [_lowest_error(errors, above), _best_of_all(errors, above)]
        if config.mechanism_delta > 0.0 and config.targets[0].tau is None:
            found.append(_highest_gamma(errors, shapes, above))
    if config.mechanism_delta == 0.0:
        found += _double(config, errors, shapes)
    return tuple(found)


def _error(errors: Table, target: int, curve: str) -> float:
    return float(errors.select(target=target, curve=curve).column("expected_error")[0])


def _gamma(shapes: Table, target: int, curve: str) -> np.ndarray:
    return np.array(shapes.select(target=target, curve=curve).column("gamma"))


def _proved(errors: Table, *, error: bool = False) -> str:
    rows, slack = max(errors.column("constraints_proved")), min(errors.column("exact_slack"))
    gap = max(gap for gap in errors.column("lp_gap") if gap is not None)
    proof = "exact integers" if slack >= 0 else "not proved"
    measured = "; error by quadrature, sampled beside it" if error else ""
    return f"{proof}, {rows:,} rows of the reduced corner set; dual gap {gap:.0e}{measured}"


def _is_table_3(config: Config) -> bool:
    """Return whether the run has the parameters for which the paper prints its Table 3."""
    voters = (config.mechanisms, config.epsilon, config.mechanism_delta)
    composed = all(target.tau is not None for target in config.targets)
    return composed and voters == _VOTERS and tuple(t.at for t in config.targets) == _SAMPLES


def _table_3(config: Config, errors: Table) -> Comparison:
    part = errors.select(curve="surrogate")
    pairs = [
        pair
        for column, printed in _TABLE_3.items()
        for pair in zip(part.column(column), printed, strict=True)
    ]
    pairs += [(target.tau or 0.0, _TAU) for target in config.targets]
    pairs += [(target.lam or 0.0, _LAMBDA) for target in config.targets]
    m = ", ".join(f"{value:.4f}" for value in part.column("m"))
    first = config.targets[0]
    return numbers(
        f"Table 3: m = {', '.join(map(str, _TABLE_3['m']))}; tau = {_TAU}; lambda = {_LAMBDA}; "
        "and their epsilon and delta.",
        f"m = {m}; tau = {first.tau:.4f}; lambda = {first.lam:.4f}; {len(pairs)} numbers to four "
        "decimals.",
        pairs,
        4,
        "closed form (theorem 2.3)",
        name="Table 3",
    )


def _at_one(errors: Table, shapes: Table, target: int) -> list[Comparison]:
    distance = np.abs(_gamma(shapes, target, "surrogate") - _gamma(shapes, target, "subsampling"))
    apart = float(distance.max())
    ours, sub = (_error(errors, target, curve) for curve in ("expected-error", "subsampling"))
    return [
        statement(
            "At m = 1 the optimised gamma overlaps with subsampling's (section 6.1).",
            f"The paper's program returns subsampling's within {apart:.0e}; called an overlap up "
            f"to {_OVERLAP:g}.",
            _proved(errors),
            holds=apart <= _OVERLAP,
            name="overlap at m = 1",
        ),
        statement(
            "At m = 1 subsampling has the optimal error (lemma 3.2, section 6.1).",
            f"Another gamma has {ours:.4f}, subsampling {sub:.4f}.",
            _proved(errors, error=True),
            holds=ours >= sub - _TOLERANCE,
            name=AT_ONE,
        ),
    ]


def _lowest_error(errors: Table, targets: Sequence[int]) -> Comparison:
    """Judge the order that the paper states, of the program's gamma and the baselines alone."""
    curves = set(errors.column("curve"))
    baselines = [curve for curve in _BASELINES if curve in curves]
    worse = [
        target
        for target in targets
        if _error(errors, target, "surrogate")
        > min(_error(errors, target, curve) for curve in baselines) + _TOLERANCE
    ]
    free = all(_error(errors, target, "surrogate") == 0.0 for target in targets)
    ours = "Holds" + ("; gamma = 1, the majority itself, with error 0." if free else ".")
    return statement(
        "For m > 1 the optimised gamma has a lower error than the baselines (section 6.1).",
        f"Not at {_named(worse)}." if worse else ours,
        _proved(errors, error=True),
        holds=not worse,
        name="lowest error for m > 1",
    )


def _best_of_all(errors: Table, targets: Sequence[int]) -> Comparison:
    """Judge the program's gamma against the one that minimises the error which is plotted."""
    pairs = [(_error(errors, t, "surrogate"), _error(errors, t, "expected-error")) for t in targets]
    gains = [(paper - ours, target) for (paper, ours), target in zip(pairs, targets, strict=True)]
    gain, best = max(gains)
    paper, least = pairs[targets.index(best)]
    return statement(
        BEST_OF_ALL,
        f"At m = {best} another gamma has error {least:.2g} where it has {paper:.2g}."
        if gain > _GAIN
        else "No gamma of the run has a lower error.",
        _proved(errors, error=True),
        holds=gain <= _GAIN,
        name=BEST,
    )


def _highest_gamma(errors: Table, shapes: Table, targets: Sequence[int]) -> Comparison:
    """Judge that the paper's gamma is above the baselines' for every count of ones."""
    short = [
        (base[ones] - gamma[ones], target, ones, base[ones], gamma[ones])
        for target in targets
        for gamma in [_gamma(shapes, target, "surrogate")]
        for curve in ("subsampling", "constant")
        for base in [_gamma(shapes, target, curve)]
        for ones in range(len(gamma) // 2, len(gamma))
    ]
    gap, target, ones, base, gamma = max(short)
    holds = bool(gap <= 1e-6)
    return statement(
        "For m > 1 the optimised gamma is the highest for every number of ones (section 6.1).",
        "Holds."
        if holds
        else f"At m = {target}, l = {ones} the program's is {gamma:.4f}, subsampling's {base:.4f}.",
        f"optimum of equation 3, {_proved(errors)}",
        holds=holds,
        name="highest gamma for m > 1",
    )


def _double(config: Config, errors: Table, shapes: Table) -> Iterator[Comparison]:
    middle = (config.mechanisms + 1) / 2
    large = [target.at for target in config.targets if target.allowance >= middle]
    whole = [target.at for target in config.targets if target.allowance == config.mechanisms]
    if large:
        most = max(
            _error(errors, target, curve) for target in large for curve in ("surrogate", "double")
        )
        yield statement(
            f"For m >= (K + 1) / 2 = {middle:g} the optimised gamma and double subsampling have "
            "error 0 (section D.1.2).",
            f"At {_named(large)} both have {most:.1g}.",
            _proved(errors),
            holds=most <= _TOLERANCE,
            name="error 0 for m >= (K + 1) / 2",
        )
    for target in whole:
        shown = [_gamma(shapes, target, curve) for curve in config.curves]
        apart = max(float(np.abs(gamma - shown[0]).max()) for gamma in shown)
        yield statement(
            "At m = K all lines overlap (Figure 7).",
            f"The gammas differ by at most {apart:.1g}.",
            _proved(errors),
            holds=apart <= 1e-6,
            name="all lines overlap at m = K",
        )


def _named(targets: Sequence[int]) -> str:
    return "m = " + ", ".join(map(str, targets))


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
