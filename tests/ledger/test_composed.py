"""What guarantees spend together, against laws that are written out and added up."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt import Guarantee, ParameterError, privacy
from dpopt.privacy.composed import (
    concentrated,
    general,
    larger,
    least_delta,
    optimal,
    simple,
    slack_of,
)

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
    for found in (general(parts, d), concentrated(parts, d), simple(parts)):
        if found is not None:
            assert spent_delta(laws, min(found.epsilon, 700.0)) <= found.delta * (1 + 1e-9) + 1e-15
    best, other = optimal(parts, d), general(parts, d)
    assert (best is None) == (other is None)
    if best is not None and other is not None:
        assert best.epsilon <= other.epsilon


def test_equal_numbers_are_those_of_the_theorem_for_equal_ones() -> None:
    for count in (1, 10, 300, 5000):
        known = privacy.general_composition(Guarantee(0.05), count, 1e-6)
        found = general([(Guarantee(0.05), count)], 1e-6)
        assert found is not None
        assert math.isclose(found.epsilon, known.epsilon, rel_tol=1e-12)
    split = general([(Guarantee(0.05), 100), (Guarantee(0.05), 200)], 1e-6)
    assert split == general([(Guarantee(0.05), 300)], 1e-6)


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


def test_what_promises_nothing() -> None:
    half = [(Guarantee(1.0, 0.5), 2)]
    assert simple(half) is None
    assert least_delta(half) == 0.75
    assert optimal(half, 0.7) is general(half, 0.7) is slack_of(half, 0.7) is None
    assert optimal(half, 0.75) == Guarantee(2.0, 0.75)
    assert larger(half, [(Guarantee(1.0), 1)]) is None
    assert larger([(Guarantee(1.0), 2)], [(Guarantee(0.5, 0.1), 1)]) == Guarantee(2.0, 0.1)
    with pytest.raises(ParameterError, match="at least 1e-300"):
        general([(Guarantee(1.0), 2)], 1e-305)
