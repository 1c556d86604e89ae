"""Certified kernels: what they release, what they refuse, and what floats would have cost."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from dpopt import Guarantee, NotPrivateError, ParameterError
from dpopt.privacy import ExactKernel, certify_kernel, exp_lower, quantise_kernel
from tests.privacy.known import geometric, path

BINARY = ExactKernel.make([[3, 1], [1, 3]], 2, Guarantee(1.2))


def test_making_a_kernel_certifies_it() -> None:
    proof = certify_kernel([[3, 1], [1, 3]], 2, Guarantee(1.2))
    assert BINARY.certificate == proof
    with pytest.raises(NotPrivateError):
        ExactKernel.make([[3, 1], [1, 3]], 2, Guarantee(1.0))
    with pytest.raises(ParameterError):
        ExactKernel.make([[3, 2], [1, 3]], 2, Guarantee(1.2))


@pytest.mark.parametrize("inputs", [[0], [0, 1, 1, 0], np.array([1, 0], dtype=np.uint8)])
def test_an_array_gives_one_output_each(inputs: npt.ArrayLike) -> None:
    for found in (BINARY.release(inputs), BINARY.simulate(inputs, np.random.default_rng(1))):
        assert isinstance(found, np.ndarray)
        assert found.shape == np.shape(inputs)
        assert found.dtype == np.int64
        assert set(found.tolist()) <= {0, 1}


def test_each_entry_is_drawn_from_its_own_row() -> None:
    pairs = [(x, x ^ 1) for x in range(6)]
    weights = [[4 * (x // 2 == y) for y in range(3)] for x in range(6)]
    kernel = ExactKernel.make(weights, 2, Guarantee(0.0), pairs=pairs)
    inputs = np.array([4, 1, 2, 3, 5, 0] * 1000)
    np.testing.assert_array_equal(kernel.release(inputs), inputs // 2)
    np.testing.assert_array_equal(kernel.simulate(inputs, np.random.default_rng(1)), inputs // 2)


def test_simulations_repeat_and_releases_do_not() -> None:
    inputs = np.zeros(500, dtype=np.int64)
    one, same, other = (BINARY.simulate(inputs, np.random.default_rng(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(BINARY.release(inputs), BINARY.release(inputs))


def test_numpys_global_seed_does_not_reach_a_release() -> None:
    inputs = np.zeros(500, dtype=np.int64)
    found = []
    for _ in range(2):
        np.random.seed(1)  # noqa: NPY002
        found.append(BINARY.release(inputs))
    assert not np.array_equal(found[0], found[1])


def chosen(row: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The lengths of the intervals that Generator.choice searches in."""
    ends = np.cumsum(row)
    ends /= ends[-1]
    return np.diff(ends, prepend=0.0)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 10.0])
def test_float_sampling_loses_what_the_certificate_promises(epsilon: float) -> None:
    n = 64
    kernel = quantise_kernel(geometric(n, epsilon), Guarantee(epsilon), pairs=path(n))
    r = exp_lower(epsilon)
    for x, other in path(n):
        for weight, against in zip(kernel.weights[x], kernel.weights[other], strict=True):
            assert (weight > 0) == (against > 0)
            assert Fraction(weight) <= r * against

    matrix = kernel.matrix()
    lengths = np.array([chosen(row) for row in matrix])
    assert np.all(matrix > 0)
    assert np.any(lengths == 0)
    # An output that one input can give and its neighbour cannot: epsilon is infinite.
    assert any(np.any((lengths[x] > 0) & (lengths[other] == 0)) for x, other in path(n))
