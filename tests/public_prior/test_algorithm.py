"""Algorithm 1 and the prior: the paper's recursion is the judge."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import ParameterError
from dpopt.public_prior import public_distribution
from tests.public_prior.closed_forms import algorithm_one, kernel_for, over_objectives


def priors() -> st.SearchStrategy[list[float]]:
    masses = st.lists(st.sampled_from([1e-12, 1e-6, 0.01, 0.3, 0.3, 1.0]), min_size=1, max_size=7)
    free = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=7)
    return st.one_of(masses, free).map(lambda values: [v / math.fsum(values) for v in values])


@pytest.mark.sample(10)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0, 16.0])
@pytest.mark.parametrize("n", [2, 3, 5, 12, 40])
def test_equals_the_printed_recursion(n: int, epsilon: float) -> None:
    rng = np.random.default_rng(100 * n + int(epsilon))
    for concentration in (0.3, 1.0, 30.0):
        q = rng.dirichlet(np.full(n, concentration)) + 1e-9
        q = (q / q.sum())[rng.permutation(n)]
        expected = algorithm_one(q, epsilon)
        found = kernel_for(q, epsilon)
        assert found.kernel == pytest.approx(expected, rel=1e-11, abs=1e-14)
        assert found.diagonal == pytest.approx(np.diag(expected), rel=1e-11, abs=1e-14)


def test_example_1_of_the_paper() -> None:
    p, q = np.array([0.05, 0.95]), [0.01, 0.99]
    informed, uniform = kernel_for(q, 2.0), kernel_for([0.5, 0.5], 2.0)
    assert abs(p - informed.apply(p)).sum() / 2 == pytest.approx(0.0376, abs=5e-5)
    assert abs(p - uniform.apply(p)).sum() / 2 == pytest.approx(0.107, abs=5e-4)
    assert informed.gamma_tv == pytest.approx(0.93055, abs=5e-6)
    assert uniform.gamma_tv == pytest.approx(0.1192, abs=5e-5)


@pytest.mark.sample(5)
@over_objectives
@pytest.mark.parametrize("n", [1, 2, 3, 10, 77])
def test_uniform_prior_gives_randomised_response(n: int, objective: str) -> None:
    e = math.exp(1.3)
    response = (np.ones((n, n)) + (e - 1) * np.eye(n)) / (e + n - 1)
    # The integers are made for e^epsilon less 2^-40 of what is above 1.
    assert kernel_for(np.full(n, 1 / n), 1.3, objective).kernel == pytest.approx(
        response, abs=1e-12
    )


@given(q=priors(), epsilon=st.sampled_from([1e-6, 0.3, 2.0, 9.0, 40.0, 300.0]), data=st.data())
@over_objectives
def test_is_a_private_kernel_that_keeps_the_prior(
    objective: str, q: list[float], epsilon: float, data: st.DataObject
) -> None:
    kernel = kernel_for(q, epsilon, objective)
    matrix, masses = kernel.kernel, kernel.setting.labelled.masses
    assert matrix.sum(axis=1) == pytest.approx(np.ones(len(q)), abs=1e-13)
    assert masses @ matrix == pytest.approx(masses, rel=1e-9, abs=1e-15)
    most = math.exp(epsilon) * matrix.min(axis=0)
    assert np.all(matrix.max(axis=0) <= most * (1 + 1e-9))
    assert kernel.worst_tv == pytest.approx(kernel.gamma_tv, abs=2e-12)
    assert np.diag(matrix) == pytest.approx(kernel.diagonal, rel=1e-12)
    shuffle = np.array(data.draw(st.permutations(range(len(q)))))
    moved = kernel_for(np.array(q)[shuffle], epsilon, objective).kernel
    assert moved == pytest.approx(matrix[np.ix_(shuffle, shuffle)], rel=1e-9, abs=1e-14)


@over_objectives
def test_apply_is_the_product_with_the_matrix(objective: str) -> None:
    rng = np.random.default_rng(5)
    kernel = kernel_for(rng.dirichlet(np.ones(30)), 3.0, objective)
    users = rng.dirichlet(np.ones(30), size=50)
    assert kernel.apply(users) == pytest.approx(users @ kernel.kernel, abs=1e-14)
    assert kernel.apply(users[3]) == pytest.approx(kernel.apply(users)[3], abs=1e-15)


@pytest.mark.slow
def test_a_batch_of_users_is_not_copied_as_a_whole() -> None:
    rng = np.random.default_rng(7)
    kernel = kernel_for(rng.dirichlet(np.ones(2_000)), 1.0)
    users = rng.dirichlet(np.ones(2_000), size=200)
    each = np.array([kernel.apply(user) for user in users])
    tracemalloc.start()
    try:
        released = kernel.apply(users)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert released == pytest.approx(each, abs=1e-15)
    # The checked copy, what is returned, and little more.
    assert most < 3 * users.nbytes


@pytest.mark.nightly
@pytest.mark.slow
@over_objectives
def test_a_hundred_thousand_labels(objective: str) -> None:
    rng = np.random.default_rng(6)
    q = rng.random(100_000) + 1e-6
    kernel = kernel_for(q / q.sum(), 8.0, objective)
    masses = kernel.setting.labelled.masses
    assert abs(kernel.apply(masses) - masses).sum() < 1e-11
    category = int(np.argmin(masses))
    point = np.zeros(100_000)
    point[category] = 1.0
    row = kernel.apply(point)
    assert row[category] == pytest.approx(kernel.diagonal[category], rel=1e-12)
    assert abs(point - row).sum() / 2 == pytest.approx(kernel.gamma_tv, abs=1e-12)
    with pytest.raises(ParameterError, match="at most 5000"):
        repr(kernel.kernel)


def test_labels_of_a_prior() -> None:
    assert public_distribution([0.4, 0.6], ["a", "b"]).labels == ("a", "b")
    assert list(public_distribution([0.4, 0.6]).labels) == [0, 1]
    wrong: list[Any] = [["a"], ["a", "a"], "ab", {"a", "b"}, [[], []], [1.5, 2], [("a", 1), "b"]]
    for labels in wrong:
        with pytest.raises(ParameterError, match="labels"):
            public_distribution([0.4, 0.6], labels)
    prior = public_distribution([0.4, 0.6])
    assert public_distribution(prior) is prior
    with pytest.raises(ParameterError, match="has its own"):
        public_distribution(prior, ["a", "b"])
    with pytest.raises(ParameterError, match="mass 0 at 'b'"):
        public_distribution([1.0, 0.0], ["a", "b"])


def test_nearly_normalised_priors_are_divided_by_their_sum() -> None:
    prior = public_distribution([0.25, 0.75 + 5e-10])
    assert math.fsum(prior.masses) == pytest.approx(1.0, abs=1e-16)
    assert not prior.masses.flags.writeable
