"""The loss of a kernel: the user's table, or a named formula."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Matrix, Vector, frozen

LOSSES = ("absolute", "squared", "zero-one", "hamming")
"""Names of losses."""

# Inputs, or outputs, of a loss by name; memory fixes it.
_MOST_INPUTS = 2**22


def checked_loss(
    loss: npt.ArrayLike | str,
    size: int | None,
    outputs: int | None,
    shape: tuple[int, ...] | None,
    prior: npt.ArrayLike | None,
) -> tuple[Matrix | str, int, int]:
    """Return the checked loss (a name or a table) and its numbers of inputs and outputs."""
    if not isinstance(loss, str):
        table = _table(loss)
        for name, stated, actual in (
            ("inputs", size, table.shape[0]),
            ("outputs", outputs, table.shape[1]),
        ):
            if stated is not None and _checks.integer(name, stated, 1) != actual:
                raise ParameterError(
                    f"{name} is {stated} and loss a table of shape {table.shape}; leave {name} "
                    "out, or None, beside a table."
                )
        return table, table.shape[0], table.shape[1]
    if loss not in LOSSES:
        raise ParameterError(
            f"loss is {_checks.shown(loss)}; it must be one of {', '.join(LOSSES)}, or a table of "
            "shape (inputs, outputs)."
        )
    if shape is None and loss == "hamming":
        raise ParameterError(
            "shape is None and loss is 'hamming', which compares words; shape must say how many "
            "symbols there are at each position, such as 2,2,2."
        )
    words = None if shape is None else math.prod(shape)
    if words is not None and not 2 <= words <= _MOST_INPUTS:
        raise ParameterError(
            f"shape is {_checks.shown(shape)}, which makes {_checks.shown(words)} words; there "
            f"must be at least 2 and at most {_MOST_INPUTS}."
        )
    # As stated, or from the shape or the prior.
    count = words if size is None else size
    if count is None and prior is not None:
        count = np.size(_checks.floats("prior", prior))
    if count is None:
        raise ParameterError(
            f"inputs is None and loss is {loss!r}; a loss by name needs the number of inputs."
        )
    count = _checks.integer("inputs", count, 2, _MOST_INPUTS)
    if words not in (None, count):
        raise ParameterError(f"shape is {shape}, which makes {words} words of {count} inputs.")
    if outputs is None:
        return loss, count, count
    outputs = _checks.integer("outputs", outputs, 1, _MOST_INPUTS)
    if shape is not None and outputs != count:
        raise ParameterError(
            f"outputs is {outputs} and shape {shape}, which makes {count} words; "
            "with a loss by name, outputs are the same words as inputs."
        )
    return loss, count, outputs


def _table(loss: npt.ArrayLike) -> Matrix:
    array = _checks.floats("loss", loss)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ParameterError(
            f"loss has shape {array.shape}; it must be (inputs, outputs) with at least 2 inputs "
            "and 1 output."
        )
    # Larger losses would overflow in sums and products of floats.
    if not np.all(np.abs(array) <= 1e100):
        raise ParameterError("loss holds a value that is not finite, or above 1e+100 in size.")
    return frozen(array)


def named_loss(name: str, x: IntVector, y: IntVector, shape: Sequence[int] | None) -> Vector:
    """Return the loss of a name at inputs x and outputs y, which broadcast to one shape."""
    if name == "zero-one":
        return (x != y).astype(np.float64)
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    # The last symbol of a word changes fastest, as np.unravel_index has it.
    for size in reversed(shape or ()):
        x, symbol_of_x = np.divmod(x, size)
        y, symbol_of_y = np.divmod(y, size)
        total += _symbol_loss(name, symbol_of_x, symbol_of_y)
    return total if shape else _symbol_loss(name, x, y)


def _symbol_loss(name: str, a: IntVector, b: IntVector) -> Vector:
    if name == "hamming":
        return (a != b).astype(np.float64)
    difference = np.abs(a - b).astype(np.float64)
    return difference**2 if name == "squared" else difference
