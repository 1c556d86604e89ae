"""Privacy profile and smoothed delta as linear programs, which name the adversary's best answer.

The closed sums of the other modules are faster and reach far below what a solver can tell. The
programs are for what the sums do not give: the adversary's tests, the mixture of compositions, a
dual bound. A gain p(a) - e^epsilon q(a) below -1 is written as -1: no best test uses that output
either way, and the numbers stay of size one at every epsilon.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector
from dpopt.lp import Problem

LARGEST_PROGRAM = 2_000_000

Array = npt.NDArray[np.float64]
_LARGEST_EPSILON = 700.0
# Above every value that is ever optimal: a bound at 1 could take over part of the rows' duals.
ABOVE = 2.0


def best_test_problem(p: npt.ArrayLike, q: npt.ArrayLike, epsilon: float) -> Problem:
    """Return max over tests phi in [0, 1]^outputs of sum_a phi(a) (p(a) - e^epsilon q(a)).

    The hockey-stick divergence d(p, q) as the adversary sees it; phi is the variable "test".

    Args:
        p: law of the outputs, shape (outputs,).
        q: law of the outputs on the neighbour, shape (outputs,).
        epsilon: from 0 to 700.

    Raises:
        ParameterError: if the laws do not fit or epsilon is out of range.
    """
    law, other = _laws(p, q)
    problem = Problem("best test")
    problem.add_variables("test", law.size, lower=0.0, upper=1.0)
    problem.maximise({"test": gains_of(law, other, epsilon)})
    return problem


def excess_problem(p: npt.ArrayLike, q: npt.ArrayLike, epsilon: float) -> Problem:
    """Return min sum_a s(a) subject to s >= p - e^epsilon q, s >= 0, dual to `best_test_problem`.

    s is the variable "excess"; the duals of the rows "test" are the adversary's best test.

    Args:
        p: law of the outputs, shape (outputs,).
        q: law of the outputs on the neighbour, shape (outputs,).
        epsilon: from 0 to 700.

    Raises:
        ParameterError: if the laws do not fit or epsilon is out of range.
    """
    law, other = _laws(p, q)
    problem = Problem("excess mass")
    problem.add_variables("excess", law.size, lower=0.0, upper=ABOVE)
    rows = sp.eye_array(law.size, format="csr")
    problem.add_rows("test", {"excess": rows}, lower=gains_of(law, other, epsilon))
    problem.minimise({"excess": 1.0})
    return problem


def profile_problem(law: npt.ArrayLike, neighbours: npt.ArrayLike, epsilon: float) -> Problem:
    """Return delta(x) as one program over the neighbours, both directions and all tests.

    max sum_j sum_a psi_j(a) (P_j(a) - e^epsilon Q_j(a)) subject to 0 <= psi_j <= w_j, sum_j w_j
    = 1, where j runs over (neighbour, direction): a mixture w of the choices and, with psi_j =
    w_j phi_j, a test for each. The largest of maxima is linear this way, and at least 0 (psi = 0).

    Args:
        law: law of the outputs at the database x, shape (outputs,).
        neighbours: laws at its neighbours, shape (neighbours, outputs), at least one.
        epsilon: from 0 to 700.

    Returns:
        Variables "weights", shape (2 neighbours,), and "tests", flattened from (2 neighbours,
        outputs): first P_j = law for all neighbours, then Q_j = law.

    Raises:
        ParameterError: if the laws do not fit, epsilon is out of range, or the program would have
            more than 2,000,000 tests.
    """
    others = _table("neighbours", neighbours)
    single = _table("law", [_checks.array("law", law)])
    if single.shape[1] != others.shape[1]:
        raise ParameterError(
            f"law has {single.shape[1]} outputs; it must have {others.shape[1]}, as neighbours."
        )
    own = np.broadcast_to(single, others.shape)
    first, second = np.vstack([own, others]), np.vstack([others, own])
    choices, outputs = first.shape
    require_small(first.size)
    problem = Problem("privacy profile")
    problem.add_variables("weights", choices, lower=0.0, upper=1.0)
    problem.add_variables("tests", first.size, lower=0.0, upper=1.0)
    problem.add_rows("sum", {"weights": np.ones((1, choices))}, lower=1.0, upper=1.0)
    lift = sp.kron(sp.eye_array(choices), np.ones((outputs, 1)), format="csr")
    each = sp.eye_array(first.size, format="csr")
    problem.add_rows("tests within weights", {"tests": each, "weights": -lift}, upper=0.0)
    problem.maximise({"tests": gains_of(first, second, epsilon).ravel()})
    return problem


def _laws(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Vector, Vector]:
    law, other = (_table(n, [_checks.array(n, v)])[0] for n, v in (("p", p), ("q", q)))
    if law.shape != other.shape:
        raise ParameterError(f"q has {other.size} outputs; it must have {law.size}, as p.")
    return law, other


def _table(name: str, rows: object) -> Matrix:
    allowed = "probabilities of the outputs, at least 0, one row for each law"
    table = _checks.floats(name, rows)
    if table.ndim != 2 or 0 in table.shape or not np.all((table >= 0) & (table <= 2)):
        raise ParameterError(f"{name} has shape {table.shape}; it must hold {allowed}.")
    return table


def gains_of(p: Array, q: Array, epsilon: float) -> Array:
    """Return max(-1, p - e^epsilon q)."""
    growth = math.exp(_checks.real("epsilon", epsilon, 0.0, _LARGEST_EPSILON))
    return np.maximum(-1.0, p - growth * q)


def require_small(entries: int) -> None:
    """Refuse a table that is too large for a program.

    Raises:
        ParameterError: above 2,000,000 entries.
    """
    if entries > LARGEST_PROGRAM:
        raise ParameterError(
            f"the program would have a table of {entries:,} entries; at most {LARGEST_PROGRAM:,} "
            "are taken. The closed sums of smoothed_delta go further."
        )
