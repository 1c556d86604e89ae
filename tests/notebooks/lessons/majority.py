"""What must be so after the cells of ``majority.ipynb``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpopt import majority


def after_refusal(it: Any) -> None:
    k, epsilon, m = it.K, it.EPSILON, it.M
    design = it.design
    assert np.array_equal(design.gamma, design.gamma[::-1])
    assert 0 <= design.gap < 1e-9
    assert round(design.expected_error, 4) == 0.0256

    # Each is the best of the three under its own prior.
    assert np.all(it.table.diagonal() <= it.table.min(axis=0) + 1e-9)
    assert it.table[0, 1] > 5 * it.table[1, 1]
    assert design.expected_error == it.table[1, 1]
    assert it.independent.expected_error <= it.sampled + 4 * it.spread
    for known, best in zip(it.hedged.regrets[:2], it.table.diagonal(), strict=False):
        assert np.isclose(known.best, best, atol=1e-9)

    corners = [[1.0] * ones + [0.0] * (k - ones) for ones in range(k + 1)]
    points = [majority.PointPrior(p) for p in corners]
    errors = [majority.expected_error(it.worst.gamma, p).value for p in points]
    assert np.isclose(max(errors), -it.worst.value, atol=1e-9)
    assert np.isclose((1 - it.worst.gamma.min()) / 2, -it.worst.value, atol=1e-9)

    assert design.private
    assert it.proof.slack >= 0
    assert it.proof.constraints == majority.reduced_size(design.setting) == 144
    assert abs(it.spent.upper - m * epsilon) < 1e-9
    assert it.seen <= m * epsilon

    assert it.label in (0, 1)
    assert abs(it.drawn.mean() - it.chance) < 5 * (it.chance * (1 - it.chance) / 50_000) ** 0.5

    best = np.array([d.expected_error for d in it.lines["optimal gamma"]])
    for found in it.lines.values():
        assert all(d.private and d.shrink > 1 - 1e-9 for d in found)
        assert np.all(best <= np.array([d.expected_error for d in found]) + 1e-9)

    assert it.batch.total.epsilon <= k * epsilon + 1e-12
    assert it.fresh.total.epsilon <= 60 * m * epsilon + 1e-12
    assert np.all(it.chosen.gamma[it.queries.sum(axis=1)] >= 0.0)

    assert it.again.units == it.chosen.units
    assert it.again.private
    assert it.refusal
