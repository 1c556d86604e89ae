"""A process that is forked while a thread writes to a ledger goes on by itself."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from dpopt import Guarantee, Ledger, ParameterError, roo

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


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


def test_a_child_charges_while_a_thread_of_its_parent_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "a.ledger", Guarantee(1.0))
    inside, forked, parent, fsync = threading.Event(), threading.Event(), os.getpid(), os.fsync

    def slowly(file: int) -> None:
        if os.getpid() == parent:
            inside.set()
            forked.wait(30)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slowly)
    writer = threading.Thread(
        target=lambda: ledger.charge(Guarantee(0.5), what="a count", dataset="May")
    )
    writer.start()
    assert inside.wait(30)

    def charges() -> None:
        ledger.charge(Guarantee(0.5), what="a count", dataset="May")
        with pytest.raises(ParameterError, match="of the budget"):
            ledger.charge(Guarantee(0.1), what="a count", dataset="May")

    # The file's lock is the writer's until it ends.
    timer = threading.Timer(0.3, forked.set)
    timer.start()
    assert in_a_child(charges) == 0
    writer.join(30)
    timer.join()
    assert ledger.releases("May") == 2
    assert ledger.left("May") == 0.0


def test_a_child_counts_while_a_thread_of_its_parent_does() -> None:
    design = roo.min_count(5, 2, 0.5)
    with design._tally._lock:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        assert in_a_child(lambda: design.release([0, 0, 1, 1, 1])) == 0
        thread.join()
