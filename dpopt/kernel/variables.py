"""Between the flattened kernel and the variables of the program's three forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, MatrixLike, SparseMatrix
from dpopt.lp import Problem, Solution
from dpopt.lp.model import as_matrix


def over_kernel(problem: Problem, matrix: MatrixLike) -> Mapping[str, SparseMatrix]:
    """Return a matrix over the flattened kernel as one over the program's own variables.

    Args:
        problem: from `kernel_problem`.
        matrix: shape (rows, inputs * outputs), K[x, y] at place x * outputs + y.

    Returns:
        What `Problem.add_rows` takes: ``problem.add_rows("mine", over_kernel(problem, a), ...)``.

    Raises:
        ParameterError: if the problem is no kernel program, or the matrix does not fit.
    """
    _checks.instance("problem", problem, Problem)
    inputs, outputs = kernel_shape(problem)
    found: Any = as_matrix(matrix)
    if found.shape[1] != inputs * outputs:
        raise ParameterError(
            f"matrix has {found.shape[1]} columns; it must have {inputs * outputs}, "
            f"{inputs} inputs times {outputs} outputs."
        )
    over = sp.csr_array(found, dtype=np.float64)
    if "kernel" in problem.variables:
        return {"kernel": over}
    lift = sp.kron(np.ones((inputs, 1)), sp.eye_array(outputs), format="csr")
    return {"base": sp.csr_array(over @ lift), "excess": over}


def kernel_of(problem: Problem, solution: Solution) -> Matrix:
    """Return the kernel of a solution as the solver left it, shape (inputs, outputs).

    It is private up to the solver's tolerance only: see `design_of` for the certified one.

    Raises:
        ParameterError: if the problem is no kernel program, or the solution is not its own.
    """
    _checks.instance("solution", solution, Solution)
    shape = kernel_shape(problem)
    sizes = {name: part.stop - part.start for name, part in problem.variables.items()}
    if sizes != {name: values.size for name, values in solution.values.items()}:
        raise ParameterError("solution has other variables than problem; it must be of this one.")
    if "kernel" in problem.variables:
        flat = solution["kernel"]
    else:
        flat = np.tile(solution["base"], shape[0]) + solution["excess"]
    return flat.reshape(shape)


def kernel_shape(problem: Problem) -> tuple[int, int]:
    """Return (inputs, outputs) of a kernel program.

    Raises:
        ParameterError: if the problem is none.
    """
    _checks.instance("problem", problem, Problem)
    part = problem.variables.get("kernel", problem.variables.get("excess"))
    if part is None or "sums" not in problem.blocks:
        raise ParameterError(
            f"problem is {problem.name!r}, no kernel program; it must come from kernel_problem."
        )
    inputs = problem.blocks["sums"].count
    return inputs, (part.stop - part.start) // inputs
