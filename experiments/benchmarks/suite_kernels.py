"""Benchmarks of kernels: with a public prior, on paths and on grids."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import Design, Problem, design, kernel, public_prior, solve
from dpopt.prob import total_variation
from experiments.benchmarks import rivals
from experiments.benchmarks.spec import (
    LIBRARY,
    OURS,
    PAPER,
    SOLVER,
    Answer,
    Benchmark,
    Contender,
    limited,
)

_APPLY_EPSILON, _PROGRAM_EPSILON, _SEED = 4.0, 1.0, 8
_SECONDS = 180

Floats = npt.NDArray[np.float64]
Solver = Callable[[rivals.Written], float]


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
    kernel = printed_algorithm(instance.prior, instance.epsilon)
    return _distance(instance, instance.law @ kernel)


def as_printed(instance: Instance) -> Answer:
    """Make the matrix as the paper prints it, each level a new matrix, then pK."""
    kernel = grown_algorithm(instance.prior, instance.epsilon)
    return _distance(instance, instance.law @ kernel)


def _distance(instance: Instance, sampled: Floats) -> Answer:
    return Answer(float(total_variation(instance.law, sampled)))


def printed_algorithm(prior: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the matrix of Algorithm 1 by the paper's recursion, each level scaling its block.

    Args:
        prior: q, shape (n,), positive, summing to 1, in any order.
        epsilon: in nats.

    Returns:
        K, shape (n, n), in the order of ``prior``.
    """
    order = np.argsort(prior, kind="stable")
    q, n, ratio = prior[order], prior.size, math.exp(epsilon)
    kernel = np.ones((n, n))
    for i in range(n - 1):
        # The conditional law of the letters that are left.
        left = q[i:] / q[i:].sum()
        below = ratio * left[0] + 1 - left[0]
        kernel[i, i + 1 :] *= left[1:] / below
        kernel[i + 1 :, i] *= left[0] / below
        kernel[i, i] *= ratio * left[0] / below
        kernel[i + 1 :, i + 1 :] *= 1 - left[0] / below
    found = np.empty_like(kernel)
    found[np.ix_(order, order)] = kernel
    return found


def grown_algorithm(prior: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the same as the paper writes it: from two letters up, each level a new matrix."""
    order = np.argsort(prior, kind="stable")
    q, n, ratio = prior[order], prior.size, math.exp(epsilon)
    a = q[-2] / (q[-2] + q[-1])
    kernel = np.array([[ratio * a, 1 - a], [a, (ratio - 1) * a + 1 - a]]) / (ratio * a + 1 - a)
    for i in range(n - 3, -1, -1):
        left = q[i:] / q[i:].sum()
        below = ratio * left[0] + 1 - left[0]
        larger = np.empty((n - i, n - i))
        larger[0, 0] = ratio * left[0] / below
        larger[1:, 0] = left[0] / below
        larger[0, 1:] = left[1:] / below
        larger[1:, 1:] = (1 - left[0] / below) * kernel
        kernel = larger
    found = np.empty_like(kernel)
    found[np.ix_(order, order)] = kernel
    return found


def mollified(instance: Instance) -> Answer:
    """Mollify the law by the prior: another mechanism, which each user computes alone."""
    return _distance(instance, public_prior.mollify(instance.prior, instance.law, instance.epsilon))


def by_program(instance: Instance) -> Answer:
    """Solve the program of Gamma_TV; its optimum is the worst user's distance."""
    return Answer(solve(least_worst(instance)).objective)


def matrix(instance: Instance) -> Answer:
    """Write the closed form's matrix out."""
    return _diagonal(public_prior.minimax_kernel(instance.prior, instance.epsilon).kernel)


def matrix_in_place(instance: Instance) -> Answer:
    """Make the matrix by the paper's recursion within one array."""
    return _diagonal(printed_algorithm(instance.prior, instance.epsilon))


def matrix_as_printed(instance: Instance) -> Answer:
    """Make the matrix as the paper prints it, each level a new matrix."""
    return _diagonal(grown_algorithm(instance.prior, instance.epsilon))


def _diagonal(kernel: Floats) -> Answer:
    return Answer(float(np.trace(kernel)) / len(kernel))


@dataclass(frozen=True)
class Made:
    """A kernel that is made already, as layers or as a matrix, and a user's law."""

    kernel: Design | Floats
    law: Floats


def layers(letters: int) -> Made:
    """Return Algorithm 1's kernel, certified."""
    made = user(letters)
    return Made(public_prior.minimax_kernel(made.prior, made.epsilon), made.law)


def dense(letters: int) -> Made:
    """Return its matrix."""
    made = user(letters)
    return Made(public_prior.minimax_kernel(made.prior, made.epsilon).kernel, made.law)


def apply_layers(instance: Made) -> Answer:
    """Apply the kernel to the law."""
    kernel = cast("Design", instance.kernel)
    return Answer(float(total_variation(instance.law, kernel.apply(instance.law))))


def apply_dense(instance: Made) -> Answer:
    """Multiply the law by the matrix."""
    sampled = instance.law @ cast("Floats", instance.kernel)
    return Answer(float(total_variation(instance.law, sampled)))


def least_worst_case(instance: Instance) -> Answer:
    """Make Algorithm 1's kernel in closed form and certify it."""
    return Answer(public_prior.minimax_kernel(instance.prior, instance.epsilon).worst_tv)


def worst_as_printed(instance: Instance) -> Answer:
    """Make the matrix as the paper prints it; its worst user has one letter."""
    kernel = grown_algorithm(instance.prior, instance.epsilon)
    return Answer(float(1.0 - np.diagonal(kernel).min()))


def by_backend(backend: str, instance: Instance) -> Answer:
    """Write the program of Gamma_TV with n^2 rows and solve it by one of dpopt's backends."""
    found = solve(least_worst(instance), backend=backend)
    return Answer(found.objective, note=f"{found.rows_used:,} rows")


def shifted_form(instance: Instance) -> Answer:
    """Solve the program with n^2 rows: K = 1 u^T + V."""
    return Answer(solve(least_worst(instance)).objective)


def least_worst(instance: Instance) -> Problem:
    """Return the program of Gamma_TV."""
    return public_prior.PublicPriorSetting(instance.prior, instance.epsilon).problem()


def by_highs(instance: Instance) -> Answer:
    """Write a row for each ratio in cvxpy; solve with HiGHS."""
    return Answer(with_cvxpy(instance.prior, instance.epsilon, "HIGHS"), note=_rows(instance))


def by_clarabel(instance: Instance) -> Answer:
    """Write a row for each ratio in cvxpy; solve with CLARABEL."""
    return Answer(with_cvxpy(instance.prior, instance.epsilon, "CLARABEL"), note=_rows(instance))


def with_cvxpy(prior: npt.NDArray[np.float64], epsilon: float, solver: str) -> float:
    """Return the optimum of the program as the paper states it: a row for each ratio."""
    import cvxpy as cp

    n = prior.size
    kernel, worst = cp.Variable((n, n), nonneg=True), cp.Variable()
    held = [cp.sum(kernel, axis=1) == 1, prior @ kernel == prior, 1 - cp.diag(kernel) <= worst]
    for i in range(n):
        held += [kernel[i] <= math.exp(epsilon) * kernel[j] for j in range(n) if j != i]
    problem = cp.Problem(cp.Minimize(worst), held)
    problem.solve(solver=solver)
    return float(np.asarray(problem.value))


def written(instance: Instance) -> rivals.Written:
    """Return the same rows as a sparse matrix, for K row by row and then the worst distance."""
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
        (np.ones(2 * n), (np.tile(np.arange(n), 2), np.append(diagonal, np.full(n, n * n)))),
        shape=(n, n * n + 1),
    )
    sums = sp.kron(sp.eye_array(n), np.ones((1, n)))
    kept_prior = sp.kron(q[None, :], sp.eye_array(n))
    equal = sp.hstack([sp.vstack([sums, kept_prior]), sp.csr_array((2 * n, 1))])
    sides = np.concatenate([np.ones(n), q])
    return rivals.Written(
        np.append(np.zeros(n * n), 1.0),
        sp.vstack([ratios, worst, equal]).tocsr(),
        np.concatenate([np.full(i.size, -np.inf), np.ones(n), sides]),
        np.concatenate([np.zeros(i.size), np.full(n, np.inf), sides]),
    )


def all_rows(solver: Solver, instance: Instance) -> Answer:
    """Write every ratio as a sparse row and hand them to a solver."""
    return Answer(solver(written(instance)), note=_rows(instance))


def by_linopy(instance: Instance) -> Answer:
    """Write a row for each ratio in linopy, as an array over three letters; solve with HiGHS."""
    import linopy
    import xarray as xr

    linopy.options["semantics"] = "v1"
    q, ratio = instance.prior, math.exp(instance.epsilon)
    x = np.arange(q.size)
    law, here = xr.DataArray(q, coords={"x": x}), xr.DataArray(np.eye(q.size), {"x": x, "y": x})
    model = linopy.Model()
    chance = model.add_variables(lower=0, coords=here.coords, name="K")
    worst = model.add_variables(name="worst")
    model.add_constraints(chance.sum("y") == 1, name="sums")
    model.add_constraints((chance * law).sum("x") == law.rename(x="y"), name="prior")
    model.add_constraints(chance - ratio * chance.rename(x="other") <= 0, name="privacy")
    model.add_constraints((chance * here).sum("y") + worst >= 1, name="distance")
    model.add_objective(1 * worst)
    model.solve("highs", output_flag=False)
    return Answer(float(cast(float, model.objective.value)), note=_rows(instance))


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
    setting="epsilon = 1; q random; cvxpy and linopy as called by default (HiGHS 1e-7, CLARABEL "
    "1e-8), linprog and interior point 1e-10, PDLP 1e-7",
    axis="letters n",
    value="optimum",
    sizes=(5, 10, 20, 40, 60),
    contenders=(
        Contender("dpopt, shifted rows", OURS, program, shifted_form),
        Contender("cvxpy + HiGHS, all rows", SOLVER, program, by_highs, 40, seconds=_SECONDS),
        Contender("cvxpy + CLARABEL, all rows", SOLVER, program, by_clarabel, largest=40),
        Contender("linopy + HiGHS, all rows", SOLVER, program, by_linopy, 40, needs=rivals.LINOPY),
        *(
            Contender(f"{name}, all rows", SOLVER, program, partial(all_rows, solver), largest=40)
            for name, solver, _ in rivals.SOLVERS
        ),
    ),
    tolerance=1e-6,
    warm_up=3,
)

CLOSED_FORM = Benchmark(
    name="prior-program",
    title="Algorithm 1 and its program",
    measures="From a public prior to a kernel of least worst total variation, by Algorithm 1 or "
    "by writing and solving the linear program whose optimum it is.",
    setting="epsilon = 1; q random",
    axis="letters n",
    value="largest TV(p, pK)",
    sizes=(5, 10, 20, 40, 80),
    contenders=(
        Contender("dpopt, closed form", OURS, program, least_worst_case),
        Contender("recursion as printed", PAPER, program, worst_as_printed),
        Contender("program, HiGHS", SOLVER, program, partial(by_backend, "highs")),
        Contender("program, cvxpy", SOLVER, program, partial(by_backend, "cvxpy")),
    ),
    tolerance=1e-8,
    warm_up=3,
)

OTHERS = Benchmark(
    name="prior-mechanisms",
    title="Locally private sampling: other mechanisms",
    measures="From q and p to what the user samples from, beside the mollifier; and the program.",
    setting="epsilon = 4; q and p random",
    axis="letters n",
    value="TV(p, pK)",
    sizes=(10, 30, 100, 1000, 10_000, 100_000),
    contenders=(
        Contender("dpopt, closed form", OURS, user, closed_form),
        Contender("relative mollifier, KL", OURS, user, mollified, same=False),
        Contender("linear program", OURS, user, by_program, largest=30, same=False),
    ),
    tolerance=1e-9,
    warm_up=5,
)

MATRIX = Benchmark(
    name="prior-matrix",
    title="Algorithm 1 as a matrix",
    measures="Writing out all n^2 entries of the kernel.",
    setting="epsilon = 4; q random",
    axis="letters n",
    value="mean of the diagonal",
    sizes=(10, 30, 100, 300, 1000),
    contenders=(
        Contender("dpopt, closed form", OURS, user, matrix),
        Contender("recursion in one array", PAPER, user, matrix_in_place),
        Contender("recursion as printed", PAPER, user, matrix_as_printed),
    ),
    tolerance=1e-9,
    warm_up=5,
)

LAW = Benchmark(
    name="prior-apply",
    title="Algorithm 1, one law",
    measures="pK of one user, by a kernel that is made already.",
    setting="epsilon = 4; q and p random; the kernel is given",
    axis="letters n",
    value="TV(p, pK)",
    sizes=(10, 100, 1000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt, layers", OURS, layers, apply_layers),
        Contender("matrix product", LIBRARY, dense, apply_dense, largest=1000),
    ),
    tolerance=1e-9,
    warm_up=5,
    limits=limited(60),
)


@dataclass(frozen=True)
class Question:
    """A kernel on a path or a grid: the fields of `dpopt.kernel.KernelSetting`."""

    loss: Floats
    graph: str
    shape: tuple[int, ...] | None
    objective: str


def path_mean(inputs: int) -> Question:
    """Return the mean of |x - y| along a path."""
    return Question(absolute((inputs,)), "path", None, "bayes")


def path_largest(inputs: int) -> Question:
    """Return the largest mean of |x - y| along a path."""
    return Question(absolute((inputs,)), "path", None, "minimax")


def grid_mean(side: int) -> Question:
    """Return the mean of |x_1 - y_1| + |x_2 - y_2| on a square grid."""
    return Question(absolute((side, side)), "grid", (side, side), "bayes")


def absolute(shape: tuple[int, ...]) -> Floats:
    """Return the distance of words of a shape, letter by letter."""
    words = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1)
    return np.abs(words[:, None] - words).sum(axis=2).astype(np.float64)


def told_at_once(question: Question) -> Answer:
    """Certify the geometric mechanism with the best answers."""
    return _certified(question, None)


def told_by_program(question: Question) -> Answer:
    """Solve the program; certify."""
    return _certified(question, "highs")


def told_by_edges(question: Question) -> Answer:
    """Solve the program with a row for each edge and output by the simplex method."""
    return Answer(solve(_setting(question).problem()).objective)


def path_rows(question: Question) -> rivals.Written:
    """Return the program with a row for each edge, direction and output, for K row by row."""
    n, ratio = len(question.loss), math.exp(_PROGRAM_EPSILON)
    steps = sp.eye_array(n - 1, n), sp.eye_array(n - 1, n, k=1)
    letters = sp.eye_array(n)
    ratios = [sp.kron(a - ratio * b, letters) for a, b in (steps, steps[::-1])]
    count = 2 * n * (n - 1)
    return rivals.Written(
        question.loss.ravel() / n,
        sp.vstack([*ratios, sp.kron(letters, np.ones((1, n)))]).tocsr(),
        np.concatenate([np.full(count, -np.inf), np.ones(n)]),
        np.concatenate([np.zeros(count), np.ones(n)]),
    )


def path_written(solver: Solver, question: Question) -> Answer:
    """Write every row of the path as a sparse row and hand them to a solver."""
    return Answer(solver(path_rows(question)), note="no bound")


def path_in_cvxpy(solver: str, question: Question) -> Answer:
    """Write the rows of the path in cvxpy, as arrays."""
    import cvxpy as cp

    n, ratio = len(question.loss), math.exp(_PROGRAM_EPSILON)
    chance = cp.Variable((n, n), nonneg=True)
    rules = [
        cp.sum(chance, axis=1) == 1,
        chance[:-1] <= ratio * chance[1:],
        chance[1:] <= ratio * chance[:-1],
    ]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(question.loss / n, chance))), rules)
    problem.solve(solver=solver, **rivals.TIGHT[solver])
    if problem.status != cp.OPTIMAL:
        raise RuntimeError(f"cvxpy ended with status {problem.status}.")
    return Answer(float(np.asarray(problem.value)), note="no bound")


def path_in_linopy(question: Question) -> Answer:
    """Write the rows of the path in linopy, as arrays; solve with HiGHS."""
    import linopy
    import xarray as xr

    linopy.options["semantics"] = "v1"
    ratio, x = math.exp(_PROGRAM_EPSILON), np.arange(len(question.loss))
    loss = xr.DataArray(question.loss, coords={"x": x, "y": x})
    model = linopy.Model()
    chance = model.add_variables(lower=0, coords=loss.coords, name="K")
    low = chance.isel(x=slice(None, -1))
    high = chance.isel(x=slice(1, None)).assign_coords(x=x[:-1])
    model.add_constraints(chance.sum("y") == 1, name="sums")
    model.add_constraints(low - ratio * high <= 0, name="up")
    model.add_constraints(high - ratio * low <= 0, name="down")
    model.add_objective((chance * loss / x.size).sum())
    model.solve("highs", output_flag=False, **rivals.TIGHT["HIGHS"]["highs_options"])
    return Answer(float(cast(float, model.objective.value)), note="no bound")


def _setting(question: Question) -> kernel.KernelSetting:
    asked: dict[str, Any] = {"objective": question.objective, "shape": question.shape}
    return kernel.KernelSetting(question.loss, _PROGRAM_EPSILON, graph=question.graph, **asked)


def _certified(question: Question, backend: str | None) -> Answer:
    found = design(_setting(question), backend=backend)
    return Answer(found.value, note=f"gap {found.gap:.0e}")


PATH = Benchmark(
    name="kernel-path",
    title="The optimal kernel on a path",
    measures="From the loss to a certified kernel: the geometric mechanism, or the program.",
    setting="loss |x - y|, uniform prior, epsilon = 1; all solvers at 1e-10 but PDLP, at 1e-7",
    axis="inputs n",
    value="mean loss",
    sizes=(20, 50, 100, 200, 500),
    contenders=(
        Contender("closed form", OURS, path_mean, told_at_once),
        Contender("program by edges", SOLVER, path_mean, told_by_edges, largest=50),
        Contender("cvxpy + HiGHS", SOLVER, path_mean, partial(path_in_cvxpy, "HIGHS"), 100),
        Contender("cvxpy + CLARABEL", SOLVER, path_mean, partial(path_in_cvxpy, "CLARABEL"), 100),
        Contender("linopy + HiGHS", SOLVER, path_mean, path_in_linopy, 100, needs=rivals.LINOPY),
        *(
            Contender(
                name, SOLVER, path_mean, partial(path_written, solver), 100, "PDLP" not in name
            )
            for name, solver, _ in rivals.SOLVERS
        ),
    ),
    tolerance=1e-8,
    warm_up=5,
    limits=limited(60),
)

PATH_LARGEST = Benchmark(
    name="kernel-path-minimax",
    title="The minimax kernel on a path",
    measures="From the loss to a certified kernel: answers to geometric noise, or the program.",
    setting="loss |x - y|, largest over inputs, epsilon = 1",
    axis="inputs n",
    value="largest loss",
    sizes=(20, 50, 100, 200, 500),
    contenders=(
        Contender("answers to noise", OURS, path_largest, told_at_once),
        Contender("program by edges", SOLVER, path_largest, told_by_edges, largest=100),
    ),
    tolerance=1e-7,
    warm_up=5,
    limits=limited(60),
)

GRID = Benchmark(
    name="kernel-grid",
    title="The optimal kernel on a grid",
    measures="From the loss to a certified kernel: each letter on its own, or the program.",
    setting="loss |x_1 - y_1| + |x_2 - y_2|, uniform prior, epsilon = 1",
    axis="side of the grid",
    value="mean loss",
    sizes=(3, 4, 6, 9, 12),
    contenders=(
        Contender("closed form", OURS, grid_mean, told_at_once),
        Contender("program", SOLVER, grid_mean, told_by_program, seconds=_SECONDS),
        Contender("program by simplex", SOLVER, grid_mean, told_by_edges, largest=9),
    ),
    tolerance=1e-7,
    warm_up=3,
    limits=limited(60),
)


BENCHMARKS = (
    APPLY,
    PROGRAM,
    CLOSED_FORM,
    OTHERS,
    MATRIX,
    LAW,
    PATH,
    PATH_LARGEST,
    GRID,
)
