"""A private majority of private voters: the setting, its design, and the functions that make one.

What goes in is a `MajoritySetting`; its program stands in the program module, the proof of what
comes out in the proof module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, exact_text, float_down
from dpopt._progress import expect
from dpopt._types import Json, Numbers, Vector, frozen
from dpopt.ballots.votes import count_queries
from dpopt.lp import Backend, Solution, solve
from dpopt.majority.least import least_of_gamma
from dpopt.majority.objectives import (
    ErrorEstimate,
    WorstCase,
    expected_error,
    expected_error_weights,
    sampled_error,
    surrogate_weights,
)
from dpopt.majority.priors import (
    DEFAULT_PRIOR,
    Prior,
    RecordedPrior,
    UniformPrior,
    as_prior,
    recorded_prior,
)
from dpopt.majority.program import (
    CornerOracle,
    add_worst_case,
    problem_over,
    proving_corners,
    worst_case_problem,
)
from dpopt.majority.proof import GammaProver, dominating, gamma_rounding
from dpopt.majority.regret import (
    HEDGED,
    Regret,
    Yardstick,
    hedged,
    is_recorded,
    linear_of,
    with_regrets,
)
from dpopt.majority.voters import (
    BITS,
    Units,
    Voters,
    check_gamma,
    full_gamma,
    odd,
    partly_priced,
    priceable,
    reduced_size,
    require_priceable,
    signed,
)
from dpopt.privacy import Problem
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.exact import Certificate
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.least import Least
from dpopt.privacy.release import Laws, system
from dpopt.shape import Design, Setting, made
from dpopt.shape import design as designed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBJECTIVES = ("expected-error", "surrogate", "worst-case", "least-regret")

_LARGEST_EXPONENT = 600.0
# HiGHS's dual tolerance is 1e-10 of the largest coefficient: smaller ones would be noise to it.
_VISIBLE = 1e-9
# What a solver leaves of noise in a gamma.
_NOISE = 1e-6
# Rows are divided by the budget: below this, rounding their coefficients shows in the optimum.
_LEAST_BUDGET = 1e-7
# Multisets a second, in all rounds of pricing and the proof together.
_SPEED = 5e6


@dataclass(frozen=True)
class MajoritySetting(Voters, Setting["MajorityDesign"]):
    """K voters, each (epsilon, mechanism_delta)-private, and the target (m epsilon, delta).

    With L ones among the K votes, DaRRM outputs the majority with probability gamma(L), else a
    fair coin (algorithm 1 of the paper). gamma(l) = gamma(K - l), so the variables are its upper
    half; with h = gamma above the middle and -gamma below, Pr[1 | L = l] = 1/2 + h(l) / 2, and

        maximise   sum_l c_l gamma(l),  l = (K + 1) / 2..K                      (equation 3)
        subject to E h(L) - e^(m epsilon) E' h(L) <= e^(m epsilon) - 1 + 2 delta    "corners"
                   for every corner (p_i, p'_i) of every voter i                (equation 2)
                   0 <= gamma <= 1

    with L the number of ones among voters who say 1 with p_i, under E', with p'_i. c comes from the
    objective. For "worst-case" a variable t takes its place:

        minimise   t
        subject to |error(p)| <= t  for every p that the prior allows           "worst case"

    and the rows above; among its optima the one of least expected error is taken, as far as a
    solver can tell them apart. For "least-regret" there are several priors j, each with the least
    expected error b_j that a private gamma has under it, from a program of its own, and the
    expected error c_j of a fair coin, gamma = 0:

        minimise   t
        subject to error_j(gamma) <= b_j + t c_j  for every prior j             "priors"

    and the rows above. The program's value is -t in both, so that larger is better.

    Coefficients below 1e-9 of the largest, which a solver does not see, are raised to that in the
    program. Where Delta > 0 and K is above 501 not all rows can be priced: the design is then
    unverified, has no certificate and refuses to release.

    Attributes:
        mechanisms: K, odd.
        epsilon: of each voter, above 0, in nats.
        allowance: m, real, in (0, K]: the majority may spend m epsilon.
        mechanism_delta: the paper's Delta, of each voter, in [0, 1).
        delta: of the majority, in [mechanism_delta, 1).
        objective: "expected-error" minimises E|error| under the prior, "surrogate" maximises the
            paper's equation 3, whose p is uniform on [0.5, 1] whatever the prior, "worst-case"
            minimises the largest error over all p that the prior allows, all in [0, 1] if none is
            given. "least-regret" minimises the largest loss against the best gamma of each of
            several priors, as a share of what a fair coin loses.
        prior: of the voters' p: uniform:LOW,HIGH[,LOW,HIGH], beta:A,B, either with common- before
            it (one p for all), or point:P[,P]. One p for all says that voters tend to agree;
            independent p's, that unanimous votes are rare. If not given common-uniform:0,1; of a
            worst case uniform:0,1, which allows all p.
        priors: of a least regret, at least two: their names with ; between them;
            uniform:0,1;common-uniform:0,1;common-uniform:0.8,1 if not given.
        coefficients: your own objective, to maximise instead: (K + 1) / 2 numbers.
    """

    kind: ClassVar[str] = "majority"

    mechanisms: int
    epsilon: float
    allowance: float
    mechanism_delta: float = 0.0
    delta: float = 0.0
    objective: Literal["expected-error", "surrogate", "worst-case", "least-regret"] = (
        "expected-error"
    )
    prior: Prior = DEFAULT_PRIOR
    priors: tuple[Prior, ...] | None = None
    coefficients: Numbers | None = None

    def __post_init__(self) -> None:
        k = odd(self.mechanisms)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        allowance = _checks.real("allowance", self.allowance, 0.0, k, open_lower=True)
        if max(allowance, 1.0) * epsilon > _LARGEST_EXPONENT:
            raise ParameterError(
                f"epsilon is {epsilon} and allowance {allowance}; "
                f"epsilon and their product must be at most {_LARGEST_EXPONENT:g}."
            )
        shift = _checks.real("mechanism_delta", self.mechanism_delta, 0.0, 1.0, open_upper=True)
        delta = _checks.real("delta", self.delta, 0.0, 1.0, open_upper=True)
        if shift > delta:
            raise ParameterError(
                f"mechanism_delta is {digits(shift)} and delta {digits(delta)}; "
                "mechanism_delta must not exceed delta."
            )
        objective = _checks.choice("objective", self.objective, OBJECTIVES)
        several = hedged(self.priors)
        if several is None and objective == "least-regret":
            several = HEDGED
        linear = _coefficients("coefficients", self.coefficients, k)
        prior = as_prior(self.prior)
        if prior is DEFAULT_PRIOR and objective == "worst-case":
            # Not given: what is meant is no belief at all, not that all p are equal.
            prior = UniformPrior()
        chosen = prior, several, linear
        values = (k, epsilon, allowance, shift, delta, objective, *chosen)
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    @classmethod
    def example(cls) -> Self:
        """Return five voters."""
        return cls(5, 0.5, 1.5)

    @classmethod
    def example_data(cls) -> list[int]:
        """Return five votes."""
        return [1, 1, 0, 1, 0]

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return votes of which some may have changed."""
        return [([1] * ones + [0] * (5 - ones), [0] * 5) for ones in range(6)]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the setting of a file's parameters; of samples, only the prior's name is there.

        A file that names no prior is of a time when it was uniform:0,1. One that names groups of
        voters, or a rational e^epsilon, is of a time when there were such; none were the rule.

        Raises:
            ParameterError: if one is missing, unknown or out of range.
        """
        read = {"prior": recorded_prior, "priors": _recorded_priors}
        if isinstance(values, Mapping):
            earlier = ("groups", "voter_ratio")
            values = {"prior": str(UniformPrior())} | {
                name: read[name](value) if name in read and value is not None else value
                for name, value in values.items()
                if name not in earlier or value
            }
        return super().from_dict(values)

    @property
    def maximises(self) -> bool:
        """Whether a larger value is better: of every objective."""
        return True

    @property
    def behind(self) -> tuple[Guarantee, int]:
        """(epsilon, Delta) of each voter, and K."""
        return Guarantee(self.epsilon, self.mechanism_delta), self.mechanisms

    @property
    def may_fail(self) -> bool:
        """Whether not all rows can be priced, so that a design stays unverified."""
        return not priceable(self)

    @cached_property
    def linear(self) -> Vector:
        """The coefficients c of gamma's upper half; of a worst case, those that choose among ties.

        Raises:
            ParameterError: for a prior that is of other voters, or whose samples are not here.
        """
        if self.coefficients is not None:
            return frozen(self.coefficients)
        if self.objective == "surrogate":
            return surrogate_weights(self.mechanisms).values
        return expected_error_weights(self.mechanisms, self.prior).values

    @property
    def _visible(self) -> Vector:
        """The coefficients as a solver sees them."""
        return self.linear if self.coefficients is not None else _seen(self.linear)

    @property
    def _over_worst_case(self) -> bool:
        return self.objective == "worst-case" and self.coefficients is None

    @property
    def hedges(self) -> bool:
        """Whether the regret under several priors is what is minimised."""
        return self.objective == "least-regret" and self.coefficients is None

    @cached_property
    def yardsticks(self) -> tuple[Yardstick, ...]:
        """What a gamma is measured against under each of several priors; none if it is not.

        The programs of single priors are solved by HiGHS, whatever solves the last one: they are
        part of what the value means.

        Raises:
            ParameterError: for a prior of other voters, whose samples are not here, or under which
                a fair coin has no expected error.
            SolverError: if the solver found no answer.
        """
        return self._measured(None)

    def _measured(self, time_limit: float | None) -> tuple[Yardstick, ...]:
        found = []
        for prior in self.priors or () if self.hedges else ():
            linear = linear_of(self.mechanisms, prior)
            problem = problem_over(CornerOracle(self, partial=True), _seen(linear))
            found.append(Yardstick.of(prior, linear, solve(problem, time_limit=time_limit).bound))
        return tuple(found)

    def problem(self) -> Problem:
        """Return the program: variable "gamma", family "corners"; of a worst case one more each.

        That of a least regret has the best errors of its priors in it, which are solved for first.

        Raises:
            ParameterError: if there are too many voters to price even part of the rows, or the
                target is below what double precision can tell.
        """
        if self.budget < _LEAST_BUDGET:
            raise ParameterError(
                f"allowance * epsilon is {digits(self.guarantee.epsilon)}; a program in double "
                f"precision needs e^(m epsilon) - 1 + 2 delta of at least {_LEAST_BUDGET:g}."
            )
        if self.hedges:
            problem = problem_over(CornerOracle(self, partial=True), np.zeros(self.middle))
            seen = tuple(_seen(known.linear) for known in self.yardsticks)
            return with_regrets(problem, self.yardsticks, seen)
        if not self._over_worst_case:
            return problem_over(CornerOracle(self, partial=True), self._visible)
        problem = worst_case_problem(self, self.prior)
        problem.maximise({"worst": -1.0})
        problem.then_maximise({"gamma": self._visible})
        return problem

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program; of a least regret, those of its priors before it."""
        if self.hedges and "yardsticks" not in vars(self):
            vars(self)["yardsticks"] = self._measured(time_limit)
        if priceable(self):
            # Without Delta the walk is short, and each of its steps a row of K numbers.
            each = self.mechanisms if len(self.axes) == 1 else 1
            expect("design of the noise function", reduced_size(self) * each, _SPEED)
        return super().solved(backend, time_limit, stop_at_gap)

    def point(self, solution: Solution) -> Vector:
        """Return gamma's upper half."""
        return solution["gamma"]

    def as_point(self, values: Vector) -> Vector:
        """Return the upper half of a gamma on 0..K, or on its upper half, without 1e-6 of noise."""
        if values.shape == (self.mechanisms + 1,):
            even = 0.5 * (values + values[::-1])
            values = even if np.all(np.abs(values - even) <= _NOISE) else values
        inside = np.clip(values, 0.0, 1.0)
        values = inside if np.all(np.abs(values - inside) <= _NOISE) else values
        return check_gamma(self, values)[self.middle :]

    def units(self, point: Vector) -> Units:
        """Return a gamma as integers, shrunk until it is private.

        Rounded down only, where not all rows can be priced.
        """
        weights = _quantised(point)
        if not priceable(self):
            return weights
        return GammaProver(self).shrink(weights)[0]

    def proof_rows(self, units: Units) -> list[tuple[object, ...]]:
        """Return the rows that count; see `dpopt.majority.program.proving_corners`."""
        gamma = _floats(units)[self.middle :]
        found, best = proving_corners(self, gamma, self._ask)
        if self._over_worst_case:
            errors = WorstCase(self.mechanisms, self.prior)
            found += dict.fromkeys(errors.tight(best) + errors.tight(gamma))
        return found + [("prior", place) for place, _ in enumerate(self._alone)]

    def _ask(self, problem: Problem) -> None:
        """Add the objective, and the rows that it has, to a program of gamma alone."""
        if self._over_worst_case:
            add_worst_case(problem, WorstCase(self.mechanisms, self.prior))
        elif self.hedges:
            with_regrets(problem, self.yardsticks, tuple(known.linear for known in self.yardsticks))
        else:
            problem.maximise({"gamma": self.linear})

    @property
    def _alone(self) -> tuple[MajoritySetting, ...]:
        """The settings whose best errors a least regret is measured against."""
        told: Any = {"objective": "expected-error", "priors": None}
        priors = self.priors or () if self.hedges else ()
        return tuple(replace(self, prior=prior, **told) for prior in priors)

    def proof_size(self, units: Units) -> int:
        """Return about how many entries of rows a proof looks at, and those that are priced."""
        del units
        programs = 1 + len(self._alone)
        return programs * (4 * self.middle**2 + reduced_size(self) // 8)

    def proof_data(self, units: Units) -> Json:
        """Return the coefficients of an expected error where they are no rationals.

        Of a least regret, those of each prior, and what proves its best error.
        """
        del units
        if self.hedges:
            return {"priors": self._proofs_alone}
        told = self.objective == "expected-error" and self.coefficients is None
        if not told or str(self.prior).startswith("common-uniform:"):
            return {}
        return {} if isinstance(self.prior, RecordedPrior) else {"coefficients": [*self.linear]}

    @cached_property
    def _proofs_alone(self) -> list[Json]:
        """Of each prior of a least regret: its best error, and what proves that none is below."""
        found = []
        for setting, known in zip(self._alone, self.yardsticks, strict=True):
            alone = designed(setting)
            proof, data = alone.optimality, setting.proof_data(alone.units)
            if proof is None:
                raise ParameterError(
                    f"prior is {known.prior}; there is no proof of its best error."
                )
            weights = [Fraction(c) for c in known.linear.tolist()]
            shown_best = sum(weights, Fraction(0)) - proof.bound
            lines = [[*name, exact_text(y)] for name, y in proof.multipliers]
            best = min(known.best, float_down(shown_best))
            found.append(data | {"best": best, "multipliers": lines})
        return found

    def value(self, units: Units) -> float:
        """Return sum_l c_l gamma(l), or minus the largest error or regret.

        nan if the samples of a prior are not here: they are not saved with a design, only their
        name is.
        """
        upper = _floats(units)[self.middle :]
        if self.hedges:
            regrets = self.regrets(units)
            return -max(known.regret for known in regrets) if regrets else math.nan
        needs_prior = self.coefficients is None and self.objective != "surrogate"
        if needs_prior and isinstance(self.prior, RecordedPrior):
            return math.nan
        if self._over_worst_case:
            return -WorstCase(self.mechanisms, self.prior).value(upper)
        return float(self.linear @ upper)

    def regrets(self, units: Units) -> tuple[Regret, ...]:
        """Return what a gamma loses under each of several priors.

        None if it is not a least regret that is asked for, or the samples of a prior are not here.
        """
        if not self.hedges or is_recorded(self.priors or ()):
            return ()
        upper = _floats(units)[self.middle :]
        return tuple(known.regret(upper) for known in self.yardsticks)

    def prove(self, units: Units) -> Certificate:
        """Return the exact proof of gamma's integers.

        Raises:
            NotPrivateError: naming the voters whose constraint fails; or that not all were checked.
        """
        partly = partly_priced(self)
        if partly is not None:
            raise NotPrivateError(
                f"gamma is unverified: only {partly[1]:,} of {reduced_size(self):,} constraints "
                "were priced."
            )
        return GammaProver(self).certify(units)

    def read(self, plain: object) -> Units:
        """Return the integers of a file, of which nothing is proved yet.

        Raises:
            ParameterError: if they are malformed, or too many constraints to be proved.
        """
        require_priceable(self)
        return super().read(plain)

    def law(self, units: Units, data: npt.ArrayLike) -> Sequence[int]:
        """Return the law of the label for the votes of one query, over 2^63.

        Raises:
            ParameterError: for votes of another shape or other values.
        """
        ones, single = _count(self, data)
        if not single:
            raise ParameterError(
                f"votes has {ones.size} rows; a law is that of one query, shape "
                f"({self.mechanisms},)."
            )
        return _rows(units)[int(ones[0])]

    def spent(self, units: Units, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon of one query for a delta, or the other way round."""
        return least_of_gamma(self, units, epsilon, delta)

    def dominating(self, units: Units) -> DominatingPair:
        """Return the tight dominating pair of one query."""
        return dominating(self, units)

    def draw(self, axes: Axes, units: Units, label: str | None = None) -> None:
        """Draw gamma against the number of ones."""
        gamma = _floats(units)
        axes.plot(np.arange(gamma.size), gamma, marker="o", clip_on=False, label=label)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("number of ones among the votes, $l$")
        axes.set_ylabel(r"noise function, $\gamma(l)$")
        axes.set_ylim(-0.03, 1.03)

    def columns(self, units: Units) -> Mapping[str, Sequence[Any]]:
        """Return l and gamma(l), l = 0..K."""
        gamma = _floats(units)
        return {"l": list(range(gamma.size)), "gamma": gamma.tolist()}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MajorityDesign(Design):
    """A noise function gamma for the private majority of K private voters.

    `dpopt.shape.Design` says what every design has. ``value`` is sum_l c_l gamma(l), or minus the
    largest error or regret; ``bound`` is up to the rounding of the rows, about
    1e-16 / (e^(m epsilon) - 1 + 2 delta).

    Attributes:
        setting: the voters, the target guarantee and the objective.
        units: gamma's upper half as integers over 2^62, l = (K + 1) / 2..K: what is certified, and
            what `release` draws from.
        factor: by which `assess` shrank a given gamma; None for a design.
    """

    setting: MajoritySetting
    units: Units
    factor: float | None = None

    @property
    def weights(self) -> Units:
        """The units, under their older name."""
        return self.units

    @cached_property
    def gamma(self) -> Vector:
        """Gamma as floats on 0..K, shape (K + 1,), read-only."""
        return _floats(self.units)

    @property
    def objective(self) -> str:
        """One of `OBJECTIVES`, "weights" for coefficients of one's own, "given" if not designed."""
        if self.bound is None:
            return "given"
        return self.setting.objective if self.setting.coefficients is None else "weights"

    @property
    def prior(self) -> Prior:
        """The prior that `expected_error` refers to."""
        return self.setting.prior

    @cached_property
    def regrets(self) -> tuple[Regret, ...]:
        """Under each prior of a least regret, what gamma loses; none for other objectives.

        None either where samples of a prior were not saved with the design.
        """
        return self.setting.regrets(self.units)

    @property
    def priced(self) -> int | None:
        """How many multisets were priced where not all could be; None if all were."""
        partly = partly_priced(self.setting)
        return None if partly is None else partly[1]

    @cached_property
    def excess(self) -> float:
        """Largest Pr[1 | p] - e^(m epsilon) Pr[1 | p'] - delta, exactly; 0 if unverified."""
        if self.certificate is not None:
            return float(-self.certificate.slack)
        try:
            self._prove()
        except NotPrivateError as error:
            return error.excess
        return 0.0

    @cached_property
    def shrink(self) -> float:
        """The repair's factor: gamma is the point times this, rounded down to 2^-62.

        nan for the design of a file, in which the point is not.
        """
        if self.factor is not None:
            return self.factor
        if self.solution is None:
            return math.nan
        if self.priced is not None:
            return 1.0
        point = _quantised(self.setting.point(self.solution))
        return float(GammaProver(self.setting).shrink(point)[1])

    @cached_property
    def _error(self) -> ErrorEstimate:
        if isinstance(self.prior, RecordedPrior):
            return ErrorEstimate(math.nan, math.nan, "samples that were not saved")
        return expected_error(self.gamma, self.prior)

    @property
    def expected_error(self) -> float:
        """E|error| under the prior; nan where its samples were not saved with the design."""
        return self._error.value

    @property
    def expected_error_standard_error(self) -> float:
        """Of the expected error, if it comes from samples; else 0."""
        return self._error.standard_error

    @property
    def expected_error_method(self) -> str:
        """How it was computed: "closed form", "quadrature", or from which samples."""
        return self._error.method

    @property
    def verdict(self) -> str:
        """What is known of its privacy: "private", "not private", "not proved" or "unverified".

        "not proved" if it misses by no more than the rounding of gamma to doubles explains, so that
        the gamma that was meant may be private; `assess` with repair=True gives one that is.
        "unverified" if not all constraints were priced.
        """
        if self.private:
            return "private"
        if self.priced is not None:
            return "unverified"
        return "not proved" if self.excess <= gamma_rounding(self.setting) else "not private"

    @property
    def worst_violation(self) -> float | None:
        """By how much the worst constraint is broken, in probability; None if unverified."""
        if self.private:
            return 0.0
        return None if self.priced is not None else max(self.excess, 0.0)

    def sampled_error(self, rng: np.random.Generator, draws: int = 10_000) -> tuple[float, float]:
        """Return mean and standard error of the error over p drawn from the prior."""
        return sampled_error(self.setting, self.gamma, self.prior, rng, draws)

    def asked(self, data: Any = None) -> int:  # noqa: ANN401
        """Return the number of queries, each of which spends the whole guarantee; see `release`."""
        self.require_private()
        return _count(self.setting, data)[0].size

    def release(self, data: Any = None) -> npt.NDArray[np.int64] | int:  # noqa: ANN401
        """Return the private majority of votes, with the operating system's randomness.

        Each row of votes is one query and spends the whole guarantee once. Pr[output 1] is
        exactly (2^62 + h) / 2^63, with h = units above the middle and -units below. No seed;
        Python is not constant-time, and timing is outside the guarantee.

        Args:
            data: votes, zeros and ones, shape (K,) for one query or (queries, K).

        Returns:
            0 or 1 for one query; an array of them, shape (queries,), for several.

        Raises:
            ParameterError: for another shape or other values. A refusal for a vote's value tells of
                the data and is not covered by the guarantee: make a 0 or 1 of each vote before.
            NotPrivateError: if gamma has no certificate; it names the voters.
        """
        self.require_private()
        ones, single = _count(self.setting, data)
        drawn = self._laws.draw(ones, system)
        return int(drawn[0]) if single else drawn

    def simulate(
        self,
        data: Any,  # noqa: ANN401
        rng: np.random.Generator,
    ) -> npt.NDArray[np.int64] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        _checks.instance("rng", rng, np.random.Generator)
        ones, single = _count(self.setting, data)
        p = 0.5 + 0.5 * signed(self.gamma)[ones]
        drawn = (rng.random(p.size) < p).astype(np.int64)
        return int(drawn[0]) if single else drawn

    @cached_property
    def _laws(self) -> Laws:
        return Laws(_rows(self.units))

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {
            "mechanisms": self.setting.mechanisms,
            "guarantee": self.guarantee,
            "verdict": self.verdict,
            "objective": self.objective,
            "expected_error": self.expected_error,
        }

    def details(self) -> Json:
        """Return a line for each prior of a least regret."""
        return {
            f"under {known.prior}": f"error {known.error:.6g}, best {known.best:.6g}, "
            f"coin {known.coin:.6g}, regret {known.regret:.6g}"
            for known in self.regrets
        }

    def facts(self) -> Json:
        """Return gamma, its expected error, and by how many constraints it was judged."""
        solved, proof = self.solution, self.certificate
        return {
            "gamma": self.gamma.tolist(),
            "bits": BITS,
            "objective": self.objective,
            "prior": str(self.prior),
            "expected_error": _known(self.expected_error),
            "expected_error_standard_error": _known(self.expected_error_standard_error),
            "expected_error_method": self.expected_error_method,
            "regrets": [known.to_dict() for known in self.regrets],
            "worst_violation": self.worst_violation,
            "constraints_checked": proof.constraints if proof else self.priced,
            "rows_used": None if solved is None else solved.rows_used,
            "rounds": None if solved is None else solved.rounds,
        }

    def to_dict(self) -> Json:
        """Return the design as plain values, ready for JSON; integers as text."""
        plain = super().to_dict()
        known = None if self.gap is None else _known(self.gap)
        return {**plain, "value": _known(self.value), "gap": known}


MajoritySetting.answer = MajorityDesign


def design(
    mechanisms: int,
    epsilon: float,
    allowance: float,
    *,
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
    objective: str = "expected-error",
    prior: Prior | str | None = None,
    priors: Sequence[Prior | str] | str | None = None,
    weights: npt.ArrayLike | None = None,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
) -> MajorityDesign:
    """Return the best noise function for K voters, solved, repaired, quantised and certified.

    The parameters are the fields of the setting, see `MajoritySetting`; ``weights`` are its
    coefficients. For backend, stop_at_gap and time_limit, which is that of each solve, see
    `dpopt.design`.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.

    Example:
        >>> from dpopt import majority
        >>> best = majority.design(11, 0.1, 3)
        >>> best.verdict, round(best.expected_error, 4)
        ('private', 0.0256)
    """
    return design_for(
        MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta),
        objective=_checks.choice("objective", objective, OBJECTIVES),
        prior=prior,
        priors=priors,
        weights=weights,
        backend=backend,
        time_limit=time_limit,
        stop_at_gap=stop_at_gap,
    )


def corners(
    mechanisms: int,
    epsilon: float,
    allowance: float,
    *,
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
) -> CornerOracle:
    """Return the privacy rows of gamma as an oracle, for a linear program of your own.

    It sees gamma's upper half, (K + 1) / 2 numbers, which the program must keep in [0, 1]; give it
    to `dpopt.Problem.add_family`, or to `dpopt.solve` with a variable of cvxpy. The parameters are
    the fields of the setting, see `MajoritySetting`.

    Raises:
        ParameterError: for a parameter out of range, or a K too large for every row to be priced.

    Example:
        >>> import cvxpy as cp
        >>> from dpopt import majority, solve
        >>> gamma = cp.Variable(6, name="gamma", bounds=[0, 1])
        >>> best = cp.Problem(cp.Maximize(cp.sum(gamma)))
        >>> families = {"corners": (gamma, majority.corners(11, 0.1, 3))}
        >>> round(solve(best, families=families).objective, 4)
        5.5872
    """
    return CornerOracle(MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta))


def design_for(
    setting: MajoritySetting,
    *,
    objective: str | None = None,
    prior: Prior | str | None = None,
    priors: Sequence[Prior | str] | str | None = None,
    weights: npt.ArrayLike | None = None,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
) -> MajorityDesign:
    """Return the best noise function of a setting.

    What is given takes the place of the setting's own; see `design`.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.
    """
    _checks.instance("setting", setting, MajoritySetting)
    given = {
        "objective": objective,
        "prior": prior,
        "priors": priors,
        "coefficients": _coefficients("weights", weights, setting.mechanisms),
    }
    changed = {name: value for name, value in given.items() if value is not None}
    setting = replace(setting, **changed) if changed else setting
    return designed(setting, backend=backend, time_limit=time_limit, stop_at_gap=stop_at_gap)


def assess(
    setting: MajoritySetting,
    gamma: npt.ArrayLike,
    *,
    prior: Prior | str | None = None,
    repair: bool = False,
) -> MajorityDesign:
    """Return any noise function as a design: a baseline, or the point of your own program.

    gamma is rounded down to a multiple of 2^-62 and certified; if that fails, the design has no
    certificate and refuses to release. Its verdict is then "not private", or "not proved" if the
    rounding of gamma explains the failure: the gamma of a design, as floats, may be a unit above
    the integers that were certified, and so may be a formula's. Keep the design, or repair.

    Args:
        setting: the voters and the target.
        gamma: on 0..K, or its upper half.
        prior: for the expected error; that of the setting if None.
        repair: shrink gamma to its largest private multiple first, if it is not private; see
            `GammaProver.shrink`.

    Raises:
        ParameterError: if gamma has another shape, or leaves [0, 1] by more than a rounding, 1e-15.

    Example:
        >>> from dpopt import majority
        >>> setting = majority.MajoritySetting(mechanisms=3, epsilon=0.1, allowance=1)
        >>> majority.assess(setting, [1.0, 1.0]).verdict  # the majority itself
        'not private'
        >>> majority.assess(setting, [1.0, 1.0], repair=True).verdict
        'private'
    """
    repair = _checks.flag("repair", repair)
    _checks.instance("setting", setting, MajoritySetting)
    setting = setting if prior is None else replace(setting, prior=as_prior(prior))
    require_priceable(setting)
    prover = GammaProver(setting)
    units, factor = _quantised(check_gamma(setting, gamma)[setting.middle :]), Fraction(1)
    if repair:
        units, factor = prover.shrink(units)
    proof, excess = None, 0.0
    try:
        proof = prover.certify(units)
        excess = float(-proof.slack)
    except NotPrivateError as error:
        if repair:
            raise
        excess = error.excess
    assessed = made(setting, units, float_bound=None, certificate=proof, factor=float(factor))
    # What the failed proof tells need not be proved again.
    vars(assessed)["excess"] = excess
    return assessed


def _coefficients(name: str, values: object, mechanisms: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    linear, middle = _checks.floats(name, values), (mechanisms + 1) // 2
    if linear.shape != (middle,) or not np.all(np.isfinite(linear)):
        raise ParameterError(
            f"{name} has shape {np.shape(linear)}; it must be {middle} finite numbers, "
            "one for each count l = (K + 1) / 2..K."
        )
    return tuple(linear.tolist())


def _seen(linear: Vector) -> Vector:
    """Return weights as a solver sees them: those below would leave gamma undefined there."""
    return np.maximum(linear, _VISIBLE * float(np.max(np.abs(linear))))


def _recorded_priors(names: object) -> object:
    return [recorded_prior(name) for name in names] if isinstance(names, list) else names


def _quantised(upper: Vector) -> Units:
    """Return gamma's upper half over 2^BITS, rounded down."""
    return tuple(int(value * (1 << BITS)) for value in upper.tolist())


def _floats(units: Units) -> Vector:
    """Return gamma on 0..K from its upper half over 2^BITS, read-only."""
    return frozen(full_gamma([weight / (1 << BITS) for weight in units]))


def _rows(units: Units) -> list[tuple[int, int]]:
    """Return the weights of the outputs 0 and 1 for each number of ones, over 2^(BITS + 1)."""
    half = 1 << BITS
    lower = [(half + w, half - w) for w in reversed(units)]
    return lower + [(half - w, half + w) for w in units]


def _count(setting: MajoritySetting, votes: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], bool]:
    """Return the number of ones of each query, and whether the votes were those of one."""
    counts, single = count_queries(votes, setting.mechanisms, 2)
    return counts[:, 1], single


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
