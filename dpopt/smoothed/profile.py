"""The privacy profile of a database, and the worst database: DP (Definition 2, Theorem 1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Vector, frozen
from dpopt.prob.histograms import checked_histogram, histogram_count, histograms
from dpopt.provenance import versions
from dpopt.smoothed import binary, replacement
from dpopt.smoothed.categories import categories_log_profile
from dpopt.smoothed.description import AnonymousMechanism
from dpopt.smoothed.general import general_log_profile
from dpopt.smoothed.histogram import SamplingHistogram
from dpopt.smoothed.lower import log_exposure
from dpopt.smoothed.result import Mechanism, PrivacyProfile, WorstCase

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
    part = replacement if mechanism.replacement else binary
    return part.log_profile(n, drawn, epsilon), "tail sums"


def _one(mechanism: Mechanism, epsilon: float, counts: IntVector) -> tuple[Vector, str]:
    if not isinstance(mechanism, SamplingHistogram):
        return np.atleast_1d(general_log_profile(mechanism, epsilon, counts)), "every output"
    n, drawn, m = mechanism.records, mechanism.drawn, mechanism.categories
    if m > 2:
        return _categories(mechanism, epsilon, counts), "pooled pairs of categories"
    part = replacement if mechanism.replacement else binary
    return part.log_delta_at(n, drawn, epsilon, counts[:1]), "tail sums"


def _categories(mechanism: SamplingHistogram, epsilon: float, counts: IntVector | None) -> Vector:
    found = categories_log_profile(
        mechanism.records,
        mechanism.drawn,
        mechanism.categories,
        epsilon,
        counts,
        replacement=mechanism.replacement,
    )
    return np.atleast_1d(found)
