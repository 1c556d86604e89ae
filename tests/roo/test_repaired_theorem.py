"""Theorem 2 of the journal paper, repaired: against all neighbours, and step by step."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest

from dpopt import roo
from dpopt.roo.setting import UNIT
from experiments.roo.published import journal_is_private
from tests.roo.brute import Case, Rule, full_weights

EPSILONS = (0.001, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6931, 0.6932, 1.0, 3.0)


def rule_of(setting: roo.RooSetting, rule: str) -> Rule:
    q = [Fraction(weight, UNIT) for weight in full_weights(setting, rule)]
    return Rule(setting.records, setting.categories, q)


@pytest.mark.slow
@pytest.mark.parametrize("categories", [2, 3, 4, 5])
def test_it_tells_private_settings_from_others(categories: int) -> None:
    told = set()
    for records, epsilon in product(range(1, {2: 16, 3: 14}.get(categories, 12)), EPSILONS):
        setting = roo.RooSetting(records, categories, epsilon)
        ratio = rule_of(setting, "journal").worst_ratio()
        private = ratio is not None and ratio <= setting.ratio
        assert journal_is_private(setting) == private, (records, categories, epsilon)
        told.add(private)
        repaired = rule_of(setting, "journal-repaired").worst_ratio()
        assert repaired is not None
        assert repaired <= setting.ratio
    assert told == {False, True}


def test_the_smallest_case_and_one_on_either_side() -> None:
    # The case of the audit; k divides n; e^epsilon on both sides of 1 + 1/M = 2.
    assert not journal_is_private(roo.RooSetting(3, 2, 0.5))
    assert journal_is_private(roo.RooSetting(4, 2, 0.5))
    assert not journal_is_private(roo.RooSetting(3, 2, 0.6931))
    assert journal_is_private(roo.RooSetting(3, 2, 0.6932))
    # Beyond both conditions, q_M may be large enough by itself.
    assert journal_is_private(roo.RooSetting(7, 3, 0.05))


@pytest.mark.slow
@pytest.mark.parametrize("raised", [False, True])
def test_every_step_of_the_proof(raised: bool) -> None:
    bases = [1 + Fraction(1, d) for d in (1, 2, 3, 5, 7, 11, 30, 100)] + [Fraction(5)]
    ended = 0
    for n, k, e in product(range(1, 31), (2, 3, 4, 5, 7), bases):
        case = Case(n, k, e)
        # t_m: where f(m, m + 1) = e f(m, m).
        q, last, t = case.q, case.last, [case.t(m) for m in range(case.last + 1)]
        if raised and n % k:
            q[-1] = max(q[-1], t[-1])
        pmf = Rule(n, k, q).pmf
        # (ii), (iii), (iv)
        assert all(b < a for a, b in pairwise(t))
        assert q[0] == t[0]
        assert all(q[m] >= t[m] for m in range(last))
        assert all(pmf(m, n + 1) <= e * pmf(m, n) for m in range(last + 1))
        assert all(0 <= b <= a <= 1 for a, b in pairwise([Fraction(1), *q]))
        # (v)
        for m, c in product(range(last), (0, n)):
            low, high = (c or m), (c or m + 1)
            assert pmf(m + 1, low + 1) <= e * pmf(m, low)
            assert pmf(m, high + 1) <= e * pmf(m + 1, high)
        # (vi), (vii)
        at_last = pmf(last, last + 1) <= e * pmf(last, last)
        assert at_last == (q[last] >= t[last])
        if raised or n % k == 0 or last == 0 or e >= 1 + Fraction(1, last):
            assert at_last
        ended += not at_last
    assert (ended == 0) == raised
