"""Samplers whose obscuring probability depends on the smallest count: ROO and DS-ROO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text, whole
from dpopt._plot import new_axes
from dpopt._types import IntVector, Json, Vector, brief, frozen
from dpopt.privacy import Certificate
from dpopt.privacy.saved import Sealed, seal_judged
from dpopt.privacy.vouched import Implied
from dpopt.provenance import versions
from dpopt.roo.audit import RooAudit, audit_weights
from dpopt.roo.rules import BITS, RULES, UNIT, first_free, rule_weights
from dpopt.roo.sampler import Below, LetterSampler, certified, draw_record
from dpopt.roo.setting import RooSetting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class MinCountSampler(LetterSampler):
    """With probability q_m a uniform letter, else that of a uniform record; m the smallest count.

    K(y | counts) = q_m / k + (1 - q_m) c_y / n.

    Attributes:
        setting: n, k and epsilon.
        rule: see `rule_weights`; "roo" has the same q for every m.
        weights: q_0, q_1, ... as integers over 2^62, all later ones 0: what is audited, and what
            `release` draws from.
        q: the same as floats, read-only.
        audit: the exact worst ratio over all neighbours.
        certificate: the proof that the rule is epsilon-DP; None if it is not.
        provenance: versions that made it.
    """

    setting: RooSetting
    rule: str
    weights: tuple[int, ...]
    q: Vector
    audit: RooAudit
    certificate: Certificate | None
    provenance: dict[str, str]

    @property
    def private(self) -> bool:
        """Whether the guarantee was proved."""
        return self.certificate is not None

    def obscuring(self, minimum: int) -> float:
        """Return q_m for a smallest count m."""
        return self._weight(minimum) / UNIT

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return q_m / k + (1 - q_m) c_y / n for each letter, shape (k,)."""
        found = self.fitting(counts)
        q = self.obscuring(int(found.min()))
        return frozen(q / self.setting.letters + (1 - q) * (found / self.setting.records))

    def require_private(self) -> None:
        """Refuse a rule whose audit failed.

        Raises:
            NotPrivateError: naming two data sets.
        """
        audit = self.audit
        sides = (str(audit.witness.runs), str(audit.witness.neighbour_runs))
        why = (
            f"rule {self.rule!r} is not {self.setting.epsilon:g}-DP for n = "
            f"{self.setting.records}, k = {self.setting.letters}: letter 0 is "
            f"{audit.excess_factor:.6g} e^epsilon times as likely for one of two neighbours; "
            f"(count, letters): {sides[0]} and {sides[1]}."
        )
        certified(self.private, why, sides, audit.excess_factor - 1.0)

    def _subject(self) -> tuple[object, ...]:
        return "min-count", self.setting, self.rule, self.weights, self.audit

    def _implied(self) -> Iterator[Implied]:
        yield "q", self.q, _floats(self.weights)
        yield "certificate", self.private, self.audit.private

    def _prove(self) -> Certificate:
        made = from_weights(self.setting, self.rule, self.weights)
        made.require_private()
        return cast(Certificate, made.certificate)

    def _weight(self, minimum: int) -> int:
        if self.rule == "roo":
            return self.weights[0]
        return self.weights[minimum] if minimum < len(self.weights) else 0

    def _draw(self, counts: IntVector, below: Below) -> int:
        obscured = below(UNIT) < self._weight(int(counts.min()))
        # Both are drawn, so that a clock does not tell which one was taken.
        letters = draw_record(counts, below), below(self.setting.letters)
        return letters[obscured]

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw q_m against the smallest count m; return the axes."""
        axes = new_axes(ax)
        last = self.setting.largest_minimum
        shown = min(last, 40 if self.rule == "roo" else max(len(self.q) + 2, 4))
        values = [self.obscuring(m) for m in range(shown + 1)]
        axes.plot(np.arange(shown + 1), values, marker="o", markersize=3, label=label)
        axes.set_xlabel("smallest count, $m$")
        axes.set_ylabel("obscuring probability $q_m$")
        axes.set_ylim(bottom=0.0)
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            rule=self.rule,
            records=self.setting.records,
            letters=self.setting.letters,
            epsilon=self.setting.epsilon,
            private=self.private,
        )

    def to_dict(self) -> Json:
        """Return the sampler as plain values, ready for JSON."""
        audit, proof = self.audit, self.certificate
        ratio = audit.worst_ratio
        return {
            "setting": self.setting.to_dict(),
            "rule": self.rule,
            "q": self.q.tolist(),
            "bits": BITS,
            "weights": [exact_text(weight) for weight in self.weights],
            "private": self.private,
            "worst_ratio": None if ratio is None else float(ratio),
            "worst_ratio_exact": None if ratio is None else exact_text(ratio),
            "excess_factor": audit.excess_factor,
            "rows": audit.rows,
            "witness": audit.witness.to_dict(),
            "certificate": None if proof is None else proof.to_dict(),
            "provenance": self.provenance,
        }

    def save(self, path: str | Path, *, even_if_not_private: bool = False) -> None:
        """Write the sampler to a JSON file that `dpopt.load` audits again.

        Args:
            path: of the file.
            even_if_not_private: of a rule that is not private, write the record of its audit: a
                file for reading, which `dpopt.load` refuses as not private.

        Raises:
            ParameterError: if the file cannot be written.
            NotPrivateError: if the rule is not private and its audit was not asked for.
        """
        seal_judged("min-count", self, path, even_if_not_private)


def min_count(records: int, letters: int, epsilon: float, rule: str = "exact") -> MinCountSampler:
    """Return a sampler whose q depends on the smallest count, audited in exact arithmetic.

    Args:
        records: n, at least 1.
        letters: k, at least 2.
        epsilon: above 0, in nats.
        rule: "exact" (the best of its kind), "roo", "journal", "journal-repaired" or
            "conference"; see `rule_weights`. Published rules that fail their audit can be looked
            at but refuse to release.

    Raises:
        ParameterError: for a parameter out of range.

    Example:
        >>> from dpopt import roo
        >>> sampler = roo.min_count(records=1000, letters=10, epsilon=0.1)
        >>> round(sampler.obscuring(0), 4), sampler.obscuring(17), sampler.audit.private
        (0.0868, 0.0, True)
    """
    setting = RooSetting(records, letters, epsilon)
    weights = rule_weights(setting, rule)
    return from_weights(setting, rule, weights)


def from_weights(setting: RooSetting, rule: str, weights: tuple[int, ...]) -> MinCountSampler:
    """Audit a rule given as integers over 2^62; see `MinCountSampler`.

    Raises:
        ParameterError: for weights that are not 1 to M + 1 integers in 0..2^62, one for "roo".
    """
    _checks.instance("setting", setting, RooSetting)
    rule, weights = _checks.choice("rule", rule, RULES), _checked(setting, rule, weights)
    audit = audit_weights(setting, weights, constant=rule == "roo")
    return MinCountSampler(
        setting=setting,
        rule=rule,
        weights=weights,
        q=_floats(weights),
        audit=audit,
        certificate=_certificate(setting, rule, weights, audit) if audit.private else None,
        provenance=versions(),
    )


def _checked(setting: RooSetting, rule: str, weights: object) -> tuple[int, ...]:
    longest = 1 if rule == "roo" else setting.largest_minimum + 1
    listed = tuple(weights) if isinstance(weights, list | tuple) else ()
    if not 1 <= len(listed) <= longest or not all(
        isinstance(weight, int) and not isinstance(weight, bool) and 0 <= weight <= UNIT
        for weight in listed
    ):
        raise ParameterError(
            f"weights is {_checks.shown(weights)}; it must hold 1 to {longest} integers in "
            f"0..2^{BITS}."
        )
    return listed


def _floats(weights: tuple[int, ...]) -> Vector:
    return frozen([weight / UNIT for weight in weights])


def _certificate(
    setting: RooSetting, rule: str, weights: tuple[int, ...], audit: RooAudit
) -> Certificate:
    witness = audit.witness
    return Certificate(
        claim="the min-count rule is private for all neighbouring data sets",
        guarantee=setting.guarantee,
        ratio=setting.ratio,
        constraints=audit.rows,
        slack=audit.slack,
        tightest=f"(count, letters): {witness.runs}; neighbour: {witness.neighbour_runs}",
        arithmetic="integers, no rounding",
        bits=BITS,
    ).about("min-count", setting, rule, weights, audit)


def from_sealed(sealed: Sealed) -> MinCountSampler:
    """Audit the sampler of a saved file again.

    Raises:
        ParameterError: if the file holds no such sampler, or was changed.
        NotPrivateError: if it is not private.
    """
    body = sealed.body
    try:
        setting = RooSetting(**body["setting"])
        weights = tuple(whole(weight) for weight in body["weights"])
        rule = _checks.choice("rule", body["rule"], RULES)
    except ParameterError as error:
        raise sealed.refuse(str(error).rstrip(".")) from None
    except (KeyError, TypeError, ValueError):
        raise sealed.refuse("its setting, rule or weights are missing or malformed") from None
    longest = 1 if rule == "roo" else setting.largest_minimum + 1
    if sealed.integer("bits") != BITS or not 1 <= len(weights) <= longest:
        raise sealed.refuse(f"it must hold 1 to {longest} weights of {BITS} bits")
    if not all(0 <= weight <= UNIT for weight in weights):
        raise sealed.refuse(f"a weight is outside 0..2^{BITS}")
    if rule != "roo" and len(weights) < min(first_free(setting), setting.largest_minimum):
        # Found by the audit too, but after all m that are missing: up to 1e15 of them.
        m = len(weights)
        raise NotPrivateError(
            f"file {str(sealed.path)!r} holds no q_{m}: a letter of count {m}, the smallest, "
            f"becomes {m + 1} / {m} times as likely with one record more, above e^epsilon.",
            (f"a letter of count {m + 1}", f"a letter of count {m}"),
        )
    sampler = from_weights(setting, rule, weights)
    sampler.require_private()
    sealed.require_hash()
    return sampler
