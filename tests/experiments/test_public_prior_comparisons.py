"""Verdicts on the public prior: right ones on the runs' own tables, other ones on other tables."""

from __future__ import annotations

from dataclasses import replace

from experiments.public_prior import comparisons as prior_comparisons
from experiments.public_prior import example_one, kernels, kernels_time, synthetic
from experiments.registry import Table
from tests.experiments.comparing import Cells, edited, only, ran, verdict


def test_example_1() -> None:
    outcome = ran(example_one.EXPERIMENT)
    found = outcome.comparisons
    assert verdict(found, "with the public prior") == "differs"
    assert "Gamma_TV = 0.9305" in only(found, "with the public prior").ours
    assert verdict(found, "with the uniform prior") == "agrees"
    assert verdict(found, "lowers Gamma_TV") == "refuted"
    realised = edited(
        outcome.tables["numbers"], lambda row: {"worst_case": row["realised"] - 0.005}
    )
    other = prior_comparisons.of_example(realised)
    assert [c.verdict for c in other] == ["agrees"] * 3


def test_public_prior_figure_2() -> None:
    config = replace(synthetic.Config(), letters=12, runs=3, points=6)
    outcome = ran(synthetic.EXPERIMENT, config)
    assert [c.verdict for c in outcome.comparisons] == ["agrees", "agrees"]
    always = edited(
        outcome.tables["divergences"],
        lambda row: {"tv": 0.0, "kl": 9.0} if row["method"] == "minimax" else {},
    )
    assert [c.verdict for c in prior_comparisons.of_synthetic(always)] == ["differs", "differs"]


def test_generated_data_are_not_compared_with_the_paper_s() -> None:
    cells = {"age": "18-24", "largest": 0.25, "worst_case": 0.5}
    table = Table.of(
        "t", [{**cells, "method": "minimax"}, {**cells, "method": "mollifier-kl", "largest": 0.62}]
    )
    generated = prior_comparisons.of_movielens(table, own=False)
    assert [c.verdict for c in generated] == ["agrees"]
    assert "generated" in generated[0].certificate
    own = prior_comparisons.of_movielens(table, own=True)
    assert verdict(own, "Ages 18-24") == "agrees"
    worse = edited(table, lambda row: {"largest": row["largest"] + 0.3})
    other = prior_comparisons.of_movielens(worse, own=True)
    assert [c.verdict for c in other] == ["refuted", "differs"]
    summary = Table.of(
        "s", [{"epsilon": "all", "cases": 10, "wins": 0.9051, "improvement": 0.3, "loss": None}]
    )
    assert prior_comparisons.of_avazu(summary, own=False) == ()
    found = prior_comparisons.of_avazu(summary, own=True)
    assert [c.verdict for c in found] == ["agrees", "differs"]


def test_kernels() -> None:
    config = replace(
        kernels.Config(), settings=((4, 2.0),), training=40, held_out=400, sizes=(5, 500)
    )
    outcome = ran(kernels.EXPERIMENT, config)
    found = outcome.comparisons
    assert verdict(found, "least worst case") == "sharper"
    assert verdict(found, "consistently outperforms") == "differs"
    assert verdict(found, "O(n^3)") == "sharper"

    def turned(row: Cells) -> Cells:
        worst = {"minimax": 0.9, "mollifier-kl": 1.0}.get(row["method"], 0.5)
        return {"worst_case": worst, "mean": worst}

    tables = {
        "distances": edited(outcome.tables["distances"], turned),
        "sizes": edited(outcome.tables["sizes"], invariance=0.1),
    }
    other = prior_comparisons.of_kernels(tables)
    assert [c.verdict for c in other] == ["refuted", "agrees", "agrees"]
    times = Table.of("w", [{"task": "matrix", "size": "20", "contender": "r", "ratio": 1.0}])
    assert [c.verdict for c in prior_comparisons.of_times(times)] == ["agrees"]
    timed = ran(
        kernels_time.EXPERIMENT,
        kernels_time.Config(
            sizes=(5,), printed_up_to=5, program_up_to=5, rounds=1, materialised=20, largest=50
        ),
    )
    assert timed.comparisons[0].certificate.startswith("no certificate")
