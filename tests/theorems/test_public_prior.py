"""Kernels that keep a public prior: Algorithm 1 and the leximin kernel, in fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tests.public_prior.closed_forms import leximin, recursion

Kernel = list[list[Fraction]]
ONE = Fraction(1)


def priors(draw: random.Random, count: int) -> list[list[Fraction]]:
    """Ascending priors of 1 to 6 categories, many with ties."""
    found = []
    for _ in range(count):
        parts = sorted(draw.choice([1, 2, 2, 5, 9, 40]) for _ in range(draw.randrange(1, 7)))
        found.append([Fraction(part, sum(parts)) for part in parts])
    return found


def closed_form(q: list[Fraction], r: Fraction) -> Kernel:
    """The page's formula."""
    scale, left = [], ONE
    for i, mass in enumerate(q):
        scale.append(left / (r * mass + sum(q[i + 1 :])))
        left -= scale[-1] * mass
    return [
        [r * scale[i] * q[i] if i == j else scale[min(i, j)] * q[j] for j in range(len(q))]
        for i in range(len(q))
    ]


def check_kernel(kernel: Kernel, q: list[Fraction], r: Fraction) -> None:
    """Rows are distributions, columns are private, and q is kept: exactly."""
    assert all(sum(row) == 1 and min(row) > 0 for row in kernel)
    for j, column in enumerate(zip(*kernel, strict=True)):
        assert max(column) <= r * min(column)
        assert sum(mass * entry for mass, entry in zip(q, column, strict=True)) == q[j]


def largest_diagonal(q: list[Fraction], r: Fraction) -> Fraction:
    return r * q[0] / (1 + (r - 1) * q[0])


RATIOS = (Fraction(101, 100), Fraction(3, 2), Fraction(3), Fraction(50))


@pytest.mark.parametrize("r", RATIOS)
def test_algorithm_1_is_its_closed_form_and_reaches_the_bound(r: Fraction) -> None:
    for q in priors(random.Random(1), 60):
        kernel = recursion(q, r)
        assert closed_form(q, r) == kernel
        check_kernel(kernel, q, r)
        diagonal = [kernel[i][i] for i in range(len(q))]
        assert diagonal == sorted(diagonal)
        assert diagonal[0] == largest_diagonal(q, r)


@pytest.mark.parametrize("r", RATIOS)
def test_the_leximin_kernel_is_private_and_above_algorithm_1(r: Fraction) -> None:
    for q in priors(random.Random(int(r) + 5), 60):
        d, kernel = leximin(q, r)
        check_kernel(kernel, q, r)
        assert [kernel[i][i] for i in range(len(q))] == d
        assert min(d) == largest_diagonal(q, r)
        theirs = closed_form(q, r)
        assert sorted(d) >= sorted(theirs[i][i] for i in range(len(q)))


def test_the_certificate_sums_to_the_bound() -> None:
    """t <= b_1 follows from the rows and multipliers of the page, coefficient by coefficient."""
    draw = random.Random(4)
    for q in priors(draw, 40):
        r, n = Fraction(draw.randrange(11, 90), 10), len(q)
        d = r * q[0] + 1 - q[0]
        total: dict[object, Fraction] = {"t": ONE, (0, 0): -ONE}
        for x in range(1, n):
            total[0, 0] += q[x] / d
            total[x, 0] = -r * q[x] / d
        for x in range(n):
            total[x, 0] = total.get((x, 0), Fraction(0)) + r / d * q[x]
        assert {name: value for name, value in total.items() if value} == {"t": ONE}
        assert r / d * q[0] == largest_diagonal(q, r)
