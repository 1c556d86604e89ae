"""Symmetries: all pairs of permutations tried, kernels averaged in fractions, optima compared."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations, product

import pytest

from tests.oracles import stick

Symmetry = tuple[tuple[int, ...], tuple[int, ...]]
Kernel = list[list[Fraction]]

LOSSES = {
    "path of 4": ([[abs(x - y) for y in range(4)] for x in range(4)], [(0, 1), (1, 2), (2, 3)]),
    "cycle of 4": (
        [[min((x - y) % 4, (y - x) % 4) for y in range(4)] for x in range(4)],
        [(0, 1), (1, 2), (2, 3), (3, 0)],
    ),
    "three categories": (
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
    both = (pair for x, z in edges for pair in ((x, z), (z, x)))
    return max(stick(kernel[x], kernel[z], r) for x, z in both)


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
