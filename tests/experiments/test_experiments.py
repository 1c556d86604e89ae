import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dpopt import SolverError
from experiments import __main__ as runner
from experiments.benchmarks import page
from experiments.catalogue import all_experiments, named
from experiments.kept import to_csv
from experiments.registry import Outcome, Table
from tests.experiments.comparing import exit_code

FIGURE_2 = named("majority-figure-2")
EXAMPLE = named("prior-example-1")
run = partial(exit_code, runner.main)


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


@pytest.mark.slow
def test_the_list_loads_nothing_that_only_a_run_needs() -> None:
    program = (
        "import sys\nfrom experiments.__main__ import main\n"
        "try:\n    main(['list'])\nexcept SystemExit:\n    pass\n"
        "heavy = ['scipy.stats', 'matplotlib.pyplot', 'sklearn', 'polars', 'cvxpy', 'torch']\n"
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


def test_csv_keeps_every_digit() -> None:
    table = Table.of([{"a": 0.1 + 0.2, "b": None, "c": "x,y", "d": 3}], caption="t")
    assert to_csv(table) == 'a,b,c,d\n0.30000000000000004,,"x,y",3\n'


@pytest.mark.slow
def test_benchmarks_stay_out_of_the_default_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = {EXAMPLE.name: EXAMPLE, page.run.name: page.run}
    monkeypatch.setattr(runner, "all_experiments", lambda: cheap)
    assert run(["--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{EXAMPLE.name}.png").exists()
    assert not list(tmp_path.glob("benchmark*"))
