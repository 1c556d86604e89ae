"""Subset selection, optimal if all categories are alike, with few sets that form a 2-design.

Subset selection (Ye, Barg 2018) uses all sets of k categories, which are far too many. For linear
queries it suffices that each category, and each pair, is in the same share of weighted sets. Sets
of a circle of n categories with all their n rotations are enough: with c_d(s) the number of
categories of s whose d-th next is in s too, weights w >= 0 with sum_s w_s c_d(s) =
k (k - 1) / (n - 1) for all d make all pairs equally frequent. About n / 2 + 1 out of a number of
random sets have such weights.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from dpopt._errors import SolverError
from dpopt._types import Matrix, Vector
from dpopt.local.optimum import Optimum, Patterns
from dpopt.lp.solution import Status

# Numbers of random sets to try, in multiples of n; allowed residual of their weights, over n.
_TRIED, _MISSED = (3, 10, 30), 1e-12


def alike(gram: Matrix) -> bool:
    """Whether G has equal diagonal entries and equal other entries, exactly."""
    same = np.where(np.eye(len(gram)) > 0, gram[0, 0], gram[0, 1])
    return bool(np.array_equal(gram, same))


def selected(gram: Matrix, exp_epsilon: float) -> Optimum:
    """Return subset selection of the best size as a solution, for categories that are `alike`."""
    n = len(gram)
    least, size = best_subset(n, exp_epsilon, gram)
    sets, weights = even_sets(n, size)
    # turns[i, u] = u - i: the i-th rotation of a set takes its entry at u from there.
    turns = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
    patterns = sets[:, turns].reshape(-1, n)
    theta = np.repeat(weights, n) / (size * exp_epsilon + n - size)
    return Optimum(patterns, theta, np.full(n, least / n), np.full(n, 1 / n), least)


def best_subset(categories: int, exp_epsilon: float, gram: Matrix) -> tuple[float, int]:
    """Return the least F of subset selection for the uniform prior, and the size that attains it.

    M = m I + (n - m) 1 1' / n, since M 1 = n 1, so F depends only on the trace and the sum of G.
    """
    n, e, sizes = categories, exp_epsilon, np.arange(1, categories)
    m = n * sizes * (n - sizes) * (e - 1) ** 2 / ((n - 1) * (sizes * e + n - sizes) ** 2)
    mean = float(gram.sum()) / n
    values = (float(np.trace(gram)) - mean) / m + mean / n
    best = int(values.argmin())
    return float(values[best]), int(sizes[best])


def even_sets(n: int, size: int) -> tuple[Patterns, Vector]:
    """Return sets, shape (sets, n), and weights with sum 1, such that rotations cover pairs evenly.

    The condition is in the docstring of the module.
    """
    rng, category = np.random.default_rng([n, size]), np.arange(n)
    if size in (1, n - 1):
        return ((category == 0) == (size == 1))[None, :], np.ones(1)
    targets = np.append(np.full(n // 2, size * (size - 1) / (n - 1)), 1.0)
    for times in _TRIED:
        sets = rng.random((times * n, n)).argsort(axis=1) < size
        # met[s, d - 1] = c_d(s), the cyclic autocorrelation of each set, for d = 1..n // 2.
        spectrum = np.abs(np.fft.rfft(sets.astype(float), axis=1)) ** 2
        met = np.round(np.fft.irfft(spectrum, n, axis=1))[:, 1 : n // 2 + 1]
        weights, missed = nnls(np.column_stack([met, np.ones(len(sets))]).T, targets)
        if missed < _MISSED * n:
            positive = weights > 0
            return sets[positive], weights[positive] / weights[positive].sum()
    raise SolverError(
        "no sets of categories were found in which all pairs are equally frequent.",
        Status.ITERATION_LIMIT,
    )
