"""The same program in cvxpy and in files: same optimum, same sense, same names."""

from __future__ import annotations

import re
from pathlib import Path

import cvxpy as cp
import highspy
import numpy as np
import pytest

from dpopt import ParameterError, Problem
from dpopt.lp import Separation, make_rows
from tests.lp.zoo import ZOO, Case

CASES = pytest.mark.parametrize("case", ZOO, ids=lambda case: case.name)
ENDINGS = pytest.mark.parametrize("ending", [".mps", ".lp"])


def named() -> Problem:
    """Maximise 3x + 2y with two-sided, equality and one-sided rows; optimum 13.5."""
    problem = Problem("named")
    problem.add_variables("x", 2, lower=[0.0, 1.0], upper=[4.0, 1.0])
    problem.add_variables("lone y", 1, lower=-np.inf, upper=np.inf)
    problem.add_rows("two sided", {"x": [[1.0, 1.0]]}, lower=0.5, upper=4.5)
    problem.add_rows("equal", {"x": [[1.0, 0.0]], "lone y": [[-2.0]]}, lower=0.5, upper=0.5)
    problem.add_rows("below", {"lone y": [[1.0]]}, upper=100.0)
    problem.maximise({"x": [3.0, 0.0], "lone y": 2.0})
    return problem


def read(path: Path) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver


@CASES
def test_cvxpy_reaches_the_known_optimum(case: Case) -> None:
    problem = case.build()
    program = problem.to_cvxpy()
    optimum = program.solve(solver=cp.HIGHS)
    assert program.status == cp.OPTIMAL
    assert optimum == pytest.approx(case.objective, rel=1e-7, abs=1e-7)
    assert isinstance(program.objective, cp.Maximize) == problem.maximising
    assert {v.name(): v.size for v in program.variables()} == {
        name: part.stop - part.start for name, part in problem.variables.items()
    }


@CASES
@ENDINGS
def test_file_has_the_known_optimum_and_sense(case: Case, ending: str, tmp_path: Path) -> None:
    problem, path = case.build(), tmp_path / f"model{ending}"
    problem.write(path)
    solver = read(path)
    assert solver.getObjectiveValue() == pytest.approx(case.objective, rel=1e-7, abs=1e-7)
    sense = highspy.ObjSense.kMaximize if problem.maximising else highspy.ObjSense.kMinimize
    if np.any(problem.assemble().cost):
        assert solver.getLp().sense_ == sense
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@ENDINGS
def test_file_keeps_digits(ending: str, tmp_path: Path) -> None:
    problem = Problem()
    problem.add_variables("x", 1, lower=0.0, upper=1.0)
    problem.add_rows("third", [[1.0 / 3.0]], upper=1.0 / 7.0)
    problem.maximise([1.0])
    path = tmp_path / f"model{ending}"
    problem.write(path)
    lp = read(path).getLp()
    assert lp.a_matrix_.value_[0] == pytest.approx(1.0 / 3.0, rel=1e-14)
    assert lp.row_upper_[0] == pytest.approx(1.0 / 7.0, rel=1e-14)


def plain(label: str) -> str:
    """A name with its brackets and blanks replaced, whatever they are replaced by."""
    return re.sub(r"\W+", "_", label).strip("_")


@ENDINGS
def test_file_keeps_names(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"named{ending}"
    named().write(path)
    lp = read(path).getLp()
    assert {plain(name) for name in lp.col_names_} == {"x_0", "x_1", "lone_y_0"}
    rows = [plain(name) for name in lp.row_names_]
    assert {"equal_0", "below_0"} <= set(rows)
    assert any(name.startswith("two_sided_0") for name in rows)


@ENDINGS
def test_names_that_differ_only_by_a_blank_stay_apart(ending: str, tmp_path: Path) -> None:
    problem = Problem()
    problem.add_variables("a b", 1, lower=0.0, upper=1.0)
    problem.add_variables("a_b", 1, lower=0.0, upper=2.0)
    problem.maximise({"a b": 1.0, "a_b": 10.0})
    path = tmp_path / f"model{ending}"
    problem.write(path)
    solver = read(path)
    assert solver.getObjectiveValue() == pytest.approx(21.0)
    assert len(set(solver.getLp().col_names_)) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [(name, r"\.mps or \.lp") for name in ("model.txt", "model", "model.mps.gz", "lp")]
    + [("folder.mps", "directory"), ("nowhere/model.mps", "missing")],
)
def test_no_file_can_be_there(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "folder.mps").mkdir()
    with pytest.raises(ParameterError, match=f"path is .* {said}"):
        named().write(tmp_path / name)
    assert list(tmp_path.rglob("*")) == [tmp_path / "folder.mps"]


def with_family() -> Problem:
    problem = named()
    nothing = make_rows(np.zeros((0, problem.size)), upper=0.0)
    problem.add_family("cone", lambda x: Separation(nothing, 0.0, x.size))
    return problem


def test_families_cannot_be_written_out(tmp_path: Path) -> None:
    for leave in (Problem.to_cvxpy, lambda problem: problem.write(tmp_path / "model.mps")):
        with pytest.raises(ParameterError, match=r"'cone'.*materialised"):
            leave(with_family())
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.mps"
    path.write_text("old", encoding="utf-8")

    def half_written(solver: highspy.Highs, name: str) -> highspy.HighsStatus:
        del solver
        Path(name).write_text("half", encoding="utf-8")
        return highspy.HighsStatus.kError

    monkeypatch.setattr(highspy.Highs, "writeModel", half_written)
    with pytest.raises(ParameterError, match="could not write 'named'"):
        named().write(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
