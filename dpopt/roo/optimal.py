"""The best epsilon-DP sampler of one letter there is, for small n and k, by linear programming.

The setting and its program, from the program's point to integers, and the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import gammaln, xlogy

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._figure import LIMIT
from dpopt._types import IntVector, Json, Matrix, Numbers, Vector, frozen
from dpopt.lp import Backend, Separation, Solution, make_rows, solve
from dpopt.lp.backends import get_backend
from dpopt.privacy import Certificate, Problem
from dpopt.privacy.least import Least, require_pure
from dpopt.prob import total_variation
from dpopt.roo.histograms import Histograms, all_counts, histograms
from dpopt.roo.proof import least_of_law, least_slack, prove_law
from dpopt.roo.sampler import Below, LetterSampler, place_of
from dpopt.roo.setting import BITS, UNIT, RooSetting, checked_law
from dpopt.shape import Design, Setting, design

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPTIMAL_OBJECTIVES = ("worst-case", "bayes", "mean", "fixed")
_OF_ONE_LAW = ("mean", "fixed")
_MOST_COUNTS = 1_000_000
# Coefficients below this part of the largest would leave K undefined where they stand.
_VISIBLE = 1e-9
# A mean is a sum over all histograms, whose multipliers have the noise of as many; and the least
# violation for which a row is added.
_MEAN_GAP, _BROKEN = 1e-7, 1e-10
# More than the rounding of a ratio row in doubles, and of a chance to 2^-62.
_NOISE = 2.0**-50


@dataclass(frozen=True)
class OptimalLetter(RooSetting, Setting["OptimalSampler"]):
    """The best sampler of one letter: K(y | x) depends on y's count and on the sorted counts of x.

    One variable for each histogram x (sorted counts) and each of its counts c, and

        minimise   objective
        subject to sum_y K(y | x) = 1                            "sums"
                   K(y | x~) <= e^epsilon K(y | x)               "privacy"
                   s(y | x) >= c_y / n - K(y | x), s >= 0        "shortfalls"

    over all neighbours x, x~ and letters y. With TV(K(x), empirical(x)) = sum_y s(y | x), the
    objective is one of

    - "worst-case": the largest TV(K(x), empirical(x)) of all data sets x, rows "distance". No
      sampler that tells letters apart does better: averaged over all relabellings it does no worse,
      and depends on the counts in this way.
    - "bayes": the mean of TV(K(x), empirical(x)) for n records of P, P symmetric Dirichlet(alpha);
      alpha = 1 is uniform over all P. Nor does any other sampler do better here.
    - "mean": the mean of TV(K(x), empirical(x)) for n records of one P: how far the letter's law is
      from the data that one has, over all data that P gives.
    - "fixed": TV(Q, P) for Q = the mean of K(x) over n records of one P (the papers' d_TV), rows
      "output".

    The last two are the least, over all samplers, of the largest value over all orders of P's
    letters; a sampler that knows P with its labels could do better, and for "fixed" needs no data.

    Where "worst-case" or "fixed" leave a choice, the least mean of "bayes" among the optima is
    taken (see `dpopt.Problem.then_minimise`). Takes seconds for k = 3 and minutes for the largest n
    at k = 6; rows grow with k, not only with the number of histograms.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        letters: k, 2 to 100; n and k with at most 2,000 histograms (k = 3: n <= 151, k = 4: 61,
            k = 5: 41, k = 6: 34).
        epsilon: above 0, in nats, at most 600.
        objective: "worst-case", "bayes", "mean" or "fixed".
        distribution: P for "mean" and "fixed", shape (k,); at most 1e6 count vectors.
        prior: alpha, in [0.001, 1000].
    """

    kind: ClassVar[str] = "optimal-sampler"

    records: int
    letters: int
    epsilon: float
    objective: Literal["worst-case", "bayes", "mean", "fixed"] = "worst-case"
    distribution: Numbers | None = None
    prior: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        objective = _checks.choice("objective", self.objective, OPTIMAL_OBJECTIVES)
        alpha = _checks.real("prior", self.prior, 1e-3, 1e3)
        given = self.distribution
        if (given is None) == (objective in _OF_ONE_LAW):
            raise ParameterError(
                f"distribution is {'missing' if given is None else 'given'} and objective is "
                f"{objective!r}; it belongs to objective 'mean' or 'fixed', and only there."
            )
        # A tuple, so that settings can be compared.
        law = None if given is None else tuple(checked_law(given, self.letters).tolist())
        histograms(self.records, self.letters)
        for name, value in (("objective", objective), ("prior", alpha), ("distribution", law)):
            object.__setattr__(self, name, value)

    @classmethod
    def example(cls) -> Self:
        """Return six records of three letters."""
        return cls(records=6, letters=3, epsilon=1.0)

    @classmethod
    def example_data(cls) -> object:
        """Return six records."""
        return [0, 0, 0, 1, 1, 2]

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return six records, and one of them changed."""
        return [([0] * a + [1] * (6 - a), [0] * a + [1] * (5 - a) + [2]) for a in range(6)]

    @property
    def histograms(self) -> Histograms:
        """Sorted counts of all data sets; a place is a histogram and one of its counts."""
        return histograms(self.records, self.letters)

    @property
    def law_of_records(self) -> Vector:
        """P as an array."""
        return np.asarray(self.distribution, dtype=np.float64)

    @property
    def chances(self) -> Vector:
        """Law of the histogram under the prior, of "mean" under P, shape (histograms,)."""
        if self.objective == "mean":
            return multinomial_prior(self.histograms, self.law_of_records)
        return histogram_prior(self.histograms, self.prior)

    def problem(self) -> Problem:
        """Return the program; "worst-case" and "fixed" have the least mean as second objective."""
        return self._written(SamplerProgram(self, self.histograms))

    def _written(self, program: SamplerProgram) -> Problem:
        if self.objective in ("bayes", "mean"):
            return program.mean(visible(self.chances))
        if self.objective == "worst-case":
            problem = program.worst_case()
        else:
            law = self.law_of_records
            problem = program.fixed(incidence(self.histograms, law), law)
        problem.then_minimise(program.mean_costs(visible(self.chances)))
        return problem

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program.

        Few privacy rows matter but those of letters that gain a record, which are half of them or
        less: the others are added where a point breaks them.
        """
        program = SamplerProgram(self, self.histograms, few=True)
        gap = None
        if self.objective in ("bayes", "mean"):
            gap = max(_MEAN_GAP, 10 * get_backend(backend).tolerance)
        limits: Any = {"time_limit": time_limit, "stop_at_gap": stop_at_gap}
        return program.priced(solve(self._written(program), backend, relative_gap=gap, **limits))

    def point(self, solution: Solution) -> Vector:
        """Return K at each place."""
        return solution["kernel"]

    def units(self, point: Vector) -> tuple[int, ...]:
        """Return the chance of each letter at each place over 2^62, mixed until it is private."""
        return mixed(self, self.histograms, point)[0]

    def floats(self, units: tuple[int, ...]) -> Vector:
        """Return K at each place: units over the sum for their histogram, read-only."""
        sums, owner = self.histograms.sums(units), self.histograms.owner.tolist()
        return frozen([unit / sums[i] for unit, i in zip(units, owner, strict=True)])

    def value(self, units: tuple[int, ...]) -> float:
        """Return the objective: a total variation distance."""
        kernel = self.floats(units)
        if self.objective == "fixed":
            law = self.law_of_records
            return float(total_variation(incidence(self.histograms, law) @ kernel, law))
        far = distances(self, self.histograms, kernel)
        return float(far.max() if self.objective == "worst-case" else self.chances @ far)

    def bound(self, units: tuple[int, ...], solution: Solution | None) -> float | None:
        """Return the dual bound; a mean's, less what its coefficients were raised by.

        A distance is at most 1, so that raised coefficients cost no more than they were raised by.
        """
        del units
        if solution is None or self.objective not in ("bayes", "mean"):
            return None if solution is None else solution.bound
        chances = self.chances
        return solution.bound - float(np.sum(visible(chances) - chances))

    def proof_size(self, units: tuple[int, ...]) -> int:
        """Return the entries of the privacy rows, and of the law of counts where P is given."""
        del units
        n, k = self.records, self.letters
        counts = k * comb(n + k - 1, n) if self.objective in _OF_ONE_LAW else 0
        return 2 * len(self.histograms.edges) + counts

    def prove(self, units: tuple[int, ...]) -> Certificate:
        """Return the exact proof over all edges between histograms.

        Raises:
            NotPrivateError: naming two data sets, if they are not private.
        """
        return prove_law(self, self.histograms, units)

    def spent(self, units: tuple[int, ...], epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for delta = 0."""
        require_pure(self.kind, epsilon, delta)
        return least_of_law(self.histograms, units)

    def law(self, units: tuple[int, ...], data: object) -> list[int]:
        """Return the chance of each letter, over the sum for the data's histogram."""
        return [units[place] for place in self.histograms.places_of(self.counted(data))]

    def draw(self, axes: Axes, units: tuple[int, ...], label: str | None = None) -> None:
        """Draw a letter's probability against its count, a point for each place.

        The line is the empirical probability c / n.
        """
        n = self.records
        axes.plot(
            [0, n],
            [0.0, 1.0],
            color=LIMIT,
            linestyle=":",
            label="the empirical law, $c / n$",
        )
        axes.plot(
            self.histograms.count, self.floats(units), "o", markersize=2, clip_on=False, label=label
        )
        axes.set_xlabel("count of the letter, $c$")
        axes.set_ylabel("probability of the letter")
        axes.set_ylim(-0.03, 1.03)

    def columns(self, units: tuple[int, ...]) -> Mapping[str, Sequence[Any]]:
        """Return histogram, count, multiplicity (letters that have it) and probability of each."""
        places = self.histograms
        return {
            "histogram": places.owner.tolist(),
            "count": places.count.tolist(),
            "multiplicity": places.multiplicity.tolist(),
            "probability": self.floats(units).tolist(),
        }

    def read(self, plain: Any) -> tuple[int, ...]:  # noqa: ANN401
        """Return the integers of a file, checked in form.

        Raises:
            ParameterError: if they are not one for each place, of which each histogram has some.
        """
        units, places = super().read(plain), self.histograms.places
        whole = isinstance(units, tuple) and all(
            isinstance(unit, int) and not isinstance(unit, bool) and 0 <= unit <= UNIT
            for unit in units
        )
        if not whole or len(units) != places or min(self.histograms.sums(units)) == 0:
            raise ParameterError(
                f"units must be {places} integers in 0..2^{BITS}, not all 0 for a histogram."
            )
        return units


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OptimalSampler(LetterSampler, Design):
    """A sampler that looks at all counts but treats letters alike, its optimality and its proof.

    Attributes:
        setting: n, k, epsilon and the objective.
        units: chance of each letter at each place of ``histograms``, as integers over the sum for
            its histogram: what is certified, and what `release` draws from.
        certificate: the exact proof of epsilon-DP over all neighbours.
        bound: lower bound on the value of any epsilon-DP sampler, from the dual vector; value -
            bound is what solver, repair and rounding together may have lost.
        solution: the solve behind the bound, duals by block name; its point is chosen among the
            optima by the second objective, where there is one.
    """

    setting: OptimalLetter

    @property
    def objective(self) -> str:
        """One of "worst-case", "bayes", "mean" and "fixed"."""
        return self.setting.objective

    @property
    def prior(self) -> float:
        """Alpha of the symmetric Dirichlet law of P."""
        return self.setting.prior

    @property
    def distribution(self) -> Vector | None:
        """P for "mean" and "fixed", shape (k,), read-only; else None."""
        return None if self.setting.distribution is None else frozen(self.setting.law_of_records)

    @property
    def histograms(self) -> Histograms:
        """Sorted counts of all data sets; a place is a histogram and one of its counts."""
        return self.setting.histograms

    @property
    def weights(self) -> tuple[int, ...]:
        """Chance of each letter at each place, as integers: the units."""
        return self.units

    @cached_property
    def kernel(self) -> Vector:
        """The units as probabilities, shape (places,), read-only."""
        return self.setting.floats(self.units)

    @cached_property
    def mixing(self) -> float | None:
        """Part of a uniform letter that the repair added; None if no solve is known."""
        if self.solution is None:
            return None
        point = self.setting.point(self.solution)
        return float(mixed(self.setting, self.histograms, point)[1])

    @cached_property
    def distances(self) -> Vector:
        """TV(K(x), empirical(x)) for each histogram, shape (histograms,)."""
        return frozen(distances(self.setting, self.histograms, self.kernel))

    @property
    def worst_case(self) -> float:
        """Largest TV(K(x), empirical(x)) over all data sets."""
        return float(self.distances.max())

    @property
    def mean(self) -> float:
        """Mean TV(K(x), empirical(x)) for n records of P, P symmetric Dirichlet(alpha)."""
        return float(histogram_prior(self.histograms, self.prior) @ self.distances)

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return the law of the released letter given the counts, both of shape (k,)."""
        places = self.histograms.places_of(self.fitting(counts))
        return frozen(self.kernel[places])

    def _draw(self, counts: IntVector, below: Below) -> int:
        places = self.histograms.places_of(counts)
        return place_of([self.units[place] for place in places], below)

    def facts(self) -> Json:
        """Return both distances, what the repair added, and what the places are."""
        places = self.histograms
        return {
            "worst_case": self.worst_case,
            "mean": self.mean,
            "mixing": self.mixing,
            "histograms": places.counts.tolist(),
            "places": np.stack([places.owner, places.count], axis=1).tolist(),
        }

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {**super().headline(), "gap": self.gap}


OptimalLetter.answer = OptimalSampler


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
    stop_at_gap: float = 0.0,
) -> OptimalSampler:
    """Return the optimal epsilon-DP sampler of one letter, repaired and certified exactly.

    The parameters are the fields of the setting, see `OptimalLetter`. For backend, stop_at_gap and
    time_limit see `dpopt.design`.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.

    Example:
        >>> from dpopt import roo
        >>> best = roo.optimal_sampler(6, 3, 1.0)
        >>> round(best.value, 4), round(roo.worst_case_tv(roo.min_count(6, 3, 1.0)), 4)
        (0.071, 0.1503)
    """
    named: Any = objective
    setting = OptimalLetter(records, letters, epsilon, named, distribution, prior)
    return design(setting, backend=backend, time_limit=time_limit, stop_at_gap=stop_at_gap)


def mixed(
    setting: RooSetting, places: Histograms, kernel: Vector
) -> tuple[tuple[int, ...], Fraction]:
    """Return integers that are private next to a float kernel, and the mixing eta.

    K <- (1 - eta) K + eta / k keeps letters alike and gives each row (r - 1) eta / k of slack:
    eta = tau / ((r - 1) / k + tau) repairs a worst violation tau. Letters of one count get one
    integer, the floor of 2^62 K; the sum over letters, which is not 2^62, is the denominator.

    Args:
        setting: n, k and epsilon.
        places: the histograms.
        kernel: chance of a letter at each place, at most nearly private and nearly summing to 1.
    """
    exact = [Fraction(value) for value in np.maximum(kernel, 0.0).tolist()]
    sums = places.sums(exact)
    exact = [value / sums[i] for value, i in zip(exact, places.owner.tolist(), strict=True)]
    uniform = Fraction(1, setting.letters)
    first, eta = _first_mixing(setting, places, exact), Fraction(0)
    while True:
        shares = ((1 - eta) * value + eta * uniform for value in exact)
        units = tuple(value.numerator * UNIT // value.denominator for value in shares)
        # eta = 1 ignores the data, and is private.
        if eta == 1 or least_slack(setting, places, units)[0] >= 0:
            return units, eta
        eta = min(Fraction(1), max(first, 2 * eta))


def _first_mixing(setting: RooSetting, places: Histograms, exact: Sequence[Fraction]) -> Fraction:
    """Return the eta that repairs the worst violation, up to rounding."""
    kernel = np.array([float(value) for value in exact])
    before, after = places.edges.T
    r = math.exp(setting.epsilon)
    tau = Fraction(float(np.max(kernel[after] - r * kernel[before], initial=0.0)) + _NOISE * r)
    return tau / ((setting.ratio - 1) / setting.letters + tau)


def distances(setting: RooSetting, places: Histograms, kernel: Vector) -> Vector:
    """Return TV(K(x), empirical(x)) = sum over letters of max(0, c / n - K), by histogram."""
    short = np.maximum(0.0, places.count / setting.records - kernel)
    return np.bincount(places.owner, places.multiplicity * short, places.size).astype(float)


def histogram_prior(table: Histograms, alpha: float) -> Vector:
    """Return the law of the histogram of n records of P, P symmetric Dirichlet(alpha).

    Shape (histograms,): the Dirichlet-multinomial law of the counts times the number of their
    orders. alpha = 1, P uniform on the simplex, makes all count vectors alike likely.
    """
    counts = table.counts
    n, k = int(counts[0].sum()), counts.shape[1]
    orders = np.full(table.size, gammaln(k + 1))
    np.subtract.at(orders, table.owner, gammaln(table.multiplicity + 1))
    # Axis 0: histograms; axis 1 of each: letters.
    each = gammaln(counts + alpha) - gammaln(alpha) - gammaln(counts + 1)
    logs = orders + each.sum(axis=1) + gammaln(n + 1) + gammaln(k * alpha) - gammaln(n + k * alpha)
    law = np.exp(logs - logs.max())
    return law / law.sum()


def multinomial_prior(table: Histograms, distribution: npt.ArrayLike) -> Vector:
    """Return the law of the histogram of n records of P, shape (histograms,).

    Every letter has one count of a histogram, so that k letters count each histogram k times.
    """
    chances = incidence(table, distribution).sum(axis=0)
    return np.bincount(table.owner, chances, table.size) / table.counts.shape[1]


def visible(coefficients: Vector) -> Vector:
    """Return coefficients of an objective, raised to what a solver can see."""
    return np.maximum(coefficients, _VISIBLE * coefficients.max())


def incidence(table: Histograms, distribution: npt.ArrayLike) -> Matrix:
    """Return Pr[the data have this histogram and letter y this count], shape (k, places).

    Times K, it gives the law of the released letter under n records of P.

    Args:
        table: the histograms and their places.
        distribution: P, shape (k,).

    Raises:
        ParameterError: if P is no law over k letters, or there are more than 1e6 count vectors.
    """
    n, k = int(table.counts[0].sum()), table.counts.shape[1]
    law = checked_law(distribution, k)
    total = comb(n + k - 1, k - 1)
    if total > _MOST_COUNTS:
        raise ParameterError(
            f"distribution is over {k} letters; {n} records of it have {total:.3g} count vectors, "
            f"and at most {_MOST_COUNTS} are summed."
        )
    counts = np.concatenate(list(all_counts(n, k)))
    logs = gammaln(n + 1) + (xlogy(counts, law) - gammaln(counts + 1)).sum(axis=1)
    # Axis 0 of counts, logs and owners: all count vectors. The places of their letters come from
    # the histogram that they sort to, and from the counts.
    rows, inverse = np.unique(-np.sort(-counts, axis=1), axis=0, return_inverse=True)
    owners = np.array([table.index(row) for row in rows])[inverse.reshape(-1)]
    where = np.zeros((table.size, n + 1), dtype=np.int64)
    where[table.owner, table.count] = np.arange(table.places)
    chances = np.exp(logs)
    chances /= chances.sum()
    sums = [np.bincount(where[owners, c], chances, table.places) for c in counts.T]
    return np.array(sums, dtype=float)


class SamplerProgram:
    """What all objectives share: K is a law for each histogram, and private along all edges."""

    def __init__(self, setting: RooSetting, table: Histograms, *, few: bool = False) -> None:
        """Take all edges as rows; or those of letters that gain a record, the others as asked for.

        Args:
            setting: n, k and epsilon.
            table: the histograms.
            few: whether the others are a family, "others", of which rows are added where broken.
        """
        self.setting, self.histograms = setting, table
        self.positive = np.flatnonzero(table.count > 0)
        gains = np.diff(table.count[table.edges], axis=1)[:, 0] > 0
        self.few, self.written = few, gains if few else np.ones_like(gains)

    def priced(self, solution: Solution) -> Solution:
        """Return a solution over few edges with a multiplier for every edge, as of all rows."""
        table, edges = self.histograms, self.histograms.edges
        duals = dict(solution.duals)
        prices = np.zeros(len(edges))
        prices[self.written] = duals["privacy"]
        rows = solution.cuts["others"].matrix
        # Of each row, the places with e^-epsilon and with -1: those of the edge's end and start.
        places = [rows.indices[sign * rows.data > 0].astype(np.int64) for sign in (1, -1)]
        codes = edges[:, 0] * table.places + edges[:, 1]
        prices[np.searchsorted(codes, places[1] * table.places + places[0])] = duals.pop("others")
        duals["privacy"] = frozen(prices)
        return replace(solution, duals=duals, cuts={}, basis=None)

    def worst_case(self) -> Problem:
        """Minimise the largest TV(K(x), empirical(x)) over all data sets: variable "worst"."""
        problem = self._problem()
        problem.add_variables("worst", 1, lower=0.0, upper=1.0)
        distances, size = self._distances(), self.histograms.size
        minus = -np.ones((size, 1))
        problem.add_rows("distance", {"shortfall": distances, "worst": minus}, upper=0.0)
        problem.minimise({"worst": 1.0})
        self._inside(problem, {"worst": 1.0})
        return problem

    def mean(self, coefficients: Vector) -> Problem:
        """Minimise the mean of TV(K(x), empirical(x)), with a coefficient for each histogram."""
        problem = self._problem()
        problem.minimise(self.mean_costs(coefficients))
        self._inside(problem, {})
        return problem

    def mean_costs(self, coefficients: Vector) -> dict[str, Vector]:
        """Return the mean of TV(K(x), empirical(x)) as an objective."""
        return {"shortfall": self._distances().T @ coefficients}

    def fixed(self, chances: Matrix, law: Vector) -> Problem:
        """Minimise TV(mean of K(x), P): the sum of "below", P(y) less the chance of y, or 0."""
        problem = self._problem()
        problem.add_variables("below", law.size, lower=0.0, upper=1.0)
        sides = {"kernel": chances, "below": sp.eye_array(law.size)}
        problem.add_rows("output", sides, lower=law)
        problem.minimise({"below": 1.0})
        self._inside(problem, {"below": 1.0})
        return problem

    def _inside(self, problem: Problem, others: dict[str, float]) -> None:
        """Tell of the uniform letter, which is private with room."""
        even = 1.0 / self.setting.letters
        short = self.histograms.count[self.positive] / self.setting.records - even
        point = {"kernel": even, "shortfall": np.maximum(short, 0.0), **others}
        problem.set_inside(point, slack=-even * math.expm1(-self.setting.epsilon))

    def _problem(self) -> Problem:
        """Return the constraints; "shortfall" is at least c / n - K where c > 0."""
        table, n = self.histograms, self.setting.records
        problem = Problem("optimal sampler of one letter")
        problem.add_variables("kernel", table.places, lower=0.0, upper=1.0)
        problem.add_variables("shortfall", self.positive.size, lower=0.0, upper=1.0)
        problem.add_rows("sums", {"kernel": self._sums()}, lower=1.0, upper=1.0)
        edges = table.edges
        problem.add_rows("privacy", {"kernel": self._ratios(edges[self.written])}, upper=0.0)
        if self.few:
            problem.add_family("others", self._broken, over="kernel")
        chosen = sp.eye_array(table.places, format="csr")[self.positive]
        sides = {"kernel": chosen, "shortfall": sp.eye_array(self.positive.size)}
        problem.add_rows("shortfalls", sides, lower=table.count[self.positive] / n)
        return problem

    def _sums(self) -> sp.csr_array:
        table = self.histograms
        # Row: a histogram; column: one of its places.
        owned = (table.owner, np.arange(table.places))
        return sp.csr_array(
            (table.multiplicity.astype(float), owned), shape=(table.size, table.places)
        )

    def _distances(self) -> sp.csr_array:
        """Return the matrix that takes the shortfalls to TV(K, empirical) of each histogram."""
        return sp.csr_array(self._sums()[:, self.positive])

    def _ratios(self, edges: npt.NDArray[np.int64]) -> sp.csr_array:
        """Return e^-epsilon K' - K for each edge; its size stays in range for large epsilon."""
        count = len(edges)
        # Row i, for the edge (a, b): e^-epsilon in column b, -1 in column a.
        data = np.repeat([math.exp(-self.setting.epsilon), -1.0], count)
        rows = np.tile(np.arange(count), 2)
        columns = np.concatenate([edges[:, 1], edges[:, 0]])
        return sp.csr_array((data, (rows, columns)), shape=(count, self.histograms.places))

    def _broken(self, kernel: Vector) -> Separation:
        """Return the edges that are not written and that a kernel breaks."""
        edges = self.histograms.edges[~self.written]
        above = math.exp(-self.setting.epsilon) * kernel[edges[:, 1]] - kernel[edges[:, 0]]
        rows = make_rows(self._ratios(edges[above > _BROKEN]), upper=0.0)
        return Separation(rows, float(np.max(above, initial=0.0)), len(edges))
