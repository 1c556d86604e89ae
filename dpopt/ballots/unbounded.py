r"""What the ladder spends with any number of ballots: a proof by finitely many histograms.

For given C and r = e^epsilon, an audit of all sorted histograms proves the ladder's privacy for one
K. Here finitely many gaps prove it for every K, one or 10^9. Gaps are the distances of the counts
to the largest one; x = 1 / r, u_y(l) is the ladder's law and T(l) the share of one top class.

**Lemma 1.** Let y be below the top of l and of its neighbour l' = l - e_a + e_b. Then u_y(l) and
u_y(l') are equal, or x times the shares of y in two neighbours in which y has come nearer to the
top, both by the same ballot. *Proof.* If l and l' have a top class t in common, they are
u_y(l) = x u_y(l - e_t + e_y) and u_y(l') = x u_y(l' - e_t + e_y). If not, a was the only top of l,
and b comes to the top by one ballot: l' is l with a and b exchanged, and y is neither. ∎

So each ratio of u_y is one in which y is on top of l or of l'. If it is so in l alone, then

* y = a, and b is a top of l': there u_y(l') = x u_y(l), a ratio of r exactly;
* y = a, another top t of l stays one, b does not: u_y(l') = x T(m), m = l - e_t + e_b, y on top;
* b was a top beside y: u_y(l') = x T(m) with m = l - e_a + e_y, or x T(l) if y = a.

The ratio T(l) / u_y(l') = r T(l) / T(m) must be in [1 / r, r]. So **the ladder is r-DP exactly if**

    (A) T(l) <= r T(l') and T(l') <= r T(l) for neighbours with y on top of both;
    (B) T(l) <= T(m) where y shares the top of l, and m is l with one ballot of another top t moved
        to a class b of gap 2 or more, or with one ballot of any class a moved to y, while some
        other class than a shares the top with y.

(l and m are neighbours too, so T(m) <= r^2 T(l) follows from A.) With A the ladder is a law: T > 0
where all gaps are 0 or 1, and from there A leads to each l with y on top, by single ballots to the
lowest class from the highest other one than y, or from y.

**Lemma 2.** Let f classes V of l have gaps of h or more, all others gaps of at most h + 1, and let
l \ V be l without V. Then |T(l) - T(l \ V)| <= f x^(h / 2) phi(l \ V), where

    phi = (1 + sum over w of gap >= 2 of x^(k_w) r^(d_w / 2) phi(m_w)) / (n_0 + n_1 x).

Here w takes k_w ballots of top classes until its gap is 0 or 1, in m_w; a gap of 1 counts one step
more, x for a swap. The top falls by d_w meanwhile, and n_0, n_1 are the numbers of classes of gap 0
and 1 (in l \ V). *Proof.* The class w comes up by the same steps with V as without: as long as its
gap is 2 or more, the top has fallen by h - 1 at most, and the gaps of V are 1 or more; so after the
step no class of V is alone on the top. With D for the differences, normalisation gives
(n_0 + n_1 x) D_top = -u_V - sum_w D_w, where D_w = x^(k_w) D_top(m_w). A class of V at a gap h' has
a share of at most x^(h' / 2): a step brings it 2 nearer at most, and from a gap of 1 there is a
factor x left. In m_w the gaps of V are h - d_w or more. Each class of gap 0 or 1 stays so while
others come up, and w joins them: the sum ends after C - 1 classes. ∎

**Theorem.** Take all gaps up to G of C'' = 1, ..., C classes, the other f = C - C'' further than G.
If A and B hold, with the errors of lemma 2 against them, for each move between two near classes, or
one near and any far one, or two far ones, then the ladder is r-DP for every number of ballots.
*Proof.* In l the near gaps are G or less and the far ones G + 1 or more. One ballot moves two
counts by one each, that of y among them or not: in the neighbour the far gaps are G - 1 or more,
and no near gap is above the least far one by more than 1. So lemma 2 holds for both, with the same
V, and without V they are the near pair. ∎

All is computed in integers rounded outward, for all r of an interval at once, and the last interval
may have no end: x = 0 is r without bound. `from_ratio` joins intervals.

Two pairs break (B) for small r, and so privacy at some K. If r < (C - 2) / 4, l = (3, 3, 1, ..., 1)
and m = (3, 2, 2, 1, ..., 1), as T(l) <= T(m) is (r - 1)^2 (4 r - (C - 2)) >= 0. From 13 classes on
l = (3, 3, 1, ..., 1, 0) and m = (3, 2, 1, ..., 1) ask for more, as T(l) <= T(m) is
(r - 1)^2 q(r) >= 0,

    q(r) = 12 r^4 + (25 - C) r^3 - (C^2 - 7 C + 18) r^2 - (C^2 - 7 C + 16) r + C - 3.

For many classes and small r the ladder is not even a law: of (6, 0, ..., 0), 20 classes and
r = 11/10 the top is left less than nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from math import ceil, comb, exp, inf, isqrt, log

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt.ballots.leaps import Gaps
from dpopt.privacy.exponential import log_near, rational

BITS = 96
MOST_STATES = 400_000
"""Gap vectors of one computation."""
QUICK_STATES, THOROUGH_STATES = 20_000, 100_000
"""Gap vectors that a search for a proof lists: a second, or some ten of them."""
_ONE = 1 << BITS


@dataclass(frozen=True)
class Shares:
    """Of one class: bounds of its share and of its phi, over 2^96."""

    low: int
    high: int
    phi: int


@dataclass(frozen=True)
class Unbounded:
    """What the ladder spends at most, for every number of ballots.

    Attributes:
        classes: C.
        reach: G.
        excess: the ladder spends at most r * excess; 1 if it is private. Over the interval of r.
        states: number of gap vectors.
        first: the gaps at which the excess is needed, y first; None if it is 1.
        second: those of its neighbour, not shifted.
    """

    classes: int
    reach: int
    excess: Fraction
    states: int
    first: Gaps | None = None
    second: Gaps | None = None

    @property
    def private(self) -> bool:
        """Whether the ladder is r-DP for every number of ballots."""
        return self.excess <= 1


def spent_by_any_number(
    classes: int, ratio: Fraction, reach: int, *, above: Fraction | float | None = None
) -> Unbounded:
    """Return what the ladder spends at most, for every number of ballots and all r of an interval.

    Args:
        classes: C, at least 2.
        ratio: r, above 1; the least one.
        reach: G, at least 3: the largest gap that is told from others. About 2 log(C / epsilon) /
            epsilon is enough.
        above: the largest r, which may be infinite; ``ratio`` if None.

    Raises:
        ParameterError: for parameters out of range, or more than 400,000 gap vectors.

    Example:
        >>> from fractions import Fraction
        >>> spent_by_any_number(4, Fraction(2), 14).private
        True
    """
    size = _checks.integer("classes", classes, 2, 1_000)
    limit = _checks.integer("reach", reach, 3)
    low = rational("ratio", ratio)
    high = low if above is None else inf if above == inf else rational("above", above)
    if not 1 < low <= high:
        raise ParameterError(
            f"ratio is {_checks.shown(ratio)}; it must be above 1, and at most the value above it."
        )
    states = _states(size, limit)
    if states > MOST_STATES:
        raise ParameterError(
            f"reach is {limit}; with {size} classes it has {states:,} gap vectors, and at most "
            f"{MOST_STATES:,} are listed."
        )
    worst = [_of_near(near, size, limit, low, high) for near in range(1, size + 1)]
    most = max(worst, key=lambda found: found.excess)
    return replace(most, states=sum(found.states for found in worst))


def _of_near(
    near: int, classes: int, limit: int, low: Fraction, high: Fraction | float
) -> Unbounded:
    """Return what histograms ask for of which some number of classes is near, the others far."""
    # x below and above, and the root of the upper one.
    least = 0 if high == inf else int(_ONE / Fraction(high))
    x = (least, -(-_ONE * low.denominator // low.numerator))
    root = isqrt(x[1] << BITS) + 1
    known = listed(near, limit + 2, x, root)
    errors = [classes - near, classes - near]
    for place, gap in enumerate((limit + 1, limit - 1)):
        error = (classes - near) << BITS
        for _ in range(gap):
            error = -(-error * root >> BITS)
        errors[place] = error
    best, where = Fraction(1), (None, None)
    for gaps, moved, monotone in _moves(known, near, limit, far=classes > near):
        one, other = known[gaps][0], known[_sorted(moved)][0]
        slips = (-(-errors[0] * one.phi >> BITS), -(-errors[1] * other.phi >> BITS))
        # (A) allows r, (B) nothing.
        for more, less, allowed in (
            (one.high + slips[0], other.low - slips[1], Fraction(1) if monotone else low),
            (other.high + slips[1], one.low - slips[0], low),
        ):
            if less <= 0:
                # It may be no law: no ratio is enough.
                more, less = max(more, 2 * ceil(low) << BITS), 1
            if more * best.denominator * allowed.denominator > (
                less * best.numerator * allowed.numerator
            ):
                best = Fraction(more, less) / allowed
                where = (gaps, moved)
    return Unbounded(classes, limit, best, len(known), *where)


def proved_for_any_number(
    classes: int, ratio: Fraction, most: int = THOROUGH_STATES
) -> Unbounded | None:
    """Return a proof that the ladder is r-DP for every number of ballots; None if none is found.

    Reaches from 3 on are tried, and the shortest that may prove it is taken.

    Args:
        classes: C, at least 2.
        ratio: r, above 1.
        most: gap vectors of one try.

    Example:
        >>> from fractions import Fraction
        >>> found = proved_for_any_number(5, Fraction(5, 2))
        >>> found.reach, found.states
        (7, 1001)
        >>> proved_for_any_number(10, Fraction(3, 2)) is None
        True
    """
    if surely_broken(classes, ratio):
        return None
    reach = 3
    while _states(classes, reach) <= most:
        found = _tried(classes, Fraction(ratio), reach)
        if found is not None:
            return found if found.private else None
        reach += 1 + reach // 8
    return None


@lru_cache(maxsize=1024)
def _tried(classes: int, ratio: Fraction, reach: int) -> Unbounded | None:
    """Return what is spent at most; None if the reach is too short."""
    # Errors are where some classes are far; these histograms are few.
    nears = range(1, classes)
    if not all(_of_near(near, classes, reach, ratio, ratio).private for near in nears):
        return None
    return spent_by_any_number(classes, ratio, reach)


def surely_broken(classes: int, ratio: Fraction) -> bool:
    """Return whether one of the two pairs of the module breaks r-DP, at some number of ballots.

    Args:
        classes: C.
        ratio: r, above 1.
    """
    c, r = classes, ratio
    second = (
        12 * r**4 + (25 - c) * r**3 - (c * c - 7 * c + 18) * r**2 - (c * c - 7 * c + 16) * r + c - 3
    )
    return 4 * r < c - 2 or (c >= 4 and second < 0)


def _states(classes: int, reach: int) -> int:
    """Return how many gap vectors of C classes are listed, the longest of a computation."""
    return comb(reach + 2 + classes - 1, classes - 1)


def listed(
    classes: int, limit: int, x: tuple[int, int], root: int
) -> dict[Gaps, dict[int, Shares]]:
    """Return bounds of the share of one class of each gap, for all gap vectors up to a limit.

    In the order of the spread of the counts: each step of a class towards the top lowers it.

    Args:
        classes: C.
        limit: the largest gap.
        x: at most the least and at least the largest 1 / r, over 2^96.
        root: at least the root of the largest, over 2^96.
    """
    states = [(0, *rest) for rest in combinations_with_replacement(range(limit + 1), classes - 1)]
    states.sort(key=lambda gaps: classes * sum(gap * gap for gap in gaps) - sum(gaps) ** 2)
    known: dict[Gaps, dict[int, Shares]] = {}
    for gaps in states:
        found: dict[int, Shares] = {}
        low = high = 0
        phi = _ONE
        for place, gap in enumerate(gaps):
            if gap < 2:
                continue
            if gap not in found:
                other, its, fell = _climbed(gaps, place)
                then = known[other][its]
                factor = root if fell else x[1]
                found[gap] = Shares(
                    then.low * x[0] >> BITS,
                    -(-then.high * x[1] >> BITS),
                    -(-then.phi * factor >> BITS),
                )
            low += found[gap].low
            high += found[gap].high
            phi += found[gap].phi
        alone, ones = gaps.count(0) << BITS, gaps.count(1)
        most, least = alone + ones * x[1], alone + ones * x[0]
        top = Shares(
            max(0, ((_ONE - high) << BITS) // most),
            -(-((_ONE - low) << BITS) // least),
            -(-(phi << BITS) // least),
        )
        found[0] = top
        if ones:
            found[1] = Shares(
                top.low * x[0] >> BITS, -(-top.high * x[1] >> BITS), -(-top.phi * x[1] >> BITS)
            )
        known[gaps] = found
    return known


def _climbed(gaps: Gaps, place: int) -> tuple[Gaps, int, int]:
    """Return the gaps once a class took a ballot of a top one, its own, and how far the top fell.

    x r^(1/2) where the top falls by one is the root of x.
    """
    moved = list(gaps)
    moved[place] -= 1
    moved[0] = 1
    least = min(moved)
    return tuple(sorted(gap - least for gap in moved)), moved[place] - least, least


def _moves(
    known: dict[Gaps, dict[int, Shares]], near: int, limit: int, *, far: bool
) -> Iterator[tuple[Gaps, Gaps, bool]]:
    """Yield the gaps of l, of a neighbour in which y = 0 is on top too, and whether (B) is asked.

    None stands for a far class.
    """
    places = [*range(near), *([None] if far else [])]
    for gaps in known:
        if gaps[-1] > limit:
            continue
        seen: set[tuple[tuple[bool, int] | None, ...]] = set()
        for loser in places:
            for gainer in places:
                kind = tuple(
                    None if place is None else (place == 0, gaps[place])
                    for place in (loser, gainer)
                )
                if (loser == gainer and loser is not None) or kind in seen:
                    continue
                seen.add(kind)
                moved = list(gaps)
                if loser is not None:
                    moved[loser] += 1
                if gainer is not None:
                    moved[gainer] -= 1
                if min(moved) < moved[0]:
                    continue
                yield gaps, tuple(moved), _monotone(gaps, loser, gainer)


def _monotone(gaps: Gaps, loser: int | None, gainer: int | None) -> bool:
    if gainer == 0:
        return any(gap == 0 and place not in (0, loser) for place, gap in enumerate(gaps))
    shares = loser is not None and loser != 0 and gaps[loser] == 0
    return shares and (gainer is None or gaps[gainer] >= 2)


def _sorted(gaps: Gaps) -> Gaps:
    least = min(gaps)
    return tuple(sorted(gap - least for gap in gaps))


def reach_for(classes: int, epsilon: float) -> int:
    """Return a G that is enough in most cases: 2 log(10 C / min(epsilon, 1)^2) / epsilon."""
    return max(6, ceil(2 / epsilon * log(10 * classes / min(epsilon, 1.0) ** 2)))


def from_ratio(classes: int, ratio: Fraction) -> tuple[Unbounded, ...]:
    """Return proofs that the ladder is r-DP for every number of ballots and every r from one on.

    Intervals of r are tried from the left, longer after each that is proved, shorter after each
    that is not.

    Args:
        classes: C.
        ratio: the least r, above 1.

    Raises:
        NotPrivateError: if no proof is found at some r.
    """
    low, proofs = Fraction(ratio), []
    width = log_near(low) / 50
    while True:
        epsilon = log_near(low)
        reach = reach_for(classes, epsilon)
        if epsilon > 1:
            last = spent_by_any_number(classes, low, reach, above=inf)
            if last.private:
                return (*proofs, last)
        high = Fraction(exp(epsilon + width)).limit_denominator(1_000_000)
        found = spent_by_any_number(classes, low, reach, above=high)
        if found.private:
            proofs.append(found)
            low, width = high, 1.5 * width
        else:
            width /= 2
            if width < 1e-3 * epsilon:
                raise NotPrivateError(
                    f"The ladder of {classes} classes is not proved private at epsilon "
                    f"{epsilon:.6g} for every number of ballots."
                )
