"""What is released from is written down: by objects, beside files, and by the commands."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import (
    Guarantee,
    Ledger,
    ParameterError,
    majority,
    multiclass,
    plurality,
    public_prior,
    roo,
)
from dpopt.kernel import optimal_kernel
from tests.cli.running import run

EPSILON = 0.5

MAKERS: dict[str, tuple[Callable[[], Any], Any, int]] = {
    "min-count": (lambda: roo.min_count(5, 2, EPSILON), [0, 0, 1, 1, 1], 1),
    "smooth floor": (lambda: roo.smooth_floor(5, 2, EPSILON), [0, 0, 1, 1, 1], 1),
    "subrr": (lambda: roo.subrr(5, 2, EPSILON), [0, 0, 1, 1, 1], 1),
    "kernel": (lambda: optimal_kernel([[0, 1], [1, 0]], epsilon=EPSILON), 1, 1),
    "kernel of several": (lambda: optimal_kernel([[0, 1], [1, 0]], epsilon=EPSILON), [0, 1, 1], 3),
    "integers": (lambda: optimal_kernel([[0, 1], [1, 0]], epsilon=EPSILON).exact, [0, 1], 2),
    "users": (lambda: public_prior.minimax_kernel([0.4, 0.6], EPSILON), [0, 1, 1], 1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_release_is_written_down_before_it_is_drawn(name: str, tmp_path: Path) -> None:
    make, data, count = MAKERS[name]
    design, ledger = make(), Ledger(tmp_path / "a.ledger", Guarantee(EPSILON * count))
    design.release(data, ledger=ledger, dataset="May")
    assert [entry.count for entry in ledger.entries()] == [count]
    assert next(ledger.entries()).guarantee == design.guarantee
    assert design.releases == count
    with pytest.raises(ParameterError, match="of the budget"):
        design.release(data, ledger=ledger, dataset="May")
    assert design.releases == count
    with pytest.raises(ParameterError):
        design.release("no data", ledger=ledger, dataset="June")
    assert ledger.datasets == ("May",)
    # Without a ledger the object counts alone.
    design.release(data)
    assert design.releases == 2 * count
    assert math.isclose(design.together.epsilon, 2 * count * EPSILON)
    for fresh in (copy.copy(design), pickle.loads(pickle.dumps(design))):
        assert fresh.releases == 0
        assert fresh.together is None


def test_a_design_says_what_it_released() -> None:
    design = roo.min_count(5, 2, EPSILON)
    assert "releases" not in repr(design)
    for _ in range(3):
        design.release([0, 0, 1, 1, 1])
    assert "releases=3" in repr(design)
    assert "(1.5, 0)-DP" in repr(design)
    assert "(1.5, 0)-DP" in design._repr_html_()
    with pytest.raises(ParameterError, match="there is no ledger"):
        design.release([0, 0, 1, 1, 1], dataset="May")
    with pytest.raises(ParameterError, match=r"must be a dpopt\.Ledger"):
        design.release([0, 0, 1, 1, 1], ledger="a.ledger")  # pyright: ignore[reportArgumentType]


VOTES = [[1, 1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("trained_once", "group", "epsilon"),
    [
        (None, None, [0.1, 1.0, 1.5, 2.2]),
        (None, "five", [0.1, 0.5, 0.6, 1.3]),
        (True, "five", [0.1, 0.5, 0.5, 0.5]),
        (False, None, [0.1, 0.2, 0.6, 1.3]),
    ],
)
def test_releases_on_the_same_votes(
    trained_once: bool | None, group: str | None, epsilon: list[float], tmp_path: Path
) -> None:
    """Five voters of 0.1: one query spends 0.1, several as much as the voters, or more."""
    design, ledger = majority.design(5, 0.1, 1), Ledger(tmp_path / "a.ledger")
    spent = []
    for queries in (1, 1, 4, 7):
        given: dict[str, Any] = {"trained_once": trained_once, "group": group}
        design.release(VOTES * queries, ledger=ledger, **given)
        spent.append(ledger.total("unnamed")[1].epsilon)
    assert spent == pytest.approx(epsilon)
    # The object does not know whose votes they were.
    assert design.together is not None
    assert math.isclose(design.together.epsilon, 2.2)


@pytest.mark.parametrize("trained_once", [None, True])
def test_two_ensembles_of_one_design_spend_both(trained_once: bool | None, tmp_path: Path) -> None:
    """Each of five voters of 0.1 that were trained once: asked twice, together they spend 1."""
    design, ledger = majority.design(5, 0.1, 1), Ledger(tmp_path / "a.ledger")
    for group in ("old", "new"):
        design.release(VOTES * 2, ledger=ledger, trained_once=trained_once, group=group)
    assert ledger.total("unnamed")[1].epsilon == pytest.approx(1.0)
    # Without names they may be two ensembles as well.
    other = Ledger(tmp_path / "b.ledger")
    for _ in range(2):
        design.release(VOTES * 2, ledger=other)
    assert other.total("unnamed")[1].epsilon == pytest.approx(1.0)


def test_a_vote_beside_named_voters_may_be_theirs(tmp_path: Path) -> None:
    """One vote with a name and one without may be of the same voters: 0.5, not 0.1 + 0.1."""
    design, ledger = majority.design(5, 0.1, 1), Ledger(tmp_path / "a.ledger")
    design.release(VOTES, ledger=ledger, group="five")
    design.release(VOTES, ledger=ledger)
    assert ledger.total("unnamed")[1].epsilon >= 0.5


def test_voters_trained_once_need_a_name(tmp_path: Path) -> None:
    design, ledger = majority.design(5, 0.1, 1), Ledger(tmp_path / "a.ledger")
    with pytest.raises(ParameterError, match="group is None; voters trained once need a name"):
        design.release(VOTES, ledger=ledger, trained_once=True)
    with pytest.raises(ParameterError, match="must be None where votes are drawn afresh"):
        design.release(VOTES, ledger=ledger, trained_once=False, group="five")
    with pytest.raises(ParameterError, match="there is no ledger"):
        design.release(VOTES, group="five")
    wrong: tuple[dict[str, Any], ...] = {"trained_once": True}, {"group": "five"}
    for given in wrong:
        with pytest.raises(ParameterError, match="is given; it belongs to a vote"):
            roo.min_count(5, 2, 1.0).write_down(**given)
    assert (ledger.releases(), design.releases) == (0, 0)
    several = multiclass.design(5, 3, 0.1, 1)
    several.release([[1, 1, 2, 0, 0]] * 3, ledger=ledger, trained_once=True, group="five")
    design.release(VOTES, ledger=ledger, trained_once=True, group="five")
    # The same voters, asked by two designs.
    assert ledger.total("unnamed")[1].epsilon == pytest.approx(0.5)


def test_a_line_says_what_a_neighbour_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "a.ledger")
    for reach in (1, 2):
        plurality.vote([[0, 1, 1]], epsilon=0.5, classes=2, voters_per_record=reach, ledger=ledger)
    said = [entry.what.split("; ")[1] for entry in ledger.entries()]
    assert said == ["one ballot replaced", "2 ballots replaced"]
    made = roo.min_count(5, 2, EPSILON)
    monkeypatch.setattr(type(made.setting), "neighbours", "one letter replaced")
    made.release([0, 0, 1, 1, 1], ledger=ledger)
    assert list(ledger.entries())[-1].what.endswith("; one letter replaced")


def test_a_ledger_beside_a_file(tmp_path: Path) -> None:
    path, records = tmp_path / "rule.json", [0, 0, 1, 1, 1]
    design = roo.min_count(5, 2, EPSILON)
    design.save(path, ledger=Guarantee(2 * EPSILON))
    design.release(records)
    dpopt.load(path).release(records, dataset="unnamed")
    again = dpopt.load(path)
    with pytest.raises(ParameterError, match="of the budget"):
        again.release(records)
    kept = Ledger(f"{path}.ledger")
    assert kept.releases() == 2
    # Another one that is named goes before it.
    again.release(records, ledger=Ledger(tmp_path / "other.ledger"))
    # A file that is written over has other numbers than the ledger is for.
    roo.min_count(5, 2, 2.0).save(path)
    with pytest.raises(ParameterError, match="another design"):
        dpopt.load(path).release(records)
    with pytest.raises(ParameterError, match="another design"):
        roo.min_count(5, 2, 1.0).save(path, ledger=True)
    with pytest.raises(ParameterError, match="another design"):
        roo.min_count(5, 2, 2.0).release(records, ledger=kept)
    design.save(path)
    loaded = dpopt.load(path)
    Path(f"{path}.ledger").unlink()
    with pytest.raises(ParameterError, match="is missing"):
        loaded.release(records)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command ``dpopt`` within a folder: its exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: run(words, capsys)


def test_the_command_keeps_a_ledger_beside_the_file(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    design = roo.min_count(5, 2, EPSILON)
    design.save(tmp_path / "rule.json")
    words = ["release", "rule.json", "--input", "2,3"]
    told = "1 release of data set 'May' so far spends (0.5, 0)-DP; an epsilon of 0.5 is left.\n"
    code, _, said = command(*words, "--budget-epsilon", "1", "--dataset", "May")
    assert (code, said) == (0, told)
    assert command(*words, "--dataset", "May")[0] == 0
    code, printed, said = command(*words, "--dataset", "May")
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert command(*words, "--no-ledger")[2].endswith("nothing was written down.\n")
    assert command(*words, "--ledger", "other.ledger")[0] == 0
    assert command("release", "rule.json", "--input", "2,2")[:2] == (2, "")
    record = json.loads(command("ledger", "rule.json.ledger", "--json")[1])
    assert [entry["dataset"] for entry in record["entries"]] == ["May", "May"]
    assert record["datasets"]["May"]["total"] == {"epsilon": 1.0, "delta": 0.0}
    assert record["datasets"]["May"]["epsilon_left"] == 0.0
    text = command("ledger", "rule.json.ledger")[1]
    assert "2 releases of data set 'May' so far spend (1, 0)-DP together" in text
    assert command("ledger", "none.ledger")[:2] == (2, "")
    (tmp_path / "rule.json.ledger").write_text("{}")
    assert command(*words)[:2] == (2, "")


def test_votes_of_a_command_are_told_how_they_are_charged(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    """Eight releases without a word on the voters: the total, and why it is what it is."""
    majority.design(5, 0.1, 1).save(tmp_path / "gamma.json")
    words = ["release", "gamma.json", "--input", "1,1,1,0,0"]
    first = command(*words)[2]
    assert first == "1 release of data set 'unnamed' so far spends (0.1, 0)-DP.\n"
    (tmp_path / "eight.csv").write_text("1,1,1,0,0\n" * 8)
    eight = ["release", "gamma.json", "--input", "eight.csv", "--dataset", "May"]
    told = command(*eight)[2]
    start = "8 releases of data set 'May' so far spend (0.8, 0)-DP together. Votes of the same"
    assert told.startswith(start)
    assert told.endswith("name the voters by --group, and say --trained-once, or say --fresh.\n")
    assert told.count("\n") == 1
    unnamed = command(*eight, "--trained-once")
    assert unnamed[:2] == (2, "")
    assert "voters trained once need a name" in unnamed[2]
    once = ["--trained-once", "--group", "five", "--dataset", "June"]
    said = command(*eight[:-2], *once)[2]
    assert said == "8 releases of data set 'June' so far spend (0.5, 0)-DP together.\n"
    fresh = command(*eight[:-1], "July", "--fresh")[2]
    assert fresh == "8 releases of data set 'July' so far spend (0.8, 0)-DP together.\n"
    half = command(*eight[:-1], "August", "--group", "five")[2]
    assert half.endswith("whichever is more: say --trained-once or --fresh.\n")


def test_sample_says_what_it_spends(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    pytest.importorskip("polars")
    (tmp_path / "v.csv").write_text("city\nA\nB\nA\n")
    words = ["sample", "v.csv", "--column", "city", "--alphabet", "A,B", "--epsilon", "1"]
    said = command(*words)[2]
    assert said == "1 release of (1, 0)-DP from data set 'unnamed'; nothing was written down.\n"
    said = command(*words, "--ledger", "a.ledger")[2]
    assert said == "1 release of data set 'unnamed' so far spends (1, 0)-DP.\n"
    assert command(*words, "--budget-epsilon", "1")[0] == 2


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda design: pickle.loads(pickle.dumps(design)),
    "replace": dataclasses.replace,
    "replace of a pickle": lambda d: dataclasses.replace(pickle.loads(pickle.dumps(d))),
    "copy of a replace": lambda d: copy.copy(dataclasses.replace(d)),
}


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("made", ["min-count", "kernel"])
def test_copies_write_to_the_ledger_of_the_file(
    made: str, name: str, saved: bool, tmp_path: Path
) -> None:
    make, data, _ = MAKERS[made]
    design, path = make(), tmp_path / "p.json"
    design.save(path, ledger=Guarantee(EPSILON))
    copied = COPIES[name](design if saved else dpopt.load(path))
    copied.release(data)
    assert [entry.count for entry in Ledger(tmp_path / "p.json.ledger").entries()] == [1]
    with pytest.raises(ParameterError, match="of the budget"):
        copied.release(data)
    (tmp_path / "p.json.ledger").unlink()
    with pytest.raises(ParameterError, match="is missing"):
        COPIES[name](design).release(data)


def test_a_design_of_the_same_numbers_that_no_file_holds_has_no_ledger(tmp_path: Path) -> None:
    make, data, _ = MAKERS["min-count"]
    make().save(tmp_path / "p.json", ledger=True)
    other = make()
    other.release(data)
    assert other.ledger is None
    assert Ledger(tmp_path / "p.json.ledger").releases() == 0


def test_a_link_to_a_file_has_the_ledger_of_the_file(tmp_path: Path, capsys: Any) -> None:
    make, data, _ = MAKERS["min-count"]
    (tmp_path / "there").mkdir()
    path, link = tmp_path / "there" / "p.json", tmp_path / "link.json"
    make().save(path, ledger=Guarantee(2 * EPSILON))
    link.symlink_to(path)
    dpopt.load(link).release(data)
    assert run(["release", str(link), "--input", "2,3"], capsys)[0] == 0
    assert Ledger(tmp_path / "there" / "p.json.ledger").releases() == 2
    with pytest.raises(ParameterError, match="of the budget"):
        dpopt.load(link).release(data)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["link.json", "there"]


def test_other_processes_write_to_the_ledger_of_the_file(tmp_path: Path) -> None:
    make, data, _ = MAKERS["min-count"]
    make().save(tmp_path / "p.json", ledger=True)
    found = dpopt.load(tmp_path / "p.json")
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(found.release, [data] * 3))
    assert Ledger(tmp_path / "p.json.ledger").releases() == 3


def test_no_mechanism_takes_the_place_of_a_ledger(tmp_path: Path) -> None:
    design, ledger = roo.min_count(5, 2, EPSILON), Ledger(tmp_path / "study.ledger")
    design.release(counts=[2, 3], ledger=ledger, dataset="May")
    with pytest.raises(ParameterError, match=r"must be \.json, not \.ledger"):
        design.save(tmp_path / "study.ledger")
    assert ledger.total("May")[1].epsilon == EPSILON
