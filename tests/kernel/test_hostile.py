"""Bad input gets one sentence that names the parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpopt import Kernel, ParameterError
from tests.kernel.brute import optimal

NAN = float("nan")
BAD: list[tuple[dict[str, Any], str]] = [
    ({"loss": "absolute"}, "inputs is None and loss is 'absolute'"),
    ({"loss": "absolute", "inputs": 2**22 + 1}, "inputs is 4194305; .* at most 4194304"),
    ({"loss": "hamming", "inputs": 4}, "shape is None and loss is 'hamming'"),
    ({"loss": "hamming", "shape": (10**9,) * 50}, "which makes about 1e.450 .* words"),
    ({"loss": "hamming", "shape": (1, 1)}, r"shape is \(1, 1\), which makes 1 words"),
    ({"loss": "hamming", "shape": (2, 2), "inputs": 3}, "makes 4 words of 3 inputs"),
    ({"loss": "hamming", "shape": (2, 2), "outputs": 3}, "outputs is 3 and shape"),
    ({"loss": "absolute", "inputs": 3, "graph": "grid"}, "shape is None"),
    ({"inputs": 4}, r"inputs is 4 and loss a table of shape \(3, 3\)"),
    ({"loss": [[1.0, 1e101], [0.0, 0.0]]}, "above 1e\\+100"),
    ({"epsilon": 601.0}, "epsilon is 601"),
    ({"graph": [(1, 1)]}, "two different inputs"),
    ({"graph": "hamming", "shape": (2, 2)}, "makes 4 words of 3 inputs"),
    ({"graph": "path", "shape": (3,)}, "belongs to the graphs 'grid' and 'hamming'"),
    ({"prior": [0.5, 0.5]}, "prior has shape"),
    ({"prior": [1, 1, 1], "objective": "worst-case"}, "belongs to objective 'mean'"),
    ({"invariant": [0.5, 0.6, 0.7]}, "invariant sums to 1.8"),
    ({"invariant": ([[1.0, 0.0]], [[0.5, 0.5, 0.0]])}, "invariant has shapes"),
    ({"loss": np.ones((3, 2)), "invariant": [0.2, 0.3, 0.5]}, "as many outputs as inputs"),
    ({"constraints": "near.json"}, "constraints is 'near.json'; .* read_constraints"),
    ({"constraints": [("a", np.ones((1, 8)), 0.0, 1.0)]}, r"rows 'a': .* has shape \(1, 8\)"),
    ({"constraints": [("a", [[0, 3, 0]], [1.0], [0.5], [None])]}, "constraints 'a' hold input 3"),
    ({"constraints": [("a", [[0, 0, 3]], [1.0], [0.5], [None])]}, "constraints 'a' hold output 3"),
    ({"constraints": [("a", [[1, 0, 0]], [1.0], [0.5], [None])]}, "of a row that has no limits"),
    ({"constraints": [("a", [[0, 0]], [1.0], [0.5], [None])]}, "places of rows 'a' have shape"),
    ({"constraints": [("a", [[0, 0, 0]], [NAN], [0.5], [None])]}, "coefficients of rows 'a'"),
    ({"constraints": [("a", [[0, 0, 0]], [1.0, 2.0], [0.5], [None])]}, "one for each place"),
    ({"constraints": [("a", [[0, 0, 0]], [1.0], [0.5], 0.7)]}, "upper of rows 'a' is 0.7"),
    ({"constraints": [("a", [[0, 0, 0]], [1.0], [0.5], [])]}, "1 lower and 0 upper"),
    ({"constraints": [("", [[0, 0, 0]], [1.0], [None], [0.5])]}, "name of constraints is ''"),
    (
        {"constraints": [("privacy", np.ones((1, 9)), 0.0, 1.0)]},
        "constraints holds the name 'privacy'",
    ),
]


@pytest.mark.parametrize(
    ("options", "message"),
    BAD,
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value[:40],
)
def test_bad_input_gets_one_sentence(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"loss": np.eye(3), "epsilon": 1.0, **options}
    loss = given.pop("loss")
    with pytest.raises(ParameterError, match=message) as caught:
        optimal(loss, **given)
    assert "\n" not in str(caught.value)


def test_a_program_too_large_is_refused_before_it_is_built() -> None:
    with pytest.raises(ParameterError, match="at most 2,000,000"):
        optimal(np.zeros((150, 150)), epsilon=1.0, delta=0.1)


def test_the_setting_keeps_its_own_copies() -> None:
    loss, edges, q = np.eye(3), np.array([[0, 1]]), np.array([0.2, 0.3, 0.5])
    setting = Kernel(loss, 1.0, graph=edges, prior=q, invariant=q)
    loss[0, 0], edges[0, 1], q[0] = 9.0, 2, 0.9
    assert setting.loss_table[0, 0] == 1.0
    assert setting.pairs is not None
    assert setting.pairs.tolist() == [[0, 1], [1, 0]]
    assert setting.weights is not None
    assert setting.weights.tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert setting.invariances is not None
    assert setting.invariances[0][0].tolist() == pytest.approx([0.2, 0.3, 0.5])
    for array in (setting.loss_table, setting.weights, setting.pairs, *setting.invariances):
        assert not array.flags.writeable
