"""The record of an exact proof: which inequalities were decided, and how close they were."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from numbers import Rational

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, digits, exact_text, roughly
from dpopt._page import result_page
from dpopt._types import Json, brief
from dpopt.privacy.exponential import exp_lower, exp_upper, rational
from dpopt.privacy.fingerprint import fingerprint
from dpopt.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Certificate:
    """A record of inequalities that were decided exactly, all of them true.

    Attributes:
        claim: what was proved, in one sentence.
        guarantee: the (epsilon, delta) that follows.
        ratio: the rational used for e^epsilon: at most e^epsilon, or the caller's, of which epsilon
            is the logarithm up to two floats.
        constraints: number of inequalities decided.
        slack: smallest right side minus left side, in probability; at least 0.
        tightest: the neighbours and the output where the slack is smallest.
        arithmetic: how the inequalities were decided.
        bits: the weights that were proved are integers over 2^bits; 0 if they are over their sum.
        digest: SHA-256 of all the above and of the numbers that were proved: a result whose
            numbers have another one cannot be made.
    """

    claim: str
    guarantee: Guarantee
    constraints: int
    slack: Fraction
    tightest: str
    ratio: Fraction = Fraction(1)
    arithmetic: str = "exact integers"
    bits: int = 0
    digest: str = ""

    def __post_init__(self) -> None:
        """Refuse a record of what is not true.

        Raises:
            NotPrivateError: if the slack is below 0.
            ParameterError: if a number or the guarantee is none, or the ratio above e^epsilon.
        """
        _checks.instance("guarantee", self.guarantee, Guarantee)
        for name in ("ratio", "slack"):
            if not isinstance(getattr(self, name), Rational):
                raise ParameterError(
                    f"{name} is {_checks.shown(getattr(self, name))}; it must be a Fraction, or an "
                    "integer."
                )
        if self.slack > exp_upper(self.guarantee.epsilon) + 1:
            raise ParameterError(
                f"slack is {_checks.shown(self.slack)}; no inequality has more than e^epsilon + 1."
            )
        _checks.integer("constraints", self.constraints, 0)
        _checks.integer("bits", self.bits, 0)
        resolve_ratio(self.guarantee, self.ratio)
        slack = Fraction(self.slack)
        if slack < 0:
            raise NotPrivateError(
                f"({self.guarantee.epsilon:g}, {self.guarantee.delta:g})-DP is not proved: a "
                f"certificate has slack {roughly(slack)}, and it must be at least 0.",
                excess=float(-slack) or math.ulp(0.0),
            )

    def about(self, *subject: object) -> Certificate:
        """Return the certificate with the digest of what it was made for."""
        return replace(self, digest=self._digest(subject))

    def is_about(self, *subject: object) -> bool:
        """Whether these are the numbers that the certificate was made for."""
        return self.digest == self._digest(subject)

    def _digest(self, subject: tuple[object, ...]) -> str:
        own = [getattr(self, field.name) for field in fields(self) if field.name != "digest"]
        return fingerprint(*own, subject)

    def __repr__(self) -> str:
        return brief(
            self,
            claim=self.claim,
            guarantee=self.guarantee,
            constraints=self.constraints,
            slack=float(self.slack),
            arithmetic=self.arithmetic,
        )

    def _repr_html_(self) -> str:
        """Return claim and guarantee, for notebooks."""
        facts = {
            "guarantee": self.guarantee,
            "inequalities": self.constraints,
            "slack": float(self.slack),
            "arithmetic": self.arithmetic,
        }
        return result_page(type(self).__name__, f"{self.claim}.", True, facts)

    def to_dict(self) -> Json:
        """Return the certificate as plain values; rationals as "a/b", beyond 256 bits "0x..."."""
        return {
            "claim": self.claim,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "ratio": exact_text(self.ratio),
            "constraints": self.constraints,
            "slack": float(self.slack),
            "slack_exact": exact_text(self.slack),
            "tightest": self.tightest,
            "arithmetic": self.arithmetic,
            "bits": self.bits,
            "digest": self.digest,
        }


def resolve_ratio(guarantee: Guarantee, ratio: Rational | None) -> Fraction:
    """Return the rational to use for e^epsilon: the caller's, or a lower bound of 128 bits.

    Raises:
        ParameterError: if the caller's ratio is above e^epsilon by more than epsilon's rounding.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    if ratio is None:
        return exp_lower(guarantee.epsilon)
    exact = rational("ratio", ratio)
    if exact.numerator.bit_length() > 2 * MOST_BITS:
        raise ParameterError(
            f"ratio is {_checks.shown(exact)}; it must have at most {2 * MOST_BITS:,} bits."
        )
    # epsilon = log(ratio) is rounded: allow two floats more.
    epsilon = math.nextafter(math.nextafter(guarantee.epsilon, math.inf), math.inf)
    largest = exp_upper(epsilon) if guarantee.epsilon > 0 else Fraction(1)
    if not 1 <= exact <= largest:
        raise ParameterError(
            f"ratio is {_checks.shown(exact)}; it must be at least 1 and at most "
            f"e^{digits(guarantee.epsilon)}."
        )
    return exact


def shrink_to_budget(worst: Fraction, budget: Fraction) -> Fraction:
    """Return the largest t in [0, 1] with t * worst <= budget, for constraints linear in a point.

    Where every constraint is linear, 0 at the origin and has right side ``budget`` > 0, t times
    the point is feasible.
    """
    worst, budget = rational("worst", worst), rational("budget", budget)
    if budget <= 0:
        raise ParameterError(f"budget is {_checks.shown(budget)}; it must be above 0.")
    return Fraction(1) if worst <= budget else budget / worst
