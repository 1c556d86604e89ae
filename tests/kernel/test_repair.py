"""Solutions spoilt on purpose: what the solver got wrong, the repair puts right, or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpopt import Kernel, NotPrivateError, solve
from dpopt.shape import made
from tests.kernel import brute
from tests.kernel.brute import sure


def spoilt(setting: Kernel, noise: brute.Array) -> Any:
    solution = solve(setting.problem())
    point = setting.point(solution) + noise.ravel()
    return made(setting, setting.table(point), solution)


def private(design: Any) -> bool:
    return brute.private(design, brute.complete(design.setting.inputs))


def cost(design: Any, noise: brute.Array) -> float:
    """How far the worst row was moved from the spoilt one, in total variation."""
    point = design.setting.point(design.solution).reshape(noise.shape) + noise
    return float(np.abs(design.kernel - point).sum(axis=1).max()) / 2


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_repair_keeps_an_invariant_row(delta: float) -> None:
    q = np.array([0.1, 0.2, 0.3, 0.4])
    setting = Kernel(1 - np.eye(4), 1.0, delta, objective="worst-case", invariant=q)
    noise = np.random.default_rng(0).normal(size=(4, 4))
    noise -= noise.mean(axis=1, keepdims=True)
    noise = 1e-8 * (noise - q @ noise)
    design = spoilt(setting, noise)
    assert private(design)
    assert 1e-9 < cost(design, noise) < 1e-6
    assert design.residuals["invariance"] <= 1e-15
    assert 0 < sure(design.gap) < 1e-6


def test_an_output_of_noise_only_is_dropped() -> None:
    loss = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 9.0]])
    noise = np.array([[-5e-14, 0.0, 5e-14], [0.0, 0.0, 0.0]])
    design = spoilt(Kernel(loss, 1.0), noise)
    assert design.kernel[:, 2].tolist() == [0.0, 0.0]
    assert private(design)
    assert sure(design.gap) < 1e-8


def test_repair_for_a_tiny_epsilon_stays_close() -> None:
    loss = np.array([[0.0, 1.0], [0.0, 1.0]])
    noise = np.array([[-1e-7, 1e-7], [0.0, 0.0]])
    design = spoilt(Kernel(loss, 1e-9), noise)
    assert private(design)
    assert cost(design, noise) <= 1e-6
    assert sure(design.gap) <= 1e-6


def test_a_kernel_far_from_private_is_refused() -> None:
    noise = np.array([[0.1, -0.1], [0.0, 0.0]])
    with pytest.raises(NotPrivateError, match="above 1e-05"):
        spoilt(Kernel(1 - np.eye(2), 0.5), noise)
