"""Figures 2, 6, 7 and 8 of DaRRM: noise functions for several targets and their errors; Table 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpopt import NotPrivateError, ParameterError, majority, style
from dpopt.privacy import Guarantee, general_composition
from experiments.majority.words import law_words, under, whole
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
_SLACK = 0.1
_TABLE_3 = {
    "m": (6.4521, 7.5742, 8.2708, 9.8823),
    "target_epsilon": (0.6452, 0.7574, 0.8271, 0.9882),
    "delta": (0.1001, 0.1001, 0.1001, 0.1002),
}
_TAU, _LAMBDA = 14.0328, 0.1003

CURVES = {
    "expected-error": ("LP, expected error (ours)", "optimum"),
    "surrogate": ("LP, the paper's objective", "paper"),
    "double": ("double subsampling", "baseline-2"),
    "subsampling": ("subsampling", "baseline"),
    "constant": ("randomised response", "noise"),
}
_IN_WORDS = {
    "expected-error": "the gamma that minimises the plotted error",
    "surrogate": "the paper's objective",
    "double": "double subsampling",
    "subsampling": "subsampling",
    "constant": "randomised response",
}
_SAMPLERS = ("double", "subsampling")

_FULL = 100
PAPER_PRIOR = "uniform:0,1"
# Largest K whose noise functions are drawn whole, and the largest with markers.
_WHOLE_RANGE, _MARKED = 41, 15
# Errors below it are rounding.
_SAME_AS_ZERO = 1e-12
# The most decades of errors that are told apart; those below are as good as 0.
_DECADES = 7


Curve = Literal["expected-error", "surrogate", "double", "subsampling", "constant"]


@dataclass(frozen=True)
class Target:
    """What the majority may spend, and the baselines' parameters for it.

    Attributes:
        at: place on the figure's horizontal axis, and name of the panel.
        allowance: m.
        delta: of the majority.
        sample: number of voters that subsampling draws; 0 if not even one may be drawn.
        tau: the majority is (tau epsilon, lam)-DP by composition; None for simple composition.
        lam: the delta of that bound; None likewise.
    """

    at: float
    allowance: float
    delta: float
    sample: int
    tau: float | None = None
    lam: float | None = None


@dataclass(frozen=True, kw_only=True)
class Voters:
    """What every figure of noise functions has; its subclasses document it.

    Attributes:
        mechanisms: K.
        epsilon: of each voter.
        mechanism_delta: of each voter.
        prior: the law of the p_i.
        curves: names of noise functions; None for all that apply.
        draws: of the p_i for each sampled error.
        repeats: sampled errors, whose spread is drawn.
        seed: of all draws.
    """

    mechanisms: int
    epsilon: float
    mechanism_delta: float
    prior: str = PAPER_PRIOR
    curves: tuple[Curve, ...] | None = None
    draws: int = 10_000
    repeats: int = 10
    seed: int = 2

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("repeats", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise ParameterError(
                    f"{name} is {getattr(self, name)}; it must be at least {least}."
                )
        law = majority.parse_prior(self.prior)
        for target in self.targets:
            # The settings refuse what is out of range, and priors of another number of voters.
            setting = self.setting(target)
            majority.CornerOracle(setting)
            if isinstance(law, majority.PointPrior):
                majority.expected_error_weights(setting.mechanisms, law)
        for curve in self.drawn:
            if curve not in CURVES:
                raise ParameterError(
                    f"curves holds {curve!r}; it must hold some of {', '.join(CURVES)}."
                )
            if curve in _SAMPLERS and min(target.sample for target in self.targets) < 1:
                raise ParameterError(
                    f"allowance is {min(target.allowance for target in self.targets):g}; it must "
                    f"be at least 1 for the curve {curve!r}, which draws that many voters."
                )
        if not self.drawn or len(set(self.drawn)) < len(self.drawn):
            raise ParameterError(
                f"curves is {self.drawn}; it must hold at least one name, each once."
            )
        if "double" in self.drawn and self.mechanism_delta > 0.0:
            raise ParameterError(
                f"mechanism_delta is {self.mechanism_delta:g}; it must be 0 for the curve "
                "'double', as theorem 4.1 asks."
            )

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the majority may spend in each panel."""
        raise NotImplementedError

    @property
    def drawn(self) -> tuple[str, ...]:
        """The curves of the figure: double subsampling is for pure differential privacy only."""
        if self.curves is not None:
            return self.curves
        left_out = set()
        if self.mechanism_delta > 0.0:
            left_out.add("double")
        if min(target.sample for target in self.targets) < 1:
            left_out.update(_SAMPLERS)
        return tuple(curve for curve in CURVES if curve not in left_out)

    def setting(self, target: Target) -> majority.MajoritySetting:
        """Return the voters with one of the targets, and the law of the p_i."""
        return majority.MajoritySetting(
            self.mechanisms,
            self.epsilon,
            target.allowance,
            self.mechanism_delta,
            target.delta,
            prior=majority.parse_prior(self.prior),
        )


@dataclass(frozen=True, kw_only=True)
class Config(Voters):
    """Parameters of a figure whose majority may spend (m epsilon, delta).

    Attributes:
        mechanisms: K, the number of voters; odd.
        epsilon: of each voter, in nats.
        mechanism_delta: Delta, of each voter.
        allowance: m for each panel, in (0, K]; subsampling draws M voters, the most whose
            (M epsilon, 1 - (1 - Delta)^M) is within the target: m rounded down, unless delta is
            less than m voters spend.
        delta: of the majority, in every panel; none takes 1 - (1 - Delta)^m for each m, and
            Delta where m < 1.
        prior: the law of the p_i under which errors are expected and sampled, and for which the
            expected error is minimised: uniform:0,1, beta:2,2, common-uniform:0,1, point:0.3.
        curves: noise functions to draw, of expected-error; surrogate; double; subsampling;
            constant; none takes all that apply.
        draws: of (p_1, ..., p_K) for each sampled error.
        repeats: sampled errors, whose mean and standard deviation are drawn.
        seed: of all draws.
    """

    allowance: tuple[float, ...]
    delta: float | None = None

    def __post_init__(self) -> None:
        if not self.allowance or len(set(self.allowance)) < len(self.allowance):
            raise ParameterError(
                f"allowance is {self.allowance}; it must hold at least one m, each once."
            )
        super().__post_init__()

    @property
    def targets(self) -> tuple[Target, ...]:
        """(m epsilon, delta) for each m."""
        found = []
        for m in self.allowance:
            least = _union(self.mechanism_delta, max(1.0, m))
            delta = least if self.delta is None else self.delta
            sizes = range(1, int(min(m, self.mechanisms)) + 1)
            within = [M for M in sizes if _union(self.mechanism_delta, M) <= delta]
            found.append(Target(whole(m), float(m), delta, max(within, default=0)))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Composed(Voters):
    """Parameters of a figure whose majority may spend what M sampled voters do.

    Attributes:
        mechanisms: K, the number of voters; odd.
        epsilon: of each voter, in nats.
        mechanism_delta: Delta, of each voter.
        samples: M for each panel, in 1..K: the majority may spend what theorem 2.3, general
            composition, gives for M voters.
        slack: delta' of that theorem.
        prior: the law of the p_i under which errors are expected and sampled, and for which the
            expected error is minimised: uniform:0,1, beta:2,2, common-uniform:0,1, point:0.3.
        curves: noise functions to draw, of expected-error; surrogate; double; subsampling;
            constant; none takes all that apply.
        draws: of (p_1, ..., p_K) for each sampled error.
        repeats: sampled errors, whose mean and standard deviation are drawn.
        seed: of all draws.
    """

    samples: tuple[int, ...]
    slack: float

    def __post_init__(self) -> None:
        fits = all(1 <= size <= self.mechanisms for size in self.samples)
        if not self.samples or not fits or len(set(self.samples)) < len(self.samples):
            raise ParameterError(
                f"samples is {self.samples}; it must hold at least one M, each once, in "
                f"1..{self.mechanisms}."
            )
        super().__post_init__()

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the majority of M subsampled voters spends by general composition (D.1.1)."""
        voter = Guarantee(self.epsilon, self.mechanism_delta)
        epsilon, k = self.epsilon, self.mechanisms
        every = general_composition(voter, k, self.slack)
        found = []
        for size in self.samples:
            spent = general_composition(voter, size, self.slack)
            # Simple composition is among the terms: no rounding may lift m or tau above it.
            tau = min(every.epsilon / epsilon, k)
            m = min(spent.epsilon / epsilon, size)
            found.append(Target(size, m, spent.delta, size, tau, every.delta))
        return tuple(found)


def _union(mechanism_delta: float, count: float) -> float:
    """Return 1 - (1 - Delta)^count, of which Delta may be out of its range: it is refused later."""
    if not 0.0 < mechanism_delta < 1.0:
        return 0.0
    return -float(np.expm1(count * np.log1p(-mechanism_delta)))


def steps(config: Voters) -> int:
    """Return the number of noise functions."""
    return len(config.targets) * len(config.drawn)


def run(config: Voters, advance: Advance) -> Outcome:
    """Design, prove and measure each noise function for each target."""
    designs: dict[tuple[float, str], majority.MajorityDesign] = {}
    for target in config.targets:
        for curve in config.drawn:
            designs[target.at, curve] = _design(config, target, curve)
            advance()
    means = _sampled(config, designs)
    errors: list[dict[str, Cell]] = []
    shapes: list[dict[str, Cell]] = []
    for key, design in designs.items():
        where: dict[str, Cell] = {"target": key[0], "curve": key[1]}
        errors.append({**where, **_record(design, means[key]), "prior": config.prior})
        for ones, value in enumerate(design.gamma):
            shapes.append({**where, "l": ones, "gamma": float(value)})
    tables = {
        "errors": Table.of(
            f"Error under {law_words(config.prior)}, p_1..p_K, and privacy of each noise function.",
            errors,
        ),
        "shapes": Table.of("The noise functions gamma(l), l = 0..K.", shapes),
    }
    return Outcome(tables, _findings(config, tables["errors"]), of_noise_functions(config, tables))


def _design(config: Voters, target: Target, curve: str) -> majority.MajorityDesign:
    setting = config.setting(target)
    if curve in ("expected-error", "surrogate"):
        return majority.design_for(setting, objective=curve)
    if curve == "subsampling":
        gamma = majority.subsampling(config.mechanisms, target.sample)
    elif curve == "double":
        gamma = majority.double_subsampling(config.mechanisms, target.sample)
    else:
        gamma = majority.constant(setting, target.tau, target.lam)
    return majority.assess(setting, gamma, repair=True)


def _sampled(
    config: Voters, designs: Mapping[tuple[float, str], majority.MajorityDesign]
) -> dict[tuple[float, str], list[float]]:
    """Return, for each design, the mean error of each repeat; all share the same p."""
    rng = np.random.default_rng(config.seed)
    noise = np.array([1.0 - design.gamma[design.setting.middle :] for design in designs.values()])
    prior = majority.parse_prior(config.prior)
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


def _findings(config: Voters, errors: Table) -> tuple[str, ...]:
    found = []
    for target in config.targets:
        part = errors.select(target=target.at)
        at = dict(zip(part.column("curve"), part.column("expected_error"), strict=True))
        listed = ", ".join(
            f"{_short(at[curve])} for {words}" for curve, words in _IN_WORDS.items() if curve in at
        )
        found.append(f"m = {target.allowance:.6g}: error {listed}.")
    return tuple(found)


def _short(value: float) -> str:
    return f"{value:.2e}" if 0 < value < 1e-3 else f"{value:.4f}"


def of_noise_functions(config: Voters, tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare what sections 6.1 and D.1 say of figures 2, 6, 7 and 8.

    Args:
        config: of the run; it tells which of the figures it is.
        tables: "errors" and "shapes" of the run.
    """
    if config.curves is not None or config.prior != PAPER_PRIOR:
        return ()
    errors, shapes = tables["errors"], tables["shapes"]
    found: list[Comparison] = []
    if isinstance(config, Composed) and _is_table_3(config):
        found.append(_table_3(config, errors))
    if not {*_BASELINES[1:], "expected-error", "surrogate"} <= set(config.drawn):
        return tuple(found)
    for target in config.targets:
        if target.allowance == 1.0:
            found += _at_one(errors, shapes, target.at)
    above = [target.at for target in config.targets if target.allowance > 1.0]
    if above:
        found += [_lowest_error(errors, above), _best_of_all(errors, above)]
        if config.mechanism_delta > 0.0 and isinstance(config, Config):
            found.append(_highest_gamma(errors, shapes, above))
    if config.mechanism_delta == 0.0:
        found += _double(config, errors, shapes)
    return tuple(found)


def _error(errors: Table, target: float, curve: str) -> float:
    return float(errors.select(target=target, curve=curve).column("expected_error")[0])


def _gamma(shapes: Table, target: float, curve: str) -> np.ndarray:
    return np.array(shapes.select(target=target, curve=curve).column("gamma"))


def _proved(errors: Table, *, error: bool = False) -> str:
    rows, slack = max(errors.column("constraints_proved")), min(errors.column("exact_slack"))
    gap = max(gap for gap in errors.column("lp_gap") if gap is not None)
    proof = "exact integers" if slack >= 0 else "not proved"
    measured = "; error by quadrature, sampled beside it" if error else ""
    return f"{proof}, {rows:,} rows of the reduced corner set; dual gap {gap:.0e}{measured}"


def _is_table_3(config: Composed) -> bool:
    """Return whether the run has the parameters for which the paper prints its Table 3."""
    voters = (config.mechanisms, config.epsilon, config.mechanism_delta)
    return voters == _VOTERS and config.samples == _SAMPLES and config.slack == _SLACK


def _table_3(config: Composed, errors: Table) -> Comparison:
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


def _at_one(errors: Table, shapes: Table, target: float) -> list[Comparison]:
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


def _lowest_error(errors: Table, targets: Sequence[float]) -> Comparison:
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


def _best_of_all(errors: Table, targets: Sequence[float]) -> Comparison:
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


def _highest_gamma(errors: Table, shapes: Table, targets: Sequence[float]) -> Comparison:
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


def _double(config: Voters, errors: Table, shapes: Table) -> Iterator[Comparison]:
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
        shown = [_gamma(shapes, target, curve) for curve in config.drawn]
        apart = max(float(np.abs(gamma - shown[0]).max()) for gamma in shown)
        yield statement(
            "At m = K all lines overlap (Figure 7).",
            f"The gammas differ by at most {apart:.1g}.",
            _proved(errors),
            holds=apart <= 1e-6,
            name="all lines overlap at m = K",
        )


def _named(targets: Sequence[float]) -> str:
    return "m = " + ", ".join(map(str, targets))


def plot_with_axis(axis: str, outcome: Outcome) -> Figure:
    """Draw a panel for the shapes at each target, and one for the errors below them."""
    shapes, errors = outcome.tables["shapes"], outcome.tables["errors"]
    targets = list(dict.fromkeys(shapes.column("target")))
    curves = list(dict.fromkeys(shapes.column("curve")))
    columns = columns_for(len(targets))
    rows = -(-len(targets) // columns)
    height = {1: 0.62, 2: 0.66, 3: 0.85}.get(columns, 1.15)
    figure, grid = style.figure(rows + 1, columns, height=height, sharey=True)
    places = grid[0, 0].get_gridspec()
    for unused in (*grid[:-1].ravel()[len(targets) :], *grid[-1]):
        unused.remove()
    panels = list(grid[:-1].ravel()[: len(targets)])
    for axes, target in zip(panels, targets, strict=True):
        draw_shapes(axes, shapes.select(target=target), _looks(curves))
        axes.set_title(f"{axis.split()[-1]} = {target}")
        axes.set_xlabel("ones $l$" if columns > 2 else "number of ones $l$")
    for axes in panels[::columns]:
        axes.set_ylabel(r"noise $\gamma(l)$" if columns > 2 else r"noise function $\gamma(l)$")
    below = figure.add_subplot(places[-1, :])
    below.set_title(f"error{_draw_errors(below, errors, curves)}")
    below.set_xlabel(axis)
    if max(shapes.column("l")) > _WHOLE_RANGE:
        # The lower half mirrors it.
        for axes in panels:
            axes.set_xlabel("ones $l > K/2$")
    style.letter([*panels, below])
    handles, labels = below.get_legend_handles_labels()
    ncols = 2 if columns == 1 else 3
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols)
    return figure


def columns_for(panels: int) -> int:
    """Return how many panels stand side by side: at most four, few places empty."""
    if panels <= 4:
        return panels
    return min((4, 3), key=lambda columns: (-panels % columns, -columns))


def _looks(names: Sequence[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    return {name: (CURVES[name][0], style.role(CURVES[name][1]).line) for name in names}


def nested(place: int, count: int) -> dict[str, Any]:
    """Return widths of line and marker for one of several curves, drawn one over the other.

    What is drawn first is wider, so that it is seen beside whatever lies on it.
    """
    if place == 0 and count > 1:
        return {"linewidth": 2.2, "markersize": 4.8}
    over_it = (count - 1 - place) / max(1, count - 2)
    return {"linewidth": 0.8 + 0.3 * over_it, "markersize": 2.3 + 0.9 * over_it}


def draw_shapes(
    axes: Axes, shapes: Table, curves: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> None:
    """Draw noise functions; of many voters the upper half alone, as they are symmetric.

    Args:
        axes: of the panel.
        shapes: "curve", "l" and "gamma" of one target.
        curves: label and look of each.
    """
    last = max(shapes.column("l"))
    first = 0 if last <= _WHOLE_RANGE else (last + 1) // 2
    for place, (curve, (label, look)) in enumerate(curves.items()):
        part = shapes.select(curve=curve)
        # Markers of many voters would run into each other.
        drawn: dict[str, Any] = {**look, **nested(place, len(curves))}
        if last > _MARKED:
            drawn["marker"] = ""
        axes.plot(part.column("l")[first:], part.column("gamma")[first:], **drawn, label=label)
    axes.set_ylim(-0.06, 1.06)
    room = 0.04 * (last - first)
    axes.set_xlim(first - room, last + room)
    step = tick_step(last - first)
    axes.set_xticks(range(-(-first // step) * step, last + 1, step))


def tick_step(last: int) -> int:
    """Return the least of 1, 2, 5, 10, 20, ... with at most eight ticks on 0..last, last >= 0."""
    scale = 1
    while True:
        for digit in (1, 2, 5):
            if last <= 7 * digit * scale:
                return digit * scale
        scale *= 10


def _draw_errors(axes: Axes, errors: Table, curves: Sequence[str]) -> str:
    """Draw the errors against the targets; return what is to be said of their scale."""
    for place, curve in enumerate(curves):
        label, role = CURVES[curve]
        part = errors.select(curve=curve)
        axes.errorbar(
            part.column("target"),
            part.column("sampled_error"),
            yerr=part.column("spread"),
            **style.role(role).line,
            **nested(place, len(curves)),
            label=label,
            elinewidth=0.8,
        )
    ticks = sorted(set(errors.column("target")))
    if len(ticks) <= 12:
        axes.set_xticks(ticks)
    axes.set_ylabel(f"error under {under(errors.column('prior')[0])}")
    axes.margins(x=0.06 if len(ticks) > 1 else 0.5)
    return scale_errors(axes, errors.column("sampled_error"), errors.column("spread"))


def scale_errors(axes: Axes, values: Sequence[float], spreads: Sequence[float]) -> str:
    """Set the vertical axis for errors, of which some may be 0; return what must be said of it.

    Args:
        axes: whose errors are drawn.
        values: every error.
        spreads: half the height of each one's bar.
    """
    from matplotlib.ticker import NullLocator

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
        axes.set_yscale("log")
        axes.set_ylim(0.5 * min(positive), 2.0 * top)
        return ", log scale"
    axes.set_yscale("symlog", linthresh=lowest, linscale=0.6)
    axes.set_ylim(-0.7 * lowest, 3.0 * top)
    decades = range(last, first - 1, -max(1, -((first - last) // 4)))
    axes.set_yticks([0.0, *(10.0**power for power in decades)])
    axes.yaxis.set_minor_locator(NullLocator())
    return f", log scale, linear below $10^{{{first}}}$"


_PROGRAM = (
    r"\max_{\gamma} \sum_{l = (K+1)/2}^{K} c_l \, \gamma(l) \quad \text{subject to} \quad "
    r"0 \le \gamma(l) = \gamma(K - l) \le 1,",
    r"\mathbb{E}\, h(L) - e^{m \varepsilon} \, \mathbb{E}' h(L) \le e^{m \varepsilon} - 1 + "
    r"2 \delta \quad \text{for all voters at corners } (p_i, p_i') \text{ of lemma 5.1},",
    r"h(l) = \gamma(l) \text{ for } l > K/2, \quad h(l) = -\gamma(l) \text{ for } l < K/2, \quad "
    r"\Pr[\text{output } 1 \mid L = l] = \frac{1 + h(l)}{2},",
    r"\text{ours: } c_l = \frac{1}{2} \mathbb{E}_p \left[ \mathrm{sign} \left( \sum_i p_i - "
    r"\frac{K}{2} \right) \left( \alpha_l(p) - \alpha_{K-l}(p) \right) \right], \quad "
    r"\text{the paper's: } c_l = \frac{1}{2} \mathbb{E}_{p \sim U[1/2, 1]^K} \left[ \alpha_l(p) - "
    r"\alpha_{K-l}(p) \right],",
    r"\alpha_l(p) = \Pr[L = l], \quad \text{error}(p) = \left| \sum_{l = (K+1)/2}^{K} "
    r"\frac{\alpha_l(p) - \alpha_{K-l}(p)}{2} \left( 1 - \gamma(l) \right) \right|.",
)
_SIMPLE = r"\delta = 1 - (1 - \Delta)^m."
_GENERAL = (
    r"m \varepsilon = \min \left\{ M \varepsilon, \; M \varepsilon \tanh \frac{\varepsilon}{2} + "
    r"\varepsilon \sqrt{2 M \log \left( e + \frac{\sqrt{M} \varepsilon}{\delta'} \right)}, \; "
    r"M \varepsilon \tanh \frac{\varepsilon}{2} + \varepsilon \sqrt{2 M \log \frac{1}{\delta'}} "
    r"\right\}, \quad \delta = 1 - (1 - \Delta)^M (1 - \delta')."
)
_ALLOWANCE, _SAMPLED = "privacy allowance $m$", "subsampled voters $M$"


def _experiment(
    figure: int, config: Voters, summary: str, published: str | None = None
) -> Experiment:
    composed = isinstance(config, Composed)
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
        plot=partial(plot_with_axis, _SAMPLED if composed else _ALLOWANCE),
        effort=("draws", "repeats", "seed"),
        mathematics=(*_PROGRAM, _GENERAL if composed else _SIMPLE),
    )


EXPERIMENTS = (
    _experiment(
        2,
        Config(mechanisms=11, epsilon=0.1, mechanism_delta=1e-5, allowance=(1.0, 3.0, 5.0, 7.0)),
        "Noise functions at K = 11, epsilon = 0.1, Delta = 1e-5, and their errors. The paper's "
        "curves, and one more: the noise function that minimises the error that is plotted.",
    ),
    _experiment(
        6,
        Composed(
            mechanisms=35,
            epsilon=0.1,
            mechanism_delta=1e-5,
            samples=(10, 13, 15, 20),
            slack=0.1,
        ),
        "The target is what the majority of M of K = 35 voters spends by general composition "
        "(delta' = 0.1), epsilon = 0.1, Delta = 1e-5.",
        "Table 3: m = 6.4521, 7.5742, 8.2708, 9.8823; tau = 14.0328; lambda = 0.1003; "
        "delta = 0.1001, 0.1001, 0.1001, 0.1002.",
    ),
    _experiment(
        7,
        Config(
            mechanisms=11,
            epsilon=0.1,
            mechanism_delta=0.0,
            allowance=(1.0, 3.0, 5.0, 7.0, 9.0, 11.0),
        ),
        "Pure differential privacy, K = 11: double subsampling joins the curves.",
    ),
    _experiment(
        8,
        Config(
            mechanisms=101,
            epsilon=0.1,
            mechanism_delta=0.0,
            allowance=(10.0, 20.0, 30.0, 40.0, 60.0, 80.0),
        ),
        "Pure differential privacy, K = 101.",
    ),
)
