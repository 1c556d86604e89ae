"""What broke something once, replayed; and a short part of the fuzz that looks for more."""

from __future__ import annotations

import json
import os
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


@pytest.mark.parametrize("name", CORPUS)
def test_what_broke_something_once(name: str, worker: Worker, tmp_path: Path) -> None:
    entry = CORPUS[name]
    ended = worker.run(entry.prepare(tmp_path), SECONDS)
    assert fault(ended, entry.expect) is None, entry.what


def test_the_corpus_is_there_and_says_what_it_is() -> None:
    assert len(CORPUS) >= 40
    assert all(entry.what and entry.expect in ("refused", "harmless") for entry in CORPUS.values())


def test_what_hangs_and_what_is_not_refused_is_told(worker: Worker, tmp_path: Path) -> None:
    slow = ["majority", "--mechanisms", "41", "--epsilon", "1", "--allowance", "3"]
    assert fault(worker.run(slow, 0.001), "harmless") is not None
    small = ["roo", "--records", "9", "--letters", "2", "--epsilon", "1"]
    fine = worker.run(Entry("a rule", small).prepare(tmp_path), SECONDS)
    assert fault(fine, "harmless") is None
    assert fault(fine, "refused") is not None


def test_a_stray_line_shifts_no_answer_and_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a library would write it, to the descriptor: with an end of line, and without one."""
    begun = tmp_path / "sitecustomize.py"
    begun.write_text(
        ""
        "import os, dpopt.cli\nmain = dpopt.cli.main\n"
        "def loud(arguments):\n    os.write(1, b'stray\\nwords')\n    main(arguments)\n"
        "dpopt.cli.main = loud\n"
    )
    root = str(Path(__file__).parents[2])
    monkeypatch.setattr("tests.robustness.worker.PATH", os.pathsep.join([str(tmp_path), root]))
    with Worker(tmp_path) as loud:
        for records in ("9", "0", "8"):
            ended = loud.run(
                ["roo", "--records", records, "--letters", "2", "--epsilon", "1", "--json"], SECONDS
            )
            assert ended.out.startswith("stray\nwords")
            if records == "0":
                assert (ended.code, "records is 0" in ended.err) == (2, True)
            else:
                out = ended.out.removeprefix("stray\nwords\n")
                assert json.loads(out)["setting"]["records"] == int(records)


def test_a_short_fuzz_finds_nothing(worker: Worker, tmp_path: Path) -> None:
    found = Fuzz(seed=1, folder=tmp_path).run(worker, cases=CASES)
    assert [f"{entry.arguments}: {why}" for entry, why in found] == []


def test_the_fuzz_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    first, second, other = (Fuzz(seed=seed, folder=tmp_path) for seed in (7, 7, 8))
    cases = [first.case() for _ in range(20)]
    assert cases == [second.case() for _ in range(20)]
    assert cases != [other.case() for _ in range(20)]
