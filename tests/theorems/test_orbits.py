"""Symmetries: all pairs of permutations tried, kernels averaged in fractions, optima compared."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations, product
from math import log

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.kernel.brute import optimal

Symmetry = tuple[tuple[int, ...], tuple[int, ...]]
Kernel = list[list[Fraction]]

LOSSES = {
    "path of 4": ([[abs(x - y) for y in range(4)] for x in range(4)], [(0, 1), (1, 2), (2, 3)]),
    "cycle of 4": (
        [[min((x - y) % 4, (y - x) % 4) for y in range(4)] for x in range(4)],
        [(0, 1), (1, 2), (2, 3), (3, 0)],
    ),
    "three letters": (
        [[int(x != y) for y in range(3)] for x in range(3)],
        [(0, 1), (1, 2), (0, 2)],
    ),
    "more outputs": ([[abs(2 * x - y) for y in range(5)] for x in range(3)], [(0, 1), (1, 2)]),
}
CASES = list(LOSSES)


def symmetries(loss: list[list[int]], edges: list[tuple[int, int]]) -> list[Symmetry]:
    """All of them, by definition."""
    both = {pair for x, z in edges for pair in ((x, z), (z, x))}
    cells = list(product(range(len(loss)), range(len(loss[0]))))
    return [
        (sigma, tau)
        for sigma in permutations(range(len(loss)))
        if all((sigma[x], sigma[z]) in both for x, z in both)
        for tau in permutations(range(len(loss[0])))
        if all(loss[sigma[x]][tau[y]] == loss[x][y] for x, y in cells)
    ]


def private_kernel(draw: random.Random, n: int, m: int, r: Fraction) -> Kernel:
    """A kernel whose rows are all within r of each other."""
    kernel = []
    for _ in range(n):
        weights = [Fraction(draw.randrange(1, 20)) for _ in range(m)]
        kernel.append([w / sum(weights) for w in weights])
    share = Fraction(1)
    flat = [Fraction(1, m)] * m
    while True:
        mixed = [
            [share * a + (1 - share) * b for a, b in zip(row, flat, strict=True)] for row in kernel
        ]
        if all(max(c) <= r * min(c) for c in zip(*mixed, strict=True)):
            return mixed
        share *= Fraction(9, 10)


def largest_excess(kernel: Kernel, edges: list[tuple[int, int]], r: Fraction) -> Fraction:
    """The least delta: the largest sum over outputs of (K(x, y) - r K(z, y))^+."""
    return max(
        sum(
            (max(Fraction(0), a - r * b) for a, b in zip(kernel[x], kernel[z], strict=True)),
            Fraction(0),
        )
        for one, other in edges
        for x, z in ((one, other), (other, one))
    )


@pytest.mark.parametrize("name", CASES)
def test_the_mean_over_the_group_is_as_private_and_as_good(name: str) -> None:
    draw = random.Random(1)
    loss, edges = LOSSES[name]
    group = symmetries(loss, edges)
    assert len(group) > 1
    n, m = len(loss), len(loss[0])
    for _ in range(12):
        r = Fraction(draw.randrange(11, 40), 10)
        kernel = private_kernel(draw, n, m, r)
        mean = [
            [
                sum((kernel[s[x]][t[y]] for s, t in group), Fraction(0)) / len(group)
                for y in range(m)
            ]
            for x in range(n)
        ]
        assert all(sum(row) == 1 for row in mean)
        for ratio in (Fraction(1), (1 + r) / 2, r):
            assert largest_excess(mean, edges, ratio) <= largest_excess(kernel, edges, ratio)
        costs = [
            [sum(a * b for a, b in zip(loss[x], k[x], strict=True)) for x in range(n)]
            for k in (kernel, mean)
        ]
        assert sum(costs[0]) == sum(costs[1])
        assert max(costs[1]) <= max(costs[0])
        for sigma, tau in group:
            assert all(mean[sigma[x]][tau[y]] == mean[x][y] for x, y in product(range(n), range(m)))


def optimum(name: str, r: float, delta: float, *, by_orbits: bool, worst: bool) -> float:
    """The program over K, s and t; over orbits, entries of one orbit are one variable."""
    loss, edges = LOSSES[name]
    n, m = len(loss), len(loss[0])
    cells = list(product(range(n), range(m)))
    place = {cell: i for i, cell in enumerate(cells)}
    if by_orbits:
        first = {(x, y): min((s[x], t[y]) for s, t in symmetries(loss, edges)) for x, y in cells}
        named = sorted(set(first.values()))
        place = {cell: named.index(first[cell]) for cell in cells}
    pairs = [pair for x, z in edges for pair in ((x, z), (z, x))]
    start, size = len(cells), len(cells) + len(pairs) * m + 1
    rows, limits, equal = [], [], []
    for i, (x, z) in enumerate(pairs):
        together = np.zeros(size)
        for y in range(m):
            row = np.zeros(size)
            row[place[x, y]] += 1.0
            row[place[z, y]] -= r
            row[start + i * m + y] = -1.0
            together[start + i * m + y] = 1.0
            rows.append(row)
            limits.append(0.0)
        rows.append(together)
        limits.append(delta)
    cost = np.zeros(size)
    for x in range(n):
        law, own = np.zeros(size), np.zeros(size)
        for y in range(m):
            law[place[x, y]] += 1.0
            own[place[x, y]] += loss[x][y]
        equal.append(law)
        if worst:
            own[-1] = -1.0
            rows.append(own)
            limits.append(0.0)
        else:
            cost += own / n
    cost[-1] = float(worst)
    found = linprog(cost, np.array(rows), limits, np.array(equal), np.ones(n), method="highs")
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("worst", [True, False])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_orbits_have_the_optimum_of_entries(name: str, worst: bool, delta: float) -> None:
    loss, edges = LOSSES[name]
    for r in (1.3, 4.0):
        entries = optimum(name, r, delta, by_orbits=False, worst=worst)
        assert optimum(name, r, delta, by_orbits=True, worst=worst) == pytest.approx(
            entries, abs=1e-8
        )
        group = symmetries(loss, edges)
        found = optimal(
            np.array(loss, dtype=float),
            epsilon=log(r),
            delta=delta,
            graph=edges,
            objective="minimax" if worst else "bayes",
            symmetry=[(list(s), list(t)) for s, t in group],
        )
        assert found.value == pytest.approx(entries, abs=1e-7)
