"""Privacy as rows over any variable: against linprog, written pair by pair, and formulas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import InfeasibleError, ParameterError, Problem, kernel, lp, solve
from dpopt.privacy import directed_pairs

INPUTS, OUTPUTS = 4, 3


def random_graph(rng: np.random.Generator, inputs: int) -> list[tuple[int, int]]:
    edges = [pair for pair in itertools.combinations(range(inputs), 2) if rng.random() < 0.5]
    return edges or [(0, 1)]


def by_linprog(
    loss: np.ndarray, pairs: Sequence[Sequence[int]], epsilon: float, delta: float
) -> float:
    """min <loss, K> over kernels, one constraint written after the other, by its definition.

    The sum over outputs of the positive part is the greatest over sets of outputs: every one of
    the 2^outputs sets has its row, and there are no further variables.
    """
    inputs, outputs = loss.shape
    rows, limits = [], []
    for x, other in pairs:
        for size in range(1, outputs + 1):
            for chosen in itertools.combinations(range(outputs), size):
                row = np.zeros((inputs, outputs))
                row[x, list(chosen)] += 1.0
                row[other, list(chosen)] -= math.exp(epsilon)
                rows.append(row.ravel())
                limits.append(delta)
    sums = np.kron(np.eye(inputs), np.ones((1, outputs)))
    result = linprog(
        loss.ravel(),
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        A_eq=sums,
        b_eq=np.ones(inputs),
        bounds=(0.0, 1.0),
        method="highs-ds",
    )
    assert result.success
    return result.fun


def excess(matrix: np.ndarray, pairs: list[tuple[int, int]], epsilon: float) -> float:
    return max(np.maximum(matrix[x] - math.exp(epsilon) * matrix[z], 0).sum() for x, z in pairs)


def program(loss: np.ndarray, before: int = 0, after: int = 0) -> Problem:
    """A kernel called "K" somewhere among other variables, which want to be 1."""
    problem = Problem()
    if before:
        problem.add_variables("before", (before, 2), lower=0.0, upper=1.0)
    problem.add_variables("K", loss.shape, lower=0.0, upper=1.0)
    if after:
        problem.add_variables("after", after, lower=0.0, upper=1.0)
    problem.add_law("sums", "K")
    others = {name: -1.0 for name in ("before", "after") if name in problem.variables}
    problem.minimise({"K": loss, **others})
    return problem


@pytest.mark.parametrize("delta", [0.0, 0.07])
@pytest.mark.parametrize("form", ["auto", "edges"])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 0), (2, 5)])
def test_random_graphs_against_linprog(delta: float, form: str, before: int, after: int) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, before])
        loss, epsilon = rng.normal(size=(INPUTS, OUTPUTS)), 2 * rng.random()
        edges = random_graph(rng, INPUTS)
        both = edges + [(z, x) for x, z in edges]
        problem = program(loss, before, after)
        problem.add_private("private", "K", epsilon=epsilon, delta=delta, graph=edges, form=form)
        solution = solve(problem)
        value = by_linprog(loss, both, epsilon, delta) - 2 * before - after
        assert solution.objective == pytest.approx(value, abs=1e-8)
        assert excess(solution["K"], both, epsilon) <= delta + 1e-8
        assert ("private:delta" in problem.blocks) == (delta > 0)


@pytest.mark.parametrize("form", ["auto", "edges", "columns"])
@pytest.mark.parametrize("inputs", [2, 3, 5])
def test_forms_over_the_complete_graph(form: str, inputs: int) -> None:
    rng = np.random.default_rng(inputs)
    loss = rng.normal(size=(inputs, OUTPUTS))
    problem = program(loss, before=2)
    problem.add_private("private", "K", epsilon=0.8, form=form)
    every = list(itertools.permutations(range(inputs), 2))
    value = by_linprog(loss, every, 0.8, 0.0)
    assert solve(problem).objective == pytest.approx(value - 4.0, abs=1e-8)
    columns = form == "columns" or (form == "auto" and inputs > 3)
    assert ("private:ceiling" in problem.variables) == columns
    if columns:
        assert problem.blocks["private"].count == 2 * inputs * OUTPUTS


@pytest.mark.parametrize("letters", [2, 5, 9])
def test_randomised_response(letters: int) -> None:
    # Kairouz, Oh, Viswanath (2016): the truth e^epsilon times as often as each lie.
    problem = program(1 - np.eye(letters))
    problem.add_private("private", "K", epsilon=1.0)
    for epsilon in (1.0, 0.0, 3.0, 30.0):
        problem.replace_private("private", epsilon=epsilon)
        lies = letters * (letters - 1) / (math.exp(epsilon) + letters - 1)
        assert solve(problem).objective == pytest.approx(lies, abs=1e-8)


def test_two_kernels_one_after_the_other_need_a_graph_each() -> None:
    problem = Problem()
    for name, graph in (("A", "path"), ("B", "complete")):
        problem.add_variables(name, (4, 4), lower=0.0, upper=1.0)
        problem.add_law(f"law of {name}", name)
        problem.add_private(f"private {name}", name, epsilon=1.0, graph=graph)
    distance = abs(np.subtract.outer(np.arange(4), np.arange(4)))
    problem.minimise({"A": distance, "B": 1 - np.eye(4)})
    path = [(x, z) for x, z in itertools.permutations(range(4), 2) if abs(x - z) == 1]
    expected = by_linprog(distance, path, 1.0, 0.0) + 12 / (math.e + 3)
    assert solve(problem).objective == pytest.approx(expected, abs=1e-8)


def test_grids_have_a_shape() -> None:
    rng = np.random.default_rng(9)
    loss = rng.normal(size=(6, 2))
    problem = program(loss)
    problem.add_private("private", "K", epsilon=0.5, graph="grid", shape=(2, 3))
    pairs = directed_pairs("grid", 6, (2, 3))
    assert pairs is not None
    value = by_linprog(loss, pairs.tolist(), 0.5, 0.0)
    assert solve(problem).objective == pytest.approx(value, abs=1e-8)


def test_the_program_of_a_kernel_setting() -> None:
    loss = np.random.default_rng(10).random((5, 5))
    setting = kernel.KernelSetting(loss, 0.7, delta=0.02, graph="path")
    problem = program(loss / 5)
    problem.add_private("private", "K", epsilon=0.7, delta=0.02, graph="path")
    mine, general = solve(problem), solve(kernel.kernel_problem(setting))
    assert mine.objective == pytest.approx(general.objective, abs=1e-9)
    given, own = kernel.kernel_problem(setting).assemble(), problem.assemble()
    np.testing.assert_array_equal(own.rows.matrix.toarray(), given.rows.matrix.toarray())


def test_sweeps_start_from_the_last() -> None:
    rng = np.random.default_rng(11)
    loss = rng.normal(size=(6, 6))
    for graph, delta in (("path", 0.0), ("complete", 0.0), ("path", 0.1)):
        problem = program(loss)
        problem.add_private("private", "K", epsilon=0.1, delta=delta, graph=graph)
        order, last = list(problem.assemble().blocks), None
        pairs = directed_pairs(graph, 6)
        every = list(itertools.permutations(range(6), 2)) if pairs is None else pairs.tolist()
        for epsilon in np.linspace(0.1, 2.0, 6):
            problem.replace_private("private", epsilon=float(epsilon))
            last = solve(problem, start=last)
            cold = solve(problem)
            assert last.objective == pytest.approx(cold.objective, abs=1e-9)
            assert last.bound == pytest.approx(cold.bound, abs=1e-9)
            value = by_linprog(loss, every, float(epsilon), delta)
            assert last.objective == pytest.approx(value, abs=1e-8)
        assert list(problem.assemble().blocks) == order


def test_delta_and_graph_may_change_where_their_variables_allow_it() -> None:
    rng = np.random.default_rng(12)
    loss = rng.normal(size=(4, 3))
    problem = program(loss)
    problem.add_private("private", "K", epsilon=0.5, graph="path", form="edges")
    every = list(itertools.permutations(range(4), 2))
    path = [(x, z) for x, z in every if abs(x - z) == 1]
    start = solve(problem)
    problem.replace_private("private", graph="complete")
    assert solve(problem, start=start).objective == pytest.approx(by_linprog(loss, every, 0.5, 0.0))
    problem.replace_private("private", graph="path", delta=0.2)
    assert solve(problem, start=start).objective == pytest.approx(by_linprog(loss, path, 0.5, 0.2))
    problem.replace_private("private", delta=0.0)
    assert solve(problem, start=start).objective == pytest.approx(by_linprog(loss, path, 0.5, 0.0))
    with pytest.raises(ParameterError, match="'private' have 6 pairs .* given has 12"):
        problem.replace_private("private", graph="complete")
    problem = program(loss)
    problem.add_private("private", "K", epsilon=0.5)
    with pytest.raises(ParameterError, match="'private' are in the form 'columns'"):
        problem.replace_private("private", delta=0.1)


def test_ceilings_follow_the_bounds() -> None:
    problem = Problem()
    problem.add_variables("K", (4, 2), lower=0.0, upper=1.0)
    problem.add_private("private", "K", epsilon=math.log(2))
    problem.set_bounds("K", upper=[[8.0, 8.0], [8.0, 8.0], [8.0, 8.0], [3.0, 8.0]])
    problem.maximise({"K": 1.0})
    # The entry of at most 3 holds the others of its column below 6.
    np.testing.assert_allclose(solve(problem)["K"][:, 0], [6.0, 6.0, 6.0, 3.0], atol=1e-8)


def test_a_law_of_any_shape() -> None:
    problem = Problem()
    problem.add_variables("q", 3, lower=0.0, upper=1.0)
    problem.add_variables("T", (2, 2, 3), lower=0.0, upper=1.0)
    problem.add_law("one", "q")
    problem.add_law("four", "T")
    problem.maximise({"T": np.arange(12.0).reshape(2, 2, 3), "q": [1.0, 5.0, 2.0]})
    solution = solve(problem)
    np.testing.assert_allclose(solution["T"].sum(axis=-1), 1.0, atol=1e-9)
    assert solution.objective == pytest.approx(5 + 2 + 5 + 8 + 11)
    assert [problem.blocks[name].count for name in ("one", "four")] == [1, 4]


def test_one_input_has_nobody_to_hide_from() -> None:
    problem = program(np.array([[0.0, 1.0]]))
    problem.add_private("private", "K", epsilon=0.0)
    assert solve(problem).objective == pytest.approx(0.0)


def test_conflicts_name_the_privacy() -> None:
    problem = program(np.zeros((2, 2)))
    problem.add_private("private", "K", epsilon=0.1, graph="path")
    problem.add_rows("truth", {"K": [{(0, 0): 1.0}, {(1, 1): 1.0}]}, lower=0.9)
    with pytest.raises(InfeasibleError) as caught:
        solve(problem)
    assert {"private", "truth"} <= set(caught.value.blocks)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"epsilon": math.nan}, "epsilon of 'private' is nan"),
        ({"epsilon": -1.0}, "epsilon of 'private' is -1"),
        ({"epsilon": math.inf}, "epsilon of 'private' is inf"),
        ({"epsilon": "1"}, "epsilon of 'private' is '1'"),
        ({"delta": 1.5}, "delta of 'private' is 1.5"),
        ({"delta": math.nan}, "delta of 'private' is nan"),
        ({"graph": [(1, 1)]}, r"'private': graph holds the edge \(1, 1\)"),
        ({"graph": [(0, 4)]}, r"'private': graph holds the edge \(0, 4\)"),
        ({"graph": "star"}, "'private': graph is 'star'"),
        ({"graph": "grid", "shape": (3, 2)}, "'private': shape is"),
        ({"shape": (2, 2)}, "'private': shape is"),
        ({"form": "shifted"}, "form of 'private' is 'shifted'"),
        ({"form": "columns", "graph": "path"}, "form of 'private' is 'columns'"),
        ({"form": "columns", "delta": 0.1}, "form of 'private' is 'columns'"),
        ({"variable": "Q"}, "no variable named 'Q'"),
        ({"variable": "flat"}, r"'private' are over 'flat', which has shape \(9,\)"),
        ({"variable": ["K"]}, "no variable named"),
        ({"name": "sums"}, "name is 'sums'"),
        ({"name": ""}, "name is ''"),
    ],
)
def test_bad_input(given: dict[str, object], says: str) -> None:
    problem = program(np.zeros((4, 3)))
    problem.add_variables("flat", 9, lower=0.0, upper=1.0)
    before = list(problem.variables), list(problem.blocks)
    good = {"name": "private", "variable": "K", "epsilon": 1.0}
    with pytest.raises(ParameterError, match=says):
        problem.add_private(**(good | given))  # pyright: ignore[reportArgumentType]
    assert (list(problem.variables), list(problem.blocks)) == before


@pytest.mark.parametrize("taken", ["private:excess", "private:delta", "private:ceiling"])
def test_names_of_its_own_that_are_taken(taken: str) -> None:
    problem = program(np.zeros((5, 2)))
    problem.add_rows(taken, {"K": np.ones((5, 2))}, upper=9.0)
    before = list(problem.variables), list(problem.blocks)
    delta = 0.0 if "ceiling" in taken else 0.1
    with pytest.raises(ParameterError, match=f"name is '{taken}'"):
        problem.add_private("private", "K", epsilon=1.0, delta=delta)
    assert (list(problem.variables), list(problem.blocks)) == before


def test_bad_replacements() -> None:
    problem = program(np.zeros((4, 3)))
    with pytest.raises(ParameterError, match="no private rows named 'sums'; known: none"):
        problem.replace_private("sums", epsilon=1.0)
    problem.add_private("private", "K", epsilon=1.0)
    with pytest.raises(ParameterError, match="no private rows named .*; known: private"):
        problem.replace_private(["private"], epsilon=1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ParameterError, match="epsilon of 'private' is nan"):
        problem.replace_private("private", epsilon=math.nan)
    problem.add_variables("t", (), lower=0.0, upper=1.0)
    with pytest.raises(ParameterError, match="a law needs an axis"):
        problem.add_law("law", "t")


def test_more_rows_than_are_taken() -> None:
    problem = Problem()
    problem.add_variables("K", (300, 40), lower=0.0, upper=1.0)
    with pytest.raises(ParameterError, match="'private' would be 3,588,000; at most 2,000,000"):
        problem.add_private("private", "K", epsilon=1.0, form="edges")
    assert list(problem.variables) == ["K"]


def test_who_is_called_problem() -> None:
    assert dpopt.Problem is dpopt.privacy.Problem
    assert issubclass(Problem, lp.Problem)
    assert not hasattr(lp.Problem, "add_private")
