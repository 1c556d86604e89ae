"""Figures 2 and 3 of the conference paper, from exact expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dpopt import roo
from experiments import drawing, style
from experiments.parameters import Count, Positive, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.accuracy import expected_output
from experiments.roo.baselines import rule_sampler, violates
from experiments.roo.published import laplace_bound, roo_bound
from experiments.verdicts import judged, not_comparable, short

_EXACT = "exact expectation, double precision"
_OWN_P = "the paper does not print P; we chose one"

_PMFS = {
    "true": ("true distribution $P$", style.ROLES["limit"].bar | {"alpha": 0.45, "hatch": ""}),
    "ds_roo": ("distribution of DS-ROO, exact rule", style.ROLES["optimum"].bar),
    "roo": ("distribution of ROO", style.ROLES["baseline-2"].bar),
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


@configuration
class Config:
    """n, k and epsilon are the paper's. We chose P, a normal curve over categories, and the others.

    Attributes:
        records: n.
        categories: k.
        epsilon: of figure 2.
        width: standard deviation of the normal curve, in categories.
        lowest: epsilon of figure 3.
        highest: epsilon of figure 3.
        points: number of epsilons of figure 3.
    """

    records: int = 1000
    categories: int = 9
    epsilon: float = 0.1
    width: Positive = 1.5
    lowest: float = 0.01
    highest: float = 2.0
    points: Count = 30

    @property
    def distribution(self) -> np.ndarray:
        """P: by default unimodal and symmetric; the paper draws its own without numbers."""
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
    "roo-conference-figures-2-3", config=Config(points=60), quick=Config(), effort=("points",)
)
def run(config: Config) -> Outcome:
    """Compute the output distribution, and the accuracy for each epsilon."""
    n, k, p = config.records, config.categories, config.distribution
    exact, of_roo = (
        expected_output(rule_sampler(n, k, config.epsilon, rule), p) for rule in ("exact", "roo")
    )
    columns = {"true": p, "ds_roo": exact.pmf, "roo": of_roo.pmf, "difference": exact.difference}
    pmfs = [
        {"category": y + 1} | {name: float(values[y]) for name, values in columns.items()}
        for y in range(k)
    ]
    rows = [_record(n, k, epsilon, p) for epsilon in track(config.epsilons)]
    tables = {"pmfs": Table.of(pmfs), "accuracy": Table.of(rows)}
    return Outcome(tables, of_conference(tables))


def _record(n: int, k: int, epsilon: float, p: np.ndarray) -> dict[str, Cell]:
    setting = roo.RooSetting(n, k, epsilon)
    samplers = {rule: rule_sampler(n, k, epsilon, rule) for rule in ("roo", "conference", "exact")}
    values = {rule: expected_output(each, p).total_variation for rule, each in samplers.items()}
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
    moved = sum(row["difference"] < 0 for row in pmfs)
    below = sum(row["conference"] <= min(row["laplace"], row["roo"]) for row in rows)
    return (
        not_comparable(
            "Mixing takes from the most probable category and gives to less probable (Fig. 2).",
            f"With our P, category {top['category']} loses {short(-top['difference'])}; "
            f"{moved} of {len(pmfs)} categories lose.",
            _EXACT,
            why=_OWN_P,
        ),
        not_comparable(
            "DS-ROO is dramatically more accurate than Raskhodnikova et al. and ROO (Figure 3).",
            f"With our P, it is lower at {below} of {len(rows)} epsilon.",
            f"{_EXACT}; not by sampling, as in the paper",
            why=_OWN_P,
        ),
        judged(
            "It provides the same privacy guarantee (Figure 3).",
            rows,
            lambda row: not row["conference_violates"],
            "exact integers, every inequality of the rule",
            show=("epsilon", "conference_excess_factor"),
            worst=lambda row: row["conference_excess_factor"],
            name="theorem 2, conference",
        ),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw figure 2 on the left, figure 3 on the right."""
    figure, (left, right) = drawing.panels(2, height=0.9)
    pmfs, accuracy = outcome.tables["pmfs"], outcome.tables["accuracy"]
    for place, (name, (label, looks)) in enumerate(_PMFS.items()):
        at = np.array(pmfs.column("category")) + 0.27 * (place - 1)
        left.bar(at, pmfs.column(name), width=0.26, label=label, **looks)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.set(xlabel="category", ylabel="probability", title="Figure 2")
    shown = {} if len(accuracy.rows) == 1 else {"marker": None}
    curves = {name: (label, looks | shown) for name, (label, looks) in _CURVES.items()}
    drawing.draw_columns(right, accuracy, "epsilon", curves, least=0.0)
    right.set(
        xscale="log",
        yscale="log",
        xlabel=r"$\varepsilon$ (nats)",
        ylabel=r"accuracy $\alpha$ (total variation)",
        title="Figure 3, $P$ as in (a)",
    )
    right.margins(0.04)
    return drawing.finish(figure, [left, right])
