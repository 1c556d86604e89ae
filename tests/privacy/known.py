"""Small graphs, and kernels and losses that the literature knows in closed form."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt.table import Graph, Table, rounded

Floats = npt.NDArray[np.float64]


def path(n: int) -> list[tuple[int, int]]:
    steps = [(i, i + 1) for i in range(n - 1)]
    return steps + [(b, a) for a, b in steps]


def distance(n: int) -> Floats:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def geometric(n: int, epsilon: float) -> Floats:
    """The geometric mechanism, truncated to 0..n-1."""
    a, away = math.exp(-epsilon), distance(n)
    kernel = (1 - a) / (1 + a) * a**away
    kernel[:, [0, -1]] = a ** away[:, [0, -1]] / (1 + a)
    return kernel


def response(k: int, epsilon: float) -> Table:
    """Randomised response, its integers next to e^epsilon."""
    a = math.exp(epsilon)
    kernel = (np.ones((k, k)) + (a - 1) * np.eye(k)) / (a + k - 1)
    return rounded(Graph(k, k), kernel.ravel())
