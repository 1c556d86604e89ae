"""A ledger refuses what leaves its budget, and any file that it did not write."""

from __future__ import annotations

import copy
import math
import pickle
import random
import sqlite3
import unicodedata
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import BudgetError, Guarantee, Ledger, ParameterError
from dpopt.ledger import Entry
from tests.cli.running import run

TENTH = Guarantee(0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.ledger"


def charge(
    ledger: Ledger, guarantee: Guarantee = TENTH, dataset: str = "May", **given: Any
) -> Entry:
    return ledger.charge(guarantee, dataset, **{"what": "a count", **given})


COPIES: dict[str, Callable[[Ledger], Ledger]] = {
    "itself": lambda ledger: ledger,
    "opened again": lambda ledger: Ledger(ledger.path),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda ledger: pickle.loads(pickle.dumps(ledger)),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_and_pickles_are_of_the_same_file(name: str, path: Path) -> None:
    ledger = Ledger(path, Guarantee(0.5, 1e-6))
    made = [charge(ledger, count=2), charge(ledger, Guarantee(0.3, 1e-9), "June")]
    again = COPIES[name](ledger)
    assert again.entries() == made
    assert again.datasets == ("May", "June")
    assert again.budget == ledger.budget
    charge(again, Guarantee(0.25))
    with pytest.raises(BudgetError):
        charge(ledger)
    assert again.total("May") == ledger.total("May")
    assert ledger.entries("May")[1].guarantee == Guarantee(0.25)


def test_what_is_no_database_is_not_kept_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"{}\n" * 100)
    opened, connect = list[sqlite3.Connection](), sqlite3.connect

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        opened.append(connect(*given, **named))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connected)
    with pytest.raises(ParameterError, match="not a database"):
        Ledger(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_budget_refuses_before_anything_is_written(path: Path) -> None:
    ledger = Ledger(path, Guarantee(0.5))
    quarter = Guarantee(0.25)
    charge(ledger, quarter)
    before = path.read_bytes()
    with pytest.raises(BudgetError, match=r"has an epsilon of 0\.25 left of the budget") as caught:
        charge(ledger, quarter, count=2)
    assert isinstance(caught.value, dpopt.DpoptError)
    assert not isinstance(caught.value, ValueError)
    assert path.read_bytes() == before
    charge(ledger, quarter)
    assert ledger.left("May") == 0.0
    with pytest.raises(BudgetError, match="an epsilon of 0 left"):
        charge(ledger, Guarantee(1e-300))
    # Another data set has its own.
    charge(ledger, quarter, "other")
    assert ledger.total() == ("simple", Guarantee(0.75))


@pytest.mark.slow
def test_exactly_what_is_left_is_released_and_no_more(tmp_path: Path) -> None:
    """Over budgets and charges for which the nearest float of what is left is above it."""
    random_ones, rounded_up = random.Random(30), 0
    for case in range(40):
        budget = random_ones.uniform(0.5, 3.0)
        spent = [random_ones.uniform(0.01, 0.1) for _ in range(3)]
        exact = Fraction(budget) - sum(map(Fraction, spent))
        rounded_up += Fraction(float(exact)) > exact
        ledger = Ledger(tmp_path / f"{case}.ledger", Guarantee(budget))
        for epsilon in spent:
            charge(ledger, Guarantee(epsilon))
        left = ledger.left("May")
        assert left is not None
        above = math.nextafter(left, math.inf)
        assert Fraction(left) <= exact < Fraction(above)
        with pytest.raises(BudgetError):
            charge(ledger, Guarantee(above))
        charge(ledger, Guarantee(left))
        assert ledger.total("May")[1].epsilon <= budget
    assert rounded_up >= 10


@pytest.mark.parametrize("count", [0, 1, 40, 90])
def test_what_concentrated_composition_leaves_is_exact_too(count: int, path: Path) -> None:
    """Of (5, 1e-6), 100 releases of 0.1 would spend 10 by simple composition."""
    ledger = Ledger(path, Guarantee(6.0, 1e-6))
    if count:
        charge(ledger, count=count)
    left = ledger.left("May")
    assert left is not None
    with pytest.raises(BudgetError):
        charge(ledger, Guarantee(math.nextafter(left, math.inf)))
    charge(ledger, Guarantee(left))
    # Formula by hand, with half of the delta.
    rho = (count * 0.01 + left**2) / 2
    by_hand = rho + 2 * math.sqrt(rho * math.log(2e6))
    assert min(by_hand, count * 0.1 + left) == pytest.approx(6.0, rel=1e-9)


def test_a_budget_is_kept_as_a_filter(path: Path) -> None:
    """100 releases of 0.1: rho is 0.5, and half of the delta is kept for what is random."""
    by_hand = 0.5 + 2 * math.sqrt(0.5 * math.log(2e6))
    tight = Ledger(path.with_name("tight"), Guarantee(by_hand * (1 - 1e-9), 1e-6))
    with pytest.raises(BudgetError, match="of the budget"):
        charge(tight, count=100)
    ledger = Ledger(path, Guarantee(by_hand * (1 + 1e-9), 1e-6))
    charge(ledger, count=100)
    assert ledger.total("May") == ("budget", ledger.budget)
    assert ledger.total()[0] == "simple"
    assert ", by the budget; an epsilon of" in ledger.statement("May")
    with pytest.raises(BudgetError, match="of the budget"):
        charge(ledger)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dataset": ""}, "dataset is"),
        ({"dataset": "a\nb"}, "printable"),
        ({"what": "x" * 1001}, "at most 1000"),
        ({"dataset": "d" * 201}, "at most 200"),
        ({"what": None}, "what is None"),
        ({"count": 0}, "count is 0"),
        ({"count": -1}, "count is -1"),
        ({"of": 0.1}, "must be a Guarantee"),
        ({"fresh": True}, "belongs to labels of private voters"),
        ({"of": Guarantee(0.1, 0.5), "count": 2}, "promise nothing"),
    ],
)
def test_what_cannot_be_written_is_refused(given: dict[str, Any], said: str, path: Path) -> None:
    ledger = Ledger(path)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=said):
        ledger.charge(**{"of": TENTH, "what": "a count", **given})
    assert path.read_bytes() == before


def test_what_is_released_is_described_by_its_kind_and_its_proof(path: Path) -> None:
    design = dpopt.design(dpopt.Majority(3, 0.2, 1))
    proof = design.certificate
    assert proof is not None
    assert Ledger(path).charge(design).what == f"majority, certificate {proof.digest[:16]}"


def test_another_budget_is_refused(path: Path) -> None:
    Ledger(path, Guarantee(1.0))
    with pytest.raises(ParameterError, match="which stays"):
        Ledger(path, Guarantee(2.0))
    assert Ledger(path, Guarantee(1.0)).budget == Guarantee(1.0)
    for wrong in ({"budget": 1.0}, {"path": 3}):
        with pytest.raises(ParameterError):
            Ledger(**{"path": path, **wrong})


def other_database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE entries (id INTEGER)")
        return db.serialize()


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\0" * 4096, b"SQLite format 3\0", "database"])
def test_a_foreign_file_is_refused_and_kept(content: bytes | str, path: Path) -> None:
    held = other_database() if isinstance(content, str) else content
    path.write_bytes(held)
    with pytest.raises(ParameterError, match="cannot be used"):
        Ledger(path)
    assert path.read_bytes() == held


def test_a_ledger_that_is_damaged_is_refused(path: Path) -> None:
    ledger = Ledger(path)
    for place in range(100):
        charge(ledger, dataset=f"d{place}", what="a count" * 30)
    sound = path.read_bytes()
    path.write_bytes(sound[: len(sound) // 2])
    with pytest.raises(ParameterError, match="cannot be used"):
        Ledger(path)
    # Every page, read to find the last entry or not.
    for page in range(4096, len(sound), 4096):
        path.write_bytes(sound[:page] + b"\xff" * 4096 + sound[page + 4096 :])
        with pytest.raises(ParameterError, match="cannot be used"):
            Ledger(path)


def test_entries_are_never_changed_nor_taken_away(path: Path) -> None:
    charge(Ledger(path))
    with closing(sqlite3.connect(path)) as db, db:
        for asked in ("DELETE FROM entries", "UPDATE entries SET spent_epsilon = 0"):
            with pytest.raises(sqlite3.Error, match="entries stay"):
                db.execute(asked)


def test_a_ledger_that_is_replaced_or_cut_while_it_is_open(path: Path, tmp_path: Path) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    begun = path.read_bytes()
    charge(ledger, Guarantee(0.9))
    path.write_bytes(begun)
    for _ in range(2):
        with pytest.raises(ParameterError, match="replaced or lost entries"):
            charge(ledger, Guarantee(0.9))
    other = Ledger(tmp_path / "other.ledger", Guarantee(1.0))
    charge(other)
    path.write_bytes(other.path.read_bytes())
    with pytest.raises(ParameterError, match="replaced or lost entries"):
        charge(ledger)
    path.unlink()
    with pytest.raises(ParameterError, match="cannot be used"):
        charge(ledger)
    assert not path.exists()


def test_a_link_to_a_ledger_is_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    ledger = Ledger(tmp_path / "there" / "a.ledger", Guarantee(0.25))
    link = tmp_path / "link"
    link.symlink_to(ledger.path)
    charge(Ledger(link))
    charge(ledger)
    with pytest.raises(BudgetError):
        charge(Ledger(link))
    assert sorted(found.name for found in tmp_path.iterdir()) == ["link", "there"]


def test_names_that_look_the_same_are_one_data_set(path: Path) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    composed = "séances"
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    for name in (composed, decomposed, f" {composed} "):
        charge(ledger, Guarantee(0.25), name)
    assert ledger.datasets == (composed,)
    for name in (composed, decomposed, f"{composed} "):
        assert len(ledger.entries(name)) == 3
        assert ledger.left(name) == 0.25
        assert ledger.total(name)[1].epsilon == 0.75
    with pytest.raises(BudgetError, match="of the budget"):
        charge(ledger, Guarantee(0.5), decomposed)


@pytest.mark.parametrize(
    ("spent", "asked", "told"),
    [(0.7999825923906764, 0.5, "0.200017"), (0.5, 0.6, "0.5"), (0.2000005, 0.9, "0.799999")],
)
def test_what_is_left_is_told_rounded_down(
    spent: float, asked: float, told: str, path: Path
) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    charge(ledger, Guarantee(spent))
    with pytest.raises(BudgetError, match=f"an epsilon of {told} left of the budget"):
        charge(ledger, Guarantee(asked))
    assert f"an epsilon of {told} is left" in ledger.statement("May")
    charge(ledger, Guarantee(float(told)))


@pytest.mark.slow
def test_many_entries_of_many_data_sets(path: Path) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    charge(ledger)
    copied = (
        "INSERT INTO entries SELECT NULL, time, 'd' || (? % 5000), what, epsilon, delta, count, "
        "spent_epsilon, spent_delta, folds FROM entries WHERE id = 1"
    )
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany(copied, [(place,) for place in range(20_000)])
    assert len(ledger.entries()) == 20_001
    assert len(ledger.datasets) == 5001
    assert ledger.total("d17") == ("simple", dpopt.privacy.simple_composition(TENTH, 4))
    assert ledger.total()[1] == dpopt.privacy.simple_composition(TENTH, 20_001)
    charge(ledger, dataset="d17", count=5)
    with pytest.raises(BudgetError):
        charge(ledger, dataset="d17")


ENDLESS = (
    "DROP TABLE entries; CREATE VIEW entries AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
    "SELECT i + 1 FROM n) SELECT i AS id FROM n"
)
ENTRY = (
    "INSERT INTO entries VALUES (NULL, {time}, {dataset}, {what}, {epsilon}, 0.0, 1, {spent}, "
    "0.0, {folds})"
)
SOUND = {
    **{"time": "'2026-01-01'", "dataset": "'May'", "what": "'x'"},
    **{"epsilon": "0.1", "spent": "0.1", "folds": "1"},
}


@pytest.mark.parametrize(
    "script",
    [
        "DELETE FROM head",
        "INSERT INTO head SELECT * FROM head",
        "UPDATE head SET identity = NULL",
        "UPDATE head SET identity = x'00'",
        "UPDATE head SET epsilon = 'much', delta = 0.0",
        "UPDATE head SET delta = NULL",
        "UPDATE head SET epsilon = 9e999",
        "UPDATE head SET epsilon = -1.0",
        "DROP TRIGGER same",
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN DELETE FROM head; END",
        ENDLESS,
        *(
            ENTRY.format(**{**SOUND, name: value})
            for name, value in (
                *(("dataset", "x'4d6179'"), ("dataset", "NULL"), ("dataset", "' May'")),
                *(("dataset", "'a' || char(27)"), ("what", "char(10) || 'private: forged'")),
                *(("time", "char(13)"), ("epsilon", "9e999"), ("epsilon", "'a'")),
                *(("spent", "NULL"), ("spent", "-0.1"), ("folds", "-5"), ("folds", "0.5")),
            )
        ),
    ],
)
def test_what_no_ledger_writes_is_refused(
    script: str, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(path, Guarantee(1.0))
    charge(ledger)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    for opens in (lambda: Ledger(path), lambda: charge(ledger), lambda: ledger.left("May")):
        with pytest.raises(ParameterError, match="cannot be used: .*; nothing was drawn"):
            opens()
    code, out, said = run(["ledger", str(path)], capfd)
    assert (code, out, said.count("\n")) == (2, "", 1)
    assert said.strip("\n").isprintable()


def test_a_sound_entry_by_other_means_is_read(path: Path) -> None:
    """The statement of the test above, and statistics of the database, which its owner may ask."""
    charge(Ledger(path))
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"{ENTRY.format(**SOUND)}; ANALYZE")
    assert Ledger(path).total("May")[1] == Guarantee(0.2)


@pytest.mark.parametrize("dataset", ["\ud800", "a\x1b[31m", "", "x" * 201, 5, b"May"])
def test_a_name_that_is_none_is_refused_where_it_is_read(dataset: Any, path: Path) -> None:
    for ledger in (Ledger(path), Ledger(path.with_name("other"), TENTH)):
        for asks in (ledger.total, ledger.left, ledger.entries, ledger.statement):
            with pytest.raises(ParameterError, match="dataset is"):
                asks(dataset)


def test_the_numbers_of_a_guarantee_are_checked_anew(path: Path) -> None:
    broken = Guarantee(0.5)
    object.__setattr__(broken, "epsilon", math.nan)
    with pytest.raises(ParameterError, match="epsilon is nan"):
        Ledger(path, broken)
    assert not path.exists()
    with pytest.raises(ParameterError, match="epsilon is nan"):
        charge(Ledger(path, Guarantee(1.0)), broken)


def test_labels_designed_together_are_charged_once_and_of_fresh_votes(path: Path) -> None:
    design = dpopt.design(dpopt.Majority(1, 5.0, releases=2, total_epsilon=0.3, total_delta=0.5))
    ledger = Ledger(path)
    for fresh in (None, False):
        with pytest.raises(ParameterError, match=f"fresh is {fresh} and releases is 2"):
            ledger.charge(design, fresh=fresh)
    assert ledger.charge(design, fresh=True).spent == Guarantee(0.3, 0.5)


def test_words_of_an_entry_have_a_length(path: Path) -> None:
    ledger = Ledger(path)
    assert charge(ledger, dataset="x" * 200, what="y" * 1000).what == "y" * 1000
    several: list[dict[str, Any]] = [{"dataset": "x" * 201}, {"what": "y" * 1001}]
    for longer in several:
        with pytest.raises(ParameterError, match="must be a text of at least one and at most"):
            charge(ledger, **longer)


def test_the_name_of_an_input_is_no_list_of_letters(path: Path) -> None:
    design = dpopt.design(dpopt.Kernel([[0, 1], [1, 0]], 0.1, input_names=["yes", "no"]))
    assert Ledger(path).release(design, "yes") in (0, 1)


def test_a_ledger_shows_its_budget(path: Path, tmp_path: Path) -> None:
    assert repr(Ledger(path)) == f"Ledger({str(path)!r})"
    limited = Ledger(tmp_path / "b.ledger", TENTH)
    assert repr(limited) == f"Ledger({str(limited.path)!r}, budget={TENTH})"
