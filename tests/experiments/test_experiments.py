import csv
import json
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpopt import SolverError, majority
from experiments import __main__ as runner
from experiments import registry
from experiments.benchmarks import exactness
from experiments.majority import figure2
from experiments.output import to_csv
from experiments.registry import Outcome, Table

SMALL = figure2.Config(draws=2_000, repeats=3)


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        runner.main(arguments)
    return int(caught.value.code or 0)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return figure2.run(SMALL, lambda: None)


def test_figure_2_has_the_reference_errors(outcome: Outcome) -> None:
    errors = outcome.tables["errors"]
    known = {
        (1, "expected-error"): 0.121,
        (1, "surrogate"): 0.131,
        (3, "expected-error"): 0.0154,
        (3, "surrogate"): 0.0377,
        (3, "subsampling"): 0.0952,
        (5, "expected-error"): 0.00015,
        (5, "surrogate"): 0.00098,
        (5, "subsampling"): 0.0673,
    }
    for (m, curve), value in known.items():
        (found,) = errors.select(m=m, curve=curve).column("expected_error")
        assert found == pytest.approx(value, rel=0.02)


def test_figure_2_is_private_and_its_order_is_right(outcome: Outcome) -> None:
    errors = outcome.tables["errors"]
    for m in SMALL.allowances:
        error = {
            curve: errors.select(m=m, curve=curve).column("expected_error")[0]
            for curve in figure2.CURVES
        }
        assert error["expected-error"] <= error["surrogate"] + 1e-9
        assert error["surrogate"] <= error["subsampling"] + 1e-9
        assert error["subsampling"] < error["constant"]
    assert set(errors.column("constraints_checked")) == {31_824}
    assert max(errors.column("worst_violation")) < 1e-15


def test_figure_2_s_gamma_is_not_all_ones_and_symmetric(outcome: Outcome) -> None:
    gamma = outcome.tables["shapes"].select(m=3, curve="surrogate").column("gamma")
    known = [0.93924057, 0.54234043, 1, 1, 0.97769559, 1]
    assert gamma[6:] == pytest.approx(known, abs=1e-6)
    assert gamma == gamma[::-1]


def test_sampled_errors_agree_with_quadrature(outcome: Outcome) -> None:
    errors = outcome.tables["errors"]
    for exact, sampled, spread in zip(
        errors.column("expected_error"),
        errors.column("sampled_error"),
        errors.column("spread"),
        strict=True,
    ):
        assert abs(exact - sampled) <= 6 * spread + 2e-2 * exact


def test_steps_match_the_progress_told() -> None:
    told = []
    figure2.run(figure2.Config(draws=10, repeats=2), lambda: told.append(1))
    assert len(told) == figure2.EXPERIMENT.steps(figure2.EXPERIMENT.quick)


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def test_a_run_writes_tables_figures_and_a_report_the_same_bytes_twice(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        assert run(["majority-figure-2", "--out", str(folder)]) == 0
    first, second = ({p.name: p.read_bytes() for p in f.iterdir()} for f in folders)
    assert set(first) == {
        "majority-figure-2.errors.csv",
        "majority-figure-2.shapes.csv",
        "majority-figure-2.json",
        "majority-figure-2.png",
        "majority-figure-2.pdf",
        "report.html",
    }
    assert {n: b for n, b in first.items() if n != "report.html"} == {
        n: b for n, b in second.items() if n != "report.html"
    }
    links = Links()
    links.feed(first["report.html"].decode())
    files = {link for link in links.found if not link.startswith("#")}
    assert files <= set(first)
    assert "majority-figure-2.png" in files
    record = json.loads(first["majority-figure-2.json"])
    assert record["configuration"]["seed"] == 2
    assert record["versions"]["highspy"]
    rows = list(csv.reader(first["majority-figure-2.errors.csv"].decode().splitlines()))
    assert len(rows) == 1 + 16


def test_a_failing_experiment_is_reported_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Outcome:
        raise SolverError("highs ended with status time_limit", "time_limit")

    broken = figure2.EXPERIMENT.__class__(**{**vars(figure2.EXPERIMENT), "run": fail})
    monkeypatch.setattr(runner, "all_experiments", lambda: {broken.name: broken})
    assert run(["--out", str(tmp_path)]) == 1
    assert "time_limit" in capsys.readouterr().err
    assert "time_limit" in (tmp_path / "report.html").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"report.html"}


def test_bad_names_and_folders_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["figure-99"]) == 2
    assert "majority-figure-2" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    assert run(["--out", str(file)]) == 2
    assert run(["--nonsense"]) == 2


def test_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in registry.all_experiments())


def test_csv_keeps_every_digit() -> None:
    table = Table.of("t", [{"a": 0.1 + 0.2, "b": None, "c": "x,y", "d": 3}])
    assert to_csv(table) == 'a,b,c,d\n0.30000000000000004,,"x,y",3\n'


def test_the_benchmark_compares_and_stays_out_of_the_default_run(tmp_path: Path) -> None:
    config = exactness.Config(voters=(5,), draws=1_000, letters=8, rounds=1)
    told = []
    table = exactness.run(config, lambda: told.append(1)).tables["times"]
    assert len(told) == exactness.EXPERIMENT.steps(config)
    assert len(table.rows) == 3 + 2
    assert all(ratio > 0 for ratio in table.column("ratio"))
    assert run(["--out", str(tmp_path)]) == 0
    assert not list(tmp_path.glob("benchmark*"))


def test_the_slow_contenders_of_the_benchmark_judge_rightly() -> None:
    design = majority.design(7, 0.2, 2)
    broken = majority.assess(design.setting, [1.0] * 8)
    for number in (Fraction, exactness._interval):
        assert exactness._by_laws(design, number)
        assert not exactness._by_laws(broken, number)
