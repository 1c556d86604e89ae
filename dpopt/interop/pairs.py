"""The dominating pair of each kind of certified mechanism; see `dpopt.privacy.dominating`.

The hull is found in integers. Where a law is known as integers, its points are exact; voters'
irrational probabilities are rounded outward, which only raises the hull.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.kernel import KernelDesign
from dpopt.majority import MajorityDesign
from dpopt.privacy import ExactKernel
from dpopt.privacy.dominating import DominatingPair, likelihood_tests, upper_hull
from dpopt.public_prior import PopulationKernel, SamplingKernel
from dpopt.roo import MinCountSampler, SubRRSampler

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
        return mechanism.setting.dominating(mechanism.units)
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
