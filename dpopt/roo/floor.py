"""The smooth-floor sampler: each letter in proportion to its count, with a smooth floor under it.

K(y | counts) is proportional to W(c_y). With U = 2^bits, W(c) = c U from some c* on, and below
W(c) = ceil(W(c + 1) / (1 + s)): rounded up, U max over j >= c of j (1 + s)^(c - j), where
1 + s = e^a. A letter with count 0 keeps weight, and where every count is at least c*, about 1 / a,
the law is the empirical one. `floor_proof` has the theorem and its proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, exact_text
from dpopt._types import IntVector, Json, Vector, brief, frozen
from dpopt.privacy import Certificate
from dpopt.privacy.vouched import Implied
from dpopt.provenance import versions
from dpopt.roo.floor_proof import FloorAudit, audit_floor, floor_weights
from dpopt.roo.sampler import Below, LetterSampler, certified, draw_record
from dpopt.roo.setting import RooSetting

_GUARD_BITS = 62
_GROWTH_BITS = 40
# Words that sums over all letters of an alphabet do not overflow.
_WORD, _MASK = 32, (1 << 32) - 1


@dataclass(frozen=True)
class SmoothFloorSampler(LetterSampler):
    """One letter y with probability W(c_y) / sum of W; W is a table below c* and linear beyond.

    Attributes:
        setting: n, k and epsilon.
        growth: s = e^a - 1, a double taken exactly: W(c + 1) <= (1 + s) W(c).
        weights: W(0)..W(c* - 1) as integers over 2^bits; W(c) = c 2^bits from c* = len(weights) on.
        bits: see there.
        floor: weights as floats, read-only.
        audit: the theorem's inequalities.
        certificate: the proof that it is epsilon-DP; None if it is not.
        provenance: versions that made it.
    """

    setting: RooSetting
    growth: float
    weights: tuple[int, ...]
    bits: int
    floor: Vector
    audit: FloorAudit
    certificate: Certificate | None
    provenance: dict[str, str]

    @property
    def rate(self) -> float:
        """The a of 1 + s = e^a, in nats."""
        return math.log1p(self.growth)

    @property
    def private(self) -> bool:
        """Whether the guarantee was proved."""
        return self.certificate is not None

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return W(c_y) / sum of W for each letter, shape (k,)."""
        found = self.fitting(counts)
        law = found.astype(float)
        small = found < len(self.weights)
        law[small] = self.floor[found[small]]
        return frozen(law / law.sum())

    def require_private(self) -> None:
        """Refuse a sampler that is not private.

        Raises:
            NotPrivateError: naming two neighbours.
        """
        n, c, d, rate = self.setting.records, self.audit.count, self.audit.loser, self.rate
        excess = float(self.audit.worst_ratio / self.setting.ratio - 1)
        why = (
            f"rate is {rate:.10g}: the smooth floor is not {self.setting.epsilon:g}-DP for n = {n},"
            f" k = {self.setting.letters}; a letter whose count goes from {c} to {c + 1}, one of "
            f"another with {d}, is {1 + excess:.6g} e^epsilon times as likely."
        )
        sides = (f"letter 0: {c}, letter 1: {d}", f"letter 0: {c + 1}, letter 1: {d - 1}")
        certified(self.private, why, sides, excess)

    def _subject(self) -> tuple[object, ...]:
        return "smooth floor", self.setting, self.growth, self.weights, self.audit

    def _implied(self) -> Iterator[Implied]:
        if self.certificate is not None:
            yield "bits", self.bits, self.certificate.bits
        yield "floor", self.floor, _floats(self.weights, self.bits)
        yield "certificate", self.private, self.audit.private

    def _prove(self) -> Certificate:
        audit = audit_floor(self.setting, self.weights, self.bits)
        if not audit.private:
            replace(self, audit=audit, certificate=None).require_private()
        return _certificate(self.setting, self.growth, self.weights, self.bits, audit)

    def _draw(self, counts: IntVector, below: Below) -> int:
        """Draw a record's letter, or one for what the floor lifts it by, W(c) - c 2^bits.

        Both are found, whichever is taken, and each is compared with every letter's place.
        """
        table = self._lifts
        sums = np.cumsum(table[:, np.minimum(counts, table.shape[1] - 1)], axis=1)
        for word in range(len(sums) - 1, 0, -1):
            sums[word - 1] += sums[word] >> _WORD
            sums[word] &= _MASK
        lifted = sum(int(top) << _WORD * place for place, top in enumerate(sums[::-1, -1]))
        drawn = below((self.setting.records << self.bits) + lifted)
        passed = np.count_nonzero(_at_most(sums, _words(drawn, len(sums))))
        record = draw_record(counts, lambda _: max(drawn - lifted, 0) >> self.bits)
        return (int(passed), record)[drawn >= lifted]

    @cached_property
    def _lifts(self) -> IntVector:
        """W(c) - c 2^bits as words, highest first, shape (words, c* + 1); 0 at c*."""
        lifts = [weight - (c << self.bits) for c, weight in enumerate(self.weights)]
        longest = max(lifts, default=0).bit_length()
        count = max(-(-longest // _WORD), -(-(self.bits + 22) // _WORD))
        whole = np.array([*lifts, 0], dtype=object)
        parts = [(whole >> _WORD * place) & _MASK for place in reversed(range(count))]
        return np.array(parts, dtype=np.int64)

    def __repr__(self) -> str:
        return brief(
            self,
            records=self.setting.records,
            letters=self.setting.letters,
            epsilon=self.setting.epsilon,
            rate=self.rate,
            private=self.private,
        )

    def to_dict(self) -> Json:
        """Return the sampler as plain values, ready for JSON."""
        audit, proof = self.audit, self.certificate
        return {
            "setting": self.setting.to_dict(),
            "rate": self.rate,
            "growth": self.growth,
            "weights": [exact_text(weight) for weight in self.weights],
            "bits": self.bits,
            "private": self.private,
            "worst_ratio": float(audit.worst_ratio),
            "rows": audit.rows,
            "certificate": None if proof is None else proof.to_dict(),
            "provenance": self.provenance,
        }


def smooth_floor(
    records: int, letters: int, epsilon: float, *, rate: float | None = None
) -> SmoothFloorSampler:
    """Return the smooth-floor sampler with the largest rate a that is epsilon-DP.

    s = e^a - 1 is taken from the floats of 40 significant bits: it is private, and the next such
    float is not. The theorem of the proof is necessary too, so that no larger rate was missed for
    want of a better proof. Where n / (k - 1) is above 1 / a, e^epsilon is
    e^a (n + w(0)) / (n + w(0) e^a - 1), w = W / 2^bits.

    The time grows with 1 / a: seconds for 1e5, minutes for the most, 2e6.

    Args:
        records: n, at least 1.
        letters: k, at least 2.
        epsilon: in nats, above log(1 + 1/n), where a = epsilon - log(1 + 1/n) would do as well.
        rate: a itself, above 0, to look at another: without a proof it refuses to release.

    Raises:
        ParameterError: for a parameter out of range, or if 1 / a is above 2e6.

    Example:
        >>> from dpopt import roo
        >>> roo.smooth_floor(6, 3, 1.0).output_distribution([6, 0, 0]).round(4).tolist()
        [0.8845, 0.0578, 0.0578]
    """
    setting = RooSetting(records, letters, epsilon)
    least = math.log1p(1 / setting.records)
    if setting.epsilon <= least:
        raise ParameterError(
            f"epsilon is {digits(setting.epsilon)}; a smooth floor for {setting.records} records "
            f"is for epsilon above log(1 + 1/n) = {digits(least)}. Use min_count."
        )
    if rate is not None:
        return _sampler(
            setting, math.expm1(_checks.real("rate", rate, 0.0, 700.0, open_lower=True))
        )
    return _largest(setting)


def _largest(setting: RooSetting) -> SmoothFloorSampler:
    """Return the private sampler whose next growth is not private, of `_GROWTH_BITS` bits.

    At s = e^epsilon - 1 the ratio W(1) / W(0) alone is e^epsilon up to rounding.
    """
    found: dict[float, SmoothFloorSampler] = {}

    def excess(growth: float) -> float:
        if growth not in found:
            found[growth] = _sampler(setting, growth)
        return float((found[growth].audit.worst_ratio - setting.ratio) / (setting.ratio - 1))

    top = math.exp(setting.epsilon) if setting.epsilon > 30 else math.expm1(setting.epsilon)
    unit = 2.0 ** (math.frexp(top)[1] - _GROWTH_BITS)
    low = high = (math.floor(top / unit) + 2) * unit
    while excess(low) > 0:
        low, high = low / 2, low
    unit = 2.0 ** (math.frexp(high)[1] - _GROWTH_BITS)
    rises, step = False, 0
    while (units := round((high - low) / unit)) > 1:
        # The secant leans over to the end that was not moved last, so that both close in.
        share = 0.5 if step % 4 == 3 else excess(low) / (excess(low) - excess(high))
        place = round(units * share) + (1 if rises else -1)
        middle = low + min(max(place, 1), units - 1) * unit
        rises, step = excess(middle) <= 0, step + 1
        low, high = (middle, high) if rises else (low, middle)
    return found[low]


def _sampler(setting: RooSetting, growth: float) -> SmoothFloorSampler:
    bits = _GUARD_BITS + math.ceil(math.log2(1 + growth))
    weights = floor_weights(growth, bits)
    audit = audit_floor(setting, weights, bits)
    return SmoothFloorSampler(
        setting=setting,
        growth=growth,
        weights=weights,
        bits=bits,
        floor=_floats(weights, bits),
        audit=audit,
        certificate=_certificate(setting, growth, weights, bits, audit) if audit.private else None,
        provenance=versions(),
    )


def _words(value: int, count: int) -> list[int]:
    """Return an integer as words, highest first; the highest keeps all that is left."""
    low = [(value >> _WORD * place) & _MASK for place in reversed(range(count - 1))]
    return [value >> _WORD * (count - 1), *low]


def _at_most(sums: IntVector, values: list[int]) -> npt.NDArray[np.bool_]:
    """Return sums <= value, word by word from the lowest, every word compared."""
    answer = sums[-1] <= values[-1]
    for word in range(len(values) - 2, -1, -1):
        answer = (sums[word] < values[word]) | ((sums[word] == values[word]) & answer)
    return answer


def _floats(weights: tuple[int, ...], bits: int) -> Vector:
    return frozen([weight / (1 << bits) for weight in weights])


def _certificate(
    setting: RooSetting, growth: float, weights: tuple[int, ...], bits: int, audit: FloorAudit
) -> Certificate:
    return Certificate(
        claim="the smooth-floor sampler is private for all neighbouring data sets",
        guarantee=setting.guarantee,
        ratio=setting.ratio,
        constraints=audit.rows,
        slack=audit.slack,
        tightest=f"a letter whose count goes from {audit.count} to {audit.count + 1}",
        arithmetic="integers, no rounding",
        bits=bits,
    ).about("smooth floor", setting, growth, weights, audit)
