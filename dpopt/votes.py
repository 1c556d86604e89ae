"""Private labels for a batch of queries, and what they spend together."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, float_up
from dpopt._types import IntVector, brief
from dpopt.majority.setting import Majority
from dpopt.multiclass.setting import Multiclass
from dpopt.plurality import Counts
from dpopt.plurality.setting import Plurality
from dpopt.privacy import Guarantee, general_composition, simple_composition
from dpopt.privacy.guarantee import optimal_composition
from dpopt.shape import Design, design

VoteSetting = Majority | Multiclass | Plurality

# Delta of advanced composition, where no other is asked for.
SLACK = 1e-6
MOST_QUERIES = 1 << 53
"""Beyond this, counts are not exact in double precision."""


@dataclass(frozen=True)
class Spending:
    """What the labels of several queries spend together.

    **Private voters** (`dpopt.majority`, `dpopt.multiclass`). Given the data, the K votes on one
    query are independent, each (epsilon, Delta)-DP; the label is (m epsilon, delta)-DP. Neighbours
    differ in the data behind the voters; queries are public. The caller says where votes come from:

    - ``trained_once=False``: every vote is drawn afresh (randomised response on each prediction,
      say), and (epsilon, Delta) holds for each vote. Queries, even if chosen after seeing earlier
      labels, compose: k folds of (m epsilon, delta), by theorem 2.2 ("simple") or 2.3 ("general").
      k K folds of (epsilon, Delta) bound them, too ("voters-simple", "voters-general"). A setting
      of k releases has one guarantee for k queries; every further k spend it again.
    - ``trained_once=True``: (epsilon, Delta) holds for each trained voter as a whole (DP-SGD, say),
      with training runs independent of each other. All labels are computed from K voters: K folds
      of (epsilon, Delta). Composition over queries is NOT valid here, except for a single query:
      given earlier labels the voters are no longer independent. At K = 41, epsilon = 0.5, m = 1,
      one query repeated 12 times spends at least 6.048, not 12 m epsilon = 6; a test computes it.

    ``voters_per_record`` says how many voters a change of the data can reach: all K, unless they
    were trained on separate data. On disjoint parts it is 1, and voters trained once spend
    (epsilon, Delta) together, even if all votes were published: no noise is needed.

    **Plain voters** (`dpopt.plurality`). Neighbours replace one record, and a voter is a record, or
    a teacher that was trained on one of disjoint parts, chosen without looking at the records. Then
    a record reaches one ballot of each query, and the label is epsilon-DP. Noise is drawn afresh: k
    queries, also if chosen after seeing earlier labels, are k folds of epsilon, by theorem 2.2
    ("simple"), 2.3 ("general"), or exactly that of the worst mechanisms ("optimal"). If a record
    can reach t voters, ``voters_per_record`` is t and each query spends t epsilon.

    Not covered: timing; whether private voters have the privacy that was stated of them; and
    records that are added or removed, where this changes the parts of others.

    Attributes:
        setting: the voters, and what one query may spend.
        trained_once: of private voters, without a default; None of others.
        slack: the delta' of theorem 2.3, in (0, 1).
        voters_per_record: in 1..K; None is all K that are private, and one plain one.

    Raises:
        ParameterError: for a parameter out of range.

    References:
        Theorems 2.2 and 2.3 of the DaRRM paper; Kairouz, Oh, Viswanath (2015), theorem 3.3.
    """

    setting: VoteSetting
    trained_once: bool | None = None
    slack: float = SLACK
    voters_per_record: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.setting, VoteSetting):
            raise ParameterError(
                f"setting is {_checks.shown(self.setting)}; it must be that of a majority or a "
                "plurality."
            )
        slack = _checks.real("slack", self.slack, 0.0, 1.0, open_lower=True, open_upper=True)
        object.__setattr__(self, "slack", slack)
        if isinstance(self.setting, Plurality):
            if self.trained_once is not None:
                raise ParameterError(
                    f"trained_once is {_checks.shown(self.trained_once)}; it belongs to private "
                    "voters, and only there."
                )
            voters, reach = self.setting.records, 1
        else:
            once = _checks.flag("trained_once", self.trained_once)
            object.__setattr__(self, "trained_once", once)
            voters = reach = self.setting.voters
        if self.voters_per_record is not None:
            reach = _checks.integer("voters_per_record", self.voters_per_record, 1, voters)
        object.__setattr__(self, "voters_per_record", reach)

        beyond_one_plain = isinstance(self.setting, Plurality) and reach > 1
        if self.setting.releases > 1 and (self.trained_once or beyond_one_plain):
            raise ParameterError(
                f"releases is {self.setting.releases}; labels that were designed together are of "
                "votes drawn afresh, trained_once=False, or of plain voters of whom a record "
                "reaches one. For others, design one release."
            )

    @property
    def reach(self) -> int:
        """How many voters a change of the data can reach."""
        return self.voters_per_record or 1

    @property
    def per_query(self) -> Guarantee:
        """What one query spends: (m epsilon, delta) of private voters, t epsilon of plain ones.

        Of a setting of k releases, what k queries spend together.
        """
        each = self.setting.guarantee
        if not isinstance(self.setting, Plurality):
            return each
        return Guarantee(float_up(self.reach * Fraction(each.epsilon)), each.delta)

    def compositions(self, queries: int) -> dict[str, Guarantee]:
        """Return every guarantee that is proved for the labels of ``queries`` queries, by name.

        "simple" and "general" compose the queries; of private voters "voters-simple" and
        "voters-general" the voters; of plain ones "optimal" the queries, if they are fewer than
        `guarantee.MOST_FOLDS`, where it saves a hundredth of the epsilon; its delta is the slack.
        One whose delta reaches 1 promises nothing and is left out.
        """
        count = _checks.integer("queries", queries, 1)
        base, totals = self.setting.behind, dict[str, Guarantee]()
        times = -(-count // self.setting.releases)
        if count == 1 or not self.trained_once:
            totals |= self._composed("", self.per_query, times)
        if base is not None:
            folds = self.reach * (1 if self.trained_once else count)
            return totals | self._composed("voters-", base[0], folds)
        exact = optimal_composition(self.per_query, times, self.slack)
        # For a few queries a delta buys next to nothing: "optimal" must save 1% to be worth it.
        if exact is not None and exact.epsilon < 0.99 * totals["simple"].epsilon:
            totals["optimal"] = exact
        return totals

    def _composed(self, of: str, guarantee: Guarantee, folds: int) -> dict[str, Guarantee]:
        guarantees = {}
        with suppress(ParameterError):
            guarantees[f"{of}simple"] = simple_composition(guarantee, folds)
        with suppress(ParameterError):
            guarantees[f"{of}general"] = general_composition(guarantee, folds, self.slack)
        return guarantees

    def total(self, queries: int, budget: Guarantee | None = None) -> tuple[str, Guarantee]:
        """Return the composition with the smallest epsilon, then delta, and its name.

        Args:
            queries: at least 1.
            budget: if given, only compositions within it.

        Raises:
            ParameterError: if there is none.
        """
        spends = self.compositions(queries).items()
        affordable = [item for item in spends if budget is None or _within(item[1], budget)]
        if affordable:
            return min(affordable, key=lambda item: (item[1].epsilon, item[1].delta))
        said = f"queries is {queries}, those answered before included; "
        if budget is None:
            raise ParameterError(
                f"{said}every composition of so many reaches a delta of 1, which promises nothing."
            )
        least = min((spent.epsilon for _, spent in spends), default=math.inf)
        raise ParameterError(
            f"{said}the budget of epsilon {digits(budget.epsilon)} and delta "
            f"{digits(budget.delta)} affords {self.affordable(budget)}, and {queries} spend an "
            f"epsilon of at least {digits(least)}."
        )

    def affordable(self, budget: Guarantee) -> int:
        """Return the largest number of queries with a composition within ``budget``.

        0 if there is none, `MOST_QUERIES` if there are that many. Compositions are rounded up: the
        float 0.1 is above 1/10, so that a budget of 1 affords nine queries of it.
        """
        _checks.instance("budget", budget, Guarantee)

        def fits(count: int) -> bool:
            return any(_within(spent, budget) for spent in self.compositions(count).values())

        counts = range(1, MOST_QUERIES + 1)
        return bisect_left(counts, True, key=lambda count: not fits(count))


def _within(spent: Guarantee, budget: Guarantee) -> bool:
    return spent.epsilon <= budget.epsilon and spent.delta <= budget.delta


@dataclass(frozen=True)
class VoteBatch:
    """Private labels of a batch of queries, and what they spend.

    Attributes:
        labels: 0..C-1 for each query, shape (queries,), read-only.
        design: the certified mechanism that they were drawn with.
        spending: how queries compose.
        composition: name of the one with the smallest epsilon within the budget.
        total: what all queries so far spend together, by it.
        answered: number of queries answered before this batch, over the same data.
    """

    labels: IntVector
    design: Design
    spending: Spending
    composition: str
    total: Guarantee
    answered: int = 0

    def __repr__(self) -> str:
        return brief(self, labels=self.labels, total=self.total, composition=self.composition)

    @property
    def queries(self) -> int:
        """Number of queries in this batch."""
        return self.labels.size

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the number of each query and its label as one tidy table."""
        last = self.answered + self.queries
        return {"query": list(range(self.answered, last)), "label": self.labels.tolist()}


def vote(
    mechanism: VoteSetting | Design,
    votes: npt.ArrayLike | None = None,
    *,
    counts: npt.ArrayLike | None = None,
    trained_once: bool | None = None,
    voters_per_record: int | None = None,
    slack: float = SLACK,
    answered: int = 0,
    budget: Guarantee | None = None,
) -> VoteBatch:
    """Return private labels for a batch of queries, drawn with the system's randomness.

    Nothing is drawn before the mechanism is certified and the whole batch is known to be
    affordable. `Spending` explains what the labels spend together. For experiments a design
    has `simulate`, with a seed, which is not private.

    Args:
        mechanism: a certified majority or plurality, or the setting of one, which is then designed.
        votes: in 0..C-1, shape (queries, K) or (K,): an array, nested lists, or a frame.
        counts: for a `Plurality` only, in place of ``votes``: the number of votes of each class,
            shape (queries, C) or (C,).
        trained_once: True if the voters are models that were trained once and answer every query,
            False if they draw new noise for each; required for private voters, see `Spending`.
        voters_per_record: how many voters a change of the data can reach, see `Spending`.
        slack: the delta that advanced composition may add (delta' in theorem 2.3 of the DaRRM
            paper), in (0, 1).
        answered: number of queries answered earlier over the same data, with the same setting.
        budget: the most that these earlier queries and this batch may spend together; None for no
            limit.

    Raises:
        ParameterError: for votes or counts of another shape or other values, a parameter out of
            range, or a batch beyond the budget; it says how many queries are affordable. A refusal
            of a vote's value reveals something about the data and is not private: map all votes to
            0..C-1 before.
        NotPrivateError: if the design has no certificate.

    Example:
        >>> from dpopt import vote
        >>> from dpopt import Plurality
        >>> votes = [[2, 2, 2, 0, 1, 2], [0, 1, 0, 0, 1, 0]]
        >>> batch = vote(Plurality(6, 3, epsilon=0.5), votes)
        >>> batch.queries, batch.total, batch.composition
        (2, Guarantee(epsilon=1.0, delta=0.0), 'simple')
    """
    setting: Any = mechanism.setting if isinstance(mechanism, Design) else mechanism
    if not isinstance(setting, VoteSetting):
        raise ParameterError(
            f"mechanism is {_checks.shown(mechanism)}; it must be a majority or a plurality, a "
            "design or a setting."
        )
    before = _checks.integer("answered", answered, 0)
    if budget is not None:
        _checks.instance("budget", budget, Guarantee)
    spending = Spending(setting, trained_once, slack, voters_per_record)
    if counts is not None and not isinstance(setting, Plurality):
        raise ParameterError("counts are those of plain ballots; private voters' votes are needed.")
    if (votes is None) == (counts is None):
        raise ParameterError("votes and counts: give exactly one of them.")
    found = mechanism if isinstance(mechanism, Design) else design(setting)
    data: Any = votes if counts is None else Counts(counts)
    queries = found._outputs(data)
    if not queries:
        raise ParameterError("votes has no rows; it must hold at least one query.")
    composition, total = spending.total(before + queries, budget)
    labels = np.array(found.release(data), dtype=np.int64).reshape(-1)
    labels.setflags(write=False)
    return VoteBatch(labels, found, spending, composition, total, before)
