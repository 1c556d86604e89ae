"""For which epsilon, or which delta, integers are private: exactly, from them alone.

For two neighbours with laws P and Q, an event S and a ratio r = e^epsilon, privacy says P(S) <= r
Q(S) + delta. So the least ratio of a table is the largest (P(S) - delta) / Q(S) over all neighbours
and events, a rational number, and its least epsilon is the logarithm. Of all events only m matter:
the first outputs, one, two, ..., by falling P / Q (Neyman, Pearson). The least delta for an epsilon
is the largest sum_y max(0, P(y) - r Q(y)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits_up, float_down, float_up
from dpopt._page import result_page
from dpopt._types import Json, Matrix, Vector, brief
from dpopt.privacy.exact import Pairs, edge_list
from dpopt.privacy.exponential import exp_lower, exp_upper, log_upper
from dpopt.privacy.kernel import ExactKernel
from dpopt.privacy.orbit import OrbitKernel, Orbits, where

Weights = Sequence[Sequence[int]]
"""Rows of integers of at least 0, each in proportion to the law of the output for one input."""

# Of e^epsilon, where a delta may be as small as the least float.
_BITS = 1280
_LARGEST_EXPONENT = 10_000
# Above this a ratio may leave the floats.
_LARGEST_RATIO = 1e300


@dataclass(frozen=True)
class Least:
    """The least epsilon of a mechanism for a delta, or its least delta for an epsilon, enclosed.

    Attributes:
        parameter: what is the least of its kind: "epsilon" or "delta".
        lower: a float of at most the exact value.
        upper: a float of at least the exact value, next to ``lower`` or a few floats above it; the
            mechanism is private for it. An epsilon is infinite, in both, where an event is possible
            for an input and impossible for a neighbour.
        given: the other one: the delta, or the epsilon, that the value is for.
        inputs: neighbours (x, x') that need it: places of a table's inputs, their names if they
            have any, or their words where data sets are too many to be numbered.
        outputs: an event S that needs it: K(S | x) = e^epsilon K(S | x') + delta, up to rounding;
            places of the outputs, or their names.
        moved: total variation between a row of the table as it was given and the law that was
            judged, at most; 0 if its rows were laws.
    """

    parameter: Literal["epsilon", "delta"]
    lower: float
    upper: float
    given: float
    inputs: tuple[int | str, int | str]
    outputs: tuple[int | str, ...]
    moved: float = 0.0

    def __repr__(self) -> str:
        x, other = self.inputs
        return brief(
            self,
            **{
                self.parameter: digits_up(self.upper),
                "delta" if self.parameter == "epsilon" else "epsilon": self.given,
            },
            inputs=f"{x} and {other}",
            outputs=self.outputs,
        )

    def _repr_html_(self) -> str:
        """Return the statement and the fields, for notebooks."""
        x, other = self.inputs
        given = "delta" if self.parameter == "epsilon" else "epsilon"
        statement = (
            f"Private for {self.parameter} = {self.upper!r} at {given} = {self.given:g}, and "
            f"for none below {self.lower!r}: inputs {x} and {other} need it."
        )
        return result_page(type(self).__name__, statement, None, self.to_dict())

    def to_dict(self) -> Json:
        """Return the fields as plain values; an infinite epsilon becomes None."""
        return {
            "parameter": self.parameter,
            "lower": self.lower if math.isfinite(self.lower) else None,
            "upper": self.upper if math.isfinite(self.upper) else None,
            "given": self.given,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "moved": self.moved,
        }


def least_epsilon(
    weights: Weights, delta: float = 0.0, *, pairs: Pairs | None = None, moved: float = 0.0
) -> Least:
    """Return the least epsilon for which a table is (epsilon, delta)-private, enclosed.

    Args:
        weights: integers, shape (inputs, outputs); a row over its sum is a law.
        delta: in [0, 1).
        pairs: directed neighbours, both directions; all pairs of inputs if None.
        moved: see `Least`.

    Raises:
        ParameterError: if the weights are no table, or a pair names no input.

    Example:
        >>> from dpopt.privacy import least_epsilon
        >>> least_epsilon([[3, 1], [1, 3]])
        Least(epsilon=1.09862, delta=0, inputs=0 and 1, outputs=(0,))
    """
    rows, sums, edges = _table(weights, pairs)
    moved = _checks.real("moved", moved, 0.0)
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    if len(rows) == 1:
        return Least("epsilon", 0.0, 0.0, delta, (0, 0), (), moved)
    if delta == 0:
        ratio, inputs, outputs = _largest_ratio(rows, sums, edges)
    else:
        ratio, inputs, outputs = _largest_excess_ratio(rows, sums, edges, Fraction(delta))
    lower, upper = (math.inf, math.inf) if ratio is None else log_enclosed(ratio)
    return Least("epsilon", lower, upper, delta, inputs, outputs, moved)


def least_delta(
    weights: Weights, epsilon: float, *, pairs: Pairs | None = None, moved: float = 0.0
) -> Least:
    """Return the least delta for which a table is (epsilon, delta)-private, enclosed.

    Args:
        weights: integers, shape (inputs, outputs); a row over its sum is a law.
        epsilon: in [0, 10,000], in nats.
        pairs: directed neighbours, both directions; all pairs of inputs if None.
        moved: see `Least`.

    Raises:
        ParameterError: if the weights are no table, or a pair names no input.

    Example:
        >>> from dpopt.privacy import least_delta
        >>> least_delta([[3, 1], [1, 3]], 0.0).upper
        0.5
    """
    rows, sums, edges = _table(weights, pairs)
    moved = _checks.real("moved", moved, 0.0)
    epsilon = _checks.real("epsilon", epsilon, 0.0, _LARGEST_EXPONENT)
    low, high = exp_lower(epsilon, _BITS), exp_upper(epsilon, _BITS)
    screen = _Screen(rows, sums, edges)
    near = np.ones(screen.count, dtype=bool)
    if low < _LARGEST_RATIO:
        # A pair that is not within the rounding of the largest one is not it.
        far = screen.excesses(float(low))
        near = far >= far.max(initial=0.0) - 2 * screen.error
    best: tuple[Fraction, tuple[int, int]] | None = None
    for x, other in screen.chosen(near):
        excess = _excess(rows, sums, (x, other), low)
        if best is None or excess > best[0]:
            best = excess, (x, other)
    excess, inputs = best or (Fraction(0), (0, 0))
    if excess == 0:
        return Least("delta", 0.0, 0.0, epsilon, inputs, (), moved)
    # Of the same pair at the upper end: the least delta of all pairs is at least that.
    under = _excess(rows, sums, inputs, high)
    outputs = tuple(_above(rows, sums, inputs, low))
    return Least("delta", float_down(under), float_up(excess), epsilon, inputs, outputs, moved)


def least_of_ratio(
    ratio: Fraction | None,
    inputs: tuple[int, int] | tuple[str, str],
    outputs: tuple[int, ...],
    delta: float = 0.0,
    *,
    lower: Fraction | None = None,
) -> Least:
    """Return the least epsilon of a mechanism whose least e^epsilon is known.

    Args:
        ratio: at least 1; None if it is infinite. An upper bound, where ``lower`` is given.
        inputs: see `Least`, as for outputs and delta.
        outputs: see there.
        delta: see there.
        lower: a lower bound of the same ratio, at least 1; the ratio itself if None.
    """
    if ratio is None:
        return Least("epsilon", math.inf, math.inf, delta, inputs, outputs)
    low, high = log_enclosed(ratio)
    if lower is not None and lower != ratio:
        low = log_enclosed(lower)[0]
    return Least("epsilon", low, high, delta, inputs, outputs)


def require_pure(kind: str, epsilon: float | None, delta: float | None) -> None:
    """Refuse what is asked of a kind of which the least epsilon is known for delta = 0 alone.

    Raises:
        ParameterError: if a delta is given, or the least one is asked for.
    """
    if epsilon is not None or delta != 0:
        asked = "a least delta" if epsilon is not None else f"delta = {_checks.shown(delta)}"
        raise ParameterError(
            f"kind is {kind!r}; its least epsilon is found for delta = 0, and {asked} is asked for."
        )


def least_of_kernel(
    kernel: ExactKernel | OrbitKernel, epsilon: float | None, delta: float | None
) -> Least:
    """Return the least epsilon of a kernel of integers for a delta, or the other way round.

    Args:
        kernel: with the neighbours that it was proved for.
        epsilon: see `least_delta`; None asks for the least one.
        delta: see `least_epsilon`, where epsilon is None.
    """
    if isinstance(kernel, OrbitKernel):
        return _least_of_orbits(kernel, epsilon, delta)
    if epsilon is None:
        return least_epsilon(kernel.weights, cast(float, delta), pairs=kernel.pairs)
    return least_delta(kernel.weights, epsilon, pairs=kernel.pairs)


def _least_of_orbits(kernel: OrbitKernel, epsilon: float | None, delta: float | None) -> Least:
    orbits, weights = kernel.orbits, kernel.weights
    if orbits.inputs == 1:
        table = [kernel.row(0)]
        return (
            least_epsilon(table, cast(float, delta))
            if epsilon is None
            else least_delta(table, epsilon)
        )
    if epsilon is None and delta == 0:
        if orbits.complete:
            by_column = [sorted(part, key=weights.__getitem__) for part in orbits.by_column]
            changes = [(part[-1], part[0]) for part in by_column]
        else:
            steps = orbits.steps
            changes = list(zip(steps.first.tolist(), steps.second.tolist(), strict=True))
        best, change = (1, 1), (0, 0)
        for one, other in changes:
            if weights[one] * best[1] > best[0] * weights[other]:
                best, change = (weights[one], weights[other]), (one, other)
                if best[1] == 0:
                    break
        x, other, y = where(orbits, change)
        outputs = () if y is None or change == (0, 0) else (y,)
        return least_of_ratio(Fraction(*best) if best[1] else None, (x, other), outputs)
    return _least_of_edges(kernel, epsilon, delta)


def _least_of_edges(kernel: OrbitKernel, epsilon: float | None, delta: float | None) -> Least:
    """Return the least of one edge of each orbit: all others are these, permuted."""
    steps, both = kernel.orbits.steps, [(0, 1), (1, 0)]
    found: list[tuple[Least, int]] = []
    for edge in range(len(steps.edges)):
        part = slice(*steps.counts.indptr[edge : edge + 2])
        places, counts = steps.counts.indices[part], steps.counts.data[part].tolist()
        rows = [
            [n * kernel.weights[o] for n, o in zip(counts, side[places].tolist(), strict=True)]
            for side in (steps.first, steps.second)
        ]
        # All outputs whose weight is the same on both sides are one.
        rows = [[*row, kernel.total - sum(row)] for row in rows]
        if epsilon is None:
            found.append((least_epsilon(rows, cast(float, delta), pairs=both), edge))
        else:
            found.append((least_delta(rows, epsilon, pairs=both), edge))
    worst, edge = max(found, key=lambda pair: pair[0].upper)
    ends = steps.edges[edge].tolist()
    x, other = (ends[int(side)] for side in worst.inputs)
    return replace(
        worst,
        lower=max(least.lower for least, _ in found),
        inputs=(x, other),
        outputs=_outputs_of(kernel.orbits, edge, worst),
    )


def _outputs_of(orbits: Orbits, edge: int, worst: Least) -> tuple[int, ...]:
    """Return the outputs of an event that is given by the steps of an edge."""
    steps = orbits.steps
    places = steps.counts.indices[slice(*steps.counts.indptr[edge : edge + 2])]
    event = places[[place for place in map(int, worst.outputs) if place < len(places)]]
    changes = set(zip(steps.first[event].tolist(), steps.second[event].tolist(), strict=True))
    every = np.arange(orbits.outputs)
    before, after = (orbits.labels(x, every).tolist() for x in steps.edges[edge].tolist())
    return tuple(y for y, change in enumerate(zip(before, after, strict=True)) if change in changes)


def log_enclosed(ratio: Fraction) -> tuple[float, float]:
    """Return floats (a, b) with a <= log(ratio) <= b, for a ratio >= 1; a few floats apart."""
    upper = log_upper(ratio)
    lower = upper
    while lower > 0 and not _reached(lower, ratio):
        lower = math.nextafter(lower, 0.0)
    return lower, upper


def _reached(exponent: float, ratio: Fraction) -> bool:
    """Whether e^exponent is surely at most a ratio above 1."""
    above = ratio - 1
    small = above.denominator.bit_length() - above.numerator.bit_length()
    parts = math.ceil(exponent / _LARGEST_EXPONENT) or 1
    bits = 256 + min(max(0, small), 1100)
    return exp_upper(Fraction(exponent) / parts, bits) ** parts <= ratio


def _table(
    weights: Weights, pairs: Pairs | None
) -> tuple[list[list[int]], list[int], list[tuple[int, int]] | None]:
    """Return rows, their sums and the edges, checked."""
    listed: Any = weights.tolist() if isinstance(weights, np.ndarray) else weights
    rows = [list(row) for row in listed] if _are_rows(listed) else []
    whole = all(type(weight) is int and weight >= 0 for row in rows for weight in row)
    if not rows or not whole or len(set(map(len, rows))) != 1 or min(map(sum, rows)) == 0:
        raise ParameterError(
            "weights must be rows of the same length, integers of at least 0, not all 0 in a row."
        )
    return rows, list(map(sum, rows)), edge_list(pairs, len(rows))


def _are_rows(weights: object) -> bool:
    return isinstance(weights, list | tuple) and all(
        isinstance(row, list | tuple) for row in weights
    )


Found = tuple[Fraction | None, tuple[int, int], tuple[int, ...]]
"""The largest ratio, None if it is infinite, and the neighbours and the event that have it."""


def _largest_ratio(
    rows: list[list[int]], sums: list[int], edges: list[tuple[int, int]] | None
) -> Found:
    """Return the largest K[x, y] / K[x', y]; one output is as good as an event."""
    best = (1, 1)
    inputs, outputs = (0, 1) if edges is None else edges[0], tuple[int, ...]()
    for y, column in enumerate(zip(*rows, strict=True)):
        for x, other in _extremes(column, sums) if edges is None else edges:
            # K[x, y] / K[x', y] = (w s') / (w' s)
            top, bottom = column[x] * sums[other], column[other] * sums[x]
            if top * best[1] > best[0] * bottom:
                if bottom == 0:
                    return None, (x, other), (y,)
                best, inputs, outputs = (top, bottom), (x, other), (y,)
    return Fraction(*best), inputs, outputs


def _extremes(column: Sequence[int], sums: list[int]) -> list[tuple[int, int]]:
    """Return the inputs of the largest and the least probability of an output."""
    most = least = 0
    for x, weight in enumerate(column):
        if weight * sums[most] > column[most] * sums[x]:
            most = x
        if weight * sums[least] < column[least] * sums[x]:
            least = x
    return [(most, least)]


def _largest_excess_ratio(
    rows: list[list[int]],
    sums: list[int],
    edges: list[tuple[int, int]] | None,
    delta: Fraction,
) -> Found:
    """Return the largest (K(S | x) - delta) / K(S | x').

    A pair that is private at the largest ratio so far has no larger one. Floats say so of most
    pairs, with room for their rounding, and integers of the others.
    """
    screen = _Screen(rows, sums, edges)
    ratio, inputs, outputs = Fraction(1), screen.pair(0), tuple[int, ...]()
    left = np.ones(screen.count, dtype=bool)
    while left.any():
        # A smaller ratio says less: what is private for it is so for a larger one.
        far = screen.excesses(float(min(ratio, Fraction(_LARGEST_RATIO))))
        left &= far > float(delta) - screen.error
        if not left.any():
            break
        # The worst first: it raises the ratio for all others.
        worst = int(np.argmax(np.where(left, far, -1.0)))
        left[worst] = False
        pair = screen.pair(worst)
        if _excess(rows, sums, pair, ratio) <= delta:
            continue
        found, event = _pair_ratio(rows, sums, pair, delta)
        if found is None:
            return None, pair, event
        ratio, inputs, outputs = found, pair, event
    return ratio, inputs, outputs


def _pair_ratio(
    rows: list[list[int]], sums: list[int], pair: tuple[int, int], delta: Fraction
) -> tuple[Fraction | None, tuple[int, ...]]:
    """Return the largest (P(S) - delta) / Q(S) over the likelihood ratio events, and its event."""
    x, other = pair
    p, q = rows[x], rows[other]
    places = [y for y in range(len(p)) if p[y]]
    places.sort(key=lambda y: (q[y] > 0, Fraction(q[y], p[y])))
    best, event = Fraction(1), 0
    a = b = 0
    for count, y in enumerate(places, 1):
        a, b = a + p[y], b + q[y]
        over = Fraction(a, sums[x]) - delta
        if over <= 0:
            continue
        if b == 0:
            return None, tuple(sorted(places[:count]))
        ratio = over * sums[other] / b
        if ratio > best:
            best, event = ratio, count
    return best, tuple(sorted(places[:event]))


def _excess(
    rows: list[list[int]], sums: list[int], pair: tuple[int, int], ratio: Fraction
) -> Fraction:
    """Return sum_y max(0, P(y) - ratio Q(y)), exactly."""
    x, other = pair
    # Over the denominator of the ratio and both sums.
    up, down = sums[other] * ratio.denominator, sums[x] * ratio.numerator
    total = sum(max(0, up * p - down * q) for p, q in zip(rows[x], rows[other], strict=True))
    return Fraction(total, up * sums[x])


def _above(
    rows: list[list[int]], sums: list[int], pair: tuple[int, int], ratio: Fraction
) -> Iterator[int]:
    """Yield the outputs with P(y) > ratio Q(y)."""
    x, other = pair
    up, down = sums[other] * ratio.denominator, sums[x] * ratio.numerator
    for y, (p, q) in enumerate(zip(rows[x], rows[other], strict=True)):
        if up * p > down * q:
            yield y


class _Screen:
    """sum_y max(0, P(y) - r Q(y)) of all pairs in floats, up to an error that is known.

    A term is at most P(y), and off by at most four roundings of it where it is above 0: the
    positive part of what is below 0 is 0 whatever the rounding. So a sum of m terms is off by less
    than (m + 8) 2^-51.
    """

    def __init__(
        self, rows: list[list[int]], sums: list[int], edges: list[tuple[int, int]] | None
    ) -> None:
        self.laws: Matrix = np.array(
            [[weight / total for weight in row] for row, total in zip(rows, sums, strict=True)]
        )
        self.edges = edges
        self.error = (len(rows[0]) + 8) * 2.0**-51

    @property
    def count(self) -> int:
        """Number of pairs."""
        inputs = len(self.laws)
        return inputs * (inputs - 1) if self.edges is None else len(self.edges)

    def pair(self, place: int) -> tuple[int, int]:
        """Return a pair by its place."""
        if self.edges is not None:
            return self.edges[place]
        x, other = divmod(place, len(self.laws) - 1)
        return x, other + (other >= x)

    def chosen(self, marks: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield the pairs that are marked."""
        return map(self.pair, np.flatnonzero(marks).tolist())

    def excesses(self, ratio: float) -> Vector:
        """Return the sums of all pairs, shape (pairs,)."""
        if self.edges is not None:
            first, second = np.array(self.edges).T
            size = max(1, 4_000_000 // self.laws.shape[1])
            parts = [
                self._sums(self.laws[first[i : i + size]], self.laws[second[i : i + size]], ratio)
                for i in range(0, len(first), size)
            ]
            return np.concatenate(parts)
        every = [
            np.delete(self._sums(self.laws[x], self.laws, ratio), x) for x in range(len(self.laws))
        ]
        return np.concatenate(every)

    @staticmethod
    def _sums(p: Matrix, q: Matrix, ratio: float) -> Vector:
        return np.maximum(p - ratio * q, 0.0).sum(axis=1)
