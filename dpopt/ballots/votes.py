"""Counting votes, and priors of their counts; error messages never show a vote."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import digits, shown, typed_rational
from dpopt._types import Vector, frozen
from dpopt.data.tally import Tally
from dpopt.table import SortedHistograms
from dpopt.table.histograms import checked_counts

IntTable = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of votes for each class: data of a plurality, instead of the votes themselves.

    Attributes:
        counts: integers that sum to K for each query, shape (C,) or (queries, C).
    """

    counts: npt.ArrayLike


def counted(data: Any, voters: int, classes: int) -> tuple[IntTable, bool]:  # noqa: ANN401
    """Return the counts of each query, shape (queries, C), and whether there is only one.

    The data are votes, shape (K,) or (queries, K); or `Counts`; or a `Tally`, those of one query.

    Raises:
        ParameterError: for another shape, other values or another sum; none is shown.
    """
    if not isinstance(data, Counts | Tally):
        return count_queries(data, voters, classes)
    return checked_counts(data.counts, voters, classes)


def count_queries(votes: npt.ArrayLike, voters: int, classes: int) -> tuple[IntTable, bool]:
    """Count the votes for each class on each query."""
    array = _checks.array("votes", votes)
    if array.ndim not in (1, 2) or array.shape[-1] != voters:
        raise ParameterError(
            f"votes has shape {array.shape}; it must be ({voters},) or (queries, {voters})."
        )
    table = np.atleast_2d(array)
    counts = np.empty((len(table), classes), dtype=np.int64)
    # Votes read at once: they stay in a core's cache.
    step = max(1, (1 << 16) // voters)
    for start in range(0, max(1, len(table)), step):
        batch = as_integers(table[start : start + step], classes - 1)
        if batch is None:
            allowed = "0 and 1" if classes == 2 else f"0..{classes - 1}"
            raise ParameterError(f"votes holds a value other than {allowed}.")
        counts[start : start + step] = count_votes(batch, classes)
    return counts, array.ndim == 1


def count_votes(votes: IntTable, classes: int) -> IntTable:
    """Return the counts of votes, shape (queries, C), for votes of shape (queries, K)."""
    queries, voters = votes.shape
    if classes == 2:
        # A sum over voters is several times as fast as a histogram.
        ones = np.einsum("qk->q", votes, dtype=np.int64)
        return np.stack([voters - ones, ones], axis=1)
    # Flat index of (query, class).
    cells = votes + classes * np.arange(queries)[:, None]
    return np.bincount(cells.ravel(), minlength=queries * classes).reshape(queries, classes)


def as_integers(array: npt.NDArray[np.generic], largest: int) -> IntTable | None:
    """Return an array as integers if all its values are integers in 0..largest, else None."""
    if array.dtype.kind in "iu":
        # Viewed as unsigned, negative numbers become large.
        unsigned = array.view(array.dtype.str.replace("i", "u"))
        fits = not array.size or int(unsigned.max()) <= largest
        return array.astype(np.int64, copy=False) if fits else None
    numeric = array.dtype.kind in "bf" or (
        array.dtype == object and all(isinstance(v, numbers.Real | np.bool_) for v in array.flat)
    )
    if not numeric or not np.all((array >= 0) & (array <= largest)):  # pyright: ignore[reportOperatorIssue]
        return None
    integers = array.astype(np.int64)
    return integers if np.all(integers == array) else None


def check_prior(prior: object, classes: int) -> str:
    """Return a prior of the votes, its numbers as floats: dirichlet:1/2 becomes dirichlet:0.5."""
    text = prior if isinstance(prior, str) else ""
    try:
        name, colon, numbers = text.partition(":")
        floats = [digits(float(typed_rational(text))) for text in numbers.split(",") if colon]
        text = name + colon + ",".join(floats)
    except (ArithmeticError, ValueError):
        text = ""
    if not verify.is_prior_of_votes(text, classes):
        raise ParameterError(
            f"prior is {shown(prior)}; it must be 'uniform', 'dirichlet:A' with A in "
            f"[0.0001, 1e+06], or 'point:P,...' with {classes} probabilities that add up to 1."
        )
    return text


def votes_pmf(prior: str, inputs: SortedHistograms) -> Vector:
    """Return a prior's probability of each sorted histogram, shape (histograms,), read-only."""
    try:
        ballots = verify.Ballots(inputs.records, inputs.categories, None)
        return frozen([float(mass) for mass in ballots.chances(prior)])
    except verify.Malformed as error:
        raise ParameterError(
            f"prior is {shown(prior)}; its distribution of the histograms of "
            f"{inputs.records} votes over {inputs.categories} classes is not computed: {error}."
        ) from None
