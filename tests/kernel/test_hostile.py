"""Bad input gets one sentence that names the parameter."""

from __future__ import annotations

import numpy as np
import pytest

from dpopt import Kernel


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
