"""What broke something once, replayed; and a short part of the fuzz that looks for more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robustness.entries import Entry, entries, fault
from tests.robustness.fuzz import Fuzz
from tests.robustness.worker import Worker

CORPUS = dict(entries())
SECONDS = 30.0
CASES = 60


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Worker(tmp_path_factory.mktemp("worker")) as found:
        yield found


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
def test_what_broke_something_once(name: str, worker: Worker, tmp_path: Path) -> None:
    entry = CORPUS[name]
    ended = worker.run(entry.prepare(tmp_path), SECONDS)
    assert fault(ended, entry.expect) is None, entry.what


def test_the_corpus_is_there_and_says_what_it_is() -> None:
    assert len(CORPUS) >= 40
    assert all(entry.what and entry.expect in ("refused", "harmless") for entry in CORPUS.values())


@pytest.mark.slow
def test_what_hangs_and_what_is_not_refused_is_told(worker: Worker, tmp_path: Path) -> None:
    slow = ["majority", "--voters", "41", "--epsilon", "1", "--allowance", "3"]
    assert fault(worker.run(slow, 0.001), "harmless") is not None
    small = ["reveal-or-obscure", "--records", "9", "--categories", "2", "--epsilon", "1"]
    fine = worker.run(Entry("a rule", small).prepare(tmp_path), SECONDS)
    assert fault(fine, "harmless") is None
    assert fault(fine, "refused") is not None


@pytest.mark.slow
def test_a_short_fuzz_finds_nothing(worker: Worker, tmp_path: Path) -> None:
    found = Fuzz(seed=1, folder=tmp_path).run(worker, cases=CASES)
    assert [f"{entry.arguments}: {why}" for entry, why in found] == []
