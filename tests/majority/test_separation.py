"""The separation oracle, against the paper's set of corners and every multiset listed."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import Majority, majority, solve
from dpopt.majority import CornerOracle, reduced_size
from dpopt.majority.program import corner_rows
from experiments.majority.full_set import check_full
from tests.majority.brute import reduced_multisets


def price(setting: Majority, upper: np.ndarray) -> float:
    """Excess over the reduced set, in the units of the whole set."""
    return 0.5 * setting.budget * CornerOracle(setting).price(upper)[0]


def full_excess(setting: Majority, upper: np.ndarray) -> float:
    return check_full(setting, np.concatenate([upper[::-1], upper])).excess


@st.composite
def instances(
    draw: st.DrawFn, sizes: list[int], shifts: list[float], most: float
) -> tuple[Majority, np.ndarray]:
    k, epsilon = draw(st.sampled_from(sizes)), draw(st.floats(0.01, most))
    allowance, shift = draw(st.floats(0.05, 1.0)) * k, draw(st.sampled_from(shifts))
    delta = min(0.9, shift + draw(st.sampled_from([0.0, 1e-4, 0.1])))
    values = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0]))
    upper = np.array(draw(st.lists(values, min_size=(k + 1) // 2, max_size=(k + 1) // 2)))
    share = draw(st.one_of(st.just(1.0), st.floats(0, 1)))
    return Majority(k, epsilon, allowance, shift, delta), upper * share


@pytest.mark.slow
@given(instances([1, 3, 5, 7, 9], [0.0, 0.0, 1e-5, 1e-2, 0.3], 3.0))
def test_the_reduced_set_decides_like_the_paper_s_set(
    instance: tuple[Majority, np.ndarray],
) -> None:
    setting, upper = instance
    bound = 2 * check_full(setting, np.zeros(setting.voters + 1)).rounding
    assert price(setting, upper) == pytest.approx(full_excess(setting, upper), abs=bound)


@given(instances([1, 3, 5, 7, 11, 15, 21], [1e-6, 1e-5, 1e-3, 0.02, 0.3], 2.0))
def test_broken_rows_hold_the_worst_that_is_priced(instance: tuple[Majority, np.ndarray]) -> None:
    setting, upper = instance
    oracle = CornerOracle(setting)
    worst = max(oracle.price(upper)[0], 0.0)
    # Divided by the budget, values are as large as its inverse.
    rounding = 1e-13 * (1 + setting.ratio) / setting.budget
    multisets, found = oracle.broken(upper)
    assert found == pytest.approx(worst, abs=rounding)
    if multisets:
        own = corner_rows(setting, multisets).violation(upper)
        assert own.max() == pytest.approx(worst, abs=rounding)
        assert own.min() > -rounding
    elif worst > rounding:
        pytest.fail("a violated row was not found")


def test_the_bound_of_the_lemma() -> None:
    """For every T on 0..3, |E M| by enumeration of X and Y, and the lemma's right side."""
    rng = np.random.default_rng(3)
    for shift in (0.01, 0.2, 0.7):
        for _ in range(50):
            t = rng.choice([-1.0, 1.0, rng.random()], size=6)
            for d, e in product(range(4), range(3)):
                o, total, split = e, 0.0, 0.0
                for bits in product((0, 1), repeat=d + e):
                    x, y = sum(bits[:d]), sum(bits[d:])
                    chance = np.prod([shift if bit else 1 - shift for bit in bits])
                    total += chance * t[o + x - y]
                    split += chance * (t[o + x] + t[o - y] - t[o])
                hit = (1 - (1 - shift) ** d) * (1 - (1 - shift) ** e)
                assert abs(total - split) <= 2 * (t.max() - t.min()) * hit + 1e-14


@pytest.mark.parametrize("k", [11, 15])
@pytest.mark.parametrize("shift", [0.0, 1e-3])
def test_the_reduced_set_decides_for_random_and_optimal_gammas(k: int, shift: float) -> None:
    rng = np.random.default_rng(k)
    setting = Majority(k, 0.7, 1.0, shift, shift)
    weights = majority.surrogate_weights(k).values
    optimal = solve(majority.gamma_problem(setting, weights))["gamma"]
    for upper in (optimal, rng.random(setting.middle), (rng.random(setting.middle) < 0.5) * 1.0):
        assert price(setting, upper) == pytest.approx(full_excess(setting, upper), abs=1e-12)


def plain(counts: tuple[tuple[str, int], ...]) -> bool:
    return {name for name, _ in counts} <= {"00", "11", "bc", "cb"}


@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_the_oracle_s_rows_are_the_violated_ones_of_the_listed_set(shift: float) -> None:
    setting = Majority(5, 0.6, 1.2, shift, shift)
    multisets = reduced_multisets(setting)
    assert len(multisets) == reduced_size(setting)
    upper = np.array([1.0, 0.9, 1.0])
    if shift:
        # To the edge of the multisets without D and M: what is violated now needs them.
        easy = corner_rows(setting, [counts for counts in multisets if plain(counts)])
        upper /= 1 + easy.violation(upper).max()
    listed = corner_rows(setting, multisets).violation(upper)
    found = CornerOracle(setting)(upper)
    assert found.worst == pytest.approx(listed.max(), abs=1e-13)
    assert found.worst > 1e-3
    assert found.checked == len(multisets)
    own = found.rows.violation(upper)
    assert own.max() == pytest.approx(listed.max(), abs=1e-13)
    assert np.all(own > 0)


@pytest.mark.parametrize("k", [1, 3, 11, 41, 101])
def test_the_size_has_closed_forms(k: int) -> None:
    assert reduced_size(Majority(k, 0.1, 1.0)) == (k + 1) ** 2
    expected = comb(k + 4, 4) + 3 * comb(k + 3, 4) + 3 * comb(k + 2, 4) + comb(k + 1, 4)
    assert reduced_size(Majority(k, 0.1, 1.0, 1e-3, 1e-3)) == expected


def test_a_private_gamma_has_no_rows() -> None:
    found = CornerOracle(Majority(5, 0.6, 1.2))(np.zeros(3))
    assert found.rows.count == 0
    assert found.worst == 0.0


# The last two as the walk over all multisets in every round gave them.
OPTIMA = [
    (Majority(11, 0.1, 1), 0.250000000000, 5e-12),
    (Majority(11, 0.1, 3), 0.424366469682, 5e-12),
    (Majority(11, 0.1, 5), 0.463156822961, 5e-12),
    (Majority(51, 0.1, 10), 0.499063577019, 5e-12),
    (Majority(101, 0.1, 10), 0.499393951872, 5e-12),
    (Majority(101, 0.1, 20), 0.499997577715, 5e-12),
    (Majority(11, 0.1, 3, 1e-5, 3e-5), 0.424403008456, 5e-12),
    (Majority(11, 0.1, 5, 1e-5, 5e-5), 0.463207506253, 5e-12),
    (Majority(51, 0.1, 3, 1e-5, 1e-4), 0.436354828005, 1e-9),
    (Majority(101, 0.1, 3, 1e-5, 1e-4), 0.437243585838, 1e-9),
]


@pytest.mark.parametrize(("setting", "optimum", "digits"), OPTIMA)
def test_reference_optima_of_the_surrogate(
    setting: Majority, optimum: float, digits: float
) -> None:
    weights = majority.surrogate_weights(setting.voters).values
    solution = solve(majority.gamma_problem(setting, weights))
    assert solution.objective == pytest.approx(optimum, abs=digits)
    assert solution.bound == pytest.approx(optimum, abs=digits)


def test_reference_optimum_of_uniform_weights() -> None:
    setting = Majority(7, 0.5, 1, 1e-3, 1e-3)
    solution = solve(majority.gamma_problem(setting, np.ones(4)))
    assert solution.objective == pytest.approx(2.6410583117225, abs=1e-11)
