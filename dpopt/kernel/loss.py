"""The loss of a kernel: the user's table, or a formula that has a name."""

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

_LARGEST_LOSS = 1e100
_MOST_INPUTS = 2**22


def checked_loss(
    loss: npt.ArrayLike | str,
    size: int | None,
    outputs: int | None,
    shape: tuple[int, ...] | None,
    prior: npt.ArrayLike | None,
) -> tuple[Matrix | str, int, int]:
    """Return a loss, checked, with the numbers of inputs and outputs that it is for.

    Raises:
        ParameterError: if it is neither a name nor a table, or the numbers do not fit.
    """
    if not isinstance(loss, str):
        table = _table(loss)
        for name, given, known in (
            ("inputs", size, table.shape[0]),
            ("outputs", outputs, table.shape[1]),
        ):
            if given is not None and _checks.integer(name, given, 1) != known:
                raise ParameterError(
                    f"{name} is {given} and loss a table of shape {table.shape}; leave {name} out, "
                    "or None, beside a table."
                )
        return table, table.shape[0], table.shape[1]
    if loss not in LOSSES:
        raise ParameterError(
            f"loss is {_checks.shown(loss)}; it must be one of {', '.join(LOSSES)}, or a table of "
            "shape (inputs, outputs)."
        )
    count = _count(loss, size, shape, prior)
    if outputs is None:
        return loss, count, count
    outputs = _checks.integer("outputs", outputs, 1, _MOST_INPUTS)
    if shape is not None and outputs != count:
        raise ParameterError(
            f"outputs is {outputs} and shape {shape}, which makes {count} words; "
            "with a loss by name, outputs are the same words as inputs."
        )
    return loss, count, outputs


def _count(
    loss: str, size: int | None, shape: tuple[int, ...] | None, prior: npt.ArrayLike | None
) -> int:
    """Return the number of inputs that a loss by name is for: as said, or by shape or prior."""
    if shape is None and loss == "hamming":
        raise ParameterError(
            "shape is None and loss is 'hamming', which compares words; shape must say how many "
            "symbols there are at each place, such as 2,2,2."
        )
    words = None if shape is None else math.prod(shape)
    if words is not None and not 2 <= words <= _MOST_INPUTS:
        raise ParameterError(
            f"shape is {_checks.shown(shape)}, which makes {_checks.shown(words)} words; there "
            f"must be at least 2 and at most {_MOST_INPUTS}."
        )
    if size is None:
        size = words
    if size is None and prior is not None:
        size = np.size(_checks.floats("prior", prior))
    if size is None:
        raise ParameterError(
            f"inputs is None and loss is {loss!r}; a loss by name needs the number of inputs."
        )
    size = _checks.integer("inputs", size, 2, _MOST_INPUTS)
    if words not in (None, size):
        raise ParameterError(f"shape is {shape}, which makes {words} words of {size} inputs.")
    return size


def _table(loss: npt.ArrayLike) -> Matrix:
    array = _checks.floats("loss", loss)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ParameterError(
            f"loss has shape {array.shape}; it must be (inputs, outputs) with at least 2 inputs "
            "and 1 output."
        )
    if not np.all(np.abs(array) <= _LARGEST_LOSS):
        raise ParameterError(
            f"loss holds a value that is not finite, or above {_LARGEST_LOSS:g} in size."
        )
    return frozen(array)


def named_loss(name: str, x: IntVector, y: IntVector, shape: Sequence[int] | None) -> Vector:
    """Return a loss by its formula at inputs x and outputs y, of one shape or broadcast to one.

    Args:
        name: one of `LOSSES`.
        x: inputs.
        y: outputs.
        shape: symbols at each place of the words that inputs and outputs are; None for numbers,
            words of one place.
    """
    if name == "zero-one":
        return (x != y).astype(np.float64)
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    # The last symbol of a word changes fastest, as np.unravel_index has it.
    for size in reversed(shape or ()):
        x, symbol_of_x = np.divmod(x, size)
        y, symbol_of_y = np.divmod(y, size)
        total += _at_a_place(name, symbol_of_x, symbol_of_y)
    return total if shape else _at_a_place(name, x, y)


def _at_a_place(name: str, a: IntVector, b: IntVector) -> Vector:
    if name == "hamming":
        return (a != b).astype(np.float64)
    difference = np.abs(a - b).astype(np.float64)
    return difference**2 if name == "squared" else difference
