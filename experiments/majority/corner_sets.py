"""Lemma 5.1: the program with a constraint for every multiset of corners, and the reduced one.

The paper solves its program over all multisets of corners, O(K^3) for Delta = 0 and O(K^7) else.
Here both programs are solved: the paper's, with every constraint, and the reduced one. The latter
adds the violated constraints among O(K^2) or O(K^4) multisets. Both should have the same optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from experiments.verdicts import short, statement

_CASES = {"pure": r"$\Delta = 0$", "approximate": r"$\Delta > 0$"}
_PLACES = {"pure": "Delta = 0", "approximate": "Delta > 0"}
_ORDERS = {"pure": ("O(K^3)", "O(K^2)"), "approximate": ("O(K^7)", "O(K^4)")}
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

    def settings(self) -> list[tuple[str, dpopt.Majority]]:
        """Return the case and the setting of every program."""
        return [
            (case, setting)
            for case, sizes, shift in (
                ("pure", self.voters, 0.0),
                ("approximate", self.voters_approximate, self.voter_delta),
            )
            for k in sizes
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
    records = [_record(*each) for each in track(config.settings())]
    tables = {"programs": Table.of(records)}
    return Outcome(tables, tuple(_comparisons(records)))


def _record(case: str, setting: dpopt.Majority) -> dict[str, Cell]:
    k = setting.voters
    weights = majority.surrogate_weights(setting.voters).values
    whole = solve(full_problem(setting, weights))
    few = solve(majority.gamma_problem(setting, weights))
    check = check_full(setting, full_gamma(np.clip(few["gamma"], 0.0, 1.0)))
    return {
        "case": case,
        "K": k,
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


def _comparisons(records: Sequence[Mapping[str, Any]]) -> Iterator[Comparison]:
    """Decide lemma 5.1 in each case: its set suffices, and so does a smaller one."""
    for case, words in _PLACES.items():
        part = [record for record in records if record["case"] == case]
        if not part:
            continue
        paper, reduced = _ORDERS[case]
        largest = max(part, key=lambda record: record["paper"])
        gap = max(record["difference"] for record in part)
        private = all(record["excess"] <= _ALIKE + record["rounding"] for record in part)
        yield statement(
            f"{paper} multisets of corners decide privacy (lemma 5.1).",
            f"{words}: in {len(part)} programs the optima over all of them and over {reduced} of "
            f"them differ by at most {short(gap)}; at K = {largest['K']} the paper writes "
            f"{largest['paper']:,} constraints, {largest['reduced']:,} multisets suffice, and "
            f"{largest['rows']} constraints were generated.",
            "both programs solved, and every multiset of the paper's set checked at the reduced "
            "optimum, in double precision; the reduction is proved",
            holds=all(
                record["optimum_paper"] <= record["optimum_reduced"] + _ALIKE for record in part
            ),
            more=private and gap <= _ALIKE,
            more_if="a smaller set has the same optimum, to 1e-9, and its gamma is feasible",
            name=f"lemma 5.1, {words}",
        )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the rows of each program for each case, and the difference of the optima."""
    table = outcome.tables["programs"]
    cases = [case for case in _CASES if table.select(case=case).rows]
    figure, panels = drawing.panels(len(cases) + 1, len(cases) + 1, height=1.1)
    for panel, case in zip(panels, cases, strict=False):
        _draw_rows(panel, table.select(case=case))
        panel.set_title(f"rows, {_CASES[case]}")
    for panel in panels[: len(cases)]:
        panel.set_ylabel("number")
    _draw_differences(panels[-1], table, cases)
    return drawing.finish(figure, panels)


def _draw_rows(axes: Axes, table: Table) -> None:
    sizes = sorted(set(table.column("K")))
    parts = [table.select(K=k) for k in sizes]
    for column, name, look in (
        ("paper", "multisets, the paper's set", drawing.line("paper")),
        (
            "reduced",
            "multisets, reduced set",
            drawing.line("optimum", linestyle="--", markerfacecolor="white"),
        ),
        ("rows", "rows written of the reduced set, most of any $m$", drawing.line("optimum")),
    ):
        counts = [max(part.column(column)) for part in parts]
        axes.plot(sizes, counts, label=name, **look)
    axes.set_yscale("log")
    axes.margins(0.08)
    _name_sizes(axes, sizes)


def _draw_differences(axes: Axes, table: Table, cases: Sequence[str]) -> None:
    for case, colour, marker in zip(cases, style.series(len(cases)), "os", strict=False):
        part = table.select(case=case)
        gaps = [max(gap, _LEAST) for gap in part.column("difference")]
        look = {"color": colour, "markerfacecolor": "none"}
        label = f"difference, {_CASES[case]}, each $m$"
        axes.plot(part.column("K"), gaps, marker, label=label, **look)
    axes.axhline(_ALIKE, **drawing.beside("limit"), label="tolerance of the verdict")
    axes.set(yscale="log", ylim=(_LEAST / 8.0, 20.0 * _ALIKE))
    axes.margins(x=0.08)
    axes.set(ylabel="difference of optima", title=r"optima, from $2^{-54}$ up")
    _name_sizes(axes, sorted(set(table.column("K"))))


def _name_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set_xlabel("number of voters $K$")
    if len(sizes) <= 4:
        axes.set_xticks(list(sizes))
    else:
        axes.locator_params(axis="x", nbins=5, integer=True)
