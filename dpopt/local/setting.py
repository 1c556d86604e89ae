"""Optimal locally private answers to linear queries: the program, the table and its proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Matrix, Numbers, RowsOfNumbers, Vector, frozen
from dpopt.local.bound import LowerBound, alike, lower_bound, selected
from dpopt.local.decoder import Decoder, Groups, category_variances, groups_of, worst_prior
from dpopt.local.optimum import (
    Optimum,
    every_pattern,
    information,
    optimum,
    rows_of,
    slopes,
    squares,
)
from dpopt.lp import Separation, Solution, make_rows
from dpopt.privacy import Certificate, Guarantee, Problem
from dpopt.shape import Setting
from dpopt.table import Graph, Table, certify_table, interior, polished, repair, rounded

if TYPE_CHECKING:
    from dpopt.verify import Name

# Categories up to which `Workload.problem` has a variable for each pattern; up to which column
# generation solves it; and up to which the closed form does if all categories are alike.
WRITTEN, DESIGNED, EVEN = 6, 64, 128
# Shares of the uniform mixture at which tangents are taken, and the condition number of M above
# which there is no tangent.
_SHARES, _SINGULAR = (0.0, 1e-4, 1e-2, 0.1, 0.3), 1e10
# The largest matrices of queries: time and memory of the design fix them.
_MOST_CATEGORIES, _MOST_QUERIES = 256, 100_000


@dataclass(frozen=True, eq=False)
class Workload(Setting):
    """The locally private mechanism with unbiased linear estimates of least total variance.

    Each of N people holds one category u of n and releases one output o with probability Q[o, u] =
    Pr[o | u]. The queries W x of the histogram x are estimated by V y, where y counts the outputs;
    this is unbiased if V Q = W. Given data whose categories have the frequencies p, the total
    variance over all queries that the mechanism adds is, per person,

        sum_u p_u (sum_o Q[o, u] |V_o|^2 - |W_u|^2).

    The best V is W M^-1 Q' diag(Q p)^-1 with M = Q' diag(Q p)^-1 Q; the variance is then F - sum_u
    p_u |W_u|^2 with F = tr(M^-1 W'W). Without loss of generality each row of Q is theta_s s, with a
    weight theta_s >= 0 and s in {1, e^epsilon}^n, and then

        minimise   F = tr(M^-1 W'W),  M = sum_s theta_s s s' / (s . p)
        subject to sum_s theta_s s = 1                                       "sums"
                   theta >= 0

    is convex: F is at least each of its tangents, the rows "tangents" of the linear program. The
    design states a lower bound for every epsilon-LDP mechanism with any linear unbiased estimate;
    see `dpopt.local.bound`.

    Attributes:
        queries: "histogram" (every category), "prefix" (the first u categories, for all u),
            "range" (all intervals), "marginals" (all tables of words of bits), or W, shape
            (queries, n); on the command line rows 1:0:0,1:1:0 or a file.
        epsilon: of each person's output, in [0.01, 12], in nats.
        categories: n, in 2..64, and up to 128 if all categories are alike, as for "histogram" and a
            uniform prior; for a matrix its number of columns, or None.
        prior: p, shape (n,), above 0, divided by its sum; uniform if None.
        objective: "mean" under the prior, or "worst-case": the variance for the worst data.
    """

    kind: ClassVar[str] = "workload"
    summary: ClassVar[tuple[str, ...]] = ("outputs",)

    queries: RowsOfNumbers | Literal["histogram", "prefix", "range", "marginals"]
    epsilon: float
    # None until `__post_init__` has derived it.
    categories: int = cast(int, None)
    prior: Numbers | None = None
    objective: Literal["mean", "worst-case"] = "mean"

    def __post_init__(self) -> None:
        if self.categories is not None:
            _checks.integer("categories", self.categories, 2, EVEN)
        matrix = query_matrix(self.queries, self.categories)
        n = matrix.shape[1]
        if np.all(matrix == matrix[:, :1]):
            raise ParameterError(
                "queries have the same column for every category; they must tell categories apart."
            )
        _checks.choice("objective", self.objective, ("mean", "worst-case"))
        self.keep(
            queries=self.queries if isinstance(self.queries, str) else matrix,
            categories=n,
            epsilon=_checks.real("epsilon", self.epsilon, 0.01, 12.0),
            prior=_prior(self.prior, n, self.objective),
        )
        if n > DESIGNED and (n > EVEN or not self.even):
            raise ParameterError(
                f"categories is {n}; beyond {DESIGNED}, and up to {EVEN}, all categories must "
                "be alike, as for 'histogram' and a uniform prior."
            )

    @classmethod
    def example(cls) -> Self:
        """Return the distribution function over three categories as queries."""
        return cls("prefix", 1.0, 3)

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return all pairs of categories."""
        return [(0, 1), (0, 2), (1, 2)]

    @cached_property
    def matrix(self) -> Matrix:
        """W, shape (queries, n), read-only."""
        return query_matrix(self.queries, self.categories)

    @cached_property
    def gram(self) -> Matrix:
        """G = W'W, shape (n, n), read-only."""
        return frozen(self.matrix.T @ self.matrix)

    @cached_property
    def groups(self) -> Groups:
        """Groups of categories that no query tells apart, which the best mechanism treats alike."""
        return groups_of(self.matrix)

    @cached_property
    def merged(self) -> tuple[Matrix, Vector | None]:
        """G and p with one category for each group; p is None in the worst case."""
        first, p = self.groups.first, self.weights
        return self.gram[np.ix_(first, first)], None if p is None else self.groups.sums(p)

    @cached_property
    def even(self) -> bool:
        """Whether all categories are alike and, unless the prior is the worst, equally likely."""
        gram, p = self.merged
        return alike(gram) and (p is None or bool(np.ptp(p) == 0))

    @cached_property
    def weights(self) -> Vector | None:
        """p, shape (n,), read-only; None for the worst case."""
        if self.objective == "worst-case":
            return None
        return frozen(
            np.full(self.categories, 1 / self.categories) if self.prior is None else self.prior
        )

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0) between any two categories of one person: local differential privacy."""
        return Guarantee(self.epsilon)

    def problem(self) -> Problem:
        """Return the linear program over all patterns; an oracle separates tangents of F."""
        gram, p = self.merged
        if p is None or len(gram) > WRITTEN:
            raise ParameterError(
                f"categories is {len(gram)} and objective {self.objective!r}; the program is "
                f"written out for at most {WRITTEN} categories and 'mean'. Leave out backend."
            )
        rows = rows_of(every_pattern(len(gram)), math.exp(self.epsilon))
        problem = Problem("workload")
        problem.add_variables("theta", len(rows), lower=0.0, upper=1.0)
        scale = float(np.trace(gram))
        problem.add_variables("F", 1, lower=0.0, upper=1e6)
        problem.add_rows("sums", {"theta": rows.T}, lower=1.0, upper=1.0)
        problem.add_family("tangents", _Tangents(rows, gram / scale, p))
        problem.minimise({"F": scale})
        return problem

    @cached_property
    def optimal(self) -> Optimum:
        """The weights of patterns with least F, with one category for each group."""
        gram, p = self.merged
        if self.even:
            return selected(gram, math.exp(self.epsilon))
        # Relative gap of column generation.
        return optimum(gram, math.exp(self.epsilon), p, relative_gap=1e-6)

    @cached_property
    def lowest(self) -> LowerBound | None:
        """The lower bound on F that follows from the multipliers of `optimal`; None for none."""
        exp_epsilon = math.nextafter(math.exp(self.epsilon), math.inf)
        return lower_bound(self.merged[0], exp_epsilon, self.optimal)

    def closed_form(self) -> Table:
        """Return the table of the `optimal` weights, which solve the same program."""
        best = self.optimal
        return self.table(_kernel(best.patterns[:, self.groups.group], best.theta, self.epsilon))

    def point(self, solution: Solution) -> Matrix:
        """Return Pr[output | category] of a solution of `problem`, shape (n, outputs)."""
        patterns = every_pattern(self.groups.size)[:, self.groups.group]
        return _kernel(patterns, solution["theta"], self.epsilon)

    def table(self, point: Matrix) -> Table:
        """Return a kernel, shape (n, outputs), as a private table; see `Setting.table`."""
        inputs = Graph(*point.shape)
        values = polished(inputs, point.ravel(), self.guarantee)
        first = rounded(inputs, values, self.bits)
        return repair(first, interior(inputs, values, self.bits), self.judge, self.bits)[0]

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the certificate of a table over these categories, with any number of outputs."""
        inputs = table.inputs if isinstance(table, Table) else None
        if inputs != Graph(self.categories, getattr(inputs, "outputs", 1)):
            raise ParameterError(
                f"table must be one over {self.categories} categories, all neighbours."
            )
        return certify_table(table, self.guarantee)

    def read(self, plain: Any) -> Table:  # noqa: ANN401
        """Return the table of a file, which determines the number of outputs."""
        return Table.read(Graph(self.categories, len(plain["weights"][0])), plain)

    def prior_of(self, table: Table) -> Vector:
        """Return p, or in the worst case the prior with the largest variance of this mechanism."""
        if self.weights is not None:
            return self.weights
        return worst_prior(table.matrix().T, self.gram)

    def value(self, table: Table) -> float:
        """Return the variance per person, with the best decoder of the certified kernel."""
        p = self.prior_of(table)
        variances = category_variances(table.matrix().T, self.gram, p)
        return float(variances.max() if self.weights is None else p @ variances)

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return the decoder of a mechanism Q, shape (outputs, n), and its variance by category.

        - outputs: number of outputs.
        - decoder: V, shape (queries, outputs), with V Q = W; estimate: a function from released
          outputs to the `dpopt.local.decoder.Estimate` of the answers.
        - category_variances: variance that one person of each category adds, shape (n,).
        - prior: p, or the worst distribution of categories for this mechanism, shape (n,).
        - proof: how the lower bound is proved, see `dpopt.local.bound`; "unproved" if it is not.
        """
        gram, rows = self.gram, frozen(table.matrix().T)

        def best() -> Decoder:
            return Decoder(rows, self.matrix, self.prior_of(table))

        return {
            "decoder": lambda: best().matrix,
            "estimate": best,
            "category_variances": lambda: frozen(
                category_variances(rows, gram, self.prior_of(table))
            ),
            "outputs": lambda: table.inputs.outputs,
            "prior": lambda: frozen(self.prior_of(table)),
            "proof": lambda: (
                "unproved" if self.bound(table, None) is None else cast(Any, self.lowest).how
            ),
        }

    def bound(self, table: Table, solution: Solution | None) -> float | None:
        """Return a lower bound on the variance of every mechanism; None if none is proved."""
        del table
        gram, p = self.merged
        # The queries' own variance sum_u p_u |W_u|^2, over groups of categories.
        if solution is not None:
            return solution.bound - float(cast(Vector, p) @ np.diagonal(gram))
        if self.lowest is None:
            return None
        variance_bound = self.lowest.value - float(self.optimal.prior @ np.diagonal(gram))
        # For a large epsilon, the variance is so far below F that rounding may spoil the bound.
        return variance_bound if variance_bound > 0 else None

    def _proof_rows(self, table: Table) -> Sequence[Name]:
        """Return the name of the one row that proves the bound."""
        del table
        return [("tangent",)]

    def _proof_size(self, table: Table) -> int:
        """Return roughly how many numbers a proof evaluates: all patterns, and the kernel."""
        return (1 << self.categories) + 8 * len(table.weights)

    def _proof_data(self, table: Table) -> Json:
        """Return X = M^-1 and lambda of the tangent that proves the bound, and the worst prior."""
        del table
        best, lowest = self.optimal, cast(LowerBound, self.lowest)
        rows = rows_of(best.patterns, math.exp(self.epsilon)) * best.theta[:, None]
        group, weights = self.groups.group, self.weights
        p = (best.prior / np.bincount(group))[group] if weights is None else weights
        shares = self.groups.shares(p)
        inverse = np.linalg.inv(information(rows, best.prior))
        return {
            "inverse": (shares @ inverse @ shares.T).tolist(),
            "multipliers_of_categories": (shares @ lowest.multipliers).tolist(),
            **({"prior": p.tolist()} if weights is None else {}),
        }


class _Tangents:
    """Tangents of F: F >= 2 F(theta') - sum_s theta_s q_s(theta') for every theta'."""

    def __init__(self, rows: Matrix, gram: Matrix, prior: Vector) -> None:
        self.rows, self.gram, self.prior = rows, gram, prior

    def __call__(self, values: Vector) -> Separation:
        """Return violated tangents at theta and at mixtures of it with equal weights."""
        theta, claimed = np.maximum(values[:-1], 0.0), float(values[-1])
        middle = np.full(theta.size, 1 / self.rows.sum(axis=0).mean())
        lines, limits, worst = [], [], np.inf
        for share in _SHARES:
            mixed = (1 - share) * theta + share * middle
            matrix = (self.rows * (mixed / (self.rows @ self.prior))[:, None]).T @ self.rows
            if np.linalg.cond(matrix) > _SINGULAR:
                continue
            value, b = slopes(self.gram, matrix)
            # The tangent at `mixed` is 2 F - q . theta <= F; `short` is its violation.
            q = squares(self.rows, b) / (self.rows @ self.prior)
            short = 2 * value - float(theta @ q) - claimed
            if share == 0.0:
                worst = max(short, 0.0)
            if short > 0:
                lines.append(np.append(q, 1.0))
                limits.append(2 * value)
        rows = make_rows(np.array(lines).reshape(-1, values.size), lower=np.array(limits))
        return Separation(rows, worst, theta.size)


def _kernel(patterns: Any, theta: Vector, epsilon: float) -> Matrix:  # noqa: ANN401
    """Return Pr[output | category] of weighted patterns, shape (n, outputs)."""
    # Patterns with less than this share of the largest weight are omitted from the kernel.
    positive = theta > 1e-9 * theta.max()
    kernel = (rows_of(patterns[positive], math.exp(epsilon)) * theta[positive][:, None]).T
    return kernel / kernel.sum(axis=1, keepdims=True)


def _prior(prior: Numbers | None, categories: int, objective: str) -> Vector | None:
    if prior is None:
        return None
    if objective == "worst-case":
        raise ParameterError(
            "prior is given and objective is 'worst-case'; it belongs to objective 'mean' only."
        )
    p = _checks.floats("prior", prior)
    if p.shape != (categories,):
        raise ParameterError(f"prior has shape {p.shape}; it must be ({categories},).")
    # Numbers near the largest float: neither their multiples nor their sums are floats.
    if not np.all(np.isfinite(p)) or p.min() <= 0 or p.max() / 1e6 > p.min():
        raise ParameterError(
            f"prior has {float(p.min()):g} as its least number; all must be above 0, and none more "
            "than 1e6 times another."
        )
    p = p / p.max()
    return frozen(p / p.sum())


def query_matrix(queries: npt.ArrayLike | str, categories: int | None) -> Matrix:
    """Return the matrix W of linear queries, shape (queries, categories), read-only.

    Args:
        queries: "histogram", the count of each category; "prefix", the count of the first u
            categories for u = 1..n (an empirical distribution function); "range", the count of
            every interval of categories; "marginals", for categories that are words of d bits,
            n = 2^d, every marginal table of every set of bits, 3^d rows; or the matrix itself.
        categories: n, in 2..256; for a matrix its number of columns, or None.

    Raises:
        ParameterError: if ``queries`` is none of these, or a size or entry is out of range.
    """
    if isinstance(queries, str):
        _checks.choice("queries", queries, ("histogram", "prefix", "range", "marginals"))
        if categories is None:
            raise ParameterError(f"categories is None; {queries!r} needs the number of categories.")
        return frozen(
            _named(queries, _checks.integer("categories", categories, 2, _MOST_CATEGORIES))
        )
    matrix = _checks.floats("queries", queries)
    if matrix.ndim != 2 or not 2 <= matrix.shape[1] <= _MOST_CATEGORIES:
        raise ParameterError(
            f"queries has shape {matrix.shape}; it must be a matrix with a row for each query and "
            f"2 to {_MOST_CATEGORIES} columns, one for each category."
        )
    if len(matrix) > _MOST_QUERIES or not np.all(np.isfinite(matrix)):
        raise ParameterError(f"queries must be finite numbers in at most {_MOST_QUERIES:,} rows.")
    size = float(np.max(np.abs(matrix), initial=0.0))
    if not 1e-100 <= size <= 1e100:
        raise ParameterError(
            f"queries has {size:g} as its largest entry; it must be in 1e-100..1e100."
        )
    if categories is not None and _checks.integer("categories", categories, 2) != matrix.shape[1]:
        raise ParameterError(f"categories is {categories}; queries have {matrix.shape[1]} columns.")
    return frozen(matrix)


def _named(queries: str, n: int) -> Matrix:
    if queries == "histogram":
        return np.eye(n)
    if queries == "prefix":
        return np.tril(np.ones((n, n)))
    if queries == "range":
        first, last = np.triu_indices(n)
        category = np.arange(n)
        return np.where((category >= first[:, None]) & (category <= last[:, None]), 1.0, 0.0)
    bits = n.bit_length() - 1
    if n != 1 << bits:
        raise ParameterError(f"categories is {n}; for 'marginals' it must be a power of 2.")
    word = (np.arange(n)[:, None] >> np.arange(bits)) & 1
    # A query fixes some bits to 0 or 1; 2 stands for a bit that is summed over.
    cells = np.array(list(product((0, 1, 2), repeat=bits)))
    fits = (cells[:, None, :] == 2) | (cells[:, None, :] == word)
    return np.where(fits.all(axis=-1), 1.0, 0.0)
