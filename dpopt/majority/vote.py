"""Private labels for many queries, and what all of them spend together."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._page import result_page
from dpopt._types import IntVector, Json, brief
from dpopt.files import write_json
from dpopt.majority.priors import Prior
from dpopt.majority.setting import MajorityDesign, MajoritySetting, design_for
from dpopt.privacy import Guarantee, general_composition, simple_composition
from dpopt.privacy.exponential import log_upper
from dpopt.provenance import versions
from dpopt.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SLACK = 1e-6
# Beyond this, counts are not exact in double precision.
MOST_QUERIES = 1 << 53
_CURVE_POINTS = 512


@dataclass(frozen=True)
class Spending:
    """What the labels of several queries spend together.

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

    setting: MajoritySetting
    trained_once: bool
    slack: float = SLACK
    voters_per_record: int | None = None

    def __post_init__(self) -> None:
        _checks.instance("setting", self.setting, MajoritySetting)
        if self.voters_per_record is not None:
            reach = self.voters_per_record
            reach = _checks.integer("voters_per_record", reach, 1, self.setting.mechanisms)
            object.__setattr__(self, "voters_per_record", reach)
        object.__setattr__(self, "trained_once", _checks.flag("trained_once", self.trained_once))
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
        composed = {}
        if count == 1 or not self.trained_once:
            composed |= _composed(self.setting.guarantee, count, self.slack)
        folds = self.reach * (1 if self.trained_once else count)
        of_voters = _composed(self.voter, folds, self.slack)
        return composed | {f"voters-{name}": spent for name, spent in of_voters.items()}

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


@dataclass(frozen=True)
class VoteBatch:
    """Private labels of a batch of queries, and what they spend.

    Attributes:
        labels: 0 or 1 for each query, shape (queries,), read-only.
        design: the certified noise function that they were drawn with.
        spending: how queries compose.
        answered: number of queries answered before this batch, over the same data.
        budget: what all of them were allowed to spend; None if there was no limit.
    """

    labels: IntVector
    design: MajorityDesign
    spending: Spending
    answered: int = 0
    budget: Guarantee | None = None

    def __repr__(self) -> str:
        return brief(self)

    @property
    def queries(self) -> int:
        """Number of queries in this batch."""
        return self.labels.size

    def columns(self) -> dict[str, Sequence[int]]:
        """Return query and label as one tidy table; queries are counted from the first ever."""
        first = self.answered
        return {
            "query": list(range(first, first + self.queries)),
            "label": self.labels.tolist(),
        }

    @property
    def per_query(self) -> Guarantee:
        """What one query spends."""
        return self.design.guarantee

    @property
    def compositions(self) -> dict[str, Guarantee]:
        """Every guarantee proved for all queries so far; see `Spending.compositions`."""
        return self.spending.compositions(self.answered + self.queries)

    @property
    def composition(self) -> str:
        """Name of the one that `total` is: the smallest epsilon, within the budget if given."""
        return self.spending.total(self.answered + self.queries, self.budget)[0]

    @property
    def total(self) -> Guarantee:
        """What all queries so far spend together."""
        return self.compositions[self.composition]

    def _repr_html_(self) -> str:
        """Return picture, statement and facts, for notebooks."""
        count, total = self.answered + self.queries, self.total
        statement = (
            f"{count:,} queries so far spend ({total.epsilon:.6g}, {total.delta:.6g})-DP together, "
            f"by {self.composition} composition."
        )
        facts = {
            "queries": self.queries,
            "labels 1": int(self.labels.sum()),
            "per query": self.per_query,
            "budget": self.budget,
        }
        return result_page(type(self).__name__, statement, self.design.private, facts, self.plot)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the total epsilon against the number of queries so far, for each composition."""
        axes = new_axes(ax)
        last = self.answered + self.queries
        counts = np.unique(np.linspace(1, last, min(last, _CURVE_POINTS)).astype(np.int64))
        spends = {int(count): self.spending.compositions(int(count)) for count in counts}
        for name in spends[1]:
            spent = [(count, by[name].epsilon) for count, by in spends.items() if name in by]
            marker = "o" if len(spent) == 1 else None
            axes.plot(*zip(*spent, strict=True), marker=marker, label=name)
        axes.set_xlabel("number of queries")
        axes.set_ylabel(r"total $\varepsilon$ (nats)")
        axes.set_ylim(bottom=0.0)
        axes.legend()
        return axes

    def to_dict(self) -> Json:
        """Return labels, design and guarantees as plain values, ready for JSON."""
        return {
            "labels": self.labels.tolist(),
            "queries": self.queries,
            "answered": self.answered,
            "trained_once": self.spending.trained_once,
            "voters_per_record": self.spending.reach,
            "slack": self.spending.slack,
            "per_query": asdict(self.per_query),
            "compositions": {name: asdict(spent) for name, spent in self.compositions.items()},
            "composition": self.composition,
            "total": asdict(self.total),
            "budget": None if self.budget is None else asdict(self.budget),
            "design": self.design.to_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Write the batch to a JSON file. It holds labels, counts and no votes.

        Raises:
            ParameterError: if the file cannot be written.
        """
        body = {"format": "dpopt votes", **self.to_dict(), "provenance": versions()}
        write_json(Path(path), body)


def vote(
    votes: npt.ArrayLike,
    *,
    trained_once: bool,
    design: MajorityDesign | None = None,
    epsilon: float | None = None,
    allowance: float | None = None,
    mechanism_delta: float = 0.0,
    delta: float | None = None,
    objective: str = "expected-error",
    prior: Prior | str | None = None,
    voters_per_record: int | None = None,
    slack: float = SLACK,
    answered: int = 0,
    budget: Guarantee | None = None,
) -> VoteBatch:
    """Return private labels for a batch of queries, drawn with the system's randomness.

    Nothing is drawn before the noise is certified and the whole batch is known to be affordable.
    What the labels spend together, and why, says `Spending`.

    Args:
        votes: zeros and ones or booleans, shape (queries, K): an array, nested lists, or a frame.
        trained_once: see `Spending`; there is no safe default.
        design: a certified noise function for K voters; or give epsilon and allowance.
        epsilon: of each voter, above 0, in nats.
        allowance: m in (0, K]: one query may spend m epsilon.
        mechanism_delta: Delta of each voter, in [0, 1).
        delta: of one query, at least mechanism_delta; max(m, 1) mechanism_delta if None.
        objective: see `dpopt.majority.design`; not used where a design is given.
        prior: of the voters' p, independent of each other; uniform on [0, 1] if None, under which
            unanimous votes are rare and may keep much noise: at K = 11, epsilon = 0.1, m = 3 their
            label is right with probability 0.638. For voters that mostly agree take (0.7, 1), say,
            which makes it 1; gamma is symmetric, so the side does not matter.
        voters_per_record: how many voters a change of the data can reach, in 1..K; K if None.
        slack: the delta' of theorem 2.3, in (0, 1).
        answered: number of queries answered earlier over the same data, with the same setting.
        budget: what they and this batch may spend together; no limit if None.

    Raises:
        ParameterError: for votes of another shape or other values, a parameter out of range, or
            a batch beyond the budget; it says how many queries are affordable. A refusal for a
            vote's value is not covered by the guarantee: make a 0 or 1 of each vote before.
        NotPrivateError: if the design has no certificate; it names the voters.
        SolverError: if the solver found no noise function.

    Example:
        >>> from dpopt import majority
        >>> votes = [[1, 1, 1], [0, 1, 0]]
        >>> batch = majority.vote(votes, trained_once=True, epsilon=0.1, allowance=1)
        >>> batch.queries, round(batch.total.epsilon, 12), batch.composition
        (2, 0.3, 'voters-simple')
    """
    ballots = _ballots(votes)
    before = _checks.integer("answered", answered, 0)
    if budget is not None:
        _checks.instance("budget", budget, Guarantee)
    if design is None:
        if epsilon is None or allowance is None:
            raise ParameterError("design is None; give a design, or epsilon and allowance.")
        setting = majority_setting(ballots.shape[1], epsilon, allowance, mechanism_delta, delta)
    elif (epsilon, allowance, delta, mechanism_delta) != (None, None, None, 0.0):
        raise ParameterError("design is given; epsilon, allowance and deltas are its own.")
    else:
        setting = _fitting(design, ballots.shape[1])
    spending = Spending(setting, trained_once, slack, voters_per_record)
    spending.total(before + ballots.shape[0], budget)
    if design is None:
        design = design_for(setting, objective=objective, prior=prior)
    labels = np.array(design.release(ballots), dtype=np.int64)
    labels.setflags(write=False)
    return VoteBatch(labels, design, spending, before, budget)


def majority_setting(
    mechanisms: int, epsilon: float, allowance: float, mechanism_delta: float, delta: float | None
) -> MajoritySetting:
    """Return the setting of K voters; delta is max(m, 1) mechanism_delta if None."""
    if delta is None:
        m = _checks.real("allowance", allowance, 0.0, open_lower=True)
        delta = max(m, 1.0) * _checks.real("mechanism_delta", mechanism_delta, 0.0, 1.0)
    return MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta)


def _ballots(votes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return votes as integers, shape (queries, K), both at least 1 and K odd."""
    if np.ma.is_masked(votes):
        raise ParameterError("votes has masked entries; every voter must vote 0 or 1.")
    try:
        array = np.asarray(votes)
    except ValueError:
        raise ParameterError(
            "votes has rows of different lengths; every query has K votes."
        ) from None
    if array.ndim != 2 or array.shape[0] < 1:
        raise ParameterError(
            f"votes has shape {array.shape}; it must be (queries, K) with at least one query."
        )
    if array.shape[1] % 2 == 0:
        raise ParameterError(
            f"votes has {array.shape[1]} columns; K must be odd, so that no vote is tied."
        )
    numeric = array.dtype.kind in "biuf" or (
        array.dtype == object and all(isinstance(v, numbers.Real | np.bool_) for v in array.flat)
    )
    if not numeric or not np.all((array == 0) | (array == 1)):
        raise ParameterError("votes holds a value other than 0 and 1.")
    return array.astype(np.int64)


def _fitting(design: MajorityDesign, mechanisms: int) -> MajoritySetting:
    """Return the setting of a design that is certified and has as many voters."""
    _checks.instance("design", design, MajorityDesign)
    if design.setting.mechanisms != mechanisms:
        raise ParameterError(
            f"votes has {mechanisms} columns; the design is for {design.setting.mechanisms} voters."
        )
    design.require_private()
    return design.setting
