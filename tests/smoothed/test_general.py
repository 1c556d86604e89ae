"""The general profile against exact rationals, and against the definition over all events."""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.prob.histograms import histogram_count, histograms
from dpopt.smoothed import profile
from dpopt.smoothed.mechanisms import SamplingHistogram
from dpopt.smoothed.profile import general_log_profile, privacy_profile
from tests import oracles
from tests.smoothed import pmfs
from tests.smoothed.pmfs import KernelMechanism


@pytest.mark.parametrize(
    ("n", "drawn", "m", "epsilon"),
    [(1, 1, 2, 0.5), (7, 4, 2, 0.0), (7, 7, 3, 1.0), (6, 5, 3, 0.3), (4, 3, 4, 0.7), (9, 6, 2, 3)],
)
@pytest.mark.parametrize("replacement", [False, True])
def test_against_exact_rationals(
    n: int, drawn: int, m: int, epsilon: float, replacement: bool
) -> None:
    mechanism = SamplingHistogram(n, drawn, m, replacement)
    found = general_log_profile(mechanism, epsilon)
    deltas = pmfs.profile(n, drawn, m, oracles.exponential(epsilon), replacement)
    exact = [pmfs.log_of(delta) for delta in deltas.values()]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)
    for row, value in zip(histograms(n, m)[::3], found[::3], strict=True):
        assert general_log_profile(mechanism, epsilon, row).tolist() == pytest.approx([value])


def test_delta_is_the_largest_gain_of_any_event() -> None:
    n, m, outputs, epsilon = 3, 3, 5, 0.4
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(outputs), size=histogram_count(n, m))
    rows = list(oracles.compositions(n, m))
    pmf = dict(zip(rows, kernel, strict=True))
    places = range(outputs)
    events = list(chain.from_iterable(combinations(places, k) for k in range(outputs + 1)))
    wanted = []
    for row in rows:
        gains = [
            sum(p[list(event)]) - math.exp(epsilon) * sum(q[list(event)])
            for other in oracles.neighbours(row)
            for p, q in ((pmf[row], pmf[other]), (pmf[other], pmf[row]))
            for event in events
        ]
        wanted.append(max(gains))
    found = general_log_profile(KernelMechanism(n, m, kernel), epsilon)
    assert np.exp(found).tolist() == pytest.approx(wanted, rel=1e-12)


def test_portions_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for mechanism in (SamplingHistogram(8, 6, 3), SamplingHistogram(20, 15)):
        whole = general_log_profile(mechanism, 0.3)
        for held in (1, 40, 300):
            monkeypatch.setattr(profile, "_HELD_ENTRIES", held)
            assert np.array_equal(general_log_profile(mechanism, 0.3), whole)
            monkeypatch.undo()


def test_bad_arguments_are_refused() -> None:
    mechanism = SamplingHistogram(5, 3, replacement=True)
    for epsilon in (-1.0, math.nan, 701.0):
        with pytest.raises(ParameterError, match="epsilon is"):
            privacy_profile(mechanism, epsilon)
    with pytest.raises(ParameterError, match="5 records over 2"):
        privacy_profile(mechanism, 1.0, [1, 2])
    with pytest.raises(ParameterError, match="outputs"):
        privacy_profile(SamplingHistogram(5000, 4999, 3, replacement=True), 1.0, [5000, 0, 0])
