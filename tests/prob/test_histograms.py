"""Enumeration and numbering of histograms against recursion, and neighbours by their definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.prob.histograms import (
    checked_histograms,
    histogram_count,
    histograms,
    index_of,
    neighbours,
    replacements,
)
from tests import oracles


@pytest.mark.sample(8)
@pytest.mark.parametrize(("n", "m"), list(product((0, 1, 2, 5, 9), (1, 2, 3, 4, 5))))
def test_all_histograms_in_lexicographic_order(n: int, m: int) -> None:
    table = histograms(n, m)
    assert [tuple(row) for row in table.tolist()] == list(oracles.compositions(n, m))
    assert table.shape == (histogram_count(n, m), m)
    assert index_of(table).tolist() == list(range(len(table)))
    assert not table.flags.writeable


def test_places_in_a_table_too_large_to_list() -> None:
    n, m = 10**5, 4
    assert index_of([[0, 0, 0, n], [0, 0, 1, n - 1], [n, 0, 0, 0]]).tolist() == [
        0,
        1,
        histogram_count(n, m) - 1,
    ]


@given(st.integers(1, 8), st.integers(2, 4), st.data())
@settings(deadline=None, max_examples=40)
def test_neighbours_replace_one_record(n: int, m: int, data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(list(oracles.compositions(n, m))))
    assert sorted(tuple(other) for other in neighbours(row).tolist()) == sorted(
        oracles.neighbours(row)
    )


@pytest.mark.parametrize(("n", "m"), [(1, 2), (5, 2), (4, 3), (3, 4)])
def test_every_pair_of_neighbours_once(n: int, m: int) -> None:
    rows = list(oracles.compositions(n, m))
    wanted = {frozenset((row, other)) for row in rows for other in oracles.neighbours(row)}
    pairs = replacements(histograms(n, m))
    found = [frozenset((rows[i], rows[j])) for i, j in pairs.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_floats_that_are_integers_are_taken() -> None:
    assert checked_histograms(np.array([[1.0, 2.0]]), 3, 2).tolist() == [[1, 2]]
