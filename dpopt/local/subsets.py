"""Categories that are all alike: subset selection is best, of a few sets that meet evenly.

Of subset selection (Ye, Barg 2018) only this matters for linear queries: each category is in as
many sets as any other, and so is each pair. All sets of k categories are far too many; sets around
a circle of n categories, each with all its n turns, are enough. With c_d(s) the categories of s
whose d-th next is in s too, weights w >= 0 of sets s with sum_s w_s c_d(s) = k (k - 1) / (n - 1)
for all d make each pair as likely as any other; some n / 2 + 1 of random sets have such weights.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from dpopt._errors import SolverError
from dpopt._types import Matrix, Vector
from dpopt.local.optimum import Optimum, Patterns
from dpopt.lp.solution import Status

# Random sets that are tried, in multiples of n; what their weights may miss.
_TRIED, _MISSED = (3, 10, 30), 1e-12


def alike(gram: Matrix) -> bool:
    """Whether G = a + b [u = v], exactly."""
    same = np.where(np.eye(len(gram)) > 0, gram[0, 0], gram[0, 1])
    return bool(np.array_equal(gram, same))


def selected(gram: Matrix, ratio: float) -> Optimum:
    """Return subset selection of the best size as a solution, for categories that are `alike`.

    It is best for uniform categories, and these are the worst ones for it.

    Raises:
        SolverError: if no sets were found that meet evenly.
    """
    n = len(gram)
    least, size = best_subset(n, ratio, gram)
    sets, weights = even_sets(n, size)
    turns = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
    patterns = sets[:, turns].reshape(-1, n)
    theta = np.repeat(weights, n) / (size * ratio + n - size)
    return Optimum(patterns, theta, np.full(n, least / n), np.full(n, 1 / n), least)


def subset_value(categories: int, ratio: float, gram: Matrix, size: int) -> float:
    """Return F of subset selection of a size, for uniform data, in closed form.

    M is a multiple of the identity plus one of the matrix of ones, so that of G only its trace and
    its sum count.

    Args:
        categories: n.
        ratio: e^epsilon.
        gram: G, shape (n, n).
        size: of the sets, in 1..n-1.
    """
    n, e, k = categories, ratio, size
    # M = m I + (n - m) 1 1' / n, for M 1 = n 1.
    m = n * k * (n - k) * (e - 1) ** 2 / ((n - 1) * (k * e + n - k) ** 2)
    mean = float(gram.sum()) / n
    return (float(np.trace(gram)) - mean) / m + mean / n


def best_subset(categories: int, ratio: float, gram: Matrix) -> tuple[float, int]:
    """Return the least `subset_value` of any size, and that size."""
    return min((subset_value(categories, ratio, gram, k), k) for k in range(1, categories))


def even_sets(n: int, size: int) -> tuple[Patterns, Vector]:
    """Return sets around a circle, shape (sets, n), and weights that sum to 1; see the top.

    Raises:
        SolverError: if none were found.
    """
    rng, place = np.random.default_rng([n, size]), np.arange(n)
    if size in (1, n - 1):
        return ((place == 0) == (size == 1))[None, :], np.ones(1)
    asked = np.append(np.full(n // 2, size * (size - 1) / (n - 1)), 1.0)
    for times in _TRIED:
        sets = rng.random((times * n, n)).argsort(axis=1) < size
        spectrum = np.abs(np.fft.rfft(sets.astype(float), axis=1)) ** 2
        met = np.round(np.fft.irfft(spectrum, n, axis=1))[:, 1 : n // 2 + 1]
        weights, missed = nnls(np.column_stack([met, np.ones(len(sets))]).T, asked)
        if missed < _MISSED * n:
            kept = weights > 0
            return sets[kept], weights[kept] / weights[kept].sum()
    raise SolverError("no sets of categories were found that meet evenly.", Status.ITERATION_LIMIT)
