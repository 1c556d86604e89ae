"""The program of the best plurality: its variables, rows, priors, and the repair of a solution.

One variable k[lambda, c] for each sorted histogram lambda and each count c in it (see
`dpopt.ballots`). Of the privacy rows those of the ladder are written out,

    k[lambda, y] >= e^-epsilon k[lambda - e_top + e_y, y],   y below the top,

since they are tight in most optima, and all others come from an oracle, as far as they are
violated: 20 records over 10 classes have 36,236 rows, of which a few thousand are ever written.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from dpopt._errors import ParameterError
from dpopt._numbers import shown, typed_rational
from dpopt._types import Vector
from dpopt.ballots import Partitions, quantised
from dpopt.ballots.table import Units, shared
from dpopt.ballots.tabulate import Numbers, exponential_table, permute_and_flip_table
from dpopt.lp import Separation, make_rows
from dpopt.privacy import Problem

# The violation that counts.
_VIOLATED = 1e-10
_LARGEST_FACTOR = 1e3
# Fractional bits, beyond those of the smallest probability, in which a point is repaired.
_SPARE = 64
# Slack of a row of a proof, as a share of its largest coefficient, and how many there are for each
# variable.
_TIGHT, _MOST_TIGHT = 1e-6, 4
_LEAST_MIX = Fraction(1, 1 << 60)
_LARGEST_SHAPE = 10_000


class PrivacyRows:
    """The privacy rows of all neighbours: those of the ladder, and an oracle for the others.

    Args:
        partitions: K and C.
        epsilon: in nats.
    """

    def __init__(self, partitions: Partitions, epsilon: float) -> None:
        first, second = partitions.neighbours
        larger, smaller = np.concatenate([first, second]), np.concatenate([second, first])
        written = np.isin(smaller * partitions.size + larger, _ladder_codes(partitions))
        self.size = partitions.size
        # e^-epsilon k[larger] - k[smaller], times e^epsilon up to 1,000: a solver's tolerance is
        # then little for the smaller one.
        scale = min(math.exp(epsilon), _LARGEST_FACTOR)
        self._factors = scale * math.exp(-epsilon), -scale
        # Of a kernel whose entries are all 1.
        self.slack = -scale * math.expm1(-epsilon)
        self.ladder = self._matrix(larger[written], smaller[written])
        self._others = self._matrix(larger[~written], smaller[~written])

    def _matrix(self, larger: np.ndarray, smaller: np.ndarray) -> sp.csr_array:
        count = larger.size
        data = np.repeat(self._factors, count)
        rows, columns = np.tile(np.arange(count), 2), np.concatenate([larger, smaller])
        return sp.csr_array((data, (rows, columns)), shape=(count, self.size))

    def __call__(self, kernel: Vector) -> Separation:
        """Separate k from the set of private ones: all violated rows."""
        over = self._others @ kernel
        places = np.flatnonzero(over > _VIOLATED)
        rows = make_rows(self._others[places], upper=0.0)
        return Separation(rows, float(over.max(initial=0.0)), over.size)


def _ladder_codes(partitions: Partitions) -> np.ndarray:
    """Return (lower variable) * size + (upper variable) of every rung of the ladder."""
    codes = []
    for state, histogram in enumerate(partitions.states):
        start, levels = int(partitions.starts[state]), partitions.levels[state]
        for level, (count, _) in enumerate(levels[1:], 1):
            moved = list(histogram)
            moved[levels[0][1] - 1] -= 1
            moved[histogram.index(count)] += 1
            to = partitions.place[tuple(sorted(moved, reverse=True))]
            codes.append((start + level) * partitions.size + partitions.variable(to, count + 1))
    return np.array(codes, dtype=np.int64)


def plurality_problem(
    partitions: Partitions, epsilon: float, losses: Vector, prior: Vector | None
) -> Problem:
    """Return the program over k[lambda, c]: variable "kernel", of a worst case also "worst".

    Args:
        partitions: K and C.
        epsilon: in nats.
        losses: of one class of each variable, shape (size,).
        prior: of the sorted histograms; None for the worst of them.
    """
    rows, size, states = PrivacyRows(partitions, epsilon), partitions.size, len(partitions.states)
    place = (partitions.state_of, np.arange(size))
    many = partitions.multiplicities.astype(float)
    problem = Problem("private plurality")
    problem.add_variables("kernel", size, lower=0.0, upper=1.0 / many)
    sums = sp.csr_array((many, place), shape=(states, size))
    problem.add_rows("sums", {"kernel": sums}, lower=1.0, upper=1.0)
    problem.add_rows("ladder", {"kernel": rows.ladder}, upper=0.0)
    problem.add_family("privacy", rows, over="kernel")
    uniform = {"kernel": 1.0 / partitions.classes}
    if prior is not None:
        problem.minimise({"kernel": mean_costs(partitions, losses, prior)})
        problem.set_inside(uniform, slack=rows.slack / partitions.classes)
        return problem
    problem.add_variables("worst", 1, lower=0.0, upper=float(losses.max()))
    each = sp.csr_array((many * losses, place), shape=(states, size))
    problem.add_rows("losses", {"kernel": each, "worst": -np.ones((states, 1))}, upper=0.0)
    problem.minimise({"worst": 1.0})
    known = uniform | {"worst": float(losses.max())}
    problem.set_inside(known, slack=rows.slack / partitions.classes)
    return problem


def mean_costs(partitions: Partitions, losses: Vector, prior: Vector) -> Vector:
    """Return the coefficients of the mean loss under a prior, shape (size,)."""
    return prior[partitions.state_of] * partitions.multiplicities * losses


def parse_prior(text: object) -> tuple[str, Fraction]:
    """Return a prior's name as it is kept, and A of its symmetric Dirichlet law of p.

    Raises:
        ParameterError: unless it is "uniform" or "dirichlet:A", A in [1/10,000, 10,000].
    """
    name, _, number = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name == "uniform" and text == name:
        return "uniform", Fraction(1)
    try:
        shape = typed_rational(number)
    except ValueError:
        shape = Fraction(0)
    if name == "dirichlet" and Fraction(1, _LARGEST_SHAPE) <= shape <= _LARGEST_SHAPE:
        return f"dirichlet:{number}", shape
    raise ParameterError(
        f"prior is {shown(text)}; it must be uniform, or dirichlet:A with A in "
        f"[{1 / _LARGEST_SHAPE:g}, {_LARGEST_SHAPE}]."
    )


@lru_cache(maxsize=8)
def prior_of(partitions: Partitions, shape: Fraction) -> tuple[Fraction, ...]:
    """Return the probability of each sorted histogram for K votes of p, p Dirichlet(A, ..., A).

    Its orders times prod_i A (A + 1) ... (A + c_i - 1) / c_i!, over the sum; A = 1 makes all
    histograms alike likely.
    """
    rising = [Fraction(1)]
    for count in range(partitions.voters):
        rising.append(rising[-1] * (shape + count) / (count + 1))
    each = [
        many * math.prod((rising[count] for count in state), start=Fraction(1))
        for many, state in zip(partitions.orders, partitions.states, strict=True)
    ]
    total = sum(each, Fraction(0))
    return tuple(value / total for value in each)


def table_at_step(rule: str, partitions: Partitions, step: Fraction, bits: int) -> Units:
    """Return the table of permute-and-flip or of the exponential mechanism at a step s."""
    made = permute_and_flip_table if rule == "permute-and-flip" else exponential_table
    return shared(partitions, made(partitions, step, Numbers(bits + _SPARE)), bits)


def repaired(partitions: Partitions, point: Vector, ratio: Fraction, bits: int) -> Units:
    """Return integers that are private next to a solver's point.

    1. k[v] is raised to the largest k[w] / r of all w in reach, so that every ratio holds; what
       the solver left of errors, 1e-15 in probability, is little there for small k, too.
    2. Rows are divided by their sums, which breaks ratios by as little.
    3. All is mixed with e_y(l) = (l_y + a) / (K + C a), a = 1 / (sqrt(r) - 1). Its ratios are at
       most 1 + 1 / a, about sqrt(r), so that the least eta with (1 - eta) k + eta e private is
       known pair by pair.

    Args:
        partitions: K and C.
        point: k[lambda, c], at most nearly private and nearly adding up to 1.
        ratio: rational lower bound of e^epsilon.
        bits: of the units.
    """
    one = 1 << (bits + _SPARE)
    raw = [max(0, int(Fraction(value) * one)) for value in np.asarray(point).tolist()]
    raised = _raised(partitions, raw, ratio)
    sums = [0] * len(partitions.states)
    owner = partitions.state_of.tolist()
    for value, many, state in zip(raised, partitions.multiplicities.tolist(), owner, strict=True):
        sums[state] += many * value
    if min(sums) == 0:
        raise ParameterError("point holds a histogram of zeros alone.")
    kernel = [value * one // sums[state] for value, state in zip(raised, owner, strict=True)]
    flat = _flat_kernel(partitions, ratio, one)
    mix = _least_mix(partitions, kernel, flat, ratio)
    while True:
        mixed = [(1 - mix) * k + mix * e for k, e in zip(kernel, flat, strict=True)]
        units = quantised(partitions, mixed, bits)
        if mix == 1 or _holds(partitions, units, ratio):
            return units
        mix = min(Fraction(1), 2 * mix)


def _raised(partitions: Partitions, values: list[int], ratio: Fraction) -> list[int]:
    """Return the least values of at least these whose neighbours are within the ratio."""
    near: list[list[int]] = [[] for _ in values]
    for v, w in zip(*(side.tolist() for side in partitions.neighbours), strict=True):
        near[v].append(w)
        near[w].append(v)
    top, bottom = ratio.numerator, ratio.denominator
    found = list(values)
    # From the largest on: what is taken out is final, as in Dijkstra's algorithm.
    waiting = [(-value, place) for place, value in enumerate(values)]
    heapq.heapify(waiting)
    while waiting:
        minus, place = heapq.heappop(waiting)
        if -minus < found[place]:
            continue
        needed = -(minus * bottom // top)
        for other in near[place]:
            if found[other] < needed:
                found[other] = needed
                heapq.heappush(waiting, (-needed, other))
    return found


def _flat_kernel(partitions: Partitions, ratio: Fraction, one: int) -> list[int]:
    """Return (l_y + a) / (K + C a) by variable, over ``one``."""
    # 1 / a a little below sqrt(r) - 1.
    bits = 64 + max(0, -math.floor(math.log2(ratio - 1)))
    root = Fraction(math.isqrt((ratio.numerator << 2 * bits) // ratio.denominator), 1 << bits)
    added = 1 / (root - 1)
    total = partitions.voters + partitions.classes * added
    return [int((count + added) / total * one) for count in partitions.counts.tolist()]


def _least_mix(
    partitions: Partitions, kernel: Sequence[int], flat: Sequence[int], ratio: Fraction
) -> Fraction:
    """Return an eta that repairs the worst violation, rounded up, and no less than 2^-60."""
    top, bottom = ratio.numerator, ratio.denominator
    first, second = (side.tolist() for side in partitions.neighbours)
    most = _LEAST_MIX
    for v, w in _both(first, second):
        over = bottom * kernel[v] - top * kernel[w]
        if over > 0:
            needed = Fraction(over, over + top * flat[w] - bottom * flat[v])
            most = max(most, needed)
    # Few bits, so that the mixture's fractions stay short.
    return min(Fraction(1), Fraction(math.ceil(most * (1 << 96)), 1 << 96) + _LEAST_MIX)


def _holds(partitions: Partitions, units: Units, ratio: Fraction) -> bool:
    top, bottom = ratio.numerator, ratio.denominator
    weights = [weight for row in units for weight in row]
    first, second = (side.tolist() for side in partitions.neighbours)
    return all(bottom * weights[v] <= top * weights[w] for v, w in _both(first, second))


def tight_rows(
    partitions: Partitions, kernel: Vector, epsilon: float, *, worst: bool
) -> list[tuple[object, ...]]:
    """Return the rows that are tight at a kernel, named as `dpopt.verify` does, tightest first.

    Args:
        partitions: K and C.
        kernel: k[lambda, c], shape (size,).
        epsilon: in nats.
        worst: whether there are also those of the losses, all of which are returned.

    Returns:
        ("worst", state), and ("privacy", state, count, state, count), the places of two sorted
        histograms and a count in each.
    """
    first, second = partitions.neighbours
    larger, smaller = np.concatenate([first, second]), np.concatenate([second, first])
    many = partitions.multiplicities
    # As large as the larger coefficient of the classes of a count together.
    scale = np.maximum(1 / many[larger], math.exp(epsilon) / many[smaller])
    slack = (math.exp(epsilon) * kernel[smaller] - kernel[larger]) / scale
    tight = np.argsort(slack, kind="stable")[: _MOST_TIGHT * partitions.size]
    tight = tight[slack[tight] <= _TIGHT]
    names = [("worst", state) for state in range(len(partitions.states))] if worst else []
    parts = [
        part[side[tight]].tolist()
        for side in (larger, smaller)
        for part in (partitions.state_of, partitions.counts)
    ]
    return [*names, *(("privacy", *pair) for pair in zip(*parts, strict=True))]


def _both(first: list[int], second: list[int]) -> Iterable[tuple[int, int]]:
    """Return all pairs in both directions."""
    return zip(first + second, second + first, strict=True)
