"""Paths, and randomised response."""

from __future__ import annotations

import math

import numpy as np

from dpopt.table import Graph, Table, rounded


def path(n: int) -> list[tuple[int, int]]:
    steps = [(i, i + 1) for i in range(n - 1)]
    return steps + [(b, a) for a, b in steps]


def response(k: int, epsilon: float) -> Table:
    """Randomised response, its integers next to e^epsilon."""
    a = math.exp(epsilon)
    kernel = (np.ones((k, k)) + (a - 1) * np.eye(k)) / (a + k - 1)
    return rounded(Graph(k, k), kernel.ravel())
