"""What must be so after the cells of ``smoothed.ipynb``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpopt import smoothed


def after_one(it: Any) -> None:
    assert abs(it.one.delta[0] / float(it.delta) - 1) < 1e-11


def after_logs(it: Any) -> None:
    assert np.isclose(10 ** it.logs[2020], 1.207812712909e-32, rtol=1e-10)


def after_worst(it: Any) -> None:
    assert it.worst.certified
    assert it.worst.delta <= it.worst.bound < it.worst.delta * (1 + 1e-09)
    assert np.isclose(it.worst.dp_delta, 0.998)


def after_expected(it: Any) -> None:
    assert it.found.certified
    assert it.found.argmax == (18, 18)
    assert np.isclose(it.found.delta, it.expected.max(), rtol=1e-12)
    assert np.isclose(it.found.delta, 0.478070349009, atol=1e-12)
    assert np.isclose(it.expected[0], 0.477756536586, atol=1e-12)


def after_inverse(it: Any) -> None:
    assert it.inverse.certified
    assert it.inverse.epsilon - it.inverse.lower <= 1e-09
    assert smoothed.smoothed_delta(it.mechanism, it.inverse.epsilon, [0.4, 0.6]).delta <= 1e-06
    assert smoothed.smoothed_delta(it.mechanism, it.inverse.lower, [0.4, 0.6]).delta > 1e-06


def after_laws(it: Any) -> None:
    assert smoothed.hull_vertices(it.laws).tolist() == [0, 1, 3]
    assert np.isclose(it.found.delta, it.kept.delta, rtol=1e-12)
    assert it.found.certified
    assert abs(it.sample.mean() - it.found.delta) < 5 * it.sample.std() / 4000**0.5


def after_best(it: Any) -> None:
    assert np.isclose(
        it.best.objective, np.maximum(it.p - math.exp(0.5) * it.q, 0).sum(), atol=1e-09
    )


def after_mean(it: Any) -> None:
    assert np.isclose(it.mean, 15 * it.values.mean())
    assert np.isclose(it.batch.probabilities.sum(), 1)
    assert np.isclose(it.exact.delta[1], 9.144733474356e-06, rtol=1e-10)
    assert np.isclose(it.exact.delta[4], 2.454641855294e-10, rtol=1e-10)
    assert it.drawn[-1] > 100 * it.exact.delta[-1]


def after_profiles(it: Any) -> None:
    # A database with a record of its own kind shows it whenever it is drawn.
    for profile in it.profiles.values():
        assert np.isclose(profile.delta.max(), 36 / 40, rtol=1e-12)


def after_falling(it: Any) -> None:
    for line in it.falling.values():
        assert all(found.certified for found in line)
        assert np.all(np.diff([found.log10_delta for found in line]) < 0)
