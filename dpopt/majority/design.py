"""From parameters to a certified noise function: Problem, Solution, repair, proof, result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Rational

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._numbers import digits
from dpopt._progress import expect
from dpopt._types import Vector
from dpopt.lp import Backend, Problem, Solution, Status, solve
from dpopt.majority.assess import quantised, result_of
from dpopt.majority.certificate import GammaProver
from dpopt.majority.points import as_prior
from dpopt.majority.prior import Prior
from dpopt.majority.reduction import priceable, reduced_size
from dpopt.majority.result import OBJECTIVES, MajorityDesign
from dpopt.majority.separation import CornerOracle
from dpopt.majority.setting import MajoritySetting
from dpopt.majority.weights import expected_error_weights, surrogate_weights
from dpopt.majority.worst import WorstCase
from dpopt.privacy.exponential import rational

# HiGHS's dual tolerance is 1e-10 of the largest weight: smaller weights would be noise to it.
_VISIBLE = 1e-9
# Rows are divided by the budget: below this, rounding their coefficients shows in the optimum.
_LEAST_BUDGET = 1e-7
# Rooms that the second program of a worst case leaves to the first one's optimum, tried in turn,
# and the gap that does for it: it only chooses among optima, and prices its room at up to 1e7.
_TIES, _TIE_GAP = (1e-9, 4e-9), 1e-5
# Multisets a second, in all rounds of pricing and the proof together.
_SPEED = 5e6


def gamma_problem(setting: MajoritySetting, weights: npt.ArrayLike) -> Problem:
    """Return the program over gamma's upper half: variable "gamma", family "corners".

    Maximise weights @ gamma subject to 0 <= gamma <= 1 and (m epsilon, delta)-privacy of DaRRM
    over all corner multisets (equation 2 of the paper); add rows of your own before solving.

    Args:
        setting: the voters and the target.
        weights: shape ((K + 1) / 2,), for l = (K + 1) / 2..K.

    Raises:
        ParameterError: if K is too large for every multiset to be priced.
    """
    return _problem(setting, weights, CornerOracle(setting))


def worst_case_problem(setting: MajoritySetting, prior: Prior) -> Problem:
    """Return the program that minimises the largest error over all p that a prior allows.

    Variables "gamma" and "worst", families "corners" and "worst case"; see `WorstCase`.

    Args:
        setting: the voters and the target.
        prior: where p may lie; for U[0, 1] anywhere, and the program then maximises min gamma.

    Raises:
        ParameterError: if K is too large for every multiset to be priced.
    """
    _checks.instance("setting", setting, MajoritySetting)
    problem = _problem(setting, np.zeros(setting.middle), CornerOracle(setting))
    problem.add_variables("worst", 1, lower=0.0, upper=0.5)
    problem.minimise({"worst": 1.0})
    problem.add_family("worst case", WorstCase(setting.mechanisms, prior))
    return problem


def _problem(setting: MajoritySetting, weights: npt.ArrayLike, oracle: CornerOracle) -> Problem:
    problem = Problem("DaRRM noise function")
    problem.add_variables("gamma", setting.middle, lower=0.0, upper=1.0)
    problem.maximise({"gamma": weights})
    problem.add_family("corners", oracle, over="gamma")
    return problem


def design(
    mechanisms: int,
    epsilon: float,
    allowance: float,
    *,
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
    voter_ratio: Rational | None = None,
    objective: str = "expected-error",
    prior: Prior | str | None = None,
    weights: npt.ArrayLike | None = None,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
) -> MajorityDesign:
    """Return the best noise function for K voters, solved, repaired, quantised and certified.

    Args:
        mechanisms: K, odd.
        epsilon: of each voter, above 0, in nats.
        allowance: m in (0, K]: the majority may spend m epsilon.
        mechanism_delta: Delta of each voter, in [0, 1).
        delta: of the majority, at least mechanism_delta.
        voter_ratio: e^epsilon as a rational, if it is one, see `MajoritySetting`: the proof is then
            about its power m itself. Needs a whole m.
        objective: see `design_for`, as all that follows.
        prior: see there.
        weights: see there.
        backend: see there.
        time_limit: see there.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.

    Example:
        >>> from dpopt import majority
        >>> best = majority.design(11, 0.1, 3)
        >>> best.verdict, round(best.expected_error, 4)
        ('private', 0.0155)
    """
    return design_for(
        MajoritySetting(
            mechanisms,
            epsilon,
            allowance,
            mechanism_delta,
            delta,
            voter_ratio=None if voter_ratio is None else rational("voter_ratio", voter_ratio),
        ),
        objective=objective,
        prior=prior,
        weights=weights,
        backend=backend,
        time_limit=time_limit,
    )


def design_for(
    setting: MajoritySetting,
    *,
    objective: str = "expected-error",
    prior: Prior | str | None = None,
    weights: npt.ArrayLike | None = None,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
) -> MajorityDesign:
    """Return the best noise function of a setting, also for groups of voters.

    Where Delta > 0 and K is above 203, not every multiset can be priced: the design is then
    marked unverified, has no certificate and refuses to release.

    Args:
        setting: the voters and the target.
        objective: "expected-error" minimises E|error| under the prior (see
            `expected_error_weights`), "surrogate" maximises the paper's equation 3, whose p is
            uniform on [0.5, 1] whatever the prior, "worst-case" minimises the largest error over
            all p that the prior allows, and among those the expected error, as far as a solver can
            tell them apart.
        prior: of the voters' p, or its name (see `parse_prior`); uniform on [0, 1] if None.
        weights: your own weights on gamma's upper half to maximise, instead of an objective.
        backend: see `dpopt.solve`.
        time_limit: seconds for each solve.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.
    """
    if not isinstance(setting, MajoritySetting):
        raise ParameterError(f"setting is {_checks.shown(setting)}; it must be a MajoritySetting.")
    if setting.budget < _LEAST_BUDGET:
        raise ParameterError(
            f"allowance * epsilon is {digits(setting.guarantee.epsilon)}; a program in double "
            f"precision needs e^(m epsilon) - 1 + 2 delta of at least {_LEAST_BUDGET:g}."
        )
    prior = as_prior(prior)
    name = _checks.choice("objective", objective, OBJECTIVES)
    _foresee(setting)
    name = name if weights is None else "weights"
    run = _Run(setting, prior, backend, time_limit)
    if name == "worst-case":
        return run.worst_case()
    oracle = CornerOracle(setting, partial=True)
    linear = _linear(setting, prior, name, weights)
    # Weights below what the solver sees would leave gamma undefined there.
    visible = linear if weights is not None else _visible(linear)
    solution = solve(_problem(setting, visible, oracle), backend, time_limit=time_limit)
    result = run.finished(solution, None if priceable(setting) else oracle.checked)
    value = float(linear @ result.gamma[setting.middle :])
    return _with_value(result, name, value, solution.bound)


def _foresee(setting: MajoritySetting) -> None:
    """Announce a design that will take long, by what its pricing and its proof walk through."""
    if priceable(setting):
        # Without Delta the walk is short, and each of its steps a row of K numbers.
        each = setting.mechanisms if len(setting.axes) == 1 else 1
        expect("design of the noise function", reduced_size(setting) * each, _SPEED)


def _linear(
    setting: MajoritySetting, prior: Prior, name: str, weights: npt.ArrayLike | None
) -> Vector:
    if name == "surrogate":
        return surrogate_weights(setting.mechanisms).values
    if weights is None:
        return expected_error_weights(setting.mechanisms, prior).values
    linear = _checks.floats("weights", weights)
    if linear.shape != (setting.middle,) or not np.all(np.isfinite(linear)):
        raise ParameterError(
            f"weights has shape {np.shape(linear)}; it must be {setting.middle} finite numbers, "
            "one for each count l = (K + 1) / 2..K."
        )
    return linear


def _visible(linear: Vector) -> Vector:
    return np.maximum(linear, _VISIBLE * float(np.max(np.abs(linear))))


def _with_value(result: MajorityDesign, name: str, value: float, bound: float) -> MajorityDesign:
    return replace(result, objective=name, value=value, bound=bound, gap=bound - value)


@dataclass(frozen=True)
class _Run:
    """One design: what all its programs share."""

    setting: MajoritySetting
    prior: Prior
    backend: str | Backend
    time_limit: float | None

    def finished(self, solution: Solution, partly: int | None = None) -> MajorityDesign:
        """Repair, fill and prove the solution's gamma; or mark it unverified."""
        weights, factor = quantised(solution["gamma"]), 1.0
        if partly is None:
            prover = GammaProver(self.setting)
            shrunk, exact = prover.shrink(weights)
            weights, factor = prover.fill(shrunk), float(exact)
        result = result_of(self.setting, weights, self.prior, factor, strict=True, partly=partly)
        return replace(result, solution=solution)

    def worst_case(self) -> MajorityDesign:
        """Minimise the largest error, then the expected error among the gammas that attain it."""
        setting = self.setting
        first = worst_case_problem(setting, self.prior)
        least = solve(first, self.backend, time_limit=self.time_limit)
        result = self.finished(self._among_optima(least))
        worst = WorstCase(setting.mechanisms, self.prior).value(result.gamma[setting.middle :])
        return _with_value(result, "worst-case", -worst, -least.bound)

    def _among_optima(self, least: Solution) -> Solution:
        """Return the optimum of least expected error; where no solver can tell it, any optimum."""
        linear = expected_error_weights(self.setting.mechanisms, self.prior).values
        for tie in _TIES:
            problem = worst_case_problem(self.setting, self.prior)
            problem.maximise({"gamma": _visible(linear), "worst": 0.0})
            limit = float(least["worst"][0]) + tie
            problem.add_rows("least worst case", {"worst": np.ones((1, 1))}, upper=limit)
            try:
                return solve(
                    problem, self.backend, relative_gap=_TIE_GAP, time_limit=self.time_limit
                )
            except SolverError as error:
                if error.status not in (Status.NUMERICAL, Status.STALLED):
                    raise
        return least
