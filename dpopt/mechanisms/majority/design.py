"""From parameters to a certified noise function: Problem, Solution, repair, proof, result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._types import Vector, frozen
from dpopt.lp import Backend, Problem, solve
from dpopt.mechanisms.majority.certificate import BITS, GammaProver, Weights
from dpopt.mechanisms.majority.prior import (
    UniformPrior,
    expected_error_weights,
    linear_error,
    surrogate_weights,
)
from dpopt.mechanisms.majority.result import MajorityDesign
from dpopt.mechanisms.majority.separation import CornerOracle, require_priceable
from dpopt.mechanisms.majority.setting import MajoritySetting, check_gamma, full_gamma
from dpopt.privacy.saved import Sealed, whole
from dpopt.provenance import versions

OBJECTIVES = ("expected-error", "surrogate")
# HiGHS's dual tolerance is 1e-10 of the largest weight: smaller weights would be noise to it.
_VISIBLE = 1e-9
# Rows are divided by the budget: below this, rounding their coefficients shows in the optimum.
_LEAST_BUDGET = 1e-7


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
    """Return the best noise function for K voters, solved, repaired, quantised and certified.

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
    if setting.budget < _LEAST_BUDGET:
        raise ParameterError(
            f"allowance * epsilon is {setting.guarantee.epsilon:g}; a program in double precision "
            f"needs e^(m epsilon) - 1 + 2 delta of at least {_LEAST_BUDGET:g}."
        )
    prior = UniformPrior() if prior is None else prior
    name = _checks.choice("objective", objective, OBJECTIVES) if weights is None else "weights"
    if weights is not None:
        linear = np.asarray(weights, dtype=float)
        if linear.shape != (setting.middle,) or not np.all(np.isfinite(linear)):
            raise ParameterError(
                f"weights has shape {linear.shape}; it must be {setting.middle} finite numbers, "
                "one for each count l = (K + 1) / 2..K."
            )
        visible = linear
    else:
        surrogate = name == "surrogate"
        k = setting.mechanisms
        chosen = surrogate_weights(k) if surrogate else expected_error_weights(k, prior)
        linear = chosen.values
        visible = np.maximum(linear, _VISIBLE * float(np.max(np.abs(linear))))
    solution = solve(gamma_problem(setting, visible), backend, time_limit=time_limit)
    prover = GammaProver(setting)
    shrunk, factor = prover.shrink(_quantised(solution["gamma"]))
    result = _result(setting, prover.fill(shrunk), prior, float(factor), strict=True)
    value = float(linear @ result.gamma[setting.middle :])
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
    """Return any noise function as a result: a baseline, or the point of your own program.

    gamma is rounded down to a multiple of 2^-62 and certified; if that fails, the result has no
    certificate and refuses to release.

    Args:
        setting: the voters and the target.
        gamma: on 0..K, or its upper half.
        prior: for the expected error, uniform on [0, 1] if None.
        repair: shrink gamma to its largest private multiple first, if it is not private; see
            `GammaProver.shrink`.

    Raises:
        ParameterError: if gamma has another shape, or leaves [0, 1].
    """
    prior = UniformPrior() if prior is None else prior
    require_priceable(setting)
    upper = check_gamma(setting, gamma)[setting.middle :]
    weights, factor = _quantised(upper), 1.0
    if repair:
        weights, exact = GammaProver(setting).shrink(weights)
        factor = float(exact)
    return _result(setting, weights, prior, factor, strict=repair)


def _quantised(upper: Vector) -> Weights:
    """Return gamma's upper half over 2^BITS, rounded down."""
    return tuple(int(value * (1 << BITS)) for value in upper.tolist())


def _result(
    setting: MajoritySetting, weights: Weights, prior: UniformPrior, shrink: float, *, strict: bool
) -> MajorityDesign:
    certificate, excess = None, 0.0
    try:
        certificate = GammaProver(setting).certify(weights)
        excess = -float(certificate.slack)
    except NotPrivateError as error:
        if strict:
            raise
        excess = error.excess
    gamma: Vector = full_gamma([weight / (1 << BITS) for weight in weights])
    linear = expected_error_weights(setting.mechanisms, prior)
    return MajorityDesign(
        setting=setting,
        weights=weights,
        gamma=frozen(gamma),
        certificate=certificate,
        excess=excess,
        objective="given",
        value=None,
        bound=None,
        gap=None,
        prior=prior,
        expected_error=linear_error(linear, gamma),
        expected_error_method=linear.method,
        shrink=shrink,
        solution=None,
        provenance=versions(),
    )


def from_sealed(sealed: Sealed) -> MajorityDesign:
    """Certify the design of a saved file again.

    Raises:
        ParameterError: if the file holds no such design, or was changed.
        NotPrivateError: if it is not private.
    """
    body = sealed.body
    try:
        setting = MajoritySetting(**body["setting"])
        weights = tuple(whole(weight) for weight in body["weights"])
        prior = UniformPrior.parse(body["prior"])
        stated = body["guarantee"]["epsilon"], body["guarantee"]["delta"]
        record = {
            name: None if body[name] is None else _checks.real(name, body[name])
            for name in ("objective", "bound", "gap")
        }
        name, shrink = body["objective_name"], _checks.real("shrink", body["shrink"], 0.0, 1.0)
        require_priceable(setting)
    except ParameterError as error:
        raise sealed.refuse(str(error).rstrip(".")) from None
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError):
        raise sealed.refuse("its setting, weights or record are missing or malformed") from None
    if sealed.integer("bits") != BITS or len(weights) != setting.middle:
        raise sealed.refuse(f"it must hold {setting.middle} weights of {BITS} bits")
    if not all(0 <= weight <= 1 << BITS for weight in weights):
        raise sealed.refuse(f"a weight is outside 0..2^{BITS}")
    if name not in (*OBJECTIVES, "weights", "given"):
        raise sealed.refuse(f"its objective is {name!r}")
    if stated != (setting.guarantee.epsilon, setting.guarantee.delta):
        raise sealed.refuse("its guarantee is not that of its setting")
    result = _result(setting, weights, prior, shrink, strict=True)
    sealed.require_hash()
    return replace(
        result,
        objective=name,
        value=record["objective"],
        bound=record["bound"],
        gap=record["gap"],
        provenance=sealed.provenance,
    )
