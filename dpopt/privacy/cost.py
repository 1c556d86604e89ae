"""What a mechanism costs: its least epsilon or delta, and a dominating pair of all neighbours.

A pair of distributions (P, Q) dominates a mechanism if for every alpha >= 0 its hockey-stick
divergence sup_S P(S) - alpha Q(S) is at least that of any two neighbours. Pairs that dominate
several mechanisms dominate their adaptive composition, as product distributions (Zhu, Dong, Wang
2022, theorem 10; each mechanism's randomness independent of the others', given data and earlier
outputs).

Theorem. Let C be the set of all points (Q(S), P(S)), over all neighbours and all events S, and let
the upper concave hull of C with (0, 0) and (1, 1) have the vertices (b_0, a_0), ..., (b_t, a_t),
from left to right. The pair with the atoms P_i = a_i - a_{i-1}, Q_i = b_i - b_{i-1}, and with an
atom of P alone where a_0 > 0, has exactly the largest divergence of all neighbours at every alpha.

Proof. The slopes P_i / Q_i fall, so sum_i (P_i - alpha Q_i)_+ is a sum over the first atoms: the
largest a_j - alpha b_j over the vertices, which is the largest over C. (No other hull is needed:
each divergence is convex in alpha, and so is their pointwise maximum.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Literal

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import float_up
from dpopt._types import Json, brief
from dpopt.privacy.exact import exp_lower, log_enclosed, log_near, log_upper
from dpopt.verify import Point

# Steps of the grid of losses: about this wide, at least so many up to the largest loss, at most.
_INTERVAL, _FEWEST, _MOST_STEPS = 1e-4, 2000, 20_000


@dataclass(frozen=True)
class Least:
    """The least epsilon of a mechanism for a delta, or its least delta for an epsilon, enclosed.

    Attributes:
        parameter: which one is least: "epsilon" or "delta".
        lower: a float <= the exact value.
        upper: a float >= the exact value, equal to ``lower`` or a few floats above it; the
            mechanism is private for it. Both are infinite for an epsilon if an event is possible
            for an input and impossible for a neighbour.
        given: the other parameter's value: the delta, or the epsilon.
        inputs: neighbours (x, x') that attain it: numbers of a table's inputs, their names if they
            have any, or descriptions if data sets are too many to be numbered.
        outputs: an event S that attains it: K(S | x) = e^epsilon K(S | x') + delta, up to rounding;
            numbers of the outputs, or their names.
        moved: largest total variation between a row of the given table and the distribution that
            was analysed; 0 if its rows were distributions.
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
        given = "delta" if self.parameter == "epsilon" else "epsilon"
        numbers = {self.parameter: verify.not_below(self.upper), given: self.given}
        return brief(self, **numbers, inputs=f"{x} and {other}", outputs=self.outputs)

    def to_dict(self) -> Json:
        """Return the fields as plain values; an infinite epsilon becomes None."""
        lower, upper = (x if math.isfinite(x) else None for x in (self.lower, self.upper))
        lists = {"inputs": list(self.inputs), "outputs": list(self.outputs)}
        return {**asdict(self), "lower": lower, "upper": upper, **lists}


def least_of_ratio(
    exp_epsilon: Fraction | None,
    inputs: tuple[int | str, int | str],
    outputs: tuple[int | str, ...],
    delta: float = 0.0,
    *,
    lower: Fraction | None = None,
) -> Least:
    """Return the least epsilon for a delta from the least e^epsilon, None if infinite.

    Or from bounds on it, ``lower`` and ``exp_epsilon``. The other arguments are those of `Least`.
    """
    if exp_epsilon is None:
        return Least("epsilon", math.inf, math.inf, delta, inputs, outputs)
    low, high = log_enclosed(exp_epsilon)
    if lower is not None:
        low = log_enclosed(lower)[0]
    return Least("epsilon", low, high, delta, inputs, outputs)


def require_pure(kind: str, epsilon: float | None, delta: float | None) -> None:
    """Check a request to a kind of mechanism that supports the least epsilon for delta = 0 only."""
    if epsilon is not None or delta != 0:
        request = "a least delta" if epsilon is not None else f"delta = {_checks.shown(delta)}"
        raise ParameterError(
            f"kind is {kind!r}; its least epsilon is found for delta = 0, and {request} is asked "
            "for."
        )


@dataclass(frozen=True)
class DominatingPair:
    """A tight dominating pair: two distributions (P, Q) as integers over a common denominator.

    Attributes:
        upper: P of each outcome as integers over ``scale``, by descending P / Q.
        lower: Q of each outcome, likewise; it can be 0 only for the first one.
        scale: the denominator of both.
    """

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    scale: int

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of_points(cls, points: Iterable[Point], scale: int) -> DominatingPair:
        """Return the pair of the upper concave hull of points (Q(S), P(S)) over ``scale``."""
        vertices: list[Point] = [(0, 0), (scale, scale)]
        for point in points:
            vertices.append(point)
            # Reduced from time to time, so that memory does not grow with the points.
            if len(vertices) >= 200_000:
                vertices = verify.hull(vertices)
        corners = verify.hull(vertices)
        # The hull starts at (0, a_0): a_0 is the mass of an outcome that is impossible under Q.
        steps = [(0, 0), *corners] if corners[0] != (0, 0) else corners
        upper = tuple(after[1] - before[1] for before, after in pairwise(steps))
        lower = tuple(after[0] - before[0] for before, after in pairwise(steps))
        return cls(upper, lower, scale)

    @property
    def infinite_mass(self) -> Fraction:
        """P of the outcome that is impossible under Q, whose privacy loss is infinite; else 0."""
        return Fraction(self.upper[0], self.scale) if self.lower[0] == 0 else Fraction(0)

    @property
    def largest_loss(self) -> float:
        """Largest log P / Q, rounded up: the least epsilon for delta = 0, possibly infinite."""
        if self.infinite_mass:
            return math.inf
        return log_upper(Fraction(self.upper[0], self.lower[0]))

    def delta(self, epsilon: float) -> float:
        """Return sum_i (P_i - e^epsilon Q_i)_+, rounded up: the least delta for this epsilon.

        Args:
            epsilon: in [-600, 600]; below 0, the divergence at alpha < 1.
        """
        exp_epsilon = exp_lower(_checks.real("epsilon", epsilon, -600.0, 600.0), 1024)
        terms = (p - exp_epsilon * q for p, q in zip(self.upper, self.lower, strict=True))
        return float_up(sum((max(Fraction(0), t) for t in terms), Fraction(0)) / self.scale)

    def losses(self, interval: float | None = None) -> tuple[dict[int, float], float]:
        """Return a pair that dominates this one, by P of its privacy losses on a grid.

        An outcome between two multiples of the interval is split over both, with the same P and Q
        in sum: merging them again is post-processing, so that the split pair dominates (the
        pessimistic "connect the dots" of Doroshenko et al. 2022). Probabilities are rounded up,
        which raises every divergence.

        Args:
            interval: above 0, at least 1e-7 of the largest finite loss, in nats. If None, one of
                which the largest loss is a multiple: about 1e-4, or 1/2,000 of the largest loss if
                that is less, or 1/20,000 if that is more.

        Returns:
            P by multiple of the interval, without `infinite_mass`, and the interval.
        """
        atoms = [(p, q) for p, q in zip(self.upper, self.lower, strict=True) if p and q]
        largest = max((abs(log_near(Fraction(p, q))) for p, q in atoms), default=0.0)
        if interval is not None:
            # At most ten million places of the grid: memory fixes it.
            step = _checks.real("interval", interval, max(largest / 10_000_000, 1e-300))
        else:
            steps = min(max(math.ceil(largest / _INTERVAL), _FEWEST), _MOST_STEPS)
            step = largest / steps if largest > 1e-9 else _INTERVAL
        losses: dict[int, float] = {}
        power = cache(lambda bucket: _exp(bucket * step))
        for p, q in atoms:
            split = _split(Fraction(p, self.scale), Fraction(q, self.scale), step, power)
            for bucket, mass in split:
                losses[bucket] = math.nextafter(losses.get(bucket, 0.0) + mass, math.inf)
        return losses, step


def _split(
    p: Fraction, q: Fraction, step: float, power: Callable[[int], Fraction]
) -> Iterator[tuple[int, float]]:
    """Yield two places of the grid and the P there, rounded up: P and Q in sum as given."""
    ratio = p / q
    bucket = math.floor(log_near(ratio) / step)
    while power(bucket) > ratio:
        bucket -= 1
    while power(bucket + 1) < ratio:
        bucket += 1
    low, high = power(bucket), power(bucket + 1)
    above = min(p, high * (p - low * q) / (high - low))
    # More than what the rounding of the powers can move.
    for where, mass in ((bucket, p - above), (bucket + 1, above)):
        yield where, float_up(mass + p / (1 << 100))


def _exp(exponent: float) -> Fraction:
    return exp_lower(exponent, 160 + max(0, math.ceil(-1.5 * exponent)))
