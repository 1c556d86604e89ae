"""Verdicts on Reveal-or-Obscure: right ones on the runs' own tables, other ones on other tables."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.roo import (
    audit_map,
    bounds_figure,
    conference,
    obscuring,
    program,
    table_one,
    utility,
)
from tests.experiments.comparing import edited, only, ran, verdict


def test_theorem_2_and_figure_1() -> None:
    outcome = ran(obscuring.run)
    found = outcome.comparisons
    assert verdict(found, "non-increasing") == "agrees"
    assert "1.0067 e^epsilon at n = 20, k = 3" in only(found, "conference").ours
    assert "1.1077 e^epsilon at n = 3, k = 2" in only(found, "journal").ours
    assert {only(found, rule).verdict for rule in ("conference", "journal")} == {"refuted"}
    private = edited(outcome.tables["audits"], violates=False)
    assert {c.verdict for c in audit_map.of_theorem_2(private)} == {"agrees"}
    rising = edited(outcome.tables["shapes"], lambda row: {"q": row["m"] / 100})
    other = obscuring.of_obscuring({**outcome.tables, "shapes": rising})
    assert verdict(other, "non-increasing") == "refuted"


def test_the_map_counts_what_it_audits() -> None:
    config = audit_map.Config(categories=(2,), epsilons=(0.5,), minima=(1, 8))
    outcome = ran(audit_map.run, config)
    audits = outcome.tables["audits"].select(rule="journal")
    bad = sum(audits.column("violates"))
    assert bad > 0
    ours = only(outcome.comparisons, "theorem 2, journal").ours
    assert ours.startswith(f"Not in {bad} of {len(audits.rows)} settings")


@pytest.mark.slow
def test_the_repaired_theorem_is_judged_in_both_directions() -> None:
    outcome = ran(audit_map.run)
    assert verdict(outcome.comparisons, "theorem 2, repaired") == "agrees"
    audits = outcome.tables["audits"]
    assert "All 356 settings" in only(outcome.comparisons, "repaired").ours
    changes: tuple[dict[str, Any], ...] = (
        {"condition": True},
        {"condition": False},
        {"private": False},
        {"beyond_lemma_2": False},
    )
    for change in changes:
        other = audit_map.repaired_theorem_2(edited(audits, lambda _, same=change: same))
        assert other.verdict == "refuted", change


@pytest.mark.slow
def test_bounds_and_accuracy() -> None:
    config = bounds_figure.Config(categories=5, gammas=(0.05,), alphabets=(), points=4)
    outcome = ran(bounds_figure.run, config)
    bounds = outcome.tables["bounds"]
    # The parameters are ours, so that there is nothing to judge.
    (beside,) = outcome.comparisons
    assert beside.verdict == "not comparable"
    assert "at 4 of 4 points" in beside.ours
    swapped = edited(bounds, lambda row: {"roo": row["laplace"]})
    assert "at 0 of 4 points" in bounds_figure.of_bounds(swapped)[0].ours

    outcome = ran(conference.run, conference.Config(points=3))
    own_p, theorem = ["not comparable"] * 2, outcome.comparisons[2]
    assert [c.verdict for c in outcome.comparisons] == [*own_p, "agrees"]
    assert theorem.statement == "theorem 2, conference"
    assert theorem.statement in {c.statement for c in ran(obscuring.run).comparisons}
    tables = {
        "pmfs": outcome.tables["pmfs"],
        "accuracy": edited(outcome.tables["accuracy"], laplace=0.0, conference_violates=True),
    }
    other = conference.of_conference(tables)
    assert [c.verdict for c in other] == [*own_p, "refuted"]
    assert "lower at 0 of 3" in other[1].ours


def test_table_i_and_small_settings() -> None:
    config = table_one.Config(categories=(10,), epsilons=(0.5,), accuracies=(0.1,))
    outcome = ran(table_one.run, config)
    found = outcome.comparisons
    assert verdict(found, "fewer records") == "agrees"
    assert verdict(found, "make q_m0 = 0") == "sharper"
    # What Table I prints for DS-ROO holds in the limit: no verdict at these n.
    assert not [c for c in found if "asymptotic" in c.claim]
    tables = {
        "bounds": edited(outcome.tables["bounds"], q_at_m_0=0.1, table_i_leading=0.0),
        "records": edited(outcome.tables["records"], lambda row: {"roo": row["laplace"]}),
    }
    other = table_one.of_table_one(tables)
    assert [c.verdict for c in other] == ["refuted", "refuted"]

    outcome = ran(utility.run, utility.Config(categories=(3,), records=(2, 6), draws=200))
    assert verdict(outcome.comparisons, "at least as good") == "agrees"
    below = edited(
        outcome.tables["utility"],
        lambda row: {"worst_case": 2.0, "mean": 2.0} if row["sampler"] == "exact" else {},
    )
    assert verdict(utility.of_utility(below), "at least as good") == "refuted"
    noisy = edited(
        outcome.tables["utility"],
        lambda row: {"worst_case": 0.0, "worst_error": 0.0} if row["sampler"] == "laplace" else {},
    )
    beside = only(utility.of_utility(noisy), "Raskhodnikova")
    assert beside.verdict == "not comparable"
    assert "lower in 2 of 2" in beside.ours


def test_programs_are_judged_by_the_tolerance() -> None:
    config = program.Config(
        records=(3, 12), categories=(2, 3), epsilons=(0.5,), cvxpy_records=(3,), shown_records=9
    )
    outcome = ran(program.run, config)
    found = outcome.comparisons
    assert [c.verdict for c in found] == ["refuted", "agrees", "agrees"]
    # n = 3, k = 2, epsilon = 0.5: the repaired q_1 is 0.264774, the printed one 0.122697.
    assert "Not in 1 of 4 settings: q_M is up to 0.142" in found[0].ours
    tables = dict(outcome.tables)
    tables["tolerance"] = edited(tables["tolerance"], tolerance=0.2)
    assert [c.verdict for c in program.of_programs(tables)] == ["agrees"] * 3
    tables = dict(outcome.tables)
    tables["differences"] = edited(
        tables["differences"], lambda row: {"in_value": float(row["rule"] == "exact")}
    )
    assert [c.verdict for c in program.of_programs(tables)] == ["refuted", "agrees", "refuted"]
