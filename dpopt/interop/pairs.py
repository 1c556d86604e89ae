"""The dominating pair of a certified mechanism; see `dpopt.privacy.dominating`."""

from __future__ import annotations

import math

from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt.privacy.dominating import DominatingPair, likelihood_tests, upper_hull
from dpopt.shape import Design

Mechanism = Design
"""A certified mechanism of which the laws of neighbours, or bounds on them, are integers."""


def dominating_pair(mechanism: Mechanism, *, rows: tuple[int, int] | None = None) -> DominatingPair:
    """Return the tight dominating pair of a certified mechanism, over all of its neighbours.

    - A kernel: every directed pair of neighbouring inputs that was certified. A kernel of a public
      prior: every two letters, which covers every two users, since a divergence is jointly convex.
    - A majority: every choice of corners for the voters (lemma 5.1 of the DaRRM paper) up to the
      reduction theorem, whose proof holds at every alpha. One query.
    - A min-count rule: all neighbouring data sets, from O(1) events for each smallest count.

    Args:
        mechanism: certified. Of kinds without a pair, `dp_accounting`'s
            ``from_privacy_parameters`` on their guarantee is what there is.
        rows: for a kernel, only this pair of different inputs by their places, neighbours or not: P
            is the first one's row, Q the second's. What it gives is about these two, not a
            guarantee.

    Raises:
        ParameterError: for another object, or a mechanism with too many events.
        NotPrivateError: if the mechanism has no certificate, or only one for one direction.
    """
    if isinstance(mechanism, Design):
        mechanism.require_private()
        if rows is not None:
            return _of_two(mechanism, rows)
        return mechanism.setting.dominating(mechanism.table)
    raise ParameterError(
        f"mechanism is of type {type(mechanism).__name__}; it must be a certified design."
    )


def _of_two(design: Design, rows: tuple[int, int]) -> DominatingPair:
    """Return the pair of the laws of the output for two inputs, over a common scale."""
    setting = design.setting
    if rows[0] == rows[1]:
        raise ParameterError(f"rows is {shown(rows)}; no input is its own neighbour.")
    try:
        inputs = (setting.queries([place])[0] for place in rows)
        p, q = (list(setting.distribution(design.table, data)) for data in inputs)
    except ParameterError as error:
        raise ParameterError(
            f"rows is given, and {shown(rows)} are no two inputs of a kernel: {error}"
        ) from None
    scale = math.lcm(sum(p), sum(q))
    p, q = ([weight * (scale // sum(law)) for weight in law] for law in (p, q))
    tests = likelihood_tests(p, q, scale.bit_length())
    return DominatingPair.of_points(upper_hull(tests), scale)
