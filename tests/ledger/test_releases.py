"""What is released from is written down before it is drawn, of every kind, and by the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import (
    BudgetError,
    Guarantee,
    Ledger,
    NotPrivateError,
    ParameterError,
    plurality,
    roo,
    vote,
)
from dpopt.shape import Design
from dpopt.votes import Spending
from tests.cli.running import run
from tests.kernel.brute import optimal

EPSILON = 0.5
RECORDS = [0, 0, 1, 1, 1]

MAKERS: dict[str, tuple[Callable[[], Any], Any, int]] = {
    "min-count": (lambda: dpopt.design(dpopt.RevealOrObscure(5, 2, EPSILON)), RECORDS, 1),
    "smooth floor": (lambda: dpopt.design(dpopt.SmoothFloor(5, 2, EPSILON)), RECORDS, 1),
    "best sampler": (lambda: dpopt.design(dpopt.BestSampler(5, 2, EPSILON)), RECORDS, 1),
    "kernel": (lambda: optimal([[0, 1], [1, 0]], epsilon=EPSILON), 1, 1),
    "kernel of several": (lambda: optimal([[0, 1], [1, 0]], epsilon=EPSILON), [0, 1, 1], 3),
    "certified": (lambda: dpopt.certify([[0.6, 0.4], [0.4, 0.6]], epsilon=EPSILON), [0, 1], 2),
    "users": (lambda: dpopt.design(dpopt.PublicPrior([0.4, 0.6], EPSILON)), [0, 1, 1], 1),
    "plurality": (
        lambda: dpopt.design(dpopt.Plurality(5, 3, EPSILON)),
        [[0, 0, 0, 1, 2], [0] * 5],
        2,
    ),
    "mode": (
        lambda: plurality.mode_design(5000, 3, EPSILON),
        roo.Tally.of_counts([4998, 1, 1], 3),
        1,
    ),
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", MAKERS)
def test_a_release_is_written_down_before_it_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data, count = MAKERS[name]
    design, ledger = make(), Ledger(tmp_path / "a.ledger", Guarantee(EPSILON * count))
    known: list[int] = []
    drawn = type(design).release

    def seen(self: Any, *given: Any, **named: Any) -> Any:
        known.append(len(Ledger(ledger.path).entries()))
        return drawn(self, *given, **named)

    monkeypatch.setattr(type(design), "release", seen)
    ledger.release(design, data, "May")
    assert known[0] == 1
    (entry,) = ledger.entries()
    assert (entry.count, entry.guarantee) == (count, design.guarantee)
    with pytest.raises(BudgetError, match="of the budget"):
        ledger.release(design, data, "May")
    with pytest.raises(ParameterError):
        ledger.release(design, "no data", "June")
    assert ledger.datasets == ("May",)
    assert len(ledger.entries()) == 1


def test_what_else_a_release_takes(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", Guarantee(1.0))
    made = dpopt.design(dpopt.RevealOrObscure(5, 2, EPSILON))
    category = ledger.release(made, roo.Tally.of_counts([2, 3], ["no", "yes"]), "May")
    assert category in ("no", "yes")
    with pytest.raises(ParameterError, match="data is an iterator"):
        ledger.release(made, iter(RECORDS), "May")
    with pytest.raises(ParameterError, match="mechanism is .*; it must be a Design"):
        ledger.release("a.ledger", RECORDS, "May")  # pyright: ignore[reportArgumentType]
    assert ledger.left("May") == 0.5


def test_nothing_is_written_of_what_is_not_private(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger")
    broken = dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1, "conference"))
    for asks in (
        lambda: ledger.release(broken, roo.Tally.of_counts([10, 5, 5], ["a", "b", "c"])),
        lambda: ledger.charge(broken),
    ):
        with pytest.raises(NotPrivateError):
            asks()
    assert ledger.entries() == []


def test_no_query_is_no_release(tmp_path: Path) -> None:
    make, _, _ = MAKERS["kernel"]
    ledger = Ledger(tmp_path / "a.ledger")
    assert len(ledger.release(make(), np.array([], dtype=np.int64))) == 0
    assert ledger.entries() == []


VOTES = [[1, 1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("fresh", "epsilon"),
    [
        # Five voters of 0.1: their labels, all voters, or the larger of both.
        (True, [0.1, 0.2, 0.6, 1.3]),
        (False, [0.5, 1.0, 1.5, 2.0]),
        (None, [0.5, 1.0, 1.5, 2.2]),
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_of_private_voters(
    classes: int, fresh: bool | None, epsilon: list[float], tmp_path: Path
) -> None:
    design: Any = (
        dpopt.design(dpopt.Majority(5, 0.1, 1))
        if classes == 2
        else dpopt.design(dpopt.Multiclass(5, 3, 0.1, 1))
    )
    ledger, spent = Ledger(tmp_path / "a.ledger"), []
    for queries in (1, 1, 4, 7):
        ledger.release(design, VOTES * queries, "May", fresh=fresh)
        spent.append(ledger.total("May")[1].epsilon)
    assert spent == pytest.approx(epsilon)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("fresh", [True, False, None])
def test_what_is_charged_covers_what_the_labels_may_spend(
    fresh: bool | None, delta: float, tmp_path: Path
) -> None:
    """Without a word on the voters: any calls may be fresh, and any of the others' same voters."""
    design = dpopt.design(dpopt.Majority(5, 0.1, 1.5, voter_delta=delta, delta=2 * delta))
    ledger = Ledger(tmp_path / "a.ledger")
    sizes = 1, 2, 9
    for queries in sizes:
        ledger.charge(design, "May", count=queries, fresh=fresh)
    spent = ledger.total("May")[1]
    label, voters = design.guarantee, (5 * Fraction(0.1), 5 * Fraction(delta))
    for once in range(1 << len(sizes)):
        trained = [bool(once >> place & 1) for place in range(len(sizes))]
        if (fresh is True and any(trained)) or (fresh is False and not all(trained)):
            continue
        composed = sum(n for n, same in zip(sizes, trained, strict=True) if not same)
        # At least one ensemble stands behind the others; at most one each.
        for ensembles in {min(1, sum(trained)), sum(trained)}:
            epsilon = composed * Fraction(label.epsilon) + ensembles * voters[0]
            assert Fraction(spent.epsilon) >= epsilon
            assert Fraction(spent.delta) >= composed * Fraction(label.delta) + (
                ensembles * voters[1]
            )


def test_voters_trained_once_are_charged_once(tmp_path: Path) -> None:
    """What all of them spend is written down; every label of theirs is free afterwards."""
    design, ledger = (
        dpopt.design(dpopt.Majority(5, 0.1, 1)),
        Ledger(tmp_path / "a.ledger", Guarantee(0.6)),
    )
    entry = ledger.charge(design, "May", fresh=False)
    assert (entry.spent, entry.folds) == design.setting.behind
    assert np.size(design.release(VOTES * 1000)) == 1000
    assert ledger.total("May")[1].epsilon == pytest.approx(0.5)
    with pytest.raises(ParameterError, match="fresh is given; it belongs to labels"):
        ledger.release(dpopt.design(dpopt.RevealOrObscure(5, 2, 0.1)), RECORDS, "May", fresh=True)


def test_a_record_that_reaches_several_ballots(tmp_path: Path) -> None:
    """What a batch of labels spends is written down by hand before it is drawn."""
    design, ledger = dpopt.design(dpopt.Plurality(5, 3, EPSILON)), Ledger(tmp_path / "a.ledger")
    spending = Spending(design.setting, voters_per_record=2)
    ledger.charge(spending.per_query, "May", count=3, what="labels; 2 ballots replaced")
    batch = vote(design, [[0, 1, 1, 2, 2]] * 3, voters_per_record=2)
    assert batch.total == ledger.total("May")[1] == Guarantee(3.0)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command ``dpopt`` within a folder: its exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: run(words, capfd)


def test_the_command_writes_to_a_ledger(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    dpopt.design(dpopt.RevealOrObscure(5, 2, EPSILON)).save(tmp_path / "rule.json")
    words = ["release", "rule.json", "--input", "2,3"]
    code, out, said = command(*words, "--ledger", "a.ledger")
    assert (code, out) == (2, "")
    assert "Begin one with dpopt ledger PATH --new" in said
    begun = command("ledger", "a.ledger", "--new", "--budget-epsilon", "1")
    assert begun[:2] == (0, "Nothing was released.\nBudget of each data set: (1, 0)-DP.\n")
    kept = [*words, "--ledger", "a.ledger", "--dataset", "May"]
    told = "1 release of data set 'May' so far spends (0.5, 0)-DP; an epsilon of 0.5 is left.\n"
    code, _, said = command(*kept)
    assert (code, said) == (0, told)
    assert command(*kept)[0] == 0
    code, printed, said = command(*kept)
    assert (code, printed, said.count("\n")) == (2, "", 1)
    code, _, said = command(*words)
    assert (code, said) == (0, "")
    record = json.loads(command("ledger", "a.ledger", "--json")[1])
    assert [entry["dataset"] for entry in record["entries"]] == ["May", "May"]
    assert record["datasets"]["May"]["total"] == {"epsilon": 1.0, "delta": 0.0}
    assert record["datasets"]["May"]["epsilon_left"] == 0.0
    text = command("ledger", "a.ledger", "--dataset", "May")[1]
    assert "2 releases of data set 'May' so far spend (1, 0)-DP; an epsilon of 0 is left" in text
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.ledger", "rule.json"]


def test_votes_of_a_command(tmp_path: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    """Eight queries in one command are one entry: of eight labels, or of five voters."""
    dpopt.design(dpopt.Majority(5, 0.1, 1)).save(tmp_path / "gamma.json")
    (tmp_path / "eight.csv").write_text("1,1,1,0,0\n" * 8)
    ledger = Ledger(tmp_path / "a.ledger")
    words = ["release", "gamma.json", "--input", "eight.csv", "--ledger", "a.ledger", "--dataset"]
    for name, options, spent in (
        ("May", [], 0.8),
        ("June", ["--trained-once"], 0.5),
        ("July", ["--fresh"], 0.8),
    ):
        code, out, said = command(*words, name, *options)
        assert (code, len(out.split())) == (0, 8)
        assert said == f"8 releases of data set '{name}' so far spend ({spent}, 0)-DP.\n"
    assert [entry.count for entry in ledger.entries()] == [8, 8, 8]


class Growing:
    """Entries of which there are more at each reading."""

    def __init__(self, made: Callable[[int], Any]) -> None:
        self.made, self.readings = made, 0

    def _read(self) -> Any:
        self.readings += 1
        return self.made(1 if self.readings == 1 else 9)


class AsArray(Growing):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._read(), dtype)


class AsIterable(Growing):
    def __iter__(self) -> Any:
        return iter(self._read())


class AsSequence(Growing):
    """The old protocol, without __iter__."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        self.readings += 1
        if index >= (1 if self.readings <= 2 else 9):
            raise IndexError
        return self.made(1)[0]


@pytest.mark.parametrize("kind", [AsArray, AsIterable, AsSequence])
def test_data_are_read_once(kind: type[Growing], tmp_path: Path) -> None:
    """Counted and drawn from the same entries, so that what is drawn is what is charged."""
    named = dpopt.Kernel([[0, 1], [1, 0]], 0.1, input_names=["a", "b"])
    designs: list[tuple[Any, Callable[[int], Any]]] = [
        (dpopt.design(dpopt.Kernel([[0, 1], [1, 0]], 0.1)), lambda n: [1] * n),
        (dpopt.design(named), lambda n: ["a"] * n),
        (dpopt.design(dpopt.Plurality(3, 2, 0.1)), lambda n: [[0, 1, 1]] * n),
        (dpopt.design(dpopt.Noise(1, 0.1)), lambda n: [7] * n),
    ]
    for number, (design, made) in enumerate(designs):
        ledger = Ledger(tmp_path / f"{number}.ledger")
        outputs = ledger.release(design, kind(made), "May")
        assert np.size(outputs) == sum(entry.count for entry in ledger.entries()) == 1
        nested = ledger.release(design, [*made(2), *made(1)], "June")
        assert np.size(nested) == sum(entry.count for entry in ledger.entries("June")) == 3


def test_what_may_be_written_to_while_it_is_read_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The design sees none of the objects that it was given, and no other entries."""
    design, ledger = MAKERS["kernel"][0](), Ledger(tmp_path / "a.ledger")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed (extra frames)")
    polars = pytest.importorskip("polars", reason="polars is not installed (extra data)")
    seen: list[Any] = []

    def watched(_: Design, data: Any) -> int:
        seen.append(data)
        return 1

    monkeypatch.setattr(Design, "releases", watched)
    monkeypatch.setattr(Design, "release", watched)
    for data in ([1, 0], [[1], [0]], np.array([1, 0]), pandas.Series([1, 0]), polars.Series([1])):
        seen.clear()
        ledger.release(design, data)
        assert seen[0] is seen[1] is not data
        assert type(seen[0]) is type(data)
        assert np.array_equal(seen[0], data)


def test_data_without_end_to_their_nesting(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ParameterError, match="nested too deeply"):
        Ledger(tmp_path / "a.ledger").release(MAKERS["kernel"][0](), endless)
