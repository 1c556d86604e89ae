"""Benchmarks of votes over several classes: private voters, and plain ballots."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import multiclass, plurality
from dpopt.kernel import KernelSetting
from dpopt.table import SortedHistograms
from experiments.benchmarks.spec import OURS, SOLVER, Answer, Benchmark, Contender, limited

_CLASSES, _EPSILON, _ALLOWANCE, _BALLOT = 3, 0.1, 3.0, 0.5

Floats = npt.NDArray[np.float64]


def same(size: int) -> int:
    """Return the size itself."""
    return size


def cutting(voters: int) -> Answer:
    """Design the plurality of private voters: rows that are priced, then the proof."""
    found = multiclass.design(voters, _CLASSES, _EPSILON, min(_ALLOWANCE, voters))
    return Answer(found.value)


def every_multiset(voters: int) -> Answer:
    """Give cvxpy a row for each multiset of the nine corners, with HiGHS."""
    import cvxpy as cp

    inputs = SortedHistograms(voters, _CLASSES)
    target = math.exp(min(_ALLOWANCE, voters) * _EPSILON)
    rows = np.array(
        [
            law - target * other
            for law, other in map(expected, combinations_with_replacement(corners(), voters))
        ]
    )
    # The row is of the first class, by the variables that are the same up to names.
    matrix = rows @ places(inputs)
    kernel = cp.Variable(inputs.size, nonneg=True)
    orders = np.array(inputs.row_sizes, dtype=float)
    missed = (orders / orders.sum())[inputs.rows] * inputs.counts
    missed[inputs.starts[:-1]] = 0.0
    rules = [inputs.sums @ kernel == 1, matrix @ kernel <= 0]
    problem = cp.Problem(cp.Minimize(missed @ kernel), rules)
    problem.solve(solver="HIGHS")
    return Answer(float(np.asarray(problem.value)))


Corner = tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]


def corners() -> list[Corner]:
    """Return the corners of pairs of laws on three classes: (class, probability) of each law."""
    large = math.exp(_EPSILON) / (1 + math.exp(_EPSILON))
    found: list[Corner] = []
    for y, z in product(range(_CLASSES), repeat=2):
        if y == z:
            found.append((((y, 1.0),), ((y, 1.0),)))
        else:
            found.append((((y, large), (z, 1 - large)), ((y, 1 - large), (z, large))))
    return found


def expected(chosen: tuple[Corner, ...]) -> tuple[Floats, Floats]:
    """Return the laws of the counts of the first two classes, flat, under P and under P'."""
    laws = []
    for side in (0, 1):
        law = np.ones((1, 1))
        for corner in chosen:
            grown = np.zeros((law.shape[0] + 1, law.shape[1] + 1))
            for letter, chance in corner[side]:
                a, b = int(letter == 0), int(letter == 1)
                grown[a : a + law.shape[0], b : b + law.shape[1]] += chance * law
            law = grown
        laws.append(law.ravel())
    return laws[0], laws[1]


def places(inputs: SortedHistograms) -> Floats:
    """Return which variable is the first class's at each pair of counts, as a 0-1 matrix."""
    side, every = inputs.records + 1, inputs.every()
    found = np.zeros((side * side, inputs.size))
    found[every[:, 0] * side + every[:, 1], inputs.table()[:, 0]] = 1.0
    return found


def over_partitions(ballots: int) -> Answer:
    """Design the plurality of plain ballots, over sorted histograms."""
    return Answer(plurality.design(ballots, _CLASSES, _BALLOT).value)


def over_histograms(ballots: int) -> Answer:
    """Design it as a kernel over all histograms, of which nothing else is known."""
    losses, edges = histograms(ballots)
    return Answer(dpopt.design(KernelSetting(losses, _BALLOT, graph=edges)).value)


def with_cvxpy(ballots: int) -> Answer:
    """Give cvxpy the program over all histograms, with HiGHS."""
    import cvxpy as cp

    losses, edges = histograms(ballots)
    law = cp.Variable(losses.shape, nonneg=True)
    ways = np.vstack([edges, edges[:, ::-1]])
    held: list[Any] = [
        cp.sum(law, axis=1) == 1,
        law[ways[:, 0]] <= math.exp(_BALLOT) * law[ways[:, 1]],
    ]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(losses, law)) / len(losses)), held)
    problem.solve(solver="HIGHS")
    return Answer(float(np.asarray(problem.value)))


def histograms(ballots: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the regrets at all histograms, and the pairs that one replaced ballot joins."""
    listed = [(a, b, ballots - a - b) for a in range(ballots + 1) for b in range(ballots + 1 - a)]
    place = {counts: at for at, counts in enumerate(listed)}
    pairs: Counter[tuple[int, int]] = Counter()
    for counts, at in place.items():
        for loser, gainer in product(range(_CLASSES), repeat=2):
            if loser != gainer and counts[loser]:
                moved = list(counts)
                moved[loser] -= 1
                moved[gainer] += 1
                there = place[moved[0], moved[1], moved[2]]
                pairs[min(at, there), max(at, there)] += 1
    table = np.array(listed)
    return (table.max(axis=1, keepdims=True) - table).astype(float), np.array(list(pairs))


PRIVATE = Benchmark(
    name="votes-private",
    title="The plurality of private voters",
    measures="From the parameters to a proved table, in integers; the solver's optimum alone.",
    setting="three classes, epsilon = 0.1, m = 3; every histogram as likely",
    axis="voters K",
    value="probability that the plurality is missed",
    sizes=(7, 9, 11, 21, 31),
    contenders=(
        Contender("dpopt", OURS, same, cutting),
        Contender("cvxpy + HiGHS, all corners", SOLVER, same, every_multiset, largest=11),
    ),
    tolerance=1e-6,
    warm_up=3,
    limits=limited(60),
)

PLAIN = Benchmark(
    name="votes-plain",
    title="The plurality of plain ballots",
    measures="From the parameters to a proved table, in integers; the solver's optimum alone.",
    setting="three classes, epsilon = 0.5; every histogram as likely",
    axis="ballots K",
    value="mean regret in ballots",
    sizes=(5, 10, 15, 20, 60),
    contenders=(
        Contender("dpopt, sorted histograms", OURS, same, over_partitions),
        Contender("dpopt, all histograms", OURS, same, over_histograms, largest=20),
        Contender("cvxpy + HiGHS, all histograms", SOLVER, same, with_cvxpy, largest=20),
    ),
    tolerance=1e-6,
    warm_up=3,
    limits=limited(60),
)

BENCHMARKS = (PRIVATE, PLAIN)
