"""An equivariant mechanism as integers: what is proved, saved and released from.

Units are one row of integers for each sorted histogram, in the order of `Partitions.states`, with
one weight for each distinct count in it, falling. The weights of all classes of a histogram add up
to `scale`: k[lambda, c] = weight / scale. Classes of the same count have the same weight, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._types import Vector, frozen
from dpopt.ballots.partitions import Partitions

Units = tuple[tuple[int, ...], ...]

Values = npt.NDArray[Any]
"""Python integers in an array of objects."""

BITS = 62


def scale(classes: int, bits: int = BITS) -> int:
    """Return lcm(1, ..., C) 2^bits: what any number of tied classes can share."""
    return math.lcm(*range(1, classes + 1)) << bits


def quantised(
    partitions: Partitions, point: Sequence[float | Fraction] | Vector, bits: int = BITS
) -> Units:
    """Return a point k[lambda, c] as units; each weight is moved by less than C of them.

    Of each histogram the level with the largest share takes what is left. The others are rounded
    down to a multiple of its number of classes, so that what is left can be shared: the sum over
    the others is then such a multiple, as `scale` is. Weights are non-negative wherever the point
    is, and its rows are meant to add up to 1; they are divided by their sums.

    Raises:
        ParameterError: for another number of values, others than finite ones of at least 0, or a
            row of zeros.
    """
    given: Any = point
    if not (isinstance(given, list) and all(isinstance(value, Fraction) for value in given)):
        given = _checks.floats("point", given)
        if not np.all(np.isfinite(given)):
            raise ParameterError("point holds a number that is not finite; it must hold none.")
    if np.shape(given) != (partitions.size,):
        raise ParameterError(
            f"point has shape {np.shape(given)}; {partitions.voters} ballots over "
            f"{partitions.classes} classes have {partitions.size} values."
        )
    values: Values = np.empty(partitions.size, dtype=object)
    for start, end in pairwise(partitions.starts.tolist()):
        row = [Fraction(value) for value in given[start:end]]
        common = math.lcm(*(value.denominator for value in row))
        values[start:end] = [int(value * common) for value in row]
    return shared(partitions, values, bits)


def shared(partitions: Partitions, values: Values, bits: int = BITS) -> Units:
    """Return non-negative integers k[lambda, c], of any common scale in each row, as `quantised`.

    Args:
        partitions: the histograms.
        values: Python integers by variable, shape (size,).
        bits: of the units.
    """
    many, starts = partitions.multiplicities, partitions.starts
    state, firsts = partitions.state_of, starts[:-1]
    masses = values * many
    totals = np.add.reduceat(masses, firsts)
    if min(values) < 0 or min(totals) <= 0:
        raise ParameterError("point holds a negative value, or a histogram of zeros alone.")
    largest = np.maximum.reduceat(masses, firsts)[state] == masses
    first = np.flatnonzero(largest)
    rest = first[np.diff(state[first], prepend=-1) > 0]
    whole = scale(partitions.classes, bits)
    weights = values * whole // (totals * many[rest])[state] * many[rest][state]
    weights[rest] = 0
    weights[rest] = (whole - np.add.reduceat(weights * many, firsts)) // many[rest]
    listed = weights.tolist()
    return tuple(tuple(listed[start:end]) for start, end in pairwise(starts.tolist()))


def checked(partitions: Partitions, units: object, bits: int = BITS) -> Units:
    """Return units whose form is right: shapes, signs and sums; nothing is said of privacy.

    Raises:
        ParameterError: if it is not.
    """
    levels = partitions.levels
    if not isinstance(units, tuple | list) or len(units) != len(levels):
        raise ParameterError(
            f"units must be {len(levels):,} rows of integers, one for each sorted histogram."
        )
    whole, rows = scale(partitions.classes, bits), []
    for row, level in zip(units, levels, strict=True):
        right = isinstance(row, tuple | list) and len(row) == len(level)
        if not right or not all(type(w) is int and w >= 0 for w in row):
            raise ParameterError(
                f"units hold a row {shown(row)}; it must have {len(level)} integers of at least 0."
            )
        if sum(w * many for w, (_, many) in zip(row, level, strict=True)) != whole:
            raise ParameterError("units hold a row that does not add up to the scale.")
        rows.append(tuple(row))
    return tuple(rows)


def flat(partitions: Partitions, units: Units, bits: int = BITS) -> Vector:
    """Return k[lambda, c] as floats by variable, shape (size,), read-only."""
    whole = scale(partitions.classes, bits)
    return frozen([weight / whole for row in units for weight in row])


def law(partitions: Partitions, units: Units, histogram: Sequence[int]) -> list[int]:
    """Return the weight of each class for one histogram, over `scale`."""
    state = partitions.place[tuple(sorted(histogram, reverse=True))]
    weight = {
        count: w for (count, _), w in zip(partitions.levels[state], units[state], strict=True)
    }
    return [weight[count] for count in histogram]
