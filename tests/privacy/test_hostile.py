"""Arguments out of range: each ends in an error that names its parameter."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpopt import Guarantee, ParameterError
from dpopt.privacy import (
    ExactKernel,
    audit_epsilon,
    certify_kernel,
    column_minimum_rows,
    complete_graph,
    general_composition,
    hockey_stick_rows,
    quantise_kernel,
    ratio_rows,
    simple_composition,
    stochastic_rows,
)

NAN, INF = math.nan, math.inf
BINARY = ExactKernel.make([[3, 1], [1, 3]], 2, Guarantee(1.2))

# Values that no parameter of the name takes, whatever the function.
EPSILONS: list[Any] = [-0.1, NAN, INF, "1", None, True, 10**400]
DELTAS: list[Any] = [-0.1, 1.1, NAN, "0", None]
INSIDE: list[Any] = [0.0, 1.0, -0.1, 1.5, 2.0, NAN, "0.1", None]
SIZES: list[Any] = [0, -1, 1.5, NAN]
PAIRS: list[Any] = [[], [0, 1], [[0, 1, 2]], [[0.0, 1.0]], [[0, 2]], [[-1, 0]], [["0", "1"]]]
EDGES: list[Any] = [*PAIRS, [(0, 1), (5, 0)], [(0,)], [(0.5, 1.9)], [("a", 0)]]
SAMPLES: list[Any] = [
    *([], 0, [[0, 1]], [0.0, 1.0], [0, 2], [-1, 0], ["a"], [True, False], [None]),
]
INPUTS: list[Any] = [
    *(2, -1, [0, 2], [-1, 0], 0.0, [0.0, 1.0], NAN, True, "0", None, [[0, 1]], 10**30),
    np.array([2**64 - 1], dtype=np.uint64),
]
WEIGHTS: list[Any] = [
    *([], [[]], [1, 1], 2, [[-1, 3], [1, 1]], [[1, 2], [1, 1]], [[1, 0], [1, 1]]),
    *([[2], [1, 1]], [[1, 1], [1, 1, 0]], [[NAN, 1], [1, 1]], [[INF, 1], [1, 1]]),
    *([[1.9, 1.9], [1, 1]], [[None, 2], [1, 1]]),
]
KERNELS: list[Any] = [
    *([0.5, 0.5], 0.5, [], [[]], np.zeros((0, 2)), [[[0.5, 0.5]]], [[NAN, 1.0], [0.5, 0.5]]),
    *([[INF, 0.0], [0.5, 0.5]], [[1.1, -0.1], [0.5, 0.5]], [[0.5, 0.4], [0.5, 0.5]]),
    *([[0.5, 0.51], [0.5, 0.5]], [[0.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [1.0]], [["a", "b"]]),
]
ROWS: list[Any] = [
    *([1.0, 0.0], [0.0, 0.0], [0.5, 0.5, 0.5], [1.0], 0.5, [[0.5, 0.5]], [1.1, -0.1]),
    *([NAN, 1.0], [INF, 1.0]),
]

BOTH = [[0, 1], [1, 0]]
SIZED = {"inputs": SIZES, "outputs": SIZES[:3]}
RATIO: dict[str, Any] = {"pairs": BOTH, "inputs": 2, "outputs": 2, "epsilon": 1.0}
AUDIT: dict[str, Any] = {"first": [0, 1], "second": [0, 1], "outputs": 2}
CERTIFY: dict[str, Any] = {"weights": [[1, 1], [1, 1]], "bits": 1, "guarantee": Guarantee(1.0)}
NEAR: dict[str, Any] = {"kernel": [[0.5, 0.5], [0.4, 0.6]], "guarantee": Guarantee(1.0)}
SMALL_DELTA = {"guarantee": Guarantee(1.0, 0.1)}
RNG = np.random.default_rng(1)
ROW_EPSILONS = [e for e in EPSILONS if e is not True] + [1000.0]

# A function, good arguments of it, and bad ones by name.
CASES: list[Any] = [
    (Guarantee, {"epsilon": 1.0}, {"epsilon": EPSILONS, "delta": [*DELTAS, 1.0]}),
    (
        *(general_composition, {"guarantee": Guarantee(1.0), "folds": 2, "slack": 0.1}),
        {"folds": [*SIZES, INF, "2", None], "slack": INSIDE},
    ),
    (
        *(simple_composition, {"guarantee": Guarantee(1.0), "folds": 2}),
        {"folds": [*SIZES, INF, "2", None]},
    ),
    (stochastic_rows, {"inputs": 2, "outputs": 2}, SIZED),
    (complete_graph, {"inputs": 2}, {"inputs": SIZES}),
    (ratio_rows, RATIO, {**SIZED, "pairs": PAIRS, "epsilon": ROW_EPSILONS}),
    (
        *(column_minimum_rows, {"inputs": 2, "outputs": 2, "epsilon": 1.0}),
        {**SIZED, "epsilon": ROW_EPSILONS},
    ),
    (
        *(hockey_stick_rows, {**RATIO, "delta": 0.1}),
        {**SIZED, "pairs": PAIRS, "epsilon": ROW_EPSILONS, "delta": DELTAS},
    ),
    (
        *(audit_epsilon, AUDIT),
        {"first": SAMPLES, "second": SAMPLES, "outputs": [*SIZES, "2"], "confidence": INSIDE},
    ),
    (audit_epsilon, AUDIT, {"delta": DELTAS}),
    (certify_kernel, CERTIFY, {"weights": WEIGHTS, "pairs": EDGES}),
    (certify_kernel, CERTIFY | SMALL_DELTA, {"pairs": EDGES}),
    (
        *(quantise_kernel, NEAR),
        {
            **{"kernel": KERNELS, "row": ROWS, "pairs": [*EDGES, [(0, 1, 1)]]},
            **{"tolerance": [0.0, -1e-9, 1.5, NAN], "ratio": [Fraction(1, 2), Fraction(3)]},
        },
    ),
    (quantise_kernel, NEAR | SMALL_DELTA, {"pairs": EDGES}),
    (BINARY.release, {"inputs": 0}, {"inputs": INPUTS}),
    (BINARY.simulate, {"inputs": 0, "rng": RNG}, {"inputs": INPUTS}),
]
SPOILT = [
    pytest.param(function, good | {name: value}, name, id=f"{function.__name__}-{name}-{place}")
    for function, good, bad in CASES
    for name, values in bad.items()
    for place, value in enumerate(values)
]


@pytest.mark.parametrize(("function", "arguments", "name"), SPOILT)
def test_a_bad_argument_is_named(
    function: Callable[..., object], arguments: dict[str, Any], name: str
) -> None:
    with pytest.raises(ParameterError, match=name) as caught:
        function(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_good_arguments_are_taken(case: Any) -> None:
    function, good, _ = case
    try:
        function(**good)
    except ParameterError as error:
        pytest.fail(str(error))
