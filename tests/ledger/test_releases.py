"""What is released from is written down: by objects, beside files, and by the commands."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Guarantee, Ledger, ParameterError, majority, public_prior, roo
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


@pytest.mark.parametrize(
    ("trained_once", "epsilon"), [(None, [0.1, 0.5, 0.6]), (True, [0.1, 0.5, 0.5])]
)
def test_releases_on_the_same_votes(
    trained_once: bool | None, epsilon: list[float], tmp_path: Path
) -> None:
    """Five voters of 0.1: one query spends 0.1, several as much as the voters, or more."""
    design, ledger = majority.design(5, 0.1, 1), Ledger(tmp_path / "a.ledger")
    spent = []
    for queries in (1, 1, 4):
        votes = [[1, 1, 1, 0, 0]] * queries
        design.release(votes, ledger=ledger, trained_once=trained_once)
        spent.append(ledger.total("unnamed")[1].epsilon)
    assert spent == pytest.approx(epsilon)
    assert design.together is not None
    assert math.isclose(design.together.epsilon, 0.6)


def test_fresh_votes_compose(tmp_path: Path) -> None:
    design, ledger = majority.design(5, 0.1, 1), Ledger(tmp_path / "a.ledger")
    design.release([[1, 1, 1, 0, 0]] * 3, ledger=ledger, trained_once=False)
    assert ledger.total("unnamed")[1].epsilon == pytest.approx(0.3)
    with pytest.raises(ParameterError, match="trained_once is given"):
        roo.min_count(5, 2, 1.0).write_down(trained_once=True)


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
