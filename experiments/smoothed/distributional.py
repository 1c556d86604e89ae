"""Distributional DP of a small case as a linear program over simulators (Appendix B)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import ParameterError
from dpopt.lp import Solution, solve
from dpopt.privacy import Problem
from dpopt.prob.histograms import checked_distributions, histogram_count, histograms
from dpopt.smoothed.mechanisms import AnonymousMechanism
from experiments.smoothed.program import database_pmfs

LARGEST_PROGRAM = 250_000
"""Variables; the closed sums of the smoothed delta go further."""


def distributional_delta(
    mechanism: AnonymousMechanism, epsilon: float, distributions: npt.ArrayLike
) -> Solution:
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

    Returns:
        The optimum with its dual bound. Variables: "delta"; "simulator", the best distribution of
        the output for each histogram of the other n - 1 records, flattened from (N, outputs);
        "excess of M" and "excess of Sim", of each composition, record and output.

    Raises:
        ParameterError: if the case is too large.
        SolverError: if the solver fails.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 4 and Proposition 9; Bassily,
        Groce, Katz, Smith, Coupled-Worlds Privacy, 2013.
    """
    factor = math.exp(epsilon)
    vertices = checked_distributions(distributions, mechanism.categories)
    others = histograms(mechanism.records - 1, mechanism.categories)
    rows = histogram_count(mechanism.records - 1, vertices.shape[0]) * mechanism.categories
    size = rows * mechanism.outputs * 2 + others.shape[0] * mechanism.outputs
    if size > LARGEST_PROGRAM:
        raise ParameterError(
            f"records is {mechanism.records}: the program would have {size:,} variables; at most "
            f"{LARGEST_PROGRAM:,} are allowed."
        )
    compositions = histograms(mechanism.records - 1, vertices.shape[0])
    weights = database_pmfs(vertices, compositions, others)
    # The distribution of M for each histogram of the others (y), record (x) and output (a); then
    # for each composition of the others (c) in place of y.
    m, outputs = mechanism.categories, mechanism.outputs
    completed = (others[:, None, :] + np.eye(m, dtype=np.int64)).reshape(-1, m)
    known = mechanism.pmfs(completed).reshape(len(others), m, outputs)
    pmfs = np.einsum("cy,yxa->cxa", weights, known)
    each, total = sp.eye_array(pmfs.size, format="csr"), _sums(pmfs.size // outputs, outputs)
    simulated = sp.kron(sp.csr_array(weights), np.tile(np.eye(outputs), (m, 1)), format="csr")
    problem = Problem("distributional delta")
    problem.add_variables("delta", 1, lower=0.0, upper=1.0)
    problem.add_variables("simulator", len(others) * outputs, lower=0.0, upper=1.0)
    problem.add_variables("excess of M", pmfs.size, lower=0.0, upper=1.0)
    problem.add_variables("excess of Sim", pmfs.size, lower=0.0, upper=1.0)
    whole = {"simulator": _sums(len(others), outputs)}
    problem.add_rows("simulator sums to one", whole, lower=1.0, upper=1.0)
    first = {"excess of M": each, "simulator": factor * simulated}
    problem.add_rows("M above Sim", first, lower=pmfs.ravel())
    second = {"excess of Sim": each, "simulator": -simulated}
    problem.add_rows("Sim above M", second, lower=-factor * pmfs.ravel())
    ones = np.ones((pmfs.size // outputs, 1))
    for name in ("excess of M", "excess of Sim"):
        problem.add_rows(f"delta bounds {name}", {"delta": ones, name: -total}, lower=0.0)
    problem.minimise({"delta": 1.0})
    return solve(problem)


def _sums(groups: int, size: int) -> sp.csr_array:
    return sp.kron(sp.eye_array(groups), np.ones((1, size)), format="csr")
