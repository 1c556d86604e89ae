"""Processes killed, many at once, forked or interrupted: nothing that was spent is lost."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import pytest

from dpopt import BudgetError, Guarantee, Ledger, ParameterError
from dpopt import ledger as ledgers

HALF = Guarantee(0.5)
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.ledger"


def charge(ledger: Ledger, guarantee: Guarantee = HALF) -> None:
    ledger.charge(guarantee, "a", what="a count")


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


KILLED = """
import os, signal, sys
import dpopt.ledger
from dpopt import Design, Guarantee, Kernel, Ledger, design

kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
path, when = sys.argv[1:]
ledger = Ledger(path)

if when == "drawing":
    Design.release = kill
    ledger.release(design(Kernel("zero-one", 0.5, inputs=2)), 0, "a")
connected = dpopt.ledger._connected

def watched(path, mode):
    db = connected(path, mode)
    db.set_trace_callback(lambda asked: asked.startswith(when) and kill())
    return db

dpopt.ledger._connected = watched
if when == "half written":
    db = connected(ledger.path, "rw")
    # Pages that do not fit into the cache are written to the file before the transaction ends.
    db.execute("PRAGMA cache_size = 2")
    db.execute("BEGIN IMMEDIATE")
    size = os.path.getsize(path)
    while os.path.getsize(path) <= size:
        db.execute("INSERT INTO entries SELECT NULL, time, 'b', what, epsilon, delta, count,"
                   "spent_epsilon, spent_delta, folds FROM entries LIMIT 100")
    kill()
ledger.charge(Guarantee(0.5), "a", what="a count")
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("when", "counted"),
    [("BEGIN", 1), ("INSERT", 1), ("COMMIT", 1), ("half written", 1), ("drawing", 2)],
)
def test_who_is_killed_has_written_what_it_drew(when: str, counted: int, path: Path) -> None:
    ledger = Ledger(path, Guarantee(1.5))
    charge(ledger)
    found = subprocess.run([sys.executable, "-c", KILLED, str(path), when], check=False)
    assert found.returncode == -signal.SIGKILL
    if when == "half written":
        assert path.with_name(f"{path.name}-journal").stat().st_size > 0
    assert len(Ledger(path).entries()) == len(ledger.entries()) == counted
    assert sound(path)
    for _ in range(3 - counted):
        charge(ledger)
    with pytest.raises(BudgetError):
        charge(ledger)


OFTEN = """
import sys
from dpopt import Guarantee, Ledger
ledger = Ledger(sys.argv[1])
while True:
    ledger.charge(Guarantee(0.5), "a", what="a count")
    sys.stdout.write("x")
    sys.stdout.flush()
"""


@pytest.mark.nightly
@pytest.mark.slow
@posix
def test_who_is_killed_at_any_time_has_written_what_it_drew(path: Path) -> None:
    drawn, shuffled = 0, random.Random(3)
    for killed in range(1, 6):
        process = subprocess.Popen([sys.executable, "-c", OFTEN, str(path)], stdout=-1)
        assert process.stdout is not None
        drawn += len(process.stdout.read(1))
        time.sleep(0.05 * shuffled.random())
        process.send_signal(signal.SIGKILL)
        drawn += len(process.stdout.read())
        process.stdout.close()
        process.wait()
        # At most the one that was being drawn is written without a draw.
        assert drawn <= len(Ledger(path).entries()) <= drawn + killed
    assert sound(path)


def charge_until_refused(path: str) -> int:
    """The number of charges, which all begin at the same time."""
    ledger, count = Ledger(path, Guarantee(30.0)), 0
    time.sleep(-time.time() % 1)
    while True:
        try:
            charge(ledger)
        except BudgetError:
            return count
        count += 1


@pytest.fixture(scope="module")
def processes() -> Iterator[Pool]:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        yield pool


@pytest.mark.slow
def test_processes_together_never_leave_the_budget(path: Path, processes: Pool) -> None:
    """Four begin the ledger at once, too."""
    assert sum(processes.map(charge_until_refused, [str(path)] * 4, chunksize=1)) == 60
    assert Ledger(path).total("a") == ("simple", Guarantee(30.0))
    assert len(Ledger(path).entries()) == 60
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
def test_threads_together_never_leave_the_budget(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(charge_until_refused, [str(path)] * 8)) == 60
    ledger = Ledger(path)
    assert len(ledger.entries()) == 60
    with ThreadPoolExecutor(8) as pool:
        # One object in all threads.
        assert set(pool.map(lambda _: ledger.left("a"), range(20))) == {0.0}


def in_a_child(does: Any) -> int:
    """The exit code of a forked process: 0 if the call returned; it is stopped if it hangs."""
    process = os.fork()
    if process == 0:
        signal.alarm(30)
        code = 1
        try:
            does()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_charges_while_a_thread_of_its_parent_does(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread is within its transaction when the process forks, which waits for its end."""
    ledger = Ledger(path, Guarantee(1.0))
    inside, parent, fits = threading.Event(), os.getpid(), ledgers.allowed

    def slowly(*given: Any) -> bool:
        if os.getpid() == parent:
            inside.set()
            time.sleep(0.3)
        return fits(*given)

    monkeypatch.setattr(ledgers, "allowed", slowly)
    writer = threading.Thread(target=charge, args=(ledger,))
    writer.start()
    assert inside.wait(30)

    def charges() -> None:
        charge(ledger)
        with pytest.raises(BudgetError):
            charge(ledger, Guarantee(0.1))

    assert in_a_child(charges) == 0
    writer.join(30)
    assert len(ledger.entries("a")) == 2
    assert ledger.left("a") == 0.0
    assert sound(path)


class Watched:
    """A connection that is interrupted where a statement begins."""

    def __init__(self, db: sqlite3.Connection, when: str, error: BaseException) -> None:
        self.db, self.when, self.error = db, when, error

    def execute(self, asked: str, *given: Any) -> Any:
        if asked.startswith(self.when):
            raise self.error
        return self.db.execute(asked, *given)

    def close(self) -> None:
        self.db.close()


@pytest.mark.parametrize("when", ["BEGIN", "INSERT", "COMMIT"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), sqlite3.OperationalError("disk is full")])
def test_who_is_interrupted_has_written_nothing_and_drawn_nothing(
    when: str, error: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    charge(ledger)
    connected = sys.modules["dpopt.ledger"]._connected
    with monkeypatch.context() as patched:
        patched.setattr("dpopt.ledger._connected", lambda *g: Watched(connected(*g), when, error))
        with pytest.raises((KeyboardInterrupt, ParameterError), match=r"^$|disk is full; nothing"):
            charge(ledger)
    assert len(ledger.entries()) == 1
    charge(ledger)
    with pytest.raises(BudgetError):
        charge(ledger)


def test_an_entry_waits_for_the_disk(path: Path) -> None:
    """FULL is 2; EXTRA, 3, waits for the folder from which the journal was taken, too."""
    with Ledger(path)._opened() as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] >= 2
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_ledger_that_cannot_be_written_draws_nothing(path: Path) -> None:
    ledger = Ledger(path)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dpopt.ledger._PATIENCE", 0.1)
        with pytest.raises(ParameterError, match="locked; nothing was drawn"):
            charge(ledger)
    held.close()
    charge(ledger)
