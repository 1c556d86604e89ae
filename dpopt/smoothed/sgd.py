"""One step of SGD with quantised gradients: delta(x) over all replacements of one record.

The neighbour x' is x with one record a replaced by w. Let L be the counts (by sum) of batches
without that record, and M those of the other T - 1 records in batches with it: x has counts L + M
shifted by a, and x' has L + M shifted by w. At every output

    P - e^eps P' = M_a - (e^eps - 1) L - e^eps M_w,

which is accurate for small epsilon too, and likewise with a and w exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import track
from dpopt._types import IntVector, Json, Vector, frozen
from dpopt.prob.batches import (
    LARGEST_VALUE,
    as_values,
    check_batch,
    leave_one_out,
    padded,
    subsets,
)
from dpopt.smoothed.profile import LARGEST_EPSILON
from dpopt.smoothed.results import DeltaResult, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class SgdNeighbour:
    """The neighbour at which delta is attained.

    Attributes:
        replaced: value of the replaced record.
        replacement: its new value.
        direction: "d(x, x')" or "d(x', x)", x' being the neighbour.
    """

    replaced: int
    replacement: int
    direction: str


@dataclass(frozen=True, eq=False, repr=False)
class SgdProfile(DeltaResult[Vector]):
    """delta_{eps,M}(x) of one database of quantised gradients, at one or several epsilon.

    Attributes:
        values: x, shape (N,), read-only.
        drawn: T, the batch size.
        epsilons: in nats, shape (E,), read-only.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by.
        rounded: whether the output is the rounded mean instead of the sum.
        log_delta: natural logarithm of delta, shape (E,), -inf where delta is 0; read-only.
        worst: a neighbour that attains delta, for each epsilon; None where delta is 0.
    """

    kind: ClassVar[str] = "sgd"
    written = ("drawn", "lowest", "highest", "rounded", "values")

    values: IntVector
    drawn: int
    epsilons: Vector
    lowest: int
    highest: int
    rounded: bool
    log_delta: Vector
    worst: tuple[SgdNeighbour | None, ...]

    def facts(self) -> Json:
        """Return the summary of the one-line repr."""
        fields = ("drawn", "lowest", "highest", "epsilons", "log10_delta")
        return {"records": self.values.size, **{name: getattr(self, name) for name in fields}}

    def to_dict(self) -> Json:
        """Return x, the parameters of the batch, and delta at each epsilon, as plain values."""
        columns = self.columns()
        rows = zip(*columns.values(), strict=True)
        deltas = [dict(zip(columns, row, strict=True)) for row in rows]
        return {**super().to_dict(), "deltas": deltas}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return log10 delta and the neighbour that attains it, for each epsilon."""
        worst = self.worst
        return {
            "epsilon": self.epsilons.tolist(),
            "log10_delta": plain(self.log10_delta),
            "replaced": [None if w is None else w.replaced for w in worst],
            "replacement": [None if w is None else w.replacement for w in worst],
            "direction": [None if w is None else w.direction for w in worst],
        }

    def draw(self, axes: Axes, label: str | None) -> None:
        """Draw log10 delta against epsilon."""
        order = np.argsort(self.epsilons)
        axes.plot(self.epsilons[order], self.log10_delta[order], marker="o", label=label)
        axes.set_xlabel(r"$\varepsilon$ (nats)")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")


def sgd_profile(
    values: npt.ArrayLike,
    drawn: int,
    epsilons: npt.ArrayLike,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
) -> SgdProfile:
    """Return delta(x) = max over x' of d(x, x') and d(x', x) for one database x.

    M draws T of the N values without replacement and publishes their sum, or their mean rounded to
    the nearest integer, halves upwards. Any record may be replaced by any value from ``lowest`` to
    ``highest``. Shifting all values and the range by one, for example to -128 to 127, gives the
    same delta.

    The rounded mean is post-processing of the sum. Published estimates are of two neighbours, with
    a record of the least value at ``highest`` or one of the largest at ``lowest``: a lower bound.

    Args:
        values: x, N integers from ``lowest`` to ``highest``.
        drawn: T, from 1 to N.
        epsilons: one or several, each from 0 to 700, in nats.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by, at most 65535 above ``lowest``.
        rounded: True to publish the rounded mean, False to publish the sum.

    Raises:
        ParameterError: if an argument is out of range, or the table of partial sums too large.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2 and Section 6.
    """
    x = as_values(values)
    low = _checks.integer("lowest", lowest, -LARGEST_VALUE, LARGEST_VALUE)
    # At most 2^16 values that a record can be replaced by: time fixes it.
    high = _checks.integer("highest", highest, low + 1, low + (1 << 16) - 1)
    if x.min() < low or x.max() > high:
        raise ParameterError(
            f"values holds {int(x.min()) if x.min() < low else int(x.max())}; each must be "
            f"from lowest = {low} to highest = {high}."
        )
    array = np.atleast_1d(_checks.array("epsilons", epsilons))
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(
            f"epsilons has shape {array.shape}; it must be a number or a vector of numbers."
        )
    # Above ln 2^1000 = 693.2, the largest log ratio of batch pmfs, delta is constant.
    grid = frozen([_checks.real("epsilons", e, 0.0, LARGEST_EPSILON) for e in array.tolist()])
    drawn = check_batch(x, drawn)
    rounded = _checks.flag("rounded", rounded)
    best = _largest_sticks(x, drawn, grid, (low, high), rounded)
    log_total = math.log(subsets(x.size, drawn))
    # Divergences are in the scale of the counts: divide by the number of batches.
    logs = [min(math.log(stick) - log_total, 0.0) if stick > 0 else -math.inf for stick, _ in best]
    worst = tuple(neighbour for _, neighbour in best)
    return SgdProfile(x, drawn, grid, low, high, rounded, frozen(logs), worst)


def _largest_sticks(
    x: IntVector, drawn: int, epsilons: Vector, bounds: tuple[int, int], rounded: bool
) -> list[tuple[float, SgdNeighbour | None]]:
    """Return the largest hockey-stick at each epsilon, in the scale of the counts, and where."""
    # Values relative to the least value of x.
    least, span = int(x.min()), int(x.max() - x.min())
    low, high = bounds[0] - least, bounds[1] - least
    # Output b is published for the W sums from b W - h on; it is from ``first`` on.
    width, half = (drawn, drawn // 2) if rounded else (1, 0)
    first = (low + half) // width
    count = ((drawn - 1) * span + high + half) // width - first + 1
    moves, size = (high - low + 1) * count, count * width
    # Pairs (replacement, output): memory fixes them.
    if moves > 50_000_000:
        raise ParameterError(
            f"highest is {high - low:,} above lowest, with {count:,} outputs: a table of {moves:,} "
            "entries; it may have at most 50,000,000."
        )
    best: list[tuple[float, SgdNeighbour | None]] = [(0.0, None)] * epsilons.size
    scratch = np.empty((high - low + 1, count))

    def keep_largest(index: int, value: int, direction: str) -> None:
        """Sum the positive parts of ``scratch`` for each replacement, and keep the largest."""
        sums = np.maximum(scratch, 0.0, out=scratch).sum(axis=1)
        largest = int(np.argmax(sums))
        if sums[largest] > best[index][0]:
            neighbour = SgdNeighbour(value + least, low + largest + least, direction)
            best[index] = float(sums[largest]), neighbour

    for value, without, others in track(leave_one_out(x - least, drawn), "neighbours of the batch"):
        # L by output, and M_w in row w - low: of w one more, the window starts one sum earlier.
        offset = half - first * width
        fixed = padded(without, offset, size).reshape(count, width).sum(axis=1)
        windows = sliding_window_view(padded(others, high + offset, high - low + size), size)[::-1]
        moved = np.add.reduceat(windows, np.arange(0, size, width), axis=1)
        original = moved[value - low]
        for index, epsilon in enumerate(epsilons.tolist()):
            factor, covered = math.exp(epsilon), math.expm1(epsilon) * fixed
            remainder = original - covered
            # (M_a - (e^eps - 1) L)_+ bounds the divergence for every w: skip if it is no larger.
            if np.maximum(remainder, 0.0).sum() > best[index][0]:
                np.multiply(moved, -factor, out=scratch)
                scratch += remainder
                keep_largest(index, value, "d(x, x')")
            np.subtract(moved, covered + factor * original, out=scratch)
            keep_largest(index, value, "d(x', x)")
    return best
