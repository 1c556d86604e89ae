"""Programs over the kernels that keep a public prior: the least worst case, and leximin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._types import Matrix, Vector, frozen
from dpopt.kernel import KernelSetting, over_kernel
from dpopt.kernel.program import matrix_of
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.privacy import Problem
from dpopt.public_prior.prior import PublicPrior, public_prior

FORMULATIONS = ("shifted", "columns", "naive")
"""How `tv_problem` can write the constraints of privacy."""

MOST_LETTERS = 1000
"""Letters up to which a program over kernels is written out."""

# e^-epsilon must stay well above a solver's tolerance, 1e-10: from 18 on, with masses below 1e-8,
# solves failed.
_LARGEST_PROGRAM_EPSILON = 16.0
_FIXED_DUAL = 1e-6


def tv_problem(
    prior: npt.ArrayLike | PublicPrior, epsilon: float, formulation: str = "shifted"
) -> Problem:
    """Return the program whose optimum is Gamma_TV: minimise t subject to 1 - K_ii <= t.

    Over kernels K (n x n) with K 1 = 1, q K = q and K_ij <= e^epsilon K_i'j, the last in one of
    the forms of `KernelSetting`: "naive" is its "edges", with n^2 (n - 1) rows; "columns" has
    2 n^2, "shifted" n^2. Solve it with `dpopt.solve`, and read K with `kernel_of`.

    Args:
        prior: q, shape (n,), above 0, summing to 1, n at most 1,000; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        formulation: "naive", "columns" or "shifted".

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_prior(prior).masses
    form = _checks.choice("formulation", formulation, FORMULATIONS)
    loss = np.ones((q.size, q.size)) - np.eye(q.size)
    form = "edges" if form == "naive" else form
    return kernels_keeping(q, epsilon, loss=loss, objective="minimax", formulation=form)


def kernels_keeping(q: Vector, epsilon: float, **asked: Any) -> Problem:  # noqa: ANN401
    """Return the program over all epsilon-LDP kernels that keep q, for an objective.

    Args:
        q: shape (n,).
        epsilon: in (0, 16].
        asked: parameters of `KernelSetting`.

    Raises:
        ParameterError: for more than 1,000 letters, or an epsilon out of range.
    """
    epsilon = program_epsilon(epsilon)
    if q.size > MOST_LETTERS:
        raise ParameterError(
            f"prior has {q.size} letters; its program is written out for at most {MOST_LETTERS}, "
            "and the closed forms are for any number."
        )
    if q.size == 1:
        return _of_one_letter(epsilon)
    return KernelSetting(epsilon=epsilon, invariant=q, **asked).problem()


def _of_one_letter(epsilon: float) -> Problem:
    """Return the program of the only kernel of one letter, in the shifted form."""
    shrink = math.exp(-epsilon)
    problem = Problem("kernel of one letter")
    problem.add_variables("ceiling", 1, lower=0.0, upper=1.0)
    problem.add_variables("excess", 1, lower=0.0, upper=1.0)
    problem.add_rows("sums", {"ceiling": [[shrink]], "excess": [[1.0]]}, lower=1.0, upper=1.0)
    problem.add_rows("privacy", {"ceiling": [[shrink - 1.0]], "excess": [[1.0]]}, upper=0.0)
    problem.minimise({"ceiling": 0.0})
    return problem


def kernel_of(solution: Solution, epsilon: float) -> Matrix:
    """Return K from a solution of any of the forms, shape (n, n), read-only.

    Entries of the shifted form are brought into their limits, and rows are divided by their sums.
    K is as private as the solver's tolerance: see `dpopt.privacy.quantise_kernel`.

    Args:
        solution: of `tv_problem`.
        epsilon: the one given there.
    """
    _checks.instance("solution", solution, Solution)
    epsilon = program_epsilon(epsilon)
    plain = "kernel" in solution.values
    n = math.isqrt(solution["kernel"].size) if plain else solution["ceiling"].size
    kernel = matrix_of(solution, n, math.exp(-epsilon))
    return frozen(kernel / kernel.sum(axis=1, keepdims=True))


def leximin_values(
    prior: npt.ArrayLike | PublicPrior, epsilon: float, *, backend: str | Backend = "highs"
) -> Vector:
    """Return the diagonal of the leximin kernel by successive programs, for small n.

    The least K_ii is maximised, then the least of those that can still rise, and so on: after
    each program the letters whose rows have a positive dual, which stay at this value in every
    optimum, are fixed. At most n programs; a judge of the closed form, exact up to about 1e-8.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        backend: see `dpopt.solve`; it must return duals.

    Returns:
        Shape (n,), in the caller's order of letters, read-only.

    Raises:
        ParameterError: if an argument is out of range.
        SolverError: if the solver found no answer, or no dual.
    """
    q, epsilon = public_prior(prior).masses, program_epsilon(epsilon)
    return leximin_solution(q, epsilon, backend, None)[0]


def leximin_solution(
    q: Vector, epsilon: float, backend: str | Backend, time_limit: float | None
) -> tuple[Vector, Solution]:
    """Return the leximin diagonal, and the solution of the last of the programs."""
    values = np.full(q.size, np.nan)
    while True:
        free = np.isnan(values)
        solution = solve(_leximin_step(q, epsilon, values), backend, time_limit=time_limit)
        stuck = np.abs(solution.duals["free"]) > _FIXED_DUAL
        if not np.any(stuck):
            raise SolverError("the solver returned no dual for any letter.", Status.NUMERICAL)
        values[np.flatnonzero(free)[stuck]] = solution.objective
        if not np.any(np.isnan(values)):
            return frozen(values), solution


def _leximin_step(q: Vector, epsilon: float, values: Vector) -> Problem:
    """Maximise the least free K_ii; ``values`` holds those fixed before, NaN where free."""
    problem = kernels_keeping(q, epsilon, loss=np.eye(q.size), sense="maximise")
    # Above 1: a bound that holds would take the dual from the rows.
    problem.add_variables("least", 1, lower=0.0, upper=2.0)
    diagonal, free = over_kernel(problem, diagonal_rows(q.size)), np.isnan(values)
    chosen = {name: part[np.flatnonzero(free)] for name, part in diagonal.items()}
    minus = -np.ones((int(free.sum()), 1))
    problem.add_rows("free", {**chosen, "least": minus}, lower=0.0)
    if not np.all(free):
        fixed = {name: part[np.flatnonzero(~free)] for name, part in diagonal.items()}
        # A solver's tolerance less than was reached: else the next program may be infeasible.
        problem.add_rows("fixed", fixed, lower=values[~free] - 1e-10)
    problem.maximise({"least": 1.0})
    return problem


def diagonal_rows(n: int) -> sp.csr_array:
    """Return K_11 .. K_nn as rows over the flattened kernel: K_ii stands at place i (n + 1)."""
    return sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))


def program_epsilon(epsilon: float) -> float:
    """Return epsilon if a program with coefficients down to e^-epsilon can be solved.

    Raises:
        ParameterError: if it is not in (0, 16].
    """
    return _checks.real("epsilon", epsilon, 0.0, _LARGEST_PROGRAM_EPSILON, open_lower=True)
