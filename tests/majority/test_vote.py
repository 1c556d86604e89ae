"""Batches of private labels: their law, what they spend, and what is refused before a draw."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy.stats import chi2, chisquare

from dpopt import Guarantee, NotPrivateError, ParameterError, majority
from dpopt.majority import MajorityDesign, MajoritySetting, UniformPrior
from dpopt.majority import setting as home
from dpopt.majority.vote import MOST_QUERIES, Spending, VoteBatch, affordable_queries, vote
from dpopt.privacy import general_composition, simple_composition

ALARM = 1e-9


@pytest.fixture
def no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something was drawn")

    monkeypatch.setattr(home, "system", refuse)


def ballots_with(ones: npt.ArrayLike, voters: int) -> npt.NDArray[np.int64]:
    return (np.arange(voters) < np.asarray(ones)[:, None]).astype(np.int64)


def chance_of_one(design: MajorityDesign, ones: int) -> Fraction:
    """(2^62 + h) / 2^63 from the certified integers."""
    middle = design.setting.middle
    if ones >= middle:
        return Fraction((1 << 62) + design.weights[ones - middle], 1 << 63)
    return Fraction((1 << 62) - design.weights[middle - 1 - ones], 1 << 63)


def test_labels_follow_the_certified_law() -> None:
    each = 8000
    ones = np.repeat(np.arange(12), each)
    order = np.random.default_rng(0).permutation(ones.size)
    ballots = ballots_with(ones[order], 11)
    # Of this prior, most of whose rows are noisy.
    batch = vote(ballots, epsilon=0.3, allowance=3, prior="uniform:0,1", trained_once=False)
    statistic, cells = 0.0, 0
    for count in range(12):
        p = chance_of_one(batch.design, count)
        found = int(batch.labels[ones[order] == count].sum())
        if min(p, 1 - p) == 0:
            assert found == each * p
        elif each * min(p, 1 - p) >= 50:
            statistic += float((found - each * p) ** 2 / (each * p * (1 - p)))
            cells += 1
    assert cells >= 6
    assert chi2.sf(statistic, cells) > ALARM


def test_labels_of_different_queries_are_independent() -> None:
    design = majority.design(5, 0.2, 1)
    batch = vote(ballots_with(np.full(80_000, 4), 5), design=design, trained_once=False)
    pairs = batch.labels.reshape(-1, 2)
    p = float(chance_of_one(design, 4))
    law = np.outer([1 - p, p], [1 - p, p]).ravel()
    observed = np.bincount(2 * pairs[:, 0] + pairs[:, 1], minlength=4)
    assert chisquare(observed, law * observed.sum()).pvalue > ALARM


def brute_spending(design: MajorityDesign, voters: int, events: npt.NDArray[np.float64]) -> float:
    """Largest log ratio of E f over ``voters`` at (b, c), the others always voting 0."""
    r = math.exp(design.setting.epsilon)
    laws = []
    for p in (r / (1 + r), 1 / (1 + r)):
        law = np.zeros(design.setting.mechanisms + 1)
        law[: voters + 1] = [
            math.comb(voters, i) * p**i * (1 - p) ** (voters - i) for i in range(voters + 1)
        ]
        laws.append(law @ events)
    return abs(math.log(laws[0] / laws[1]))


@pytest.mark.parametrize(
    ("k", "epsilon", "m", "objective", "times", "voters", "spent"),
    [
        (41, 0.5, 1.0, "surrogate", 12, 35, 6.048),
        (25, 1.0, 1.0, "expected-error", 6, 17, 6.474),
        (11, 1.0, 0.5, "expected-error", 6, 8, 3.059),
    ],
)
def test_voters_trained_once_spend_more_than_their_queries_composed(
    k: int, epsilon: float, m: float, objective: str, times: int, voters: int, spent: float
) -> None:
    """One query repeated: all answers share the votes, and m epsilon for each is too little."""
    design = majority.design(k, epsilon, m, objective=objective, prior="uniform:0,1")
    chances = np.array([float(chance_of_one(design, ones)) for ones in range(k + 1)])
    together = brute_spending(design, voters, chances**times)
    assert brute_spending(design, voters, chances) <= m * epsilon + 1e-12
    assert together == pytest.approx(spent, abs=5e-3)
    assert together > times * m * epsilon
    once = Spending(design.setting, trained_once=True)
    assert set(once.compositions(times)) == {"voters-simple", "voters-general"}
    assert together <= once.total(times)[1].epsilon


@pytest.mark.parametrize(
    ("queries", "epsilon", "delta"), [(20, 5.352, 0.006), (50, 9.901, 0.015), (100, 15.044, 0.030)]
)
def test_printed_totals_of_table_2(queries: int, epsilon: float, delta: float) -> None:
    setting = MajoritySetting(11, 0.0892, 3, 1e-4, 3e-4)
    assert setting.guarantee.epsilon == pytest.approx(0.2676, abs=1e-12)
    _, total = Spending(setting, trained_once=False, slack=1e-4).total(queries)
    assert total.epsilon == pytest.approx(epsilon, abs=5.01e-4)
    assert total.delta == pytest.approx(delta, abs=5.01e-4)


def test_voters_trained_once_spend_the_same_for_any_number_of_queries() -> None:
    setting = MajoritySetting(11, 0.0892, 3, 1e-4, 3e-4)
    once = Spending(setting, trained_once=True, slack=1e-4)
    assert once.total(1) == ("simple", setting.guarantee)
    for queries in (2, 100, 10**9):
        name, total = once.total(queries)
        assert name == "voters-simple"
        assert total.epsilon == pytest.approx(11 * 0.0892, rel=1e-14)
        assert total.delta == pytest.approx(11e-4, rel=1e-14)
    apart = Spending(setting, trained_once=True, voters_per_record=1)
    assert apart.total(100)[1] == Guarantee(0.0892, 1e-4)


def test_every_composition_against_its_formula() -> None:
    setting = MajoritySetting(5, 0.2, 2.5, 1e-6, 3e-6)
    found = Spending(setting, trained_once=False, slack=1e-5).compositions(40)
    voter = Guarantee(0.2, 1e-6)
    assert found == {
        "simple": simple_composition(setting.guarantee, 40),
        "general": general_composition(setting.guarantee, 40, 1e-5),
        "voters-simple": simple_composition(voter, 200),
        "voters-general": general_composition(voter, 200, 1e-5),
    }
    some = Spending(setting, trained_once=False, slack=1e-5, voters_per_record=2)
    assert some.compositions(40)["voters-general"] == general_composition(voter, 80, 1e-5)


def test_a_large_allowance_is_better_counted_by_voters() -> None:
    setting = MajoritySetting(11, 0.1, 5)
    name, total = Spending(setting, trained_once=False).total(100)
    assert name == "voters-general"
    assert total == general_composition(Guarantee(0.1), 1100, 1e-6)
    assert total.epsilon < 0.65 * general_composition(Guarantee(0.5), 100, 1e-6).epsilon


@pytest.mark.parametrize(("delta", "chosen"), [(1e-6, "simple"), (1e-2, "general")])
def test_equal_epsilons_are_settled_by_delta(delta: float, chosen: str) -> None:
    spending = Spending(MajoritySetting(3, 0.1, 1, delta, delta), trained_once=False)
    found = spending.compositions(2)
    assert found["simple"].epsilon == found["general"].epsilon
    assert found[chosen].delta == min(found["simple"].delta, found["general"].delta)
    assert spending.total(2) == (chosen, found[chosen])


def test_deltas_that_reach_one_are_left_out_or_refused() -> None:
    setting = MajoritySetting(3, 0.5, 1, 0.01, 0.01)
    spending = Spending(setting, trained_once=False)
    assert set(spending.compositions(200)) == {"general", "voters-general"}
    with pytest.raises(ParameterError, match="queries is 100000, .*promises nothing"):
        spending.total(100_000)


def test_a_batch_and_its_record(tmp_path: Path) -> None:
    votes = np.random.default_rng(1).random((30, 7)) < 0.8
    batch = vote(
        votes,
        epsilon=0.25,
        allowance=2,
        trained_once=False,
        answered=10,
        budget=Guarantee(20.0, 1e-5),
    )
    assert isinstance(batch, VoteBatch)
    assert batch.queries == 30
    assert batch.per_query == Guarantee(0.5)
    assert batch.total == min(batch.compositions.values(), key=lambda spent: spent.epsilon)
    assert batch.compositions["simple"] == Guarantee(20.0)
    with pytest.raises(ValueError, match="read-only"):
        batch.labels[0] = 1
    batch.save(tmp_path / "batch.json")
    saved = json.loads((tmp_path / "batch.json").read_text())
    assert saved["labels"] == batch.labels.tolist()
    assert saved["total"] == {"epsilon": batch.total.epsilon, "delta": batch.total.delta}
    assert saved["compositions"]["simple"] == {"epsilon": 20.0, "delta": 0.0}
    assert saved["design"]["units"] == [str(weight) for weight in batch.design.weights]
    assert saved["budget"] == {"epsilon": 20.0, "delta": 1e-5}
    assert saved["answered"] == 10
    assert "votes" not in saved


@pytest.mark.parametrize("trained_once", [False, True])
def test_plot_holds_the_compositions(trained_once: bool) -> None:
    design = majority.design(3, 0.2, 2)
    batch = vote(np.ones((2000, 3)), design=design, trained_once=trained_once)
    axes = Figure().subplots()
    assert batch.plot(axes) is axes
    lines = {str(line.get_label()): np.asarray(line.get_xydata()) for line in axes.lines}
    assert set(lines) == {"simple", "general", "voters-simple", "voters-general"}
    assert batch.plot().lines
    for name, points in lines.items():
        for count, epsilon in points[:: max(1, len(points) // 7)]:
            assert batch.spending.compositions(int(count))[name].epsilon == epsilon
    assert lines["voters-simple"][-1, 0] == 2000
    assert len(lines["simple"]) == 1 if trained_once else lines["simple"][-1, 0] == 2000


def test_parameters_of_the_design_are_passed_on() -> None:
    votes = np.ones((2, 5), dtype=bool)
    prior = UniformPrior(((0.5, 1.0),))
    given = {"epsilon": 0.3, "allowance": 2.5, "mechanism_delta": 1e-5, "trained_once": True}
    batch = vote(votes, **given, objective="surrogate", prior=prior)
    wanted = MajoritySetting(5, 0.3, 2.5, 1e-5, 2.5e-5, objective="surrogate", prior=prior)
    assert batch.design.setting == wanted
    assert batch.design.objective == "surrogate"
    assert batch.design.prior == prior
    less = vote(votes, **{**given, "allowance": 0.5})
    assert less.design.setting.delta == 1e-5
    assert vote(votes, **given, delta=1e-3).design.setting.delta == 1e-3


@pytest.mark.parametrize(
    ("prior", "right"),
    [(None, 1.0), (UniformPrior(), 0.638), (UniformPrior(((0.7, 1.0),)), 1.0)],
)
def test_unanimous_votes_under_three_priors(prior: UniformPrior | None, right: float) -> None:
    batch = vote(np.ones((1, 11)), epsilon=0.1, allowance=3, prior=prior, trained_once=False)
    assert float(chance_of_one(batch.design, 11)) == pytest.approx(right, abs=5e-4)


def frame_of_pandas(votes: list[list[int]]) -> object:
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(votes)


def frame_of_polars(votes: list[list[int]]) -> object:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.DataFrame(votes, orient="row")


def table_of_objects(votes: list[list[int]]) -> object:
    return np.array([[Fraction(entry) for entry in row] for row in votes], dtype=object)


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        np.float32,
        np.bool_,
        np.uint8,
        table_of_objects,
        frame_of_pandas,
        frame_of_polars,
    ],
)
def test_tables_of_any_kind(wrap: object) -> None:
    # With K = 1 and gamma = 1 the label is the vote itself.
    votes = [[1], [0], [0], [1]]
    design = majority.assess(MajoritySetting(1, 0.5, 1, 0.0, 1e-3), [1.0])
    table = wrap(votes)  # pyright: ignore[reportCallIssue]
    assert vote(table, design=design, trained_once=True).labels.tolist() == [1, 0, 0, 1]


# --- Budgets


@given(
    epsilon=st.floats(1e-4, 2.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-5]),
    folds=st.integers(1, 5000),
)
def test_budget_met_exactly_is_affordable_and_one_ulp_less_is_not(
    epsilon: float, delta: float, folds: int
) -> None:
    each = Guarantee(epsilon, delta)
    for budget in (simple_composition(each, folds), general_composition(each, folds, 1e-6)):
        count = affordable_queries(each, budget)
        assert count >= folds
        assert any(within(spent, budget) for spent in both(each, count))
        assert not any(within(spent, budget) for spent in both(each, count + 1))
        below = Guarantee(float(np.nextafter(budget.epsilon, 0.0)), budget.delta)
        fewer = affordable_queries(each, below)
        assert not any(within(spent, below) for spent in both(each, fewer + 1))
    tight = simple_composition(each, folds)
    if delta == 0.0:
        assert affordable_queries(each, tight) == folds
        below = Guarantee(float(np.nextafter(tight.epsilon, 0.0)))
        assert affordable_queries(each, below) == folds - 1


def both(each: Guarantee, folds: int) -> tuple[Guarantee, Guarantee]:
    return simple_composition(each, folds), general_composition(each, folds, 1e-6)


def within(spent: Guarantee, budget: Guarantee) -> bool:
    return spent.epsilon <= budget.epsilon and spent.delta <= budget.delta


@pytest.mark.parametrize(
    ("epsilon", "budget", "count"),
    [
        (0.25, 1.0, 4),
        # The float 0.1 is above 1/10: ten of it are more than 1, but four are the float 0.4.
        (0.1, 0.3, 2),
        (0.1, 0.4, 4),
        (0.1, 1.0, 9),
        (0.1, 0.1, 1),
        (0.5, 0.4, 0),
        (1e-300, 1.0, MOST_QUERIES),
    ],
)
def test_affordable_queries_without_delta(epsilon: float, budget: float, count: int) -> None:
    assert affordable_queries(Guarantee(epsilon), Guarantee(budget)) == count


def test_affordable_queries_by_general_composition() -> None:
    each, slack = Guarantee(0.2676, 3e-4), 1e-4
    for count in (50, 100):
        budget = general_composition(each, count, slack)
        assert affordable_queries(each, budget, slack) == count
        less = Guarantee(float(np.nextafter(budget.epsilon, 0.0)), budget.delta)
        assert affordable_queries(each, less, slack) == count - 1
        less = Guarantee(budget.epsilon, float(np.nextafter(budget.delta, 0.0)))
        assert affordable_queries(each, less, slack) == count - 1


@pytest.mark.parametrize("trained_once", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
def test_affordable_is_where_total_starts_to_refuse(trained_once: bool, delta: float) -> None:
    for m in (1.0, 3.0, 5.0):
        spending = Spending(MajoritySetting(5, 0.1, m), trained_once)
        for epsilon in (0.05, 0.45, 0.5, 2.5, 9.0):
            budget = Guarantee(epsilon, delta)
            count = spending.affordable(budget)
            if count:
                spending.total(count, budget)
            if count < MOST_QUERIES:
                with pytest.raises(ParameterError, match=f"affords {count}, "):
                    spending.total(count + 1, budget)


def test_a_budget_chooses_a_composition_within_it() -> None:
    spending = Spending(MajoritySetting(11, 0.1, 3), trained_once=False)
    assert spending.total(100)[0] == "general"
    name, simple = spending.total(100, Guarantee(40.0))
    assert name == "simple"
    # 3 * 0.1 is above 0.3 in double precision, and a hundred of it above 30.
    exact = 100 * Fraction(3 * 0.1)
    assert Fraction(math.nextafter(simple.epsilon, 0.0)) < exact <= Fraction(simple.epsilon)
    assert spending.total(100, Guarantee(40.0, 1e-6))[0] == "general"


def test_the_whole_budget_may_be_spent_and_no_more() -> None:
    design = majority.design(3, 0.125, 2)
    budget = Guarantee(1.0)
    spent = {"design": design, "trained_once": False, "budget": budget}
    assert vote(np.ones((4, 3)), **spent).total == budget
    assert vote(np.ones((1, 3)), **spent, answered=3).total == budget


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(("queries", "answered"), [(5, 0), (1, 4), (1, 400), (100_000, 0)])
def test_a_batch_beyond_the_budget_is_refused_before_a_draw(queries: int, answered: int) -> None:
    design = majority.design(3, 0.125, 2)
    said = f"queries is {queries + answered}, .* epsilon 1 and delta 0 affords 4"
    with pytest.raises(ParameterError, match=said):
        vote(
            np.ones((queries, 3)),
            design=design,
            trained_once=False,
            answered=answered,
            budget=Guarantee(1.0),
        )


# --- Refusals


@pytest.mark.usefixtures("no_draw")
def test_a_design_that_is_not_private_is_refused_before_a_draw() -> None:
    design = majority.assess(MajoritySetting(3, 0.5, 1), [1.0, 1.0])
    assert not design.private
    with pytest.raises(NotPrivateError):
        vote([[1, 1, 0]], design=design, trained_once=False)


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("votes", "said"),
    [
        ([], "shape \\(0,\\)"),
        ([1, 0, 1], "shape \\(3,\\)"),
        (np.zeros((0, 3)), "at least one query"),
        (np.zeros((2, 3, 3)), "shape \\(2, 3, 3\\)"),
        (1, "shape \\(\\)"),
        (None, "shape \\(\\)"),
        ({}, "shape \\(\\)"),
        ("101", "shape \\(\\)"),
        ([[]], "0 columns; K must be odd"),
        ([[1, 0], [0, 1]], "2 columns; K must be odd"),
        ([[1, 0, 1], [0, 1]], "different lengths"),
        ([[1, 0, 2]], "other than 0 and 1"),
        ([[1, 0, -1]], "other than 0 and 1"),
        ([[1, 0, 0.5]], "other than 0 and 1"),
        ([[1, 0, math.nan]], "other than 0 and 1"),
        ([[1, 0, None]], "other than 0 and 1"),
        ([[1, 0, 1j]], "other than 0 and 1"),
        ([[1, 0, 10**400]], "other than 0 and 1"),
        ([["1", "0", "1"]], "other than 0 and 1"),
        (np.array([["1", 0, 1]], dtype=object), "other than 0 and 1"),
        (np.ma.masked_equal([[1, 0, 1]], 0), "masked"),
    ],
)
def test_votes_that_are_none(votes: object, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^votes has? .*{said}|^votes holds .*{said}") as told:
        vote(votes, epsilon=0.5, allowance=1, trained_once=False)  # pyright: ignore[reportArgumentType]
    assert str(told.value).count("\n") == 0


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"trained_once": "no"}, "trained_once is 'no'"),
        ({"trained_once": None}, "trained_once is None"),
        ({"trained_once": 1}, "trained_once is 1"),
        ({"epsilon": None}, "design is None"),
        ({"allowance": None}, "design is None"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"allowance": 4}, "allowance is 4"),
        ({"allowance": math.nan}, "allowance is nan"),
        ({"mechanism_delta": 1.5}, "mechanism_delta is 1.5"),
        ({"mechanism_delta": 1e-3, "delta": 0.0}, "mechanism_delta is 0.001"),
        ({"objective": "best"}, "objective is 'best'"),
        ({"slack": 0.0}, "slack is 0"),
        ({"slack": 1}, "slack is 1"),
        ({"voters_per_record": 0}, "voters_per_record is 0"),
        ({"voters_per_record": 4}, "voters_per_record is 4"),
        ({"answered": -1}, "answered is -1"),
        ({"answered": 0.5}, "answered is 0.5"),
        ({"budget": 1.0}, "budget is 1.0"),
        ({"budget": (1.0, 0.0)}, "budget is \\(1.0, 0.0\\)"),
        ({"budget": Guarantee(0.1)}, "affords 0"),
        ({"design": 3, "epsilon": None, "allowance": None}, "design is 3"),
    ],
)
def test_bad_parameters(changed: dict[str, object], said: str) -> None:
    given = {"epsilon": 0.5, "allowance": 1, "trained_once": False, **changed}
    with pytest.raises(ParameterError, match=said):
        vote([[1, 0, 1]], **given)  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("no_draw")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"votes": [[1]]}, "votes has 1 columns; the design is for 3 voters"),
        ({"epsilon": 0.5}, "design is given"),
        ({"allowance": 1}, "design is given"),
        ({"delta": 0.0}, "design is given"),
        ({"mechanism_delta": 1e-5}, "design is given"),
    ],
)
def test_a_design_has_its_own_parameters(changed: dict[str, object], said: str) -> None:
    given = {"votes": [[1, 0, 1]], "design": majority.design(3, 0.5, 1), "trained_once": False}
    with pytest.raises(ParameterError, match=said):
        vote(**{**given, **changed})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("slack", [0.0, 1.0, math.nan, "1"])
def test_affordable_queries_checks_its_slack(slack: object) -> None:
    with pytest.raises(ParameterError, match="^slack is"):
        affordable_queries(Guarantee(0.1), Guarantee(1.0), slack)  # pyright: ignore[reportArgumentType]
