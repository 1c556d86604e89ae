"""The best linear unbiased decoder of a kernel, its estimates and their variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._threads import one_blas_thread
from dpopt._types import Matrix, Vector, frozen
from dpopt.local.optimum import by_prior, information, inverted, slopes, squares
from dpopt.lp.solution import Status

# Newton steps to the worst prior; gaps over F at which it stops, and which it must reach.
_STEPS, _LEAST, _ENOUGH = 200, 1e-13, 1e-9


@dataclass(frozen=True)
class Groups:
    """Groups of categories that are treated as one category, with the mean by the prior."""

    # First category of each group; group of each category.
    first: npt.NDArray[np.intp]
    group: npt.NDArray[np.intp]

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.first)

    def sums(self, values: Vector) -> Vector:
        """Return the sum over each group, shape (groups,)."""
        return np.bincount(self.group, values, self.size).astype(np.float64)

    def shares(self, prior: Vector) -> Matrix:
        """Return p_u over the prior of u's group, in that group's column, shape (n, groups)."""
        shares = np.zeros((len(prior), self.size))
        shares[np.arange(len(prior)), self.group] = prior / self.sums(prior)[self.group]
        return shares


def groups_of(columns: Matrix) -> Groups:
    """Return the groups of categories with equal columns, ordered by their first categories."""
    _, first, group = np.unique(columns.T, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Groups(first[order], np.argsort(order)[group.ravel()])


def category_variances(rows: Matrix, gram: Matrix, prior: Vector) -> Vector:
    """Return sum_o Q[o, u] |V_o|^2 - |W_u|^2 for each category u: the variance of one person."""
    groups, rows, merged = _merged(rows, gram)
    p = groups.sums(prior)
    scales = np.sqrt(rows @ p)
    # With QR, M = R'R, and with G = L'L, |V_o| = |L R^-1 U_o| / scale: the condition number is that
    # of R, the root of that of M.
    u, r = np.linalg.qr(rows / scales[:, None])
    values, vectors = np.linalg.eigh(merged)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    norms = ((np.linalg.solve(r.T, root.T).T @ u.T) ** 2).sum(axis=0) / scales**2
    return (norms @ rows - np.diagonal(merged))[groups.group]


def _merged(rows: Matrix, gram: Matrix) -> tuple[Groups, Matrix, Matrix]:
    """Return the groups of equal columns of Q, and Q and G with one category of each group."""
    groups = groups_of(rows)
    merged = gram[np.ix_(groups.first, groups.first)]
    difference = np.abs(gram - merged[np.ix_(groups.group, groups.group)]).max()
    # Rounding error of an entry of G, over its trace.
    if difference > 1e-12 * np.trace(gram):
        raise SolverError(
            "the mechanism's outputs do not distinguish some category.", Status.NUMERICAL
        )
    return groups, rows[np.ix_(rows[:, 0] > 0, groups.first)], merged


@one_blas_thread
def worst_prior(rows: Matrix, gram: Matrix) -> Vector:
    """Return the distribution p that maximises the best decoder's variance, which is concave in p.

    At the optimum no category's variance is above the mean under p, so p's decoder is the best one
    against the worst data. Solved by an interior point method, as the mechanism itself is.
    """
    groups, rows, gram = _merged(rows, gram)
    n = len(gram)
    p: Vector = np.full(n, 1 / n)
    # Scaled by F, which is far above tr G for a small epsilon: the barrier is relative to F.
    gram = gram / slopes(gram, information(rows, p))[0]
    barrier = 1.0
    slack = np.full(n, float(n))
    best: Vector | None = None
    for _ in range(_STEPS):
        d = rows @ p
        matrix = information(rows, p)
        inverse, b = inverted(matrix), slopes(gram, matrix)[1]
        # Rows include their weight: they are theta s, so theta = 1 in the formulas of `by_prior`.
        both = (rows @ inverse @ rows.T) * (rows @ b @ rows.T) / np.outer(d, d)
        kkt = np.zeros((n + 1, n + 1))
        _, kkt[:n, :n], rise = by_prior(rows, p, both, squares(rows, b) / d, gram)
        kkt[np.arange(n), np.arange(n)] -= p * slack
        kkt[:n, n] = kkt[n, :n] = p
        right = np.append(-rise - barrier, 1 - p.sum())
        y = np.linalg.solve(kkt, right)[:n]
        change = barrier / p - slack * y - slack
        longest = 0.95 / max(0.95, float(np.max(-y)), float(np.max(-change / slack)))
        p, slack = p * (1 + longest * y), slack + longest * change
        if longest == 1.0 and np.max(np.abs(y)) < 0.05:
            if n * barrier < _ENOUGH:
                best = p / p.sum()
            if n * barrier < _LEAST:
                break
            barrier *= 0.1
    if best is not None:
        # Any split of a group's prior among its categories has the same variance.
        return (best / np.bincount(groups.group))[groups.group]
    raise SolverError("the worst data were not found.", Status.ITERATION_LIMIT)


@dataclass(frozen=True)
class Estimate:
    """Answers to the queries, estimated from the outputs of all people.

    Attributes:
        values: estimate of W x, shape (queries,), read-only.
        standard_errors: of each value, estimated from the same outputs, likewise.
        histogram: estimate of x, shape (n,), read-only; entries may be negative. Categories that no
            query distinguishes share their group's estimate in proportion to the prior.
        people: N, the number of outputs.
    """

    values: Vector
    standard_errors: Vector
    histogram: Vector
    people: int


@dataclass(frozen=True, eq=False)
class Decoder:
    """The best linear unbiased estimates of queries from the outputs of a mechanism.

    Attributes:
        rows: Q, Pr[output | category], shape (outputs, n).
        queries: W, shape (queries, n).
        prior: p, shape (n,).
    """

    rows: Matrix
    queries: Matrix
    prior: Vector

    @cached_property
    def matrix(self) -> Matrix:
        """V, shape (queries, outputs), read-only."""
        return frozen(self.queries @ self._histogram)

    @cached_property
    def _histogram(self) -> Matrix:
        """M^-1 Q' diag(Q p)^-1, the decoder of the histogram, shape (n, outputs).

        Over categories with equal columns of Q, only means by the prior can be estimated.
        """
        rows, groups = self.rows, groups_of(self.rows)
        used = rows[:, 0] > 0
        merged_rows, p = rows[np.ix_(used, groups.first)], groups.sums(self.prior)
        scaled = (merged_rows / (merged_rows @ p)[:, None]).T
        decoder = np.zeros((len(self.prior), len(rows)))
        decoder[:, used] = groups.shares(self.prior) @ np.linalg.solve(
            information(merged_rows, p), scaled
        )
        return decoder

    def __call__(self, outputs: npt.ArrayLike) -> Estimate:
        """Return the estimated answers for the people who released these outputs.

        The values are V y with y the counts of outputs; they are unbiased and may be negative. A
        standard error is the root of sum_o y_o V_qo^2 - sum_u x_u W_qu^2 with x estimated, or 0 if
        that is negative.

        Args:
            outputs: what `release` returned, one or an array of integers in 0..outputs-1.

        Raises:
            ParameterError: if one is not an output of the mechanism, or there is none.
        """
        released = np.atleast_1d(_checks.array("outputs", outputs))
        size, allowed = len(self.rows), self.rows[:, 0] > 0
        integral = released.dtype.kind in "iu" and released.size > 0
        if (
            not integral
            or released.min() < 0
            or released.max() >= size
            or not np.all(allowed[released])
        ):
            raise ParameterError(
                f"outputs must be one or more of the mechanism's, integers in 0..{size - 1}."
            )
        counts = np.bincount(released.ravel(), minlength=size).astype(np.float64)
        histogram, v, w = self._histogram @ counts, self.matrix, self.queries
        spread = np.maximum(v**2 @ counts - w**2 @ histogram, 0.0)
        return Estimate(
            frozen(v @ counts), frozen(np.sqrt(spread)), frozen(histogram), released.size
        )
