"""What sampling cannot hide: DP's delta, and lower bounds of the smoothed delta."""

from __future__ import annotations

import math

import numpy.typing as npt

from dpopt import _checks
from dpopt.prob.hull import checked_distributions
from dpopt.smoothed.histogram import SamplingHistogram


def log_exposure(mechanism: SamplingHistogram) -> float:
    """Return ln r, r the chance that a given record is drawn: DP's delta at every epsilon.

    r = T/n without replacement, 1 - (1 - 1/n)^T with it. No database has more: draw the same
    places from x and x'; the outputs differ only if the replaced place is among them, so that
    Pr[M(x) in S] <= Pr[M(x') in S] + r. A database in which a category occurs at most once has
    no less: with a neighbour it makes a pair of which one database has a single record of the
    category and the other none; the output shows the category with probability r from the one
    and 0 from the other. So delta(x) = r wherever min_i H_i <= 1.

    Theorem 5 names T/(n + 1) as a delta that is out of reach with replacement. That holds for
    T <= 2 only: r is concave in T and below T/(n + 1) from T = 3 on.

    Args:
        mechanism: n, T and whether there is replacement.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 3 (iii) and Theorem 5.
    """
    _checks.instance("mechanism", mechanism, SamplingHistogram)
    n, drawn = mechanism.records, mechanism.drawn
    if not mechanism.replacement or drawn == 1:
        return math.log(drawn / n)
    return 0.0 if n == 1 else math.log(-math.expm1(drawn * math.log1p(-1.0 / n)))


def log_lower_bound(mechanism: SamplingHistogram, distributions: npt.ArrayLike) -> float:
    """Return the logarithm of a lower bound of the smoothed delta that holds at every epsilon.

    r Pr[Bin(n, f) <= 1] = r (1 - f)^(n - 1) (1 + (n - 1) f), f the smallest share of a category
    in any of the distributions. Let all records come from that distribution: the category occurs
    at most once with this probability, and delta(x) = r there (`log_exposure`). As f falls the
    rate in n is f to first order, the order of Theorem 3 (i).

    The proof of Theorem 3 (ii) takes unanimous databases and states Pr[x] <= f^n, where it needs
    Pr[x] >= f^n, which is true. Its bound r f^n is below this one, as f <= 1/2.

    Args:
        mechanism: n, T and whether there is replacement.
        distributions: Pi, shape (l, m).

    Raises:
        ParameterError: if the distributions do not fit the mechanism.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 3 (ii).
    """
    _checks.instance("mechanism", mechanism, SamplingHistogram)
    share = float(checked_distributions(distributions, mechanism.categories).min())
    rest = mechanism.records - 1
    rare = rest * math.log1p(-share) + math.log1p(rest * share)
    return log_exposure(mechanism) + min(0.0, rare)


def average_log_delta(records: int, drawn: int) -> float:
    """Return ln delta of the continuous sampling-average: ln(T/n), at every database and epsilon.

    No less: for any x, replace one record by a value X' such that no average with X' equals one
    of the finitely many averages without it; the averages with X' have probability T/n from x'
    and 0 from x. No more: the same coupling as in `log_exposure`. As delta(x) is the same for all
    x, the smoothed delta is T/n too, whatever the distributions. With values on a grid it is less,
    and tends to T/n as the grid gets finer, where averages rarely agree.

    Args:
        records: n, at least 1.
        drawn: T, from 1 to n.

    Raises:
        ParameterError: if an argument is out of range.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Theorem 4.
    """
    n = _checks.integer("records", records, 1)
    return math.log(_checks.integer("drawn", drawn, 1, n) / n)
