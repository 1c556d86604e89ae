"""The judges: exact proofs that integers are private, from them and the sizes alone.

Three mechanisms, three proofs, none of which has seen a program or a recursion:

- a rule in the smallest count: O(1) rows for each smallest count decide all neighbours (`moves`,
  `audit_weights`), and the worst of them is shown on two data sets (`witness_of`);
- a smooth floor: a theorem about convex tables of weights, decided in integers (`audit_floor`);
- a law for each histogram: every edge between histograms (`prove_law`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import cast

import numpy as np

from dpopt import _checks
from dpopt._errors import DpoptError, NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt._progress import advance, track
from dpopt._types import IntVector, Json, Vector, brief
from dpopt.privacy import Certificate, Least
from dpopt.privacy.least import least_of_ratio
from dpopt.roo.histograms import Histograms
from dpopt.roo.setting import BITS, UNIT, RooSetting

_MOST_LISTED = 1000
# Smallest counts whose rows are looked at together, and how far doubles are off, as a share.
_PART, _ERROR = 1 << 15, 2.0**-50
_STAGE = "proof of the smooth floor"

Runs = tuple[tuple[int, int], ...]
"""(count, number of consecutive letters that have it)."""

Block = tuple[int, int, int, int]
"""c1, c2, d1, d2."""

States = tuple[IntVector, IntVector]
"""q over 2^62 and a letter's count, of some data sets."""


@dataclass(frozen=True)
class Move:
    """A letter's count and the data set's smallest count, before and after one record changes.

    Attributes:
        minimum: m, the smallest count before.
        count: c, the letter's count before.
        new_minimum: m~, the smallest count after.
        new_count: c~, the letter's count after.
    """

    minimum: int
    count: int
    new_minimum: int
    new_count: int


def moves(setting: RooSetting, minimum: int) -> Iterator[Move]:
    """Yield the moves from a smallest count m whose rows imply those of all moves from m.

    The law of a letter with count c in a data set whose smallest count is m is
    f(m, c) = q_m / k + (1 - q_m) c / n, affine in c and rising in it. A pair of neighbours takes
    (m, c) to (m~, c~) with c~ - c in {-1, 0, 1}; for a given m~, the largest c~ is the worst. For
    k >= 3 letters, with t(m) = n - (k - 1) m the largest count that a letter can have, they are

    - m~ = m: from c to c + 1, for c = m .. t(m) - 1; (c + 1) / c falls in c, so c = m is the worst;
    - m~ = m - 1: from c to c + 1, for c = m .. t(m), both sides affine in c: one of the ends;
    - m~ = m + 1: from m to m + 1, or from c to c, for c = m + 1 .. t(m + 1), one of the ends, of
      which the lower one is no worse than from m to m + 1.

    Two letters have the counts m and n - m: what one of them gains, the other one loses.

    Args:
        setting: n and k.
        minimum: m, in 0..M.
    """
    _checks.instance("setting", setting, RooSetting)
    minimum = _checks.integer("minimum", minimum, 0, setting.largest_minimum)
    for row in _moves(setting, np.array([minimum])).T.tolist():
        yield Move(*row)


def _moves(setting: RooSetting, minima: IntVector) -> IntVector:
    """Return the moves from some smallest counts; axis 0 is m, c, m~ and c~, axis 1 the moves."""
    n, k, m = setting.records, setting.letters, minima
    two = k == 2
    stays = n == 2 * m + 1 if two else n >= k * m + 1
    falls = m >= 1
    rises = (m < setting.largest_minimum) & ~stays if two else m < setting.largest_minimum
    most = n - (k - 1) * m
    after = most - (k - 1)
    parts = [
        (stays, (m, m, m, m + 1)),
        (falls, (m, m, m - 1, m - 1 if two else m + 1)),
        (falls, (m, most, m - 1, most + 1)),
        (rises, (m, m, m + 1, m + 1)),
        (rises, (m, after + 1 if two else after, m + 1, after)),
    ]
    return np.concatenate([np.array(move)[:, here] for here, move in parts], axis=1)


@dataclass(frozen=True)
class Witness:
    """Two neighbouring data sets and the letter whose probability changes most: the first one.

    Attributes:
        runs: counts of the letters, as (count, number of consecutive letters).
        neighbour_runs: the same after one record changed.
        minima: the smallest count of each.
    """

    runs: Runs
    neighbour_runs: Runs
    minima: tuple[int, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Counts of all letters."""
        return tuple(count for count, letters in self.runs for _ in range(letters))

    @property
    def neighbour(self) -> tuple[int, ...]:
        """Counts of all letters in the neighbour."""
        return tuple(count for count, letters in self.neighbour_runs for _ in range(letters))

    def to_dict(self) -> Json:
        """Return the data sets as plain values: counts, or runs for more than 1,000 letters."""
        short = sum(letters for _, letters in self.runs) <= _MOST_LISTED
        return {
            "counts": list(self.counts) if short else None,
            "neighbour": list(self.neighbour) if short else None,
            "runs": [list(run) for run in self.runs],
            "neighbour_runs": [list(run) for run in self.neighbour_runs],
            "letter": 0,
            "minima": list(self.minima),
        }


def witness_of(setting: RooSetting, move: Move) -> Witness:
    """Return data sets that realise a move.

    The changed letter comes first; one to three others may be special, the rest have the same
    count, and the last takes what is left. Small counts are tried in turn.

    Raises:
        DpoptError: if there is none; every move of `moves` has one.
    """
    for runs in _data_sets(setting, move):
        counts = [count for count, _ in runs]
        for gain, loss in product(range(len(runs)), repeat=2):
            after = list(counts)
            after[gain] += 1
            after[loss] -= 1
            single = runs[gain][1] == runs[loss][1] == 1 and gain != loss
            if single and after[0] == move.new_count and min(after) == move.new_minimum:
                changed = tuple((new, n) for new, (_, n) in zip(after, runs, strict=True))
                return Witness(runs, changed, (move.minimum, move.new_minimum))
    raise DpoptError(f"no neighbouring data sets realise {move}.")


def _data_sets(setting: RooSetting, move: Move) -> Iterator[Runs]:
    """Yield data sets with the right smallest count, the changed letter first."""
    n, k, m = setting.records, setting.letters, move.minimum
    special = min(max(k - 2, 0), 2)
    fillers = k - 2 - special
    for values in product(range(m, m + 3), repeat=special):
        for base in range(m, m + 2):
            rest = n - move.count - sum(values) - base * fillers
            runs = [(move.count, 1), *((value, 1) for value in values)]
            runs += [(base, fillers)] if fillers else []
            runs.append((rest, 1))
            if min(count for count, _ in runs) == m:
                yield tuple(runs)


@dataclass(frozen=True)
class RooAudit:
    """What a rule spends, exactly.

    Attributes:
        worst_ratio: largest K(y | x') / K(y | x) over all neighbours and letters; None if
            unbounded.
        excess_factor: worst_ratio over e^epsilon, as a float; above 1 if the rule is not private.
        private: whether worst_ratio <= r, the rational lower bound of e^epsilon.
        slack: smallest r K(y | x) - K(y | x') over all rows, exactly.
        rows: number of inequalities decided; they imply all others.
        witness: neighbours that attain the worst ratio.
    """

    worst_ratio: Fraction | None
    excess_factor: float
    private: bool
    slack: Fraction
    rows: int
    witness: Witness

    def __repr__(self) -> str:
        return brief(self)


def audit_weights(setting: RooSetting, weights: Sequence[int], *, constant: bool) -> RooAudit:
    """Compare all neighbours of a rule in exact arithmetic.

    Rows from a smallest count m with q_{m-1} = q_m = q_{m+1} = 0 compare c + 1 to c with c >= m,
    so those of the first such m are the worst and imply all that follow: the work is that of the
    weights given, whatever n is.

    Doubles leave out the rows that are neither the worst nor near it: a chance is a sum of two
    positive terms of at most three roundings each, so that they know it to 2^-50 of its size. What
    they leave is compared in integers.

    Args:
        setting: n, k and epsilon.
        weights: q_0, q_1, ... over 2^62, 0 afterwards.
        constant: instead, the one weight is that of every m.
    """
    worst, rows = _Worst(setting), 0
    for part in _rows(setting, weights, constant=constant):
        minimum, count, new_minimum, new_count = part
        q, new_q = (_at(weights, m, constant=constant) for m in (minimum, new_minimum))
        worst.look(part, (q, count), (new_q, new_count))
        rows += part.shape[1]
    r, (after, before) = setting.ratio, worst.ratio
    ratio = Fraction(after, before) if before else None
    scale = setting.letters * setting.records * UNIT
    return RooAudit(
        worst_ratio=ratio,
        excess_factor=float("inf") if ratio is None else float(ratio / r),
        private=worst.slack >= 0,
        slack=Fraction(worst.slack, scale * r.denominator),
        rows=rows,
        witness=witness_of(setting, worst.move),
    )


def _rows(setting: RooSetting, weights: Sequence[int], *, constant: bool) -> Iterator[IntVector]:
    """Yield the moves in parts, each as `_moves` returns them."""
    last = setting.largest_minimum
    # With one q for all, the ratio is largest where a count is smallest.
    end = min(1 if constant else len(weights) + 2, last) + 1
    for start in track(range(0, end, _PART), "audit of neighbours"):
        yield _moves(setting, np.arange(start, min(start + _PART, end)))
    if end <= last:
        # A pair with the largest possible smallest counts, in case rows there were forgotten.
        yield _moves(setting, np.array([last]))


def _at(weights: Sequence[int], minima: IntVector, *, constant: bool) -> IntVector:
    """Return q_m over 2^62 for each m."""
    if constant:
        return np.full(minima.size, weights[0])
    low = int(minima.min(initial=0))
    near = np.array([*weights[low : int(minima.max(initial=0)) + 1], 0], dtype=np.int64)
    return near[np.minimum(minima - low, near.size - 1)]


class _Worst:
    """The least slack and the largest ratio of the rows that were looked at, in integers."""

    def __init__(self, setting: RooSetting) -> None:
        self.setting, self.near = setting, float(setting.ratio)
        self.largest, self.least = 0.0, math.inf
        # Of chances over k n 2^62, times the denominator of r: at first above that of any row.
        self.slack = setting.ratio.numerator * setting.letters * setting.records * UNIT
        # The largest chance after over chance before, and its move.
        self.ratio, self.move = (0, 1), Move(0, 0, 0, 0)

    def look(self, moves_: IntVector, before: States, after: States) -> None:
        """Take some rows: their moves, and q and count of a letter on both sides."""
        low, high = (self._chances(*side) for side in (before, after))
        error = _ERROR * (self.near * low + high)
        slack = self.near * low - high
        self.least = min(self.least, float(np.min(slack + error)))
        quotient = np.divide(high, low, out=np.full_like(low, np.inf), where=low > 0)
        self.largest = max(self.largest, float(np.max(quotient)))
        close = (slack - error <= self.least) | (quotient >= self.largest * (1 - 4 * _ERROR))
        rows = np.flatnonzero(close)
        sides = [[part[rows].tolist() for part in side] for side in (before, after)]
        n, k = self.setting.records, self.setting.letters
        over, under = self.setting.ratio.numerator, self.setting.ratio.denominator
        top, bottom = self.ratio
        for row, q, c, new_q, new_c in zip(rows.tolist(), *sides[0], *sides[1], strict=True):
            a = q * n + (UNIT - q) * c * k
            b = new_q * n + (UNIT - new_q) * new_c * k
            self.slack = min(self.slack, over * a - under * b)
            if b * bottom > top * a:
                top, bottom, worst = b, a, row
                self.move = Move(*moves_[:, worst].tolist())
        self.ratio = top, bottom

    def _chances(self, q: IntVector, count: IntVector) -> Vector:
        """Return the chance of a letter up to `_ERROR`: a zero is one."""
        n, k = self.setting.records, self.setting.letters
        return q / UNIT / k + (UNIT - q) / UNIT * (count / n)


def prove_rule(setting: RooSetting, audit: RooAudit, name: str) -> Certificate:
    """Return the certificate of a rule's audit.

    Raises:
        NotPrivateError: naming two data sets, if the rule is not private.
    """
    witness = audit.witness
    if not audit.private:
        raise NotPrivateError(
            f"rule {name!r} is not {setting.epsilon:g}-DP for n = {setting.records}, "
            f"k = {setting.letters}: letter 0 is {audit.excess_factor:.6g} e^epsilon times as "
            "likely for one of two neighbours; (count, letters): "
            f"{witness.runs} and {witness.neighbour_runs}.",
            inputs=(str(witness.runs), str(witness.neighbour_runs)),
            output="letter 0",
            excess=audit.excess_factor - 1.0,
        )
    return Certificate(
        claim="the min-count rule is private for all neighbouring data sets",
        guarantee=setting.guarantee,
        ratio=setting.ratio,
        constraints=audit.rows,
        slack=audit.slack,
        tightest=f"(count, letters): {witness.runs}; neighbour: {witness.neighbour_runs}",
        arithmetic="integers, no rounding",
        bits=BITS,
    )


def least_of_rule(audit: RooAudit) -> Least:
    """Return the least epsilon of a rule: its worst ratio is attained by the witness."""
    witness = audit.witness
    sides = tuple(f"(count, letters): {runs}" for runs in (witness.neighbour_runs, witness.runs))
    return least_of_ratio(audit.worst_ratio, cast(tuple[str, str], sides), (0,))


@dataclass(frozen=True)
class FloorAudit:
    """What the theorem of `audit_floor` gives for one table of weights.

    Attributes:
        private: whether K(y | x') <= r K(y | x) for all neighbours and letters.
        worst_ratio: the largest K(y | x') / K(y | x), attained.
        slack: no r K(y | x) - K(y | x') is smaller, as a probability: r - worst_ratio times the
            least K; below 0 if not private.
        count: the c where the ratio is largest.
        loser: the d there.
        rows: number of inequalities decided; they imply all others.
    """

    private: bool
    worst_ratio: Fraction
    slack: Fraction
    count: int
    loser: int
    rows: int

    def __repr__(self) -> str:
        return brief(self)


def audit_floor(setting: RooSetting, weights: Sequence[int], bits: int) -> FloorAudit:
    """Decide in integers whether a smooth floor is private: a theorem, and its converse.

    A letter y has probability W(c_y) / Z, Z the sum over all letters; W(c) = c U from c* on,
    with U = 2^bits.

    Theorem. Let D(c) = W(c + 1) - W(c), and let L(l, t) be the least sum of W over l letters
    with t records. If r >= 1 and

        (1) W(0) > 0 and 0 <= D(0) <= D(1) <= ... <= D(c* - 1) <= D(c*) = U,

    then K(y | x') <= r K(y | x) for all neighbours x, x' and all letters y if and only if

        (2) W(c + 1) Z <= r W(c) (Z + D(c) - D(d - 1))

    for all c >= 0 and d >= 1 with c + d <= n (= n for k = 2), where Z is W(c) + W(d) plus the sum
    over the other k - 2 letters, L(k - 2, n - c - d) where D(d - 1) >= D(c), else the largest they
    can have.

    The proof is on the page docs/theorems/floor.md, as is that of what follows. With
    v = floor((n - c) / (k - 1)), only the d from min(v, c* + 1) to c* + 1 need a look, d = c* + 1
    standing for the larger of v and c* + 1; for k = 2, d is n - c = v. From c* on, (2) is at most
    c + 1 <= r c.

    Blocks of the others, c1 <= c <= c2 and d1 <= d <= d2, are decided at once where they can be:

        (3) (W(c1) + D(c2)) Z <= r W(c1) (Z + min(0, D(c1) - D(d2 - 1)))

    implies (2) on the block for Z = W(c1) + L(k - 1, n - c2), or for the larger
    W(c1) + W(d1) + L(k - 2, n - c2 - d2). Blocks are halved until (3) holds with the largest ratio
    found so far in the place of r, or a single c and d are left, which (2) is for.

    Args:
        setting: n, k and epsilon.
        weights: W(0)..W(c* - 1).
        bits: W(c) = c 2^bits from c* on.

    Raises:
        ParameterError: if the weights break (1), without which (2) proves nothing.
    """
    table = _Table(setting, weights, bits)
    worst, place, rows = (0, 1), (0, 1), len(weights) + 2
    whole = (0, min(table.last, table.records - 1), 1, min(table.records, table.last + 1))
    heap: list[tuple[float, Block]] = [(-math.inf, whole)]
    while heap:
        if rows % (1 << 12) == 0:
            advance(_STAGE, rows)
        _, block = heapq.heappop(heap)
        rows += 1
        after, before = table.bound(block)
        if before > 0 and after * worst[1] <= worst[0] * before:
            continue
        if block[0] < block[1] or block[2] < block[3]:
            for half in _halves(block):
                if table.occurs(half):
                    heapq.heappush(heap, (_order(*table.bound(half)), half))
            continue
        c, d, after, before = table.exact(block[0], block[2])
        if after * worst[1] > worst[0] * before:
            worst, place = (after, before), (c, d)
    for c in range(table.last + 1, table.records):
        if (c + 1) * worst[1] <= worst[0] * c:
            break
        rows += 1
        _, d, after, before = table.exact(c, min(table.records - c, table.last + 1))
        if after * worst[1] > worst[0] * before:
            worst, place = (after, before), (c, d)
    advance(_STAGE, 1, 1)
    ratio, n = Fraction(*worst), table.records
    least = Fraction(table.weight(0), table.weight(n) + (table.letters - 1) * table.weight(0))
    slack = (setting.ratio - ratio) * least
    return FloorAudit(slack >= 0, ratio, slack, *place, rows)


def prove_floor(setting: RooSetting, audit: FloorAudit, rate: float, bits: int) -> Certificate:
    """Return the certificate of a smooth floor's audit.

    Args:
        setting: n, k and epsilon.
        audit: from `audit_floor`.
        rate: of the floor, for the message.
        bits: of its weights.

    Raises:
        NotPrivateError: naming two neighbours, if it is not private.
    """
    c, d = audit.count, audit.loser
    if not audit.private:
        excess = float(audit.worst_ratio / setting.ratio - 1)
        raise NotPrivateError(
            f"rate is {rate:.10g}: the smooth floor is not {setting.epsilon:g}-DP for "
            f"n = {setting.records}, k = {setting.letters}; a letter whose count goes from {c} to "
            f"{c + 1}, one of another with {d}, is {1 + excess:.6g} e^epsilon times as likely.",
            inputs=(f"letter 0: {c}, letter 1: {d}", f"letter 0: {c + 1}, letter 1: {d - 1}"),
            output="letter 0",
            excess=excess,
        )
    return Certificate(
        claim="the smooth-floor sampler is private for all neighbouring data sets",
        guarantee=setting.guarantee,
        ratio=setting.ratio,
        constraints=audit.rows,
        slack=audit.slack,
        tightest=f"a letter whose count goes from {c} to {c + 1}",
        arithmetic="integers, no rounding",
        bits=bits,
    )


def least_of_floor(audit: FloorAudit) -> Least:
    """Return the least epsilon of a smooth floor: its worst ratio is attained."""
    c, d = audit.count, audit.loser
    before, after = f"letter 0: {c}, letter 1: {d}", f"letter 0: {c + 1}, letter 1: {d - 1}"
    return least_of_ratio(audit.worst_ratio, (after, before), (0,))


def _order(after: int, before: int) -> float:
    """Return what puts the block with the largest bound first."""
    return math.log(before) - math.log(after) if before > 0 else -math.inf


def _halves(block: Block) -> Iterator[Block]:
    """Yield both halves of a block, cut across its longer side."""
    c1, c2, d1, d2 = block
    if c2 - c1 >= d2 - d1:
        middle = (c1 + c2) // 2
        yield from ((c1, middle, d1, d2), (middle + 1, c2, d1, d2))
    else:
        middle = (d1 + d2) // 2
        yield from ((c1, c2, d1, middle), (c1, c2, middle + 1, d2))


class _Table:
    """W, its steps, and the sums that the theorem speaks of; d = c* + 1 stands for all above."""

    def __init__(self, setting: RooSetting, weights: Sequence[int], bits: int) -> None:
        self.records, self.letters = setting.records, setting.letters
        self.bits, self.last = bits, len(weights)
        self.values = [*weights, self.last << bits]
        self.steps = [b - a for a, b in pairwise(self.values)] + [1 << bits]
        convex = not any(a > b for a, b in pairwise(self.steps))
        if self.values[0] <= 0 or self.steps[0] < 0 or not convex:
            raise ParameterError("weights must be positive, increasing and convex, up to c 2^bits.")

    def weight(self, count: int) -> int:
        """Return W."""
        return self.values[count] if count <= self.last else count << self.bits

    def step(self, count: int) -> int:
        """Return D."""
        return self.steps[min(count, self.last)]

    def least(self, letters: int, records: int) -> int:
        """Return L: convex weights are least where counts are even."""
        if letters == 0:
            return 0
        each, more = divmod(records, letters)
        if each >= self.last:
            return records << self.bits
        return (letters - more) * self.values[each] + more * self.values[each + 1]

    def most(self, letters: int, records: int) -> int:
        """Return the largest sum: convex weights are largest where one letter has all records."""
        return self.weight(records) + (letters - 1) * self.weight(0) if letters else 0

    def even(self, c: int) -> int:
        """Return v."""
        return (self.records - c) // (self.letters - 1)

    def occurs(self, block: Block) -> bool:
        """Whether some c and d of a block are counts of two letters, and d not below the worst."""
        c1, c2, d1, d2 = block
        if d2 < min(self.even(c2), self.last + 1):
            return False
        return c1 + d1 <= self.records

    def bound(self, block: Block) -> tuple[int, int]:
        """Return both sides of (3) without r, the second not above 0 if they bound nothing."""
        c1, c2, d1, d2 = block
        total = self.weight(c1) + self.least(self.letters - 1, self.records - c2)
        if d2 <= self.last or self.even(c1) <= self.last + 1:
            rest = max(0, self.records - c2 - d2)
            other = self.weight(c1) + self.weight(d1) + self.least(self.letters - 2, rest)
            total = max(total, other)
        change = min(0, self.step(c1) - self.step(d2 - 1))
        return (self.weight(c1) + self.step(c2)) * total, self.weight(c1) * (total + change)

    def exact(self, c: int, d: int) -> tuple[int, int, int, int]:
        """Return c, d and both sides of (2) without r."""
        if d > self.last:
            d = max(d, self.even(c))
        rest, change = self.records - c - d, self.step(c) - self.step(d - 1)
        others = (self.least if change <= 0 else self.most)(self.letters - 2, rest)
        total = self.weight(c) + self.weight(d) + others
        return c, d, self.weight(c + 1) * total, self.weight(c) * (total + change)


def prove_law(setting: RooSetting, histograms: Histograms, weights: Sequence[int]) -> Certificate:
    """Prove that a law for each histogram is epsilon-DP between all neighbouring data sets.

    w[b] / Z[b] <= r w[a] / Z[a] for every edge (a, b), in integers; Z is the sum over the letters
    of the histogram.

    Raises:
        NotPrivateError: naming the data sets, if an inequality fails.
    """
    slack, before, after = least_slack(setting, histograms, weights)
    sides = _side(histograms, before), _side(histograms, after)
    if slack < 0:
        raise NotPrivateError(
            f"the sampler is not {setting.epsilon:g}-DP: {sides[0]}; {sides[1]}: above e^epsilon "
            f"times as likely by {roughly(-slack)}.",
            inputs=(sides[0], sides[1]),
            excess=float(-slack),
        )
    return Certificate(
        claim=f"the sampler is private between all neighbours, over {histograms.size} histograms",
        guarantee=setting.guarantee,
        ratio=setting.ratio,
        constraints=len(histograms.edges),
        slack=slack,
        tightest=f"{sides[0]}; neighbour: {sides[1]}",
        arithmetic="exact integers, each over the sum for its histogram",
        bits=BITS,
    )


def least_slack(
    setting: RooSetting, histograms: Histograms, weights: Sequence[int]
) -> tuple[Fraction, int, int]:
    """Return the least r w[a] / Z[a] - w[b] / Z[b] over the edges, and the edge (a, b)."""
    r, owner = setting.ratio, histograms.owner.tolist()
    top, bottom = r.numerator, r.denominator
    totals = histograms.sums(weights)
    over = [totals[histogram] for histogram in owner]
    # One over nothing: above every slack.
    best, scale, before, after = 1, 0, 0, 0
    for a, b in cast(list[list[int]], histograms.edges.tolist()):
        slack = top * weights[a] * over[b] - bottom * weights[b] * over[a]
        size = over[a] * over[b]
        if slack * scale < best * size:
            best, scale, before, after = slack, size, a, b
    return Fraction(best, bottom * scale), before, after


def least_of_law(histograms: Histograms, weights: Sequence[int]) -> Least:
    """Return the least epsilon of a law for each histogram, over all edges between them.

    The event is the letter that the neighbours' words name, as letter 0.
    """
    owner, totals = histograms.owner.tolist(), histograms.sums(weights)
    top, bottom, before, after = 1, 1, 0, 0
    for a, b in cast(list[list[int]], histograms.edges.tolist()):
        high, low = weights[b] * totals[owner[a]], weights[a] * totals[owner[b]]
        if high * bottom > top * low:
            top, bottom, before, after = high, low, a, b
            if low == 0:
                break
    ratio = Fraction(top, bottom) if bottom else None
    return least_of_ratio(ratio, (_side(histograms, after), _side(histograms, before)), (0,))


def _side(histograms: Histograms, place: int) -> str:
    counts = histograms.counts[histograms.owner[place]].tolist()
    return f"counts {counts}, letter with {histograms.count[place]}"
