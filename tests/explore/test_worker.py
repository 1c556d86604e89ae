"""The process that answers for the page: bounded in time and memory, deaf to Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from dpopt.explore.fields import texts_of
from dpopt.explore.worker import Worker
from tests.explore.naps import Nap

NAP = texts_of(Nap(0.0))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(seconds=60.0)
    yield worker
    worker.close()


def said(worker: Worker, **texts: str) -> str:
    return worker.html(Nap, NAP | texts)


def process_of(worker: Worker) -> int:
    assert worker._running is not None
    return worker._running[0].pid


def test_an_answer_comes_from_another_process_which_stays(worker: Worker) -> None:
    assert '<dd data-fact="value">0.25</dd>' in said(worker, seconds="0.25")
    first = process_of(worker)
    assert first != os.getpid()
    assert "seconds is -1.0; it must be" in said(worker, seconds="-1")
    assert process_of(worker) == first


def test_what_takes_too_long_is_given_up_and_the_next_is_answered(worker: Worker) -> None:
    said(worker)
    first = process_of(worker)
    worker.seconds = 0.5
    html = said(worker, seconds="3600")
    worker.seconds = 60.0
    assert "nap with these values takes longer than the 0.5 seconds of this page" in html
    assert html.count("<") == 2
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert "data-fact" in said(worker)


def test_what_asks_for_too_much_memory_is_a_sentence(worker: Worker) -> None:
    assert "more memory" in said(worker, pages=str(2**42 + 1))
    assert "data-fact" in said(worker)


def test_a_process_that_dies_is_a_sentence(worker: Worker) -> None:
    assert "ended the process of this page" in said(worker, ending="death")
    assert "data-fact" in said(worker)


def test_ctrl_c_is_for_the_server_which_ends_it(worker: Worker) -> None:
    said(worker)
    first = process_of(worker)
    os.kill(first, signal.SIGINT)
    assert "data-fact" in said(worker)
    assert process_of(worker) == first
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    worker.close()
    assert "data-fact" in said(worker)
