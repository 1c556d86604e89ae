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

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt._types import Matrix, Vector
from dpopt.local.optimum import (
    ROUNDING,
    Optimum,
    Search,
    information,
    inverted,
    most_missed,
    rows_of,
    slopes,
)
from dpopt.local.subsets import alike, best_subset
from dpopt.local.symmetry import Symmetry, centred

How = Literal["symmetry", "enumeration", "semidefinite", "unproved"]
"""How (*) is known: for all categories are alike, pattern by pattern, as a sum of squares and
products of what is at least 0; or not: by local search alone."""

# Up to so many categories all patterns are looked at: 2^24 of them.
ENUMERATED = 24
# Up to so many categories `dpopt.verify` looks at all patterns itself, and lambda has to pay for
# them.
_SHOWN = 17


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
    n, p, least = len(gram), found.prior, None
    if alike(gram) and np.ptp(p) == 0:
        # The mean of a mechanism over all orders of its categories is as good, for F is convex; so
        # M may be a multiple of the identity plus one of ones, as of subset selection (Ye, Barg
        # 2018), where M is largest for the best size: F is linear in the inverse of the multiple.
        least = best_subset(n, ratio, gram)[0] * (1 - ROUNDING)
    if least is not None and n > _SHOWN:
        return LowerBound(least, "symmetry", found.multipliers)
    rows = rows_of(found.patterns, ratio) * found.theta[:, None]
    value, b = slopes(gram, information(rows, p))
    if n <= ENUMERATED:
        multipliers = found.multipliers + max(0.0, most_missed(b, ratio, found))
        if least is not None:
            return LowerBound(least, "symmetry", multipliers)
        return LowerBound(2 * value - float(multipliers.sum()), "enumeration", multipliers)
    # B of the centred G is as symmetric as the queries.
    proved = _of_the_centred(gram, information(rows, p), ratio, p)
    if proved is not None:
        return LowerBound(2 * value - float(proved.sum()), "semidefinite", proved)
    patterns, excess = Search(n, ratio).found(b, found)
    missed = float(np.max(excess / rows_of(patterns, ratio).sum(axis=1)))
    multipliers = found.multipliers + max(0.0, missed)
    return LowerBound(2 * value - float(multipliers.sum()), "unproved", multipliers)


def _of_the_centred(gram: Matrix, matrix: Matrix, ratio: float, prior: Vector) -> Vector | None:
    """Return lambda of `semidefinite` for G = G' + 1 v' + v 1' by way of that for G'.

    Of M the mean over the orders that leave G' and p alike takes its place, which is M itself up to
    rounding; with x = M^-1 v, and M^-1 1 = p up to rounding, s'B s is s'B's + 2 (s . p)(s . x).
    """
    inner, shift = centred(gram, prior)
    symmetry = Symmetry.of(inner, prior)
    inverse = inverted(matrix)
    b, whole = inverse @ inner @ inverse, inverse @ gram @ inverse
    mean = np.mean([b[np.ix_(move, move)] for move in symmetry.moves], axis=0)
    found = semidefinite(mean, ratio, prior, symmetry)
    if found is None:
        return None
    side = inverse @ shift
    # Of what is left, no eigenvalue is above its largest sum of sizes: |s|^2 times it at most.
    rest = whole - mean - np.outer(prior, side) - np.outer(side, prior)
    missed = float(np.abs(rest).sum(axis=1).max()) / float(prior.min())
    return found + 2 * side + missed


def semidefinite(b: Matrix, ratio: float, prior: Vector, symmetry: Symmetry) -> Vector | None:
    """Return lambda of least sum for which (*) is a sum of squares and of products.

    With s = 1 + y and y in {0, g}^n, g = ratio - 1, (lambda . s)(s . p) - s'B s is to be

        [1; y]'P [1; y] + sum_i d_i y_i (y_i / g - 1)
            + sum_{i < j} (A_ij y_i y_j + N_ij (1 - y_i / g)(1 - y_j / g))
            + sum_{i != j} C_ij y_i (1 - y_j / g)

    with P positive semidefinite and A, C, N >= 0. A solver finds all of them, the same for
    categories and pairs that some order exchanges, so that P falls into blocks; P is computed
    again, and what it lacks is made up for by a larger lambda.

    Args:
        b: B, shape (n, n).
        ratio: e^epsilon, rounded up.
        prior: p.
        symmetry: of B and p.

    Returns:
        lambda; None if the solver found none.
    """
    import cvxpy as cp

    scale = float(np.trace(b)) * ratio**2 / len(b)
    square, gain, n = b / scale, ratio - 1.0, len(b)
    parts = _parts(gain, prior, symmetry)
    sizes = [part.shape[1] for part in parts]
    x = cp.Variable(sum(sizes))
    start = np.zeros((n + 1, n + 1))
    start[0, 0], start[0, 1:] = -square.sum(), -square.sum(axis=1)
    start[1:, 0], start[1:, 1:] = start[0, 1:], -square
    linear = sp.hstack(parts, format="csr")
    free = sizes[0] + sizes[1]
    rows: list[Any] = [x[free:] >= 0]
    for place, block in enumerate(symmetry.blocks):
        turn = sp.csr_array(
            sp.block_diag([np.eye(1), block])
            if place == 0
            else np.vstack([np.zeros(block.shape[1]), block])
        )
        k = turn.shape[1]
        whole = sp.kron(turn, turn, format="csr").T @ linear
        at = turn.T @ start @ turn
        rows.append(cp.reshape(whole @ x + at.ravel(), (k, k), order="C") >> 0)
    weights = np.bincount(_orbits(symmetry.moves)).astype(float)
    try:
        with warnings.catch_warnings():
            # That the last digits may be wrong is made up for below.
            warnings.simplefilter("ignore", UserWarning)
            cp.Problem(cp.Minimize(weights @ x[: sizes[0]]), rows).solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return None
    if x.value is None:
        return None
    found = np.asarray(x.value).copy()
    found[free:] = np.maximum(found[free:], 0.0)
    whole = start + (linear @ found).reshape(n + 1, n + 1)
    size = np.abs(start) + (abs(linear) @ np.abs(found)).reshape(n + 1, n + 1)
    lowest = float(np.linalg.eigvalsh((whole + whole.T) / 2)[0])
    short = ROUNDING * n * float(np.abs(size).sum(axis=1).max()) - lowest
    # A multiple c of ones adds c (1 . s)(s . p), at least c p_u |s|^2, which is n / (n + 1) of
    # c p_u |[1; y]|^2.
    added = max(0.0, short) * (n + 1) / n / float(prior.min())
    return scale * (found[_orbits(symmetry.moves)] + added)


def _orbits(moves: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each category the number of its orbit."""
    return np.unique(moves.min(axis=0), return_inverse=True)[1].ravel()


def _parts(gain: float, prior: Vector, symmetry: Symmetry) -> list[sp.csr_array]:
    """Return how P depends on lambda, d, A, C and N, one for each orbit: shape ((n + 1)^2, orbits).

    P is what (lambda . s)(s . p) has beyond the sums of products; B is left out.
    """
    n = len(prior)
    i, j = (side.ravel() for side in np.mgrid[:n, :n])
    u = np.arange(n)
    # Of each category or pair, the first of its orbit in the order of numbers.
    pairs = (symmetry.moves[:, i] * n + symmetry.moves[:, j]).min(axis=0)
    back = (symmetry.moves[:, j] * n + symmetry.moves[:, i]).min(axis=0)
    apart = i != j
    categories = _orbits(symmetry.moves)
    ordered = np.unique(pairs[apart], return_inverse=True)[1].ravel()
    unordered = np.unique(np.minimum(pairs, back)[apart], return_inverse=True)[1].ravel()
    i, j = i[apart], j[apart]

    def placed(terms: list[tuple[Any, Any, Any, Any]]) -> sp.csr_array:
        """Sum terms (row, column, orbit, value) of P, each made symmetric."""
        row, column, orbit, value = (
            np.concatenate([np.broadcast_to(term[k], np.shape(term[2])) for term in terms])
            for k in range(4)
        )
        both = np.concatenate([row * (n + 1) + column, column * (n + 1) + row])
        values = np.concatenate([value, value]) / 2
        shape = ((n + 1) ** 2, int(orbit.max()) + 1)
        return sp.csr_array((values, (both, np.concatenate([orbit, orbit]))), shape=shape)

    every, times = np.repeat(u, n), np.tile(u, n)
    return [
        # (lambda . s)(p . s) = sum_u lambda_u (1 + y_u)(1 + p . y)
        placed(
            [
                (0, 0, categories, 1.0),
                (0, u + 1, categories, 1.0),
                (0, times + 1, categories[every], prior[times]),
                (every + 1, times + 1, categories[every], prior[times]),
            ]
        ),
        placed([(u + 1, u + 1, categories, -1 / gain), (0, u + 1, categories, 1.0)]),
        placed([(i + 1, j + 1, unordered, -0.5)]),
        placed([(0, i + 1, ordered, -1.0), (i + 1, j + 1, ordered, 1 / gain)]),
        placed(
            [
                (0, 0, unordered, -0.5),
                (0, i + 1, unordered, 0.5 / gain),
                (0, j + 1, unordered, 0.5 / gain),
                (i + 1, j + 1, unordered, -0.5 / gain**2),
            ]
        ),
    ]
