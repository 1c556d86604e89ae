"""Exact draws from integer weights, as few random bits as decide each, many at a time.

A draw is a real number U that is uniform in [0, 1), of which only the first bits are written down:
its output is the number of cumulative weights c with c / T <= U, T their total. So output y has
exactly the chance w_y / T, whatever T is. The first 64 bits or fewer decide, but for a chance of
about 2^-40 in all; where they agree with those of some c / T, as many more bits are drawn as it
takes, and compared in Python's integers.

- Few draws: the bits are compared with every cumulative weight of the row.
- Many draws: 16 bits choose an entry of a table, which knows the output unless a cumulative weight
  lies in its cell. Then 48 bits more are drawn, and searched for among the cumulative weights. As
  many are searched for, used or not, as could be needed: how many were needed hardly shows in the
  time. Tables are made for all rows at once, when the number of draws is worth it, which is no
  secret; which row is drawn from never decides what is made.

Python is not constant-time: what timing, memory or caches reveal is outside every guarantee here.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._types import IntVector

Source = Callable[[int], bytes]
"""Returns as many random bytes as it is asked for."""

_WORD = 64
# Bits that choose an entry of a table.
_FIRST = 16
# Draws at once: bounds memory, and what is drawn stays in a core's cache.
_CHUNK = 1 << 16
# Comparisons up to which every cumulative weight is compared.
_FEW = 1 << 14
# Numbers that stay in a core's cache while they are searched.
_IN_CACHE = 1 << 12
# Entries of all rows' tables together, of two bytes each or four.
_MOST_CELLS = 1 << 20
# A table is worth it where its cells are as many as draws to a factor; and fine enough where
# there are some for each output.
_CELLS_PER_DRAW, _CELLS_PER_OUTPUT = 4, 4


def system(count: int) -> bytes:
    """Return random bytes of the operating system."""
    return secrets.token_bytes(count)


def seeded(rng: np.random.Generator) -> Source:
    """Return a source of bytes from a seeded generator: for experiments, NOT private."""
    _checks.instance("rng", rng, np.random.Generator)
    return rng.bytes


def random_words(count: int, source: Source) -> npt.NDArray[np.uint64]:
    """Return integers that are uniform below 2^64."""
    return np.frombuffer(source(8 * count), dtype="<u8").astype(np.uint64, copy=False)


class _Table(NamedTuple):
    """For each row and each value of ``bits`` first bits the output, or -1 where more decide."""

    bits: int
    outputs: npt.NDArray[np.signedinteger]
    share: float


class Pmfs:
    """Distributions over the same outputs, rows of integers, and exact draws from them.

    Args:
        weights: of at least 0, shape (rows, outputs), rows with the same sum T above 0.
    """

    def __init__(self, weights: Sequence[Sequence[int]]) -> None:
        self._weights = weights
        self._total = sum(weights[0])
        self._rows, self._ends = len(weights), len(weights[0]) - 1
        # The first bits of c / T behind those of the row: ascending over all rows together.
        self._bits = _WORD - (self._rows - 1).bit_length()
        sums = np.cumsum(np.array(weights, dtype=object), axis=1)[:, :-1]
        firsts = np.minimum((sums << self._bits) // self._total, (1 << self._bits) - 1)
        self._keys = self._key(np.arange(self._rows)[:, None], firsts.astype(np.uint64))
        self._served = 0
        self._table: _Table | None = None

    def draw(self, rows: IntVector, source: Source) -> IntVector:
        """Return one output for each entry of ``rows``, which are not checked.

        Args:
            rows: which distribution each draw is of, shape (draws,).
            source: of random bytes.

        Returns:
            Outputs, shape (draws,).
        """
        found = np.zeros(rows.size, dtype=np.int64)
        if not self._ends:
            return found
        self._served += rows.size
        few = rows.size * self._ends <= _FEW
        table = None if few else self._worthwhile()
        for start in range(0, rows.size, _CHUNK):
            part = rows[start : start + _CHUNK]
            if table is None:
                drawn = self._searched(part, random_words(part.size, source), source, every=few)
            else:
                drawn = self._looked_up(table, part, source)
            found[start : start + _CHUNK] = drawn
        return found

    def _key(self, rows: IntVector, firsts: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return (rows.astype(np.uint64) << np.uint64(self._bits)) | firsts

    def _searched(
        self, rows: IntVector, words: npt.NDArray[np.uint64], source: Source, *, every: bool = False
    ) -> IntVector:
        """Return outputs from the first bits of U, 64 of which are given for each."""
        firsts = words >> np.uint64(_WORD - self._bits)
        keys = self._key(rows, firsts)
        if every:
            own = self._keys[rows]
            found = np.count_nonzero(own <= keys[:, None], axis=1)
            tied = np.any(own == keys[:, None], axis=1)
        else:
            flat = self._keys.ravel()
            after = count_at_most(flat, keys)
            # Where none is before, the last of all is compared, and is larger.
            tied = flat[after - 1] == keys
            found = after - rows * self._ends
        for place in np.flatnonzero(tied):
            sums = list(accumulate(self._weights[int(rows[place])]))
            found[place] = settled(sums, int(firsts[place]), self._bits, source)
        return found

    def _worthwhile(self) -> _Table | None:
        """Return the table, made anew where it pays for the draws so far; None if none does."""
        cells = min(_MOST_CELLS, _CELLS_PER_DRAW * self._served) // self._rows
        bits = min(_FIRST, cells.bit_length() - 1)
        # Made anew for four times the cells only, so that all making is paid for.
        finer = self._table is None or bits >= self._table.bits + 2
        if finer and bits >= 0 and 1 << bits >= _CELLS_PER_OUTPUT * self._ends:
            self._table = self._tabled(bits)
        return self._table

    def _tabled(self, bits: int) -> _Table:
        cells = (self._keys >> np.uint64(self._bits - bits)).astype(np.int64)
        # A row's output y stands in the cells between its ends y - 1 and y, up to the row's last.
        begins = np.arange(self._rows + 1)[:, None] << bits
        marks = np.hstack([begins[:-1], cells, begins[1:]])
        kind = np.int16 if self._ends < 1 << 15 else np.int32
        place = np.tile(np.arange(self._ends + 1, dtype=kind), self._rows)
        outputs = np.repeat(place, np.diff(marks, axis=1).ravel())
        outputs[cells.ravel()] = -1
        undecided = 1 + np.count_nonzero(np.diff(cells, axis=1), axis=1)
        return _Table(bits, outputs, float(undecided.max() / (1 << bits)))

    def _looked_up(self, table: _Table, rows: IntVector, source: Source) -> IntVector:
        firsts = np.frombuffer(source(2 * rows.size), dtype="<u2")
        cells = (rows << table.bits) | (firsts >> np.uint16(_FIRST - table.bits))
        found = table.outputs[cells].astype(np.int64)
        open_ = np.flatnonzero(found < 0)
        # More are open with a chance below 2^-40 only (Bernstein's inequality).
        expected = table.share * rows.size
        slots = min(rows.size, math.ceil(expected + 8 * math.sqrt(expected) + 40))
        chosen = np.zeros(max(slots, open_.size), dtype=np.int64)
        chosen[: open_.size] = open_
        words = random_words(chosen.size, source) >> np.uint64(_FIRST)
        words |= firsts[chosen].astype(np.uint64) << np.uint64(_WORD - _FIRST)
        found[open_] = self._searched(rows[chosen], words, source)[: open_.size]
        return found


def below_each(limits: IntVector, source: Source) -> IntVector:
    """Return an integer that is uniform below each limit, in 1..2^63 - 1.

    A word of 64 bits is drawn again if it is among the last 2^64 modulo the limit, which are fewer
    than half of all.
    """
    found, waiting = np.zeros(limits.size, dtype=np.int64), np.arange(limits.size)
    while waiting.size:
        words, own = random_words(waiting.size, source), limits[waiting].astype(np.uint64)
        # 2^64 - 1 - (2^64 modulo the limit), below which all remainders are as frequent.
        last = ~((np.uint64(0) - own) % own)
        found[waiting] = words % own
        waiting = waiting[words > last]
    return found


def count_at_most(ascending: npt.NDArray[Any], values: npt.NDArray[Any]) -> IntVector:
    """Return how many entries are at most each value; a large array is read in its own order."""
    if ascending.size <= _IN_CACHE or values.size <= 1:
        return np.searchsorted(ascending, values, side="right")
    order = np.argsort(values)
    found = np.empty(values.size, dtype=np.int64)
    found[order] = np.searchsorted(ascending, values[order], side="right")
    return found


def settled(sums: Sequence[int], first: int, bits: int, source: Source) -> int:
    """Return the number of cumulative weights c with c / T <= U, from as many bits as it takes.

    Args:
        sums: all cumulative weights, ascending; the last is T.
        first: the first bits of U, as an integer.
        bits: their number.
        source: of further bytes.
    """
    total = sums[-1]
    while True:
        least = sum(c << bits <= first * total for c in sums)
        if least == sum(c << bits < (first + 1) * total for c in sums):
            return least
        first, bits = first << _WORD | int.from_bytes(source(_WORD // 8), "little"), bits + _WORD


def below(limit: int, source: Source) -> int:
    """Return an integer uniform below any limit: of its bits, drawn again until they are below."""
    bits = limit.bit_length()
    while True:
        drawn = int.from_bytes(source(-(-bits // 8)), "little") & ((1 << bits) - 1)
        if drawn < limit:
            return drawn
