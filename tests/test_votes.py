"""Batches of private labels: their pmf, what they spend, and what is refused before a draw."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import dpopt
from dpopt import (
    Guarantee,
    Majority,
    Multiclass,
    NotPrivateError,
    ParameterError,
    Plurality,
    majority,
    vote,
)
from dpopt.plurality import Counts
from dpopt.privacy import exp_lower, exp_upper, general_composition, simple_composition
from dpopt.votes import MOST_QUERIES, Spending
from experiments.ensembles.ladder import ladder
from tests.oracles import binomial

ALARM = 1e-9
VOTES = [[2, 2, 1, 0, 2], [0, 1, 0, 0, 1]]
TWO, THREE, PLAIN = (
    Majority(5, 0.5, 2),
    Multiclass(5, 3, 0.5, 2),
    Plurality(5, 3, 0.5),
)


@pytest.fixture
def no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something was drawn")

    monkeypatch.setattr("dpopt.privacy.release.Pmfs.draw", refuse)
    monkeypatch.setattr("secrets.token_bytes", refuse)


def test_plain_labels_follow_the_ladder_in_the_order_of_the_classes() -> None:
    """Counts (4, 6, 5), from votes and as counts, at r = 2."""
    setting = Plurality(15, 3, math.log(2), rule="ladder")
    pmf = np.array(ladder((4, 6, 5), exp_lower(math.log(2))), dtype=float)
    for batch in (
        vote(setting, np.tile([0] * 4 + [1] * 6 + [2] * 5, (20_000, 1))),
        vote(setting, counts=np.tile([4, 6, 5], (20_000, 1))),
    ):
        observed = np.bincount(batch.labels, minlength=3)
        assert chisquare(observed, pmf * 20_000).pvalue > ALARM


def test_private_labels_follow_the_kernel_and_are_independent() -> None:
    made = dpopt.design(dpopt.Multiclass(5, 3, 0.5, 2))
    labels = vote(made, np.tile([2, 2, 1, 0, 2], (20_000, 1)), trained_once=False).labels
    pmf = made.kernel[made.setting.domain.variables_of(np.array([[1, 1, 3]]))[0]]
    pairs = np.bincount(3 * labels[::2] + labels[1::2], minlength=9)
    assert chisquare(pairs, np.outer(pmf, pmf).ravel() * 10_000).pvalue > ALARM


def test_a_batch_and_its_record() -> None:
    made = dpopt.design(dpopt.Majority(3, 0.25, 2))
    budget = Guarantee(20.0, 1e-5)
    batch = vote(made, np.ones((30, 3)), trained_once=False, answered=10, budget=budget)
    assert batch.design is made
    assert batch.queries == 30
    assert (batch.composition, batch.total) == batch.spending.total(40, budget)
    assert batch.columns()["query"] == list(range(10, 40))
    with pytest.raises(ValueError, match="read-only"):
        batch.labels[0] = 1
    one = vote(dpopt.design(dpopt.Plurality(5, 3, 0.5)), VOTES[0])
    assert one.labels.shape == (1,)
    assert one.total == Guarantee(0.5)


@pytest.mark.parametrize("records", [60, 1_000_000])
def test_many_records_and_classes(records: int) -> None:
    classes = 1_000 if records == 60 else 10
    setting = Plurality(records, classes, 1.0, rule="permute-and-flip")
    batch = vote(setting, counts=[[records, *[0] * (classes - 1)]] * 3)
    assert batch.design.setting.by_theorem  # pyright: ignore[reportAttributeAccessIssue]
    assert batch.total == Guarantee(3.0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    table = frames.DataFrame({str(voter): [1, 0, 0, 1] for voter in range(5)})
    certain = majority.assess(Majority(5, 1.0, 5), np.ones(6))
    assert vote(certain, table, trained_once=True).labels.tolist() == [1, 0, 0, 1]


def test_voters_trained_once_spend_the_same_for_any_number_of_queries() -> None:
    setting = Majority(11, 0.0892, 3, 1e-4, 3e-4)
    once = Spending(setting, trained_once=True, slack=1e-4)
    assert once.total(1) == ("simple", setting.guarantee)
    for queries in (2, 100, 10**9):
        name, total = once.total(queries)
        assert name == "voters-simple"
        assert total.epsilon == pytest.approx(0.9812, abs=1e-9)
        assert total.delta == pytest.approx(0.0011, abs=1e-9)
    apart = Spending(setting, trained_once=True, slack=1e-4, voters_per_record=1)
    assert apart.total(100)[1] == Guarantee(0.0892, 1e-4)


@pytest.mark.parametrize(
    "made",
    [
        Majority(5, 0.2, 2.5, 1e-6, 3e-6),
        Multiclass(5, 3, 0.2, 2.5, 1e-6, 3e-6, rule="ladder"),
    ],
    ids=lambda one: one.kind,
)
def test_every_composition_against_its_formula(made: Any) -> None:
    voter = Guarantee(0.2, 1e-6)
    assert Spending(made, trained_once=False, slack=1e-5).compositions(40) == {
        "simple": simple_composition(made.guarantee, 40),
        "general": general_composition(made.guarantee, 40, 1e-5),
        "voters-simple": simple_composition(voter, 200),
        "voters-general": general_composition(voter, 200, 1e-5),
    }
    some = Spending(made, trained_once=False, slack=1e-5, voters_per_record=2)
    assert some.compositions(40)["voters-general"] == general_composition(voter, 80, 1e-5)


@pytest.mark.parametrize("reach", [1, 3])
def test_plain_ballots_compose(reach: int) -> None:
    spending = Spending(Plurality(9, 3, 0.125), voters_per_record=reach)
    each = Guarantee(0.125 * reach)
    assert spending.per_query == each
    found = spending.compositions(40)
    assert (found["simple"], found["general"]) == (
        simple_composition(each, 40),
        general_composition(each, 40, 1e-6),
    )
    # Of 40 randomised responses, by binomials: the loss is (40 - 2 i) epsilon.
    exact, chance = found["optimal"], math.exp(each.epsilon) / (1 + math.exp(each.epsilon))
    pmf = binomial(40, 1 - chance)
    losses = [(40 - 2 * i) * each.epsilon - exact.epsilon for i in range(41)]
    spent = sum(p * -math.expm1(-loss) for p, loss in zip(pmf, losses, strict=True) if loss > 0)
    assert spent == pytest.approx(1e-6, rel=1e-6)
    assert exact.delta == 1e-6
    assert exact.epsilon < found["general"].epsilon
    assert spending.affordable(Guarantee(1.5)) == 12 // reach


@pytest.mark.parametrize("reach", [1, 2])
def test_what_a_record_in_several_ballots_spends_by_enumeration(reach: int) -> None:
    """All histograms of 5 ballots over 3 classes, and all ways to replace ``reach`` ballots."""
    made = dpopt.design(dpopt.Plurality(5, 3, 0.7))
    histograms = [(a, b, 5 - a - b) for a in range(6) for b in range(6 - a)]
    told = made.setting.output_weights
    pmfs = {counts: told(made.table, Counts(counts)) for counts in histograms}
    largest = max(
        Fraction(p, q)
        for one in histograms
        for two in histograms
        if 0 < sum(abs(a - b) for a, b in zip(one, two, strict=True)) <= 2 * reach
        for p, q in zip(pmfs[one], pmfs[two], strict=True)
    )
    spent = Spending(made.setting, voters_per_record=reach).per_query.epsilon
    assert largest <= exp_upper(spent)
    if reach == 1:
        assert math.log(largest) == pytest.approx(0.7, rel=1e-9)


@pytest.mark.parametrize(("delta", "chosen"), [(1e-6, "simple"), (1e-2, "general")])
def test_equal_epsilons_are_settled_by_delta(delta: float, chosen: str) -> None:
    spending = Spending(Majority(3, 0.1, 1, delta, delta), trained_once=False)
    found = spending.compositions(2)
    assert found["simple"].epsilon == found["general"].epsilon
    assert spending.total(2) == (chosen, found[chosen])


def test_deltas_that_reach_one_are_left_out_or_refused() -> None:
    spending = Spending(Majority(3, 0.5, 1, 0.01, 0.01), trained_once=False)
    assert set(spending.compositions(200)) == {"general", "voters-general"}
    with pytest.raises(ParameterError, match="queries is 100000, .*promises nothing"):
        spending.total(100_000)


@pytest.mark.slow
@given(epsilon=st.floats(1e-4, 2.0), folds=st.integers(1, 5000))
def test_a_budget_met_exactly_is_affordable_and_one_ulp_less_is_not(
    epsilon: float, folds: int
) -> None:
    spending = Spending(Majority(1, epsilon, 1), trained_once=False)
    budget = simple_composition(Guarantee(epsilon), folds)
    assert spending.affordable(budget) == folds
    below = Guarantee(float(np.nextafter(budget.epsilon, 0.0)))
    assert spending.affordable(below) == folds - 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("trained_once", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
def test_affordable_is_where_total_starts_to_refuse(trained_once: bool, delta: float) -> None:
    for m in (1.0, 3.0, 5.0):
        spending = Spending(Majority(5, 0.1, m), trained_once)
        for epsilon in (0.05, 0.45, 0.5, 2.5, 9.0):
            budget = Guarantee(epsilon, delta)
            count = spending.affordable(budget)
            if count:
                spending.total(count, budget)
            if count < MOST_QUERIES:
                with pytest.raises(ParameterError, match=f"affords {count}, "):
                    spending.total(count + 1, budget)


def test_a_budget_chooses_a_composition_within_it() -> None:
    spending = Spending(Majority(11, 0.1, 3), trained_once=False)
    assert spending.total(100)[0] == "general"
    assert spending.total(100, Guarantee(40.0))[0] == "simple"
    assert spending.total(100, Guarantee(40.0, 1e-6))[0] == "general"


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(("queries", "answered"), [(5, 0), (1, 4), (100_000, 0)])
def test_a_batch_beyond_the_budget_is_refused_before_a_draw(queries: int, answered: int) -> None:
    said = f"queries is {queries + answered}, .* epsilon 1 and delta 0 affords 4"
    given = {"trained_once": False, "answered": answered, "budget": Guarantee(1.0)}
    with pytest.raises(ParameterError, match=said):
        vote(dpopt.design(dpopt.Majority(3, 0.125, 2)), np.ones((queries, 3)), **given)


@pytest.mark.usefixtures("no_draw")
def test_a_design_that_is_not_private_is_refused_before_a_draw() -> None:
    with pytest.raises(NotPrivateError):
        vote(majority.assess(TWO, np.ones(6)), [[1, 1, 0, 1, 0]], trained_once=False)


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("votes", "said"),
    [
        ([1, 0, 1], r"votes has shape \(3,\)"),
        (np.zeros((0, 5)), "at least one query"),
        ([[1, 0, 1, 1, 1], [0, 1]], "votes"),
        ([[1, 0, -1, 1, 1]], "other than"),
        ([[1, 0, 0.5, 1, 1]], "other than"),
        ([[1, 0, 3, 1, 1]], "other than"),
        (np.ma.masked_equal([[1, 0, 1, 1, 1]], 0), "masked"),
        ([[0, 1, 0, 1, np.ma.masked]], "masked"),
    ],
)
@pytest.mark.parametrize("setting", [TWO, THREE, PLAIN], ids=lambda one: one.kind)
def test_votes_that_are_none(setting: Any, votes: Any, said: str) -> None:
    once: dict[str, Any] = {} if setting is PLAIN else {"trained_once": False}
    with pytest.raises(ParameterError, match=said) as told:
        vote(setting, votes, **once)
    assert not any(text in str(told.value) for text in ("\n", "-1", "0.5"))
