"""The numbered lemmas of both papers on reveal-or-obscure, in fractions over a fixed grid.

If e^epsilon is replaced by a rational e > 1, the recursion and every inequality of the lemmas are
rational, and each is decided without rounding. e equals e^epsilon for some epsilon, so a
counterexample refutes the lemma. Lemmas 1 and 9 are with Table I.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import pytest

from dpopt import roo
from tests.oracles import exponential

Margins = Iterator[tuple[int, Fraction]]
"""m, and the right side minus the left side."""
BASES = ["1001/1000", "101/100", "31/30", "21/20", "11/10", "6/5", "4/3", "3/2", "5/3", "2", "3"]
over_grids = pytest.mark.parametrize(
    ("records", "categories"),
    [
        ((*range(3, 13), 15, 16, 20, 21, 25, 30, 31), (2, 3, 4, 5, 7)),
        pytest.param(
            (*range(3, 41), 50, 51, 60, 61, 80, 81),
            (2, 3, 4, 5, 6, 7, 10),
            marks=pytest.mark.nightly,
        ),
    ],
)


@dataclass(frozen=True)
class Case:
    """One setting, and the recursion of one of the papers at it.

    Attributes:
        n: records.
        k: categories.
        e: replaces e^epsilon.
        conference: whether the recursion is the conference paper's, without u', v' and w'.
    """

    n: int
    k: int
    e: Fraction
    conference: bool

    @property
    def last(self) -> int:
        """M = floor(n / k)."""
        return self.n // self.k

    @property
    def free(self) -> int:
        """The largest m that lemma 2 is about: floor(1 / (e - 1)), at most M."""
        return min(self.last, math.floor(1 / (self.e - 1)))

    def u(self, m: int) -> Fraction:
        """u_m, (65)."""
        return Fraction(1, self.k) - Fraction(m + 1, self.n)

    def v(self, m: int) -> Fraction:
        """v_m, (66)."""
        return self.e * (Fraction(1, self.k) - Fraction(m, self.n))

    def w(self, m: int) -> Fraction:
        """w_m, (67)."""
        return (m * self.e - m - 1) / self.n

    def t(self, m: int) -> Fraction:
        """w_m / (u_m - v_m), (83)."""
        return self.w(m) / (self.u(m) - self.v(m))

    @cached_property
    def primed(self) -> tuple[Fraction, Fraction, Fraction]:
        """u', v' and w', (62) to (64)."""
        part = Fraction(1, self.k) - 1
        return part - Fraction(1, self.n), self.e * part, self.e - 1 - Fraction(1, self.n)

    def first(self, m: int) -> Fraction:
        """f_1(m, q_{m-1}), for m < n / k."""
        return (self.u(m) * self.q[m - 1] - self.w(m)) / self.v(m)

    def second(self, m: int) -> Fraction:
        """f_2(q_{m-1})."""
        u, v, w = self.primed
        return (v * self.q[m - 1] + w) / u

    @cached_property
    def q(self) -> list[Fraction]:
        """q_0, ..., q_M by algorithm 2."""
        n, k = self.n, self.k
        q = [1 / (1 + Fraction(n, k) * (self.e - 1))]
        u, v, w = self.primed
        for m in range(1, self.last + 1):
            terms = [Fraction(0)]
            if m * k < n:
                terms.append((self.u(m) * q[-1] - self.w(m)) / self.v(m))
            if not self.conference:
                terms.append((v * q[-1] + w) / u)
            q.append(max(terms))
        return q


def _row_69(case: Case) -> Margins:
    q = case.q
    for m in range(case.last):
        yield m, case.v(m) * q[m] + case.w(m) - case.u(m) * q[m + 1]


def _row_72(case: Case) -> Margins:
    u, v, w = case.primed
    yield from ((m, w - (u - v) * case.q[m]) for m in range(case.last + 1))


def _row_74(case: Case) -> Margins:
    u, v, w = case.primed
    q = case.q
    yield from ((m, v * q[m] + w - u * q[m - 1]) for m in range(1, case.last + 1))


def _from(case: Case, start: int) -> Margins:
    """Return how far q_m is above t_m; the conference paper has no q_m at m = n / k."""
    end = min(case.free, -(-case.n // case.k) - 1) if case.conference else case.free
    yield from ((m, case.q[m] - case.t(m)) for m in range(start, end + 1))


def _order(case: Case) -> Margins:
    """q_m does not rise, 1 <= m < n / k."""
    return ((m, case.q[m - 1] - case.q[m]) for m in range(1, -(-case.n // case.k)))


def _first(case: Case) -> Margins:
    return ((m, case.q[m - 1] - case.first(m)) for m in range(1, -(-case.n // case.k)))


def _second(case: Case) -> Margins:
    return ((m, case.q[m - 1] - case.second(m)) for m in range(1, case.last + 1))


def found(
    margins: Callable[[Case], Margins],
    records: Sequence[int],
    categories: Sequence[int],
    paper: str,
) -> list[tuple[Fraction, Case, int]]:
    """The margin, setting and m of each case of a lemma; n > k."""
    cases = (
        Case(n, k, Fraction(e), paper == "conference")
        for n, k, e in product(records, categories, BASES)
        if n > k
    )
    return [(margin, case, m) for case in cases for m, margin in margins(case)]


@over_grids
@pytest.mark.parametrize(
    ("paper", "margins", "equal"),
    [
        # f_1(m, q_{m-1}) <= q_{m-1} for 1 <= m < n / k.
        pytest.param("journal", _first, True, id="lemma 3"),
        # f_2(q_{m-1}) <= q_{m-1} for 1 <= m <= M.
        pytest.param("journal", _second, True, id="lemma 4"),
        # u_m q_{m+1} < v_m q_m + w_m for 0 <= m < M, which needs <=; it gives (69).
        pytest.param("journal", _row_69, True, id="lemma 5"),
        # (u' - v') q_m < w' for 0 <= m <= M; it gives (72).
        pytest.param("journal", _row_72, False, id="lemma 6"),
        # u' q_{m-1} < v' q_m + w' for 1 <= m <= M; it gives (74).
        pytest.param("journal", _row_74, False, id="lemma 7"),
        pytest.param("conference", _order, True, id="conference lemma 2"),
        # As lemma 5, which needs <= here, too.
        pytest.param("conference", _row_69, True, id="conference lemma 4"),
    ],
)
def test_a_lemma_holds_on_the_grid(
    paper: str,
    margins: Callable[[Case], Margins],
    equal: bool,
    records: Sequence[int],
    categories: Sequence[int],
) -> None:
    """With < where the two sides are equal nowhere."""
    known = found(margins, records, categories, paper)
    least = min(margin for margin, _, _ in known)
    assert len(known) > 300
    assert least >= 0 if equal else least > 0
    if margins is _row_69:
        assert least == 0
        assert (0, 4, 2, 1) in {(x, case.n, case.k, m) for x, case, m in known}
    if margins is _row_72:
        # The printed proof bounds w' q_m by w', which needs w' >= 0.
        assert any(case.primed[2] < 0 for _, case, _ in known)


@over_grids
@pytest.mark.parametrize(
    ("paper", "start", "worst"),
    [
        ("journal", 0, (Fraction(-3, 20), Case(3, 2, Fraction(5, 3), False), 1)),
        ("conference", 1, (Fraction(-7, 15), Case(8, 7, Fraction(3, 2), True), 1)),
    ],
    ids=["lemma 2", "conference lemma 3"],
)
def test_q_is_below_t_at_the_last_m_alone(
    paper: str,
    start: int,
    worst: tuple[Fraction, Case, int],
    records: Sequence[int],
    categories: Sequence[int],
) -> None:
    """q_m >= t_m for every m up to 1 / (e - 1) is false where k does not divide n, and only at M.

    The conference paper asks for q_m > t_m from m = 1 on, and for m < n / k.
    """
    known = found(lambda case: _from(case, start), records, categories, paper)
    failing = [at for at in known if at[0] < 0]
    assert worst in failing
    assert all(m == case.last and case.n % case.k for _, case, m in failing)
    assert all(case.w(m) < 0 for _, case, m in failing)


@pytest.mark.parametrize("n", [5, 10, 20, 30, pytest.param(50, marks=pytest.mark.nightly)])
def test_lemma_8_holds_on_the_grid(n: int) -> None:
    """P(smallest share < gamma') <= k exp(-2 n (gamma - gamma')^2) for P >= gamma > gamma'.

    Some categories are at gamma, and the others equal.
    """
    shares, parts = ("1/5", "1/2", "9/10", "1"), ("1/10", "1/2", "3/4", "19/20")
    for k, share, part in product((2, 3, 4), map(Fraction, shares), map(Fraction, parts)):
        gamma = share / k
        threshold = part * gamma
        # e^x is above its first 100 digits by one of the last of them at most.
        above = exponential(2 * n * (gamma - threshold) ** 2) + Fraction(1, 10**100)
        for low in range(1, k):
            pmf = [gamma] * low + [(1 - low * gamma) / (k - low)] * (k - low)
            assert 1 - all_reach(pmf, n, math.ceil(n * threshold)) <= k / above


def all_reach(pmf: Sequence[Fraction], records: int, least: int) -> Fraction:
    """Return the probability that each category has at least ``least`` of n records."""
    sums = [Fraction(1)] + [Fraction(0)] * records
    for p in pmf:
        new = [Fraction(0)] * (records + 1)
        for done, weight in enumerate(sums):
            if weight:
                for count in range(least, records - done + 1):
                    new[done + count] += weight * p**count / math.factorial(count)
        sums = new
    return sums[records] * math.factorial(records)


def test_the_recursions_of_the_lemmas_are_those_of_the_package() -> None:
    # The package rounds each q_m up to a multiple of 2^-62, in the place of e of `RooSetting`.
    for n, k, epsilon in ((20, 3, 0.1), (3, 2, 0.5), (24, 3, 0.05), (7, 4, 1.0)):
        setting = roo.RooSetting(n, k, epsilon)
        for rule in ("journal", "conference"):
            weights = roo.rule_weights(setting, rule)
            q = Case(n, k, setting.ratio, rule == "conference").q
            for m, value in enumerate(q):
                found = Fraction(weights[m] if m < len(weights) else 0, 1 << 62)
                assert 0 <= found - value <= Fraction(len(q), 1 << 58)
