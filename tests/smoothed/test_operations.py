"""Propositions 4 to 7 as properties, and each operation against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import ParameterError
from dpopt.prob.histograms import (
    distribution_reduction,
    histogram_count,
    histograms,
    index_of,
    largest_expectation,
)
from dpopt.smoothed.mechanisms import (
    AnonymousMechanism,
    KernelMechanism,
    SamplingAverage,
    SamplingHistogram,
    as_anonymous,
)
from dpopt.smoothed.operations import (
    compose,
    post_process,
    pre_process,
    push_forward,
)
from dpopt.smoothed.profile import general_log_profile

SLACK = 1e-13


def random_mechanism(n: int, m: int, outputs: int, seed: int) -> KernelMechanism:
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(outputs, 0.5), size=histogram_count(n, m))
    return KernelMechanism(n, m, kernel)


def delta(mechanism: AnonymousMechanism | SamplingHistogram, epsilon: float) -> np.ndarray:
    return np.exp(general_log_profile(mechanism, epsilon))


def smoothed(mechanism: AnonymousMechanism, epsilon: float, laws: np.ndarray) -> float:
    values = general_log_profile(mechanism, epsilon)
    found = largest_expectation(values, mechanism.records, mechanism.categories, laws)
    return float(np.exp(found.log_value))


@given(st.integers(2, 5), st.integers(2, 3), st.floats(0, 2), st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_post_processing_never_raises_delta(n: int, m: int, epsilon: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(n, m, 6, seed)
    before = delta(mechanism, epsilon)
    randomised = post_process(mechanism, rng.dirichlet(np.ones(4), size=6))
    merged = post_process(mechanism, rng.integers(0, 3, size=6))
    permuted = post_process(mechanism, rng.permutation(6))
    assert np.all(delta(randomised, epsilon) <= before + SLACK)
    assert np.all(delta(merged, epsilon) <= before + SLACK)
    np.testing.assert_allclose(delta(permuted, epsilon), before, rtol=1e-12, atol=1e-15)


@given(st.integers(2, 4), st.floats(0, 1), st.floats(0, 1), st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_composition_adds_epsilons_and_deltas(n: int, one: float, two: float, seed: int) -> None:
    first, second = random_mechanism(n, 3, 4, seed), random_mechanism(n, 3, 3, seed + 1)
    both = delta(compose(first, second), one + two)
    assert np.all(both <= delta(first, one) + delta(second, two) + SLACK)
    assert np.all(delta(compose(first, second), one) >= delta(first, one) - SLACK)
    laws = np.random.default_rng(seed).dirichlet(np.ones(3), size=2)
    together = smoothed(compose(first, second), one + two, laws)
    assert together <= smoothed(first, one, laws) + smoothed(second, two, laws) + SLACK


@given(st.integers(2, 5), st.floats(0, 2), st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_preprocessing_is_as_private_as_over_the_image(n: int, epsilon: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism, mapping = random_mechanism(n, 2, 5, seed), rng.integers(0, 2, size=4)
    mapped = pre_process(mechanism, mapping)
    rows = histograms(n, 4)
    images = np.stack([rows[:, mapping == c].sum(axis=1) for c in range(2)], axis=1)
    over_images = delta(mechanism, epsilon)[index_of(images)]
    assert np.all(delta(mapped, epsilon) <= over_images + SLACK)
    laws = rng.dirichlet(np.ones(4), size=2)
    image = push_forward(laws, mapping, 2)
    assert smoothed(mapped, epsilon, laws) <= smoothed(mechanism, epsilon, image) + SLACK


def test_distribution_reduction_leaves_the_value() -> None:
    rng = np.random.default_rng(5)
    corners = rng.dirichlet(np.ones(3), size=3)
    inside = rng.dirichlet(np.ones(3), size=3) @ corners
    laws = np.vstack([inside[:2], corners, inside[2:]])
    reduced = distribution_reduction(laws)
    np.testing.assert_allclose(reduced, corners, rtol=1e-15)
    for mechanism in (SamplingHistogram(9, 7, 3), SamplingAverage(9, 4, [0, 2, 3])):
        inner = as_anonymous(mechanism)
        for epsilon in (0.0, 0.5, 1.5):
            whole = smoothed(inner, epsilon, laws)
            assert smoothed(inner, epsilon, reduced) == pytest.approx(whole, rel=1e-12)


def test_the_average_is_post_processing_of_the_histogram() -> None:
    values, n, drawn = [0, 1, 3], 7, 4
    sums = histograms(drawn, 3) @ np.array(values)
    average = SamplingAverage(n, drawn, values)
    merged = post_process(SamplingHistogram(n, drawn, 3), lambda i: int(sums[i]))
    rows = histograms(n, 3)
    possible = np.unique(sums)
    np.testing.assert_allclose(
        merged.laws(rows), average.laws(rows)[:, possible], rtol=1e-13, atol=0
    )
    impossible = np.setdiff1d(np.arange(average.outputs), possible)
    assert not average.laws(rows)[:, impossible].any()
    assert np.all(delta(average, 0.3) <= delta(SamplingHistogram(n, drawn, 3), 0.3) + SLACK)


def test_a_merge_of_categories_is_the_histogram_on_fewer() -> None:
    fewer = pre_process(SamplingHistogram(6, 4, 2), [0, 1, 1])
    merged = post_process(SamplingHistogram(6, 4, 3), histograms(4, 3)[:, 0])
    rows = histograms(6, 3)
    np.testing.assert_allclose(fewer.laws(rows), merged.laws(rows), rtol=1e-13, atol=0)


def test_laws_of_a_composition_are_products() -> None:
    first, second = random_mechanism(3, 2, 2, 0), random_mechanism(3, 2, 3, 1)
    third = SamplingHistogram(3, 2)
    composed = compose(first, second, third)
    assert composed.outputs == 2 * 3 * 3
    rows = histograms(3, 2)
    wanted = np.einsum(
        "ni,nj,nk->nijk", first.laws(rows), second.laws(rows), as_anonymous(third).laws(rows)
    )
    np.testing.assert_allclose(composed.laws(rows), wanted.reshape(4, -1), rtol=1e-15)
    kinds = [part["mechanism"] for part in composed.to_dict()["parts"]]
    assert kinds == ["kernel", "kernel", "sampling-histogram"]


def test_what_operations_say_of_themselves() -> None:
    mechanism = SamplingHistogram(3, 2)
    merged = post_process(mechanism, [7, 7, 4])
    assert merged.laws([[3, 0]]).tolist() == [[1.0, 0.0]]
    assert merged.laws([[0, 3]]).tolist() == [[0.0, 1.0]]
    mapped = pre_process(mechanism, [1, 0, 1])
    assert (mapped.records, mapped.categories, mapped.outputs) == (3, 3, 3)
    assert push_forward([[0.2, 0.3, 0.5]], [1, 0, 1]).tolist() == [[0.3, 0.7]]
    assert push_forward([[0.2, 0.3, 0.5]], [0, 0, 0], 2).tolist() == [[1.0, 0.0]]
    nothing = post_process(mechanism, np.ones((3, 1)))
    assert np.all(general_log_profile(nothing, 0.0) == -np.inf)


@pytest.mark.parametrize(
    "mapping",
    [
        [0, 1],
        [0, 1, -1],
        [0.5, 1.0, 2.0],
        np.ones((2, 2)) / 2,
        np.ones((3, 2)),
        np.zeros((3, 1)),
        np.ones((3, 0)),
        lambda i: i / 2,
        lambda i: -i,
    ],
)
def test_bad_maps_of_outputs_are_refused(mapping: list) -> None:
    with pytest.raises(ParameterError):
        post_process(SamplingHistogram(3, 2), mapping)


def test_bad_maps_of_categories_and_sizes_are_refused() -> None:
    mechanism = SamplingHistogram(3, 2)
    for mapping in ([0, 2], [-1, 0], [0.5, 1.0], [], [[0, 1]]):
        with pytest.raises(ParameterError, match="mapping is"):
            pre_process(mechanism, mapping)
    with pytest.raises(ParameterError, match="at least 2"):
        pre_process(mechanism, [0])
    with pytest.raises(ParameterError, match="must have the same"):
        push_forward([[0.5, 0.5]], [0, 1, 1])
    with pytest.raises(ParameterError, match="at most 1"):
        push_forward([[0.5, 0.5]], [0, 2], 2)
    with pytest.raises(ParameterError, match="must have the same"):
        compose(mechanism, SamplingHistogram(4, 2))
    with pytest.raises(ParameterError, match="must have the same"):
        compose(mechanism, SamplingHistogram(3, 2, 3))
    with pytest.raises(ParameterError, match="empty"):
        compose()
    with pytest.raises(ParameterError, match="outputs together"):
        compose(*[SamplingHistogram(200, 199)] * 4)
