"""The kernel that is best for given users, by linear programming, certified exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector, frozen
from dpopt.lp import Backend, solve
from dpopt.lp.model import as_floats
from dpopt.privacy import Guarantee, quantise_kernel
from dpopt.prob import total_variation
from dpopt.provenance import versions
from dpopt.public_prior.mollifier import laws_over
from dpopt.public_prior.population_program import population_problem
from dpopt.public_prior.population_result import PopulationKernel
from dpopt.public_prior.prior import PublicPrior, public_prior
from dpopt.public_prior.programs import kernel_of, program_epsilon
from dpopt.public_prior.utility import minimax_utility


def population_kernel(
    prior: npt.ArrayLike | PublicPrior,
    epsilon: float,
    users: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    slack: float = 0.0,
    objective: str = "tv",
    backend: str | Backend = "highs",
    time_limit: float | None = None,
) -> PopulationKernel:
    """Return the private kernel of least mean distance over given users, certified exactly.

    Over epsilon-LDP kernels with q K = q and 1 - K_ii <= Gamma_TV + slack for all i, minimise

    - "tv": sum_u w_u TV(p_u, p_u K);
    - "diagonal": sum_u w_u sum_i p_u(i) (1 - K_ii), which is at least as large and depends on
      the users' mean law only.

    The objectives are of the users given. With fewer than about 1,000 users "tv" fits these users
    and not the population that they are from: judge it with `PopulationKernel.report` on others.
    The guarantee covers the letter released by the kernel, not the design: the kernel itself
    depends on the users' laws, so these must be public, or of users who agree to that.

    "tv" with 1,000 users who hold all of 18 letters takes about 15 seconds, "diagonal" below one.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        users: p_u, shape (users, n); at most 2e7 entries in the program's rows.
        weights: w_u, shape (users,), at least 0, not all 0; divided by their sum. Alike if None.
        slack: in [0, 1].
        objective: see above.
        backend: see `dpopt.solve`.
        time_limit: seconds; None for no limit.

    Raises:
        ParameterError: if an argument is out of range.
        SolverError: if the solver found no answer.
        NotPrivateError: if the solver's answer is too far from a private kernel to be repaired.
    """
    checked = public_prior(prior)
    q, epsilon = checked.masses, program_epsilon(epsilon)
    p = np.atleast_2d(laws_over(users, q.size))
    w = _weights(weights, p.shape[0])
    slack = _checks.real("slack", slack, 0.0, 1.0)
    gamma = minimax_utility(checked, epsilon)
    problem = population_problem(q, epsilon, p, w, max(0.0, 1.0 - gamma - slack), objective)
    solution = solve(problem, backend, time_limit=time_limit)
    exact = quantise_kernel(kernel_of(solution, epsilon), Guarantee(epsilon), row=q)
    kernel = exact.matrix()
    diagonal = frozen(np.diag(kernel))
    value = float(w @ (total_variation(p, p @ kernel) if objective == "tv" else p @ (1 - diagonal)))
    # The program's objective for "diagonal" is the value less 1.
    bound = solution.bound + (1.0 if objective == "diagonal" else 0.0)
    return PopulationKernel(
        prior=checked,
        epsilon=epsilon,
        objective=objective,
        slack=slack,
        users=p.shape[0],
        exact=exact,
        diagonal=diagonal,
        value=value,
        bound=bound,
        gap=value - bound,
        gamma_tv=gamma,
        drift=float(total_variation(q, q @ kernel)),
        solution=solution,
        provenance=versions(),
    )


def _weights(weights: npt.ArrayLike | None, users: int) -> Vector:
    if weights is None:
        return np.full(users, 1.0 / users)
    w = as_floats("weights", weights)
    if w.shape != (users,):
        raise ParameterError(f"weights has shape {w.shape}; it must be ({users},).")
    if not np.all((w >= 0.0) & (w <= 1e300 / users)) or w.sum() <= 0.0:
        raise ParameterError("weights must be numbers of at least 0, not all 0.")
    return np.asarray(w / w.sum())
