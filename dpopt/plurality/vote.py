"""Private labels for many queries, from the plain votes of teachers or records."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.ballots import proved_for_any_number
from dpopt.ballots.batch import VoteBatch, drawn
from dpopt.ballots.spending import SLACK, BallotSpending
from dpopt.ballots.unbounded import QUICK_STATES
from dpopt.ballots.votes import IntTable, count_votes, read_classes, read_counts, read_votes
from dpopt.plurality.setting import (
    RULES,
    PluralityDesign,
    PluralitySetting,
    more_than,
    rational_step,
)
from dpopt.privacy import Guarantee
from dpopt.shape import design as designed

# Sorted histograms of a program that takes seconds, and of rules whose tables do.
_QUICK_PROGRAM, _QUICK_TABLE = 600, 4_000


def vote(
    votes: npt.ArrayLike | None = None,
    *,
    counts: npt.ArrayLike | None = None,
    design: PluralityDesign | None = None,
    epsilon: float | None = None,
    classes: int | None = None,
    rule: str = "best",
    objective: str = "bayes",
    loss: str = "regret",
    prior: str = "uniform",
    voters_per_record: int = 1,
    slack: float = SLACK,
    answered: int = 0,
    budget: Guarantee | None = None,
) -> VoteBatch[PluralityDesign]:
    """Return private labels for a batch of queries, drawn with the system's randomness.

    The voters are not private themselves: teachers that were trained on disjoint parts of the
    data, or people. Nothing is drawn before the mechanism is certified and the whole batch is known
    to be affordable. The data model, and what the labels spend together, says `BallotSpending`.

    Args:
        votes: in 0..C-1, shape (queries, K): an array, nested lists, or a frame.
        counts: instead of votes, how many each class has, shape (queries, C), each row of sum K.
        design: a certified mechanism for K and C; or give epsilon and classes.
        epsilon: what one query may spend, where one ballot is replaced; above 0, in nats.
        classes: C, at least 2; the number of columns of counts if None.
        rule: "best", see `best_design`, or that of a `PluralitySetting`.
        objective: see `PluralitySetting`; like loss and prior, not used where a design is given.
        loss: likewise.
        prior: likewise.
        voters_per_record: how many voters a replaced record can reach, in 1..K.
        slack: the delta' of theorem 2.3 of the DaRRM paper, in (0, 1).
        answered: number of queries answered earlier over the same data, with the same setting.
        budget: what they and this batch may spend together; no limit if None.

    Raises:
        ParameterError: for votes or counts of another shape or other values, a parameter out of
            range, or a batch beyond the budget; it says how many queries are affordable. A refusal
            for a vote's value is not covered by the guarantee.
        NotPrivateError: if the design has no certificate.
        SolverError: if the solver found no mechanism.

    Example:
        >>> from dpopt import plurality
        >>> votes = [[2, 2, 2, 0, 1, 2], [0, 1, 0, 0, 1, 0]]
        >>> batch = plurality.vote(votes, epsilon=0.5, classes=3)
        >>> batch.queries, batch.total, batch.composition
        (2, Guarantee(epsilon=1.0, delta=0.0), 'simple')
    """
    if design is not None:
        if epsilon is not None:
            raise ParameterError("design is given; epsilon is its own.")
        classes = _classes_of(design, classes)
    table = _counted(votes, counts, classes)
    before = _checks.integer("answered", answered, 0)
    if budget is not None:
        _checks.instance("budget", budget, Guarantee)
    voters, found = int(table[0].sum()), int(table.shape[1])
    if design is not None:
        setting = design.setting
        if setting.records != voters:
            raise ParameterError(
                f"votes are those of {voters} voters; the design is for {setting.records}."
            )
    elif epsilon is None:
        raise ParameterError("design is None; give a design, or epsilon and classes.")
    else:
        # A rule without a program, since what is spent does not depend on the rule.
        setting = PluralitySetting(voters, found, epsilon, rule="permute-and-flip")
    spending = BallotSpending(setting, slack, voters_per_record)
    spending.total(before + table.shape[0], budget)
    if design is None:
        design = best_design(
            voters, found, setting.epsilon, rule=rule, objective=objective, loss=loss, prior=prior
        )
    return drawn(
        design,
        {"counts": table},
        replace(spending, setting=design.setting),
        answered=before,
        budget=budget,
    )


def best_design(
    records: int,
    classes: int,
    epsilon: float,
    *,
    rule: str = "best",
    objective: str = "bayes",
    loss: str = "regret",
    prior: str = "uniform",
) -> PluralityDesign:
    """Return the mechanism of a rule, or of the best one that takes seconds.

    "best" is the optimum of the program where there are at most 600 sorted histograms; of more, the
    rule with the smallest value, each at its largest step that is proved; beyond 4,000 the ladder
    where it is quickly proved private for every K, and permute-and-flip elsewhere, which there is
    for any K and C. The choice looks at no data.

    Args:
        records: K.
        classes: C.
        epsilon: see `PluralitySetting`, as for all others.
        rule: "best", "optimal", "ladder", "permute-and-flip" or "exponential".
        objective: see there.
        loss: see there.
        prior: see there.

    Raises:
        ParameterError: for a parameter out of range.
        NotPrivateError: if no table of a rule passes its audit.
        SolverError: if the solver found no mechanism.

    Example:
        >>> from dpopt import plurality
        >>> plurality.best_design(20, 3, 0.5).setting.rule
        'optimal'
    """
    _checks.choice("rule", rule, ("best", *RULES))
    named: Any = {"objective": objective, "loss": loss, "prior": prior}
    quick = PluralitySetting(records, classes, epsilon, rule="permute-and-flip", **named)
    rules: tuple[Any, ...] = (rule,)
    if rule == "best":
        rules = _quick_rules(quick)
    found = [designed(replace(quick, rule=name)) for name in rules]
    return min(found, key=lambda made: made.value)


def _quick_rules(quick: PluralitySetting) -> tuple[Any, ...]:
    """Return the rules of which the one with the least value is the best."""
    records, classes = quick.records, quick.classes
    if not more_than(_QUICK_PROGRAM, records, classes):
        return ("optimal",)
    if not more_than(_QUICK_TABLE, records, classes) and not quick.by_theorem:
        return RULES[1:]
    ratio = Fraction(*rational_step(quick.epsilon, power=1))
    proved = proved_for_any_number(classes, ratio, QUICK_STATES) is not None
    return ("ladder",) if proved else (quick.rule,)


def _classes_of(design: object, classes: object) -> int:
    """Return the number of classes of a certified design.

    Raises:
        ParameterError: for another object, or another number of classes.
        NotPrivateError: if it has no certificate.
    """
    _checks.instance("design", design, PluralityDesign)
    made = cast(PluralityDesign, design)
    made.require_private()
    if classes is not None and classes != made.setting.classes:
        raise ParameterError(
            f"classes is {_checks.shown(classes)}; the design is for {made.setting.classes}."
        )
    return made.setting.classes


def _counted(
    votes: npt.ArrayLike | None, counts: npt.ArrayLike | None, classes: int | None
) -> IntTable:
    """Return how many votes each class has on each query, from votes or from counts."""
    if (votes is None) == (counts is None):
        both = "both are" if votes is not None else "neither is"
        raise ParameterError(f"votes or counts must be given; {both}.")
    if votes is not None:
        if classes is None:
            raise ParameterError("classes is None; votes do not say how many classes there are.")
        many = read_classes(classes)
        return count_votes(read_votes(votes, many), many)
    table = read_counts(cast(npt.ArrayLike, counts))
    if classes is not None and read_classes(classes) != table.shape[1]:
        raise ParameterError(f"counts has {table.shape[1]} columns; classes is {classes}.")
    return table
