"""A ledger refuses what leaves its budget, and any file that nobody wrote."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Guarantee, Ledger, ParameterError
from dpopt.ledger import Entry
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.journal import chained

TENTH = Guarantee(0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.ledger"


def charge(ledger: Ledger, guarantee: Guarantee = TENTH, **given: Any) -> Entry:
    return ledger.charge(guarantee, **{"what": "a count", **given})


def test_entries_are_read_again(path: Path) -> None:
    ledger = Ledger(path, Guarantee(3.0, 1e-6))
    pair = DominatingPair((3, 1), (1, 3), 4)
    made = [
        charge(ledger, dataset="May", count=2),
        charge(ledger, Guarantee(math.log(3)), pair=pair),
        charge(ledger, dataset="May", group="voters", at_most=Guarantee(0.2, 1e-9), folds=3),
        charge(ledger, dataset="May", group="others", at_most=TENTH, composes=None),
    ]
    for again in (ledger, Ledger(path), pickle.loads(pickle.dumps(ledger))):
        assert list(again.entries()) == made
        assert again.datasets == ("May", "unnamed")
        assert again.releases("May") == 4
        assert again.releases() == 5
        assert again.budget == Guarantee(3.0, 1e-6)
        assert again.total("May") == ledger.total("May")


def test_a_budget_refuses_before_anything_is_written(path: Path) -> None:
    ledger = Ledger(path, Guarantee(0.5))
    quarter = Guarantee(0.25)
    charge(ledger, quarter)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"has an epsilon of 0\.25 left of the budget"):
        charge(ledger, quarter, count=2)
    assert path.read_bytes() == before
    charge(ledger, quarter)
    assert ledger.left("unnamed") == 0.0
    with pytest.raises(ParameterError, match="an epsilon of 0 left"):
        charge(ledger, Guarantee(1e-300))
    # Another data set has its own.
    charge(ledger, quarter, dataset="other")
    assert ledger.total() == ("simple", Guarantee(0.75))


def test_a_budget_is_composed_as_tightly_as_is_known(path: Path) -> None:
    """100 releases of 0.1 spend 10 by simple composition, and 4.7746 by the best."""
    ledger = Ledger(path, Guarantee(4.8, 1e-6), adaptive=False)
    charge(ledger, count=100)
    name, spent = ledger.total("unnamed")
    assert name == "optimal"
    assert 4.77 < spent.epsilon < 4.78
    with pytest.raises(ParameterError, match="of the budget"):
        charge(ledger, count=10)


def test_a_ledger_is_adaptive_unless_told_otherwise(path: Path) -> None:
    """100 releases of 0.1: rho is 0.5, and half of the delta is kept for what is random."""
    by_hand = 0.5 + 2 * math.sqrt(0.5 * math.log(2e6))
    tight = Ledger(path.with_name("tight"), Guarantee(by_hand * (1 - 1e-9), 1e-6))
    with pytest.raises(ParameterError, match="of the budget"):
        charge(tight, count=100)
    ledger = Ledger(path, Guarantee(by_hand * (1 + 1e-9), 1e-6))
    charge(ledger, count=100)
    assert ledger.total("unnamed") == ("budget", ledger.budget)
    assert ledger.total()[0] == "simple"
    assert ledger.compositions("unnamed")["optimal"].epsilon < 4.8
    assert "by the budget, and (4.77" in ledger.statement("unnamed")
    assert "by optimal composition, if their number and what each" in ledger.statement("unnamed")
    with pytest.raises(ParameterError, match="of the budget"):
        charge(ledger)
    assert Ledger(path).adaptive
    with pytest.raises(ParameterError, match="adaptive is False"):
        Ledger(path, adaptive=False)


@pytest.mark.parametrize(
    ("composes", "count", "epsilon"),
    [
        (False, 1, 0.1),
        (False, 2, 0.5),
        (False, 100, 0.5),
        (True, 2, 0.2),
        (True, 100, 0.5),
        (None, 1, 0.1),
        (None, 2, 0.5),
        (None, 100, 10.0),
    ],
)
def test_a_group_shares_its_voters(
    composes: bool | None, count: int, epsilon: float, path: Path
) -> None:
    """Five voters of 0.1, and queries of 0.1 each: what is proved of each of the three cases."""
    ledger = Ledger(path)
    for part in (1, count - 1):
        if part:
            charge(ledger, count=part, group="g", at_most=TENTH, folds=5, composes=composes)
    assert math.isclose(ledger.total("unnamed")[1].epsilon, epsilon)
    charge(ledger, Guarantee(1.0))
    assert math.isclose(ledger.total("unnamed")[1].epsilon, epsilon + 1.0)
    with pytest.raises(ParameterError, match="another at_most, folds or composes"):
        charge(ledger, group="g", at_most=TENTH, folds=6, composes=composes)


def test_fresh_votes_compose_or_their_voters_do(path: Path) -> None:
    ledger = Ledger(path)
    charge(ledger, Guarantee(3.0), count=10, at_most=TENTH, folds=5)
    assert math.isclose(ledger.total("unnamed")[1].epsilon, 5.0)
    charge(ledger, Guarantee(0.2), count=10, at_most=TENTH, folds=5)
    assert math.isclose(ledger.total("unnamed")[1].epsilon, 7.0)


def brute_epsilon(pairs: list[DominatingPair], delta: float) -> float:
    """The epsilon of the product law, over all tuples of outcomes."""
    laws = []
    for outcome in itertools.product(*(range(len(pair.upper)) for pair in pairs)):
        p = math.prod(pair.upper[i] / pair.scale for pair, i in zip(pairs, outcome, strict=True))
        q = math.prod(pair.lower[i] / pair.scale for pair, i in zip(pairs, outcome, strict=True))
        laws.append((p, q))
    low, high = 0.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        spent = sum(max(0.0, p - math.exp(middle) * q) for p, q in laws)
        low, high = (low, middle) if spent <= delta else (middle, high)
    return high


def test_pairs_of_different_mechanisms_against_all_outcomes(path: Path) -> None:
    pytest.importorskip("dp_accounting")
    one = DominatingPair((5, 3, 2), (2, 3, 5), 10)
    other = DominatingPair((4, 3, 1), (1, 3, 4), 8)
    ledger = Ledger(path, adaptive=False)
    charge(ledger, Guarantee(math.log(2.5) + 1e-9), pair=one, count=3)
    charge(ledger, Guarantee(math.log(4) + 1e-9), pair=other, count=2)
    charge(ledger, Guarantee(0.5))
    response = DominatingPair((10**9, 606530660), (606530660, 10**9), 1606530660)
    expected = brute_epsilon([one] * 3 + [other] * 2 + [response], 0.01)
    known = ledger.compositions("unnamed", 0.01)
    assert expected - 1e-9 <= known["exact"].epsilon <= expected + 1e-3
    assert ledger.total("unnamed", 0.01)[0] == "exact"
    assert known["exact"].epsilon < known["optimal"].epsilon < known["simple"].epsilon


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dataset": ""}, "dataset is"),
        ({"dataset": "a\nb"}, "printable"),
        ({"what": "x" * 1001}, "at most 1000"),
        ({"count": 0}, "count is 0"),
        ({"group": "g"}, "at_most is None"),
        ({"guarantee": 0.1}, "must be a Guarantee"),
        ({"at_most": 0.1}, "must be a Guarantee"),
        ({"composes": "yes"}, "composes is"),
        ({"pair": (1, 2)}, "must be a DominatingPair"),
    ],
)
def test_what_cannot_be_written_is_refused(given: dict[str, Any], said: str, path: Path) -> None:
    ledger = Ledger(path)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=said):
        ledger.charge(**{"guarantee": TENTH, "what": "a count", **given})
    assert path.read_bytes() == before


def test_another_budget_or_design_is_refused(path: Path) -> None:
    Ledger(path, Guarantee(1.0), design="abc")
    with pytest.raises(ParameterError, match="which stays"):
        Ledger(path, Guarantee(2.0))
    with pytest.raises(ParameterError, match="for another design"):
        Ledger(path, design="abd")
    assert Ledger(path, Guarantee(1.0), design="abc").budget == Guarantee(1.0)
    for wrong in ({"budget": 1.0}, {"design": ""}, {"adaptive": 1}):
        with pytest.raises(ParameterError):
            Ledger(path, **wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("content", [b"", b"{}\n", b"hello", b"\0" * 40, b'{"chain":"', b"\xff\n"])
def test_a_foreign_file_is_refused_and_kept(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(ParameterError, match="cannot be used"):
        Ledger(path)
    assert path.read_bytes() == content


def test_every_changed_byte_is_refused_or_changes_nothing(path: Path) -> None:
    ledger = Ledger(path, Guarantee(3.0))
    for name in ("a", "b", "a"):
        charge(ledger, dataset=name)
    sound = path.read_bytes()
    shuffled = random.Random(1)
    for place in range(len(sound)):
        # All of them at the end, which is read by a rule of its own; else two of them.
        others = (0, 10, 32) if place == len(sound) - 1 else [shuffled.choice((0, 10, 32))]
        for byte in {sound[place] ^ 1, *others} - {sound[place]}:
            path.write_bytes(sound[:place] + bytes([byte]) + sound[place + 1 :])
            with suppress(ParameterError):
                found = Ledger(path)
                assert (found.total("a"), found.total("b")) == (ledger_total(2), ledger_total(1))
                assert found.budget == Guarantee(3.0)
                assert [entry.dataset for entry in found.entries()] == ["a", "b", "a"]
                # Only the end of the last line may be another byte, and only a zero.
                assert (place, byte) == (len(sound) - 1, 0)


def ledger_total(count: int) -> tuple[str, Guarantee]:
    return "simple", dpopt.privacy.simple_composition(TENTH, count)


def test_lines_that_are_missing_moved_or_doubled_are_refused(path: Path) -> None:
    ledger = Ledger(path)
    for name in "abcd":
        charge(ledger, dataset=name)
    lines = path.read_bytes().splitlines(keepends=True)
    for wrong in (
        [*lines[:2], *lines[3:]],
        [lines[0], lines[2], lines[1], *lines[3:]],
        [*lines, lines[-1]],
        [*lines, lines[0]],
        lines[1:],
    ):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(ParameterError, match="cannot be used"):
            Ledger(path)


def test_a_line_of_which_a_crash_left_a_part_is_mended(path: Path) -> None:
    """Every prefix: a whole line without its end counts; a part of one is taken away, and said."""
    ledger = Ledger(path)
    charge(ledger, dataset="a")
    start = path.stat().st_size
    charge(ledger, dataset="a")
    whole = path.read_bytes()
    for size in range(start + 1, len(whole)):
        for zeros in (b"", b"\0" * 7):
            path.write_bytes(whole[:size] + zeros)
            again = Ledger(path)
            assert again.releases("a") == 1 + (size == len(whole) - 1)
            charge(again, dataset="a")
            counted = 3 if size == len(whole) - 1 else 2
            assert again.releases("a") == Ledger(path).releases("a") == counted
            assert (b'"unfinished":' in path.read_bytes()) == (counted == 2)


def test_a_ledger_that_is_replaced_or_cut_while_it_is_open(path: Path) -> None:
    ledger = Ledger(path)
    charge(ledger)
    kept = path.read_bytes()
    path.write_bytes(kept[: kept.index(b"\n") + 1])
    with pytest.raises(ParameterError, match="replaced or changed"):
        charge(ledger)
    path.unlink()
    with pytest.raises(ParameterError, match="cannot be used"):
        charge(ledger)
    assert not path.exists()


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="is missing"):
        Ledger(tmp_path / "none" / "a.ledger")
    with pytest.raises(ParameterError, match="a directory"):
        Ledger(tmp_path)


def charge_often(path: str, times: int) -> int:
    ledger = Ledger(path, Guarantee(1000.0))
    for _ in range(times):
        charge(ledger, Guarantee(0.5), dataset="a")
    return times


@pytest.fixture(scope="module")
def processes() -> Iterator[Pool]:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        yield pool


def test_four_processes_at_once(path: Path, processes: Pool) -> None:
    assert sum(processes.starmap(charge_often, [(str(path), 50)] * 4)) == 200
    assert sum(1 for _ in Ledger(path).entries()) == 200
    assert Ledger(path).total("a") == ("simple", Guarantee(100.0))


def charge_until_refused(path: str) -> int:
    ledger, count = Ledger(path, Guarantee(10.0)), 0
    while True:
        try:
            charge(ledger, Guarantee(0.5), dataset="a")
        except ParameterError:
            return count
        count += 1


def test_processes_together_never_leave_the_budget(path: Path, processes: Pool) -> None:
    assert sum(processes.map(charge_until_refused, [str(path)] * 4)) == 20
    assert Ledger(path).total("a") == ("simple", Guarantee(10.0))


KILLED = """
import sys
from dpopt import Guarantee, Ledger
ledger = Ledger(sys.argv[1])
while True:
    ledger.charge(Guarantee(0.5), what="a count", dataset="a")
    sys.stdout.write("x")
    sys.stdout.flush()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_who_is_killed_has_written_what_it_drew(path: Path) -> None:
    drawn, shuffled = 0, random.Random(3)
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=-1)
        assert process.stdout is not None
        drawn += len(process.stdout.read(1))
        time.sleep(0.05 * shuffled.random())
        process.send_signal(signal.SIGKILL)
        drawn += len(process.stdout.read())
        process.stdout.close()
        process.wait()
        # At most the one that was being drawn is written without a draw.
        known = Ledger(path).releases("a")
        assert drawn <= known <= drawn + 3
    charge(Ledger(path), dataset="a")


def test_a_file_system_without_locks_is_refused(path: Path, monkeypatch: Any) -> None:
    ledger = Ledger(path)

    def refuse(_: int) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr("dpopt._lock._lock", refuse)
    with pytest.raises(ParameterError, match="has no locks"):
        charge(ledger)
    assert ledger.releases() == 0


def test_a_full_disk_is_refused(path: Path, monkeypatch: Any) -> None:
    ledger = Ledger(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(ParameterError, match="no space left"):
            charge(ledger)
    # The line stood there, and whether the disk has it is not known: it counts.
    assert ledger.releases() == Ledger(path).releases() == 1


def test_many_entries_are_read_in_one_pass(path: Path) -> None:
    ledger = Ledger(path)
    charge(ledger)
    line = next(ledger.entries()).to_dict()
    chain, lines = path.read_bytes().splitlines()[-1][10:74].decode(), []
    for place in range(20_000):
        record = {**line, "dataset": f"d{place % 5000}"}
        lines.append(chained(chain, record))
        chain = lines[-1][10:74].decode()
    with path.open("ab") as file:
        file.write(b"".join(lines))
    assert ledger.releases() == Ledger(path).releases() == 20_001
    assert len(ledger.datasets) == 5001
    assert ledger.releases("d17") == 4
