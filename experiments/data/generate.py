"""Generated files in the formats of Avazu and MovieLens, so that every experiment runs offline.

Sites and genres have Zipf popularity, users have preferences of their own. They stand in for the
formats only: no number measured on them is a number about the real data.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpopt import ParameterError
from dpopt.files import replacing, write_text
from experiments.data.avazu import ATTRIBUTES, COLUMNS
from experiments.data.movielens import AGES, FORMATS, GENRES
from experiments.entry import make_folder

if TYPE_CHECKING:
    import polars as pl

_CHUNK = 1_000_000
_VALUES = {"C1": 7, "C14": 400, "C15": 8, "C16": 9, "C17": 150, "C18": 4}
_VALUES |= {"C19": 30, "C20": 60, "C21": 40}
_SITES = 2000
_FAVOURITES = 3
_HOURS = 240


def generate_avazu(path: str | Path, rows: int, seed: int, chunk: int = _CHUNK) -> Path:
    """Write a file with the header of Avazu's train.csv.

    One user for 150 rows. A user's activity, favourite sites and faithfulness to them are drawn
    once, and 15 % of the users see one site only; each row is a favourite or a site by its
    popularity, 17 % of the rows are clicks, and attributes have Zipf values. Columns that
    `load_clicks` does not read are constant.

    Rows are drawn a chunk at a time: memory does not grow with them but for the users, about 32
    bytes each.
    """
    if importlib.util.find_spec("polars") is None:
        raise ParameterError("polars is not installed; install the extra `data`.")
    path = Path(path)
    rng = np.random.default_rng(seed)
    crowd = _Crowd(max(1, rows // 150), rng)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write((",".join(COLUMNS) + "\n").encode())
        for start in range(0, rows, chunk):
            frame = crowd.rows(start, min(chunk, rows - start), rows, rng)
            file.write(frame.write_csv(include_header=False).encode())
    return path


def _zipf(size: int, exponent: float) -> np.ndarray:
    """Return the cumulative Zipf distribution over ``size`` ranks."""
    weights = np.arange(1, size + 1, dtype=float) ** -exponent
    return np.cumsum(weights) / weights.sum()


def _ranks(cumulative: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.searchsorted(cumulative, rng.random(size), side="right").clip(max=cumulative.size - 1)


def _names(size: int, rng: np.random.Generator) -> pl.Series:
    """Return distinct names of 8 hexadecimal digits: an odd multiplier permutes the 32 bits."""
    import polars as pl

    start = int(rng.integers(1 << 32))
    numbers = (start + np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B1)) % (1 << 32)
    return pl.Series([f"{number:08x}" for number in numbers.tolist()], dtype=pl.String)


class _Crowd:
    """The users of a generated Avazu file and what they like."""

    def __init__(self, users: int, rng: np.random.Generator) -> None:
        self.activity = np.cumsum(rng.pareto(1.5, users) + 0.2)
        self.activity /= self.activity[-1]
        self.popularity = _zipf(_SITES, 1.4)
        favourites = _ranks(self.popularity, users * _FAVOURITES, rng)
        self.favourites = favourites.reshape(users, _FAVOURITES).astype(np.int16)
        loyal = rng.random(users) < 0.15
        self.favourites[loyal] = self.favourites[loyal, :1]
        self.faithful = np.where(loyal, 1.0, rng.beta(2.0, 0.6, users)).astype(np.float32)
        self.values = {name: _zipf(size, 1.0) for name, size in _VALUES.items()}
        self.user_names, self.site_names = _names(users, rng), _names(_SITES, rng)

    def rows(self, start: int, size: int, total: int, rng: np.random.Generator) -> pl.DataFrame:
        """Return the rows from ``start`` on, of ``total`` in the order of time."""
        import polars as pl

        user = _ranks(self.activity, size, rng)
        like = self.favourites[user, np.minimum(rng.geometric(0.6, size) - 1, _FAVOURITES - 1)]
        site = np.where(
            rng.random(size) < self.faithful[user], like, _ranks(self.popularity, size, rng)
        )
        place = np.arange(start, start + size, dtype=np.int64)
        hour = place * _HOURS // total
        known = {
            "id": pl.Series(place + 10**18),
            "click": pl.Series((rng.random(size) < 0.17).astype(np.int8)),
            "hour": pl.Series(14_102_100 + hour // 24 * 100 + hour % 24),
            "site_id": self.site_names.gather(site),
            "device_id": self.user_names.gather(user),
            "device_ip": self.user_names.gather(user),
        }
        for name in ATTRIBUTES:
            known[name] = pl.Series(1000 + _ranks(self.values[name], size, rng))
        for name in COLUMNS:
            digits = 1 if name in ("banner_pos", "device_type", "device_conn_type") else 8
            known.setdefault(name, pl.repeat("0" * digits, size, eager=True))
        return pl.DataFrame({name: known[name] for name in COLUMNS})


def generate_movielens(folder: str | Path, users: int, movies: int, seed: int) -> Path:
    """Write ratings.dat, users.dat and movies.dat in the format of MovieLens 1M.

    Genres have Zipf popularity, ages the shares of a skewed distribution. A user rates 20 movies or
    more (lognormal), of genres drawn from a Dirichlet distribution around popularity; one user in
    50 keeps to one genre.

    There must be 18 movies or more, one for each genre.
    """
    folder = Path(folder)
    make_folder(folder, "folder")
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, len(GENRES) + 1, dtype=float) ** -1.1
    popularity = rng.permutation(popularity / popularity.sum())
    genre = np.concatenate(
        [np.arange(len(GENRES)), rng.choice(len(GENRES), movies - len(GENRES), p=popularity)]
    )
    names = FORMATS["1m"]
    titles = [f"{m + 1}::Movie {m + 1} (2000)::{GENRES[g]}" for m, g in enumerate(genre)]
    ages = rng.choice(list(AGES), users, p=[0.04, 0.18, 0.35, 0.2, 0.09, 0.08, 0.06])
    people = [f"{u + 1}::{'FM'[u % 2]}::{age}::0::00000" for u, age in enumerate(ages)]
    ratings = [line for u in range(users) for line in _rated(u + 1, genre, popularity, rng)]
    for name, lines in ((names.movies, titles), (names.users, people), (names.ratings, ratings)):
        write_text(folder / name, "\n".join(lines) + "\n")
    return folder


def _rated(
    user: int, genre: np.ndarray, popularity: np.ndarray, rng: np.random.Generator
) -> list[str]:
    """Return one user's lines of ratings.dat."""
    taste = rng.dirichlet(12 * popularity)
    if rng.random() < 0.02:
        taste = np.eye(len(GENRES))[rng.choice(len(GENRES), p=popularity)]
    size = 20 + int(rng.lognormal(4.0, 1.0))
    weights = taste[genre] / np.bincount(genre, minlength=len(GENRES))[genre]
    chosen = rng.choice(genre.size, min(size, int(np.count_nonzero(weights))), False, weights)
    marks = rng.integers(1, 6, chosen.size)
    return [
        f"{user}::{movie + 1}::{mark}::978300000"
        for movie, mark in zip(chosen.tolist(), marks.tolist(), strict=True)
    ]
