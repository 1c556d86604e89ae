"""Histograms: all of them, their hull, and the maximum over compositions, by definition.

The hull's vertices by programs; the maximum by sums over all databases, record by record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpopt.prob import histograms as module
from dpopt.prob.histograms import (
    checked_histograms,
    histogram_count,
    histograms,
    hull_vertices,
    index_of,
    largest_expectation,
    neighbours,
    replacements,
)
from dpopt.smoothed.mechanisms import SamplingHistogram
from dpopt.smoothed.profile import general_log_profile
from tests import oracles
from tests.smoothed import pmfs


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


def is_mixture(point: np.ndarray, others: np.ndarray) -> bool:
    """Whether a point is a convex combination of others, by a feasibility program."""
    rows = np.vstack([others.T, np.ones(len(others))])
    found = linprog(np.zeros(len(others)), A_eq=rows, b_eq=np.append(point, 1.0))
    return bool(found.status == 0)


def test_known_shapes() -> None:
    for distributions, vertices in [
        ([[0.3, 0.7]], [0]),
        ([[0.3, 0.7], [0.3, 0.7]], [0]),
        ([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.4, 0.6]], [0, 2]),
        ([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.2, 0.8]], [0, 2]),
        ([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], [0]),
        ([[0.1, 0.2, 0.7], [0.2, 0.3, 0.5], [0.4, 0.5, 0.1]], [0, 2]),
        ([[0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [0.2, 0.3, 0.5], [0.3, 0.4, 0.3]], [1, 3]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 1, 2]),
        ([[1 / 3, 1 / 3, 1 / 3], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], [1, 2, 3]),
        ([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], [1, 2, 3]),
        ([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]], [0, 1, 2, 3]),
    ]:
        assert hull_vertices(distributions).tolist() == vertices


@pytest.mark.parametrize(("count", "categories", "seed"), [(12, 3, 0), (30, 4, 1), (25, 5, 2)])
def test_vertices_are_the_points_outside_the_hull_of_the_others(
    count: int, categories: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.dirichlet(np.ones(categories), size=count)
    wanted = [i for i in range(count) if not is_mixture(points[i], np.delete(points, i, axis=0))]
    assert len(wanted) < count
    assert hull_vertices(points).tolist() == wanted
    order = rng.permutation(count)
    assert sorted(order[hull_vertices(points[order])].tolist()) == wanted


def test_thin_and_small_sets_keep_their_shape() -> None:
    rng = np.random.default_rng(3)
    square = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5], [0.2, 0.6]])
    for width in (1e-2, 1e-6, 1e-9):
        for height in (1e-2, 1e-8, 1e-11):
            moves = square * [width, height]
            points = np.column_stack([0.3 + moves, 0.4 - moves.sum(axis=1)])
            assert hull_vertices(points).tolist() == [0, 1, 2, 3], (width, height)
    noise = 0.2 + 1e-17 * rng.random((5, 5))
    assert hull_vertices(noise).tolist() == [0]


def test_two_categories_are_compared_exactly() -> None:
    shares = 0.5 + np.arange(4) * 2.0**-50
    assert hull_vertices(np.column_stack([shares, 1 - shares])).tolist() == [0, 3]


def test_many_dimensions() -> None:
    assert hull_vertices(np.eye(40)).tolist() == list(range(40))
    few = np.vstack([np.eye(40)[:3], np.eye(40)[:3].mean(axis=0)])
    assert hull_vertices(few).tolist() == [0, 1, 2]
    with_mean = np.vstack([np.eye(40), np.full(40, 1 / 40)])
    assert hull_vertices(with_mean).tolist() == list(range(40))


def pmfs_from(seed: int, count: int, m: int) -> list[list[Fraction]]:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 9, size=(count, m)) + np.eye(count, m, dtype=int)
    weights[:, -1] += 1
    return [[Fraction(int(w), int(row.sum())) for w in row] for row in weights]


def as_floats(rows: Sequence[Sequence[Fraction]]) -> npt.NDArray[np.float64]:
    return np.array([[float(p) for p in row] for row in rows])


@given(
    st.integers(1, 4),
    st.integers(2, 3),
    st.integers(1, 3),
    st.sampled_from([1, 40, 400]),
    st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=50)
def test_against_all_databases(n: int, m: int, count: int, range_: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    powers = rng.integers(-range_, 1, size=histogram_count(n, m)).tolist()
    zeros = rng.random(len(powers)) < 0.2
    rows = list(oracles.compositions(n, m))
    values = {
        row: Fraction(0) if zero else Fraction(10) ** power
        for row, power, zero in zip(rows, powers, zeros, strict=True)
    }
    logs = [pmfs.log_of(values[row]) for row in rows]
    vertices = pmfs_from(seed, count, m)
    exact = pmfs.means(values, vertices, n)
    found = largest_expectation(logs, n, m, as_floats(vertices))
    best = pmfs.log_of(max(exact.values()))
    assert found.evaluated == len(exact)
    if best == -math.inf:
        assert found.log_value == best
        return
    assert found.log_value == pytest.approx(best, abs=1e-11)
    assert pmfs.log_of(exact[found.composition]) == pytest.approx(best, abs=1e-11)


def test_both_recursions_agree_where_both_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    n, m = 25, 3
    logs = general_log_profile(SamplingHistogram(n, 20, m), 0.5)
    vertices = [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3], [0.1, 0.8, 0.1]]
    linear = largest_expectation(logs, n, m, vertices)
    monkeypatch.setattr(module, "_DOUBLE_RANGE", 0.0)
    logarithmic = largest_expectation(logs, n, m, vertices)
    assert linear.log_value == pytest.approx(logarithmic.log_value, abs=1e-11)
    assert linear.composition == logarithmic.composition
    assert sum(linear.composition) == n


def test_values_beyond_doubles_come_back() -> None:
    n = 12
    logs = np.full(n + 1, -5000.0)
    logs[0] = -1.0
    certain = largest_expectation(logs, n, 2, [[1.0, 0.0], [0.5, 0.5]])
    assert certain.composition == (0, n)
    assert certain.log_value == pytest.approx(-1.0 - n * math.log(2), rel=1e-13)
    alone = largest_expectation(logs, n, 2, [[1.0, 0.0]])
    assert alone.log_value == pytest.approx(-5000.0, rel=1e-13)
    shifted = largest_expectation(logs - 10**5, n, 2, [[1.0, 0.0], [0.5, 0.5]])
    assert shifted.log_value == pytest.approx(certain.log_value - 10**5, rel=1e-13)
    nothing = largest_expectation(np.full(n + 1, -np.inf), n, 2, [[0.5, 0.5], [0.1, 0.9]])
    assert (nothing.log_value, nothing.composition, nothing.rounding) == (-math.inf, (n, 0), 0.0)
