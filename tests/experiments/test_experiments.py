import csv
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpopt import SolverError, majority
from experiments import __main__ as runner
from experiments.benchmarks import page
from experiments.catalogue import all_experiments
from experiments.kept import to_csv
from experiments.majority import figures
from experiments.majority.voters import CURVES
from experiments.registry import Outcome, Table
from tests.experiments.comparing import exit_code

FIGURE_2, FIGURE_6, FIGURE_7, FIGURE_8 = figures.EXPERIMENTS
SMALL = replace(FIGURE_2.quick, draws=2_000, repeats=3)


run = partial(exit_code, runner.main)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return FIGURE_2.run(SMALL, lambda: None)


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
        (found,) = errors.select(target=m, curve=curve).column("expected_error")
        assert found == pytest.approx(value, rel=0.02)


def test_figure_2_is_private_and_its_order_is_right(outcome: Outcome) -> None:
    errors = outcome.tables["errors"]
    for target in SMALL.targets:
        error = {
            curve: errors.select(target=target.at, curve=curve).column("expected_error")[0]
            for curve in SMALL.drawn
        }
        assert error["expected-error"] <= error["surrogate"] + 1e-9
        assert error["surrogate"] <= error["subsampling"] + 1e-9
        assert error["subsampling"] < error["constant"]
    assert set(errors.column("paper_constraints")) == {31_824}
    assert set(errors.column("constraints_proved")) == {7_008}
    assert max(errors.column("worst_violation")) == 0.0
    assert min(errors.column("exact_slack")) >= 0.0
    for spent, target in zip(
        errors.column("spent_epsilon"), errors.column("target_epsilon"), strict=True
    ):
        assert spent <= target


def test_figure_2_s_gamma_is_not_all_ones_and_symmetric(outcome: Outcome) -> None:
    gamma = outcome.tables["shapes"].select(target=3, curve="surrogate").column("gamma")
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
        assert run(["run", "majority-figure-2", "--out", str(folder)]) == 0
    first, second = ({p.name: p.read_bytes() for p in f.iterdir() if p.is_file()} for f in folders)
    assert set(first) == {
        "majority-figure-2.errors.csv",
        "majority-figure-2.shapes.csv",
        "majority-figure-2.json",
        "majority-figure-2.run.json",
        "majority-figure-2.png",
        "majority-figure-2.pdf",
        "majority-figure-2.html",
        "index.html",
        # It judges statements that are refuted.
        "darrm-best-of-all.finding.json",
        "darrm-lemma-3-2.finding.json",
        "darrm-subsampling-at-one.finding.json",
        "verify.py",
    }
    # When it was run stands in these three alone.
    timed = {"index.html", "majority-figure-2.html", "majority-figure-2.run.json"}
    assert {n: b for n, b in first.items() if n not in timed} == {
        n: b for n, b in second.items() if n not in timed
    }
    links = Links()
    for written in ("index.html", "majority-figure-2.html"):
        links.feed(first[written].decode())
    files = {link.split("#")[0] for link in links.found if not link.startswith("#")}
    assert files <= set(first)
    assert "majority-figure-2.png" in files
    record = json.loads(first["majority-figure-2.json"])
    assert record["configuration"]["seed"] == 2
    assert record["versions"]["highspy"]
    rows = list(csv.reader(first["majority-figure-2.errors.csv"].decode().splitlines()))
    assert len(rows) == 1 + 16


def test_a_failing_experiment_is_reported_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Outcome:
        raise SolverError("highs ended with status time_limit", "time_limit")

    broken = replace(FIGURE_2, run=fail)
    monkeypatch.setattr(runner, "all_experiments", lambda: {broken.name: broken})
    assert run(["--out", str(tmp_path)]) == 1
    assert "time_limit" in capfd.readouterr().err
    assert "time_limit" in (tmp_path / f"{broken.name}.html").read_text()
    names = {"index.html", f"{broken.name}.html", f"{broken.name}.run.json"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_bad_names_and_folders_exit_2(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "majority-figure-99"]) == 2
    err = capfd.readouterr().err
    assert err == (
        "experiment is 'majority-figure-99'; it must be a known one; did you mean "
        "majority-figure-9 or majority-figure-8?\n"
    )
    assert run(["list", "q*"]) == 2
    assert "experiment is 'q*'; it must be one that" in capfd.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    assert run(["--out", str(file)]) == 2
    assert run(["--nonsense"]) == 2


def test_the_list_loads_nothing_that_only_a_run_needs() -> None:
    program = (
        "import sys\nfrom experiments.__main__ import main\n"
        "try:\n    main(['list'])\nexcept SystemExit:\n    pass\n"
        "heavy = ['scipy.stats', 'matplotlib.pyplot', 'sklearn', 'polars', 'pandas', 'cvxpy']\n"
        "sys.exit(' '.join(set(heavy) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_list_names_every_experiment(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(all_experiments())
    assert run(["list", "roo-*", "prior-kernels"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        name for name in all_experiments() if name.startswith("roo-") or name == "prior-kernels"
    ]


def test_figure_6_has_the_parameters_of_table_3() -> None:
    targets = FIGURE_6.quick.targets
    assert [round(t.allowance, 4) for t in targets] == [6.4521, 7.5742, 8.2708, 9.8823]
    assert [round(t.delta, 4) for t in targets] == [0.1001, 0.1001, 0.1001, 0.1002]
    assert {round(t.tau or 0, 4) for t in targets} == {14.0328}
    assert {round(t.lam or 0, 4) for t in targets} == {0.1003}


def test_figure_6_needs_no_noise_at_its_first_target() -> None:
    first = FIGURE_6.quick.targets[0]
    design = majority.design(
        35, 0.1, first.allowance, mechanism_delta=1e-5, delta=first.delta, objective="surrogate"
    )
    assert (round(design.guarantee.epsilon, 4), round(first.delta, 4)) == (0.6452, 0.1001)
    assert min(design.gamma) == 1.0
    assert design.expected_error == 0.0
    assert design.certificate is not None


def test_figure_7_has_double_subsampling_between_the_program_and_subsampling() -> None:
    config = replace(FIGURE_7.quick, allowance=(3.0, 5.0), draws=100, repeats=2)
    errors = FIGURE_7.run(config, lambda: None).tables["errors"]
    for m, double in ((3, 0.0673), (5, 0.0209)):
        found = dict(
            zip(
                errors.select(target=m).column("curve"),
                errors.select(target=m).column("expected_error"),
                strict=True,
            )
        )
        assert found["double"] == pytest.approx(double, rel=0.01)
        assert found["surrogate"] < found["double"] < found["subsampling"]


def test_figure_8_is_the_paper_s_largest() -> None:
    config = replace(FIGURE_8.quick, allowance=(10.0,), draws=100, repeats=2)
    outcome = FIGURE_8.run(config, lambda: None)
    errors = outcome.tables["errors"]
    found = dict(zip(errors.column("curve"), errors.column("expected_error"), strict=True))
    assert found["expected-error"] == pytest.approx(0.0065, rel=0.02)
    assert found["surrogate"] == pytest.approx(0.0348, rel=0.01)
    assert found["double"] == pytest.approx(0.1149, rel=0.01)
    assert set(found) == set(CURVES)
    assert FIGURE_8.plot(outcome).get_axes()


def test_csv_keeps_every_digit() -> None:
    table = Table.of("t", [{"a": 0.1 + 0.2, "b": None, "c": "x,y", "d": 3}])
    assert to_csv(table) == 'a,b,c,d\n0.30000000000000004,,"x,y",3\n'


def test_benchmarks_stay_out_of_the_default_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = {FIGURE_2.name: FIGURE_2, page.EXPERIMENT.name: page.EXPERIMENT}
    monkeypatch.setattr(runner, "all_experiments", lambda: cheap)
    assert run(["--out", str(tmp_path)]) == 0
    assert (tmp_path / "majority-figure-2.png").exists()
    assert not list(tmp_path.glob("benchmark*"))
