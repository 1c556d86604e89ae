"""What guarantees spend together, against laws that are written out and added up."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import Guarantee
from dpopt.privacy.composed import concentrated, optimal, simple

Law = list[tuple[float, float]]


def response(guarantee: Guarantee) -> Law:
    """The worst mechanism of a guarantee: P and Q of each of its four outcomes."""
    right = (1 - guarantee.delta) * math.exp(guarantee.epsilon) / (1 + math.exp(guarantee.epsilon))
    wrong = (1 - guarantee.delta) / (1 + math.exp(guarantee.epsilon))
    return [(guarantee.delta, 0.0), (right, wrong), (wrong, right), (0.0, guarantee.delta)]


def spent_delta(laws: list[Law], epsilon: float) -> float:
    """sum (P - e^epsilon Q)_+ over all tuples of outcomes."""
    total = 0.0
    for outcome in itertools.product(*laws):
        p = math.prod(pair[0] for pair in outcome)
        q = math.prod(pair[1] for pair in outcome)
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


GUARANTEES = st.builds(
    Guarantee,
    st.sampled_from([0.0, 0.1, 0.25, 1.0, 2.5]),
    st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(GUARANTEES, min_size=1, max_size=5), st.sampled_from([1e-4, 0.02, 0.5, 0.7]))
def test_optimal_composition_is_that_of_all_outcomes(mechanisms: list[Guarantee], d: float) -> None:
    laws = [response(guarantee) for guarantee in mechanisms]
    found = optimal([(guarantee, 1) for guarantee in mechanisms], d)
    if found is None:
        assert d < 1 - math.prod(1 - g.delta for g in mechanisms) + 1e-12
        return
    assert spent_delta(laws, found.epsilon) <= d * (1 + 1e-9)
    if found.epsilon > 0:
        # No smaller epsilon would do, up to the steps of floats.
        assert spent_delta(laws, found.epsilon * (1 - 1e-9) - 1e-12) >= d * (1 - 1e-7)


@settings(deadline=None, max_examples=40)
@given(st.lists(GUARANTEES, min_size=1, max_size=5), st.sampled_from([1e-4, 0.02, 0.5, 0.7]))
def test_every_rule_holds_for_the_worst_mechanisms(mechanisms: list[Guarantee], d: float) -> None:
    laws = [response(guarantee) for guarantee in mechanisms]
    parts = [(guarantee, 1) for guarantee in mechanisms]
    for found in (concentrated(parts, d), simple(parts)):
        if found is not None:
            assert spent_delta(laws, min(found.epsilon, 700.0)) <= found.delta * (1 + 1e-9) + 1e-15
    best, other = optimal(parts, d), concentrated(parts, d)
    if other is not None:
        assert best is not None
        assert best.epsilon <= other.epsilon


def test_concentrated_composition_is_its_formula() -> None:
    parts = [(Guarantee(0.1), 30), (Guarantee(0.25, 1e-9), 4)]
    rho, slack = (30 * 0.01 + 4 * 0.0625) / 2, 1e-6 - 4e-9
    found = concentrated(parts, 1e-6)
    assert found is not None
    by_hand = rho + 2 * math.sqrt(rho * math.log(1 / slack))
    assert math.isclose(found.epsilon, by_hand, rel_tol=1e-12)
    # It holds for the worst mechanisms only if the optimum is no larger.
    best = optimal(parts, 1e-6)
    assert best is not None
    assert best.epsilon <= found.epsilon


def test_optimal_composition_of_many_is_the_closed_form() -> None:
    """Theorem 3.3 for k equal ones: a sum of binomials, here as integers over (1 + e)^k."""
    k, ratio, delta = 40, Fraction(5, 4), Fraction(1, 1000)
    epsilon = math.log(1.25)
    found = optimal([(Guarantee(epsilon), k)], float(delta))
    assert found is not None

    def excess(step: int) -> Fraction:
        total = sum(
            math.comb(k, i) * (ratio ** (k - i) - ratio ** (k - 2 * step + i)) for i in range(step)
        )
        return total / (1 + ratio) ** k

    # epsilon' = (k - 2 i) epsilon are the theorem's; between two of them delta falls.
    above = [step for step in range(k // 2 + 1) if excess(step) <= delta]
    assert (k - 2 * max(above)) * epsilon >= found.epsilon
    assert found.epsilon >= (k - 2 * (max(above) + 1)) * epsilon
