"""Private labels for many queries of two classes: the majority of private voters."""

from __future__ import annotations

import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.ballots.batch import VoteBatch, drawn
from dpopt.ballots.spending import (
    MOST_QUERIES,
    SLACK,
    Spending,
    affordable_queries,
    label_delta,
)
from dpopt.ballots.votes import read_votes
from dpopt.majority.priors import Prior
from dpopt.majority.setting import MajorityDesign, MajoritySetting, design_for
from dpopt.privacy import Guarantee

__all__ = [
    "MOST_QUERIES",
    "SLACK",
    "Spending",
    "VoteBatch",
    "affordable_queries",
    "majority_setting",
    "vote",
]


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
) -> VoteBatch[MajorityDesign]:
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
        prior: of the voters' p, see `dpopt.majority.design`; likewise. What it is decides how much
            noise unanimous votes get.
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
    ballots = read_votes(votes, 2)
    if ballots.shape[1] % 2 == 0:
        raise ParameterError(
            f"votes has {ballots.shape[1]} columns; K must be odd, so that no vote is tied."
        )
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
    return drawn(
        design,
        {"data": ballots},
        spending,
        answered=before,
        budget=budget,
    )


def majority_setting(
    mechanisms: int, epsilon: float, allowance: float, mechanism_delta: float, delta: float | None
) -> MajoritySetting:
    """Return the setting of K voters; delta is max(m, 1) mechanism_delta if None."""
    delta = label_delta(allowance, mechanism_delta, delta)
    return MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta)


def _fitting(design: MajorityDesign, mechanisms: int) -> MajoritySetting:
    """Return the setting of a design that is certified and has as many voters."""
    _checks.instance("design", design, MajorityDesign)
    if design.setting.mechanisms != mechanisms:
        raise ParameterError(
            f"votes has {mechanisms} columns; the design is for {design.setting.mechanisms} voters."
        )
    design.require_private()
    return design.setting
