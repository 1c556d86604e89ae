"""Benchmarks of kernels with a public prior: pK in closed form, and the program of Gamma_TV."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpopt import public_prior, solve
from dpopt.prob import total_variation
from experiments.benchmarks.spec import (
    OURS,
    PAPER,
    SOLVER,
    Answer,
    Benchmark,
    Contender,
    Target,
)

_APPLY_EPSILON, _PROGRAM_EPSILON, _SEED = 4.0, 1.0, 8
_SECONDS = 180

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """A prior q, a user's law p, both of shape (n,), and epsilon."""

    prior: Floats
    law: Floats
    epsilon: float


def user(letters: int) -> Instance:
    """Return a random prior and a random user, epsilon = 4."""
    rng = np.random.default_rng([_SEED, letters])
    prior, law = rng.random(letters) + 1e-3, rng.random(letters)
    return Instance(prior / prior.sum(), law / law.sum(), _APPLY_EPSILON)


def program(letters: int) -> Instance:
    """Return a random prior for the program, epsilon = 1."""
    made = user(letters)
    return Instance(made.prior, made.law, _PROGRAM_EPSILON)


def closed_form(instance: Instance) -> Answer:
    """Apply Algorithm 1 in closed form."""
    kernel = public_prior.minimax_kernel(instance.prior, instance.epsilon)
    return _distance(instance, kernel.apply(instance.law))


def leximin(instance: Instance) -> Answer:
    """Apply the leximin kernel, which has the same worst case and another mean."""
    kernel = public_prior.leximin_kernel(instance.prior, instance.epsilon)
    return _distance(instance, kernel.apply(instance.law))


def in_place(instance: Instance) -> Answer:
    """Make the matrix by the paper's recursion within one array, then pK."""
    from experiments.public_prior.kernels_time import printed_algorithm

    kernel = printed_algorithm(instance.prior, instance.epsilon)
    return _distance(instance, instance.law @ kernel)


def as_printed(instance: Instance) -> Answer:
    """Make the matrix as the paper prints it, each level a new matrix, then pK."""
    from experiments.public_prior.kernels_time import grown_algorithm

    kernel = grown_algorithm(instance.prior, instance.epsilon)
    return _distance(instance, instance.law @ kernel)


def _distance(instance: Instance, sampled: Floats) -> Answer:
    return Answer(float(total_variation(instance.law, sampled)))


def shifted_form(instance: Instance) -> Answer:
    """Solve the program with n^2 rows: K = 1 u^T + V."""
    problem = public_prior.tv_problem(instance.prior, instance.epsilon, "shifted")
    return Answer(solve(problem).objective)


def by_highs(instance: Instance) -> Answer:
    """Write a row for each ratio in cvxpy; solve with HiGHS."""
    from experiments.benchmarks.kernel_lp import with_cvxpy

    return Answer(with_cvxpy(instance.prior, instance.epsilon, "HIGHS"), note=_rows(instance))


def by_clarabel(instance: Instance) -> Answer:
    """Write a row for each ratio in cvxpy; solve with CLARABEL."""
    from experiments.benchmarks.kernel_lp import with_cvxpy

    return Answer(with_cvxpy(instance.prior, instance.epsilon, "CLARABEL"), note=_rows(instance))


def by_linprog(instance: Instance) -> Answer:
    """Give every ratio as a sparse row to scipy's linprog."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    q, ratio = instance.prior, math.exp(instance.epsilon)
    n = q.size
    i, other, j = (a.ravel() for a in np.indices((n, n, n)))
    kept = i != other
    i, other, j = i[kept], other[kept], j[kept]
    place = np.arange(i.size)
    data = np.concatenate([np.ones(i.size), np.full(i.size, -ratio)])
    columns = np.concatenate([i * n + j, other * n + j])
    ratios = sp.csr_array((data, (np.tile(place, 2), columns)), shape=(i.size, n * n + 1))
    diagonal = np.arange(n) * (n + 1)
    worst = sp.csr_array(
        (
            np.full(2 * n, -1.0),
            (np.tile(np.arange(n), 2), np.append(diagonal, np.full(n, n * n))),
        ),
        shape=(n, n * n + 1),
    )
    sums = sp.kron(sp.eye_array(n), np.ones((1, n)))
    kept_prior = sp.kron(q[None, :], sp.eye_array(n))
    equal = sp.hstack([sp.vstack([sums, kept_prior]), sp.csr_array((2 * n, 1))]).tocsr()
    result = linprog(
        np.append(np.zeros(n * n), 1.0),
        A_ub=sp.vstack([ratios, worst]).tocsr(),
        b_ub=np.append(np.zeros(i.size), -np.ones(n)),
        A_eq=equal,
        b_eq=np.append(np.ones(n), q),
        bounds=(0, None),
        method="highs",
    )
    if not result.success:
        raise RuntimeError(f"linprog ended with status {result.status}: {result.message}")
    return Answer(float(result.fun), note=_rows(instance))


def _rows(instance: Instance) -> str:
    n = instance.prior.size
    return f"{n * n * (n - 1):,} ratio rows"


APPLY = Benchmark(
    name="prior-kernel",
    title="Locally private sampling: Algorithm 1",
    measures="From a public prior q and a user's law p to the law pK that the user samples from.",
    setting="epsilon = 4; q and p random",
    axis="letters n",
    value="TV(p, pK)",
    sizes=(10, 100, 1000, 3000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt, closed form", OURS, user, closed_form),
        Contender("dpopt, leximin kernel", OURS, user, leximin, same=False),
        Contender("recursion in one array", PAPER, user, in_place, largest=3000),
        Contender("recursion as printed", PAPER, user, as_printed, largest=3000),
    ),
    tolerance=1e-9,
    warm_up=5,
)

PROGRAM = Benchmark(
    name="kernel-program",
    title="The program of Gamma_TV",
    measures="Building and solving the linear program of the kernel with a public prior.",
    setting="epsilon = 1; q random",
    axis="letters n",
    value="optimum",
    sizes=(5, 10, 20, 40, 60),
    contenders=(
        Contender("dpopt, shifted rows", OURS, program, shifted_form),
        Contender("cvxpy + HiGHS, all rows", SOLVER, program, by_highs, 40, seconds=_SECONDS),
        Contender("cvxpy + CLARABEL, all rows", SOLVER, program, by_clarabel, largest=40),
        Contender("linprog, all rows", SOLVER, program, by_linprog, largest=40),
    ),
    tolerance=1e-6,
    warm_up=3,
    targets=(Target(40, "cvxpy + HiGHS, all rows", 1735.0),),
)

BENCHMARKS = (APPLY, PROGRAM)
