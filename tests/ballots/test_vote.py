"""Batches of labels over many classes: law, spending, and what is refused before a draw."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from dpopt import Guarantee, ParameterError, majority, multiclass, plurality
from dpopt.ballots.rules import ladder
from dpopt.ballots.votes import count_votes, read_counts, read_votes
from dpopt.majority import MajoritySetting, Spending
from dpopt.multiclass import MulticlassSetting
from dpopt.plurality import BallotSpending, PluralitySetting
from dpopt.privacy import exp_lower, exp_upper, general_composition, simple_composition

ALARM = 1e-9
VOTES = [[2, 2, 1, 0, 2], [0, 1, 0, 0, 1]]
PRIVATE = {"trained_once": False, "classes": 3, "epsilon": 0.5, "allowance": 2}
PLAIN = {"classes": 3, "epsilon": 0.5}


def test_counts_of_votes() -> None:
    assert count_votes(np.array(VOTES), 4).tolist() == [[1, 1, 3, 0], [3, 2, 0, 0]]


def test_plain_labels_follow_the_ladder_in_the_order_of_the_classes() -> None:
    """Counts (4, 6, 5), from votes and as counts, at r = 2."""
    votes = np.tile([0] * 4 + [1] * 6 + [2] * 5, (20_000, 1))
    given = {"epsilon": math.log(2), "rule": "ladder"}
    law = np.array(ladder((4, 6, 5), exp_lower(math.log(2))), dtype=float)
    for batch in (
        plurality.vote(votes, classes=3, **given),
        plurality.vote(counts=np.tile([4, 6, 5], (20_000, 1)), **given),
    ):
        observed = np.bincount(batch.labels, minlength=3)
        assert chisquare(observed, law * 20_000).pvalue > ALARM


def test_private_labels_follow_the_kernel() -> None:
    batch = multiclass.vote(np.tile([2, 2, 1, 0, 2], (20_000, 1)), **PRIVATE)
    design = batch.design
    law = design.kernel[list(design.setting.partitions.classes_of((1, 1, 3)))]
    observed = np.bincount(batch.labels, minlength=3)
    assert chisquare(observed, law * 20_000).pvalue > ALARM
    # Queries are independent of each other.
    pairs = np.bincount(3 * batch.labels[::2] + batch.labels[1::2], minlength=9)
    assert chisquare(pairs, np.outer(law, law).ravel() * 10_000).pvalue > ALARM


def test_a_spending_is_of_any_private_voters() -> None:
    """The same K, epsilon and m: labels of two classes and of three spend the same."""
    for once in (False, True):
        two = Spending(MajoritySetting(5, 0.2, 2.5, 1e-6, 3e-6), once)
        three = Spending(MulticlassSetting(5, 3, 0.2, 2.5, 1e-6, 3e-6, rule="ladder"), once)
        for queries in (1, 40):
            assert two.compositions(queries) == three.compositions(queries)
    with pytest.raises(ParameterError, match="must be of voters that are private"):
        Spending(PluralitySetting(5, 3, 0.2), False)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("reach", [1, 3])
def test_plain_ballots_compose(reach: int) -> None:
    spending = BallotSpending(PluralitySetting(9, 3, 0.125), voters_per_record=reach)
    each = Guarantee(0.125 * reach)
    assert spending.per_query == each
    found = spending.compositions(40)
    assert (found["simple"], found["general"]) == (
        simple_composition(each, 40),
        general_composition(each, 40, 1e-6),
    )
    # Of 40 randomised responses, by binomials: the loss is (40 - 2 i) epsilon.
    exact, chance = found["optimal"], math.exp(each.epsilon) / (1 + math.exp(each.epsilon))
    law = [math.comb(40, i) * chance ** (40 - i) * (1 - chance) ** i for i in range(41)]
    losses = [(40 - 2 * i) * each.epsilon - exact.epsilon for i in range(41)]
    spent = sum(p * -math.expm1(-loss) for p, loss in zip(law, losses, strict=True) if loss > 0)
    assert spent == pytest.approx(1e-6, rel=1e-6)
    assert exact.delta == 1e-6
    assert exact.epsilon < found["general"].epsilon
    assert spending.affordable(Guarantee(1.5)) == 12 // reach


@pytest.mark.parametrize("reach", [1, 2])
def test_what_a_record_in_several_ballots_spends_by_enumeration(reach: int) -> None:
    """All histograms of 5 ballots over 3 classes, and all ways to replace ``reach`` ballots."""
    epsilon = 0.7
    design = plurality.design(5, 3, epsilon)
    histograms = [(a, b, 5 - a - b) for a in range(6) for b in range(6 - a)]
    laws = {counts: design.setting.law(design.units, counts=counts) for counts in histograms}
    largest = max(
        Fraction(p, q)
        for one in histograms
        for two in histograms
        if 0 < sum(abs(a - b) for a, b in zip(one, two, strict=True)) <= 2 * reach
        for p, q in zip(laws[one], laws[two], strict=True)
    )
    spent = BallotSpending(design.setting, voters_per_record=reach).per_query.epsilon
    assert largest <= exp_upper(spent)
    if reach == 1:
        assert math.log(largest) == pytest.approx(epsilon, rel=1e-9)


@pytest.fixture
def no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something was drawn")

    monkeypatch.setattr("secrets.randbelow", refuse)
    monkeypatch.setattr("dpopt.privacy.release.Laws.draw", refuse)


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("votes", "said"),
    [
        ([], r"votes has shape \(0,\)"),
        ([1, 0, 1], r"votes has shape \(3,\)"),
        (np.zeros((0, 3)), "at least one query"),
        ([[1, 0, 1], [0, 1]], "votes has rows of different lengths"),
        ([[1, 0, 3]], r"votes holds a value other than 0\.\.2"),
        ([[1, 0, -1]], r"other than 0\.\.2"),
        ([[1, 0, 0.5]], r"other than 0\.\.2"),
        ([[1, 0, math.nan]], r"other than 0\.\.2"),
        ([[1, 0, None]], r"other than 0\.\.2"),
        ([[1, 0, 1j]], r"other than 0\.\.2"),
        ([[1, 0, 10**400]], r"other than 0\.\.2"),
        ([["1", "0", "1"]], r"other than 0\.\.2"),
        (np.ma.masked_equal([[1, 0, 1]], 0), r"votes has masked entries; .* 0\.\.2"),
    ],
)
def test_votes_that_are_none(votes: Any, said: str) -> None:
    for call in (
        lambda: multiclass.vote(votes, **PRIVATE),
        lambda: plurality.vote(votes, **PLAIN),
    ):
        with pytest.raises(ParameterError, match=said) as told:
            call()
        assert "\n" not in str(told.value)


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([1, 2], r"counts has shape \(2,\)"),
        ([[3]], "two classes"),
        ([[1, 2], [3]], "rows of different lengths"),
        ([[1, 2], [3, 1]], "rows of different sums"),
        ([[0, 0]], "of sum 0"),
        ([[3, -1]], "no integer of at least 0"),
        ([[1.5, 1.5]], "no integer of at least 0"),
        ([[1, math.inf]], "no integer of at least 0"),
        (np.ma.masked_equal([[1, 0, 1]], 0), "counts has masked entries"),
    ],
)
def test_counts_that_are_none(counts: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        plurality.vote(counts=counts, epsilon=0.5)


def test_tables_of_several_types() -> None:
    for table in (np.array(VOTES, dtype=np.uint8), np.array(VOTES, dtype=float), VOTES):
        assert read_votes(table, 3).tolist() == VOTES
    assert read_counts(np.array([[2.0, 1.0]])).tolist() == [[2, 1]]


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"classes": None}, "classes is None"),
        ({"classes": 1}, "classes is 1"),
        ({"epsilon": None}, "design is None"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"rule": "fair"}, "rule is 'fair'"),
        ({"answered": -1}, "answered is -1"),
        ({"budget": 1.0}, "budget is 1.0"),
        ({"budget": Guarantee(0.9)}, "queries is 2, .* affords 1"),
        ({"voters_per_record": 6}, "voters_per_record is 6"),
        ({"slack": 0}, "slack is 0"),
        ({"counts": [[1, 2, 2]]}, "both are"),
        ({"votes": None}, "neither is"),
        ({"design": plurality.design(5, 3, 0.5)}, "design is given; epsilon"),
        ({"design": plurality.design(5, 4, 0.5), "epsilon": None}, "the design is for 4"),
        ({"design": plurality.design(4, 3, 0.5), "epsilon": None}, "the design is for 4"),
        ({"design": 3, "epsilon": None}, "design is 3"),
    ],
)
def test_bad_parameters_of_plain_votes(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        plurality.vote(**{"votes": VOTES, **PLAIN, **changed})


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"classes": None}, "design is None"),
        ({"allowance": None}, "design is None"),
        ({"allowance": 6}, "allowance is 6"),
        ({"trained_once": None}, "trained_once is None"),
        ({"rule": "fair"}, "rule is 'fair'"),
        ({"mechanism_delta": 0.1, "rule": "optimal"}, "mechanism_delta is 0.1"),
        ({"budget": Guarantee(1.5)}, "queries is 2, .* affords 1"),
        ({"design": multiclass.design(5, 3, 0.5, 2)}, "design is given; epsilon"),
        ({"design": 3, "epsilon": None, "allowance": None}, "design is 3"),
    ],
)
def test_bad_parameters_of_private_votes(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        multiclass.vote(**{"votes": VOTES, **PRIVATE, **changed})


def test_a_design_is_used_as_it_is() -> None:
    plain, private = plurality.design(5, 3, 0.5), multiclass.design(5, 3, 0.5, 2)
    assert plurality.vote(VOTES, design=plain).design is plain
    assert multiclass.vote(VOTES, design=private, trained_once=True).design is private
    with pytest.raises(ParameterError, match="the design is for 4"):
        plurality.vote(VOTES, design=plurality.design(4, 3, 0.5))
    with pytest.raises(ParameterError, match="the design is for 4"):
        multiclass.vote(VOTES, design=multiclass.design(4, 3, 0.5, 2), trained_once=True)


@pytest.mark.parametrize(
    ("records", "classes", "epsilon", "chosen"),
    [
        (20, 3, 0.5, "optimal"),
        (60, 4, 0.5, "ladder"),
        (30, 10, 0.05, "exponential"),
    ],
)
def test_the_best_plain_rule_by_size(
    records: int, classes: int, epsilon: float, chosen: str
) -> None:
    best = plurality.best_design(records, classes, epsilon)
    assert best.setting.rule == chosen
    for rule in ("ladder", "permute-and-flip", "exponential"):
        assert best.value <= plurality.design(records, classes, epsilon, rule=rule).value + 1e-12


@pytest.mark.parametrize(
    ("records", "classes", "epsilon", "chosen"),
    [
        (1_000_000, 5, 1.0, "ladder"),
        (2_000, 6, 2.0, "ladder"),
        (1_000_000, 10, 0.5, "permute-and-flip"),
        (60, 1_000, 1.0, "permute-and-flip"),
    ],
)
def test_the_best_plain_rule_of_too_many_histograms(
    records: int, classes: int, epsilon: float, chosen: str
) -> None:
    best = plurality.best_design(records, classes, epsilon)
    assert best.setting.rule == chosen
    assert best.setting.by_theorem
    counts = [[records, *[0] * (classes - 1)]] * 3
    batch = plurality.vote(counts=counts, design=best)
    assert len(batch.labels) == 3
    assert batch.total.epsilon <= 3 * epsilon * (1 + 1e-9)
    assert batch.per_query.epsilon == pytest.approx(epsilon, rel=1e-8)


def test_the_best_private_rule_by_size() -> None:
    assert multiclass.best_design(5, 3, 0.5, 2).setting.rule == "optimal"
    rules = ("ladder", "permute-and-flip", "exponential")
    for sizes in ((12, 8, 0.5, 3), (6, 30, 0.02, 1)):
        far = multiclass.best_design(*sizes)
        assert far.value == min(multiclass.design(*sizes, rule=rule).value for rule in rules)
    with_delta = multiclass.best_design(5, 3, 0.5, 2, mechanism_delta=1e-6, delta=1e-5)
    assert with_delta.setting.rule != "optimal"


def strange_votes() -> dict[str, Any]:
    """Five votes of which none is to be read as one."""
    masks = np.ma.array([0, 1, 0, 1, 1], mask=np.arange(5) == 2)
    return {
        "masked": masks[None, :],
        "a list of masked arrays": [masks],
        "a list of lists of masked ones": [[0, 1, 0, 1, np.ma.masked]],
        "complex": np.array([[0, 1, 0, 1, 1j]]),
        "complex whole": np.array([[0, 1, 0, 1, 1]], dtype=complex),
        "times": np.array([[0, 1, 0, 1, 1]], dtype="timedelta64[s]"),
        "void": np.zeros((1, 5), dtype="V4"),
        "text": np.array([["0", "1", "0", "1", "1"]]),
        "missing": np.array([[0, 1, None, 1, 0]]),
        "not a number": np.array([[0, 1, np.nan, 1, 0]]),
    }


@pytest.mark.parametrize("name", strange_votes())
@pytest.mark.parametrize("place", ["multiclass", "majority"])
def test_one_reading_of_votes(name: str, place: str) -> None:
    """A release and a vote refuse alike, in one sentence that shows none."""
    votes = strange_votes()[name]
    if place == "majority":
        design: Any = majority.design(5, 0.5, 2)
        vote: Any = majority.vote
    else:
        design, vote = multiclass.best_design(5, 3, 0.5, 2, rule="ladder"), multiclass.vote
    for call in (
        lambda: design.release(votes),
        lambda: design.simulate(votes, np.random.default_rng(0)),
        lambda: vote(votes, design=design, trained_once=False),
    ):
        with pytest.raises(ParameterError, match="votes (has masked|holds a value other)"):
            call()


def test_missing_values_of_a_frame_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0, 1, None, 1, 0]]).astype("Int64")
    design = multiclass.best_design(5, 3, 0.5, 2, rule="ladder")
    with pytest.raises(ParameterError, match="votes holds a value other than"):
        design.release(frame)
    assert np.shape(design.release(frame.fillna(2))) == (1,)


def test_masked_counts_in_a_list_are_refused() -> None:
    row = np.ma.array([3, 1, 1], mask=[False, True, False])
    with pytest.raises(ParameterError, match="masked entries"):
        plurality.vote(counts=[row], epsilon=0.5)
    with pytest.raises(ParameterError, match="masked entries"):
        plurality.best_design(5, 3, 0.5).release(counts=[row])
    looped: Any = []
    looped.append(looped)
    with pytest.raises(ParameterError):
        plurality.vote(looped, classes=3, epsilon=0.5)
