"""The two walks of the reduced set: integers rounded outward, and floats within a bound."""

from fractions import Fraction as F

import numpy as np
import pytest
from dpopt.majority.proof import Arithmetic, FloatWalk, IntegerWalk
from hypothesis import given, settings
from hypothesis import strategies as st

import dpopt
from dpopt import majority
from dpopt.majority import GammaProver, MajoritySetting, proof, reduced_size, shifted
from dpopt.majority.voters import Multiset
from tests.majority.brute import ONE, at_the_limit, exponential, judged, target, verdict

UNIT = 1 << 200


def excess(setting: MajoritySetting, weights: tuple[int, ...], at: Multiset) -> F:
    """f - budget at one multiset from the true corners, in rationals of 200 bits."""
    sign = [-w for w in reversed(weights)] + list(weights)
    sides = []
    for side in (0, 1):
        law = [0] * at.ones + [1]
        for axis, count, choice in zip(setting.axes, at.counts, at.family, strict=True):
            r, shift = exponential(F(setting.epsilon)), F(setting.mechanism_delta)
            values = {"0": F(0), "1": F(1), "D": shift, "m": 1 - shift}
            values |= {"b": (r + shift) / (r + 1), "c": (1 - shift) / (r + 1)}
            p = int(values[axis.names[choice][side]] * UNIT)
            for _ in range(count):
                law = [
                    p * one + (UNIT - p) * other
                    for one, other in zip([0, *law], [*law, 0], strict=True)
                ]
        total = sum(mass * h for mass, h in zip(law, sign, strict=False))
        sides.append(F(total, UNIT ** sum(at.counts) * ONE))
    return sides[0] - target(setting) * sides[1] - (target(setting) - 1 + 2 * F(setting.delta))


def random_weights(setting: MajoritySetting, seed: int) -> tuple[int, ...]:
    rng = np.random.default_rng(seed)
    values = rng.random(setting.middle)
    values[rng.random(setting.middle) < 0.3] = 1.0
    return tuple(int(value * ONE) for value in values)


def at_a_limit(setting: MajoritySetting, weights: tuple[int, ...]) -> tuple[int, ...]:
    """The largest multiple of a gamma that its worst multisets allow, by exact laws."""
    arithmetic = Arithmetic(setting)
    private = GammaProver(setting).shrink(weights)[0]
    found = FloatWalk(arithmetic, private, arithmetic.budget / (1 << 30)).run()
    near = [found.place, *found.near]
    worst = max(arithmetic.budget - arithmetic.exact_slack(private, at) for at in near)
    factor = (arithmetic.budget - (1 + arithmetic.ratio) / ONE) / worst
    return tuple(min(ONE, int(weight * factor)) for weight in private)


BOUND = [
    MajoritySetting(17, 1e-3, 1.0, 1e-12, 1e-12),
    MajoritySetting(17, 5.0, 17.0, 0.3, 0.3),
    MajoritySetting(17, 0.1, 3.0, 1e-5, 1e-4),
    MajoritySetting(21, 35.0, 17.0, 1e-9, 1e-9),
    MajoritySetting(21, 1.0, 0.01, 0.01, 0.02),
    MajoritySetting(21, 5.0, 0.5, 0.3, 0.3),
    MajoritySetting(41, 0.1, 3.0, 1e-5, 1e-4),
    MajoritySetting(41, 1e-3, 41.0, 0.3, 0.3),
]


@pytest.mark.parametrize("setting", BOUND, ids=str)
def test_every_row_is_within_the_bound(setting: MajoritySetting) -> None:
    """Both ways to a row, and what bounds those of one side."""
    middle, k = setting.middle, setting.mechanisms
    budget = target(setting) - 1 + 2 * F(setting.delta)
    for seed, weights in enumerate([(ONE,) * middle, random_weights(setting, 1)]):
        walk = FloatWalk(Arithmetic(setting), weights, F(0))
        allowed = walk._error + F(1, 10**30) * target(setting)
        best, bounds = walk._rows._parts(walk._h)
        rng = np.random.default_rng(seed)
        for _ in range(60):
            near0, near1, corner = rng.integers(2, size=3).tolist()
            s = int(rng.integers(k + 1))
            o = int(rng.integers(k + 1 - s))
            at = (near0, near1, corner, s, o)
            make = walk._rows._apart if near0 == near1 else walk._rows._mixed
            rows = make(best.table, near0, corner, s, o)
            assert rows.shape == (k + 1 - s - o, o + 1)
            d, e = (int(rng.integers(n)) for n in rows.shape)
            exact = excess(setting, weights, shifted.multiset(at, d, e)) + budget
            assert abs(F(float(rows[d, e])) - exact) <= allowed
            if near0 == near1:
                exact = excess(setting, weights, walk._rows.multiset(best.table, at)) + budget
                assert abs(F(float(best.values[at])) - exact) <= allowed
                assert best.values[at] >= rows.max() - 2 * float(allowed)
            elif d and e:
                bound = bounds[near0, corner, s, o]
                assert exact <= F(float(bound)) + 8 * walk._error


@pytest.mark.parametrize("many", [0.0, 1e9])
@pytest.mark.parametrize("setting", BOUND[2:3] + BOUND[5:6], ids=str)
def test_both_walks_give_the_same_answers(
    setting: MajoritySetting, many: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether rows are priced all at once, or place by place."""
    monkeypatch.setattr(shifted, "_MANY", many)
    start = random_weights(setting, 2)
    private = GammaProver(setting).shrink(start)[0]
    arithmetic = Arithmetic(setting)
    for weights in (start, private, at_a_limit(setting, start)):
        for reach in (F(0), F(1, 1 << 40), F(1, 1000) * (arithmetic.budget)):
            fast = FloatWalk(arithmetic, weights, reach)
            slow = IntegerWalk(arithmetic, weights, reach)
            found, exact = fast.run(), slow.run()
            assert found.count == exact.count == reduced_size(setting)
            # The screen's slack is a lower bound, within twice its error.
            scale = 1 << (proof.FIXED + proof.RATIO)
            assert exact.slack - found.slack <= 2 * fast._error * scale + 1
            assert found.slack <= exact.slack + 2

            def reached(near: list[Multiset], reach: F = reach) -> set[Multiset]:
                slacks = {at: arithmetic.exact_slack(weights, at) for at in near}  # noqa: B023
                return {at for at, slack in slacks.items() if 0 <= slack < reach}

            if fast.limit - found.slack <= fast.surely_broken:
                assert reached(found.near) == reached(exact.near)
            assert len(set(found.near)) == len(found.near)


@pytest.mark.parametrize("k", [21, 41])
def test_a_unit_beyond_the_limit_is_refused_and_the_unit_before_is_not(k: int) -> None:
    setting = MajoritySetting(k, 0.1, 3, 1e-5, 3e-5)
    weights = at_a_limit(setting, random_weights(setting, 3))
    proof = GammaProver(setting).certify(weights)
    assert "double precision" in proof.arithmetic
    assert "; 0 constraints by exact laws" not in proof.arithmetic
    assert proof.slack >= 0
    sweep = FloatWalk(Arithmetic(setting), weights, F(1, 1 << 60)).run()
    at = max(sweep.near, key=lambda near: excess(setting, weights, near))
    assert excess(setting, weights, at) <= 0
    # Small steps stay within the screen's bound of the limit, where floats decide nothing.
    caught = 0
    for place in (i for i, weight in enumerate(weights) if weight < ONE - 10**7):
        for step in (1, 1000, 30_000, 10**6, 10**7):
            raised = tuple(weight + step * (i == place) for i, weight in enumerate(weights))
            if excess(setting, raised, at) > 0:
                caught += 1
                assert not verdict(setting, raised)
        if caught >= 10:
            break
    assert caught


def test_what_floats_cannot_decide_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """At an optimum many constraints are tight; moved within the bound, some break, some hold."""
    setting = MajoritySetting(21, 0.1, 3, 1e-5, 3e-5)
    weights = dpopt.design(setting).weights
    sweep = FloatWalk(Arithmetic(setting), weights, F(1, 1 << 40)).run()
    assert len(sweep.near) > 3
    rng = np.random.default_rng(0)
    moved, verdicts = weights, []
    for _ in range(40):
        step = rng.choice([3, 1000, 20_000]) * rng.integers(-1, 2, setting.middle)
        moved = tuple(min(ONE, w + int(s)) for w, s in zip(weights, step, strict=True))
        private = max(excess(setting, moved, at) for at in sweep.near) <= 0
        assert verdict(setting, moved) == private
        verdicts.append(private)
    # A few by integers alone.
    monkeypatch.setattr(proof, "_FLOATS_FROM", 100)
    assert verdict(setting, weights)
    assert verdict(setting, moved) == verdicts[-1]


def test_a_screen_that_decides_too_little_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = MajoritySetting(17, 0.1, 1, 1e-5, 3e-5)
    prover = GammaProver(setting)
    whole = (ONE,) * setting.middle
    shrunk, factor = prover.shrink(whole)
    assert factor < 1
    limit = at_a_limit(setting, shrunk)
    fast = prover.certify(limit)
    beyond = [
        tuple(w + 999 * (i == place) for i, w in enumerate(limit))
        for place in range(setting.middle)
    ]
    before = [verdict(setting, weights) for weights in beyond]
    assert not all(before)
    monkeypatch.setattr(proof, "MOST_UNDECIDED", 0)
    slow = prover.certify(limit)
    assert "256 fractional bits" in slow.arithmetic
    assert "double precision" in fast.arithmetic
    assert slow.constraints == fast.constraints
    assert 0 <= slow.slack <= fast.slack + F(1, 1 << 60)
    assert before == [verdict(setting, weights) for weights in beyond]
    again, exact = prover.shrink(whole)
    assert abs(exact - factor) < F(1, 10**12)
    assert verdict(setting, again)


SMALL = [
    MajoritySetting(3, 0.3, 1.7, 0.01, 0.02),
    MajoritySetting(3, 2.0, 0.6, 0.2, 0.2),
    MajoritySetting(3, 0.5, 1.0, 1e-5, 1e-5),
    MajoritySetting(5, 1.5, 1.3, 0.0, 0.01),
    MajoritySetting(3, 0.5, 1.0),
]


def compared(setting: MajoritySetting, raw: list[int], steps: list[int]) -> None:
    """The verdict is that of fractions, as given and a few units around the limit."""
    start = tuple(raw[: setting.middle])
    assert verdict(setting, start) == (judged(setting, start) <= 0)
    moved = zip(at_the_limit(setting, start), steps[: setting.middle], strict=True)
    near = tuple(min(ONE, max(0, weight + step)) for weight, step in moved)
    exact = judged(setting, near)
    if abs(exact) > F(1, 10**30):
        assert verdict(setting, near) == (exact <= 0)


@pytest.mark.parametrize("above", [0, 100])
@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_the_repair_loses_no_more_than_rounding(
    setting: MajoritySetting, above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By fractions: private, and hardly below the limit; then no exact law is needed."""
    monkeypatch.setattr(proof, "_FLOATS_FROM", above)
    for seed in range(3):
        start = random_weights(setting, seed)
        if judged(setting, start) <= 0:
            continue
        weights, factor = GammaProver(setting).shrink(start)
        assert judged(setting, weights) <= 0
        limit = at_the_limit(setting, start)
        assert all(0 <= a - b <= ONE * 1e-12 for a, b in zip(limit, weights, strict=True))
        assert factor < 1
        assert "; 0 constraints" in GammaProver(setting).certify(weights).arithmetic


def test_too_many_within_rounding_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a gamma that is given: the repair takes it out of the rounding."""
    setting = MajoritySetting(17, 0.1, 3.0, 1e-5, 1e-4)
    weights = at_a_limit(setting, (ONE,) * setting.middle)
    monkeypatch.setattr(proof, "MOST_UNDECIDED", 0)
    monkeypatch.setattr(proof, "_MOST_INTEGERS", 0)
    given = [weight / ONE for weight in weights]
    assert majority.assess(setting, given).verdict == "not proved"
    repaired = majority.assess(setting, given, repair=True)
    assert repaired.verdict == "private"
    assert 0 < 1 - repaired.shrink < 1e-11


gammas = st.lists(st.integers(0, ONE), min_size=3, max_size=3)
moves = st.lists(st.integers(-3, 3), min_size=3, max_size=3)


@settings(max_examples=25)
@given(st.sampled_from(SMALL[:3]), gammas, moves)
def test_the_screen_decides_like_fractions(
    setting: MajoritySetting, raw: list[int], steps: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "_FLOATS_FROM", 0)
        compared(setting, raw, steps)


@settings(max_examples=25)
@given(st.sampled_from(SMALL), gammas, moves)
def test_integers_of_few_bits_decide_like_fractions(
    setting: MajoritySetting, raw: list[int], steps: list[int]
) -> None:
    """With no bits to spare, every error term decides some verdict."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "FIXED", 62)
        compared(setting, raw, steps)


@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_every_integer_is_an_upper_bound_and_near(
    setting: MajoritySetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no bits to spare, so that the bound has no room either."""
    monkeypatch.setattr(proof, "FIXED", 62)
    arithmetic = Arithmetic(setting)
    for seed in range(4):
        weights = random_weights(setting, seed)
        sweeper = IntegerWalk(arithmetic, weights, F(0))
        scale = 1 << (62 + proof.RATIO)
        assert 0 <= arithmetic.budget * scale - sweeper.limit < 1
        for counts, values in sweeper._walk():
            units = sum(counts) * (1 + arithmetic.ratio) * F(1, ONE)
            for index, value in np.ndenumerate(values):
                *family, ones = index
                at = Multiset(counts, tuple(family), ones)
                exact = arithmetic.budget - arithmetic.exact_slack(weights, at)
                assert exact <= F(int(value), scale) <= exact + units
            assert sweeper.surely_broken - sweeper.limit >= scale * units


COARSE = {
    "corners": {"CORNER": 5, "RATIO": 128},
    "target": {"CORNER": 128, "RATIO": 3},
    "both": {"CORNER": 4, "RATIO": 4},
}


TIGHT = [
    MajoritySetting(3, 0.3, 0.8, 0.01, 0.02),
    MajoritySetting(3, 0.9, 0.7, 0.1, 0.1),
    MajoritySetting(3, 0.5, 1.0),
    MajoritySetting(3, 0.45, 1.2, 0.07, 0.07),
]


@pytest.mark.parametrize("coarse", COARSE.values(), ids=COARSE)
@settings(max_examples=25)
@given(
    st.sampled_from(TIGHT),
    st.lists(st.integers(ONE // 2, ONE), min_size=2, max_size=2),
    st.sampled_from([0, 100]),
)
def test_coarse_constants_are_on_the_safe_side(
    coarse: dict[str, int], setting: MajoritySetting, raw: list[int], above: int
) -> None:
    """Whatever is certified with them is private with the true ones."""
    with pytest.MonkeyPatch.context() as patch:
        for name, bits in coarse.items():
            patch.setattr(proof, name, bits)
        patch.setattr(proof, "_FLOATS_FROM", above)
        prover = GammaProver(setting)
        if prover._arithmetic.budget <= (1 + prover._arithmetic.ratio) / ONE:
            return
        weights = prover.shrink(tuple(raw))[0]
        certified = verdict(setting, weights)
    assert certified
    assert judged(setting, weights) <= F(1, 10**30)


@pytest.mark.parametrize("setting", [*SMALL, BOUND[1]], ids=str)
@pytest.mark.parametrize("bits", [3, 7, 128])
def test_each_constant_is_rounded_outward(
    setting: MajoritySetting, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "CORNER", bits)
    monkeypatch.setattr(proof, "RATIO", bits)
    arithmetic, unit = Arithmetic(setting), 1 << bits
    assert target(setting) - F(1, unit) * (1 + target(setting) / UNIT) < arithmetic.ratio
    assert arithmetic.ratio <= target(setting) + F(1, 10**90)
    assert arithmetic.ratio_scaled == arithmetic.ratio * unit
    assert arithmetic.budget == arithmetic.ratio - 1 + 2 * F(setting.delta)
    for axis, pair in zip(arithmetic.axes, arithmetic.chances, strict=True):
        r, shift = exponential(F(setting.epsilon)), F(setting.mechanism_delta)
        b = (r + shift) / (r + 1)
        true = {"b": b, "D": shift, "1": F(1)}[axis.names[0][0]]
        first, second = (F(p, unit) for p in pair)
        kind = axis.names[0][0]
        assert true - F(1, 10**80) <= first < true + F(1, unit) or first == 1
        if kind == "b":
            assert second == 1 - first
        elif kind == "D":
            assert second == 0
        else:
            assert 1 - shift - F(1, unit) < second <= 1 - shift


@pytest.mark.parametrize("setting", SMALL[:3], ids=str)
def test_the_certificate_s_slack_is_no_more_than_the_least_one(setting: MajoritySetting) -> None:
    prover = GammaProver(setting)
    arithmetic = Arithmetic(setting)
    for seed in range(2):
        weights = prover.shrink(random_weights(setting, seed))[0]
        everything = IntegerWalk(arithmetic, weights, arithmetic.budget * 4).run().near
        least = min(arithmetic.exact_slack(weights, at) for at in everything)
        assert 0 <= prover.certify(weights).slack <= least / 2


@pytest.mark.parametrize("m", [1.0, 3.0, 10.0, 17.0])
def test_a_whole_majority_with_hardly_any_delta_has_one_verdict(
    m: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where gamma is 1, flat multisets tie by the thousand, within the screen's bound."""
    setting = MajoritySetting(17, 0.1, m, 1e-17, 1e-17)
    for weights in ((ONE,) * 9, (*(0,) * 5, *(ONE,) * 4)):
        screened = verdict(setting, weights)
        monkeypatch.setattr(proof, "_FLOATS_FROM", 100)
        assert verdict(setting, weights) == screened
        monkeypatch.undo()
        at = Multiset((0, 0, 17), (0, 0, 0), 0)
        assert not screened or excess(setting, weights, at) <= 0
