"""What is known of databases: the profile, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._plot import new_axes
from dpopt._types import IntVector, Json, Matrix, Vector, brief, frozen
from dpopt.files import write_json
from dpopt.prob.histograms import (
    IntMatrix,
    checked_histogram,
    histogram_count,
    histograms,
    neighbours,
    replacements,
)
from dpopt.provenance import versions
from dpopt.smoothed import sampling
from dpopt.smoothed.bounds import log_exposure
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram, as_anonymous

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mechanism = SamplingHistogram | AnonymousMechanism
"""What a profile can be asked of."""

LN10 = math.log(10.0)


def finite(value: float) -> float | None:
    """Return the value for JSON: None if it is not finite (log10 of a delta that is 0)."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class PrivacyProfile:
    """delta_{epsilon,M}(x) of one database or of all (Definition 2).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        histograms: one database in each row, shape (N, m), read-only.
        log_delta: natural logarithm of delta, shape (N,), -inf where delta is 0; read-only.
        method: how it was computed.
        provenance: versions that made it.
    """

    mechanism: Mechanism
    epsilon: float
    histograms: npt.NDArray[np.int64]
    log_delta: Vector
    method: str
    provenance: dict[str, str]

    @property
    def delta(self) -> Vector:
        """Return delta itself, shape (N,); 0 below 1e-308, where `log10_delta` still tells it."""
        return frozen(np.exp(self.log_delta))

    @property
    def log10_delta(self) -> Vector:
        """Decimal logarithm of delta, shape (N,)."""
        return frozen(self.log_delta / LN10)

    @property
    def worst(self) -> int:
        """Row of the database with the largest delta."""
        return int(np.argmax(self.log_delta))

    def at(self, histogram: npt.ArrayLike) -> float:
        """Return log delta of one of the databases.

        Raises:
            ParameterError: if it is not among the rows.
        """
        found = np.flatnonzero(np.all(self.histograms == np.asarray(histogram), axis=1))
        if found.size == 0:
            raise ParameterError(
                f"histogram is {np.asarray(histogram).tolist()}; it must be one of the "
                f"{len(self.histograms)} databases of this profile."
            )
        return float(self.log_delta[found[0]])

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw log10 delta against the share of the first category; return the axes."""
        axes = new_axes(ax)
        share = self.histograms[:, 0] / self.mechanism.records
        line = "-" if self.mechanism.categories == 2 and len(share) > 1 else "."
        axes.plot(share, self.log10_delta, line, label=label)
        axes.set_xlabel("share of the first category")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            databases=len(self.histograms),
            method=repr(self.method),
        )

    def to_records(self) -> list[Json]:
        """Return one record for each database, for tables and frames."""
        names = [f"count_{c}" for c in range(self.mechanism.categories)]
        return [
            {**dict(zip(names, row, strict=True)), "log10_delta": finite(value)}
            for row, value in zip(self.histograms.tolist(), self.log10_delta.tolist(), strict=True)
        ]

    def to_dict(self) -> Json:
        """Return the profile as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "privacy-profile",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "histograms": self.histograms.tolist(),
            "log10_delta": [finite(value) for value in self.log10_delta.tolist()],
            "method": self.method,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the profile to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


@dataclass(frozen=True, eq=False)
class WorstCase:
    """max over databases of delta_{epsilon,M}(x), which is DP's delta (Theorem 1).

    Attributes:
        mechanism: M.
        epsilon: in nats.
        log_delta: natural logarithm of the maximum.
        histogram: a database that attains it.
        method: "closed form" or "every database".
    """

    mechanism: Mechanism
    epsilon: float
    log_delta: float
    histogram: tuple[int, ...]
    method: str

    @property
    def delta(self) -> float:
        """DP's delta."""
        return math.exp(self.log_delta)

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON."""
        return {
            "kind": "worst-case-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "log10_delta": finite(self.log_delta / LN10),
            "histogram": list(self.histogram),
            "method": self.method,
        }


# JOINED: """The privacy profile of a database, and the worst database: DP (Definition 2, Theorem 1)."""
#

LARGEST_EPSILON = 700.0
_LARGEST_LISTED = 10**7
_LARGEST_TERMS = 3 * 10**10


def privacy_profile(
    mechanism: Mechanism, epsilon: float, histogram: npt.ArrayLike | None = None
) -> PrivacyProfile:
    """Return delta_{epsilon,M}(x) of one database, or of all of them.

    delta(x) = max(0, max over x' of d(x, x'), max over x' of d(x', x)), where x' replaces one
    record of x and d(x, x') = max over S of Pr[M(x) in S] - e^epsilon Pr[M(x') in S]. All
    mechanisms here are anonymous: a database is its histogram.

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        epsilon: from 0 to 700, in nats.
        histogram: counts of the m categories, shape (m,), summing to n; None for every database,
            in the order of `histograms`.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> import math
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=10, drawn=9)
        >>> smoothed.privacy_profile(mechanism, math.log(2), [5, 5]).delta.round(6).tolist()
        [0.5]

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2.
    """
    epsilon = checked(mechanism, epsilon)
    if histogram is None:
        _require_listable(mechanism)
        rows = histograms(mechanism.records, mechanism.categories)
        values, method = _all(mechanism, epsilon)
    else:
        counts = checked_histogram(histogram, mechanism.records, mechanism.categories)
        rows = np.array([counts])
        values, method = _one(mechanism, epsilon, counts)
    rows.setflags(write=False)
    return PrivacyProfile(mechanism, epsilon, rows, frozen(values), method, versions())


def worst_case_delta(mechanism: Mechanism, epsilon: float) -> WorstCase:
    """Return DP's delta: the largest delta_{epsilon,M}(x) of any database (Theorem 1).

    For `SamplingHistogram` it is the chance r that the replaced record is drawn, at every epsilon:
    T / n, or 1 - (1 - 1/n)^T with replacement. It cannot be more: draw the same places from x and
    x', and the outputs differ only if the replaced place is among them, so Pr[M(x) in S] <=
    Pr[M(x') in S] + r. It is no less: where all records but one are equal, a database without that
    one never shows it.

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        epsilon: from 0 to 700, in nats.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=10, drawn=9)
        >>> round(smoothed.worst_case_delta(mechanism, 1.0).delta, 6)
        0.9
    """
    epsilon = checked(mechanism, epsilon)
    if isinstance(mechanism, SamplingHistogram):
        database = (0,) * (mechanism.categories - 1) + (mechanism.records,)
        return WorstCase(mechanism, epsilon, log_exposure(mechanism), database, "closed form")
    profile = privacy_profile(mechanism, epsilon)
    row = profile.worst
    database = tuple(profile.histograms[row].tolist())
    return WorstCase(mechanism, epsilon, float(profile.log_delta[row]), database, "every database")


def checked(mechanism: Mechanism, epsilon: object) -> float:
    """Return epsilon as a float in [0, 700].

    Raises:
        ParameterError: if it is none, or the mechanism is no mechanism.
    """
    if not isinstance(mechanism, SamplingHistogram | AnonymousMechanism):
        raise ParameterError(
            f"mechanism is {_checks.shown(mechanism)}; it must be a SamplingHistogram or an "
            "AnonymousMechanism."
        )
    return _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)


def log_profile(mechanism: Mechanism, epsilon: float) -> Vector:
    """Return log delta of every database, in the order of `histograms`."""
    _require_listable(mechanism)
    return _all(mechanism, epsilon)[0]


def _require_listable(mechanism: Mechanism) -> None:
    n, m = mechanism.records, mechanism.categories
    count = histogram_count(n, m)
    if count > _LARGEST_LISTED:
        raise ParameterError(
            f"records is {n} with {m} categories: {count:,} databases; at most "
            f"{_LARGEST_LISTED:,} can be listed. Give one histogram."
        )


def _all(mechanism: Mechanism, epsilon: float) -> tuple[Vector, str]:
    if not isinstance(mechanism, SamplingHistogram):
        return general_log_profile(mechanism, epsilon), "every output"
    n, drawn, m = mechanism.records, mechanism.drawn, mechanism.categories
    if m > 2:
        return _categories(mechanism, epsilon, None), "pooled pairs of categories"
    lost = drawn if mechanism.replacement else n - drawn
    terms = n * min(1.0 / max(epsilon, 1e-300), lost**0.5)
    if terms > _LARGEST_TERMS:
        raise ParameterError(
            f"records is {n}, drawn {drawn} and epsilon {epsilon:g}: all databases take about "
            f"{terms:.0e} terms, more than {_LARGEST_TERMS:.0e}. Give one histogram, or fewer "
            "records."
        )
    values = sampling.log_profile(n, drawn, epsilon, replacement=mechanism.replacement)
    return values, "tail sums"


def _one(mechanism: Mechanism, epsilon: float, counts: IntVector) -> tuple[Vector, str]:
    if not isinstance(mechanism, SamplingHistogram):
        return np.atleast_1d(general_log_profile(mechanism, epsilon, counts)), "every output"
    n, drawn, m = mechanism.records, mechanism.drawn, mechanism.categories
    if m > 2:
        return _categories(mechanism, epsilon, counts), "pooled pairs of categories"
    one = sampling.log_delta_at(
        n, drawn, epsilon, counts[:1], replacement=mechanism.replacement
    )
    return one, "tail sums"


def _categories(mechanism: SamplingHistogram, epsilon: float, counts: IntVector | None) -> Vector:
    found = sampling.categories_log_profile(
        mechanism.records,
        mechanism.drawn,
        mechanism.categories,
        epsilon,
        counts,
        replacement=mechanism.replacement,
    )
    return np.atleast_1d(found)


# JOINED: """Profile of any anonymous mechanism, from the laws of its output (Algorithm 1, step 3)."""
#

_HELD_ENTRIES = 1 << 24
_LARGEST_OUTPUTS = 10**7
_LARGEST_WORK = 10**11
_LARGEST_EPSILON = 700.0

Divergence = Callable[[Matrix, Matrix], Vector]
"""Of the laws in the rows of two arrays, at least 0."""


def general_log_profile(
    mechanism: SamplingHistogram | AnonymousMechanism,
    epsilon: float,
    histogram: npt.ArrayLike | None = None,
) -> Vector:
    """Return log delta of all databases, or of one, from the laws of the output.

    delta(x) = max over x' that replaces one record of x, and both orders, of
    sum over outputs of (P - e^epsilon P')_+.

    The terms are added pairwise, so that log delta is wrong by a few rounding errors and the
    relative error of the laws, times P(S) / delta with S the outputs where P > e^epsilon P'. That
    factor is large only where P is hardly above e^epsilon P' on all of S. Probabilities that
    underflow (below 1e-308) count as 0.

    Args:
        mechanism: the laws; a `SamplingHistogram` also works, slowly.
        epsilon: from 0 to 700.
        histogram: counts of the m categories of one database, shape (m,); all if None.

    Returns:
        Natural logarithms, -inf for delta = 0; shape (N,) in the order of `histograms`, or (1,).

    Raises:
        ParameterError: if an argument is out of range, or there are too many outputs or databases.
    """
    inner = as_anonymous(mechanism)
    factor = math.exp(_checks.real("epsilon", epsilon, 0.0, _LARGEST_EPSILON))

    def stick(p: Matrix, q: Matrix) -> Vector:
        return np.maximum(0.0, p - factor * q).sum(axis=1)

    with np.errstate(divide="ignore"):
        return np.log(_largest(inner, stick, histogram))


def general_epsilon(
    mechanism: SamplingHistogram | AnonymousMechanism, histogram: npt.ArrayLike | None = None
) -> Vector:
    """Return the least epsilon with delta = 0, for all databases or one: pure DP.

    max over x' that replaces one record of x, and over outputs, of |ln(P / P')|; infinite where an
    output is possible for one database only. The maximum over databases is the epsilon of
    (epsilon, 0)-DP.

    Args:
        mechanism: the laws; a `SamplingHistogram` also works, slowly.
        histogram: counts of the m categories of one database, shape (m,); all if None.

    Returns:
        Shape (N,) in the order of `histograms`, or (1,).

    Raises:
        ParameterError: if an argument is out of range, or there are too many outputs or databases.
    """

    def ratio(p: Matrix, q: Matrix) -> Vector:
        quotient = np.divide(p, q, out=np.where(p > 0.0, np.inf, 1.0), where=q > 0.0)
        return np.log(np.maximum(quotient.max(axis=1), 1.0))

    return _largest(as_anonymous(mechanism), ratio, histogram)


def _largest(
    mechanism: AnonymousMechanism, divergence: Divergence, histogram: npt.ArrayLike | None
) -> Vector:
    """Return the largest divergence between each database and its neighbours, in both orders."""
    if mechanism.outputs > _LARGEST_OUTPUTS:
        raise ParameterError(
            f"mechanism has {mechanism.outputs:,} outputs; the general profile takes at most "
            f"{_LARGEST_OUTPUTS:,}."
        )
    if histogram is None:
        n, m = mechanism.records, mechanism.categories
        pairs = histogram_count(n - 1, m) * m * (m - 1) // 2
        if pairs * mechanism.outputs > _LARGEST_WORK:
            raise ParameterError(
                f"records is {n} with {m} categories and {mechanism.outputs:,} outputs: "
                f"{pairs:,} pairs of neighbours, more than {_LARGEST_WORK:.0e} terms in all. Give "
                "one histogram."
            )
        table = histograms(mechanism.records, mechanism.categories)
        return _over_pairs(mechanism, divergence, table, replacements(table))
    one = checked_histogram(histogram, mechanism.records, mechanism.categories)
    table = np.concatenate([one[None], neighbours(one)])
    pairs = np.zeros((table.shape[0] - 1, 2), dtype=np.int64)
    pairs[:, 1] = np.arange(1, table.shape[0])
    return _over_pairs(mechanism, divergence, table, pairs)[:1]


def _over_pairs(
    mechanism: AnonymousMechanism, divergence: Divergence, table: IntMatrix, pairs: IntMatrix
) -> Vector:
    """Return the largest divergence at each row of the table over its pairs, laws in portions."""
    found = np.zeros(table.shape[0])
    order = np.argsort(pairs[:, 0], kind="stable")
    rows = max(2, _HELD_ENTRIES // mechanism.outputs)
    step = order.size if table.shape[0] <= rows else max(1, rows // 2)
    for start in range(0, order.size, max(1, step)):
        part = pairs[order[start : start + step]]
        used, places = np.unique(part, return_inverse=True)
        laws = mechanism.laws(table[used])
        largest = _both_orders(laws, places.reshape(part.shape), divergence)
        np.maximum.at(found, part[:, 0], largest)
        np.maximum.at(found, part[:, 1], largest)
    return found


def _both_orders(laws: Matrix, pairs: IntMatrix, divergence: Divergence) -> Vector:
    """Return the larger divergence of each pair of rows, shape (pairs,)."""
    found = np.empty(pairs.shape[0])
    step = max(1, (_HELD_ENTRIES >> 3) // laws.shape[1])
    for start in range(0, pairs.shape[0], step):
        part = slice(start, start + step)
        left, right = laws[pairs[part, 0]], laws[pairs[part, 1]]
        found[part] = np.maximum(divergence(left, right), divergence(right, left))
    return found
