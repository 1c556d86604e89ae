"""The judge of majorities: verify.py's walk, and the screen of very many multisets before it."""

import random
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt
from dpopt import Majority, NotPrivateError, majority
from dpopt.majority import program, reduced_size
from dpopt.majority.program import row_of
from dpopt.majority.voters import Counts, full_gamma, signed
from tests.majority.brute import (
    ONE,
    at_the_limit,
    chances,
    judged,
    table,
    target,
    verdict,
    verdict_of_verify,
    voters,
    weights,
)
from tests.oracles import exponential

UNIT = 1 << 200


def left_side(setting: Majority, gamma: tuple[int, ...], counts: Counts) -> F:
    """f at one multiset from the true corners, in rationals of 200 bits."""
    sign = [-w for w in reversed(gamma)] + list(gamma)
    r, shift = exponential(F(setting.epsilon)), F(setting.voter_delta)
    values = {"0": F(0), "1": F(1), "D": shift, "m": 1 - shift}
    values |= {"b": (r + shift) / (r + 1), "c": (1 - shift) / (r + 1)}
    sides = []
    for side in (0, 1):
        pmf = [UNIT]
        for name, count in counts:
            p = int(values[name[side]] * UNIT)
            for _ in range(count):
                both = zip([0, *pmf], [*pmf, 0], strict=True)
                pmf = [(p * one + (UNIT - p) * other) // UNIT for one, other in both]
        sides.append(F(sum(mass * h for mass, h in zip(pmf, sign, strict=True)), UNIT * ONE))
    return sides[0] - target(setting) * sides[1]


def budget_of(setting: Majority) -> F:
    return target(setting) - 1 + 2 * F(setting.delta)


def random_weights(setting: Majority, seed: int) -> tuple[int, ...]:
    rng = np.random.default_rng(seed)
    values = rng.random(setting.middle)
    values[rng.random(setting.middle) < 0.3] = 1.0
    return tuple(int(value * ONE) for value in values)


def levels(gamma: tuple[int, ...]) -> np.ndarray:
    return signed(full_gamma([w / ONE for w in gamma]))


BOUND = [
    Majority(17, 1e-3, 1.0, 1e-12, 1e-12),
    Majority(17, 5.0, 17.0, 0.3, 0.3),
    Majority(17, 0.1, 3.0, 1e-5, 1e-4),
    Majority(21, 35.0, 17.0, 1e-9, 1e-9),
    Majority(21, 1.0, 0.01, 0.01, 0.02),
    Majority(21, 5.0, 0.5, 0.3, 0.3),
    Majority(41, 0.1, 3.0, 1e-5, 1e-4),
    Majority(41, 1e-3, 41.0, 0.3, 0.3),
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("setting", BOUND, ids=str)
def test_every_row_is_within_the_bound(setting: Majority) -> None:
    """Both ways to a row, and what bounds those of one side."""
    k = setting.voters
    rows_of, error = program.screen(voters(setting))
    for seed, gamma in enumerate([(ONE,) * setting.middle, random_weights(setting, 1)]):
        values, bounds, table = rows_of._parts(levels(gamma))
        rng = np.random.default_rng(seed)
        for _ in range(60):
            near0, near1, corner = rng.integers(2, size=3).tolist()
            s = int(rng.integers(k + 1))
            o = int(rng.integers(k + 1 - s))
            at = (near0, near1, corner, s, o)
            rows = rows_of._rows(table, *at)
            assert rows.shape == (k + 1 - s - o, o + 1)
            d, e = (int(rng.integers(n)) for n in rows.shape)
            exact = left_side(setting, gamma, rows_of.named(at, d, e))
            assert abs(F(float(rows[d, e])) - exact) <= error
            if near0 == near1:
                exact = left_side(setting, gamma, rows_of.multiset(table, at))
                assert abs(F(float(values[at])) - exact) <= error
                assert values[at] >= rows.max() - 2 * float(error)
            elif d and e:
                bound = bounds[near0, corner, s, o]
                assert exact <= F(float(bound)) + 8 * error


@pytest.mark.parametrize("setting", BOUND[2:3] + BOUND[5:6], ids=str)
def test_the_screen_leaves_open_what_it_must(setting: Majority) -> None:
    """All rows one by one."""
    rows_of, error = program.screen(voters(setting))
    gamma = weights(setting.table(np.array(random_weights(setting, 2)) / ONE))
    h, budget = levels(gamma), float(budget_of(setting))
    values, _, table = rows_of._parts(h)
    for reach in (1e-12, 1e-9, 1e-3):
        low, high = budget * (1 - reach), budget * (1 + 1e-9)
        *_, reached = rows_of.reaching(h, low, high, float(error), 10**9)
        names = [row_of(counts) for _, counts in reached]
        assert len(set(names)) == len(names)
        found = set(names)
        for at in np.argwhere(values > -np.inf).tolist():
            rows = rows_of._rows(table, *at)
            for d, e in np.argwhere((rows >= low) & (rows <= high)).tolist():
                assert row_of(rows_of.named(tuple(at), d, e)) in found


@pytest.mark.parametrize("k", [21, 41])
def test_a_unit_beyond_the_limit_is_refused_and_the_unit_before_is_not(k: int) -> None:
    """By the screen, and what it leaves open by verify.py; of few voters by verify.py alone."""
    setting = Majority(k, 0.1, 3, 1e-5, 3e-5)
    gamma = weights(setting.table(np.array(random_weights(setting, 3)) / ONE))
    rows_of, error = program.screen(voters(setting))
    _, worst, _ = rows_of.reaching(levels(gamma), 0.0, np.inf, float(error), 0)
    # The largest multiple that the worst multiset allows.
    factor = budget_of(setting) / left_side(setting, gamma, worst)
    limit = tuple(min(ONE, int(w * factor)) - 2 for w in gamma)
    place = next(i for i, w in enumerate(limit) if 0 < w < ONE - 10**7)
    for judged_by in (verdict, verdict_of_verify) if k < 30 else (verdict,):
        assert judged_by(setting, limit)
        for step in (10**4, 10**6, 10**7):
            raised = tuple(w + step * (i == place) for i, w in enumerate(limit))
            if left_side(setting, raised, worst) > budget_of(setting):
                assert not judged_by(setting, raised)


@pytest.mark.slow
def test_what_floats_cannot_decide_is_decided() -> None:
    """At an optimum many constraints are tight; moved within the bound, some break, some hold."""
    setting = Majority(21, 0.1, 3, 1e-5, 3e-5)
    known = weights(dpopt.design(setting).table)
    rows_of, error = program.screen(voters(setting))
    budget, rng, verdicts = budget_of(setting), random.Random(0), []
    for _ in range(20):
        size = rng.choice([3, 1000, 20_000, 10**6])
        moved = tuple(min(ONE, w + size * rng.randint(-1, 2)) for w in known)
        low = float(budget) * (1 - 1e-12)
        *_, near = rows_of.reaching(levels(moved), low, np.inf, float(error), 10**6)
        private = max(left_side(setting, moved, counts) for _, counts in near) <= budget
        assert verdict(setting, moved) == private
        assert verdict_of_verify(setting, moved) == private
        verdicts.append(private)
    assert len(set(verdicts)) == 2


@pytest.mark.parametrize("deltas", [(0.0, 0.0), (0.01, 0.02)])
def test_too_many_within_rounding_are_not_proved(deltas: tuple[float, float]) -> None:
    """Of a gamma that is given: the repair takes it out of the rounding."""
    setting = Majority(5, 0.3, 1.7, *deltas)
    gamma = at_the_limit(setting, (ONE,) * 3)
    assert verdict(setting, gamma)
    with pytest.raises(NotPrivateError, match="is not proved .* than floats leave open"):
        program.certify(setting, table(setting, gamma), most=0)
    repaired = majority.assess(setting, [w / ONE + 1e-15 for w in gamma], repair=True)
    assert repaired.private
    np.testing.assert_allclose(repaired.gamma[3:], np.array(gamma) / ONE, atol=1e-12)


SMALL = [
    Majority(3, 0.3, 1.7, 0.01, 0.02),
    Majority(3, 2.0, 0.6, 0.2, 0.2),
    Majority(3, 0.5, 1.0, 1e-5, 1e-5),
    Majority(5, 1.5, 1.3, 0.0, 0.01),
    Majority(3, 0.5, 1.0),
]


gammas = st.lists(st.integers(0, ONE), min_size=3, max_size=3)
moves = st.lists(st.integers(-3, 3), min_size=3, max_size=3)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from(SMALL), gammas, moves, st.booleans())
def test_the_judge_decides_like_fractions(
    setting: Majority, raw: list[int], steps: list[int], contrary: bool
) -> None:
    """The verdict is that of fractions, as given and a few units around the limit."""
    setting = replace(setting, contrary=contrary)
    start = tuple(raw[: setting.middle])
    if contrary:
        start = (start[0], *(-w for w in start[1:]))
    for judged_by in (verdict, verdict_of_verify):
        assert judged_by(setting, start) == (judged(setting, start) <= 0)
    moved = zip(at_the_limit(setting, start), steps[: setting.middle], strict=True)
    near = tuple(min(ONE, max(-ONE if contrary else 0, w + step)) for w, step in moved)
    exact = judged(setting, near)
    if abs(exact) > F(1, 10**30):
        for judged_by in (verdict, verdict_of_verify):
            assert judged_by(setting, near) == (exact <= 0)


@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_the_repair_loses_no_more_than_rounding(setting: Majority) -> None:
    """By fractions: private, and hardly below the limit."""
    for seed in range(3):
        start = random_weights(setting, seed)
        if judged(setting, start) <= 0:
            continue
        repaired = weights(setting.table(np.array(start) / ONE))
        assert judged(setting, repaired) <= 0
        limit = at_the_limit(setting, start)
        assert all(0 <= a - b <= ONE * 1e-12 for a, b in zip(limit, repaired, strict=True))


@pytest.mark.parametrize("k", [9, 33])
def test_the_screen_s_slack_is_a_lower_bound(k: int) -> None:
    """Against verify.py alone, which goes through every multiset."""
    setting = Majority(k, 0.2, 4, 1e-4, 1e-3)
    gamma = tuple(w // 8 for w in random_weights(setting, 1))
    made = table(setting, gamma)
    found = setting.judge(made)
    other = voters(setting).private(chances(gamma), 2 * ONE)
    assert found.constraints == other.rows == reduced_size(setting)
    assert F(0) <= found.slack
    assert abs(found.slack - F(other.slack)) < F(1, 10**12)


@pytest.mark.slow
@pytest.mark.parametrize("m", [1.0, 3.0, 10.0, 17.0])
def test_a_whole_majority_with_hardly_any_delta_has_one_verdict(m: float) -> None:
    """Where gamma is 1, flat multisets tie by the thousand, within the screen's bound."""
    setting = Majority(17, 0.1, m, 1e-17, 1e-17)
    for gamma in ((ONE,) * 9, (*(0,) * 5, *(ONE,) * 4)):
        private = verdict(setting, gamma)
        assert not private or left_side(setting, gamma, (("bc", 17),)) <= budget_of(setting)
        assert verdict_of_verify(setting, gamma) == private
