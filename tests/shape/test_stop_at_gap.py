"""Designs that are stopped before the optimum: private, near enough, and honest about how near."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Kernel, Majority, Status
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


def loss(size: int) -> np.ndarray:
    return np.random.default_rng(1).random((size, size))


FIRST, USERS = ("first", np.eye(1, 100), 0.2, 0.3), np.random.default_rng(1).dirichlet([1] * 3, 40)
# By what they are, settings, and the backend of those that have a closed form.
PROGRAMS: dict[str, tuple[dpopt.Setting, str | None]] = {
    "kernel along a path": (Kernel(loss(30), 0.5, graph="path"), None),
    "worst row": (Kernel(loss(12), 0.5, graph="path", objective="worst-case"), None),
    "kernel with further rows": (Kernel(loss(10), 0.5, constraints=[FIRST]), None),
    "kernel under symmetry": (
        Kernel("absolute", 0.5, graph="cycle", inputs=9, symmetry="auto"),
        "highs",
    ),
    "category": (dpopt.BestSampler(8, 3, 1.0), None),
    "category of a prior": (dpopt.BestSampler(8, 3, 1.0, objective="mean"), None),
    "plurality": (dpopt.Plurality(12, 3, 0.7), None),
    "worst plurality": (dpopt.Plurality(12, 3, 0.7, objective="worst-case"), None),
    "private voters": (dpopt.Multiclass(9, 3, 0.5, 2.0), None),
    "population": (dpopt.Population([0.2, 0.3, 0.5], 1.0, USERS), None),
    "prior": (dpopt.PublicPrior([0.2, 0.3, 0.5], 1.0), "highs"),
    **{
        f"{objective} of {voters}": (Majority(voters, 0.1, 3, objective=objective), None)
        for voters in (51, 101)
        for objective in ("mean", "worst-case", "least-regret")
    },
}


@cache
def full(name: str) -> Any:
    setting, backend = PROGRAMS[name]
    return dpopt.design(setting, backend=backend)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_design_that_is_stopped(name: str, gap: float) -> None:
    setting, backend = PROGRAMS[name]
    whole = full(name)
    found: Any = dpopt.design(setting, backend=backend, stop_at_gap=gap)
    assert whole.status is Status.OPTIMAL
    # A share is of the objective's largest coefficient: of a worst case, the unit of its losses;
    # objectives of a majority are sums of at most 1, or one number of at most 1.
    costs = np.abs(setting.problem().assemble().cost)
    majority = isinstance(setting, Majority)
    unit = 1.0 if majority else max(1.0, abs(whole.value), float(costs.max()))
    stands(found, whole, gap, unit)
    if majority and gap == 1e-3 and setting.objective != "worst-case":
        assert found.status is Status.GAP
        assert found.solution.rounds < whole.solution.rounds


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
    whole = full("mean of 51")
    found.save(tmp_path / "stopped.json", proof=True)
    assert found.optimality.as_float() >= whole.value - ROUNDING
    assert "status" not in repr(whole)
    assert "status" not in whole.summary()


def test_a_closed_form_has_nothing_to_stop() -> None:
    full = dpopt.design(dpopt.RevealOrObscure(6, 3, 1.0))
    found = dpopt.design(full.setting, stop_at_gap=0.5)
    assert (found.table, found.status) == (full.table, None)
    path = dpopt.Kernel("absolute", 1.0, inputs=9, graph="path")
    assert dpopt.design(path, stop_at_gap=0.5).value == dpopt.design(path).value
