"""Private labels for many queries over C classes: the plurality of private voters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.ballots.batch import VoteBatch, drawn
from dpopt.ballots.spending import SLACK, Spending, label_delta
from dpopt.ballots.votes import read_classes, read_votes
from dpopt.multiclass.corners import priceable
from dpopt.multiclass.rules import RULES
from dpopt.multiclass.setting import MulticlassDesign, MulticlassSetting
from dpopt.privacy import Guarantee
from dpopt.shape import design as designed


def vote(
    votes: npt.ArrayLike,
    *,
    trained_once: bool,
    design: MulticlassDesign | None = None,
    classes: int | None = None,
    epsilon: float | None = None,
    allowance: float | None = None,
    mechanism_delta: float = 0.0,
    delta: float | None = None,
    rule: str = "best",
    prior: str = "dirichlet:1",
    voters_per_record: int | None = None,
    slack: float = SLACK,
    answered: int = 0,
    budget: Guarantee | None = None,
) -> VoteBatch[MulticlassDesign]:
    """Return private labels for a batch of queries, drawn with the system's randomness.

    Each voter is private itself. Nothing is drawn before the mechanism is certified and the whole
    batch is known to be affordable. What the labels spend together, and why, says
    `dpopt.majority.Spending`.

    Args:
        votes: in 0..C-1, shape (queries, K): an array, nested lists, or a frame.
        trained_once: see `dpopt.majority.Spending`; there is no safe default.
        design: a certified plurality for K and C; or give classes, epsilon and allowance.
        classes: C, at least 2.
        epsilon: of each voter, above 0, in nats.
        allowance: m in (0, K]: one query may spend m epsilon.
        mechanism_delta: Delta of each voter, in [0, 1).
        delta: of one query; max(m, 1) mechanism_delta if None.
        rule: "best", see `best_design`, or that of a `MulticlassSetting`.
        prior: see `MulticlassSetting`; like rule, not used where a design is given.
        voters_per_record: how many voters a change of the data can reach, in 1..K; K if None.
        slack: the delta' of theorem 2.3 of the DaRRM paper, in (0, 1).
        answered: number of queries answered earlier over the same data, with the same setting.
        budget: what they and this batch may spend together; no limit if None.

    Raises:
        ParameterError: for votes of another shape or other values, a parameter out of range, or
            a batch beyond the budget; it says how many queries are affordable. A refusal for a
            vote's value is not covered by the guarantee: make a class of each vote before.
        NotPrivateError: if the design has no certificate; it names the voters.
        SolverError: if the solver found no plurality.

    Example:
        >>> from dpopt import multiclass
        >>> votes = [[2, 2, 2, 0, 1], [0, 1, 0, 0, 1]]
        >>> given = {"classes": 3, "epsilon": 0.1, "allowance": 2}
        >>> batch = multiclass.vote(votes, trained_once=False, **given)
        >>> batch.queries, round(batch.total.epsilon, 12), batch.composition
        (2, 0.4, 'simple')
    """
    before = _checks.integer("answered", answered, 0)
    if budget is not None:
        _checks.instance("budget", budget, Guarantee)
    if design is not None:
        if (epsilon, allowance, delta, mechanism_delta) != (None, None, None, 0.0):
            raise ParameterError("design is given; epsilon, allowance and deltas are its own.")
        _checks.instance("design", design, MulticlassDesign)
        design.require_private()
        setting = design.setting
        if classes is not None and classes != setting.classes:
            raise ParameterError(
                f"classes is {_checks.shown(classes)}; the design is for {setting.classes}."
            )
        ballots = read_votes(votes, setting.classes)
        if ballots.shape[1] != setting.mechanisms:
            raise ParameterError(
                f"votes has {ballots.shape[1]} columns; the design is for {setting.mechanisms} "
                "voters."
            )
    else:
        if classes is None or epsilon is None or allowance is None:
            raise ParameterError(
                "design is None; give a design, or classes, epsilon and allowance."
            )
        ballots = read_votes(votes, read_classes(classes))
        delta = label_delta(allowance, mechanism_delta, delta)
        # A rule without a program, since what is spent does not depend on the rule.
        setting = MulticlassSetting(
            ballots.shape[1], classes, epsilon, allowance, mechanism_delta, delta, prior, "ladder"
        )
    spending = Spending(setting, trained_once, slack, voters_per_record)
    spending.total(before + ballots.shape[0], budget)
    if design is None:
        design = best_of(setting, rule)
    return drawn(
        design,
        {"data": ballots},
        replace(spending, setting=design.setting),
        answered=before,
        budget=budget,
    )


def best_design(
    mechanisms: int,
    classes: int,
    epsilon: float,
    allowance: float,
    *,
    rule: str = "best",
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
    prior: str = "dirichlet:1",
) -> MulticlassDesign:
    """Return the plurality of a rule, or of the best one that can be had.

    "best" is the optimum of the program where all corner configurations can be priced and the
    voters have no Delta; elsewhere the ladder, permute-and-flip or the exponential mechanism within
    a proved bound, whichever misses the plurality least often under the prior. The choice looks at
    no data.

    Args:
        mechanisms: K.
        classes: C.
        epsilon: see `MulticlassSetting`, as for all others.
        allowance: see there.
        rule: "best", "optimal", "ladder", "permute-and-flip" or "exponential".
        mechanism_delta: see there.
        delta: see there.
        prior: see there.

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no plurality.

    Example:
        >>> from dpopt import multiclass
        >>> multiclass.best_design(20, 10, 0.5, 3).setting.rule
        'ladder'
    """
    given = mechanisms, classes, epsilon, allowance, mechanism_delta, delta, prior
    return best_of(MulticlassSetting(*given, "ladder"), rule)


def best_of(setting: MulticlassSetting, rule: str) -> MulticlassDesign:
    """Return the design of `best_design` for the parameters of a setting.

    Raises:
        ParameterError: for another rule, or one that these voters cannot have.
    """
    _checks.choice("rule", rule, ("best", *RULES))
    rules: tuple[Any, ...] = (rule,)
    if rule == "best":
        program = priceable(setting.mechanisms, setting.classes) and not setting.mechanism_delta
        # A sample of the voters is proved only where the program can be written.
        rules = ("optimal",) if program else ("ladder", "permute-and-flip", "exponential")
    found = [designed(replace(setting, rule=name)) for name in rules]
    return min(found, key=lambda made: made.value)
