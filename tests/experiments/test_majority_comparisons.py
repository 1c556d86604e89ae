"""DaRRM's verdicts: right ones on the runs' own tables, other ones on other tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.majority import (
    claims,
    claims_compared,
    comparisons,
    comparisons_priors,
    comparisons_privacy,
    composition,
    figures,
    gnmax,
    priors,
)
from experiments.majority.claims_record import Claim
from experiments.majority.claims_sampling import Sampled
from experiments.majority.pate import comparisons as pate_comparisons
from experiments.majority.pate.experiment import EXPERIMENT as PATE
from experiments.registry import Comparison, Outcome, Table
from tests.experiments.comparing import Cells, edited, only, ran, verdict

FIGURE_2, FIGURE_6, FIGURE_7, FIGURE_8 = figures.EXPERIMENTS


@pytest.fixture(scope="module")
def figure_2() -> Outcome:
    return ran(FIGURE_2, replace(FIGURE_2.quick, draws=100, repeats=2))


def test_figure_2(figure_2: Outcome) -> None:
    found = figure_2.comparisons
    assert verdict(found, "overlaps with subsampling") == "agrees"
    assert verdict(found, "subsampling has the optimal error") == "refuted"
    assert "0.1212" in only(found, "subsampling has the optimal").ours
    assert verdict(found, "has the lowest error") == "sharper"
    highest = only(found, "the highest for every number of ones")
    assert highest.verdict == "refuted"
    assert "m = 3, l = 10" in highest.ours
    assert "exact integers, 7,008 rows" in highest.certificate


def test_figure_2_other_tables_have_other_verdicts(figure_2: Outcome) -> None:
    def judged(**tables: Table) -> tuple[Comparison, ...]:
        config = replace(FIGURE_2.quick, draws=100, repeats=2)
        return comparisons.of_noise_functions(config, {**figure_2.tables, **tables})

    errors, shapes = figure_2.tables["errors"], figure_2.tables["shapes"]
    same = edited(errors, expected_error=0.1)
    assert verdict(judged(errors=same), "subsampling has the optimal error") == "agrees"
    assert verdict(judged(errors=same), "has the lowest error") == "agrees"

    def worse(row: Cells) -> Cells:
        return {"expected_error": 1.0} if row["curve"] == "surrogate" else {}

    failed = only(judged(errors=edited(errors, worse)), "has the lowest error")
    assert (failed.verdict, failed.ours) == ("refuted", "Not at m = 3, 5, 7.")
    ones = edited(shapes, lambda row: {"gamma": 1.0} if row["curve"] == "surrogate" else {})
    assert verdict(judged(shapes=ones), "the highest for every number") == "agrees"
    assert verdict(judged(shapes=ones), "overlaps with subsampling") == "refuted"
    unproved = judged(errors=edited(errors, exact_slack=-1.0))
    assert all("not proved" in comparison.certificate for comparison in unproved)


def test_figure_6_and_table_3() -> None:
    targets = FIGURE_6.quick.targets
    cells = [
        {
            "target": t.at,
            "curve": curve,
            "m": t.allowance,
            "target_epsilon": t.allowance * 0.1,
            "delta": t.delta,
            "expected_error": error,
            "constraints_proved": 1,
            "exact_slack": 0.0,
            "lp_gap": 0.0,
        }
        for t in targets
        for curve, error in (
            ("expected-error", 0.0),
            ("surrogate", 0.0),
            ("subsampling", 0.1),
            ("constant", 0.1),
        )
    ]
    tables = {"errors": Table.of("e", cells), "shapes": Table.of("s", [{"target": 0}])}
    found = comparisons.of_noise_functions(FIGURE_6.quick, tables)
    assert verdict(found, "Table 3") == "agrees"
    assert verdict(found, "has the lowest error") == "agrees"
    assert "gamma = 1" in only(found, "has the lowest error").ours
    off = {**tables, "errors": edited(tables["errors"], lambda row: {"m": row["m"] + 1e-4})}
    assert verdict(comparisons.of_noise_functions(FIGURE_6.quick, off), "Table 3") == "differs"


def test_figure_7() -> None:
    chosen = (FIGURE_7.quick.targets[3], FIGURE_7.quick.targets[5])
    config = replace(FIGURE_7.quick, targets=chosen, draws=100, repeats=2)
    outcome = ran(FIGURE_7, config)
    assert verdict(outcome.comparisons, "have error 0") == "agrees"
    assert verdict(outcome.comparisons, "all lines overlap") == "agrees"
    shapes = edited(
        outcome.tables["shapes"], lambda row: {"gamma": 0.5} if row["curve"] == "constant" else {}
    )
    errors = edited(outcome.tables["errors"], expected_error=0.01)
    found = comparisons.of_noise_functions(config, {"errors": errors, "shapes": shapes})
    assert verdict(found, "have error 0") == "refuted"
    assert verdict(found, "all lines overlap") == "refuted"


def test_figure_9() -> None:
    (experiment,) = priors.EXPERIMENTS
    outcome = ran(experiment)
    found = outcome.comparisons
    assert verdict(found, "Under p ~ U[0, 0.1]") == "agrees"
    assert verdict(found, "Under p ~ U[0, 1]") == "agrees"
    assert verdict(found, "At p_i = 0.5") == "refuted"
    assert verdict(found, "Whatever the prior") == "agrees"

    def swapped(row: Cells) -> Cells:
        clear = row["curve"] == "the paper's, U[0, .3] or [.7, 1]"
        return {"error": 0.5 if clear else 0.3}

    other = comparisons_priors.of_priors(edited(outcome.tables["errors"], swapped))
    assert verdict(other, "Under p ~ U[0, 0.1]") == "refuted"
    assert verdict(other, "At p_i = 0.5") == "agrees"
    assert verdict(other, "Whatever the prior") == "refuted"


def test_figure_10_and_table_4() -> None:
    (experiment,) = gnmax.EXPERIMENTS
    outcome = ran(experiment)
    found = outcome.comparisons
    assert verdict(found, "Table 4: sigma") == "agrees"
    assert verdict(found, "Table 4: lambda") == "differs"
    assert verdict(found, "a label of GNMax") == "sharper"
    assert verdict(found, "Algorithm 6's conditions") == "agrees"

    def printed(row: Cells) -> Cells:
        return {"printed_order": row["order"], "sigma": row["sigma"] + 0.01, "label_epsilon": 1.0}

    tables = {
        "calibration": edited(outcome.tables["calibration"], printed),
        "data_dependent": edited(
            outcome.tables["data_dependent"],
            applies=True,
            data_dependent=0.0,
        ),
    }
    other = comparisons_privacy.of_gnmax(tables)
    assert verdict(other, "Table 4: sigma") == "differs"
    assert verdict(other, "Table 4: lambda") == "agrees"
    assert verdict(other, "a label of GNMax") == "refuted"
    assert verdict(other, "Algorithm 6's conditions") == "refuted"


def test_totals() -> None:
    (experiment,) = composition.EXPERIMENTS
    outcome = ran(experiment)
    assert [c.verdict for c in outcome.comparisons] == ["agrees"] * 4 + ["sharper"]
    assert all("12 of 12 numbers agree" in c.ours for c in outcome.comparisons[:4])

    def moved(row: Cells) -> Cells:
        return {"epsilon": row["epsilon"] + 0.001} if row["table"] == 7 else {}

    other = comparisons_privacy.of_totals(edited(outcome.tables["totals"], moved))
    assert [c.verdict for c in other[:4]] == ["agrees", "agrees", "differs", "agrees"]


def test_tables_1_6_8_10_say_where_our_default_loses() -> None:
    outcome = ran(PATE, replace(PATE.quick, draws=2))
    found = outcome.comparisons
    lost = only(found, "The paper's gamma is right")
    assert lost.verdict == "differs"
    assert "This package's default, for independent p_i, loses at m = 1, 3, 5" in lost.ours
    assert "0.746" in lost.ours
    assert verdict(found, "highest accuracy of the three") == "agrees"
    assert verdict(found, "ahead of GNMax") == "differs"
    assert [c.verdict for c in found[:3]] == ["agrees"] * 3

    def ours(row: Cells) -> Cells:
        return {"accuracy": 1.0 if row["method"] == "expected-error" else 0.5}

    def far(row: Cells) -> Cells:
        return {"exact_minus_printed": 0.3} if row["printed_mean"] is not None else {}

    other = pate_comparisons.comparisons(
        {
            "accuracy": edited(outcome.tables["accuracy"], ours),
            "queries": edited(outcome.tables["queries"], far),
        }
    )
    assert verdict(other, "The paper's gamma is right") == "agrees"
    assert verdict(other, "highest accuracy of the three") == "differs"
    assert [c.verdict for c in other[:3]] == ["differs"] * 3


@pytest.fixture(scope="module")
def claimed() -> tuple[Claim, ...]:
    (experiment,) = claims.EXPERIMENTS
    config = replace(
        experiment.quick,
        draws=500,
        at_one=(3,),
        objectives=((11, 3),),
        counted=(5,),
        pure=(5,),
        approximate=(3,),
        gammas=1,
        swept=((9, 2.0),),
        swept_epsilons=(0.9,),
        doubled=(3,),
        certified=(3,),
        sampled=(Sampled(11, 3, 0.1),),
        sampled_curve=(5,),
        constants=((5, (1,)),),
    )
    outcome = ran(experiment, config)
    table = outcome.tables["claims"]
    records: list[Cells] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    made = tuple(Claim(**record) for record in records)
    assert outcome.comparisons == claims_compared.of_claims(made)
    return made


def test_claims(claimed: tuple[Claim, ...]) -> None:
    found = claims_compared.of_claims(claimed)
    assert [c.verdict for c in found] == [
        *["refuted"] * 3,
        *["sharper"] * 2,
        "refuted",
        *["sharper"] * 2,
        "refuted",
        "sharper",
    ]
    equal = tuple(replace(claim, value_found=claim.value_claimed) for claim in claimed)
    assert {c.verdict for c in claims_compared.of_claims(equal)} == {"agrees", "sharper"}
    assert verdict(claims_compared.of_claims(equal), "Lemma A.1's constant") == "agrees"
    broken = tuple(
        replace(claim, value_found=1.0) if claim.claim == "theorem 4.1" else claim
        for claim in claimed
    )
    assert verdict(claims_compared.of_claims(broken), "Double subsampling") == "refuted"
