"""What a run of the benchmarks says: RESULTS.md, and tables and a figure for the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.benchmarks.measure import DONE, EXTRAPOLATED, MEASURED, QUICK, Effort
from experiments.benchmarks.results import Results, run_benchmarks
from experiments.benchmarks.spec import Benchmark
from experiments.benchmarks.suite import benchmarks
from experiments.registry import Outcome, Table, experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEAD = "| {axis} | contender | median | times {first} (quartiles) | peak | {value} | difference |"
_RULE = "|--:|:--|--:|--:|--:|--:|--:|"

_COLOURS = ("#2f5d9b", "#6fa0d8", "#c1432e", "#8a5aa8", "#d98a29", "#555555")
_MARKERS = ("o", "s", "^", "P", "v", "D")
_COLUMNS = 4
_DECADES = 100


@dataclass(frozen=True)
class Config:
    """Which benchmarks, how much of each, and how often.

    Attributes:
        names: of the benchmarks; all if empty.
        effort: rounds and repeats.
        most_sizes: only so many of the smallest sizes of each; all if None.
        jobs: benchmarks that run at a time.
    """

    names: tuple[str, ...] = ()
    effort: Effort = Effort()  # noqa: RUF009 - frozen
    most_sizes: int | None = None
    jobs: int = 2


def _chosen(config: Config) -> list[Benchmark]:
    known = benchmarks()
    return [known[name] for name in config.names or known]


def run_config(config: Config) -> Results:
    """Run the benchmarks that a configuration names."""
    return run_benchmarks(
        _chosen(config), config.effort, most_sizes=config.most_sizes, jobs=config.jobs
    )


@experiment(
    "benchmarks",
    "Benchmarks",
    "Side by side",
    "Cost against size of every solve, proof and release, beside general solvers given "
    "every row, the papers' algorithms as written, numpy and OpenDP.",
    config=Config(),
    quick=Config(effort=QUICK, most_sizes=1),
    repeatable=False,
)
def run(config: Config) -> Outcome:
    """Run the benchmarks; return their tables."""
    return to_outcome(run_config(config))


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


@run.figure
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


def to_markdown(results: Results) -> str:
    """Return the page of a run: the same bytes for the same results."""
    parts = [_preamble(results), _stated(results), _agreement(results)]
    parts += [_section(benchmark, results["date"]) for benchmark in results["benchmarks"]]
    return "\n\n".join(parts) + "\n"


def _preamble(results: Results) -> str:
    where, versions = results["machine"], results["versions"]
    listed = ", ".join(f"{name} {number}" for name, number in versions.items())
    return f"""# Benchmarks

Written by `python -m experiments benchmarks` on {results["date"]}, in \
{results["seconds"] / 60:.0f} minutes. Do not edit.

- Machine: {where["processor"]}, {where["cores"]} logical processors, {where["memory_gib"]} GiB, \
{where["system"]}. Load (one-minute average of running processes): {where["load_before"]} before, \
{where["load_after"]} after; above 1, other work shared the machine.
- Seconds are the processor's, not the clock's (which `results.json` of a run's folder has too), \
since other work may share the machine; on an idle one they are the same to a few per cent.
- Versions: {listed}.
- {results["jobs"]} benchmarks run at a time. Each contender runs in a process of its own, one \
thread. In each of {results["rounds"]} rounds the contenders take turns, ours first; a turn is one \
small call that does not count, and then the same call again and again for \
{results["least_seconds"]:g} s; its time is the mean. A contender that would spend more than \
{results["patience"]:g} s on a size takes no further turn: the longest times are of one call, and \
have no quartiles.
- Times are medians over rounds, without imports. A ratio is that of two turns of one round; its \
median and quartiles over the rounds are given.
- Peak is the resident memory of the whole process, imports included (about 60 MiB, with cvxpy \
130 MiB).
- "~" marks an extrapolation: a part of the work was timed, and the time divided by its share. \
"over 30 s" and "over 8 GiB" are the limits of processor time (imports and preparation \
included) and of address space; the same contender is then not tried at larger sizes.
- A section that names a day was run apart from the rest, on that day, with the processors and \
under the load that it names.
- Growth is b in seconds = a size^b, fitted over all sizes a contender finished."""


def _stated(results: Results) -> str:
    lines = [
        "## Factors stated before",
        "",
        "| benchmark | size | contender | stated | this run (quartiles) | |",
        "|:--|--:|:--|--:|--:|:--|",
    ]
    for benchmark in results["benchmarks"]:
        for target in benchmark["targets"]:
            record = next(
                r
                for r in benchmark["records"]
                if (r["size"], r["contender"]) == (target["size"], target["contender"])
            )
            shown = record["ratio"] is not None and record["ratio"] >= target["factor"]
            lines.append(
                f"| {benchmark['name']} | {target['size']:,} | {target['contender']} "
                f"| {target['factor']:,g} | {_ratio(record)} "
                f"| {'shown' if shown else 'not shown'} |"
            )
    if len(lines) == 4:
        return "No factor was stated before for the sizes of this run."
    return "\n".join(lines)


def _agreement(results: Results) -> str:
    verdicts = [
        (benchmark["name"], record)
        for benchmark in results["benchmarks"]
        for record in benchmark["records"]
        if record["agrees"] is not None
        and record["contender"] != benchmark["contenders"][0]["name"]
    ]
    apart = [pair for pair in verdicts if not pair[1]["agrees"]]
    text = (
        f"## Values\n\n{len(verdicts) - len(apart)} of {len(verdicts)} values of other contenders "
        "agree with ours within the tolerance of their benchmark (random ones within six standard "
        "errors); "
        'those of contenders that answer another question, or estimate, are "not judged".'
    )
    for name, record in apart:
        text += f" {name}, {record['contender']} at {record['size']:,} differs."
    return text


def _section(benchmark: dict[str, Any], date: str) -> str:
    same = {contender["name"]: contender["same"] for contender in benchmark["contenders"]}
    first = benchmark["contenders"][0]["name"]
    head = _HEAD.format(axis=benchmark["axis"], first=first, value=benchmark["value"])
    rows = [_row(record, same[record["contender"]]) for record in benchmark["records"]]
    table = "\n".join([head, _RULE, *rows])
    return (
        f"## {benchmark['title']} (`{benchmark['name']}`)\n\n{_when(benchmark, date)}"
        f"{benchmark['measures']} "
        f"{benchmark['setting'][0].upper()}{benchmark['setting'][1:]}. Limits: "
        f"{benchmark['seconds']:g} s{_longer(benchmark)}, {benchmark['memory_gib']:g} GiB."
        f"\n\n{table}\n\n{_growth(benchmark)}{_notes(benchmark)}"
    )


def _when(benchmark: dict[str, Any], date: str) -> str:
    """Return when and where a benchmark was run, if on another day than the rest."""
    if benchmark.get("date", date) == date:
        return ""
    return (
        f"Run on {benchmark['date']} with {benchmark['cores']} logical processors, load "
        f"{benchmark['load']} before{_turns(benchmark)}. "
    )


def _turns(benchmark: dict[str, Any]) -> str:
    """Return how many rounds there were, and how many benchmarks ran at a time, if told."""
    if "rounds" not in benchmark:
        return ""
    rounds = "1 round" if benchmark["rounds"] == 1 else f"{benchmark['rounds']} rounds"
    return f", {rounds}, {benchmark['jobs']} benchmarks at a time"


def _longer(benchmark: dict[str, Any]) -> str:
    """Return the limits of contenders that have their own."""
    return "".join(
        f" ({contender['name']}: {contender['seconds']} s)"
        for contender in benchmark["contenders"]
        if contender["seconds"] is not None
    )


def _row(record: dict[str, Any], same: bool) -> str:
    start = f"| {record['size']:,} | {record['contender']} |"
    if record["seconds"] is None:
        return f"{start} {_why_not(record['outcome'])} | | | | |"
    peak = "" if record["peak_mib"] is None else f"{record['peak_mib']:,.0f} MiB"
    return (
        f"{start} {_seconds(record)} | {_ratio(record)} | {peak} | {_value(record['value'])} "
        f"| {_difference(record, same)} |"
    )


def _why_not(outcome: str) -> str:
    """Return why there is no time, without the message of an error, which results.json has."""
    before, found, message = outcome.partition("error: ")
    if not found:
        return outcome
    if before:
        return f"{before}error at {message.rpartition(' at ')[2]}"
    return f"error: {message.partition(':')[0].rpartition('.')[2]}"


def _seconds(record: dict[str, Any]) -> str:
    mark = "~" if record["how"] == EXTRAPOLATED else ""
    seconds = record["seconds"]
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{mark}{_three(seconds / size)} {unit}"
    return f"{mark}{_three(seconds * 1e6)} µs"


def _ratio(record: dict[str, Any]) -> str:
    if record["ratio"] is None:
        return record["outcome"] if record["outcome"] != DONE else ""
    mark = "~" if record["how"] == EXTRAPOLATED else ""
    if record["ratio_low"] is None or record["ratio_low"] == record["ratio_high"]:
        return f"{mark}{_three(record['ratio'])}"
    spread = f"{_three(record['ratio_low'])} to {_three(record['ratio_high'])}"
    return f"{mark}{_three(record['ratio'])} ({spread})"


def _three(value: float) -> str:
    """Return three significant digits without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _difference(record: dict[str, Any], same: bool) -> str:
    if record["difference"] is None:
        return ""
    text = "0" if record["difference"] == 0 else f"{record['difference']:.1e}"
    if not same:
        return f"{text} (not judged)"
    return text if record["agrees"] else f"**{text}**"


def _growth(benchmark: dict[str, Any]) -> str:
    listed = ", ".join(
        f"{slope['contender']} {slope['slope']:.2f} ({slope['sizes']} sizes; between the last two "
        f"{slope['last_slope']:.2f})"
        for slope in benchmark["slopes"]
    )
    return f"Growth: {listed}." if listed else "Growth: fewer than three sizes."


def _notes(benchmark: dict[str, Any]) -> str:
    """Return what the largest size of each contender says of its work."""
    last = {r["contender"]: r for r in benchmark["records"] if r["note"]}
    if not last:
        return ""
    listed = "".join(
        f"\n- {name} at {record['size']:,}: {record['note']}." for name, record in last.items()
    )
    return f"\n{listed}"
