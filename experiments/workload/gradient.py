"""Projected gradient, as McKenna, Maity, Mazumdar and Miklau (VLDB 2020) find mechanisms."""

from __future__ import annotations

import math

import numpy as np

from dpopt._types import Matrix, Vector

_STEPS = 2_000


def projected_gradient(
    gram: Matrix,
    epsilon: float,
    prior: Vector,
    rng: np.random.Generator,
    *,
    outputs: int | None = None,
    steps: int = _STEPS,
) -> Matrix:
    """Return a local optimum as McKenna, Maity, Mazumdar and Miklau (VLDB 2020) find it.

    A kernel of 4 n rows is moved against the gradient of F, and brought back to z_o <= Q[o, u] <=
    e^epsilon z_o, sum_o Q[o, u] = 1; so is z, by the gradient through that projection. The step is
    halved where F does not fall.

    Args:
        gram: G, shape (n, n).
        epsilon: in nats.
        prior: p, shape (n,).
        rng: of the start; not private, and nothing that is released depends on it.
        outputs: number of rows; 4 n if None.
        steps: of the descent.

    Returns:
        Shape (outputs, n).
    """
    n, e = len(gram), math.exp(epsilon)
    size = 4 * n if outputs is None else outputs
    z = np.full(size, (1 + 1 / e) / (2 * size))
    rows, inside = _projected(rng.random((size, n)), z, e)
    value, slope = _descent(rows, gram, prior)
    step = 0.1 / (size * float(np.abs(slope).max()))
    for _ in range(steps):
        # Of a column each entry at a limit moves with z, and those inside make up for it.
        moved = _through(slope, inside)
        tried_z = np.clip(z - step * (moved[0] + e * moved[1]) / size, 1e-12, 1.0)
        tried_z *= min(1.0, 0.999 / tried_z.sum())
        tried_z *= max(1.0, 1.001 / (e * tried_z.sum()))
        tried, tried_inside = _projected(rows - step * slope, tried_z, e)
        tried_value, tried_slope = _descent(tried, gram, prior)
        if tried_value < value:
            rows, inside, z, value, slope = tried, tried_inside, tried_z, tried_value, tried_slope
            step *= 1.1
        else:
            step *= 0.5
            if step * float(np.abs(slope).max()) < 1e-15:
                break
    return rows


def _descent(rows: Matrix, gram: Matrix, prior: Vector) -> tuple[float, Matrix]:
    """Return F and its derivative by each entry of Q."""
    d = rows @ prior
    m = rows.T @ (rows / d[:, None])
    inverse = np.linalg.pinv(m, hermitian=True)
    b = inverse @ gram @ inverse
    half = rows @ b
    square = np.einsum("ij,ij->i", half, rows)
    return float(np.sum(inverse * gram)), -2 * half / d[:, None] + np.outer(square / d**2, prior)


def _projected(rows: Matrix, z: Vector, ratio: float) -> tuple[Matrix, Matrix]:
    """Return the nearest columns between z and ratio z that sum to 1; and -1, 0, 1 as at limits."""
    low, high = z[:, None], ratio * z[:, None]
    under, over = (low - rows).min(axis=0), (high - rows).max(axis=0)
    for _ in range(60):
        middle = (under + over) / 2
        short = np.clip(rows + middle, low, high).sum(axis=0) < 1
        under, over = np.where(short, middle, under), np.where(short, over, middle)
    found = np.clip(rows + over, low, high)
    return found / found.sum(axis=0), np.where(found <= low, -1, np.where(found >= high, 1, 0))


def _through(slope: Matrix, inside: Matrix) -> tuple[Vector, Vector]:
    """Return the derivatives of F by the lower and by the upper limits of the projection."""
    free = inside == 0
    mean = np.where(free, slope, 0.0).sum(axis=0) / np.maximum(free.sum(axis=0), 1)
    relative = slope - mean
    return (
        np.where(inside < 0, relative, 0.0).sum(axis=1),
        np.where(inside > 0, relative, 0.0).sum(axis=1),
    )
