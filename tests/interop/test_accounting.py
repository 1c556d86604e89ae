"""Privacy loss distributions against fractions, enumeration, closed forms and generic bounds."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import NotPrivateError, ParameterError, majority, public_prior
from dpopt.privacy import exp_lower
from dpopt.shape import Design
from dpopt.table import Table
from dpopt.table.least import dominating_pair as pair_of
from tests.majority import brute
from tests.oracles import compositions, neighbours, stick
from tests.privacy.known import path, response
from tests.roo.brute import Rule, obscuring
from tests.table.rows import of_rows

pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")

from dp_accounting.pld import privacy_loss_distribution as google  # pyright: ignore[reportMissingImports]

from dpopt.composition import Engine, adaptive_delta, adaptive_epsilon
from dpopt.interop.accounting import DominatingPair, dominating_pair, privacy_loss

Pmf = Sequence[Fraction]
ALPHAS = [Fraction(i, 7) for i in range(22)] + [Fraction(10), Fraction(1000)]


def of_pair(pair: DominatingPair, alpha: Fraction) -> Fraction:
    upper = [Fraction(p, pair.scale) for p in pair.upper]
    lower = [Fraction(q, pair.scale) for q in pair.lower]
    assert sum(upper) == sum(lower) == 1
    return stick(upper, lower, alpha)


def check(pair: DominatingPair, rows: Sequence[Sequence[int]], edges: Any = None) -> None:
    """Its divergence is the largest of neighbouring rows of integers, at every slope."""
    each = [[Fraction(w, sum(row)) for w in row] for row in rows]
    pmfs = [(each[x], each[y]) for x, y in edges or permutations(range(len(each)), 2)]
    ratios = {a / b for p, q in pmfs for a, b in zip(p, q, strict=True) if b}
    for alpha in {*ratios, *ALPHAS}:
        assert of_pair(pair, alpha) == max(stick(p, q, alpha) for p, q in pmfs)


def randomised_response(labels: int, ratio: int) -> DominatingPair:
    """The pair of k-ary randomised response with e^epsilon = ratio, up to 2^-60."""
    return pair_of(response(labels, math.log(ratio)))


def random_kernel(seed: int, inputs: int, outputs: int) -> Table:
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, 1 << 10, size=(inputs, outputs - 1)), axis=1)
    weights = np.diff(cuts, axis=1, prepend=0, append=1 << 10)
    return of_rows(weights.tolist())


def exact_delta(pair: DominatingPair, folds: int, epsilon: float) -> float:
    """Delta of `folds` releases by the multinomial formula, in integers."""
    ratio, total = exp_lower(epsilon, 256), 0
    for counts in compositions(folds, len(pair.upper)):
        ways = math.factorial(folds)
        for count in counts:
            ways //= math.factorial(count)
        p = math.prod(u**c for u, c in zip(pair.upper, counts, strict=True))
        q = math.prod(v**c for v, c in zip(pair.lower, counts, strict=True))
        total += ways * max(0, p * ratio.denominator - q * ratio.numerator)
    return float(Fraction(total, pair.scale**folds * ratio.denominator))


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(12))
def test_pair_of_a_kernel_is_the_largest_divergence_everywhere(seed: int) -> None:
    found = random_kernel(seed, 2 + seed % 4, 2 + seed % 5)
    pair = pair_of(found)
    check(pair, [found.row(place) for place in range(2 + seed % 4)])
    assert len(pair.upper) >= 1
    falling = [Fraction(p, q) for p, q in zip(pair.upper, pair.lower, strict=True) if q]
    assert falling == sorted(falling, reverse=True)


def test_only_certified_neighbours_count() -> None:
    weights = [[3, 1, 0], [2, 1, 1], [0, 1, 3]]
    pair = pair_of(of_rows(weights, path(3)))
    check(pair, weights, path(3))
    assert pair.infinite_mass == Fraction(1, 2)
    assert pair.largest_loss == math.inf
    everyone = pair_of(of_rows(weights))
    assert everyone.infinite_mass == Fraction(3, 4)


def test_delta_is_rounded_up_and_largest_loss_is_epsilon() -> None:
    pair = randomised_response(4, 3)
    for epsilon in (-1.0, 0.0, 0.3, 1.0):
        exact = of_pair(pair, exp_lower(epsilon, 256))
        assert Fraction(pair.delta(epsilon)) >= exact
        assert pair.delta(epsilon) == pytest.approx(float(exact), rel=1e-15)
    assert pair.delta(pair.largest_loss) == 0.0
    assert pair.largest_loss == pytest.approx(math.log(3), abs=1e-14)


def test_of_randomised_response_as_dp_accounting_has_it() -> None:
    labels, ratio = 5, 3
    # Their noise parameter is the chance of a uniform category.
    theirs = google.from_randomized_response(labels / (ratio + labels - 1), labels)
    ours = privacy_loss(randomised_response(labels, ratio))
    for epsilon in (0.0, 0.2, 0.7, 1.0):
        assert ours.get_delta_for_epsilon(epsilon) == pytest.approx(
            theirs.get_delta_for_epsilon(epsilon), abs=5e-5
        )
        # Ours has its largest loss on the grid, theirs is rounded up.
        assert ours.get_delta_for_epsilon(epsilon) <= theirs.get_delta_for_epsilon(epsilon)


def test_public_prior_and_programs_are_kernels_too() -> None:
    prior = public_prior.public_distribution([0.5, 0.2, 0.3], ["a", "b", "c"])
    local = dpopt.design(dpopt.PublicPrior(prior, 1.0))
    check(dominating_pair(local), [local.table.row(category) for category in range(3)])
    best = dpopt.design(dpopt.Kernel(1 - np.eye(3), 1.0))
    assert dominating_pair(best) == pair_of(best.table)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("labels", "folds"), [(2, 7), (2, 100), (3, 4), (3, 60), (6, 25)])
@pytest.mark.parametrize("delta", [1e-11, 1e-6, 0.1])
def test_composition_bounds_the_multinomial_formula_tightly(
    labels: int, folds: int, delta: float
) -> None:
    pair = randomised_response(labels, 3)
    epsilon = adaptive_epsilon(pair, folds, delta).upper
    assert exact_delta(pair, folds, epsilon) <= delta
    # 1e-14 of delta per release is reserved; the rest is the grid's and the FFT's.
    lower = epsilon - 1e-6 * epsilon - 1e-9
    if lower > 0:
        assert exact_delta(pair, folds, lower) > delta * (1 - 1e-6) - 1.1e-12


@pytest.mark.parametrize("folds", [1, 2, 5, 9])
def test_composition_of_uneven_losses_bounds_fractions(folds: int) -> None:
    pair = dominating_pair(dpopt.design(dpopt.RevealOrObscure(1000, 10, 0.1)))
    for delta in (1e-9, 1e-5, 1e-2):
        epsilon = adaptive_epsilon(pair, folds, delta).upper
        exact = exact_delta(pair, folds, epsilon)
        assert exact <= delta
        # At epsilon = 0 nothing smaller can be had; else the bound is close.
        if epsilon:
            assert exact > 0.999 * delta - 1.1e-12


def test_single_distribution_is_never_below_the_exact_profile() -> None:
    for pair in (
        pair_of(random_kernel(8, 4, 5)),
        dominating_pair(dpopt.design(dpopt.RevealOrObscure(20, 3, 0.5))),
    ):
        for interval in (None, 0.05, 1e-3):
            found = privacy_loss(pair, interval=interval)
            for epsilon in np.linspace(0, 2, 23):
                exact = float(of_pair(pair, exp_lower(float(epsilon), 200)))
                above = float(found.get_delta_for_epsilon(float(epsilon))) - exact
                assert -1e-16 <= above <= (interval or 1e-3) ** 2 + 1e-15


def test_different_mechanisms_compose_on_one_grid() -> None:
    first, second = (
        randomised_response(3, 3),
        dominating_pair(dpopt.design(dpopt.RevealOrObscure(20, 3, 0.5))),
    )
    together = privacy_loss(first, interval=1e-4).compose(privacy_loss(second, interval=1e-4))
    for epsilon in (0.0, 0.4, 1.2):
        ratio = exp_lower(epsilon, 200)
        p, q = (
            [Fraction(a * b, first.scale * second.scale) for a, b in product(*sides)]
            for sides in ((first.upper, second.upper), (first.lower, second.lower))
        )
        exact = float(stick(p, q, ratio))
        assert exact <= together.get_delta_for_epsilon(epsilon) + 1e-14
        assert together.get_delta_for_epsilon(epsilon) == pytest.approx(exact, abs=1e-7)


SETTINGS = [
    dpopt.Majority(5, 0.7, 2),
    dpopt.Majority(3, 1.0, 1.5, 0.01, 0.03),
    dpopt.Majority(5, 0.4, 2, 1e-3, 5e-3),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_pair_of_a_majority_against_every_choice_of_corners(
    setting: dpopt.Majority,
) -> None:
    design = dpopt.design(setting)
    signed = [Fraction(float(g)) for g in design.gamma]
    chance = [(1 + (-g if ones < setting.middle else g)) / 2 for ones, g in enumerate(signed)]
    pmfs = []
    for sides in brute.pmfs(*brute.voters_of(setting)):
        ones = [sum((m * c for m, c in zip(p, chance, strict=True)), Fraction(0)) for p in sides]
        pmfs.append(tuple([1 - one, one] for one in ones))
    pair = dominating_pair(design)
    for alpha in map(Fraction, (0.0, 0.3, 0.9, 1.0, 1.1, 1.5, setting.ratio, 4.0, 50.0)):
        exact = max(Fraction(0), 1 - alpha, *(stick(p, q, alpha) for p, q in pmfs))
        found = float(of_pair(pair, alpha))
        assert found == pytest.approx(float(exact), abs=float(4e-15 * (1 + alpha)))


def rule_pmfs(sampler: Design) -> list[tuple[Pmf, Pmf]]:
    """The distributions of all ordered pairs of neighbouring data sets, by their counts."""
    n, k = sampler.setting.records, sampler.setting.categories

    q = [obscuring(sampler, m) for m in range(n // k + 1)]
    rule = Rule(n, k, q)

    def pmf(counts: tuple[int, ...]) -> Pmf:
        return [rule.pmf(min(counts), count) for count in counts]

    return [(pmf(h), pmf(other)) for h in compositions(n, k) for other in neighbours(h)]


SIZES = [(1, 2), (2, 2), (3, 2), (6, 2), (7, 2), (1, 3), (3, 3), (5, 3), (8, 3), (4, 4), (7, 4)]
RULES = [
    *product(SIZES, (0.1, 0.6, 1.7), ("exact", "roo")),
    *product([(3, 2), (5, 3), (7, 4)], (0.1, 0.6), ("journal-repaired",)),
    ((6, 5), 0.6, "exact"),
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("size", "epsilon", "rule"), RULES)
def test_pair_of_a_min_count_rule_against_all_data_sets(
    size: tuple[int, int], epsilon: float, rule: Any
) -> None:
    k = size[1]
    sampler = dpopt.design(dpopt.RevealOrObscure(*size, epsilon, rule))
    pmfs = rule_pmfs(sampler)
    pair = dominating_pair(sampler)
    points = []
    for p, q in pmfs:
        order = sorted(range(k), key=lambda y: (q[y] == 0, p[y] / q[y] if q[y] else 0))[::-1]
        a = b = Fraction(0)
        for y in order:
            a, b = a + p[y], b + q[y]
            points.append((int(b * pair.scale), int(a * pair.scale)))
    assert pair == DominatingPair.of_points(points, pair.scale)
    for alpha in (Fraction(1, 2), Fraction(1), Fraction(11, 10), Fraction(5, 2)):
        assert of_pair(pair, alpha) == max(stick(p, q, alpha) for p, q in pmfs)


def test_large_rules_are_quick() -> None:
    pair = dominating_pair(dpopt.design(dpopt.RevealOrObscure(10**9, 10, 0.01)))
    assert pair.largest_loss <= 0.01
    assert pair.delta(0.01) == 0.0
    assert 0.0 < pair.delta(0.0) < 1e-3


def test_pure_composition_is_a_sum() -> None:
    found = randomised_response(3, 3)
    loss = found.largest_loss
    assert adaptive_epsilon(found, 7, 0.0).upper >= 7 * Fraction(loss)
    assert adaptive_epsilon(found, 7, 0.0).upper == pytest.approx(7 * loss, rel=1e-15)
    open_kernel = pair_of(of_rows([[3, 1], [4, 0]]))
    assert adaptive_epsilon(open_kernel, 2, 0.0).upper == math.inf
    assert adaptive_epsilon(open_kernel, 2, 1e-3).upper == math.inf
    assert adaptive_epsilon(open_kernel, 1, 0.3).upper < 1.0


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="interval is 1e-09; it must be a finite number of"):
        privacy_loss(randomised_response(3, 3), interval=1e-9)
    with pytest.raises(ParameterError, match="no dominating pair of it is known"):
        dominating_pair(dpopt.design(dpopt.SmoothFloor(20, 3, 0.5)))


def test_what_is_not_private_has_no_distribution() -> None:
    with pytest.raises(NotPrivateError, match="conference"):
        dominating_pair(dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1, "conference")))
    setting = dpopt.Majority(5, 0.5, 1)
    with pytest.raises(NotPrivateError, match="gamma breaks"):
        dominating_pair(majority.assess(setting, np.ones(6)))


@pytest.mark.parametrize("folds", [2, 6, 60])
def test_the_engine_without_dp_accounting_bounds_the_multinomial_formula(
    folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = dominating_pair(dpopt.design(dpopt.RevealOrObscure(1000, 10, 0.1)))
    response = randomised_response(2, 3)
    with_it = adaptive_epsilon(pair, folds, 1e-6)
    assert with_it.engine == Engine.LOSSES
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    without = adaptive_epsilon(pair, folds, 1e-6)
    assert without.engine == Engine.WORST
    assert with_it.upper < without.upper
    # Randomised response is the worst mechanism itself.
    spent = adaptive_epsilon(response, folds, 1e-6).upper
    assert exact_delta(response, folds, spent) == pytest.approx(1e-6, rel=1e-9)
    with pytest.raises(ParameterError, match=f"releases is {folds}; so many of so many outputs"):
        adaptive_delta(pair, folds, 0.1)


def test_engines_of_one_design_agree() -> None:
    # Of one pair of neighbours up to order, so that no engine loses anything.
    design = dpopt.design(dpopt.Kernel([[0, 1], [1, 0]], 0.3))
    on_grid = adaptive_epsilon(design, 20, 1e-5, accuracy=1e-3)
    by_losses = adaptive_epsilon(dominating_pair(design), 20, 1e-5)
    assert on_grid.engine == Engine.GRID != by_losses.engine
    assert by_losses.upper == pytest.approx(on_grid.upper, abs=1e-3)
    above, below = (
        adaptive_delta(dominating_pair(design), 20, end) for end in (on_grid.lower, on_grid.upper)
    )
    assert above.engine == below.engine == Engine.LOSSES
    assert below.upper <= 1e-5 * (1 + 1e-3) <= above.upper * (1 + 2e-3)
    assert adaptive_epsilon(design, 700, 1e-5).engine != Engine.GRID


def test_voters_that_vote_by_coin_spend_nothing() -> None:
    # gamma = 0: ratios next to 1, whose logarithms are far from the floats next to 0.
    design = majority.assess(dpopt.Majority(3, 0.1, 1), [0.0, 0.0])
    assert adaptive_epsilon(dominating_pair(design), 10, 1e-6).upper <= 1e-15
