"""The regret of each prior's noise function under other priors, and the least largest regret."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from annotated_types import MaxLen, MinLen
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpopt
from dpopt import majority
from experiments import drawing
from experiments.majority.figures import draw_groups
from experiments.majority.voters import PAPER_PRIOR, pmf_words, shape_rows
from experiments.parameters import Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track

DEFAULT = "common-uniform:0,1"
PAPER, WORST, REGRET = "the paper's", "least worst case", "least regret"
# K, m and Delta; the majority's delta is m Delta.
_CASES = ((11, 3.0, 0.0), (11, 3.0, 1e-5), (35, 5.0, 0.0), (101, 10.0, 0.0))
_MARKERS = ("D", "p", "h", "<", ">")
# Regrets below it are what rounding leaves of 0.
_ZERO = 1e-9
# Below it the scale of the figure is linear.
_SMALL = 1e-3
_FEW = 3


@configuration
class Config:
    """Parameters of the tables, which we chose.

    Attributes:
        epsilon: of each voter, in nats.
        priors: two to five priors of the p_i. A noise function is optimised for each, and one for
            the least largest regret over all: uniform:0,1, beta:2,2 or point:0.7, or
            common-uniform:0,1 and common-beta:2,2 if all voters share one p.
    """

    epsilon: float = 0.1
    priors: Annotated[Several[str], MinLen(2), MaxLen(len(_MARKERS))] = (
        PAPER_PRIOR,
        DEFAULT,
        "common-uniform:0.8,1",
    )

    @property
    def voters(self) -> list[dpopt.Majority]:
        """The voters, the targets and the priors."""
        pmfs = tuple(map(majority.parse_prior, self.priors))
        return [
            dpopt.Majority(k, self.epsilon, m, shift, m * shift, priors=pmfs)
            for k, m, shift in _CASES
        ]


def _named(prior: str) -> str:
    return f"for {pmf_words(prior)}"


@experiment("majority-priors", config=Config())
def run(config: Config) -> Outcome:
    """Design each gamma, and compute its error and its regret under every distribution."""
    errors: list[dict[str, Cell]] = []
    shapes: list[dict[str, Cell]] = []
    for setting in track(config.voters):
        hedged = dpopt.design(replace(setting, objective="least-regret"))
        designs = {_named(p): dpopt.design(replace(setting, prior=p)) for p in config.priors}
        designs[PAPER] = dpopt.design(replace(setting, objective="surrogate"))
        # Over all p, whatever the voters have in common.
        designs[WORST] = dpopt.design(replace(setting, objective="worst-case", prior=PAPER_PRIOR))
        for curve, design in (designs | {REGRET: hedged}).items():
            where: dict[str, Cell] = {"K": setting.voters, "m": setting.allowance}
            where |= {"Delta": setting.voter_delta, "curve": curve}
            shapes += shape_rows(where, design.gamma)
            verdict = "private" if design.private else "not private"
            for prior, under in zip(config.priors, hedged.regrets, strict=True):
                error = majority.expected_error(design.gamma, majority.parse_prior(prior)).value
                regret = (error - under.best) / under.coin
                errors.append(
                    where
                    | {"pmf": prior, "error": error, "best": under.best, "coin": under.coin}
                    | {"regret": 0.0 if abs(regret) < _ZERO else regret}
                    | {"verdict": verdict, "lp_gap": design.gap}
                )
    return Outcome({"errors": Table.of(errors), "shapes": Table.of(shapes)})


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw a panel for each case, in it a group of points for each distribution."""
    errors = outcome.tables["errors"]
    settings = errors.distinct("K", "m", "Delta")
    pmfs = errors.distinct("pmf")
    columns = min(2 if len(pmfs) <= _FEW else 1, len(settings))
    figure, panels = drawing.panels(
        len(settings),
        columns,
        across="distribution that the $p_i$ really follow",
        height=0.75 if columns > 1 else 0.55,
    )
    looks = _looks(errors.distinct("curve"))
    for axes, (k, m, shift) in zip(panels, settings, strict=True):
        part = errors.select(K=k, m=m, Delta=shift)
        more = rf", $\Delta$ = {shift:g}" if shift else ""
        _draw(axes, part, looks)
        axes.set(title=f"$K$ = {k}, $m$ = {m:g}{more}", ylabel="regret (linear below .001)")
    return drawing.finish(figure, panels)


def _looks(curves: list[str]) -> drawing.Looks:
    looks = {
        _named(DEFAULT): drawing.points("optimum"),
        PAPER: drawing.points("paper"),
        WORST: drawing.points("noise"),
        REGRET: drawing.points("variant", marker="*"),
    }
    others = (curve for curve in curves if curve not in looks)
    for curve, marker in zip(others, _MARKERS, strict=False):
        looks[curve] = drawing.points("variant", marker=marker, markerfacecolor="white")
    return {curve: (curve, looks[curve]) for curve in curves}


def _draw(axes: Axes, errors: Table, looks: drawing.Looks) -> None:
    """Draw the regrets on a logarithmic scale that is linear where they hardly matter."""
    draw_groups(axes, errors, "pmf", "regret", looks)
    axes.set_yscale("symlog", linthresh=_SMALL, linscale=0.6)
    axes.set_ylim(-0.5 * _SMALL, 2.0 * max(_SMALL, *errors.column("regret")))
    axes.set_yticks([0.0, *(tick for tick in (1e-3, 1e-2, 0.1, 1.0) if tick < axes.get_ylim()[1])])
    axes.minorticks_off()
