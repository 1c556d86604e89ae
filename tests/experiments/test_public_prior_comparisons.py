"""Verdicts on the public prior: right ones on the runs' own tables, other ones on other tables."""

from __future__ import annotations

from dataclasses import replace

from experiments.public_prior import (
    avazu,
    digits,
    example_one,
    grouped,
    kernels,
    movielens,
    synthetic,
)
from experiments.registry import Table
from tests.experiments.comparing import Cells, edited, only, ran, verdict


def test_example_1() -> None:
    outcome = ran(example_one.run)
    found = outcome.comparisons
    assert verdict(found, "with the public prior") == "differs"
    assert "Gamma_TV = 0.9305" in only(found, "with the public prior").ours
    assert verdict(found, "with the uniform prior") == "agrees"
    assert only(found, "with the public prior").ours.endswith("The public prior raises Gamma_TV.")
    realised = edited(
        outcome.tables["numbers"], lambda row: {"worst_case": row["realised"] - 0.005}
    )
    other = example_one.of_example(realised, own=True)
    assert [c.verdict for c in other] == ["agrees"] * 2
    assert "does not raise" in only(other, "with the public prior").ours
    config = replace(example_one.Config(), epsilon=1.0)
    changed = ran(example_one.run, config)
    assert [c.verdict for c in changed.comparisons] == ["not comparable"]
    assert not [line for line in changed.findings if "cut off" in line]
    assert [line for line in outcome.findings if "cut off" in line]


def test_public_prior_figure_2() -> None:
    config = replace(synthetic.Config(), points=4)
    outcome = ran(synthetic.run, config)
    assert [c.verdict for c in outcome.comparisons] == ["agrees", "agrees"]
    # Within three standard errors there is no order to see.
    noisy = edited(outcome.tables["divergences"], tv_gap_error=1.0)
    assert [c.verdict for c in synthetic.of_synthetic(noisy)] == ["differs", "agrees"]
    always = edited(
        outcome.tables["divergences"],
        lambda row: {"tv": 0.0, "kl": 9.0} if row["method"] == "minimax" else {},
    )
    assert [c.verdict for c in synthetic.of_synthetic(always)] == ["differs", "differs"]


def test_where_no_public_prior_is_needed_is_counted() -> None:
    largest = {"uniform": (0.2, 0.3), "minimax": (0.4, 0.3)}
    rows = [
        {
            "epsilon": epsilon,
            "age": age,
            "method": method,
            "users": 9,
            "largest": largest.get(method, (0.5, 0.5))[place],
        }
        for epsilon in (4.0, 8.0)
        for place, age in enumerate(("18-24", "56+"))
        for method in grouped.SHOWN
    ]
    table = Table.of("t", rows)
    one = grouped.seen(table.select(epsilon=4.0), "age", "age groups")
    assert len(one) == 3
    assert one[0].startswith("18-24 (9 users), largest TV: uniform 0.2, ")
    assert one[-1].endswith("a smaller largest TV than Algorithm 1 in 1 of 2 age groups.")
    two = grouped.seen(table, "age", "age groups")
    assert len(two) == 4
    assert two[2].startswith("Epsilon 8, largest TV: uniform 0.2 to 0.3, ")
    assert two[3].endswith("in 1 of 2 age groups at epsilon = 8.")


def test_generated_data_are_not_compared_with_the_paper_s() -> None:
    cells = {"epsilon": 4.0, "age": "18-24", "largest": 0.25, "worst_case": 0.5}
    table = Table.of(
        "t", [{**cells, "method": "minimax"}, {**cells, "method": "mollifier-kl", "largest": 0.62}]
    )
    generated = movielens.of_movielens(table, other="the users are generated")
    assert [c.verdict for c in generated] == ["agrees", "not comparable"]
    assert generated[1].rule == "no verdict: the users are generated"
    own = movielens.of_movielens(table, other=None)
    assert verdict(own, "Ages 18-24") == "agrees"
    worse = edited(table, lambda row: {"largest": row["largest"] + 0.3})
    other = movielens.of_movielens(worse, other=None)
    assert [c.verdict for c in other] == ["refuted", "differs"]
    summary = Table.of(
        "s", [{"epsilon": "all", "cases": 10, "wins": 0.9051, "improvement": 0.3, "loss": None}]
    )
    found = avazu.of_avazu(summary, other="generated")
    assert [c.verdict for c in found] == ["not comparable"] * 2
    found = avazu.of_avazu(summary, other=None)
    assert [c.verdict for c in found] == ["agrees", "differs"]


def test_the_digits_are_not_the_paper_s_data() -> None:
    outcome = ran(digits.run)
    found = outcome.comparisons
    assert verdict(found, "theorem 1") == "agrees"
    assert verdict(found, "consistently demonstrate") == "not comparable"
    assert only(found, "consistently demonstrate").ours == (
        "Of 10 digits Algorithm 1 has the smaller largest TV in 0, and the smaller mean in 0."
    )
    worse = edited(outcome.tables["distances"], lambda row: {"largest": row["worst_case"] + 0.1})
    assert grouped.of_bound(worse, "digit").verdict == "refuted"


def test_kernels() -> None:
    config = kernels.Config(
        categories=(4,), epsilon=(2.0,), training=40, held_out=400, sizes=(5, 500)
    )
    outcome = ran(kernels.run, config)
    found = outcome.comparisons
    assert verdict(found, "least worst case") == "agrees"
    assert verdict(found, "consistently demonstrate") == "not comparable"
    # What an algorithm costs is measured, not judged: the paper's O(n^3) holds of any faster one.
    assert not [c for c in found if "O(n^3)" in c.claim]

    def turned(row: Cells) -> Cells:
        worst = {"minimax": 0.9, "mollifier-kl": 1.0}.get(row["method"], 0.5)
        return {"worst_case": worst, "mean": worst}

    tables = {
        "distances": edited(outcome.tables["distances"], turned),
        "sizes": edited(outcome.tables["sizes"], invariance=0.1),
    }
    other = kernels.of_kernels(tables)
    assert [c.verdict for c in other] == ["refuted", "not comparable"]
