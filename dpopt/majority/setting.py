"""A private majority of private voters: the setting, and the functions that make designs of it.

What goes in is a `Majority`; its program stands in the program module, the proof of what
comes out in the judge module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, exact_text, float_down
from dpopt._progress import expect
from dpopt._types import Json, Numbers, Vector, frozen
from dpopt.lp import Backend, Solution, solve
from dpopt.majority.judge import FEW_OPEN, certify
from dpopt.majority.least import dominating, least_of_gamma
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
    PriorLike,
    RecordedPrior,
    UniformPrior,
    as_prior,
)
from dpopt.majority.program import add_worst_case, gamma_problem, proving_corners
from dpopt.majority.regret import HEDGED, Regret, Yardstick, hedged, linear_of, with_regrets
from dpopt.majority.voters import (
    Voters,
    check_gamma,
    full_gamma,
    gamma_of,
    odd,
    reduced_size,
    table_of,
)
from dpopt.privacy import Problem
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.exact import Certificate
from dpopt.privacy.exponential import exp_lower
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.least import Least
from dpopt.shape import Design, Setting, made
from dpopt.shape import design as designed
from dpopt.table import Table, repair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.verify import Name

OBJECTIVES = ("mean", "surrogate", "worst-case", "least-regret")

_LARGEST_EXPONENT = 600.0
# So many voters, without Delta and with it, have their corners gone through in minutes.
_MOST, _MOST_SHIFTED = 4001, 501
# HiGHS's dual tolerance is 1e-10 of the largest coefficient: smaller ones would be noise to it.
_VISIBLE = 1e-9
# What a solver leaves of noise in a gamma.
_NOISE = 1e-6
# Rows are divided by the budget: below this, rounding their coefficients shows in the optimum.
_LEAST_BUDGET = 1e-7
# Multisets a second, in all rounds of pricing and the proof together.
_SPEED = 5e6


@dataclass(frozen=True)
class Majority(Voters, Setting):
    """The best private majority vote of K voters who are private themselves (DaRRM).

    With L ones among the K votes, DaRRM outputs the majority with probability gamma(L), else a
    fair coin (algorithm 1 of the paper). gamma(l) = gamma(K - l), so the variables are its upper
    half; with h = gamma above the middle and -gamma below, Pr[1 | L = l] = 1/2 + h(l) / 2, and

        maximise   sum_l c_l gamma(l),  l = (K + 1) / 2..K                      (equation 3)
        subject to E h(L) - e^(m epsilon) E' h(L) <= e^(m epsilon) - 1 + 2 delta    "corners"
                   for every corner (p_i, p'_i) of every voter i                (equation 2)
                   0 <= gamma <= 1; if contrary, -1 <= gamma <= 1

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
    program.

    The table of a design holds (1 + gamma(l)) / 2 and (1 - gamma(l)) / 2, the probabilities of the
    majority's answer and of the other one, for l = (K + 1) / 2..K. Its report: ``gamma`` on 0..K;
    ``expected_error`` E|error| under the prior, with ``expected_error_standard_error``;
    ``sampled_error(rng, draws)`` mean and standard error over p drawn from the prior; ``regrets``
    under each of several priors.

    Attributes:
        voters: K, odd; at most 4,001, and 501 for voter_delta above 0.
        epsilon: of each voter, above 0, in nats.
        allowance: m, real, in (0, K]: the majority may spend m epsilon.
        voter_delta: the paper's Delta, of each voter, in [0, 1).
        delta: of the majority, in [voter_delta, 1).
        objective: "mean" minimises E|error| under the prior, "surrogate" maximises the
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
        contrary: whether the minority's answer may be the likelier one, which the paper's
            gamma >= 0 forbids; it errs less where m / K is small, and is as private.

    Example:
        >>> import dpopt
        >>> best = dpopt.design(dpopt.Majority(11, 0.1, 3))
        >>> best.verdict, round(best.expected_error, 4)
        ('private', 0.0256)
    """

    kind: ClassVar[str] = "majority"
    summary: ClassVar[tuple[str, ...]] = ("expected_error",)

    voters: int
    epsilon: float
    allowance: float
    voter_delta: float = 0.0
    delta: float = 0.0
    objective: Literal["mean", "surrogate", "worst-case", "least-regret"] = "mean"
    prior: PriorLike = DEFAULT_PRIOR
    priors: Sequence[PriorLike] | str | None = None
    coefficients: Numbers | None = None
    contrary: bool = False

    def __post_init__(self) -> None:
        k = odd(self.voters)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        allowance = _checks.real("allowance", self.allowance, 0.0, k, open_lower=True)
        if max(allowance, 1.0) * epsilon > _LARGEST_EXPONENT:
            raise ParameterError(
                f"epsilon is {epsilon} and allowance {allowance}; "
                f"epsilon and their product must be at most {_LARGEST_EXPONENT:g}."
            )
        shift = _checks.real("voter_delta", self.voter_delta, 0.0, 1.0, open_upper=True)
        delta = _checks.real("delta", self.delta, 0.0, 1.0, open_upper=True)
        if shift > delta:
            raise ParameterError(
                f"voter_delta is {digits(shift)} and delta {digits(delta)}; "
                "voter_delta must not exceed delta."
            )
        if k > (_MOST_SHIFTED if shift else _MOST):
            raise ParameterError(
                f"voters is {k}; every constraint can be decided up to {_MOST} voters if "
                f"voter_delta is 0, else up to {_MOST_SHIFTED}."
            )
        objective = _checks.choice("objective", self.objective, OBJECTIVES)
        several = hedged(self.priors)
        if several is None and objective == "least-regret":
            several = HEDGED
        linear = _coefficients(self.coefficients, k)
        prior = as_prior(self.prior)
        if prior is DEFAULT_PRIOR and objective == "worst-case":
            # Not given: what is meant is no belief at all, not that all p are equal.
            prior = UniformPrior()
        self.keep(
            voters=k,
            epsilon=epsilon,
            allowance=allowance,
            voter_delta=shift,
            delta=delta,
            objective=objective,
            prior=prior,
            priors=several,
            coefficients=linear,
            contrary=_checks.flag("contrary", self.contrary),
        )

    @property
    def belief(self) -> Prior:
        """The prior of the voters' p."""
        return as_prior(self.prior)

    @property
    def beliefs(self) -> tuple[Prior, ...]:
        """The priors of a least regret; none if none are given."""
        return hedged(self.priors) or ()

    @property
    def bits(self) -> int:
        """Bits of the total of the table's weights."""
        return 63

    @classmethod
    def example(cls) -> Self:
        """Return five voters."""
        return cls(5, 0.5, 1.5)

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return votes of which some may have changed."""
        return [([1] * ones + [0] * (5 - ones), [0] * 5) for ones in range(6)]

    @property
    def maximises(self) -> bool:
        """Whether a larger value is better: of every objective."""
        return True

    @property
    def behind(self) -> tuple[Guarantee, int]:
        """(epsilon, Delta) of each voter, and K."""
        return Guarantee(self.epsilon, self.voter_delta), self.voters

    @cached_property
    def linear(self) -> Vector:
        """The coefficients c of gamma's upper half; of a worst case, those that choose among ties.

        Raises:
            ParameterError: for a prior that is of other voters, or whose samples are not here.
        """
        if self.coefficients is not None:
            return frozen(self.coefficients)
        if self.objective == "surrogate":
            return surrogate_weights(self.voters).values
        return expected_error_weights(self.voters, self.belief).values

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
        def yardstick(alone: Majority) -> Yardstick:
            linear = linear_of(self.voters, alone.belief)
            bound = solve(alone.problem(), time_limit=time_limit).bound
            return Yardstick.of(alone.belief, linear, bound)

        return tuple(map(yardstick, self._alone))

    def problem(self) -> Problem:
        """Return the program: variable "gamma", family "corners"; of a worst case one more each.

        That of a least regret has the best errors of its priors in it, which are solved for first.

        Raises:
            ParameterError: if the target is below what double precision can tell.
        """
        if self.budget < _LEAST_BUDGET:
            raise ParameterError(
                f"allowance * epsilon is {digits(self.guarantee.epsilon)}; a program in double "
                f"precision needs e^(m epsilon) - 1 + 2 delta of at least {_LEAST_BUDGET:g}."
            )
        problem = gamma_problem(self, np.zeros(self.middle))
        self._add_objective(problem, _seen)
        if self._over_worst_case:
            problem.then_maximise({"gamma": _seen(self.linear)})
        return problem

    def _add_objective(
        self, problem: Problem, seen: Callable[[Vector], Vector] = np.asarray
    ) -> None:
        """Add the objective, and the rows that it has, to a program of gamma alone."""
        if self._over_worst_case:
            add_worst_case(problem, WorstCase(self.voters, self.belief))
        elif self.hedges:
            with_regrets(problem, self.yardsticks, seen)
        else:
            problem.maximise({"gamma": self.linear if self.coefficients else seen(self.linear)})

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program; of a least regret, those of its priors before it."""
        if self.hedges and "yardsticks" not in vars(self):
            vars(self)["yardsticks"] = self._measured(time_limit)
        # Without Delta the multisets are few, and each is a row of K numbers.
        each = 1 if self.voter_delta else self.voters
        expect("design of the noise function", reduced_size(self) * each, _SPEED)
        return super().solved(backend, time_limit, stop_at_gap)

    def point(self, solution: Solution) -> Vector:
        """Return gamma's upper half."""
        return solution["gamma"]

    def as_point(self, values: Vector) -> Vector:
        """Return the upper half of a gamma on 0..K, or on its upper half, without 1e-6 of noise."""
        if values.shape == (self.voters + 1,):
            even = 0.5 * (values + values[::-1])
            values = even if np.all(np.abs(values - even) <= _NOISE) else values
        inside = np.clip(values, self.least, 1.0)
        values = inside if np.all(np.abs(values - inside) <= _NOISE) else values
        return check_gamma(self, values)[self.middle :]

    def table(self, point: Vector) -> Table:
        """Return gamma's upper half as a private table, mixed with a fair coin where it must be.

        A mixture keeps off what floats leave open, by 1e-12 or so: its proof takes no time.
        """
        upper = np.clip(point, self.least, 1.0)
        first, coin = (table_of(self, gamma, self.bits) for gamma in (upper, 0.0 * upper))
        quickly = partial(certify, self, self.to_dict(), most=FEW_OPEN)
        # Of a coin P = P' = 1/2 at all corners.
        grown = exp_lower(Fraction(self.allowance) * Fraction(self.epsilon))
        headroom = (grown - 1) / 2 + Fraction(self.delta)
        try:
            return repair(first, coin, quickly, self.bits, headroom)[0]
        except NotPrivateError:
            # The budget is less than floats may be off by.
            return repair(first, coin, self.judge, self.bits, headroom)[0]

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the exact proof of a table.

        Raises:
            NotPrivateError: naming the voters whose constraint fails.
            ParameterError: if it is no table of this setting.
        """
        return certify(self, self.to_dict(), table)

    def _proof_rows(self, table: Table) -> list[Name]:
        """Return the rows that count; see `dpopt.majority.program.proving_corners`."""
        gamma = gamma_of(table)
        found, best = proving_corners(self, gamma, self._add_objective)
        if self._over_worst_case:
            errors = WorstCase(self.voters, self.belief)
            found += dict.fromkeys(errors.tight(best) + errors.tight(gamma))
        return found + [("prior", place) for place, _ in enumerate(self._alone)]

    @property
    def _alone(self) -> tuple[Majority, ...]:
        """The settings whose best errors a least regret is measured against."""
        told: Any = {"objective": "mean", "priors": None}
        priors = self.beliefs if self.hedges else ()
        return tuple(replace(self, prior=prior, **told) for prior in priors)

    def _proof_size(self, table: Table) -> int:
        """Return about how many entries of rows a proof looks at, and those that are priced."""
        del table
        programs = 1 + len(self._alone)
        return programs * (4 * self.middle**2 + reduced_size(self) // 8)

    def _proof_data(self, table: Table) -> Json:
        """Return the coefficients of an expected error where they are no rationals.

        Of a least regret, those of each prior, and what proves its best error.
        """
        del table
        if self.hedges:
            return {"priors": self._proofs_alone}
        told = self.objective == "mean" and self.coefficients is None
        if not told or str(self.belief).startswith("common-uniform:"):
            return {}
        return {} if isinstance(self.belief, RecordedPrior) else {"coefficients": [*self.linear]}

    @cached_property
    def _proofs_alone(self) -> list[Json]:
        """Of each prior of a least regret: its best error, and what proves that none is below."""
        found = []
        for setting, known in zip(self._alone, self.yardsticks, strict=True):
            alone = designed(setting)
            proof, data = alone.optimality, setting._proof_data(alone.table)
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

    def value(self, table: Table) -> float:
        """Return sum_l c_l gamma(l), or minus the largest error or regret.

        nan if the samples of a prior are not here: they are not saved with a design, only their
        name is.
        """
        upper = gamma_of(table)
        if self.hedges:
            regrets = self.regrets(table)
            return -max(known.regret for known in regrets) if regrets else math.nan
        needs_prior = self.coefficients is None and self.objective != "surrogate"
        if needs_prior and isinstance(self.belief, RecordedPrior):
            return math.nan
        if self._over_worst_case:
            return -WorstCase(self.voters, self.belief).value(upper)
        return float(self.linear @ upper)

    def regrets(self, table: Table) -> tuple[Regret, ...]:
        """Return what a gamma loses under each of several priors.

        None if it is not a least regret that is asked for, or the samples of a prior are not here.
        """
        recorded = any(isinstance(prior, RecordedPrior) for prior in self.beliefs)
        if not self.hedges or recorded:
            return ()
        return tuple(known.regret(gamma_of(table)) for known in self.yardsticks)

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return gamma and its errors; see the class."""
        gamma = frozen(full_gamma(gamma_of(table)))

        @cache
        def error() -> ErrorEstimate:
            if isinstance(self.belief, RecordedPrior):
                return ErrorEstimate(math.nan, math.nan, "samples that were not saved")
            return expected_error(gamma, self.belief)

        return {
            "gamma": lambda: gamma,
            "expected_error": lambda: error().value,
            "expected_error_standard_error": lambda: error().standard_error,
            "sampled_error": lambda: partial(sampled_error, self, gamma, self.belief),
            "regrets": lambda: self.regrets(table),
        }

    def spent(self, table: Table, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon of one query for a delta, or the other way round."""
        return least_of_gamma(self, self.to_dict(), table, epsilon, delta)

    def dominating(self, table: Table) -> DominatingPair:
        """Return the tight dominating pair of one query."""
        return dominating(self, self.to_dict(), table)

    def draw(self, axes: Axes, table: Table, label: str | None = None) -> None:
        """Draw gamma against the number of ones."""
        gamma = full_gamma(gamma_of(table))
        axes.plot(np.arange(gamma.size), gamma, marker="o", clip_on=False, label=label)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("number of ones among the votes, $l$")
        axes.set_ylabel(r"noise function, $\gamma(l)$")
        axes.set_ylim(self.least - 0.03, 1.03)

    def columns(self, table: Table) -> Mapping[str, Sequence[Any]]:
        """Return l and gamma(l), l = 0..K."""
        gamma = full_gamma(gamma_of(table))
        return {"l": list(range(gamma.size)), "gamma": gamma.tolist()}


def assess(
    setting: Majority,
    gamma: npt.ArrayLike,
    *,
    prior: PriorLike | None = None,
    repair: bool = False,
) -> Design:
    """Return any noise function as a design: a baseline, or the point of your own program.

    gamma is rounded down to a multiple of 2^-62 and decided; if that fails, the design has no
    certificate and refuses to release. A failure may be due to the rounding of gamma alone: the
    gamma of a design, as floats, may be a unit above the integers that were proved, and so may be a
    formula's. Keep the design, or repair.

    Args:
        setting: the voters and the target.
        gamma: on 0..K, or its upper half.
        prior: for the expected error; that of the setting if None.
        repair: mix gamma with a fair coin, as little as makes it private.

    Raises:
        ParameterError: if gamma has another shape, or leaves [0, 1] by more than a rounding, 1e-15.

    Example:
        >>> from dpopt import majority
        >>> import dpopt
        >>> setting = dpopt.Majority(voters=3, epsilon=0.1, allowance=1)
        >>> majority.assess(setting, [1.0, 1.0]).verdict  # the majority itself
        'not private'
        >>> majority.assess(setting, [1.0, 1.0], repair=True).verdict
        'private'
    """
    repair = _checks.flag("repair", repair)
    _checks.instance("setting", setting, Majority)
    setting = setting if prior is None else replace(setting, prior=as_prior(prior))
    upper = check_gamma(setting, gamma)[setting.middle :]
    given = made(setting, table_of(setting, upper, setting.bits), strict=False, float_bound=None)
    if given.private or not repair:
        return given
    return made(setting, setting.table(upper), float_bound=None)


def _coefficients(values: object, voters: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    linear, middle = _checks.floats("coefficients", values), (voters + 1) // 2
    if linear.shape != (middle,) or not np.all(np.isfinite(linear)):
        raise ParameterError(
            f"coefficients has shape {np.shape(linear)}; it must be {middle} finite numbers, "
            "one for each count l = (K + 1) / 2..K."
        )
    return tuple(linear.tolist())


def _seen(linear: Vector) -> Vector:
    """Return weights as a solver sees them: those below would leave gamma undefined there."""
    return np.maximum(linear, _VISIBLE * float(np.max(np.abs(linear))))
