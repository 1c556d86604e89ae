"""delta(x) of one database or of all (Definition 2), and the worst case over databases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Vector, frozen
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histograms,
    histogram_count,
    histograms,
    neighbours,
    replacements,
)
from dpopt.smoothed import sampling
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram
from dpopt.smoothed.results import DeltaResult, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Largest epsilon, in nats: e^700 is within doubles.
LARGEST_EPSILON = 700.0
# Probabilities of the first databases of a portion of pairs: 32 MB.
_HELD_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyProfile(DeltaResult[Vector]):
    """delta_{epsilon,M}(x) of one database or of all (Definition 2).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        counts: histogram of the one database, length m; None for all databases.
        log_delta: natural logarithm of delta, shape (N,), -inf where delta is 0; read-only.
    """

    kind: ClassVar[str] = "profile"
    written = ("mechanism", "epsilon", "counts", "delta", "log10_delta", "method")

    mechanism: AnonymousMechanism
    epsilon: float
    counts: tuple[int, ...] | None
    log_delta: Vector

    @cached_property
    def histograms(self) -> IntMatrix:
        """One database in each row, shape (N, m), read-only."""
        if self.counts is None:
            return histograms(self.mechanism.records, self.mechanism.categories)
        row = np.array([self.counts], dtype=np.int64)
        row.setflags(write=False)
        return row

    @property
    def method(self) -> str:
        """Method of computation, in words."""
        if not _in_closed_form(self.mechanism):
            return "every output"
        return "tail sums" if self.mechanism.categories == 2 else "pooled pairs of categories"

    @property
    def worst(self) -> int:
        """Row of the database with the largest delta."""
        return int(np.argmax(self.log_delta))

    def facts(self) -> Json:
        """Return the summary of the one-line repr."""
        fields: Json = {"mechanism": self.mechanism, "epsilon": self.epsilon}
        if len(self.log_delta) == 1:
            fields["log10_delta"] = float(self.log10_delta[0])
        return {**fields, "databases": len(self.log_delta), "method": repr(self.method)}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the counts and log10 delta of each database."""
        counts = {f"count_{c}": column.tolist() for c, column in enumerate(self.histograms.T)}
        return {**counts, "log10_delta": plain(self.log10_delta)}

    def draw(self, axes: Axes, label: str | None) -> None:
        """Draw log10 delta against the share of the first category."""
        share = self.histograms[:, 0] / self.mechanism.records
        line = "-" if self.mechanism.categories == 2 and len(share) > 1 else "."
        axes.plot(share, self.log10_delta, line, label=label)
        axes.set_xlabel("share of the first category")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")


def privacy_profile(
    mechanism: AnonymousMechanism, epsilon: float, histogram: npt.ArrayLike | None = None
) -> PrivacyProfile:
    """Return delta_{epsilon,M}(x) of one database or of all.

    delta(x) = max(0, max over x' of d(x, x'), max over x' of d(x', x)), where x' replaces one
    record of x and d(x, x') = max over S of Pr[M(x) in S] - e^epsilon Pr[M(x') in S]. Since M is
    anonymous, a database is represented by its histogram.

    Args:
        mechanism: M.
        epsilon: from 0 to 700, in nats.
        histogram: counts of the m categories, shape (m,), summing to n; None for every database,
            in the order of `histograms`.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list, or
            there is too much to sum.

    Example:
        >>> import math
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=10, drawn=9)
        >>> smoothed.privacy_profile(mechanism, math.log(2), [5, 5]).delta.round(6).tolist()
        [0.5]

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2.
    """
    _checks.instance("mechanism", mechanism, AnonymousMechanism)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)
    if histogram is None:
        return PrivacyProfile(mechanism, epsilon, None, frozen(log_profile(mechanism, epsilon)))
    (counts,) = checked_histograms([histogram], mechanism.records, mechanism.categories)
    if _in_closed_form(mechanism):
        logs = sampling.log_delta_at(mechanism, epsilon, counts)
    else:
        logs = general_log_profile(mechanism, epsilon, counts)
    return PrivacyProfile(mechanism, epsilon, tuple(counts.tolist()), frozen(logs))


def log_exposure(mechanism: SamplingHistogram) -> float:
    """Return ln r, where r, the probability that a given record is drawn, is DP's delta.

    r = T/n without replacement and 1 - (1 - 1/n)^T with it, at every epsilon. Upper bound: draw
    the same record indices from x and x'; the outputs differ only if the replaced index is among
    them, so that Pr[M(x) in S] <= Pr[M(x') in S] + r. Lower bound: if a category occurs at most
    once in x, then in one of x and some neighbour it occurs once and in the other never; the output
    shows the category with probability r and 0, respectively. So delta(x) = r if min_i H_i <= 1.

    Theorem 5 states that (epsilon, T/(n + 1))-DP is out of reach with replacement. That holds for
    T <= 2 only: r is concave in T and below T/(n + 1) from T = 3 on.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 3 (iii) and Theorem 5.
    """
    _checks.instance("mechanism", mechanism, SamplingHistogram)
    n, drawn = mechanism.records, mechanism.drawn
    if not mechanism.replacement or drawn == 1:
        return math.log(drawn / n)
    return 0.0 if n == 1 else math.log(-math.expm1(drawn * math.log1p(-1.0 / n)))


def log_profile(mechanism: AnonymousMechanism, epsilon: float) -> Vector:
    """Return log delta of every database, in the order of `histograms`."""
    n, m = mechanism.records, mechanism.categories
    count = histogram_count(n, m)
    # Databases that are listed: memory fixes them.
    if count > 10**7:
        raise ParameterError(
            f"records is {n} with {m} categories: {count:,} databases; at most "
            "10,000,000 can be listed. Give one histogram."
        )
    if _in_closed_form(mechanism):
        return sampling.log_profile(mechanism, epsilon)
    return general_log_profile(mechanism, epsilon)


def _in_closed_form(mechanism: AnonymousMechanism) -> TypeGuard[SamplingHistogram]:
    """Whether `sampling` has the divergences: draws without replacement."""
    return isinstance(mechanism, SamplingHistogram) and not mechanism.replacement


def general_log_profile(
    mechanism: AnonymousMechanism, epsilon: float, counts: npt.ArrayLike | None = None
) -> Vector:
    """Return log delta of one database or of all, from the output pmfs of any mechanism.

    delta(x) is the maximum of sum_y (P(y) - e^epsilon P'(y))_+ over neighbours x' and both orders.

    Summation is pairwise: the error of log delta is a few rounding errors plus the relative error
    of the pmfs, times P(S) / delta with S the outputs where P > e^epsilon P'. That factor is large
    only if P is hardly above e^epsilon P' on all of S. Probabilities below 1e-308 count as 0.
    """
    n, m, factor = mechanism.records, mechanism.categories, math.exp(epsilon)
    # Memory fixes the outputs, time the terms: pairs of neighbours times outputs.
    if mechanism.outputs > 10**7:
        raise ParameterError(
            f"mechanism has {mechanism.outputs:,} outputs; the general profile takes at most "
            "10,000,000."
        )
    if counts is None:
        pairs = histogram_count(n - 1, m) * m * (m - 1) // 2
        if pairs * mechanism.outputs > 10**11:
            raise ParameterError(
                f"records is {n} with {m} categories and {mechanism.outputs:,} outputs: "
                f"{pairs:,} pairs of neighbours, more than 1e+11 terms in all. Give "
                "one histogram."
            )
        table = histograms(n, m)
        return _over_pairs(mechanism, factor, table, replacements(table))
    # Row 0 is the database, the other rows are its neighbours: pairs (0, i).
    table = np.vstack([np.asarray(counts, dtype=np.int64), neighbours(counts)])
    pairs = np.array([(0, row) for row in range(1, len(table))])
    return _over_pairs(mechanism, factor, table, pairs)[:1]


def _over_pairs(
    mechanism: AnonymousMechanism, factor: float, table: IntMatrix, pairs: IntMatrix
) -> Vector:
    """Return log delta of each row of the table over its pairs, pmfs in portions."""
    largest = np.zeros(table.shape[0])
    # Pairs sorted by database, so that the pairs of a portion share rows.
    order = np.argsort(pairs[:, 0], kind="stable")
    step = max(1, _HELD_ENTRIES // mechanism.outputs)
    for start in range(0, order.size, step):
        # Rows of pairs are (database, neighbour) in the table; rows_of are their rows in ``used``.
        portion = pairs[order[start : start + step]]
        used, rows_of = np.unique(portion, return_inverse=True)
        pmfs = mechanism.pmfs(table[used])
        p, q = (pmfs[rows] for rows in rows_of.reshape(portion.shape).T)
        both = [np.maximum(0.0, a - factor * b).sum(axis=1) for a, b in ((p, q), (q, p))]
        values = np.minimum(np.maximum(*both), 1.0)
        np.maximum.at(largest, portion[:, 0], values)
        np.maximum.at(largest, portion[:, 1], values)
    with np.errstate(divide="ignore"):
        return np.log(largest)
