"""Smoothed delta and profiles as linear programs, whose duals are the adversary's best response.

The closed sums are faster, and accurate far below a solver's tolerance. The programs are the
definition, and return what the sums do not: the adversary's tests, the mixture of compositions
(`adversary_problem`), a dual bound. A gain p(a) - e^epsilon q(a) below -1 is written as -1: no best
test uses that output either way, and the numbers stay of size one at every epsilon.

Throughout, a mechanism has n records and m categories, epsilon is from 0 to 700, databases are
histograms of shape (N, m), and distributions pmfs of one record, shape (l, m), all of which are
used, also those that are no vertices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import ParameterError
from dpopt.lp import Solution, solve
from dpopt.privacy import Problem
from dpopt.prob.batches import batch_distribution
from dpopt.prob.histograms import (
    checked_distributions,
    histogram_count,
    histograms,
    neighbours,
    replacements,
)
from dpopt.smoothed.mechanisms import AnonymousMechanism
from dpopt.smoothed.sgd import SgdProfile
from experiments.arrays import Floats, Ints
from experiments.smoothed.gradients import moved

# Above every optimal value: an active bound at 1 could take part of the constraints' duals.
ABOVE = 2.0


def best_test_problem(p: Floats, q: Floats, epsilon: float) -> Problem:
    """Return max over tests phi in [0, 1]^outputs of sum_a phi(a) (p(a) - e^epsilon q(a)).

    The hockey-stick divergence d(p, q) as the adversary sees it; phi is the variable "test".
    """
    problem = Problem("best test")
    problem.add_variables("test", p.size, lower=0.0, upper=1.0)
    problem.maximise({"test": gains_of(p, q, epsilon)})
    return problem


def sticks_problem(name: str, gains: Floats, owner: Ints) -> Problem:
    """Return the program that finds, for several groups of sides, the largest hockey-stick of each.

    min (1/N) sum_x d_x subject to d_x >= sum_a s_k(a) for each side k of group x (rows "sides"),
    s_k(a) >= gains_k(a) (rows "tests"), s >= 0. Each d_x sinks on its own to the largest sum of
    positive gains among its sides: with gains (1, -1) and (0.5, 0.25) in one group to 1. The duals
    of the rows "tests" are the adversary's best tests: of one side, `best_test_problem`.

    Gains P_k(a) - e^epsilon P'_k(a) have shape (sides, outputs); ``owner`` is the group of each
    side, rising. Variables are "delta" (d) and "excess" (s, flattened from (sides, outputs)).
    """
    sides, outputs = gains.shape
    groups = int(owner[-1]) + 1
    problem = Problem(name)
    problem.add_variables("delta", groups, lower=0.0, upper=ABOVE)
    problem.add_variables("excess", gains.size, lower=0.0, upper=ABOVE)
    # Row (side) picks the variable d of its group, and sums the side's own outputs.
    group = sp.csr_array((np.ones(sides), (np.arange(sides), owner)), shape=(sides, groups))
    total = _blocks(sides, (1, outputs))
    problem.add_rows("sides", {"delta": group, "excess": -total}, lower=0.0)
    each = sp.eye_array(gains.size, format="csr")
    problem.add_rows("tests", {"excess": each}, lower=gains.ravel())
    problem.minimise({"delta": np.full(groups, 1.0 / groups)})
    return problem


def profile_problem(mechanism: AnonymousMechanism, epsilon: float, databases: Ints) -> Problem:
    """Return the program whose "delta" is delta(x) of each database; see `sticks_problem`."""
    # sides: (neighbour, direction) of every database, one after the other; owner: which.
    around = [neighbours(row) for row in databases]
    owner = np.repeat(np.arange(len(databases)), [2 * len(rows) for rows in around])
    own = np.repeat(databases, [len(rows) for rows in around], axis=0)
    first, second = mechanism.pmfs(own), mechanism.pmfs(np.concatenate(around))
    gains = np.stack([gains_of(first, second, epsilon), gains_of(second, first, epsilon)], axis=1)
    return sticks_problem("privacy profile", gains.reshape(len(owner), -1), owner)


def step_problem(asked: SgdProfile) -> Problem:
    """Return the program whose "delta" is delta(x) of one step of SGD at each epsilon.

    The sides are each epsilon's replacements of one record, in both directions; the outputs are
    the sums, or the rounded means, of a batch; see `sticks_problem`.
    """
    values, reach = sorted(set(asked.values.tolist())), asked.highest - asked.lowest
    allowed = range(asked.lowest, asked.highest + 1)
    moves = [(value, other) for value in values for other in allowed if other != value]
    outputs = (reach if asked.rounded else reach * asked.drawn) + 1
    first = asked.lowest if asked.rounded else asked.lowest * asked.drawn

    def pmf(values: Ints) -> Floats:
        return batch_distribution(values, asked.drawn, rounded=asked.rounded).over(first, outputs)

    own = pmf(asked.values)
    pairs = [(own, pmf(moved(asked.values, *move))) for move in moves]
    gains = [
        gains_of(p, q, epsilon)
        for epsilon in asked.epsilons.tolist()
        for pair in pairs
        for p, q in (pair, pair[::-1])
    ]
    # Rows run over (epsilon, neighbour, direction); each epsilon has one d.
    owner = np.repeat(np.arange(len(asked.epsilons)), 2 * len(moves))
    return sticks_problem("one step of SGD", np.array(gains), owner)


def gains_of(p: Floats, q: Floats, epsilon: float) -> Floats:
    """Return max(-1, p - e^epsilon q)."""
    return np.maximum(-1.0, p - math.exp(epsilon) * q)


@dataclass(frozen=True, eq=False)
class SmoothedInstance:
    """The numbers that the two programs of the smoothed delta are built from.

    Attributes:
        pairs: pairs of neighbours, each once, as indices into `histograms`, shape (E, 2).
        gains: P(a) - e^epsilon P'(a), at least -1, for each pair, direction (first against
            second, second against first) and output, shape (E, 2, outputs).
        compositions: how many records come from each distribution, shape (C, l).
        databases: probability of each database under each composition, shape (C, N).
    """

    pairs: Ints
    gains: Floats
    compositions: Ints
    databases: Floats


def smoothed_instance(
    mechanism: AnonymousMechanism, epsilon: float, distributions: npt.ArrayLike
) -> SmoothedInstance:
    """Return the distributions, neighbours and compositions of a small case."""
    vertices = checked_distributions(distributions, mechanism.categories)
    n, m = mechanism.records, mechanism.categories
    table, compositions = histograms(n, m), histograms(n, len(vertices))
    pmfs, pairs = mechanism.pmfs(table), replacements(table)
    gains = gains_of(pmfs[pairs], pmfs[pairs[:, ::-1]], epsilon)
    databases = database_pmfs(vertices, compositions, table)
    return SmoothedInstance(pairs, gains, compositions, databases)


def smoothed_problem(instance: SmoothedInstance) -> Problem:
    """Return the smoothed delta as a minimum whose duals are the adversary.

    min D subject to D >= sum_x pi(x) d_x for each composition pi (rows "weights"), d_x >=
    sum_a s_k(a) for each database x and each direction k of each pair that contains x (rows
    "sides"), s_k >= P_k - e^epsilon P'_k, s >= 0 (rows "tests"). Every term may sink
    until a row holds it, so that the least D is max over pi of E_{x ~ pi} delta(x).

    Variables: "smoothed" (D), "profile" (d, one for each database) and "excess" (s, flattened
    from (E, 2, outputs)). The duals of the three blocks are the variables of the same names in
    `adversary_problem`.
    """
    compositions, databases = instance.databases.shape
    pairs, sides, outputs = instance.gains.shape
    problem = Problem("smoothed delta")
    problem.add_variables("smoothed", 1, lower=0.0, upper=ABOVE)
    problem.add_variables("profile", databases, lower=0.0, upper=ABOVE)
    problem.add_variables("excess", instance.gains.size, lower=0.0, upper=ABOVE)
    mean = {"smoothed": np.ones((compositions, 1)), "profile": -instance.databases}
    problem.add_rows("weights", mean, lower=0.0)
    total = _blocks(pairs * sides, (2, outputs))
    problem.add_rows("sides", {"profile": _ends(instance), "excess": -total}, lower=0.0)
    each = sp.eye_array(instance.gains.size, format="csr")
    problem.add_rows("tests", {"excess": each}, lower=instance.gains.ravel())
    problem.minimise({"smoothed": 1.0})
    return problem


def adversary_problem(instance: SmoothedInstance) -> Problem:
    """Return the dual of `smoothed_problem`: the adversary's mixture and tests as variables.

    max sum_k sum_a psi_k(a) (P_k(a) - e^epsilon P'_k(a)) over a mixture w of compositions ("sum":
    sum_pi w_pi = 1), its databases' probability split among the directions of their pairs
    ("split": sum_k v_{x,k} <= sum_pi w_pi pi(x)), and tests scaled by it ("tests within sides":
    psi_k <= v_{x,k} + v_{x',k}). The product of mixture and test is one variable: linear.

    Variables: "weights" (w), "sides" (v, flattened from (E, 2, 2): pair, direction, which of the
    two databases) and "tests" (psi, flattened from (E, 2, outputs)).
    """
    compositions = instance.databases.shape[0]
    pairs, sides, outputs = instance.gains.shape
    problem = Problem("adversary of the smoothed delta")
    problem.add_variables("weights", compositions, lower=0.0, upper=1.0)
    problem.add_variables("sides", pairs * sides * 2, lower=0.0, upper=1.0)
    problem.add_variables("tests", instance.gains.size, lower=0.0, upper=1.0)
    problem.add_rows("sum", {"weights": np.ones((1, compositions))}, lower=1.0, upper=1.0)
    split = {"sides": _ends(instance).T, "weights": -instance.databases.T}
    problem.add_rows("split", split, upper=0.0)
    lift = _blocks(pairs * sides, (outputs, 2))
    each = sp.eye_array(instance.gains.size, format="csr")
    problem.add_rows("tests within sides", {"tests": each, "sides": -lift}, upper=0.0)
    problem.maximise({"tests": instance.gains.ravel()})
    return problem


def _ends(instance: SmoothedInstance) -> sp.csr_array:
    """Return the matrix that picks d_x for the rows (pair, direction, which database)."""
    # Both directions of a pair have the same two databases: (x, x'), (x, x').
    databases = np.repeat(instance.pairs, 2, axis=0).ravel()
    entries = (np.ones(databases.size), (np.arange(databases.size), databases))
    return sp.csr_array(entries, shape=(databases.size, instance.databases.shape[1]))


def database_pmfs(vertices: Floats, compositions: Ints, table: Ints) -> Floats:
    """Return Pr[database | composition]: products of pmfs of one record, by convolution."""
    n, m = int(table[0].sum()), table.shape[1]
    # The distribution of a database is an array over the counts of all categories but the last.
    places = tuple(table[:, :-1].T)
    pmfs = np.empty((compositions.shape[0], table.shape[0]))
    for row, counts in zip(pmfs, compositions, strict=True):
        pmf = np.zeros((n + 1,) * (m - 1))
        pmf[(0,) * (m - 1)] = 1.0
        for vertex in np.repeat(vertices, counts, axis=0):
            # Nothing wraps around: before the last record no count is n.
            added = (vertex[axis] * np.roll(pmf, 1, axis=axis) for axis in range(m - 1))
            pmf = vertex[-1] * pmf + sum(added)
        row[:] = pmf[places]
    return pmfs


# Variables; the closed sums of the smoothed delta go further.
_LARGEST_PROGRAM = 250_000


def distributional_delta(
    mechanism: AnonymousMechanism, epsilon: float, distributions: npt.ArrayLike
) -> Solution:
    """Return the least delta with which a simulator that lacks one record passes for M.

    min over Sim of max over pi, i, X and S of Pr[M(x) in S | X_i = X] - e^epsilon Pr[Sim(x_-i) in
    S] and the same with the two exchanged, x_-i ~ pi_-i. M is anonymous, so Sim may depend on the
    histogram of x_-i only: averaging a simulator over orders keeps its delta. Both sides are
    linear in Sim, and each hockey stick takes one excess per output: a linear program.

    Smoothed delta is at least this (Proposition 9): the adversary of smoothed DP sees x_-i.

    Variables: "delta"; "simulator", the best distribution of the output for each histogram of the
    other n - 1 records, flattened from (N, outputs); "excess of M" and "excess of Sim", of each
    composition, record and output.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 4 and Proposition 9; Bassily,
        Groce, Katz, Smith, Coupled-Worlds Privacy, 2013.
    """
    factor = math.exp(epsilon)
    vertices = checked_distributions(distributions, mechanism.categories)
    others = histograms(mechanism.records - 1, mechanism.categories)
    rows = histogram_count(mechanism.records - 1, vertices.shape[0]) * mechanism.categories
    size = rows * mechanism.outputs * 2 + others.shape[0] * mechanism.outputs
    if size > _LARGEST_PROGRAM:
        raise ParameterError(
            f"records is {mechanism.records}: the program would have {size:,} variables; at most "
            f"{_LARGEST_PROGRAM:,} are allowed."
        )
    compositions = histograms(mechanism.records - 1, vertices.shape[0])
    weights = database_pmfs(vertices, compositions, others)
    # The distribution of M for each histogram of the others (y), record (x) and output (a); then
    # for each composition of the others (c) in place of y.
    m, outputs = mechanism.categories, mechanism.outputs
    completed = (others[:, None, :] + np.eye(m, dtype=np.int64)).reshape(-1, m)
    of_others = mechanism.pmfs(completed).reshape(len(others), m, outputs)
    pmfs = np.einsum("cy,yxa->cxa", weights, of_others)
    each, total = sp.eye_array(pmfs.size, format="csr"), _blocks(pmfs.size // outputs, (1, outputs))
    simulated = sp.kron(sp.csr_array(weights), np.tile(np.eye(outputs), (m, 1)), format="csr")
    problem = Problem("distributional delta")
    problem.add_variables("delta", 1, lower=0.0, upper=1.0)
    problem.add_variables("simulator", len(others) * outputs, lower=0.0, upper=1.0)
    problem.add_variables("excess of M", pmfs.size, lower=0.0, upper=1.0)
    problem.add_variables("excess of Sim", pmfs.size, lower=0.0, upper=1.0)
    whole = {"simulator": _blocks(len(others), (1, outputs))}
    problem.add_rows("simulator sums to one", whole, lower=1.0, upper=1.0)
    first = {"excess of M": each, "simulator": factor * simulated}
    problem.add_rows("M above Sim", first, lower=pmfs.ravel())
    second = {"excess of Sim": each, "simulator": -simulated}
    problem.add_rows("Sim above M", second, lower=-factor * pmfs.ravel())
    for name in ("excess of M", "excess of Sim"):
        bound = {"delta": np.ones((total.shape[0], 1)), name: -total}
        problem.add_rows(f"delta bounds {name}", bound, lower=0.0)
    problem.minimise({"delta": 1.0})
    return solve(problem)


def _blocks(count: int, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix of so many blocks of ones on its diagonal."""
    return sp.kron(sp.eye_array(count), np.ones(shape), format="csr")
