"""Designs that are stopped before the optimum: private, near enough, and honest about how near."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import (
    Status,
)
from dpopt.shape import made

# Between a value and its bound, in floats.
ROUNDING = 1e-8


def stands(found: Any, full: Any, gap: float, unit: float) -> None:
    """A design within a gap of the full optimum, whose bound holds and whose proof is exact."""
    sign = -1.0 if found.setting.maximises else 1.0
    assert -ROUNDING <= sign * (found.value - full.value) <= gap * unit + ROUNDING
    assert sign * (full.value - found.bound) >= -ROUNDING
    assert found.gap == sign * (found.value - found.bound)
    assert found.gap <= gap * unit + ROUNDING
    assert found.certificate == made(found.setting, found.table).certificate
    assert found.status in (Status.OPTIMAL, Status.GAP)


@cache
def full_majority(voters: int, objective: Any) -> Any:
    return dpopt.design(dpopt.Majority(voters, 0.1, 3, objective=objective))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("objective", ["mean", "worst-case", "least-regret"])
@pytest.mark.parametrize("voters", [51, 101])
def test_a_majority(voters: int, objective: Any, gap: float) -> None:
    full = full_majority(voters, objective)
    found = dpopt.design(dpopt.Majority(voters, 0.1, 3, objective=objective), stop_at_gap=gap)
    assert full.status is Status.OPTIMAL
    # The objectives are sums of at most 1, or one number of at most 1.
    stands(found, full, gap, 1.0)
    if gap == 1e-3 and objective != "worst-case":
        assert found.status is Status.GAP
        assert found.solution is not None
        assert full.solution is not None
        assert found.solution.rounds < full.solution.rounds


def test_what_is_told_of_a_stopped_design(tmp_path: Path) -> None:
    found: Any = dpopt.design(dpopt.Majority(51, 0.1, 3), stop_at_gap=1e-2)
    assert found.private
    assert f"status=gap, gap={found.gap:.6g}" in repr(found)
    assert found.summary()["status"] == "gap"
    told = found.to_dict()
    assert (told["status"], told["bound_is"]) == ("gap", "float")
    assert told["gap"] == found.gap > 1e-6
    page = found._repr_html_()
    assert "status" in page
    found.save(tmp_path / "stopped.json")
    again = dpopt.load(tmp_path / "stopped.json")
    assert (again.table, again.value, again.bound) == (found.table, found.value, found.bound)
    whole = full_majority(51, "mean")
    assert "status" not in repr(whole)
    assert "status" not in whole.summary()


def test_a_proof_of_a_stopped_design_bounds_it(tmp_path: Path) -> None:
    found: Any = dpopt.design(dpopt.Majority(51, 0.1, 3), stop_at_gap=1e-2)
    full = full_majority(51, "mean")
    found.save(tmp_path / "stopped.json", proof=True)
    proved = found.optimality
    assert proved is not None
    assert proved.as_float() >= full.value - ROUNDING


def path_loss(size: int) -> np.ndarray:
    return np.random.default_rng(1).random((size, size))


Designed = Callable[..., Any]
WAYS: dict[str, Designed] = {
    "kernel along a path": lambda **way: dpopt.design(
        dpopt.Kernel(path_loss(30), 0.5, graph="path"), **way
    ),
    "worst row along a path": lambda **way: dpopt.design(
        dpopt.Kernel(path_loss(12), 0.5, graph="path", objective="worst-case"), **way
    ),
    "kernel with further rows": lambda **way: dpopt.design(
        dpopt.Kernel(path_loss(10), 0.5, constraints=[("first", np.eye(1, 100), 0.2, 0.3)]), **way
    ),
    "kernel under symmetry": lambda **way: dpopt.design(
        dpopt.Kernel("absolute", 0.5, graph="cycle", inputs=9, symmetry="auto"),
        backend="highs",
        **way,
    ),
    "category": lambda **way: dpopt.design(dpopt.BestSampler(8, 3, 1.0), **way),
    "category of a prior": lambda **way: dpopt.design(
        dpopt.BestSampler(8, 3, 1.0, objective="mean"), **way
    ),
    "plurality": lambda **way: dpopt.design(dpopt.Plurality(12, 3, 0.7), **way),
    "worst plurality": lambda **way: dpopt.design(
        dpopt.Plurality(12, 3, 0.7, objective="worst-case"), **way
    ),
    "private voters": lambda **way: dpopt.design(dpopt.Multiclass(9, 3, 0.5, 2.0), **way),
    "population": lambda **way: dpopt.design(
        dpopt.Population([0.2, 0.3, 0.5], 1.0, np.random.default_rng(1).dirichlet([1, 1, 1], 40)),
        **way,
    ),
    "prior": lambda **way: dpopt.design(
        dpopt.PublicPrior([0.2, 0.3, 0.5], 1.0), backend="highs", **way
    ),
}


@cache
def full_of(way: str) -> Any:
    return WAYS[way]()


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("gap", [1e-1, 1e-3])
@pytest.mark.parametrize("way", WAYS)
def test_designs_of_other_programs(way: str, gap: float) -> None:
    full, found = full_of(way), WAYS[way](stop_at_gap=gap)
    # A share is of the objective's largest coefficient: of a worst case, the unit of its losses.
    costs = np.abs(full.setting.problem().assemble().cost)
    stands(found, full, gap, max(1.0, abs(full.value), float(costs.max())))


def test_a_closed_form_has_nothing_to_stop() -> None:
    full = dpopt.design(dpopt.RevealOrObscure(6, 3, 1.0))
    found = dpopt.design(full.setting, stop_at_gap=0.5)
    assert (found.table, found.status) == (full.table, None)
    path = dpopt.Kernel("absolute", 1.0, inputs=9, graph="path")
    assert dpopt.design(path, stop_at_gap=0.5).value == dpopt.design(path).value
