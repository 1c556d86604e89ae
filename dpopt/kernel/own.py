"""The user's own linear rows over a kernel, as plain data that files hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, MatrixLike, Vector, frozen
from dpopt.lp import Problem, Rows
from dpopt.privacy import ExactKernel

ExtraRows = Sequence[tuple[str, MatrixLike, npt.ArrayLike | None, npt.ArrayLike | None]]
"""(name, matrix over the kernel, lower limits, upper limits) for each block."""

_WRITTEN = 5


@dataclass(frozen=True, eq=False)
class OwnRows:
    """A named block of rows lower_i <= sum_xy c_ixy K[x, y] <= upper_i.

    Attributes:
        name: of the block.
        places: (i, x, y) of each coefficient, shape (coefficients, 3).
        coefficients: c_ixy, shape (coefficients,).
        lower: lower limits; None for none.
        upper: upper limits; None for none.
    """

    name: str
    places: IntVector
    coefficients: Vector
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.lower)

    def rows(self, inputs: int, outputs: int) -> Rows:
        """Return the rows over the flattened kernel, K[x, y] at place x * outputs + y.

        Raises:
            ParameterError: if the kernel has fewer inputs or outputs than the rows speak of.
        """
        row, x, y = self.places.T
        if x.max(initial=0) >= inputs or y.max(initial=0) >= outputs:
            raise ParameterError(
                f"rows {self.name!r} hold an entry outside a kernel of {inputs} inputs and "
                f"{outputs} outputs."
            )
        shape = (self.count, inputs * outputs)
        matrix = sp.csr_array((self.coefficients, (row, x * outputs + y)), shape=shape)
        return Rows(
            matrix,
            np.array([-math.inf if limit is None else limit for limit in self.lower]),
            np.array([math.inf if limit is None else limit for limit in self.upper]),
        )

    def misses(self, kernel: ExactKernel) -> Fraction:
        """Return by how much a kernel of integers misses the worst of the rows, exactly."""
        totals = [Fraction(0)] * self.count
        for (row, x, y), coefficient in zip(
            self.places.tolist(), self.coefficients.tolist(), strict=True
        ):
            totals[row] += Fraction(coefficient) * kernel.weights[x][y]
        worst = Fraction(0)
        for total, lower, upper in zip(totals, self.lower, self.upper, strict=True):
            value = total / (1 << kernel.bits)
            worst = max(worst, Fraction(lower) - value) if lower is not None else worst
            worst = max(worst, value - Fraction(upper)) if upper is not None else worst
        return worst


def own_rows(given: object, inputs: int, outputs: int) -> tuple[OwnRows, ...]:
    """Return rows that a user wrote, or that a file holds, as blocks.

    Args:
        given: a sequence of tuples (name, matrix, lower, upper), see `ExtraRows`, of `OwnRows`, or
            of what a file holds of them: lists of name, places, coefficients, lower, upper.
        inputs: number of inputs.
        outputs: number of outputs.

    Raises:
        ParameterError: if a block is none, its name is there already, or its matrix does not fit.
    """
    if given is None:
        return ()
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise ParameterError(
            f"rows is {_checks.shown(given)}; it must be a list of tuples (name, matrix, lower, "
            "upper)."
        )
    scratch = Problem()
    scratch.add_variables("kernel", inputs * outputs, lower=0.0, upper=1.0)
    return tuple(_block(scratch, block, inputs, outputs) for block in given)


def _block(scratch: Problem, block: Any, inputs: int, outputs: int) -> OwnRows:  # noqa: ANN401
    """Return one block; ``scratch`` holds the kernel's variables, and checks names and shapes."""
    if isinstance(block, OwnRows):
        matrix = block.rows(inputs, outputs).matrix
        name, lower, upper = block.name, block.lower, block.upper
    elif isinstance(block, Sequence) and not isinstance(block, str) and len(block) == _WRITTEN:
        return _block(scratch, _read(block), inputs, outputs)
    elif isinstance(block, Sequence) and not isinstance(block, str) and len(block) == 4:
        name, matrix, lower, upper = block
    else:
        raise ParameterError(
            "rows must be a list of tuples (name, matrix over the kernel, lower, upper)."
        )
    limits: Any = {"lower": _filled(lower, -math.inf), "upper": _filled(upper, math.inf)}
    scratch.add_rows(name, {"kernel": matrix}, **limits)
    rows = scratch.blocks[name]
    entries = rows.matrix.tocoo()
    places = np.stack([entries.row, entries.col // outputs, entries.col % outputs], axis=1)
    places = places.astype(np.int64)
    places.setflags(write=False)
    return OwnRows(
        name,
        places,
        frozen(entries.data),
        tuple(float(v) if np.isfinite(v) else None for v in rows.lower),
        tuple(float(v) if np.isfinite(v) else None for v in rows.upper),
    )


def _read(block: Sequence[Any]) -> OwnRows:
    """Return a block out of a file: only its form is checked here."""
    name, places, coefficients, lower, upper = block
    triples = _checks.array("places of rows", places)
    values = _checks.floats("coefficients of rows", coefficients)
    fits = triples.ndim == 2 and triples.shape[1] == 3 and values.shape == (len(triples),)
    whole = np.issubdtype(triples.dtype, np.integer)
    listed = all(isinstance(limits, Sequence) for limits in (lower, upper))
    if not (fits and whole and listed and len(lower) == len(upper) > 0):
        raise ParameterError(f"rows hold a block {_checks.shown(name)} that is malformed.")
    if triples.min(initial=0) < 0 or triples[:, 0].max(initial=0) >= len(lower):
        raise ParameterError(f"rows hold a block {_checks.shown(name)} with a place outside.")
    return OwnRows(name, triples.astype(np.int64), values, tuple(lower), tuple(upper))


def _filled(limits: Any, missing: float) -> Any:  # noqa: ANN401
    if isinstance(limits, Sequence) and not isinstance(limits, str):
        return [missing if limit is None else limit for limit in limits]
    return limits
