"""The distributions of the rules, and priors of votes, against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest

from dpopt.ballots.choice import votes_pmf
from dpopt.table import SortedHistograms
from tests.ballots.pmfs import exponential, permute_and_flip


def flipped(counts: tuple[int, ...], step: Fraction) -> list[Fraction]:
    """Permute-and-flip by its definition: every order of the classes."""
    found = [Fraction(0)] * len(counts)
    for order in permutations(range(len(counts))):
        left = Fraction(1, factorial(len(counts)))
        for y in order:
            chance = 1 / step ** (max(counts) - counts[y])
            found[y] += left * chance
            left *= 1 - chance
    return found


@pytest.mark.parametrize("counts", [(3, 1), (4, 4, 1), (5, 3, 3, 0), (2, 2, 2, 1, 0)])
def test_permute_and_flip_by_definition(counts: tuple[int, ...]) -> None:
    step = Fraction(5, 4)
    assert list(permute_and_flip(counts, step)) == flipped(counts, step)
    weights = [step**count for count in counts]
    assert list(exponential(counts, step)) == [w / sum(weights) for w in weights]


def test_priors() -> None:
    inputs = SortedHistograms(4, 3)
    states = list(inputs.listed())
    uniform = votes_pmf("uniform", inputs)
    assert uniform.tolist() == pytest.approx([n / 15 for n in inputs.row_sizes], abs=1e-15)
    # Of one distribution, by all 81 votes.
    p, masses = (0.5, 0.3, 0.2), np.zeros(len(states))
    for votes in np.ndindex(*(3,) * 4):
        counts = tuple(sorted(np.bincount(votes, minlength=3).tolist(), reverse=True))
        masses[states.index(counts)] += math.prod(p[v] for v in votes)
    assert votes_pmf("point:0.2,0.5,0.3", inputs) == pytest.approx(masses, abs=1e-15)
    # p ~ Dirichlet(A, A, A), by quadrature over draws: the mean of the distributions of points.
    rng = np.random.default_rng(5)
    draws = rng.dirichlet([2.5] * 3, size=4000)
    texts = ["point:" + ",".join(map(repr, p)) for p in draws.round(12).tolist()]
    mean = np.mean([votes_pmf(text, inputs) for text in texts], axis=0)
    assert votes_pmf("dirichlet:2.5", inputs) == pytest.approx(mean, abs=0.02)
