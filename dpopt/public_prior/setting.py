"""Kernels K with a public q and q K = q: the minimax one, and the nearest to given users."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError, SolverError
from dpopt._figure import LIMIT
from dpopt._numbers import roughly
from dpopt._types import Json, Matrix, Numbers, RowsOfNumbers, SparseMatrix, Vector, frozen
from dpopt.lp import Backend, Solution, Status
from dpopt.lp.backends.highs import Highs
from dpopt.privacy import Certificate, Guarantee, Problem
from dpopt.privacy.cost import Least
from dpopt.privacy.graph import LARGEST_EPSILON
from dpopt.prob import total_variation
from dpopt.public_prior.layers import LayeredTable
from dpopt.public_prior.prior import (
    LEAST_EPSILON,
    Labels,
    PublicDistribution,
    PublicLike,
    diagonal_bounds,
    minimax_utility,
    named,
    places_of,
    pmfs_over,
    public_distribution,
)
from dpopt.shape import Setting
from dpopt.table import Graph, Table, add_table, constant, over_masses

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.privacy.cost import DominatingPair
    from dpopt.privacy.release import Source


# Bits of a table's weights, at least; and bits of the rarest category's slack for rounding.
_BITS, _SPARE_BITS = 62, 32
LARGEST_PROGRAM_EPSILON = 16.0
"""In nats; of a program over kernels."""


class PriorSetting(Setting):
    """Base class of settings with a public distribution; categories are in the caller's order."""

    public: Any
    epsilon: Any
    labels: Any

    def keep(self, **checked: object) -> None:
        """Check the public distribution and its names, and set them and other checked fields."""
        names = self.labelled.labels
        listed = None if isinstance(names, range) else tuple(names)
        super().keep(public=self.labelled.masses, labels=listed, **checked)

    @cached_property
    def labelled(self) -> PublicDistribution:
        """The public distribution with the names of its categories."""
        return public_distribution(self.public, self.labels)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0), between any two users."""
        return Guarantee(self.epsilon)

    def output(self, place: int) -> Hashable:
        """Return the name of a category."""
        return self.labelled.labels[place]

    def proved(self, verdict: verify.Verdict, claim: str, category: int) -> Certificate:
        """Return the certificate of a verdict whose tightest row belongs to a category."""
        tightest = f"category {self.output(category)}"
        slack = Fraction(verdict.slack)
        return Certificate(claim, self.guarantee, verdict.rows, slack, tightest)

    def refused(self, refusal: verify.Refused, category: int | None) -> NotPrivateError:
        """Return the error for a refused table, naming the category whose row fails."""
        missed, name = Fraction(refusal.missed), None if category is None else self.output(category)
        what = "are no kernel of this setting"
        if name is not None:
            what = f"break {self.epsilon:g}-LDP at category {name}, by {roughly(missed)}"
        return NotPrivateError(
            f"the integers {what}: {refusal}.",
            output=None if name is None else str(name),
            excess=float(missed) or math.ulp(0.0),
        )


class KeptPriorSetting(PriorSetting):
    """Base class of settings whose kernels K keep the public distribution: q K = q.

    A table is a `dpopt.table.Table`, from a program, or a `LayeredTable`, from a closed form.
    """

    summary: ClassVar[tuple[str, ...]] = ("gamma_tv", "worst_tv", "drift")

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return pairs of categories: any two users are neighbours."""
        return [(0, 1), (1, 2), (0, 3)]

    @property
    def bits(self) -> int:  # type: ignore[override] # pyright: ignore[reportIncompatibleVariableOverride]
        """Bits of a table's weights: a slack of (e^epsilon - 1) q_min has at least 32 of them."""
        gap = math.log2(2.0 if self.epsilon > 1 else math.expm1(self.epsilon))
        return max(_BITS, _SPARE_BITS - math.floor(gap + math.log2(self.labelled.masses.min())))

    @property
    def domain(self) -> Graph:
        """The complete graph of the categories: a kernel is private between any two."""
        return Graph(self.labelled.size, self.labelled.size)

    def kernels(self) -> Problem:
        """Return the program over all such kernels: "sums", "privacy", "invariance"; no objective.

        Raises:
            ParameterError: for more than 1,000 categories, or an epsilon above 16.
        """
        n, q = self.labelled.size, self.labelled.masses
        # e^-epsilon must stay well above a solver's tolerance, 1e-10: from 18 on solves failed for
        # masses below 1e-8.
        _checks.real("epsilon", self.epsilon, 0.0, LARGEST_PROGRAM_EPSILON)
        # Largest number of categories of a program over kernels.
        if n > 1000:
            raise ParameterError(
                f"public has {n} categories; its program is written out for at most 1000, "
                "and the closed forms are for any number."
            )
        problem = Problem("kernel that keeps a prior")
        add_table(problem, self.domain, self.guarantee)
        # Row j is entry j of q K; K[i, j] is variable i n + j of the flattened kernel.
        matrix = sp.kron(sp.csr_array(q[None, :]), sp.eye_array(n), format="csr")
        problem.add_rows("invariance", self.over(problem, matrix), lower=q, upper=q)
        return problem

    def over(self, problem: Problem, matrix: SparseMatrix) -> dict[str, SparseMatrix]:
        """Return rows over the flattened kernel as rows over the variables of `kernels`."""
        return over_masses(problem, self.domain, self.guarantee, matrix)

    def diagonal_rows(self, problem: Problem) -> dict[str, SparseMatrix]:
        """Return K_11 .. K_nn as rows over the variables of `kernels`."""
        rows = np.arange(self.labelled.size)
        # K_ii is variable i (n + 1) of the flattened kernel.
        entries = (np.ones(rows.size), (rows, rows * (rows.size + 1)))
        return self.over(problem, sp.csr_array(entries, shape=(rows.size, rows.size**2)))

    def interior(self, values: Vector) -> Table:
        """Return the table that releases from q whatever the category: it is strictly feasible."""
        del values
        return constant(self.domain, self.labelled.masses, self.bits)

    def output_weights(self, table: Any, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the distribution of the release for a user's category, as integer weights."""
        indices, single = places_of(self.labelled, data)
        if not single:
            raise ParameterError("the data are several categories; a distribution is that of one.")
        return table.row(int(indices[0]))

    def drawn(self, table: Any, data: Any, source: Source) -> Any:  # noqa: ANN401
        """Return a category, or one for each of several users: a list of names, or indices."""
        indices, single = places_of(self.labelled, data)
        return named(table.drawn(indices, source)[0], self.labelled.labels, single)

    def release_count(self, table: Any, data: Any) -> int:  # noqa: ANN401
        """Return 1: users of one call have different data, so releases compose in parallel."""
        del table
        places_of(self.labelled, data)
        return 1

    def report(self, table: Any) -> Mapping[str, Callable[[], Any]]:  # noqa: ANN401
        """Return the report of a kernel K; categories and arrays are in the caller's order.

        - kernel: K, shape (n, n), for at most 5,000 categories; diagonal: K_ii, shape (n,).
        - apply: a function that returns p K for distributions p, shape (n,) or (users, n); for a
          closed form in O(n) per user.
        - worst_tv: the largest total variation between p and p K over all p, 1 - min K_ii
          (lemma 1); gamma_tv: its least possible value (theorem 1).
        - drift: an upper bound on the total variation between q K and q. Invariance is utility, not
          privacy: rounding may violate it by this much.
        """
        return {
            "apply": lambda: partial(self._applied, table),
            "diagonal": lambda: self.diagonal(table),
            "drift": lambda: self._drift(table),
            "gamma_tv": lambda: minimax_utility(self.labelled, self.epsilon),
            "kernel": lambda: self._matrix(table),
            "worst_tv": lambda: self.worst(table),
        }

    def _applied(self, table: Any, p: npt.ArrayLike) -> Vector:  # noqa: ANN401
        pmfs = pmfs_over(p, self.labelled.size)
        return pmfs @ table.matrix() if isinstance(table, Table) else table.apply(pmfs)

    def _drift(self, table: Any) -> float:  # noqa: ANN401
        q = self.labelled.masses
        if isinstance(table, Table):
            return float(total_variation(q, q @ table.matrix()))
        return float(table.decided[0].missed)

    def _matrix(self, table: Any) -> Matrix:  # noqa: ANN401
        self._require_few("its matrix is made", "use apply")
        return frozen(table.matrix())

    def diagonal(self, table: Any) -> Vector:  # noqa: ANN401
        """Return K_ii, shape (n,), read-only."""
        n = self.labelled.size
        return frozen(table.probabilities[:: n + 1]) if isinstance(table, Table) else table.diagonal

    def worst(self, table: Any) -> float:  # noqa: ANN401
        """Return 1 - min K_ii, the largest total variation between p and p K over all p."""
        least = self.diagonal(table).min() if isinstance(table, Table) else table.decided[1]
        return float(1 - least)

    def _require_few(self, what: str, instead: str) -> None:
        # Categories up to which n^2 floats or integers are listed (200 MB of floats).
        if self.labelled.size > 5000:
            raise ParameterError(
                f"the kernel has {self.labelled.size} categories; {what} for at most "
                f"5000: {instead}."
            )

    def written(self, table: Any) -> Table:  # noqa: ANN401
        """Return the table with all n^2 integer weights."""
        if isinstance(table, Table):
            return table
        self._require_few("its integers are listed", "it releases all the same")
        weights = (w for category in range(self.labelled.size) for w in table.row(category))
        return Table(self.domain, tuple(weights), 1 << table.bits)

    def dominating(self, table: Any) -> DominatingPair:  # noqa: ANN401
        """Return the tight dominating pair over all pairs of categories."""
        # Reading the edges refuses too many categories before n^2 weights are computed.
        _ = self.domain.edges
        return super().dominating(self.written(table))

    def spent(self, table: Any, epsilon: float | None, delta: float | None) -> Least:  # noqa: ANN401
        """Return the least epsilon between any two categories, or the least delta.

        Pairs of categories cover any two users' distributions, since divergences are jointly
        convex.
        """
        return super().spent(self.written(table), epsilon, delta)

    def draw(self, axes: Axes, table: Any, label: str | None = None) -> None:  # noqa: ANN401
        """Draw K_ii against q_i, with the bound of lemma 3 as a line."""
        order = self.labelled.order
        q = self.labelled.masses[order]
        bounds = diagonal_bounds(self.labelled, self.epsilon)[order]
        axes.plot(q, bounds, color=LIMIT, linestyle=":", label="bound of lemma 3")
        axes.plot(q, self.diagonal(table)[order], "o", clip_on=False, label=label)
        axes.set_xlabel("prior mass, $q_i$")
        axes.set_ylabel("probability to keep the category, $K_{ii}$")
        axes.set_ylim(0.0, 1.03)

    def columns(self, table: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """Return one line per pair of categories: input, output (by name) and probability."""
        labels, written = self.labelled.labels, self.written(table)
        return cast(Any, written.columns(labels, labels))


@dataclass(frozen=True, eq=False)
class PublicPrior(KeptPriorSetting):
    """The minimax optimal locally private kernel that keeps a public distribution q.

        minimise   max_i 1 - K[i, i]                                "losses"
        subject to sum_j K[i, j] = 1                                "sums"
                   sum_i q[i] K[i, j] = q[j]                        "invariance"
                   K[i, j] <= e^epsilon K[i', j]                    "privacy"

    for all categories i, i', j; K >= 0: a user of distribution p releases a draw from p K. This is
    the program of `Kernel` with the 0-1 loss, the worst case and the invariance q. The objective is
    the largest total variation between p and p K over all p; samplers that are not linear in p can
    have a smaller one. Algorithm 1 solves it in O(n) after sorting. Among the optima "leximin" also
    maximises the second smallest K_ii, then the third, and so on: again a closed form in O(n), or a
    program of n objectives in order. A program is written out for at most 1,000
    categories and epsilon up to 16; the closed forms have no such limit.

    Attributes:
        public: q, shape (n,), each above 0, summing to 1 up to 1e-9, in any order.
        epsilon: in [1e-9, 600], in nats: local privacy of a released category.
        labels: n distinct names, texts or integers; 0..n-1 if None. As a text, a,b,c.
        objective: "minimax", or "leximin", lexicographic max-min of the K_ii.

    References:
        Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data", Algorithm 1 and
        theorem 2; the closed form of its recursion is ours.

    Example:
        >>> import dpopt
        >>> design = dpopt.design(dpopt.PublicPrior([0.05, 0.1, 0.15, 0.2, 0.5], epsilon=1.0))
        >>> round(design.gamma_tv, 4), design.diagonal.round(4).tolist()
        (0.8748, [0.1252, 0.2312, 0.3198, 0.3913, 0.6073])
    """

    kind: ClassVar[str] = "public-prior"

    public: PublicLike
    epsilon: float
    labels: Labels | None = None
    objective: Literal["minimax", "leximin"] = "minimax"

    def __post_init__(self) -> None:
        _checks.choice("objective", self.objective, ("minimax", "leximin"))
        self.keep(epsilon=_checks.real("epsilon", self.epsilon, LEAST_EPSILON, LARGEST_EPSILON))

    @classmethod
    def example(cls) -> Self:
        """Return a prior of five categories."""
        return cls([0.05, 0.1, 0.15, 0.2, 0.5], 1.0)

    def problem(self) -> Problem:
        """Return the program of the least worst case; "leximin" adds objectives after it."""
        problem, n = self.kernels(), self.labelled.size
        diagonal = self.diagonal_rows(problem)
        problem.add_variables("worst", 1, lower=0.0, upper=1.0)
        problem.add_rows("losses", {**diagonal, "worst": np.ones((n, 1))}, lower=1.0)
        problem.minimise({"worst": 1.0})
        if self.objective == "leximin" and n > 1:
            _add_leximin(problem, diagonal, n)
        return problem

    def closed_form(self) -> LayeredTable:
        """Return Algorithm 1, or the leximin kernel."""
        return LayeredTable.of(self.labelled, self.epsilon, self.objective)

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program."""
        solution = super().solved(backend, time_limit, stop_at_gap)
        if solution.note:
            raise SolverError(solution.note, Status.NUMERICAL)
        return solution

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the proof of a table; for a closed form, by the extremes of each column."""
        if isinstance(table, Table):
            return super().judge(table)
        if not isinstance(table, LayeredTable) or table != replace(
            self.closed_form(), bits=table.bits
        ):
            raise ParameterError("table is of another prior, epsilon or objective.")
        order, n = self.labelled.order, self.labelled.size
        try:
            verdict = table.decided[0]
        except verify.Refused as refusal:
            at = None if refusal.at is None else int(order[refusal.at])
            raise self.refused(refusal, at) from None
        claim = f"kernel is private between all {n} categories"
        if n == 1:
            claim = "kernel has one category, which has no neighbour: there was nothing to prove"
        return self.proved(verdict, claim, int(order[verdict.at]))

    def _proof_size(self, table: Any) -> int:  # noqa: ANN401
        """Estimate the entries that a proof reads: n for a closed form, about 5 n^2 for a table."""
        n = self.labelled.size
        return 5 * n * n if isinstance(table, Table) else n

    def value(self, table: Any) -> float:  # noqa: ANN401
        """Return the largest total variation between p and p K over all p: 1 - min K_ii."""
        return self.worst(table)

    def plain(self, table: Any) -> Json:  # noqa: ANN401
        """Return the integer weights; for a closed form only the bits, which determine them."""
        return table.plain() if isinstance(table, Table) else {"bits": table.bits}

    def read(self, plain: Any) -> Any:  # noqa: ANN401
        """Return the table of a file; a closed form is computed again, and must have its bits."""
        if not isinstance(plain, Mapping) or set(plain) != {"bits"}:
            return super().read(plain)
        table = self.closed_form()
        if table.bits != plain["bits"]:
            raise ParameterError("its bits are not those of its kernel.")
        return table


def _add_leximin(problem: Problem, diagonal: dict[str, SparseMatrix], n: int) -> None:
    """Add the objectives of leximin after the first one, the largest min_i K_ii, in order.

    The k-th, k = 2..n, is the sum of the k smallest K_ii (Ogryczak and Tamir, Inf. Process. Lett.
    85 (2003)),

        maximise   k level_k - sum_i short_ki
        subject to short_ki >= level_k - K_ii, short_ki >= 0      "smallest"

    so the smallest K_ii is as large as possible, then the second smallest, and so on.
    """
    problem.add_variables("level", n - 1, lower=0.0, upper=1.0)
    problem.add_variables("short", (n - 1, n), lower=0.0, upper=1.0)
    # Row (k - 2) n + i: short_ki - level_k + K_ii >= 0.
    sides: dict[str, Any] = {
        name: sp.vstack([rows] * (n - 1), format="csr") for name, rows in diagonal.items()
    }
    sides["level"] = sp.kron(sp.eye_array(n - 1), -np.ones((n, 1)), format="csr")
    sides["short"] = sp.eye_array(n * (n - 1), format="csr")
    problem.add_rows("smallest", sides, lower=0.0)
    for k in range(2, n + 1):
        short = np.zeros((n - 1, n))
        short[k - 2] = -1.0
        problem.then_maximise({"level": {k - 2: float(k)}, "short": short})


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
