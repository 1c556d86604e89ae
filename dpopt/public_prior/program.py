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


def leximin_problem(prior: npt.ArrayLike | PublicPrior, epsilon: float) -> Problem:
    """Return the program of the leximin kernel: n objectives in order.

    The first is that of `tv_problem`, whose optimum has the largest of all least K_ii. The k-th,
    k = 2..n, is the largest sum of the k smallest K_ii (Ogryczak and Tamir, Inf. Process. Lett. 85
    (2003)),

        maximise   k level_k - sum_i short_ki
        subject to short_ki >= level_k - K_ii, short_ki >= 0      "smallest"

    so that the smallest is as large as it can be, then the second smallest, and so on.

    Args:
        prior: as for `tv_problem`.
        epsilon: likewise.

    Raises:
        ParameterError: if an argument is out of range.
    """
    problem, n = tv_problem(prior, epsilon), public_prior(prior).size
    if n == 1:
        return problem
    problem.add_variables("level", n - 1, lower=0.0, upper=1.0)
    problem.add_variables("short", (n - 1, n), lower=0.0, upper=1.0)
    diagonal = over_kernel(problem, diagonal_rows(n))
    sides: dict[str, Any] = {
        name: sp.vstack([part] * (n - 1), format="csr") for name, part in diagonal.items()
    }
    sides["level"] = sp.kron(sp.eye_array(n - 1), -np.ones((n, 1)), format="csr")
    sides["short"] = sp.eye_array(n * (n - 1), format="csr")
    problem.add_rows("smallest", sides, lower=0.0)
    for k in range(2, n + 1):
        short = np.zeros((n - 1, n))
        short[k - 2] = -1.0
        problem.then_maximise({"level": {k - 2: float(k)}, "short": short})
    return problem


def leximin_values(
    prior: npt.ArrayLike | PublicPrior, epsilon: float, *, backend: str | Backend = "highs"
) -> Vector:
    """Return the diagonal of the leximin kernel by its program, for small n.

    A judge of the closed form.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        backend: see `dpopt.solve`.

    Returns:
        Shape (n,), in the caller's order of letters, read-only.

    Raises:
        ParameterError: if an argument is out of range.
        SolverError: if the solver found no answer to one of the objectives.
    """
    solution = solve(leximin_problem(prior, epsilon), backend)
    if solution.note:
        raise SolverError(solution.note, Status.NUMERICAL)
    return frozen(np.diag(kernel_of(solution, epsilon)))


def diagonal_rows(n: int) -> sp.csr_array:
    """Return K_11 .. K_nn as rows over the flattened kernel: K_ii stands at place i (n + 1)."""
    return sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))


def program_epsilon(epsilon: float) -> float:
    """Return epsilon if a program with coefficients down to e^-epsilon can be solved.

    Raises:
        ParameterError: if it is not in (0, 16].
    """
    return _checks.real("epsilon", epsilon, 0.0, _LARGEST_PROGRAM_EPSILON, open_lower=True)
