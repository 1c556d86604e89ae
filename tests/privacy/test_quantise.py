"""Float kernels become private integers: the cost measured, the refusals checked, by fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import Guarantee, NotPrivateError, Problem, solve
from dpopt.privacy import (
    ExactKernel,
    complete_graph,
    exp_lower,
    hockey_stick_rows,
    quantise_kernel,
    ratio_rows,
    stochastic_rows,
)
from tests.privacy.known import distance, path

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64] | list[tuple[int, int]]


def loss_of(n: int, power: int) -> Floats:
    return np.minimum(distance(n), 1.0) if power == 0 else distance(n) ** power


def solve_kernel(
    loss: Floats, pairs: Integers, guarantee: Guarantee, backend: str = "highs"
) -> Floats:
    inputs, outputs = loss.shape
    problem = Problem("mechanism")
    problem.add_variables("kernel", loss.size, lower=0.0, upper=1.0)
    problem.add_rows("stochastic", stochastic_rows(inputs, outputs))
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if delta > 0:
        problem.add_variables("excess", len(pairs) * outputs, lower=0.0, upper=1.0)
        rows = hockey_stick_rows(pairs, inputs, outputs, epsilon, delta)
    else:
        rows = ratio_rows(pairs, inputs, outputs, epsilon)
    problem.add_rows("privacy", rows)
    problem.minimise({"kernel": loss.reshape(-1) / inputs})
    return solve(problem, backend)["kernel"].reshape(inputs, outputs)


def normalised(row: Sequence[float]) -> list[Fraction]:
    exact = [max(Fraction(value), Fraction(0)) for value in row]
    return [value / sum(exact) for value in exact]


def moved(kernel: Floats, exact: ExactKernel) -> Fraction:
    """Largest total variation between a float row, normalised, and its integers."""
    return max(
        sum(
            (
                abs(p - Fraction(w, 2**exact.bits))
                for p, w in zip(normalised(row), weights, strict=True)
            ),
            Fraction(0),
        )
        / 2
        for row, weights in zip(kernel.tolist(), exact.weights, strict=True)
    )


def worst_excess(exact: ExactKernel, pairs: Integers) -> Fraction:
    """Largest left side minus right side over all inequalities, by the definition."""
    r, delta = exp_lower(exact.guarantee.epsilon), Fraction(exact.guarantee.delta)
    found = []
    for x, other in np.asarray(pairs).tolist():
        gaps = [a - r * b for a, b in zip(exact.weights[x], exact.weights[other], strict=True)]
        total = sum((gap for gap in gaps if gap > 0), Fraction(0))
        found.append(max(gaps) if delta == 0 else total - delta * 2**exact.bits)
    return max(found) / 2**exact.bits


def check(kernel: Floats, exact: ExactKernel, pairs: Integers, tolerance: float) -> None:
    assert {sum(row) for row in exact.weights} == {2**exact.bits}
    assert exact.certificate.slack == -worst_excess(exact, pairs) >= 0
    cost = moved(kernel, exact)
    assert exact.cost == float(cost)
    assert cost <= tolerance
    np.testing.assert_allclose(exact.matrix(), kernel, atol=4 * tolerance)


CASES = {
    "response-3": (loss_of(3, 0), complete_graph(3), Guarantee(0.5)),
    "response-16": (loss_of(16, 0), complete_graph(16), Guarantee(2.0)),
    "absolute-3": (loss_of(3, 1), path(3), Guarantee(0.2)),
    "absolute-16": (loss_of(16, 1), path(16), Guarantee(1.0)),
    "squared-8-complete": (loss_of(8, 2), complete_graph(8), Guarantee(3.0)),
    "response-3-delta": (loss_of(3, 0), complete_graph(3), Guarantee(0.5, 0.01)),
    "response-8-small-delta": (loss_of(8, 0), complete_graph(8), Guarantee(1.0, 1e-5)),
    "absolute-16-delta": (loss_of(16, 1), path(16), Guarantee(0.5, 0.05)),
    "response-16-no-epsilon": (loss_of(16, 0), path(16), Guarantee(0.0, 0.1)),
}


@pytest.mark.parametrize("backend", ["highs", "cvxpy:CLARABEL"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_kernels_of_linear_programs(case: tuple[Floats, Integers, Guarantee], backend: str) -> None:
    loss, pairs, guarantee = case
    kernel = solve_kernel(loss, pairs, guarantee, backend)
    tolerance = 1e-7 if backend == "highs" else 1e-5
    exact = quantise_kernel(
        kernel, guarantee, pairs=[(int(x), int(y)) for x, y in pairs], tolerance=tolerance
    )
    check(kernel, exact, pairs, tolerance)
    n = len(loss)
    optimum = float(np.sum(loss * kernel)) / n
    assert float(np.sum(loss * exact.matrix())) / n == pytest.approx(optimum, abs=1e3 * tolerance)


@st.composite
def private_kernels(draw: st.DrawFn) -> tuple[Floats, Guarantee]:
    """A mix with its own mean row, at its own exact ratio but for a perturbation of 1e-9."""
    inputs, outputs = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kernel = 0.5 * rng.dirichlet(np.ones(outputs), inputs) + 0.5 / outputs
    epsilon = math.log(np.max(kernel.max(axis=0) / kernel.min(axis=0)))
    epsilon = max(epsilon, 0.05) - draw(st.sampled_from([0.0, 1e-9]))
    return kernel, Guarantee(epsilon)


@given(case=private_kernels())
def test_nearly_private_kernels_are_moved_by_next_to_nothing(
    case: tuple[Floats, Guarantee],
) -> None:
    kernel, guarantee = case
    exact = quantise_kernel(kernel, guarantee)
    if len(kernel) > 1:
        check(kernel, exact, complete_graph(len(kernel)), 1e-7)
    assert moved(kernel, exact) <= Fraction(1, 10**7)


@pytest.mark.parametrize("delta", [5e-324, 1e-60, 1e-37])
def test_a_delta_below_all_rounding_asks_for_no_more_than_none(delta: float) -> None:
    edge = np.array([[math.e, 1.0], [1.0, math.e]]) / (math.e + 1.0)
    without = quantise_kernel(edge, Guarantee(1.0))
    exact = quantise_kernel(edge, Guarantee(1.0, delta))
    assert exact.cost <= without.cost
    (a, b), (c, d) = exact.weights
    r = exp_lower(1.0, 256)
    excess = max(max(0, a - r * c) + max(0, b - r * d), max(0, c - r * a) + max(0, d - r * b))
    assert excess <= Fraction(delta) * 2**exact.bits


FAR = [[0.9, 0.1], [0.1, 0.9]]


@pytest.mark.parametrize("guarantee", [Guarantee(1.0), Guarantee(1.0, 1e-3), Guarantee(0.0, 0.5)])
def test_a_kernel_far_from_private_is_refused(guarantee: Guarantee) -> None:
    with pytest.raises(NotPrivateError, match="tolerance"):
        quantise_kernel(FAR, guarantee)


@pytest.mark.parametrize("guarantee", [Guarantee(2.0), Guarantee(2.0, 0.15)])
def test_a_larger_tolerance_pays_for_privacy(guarantee: Guarantee) -> None:
    exact = quantise_kernel(FAR, guarantee, tolerance=0.05)
    check(np.array(FAR), exact, complete_graph(2), 0.05)
    assert exact.cost > 1e-3


def test_tiny_masses_are_kept() -> None:
    tiny = 1e-14 * math.e
    kernel = np.array([[0.6, 0.4 - 1e-14, 1e-14], [0.4, 0.6 - tiny, tiny]])
    exact = quantise_kernel(kernel, Guarantee(1.0))
    check(kernel, exact, complete_graph(2), 1e-7)
    assert all(row[2] > 0 for row in exact.weights)


def test_a_tiny_mass_beside_a_zero_needs_a_row_with_room_there() -> None:
    kernel = np.array([[0.6, 0.4 - 1e-12, 1e-12], [0.4, 0.6, 0.0]])
    with pytest.raises(NotPrivateError, match="tolerance"):
        quantise_kernel(kernel, Guarantee(1.0), row=kernel.mean(axis=0))
    for row in (None, [0.25, 0.25, 0.5]):
        exact = quantise_kernel(kernel, Guarantee(1.0), row=row)
        check(kernel, exact, complete_graph(2), 1e-7)
        assert exact.weights[1][2] > 0


@pytest.mark.parametrize(
    "kernel",
    [[[0.5, 0.5, -1e-12], [0.5, 0.5, 0.0]], [[0.5, 0.5 - 1e-9, 1e-9], [0.5, 0.5 + 1e-9, -1e-9]]],
)
def test_negative_dust_of_a_solver_counts_as_zero(kernel: list[list[float]]) -> None:
    exact = quantise_kernel(kernel, Guarantee(1.0), tolerance=1e-6)
    check(np.array(kernel), exact, complete_graph(2), 1e-6)


@pytest.mark.parametrize("stay", [0.3, 0.6])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_mixing_with_a_fixed_law_keeps_it_fixed(stay: float, delta: float) -> None:
    q = np.array([0.1, 0.2, 0.3, 0.4])
    kernel = stay * np.eye(4) + (1 - stay) * q
    loss = np.max(kernel.max(axis=0) / kernel.min(axis=0))
    # A little too small: without mixing, the kernel would not be private.
    epsilon = math.log(loss) - 1e-8 if delta == 0 else math.log((kernel[0, 0] - delta) / 0.1) - 1.0
    guarantee = Guarantee(epsilon, delta)
    exact = quantise_kernel(kernel, guarantee, row=q, tolerance=0.999)
    check(kernel, exact, complete_graph(4), 0.999)
    assert moved(kernel, exact) > 1e-10
    exact_q = normalised(q.tolist())
    for y in range(4):
        after = (
            sum(p * row[y] for p, row in zip(exact_q, exact.weights, strict=True)) / 2**exact.bits
        )
        assert abs(after - exact_q[y]) <= 1e-9


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_a_violation_far_below_delta_costs_next_to_nothing(delta: float) -> None:
    over = delta * (1 + 1e-3)
    x = (1 - over) / (1 + math.e)
    kernel = np.array([[1 - x, x], [x, 1 - x]])
    exact = quantise_kernel(kernel, Guarantee(1.0, delta), tolerance=1e-5)
    check(kernel, exact, complete_graph(2), 1e-5)
    # Each row must come closer to the other by about the violation, and by little more.
    assert exact.cost <= 1e-3 * delta


def test_an_output_of_hardly_any_mass_does_not_make_a_private_kernel_dear() -> None:
    ratio = np.exp(1.0)
    response = (np.ones((3, 3)) + (ratio - 1) * np.eye(3)) / (ratio + 2)
    kernel = np.column_stack([response, [2e-15, 0.0, 0.0]])
    exact = quantise_kernel(kernel / kernel.sum(axis=1, keepdims=True), Guarantee(1.0))
    assert exact.cost < 1e-12
    assert exact.certificate.slack >= 0
