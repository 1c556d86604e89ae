"""What the experiments on sampling with a public prior share: methods, checks, and drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Gt, Le
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import rel_entr

import dpopt
from dpopt import public_prior
from dpopt.prob import total_variation
from experiments import drawing, style
from experiments.data.groups import UserGroup
from experiments.public_prior.accuracy import mollifier_tv
from experiments.registry import Cell, Comparison, Table
from experiments.verdicts import judged, short

OUTPERFORMS = (
    "Our experiments consistently demonstrate that our sampler significantly outperforms the "
    "state-of-the-art approach (section 5)."
)
"""What the paper concludes from its experiments."""


@dataclass(frozen=True)
class Method:
    """A way to release a category, in figures.

    Attributes:
        label: its name in a legend.
        role: determines its colour; a key of `experiments.style.ROLES`.
        size: of its open marker in points; smaller markers are drawn above larger ones, so that
            all are visible where methods coincide.
    """

    label: str
    role: str
    size: float


METHODS: Mapping[str, Method] = {
    "uniform": Method("randomised response", "noise", 3.5),
    "mollifier-tv": Method("TV mollifier", "baseline-2", 5.5),
    "mollifier-kl": Method("KL mollifier", "baseline", 3.0),
    "minimax": Method("Algorithm 1", "paper", 5.5),
    "leximin": Method("leximin kernel", "optimum", 2.5),
    "population": Method("population program", "variant", 3.0),
}
"""The methods, in the order in which they are drawn."""

LARGEST_EPSILON = 30.0
"""Above it, distances are rounding errors: e^-30 is 1e-13."""

Epsilon = Annotated[float, Gt(0.0), Le(LARGEST_EPSILON)]

LEAST = "least worst case of a kernel"
"""The label of Gamma_TV."""


def kl_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return sum_x p(x) ln(p(x) / q(x)) over the last axis."""
    return rel_entr(p, q).sum(axis=-1)


def distances(method: str, prior: np.ndarray, pmfs: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the total variation between each user's pmf and the pmf of the released category."""
    if method == "mollifier-tv":
        return mollifier_tv(prior, pmfs, epsilon)
    return total_variation(pmfs, sampling_pmfs(method, prior, pmfs, epsilon))


def sampling_pmfs(method: str, prior: np.ndarray, pmfs: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the distribution of the released category for each user; not for "mollifier-tv"."""
    if method == "mollifier-kl":
        return public_prior.mollify(prior, pmfs, epsilon)
    if method == "leximin":
        return dpopt.design(dpopt.PublicPrior(prior, epsilon, objective="leximin")).apply(pmfs)
    if method == "uniform":
        prior = np.full(prior.size, 1 / prior.size)
    return dpopt.design(dpopt.PublicPrior(prior, epsilon)).apply(pmfs)


def draw_points(
    axes: Axes, method: str, x: Sequence[float], y: Sequence[float], *, joined: bool = False
) -> None:
    """Draw open markers of a method, and the line through them if they are ``joined``.

    A line that lies under another one is the wider, as its markers are.
    """
    known = METHODS[method]
    look = style.ROLES[known.role].line
    if not joined:
        look["linestyle"] = "none"
    elif known.size > 5:
        look |= {"linewidth": 2.6, "alpha": 0.6}
    axes.plot(
        x,
        y,
        **look,
        markersize=known.size,
        markerfacecolor="none",
        markeredgewidth=0.8,
        markevery=max(1, len(x) // 20) if joined else None,
        label=known.label,
        clip_on=False,
    )


def draw_bars(axes: Axes, names: Sequence[str], heights: Mapping[str, Sequence[float]]) -> None:
    """Draw the bars of some methods side by side, a group for each name."""
    width = 0.84 / len(heights)
    for place, (method, values) in enumerate(heights.items()):
        known = METHODS[method]
        at = [k + width * (place - (len(heights) - 1) / 2) for k in range(len(names))]
        look = style.ROLES[known.role].bar
        axes.bar(at, values, width=0.92 * width, label=known.label, **look)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, max(1, len(names)) - 0.5)
    axes.grid(visible=False, axis="x")


def draw_levels(axes: Axes, levels: Sequence[float]) -> None:
    """Draw the least worst case over each group of bars."""
    look = style.ROLES["limit"].line | {"linestyle": "-", "marker": "none", "linewidth": 1.2}
    for place, level in enumerate(levels):
        ends = [place - 0.44, place + 0.44]
        axes.plot(ends, [level, level], **look, label=LEAST if place == 0 else "_other")


SHOWN = ("uniform", "mollifier-tv", "mollifier-kl", "minimax", "leximin")
_TOLERANCE = 1e-9
# A bound above this multiple of the tallest bar is given as text: drawn, it would flatten the bars.
_ABOVE = 2.5


def measured(
    groups: Sequence[UserGroup], prior: str, epsilons: Sequence[float], source: str, column: str
) -> list[dict[str, Cell]]:
    """Measure every method on the users of every group, at every epsilon."""
    rows: list[dict[str, Cell]] = []
    for epsilon in epsilons:
        for group in groups:
            public, pmfs = group.prior(prior), group.pmfs
            worst = public_prior.minimax_utility(public, epsilon)
            for method in SHOWN:
                found = distances(method, public, pmfs, epsilon)
                rows.append(
                    {
                        "data": source,
                        "epsilon": epsilon,
                        column: group.value,
                        "method": method,
                        "users": group.users,
                        "categories": len(group.categories),
                        "largest": float(found.max()),
                        "mean": float(found.mean()),
                        "worst_case": worst,
                    }
                )
    return rows


def of_bound(table: Table, column: str) -> Comparison:
    """Compare the largest distances of Algorithm 1 with theorem 1, whatever the data are."""
    return judged(
        "With Algorithm 1 no user's TV exceeds Gamma_TV (theorem 1).",
        table.select(method="minimax").records,
        lambda row: row["largest"] <= row["worst_case"] + _TOLERANCE,
        "every user, double precision",
        show=(column, "largest", "worst_case"),
        # A group whose users all have one category has nothing to lose.
        worst=lambda row: row["largest"] / (row["worst_case"] or 1.0),
        name="theorem 1",
    )


def drawn(table: Table, column: str, label: str) -> Figure:
    """Draw the largest distance of each method in each group as bars, a panel for each epsilon."""
    epsilons = table.distinct("epsilon")
    figure, panels = drawing.panels(
        len(epsilons), 1, across=label, height=0.42, wide=True, sharex=True
    )
    for axes, epsilon in zip(panels, epsilons, strict=True):
        part = table.select(epsilon=epsilon)
        names = [str(name) for name in part.distinct(column)]
        heights = {m: part.select(method=m).column("largest") for m in METHODS if m in SHOWN}
        draw_bars(axes, names, heights)
        levels = part.select(method="minimax").column("worst_case")
        title = rf"$\varepsilon = {epsilon:g}$"
        if max(levels) <= _ABOVE * max(map(max, heights.values())):
            draw_levels(axes, levels)
        else:
            title += f"; {LEAST}: {short(min(levels))} to {short(max(levels))}"
        axes.set(title=title, ylabel="largest total variation\nover users")
        axes.set_ylim(bottom=0.0)
    return drawing.finish(figure, panels)
