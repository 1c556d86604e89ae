"""Estimates from outputs: the best linear unbiased decoder of a kernel, and how it varies."""

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

# Steps to the worst data; what the barrier leaves, and what it may leave, as a share of F.
_STEPS, _LEAST, _ENOUGH = 200, 1e-13, 1e-9
# Rounding of G, as a share of its trace.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Groups:
    """Categories that are alike, taken as one: averages over each group by the prior.

    Attributes:
        first: the first category of each group, shape (groups,).
        group: of each category, shape (n,).
    """

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
        """Return p_u over the sum of its group, and 0 elsewhere, shape (n, groups)."""
        found = np.zeros((len(prior), self.size))
        found[np.arange(len(prior)), self.group] = prior / self.sums(prior)[self.group]
        return found


def groups_of(columns: Matrix) -> Groups:
    """Return categories with equal columns, groups in the order of their first categories."""
    _, first, group = np.unique(columns.T, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Groups(first[order], np.argsort(order)[group.ravel()])


def decoder(rows: Matrix, queries: Matrix, prior: Vector) -> Matrix:
    """Return V = W M^-1 Q' diag(Q p)^-1, shape (queries, outputs): V Q = W, of least variance.

    Args:
        rows: Q, Pr[output | category], shape (outputs, n), of full rank but for equal columns.
        queries: W, shape (queries, n); its mean by the prior over categories whose columns of Q are
            equal is what can be estimated, and W itself if it does not tell these apart either.
        prior: p, shape (n,).
    """
    used = rows[:, 0] > 0
    found = np.zeros((len(queries), len(rows)))
    alike = groups_of(rows)
    kept, p = rows[np.ix_(used, alike.first)], alike.sums(prior)
    scaled = (kept / (kept @ p)[:, None]).T
    found[:, used] = queries @ alike.shares(prior) @ np.linalg.solve(information(kept, p), scaled)
    return found


def category_variances(rows: Matrix, gram: Matrix, prior: Vector) -> Vector:
    """Return sum_o Q[o, u] |V_o|^2 - |W_u|^2 for each category u: what a person with it adds.

    Args:
        rows: Q, shape (outputs, n).
        gram: G = W'W.
        prior: p, for which V is best.

    Raises:
        SolverError: if the mechanism does not tell categories apart that the queries do.
    """
    alike, rows, merged = _merged(rows, gram)
    p = alike.sums(prior)
    scales = np.sqrt(rows @ p)
    # M = R'R and G = L'L: |V_o| is |L R^-1 U_o| / scale, with the condition of R, not of M.
    u, r = np.linalg.qr(rows / scales[:, None])
    values, vectors = np.linalg.eigh(merged)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    norms = ((np.linalg.solve(r.T, root.T).T @ u.T) ** 2).sum(axis=0) / scales**2
    return (norms @ rows - np.diagonal(merged))[alike.group]


def _merged(rows: Matrix, gram: Matrix) -> tuple[Groups, Matrix, Matrix]:
    """Return categories with equal columns of Q, and Q and G with one of each."""
    alike = groups_of(rows)
    merged = gram[np.ix_(alike.first, alike.first)]
    other = np.abs(gram - merged[np.ix_(alike.group, alike.group)]).max()
    if other > _EQUAL * np.trace(gram):
        raise SolverError("the mechanism tells nothing of some category.", Status.NUMERICAL)
    return alike, rows[np.ix_(rows[:, 0] > 0, alike.first)], merged


@one_blas_thread
def worst_prior(rows: Matrix, gram: Matrix) -> Vector:
    """Return the distribution p for which the best decoder's variance is largest: concave in p.

    Where no category adds more than the mean under p, the decoder of p is the best against the
    worst data. Newton's method along a barrier, as for the mechanism itself.

    Args:
        rows: Q, shape (outputs, n).
        gram: G = W'W.

    Raises:
        SolverError: if it was not found.
    """
    alike, rows, gram = _merged(rows, gram)
    n = len(gram)
    p: Vector = np.full(n, 1 / n)
    # F is far above tr G where epsilon is small; the barrier is a share of it.
    gram = gram / slopes(gram, information(rows, p))[0]
    barrier = 1.0
    slack = np.full(n, float(n))
    best: Vector | None = None
    for _ in range(_STEPS):
        d = rows @ p
        matrix = information(rows, p)
        inverse, b = inverted(matrix), slopes(gram, matrix)[1]
        # Each row carries its own weight: as for theta s, with theta 1.
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
        # Within a group it makes no difference.
        return (best / np.bincount(alike.group))[alike.group]
    raise SolverError("the worst data were not found.", Status.ITERATION_LIMIT)


@dataclass(frozen=True)
class Estimate:
    """Answers to the queries, estimated from what people released.

    Attributes:
        values: of W x, shape (queries,), read-only.
        standard_errors: of each, shape (queries,), estimated from the same outputs, read-only.
        histogram: of x, shape (n,), read-only; negative entries are no error. Categories that no
            query tells apart share the estimate of them all by the prior.
        people: N.
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
        return frozen(decoder(self.rows, self.queries, self.prior))

    @cached_property
    def _histogram(self) -> Matrix:
        """V for the histogram itself."""
        return decoder(self.rows, np.eye(len(self.prior)), self.prior)

    def __call__(self, outputs: npt.ArrayLike) -> Estimate:
        """Return the answers for the people who released these outputs.

        The answers are V y, y the counts of outputs. They are unbiased and may be negative. The
        standard errors are those of V y, from sum_o y_o V_qo^2 - sum_u x_u W_qu^2 with x estimated,
        at least 0.

        Args:
            outputs: what `release` returned, one or an array of integers in 0..outputs-1.

        Raises:
            ParameterError: if an output is none of the mechanism's, or there is none.
        """
        given = np.atleast_1d(_checks.array("outputs", outputs))
        size, allowed = len(self.rows), self.rows[:, 0] > 0
        known = given.dtype.kind in "iu" and given.size > 0
        if not known or given.min() < 0 or given.max() >= size or not np.all(allowed[given]):
            raise ParameterError(
                f"outputs must be one or more of the mechanism's, integers in 0..{size - 1}."
            )
        counts = np.bincount(given.ravel(), minlength=size).astype(np.float64)
        histogram, v, w = self._histogram @ counts, self.matrix, self.queries
        spread = np.maximum(v**2 @ counts - w**2 @ histogram, 0.0)
        return Estimate(frozen(v @ counts), frozen(np.sqrt(spread)), frozen(histogram), given.size)
