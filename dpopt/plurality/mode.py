"""The mode of a column: its most common letter, told privately, for any number of records."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Json, brief
from dpopt.ballots import (
    Coins,
    Words,
    exponential_draw,
    ladder_draw,
    partition_count,
    permute_and_flip_draw,
    proved_for_any_number,
)
from dpopt.ballots.unbounded import QUICK_STATES
from dpopt.data.tally import Tally, tally
from dpopt.plurality.proof import prove_ladder
from dpopt.plurality.setting import PluralityDesign, PluralitySetting, design, rational_step
from dpopt.privacy import Guarantee
from dpopt.privacy.release import random_words, seeded, system

Rule = Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"]
RULES: tuple[str, ...] = get_args(Rule)
_BEST_OF = ("ladder", "permute-and-flip", "exponential")

_MOST_TABLED = 5_000
"""Sorted histograms of which "best" makes tables: a few seconds' work."""
_MOST_STEPS = 2_000_000
_LONGEST_LIST = 10_000
"""Records of which histograms are ever listed."""
_LARGEST_EPSILON = 50.0
_MOST_RECORDS = 10**15
_BY_THEOREM = {
    "permute-and-flip": "permute-and-flip at e^(epsilon / 2), private by theorem, drawn exactly",
    "exponential": "exponential mechanism at e^(epsilon / 2), private by theorem, drawn exactly",
}
_ASKED = "asked for"
_LEAST = (
    "best: proved private for every number of records, and below permute-and-flip in expected "
    "regret and error for all counts that were compared"
)
_LAST = (
    "best: too many histograms to list, and no quick proof of the ladder for every number of "
    "records at so many letters and this epsilon"
)
_SMALLER = "best: less mean regret than {} over all counts, which are few enough to list"


@dataclass(frozen=True)
class ModeRelease:
    """A letter that was released.

    Attributes:
        letter: of the alphabet.
        rule: ladder, permute-and-flip, exponential or optimal: by which it was drawn.
        guarantee: what it spends, where one record may be replaced by another.
        records: K, which is public.
        proof: why the guarantee holds.
        why: why this rule was taken: "asked for", or what spoke for it under "best".
    """

    letter: Hashable
    rule: str
    guarantee: Guarantee
    records: int
    proof: str
    why: str

    def __repr__(self) -> str:
        return brief(
            self,
            letter=self.letter,
            rule=self.rule,
            guarantee=self.guarantee,
            records=self.records,
        )

    def to_dict(self) -> Json:
        """Return the release as plain values."""
        return {
            "letter": self.letter,
            "rule": self.rule,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "records": self.records,
            "proof": self.proof,
            "why": self.why,
        }


@dataclass(frozen=True, eq=False, repr=False)
class ModeRule:
    """A rule that tells the mode of K records over C letters, before any record is looked at.

    Attributes:
        rule: ladder, permute-and-flip, exponential or optimal.
        records: K.
        classes: C.
        guarantee: of one release, where one record may be replaced by another. K is public then.
        proof: why it holds.
        why: why this rule was taken: "asked for", or what spoke for it under "best".
        design: the table that was proved; None where the rule is private by theorem and drawn
            without one.
        ratio: r of a ladder that is drawn without a table; None of others.
    """

    rule: str
    records: int
    classes: int
    guarantee: Guarantee
    proof: str
    why: str = _ASKED
    design: PluralityDesign | None = None
    ratio: Fraction | None = None
    neighbours: ClassVar[str] = PluralitySetting.neighbours

    def __repr__(self) -> str:
        return brief(
            self,
            rule=self.rule,
            records=self.records,
            classes=self.classes,
            guarantee=self.guarantee,
        )

    def asked(self, data: object, *, alphabet: object = None) -> int:
        """Return how many letters `release` draws for data, which are checked: 1.

        Args:
            data: as of `mode`.
            alphabet: as of `mode`.
        """
        self._fitting(data, alphabet)
        return 1

    def release(self, data: object, *, alphabet: object = None) -> ModeRelease:
        """Return one private letter, with the operating system's randomness; see `mode`.

        Args:
            data: as of `mode`.
            alphabet: as of `mode`.

        Raises:
            ParameterError: for data outside the alphabet, or of another number of records.
        """
        counted = self._fitting(data, alphabet)
        if self.design is not None:
            place = int(self.design.release(counted))
        else:
            place = self._drawn(lambda count: random_words(count, system))(counted.counts)
        letter = counted.letters[place]
        return ModeRelease(letter, self.rule, self.guarantee, self.records, self.proof, self.why)

    def simulate(
        self, data: object, rng: np.random.Generator, draws: int = 1, *, alphabet: object = None
    ) -> IntVector:
        """Return places of letters from a seeded generator: for experiments, NOT private.

        Args:
            data: as of `mode`.
            rng: a seeded generator.
            draws: how many letters, at least 1.
            alphabet: as of `mode`.
        """
        source = seeded(rng)
        draws = _checks.integer("draws", draws, 1)
        counts = self._fitting(data, alphabet).counts
        if self.design is not None:
            return np.asarray(self.design.simulate(None, rng, counts=np.tile(counts, (draws, 1))))
        drawn = self._drawn(lambda count: random_words(count, source))
        found = [drawn(counts) for _ in range(draws)]
        return np.array(found, dtype=np.int64)

    def _drawn(self, words: Words) -> Callable[[IntVector], int]:
        """Return what draws a place from counts by a rule without a table."""
        ratio = self.ratio
        if ratio is not None:
            return lambda counts: ladder_draw(counts.tolist(), ratio, lambda: int(words(1)[0]))
        coins = Coins(Fraction(self.guarantee.epsilon) / 2, words)
        draw = exponential_draw if self.rule == "exponential" else permute_and_flip_draw
        return lambda counts: draw(counts, coins)

    def _fitting(self, data: object, alphabet: object) -> Tally:
        """Return data as a tally of this rule's sizes."""
        counted = _tallied(data, alphabet)
        sizes = int(counted.counts.sum()), len(counted.counts)
        if sizes != (self.records, self.classes):
            raise ParameterError(
                f"data holds {sizes[0]} records over {sizes[1]} letters; the rule is for "
                f"{self.records} over {self.classes}."
            )
        return counted


def mode(
    data: object,
    epsilon: float,
    *,
    alphabet: object = None,
    rule: Rule = "best",
) -> ModeRelease:
    """Return the most common letter of some records, privately.

    Neighbours differ in one record that is replaced by another, so the number of records is public.
    So is the alphabet: it must be fixed before the data are looked at, since which letters occur is
    private. The letter is drawn with the operating system's randomness; how long that takes, and
    that a record was outside the alphabet, are not covered by the guarantee.

    Args:
        data: records (a sequence, an array, a column of a table), a mapping from letters to
            counts, or a `Tally`; without an alphabet the counts of the letters 0..C-1, shape (C,).
        epsilon: of the letter, in (0, 50].
        alphabet: the C letters in order, at least 2.
        rule: see `mode_rule`.

    Raises:
        ParameterError: for a parameter out of range, no record, or one outside the alphabet, which
            is not shown.

    Example:
        >>> from dpopt import plurality
        >>> cities = ["Basel", "Bern", "Chur"]
        >>> city = plurality.mode({"Bern": 9000, "Chur": 10}, 1.0, alphabet=cities)
        >>> city.letter, city.rule
        ('Bern', 'ladder')
    """
    counted = _tallied(data, alphabet)
    made = mode_rule(int(counted.counts.sum()), len(counted.counts), epsilon, rule=rule)
    return made.release(counted, alphabet=counted.letters)


def mode_rule(records: int, classes: int, epsilon: float, *, rule: Rule = "best") -> ModeRule:
    """Return the rule that `mode` draws by, which depends on public numbers alone.

    - "permute-and-flip" and "exponential" are private for every K and C by theorem, at
      e^(epsilon / 2). They are drawn exactly, for counts of any size.
    - "ladder" is private for every K where finitely many vectors of gaps prove it, which they do
      for few letters and an epsilon that is not small (`dpopt.ballots.unbounded`): then it is drawn
      exactly too. Elsewhere an enumeration of all sorted histograms decides, up to a million of
      them. "optimal" is the linear program's optimum, up to some thousands.
    - "best" is the rule of least mean regret, all counts equally likely, where the ladder,
      permute-and-flip and the exponential mechanism can be tabled in seconds. Else it is the ladder
      where it is proved private for every K within some seconds, and permute-and-flip where not,
      which loses no more than the exponential mechanism at the same step.

    Args:
        records: K, at least 1.
        classes: C, at least 2.
        epsilon: in (0, 50].
        rule: one of the above.

    Raises:
        ParameterError: for a parameter out of range, or sizes that a rule cannot be tabled for.
    """
    _checks.choice("rule", rule, RULES)
    records = _checks.integer("records", records, 0, _MOST_RECORDS)
    if not records:
        raise ParameterError("records is 0: there are no records; a mode needs at least one.")
    classes = _checks.integer("classes", classes, 2)
    epsilon = _checks.real("epsilon", epsilon, 0.0, _LARGEST_EPSILON, open_lower=True)
    few = _few(records, classes)
    if rule == "best" and few:
        tables = [design(records, classes, epsilon, rule=name) for name in _BEST_OF]
        best, *others = sorted(tables, key=lambda table: table.mean_regret)
        return _tabled(best, _SMALLER.format(" and ".join(made.setting.rule for made in others)))
    if rule in ("best", "ladder") and not few:
        made = _any_number(records, classes, epsilon, rule)
        if made is not None:
            return made
    if rule == "ladder" and records > _LONGEST_LIST:
        raise ParameterError(
            f"records is {records}; the ladder of {classes} letters is not proved private for all "
            f"records at epsilon = {digits(epsilon)}, and is audited for at most "
            f"{_LONGEST_LIST:,}; rule='permute-and-flip' needs neither."
        )
    if rule in ("ladder", "optimal"):
        return _tabled(design(records, classes, epsilon, rule=rule), _ASKED)
    named, why = ("permute-and-flip", _LAST) if rule == "best" else (rule, _ASKED)
    return ModeRule(named, records, classes, Guarantee(epsilon), _BY_THEOREM[named], why)


def _any_number(records: int, classes: int, epsilon: float, rule: str) -> ModeRule | None:
    """Return the ladder where it is proved private for every K; None where it is not."""
    ratio = Fraction(*rational_step(epsilon, power=1))
    limits = {"most": QUICK_STATES} if rule == "best" else {}
    if proved_for_any_number(classes, ratio, **limits) is None:
        return None
    proof = prove_ladder(ratio, Guarantee(epsilon), records, classes)
    why = _LEAST if rule == "best" else _ASKED
    return ModeRule("ladder", records, classes, proof.guarantee, proof.claim, why, ratio=ratio)


def _few(records: int, classes: int) -> bool:
    """Return whether the sorted histograms can be tabled in seconds."""
    # Those of two classes are K / 2 + 1 already; permute-and-flip's takes min(C, K)^2 for each.
    small = records <= 2 * _MOST_TABLED and classes <= 50
    many = partition_count(records, classes) if small else _MOST_TABLED + 1
    return many <= _MOST_TABLED and many * min(classes, records) ** 2 <= _MOST_STEPS


def _tabled(made: PluralityDesign, why: str) -> ModeRule:
    setting, proof = made.setting, made.certificate
    if proof is None:
        raise ParameterError("a design without a certificate releases nothing.")
    return ModeRule(
        setting.rule, setting.records, setting.classes, made.guarantee, proof.claim, why, made
    )


def _tallied(data: object, alphabet: object) -> Tally:
    """Return data as counts of letters; counts themselves where no alphabet is given."""
    if isinstance(data, Tally) and alphabet is None:
        counted = data
    elif alphabet is None:
        counts: Any = _checks.array("counts", data)
        if counts.ndim != 1 or counts.size < 2:
            raise ParameterError(
                f"counts has shape {counts.shape}; without an alphabet it must be (C,), a count "
                "for each of at least 2 letters."
            )
        counted = Tally.of_counts(counts, counts.size)
    else:
        counted = tally(data, alphabet)
    if not counted.counts.any():
        raise ParameterError("data holds no records; a mode needs at least one.")
    return counted
