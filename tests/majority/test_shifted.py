"""Prices of voters near 0 and 1, all at once, against the walk over every multiset."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import Majority
from dpopt.majority import CornerOracle
from dpopt.majority.program import corner_rows


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
