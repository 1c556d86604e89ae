"""Programs over the kernels that keep a public prior: the least worst case, and leximin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._types import SparseMatrix, Vector, frozen
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.privacy import Problem
from dpopt.privacy.guarantee import Guarantee
from dpopt.table import Graph, add_table, over_masses

MOST_LETTERS = 1000
"""Letters up to which a program over kernels is written out."""

# e^-epsilon must stay well above a solver's tolerance, 1e-10: from 18 on, with masses below 1e-8,
# solves failed.
_LARGEST_PROGRAM_EPSILON = 16.0
_FIXED_DUAL = 1e-6


class KernelProgram:
    """The program over all epsilon-LDP kernels that keep q: "sums", "privacy" and "invariance".

    Args:
        q: shape (n,).
        epsilon: in (0, 16].

    Attributes:
        problem: see above.

    Raises:
        ParameterError: for more than 1,000 letters, or an epsilon out of range.
    """

    def __init__(self, q: Vector, epsilon: float) -> None:
        n, self.guarantee = q.size, Guarantee(program_epsilon(epsilon))
        if n > MOST_LETTERS:
            raise ParameterError(
                f"prior has {n} letters; its program is written out for at most {MOST_LETTERS}, "
                "and the closed forms are for any number."
            )
        self.inputs, self.problem = Graph(n, n), Problem("kernel that keeps a prior")
        add_table(self.problem, self.inputs, self.guarantee)
        # Entry j of q K: K[i, j] stands at place i n + j.
        kept = self.over(sp.kron(sp.csr_array(q[None, :]), sp.eye_array(n), format="csr"))
        self.problem.add_rows("invariance", kept, lower=q, upper=q)

    def over(self, matrix: SparseMatrix) -> dict[str, SparseMatrix]:
        """Return a matrix over the flattened kernel as one over the program's variables."""
        return over_masses(self.problem, self.inputs, self.guarantee, matrix)

    def diagonal(self, letters: npt.ArrayLike | None = None) -> dict[str, SparseMatrix]:
        """Return K_ii of some letters, or of all, as rows: it stands at place i (n + 1)."""
        n = self.inputs.inputs
        chosen = np.arange(n) if letters is None else np.asarray(letters)
        entries = (np.ones(chosen.size), (np.arange(chosen.size), chosen * (n + 1)))
        return self.over(sp.csr_array(entries, shape=(chosen.size, n * n)))

    def minimise(self, costs: Vector) -> None:
        """Minimise sum_ij costs[i n + j] K_ij."""
        parts = self.over(sp.csr_array(costs[None, :]))
        self.problem.minimise({name: row.toarray().ravel() for name, row in parts.items()})


def leximin_solution(
    q: Vector, epsilon: float, backend: str | Backend, time_limit: float | None
) -> tuple[Vector, Solution]:
    """Return the diagonal of the leximin kernel by successive programs, and the last solution.

    The least K_ii is maximised, then the least of those that can still rise, and so on: after
    each program the letters whose rows have a positive dual, which stay at this value in every
    optimum, are fixed. At most n programs; a judge of the closed form, exact up to about 1e-8.

    Args:
        q: shape (n,).
        epsilon: in (0, 16].
        backend: see `dpopt.solve`; it must return duals.
        time_limit: seconds for each program.

    Raises:
        ParameterError: if an argument is out of range.
        SolverError: if the solver found no answer, or no dual.
    """
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
    program, free = KernelProgram(q, epsilon), np.isnan(values)
    # Above 1: a bound that holds would take the dual from the rows.
    program.problem.add_variables("least", 1, lower=0.0, upper=2.0)
    minus = -np.ones((int(free.sum()), 1))
    rows = {**program.diagonal(np.flatnonzero(free)), "least": minus}
    program.problem.add_rows("free", rows, lower=0.0)
    if not np.all(free):
        # A solver's tolerance less than was reached: else the next program may be infeasible.
        fixed = program.diagonal(np.flatnonzero(~free))
        program.problem.add_rows("fixed", fixed, lower=values[~free] - 1e-10)
    program.problem.maximise({"least": 1.0})
    return program.problem


def program_epsilon(epsilon: float) -> float:
    """Return epsilon if a program with coefficients down to e^-epsilon can be solved.

    Raises:
        ParameterError: if it is not in (0, 16].
    """
    return _checks.real("epsilon", epsilon, 0.0, _LARGEST_PROGRAM_EPSILON, open_lower=True)
