"""The privacy loss distribution of certified mechanisms, for Google's dp-accounting.

Needs dp-accounting: ``pip install 'dpopt[interop]'``. What stands behind it is in
`dpopt.privacy.dominating`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, float_up
from dpopt.privacy import exp_lower
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.exponential import log_near
from dpopt.shape import Design

try:
    from dp_accounting.pld.privacy_loss_distribution import (  # pyright: ignore[reportMissingImports]
        PrivacyLossDistribution,
    )
except ImportError as error:
    raise ImportError(
        "dpopt.interop.accounting needs dp-accounting; install it with "
        "pip install 'dpopt[interop]'."
    ) from error

__all__ = [
    "LEAST_DELTA",
    "DominatingPair",
    "composed_epsilon",
    "dominating_pair",
    "privacy_loss",
]


LEAST_DELTA = 5e-14
"""Smallest delta above 0 that `composed_epsilon` takes, for each release."""

# Steps of the grid of losses: about this wide, at least so many up to the largest loss, at most.
_INTERVAL, _FEWEST, _MOST_STEPS = 1e-4, 2000, 20_000


def dominating_pair(mechanism: Design | DominatingPair) -> DominatingPair:
    """Return the tight dominating pair of a certified mechanism, over all of its neighbours.

    - A kernel: every directed pair of neighbouring inputs that was certified. A kernel of a public
      prior: every two categories, which covers every two users, since a divergence is jointly
      convex.
    - A majority: every choice of corners for the voters (lemma 5.1 of the DaRRM paper) up to the
      reduction theorem, whose proof holds at every alpha. One query.
    - A min-count rule: all neighbouring data sets, from O(1) events for each smallest count.

    Args:
        mechanism: certified; or the pair itself. Of kinds without a pair, `dp_accounting`'s
            ``from_privacy_parameters`` on their guarantee is what there is.

    Raises:
        ParameterError: for another object, or a mechanism with too many events.
        NotPrivateError: if the mechanism has no certificate.
    """
    if isinstance(mechanism, DominatingPair):
        return mechanism
    if isinstance(mechanism, Design):
        mechanism._require_private()
        return mechanism.setting.dominating(mechanism.table)
    raise ParameterError(
        f"mechanism is of type {type(mechanism).__name__}; it must be a certified design."
    )


def privacy_loss(
    mechanism: Design | DominatingPair, *, interval: float | None = None
) -> PrivacyLossDistribution:
    """Return the privacy loss distribution of one release, for dp-accounting to compose.

    An outcome between two multiples of the interval is split over both, with the same P and Q in
    sum: merging them again is post-processing, so that the split pair dominates (the pessimistic
    "connect the dots" of Doroshenko et al. 2022). Probabilities are rounded up, which raises every
    divergence. What dp-accounting does afterwards is in floating point: its convolution by FFT
    errs in either direction, in delta by 1e-14 after 100 releases and 6e-14 after 1,000 where exact
    values are at hand. `composed_epsilon` leaves room for that.

    Composing it is only valid for releases whose randomness is independent given the data; labels
    of voters that were trained once do not compose, see `dpopt.votes.Spending`.

    Args:
        mechanism: see `dominating_pair`.
        interval: the grid of the losses, above 0, at least 1e-7 of the largest finite one;
            distributions compose only if theirs are equal. If None, one of which the largest loss
            is a multiple: about 1e-4, or 1/2,000 of the largest loss if that is less, or 1/20,000
            if that is more.
    """
    pair = dominating_pair(mechanism)
    step = _interval(pair, interval)
    losses: dict[int, float] = {}
    power = cache(lambda bucket: _exp(bucket * step))
    for p, q in zip(pair.upper, pair.lower, strict=True):
        if p and q:
            for bucket, mass in _split(
                Fraction(p, pair.scale), Fraction(q, pair.scale), step, power
            ):
                losses[bucket] = math.nextafter(losses.get(bucket, 0.0) + mass, math.inf)
    return PrivacyLossDistribution.create_from_rounded_probability(
        losses, float_up(pair.infinite_mass), step, pessimistic_estimate=True
    )


def composed_epsilon(mechanism: Design | DominatingPair, releases: int, delta: float) -> float:
    """Return an epsilon for which ``releases`` releases together are (epsilon, delta)-DP.

    Of delta, 1e-14 for each release is reserved for the rounding of dp-accounting's FFT, a hundred
    times what was seen of it; this part is measured, not proved.

    Args:
        mechanism: see `dominating_pair`; each release draws afresh.
        releases: at least 1; 1 for labels of private voters, which may have been trained once: what
            several labels spend says `dpopt.votes.Spending`.
        delta: of all releases; 0, or in [5e-14 releases, 1).

    Returns:
        In nats; infinite if delta is too small for any.

    Raises:
        ParameterError: for a parameter out of range, or releases that may not compose.
    """
    count = _checks.integer("releases", releases, 1)
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    if 0.0 < delta < LEAST_DELTA * count:
        raise ParameterError(
            f"delta is {digits(delta)}; for {count} releases it must be 0, or at least "
            f"{digits(LEAST_DELTA * count)}."
        )
    if count > 1 and isinstance(mechanism, Design) and mechanism.setting.behind is not None:
        raise ParameterError(
            f"releases is {count}; labels of private voters are composed by dpopt.votes.Spending."
        )
    pair = dominating_pair(mechanism)
    pure = pair.largest_loss
    simple = math.inf if math.isinf(pure) else float_up(count * Fraction(pure))
    if delta == 0.0:
        return simple
    # Of delta, for each release; a hundred times what the rounding of dp-accounting's FFT was seen
    # at.
    composed, remaining_delta = privacy_loss(pair).self_compose(count), delta - 1e-14 * count
    # dp-accounting's own inverse adds up its grid and drifts: over 1e6 places it returns epsilons
    # whose delta is too large by 4e-11. What is returned was evaluated.
    epsilon, step = float(composed.get_epsilon_for_delta(remaining_delta)), 1e-13
    while math.isfinite(epsilon) and composed.get_delta_for_epsilon(epsilon) > remaining_delta:
        epsilon += step * max(1.0, epsilon)
        step *= 2.0
    return min(simple, epsilon)


def _interval(pair: DominatingPair, given: float | None) -> float:
    """Return the width of the grid of losses, as given or one that suits the pair."""
    atoms = zip(pair.upper, pair.lower, strict=True)
    largest = max((abs(log_near(Fraction(p, q))) for p, q in atoms if p * q), default=0.0)
    if given is not None:
        # At most ten million places of the grid: memory fixes it.
        return _checks.real("interval", given, max(largest / 10_000_000, 1e-300))
    steps = min(max(math.ceil(largest / _INTERVAL), _FEWEST), _MOST_STEPS)
    return largest / steps if largest > 1e-9 else _INTERVAL


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
