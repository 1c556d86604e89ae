"""Votes of elections of the United States; see data/SOURCES.md."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpopt import ParameterError

COUNTED = "US presidential popular vote, certified counts"
"""Where the votes come from."""


@dataclass(frozen=True)
class Election:
    """The votes of the two leading candidates.

    Attributes:
        name: the year, or the region's short name.
        first: votes of one of them.
        second: votes of the other.
    """

    name: str
    first: int
    second: int

    @property
    def records(self) -> int:
        """n, the votes of both."""
        return self.first + self.second

    @property
    def share(self) -> float:
        """Share of the second."""
        return self.second / self.records


@cache
def history() -> tuple[Election, ...]:
    """Return the national elections of 1920 to 2020."""
    return _read("popular_vote.csv")


@cache
def units() -> tuple[Election, ...]:
    """Return 2020 by state, the District of Columbia, and the districts of Maine and Nebraska."""
    return _read("units_2020.csv")


def _read(name: str) -> tuple[Election, ...]:
    """Return the elections of a file: names first, the votes in the last two columns."""
    with (Path(__file__).parent / "data" / name).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    return tuple(Election(row[0].strip(), int(row[-2]), int(row[-1])) for row in rows)


def pmfs(text: str) -> dict[str, float]:
    """Return the set that a text names: shares of the second candidate by name.

    Its words are "units" for all regions of 2020, "history" for all elections, or the name of one.
    """
    groups = {"units": units(), "history": history()}
    groups |= {each.name: (each,) for each in (*units(), *history())}
    words = text.split()
    if not words or not set(words) <= set(groups):
        raise ParameterError(
            f"distributions is {text!r}; each word must be 'units', 'history', the name of a unit "
            "or a year."
        )
    return {each.name: each.share for word in words for each in groups[word]}
