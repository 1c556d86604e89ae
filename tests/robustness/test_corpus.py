"""What broke something once, replayed; and a short part of the fuzz that looks for more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robustness.entries import entries, fault
from tests.robustness.fuzz import Fuzz
from tests.robustness.worker import Worker

CORPUS = dict(entries())


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Worker(tmp_path_factory.mktemp("worker")) as found:
        yield found


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
def test_what_broke_something_once(name: str, worker: Worker, tmp_path: Path) -> None:
    entry = CORPUS[name]
    ended = worker.run(entry.prepare(tmp_path), seconds=30.0)
    assert fault(ended, entry.expect) is None, entry.what


@pytest.mark.slow
def test_a_short_fuzz_finds_nothing(worker: Worker, tmp_path: Path) -> None:
    found = Fuzz(seed=1, folder=tmp_path).run(worker, cases=60)
    assert [f"{entry.arguments}: {why}" for entry, why in found] == []
