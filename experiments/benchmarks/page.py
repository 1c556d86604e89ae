"""RESULTS.md: a run's results as a page, by a pure function of results.json."""

from __future__ import annotations

from typing import Any

from experiments.benchmarks.measure import DONE, EXTRAPOLATED
from experiments.benchmarks.results import Results

_HEAD = "| {axis} | contender | median | times {first} (quartiles) | peak | {value} | difference |"
_RULE = "|--:|:--|--:|--:|--:|--:|--:|"


def to_markdown(results: Results) -> str:
    """Return the page of a run: the same bytes for the same results."""
    parts = [_preamble(results), _stated(results), _agreement(results)]
    parts += [_section(benchmark) for benchmark in results["benchmarks"]]
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
- Seconds are the processor's, not the clock's (which `results.json` has too), since other work \
may share the machine; on an idle one they are the same to a few per cent.
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


def _section(benchmark: dict[str, Any]) -> str:
    same = {contender["name"]: contender["same"] for contender in benchmark["contenders"]}
    first = benchmark["contenders"][0]["name"]
    head = _HEAD.format(axis=benchmark["axis"], first=first, value=benchmark["value"])
    rows = [_row(record, same[record["contender"]]) for record in benchmark["records"]]
    table = "\n".join([head, _RULE, *rows])
    return (
        f"## {benchmark['title']} (`{benchmark['name']}`)\n\n{benchmark['measures']} "
        f"{benchmark['setting'][0].upper()}{benchmark['setting'][1:]}. Limits: "
        f"{benchmark['seconds']:g} s{_longer(benchmark)}, {benchmark['memory_gib']:g} GiB."
        f"\n\n{table}\n\n{_growth(benchmark)}{_notes(benchmark)}"
    )


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
