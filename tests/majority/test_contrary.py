"""Noise levels below 0: the minority's answer may be the likelier one."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import Majority, ParameterError, majority, verify
from dpopt.majority import expected_error_weights
from experiments.majority.full_set import check_full, full_problem
from tests.majority.brute import ONE, judged, verdict_of_verify, weights


@pytest.mark.slow
def test_it_errs_less_where_the_allowance_is_small() -> None:
    """K = 101, m = 5: both private over the paper's own set of corners, in double precision."""
    paper, contrary = (
        dpopt.design(dpopt.Majority(101, 0.1, 5, contrary=free)) for free in (False, True)
    )
    assert paper.expected_error == pytest.approx(0.0455955, abs=1e-7)
    assert contrary.expected_error == pytest.approx(0.0455634, abs=1e-7)
    assert contrary.gamma.min() == pytest.approx(-1.0, abs=1e-9)
    for design in (paper, contrary):
        assert design.private
        assert design.gap is not None
        assert abs(design.gap) < 1e-11
        check = check_full(design.setting, design.gamma, design.table.matrix()[:, 1])
        assert check.excess <= check.rounding


SMALL = [
    Majority(3, 0.1, 0.5),
    Majority(5, 0.5, 0.3),
    Majority(5, 0.1, 1.0, 0.0, 0.01),
    Majority(3, 0.3, 0.5, 0.01, 0.02),
]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("own", [(1.0, 0.5, 0.25), (-1.0, 0.2, 1.0), (0.1, 1.0, -0.3)])
@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_the_optimum_is_that_of_the_paper_s_set(setting: Majority, own: tuple[float, ...]) -> None:
    """Any coefficients, over every multiset of corners written out, -1 <= gamma <= 1."""
    costs = own[: setting.middle]
    rows = full_problem(setting, costs).blocks["corners"].matrix.toarray()
    listed = linprog(-np.array(costs), rows, np.ones(len(rows)), bounds=(-1, 1))
    design = dpopt.design(replace(setting, contrary=True, coefficients=costs))
    assert design.value == pytest.approx(-listed.fun, abs=1e-9)
    assert design.optimality is not None
    assert float(design.optimality.bound) == pytest.approx(-listed.fun, abs=1e-9)
    gamma = weights(design.table)
    assert judged(setting, gamma) <= Fraction(1, 10**60)
    assert verdict_of_verify(design.setting, gamma)
    assert dpopt.design(replace(setting, coefficients=costs)).value <= design.value + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mean", "surrogate", "worst-case", "least-regret"])
def test_no_objective_is_the_worse_for_it(objective: Any, tmp_path: Path) -> None:
    values = []
    for contrary in (False, True):
        design = dpopt.design(dpopt.Majority(21, 0.1, 1, objective=objective, contrary=contrary))
        design.save(tmp_path / "x.json", proof=True)
        lines = list(verify.check(str(tmp_path / "x.json"), str(tmp_path / "x.proof.json")))
        how = "bounded" if objective == "least-regret" else "optimal"
        assert lines[3].startswith(f"{how}: ")
        again = dpopt.load(tmp_path / "x.json")
        assert (again.table, again.setting.contrary) == (design.table, contrary)
        values.append(design.value)
    assert values[1] >= values[0] - 1e-9


def test_it_answers_with_the_minority() -> None:
    setting = Majority(3, 0.1, 3, contrary=True)
    against = majority.assess(setting, [-1.0, 1.0])
    assert against.private
    assert [against.release(votes) for votes in ([1, 1, 0], [1, 0, 0], [1, 1, 1])] == [0, 1, 1]
    assert against.gamma.tolist() == [1.0, -1.0, -1.0, 1.0]
    coin = float(expected_error_weights(3, setting.prior).values @ [2.0, 0.0])
    assert against.expected_error == pytest.approx(coin)


def test_without_it_the_majority_is_the_likelier_answer(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"outside \[0, 1\]"):
        majority.assess(Majority(3, 0.1, 3), [-1.0, 1.0])
    against = majority.assess(Majority(3, 0.1, 3, contrary=True), [-1.0, 1.0])
    with pytest.raises(ParameterError, match="contrary must be True"):
        Majority(3, 0.1, 3).judge(against.table)
    path = tmp_path / "x.json"
    against.save(path)
    assert verify.main([str(path)]) == 0
    record = json.loads(path.read_text())
    record["body"]["setting"]["contrary"] = False
    path.write_text(json.dumps(record))
    assert verify.main([str(path)]) == 4
    with pytest.raises(ParameterError, match="contrary"):
        dpopt.load(path)
    assert max(weights(against.table)) == ONE
