"""The numbered lemmas of both papers on reveal-or-obscure, in fractions over a fixed grid.

If e^epsilon is replaced by a rational e > 1, the recursion and every inequality of the lemmas are
rational, and each is decided without rounding. e equals e^epsilon for some epsilon, so a
counterexample refutes the lemma. Lemmas 1 and 9 are with Table I.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import pytest

from dpopt import roo
from tests.oracles import exponential
from tests.roo.brute import Case, full_weights

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


SETTINGS = [*product((5, 12, 20, 49), (2, 3, 4, 7), (0.02, 0.3, 1.5)), (20, 3, 0.1), (3, 2, 0.5)]


@pytest.mark.parametrize("rule", ["journal", "conference"])
def test_the_recursions_of_the_lemmas_are_those_of_the_package(rule: str) -> None:
    # The package rounds up to a multiple of 2^-62 in every step, with the ratio of `RooSetting`.
    for n, k, epsilon in [*SETTINGS, (24, 3, 0.05), (7, 4, 1.0)]:
        setting = roo.RooSetting(n, k, epsilon)
        q = Case(n, k, setting.ratio, rule == "conference").q
        for weight, value in zip(full_weights(setting, rule), q, strict=True):
            assert abs(Fraction(weight, 1 << 62) - value) <= Fraction(len(q), 1 << 58)
