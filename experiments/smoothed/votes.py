"""Votes of elections of the United States; see data/SOURCES.md."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Election:
    """The votes of the two leading candidates.

    Attributes:
        name: the year, or the unit's short name.
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


def history() -> tuple[Election, ...]:
    """Return the elections of 1920 to 2020, whole country."""
    return _read("popular_vote.csv", "year", "first", "second")


def units() -> tuple[Election, ...]:
    """Return 2020 by state, the District of Columbia, and the districts of Maine and Nebraska."""
    return _read("units_2020.csv", "unit", "biden", "trump")


def _read(file: str, name: str, first: str, second: str) -> tuple[Election, ...]:
    with (FOLDER / file).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return tuple(Election(row[name], int(row[first]), int(row[second])) for row in rows)
