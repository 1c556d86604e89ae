"""The recursions for q_m against the linear programs that they solve, by two ways to a solver."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import dpopt
from dpopt import roo
from experiments import drawing
from experiments.parameters import Probability, Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.baselines import RULES
from experiments.verdicts import judged

_SOLVED = {
    "journal-repaired": ("journal's program", "variant"),
    "exact": ("exact program", "optimum"),
}
_UNIT = 1 << 62
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
        _compared(roo.RooSetting(n, k, epsilon), rule, backend)
        for n, k, epsilon in track(grid)
        for rule in _SOLVED
        for backend in (("highs", "cvxpy") if n in config.cvxpy_records else ("highs",))
    ]
    shown = roo.RooSetting(26, 3, 0.05)
    curves: list[dict[str, Cell]] = [
        {
            "records": shown.records,
            "categories": shown.categories,
            "epsilon": shown.epsilon,
            "rule": rule,
            "m": m,
            "recursion": float(recursion),
            "program": float(program),
        }
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


def _q(setting: roo.RooSetting, rule: str) -> np.ndarray:
    """Return q_0, ..., q_M of a recursion."""
    weights = roo.rule_weights(setting, rule)
    q = np.zeros(setting.largest_minimum + 1)
    q[: len(weights)] = [weight / _UNIT for weight in weights]
    return q


def _optimum(setting: roo.RooSetting, rule: str, backend: str) -> tuple[np.ndarray, float]:
    named: Any = rule
    rules = dpopt.RevealOrObscure(setting.records, setting.categories, setting.epsilon, named)
    solution = dpopt.solve(rules.problem(), backend=backend)
    return np.asarray(solution["q"], dtype=float), float(solution.objective)


def _compared(setting: roo.RooSetting, rule: str, backend: str) -> dict[str, Cell]:
    found, value = _optimum(setting, rule, backend)
    q = _q(setting, rule)
    printed = _q(setting, "journal") if rule == "journal-repaired" else None
    return {
        "records": setting.records,
        "categories": setting.categories,
        "epsilon": setting.epsilon,
        "rule": rule,
        "backend": backend,
        "in_q": float(np.abs(found - q).max()),
        "in_value": abs(value - float(q.sum())),
        # What the recursion as printed lacks, at the last m; None for the exact rule.
        "printed_lacks": None if printed is None else float((found - printed).max()),
    }


def _worst(rows: list[dict[str, Any]]) -> float:
    return max((max(row["in_q"], row["in_value"]) for row in rows), default=0.0)


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
    table = outcome.tables["differences"]
    for rule, (name, role) in _SOLVED.items():
        for backend in table.distinct("backend"):
            part = table.select(rule=rule, backend=backend).records
            sizes = sorted({row["records"] for row in part})
            worst = [_worst([row for row in part if row["records"] == n]) for n in sizes]
            looks = drawing.line(role, linestyle="-" if backend == "highs" else "none")
            if backend != "highs":
                looks |= {"markerfacecolor": "none", "markersize": 7.0}
            way = "HiGHS" if backend == "highs" else backend
            left.plot(sizes, np.maximum(worst, _LEAST), label=f"{name}, {way}", **looks)
    (limit,) = outcome.tables["tolerance"].column("tolerance")
    left.axhline(limit, label="tolerance", **drawing.beside("limit"))
    left.set(xscale="log", yscale="log")
    left.margins(0.08)
    left.set_ylim(
        _LEAST / 5, 10 * max(limit, *(float(np.max(line.get_ydata())) for line in left.lines))
    )
    left.set_xlabel("records $n$")
    left.set_ylabel("largest difference (probability)")
    left.set_title("recursion and program")
    curves = outcome.tables["curves"]
    at = curves.records[0]
    for rule, (name, role) in _SOLVED.items():
        part = curves.select(rule=rule)
        label, looks = RULES[rule]
        looks = looks | {"marker": None, "linestyle": "-"}
        right.plot(part.column("m"), part.column("recursion"), label=label, **looks)
        points = drawing.line(role, linestyle="none", markerfacecolor="none", markersize=5.0)
        right.plot(part.column("m"), part.column("program"), label=f"{name}, optimum", **points)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.margins(0.06)
    right.set_xlabel("smallest count $m$")
    right.set_ylabel("obscuring probability $q_m$")
    right.set_title(
        rf"$n = {at['records']}$, $k = {at['categories']}$, $\varepsilon = {at['epsilon']:g}$"
    )
    return drawing.finish(figure, [left, right])
