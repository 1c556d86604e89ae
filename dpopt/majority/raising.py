"""By how much the weights of a private gamma can be raised: constraints in pairs of doubles.

A pair hi + lo of doubles holds a number to 2^-100 of it. Slacks count in units of 2^-62, which is
what a weight is raised by, coefficients are those of a constraint on the weights; both come from
integers. In a round that raises each of J weights by at most n units, in fewer than 2^10 sweeps,
no slack is off by more than J 2^-92 times itself and n times the sum of the absolute values of its
constraint's coefficients: that much is kept of each. The last rounds raise by few units, so that
what is kept is far below one. Every positive coefficient stops its weight where a slack is used
up, however small: such steps are long.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ldexp

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Pair = tuple[Floats, Floats]

_SPLIT = float((1 << 27) + 1)
_MOST_SWEEPS = 1 << 10


def paired(values: list[int], exponent: int) -> Pair:
    """Return integers times 2^exponent as pairs, rounded to 2^-100 of the largest at most."""
    longest = max((value.bit_length() for value in values), default=0)
    spare = max(0, longest - 900)
    high = [float(value >> spare) for value in values]
    low = [float((v >> spare) - int(h)) for v, h in zip(values, high, strict=True)]
    return (
        np.array([ldexp(h, exponent + spare) for h in high]),
        np.array([ldexp(rest, exponent + spare) for rest in low]),
    )


def plus(one: Pair, other: Pair) -> Pair:
    """Return the sum of pairs."""
    total = one[0] + other[0]
    back = total - one[0]
    rest = (one[0] - (total - back)) + (other[0] - back) + (one[1] + other[1])
    high = total + rest
    return high, rest - (high - total)


def times(pair: Pair, factor: float) -> Pair:
    """Return pairs times a double (Dekker's product)."""
    high, low = pair
    product, factors = high * factor, _halves(np.float64(factor))
    halves = _halves(high)
    error = (halves[0] * factors[0] - product) + halves[0] * factors[1] + halves[1] * factors[0]
    return product, error + halves[1] * factors[1] + low * factor


def _halves(value: npt.NDArray[np.float64] | np.float64) -> tuple[Floats, Floats]:
    """Return two doubles of half the digits each, whose sum is the value."""
    wide = _SPLIT * value
    high = wide - (wide - value)
    return np.asarray(high), np.asarray(value - high)


@dataclass(frozen=True)
class Limits:
    """Constraints that stop weights from being raised, in order of the weights' places.

    Attributes:
        slacks: of the constraints, in units; shape (constraints,).
        coefficients: on the weights, shape (places, constraints).
    """

    slacks: Pair
    coefficients: Pair

    def raised(self, rooms: list[int], units: int, spare: float = 0.0) -> list[int]:
        """Return by how much to raise each weight, one after the other until none moves.

        Args:
            rooms: by how much each can be raised at most.
            units: the most by which any is raised in this round.
            spare: what is left of a slack by weights of larger coefficients than those of which
                steps of 2^36 units of all weights use up a quarter of it.
        """
        places, slacks = len(rooms), self.slacks
        sizes = units * np.abs(self.coefficients[0]).sum(axis=0) + np.abs(slacks[0])
        kept = places * sizes * 2.0**-92
        small = spare / (places * 2.0**38)
        total, moved, sweeps = [0] * places, True, 0
        open_ = [place for place, room in enumerate(rooms) if room > 0]
        while moved and sweeps < _MOST_SWEEPS:
            moved, sweeps = False, sweeps + 1
            for place in open_:
                most = min(units, rooms[place]) - total[place]
                if most <= 0:
                    continue
                own = self.coefficients[0][place], self.coefficients[1][place]
                step, left = _largest_step(slacks, own, most, kept + spare * (own[0] > small))
                if step:
                    moved, slacks = True, left
                    total[place] += step
        return total


def _largest_step(slacks: Pair, coefficients: Pair, most: int, kept: Floats) -> tuple[int, Pair]:
    """Return the largest whole step that leaves each slack what is kept of it, and the slacks."""
    stops = coefficients[0] > 0.0
    if stops.any():
        with np.errstate(over="ignore"):
            ratios = (slacks[0][stops] - kept[stops]) / coefficients[0][stops]
        # Rounded up: the next lines try it in full precision.
        most = min(most, max(0, int(min(float(np.min(ratios)) * (1 + 2.0**-50), 2.0**62) + 0.01)))
    while most > 0:
        left = plus(slacks, times(coefficients, -float(most)))
        if not stops.any() or float(np.min((left[0] - kept)[stops])) >= 0.0:
            return most, left
        most -= 1
    return 0, slacks
