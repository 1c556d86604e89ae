"""Prices of voters near 0 and 1, all at once, against the walk over every multiset."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import Majority, verify
from dpopt.majority import CornerOracle
from dpopt.majority.program import corner_rows
from dpopt.majority.voters import full_gamma, signed


@st.composite
def instances(draw: st.DrawFn) -> tuple[Majority, np.ndarray]:
    k = draw(st.sampled_from([1, 3, 5, 7, 11, 15, 21]))
    epsilon = draw(st.floats(0.01, 2))
    allowance = draw(st.floats(0.05, 1.0)) * k
    shift = draw(st.sampled_from([1e-6, 1e-5, 1e-3, 0.02, 0.3]))
    delta = min(0.9, shift + draw(st.sampled_from([0.0, 1e-4, 0.1])))
    values = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0]))
    upper = np.array(draw(st.lists(values, min_size=(k + 1) // 2, max_size=(k + 1) // 2)))
    return Majority(k, epsilon, allowance, shift, delta), upper * draw(st.floats(0, 1))


@settings(deadline=None)
@given(instances())
def test_the_worst_row_is_that_of_the_walk(instance: tuple[Majority, np.ndarray]) -> None:
    setting, upper = instance
    oracle = CornerOracle(setting)
    worst = max(oracle.price(upper)[0], 0.0)
    # Divided by the budget, values are as large as its inverse.
    rounding = 1e-13 * (1 + setting.ratio) / setting.budget
    multisets, found = oracle.broken(upper)
    assert found == pytest.approx(worst, abs=rounding)
    if multisets:
        own = corner_rows(setting, multisets).violation(upper)
        assert own.max() == pytest.approx(worst, abs=rounding)
        assert own.min() > -rounding
    elif worst > rounding:
        pytest.fail("a violated row was not found")


@pytest.mark.parametrize("shift", [0.0, 1e-4, 0.05, 0.4])
def test_every_place_has_the_best_of_the_walk(shift: float) -> None:
    """The largest value at each (corner of bc and cb, s, voters near 1), wherever one is broken."""
    setting = Majority(7, 0.5, 2.0, shift, shift)
    voters = verify.Voters(setting.to_dict(), None)
    says = {name[0]: setting.corner(name)[0] for pair in voters.axes for name in pair}

    def step(values: list[float], name: str) -> list[float]:
        return [says[name] * b + (1 - says[name]) * a for a, b in pairwise(values)]

    rng = np.random.default_rng(7)
    for upper in (np.ones(4), rng.random(4), (rng.random(4) < 0.5) * 1.0):
        h = signed(full_gamma(upper)) / setting.budget
        expected = np.full((2, 8, 8), -np.inf)
        for placed, up, down in voters.walk(h.tolist(), step):
            counts = dict(placed)
            s, high = counts.get("bc", counts.get("cb", 0)), counts.get("1m", counts.get("m1", 0))
            values = np.array(up) - setting.ratio * np.array(down)
            for corner, name in enumerate(("bc", "cb")):
                if name in counts or s == 0:
                    part = expected[corner, s, high : high + values.size]
                    np.maximum(part, values, out=part)
        values, _ = CornerOracle(setting)._values.best(h, 1.0)
        best = values.max(axis=(0, 1)) - 1.0
        np.testing.assert_allclose(np.maximum(best, 0.0), np.maximum(expected - 1, 0.0), atol=1e-12)


def test_the_bound_of_the_lemma() -> None:
    """For every T on 0..3, |E M| by enumeration of X and Y, and the lemma's right side."""
    rng = np.random.default_rng(3)
    for shift in (0.01, 0.2, 0.7):
        for _ in range(50):
            t = rng.choice([-1.0, 1.0, rng.random()], size=6)
            for d, e in product(range(4), range(3)):
                o, total, split = e, 0.0, 0.0
                for bits in product((0, 1), repeat=d + e):
                    x, y = sum(bits[:d]), sum(bits[d:])
                    chance = np.prod([shift if bit else 1 - shift for bit in bits])
                    total += chance * t[o + x - y]
                    split += chance * (t[o + x] + t[o - y] - t[o])
                hit = (1 - (1 - shift) ** d) * (1 - (1 - shift) ** e)
                assert abs(total - split) <= 2 * (t.max() - t.min()) * hit + 1e-14
