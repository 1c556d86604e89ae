"""What a notebook shows of a result fits on one line; of answers, `tests/shape` says the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpopt import Problem, kernel, smoothed, solve


def solved() -> object:
    problem = Problem()
    problem.add_variables("x", 1, lower=0.0, upper=1.0)
    problem.minimise({"x": 1.0})
    return solve(problem)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: kernel.optimal_kernel(1 - np.eye(3), epsilon=1.0).exact, ("inputs=3", "bits=")),
        (
            lambda: smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [0.4, 0.6]),
            ("argmax=(18, 18)", "certified=True"),
        ),
        (solved, ("status=optimal", "backend=highs")),
    ],
)
def test_repr_is_one_line(made: Callable[[], object], words: tuple[str, ...]) -> None:
    shown = repr(made())
    assert "\n" not in shown
    assert len(shown) < 250
    assert all(word in shown for word in words)
