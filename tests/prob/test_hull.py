"""Vertices of the hull: known shapes, degenerate sets, and an independent test by programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from dpopt.prob.histograms import hull_vertices


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
