"""Draws from integer weights with the operating system's generator."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt


def random_bits(bits: int, count: int) -> npt.NDArray[np.uint64]:
    """Return ``count`` independent uniform integers below 2^bits, 1 <= bits <= 64.

    The bits come from the operating system; there is no seed and nothing is rejected.
    """
    raw = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
    return raw >> np.uint64(64 - bits)


def draw_bernoulli(weights: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.int8]:
    """Return ones with probability exactly weights / 2^bits, one draw for each weight.

    One comparison for each draw, whatever the outcome. Python is not constant-time: what the
    machine's timing reveals is outside the guarantee.
    """
    return (random_bits(bits, weights.size) < weights).astype(np.int8)
