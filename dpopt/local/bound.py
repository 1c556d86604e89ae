"""What no mechanism can pass: a lower bound of the variance, and how it is known to hold.

For any matrix Y, shape (n, queries), and any mechanism of rows r with r r' / (r . p) summing to M,
tr(M^-1 G) >= 2 tr(Y'W) - tr(Y'M Y), since |M^-1/2 W - M^1/2 Y|^2 >= 0. With B = Y Y', and a vector
lambda with

    (lambda . s)(s . p) >= s'B s    for all patterns s in {1, e^epsilon}^n,             (*)

tr(Y'M Y) is at most the sum of lambda . r over all rows, which is that of lambda. So every
epsilon-LDP mechanism with any linear unbiased decoder has F >= 2 tr(Y'W) - sum(lambda). At the
optimum, Y = M^-1 W and the multipliers lambda, it is tight (Kiefer, Wolfowitz 1960). Where (*) is
missed by v (1 . s)(s . p) at most, lambda + v is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from dpopt._types import Matrix, Vector
from dpopt.local.baselines import best_subset_selection
from dpopt.local.optimum import Optimum, Priced, Search, information, rows_of, slopes, squares

How = Literal["symmetry", "enumeration", "semidefinite", "unproved"]
"""How (*) is known: for all letters are alike, pattern by pattern, as a sum of squares and products
of what is at least 0; or not: by local search alone."""

# Up to so many letters all patterns are looked at: 2^20 of them.
ENUMERATED = 20
# Letters in the lower half of a pattern, which is tabulated.
_LOW = 10
# Rounding of s'B s, a sum of n^2 products, as a share of the sum of their sizes; and of an
# eigenvalue, as a share of the largest.
_ROUNDING = 2.0**-48


@dataclass(frozen=True)
class LowerBound:
    """No mechanism has a smaller F.

    Attributes:
        value: of F.
        how: it is known.
        multipliers: lambda of (*).
    """

    value: float
    how: How
    multipliers: Vector


def lower_bound(gram: Matrix, ratio: float, found: Optimum) -> LowerBound:
    """Return the bound that a solution proves.

    Args:
        gram: G, shape (n, n).
        ratio: e^epsilon, rounded up.
        found: the solution; of the worst prior, the bound is about this prior.
    """
    n, p = len(gram), found.prior
    rows = rows_of(found.patterns, ratio) * found.theta[:, None]
    value, b = slopes(gram, information(rows, p))
    how: How = "enumeration" if n <= ENUMERATED else "unproved"
    if n <= ENUMERATED:
        missed = enumerated(b, ratio, found)
    else:
        patterns, excess = Search(n, ratio).found(b, found)
        missed = float(np.max(excess / rows_of(patterns, ratio).sum(axis=1)))
    multipliers = found.multipliers + max(0.0, missed)
    alike = exchangeable(gram, ratio, p)
    if alike is not None:
        return LowerBound(alike, "symmetry", multipliers)
    proved = semidefinite(b, ratio, p) if how == "unproved" else None
    if proved is not None:
        how, multipliers = "semidefinite", proved
    return LowerBound(2 * value - float(multipliers.sum()), how, multipliers)


def exchangeable(gram: Matrix, ratio: float, prior: Vector) -> float | None:
    """Return the least F where all letters are alike, G = a + b [u = v], p uniform; else None.

    The mean of a mechanism over all orders of its letters is as good, for F is convex; so M may be
    a multiple of the identity plus one of ones, as of subset selection (Ye, Barg 2018), where M is
    largest for the best size: F is linear in the inverse of the multiple.
    """
    n = len(gram)
    other = gram[0, 1]
    if not np.array_equal(gram, np.where(np.eye(n) > 0, gram[0, 0], other)) or np.ptp(prior) > 0:
        return None
    # One part of F is the same for every mechanism, for M 1 = n 1.
    least = best_subset_selection(n, ratio, gram) + float(np.trace(gram)) / n
    return least * (1 - _ROUNDING)


def enumerated(b: Matrix, ratio: float, at: Priced) -> float:
    """Return max over all patterns of (s'B s / (s . p) - lambda . s) / (1 . s), rounded up.

    A pattern is a lower half of letters and an upper one: of 2^10 lower halves everything is
    tabulated, and one product of matrices adds what both halves have in common.
    """
    n, p, lam = len(b), at.prior, at.multipliers
    split = min(n, _LOW)
    low, high = (
        np.where((np.arange(1 << size)[:, None] >> np.arange(size)) & 1 > 0, ratio, 1.0)
        for size in (split, n - split)
    )
    below, above = slice(split), slice(split, n)
    # s'B s, and what rounding may have lost of it.
    forms = [
        (
            2 * low @ form[below, above],
            squares(low, form[below, below]),
            squares(high, form[above, above]),
        )
        for form in (b, _ROUNDING * np.abs(b))
    ]
    worst = -np.inf
    for start in range(0, len(high), 64):
        part = slice(start, start + 64)
        block = high[part]
        square = sum(
            crossed @ block.T + lower[:, None] + upper[part] for crossed, lower, upper in forms
        )
        mass = (low @ p[below])[:, None] + block @ p[above]
        paid = (low @ lam[below])[:, None] + block @ lam[above]
        entries = low.sum(axis=1)[:, None] + block.sum(axis=1)
        worst = max(worst, float(np.max((square / mass - paid) / entries)))
    return worst + _ROUNDING * float(np.abs(lam).max())


def semidefinite(b: Matrix, ratio: float, prior: Vector) -> Vector | None:
    """Return lambda of least sum for which (*) is a sum of squares and of products.

    With s = 1 + (ratio - 1) x and x in {0, 1}^n, (lambda . s)(s . p) - s'B s is to be

        [1; x]'P [1; x] + sum_i d_i (x_i^2 - x_i) + x'A x + x'C (1 - x) + (1 - x)'D (1 - x)

    with P positive semidefinite and A, C, D >= 0. A solver finds all of them; P is computed again,
    and what it lacks is made up for by a larger lambda.

    Returns:
        lambda; None if the solver found none.
    """
    import cvxpy as cp

    n, gain, scale = len(b), ratio - 1.0, float(np.trace(b))
    square = b / scale
    one = np.ones(n)

    def left(lam: Any) -> tuple[Any, Any, Any]:  # noqa: ANN401
        # Constant, half of the linear, and quadratic part of (lambda . s)(s . p) - s'B s.
        total = cp.sum(lam) if isinstance(lam, cp.Expression) else lam.sum()
        linear = gain / 2 * (lam + total * prior) - gain * (square @ one)
        lam_column = (
            cp.reshape(lam, (n, 1), order="C") if isinstance(lam, cp.Expression) else lam[:, None]
        )
        product = lam_column @ prior[None, :]
        return total - square.sum(), linear, gain**2 * ((product + product.T) / 2 - square)

    def right(d: Any, both: Any, one_of: Any, none: Any, diag: Any) -> tuple[Any, Any, Any]:  # noqa: ANN401
        linear = (one_of @ one - d) / 2 - none @ one
        return one @ none @ one, linear, diag(d) + both - (one_of + one_of.T) / 2 + none

    lam, d, psd = cp.Variable(n), cp.Variable(n), cp.Variable((n + 1, n + 1), PSD=True)
    both, none = (cp.Variable((n, n), symmetric=True) for _ in range(2))
    parts = (both, cp.Variable((n, n)), none)
    sides = zip(left(lam), right(d, *parts, cp.diag), strict=True)
    constant, linear, quadratic = (a - c for a, c in sides)
    rows = [psd[0, 0] == constant, psd[0, 1:] == linear, psd[1:, 1:] == quadratic]
    problem = cp.Problem(cp.Minimize(cp.sum(lam)), [*rows, *(part >= 0 for part in parts)])
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return None
    if lam.value is None:
        return None
    at_least: list[Matrix] = [np.maximum(cast(Matrix, part.value), 0.0) for part in parts]
    a, c, none = at_least
    sides = zip(left(lam.value), right(d.value, a, c, none, np.diag), strict=True)
    constant, linear, quadratic = (a - c for a, c in sides)
    whole = np.block([[constant, linear], [linear[:, None], quadratic]])
    lowest = np.linalg.eigvalsh((whole + whole.T) / 2)
    short = -float(lowest[0]) + _ROUNDING * n * max(float(np.abs(lowest).max()), 1.0)
    # A multiple of ones adds at least its n-fold, and |[1; x]|^2 is at most n + 1.
    return scale * (lam.value + max(0.0, short) * (n + 1) / n)
