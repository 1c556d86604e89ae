"""What the benchmark of DaRRM's solve says: findings in sentences, and its figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.benchmarks.memory import DONE
from experiments.registry import Cell, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, CERTIFIED = "dpopt.solve", "majority.design, certified"
CVXPY, LINPROG, ONE_BY_ONE = "cvxpy, all rows", "linprog, all rows", "one law at a time, linprog"
MEASURED, EXTRAPOLATED = "measured", "extrapolated"
AGREEMENT = 1e-6
"""Relative difference of optima that the solvers' own tolerances explain."""

_LOOKS = {
    OURS: ("#2f5d9b", "o"),
    CERTIFIED: ("#6fa0d8", "s"),
    CVXPY: ("#c1432e", "^"),
    LINPROG: ("#d98a29", "v"),
    ONE_BY_ONE: ("#555555", "D"),
}


def findings(tables: dict[str, Table]) -> Iterator[str]:
    """Say of each contender how long it took at each size, and whether the optima agree."""
    for name, table in tables.items():
        sizes = zip(table.column("mechanisms"), table.column("mechanism_delta"), strict=True)
        for k, shift in dict.fromkeys(sizes):
            part = table.select(mechanisms=k, mechanism_delta=shift)
            at = f"K = {k}, Delta = {shift:g}"
            records = [dict(zip(part.columns, row, strict=True)) for row in part.rows]
            own = records[0]
            yield from (_sentence(at, record, own) for record in records)
            if name == "times":
                yield _agreement(at, records)


def _sentence(at: str, record: dict[str, Cell], own: dict[str, Cell]) -> str:
    who = f"{at}: {record['contender']}"
    seconds, peak = record["median_seconds"], record["peak_mib"]
    if record["outcome"] != DONE or not isinstance(seconds, float):
        return f"{who}: {record['outcome']}."
    memory = f", {_short(peak)} MiB" if isinstance(peak, float) else ""
    if record is own:
        return (
            f"{who} takes {seconds:.3g} s ({record['fastest']:.3g} to {record['slowest']:.3g})"
            f"{memory}; {record['multisets']:,} multisets priced, {record['paper_multisets']:,} "
            "in the paper's set."
        )
    ratio = record["ratio"]
    times = f", {_short(ratio)} times ours" if isinstance(ratio, float) else ""
    how = " (extrapolated)" if record["how"] == EXTRAPOLATED else ""
    return f"{who} takes {seconds:.3g} s{how}{times}{memory}."


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _agreement(at: str, records: list[dict[str, Cell]]) -> str:
    """Compare the optima with that of the first record."""
    optima = [r["optimum"] for r in records if isinstance(r["optimum"], float)]
    apart = max((abs(value / optima[0] - 1.0) for value in optima), default=0.0)
    verdict = "agree" if apart <= AGREEMENT else "DISAGREE"
    return f"{at}: {len(optima)} optima {verdict}, relative difference at most {apart:.1e}."


def plot(outcome: Outcome) -> Figure:
    """Draw seconds against K; hollow where extrapolated, a cross where memory or time ran out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = (r"$\Delta = 0$", r"$\Delta > 0$")
    for axes, title, pure in zip(panels, titles, (True, False), strict=True):
        for name in _LOOKS:
            _draw(axes, outcome, name, pure=pure)
        axes.set_title(title)
        axes.set_xlabel("voters $K$")
        axes.set_xscale("log")
        axes.set_yscale("log")
        voters = _voters(outcome, pure=pure)
        axes.set_xticks(voters, [str(k) for k in voters])
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("median seconds")
    panels[0].legend(
        frameon=False,
        fontsize=8,
        title="hollow: extrapolated; cross: out of memory or time",
        title_fontsize=8,
    )
    return figure


def _voters(outcome: Outcome, *, pure: bool) -> list[int]:
    columns = ("mechanisms", "mechanism_delta")
    rows = [
        row
        for table in outcome.tables.values()
        for row in zip(*map(table.column, columns), strict=True)
    ]
    return sorted({k for k, shift in rows if (shift == 0.0) == pure})


def _draw(axes: Axes, outcome: Outcome, name: str, *, pure: bool) -> None:
    colour, marker = _LOOKS[name]
    columns = ("mechanism_delta", "mechanisms", "median_seconds", "how")
    rows = [
        row
        for table in outcome.tables.values()
        for row in zip(*map(table.select(contender=name).column, columns), strict=True)
        if (row[0] == 0.0) == pure
    ]
    points = sorted({row[1]: row[1:] for row in rows if row[2] is not None}.values())
    line = [point[:2] for point in points]
    axes.plot(*zip(*line, strict=True), color=colour, lw=1) if line else None
    for how, face in ((MEASURED, colour), (EXTRAPOLATED, "white")):
        part = [point[:2] for point in points if point[2] == how] or [(float("nan"),) * 2]
        label = name if how == MEASURED else None
        axes.plot(*zip(*part, strict=True), marker, color=colour, mfc=face, label=label)
    for row in rows:
        if row[2] is None:
            place = 0.97 - 0.05 * list(_LOOKS).index(name)
            axes.plot(row[1], place, "x", color=colour, transform=axes.get_xaxis_transform())
