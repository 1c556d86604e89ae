"""Draws: bits that are enumerated give the integers themselves; pmfs against chi-square."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt
from dpopt import Kernel, ParameterError
from dpopt.privacy import release
from dpopt.privacy.release import Pmfs, below_each, seeded, settled, system
from tests.privacy.known import response
from tests.shape.checks import follows
from tests.table.rows import of_rows

WAYS = ["searched", "looked up"]
TOTALS = [1, 3, 5, 2**20, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**95, 2**200, 2**200 + 1]


class Words:
    """A source of given words of 64 bits; then zeros or ones for ever."""

    def __init__(self, words: Sequence[int], end: int = 0) -> None:
        self._words, self._end = deque(words), (2**64 - 1) * end

    def __call__(self, count: int) -> bytes:
        given = [self._words.popleft() if self._words else self._end for _ in range(count // 8)]
        return b"".join(word.to_bytes(8, "little") for word in given)


class Number:
    """A source of the bits of one number U in [0, 1), of which a draw uses so many at first."""

    def __init__(self, number: Fraction, bits: int) -> None:
        self._number, self._bits, self._at = number, bits, 0

    def _digits(self, start: int, end: int) -> int:
        return int(self._number * 2**end) % 2 ** (end - start)

    def __call__(self, count: int) -> bytes:
        if count == 2:
            self._at = 16
            return self._digits(0, 16).to_bytes(2, "little")
        assert count == 8
        if self._at in (0, 16):
            word, self._at = self._digits(self._at, 64) << self._at, self._bits
        else:
            word, self._at = self._digits(self._at, self._at + 64), self._at + 64
        return word.to_bytes(8, "little")


class Cells:
    """A source of all values of 16 first bits for 2^16 draws; then the same word for each."""

    def __init__(self, word: int, end: int) -> None:
        self._word, self._end, self._calls = word, 255 * end, 0

    def __call__(self, count: int) -> bytes:
        self._calls += 1
        if self._calls == 1:
            assert count == 2 << 16
            return np.arange(1 << 16).astype("<u2").tobytes()
        if self._calls == 2:
            return self._word.to_bytes(8, "little") * (count // 8)
        return bytes([self._end]) * count


def taken(way: str, weights: Sequence[Sequence[int]], patch: pytest.MonkeyPatch) -> Pmfs:
    """Return pmfs that are drawn from in one of the two ways, however many draws there are."""
    pmfs = Pmfs(weights)
    patch.setattr(release, "_FEW", -1)
    if way == "looked up":
        pmfs.draw(np.zeros(1 << 19, dtype=np.int64), system)
    else:
        patch.setattr(release, "_CELLS_PER_DRAW", 0)
    return pmfs


def random_row(rng: random.Random, total: int, outputs: int) -> list[int]:
    cuts = sorted(rng.randint(0, total) for _ in range(outputs - 1))
    return [b - a for a, b in pairwise([0, *cuts, total])]


def shares(row: list[int], bits: int, end: int) -> list[int]:
    """Return how many U of so many bits, zeros or ones behind, belong to each output."""
    total = sum(row)
    sums = [0, *accumulate(row)]
    firsts = [(c << bits) // total if end else -((-c << bits) // total) for c in sums]
    return [b - a for a, b in pairwise(firsts)]


@pytest.mark.parametrize("end", [0, 1])
@given(data=st.data())
def test_all_numbers_of_few_bits_give_each_output_its_weight(end: int, data: st.DataObject) -> None:
    bits, outputs = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 6))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    weights = [random_row(rng, 2**bits, outputs) for _ in range(3)]
    rest = (1 << (64 - bits)) - 1 if end else 0
    words = [u << (64 - bits) | rest for u in range(1 << bits)]
    with pytest.MonkeyPatch.context() as patch:
        pmfs = taken("searched", weights, patch)
        for row in range(3):
            found = pmfs.draw(np.full(len(words), row), Words(words, end))
            assert np.bincount(found, minlength=outputs).tolist() == weights[row]


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("total", TOTALS, ids=hex)
def test_all_numbers_of_20_bits_give_each_output_its_weight_by_the_table(
    total: int, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a total of 2^20 these are the weights; for others how many U are below each c / T."""
    rng = random.Random(total)
    weights = [random_row(rng, total, 7), [0, total, 0, 0, 0, 0, 0], [0] * 6 + [total]]
    pmfs = taken("looked up", weights, monkeypatch)
    for row, own in enumerate(weights):
        counts = np.zeros(7, dtype=np.int64)
        for four in range(16):
            word = four << 60 | (2**60 - 1) * end
            found = pmfs.draw(np.full(1 << 16, row), Cells(word, end))
            counts += np.bincount(found, minlength=7)
        assert counts.tolist() == shares(own, 20, end)
        assert total != 2**20 or counts.tolist() == own


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("outputs", [2, 3, 17])
@pytest.mark.parametrize("total", TOTALS, ids=hex)
@pytest.mark.parametrize("way", WAYS)
def test_numbers_next_to_every_border(
    way: str, total: int, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next to c / T, and equal to it where it has so few bits: by 5, 64, 100 or 400 bits."""
    rng = random.Random(f"{total} {outputs}")
    whole, none = [total], [0] * (outputs - 1)
    weights = [random_row(rng, total, outputs) for _ in range(3)] + [whole + none, none + whole]
    pmfs = taken(way, weights, monkeypatch)
    # Five rows: three bits less for the number.
    for row, own in enumerate(weights):
        sums = list(accumulate(own))
        near = {
            Fraction(c * 2**bits // total + step, 2**bits)
            for c in sums
            for bits in (5, 64, 100, 400)
            for step in (-1, 0, 1)
        }
        for number in (u for u in near if 0 <= u < 1):
            found = int(pmfs.draw(np.array([row]), Number(number, 61))[0])
            assert found == bisect_right(sums, number * total)
            assert own[found] > 0


def test_thirds_need_bits_without_end() -> None:
    """0.0101...: every digit of 1/3 leaves it open, until one differs."""
    sums = [1, 2, 3]
    third = int("01" * 32, 2)
    assert settled(sums, third, 64, Words([third, third + 1])) == 1
    assert settled(sums, third, 64, Words([third, third - 1])) == 0
    assert settled(sums, third + 1, 64, Words([])) == 1
    assert settled(sums, 2 * third, 64, Words([2 * third] * 5, end=1)) == 2
    assert settled(sums, 2 * third, 64, Words([2 * third] * 5, end=0)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_each_draw_is_of_its_own_row_in_every_chunk(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row r gives r or r + 1 only; 70 rows fill no power of two."""
    weights = [[3 * (y == r) + (y == r + 1) for y in range(71)] for r in range(70)]
    pmfs = taken(way, weights, monkeypatch)
    rows = np.random.default_rng(1).integers(0, 70, (1 << 17) + 5)
    moved = pmfs.draw(rows, system) - rows
    assert set(moved.tolist()) == {0, 1}
    assert abs(moved.mean() - 1 / 4) < 7 * math.sqrt(3 / 16 / rows.size)


def test_tables_are_made_for_the_number_of_draws_alone() -> None:
    """As many bytes are drawn whatever the rows are, but for those of ties, which are too rare."""
    weights = [[2**95 - 5, 1, 1, 1, 1, 1], [2**90, 2**92, 2**92, 0, 2**95 - 2**93 - 2**90, 0]]
    asked: list[list[int]] = []
    for row in (0, 1):
        sizes: list[int] = []

        def source(count: int, sizes: list[int] = sizes) -> bytes:
            sizes.append(count)
            return system(count)

        pmfs = Pmfs(weights)
        for draws in (1, 100, 5_000, 100_000, 100_000):
            pmfs.draw(np.full(draws, row), source)
        asked.append(sizes)
    assert asked[0] == asked[1]
    # Of the last draws, two bytes each and not much more.
    assert sum(asked[0][-4:]) < 2.2 * 100_000


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 257, 2**32 + 1, 2**62, 2**63 - 1])
def test_words_that_a_limit_has_no_room_for_are_drawn_again(limit: int) -> None:
    """The largest multiple of the limit is refused first, and what is just below it is not."""
    room = 2**64 // limit * limit
    words = [room - 1, min(room, 2**64 - 1), 0, room - limit, min(room + 5, 2**64 - 1), limit]
    kept = [w for w in words if w < room]
    found = below_each(np.full(len(kept), limit), Words(words)).tolist()
    # Those that are refused take the next words behind the first round.
    values, again = words[: len(kept)], deque(words[len(kept) :])
    while refused := [at for at, word in enumerate(values) if word >= room]:
        for at in refused:
            values[at] = again.popleft() if again else 0
    assert found == [word % limit for word in values]


def test_remainders_are_as_frequent() -> None:
    limits = np.tile([3, 5, 3 << 61], 30_000)
    found = below_each(limits, system)
    for at, limit in enumerate((3, 5, 3 << 61)):
        own = found[at::3]
        assert own.min() >= 0
        assert own.max() < limit
        few = limit if limit <= 5 else 3
        follows((own // (limit // few)).tolist(), dict.fromkeys(range(few), 1 / few), 1000)


def test_a_seed_is_a_generator() -> None:
    first, again = (seeded(np.random.default_rng(3)) for _ in range(2))
    assert first(16) == again(16)
    with pytest.raises(ParameterError, match="rng"):
        seeded(3)  # type: ignore[arg-type]


END = (1 << 94) // 3
TABLES = {
    "program": lambda: dpopt.design(Kernel("absolute", 0.4, graph="path", inputs=16)).table,
    "response": lambda: response(7, 1.5),
    "binary": lambda: of_rows([[END, 2**95 - END], [2**95 - END, END]]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_million_draws_follow_the_weights(name: str) -> None:
    table = TABLES[name]()
    chosen = table.inputs.inputs // 2
    drawn, _ = table.drawn(np.full(1_000_000, chosen), system)
    follows(drawn.tolist(), {y: w / table.total for y, w in enumerate(table.row(chosen))}, 1000)


def test_many_outputs_of_one_row() -> None:
    """More than the table's small integers hold, of chances 1 : 2 : ... : n."""
    n = 70_000
    pmfs = Pmfs([range(1, n + 1)])
    found = pmfs.draw(np.zeros(300_000, dtype=np.int64), system)
    follows((found * 10 // n).tolist(), {part: (2 * part + 1) / 100 for part in range(10)}, 1000)


def test_no_draws_and_one_output() -> None:
    assert Pmfs([[1, 2]]).draw(np.zeros(0, dtype=np.int64), system).size == 0
    assert Pmfs([[7]]).draw(np.zeros(3, dtype=np.int64), system).tolist() == [0, 0, 0]
