"""From parameters to a certified noise function: Problem, Solution, repair, check, result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._plot import new_axes
from dpopt._types import Json, Vector, frozen
from dpopt.files import write_json
from dpopt.lp import Backend, Problem, Solution, solve
from dpopt.mechanisms.majority.check import (
    FULL_LIMIT,
    PrivacyCheck,
    check_full,
    full_size,
    rounding_error,
)
from dpopt.mechanisms.majority.prior import (
    UniformPrior,
    Weights,
    expected_error_weights,
    linear_error,
    sampled_error,
    surrogate_weights,
)
from dpopt.mechanisms.majority.separation import CornerOracle, reduced_size, require_priceable
from dpopt.mechanisms.majority.setting import MajoritySetting, check_gamma, signed
from dpopt.privacy import Guarantee
from dpopt.privacy.release import draw_bernoulli
from dpopt.provenance import versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBJECTIVES = ("expected-error", "surrogate")
_BITS = 63
# HiGHS's dual tolerance is 1e-10 of the largest weight: smaller weights would be noise to it.
_VISIBLE = 1e-9


@dataclass(frozen=True)
class MajorityDesign:
    """A noise function gamma for the private majority of K private voters, and its record.

    With L ones among the K votes, DaRRM outputs the majority with probability gamma(L), else a
    fair coin (algorithm 1 of the paper).

    Attributes:
        setting: the voters and the target guarantee.
        gamma: noise function on 0..K, shape (K + 1,), read-only.
        objective: "expected-error", "surrogate", "weights", or "given" for a gamma not designed.
        value: weights @ gamma's upper half, which the program maximises.
        bound: upper bound on the value of any private gamma, from the dual vector.
        gap: bound - value.
        prior: the prior that `expected_error` refers to.
        expected_error: see `expected_error_weights`; ``expected_error_method`` says how.
        check: the privacy check of this very gamma.
        shrink: gamma is the solver's point times this number, to make it private (1: untouched).
        solution: the solve behind it; None if gamma was given.
        provenance: versions that made it.
    """

    setting: MajoritySetting
    gamma: Vector
    objective: str
    value: float | None
    bound: float | None
    gap: float | None
    prior: UniformPrior
    expected_error: float
    expected_error_method: str
    check: PrivacyCheck
    shrink: float
    solution: Solution | None
    provenance: dict[str, str]

    @property
    def guarantee(self) -> Guarantee:
        """The (m epsilon, delta) that gamma was checked against."""
        return self.setting.guarantee

    def sampled_error(self, rng: np.random.Generator, draws: int = 10_000) -> tuple[float, float]:
        """Return mean and standard error of the error over p drawn from the prior."""
        return sampled_error(self.setting, self.gamma, self.prior, rng, draws)

    def release(self, votes: npt.ArrayLike) -> npt.NDArray[np.int8] | int:
        """Return the private majority of votes, with the operating system's randomness.

        Each row of votes is one query and spends the whole guarantee once. Probabilities are
        integers over 2^63, gamma rounded down. No seed; timing is outside the guarantee.

        Args:
            votes: zeros and ones, shape (K,) for one query or (queries, K).

        Returns:
            0 or 1 for one query; an array of them, shape (queries,), for several.

        Raises:
            ParameterError: for another shape or other values.
            NotPrivateError: if gamma failed its check.
        """
        if not self.check.private:
            raise NotPrivateError(
                f"gamma is not shown to be ({self.guarantee.epsilon:g}, "
                f"{self.guarantee.delta:g})-DP: excess {self.check.excess:.3g}, rounding "
                f"{self.check.rounding:.3g}, voters at {self.check.worst}; "
                "assess it with repair=True to release it."
            )
        ones, single = self._count(votes)
        half = 1 << (_BITS - 1)
        weights = [half + int(np.sign(h)) * int(abs(h) * half) for h in signed(self.gamma)]
        drawn = draw_bernoulli(np.array(weights, dtype=np.uint64)[ones], _BITS)
        return int(drawn[0]) if single else drawn

    def simulate(
        self, votes: npt.ArrayLike, rng: np.random.Generator
    ) -> npt.NDArray[np.int8] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        ones, single = self._count(votes)
        p = 0.5 + 0.5 * signed(self.gamma)[ones]
        drawn = (rng.random(p.size) < p).astype(np.int8)
        return int(drawn[0]) if single else drawn

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw gamma against the number of ones, on ``ax`` or on a new figure; return the axes."""
        axes = new_axes(ax)
        axes.plot(np.arange(self.gamma.size), self.gamma, marker="o", markersize=3, label=label)
        axes.set_xlabel("number of ones among the votes, $l$")
        axes.set_ylabel(r"$\gamma(l)$")
        axes.set_ylim(-0.03, 1.03)
        return axes

    def to_dict(self) -> Json:
        """Return the design as plain values, ready for JSON; see `save`."""
        solved = self.solution
        return {
            "kind": "majority",
            "setting": self.setting.to_dict(),
            "guarantee": {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta},
            "gamma": self.gamma.tolist(),
            "objective_name": self.objective,
            "objective": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "prior": str(self.prior),
            "expected_error": self.expected_error,
            "expected_error_method": self.expected_error_method,
            "worst_violation": self.check.worst_violation,
            "constraints_checked": self.check.constraints_checked,
            "check": self.check.to_dict(),
            "shrink": self.shrink,
            "status": None if solved is None else str(solved.status),
            "backend": None if solved is None else solved.backend,
            "rows_used": None if solved is None else solved.rows_used,
            "rounds": None if solved is None else solved.rounds,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write `to_dict` as JSON, whole or not at all.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())

    def _count(self, votes: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], bool]:
        array = np.asarray(votes)
        k = self.setting.mechanisms
        if array.ndim not in (1, 2) or array.shape[-1] != k:
            raise ParameterError(
                f"votes has shape {array.shape}; it must be ({k},) or (queries, {k})."
            )
        if not np.all((array == 0) | (array == 1)):
            raise ParameterError("votes holds a value other than 0 and 1.")
        return np.atleast_2d(array).astype(np.int64).sum(axis=1), array.ndim == 1


def gamma_problem(setting: MajoritySetting, weights: npt.ArrayLike) -> Problem:
    """Return the program over gamma's upper half: variable "gamma", family "corners".

    Maximise weights @ gamma subject to 0 <= gamma <= 1 and (m epsilon, delta)-privacy of DaRRM
    over all corner multisets (equation 2 of the paper); add rows of your own before solving.

    Args:
        setting: the voters and the target.
        weights: shape ((K + 1) / 2,), for l = (K + 1) / 2..K.
    """
    problem = Problem("DaRRM noise function")
    problem.add_variables("gamma", setting.middle, lower=0.0, upper=1.0)
    problem.maximise({"gamma": weights})
    problem.add_family("corners", CornerOracle(setting), over="gamma")
    return problem


def design(
    mechanisms: int,
    epsilon: float,
    allowance: float,
    *,
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
    objective: str = "expected-error",
    prior: UniformPrior | None = None,
    weights: npt.ArrayLike | None = None,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
) -> MajorityDesign:
    """Return the best noise function for K voters, solved, repaired and checked.

    Args:
        mechanisms: K, odd.
        epsilon: of each voter, above 0, in nats.
        allowance: m in (0, K]: the majority may spend m epsilon.
        mechanism_delta: Delta of each voter, in [0, 1).
        delta: of the majority, at least mechanism_delta.
        objective: "expected-error" (the expected error under the prior) or "surrogate" (the
            paper's equation 3, with p uniform on [0.5, 1]).
        prior: of the voters' p, uniform on [0, 1] if None.
        weights: own weights to maximise instead, shape ((K + 1) / 2,), for l = (K + 1) / 2..K.
        backend: see `dpopt.solve`.
        time_limit: seconds for the solve.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer.
    """
    setting = MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta)
    require_priceable(setting)
    prior = UniformPrior() if prior is None else prior
    name = _checks.choice("objective", objective, OBJECTIVES) if weights is None else "weights"
    if weights is not None:
        values = np.asarray(weights, dtype=float)
        if values.shape != (setting.middle,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"weights has shape {values.shape}; it must be {setting.middle} finite numbers, "
                "one for each count l = (K + 1) / 2..K."
            )
        chosen = Weights(frozen(values), 0.0, "given")
        visible = values
    else:
        chosen = (
            surrogate_weights(mechanisms)
            if name == "surrogate"
            else expected_error_weights(mechanisms, prior)
        )
        visible = np.maximum(chosen.values, _VISIBLE * float(np.max(np.abs(chosen.values))))
    problem = gamma_problem(setting, visible)
    solution = solve(problem, backend, time_limit=time_limit)
    result = assess(setting, solution["gamma"], prior=prior, repair=True)
    value = float(chosen.values @ result.gamma[setting.middle :])
    return replace(
        result,
        objective=name,
        value=value,
        bound=solution.bound,
        gap=solution.bound - value,
        solution=solution,
    )


def assess(
    setting: MajoritySetting,
    gamma: npt.ArrayLike,
    *,
    prior: UniformPrior | None = None,
    repair: bool = False,
) -> MajorityDesign:
    """Return any noise function as a checked result: a baseline, or the point of your own program.

    Args:
        setting: the voters and the target.
        gamma: on 0..K, or its upper half.
        prior: for the expected error, uniform on [0, 1] if None.
        repair: shrink gamma to t gamma with the largest t that makes it private. Every
            constraint is linear in gamma, 0 at gamma = 0, with a right side above 0.

    Raises:
        ParameterError: if gamma has another shape, or leaves [0, 1].
    """
    prior = UniformPrior() if prior is None else prior
    gamma, shrink = check_gamma(setting, gamma), 1.0
    check = _check(setting, gamma)
    if repair and not check.private:
        over = 2.0 * (check.excess + 2.0 * check.rounding)
        shrink = setting.budget / (setting.budget + over)
        gamma = gamma * shrink
        check = _check(setting, gamma)
    weights = expected_error_weights(setting.mechanisms, prior)
    return MajorityDesign(
        setting=setting,
        gamma=frozen(gamma),
        objective="given",
        value=None,
        bound=None,
        gap=None,
        prior=prior,
        expected_error=linear_error(weights, gamma),
        expected_error_method=weights.method,
        check=check,
        shrink=shrink,
        solution=None,
        provenance=versions(),
    )


def _check(setting: MajoritySetting, gamma: Vector) -> PrivacyCheck:
    if full_size(setting) <= FULL_LIMIT:
        return check_full(setting, gamma)
    priced = CornerOracle(setting, cuts=1).price(gamma[setting.middle :])
    excess = 0.5 * setting.budget * priced.violation
    return PrivacyCheck(
        "reduced",
        reduced_size(setting),
        excess,
        rounding_error(setting),
        None,
        dict(priced.counts),
    )
