"""A private majority of private voters: the setting, and the assessment of any noise function.

The program is in `dpopt.majority.program`, the exact proof in `dpopt.majority.voters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, exact_text, float_down
from dpopt._progress import expect
from dpopt._types import Json, Numbers, Vector, frozen
from dpopt.lp import Backend, Solution, solve
from dpopt.majority.objectives import (
    ErrorEstimate,
    Regret,
    WorstCase,
    expected_error,
    expected_error_weights,
    surrogate_weights,
)
from dpopt.majority.priors import (
    DEFAULT_PRIOR,
    REGRET_PRIORS,
    CommonPrior,
    Prior,
    PriorLike,
    RecordedPrior,
    UniformPrior,
    parse_prior,
    several_priors,
)
from dpopt.majority.program import (
    FEW_OPEN,
    certify,
    dominating,
    least_of_gamma,
    problem_of_targets,
    proving_corners,
)
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
from dpopt.privacy.cost import DominatingPair, Least
from dpopt.privacy.exact import exp_lower
from dpopt.privacy.guarantee import Certificate
from dpopt.shape import Design, made
from dpopt.shape import design as designed
from dpopt.table import Table, repair
from dpopt.table.least import as_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.verify import Name


# Voters, for Delta = 0 and above, whose multisets are checked within minutes.
_MOST, _MOST_SHIFTED = 4001, 501


@dataclass(frozen=True)
class Majority(Voters):
    """The best private majority vote of K voters, each of whom is private (DaRRM).

    L of the K votes are ones. DaRRM (Data-dependent Randomized Response Majority; Jiang, Zhang,
    Joshi, 2024, algorithm 1) outputs the majority with probability gamma(L), and otherwise tosses
    a fair coin. By definition gamma(l) = gamma(K - l), so the variables of the program are gamma(l)
    for l = (K + 1) / 2, ..., K. Let h(l) = gamma(l) for l > K/2 and h(l) = -gamma(l) for l < K/2.
    Then Pr[1 | L = l] = (1 + h(l)) / 2. The output must be (m epsilon, delta)-DP, where m is the
    ``allowance``:

        maximise   sum_l c_l gamma(l)
        subject to E h(L) - e^(m epsilon) E' h(L) <= e^(m epsilon) - 1 + 2 delta    "corners"
                   for every choice of a corner (p_i, p'_i) for each voter i (their equation 2)
                   0 <= gamma <= 1   (-1 <= gamma <= 1 if ``contrary`` is True)

    The coefficients c_l follow from the ``objective``. In the mean E, voter i says 1 with
    probability p_i; in E', with probability p'_i. Given the data, the votes are assumed
    independent. A corner is a vertex of the polygon of all pairs (p, p') that a voter's own privacy
    allows on two neighbouring data sets: the probability of 1 on one data set is at most e^epsilon
    times that on the other plus ``voter_delta``, and so is the probability of 0.

    For p = (p_1, ..., p_K), let d(p) = Pr[output 1] - Pr[majority 1] when voter i says 1 with
    probability p_i. The error at p is |d(p)|. The objective "mean" uses the program above. The
    objective "worst-case" keeps its constraints, and minimises the largest error t instead:

        minimise   t
        subject to |d(p)| <= t  for every p that the prior allows               "worst case"

    As a function of one p_i alone, d is a straight line. If the p_i vary independently, |d| is
    therefore largest where every p_i is the smallest or the largest value that the prior allows,
    and only these p have rows. If all voters share one p, the program is solved again and again:
    each time rows are added for the p at which the last solution errs most, until no error is
    above t. Several gamma can have the least t; the design has one of them with the least expected
    error, up to the solver's tolerance.

    The objective "least-regret" has several priors j. The expected error under prior j is
    here sum_l c_jl (1 - gamma(l)), with the coefficients c_jl of the objective "mean" for this
    prior. Let b_j be the least one, from a program for prior j alone, and f_j that of a fair coin
    (gamma = 0). The regret under prior j is (expected error - b_j) / f_j. The largest regret t is
    minimised, again with the constraints above:

        minimise   t
        subject to (expected error under prior j) <= b_j + t f_j  for every j   "priors"

    The value of a design for "worst-case" or "least-regret" is -t, so that larger is better.
    Solvers ignore very small coefficients. So each c_l with |c_l| < 1e-9 max |c| is replaced by
    1e-9 max |c| in the program, except where ``coefficients`` are your own.

    A design stores the probability of the majority's answer, (1 + gamma(l)) / 2, and of the other
    answer, (1 - gamma(l)) / 2, for l = (K + 1) / 2, ..., K. Its other attributes are ``gamma``, on
    0..K; ``expected_error``; ``expected_error_standard_error``, 0 unless the expected error is a
    mean over random samples of p; and ``regrets``, one for each prior of "least-regret".
    ``expected_error`` is the mean of |d(p)| if all voters share one p or the prior is a point. For
    a `SamplePrior` (samples of your own), and for independent beta priors whose integrals converge
    too slowly, it is the mean of |d(p)| over samples. For all other independent p_i it is
    E[s(p) d(p)], which can be smaller, see ``objective``.

    Attributes:
        voters: K, odd; at most 4,001, and 501 for voter_delta above 0.
        epsilon: of each voter, above 0, in nats.
        allowance: m, real, in (0, K]: the majority is to be (m epsilon, delta)-DP; None for several
            releases.
        voter_delta: the paper's Delta, of each voter, in [0, 1).
        delta: of the majority, in [voter_delta, 1).
        objective: "mean" minimises the expected error, the mean of |d(p)| over the prior. If all
            voters share one p, this mean is linear in gamma. If not, the program minimises
            E[s(p) d(p)] instead, where s(p) is -1 if the p_i sum to more than K/2, and 1 if they
            sum to less: this is linear in gamma, and never larger than the mean of |d(p)|.
            "surrogate" maximises the objective of the DaRRM paper (its equation 3), where p is
            uniform on [0.5, 1] whatever the prior. "worst-case" minimises the largest error over
            all p that the prior allows. "least-regret" minimises the largest regret over several
            priors, as above.
        prior: of the voters' p: uniform:LOW,HIGH (or uniform:LOW,HIGH,LOW,HIGH on a union of
            intervals) or beta:A,B draws the p_i independently; common-uniform:... or
            common-beta:... draws one p for all; point:P or point:P,P,... fixes them. The default is
            common-uniform:0,1, under which voters tend to agree. Only for "worst-case" the default
            is uniform:0,1, which allows every p in [0, 1]^K.
        priors: for "least-regret", at least two, separated by ; in a text; the default is
            uniform:0,1;common-uniform:0,1;common-uniform:0.8,1.
        coefficients: (K + 1) / 2 numbers c of your own objective, which is then maximised.
        contrary: whether gamma may be negative, so that the minority's answer is the likelier one.
            The paper requires gamma >= 0. The guarantee is the same for both; where m / K is small,
            True can have a slightly smaller error.
        releases: k, in 1..1000. Above 1, the design is for k labels. Voters answer each question
            with fresh randomness, and a question may depend on the labels before. Instead of
            allowance and delta there are total_epsilon and total_delta, for the k labels together;
            voter_delta must be 0. Such a design is the best that a search finds, and in general
            has no ``bound``. See `dpopt.budget`.
        total_epsilon: of all k releases together, in (0, 28], in nats; None for one release.
        total_delta: likewise, in [1e-12, 0.5]; 0 for one release.

    Example:
        >>> import dpopt
        >>> best = dpopt.design(dpopt.Majority(11, 0.1, 3))
        >>> best.private, round(best.expected_error, 4)
        (True, 0.0256)
    """

    kind: ClassVar[str] = "majority"
    summary: ClassVar[tuple[str, ...]] = ("expected_error",)

    voters: int
    epsilon: float
    # None for several releases.
    allowance: float = cast(float, None)
    voter_delta: float = 0.0
    delta: float = 0.0
    objective: Literal["mean", "surrogate", "worst-case", "least-regret"] = "mean"
    prior: PriorLike = DEFAULT_PRIOR
    priors: Sequence[PriorLike] | str | None = None
    coefficients: Numbers | None = None
    contrary: bool = False
    releases: int = 1
    total_epsilon: float | None = None
    total_delta: float = 0.0

    def __post_init__(self) -> None:
        k = odd(self.voters)
        self.keep_voters(k)
        voter_delta, delta = self.voter_delta, self.delta
        if voter_delta > delta:
            raise ParameterError(
                f"voter_delta is {digits(voter_delta)} and delta {digits(delta)}; "
                "voter_delta must not exceed delta."
            )
        if k > (_MOST_SHIFTED if voter_delta else _MOST):
            raise ParameterError(
                f"voters is {k}; every constraint can be decided up to {_MOST} voters if "
                f"voter_delta is 0, else up to {_MOST_SHIFTED}."
            )
        objective = _checks.choice(
            "objective", self.objective, ("mean", "surrogate", "worst-case", "least-regret")
        )
        priors = several_priors(self.priors)
        if priors is None and objective == "least-regret":
            priors = REGRET_PRIORS
        linear = _coefficients(self.coefficients, k)
        prior = parse_prior(self.prior)
        if prior is DEFAULT_PRIOR and objective == "worst-case":
            # No prior was given: allow all p, not only equal ones.
            prior = UniformPrior()
        _few("prior", prior, k, common_peaks=objective == "worst-case")
        for other in priors or ():
            _few("a prior of priors", other, k)
        # The program of each prior is solved alone, also when a design is loaded.
        if len(priors or ()) * k**2 > 65_000_000:
            raise ParameterError(
                f"priors holds {len(priors or ())} priors; for {k} voters it may hold at most "
                f"{65_000_000 // k**2}."
            )
        self.keep(
            objective=objective,
            prior=prior,
            priors=priors,
            coefficients=linear,
            contrary=_checks.flag("contrary", self.contrary),
        )

    @property
    def belief(self) -> Prior:
        """The prior of the voters' p."""
        return parse_prior(self.prior)

    @property
    def beliefs(self) -> tuple[Prior, ...]:
        """The priors of "least-regret"; empty if none are given."""
        return several_priors(self.priors) or ()

    @property
    def bits(self) -> int:
        """The integer weights of a row of the table sum to 2^bits."""
        return 63

    @classmethod
    def example(cls) -> Self:
        """Return five voters."""
        return cls(5, 0.5, 1.5)

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return pairs of votes: any of the voters may have changed."""
        return [([1] * ones + [0] * (5 - ones), [0] * 5) for ones in range(6)]

    @property
    def maximises(self) -> bool:
        """True: of every objective a larger value is better."""
        return True

    @cached_property
    def linear(self) -> Vector:
        """The coefficients c of gamma's upper half; for "worst-case", of the secondary objective.

        Raises:
            ParameterError: for a prior of another number of voters, or whose samples were not
                saved.
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
    def over_regret(self) -> bool:
        """Whether the objective is the largest regret under several priors."""
        return self.objective == "least-regret" and self.coefficients is None

    @cached_property
    def _alone(self) -> tuple[Majority, ...]:
        """The settings of the single priors, whose least expected errors regrets refer to."""
        changes: Any = {"objective": "mean", "priors": None}
        priors = self.beliefs if self.over_regret else ()
        return tuple(replace(self, prior=prior, **changes) for prior in priors)

    @cached_property
    def _bests(self) -> tuple[float, ...]:
        """A lower bound on the expected error of every private gamma under each of several priors.

        These programs are always solved by HiGHS: their optima are part of the objective.
        """
        return self._solved_alone(None)

    def _solved_alone(self, time_limit: float | None) -> tuple[float, ...]:
        def best(alone: Majority) -> float:
            # Least expected error of a fair coin that a regret is divided by.
            if alone.coin < 1e-9:
                raise ParameterError(
                    f"priors holds {alone.prior}, under which a fair coin has no expected error; "
                    "it must hold priors under which it has one."
                )
            bound = solve(alone.problem(), time_limit=time_limit).bound
            # sum_l c_l (1 - gamma(l)) is least at gamma(l) = 1 for c_l > 0, else 0.
            return max(alone.coin - bound, float(np.sum(np.minimum(alone.linear, 0.0))))

        return tuple(map(best, self._alone))

    @property
    def coin(self) -> float:
        """The expected error of a fair coin, gamma = 0: the sum of the coefficients."""
        return float(np.sum(self.linear))

    def problem(self) -> Problem:
        """Return the program: variable "gamma", lazy rows "corners", and those of the objective.

        For "least-regret" the programs of the single priors are solved first.
        """
        self.refuse_several()
        # Rows are divided by the budget e^(m epsilon) - 1 + 2 delta: below this, the rounding of
        # their coefficients shows in the optimum.
        if self.budget < 1e-7:
            raise ParameterError(
                f"allowance * epsilon is {digits(self.guarantee.epsilon)}; a program in double "
                "precision needs e^(m epsilon) - 1 + 2 delta of at least 1e-07."
            )
        return self._program([self])

    def _program(self, targets: Sequence[Any]) -> Problem:
        """Return the program over all targets of the same voters."""
        problem = problem_of_targets(self, targets)
        self._add_objective(problem, _visible)
        if self._over_worst_case:
            problem.then_maximise({"gamma": _visible(self.linear)})
        return problem

    def unmixed(self, solution: Solution) -> Table:
        """Return a solution's gamma as integers, rounded and not repaired."""
        return table_of(self, np.clip(self.point(solution), self.least, 1.0), self.bits)

    def output_pairs(self, table: Table) -> list[tuple[Vector, Vector]]:
        """Return the pairs of one query that count: vertices of the hull of all corners.

        The reduction theorem exchanges p' of two voters, which leaves both distributions as they
        are, and so holds for every convex function of them.
        """
        return _vertices(self.dominating(table))

    def _add_objective(
        self, problem: Problem, visible: Callable[[Vector], Vector] = np.asarray
    ) -> None:
        """Add the objective, with its variables and rows, to a program of gamma."""
        if self._over_worst_case:
            problem.add_variables("worst", 1, lower=0.0, upper=1.0)
            problem.maximise({"worst": -1.0})
            problem.add_family("worst case", WorstCase(self.voters, self.belief))
            # The error of a fair coin is at most 1/2, so worst = 1 has slack 1/2.
            problem.set_inside({"gamma": 0.0, "worst": 1.0}, slack=0.5)
        elif self.over_regret:
            problem.add_variables("regret", 1, lower=0.0, upper=1.0)
            coins = np.array([alone.coin for alone in self._alone])
            least = 1.0 - np.array(self._bests) / coins
            # Axis 0: priors; axis 1: l. (coin_j - c_j @ gamma - best_j) / coin_j <= regret. Raised
            # weights relax the rows, so the bound holds for the true program.
            rows = np.array([visible(alone.linear) for alone in self._alone]) / coins[:, None]
            sides = {"gamma": rows, "regret": np.ones((len(rows), 1))}
            problem.add_rows("priors", sides, lower=least)
            problem.maximise({"regret": -1.0, "gamma": np.zeros(rows.shape[1])})
            # A fair coin is strictly feasible for the lazy rows "corners".
            problem.set_inside({"gamma": 0.0, "regret": 1.0}, slack=1.0)
        else:
            problem.maximise({"gamma": self.linear if self.coefficients else visible(self.linear)})

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program; for "least-regret", those of the single priors first."""
        if self.over_regret and "_bests" not in vars(self):
            vars(self)["_bests"] = self._solved_alone(time_limit)
        # Without Delta there are few multisets, and the work is in the K numbers of each row.
        each = 1 if self.voter_delta else self.voters
        # Multisets per second, over all rounds of pricing and the proof, for the progress estimate.
        expect("design of the noise function", reduced_size(self) * each, 5e6)
        return super().solved(backend, time_limit, stop_at_gap)

    def point(self, solution: Solution) -> Vector:
        """Return gamma's upper half."""
        return solution["gamma"]

    def as_point(self, values: Vector) -> Vector:
        """Return the upper half of a gamma, which is given on 0..K or as its upper half.

        A solver's noise of up to 1e-6 is removed.
        """
        return check_gamma(self, values, noise=1e-6)[self.middle :]

    def table(self, point: Vector) -> Table:
        """Return gamma's upper half as a private table, mixed with a fair coin if necessary."""
        upper = np.clip(point, self.least, 1.0)
        unmixed, coin = (table_of(self, gamma, self.bits) for gamma in (upper, 0.0 * upper))
        # About 1e-12 of a coin gives most rows the slack to be decided by floats: a fast proof.
        quickly = partial(certify, self, most=FEW_OPEN)
        # A fair coin has P = P' = 1/2 at all corners: its slack is e^(m epsilon) / 2 + delta - 1/2.
        exp_epsilon = exp_lower(self.exponent)
        headroom = (exp_epsilon - 1) / 2 + Fraction(self.delta)
        try:
            return repair(unmixed, coin, quickly, self.bits, headroom)[0]
        except NotPrivateError:
            # The budget is smaller than the rounding error of floats: decide in exact arithmetic.
            return repair(unmixed, coin, self.judge, self.bits, headroom)[0]

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the exact proof of a table."""
        if self.releases > 1:
            return self.certified(table)
        return certify(self, table)

    def _proof_rows(self, table: Table) -> list[Name]:
        """Return the rows of the dual bound; see `dpopt.majority.program.proving_corners`."""
        gamma = gamma_of(table)
        rows, best = proving_corners(self, gamma, self._add_objective)
        if self._over_worst_case:
            errors = WorstCase(self.voters, self.belief)
            rows += dict.fromkeys(errors.tight(best) + errors.tight(gamma))
        return rows + [("prior", index) for index, _ in enumerate(self._alone)]

    def _proof_size(self, table: Table) -> int:
        """Estimate the entries of rows that a proof reads, and the multisets that are priced."""
        del table
        return (1 + len(self._alone)) * (4 * self.middle**2 + reduced_size(self) // 8)

    def _proof_data(self, table: Table) -> Json:
        """Return the coefficients of the expected error if no formula gives them as rationals."""
        del table
        if self.over_regret:
            return {"priors": self._proofs_alone}
        from_prior = self.objective == "mean" and self.coefficients is None
        if not from_prior or str(self.belief).startswith("common-uniform:"):
            return {}
        return {} if isinstance(self.belief, RecordedPrior) else {"coefficients": [*self.linear]}

    @cached_property
    def _proofs_alone(self) -> list[Json]:
        """For each prior of "least-regret": its least error, and the multipliers that prove it."""
        proofs = []
        for setting, best in zip(self._alone, self._bests, strict=True):
            design = designed(setting)
            proof, data = design.optimality, setting._proof_data(design.table)
            if proof is None:
                raise ParameterError(
                    f"prior is {setting.prior}; there is no proof of its best error."
                )
            weights = [Fraction(c) for c in setting.linear.tolist()]
            proved_best = sum(weights, Fraction(0)) - proof.bound
            lines = [[*name, exact_text(y)] for name, y in proof.multipliers]
            stated = min(best, float_down(proved_best))
            proofs.append(data | {"best": stated, "multipliers": lines})
        return proofs

    def value(self, table: Table) -> float:
        """Return sum_l c_l gamma(l), or minus the largest error or regret."""
        upper = gamma_of(table)
        if self.over_regret:
            regrets = self.regrets(table)
            return -max(regret.regret for regret in regrets) if regrets else math.nan
        needs_prior = self.coefficients is None and self.objective != "surrogate"
        if needs_prior and isinstance(self.belief, RecordedPrior):
            return math.nan
        if self._over_worst_case:
            return -WorstCase(self.voters, self.belief).value(upper)
        return float(self.linear @ upper)

    def regrets(self, table: Table) -> tuple[Regret, ...]:
        """Return the regret of gamma under each of several priors."""
        recorded = any(isinstance(prior, RecordedPrior) for prior in self.beliefs)
        if not self.over_regret or recorded:
            return ()
        regrets = []
        for alone, best in zip(self._alone, self._bests, strict=True):
            error, coin = float(alone.linear @ (1.0 - gamma_of(table))), alone.coin
            regrets.append(Regret(str(alone.prior), error, best, coin, (error - best) / coin))
        return tuple(regrets)

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
            "regrets": lambda: self.regrets(table),
        }

    def spent(self, table: Table, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon of one query for a given delta."""
        if epsilon is not None:
            raise ParameterError(
                f"kind is {self.kind!r}; its least epsilon is known, not its least delta."
            )
        return least_of_gamma(self, table, delta)

    def dominating(self, table: Table) -> DominatingPair:
        """Return the tight dominating pair of one query."""
        return dominating(self, table)

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
    setting: Majority, gamma: npt.ArrayLike, *, prior: PriorLike | None = None, repair: bool = False
) -> Design:
    """Return any noise function as a design: a baseline, or the solution of your own program.

    gamma is rounded down to a multiple of 2^-62 and verified; if that fails, the design has no
    certificate and refuses to release. The rounding of gamma alone can make it fail: as floats, the
    gamma of a formula, or of a proved design, may be one unit too large. Then keep the original
    design, or set ``repair``.

    Args:
        setting: the voters and the target.
        gamma: on 0..K, shape (K + 1,), or its upper half, shape ((K + 1) / 2,).
        prior: for the expected error; that of the setting if None.
        repair: whether to mix gamma with a fair coin, as little as makes it private.

    Raises:
        ParameterError: if gamma has another shape, or leaves [0, 1] by more than a rounding, 1e-15.

    Example:
        >>> from dpopt import majority
        >>> import dpopt
        >>> setting = dpopt.Majority(voters=3, epsilon=0.1, allowance=1)
        >>> majority.assess(setting, [1.0, 1.0]).private  # the majority itself
        False
        >>> majority.assess(setting, [1.0, 1.0], repair=True).private
        True
    """
    repair = _checks.flag("repair", repair)
    _checks.instance("setting", setting, Majority)
    setting = setting if prior is None else replace(setting, prior=parse_prior(prior))
    upper = check_gamma(setting, gamma)[setting.middle :]
    design = made(setting, table_of(setting, upper, setting.bits), strict=False, float_bound=None)
    if design.private or not repair:
        return design
    return made(setting, setting.table(upper), float_bound=None)


def _vertices(pair: DominatingPair) -> list[tuple[Vector, Vector]]:
    """Return the pairs over two outputs of the vertices of a hull; rounded outward."""
    # Integers of the hull are rounded outward: so are those of the other output.
    spare, scale = pair.scale >> 200, pair.scale
    sides = (
        ((p, min(scale - p + spare, scale)), (q, max(scale - q - spare, 0)))
        for q, p in zip(accumulate(pair.lower), accumulate(pair.upper), strict=True)
        if (q, p) != (scale, scale) or len(pair.upper) == 1
    )
    return as_floats(sides, scale)


def _few(name: str, prior: Prior, voters: int, *, common_peaks: bool = False) -> None:
    """Refuse a prior of so many intervals that its program takes minutes or gigabytes."""
    # Errors are compared on a grid of each interval of a common p if there are common peaks.
    intervals = len(getattr(getattr(prior, "base", prior), "intervals", ()))
    grid = common_peaks and isinstance(prior, CommonPrior)
    most = 20_000_000 // voters**2 if grid else 400_000 // voters
    if intervals > most:
        raise ParameterError(
            f"{name} has {intervals} intervals; for {voters} voters it may have at most "
            f"{most}{' in a worst case' if grid else ''}."
        )


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


def _visible(linear: Vector) -> Vector:
    """Return weights, raised where a solver would ignore them and leave gamma undetermined."""
    # Share of the largest coefficient: HiGHS's dual tolerance is 1e-10 of it, the rest is lost.
    least = 1e-9 * float(np.max(np.abs(linear)))
    return np.where(np.abs(linear) < least, least, linear)
