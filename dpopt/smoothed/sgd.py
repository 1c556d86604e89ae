"""One step of SGD with quantised gradients: delta(x) over every replacement of one record.

Write the neighbour x' as x with one record a replaced by w, and split both databases at that
record: with L the counts of batches without it and M those of the T - 1 others in a batch with it,
x has L + M shifted by a, and x' has L + M shifted by w. At every output

    P - e^eps P' = M_a - (e^eps - 1) L - e^eps M_w,

which keeps its digits for small epsilon too, and likewise with a and w exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import track
from dpopt._types import IntVector, Json, Vector, frozen
from dpopt.prob.batches import (
    LARGEST_VALUE,
    HockeySticks,
    Outputs,
    as_values,
    check_batch,
    leave_one_out,
    subsets,
)
from dpopt.smoothed.results import Found, finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_EPSILON = 700.0
"""Beyond ln 2^1000 = 693.2 no ratio of two batch pmfs is finite, and delta no longer changes."""

_LARGEST_RANGE = 1 << 16
_NEIGHBOURS = ("all", "extreme")


@dataclass(frozen=True)
class SgdNeighbour:
    """The neighbour at which delta is attained.

    Attributes:
        replaced: the value of the record that is replaced.
        replacement: what it is replaced by.
        direction: "d(x, x')" or "d(x', x)", x' being the neighbour.
    """

    replaced: int
    replacement: int
    direction: str


@dataclass(frozen=True, eq=False, repr=False)
class SgdProfile(Found[Vector]):
    """delta_{eps,M}(x) of one database of quantised gradients, at one or several epsilon.

    Attributes:
        values: x, shape (N,), read-only.
        drawn: T, the batch size.
        epsilons: in nats, shape (E,), read-only.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by.
        rounded: whether the output is the rounded mean, or the sum.
        neighbours: "all" replacements, or the two "extreme" ones.
        log_delta: natural logarithm of delta, shape (E,), -inf where delta is 0; read-only.
        worst: a neighbour that attains delta, for each epsilon; None where delta is 0.
    """

    kind: ClassVar[str] = "sgd"

    values: IntVector
    drawn: int
    epsilons: Vector
    lowest: int
    highest: int
    rounded: bool
    neighbours: str
    log_delta: Vector
    worst: tuple[SgdNeighbour | None, ...]

    def facts(self) -> Json:
        """Return what the one-line repr tells."""
        told = ("drawn", "lowest", "highest", "neighbours", "epsilons", "log10_delta")
        return {"records": self.values.size, **{name: getattr(self, name) for name in told}}

    def to_dict(self) -> Json:
        """Return x, how a batch is drawn and told, and delta at each epsilon, as plain values."""
        told = ("kind", "drawn", "lowest", "highest", "rounded", "neighbours")
        plain = {name: getattr(self, name) for name in told}
        rows = zip(*self.columns().values(), strict=True)
        deltas = [dict(zip(self.columns(), row, strict=True)) for row in rows]
        return {**plain, "values": self.values.tolist(), "deltas": deltas}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return log10 delta and the neighbour that attains it, for each epsilon."""
        worst = self.worst
        return {
            "epsilon": self.epsilons.tolist(),
            "log10_delta": [finite(value) for value in self.log10_delta.tolist()],
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
    neighbours: str = "all",
) -> SgdProfile:
    """Return delta(x) = max over x' of d(x, x') and d(x', x) for one database x.

    M draws T of the N values without replacement and publishes their sum, or their mean rounded to
    the nearest integer, halves upwards. Every record may be replaced by every value of the range.
    A range moved by one, -128 to 127 with all values, gives the same delta.

    The rounded mean is post-processing of the sum; the "extreme" neighbours are the two that
    published estimates are based on (a record of the least value moved to ``highest``, one of the
    largest moved to ``lowest``), which give a lower bound on delta only.

    Args:
        values: x: N integers from ``lowest`` to ``highest``.
        drawn: T, from 1 to N.
        epsilons: one or several, each from 0 to 700, in nats.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by, at most 65535 above ``lowest``.
        rounded: True for the rounded mean, False for the sum.
        neighbours: "all" or "extreme".

    Raises:
        ParameterError: if an argument is out of range, or the distribution of a batch too large a
            table.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2 and Section 6.
    """
    x = as_values(values)
    low = _checks.integer("lowest", lowest, -LARGEST_VALUE, LARGEST_VALUE)
    high = _checks.integer("highest", highest, low + 1, low + _LARGEST_RANGE - 1)
    if x.min() < low or x.max() > high:
        raise ParameterError(
            f"values holds {int(x.min()) if x.min() < low else int(x.max())}; each must be "
            f"from lowest = {low} to highest = {high}."
        )
    given = np.atleast_1d(_checks.array("epsilons", epsilons))
    if given.ndim != 1 or given.size == 0:
        raise ParameterError(
            f"epsilons has shape {given.shape}; it must be a number or a vector of numbers."
        )
    at = frozen([_checks.real("epsilons", e, 0.0, LARGEST_EPSILON) for e in given.tolist()])
    drawn = check_batch(x, drawn)
    rounded = _checks.flag("rounded", rounded)
    extreme = _checks.choice("neighbours", neighbours, _NEIGHBOURS) == "extreme"
    best = _largest_sticks(x, drawn, at, (low, high), rounded, extreme)
    log_total = math.log(subsets(x.size, drawn))
    logs = [min(math.log(stick) - log_total, 0.0) if stick > 0 else -math.inf for stick, _ in best]
    worst = tuple(neighbour for _, neighbour in best)
    return SgdProfile(x, drawn, at, low, high, rounded, neighbours, frozen(logs), worst)


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
