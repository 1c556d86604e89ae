"""Figures and tables of the Reveal-or-Obscure papers, on small configurations."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError, roo
from experiments.catalogue import all_experiments
from experiments.registry import Outcome
from experiments.roo import (
    audit_map,
    bounds_figure,
    conference,
    lemmas,
    obscuring,
    program,
    table_one,
    utility,
)
from experiments.roo.common import DataSets, two_level
from tests.experiments.comparing import ran
from tests.experiments.pictures import drawn

SMALL = {
    "roo-figure-1": obscuring.Config(),
    "roo-figure-2": bounds_figure.Config(
        gammas=(0.08,),
        alphabets=(5,),
        largest=10_000,
        points=7,
    ),
    "roo-conference-figures-2-3": conference.Config(points=7),
    "roo-table-1": table_one.Config(letters=(3, 10), epsilons=(0.5,), accuracies=(0.1, 0.05)),
    "roo-audit-map": audit_map.Config(letters=(2, 3), epsilons=(0.1, 0.5), minima=(1, 8, 20)),
    "roo-utility": utility.Config(records=(2, 6, 9)),
    "roo-program": program.Config(records=(3, 12), letters=(2, 3), cvxpy_records=(12,)),
    "roo-lemmas": lemmas.Config(records=(3, 4, 7, 8), sample_records=(5,)),
}

# Of each parameter one value, or many: the pictures have another number of panels and curves.
OTHERS = [
    ("roo-figure-1", obscuring.Config(letters=(3,), rules=("journal",), epsilons=(0.1,))),
    (
        "roo-figure-1",
        obscuring.Config(
            records=60,
            failing_records=(),
            failing_letters=(),
            failing_epsilons=(),
            failing_rules=(),
        ),
    ),
    ("roo-figure-2", bounds_figure.Config(gammas=(0.05,), alphabets=(), points=3)),
    (
        "roo-figure-2",
        bounds_figure.Config(gammas=(0.01, 0.02, 0.04, 0.08), alphabets=(4,), points=4),
    ),
    (
        "roo-conference-figures-2-3",
        conference.Config(letters=3, points=1, probabilities=(1.0, 0.0, 0.0)),
    ),
    ("roo-conference-figures-2-3", conference.Config(letters=20, points=5)),
    ("roo-table-1", table_one.Config((100,), (3,), (0.5,), (0.5,), (0.1,))),
    ("roo-table-1", table_one.Config((100,), (5,), (0.2, 0.4, 0.6, 0.8), (0.5,), (0.1, 0.2))),
    ("roo-audit-map", audit_map.Config((2,), (0.5,), (1,))),
    ("roo-audit-map", audit_map.Config((2, 3, 4, 5, 6), (0.1, 0.5), (1, 2, 3))),
    ("roo-utility", utility.Config(letters=(3,), records=(4,), draws=50)),
    ("roo-utility", utility.Config((2, 3, 4), (1.0, 0.5), (2, 5), draws=50)),
    ("roo-program", program.Config((12,), (3,), (0.3,), ())),
    ("roo-lemmas", lemmas.Config((5, 6), (2,), ("3/2",), (5,), (2,), ("1/2",), ("1/2",))),
]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {name: ran(all_experiments()[name], config) for name, config in SMALL.items()}


@pytest.mark.parametrize("name", list(SMALL))
def test_figures_are_whole_named_and_legible(outcomes: dict[str, Outcome], name: str) -> None:
    drawn(all_experiments()[name], outcomes[name])


@pytest.mark.parametrize(("name", "config"), OTHERS)
def test_figures_of_other_sizes_are_too(name: str, config: Any) -> None:
    experiment = all_experiments()[name]
    drawn(experiment, ran(experiment, config))


BAD: list[tuple[type, dict[str, Any], str]] = [
    (obscuring.Config, {"rules": ("journal",)}, "rules is"),
    (obscuring.Config, {"rules": ("journal", "exact")}, "rules is"),
    (obscuring.Config, {"failing_records": (3,)}, "failing_records is"),
    (obscuring.Config, {"longest": 0}, "longest is 0"),
    (obscuring.Config, {"audited": ("3 2 journal",)}, "audited is '3 2 journal'"),
    (obscuring.Config, {"audited": ("3 2 0.5 other",)}, "rule is 'other'"),
    (obscuring.Config, {"epsilons": ()}, "epsilons is"),
    (obscuring.Config, {"epsilons": (-1.0,)}, "epsilon is -1"),
    (bounds_figure.Config, {"gammas": (0.2,)}, "gamma is 0.2"),
    (bounds_figure.Config, {"gammas": (), "alphabets": ()}, "panels is"),
    (bounds_figure.Config, {"points": 0}, "points is 0"),
    (bounds_figure.Config, {"smallest": 10, "largest": 5}, "smallest is 10"),
    (conference.Config, {"width": 0.0}, "width is 0"),
    (conference.Config, {"probabilities": (0.5, 0.5)}, "probabilities is"),
    (conference.Config, {"points": 0}, "points is 0"),
    (table_one.Config, {"fractions": (1.5,)}, "fractions is 1.5"),
    (table_one.Config, {"accuracies": (0.7,)}, "accuracies is 0.7"),
    (table_one.Config, {"letters": (1,)}, "letters is 1"),
    (audit_map.Config, {"minima": (0,)}, "minima is 0"),
    (audit_map.Config, {"remainders": ()}, "remainders is"),
    (utility.Config, {"draws": 1}, "draws is 1"),
    (utility.Config, {"seed": -1}, "seed is -1"),
    (program.Config, {"cvxpy_records": (4,)}, "cvxpy_records is"),
    (program.Config, {"tolerance": 0.0}, "tolerance is 0"),
    (lemmas.Config, {"bases": ("1",)}, "bases is '1'"),
    (lemmas.Config, {"bases": ("e",)}, "bases is 'e'"),
    (lemmas.Config, {"thresholds": ("1",)}, "thresholds is '1'"),
    (lemmas.Config, {"sample_records": (61,)}, "sample_records is"),
    (lemmas.Config, {"sample_letters": (1,)}, "sample_letters is"),
    (lemmas.Config, {"records": (2,)}, "settings is"),
]


@pytest.mark.parametrize(("kind", "values", "words"), BAD)
def test_bad_parameters_are_refused_at_once(kind: type, values: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(words)}"):
        kind(**values)


def test_the_recursions_of_the_lemmas_are_those_of_the_package() -> None:
    # The package rounds each q_m up to a multiple of 2^-62, in the place of e of `RooSetting`.
    for n, k, epsilon in ((20, 3, 0.1), (3, 2, 0.5), (24, 3, 0.05), (7, 4, 1.0)):
        setting = roo.RooSetting(n, k, epsilon)
        for rule in ("journal", "conference"):
            weights = roo.rule_weights(setting, rule)
            q = lemmas.Case(n, k, setting.ratio, rule == "conference").q
            for m, value in enumerate(q):
                found = Fraction(weights[m] if m < len(weights) else 0, 1 << 62)
                assert 0 <= found - value <= Fraction(len(q), 1 << 58)


def test_bounds_of_lemma_8() -> None:
    for x in (Fraction(0), Fraction(1, 7), Fraction(3), Fraction(41, 2)):
        above = lemmas.exp_above(x)
        assert above == pytest.approx(math.exp(x), rel=1e-12)
        assert above >= sum((x**i / math.factorial(i) for i in range(40)), Fraction(0))
    law = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
    for least in range(3):
        chance = sum(
            math.prod(law[letter] for letter in data)
            for data in product(range(3), repeat=6)
            if min(data.count(letter) for letter in range(3)) >= least
        )
        assert lemmas.all_reach(law, 6, least) == chance


def test_figure_1_has_the_reference_values(outcomes: dict[str, Outcome]) -> None:
    shapes = outcomes["roo-figure-1"].tables["shapes"]
    known = [
        ("journal, Figure 1", 0.1, 0, 0.0868274749137),
        ("journal, Figure 1", 0.1, 8, 0.0605050983452),
        ("journal, Figure 1", 0.1, 16, 0.00258300569767),
        ("journal, Figure 1", 0.1, 17, 0.0),
        ("journal, Figure 1", 0.5, 1, 0.0112668255949),
        ("journal, Figure 1", 0.5, 2, 0.00492304560966),
        ("journal, Figure 1", 1.0, 0, 0.00578609335314),
        ("journal, Figure 1", 1.0, 1, 0.0),
        ("conference, Figure 1", 0.1, 0, 0.0788291812985),
        ("conference, Figure 1", 0.1, 16, 0.00309294293159),
    ]
    for panel, epsilon, m, q in known:
        found = shapes.select(panel=panel, epsilon=epsilon, m=m)
        assert found.column("q") == pytest.approx([q, q], abs=1e-12)


def test_figure_1_names_the_violations(outcomes: dict[str, Outcome]) -> None:
    audits = outcomes["roo-figure-1"].tables["audits"].records
    bad = {
        (row["records"], row["letters"], row["epsilon"], row["rule"]): row["excess_factor"]
        for row in audits
        if row["violates"]
    }
    assert bad[20, 3, 0.1, "conference"] == pytest.approx(1.00668, abs=5e-6)
    assert bad[3, 2, 0.5, "journal"] == pytest.approx(1.1077, abs=5e-5)
    assert len(bad) == 3
    (row,) = (r for r in audits if r["records"] == 20 and r["rule"] == "conference")
    assert row["data_sets"] == "(6, 6, 8) to (7, 6, 7)"
    sampler = roo.min_count(20, 3, 0.1, "conference")
    ratio = sampler.output_distribution([7, 6, 7])[0] / sampler.output_distribution([6, 6, 8])[0]
    assert ratio / math.exp(0.1) == pytest.approx(row["excess_factor"], rel=1e-12)


def test_figure_2_keeps_the_order_of_the_curves(outcomes: dict[str, Outcome]) -> None:
    rows = outcomes["roo-figure-2"].tables["bounds"].records
    assert len(rows) == 14
    for row in rows:
        n, k, e = row["records"], row["letters"], row["epsilon"]
        assert row["laplace"] == pytest.approx(2 * k / (n * e))
        assert row["subrr"] == pytest.approx((k - 1) / (n * e + k - 1))
        assert row["roo"] == pytest.approx((1 - 1 / k) / (1 + n / k * math.expm1(e)))
        assert row["binomial"] <= row["ds_roo"] * (1 + 1e-9)
        assert row["ds_roo"] <= row["roo"] * (1 + 1e-9)
        assert row["roo"] < min(row["laplace"], row["subrr"])
        assert row["lower"] < row["roo"]
        if row["exact"] is None:
            assert row["binomial"] <= 1e-20
        else:
            assert row["exact"] <= row["binomial"] * (1 + 1e-9)
    decay = [row["ds_roo"] for row in rows if row["letters"] == 10]
    assert decay[-1] < 1e-30
    assert all(text.endswith("True.") for text in outcomes["roo-figure-2"].findings[-2:-1])


def test_two_level_distributions() -> None:
    for low in range(1, 5):
        p = two_level(5, 0.04, low)
        assert p.sum() == pytest.approx(1.0)
        assert np.count_nonzero(p == 0.04) == low
        assert p.min() == 0.04


def test_conference_figures(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["roo-conference-figures-2-3"]
    laws = outcome.tables["laws"]
    for name in ("true", "ds_roo", "roo"):
        column = laws.column(name)
        assert sum(column) == pytest.approx(1.0)
        assert max(column) == column[4]
        assert column == pytest.approx(column[::-1])
    # The centre loses, the ends gain, ROO more than DS-ROO: what the paper describes.
    assert laws.column("true")[4] > laws.column("ds_roo")[4] > laws.column("roo")[4]
    assert laws.column("true")[0] < laws.column("ds_roo")[0] < laws.column("roo")[0]
    rows = outcome.tables["accuracy"].records
    for row in rows:
        assert row["exact"] <= row["roo_exact"] * (1 + 1e-9)
        assert row["roo_exact"] < row["roo"] < row["laplace"]
    assert [row["exact"] for row in rows] == sorted((r["exact"] for r in rows), reverse=True)
    rng = np.random.default_rng(11)
    sampler = roo.min_count(1000, 9, 0.1)
    counts = rng.multinomial(1000, laws.column("true"), size=100_000)
    q = np.array([sampler.obscuring(m) for m in range(112)])[counts.min(axis=1)]
    bias = q[:, None] * (1 / 9 - counts / 1000)
    errors = bias.std(axis=0) / math.sqrt(100_000)
    assert np.all(np.abs(bias.mean(axis=0) - laws.column("difference")) < 5 * errors)


def test_table_1_is_its_formulas(outcomes: dict[str, Outcome]) -> None:
    tables = outcomes["roo-table-1"].tables
    bounds = tables["bounds"].records
    for row in bounds:
        k = row["letters"]
        assert row["exact"] <= row["binomial"] * (1 + 1e-9)
        assert row["binomial"] <= row["bound_50"] * (1 + 1e-9)
        if row["conditions_41"]:
            assert row["q_at_m_0"] == 0.0
            assert row["first_zero_q"] <= row["m_0_40"]
        # exp(2 m_0^2 / n) is what o(1) stands for.
        omitted = math.exp(2 * row["m_0_40"] ** 2 / row["records"])
        assert row["table_i_leading"] == pytest.approx(row["rate_42"] * omitted, rel=1e-9)
        assert row["roo"] == pytest.approx(
            (1 - 1 / k) / (1 + row["records"] / k * math.expm1(row["epsilon"]))
        )
    for row in tables["records"].records:
        assert row["lower"] <= row["roo"] <= row["subrr"] <= row["laplace"]
        assert row["ds_roo_0.8_of_1/k"] <= row["ds_roo_0.2_of_1/k"] <= row["roo"]


def test_audit_map(outcomes: dict[str, Outcome]) -> None:
    rows = outcomes["roo-audit-map"].tables["audits"].records
    for row in rows:
        if row["rule"] in ("exact", "journal-repaired"):
            assert not row["violates"]
        if row["rule"] == "exact":
            assert row["excess_factor"] <= 1.0
        if row["rule"] == "journal" and row["violates"]:
            assert row["beyond_lemma_2"]
    bad = {
        (row["records"], row["letters"], row["epsilon"], row["rule"])
        for row in rows
        if row["violates"]
    }
    assert (3, 2, 0.5, "journal") in bad
    assert (25, 3, 0.1, "conference") in bad
    worst = outcomes["roo-audit-map"].tables["worst"]
    for row in worst.records:
        part = [r for r in rows if (r["rule"], r["letters"]) == (row["rule"], row["letters"])]
        assert row["excess_factor"] == max(r["excess_factor"] for r in part)
        assert row["violations"] == sum(r["violates"] for r in part)


def test_utility_has_the_optimum_below_all(outcomes: dict[str, Outcome]) -> None:
    rows = outcomes["roo-utility"].tables["utility"].records
    settings = {(row["letters"], row["records"]) for row in rows}
    assert settings == {(k, n) for k in (3, 4) for n in (2, 6, 9)}
    for k, n in settings:
        at = {r["sampler"]: r for r in rows if (r["letters"], r["records"]) == (k, n)}
        best, proof = at["optimum"], at["optimum-bound"]
        assert at["lower-bound"]["worst_case"] <= best["worst_case"] * (1 + 1e-8)
        assert best["worst_case"] == pytest.approx(proof["worst_case"], abs=1e-7)
        assert best["mean"] == pytest.approx(proof["mean"], abs=1e-7)
        for name in ("subrr", "roo", "journal-repaired", "exact", "smooth-floor", "laplace"):
            slack = [5 * (at[name][column] or 0.0) for column in ("worst_error", "mean_error")]
            assert at[name]["worst_case"] >= best["worst_case"] - slack[0] - 1e-7
            assert at[name]["mean"] >= best["mean"] - slack[1] - 1e-7
        assert at["exact"]["mean"] <= at["journal-repaired"]["mean"] * (1 + 1e-9)
        assert at["roo"]["worst_case"] == pytest.approx(
            (1 - 1 / k) / (1 + n / k * math.expm1(1.0)), rel=1e-12
        )
        assert 0 < at["laplace"]["worst_error"] < 0.01


def test_data_sets_are_all_of_them() -> None:
    data = DataSets.of(5, 3)
    assert data.weights.sum() == pytest.approx(1.0)
    seen = {tuple(row) for counts in data.counts.tolist() for row in permutations(counts)}
    assert len(seen) == math.comb(7, 2)
    assert {sum(row) for row in seen} == {5}
    for counts, weight in zip(data.counts.tolist(), data.weights, strict=True):
        assert weight == pytest.approx(len(set(permutations(counts))) / 21)


def test_no_violation_is_reported_where_there_is_none() -> None:
    config = obscuring.Config(
        failing_records=(),
        failing_letters=(),
        failing_epsilons=(),
        failing_rules=(),
        audited=("24 3 0.05 exact",),
    )
    outcome = obscuring.run(config, lambda: None)
    assert not any(outcome.tables["audits"].column("violates"))
    assert outcome.findings[0].startswith("0 of the 8")
