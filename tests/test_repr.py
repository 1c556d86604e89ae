"""What a notebook shows of a result fits on one line."""

from __future__ import annotations

import numpy as np
import pytest

from dpopt import Problem, kernel, majority, public_prior, roo, smoothed, solve


def solved() -> object:
    problem = Problem()
    problem.add_variables("x", 1, lower=0.0, upper=1.0)
    problem.minimise({"x": 1.0})
    return solve(problem)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: majority.design(5, 0.1, 2), ("mechanisms=5", "verdict=private")),
        (lambda: roo.min_count(100, 5, 0.1), ("rule=exact", "records=100")),
        (lambda: roo.optimal_sampler(4, 2, 1.0), ("letters=2", "gap=")),
        (lambda: public_prior.minimax_kernel([0.2, 0.3, 0.5], 1.0), ("letters=3", "epsilon=1")),
        (lambda: public_prior.leximin_kernel([0.2, 0.3, 0.5], 1.0), ("letters=3",)),
        (lambda: kernel.optimal_kernel(1 - np.eye(3), epsilon=1.0).exact, ("inputs=3", "bits=")),
        (
            lambda: smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [0.4, 0.6]),
            ("argmax=(18, 18)", "certified=True"),
        ),
        (
            lambda: smoothed.privacy_profile(smoothed.SamplingHistogram(36, 34), 0.0),
            ("databases=37",),
        ),
        (solved, ("status=optimal", "backend=highs")),
    ],
)
def test_repr_is_one_line(made: object, words: tuple[str, ...]) -> None:
    assert callable(made)
    shown = repr(made())
    assert "\n" not in shown
    assert len(shown) < 250
    assert all(word in shown for word in words)
