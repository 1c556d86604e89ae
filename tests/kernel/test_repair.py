"""Solutions spoilt on purpose: what the solver got wrong, the repair puts right, or refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpopt import NotPrivateError, solve
from dpopt.kernel import KernelDesign, KernelSetting, design_of, kernel_problem
from tests.kernel import brute
from tests.kernel.brute import sure


def spoilt(setting: KernelSetting, noise: brute.Array) -> KernelDesign:
    problem = kernel_problem(setting, formulation="edges")
    solution = solve(problem)
    values = {**solution.values, "kernel": solution["kernel"] + noise.ravel()}
    return design_of(setting, problem, replace(solution, values=values))


def private(design: KernelDesign, epsilon: float, delta: float = 0.0) -> bool:
    edges = brute.complete(design.setting.inputs)
    return brute.is_private(design.exact.weights, design.exact.bits, edges, epsilon, delta)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_repair_keeps_an_invariant_row(delta: float) -> None:
    q = np.array([0.1, 0.2, 0.3, 0.4])
    setting = KernelSetting(1 - np.eye(4), 1.0, delta, objective="minimax", invariant=q)
    noise = np.random.default_rng(0).normal(size=(4, 4))
    noise -= noise.mean(axis=1, keepdims=True)
    noise = 1e-8 * (noise - q @ noise)
    design = spoilt(setting, noise)
    assert private(design, 1.0, delta)
    assert 1e-9 < design.exact.cost < 1e-6
    assert design.residuals["invariance"] <= 1e-15
    assert 0 < sure(design.gap) < 1e-6


def test_an_output_of_noise_only_is_dropped() -> None:
    loss = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 9.0]])
    noise = np.array([[-5e-10, 0.0, 5e-10], [0.0, 0.0, 0.0]])
    design = spoilt(KernelSetting(loss, 1.0), noise)
    assert design.kernel[:, 2].tolist() == [0.0, 0.0]
    assert private(design, 1.0)
    assert sure(design.gap) < 1e-8


def test_repair_for_a_tiny_epsilon_stays_close() -> None:
    loss = np.array([[0.0, 1.0], [0.0, 1.0]])
    noise = np.array([[-1e-7, 1e-7], [0.0, 0.0]])
    design = spoilt(KernelSetting(loss, 1e-9), noise)
    assert private(design, 1e-9)
    assert design.exact.cost <= 1e-6
    assert sure(design.gap) <= 1e-6


def test_a_kernel_far_from_private_is_refused() -> None:
    noise = np.array([[0.1, -0.1], [0.0, 0.0]])
    with pytest.raises(NotPrivateError, match="above tolerance"):
        spoilt(KernelSetting(1 - np.eye(2), 0.5), noise)
