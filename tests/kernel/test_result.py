"""What a design gives: draws, files, figures, and its own numbers measured again."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpopt import Status, load
from dpopt.kernel import KernelDesign, KernelSetting, kernel_problem, optimal_kernel


def some_design(objective: str = "bayes", sense: str = "minimise") -> KernelDesign:
    loss = np.random.default_rng(3).normal(size=(4, 3))
    return optimal_kernel(
        loss, epsilon=0.8, delta=0.02, graph="path", objective=objective, sense=sense
    )


@pytest.mark.parametrize("sense", ["minimise", "maximise"])
@pytest.mark.parametrize("objective", ["bayes", "minimax"])
def test_the_value_is_that_of_the_integers(objective: str, sense: str) -> None:
    design = some_design(objective, sense)
    by_input = [
        sum(Fraction(a) * w for a, w in zip(line, row, strict=True)) / 2**design.exact.bits
        for line, row in zip(design.setting.losses.tolist(), design.exact.weights, strict=True)
    ]
    worst = max(by_input) if sense == "minimise" else min(by_input)
    expected = sum(by_input) / 4 if objective == "bayes" else worst
    assert design.value == float(expected)
    assert design.expected_losses.tolist() == pytest.approx([float(v) for v in by_input])
    sign = 1 if sense == "minimise" else -1
    assert design.gap == sign * (design.value - design.bound)
    assert 0 <= design.gap <= 1e-9
    assert design.status is Status.OPTIMAL


def test_a_saved_design_is_loaded_as_its_certified_kernel(tmp_path: Path) -> None:
    design = some_design()
    design.save(tmp_path / "kernel.json")
    loaded = load(tmp_path / "kernel.json")
    assert loaded == design.exact
    assert loaded.guarantee == design.guarantee


def test_to_dict_is_json_and_holds_the_certificate() -> None:
    design = some_design()
    found = json.loads(json.dumps(design.to_dict(), allow_nan=False))
    assert found["exact"]["certificate"]["delta"] == 0.02
    assert found["setting"]["graph"] == "path"
    assert found["setting"]["pairs"] == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]
    assert found["value"] == design.value
    assert found["status"] == "optimal"
    q = [0.5, 0.25, 0.25]
    fixed = optimal_kernel(np.eye(3), epsilon=1.0, invariant=q, sense="maximise").to_dict()
    assert json.loads(json.dumps(fixed))["setting"]["invariances"] == [[q], [q]]


def test_draws_follow_the_kernel() -> None:
    design = some_design()
    drawn = design.simulate(np.full(20_000, 2), np.random.default_rng(1))
    shares = np.bincount(drawn, minlength=3) / 20_000
    np.testing.assert_allclose(shares, design.kernel[2], atol=0.02)
    released = design.release(np.arange(4))
    assert np.all(design.kernel[np.arange(4), released] > 0)
    assert design.release(1) in range(3)


def test_arrays_are_read_only_and_equal_to_the_weights() -> None:
    design = some_design()
    assert not design.kernel.flags.writeable
    assert not design.expected_losses.flags.writeable
    np.testing.assert_array_equal(design.kernel, design.exact.matrix())


def test_the_plot_shows_the_kernel() -> None:
    design = some_design()
    axes = design.plot()
    np.testing.assert_array_equal(axes.images[0].get_array(), design.kernel)
    own = Figure().subplots()
    assert design.plot(own) is own


def test_a_setting_can_be_varied() -> None:
    setting = KernelSetting(np.eye(3), 1.0, graph=[(0, 1)], invariant=(0.2, 0.3, 0.5))
    wider = replace(setting, epsilon=2.0)
    assert wider.epsilon == 2.0
    assert wider.to_dict() == {**setting.to_dict(), "epsilon": 2.0}
    assert list(kernel_problem(wider).blocks) == ["sums", "privacy", "invariance"]


def test_a_kernel_that_ignores_its_input_where_epsilon_is_0() -> None:
    loss = np.random.default_rng(0).normal(size=(5, 4))
    for graph in ("complete", "path"):
        design = optimal_kernel(loss, epsilon=0.0, graph=graph)
        assert len(set(design.exact.weights)) == 1
        assert design.value == pytest.approx(loss.mean(axis=0).min(), abs=1e-12)
