"""What must be so after the cells of ``votes.ipynb``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

Counts = tuple[int, ...]


@cache
def ladder(counts: Counts, epsilon: float) -> tuple[float, ...]:
    """Return the ladder by its recursion, in floats."""
    top = max(counts)
    share = [0.0] * len(counts)
    for y, count in enumerate(counts):
        if count <= top - 2:
            moved = list(counts)
            moved[counts.index(top)] -= 1
            moved[y] += 1
            share[y] = math.exp(-epsilon) * ladder(tuple(moved), epsilon)[y]
    # One below the top, the moved ballot only exchanges two classes: e^-epsilon of a top's own.
    weights = [{top: 1.0, top - 1: math.exp(-epsilon)}.get(count, 0.0) for count in counts]
    left = (1.0 - sum(share)) / sum(weights)
    return tuple(s + left * w for s, w in zip(share, weights, strict=True))


def flip(counts: Counts, epsilon: float) -> tuple[float, ...]:
    """Return permute-and-flip: class y is kept with q_y = e^(-epsilon gap / 2), by an integral."""
    keep = [math.exp(epsilon / 2 * (n - max(counts))) for n in counts]
    nodes, weights = np.polynomial.legendre.leggauss(len(counts))
    t, found = (nodes + 1) / 2, []
    for y, own in enumerate(keep):
        others = np.prod([1 - t * q for z, q in enumerate(keep) if z != y], axis=0)
        found.append(own * float(weights @ others) / 2)
    return tuple(found)


def powers(counts: Counts, epsilon: float) -> tuple[float, ...]:
    """Return the exponential mechanism."""
    weights = np.exp(epsilon / 2 * np.array(counts))
    return tuple(weights / weights.sum())


def mean_and_worst(law: Callable[[Counts, float], tuple[float, ...]]) -> tuple[float, float]:
    """Return mean and worst regret of 30 ballots over three classes, epsilon 0.5."""
    losses = []
    for a in range(31):
        for b in range(31 - a):
            counts = (a, b, 30 - a - b)
            told = law(counts, 0.5)
            losses.append(sum(p * (max(counts) - n) for p, n in zip(told, counts, strict=True)))
    return float(np.mean(losses)), max(losses)


def regret_at(design: Any, counts: Counts) -> float:
    """Return the expected regret at some counts."""
    law = design.setting.law(design.units, counts=counts)
    lost = [max(counts) - n for n in counts]
    return sum(p * loss for p, loss in zip(law, lost, strict=True)) / sum(law)


def after_minimax(it: Any) -> None:
    columns = ("rule", "step", "mean_regret", "worst_regret")
    rows = zip(*(it.beside[name] for name in columns), strict=True)
    found = {(rule, step): regrets for rule, step, *regrets in rows}
    assert np.allclose(found["optimal", "optimum"], mean_and_worst(ladder), atol=1e-9)
    assert np.allclose(found["ladder", "audited"], mean_and_worst(ladder), atol=1e-9)
    for rule, law in (("permute-and-flip", flip), ("exponential", powers)):
        textbook = mean_and_worst(law)
        assert np.allclose(found[rule, "e^(epsilon / 2)"], textbook, atol=1e-9)
        assert found[rule, "audited"][0] <= textbook[0]
    assert it.minimax.worst_regret < min(worst for _, worst in found.values())
    assert it.best.mean_regret < it.minimax.mean_regret
    assert it.minimax.worst_regret - it.minimax.bound < 1e-8
    assert [round(d.worst_regret, 2) for d in (it.best, it.minimax)] == [1.2, 1.1]
    regrets = [regret_at(it.best, (13, 9, 8)), regret_at(it.minimax, (13, 9, 8))]
    assert np.allclose(regrets, [it.best.worst_regret, it.minimax.worst_regret], atol=1e-6)
    lines = [axis.get_ydata() for axis in it.axes.get_lines()[:2]]
    assert np.abs(lines[0] - lines[1]).max() < 0.05


def after_lowered(it: Any) -> None:
    assert math.isclose(it.factor, math.exp(0.5), rel_tol=1e-9)
    assert math.isclose(it.best.mean_regret, it.ladder.mean_regret, rel_tol=1e-9)
    # Ten: refuted below (C - 2) / 4, at 3 + 3 + 8 ballots.
    assert 3 / 2 <= math.exp(0.5) < (10 - 2) / 4
    assert it.lowered.ladder_epsilon < 0.5
    assert it.lowered.spending <= 0.5
    share = ladder((3, 3) + (1,) * 8, 0.5)[0], ladder((3, 2, 2) + (1,) * 7, 0.5)[0]
    assert share[1] / share[0] < 1.0


def after_refused(it: Any) -> None:
    assert len(it.y) == 1347
    assert it.voting.queries_ == 30
    assert it.voting.spent_.epsilon == 15.0
    assert "affords 40" in it.refused
    assert set(it.labels) <= set(range(10))


def after_largest(it: Any) -> None:
    assert it.counts.shape == (450, 10)
    assert np.all(it.counts.sum(axis=1) == 20)
    for epsilon in (0.3, 0.5, 1):
        told = [it.told[epsilon, rule] for rule in it.rules]
        assert max(told) < it.largest + 0.005
        assert told[3] < told[2] < told[0]
        # An audit of these sizes passes a larger step than the textbook's: a better mechanism.
        laws = np.array([powers(tuple(row), epsilon) for row in it.counts])
        assert laws[np.arange(450), it.truth].mean() - 1e-9 <= told[3]


def private_laws(rng: np.random.Generator, voters: int, epsilon: float) -> tuple[Any, Any]:
    """Return random laws of voters over three classes, and epsilon-private neighbours."""
    ratio = math.exp(epsilon)
    u, w = rng.dirichlet((0.1,) * 3, (2, voters))
    b, c = ratio / (1 + ratio), 1 / (1 + ratio)
    return b * u + c * w, c * u + b * w


def told_by(design: Any, laws: Any) -> Any:
    """Return the law of the label, where voter i votes by laws[i]."""
    counts: dict[Counts, float] = {(0, 0, 0): 1.0}
    for law in laws:
        more: dict[Counts, float] = {}
        for n, chance in counts.items():
            for y in range(3):
                up = tuple(k + (x == y) for x, k in enumerate(n))
                more[up] = more.get(up, 0.0) + chance * law[y]
        counts = more
    total = np.zeros(3)
    for n, chance in counts.items():
        law = np.array(design.setting.law(design.units, np.repeat([0, 1, 2], n)), dtype=float)
        total += chance * law / law.sum()
    return total


def sampling_misses(voters: int, sample: int) -> float:
    """Return how often the plurality of a sample is none of all, over all histograms of 3."""
    missed = []
    for a in range(voters + 1):
        for b in range(voters + 1 - a):
            n = (a, b, voters - a - b)
            right = 0.0
            for i in range(sample + 1):
                for j in range(sample + 1 - i):
                    h = (i, j, sample - i - j)
                    ways = math.prod(map(math.comb, n, h)) / math.comb(voters, sample)
                    tops = [n[y] == max(n) for y in range(3) if h[y] == max(h)]
                    right += ways * sum(tops) / len(tops)
            missed.append(1 - right)
    return float(np.mean(missed))


def after_others(it: Any) -> None:
    assert round(it.three.error, 4) == 0.0601
    assert 0 <= it.three.gap < 1e-9
    assert [round(d.error, 4) for d in it.others.values()] == [0.1165, 0.1247, 0.1312, 0.1655]
    assert math.isclose(it.others["subsampling"].error, sampling_misses(11, 5), rel_tol=1e-9)
    assert it.three.guarantee.epsilon < 0.3 + 1e-12
    setting = it.three.setting
    by_lead: dict[int, list[float]] = {}
    for state, missed in zip(
        setting.partitions.states, setting.missed(it.three.units), strict=True
    ):
        by_lead.setdefault(state[0] - state[1], []).append(1 - missed)
    assert min(map(np.mean, by_lead.values())) == np.mean(by_lead[5])
    assert min(np.mean(by_lead[lead]) for lead in (0, 1)) > 0.95
    rng = np.random.default_rng(1)
    for _ in range(20):
        here, there = private_laws(rng, 11, 0.1)
        for design in (it.three, it.others["ladder"]):
            spent = np.abs(np.log(told_by(design, here) / told_by(design, there))).max()
            assert spent <= 0.3 + 1e-9


def after_psi(it: Any) -> None:
    assert [round(math.log(s.ratio) / 0.1, 9) for s in it.sampled.values()] == [3, 4, 6]
    # The lower bound of (C - 1) t, for C t sampled votes.
    assert (3 - 1) * (9 // 3) == 6
    assert math.isclose(21 * it.psi, 0.5, rel_tol=1e-12)
    assert it.ten.private


def error_at(gamma: Any, p: float) -> float:
    """Return |Pr[label 1] - Pr[majority 1]| of K voters that say 1 with p."""
    voters = len(gamma) - 1
    ones = np.arange(voters + 1)
    signs = np.where(ones > voters / 2, 1.0, -1.0)
    return abs(float(binom.pmf(ones, voters, p) @ (signs * (1.0 - gamma)))) / 2


def after_two(it: Any) -> None:
    table = np.array(it.rows)
    assert np.all(table.diagonal() <= table.min(axis=0) + 1e-9)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for design, (_, common, close) in zip(it.two.values(), table, strict=True):
        # |error| is symmetric in p and 1 - p.
        half = [error_at(design.gamma, p) for p in (3 + nodes) / 4]
        assert math.isclose(common, float(weights @ half) / 2, abs_tol=1e-9)
        fifth = [error_at(design.gamma, p) for p in 0.9 + nodes / 10]
        assert math.isclose(close, float(weights @ fifth) / 2, abs_tol=1e-9)
    last = it.two["least-regret"].regrets
    assert round(max(r.regret for r in last), 3) == 0.037


def after_beyond(it: Any) -> None:
    assert it.city in it.cities
    assert it.label in (0, 1, 2)
    assert it.first[1].epsilon <= 1.3 + 1e-12
    assert it.released == 3
    assert it.last[1].epsilon <= 2.8 + 1e-12
    assert "left of the budget" in it.beyond


def after_many(it: Any) -> None:
    assert math.isclose(it.chance(it.three, (1 / 3, 1 / 3, 1 / 3)), 1 / 3, rel_tol=1e-9)
    assert it.chance(it.three, (1, 0, 0)) > 1 - 1e-9
    for vote, one in it.alone.values():
        assert vote < one
    ladder_, gaussian = zip(*(it.many[asked] for asked in (1, 10, 100)), strict=True)
    assert ladder_[0] > gaussian[0]
    assert ladder_[1] < gaussian[1]
    assert ladder_[2] < gaussian[2]
