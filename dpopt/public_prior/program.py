"""Programs over the kernels K with q K = q: the base program, and the objectives of leximin."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import SparseMatrix, Vector
from dpopt.privacy import Problem
from dpopt.privacy.guarantee import Guarantee
from dpopt.table import Graph, add_table, over_masses


class KernelProgram:
    """The program over all epsilon-LDP kernels with q K = q: "sums", "privacy" and "invariance".

    Args:
        q: shape (n,).
        epsilon: in (0, 16], in nats.

    Attributes:
        problem: with these rows, but no objective.

    Raises:
        ParameterError: for more than 1,000 categories, or an epsilon out of range.
    """

    def __init__(self, q: Vector, epsilon: float) -> None:
        n, self.guarantee = q.size, Guarantee(program_epsilon(epsilon))
        # Largest number of categories of a program over kernels.
        if n > 1000:
            raise ParameterError(
                f"public has {n} categories; its program is written out for at most 1000, "
                "and the closed forms are for any number."
            )
        self.inputs, self.problem = Graph(n, n), Problem("kernel that keeps a prior")
        add_table(self.problem, self.inputs, self.guarantee)
        # Row j is entry j of q K; K[i, j] is variable i n + j of the flattened kernel.
        rows = self.over(sp.kron(sp.csr_array(q[None, :]), sp.eye_array(n), format="csr"))
        self.problem.add_rows("invariance", rows, lower=q, upper=q)

    def over(self, matrix: SparseMatrix) -> dict[str, SparseMatrix]:
        """Return a matrix over the flattened kernel as one over the program's variables."""
        return over_masses(self.problem, self.inputs, self.guarantee, matrix)

    def diagonal(self) -> dict[str, SparseMatrix]:
        """Return K_11 .. K_nn as rows over the program's variables."""
        n = self.inputs.inputs
        # K_ii is variable i (n + 1) of the flattened kernel.
        rows = np.arange(n)
        entries = (np.ones(n), (rows, rows * (n + 1)))
        return self.over(sp.csr_array(entries, shape=(n, n * n)))


def add_leximin(program: KernelProgram) -> None:
    """Add the objectives of leximin after the first one, the largest min_i K_ii, in order.

    The k-th, k = 2..n, is the sum of the k smallest K_ii (Ogryczak and Tamir, Inf. Process. Lett.
    85 (2003)),

        maximise   k level_k - sum_i short_ki
        subject to short_ki >= level_k - K_ii, short_ki >= 0      "smallest"

    so the smallest K_ii is as large as possible, then the second smallest, and so on.
    """
    problem, n = program.problem, program.inputs.inputs
    if n == 1:
        return
    problem.add_variables("level", n - 1, lower=0.0, upper=1.0)
    problem.add_variables("short", (n - 1, n), lower=0.0, upper=1.0)
    # Row (k - 2) n + i: short_ki - level_k + K_ii >= 0.
    sides: dict[str, Any] = {
        name: sp.vstack([rows] * (n - 1), format="csr") for name, rows in program.diagonal().items()
    }
    sides["level"] = sp.kron(sp.eye_array(n - 1), -np.ones((n, 1)), format="csr")
    sides["short"] = sp.eye_array(n * (n - 1), format="csr")
    problem.add_rows("smallest", sides, lower=0.0)
    for k in range(2, n + 1):
        short = np.zeros((n - 1, n))
        short[k - 2] = -1.0
        problem.then_maximise({"level": {k - 2: float(k)}, "short": short})


def program_epsilon(epsilon: float) -> float:
    """Return epsilon, checked: a program with coefficients down to e^-epsilon must be solvable."""
    # In nats: e^-epsilon must stay well above a solver's tolerance, 1e-10. From 18 on solves failed
    # for masses below 1e-8.
    return _checks.real("epsilon", epsilon, 0.0, 16.0, open_lower=True)
