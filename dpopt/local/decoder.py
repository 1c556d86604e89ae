"""Estimates from outputs: the best linear unbiased decoder of a kernel, and how it varies."""

from __future__ import annotations

import numpy as np

from dpopt._errors import SolverError
from dpopt._types import Matrix, Vector
from dpopt.local.optimum import information, inverted, slopes
from dpopt.lp.solution import Status

# Steps to the worst data; what the barrier leaves, and what it may leave, as a share of F.
_STEPS, _LEAST, _ENOUGH = 200, 1e-13, 1e-9


def decoder(rows: Matrix, queries: Matrix, prior: Vector) -> Matrix:
    """Return V = W M^-1 Q' diag(Q p)^-1, shape (queries, outputs): V Q = W, of least variance.

    Args:
        rows: Q, Pr[output | letter], shape (outputs, n), of full rank.
        queries: W, shape (queries, n).
        prior: p, shape (n,).
    """
    used = rows[:, 0] > 0
    found = np.zeros((len(queries), len(rows)))
    scaled = (rows[used] / (rows[used] @ prior)[:, None]).T
    found[:, used] = queries @ np.linalg.solve(information(rows[used], prior), scaled)
    return found


def letter_variances(rows: Matrix, gram: Matrix, prior: Vector) -> Vector:
    """Return sum_o Q[o, u] |V_o|^2 - |W_u|^2 for each letter u: what a person with it adds.

    Args:
        rows: Q, shape (outputs, n).
        gram: G = W'W.
        prior: p, for which V is best.
    """
    rows = rows[rows[:, 0] > 0]
    _, b = slopes(gram, information(rows, prior))
    norms = np.einsum("ij,ij->i", rows @ b, rows) / (rows @ prior) ** 2
    return norms @ rows - np.diagonal(gram)


def worst_prior(rows: Matrix, gram: Matrix) -> Vector:
    """Return the law p for which the best decoder's variance is largest: concave in p.

    Where no letter adds more than the mean under p, the decoder of p is the best against the worst
    data. Newton's method along a barrier, as for the mechanism itself.

    Args:
        rows: Q, shape (outputs, n).
        gram: G = W'W.

    Raises:
        SolverError: if it was not found.
    """
    rows, n = rows[rows[:, 0] > 0], len(gram)
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
        c = rows * p / d[:, None]
        # Each row carries its own weight: as for theta s, with theta 1.
        crossed = (rows @ inverse @ rows.T) * (rows @ b @ rows.T) / np.outer(d, d)
        q = np.diagonal(rows @ b @ rows.T) / d
        kkt = np.zeros((n + 1, n + 1))
        kkt[:n, :n] = 2 * c.T @ crossed @ c - 2 * c.T @ (q[:, None] * c)
        kkt[np.arange(n), np.arange(n)] -= p * slack
        kkt[:n, n] = kkt[n, :n] = p
        right = np.append(p * np.diagonal(gram) - q @ c - barrier, 1 - p.sum())
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
        return best
    raise SolverError("the worst data were not found.", Status.ITERATION_LIMIT)
