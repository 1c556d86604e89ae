"""The expectation of V(H) over all compositions of n binary records, and its certified maximum.

With n1 records of share ``high`` and n - n1 of share ``low`` of ones, the number of ones is
H = Bin(n1, high) + Bin(n - n1, low), and E_{n1} = E V(H). Everything is in logarithms.

Precision: each value is a sum of positive terms, so that relative errors of the terms are those
of the sum. A term passes through O(sqrt n) multiplications, and logarithms of size x carry a
rounding of x 2^-53 each; `allowance` bounds both in the worst case. What the windows cut off
is bounded by Chernoff's inequality and at most e^-37 of the value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.prob.expectation import Sequence, allowance, expectation
from dpopt.prob.search import CompositionMaximum, Search
from dpopt.prob.subdivision import all_compositions
from dpopt.prob.sum_law import Share, share_of, sum_law
from dpopt.prob.vshape import is_v_shaped

ALL_UP_TO = 1024
"""Largest n for which every composition is evaluated if V is not V-shaped."""

_LEAST_SHARE = 1e-250
_LEAST_RATIO = 1e-266


def log_expected(log_values: npt.ArrayLike, share: float | Share) -> float:
    """Return log E V(Bin(n, share)).

    Args:
        log_values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        share: probability of a one, in [0, 1].

    Returns:
        The logarithm, -inf for 0; rounding at most `allowance`.

    Raises:
        ParameterError: if an entry is nan or +inf, or the share is outside [0, 1].
    """
    return log_composition(log_values, share, share, 0)


def log_composition(
    log_values: npt.ArrayLike, low: float | Share, high: float | Share, ones: int
) -> float:
    """Return log E V(Bin(n1, high) + Bin(n - n1, low)) of one composition.

    O(n^{1/2}) probabilities for each stretch that matters, and O(n) comparisons to find it.

    Args:
        log_values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        low: in [0, 1].
        high: in [low, 1].
        ones: n1, the number of records of share ``high``, in 0..n.

    Returns:
        The logarithm, -inf for 0; rounding at most `allowance`.

    Raises:
        ParameterError: if an argument is outside its range.
    """
    values, left, right = _checked(log_values, low, high)
    n1 = _checks.integer("ones", ones, 0, values.size - 1)
    return expectation(Sequence(values), sum_law(left, right, values.size - 1 - n1, n1))


def log_all_compositions(
    log_values: npt.ArrayLike, low: float | Share, high: float | Share
) -> Vector:
    """Return log E_{n1} for n1 = 0..n in O(n^2) positive terms.

    p -> E V(Bin(n, p)) is a polynomial with Bernstein coefficients V(H); E_{n1} is its blossom
    at n1 times ``high`` and n - n1 times ``low``, that is its n1-th Bezier coefficient on
    [low, high]. De Casteljau's scheme at ``high`` gives those on [0, high], and a second one at
    low/high those on the right-hand part.

    Args:
        log_values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        low: in [0, 1].
        high: in [low, 1].

    Returns:
        Entry n1 is log E_{n1}, shape (n + 1,); rounding at most `allowance` with n steps.

    Raises:
        ParameterError: if an argument is outside its range.
    """
    values, left, right = _checked(log_values, low, high)
    return all_compositions(values, left, right)


def maximise(
    log_values: npt.ArrayLike,
    low: float | Share,
    high: float | Share,
    *,
    most_evaluations: int = 20_000,
) -> CompositionMaximum:
    """Return the maximum of E_{n1} over n1 = 0..n, with a bound on all compositions.

    *V-shaped V.* E_{n1+1} - E_{n1} = (high - low) E[V(S + 1) - V(S)] with
    S = Bin(n1, high) + Bin(n - 1 - n1, low). Moving one record of S from ``low`` to ``high``
    replaces r * Bernoulli(low) by r * Bernoulli(high), r the law of the others. r is log-concave,
    so r(s - 1)/r(s) rises with s, and with it the ratio of the two laws,
    ((1 - high) r(s) + high r(s - 1)) / ((1 - low) r(s) + low r(s - 1)): the laws of S are totally
    positive of order 2 in (n1, s). Hence the expectation of a function that changes sign once,
    from - to +, changes sign at most once in n1, from - to + (variation diminution). So E_{n1} is
    V-shaped and its maximum is at n1 = 0 or n.

    *Any V.* For n1 in [a, b] and a V-shaped Vbar >= V, E_{n1} <= max(E_a[Vbar], E_b[Vbar]).
    All compositions of [a, b] share a records of ``high`` and n - b of ``low``; averaging V over
    these leaves W(h), h = 0..b - a, and the E_{n1} are the compositions of W on b - a records.
    The majorant of W bounds them as that of V does; W is smooth where V is not. Intervals are
    halved, the largest bound first, until none exceeds the best value by more than twice the
    allowance; on short ones all compositions of W are computed.

    Args:
        log_values: log V(H), H = 0..n; -inf allowed, shape (n + 1,).
        low: smallest share of ones, in [0, 1].
        high: largest share of ones, in [low, 1].
        most_evaluations: at least 2; the search stops, uncertified, after about as many.

    Returns:
        The maximum; ``certified`` unless the search stopped early.

    Raises:
        ParameterError: if an argument is outside its range.
    """
    values, left, right = _checked(log_values, low, high)
    most = _checks.integer("most_evaluations", most_evaluations, 2)
    records = values.size - 1
    if left == right or records == 0:
        only = log_expected(values, left)
        return _maximum(only, 0, 1, records, "one composition")
    if is_v_shaped(values):
        sequence = Sequence(values)
        ends = [
            expectation(sequence, sum_law(left, right, records - n1, n1)) for n1 in (0, records)
        ]
        best = int(np.argmax(ends))
        return _maximum(ends[best], best * records, 2, records, "ends of a V-shape")
    if records <= ALL_UP_TO:
        every = all_compositions(values, left, right)
        best = int(np.argmax(every))
        return _maximum(
            float(every[best]), best, records + 1, records, "every composition", records
        )
    return Search(values, left, right).run(most)


def _maximum(
    log_value: float, ones: int, evaluated: int, records: int, method: str, steps: int = 0
) -> CompositionMaximum:
    """Return the certified maximum of a method that covers every composition."""
    bound = log_value + allowance(records, log_value, steps)
    return CompositionMaximum(log_value, ones, evaluated, bound, True, method)


def _checked(
    log_values: npt.ArrayLike, low: float | Share, high: float | Share
) -> tuple[Vector, Share, Share]:
    """Return the arguments as an array and shares, or say which one is out of range."""
    try:
        values = np.asarray(log_values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("log_values is not numeric; it must be a vector of numbers.") from None
    if values.ndim != 1 or values.size == 0:
        raise ParameterError(
            f"log_values has shape {values.shape}; it must be a vector of n + 1 entries, n >= 0."
        )
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ParameterError(
            f"log_values[{place}] is {values[place]}; it must be a finite number or -inf."
        )
    if not isinstance(low, Share):
        low = _checks.real("low", low, 0.0, 1.0)
    if not isinstance(high, Share):
        high = _checks.real("high", high, share_of(low).one, 1.0)
    left, right = share_of(low), share_of(high)
    for name, share in (("low", left), ("high", right)):
        for part in share:
            if 0.0 < part < _LEAST_SHARE:
                raise ParameterError(f"{name} is {part}; it must be 0 or at least {_LEAST_SHARE}.")
    if 0.0 < left.one * right.zero < _LEAST_RATIO:
        raise ParameterError(
            f"low is {left.one} and high 1 - {right.zero}; the product of these two small numbers "
            f"must be 0 or at least {_LEAST_RATIO}."
        )
    return values, left, right
