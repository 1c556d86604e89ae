"""All databases of n records up to the order of the records: their histograms, in order."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector

IntMatrix = npt.NDArray[np.int64]

LARGEST_TABLE = 20_000_000
_ALLOWED = "integers of at least 0, shape (databases, categories)"


def histogram_count(records: int, categories: int) -> int:
    """Return C(n + m - 1, m - 1), the number of histograms of n records over m categories."""
    return math.comb(records + categories - 1, categories - 1)


def histograms(records: int, categories: int) -> IntMatrix:
    """Return all histograms of n records over m categories in lexicographic order.

    The first is (0, ..., 0, n), the last (n, 0, ..., 0); with m = 2 the row is the number of
    records of the first category.

    Args:
        records: n, at least 0.
        categories: m, at least 1.

    Returns:
        Shape (C(n + m - 1, m - 1), m), read-only.

    Raises:
        ParameterError: if an argument is out of range, or the table has more than 2e7 entries.
    """
    n = _checks.integer("records", records, 0)
    m = _checks.integer("categories", categories, 1)
    if m > LARGEST_TABLE or n > LARGEST_TABLE or histogram_count(n, m) * m > LARGEST_TABLE:
        raise ParameterError(
            f"records is {n} and categories {m}; the table of all histograms may have at most "
            f"{LARGEST_TABLE} entries, and this one has more."
        )
    columns: list[IntVector] = []
    left = np.array([n], dtype=np.int64)
    for _ in range(m - 1):
        repeats = left + 1
        starts = np.cumsum(repeats) - repeats
        value = np.arange(int(repeats.sum()), dtype=np.int64) - np.repeat(starts, repeats)
        columns = [np.repeat(column, repeats) for column in columns]
        columns.append(value)
        left = np.repeat(left, repeats) - value
    table = np.stack([*columns, left], axis=1)
    table.setflags(write=False)
    return table


def index_of(rows: npt.ArrayLike) -> IntVector:
    """Return the place of each histogram in the order of `histograms`.

    sum_j C(r_j + m - j - 1, m - j - 1) - C(r_{j+1} + m - j - 1, m - j - 1) with r_j the records
    that are left from category j on: the number of histograms with a smaller count there.

    Args:
        rows: shape (databases, categories), each with the same number of records or not.

    Raises:
        ParameterError: if the rows are no histograms, or places do not fit into 64 bits.
    """
    table = _integers(rows)
    m = table.shape[1]
    left = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    most = int(left.max(initial=0))
    if most > LARGEST_TABLE or histogram_count(most, m) > np.iinfo(np.int64).max:
        raise ParameterError(f"records is {most} for {m} categories; too many to number them.")
    place = np.zeros(table.shape[0], dtype=np.int64)
    for j in range(m - 1):
        free = m - j - 1
        counts = np.array([math.comb(r + free, free) for r in range(most + 1)], dtype=np.int64)
        place += counts[left[:, j]] - counts[left[:, j + 1]]
    return place


def replacements(table: IntMatrix) -> IntMatrix:
    """Return every pair of neighbours among all histograms: one record replaced by another.

    Args:
        table: from `histograms`, shape (N, m).

    Returns:
        Places of both in the table, shape (pairs, 2), each pair once, read-only.
    """
    m = table.shape[1]
    found = [np.empty((0, 2), dtype=np.int64)]
    for a in range(m):
        for b in range(a + 1, m):
            left = np.flatnonzero(table[:, a] > 0)
            found.append(np.stack([left, index_of(_moved(table[left], a, b))], axis=1))
    pairs = np.concatenate(found)
    pairs.setflags(write=False)
    return pairs


def neighbours(histogram: npt.ArrayLike) -> IntMatrix:
    """Return the histograms that one replaced record makes of this one.

    Args:
        histogram: counts, shape (m,).

    Returns:
        Shape (k (m - 1), m) for k categories that occur.
    """
    row = _integers([histogram])
    m = row.shape[1]
    moves = [(a, b) for a in range(m) if row[0, a] > 0 for b in range(m) if b != a]
    found = [_moved(row, a, b) for a, b in moves]
    return np.concatenate([np.empty((0, m), dtype=np.int64), *found])


def checked_histograms(rows: npt.ArrayLike, records: int, categories: int) -> IntMatrix:
    """Return the rows as histograms of so many records over so many categories.

    Raises:
        ParameterError: if they are not.
    """
    return _fitting(_integers(rows), records, categories)


def checked_histogram(row: npt.ArrayLike, records: int, categories: int) -> IntVector:
    """Return the counts of one database, shape (categories,).

    Raises:
        ParameterError: if they are no histogram of so many records over so many categories.
    """
    return _fitting(_integers([row]), records, categories)[0]


def _fitting(table: IntMatrix, records: int, categories: int) -> IntMatrix:
    # Counts above n first: sums of 64 bits could wrap around.
    fits = table.shape[1] == categories and not np.any(table > records)
    if not fits or np.any(table.sum(axis=1) != records):
        raise ParameterError(
            f"a histogram does not fit; the mechanism takes {records} records over "
            f"{categories} categories."
        )
    return table


def _moved(rows: IntMatrix, a: int, b: int) -> IntMatrix:
    moved = rows.copy()
    moved[:, a] -= 1
    moved[:, b] += 1
    return moved


def _integers(rows: object) -> IntMatrix:
    table = _checks.array("histograms", rows)
    if table.ndim != 2 or table.shape[1] < 1:
        raise ParameterError(f"histograms have shape {table.shape}; they must be {_ALLOWED}.")
    if not np.issubdtype(table.dtype, np.integer) and table.size:
        numeric = np.issubdtype(table.dtype, np.floating)
        if not numeric or not np.all((np.abs(table) < 2.0**53) & (table == np.round(table))):
            raise ParameterError(f"histograms hold other values; they must be {_ALLOWED}.")
    counts = table.astype(np.int64)
    if np.any(counts < 0):
        raise ParameterError(f"histograms hold a count below 0; they must be {_ALLOWED}.")
    return counts
