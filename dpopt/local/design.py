"""A locally private mechanism for linear queries: releases, estimates, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Matrix, Vector, frozen
from dpopt.kernel.design import TableDesign
from dpopt.local.baselines import variances
from dpopt.local.bound import How
from dpopt.local.decoder import decoder, groups_of, letter_variances
from dpopt.local.optimum import information
from dpopt.local.setting import WorkloadSetting
from dpopt.shape import design

if TYPE_CHECKING:
    from dpopt._types import Numbers


@dataclass(frozen=True, eq=False)
class Estimate:
    """Answers to the queries, estimated from what people released.

    Attributes:
        values: of W x, shape (queries,), read-only.
        standard_errors: of each, shape (queries,), estimated from the same outputs, read-only.
        histogram: of x, shape (n,), read-only; negative entries are no error. Letters that no query
            tells apart share the estimate of them all by the prior.
        people: N.
        unbiased: whether the mean of the values is W x; not so of consistent ones.
    """

    values: Vector
    standard_errors: Vector
    histogram: Vector
    people: int
    unbiased: bool


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WorkloadDesign(TableDesign):
    """A locally private mechanism, its decoder, and a bound that no other one can pass."""

    @property
    def variance(self) -> float:
        """Of all answers together, for each person: divide by N for answers as shares of N."""
        return self.value

    @property
    def proof(self) -> How | None:
        """How the bound is known: see `dpopt.local.bound`; None of one that only a file states.

        "unproved" where there is no bound.
        """
        if "bound" in self.stated:
            return None
        return "unproved" if self.bound is None else self.setting.lowest.how

    @cached_property
    def prior(self) -> Vector:
        """p, or the worst law of letters for this mechanism, shape (n,), read-only."""
        return frozen(self.setting.prior_of(self.units))

    @cached_property
    def rows(self) -> Matrix:
        """Q, Pr[output | letter] of the certified integers, shape (outputs, n), read-only."""
        return frozen(self.units.matrix().T)

    @cached_property
    def decoder(self) -> Matrix:
        """V, shape (queries, outputs), read-only: V Q = W."""
        return frozen(decoder(self.rows, self.setting.matrix, self.prior))

    @cached_property
    def letter_variances(self) -> Vector:
        """What one person adds to the variance, by letter, shape (n,), read-only."""
        return frozen(letter_variances(self.rows, self.setting.gram, self.prior))

    def estimate(self, outputs: npt.ArrayLike, *, consistent: bool = False) -> Estimate:
        """Return the answers for the people who released these outputs.

        The answers are V y, y the counts of outputs. They are unbiased and may be negative. The
        standard errors are those of V y, from sum_o y_o V_qo^2 - sum_u x_u W_qu^2 with x estimated,
        at least 0.

        Args:
            outputs: what `release` returned, one or an array of integers in 0..outputs-1.
            consistent: take the answers of the histogram that is nearest to the estimated one, as
                the mechanism tells them apart, among those that are at least 0 and sum to N. They
                are better as a rule, and no longer unbiased.

        Raises:
            ParameterError: if an output is none of the mechanism's, or there is none.
        """
        given = np.atleast_1d(_checks.array("outputs", outputs))
        size, allowed = self.units.outputs, self.rows[:, 0] > 0
        known = given.dtype.kind in "iu" and given.size > 0
        if not known or given.min() < 0 or given.max() >= size or not np.all(allowed[given]):
            raise ParameterError(
                f"outputs must be one or more of the mechanism's, integers in 0..{size - 1}."
            )
        counts = np.bincount(given.ravel(), minlength=size).astype(np.float64)
        histogram = decoder(self.rows, np.eye(self.setting.letters), self.prior) @ counts
        v, w = self.decoder, self.setting.matrix
        spread = np.maximum(v**2 @ counts - w**2 @ histogram, 0.0)
        if _checks.flag("consistent", consistent):
            histogram = self._nearest(histogram, given.size)
        values = w @ histogram if consistent else v @ counts
        return Estimate(
            frozen(values), frozen(np.sqrt(spread)), frozen(histogram), given.size, not consistent
        )

    def _nearest(self, histogram: Vector, people: int) -> Vector:
        """Return the histogram x >= 0, sum x = N, of least (x - h)'M (x - h)."""
        import cvxpy as cp

        alike = groups_of(self.rows)
        rows = self.rows[np.ix_(self.rows[:, 0] > 0, alike.first)]
        root = np.linalg.cholesky(information(rows, alike.sums(self.prior))).T
        x = cp.Variable(alike.size, nonneg=True)
        distance = cp.sum_squares(root @ (x - alike.sums(histogram) / people))
        cp.Problem(cp.Minimize(distance), [cast(cp.Constraint, cp.sum(x) == 1)]).solve(
            solver=cp.CLARABEL
        )
        found = np.maximum(cast(Vector, x.value), 0.0)
        return people * (alike.shares(self.prior) @ found) / found.sum()

    def compare(self) -> dict[str, float]:
        """Return the variance for each person of this mechanism and of those of old, by name.

        See `dpopt.local.baselines`; the bound is that of every mechanism.
        """
        asked = self.setting
        others = variances(asked.letters, asked.epsilon, asked.gram, asked.weights)
        bound = {} if self.float_bound is None else {"bound": float(self.float_bound)}
        return {"this": self.variance, **others, **bound}

    def facts(self) -> Json:
        """Return what `to_dict` tells beyond the fields that all answers share."""
        return {"proof": self.proof, "outputs": self.units.outputs}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {**super().headline(), "outputs": self.units.outputs, "gap": self.gap}


WorkloadSetting.answer = WorkloadDesign


def workload_mechanism(
    workload: npt.ArrayLike | str,
    n: int | None = None,
    *,
    epsilon: float,
    prior: Numbers | None = None,
    objective: str = "mean",
) -> WorkloadDesign:
    """Return the epsilon-LDP mechanism whose answers to linear queries vary least, with a bound.

    Args:
        workload: "histogram", "prefix", "range", "marginals", or W, shape (queries, n).
        n: number of letters; of a matrix it may be left out.
        epsilon: in [0.01, 12], in nats.
        prior: p, shape (n,), above 0; uniform if None.
        objective: "mean" under the prior, or "worst" for the worst data.

    Raises:
        ParameterError: if an argument is out of range.
        SolverError: if the mechanism was not found.

    Example:
        >>> from dpopt.local import workload_mechanism
        >>> found = workload_mechanism("prefix", 4, epsilon=1.0)
        >>> round(found.variance, 9), found.proof, found.gap < 1e-9
        (5.993007825, 'enumeration', True)
    """
    given: Any = workload
    letters = 0 if n is None else n
    return design(WorkloadSetting(given, letters, epsilon, prior, cast(Any, objective)))
