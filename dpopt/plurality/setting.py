"""The best private plurality of non-private records: the setting, its proofs, and its rivals.

`dpopt.verify` verifies a table over all neighbouring histograms. Permute-and-flip and the
exponential mechanism need no table. A replaced record changes the difference of two counts by at
most 2, so it changes the probability of a class by a factor of at most s^2: for a class of gap g
that is accepted with probability s^-g in random order (McKenna, Sheldon 2020), and for one drawn in
proportion to s^count (McSherry, Talwar 2007). For a step s, s^2 <= e^epsilon is decided exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text, roughly, whole
from dpopt._types import IntVector
from dpopt.ballots.choice import ClassSetting, check_prior
from dpopt.ballots.tabulate import Rungs, audit_rule, auditable, few_histograms, table_bits
from dpopt.privacy import Certificate, Guarantee, Problem, exp_lower
from dpopt.privacy.exact import log_upper
from dpopt.privacy.release import WORD, Source, below_each, random_words
from dpopt.shape import Design, design
from dpopt.table import Losses, Table, add_table
from dpopt.table.histograms import partition_count
from dpopt.table.least import least_of_table

# What `loss` and `rule` may be, and whose theorems prove the rules.
LOSSES = ("regret", "error")
RULES = ("optimal", "ladder", "permute-and-flip", "exponential")
Rule = Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"]
THEOREMS = {"permute-and-flip": "McKenna, Sheldon 2020", "exponential": "McSherry, Talwar 2007"}

_LARGEST_RECORDS, _LARGEST_CLASSES, _LARGEST_EPSILON = 10**15, 1_000_000, 50.0
# Variables of a program above which the secondary objective (the least mean among the optima of
# "worst-case") is dropped: it could take ten times as long.
_MANY = 4_000
# Significant bits of s - 1: rounding down costs 2^-32 of epsilon.
_STEP_BITS = 32


@dataclass(frozen=True)
class Plurality(ClassSetting):
    """The best private choice of the most common class of K records, or of K non-private votes.

    Neighbours differ in one replaced record. The mechanism sees the counts l of the C classes and
    outputs one class. Averaged over all relabellings of the classes, a mechanism stays private and
    loses nothing. It is then given by k[lambda, c], the probability of each single class that has
    the count c where the sorted counts are lambda. The best mechanism solves

        minimise   sum_lambda prior(lambda) sum_y loss(l_y) k[lambda, l_y]      ("mean")
               or  max_lambda sum_y loss(l_y) k[lambda, l_y]                    ("worst-case";
                                                                                rows "losses")
        subject to sum_y k[lambda, l_y] = 1                                      "sums"
                   k[lambda, l_y] <= e^epsilon k[lambda', l'_y],  l' = l - e_a + e_b
                                       "ladder", "privacy"

    over all neighbours l, l' and classes y. "mean" and "worst-case" are values of ``objective``;
    the other words in quotes are names of rows. In the rows "ladder" the changed record leaves a
    most common class a and joins the output class y = b, which has fewer. The solve begins with
    these; other rows are added where they are violated. The variable of the program is called
    "kernel": k[lambda, c] times the number of classes of count c. Among the optima of "worst-case"
    the one with the least mean loss is taken, up to 4,000 variables: it can have half the mean of
    another.

    Classes of the same count have exactly the same probability.

    Other rules replace the program:

    - "ladder": all rows "ladder" are tight. Often the optimum of "mean", never of "worst-case".
      Up to 20,000 sorted histograms, over which every pair of neighbours is verified. With 7
      or more classes, the ladder with e^epsilon in its rows may not be private; a smaller factor is
      then taken.
    - "exponential" draws a class by weights; "permute-and-flip" visits the classes in random order
      and accepts each with a probability. The weight, or the probability, is divided by a factor,
      the step, for each vote that a class has below the top. With the step e^(epsilon / 2) both are
      private for all K and C by a theorem.
      Where the histograms can be listed, the step is the largest that passes for these K and C.

    At the same step the exponential mechanism loses at least as much as permute-and-flip, but over
    many releases it can cost the least privacy: it is (epsilon^2 / 8)-zCDP (zero-concentrated
    DP, whose costs add up over releases), the others (epsilon^2 / 2)-zCDP.

    Attributes:
        records: K, in 1..10^15, public: the number of records, or of non-private voters.
        classes: C, in 2..1,000,000.
        epsilon: in (0, 50], in nats; None for several releases.
        objective: "mean", the mean loss under the prior, or "worst-case", the largest over counts.
        loss: "regret", the largest count minus that of the output, or "error", 1 for a class below
            the largest count, else 0.
        rule: "optimal", or a rule without a program: "ladder", "permute-and-flip", "exponential".
        prior: of the counts, for votes that are independent draws from one distribution p:
            "uniform" makes all vectors of counts equally likely, as p uniform on the simplex does;
            "dirichlet:A" if p is from a symmetric Dirichlet distribution, A in [0.0001, 1e6];
            "point:P,...,P" for a p that is known up to the order of the classes.
        releases: k, in 1..1000. Above 1, the design is for k outputs, each for an input that may
            depend on the outputs before; total_epsilon and total_delta of all of them replace
            epsilon, and the rule is "optimal". See `dpopt.budget`.
        total_epsilon: of all k releases together, in (0, 28], in nats; None for one release.
        total_delta: likewise, in [1e-12, 0.5]; 0 for one release.

    Example:
        >>> import dpopt
        >>> best = dpopt.design(dpopt.Plurality(20, 3, 0.5))
        >>> best.private, round(best.mean_regret, 4)
        (True, 0.7032)
    """

    kind: ClassVar[str] = "plurality"
    summary: ClassVar[tuple[str, ...]] = (
        "mean_regret",
        "worst_regret",
        "mean_error",
        "worst_error",
        "spending",
    )

    records: int
    classes: int
    # None for several releases.
    epsilon: float = cast(float, None)
    objective: Literal["mean", "worst-case"] = "mean"
    loss: Literal["regret", "error"] = "regret"
    rule: Literal["optimal", "ladder", "permute-and-flip", "exponential"] = "optimal"
    prior: str = "uniform"
    releases: int = 1
    total_epsilon: float | None = None
    total_delta: float = 0.0

    def __post_init__(self) -> None:
        if not self.keep_total("epsilon", epsilon=self.epsilon):
            most = _LARGEST_EPSILON
            epsilon = _checks.real("epsilon", self.epsilon, 0.0, most, open_lower=True)
            self.keep(epsilon=epsilon)
        records = _checks.integer("records", self.records, 1, _LARGEST_RECORDS)
        classes = _checks.integer("classes", self.classes, 2, _LARGEST_CLASSES)
        self.keep(
            records=records,
            classes=classes,
            objective=_checks.choice("objective", self.objective, ("mean", "worst-case")),
            loss=_checks.choice("loss", self.loss, LOSSES),
            rule=_checks.choice("rule", self.rule, RULES),
            prior=check_prior(self.prior, classes),
        )
        self.require_optimal()
        if self.rule == "optimal" and not few_histograms(verify.SOLVED, records, classes):
            raise ParameterError(
                f"records is {records} and classes {classes}; a program is written out for at most "
                f"{verify.SOLVED:,} sorted histograms, and rule='ladder' and "
                "rule='permute-and-flip' need no program."
            )
        if self.rule == "ladder" and not auditable(records, classes, self.epsilon):
            raise ParameterError(
                f"records is {records} and classes {classes}; the ladder's table is too large for "
                "an audit, and rule='permute-and-flip' needs none."
            )

    @classmethod
    def example(cls) -> Self:
        """Return six records of three classes."""
        return cls(records=6, classes=3, epsilon=1.0)

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return pairs of votes that differ in one replaced vote."""
        votes = [0, 0, 0, 1, 1, 2]
        replaced = (2, 1), (3, 0), (5, 1), (2, 2)
        return [(votes, [*votes[:at], new, *votes[at + 1 :]]) for at, new in replaced]

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0) for one replaced record, or what all releases spend together."""
        return Guarantee(self.epsilon) if self.releases == 1 else self.total

    def one_release(self, guarantee: Guarantee) -> Plurality:
        """Return the setting of one release with an epsilon of its own, and delta 0."""
        return self.alone(epsilon=guarantee.epsilon)

    @cached_property
    def by_theorem(self) -> bool:
        """Whether the table is a step, private by theorem, since the histograms are too many."""
        if self.rule not in THEOREMS:
            return False
        if not few_histograms(verify.SOLVED, self.records, self.classes):
            return True
        size = partition_count(self.records, self.classes) * min(self.classes, 50)
        tabled = auditable(self.records, self.classes, self.epsilon)
        # Bits of all weights of a table of permute-and-flip or the exponential mechanism: takes
        # seconds.
        return not tabled or size * self.bits > 1 << 26

    @property
    def votes(self) -> int:
        """K."""
        return self.records

    @property
    def bits(self) -> int:
        """The integer weights of a row of the table sum to 2^bits."""
        return table_bits(self.records, self.classes, self.guarantee.epsilon)

    @property
    def losses(self) -> Losses:
        """The loss of one class of each variable, in the mean or for the worst histogram."""
        return self.losses_of(self.loss, self.objective == "mean")

    def problem(self) -> Problem:
        """Return the program: variable "kernel" (and "worst"), lazy rows "privacy"."""
        self.require_program()
        inputs, losses = self.domain, self.losses
        problem = Problem("private plurality")
        add_table(problem, inputs, self.guarantee, ("ladder", *Rungs(inputs).pairs))
        unit = losses.add(problem, inputs, self.guarantee)
        uniform: dict[str, Any] = {"kernel": inputs.counts / self.classes}
        if self.objective == "worst-case":
            uniform["worst"] = losses.costs.max() / unit
            if problem.size <= _MANY:
                problem.then_minimise({"kernel": losses.costs * self.occurring[inputs.rows]})
        # The uniform kernel is strictly feasible: scaled rows have slack (1 - e^-epsilon) / C.
        problem.set_inside(uniform, slack=-math.expm1(-self.epsilon) / self.classes)
        return problem

    def closed_form(self) -> Table | Fraction | None:
        """Return a rule's audited table, or its step if that is private by theorem alone."""
        if self.rule == "optimal":
            return None
        if not self.by_theorem:
            return audit_rule(self.rule, self.records, self.classes, self.epsilon)[1]
        return rational_step(self.epsilon)

    def value(self, table: Table | Fraction) -> float:
        """Return the mean or the worst loss; nan if the histograms cannot be listed."""
        return super().value(table) if isinstance(table, Table) else math.nan

    def judge(self, table: Table | Fraction) -> Certificate:
        """Return the exact proof: for a table over all neighbours, for a step by its theorem."""
        return self._judged(table) if isinstance(table, Fraction) else super().judge(table)

    def _judged(self, step: Fraction) -> Certificate:
        above, below = (side**2 for side in step.as_integer_ratio())
        exp_epsilon = verify.growth(Fraction(self.epsilon))
        try:
            verdict = verify.decide_ratios([above, below], below, [[0], [1]], exp_epsilon)
        except verify.Refused as refusal:
            missed = Fraction(refusal.missed)
            raise NotPrivateError(
                f"{self.rule} is not {self.epsilon:g}-DP by theorem: the square of its step is "
                f"above e^epsilon by {roughly(missed)}.",
                excess=float(missed) or math.ulp(0.0),
            ) from None
        return Certificate(
            claim=f"{self.rule} of step s is private by theorem ({THEOREMS[self.rule]}), for "
            f"{self.records} records over {self.classes} classes as for all, since s^2 <= "
            "e^epsilon",
            guarantee=self.guarantee,
            constraints=1,
            slack=Fraction(verdict.slack),
            tightest="s^2 <= e^epsilon",
        )

    def plain(self, table: Table | Fraction) -> Any:  # noqa: ANN401
        """Return a table as plain values for a file; for a step, numerator and denominator."""
        if isinstance(table, Table):
            return super().plain(table)
        return [exact_text(integer) for integer in table.as_integer_ratio()]

    def read(self, plain: Any) -> Table | Fraction:  # noqa: ANN401
        """Return the table or the step of a file, checked in form."""
        if not self.by_theorem:
            return super().read(plain)
        try:
            above, below = map(whole, plain)
        except (TypeError, ValueError):
            above, below = 0, 0
        if not 0 < below < above or above.bit_length() > 4 * (_STEP_BITS + 64):
            raise ParameterError(
                "table must be numerator and denominator of a step above 1: two integers, of at "
                f"most {4 * (_STEP_BITS + 64)} bits."
            )
        return Fraction(above, below)

    def output_weights(self, table: Table | Fraction, data: Any) -> list[int]:  # noqa: ANN401
        """Return the distribution of the class for one query, as integer weights, shape (C,)."""
        if not isinstance(table, Table):
            raise ParameterError(
                f"the distribution of {self.records} records over {self.classes} classes is too "
                "long to be written out; release draws from it without."
            )
        return super().output_weights(table, data)

    def drawn(self, table: Table | Fraction, data: Any, source: Source) -> Any:  # noqa: ANN401
        """Return a class in 0..C-1 for one query, an array of them for several, drawn exactly."""
        if isinstance(table, Table):
            return super().drawn(table, data, source)
        (rows, single), coins = self.counted(data), Coins(table, source)
        flip = self.rule == "permute-and-flip"
        draw = coins.permute_and_flip if flip else coins.exponential
        labels = np.array([draw(row) for row in rows], dtype=np.int64)
        return int(labels[0]) if single else labels

    def report(self, table: Table | Fraction) -> Mapping[str, Callable[[], Any]]:
        """Return mean and worst losses, and the privacy cost.

        - mean_regret, mean_error: under the prior; worst_regret, worst_error: the largest over
          counts; None if the histograms cannot be listed.
        - spending: the least epsilon of the integer table, rounded up; for a step, by its theorem.
        """

        def lost(loss: str, mean: bool) -> float | None:
            if not isinstance(table, Table):
                return None
            return float(self.losses_of(loss, mean).value(table))

        numbers: dict[str, Callable[[], Any]] = {
            f"{name}_{loss}": partial(lost, loss, name == "mean")
            for loss in LOSSES
            for name in ("mean", "worst")
        }
        numbers["spending"] = lambda: self._spending(table)
        return numbers

    def _spending(self, table: Table | Fraction) -> float:
        if isinstance(table, Table):
            return least_of_table(table, None, 0.0).upper
        return min(log_upper(table**2), self.epsilon)

    def columns(self, table: Table | Fraction) -> Mapping[str, Sequence[Any]]:
        """Return one line per variable: the counts of all classes, a count, and its probability."""
        if isinstance(table, Table):
            return super().columns(table)
        # Largest gap in the table of a step's coins.
        gaps = range(min(self.records, 400) + 1)
        return {"gap": list(gaps), "chance": [float(table) ** -gap for gap in gaps]}


def rational_step(epsilon: float) -> Fraction:
    """Return the largest s = 1 + n / 2^j with s^2 <= e^epsilon, n of about 32 bits."""
    exp_epsilon = exp_lower(epsilon, 2 * _STEP_BITS + 128)
    bits = _STEP_BITS + max(0, math.ceil(1 - math.log2(epsilon)))
    root = math.isqrt((exp_epsilon.numerator << 2 * bits) // exp_epsilon.denominator)
    return Fraction(root, 1 << bits)


class Coins:
    """Exact draws of permute-and-flip and of the exponential mechanism, for any size.

    A class of gap g, the largest count minus its own, has a coin that comes up with probability
    s^-g. *Permute-and-flip* visits the classes in uniformly random order and returns the first
    whose coin comes up. *The exponential mechanism* returns a class with probability proportional
    to s^-g.

    Draws do not compute the distribution: for 10^9 records it would take a million digits. The
    coins of permute-and-flip do not depend on the order, so all are tossed first; the first of the
    successes in a uniform order is uniform among them. There is always one, since the coin of a
    class of the largest count always comes up. The exponential mechanism is rejection sampling:
    draw a class uniformly, and accept it if its coin comes up.

    *A coin of probability p.* Let U be uniform in [0, 1) and u = floor(2^b U). Given integers
    a <= 2^b p <= c, U < p is true if u < a and false if u >= c; otherwise more bits of U are drawn,
    and b grows. The bounds converge, so this ends with probability 1, and the probability is
    exactly p.

    Args:
        step: s, a fraction above 1.
        source: of random bytes.
    """

    def __init__(self, step: Fraction, source: Source) -> None:
        self._step, self._source = step, source
        self._bounds = cache(partial(power_bounds, step, bits=WORD))

    def toss(self, gaps: IntVector) -> npt.NDArray[np.bool_]:
        """Return which coins come up, one for each gap; gaps are at least 0."""
        distinct, index = np.unique(gaps, return_inverse=True)
        bounds = [self._bounds(gap) for gap in distinct.tolist()]
        # A gap of 0 has probability 1, which exceeds every word; it is handled in the last line.
        low = np.array([min(a, 2**WORD - 1) for a, _ in bounds], dtype=np.uint64)[index]
        last = np.array([min(c - 1, 2**WORD - 1) for _, c in bounds], dtype=np.uint64)[index]
        drawn = random_words(len(gaps), self._source)
        up = drawn < low
        # Few draws fall between the bounds; these need more bits.
        for undecided in np.flatnonzero(~up & (drawn <= last) & (gaps > 0)).tolist():
            up[undecided] = self._decided(int(gaps[undecided]), int(drawn[undecided]))
        return up | (gaps == 0)

    def permute_and_flip(self, counts: IntVector) -> int:
        """Return the index of a class drawn by permute-and-flip; counts have shape (C,)."""
        up = np.flatnonzero(self.toss(counts.max() - counts))
        return int(up[below_each(np.array([up.size]), self._source)[0]])

    def exponential(self, counts: IntVector) -> int:
        """Return the index of a class drawn by the exponential mechanism; counts have shape (C,).

        The number of tries, and so the running time, depends on the counts.
        """
        gaps = counts.max() - counts
        # Classes that the exponential mechanism tries in one vectorised round.
        tries = min(len(gaps), 1 << 14)
        while True:
            classes = below_each(np.full(tries, len(gaps)), self._source)
            up = np.flatnonzero(self.toss(gaps[classes]))
            if up.size:
                return int(classes[up[0]])

    def _decided(self, gap: int, drawn: int) -> bool:
        """Return whether U < s^-gap, for a U whose first word ``drawn`` does not decide it."""
        bits = WORD
        while True:
            drawn = (drawn << WORD) | int(random_words(1, self._source)[0])
            bits += WORD
            low, high = power_bounds(self._step, gap, bits)
            if drawn < low or drawn >= high:
                return drawn < low


def power_bounds(step: Fraction, gap: int, bits: int) -> tuple[int, int]:
    """Return integers a <= 2^bits s^-gap <= c that differ by at most a few units."""
    # Repeated squaring: every product rounds by one unit, and squaring doubles the error.
    guard = gap.bit_length() + 8
    work, one = bits + guard, 1 << (bits + guard)
    low, high = one, one
    least = (step.denominator << work) // step.numerator
    most = -((-step.denominator << work) // step.numerator)
    while gap:
        if gap & 1:
            low, high = low * least >> work, -(-high * most >> work)
        least, most, gap = least * least >> work, -(-most * most >> work), gap >> 1
    return low >> guard, -(-high >> guard)


def mode_design(records: int, classes: int, epsilon: float, *, rule: Rule = "best") -> Design:
    """Return the mechanism for the most common of C categories of K records; both are public.

    It releases the place of a category, for a `dpopt.roo.tally` of the records over an alphabet
    that was fixed before looking at the data.

    Args:
        records: K, at least 1.
        classes: C, at least 2.
        epsilon: in (0, 50], in nats.
        rule: of a `Plurality`; or "best": of the ladder, permute-and-flip and the exponential
            mechanism the one with the least mean regret over all counts, equally likely, if their
            tables take seconds. For larger sizes it is permute-and-flip, which loses no more than
            the exponential mechanism at the same step.

    Raises:
        ParameterError: for a parameter out of range, or sizes that are too large for the rule.

    Example:
        >>> from dpopt import plurality, roo
        >>> cities, records = ["Basel", "Bern", "Chur"], ["Bern"] * 9000 + ["Chur"] * 10
        >>> rule = plurality.mode_design(len(records), len(cities), 1.0)
        >>> cities[rule.release(roo.tally(records, cities))], rule.setting.rule
        ('Bern', 'permute-and-flip')
    """
    _checks.choice("rule", rule, get_args(Rule))
    records = _checks.integer("records", records, 1)
    classes = _checks.integer("classes", classes, 2)
    setting = partial(Plurality, records, classes, epsilon)
    if rule != "best":
        return design(setting(rule=rule))
    # Permute-and-flip's table takes min(C, K)^2 multiplications for each histogram.
    few = classes <= 50 and few_histograms(verify.SOLVED, records, classes)
    if not few or partition_count(records, classes) * min(classes, records) ** 2 > 2_000_000:
        return design(setting(rule="permute-and-flip"))
    tables = [design(setting(rule=name)) for name in ("ladder", "permute-and-flip", "exponential")]
    return min(tables, key=lambda each: each.mean_regret)
