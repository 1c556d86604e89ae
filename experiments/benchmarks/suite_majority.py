"""Benchmarks of DaRRM's noise function: ours, and ways that write every row of the paper."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import dpopt
from dpopt import majority
from dpopt.lp.backends.highs import Highs
from dpopt.prob import poisson_binomial_pmf
from experiments.benchmarks import rivals
from experiments.benchmarks.spec import (
    OURS,
    PAPER,
    SOLVER,
    Answer,
    Benchmark,
    Contender,
    limited,
)
from experiments.majority.full_set import full_problem, full_size

_EPSILON, _MECHANISM_DELTA, _FEW = 0.1, 1e-5, 3.0
_WHOLE_UP_TO = 30_000
_SAMPLE = 2_000
_SECONDS = 60

_BLOCK = 20_000
_LEAST_WEIGHT = 1e-9

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int16]
Law = Callable[[list[float]], Floats]


@dataclass(frozen=True)
class Instance:
    """A setting and the weights to maximise, shape ((K + 1) / 2,)."""

    setting: majority.MajoritySetting
    weights: Floats

    @classmethod
    def of(
        cls, mechanisms: int, epsilon: float, allowance: float, mechanism_delta: float
    ) -> Instance:
        """Return the instance for delta = 1 - (1 - Delta)^m and p_i uniform on [0, 1]."""
        delta = max(0.0, -math.expm1(allowance * math.log1p(-mechanism_delta)))
        setting = majority.MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta)
        weights = majority.expected_error_weights(mechanisms, majority.UniformPrior()).values
        # As in `majority.design`: smaller weights would be noise to the solver.
        return cls(setting, np.maximum(weights, _LEAST_WEIGHT * float(np.max(weights))))

    @property
    def corners(self) -> tuple[str, ...]:
        """The paper's corners: 4 if Delta = 0, else 8 (lemma 5.1)."""
        pure = ("00", "11", "bc", "cb")
        return pure if self.setting.mechanism_delta == 0.0 else (*pure, "D0", "0D", "1m", "m1")


def pure(mechanisms: int) -> Instance:
    """Return the instance for Delta = 0: m = K / 5 rounded down, K / 10 above K = 101."""
    allowance = mechanisms // (5 if mechanisms <= 101 else 10)
    return Instance.of(mechanisms, _EPSILON, float(allowance), 0.0)


def shifted(mechanisms: int) -> Instance:
    """Return the instance for Delta = 1e-5: m = 3."""
    return Instance.of(mechanisms, _EPSILON, _FEW, _MECHANISM_DELTA)


def shifted_tenth(mechanisms: int) -> Instance:
    """Return the instance for Delta = 1e-5: m = K / 10 rounded down."""
    return Instance.of(mechanisms, _EPSILON, float(mechanisms // 10), _MECHANISM_DELTA)


def solved(instance: Instance) -> Answer:
    """Solve by cutting planes; the last round prices every multiset of the reduced set."""
    solution = dpopt.solve(majority.gamma_problem(instance.setting, instance.weights))
    return _answer(solution.objective, solution.rows_used, solution.constraints_checked)


def beside_a_busy_process(instance: Instance) -> Answer:
    """Solve as users do: with as many BLAS threads as cores, while another process has work."""
    parent = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
    busy = subprocess.Popen([sys.executable, "-c", parent])
    try:
        with threadpool_limits(os.cpu_count(), user_api="blas"):
            return solved(instance)
    finally:
        busy.kill()
        busy.wait()


def surrogate(mechanism_delta: float, mechanisms: int) -> Instance:
    """Return the instance of the paper's objective: m = 3, delta = m Delta."""
    setting = majority.MajoritySetting(
        mechanisms, _EPSILON, _FEW, mechanism_delta, _FEW * mechanism_delta
    )
    return Instance(setting, majority.surrogate_weights(mechanisms).values)


def surrogate_of_ten(mechanisms: int) -> Instance:
    """Return the instance of the paper's objective for m = 10 and Delta = 0."""
    setting = majority.MajoritySetting(mechanisms, _EPSILON, 10.0)
    return Instance(setting, majority.surrogate_weights(mechanisms).values)


def every_multiset(instance: Instance) -> Answer:
    """Write the paper's full set, a row for each multiset, and solve by the same backend."""
    solution = dpopt.solve(full_problem(instance.setting, instance.weights))
    return _answer(solution.objective, solution.rows_used, full_size(instance.setting))


def certified(instance: Instance) -> Answer:
    """Solve, repair, quantise and certify in exact arithmetic."""
    setting = instance.setting
    design = majority.design(
        setting.mechanisms,
        setting.epsilon,
        setting.allowance,
        mechanism_delta=setting.mechanism_delta,
        delta=setting.delta,
        coefficients=instance.weights,
    )
    if design.certificate is None or design.solution is None or design.value is None:
        raise RuntimeError("the design came without a certificate.")
    return _answer(design.value, design.solution.rows_used, majority.reduced_size(setting))


def by_simplex(instance: Instance) -> Answer:
    """Solve by cutting planes at vertices alone: warm simplex rounds, whatever they take."""
    problem = majority.gamma_problem(instance.setting, instance.weights)
    solution = dpopt.solve(problem, Highs(rounds="simplex"))
    return _answer(solution.objective, solution.rows_used, solution.constraints_checked)


def by_highs(instance: Instance) -> Answer:
    """Write the paper's full set, built with arrays, in cvxpy; solve with HiGHS."""
    return _with_cvxpy(instance, "HIGHS")


def by_clarabel(instance: Instance) -> Answer:
    """Write the same in cvxpy; solve with CLARABEL."""
    return _with_cvxpy(instance, "CLARABEL")


def _with_cvxpy(instance: Instance, solver: str) -> Answer:
    import cvxpy as cp

    start = time.perf_counter()
    rows = shared_rows(instance, multisets(instance))
    built = time.perf_counter() - start
    # As constraints, the bounds would make HiGHS several times slower.
    gamma = cp.Variable(instance.setting.middle, bounds=[0.0, 1.0])
    limits: list[cp.Constraint] = [rows @ gamma <= instance.setting.budget]
    problem = cp.Problem(cp.Maximize(instance.weights @ gamma), limits)
    problem.solve(solver=solver)
    if problem.status != cp.OPTIMAL or gamma.value is None:
        raise RuntimeError(f"cvxpy ended with status {problem.status}.")
    return _every_row(float(instance.weights @ gamma.value), len(rows), built)


def by_linprog(instance: Instance) -> Answer:
    """Give the paper's full set, built with arrays, to scipy.optimize.linprog (HiGHS)."""
    start = time.perf_counter()
    rows = shared_rows(instance, multisets(instance))
    built = time.perf_counter() - start
    return _every_row(_linprog(instance, rows), len(rows), built)


def by_linopy(instance: Instance) -> Answer:
    """Write the paper's full set in linopy; solve with HiGHS."""
    return _written_out(instance, rivals.by_linopy)


def by_interior_points(instance: Instance) -> Answer:
    """Hand the paper's full set to HiGHS itself: interior points."""
    return _written_out(instance, rivals.by_interior_points)


def by_pdlp(instance: Instance) -> Answer:
    """Hand the paper's full set to HiGHS itself: PDLP."""
    return _written_out(instance, rivals.by_pdlp)


def _written_out(instance: Instance, solver: Callable[[rivals.Written], float]) -> Answer:
    start = time.perf_counter()
    rows = shared_rows(instance, multisets(instance))
    built = time.perf_counter() - start
    high = np.full(len(rows), instance.setting.budget)
    program = rivals.Written(-instance.weights, rows, np.full(len(rows), -np.inf), high)
    return _every_row(-solver(program), len(rows), built)


def one_law_each(instance: Instance) -> Answer:
    """Compute two Poisson-binomial laws for each multiset, one by one; then linprog.

    Where there are too many multisets, a uniform sample of them, and no solve.
    """
    law = faster_law(instance)
    total = full_size(instance.setting)
    if total > _WHOLE_UP_TO:
        counts = sampled_multisets(instance, _SAMPLE, np.random.default_rng(4))
        separate_rows(instance, counts, law)
        note = f"{law.__name__}; {_SAMPLE:,} of {total:,} multisets, without the solve"
        return Answer(None, part=_SAMPLE / total, note=note)
    start = time.perf_counter()
    rows = separate_rows(instance, multisets(instance), law)
    built = time.perf_counter() - start
    return _every_row(_linprog(instance, rows), len(rows), built, f"; {law.__name__}")


def _every_row(optimum: float, rows: int, built: float, more: str = "") -> Answer:
    return _answer(optimum, rows, rows, f"; built in {built:.2g} s{more}")


def _answer(optimum: float, rows: int, counted: int, more: str = "") -> Answer:
    return Answer(optimum, note=f"{rows:,} rows of {counted:,} multisets{more}")


def multisets(instance: Instance) -> Counts:
    """Return the paper's set: how many voters sit at each corner, shape (multisets, corners)."""
    counts = np.zeros((1, 0), np.int16)
    left = np.array([instance.setting.mechanisms])
    for _ in instance.corners[1:]:
        repeats = left + 1
        parent = np.repeat(np.arange(left.size), repeats)
        first = np.cumsum(repeats) - repeats
        here = np.arange(parent.size) - first[parent]
        counts = np.column_stack([counts[parent], here.astype(np.int16)])
        left = left[parent] - here
    return np.column_stack([counts, left.astype(np.int16)])


def sampled_multisets(instance: Instance, size: int, rng: np.random.Generator) -> Counts:
    """Draw multisets uniformly from the paper's set: bars among K stars."""
    bars = len(instance.corners) - 1
    places = instance.setting.mechanisms + bars
    chosen = np.sort([rng.choice(places, bars, replace=False) for _ in range(size)], axis=1)
    ends = np.pad(chosen, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, places)))
    return (np.diff(ends, axis=1) - 1).astype(np.int16)


def shared_rows(instance: Instance, counts: Counts) -> Floats:
    """Return alpha - e^(m epsilon) alpha', folded; a law is computed once for all its multisets.

    L is the number of voters at probability 1 plus a Poisson-binomial over the inner values, of
    which there are four at most.
    """
    k, ratio = instance.setting.mechanisms, instance.setting.ratio
    sides = [_laws(instance, counts, side) for side in (0, 1)]
    rows = np.empty((len(counts), instance.setting.middle))
    steps = np.arange(k + 1)
    for start in range(0, len(counts), _BLOCK):
        part = slice(start, start + _BLOCK)
        here, there = (
            laws[place[part, None], k - ones[part, None] + steps] for laws, place, ones in sides
        )
        rows[part] = _fold(here - ratio * there)
    return rows


def _laws(
    instance: Instance, counts: Counts, side: int
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct laws of inner voters behind K zeros, each row's law, its voters at 1."""
    k = instance.setting.mechanisms
    values = np.array([instance.setting.corner(name)[side] for name in instance.corners])
    inner = np.unique(values[(values > 0.0) & (values < 1.0)])
    at = np.column_stack([counts[:, values == value].sum(axis=1) for value in inner])
    code = at.astype(np.int64) @ (k + 1) ** np.arange(inner.size, dtype=np.int64)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    ends = np.cumsum(at[first], axis=1)
    which = (np.arange(k)[None, :, None] >= ends[:, None, :]).sum(axis=2)
    laws = poisson_binomial_pmf(np.append(inner, 0.0)[which])
    return np.pad(laws, ((0, 0), (k, 0))), place, counts[:, values == 1.0].sum(axis=1)


def separate_rows(instance: Instance, counts: Counts, law: Law) -> Floats:
    """Return the same rows from two calls of ``law`` for each multiset."""
    sides = np.array([instance.setting.corner(name) for name in instance.corners])
    rows = np.empty((len(counts), instance.setting.middle))
    for row, count in zip(rows, counts, strict=True):
        p, q = np.repeat(sides, count, axis=0).T.tolist()
        row[:] = _fold(law(p) - instance.setting.ratio * law(q))
    return rows


def convolution(p: list[float]) -> Floats:
    """Return a Poisson-binomial law by one numpy convolution for each voter."""
    law = np.ones(1)
    for value in p:
        law = np.convolve(law, (1.0 - value, value))
    return law


def poisson_binom(p: list[float]) -> Floats:
    """Return a Poisson-binomial law from `scipy.stats.poisson_binom`."""
    from scipy import stats

    return stats.poisson_binom.pmf(np.arange(len(p) + 1), p)


def faster_law(instance: Instance) -> Law:
    """Return which of the two is faster here, over 20 laws."""
    p = [instance.setting.corner("bc")[0]] * instance.setting.mechanisms
    seconds = {}
    for law in (convolution, poisson_binom):
        law(p)
        start = time.perf_counter()
        for _ in range(20):
            law(p)
        seconds[law] = time.perf_counter() - start
    return min(seconds, key=seconds.__getitem__)


def _fold(weights: Floats) -> Floats:
    middle = weights.shape[-1] // 2
    return weights[..., middle:] - weights[..., middle - 1 :: -1]


def _linprog(instance: Instance, rows: Floats) -> float:
    from scipy.optimize import linprog

    limits = np.full(len(rows), instance.setting.budget)
    result = linprog(-instance.weights, A_ub=rows, b_ub=limits, bounds=(0, 1), method="highs")
    if not result.success:
        raise RuntimeError(f"linprog ended with status {result.status}: {result.message}")
    return float(instance.weights @ result.x)


_ACCURACY = (
    "cvxpy, linopy and linprog as called by default (HiGHS 1e-7, CLARABEL 1e-8), interior point "
    "1e-10, PDLP 1e-7"
)

PURE = Benchmark(
    name="majority-pure",
    title="DaRRM's noise function, Delta = 0",
    measures="Solving equation 2 of the DaRRM paper over its whole set of corner multisets.",
    setting="epsilon = 0.1; m = K / 5 rounded down, K / 10 above K = 101; p_i uniform on [0, 1]; "
    + _ACCURACY,
    axis="voters K",
    value="optimum",
    sizes=(11, 21, 51, 101, 201, 501, 1001),
    contenders=(
        Contender("dpopt.solve", OURS, pure, solved),
        Contender("dpopt, certified", OURS, pure, certified, largest=501),
        Contender("cvxpy + HiGHS, all rows", SOLVER, pure, by_highs, largest=201),
        Contender("cvxpy + CLARABEL, all rows", SOLVER, pure, by_clarabel, largest=201),
        Contender("linprog, all rows", SOLVER, pure, by_linprog, largest=201),
        Contender("linopy + HiGHS, all rows", SOLVER, pure, by_linopy, 201, needs=rivals.LINOPY),
        Contender("HiGHS interior point, all rows", SOLVER, pure, by_interior_points, 201),
        Contender("HiGHS PDLP, all rows", SOLVER, pure, by_pdlp, 201),
        Contender("one law per corner", PAPER, pure, one_law_each, largest=201),
    ),
    tolerance=1e-6,
    warm_up=5,
)

SHIFTED = Benchmark(
    name="majority-shifted",
    title="DaRRM's noise function, Delta = 1e-5",
    measures="The same for voters that are only (epsilon, Delta)-DP: eight corners, not four.",
    setting="epsilon = 0.1, Delta = 1e-5, m = 3, delta = 1 - (1 - Delta)^3; p_i uniform on [0, 1]; "
    + _ACCURACY,
    axis="voters K",
    value="optimum",
    sizes=(5, 11, 15, 21, 31, 41),
    contenders=(
        Contender("dpopt.solve", OURS, shifted, solved),
        Contender("dpopt, certified", OURS, shifted, certified),
        Contender("cvxpy + HiGHS, all rows", SOLVER, shifted, by_highs, 31, seconds=_SECONDS),
        Contender("cvxpy + CLARABEL, all rows", SOLVER, shifted, by_clarabel, largest=31),
        Contender("linprog, all rows", SOLVER, shifted, by_linprog, largest=31),
        Contender("linopy + HiGHS, all rows", SOLVER, shifted, by_linopy, 31, needs=rivals.LINOPY),
        Contender("HiGHS interior point, all rows", SOLVER, shifted, by_interior_points, 31),
        Contender("HiGHS PDLP, all rows", SOLVER, shifted, by_pdlp, 31),
        Contender("one law per corner", PAPER, shifted, one_law_each, largest=31),
    ),
    tolerance=1e-6,
    warm_up=5,
)

MANY = Benchmark(
    name="majority-many",
    title="DaRRM's noise function, Delta = 1e-5, many voters",
    measures="The same at sizes that only cutting planes reach.",
    setting="epsilon = 0.1, Delta = 1e-5, m = K / 10 rounded down, delta = 1 - (1 - Delta)^m",
    axis="voters K",
    value="optimum",
    sizes=(31, 51, 71, 101, 151, 201, 301),
    contenders=(
        Contender("dpopt.solve", OURS, shifted_tenth, solved),
        Contender("dpopt, certified", OURS, shifted_tenth, certified),
    ),
    tolerance=1e-6,
    warm_up=11,
    limits=limited(60),
)


LARGE = Benchmark(
    name="majority-large",
    title="DaRRM's noise function, many voters and a small allowance",
    measures="Cutting planes at interior points, where those at vertices take long.",
    setting="epsilon = 0.1, Delta = 0, m = 3; the paper's surrogate",
    axis="voters K",
    value="optimum",
    sizes=(101, 201, 301, 401, 501, 701, 1001),
    contenders=(
        Contender("dpopt.solve", OURS, partial(surrogate, 0.0), solved),
        Contender("dpopt, certified", OURS, partial(surrogate, 0.0), certified),
        Contender("simplex rounds", OURS, partial(surrogate, 0.0), by_simplex, largest=501),
    ),
    tolerance=1e-6,
    warm_up=11,
    limits=limited(60),
)


THREADS = Benchmark(
    name="majority-threads",
    title="DaRRM's noise function beside other work",
    measures="The same with the threads that users have: small dense algebra must not wait for "
    "threads that a busy process keeps waiting.",
    setting="epsilon = 0.1, Delta = 0, m = 10; the paper's surrogate; seconds are the processor's, "
    "of all threads",
    axis="voters K",
    value="optimum",
    sizes=(101, 151, 201, 301, 501),
    contenders=(
        Contender("dpopt.solve, one BLAS thread", OURS, surrogate_of_ten, solved),
        Contender(
            "dpopt.solve, as many as cores, beside a busy process",
            OURS,
            surrogate_of_ten,
            beside_a_busy_process,
        ),
    ),
    tolerance=1e-6,
    warm_up=11,
    limits=limited(60),
)


def _corner_sets(
    name: str, case: str, mechanism_delta: float, order: str, sizes: tuple[int, ...]
) -> Benchmark:
    prepare = partial(surrogate, mechanism_delta)
    return Benchmark(
        name=name,
        title=f"Lemma 5.1: the whole set of corners and the reduced one, {case}",
        measures="Writing and solving the program over the paper's set of multisets, and over the "
        "reduced set, whose rows are priced.",
        setting=f"epsilon = 0.1, {case}, m = 3, delta = m Delta; the paper's surrogate; the "
        f"paper's set has {order} multisets; dpopt's backend for both",
        axis="voters K",
        value="optimum",
        sizes=sizes,
        contenders=(
            Contender("reduced set, priced", OURS, prepare, solved),
            Contender("every row of the paper", SOLVER, prepare, every_multiset),
        ),
        tolerance=1e-9,
        warm_up=3,
    )


BENCHMARKS = (
    PURE,
    SHIFTED,
    MANY,
    LARGE,
    THREADS,
    _corner_sets("majority-corner-sets", "Delta = 0", 0.0, "O(K^3)", (11, 21, 35, 51, 71)),
    _corner_sets(
        "majority-corner-sets-shifted",
        "Delta = 1e-5",
        _MECHANISM_DELTA,
        "O(K^7)",
        (5, 7, 9, 11, 13),
    ),
)
