"""MovieLens 1M and 100k: each user's ratings summed by primary genre, in groups of age.

The data sets belong to GroupLens and may not be redistributed without permission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpopt import ParameterError
from experiments.data import refused
from experiments.data.groups import UserGroup

SOURCE = (
    "download ml-1m.zip or ml-100k.zip from grouplens.org/datasets/movielens and unpack it; "
    "its licence does not allow redistribution"
)
AGES: Mapping[int, str] = {
    1: "Under 18",
    18: "18-24",
    25: "25-34",
    35: "35-44",
    45: "45-49",
    50: "50-55",
    56: "56+",
}
"""Age groups of MovieLens 1M by their code, which is the lowest age of the group."""
GENRES = (
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)
_FLAGS = ("unknown", *GENRES)
_FIRST_FLAG = 5


@dataclass(frozen=True)
class _Format:
    """File names and separator of one release."""

    ratings: str
    users: str
    movies: str
    separator: str


FORMATS: Mapping[str, _Format] = {
    "1m": _Format("ratings.dat", "users.dat", "movies.dat", "::"),
    "100k": _Format("u.data", "u.user", "u.item", "|"),
}
"""Releases by name; the ratings of 100k are separated by tabs, its other files by |."""
NAMES: Mapping[str, str] = {"1m": "MovieLens 1M", "100k": "MovieLens 100k"}
USERS: Mapping[str, int] = {"1m": 6040, "100k": 943}
"""Users of each release, by which a whole download is told from a part of one."""


def release_of(folder: str | Path) -> str:
    """Return the name of the release in a folder, a key of `FORMATS`."""
    folder = Path(folder)
    for release, form in FORMATS.items():
        if (folder / form.ratings).is_file():
            return release
    names = " or ".join(form.ratings for form in FORMATS.values())
    raise refused(folder, f"it has no {names}; {SOURCE}", "folder")


def load_movielens(folder: str | Path) -> tuple[UserGroup, ...]:
    """Read a folder of MovieLens 1M or 100k (told apart by the names of the files).

    A movie's primary genre is the first that is listed; in 100k, where genres are flags in
    alphabetical order, the first flag. A user's count of a genre is the sum of the ratings.

    There is one group for each age range with users, from young to old; in 100k the years are put
    into the ranges of 1M.
    """
    folder = Path(folder)
    release = release_of(folder)
    form = FORMATS[release]
    ages = _ages(folder / form.users, form.separator, release)
    genres = _genres(folder / form.movies, form.separator, release)
    categories = _FLAGS if release == "100k" else GENRES
    rows = {user: place for place, user in enumerate(ages)}
    columns = {movie: categories.index(genre) for movie, genre in genres.items()}
    sums = np.zeros((len(rows), len(categories)), dtype=np.int64)
    path, separator = folder / form.ratings, "::" if release == "1m" else "\t"
    for number, line in enumerate(_lines(path), 1):
        words = line.split(separator)
        # isdecimal, as int() would also take signs and underscores.
        if len(words) != 4 or not all(map(str.isdecimal, words)) or not 1 <= int(words[2]) <= 5:
            said = f"user, movie, rating 1..5 and time, separated by {separator!r}"
            raise _malformed(path, number, said)
        user, movie, rating = map(int, words[:3])
        for what, key, known, file in (
            ("user", user, rows, form.users),
            ("movie", movie, columns, form.movies),
        ):
            if key not in known:
                raise refused(path, f"line {number} has {what} {key}, which {file} does not list")
        sums[rows[user], columns[movie]] += rating
    group_of = np.array(list(ages.values()))
    found = (
        UserGroup.of("age", label, categories, sums[group_of == code])
        for code, label in AGES.items()
    )
    return tuple(group for group in found if group.users)


def _lines(path: Path) -> list[str]:
    try:
        # Not splitlines: latin-1 titles may hold characters that it takes for line ends.
        lines = path.read_bytes().decode("latin-1").replace("\r\n", "\n").split("\n")
    except FileNotFoundError:
        raise refused(path, f"it is missing; {SOURCE}") from None
    except OSError as error:
        raise refused(path, error) from None
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise refused(path, "it is empty")
    return lines


def _malformed(path: Path, line: int, form: str) -> ParameterError:
    return refused(path, f"line {line} must be {form}")


def _ages(path: Path, separator: str, release: str) -> dict[int, int]:
    """Return the code of the age group of each user, in the order of the file."""
    place, form = (2, "user::gender::age::occupation::zip with an age code of MovieLens 1M")
    if release == "100k":
        place, form = (1, "user|age|gender|occupation|zip")
    ages: dict[int, int] = {}
    for number, line in enumerate(_lines(path), 1):
        words = line.split(separator)
        if len(words) != 5 or not words[0].isdecimal() or not words[place].isdecimal():
            raise _malformed(path, number, form)
        user, age = int(words[0]), int(words[place])
        if user in ages or (release == "1m" and age not in AGES):
            raise _malformed(path, number, f"{form}, with each user once")
        ages[user] = max((code for code in AGES if code <= age), default=1)
    return ages


def _genres(path: Path, separator: str, release: str) -> dict[int, str]:
    """Return the primary genre of each movie."""
    form = "movie::title::genre|genre|..., with each movie once"
    if release == "100k":
        form = (
            f"movie|title|date|date|address and {len(_FLAGS)} flags, one at least set, with each "
            "movie once"
        )
    genres: dict[int, str] = {}
    for number, line in enumerate(_lines(path), 1):
        words = line.split(separator)
        genre = _flagged(words) if release == "100k" else _listed(words)
        if genre is None or not words[0].isdecimal() or int(words[0]) in genres:
            raise _malformed(path, number, form)
        genres[int(words[0])] = genre
    return genres


def _listed(words: Sequence[str]) -> str | None:
    genre = words[-1].split("|")[0]
    return genre if len(words) >= 3 and genre in GENRES else None


def _flagged(words: Sequence[str]) -> str | None:
    flags = words[_FIRST_FLAG:]
    if len(flags) != len(_FLAGS) or not set(flags) <= {"0", "1"} or "1" not in flags:
        return None
    return _FLAGS[flags.index("1")]
