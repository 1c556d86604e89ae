"""The audit against all data sets and all their neighbours, in exact rationals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import NotPrivateError, roo, verify
from dpopt.roo.minimum import audited, witness_of
from dpopt.roo.setting import UNIT
from dpopt.shape import made
from tests.oracles import neighbours
from tests.roo.brute import Rule, transitions


def brute_rule(setting: roo.RooSetting, weights: tuple[int, ...], *, constant: bool) -> Rule:
    padded = [*weights, *[weights[0] if constant else 0] * (setting.largest_minimum + 1)]
    return Rule(setting.records, setting.categories, [Fraction(w, UNIT) for w in padded])


def decided(setting: roo.RooSetting, weights: Sequence[int], *, constant: bool) -> Fraction:
    """The judge's least slack: below 0 where it refuses."""
    growth = verify.exp(setting.epsilon)[0]
    try:
        verdict = verify.decide_rule(
            setting.records, setting.categories, list(weights), constant, growth
        )
    except verify.Refused as refusal:
        return -Fraction(refusal.missed)
    return Fraction(verdict.slack)


def check(setting: roo.RooSetting, weights: tuple[int, ...], *, constant: bool) -> roo.RooAudit:
    """Compare judge and audit with enumeration, and the witness with what it stands for."""
    audit = audited(setting, weights, constant=constant)
    rule = brute_rule(setting, weights, constant=constant)
    where = (setting, weights, constant)
    assert audit.worst_ratio == rule.worst_ratio(), where
    growth = verify.exp(setting.epsilon)[0]
    slack = decided(setting, weights, constant=constant)
    assert slack == rule.least_slack(Fraction(growth)), where
    witness = audit.witness
    before, after = witness.counts, witness.neighbour
    assert len(before) == setting.categories
    assert sum(before) == setting.records
    assert after in set(neighbours(before)), where
    assert witness.minima == (min(before), min(after))
    pmfs = rule.pmf(min(before), before[0]), rule.pmf(min(after), after[0])
    assert (pmfs[1] / pmfs[0] if pmfs[0] else None) == audit.worst_ratio, where
    if audit.worst_ratio is None:
        assert audit.excess_factor == float("inf")
        assert slack < 0
    else:
        assert audit.excess_factor == pytest.approx(float(audit.worst_ratio / setting.ratio))
        assert (slack >= 0) == (audit.worst_ratio <= growth)
    return audit


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(60))
def test_random_settings_are_audited_like_all_neighbours(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    k = int(rng.integers(2, 5))
    n = int(rng.integers(1, 12 if k < 4 else 9))
    epsilon = float(10 ** rng.uniform(-3, 1))
    for rule in roo.RULES:
        found = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
        assert found.audit == check(found.setting, found.table, constant=rule == "roo")
        assert found.private == (found.audit.worst_ratio <= verify.exp(epsilon)[0])
        assert found.private or rule in ("journal", "conference")
    # Weights of no rule at all, too few of them as well.
    many = int(rng.integers(1, n // k + 2))
    weights = tuple(int(w) for w in rng.integers(0, UNIT, many, endpoint=True))
    given = made(dpopt.RevealOrObscure(n, k, epsilon), weights, strict=False, float_bound=None)
    worst = check(given.setting, weights, constant=False).worst_ratio
    assert given.private == (worst is not None and worst <= verify.exp(epsilon)[0])
    assert given.bound is None


def every_move(n: int, k: int, m: int) -> list[Any]:
    return verify.moves(n, k, m, "exact")


@pytest.mark.nightly
@pytest.mark.slow
def test_moves_imply_what_neighbours_do() -> None:
    """Of every other transition, some move has no larger chance before and no smaller one after."""
    rng = random.Random(5)
    for k, n in product((2, 3, 4, 5), range(1, 25)):
        found = {tuple(move[1:]) for m in range(n // k + 1) for move in every_move(n, k, m)}
        assert found <= transitions(n, k), (n, k)
        assert len(found) <= 5 * (n // k + 1)
        for _ in range(5):
            q = [Fraction(rng.choice([0, 1, 2, 3, 4]), 4) for _ in range(n // k + 1)]
            pmf = Rule(n, k, q).pmf
            rows = [(pmf(*t[:2]), pmf(*t[2:])) for t in found]
            every = [(pmf(*t[:2]), pmf(*t[2:])) for t in transitions(n, k)]
            for r in (Fraction(1), Fraction(11, 10), Fraction(3)):
                least = min(r * before - after for before, after in every)
                assert min(r * before - after for before, after in rows) == least, (n, k, q)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 2), (7, 2), (5, 3), (12, 3), (23, 4), (9, 12)])
def test_every_move_has_a_witness(n: int, k: int) -> None:
    setting = roo.RooSetting(n, k, 1.0)
    for m in range(setting.largest_minimum + 1):
        for _, *move in every_move(n, k, m):
            witness = witness_of(setting, (move[0], move[1], move[2], move[3]))
            before, after = witness.counts, witness.neighbour
            assert after in set(neighbours(before))
            assert [min(before), before[0], min(after), after[0]] == move


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "rule", "factor"),
    [
        (20, 3, 0.1, "conference", 1.00668167682),
        (3, 2, 0.5, "journal", 1.10772159688),
    ],
)
def test_published_rules_that_are_not_private(
    n: int, k: int, epsilon: float, rule: Any, factor: float
) -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, rule))
    assert sampler.audit.excess_factor == pytest.approx(factor, abs=1e-11)
    assert not sampler.private
    assert sampler.certificate is None
    with pytest.raises(NotPrivateError, match=r"e\^epsilon times as likely") as caught:
        sampler.release(roo.Tally.of_counts([n - k + 1] + [1] * (k - 1), k))
    assert caught.value.excess == pytest.approx(factor - 1, abs=1e-11)
    exact = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon))
    assert exact.private
    assert exact.certificate is not None
    assert exact.certificate.slack == decided(exact.setting, exact.table, constant=False) >= 0
    assert exact.certificate.constraints == exact.audit.rows


def test_the_witnesses_of_the_published_rules() -> None:
    witness = dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1, "conference")).audit.witness
    assert witness.minima == (6, 6)
    assert (witness.counts[0], witness.neighbour[0]) == (6, 7)
    witness = dpopt.design(dpopt.RevealOrObscure(3, 2, 0.5, "journal")).audit.witness
    assert (witness.counts, witness.neighbour) == ((1, 2), (2, 1))


@pytest.mark.parametrize("rule", ["exact", "conference", "roo"])
def test_zeros_that_are_left_out_do_not_matter(rule: str) -> None:
    for n, k, epsilon in ((1000, 10, 0.3), (10**9, 10**6, 0.1), (4001, 2, 0.05), (31, 30, 1.0)):
        setting = roo.RooSetting(n, k, epsilon)
        weights = roo.rule_weights(setting, rule)
        last = setting.largest_minimum
        every = weights * (last + 1) if rule == "roo" else (*weights, *[0] * (last + 1))
        full = audited(setting, every[: last + 1], constant=False)
        short = audited(setting, weights, constant=rule == "roo")
        assert short.rows <= full.rows
        assert short.worst_ratio == full.worst_ratio
        slack = decided(setting, weights, constant=rule == "roo")
        assert slack == decided(setting, every[: last + 1], constant=False)


def test_one_large_q_is_caught_wherever_it_is() -> None:
    setting = roo.RooSetting(1003, 10, 0.1)
    weights = [*roo.rule_weights(setting, "exact")]
    weights += [0] * (101 - len(weights))
    assert decided(setting, weights, constant=False) >= 0
    for m in (18, 40, 70):
        changed = [*weights[:m], UNIT // 2, *weights[m + 1 :]]
        assert decided(setting, changed, constant=False) < 0
        assert m in audited(setting, tuple(changed), constant=False).witness.minima
