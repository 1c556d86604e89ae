"""What the experiments on sampling with a public prior share: methods, checks, and drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, NamedTuple

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
from experiments.registry import Cell, Comparison, Table, track
from experiments.verdicts import judged, short

OUTPERFORMS = (
    "Our experiments consistently demonstrate that our sampler significantly outperforms the "
    "state-of-the-art approach (section 5)."
)
"""What the paper concludes from its experiments."""


class Method(NamedTuple):
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
    label, role, size = METHODS[method]
    look = drawing.line(role) if joined else drawing.points(role)
    if joined and size > 5:
        look |= {"linewidth": 2.6, "alpha": 0.6}
    look |= {"markersize": size, "markerfacecolor": "none", "markeredgewidth": 0.8}
    step = max(1, len(x) // 20) if joined else None
    axes.plot(x, y, **look, markevery=step, label=label, clip_on=False)


def draw_bars(axes: Axes, names: Sequence[str], table: Table, column: str) -> None:
    """Draw a column of a table as bars, a group for each name, in it a bar for each method."""
    methods = [method for method in METHODS if method in table.column("method")]
    width = 0.84 / len(methods)
    for place, method in enumerate(methods):
        label, role, _ = METHODS[method]
        at = np.arange(len(names)) + width * (place - (len(methods) - 1) / 2)
        heights = table.select(method=method).column(column)
        axes.bar(at, heights, width=0.92 * width, label=label, **style.ROLES[role].bar)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.grid(visible=False, axis="x")


SHOWN = ("uniform", "mollifier-tv", "mollifier-kl", "minimax", "leximin")
_TOLERANCE = 1e-9
# A bound above this multiple of the tallest bar is given as text: drawn, it would flatten the bars.
_ABOVE = 2.5


def measured(
    groups: Sequence[UserGroup], prior: str, epsilons: Sequence[float], source: str, column: str
) -> Table:
    """Measure every method on the users of every group, at every epsilon."""
    rows: list[dict[str, Cell]] = []
    for epsilon, group in track(list(product(epsilons, groups))):
        public, pmfs = group.prior(prior), group.pmfs
        worst = public_prior.minimax_utility(public, epsilon)
        for method in SHOWN:
            moved = distances(method, public, pmfs, epsilon)
            rows.append(
                {
                    "data": source,
                    "epsilon": epsilon,
                    column: group.value,
                    "method": method,
                    "users": group.users,
                    "categories": len(group.categories),
                    "largest": float(moved.max()),
                    "mean": float(moved.mean()),
                    "worst_case": worst,
                }
            )
    return Table.of(rows)


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
    title = r"$\varepsilon = {epsilon:g}$"
    figure, panels = drawing.by_panel(
        table, ["epsilon"], title, 1, label, height=0.42, wide=True, sharex=True
    )
    for axes, rows in panels.items():
        draw_bars(axes, rows.distinct(column), rows, "largest")
        axes.set_ylabel("largest total variation\nover users")
        levels = rows.select(method="minimax").column("worst_case")
        if max(levels) <= _ABOVE * max(rows.column("largest")):
            at, look = np.arange(len(levels)), drawing.beside("limit", linestyle="-", linewidth=1.2)
            ends = np.column_stack([at - 0.44, at + 0.44, np.full(len(levels), np.nan)]).ravel()
            axes.plot(ends, np.repeat(levels, 3), label=LEAST, **look)
        else:
            between = f"{LEAST}: {short(min(levels))} to {short(max(levels))}"
            axes.set_title(f"{axes.get_title()}; {between}")
        axes.set_ylim(bottom=0.0)
    return drawing.finish(figure, [*panels])
