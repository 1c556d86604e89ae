"""The elections, the compositions and the tables of the smoothed DP paper."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments.smoothed import claims, compositions, elections, notions
from experiments.smoothed.votes import history, units
from tests.experiments.comparing import ran

FIGURE_1, FIGURE_3 = elections.EXPERIMENTS
FIGURE_2, FIGURE_4 = compositions.EXPERIMENTS
(TABLES,) = notions.EXPERIMENTS
(CLAIMS,) = claims.EXPERIMENTS


def test_the_votes_are_those_of_the_reference_values() -> None:
    assert len(history()) == 26
    assert len(units()) == 56
    last = history()[-1]
    assert (last.first, last.second) == (81268924, 74216154)
    extreme = sorted(units(), key=lambda unit: unit.share)
    assert (extreme[0].name, extreme[-1].name) == ("DC", "NE-3")
    assert extreme[0].share == pytest.approx(0.0553, abs=5e-5)
    assert extreme[-1].share == pytest.approx(0.7714, abs=5e-5)
    for state in ("ME", "NE"):
        (whole,) = (unit for unit in units() if unit.name == state)
        parts = [unit for unit in units() if unit.name.startswith(f"{state}-")]
        assert whole.first == sum(part.first for part in parts)
        assert whole.second == sum(part.second for part in parts)


def test_figure_1_has_the_reference_values_and_stays_below_one_over_n() -> None:
    table = ran(FIGURE_1, FIGURE_1.quick).tables["elections"]
    assert len(table.rows) == 26
    (delta,) = table.select(year=2020).column("log10_delta")
    (utility,) = table.select(year=2020).column("log10_utility")
    assert delta == pytest.approx(math.log10(1.207812712909e-32), abs=1e-11)
    assert utility == pytest.approx(math.log10(1.123258997447e-32), abs=1e-11)
    for d, u, bar in zip(
        table.column("log10_delta"),
        table.column("log10_utility"),
        table.column("log10_one_over_n"),
        strict=True,
    ):
        assert d < bar
        assert u < d + math.log10(2.0)


def test_figure_3_has_six_panels_and_more_privacy_at_higher_thresholds() -> None:
    table = ran(FIGURE_3, FIGURE_3.quick).tables["elections"]
    assert len(table.rows) == 6 * 26
    for rate in (0.002, 0.0001):
        columns = [
            table.select(lost_rate=rate, threshold=t).column("log10_delta")
            for t in (0.5, 0.51, 0.6)
        ]
        assert all(a > b > c for a, b, c in zip(*columns, strict=True))


def test_figure_2_has_the_reference_values_certified() -> None:
    small = replace(FIGURE_2.quick, sizes=(100_000, 500_000), epsilons=(0.5, 1.0, 2.0, 7.0))
    outcome = ran(FIGURE_2, small)
    table = outcome.tables["smoothed"]
    (first,) = table.select(records=100_000, epsilon=1.0).column("log10_delta")
    (second,) = table.select(records=500_000, epsilon=2.0).column("log10_delta")
    assert first == pytest.approx(math.log10(1.90155846356e-03), abs=1e-11)
    assert second == pytest.approx(math.log10(1.25696234591e-17), abs=1e-11)
    assert all(table.column("certified"))
    assert set(outcome.tables["hull"].column("distribution")) == {"DC", "NE-3"}
    assert outcome.comparisons[0].verdict == "refuted"
    assert all(slope < 0 for slope in outcome.tables["fits"].column("b"))


def test_figure_4_runs_over_both_sets() -> None:
    small = replace(FIGURE_4.quick, sizes=(1_000, 2_000), epsilons=(0.5, 1.0, 2.0, 7.0))
    outcome = ran(FIGURE_4, small)
    assert len(outcome.tables["smoothed"].rows) == 4 * 2 * 4
    assert len(outcome.tables["fits"].rows) == 16
    assert all(outcome.tables["smoothed"].column("certified"))


def test_table_1_shows_where_the_claim_on_noise_fails() -> None:
    small = replace(TABLES.quick, sizes=(20,), without_noise=(1_000,), compared=(4, 6))
    outcome = ran(TABLES, small)
    table = outcome.tables["table_1"]
    for claimed, least, amplified, delta in zip(
        table.column("claimed_epsilon"),
        table.column("least_epsilon"),
        table.column("amplified_epsilon"),
        table.column("dp_delta_at_claimed"),
        strict=True,
    ):
        assert least <= amplified * (1 + 1e-12)
        assert (delta > 0) == (least > claimed * (1 + 1e-9))
    verdicts = [comparison.verdict for comparison in outcome.comparisons]
    assert verdicts == ["refuted", "agrees", "not comparable", "agrees"]
    # The claim fails for small shares and large epsilon only.
    assert "all with eta of at most 0.1 and epsilon of at least 4:" in outcome.comparisons[0].ours
    both = outcome.tables["tables_2_3"]
    for apart, smooth, worst in zip(
        both.column("distributional_delta"),
        both.column("smoothed_delta"),
        both.column("dp_delta"),
        strict=True,
    ):
        assert apart < smooth < worst


def test_the_claims_that_exact_values_refute() -> None:
    small = replace(CLAIMS.quick, drawn=(1, 4, 100), above=(0.005, 0.5), pairs=200)
    outcome = ran(CLAIMS, small)
    verdicts = [comparison.verdict for comparison in outcome.comparisons]
    assert verdicts == ["refuted", "refuted", "sharper", "refuted"]
    # Where a refuted bound fails is said: small samples, near the least epsilon that it allows.
    remark, theorem = (comparison.ours for comparison in outcome.comparisons[:2])
    where = "all at T/n <= 0.0079 and epsilon at most 0.0074 above its least"
    assert remark.startswith(f"Fair coins: false in 2 of 7 settings, {where}: at n = 200, T = 1 ")
    assert theorem.startswith("At n = 200, 1 - (1 - 1/n)^T is enough, and less than T/(n + 1) from")
    table = outcome.tables["remark_8"]
    for exact, ours, lower in zip(
        table.column("exact"), table.column("ours"), table.column("lower"), strict=True
    ):
        assert lower - 1e-9 <= exact <= ours + 1e-9
    (known,) = table.select(records=127).column("exact")
    (bound,) = table.select(records=127).column("remark_8")
    assert known == pytest.approx(-7.072, abs=5e-4)
    assert bound == pytest.approx(-7.091, abs=5e-4)
    for dp, largest in zip(
        outcome.tables["theorem_5"].column("dp_delta"),
        outcome.tables["theorem_5"].column("largest_profile"),
        strict=True,
    ):
        assert dp == pytest.approx(largest, rel=1e-11)
    assert outcome.tables["lemmas"].select(lemma="2").column("largest") == [pytest.approx(1 / 3)]


def test_what_the_paper_says_of_its_figures() -> None:
    first = ran(FIGURE_1, FIGURE_1.quick).comparisons
    assert [comparison.verdict for comparison in first] == ["agrees"]
    third = ran(FIGURE_3, FIGURE_3.quick).comparisons
    assert len(third) == 2
