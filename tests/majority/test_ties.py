"""Exact ties: constraints that are identities in e^epsilon hold, and rounding never "breaks"."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from dpopt.majority.proof import Arithmetic, gamma_rounding
from dpopt.majority.ties import sign

from dpopt import NotPrivateError, majority
from dpopt.majority import GammaProver, MajoritySetting
from dpopt.majority.voters import Multiset
from tests.majority.brute import ONE

THIRD = ONE // 3

TIES = {
    "double subsampling": (MajoritySetting(11, 0.1, 3), majority.double_subsampling(11, 3)),
    "a voter of three": (MajoritySetting(3, 0.1, 1), majority.subsampling(3, 1)),
    "a voter of eleven": (MajoritySetting(11, 0.5, 1), majority.subsampling(11, 1)),
    "lemma 3.2": (MajoritySetting(3, 1.0, 1), np.array([1 / 3, 1.0, 1.0, 1 / 3])),
    "m epsilon rounded": (MajoritySetting(21, 0.1, 10), majority.double_subsampling(21, 10)),
}


@pytest.mark.parametrize("name", TIES)
def test_a_tie_is_private(name: str) -> None:
    setting, gamma = TIES[name]
    found = majority.assess(setting, gamma)
    assert (found.verdict, found.worst_violation, found.excess) == ("private", 0.0, 0.0)
    assert found.certificate is not None
    assert found.certificate.slack == 0
    assert found.release([1] * setting.mechanisms) in (0, 1)
    same = majority.assess(setting, gamma, repair=True)
    assert (same.weights, same.shrink) == (found.weights, 1.0)


@pytest.mark.parametrize("name", TIES)
def test_more_than_a_tie_is_not(name: str) -> None:
    setting, gamma = TIES[name]
    higher = np.ones_like(gamma)
    found = majority.assess(setting, higher)
    assert found.verdict == "not private"
    assert found.excess > gamma_rounding(setting)
    with pytest.raises(NotPrivateError, match=r"^gamma breaks"):
        found.release([1] * setting.mechanisms)
    assert majority.assess(setting, higher, repair=True).verdict == "private"


@pytest.mark.parametrize("k", [5, 9, 13])
def test_what_rounding_to_doubles_explains_is_not_proved(k: int) -> None:
    setting, gamma = MajoritySetting(k, 0.1, 1), majority.subsampling(k, 1)
    # In fractions it is the tie itself: gamma(l) = (2 l - K) / K, with all voters at b or c.
    assert gamma[k // 2 + 1 :] == pytest.approx([(2 * i - k) / k for i in range(k // 2 + 1, k + 1)])
    found = majority.assess(setting, gamma)
    assert found.verdict == "not proved"
    assert 0 < found.excess <= gamma_rounding(setting) < 1e-15
    assert not found.private
    with pytest.raises(NotPrivateError, match="is not proved") as caught:
        found.release([1] * k)
    assert "break" not in str(caught.value)
    repaired = majority.assess(setting, gamma, repair=True)
    assert repaired.verdict == "private"
    assert 0 < 1 - repaired.shrink < 1e-14
    assert np.max(np.abs(repaired.gamma - gamma)) < 1e-15


@pytest.mark.parametrize("k", [3, 5, 11, 101])
def test_one_voter_of_k_is_a_tie_in_whole_numbers(k: int) -> None:
    """(1 + h(l)) / 2 = l / K gives Pr[1] = the mean of p, which is b and c: at every K."""
    setting = MajoritySetting(k, 0.3, 1)
    prover = GammaProver(setting)
    exact = [Fraction(2 * i - k, k) for i in range(k // 2 + 1, k + 1)]
    for s in (1, k // 2, k):
        at = Multiset((s,), (0,), 0)
        # Weights in proportion 1 : 3 : 5 ..., each a whole number of units.
        unit = ONE // k
        weights = tuple(int(g * k) * unit for g in exact)
        assert sign(setting, weights, at) >= 0
        if s == 1:
            assert sign(setting, weights, at) == (1 if unit * k < ONE else 0)
    assert prover.certify(tuple(w * 99 // 100 for w in weights)).slack > 0


def brute(setting: MajoritySetting, weights: tuple[int, ...], at: Multiset) -> mpmath.mpf:
    """The slack e^(m epsilon) Pr[1 | p'] + delta - Pr[1 | p], voter by voter at 200 digits."""
    mp = mpmath.mp
    gamma = [mp.mpf(w) / ONE for w in weights]
    one = [(1 - g) / 2 for g in reversed(gamma)] + [(1 + g) / 2 for g in gamma]
    sides = []
    for side in (0, 1):
        law = [mp.mpf(1)]
        for axis, count, choice in zip(setting.axes, at.counts, at.family, strict=True):
            r, shift = mp.exp(mp.mpf(setting.epsilon)), mp.mpf(setting.mechanism_delta)
            b = (r + shift) / (r + 1)
            values = {"0": 0, "1": 1, "D": shift, "m": 1 - shift, "b": b, "c": 1 - b}
            p = values[axis.names[choice][side]]
            for _ in range(count):
                law = [x * (1 - p) + y * p for x, y in zip([*law, 0], [0, *law], strict=True)]
        sides.append(sum(x * one[at.ones + i] for i, x in enumerate(law)))
    target = mp.exp(mp.mpf(setting.allowance) * mp.mpf(setting.epsilon))
    return target * sides[1] + mp.mpf(setting.delta) - sides[0]


SETTINGS = [
    MajoritySetting(5, 0.7, 1.5),
    MajoritySetting(5, 0.7, 0.8, 0.01, 0.03),
    MajoritySetting(3, 2.0, 0.6, 0.2, 0.2),
    MajoritySetting(3, 0.4, 0.7, 0.01, 0.05),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_signs_are_those_of_200_digits(setting: MajoritySetting) -> None:
    rng, seen = random.Random(1), set()
    with mpmath.workdps(200):
        for trial in range(60):
            weights = tuple(
                rng.choice([0, ONE, rng.randint(0, ONE)]) for _ in range(setting.middle)
            )
            counts, family, left = [], [], setting.mechanisms
            for _ in setting.axes:
                counts.append(rng.randint(0, left))
                left -= counts[-1]
                family.append(rng.randint(0, 1))
            ones = rng.randint(0, left)
            if trial % 3 == 0:
                # The majority itself, all voters moving towards 1 at once: nothing breaks by more.
                weights, family = (ONE,) * setting.middle, [0] * len(family)
                ones = max(0, min(left, setting.middle - rng.randint(1, 2)))
            at = Multiset(tuple(counts), tuple(family), ones)
            slack = brute(setting, weights, at)
            expected = 0 if abs(slack) < mpmath.mpf(10) ** -150 else int(mpmath.sign(slack))
            assert sign(setting, weights, at) == expected
            seen.add(expected)
            arithmetic = Arithmetic(setting)
            rounded = arithmetic.exact_slack(weights, at) / 2
            # What rounding the corners outward can do to a slack, in either direction.
            away = slack - mpmath.mpf(rounded.numerator) / rounded.denominator
            bound = arithmetic.rounding / 2
            assert abs(away) <= mpmath.mpf(bound.numerator) / bound.denominator
    assert {-1, 1} <= seen


def test_a_tie_one_unit_further_is_decided_by_its_own_sign() -> None:
    # b^3 C against e^(3 epsilon) c^3 C at K = 11: a tie whatever gamma(8) is, 1 beyond it.
    setting, at = MajoritySetting(11, 0.1, 3), Multiset((3,), (0,), 0)
    share = int(ONE * (1 - 2 / comb(5, 3)))
    for step in (-1, 0, 1):
        assert sign(setting, (0, 5, share + step, ONE, ONE, ONE), at) == 0
    assert sign(setting, (0, 5, share, ONE - 1, ONE, ONE), at) == 1
