"""Benchmarks of DaRRM's noise function: Delta = 0 and Delta > 0."""

from __future__ import annotations

from dpopt import majority
from experiments.benchmarks import majority_contenders as ways
from experiments.benchmarks.spec import (
    OURS,
    PAPER,
    SOLVER,
    Answer,
    Benchmark,
    Contender,
    Target,
)

_EPSILON, _MECHANISM_DELTA, _FEW = 0.1, 1e-5, 3.0
_WHOLE_UP_TO = 30_000
_SAMPLE = 2_000
_SECONDS = 60


def pure(mechanisms: int) -> ways.Instance:
    """Return the instance for Delta = 0: m = K / 5 rounded down, K / 10 above K = 101."""
    allowance = mechanisms // (5 if mechanisms <= 101 else 10)
    return ways.Instance.of(mechanisms, _EPSILON, float(allowance), 0.0)


def shifted(mechanisms: int) -> ways.Instance:
    """Return the instance for Delta = 1e-5: m = 3."""
    return ways.Instance.of(mechanisms, _EPSILON, _FEW, _MECHANISM_DELTA)


def solved(instance: ways.Instance) -> Answer:
    """Solve by cutting planes."""
    return _answer(ways.ours(instance))


def certified(instance: ways.Instance) -> Answer:
    """Solve, repair, quantise and prove."""
    return _answer(ways.ours_certified(instance))


def by_highs(instance: ways.Instance) -> Answer:
    """Give every row to cvxpy and HiGHS."""
    return _answer(ways.with_cvxpy(instance, "HIGHS"))


def by_clarabel(instance: ways.Instance) -> Answer:
    """Give every row to cvxpy and CLARABEL."""
    return _answer(ways.with_cvxpy(instance, "CLARABEL"))


def by_linprog(instance: ways.Instance) -> Answer:
    """Give every row to scipy's linprog."""
    return _answer(ways.with_linprog(instance))


def one_law_each(instance: ways.Instance) -> Answer:
    """Compute a Poisson-binomial pair for each multiset; a sample where there are too many."""
    total = majority.full_size(instance.setting)
    if total <= _WHOLE_UP_TO:
        return _answer(ways.one_by_one(instance))
    found = ways.one_by_one_sampled(instance, _SAMPLE)
    note = f"{found.note}; {_SAMPLE:,} of {total:,} multisets, without the solve"
    return Answer(None, part=_SAMPLE / total, note=note)


def _answer(found: ways.Answer) -> Answer:
    rows = f"{found.rows:,} rows of {found.multisets:,} multisets"
    return Answer(found.optimum, note=f"{rows}; {found.note}" if found.note else rows)


PURE = Benchmark(
    name="majority-pure",
    title="DaRRM's noise function, Delta = 0",
    measures="Solving equation 2 of the DaRRM paper over its whole set of corner multisets.",
    setting="epsilon = 0.1; m = K / 5 rounded down, K / 10 above K = 101; p_i uniform on [0, 1]",
    axis="voters K",
    value="optimum",
    sizes=(11, 21, 51, 101, 201, 501, 1001),
    contenders=(
        Contender("dpopt.solve", OURS, pure, solved),
        Contender("dpopt, certified", OURS, pure, certified, largest=501),
        Contender("cvxpy + HiGHS, all rows", SOLVER, pure, by_highs, largest=201),
        Contender("cvxpy + CLARABEL, all rows", SOLVER, pure, by_clarabel, largest=201),
        Contender("linprog, all rows", SOLVER, pure, by_linprog, largest=201),
        Contender("one law per corner", PAPER, pure, one_law_each, largest=201),
    ),
    tolerance=1e-6,
    warm_up=5,
    targets=(Target(101, "cvxpy + HiGHS, all rows", 629.0),),
)

SHIFTED = Benchmark(
    name="majority-shifted",
    title="DaRRM's noise function, Delta = 1e-5",
    measures="The same for voters that are only (epsilon, Delta)-DP: eight corners, not four.",
    setting="epsilon = 0.1, Delta = 1e-5, m = 3, delta = 1 - (1 - Delta)^3; p_i uniform on [0, 1]",
    axis="voters K",
    value="optimum",
    sizes=(5, 11, 15, 21, 31, 41),
    contenders=(
        Contender("dpopt.solve", OURS, shifted, solved),
        Contender("dpopt, certified", OURS, shifted, certified),
        Contender("cvxpy + HiGHS, all rows", SOLVER, shifted, by_highs, 31, seconds=_SECONDS),
        Contender("cvxpy + CLARABEL, all rows", SOLVER, shifted, by_clarabel, largest=31),
        Contender("linprog, all rows", SOLVER, shifted, by_linprog, largest=31),
        Contender("one law per corner", PAPER, shifted, one_law_each, largest=31),
    ),
    tolerance=1e-6,
    warm_up=5,
    targets=(Target(21, "cvxpy + HiGHS, all rows", 386.0),),
)

BENCHMARKS = (PURE, SHIFTED)
