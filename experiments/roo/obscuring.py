"""Figure 1 of both papers: q_m against the smallest count m, with what an exact audit says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dpopt.shape import Design
from experiments import drawing, style
from experiments.parameters import Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.audit_map import of_theorem_2
from experiments.roo.baselines import RULES, data_sets, rule_sampler, violates
from experiments.verdicts import judged

_CASE = "a rule fails"
Setting = tuple[int, int, float, Any]
"""n, k, epsilon and the rule."""
_FAILING: tuple[list[Setting], ...] = (
    [(20, 3, 0.1, rule) for rule in ("conference", "journal", "exact")],
    [(3, 2, 0.5, rule) for rule in ("journal", "journal-repaired", "exact")],
)
_AUDITED: tuple[Setting, ...] = (
    (24, 3, 0.05, "journal"),
    (30, 2, 0.3, "journal"),
    (25, 3, 0.05, "journal"),
    (25, 3, 0.05, "journal-repaired"),
    (1000, 9, 0.005, "journal"),
    (1000, 9, 0.005, "conference"),
    (1000, 10, 0.01, "conference"),
)


# The smallest count up to which curves of Figure 1 are drawn.
_LONGEST = 40


@configuration
class Config:
    """Figure 1 of the journal and of the conference paper.

    n and k of Figure 1 are the papers'. The papers print no epsilon; we chose these.

    Attributes:
        records: n of the curves of Figure 1.
        categories: k of the curves of Figure 1, one panel each.
        rules: the published recursion of each of these panels: "journal" or "conference".
        epsilons: of Figure 1, one curve each.
    """

    records: int = 1000
    categories: Some[int] = (10, 9)
    rules: Some[Literal["journal", "conference"]] = ("journal", "conference")
    epsilons: Some[float] = (0.05, 0.1, 0.5, 1.0)

    @property
    def panels(self) -> list[tuple[str, list[Setting]]]:
        """Title and settings of each panel."""
        figures = [
            (f"{rule}, Figure 1", [(self.records, k, e, r) for e in self.epsilons for r in both])
            for k, rule in zip(self.categories, self.rules, strict=True)
            for both in [(rule, "exact")]
        ]
        return figures + [(_CASE, settings) for settings in _FAILING]


@experiment("roo-figure-1", config=Config())
def run(config: Config) -> Outcome:
    """Evaluate and audit each rule."""
    shapes: list[dict[str, Cell]] = []
    audits: list[dict[str, Cell]] = []
    for place, (title, settings) in track(list(enumerate(config.panels))):
        for setting in settings:
            sampler, where = rule_sampler(*setting), {"place": place, "panel": title}
            audits.append(where | _audit(sampler))
            last = sampler.setting.largest_minimum
            last = last if title == _CASE else min(last, _LONGEST)
            shapes += [
                where | _named(sampler) | {"m": m, "q": sampler.obscuring(m)}
                for m in range(last + 1)
            ]
    nowhere = dict.fromkeys(("place", "panel"))
    audits += [nowhere | _audit(rule_sampler(*setting)) for setting in _AUDITED]
    tables = {"audits": Table.of(audits), "shapes": Table.of(shapes)}
    return Outcome(tables, of_obscuring(tables))


def _named(sampler: Design) -> dict[str, Cell]:
    names = ("records", "categories", "epsilon", "rule")
    return {name: getattr(sampler.setting, name) for name in names}


def _audit(sampler: Design) -> dict[str, Cell]:
    audit = sampler.audit
    first, second = audit.witness.minima
    return _named(sampler) | {
        "excess_factor": audit.excess_factor,
        "violates": violates(sampler),
        "inequalities": audit.rows,
        "first_minimum": first,
        "second_minimum": second,
        "data_sets": data_sets(sampler),
    }


def of_obscuring(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare what the papers say of their Figures 1, and theorem 2 in the settings below."""
    shapes = tables["shapes"]
    curves = [
        {"epsilon": epsilon, "rule": rule, "rise": max(np.diff(part.column("q")), default=0.0)}
        for place, panel, epsilon, rule in shapes.distinct("place", "panel", "epsilon", "rule")
        if panel != _CASE and rule != "exact"
        for part in [shapes.select(place=place, epsilon=epsilon, rule=rule)]
    ]
    return (
        judged(
            "q_m is non-increasing in m (Figure 1).",
            curves,
            lambda row: row["rise"] <= 0,
            "weights over 2^62, each audited exactly",
            show=("epsilon", "rule"),
        ),
        *of_theorem_2(tables["audits"]),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw q_m: one colour for each epsilon in the figures, one for each rule in the cases."""
    figure, panels = drawing.by_panel(
        outcome.tables["shapes"],
        ["place"],
        "$n = {records}$, $k = {categories}$",
        across="smallest count $m$",
        up="obscuring probability $q_m$",
        height=0.75,
    )
    for axes, part in panels.items():
        first = part.records[0]
        if first["panel"] == _CASE:
            broken = _draw_case(axes, part, outcome.tables["audits"].select(place=first["place"]))
            title = rf"{axes.get_title()}, $\varepsilon = {first['epsilon']:g}$"
            axes.set_title("\n".join([title, *broken]))
        else:
            _draw_figure(axes, part)
            axes.set_title(f"{axes.get_title()}, {first['rule']}'s rule")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(bottom=0.0)
    return drawing.finish(figure, [*panels])


def _draw_figure(axes: Axes, part: Table) -> None:
    """Draw curves up to the first q_m = 0; later values lie on the axis."""
    epsilons = part.distinct("epsilon")
    for colour, epsilon in zip(style.series(len(epsilons)), epsilons, strict=True):
        for rule in part.distinct("rule"):
            q = part.select(epsilon=epsilon, rule=rule).column("q")
            shown = q[: q.index(0.0) + 1] if 0.0 in q else q
            looks: dict[str, Any] = {"label": rf"$\varepsilon = {epsilon:g}$", "linestyle": "-"}
            if rule == "exact":
                looks = {"marker": "o", "markerfacecolor": "none", "linestyle": "none"}
                looks |= {"markeredgewidth": 0.7, "label": "_exact"}
            axes.plot(range(len(shown)), shown, color=colour, clip_on=False, zorder=3, **looks)
    axes.plot([], [], "o", color="grey", markerfacecolor="none", label="exact rule, for each")
    axes.set_xlim(0, max((row["m"] for row in part.records if row["q"] > 0), default=0) + 1)


def _draw_case(axes: Axes, part: Table, audits: Table) -> list[str]:
    """Draw the rules of a case, and return what their audits say."""
    broken = []
    for rule in [name for name in RULES if name in audits.column("rule")]:
        (label, looks), q = RULES[rule], part.select(rule=rule).column("q")
        axes.plot(range(len(q)), q, label=label, clip_on=False, **looks)
        (audit,) = audits.select(rule=rule).records
        if audit["violates"]:
            broken.append(f"{label}: {audit['excess_factor']:.4f} $e^\\varepsilon$")
            ends = sorted({audit["first_minimum"], audit["second_minimum"]})
            cross = drawing.points("limit", zorder=5, label="smallest counts of a violating pair")
            axes.plot(ends, [q[m] for m in ends], **cross)
    axes.margins(0.05)
    return broken
