from dataclasses import replace
from itertools import combinations_with_replacement
from math import comb

import pytest

from dpopt import ParameterError
from experiments.majority.corner_sets import EXPERIMENT, Config
from experiments.registry import Outcome
from tests.experiments.pictures import drawn

SMALL = Config(mechanisms=(3, 5, 9), mechanisms_approximate=(3, 5), allowance=(1.0, 2.0))


def outcome_of(config: Config) -> Outcome:
    told: list[int] = []
    found = EXPERIMENT.run(config, lambda: told.append(1))
    assert len(told) == EXPERIMENT.steps(config)
    return found


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return outcome_of(SMALL)


def test_both_programs_have_one_optimum(outcome: Outcome) -> None:
    table = outcome.tables["programs"]
    assert len(table.rows) == 2 * (3 + 2)
    for row in table.records:
        others = 3 if row["case"] == "pure" else 7
        assert row["paper"] == comb(row["K"] + others, others)
        assert row["rows"] <= row["reduced"] < row["paper"]
        assert row["difference"] <= 1e-9
        assert row["excess"] <= 1e-9 + row["rounding"]


def test_the_reduced_set_is_counted_by_hand(outcome: Outcome) -> None:
    """Multisets without bc beside cb, D0 beside 0D, 1m beside m1."""
    apart = ({"bc", "cb"}, {"D0", "0D"}, {"1m", "m1"})
    for case, names in (
        ("pure", ("00", "11", "bc", "cb")),
        ("approximate", ("00", "11", "D0", "0D", "1m", "m1", "bc", "cb")),
    ):
        for k in (3, 5):
            every = [set(chosen) for chosen in combinations_with_replacement(names, k)]
            kept = sum(not any(pair <= chosen for pair in apart) for chosen in every)
            assert set(outcome.tables["programs"].select(case=case, K=k).column("reduced")) == {
                kept
            }


def test_the_lemma_holds_and_a_smaller_set_does(outcome: Outcome) -> None:
    assert [c.verdict for c in outcome.comparisons] == ["sharper", "sharper"]
    assert {c.identifier for c in outcome.comparisons} == {
        "lemma 5.1, Delta = 0",
        "lemma 5.1, Delta > 0",
    }


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        Config(mechanisms=(23,), mechanisms_approximate=(), allowance=(4.0,)),
        Config(mechanisms=(), mechanisms_approximate=(5,), epsilon=1.0, mechanism_delta=1e-2),
        replace(SMALL, objective="expected-error", allowance=(1.5,)),
    ],
)
def test_figures_at_other_parameters(config: Config) -> None:
    drawn(EXPERIMENT, outcome_of(config))


def test_bad_parameters_are_refused_before_anything_is_solved() -> None:
    with pytest.raises(ParameterError, match=r"^mechanisms is \(\)"):
        Config(mechanisms=(), mechanisms_approximate=())
    with pytest.raises(ParameterError, match="^mechanisms holds 105; .* at most 200000 multisets"):
        Config(mechanisms=(105,))
    with pytest.raises(ParameterError, match="^mechanisms_approximate holds 17"):
        Config(mechanisms_approximate=(17,))
    with pytest.raises(ParameterError, match="^mechanism_delta is 0.0"):
        Config(mechanism_delta=0.0)
    with pytest.raises(ParameterError, match="^mechanisms is 4; it must be odd"):
        Config(mechanisms=(4,))
    with pytest.raises(ParameterError, match=r"^allowance is \(\)"):
        Config(allowance=())


def test_the_item_is_in_the_catalogue() -> None:
    assert EXPERIMENT.at_paper(EXPERIMENT.quick)
