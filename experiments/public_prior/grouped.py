"""The layout of Figure 4: the largest distance over the users of each group, for all methods."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from dpopt import public_prior
from experiments import drawing
from experiments.data.groups import UserGroup
from experiments.public_prior.common import (
    LEAST,
    METHODS,
    distances,
    draw_bars,
    draw_levels,
)
from experiments.registry import Cell, Comparison, Table
from experiments.verdicts import short, statement

SHOWN = ("uniform", "mollifier-tv", "mollifier-kl", "minimax", "leximin")
_TOLERANCE = 1e-9
# A bound above this multiple of the tallest bar is given as text: drawn, it would flatten the bars.
_ABOVE = 2.5

MATHEMATICS = (
    r"p_u(x) = \frac{c_u(x)}{\sum_y c_u(y)}, \quad"
    r" q(x) = \frac{\sum_u c_u(x)}{\sum_u \sum_y c_u(y)}",
    r"\max_u \mathrm{TV}(p_u, p_u K) \leq \Gamma_{\mathrm{TV}}(q, \varepsilon)"
    r" = \frac{1 - q_{\min}}{e^{\varepsilon} q_{\min} + 1 - q_{\min}}",
)
"""Formulas: users' pmfs from counts, their group's prior, and the bound of theorem 1."""


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
    rows = [row for row in table.records if row["method"] == "minimax"]
    over = [row for row in rows if row["largest"] > row["worst_case"] + _TOLERANCE]
    # A group whose users all have one category has nothing to lose.
    nearest = max(rows, key=lambda row: row["largest"] / (row["worst_case"] or 1.0))
    return statement(
        "With Algorithm 1 no user's TV exceeds Gamma_TV (theorem 1).",
        f"{nearest[column]}: at most {short(nearest['largest'])} of "
        f"{short(nearest['worst_case'])}; {len(over)} of {len(rows)} groups exceed it.",
        "every user, double precision",
        holds=not over,
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
