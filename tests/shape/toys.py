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
from functools import cached_property
from typing import Any, ClassVar, Self

from dpopt import Guarantee, NotPrivateError, ParameterError, Problem, Setting, Solution, _checks
from dpopt.privacy import Certificate, exp_lower
from dpopt.shape import _KINDS
from dpopt.table import Graph, Table, certify_table

ONE = 1 << 40
Pair = tuple[int, int]


@dataclass(frozen=True)
class Coin(Setting):
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
    def example_neighbours(cls) -> list[tuple[int, int]]:
        return [(1, 0)]

    @property
    def maximises(self) -> bool:
        return True

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon)

    @cached_property
    def domain(self) -> Graph:
        return Graph(2, 2)

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
        return self.table(Fraction(1))

    def rounded(self, point: Fraction) -> Pair:
        """A truth that is not too likely, and the other answer, over `ONE`."""
        ratio = exp_lower(self.epsilon)
        truth = math.floor(min(point, ratio / (1 + ratio)) * ONE)
        return truth, ONE - truth

    def table(self, point: Fraction) -> Any:
        truth, other = self.rounded(point)
        return Table(self.domain, (truth, other, other, truth), ONE)

    def value(self, table: Any) -> float:
        return table.weights[0] / ONE


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
class Odds(Coin):
    """The coin, of two weights that may have any sum: integers that are no table.

    Attributes:
        epsilon: in (0, 20], in nats.
    """

    kind: ClassVar[str] = "toy-odds"

    epsilon: float

    def table(self, point: Fraction) -> Any:
        truth, other = self.rounded(point)
        return truth // 7, -(-other // 7)

    def judge(self, table: Any) -> Certificate:
        if len(table) != 2 or not all(type(w) is int and w > 0 for w in table):
            raise ParameterError("weights must be two integers above 0.")
        ratio = exp_lower(self.epsilon)
        slack = min(ratio * low - high for low, high in (table, table[::-1])) / sum(table)
        if slack < 0:
            raise NotPrivateError(f"the odds break epsilon = {self.epsilon:g}.")
        return proof_of(self, slack)

    def output_weights(self, table: Any, data: int) -> Sequence[int]:
        return table[::-1] if _checks.integer("data", data, 0, 1) else table

    def value(self, table: Any) -> float:
        return table[0] / sum(table)

    def columns(self, table: Any) -> Mapping[str, Sequence[Any]]:
        return {"output": ["truth", "other"], "weight": list(table)}

    def plain(self, table: Any) -> list[str]:
        return list(map(str, table))

    def read(self, plain: Any) -> Any:
        if not isinstance(plain, list) or len(plain) != 2:
            raise ParameterError("weights must be two integers.")
        return tuple(map(int, plain))


def proof_of(setting: Setting, slack: Fraction) -> Certificate:
    """A certificate that says what it is told."""
    return Certificate("both answers are private", setting.guarantee, 2, slack, "output 0")


# Each is wrong in one way, which a test over kinds has to find.


class Blind(Coin):
    """Its proof checks nothing, and says that much slack is left; no pair could find it out."""

    kind: ClassVar[str] = "toy-blind"

    def judge(self, table: Any) -> Certificate:
        del table
        return proof_of(self, Fraction(1, 2))

    def dominating(self, table: Any) -> Any:
        del table
        raise ParameterError("no pair is known.")


class OtherDraws(Coin):
    """It draws from other integers than it shows."""

    kind: ClassVar[str] = "toy-other-draws"

    def drawn(self, table: Any, data: Any, source: Any) -> Any:
        super().drawn(table, data, source)
        return 0


class Keyed(tuple[int, int]):
    """Weights that are the same to a certificate whatever they are."""

    key = ()


class OtherSubject(Odds):
    """Its certificate is about no integers."""

    kind: ClassVar[str] = "toy-other-subject"

    def table(self, point: Fraction) -> Any:
        return Keyed(super().table(point))

    def read(self, plain: Any) -> Any:
        return Keyed(super().read(plain))


# What they draw from, or promise, is not what was proved.


class OneSided(Coin):
    """Its proof looks at neighbours one way round."""

    kind: ClassVar[str] = "toy-one-sided"

    def table(self, point: Fraction) -> Any:
        del point
        high, low = 9 * ONE // 10, 3 * ONE // 10 + 1
        return Table(self.domain, (high, ONE - high, low, ONE - low), ONE)

    def judge(self, table: Any) -> Certificate:
        ratio, (a, b, c, d) = exp_lower(self.epsilon), table.weights
        return proof_of(self, min(ratio * c - a, ratio * d - b) / ONE)


class OffByOne(Coin):
    """It draws from one unit more than was proved."""

    kind: ClassVar[str] = "toy-off-by-one"

    def output_weights(self, table: Any, data: Any) -> Sequence[int]:
        one, other = super().output_weights(table, data)
        return (one + 1, other - 1) if one > other else (one - 1, other + 1)


class NegativeWeight(Coin):
    """It draws from what is no distribution."""

    kind: ClassVar[str] = "toy-negative-weight"

    def output_weights(self, table: Any, data: Any) -> Sequence[int]:
        return super().output_weights(table, data) if data else (ONE + 1, -1)


class MoreOutputs(Coin):
    """One of its inputs has an output that the other has not."""

    kind: ClassVar[str] = "toy-more-outputs"

    def output_weights(self, table: Any, data: Any) -> Sequence[int]:
        one, other = super().output_weights(table, data)
        return (one, other) if data else (one, other - 1, 1)


class HiddenRatio(Coin):
    """It is proved for 1.01 e^epsilon, and its certificate says e^epsilon."""

    kind: ClassVar[str] = "toy-hidden-ratio"

    def rounded(self, point: Fraction) -> Pair:
        return Coin(self.epsilon + math.log(1.01)).rounded(point)

    def judge(self, table: Any) -> Certificate:
        proof = certify_table(table, Guarantee(self.epsilon + math.log(1.01)))
        return replace(proof, guarantee=self.guarantee)


class NoSignCheck(Odds):
    """Its proof does not ask whether weights are negative."""

    kind: ClassVar[str] = "toy-no-sign-check"

    def judge(self, table: Any) -> Certificate:
        ratio, (high, low) = exp_lower(self.epsilon), table
        if high > ratio * low and low >= 0:
            raise NotPrivateError("the truth is too likely.")
        return proof_of(self, max(ratio * low - high, Fraction(0)) / ONE)


RIGHT = (Coin, Worded, Odds)
_ALL = {name: _KINDS.pop(name) for name in [*_KINDS] if name.startswith("toy-")}


@contextmanager
def registered() -> Iterator[None]:
    """Have the toys among the kinds for a while."""
    _KINDS.update(_ALL)
    try:
        yield
    finally:
        for name in _ALL:
            _KINDS.pop(name, None)
