"""Figure 1 of both papers: q_m against the smallest count m, with what an exact audit says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from dpopt import ParameterError, roo
from dpopt.shape import Design
from experiments import drawing, style
from experiments.registry import Cell, Comparison, Outcome, Table, advance, experiment
from experiments.roo.audit_map import of_theorem_2
from experiments.roo.common import PAPER, RULES, data_sets, require_some, violates
from experiments.verdicts import statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VISIBLE = 1e-9
_FIGURE = "Figure 1"
_CASE = "a rule fails"


@dataclass(frozen=True)
class Config:
    """Figure 1 of the journal and of the conference paper, and settings where a rule fails.

    n and k of Figure 1 are the papers'; the epsilons are ours, as the papers print none.

    Attributes:
        records: n of the curves of Figure 1.
        letters: k of the curves of Figure 1, one panel each.
        rules: the published recursion of each of these panels: "journal" or "conference".
        epsilons: of Figure 1, one curve each.
        longest: curves of Figure 1 are drawn up to this smallest count.
        failing_records: n of the panels that compare rules, one each.
        failing_letters: k of these panels.
        failing_epsilons: epsilon of these panels.
        failing_rules: the rules of each of these panels, as words in one text.
        audited: further audits, each as "n k epsilon rule".
    """

    records: int = 1000
    letters: tuple[int, ...] = (10, 9)
    rules: tuple[str, ...] = ("journal", "conference")
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0)
    longest: int = 40
    failing_records: tuple[int, ...] = (20, 3)
    failing_letters: tuple[int, ...] = (3, 2)
    failing_epsilons: tuple[float, ...] = (0.1, 0.5)
    failing_rules: tuple[str, ...] = (
        "conference journal exact",
        "journal journal-repaired exact",
    )
    audited: tuple[str, ...] = (
        "24 3 0.05 journal",
        "30 2 0.3 journal",
        "25 3 0.05 journal",
        "25 3 0.05 journal-repaired",
        "1000 9 0.005 journal",
        "1000 9 0.005 conference",
        "1000 10 0.01 conference",
    )

    def __post_init__(self) -> None:
        require_some(letters=self.letters, epsilons=self.epsilons)
        if len(self.rules) != len(self.letters) or not set(self.rules) <= {"journal", "conference"}:
            raise ParameterError(
                f"rules is {self.rules}; it must name 'journal' or 'conference' for each of the "
                f"{len(self.letters)} letters."
            )
        failing = (
            self.failing_letters,
            self.failing_epsilons,
            self.failing_rules,
        )
        if {len(values) for values in failing} != {len(self.failing_records)}:
            raise ParameterError(
                f"failing_records is {self.failing_records}; it must have as many values as "
                "failing_letters, failing_epsilons and failing_rules."
            )
        if self.longest < 1:
            raise ParameterError(f"longest is {self.longest}; it must be at least 1.")
        for panel in self.panels:
            for epsilon, rule in product(panel.epsilons, panel.rules):
                _named(panel.records, panel.letters, epsilon, rule)
        for text in self.audited:
            _setting_of(text)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels."""
        figures = zip(self.letters, self.rules, strict=True)
        cases = zip(
            self.failing_records,
            self.failing_letters,
            self.failing_epsilons,
            self.failing_rules,
            strict=True,
        )
        return (
            *(
                Panel(f"{rule}, {_FIGURE}", self.records, k, self.epsilons, (rule, "exact"))
                for k, rule in figures
            ),
            *(Panel(_CASE, n, k, (e,), tuple(rules.split())) for n, k, e, rules in cases),
        )


@dataclass(frozen=True)
class Panel:
    """One panel: n, k, the values of epsilon, and the rules that it shows."""

    title: str
    records: int
    letters: int
    epsilons: tuple[float, ...]
    rules: tuple[str, ...]


def _setting_of(text: str) -> roo.MinCount:
    """Read a setting: n, k, epsilon and the rule.

    Raises:
        ParameterError: for other words.
    """
    try:
        n, k, epsilon, rule = text.split()
        numbers = int(n), int(k), float(epsilon)
    except ValueError:
        raise ParameterError(
            f"audited is {text!r}; it must be n, k, epsilon and a rule, as in '24 3 0.05 journal'."
        ) from None
    return _named(*numbers, rule)


def _named(n: int, k: int, epsilon: float, rule: str) -> roo.MinCount:
    named: Any = rule
    return roo.MinCount(n, k, epsilon, named)


_CONFIG = Config()


@experiment(
    "roo-figure-1",
    PAPER,
    "Figure 1 (journal and conference)",
    "Obscuring probability q_m against the smallest count m: the published recursions and "
    "the exact rule; below, two settings in which a published recursion is not private. n and k "
    "of Figure 1 are the papers'; they print no epsilon, and these are ours.",
    config=_CONFIG,
    effort=("longest",),
    mathematics=(
        r"K(y \mid x) = \frac{q_m}{k} + (1 - q_m) \frac{c_y}{n}, \quad m = \min_y c_y",
        r"q_0 = \frac{1}{1 + \frac{n}{k} (e^\varepsilon - 1)}, \quad "
        r"q_m = \max \left\{ 0, \frac{u_m q_{m-1} - w_m}{v_m}, "
        r"\frac{v' q_{m-1} + w'}{u'} \right\}",
    ),
)
def run(config: Config) -> Outcome:
    """Evaluate and audit each rule."""
    shapes: list[dict[str, Cell]] = []
    audits: list[dict[str, Cell]] = []
    for place, panel in enumerate(config.panels):
        for epsilon, rule in product(panel.epsilons, panel.rules):
            sampler = roo.min_count(panel.records, panel.letters, epsilon, rule)
            audits.append({"place": place, "panel": panel.title, **_audit(sampler)})
            longest = sampler.setting.largest_minimum if panel.title == _CASE else config.longest
            shapes += [
                {"place": place, "panel": panel.title, **row} for row in _shape(sampler, longest)
            ]
        advance()
    for text in config.audited:
        at = _setting_of(text)
        sampler = roo.min_count(at.records, at.letters, at.epsilon, at.rule)
        audits.append({"place": None, "panel": None, **_audit(sampler)})
    advance()
    tables = {
        "audits": Table.of("Exact audit of each rule.", audits),
        "shapes": Table.of("The obscuring probabilities q_m.", shapes),
    }
    return Outcome(tables, tuple(_findings(tables)), of_obscuring(tables))


def _shape(sampler: Design, longest: int) -> list[dict[str, Cell]]:
    setting = sampler.setting
    return [
        {
            "records": setting.records,
            "letters": setting.letters,
            "epsilon": setting.epsilon,
            "rule": sampler.setting.rule,
            "m": m,
            "q": sampler.obscuring(m),
        }
        for m in range(min(setting.largest_minimum, longest) + 1)
    ]


def _audit(sampler: Design) -> dict[str, Cell]:
    setting, audit = sampler.setting, sampler.audit
    return {
        "records": setting.records,
        "letters": setting.letters,
        "epsilon": setting.epsilon,
        "rule": sampler.setting.rule,
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
        f"{bad} of the {shown} published rules violate at the n and k of Figure 1, epsilons ours."
    )
    apart = [
        abs(a["q"] - b["q"])
        for part in _panels(tables["shapes"])
        if part.column("panel")[0] != _CASE
        for a, b in _pairs(part)
    ]
    if apart:
        found.append(
            f"There the exact rule differs from them by at most {max(apart):.2g} in any q_m."
        )
    return found + list(_not_below(tables["shapes"]))


def _not_below(shapes: Table) -> Iterable[str]:
    """Say where the exact rule obscures more than a rule that is not private."""
    for part in _panels(shapes):
        for other, exact in _pairs(part):
            if exact["q"] > other["q"] + _VISIBLE:
                yield (
                    f"n = {other['records']}, k = {other['letters']}, epsilon = "
                    f"{other['epsilon']}: the exact rule's q_{other['m']} is "
                    f"{exact['q']:.3f}, that of the rule {other['rule']!r} {other['q']:.3f}."
                )


def _panels(table: Table) -> list[Table]:
    """Return the rows of each panel."""
    places = (place for place in dict.fromkeys(table.column("place")) if place is not None)
    return [table.select(place=place) for place in places]


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
    curves: dict[tuple[int, float, str], list[float]] = {}
    for row in shapes:
        if row["panel"] != _CASE:
            curves.setdefault((row["place"], row["epsilon"], row["rule"]), []).append(row["q"])
    published = {key: values for key, values in curves.items() if key[2] != "exact"}
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


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw q_m: one colour for each epsilon in the figures, one for each rule in the cases."""
    parts = _panels(outcome.tables["shapes"])
    figure, panels = drawing.panels(len(parts), across="smallest count $m$", height=0.75)
    for axes, part in zip(panels, parts, strict=True):
        at = part.records[0]
        title = f"$n = {at['records']}$, $k = {at['letters']}$"
        if at["panel"] == _CASE:
            checks = outcome.tables["audits"].select(place=at["place"]).records
            _draw_case(axes, part, checks)
            title += rf", $\varepsilon = {at['epsilon']:g}$"
        else:
            _draw_figure(axes, part)
            title += f", {at['rule']}'s rule"
        axes.set_title(title)
        axes.set_ylabel("obscuring probability $q_m$")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper right")
    style.letter(panels)
    return figure


def _draw_figure(axes: Axes, part: Table) -> None:
    epsilons = list(dict.fromkeys(part.column("epsilon")))
    shown = max(part.column("m"))
    last = max((row["m"] for row in part.records if row["q"] > 0), default=0) + 1
    for colour, epsilon in zip(style.series(len(epsilons)), epsilons, strict=True):
        for rule in dict.fromkeys(part.column("rule")):
            curve = part.select(epsilon=epsilon, rule=rule).records
            # Up to the first q_m = 0: the rest lies on the axis.
            zero = next((row["m"] for row in curve if row["q"] == 0), shown)
            at = [(row["m"], row["q"]) for row in curve if row["m"] <= zero]
            looks: dict[str, Any] = {"label": rf"$\varepsilon = {epsilon:g}$", "linestyle": "-"}
            if rule == "exact":
                looks = {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 0.7}
                looks |= {"linestyle": "none", "label": "_exact"}
            axes.plot(*zip(*at, strict=True), color=colour, clip_on=False, zorder=3, **looks)
    axes.plot([], [], "o", color="grey", markerfacecolor="none", label="exact rule")
    # Room for the legend: to the right of curves that fall to 0, farther from others.
    high = max(part.column("q"))
    late = max((row["q"] for row in part.records if row["m"] >= 0.7 * last), default=0.0)
    axes.set_xlim(0, (1.55 if late < 0.45 * high else 2.4) * last)
    axes.set_ylim(bottom=0.0)


def _draw_case(axes: Axes, part: Table, checks: list[dict[str, Any]]) -> None:
    by_rule = {str(check["rule"]): check for check in checks}
    for rule, (label, looks) in RULES.items():
        if rule not in by_rule:
            continue
        check, curve = by_rule[rule], part.select(rule=rule)
        if check["violates"]:
            label += rf": {check['excess_factor']:.4f} $e^\varepsilon$"
        axes.plot(curve.column("m"), curve.column("q"), label=label, **looks)
        if check["violates"]:
            values = dict(zip(curve.column("m"), curve.column("q"), strict=True))
            ends = sorted({check["first_minimum"], check["second_minimum"]})
            axes.plot(
                ends,
                [values[end] for end in ends],
                "x",
                color=style.role("limit").colour,
                markersize=6,
                markeredgewidth=1.2,
                zorder=5,
            )
    if any(check["violates"] for check in checks):
        cross = style.role("limit").colour
        axes.plot([], [], "x", color=cross, label="smallest counts of a violating pair")
    axes.margins(0.05)
    # Room for the legend, above the curves.
    axes.set_ylim(0.0, 1.25 * (1 + len(checks) / 5) * max(part.column("q")))
    style.tell_hidden(axes)
