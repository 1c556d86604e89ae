import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpopt import majority
from tests.cli.running import Capture, run

GOOD = ["majority", "--mechanisms", "11", "--epsilon", "0.1", "--allowance", "3"]


def test_json_has_the_result(capsys: Capture) -> None:
    code, out, err = run([*GOOD, "--json"], capsys)
    assert (code, err) == (0, "")
    found = json.loads(out)
    design = majority.design(11, 0.1, 3)
    assert found["gamma"] == design.gamma.tolist()
    assert found["objective"] == design.value
    assert found["bound"] >= found["objective"]
    assert found["gap"] == pytest.approx(found["bound"] - found["objective"])
    assert found["expected_error"] == design.expected_error
    assert found["worst_violation"] == 0.0
    assert found["constraints_checked"] == 364
    assert found["rows_used"] > 0
    assert found["seconds"] > 0


@pytest.mark.parametrize("backend", ["highs", "cvxpy"])
def test_surrogate_with_delta(backend: str, capsys: Capture) -> None:
    extra = ["--mechanism-delta", "1e-5", "--delta", "3e-5", "--objective", "surrogate"]
    code, out, _ = run([*GOOD, *extra, "--backend", backend, "--json"], capsys)
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(0.424403008456, abs=1e-8)


def test_text_shows_gamma(capsys: Capture) -> None:
    code, out, _ = run(GOOD, capsys)
    assert code == 0
    assert "364 corner multisets" in out
    assert f"{majority.design(11, 0.1, 3).gamma[9]:.12f}" in out


def test_prior_and_weights(tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = run([*GOOD, "--prior", "uniform:0,0.3,0.7,1", "--json"], capsys)
    assert code == 0
    assert json.loads(out)["prior"] == "uniform:0,0.3,0.7,1"
    path = tmp_path / "weights.txt"
    path.write_text("0, 0, 0\n0 0 1")
    code, out, _ = run([*GOOD, "--weights", str(path), "--json"], capsys)
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(1.0, abs=1e-9)


def test_plot_and_save_write_files(tmp_path: Path, capsys: Capture) -> None:
    figure, result = tmp_path / "gamma.png", tmp_path / "gamma.json"
    code, _, _ = run([*GOOD, "--plot", str(figure), "--save", str(result)], capsys)
    assert code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert np.array(json.loads(result.read_text())["body"]["gamma"]).shape == (12,)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (["--mechanisms", "10"], "mechanisms is 10"),
        (["--mechanisms", "0"], "mechanisms is 0"),
        (["--mechanisms", "x"], "--mechanisms"),
        (["--mechanisms", "100001"], "mechanisms is 100001"),
        (["--allowance", "12"], "allowance is 12"),
        (["--epsilon", "-1"], "epsilon is -1"),
        (["--epsilon", "nan"], "epsilon is nan"),
        (["--epsilon", "inf"], "epsilon is inf"),
        (["--delta", "1"], "delta is 1"),
        (["--mechanism-delta", "0.1"], "mechanism_delta is 0.1"),
        (["--prior", "uniform:0,2"], "prior's upper end is 2"),
        (["--prior", "gauss"], "prior is 'gauss'"),
        (["--objective", "best"], "objective is 'best'"),
        (["--backend", "abacus"], "backend is 'abacus'"),
        (["--backend", "cvxpy:ABACUS"], "solver is 'ABACUS'"),
        (["--backend", "highs:IPM"], "backend is 'highs:IPM'"),
        (["--weights", "missing.txt"], "missing.txt"),
        (["--weights", "."], "directory"),
        (["--plot", "."], "directory"),
        (["--save", "."], "directory"),
        (["--save", "missing/gamma.json"], "missing"),
        (["--plot", "gamma.docx"], "gamma.docx"),
        (["--time-limit", "-1"], "time_limit is -1"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_exits_2_with_one_sentence(
    changed: list[str], named: str, capsys: Capture
) -> None:
    code, out, err = run([*GOOD, *changed], capsys)
    assert (code, out) == (2, "")
    assert named in err
    assert err.count("\n") == 1


def test_weights_file_of_words(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "weights.txt"
    for content in ("a b c", "1 2", "nan " * 6):
        path.write_text(content)
        code, out, err = run([*GOOD, "--weights", str(path)], capsys)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1


def test_solver_failure_exits_3(capsys: Capture) -> None:
    code, out, err = run([*GOOD, "--time-limit", "0"], capsys)
    assert (code, out) == (3, "")
    assert "time_limit" in err
    assert err.count("\n") == 1


def test_missing_options_and_commands_exit_2(capsys: Capture) -> None:
    assert run(["majority", "--mechanisms", "11"], capsys)[0] == 2
    assert run(["nonsense"], capsys)[0] == 2


def test_help_and_version(capsys: Capture) -> None:
    code, out, _ = run(["majority", "--help"], capsys)
    assert code == 0
    assert "--allowance" in out
    assert "0.1.0" in run(["--version"], capsys)[1]


def test_the_command_starts_without_cvxpy_and_matplotlib() -> None:
    code = (
        "import sys; import dpopt.cli; "
        "from dpopt import majority; majority.design(5, 0.1, 2); "
        "sys.exit(bool({'cvxpy', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
