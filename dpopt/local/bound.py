"""A lower bound on the variance of every mechanism, and how its condition is verified.

For any matrix Y, shape (n, queries), and any mechanism whose rows r have sum of r r' / (r . p) = M,
tr(M^-1 G) >= 2 tr(Y'W) - tr(Y'M Y), since |M^-1/2 W - M^1/2 Y|^2 >= 0. With B = Y Y', and a vector
lambda with

    (lambda . s)(s . p) >= s'B s    for all patterns s in {1, e^epsilon}^n,             (*)

tr(Y'M Y) is at most the sum of lambda . r over all rows r, which is sum(lambda), as the rows add up
to 1. So every epsilon-LDP mechanism with any linear unbiased decoder has F >= 2 tr(Y'W) -
sum(lambda). With Y = M^-1 W and the multipliers lambda of the optimum, the bound is tight (Kiefer,
Wolfowitz 1960). If (*) is violated by at most v (1 . s)(s . p), it holds for lambda + v.

Subset selection (Ye, Barg 2018) attains the bound if all categories are alike. It uses all sets of
k categories, which are far too many. For linear queries it suffices that each category, and each
pair, is in the same share of weighted sets. Sets of a circle of n categories with all their n
rotations are enough: with c_d(s) the number of categories of s whose d-th next is in s too, weights
w >= 0 with sum_s w_s c_d(s) = k (k - 1) / (n - 1) for all d make all pairs equally frequent. About
n / 2 + 1 out of a number of random sets have such weights.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from dpopt._errors import SolverError
from dpopt._types import Matrix, Vector
from dpopt.local.optimum import (
    ROUNDING,
    Optimum,
    Patterns,
    information,
    inverted,
    most_missed,
    rows_of,
    slopes,
)
from dpopt.local.symmetry import Symmetry, centred
from dpopt.lp.solution import Status

# Numbers of random sets to try, in multiples of n; allowed residual of their weights, over n.
_TRIED, _MISSED = (3, 10, 30), 1e-12


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on F over all epsilon-LDP mechanisms.

    Attributes:
        value: of the bound.
        how: (*) is verified by symmetry of all categories; by enumerating patterns; or as a sum of
            squares and products of nonnegative terms, by a semidefinite program.
        multipliers: lambda of (*), shape (n,).
    """

    value: float
    how: Literal["symmetry", "enumeration", "semidefinite"]
    multipliers: Vector


def lower_bound(gram: Matrix, exp_epsilon: float, solution: Optimum) -> LowerBound | None:
    """Return the lower bound that follows from a solution's multipliers, for its prior.

    ``gram`` is G, shape (n, n), and ``exp_epsilon`` is rounded up. None if the semidefinite program
    has no solution.
    """
    n, p, least = len(gram), solution.prior, None
    if alike(gram) and np.ptp(p) == 0:
        # F is convex: the mean of a mechanism over all permutations of its categories is as good.
        # Hence M may be m I + c 1 1', as for subset selection (Ye, Barg 2018), which attains the
        # largest m at its best size: F is linear in 1 / m.
        least = best_subset(n, exp_epsilon, gram)[0] * (1 - ROUNDING)
    # Categories up to which `dpopt.verify` enumerates all patterns itself: then lambda must satisfy
    # (*) for all of them also where symmetry proves the bound.
    if least is not None and n > 17:
        return LowerBound(least, "symmetry", solution.multipliers)
    rows = rows_of(solution.patterns, exp_epsilon) * solution.theta[:, None]
    matrix = information(rows, p)
    value, b = slopes(gram, matrix)
    # Categories up to which all patterns, 2^24 of them, are enumerated; time fixes it.
    if n <= 24:
        multipliers = solution.multipliers + max(0.0, most_missed(b, exp_epsilon, solution))
        if least is not None:
            return LowerBound(least, "symmetry", multipliers)
        return LowerBound(2 * value - float(multipliers.sum()), "enumeration", multipliers)
    # Of G = G' + 1 v' + v 1', the B of G' has the symmetries of G' and p, up to rounding: its mean
    # over them is taken. With x = M^-1 v, and M^-1 1 = p up to rounding, s'B s is that of G' plus
    # 2 (s . p)(s . x).
    inner, shift = centred(gram, p)
    symmetry, inverse = Symmetry.of(inner, p), inverted(matrix)
    centred_b = inverse @ inner @ inverse
    mean = np.mean([centred_b[np.ix_(move, move)] for move in symmetry.moves], axis=0)
    multipliers = semidefinite(mean, exp_epsilon, p, symmetry)
    if multipliers is None:
        return None
    side = inverse @ shift
    # What remains of B has eigenvalues of at most its largest row sum of absolute values.
    remainder = b - mean - np.outer(p, side) - np.outer(side, p)
    missed = float(np.abs(remainder).sum(axis=1).max()) / float(p.min())
    multipliers = multipliers + 2 * side + missed
    return LowerBound(2 * value - float(multipliers.sum()), "semidefinite", multipliers)


def semidefinite(b: Matrix, exp_epsilon: float, prior: Vector, symmetry: Symmetry) -> Vector | None:
    """Return lambda of least sum such that (*) is a sum of squares and nonnegative products.

    With s = 1 + y and y in {0, g}^n, g = ratio - 1, (lambda . s)(s . p) - s'B s is to be

        [1; y]'P [1; y] + sum_i d_i y_i (y_i / g - 1)
            + sum_{i < j} (A_ij y_i y_j + N_ij (1 - y_i / g)(1 - y_j / g))
            + sum_{i != j} C_ij y_i (1 - y_j / g)

    with P positive semidefinite and A, C, N >= 0. A semidefinite program finds them, with equal
    values for categories and pairs that a symmetry exchanges, so that P is block diagonal. P is
    then recomputed, and if it is not quite semidefinite, lambda is increased.

    Returns:
        lambda, shape (n,); None if the solver found no solution.
    """
    import cvxpy as cp

    scale, n = float(np.trace(b)) * exp_epsilon**2 / len(b), len(b)
    ones, eye = np.ones((n, 1)), np.eye(n)
    # s, y and 1 - y / g as functions of [1; y].
    s, y = np.hstack([ones, eye]), np.hstack([0.0 * ones, eye])
    w = np.hstack([ones, -eye / (exp_epsilon - 1.0)])
    i, j = np.mgrid[:n, :n]
    # A pair (i, j) is coded as i * n + j; its orbit is named by the least code.
    pairs = (symmetry.moves[:, i] * n + symmetry.moves[:, j]).min(axis=0)
    either = np.minimum(pairs, pairs.T)
    orbit = np.unique(symmetry.moves.min(axis=0), return_inverse=True)[1].ravel()

    def of_pairs(codes: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
        """Return nonnegative numbers, one for each code, and 0 on the diagonal."""
        # No code is that of the diagonal alone: a variable without effect would grow without end.
        distinct, apart = np.unique(codes[eye == 0], return_inverse=True)
        number = np.zeros((n, n), dtype=np.intp)
        number[eye == 0] = apart.ravel()
        free = cp.Variable(distinct.size, nonneg=True)[number.ravel()]
        return cp.multiply(1.0 - eye, cp.reshape(free, (n, n), order="C"))

    def terms(s: Any, w: Any, p: Any, b: Any, lam: Any, d: Any, *of_pairs: Any) -> list[Any]:  # noqa: ANN401
        """Return the terms of P before it is made symmetric; the first two are added."""
        both, neither, one = of_pairs
        return [
            s.T @ lam @ p @ s,
            y.T @ d @ w,
            s.T @ b @ s,
            y.T @ both @ y / 2,
            w.T @ neither @ w / 2,
            y.T @ one @ w,
        ]

    def summed(terms: list[Any]) -> Any:  # noqa: ANN401
        """Return P."""
        half = (terms[0] + terms[1] - sum(terms[2:])) / 2
        return half + half.T

    lam, d = (cp.Variable(orbit.max() + 1)[orbit] for _ in range(2))
    p, column = prior[None, :], cp.reshape(lam, (n, 1), order="C")
    unknown = (column, cp.diag(d), of_pairs(either), of_pairs(either), of_pairs(pairs))
    form = summed(terms(s, w, p, b / scale, *unknown))
    held = []
    for index, block in enumerate(symmetry.blocks):
        basis = np.vstack([np.zeros((1, block.shape[1])), block])
        if index == 0:
            basis = np.hstack([np.eye(n + 1, 1), basis])
        held.append(basis.T @ form @ basis >> 0)
    try:
        with warnings.catch_warnings():
            # A warning of inaccuracy does not matter: errors are compensated for below.
            warnings.simplefilter("ignore", UserWarning)
            cp.Problem(cp.Minimize(cp.sum(lam)), held).solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return None
    if lam.value is None:
        return None
    # Only A, N and C are nonnegative.
    known = [np.asarray(each.value) for each in unknown]
    known[2:] = [np.maximum(each, 0.0) for each in known[2:]]
    sizes = np.sum(terms(s, np.abs(w), p, np.abs(b) / scale, *map(np.abs, known)), axis=0)
    size = float((sizes + sizes.T).sum(axis=1).max()) / 2
    lowest = float(np.linalg.eigvalsh(summed(terms(s, w, p, b / scale, *known)))[0])
    # Adding c to all of lambda adds c (1 . s)(s . p) >= c min(p) |s|^2, and |s|^2 is at least
    # n / (n + 1) of |[1; y]|^2.
    added = max(0.0, ROUNDING * n * size - lowest) * (n + 1) / n / float(prior.min())
    return scale * (known[0].ravel() + added)


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
