"""Reveal-or-Obscure: a uniform category with a probability q_m of the smallest count m.

A recursion solves the program in closed form: q_m is the least number that the rows of
`dpopt.verify.moves` with q_m, and with the q before it, allow. It runs from the largest m down for
two categories, else from 0 up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, exact_text, whole
from dpopt._progress import advance, expect, track
from dpopt._types import IntVector, Vector, brief, frozen
from dpopt.lp import Solution
from dpopt.privacy import Certificate, Problem
from dpopt.privacy.cost import DominatingPair, Least, Point, least_of_ratio, require_pure
from dpopt.roo.setting import UNIT, CategorySetting, RooSetting
from dpopt.table.table import BITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RULES = ("exact", "roo", "journal", "journal-repaired", "conference")
"""The rules that `rule_weights` and `RevealOrObscure` take."""

# Largest number of q_m that are not 0.
_LONGEST = 1_000_000
# What progress calls the recursion.
_STAGE = "rule of the smallest count"
# Equation numbers of the rows in the journal paper, by (change of the smallest count, whether the
# category has the smallest count; otherwise it has all records).
_NUMBERS = {(0, True): "(68)", (1, True): "(69)", (-1, True): "(70)"}
_NUMBERS |= {(0, False): "(72)", (1, False): "(73)", (-1, False): "(74)"}


@dataclass(frozen=True)
class RevealOrObscure(CategorySetting):
    """A random record's category or, with probability q_m, a uniformly random category (DS-ROO).

    Here m is the smallest count of a category (Data-Specific Reveal-or-Obscure; Tasnim, Gilani,
    Sankar, Kosut, 2025). A category with count c is released with probability
    f(m, c) = q_m / k + (1 - q_m) c / n. The program is

        minimise   sum_m q_m
        subject to f(m~, c~) <= e^epsilon f(m, c)             "privacy"
                   0 <= q_m <= 1,  m = 0, ..., M = floor(n / k)

    for all changes of (m, c) to (m~, c~) that the replacement of one record can cause. The rule
    "exact" is the optimum of this program, in which at most five inequalities for each m imply all
    others. The other rules are those of the conference paper (ITW 2025) and of the journal paper
    (arXiv 2504.14696v2). A number such as (68) is that of an inequality in the journal paper, and
    names its rows in `problem`:

    - "roo": the program above with the same q for all m (algorithm 1 of both papers);
    - "journal-repaired": the optimum of the journal paper's program, with all of its inequalities,
      (68) to (70) and (72) to (74); private;
    - "journal": the values that the journal paper's algorithm 2 computes. It leaves out (68) for
      the largest m, and is not private in general;
    - "conference": the values that the conference paper's recursion computes, not private in
      general. The recursion imposes (70), and of (68) only the case m = 0. The values are the
      optimum of a program with these inequalities, whose objective has q_M / k instead of q_M.

    Among all private rules that depend on the smallest count alone, "exact" has the least q_m for
    every m at once. The value of a design is its objective; for "roo" this is (M + 1) q. The
    values q_m of "roo" follow from a formula, those of the other rules from a recursion
    (`rule_weights`). The program itself (`problem`, which `dpopt.design` solves if it is given a
    backend) is refused for M above 200,000 or epsilon above 30.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        categories: k, at least 2.
        epsilon: above 0, in nats, at most 600.
        rule: "exact" (the best of its kind), "roo", "journal", "journal-repaired" or "conference".

    For the rules "journal" and "conference" the design checks all inequalities. If one fails, the
    design can be inspected, but refuses to release.

    Example:
        >>> import dpopt
        >>> sampler = dpopt.design(dpopt.RevealOrObscure(records=1000, categories=10, epsilon=0.1))
        >>> round(sampler.obscuring(0), 4), sampler.obscuring(17), sampler.private
        (0.0868, 0.0, True)
    """

    kind: ClassVar[str] = "reveal-or-obscure"
    summary: ClassVar[tuple[str, ...]] = ("excess_factor",)

    records: int
    categories: int
    epsilon: float
    rule: Literal["exact", "roo", "journal", "journal-repaired", "conference"] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.keep(rule=_checks.choice("rule", self.rule, RULES))

    @property
    def constant(self) -> bool:
        """Whether q_m is the same for every m."""
        return self.rule == "roo"

    @property
    def may_fail(self) -> bool:
        """Whether this is a published rule that may not be private."""
        return self.rule in ("journal", "journal-repaired", "conference")

    def problem(self) -> Problem:
        """Return the rule's program: variable "q", rows "privacy" or numbered as in the paper."""
        # Beyond, solvers refuse coefficients of e^epsilon next to 1, and memory ends.
        if self.epsilon > 30.0 or self.largest_minimum > 200_000:
            raise ParameterError(
                f"epsilon is {digits(self.epsilon)} and the largest m {self.largest_minimum}; the "
                "program is written out up to 30 and 200000. The recursion has no such limit."
            )
        problem = Problem("DS-ROO obscuring probabilities")
        problem.add_variables("q", self._costs().size, lower=0.0, upper=1.0)
        n, k, blocks = self.records, self.categories, dict[str, list[verify.Name]]()
        for m in range(self.largest_minimum + 1):
            for _, *move in verify.moves(n, k, m, self.rule):
                name = _NUMBERS[move[2] - move[0], move[1] == move[0]]
                blocks.setdefault(name if self.may_fail else "privacy", []).append(tuple(move))
        for name in sorted(blocks):
            moves = np.array(blocks[name])
            # e^epsilon c - c~, computed without cancellation where c~ is close to c.
            upper = math.expm1(self.epsilon) * moves[:, 1] - (moves[:, 3] - moves[:, 1])
            problem.add_rows(name, {"q": self._coefficients(moves)}, upper=upper)
        problem.minimise({"q": self._costs()})
        return problem

    def _coefficients(self, moves: IntVector) -> sp.csr_array:
        """Return the rows q~ (n / k - c~) - e^epsilon q (n / k - c), shape (moves, variables)."""
        share, exp_epsilon = self.records / self.categories, math.exp(self.epsilon)
        minimum, count, new_minimum, new_count = moves.T
        data = np.concatenate([share - new_count, -exp_epsilon * (share - count)])
        # With one q for all m there is a single column, and its entries add up.
        columns = np.concatenate([new_minimum, minimum]) * (not self.constant)
        rows = np.tile(np.arange(len(moves)), 2)
        return sp.csr_array((data, (rows, columns)), shape=(len(moves), self._costs().size))

    def _costs(self) -> Vector:
        last = self.largest_minimum
        if self.constant:
            return np.array([last + 1.0])
        costs = np.ones(last + 1)
        if self.rule == "conference" and last:
            costs[-1] = 1 / self.categories
        return costs

    def closed_form(self) -> tuple[int, ...]:
        """Return q_0, q_1, ... over 2^62 by the rule's recursion, rounded up."""
        return rule_weights(self, self.rule)

    def point(self, solution: Solution) -> Vector:
        """Return q_0, ..., q_M; for "roo" the single q."""
        return solution["q"]

    def table(self, point: Vector) -> tuple[int, ...]:
        """Return a solution as integers over 2^62, rounded up and raised until it is private.

        q -> q + t (1 - q) mixes with the uniform distribution, at which every row has slack (r - 1)
        / k: t = v / ((r - 1) / k + v) repairs a worst violation v, raised by rounding errors.
        A published rule is raised only if v is below 1e-9, so that its own violations remain.
        """
        rounded = [round_up(Fraction(q)) for q in np.clip(point, 0.0, 1.0).tolist()]
        try:
            self._decided(rounded)
            missed = Fraction(0)
        except verify.Refused as refusal:
            missed = Fraction(refusal.missed)
        # Violation up to which a published rule is repaired as rounding; a larger one is the rule's
        # own.
        if missed == 0 or (self.may_fail and missed > Fraction(1, 10**9)):
            return trimmed(rounded)
        lacking = missed + 2 * (self.ratio + 1) / UNIT
        share = lacking / ((self.ratio - 1) / self.categories + lacking)
        return tuple(round_up((w + share * (UNIT - w)) / UNIT) for w in rounded)

    def value(self, table: tuple[int, ...]) -> float:
        """Return the objective: the sum of all q_m, for "conference" with q_M / k."""
        total = Fraction(sum(table), UNIT)
        if self.constant:
            total *= self.largest_minimum + 1
        elif self.rule == "conference" and 1 < len(table) == self.largest_minimum + 1:
            total -= (1 - Fraction(1, self.categories)) * Fraction(table[-1], UNIT)
        return float(total)

    def judge(self, table: tuple[int, ...]) -> Certificate:
        """Return the exact proof of a rule."""
        self.checked(table)
        try:
            verdict = self._decided(table)
        except verify.Refused:
            audit = audited(self, table, constant=self.constant)
            before, after = str(audit.witness.runs), str(audit.witness.neighbour_runs)
            raise NotPrivateError(
                f"rule {self.rule!r} is not {self.epsilon:g}-DP for n = {self.records}, k = "
                f"{self.categories}: category 0 is {audit.excess_factor:.6g} e^epsilon times as "
                f"likely for one of two neighbours; (count, categories): {before} and {after}.",
                inputs=(before, after),
                output="category 0",
                excess=audit.excess_factor - 1.0,
            ) from None
        tightest = witness_of(self, verdict.at[1:])
        return Certificate(
            claim="the min-count rule is private for all neighbouring data sets",
            guarantee=self.guarantee,
            constraints=verdict.rows,
            slack=Fraction(verdict.slack),
            tightest=f"(count, categories): {tightest.runs}; neighbour: {tightest.neighbour_runs}",
        )

    def _decided(self, table: Sequence[int]) -> verify.Verdict:
        exp_epsilon = verify.exp(self.epsilon)[0]
        return verify.decide_rule(
            self.records, self.categories, list(table), self.constant, exp_epsilon
        )

    def _proof_size(self, table: tuple[int, ...]) -> int:
        """Estimate the entries of the rows: at most five rows for each q_m, of two variables."""
        return 10 * len(table)

    def spent(self, table: tuple[int, ...], epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for delta = 0, exactly: the witness attains the worst ratio."""
        require_pure(self.kind, epsilon, delta)
        audit = audited(self, table, constant=self.constant)
        after, before = audit.witness.neighbour_runs, audit.witness.runs
        words = f"(count, categories): {after}", f"(count, categories): {before}"
        return least_of_ratio(audit.worst_ratio, words, (0,))

    def obscuring_weight(self, table: tuple[int, ...], minimum: int) -> int:
        """Return q_m over 2^62 at the smallest count m."""
        if self.constant:
            return table[0]
        return table[minimum] if minimum < len(table) else 0

    def weights(
        self, table: tuple[int, ...], counts: IntVector, categories: IntVector
    ) -> list[int]:
        """Return the weight of a category with each count, over k n 2^62."""
        del categories
        q = self.obscuring_weight(table, int(counts[0]))
        fixed, each = q * self.records, (UNIT - q) * self.categories
        return [fixed + each * count for count in counts.tolist()]

    def worst_case(self, table: tuple[int, ...]) -> float:
        """Return the largest total variation of K(x) from the empirical pmf, over all data x.

        It is q_m TV(uniform, empirical(x)), largest where one category has as many records as
        possible: q_m (1 - 1/k) (1 - k m / n).
        """
        q = np.array(table[:1] if self.constant else table, dtype=float) / UNIT
        # Over m = 0, 1, ...: TV(uniform, empirical) is (1 - 1/k) times this.
        spread = 1 - np.arange(q.size) * self.categories / self.records
        return float((q * spread).max()) * (1 - 1 / self.categories)

    def report(self, table: tuple[int, ...]) -> Mapping[str, Callable[[], Any]]:
        """Return q_0, q_1, ... (all later ones 0; for "roo" equal to q_0), and the audit.

        ``obscuring(m)`` returns q_m; ``excess_factor`` is None if the ratio is unbounded.
        """
        audit = partial(audited, self, table, constant=self.constant)
        return {
            **super().report(table),
            "q": lambda: frozen([weight / UNIT for weight in table]),
            "obscuring": lambda: lambda minimum: self.obscuring_weight(table, minimum) / UNIT,
            "audit": audit,
            "excess_factor": lambda: None if audit().worst_ratio is None else audit().excess_factor,
        }

    def dominating(self, table: tuple[int, ...]) -> DominatingPair:
        """Return the tight dominating pair of all neighbours, from O(1) events for each m."""
        scale = self.categories * self.records * UNIT
        return DominatingPair.of_points(_events(self, table), scale)

    def draw(self, axes: Axes, table: tuple[int, ...], label: str | None = None) -> None:
        """Draw q_m against the smallest count m."""
        last = min(self.largest_minimum, 40 if self.constant else max(len(table) + 2, 4))
        values = [self.obscuring_weight(table, m) / UNIT for m in range(last + 1)]
        axes.plot(np.arange(last + 1), values, marker="o", clip_on=False, label=label)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("smallest count, $m$")
        axes.set_ylabel("obscuring probability $q_m$")
        axes.set_ylim(bottom=0.0)

    def columns(self, table: tuple[int, ...]) -> Mapping[str, Sequence[Any]]:
        """Return m and q_m; except for "roo", q_m is 0 beyond the last line."""
        rows = self.largest_minimum + 1 if self.constant else len(table)
        if rows > 1_000_000:
            raise ParameterError(f"result has {rows:,} rows; a table is made for at most 1e6.")
        q = [self.obscuring_weight(table, m) / UNIT for m in range(rows)]
        return {"m": list(range(rows)), "q": q}

    def plain(self, table: tuple[int, ...]) -> list[str]:
        """Return the integers as text for a file."""
        return [exact_text(weight) for weight in table]

    def read(self, plain: Any) -> tuple[int, ...]:  # noqa: ANN401
        """Return the integers of a file; see `checked`."""
        return self.checked([whole(weight) for weight in plain])

    def checked(self, weights: object) -> tuple[int, ...]:
        """Return integers in the form of `rule_weights`, checked."""
        longest = 1 if self.constant else self.largest_minimum + 1
        listed = tuple(weights) if isinstance(weights, list | tuple) else ()
        plain = set(map(type, listed)) == {int} and min(listed) >= 0 and max(listed) <= UNIT
        if not plain or len(listed) > longest:
            raise ParameterError(
                f"weights is {_checks.shown(weights)}; it must hold 1 to {longest} integers in "
                f"0..2^{BITS}."
            )
        return listed


def _events(setting: RevealOrObscure, table: tuple[int, ...]) -> Iterator[Point]:
    """Yield the probabilities, over k n 2^62, of the events under neighbours that dominate all.

    An event of s categories with C records in total has probability q_m s / k + (1 - q_m) C / n,
    affine in (s, C), so the corners of the possible (s, C) suffice. A record moves from category a
    to b. If the smallest count stays m, they are {b}, b of count m, and all but a, a of count m +
    1. If it falls to m - 1, a had count m; an event with b and without a gains a record, one
    without both none. Complements and exchanged neighbours give all others; smallest counts whose
    q, and whose neighbours' q, are 0 are dominated by smaller ones.
    """
    n, k = setting.records, setting.categories
    last = min(setting.largest_minimum, 1 if setting.constant else len(table) + 1)
    # Events of a dominating pair: memory fixes them.
    if 40 * last > 4_000_000:
        raise ParameterError(
            f"records is {n}; the privacy loss is found from at most 4e+06 events, "
            f"and these are {40 * last:.1e}."
        )

    def pmf(m: int, s: int, total: int) -> int:
        q = setting.obscuring_weight(table, m)
        return q * n * s + (UNIT - q) * k * total

    scale = n * k * UNIT
    for m in range(last + 1):
        stays = n >= k * m + 1 if k > 2 else n == 2 * m + 1
        events = [(m, 1, m, m + 1), (m, k - 1, n - m - 1, n - m)] if stays else []
        if m:
            events += [(m - 1, *corner) for corner in _corners(n, k, m)]
        for new, s, total, after in events:
            p, q = pmf(m, s, total), pmf(new, s, after)
            yield from ((q, p), (p, q), (scale - q, scale - p), (scale - p, scale - q))


def _corners(n: int, k: int, m: int) -> list[tuple[int, int, int]]:
    """Return (s, C, C after) of the extreme events if the smallest count falls from m to m - 1."""
    if k == 2:
        return [(1, n - m, n - m + 1)]
    remaining = n - (k - 1) * m
    # gains: b in the event, a not; others: neither.
    gains = [(1, m), (1, remaining), (k - 2, (k - 2) * m), (k - 1, n - m)]
    others = [(1, m), (1, remaining), (k - 2, (k - 2) * m), (k - 2, n - 2 * m)]
    return [(s, c, c + 1) for s, c in gains] + [(s, c, c) for s, c in others]


def rule_weights(setting: RooSetting, rule: str) -> tuple[int, ...]:
    """Return q_0, q_1, ... of a rule as integers over 2^62; later ones are 0 ("roo": equal to q_0).

    The recursions run in integers, with a rational r <= e^epsilon instead of e^epsilon, and round
    up in every step. The rules are those of `RevealOrObscure`.

    Args:
        setting: n, k and epsilon.
        rule: one of the above; rounding up is the private direction.

    Raises:
        ParameterError: for another rule, or if more than 1,000,000 of the q_m are not 0.
    """
    _checks.instance("setting", setting, RooSetting)
    _checks.choice("rule", rule, RULES)
    n, k, ratio = setting.records, setting.categories, setting.ratio
    if rule == "roo":
        return (round_up(1 / (1 + Fraction(n, k) * (ratio - 1))),)
    down, weights = rule == "exact" and k == 2, dict[int, int]()
    free, last = first_free(setting), setting.largest_minimum
    _foresee(setting, 1)
    # Beyond ``free`` the empirical distribution satisfies all rows.
    start, end, step = (min(free, last), -1, -1) if down else (0, last + 1, 1)
    for m in track(range(start, end, step), _STAGE, abs(end - start)):
        rows = verify.moves(n, k, m, rule)
        if down:
            # The rows between m - 1 and m are those of m - 1.
            rows = [row for row in rows if row[1] == row[3]] + verify.moves(n, k, m + 1, rule)
        weights[m] = max((_least(n, k, ratio, row, m, weights) for row in rows), default=0)
        if weights[m] == 0 and m >= free and not down:
            advance(_STAGE, m, m)
            break
        if len(weights) > _LONGEST:
            _foresee(setting, len(weights))
    return trimmed([weights[m] for m in sorted(weights)])


def _least(
    n: int, k: int, ratio: Fraction, row: verify.Name, m: int, known: Mapping[int, int]
) -> int:
    """Return the least q_m over 2^62, rounded up, with f(j, d) <= r f(i, c), a row of `verify`.

    0 if the row bounds q_m from above, or only others; ``known`` are the q_m that are decided.
    """
    # Times k n 2^62: q_j (n - k d) + k d <= r (q_i (n - k c) + k c).
    _, i, c, j, d = row
    if (i != m and (n >= k * d or i not in known)) or (j != m and (n <= k * c or j not in known)):
        return 0
    over, under = ratio.as_integer_ratio()
    before, after = over * (n - k * c), under * (n - k * d)
    needed = k * (under * d - over * c) << BITS
    if i != m:
        slope, needed = -after, needed - before * known[i]
    elif j != m:
        slope, needed = before, needed + after * known[j]
    else:
        slope = before - after
    return max(0, -(-needed // slope)) if slope > 0 else 0


def first_free(setting: RooSetting) -> int:
    """Return the least m with m (r - 1) >= 1: (c + 1) / c <= r for all counts c >= m."""
    return math.ceil(1 / (setting.ratio - 1)) if setting.ratio > 1 else setting.records + 1


def _foresee(setting: RooSetting, done: int) -> None:
    """Refuse a recursion that is too long, and announce a long one, before it starts.

    Every rule has q_m > 0 where (m + 1) / m > r, which bounds the number of steps from below.
    """
    steps = max(min(first_free(setting), setting.largest_minimum) + 1, done)
    if steps > _LONGEST:
        raise ParameterError(
            f"epsilon is {digits(setting.epsilon)} for n = {setting.records} and k = "
            f"{setting.categories}; more than {_LONGEST:,} of the q_m are not 0. Use the rule "
            "'roo', or a larger epsilon."
        )
    # Steps per second, including the audit that follows, for the progress estimate.
    expect(_STAGE, steps, 1e5)


def trimmed(weights: list[int]) -> tuple[int, ...]:
    """Return weights without trailing zeros, but with at least one entry."""
    last = max((m for m, weight in enumerate(weights) if weight), default=0)
    return tuple(weights[: last + 1])


def round_up(value: Fraction) -> int:
    """Return ceil(2^62 value)."""
    return -((-value.numerator << BITS) // value.denominator)


Move = tuple[int, int, int, int]
"""(m, c, m~, c~): the smallest count and a category's count, before and after a record changes."""
Runs = tuple[tuple[int, int], ...]
"""(count, number of consecutive categories that have it)."""


@dataclass(frozen=True)
class Witness:
    """Two neighbouring data sets whose first category has the largest change of probability.

    Attributes:
        runs: counts of the categories, as (count, number of consecutive categories).
        neighbour_runs: the same after one record changed.
        minima: the smallest count of each.
    """

    runs: Runs
    neighbour_runs: Runs
    minima: tuple[int, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Counts of all categories."""
        return tuple(count for count, categories in self.runs for _ in range(categories))

    @property
    def neighbour(self) -> tuple[int, ...]:
        """Counts of all categories in the neighbour."""
        return tuple(count for count, categories in self.neighbour_runs for _ in range(categories))


@dataclass(frozen=True)
class RooAudit:
    """The exact privacy cost of a rule.

    Attributes:
        worst_ratio: largest K(y | x') / K(y | x) over all neighbours and categories; None if
            unbounded.
        excess_factor: worst_ratio over e^epsilon, as a float; above 1 if the rule is not private.
        rows: number of inequalities checked; they imply all others.
        witness: neighbours that attain the worst ratio.
    """

    worst_ratio: Fraction | None
    excess_factor: float
    rows: int
    witness: Witness

    def __repr__(self) -> str:
        return brief(self)


@lru_cache(maxsize=8)
def audited(setting: RooSetting, weights: tuple[int, ...], *, constant: bool) -> RooAudit:
    """Return the largest probability ratio of a rule over all neighbours, exactly; cached."""
    numerator, denominator, worst, rows = 0, 1, (0, 0, 0, 0), 0
    n, k = setting.records, setting.categories
    for (_, *move), before, after in verify.chances_of_moves(n, k, list(weights), constant):
        rows += 1
        if after * denominator > numerator * before:
            numerator, denominator, worst = after, before, (move[0], move[1], move[2], move[3])
    ratio = Fraction(numerator, denominator) if denominator else None
    return RooAudit(
        worst_ratio=ratio,
        excess_factor=float("inf") if ratio is None else float(ratio / setting.ratio),
        rows=rows,
        witness=witness_of(setting, worst),
    )


def witness_of(setting: RooSetting, move: Move) -> Witness:
    """Return neighbouring data sets that realise a move of `dpopt.verify.moves`."""
    i, c, j, d = move
    m, k = max(i, j), setting.categories
    # Of one data set, whose smallest count is m: the first category's count, m of all others but
    # the last, and what remains. Of the other: the first category's count.
    count, new = (c, d) if i == m else (d, c)
    last = setting.records - count - (k - 2) * m
    runs = [(count, 1), (m, k - 2), (last, 1)]
    if i == j:
        other = [(new, 1), (m, k - 2), (last - 1, 1)]
    elif new < count:
        other = [(new, 1), (m, k - 2), (last + 1, 1)]
    elif k == 2:
        other = [(new, 1), (last - 1, 1)]
    elif new > count:
        # One of the others falls to m - 1.
        runs = [(count, 1), (m, 1), (m, k - 3), (last, 1)]
        other = [(new, 1), (m - 1, 1), (m, k - 3), (last, 1)]
    else:
        # Then all others have m, and one of them gives a record to another.
        runs = [(count, 1), (m, 1), (m, 1), (m, k - 3)]
        other = [(new, 1), (m - 1, 1), (m + 1, 1), (m, k - 3)]
    # Runs of no categories are left out.
    before, after = (tuple(run for run in side if run[1]) for side in (runs, other))
    return Witness(before, after, (i, j)) if i == m else Witness(after, before, (i, j))
