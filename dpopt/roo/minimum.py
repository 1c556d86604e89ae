"""Reveal-or-Obscure: a uniform letter with a probability that looks at the smallest count.

The setting and its programs, the recursions that solve them, and the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import exact_text
from dpopt._types import IntVector, Json, Vector, frozen
from dpopt.lp import Solution, make_rows
from dpopt.lp.model import Rows
from dpopt.privacy import Certificate, Problem
from dpopt.privacy.dominating import DominatingPair, Point, upper_hull
from dpopt.privacy.least import Least, require_pure
from dpopt.roo.proof import RooAudit, audit_weights, least_of_rule, moves, prove_rule
from dpopt.roo.rules import RULES, round_up, rule_weights, trimmed
from dpopt.roo.sampler import Below, LetterSampler, draw_record
from dpopt.roo.setting import BITS, UNIT, RooSetting
from dpopt.shape import Design, Setting, design, made

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PUBLISHED = ("journal", "journal-repaired", "conference")
_LARGEST_PROGRAM = 200_000
# Beyond, solvers refuse coefficients of e^epsilon beside those of 1.
_LARGEST_EXPONENT = 30.0
_MOST_EVENTS = 4_000_000
_MOST_ROWS = 1_000_000
# What a published rule's program may lack by rounding; what it lacks beyond is the rule's fault.
_NOISE = Fraction(1, 10**9)


@dataclass(frozen=True)
class MinCount(RooSetting, Setting["MinCountSampler"]):
    """With probability q_m a uniform letter, else that of a uniform record; m the smallest count.

    A letter with count c has the probability f(m, c) = q_m / k + (1 - q_m) c / n, and

        minimise   sum_m q_m
        subject to f(m~, c~) <= e^epsilon f(m, c)             "privacy"
                   0 <= q_m <= 1,  m = 0, ..., M = floor(n / k)

    over all moves (m, c) -> (m~, c~) of the smallest count and a letter's count that one changed
    record can make; O(1) rows for each m imply them all. That is the rule "exact". The others are

    - "roo": the same program with one q for all m (algorithm 1 of both papers);
    - "journal-repaired": the journal paper's program, rows "(68)" to "(70)" and "(72)" to "(74)";
    - "journal": that without (68) at the last m, which its algorithm 2 leaves out; not always
      private there;
    - "conference": (68) at m = 0 and (70) alone; not private in general. In its objective q_M
      counts 1/k: (70) at M could be met by a larger q_{M-1} too, and the plain sum would be less
      than that of the paper's recursion.

    "exact" is least in every q_m at once, of all rules that are private and look at the smallest
    count. The value of every rule is its objective; "roo" counts its q M + 1 times. Each has a
    recursion (`rule_weights`), which finds the same point; the programs are written out up to
    M = 200,000 and epsilon 30.

    Attributes:
        records: n, at least 1; the same for all data sets, and public.
        letters: k, at least 2.
        epsilon: above 0, in nats, at most 600.
        rule: "exact" (the best of its kind), "roo", "journal", "journal-repaired" or "conference".
    """

    kind: ClassVar[str] = "roo"

    records: int
    letters: int
    epsilon: float
    rule: Literal["exact", "roo", "journal", "journal-repaired", "conference"] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rule", _checks.choice("rule", self.rule, RULES))

    @classmethod
    def example(cls) -> Self:
        """Return twelve records of three letters."""
        return cls(records=12, letters=3, epsilon=0.3)

    @classmethod
    def example_data(cls) -> object:
        """Return twelve records."""
        return [0] * 6 + [1] * 4 + [2] * 2

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return twelve records, and one of them changed."""
        return [([0] * a + [1] * (12 - a), [0] * a + [1] * (11 - a) + [2]) for a in range(12)]

    @property
    def constant(self) -> bool:
        """Whether one q is that of every m."""
        return self.rule == "roo"

    @property
    def may_fail(self) -> bool:
        """Whether this is a published rule that may not be private."""
        return self.rule in _PUBLISHED

    def problem(self) -> Problem:
        """Return the rule's program: variable "q", the rows of the class.

        Raises:
            ParameterError: if M = floor(n / k) is above 200,000, or epsilon above 30.
        """
        if self.epsilon > _LARGEST_EXPONENT:
            raise ParameterError(
                f"epsilon is {self.epsilon:g}; the program is written out up to "
                f"{_LARGEST_EXPONENT:g}. The recursion has no such limit."
            )
        if self.largest_minimum > _LARGEST_PROGRAM:
            raise ParameterError(
                f"records / letters is {self.records / self.letters:g}; the program is written "
                f"out up to {_LARGEST_PROGRAM}. The recursion has no such limit."
            )
        problem = Problem("DS-ROO obscuring probabilities")
        if self.constant:
            problem.add_variables("q", 1, lower=0.0, upper=1.0)
            every = _private_rows(self)
            # One column: every q_m is the same variable.
            same = sp.csr_array(every.matrix.sum(axis=1).reshape(-1, 1))
            problem.add_rows("privacy", make_rows(same, upper=every.upper))
        else:
            problem.add_variables("q", self.largest_minimum + 1, lower=0.0, upper=1.0)
            blocks = {"privacy": _private_rows(self)} if self.rule == "exact" else _published(self)
            for name, rows in blocks.items():
                problem.add_rows(name, rows)
        problem.minimise({"q": self._costs()})
        return problem

    def _costs(self) -> Vector:
        last = self.largest_minimum
        if self.constant:
            return np.array([last + 1.0])
        costs = np.ones(last + 1)
        if self.rule == "conference" and last:
            costs[-1] = 1 / self.letters
        return costs

    def closed_form(self) -> tuple[int, ...]:
        """Return the rule by its recursion, rounded up."""
        return rule_weights(self, self.rule)

    def point(self, solution: Solution) -> Vector:
        """Return q_0, ..., q_M; of "roo" the one q."""
        return solution["q"]

    def units(self, point: Vector) -> tuple[int, ...]:
        """Return a point over 2^62, rounded up and raised until it is private.

        q -> q + t (1 - q) mixes the law of the letter with the uniform one, of which every row has
        the slack (r - 1) / k. So t = v / ((r - 1) / k + v) repairs a worst violation v, which the
        judge finds exactly; v is taken larger by what the rounding of both sides can cost. A
        published rule is raised only if v is below 1e-9, so that its own faults stay.
        """
        rounded = [round_up(Fraction(q)) for q in np.clip(point, 0.0, 1.0).tolist()]
        audit = audit_weights(self, rounded, constant=self.constant)
        if audit.private or (self.may_fail and -audit.slack > _NOISE):
            return trimmed(rounded)
        lacking = -audit.slack + 2 * (self.ratio + 1) / UNIT
        share = lacking / ((self.ratio - 1) / self.letters + lacking)
        return tuple(round_up((w + share * (UNIT - w)) / UNIT) for w in rounded)

    def value(self, units: tuple[int, ...]) -> float:
        """Return the objective: the sum of all q_m, with the last of "conference" over k."""
        total = Fraction(sum(units), UNIT)
        if self.constant:
            total *= self.largest_minimum + 1
        elif self.rule == "conference" and 1 < len(units) == self.largest_minimum + 1:
            total -= (1 - Fraction(1, self.letters)) * Fraction(units[-1], UNIT)
        return float(total)

    def proof_size(self, units: tuple[int, ...]) -> int:
        """Return the entries of the rows: at most five for each q_m, of two variables."""
        return 10 * len(units)

    def audit(self, units: tuple[int, ...]) -> RooAudit:
        """Return what a rule spends, exactly."""
        return _audited(self, units)

    def prove(self, units: tuple[int, ...]) -> Certificate:
        """Return the exact proof of a rule.

        Raises:
            NotPrivateError: naming two data sets, if it is not private.
        """
        return prove_rule(self, self.audit(units), self.rule)

    def spent(self, units: tuple[int, ...], epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for delta = 0."""
        require_pure(self.kind, epsilon, delta)
        return least_of_rule(self.audit(units))

    def obscuring_unit(self, units: tuple[int, ...], minimum: int) -> int:
        """Return q_m over 2^62 for a smallest count m."""
        if self.constant:
            return units[0]
        return units[minimum] if minimum < len(units) else 0

    def law(self, units: tuple[int, ...], data: object) -> list[int]:
        """Return the law of the letter over k n 2^62."""
        counts = self.counted(data).tolist()
        q = self.obscuring_unit(units, min(counts))
        return [q * self.records + (UNIT - q) * count * self.letters for count in counts]

    def dominating(self, units: tuple[int, ...]) -> DominatingPair:
        """Return the tight dominating pair of all neighbours, from O(1) events for each m.

        Raises:
            ParameterError: for more than 4e6 events.
        """
        scale = self.letters * self.records * UNIT
        return DominatingPair.of_points(upper_hull(_events(self, units)), scale)

    def draw(self, axes: Axes, units: tuple[int, ...], label: str | None = None) -> None:
        """Draw q_m against the smallest count m."""
        shown = min(self.largest_minimum, 40 if self.constant else max(len(units) + 2, 4))
        values = [self.obscuring_unit(units, m) / UNIT for m in range(shown + 1)]
        axes.plot(np.arange(shown + 1), values, marker="o", clip_on=False, label=label)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("smallest count, $m$")
        axes.set_ylabel("obscuring probability $q_m$")
        axes.set_ylim(bottom=0.0)

    def columns(self, units: tuple[int, ...]) -> Mapping[str, Sequence[Any]]:
        """Return m and q; where each m has a q of its own, those beyond the last row are 0."""
        rows = self.largest_minimum + 1 if self.constant else len(units)
        if rows > _MOST_ROWS:
            raise ParameterError(f"result has {rows:,} rows; a table is made for at most 1e6.")
        q = [self.obscuring_unit(units, m) / UNIT for m in range(rows)]
        return {"m": list(range(rows)), "q": q}

    def read(self, plain: Any) -> tuple[int, ...]:  # noqa: ANN401
        """Return the integers of a file; see `checked`."""
        return self.checked(super().read(plain))

    def checked(self, weights: object) -> tuple[int, ...]:
        """Return integers as what `rule_weights` returns, checked in form.

        Raises:
            ParameterError: if they are not 1 to M + 1 integers in 0..2^62, one for "roo".
        """
        longest = 1 if self.constant else self.largest_minimum + 1
        listed = tuple(weights) if isinstance(weights, list | tuple) else ()
        if not 1 <= len(listed) <= longest or not all(
            isinstance(weight, int) and not isinstance(weight, bool) and 0 <= weight <= UNIT
            for weight in listed
        ):
            raise ParameterError(
                f"weights is {_checks.shown(weights)}; it must hold 1 to {longest} integers in "
                f"0..2^{BITS}."
            )
        return listed


@lru_cache(maxsize=8)
def _audited(setting: MinCount, weights: tuple[int, ...]) -> RooAudit:
    """Return the audit; kept, since the proof and the sampler's facts both speak of it."""
    return audit_weights(setting, weights, constant=setting.constant)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MinCountSampler(LetterSampler, Design):
    """With probability q_m a uniform letter, else that of a uniform record; m the smallest count.

    K(y | counts) = q_m / k + (1 - q_m) c_y / n.

    Attributes:
        setting: n, k, epsilon and the rule.
        units: q_0, q_1, ... as integers over 2^62, all later ones 0 (of "roo", all like the first):
            what is audited, and what `release` draws from.
        certificate: the proof that the rule is epsilon-DP; None if it is not.
        bound: on the objective of the rule's program; see `Design`.
    """

    setting: MinCount

    @property
    def rule(self) -> str:
        """The rule's name, one of `RULES`."""
        return self.setting.rule

    @property
    def weights(self) -> tuple[int, ...]:
        """q_0, q_1, ... as integers over 2^62: the units."""
        return self.units

    @cached_property
    def q(self) -> Vector:
        """The units as floats, read-only."""
        return frozen([weight / UNIT for weight in self.units])

    @property
    def audit(self) -> RooAudit:
        """The exact worst ratio over all neighbours."""
        return self.setting.audit(self.units)

    def obscuring(self, minimum: int) -> float:
        """Return q_m for a smallest count m."""
        return self.setting.obscuring_unit(self.units, minimum) / UNIT

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return q_m / k + (1 - q_m) c_y / n for each letter, shape (k,)."""
        checked = self.fitting(counts)
        q = self.obscuring(int(checked.min()))
        return frozen(q / self.setting.letters + (1 - q) * (checked / self.setting.records))

    def _draw(self, counts: IntVector, below: Below) -> int:
        obscured = below(UNIT) < self.setting.obscuring_unit(self.units, int(counts.min()))
        # Both are drawn, so that a clock does not tell which one was taken.
        letters = draw_record(counts, below), below(self.setting.letters)
        return letters[obscured]

    def details(self) -> Json:
        """Return the q of all m, where it is one."""
        return {"q": self.obscuring(0)} if self.setting.constant else {}

    def facts(self) -> Json:
        """Return q and what the audit found."""
        audit = self.audit
        ratio = audit.worst_ratio
        return {
            "rule": self.rule,
            "q": self.q.tolist(),
            "worst_ratio": None if ratio is None else float(ratio),
            "worst_ratio_exact": None if ratio is None else exact_text(ratio),
            "excess_factor": audit.excess_factor,
            "rows": audit.rows,
            "witness": audit.witness.to_dict(),
        }


MinCount.answer = MinCountSampler


def min_count(records: int, letters: int, epsilon: float, rule: str = "exact") -> MinCountSampler:
    """Return a sampler whose q depends on the smallest count, audited in exact arithmetic.

    The parameters are the fields of the setting, see `MinCount`. Published rules that fail their
    audit can be looked at but refuse to release.

    Raises:
        ParameterError: for a parameter out of range.

    Example:
        >>> from dpopt import roo
        >>> sampler = roo.min_count(records=1000, letters=10, epsilon=0.1)
        >>> round(sampler.obscuring(0), 4), sampler.obscuring(17), sampler.audit.private
        (0.0868, 0.0, True)
    """
    named: Any = rule
    return design(MinCount(records, letters, epsilon, named))


def from_weights(setting: RooSetting, rule: str, weights: Sequence[int]) -> MinCountSampler:
    """Audit a rule given as integers over 2^62; without a certificate if it is not private.

    Raises:
        ParameterError: for weights that are not 1 to M + 1 integers in 0..2^62, one for "roo".
    """
    named = _setting(setting, rule)
    return made(named, named.checked(weights), strict=False, float_bound=None)


def _setting(sizes: RooSetting, rule: str) -> MinCount:
    _checks.instance("setting", sizes, RooSetting)
    named: Any = rule
    return MinCount(sizes.records, sizes.letters, sizes.epsilon, named)


def exact_problem(setting: RooSetting) -> Problem:
    """Return the program of the least rule in the smallest count: variable "q", block "privacy".

    The optimum is least in every q_m at once.

    Raises:
        ParameterError: if M = floor(n / k) is above 200,000.
    """
    return _setting(setting, "exact").problem()


def journal_problem(setting: RooSetting) -> Problem:
    """Return the journal paper's program: (68) to (70) and (72) to (74), minimise sum of q_m.

    Raises:
        ParameterError: if M = floor(n / k) is above 200,000.
    """
    return _setting(setting, "journal-repaired").problem()


def _private_rows(setting: MinCount) -> Rows:
    """Return q~ (1/k - c~/n) - e q (1/k - c/n) <= (e c - c~) / n for each move, times n."""
    every = [move for m in range(setting.largest_minimum + 1) for move in moves(setting, m)]
    n, k, e = setting.records, setting.letters, math.exp(setting.epsilon)
    # Axis 0: the moves; axis 1: a smallest count and a letter's count, before and after.
    before = np.array([(move.minimum, move.count) for move in every], dtype=float)
    after = np.array([(move.new_minimum, move.new_count) for move in every], dtype=float)
    row = np.arange(len(every))
    data = np.concatenate([n / k - after[:, 1], -e * (n / k - before[:, 1])])
    columns = np.concatenate([after[:, 0], before[:, 0]]).astype(int)
    shape = (len(every), setting.largest_minimum + 1)
    matrix = sp.csr_array((data, (np.concatenate([row, row]), columns)), shape=shape)
    # e c - c~ without cancellation where c~ is next to c.
    right = math.expm1(setting.epsilon) * before[:, 1] - (after[:, 1] - before[:, 1])
    return make_rows(matrix, upper=right)


def _published(setting: MinCount) -> dict[str, Rows]:
    """Return the rows of a published rule, by their numbers in the journal paper.

    u_m, v_m and w_m belong to a letter with the smallest count m; u', v' and w', in (72) to (74),
    to a letter that has all n records.
    """
    n, k, e = setting.records, setting.letters, math.exp(setting.epsilon)
    last = setting.largest_minimum
    m = np.arange(last + 1)
    u, v = 1 / k - (m + 1) / n, e * (1 / k - m / n)
    w = (m * math.expm1(setting.epsilon) - 1) / n
    ones = np.ones(last + 1)
    u_all, v_all = ones * (1 / k - 1 - 1 / n), ones * e * (1 / k - 1)
    w_all = ones * (math.expm1(setting.epsilon) - 1 / n)
    # Each block is about these m, and has q_m and a neighbour's q_{m+1} or q_{m-1} in it.
    every, not_last, not_first = slice(0, last + 1), slice(0, last), slice(1, last + 1)
    if setting.rule == "conference":
        # v_m q_m >= ... says nothing where v_m = 0: the smallest count cannot be larger.
        held = slice(1, last + (n != k * last))
        first = {"(68)": _diagonals({0: u - v}, w, slice(0, 1))}
        return first | ({"(70)": _diagonals({0: -v, -1: u}, w, held)} if held.stop > 1 else {})
    stays = slice(0, max(last, 1)) if setting.rule == "journal" else every
    blocks = {
        "(68)": _diagonals({0: u - v}, w, stays),
        "(72)": _diagonals({0: u_all - v_all}, w_all, every),
    }
    if last:
        blocks |= {
            "(69)": _diagonals({0: -v, 1: u}, w, not_last),
            "(70)": _diagonals({0: -v, -1: u}, w, not_first),
            "(73)": _diagonals({0: -v_all, 1: u_all}, w_all, not_last),
            "(74)": _diagonals({0: -v_all, -1: u_all}, w_all, not_first),
        }
    return blocks


def _diagonals(bands: dict[int, Vector], right: Vector, chosen: slice) -> Rows:
    """Return rows sum over offsets of band[m] q_{m + offset} <= right[m], for the chosen m."""
    size = right.size
    m = np.arange(size)[chosen]
    data = np.concatenate([band[chosen] for band in bands.values()])
    columns = np.concatenate([m + offset for offset in bands])
    row = np.tile(np.arange(m.size), len(bands))
    matrix = sp.csr_array((data, (row, columns)), shape=(m.size, size))
    return make_rows(matrix, upper=right[chosen])


def _events(setting: MinCount, units: tuple[int, ...]) -> Iterator[Point]:
    """Yield the chances of events under neighbours, which dominate all others; over k n 2^62.

    An event of s letters with C records in sum has q_m s / k + (1 - q_m) C / n, affine in (s, C),
    so that the corners of the possible (s, C) decide. A record moves from letter a to letter b.
    Where the smallest count stays m, only a and b change: {b} from the count m, and all but a
    from the count m + 1. Where it falls to m - 1, a had m; an event with b and without a gains a
    record, one without both gains none. Complements and exchanged neighbours give all the others.
    Smallest counts whose q and neighbours' q are 0 add less the larger they are.
    """
    n, k = setting.records, setting.letters
    last = min(setting.largest_minimum, 1 if setting.constant else len(units) + 1)
    if 40 * last > _MOST_EVENTS:
        raise ParameterError(
            f"records is {n}; the privacy loss is found from at most {_MOST_EVENTS:.0e} events, "
            f"and these are {40 * last:.1e}."
        )

    def law(m: int, s: int, total: int) -> int:
        q = setting.obscuring_unit(units, m)
        return q * n * s + (UNIT - q) * k * total

    scale = n * k * UNIT
    for m in range(last + 1):
        stays = n >= k * m + 1 if k > 2 else n == 2 * m + 1
        events = [(m, 1, m, m + 1), (m, k - 1, n - m - 1, n - m)] if stays else []
        if m:
            events += [(m - 1, *corner) for corner in _corners(n, k, m)]
        for new, s, total, after in events:
            p, q = law(m, s, total), law(new, s, after)
            yield from ((q, p), (p, q), (scale - q, scale - p), (scale - p, scale - q))


def _corners(n: int, k: int, m: int) -> list[tuple[int, int, int]]:
    """Return (s, C, C after) where the smallest count falls from m to m - 1."""
    if k == 2:
        return [(1, n - m, n - m + 1)]
    rest = n - (k - 1) * m
    gains = [(1, m), (1, rest), (k - 2, (k - 2) * m), (k - 1, n - m)]
    others = [(1, m), (1, rest), (k - 2, (k - 2) * m), (k - 2, n - 2 * m)]
    return [(s, c, c + 1) for s, c in gains] + [(s, c, c) for s, c in others]
