"""Weights raised to the last unit: pairs of doubles against fractions, rooms against all rows."""

from __future__ import annotations

import random
from fractions import Fraction as F

import numpy as np
import pytest

from dpopt import NotPrivateError, majority
from dpopt.majority import GammaProver, MajoritySetting
from dpopt.majority.proof import FIXED, RATIO, Arithmetic
from dpopt.majority.raising import Limits, paired, plus, times
from dpopt.majority.voters import Multiset
from tests.majority.brute import ONE, judged


def exactly(pair: tuple[np.ndarray, np.ndarray]) -> list[F]:
    return [F(float(high)) + F(float(low)) for high, low in zip(*pair, strict=True)]


def test_pairs_calculate_to_a_hundred_bits() -> None:
    rng = random.Random(1)
    one = [rng.randint(-(1 << 300), 1 << 300) for _ in range(200)]
    other = [rng.randint(-(1 << rng.randint(1, 300)), 1 << 300) for _ in range(200)]
    x, y = paired(one, -250), paired(other, -250)
    for value, wanted in zip(exactly(x), one, strict=True):
        assert abs(value - F(wanted, 1 << 250)) <= abs(F(wanted, 1 << 350))
    for value, a, b in zip(exactly(plus(x, y)), exactly(x), exactly(y), strict=True):
        assert abs(value - a - b) <= F(abs(a) + abs(b)) / (1 << 100)
    for factor in (1.0, 3.0, -float((1 << 36) - 1), float((1 << 36) + 12345)):
        for value, a in zip(exactly(times(x, factor)), exactly(x), strict=True):
            assert abs(value - a * F(factor)) <= abs(a * F(factor)) / (1 << 100)


def test_integers_beyond_doubles_become_pairs() -> None:
    value = 3**900
    (found,) = exactly(paired([value], -1000))
    assert abs(found - F(value, 1 << 1000)) <= F(value, 1 << 1100)
    assert exactly(paired([], 0)) == []


@pytest.mark.parametrize("units", [1 << 8, 1 << 24])
def test_a_round_stops_where_fractions_do(units: int) -> None:
    """One weight after the other, until none moves: the same steps in fractions."""
    rng = random.Random(units)
    for _ in range(20):
        places, rows = rng.randint(1, 6), rng.randint(1, 8)
        rooms = [rng.choice([0, 1, units // 3, 10 * units]) for _ in range(places)]
        slacks = [rng.randint(1, units << 200) for _ in range(rows)]
        coefficients = [[rng.randint(-(1 << 200), 1 << 200) for _ in range(rows)] for _ in rooms]
        pairs = [paired(line, -200) for line in coefficients]
        high, low = (np.array([pair[part] for pair in pairs]) for part in (0, 1))
        found = Limits(paired(slacks, -200), (high, low)).raised(rooms, units)
        left, total, moved = list(slacks), [0] * places, True
        while moved:
            moved = False
            for place, line in enumerate(coefficients):
                step = min(units, rooms[place]) - total[place]
                stops = [s // c for s, c in zip(left, line, strict=True) if c > 0]
                step = min([step, *stops])
                if step > 0:
                    moved, total[place] = True, total[place] + step
                    left = [s - step * c for s, c in zip(left, line, strict=True)]
        assert found == total


@pytest.mark.parametrize("spare", [0.0, 2.0**-44])
@pytest.mark.parametrize("units", [1 << 8, 1 << 36])
def test_small_coefficients_overdraw_no_slack(units: int, spare: float) -> None:
    """Coefficients and slacks of all sizes, as of laws far from their middle; in fractions."""
    rng = random.Random(units)
    for _ in range(20):
        places, rows = rng.randint(1, 8), rng.randint(1, 8)
        rooms = [rng.choice([1, units // 3, 10 * units]) for _ in range(places)]
        slacks = [rng.randint(0, 1 << rng.randint(1, 236)) for _ in range(rows)]
        coefficients = [
            [rng.choice([-1, 1, 1]) * rng.randint(0, 1 << rng.randint(1, 200)) for _ in range(rows)]
            for _ in rooms
        ]
        pairs = [paired(line, -200) for line in coefficients]
        high, low = (np.array([pair[part] for pair in pairs]) for part in (0, 1))
        found = Limits(paired(slacks, -200), (high, low)).raised(rooms, units, spare)
        left = [
            slack - sum(step * line[row] for step, line in zip(found, coefficients, strict=True))
            for row, slack in enumerate(slacks)
        ]
        assert min(left) >= 0
        for step, room, line in zip(found, rooms, coefficients, strict=True):
            # What could be one unit larger comes within what is kept of a slack.
            if step < min(room, units):
                kept = [
                    places * (units * sum(abs(other[row]) for other in coefficients) + slack)
                    for row, slack in enumerate(slacks)
                ]
                assert any(
                    c > 0 and s - c <= (k >> 91) + spare * 2**200
                    for s, c, k in zip(left, line, kept, strict=True)
                )


@pytest.mark.parametrize(
    "setting",
    [MajoritySetting(9, 0.3, 2.0), MajoritySetting(7, 0.3, 2.0, 0.01, 0.05)],
    ids=["pure", "shifted"],
)
def test_differences_are_those_of_exact_laws(setting: MajoritySetting) -> None:
    arithmetic = Arithmetic(setting)
    counts = {1: [(0,), (3,), (9,)], 3: [(0, 0, 0), (1, 2, 3), (0, 4, 1)]}[len(setting.axes)]
    room = 3 * (setting.mechanisms + 2) * (1 + arithmetic.ratio) / (1 << FIXED)
    for count in counts:
        for choice in (0, 1):
            family = (choice,) * len(count)
            difference = arithmetic.difference(count, family)
            assert len(difference) == sum(count) + 1
            for ones in (0, setting.mechanisms - sum(count)):
                at = Multiset(count, family, ones)
                law, other = arithmetic.laws(at)
                scale, support = arithmetic.scale(at), slice(ones, ones + len(difference))
                for value, p, q in zip(difference, law[support], other[support], strict=True):
                    exact = F(p, 1 << scale) - arithmetic.ratio * F(q, 1 << scale)
                    assert abs(F(value, 1 << (FIXED + RATIO)) - exact) <= room


@pytest.mark.parametrize(
    "setting",
    [
        MajoritySetting(5, 0.3, 1.7),
        MajoritySetting(5, 0.3, 2.0),
        MajoritySetting(5, 5.0, 2.5),
        MajoritySetting(3, 0.3, 1.7, 0.01, 0.02),
        MajoritySetting(5, 100.0, 4.0),
    ],
    ids=str,
)
def test_no_weight_could_be_one_unit_larger(setting: MajoritySetting) -> None:
    best = majority.design_for(setting).weights
    for less in (0, 1, 1 << 20):
        prover = GammaProver(setting)
        filled = prover.fill(prover.shrink(tuple(max(0, w - less) for w in best))[0])
        assert judged(setting, filled) <= F(1, 10**30)
        for place, weight in enumerate(filled):
            more = tuple(w + (i == place) for i, w in enumerate(filled))
            if weight < ONE:
                assert judged(setting, more) > -F(1, 1 << 120)


@pytest.mark.parametrize(("k", "m"), [(151, 3.0), (201, 20.0)])
def test_many_constraints_are_filled_to_the_last_unit(k: int, m: float) -> None:
    """An optimum of which more than 4,000 constraints are near: every weight is at its limit."""
    design = majority.design(k, 0.1, m, objective="surrogate")
    prover = GammaProver(design.setting)
    assert design.certificate is not None
    places = [place for place, weight in enumerate(design.weights) if weight < ONE]
    for place in places[:: max(1, len(places) // 12)]:
        more = tuple(w + (i == place) for i, w in enumerate(design.weights))
        try:
            slack = prover.certify(more).slack
        except NotPrivateError:
            continue
        assert slack < F(1, 1 << 120)


def test_what_a_round_may_hold_leaves_the_result_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of fewer constraints are of fewer units, and more of them reach the same limit."""
    from dpopt.majority import proof

    setting = MajoritySetting(41, 0.1, 4.0)
    prover = GammaProver(setting)
    point = majority.design_for(setting).weights
    loose = tuple(max(0, w - (1 << 20)) if w < ONE else w for w in point)
    monkeypatch.setattr(proof, "_MOST_COEFFICIENTS", 60 * setting.middle)
    filled = prover.fill(loose)
    assert min(b - a for a, b in zip(loose, filled, strict=True)) >= 0
    assert prover.certify(filled).slack >= 0
    refused = 0
    for place, weight in enumerate(filled):
        if weight < ONE:
            more = tuple(w + (i == place) for i, w in enumerate(filled))
            try:
                assert prover.certify(more).slack < F(1, 1 << 120)
            except NotPrivateError:
                refused += 1
    assert refused
