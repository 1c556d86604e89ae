from itertools import combinations_with_replacement
from math import comb

import pytest

from experiments.majority.corner_sets import Config, run
from experiments.registry import Outcome
from tests.experiments.comparing import ran

SMALL = Config(voters=(3, 5, 9), voters_approximate=(3, 5), allowance=(1.0, 2.0))


def outcome_of(config: Config) -> Outcome:
    return ran(run, config)


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
