"""Figures 2 and 3 of the conference paper, from exact expectations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pydantic.dataclasses import dataclass

import dpopt
from dpopt import ParameterError, roo
from experiments import drawing, style
from experiments.parameters import STRICT, Count, Positive
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.accuracy import expected_output
from experiments.roo.common import PAPER, violates
from experiments.roo.published import (
    laplace_bound,
    roo_bound,
)
from experiments.verdicts import not_comparable, short, statement

_EXACT = "exact expectation, double precision"
_OWN_P = "the paper does not print P; we chose one"

_PMFS = {
    "true": ("true distribution $P$", style.role("limit").bar | {"alpha": 0.45, "hatch": ""}),
    "ds_roo": ("distribution of DS-ROO, exact rule", style.role("optimum").bar),
    "roo": ("distribution of ROO", style.role("baseline-2").bar),
}
_CURVES: dict[str, tuple[str, dict[str, Any]]] = {
    "laplace": ("Raskhodnikova et al., bound", drawing.line("noise", linestyle="-")),
    "roo": ("ROO, worst $P$", drawing.line("baseline-2", linestyle="-")),
    "roo_exact": ("ROO", drawing.line("baseline-2", linestyle="--")),
    "conference": (
        "DS-ROO, conference's rule",
        drawing.line("baseline", linestyle="-", linewidth=3.0),
    ),
    "exact": ("DS-ROO, exact rule", drawing.line("optimum", linestyle="--")),
}


@dataclass(frozen=True, config=STRICT)
class Config:
    """n, k and epsilon are the paper's. We chose P, a normal curve over categories, and the others.

    Attributes:
        records: n.
        categories: k.
        epsilon: of figure 2.
        width: standard deviation of the normal curve, in categories.
        probabilities: P itself, k numbers of sum 1; none for the normal curve.
        lowest: epsilon of figure 3.
        highest: epsilon of figure 3.
        points: number of epsilons of figure 3.
    """

    records: int = 1000
    categories: int = 9
    epsilon: float = 0.1
    width: Positive = 1.5
    probabilities: tuple[float, ...] = ()
    lowest: float = 0.01
    highest: float = 2.0
    points: Count = 30

    def __post_init__(self) -> None:
        for epsilon in (self.epsilon, self.lowest, self.highest):
            roo.RooSetting(self.records, self.categories, epsilon)
        p = self.probabilities
        right = len(p) == self.categories and min(p) >= 0 and abs(math.fsum(p) - 1) <= 1e-9
        if p and not right:
            raise ParameterError(
                f"probabilities is {p}; it must hold {self.categories} probabilities that sum to 1."
            )

    @property
    def distribution(self) -> np.ndarray:
        """P: by default unimodal and symmetric; the paper draws its own without numbers."""
        if self.probabilities:
            return np.array(self.probabilities)
        place = np.arange(self.categories) - (self.categories - 1) / 2
        pmf = np.exp(-((place / self.width) ** 2) / 2)
        return pmf / pmf.sum()

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilon of figure 3, evenly spaced in logarithm."""
        return tuple(
            float(f"{e:.4g}") for e in np.geomspace(self.lowest, self.highest, self.points)
        )


@experiment(
    "roo-conference-figures-2-3",
    PAPER,
    "Figures 2 and 3 (conference)",
    "True against output distribution at k = 9, n = 1000, epsilon = 0.1, and accuracy "
    "against epsilon. P is a normal curve of width 1.5 over the categories: the paper prints none. "
    "The paper estimates DS-ROO's distribution by draws; here it is the exact expectation.",
    config=Config(points=60),
    quick=Config(),
    effort=("points",),
    mathematics=(
        r"Q(y) = E \left[ \frac{q_m}{k} + (1 - q_m) \frac{c_y}{n} \right], \quad "
        r"m = \min_y c_y, \quad (c_1, \dots, c_k) \sim \mathrm{Mult}(n, P)",
        r"\alpha = \frac{1}{2} \sum_y | Q(y) - P(y) |",
    ),
)
def run(config: Config) -> Outcome:
    """Compute the output distribution, and the accuracy for each epsilon."""
    p = config.distribution
    outputs = {
        rule: expected_output(
            dpopt.design(
                dpopt.RevealOrObscure(config.records, config.categories, config.epsilon, rule)
            ),
            p,
        )
        for rule in ("exact", "roo")
    }
    pmfs = [
        {
            "category": y + 1,
            "true": float(p[y]),
            "ds_roo": float(outputs["exact"].pmf[y]),
            "roo": float(outputs["roo"].pmf[y]),
            "difference": float(outputs["exact"].difference[y]),
        }
        for y in range(config.categories)
    ]
    rows = [_record(config, epsilon) for epsilon in track(config.epsilons)]
    tables = {
        "pmfs": Table.of("Figure 2: P, and the exact distribution of the released category.", pmfs),
        "accuracy": Table.of("Figure 3: total variation for each epsilon.", rows),
    }
    return Outcome(tables, (), of_conference(tables))


def _record(config: Config, epsilon: float) -> dict[str, Cell]:
    n, k, p = config.records, config.categories, config.distribution
    setting = roo.RooSetting(n, k, epsilon)
    samplers = {
        rule: dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
        for rule in ("exact", "roo", "conference")
    }
    values = {
        rule: expected_output(sampler, p).total_variation for rule, sampler in samplers.items()
    }
    return {
        "epsilon": epsilon,
        "laplace": laplace_bound(setting),
        "roo": roo_bound(setting),
        "roo_exact": values["roo"],
        "conference": values["conference"],
        "exact": values["exact"],
        "conference_violates": violates(samplers["conference"]),
        "conference_excess_factor": samplers["conference"].audit.excess_factor,
    }


def of_conference(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare what the conference paper says of its Figures 2 and 3 with our P."""
    pmfs, rows = tables["pmfs"].records, tables["accuracy"].records
    top = max(pmfs, key=lambda row: row["true"])
    moved = [row for row in pmfs if row["difference"] < 0]
    below = [row for row in rows if row["conference"] <= min(row["laplace"], row["roo"])]
    same = [row["roo_exact"] / row["conference"] for row in rows if row["conference"] > 0]
    broken = [row for row in rows if row["conference_violates"]]
    times = f"{min(same):.2f} to {max(same):,.0f} times lower than ROO's" if same else "0 there"
    return (
        not_comparable(
            "Mixing takes from the most probable category and gives to less probable (Fig. 2).",
            f"With our P, category {top['category']} loses {short(-top['difference'])}; "
            f"{len(moved)} of {len(pmfs)} categories lose.",
            _EXACT,
            why=_OWN_P,
        ),
        not_comparable(
            "DS-ROO is dramatically more accurate than Raskhodnikova et al. and ROO (Figure 3).",
            f"With our P, it is lower at {len(below)} of {len(rows)} epsilon; {times}.",
            f"{_EXACT}; not by sampling, as in the paper",
            why=_OWN_P,
        ),
        statement(
            "It provides the same privacy guarantee (Figure 3).",
            f"Violated at {len(broken)} of {len(rows)} epsilon, for this n and k.",
            "exact integers, every inequality of the rule",
            holds=not broken,
            name="theorem 2, conference",
        ),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw figure 2 on the left, figure 3 on the right."""
    figure, grid = style.figure(1, 2, height=0.9)
    left, right = grid[0]
    _draw_pmfs(left, outcome.tables["pmfs"])
    table = outcome.tables["accuracy"]
    for name, (label, looks) in _CURVES.items():
        values = [value if value > 0 else math.nan for value in table.column(name)]
        looks = looks if len(values) == 1 else looks | {"marker": None}
        right.plot(table.column("epsilon"), values, label=label, **looks)
    right.set_xscale("log")
    right.set_yscale("log")
    right.margins(0.04)
    right.set_xlabel(r"$\varepsilon$ (nats)")
    right.set_ylabel(r"accuracy $\alpha$ (total variation)")
    right.set_title("Figure 3, $P$ as in (a)")
    return drawing.finish(figure, [left, right])


def _draw_pmfs(axes: Axes, table: Table) -> None:
    categories = table.column("category")
    for place, (name, (label, looks)) in enumerate(_PMFS.items()):
        at = [category + 0.27 * (place - 1) for category in categories]
        axes.bar(at, table.column(name), width=0.26, label=label, **looks)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("category")
    axes.set_ylabel("probability")
    axes.set_title("Figure 2")
