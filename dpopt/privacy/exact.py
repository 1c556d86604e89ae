"""Certificates: the record of an exact proof, its least slack, and a digest of what was proved."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal, cast

import numpy as np

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text, roughly
from dpopt._types import Json, brief
from dpopt.privacy.exponential import exp_upper
from dpopt.privacy.guarantee import Guarantee, in_short


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


def fingerprint(*parts: object) -> str:
    """Return the SHA-256 of numbers, texts, arrays, tuples and frozen dataclasses of them.

    Equal numbers of different types (1 and 1.0) have different digests. Lists are refused, since
    they could change afterwards. Dataclass fields with ``compare=False`` are left out.
    """
    digest = hashlib.sha256()
    for token in _tokens(parts):
        digest.update(token.encode() if isinstance(token, str) else token)
    return digest.hexdigest()


def _tokens(value: object) -> Iterator[str | bytes]:
    """Yield an injective encoding of a value; integers are in hexadecimal, of any length."""
    if value is None or isinstance(value, bool):
        yield f"{value};"
    elif type(value) is int:
        yield f"{value:x};"
    elif type(value) is float:
        yield f"{value.hex()};"
    elif isinstance(value, Fraction):
        yield f"{value.numerator:x}/{value.denominator:x};"
    elif isinstance(value, str):
        yield f"{len(value)}:{value};"
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        yield f"{value.dtype.str}{value.shape}:"
        yield np.ascontiguousarray(value).tobytes()
    elif type(value) is tuple:
        yield f"({len(value)}:"
        if set(map(type, value)) == {int}:
            yield ";".join(map("{:x}".format, value))
        else:
            for inner in value:
                yield from _tokens(inner)
        yield ")"
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__}:"
        compared = [field.name for field in fields(cast(Any, value)) if field.compare]
        yield from _tokens(tuple(getattr(value, name) for name in compared))
    else:
        raise ParameterError(
            f"the numbers hold a {type(value).__name__}; a proof is about integers, floats, texts "
            "and tuples of them."
        )
