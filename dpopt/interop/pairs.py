"""The dominating pair of each kind of certified mechanism; see `dpopt.privacy.dominating`.

The hull is found in integers. Where a law is known as integers, its points are exact; voters'
irrational probabilities are rounded outward, which only raises the hull.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.kernel import KernelDesign
from dpopt.majority import MajorityDesign
from dpopt.privacy import ExactKernel
from dpopt.privacy.dominating import DominatingPair, Point, likelihood_tests, upper_hull
from dpopt.public_prior import PopulationKernel, SamplingKernel
from dpopt.roo import MinCountSampler, SubRRSampler
from dpopt.roo.rules import UNIT

Mechanism = (
    ExactKernel
    | KernelDesign
    | SamplingKernel
    | PopulationKernel
    | MajorityDesign
    | MinCountSampler
    | SubRRSampler
)
"""A certified mechanism of which the laws of neighbours, or bounds on them, are integers."""

_MOST_POINTS = 4_000_000


def dominating_pair(mechanism: Mechanism, *, rows: tuple[int, int] | None = None) -> DominatingPair:
    """Return the tight dominating pair of a certified mechanism, over all of its neighbours.

    - A kernel: every directed pair of neighbouring inputs that was certified. A kernel of a public
      prior: every two letters, which covers every two users, since a divergence is jointly convex.
    - A majority: every choice of corners for the voters (lemma 5.1 of the DaRRM paper) up to the
      reduction theorem, whose proof holds at every alpha. One query.
    - A min-count rule: all neighbouring data sets, from O(1) events for each smallest count.

    Args:
        mechanism: certified. Of other samplers, `dp_accounting`'s ``from_privacy_parameters`` on
            their guarantee is what there is.
        rows: for a kernel, only this pair of different inputs, neighbours or not: P is the first
            one's row, Q the second's. What it gives is about these two, not a guarantee.

    Raises:
        ParameterError: for another kind of mechanism, or one with too many events.
        NotPrivateError: if the mechanism has no certificate, or only one for one direction.
    """
    if isinstance(mechanism, KernelDesign | PopulationKernel):
        mechanism = mechanism.exact
    if rows is not None and not isinstance(mechanism, ExactKernel | SamplingKernel):
        raise ParameterError("rows is given; it belongs to a kernel, and only there.")
    if isinstance(mechanism, ExactKernel):
        if rows is None:
            mechanism.require_both_ways()
        return _kernel_pair(mechanism.weights, mechanism.bits, mechanism.pairs, rows)
    if isinstance(mechanism, SamplingKernel):
        _require_few(mechanism.letters**3, "letters", mechanism.letters)
        return _kernel_pair(mechanism.weights(), mechanism.exact.rows.bits, None, rows)
    if isinstance(mechanism, MajorityDesign):
        mechanism.require_private()
        return mechanism.setting.dominating(mechanism.units)
    if isinstance(mechanism, SubRRSampler):
        mechanism = mechanism.roo
    if isinstance(mechanism, MinCountSampler):
        mechanism.require_private()
        scale = mechanism.setting.letters * mechanism.setting.records * UNIT
        return DominatingPair.of_points(upper_hull(_rule_points(mechanism)), scale)
    raise ParameterError(
        f"mechanism is of type {type(mechanism).__name__}; it must be a certified kernel, a "
        "majority design or a min-count sampler."
    )


def _require_few(points: int, name: str, value: object) -> None:
    if points > _MOST_POINTS:
        raise ParameterError(
            f"{name} is {value}; the privacy loss is found from at most {_MOST_POINTS:.0e} events, "
            f"and these are {points:.1e}."
        )


def _kernel_pair(
    weights: Sequence[Sequence[int]],
    bits: int,
    pairs: Sequence[tuple[int, int]] | None,
    rows: tuple[int, int] | None,
) -> DominatingPair:
    inputs = len(weights)
    if rows is not None:
        x, other = (_checks.integer("rows", place, 0, inputs - 1) for place in rows)
        if x == other:
            raise ParameterError(f"rows is ({x}, {x}); no input is its own neighbour.")
        pairs = [(x, other)]
    chosen = (
        [(x, y) for x in range(inputs) for y in range(inputs) if x != y] if pairs is None else pairs
    )
    _require_few(len(chosen) * len(weights[0]), "inputs", inputs)
    points = (
        at for x, other in chosen for at in likelihood_tests(weights[x], weights[other], bits)
    )
    return DominatingPair.of_points(upper_hull(points), 1 << bits)


def _rule_points(sampler: MinCountSampler) -> Iterator[Point]:
    """Yield the points of a min-count rule, all over k n 2^62.

    An event of s letters with C records in sum has q_m s / k + (1 - q_m) C / n, affine in (s, C),
    so that the corners of the possible (s, C) decide. A record moves from letter a to letter b.
    Where the smallest count stays m, only a and b change: {b} from the count m, and all but a
    from the count m + 1. Where it falls to m - 1, a had m; an event with b and without a gains a
    record, one without both gains none. Complements and exchanged neighbours give all the others.
    Smallest counts whose q and neighbours' q are 0 add less the larger they are.
    """
    setting, constant = sampler.setting, sampler.rule == "roo"
    n, k = setting.records, setting.letters
    last = min(setting.largest_minimum, 1 if constant else len(sampler.weights) + 1)
    _require_few(40 * last, "records", n)

    def law(m: int, s: int, total: int) -> int:
        q = sampler.weights[0 if constant else m] if constant or m < len(sampler.weights) else 0
        return q * n * s + (UNIT - q) * k * total

    scale = n * k * UNIT
    for m in range(last + 1):
        stays = n >= k * m + 1 if k > 2 else n == 2 * m + 1
        events = [(m, 1, m, m + 1), (m, k - 1, n - m - 1, n - m)] if stays else []
        if m:
            events += [(m - 1, *corner) for corner in _corners(n, k, m)]
        for new, s, total, after in events:
            p, q = law(m, s, total), law(new, s, after)
            yield from ((q, p), (p, q), (scale - q, scale - p), (scale - p, scale - q))


def _corners(n: int, k: int, m: int) -> list[tuple[int, int, int]]:
    """Return (s, C, C after) where the smallest count falls from m to m - 1."""
    if k == 2:
        return [(1, n - m, n - m + 1)]
    rest = n - (k - 1) * m
    gains = [(1, m), (1, rest), (k - 2, (k - 2) * m), (k - 1, n - m)]
    others = [(1, m), (1, rest), (k - 2, (k - 2) * m), (k - 2, n - 2 * m)]
    return [(s, c, c + 1) for s, c in gains] + [(s, c, c) for s, c in others]
