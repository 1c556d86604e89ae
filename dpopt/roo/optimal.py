"""The best epsilon-DP sampler of one category, for small n and k, by linear programming."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._figure import LIMIT
from dpopt._types import IntVector, Vector, frozen
from dpopt.ballots.choice import votes_pmf
from dpopt.lp import Backend, Solution, solve
from dpopt.lp.backends import get_backend
from dpopt.privacy import Problem
from dpopt.roo.setting import CategorySetting
from dpopt.table import SortedHistograms, Table, add_table, over_masses
from dpopt.table.histograms import partition_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Largest number of histograms and of categories of a program.
_MOST_HISTOGRAMS, _MOST_CATEGORIES = 2000, 100


@dataclass(frozen=True)
class BestSampler(CategorySetting):
    """The best private sampler of one category from n records.

    For each histogram x (sorted counts) and each count c in it there is a variable M(x, c), the
    probability of all categories of x with count c. With their number ``categories`` and
    K = M / categories,

        minimise   objective
        subject to sum_c M(x, c) = 1                              "sums"
                   K(y | x~) <= e^epsilon K(y | x)                "privacy"
                   S(x, c) >= categories c / n - M(x, c), S >= 0     "short"

    over all neighbours x, x~ and categories y. With TV(K(x), empirical(x)) = sum_c S(x, c), the
    objective is one of

    - "worst-case": the largest TV(K(x), empirical(x)) over data sets x, rows "distance". Samplers
      that distinguish categories do no better: averaging one over all relabellings does not raise
      its worst case, and gives a sampler of this form.
    - "mean": the mean of TV(K(x), empirical(x)) over n records drawn from P, with P symmetric
      Dirichlet(alpha); alpha = 1 is uniform over all P. Again no other sampler does better.

    Among the optima of "worst-case" the one with the least mean under the prior is taken. It takes
    less than a second for k = 3 and seconds for the largest n at k = 6.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        categories: k, 2 to 100; n and k with at most 2,000 histograms (k = 3: n <= 151, k = 4: 61,
            k = 5: 41, k = 6: 34).
        epsilon: above 0, in nats, at most 600.
        objective: "worst-case" or "mean"; see the formula.
        prior: alpha, in [0.001, 1000].

    Example:
        >>> import dpopt
        >>> best = dpopt.design(dpopt.BestSampler(6, 3, 1.0))
        >>> exact = dpopt.design(dpopt.RevealOrObscure(6, 3, 1.0))
        >>> round(best.value, 4), round(exact.worst_case, 4)
        (0.071, 0.1503)
    """

    kind: ClassVar[str] = "best-sampler"
    summary: ClassVar[tuple[str, ...]] = ("worst_case", "mean")

    records: int
    categories: int
    epsilon: float
    objective: Literal["worst-case", "mean"] = "worst-case"
    prior: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        objective = _checks.choice("objective", self.objective, ("worst-case", "mean"))
        self.keep(objective=objective, prior=_checks.real("prior", self.prior, 1e-3, 1e3))
        n, k = self.records, self.categories
        if k > _MOST_CATEGORIES:
            raise ParameterError(
                f"categories is {k}; the program over all histograms takes at most "
                f"{_MOST_CATEGORIES}. Use RevealOrObscure."
            )
        # Two categories alone have n // 2 + 1 histograms.
        if n // 2 >= _MOST_HISTOGRAMS or partition_count(n, k) > _MOST_HISTOGRAMS:
            raise ParameterError(
                f"records is {n} for {k} categories; data sets may have at most {_MOST_HISTOGRAMS} "
                "histograms, and these have more. Use RevealOrObscure."
            )

    @cached_property
    def domain(self) -> SortedHistograms:
        """The sorted histograms of n records; a variable is a histogram and one of its counts."""
        return SortedHistograms(self.records, self.categories)

    @cached_property
    def shares(self) -> Vector:
        """Probability of each histogram under the prior."""
        return votes_pmf(f"dirichlet:{self.prior!r}", self.domain)

    @property
    def _visible(self) -> Vector:
        """The shares, raised to 1e-9 of the largest: a solver ignores less, and leaves K open."""
        return np.maximum(self.shares, 1e-9 * self.shares.max())

    def problem(self) -> Problem:
        """Return the program; the secondary objective of "worst-case" is the mean."""
        inputs, n = self.domain, self.records
        problem = Problem("optimal sampler of one category")
        add_table(problem, inputs, self.guarantee)
        # A count of 0 has no shortfall.
        positive = np.flatnonzero(inputs.values > 0)
        problem.add_variables("shortfall", positive.size, lower=0.0, upper=1.0)
        selector = sp.eye_array(inputs.size, format="csr")[positive]
        masses = over_masses(problem, inputs, self.guarantee, selector)
        sides = {**masses, "shortfall": sp.eye_array(positive.size)}
        least = (inputs.counts * inputs.values)[positive] / n
        problem.add_rows("short", sides, lower=least)
        # Row: a histogram; column: one of its counts.
        entries = (np.ones(positive.size), (inputs.rows[positive], np.arange(positive.size)))
        distances = sp.csr_array(entries)
        mean = {"shortfall": distances.T @ self._visible}
        if self.objective == "mean":
            problem.minimise(mean)
            return problem
        problem.add_variables("worst", 1, lower=0.0, upper=1.0)
        minus = -np.ones((distances.shape[0], 1))
        problem.add_rows("distance", {"shortfall": distances, "worst": minus}, upper=0.0)
        problem.minimise({"worst": 1.0})
        problem.then_minimise(mean)
        return problem

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program; "mean" up to a gap that the noise of its multipliers allows."""
        gap = None
        if self.objective == "mean":
            # Relative gap of a mean: it sums the multipliers of all histograms, and so their noise.
            gap = max(1e-7, 10 * get_backend(backend).tolerance)
        return solve(
            self.problem(),
            backend,
            relative_gap=gap,
            time_limit=time_limit,
            stop_at_gap=stop_at_gap,
        )

    def value(self, table: Table) -> float:
        """Return the objective: a total variation distance."""
        distances = self.distances(table)
        return float(distances.max() if self.objective == "worst-case" else self.shares @ distances)

    def bound(self, table: Table, solution: Solution | None) -> float | None:
        """Return the dual bound; for "mean" minus the total by which coefficients were raised."""
        del table
        if solution is None or self.objective != "mean":
            return None if solution is None else solution.bound
        # Distances are at most 1, so raised coefficients add no more than that to the objective.
        return solution.bound - float(np.sum(self._visible - self.shares))

    def _proof_size(self, table: Table) -> int:
        """Return the entries of the privacy rows."""
        del table
        return 4 * len(self.domain.neighbours)

    def weights(self, table: Table, counts: IntVector, categories: IntVector) -> list[int]:
        """Return the integer weight of a category with each count of a histogram."""
        row = int(self.domain.rows_of(np.repeat(counts, categories)[None])[0])
        # A histogram's variables are its counts in descending order; ``counts`` are ascending.
        start, end = self.domain.starts[row : row + 2].tolist()
        return list(table.weights[start:end][::-1])

    def distances(self, table: Table) -> Vector:
        """Return TV(K(x), empirical(x)) for each histogram, shape (histograms,)."""
        inputs = self.domain
        short = np.maximum(0.0, inputs.values / self.records - table.probabilities)
        return frozen(np.bincount(inputs.rows, inputs.counts * short))

    def worst_case(self, table: Table) -> float:
        """Return the largest TV(K(x), empirical(x)) over all data sets."""
        return float(self.distances(table).max())

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return kernel, histograms, and distances; the mean is under the prior."""
        return {
            **super().report(table),
            "kernel": lambda: table.probabilities,
            "histograms": lambda: self.domain.histograms,
            "distances": lambda: frozen(self.distances(table)),
            "mean": lambda: float(self.shares @ self.distances(table)),
        }

    def draw(self, axes: Axes, table: Table, label: str | None = None) -> None:
        """Draw a category's probability against its count, one point per variable."""
        empirical: Any = {"linestyle": ":", "label": "the empirical distribution, $c / n$"}
        axes.plot([0, self.records], [0.0, 1.0], color=LIMIT, **empirical)
        points = self.domain.values, table.probabilities
        axes.plot(*points, "o", markersize=2, clip_on=False, label=label)
        axes.set_xlabel("count of the category, $c$")
        axes.set_ylabel("probability of the category")
        axes.set_ylim(-0.03, 1.03)

    def columns(self, table: Table) -> Mapping[str, Sequence[Any]]:
        """Return one line per variable: histogram, count, categories with it, and probability."""
        inputs = self.domain
        return {
            "histogram": inputs.rows.tolist(),
            "count": inputs.values.tolist(),
            "multiplicity": inputs.counts.tolist(),
            "probability": table.probabilities.tolist(),
        }
