"""The builder: what it assembles, and what it says of bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dpopt import ParameterError, Problem, solve
from dpopt.lp import make_rows


def test_assembled_arrays() -> None:
    problem = Problem("mixed")
    problem.add_variables("x", 2, lower=0.0, upper=[1.0, 2.0])
    problem.add_rows("early", [[1.0, 2.0]], upper=2.0)
    problem.add_variables("y", 1, lower=-np.inf, upper=np.inf)
    problem.add_rows("late", {"y": [[4.0], [5.0]], "x": [[1.0, 0.0], [0.0, 3.0]]}, lower=[0, 1])
    problem.maximise({"y": 7.0, "x": [1.0, -1.0]})
    model = problem.assemble()
    np.testing.assert_array_equal(model.cost, [-1.0, 1.0, -7.0])
    np.testing.assert_array_equal(model.lower, [0.0, 0.0, -np.inf])
    np.testing.assert_array_equal(model.upper, [1.0, 2.0, np.inf])
    np.testing.assert_array_equal(
        model.rows.matrix.toarray(), [[1.0, 2.0, 0.0], [1.0, 0.0, 4.0], [0.0, 3.0, 5.0]]
    )
    np.testing.assert_array_equal(model.rows.lower, [-np.inf, 0.0, 1.0])
    np.testing.assert_array_equal(model.rows.upper, [2.0, np.inf, np.inf])
    assert dict(model.variables) == {"x": slice(0, 2), "y": slice(2, 3)}
    assert dict(model.blocks) == {"early": slice(0, 1), "late": slice(1, 3)}


def test_entries_given_twice_are_added() -> None:
    twice = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), (1, 2))
    np.testing.assert_array_equal(make_rows(twice, upper=1.0).matrix.toarray(), [[2.0, 4.0]])


def test_changing_the_callers_arrays_does_not_change_the_problem() -> None:
    matrix = sp.csr_array([[1.0, 2.0]])
    bounds, limit, cost = np.ones(2), np.array([2.0]), np.ones(2)
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=bounds)
    problem.add_rows("budget", matrix, upper=limit)
    problem.maximise(cost)
    matrix.data[:] = 100.0
    bounds[:], limit[:], cost[:] = 0.0, 0.0, 0.0
    assert solve(problem).objective == pytest.approx(1.5, abs=1e-9)


def shaped() -> Problem:
    problem = Problem("shaped")
    problem.add_variables("K", (3, 4), lower=0.0, upper=1.0)
    problem.add_variables("t", (), lower=0.0, upper=5.0)
    problem.minimise({"K": np.arange(12.0).reshape(3, 4), "t": 1.0})
    return problem


def test_variables_keep_their_shape() -> None:
    problem = shaped()
    problem.add_rows("sums", {"K": np.kron(np.eye(3), np.ones(4))}, lower=1.0, upper=1.0)
    problem.add_rows("second", {"K": {(1, 0): 1.0}}, upper=0.25)
    solution = solve(problem)
    assert problem.shapes == {"K": (3, 4), "t": ()}
    expected = [[1.0, 0.0, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(solution["K"], expected, atol=1e-9)
    assert solution["t"].shape == ()
    np.testing.assert_array_equal(solution.x, np.r_[solution["K"].ravel(), solution["t"]])
    with pytest.raises(ValueError, match="read-only"):
        solution["K"][0, 0] = 3.0
    with pytest.raises(ParameterError, match="'z'"):
        solution["z"]
    columns = solution.columns()
    assert len({len(column) for column in columns.values()}) == 1
    assert columns["index"][:13] == [*range(12), 0]
    np.testing.assert_array_equal(columns["value"][:12], solution["K"].ravel())


ONE_ROW = np.arange(1.0, 13.0)
SEVERAL = np.arange(24.0).reshape(2, 12)


def test_rows_in_the_shape_of_their_variables() -> None:
    for given, dense in [
        (ONE_ROW.reshape(3, 4), [ONE_ROW]),
        (ONE_ROW, [ONE_ROW]),
        (ONE_ROW.reshape(1, 12), [ONE_ROW]),
        (ONE_ROW.reshape(3, 4).tolist(), [ONE_ROW]),
        (sp.csr_array(ONE_ROW.reshape(3, 4)), [ONE_ROW]),
        (sp.coo_matrix(ONE_ROW.reshape(1, 12)), [ONE_ROW]),
        (SEVERAL, SEVERAL),
        (SEVERAL.reshape(2, 3, 4), SEVERAL),
        (sp.csc_matrix(SEVERAL), SEVERAL),
        ({(0, 3): 2.0, (2, 0): -1.0}, [np.eye(12)[3] * 2 - np.eye(12)[8]]),
        (
            [{(1, 1): 2.0}, {}, {(np.int64(2), 3): 1}],
            [np.eye(12)[5] * 2, np.zeros(12), np.eye(12)[11]],
        ),
    ]:
        problem = shaped()
        problem.add_rows("rows", {"K": given}, upper=1.0)
        matrix = problem.assemble().rows.matrix.toarray()
        np.testing.assert_array_equal(matrix[:, :12], dense)
        assert not np.any(matrix[:, 12])


def test_objectives_in_the_shape_of_their_variables() -> None:
    cost = np.arange(12.0).reshape(3, 4)
    by_index = {index: cost[index] for index in np.ndindex(3, 4)}
    problem = shaped()
    forms: list[Any] = [cost, cost.ravel(), cost.tolist(), by_index]
    for given in forms:
        problem.maximise({"K": given})
        np.testing.assert_array_equal(problem.assemble().cost, -np.r_[cost.ravel(), 0.0])
    problem.minimise({"K": {(2, 3): 1.5}, "t": {(): 2.0}})
    np.testing.assert_array_equal(problem.assemble().cost, [*np.zeros(11), 1.5, 2.0])


@pytest.mark.parametrize("word", ["minimize", "maximize"])
def test_the_american_spelling_is_the_same(word: str) -> None:
    answers = []
    for spelling in (word, word.replace("z", "s")):
        problem = Problem()
        problem.add_variables("x", 2, lower=0.0, upper=[1.0, 2.0])
        problem.add_rows("sum", {"x": [[1.0, 1.0]]}, lower=1.0, upper=2.5)
        getattr(problem, spelling)({"x": [1.0, 1.0]})
        getattr(problem, f"then_{spelling}")({"x": [1.0, 0.0]})
        answers.append(solve(problem)["x"].tolist())
    assert answers[0] == answers[1] == ([0.0, 1.0] if word == "minimize" else [1.0, 1.5])


def test_bounds_are_broadcast_and_set_again() -> None:
    problem = Problem()
    problem.add_variables("K", (2, 3), lower=0.0, upper=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(problem.assemble().upper, [1, 2, 3, 1, 2, 3])
    problem.set_bounds("K", upper=[[4.0], [5.0]])
    np.testing.assert_array_equal(problem.assemble().upper, [4, 4, 4, 5, 5, 5])
    np.testing.assert_array_equal(problem.assemble().lower, np.zeros(6))
    problem.set_bounds("K", lower=-1.0)
    np.testing.assert_array_equal(problem.assemble().lower, -np.ones(6))


def test_a_block_is_replaced_in_its_place() -> None:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_variables("y", 1, lower=-1.0, upper=1.0)
    problem.add_rows("both", {"x": [[1.0, 1.0]], "y": [[1.0]]}, upper=2.0)
    problem.maximise({"x": 1.0, "y": 0.5})
    problem.add_rows("last", {"y": [[1.0]]}, upper=0.5)
    first = solve(problem)
    problem.replace_rows("both", {"x": np.eye(2)}, upper=[0.25, 0.5])
    assert list(problem.blocks) == ["both", "last"]
    assert first.objective == pytest.approx(2.0)
    assert solve(problem).objective == pytest.approx(0.25 + 0.5 + 0.25)
