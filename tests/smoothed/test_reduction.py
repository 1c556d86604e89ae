"""Nothing that the caller listed is dropped unless it cannot matter: pmfs that floats confuse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpopt import ParameterError, smoothed
from dpopt.prob.compositions import maximise
from dpopt.prob.histograms import dropping_loss, hull_vertices, largest_expectation
from dpopt.prob.sum_pmf import Share
from tests import oracles
from tests.smoothed import pmfs as exact

A, B = [0.5, 0.5, 0.0], [0.5, 0.5 - 1e-15, 1e-15]


def shows_the_rare(records: int, least: int) -> exact.KernelMechanism:
    """Publishes whether at least so many records are of the third category."""
    rows = np.array(list(oracles.compositions(records, 3)))
    shown = (rows[:, 2] >= least).astype(float)
    return exact.KernelMechanism(records, 3, np.column_stack([1 - shown, shown]))


def brute_force(log_values: list[float], n: int, m: int, pmfs: np.ndarray) -> mpf:
    """Return ln of the largest E V over every way to draw n records from pmfs, none left out."""
    with mp.workdps(60):
        given = [[mpf(x) for x in pmf] for pmf in pmfs.tolist()]
        given = [[x / sum(pmf) for x in pmf] for pmf in given]
        rows = list(oracles.compositions(n, m))
        values = dict(zip(rows, [mp.exp(mpf(v)) for v in log_values], strict=True))
        best = max(exact.means(values, given, n).values())
        return mp.log(best) if best else -mp.inf


@pytest.mark.slow
@pytest.mark.parametrize("least", [2, 3])
def test_a_listed_distribution_is_not_dropped_for_being_close(least: int) -> None:
    mechanism = shows_the_rare(100, least)
    both = smoothed.smoothed_delta(mechanism, 1.0, [A, B])
    alone = smoothed.smoothed_delta(mechanism, 1.0, [B])
    rare = math.comb(100, least - 1) * 1e-15 ** (least - 1)
    assert alone.delta == pytest.approx(rare, rel=1e-12)
    assert both.delta == pytest.approx(rare, rel=1e-12)
    assert both.certified
    assert both.certificate.slack >= 0
    assert smoothed.smoothed_delta(mechanism, 1.0, [A]).delta == 0.0


def test_one_rare_distribution_among_two_thousand() -> None:
    shares = np.linspace(0.2, 0.8, 2000)
    many = np.column_stack([shares, 1 - shares, np.zeros(2000)])
    found = smoothed.smoothed_delta(shows_the_rare(10, 2), 1.0, np.vstack([many, B]))
    assert found.delta == pytest.approx(1e-14, rel=1e-12)
    assert found.argmax[-1] > 0


def confusing(rng: np.random.Generator, m: int) -> np.ndarray:
    """Return pmfs of which some differ from mixtures of others by less than floats can tell."""
    found = list(rng.dirichlet(np.full(m, rng.choice([0.2, 1.0])), size=rng.integers(1, 4)))
    for _ in range(int(rng.integers(1, 4))):
        mix = rng.dirichlet(np.ones(len(found))) @ np.array(found)
        tiny = 10.0 ** -rng.integers(8, 40)
        to, of = rng.permutation(m)[:2]
        kind = rng.integers(4)
        if kind == 0:
            mix = found[0].copy()
        if kind <= 2:
            mix[to] += tiny
            mix[of] = max(mix[of] - tiny, 0.0)
        if kind == 3:
            mix[of] = tiny
            mix[to] += 1.0 - mix.sum()
        found.append(np.abs(mix) / np.abs(mix).sum())
    return np.array(found)


@pytest.mark.sample(40)
@pytest.mark.parametrize("seed", range(150))
def test_what_is_left_out_costs_no_more_than_is_said(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 5)), int(rng.integers(1, 4))
    listed = confusing(rng, m)
    rows = list(oracles.compositions(n, m))
    log_values = rng.uniform(-30.0, 0.0, len(rows))
    log_values[rng.random(len(rows)) < 0.5] = -math.inf
    truth = brute_force(log_values.tolist(), n, m, listed)
    kept = hull_vertices(listed)
    found = largest_expectation(log_values, n, m, listed[kept])
    if truth == -mp.inf:
        assert found.log_value == -math.inf
        return
    loss = dropping_loss(n) if kept.size < len(listed) else 0.0
    assert abs(truth - mpf(found.log_value)) <= found.rounding + loss


def test_mixtures_are_dropped_in_spite_of_their_rounding() -> None:
    rng = np.random.default_rng(5)
    for m in (3, 4, 6, 12):
        corners = rng.dirichlet(np.full(m, 0.3), size=m - 1)
        mixed = rng.dirichlet(np.ones(m - 1), size=60) @ corners
        found = hull_vertices(np.vstack([mixed, corners]))
        assert found.tolist() == list(range(60, 60 + m - 1))


@pytest.mark.parametrize("rare", [1e-12, 1e-17, 1e-30, 1e-200])
def test_two_categories_keep_the_rare_one(rare: float) -> None:
    # Beside 1 - 1e-17 = 1.0 a single float has no room for the chance of the second category.
    n = 6
    values = np.array([0.0, -1.0, -2.0, -3.0, -math.inf, -math.inf, -math.inf])
    chance = Fraction(rare)
    truth = sum(
        math.comb(n, zeros) * chance**zeros * (1 - chance) ** (n - zeros)
        * Fraction(math.exp(values[n - zeros]))
        for zeros in range(3, n + 1)
    ) or Fraction(0)  # fmt: skip
    share = Share(1.0 - rare, rare)
    found = maximise(values, share, share).log_value
    assert found == pytest.approx(exact.log_of(truth), rel=1e-13)
    low = Share(0.25, 0.75)
    assert maximise(values, low, share).log_value == pytest.approx(
        maximise(values, low, low).log_value, rel=1e-13
    )


def test_two_categories_list_the_rare_one() -> None:
    rows = np.arange(9)
    shown = (rows <= 6).astype(float)
    mechanism = exact.KernelMechanism(8, 2, np.column_stack([1 - shown, shown]))
    found = smoothed.smoothed_delta(mechanism, 0.5, [[1.0, 0.0], [1.0, 1e-17]])
    assert found.delta == pytest.approx(8e-17, rel=1e-12)
    assert found.argmax == (0, 8)
    with pytest.raises(ParameterError, match="1e-260"):
        smoothed.smoothed_delta(mechanism, 0.5, [[1.0, 1e-260]])
