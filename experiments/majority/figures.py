"""Figures 2, 6, 7 and 8 of DaRRM: noise functions for several targets and their errors; Table 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

import dpopt
from dpopt import majority
from dpopt.majority.objectives import margins_at
from experiments import drawing, style
from experiments.majority.baselines import baseline
from experiments.majority.full_set import check_design, full_size
from experiments.majority.voters import (
    CURVES,
    PAPER_PRIOR,
    Composed,
    Config,
    Target,
    Voters,
    pmf_words,
    shape_rows,
    under,
)
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import columns, judged, proof_of

# Largest K whose noise functions are drawn for all counts, and with a marker at every count.
_WHOLE_RANGE, _MARKED = 41, 15
# Errors below it are rounding.
_SAME_AS_ZERO = 1e-12
# Decades of errors on the axis; smaller errors are drawn as 0.
_DECADES = 7


def plot_with_axis(axis: str, outcome: Outcome) -> Figure:
    """Draw a panel for the shapes at each target, and one for the errors below them."""
    shapes, errors = outcome.tables["shapes"], outcome.tables["errors"]
    targets = shapes.distinct("target")
    looks = {curve: CURVES[curve] for curve in shapes.distinct("curve")}
    across = drawing.columns_for(len(targets))
    rows = -(-len(targets) // across)
    height = {1: 0.62, 2: 0.66, 3: 0.85}.get(across, 1.15)
    figure, grid = style.figure(rows + 1, across, height=height, sharey=True)
    places = grid[0, 0].get_gridspec()
    for unused in (*grid[:-1].ravel()[len(targets) :], *grid[-1]):
        unused.remove()
    panels = list(grid[:-1].ravel()[: len(targets)])
    ones = "ones $l$" if across > 2 else "number of ones $l$"
    if max(shapes.column("l")) > _WHOLE_RANGE:
        # The lower half mirrors it.
        ones = "ones $l > K/2$"
    for axes, target in zip(panels, targets, strict=True):
        draw_shapes(axes, shapes.select(target=target), looks)
        axes.set(title=f"{axis.split()[-1]} = {target}", xlabel=ones)
    for axes in panels[::across]:
        axes.set_ylabel(r"noise $\gamma(l)$" if across > 2 else r"noise function $\gamma(l)$")
    below = figure.add_subplot(places[-1, :])
    pmf = under(errors.column("prior")[0])
    below.set(title=f"error under {pmf}{_draw_errors(below, errors, looks)}", xlabel=axis)
    return drawing.finish(figure, [*panels, below])


def draw_shapes(axes: Axes, shapes: Table, curves: drawing.Looks) -> None:
    """Draw noise functions; of many voters the upper half alone, as they are symmetric."""
    last = max(shapes.column("l"))
    first = 0 if last <= _WHOLE_RANGE else (last + 1) // 2
    for place, (curve, (label, look)) in enumerate(curves.items()):
        part = shapes.select(curve=curve)
        # Markers of many voters would run into each other: few of them have one.
        drawn: dict[str, Any] = {**look, **drawing.nested(place, len(curves))}
        drawn["markevery"] = 1 if last <= _MARKED else max(1, (last - first) // 8)
        axes.plot(part.column("l")[first:], part.column("gamma")[first:], **drawn, label=label)
    axes.set_ylim(-0.06, 1.06)
    room = 0.04 * (last - first)
    axes.set_xlim(first - room, last + room)
    axes.locator_params(axis="x", nbins=8, steps=[1, 2, 5, 10], integer=True)


def _draw_errors(axes: Axes, errors: Table, curves: drawing.Looks) -> str:
    """Draw the errors against the targets; return what is to be said of their scale."""
    for place, (curve, (label, look)) in enumerate(curves.items()):
        part = errors.select(curve=curve)
        errors_at, spread = part.column("sampled_error"), part.column("spread")
        widths = {"elinewidth": 0.8, **drawing.nested(place, len(curves))}
        axes.errorbar(part.column("target"), errors_at, spread, label=label, **look, **widths)
    ticks = sorted(set(errors.column("target")))
    if len(ticks) <= 12:
        axes.set_xticks(ticks)
    axes.set_ylabel("error")
    axes.margins(x=0.06 if len(ticks) > 1 else 0.5)
    return scale_errors(axes, errors.column("sampled_error"), errors.column("spread"))


def draw_groups(axes: Axes, table: Table, column: str, value: str, looks: drawing.Looks) -> None:
    """Draw a group of points for each distribution of the p_i, the curves side by side."""
    pmfs, middle = table.distinct(column), (len(looks) - 1) / 2
    for place, (curve, (label, look)) in enumerate(looks.items()):
        part = table.select(curve=curve)
        values = [part.select(**{column: pmf}).column(value)[0] for pmf in pmfs]
        spots = np.arange(len(pmfs)) + (place - middle) * 0.8 / len(looks)
        axes.plot(spots, values, **{**look, "linestyle": ""}, label=label)
    for spot in range(1, len(pmfs)):
        axes.axvline(spot - 0.5, color=style.ROLES["noise"].colour, linewidth=0.4)
    axes.set_xticks(range(len(pmfs)), [pmf_words(pmf).replace(", one", ",\none") for pmf in pmfs])
    axes.set_xlim(-0.5, len(pmfs) - 0.5)
    axes.grid(visible=False, axis="x")


def scale_errors(axes: Axes, values: Sequence[float], spreads: Sequence[float]) -> str:
    """Set the vertical axis for errors, some of which may be 0; return a remark on the axis."""
    top = max(value + spread for value, spread in zip(values, spreads, strict=True))
    positive = [value for value in values if value > _SAME_AS_ZERO]
    if not positive:
        axes.set_ylim(-0.06, 1.0)
        return ": 0 for every curve"
    if len(positive) == len(values) and top < 10.0 * min(positive):
        axes.set_ylim(0.0, 1.12 * top)
        return ""
    last = int(np.floor(np.log10(top)))
    first = max(int(np.floor(np.log10(min(positive)))), last - _DECADES)
    lowest = 10.0**first
    zero = len(positive) < len(values)
    dips = any(v - s < 0.5 * v for v, s in zip(values, spreads, strict=True) if v > _SAME_AS_ZERO)
    if not zero and not dips:
        axes.set(yscale="log", ylim=(0.5 * min(positive), 2.0 * top))
        return ", log scale"
    axes.set_yscale("symlog", linthresh=lowest, linscale=0.6)
    axes.set_ylim(-0.7 * lowest, 3.0 * top)
    decades = range(last, first - 1, -max(1, -((first - last) // 4)))
    axes.set_yticks([0.0, *(10.0**power for power in decades)])
    axes.yaxis.set_minor_locator(NullLocator())
    return f", log scale, linear below $10^{{{first}}}$"


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

# Table 3 of the paper, for K, epsilon, Delta; M = 10, 13, 15, 20; and delta'.
_PARAMETERS_3 = ((35, 0.1, 1e-5), (10, 13, 15, 20), 0.1)
_TABLE_3 = {
    "m": (6.4521, 7.5742, 8.2708, 9.8823),
    "target_epsilon": (0.6452, 0.7574, 0.8271, 0.9882),
    "delta": (0.1001, 0.1001, 0.1001, 0.1002),
    "tau": (14.0328,) * 4,
    "lambda": (0.1003,) * 4,
}


def of_noise_functions(config: Voters, tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare what sections 6.1 and D.1 say of figures 2, 6, 7 and 8."""
    if config.curves is not None or config.prior != PAPER_PRIOR:
        return ()
    errors, shapes = tables["errors"], tables["shapes"]
    comparisons: list[Comparison] = []
    if isinstance(config, Composed):
        voters = (config.voters, config.epsilon, config.voter_delta)
        if (voters, config.samples, config.slack) == _PARAMETERS_3:
            comparisons.append(_table_3(config, errors))
    if not {*_BASELINES[1:], "mean", "surrogate"} <= set(config.drawn):
        return tuple(comparisons)
    for target in config.targets:
        if target.allowance == 1.0:
            comparisons += _at_one(errors, shapes, target.at)
    above = [target.at for target in config.targets if target.allowance > 1.0]
    if above:
        comparisons += _above_one(errors, above)
        if config.voter_delta > 0.0 and isinstance(config, Config):
            comparisons.append(_highest_gamma(errors, shapes, above))
    if config.voter_delta == 0.0:
        comparisons += _double(config, errors, shapes)
    return tuple(comparisons)


def _error(errors: Table, target: float, curve: str) -> float:
    return float(errors.select(target=target, curve=curve).column("expected_error")[0])


def _gamma(shapes: Table, target: float, curve: str) -> np.ndarray:
    return np.array(shapes.select(target=target, curve=curve).column("gamma"))


def _proved(errors: Table, *, error: bool = False) -> str:
    rows, slack = max(errors.column("constraints_proved")), min(errors.column("exact_slack"))
    gap = max(gap for gap in errors.column("lp_gap") if gap is not None)
    proof = "exact integers" if slack >= 0 else "not proved"
    measured = "; error by quadrature, also sampled" if error else ""
    return f"{proof}, {rows:,} rows of the reduced corner set; dual gap {gap:.0e}{measured}"


def _table_3(config: Composed, errors: Table) -> Comparison:
    rows = [
        row
        | {"tau": target.tau, "lambda": target.lam}
        | {f"printed {name}": values[place] for name, values in _TABLE_3.items()}
        for place, (row, target) in enumerate(
            zip(errors.select(curve="surrogate").records, config.targets, strict=True)
        )
    ]
    return columns(
        f"Table 3: m = {', '.join(map(str, _TABLE_3['m']))}; tau = {_TABLE_3['tau'][0]}; lambda = "
        f"{_TABLE_3['lambda'][0]}; and their epsilon and delta.",
        rows,
        {name: f"printed {name}" for name in _TABLE_3},
        4,
        "closed form (theorem 2.3)",
        name="Table 3",
    )


def _at_one(errors: Table, shapes: Table, target: float) -> Iterator[Comparison]:
    distance = np.abs(_gamma(shapes, target, "surrogate") - _gamma(shapes, target, "subsampling"))
    yield judged(
        "At m = 1 the optimised gamma overlaps with subsampling's (section 6.1).",
        [{"apart": float(distance.max()), "an overlap up to": _OVERLAP}],
        lambda row: row["apart"] <= _OVERLAP,
        _proved(errors),
        show=("apart", "an overlap up to"),
        name="overlap at m = 1",
    )
    yield judged(
        "At m = 1 subsampling has the optimal error (lemma 3.2, section 6.1).",
        [{curve: _error(errors, target, curve) for curve in ("mean", "subsampling")}],
        lambda row: row["mean"] >= row["subsampling"] - _TOLERANCE,
        _proved(errors, error=True),
        show=("mean", "subsampling"),
        name=AT_ONE,
    )


def _above_one(errors: Table, targets: Sequence[float]) -> Iterator[Comparison]:
    """Compare the program's gamma with the baselines, and with that of the least plotted error."""
    baselines = [curve for curve in _BASELINES if curve in set(errors.column("curve"))]
    rows = [
        {"m": target, "error": _error(errors, target, "surrogate")}
        | {"least": min(_error(errors, target, curve) for curve in baselines)}
        | {"of another gamma": _error(errors, target, "mean")}
        for target in targets
    ]
    yield judged(
        "For m > 1 the optimised gamma has a lower error than the baselines (section 6.1).",
        rows,
        lambda row: row["error"] <= row["least"] + _TOLERANCE,
        _proved(errors, error=True),
        show=("m", "error", "least"),
        name="lowest error for m > 1",
    )
    yield judged(
        BEST_OF_ALL,
        rows,
        lambda row: row["error"] - row["of another gamma"] <= _GAIN,
        _proved(errors, error=True),
        show=("m", "error", "of another gamma"),
        worst=lambda row: row["error"] - row["of another gamma"],
        name=BEST,
    )


def _highest_gamma(errors: Table, shapes: Table, targets: Sequence[float]) -> Comparison:
    """Decide whether the paper's gamma is above the baselines' for every number of ones."""
    rows = [
        {"m": target, "l": ones, "gamma": float(gamma[ones]), "gap": base[ones] - gamma[ones]}
        for target in targets
        for gamma in [_gamma(shapes, target, "surrogate")]
        for base in [_gamma(shapes, target, curve) for curve in ("subsampling", "constant")]
        for ones in range(len(gamma) // 2, len(gamma))
    ]
    return judged(
        "For m > 1 the optimised gamma is the highest for every number of ones (section 6.1).",
        rows,
        lambda row: row["gap"] <= 1e-6,
        f"optimum of equation 3, {_proved(errors)}",
        show=("m", "l", "gamma", "gap"),
        worst=lambda row: row["gap"],
        name="highest gamma for m > 1",
    )


def _double(config: Voters, errors: Table, shapes: Table) -> Iterator[Comparison]:
    middle = (config.voters + 1) / 2
    large = [target.at for target in config.targets if target.allowance >= middle]
    if large:
        yield judged(
            f"For m >= (K + 1) / 2 = {middle:g} the optimised gamma and double subsampling have "
            "error 0 (section D.1.2).",
            [
                {"m": target, "curve": curve, "error": _error(errors, target, curve)}
                for target in large
                for curve in ("surrogate", "double")
            ],
            lambda row: row["error"] <= _TOLERANCE,
            _proved(errors),
            show=("m", "curve", "error"),
            name="error 0 for m >= (K + 1) / 2",
        )
    for target in [target.at for target in config.targets if target.allowance == config.voters]:
        first, *others = (_gamma(shapes, target, curve) for curve in config.drawn)
        yield judged(
            "At m = K all lines overlap (Figure 7).",
            [{"apart": float(np.abs(gamma - first).max())} for gamma in others],
            lambda row: row["apart"] <= 1e-6,
            _proved(errors),
            show=("apart",),
            worst=lambda row: row["apart"],
            name="all lines overlap at m = K",
        )


def run(config: Voters) -> Outcome:
    """Design, prove and measure each noise function for each target."""
    designs: dict[tuple[float, str], dpopt.Design] = {}
    for target in track(config.targets):
        for curve in config.drawn:
            designs[target.at, curve] = _design(config, target, curve)
    means = _sampled(config, designs)
    errors: list[dict[str, Cell]] = []
    shapes: list[dict[str, Cell]] = []
    for key, design in designs.items():
        where: dict[str, Cell] = {"target": key[0], "curve": key[1]}
        errors.append({**where, **_record(design, means[key]), "prior": config.prior})
        shapes += shape_rows(where, design.gamma)
    tables = {"errors": Table.of(errors), "shapes": Table.of(shapes)}
    return Outcome(tables, of_noise_functions(config, tables))


def _design(config: Voters, target: Target, curve: str) -> dpopt.Design:
    setting = config.setting(target)
    if curve in ("mean", "surrogate"):
        return dpopt.design(replace(setting, objective=curve))
    return baseline(setting, curve, target.sample, target.tau, target.lam)


def _sampled(
    config: Voters, designs: Mapping[tuple[float, str], dpopt.Design]
) -> dict[tuple[float, str], list[float]]:
    """Return, for each design, the mean error of each repeat; all share the same p."""
    rng = np.random.default_rng(config.seed)
    noise = np.array([1.0 - design.gamma[design.setting.middle :] for design in designs.values()])
    prior = majority.parse_prior(config.prior)
    means = []
    for _ in range(config.repeats):
        margins = margins_at(prior.sample((config.draws, config.voters), rng))
        means.append(np.abs(margins @ noise.T).mean(axis=0))
    return {key: [float(m[i]) for m in means] for i, key in enumerate(designs)}


def _record(design: dpopt.Design, means: list[float]) -> dict[str, Cell]:
    check, proof = check_design(design), proof_of(design)
    return {
        "m": design.setting.allowance,
        "expected_error": design.expected_error,
        "sampled_error": float(np.mean(means)),
        "spread": float(np.std(means, ddof=1)),
        "target_epsilon": design.guarantee.epsilon,
        "spent_epsilon": None if check is None else check.epsilon,
        "delta": design.guarantee.delta,
        "worst_violation": max(0.0, -float(proof.slack)),
        "exact_slack": float(proof.slack),
        "constraints_proved": proof.constraints,
        "paper_constraints": full_size(design.setting),
        "lp_gap": design.gap,
    }


_ALLOWANCE, _SAMPLED = "privacy allowance $m$", "subsampled voters $M$"


for _figure, _config in {
    2: Config(voters=11, epsilon=0.1, voter_delta=1e-5, allowance=(1.0, 3.0, 5.0, 7.0)),
    6: Composed(voters=35, epsilon=0.1, voter_delta=1e-5, samples=(10, 13, 15, 20), slack=0.1),
    7: Config(voters=11, epsilon=0.1, voter_delta=0.0, allowance=(1.0, 3.0, 5.0, 7.0, 9.0, 11.0)),
    8: Config(
        voters=101, epsilon=0.1, voter_delta=0.0, allowance=(10.0, 20.0, 30.0, 40.0, 60.0, 80.0)
    ),
}.items():
    experiment(
        f"majority-figure-{_figure}",
        config=replace(_config, repeats=100),
        quick=_config,
        effort=("draws", "repeats", "seed"),
    )(run).figure(
        partial(plot_with_axis, _SAMPLED if isinstance(_config, Composed) else _ALLOWANCE)
    )
