"""Where the published recursions are private: exact audits over a grid of settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from experiments import drawing
from experiments.parameters import Count, Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.baselines import VIOLATES, data_sets, rule_sampler, violates
from experiments.roo.published import journal_is_private
from experiments.verdicts import judged

_AUDIT = "exact integers, every inequality of the rule; witness in table audits"

_AUDITED = ("journal", "conference", "journal-repaired", "exact")
_DRAWN = ("journal", "conference")
# Least and largest excess that have colours of their own.
_EXCESS = (1e-5, 1.0)


@configuration
class Config:
    """Grid of k, epsilon, M = floor(n / k) and the remainder of n.

    Attributes:
        categories: k.
        epsilons: combined with every k.
        minima: M; n is k M plus a remainder.
    """

    categories: Some[int] = (2, 3, 10)
    epsilons: Some[float] = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    minima: Some[Count] = (1, 2, 3, 5, 10, 20, 50, 100)

    def records(self, categories: int) -> tuple[int, ...]:
        """Return n for each M and each remainder: 0, 1 and k - 1."""
        k = categories
        return tuple(k * minimum + r for minimum in self.minima for r in sorted({0, 1, k - 1}))


@experiment(
    "roo-audit-map",
    config=Config(
        categories=(2, 3, 10, 50),
        epsilons=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
        minima=(1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100, 200),
    ),
    quick=Config(),
)
def run(config: Config) -> Outcome:
    """Audit each rule at each setting."""
    rows = [
        _audit(n, k, epsilon, rule)
        for k, epsilon in track(list(product(config.categories, config.epsilons)))
        for n in config.records(k)
        for rule in _AUDITED
    ]
    audits = Table.of(rows)
    names = ("rule", "categories", "records", "epsilon", "excess_factor", "violates", "data_sets")
    extremes: list[dict[str, Cell]] = []
    for rule, k in product(_AUDITED, config.categories):
        part = audits.select(rule=rule, categories=k).records
        worst = max(part, key=lambda row: row["excess_factor"])
        counted = {"violations": sum(row["violates"] for row in part), "settings": len(part)}
        extremes.append({name: worst[name] for name in names} | counted)
    tables = {"worst": Table.of(extremes), "audits": audits}
    return Outcome(tables, (*of_theorem_2(audits), repaired_theorem_2(audits)))


def _audit(n: int, k: int, epsilon: float, rule: str) -> dict[str, Cell]:
    sampler = rule_sampler(n, k, epsilon, rule)
    return {
        "categories": k,
        "epsilon": epsilon,
        "records": n,
        "largest_minimum": n // k,
        "share": n * epsilon / k,
        "rule": rule,
        "excess_factor": sampler.audit.excess_factor,
        "violates": violates(sampler),
        "private": sampler.private,
        "inequalities": sampler.audit.rows,
        # Lemma 2 does not cover m = M above n / k - 1 with w_M < 0.
        "beyond_lemma_2": n % k != 0 and math.expm1(epsilon) * (n // k) < 1,
        # Theorem 2, repaired: a condition that needs no audit.
        "condition": journal_is_private(sampler.setting),
        "data_sets": data_sets(sampler),
    }


def of_theorem_2(audits: Table) -> tuple[Comparison, ...]:
    """Decide whether DS-ROO is epsilon-DP, for each paper's recursion."""
    return tuple(
        judged(
            f"DS-ROO is epsilon-DP (theorem 2, {rule}).",
            audits.select(rule=rule).records,
            lambda row: not row["violates"],
            _AUDIT,
            show=("records", "categories", "epsilon", "excess_factor"),
            worst=lambda row: row["excess_factor"],
            name=f"theorem 2, {rule}",
        )
        for rule in ("conference", "journal")
    )


def repaired_theorem_2(audits: Table) -> Comparison:
    """Decide theorem 2 with its condition, in both directions, and for the repaired recursion."""
    journal, repaired = (audits.select(rule=r).records for r in ("journal", "journal-repaired"))
    # What is asked of each row: the repaired recursion is private, and so is the journal's where
    # lemma 2 covers it.
    return judged(
        "Ours: the journal's DS-ROO is epsilon-DP if and only if k divides n, or e^epsilon >= "
        "1 + 1/M, or q_M >= t_M; with q_M raised to t_M it always is (theorem 2, repaired).",
        [*journal, *repaired],
        lambda row: (
            row["private"]
            if row["rule"] == "journal-repaired"
            else row["private"] == row["condition"] and (row["private"] or row["beyond_lemma_2"])
        ),
        "proved (docs/theorems/journal.md); exact integers, every inequality of the rule",
        show=("records", "categories", "epsilon"),
        said=f"{sum(row['condition'] for row in journal)} of {len(journal)} settings of the "
        "journal's recursion satisfy the condition.",
        name="theorem 2, repaired",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw, for each published rule and k, the largest excess over the remainders of n."""
    rows = [row for row in outcome.tables["audits"].records if row["rule"] in _DRAWN]
    figure, panels = drawing.by_panel(
        Table.of(rows),
        ("categories", "rule"),
        "{rule}'s rule, $k = {categories}$",
        len(_DRAWN),
        r"$M = \lfloor n / k \rfloor$",
        r"$\varepsilon$ (nats)",
        height=0.5,
        sharex=True,
        sharey=True,
    )
    scale = LogNorm(*_EXCESS)
    images = [_draw(axes, part, scale) for axes, part in panels.items()]
    label = r"worst ratio / $e^\varepsilon$, minus 1; white: private"
    figure.colorbar(
        images[0],
        ax=[*panels],
        label=label,
        extend="both",
        location="bottom",
        aspect=40,
        shrink=0.8,
    )
    return drawing.finish(figure, [*panels])


def _draw(axes: Axes, part: Table, scale: LogNorm) -> QuadMesh:
    """Draw one map, and the line e^epsilon = 1 + 1/M."""
    minima, epsilons = (sorted(part.distinct(name)) for name in ("largest_minimum", "epsilon"))
    values = np.full((len(epsilons), len(minima)), np.nan)
    for row in part.records:
        if row["excess_factor"] > VIOLATES:
            cell = epsilons.index(row["epsilon"]), minima.index(row["largest_minimum"])
            values[cell] = np.fmax(values[cell], row["excess_factor"] - 1)
    x, y = _edges(minima), _edges(epsilons)
    image = axes.pcolormesh(x, y, values, cmap="YlOrRd", norm=scale)
    at = np.geomspace(x[0], x[-1], 200)
    line = np.log1p(1 / at)
    line[(line < y[0]) | (line > y[-1])] = np.nan
    axes.plot(at, line, label=r"$e^\varepsilon = 1 + 1/M$", **drawing.beside("limit"))
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    axes.grid(visible=False)
    for axis, listed in ((axes.xaxis, minima), (axes.yaxis, epsilons)):
        shown = listed[:: math.ceil(len(listed) / 8)]
        axis.set_ticks(shown, [f"{value:g}" for value in shown])
        axis.set_ticks([], minor=True)
    return image


def _edges(values: Sequence[float]) -> np.ndarray:
    """Return the borders of cells around values, half-way in logarithm."""
    logs = np.log(np.array(values, dtype=float))
    if logs.size == 1:
        return np.exp(logs[0] + np.array([-0.4, 0.4]))
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp([2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]])
