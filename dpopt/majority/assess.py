"""Any noise function as a result: a given one, or that of a saved file."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import whole
from dpopt._types import Vector
from dpopt.majority.certificate import BITS, GammaProver, Weights
from dpopt.majority.points import RecordedPrior, as_prior, parse_prior
from dpopt.majority.prior import Prior
from dpopt.majority.reduction import require_priceable
from dpopt.majority.result import OBJECTIVES, MajorityDesign, floats
from dpopt.majority.setting import MajoritySetting, check_gamma
from dpopt.majority.weights import (
    ErrorEstimate,
    expected_error,
    expected_error_weights,
    surrogate_weights,
)
from dpopt.majority.worst import WorstCase
from dpopt.privacy.saved import Sealed
from dpopt.provenance import versions

_ERRORS = ("expected_error", "expected_error_standard_error")


def assess(
    setting: MajoritySetting,
    gamma: npt.ArrayLike,
    *,
    prior: Prior | str | None = None,
    repair: bool = False,
) -> MajorityDesign:
    """Return any noise function as a result: a baseline, or the point of your own program.

    gamma is rounded down to a multiple of 2^-62 and certified; if that fails, the result has no
    certificate and refuses to release. Its verdict is then "not private", or "not proved" if the
    rounding of gamma explains the failure: the gamma of a design, as floats, may be a unit above
    the integers that were certified, and so may be a formula's. Keep the design, or repair.

    Args:
        setting: the voters and the target.
        gamma: on 0..K, or its upper half.
        prior: for the expected error, uniform on [0, 1] if None.
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
    prior, repair = as_prior(prior), _checks.flag("repair", repair)
    require_priceable(setting)
    upper = check_gamma(setting, gamma)[setting.middle :]
    weights, factor = quantised(upper), 1.0
    if repair:
        weights, exact = GammaProver(setting).shrink(weights)
        factor = float(exact)
    return result_of(setting, weights, prior, factor, strict=repair)


def quantised(upper: Vector) -> Weights:
    """Return gamma's upper half over 2^BITS, rounded down."""
    return tuple(int(value * (1 << BITS)) for value in upper.tolist())


def result_of(
    setting: MajoritySetting,
    weights: Weights,
    prior: Prior,
    shrink: float,
    *,
    strict: bool,
    partly: int | None = None,
) -> MajorityDesign:
    """Return the record of a gamma of integer weights, certified if it can be.

    Args:
        setting: the voters and the target.
        weights: gamma's upper half over 2^62.
        prior: for the expected error.
        shrink: the factor of the repair before.
        strict: raise if gamma is not private, instead of recording by how much.
        partly: number of multisets priced where not all could be; nothing is then proved.

    Raises:
        NotPrivateError: if gamma is not private, and strict.
    """
    certificate, excess = None, 0.0
    try:
        if partly is None:
            certificate = GammaProver(setting).certify(weights)
            excess = float(-certificate.slack)
    except NotPrivateError as error:
        if strict:
            raise
        excess = error.excess
    gamma = floats(weights)
    found = _expected(gamma, prior)
    return MajorityDesign(
        setting=setting,
        weights=weights,
        gamma=gamma,
        certificate=certificate,
        excess=excess,
        priced=partly,
        objective="given",
        value=None,
        bound=None,
        gap=None,
        prior=prior,
        expected_error=found.value,
        expected_error_standard_error=found.standard_error,
        expected_error_method=found.method,
        shrink=shrink,
        solution=None,
        provenance=versions(),
    )


def _expected(gamma: Vector, prior: Prior) -> ErrorEstimate:
    if isinstance(prior, RecordedPrior):
        return ErrorEstimate(0.0, 0.0, "recorded")
    return expected_error(gamma, prior)


def from_sealed(sealed: Sealed) -> MajorityDesign:
    """Certify the design of a saved file again.

    Raises:
        ParameterError: if the file holds no such design, or was changed.
        NotPrivateError: if it is not private.
    """
    body = sealed.body
    try:
        setting = MajoritySetting.from_dict(body["setting"])
        weights = tuple(whole(weight) for weight in body["weights"])
        prior = _prior(body["prior"])
        stated = body["guarantee"]["epsilon"], body["guarantee"]["delta"]
        record = {
            name: None if body[name] is None else _checks.real(name, body[name])
            for name in ("objective", "bound", *_ERRORS)
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
        raise sealed.refuse(f"its objective is {_checks.shown(name)}")
    # The product was rounded to the nearest float once, which may be the one below.
    products = (setting.guarantee.epsilon, setting.allowance * setting.epsilon)
    if stated[0] not in products or stated[1] != setting.delta:
        raise sealed.refuse("its guarantee is not that of its setting")
    result = result_of(setting, weights, prior, shrink, strict=True)
    sealed.require_hash()
    stated = ["shrink"]
    if isinstance(prior, RecordedPrior):
        errors = {key: record[key] or 0.0 for key in _ERRORS}
        result = replace(result, **errors, expected_error_method="recorded samples")
        stated += _ERRORS
    value, bound = _value(result, name), record["bound"]
    if value is None and record["objective"] is not None:
        value = record["objective"]
        stated.append("objective")
    if bound is not None:
        stated += ["bound", "gap"]
    return replace(
        result,
        objective=name,
        value=value,
        bound=bound,
        gap=None if bound is None or value is None else bound - value,
        provenance=sealed.provenance,
        stated=tuple(stated),
    )


def _value(design: MajorityDesign, objective: str) -> float | None:
    """Return the value of gamma by the objective's definition; None if the file only names it."""
    upper, k = design.gamma[design.setting.middle :], design.setting.mechanisms
    if objective == "surrogate":
        return float(surrogate_weights(k).values @ upper)
    if objective not in OBJECTIVES or isinstance(design.prior, RecordedPrior):
        return None
    if objective == "worst-case":
        return -WorstCase(k, design.prior).value(upper)
    return float(expected_error_weights(k, design.prior).values @ upper)


def _prior(name: object) -> Prior:
    """Return the prior of a saved design; samples are not saved, only their name is."""
    if isinstance(name, str) and re.fullmatch(r"samples:\d+x\d+:[0-9a-f]{16}", name):
        return RecordedPrior(name)
    return parse_prior(str(name))
