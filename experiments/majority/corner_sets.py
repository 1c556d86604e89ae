"""Lemma 5.1: the program with a constraint for every multiset of corners, and the reduced one.

The paper solves its program over all multisets of corners, O(K^3) for Delta = 0 and O(K^7) else.
Here both programs are solved: the paper's, with every constraint, and the reduced one. The latter
adds the violated constraints among O(K^2) or O(K^4) multisets. Both should have the same optimum.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpopt
from dpopt import majority, solve
from dpopt.majority.voters import full_gamma
from experiments import drawing, style
from experiments.majority.full_set import check_full, full_problem, full_size
from experiments.majority.voters import settings_within
from experiments.parameters import Positive, Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import judged

# In words, for the figure, and the orders of the two sets.
_CASES = {
    "pure": ("Delta = 0", r"$\Delta = 0$", "O(K^3)", "O(K^2)"),
    "approximate": ("Delta > 0", r"$\Delta > 0$", "O(K^7)", "O(K^4)"),
}
# What two solutions of one program may differ by, relative to an optimum of at most 1/2.
_ALIKE = 1e-9
# Smaller differences of doubles near 1/2 mean nothing, and are drawn here.
_LEAST = 2.0**-54


@configuration
class Config:
    """Parameters of the comparison; the paper prints no numbers.

    Attributes:
        voters: each K for Delta = 0, odd.
        voters_approximate: each K for Delta > 0, odd; may be empty.
        epsilon: of each voter, in nats.
        voter_delta: Delta of each voter where it is above 0.
        allowance: each m, at least 1; an m above K is skipped. The target is
            (m epsilon, m Delta).
    """

    voters: Some[int] = (3, 5, 7, 11, 15, 21, 27, 35)
    voters_approximate: tuple[int, ...] = (3, 5, 7, 9)
    epsilon: float = 0.1
    voter_delta: Positive = 1e-5
    allowance: Some[float] = (1.0, 2.0, 3.0)

    @property
    def settings(self) -> list[tuple[str, dpopt.Majority]]:
        """The case and the setting of every program."""
        sizes = [("pure", k, 0.0) for k in self.voters]
        sizes += [("approximate", k, self.voter_delta) for k in self.voters_approximate]
        return [
            (case, setting)
            for case, k, shift in sizes
            for setting in settings_within(k, self.epsilon, self.allowance, shift)
        ]


@experiment(
    "majority-corner-sets",
    config=Config(
        voters=(3, 5, 7, 11, 15, 21, 27, 35, 45, 55, 71), voters_approximate=(3, 5, 7, 9, 11)
    ),
    quick=Config(),
)
def run(config: Config) -> Outcome:
    """Solve both programs in every setting."""
    table = Table.of([_record(*each) for each in track(config.settings)])
    comparisons = (_comparison(table.select(case=case)) for case in table.distinct("case"))
    return Outcome({"programs": table}, tuple(comparisons))


def _record(case: str, setting: dpopt.Majority) -> dict[str, Cell]:
    weights = majority.surrogate_weights(setting.voters).values
    whole = solve(full_problem(setting, weights))
    few = solve(majority.gamma_problem(setting, weights))
    check = check_full(setting, full_gamma(np.clip(few["gamma"], 0.0, 1.0)))
    return {
        "case": case,
        "K": setting.voters,
        "m": setting.allowance,
        "epsilon": setting.epsilon,
        "Delta": setting.voter_delta,
        "paper": full_size(setting),
        "reduced": majority.reduced_size(setting),
        "rows": few.rows_used,
        "optimum_paper": whole.objective,
        "optimum_reduced": few.objective,
        "difference": abs(whole.objective - few.objective),
        "gamma_difference": float(np.abs(whole["gamma"] - few["gamma"]).max()),
        "excess": check.excess,
        "rounding": check.rounding,
    }


def _comparison(programs: Table) -> Comparison:
    """Decide lemma 5.1 in one case: its set suffices, and so does a smaller one."""
    words, _, paper, reduced = _CASES[programs.column("case")[0]]
    return judged(
        f"{paper} multisets of corners decide privacy (lemma 5.1).",
        programs.records,
        lambda row: row["optimum_paper"] <= row["optimum_reduced"] + _ALIKE,
        "both programs solved, and every multiset of the paper's set checked at the reduced "
        "optimum, in double precision; the reduction is proved",
        show=("K", "paper", "reduced", "rows"),
        worst=lambda row: row["paper"],
        said=f"{words}: {reduced} multisets have the same optima to "
        f"{max(programs.column('difference')):.3g}, and only the rows were generated.",
        more=all(
            row["excess"] <= _ALIKE + row["rounding"] and row["difference"] <= _ALIKE
            for row in programs.records
        ),
        more_if="a smaller set has the same optimum, to 1e-9, and its gamma is feasible",
        name=f"lemma 5.1, {words}",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the rows of each program for each case, and the difference of the optima."""
    table = outcome.tables["programs"]
    cases = table.distinct("case")
    figure, panels = drawing.panels(len(cases) + 1, len(cases) + 1, height=1.1)
    for axes, case in zip(panels, cases, strict=False):
        _draw_rows(axes, table.select(case=case))
        axes.set(title=f"rows, {_CASES[case][1]}", ylabel="number")
    _draw_differences(panels[-1], table)
    return drawing.finish(figure, panels)


def _draw_rows(axes: Axes, table: Table) -> None:
    sizes = sorted(table.distinct("K"))
    dashed = drawing.line("optimum", linestyle="--", markerfacecolor="white")
    for column, name, look in (
        ("paper", "multisets, the paper's set", drawing.line("paper")),
        ("reduced", "multisets, reduced set", dashed),
        ("rows", "rows written of the reduced set, most of any $m$", drawing.line("optimum")),
    ):
        counts = [max(table.select(K=k).column(column)) for k in sizes]
        axes.plot(sizes, counts, label=name, **look)
    axes.set_yscale("log")
    axes.margins(0.08)
    _name_sizes(axes, sizes)


def _draw_differences(axes: Axes, table: Table) -> None:
    cases = table.distinct("case")
    for case, colour, marker in zip(cases, style.series(len(cases)), "os", strict=False):
        part = table.select(case=case)
        gaps = np.maximum(part.column("difference"), _LEAST)
        label = f"difference, {_CASES[case][1]}, each $m$"
        axes.plot(part.column("K"), gaps, marker, label=label, color=colour, mfc="none")
    axes.axhline(_ALIKE, **drawing.beside("limit"), label="tolerance of the verdict")
    axes.set(yscale="log", ylim=(_LEAST / 8.0, 20.0 * _ALIKE))
    axes.margins(x=0.08)
    axes.set(ylabel="difference of optima", title=r"optima, from $2^{-54}$ up")
    _name_sizes(axes, sorted(table.distinct("K")))


def _name_sizes(axes: Axes, sizes: list[int]) -> None:
    axes.set_xlabel("number of voters $K$")
    if len(sizes) <= 4:
        axes.set_xticks(sizes)
    else:
        axes.locator_params(axis="x", nbins=5, integer=True)
