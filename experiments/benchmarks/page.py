"""What a run of the benchmarks says: RESULTS.md, and tables and a figure for the report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from dpopt import ParameterError
from experiments import drawing
from experiments.benchmarks.measure import Effort, Record, run_benchmarks
from experiments.benchmarks.spec import Benchmark, benchmarks
from experiments.parameters import Count, configuration
from experiments.registry import Outcome, Table, experiment
from experiments.report.pages import environment

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


@experiment(
    "benchmarks",
    config=Config(),
    quick=Config(rounds=1, least_seconds=0.0, most_sizes=1),
    repeatable=False,
)
def run(config: Config) -> Outcome:
    """Run the benchmarks that a configuration names; return their tables."""
    known = benchmarks()
    for name in config.names:
        if name not in known:
            raise ParameterError(f"names is {name!r}; it must hold some of {', '.join(known)}.")
    chosen = [known[name] for name in config.names or known]
    return to_outcome(
        run_benchmarks(chosen, config, most_sizes=config.most_sizes, jobs=config.jobs), known
    )


def to_outcome(found: Mapping[str, list[Record]], known: Mapping[str, Benchmark]) -> Outcome:
    """Return the tables of a run."""
    times = Table.of(found["times"], caption=f"{_TIMES} {_agreement(found['times'], known)}")
    growth = Table.of(found["growth"], caption="Seconds = constant size^slope, over all sizes.")
    machine = Table.of(found["machine"], caption="Where, when and by what it was run.")
    (at,) = machine.records
    about = "{processor}, {cores} logical processors, {memory_gib} GiB; load {load_before} before, "
    about += "{load_after} after; {date}"
    tables = {"times": times, "growth": growth, "machine": machine}
    return Outcome(tables, data=about.format(**at))


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


def to_markdown(outcome: Outcome, config: Mapping[str, Any], known: Mapping[str, Benchmark]) -> str:
    """Return the page of a run: the same bytes for the same tables."""
    pages = environment(Path(__file__).parent)
    pages.filters |= {"reason": _reason, "seconds": _seconds, "ratio": _ratio}
    pages.filters |= {"difference": _difference, "noted": _noted}
    times, growth = outcome.tables["times"], outcome.tables["growth"]
    shown = [
        (
            known[name],
            {contender.name: contender.same for contender in known[name].contenders},
            times.select(benchmark=name).records,
            [slope for slope in growth.select(benchmark=name).records if slope["contender"]],
        )
        for name in times.distinct("benchmark")
    ]
    (machine,) = outcome.tables["machine"].records
    return pages.get_template("RESULTS.jinja").render(
        config, machine=machine, shown=shown, agreement=_agreement(times.records, known)
    )


def _reason(record: dict[str, Any]) -> str:
    """Return why there is no time; the table has the message of an error."""
    return re.sub(r"error: .*?( at [\d,]+\)|$)", r"error\1", record["outcome"])


def _noted(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the largest size of each contender that says something of its work."""
    return list({record["contender"]: record for record in records if record["note"]}.values())


def _agreement(times: Sequence[Mapping[str, Any]], known: Mapping[str, Benchmark]) -> str:
    verdicts = [
        record
        for record in times
        if record["agrees"] is not None
        and record["contender"] != known[record["benchmark"]].contenders[0].name
    ]
    apart = [record for record in verdicts if not record["agrees"]]
    text = (
        f"{len(verdicts) - len(apart)} of {len(verdicts)} values of other contenders "
        "agree with ours within the tolerance of their benchmark (random ones within six standard "
        'errors); those of contenders that answer another question, or estimate, are "not judged".'
    )
    for record in apart:
        where = "{benchmark}, {contender} at {size:,}".format(**record)
        text += f" {where} differs."
    return text


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
