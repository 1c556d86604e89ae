"""The benchmark of the kernel programs, on small instances."""

from __future__ import annotations

import numpy as np
import pytest

from dpopt import public_prior
from experiments.benchmarks import kernel_lp


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_all_contenders_find_gamma(epsilon: float) -> None:
    prior = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    expected = public_prior.minimax_utility(prior, epsilon)
    found = {name: run() for name, run in kernel_lp._contenders(prior, epsilon).items()}
    assert len(found) == 4
    assert list(found.values()) == pytest.approx([expected] * 4, abs=1e-7)


def test_the_run_has_every_contender_at_every_size() -> None:
    told: list[None] = []
    config = kernel_lp.Config(letters=(3, 4), rounds=1)
    outcome = kernel_lp.run(config, lambda: told.append(None))
    assert len(told) == kernel_lp.EXPERIMENT.steps(config) == 2
    table = outcome.tables["times"]
    assert table.column("size") == ["n = 3"] * 4 + ["n = 4"] * 4
    assert len(set(table.column("contender"))) == 4
    assert len(outcome.findings) == 7
    apart = float(outcome.findings[-1].split("within ")[1].rstrip("."))
    assert apart < 1e-7
    lines = kernel_lp.plot(outcome).get_axes()[0].get_lines()
    assert len(lines) == 4
    assert not kernel_lp.EXPERIMENT.repeatable
