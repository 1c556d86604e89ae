"""Votes of elections of the United States; see data/SOURCES.md."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpopt import ParameterError

FOLDER = Path(__file__).parent / "data"
HISTORY = FOLDER / "popular_vote.csv"
UNITS = FOLDER / "units_2020.csv"

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


def history(path: str | None = None) -> tuple[Election, ...]:
    """Return the national elections of 1920 to 2020, or those of your own file."""
    return read(path or str(HISTORY), "votes")


def units(path: str | None = None) -> tuple[Election, ...]:
    """Return 2020 by state, the District of Columbia, and the districts of Maine and Nebraska."""
    return read(path or str(UNITS), "units")


def read(path: str, name: str) -> tuple[Election, ...]:
    """Return the elections of a CSV file: names first, the votes in the last two columns."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))[1:]
        found = tuple(Election(row[0].strip(), int(row[-2]), int(row[-1])) for row in rows if row)
    except (OSError, ValueError, IndexError):
        found = ()
    if not found or any(min(e.first, e.second) < 0 or e.records == 0 for e in found):
        raise ParameterError(
            f"{name} is {path}; it must be a CSV file with a name in the first column and the "
            "votes of two candidates in the last two."
        )
    return found


def pmfs(text: str, districts: Sequence[Election], years: Sequence[Election]) -> dict[str, float]:
    """Return the set that a text names: shares of the second candidate by name, from 0 to 1."""
    groups = {"units": districts, "history": years}
    groups |= {each.name: (each,) for each in (*districts, *years)}
    shares: dict[str, float] = {}
    for word in text.split():
        if word in groups:
            shares |= {each.name: each.share for each in groups[word]}
            continue
        try:
            shares[word] = float(word)
        except ValueError:
            shares[word] = -1.0
        if not 0.0 <= shares[word] <= 1.0:
            raise ParameterError(
                f"distributions is {text!r}; each word must be 'units', 'history', the name of a "
                "unit, a year, or a share from 0 to 1."
            )
    if not shares:
        raise ParameterError(f"distributions is {text!r}; it must name at least one distribution.")
    return shares
