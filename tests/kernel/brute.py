"""The optimal kernel the slow way: every event written down, another solver, exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    """Whether a design is as private as its setting says, by all events, and its rows sum to 1."""
    rows, total = rows_of(design), design.table.total
    within = is_private(rows, total, edges, design.setting.epsilon, design.setting.delta)
    return within and all(sum(row) == total and min(row) >= 0 for row in rows)


def complete(inputs: int) -> Edges:
    return [(x, other) for x in range(inputs) for other in range(inputs) if x != other]


def path(inputs: int) -> Edges:
    return grid((inputs,))


def grid(shape: Sequence[int]) -> Edges:
    """Words that differ by 1 in one position."""
    return _joined(shape, lambda a, b: abs(a - b))


def hamming(shape: Sequence[int]) -> Edges:
    """Words that differ in one position."""
    return _joined(shape, lambda a, b: int(a != b))


def _joined(shape: Sequence[int], distance: Callable[[int, int], int]) -> Edges:
    words = list(enumerate(product(*map(range, shape))))
    return [
        (i, j)
        for (i, word), (j, other) in product(words, repeat=2)
        if sum(map(distance, word, other)) == 1
    ]


def distances(inputs: int, exponent: float = 1) -> Array:
    """The loss |x - y|^exponent; for 0 the loss 1 unless x = y."""
    x = np.arange(inputs, dtype=float)
    return np.abs(x[:, None] - x) ** exponent if exponent else 1.0 - np.eye(inputs)


def events(outputs: int, delta: float = 1.0) -> list[tuple[int, ...]]:
    """All sets of outputs; of delta = 0 those of one output are enough."""
    sizes = range(1, outputs + 1 if delta else 2)
    return [event for size in sizes for event in combinations(range(outputs), size)]


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
        for chosen in events(m, delta):
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
    cost = [*cost.ravel(), 1.0 if prior is None else 0.0]
    return _least(cost, upper, limits, equal, right)


def _least(cost: Any, upper: Any, limits: Any, equal: Any, right: Any) -> float:
    """The optimum by scipy over probabilities, and a number without bounds at the end."""
    bounds: list[Any] = [(0, 1)] * (len(cost) - 1) + [(None, None)]
    answer = linprog(cost, upper, limits, equal, right, bounds, method="highs-ds")
    assert answer.status == 0
    return float(answer.fun)


def geometric(inputs: int, epsilon: float) -> Array:
    """The truncated geometric mechanism for counts 0..inputs-1."""
    a, away = math.exp(-epsilon), distances(inputs)
    kernel = (1 - a) / (1 + a) * a**away
    kernel[:, [0, -1]] = a ** away[:, [0, -1]] / (1 + a)
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
    equal = np.array(equal, dtype=float)
    return _least([0.0] * (n * m) + [1.0], upper, np.zeros(n), equal, np.ones(n))


def is_private(
    weights: Sequence[Sequence[int]], total: int, edges: Edges, epsilon: float, delta: float
) -> bool:
    """Whether K(S | x) <= e^epsilon K(S | x') + delta for all edges and events, in fractions."""
    ratio, slack = exponential(epsilon), Fraction(delta) * total
    return all(
        sum(weights[x][y] for y in chosen) <= ratio * sum(weights[other][y] for y in chosen) + slack
        for x, other in edges
        for chosen in events(len(weights[0]), delta)
    )
