"""Toy kinds: right ones with an optimum known by hand, and one for each way of being wrong.

They are taken out of the registry again, and put back by the fixture `registered` alone, so that
tests over all kinds do not depend on which files were imported before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpopt import (
    Design,
    Guarantee,
    NotPrivateError,
    ParameterError,
    Problem,
    Setting,
    Solution,
    _checks,
)
from dpopt.privacy import Certificate, certify_kernel, exp_lower
from dpopt.shape import _KINDS

BITS = 40
Units = tuple[int, ...]


@dataclass(frozen=True)
class Coin(Setting[Design]):
    """A yes or no is told truthfully with probability p (Warner 1965).

        maximise   p
        subject to p <= e^epsilon (1 - p)    "privacy"

    with the optimum p = e^epsilon / (1 + e^epsilon).

    Attributes:
        epsilon: in (0, 20], in nats.
    """

    kind: ClassVar[str] = "toy-coin"

    epsilon: float

    def __post_init__(self) -> None:
        self.keep(epsilon=_checks.real("epsilon", self.epsilon, 0.0, 20.0, open_lower=True))

    @classmethod
    def example(cls) -> Self:
        return cls(math.log(3))

    @classmethod
    def example_data(cls) -> int:
        return 1

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        return [(0, 1)]

    @property
    def maximises(self) -> bool:
        return True

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon)

    def problem(self) -> Problem:
        problem = Problem(self.kind)
        problem.add_variables("p", 1, lower=0.0, upper=1.0)
        ratio = math.exp(self.epsilon)
        problem.add_rows("privacy", {"p": [[1.0 + ratio]]}, upper=ratio)
        problem.maximise({"p": [1.0]})
        return problem

    def point(self, solution: Solution) -> Fraction:
        return Fraction(float(solution["p"][0]))

    def closed_form(self) -> Any:
        ratio = exp_lower(self.epsilon)
        return self.units(ratio / (1 + ratio))

    def units(self, point: Fraction) -> Units:
        ratio = exp_lower(self.epsilon)
        truth = math.floor(min(point, ratio / (1 + ratio)) * (1 << BITS))
        return truth, (1 << BITS) - truth

    def prove(self, units: Units) -> Certificate:
        return certify_kernel([units, units[::-1]], BITS, self.guarantee)

    def law(self, units: Units, data: int) -> Sequence[int]:
        if _checks.integer("data", data, 0, 1):
            return units[::-1]
        return units

    def value(self, units: Units) -> float:
        return units[0] / (1 << BITS)


@dataclass(frozen=True)
class Worded(Coin):
    """The coin; it answers in words.

    Attributes:
        epsilon: in (0, 20], in nats.
    """

    kind: ClassVar[str] = "toy-worded"

    epsilon: float

    def output(self, place: int) -> str:
        return ("no", "yes")[place]


@dataclass(frozen=True)
class Published(Coin):
    """A published rule: the truth is told with probability ``truth``, whatever epsilon is.

    Attributes:
        epsilon: in (0, 20], in nats.
        truth: in [1/2, 1).
    """

    kind: ClassVar[str] = "toy-published"

    epsilon: float
    truth: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        self.keep(truth=_checks.real("truth", self.truth, 0.5, 1.0, open_upper=True))

    @property
    def may_fail(self) -> bool:
        return True

    def problem(self) -> Problem:
        problem = Problem(self.kind)
        problem.add_variables("p", 1, lower=0.0, upper=1.0)
        problem.add_rows("rule", {"p": [[1.0]]}, lower=self.truth, upper=self.truth)
        problem.maximise({"p": [1.0]})
        return problem

    def closed_form(self) -> Any:
        return self.units(Fraction(self.truth))

    def units(self, point: Fraction) -> Units:
        truth = math.floor(point * (1 << BITS))
        return truth, (1 << BITS) - truth


@dataclass(frozen=True)
class Odds(Coin):
    """The coin, of two weights that may have any sum.

    Attributes:
        epsilon: in (0, 20], in nats.
    """

    kind: ClassVar[str] = "toy-odds"

    epsilon: float

    def units(self, point: Fraction) -> Units:
        odds = min(point / (1 - point), exp_lower(self.epsilon))
        return math.floor(odds * 10**12), 10**12

    def prove(self, units: Units) -> Certificate:
        if len(units) != 2 or not all(type(w) is int and w > 0 for w in units):
            raise ParameterError("units must be two integers above 0.")
        ratio = exp_lower(self.epsilon)
        slack = min(ratio * low - high for low, high in (units, units[::-1])) / sum(units)
        if slack < 0:
            raise NotPrivateError(f"the odds break epsilon = {self.epsilon:g}.")
        return Certificate(
            claim="both answers are private",
            guarantee=self.guarantee,
            ratio=ratio,
            constraints=2,
            slack=slack,
            tightest="inputs 0 and 1, output 0",
            arithmetic="exact integers",
            bits=0,
        )

    def value(self, units: Units) -> float:
        return units[0] / sum(units)


# Each is wrong in one way, which a test over kinds has to find.


@dataclass(frozen=True)
class OtherOptimum(Coin):
    """Its closed form is not the optimum of its program."""

    kind: ClassVar[str] = "toy-other-optimum"

    def closed_form(self) -> Any:
        return self.units(Fraction(7, 10))


@dataclass(frozen=True)
class LenientProof(Coin):
    """Its proof looks at nothing."""

    kind: ClassVar[str] = "toy-lenient"

    def prove(self, units: Units) -> Certificate:
        del units
        return super().prove(self.closed_form())


@dataclass(frozen=True)
class Blind(Coin):
    """Its proof checks nothing, and says that much room is left."""

    kind: ClassVar[str] = "toy-blind"
    slack: ClassVar[Fraction] = Fraction(1, 2)

    def prove(self, units: Units) -> Certificate:
        del units
        return Certificate(
            claim="all is private",
            guarantee=self.guarantee,
            ratio=exp_lower(self.epsilon),
            constraints=1,
            slack=self.slack,
            tightest="",
            arithmetic="exact integers",
            bits=BITS,
        )


@dataclass(frozen=True)
class Unlooked(Blind):
    """Its proof computes a slack below 0, and does not look at it."""

    kind: ClassVar[str] = "toy-unlooked"
    slack: ClassVar[Fraction] = Fraction(-1, 1000)

    epsilon: float


@dataclass(frozen=True)
class OtherLaw(Coin):
    """It draws from other integers than it shows."""

    kind: ClassVar[str] = "toy-other-law"
    answer: ClassVar[type[Design]]

    def law(self, units: Units, data: int) -> Sequence[int]:
        return super().law(units, data)


class Biased(Design):
    """Draws that are not from the law."""

    def release(self, data: object = None, **named: Any) -> Any:
        super().release(data, **named)
        return 0


OtherLaw.answer = Biased


@dataclass(frozen=True)
class Forgetful(Coin):
    """Its file does not hold its parameter."""

    kind: ClassVar[str] = "toy-forgetful"

    epsilon: float = 2.0

    def to_dict(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Unchecked(Coin):
    """It takes any value for a parameter."""

    kind: ClassVar[str] = "toy-unchecked"

    def __post_init__(self) -> None:
        pass


@dataclass(frozen=True)
class OtherBound(Coin):
    """Its bound is one that its own value breaks."""

    kind: ClassVar[str] = "toy-other-bound"

    def bound(self, units: Units, solution: Solution | None) -> float:
        del solution
        return self.value(units) - 0.1


@dataclass(frozen=True)
class OtherSubject(Coin):
    """Its certificate is about no integers."""

    kind: ClassVar[str] = "toy-other-subject"

    def subject(self, units: Units) -> tuple[object, ...]:
        del units
        return self.kind, self


@dataclass(frozen=True)
class Careless(Coin):
    """It reads units of a file without a look at them, and says so with any error."""

    kind: ClassVar[str] = "toy-careless"

    def prove(self, units: Units) -> Certificate:
        return super().prove((units[0] + 0, units[1] + 0))


@dataclass(frozen=True)
class LessProved(Coin):
    """It promises more than it proves."""

    kind: ClassVar[str] = "toy-less-proved"

    def prove(self, units: Units) -> Certificate:
        return Coin(2 * self.epsilon).prove(units)


# What they draw from, or promise, is not what was proved.

ONE = 1 << BITS


@dataclass(frozen=True)
class OneSided(Coin):
    """Its proof looks at neighbours one way round."""

    kind: ClassVar[str] = "toy-one-sided"

    def units(self, point: Fraction) -> Units:
        del point
        return 9 * ONE // 10, 3 * ONE // 10 + 1

    def _rows(self, units: Units) -> list[Units]:
        return [(weight, ONE - weight) for weight in units]

    def prove(self, units: Units) -> Certificate:
        return certify_kernel(self._rows(units), BITS, self.guarantee, pairs=[(0, 1)], one_way=True)

    def law(self, units: Units, data: int) -> Sequence[int]:
        return self._rows(units)[_checks.integer("data", data, 0, 1)]


@dataclass(frozen=True)
class OffByOne(Coin):
    """It draws from one unit more than was proved."""

    kind: ClassVar[str] = "toy-off-by-one"

    def law(self, units: Units, data: int) -> Sequence[int]:
        return super().law((units[0] + 1, units[1] - 1), data)


@dataclass(frozen=True)
class NegativeWeight(Coin):
    """It draws from what is no law."""

    kind: ClassVar[str] = "toy-negative-weight"

    def law(self, units: Units, data: int) -> Sequence[int]:
        return super().law(units, data) if data else (ONE + 1, -1)


@dataclass(frozen=True)
class MoreOutputs(Coin):
    """One of its inputs has an output that the other has not."""

    kind: ClassVar[str] = "toy-more-outputs"

    def law(self, units: Units, data: int) -> Sequence[int]:
        law = super().law(units, data)
        return law if data else (law[0], law[1] - 1, 1)


@dataclass(frozen=True)
class LooseRatio(Coin):
    """It is proved for 1.01 e^epsilon, and its certificate says so."""

    kind: ClassVar[str] = "toy-loose-ratio"

    def _ratio(self) -> Fraction:
        return exp_lower(self.epsilon) * Fraction(101, 100)

    def units(self, point: Fraction) -> Units:
        del point
        truth = math.floor(self._ratio() / (1 + self._ratio()) * ONE)
        return truth, ONE - truth

    def prove(self, units: Units) -> Certificate:
        ratio = self._ratio()
        proof = Coin(math.log(ratio) + 1e-9).prove(units)
        return replace(proof, guarantee=self.guarantee, ratio=ratio)


@dataclass(frozen=True)
class HiddenRatio(LooseRatio):
    """It is proved for 1.01 e^epsilon, and its certificate says e^epsilon."""

    kind: ClassVar[str] = "toy-hidden-ratio"

    def prove(self, units: Units) -> Certificate:
        proof = Coin(math.log(self._ratio()) + 1e-9).prove(units)
        return replace(proof, guarantee=self.guarantee, ratio=exp_lower(self.epsilon))


@dataclass(frozen=True)
class NoSignCheck(Coin):
    """Its proof does not ask whether weights are negative."""

    kind: ClassVar[str] = "toy-no-sign-check"

    def prove(self, units: Units) -> Certificate:
        if len(units) != 2 or sum(units) != ONE:
            raise ParameterError("units must be two integers of the right sum.")
        ratio, (high, low) = exp_lower(self.epsilon), units
        if high > ratio * low and low >= 0:
            raise NotPrivateError("the truth is too likely.")
        return Certificate(
            claim="the coin is private",
            guarantee=self.guarantee,
            ratio=ratio,
            constraints=1,
            slack=max(ratio * low - high, Fraction(0)) / ONE,
            tightest="inputs 0 and 1",
            arithmetic="exact integers",
            bits=BITS,
        )


@dataclass(frozen=True)
class Unnamed(Coin):
    """It names no neighbours."""

    kind: ClassVar[str] = "toy-unnamed"

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        return []


NOT_WHAT_WAS_PROVED = (
    *(OneSided, OffByOne, NegativeWeight, MoreOutputs, LooseRatio, HiddenRatio, NoSignCheck),
)
RIGHT = (Coin, Worded, Published, Odds)
WRONG = (
    *(OtherOptimum, LenientProof, Blind, OtherLaw, Forgetful, Unchecked),
    *(OtherBound, OtherSubject),
)
OTHERS = (Unlooked, Careless, LessProved, Unnamed)
_ALL: Mapping[str, type[Setting[Any]]] = {
    kind.kind: _KINDS.pop(kind.kind) for kind in (*RIGHT, *WRONG, *NOT_WHAT_WAS_PROVED, *OTHERS)
}


@contextmanager
def registered() -> Iterator[None]:
    """Have the toys among the kinds for a while."""
    _KINDS.update(_ALL)
    try:
        yield
    finally:
        for name in _ALL:
            _KINDS.pop(name, None)
