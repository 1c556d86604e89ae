"""Priors beyond independent uniform ones, and what they weigh, by integration and samples."""

from collections.abc import Callable
from fractions import Fraction as F
from itertools import pairwise
from math import comb, sqrt
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import hyp1f1
from scipy.stats import beta as beta_pmf
from scipy.stats import binom

import dpopt
from dpopt import ParameterError, majority
from dpopt.majority import (
    BetaPrior,
    CommonPrior,
    PointPrior,
    Prior,
    SamplePrior,
    UniformPrior,
    expected_error_weights,
    parse_prior,
    surrogate_weights,
)
from dpopt.majority.objectives import expected_error
from dpopt.majority.priors import RecordedPrior
from dpopt.prob import poisson_binomial_pmf
from tests.majority.brute import fold
from tests.oracles import poisson_binomial

Density = Callable[[float], float]


def gamma_of(k: int, seed: int) -> np.ndarray:
    upper = np.random.default_rng(seed).random((k + 1) // 2)
    return np.concatenate([upper[::-1], upper])


def inverted(k: int, a: float, b: float) -> np.ndarray:
    """1/2 fold of E[sign(sum p - K/2); L = l], from Kummer's function and Gil-Pelaez."""

    def product(t: float, ones: int) -> complex:
        turn = np.exp(-0.5j * t)
        one = turn * a / (a + b) * hyp1f1(a + 1, a + b + 1, 1j * t)
        zero = turn * b / (a + b) * hyp1f1(a, a + b + 1, 1j * t)
        return complex(one**ones * zero ** (k - ones))

    def integrand(t: float, ones: int) -> float:
        return product(t, ones).imag / t

    pmf = []
    for ones in range(k + 1):
        pieces = [(1e-12, 5.0), (5.0, 20.0), (20.0, 60.0), (60.0, 200.0)]
        value = sum(
            quad(integrand, *ends, args=(ones,), epsabs=1e-13, limit=400)[0] for ends in pieces
        )
        pmf.append(comb(k, ones) * value * 2 / np.pi)
    return 0.5 * fold(np.array(pmf))


@pytest.mark.parametrize(
    ("k", "a", "b"), [(7, 2.0, 2.0), (7, 3.0, 2.0), (11, 2.0, 2.0), (11, 1.5, 4.0), (11, 1.0, 1.0)]
)
def test_weights_of_a_beta_prior_by_inversion(k: int, a: float, b: float) -> None:
    weights = expected_error_weights(k, BetaPrior(a, b))
    assert weights.method == "quadrature"
    assert weights.error < 1e-15
    np.testing.assert_allclose(weights.values, inverted(k, a, b), atol=2e-10)


@pytest.mark.slow_after(6)
@pytest.mark.parametrize(
    ("k", "prior"),
    [
        (3, BetaPrior(0.5, 0.5)),
        (5, BetaPrior(0.5, 2.0)),
        (5, CommonPrior(UniformPrior(((0.2, 0.9),)))),
        (5, CommonPrior(BetaPrior(3.0, 2.0))),
        (5, PointPrior((0.1, 0.6, 0.8, 0.9, 0.5))),
        (5, SamplePrior(np.random.default_rng(0).random((400, 5)))),
        *((k, BetaPrior(a, b)) for k, a, b in ((7, 2.0, 5.0), (11, 0.3, 2.0), (11, 20.0, 18.0))),
        (1, BetaPrior(2.0, 5.0)),
    ],
    ids=str,
)
def test_weights_are_the_mean_over_draws(k: int, prior: Prior) -> None:
    rng = np.random.default_rng(k)
    size = 200_000, k
    p = sampled = prior.sample(size, rng)
    if isinstance(prior, BetaPrior):
        p = rng.beta(prior.a, prior.b, size)
    assert sampled.shape == size
    assert sampled.min() >= 0.0
    assert sampled.max() <= 1.0
    margins, signs = 0.5 * fold(poisson_binomial_pmf(p)), np.sign(p.sum(axis=1) - k / 2)[:, None]
    for weights, drawn in (
        (surrogate_weights(k, prior), margins),
        (expected_error_weights(k, prior), signs * margins),
    ):
        spread = drawn.std(axis=0) / sqrt(len(drawn)) + 1e-12
        own = weights.error if "samples" in weights.method else 0.0
        assert np.all(np.abs(drawn.mean(axis=0) - weights.values) < 5 * (spread + own))


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (0.5, 0.7), (1.0, 5.0), (40.0, 2.0)])
def test_moments_and_transform_of_a_beta_prior(a: float, b: float) -> None:
    prior = BetaPrior(a, b)
    pmf = beta_pmf(a, b)
    distance = pmf.expect(lambda p: 0.5 - p, ub=0.5) + pmf.expect(lambda p: p - 0.5, lb=0.5)
    assert prior.mean == pytest.approx(pmf.mean())
    assert expected_error_weights(1, prior).values == pytest.approx([distance], abs=1e-7)
    t = np.array([0.3, 2.0, 11.0, 45.0])
    one, zero = prior.tilted(t)
    for values, first, mean in ((one, a + 1, a / (a + b)), (zero, a, b / (a + b))):
        # Of SciPy's and mpmath's Kummer functions, only mpmath's holds for all of these.
        known = [mean * complex(mpmath.hyp1f1(first, a + b + 1, 1j * x)) for x in t]
        np.testing.assert_allclose(values, np.exp(-0.5j * t) * known, atol=1e-12)
    if np.isfinite(prior.variation):
        far = np.linspace(0.5, 500, 400)
        bound = prior.variation / far * (1 + 1e-9) + 1e-12
        for part in prior.tilted(far):
            assert np.all(np.abs(part) <= bound)


BASES: list[tuple[UniformPrior | BetaPrior, Density]] = [
    (UniformPrior(), lambda _: 1.0),
    (UniformPrior(((0.1, 0.4), (0.7, 0.9))), lambda p: 2.0 * (p <= 0.4 or p >= 0.7)),
    (BetaPrior(2.0, 3.0), lambda p: float(beta_pmf.pdf(p, 2.0, 3.0))),
    (BetaPrior(5.0, 1.0), lambda p: float(beta_pmf.pdf(p, 5.0, 1.0))),
]


def integral(f: Density, base: UniformPrior | BetaPrior) -> float:
    intervals = base.intervals if isinstance(base, UniformPrior) else ((0.0, 1.0),)
    cuts = sorted({0.5, *(end for pair in intervals for end in pair)})
    inside = [
        (a, b) for a, b in pairwise(cuts) if any(low <= a and b <= high for low, high in intervals)
    ]
    return sum(quad(f, a, b, epsabs=1e-14, epsrel=1e-13)[0] for a, b in inside)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 11, 35])
@pytest.mark.parametrize(("base", "density"), BASES, ids=[str(base) for base, _ in BASES])
def test_a_common_p_by_integration(
    k: int, base: UniformPrior | BetaPrior, density: Density
) -> None:
    prior = CommonPrior(base)

    def margin(p: float, ones: int) -> float:
        return 0.5 * float(binom.pmf(ones, k, p) - binom.pmf(k - ones, k, p))

    upper = range((k + 1) // 2, k + 1)
    plain = [integral(lambda p, o=o: density(p) * margin(p, o), base) for o in upper]
    signed = [
        integral(lambda p, o=o: density(p) * np.sign(p - 0.5) * margin(p, o), base) for o in upper
    ]
    np.testing.assert_allclose(surrogate_weights(k, prior).values, plain, atol=1e-11)
    np.testing.assert_allclose(expected_error_weights(k, prior).values, signed, atol=1e-11)
    gamma = gamma_of(k, 1)
    half = gamma[(k + 1) // 2 :]
    error = integral(
        lambda p: (
            density(p) * abs(sum(margin(p, o) * (1 - g) for o, g in zip(upper, half, strict=True)))
        ),
        base,
    )
    found = expected_error(gamma, prior)
    assert found.value == pytest.approx(error, abs=1e-11)
    assert (found.standard_error, found.method) == (0.0, "closed form")


@pytest.mark.parametrize("k", [1, 3, 11, 101])
def test_a_common_uniform_p_has_the_closed_form_of_a_binomial_cdf(k: int) -> None:
    """c_l = (F(l) - F(K - l)) / (K + 1) with F the cdf of Binomial(K + 1, 1/2), in fractions."""
    cdf = [F(sum(comb(k + 1, i) for i in range(ones + 1)), 2 ** (k + 1)) for ones in range(k + 1)]
    known = [float((cdf[o] - cdf[k - o]) / (k + 1)) for o in range((k + 1) // 2, k + 1)]
    weights = expected_error_weights(k, CommonPrior(UniformPrior()))
    np.testing.assert_allclose(weights.values, known, rtol=1e-12)
    np.testing.assert_allclose(
        expected_error_weights(k, CommonPrior(BetaPrior(1, 1))).values, known, rtol=1e-11
    )


@pytest.mark.parametrize("point", [(0.2, 0.5, 0.75), (0.9,), (0.1, 0.1, 0.1), (1.0, 1.0, 0.0)])
def test_known_points_are_exact(point: tuple[float, ...]) -> None:
    prior = PointPrior(point)
    p = [F(x) for x in (point if len(point) == 3 else point * 3)]
    masses = poisson_binomial(tuple(p))
    margins = [(masses[ones] - masses[3 - ones]) / 2 for ones in (2, 3)]
    sign = 1 if sum(p) >= F(3, 2) else -1
    known = np.array([float(m) for m in margins])
    np.testing.assert_allclose(surrogate_weights(3, prior).values, known, atol=1e-15)
    weights = expected_error_weights(3, prior)
    np.testing.assert_allclose(weights.values, sign * known, atol=1e-15)
    assert (weights.error, weights.method) == (0.0, "closed form")
    gamma = np.array([0.75, 0.25, 0.25, 0.75])
    error = abs(sum(m * (1 - F(g)) for m, g in zip(margins, (0.25, 0.75), strict=True)))
    found = expected_error(gamma, prior)
    assert found.value == pytest.approx(float(error), abs=1e-15)
    assert found.standard_error == 0.0


def test_samples_are_averaged() -> None:
    rows = np.random.default_rng(0).random((50, 5))
    prior = SamplePrior(rows)
    margins = 0.5 * fold(poisson_binomial_pmf(rows))
    signs = np.where(rows.sum(axis=1) >= 2.5, 1, -1)[:, None]
    np.testing.assert_allclose(surrogate_weights(5, prior).values, margins.mean(axis=0))
    weights = expected_error_weights(5, prior)
    np.testing.assert_allclose(weights.values, (signs * margins).mean(axis=0))
    assert weights.error == pytest.approx((signs * margins).std(axis=0, ddof=1).max() / sqrt(50))
    gamma = gamma_of(5, 2)
    found = expected_error(gamma, prior)
    errors = np.abs(margins @ (1 - gamma[3:]))
    assert found.value == pytest.approx(errors.mean())
    assert found.standard_error == pytest.approx(errors.std(ddof=1) / sqrt(50))


@pytest.mark.parametrize(
    "prior",
    [UniformPrior(), UniformPrior(((0.5, 1.0),)), UniformPrior(((0.1, 0.6),)), BetaPrior(2.0, 3.0)],
    ids=str,
)
def test_the_linear_error_is_a_lower_bound_and_exact_on_one_side(
    prior: UniformPrior | BetaPrior,
) -> None:
    k, gamma = 7, gamma_of(7, 5)
    found = expected_error(gamma, prior)
    points = prior.sample((200_000, k), np.random.default_rng(6))
    sampled = expected_error(gamma, SamplePrior(points))
    mean, spread = sampled.value, sampled.standard_error
    assert found.standard_error == 0.0
    assert found.value <= mean + 5 * spread
    if prior.reach[0] >= 0.5:
        assert abs(found.value - mean) <= 5 * spread
    # The sign differs on a small set of p only.
    assert found.value >= 0.97 * mean


unit = st.floats(0, 1)
ends = st.lists(unit, min_size=2, max_size=8, unique=True).map(sorted)
uniforms = ends.map(
    lambda line: UniformPrior(tuple(zip(line[::2], line[1::2], strict=False)))  # odd ends dropped
)
shapes = st.floats(1e-300, 1e4)
betas = st.builds(BetaPrior, shapes, shapes)
points = st.lists(unit, min_size=1, max_size=9).map(lambda p: PointPrior(tuple(p)))


@given(st.one_of(uniforms, betas, points, st.builds(CommonPrior, st.one_of(uniforms, betas))))
def test_a_prior_s_name_is_read_back(prior: UniformPrior | BetaPrior | CommonPrior) -> None:
    assert parse_prior(str(prior)) == prior


MALFORMED = """
: uniform uniform: uniform:0 uniform:0,1,2 uniform:0;1 uniform:1,0 uniform:0,2 uniform:-1,1
uniform:0.5,0.5 uniform:a,b uniform:0,0.5,0.4,1 uniform:nan,1 uniform:0,inf UNIFORM:0,1
beta beta: beta:1 beta:1,2,3 beta:a,b beta:0,1 beta:-1,1 beta:nan,1 beta:1,inf beta:1e5,1
point point: point:a point:2 point:-0.1 point:nan point:0.5, common- common-uniform
common-uniform:1,0 common-beta:1 common-point:0.5 common-common-uniform:0,1 gauss:1
samples:10x3:0123456789abcde
"""


def test_malformed_names_are_refused() -> None:
    for text in ["", *MALFORMED.split()]:
        with pytest.raises(ParameterError, match="prior"):
            parse_prior(text)
        with pytest.raises(ParameterError, match="prior"):
            dpopt.design(dpopt.Majority(3, 0.5, 1, prior=text))


def test_the_name_of_samples_is_read_but_says_nothing_of_them() -> None:
    name = "samples:10x3:0123456789abcdef"
    with pytest.raises(ParameterError, match="its samples were not saved"):
        parse_prior(name).sample((1, 3), np.random.default_rng(0))
    for objective in ("mean", "worst-case"):
        with pytest.raises(ParameterError, match="its samples were not saved"):
            dpopt.design(dpopt.Majority(3, 0.5, 1, prior=name, objective=objective))


def test_samples_are_read_only_and_named_by_their_digest() -> None:
    rows = np.random.default_rng(0).random((4, 3))
    prior, same = SamplePrior(rows), SamplePrior(rows.copy())
    rows[0, 0] = 0.5
    with pytest.raises(ValueError, match="read-only"):
        prior.samples[0, 0] = 0.1
    assert str(prior) == str(same) != str(SamplePrior(rows))
    assert str(prior).startswith("samples:4x3:")


PRIORS = [
    UniformPrior(((0.0, 0.3), (0.7, 1.0))),
    BetaPrior(0.5, 2.5),
    BetaPrior(2.0, 3.0),
    CommonPrior(UniformPrior()),
    CommonPrior(BetaPrior(3.0, 0.5)),
    PointPrior((0.1, 0.2, 0.9, 0.4, 0.5)),
    PointPrior((0.7,)),
    SamplePrior(np.random.default_rng(0).random((30, 5))),
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("objective", ["mean", "surrogate", "worst-case"])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_saved_designs_keep_their_prior(prior: Prior, objective: Any, tmp_path: Path) -> None:
    design = dpopt.design(dpopt.Majority(5, 0.5, 1.5, prior=prior, objective=objective))
    assert design.private
    path = tmp_path / "gamma.json"
    design.save(path)
    loaded = dpopt.load(path)
    assert str(loaded.setting.prior) == str(prior)
    assert loaded.table == design.table
    assert loaded.setting.objective == objective
    assert loaded.bound == design.bound
    if isinstance(prior, SamplePrior):
        # The samples are not in the file, and what follows from them alone is not known.
        assert isinstance(loaded.setting.prior, RecordedPrior)
        assert np.isnan(loaded.expected_error)
        assert loaded.to_dict()["expected_error"] is None
        assert np.isnan(loaded.value) == (objective != "surrogate")
        with pytest.raises(ParameterError, match="samples were not saved"):
            majority.expected_error(loaded.gamma, loaded.setting.prior)
    else:
        assert loaded.setting.prior == prior
        assert loaded.value == design.value
        assert loaded.expected_error == pytest.approx(design.expected_error, abs=1e-15)
        assert loaded.expected_error_standard_error == design.expected_error_standard_error


def test_narrow_intervals_keep_their_weights() -> None:
    # At p = 1/2, C(3, 2) / 8 = C(3, 3) / 8 * 3: the weights' slope in p, from the binomial.
    width = 1e-8
    prior = CommonPrior(UniformPrior(((0.5, 0.5 + width),)))
    values = majority.expected_error_weights(3, prior).values
    slope = np.array([1.5, 1.5]) / 4  # d/dp of 1/2 (alpha_l - alpha_{3-l}) at 1/2, over 2
    np.testing.assert_allclose(values, slope * width, rtol=1e-6)
    assert dpopt.design(dpopt.Majority(3, 0.1, 1, prior=prior)).expected_error > 0


@pytest.mark.parametrize("shape", [99.0, 101.0, 600.0, 1e4])
def test_peaked_beta_priors(shape: float) -> None:
    weights = majority.expected_error_weights(11, BetaPrior(shape, shape))
    assert np.all(np.isfinite(weights.values))
    # With (alpha_l - alpha_{K-l}) / 2 linear in sum p - K/2 next to p = 1/2: a normal's mean.
    deviation = sqrt(11 / (4 * (2 * shape + 1)))
    chance = F(sum((2 * ones - 11) * comb(11, ones) for ones in range(6, 12)), 11 * 2**10)
    expected = float(chance) * sqrt(2 / np.pi) * deviation
    assert weights.values.sum() == pytest.approx(expected, rel=0.02)


def test_surrogate_weights_are_a_binomial_s() -> None:
    weights = surrogate_weights(3).values
    # Binomial(3, 3/4): 1/64, 9/64, 27/64, 27/64.
    np.testing.assert_allclose(weights, [float(F(18, 128)), float(F(26, 128))], rtol=1e-14)


def test_samples_stay_inside_the_intervals() -> None:
    prior = UniformPrior(((0.0, 0.3), (0.7, 1.0)))
    p = prior.sample((10_000,), np.random.default_rng(0))
    assert np.all((p <= 0.3) | (p >= 0.7))
    assert abs(np.mean(p < 0.5) - 0.5) < 0.03


@pytest.mark.parametrize("prior", ["point:0.1,0.1,1", "point:0.1,0.1,0.1,1,1"])
def test_where_the_coin_helps_the_optimum_takes_it(prior: str) -> None:
    """Coefficients of gamma may be negative: then gamma = 0 is best there."""
    voters = prior.count(",") + 1
    design = dpopt.design(dpopt.Majority(voters, 0.5, 1.5, prior=prior))
    assert min(expected_error_weights(voters, prior).values) < 0
    assert design.value == pytest.approx(design.bound, rel=1e-9)
