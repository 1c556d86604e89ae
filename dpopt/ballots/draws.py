"""Labels of many queries at once, from the units of `dpopt.ballots.table`: exact, with no bias."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpopt._types import IntVector
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import Units, law, scale
from dpopt.ballots.votes import IntTable
from dpopt.privacy.release import Words, at_most, cumulative_words, draw, to_words

# Queries at once, so that memory does not grow with them.
_ROWS = 1 << 16


def words_below(limit: int, count: int, words: Callable[[int, int], Words]) -> Words:
    """Return integers that are uniform below any limit, as `dpopt.privacy.release.random_words`.

    Those that are too large are drawn again, which happens with probability below 1/2 and depends
    on nothing but them.

    Args:
        limit: at least 2.
        count: number of integers.
        words: from bits and a count, uniform integers below 2^bits.
    """
    bits = (limit - 1).bit_length()
    found = words(bits, count)
    last = to_words([limit - 1], bits)[-found.shape[0] :]
    while (again := np.flatnonzero(~at_most(found, last))).size:
        found[:, again] = words(bits, again.size)
    return found


def drawn_labels(
    partitions: Partitions,
    units: Units,
    counts: IntTable,
    bits: int,
    words: Callable[[int, int], Words],
) -> IntVector:
    """Return a class for each row of counts, by the law of its histogram.

    With its classes sorted, a row has the law of its sorted histogram, which is written out once
    for all such rows: classes of the same count have the same weight, in any order.

    Args:
        partitions: the histograms.
        units: see `dpopt.ballots.table`.
        counts: of the classes, shape (queries, C).
        bits: of the units.
        words: see `words_below`.

    Returns:
        Classes in 0..C-1, shape (queries,).
    """
    limit = scale(partitions.classes, bits)
    labels = np.empty(len(counts), dtype=np.int64)
    for start in range(0, len(counts), _ROWS):
        rows = counts[start : start + _ROWS]
        order = np.argsort(-rows, axis=1, kind="stable")
        histograms = np.take_along_axis(rows, order, axis=1)
        firsts, group = _grouped(histograms, partitions.voters)
        laws = [law(partitions, units, state) for state in histograms[firsts].tolist()]
        cumulative = cumulative_words(laws, limit.bit_length())
        place = draw(cumulative, group, words_below(limit, len(rows), words))
        labels[start : start + _ROWS] = order[np.arange(len(rows)), place]
    return labels


def _grouped(rows: IntTable, largest: int) -> tuple[IntVector, IntVector]:
    """Return the place of the first row of each kind, and the kind of each row.

    Args:
        rows: shape (rows, columns), in 0..largest.
        largest: see there.
    """
    kind = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        # Fewer kinds than rows, so that the products stay small.
        kind = np.unique(kind * (largest + 1) + column, return_inverse=True)[1]
    _, firsts, kind = np.unique(kind, return_index=True, return_inverse=True)
    return firsts, kind
