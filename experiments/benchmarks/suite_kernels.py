"""Benchmarks of kernels: with a public prior, and on paths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

import dpopt
from dpopt import design, solve
from dpopt.prob import total_variation
from experiments.arrays import Floats
from experiments.benchmarks import rivals
from experiments.benchmarks.memory import Limits
from experiments.benchmarks.spec import Answer, Contender, benchmark

_APPLY_EPSILON, _PROGRAM_EPSILON, _SEED = 4.0, 1.0, 8


@dataclass(frozen=True)
class Instance:
    """A prior q, a user's distribution p, both of shape (n,), and epsilon."""

    prior: Floats
    pmf: Floats
    epsilon: float


def user(categories: int) -> Instance:
    """Return a random prior and a random user, epsilon = 4."""
    rng = np.random.default_rng([_SEED, categories])
    prior, pmf = rng.random(categories) + 1e-3, rng.random(categories)
    return Instance(prior / prior.sum(), pmf / pmf.sum(), _APPLY_EPSILON)


def program(categories: int) -> Instance:
    """Return a random prior for the program, epsilon = 1."""
    made = user(categories)
    return Instance(made.prior, made.pmf, _PROGRAM_EPSILON)


def closed_form(instance: Instance) -> Answer:
    """Apply Algorithm 1 in closed form."""
    kernel = dpopt.design(dpopt.PublicPrior(instance.prior, instance.epsilon))
    return _distance(instance, kernel.apply(instance.pmf))


def in_place(instance: Instance) -> Answer:
    """Make the matrix by the paper's recursion within one array, then pK."""
    kernel = printed_algorithm(instance.prior, instance.epsilon)
    return _distance(instance, instance.pmf @ kernel)


def _distance(instance: Instance, sampled: Floats) -> Answer:
    return Answer(float(total_variation(instance.pmf, sampled)))


def printed_algorithm(prior: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the matrix of Algorithm 1 by the paper's recursion, each level scaling its block."""
    order = np.argsort(prior, kind="stable")
    q, n, ratio = prior[order], prior.size, math.exp(epsilon)
    kernel = np.ones((n, n))
    for i in range(n - 1):
        # The conditional distribution of the categories that are left.
        left = q[i:] / q[i:].sum()
        below = ratio * left[0] + 1 - left[0]
        kernel[i, i + 1 :] *= left[1:] / below
        kernel[i + 1 :, i] *= left[0] / below
        kernel[i, i] *= ratio * left[0] / below
        kernel[i + 1 :, i + 1 :] *= 1 - left[0] / below
    found = np.empty_like(kernel)
    found[np.ix_(order, order)] = kernel
    return found


def by_dpopt(instance: Instance) -> Answer:
    """Write the program of Gamma_TV with n^2 rows, K = 1 u^T + V, and solve it."""
    problem = dpopt.PublicPrior(instance.prior, instance.epsilon).problem()
    found = solve(problem)
    return Answer(found.objective, note=f"{found.rows_used:,} rows")


def with_cvxpy(solver: str, instance: Instance) -> Answer:
    """Write the program in cvxpy as the paper states it: a row for each ratio."""
    import cvxpy as cp

    q, n = instance.prior, instance.prior.size
    chance, worst = cp.Variable((n, n), nonneg=True), cp.Variable()
    held = [cp.sum(chance, axis=1) == 1, q @ chance == q, 1 - cp.diag(chance) <= worst]
    for i in range(n):
        held += [chance[i] <= math.exp(instance.epsilon) * chance[j] for j in range(n) if j != i]
    return Answer(rivals.least(worst, held, solver), note=f"{n * n * (n - 1):,} ratio rows")


def every_ratio(instance: Instance) -> rivals.Written:
    """Return the same rows as a sparse matrix, for K row by row and then the worst distance."""
    q, ratio = instance.prior, math.exp(instance.epsilon)
    n = q.size
    i, other, j = (a.ravel() for a in np.indices((n, n, n)))
    i, other, j = i[i != other], other[i != other], j[i != other]
    data = np.concatenate([np.ones(i.size), np.full(i.size, -ratio)])
    columns = np.concatenate([i * n + j, other * n + j])
    rows = np.tile(np.arange(i.size), 2)
    ratios = sp.csr_array((data, (rows, columns)), shape=(i.size, n * n + 1))
    # -K(x, x) - worst <= -1 for each category x.
    diagonal = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))
    distances = -sp.hstack([diagonal, np.ones((n, 1))])
    sums = sp.kron(sp.eye_array(n), np.ones((1, n)))
    invariance = sp.kron(q[None, :], sp.eye_array(n))
    return rivals.Written(
        cost=np.append(np.zeros(n * n), 1.0),
        rows=sp.vstack([ratios, distances]).tocsr(),
        right=np.concatenate([np.zeros(i.size), np.full(n, -1.0)]),
        equal=sp.hstack([sp.vstack([sums, invariance]), sp.csr_array((2 * n, 1))]).tocsr(),
        sides=np.concatenate([np.ones(n), q]),
    )


def ratios_by(solver: rivals.Solver, instance: Instance) -> Answer:
    """Write every ratio as a sparse row and hand them to a solver."""
    n = instance.prior.size
    return Answer(solver(every_ratio(instance)), note=f"{n * n * (n - 1):,} ratio rows")


APPLY = benchmark(
    "prior-kernel",
    sizes=(10, 100, 1000, 3000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt, closed form", user, closed_form),
        Contender("recursion in one array", user, in_place, largest=3000),
    ),
    tolerance=1e-9,
)

PROGRAM = benchmark(
    "kernel-program",
    sizes=(5, 10, 20, 40, 60),
    contenders=(
        Contender("dpopt, shifted rows", program, by_dpopt),
        Contender("cvxpy + HiGHS, all rows", program, partial(with_cvxpy, "HIGHS"), 40),
        Contender("cvxpy + CLARABEL, all rows", program, partial(with_cvxpy, "CLARABEL"), 40),
        *(
            Contender(f"{name}, all rows", program, partial(ratios_by, solver), 40)
            for name, solver in ({"linprog": rivals.by_linprog} | rivals.HIGHS_ITSELF).items()
        ),
    ),
    warm_up=3,
    limits=Limits(180),
)


def path(inputs: int) -> Floats:
    """Return |x - y| along a path."""
    return np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs))).astype(np.float64)


def geometric(loss: Floats) -> Answer:
    """Certify the geometric mechanism with the best answers."""
    found = design(dpopt.Kernel(loss, _PROGRAM_EPSILON, graph="path", objective="mean"))
    return Answer(found.value, note=f"gap {found.gap:.0e}")


def path_by(solver: rivals.Solver, loss: Floats) -> Answer:
    """Write a row for each edge, direction and output, for K row by row."""
    n, ratio = len(loss), math.exp(_PROGRAM_EPSILON)
    steps, categories = (sp.eye_array(n - 1, n), sp.eye_array(n - 1, n, k=1)), sp.eye_array(n)
    ratios = [sp.kron(a - ratio * b, categories) for a, b in (steps, steps[::-1])]
    program = rivals.Written(
        cost=loss.ravel() / n,
        rows=sp.vstack(ratios).tocsr(),
        right=np.zeros(2 * n * (n - 1)),
        equal=sp.kron(categories, np.ones((1, n))).tocsr(),
        sides=np.ones(n),
    )
    return Answer(solver(program), note="no bound")


PATH = benchmark(
    "kernel-path",
    sizes=(20, 50, 100, 200, 500),
    contenders=(
        Contender("closed form", path, geometric),
        *(
            Contender(name, path, partial(path_by, solver), 100, same="PDLP" not in name)
            for name, solver in {
                "cvxpy + HiGHS": partial(rivals.by_cvxpy, solver="HIGHS", **rivals.TIGHT["HIGHS"]),
                "cvxpy + CLARABEL": partial(
                    rivals.by_cvxpy, solver="CLARABEL", **rivals.TIGHT["CLARABEL"]
                ),
                "linprog": rivals.by_linprog,
                **rivals.HIGHS_ITSELF,
            }.items()
        ),
    ),
    tolerance=1e-8,
    limits=Limits(60),
)
