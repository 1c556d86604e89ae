"""Exact ties: constraints that are identities in e^epsilon hold, and rounding never "breaks"."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest

from dpopt import Majority, NotPrivateError, majority, verify
from experiments.majority import baselines
from tests.majority import brute
from tests.majority.brute import ONE, at_the_limit, judged, table
from tests.oracles import poisson_binomial

TIES = {
    "double subsampling": (Majority(11, 0.1, 3), baselines.double_subsampling(11, 3)),
    "a voter of three": (Majority(3, 0.1, 1), baselines.subsampling(3, 1)),
    "a voter of seventeen": (Majority(17, 1.0, 1), baselines.subsampling(17, 1)),
    "lemma 3.2": (Majority(3, 1.0, 1), np.array([1 / 3, 1.0, 1.0, 1 / 3])),
    "m epsilon rounded": (Majority(21, 0.1, 10), baselines.double_subsampling(21, 10)),
}


@pytest.mark.parametrize("name", TIES)
def test_a_tie_is_private(name: str) -> None:
    setting, gamma = TIES[name]
    found = majority.assess(setting, gamma)
    assert found.private
    assert found.certificate is not None
    assert found.certificate.slack == 0
    assert found.release([1] * setting.voters) in (0, 1)
    same = majority.assess(setting, gamma, repair=True)
    assert same.table == found.table


@pytest.mark.parametrize("k", [7, 9, 13])
def test_what_rounding_to_doubles_explains_is_not_proved(k: int) -> None:
    setting, gamma = Majority(k, 0.1, 1), baselines.subsampling(k, 1)
    # In fractions it is the tie itself: gamma(l) = (2 l - K) / K, with all voters at b or c.
    assert gamma[k // 2 + 1 :] == pytest.approx([(2 * i - k) / k for i in range(k // 2 + 1, k + 1)])
    found = majority.assess(setting, gamma)
    assert not found.private
    with pytest.raises(NotPrivateError, match="is not proved") as caught:
        found.release([1] * k)
    assert 0 < caught.value.excess <= 3 * 2.0**-54
    assert "break" not in str(caught.value)
    repaired = majority.assess(setting, gamma, repair=True)
    assert repaired.private
    assert np.max(np.abs(repaired.gamma - gamma)) < 1e-12


At = tuple[int, verify.Placed]


def sign(setting: Majority, weights: tuple[int, ...], at: At) -> int:
    """The sign of a slack, by the enclosure and by the formula of `dpopt.verify`."""
    judge = brute.voters(setting)
    judge.fine(4 * verify.BITS)
    low, high = judge.slack(brute.chances(weights), 2 * ONE, *at)
    broken = judge.broken(brute.chances(weights), 2 * ONE, *at)
    assert broken == (high < 0)
    assert low <= high
    return -1 if broken else int(low > 0)


@pytest.mark.parametrize("k", [3, 5, 11, 101])
def test_one_voter_of_k_is_a_tie_in_whole_numbers(k: int) -> None:
    """(1 + h(l)) / 2 = l / K gives Pr[1] = the mean of p, which is b and c: at every K."""
    setting = Majority(k, 0.3, 1)
    exact = [Fraction(2 * i - k, k) for i in range(k // 2 + 1, k + 1)]
    # Weights in proportion 1 : 3 : 5 ..., each a whole number of units.
    unit = ONE // k
    weights = tuple(int(g * k) * unit for g in exact)
    for s in (1, k // 2, k):
        assert sign(setting, weights, (0, (("bc", s),))) >= 0
    assert sign(setting, weights, (0, (("bc", 1),))) == (1 if unit * k < ONE else 0)
    certificate = setting.judge(table(setting, tuple(w * 99 // 100 for w in weights)))
    assert certificate.slack > 0


def slack_of(setting: Majority, weights: tuple[int, ...], at: At) -> mpmath.mpf:
    """The slack e^(m epsilon) Pr[1 | p'] + delta - Pr[1 | p], voter by voter at 200 digits."""
    mp = mpmath.mp
    gamma = [mp.mpf(w) / ONE for w in weights]
    one = [(1 - g) / 2 for g in reversed(gamma)] + [(1 + g) / 2 for g in gamma]
    sides = []
    r, shift = mp.exp(mp.mpf(setting.epsilon)), mp.mpf(setting.voter_delta)
    b = (r + shift) / (r + 1)
    values = {"0": 0, "1": 1, "D": shift, "m": 1 - shift, "b": b, "c": 1 - b}
    for side in (0, 1):
        pmf = poisson_binomial(values[kind[side]] for kind, count in at[1] for _ in range(count))
        sides.append(sum(x * one[at[0] + i] for i, x in enumerate(pmf)))
    target = mp.exp(mp.mpf(setting.allowance) * mp.mpf(setting.epsilon))
    return target * sides[1] + mp.mpf(setting.delta) - sides[0]


SETTINGS = [
    Majority(5, 0.7, 1.5),
    Majority(5, 0.7, 0.8, 0.01, 0.03),
    Majority(3, 2.0, 0.6, 0.2, 0.2),
    Majority(3, 0.4, 0.7, 0.01, 0.05),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("setting", SETTINGS)
def test_signs_are_those_of_200_digits(setting: Majority) -> None:
    rng, seen = random.Random(1), set()
    with mpmath.workdps(200):
        for trial in range(60):
            weights = tuple(
                rng.choice([0, ONE, rng.randint(0, ONE)]) for _ in range(setting.middle)
            )
            axes, placed, left = brute.voters(setting).axes, [], setting.voters
            for pair in axes:
                placed.append((pair[rng.randint(0, 1)], rng.randint(0, left)))
                left -= placed[-1][1]
            ones = rng.randint(0, left)
            if trial % 3 == 0:
                # The majority itself, all voters moving towards 1 at once: nothing breaks by more.
                weights = (ONE,) * setting.middle
                kinds = zip(axes, placed, strict=True)
                placed = [(pair[0], count) for pair, (_, count) in kinds]
                ones = max(0, min(left, setting.middle - rng.randint(1, 2)))
            at = ones, tuple(placed)
            slack = slack_of(setting, weights, at)
            expected = 0 if abs(slack) < mpmath.mpf(10) ** -150 else int(mpmath.sign(slack))
            assert sign(setting, weights, at) == expected
            seen.add(expected)
            # With few bits both ends are apart, and on either side of it.
            coarse = brute.voters(setting)
            coarse.fine(8)
            low, high = (
                mpmath.mpf(end.numerator) / end.denominator
                for end in coarse.slack(brute.chances(weights), 2 * ONE, *at)
            )
            assert low <= slack <= high
    assert {-1, 1} <= seen


def test_a_tie_one_unit_further_is_decided_by_its_own_sign() -> None:
    # b^3 C against e^(3 epsilon) c^3 C at K = 11: a tie whatever gamma(8) is, 1 beyond it.
    setting, at = Majority(11, 0.1, 3), (0, (("bc", 3),))
    share = int(ONE * (1 - 2 / comb(5, 3)))
    for step in (-1, 0, 1):
        assert sign(setting, (0, 5, share + step, ONE, ONE, ONE), at) == 0
    assert sign(setting, (0, 5, share, ONE - 1, ONE, ONE), at) == 1


def test_a_tie_of_many_voters_is_decided() -> None:
    # The output is 1 from 142 votes on: with 32 at 1, b^110 C against e^(110 epsilon) c^110 C.
    setting, weights = Majority(301, 0.1, 110), (*(ONE // 2,) * 9, *(ONE,) * 142)
    assert sign(setting, weights, (32, (("bc", 110),))) == 0
    assert sign(setting, weights, (33, (("bc", 110),))) == 1


def test_what_would_be_a_tie_at_another_allowance_is_none() -> None:
    # 2 b c a + b^2 2 a is e^epsilon (2 b c a + c^2 2 a), and more than e^(epsilon / 2) times that.
    weights = (ONE // 2, ONE - ONE // 4, ONE)
    assert sign(Majority(5, 0.3, 0.5), weights, (0, (("bc", 2),))) == -1
    assert sign(Majority(5, 0.3, 1), weights, (0, (("bc", 2),))) == 0


@pytest.mark.parametrize("setting", [SETTINGS[0], SETTINGS[2], SETTINGS[3]])
@pytest.mark.parametrize("bits", [2, 320])
def test_corners_that_are_close_have_the_slack_of_fractions(
    setting: Majority, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All corners are left to integers: to many bits they decide, to few the formula refuses."""
    rng, seen = random.Random(2), set()
    for step in (-(1 << 44), -1, 0, 1, 1 << 44):
        start = tuple(rng.randint(0, ONE) for _ in range(setting.middle))
        weights = tuple(min(ONE, max(0, w + step)) for w in at_the_limit(setting, start))
        judge, chances = brute.voters(setting), brute.chances(weights)
        shorter = judge.walk([0] * len(chances), lambda values, _: values[1:])
        every = [(0.0, placed, [*range(len(up))]) for placed, up, _ in shorter]
        exact, beside = -judged(setting, weights), verify.Verdict(7, Fraction(2))
        with monkeypatch.context() as patched:
            patched.setattr(verify, "BITS", bits)
            try:
                found = judge.settled(chances, 2 * ONE, beside, every)
            except verify.Refused as refused:
                found = refused
        if isinstance(found, verify.Refused):
            assert bits == 2 or exact < 0
            _, *at = found.at
            with mpmath.workdps(60):
                excess = -slack_of(setting, weights, (at[0], at[1])) - mpmath.mpf(10) ** -50
                assert mpmath.mpf(found.missed.numerator) / found.missed.denominator >= excess
            assert found.missed > 0
        else:
            assert 0 <= found.slack <= exact + Fraction(1, 10**80)
            assert found.rows == 7
            assert bits == 2 or exact - found.slack < Fraction(1, 10**80)
        seen.add(isinstance(found, verify.Verdict))
    assert seen == {True, False} if bits == 320 else False in seen


@pytest.mark.parametrize("many", [1, 2])
def test_close_corners_are_no_more_than_the_limit(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides of a corner cost 5 steps and 8 more, and each number of ones 4: two count."""
    setting = Majority(5, 0.7, 1.5)
    voters, chances = brute.voters(setting), [ONE] * 6
    close: list[verify.Close] = [(0.0, (("bc", 4),), [0, 1])] * many
    beside = verify.Verdict(7, Fraction(2))
    monkeypatch.setattr(verify, "MOST", many * 2 * (2 * 5 + 16 + 2 * 4))
    voters.settled(chances, 2 * ONE, beside, close)
    monkeypatch.setattr(verify, "MOST", many * 2 * (2 * 5 + 16 + 2 * 4) - 1)
    with pytest.raises(verify.Malformed, match="a size is beyond"):
        voters.settled(chances, 2 * ONE, beside, close)
