"""Measurements in OpenDP: their maps against fractions, their draws, and OpenDP's combinators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Design, Guarantee, NotPrivateError, ParameterError, public_prior, roo
from dpopt.privacy import exp_lower, exp_upper, simple_composition
from dpopt.shape import made as design_of
from tests.kernel.brute import made_of, optimal, rows_of
from tests.oracles import follow
from tests.table.rows import certify

pytest.importorskip("opendp", reason="OpenDP is not installed")

import opendp.prelude  # pyright: ignore[reportMissingImports]

from dpopt.interop.opendp import group_privacy, make_kernel, make_noise, make_sampler

dp: Any = opendp.prelude
THIRD = made_of([[2, 1, 1], [1, 2, 1], [1, 1, 2]], math.nextafter(math.log(2), 1.0))


@pytest.fixture(autouse=True)
def features() -> Iterator[None]:
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


def path_kernel(epsilon: float = 0.7, delta: float = 0.0) -> Design:
    places = np.arange(4)
    loss = np.abs(places[:, None] - places[None, :]).astype(float)
    return optimal(loss, epsilon=epsilon, delta=delta, graph="path")


def test_local_kernel_is_a_measurement_under_the_discrete_distance() -> None:
    made = make_kernel(THIRD)
    assert made.input_metric == dp.discrete_distance()
    assert made.input_domain == dp.atom_domain(bounds=(0, 2))
    assert made.output_measure == dp.max_divergence()
    assert made.map(0) == 0.0
    # Every two symbols are neighbours: there is nothing further apart.
    assert made.map(1) == made.map(5)
    assert exp_lower(made.map(1), 256) >= 2
    assert made.map(1) == pytest.approx(math.log(2), rel=1e-15)


def test_composition_by_opendp_agrees_with_ours() -> None:
    made = make_kernel(THIRD)
    for folds in (2, 5):
        together = dp.c.make_composition([made] * folds)
        released = together(2)
        assert len(released) == folds
        assert set(released) <= {0, 1, 2}
        ours = simple_composition(Guarantee(made.map(1)), folds).epsilon
        assert together.map(1) == pytest.approx(ours, rel=1e-14)
        assert Fraction(together.map(1)) >= folds * Fraction(made.map(1))


def test_kernel_with_delta_spends_both() -> None:
    design = optimal(1 - np.eye(4), epsilon=0.5, delta=0.01)
    made = make_kernel(design)
    assert made.output_measure == dp.approximate(dp.max_divergence())
    assert made.map(1) == (0.5, 0.01)
    assert made.map(0) == (0.0, 0.0)
    together = dp.c.make_composition([made, made, made])
    epsilon, delta = together.map(1)
    ours = simple_composition(design.guarantee, 3)
    assert epsilon == pytest.approx(ours.epsilon, rel=1e-14)
    assert delta == pytest.approx(ours.delta, rel=1e-14)
    profile = dp.c.make_fixed_approxDP_to_approxDP(made).map(1)
    assert profile.epsilon(delta=0.01) == 0.5
    assert made(3) in range(4)


@pytest.mark.parametrize("delta", [0.0, 0.003])
def test_noise_spends_its_guarantee_for_every_sensitivity(delta: float) -> None:
    design = dpopt.design(dpopt.Noise(3, 0.7, delta))
    made = make_noise(design)
    assert made.input_metric == dp.absolute_distance(T="i64")
    for distance, steps in ((0, 0), (1, 1), (3, 1), (4, 2), (9, 3)):
        spent = group_privacy(0.7, delta, steps)
        assert made.map(distance) == (spent[0] if delta == 0.0 else spent)
    together = dp.c.make_composition([made, made])
    assert len(together(5)) == 2
    assert made(2**63 - 1) > 2**62
    twice = dpopt.Noise(1, 4.0, 1e-3, "absolute", 2)
    with pytest.raises(ParameterError, match="releases is 2"):
        make_noise(design_of(twice, dpopt.design(dpopt.Noise(1, 1.0, 1e-6)).table))
    with pytest.raises(ParameterError, match="must be the design of a Noise"):
        make_noise(THIRD)


@pytest.mark.parametrize("delta", [0.0, 0.003])
def test_path_is_group_privacy_in_the_absolute_distance(delta: float) -> None:
    design = path_kernel(0.7, delta)
    made = make_kernel(design)
    assert made.input_metric == dp.absolute_distance(T=int)
    assert made.map(1) == (0.7 if delta == 0.0 else (0.7, delta))
    assert made.map(9) == made.map(3)
    for steps in (1, 2, 3):
        spent = made.map(steps)
        epsilon, grown = spent if isinstance(spent, tuple) else (spent, 0.0)
        # The kernel itself is the judge of what inputs `steps` apart may spend.
        pairs = [(x, y) for x, y in product(range(4), repeat=2) if abs(x - y) == steps]
        certify(rows_of(design), Guarantee(epsilon, grown), pairs)


def test_other_neighbours_are_refused() -> None:
    ring = optimal(1 - np.eye(4), epsilon=1.0, graph=[(0, 1), (1, 2), (2, 3), (3, 0)])
    words = optimal(1 - np.eye(6), epsilon=1.0, graph="hamming", shape=(2, 3))
    for design in (ring, words, optimal("absolute", epsilon=1.0, graph="grid", shape=(3, 3))):
        with pytest.raises(ParameterError, match="neither all pairs of inputs nor a path"):
            make_kernel(design)
    with pytest.raises(ParameterError, match="must be the design of a kernel"):
        make_kernel(np.eye(2))  # type: ignore[arg-type]


def test_public_prior_takes_labels() -> None:
    prior = public_prior.public_distribution([0.5, 0.3, 0.2], ["x", "y", "z"])
    local = dpopt.design(dpopt.PublicPrior(prior, 0.8))
    made = make_kernel(local)
    assert made.map(1) == 0.8
    assert made.map(2) == 0.8
    assert made.input_domain == dp.atom_domain(T=str)
    # What is no symbol counts as the first one: an error would be an output of its own.
    for symbol, row in (("y", local.kernel[1]), ("private value", local.kernel[0])):
        drawn = [made(symbol) for _ in range(1000)]
        assert follow(drawn, dict(zip("xyz", row, strict=True)))
    together = dp.c.make_composition(
        [made, make_kernel(dpopt.design(dpopt.PublicPrior(prior, 0.5, objective="leximin")))]
    )
    assert set(together("z")) <= set("xyz")
    assert together.map(1) == pytest.approx(1.3, rel=1e-14)
    mixed = public_prior.public_distribution([0.5, 0.3, 0.2], ["x", 1, 2])
    with pytest.raises(ParameterError, match="categories must be all strings"):
        make_kernel(dpopt.design(dpopt.PublicPrior(mixed, 0.8)))
    integers = public_prior.public_distribution([0.5, 0.3, 0.2], [30, 10, 20])
    assert make_kernel(dpopt.design(dpopt.PublicPrior(integers, 0.8)))(10) in (10, 20, 30)
    numbered = make_kernel(dpopt.design(dpopt.PublicPrior([0.5, 0.3, 0.2], 0.8)))
    assert numbered.input_domain == dp.atom_domain(bounds=(0, 2))
    assert numbered(1) in range(3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dpopt.RevealOrObscure, dpopt.SmoothFloor, dpopt.BestSampler])
def test_samplers_take_records_under_change_one(kind: Any) -> None:
    sampler = dpopt.design(kind(6, 3, 0.9))
    made = make_sampler(sampler)
    assert made.input_metric == dp.change_one_distance()
    assert made.input_domain.member([0, 1, 2, 2, 0, 0])
    assert not made.input_domain.member([0, 1, 2, 2, 0])
    assert not made.input_domain.member([0, 1, 2, 2, 0, 3])
    assert made.map(1) == 0.9
    assert made.map(4) == pytest.approx(3.6, rel=1e-15)
    assert made.map(7) == made.map(6)
    pmf = sampler.output_distribution([3, 1, 2])
    assert follow([made([0, 1, 2, 2, 0, 0]) for _ in range(800)], pmf)
    named = make_sampler(sampler, ["a", "b", "c"])
    assert named(list("abccaa")) in {"a", "b", "c"}
    assert named.input_domain.member(list("abccaa"))
    assert not named.input_domain.member(list("abcca"))
    floats = [0.5, 1.5, 2.5]
    assert make_sampler(sampler, floats)([0.5] * 4 + [math.nan, 9.0]) in floats


def test_samplers_that_are_not_certified_are_refused() -> None:
    with pytest.raises(NotPrivateError, match="conference"):
        make_sampler(dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1, "conference")))
    with pytest.raises(ParameterError, match="sampler is RooSetting"):
        make_sampler(roo.RooSetting(20, 3, 0.1))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="labels has 2 categories; the sampler is for 3"):
        make_sampler(dpopt.design(dpopt.RevealOrObscure(6, 3, 0.9)), ["a", "b"])


@pytest.mark.parametrize(("given", "taken"), [(-5, 0), (7, 3), (10**6, 3), (2, 2)])
def test_an_input_outside_is_moved_into_the_domain(given: Any, taken: int) -> None:
    loss = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    design = optimal(loss, epsilon=100.0, graph="path")
    made = make_kernel(design)
    assert {made(given) for _ in range(20)} == {taken}


@pytest.mark.slow
def test_records_outside_the_alphabet_are_its_first_symbol() -> None:
    sampler = dpopt.design(dpopt.RevealOrObscure(4, 3, 400.0))
    made = make_sampler(sampler, ["a", "b", "c"])
    pmf = dict(zip("abc", sampler.output_distribution([2, 2, 0]), strict=True))
    assert follow([made(["b", "zebra", "", "b"]) for _ in range(1000)], pmf)
    numbered = make_sampler(sampler)
    assert {numbered([7, -1, 3, 9]) for _ in range(50)} == {0}
    with pytest.raises(dp.OpenDPException, match="counts sum to 3"):
        numbered([0, 0, 0])


@pytest.mark.sample(6)
@pytest.mark.parametrize("epsilon", [0.0, 1e-30, 1e-9, 0.3, 2.5, 40.0])
@pytest.mark.parametrize("delta", [0.0, 1e-12, 0.01])
def test_group_privacy_bounds_the_sum_closely(epsilon: float, delta: float) -> None:
    assert group_privacy(epsilon, delta, 0) == (0.0, 0.0)
    for steps in (1, 2, 3, 17):
        total, grown = group_privacy(epsilon, delta, steps)
        assert Fraction(total) >= steps * Fraction(epsilon)
        assert total == pytest.approx(steps * epsilon, rel=1e-15)
        low = Fraction(delta) * sum(exp_lower(i * Fraction(epsilon), 200) for i in range(steps))
        high = Fraction(delta) * sum(exp_upper(i * Fraction(epsilon), 200) for i in range(steps))
        assert Fraction(grown) >= min(low, Fraction(1))
        assert grown <= float(min(high, Fraction(1))) * (1 + 1e-15)
    assert group_privacy(50.0, 1e-9, 4_000_000_000) == (2e11, 1.0)
