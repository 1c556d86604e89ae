"""Tables of rows of integers, along any neighbours, and what they spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpopt import Guarantee
from dpopt.privacy import Certificate, Least
from dpopt.table import Graph, Table, certify_table
from dpopt.table.least import least_of_table

Rows = Sequence[Sequence[int]]


def of_rows(rows: Rows, pairs: Any = None) -> Table:
    """The table of these rows, each over its sum."""
    total = math.lcm(*map(sum, rows))
    weights = [weight * (total // sum(row)) for row in rows for weight in row]
    near = None if pairs is None else np.array(sorted(map(tuple, pairs)), dtype=np.int64)
    return Table(Graph(len(rows), len(rows[0]), near), tuple(weights), total)


def certify(rows: Rows, guarantee: Guarantee, pairs: Any = None) -> Certificate:
    return certify_table(of_rows(rows, pairs), guarantee)


def least_epsilon(rows: Rows, delta: float = 0.0, pairs: Any = None) -> Least:
    return least_of_table(of_rows(rows, pairs), None, delta)


def least_delta(rows: Rows, epsilon: float, pairs: Any = None) -> Least:
    return least_of_table(of_rows(rows, pairs), epsilon, None)
