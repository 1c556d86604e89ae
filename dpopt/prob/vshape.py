"""V-shaped sequences: first falling, then rising; the test, the best valley, the majorant."""

from __future__ import annotations

import numpy as np

from dpopt import _checks
from dpopt._types import Vector, frozen


def valley_gap(log_values: Vector) -> tuple[int, float]:
    """Return the valley of the tightest V-shaped majorant of a sequence, and how loose that is.

    The least majorant that falls on 0..v and rises on v..n is
    max(V(H), ..., V(v)) for H <= v and max(V(v), ..., V(H)) for H >= v. Its distance from V at
    valley v is gap(v) = max over H <= H' <= v of V(H') - V(H), or the mirror image if larger; v is
    chosen to make it smallest, and among equals to make V(v) smallest. V is V-shaped if and only
    if the gap is 0.

    Args:
        log_values: V(H), H = 0..n; -inf allowed, shape (n + 1,). Where the sequence has both
            finite and infinite entries, -inf counts as one below the least finite entry, for the
            choice of the valley only.

    Returns:
        (v, gap(v)); the gap is inf if the majorant lifts a -inf to a finite value.
    """
    finite = np.isfinite(log_values)
    if not finite.any():
        return 0, 0.0
    floor = float(log_values[finite].min()) - 1.0
    clipped = np.maximum(log_values, floor)
    gap = np.maximum(_climb(clipped), _climb(clipped[::-1])[::-1])
    least = np.flatnonzero(gap == gap.min())
    valley = int(least[np.argmin(clipped[least])])
    lifted = not finite.all() and bool(np.isfinite(majorant_at(log_values, valley)[~finite]).any())
    return valley, np.inf if lifted else float(gap[valley])


def _climb(values: Vector) -> Vector:
    """Return at each v the largest V(H') - V(H) over H <= H' <= v."""
    return np.maximum.accumulate(values - np.minimum.accumulate(values))


def is_v_shaped(log_values: Vector) -> bool:
    """Return whether a sequence falls (weakly) up to some place and rises (weakly) from there."""
    return valley_gap(log_values)[1] == 0.0


def majorant_at(log_values: Vector, valley: int) -> Vector:
    """Return the least V-shaped sequence above ``log_values`` with its valley at ``valley``.

    Args:
        log_values: V(H), shape (n + 1,).
        valley: in 0..n.

    Returns:
        Vbar, shape (n + 1,), read-only; equal to V at the valley.
    """
    v = _checks.integer("valley", valley, 0, log_values.size - 1)
    left = np.maximum.accumulate(log_values[v::-1])[::-1]
    right = np.maximum.accumulate(log_values[v:])
    return frozen(np.concatenate((left, right[1:])))


def v_majorant(log_values: Vector) -> Vector:
    """Return the least V-shaped majorant at the valley that `valley_gap` chooses.

    Args:
        log_values: V(H), shape (n + 1,).

    Returns:
        Vbar >= V, V-shaped, equal to V if V is V-shaped; shape (n + 1,), read-only.
    """
    return majorant_at(log_values, valley_gap(log_values)[0])


def candidate_majorants(log_values: Vector) -> tuple[Vector, ...]:
    """Return V-shaped majorants of which none is above another everywhere.

    Which valley gives the smallest expectation depends on the law; the candidates are the valley
    of `valley_gap`, the place of the least V, and both ends (a rising and a falling majorant).

    Args:
        log_values: V(H), shape (n + 1,).

    Returns:
        The majorant of `v_majorant`, then the others that are somewhere below all before them;
        each of shape (n + 1,), read-only.
    """
    found = [v_majorant(log_values)]
    for valley in (int(np.argmin(log_values)), 0, log_values.size - 1):
        majorant = majorant_at(log_values, valley)
        if all(bool(np.any(majorant < other)) for other in found):
            found.append(majorant)
    return tuple(found)
