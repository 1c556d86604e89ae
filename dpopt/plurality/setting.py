"""The best private plurality of plain records: the setting, its design, and what others reach."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._types import IntVector, Json, Vector
from dpopt.ballots import (
    Coins,
    Partitions,
    audit_rule,
    auditable,
    checked,
    exponential,
    partition_count,
    permute_and_flip,
    table_bits,
    worst,
)
from dpopt.ballots import law as law_of_table
from dpopt.ballots.draws import Labels
from dpopt.ballots.partitions import MOST_PARTITIONS
from dpopt.ballots.table import flat
from dpopt.ballots.votes import count_queries, whole
from dpopt.data.tally import Tally
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.lp.backends.highs import Highs
from dpopt.plurality.program import (
    mean_costs,
    parse_prior,
    plurality_problem,
    prior_of,
    repaired,
    table_at_step,
    tight_rows,
)
from dpopt.plurality.proof import (
    THEOREMS,
    dominating_of_table,
    least_of_table,
    prove_step,
    prove_table,
)
from dpopt.privacy import Certificate, Guarantee, Problem, exp_lower
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.exponential import log_near, log_upper
from dpopt.privacy.least import Least, least_delta, least_epsilon, require_pure
from dpopt.privacy.release import Source, seeded, system
from dpopt.shape import Design, Setting
from dpopt.shape import design as designed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Table = tuple[tuple[int, ...], ...]
Step = tuple[int, int]
Units = Table | Step
"""A row of integers for each sorted histogram; or numerator and denominator of a rule's step."""

OBJECTIVES = ("bayes", "minimax")
LOSSES = ("regret", "error")
RULES = ("optimal", "ladder", "permute-and-flip", "exponential")

# As many records as histograms are ever listed of.
_LONGEST_LIST = 10_000
_LARGEST_RECORDS, _LARGEST_CLASSES, _LARGEST_EPSILON = 10**15, 1_000_000, 50.0
# Sorted histograms of a program that is written out, and up to which a rule that is private by
# theorem is made a table of a larger step.
_MOST_SOLVED, _MOST_TABLED = 5_000, 5_000
# Variables of a program above which an interior point is faster, and no least mean is asked for.
_MANY = 4_000
# Bits of all weights of a table of permute-and-flip or the exponential mechanism: seconds' work.
_LONGEST_TABLE = 1 << 26
# Fractional bits of a step's distance from 1: they cost 2^-32 of epsilon.
_STEP_BITS = 32
# Of the integers of a law by theorem.
_LONGEST_LAW = 10_000_000
_LAWS = {"permute-and-flip": permute_and_flip, "exponential": exponential}
_OFFER = "rule='ladder' and rule='permute-and-flip' need no program"


@dataclass(frozen=True)
class PluralitySetting(Setting["PluralityDesign"]):
    """The best private choice of the class that most of K records have, or of K plain voters.

    Neighbours differ in one replaced record. The mechanism sees the counts l of the C classes and
    outputs one class. Averaged over all relabellings of the classes, a mechanism stays private and
    loses nothing; it is then a number k[lambda, c] for each sorted histogram lambda and each count
    c in it, the probability of one class of that count, and the best one is

        minimise   sum_lambda prior(lambda) sum_y loss(l_y) k[lambda, l_y]       of "bayes"
                   worst,  sum_y loss(l_y) k[lambda, l_y] <= worst     "losses", of "minimax"
        subject to sum_y k[lambda, l_y] = 1                                      "sums"
                   k[lambda, l_y] <= e^epsilon k[lambda', l'_y],  l' = l - e_a + e_b
                                       "ladder", "privacy"

    over all neighbours l, l' and classes y. The rows of "ladder" are those with a a class of the
    largest count of l and b = y below it; all others are a family, of which violated rows are
    written. Among the optima of "minimax" the one of the least mean loss is taken, up to 4,000
    variables: it can have half the mean of another.

    Classes of the same count have exactly the same probability.

    A rule takes the place of the program:

    - "ladder": all rows of "ladder" are tight. Often the optimum of "bayes", never of "minimax".
      Every pair of neighbours is decided for these K and C, up to a million sorted histograms. It
      can fail from 7 classes on, and e^epsilon is then lowered in it until it passes.
    - "permute-and-flip", "exponential": private for all K and C by theorem, at a step of
      e^(epsilon / 2). Where the histograms can be listed, the step is the largest one that passes
      for these K and C.

    At one epsilon the exponential mechanism loses most, but over many releases it can spend least:
    its range is bounded, which gives epsilon^2 / 8 of zCDP, and of the others epsilon^2 / 2 is
    known. Compare their dominating pairs, composed.

    Attributes:
        records: K, in 1..10^15, public: the number of records, or of voters that are not private.
        classes: C, in 2..1,000,000.
        epsilon: in (0, 50], in nats.
        objective: "bayes", the mean loss under the prior, or "minimax", that of the worst counts.
        loss: "regret", by how much the largest count is above that of the output, or "error", 1
            for a class below the largest count.
        rule: "optimal", or a rule without a program: "ladder", "permute-and-flip", "exponential".
        prior: of the counts: "uniform" over all of them, which is that of votes of one p, uniform
            on the simplex; or "dirichlet:A", p of a symmetric Dirichlet law, A in [0.0001, 10000].
    """

    kind: ClassVar[str] = "plurality"
    neighbours: ClassVar[str] = "one ballot replaced"

    records: int
    classes: int
    epsilon: float
    objective: Literal["bayes", "minimax"] = "bayes"
    loss: Literal["regret", "error"] = "regret"
    rule: Literal["optimal", "ladder", "permute-and-flip", "exponential"] = "optimal"
    prior: str = "uniform"

    def __post_init__(self) -> None:
        records = _checks.integer("records", self.records, 1, _LARGEST_RECORDS)
        classes = _checks.integer("classes", self.classes, 2, _LARGEST_CLASSES)
        self.keep(
            records=records,
            classes=classes,
            epsilon=_checks.real("epsilon", self.epsilon, 0.0, _LARGEST_EPSILON, open_lower=True),
            objective=_checks.choice("objective", self.objective, OBJECTIVES),
            loss=_checks.choice("loss", self.loss, LOSSES),
            rule=_checks.choice("rule", self.rule, RULES),
            prior=parse_prior(self.prior)[0],
        )
        if self.rule == "optimal" and more_than(_MOST_SOLVED, records, classes):
            raise ParameterError(
                f"records is {records} and classes {classes}; a program is written out for at most "
                f"{_MOST_SOLVED:,} sorted histograms, and {_OFFER}."
            )
        if self.rule == "ladder" and not self._auditable:
            raise ParameterError(
                f"records is {records} and classes {classes}; the ladder's table is too large for "
                "an audit, and rule='permute-and-flip' needs none."
            )

    @classmethod
    def example(cls) -> Self:
        """Return six records of three classes."""
        return cls(records=6, classes=3, epsilon=1.0)

    @classmethod
    def example_data(cls) -> list[int]:
        """Return the votes of six records."""
        return [0, 2, 0, 1, 0, 1]

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return votes of which one is replaced."""
        votes = [0, 0, 0, 1, 1, 2]
        replaced = (2, 1), (3, 0), (5, 1), (2, 2)
        return [(votes, [*votes[:at], new, *votes[at + 1 :]]) for at, new in replaced]

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0), for one replaced record."""
        return Guarantee(self.epsilon)

    @cached_property
    def by_theorem(self) -> bool:
        """Whether units are a step, private for all K by theorem: where the list is too long."""
        return self.rule in THEOREMS and not self._listed

    @property
    def _auditable(self) -> bool:
        """Whether the histograms can be listed with all bits of a rule's weights."""
        if more_than(MOST_PARTITIONS, self.records, self.classes):
            return False
        return auditable(self.rule, self.records, self.classes, self.epsilon)

    @property
    def _listed(self) -> bool:
        """Whether the histograms are so few that a rule is made a table."""
        if more_than(_MOST_TABLED, self.records, self.classes) or not self._auditable:
            return False
        count = partition_count(self.records, self.classes)
        return count * min(self.classes, 50) * self.bits <= _LONGEST_TABLE

    @cached_property
    def partitions(self) -> Partitions:
        """The sorted histograms.

        Raises:
            ParameterError: if they are too many to be listed.
        """
        return Partitions(self.records, self.classes)

    @cached_property
    def bits(self) -> int:
        """Bits of a table: weights are integers over `dpopt.ballots.scale(classes, bits)`."""
        return table_bits(self.records, self.classes, self.epsilon)

    def problem(self) -> Problem:
        """Return the program: variable "kernel", of "minimax" also "worst"; family "privacy".

        Raises:
            ParameterError: of a rule, which has none.
        """
        if self.rule != "optimal":
            raise ParameterError(f"rule is {self.rule!r}, which is no program; name no backend.")
        if self.objective == "bayes":
            return plurality_problem(self.partitions, self.epsilon, self._each, self._chances)
        problem = plurality_problem(self.partitions, self.epsilon, self._each, None)
        if problem.size <= _MANY:
            costs = mean_costs(self.partitions, self._each, self._chances)
            problem.then_minimise({"kernel": costs})
        return problem

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program.

        Of "minimax" above 4,000 variables the least mean is not asked for, which could take ten
        times as long, and the program is solved by an interior point, with a bound within 1e-7 of
        the value instead of 1e-9.
        """
        problem = self.problem()
        limits: Any = {"time_limit": time_limit, "stop_at_gap": stop_at_gap}
        if self.objective == "minimax" and problem.size > _MANY and backend == "highs":
            try:
                return solve(problem, Highs(interior=True), **limits)
            except SolverError as error:
                if error.status not in (Status.NUMERICAL, Status.STALLED, Status.ITERATION_LIMIT):
                    raise
        return solve(problem, backend, **limits)

    @property
    def _each(self) -> Vector:
        """The loss of one class of each variable."""
        return np.array(_losses(self.partitions, self.loss), dtype=np.float64)

    @property
    def _chances(self) -> Vector:
        """The prior of the sorted histograms as floats."""
        exact = prior_of(self.partitions, parse_prior(self.prior)[1])
        return np.array([float(chance) for chance in exact])

    def closed_form(self) -> Units | None:
        """Return a rule's table, audited; its step, where that is private by theorem alone.

        Raises:
            NotPrivateError: if no table of the rule passes the audit.
        """
        if self.rule == "optimal":
            return None
        if not self.by_theorem:
            return audit_rule(self.rule, self.records, self.classes, self.epsilon).units
        return rational_step(self.epsilon)

    def point(self, solution: Solution) -> Vector:
        """Return k[lambda, c] by variable."""
        return solution["kernel"]

    def as_point(self, values: Vector) -> Vector:
        """Return k[lambda, c] by variable, checked: one number for each, none negative.

        Raises:
            ParameterError: for another number of them, or a negative one beyond rounding.
        """
        size = self.partitions.size
        if values.shape != (size,) or not np.all(np.isfinite(values)) or values.min() < -1e-9:
            raise ParameterError(
                f"point has shape {values.shape}; it must be ({size},), one probability for each "
                "count of each sorted histogram."
            )
        return values

    def units(self, point: Vector) -> Table:
        """Return a point as integers, repaired until all neighbours are private.

        See `dpopt.plurality.program.repaired`: what the repair costs is about the error of the
        solver, 1e-14 of the value.
        """
        return repaired(self.partitions, point, exp_lower(self.epsilon), self.bits)

    def proof_rows(self, units: Units) -> list[tuple[object, ...]]:
        """Return the rows that are tight; see `dpopt.plurality.program.tight_rows`."""
        kernel = flat(self.partitions, cast(Table, units), self.bits)
        worst = self.objective == "minimax"
        return tight_rows(self.partitions, kernel, self.epsilon, worst=worst)

    def value(self, units: Units) -> float:
        """Return the mean or the worst loss; nan where the histograms cannot be listed."""
        if self.by_theorem:
            return math.nan
        mean, worst = self.losses(cast(Table, units), self.loss)
        return float(mean if self.objective == "bayes" else worst)

    def losses(self, units: Table, loss: str) -> tuple[Fraction, Fraction]:
        """Return mean under the prior, and worst, of "regret" or "error", exactly."""
        partitions = self.partitions
        each = _losses(partitions, loss)
        prior = prior_of(partitions, parse_prior(self.prior)[1])
        mean, worst, whole = Fraction(0), 0, 0
        for state, (row, levels) in enumerate(zip(units, partitions.levels, strict=True)):
            start = int(partitions.starts[state])
            masses = [weight * many for weight, (_, many) in zip(row, levels, strict=True)]
            lost = sum(mass * each[start + place] for place, mass in enumerate(masses))
            mean, worst, whole = mean + prior[state] * lost, max(worst, lost), sum(masses)
        return mean / whole, Fraction(worst, whole)

    def bound(self, units: Units, solution: Solution | None) -> float | None:
        """Return the bound of the dual vector; None of a rule, which need not be the optimum."""
        del units
        return None if solution is None else solution.bound

    def prove(self, units: Units) -> Certificate:
        """Return the exact proof: of a table over all neighbours, of a step by its theorem.

        Raises:
            NotPrivateError: if they are not private.
        """
        if self.by_theorem:
            step = Fraction(*cast(Step, units))
            return prove_step(self.rule, step, self.guarantee, self.records, self.classes)
        table = cast(Table, units)
        return prove_table(self.partitions, table, self.guarantee, self.bits, self.rule)

    def read(self, plain: object) -> Units:
        """Return the units of a file, checked in form.

        Raises:
            ParameterError: if they are malformed.
        """
        units = super().read(plain)
        if not self.by_theorem:
            return checked(self.partitions, units, self.bits)
        whole = isinstance(units, tuple) and len(units) == 2
        if not whole or not all(type(part) is int for part in units) or not 0 < units[1] < units[0]:
            raise ParameterError(
                "units must be numerator and denominator of a step, above 1: two integers."
            )
        if units[0].bit_length() > 4 * (_STEP_BITS + 64):
            raise ParameterError("units hold a step of too many bits.")
        return units

    def law(
        self,
        units: Units,
        data: npt.ArrayLike | Tally | None = None,
        *,
        counts: npt.ArrayLike | None = None,
    ) -> list[int]:
        """Return the law of the class for one query, in the order of the classes: integers.

        Args:
            units: of this setting.
            data: votes in 0..C-1, shape (K,); or a `Tally`.
            counts: instead, those of the classes, shape (C,), sum K.

        Raises:
            ParameterError: for data of another shape or sum; their values are not shown.
        """
        rows, single = self.counted(data, counts)
        if not single:
            raise ParameterError(f"data have {len(rows)} queries; a law is that of one.")
        own = rows[0].tolist()
        if not self.by_theorem:
            return law_of_table(self.partitions, cast(Table, units), own)
        step, gaps = Fraction(*cast(Step, units)), [max(own) - count for count in own]
        if sum(gaps) * step.numerator.bit_length() * self.classes > _LONGEST_LAW:
            raise ParameterError(
                f"the law of {self.records} records over {self.classes} classes is too long to be "
                "written out; release draws from it without."
            )
        shares = _LAWS[self.rule](own, step)
        common = math.lcm(*(share.denominator for share in shares))
        return [share.numerator * (common // share.denominator) for share in shares]

    def counted(
        self, data: npt.ArrayLike | Tally | None, counts: npt.ArrayLike | None = None
    ) -> tuple[IntVector, bool]:
        """Return the counts of each query, shape (queries, C), and whether there is but one.

        Args:
            data: votes, shape (K,) or (queries, K); or a `Tally`.
            counts: instead, those of the classes, shape (C,) or (queries, C).

        Raises:
            ParameterError: for another shape, other values or another sum, or both or none of them.
        """
        if (data is None) == (counts is None):
            raise ParameterError("data (votes) and counts: give exactly one of them.")
        if counts is None and not isinstance(data, Tally):
            return count_queries(cast(npt.ArrayLike, data), self.records, self.classes)
        array = _checks.array("counts", data.counts if isinstance(data, Tally) else counts)
        if array.ndim not in (1, 2) or array.shape[-1] != self.classes:
            raise ParameterError(
                f"counts has shape {array.shape}; it must be ({self.classes},) or "
                f"(queries, {self.classes})."
            )
        rows = np.atleast_2d(array)
        table = whole(rows, self.records) if array.dtype.kind in "iu" else None
        if table is None:
            raise ParameterError(
                f"counts holds a value that is none; counts are integers in 0..{self.records}."
            )
        if np.any(np.einsum("qc->q", table) != self.records):
            raise ParameterError(f"counts of a query must add up to {self.records} records.")
        return table, array.ndim == 1

    def spent(self, units: Units, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for a delta, or the other way round, over all neighbours.

        Raises:
            ParameterError: of a step, whose histograms cannot be listed.
        """
        self._require_table("a least epsilon")
        table = cast(Table, units)
        if epsilon is None and not delta:
            require_pure(self.kind, epsilon, delta)
            return least_of_table(self.partitions, table)
        pair = self.dominating(units)
        rows, both = [list(pair.upper), list(pair.lower)], [(0, 1), (1, 0)]
        if epsilon is None:
            least = least_epsilon(rows, cast(float, delta), pairs=both)
        else:
            least = least_delta(rows, epsilon, pairs=both)
        words = ("one law of the dominating pair", "the other")
        return replace(least, inputs=words)

    def dominating(self, units: Units) -> DominatingPair:
        """Return the tight dominating pair over all neighbouring histograms.

        Raises:
            ParameterError: of a step, whose histograms cannot be listed.
        """
        self._require_table("a dominating pair")
        return dominating_of_table(self.partitions, cast(Table, units), self.bits)

    def _require_table(self, what: str) -> None:
        if self.by_theorem:
            raise ParameterError(
                f"records is {self.records} and classes {self.classes}; {what} is found over at "
                f"most {_MOST_TABLED:,} sorted histograms."
            )

    def columns(self, units: Units) -> Mapping[str, Sequence[Any]]:
        """Return the probability of a class by its count and the counts of all, a line for each.

        Of a step, that of the larger of two classes by its lead, the others without a record.
        """
        if self.by_theorem:
            leads = _leads(self.records)
            step = Fraction(*cast(Step, units))
            return {
                "lead": leads,
                "probability": [
                    _two_classes(self.rule, step, lead, self.records, self.classes)
                    for lead in leads
                ],
            }
        partitions, table = self.partitions, cast(Table, units)
        told = [" ".join(map(str, state)) for state in partitions.states]
        whole = sum(
            weight * many for weight, (_, many) in zip(table[0], partitions.levels[0], strict=True)
        )
        return {
            "counts": [told[state] for state in partitions.state_of.tolist()],
            "count": partitions.counts.tolist(),
            "classes": partitions.multiplicities.tolist(),
            "probability": [weight / whole for row in table for weight in row],
        }

    def draw(self, axes: Axes, units: Units, label: str | None = None) -> None:
        """Draw the probability that a class of the largest count is output, against its lead.

        The line is the mean over the prior, the band from the least to the largest of all counts.
        """
        axes.set_xlabel("lead of the largest count")
        axes.set_ylabel("probability of a largest class")
        axes.set_ylim(-0.03, 1.03)
        axes.locator_params(axis="x", integer=True)
        if self.by_theorem:
            table = self.columns(units)
            axes.plot(table["lead"], table["probability"], label=label)
            return
        by_lead = self._by_lead(cast(Table, units))
        leads = sorted(by_lead)
        means, low, high = (
            [by_lead[lead][part] for lead in leads] for part in ("mean", "low", "high")
        )
        line = axes.plot(leads, means, marker="o", markersize=3, clip_on=False, label=label)[0]
        axes.fill_between(leads, low, high, color=line.get_color(), alpha=0.2, linewidth=0)

    def _by_lead(self, units: Table) -> dict[int, dict[str, float]]:
        """Return mean, least and largest probability of the largest count by its lead."""
        partitions = self.partitions
        prior = prior_of(partitions, parse_prior(self.prior)[1])
        found: dict[int, list[tuple[float, float]]] = {}
        for row, levels, state, chance in zip(
            units, partitions.levels, partitions.states, prior, strict=True
        ):
            masses = [weight * many for weight, (_, many) in zip(row, levels, strict=True)]
            point = masses[0] / sum(masses), float(chance)
            found.setdefault(state[0] - state[1], []).append(point)
        return {
            lead: {
                "mean": sum(p * q for p, q in points) / sum(q for _, q in points),
                "low": min(p for p, _ in points),
                "high": max(p for p, _ in points),
            }
            for lead, points in found.items()
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PluralityDesign(Design):
    """A private choice of one class from the counts of all; see `PluralitySetting`.

    `release` and `simulate` take votes of shape (K,), for one class, or (queries, K), for an array
    of classes; or ``counts=``, how many each class has. Each row spends the whole guarantee.

    Attributes:
        setting: K, C, epsilon and the objective.
        units: a row of integers for each sorted histogram, over `dpopt.ballots.scale(classes,
            setting.bits)`; of a rule by theorem, numerator and denominator of its step: s of
            permute-and-flip or of the exponential mechanism.
    """

    setting: PluralitySetting
    units: Units

    @cached_property
    def _regret(self) -> tuple[float, float]:
        return self._losses("regret")

    @cached_property
    def _error(self) -> tuple[float, float]:
        return self._losses("error")

    def _losses(self, loss: str) -> tuple[float, float]:
        if self.setting.by_theorem:
            return math.nan, math.nan
        mean, worst = self.setting.losses(cast(Table, self.units), loss)
        return float(mean), float(worst)

    @property
    def mean_regret(self) -> float:
        """Mean regret under the prior of the setting; nan where histograms cannot be listed."""
        return self._regret[0]

    @property
    def worst_regret(self) -> float:
        """Largest expected regret of all counts; nan where histograms cannot be listed."""
        return self._regret[1]

    @property
    def mean_error(self) -> float:
        """Mean probability of a class below the largest count; nan as above."""
        return self._error[0]

    @property
    def worst_error(self) -> float:
        """Largest probability of a class below the largest count; nan as above."""
        return self._error[1]

    @cached_property
    def spending(self) -> float:
        """The least epsilon of the integers, rounded up; of a step, that of its theorem."""
        if self.setting.by_theorem:
            square = Fraction(*cast(Step, self.units)) ** 2
            return min(log_upper(square), self.setting.epsilon)
        return log_upper(worst(self.setting.partitions, cast(Table, self.units)).ratio)

    @cached_property
    def ladder_epsilon(self) -> float | None:
        """The epsilon that the ladder was computed with, below that of the setting if need be.

        None of another rule. It is read off the integers, up to 1e-12 of it.
        """
        if self.setting.rule != "ladder":
            return None
        partitions = self.setting.partitions
        records, zeros = self.setting.records, (0,) * (self.setting.classes - 2)
        # All records in one class, and one of them moved: the rows of "ladder" are tight.
        moved = sorted((records - 1, 1, *zeros), reverse=True)
        ends = partitions.classes_of((records, 0, *zeros)), partitions.classes_of(moved)
        weights = [weight for row in cast(Table, self.units) for weight in row]
        at = moved.index(1) if records > 1 else 0
        return log_near(Fraction(weights[ends[1][at]], weights[ends[0][1]]))

    def compare(self) -> dict[str, list[Any]]:
        """Return this design beside the rules at the same epsilon, a column for each name.

        Columns: rule; step: "audited", the largest that passes for these K and C, or
        "e^(epsilon / 2)"; mean_regret, worst_regret, mean_error and worst_error, under the prior
        of the setting; spending, the least epsilon of the integers.

        Raises:
            ParameterError: if the histograms cannot be listed.
        """
        setting = self.setting
        setting._require_table("a comparison")
        found: list[tuple[str, str, Table]] = []
        own = "optimum" if setting.rule == "optimal" else "audited"
        found.append((setting.rule, own, cast(Table, self.units)))
        root = Fraction(*rational_step(setting.epsilon, setting.bits))
        for rule in RULES[1:]:
            if rule in THEOREMS:
                table = table_at_step(rule, setting.partitions, root, setting.bits)
                found.append((rule, "e^(epsilon / 2)", table))
            if rule != setting.rule:
                table = audit_rule(rule, setting.records, setting.classes, setting.epsilon).units
                found.append((rule, "audited", table))
        columns: dict[str, list[Any]] = {
            "rule": [rule for rule, _, _ in found],
            "step": [step for _, step, _ in found],
        }
        for loss in LOSSES:
            pairs = [setting.losses(table, loss) for _, _, table in found]
            columns[f"mean_{loss}"] = [float(mean) for mean, _ in pairs]
            columns[f"worst_{loss}"] = [float(most) for _, most in pairs]
        columns["spending"] = [
            log_upper(worst(setting.partitions, table).ratio) for _, _, table in found
        ]
        return columns

    def asked(
        self,
        data: Any = None,  # noqa: ANN401
        *,
        counts: npt.ArrayLike | None = None,
    ) -> int:
        """Return the number of queries, each of which spends the whole guarantee; see `release`."""
        self.require_private()
        return len(self.setting.counted(data, counts)[0])

    def release(
        self,
        data: Any = None,  # noqa: ANN401
        *,
        counts: npt.ArrayLike | None = None,
    ) -> IntVector | int:
        """Return a private plurality of votes, with the operating system's randomness.

        Each query spends the whole guarantee. A record that reaches t ballots spends t epsilon; see
        `dpopt.votes.Spending`.

        Args:
            data: votes in 0..C-1, shape (K,) for one query or (queries, K); or a `dpopt.roo.Tally`.
            counts: instead, how many votes each class has, sum K, shape (C,) or (queries, C).

        Returns:
            A class in 0..C-1 for one query; an array of them, shape (queries,), for several.

        Raises:
            ParameterError: for votes or counts of another shape, other values or another sum; the
                refusal is for the curator alone.
            NotPrivateError: if the mechanism has no certificate.
        """
        self.require_private()
        rows, single = self.setting.counted(data, counts)
        return self._classes(rows, single, system)

    def simulate(
        self,
        data: Any = None,  # noqa: ANN401
        rng: np.random.Generator | None = None,
        *,
        counts: npt.ArrayLike | None = None,
    ) -> IntVector | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        source = seeded(cast(np.random.Generator, rng))
        rows, single = self.setting.counted(data, counts)
        return self._classes(rows, single, source)

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self.setting.partitions, cast(Table, self.units))

    def _classes(self, rows: IntVector, single: bool, source: Source) -> IntVector | int:
        if self.setting.by_theorem:
            coins = Coins(Fraction(*cast(Step, self.units)), source)
            flip = self.setting.rule == "permute-and-flip"
            draw = coins.permute_and_flip if flip else coins.exponential
            found = np.array([draw(row) for row in rows], dtype=np.int64)
        else:
            found = self._labels.draw(rows, source)
        return int(found[0]) if single else found

    def facts(self) -> Json:
        """Return mean and worst regret and error, and what the integers spend."""
        return {
            "mean_regret": _known(self.mean_regret),
            "worst_regret": _known(self.worst_regret),
            "mean_error": _known(self.mean_error),
            "worst_error": _known(self.worst_error),
            "spending": self.spending,
            "ladder_epsilon": self.ladder_epsilon,
        }

    def to_dict(self) -> Json:
        """Return the design as plain values, ready for JSON; integers as text."""
        return {**super().to_dict(), "value": _known(self.value), "gap": self.gap}


PluralitySetting.answer = PluralityDesign


def design(
    records: int,
    classes: int,
    epsilon: float,
    *,
    objective: str = "bayes",
    loss: str = "regret",
    rule: str = "optimal",
    prior: str = "uniform",
    backend: str | Backend | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
) -> PluralityDesign:
    """Return the best private choice of the most common class, proved private.

    The parameters are the fields of the setting, see `PluralitySetting`. For backend,
    time_limit and stop_at_gap see `dpopt.design`.

    Raises:
        ParameterError: for a parameter out of range, or a program that is too large.
        NotPrivateError: if no table of a rule passes its audit.
        SolverError: if the solver found no answer.

    Example:
        >>> from dpopt import plurality
        >>> best = plurality.design(20, 3, 0.5)
        >>> best.verdict, round(best.mean_regret, 4)
        ('private', 0.7032)
    """
    named: Any = (objective, loss, rule)
    setting = PluralitySetting(records, classes, epsilon, *named, prior=prior)
    return designed(setting, backend=backend, time_limit=time_limit, stop_at_gap=stop_at_gap)


def rational_step(epsilon: float, bits: int = _STEP_BITS) -> Step:
    """Return s = 1 + n / 2^j, with s^2 <= e^epsilon and n of so many bits or a few more.

    Args:
        epsilon: above 0.
        bits: of n.
    """
    ratio = exp_lower(epsilon, 2 * bits + 128)
    bits += max(0, math.ceil(1 - math.log2(epsilon)))
    return math.isqrt((ratio.numerator << 2 * bits) // ratio.denominator), 1 << bits


def _losses(partitions: Partitions, loss: str) -> list[int]:
    """Return the loss of one class of each variable: its gap to the largest count, or 1."""
    tops = [state[0] for state in partitions.states]
    gaps = [
        tops[state] - count
        for state, count in zip(
            partitions.state_of.tolist(), partitions.counts.tolist(), strict=True
        )
    ]
    return gaps if loss == "regret" else [int(gap > 0) for gap in gaps]


def more_than(most: int, records: int, classes: int) -> bool:
    """Return whether there are more sorted histograms than some number."""
    # Each is the sorted form of C! histograms at most; small ones are counted.
    logs = math.lgamma(records + classes) - math.lgamma(records + 1)
    logs -= math.lgamma(classes) + math.lgamma(classes + 1)
    # 100 records in 100 parts have 190,569,292: beyond that they need not be counted.
    if logs > math.log(most) + 1e-6 or records > _LONGEST_LIST or min(records, classes) >= 100:
        return True
    return partition_count(records, classes) > most


def _leads(records: int) -> list[int]:
    """Return leads of one of two classes, at most 200 of them."""
    step = 2 * (records // 400 + 1)
    return list(range(records % 2, records + 1, step))


def _two_classes(rule: str, step: Fraction, lead: int, records: int, classes: int) -> float:
    """Return the probability of the larger of two classes, or of both if equal; in floats."""
    top = (records + lead) // 2
    second, others = float(step) ** -lead, float(step) ** -top
    if rule == "exponential":
        rest = (classes - 2) * others
        return (1 + second if lead == 0 else 1.0) / (1 + second + rest)
    # int_0^1 (1 - q t) (1 - p t)^(C - 2) dt by Gauss and Legendre: exact up to the degree.
    nodes, weights = np.polynomial.legendre.leggauss(min(classes, 64))
    t, w = (nodes + 1) / 2, weights / 2
    share = float(np.sum(w * (1 - second * t) * (1 - others * t) ** (classes - 2)))
    return 2 * share if lead == 0 else share


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
