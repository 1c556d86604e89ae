"""V-shaped majorants against their definition, by brute force over all valleys."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpopt.prob.compositions import majorant_at, valley_gap

levels = st.one_of(st.integers(-6, 0).map(float), st.floats(-50, 0))
sequences = st.lists(levels, min_size=1, max_size=12).map(np.array)
with_zeros = st.lists(st.one_of(levels, st.just(-math.inf)), min_size=1, max_size=12).map(np.array)


def falls_then_rises(values, valley):
    left = all(values[i] >= values[i + 1] for i in range(valley))
    return left and all(values[i] <= values[i + 1] for i in range(valley, len(values) - 1))


def definition(values):
    return any(falls_then_rises(values, valley) for valley in range(len(values)))


@given(with_zeros)
def test_the_test_is_the_definition(values):
    assert (valley_gap(values)[1] == 0.0) == definition(values)


@given(with_zeros, st.data())
def test_majorant_at_a_valley_is_the_least(values, data):
    valley = data.draw(st.integers(0, len(values) - 1))
    majorant = majorant_at(values, valley)
    assert falls_then_rises(majorant, valley)
    for place, level in enumerate(majorant):
        between = values[min(place, valley) : max(place, valley) + 1]
        arm = values[place : valley + 1] if place <= valley else between
        assert level == max(arm)


@given(with_zeros)
def test_majorant_is_above_and_v_shaped(values):
    majorant = majorant_at(values, valley_gap(values)[0])
    assert np.all(majorant >= values)
    assert definition(majorant)
    if definition(values):
        np.testing.assert_array_equal(majorant, values)
    assert not majorant.flags.writeable


@given(sequences)
def test_the_valley_has_the_smallest_gap(values):
    _, gap = valley_gap(values)
    every = [np.max(majorant_at(values, v) - values) for v in range(len(values))]
    assert gap == min(every)


def test_zeros_in_the_middle_are_a_valley_and_apart_are_not():
    assert valley_gap(np.array([-1.0, -math.inf, -math.inf, -2.0]))[1] == 0.0
    values = np.array([-math.inf, -1.0, -math.inf])
    assert valley_gap(values)[1] == math.inf
    assert valley_gap(np.full(3, -math.inf)) == (0, 0.0)
