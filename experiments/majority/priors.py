"""Figure 9 of the DaRRM paper: what a wrong or a right prior costs or gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any

from annotated_types import MaxLen
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpopt
from dpopt import ParameterError, majority
from experiments import drawing, style
from experiments.majority.baselines import baseline
from experiments.majority.figures import draw_groups, draw_shapes, scale_errors
from experiments.majority.voters import Config as FigureConfig
from experiments.majority.voters import pmf_words, shape_rows
from experiments.parameters import Several, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import judged, observed

_TOLERANCE = 1e-9
# What the paper expects of its curves is no statement that a proof could refute.
_EXPECTED = "agrees if it is so at every m"
Independent = majority.UniformPrior | majority.BetaPrior
UNIFORM, PEAKED = "uniform:0,1", "uniform:0,0.3,0.7,1"
_OURS, _PAPER = "ours, ", "the paper's, "
_PAPER_U, _PAPER_P = (_PAPER + pmf_words(prior) for prior in (UNIFORM, PEAKED))
WORST, SUBSAMPLING, RESPONSE = "least worst case", "subsampling", "randomised response"
# Markers of the curves of one kind, from the third on.
_MARKERS = ("", "", "p", "h", "X", "<", ">", "8")


@configuration
class Config:
    """Parameters of the figure.

    Attributes:
        voters: K, the number of voters; odd.
        epsilon: of each voter, in nats.
        voter_delta: Delta, of each voter.
        allowance: m for each row of panels, in (0, K]; subsampling draws m voters, rounded down.
        delta: of the majority; none takes 1 - (1 - Delta)^m for each m, and Delta where m < 1.
        priors: for which noise functions are optimised, with our objective and with the paper's:
            uniform:0,1 or beta:2,2, for independent p_i; at most eight.
        actual: actual distributions of the p_i, under which errors are computed; common-uniform:0,1
            or point:0.3 are also possible.
    """

    voters: int = 11
    epsilon: float = 0.1
    voter_delta: float = 0.0
    allowance: Several[float] = (3.0, 5.0)
    delta: float | None = None
    priors: Annotated[Several[str], MaxLen(len(_MARKERS))] = (UNIFORM, PEAKED)
    actual: Several[str] = (UNIFORM, "point:0.5", "uniform:0,0.1")

    @property
    def figure(self) -> FigureConfig:
        """The voters and the targets, as in the other figures."""
        names = ("voters", "epsilon", "voter_delta", "allowance", "delta")
        return FigureConfig(**{name: getattr(self, name) for name in names})

    @property
    def curves(self) -> dict[str, str | None]:
        """The prior for which each noise function is optimised, by its name."""
        curves: dict[str, str | None] = {
            kind + pmf_words(prior): prior for kind in (_OURS, _PAPER) for prior in self.priors
        }
        sampled = min(target.sample for target in self.figure.targets) > 0
        others = (WORST, SUBSAMPLING, RESPONSE) if sampled else (WORST, RESPONSE)
        return curves | dict.fromkeys(others)


@experiment("majority-figure-9", config=Config())
def run(config: Config) -> Outcome:
    """Design each gamma, and compute its error where the p_i really come from, in closed form."""
    shapes: list[dict[str, Cell]] = []
    errors: list[dict[str, Cell]] = []
    for target in track(config.figure.targets):
        for curve, prior in config.curves.items():
            design = _design(config.figure.setting(target), target.sample, curve, prior)
            where: dict[str, Cell] = {"m": target.at, "curve": curve}
            shapes += shape_rows(where, design.gamma)
            proof = design.certificate
            verdict: dict[str, Cell] = {"verdict": "private" if design.private else "not private"}
            verdict["exact_slack"] = float(proof.slack) if proof else None
            for actual in config.actual:
                error = majority.expected_error(design.gamma, majority.parse_prior(actual))
                measured = {"actual": actual, "error": error.value, "method": error.method}
                errors.append(where | measured | verdict)
    tables = {"errors": Table.of(errors), "shapes": Table.of(shapes)}
    return Outcome(tables, of_priors(tables["errors"]))


def _design(setting: dpopt.Majority, sample: int, curve: str, prior: str | None) -> dpopt.Design:
    if curve in (SUBSAMPLING, RESPONSE):
        return baseline(setting, "constant" if curve == RESPONSE else curve, sample)
    if prior is None:
        return dpopt.design(replace(setting, objective="worst-case"))
    if curve.startswith(_PAPER):
        weights = majority.surrogate_weights(setting.voters, upper_half(prior)).values
        return dpopt.design(replace(setting, coefficients=weights))
    return dpopt.design(replace(setting, objective="mean", prior=prior))


def upper_half(prior: str) -> majority.Prior:
    """Return a distribution of max(p_i, 1 - p_i), as the paper's objective takes it.

    The objective depends on its mean alone, 1/2 + E|p - 1/2|: U[1/2, 1] for U[0, 1], and U[.7, 1]
    for U[0, .3] or [.7, 1].
    """
    pmf = majority.parse_prior(prior)
    if not isinstance(pmf, Independent):
        raise ParameterError(f"prior is {prior!r}; it must be a uniform or a beta distribution.")
    # E|p - 1/2| is the weight of a single voter.
    lowest = round(2.0 * float(majority.expected_error_weights(1, pmf).values[0]), 15)
    if lowest >= 1.0:
        return majority.PointPrior((1.0,))
    return majority.UniformPrior(((lowest, 1.0),))


def of_priors(errors: Table) -> tuple[Comparison, ...]:
    """Compare what section D.1.3 expects of a wrong and of a right prior (Figure 9)."""
    if not {_PAPER_U, _PAPER_P, SUBSAMPLING, RESPONSE} <= set(errors.column("curve")):
        return ()
    proved = all(slack is not None and slack >= 0 for slack in errors.column("exact_slack"))
    certificate = (
        "exact integers for every gamma; errors in closed form"
        if proved
        else "errors in closed form; not every gamma is proved"
    )
    error = {(row["m"], row["actual"], row["curve"]): row["error"] for row in errors.records}
    cases = list(product(errors.distinct("m"), errors.distinct("actual")))
    comparisons = []
    for actual, lower, higher, claim in (
        (
            "uniform:0,0.1",
            _PAPER_P,
            _PAPER_U,
            "Under p ~ U[0, 0.1], near the prior of clear votes, the gamma optimised for it is "
            "expected to have the lower error (section D.1.3).",
        ),
        (
            "uniform:0,1",
            _PAPER_U,
            _PAPER_P,
            "Under p ~ U[0, 1], the uniform prior, the gamma optimised for it is expected to have "
            "the lower error (section D.1.3).",
        ),
        (
            "point:0.5",
            _PAPER_U,
            _PAPER_P,
            "At p_i = 0.5 the gamma optimised for clear votes is expected to have the higher error "
            "(section D.1.3).",
        ),
    ):
        pairs = [(error[m, p, lower], error[m, p, higher]) for m, p in cases if p == actual]
        if pairs:
            listed = ", ".join(f"{a:.2g} against {b:.2g}" for a, b in pairs)
            alike, name = all(a < b for a, b in pairs), actual.replace("point:", "p = ")
            comparisons.append(
                observed(
                    claim,
                    f"{listed} at m = {', '.join(map(str, errors.distinct('m')))}.",
                    certificate,
                    alike=alike,
                    rule=_EXPECTED,
                    name=f"Figure 9, {name}",
                )
            )
    below = judged(
        "Whatever the prior, the optimised gamma has a lower error than the baselines (Figure 9).",
        [
            {"m": m, "p": actual, "gamma": curve, "error": error[m, actual, curve]}
            | {"least": min(error[m, actual, base] for base in (SUBSAMPLING, RESPONSE))}
            for m, actual in cases
            for curve in (_PAPER_U, _PAPER_P)
        ],
        lambda row: row["error"] <= row["least"] + _TOLERANCE,
        certificate,
        show=("m", "p", "gamma", "error", "least"),
        name="Figure 9, baselines",
    )
    return (*comparisons, below)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the shapes on the left, the errors under each actual prior on the right."""
    shapes, errors = outcome.tables["shapes"], outcome.tables["errors"]
    allowances = shapes.distinct("m")
    looks = _looks(shapes.distinct("curve"))
    # Height for the lines of the legend.
    height = 0.6 + 0.055 * -(-len(looks) // 2) / len(allowances)
    figure, grid = style.figure(len(allowances), 2, height=height)
    for (left, right), m in zip(grid, allowances, strict=True):
        draw_shapes(left, shapes.select(m=m), looks)
        left.set(title=f"$m$ = {m}", xlabel="number of ones $l$", ylabel=r"noise $\gamma(l)$")
        title = f"$m$ = {m}: error{_draw_errors(right, errors.select(m=m), looks)}"
        right.set(title=title, xlabel="actual prior of the $p_i$", ylabel="expected error")
    return drawing.finish(figure, list(grid.ravel()))


def _looks(curves: Sequence[str]) -> drawing.Looks:
    """Return label and style of each curve.

    The colour shows the objective: ours for the first prior, ours for another prior or the worst
    case, the paper's. Open markers and dashes are priors after the first.
    """
    looks: dict[str, tuple[str, dict[str, Any]]] = {}
    for kind, first, later in ((_OURS, "optimum", "variant"), (_PAPER, "paper", "paper")):
        for place, curve in enumerate(c for c in curves if c.startswith(kind)):
            look = drawing.line(later if place else first)
            if place:
                look |= {"linestyle": "--", "markerfacecolor": "white"}
                look["marker"] = _MARKERS[place] or look["marker"]
            looks[curve] = (curve.replace(",", " for", 1), look)
    looks[WORST] = (f"ours, {WORST}", drawing.line("variant", marker="*", linestyle="-"))
    looks[SUBSAMPLING] = (SUBSAMPLING, drawing.line("baseline"))
    looks[RESPONSE] = (RESPONSE, drawing.line("noise"))
    return {curve: looks[curve] for curve in curves}


def _draw_errors(axes: Axes, errors: Table, looks: drawing.Looks) -> str:
    """Draw a group of points for each distribution; return what is to be said of their scale."""
    draw_groups(axes, errors, "actual", "error", looks)
    scale = scale_errors(axes, errors.column("error"), [0.0] * len(errors.rows))
    for spot, pmf in enumerate(errors.distinct("actual")):
        if max(errors.select(actual=pmf).column("error")) == 0.0 and scale:
            axes.annotate(
                "0 for every\nsymmetric $\\gamma$",
                (spot, 0.0),
                (0.0, 8.0),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize="small",
            )
    return scale
