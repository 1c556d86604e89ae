"""The kernel nearest to given users' distributions, by linear programming, certified exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Matrix, Numbers, RowsOfNumbers, Vector, frozen
from dpopt.lp import Backend, Solution
from dpopt.lp.backends.highs import Highs
from dpopt.privacy import Problem
from dpopt.prob import total_variation
from dpopt.public_prior.prior import Labels, PublicLike, minimax_utility, pmfs_over
from dpopt.public_prior.setting import LARGEST_PROGRAM_EPSILON, KeptPriorSetting
from dpopt.table import Table


@dataclass(frozen=True, eq=False)
class Population(KeptPriorSetting):
    """The kernel nearest to given users on average, of those that keep a public distribution.

        minimise   sum_u w[u] sum_j s[u, j]                         (tv)
               or  sum_u w[u] sum_i p_u[i] (1 - K[i, i])            (diagonal)
        subject to s[u, j] >= p_u[j] - sum_i p_u[i] K[i, j]         "shortfalls"
                   K[i, i] >= 1 - Gamma_TV - slack                  "worst case"
                   sum_j K[i, j] = 1                                "sums"
                   sum_i q[i] K[i, j] = q[j]                        "invariance"
                   K[i, j] <= e^epsilon K[i', j]                    "privacy"

    for all categories i, i', j, in the first row only those with p_u[j] > 0; K, s >= 0. "mean" (tv)
    is the mean of TV(p_u, p_u K). "diagonal" is at least as large, and depends only on the mean of
    the users' distributions. The guarantee covers the category that the kernel releases, not the
    design, which depends on the users' distributions: these must be public, or their users must
    agree. With fewer than about 1,000 users "mean" overfits them: evaluate it with `apply` on
    others. The program is written out for at most 1,000 categories, and 2e7 entries in the rows
    "shortfalls".

    Attributes:
        public: q, shape (n,), above 0, summing to 1.
        epsilon: in (0, 16], in nats.
        users: p_u, shape (users, n), rows summing to 1.
        weights: w_u, shape (users,), at least 0, not all 0; divided by their sum. Equal if None.
        slack: how much the worst case may exceed the least possible, in [0, 1].
        objective: "mean" or "diagonal"; see the formula.
        labels: n distinct names, texts or integers; 0..n-1 if None. As a text, a,b,c.
    """

    kind: ClassVar[str] = "population"

    public: PublicLike
    epsilon: float
    users: RowsOfNumbers
    weights: Numbers | None = None
    slack: float = 0.0
    objective: Literal["mean", "diagonal"] = "mean"
    labels: Labels | None = None

    def __post_init__(self) -> None:
        users = np.atleast_2d(pmfs_over(self.users, self.labelled.size))
        _checks.choice("objective", self.objective, ("mean", "diagonal"))
        self.keep(
            epsilon=_checks.real(
                "epsilon", self.epsilon, 0.0, LARGEST_PROGRAM_EPSILON, open_lower=True
            ),
            users=frozen(users),
            weights=_weights(self.weights, users.shape[0]),
            slack=_checks.real("slack", self.slack, 0.0, 1.0),
        )

    @classmethod
    def example(cls) -> Self:
        """Return a prior of four categories and three users."""
        users = [[0.4, 0.1, 0.1, 0.4], [0.0, 0.5, 0.5, 0.0], [0.1, 0.2, 0.3, 0.4]]
        return cls([0.1, 0.2, 0.3, 0.4], 1.0, users)

    @property
    def _pmfs(self) -> tuple[Matrix, Vector]:
        return cast(Matrix, self.users), cast(Vector, self.weights)

    def problem(self) -> Problem:
        """Return the program over kernels that keep the prior; see `kernels`."""
        (users, weights), problem = self._pmfs, self.kernels()
        least = max(0.0, 1.0 - minimax_utility(self.labelled, self.epsilon) - self.slack)
        problem.add_rows("worst case", self.diagonal_rows(problem), lower=least)
        if self.objective == "mean":
            self._add_distances(problem)
        else:
            costs = np.ravel((weights @ users)[:, None] * (1 - np.eye(self.labelled.size)))
            sides = self.over(problem, sp.csr_array(costs[None, :])).items()
            problem.minimise({name: row.toarray().ravel() for name, row in sides})
        return problem

    def _add_distances(self, problem: Problem) -> None:
        """Add a variable "shortfall" for each category that a user has, and minimise their mean."""
        # The k-th shortfall is that of user[k] at category[k].
        (users, weights), n = self._pmfs, self.labelled.size
        user, category = np.nonzero(users)
        entries = int(np.count_nonzero(users, axis=1)[user].sum()) + 2 * user.size
        # Nonzeros of the rows "shortfalls": bounds memory and time.
        if entries > 20_000_000:
            raise ParameterError(
                f"users make {entries:.3g} entries in the program's rows; at most 2e+07 "
                "are allowed. Give fewer users, or objective 'diagonal'."
            )
        # Row k is (p_u K)_j, the sum of p_u(i) K[i, j] over the categories i that user u has.
        pmfs = sp.coo_array(sp.csr_array(users)[user])
        columns = pmfs.col.astype(np.int64) * n + category[pmfs.row]
        rows = sp.csr_array((pmfs.data, (pmfs.row, columns)), shape=(user.size, n**2))
        released = self.over(problem, rows)
        problem.add_variables("shortfall", user.size, lower=0.0, upper=1.0)
        sides = {**released, "shortfall": sp.eye_array(user.size)}
        problem.add_rows("shortfalls", sides, lower=users[user, category])
        problem.minimise({"shortfall": weights[user]})

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program; for many users by interior points, as the simplex method is slow."""
        # Shortfall variables up to which the simplex method is as fast as interior points.
        large = np.count_nonzero(cast(Matrix, self.users)) > 2000
        if large and self.objective == "mean" and isinstance(backend, str) and backend == "highs":
            backend = Highs(interior=1e-12)
        return super().solved(backend, time_limit, stop_at_gap)

    def _proof_size(self, table: Table) -> int:
        """Estimate the entries of rows that a proof reads."""
        del table
        shortfalls = self.users if self.objective == "mean" else ()
        entries = sum(int(np.count_nonzero(row)) ** 2 for row in cast(Matrix, shortfalls))
        return 5 * self.labelled.size**2 + entries

    def value(self, table: Table) -> float:
        """Return the objective of the certified kernel."""
        users, weights = self._pmfs
        if self.objective == "diagonal":
            return float(weights @ users @ (1 - self.diagonal(table)))
        return float(weights @ total_variation(users, users @ table.matrix()))


def _weights(weights: npt.ArrayLike | None, users: int) -> Vector:
    if weights is None:
        return frozen(np.full(users, 1.0 / users))
    w = _checks.floats("weights", weights)
    if w.shape != (users,):
        raise ParameterError(f"weights has shape {w.shape}; it must be ({users},).")
    if not np.all((w >= 0.0) & (w <= 1e300 / users)) or w.sum() <= 0.0:
        raise ParameterError("weights must be numbers of at least 0, not all 0.")
    return frozen(w / w.sum())
