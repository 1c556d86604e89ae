"""Exact multipliers: programs whose numbers are far apart, rows left out, solvers that fail."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import verify
from dpopt.proofs import Written, dual, proved
from tests.proofs.judging import displayed, program_of, run

Kernel = dpopt.Kernel
STEPS = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "setting",
    [
        Kernel("absolute", 20.0, inputs=6, graph="path"),
        Kernel("absolute", 600.0, inputs=6, graph="path"),
        Kernel("absolute", 1e-6, inputs=6, graph="path"),
        Kernel("absolute", 2.0, inputs=25, graph="path", objective="worst-case"),
        Kernel(1e9 * STEPS, 1.0, graph="path"),
        Kernel(1e-9 * STEPS, 1.0, objective="worst-case"),
        Kernel("absolute", 1.0, inputs=5, graph="path", prior=[0, 0, 1, 0, 1]),
        Kernel(10.0 ** np.arange(-8, 8).reshape(4, 4), 1.0, graph="path"),
    ],
)
def test_numbers_far_apart(setting: Any) -> None:
    found: Any = dpopt.design(setting).optimality
    assert 0 <= found.gap <= 1e-12 * max(1, found.value)


def test_the_optimum_of_two_inputs() -> None:
    # Warner: the best answer to a bit errs with 1 / (e^epsilon + 1), here 1 / 3.
    program, third = program_of(Kernel("zero-one", 1.0, inputs=2), ratio=2), Fraction(1, 3)
    program.point = {("K", x, y): 1 - third if x == y else third for x in (0, 1) for y in (0, 1)}
    program.point |= {("u", y): third for y in (0, 1)}
    best = proved(program)
    assert best.value == third
    assert 0 <= best.gap <= Fraction(1, 10**12) * third
    # Rows left out make a bound worse and not wrong.
    design: Any = dpopt.design(Kernel.example())
    names = [name for name, _ in design.optimality.multipliers]
    for rows in (names[:-1], names[::2], names[:1]):
        assert proved(displayed(design), rows).bound <= design.optimality.bound


@pytest.mark.slow
def test_a_program_is_magnified_around_the_best_multipliers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A design whose first magnified programs have worse multipliers than the plain one."""
    x = np.arange(25.0)
    prior = np.random.default_rng(25).dirichlet(np.ones(25))
    loss = np.sqrt(np.abs(np.subtract.outer(x, x)))
    found: Any = dpopt.design(Kernel(loss, 3.0, graph="path", prior=prior))
    program, bounds, inner = displayed(found), [], dual.Written.solved

    def watched(written: Written, point: Any, prices: Any, width: Fraction) -> Any:
        bounds.append(verify.bound(program, list(zip(written.names, prices, strict=True))))
        return inner(written, point, prices, width)

    monkeypatch.setattr(dual.Written, "solved", watched)
    best = proved(program)
    assert len(bounds) > 2
    assert bounds == sorted(bounds)
    assert bounds[-1] <= best.bound + Fraction(1, 2**199)
    assert 0 <= best.gap <= Fraction(1, 10**12) * best.value


def test_a_solver_that_fails_leaves_the_float(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(*_: object) -> None:
        raise dpopt.SolverError("it stopped.", "numerical")

    monkeypatch.setattr(dual.Written, "solved", failing)
    found = dpopt.design(Kernel.example())
    assert found.bound is not None
    assert found.bound.how == "float"
    with pytest.raises(dpopt.SolverError):
        found.save(tmp_path / "x.json", proof=True)
    assert not (tmp_path / "x.json").exists()


@pytest.mark.nightly
@pytest.mark.slow
def test_a_large_one_is_proved_when_asked_for() -> None:
    found: Any = dpopt.design(Kernel("zero-one", 1.0, inputs=80))
    assert found.bound.how == "float"
    assert found.optimality.gap <= 1e-12
    assert found.bound.how == "proved"


@pytest.mark.parametrize("voters", [11, 51, 101])
def test_rows_of_a_majority_are_enough(voters: int) -> None:
    found: Any = dpopt.design(dpopt.Majority(voters, 0.1, voters // 10 + 1))
    # What is left is the design's own: no solver's point is nearer.
    assert abs(float(found.optimality.bound) - found._float_bound) <= 2e-10
    assert found.optimality.gap <= 5e-10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("voters", "epsilon", "delta"),
    [(31, 4.0, 0.0), (51, 4.0, 0.0), (31, 12.0, 0.0), (13, 4.0, 1e-5), (15, 6.0, 1e-12)],
)
def test_thousands_of_tight_rows_hide_none_that_count(
    voters: int, epsilon: float, delta: float, tmp_path: Path
) -> None:
    """Where gamma is flat, rows are equal but for e^(-epsilon K / 2): the tightest prove little."""
    asked = dpopt.Majority(voters, epsilon, 0.5, voter_delta=delta, delta=delta)
    found: Any = dpopt.design(asked)
    assert 0 <= found.optimality.gap <= 1e-9
    found.save(path := tmp_path / "x.json", proof=True)
    lines = run(path, tmp_path / "x.proof.json")[1]
    assert any(line.startswith("optimal: ") for line in lines)
