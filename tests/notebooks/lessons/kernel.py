"""What must be so after the cells of ``kernel.ipynb``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpopt import public_prior


def after_design(it: Any) -> None:
    assert it.design.certificate.slack >= 0
    assert abs(it.design.gap) < 1e-08


def after_geometric(it: Any) -> None:
    assert np.allclose(it.geometric.sum(axis=1), 1)
    assert abs(it.design.kernel - it.geometric).max() < 1e-06
    assert np.isclose((it.geometric * it.loss).sum() / 9, it.design.value, atol=1e-09)


def after_skewed(it: Any) -> None:
    assert np.isclose(it.skewed.value, it.costs.min(axis=1).sum(), atol=1e-08)
    assert it.skewed.value < (it.prior[:, None] * it.geometric * it.loss).sum()


def after_minimax(it: Any) -> None:
    assert np.allclose(it.minimax.expected_losses, it.minimax.value, atol=1e-06)
    assert it.minimax.value < it.design.expected_losses.max() - 0.001


def after_slopes(it: Any) -> None:
    # The loss is convex in delta: a chord lies between the slopes at its ends.
    assert np.all(it.slopes[:-1] <= it.steps + 1e-06)
    assert np.all(it.steps <= it.slopes[1:] + 1e-06)


def after_by_edge(it: Any) -> None:
    assert np.isclose(it.by_edge.sum(), (it.up - it.down) / (2 * it.h), rtol=0.001)
    assert np.all(it.by_edge <= 1e-12)
    assert it.both[3] > it.both[0]


def after_kept(it: Any) -> None:
    assert np.isclose(it.kept.value, public_prior.minimax_utility(it.q, 1.0), atol=1e-08)
    assert it.kept.residuals["invariance"] < 1e-12


def after_held(it: Any) -> None:
    assert it.held.value > it.design.value
    assert it.held.residuals["near"] < 1e-06
    assert "near" in it.refused
    assert "privacy" in it.refused


def after_noisy(it: Any) -> None:
    assert it.noisy.shape == (3,)
    assert set(it.noisy.tolist()) <= set(range(9))
    assert 0.9 * it.epsilon < it.bound.epsilon <= it.epsilon
    assert it.again.units == it.design.units
    assert it.again.value == it.design.value


def after_solved(it: Any) -> None:
    for (k, _), found in it.solved.items():
        expected = (k - 1) / (math.exp(it.epsilon) + k - 1)
        assert np.isclose(found.value, expected, atol=1e-8)
        assert np.allclose(np.diag(found.kernel), 1 - expected, atol=1e-6)


def after_relaxed(it: Any) -> None:
    for delta, found in it.relaxed.items():
        assert np.isclose(found.value, (1 - delta) / (1 + math.exp(it.epsilon)), atol=1e-8)
