"""What a ledger read in part, or was stopped at, it reads again: nothing that was spent is lost."""

from __future__ import annotations

import os
import pkgutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpopt import Guarantee, Ledger, ParameterError
from dpopt.privacy.journal import chained


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.ledger"


def charge(ledger: Ledger, epsilon: float, **given: Any) -> None:
    ledger.charge(Guarantee(epsilon), **{"what": "a count", **given})


def nth(function: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The function, interrupted at its n-th call."""
    calls = iter(range(at))

    def interrupted(*given: Any, **named: Any) -> Any:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return function(*given, **named)

    return interrupted


@pytest.mark.parametrize(
    ("where", "at"),
    [
        ("dpopt.ledger.timed", 0),
        ("dpopt.ledger.timed", 7),
        ("dpopt.ledger.Account.add", 0),
        ("dpopt.ledger.Account.add", 5),
        ("dpopt.privacy.journal._Reader.passed", 4),
        ("dpopt.privacy.journal._Reader.remember", 0),
    ],
)
def test_an_interrupted_read_begins_again(
    where: str, at: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = Ledger(path, Guarantee(1.0)), Ledger(path)
    for place in range(9):
        charge(writer, 0.1, what=f"count {place}")
    with monkeypatch.context() as patched:
        patched.setattr(where, nth(pkgutil.resolve_name(where), at))
        with pytest.raises(KeyboardInterrupt):
            reader.total("unnamed")
    with pytest.raises(ParameterError, match="of the budget"):
        charge(reader, 0.3)
    assert reader.releases() == 9


@pytest.mark.parametrize("name", ["passed", "remember"])
def test_an_interrupted_charge_counts(
    name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    reader = type(ledger._journal._reader)
    with monkeypatch.context() as patched:
        # The first call reads nothing new for `remember`; the line is on disk at the second.
        at = {"passed": 0, "remember": 1}[name]
        patched.setattr(reader, name, nth(getattr(reader, name), at))
        with pytest.raises(KeyboardInterrupt):
            charge(ledger, 0.9)
    with pytest.raises(ParameterError, match="of the budget"):
        charge(ledger, 0.9)
    assert ledger.releases() == 1


def test_a_line_that_is_refused_hides_none_before_it(path: Path) -> None:
    ledger, other = Ledger(path, Guarantee(1.0)), Ledger(path)
    charge(other, 0.9)
    sound = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"garbage\n")
    for _ in range(3):
        with pytest.raises(ParameterError, match="changed"):
            charge(ledger, 0.9)
    os.truncate(path, sound)
    with pytest.raises(ParameterError, match="of the budget"):
        charge(ledger, 0.9)


@pytest.mark.parametrize(
    "record", [{"what": "no time"}, {"time": "2026-01-31T23:59:59Z", "what": 1}]
)
def test_a_malformed_line_is_refused_each_time(record: dict[str, Any], path: Path) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    chain = path.read_bytes()[10:74].decode()
    with path.open("ab") as file:
        file.write(chained(chain, record))
    before = path.read_bytes()
    for _ in range(3):
        with pytest.raises(ParameterError, match="malformed"):
            charge(ledger, 0.1)
        with pytest.raises(ParameterError, match="malformed"):
            ledger.total("unnamed")
    assert path.read_bytes() == before


def test_what_was_known_stays_expected_after_a_failure(path: Path) -> None:
    """A ledger that reads anew still knows which file it read, and up to where."""
    ledger = Ledger(path, Guarantee(1.0))
    head = path.read_bytes()
    charge(ledger, 0.9)
    with path.open("ab") as file:
        file.write(b"garbage\n")
    with pytest.raises(ParameterError, match="changed"):
        charge(ledger, 0.1)
    path.write_bytes(head)
    for _ in range(2):
        with pytest.raises(ParameterError, match="replaced or changed"):
            charge(ledger, 0.9)


def test_a_read_waits_while_the_part_of_a_line_is_mended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, other = Ledger(path), Ledger(path)
    charge(ledger, 0.1)
    reached, goes_on, read = threading.Event(), threading.Event(), threading.Event()
    truncate = os.ftruncate

    def slowly(file: int, size: int) -> None:
        truncate(file, size)
        reached.set()
        goes_on.wait(30)

    monkeypatch.setattr(os, "ftruncate", slowly)
    with path.open("ab") as file:
        file.write(b'{"chain":"0')
    writer = threading.Thread(target=charge, args=(ledger, 0.1))
    reader = threading.Thread(target=lambda: (other.releases(), read.set()))
    writer.start()
    assert reached.wait(30)
    reader.start()
    assert not read.wait(0.2)
    goes_on.set()
    writer.join(30)
    reader.join(30)
    assert read.is_set()
    assert ledger.releases() == other.releases() == 2
