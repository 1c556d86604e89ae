"""What a ledger is called by, and what it says."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

import dpopt
from dpopt import Guarantee, Ledger, ParameterError, plurality, roo
from dpopt.privacy.dominating import DominatingPair
from tests.cli.running import Capture, run


def test_names_that_look_the_same_are_one_data_set(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", Guarantee(1.0))
    composed = "séances"
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    for name in (composed, decomposed, f" {composed} "):
        ledger.charge(Guarantee(0.25), what="a count", dataset=name)
    assert ledger.datasets == (composed,)
    assert {entry.dataset for entry in Ledger(ledger.path).entries()} == {composed}
    for name in (composed, decomposed, f"{composed} "):
        assert ledger.releases(name) == 3
        assert ledger.left(name) == 0.25
    with pytest.raises(ParameterError, match="of the budget"):
        ledger.charge(Guarantee(0.5), what="a count", dataset=decomposed)


def test_a_name_is_found_however_it_is_typed(tmp_path: Path, capsys: Capture) -> None:
    ledger = Ledger(tmp_path / "a.ledger")
    ledger.charge(Guarantee(0.25), what="a count", dataset="é")
    code, out, _ = run(["ledger", str(ledger.path), "--dataset", "e\u0301 "], capsys)
    assert code == 0
    assert "1 release of data set" in out


def test_simple_composition_is_told_unless_another_saves(tmp_path: Path) -> None:
    """Releases that share no outcome lose nothing by adding up: their exact epsilon is the sum."""
    pytest.importorskip("dp_accounting")
    pair = DominatingPair((10**6, 1), (1, 10**6), 10**6 + 1)
    ledger = Ledger(tmp_path / "a.ledger", Guarantee(100.0, 1e-6), adaptive=False)
    ledger.charge(Guarantee(13.82), what="a count", pair=pair)
    known = ledger.compositions("unnamed")
    least = min(found.epsilon for found in known.values())
    assert 0.99 * 13.82 <= least < 13.82
    assert ledger.total("unnamed") == ("simple", Guarantee(13.82))


@pytest.mark.parametrize(
    ("spent", "asked", "told"),
    [(0.7999825923906764, 0.5, "0.200017"), (0.5, 0.6, "0.5"), (0.2000005, 0.9, "0.799999")],
)
def test_what_is_left_is_rounded_down(
    spent: float, asked: float, told: str, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "a.ledger", Guarantee(1.0))
    ledger.charge(Guarantee(spent), what="a count")
    with pytest.raises(ParameterError, match=f"an epsilon of {told} left of the budget"):
        ledger.charge(Guarantee(asked), what="a count")
    assert f"an epsilon of {told} is left" in ledger.statement("unnamed")
    ledger.charge(Guarantee(float(told)), what="a count")


def test_one_is_told_as_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger")
    ledger.charge(Guarantee(0.5), what="a count", dataset="May")
    assert "1 release from 1 data set, with no budget each" in ledger._repr_html_()
    ledger.charge(Guarantee(0.5), what="a count", dataset="June")
    assert "2 releases from 2 data sets, with" in ledger._repr_html_()


def test_a_path_that_no_system_takes(capsys: Capture) -> None:
    code, out, err = run(["ledger", "a" * 300], capsys)
    assert (code, out) == (2, "")
    assert "there is no such ledger" in err
    assert len(err) < 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--budget-epsilon", "-1"], "budget_epsilon is -1"),
        (["--budget-epsilon", "1", "--budget-delta", "1"], "budget_delta is 1"),
        (["--budget-epsilon", "1e-320"], "budget_epsilon is 1e-320"),
        (["--budget-epsilon", "0.4"], "it must be enough for a release that is (0.5, 0)-DP"),
    ],
)
def test_a_budget_that_is_refused_leaves_no_ledger(
    options: list[str], said: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "p.json"
    roo.min_count(5, 2, 0.5).save(path)
    code, out, err = run(["release", str(path), "--input", "2,3", *options], capsys)
    assert (code, out) == (2, "")
    assert said in err
    assert [found.name for found in tmp_path.iterdir()] == ["p.json"]
    assert run(["release", str(path), "--input", "2,3", "--budget-epsilon", "1"], capsys)[0] == 0
    assert dpopt.load(path).ledger.budget == Guarantee(1.0)


def test_a_plurality_of_plain_records_says_what_is_replaced(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger")
    plurality.design(5, 3, 0.5).release([3, 1, 1], ledger=ledger)
    small = plurality.mode_rule(5, 3, 0.5, rule="ladder")
    large = plurality.mode_rule(500_000, 3, 0.5, rule="permute-and-flip")
    assert small.design is not None
    assert large.design is None
    for made, counts in ((small, [3, 1, 1]), (large, [499_998, 1, 1])):
        records = dict(zip("abc", counts, strict=True))
        made.release(records, alphabet=["a", "b", "c"], ledger=ledger)
    assert [entry.what.rpartition("; ")[2] for entry in ledger.entries()] == [
        "one ballot replaced"
    ] * 3
