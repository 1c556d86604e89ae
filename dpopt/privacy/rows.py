"""Privacy constraints as rows of a linear program over a kernel.

A kernel K has shape (inputs, outputs), K[x, y] = Pr[output y | input x]; as LP variables it is
flattened row by row, K[x, y] at place x * outputs + y. Pairs of neighbours are directed: give
both (x, x') and (x', x) where both directions must hold. Rows prove nothing: `dpopt.certify` makes
a proved mechanism of what a solver found, private in both directions.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector
from dpopt.lp import Rows, make_rows

FORMS = ("auto", "edges", "columns")
"""Ways to write that all neighbours of a kernel are private."""

LARGEST_EPSILON = 600.0
"""Up to here e^epsilon and its inverse are numbers."""

MOST_ROWS = 2_000_000
"""More privacy rows than anybody would wait for."""

# As many variables as HiGHS can count; and inputs whose pairs fit in memory.
_MOST, _MOST_INPUTS = 2**31 - 1, 20_000


def complete_graph(inputs: int) -> IntVector:
    """Return all ordered pairs of different inputs (local privacy), shape (n (n - 1), 2)."""
    n = _checks.integer("inputs", inputs, 1, _MOST_INPUTS)
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    return np.stack([first, second], axis=1).astype(np.int64)


def stochastic_rows(inputs: int, outputs: int) -> Rows:
    """Return the rows sum_y K[x, y] = 1, one for each input."""
    inputs, outputs = _sizes(inputs, outputs)
    matrix = sp.kron(sp.eye_array(inputs), np.ones((1, outputs)), format="csr")
    return make_rows(matrix, lower=1.0, upper=1.0)


def ratio_rows(pairs: npt.ArrayLike, inputs: int, outputs: int, epsilon: float) -> Rows:
    """Return the rows K[x, y] - e^epsilon K[x', y] <= 0, for each pair (x, x') and output y.

    Args:
        pairs: directed neighbours, shape (pairs, 2), entries in 0..inputs-1.
        inputs: number of inputs.
        outputs: number of outputs.
        epsilon: at least 0.

    Returns:
        pairs * outputs rows over the flattened kernel.

    Raises:
        ParameterError: if an argument is out of range.
    """
    inputs, outputs = _sizes(inputs, outputs)
    first, second = _selectors(pairs, inputs)
    r = _exp(epsilon)
    return make_rows(sp.kron(first - r * second, sp.eye_array(outputs), format="csr"), upper=0.0)


def _sizes(inputs: int, outputs: int) -> tuple[int, int]:
    sizes = (
        _checks.integer("inputs", inputs, 1, _MOST),
        _checks.integer("outputs", outputs, 1, _MOST),
    )
    if sizes[0] * sizes[1] > _MOST:
        raise ParameterError(
            f"a kernel of {sizes[0]} inputs and {sizes[1]} outputs has more than {_MOST} entries."
        )
    return sizes


def _exp(epsilon: float) -> float:
    return math.exp(_checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON))


def _selectors(pairs: npt.ArrayLike, inputs: int) -> tuple[sp.csr_array, sp.csr_array]:
    n = inputs
    array = _checks.array("pairs", pairs)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ParameterError(f"pairs has shape {array.shape}; it must be integers of shape (m, 2).")
    if array.size and (array.min() < 0 or array.max() >= n):
        raise ParameterError(f"pairs holds an input outside 0..{n - 1}.")
    count = array.shape[0]
    ones, place = np.ones(count), np.arange(count)
    first = sp.csr_array((ones, (place, array[:, 0])), shape=(count, n))
    second = sp.csr_array((ones, (place, array[:, 1])), shape=(count, n))
    return first, second
