"""Benchmarks of votes: DaRRM's noise function, private voters over classes, and plain ballots."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

import dpopt
from dpopt import majority
from dpopt.table import SortedHistograms
from experiments.arrays import Floats, Ints
from experiments.benchmarks import rivals
from experiments.benchmarks.memory import Limits
from experiments.benchmarks.spec import Answer, Benchmark, Contender, benchmark, same
from experiments.majority.full_set import every_multiset, full_problem, full_size, rows_of

_EPSILON, _MECHANISM_DELTA, _FEW = 0.1, 1e-5, 3.0
_CLASSES, _BALLOT = 3, 0.5
_LEAST_WEIGHT = 1e-9


@dataclass(frozen=True)
class Instance:
    """A setting and the weights to maximise, shape ((K + 1) / 2,)."""

    setting: dpopt.Majority
    weights: Floats

    @classmethod
    def of(cls, voters: int, epsilon: float, allowance: float, voter_delta: float) -> Instance:
        """Return the instance for delta = 1 - (1 - Delta)^m and p_i uniform on [0, 1]."""
        delta = max(0.0, -math.expm1(allowance * math.log1p(-voter_delta)))
        setting = dpopt.Majority(voters, epsilon, allowance, voter_delta, delta)
        weights = majority.expected_error_weights(voters, majority.UniformPrior()).values
        # As in `Majority`: smaller weights would be noise to the solver.
        return cls(setting, np.maximum(weights, _LEAST_WEIGHT * float(np.max(weights))))


def pure(voters: int) -> Instance:
    """Return the instance for Delta = 0: m = K / 5 rounded down, K / 10 above K = 101."""
    allowance = voters // (5 if voters <= 101 else 10)
    return Instance.of(voters, _EPSILON, float(allowance), 0.0)


def shifted(voters: int) -> Instance:
    """Return the instance for Delta = 1e-5: m = 3."""
    return Instance.of(voters, _EPSILON, _FEW, _MECHANISM_DELTA)


def shifted_tenth(voters: int) -> Instance:
    """Return the instance for Delta = 1e-5: m = K / 10 rounded down."""
    return Instance.of(voters, _EPSILON, float(voters // 10), _MECHANISM_DELTA)


def surrogate(voter_delta: float, voters: int) -> Instance:
    """Return the instance of the paper's objective: m = 3, delta = m Delta."""
    setting = dpopt.Majority(voters, _EPSILON, _FEW, voter_delta, _FEW * voter_delta)
    return Instance(setting, majority.surrogate_weights(voters).values)


def solved(instance: Instance) -> Answer:
    """Solve by cutting planes; the last round prices every multiset of the reduced set."""
    solution = dpopt.solve(majority.gamma_problem(instance.setting, instance.weights))
    return _answer(solution.objective, solution.rows_used, solution.constraints_checked)


def certified(instance: Instance) -> Answer:
    """Solve, repair, quantise and certify in exact arithmetic."""
    setting = instance.setting
    design = dpopt.design(replace(setting, coefficients=instance.weights))
    if design.certificate is None or design.solution is None or design.value is None:
        raise RuntimeError("the design came without a certificate.")
    return _answer(design.value, design.solution.rows_used, majority.reduced_size(setting))


def over_the_full_set(instance: Instance) -> Answer:
    """Write the paper's full set, a row for each multiset, and solve by the same backend."""
    solution = dpopt.solve(full_problem(instance.setting, instance.weights))
    return _answer(solution.objective, solution.rows_used, full_size(instance.setting))


def all_rows(solver: rivals.Solver, instance: Instance) -> Answer:
    """Hand the paper's full set, built with arrays, to a solver."""
    start = time.perf_counter()
    rows = rows_of(instance.setting, every_multiset(instance.setting))
    built = time.perf_counter() - start
    limits = np.full(len(rows), instance.setting.budget)
    optimum = -solver(rivals.Written(-instance.weights, rows, limits))
    return _answer(optimum, len(rows), len(rows), f"; built in {built:.2g} s")


def _answer(optimum: float, rows: int, counted: int, more: str = "") -> Answer:
    return Answer(optimum, note=f"{rows:,} rows of {counted:,} multisets{more}")


def cutting(voters: int) -> Answer:
    """Design the plurality of private voters: rows that are priced, then the proof."""
    found = dpopt.design(dpopt.Multiclass(voters, _CLASSES, _EPSILON, min(_FEW, voters)))
    return Answer(found.value)


def every_corner(voters: int) -> Answer:
    """Give cvxpy a row for each multiset of the nine corners, with HiGHS."""
    import cvxpy as cp

    inputs = SortedHistograms(voters, _CLASSES)
    target = math.exp(min(_FEW, voters) * _EPSILON)
    rows = np.array(
        [
            pmf - target * other
            for pmf, other in map(expected, combinations_with_replacement(corners(), voters))
        ]
    )
    # The row is of the first class, by the variables that are the same up to names.
    matrix = rows @ places(inputs)
    kernel = cp.Variable(inputs.size, nonneg=True)
    orders = np.array(inputs.row_sizes, dtype=float)
    missed = (orders / orders.sum())[inputs.rows] * inputs.counts
    missed[inputs.starts[:-1]] = 0.0
    rules = [inputs.sums @ kernel == 1, matrix @ kernel <= 0]
    return Answer(rivals.least(missed @ kernel, rules))


Corner = tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]


def corners() -> list[Corner]:
    """Return the corners of pairs of pmfs on three classes: (class, probability) of each pmf."""
    large = math.exp(_EPSILON) / (1 + math.exp(_EPSILON))
    found: list[Corner] = []
    for y, z in product(range(_CLASSES), repeat=2):
        if y == z:
            found.append((((y, 1.0),), ((y, 1.0),)))
        else:
            found.append((((y, large), (z, 1 - large)), ((y, 1 - large), (z, large))))
    return found


def expected(chosen: tuple[Corner, ...]) -> tuple[Floats, Floats]:
    """Return the pmfs of the counts of the first two classes, flat, under P and under P'."""
    pmfs = []
    for side in (0, 1):
        pmf = np.ones((1, 1))
        for corner in chosen:
            grown = np.zeros((pmf.shape[0] + 1, pmf.shape[1] + 1))
            for category, chance in corner[side]:
                a, b = int(category == 0), int(category == 1)
                grown[a : a + pmf.shape[0], b : b + pmf.shape[1]] += chance * pmf
            pmf = grown
        pmfs.append(pmf.ravel())
    return pmfs[0], pmfs[1]


def places(inputs: SortedHistograms) -> Floats:
    """Return which variable is the first class's at each pair of counts, as a 0-1 matrix."""
    side, every = inputs.records + 1, inputs.every()
    found = np.zeros((side * side, inputs.size))
    found[every[:, 0] * side + every[:, 1], inputs.table()[:, 0]] = 1.0
    return found


def over_partitions(ballots: int) -> Answer:
    """Design the plurality of plain ballots, over sorted histograms."""
    return Answer(dpopt.design(dpopt.Plurality(ballots, _CLASSES, _BALLOT)).value)


def with_cvxpy(ballots: int) -> Answer:
    """Give cvxpy the program over all histograms, with HiGHS."""
    import cvxpy as cp

    losses, edges = histograms(ballots)
    pmf = cp.Variable(losses.shape, nonneg=True)
    ways = np.vstack([edges, edges[:, ::-1]])
    held: list[Any] = [
        cp.sum(pmf, axis=1) == 1,
        pmf[ways[:, 0]] <= math.exp(_BALLOT) * pmf[ways[:, 1]],
    ]
    return Answer(rivals.least(cp.sum(cp.multiply(losses, pmf)) / len(losses), held))


def histograms(ballots: int) -> tuple[Floats, Ints]:
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


def _noise_function(
    name: str,
    sizes: tuple[int, ...],
    prepare: Any,  # noqa: ANN401
    *,
    certified_up_to: int | None = None,
    written_up_to: int | None = None,
    seconds: int = 60,
) -> Benchmark:
    """Return a benchmark of dpopt, and of solvers of every row up to a size."""
    solvers = rivals.DEFAULTS | rivals.HIGHS_ITSELF if written_up_to else {}
    return benchmark(
        name,
        sizes=sizes,
        contenders=(
            Contender("dpopt.solve", prepare, solved),
            Contender("dpopt, certified", prepare, certified, certified_up_to),
            *(
                Contender(f"{name}, all rows", prepare, partial(all_rows, solver), written_up_to)
                for name, solver in solvers.items()
            ),
        ),
        warm_up=5 if written_up_to else 11,
        limits=Limits(seconds),
    )


def _corner_sets(name: str, voter_delta: float, sizes: tuple[int, ...]) -> Benchmark:
    prepare = partial(surrogate, voter_delta)
    return benchmark(
        name,
        sizes=sizes,
        contenders=(
            Contender("reduced set, priced", prepare, solved),
            Contender("every row of the paper", prepare, over_the_full_set),
        ),
        tolerance=1e-9,
        warm_up=3,
    )


PURE = _noise_function(
    "majority-pure",
    (11, 21, 51, 101, 201, 501, 1001),
    pure,
    certified_up_to=501,
    written_up_to=201,
    seconds=30,
)
SHIFTED = _noise_function("majority-shifted", (5, 11, 15, 21, 31, 41), shifted, written_up_to=31)
MANY = _noise_function("majority-many", (31, 51, 71, 101, 151, 201, 301), shifted_tenth)
LARGE = _noise_function(
    "majority-large", (101, 201, 301, 401, 501, 701, 1001), partial(surrogate, 0.0)
)
CORNERS = _corner_sets("majority-corner-sets", 0.0, (11, 21, 35, 51, 71))
SHIFTED_CORNERS = _corner_sets("majority-corner-sets-shifted", _MECHANISM_DELTA, (5, 7, 9, 11, 13))

PRIVATE = benchmark(
    "votes-private",
    sizes=(7, 9, 11, 21, 31),
    contenders=(
        Contender("dpopt", same, cutting),
        Contender("cvxpy + HiGHS, all corners", same, every_corner, largest=11),
    ),
    warm_up=3,
    limits=Limits(60),
)

PLAIN = benchmark(
    "votes-plain",
    sizes=(5, 10, 15, 20, 60),
    contenders=(
        Contender("dpopt, sorted histograms", same, over_partitions),
        Contender("cvxpy + HiGHS, all histograms", same, with_cvxpy, largest=20),
    ),
    warm_up=3,
    limits=Limits(60),
)
