"""The paper's linear program over kernels, in three forms, and successive programs for leximin.

A program's own optimum is the judge of the closed forms; nothing here uses them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import SolverError
from dpopt._types import Matrix, Vector, frozen
from dpopt.lp import Backend, Problem, Rows, Solution, Status, make_rows, solve
from dpopt.privacy import column_minimum_rows, complete_graph, ratio_rows, stochastic_rows
from dpopt.public_prior.prior import PublicPrior, public_prior

FORMULATIONS = ("shifted", "columns", "naive")
"""How `tv_problem` can write the constraints of privacy."""

# e^-epsilon must stay well above a solver's tolerance, 1e-10: from 18 on, with masses below 1e-8,
# solves failed.
_LARGEST_EPSILON = 16.0
_FIXED_DUAL = 1e-6


def tv_problem(
    prior: npt.ArrayLike | PublicPrior, epsilon: float, formulation: str = "shifted"
) -> Problem:
    """Return the program whose optimum is Gamma_TV: minimise t subject to 1 - K_ii <= t.

    Over kernels K (n x n) with K 1 = 1, q K = q and K_ij <= e^epsilon K_i'j. Three forms of the
    last, with w_j >= K_ij the cap of a column:

    - "naive": e^-epsilon K_ij <= K_i'j, n^2 (n - 1) rows.
    - "columns": e^-epsilon w_j <= K_ij <= w_j, 2 n^2 rows.
    - "shifted": K = e^-epsilon 1 w^T + V, 0 <= V_ij <= (1 - e^-epsilon) w_j, n^2 rows; w is
      e^epsilon u in K = 1 u^T + V.

    All coefficients of privacy lie in [e^-epsilon, 1], so that large epsilon stays in a solver's
    range. Solve it with `dpopt.solve`, and read K with `kernel_of`.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        formulation: see above.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q, epsilon = public_prior(prior).masses, program_epsilon(epsilon)
    _checks.choice("formulation", formulation, FORMULATIONS)
    if formulation == "shifted":
        problem = shifted_problem(q, epsilon)
        diagonal = shifted_diagonal(q.size, epsilon)
    else:
        problem = _plain_problem(q, epsilon, formulation)
        diagonal = {"kernel": _diagonal(q.size)}
    problem.add_variables("worst", 1, lower=0.0, upper=1.0)
    problem.add_rows("diagonal", {**diagonal, "worst": np.ones((q.size, 1))}, lower=1.0)
    problem.minimise({"worst": 1.0})
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
    if "kernel" in solution.values:
        n = math.isqrt(solution["kernel"].size)
        kernel = solution["kernel"].reshape(n, n)
    else:
        cap, n = solution["cap"], solution["cap"].size
        excess = solution["excess"].reshape(n, n)
        kernel = cap * math.exp(-epsilon) + np.clip(excess, 0.0, -math.expm1(-epsilon) * cap)
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
    values = np.full(q.size, np.nan)
    while np.any(np.isnan(values)):
        free = np.isnan(values)
        solution = solve(_leximin_step(q, epsilon, values), backend)
        stuck = np.abs(solution.duals["free"]) > _FIXED_DUAL
        if not np.any(stuck):
            raise SolverError("the solver returned no dual for any letter.", Status.NUMERICAL)
        values[np.flatnonzero(free)[stuck]] = solution.objective
    return frozen(values)


def _leximin_step(q: Vector, epsilon: float, values: Vector) -> Problem:
    """Maximise the least free K_ii; ``values`` holds those fixed before, NaN where free."""
    problem = shifted_problem(q, epsilon)
    # Above 1: a bound that holds would take the dual from the rows.
    problem.add_variables("least", 1, lower=0.0, upper=2.0)
    diagonal, free = shifted_diagonal(q.size, epsilon), np.isnan(values)
    chosen = {name: part[np.flatnonzero(free)] for name, part in diagonal.items()}
    minus = -np.ones((int(free.sum()), 1))
    problem.add_rows("free", {**chosen, "least": minus}, lower=0.0)
    if not np.all(free):
        fixed = {name: part[np.flatnonzero(~free)] for name, part in diagonal.items()}
        # A solver's tolerance less than was reached: else the next program may be infeasible.
        problem.add_rows("fixed", fixed, lower=values[~free] - 1e-10)
    problem.maximise({"least": 1.0})
    return problem


def shifted_problem(q: Vector, epsilon: float) -> Problem:
    """Return all epsilon-LDP kernels that keep q, as variables "cap" w and "excess" V."""
    n, least = q.size, math.exp(-epsilon)
    eye = sp.eye_array(n, format="csr")
    problem = Problem("private kernel with a public prior")
    problem.add_variables("cap", n, lower=0.0, upper=1.0)
    problem.add_variables("excess", n * n, lower=0.0, upper=1.0)
    sums = {"cap": np.full((n, n), least), "excess": stochastic_rows(n, n).matrix}
    problem.add_rows("sums", sums, lower=1.0, upper=1.0)
    kept = {"cap": least * eye, "excess": _output_rows(q)}
    problem.add_rows("invariance", kept, lower=q, upper=q)
    lift = sp.kron(np.ones((n, 1)), eye)
    privacy = {"cap": math.expm1(-epsilon) * lift, "excess": sp.eye_array(n * n)}
    problem.add_rows("privacy", privacy, upper=0.0)
    return problem


def shifted_diagonal(n: int, epsilon: float) -> dict[str, sp.csr_array]:
    """Return K_11 .. K_nn as rows over the variables of `shifted_problem`."""
    eye = sp.eye_array(n, format="csr")
    return {"cap": sp.csr_array(math.exp(-epsilon) * eye), "excess": _diagonal(n)}


def _plain_problem(q: Vector, epsilon: float, formulation: str) -> Problem:
    n, least = q.size, math.exp(-epsilon)
    problem = Problem("private kernel with a public prior")
    problem.add_variables("kernel", n * n, lower=0.0, upper=1.0)
    problem.add_rows("sums", stochastic_rows(n, n))
    problem.add_rows("invariance", {"kernel": _output_rows(q)}, lower=q, upper=q)
    if formulation == "naive":
        rows = ratio_rows(complete_graph(n), n, n, epsilon)
        problem.add_rows("privacy", Rows(rows.matrix * least, rows.lower, rows.upper * least))
        return problem
    problem.add_variables("cap", n, lower=0.0, upper=1.0)
    rows = column_minimum_rows(n, n, epsilon)
    units = sp.diags_array(np.concatenate([np.ones(n * n), np.full(n, least)]))
    problem.add_rows("privacy", make_rows(rows.matrix @ units, upper=rows.upper))
    return problem


def _output_rows(law: Vector) -> sp.csr_array:
    """Return p K as rows over the flattened kernel, shape (n, n^2)."""
    return sp.csr_array(sp.kron(law[None, :], sp.eye_array(law.size)))


def _diagonal(n: int) -> sp.csr_array:
    """Return K_11 .. K_nn as rows over the flattened kernel."""
    return sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))


def program_epsilon(epsilon: float) -> float:
    """Return epsilon if a program with coefficients down to e^-epsilon can be solved.

    Raises:
        ParameterError: if it is not in (0, 16].
    """
    return _checks.real("epsilon", epsilon, 0.0, _LARGEST_EPSILON, open_lower=True)
