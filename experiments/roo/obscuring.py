"""Figure 1 of both papers: q_m against the smallest count m, with what an exact audit says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt import roo
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.roo.audit_map import of_theorem_2
from experiments.roo.common import PAPER, RULES, data_sets, violates
from experiments.verdicts import statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#2f5d9b", "#c1432e", "#d98a29", "#555555", "#0b6e4f", "#8a5aa8")
_VISIBLE = 1e-9


@dataclass(frozen=True)
class Panel:
    """One panel: n, k, the values of epsilon, and the published rules that it shows."""

    title: str
    records: int
    letters: int
    epsilons: tuple[float, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """Figure 1 of the journal and of the conference paper, and cases where a rule fails.

    n and k are the papers'; the epsilons are ours, as the papers print none.
    """

    panels: tuple[Panel, ...] = (
        Panel("journal, Figure 1", 1000, 10, (0.05, 0.1, 0.5, 1.0), ("journal", "exact")),
        Panel("conference, Figure 1", 1000, 9, (0.05, 0.1, 0.5, 1.0), ("conference", "exact")),
        Panel("conference's rule fails", 20, 3, (0.1,), ("conference", "journal", "exact")),
        Panel("journal's rule fails", 3, 2, (0.5,), ("journal", "journal-repaired", "exact")),
    )
    others: tuple[tuple[int, int, float, str], ...] = (
        (24, 3, 0.05, "journal"),
        (30, 2, 0.3, "journal"),
        (25, 3, 0.05, "journal"),
        (25, 3, 0.05, "journal-repaired"),
        (1000, 9, 0.005, "journal"),
        (1000, 9, 0.005, "conference"),
        (1000, 10, 0.01, "conference"),
    )


def run(config: Config, advance: Advance) -> Outcome:
    """Evaluate and audit each rule."""
    shapes: list[dict[str, Cell]] = []
    audits: list[dict[str, Cell]] = []
    for panel in config.panels:
        for epsilon in panel.epsilons:
            for rule in panel.rules:
                sampler = roo.min_count(panel.records, panel.letters, epsilon, rule)
                audits.append({"panel": panel.title, **_audit(sampler)})
                shapes += _shape(panel, sampler)
        advance()
    for n, k, epsilon, rule in config.others:
        audits.append({"panel": None, **_audit(roo.min_count(n, k, epsilon, rule))})
    advance()
    tables = {
        "audits": Table.of("Exact audit of each rule.", audits),
        "shapes": Table.of("The obscuring probabilities q_m.", shapes),
    }
    return Outcome(tables, tuple(_findings(tables)), of_obscuring(tables))


def _shape(panel: Panel, sampler: roo.MinCountSampler) -> list[dict[str, Cell]]:
    last = min(sampler.setting.largest_minimum, 40)
    return [
        {
            "panel": panel.title,
            "epsilon": sampler.setting.epsilon,
            "rule": sampler.rule,
            "m": m,
            "q": sampler.obscuring(m),
        }
        for m in range(last + 1)
    ]


def _audit(sampler: roo.MinCountSampler) -> dict[str, Cell]:
    setting, audit = sampler.setting, sampler.audit
    return {
        "records": setting.records,
        "letters": setting.letters,
        "epsilon": setting.epsilon,
        "rule": sampler.rule,
        "excess_factor": audit.excess_factor,
        "violates": violates(sampler),
        "inequalities": audit.rows,
        "first_minimum": audit.witness.minima[0],
        "second_minimum": audit.witness.minima[1],
        "data_sets": data_sets(sampler),
    }


def _findings(tables: dict[str, Table]) -> list[str]:
    audits = tables["audits"].records
    found = [
        f"n = {row['records']}, k = {row['letters']}, epsilon = {row['epsilon']}: the rule "
        f"{row['rule']!r} gives letter 0 {row['excess_factor']:.5f} e^epsilon times the "
        f"probability on one of two neighbours, counts {row['data_sets']}."
        for row in audits
        if row["violates"]
    ]
    figures = [row for row in audits if row["panel"] and "Figure" in row["panel"]]
    bad = sum(row["violates"] for row in figures if row["rule"] != "exact")
    shown = sum(row["rule"] != "exact" for row in figures)
    found.append(
        f"{bad} of the {shown} published rules violate at the n and k of the papers' figures, "
        "epsilons ours."
    )
    apart = [
        abs(a["q"] - b["q"])
        for panel in dict.fromkeys(row["panel"] for row in figures)
        for a, b in _pairs(tables["shapes"].select(panel=panel))
    ]
    if apart:
        found.append(
            f"There the exact rule differs from them by at most {max(apart):.2g} in any q_m."
        )
    return found + list(_not_below(tables["shapes"]))


def _not_below(shapes: Table) -> Iterable[str]:
    """Say where the exact rule obscures more than a rule that is not private."""
    for panel in dict.fromkeys(shapes.column("panel")):
        for other, exact in _pairs(shapes.select(panel=panel)):
            if exact["q"] > other["q"] + _VISIBLE:
                yield (
                    f"{panel}, epsilon = {other['epsilon']}: the exact rule's q_{other['m']} is "
                    f"{exact['q']:.3f}, that of the rule {other['rule']!r} {other['q']:.3f}."
                )


def _pairs(part: Table) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each published q_m beside the exact one."""
    rows = part.records
    exact = {(row["epsilon"], row["m"]): row for row in rows if row["rule"] == "exact"}
    return [
        (row, exact[row["epsilon"], row["m"]])
        for row in rows
        if row["rule"] != "exact" and (row["epsilon"], row["m"]) in exact
    ]


def of_obscuring(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare what the papers say of their Figures 1, and theorem 2 in the settings below.

    Args:
        tables: "audits" and "shapes" of the run.
    """
    shapes = tables["shapes"].records
    curves: dict[tuple[str, float, str], list[float]] = {}
    for row in shapes:
        curves.setdefault((row["panel"], row["epsilon"], row["rule"]), []).append(row["q"])
    published = {
        key: values
        for key, values in curves.items()
        if "Figure" in key[0] and key[2] in ("journal", "conference")
    }
    rising = [key for key, q in published.items() if np.any(np.diff(q) > 0)]
    differences = [
        float(np.abs(np.subtract(q, curves[key[0], key[1], "exact"])).max())
        for key, q in published.items()
        if (key[0], key[1], "exact") in curves
    ]
    apart = max(differences, default=0.0)
    return (
        statement(
            "q_m is non-increasing in m (Figure 1).",
            f"Holds in {len(published) - len(rising)} of {len(published)} curves; the exact rule's "
            f"q_m differ by at most {apart:.1g}.",
            "weights over 2^62, each audited exactly",
            holds=not rising,
        ),
        *of_theorem_2(tables["audits"]),
    )


def plot(outcome: Outcome) -> Figure:
    """Draw q_m: one colour for each epsilon in the figures, one for each rule in the cases."""
    from matplotlib.figure import Figure

    shapes, audits = outcome.tables["shapes"], outcome.tables["audits"]
    panels = list(dict.fromkeys(shapes.column("panel")))
    rows = math.ceil(len(panels) / 2)
    figure = Figure(figsize=(11.0, 3.6 * rows + 0.5), layout="constrained")
    figure.suptitle(r"$n$ and $k$ as in the papers; every $\varepsilon$ is ours", fontsize=10)
    grid = figure.subplots(rows, min(2, len(panels)), squeeze=False)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        part, checks = shapes.select(panel=panel), audits.select(panel=panel).records
        if len(set(part.column("epsilon"))) > 1:
            _draw_figure(axes, part)
        else:
            _draw_case(axes, part, checks)
        at = checks[0]
        title = f"{panel}: $k = {at['letters']}$, $n = {at['records']}$"
        if len(set(part.column("epsilon"))) == 1:
            title += rf", $\varepsilon = {at['epsilon']}$"
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("smallest count $m$")
        axes.set_ylabel("obscuring probability $q_m$")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
    return figure


def _draw_figure(axes: Axes, part: Table) -> None:
    looks = zip(cycle(_COLOURS), dict.fromkeys(part.column("epsilon")), strict=False)
    for colour, epsilon in looks:
        for rule in dict.fromkeys(part.column("rule")):
            curve = part.select(epsilon=epsilon, rule=rule)
            ours = rule == "exact"
            axes.plot(
                curve.column("m"),
                curve.column("q"),
                "o" if ours else "-",
                color=colour,
                markersize=4,
                markerfacecolor="none",
                label=None if ours else rf"$\varepsilon = {epsilon}$",
            )
    axes.plot([], [], "o", color="#555555", markerfacecolor="none", label="exact rule (ours)")


def _draw_case(axes: Axes, part: Table, checks: list[dict[str, Any]]) -> None:
    for check in checks:
        rule = str(check["rule"])
        label, colour, style = RULES[rule]
        curve = part.select(rule=rule)
        factor = check["excess_factor"]
        axes.plot(
            curve.column("m"),
            curve.column("q"),
            style if rule != "exact" else "o--",
            color=colour,
            markersize=5,
            label=rf"{label}: {factor:.4f} $e^\varepsilon$" if check["violates"] else label,
        )
        if check["violates"]:
            ends = sorted({check["first_minimum"], check["second_minimum"]}, key=str)
            values = dict(zip(curve.column("m"), curve.column("q"), strict=True))
            axes.plot(
                ends,
                [values[end] for end in ends],
                "x",
                color="black",
                markersize=11,
                markeredgewidth=2,
                zorder=5,
            )
    axes.plot([], [], "x", color="black", label="smallest counts of the violating pair")
    axes.set_xticks(sorted(set(part.column("m"))))


_CONFIG = Config()

EXPERIMENT = Experiment(
    name="roo-figure-1",
    paper=PAPER,
    item="Figure 1 (journal and conference)",
    summary="Obscuring probability q_m against the smallest count m: the published recursions and "
    "the exact rule; below, two settings in which a published recursion is not private. n and k "
    "of Figure 1 are the papers'; they print no epsilon, and these are ours.",
    published=None,
    config=_CONFIG,
    quick=_CONFIG,
    steps=lambda config: len(config.panels) + 1,
    run=run,
    plot=plot,
)
