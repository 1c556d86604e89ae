"""Distributional DP of a small case as a linear program over simulators (Appendix B)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import ParameterError
from dpopt.lp import Solution, solve
from dpopt.privacy import Problem
from dpopt.prob.histograms import checked_distributions, histogram_count, histograms, index_of
from dpopt.smoothed.mechanisms import AnonymousMechanism
from experiments.smoothed.arrays import IntVector, Matrix
from experiments.smoothed.program import LARGEST_PROGRAM, Solved, database_laws


@dataclass(frozen=True, eq=False)
class DistributionalDelta(Solved):
    """The least delta of (epsilon, delta, Pi)-distributional DP (Definition 4).

    Attributes:
        simulator: the best simulator's law of the output for each histogram of the other n - 1
            records, in the order of `histograms`, shape (N, outputs).
        solution: of the solver.
    """

    simulator: Matrix
    solution: Solution


def distributional_delta(
    mechanism: AnonymousMechanism,
    epsilon: float,
    distributions: npt.ArrayLike,
    *,
    backend: str = "highs",
) -> DistributionalDelta:
    """Return the least delta with which a simulator that lacks one record passes for M.

    min over Sim of max over pi, i, X and S of Pr[M(x) in S | X_i = X] - e^epsilon Pr[Sim(x_-i) in
    S] and the same with the two exchanged, x_-i ~ pi_-i. M is anonymous, so Sim may depend on the
    histogram of x_-i only: averaging a simulator over orders keeps its delta. Both sides are
    linear in Sim, and each hockey stick takes one excess per output: a linear program.

    Smoothed delta is at least this (Proposition 9): the adversary of smoothed DP sees x_-i.

    Args:
        mechanism: small, with n >= 2 records.
        epsilon: from 0 to 16.
        distributions: Pi, shape (l, m); all of them are used, vertices or not.
        backend: see `dpopt.solve`.

    Raises:
        ParameterError: if the case is too large.
        SolverError: if the solver fails.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 4 and Proposition 9; Bassily,
        Groce, Katz, Smith, Coupled-Worlds Privacy, 2013.
    """
    if mechanism.records < 2:
        raise ParameterError(f"records is {mechanism.records}; it must be at least 2.")
    factor = math.exp(epsilon)
    vertices = checked_distributions(distributions, mechanism.categories)
    others = histograms(mechanism.records - 1, mechanism.categories)
    rows = histogram_count(mechanism.records - 1, vertices.shape[0]) * mechanism.categories
    size = rows * mechanism.outputs * 2 + others.shape[0] * mechanism.outputs
    if size > LARGEST_PROGRAM // 8:
        raise ParameterError(
            f"records is {mechanism.records}: the program would have {size:,} variables; at most "
            f"{LARGEST_PROGRAM // 8:,} are allowed."
        )
    compositions = histograms(mechanism.records - 1, vertices.shape[0])
    weights = database_laws(vertices, compositions, others)
    given = _completed(mechanism, others)
    problem = _problem(factor, weights, given)
    solution = solve(problem, backend)
    simulator = solution["simulator"].reshape(others.shape[0], mechanism.outputs)
    return DistributionalDelta(simulator, solution)


def _completed(mechanism: AnonymousMechanism, others: IntVector) -> npt.NDArray[np.float64]:
    """Return the law of M for each x_-i and X, shape (N, m, outputs)."""
    m = mechanism.categories
    table = mechanism.laws(histograms(mechanism.records, m))
    added = others[:, None, :] + np.eye(m, dtype=np.int64)[None, :, :]
    return table[index_of(added.reshape(-1, m))].reshape(others.shape[0], m, table.shape[1])


def _problem(factor: float, weights: Matrix, given: npt.NDArray[np.float64]) -> Problem:
    """Return the program: rows for each composition of n - 1 records, X, and side.

    Variables: "delta"; "simulator", flattened from (N, outputs); "excess of M" and "excess of
    Sim", flattened from (C, m, outputs).
    """
    others, categories, outputs = given.shape
    # c: composition of the others; y: their histogram; x: the record; a: output.
    laws = np.einsum("cy,yxa->cxa", weights, given)
    cells = laws.size
    each, total = sp.eye_array(cells, format="csr"), _sums(cells // outputs, outputs)
    mean = sp.kron(weights, sp.eye_array(outputs), format="csr")
    simulated = _repeated(mean, weights.shape[0], categories, outputs)
    ones = np.ones((cells // outputs, 1))
    problem = Problem("distributional delta")
    problem.add_variables("delta", 1, lower=0.0, upper=1.0)
    problem.add_variables("simulator", others * outputs, lower=0.0, upper=1.0)
    problem.add_variables("excess of M", cells, lower=0.0, upper=1.0)
    problem.add_variables("excess of Sim", cells, lower=0.0, upper=1.0)
    whole = {"simulator": _sums(others, outputs)}
    problem.add_rows("simulator sums to one", whole, lower=1.0, upper=1.0)
    first = {"excess of M": each, "simulator": factor * simulated}
    problem.add_rows("M above Sim", first, lower=laws.ravel())
    second = {"excess of Sim": each, "simulator": -simulated}
    problem.add_rows("Sim above M", second, lower=-factor * laws.ravel())
    for name in ("excess of M", "excess of Sim"):
        problem.add_rows(f"delta bounds {name}", {"delta": ones, name: -total}, lower=0.0)
    problem.minimise({"delta": 1.0})
    return problem


def _sums(groups: int, size: int) -> sp.csr_array:
    return sp.kron(sp.eye_array(groups), np.ones((1, size)), format="csr")


def _repeated(mean: sp.csr_array, rows: int, categories: int, outputs: int) -> sp.csr_array:
    """Return the simulated law once for each X: rows (composition, X, output)."""
    places = np.arange(rows * outputs).reshape(rows, 1, outputs)
    return mean[np.broadcast_to(places, (rows, categories, outputs)).ravel()]
