"""The best epsilon-DP sampler of one letter there is, for small n and k, by linear programming."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Vector, frozen
from dpopt.lp import Backend, Problem, Solution, solve
from dpopt.prob import total_variation
from dpopt.provenance import versions
from dpopt.roo.histograms import Histograms, histograms
from dpopt.roo.optimal_program import (
    TIE_GAP,
    SamplerProgram,
    checked_law,
    histogram_prior,
    incidence,
    multinomial_prior,
    visible,
)
from dpopt.roo.optimal_proof import prove, quantised
from dpopt.roo.optimal_result import OptimalSampler, distances
from dpopt.roo.setting import RooSetting

OPTIMAL_OBJECTIVES = ("worst-case", "bayes", "mean", "fixed")
_OF_ONE_LAW = ("mean", "fixed")


def optimal_sampler(
    records: int,
    letters: int,
    epsilon: float,
    *,
    objective: str = "worst-case",
    distribution: npt.ArrayLike | None = None,
    prior: float = 1.0,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
) -> OptimalSampler:
    """Return the optimal epsilon-DP sampler of one letter, repaired and certified exactly.

    Over all samplers K(y | x) that commute with relabelling the letters: one variable for each
    histogram (sorted counts) and each of its counts, K(y | x) <= e^epsilon K(y | x') for all
    neighbours. The objectives, all total variation distances:

    - "worst-case": max over data sets x of TV(K(x), empirical(x)). No sampler that tells letters
      apart does better: averaged over all relabellings it does no worse, and commutes.
    - "bayes": the mean of TV(K(x), empirical(x)) for n records of P, P symmetric Dirichlet(alpha);
      alpha = 1 is uniform over all P. Nor does any other sampler do better here.
    - "mean": the mean of TV(K(x), empirical(x)) for n records of one P: how far the letter's law is
      from the data that one has, over all data that P gives.
    - "fixed": TV(Q, P) for Q = the mean of K(x) over n records of one P (the papers' d_TV).

    The last two are the least, over all samplers, of the largest value over all orders of P's
    letters; a sampler that knows P with its labels could do better, and for "fixed" needs no data.

    Where "worst-case" or "fixed" leave a choice, the mean of "bayes" is least among the optima, up
    to 1e-9 of the distance.

    Takes seconds for k = 3 and minutes for the largest n at k = 6; rows grow with k, not only
    with the number of histograms.

    Args:
        records: n, at least 1.
        letters: k, 2 to 100; n and k with at most 2,000 histograms (k = 3: n <= 151, k = 4: 61,
            k = 5: 41, k = 6: 34).
        epsilon: above 0, in nats.
        objective: see above.
        distribution: P for "mean" and "fixed", shape (k,); at most 1e6 count vectors.
        prior: alpha, in [0.001, 1000].
        backend: see `dpopt.solve`.
        time_limit: seconds for each of at most two solves.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.

    Example:
        >>> from dpopt import roo
        >>> best = roo.optimal_sampler(6, 3, 1.0)
        >>> round(best.value, 4), round(roo.worst_case_tv(roo.min_count(6, 3, 1.0)), 4)
        (0.071, 0.1503)
    """
    setting = RooSetting(records, letters, epsilon)
    _checks.choice("objective", objective, OPTIMAL_OBJECTIVES)
    alpha = _checks.real("prior", prior, 1e-3, 1e3)
    if (distribution is None) == (objective in _OF_ONE_LAW):
        raise ParameterError(
            f"distribution is {'missing' if distribution is None else 'given'} and objective is "
            f"{objective!r}; it belongs to objective 'mean' or 'fixed', and only there."
        )
    law = None if distribution is None else frozen(checked_law(distribution, setting.letters))
    run = _Run(setting, alpha, law, histograms(setting), backend, time_limit)
    if objective == "bayes":
        return run.mean("bayes", run.weights)
    if objective == "mean" and law is not None:
        return run.mean("mean", multinomial_prior(run.found, law))
    return run.worst_case() if law is None else run.fixed(law)


@dataclass(frozen=True)
class _Run:
    """One design: what all objectives share."""

    setting: RooSetting
    alpha: float
    law: Vector | None
    found: Histograms
    backend: str | Backend
    time_limit: float | None

    @property
    def program(self) -> SamplerProgram:
        """The programs over these histograms."""
        return SamplerProgram(self.setting, self.found)

    @cached_property
    def weights(self) -> Vector:
        """Law of the histogram under the prior."""
        return histogram_prior(self.found, self.alpha)

    def mean(self, objective: str, weights: Vector) -> OptimalSampler:
        """Minimise the mean distance under a law of the histogram."""
        raised = visible(weights)
        solution = self._solve(self.program.mean(raised))
        # TV is at most 1, so raised weights cost the bound no more than they were raised by.
        bound = solution.bound - float(np.sum(raised - weights))

        def value(kernel: Vector) -> float:
            return float(weights @ distances(self.setting, self.found, kernel))

        return self._finished(objective, solution, solution["kernel"], value, bound)

    def worst_case(self) -> OptimalSampler:
        """Minimise the largest distance."""
        solution, kernel = self._among_optima(self.program.worst_case())

        def value(kernel: Vector) -> float:
            return float(distances(self.setting, self.found, kernel).max())

        return self._finished("worst-case", solution, kernel, value, solution.bound)

    def fixed(self, law: Vector) -> OptimalSampler:
        """Minimise the distance of the output's law to P."""
        chances = incidence(self.found, law)
        solution, kernel = self._among_optima(self.program.fixed(chances, law))

        def value(kernel: Vector) -> float:
            return float(total_variation(chances @ kernel, law))

        return self._finished("fixed", solution, kernel, value, solution.bound)

    def _solve(self, problem: Problem, relative_gap: float | None = None) -> Solution:
        return solve(problem, self.backend, relative_gap=relative_gap, time_limit=self.time_limit)

    def _among_optima(self, problem: Problem) -> tuple[Solution, Vector]:
        """Return the solution, and the optimal kernel of least mean."""
        first = self._solve(problem)
        self.program.among_optima(problem, first.objective, visible(self.weights))
        return first, self._solve(problem, TIE_GAP)["kernel"]

    def _finished(
        self,
        objective: str,
        solution: Solution,
        kernel: Vector,
        value: Callable[[Vector], float],
        bound: float,
    ) -> OptimalSampler:
        weights, exact, mixing = quantised(self.setting, self.found, kernel)
        return OptimalSampler(
            setting=self.setting,
            objective=objective,
            prior=self.alpha,
            distribution=self.law,
            histograms=self.found,
            weights=weights,
            kernel=exact,
            certificate=prove(self.setting, self.found, weights),
            value=value(exact),
            bound=bound,
            gap=value(exact) - bound,
            mixing=float(mixing),
            solution=solution,
            provenance=versions(),
        )
