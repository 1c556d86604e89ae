"""The registry of benchmarks: its contenders agree, its runs, children and page are honest."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from dpopt import roo
from experiments.__main__ import main as experiments_main
from experiments.benchmarks import __main__ as runner
from experiments.benchmarks import memory, page, suite_samplers
from experiments.benchmarks.measure import (
    Effort,
    Record,
    measure,
    run_benchmarks,
    slopes,
)
from experiments.benchmarks.memory import DONE, Limits, Ran, run_child
from experiments.benchmarks.page import to_markdown, to_outcome
from experiments.benchmarks.spec import Answer, Benchmark, Contender, benchmarks, same
from experiments.kept import kept_entry
from tests.experiments.comparing import exit_code

# Elsewhere the address space cannot be limited, or the peak is measured otherwise.
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are Linux's")
SMALL = Limits(60, 1)
QUICK = Effort(rounds=1, least_seconds=0.0)
BENCHMARKS = tuple(benchmarks().values())
NAMES = list(benchmarks())


def in_this_process(
    function: Callable[[Any], object],
    argument: object,
    limits: Limits,
    *,
    prepare: Callable[[Any], object],
    warm_up: tuple[int, ...],
    least_seconds: float,
) -> Ran:
    """Stand in for a child, with made-up times."""
    assert limits.seconds > least_seconds >= 0.0
    function(prepare(warm_up[0]))
    return Ran(DONE, function(prepare(argument)), (2.0, 4.0), (1.0, 3.0), 70 << 20)


def test_specifications_are_unique_and_begin_with_the_reference() -> None:
    # A name that two modules gave would have hidden one of them.
    assert len(NAMES) >= 20
    assert len({benchmark.title for benchmark in BENCHMARKS}) == len(NAMES)
    for benchmark in BENCHMARKS:
        first = benchmark.contenders[0]
        assert (first.same, first.largest) == (True, None)
        assert len(benchmark.contenders) >= 2
        assert benchmark.warm_up <= benchmark.sizes[0] or benchmark.warm_up <= 20


def test_contenders_can_be_sent_to_a_child() -> None:
    for benchmark in BENCHMARKS:
        for contender in benchmark.contenders:
            pickle.dumps((contender.prepare, contender.run))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NAMES)
def test_all_contenders_agree_at_the_smallest_size(name: str) -> None:
    benchmark = benchmarks()[name]
    records = measure(benchmark, benchmark.sizes[:1], QUICK, in_this_process)
    assert [r["contender"] for r in records] == [c.name for c in benchmark.contenders]
    for record, contender in zip(records, benchmark.contenders, strict=True):
        if str(record["outcome"]).startswith("skipped"):
            assert contender.needs
            continue
        assert record["outcome"] == DONE
        assert record["value"] is not None
        assert record["agrees"] is (True if contender.same else None)
        assert (record["seconds"], record["ratio"], record["peak_mib"]) == (2.0, 1.0, 70.0)


def test_a_contender_that_answers_otherwise_is_seen() -> None:
    benchmark = benchmarks()["roo-rule"]
    wrong = replace(benchmark.contenders[2], same=True)
    forged = replace(benchmark, contenders=(benchmark.contenders[0], wrong))
    records = measure(forged, (10,), QUICK, in_this_process)
    assert [record["agrees"] for record in records] == [True, False]


def answer(name: str, size: int) -> Answer:
    return Answer(float(size), note=name if name == "half" else "")


TOY = Benchmark(
    name="toy",
    title="Toy",
    measures="Nothing.",
    setting="none",
    axis="size",
    value="size",
    sizes=(10, 100, 1000),
    contenders=(
        Contender("ours", same, partial(answer, "ours")),
        Contender("half", same, partial(answer, "half")),
        Contender("small", same, partial(answer, "small"), largest=10),
        Contender("absent", same, partial(answer, "ours"), needs=("no_such_package", "extra")),
    ),
    tolerance=1e-9,
    warm_up=1,
)
SPENT = {"ours": (1.0, 1.0, 2.0), "half": (2.0, 3.0, 16.0), "small": (5.0, 5.0, 5.0)}


class Scripted:
    """Children with scripted seconds: of each contender in each round."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.calls: list[tuple[str, int]] = []
        self.fail_at = fail_at

    def __call__(self, function: partial[Answer], size: int, *_: Any, **__: Any) -> Ran:
        (name,) = function.args
        turn = sum(call == (name, size) for call in self.calls)
        self.calls.append((name, size))
        if name == "half" and size == self.fail_at:
            return Ran("over 8 GiB")
        seconds = SPENT[name][turn]
        return Ran(DONE, function(size), (9.0,), (seconds,), 80 << 20)


def by(records: list[Record], contender: str, size: int) -> Record:
    (found,) = [r for r in records if (r["contender"], r["size"]) == (contender, size)]
    return found


def test_turns_alternate_and_ratios_are_of_one_round() -> None:
    child = Scripted()
    records = measure(TOY, (10,), Effort(3, 0.0, 1e9), child)
    assert child.calls == [("ours", 10), ("half", 10), ("small", 10)] * 3
    other = by(records, "half", 10)
    # 2/1, 3/1 and 16/2.
    assert (other["ratio_low"], other["ratio"], other["ratio_high"]) == (2.5, 3.0, 5.5)
    assert (other["seconds"], other["turns"]) == (3.0, 3)


def test_what_is_not_tried_says_why() -> None:
    records = measure(TOY, (100,), Effort(1), Scripted())
    assert by(records, "half", 100)["ratio_low"] is None
    assert by(records, "small", 100)["outcome"] == "not tried above 10"
    assert by(records, "small", 100)["seconds"] is None
    assert by(records, "absent", 100)["outcome"] == (
        "skipped: no_such_package is not installed (extra extra)"
    )


def test_a_contender_that_failed_is_not_tried_at_larger_sizes() -> None:
    child = Scripted(fail_at=100)
    records = measure(TOY, TOY.sizes, Effort(2), child)
    assert by(records, "half", 10)["outcome"] == DONE
    assert by(records, "half", 100)["outcome"] == "over 8 GiB"
    assert by(records, "half", 1000)["outcome"] == "not tried (over 8 GiB at 100)"
    assert {by(records, "half", n)["seconds"] for n in (100, 1000)} == {None}
    assert child.calls.count(("half", 100)) == 1
    assert ("half", 1000) not in child.calls


def test_an_error_ends_the_whole_run() -> None:
    calls: list[int] = []
    many = [replace(TOY, name=f"toy {i}") for i in range(20)]

    def child(function: Callable[[int], object], size: int, *_: Any, **__: Any) -> Ran:
        calls.append(size)
        if len(calls) == 1:
            raise KeyboardInterrupt
        time.sleep(0.2)
        return Ran(DONE, function(size), (1.0,), (1.0,), 0)

    with pytest.raises(KeyboardInterrupt):
        run_benchmarks(many, Effort(1), jobs=2, child=child)
    # One call was under way in each lane, and at most one more began before the stop.
    assert len(calls) <= 6


@linux
def test_a_child_returns_its_value_times_and_memory() -> None:
    idle = run_child(os.urandom, 8, SMALL).resident
    ran = run_child(os.urandom, 64 << 20, SMALL, warm_up=[8], least_seconds=0.01)
    assert ran.outcome == DONE
    assert len(ran.value) == 64 << 20
    assert len(ran.seconds) == len(ran.cpu_seconds) >= 1
    assert ran.resident is not None
    assert idle is not None
    # A second value beside the first would show.
    assert 60 << 20 < ran.resident - idle < 100 << 20


@pytest.mark.slow
@linux
def test_the_memory_of_the_parent_is_not_the_child_s() -> None:
    ballast = os.urandom(256 << 20)
    small = run_child(os.urandom, 8, SMALL).resident
    assert small is not None
    assert small < 128 << 20
    assert len(ballast) == 256 << 20


@linux
def test_failures_of_a_child_are_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_child(bytearray, 2 << 30, SMALL) == Ran("over 1 GiB")
    assert run_child(math.sqrt, -1, SMALL).outcome.startswith("error: ValueError")
    assert run_child(signal.raise_signal, signal.SIGSEGV, SMALL) == Ran("ended by SIGSEGV")
    monkeypatch.setattr(memory, "_ON_THE_CLOCK", 0.5)
    assert run_child(time.sleep, 60, Limits(1, 1)) == Ran("over 0.5 s")


@pytest.mark.slow
@linux
def test_a_child_stops_after_its_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # By the clock it may take longer beside other work.
    monkeypatch.setattr(memory, "_ON_THE_CLOCK", 60.0)
    assert run_child(math.factorial, 10**8, Limits(1, 1)) == Ran("over 1 s")


def test_slopes_are_those_of_the_data() -> None:
    sizes = (10, 100, 1000, 10_000)
    seconds = {
        "power": [3e-6 * n**1.5 for n in sizes],
        "bent": [1.0, 1.0, 1.0, 100.0],
        "short": [1.0, 1.0, None],
    }
    rows: list[Record] = [
        {"size": n, "contender": name, "seconds": s, "outcome": DONE if s else "over 60 s"}
        for name, column in seconds.items()
        for n, s in zip(sizes, column, strict=False)
    ]
    power, bent = slopes(rows)
    assert power == {
        "contender": "power",
        "slope": pytest.approx(1.5, abs=1e-12),
        "constant": pytest.approx(3e-6, rel=1e-9),
        "last_slope": pytest.approx(1.5, abs=1e-12),
        "sizes": 4,
    }
    # Least squares over y = (0, 0, 0, 2) and x = (1, 2, 3, 4), in decades.
    assert bent["slope"] == pytest.approx(0.6)
    assert (bent["contender"], bent["last_slope"]) == ("bent", pytest.approx(2.0))


KNOWN = {TOY.name: TOY}


@pytest.fixture(scope="module")
def toy() -> dict[str, Any]:
    return run_benchmarks([TOY], Effort(1), child=Scripted())


def page_of(found: dict[str, Any]) -> str:
    return to_markdown(to_outcome(found, KNOWN), asdict(page.Config()), KNOWN)


def test_tables_are_plain_and_their_page_is_a_pure_function(toy: dict[str, Any]) -> None:
    again = json.loads(json.dumps(toy, allow_nan=False))
    assert again == toy
    text = page_of(toy)
    assert text == page_of(again)
    assert "| 10 | half | 2.00 s | 2.00 | 80 MiB | 10 | 0 |" in text
    assert "| 100 | half | 2.00 s | 2.00 | 80 MiB | 100 | 0 |" in text
    assert "| 100 | small | not tried above 10 | | | | |" in text
    assert "4 of 4 values" in text
    record = again["times"][4]
    # An earlier round of it had ended, and has its time.
    record |= {"value": None, "outcome": "error: dpopt._errors.SolverError: status (a; b)"}
    assert "| 100 | ours | error | | | | |" in page_of(again)
    record["outcome"] = "not tried (error: SolverError: failed at 3 at 10)"
    assert "| 100 | ours | not tried (error at 10) | | | | |" in page_of(again)
    assert "(3 sizes; between the last two " in text


def test_a_disagreement_stands_on_the_page(toy: dict[str, Any]) -> None:
    forged = json.loads(json.dumps(toy))
    record = forged["times"][1]
    record |= {"value": 10.5, "difference": 0.5, "agrees": False}
    text = page_of(forged)
    assert "3 of 4 values" in text
    assert "toy, half at 10 differs." in text
    assert "| **5.0e-01** |" in text
    assert "half at 10 differs." in to_outcome(forged, KNOWN).tables["times"].caption


@pytest.mark.slow
def test_a_run_writes_tables_and_report_and_from_these_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path)
    given = ["run", "benchmarks", "--set", "names=release-majority", "--out", out]
    assert exit_code(experiments_main, given) == 0
    parts = ("run.json", "times.csv", "growth.csv", "machine.csv", "json", "png", "pdf", "txt")
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"benchmarks.{part}" for part in (*parts, "html")),
        "index.html",
    }
    entry = kept_entry(page.run, tmp_path)
    assert entry is not None
    times, (machine,) = entry.tables["times"], entry.tables["machine"].records
    assert set(times.column("outcome")) == {DONE}
    assert set(times.column("agrees")) == {True}
    assert "highspy" in machine["versions"]
    assert machine["cores"] >= 1
    monkeypatch.setattr(runner, "PUBLISHED", tmp_path / "RESULTS.md")
    assert runner.command.main([out], standalone_mode=False) is None
    assert "## Release: private majorities" in (tmp_path / "RESULTS.md").read_text("utf-8")
    with pytest.raises(click.ClickException, match="holds no run"):
        runner.command.main([str(tmp_path / "none")], standalone_mode=False)
    given[3] = "names=absent"
    assert exit_code(experiments_main, given) == 2
    assert "names is 'absent'" in capfd.readouterr().err


def test_the_journal_recursion_is_the_journal_rule() -> None:
    for records in (10, 100, 1000):
        setting = suite_samplers.setting(records)
        weights = roo.rule_weights(setting, "journal")
        expected = float(sum(Fraction(weight, 1 << 62) for weight in weights))
        assert suite_samplers.journal_rule(setting).value == pytest.approx(expected, rel=1e-12)
