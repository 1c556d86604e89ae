"""The contenders of the benchmark compute the same thing, and its children fail as values."""

import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest

from dpopt import majority
from dpopt.prob import poisson_binomial_pmf
from experiments.benchmarks import majority_contenders as ways
from experiments.benchmarks import majority_solve
from experiments.benchmarks.majority_figure import (
    CERTIFIED,
    EXTRAPOLATED,
    LINPROG,
    MEASURED,
    ONE_BY_ONE,
    OURS,
    findings,
)
from experiments.benchmarks.memory import DONE, OUT_OF_MEMORY, Limits, Ran, run_child
from experiments.registry import Outcome, Table

# Elsewhere the address space cannot be limited, or the peak is measured otherwise.
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks are Linux's")
CASES = [(5, 2.0, 0.0), (7, 3.0, 0.0), (5, 2.0, 1e-5), (7, 2.0, 1e-2)]
SMALL = Limits(1 << 30, 60.0)


def instance(k: int, m: float, shift: float) -> ways.Instance:
    return ways.Instance.of(k, 0.3, m, shift)


@pytest.mark.parametrize(("k", "m", "shift"), CASES)
def test_all_contenders_find_the_same_optimum(k: int, m: float, shift: float) -> None:
    case = instance(k, m, shift)
    size = comb(k + 3, 3) if shift == 0.0 else comb(k + 7, 7)
    own = ways.ours(case)
    assert own.optimum is not None
    assert 0.0 < own.optimum < float(case.weights.sum())
    assert own.multisets == majority.reduced_size(case.setting)
    certified = ways.ours_certified(case)
    assert certified.optimum == pytest.approx(own.optimum, rel=1e-9)
    for way in (ways.with_cvxpy, ways.with_linprog, ways.one_by_one):
        answer = way(case)
        assert answer.optimum == pytest.approx(own.optimum, rel=1e-7)
        assert answer.multisets == answer.rows == size


@pytest.mark.parametrize(("k", "m", "shift"), CASES)
def test_rows_are_those_of_the_definition(k: int, m: float, shift: float) -> None:
    case = instance(k, m, shift)
    counts = ways.multisets(case)
    listed = combinations_with_replacement(range(len(case.corners)), k)
    expected = {tuple(np.bincount(c, minlength=len(case.corners))) for c in listed}
    assert {tuple(row) for row in counts.tolist()} == expected
    assert len(counts) == len(expected)
    shared = ways.shared_rows(case, counts)
    for law in (ways.convolution, ways.poisson_binom):
        some = slice(None, None, 1 + len(counts) // 200)
        assert np.allclose(ways.separate_rows(case, counts[some], law), shared[some], atol=1e-12)
    named = [
        tuple((name, int(n)) for name, n in zip(case.corners, row, strict=True) if n)
        for row in counts
    ]
    ours = majority.corner_rows(case.setting, named).matrix.toarray() * case.setting.budget
    assert np.allclose(shared, ours, atol=1e-12)


def test_delta_of_an_instance_is_the_paper_s() -> None:
    assert instance(7, 2.0, 0.25).setting.delta == pytest.approx(1 - 0.75**2)
    assert instance(7, 2.0, 0.0).setting.delta == 0.0


@pytest.mark.parametrize("law", [ways.convolution, ways.poisson_binom])
def test_laws_of_one_multiset(law: ways.Law) -> None:
    p = [0.1, 0.7, 0.7, 1.0, 0.0]
    assert law(p) == pytest.approx(poisson_binomial_pmf(p), abs=1e-14)


def test_sampled_multisets_are_uniform() -> None:
    case = instance(3, 1.0, 0.0)
    drawn = ways.sampled_multisets(case, 20_000, np.random.default_rng(5))
    found, times = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(r) for r in found.tolist()} == {tuple(r) for r in ways.multisets(case).tolist()}
    # 20 cells of 1,000 each: five standard deviations.
    assert np.all(np.abs(times - 1_000) < 5 * math.sqrt(950))


@linux
def test_a_child_returns_its_value_times_and_memory() -> None:
    ran = run_child(os.urandom, 64 << 20, SMALL, warm_up=[8], least_seconds=0.01)
    assert ran.outcome == DONE
    assert len(ran.value) == 64 << 20
    assert len(ran.seconds) == len(ran.cpu_seconds) >= 1
    assert ran.peak is not None
    # A second value beside the first would show.
    assert 60 << 20 < ran.peak < 100 << 20


@linux
def test_the_memory_of_the_parent_is_not_the_child_s() -> None:
    ballast = os.urandom(256 << 20)
    small = run_child(os.urandom, 32 << 20, SMALL)
    assert small.peak is not None
    assert 28 << 20 < small.peak < 64 << 20
    assert len(ballast) == 256 << 20


@linux
def test_failures_of_a_child_are_values() -> None:
    assert run_child(bytearray, 2 << 30, SMALL) == Ran(OUT_OF_MEMORY)
    assert run_child(time.sleep, 60, replace(SMALL, seconds=0.5)) == Ran("over 0.5 s")
    assert run_child(math.sqrt, -1, SMALL).outcome.startswith("error: ValueError")
    assert run_child(signal.raise_signal, signal.SIGSEGV, SMALL) == Ran("ended by SIGSEGV")


@linux
def test_a_contender_out_of_memory_is_a_value() -> None:
    huge = ways.Instance.of(41, 0.1, 3.0, 1e-5)
    assert run_child(ways.with_linprog, huge, Limits(1 << 30, 60.0)) == Ran(OUT_OF_MEMORY)


def test_a_contender_answers_from_a_child() -> None:
    case = instance(7, 2.0, 1e-5)
    ran = run_child(ways.ours, case, Limits(), warm_up=[instance(5, 2.0, 1e-5)])
    assert ran.value == ways.ours(case)


def in_this_process(
    way: Callable[[ways.Instance], ways.Answer],
    case: ways.Instance,
    limits: Limits,
    *,
    warm_up: list[ways.Instance],
    least_seconds: float,
) -> Ran:
    """Stand in for a child, with made-up times."""
    assert limits.seconds > least_seconds >= 0.0
    assert [small.setting.mechanisms for small in warm_up] == [5]
    return Ran(DONE, way(case), (2.0, 4.0), (1.0, 3.0), 3 << 20)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    config = majority_solve.Config(
        races=(majority_solve.Size(5, 2.0), majority_solve.Size(5, 2.0, 1e-5)),
        scale=(majority_solve.Size(9, 2.0, certified=False), majority_solve.Size(7, 2.0, 1e-5)),
        rounds=2,
        least_seconds=0.0,
        whole_up_to=100,
    )
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(majority_solve, "run_child", in_this_process)
        found = majority_solve.run(config, lambda: told.append(1))
    assert len(told) == majority_solve.EXPERIMENT.steps(config) == 4
    return found


def test_the_table_has_every_contender_at_every_size(outcome: Outcome) -> None:
    times, scale = outcome.tables["times"], outcome.tables["scale"]
    assert len(times.rows) == 2 * 5
    assert scale.column("contender") == [OURS, OURS, CERTIFIED]
    assert set(times.column("outcome")) == {DONE}
    assert times.select(contender=OURS).column("ratio") == [1.0, 1.0]
    assert times.select(contender=LINPROG).column("runs") == [4, 4]
    assert set(times.select(how=MEASURED).column("median_seconds")) == {3.0}
    assert set(times.select(how=MEASURED).column("peak_mib")) == {3.0}
    assert times.select(mechanism_delta=1e-5).column("paper_multisets") == [792] * 5
    spread = zip(*map(times.select(how=MEASURED).column, ("fastest", "slowest")), strict=True)
    assert set(spread) == {(2.0, 4.0)}


def test_patience_ends_the_turns_of_a_slow_contender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(majority_solve, "run_child", in_this_process)
    size = majority_solve.Size(5, 2.0)
    # A turn takes six made-up seconds: a third would end at 18.
    config = majority_solve.Config(races=(size,), scale=(size,), rounds=5, patience=13.0)
    times = majority_solve.run(config, lambda: None).tables["times"]
    assert times.column("runs") == [4] * 5


def test_large_sets_are_extrapolated_and_say_so(outcome: Outcome) -> None:
    times = outcome.tables["times"]
    assert times.select(mechanism_delta=0.0).column("how") == [MEASURED] * 5
    (row,) = times.select(how=EXTRAPOLATED).rows
    record = dict(zip(times.columns, row, strict=True))
    assert (record["contender"], record["mechanism_delta"]) == (ONE_BY_ONE, 1e-5)
    assert "2,000 of 792 multisets" in str(record["note"])
    assert record["optimum"] is None
    (whole,) = times.select(contender=LINPROG, mechanism_delta=1e-5).column("median_seconds")
    (shared,) = times.select(contender=LINPROG, mechanism_delta=1e-5).column("row_seconds")
    assert record["median_seconds"] == pytest.approx(record["row_seconds"] + whole - shared)


def test_findings_name_the_agreement_and_would_name_a_disagreement(outcome: Outcome) -> None:
    assert sum("5 optima agree" in line for line in outcome.findings) == 1
    assert sum("4 optima agree" in line for line in outcome.findings) == 1
    assert any("(extrapolated)" in line for line in outcome.findings)
    times = outcome.tables["times"]
    place = times.columns.index("optimum")
    last = times.rows[4]
    wrong = (*last[:place], 2.0, *last[place + 1 :])
    forged = Table(times.caption, times.columns, (*times.rows[:4], wrong))
    assert any("DISAGREE" in line for line in findings({"times": forged}))


def test_a_contender_that_fails_is_a_row_and_the_figure_shows_it() -> None:
    config = majority_solve.Config(
        races=(majority_solve.Size(5, 2.0),), scale=(majority_solve.Size(5, 2.0),), rounds=1
    )
    config = replace(config, limits=Limits(seconds=0.001), least_seconds=0.0)
    outcome = majority_solve.run(config, lambda: None)
    times = outcome.tables["times"]
    assert set(times.column("outcome")) == {"over 0.001 s"}
    assert set(times.column("median_seconds")) == {None}
    assert all("over 0.001 s" in line for line in outcome.findings[:5])
    assert majority_solve.EXPERIMENT.plot(outcome).get_axes()


def test_the_figure_has_both_panels(outcome: Outcome) -> None:
    left, right = majority_solve.EXPERIMENT.plot(outcome).get_axes()
    assert len(left.get_lines()) >= 5
    hollow = [line for line in right.get_lines() if line.get_markerfacecolor() == "white"]
    assert any(np.isfinite(np.asarray(line.get_xdata(), float)).any() for line in hollow)
    assert not majority_solve.EXPERIMENT.repeatable
