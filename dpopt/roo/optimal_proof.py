"""From a float kernel over histograms to integers, and the exact proof that they are private.

Knows nothing of the program that the kernel came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar, cast

import numpy as np

from dpopt._errors import NotPrivateError
from dpopt._numbers import roughly
from dpopt._types import Vector, frozen
from dpopt.privacy import Certificate
from dpopt.roo.histograms import Histograms
from dpopt.roo.setting import RooSetting

Number = TypeVar("Number", int, Fraction)

BITS = 62
_UNIT = 1 << BITS
# More than the rounding of a ratio row in doubles, and of a weight to 2^-62.
_NOISE = 2.0**-50


def quantised(
    setting: RooSetting, found: Histograms, kernel: Vector
) -> tuple[tuple[int, ...], Vector, Fraction]:
    """Return integers that are private next to a float kernel, their floats, and the mixing eta.

    K <- (1 - eta) K + eta / k keeps letters alike and gives each row (r - 1) eta / k of slack:
    eta = tau / ((r - 1) / k + tau) repairs a worst violation tau. Letters of one count get one
    integer, the floor of 2^62 K; the sum over letters, which is not 2^62, is the denominator.

    Args:
        setting: n, k and epsilon.
        found: the histograms.
        kernel: chance of a letter at each place, at most nearly private and nearly summing to 1.
    """
    exact = [Fraction(value) for value in np.maximum(kernel, 0.0).tolist()]
    sums = _totals(found, exact)
    exact = [value / sums[i] for value, i in zip(exact, found.owner.tolist(), strict=True)]
    uniform = Fraction(1, setting.letters)
    first, eta = _mixing(setting, found, exact), Fraction(0)
    while True:
        mixed = ((1 - eta) * value + eta * uniform for value in exact)
        weights = tuple(value.numerator * _UNIT // value.denominator for value in mixed)
        # eta = 1 ignores the data, and is private.
        if eta == 1 or _worst(setting, found, weights)[0] >= 0:
            break
        eta = min(Fraction(1), max(first, 2 * eta))
    return weights, normalised(found, weights), eta


def normalised(found: Histograms, weights: Sequence[int]) -> Vector:
    """Return weights over the sum for their histogram, as floats, read-only."""
    totals = _totals(found, weights)
    return frozen([w / totals[i] for w, i in zip(weights, found.owner.tolist(), strict=True)])


def prove(setting: RooSetting, found: Histograms, weights: Sequence[int]) -> Certificate:
    """Prove that integer weights are epsilon-DP between all neighbouring data sets.

    w[b] / Z[b] <= r w[a] / Z[a] for every edge (a, b), in integers; Z is the sum over the letters
    of the histogram.

    Raises:
        NotPrivateError: naming the data sets, if an inequality fails.
    """
    slack, place, other = _worst(setting, found, weights)
    sides = tuple(
        f"counts {found.counts[found.owner[p]].tolist()}, letter with {found.count[p]}"
        for p in (place, other)
    )
    if slack < 0:
        raise NotPrivateError(
            f"the sampler is not {setting.epsilon:g}-DP: {sides[0]}; {sides[1]}: above e^epsilon "
            f"times as likely by {roughly(-slack)}.",
            inputs=(sides[0], sides[1]),
            excess=float(-slack),
        )
    return Certificate(
        claim=f"the sampler is private between all neighbours, over {found.size} histograms",
        guarantee=setting.guarantee,
        ratio=setting.ratio,
        constraints=len(found.edges),
        slack=slack,
        tightest=f"{sides[0]}; neighbour: {sides[1]}",
        arithmetic="exact integers, each over the sum for its histogram",
        bits=BITS,
    ).about("optimal", setting, found.numbers, tuple(weights))


def _totals(found: Histograms, values: Sequence[Number]) -> list[Number]:
    """Return the sum over all letters, for each histogram."""
    totals = [values[0] - values[0]] * found.size
    places = zip(values, found.owner.tolist(), found.multiplicity.tolist(), strict=True)
    for value, owner, letters in places:
        totals[owner] += letters * value
    return totals


def _mixing(setting: RooSetting, found: Histograms, exact: Sequence[Fraction]) -> Fraction:
    """Return the eta that repairs the worst violation, up to rounding."""
    kernel = np.array([float(value) for value in exact])
    before, after = found.edges.T
    r = math.exp(setting.epsilon)
    tau = Fraction(float(np.max(kernel[after] - r * kernel[before], initial=0.0)) + _NOISE * r)
    return tau / ((setting.ratio - 1) / setting.letters + tau)


def _worst(
    setting: RooSetting, found: Histograms, weights: Sequence[int]
) -> tuple[Fraction, int, int]:
    """Return the least r w[a] / Z[a] - w[b] / Z[b] over the edges, and the edge."""
    r, totals = setting.ratio, _totals(found, weights)
    top, bottom = r.numerator, r.denominator
    over = [totals[i] for i in found.owner.tolist()]
    # One over nothing: above every slack.
    best, scale, before, after = 1, 0, 0, 0
    for a, b in cast(list[list[int]], found.edges.tolist()):
        slack = top * weights[a] * over[b] - bottom * weights[b] * over[a]
        size = over[a] * over[b]
        if slack * scale < best * size:
            best, scale, before, after = slack, size, a, b
    return Fraction(best, bottom * scale), before, after
