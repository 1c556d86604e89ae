"""Draws from integer weights with the operating system's generator.

u is a uniform integer of b bits; the answer is the number of cumulative weights that are at most
u, counted over the whole row. Nothing is rejected and no draw stops early. Python is not
constant-time: what timing, memory or caches reveal is outside every guarantee here.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpopt import _checks

Words = npt.NDArray[np.uint64]

_WORD = 64
# Entries compared at once: what fits into a core's cache.
_CHUNK = 1 << 16


def random_words(bits: int, count: int) -> Words:
    """Return uniform integers below 2^bits as words of 64 bits, highest first.

    Args:
        bits: at least 1.
        count: number of integers.

    Returns:
        Shape (words, count); the highest word holds what is left of the bits.
    """
    words = -(-bits // _WORD)
    raw = np.frombuffer(secrets.token_bytes(8 * words * count), dtype=np.uint64)
    return _trim(raw.reshape(words, count), bits)


def seeded_words(bits: int, count: int, rng: np.random.Generator) -> Words:
    """Return what `random_words` would, from a seeded generator: for experiments, NOT private."""
    _checks.instance("rng", rng, np.random.Generator)
    words = -(-bits // _WORD)
    return _trim(rng.integers(0, 1 << _WORD, size=(words, count), dtype=np.uint64), bits)


def _trim(words: Words, bits: int) -> Words:
    """Return a copy whose highest word keeps only as many bits as there are."""
    trimmed = words.copy()
    trimmed[0] >>= np.uint64(words.shape[0] * _WORD - bits)
    return trimmed


def cumulative_words(weights: Sequence[Sequence[int]], bits: int) -> Words:
    """Return the cumulative weights of each row but for the last, as words of 64 bits.

    Args:
        weights: integers, shape (rows, outputs), rows summing to 2^bits.
        bits: see there.

    Returns:
        Shape (words, rows, outputs - 1); one word more than `random_words` gives where 2^bits,
        which a cumulative weight can reach, does not fit.
    """
    return to_words(np.cumsum(np.array(weights, dtype=object), axis=1)[:, :-1], bits)


def to_words(values: Sequence[int] | npt.NDArray[np.object_], bits: int) -> Words:
    """Return integers of at most 2^bits as words, highest first, shape (words, *values.shape)."""
    whole = np.array(values, dtype=object)
    mask = (1 << _WORD) - 1
    count = -(-(bits + 1) // _WORD)
    parts = [((whole >> (_WORD * k)) & mask).astype(np.uint64) for k in reversed(range(count))]
    return np.stack(parts)


def draw(cumulative: Words, rows: npt.NDArray[np.int64], drawn: Words) -> npt.NDArray[np.int64]:
    """Return one output for each entry of ``rows``, from uniform integers already drawn.

    Args:
        cumulative: from `cumulative_words`.
        rows: which row each draw is from, shape (draws,).
        drawn: from `random_words`, shape (words, draws).

    Returns:
        Indices of outputs, shape (draws,).
    """
    words, _, places = cumulative.shape
    padded = np.zeros((words, rows.size), dtype=np.uint64)
    padded[words - drawn.shape[0] :] = drawn
    found = np.empty(rows.size, dtype=np.int64)
    step = max(1, _CHUNK // max(1, places * words))
    for start in range(0, rows.size, step):
        part = slice(start, min(start + step, rows.size))
        found[part] = np.count_nonzero(
            at_most(cumulative[:, rows[part]], padded[:, part, None]), axis=1
        )
    return found


def at_most(left: Words, right: Words) -> npt.NDArray[np.bool_]:
    """Return left <= right, word by word from the lowest, every word compared."""
    answer = left[-1] <= right[-1]
    for i in range(left.shape[0] - 2, -1, -1):
        answer = (left[i] < right[i]) | ((left[i] == right[i]) & answer)
    return answer


def seeded_below(rng: np.random.Generator, limit: int) -> int:
    """Return an integer uniform below any limit, up to a bias of 2^-64."""
    limit = _checks.integer("limit", limit, 1)
    if limit < 1 << 63:
        return int(rng.integers(limit))
    bits = limit.bit_length() + 64
    return int.from_bytes(rng.bytes(-(-bits // 8))) % limit
