"""delta(x) of one step of SGD with quantised gradients, over every replacement of one record.

Write the neighbour x' as x with one record a replaced by w, and split both databases at that
record: with L the counts of batches without it and M those of the T - 1 others in a batch with it,
x has L + M shifted by a, and x' has L + M shifted by w. At every output

    P - e^eps P' = M_a - (e^eps - 1) L - e^eps M_w,

which keeps its digits for small epsilon too, and likewise with a and w exchanged.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import track
from dpopt._types import IntVector, Vector, frozen
from dpopt.prob.batch import (
    LARGEST_VALUE,
    as_values,
    check_batch,
    leave_one_out,
    subsets,
)
from dpopt.prob.sticks import HockeySticks, Outputs
from dpopt.provenance import versions
from dpopt.smoothed.sgd_result import SgdNeighbour, SgdProfile

LARGEST_EPSILON = 700.0
"""Beyond ln 2^1000 = 693.2 no ratio of two batch laws is finite, and delta no longer changes."""

_LARGEST_RANGE = 1 << 16
_NEIGHBOURS = ("all", "extreme")


def sgd_profile(
    values: npt.ArrayLike,
    drawn: int,
    epsilons: npt.ArrayLike,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
    neighbours: str = "all",
) -> SgdProfile:
    """Return delta(x) = max over x' of d(x, x') and d(x', x) for one database x.

    M draws T of the N values without replacement and publishes their sum, or their mean rounded to
    the nearest integer, halves upwards. Every record may be replaced by every value of the range.
    A range moved by one, -128 to 127 with all values, gives the same delta.

    Args:
        values: x: N integers from ``lowest`` to ``highest``.
        drawn: T, from 1 to N.
        epsilons: one or several, each from 0 to 700, in nats.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by, at most 65535 above ``lowest``.
        rounded: True for the rounded mean (post-processing of the sum), False for the sum.
        neighbours: "all"; or "extreme" for the two that published estimates are based on (a record
            of the least value moved to ``highest``, one of the largest moved to ``lowest``), which
            gives a lower bound on delta only.

    Raises:
        ParameterError: if an argument is out of range, or the law of a batch too large a table.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2 and Section 6.
    """
    x = as_values(values)
    drawn = check_batch(x, drawn)
    low, high = _checked_range(x, lowest, highest)
    if not isinstance(rounded, bool):
        raise ParameterError(f"rounded is {_checks.shown(rounded)}; it must be True or False.")
    neighbours = _checks.choice("neighbours", neighbours, _NEIGHBOURS)
    at = _checked_epsilons(epsilons)
    best = _largest_sticks(x, drawn, at, (low, high), rounded, neighbours == "extreme")
    log_total = math.log(subsets(x.size, drawn))
    return SgdProfile(
        values=x,
        drawn=drawn,
        epsilons=at,
        lowest=low,
        highest=high,
        rounded=rounded,
        neighbours=neighbours,
        log_delta=frozen(
            [min(math.log(stick) - log_total, 0.0) if stick > 0 else -math.inf for stick, _ in best]
        ),
        worst=tuple(neighbour for _, neighbour in best),
        provenance=versions(),
    )


def sgd_log_profile(
    values: npt.ArrayLike,
    drawn: int,
    epsilons: npt.ArrayLike,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
) -> Vector:
    """Return log delta(x) at each epsilon, shape (E,); see `sgd_profile`."""
    return sgd_profile(
        values, drawn, epsilons, lowest=lowest, highest=highest, rounded=rounded
    ).log_delta


def _largest_sticks(
    x: IntVector,
    drawn: int,
    epsilons: Vector,
    allowed: tuple[int, int],
    rounded: bool,
    extreme: bool,
) -> list[tuple[float, SgdNeighbour | None]]:
    """Return the largest hockey-stick at each epsilon, in the scale of the counts."""
    least, largest = int(x.min()), int(x.max())
    low, high = allowed[0] - least, allowed[1] - least
    outputs = Outputs.of(drawn, largest - least, low, high, rounded)
    sticks = HockeySticks(outputs, epsilons)
    moves: dict[int, list[int]] = {}
    if extreme:
        moves[0] = [high]
        moves[largest - least] = [*moves.get(largest - least, []), low]
    tables = leave_one_out(x - least, drawn, moves if extreme else None)
    for value, without, others in track(tables, "neighbours of the batch"):
        sticks.add(value, without, others, moves[value] if extreme else None)
    return [
        (stick, SgdNeighbour(a + least, w + least, direction) if stick > 0 else None)
        for stick, a, w, direction in sticks.best
    ]


def _checked_range(x: IntVector, lowest: int, highest: int) -> tuple[int, int]:
    low = _checks.integer("lowest", lowest, -LARGEST_VALUE, LARGEST_VALUE)
    high = _checks.integer("highest", highest, low + 1, low + _LARGEST_RANGE - 1)
    if x.min() < low or x.max() > high:
        raise ParameterError(
            f"values holds {int(x.min()) if x.min() < low else int(x.max())}; each must be from "
            f"lowest = {low} to highest = {high}."
        )
    return low, high


def _checked_epsilons(epsilons: npt.ArrayLike) -> Vector:
    given = np.atleast_1d(_checks.array("epsilons", epsilons))
    if given.ndim != 1 or given.size == 0:
        raise ParameterError(
            f"epsilons has shape {given.shape}; it must be a number or a vector of numbers."
        )
    return frozen([_checks.real("epsilons", e, 0.0, LARGEST_EPSILON) for e in given.tolist()])
