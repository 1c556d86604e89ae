"""Every end that is not an optimum raises, and says why; a bad point is never returned."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dpopt import InfeasibleError, ParameterError, Problem, SolverError, Status, solve
from dpopt.lp import Backend, Model, Rows, Separation, make_rows
from dpopt.lp.backends import RawSolution, get_backend
from dpopt.lp.backends.cvxpy import Cvxpy
from dpopt.lp.backends.highs import Highs
from dpopt.lp.solution import advice
from tests.lp.zoo import Case, Script, budget, disc, disc_problem

EXACT = pytest.mark.parametrize("backend", ["highs", "cvxpy"])
EVERY = pytest.mark.parametrize("backend", ["highs", "cvxpy", "cvxpy:CLARABEL"])


def conflict_of(problem: Problem, backend: str) -> set[str]:
    with pytest.raises(InfeasibleError) as caught:
        solve(problem, backend)
    for block in caught.value.blocks:
        assert block in str(caught.value)
    assert len(set(caught.value.blocks)) == len(caught.value.blocks)
    return set(caught.value.blocks)


def free_pair() -> Problem:
    problem = Problem("pair")
    problem.add_variables("x", 2, lower=-np.inf, upper=np.inf)
    problem.minimise([1.0, 2.0])
    return problem


FREE = {"x": (2, -np.inf, np.inf)}
FREE_LINE, UNIT = (1, -np.inf, np.inf), (0.0, 1.0)
# Variables and rows as a `Case` has them, costs that are maximised, and what is in conflict.
CONFLICTS: dict[str, tuple[Any, Any, Any, set[str]]] = {
    "two blocks": (
        FREE,
        {
            "innocent": ([[1.0, -1.0]], -4.0, 4.0),
            "floor": ([[1.0, 1.0]], 3.0, None),
            "ceiling": ([[1.0, 1.0]], None, 2.0),
            "bystander": (np.eye(2), -100.0, 100.0),
        },
        [-1.0, -2.0],
        {"floor", "ceiling"},
    ),
    "three blocks of which any two agree": (
        FREE,
        {
            "first": ([[1.0, 0.0]], 1.0, None),
            "innocent": ([[1.0, 1.0]], -50.0, None),
            "second": ([[0.0, 1.0]], 1.0, None),
            "sum": ([[1.0, 1.0]], None, 1.5),
        },
        [-1.0, -2.0],
        {"first", "second", "sum"},
    ),
    "a row without variables": (
        FREE,
        {"innocent": ([[1.0, 0.0]], 0.0, None), "nothing": ([[0.0, 0.0]], 1.0, None)},
        [-1.0, -2.0],
        {"nothing"},
    ),
    "a block and bounds": (
        {"x": (2, *UNIT), "y": (1, *UNIT)},
        {
            "too much": ({"x": [[1.0, 1.0]]}, 3.0, None),
            "innocent": ({"x": [[1.0, -1.0]], "y": [[1.0]]}, None, 1.0),
        },
        {"x": 1.0},
        {"too much", "bounds of x"},
    ),
    "an unbounded direction besides": (
        {"x": FREE_LINE, "runaway": (1, 0.0, np.inf)},
        {"floor": ({"x": [[1.0]]}, 1.0, None), "ceiling": ({"x": [[1.0]]}, None, 0.0)},
        {"runaway": 1.0},
        {"floor", "ceiling"},
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
@EVERY
def test_blocks_in_conflict_are_named(name: str, backend: str) -> None:
    variables, rows, costs, expected = CONFLICTS[name]
    problem = Case(name, variables, rows, "maximise", costs, np.nan).build()
    assert conflict_of(problem, backend) == expected


@EXACT
def test_family_against_a_block(backend: str) -> None:
    problem = Problem()
    problem.add_variables("x", 2, lower=-10.0, upper=10.0)
    problem.add_rows("innocent", [[1.0, -1.0]], lower=-30.0, upper=30.0)
    problem.add_rows("outside", [[1.0, 1.0]], lower=1.5)
    problem.add_family("disc", disc)
    problem.minimise([1.0, 0.5])
    assert conflict_of(problem, backend) == {"disc", "outside"}


def failure_of(problem: Problem, backend: str | Backend, **options: float) -> SolverError:
    with pytest.raises(SolverError) as caught:
        solve(problem, backend, **options)  # pyright: ignore[reportArgumentType]
    assert str(caught.value).endswith(".")
    return caught.value


@EVERY
def test_unbounded_ray(backend: str) -> None:
    problem = Problem("rocket")
    problem.add_variables("x", 2, lower=0.0, upper=np.inf)
    problem.add_rows("slope", [[1.0, -1.0]], upper=1.0)
    problem.maximise([1.0, 1.0])
    error = failure_of(problem, backend)
    assert error.status == "unbounded"
    assert "rocket" in str(error)


def large(size: int) -> Problem:
    """A dense program that takes far longer than a millisecond."""
    rng = np.random.default_rng(5)
    problem = Problem("large")
    problem.add_variables("x", size, lower=0.0, upper=10.0)
    problem.add_rows("rows", rng.uniform(0.1, 1.0, (size, size)), upper=float(size))
    problem.maximise(rng.uniform(0.5, 1.0, size))
    return problem


@EXACT
def test_too_little_time_for_a_large_program(backend: str) -> None:
    assert failure_of(large(300), backend, time_limit=1e-3).status == "time_limit"


INNER = pytest.mark.parametrize(
    "inner", [Highs(), Cvxpy("HIGHS"), Cvxpy("CLARABEL")], ids=lambda inner: inner.name
)


@INNER
def test_solver_that_runs_out_of_time_returns_no_point(inner: Backend) -> None:
    raw = inner.load(large(300).assemble()).run(1e-3)
    assert raw.status is Status.TIME_LIMIT
    assert raw.x is None
    assert raw.y is None


@INNER
def test_session_that_ran_out_of_time_can_go_on(inner: Backend) -> None:
    problem = large(60)
    session = inner.load(problem.assemble())
    session.run(1e-9)
    raw = session.run(600.0)
    assert raw.status is Status.OPTIMAL
    assert raw.x is not None
    found = -float(problem.assemble().cost @ raw.x)
    assert found == pytest.approx(solve(problem).objective, rel=1e-6)


def test_time_of_earlier_runs_does_not_count_for_the_next() -> None:
    session = Highs().load(large(100).assemble())
    start = time.perf_counter()
    for _ in range(10):
        session.run(None, way=1)
    spent = time.perf_counter() - start
    assert session.run(0.9 * spent, way=1).status is Status.OPTIMAL


def said(
    x: list[float] | None, y: list[float] | None = None, status: Status = Status.OPTIMAL
) -> RawSolution:
    return RawSolution(
        status, None if x is None else np.array(x), None if y is None else np.array(y), 7, "said"
    )


def scripted(*answers: RawSolution) -> Script:
    """Give the answers in turn, the last one for ever."""

    def every() -> Iterator[RawSolution]:
        yield from answers
        while True:
            yield answers[-1]

    queue = every()
    return Script(lambda way, model: next(queue))  # noqa: ARG005


# Of `budget`, whose optimum is 1.5; as a minimisation the multiplier is -0.5.
RIGHT = said([1.0, 0.5], [-0.5])


LIES = {
    "infeasible point": said([1.0, 1.0], [-0.5]),
    "infeasible point, no duals": said([1.0, 1.0]),
    "point outside its bounds": said([7.0, -2.5], [-0.5]),
    "not optimal": said([0.0, 0.0], [-0.5]),
    "wrong duals": said([1.0, 0.5], [-3.0]),
    "duals of the wrong sign": said([1.0, 0.5], [0.5]),
    "duals that are not numbers": said([1.0, 0.5], [np.nan]),
}


@pytest.mark.parametrize("lie", LIES)
def test_wrong_answer_that_the_next_way_mends(lie: str) -> None:
    backend = Script(lambda way, model: RIGHT if way else LIES[lie])  # noqa: ARG005
    solution = solve(budget(), backend)
    assert solution.objective == 1.5
    assert solution.x.tolist() == [1.0, 0.5]
    assert solution.gap == pytest.approx(0.0, abs=1e-13)
    assert (solution.rounds, solution.iterations) == (2, 14)
    assert backend.runs == [0, 1]


def test_a_point_without_multipliers_is_no_answer() -> None:
    error = failure_of(budget(), scripted(said([1.0, 0.5])))
    assert error.status == "numerical"
    assert "no multipliers" in str(error)


CLAIMS = (Status.INFEASIBLE, Status.UNBOUNDED)
FAILURES = [status for status in Status if status not in (Status.OPTIMAL, *CLAIMS)]


@pytest.mark.parametrize("status", FAILURES)
def test_status_of_the_solver_is_passed_on(status: Status) -> None:
    error = failure_of(budget(), scripted(said([1.0, 0.5], [-0.5], status)))
    assert error.status == status.value
    assert type(error.status) is str
    assert "said" in str(error)


@pytest.mark.parametrize("status", CLAIMS)
def test_a_false_claim_is_never_passed_on(status: Status) -> None:
    backend = scripted(said(None, status=status))
    error = failure_of(budget(), backend)
    assert type(error) is SolverError
    assert error.status == "numerical"
    assert f"{status} was claimed" in str(error)
    assert backend.runs == [0, 1]
    # The next way may answer.
    assert solve(budget(), scripted(said(None, status=status), RIGHT)).objective == 1.5


def test_the_remedy_is_another_backend_that_exists() -> None:
    for status in list(Status)[2:]:
        for name in ["highs", "cvxpy:HIGHS", "script"]:
            found = re.findall(r"backend='([^']*)'", advice(status, name))
            assert name not in found
            assert [get_backend(other).name for other in found] == found


# Of objective 1.5 - 3e-7: poor, and within a thousand times the gap that is wanted.
POOR = said([1.0 - 2e-7, 0.5 - 1e-7], [-0.5])


def test_a_gap_is_closed_by_the_next_way_or_stated_or_refused() -> None:
    backend = scripted(POOR, RIGHT)
    assert solve(budget(), backend).objective == 1.5
    assert backend.runs == [0, 1]
    for later in (
        POOR,
        *(said(None, status=end) for end in (Status.TIME_LIMIT, Status.MEMORY_LIMIT)),
    ):
        backend = scripted(POOR, later)
        assert solve(budget(), backend).gap == pytest.approx(3e-7, rel=1e-6)
        assert backend.runs == [0, 1]
    error = failure_of(budget(), scripted(POOR), relative_gap=1e-11)
    assert error.status == "numerical"
    assert "dual bound" in str(error)


HALF = make_rows([[1.0, 0.0]], upper=0.5)
NO_ROWS = make_rows(np.zeros((0, 2)), upper=0.0)


@EXACT
@pytest.mark.parametrize("rows", [HALF, NO_ROWS], ids=["same row", "no row"])
def test_oracle_that_is_never_content(backend: str, rows: Rows) -> None:
    problem = budget()
    problem.add_family("sulking", lambda x: Separation(rows, 1.0, x.size))
    error = failure_of(problem, backend)
    assert error.status == "stalled"
    assert "tolerance" in str(error)


LOST = Rows(HALF.matrix * np.nan, HALF.lower, HALF.upper)


@EXACT
@pytest.mark.parametrize(("rows", "worst"), [(NO_ROWS, np.nan), (LOST, 1.0)])
def test_oracle_that_answers_with_no_number(backend: str, rows: Rows, worst: float) -> None:
    problem = budget()
    problem.add_family("lost", lambda x: Separation(rows, worst, x.size))
    with pytest.raises((SolverError, ParameterError)):
        solve(problem, backend)


def half() -> Problem:
    """The budget, with a limit that an oracle reports again and again."""
    problem = budget()
    problem.add_family("half", lambda x: Separation(HALF, max(0.0, float(x[0]) - 0.5), 1))
    return problem


@EXACT
def test_oracle_that_reports_a_row_twice_gets_it_once(backend: str) -> None:
    solution = solve(half(), backend)
    assert solution.objective == pytest.approx(1.25, abs=1e-9)
    assert solution.cuts["half"].count == 1


def test_solver_that_ignores_the_rows_it_is_given() -> None:
    backend = scripted(RIGHT, said([1.0, 0.5], [-0.5, 0.0]))
    assert failure_of(half(), backend).status == "stalled"
    assert backend.runs == [0, 0, 1]


def test_another_way_after_a_stall_can_succeed() -> None:
    stuck, right = said([1.0, 0.5], [-0.5, 0.0]), said([0.5, 0.75], [-0.5, -0.5])
    solution = solve(half(), scripted(RIGHT, stuck, right))
    assert solution.objective == 1.25
    assert solution.bound == pytest.approx(1.25, abs=1e-13)
    assert solution.duals["half"].tolist() == [0.5]


@EXACT
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_too_few_rounds(backend: str, rounds: int) -> None:
    error = failure_of(disc_problem((3.0, 4.0)), backend, max_rounds=rounds)
    assert error.status == "iteration_limit"
    assert f"{rounds} rounds" in str(error)


@EXACT
def test_unbounded_until_the_family_speaks(backend: str) -> None:
    problem = free_pair()
    problem.add_family("disc", disc)
    assert failure_of(problem, backend).status == "unbounded"


@pytest.mark.parametrize("gap", [0.0, 2.0, float("nan")])
def test_a_relative_gap_is_a_share(gap: float) -> None:
    with pytest.raises(ParameterError, match="^relative_gap is .* in .0, 1.[.]$"):
        solve(budget(), relative_gap=gap)
    assert solve(budget(), relative_gap=1.0).status == Status.OPTIMAL


@pytest.mark.parametrize("raw", [None, "optimal", replace(RIGHT, status="optimal")], ids=str)
def test_an_answer_that_is_none(raw: Any) -> None:
    error = failure_of(budget(), Script(lambda way, model: raw))  # noqa: ARG005
    assert error.status == "numerical"
    assert "its answer is no RawSolution" in str(error)


def test_the_next_way_is_tried_unless_time_is_used_up() -> None:
    backend = scripted(said(None, status=Status.NUMERICAL), RIGHT)
    assert solve(budget(), backend).objective == 1.5
    backend = scripted(said(None, status=Status.TIME_LIMIT), RIGHT)
    assert failure_of(budget(), backend).status == "time_limit"
    assert backend.runs == [0]


def test_multipliers_without_a_bound_make_no_program_unbounded() -> None:
    """Of free variables in a box of rows; with multipliers 0 their costs are bounded by nothing."""
    problem = free_pair()
    problem.add_rows("box", np.eye(2), lower=-1.0, upper=1.0)
    assert failure_of(problem, scripted(said([1.0, 1.0], [0.0, 0.0]))).status == "numerical"


def test_a_start_of_another_backend_has_no_use_for_its_basis() -> None:
    start = solve(budget())
    assert start.basis is not None
    assert solve(budget(), scripted(RIGHT), start=start).objective == 1.5


def test_the_backend_that_is_asked_solves_large_programs_too() -> None:
    """Of 150 variables, from which a family begins with rows."""
    problem = Problem()
    problem.add_variables("x", 150, lower=0.0, upper=1.0)
    row = make_rows(np.ones((1, 150)), upper=150.0)
    problem.add_family("first", lambda x: Separation(row, 0.0, x.size), first=lambda: row)
    problem.maximise(np.ones(150))
    backend = Script(
        lambda way, model: RawSolution(  # noqa: ARG005
            Status.OPTIMAL, model.upper, np.zeros(model.rows.count), 1, ""
        )
    )
    assert solve(problem, backend).objective == 150.0
    assert backend.runs == [0]


@pytest.mark.parametrize("lie", LIES)
def test_a_wrong_answer_that_no_way_mends(lie: str) -> None:
    assert failure_of(budget(), scripted(LIES[lie])).status == "numerical"


@pytest.mark.parametrize("wrong", [said([1.0], [-0.5]), said([1.0, 0.5], [-0.5, 0.0])], ids=str)
def test_an_answer_of_another_size(wrong: RawSolution) -> None:
    error = failure_of(budget(), scripted(wrong))
    assert "of finite numbers" in str(error)


def test_a_point_that_breaks_one_of_two_rows() -> None:
    problem = budget()
    problem.add_rows("kept", [[1.0, 0.0]], upper=1.0)
    wrong = said([1.0, 1.0], [-0.5, 0.0])
    assert failure_of(problem, scripted(wrong)).status == "numerical"
    near = solve(problem, scripted(said([1.0, 0.5 + 2.5e-9], [-0.5, 0.0])))
    assert near.residual == pytest.approx(5e-9, rel=1e-6)


def test_a_family_that_is_content_does_not_hide_another() -> None:
    problem = budget()
    problem.add_family("half", lambda x: Separation(HALF, max(0.0, float(x[0]) - 0.5), 1))
    problem.add_family("content", lambda x: Separation(NO_ROWS, 0.0, x.size))
    assert solve(problem).objective == pytest.approx(1.25)


def test_an_optimum_of_what_has_none() -> None:
    assert failure_of(free_pair(), scripted(said([1.0, 1.0], []))).status == "unbounded"


def test_rounds_up_to_the_most_are_run() -> None:
    problem = free_pair()
    problem.set_bounds("x", lower=-2.0, upper=2.0)
    problem.add_family("disc", disc)
    needed = solve(problem).rounds
    assert solve(problem, max_rounds=needed).rounds == needed
    assert failure_of(problem, "highs", max_rounds=needed - 1).status == "iteration_limit"


def test_a_later_objective_is_rough_and_its_time_counts() -> None:
    """Of all optima on a face, by a solver that takes its time and is 1e-4 off."""
    problem = budget()
    problem.maximise([1.0, 2.0])
    problem.then_maximise([1.0, 0.0])
    rough = said([1.0 - 1e-4, 0.5 + 5e-5], [0.0, 0.0])

    def answer(way: int, model: Model) -> RawSolution:
        del way
        time.sleep(0.02)
        return said([1.0, 0.5], [-1.0]) if model.rows.count == 1 else rough

    backend, begun = Script(answer), time.perf_counter()
    solution = solve(problem, backend)
    assert 0.02 * len(backend.runs) <= solution.seconds <= time.perf_counter() - begun
    assert solution.x.tolist() == [1.0 - 1e-4, 0.5 + 5e-5]
    assert (len(backend.runs), solution.note) == (3, "")


def test_rows_may_be_missed_by_a_share_of_the_largest_variable() -> None:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1e7)
    problem.add_rows("limit", [[1.0, 0.0]], upper=1e6)
    problem.maximise([1.0, 0.0])
    assert solve(problem, scripted(said([1e6 + 1e-3, 0.0], [-1.0]))).residual == pytest.approx(1e-3)


def test_a_free_variable_is_bounded_by_what_rows_imply() -> None:
    """A multiplier is 1e-6 off, and leaves a reduced cost to a variable without an end."""
    problem = Problem()
    problem.add_variables("x", 1, lower=0.5, upper=1.0)
    problem.add_variables("top", 1, lower=-np.inf, upper=np.inf)
    problem.add_rows("above", {"x": [[-1.0]], "top": [[1.0]]}, lower=0.0)
    problem.minimise({"top": 1.0})
    assert solve(problem, scripted(said([0.5, 0.5], [1.0 - 1e-6]))).bound == pytest.approx(0.5)


@dataclass
class Warm(Script):
    """It ends with a basis: the statuses of variables, of which 1 is basic, and of rows."""

    columns: tuple[int, ...] = ()
    rows: tuple[int, ...] = (2,)

    def begin(self, columns: Any, rows: Any) -> None:
        del columns, rows

    def basis(self) -> tuple[Any, Any]:
        return np.array(self.columns, dtype=np.int8), np.array(self.rows, dtype=np.int8)


@pytest.mark.parametrize(
    ("columns", "off"), [((2, 1), 0.0), ((1, 0), 3e-7)], ids=["right", "wrong"]
)
def test_a_rough_answer_is_refined_at_its_basis_if_that_is_right(
    columns: tuple[int, ...], off: float
) -> None:
    rough = said([1.0, 0.5 - 3e-7], [-0.5])
    backend = Warm(lambda way, model: rough, columns=columns)  # noqa: ARG005
    assert solve(budget(), backend).objective == pytest.approx(1.5 - off, abs=1e-15)
    assert backend.runs == ([0, 1] if off else [0])


def test_a_basis_whose_numbers_are_beyond_all_floats_refines_nothing() -> None:
    def finite(x: np.ndarray) -> Separation:
        assert np.all(np.isfinite(x))
        return Separation(NO_ROWS, 0.0, 1)

    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_rows("limits", [[1.0, 0.0], [0.0, 5e-324]], upper=1.0)
    problem.add_family("finite", finite)
    problem.maximise([1.0, 1.0])
    rough = said([1.0 - 3e-7, 1.0], [-1.0, 0.0])
    backend = Warm(lambda way, model: rough, columns=(1, 1), rows=(2, 2))  # noqa: ARG005
    assert solve(problem, backend).objective == pytest.approx(2.0 - 3e-7, abs=1e-15)
