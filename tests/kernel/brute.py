"""The optimal kernel the slow way: every event written down, another solver, exact fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

import dpopt
from dpopt import Kernel
from dpopt.shape import made
from dpopt.table import Table
from tests.oracles import exponential

Array = npt.NDArray[np.float64]
Edges = list[tuple[int, int]]
T = TypeVar("T")


def sure(value: T | None) -> T:
    """What every solved and proved design has: its bound, gap, solution or certificate."""
    assert value is not None
    return value


def optimal(loss: Any, *, backend: Any = None, stop_at_gap: float = 0.0, **asked: Any) -> Any:
    """The design of a kernel with these parameters."""
    setting = Kernel(loss, **asked)
    return dpopt.design(setting, backend=backend, stop_at_gap=stop_at_gap)


def made_of(rows: Sequence[Sequence[int]], epsilon: float, delta: float = 0.0) -> Any:
    """The kernel design of these integers, all inputs being neighbours."""
    setting = Kernel(np.zeros((len(rows), len(rows[0]))), epsilon, delta)
    weights = tuple(weight for row in rows for weight in row)
    return made(setting, Table(setting.domain, weights, sum(rows[0])), float_bound=None)


def rows_of(design: Any) -> list[list[int]]:
    """The integers of a design, written out: a row for each input, over its table's total."""
    return [design.table.row(x) for x in range(design.table.inputs.inputs)]


def private(design: Any, edges: Edges) -> bool:
    """Whether a design is as private as its setting says, by all events."""
    setting = design.setting
    rows, total = rows_of(design), design.table.total
    return is_private(rows, total, edges, setting.epsilon, setting.delta)


def complete(inputs: int) -> Edges:
    return [(x, other) for x in range(inputs) for other in range(inputs) if x != other]


def path(inputs: int) -> Edges:
    return [(x, y) for x, y in complete(inputs) if abs(x - y) == 1]


def hamming(shape: tuple[int, ...]) -> Edges:
    words = list(product(*(range(size) for size in shape)))
    return [
        (i, j)
        for i, word in enumerate(words)
        for j, other in enumerate(words)
        if sum(a != b for a, b in zip(word, other, strict=True)) == 1
    ]


def events(outputs: int) -> list[tuple[int, ...]]:
    return [
        chosen for size in range(1, outputs + 1) for chosen in combinations(range(outputs), size)
    ]


def least_loss(
    loss: Array,
    edges: Edges,
    epsilon: float,
    delta: float = 0.0,
    *,
    prior: Array | None = None,
    fixed: Array | None = None,
    rows: Sequence[tuple[dict[tuple[int, int], float], float | None, float | None]] = (),
) -> float:
    """The optimum by scipy with a row for each edge and event; minimax if there is no prior.

    Further rows are coefficients by input and output, and their limits.
    """
    n, m = loss.shape
    upper, limits, equal, right = [], [], [], []
    for x, other in edges:
        # Of delta = 0 the events of one output are enough.
        for chosen in events(m) if delta else [(y,) for y in range(m)]:
            row = np.zeros((n, m))
            row[x, list(chosen)] = 1.0
            row[other, list(chosen)] = -math.exp(epsilon)
            upper.append([*row.ravel(), 0.0])
            limits.append(delta)
    for x in range(n):
        row = np.zeros((n, m))
        row[x] = 1.0
        equal.append([*row.ravel(), 0.0])
        right.append(1.0)
        if prior is None:
            row = np.zeros((n, m))
            row[x] = loss[x]
            upper.append([*row.ravel(), -1.0])
            limits.append(0.0)
    for y in range(m if fixed is not None else 0):
        row = np.zeros((n, m))
        row[:, y] = fixed
        equal.append([*row.ravel(), 0.0])
        right.append(fixed[y] if fixed is not None else 0.0)
    for entries, lower, most in rows:
        row = np.zeros((n, m))
        row[tuple(np.transpose([*entries]))] = [*entries.values()]
        for sign, limit in ((-1.0, lower), (1.0, most)):
            if limit is not None:
                upper.append([*sign * row.ravel(), 0.0])
                limits.append(sign * limit)
    cost = np.zeros((n, m)) if prior is None else prior[:, None] * loss
    found = linprog(
        [*cost.ravel(), 1.0 if prior is None else 0.0],
        A_ub=upper,
        b_ub=limits,
        A_eq=equal,
        b_eq=right,
        bounds=[(0, 1)] * (n * m) + [(None, None)],
        method="highs-ds",
    )
    assert found.status == 0
    return float(found.fun)


def geometric(inputs: int, epsilon: float) -> Array:
    """The truncated geometric mechanism for counts 0..inputs-1."""
    a = math.exp(-epsilon)
    x = np.arange(inputs)
    kernel = (1 - a) / (1 + a) * a ** np.abs(x[:, None] - x[None, :])
    kernel[:, 0] = a**x / (1 + a)
    kernel[:, -1] = a ** (inputs - 1 - x) / (1 + a)
    return kernel


def remapped(loss: Array, epsilon: float, prior: Array) -> float:
    """Bayes loss of the geometric mechanism with the best output for each of its outputs."""
    joint = prior[:, None] * geometric(len(loss), epsilon)
    return sum(
        min(float(joint[:, y] @ loss[:, z]) for z in range(loss.shape[1]))
        for y in range(joint.shape[1])
    )


def remapped_minimax(loss: Array, epsilon: float) -> float:
    """Minimax loss of the geometric mechanism with the best random remap of its outputs."""
    pmf = geometric(len(loss), epsilon)
    n, m = loss.shape
    upper = [[*np.outer(pmf[x], loss[x]).ravel(), -1.0] for x in range(n)]
    equal = [[*np.outer(np.arange(n) == y, np.ones(m)).ravel(), 0.0] for y in range(n)]
    found = linprog(
        [0.0] * (n * m) + [1.0],
        A_ub=upper,
        b_ub=np.zeros(n),
        A_eq=np.array(equal, dtype=float),
        b_eq=np.ones(n),
        bounds=[(0, 1)] * (n * m) + [(None, None)],
        method="highs-ds",
    )
    assert found.status == 0
    return float(found.fun)


def is_private(
    weights: Sequence[Sequence[int]], total: int, edges: Edges, epsilon: float, delta: float
) -> bool:
    """Whether K(S | x) <= e^epsilon K(S | x') + delta for all edges and events, in fractions."""
    ratio, slack = exponential(epsilon), Fraction(delta) * total
    return all(
        sum(weights[x][y] for y in chosen) <= ratio * sum(weights[other][y] for y in chosen) + slack
        for x, other in edges
        for chosen in events(len(weights[0]))
    )
