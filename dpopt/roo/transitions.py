"""Which counts can become which between neighbours, for rules that look at the smallest count.

The law of a letter with count c in a data set whose smallest count is m is
f(m, c) = q_m / k + (1 - q_m) c / n, affine in c. A pair of neighbours takes (m, c) to (m~, c~)
with c~ - c in {-1, 0, 1}, so f(m~, c~) <= e^epsilon f(m, c) holds for a whole range of c if it
holds at both of its ends: O(1) rows for each m, and no histogram is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpopt import _checks
from dpopt.roo.setting import RooSetting


@dataclass(frozen=True)
class Move:
    """A letter's count and the data set's smallest count, before and after one record changes.

    Attributes:
        minimum: m, the smallest count before.
        count: c, the letter's count before.
        new_minimum: m~, the smallest count after.
        new_count: c~, the letter's count after.
    """

    minimum: int
    count: int
    new_minimum: int
    new_count: int


def moves(setting: RooSetting, minimum: int) -> Iterator[Move]:
    """Yield the moves from a smallest count m whose rows imply those of all moves from m.

    Args:
        setting: n and k.
        minimum: m, in 0..M.
    """
    _checks.instance("setting", setting, RooSetting)
    minimum = _checks.integer("minimum", minimum, 0, setting.largest_minimum)
    ranges = _two_letters if setting.letters == 2 else _more_letters
    seen = set()
    for new_minimum, step, low, high in ranges(setting, minimum):
        for count in (low, high):
            if low <= high and (new_minimum, step, count) not in seen:
                seen.add((new_minimum, step, count))
                yield Move(minimum, count, new_minimum, count + step)


def _two_letters(setting: RooSetting, m: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (m~, c~ - c, lowest c, highest c) for k = 2, where c is m or n - m."""
    n = setting.records
    if m >= 1:
        yield m - 1, -1, m, m
        yield m - 1, 1, n - m, n - m
    if n == 2 * m + 1:
        yield m, 1, m, m
        yield m, -1, m + 1, m + 1
    elif n > 2 * m + 1:
        yield m + 1, 1, m, m
        yield m + 1, -1, n - m, n - m


def _more_letters(setting: RooSetting, m: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (m~, c~ - c, lowest c, highest c) for k >= 3."""
    top, after = setting.largest_count(m), setting.largest_count(m + 1)
    if setting.records >= setting.letters * m + 1:
        yield m, 1, m, top - 1
        yield m, 0, m, top - 1
        yield m, -1, m + 1, top
    if m >= 1:
        yield m - 1, 1, m, top
        yield m - 1, 0, m, top
        yield m - 1, -1, m, m
    if m < setting.largest_minimum:
        yield m + 1, 1, m, m
        yield m + 1, 0, m + 1, after
        yield m + 1, -1, m + 2, after + 1
