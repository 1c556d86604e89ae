"""Certificates: the record of an exact proof, its inequalities and their least slack."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from numbers import Rational
from typing import Literal

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text, roughly
from dpopt._page import result_page
from dpopt._types import Json, brief
from dpopt.privacy.exponential import exp_upper
from dpopt.privacy.guarantee import Guarantee, in_short
from dpopt.privacy.plain import fingerprint


@dataclass(frozen=True)
class Certificate:
    """A record that all inequalities of a privacy claim were proved in exact arithmetic.

    Attributes:
        claim: what was proved, in one sentence.
        guarantee: the (epsilon, delta) that follows.
        constraints: number of inequalities decided.
        slack: smallest right side minus left side, in probability; at least 0.
        tightest: the neighbours and the output where the slack is smallest.
        arithmetic: how they were decided: in exact integers, or in floats that are all rounded so
            that the claim can only become harder to prove.
        digest: SHA-256 of all the above and of the numbers that were proved; a result with other
            numbers is refused.
    """

    claim: str
    guarantee: Guarantee
    constraints: int
    slack: Fraction
    tightest: str
    arithmetic: Literal["exact integers", "outward-rounded floats"] = "exact integers"
    digest: str = ""

    def __post_init__(self) -> None:
        """Check the fields."""
        _checks.instance("guarantee", self.guarantee, Guarantee)
        _checks.choice("arithmetic", self.arithmetic, ("exact integers", "outward-rounded floats"))
        shown = _checks.shown(self.slack)
        if not isinstance(self.slack, Rational):
            raise ParameterError(f"slack is {shown}; it must be a Fraction, or an integer.")
        if self.slack > exp_upper(self.guarantee.epsilon) + 1:
            raise ParameterError(f"slack is {shown}; no inequality has more than e^epsilon + 1.")
        _checks.integer("constraints", self.constraints, 0)
        slack = Fraction(self.slack)
        if slack < 0:
            raise NotPrivateError(
                f"{in_short(self.guarantee)} is not proved: a certificate has slack "
                f"{roughly(slack)}, and it must be at least 0.",
                excess=float(-slack) or math.ulp(0.0),
            )

    def about(self, *subject: object) -> Certificate:
        """Return the certificate with the digest of the numbers that it proves."""
        return replace(self, digest=self._digest(subject))

    def is_about(self, *subject: object) -> bool:
        """Whether these are the numbers that the certificate proves, by its digest."""
        return self.digest == self._digest(subject)

    def _digest(self, subject: tuple[object, ...]) -> str:
        values = [getattr(self, field.name) for field in fields(self) if field.name != "digest"]
        return fingerprint(*values, subject)

    def __repr__(self) -> str:
        return brief(
            self,
            claim=self.claim,
            guarantee=self.guarantee,
            constraints=self.constraints,
            slack=float(self.slack),
        )

    def _repr_html_(self) -> str:
        """Return claim and guarantee as HTML, for notebooks."""
        facts = {
            "guarantee": self.guarantee,
            "inequalities": self.constraints,
            "slack": float(self.slack),
        }
        return result_page(type(self).__name__, f"{self.claim}.", True, facts)

    def to_dict(self) -> Json:
        """Return the certificate as plain values; rationals as "a/b", beyond 256 bits "0x..."."""
        return {
            "claim": self.claim,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "constraints": self.constraints,
            "slack": float(self.slack),
            "slack_exact": exact_text(self.slack),
            "tightest": self.tightest,
            "arithmetic": self.arithmetic,
            "digest": self.digest,
        }
