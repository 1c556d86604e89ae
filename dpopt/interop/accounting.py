"""The privacy loss distribution of certified mechanisms, for Google's dp-accounting.

Needs dp-accounting: ``pip install 'dpopt[interop]'``. What stands behind it is in
`dpopt.privacy.cost`.
"""

from __future__ import annotations

from dpopt._errors import ParameterError
from dpopt.composition import loss_distribution
from dpopt.privacy.cost import DominatingPair
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

__all__ = ["DominatingPair", "dominating_pair", "privacy_loss"]


def dominating_pair(mechanism: Design | DominatingPair) -> DominatingPair:
    """Return the tight dominating pair of a certified mechanism, over all of its neighbours.

    Of a public prior's kernel these are every two categories, which covers every two users, since a
    divergence is jointly convex; of a majority, every choice of corners for the voters (lemma 5.1
    of the DaRRM paper) in one query.

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

    The losses are those of `DominatingPair.losses`. What dp-accounting does afterwards is in
    floating point: its convolution by FFT errs in either direction, in delta by 1e-14 after 100
    releases and 6e-14 after 1,000 where exact values are at hand.
    `dpopt.composition.adaptive_epsilon` composes equal releases and leaves room for that.

    Composing it is only valid for releases whose randomness is independent given the data; labels
    of voters that were trained once do not compose, see `dpopt.votes.Spending`.

    Args:
        mechanism: see `dominating_pair`.
        interval: see `DominatingPair.losses`; distributions compose only if theirs are equal.
    """
    return loss_distribution(dominating_pair(mechanism), interval)
