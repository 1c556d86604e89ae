"""The recursions for q_m against the linear programs that they solve, by two ways to a solver."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import dpopt
from dpopt import roo
from dpopt.roo.setting import UNIT
from experiments import drawing
from experiments.parameters import Probability, Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.baselines import RULES
from experiments.verdicts import judged

_SOLVED = {
    "journal-repaired": ("journal's program", "variant"),
    "exact": ("exact program", "optimum"),
}
_BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "highs": ("HiGHS", {"linestyle": "-"}),
    "cvxpy": ("cvxpy", {"linestyle": "none", "markerfacecolor": "none", "markersize": 7.0}),
}
# n, k and epsilon.
_Setting = tuple[int, int, float]
# Below this a difference of doubles is that of rounding; the picture shows it there.
_LEAST = 1e-17


@configuration
class Config:
    """Grid of settings, and those that cvxpy writes out too.

    Attributes:
        records: n.
        categories: k, each with every n.
        epsilons: each with every n and k.
        cvxpy_records: those of the n whose programs are solved through cvxpy too.
        tolerance: differences up to this count as none.
    """

    records: Some[int] = (3, 7, 12, 30, 61, 101, 200)
    categories: Some[int] = (2, 3, 10)
    epsilons: Some[float] = (0.05, 0.2, 0.5, 1.0)
    cvxpy_records: tuple[int, ...] = (12,)
    tolerance: Probability = 1e-9


@experiment(
    "roo-program",
    config=Config(
        records=(3, 5, 7, 12, 20, 30, 61, 101, 200, 500, 1000),
        categories=(2, 3, 5, 10),
        epsilons=(0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        cvxpy_records=(12, 61, 200),
    ),
    quick=Config(),
)
def run(config: Config) -> Outcome:
    """Solve both programs at each setting, and compare them with the recursions."""
    grid = list(product(config.records, config.categories, config.epsilons))
    rows = [
        _compared(setting, rule, backend)
        for setting in track(grid)
        for rule in _SOLVED
        for backend in (("highs", "cvxpy") if setting[0] in config.cvxpy_records else ("highs",))
    ]
    n, k, epsilon = shown = (26, 3, 0.05)
    curves: list[dict[str, Cell]] = [
        {"records": n, "categories": k, "epsilon": epsilon, "rule": rule, "m": m}
        | {"recursion": float(recursion), "program": float(program)}
        for rule in _SOLVED
        for m, (recursion, program) in enumerate(
            zip(_q(shown, rule), _optimum(shown, rule, "highs")[0], strict=True)
        )
    ]
    tables = {
        "differences": Table.of(rows),
        "curves": Table.of(curves),
        "tolerance": Table.of([{"tolerance": config.tolerance}]),
    }
    return Outcome(tables, of_programs(tables))


def _q(setting: _Setting, rule: str) -> np.ndarray:
    """Return q_0, ..., q_M of a recursion."""
    limits = roo.RooSetting(*setting)
    weights = np.array([weight / UNIT for weight in roo.rule_weights(limits, rule)])
    return np.pad(weights, (0, limits.largest_minimum + 1 - weights.size))


def _optimum(setting: _Setting, rule: Any, backend: str) -> tuple[np.ndarray, float]:  # noqa: ANN401
    problem = dpopt.RevealOrObscure(*setting, rule).problem()
    solution = dpopt.solve(problem, backend=backend)
    return np.asarray(solution["q"], dtype=float), float(solution.objective)


def _compared(setting: _Setting, rule: str, backend: str) -> dict[str, Cell]:
    optimum, value = _optimum(setting, rule, backend)
    q = _q(setting, rule)
    repaired = rule == "journal-repaired"
    return {
        **dict(zip(("records", "categories", "epsilon"), setting, strict=True)),
        "rule": rule,
        "backend": backend,
        "in_q": float(np.abs(optimum - q).max()),
        "in_value": abs(value - float(q.sum())),
        # What the recursion as printed lacks, at the last m; None for the exact rule.
        "printed_lacks": float((optimum - _q(setting, "journal")).max()) if repaired else None,
    }


def of_programs(tables: dict[str, Table]) -> tuple[Comparison, ...]:
    """Decide whether the recursions are the least q_m that satisfy the constraints."""
    (limit,) = tables["tolerance"].column("tolerance")
    parts = {rule: tables["differences"].select(rule=rule).records for rule in _SOLVED}
    certificate, where = "HiGHS, and cvxpy for some n; double precision", ("records", "categories")
    return (
        judged(
            "The recursion satisfies the conditions (68) to (70) and (72) to (74) (section IV, "
            "(37)).",
            [row for row in parts["journal-repaired"] if row["backend"] == "highs"],
            lambda row: row["printed_lacks"] <= limit,
            certificate,
            show=(*where, "epsilon", "printed_lacks"),
            worst=lambda row: row["printed_lacks"],
        ),
        *(
            judged(
                f"Ours: the {name} has the recursion {rule!r} as its optimum.",
                parts[rule],
                lambda row: max(row["in_q"], row["in_value"]) <= limit,
                certificate,
                show=(*where, "in_q", "in_value"),
                worst=lambda row: max(row["in_q"], row["in_value"]),
                name=f"optimum, {rule}",
            )
            for rule, (name, _) in _SOLVED.items()
        ),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the differences against n with the tolerance, and q_m of both for one setting."""
    figure, (left, right) = drawing.panels(2, height=0.9)
    table, curves = outcome.tables["differences"], outcome.tables["curves"]
    (limit,) = outcome.tables["tolerance"].column("tolerance")
    top = limit
    for rule, (name, role) in _SOLVED.items():
        for backend, (way, looks) in _BACKENDS.items():
            worst: dict[int, float] = {}
            for row in table.select(rule=rule, backend=backend).records:
                difference = max(row["in_q"], row["in_value"], _LEAST)
                worst[row["records"]] = max(difference, worst.get(row["records"], 0.0))
            if worst:
                look = drawing.line(role, **looks, label=f"{name}, {way}")
                left.plot(*zip(*sorted(worst.items()), strict=True), **look)
                top = max(top, *worst.values())
        label, line = RULES[rule]
        opened = drawing.points(role, markerfacecolor="none", markersize=5.0)
        shown = {
            "recursion": (label, line | {"marker": None, "linestyle": "-"}),
            "program": (f"{name}, optimum", opened),
        }
        drawing.draw_columns(right, curves.select(rule=rule), "m", shown)
    left.axhline(limit, label="tolerance", **drawing.beside("limit"))
    left.set(
        xscale="log",
        yscale="log",
        xlabel="records $n$",
        ylabel="largest difference (probability)",
        title="recursion and program",
    )
    left.margins(0.08)
    left.set_ylim(_LEAST / 5, 10 * top)
    title = r"$n = {records}$, $k = {categories}$, $\varepsilon = {epsilon:g}$"
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.margins(0.06)
    right.set(
        xlabel="smallest count $m$",
        ylabel="obscuring probability $q_m$",
        title=title.format(**curves.records[0]),
    )
    return drawing.finish(figure, [left, right])
