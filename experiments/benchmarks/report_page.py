"""The benchmarks as an experiment of the report: tables, findings, a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.benchmarks.measure import EXTRAPOLATED, MEASURED, QUICK, Effort
from experiments.benchmarks.results import Results, run_benchmarks
from experiments.benchmarks.suite import BENCHMARKS, benchmarks
from experiments.registry import Advance, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#2f5d9b", "#6fa0d8", "#c1432e", "#8a5aa8", "#d98a29", "#555555")
_MARKERS = ("o", "s", "^", "P", "v", "D")
_COLUMNS = 4
_DECADES = 100


@dataclass(frozen=True)
class Config:
    """Which benchmarks, how much of each, and how often.

    Attributes:
        names: of the benchmarks.
        effort: rounds and repeats.
        most_sizes: only so many of the smallest sizes of each; all if None.
        jobs: benchmarks that run at a time.
    """

    names: tuple[str, ...] = tuple(benchmark.name for benchmark in BENCHMARKS)
    effort: Effort = Effort()  # noqa: RUF009 - frozen
    most_sizes: int | None = None
    jobs: int = 2


def steps(config: Config) -> int:
    """Return how many sizes are run."""
    known = benchmarks()
    return sum(len(known[name].sizes[: config.most_sizes]) for name in config.names)


def run_config(config: Config, advance: Advance) -> Results:
    """Run the benchmarks that a configuration names."""
    known = benchmarks()
    chosen = [known[name] for name in config.names]
    return run_benchmarks(
        chosen, config.effort, advance, most_sizes=config.most_sizes, jobs=config.jobs
    )


def run(config: Config, advance: Advance) -> Outcome:
    """Run the benchmarks; return their tables."""
    return to_outcome(run_config(config, advance))


def to_outcome(results: Results) -> Outcome:
    """Return the tables and findings of a run's results."""
    times = [record for benchmark in results["benchmarks"] for record in benchmark["records"]]
    growth = [
        {"benchmark": benchmark["name"], "title": benchmark["title"], "axis": benchmark["axis"]}
        | (slope or {"contender": None, "slope": None, "constant": None})
        for benchmark in results["benchmarks"]
        for slope in (_slopes(benchmark) or [None])
    ]
    tables = {
        "times": Table.of(
            "One row for each contender at each size: alternating turns in fresh processes, one "
            "thread; ratio to the first contender of the benchmark, median and quartiles.",
            times,
        ),
        "growth": Table.of("Seconds = constant times size^slope, fitted over all sizes.", growth),
    }
    where = results["machine"]
    first = (
        f"{where['processor']}, {where['cores']} logical processors, {where['memory_gib']} GiB; "
        f"load {where['load_before']} before, {where['load_after']} after; {results['date']}."
    )
    return Outcome(tables, (first, *_findings(results)))


def _slopes(benchmark: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {key: slope[key] for key in ("contender", "slope", "constant")}
        for slope in benchmark["slopes"]
    ]


def _findings(results: Results) -> list[str]:
    """Say of each contender how it did at the largest size that it finished."""
    said = []
    for benchmark in results["benchmarks"]:
        last = {r["contender"]: r for r in benchmark["records"] if r["seconds"] is not None}
        for name, record in last.items():
            how = " (extrapolated)" if record["how"] == EXTRAPOLATED else ""
            ratio = "" if record["ratio"] is None else f", {record['ratio']:.3g} times the first"
            said.append(
                f"{benchmark['title']}, {benchmark['axis']} = {record['size']:,}: {name} takes "
                f"{record['seconds']:.3g} s{how}{ratio}."
            )
        wrong = [r for r in benchmark["records"] if r["agrees"] is False]
        said += [
            f"{benchmark['title']}: {r['contender']} at {r['size']:,} DISAGREES by "
            f"{r['difference']:.2g}."
            for r in wrong
        ]
    return said


def plot(outcome: Outcome) -> Figure:
    """Draw seconds against size for each benchmark; hollow where extrapolated."""
    from matplotlib.figure import Figure

    growth = outcome.tables["growth"]
    places = zip(growth.column("benchmark"), growth.column("title"), strict=True)
    titles = dict(places)
    columns = min(_COLUMNS, len(titles))
    lines = -(-len(titles) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.9 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, (name, title) in zip(panels, titles.items(), strict=False):
        axes.set_title(title, fontsize=9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(growth.select(benchmark=name).column("axis")[0], fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.25)
        _draw(axes, outcome, name)
        _label_few_decades(axes, outcome.tables["times"].select(benchmark=name).column("size"))
    for axes in panels[len(titles) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel("median seconds", fontsize=8)
    return figure


def _label_few_decades(axes: Axes, sizes: list[int]) -> None:
    """Name the sizes themselves where an axis would have one power of ten or two."""
    from matplotlib.ticker import NullFormatter

    axes.xaxis.set_minor_formatter(NullFormatter())
    if max(sizes) < _DECADES * min(sizes):
        shown = sorted(set(sizes))
        axes.set_xticks(shown, [str(size) for size in shown])


def _draw(axes: Axes, outcome: Outcome, name: str) -> None:
    times = outcome.tables["times"].select(benchmark=name)
    growth = outcome.tables["growth"].select(benchmark=name)
    slopes = dict(zip(growth.column("contender"), growth.column("slope"), strict=True))
    looks = zip(dict.fromkeys(times.column("contender")), _COLOURS, _MARKERS, strict=False)
    for contender, colour, marker in looks:
        part = times.select(contender=contender)
        points = [
            point
            for point in zip(*map(part.column, ("size", "seconds", "how")), strict=True)
            if point[1] is not None
        ]
        if not points:
            continue
        slope = slopes.get(contender)
        label = contender if slope is None else f"{contender}: slope {slope:.2f}"
        axes.plot([p[0] for p in points], [p[1] for p in points], color=colour, lw=1)
        for how, face in ((MEASURED, colour), (EXTRAPOLATED, "white")):
            some = [p[:2] for p in points if p[2] == how]
            if some:
                axes.plot(*zip(*some, strict=True), marker, color=colour, mfc=face, ms=4)
        axes.plot([], [], marker=marker, color=colour, ms=4, lw=1, label=label)
    axes.legend(fontsize=6.5, framealpha=0.7, edgecolor="none")


EXPERIMENT = Experiment(
    name="benchmarks",
    paper="Benchmarks",
    item="Side by side",
    summary="Cost against size of every solve, proof and release, beside general solvers given "
    "every row, the papers' algorithms as written, numpy and OpenDP.",
    published=None,
    config=Config(),
    quick=Config(effort=QUICK, most_sizes=1),
    steps=steps,
    run=run,
    plot=plot,
    repeatable=False,
)
