"""A backend that fails in every way it can: never an answer, and nothing half written."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import dpopt
from dpopt import DpoptError, InfeasibleError, SolverError, Status, majority, smoothed, solve
from dpopt.lp import Model, Rows
from dpopt.lp.backends import RawSolution, Session
from dpopt.lp.backends.highs import Highs
from tests.kernel.brute import optimal
from tests.lp.zoo import ZOO, random_program
from tests.robustness.registry import small_problem

Spoil = Callable[[RawSolution], RawSolution]


@dataclass
class Faulty:
    """HiGHS, its answers spoiled from one run on."""

    spoil: Spoil
    first: int = 0
    name: str = "faulty"
    tolerance: float = 1e-9

    def load(self, model: Model) -> Session:
        return _Session(Highs().load(model), self.spoil, self.first)


class _Session:
    def __init__(self, inner: Session, spoil: Spoil, first: int) -> None:
        self.inner, self.spoil, self.left = inner, spoil, first

    @property
    def ways(self) -> int:
        return self.inner.ways

    def append(self, rows: Rows) -> None:
        self.inner.append(rows)

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        raw = self.inner.run(time_limit, way=way)
        self.left -= 1
        return raw if self.left >= 0 else self.spoil(raw)


def raising(error: BaseException) -> Spoil:
    def spoil(raw: RawSolution) -> RawSolution:
        del raw
        raise error

    return spoil


def at_x(change: Callable[[np.ndarray], np.ndarray]) -> Spoil:
    return lambda raw: replace(raw, x=None if raw.x is None else change(raw.x.copy()))


def at_y(change: Callable[[np.ndarray], np.ndarray]) -> Spoil:
    return lambda raw: replace(raw, y=None if raw.y is None else change(raw.y))


def first_to(value: float) -> Spoil:
    return at_x(lambda x: np.append(value, x[1:]))


# Each of them a point, a status or multipliers that are wrong for every program below.
FAULTS: dict[str, Spoil] = {
    **{
        status.value: lambda raw, status=status: replace(raw, status=status)
        for status in Status
        if status is not Status.OPTIMAL
    },
    "no point": lambda raw: replace(raw, x=None),
    "NaN in x": first_to(math.nan),
    "infinity in x": first_to(math.inf),
    "NaN in all of x": at_x(lambda x: x * math.nan),
    "a point too short": at_x(lambda x: x[:-1]),
    "a point in a column": at_x(lambda x: x[:, None]),
    "a point of complex numbers": at_x(lambda x: x * 1j),
    "multipliers too many": at_y(lambda y: np.append(y, 0.0)),
    "multipliers of NaN": at_y(lambda y: y * math.nan),
    "multipliers of infinity": at_y(lambda y: np.full_like(y, math.inf)),
    "multipliers that prove nothing": at_y(lambda y: 1e3 * (1.0 + np.abs(y))),
}


TASKS: dict[str, Callable[[Faulty], object]] = {
    "program": lambda backend: solve(small_problem(), backend),
    "majority": lambda backend: dpopt.design(dpopt.Majority(11, 0.3, 3), backend=backend),
    "majority with delta": lambda backend: dpopt.design(
        dpopt.Majority(5, 0.3, 2, voter_delta=1e-3, delta=1e-2), backend=backend
    ),
    "worst case": lambda backend: dpopt.design(
        dpopt.Majority(5, 0.3, 2, objective="worst-case", prior="uniform:0.5,1"), backend=backend
    ),
    "kernel": lambda backend: optimal(1.0 - np.eye(3), epsilon=1.0, backend=backend),
    "population kernel": lambda backend: dpopt.design(
        dpopt.Population([0.2, 0.3, 0.5], 1.0, [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]),
        backend=backend,
    ),
    "optimal sampler": lambda backend: dpopt.design(dpopt.BestSampler(4, 2, 1.0), backend=backend),
    "leximin": lambda backend: dpopt.design(
        dpopt.PublicPrior([0.2, 0.3, 0.5], 1.0, objective="leximin"), backend=backend
    ),
}


def test_without_faults_all_answer() -> None:
    for task in TASKS.values():
        assert task(Faulty(lambda raw: raw)) is not None


@pytest.mark.sample(40)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_from_the_first_run_on(task: str, fault: str) -> None:
    with pytest.raises((SolverError, InfeasibleError)) as caught:
        TASKS[task](Faulty(FAULTS[fault]))
    assert str(caught.value).endswith(".")


@pytest.mark.slow_after(9)
@pytest.mark.parametrize("task", ["majority", "majority with delta", "leximin"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("first", [1, 2])
def test_a_fault_in_a_later_run(task: str, fault: str, first: int) -> None:
    """An error, or the answer of the runs before it; the answer is then the right one."""
    try:
        found = TASKS[task](Faulty(FAULTS[fault], first))
    except (SolverError, InfeasibleError):
        return
    right = TASKS[task](Faulty(lambda raw: raw))
    if isinstance(found, dpopt.Design):
        assert isinstance(right, dpopt.Design)
        assert found.value == pytest.approx(right.value, rel=1e-9)
        assert found.private
    else:
        np.testing.assert_allclose(np.asarray(found), np.asarray(right), rtol=1e-9)


# A wrong point that looks like an optimum: outside the rows, or inside and not the best.
WRONG_POINTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "upper corner": np.ones_like,
    "beyond the box": lambda x: x + 7.0,
    "a little outside": lambda x: x + 1e-3,
    "origin": np.zeros_like,
    "half of it": lambda x: 0.5 * x,
}


@pytest.mark.sample(20)
@pytest.mark.parametrize("point", WRONG_POINTS)
@pytest.mark.parametrize("task", TASKS)
def test_a_wrong_point_gives_no_wrong_mechanism(task: str, point: str) -> None:
    """Refused; or, where a repair makes it private, certified and no better than its bound."""
    try:
        found = TASKS[task](Faulty(at_x(WRONG_POINTS[point])))
    except DpoptError:
        return
    assert task != "program"
    right = TASKS[task](Faulty(lambda raw: raw))
    if isinstance(found, dpopt.Design):
        assert isinstance(right, dpopt.Design)
        assert found.private
        assert found.value is not None
        assert right.bound is not None
        assert found.value <= right.bound + 1e-12
    elif isinstance(found, np.ndarray):
        np.testing.assert_allclose(found, np.asarray(right), rtol=1e-6)
    else:
        assert found.certificate is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize("task", TASKS)
def test_what_a_backend_raises_is_not_swallowed_and_the_next_run_works(task: str) -> None:
    for error in (MemoryError, RuntimeError, OSError, ValueError, KeyboardInterrupt):
        with pytest.raises((error, DpoptError)):
            TASKS[task](Faulty(raising(error("no memory"))))
    TASKS[task](Faulty(lambda raw: raw))


def test_work_in_threads_is_that_in_a_row() -> None:
    """Programs, designs, audits and proofs of different kinds at once; one problem many times."""
    rng = np.random.default_rng(0)
    shared = majority.gamma_problem(dpopt.Majority(21, 0.2, 4), [1.0] * 11)
    problems = [*(random_program(seed).problem() for seed in range(12)), *[shared] * 4]
    problems += [case.build() for case in ZOO]
    jobs: list[Callable[[], object]] = [
        lambda program=program: solve(program).x.tobytes() for program in problems
    ]
    for voters, epsilon in ((3, 0.1), (5, 0.4), (11, 0.2)):
        jobs.append(lambda k=voters, e=epsilon: dpopt.design(dpopt.Majority(k, e, k / 3)).table)
    for records, categories in ((9, 2), (20, 3)):
        jobs.append(
            lambda n=records, k=categories: dpopt.design(dpopt.RevealOrObscure(n, k, 0.5)).table
        )
    for size in (2, 3, 5):
        loss = rng.random((size, size))
        jobs.append(lambda c=loss: optimal(c, epsilon=1.0).table.weights)
        prior = rng.dirichlet(np.ones(size))
        jobs.append(
            lambda q=prior: dpopt.design(
                dpopt.PublicPrior(q, 0.7, objective="leximin")
            ).diagonal.tobytes()
        )
    mechanism = smoothed.SamplingHistogram(30, 10)
    jobs.append(lambda: smoothed.smoothed_delta(mechanism, 0.5, [[0.4, 0.6], [0.7, 0.3]]).log_delta)
    alone = [job() for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            assert list(pool.map(lambda job: job(), jobs)) == alone


def test_one_file_written_by_many_threads_is_whole(tmp_path: Path) -> None:
    designs = [dpopt.design(dpopt.Majority(voters, 0.1, 1)) for voters in (3, 5, 7, 9)]
    path, start = tmp_path / "gamma.json", threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        for _ in range(5):
            designs[number % 4].save(path)
            json.loads(path.read_text())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert list(tmp_path.iterdir()) == [path]
    umask_kept = (tmp_path / "other").touch() or (tmp_path / "other").stat().st_mode
    assert path.stat().st_mode == umask_kept
