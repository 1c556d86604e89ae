"""The exact privacy of several releases whose inputs an adversary chooses one after the other.

Let N be the pairs (P, Q) of output distributions of neighbours, e = e^epsilon, and

    w_0(a, b) = max(a - e b, 0),   w_j(a, b) = max over (P, Q) in N of sum_y w_{j-1}(a P_y, b Q_y).

Then w_k(1, 1) is the least delta at epsilon of k releases, each of which may depend on all earlier
outputs: after a history with masses (a, b) the rest is chosen for each next output separately, so
that the maximum of the sum is the sum of maxima. w_j(a, b) = b W_j(a / b), and W_j is convex with
slopes in [0, 1].

`adaptive_delta` encloses it on a grid t_i = e^(i h). Above W_j are the chords of values at the grid
points, as W_j is convex; below it is the larger of two lines, one for each neighbouring grid point.
On such a grid a factor P_y / Q_y is a shift. All roundings go outward, by more than doubles lose:
each step by a factor of 1 + 2^-45, each logarithm by 2^-41. e^epsilon is on the grid.

Where outputs or releases are too many for that, `adaptive_delta` and `adaptive_epsilon` of a design
compose one pair that dominates all neighbours, which bounds the same number from above (Zhu, Dong,
Wang 2022, theorem 10): by dp-accounting's privacy loss distributions if it is installed, else as
the worst mechanism with its largest loss. `Enclosed.engine` says which engine gave a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, float_up
from dpopt._types import Matrix, Vector, brief
from dpopt.privacy.cost import DominatingPair
from dpopt.privacy.guarantee import Guarantee, optimal_composition

if TYPE_CHECKING:
    from dpopt.shape import Design

__all__ = ["Enclosed", "Engine", "adaptive_delta", "adaptive_epsilon"]

Pair = tuple[npt.ArrayLike, npt.ArrayLike]
"""Two distributions over the same outputs, P and Q."""


Pairs: TypeAlias = "Sequence[Pair] | Design"
"""The pairs (P, Q) of neighbours, or the design that has them."""

# Outward factor of a step, relative, for up to 8 outputs and more in proportion; outward shift of a
# logarithm; largest relative error of a probability; what underflow may lose in a step.
_STEP, _LOG, _ERROR, _TINY = 2.0**-45, 2.0**-41, 2.0**-50, 1e-300
# Cells of the first grid on either side of 1, and of the last one; and entries of all outputs and
# releases on a grid that decides a guarantee, which takes about a minute.
_FIRST, _LAST, _MOST_ENTRIES = 1_000, 256_000, 2_000_000_000
# Entries of outputs and releases on the first grid up to which neighbours are compared: seconds.
_ENTRIES = 5_000_000
# Of delta, for each release: a hundred times what the rounding of dp-accounting's FFT was seen at.
_FFT = 1e-14
# Logarithm of the largest t: beyond it W grows with slope 1.
_REACH = 30.0


class Engine(StrEnum):
    """What gave a number, in words."""

    GRID = "neighbours on a grid, outward-rounded floats"
    LOSSES = "privacy losses of the dominating pair, dp-accounting"
    WORST = "the worst mechanism with the largest loss, rounded up"


@dataclass(frozen=True)
class Enclosed:
    """A number between two floats.

    Attributes:
        lower: at most the number; 0 if the engine gives no lower end.
        upper: at least the number. It is proved, but for dp-accounting's convolution, whose
            rounding was measured: 1e-14 of delta for each release is reserved for it.
        engine: what computed them.
    """

    lower: float
    upper: float
    engine: Engine = Engine.GRID

    def __repr__(self) -> str:
        return brief(self)


def adaptive_delta(
    pairs: Pairs | DominatingPair, releases: int, epsilon: float, *, accuracy: float = 1e-3
) -> Enclosed:
    """Return the least delta at epsilon of several releases, adaptively chosen, enclosed.

    Args:
        pairs: (P, Q) of neighbours, each over the outputs, shape (outputs,). Both orders are taken.
            Or a design with a table, of whose neighbours all pairs are taken; of private voters,
            for votes that are drawn afresh for each release. Or a `DominatingPair`.
        releases: k, at least 1.
        epsilon: of all releases together, at least 0, in nats.
        accuracy: the grid is refined until the ends differ by at most this share of the upper one;
            in (0, 1).

    Raises:
        ParameterError: if a pair holds no distributions, or a number is out of range; or if the
            releases of a design are too many for the engines that are installed.

    Example:
        >>> from dpopt.composition import adaptive_delta
        >>> response = [([0.6, 0.4], [0.4, 0.6])]          # randomised response, ratio 1.5
        >>> round(adaptive_delta(response, 20, 3.0, accuracy=1e-9).upper, 9)
        0.120140094
    """
    releases = _checks.integer("releases", releases, 1, 1_000_000)
    source = _source(pairs, releases)
    if not isinstance(source, DominatingPair):
        epsilon = _checks.real("epsilon", epsilon, 0.0, _REACH - 1)
        accuracy = _checks.real("accuracy", accuracy, 0.0, 1.0, open_lower=True, open_upper=True)
        return _refined(
            lambda cells: interval(source, releases, epsilon, cells),
            lambda enclosed: enclosed.upper - enclosed.lower <= accuracy * enclosed.upper,
        )
    epsilon = _checks.real("epsilon", epsilon, 0.0)
    if (losses := _composed(source, releases)) is not None:
        spent = float(losses.get_delta_for_epsilon(epsilon)) + _FFT * releases
        return Enclosed(0.0, min(spent, 1.0), Engine.LOSSES)
    raise ParameterError(
        f"releases is {releases}; so many of so many outputs need dp-accounting: "
        "pip install 'dpopt[interop]'."
    )


def decided_delta(
    pairs: Sequence[tuple[Vector, Vector]], releases: int, epsilon: float, delta: float
) -> Enclosed:
    """Return an enclosure of the delta of several releases that says on which side of delta it is.

    Unless the finest grid does not tell. The pairs are checked, in the orders that count; a
    ParameterError is raised if releases times outcomes are too many for the first grid.
    """
    outcomes = sum(p.size for p, _ in pairs)
    each, most = releases * outcomes, _MOST_ENTRIES // (4 * _FIRST)
    if each > most:
        raise ParameterError(
            f"releases is {releases}, of neighbours with {outcomes:,} outcomes that count; it may "
            f"be at most {most // outcomes}, for {most:,} outcomes in all."
        )
    return _refined(
        lambda cells: interval(pairs, releases, epsilon, cells),
        lambda enclosed: enclosed.upper <= delta or enclosed.lower > delta,
        min(_LAST, _MOST_ENTRIES // each),
    )


def _refined(
    ends: Callable[[int], tuple[float, float]],
    enough: Callable[[Enclosed], bool],
    last: int = _LAST,
) -> Enclosed:
    """Return the best ends over ever finer grids, until they are enough or the grid is the last."""
    cells, best = _FIRST, Enclosed(0.0, 1.0)
    while True:
        lower, upper = ends(cells)
        best = Enclosed(max(best.lower, lower), min(best.upper, upper))
        if enough(best) or 4 * cells > max(last, _FIRST):
            return best
        cells *= 4


def _neighbours(pairs: Pairs) -> list[tuple[Vector, Vector]]:
    """Return the checked pairs in both orders, of a design in all orders that count."""
    listed: Any = pairs
    if hasattr(listed, "setting"):
        both = listed.setting.output_pairs(listed.table)
    else:
        both = [ordered for pair in listed for ordered in _orders(pair)]
    if not both:
        raise ParameterError("pairs is empty; it must hold at least one pair of distributions.")
    return both


def adaptive_epsilon(
    pairs: Pairs | DominatingPair, releases: int, delta: float, *, accuracy: float = 1e-4
) -> Enclosed:
    """Return the least epsilon at delta of several releases, adaptively chosen, enclosed.

    Args:
        pairs: as for `adaptive_delta`.
        releases: k, at least 1.
        delta: of all releases together, in [0, 1).
        accuracy: distance of the ends that is aimed at, in nats, on the grid.

    Returns:
        Two epsilons. At ``upper`` the releases were shown to satisfy the given delta; at ``lower``,
        unless it is 0, to violate it. ``upper`` can be infinite, for delta = 0 or a dominating
        pair.

    Raises:
        ParameterError: as for `adaptive_delta`; or if, on the grid, an epsilon above 29 is needed.

    Example:
        >>> from dpopt.composition import adaptive_epsilon
        >>> response = [([0.6, 0.4], [0.4, 0.6])]          # at delta = 0, 100 log 1.5 = 40.55
        >>> round(adaptive_epsilon(response, 100, 1e-6).upper, 2)
        25.47
    """
    releases = _checks.integer("releases", releases, 1, 1_000_000)
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    accuracy = _checks.real("accuracy", accuracy, 1e-9, 1.0)
    source = _source(pairs, releases, delta)
    if isinstance(source, DominatingPair):
        worst = _worst_epsilon(source.largest_loss, releases, delta)
    elif delta > 0.0:
        return _epsilon_on_grids(source, releases, delta, accuracy)
    else:
        endless = any(np.any((p > 0) & (q == 0)) for p, q in source)
        largest = math.inf if endless else max(largest_loss(p, q) for p, q in source) + _LOG
        return Enclosed(0.0, _worst_epsilon(largest, releases, delta), Engine.WORST)
    if delta <= _FFT * releases or (losses := _composed(source, releases)) is None:
        return Enclosed(0.0, worst, Engine.WORST)
    # dp-accounting's own inverse adds up its grid and drifts: over 1e6 places it returns epsilons
    # whose delta is too large by 4e-11. What is returned was evaluated.
    remaining, step = delta - _FFT * releases, 1e-13
    epsilon = float(losses.get_epsilon_for_delta(remaining))
    while math.isfinite(epsilon) and losses.get_delta_for_epsilon(epsilon) > remaining:
        epsilon += step * max(1.0, epsilon)
        step *= 2.0
    ends = [(worst, Engine.WORST), (epsilon, Engine.LOSSES)]
    return Enclosed(0.0, *min(ends, key=lambda end: end[0]))


def _source(
    pairs: Pairs | DominatingPair, releases: int, delta: float = 1.0
) -> list[tuple[Vector, Vector]] | DominatingPair:
    """Return the pairs of neighbours for the grid, or what dominates all where these are too many.

    For delta = 0 always the latter, where there is one: its largest loss is exact.
    """
    design: Any = pairs
    if isinstance(pairs, DominatingPair):
        return pairs
    if not hasattr(design, "setting"):
        return _neighbours(design)
    try:
        neighbours = _neighbours(design)
    except ParameterError:
        return design.setting.dominating(design.table)
    entries = 2 * _FIRST * releases * sum(p.size for p, _ in neighbours)
    if delta > 0.0 and entries <= _ENTRIES:
        return neighbours
    try:
        return design.setting.dominating(design.table)
    except ParameterError:
        return neighbours


def _composed(pair: DominatingPair, releases: int) -> Any:  # noqa: ANN401
    """Return dp-accounting's loss distribution of equal releases; None if it is not installed."""
    try:
        return loss_distribution(pair).self_compose(releases)
    except ImportError:
        return None


def loss_distribution(pair: DominatingPair, interval: float | None = None) -> Any:  # noqa: ANN401
    """Return dp-accounting's loss distribution of one release; see `DominatingPair.losses`."""
    from dp_accounting.pld.privacy_loss_distribution import (  # pyright: ignore[reportMissingImports]
        PrivacyLossDistribution,
    )

    losses, step = pair.losses(interval)
    return PrivacyLossDistribution.create_from_rounded_probability(
        losses, float_up(pair.infinite_mass), step, pessimistic_estimate=True
    )


def _worst_epsilon(largest: float, releases: int, delta: float) -> float:
    """Return the epsilon of the worst mechanisms with this largest privacy loss."""
    if not 0.0 < largest < math.inf:
        return largest
    composed = optimal_composition(Guarantee(largest), releases, delta)
    return composed.epsilon if composed else float_up(releases * Fraction(largest))


def _epsilon_on_grids(
    pairs: list[tuple[Vector, Vector]], releases: int, delta: float, accuracy: float
) -> Enclosed:
    most, cells = _REACH - 1, _FIRST
    while True:

        def excess(epsilon: float, cells: int = cells) -> float:
            upper = interval(pairs, releases, epsilon, cells, lower=False)[1]
            return math.log(max(upper, 1e-300) / delta)

        if excess(0.0) <= 0:
            return Enclosed(0.0, 0.0)
        high = min(1.0, most)
        while high < most and excess(high) > 0:
            high = min(2 * high, most)
        if excess(high) > 0:
            raise ParameterError(
                f"delta is {digits(delta)}; {releases} releases need an epsilon above {high:g}."
            )
        # Just above the root: its upper end is evaluated once more.
        high = float(brentq(excess, 0.0, high, xtol=accuracy / 8))
        while excess(high) > 0:
            high += accuracy / 8
        below = max(high - accuracy / 2, 0.0)
        # On the last grid as near as it tells.
        while (
            (fits := interval(pairs, releases, below, cells)[0] <= delta)
            and cells >= _LAST
            and below > 0
        ):
            below = max(2 * below - high, 0.0)
        if not fits or cells >= _LAST:
            return Enclosed(below, high)
        cells *= 4


def _orders(pair: Pair) -> list[tuple[Vector, Vector]]:
    """Return (P, Q) and (Q, P) as arrays of probabilities, checked."""
    p, q = (_checks.floats("pairs", side) for side in pair)
    if p.ndim != 1 or p.shape != q.shape or not p.size:
        raise ParameterError(f"pairs have shapes {p.shape} and {q.shape}; they must be equal.")
    for side in (p, q):
        if not np.all((side >= 0) & (side <= 1)) or abs(side.sum() - 1) > 1e-9:
            raise ParameterError("pairs must hold probabilities that sum to 1.")
    return [(p, q), (q, p)]


def interval(
    pairs: Sequence[tuple[Vector, Vector]],
    releases: int,
    epsilon: float,
    cells: int,
    *,
    lower: bool = True,
) -> tuple[float, float]:
    """Return both ends on a grid with about so many cells on either side of 1.

    Args:
        pairs: of neighbours, checked, in the orders that count.
        releases: k.
        epsilon: in nats.
        cells: of the grid.
        lower: whether the lower end is computed; 0 if not, in a quarter of the time.
    """
    grid = _Grid.of(pairs, releases, epsilon, cells)
    # Before any release W(t) = max(t - e^epsilon, 0), rounded up, and its lines.
    above = np.maximum(grid.points * (1 + grid.step) - grid.growth * (1 - grid.step), 0.0)
    below = grid.first_below()
    for _ in range(releases):
        above, below = grid.stepped(above, below, pairs, lower=lower)
    middle = grid.points.size // 2
    return float(below[0, middle]) if lower else 0.0, float(above[middle])


def largest_loss(p: Vector, q: Vector) -> float:
    """Return the largest abs(log(P_y / Q_y)) of outputs that both sides have."""
    both = (p > 0) & (q > 0)
    return float(np.abs(np.log(p[both]) - np.log(q[both])).max(initial=0.0))


@dataclass(frozen=True)
class _Grid:
    """The points t_i, with what is lost by rounding, and how far a step looks beyond them."""

    points: Vector
    width: float
    growth: float
    step: float
    pad: int
    releases: int

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[Vector, Vector]], releases: int, epsilon: float, cells: int
    ) -> _Grid:
        """Return a grid for so many releases."""
        largest = max(largest_loss(p, q) for p, q in pairs)
        spread = 6 * math.sqrt(releases) * min(largest, 1.0) + 2
        reach = min(max(epsilon + 1, min(releases * largest + 0.1, epsilon + spread)), _REACH)
        cells = max(cells, math.ceil(reach * (releases + 2) / 8))
        width = reach / cells
        # Of a smaller epsilon the kink is as good as at 1.
        if epsilon > width / 16:
            width = epsilon / math.ceil(epsilon / width)
            cells = math.ceil(reach / width)
        return cls(
            np.exp(np.arange(-cells, cells + 1) * width),
            width,
            math.exp(epsilon),
            _STEP * max(1.0, max(p.size for p, _ in pairs) / 8),
            min(2 * cells, math.ceil(largest / width)) + 4,
            releases,
        )

    def stepped(
        self, above: Vector, below: Matrix, pairs: Sequence[tuple[Vector, Vector]], *, lower: bool
    ) -> tuple[Vector, Matrix]:
        """Return upper values and lower lines of one release more, which may also be left out."""
        padded = self.padded(above)
        for p, q in pairs:
            above = np.maximum(above, self.above(padded, p, q))
        if lower:
            lines = self.lines_beyond(below)
            for p, q in pairs:
                below = _better(below, self.below(lines, p, q))
            lowered = below[0] * (1 - self.step) - self.spread * below[1] - _TINY
            below = _better(_positive(lowered, below[1]), self.first_below())
        return above * (1 + self.step) + _TINY, below

    def outputs(self, p: Vector, q: Vector, up: bool) -> Iterator[tuple[float, float, int, float]]:
        """Yield P_y and Q_y, moved outward, and log(P_y / Q_y) as cells and the rest of one."""
        sign = 1 if up else -1
        more, less = p * (1 + sign * _ERROR), q * (1 - sign * _ERROR)
        for a, b in zip(more.tolist(), less.tolist(), strict=True):
            if a > 0 and b > 0:
                log = math.log(a) - math.log(b) + sign * _LOG
                offset = math.floor(log / self.width)
                yield a, b, offset, min(max(log - offset * self.width, 0.0), self.width)
            elif a > 0:
                yield a, 0.0, 0, 0.0

    def padded(self, above: Vector) -> Vector:
        """Return upper values on the grid and beyond: W(t) / t does not fall, slopes are <= 1."""
        cells = np.arange(1, self.pad + 1)
        before = above[0] * np.exp(-cells[::-1] * self.width) * (1 + self.step)
        beyond = self.points[-1] * np.exp(cells * self.width) * (1 + self.step)
        second = above[-1] + beyond - self.points[-1] * (1 - self.step)
        return np.concatenate([before, above, second])

    def above(self, padded: Vector, p: Vector, q: Vector) -> Vector:
        """Return upper values of sum_y Q_y W(t P_y / Q_y)."""
        points, size, pad = self.points, self.points.size, self.pad
        total = np.zeros(size)
        for a, b, offset, fraction in self.outputs(p, q, up=True):
            if b == 0 or offset > pad - 2:
                total += a * points
            elif offset < 1 - pad:
                total += a * points * (padded[pad] / points[0])
            else:
                share = math.expm1(fraction) / math.expm1(self.width)
                start = pad + offset
                total += (b * (1 - share)) * padded[start : start + size]
                total += (b * share) * padded[start + 1 : start + 1 + size]
        return total

    def line(self, points: Vector, spread: float) -> Matrix:
        """Return the lines of max(t - e^epsilon, 0) at points, rounded down: value, slope t.

        Of lines the rows are values and slopes: the line value + slope (t / t_i - 1) at the point
        t_i is nowhere above W.
        """
        values = points * (1 - self.step - spread) - self.growth * (1 + self.step)
        return _positive(values, points)

    def first_below(self) -> Matrix:
        """Return the lines of max(t - e^epsilon, 0) on the grid."""
        return self.line(self.points, self.spread)

    @property
    def spread(self) -> float:
        """What rounding may add to a line that is used some cells away, relative."""
        return 4 * _LOG * math.expm1((self.releases + 2) * self.width)

    def lines_beyond(self, lines: Matrix) -> Matrix:
        """Return the lines on the grid and beyond, where W is at least 0 and t - e^epsilon."""
        beyond = self.points[-1] * np.exp(np.arange(1, self.pad + 1) * self.width)
        return np.hstack([np.zeros((2, self.pad)), lines, self.line(beyond, 0.0)])

    def below(self, lines: Matrix, p: Vector, q: Vector) -> Matrix:
        """Return lines below sum_y Q_y W(t P_y / Q_y): of each output the better of two, or 0."""
        points, size, pad = self.points, self.points.size, self.pad
        total = np.zeros((2, size))
        for a, b, offset, fraction in self.outputs(p, q, up=False):
            if b == 0:
                total += a * points
            elif offset > pad - 2:
                total += _positive(a * points - b * self.growth, a * points)
            elif offset >= 1 - pad:
                start = pad + offset
                first, second = lines[:, start : start + size], lines[:, start + 1 :][:, :size]
                back = math.expm1(fraction - self.width) * (1 + self.step) - self.step * self.width
                from_first = first[0] + first[1] * (math.expm1(fraction) * (1 - self.step))
                from_second = second[0] + second[1] * back
                nearer = from_first >= from_second
                slope = np.where(nearer, first[1], second[1] * math.exp(-self.width))
                best = np.where(nearer, from_first, from_second)
                total += _positive(b * best, a * math.exp(-offset * self.width) * slope)
        return total


def _positive(values: Vector, slopes: Vector) -> Matrix:
    """Return lines; where the value is below 0, the line 0."""
    return np.where(values > 0, [values, slopes], 0.0)


def _better(lines: Matrix, others: Matrix) -> Matrix:
    """Return at each point the line with the larger value there."""
    return np.where(others[0] > lines[0], others, lines)
