"""The linear program of the population's kernel, over the variables of the shifted form."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector
from dpopt.lp import Problem
from dpopt.public_prior.programs import shifted_diagonal, shifted_problem

POPULATION_OBJECTIVES = ("tv", "diagonal")
"""What `population_kernel` can minimise: the mean total variation, or 1 - sum_i p(i) K_ii."""

_MOST_ENTRIES = 20_000_000


def population_problem(
    q: Vector, epsilon: float, users: Matrix, weights: Vector, kept: float, objective: str
) -> Problem:
    """Return the program over all private kernels with K_ii >= kept that keep q.

    "tv": minimise sum_u w_u sum_j s_uj with s_uj >= p_u(j) - (p_u K)_j, s >= 0, one variable
    "shortfall" for each letter that a user has. "diagonal": minimise -sum_i p(i) K_ii with p the
    users' mean, which is the objective less 1.

    Args:
        q: the prior, shape (n,).
        epsilon: see `programs.tv_problem`.
        users: laws, shape (users, n).
        weights: shape (users,), summing to 1.
        kept: the least diagonal entry allowed.
        objective: see above.

    Raises:
        ParameterError: if "tv" would have more than 2e7 entries in its rows.
    """
    _checks.choice("objective", objective, POPULATION_OBJECTIVES)
    problem = shifted_problem(q, epsilon)
    diagonal = shifted_diagonal(q.size, epsilon)
    problem.add_rows("worst case", diagonal, lower=kept)
    if objective == "diagonal":
        mean = weights @ users
        problem.minimise({name: -(part.T @ mean) for name, part in diagonal.items()})
        return problem
    user, letter = np.nonzero(users)
    entries = int(np.count_nonzero(users, axis=1)[user].sum()) + 2 * user.size
    if entries > _MOST_ENTRIES:
        raise ParameterError(
            f"users make {entries:.3g} entries in the program's rows; at most {_MOST_ENTRIES:.3g} "
            "are allowed. Give fewer users, or objective 'diagonal'."
        )
    count = user.size
    problem.add_variables("shortfall", count, lower=0.0, upper=1.0)
    chosen = sp.csr_array((np.ones(count), (np.arange(count), letter)), shape=(count, q.size))
    sides = {
        "cap": math.exp(-epsilon) * chosen,
        "excess": _outputs(users, user, letter),
        "shortfall": sp.eye_array(count),
    }
    problem.add_rows("shortfalls", sides, lower=users[user, letter])
    problem.minimise({"shortfall": weights[user]})
    return problem


def _outputs(
    users: Matrix, user: npt.NDArray[np.int64], letter: npt.NDArray[np.int64]
) -> sp.csr_array:
    """Return (p_u V)_j for each user u and letter j of p_u's support, as rows over V."""
    sizes = np.count_nonzero(users, axis=1)
    lengths = sizes[user]
    row = np.repeat(np.arange(user.size), lengths)
    # The support of a user stands in ``letter`` from its first row on: each row runs through it.
    within = np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    source = letter[(np.cumsum(sizes) - sizes)[user[row]] + within]
    data = users[user[row], source]
    shape = (user.size, users.shape[1] ** 2)
    return sp.csr_array((data, (row, source * users.shape[1] + letter[row])), shape=shape)
