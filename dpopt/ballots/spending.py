"""What the private labels of several queries spend together: private voters, and plain ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, float_up
from dpopt._types import Json
from dpopt.privacy import Guarantee, general_composition, simple_composition
from dpopt.privacy.composed import optimal

SLACK = 1e-6
# Beyond this, counts are not exact in double precision.
MOST_QUERIES = 1 << 53
_WORTH = 0.99


@runtime_checkable
class PrivateVoters(Protocol):
    """A setting of K voters, each private itself: a majority's, or of any number of classes."""

    @property
    def mechanisms(self) -> int:
        """K."""
        ...

    @property
    def epsilon(self) -> float:
        """Of each voter, in nats."""
        ...

    @property
    def mechanism_delta(self) -> float:
        """Delta of each voter."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What one label spends, where the votes are independent given the data."""
        ...


@runtime_checkable
class PlainVoters(Protocol):
    """A setting of K ballots, not private themselves, of which a neighbour replaces one."""

    @property
    def records(self) -> int:
        """K."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What one label spends, where one ballot is replaced."""
        ...


class LabelSpending(ABC):
    """How the labels of several queries compose; `Spending` or `BallotSpending`."""

    slack: float

    @property
    @abstractmethod
    def per_query(self) -> Guarantee:
        """What one query spends."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many voters a change of the data can reach."""

    @abstractmethod
    def compositions(self, queries: int) -> dict[str, Guarantee]:
        """Return every guarantee that is proved for the labels of ``queries`` queries, by name."""

    @abstractmethod
    def facts(self) -> Json:
        """Return what was stated of the voters, as plain values."""

    def total(self, queries: int, budget: Guarantee | None = None) -> tuple[str, Guarantee]:
        """Return the composition with the smallest epsilon, then delta, and its name.

        Args:
            queries: at least 1.
            budget: if given, only compositions within it.

        Raises:
            ParameterError: if there is none.
        """
        spends = self.compositions(queries).items()
        kept = [item for item in spends if budget is None or _within(item[1], budget)]
        if not kept and budget is not None:
            least = min((spent.epsilon for _, spent in spends), default=math.inf)
            raise ParameterError(
                f"queries is {queries}, those answered before included; the budget of epsilon "
                f"{digits(budget.epsilon)} and delta {digits(budget.delta)} affords "
                f"{self.affordable(budget)}, and {queries} spend an epsilon of at least "
                f"{digits(least)}."
            )
        if not kept:
            raise ParameterError(
                f"queries is {queries}, those answered before included; every composition of so "
                "many reaches a delta of 1, which promises nothing."
            )
        return min(kept, key=lambda item: (item[1].epsilon, item[1].delta))

    def affordable(self, budget: Guarantee) -> int:
        """Return the largest number of queries with a composition within ``budget``.

        0 if there is none, `MOST_QUERIES` if there are that many.
        """
        return _most(
            lambda count: any(_within(g, budget) for g in self.compositions(count).values())
        )


@dataclass(frozen=True)
class Spending(LabelSpending):
    """What the labels of several queries spend together, where each voter is private itself.

    What each query spends. Given the data, the K votes on one query are independent, each (epsilon,
    Delta)-DP; certified noise makes their majority, or their plurality of C classes, (m epsilon,
    delta)-DP. The votes themselves are never released. The guarantee is about the data behind the
    voters; the queries are public.

    What many queries spend depends on where the votes come from, which the votes do not show; the
    caller states it as ``trained_once``.

    - False: every vote is drawn afresh. Given the data, votes on different queries are independent
      (randomised response on each prediction, say), and (epsilon, Delta) holds for each vote. The
      queries, even if chosen after seeing earlier labels, then compose: k folds of (m epsilon,
      delta), by theorem 2.2 ("simple") or 2.3 ("general"). All labels are also computed from k K
      votes, so that k K folds of (epsilon, Delta) bound them ("voters-simple", "voters-general"):
      for many queries and m above about sqrt(K), theorem 2.3 makes this the smaller epsilon.
    - True: (epsilon, Delta) holds for each trained voter as a whole (DP-SGD, say), with training
      runs independent of each other, and its votes on all queries are computed from it. Whatever
      the number of queries, all labels are computed from K voters: K folds of (epsilon, Delta).
      Composition over queries is NOT valid here, except for a single query: votes on different
      queries share the randomness of training, and given earlier labels the voters are no longer
      independent, which is what the noise was certified for. With the DaRRM paper's own noise
      function at K = 41, epsilon = 0.5, m = 1, one query repeated 12 times spends at least 6.048,
      not 12 m epsilon = 6; a test computes it. The totals that the paper prints (K = 11, 20 to 100
      queries) do bound such voters, since K folds of its (0.0892, 1e-4) are (0.981, 0.0011), below
      every one of them.

    ``voters_per_record`` says how many voters a change of the data from x to its neighbour x' can
    reach. All K, unless the voters were trained on separate data: only the folds of voters whose
    law changes count. On disjoint parts it is 1, and voters trained once spend (epsilon, Delta)
    together, even if all their votes were published: parallel composition, and no noise is needed.

    Not covered: timing, and whether the voters have the privacy that was stated of them.

    Attributes:
        setting: the voters, and what one query may spend.
        trained_once: whether (epsilon, Delta) holds for each voter's votes on all queries
            together, or for each vote, drawn afresh.
        slack: the delta' of theorem 2.3, in (0, 1).
        voters_per_record: how many voters a change of the data can reach, in 1..K; K if None.
    """

    setting: PrivateVoters
    trained_once: bool
    slack: float = SLACK
    voters_per_record: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.setting, PrivateVoters):
            raise ParameterError(
                f"setting is {_checks.shown(self.setting)}; it must be of voters that are private."
            )
        if self.voters_per_record is not None:
            reach = self.voters_per_record
            reach = _checks.integer("voters_per_record", reach, 1, self.setting.mechanisms)
            object.__setattr__(self, "voters_per_record", reach)
        object.__setattr__(self, "trained_once", _checks.flag("trained_once", self.trained_once))
        object.__setattr__(self, "slack", _slack(self.slack))

    @property
    def per_query(self) -> Guarantee:
        """What one query spends: (m epsilon, delta)."""
        return self.setting.guarantee

    @property
    def reach(self) -> int:
        """How many voters a change of the data can reach."""
        reach = self.voters_per_record
        return self.setting.mechanisms if reach is None else reach

    @property
    def voter(self) -> Guarantee:
        """The (epsilon, Delta) of each voter."""
        return Guarantee(self.setting.epsilon, self.setting.mechanism_delta)

    def compositions(self, queries: int) -> dict[str, Guarantee]:
        """Return every guarantee that is proved for the labels of ``queries`` queries, by name.

        "simple" and "general" compose the queries; "voters-simple" and "voters-general" the
        voters. One whose delta reaches 1 promises nothing and is left out.

        References:
            Theorems 2.2 and 2.3 of the DaRRM paper.
        """
        count = _checks.integer("queries", queries, 1)
        composed = {}
        if count == 1 or not self.trained_once:
            composed |= _composed(self.setting.guarantee, count, self.slack)
        folds = self.reach * (1 if self.trained_once else count)
        of_voters = _composed(self.voter, folds, self.slack)
        return composed | {f"voters-{name}": spent for name, spent in of_voters.items()}

    def facts(self) -> Json:
        """Return what was stated of the voters, as plain values."""
        return {
            "trained_once": self.trained_once,
            "voters_per_record": self.reach,
            "slack": self.slack,
        }


@dataclass(frozen=True)
class BallotSpending(LabelSpending):
    """What the labels of several queries spend together, where the voters are not private.

    The data model. The data are records, and neighbours replace one record by another. K voters
    each cast one ballot on every query. In the simplest case a voter *is* a record: a person's own
    answer. Else a voter is a teacher that was trained on a part of the data, and the parts are
    disjoint, chosen without looking at the records (a replaced record stays in its part). Then a
    record reaches one voter, and with it one ballot of each query. How its training uses the
    record, and how all ballots of that voter follow from it, is not restricted; randomness of
    training is independent between voters.

    What each query spends. The label is epsilon-DP when one ballot is replaced, whatever the other
    ballots are. Its noise is drawn afresh for each query, so that queries compose, also if chosen
    after seeing earlier labels: for fixed randomness of training the ballots on any query are a
    function of the data, and a mixture over that randomness, which does not depend on the data,
    keeps the guarantee. k queries are k folds of epsilon, by theorem 2.2 ("simple"), 2.3
    ("general"), or exactly that of the worst mechanisms ("optimal"). All three hold where queries
    are chosen after seeing earlier labels, since k and epsilon are fixed: Kairouz, Oh and
    Viswanath's experiment lets the adversary choose every mechanism and data set by what it saw,
    but not what each may spend. Who stops after fewer queries sees a part of what k give.

    ``voters_per_record`` is 1 for disjoint parts. If a record can reach t voters (parts that
    overlap in t, or a person with t records), each query spends t epsilon: t steps of one replaced
    ballot each.

    Not covered: timing; parts that were chosen by what the records say; and records that are added
    or removed, where this changes the parts of others.

    Attributes:
        setting: the ballots, and what one query may spend.
        slack: the delta' of theorem 2.3, in (0, 1).
        voters_per_record: how many voters a replaced record can reach, in 1..K.
    """

    setting: PlainVoters
    slack: float = SLACK
    voters_per_record: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.setting, PlainVoters):
            raise ParameterError(
                f"setting is {_checks.shown(self.setting)}; it must be of ballots of which a "
                "neighbour replaces one."
            )
        reach = _checks.integer(
            "voters_per_record", self.voters_per_record, 1, self.setting.records
        )
        if reach > 1 and self.setting.guarantee.delta > 0.0:
            raise ParameterError(
                f"voters_per_record is {reach}; it must be 1 where a label has a delta."
            )
        object.__setattr__(self, "voters_per_record", reach)
        object.__setattr__(self, "slack", _slack(self.slack))

    @property
    def per_query(self) -> Guarantee:
        """What one query spends: t epsilon."""
        each = self.setting.guarantee
        return Guarantee(float_up(self.reach * Fraction(each.epsilon)), each.delta)

    @property
    def reach(self) -> int:
        """How many voters a replaced record can reach, t."""
        return self.voters_per_record

    def compositions(self, queries: int) -> dict[str, Guarantee]:
        """Return the compositions of ``queries`` queries: "simple", "general" and "optimal".

        "optimal" is for pure labels, and at most `composed.MOST_OUTCOMES` of them; its delta is the
        slack, and it is left out where it saves less than a hundredth of the epsilon. One whose
        delta reaches 1 promises nothing and is left out.

        References:
            Theorems 2.2 and 2.3 of the DaRRM paper, stated there for any mechanisms; Kairouz, Oh,
            Viswanath (2015), theorem 3.3.
        """
        count = _checks.integer("queries", queries, 1)
        found = _composed(self.per_query, count, self.slack)
        if self.per_query.delta == 0.0:
            exact = optimal([(self.per_query, count)], self.slack)
            # For a few queries a delta buys next to nothing.
            if exact is not None and exact.epsilon < _WORTH * found["simple"].epsilon:
                found["optimal"] = exact
        return found

    def facts(self) -> Json:
        """Return what was stated of the voters, as plain values."""
        return {"voters_per_record": self.reach, "slack": self.slack}


def affordable_queries(per_query: Guarantee, budget: Guarantee, slack: float = SLACK) -> int:
    """Return the largest number of queries whose simple or general composition is within budget.

    That number k fits and k + 1 does not, as `simple_composition` and `general_composition` round,
    which is up: the float 0.1 is above 1/10, so a budget of 1 affords nine queries of it. 0 if not
    even one fits, `MOST_QUERIES` if that many do.

    Args:
        per_query: of each query; the queries' randomness must be independent given the data.
        budget: an upper bound on epsilon and on delta.
        slack: the delta' of theorem 2.3, in (0, 1).

    References:
        Theorems 2.2 and 2.3 of the DaRRM paper.
    """
    _checks.instance("per_query", per_query, Guarantee)
    _checks.instance("budget", budget, Guarantee)
    slack = _slack(slack)
    return _most(
        lambda count: any(
            _within(spent, budget) for spent in _composed(per_query, count, slack).values()
        )
    )


def label_delta(allowance: float, mechanism_delta: float, delta: float | None) -> float:
    """Return the delta of one label of private voters: max(m, 1) mechanism_delta if None."""
    if delta is not None:
        return delta
    m = _checks.real("allowance", allowance, 0.0, open_lower=True)
    return max(m, 1.0) * _checks.real("mechanism_delta", mechanism_delta, 0.0, 1.0)


def _composed(guarantee: Guarantee, folds: int, slack: float) -> dict[str, Guarantee]:
    """Return the compositions that promise something, by name; all parameters are checked."""
    composed = {}
    with suppress(ParameterError):
        composed["simple"] = simple_composition(guarantee, folds)
    with suppress(ParameterError):
        composed["general"] = general_composition(guarantee, folds, slack)
    return composed


def _most(fits: Callable[[int], bool]) -> int:
    """Return k in 0..MOST_QUERIES with fits(k) and not fits(k + 1), by bisection."""
    low, high = 0, 1
    while high <= MOST_QUERIES and fits(high):
        low, high = high, 2 * high
    if high > MOST_QUERIES:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _within(spent: Guarantee, budget: Guarantee) -> bool:
    return spent.epsilon <= budget.epsilon and spent.delta <= budget.delta


def _slack(slack: float) -> float:
    return _checks.real("slack", slack, 0.0, 1.0, open_lower=True, open_upper=True)
