"""The default belief and the least regret, by weights in rationals and programs written out."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction as F
from itertools import combinations_with_replacement
from math import comb, exp, factorial
from pathlib import Path

import numpy as np
import pytest
from flint import fmpq, fmpq_poly
from scipy.optimize import linprog

import dpopt
from dpopt import Majority, ParameterError, majority
from dpopt.majority import SamplePrior, expected_error_weights
from dpopt.majority.priors import RecordedPrior
from dpopt.prob import poisson_binomial_pmf
from tests.majority.brute import listed_rows

INDEPENDENT, COMMON, CLEAR = "uniform:0,1", "common-uniform:0,1", "common-uniform:0.8,1"
HEDGED = (INDEPENDENT, COMMON, CLEAR)


def folded(pmf: list[F]) -> np.ndarray:
    """(distribution(l) - distribution(K - l)) / 2 above the middle."""
    k = len(pmf) - 1
    return np.array([float((pmf[ones] - pmf[k - ones]) / 2) for ones in range(k // 2 + 1, k + 1)])


def common_weights(k: int, low: F) -> np.ndarray:
    """Of one p uniform on [low, 1]: integrals of polynomials, in rationals."""
    p, half = fmpq_poly([0, 1]), F(1, 2)

    def at(polynomial: fmpq_poly, x: F) -> F:
        value = polynomial(fmpq(x.numerator, x.denominator))
        return F(int(value.p), int(value.q))

    pmf = []
    for ones in range(k + 1):
        primitive = (comb(k, ones) * p**ones * (1 - p) ** (k - ones)).integral()
        below = at(primitive, half) - at(primitive, min(low, half))
        pmf.append(at(primitive, F(1)) - at(primitive, max(low, half)) - below)
    return folded(pmf) / float(1 - low)


def times(one: dict[tuple[int, int], int], other: dict[tuple[int, int], int]) -> dict:
    product: Counter[tuple[int, int]] = Counter()
    for (a, b), x in one.items():
        for (c, d), y in other.items():
            product[a + c, b + d] += x * y
    return product


def independent_weights(k: int) -> np.ndarray:
    """Of independent p_i uniform on [0, 1]: the transform of their sum, turned back in rationals.

    Given its vote, p has density 2 p or 2 (1 - p), of which s^2 times the Laplace transform is
    2 (1 - e - e s) or 2 (s - 1 + e), e = exp(-s); e^j / s^n belongs to (x - j)_+^(n-1) / (n-1)!.
    """
    pmf = []
    for ones in range(k + 1):
        terms = {(0, 0): 1}
        for _ in range(ones):
            terms = times(terms, {(0, 0): 1, (1, 0): -1, (1, 1): -1})
        for _ in range(k - ones):
            terms = times(terms, {(0, 1): 1, (0, 0): -1, (1, 0): 1})
        # Pr[sum p <= k / 2, votes] / C(k, ones), the 2^k of the densities left out.
        below = sum(
            (
                c * (F(k, 2) - j) ** (2 * k - i) / factorial(2 * k - i)
                for (j, i), c in terms.items()
                if 2 * j < k
            ),
            F(0),
        )
        pmf.append(comb(k, ones) * (F(1, 2**k) - 2 * below))
    return folded(pmf)


def paper_rows(k: int, epsilon: float, m: float) -> np.ndarray:
    """The paper's whole set for Delta = 0, (K + 3 choose 3) multisets; right hand sides are 1."""
    r, target = exp(epsilon), exp(m * epsilon)
    b, c = r / (1 + r), 1 / (1 + r)
    corners = [(0.0, 0.0), (1.0, 1.0), (b, c), (c, b)]
    pairs = np.array(list(combinations_with_replacement(corners, k)))
    here, there = (poisson_binomial_pmf(pairs[:, :, side]) for side in (0, 1))
    f = here - target * there
    middle = (k + 1) // 2
    return (f[:, middle:] - f[:, :middle][:, ::-1]) / (target - 1)


def best_of(rows: np.ndarray, linear: np.ndarray) -> np.ndarray:
    found = linprog(-linear, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(0, 1), method="highs")
    return np.asarray(found.x)


def exact_weights(k: int) -> dict[str, np.ndarray]:
    """The weights of all three beliefs."""
    clear = common_weights(k, F(4, 5))
    return {INDEPENDENT: independent_weights(k), COMMON: common_weights(k, F(0)), CLEAR: clear}


EXACT = exact_weights(11)


@pytest.mark.parametrize("name", HEDGED)
@pytest.mark.parametrize("k", [3, 11])
def test_weights_are_those_in_rationals(k: int, name: str) -> None:
    weights = expected_error_weights(k, majority.parse_prior(name))
    np.testing.assert_allclose(weights.values, exact_weights(k)[name], atol=1e-14)
    assert weights.error < 1e-15


# Equation 3: Binomial(11, 3/4).
SURROGATE = folded([F(comb(11, n) * 3**n, 4**11) for n in range(12)])
# Coefficients, the setting, and expected errors under independent p_i, one p, one p above 0.8.
NINE = {
    "one p, the default": (EXACT[COMMON], {}, (0.0379, 0.0256, 0.0085)),
    "independent p_i": (EXACT[INDEPENDENT], {"prior": INDEPENDENT}, (0.0155, 0.1633, 0.3020)),
    "the paper's objective": (SURROGATE, {"objective": "surrogate"}, (0.0377, 0.0264, 0.0105)),
}


@pytest.mark.parametrize("name", NINE)
def test_what_each_belief_costs_under_the_others(name: str) -> None:
    """K = 11, epsilon = 0.1, m = 3: independent p_i cost most where voters agree."""
    coefficients, asked, known = NINE[name]
    listed = best_of(paper_rows(11, 0.1, 3), coefficients)
    errors = [EXACT[pmf] @ (1 - listed) for pmf in HEDGED]
    assert np.round(errors, 4) == pytest.approx(known, abs=1e-9)
    ours = dpopt.design(dpopt.Majority(11, 0.1, 3, **asked))
    np.testing.assert_allclose(ours.gamma[6:], listed, atol=1e-7)


def test_the_errors_of_these_gammas_over_drawn_p() -> None:
    """|error| itself, for p drawn; the linear error is a lower bound that misses little."""
    rng = np.random.default_rng(11)
    p = rng.random((100_000, 11))
    for prior, known in ((COMMON, 0.0379), (INDEPENDENT, 0.0155)):
        gamma = dpopt.design(dpopt.Majority(11, 0.1, 3, prior=prior)).gamma
        chance = 0.5 + 0.5 * np.where(np.arange(12) > 5.5, gamma, -gamma)
        errors = np.abs(poisson_binomial_pmf(p) @ (chance - (np.arange(12) > 5.5)))
        assert known <= errors.mean() + 5 * errors.std() / 100 <= 1.1 * known


def listed_regret(
    rows: np.ndarray, linear: list[np.ndarray]
) -> tuple[float, list[float], list[float]]:
    """The least largest regret, best errors and coins, from all rows written out."""
    middle = rows.shape[1]
    coins = [float(c.sum()) for c in linear]
    bests = [float(c.sum() - c @ best_of(rows, c)) for c in linear]
    # Variables gamma and t: sum c (1 - gamma) <= best + t coin.
    below = np.array([[*-c, -coin] for c, coin in zip(linear, coins, strict=True)])
    matrix = np.vstack([np.column_stack([rows, np.zeros(len(rows))]), below])
    right = [*np.ones(len(rows)), *(best - coin for best, coin in zip(bests, coins, strict=True))]
    cost = [0.0] * middle + [1.0]
    found = linprog(cost, A_ub=matrix, b_ub=right, bounds=(0, 1), method="highs")
    return float(found.fun), bests, coins


def test_eleven_voters_in_a_program_written_out() -> None:
    design = dpopt.design(dpopt.Majority(11, 0.1, 3, objective="least-regret"))
    rows = paper_rows(11, 0.1, 3)
    least, bests, coins = listed_regret(rows, [EXACT[name] for name in HEDGED])
    assert least == pytest.approx(0.0365707, abs=1e-6)
    assert design.value == pytest.approx(-least, abs=1e-8)
    assert [known.prior for known in design.regrets] == list(HEDGED)
    assert [known.best for known in design.regrets] == pytest.approx(bests, abs=1e-9)
    assert [known.coin for known in design.regrets] == pytest.approx(coins, abs=1e-12)
    for known in design.regrets:
        assert known.error == pytest.approx(EXACT[known.prior] @ (1 - design.gamma[6:]), abs=1e-12)
        assert known.regret == pytest.approx((known.error - known.best) / known.coin, abs=1e-12)
    assert max(known.regret for known in design.regrets) == -design.value
    assert design.private


SETTINGS = {
    "3": Majority(3, 0.5, 1.0),
    "5": Majority(5, 0.9, 1.3),
    "7": Majority(7, 0.2, 2.0),
    "5 Delta": Majority(5, 0.3, 1.4, 0.01, 0.02),
    "7 Delta": Majority(7, 0.4, 0.8, 1e-3, 3e-3),
}
LISTS = {
    "three": HEDGED,
    "two": (INDEPENDENT, CLEAR),
    "odd": ("beta:2,5", "uniform:0.5,1", "common-beta:0.5,0.5", "point:0.7"),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("backend", ["highs", "cvxpy", "cvxpy:CLARABEL"])
@pytest.mark.parametrize("names", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_the_optimum_is_that_of_all_rows_written_out(
    setting: Majority, names: tuple[str, ...], backend: str
) -> None:
    rows = listed_rows(setting)
    priors = [majority.parse_prior(name) for name in names]
    linear = [expected_error_weights(setting.voters, prior).values for prior in priors]
    least, bests, _ = listed_regret(rows, linear)
    design = dpopt.design(
        replace(setting, objective="least-regret", priors=priors), backend=backend
    )
    near = 1e-6 if backend.endswith("CLARABEL") else 1e-8
    assert design.value == pytest.approx(-least, abs=near)
    assert design.bound is not None
    assert design.bound >= -least - 1e-8
    assert design.gap is not None
    assert -1e-9 <= design.gap <= near
    assert [known.best for known in design.regrets] == pytest.approx(bests, abs=1e-8)
    # A best error is a bound: no gamma is below it.
    assert all(known.error >= known.best - 1e-12 for known in design.regrets)
    assert design.private


@pytest.mark.parametrize("name", ["uniform:0,1", "common-uniform:0,1", "beta:2,3", "point:0.7"])
def test_one_prior_twice_has_no_regret(name: str) -> None:
    setting = Majority(7, 0.3, 1.5)
    design = dpopt.design(replace(setting, objective="least-regret", priors=(name, name)))
    alone = dpopt.design(replace(setting, prior=name))
    assert design.value == pytest.approx(0.0, abs=1e-8)
    assert design.regrets[0].error == pytest.approx(alone.expected_error, abs=1e-9)


def test_samples_are_a_prior_among_others(tmp_path: Path) -> None:
    rows = np.random.default_rng(3).beta(4.0, 2.0, (200, 5))
    design = dpopt.design(
        dpopt.Majority(5, 0.5, 1.5, objective="least-regret", priors=(SamplePrior(rows), COMMON))
    )
    assert design.private
    assert 0.0 < -design.value < 0.1
    path = tmp_path / "gamma.json"
    design.save(path)
    again = dpopt.load(path)
    assert isinstance(again.setting.priors[0], RecordedPrior)
    assert again.table == design.table
    assert again.regrets == ()
    assert np.isnan(again.value)
    assert again.to_dict()["value"] is None
    with pytest.raises(ParameterError, match="samples were not saved"):
        dpopt.design(again.setting)
