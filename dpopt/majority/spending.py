"""Private labels for many queries, and what all of them spend together.

What each query spends. Given the data, the K votes on one query are independent, each (epsilon,
Delta)-DP; certified noise makes their majority (m epsilon, delta)-DP. The votes themselves are
never released. The guarantee is about the data behind the voters; the queries are public.

What many queries spend depends on where the votes come from, which the votes do not show; the
caller states it as ``trained_once``.

- False: every vote is drawn afresh. Given the data, votes on different queries are independent
  (randomised response on each prediction, say), and (epsilon, Delta) holds for each vote. The
  queries, even if chosen after seeing earlier labels, then compose: k folds of (m epsilon,
  delta), by theorem 2.2 ("simple") or 2.3 ("general"). All labels are also computed from k K
  votes, so that k K folds of (epsilon, Delta) bound them ("voters-simple", "voters-general"):
  for many queries and m above about sqrt(K), theorem 2.3 makes this the smaller epsilon.
- True: (epsilon, Delta) holds for each trained voter as a whole (DP-SGD, say), with training runs
  independent of each other, and its votes on all queries are computed from it. Whatever the number
  of queries, all labels are computed from K voters: K folds of (epsilon, Delta). Composition over
  queries is NOT valid here, except for a single query: votes on different queries share the
  randomness of training, and given earlier labels the voters are no longer independent, which is
  what the noise was certified for. With the DaRRM paper's own noise function at K = 41, epsilon =
  0.5, m = 1, one query repeated 12 times spends at least 6.048, not 12 m epsilon = 6; a test
  computes it. The totals that the paper prints (K = 11, 20 to 100 queries) do bound such voters,
  since K folds of its (0.0892, 1e-4) are (0.981, 0.0011), below every one of them.

``voters_per_record`` says how many voters a change of the data from x to its neighbour x' can
reach. All K, unless the voters were trained on separate data: only the folds of voters whose law
changes count. On disjoint parts it is 1, and voters trained once spend (epsilon, Delta) together,
even if all their votes were published: parallel composition, and no noise is needed.

Not covered: timing, and whether the voters have the privacy that was stated of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt.majority.setting import MajoritySetting
from dpopt.privacy import Guarantee, general_composition, simple_composition
from dpopt.privacy.exponential import log_upper

SLACK = 1e-6
# Beyond this, counts are not exact in double precision.
MOST_QUERIES = 1 << 53


@dataclass(frozen=True)
class Spending:
    """What the labels of several queries spend together; see the top of this module.

    Attributes:
        setting: the voters, and what one query may spend.
        trained_once: whether (epsilon, Delta) holds for each voter's votes on all queries
            together, or for each vote, drawn afresh.
        slack: the delta' of theorem 2.3, in (0, 1).
        voters_per_record: how many voters a change of the data can reach, in 1..K; K if None.
    """

    setting: MajoritySetting
    trained_once: bool
    slack: float = SLACK
    voters_per_record: int | None = None

    def __post_init__(self) -> None:
        _checks.instance("setting", self.setting, MajoritySetting)
        if not isinstance(self.trained_once, bool | np.bool_):
            raise ParameterError(
                f"trained_once is {_checks.shown(self.trained_once)}; it must be True or False."
            )
        if self.voters_per_record is not None:
            reach = self.voters_per_record
            reach = _checks.integer("voters_per_record", reach, 1, self.setting.mechanisms)
            object.__setattr__(self, "voters_per_record", reach)
        object.__setattr__(self, "trained_once", bool(self.trained_once))
        object.__setattr__(self, "slack", _slack(self.slack))

    @property
    def reach(self) -> int:
        """How many voters a change of the data can reach."""
        reach = self.voters_per_record
        return self.setting.mechanisms if reach is None else reach

    @property
    def voter(self) -> Guarantee:
        """The (epsilon, Delta) of each voter; of voters of several kinds, the largest of each.

        With a voter_ratio, epsilon is its logarithm, rounded up: what the noise was proved for.
        """
        setting = self.setting
        ratio = setting.voter_ratio
        epsilon = setting.epsilon if ratio is None else log_upper(ratio)
        return Guarantee(epsilon, setting.mechanism_delta)

    def compositions(self, queries: int) -> dict[str, Guarantee]:
        """Return every guarantee that is proved for the labels of ``queries`` queries, by name.

        "simple" and "general" compose the queries; "voters-simple" and "voters-general" the
        voters. One whose delta reaches 1 promises nothing and is left out.

        References:
            Theorems 2.2 and 2.3 of the DaRRM paper.
        """
        count = _checks.integer("queries", queries, 1)
        found = {}
        if count == 1 or not self.trained_once:
            found |= _composed(self.setting.guarantee, count, self.slack)
        folds = self.reach * (1 if self.trained_once else count)
        of_voters = _composed(self.voter, folds, self.slack)
        return found | {f"voters-{name}": spent for name, spent in of_voters.items()}

    def total(self, queries: int, budget: Guarantee | None = None) -> tuple[str, Guarantee]:
        """Return the composition with the smallest epsilon, then delta, and its name.

        Args:
            queries: at least 1.
            budget: if given, only compositions within it.

        Raises:
            ParameterError: if there is none.
        """
        found = self.compositions(queries).items()
        kept = [item for item in found if budget is None or _within(item[1], budget)]
        if not kept and budget is not None:
            least = min((spent.epsilon for _, spent in found), default=math.inf)
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


def _composed(guarantee: Guarantee, folds: int, slack: float) -> dict[str, Guarantee]:
    """Return the compositions that promise something, by name; all parameters are checked."""
    found = {}
    with suppress(ParameterError):
        found["simple"] = simple_composition(guarantee, folds)
    with suppress(ParameterError):
        found["general"] = general_composition(guarantee, folds, slack)
    return found


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
