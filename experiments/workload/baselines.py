"""Baselines: mechanisms in use, as their papers define them, evaluated in the same way.

Except for optimised unary encoding, each uses its best linear unbiased decoder,
`dpopt.local.decoder`, which is at least as good as the decoder of its paper. Projected gradient is
the method of McKenna, Maity, Mazumdar and Miklau (VLDB 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from dpopt.local.bound import best_subset
from dpopt.local.decoder import category_variances
from experiments.arrays import Floats


def least_of(variances: Mapping[str, float]) -> str:
    """Return the name of the least variance, the first of those that are equal up to rounding.

    Subset selection of single categories is randomised response.
    """
    return min(variances, key=lambda name: float(f"{variances[name]:.9g}"))


Categories = Annotated[int, Ge(2), Le(20)]
"""Number of categories for which all patterns are enumerated."""
Epsilon = Annotated[float, Ge(0.01), Le(12.0)]
Queries = Literal["histogram", "prefix", "range", "marginals"]


# Outputs up to which a mechanism is written out.
_MOST_OUTPUTS = 20_000
_STEPS = 2_000


def randomised_response(categories: int, epsilon: float) -> Floats:
    """Return k-ary randomised response (Kairouz, Bonawitz, Ramage 2016), shape (n, n)."""
    rows = np.ones((categories, categories)) + math.expm1(epsilon) * np.eye(categories)
    return rows / rows.sum(axis=0)


def hadamard_response(categories: int, epsilon: float) -> Floats:
    """Return Hadamard response for any privacy (Acharya, Sun, Zhang 2019), shape (outputs, n).

    Outputs are B blocks of b, powers of 2: B is at most e^epsilon, and b above n / B. A category
    has a block and a row of the Hadamard matrix of order b in it, but for that of ones; the outputs
    where this row is 1 are e^epsilon times as likely as all others.
    """
    blocks = 1 << max(0, math.ceil(math.log2(min(math.exp(epsilon), 2 * categories))) - 1)
    order = 1 << math.ceil(math.log2(categories / blocks + 1))
    block, row = np.divmod(np.arange(categories), order - 1)
    place = np.arange(blocks * order)
    own = place[:, None] // order == block
    plus = np.bitwise_count((place[:, None] % order) & (row + 1)) % 2 == 0
    rows = np.where(own & plus, math.exp(epsilon), 1.0)
    return rows / rows.sum(axis=0)


def subset_selection(categories: int, epsilon: float, size: int) -> Floats:
    """Return subset selection (Ye, Barg 2018): sets of a size, those with one's category likelier.

    Shape (outputs, n).
    """
    chosen = np.array(list(combinations(range(categories), size)))
    rows = np.ones((len(chosen), categories))
    np.put_along_axis(rows, chosen, math.exp(epsilon), axis=1)
    return rows / rows.sum(axis=0)


def hierarchical(categories: int, epsilon: float, branching: int = 2) -> Floats:
    """Return a hierarchy of intervals, one level drawn for each person, shape (outputs, n).

    On the level of intervals of branching^j categories a person answers by randomised response; the
    level of all categories is omitted (Cormode, Kulkarni, Srivastava 2019). `variances` reports the
    better of branching 2 and 4, each with the best decoder: for prefixes of 16 categories and
    epsilon = 1 the variances are 177.16 and 171.00.
    """
    levels, width = [], 1
    while width < categories:
        node = np.arange(categories) // width
        told = randomised_response(int(node[-1]) + 1, epsilon)
        levels.append(told[:, node])
        width *= branching
    return np.concatenate(levels) / len(levels)


def unary_variances(epsilon: float, gram: Floats) -> Floats:
    """Return the variance of optimised unary encoding (Wang, Blocki, Li, Jha 2017) by category.

    A bit for each category: one's own is 1 with probability 1/2, each other one with q =
    1 / (e^epsilon + 1); a category is estimated as (bit - q) / (1/2 - q).
    """
    q = 1 / (math.exp(epsilon) + 1)
    squares = np.diagonal(gram)
    return (q * (1 - q) * (squares.sum() - squares) + squares / 4) / (0.5 - q) ** 2


def variances(categories: int, epsilon: float, gram: Floats, prior: Floats) -> dict[str, float]:
    """Return each mechanism's variance per person, by name, for G = W'W and prior p."""
    uniform = np.full(categories, 1 / categories)

    def written(rows: Floats) -> float:
        return float(prior @ category_variances(rows, gram, prior))

    found = {
        "randomised response": written(randomised_response(categories, epsilon)),
        "Hadamard response": written(hadamard_response(categories, epsilon)),
        "hierarchical": min(written(hierarchical(categories, epsilon, b)) for b in (2, 4)),
        "optimised unary encoding": float(prior @ unary_variances(epsilon, gram)),
    }
    sizes = [k for k in range(1, categories) if math.comb(categories, k) <= _MOST_OUTPUTS]
    if np.allclose(prior, uniform, rtol=1e-12):
        least = best_subset(categories, math.exp(epsilon), gram)[0]
        found["subset selection"] = least - float(np.trace(gram)) / categories
    else:
        found["subset selection"] = min(
            written(subset_selection(categories, epsilon, k)) for k in sizes
        )
    return found


def projected_gradient(
    gram: Floats, epsilon: float, prior: Floats, rng: np.random.Generator, *, steps: int = _STEPS
) -> Floats:
    """Return a local optimum as McKenna, Maity, Mazumdar and Miklau (VLDB 2020) find it.

    A kernel of 4 n rows is moved against the gradient of F, and brought back to z_o <= Q[o, u] <=
    e^epsilon z_o, sum_o Q[o, u] = 1; so is z, by the gradient through that projection. The step is
    halved where F does not fall.

    Shape (4 n, n), after so many steps from a random start.
    """
    n, e = len(gram), math.exp(epsilon)
    size = 4 * n
    z = np.full(size, (1 + 1 / e) / (2 * size))
    rows, inside = _projected(rng.random((size, n)), z, e)
    value, slope = _descent(rows, gram, prior)
    step = 0.1 / (size * float(np.abs(slope).max()))
    for _ in range(steps):
        # In a column, entries at a bound move with z, and the free entries compensate.
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


def _descent(rows: Floats, gram: Floats, prior: Floats) -> tuple[float, Floats]:
    """Return F and its derivative by each entry of Q."""
    d = rows @ prior
    m = rows.T @ (rows / d[:, None])
    inverse = np.linalg.pinv(m, hermitian=True)
    b = inverse @ gram @ inverse
    half = rows @ b
    square = np.einsum("ij,ij->i", half, rows)
    return float(np.sum(inverse * gram)), -2 * half / d[:, None] + np.outer(square / d**2, prior)


def _projected(rows: Floats, z: Floats, ratio: float) -> tuple[Floats, Floats]:
    """Return the nearest columns between z and ratio z that sum to 1; and -1, 0, 1 as at limits."""
    low, high = z[:, None], ratio * z[:, None]
    under, over = (low - rows).min(axis=0), (high - rows).max(axis=0)
    for _ in range(60):
        middle = (under + over) / 2
        short = np.clip(rows + middle, low, high).sum(axis=0) < 1
        under, over = np.where(short, middle, under), np.where(short, over, middle)
    found = np.clip(rows + over, low, high)
    return found / found.sum(axis=0), np.where(found <= low, -1, np.where(found >= high, 1, 0))


def _through(slope: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of F by the lower and by the upper limits of the projection."""
    free = inside == 0
    mean = np.where(free, slope, 0.0).sum(axis=0) / np.maximum(free.sum(axis=0), 1)
    relative = slope - mean
    return (
        np.where(inside < 0, relative, 0.0).sum(axis=1),
        np.where(inside > 0, relative, 0.0).sum(axis=1),
    )
