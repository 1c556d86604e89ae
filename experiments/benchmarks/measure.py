"""Runs a benchmark: contenders in turns, each in a fresh process, at every size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median, quantiles

from experiments.benchmarks.memory import DONE, OUT_OF_MEMORY, Limits, Ran, run_child
from experiments.benchmarks.spec import Answer, Benchmark, Contender
from experiments.registry import Cell, advance

MEASURED, EXTRAPOLATED = "measured", "extrapolated"
_STANDARD_ERRORS = 6.0
_LEAST_TURN = 0.1

Record = dict[str, Cell]
Child = Callable[..., Ran]


@dataclass(frozen=True)
class Effort:
    """How often things are run.

    Attributes:
        rounds: turns; each contender gets one fresh process in each.
        least_seconds: a process repeats its call until this much time has passed.
        patience: seconds of calls at one size after which a contender takes no further turn.
    """

    rounds: int = 3
    least_seconds: float = 0.2
    patience: float = 10.0


QUICK = Effort(rounds=1, least_seconds=0.0)


def measure(
    benchmark: Benchmark,
    sizes: tuple[int, ...],
    effort: Effort,
    child: Child = run_child,
) -> list[Record]:
    """Return one record for each contender at each size.

    In each round every contender takes a turn, ours first. Seconds are the processor's, so that
    other work on the machine does not count. A ratio is that of a turn to our turn of the same
    round; medians and quartiles are over the rounds.

    Args:
        benchmark: what is compared.
        sizes: a part of its sizes, ascending.
        effort: rounds and repeats.
        child: runs one turn; `run_child` but in tests.
    """
    stopped: dict[str, str] = {}
    records: list[Record] = []
    for size in sizes:
        found: dict[str, list[Ran]] = {}
        reasons: dict[str, str] = {}
        for contender in benchmark.contenders:
            reason = stopped.get(contender.name) or _not_tried(contender, size)
            if reason is None:
                found[contender.name] = []
            else:
                reasons[contender.name] = reason
        _turns(benchmark, size, found, effort, child)
        for name, ran in found.items():
            if ran[-1].outcome != DONE:
                said = outcome_of(ran[-1], benchmark.limits)
                stopped[name] = f"not tried ({said} at {size:,})"
        records += _records(benchmark, size, found, reasons)
        advance()
    return records


def outcome_of(ran: Ran, limits: Limits) -> str:
    """Return in words how a turn ended; "over 8 GiB" where memory ran out."""
    if ran.outcome == OUT_OF_MEMORY:
        return f"over {limits.address_space / 2**30:g} GiB"
    return ran.outcome


def _not_tried(contender: Contender, size: int) -> str | None:
    if contender.needs and find_spec(contender.needs[0]) is None:
        package, extra = contender.needs
        return f"skipped: {package} is not installed (extra {extra})"
    if contender.largest is not None and size > contender.largest:
        return f"not tried above {contender.largest:,}"
    return None


def _turns(
    benchmark: Benchmark, size: int, found: dict[str, list[Ran]], effort: Effort, child: Child
) -> None:
    """Let the contenders take turns until rounds or patience are used up."""
    ways = {contender.name: contender for contender in benchmark.contenders}
    for _ in range(effort.rounds):
        for name, ran in found.items():
            spent = sum(sum(r.cpu_seconds) for r in ran)
            failed = any(r.outcome != DONE for r in ran)
            if ran and (failed or spent * (len(ran) + 1) / len(ran) > effort.patience):
                continue
            ran.append(
                child(
                    ways[name].run,
                    size,
                    ways[name].allowed(benchmark.limits),
                    prepare=ways[name].prepare,
                    warm_up=(benchmark.warm_up,),
                    least_seconds=effort.least_seconds,
                )
            )


def _records(
    benchmark: Benchmark, size: int, found: dict[str, list[Ran]], reasons: dict[str, str]
) -> list[Record]:
    first = benchmark.contenders[0]
    own = found.get(first.name, [])
    base = [turn_seconds(r) if r.outcome == DONE else None for r in own]
    mine = _answer(own)
    records = []
    for contender in benchmark.contenders:
        ran = found.get(contender.name, [])
        record = _record(benchmark, contender, size, ran, reasons.get(contender.name, ""))
        record |= _ratios(ran, base) | _compared(benchmark, contender, _answer(ran), mine)
        records.append(record)
    return records


def _answer(ran: list[Ran]) -> Answer | None:
    """Return the answer of the last turn, None if it did not end."""
    value = ran[-1].value if ran and ran[-1].outcome == DONE else None
    return value if isinstance(value, Answer) else None


def turn_seconds(ran: Ran) -> float:
    """Return the seconds of one call in a turn that ended, for all of the work.

    The processor's time of all calls over their number: a single short call is below the clock of
    processor time, which may tick every 4 ms. Turns of less than 0.1 s are taken by the wall clock.
    """
    part = ran.value.part if isinstance(ran.value, Answer) else 1.0
    by_clock = sum(ran.seconds) < _LEAST_TURN
    return sum(ran.seconds if by_clock else ran.cpu_seconds) / len(ran.seconds) / part


def _record(
    benchmark: Benchmark, contender: Contender, size: int, ran: list[Ran], reason: str
) -> Record:
    done = [r for r in ran if r.outcome == DONE]
    answer = _answer(ran)
    seconds = [turn_seconds(r) for r in done]
    clock = [s / answer.part for r in done for s in r.seconds] if answer else []
    resident = [r.resident for r in done if r.resident is not None]
    grown = [r.peak for r in done if r.peak is not None]
    return {
        "benchmark": benchmark.name,
        "size": size,
        "contender": contender.name,
        "kind": contender.kind,
        "outcome": outcome_of(ran[-1], benchmark.limits) if ran else reason,
        "how": None if not seconds else EXTRAPOLATED if answer and answer.part < 1 else MEASURED,
        "turns": len(done),
        "calls": sum(len(r.seconds) for r in done),
        "seconds": median(seconds) if seconds else None,
        "fastest": min(seconds, default=None),
        "slowest": max(seconds, default=None),
        "clock_seconds": median(clock) if clock else None,
        "peak_mib": max(resident) / 2**20 if resident else None,
        "grown_mib": max(grown) / 2**20 if grown else None,
        "note": answer.note if answer else "",
    }


def _ratios(ran: list[Ran], base: list[float | None]) -> Record:
    """Return median and quartiles of the turns over ours of the same round."""
    ratios = [
        turn_seconds(r) / own
        for r, own in zip(ran, base, strict=False)
        if own is not None and r.outcome == DONE
    ]
    spread = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else (None,) * 3
    low, _, high = spread
    return {
        "ratio": median(ratios) if ratios else None,
        "ratio_low": low,
        "ratio_high": high,
    }


def _compared(
    benchmark: Benchmark, contender: Contender, answer: Answer | None, mine: Answer | None
) -> Record:
    """Return a contender's value, its difference from ours, and whether they agree."""
    value = answer.value if answer else None
    record: Record = {"value": value, "difference": None, "agrees": None}
    if answer is None or value is None or mine is None or mine.value is None:
        return record
    record["difference"] = value - mine.value
    if contender.same:
        room = benchmark.tolerance * max(1.0, abs(mine.value))
        room += _STANDARD_ERRORS * (answer.error**2 + mine.error**2) ** 0.5
        record["agrees"] = abs(value - mine.value) <= room
    return record
