"""Exact sampling from integer weights, vectorised, with as few random bits as decide each draw.

A draw is a real number U, uniform in [0, 1), of which only the first bits are generated. Its output
is the number of cumulative weights c with c / T <= U, where T is the total: output y has
probability exactly w_y / T for every T. The first 64 bits or fewer decide, except with probability
about 2^-40 in all. If they agree with the first bits of some c / T, more bits are drawn until they
differ, and compared in Python integers.

- Few draws: the bits are searched for among the cumulative weights of all rows.
- Many draws: 16 bits choose a cell of a lookup table, which holds the output unless a cumulative
  weight lies in the cell. In that case 48 more bits are drawn and searched for among the cumulative
  weights. The number of searches is fixed in advance at the most that could be needed, so that the
  time hardly depends on how many were. Lookup tables are built for all rows at once when the number
  of draws justifies it; that number is public, and the rows drawn from do not influence it.

Python is not constant-time: what timing, memory or caches reveal is outside every guarantee here.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._types import IntVector

Source = Callable[[int], bytes]
"""A function that returns a given number of random bytes."""

# Random bits of a draw that are generated at once.
WORD = 64
# Of these, the first bits, which choose a cell of a lookup table.
_FIRST = 16
# Draws made at once: bounds memory, and keeps the arrays in a core's cache.
_CHUNK = 1 << 16
# Draws times outputs above which a lookup table is used.
_FEW = 1 << 14
# A lookup table gets at most so many cells for each draw so far, and is built only if it has at
# least so many for each output.
_CELLS_PER_DRAW, _CELLS_PER_OUTPUT = 4, 4


def system(count: int) -> bytes:
    """Return random bytes from the operating system."""
    return secrets.token_bytes(count)


def seeded(rng: np.random.Generator) -> Source:
    """Return a source of bytes from a seeded generator, for experiments: NOT private."""
    _checks.instance("rng", rng, np.random.Generator)
    return rng.bytes


def random_words(count: int, source: Source) -> npt.NDArray[np.uint64]:
    """Return integers uniform in 0..2^64 - 1, shape (count,)."""
    return np.frombuffer(source(8 * count), dtype="<u8").astype(np.uint64, copy=False)


class _Table(NamedTuple):
    """A lookup table: the output for each row and first bits of U, -1 where more bits decide.

    The cell is ``row << bits | first bits``; ``share`` is the largest of undecided ones in a row.
    """

    bits: int
    outputs: npt.NDArray[np.signedinteger]
    share: float


class Pmfs:
    """Distributions as rows of integer weights >= 0 with one sum T above 0, and exact draws."""

    def __init__(self, weights: Sequence[Sequence[int]]) -> None:
        self._weights = weights
        self._total = sum(weights[0])
        self._rows, self._ends = len(weights), len(weights[0]) - 1
        # A key is the row number followed by the first bits of c / T: all rows' keys are ascending
        # together, shape (rows, outputs - 1).
        self._bits = WORD - (self._rows - 1).bit_length()
        sums = np.cumsum(np.array(weights, dtype=object), axis=1)[:, :-1]
        firsts = np.minimum((sums << self._bits) // self._total, (1 << self._bits) - 1)
        self._keys = self._key(np.arange(self._rows)[:, None], firsts.astype(np.uint64))
        self._served = 0
        self._table: _Table | None = None

    def draw(self, rows: IntVector, source: Source) -> IntVector:
        """Return one output for each entry of ``rows``, indices that are not checked."""
        outputs = np.zeros(rows.size, dtype=np.int64)
        if not self._ends:
            return outputs
        self._served += rows.size
        table = None if rows.size * self._ends <= _FEW else self._worthwhile()
        for start in range(0, rows.size, _CHUNK):
            chunk = rows[start : start + _CHUNK]
            if table is None:
                drawn = self._searched(chunk, random_words(chunk.size, source), source)
            else:
                drawn = self._looked_up(table, chunk, source)
            outputs[start : start + _CHUNK] = drawn
        return outputs

    def _key(self, rows: IntVector, firsts: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return (rows.astype(np.uint64) << np.uint64(self._bits)) | firsts

    def _searched(
        self, rows: IntVector, words: npt.NDArray[np.uint64], source: Source
    ) -> IntVector:
        """Return outputs by comparing the first bits of U with those of cumulative weights.

        The words are the first 64 bits of each U, and the source has further bits for ties.
        """
        firsts = words >> np.uint64(WORD - self._bits)
        keys = self._key(rows, firsts)
        flat = self._keys.ravel()
        after = np.searchsorted(flat, keys, side="right")
        # With none before, index -1 compares the last key of all, which is larger: no tie.
        tied = flat[after - 1] == keys
        outputs = after - rows * self._ends
        for draw in np.flatnonzero(tied):
            sums = list(accumulate(self._weights[int(rows[draw])]))
            outputs[draw] = settled(sums, int(firsts[draw]), self._bits, source)
        return outputs

    def _worthwhile(self) -> _Table | None:
        """Return the lookup table, rebuilt if the draws so far justify it; None if none does."""
        # Cells of all rows' lookup tables together, of two or four bytes each; memory fixes it.
        cells = min(1 << 20, _CELLS_PER_DRAW * self._served) // self._rows
        bits = min(_FIRST, cells.bit_length() - 1)
        # Rebuilt only for four times the cells, so that the total time of building is bounded.
        finer = self._table is None or bits >= self._table.bits + 2
        if finer and bits >= 0 and 1 << bits >= _CELLS_PER_OUTPUT * self._ends:
            self._table = self._tabled(bits)
        return self._table

    def _tabled(self, bits: int) -> _Table:
        """Return the lookup table of so many first bits."""
        cells = (self._keys >> np.uint64(self._bits - bits)).astype(np.int64)
        # Output y fills a row's cells from cumulative weight y - 1 up to cumulative weight y; cells
        # that hold a cumulative weight are then undecided.
        begins = np.arange(self._rows + 1)[:, None] << bits
        marks = np.hstack([begins[:-1], cells, begins[1:]])
        dtype = np.int16 if self._ends < 1 << 15 else np.int32
        labels = np.tile(np.arange(self._ends + 1, dtype=dtype), self._rows)
        outputs = np.repeat(labels, np.diff(marks, axis=1).ravel())
        outputs[cells.ravel()] = -1
        undecided = 1 + np.count_nonzero(np.diff(cells, axis=1), axis=1)
        return _Table(bits, outputs, float(undecided.max() / (1 << bits)))

    def _looked_up(self, table: _Table, rows: IntVector, source: Source) -> IntVector:
        """Return outputs by the lookup table, and by search where it leaves a draw undecided."""
        firsts = np.frombuffer(source(2 * rows.size), dtype="<u2")
        cells = (rows << table.bits) | (firsts >> np.uint16(_FIRST - table.bits))
        outputs = table.outputs[cells].astype(np.int64)
        undecided = np.flatnonzero(outputs < 0)
        # Search for so many draws whether undecided or not: more are undecided only with a
        # probability below 2^-40 (Bernstein's inequality).
        expected = table.share * rows.size
        slots = min(rows.size, math.ceil(expected + 8 * math.sqrt(expected) + 40))
        searched = np.zeros(max(slots, undecided.size), dtype=np.int64)
        searched[: undecided.size] = undecided
        words = random_words(searched.size, source) >> np.uint64(_FIRST)
        words |= firsts[searched].astype(np.uint64) << np.uint64(WORD - _FIRST)
        outputs[undecided] = self._searched(rows[searched], words, source)[: undecided.size]
        return outputs


def below_each(limits: IntVector, source: Source) -> IntVector:
    """Return an integer uniform in 0..limit-1 for each limit in 1..2^63 - 1, by rejection.

    A 64-bit word is drawn again if it is one of the last 2^64 mod limit, fewer than half of all.
    """
    drawn, waiting = np.zeros(limits.size, dtype=np.int64), np.arange(limits.size)
    while waiting.size:
        words, bounds = random_words(waiting.size, source), limits[waiting].astype(np.uint64)
        # 2^64 - 1 - (2^64 mod limit): among words up to it all remainders are equally frequent.
        last = ~((np.uint64(0) - bounds) % bounds)
        drawn[waiting] = words % bounds
        waiting = waiting[words > last]
    return drawn


def settled(sums: Sequence[int], first: int, bits: int, source: Source) -> int:
    """Return the number of cumulative weights c with c / T <= U, drawing bits until it is decided.

    The last of the ``sums`` is T; ``first`` holds the first ``bits`` bits of U, as an integer.
    """
    total = sums[-1]
    # U lies in [first, first + 1) / 2^bits: decided when both ends give the same number.
    while True:
        least = sum(c << bits <= first * total for c in sums)
        if least == sum(c << bits < (first + 1) * total for c in sums):
            return least
        first, bits = first << WORD | int.from_bytes(source(WORD // 8), "little"), bits + WORD


def below(limit: int, source: Source) -> int:
    """Return an integer uniform in 0..limit-1 for a limit of any size, by rejection."""
    bits = limit.bit_length()
    while True:
        drawn = int.from_bytes(source(-(-bits // 8)), "little") & ((1 << bits) - 1)
        if drawn < limit:
            return drawn
