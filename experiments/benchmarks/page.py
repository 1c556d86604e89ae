"""What a run of the benchmarks says: RESULTS.md, and tables and a figure for the report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from experiments import drawing
from experiments.benchmarks.measure import Effort, Results, run_benchmarks
from experiments.benchmarks.spec import benchmarks
from experiments.parameters import Count, configuration
from experiments.registry import Outcome, Table, experiment

_TIMES = (
    "One row for each contender at each size: alternating turns in fresh processes, one thread; "
    "ratio to the first contender of the benchmark, median and quartiles."
)
_COLUMNS = 4
_DECADES = 100


@configuration
class Config(Effort):
    """Which benchmarks, how much of each, and how often.

    Attributes:
        names: of the benchmarks; all if empty.
        most_sizes: only so many of the smallest sizes of each; all if None.
        jobs: benchmarks that run at a time.
    """

    names: tuple[str, ...] = ()
    most_sizes: Count | None = None
    jobs: Count = 2


def run_config(config: Config) -> Results:
    """Run the benchmarks that a configuration names."""
    known = benchmarks()
    chosen = [known[name] for name in config.names or known]
    return run_benchmarks(chosen, config, most_sizes=config.most_sizes, jobs=config.jobs)


@experiment(
    "benchmarks",
    config=Config(),
    quick=Config(rounds=1, least_seconds=0.0, most_sizes=1),
    repeatable=False,
)
def run(config: Config) -> Outcome:
    """Run the benchmarks; return their tables."""
    return to_outcome(run_config(config))


def to_outcome(results: Results) -> Outcome:
    """Return the tables of a run's results."""
    times = [record for benchmark in results["benchmarks"] for record in benchmark["records"]]
    growth = [
        {"benchmark": benchmark["name"], "title": benchmark["title"], "axis": benchmark["axis"]}
        | {key: slope.get(key) for key in ("contender", "slope", "constant")}
        for benchmark in results["benchmarks"]
        for slope in (benchmark["slopes"] or [{}])
    ]
    tables = {
        "times": Table.of(times, caption=f"{_TIMES} {_agreement(results)}"),
        "growth": Table.of(growth, caption="Seconds = constant size^slope, fitted over all sizes."),
    }
    where = results["machine"]
    machine = (
        f"{where['processor']}, {where['cores']} logical processors, {where['memory_gib']} GiB; "
        f"load {where['load_before']} before, {where['load_after']} after; {results['date']}"
    )
    return Outcome(tables, data=machine)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw seconds against size for each benchmark."""
    growth = outcome.tables["growth"]
    titles = dict(zip(growth.column("benchmark"), growth.column("title"), strict=True))
    columns = min(_COLUMNS, len(titles))
    lines = -(-len(titles) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.9 * lines), layout="constrained")
    for place, (name, title) in enumerate(titles.items(), 1):
        axes = figure.add_subplot(lines, columns, place)
        axes.set_title(title, fontsize=9)
        axes.set(xscale="log", yscale="log", ylabel="median seconds")
        axes.set_xlabel(growth.select(benchmark=name).column("axis")[0])
        axes.grid(alpha=0.25)
        times = outcome.tables["times"].select(benchmark=name)
        slopes = growth.select(benchmark=name)
        known = dict(zip(slopes.column("contender"), slopes.column("slope"), strict=True))
        for contender, look in drawing.curves(times.column("contender")).items():
            timed = [r for r in times.select(contender=contender).records if r["seconds"]]
            slope = known.get(contender)
            label = contender if slope is None else f"{contender}: slope {slope:.2f}"
            points = [r["size"] for r in timed], [r["seconds"] for r in timed]
            if timed:
                axes.plot(*points, ms=4, lw=1, label=label, **look)
        axes.legend(fontsize=6.5, framealpha=0.7, edgecolor="none")
        sizes = sorted(set(times.column("size")))
        # An axis of one power of ten or two names the sizes themselves.
        axes.xaxis.set_minor_formatter(NullFormatter())
        if sizes[-1] < _DECADES * sizes[0]:
            axes.set_xticks(sizes, [str(size) for size in sizes])
    return figure


def to_markdown(results: Results) -> str:
    """Return the page of a run: the same bytes for the same results."""
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters |= {"reason": _reason, "seconds": _seconds, "ratio": _ratio}
    pages.filters |= {"difference": _difference, "noted": _noted}
    return pages.get_template("RESULTS.jinja").render(results, agreement=_agreement(results))


def _reason(record: dict[str, Any]) -> str:
    """Return why there is no time; results.json has the message of an error."""
    return re.sub(r"error: .*?( at [\d,]+\)|$)", r"error\1", record["outcome"])


def _noted(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the largest size of each contender that says something of its work."""
    return list({record["contender"]: record for record in records if record["note"]}.values())


def _agreement(results: Results) -> str:
    verdicts = [
        (benchmark["name"], record)
        for benchmark in results["benchmarks"]
        for record in benchmark["records"]
        if record["agrees"] is not None and record["contender"] != _first(benchmark)
    ]
    apart = [pair for pair in verdicts if not pair[1]["agrees"]]
    text = (
        f"{len(verdicts) - len(apart)} of {len(verdicts)} values of other contenders "
        "agree with ours within the tolerance of their benchmark (random ones within six standard "
        'errors); those of contenders that answer another question, or estimate, are "not judged".'
    )
    for name, record in apart:
        text += f" {name}, {record['contender']} at {record['size']:,} differs."
    return text


def _first(benchmark: dict[str, Any]) -> str:
    return next(iter(benchmark["same"]))


def _seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{_three(seconds / size)} {unit}"
    return f"{_three(seconds * 1e6)} µs"


def _ratio(record: dict[str, Any]) -> str:
    if record["ratio"] is None:
        return ""
    ratio = _three(record["ratio"])
    if record["ratio_low"] is None or record["ratio_low"] == record["ratio_high"]:
        return ratio
    return f"{ratio} ({_three(record['ratio_low'])} to {_three(record['ratio_high'])})"


def _three(value: float) -> str:
    """Return three significant digits without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _difference(record: dict[str, Any], same: bool) -> str:
    if record["difference"] is None:
        return ""
    text = "0" if record["difference"] == 0 else f"{record['difference']:.1e}"
    if not same:
        return f"{text} (not judged)"
    return text if record["agrees"] else f"**{text}**"
