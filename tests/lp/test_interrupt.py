"""Ctrl-C in the middle of a solver's own code, which takes no signal itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpopt.lp.backends import interruptible

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

# The solve takes minutes; the signal comes from a thread that waits until HiGHS is at work.
SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import dpopt
from dpopt import Problem, solve
from dpopt.lp.backends import cvxpy, highs

# A shell starts what is in its background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng, size, working = np.random.default_rng(5), 1500, threading.Event()
problem = Problem("large")
problem.add_variables("x", size, lower=0.0, upper=10.0)
problem.add_rows("rows", rng.uniform(0.1, 1.0, (size, size)), upper=float(size))
problem.maximise(rng.uniform(0.5, 1.0, size))
for module in (cvxpy, highs):
    def told(work, *more, inner=module.interruptible):
        def begun():
            working.set()
            return work()
        return inner(begun, *more)
    module.interruptible = told

def press():
    working.wait()
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, daemon=True).start()
try:
    solve(problem, sys.argv[1])
    print("solved")
except KeyboardInterrupt:
    print("interrupted", dpopt.design(dpopt.Majority(3, 0.1, 1)).private)
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize("backend", ["highs", pytest.param("cvxpy", marks=pytest.mark.nightly)])
def test_ctrl_c_ends_a_long_solve_and_the_next_one_works(backend: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, backend],
        capture_output=True,
        check=False,
        timeout=300,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted True\n", "")


@pytest.fixture
def heard() -> Iterator[None]:
    """Let SIGINT interrupt: a shell starts what is in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.usefixtures("heard")
def test_work_that_is_left_is_asked_to_stop() -> None:
    stopped, begun = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return stopped.wait(60)

    def press() -> None:
        begun.wait()
        # The work begins before the main thread waits for it, which is where a key finds it.
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work, stopped.set)
    assert stopped.is_set()
    assert interruptible(lambda: 7) == 7


@pytest.mark.parametrize("error", [ValueError, TimeoutError, KeyboardInterrupt, SystemExit])
def test_what_the_work_raises_is_raised(error: type[BaseException]) -> None:
    def work() -> None:
        raise error("here")

    with pytest.raises(error, match="here"):
        interruptible(work)


def test_one_thread_does_all_the_work() -> None:
    """HiGHS keeps its own threads for each thread that calls it: they are not started anew."""
    names = {interruptible(lambda: threading.current_thread().ident) for _ in range(50)}
    assert len(names) == 1
    assert names != {threading.main_thread().ident}


def test_other_threads_do_their_own_work() -> None:
    def both() -> tuple[int, int]:
        return interruptible(threading.get_ident), threading.get_ident()

    with ThreadPoolExecutor(4) as pool:
        for inner, outer in pool.map(lambda _: both(), range(20)):
            assert inner == outer


FORKED = """
import os
from dpopt.lp.backends import interruptible
interruptible(lambda: 1)
child = os.fork()
if child == 0:
    os._exit(interruptible(lambda: 5))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_process_starts_a_thread_of_its_own() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, check=True, timeout=60, text=True
    )
    assert ended.stdout == "5\n"
