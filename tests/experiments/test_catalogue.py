"""Every experiment of the catalogue: it repeats, is drawn, written and judged by stated rules.

At a small configuration, and at three other values of each of its parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import experiments
from experiments.benchmarks import page
from experiments.catalogue import all_experiments
from experiments.digest import imported
from experiments.ensembles import images, plain, private
from experiments.finding import modules_with
from experiments.kept import Entry, record_of, to_csv, write_outcome
from experiments.majority import (
    claims,
    composition,
    corner_sets,
    figures,
    gnmax,
    hedging,
    objective,
    priors,
)
from experiments.majority import lemmas as majority_lemmas
from experiments.majority.pate import experiment as pate
from experiments.public_prior import (
    avazu,
    digits,
    example_one,
    kernels,
    movielens,
    synthetic,
)
from experiments.public_prior import program as prior_program
from experiments.registry import Experiment
from experiments.roo import (
    audit_map,
    bounds_figure,
    conference,
    obscuring,
    table_one,
    utility,
)
from experiments.roo import lemmas as roo_lemmas
from experiments.roo import program as roo_program
from experiments.smoothed import claims as smoothed_claims
from experiments.smoothed import (
    compositions,
    elections,
    notions,
    runtime,
    sgd,
    sgd_bias,
    sgd_estimates,
)
from experiments.workload import growth as workload_growth
from experiments.workload import simulation as workload_simulation
from experiments.workload import table as workload_table
from experiments.workload import worst as workload_worst
from tests.experiments.comparing import ran


@dataclass(frozen=True)
class Tried:
    """A configuration that runs fast, and three other values of each of its parameters."""

    base: Any
    others: Mapping[str, tuple[Any, ...]]
    # Parameters of which the only other value is a file of the user's own.
    files: tuple[str, ...] = ()


def noise(delta: float) -> Tried:
    """Figures 2, 7 and 8 of DaRRM share their parameters."""
    return Tried(
        replace(
            figures.EXPERIMENTS[0].quick,
            mechanisms=5,
            mechanism_delta=delta,
            allowance=(1.0, 3.0),
            draws=50,
            repeats=2,
        ),
        {
            # 13 to 23 once had no ticks to draw.
            "mechanisms": (3, 13, 23),
            "mechanism_delta": (delta / 2, 1e-4, 0.0),
            "allowance": ((1.0,), (5.0,), (0.5, 2.0, 2.5)),
            "delta": (2e-5, 1e-2, 0.5),
            **VOTED,
        },
    )


VOTED = {
    "epsilon": (0.02, 0.5, 2.0),
    "prior": ("beta:2,2", "common-uniform:0,1", "point:0.5"),
    "curves": (("surrogate",), ("constant", "expected-error"), ("subsampling", "surrogate")),
    "draws": (1, 2, 500),
    "repeats": (3, 4, 7),
    "seed": (0, 1, 99),
}


def claimed() -> Tried:
    base = claims.Config(
        draws=200,
        at_one=(3, 5),
        objectives=("5,1", "5,2"),
        counted=(5, 7),
        pure=(5,),
        approximate=(3,),
        gammas=1,
        three=("9,2,0.9005",),
        swept=("9,2",),
        swept_epsilons=(0.85, 0.9),
        doubled=(3, 5),
        certified=(3,),
        certified_epsilons=(0.5,),
        doubled_approximate=("5,2,1e-3",),
        sampled=("5,3,0.1,0",),
        sampled_curve=(5,),
        constants=("11,1,2",),
        below=("5,2",),
        repeated=("5,1,0.5,2",),
    )
    return Tried(
        base,
        {
            "epsilon": (0.01, 0.5, 1.5),
            "draws": (50, 100, 400),
            "seed": (0, 1, 6),
            "at_one": ((3,), (5, 7), (9,)),
            "objectives": (("3,3",), ("13,2", "5,5"), ("11,5",)),
            "counted": ((3,), (5, 11), (21,)),
            "pure": ((3,), (7,), (5, 9)),
            "approximate": ((), (3, 5), (5, 3)),
            "gammas": (2, 3, 4),
            "three": (
                ("15,1,0.7755",),
                ("3,1,0.1", "13,3,2"),
                ("9,2,0.9005", "15,1,0.7755"),
            ),
            "swept": (("11,2",), ("9,2", "11,2"), ("7,2",)),
            "swept_epsilons": ((0.9,), (0.7, 0.8, 1.0), (0.3, 0.6)),
            "doubled": ((3,), (7,), (3, 9)),
            "certified": ((5,), (7,), (3, 5)),
            "certified_epsilons": ((0.1,), (1.0,), (0.2, 2.0)),
            "doubled_approximate": (("3,2,1e-2",), ("7,4,1e-2",), ("5,3,1e-5",)),
            "sampled": (
                ("11,3,0.1,0",),
                ("5,3,0.1,1e-5",),
                ("7,5,0.2,0", "5,1,0.1,0"),
            ),
            "sampled_curve": ((7,), (5, 7), (3,)),
            "constants": (("11,3",), ("7,1,2",), ("11,1", "35,1")),
            "below": (("3,1",), ("35,10",), ("5,5", "11,2")),
            "repeated": (
                ("3,1,0.1,2",),
                ("5,2.5,0.5,1",),
                ("11,0.5,1,6",),
            ),
        },
    )


def votes_lost(epsilons: tuple[float, ...]) -> Tried:
    base = compositions.Config(
        beside=("DC NE-2",),
        lost_rates=(0.01,),
        records=(300, 600),
        epsilons=epsilons,
        shown=epsilons,
    )
    return Tried(
        base,
        {
            "distributions": (("history",), ("0.3 0.7 DC",), ("units", "2020", "1920 1924")),
            "beside": ((), ("units",), ("history", "0.5")),
            "lost_rates": ((0.05,), (0.1, 0.2), (0.0,)),
            "records": ((200, 400, 800), (101, 999), (100, 200, 300, 400, 500, 600)),
            "epsilons": ((0.5, 1.0, 3.0), (0.5,), (0.0, 0.5, 1.0)),
            "shown": ((0.5,), (1.0,), (0.5, 1.0, 9.0)),
        },
        files=("units", "votes"),
    )


def sgd_step() -> Tried:
    return Tried(
        sgd.Config(sgd.FIGURE_2, (3, 4), (0.5, 2.0), (0.0, 1.0), databases=2),
        {
            "distributions": (
                ("gaussian:0,0.12 gaussian:0.1,0.12",),
                ("laplace:0,0.12", "gaussian:0.3,0.1 laplace:0,0.1"),
                ("gaussian:0,0.2 gaussian:0.1,0.2 laplace:-0.1,0.2",),
            ),
            "batches": ((2, 3), (3, 4, 5), (5, 2)),
            "epsilons": ((0.0,), (0.1, 1.0, 7.0), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)),
            "shares": ((0.0, 0.5, 1.0), (1.0,), (0.25, 0.75)),
            "databases": (3, 4, 5),
            "confidence": (0.5, 0.9, 0.999),
            "seed": (0, 2, 3),
        },
    )


ELECTIONS = Tried(
    elections.Config(),
    {
        "thresholds": ((0.5,), (0.6, 0.7), (0.52,)),
        "lost_rates": ((0.0001,), (0.01,), (0.002, 0.1)),
        "since": (1960, 2000, 2020),
        "until": (1920, 1999, 2012),
        "years": ((2020,), (1920, 2020), (1924, 1928, 1932)),
    },
    files=("votes",),
)

POLLED = {
    "voters": ((5,), (4, 3), (2, 6)),
    "part": (30, 50, 60),
    "queries": (10, 100, 597),
    "seeds": (1, 3, 4),
    "seed": (1, 2, 3),
    "delta": (1e-9, 1e-3, 0.1),
}

TRIED: dict[str, Tried] = {
    "ensembles-digits-plain": Tried(
        plain.Config(
            voters=(5,), queries=50, seeds=2, epsilon=(0.5, 2.0), optimal=(2.0,), most_solved=5
        ),
        {
            "epsilon": ((0.1,), (0.5, 1.0, 2.0), (2.0, 9.0)),
            "optimal": ((), (0.5,), (0.5, 2.0)),
            "priors": (("dirichlet:0.1",), ("uniform", "dirichlet:2"), ()),
            "most_solved": (1, 4, 6),
            **POLLED,
        },
    ),
    "ensembles-digits-labels": Tried(
        plain.LabelsConfig(voters=(5,), queries=50, seeds=2, epsilon=(1.0,), labels=(1, 10)),
        {
            "epsilon": ((0.1,), (0.5, 5.0), (1.0, 2.0, 4.0)),
            "labels": ((1,), (1, 2, 1000), (50, 60)),
            **POLLED,
        },
    ),
    "ensembles-digits-private": Tried(
        private.Config(
            digits=("358",), epsilon=(1.0,), allowance=(1, 3), voters=5, seeds=2, draws=1
        ),
        {
            "digits": (("0123456789",), ("017", "2468"), ("901",)),
            "teachers": (("response",), ("output",), ("output", "response")),
            "epsilon": ((0.1,), (0.5, 3.0), (1.0, 2.0, 4.0)),
            "allowance": ((1,), (2, 4), (1, 2, 3)),
            "voters": (4, 6, 7),
            "side": (2, 4, 8),
            "regularisation": (0.01, 0.3, 3.0),
            "share": (0.3, 0.5, 0.8),
            "seeds": (1, 3, 4),
            "seed": (1, 2, 3),
            "draws": (2, 3, 4),
        },
    ),
    "ensembles-mnist": Tried(
        images.Config(datasets=("mnist",), allowance=(3,), labels=(1, 100)),
        {
            "datasets": (("mnist",), ("fashion-mnist",), ("fashion-mnist", "mnist")),
            "allowance": ((1,), (2, 4), (5, 7, 9)),
            "labels": ((1,), (3, 30), (1, 10, 100, 10_000)),
        },
    ),
    "majority-figure-2": noise(1e-5),
    "majority-figure-6": Tried(
        replace(figures.EXPERIMENTS[1].quick, mechanisms=5, samples=(1, 3), draws=50, repeats=2),
        {
            "mechanisms": (3, 13, 23),
            "mechanism_delta": (1e-6, 1e-3, 0.0),
            "samples": ((1,), (5,), (2, 4)),
            "slack": (1e-6, 0.01, 0.5),
            **VOTED,
        },
    ),
    "majority-figure-7": noise(0.0),
    "majority-figure-8": noise(0.0),
    "majority-figure-9": Tried(
        priors.Config(mechanisms=5, allowance=(3.0,)),
        {
            "mechanisms": (3, 7, 15),
            "epsilon": (0.01, 0.5, 1.0),
            "mechanism_delta": (1e-5, 1e-3, 0.1),
            "allowance": ((1.0,), (2.5, 3.0), (0.5,)),
            "delta": (1e-5, 0.01, 0.2),
            "priors": (("beta:2,2",), ("uniform:0.5,1", "beta:9,1"), ("beta:0.5,0.5",)),
            "actual": (("beta:2,2",), ("point:0.5", "uniform:0,1"), ("common-uniform:0,1",)),
        },
    ),
    "majority-priors": Tried(
        hedging.Config(("3,1,0",), priors=("uniform:0,1", "beta:2,2")),
        {
            "settings": (("5,2,0",), ("5,1.5,1e-5", "7,0.5,0"), ("15,3,0", "3,1,0", "5,2,1e-3")),
            "epsilon": (0.01, 0.5, 2.0),
            "priors": (
                ("common-uniform:0,1", "uniform:0,1"),
                ("beta:2,2", "common-beta:9,1", "point:0.7"),
                ("uniform:0,1", "uniform:0.5,1", "common-uniform:0,1", "point:0.9", "beta:2,3"),
            ),
        },
    ),
    "majority-figure-10": Tried(
        gnmax.Config(epsilon=(0.2676,), step=5.0, last_order=100.0, low_orders=(2.0, 5.0)),
        {
            "epsilon": ((0.2676, 0.2556), (0.5,), (0.3, 1.0, 2.0)),
            "delta": ((1e-3,), (1e-6,), (0.01,)),
            "voters": (1, 2, 50),
            "step": (1.0, 2.0, 7.0),
            "last_order": (60.0, 80.0, 200.0),
            "low_orders": ((3.0,), (2.0, 3.0, 4.0), (30.0,)),
            "many_voters": (51, 100, 1000),
            "many_sigma": (10.0, 20.0, 100.0),
            "votes": ((0, 5), (3, 2), (250, 0)),
            "votes_sigma": (0.7, 10.0, 40.0),
            "votes_order": (1.1, 2.0, 8.0),
        },
    ),
    "majority-tables-2-5-7-9": Tried(
        composition.Config(allowance=(1.0,), epsilon=(0.0892,)),
        {
            "allowance": ((1.0, 3.0), (2.5,), (0.5, 11.0)),
            "epsilon": ((0.2,), (0.0892, 0.0852, 1.0), (0.01,)),
            "mechanism_delta": (1e-6, 1e-3, 5e-3),
            "queries": ((1,), (20, 100), (3, 50, 70, 200)),
            "slack": (1e-9, 1e-3, 0.5),
            "mechanisms": (1, 101, 999),
        },
    ),
    "majority-tables-1-6-8-10": Tried(
        replace(pate.EXPERIMENT.quick, allowance=(3,)),
        {
            "datasets": (("mnist",), ("fashion-mnist",), ("fashion-mnist", "mnist")),
            "allowance": ((1,), (2,), (5, 7)),
            "methods": (("gnmax",), ("surrogate", "subsampling"), ("best-for-votes",)),
            "queries": ((20,), (10, 30), (100,)),
            "draws": (2, 3, 20),
            "seed": (0, 1, 2),
        },
        files=("votes",),
    ),
    "majority-claims": claimed(),
    "majority-corner-sets": Tried(
        corner_sets.Config((3, 5), (3,), allowance=(1.0,)),
        {
            "mechanisms": ((3,), (7, 15), ()),
            "mechanisms_approximate": ((), (5,), (5, 3)),
            "epsilon": (0.01, 0.5, 2.0),
            "mechanism_delta": (1e-8, 1e-3, 0.1),
            "allowance": ((2.0,), (1.0, 2.0), (1.5,)),
            "objective": ("expected-error", "surrogate", "expected-error"),
        },
    ),
    "majority-lemmas": Tried(
        majority_lemmas.Config((3,), ("2",), points=3, gammas=1),
        {
            "mechanisms": ((5,), (7, 3), (3, 5, 9)),
            "ratios": (("3/2",), ("11/10", "9"), ("1.05",)),
            "points": (2, 4, 5),
            "gammas": (0, 2, 3),
            "seed": (0, 2, 3),
        },
    ),
    "majority-objective": Tried(
        objective.Config((3,), (1.0,), draws=50, repeats=2),
        {
            "mechanisms": ((5,), (3, 7, 15), (23,)),
            "allowance": ((2.0,), (1.0, 2.5), (3.0,)),
            "epsilon": (0.01, 0.5, 2.0),
            "mechanism_delta": (1e-8, 1e-3, 0.01),
            "points": (1, 2, 100),
            "draws": (1, 2, 200),
            "repeats": (3, 4, 5),
            "seed": (0, 2, 9),
        },
    ),
    "roo-figure-1": Tried(
        obscuring.Config(records=12, letters=(3,), rules=("journal",), epsilons=(0.1,), audited=()),
        {
            "records": (2, 30, 1001),
            "letters": ((2,), (5,), (40,)),
            "rules": (("conference",), ("journal",), ("conference",)),
            "epsilons": ((0.05, 0.1, 0.2, 0.5, 1.0), (5.0,), (0.01,)),
            "longest": (1, 3, 100),
            "failing_records": ((20, 1), (100, 7), (3, 3)),
            "failing_letters": ((4, 2), (3, 9), (2, 2)),
            "failing_epsilons": ((1.0, 2.0), (0.1, 0.1), (0.02, 0.5)),
            "failing_rules": (
                ("exact", "roo"),
                ("journal", "conference"),
                ("roo conference journal journal-repaired exact", "journal exact"),
            ),
            "audited": (("3 2 0.5 journal",), ("30 2 0.3 exact", "20 3 0.1 roo"), ()),
        },
    ),
    "roo-figure-2": Tried(
        bounds_figure.Config(
            epsilon=0.5,
            letters=5,
            gammas=(0.05,),
            gamma=0.02,
            alphabets=(3,),
            smallest=50,
            largest=400,
            points=3,
        ),
        {
            "epsilon": (0.05, 1.0, 3.0),
            "letters": (2, 3, 20),
            "gammas": ((0.01, 0.05), (0.2,), ()),
            "gamma": (0.01, 0.1, 0.3),
            "alphabets": ((), (2, 3, 10, 20), (50,)),
            "smallest": (5, 20, 100),
            "largest": (60, 300, 1000),
            "points": (1, 2, 5),
        },
    ),
    "roo-conference-figures-2-3": Tried(
        conference.Config(records=50, letters=3, points=3),
        {
            "records": (4, 30, 200),
            "letters": (2, 4, 6),
            "epsilon": (0.01, 0.5, 3.0),
            "width": (0.2, 1.0, 20.0),
            "probabilities": ((), (0.5, 0.25, 0.25), (1.0, 0.0, 0.0)),
            "lowest": (0.001, 0.1, 1.0),
            "highest": (1.0, 3.0, 5.0),
            "points": (1, 2, 6),
        },
    ),
    "roo-table-1": Tried(
        table_one.Config((100,), (3,), (0.5,), (0.5,), (0.1, 0.05)),
        {
            "records": ((10,), (50, 500), (1000,)),
            "letters": ((2,), (3, 5), (20,)),
            "epsilons": ((0.01,), (0.1, 1.0), (5.0,)),
            "fractions": ((0.1, 0.3, 0.6, 0.9, 1.0), (1.0,), (0.01,)),
            "accuracies": ((0.3,), (0.01,), (0.2, 0.1, 0.001)),
        },
    ),
    "roo-audit-map": Tried(
        audit_map.Config((2,), (0.5, 1.0), (1, 5)),
        {
            "letters": ((3,), (2, 4), (7,)),
            "epsilons": ((0.3,), (0.01, 0.1, 2.0), (3.0, 4.0)),
            "minima": ((2,), (1, 2, 3), (10,)),
            "remainders": ((0,), (1,), (-2, -1, 0, 1, 2)),
        },
    ),
    "roo-program": Tried(
        roo_program.Config(
            records=(5, 12), letters=(3,), epsilons=(0.3,), cvxpy_records=(), shown_records=9
        ),
        {
            "records": ((1,), (7, 30), (100,)),
            "letters": ((2,), (4, 5), (20,)),
            "epsilons": ((0.02,), (1.0, 3.0), (10.0,)),
            "cvxpy_records": ((), (5,), (12, 5)),
            "tolerance": (1e-6, 1e-12, 0.5),
            "shown_records": (1, 20, 300),
            "shown_letters": (2, 4, 50),
            "shown_epsilon": (0.01, 0.5, 5.0),
        },
    ),
    "roo-lemmas": Tried(
        roo_lemmas.Config(
            records=(5, 6),
            letters=(2,),
            bases=("3/2",),
            sample_records=(5,),
            sample_letters=(2,),
            fractions=("1/2",),
            thresholds=("1/2",),
        ),
        {
            "records": ((3,), (7, 8), (40,)),
            "letters": ((3,), (2, 4), (2, 50)),
            "bases": (("1001/1000",), ("2", "1.05"), ("100",)),
            "sample_records": ((1,), (10, 20), (60,)),
            "sample_letters": ((3,), (2, 4), (6,)),
            "fractions": (("1",), ("0.3", "2/3"), ("1/100",)),
            "thresholds": (("1/100",), ("99/100",), ("1/3", "0.9")),
        },
    ),
    "roo-utility": Tried(
        utility.Config(letters=(3,), records=(2, 4), draws=50),
        {
            "letters": ((2,), (3, 4), (5,)),
            "epsilons": ((0.5,), (2.0, 0.1), (4.0,)),
            "records": ((3,), (1, 5), (6,)),
            "draws": (10, 100, 200),
            "seed": (0, 1, 2),
        },
    ),
    "prior-figure-2": Tried(
        synthetic.Config(letters=6, runs=3, points=4),
        {
            "letters": (2, 10, 20),
            "epsilon": ((0.5,), (2.0, 4.0), (12.0, 8.0, 0.1)),
            "prior": ("exponential", "uniform", "exponential"),
            "runs": (2, 4, 5),
            "points": (2, 3, 6),
            "seed": (0, 1, 3),
        },
    ),
    "prior-figure-4": Tried(
        movielens.Config(users=30, movies=40),
        {
            "epsilon": ((0.5,), (2.0, 8.0), (1.0, 4.0, 16.0)),
            "groups": (("25-34",), ("56+", "18-24", "25-34"), ("25-34", "35-44")),
            "prior": ("average", "total", "average"),
            "users": (5, 20, 60),
            "movies": (18, 30, 80),
            "seed": (0, 1, 2),
        },
        files=("path",),
    ),
    "prior-digits": Tried(
        digits.Config(digits=(0, 1)),
        {
            "epsilon": ((0.5,), (2.0, 8.0), (1.0, 4.0, 16.0)),
            "side": (1, 2, 8),
            "digits": ((7,), (9, 3, 5), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)),
            "prior": ("average", "total", "average"),
        },
    ),
    "prior-figures-3-6-11": Tried(
        avazu.Config(rows=4_000, minimum_users=5, minimum_clicks=3, epsilon=(8.0,)),
        {
            "groups": (("C18",), ("C1", "C15"), ("C21", "C14", "C16")),
            "user": ("device_ip", "device_id", "device_ip"),
            "prior": ("total", "average", "total"),
            "epsilon": ((1.0,), (2.0, 4.0), (8.0, 12.0, 16.0)),
            "sites": (2, 10, 500),
            "minimum_clicks": (1, 5, 1000),
            "minimum_users": (1, 10, 100_000),
            "rows": (500, 2_000, 6_000),
            "seed": (0, 1, 2),
        },
        files=("path",),
    ),
    "prior-example-1": Tried(
        example_one.Config(),
        {
            "public": (0.001, 0.2, 0.5),
            "user": (0.0, 0.3, 1.0),
            "epsilon": (0.1, 1.0, 5.0),
            "points": (2, 11, 51),
        },
    ),
    "prior-kernels": Tried(
        kernels.Config(letters=(3,), epsilon=(1.0,), training=10, held_out=50, sizes=(5,)),
        {
            "letters": ((2,), (4, 5), (6,)),
            "epsilon": ((0.5,), (2.0, 1.0), (8.0,)),
            "concentration": (0.5, 1.0, 20.0),
            "training": (5, 20, 40),
            "held_out": (10, 100, 200),
            "sizes": ((2,), (10, 100), (1000,)),
            "size_epsilon": (0.5, 2.0, 12.0),
            "seed": (0, 1, 2),
        },
    ),
    "prior-program": Tried(
        prior_program.Config(
            letters=(2, 3), priors=("random",), epsilon=(1.0,), second_letters=2, laws=5, points=3
        ),
        {
            "letters": ((2,), (4, 3), (9,)),
            "priors": (("tiny",), ("skewed", "uniform"), ("uniform", "random", "skewed", "tiny")),
            "epsilon": ((0.1,), (2.0, 0.5), (16.0,)),
            "backend": ("cvxpy", "cvxpy:CLARABEL", "highs"),
            "second": ("cvxpy", "highs", "cvxpy:SCS"),
            "second_letters": (1, 3, 10),
            "exact_letters": (1, 2, 30),
            "laws": (1, 10, 50),
            "points": (2, 5, 11),
            "seed": (0, 1, 2),
        },
    ),
    "smoothed-figure-1": ELECTIONS,
    "smoothed-figure-3": ELECTIONS,
    "smoothed-figure-2-left": votes_lost((0.5, 1.0)),
    "smoothed-figure-4": votes_lost((0.5, 1.0, 2.0, 3.0, 4.0)),
    "smoothed-figure-2-right": sgd_step(),
    "smoothed-figure-5": sgd_step(),
    "smoothed-tables-1-2-3": Tried(
        notions.Config((10,), (0.3,), (1.0,), (100,), (1.0, 3.0), compared=(4,)),
        {
            "records": ((5,), (8, 16), (20,)),
            "rates": ((0.01,), (0.5, 0.9), (0.99,)),
            "epsilons": ((0.1,), (2.0, 10.0), (0.5,)),
            "without_noise": ((50,), (100, 200), (1000,)),
            "without_noise_epsilons": ((0.0,), (0.5,), (2.0, 8.0)),
            "lost_rate": (0.0, 0.2, 0.9),
            "compared": ((3,), (4, 6), (10,)),
            "compared_epsilons": ((0.0,), (0.3, 2.0), (6.0,)),
            "compared_rate": (0.2, 0.5, 1.0),
            "distributions": ("history", "DC NE-2", "0.5"),
        },
    ),
    "smoothed-claims": Tried(
        smoothed_claims.Config(50, (1, 10), (0.1,), 0.5, (1, 3), pairs=20),
        {
            "records": (20, 100, 150),
            "drawn": ((2,), (5, 20), (1, 2, 40)),
            "above": ((0.001,), (0.5,), (0.01, 1.0)),
            "share": (0.1, 0.3, 0.9),
            "replacement": ((1,), (2, 5), (60,)),
            "replacement_epsilon": (0.0, 0.1, 4.0),
            "pairs": (5, 50, 100),
            "outputs": (2, 3, 10),
            "seed": (0, 1, 2),
        },
    ),
    "smoothed-theorem-2": Tried(
        runtime.Config((2, 3), (2, 3), (2, 3), (2,), 5_000),
        {
            "categories": ((3, 3), (2, 3), (3, 3)),
            "vertices": ((2, 2), (2, 4), (2, 3)),
            "records": ((1,), (3, 5), (2, 20)),
            "records_of_three": ((1,), (2, 3), (4,)),
            "definition": (0, 100, 20_000),
            "drawn_rate": (0.1, 0.7, 1.0),
            "epsilon": (0.0, 1.0, 4.0),
        },
    ),
    "smoothed-sgd-estimates": Tried(
        sgd_estimates.Config(batches=(3, 4), epsilons=(0.5, 2.0), databases=2, draws=1000),
        {
            "distributions": (
                "laplace:0,0.1",
                "gaussian:0,0.1 laplace:0.1,0.2",
                "gaussian:0.3,0.2",
            ),
            "share": (0.3, 0.5, 1.0),
            "batches": ((2,), (5, 4), (3, 4, 6)),
            "epsilons": ((0.0,), (0.1, 1.0, 7.0), (20.0,)),
            "databases": (1, 3, 4),
            "draws": (1, 10, 10**9),
            "confidence": (0.5, 0.9, 0.999),
            "bits": (2, 4, 9),
            "seed": (0, 2, 3),
        },
    ),
    "smoothed-sgd-bias": Tried(
        sgd_bias.Config(16, 4, (0.5, 1.0), (500,), 2),
        {
            "records": (9, 12, 25),
            "drawn": (2, 3, 6),
            "epsilons": ((0.0,), (0.25, 3.0), (20.0,)),
            "draws": ((100,), (10, 1000), (1, 2, 3, 4, 5)),
            "estimates": (1, 3, 4),
            "estimated": (("formula",), ("2 bits", "-127, 128"), ("4 bits",)),
            "seed": (0, 1, 2),
        },
    ),
    "workload-growth": Tried(
        workload_growth.Config(letters=(4, 5), closed=(4, 8)),
        {
            "workload": ("prefix", "range", "range"),
            "letters": ((2,), (3, 9), (21,)),
            "closed": ((2,), (3, 100), (16, 64, 256)),
            "epsilon": (0.1, 1.0, 6.0),
        },
    ),
    "workload-simulation": Tried(
        workload_simulation.Config(letters=4, people=(100, 1000), runs=20),
        {
            "workload": ("histogram", "range", "marginals"),
            "letters": (2, 3, 8),
            "epsilon": (0.1, 3.0, 6.0),
            "people": ((1,), (7, 10**7), (10, 100, 1000)),
            "runs": (2, 5, 50),
            "zipf": (0.0, 0.5, 4.0),
            "seed": (0, 1, 6),
        },
        files=("votes",),
    ),
    "workload-table": Tried(
        workload_table.Config(letters=4, tries=1, steps=20),
        {
            "workloads": (("prefix",), ("histogram", "marginals"), ("range", "prefix")),
            "letters": (2, 3, 8),
            "epsilons": ((3.0,), (0.5, 1.0, 2.0), (0.1, 6.0)),
            "tries": (2, 3, 4),
            "steps": (1, 5, 50),
            "seed": (1, 2, 3),
        },
    ),
    "workload-worst": Tried(
        workload_worst.Config(letters=(2, 4)),
        {
            "workload": ("histogram", "range", "marginals"),
            "letters": ((2,), (4, 8), (3, 5)),
            "epsilon": (0.1, 3.0, 6.0),
        },
    ),
}

# Benchmarks cost processes of their own: tried in test_benchmarks.py.
OWN_TESTS = {page.EXPERIMENT.name}


def cases() -> Iterator[Any]:
    """Each experiment at every other value, named by what is changed."""
    for name, tried in TRIED.items():
        for field, values in tried.others.items():
            for place, value in enumerate(values):
                yield pytest.param(name, {field: value}, id=f"{name}-{field}-{place}")


def test_every_experiment_and_every_parameter_is_tried() -> None:
    known = all_experiments()
    assert set(TRIED) | OWN_TESTS == set(known)
    for name, tried in TRIED.items():
        config: Any = known[name].quick
        assert type(tried.base) is type(config)
        named = {field.name for field in fields(config)}
        assert named == set(chain(tried.others, tried.files)), name
        for field, values in tried.others.items():
            assert len(values) == 3
            kinds, own = {type(value) for value in values}, getattr(config, field)
            assert len(kinds) == 1, (name, field)
            assert own is None or kinds == {type(own)}, (name, field)


def check_files(entry: Entry) -> None:
    """Record and tables can be written, and a line holds a row."""
    assert entry.outcome is not None
    json.dumps(record_of(entry), allow_nan=False)
    for table in entry.outcome.tables.values():
        assert to_csv(table).count("\n") == 1 + len(table.rows)


@pytest.mark.parametrize(("name", "changed"), list(cases()))
def test_runs_at_other_parameters(name: str, changed: dict[str, Any]) -> None:
    experiment: Experiment = all_experiments()[name]
    config = replace(TRIED[name].base, **changed)
    outcome = ran(experiment, config)
    assert experiment.plot(outcome).get_axes() or outcome.findings
    check_files(Entry(replace(experiment, config=config, quick=config), outcome, 1.0))
    if name == "majority-figure-10" and "voters" in changed:
        assert not [c for c in outcome.comparisons if "K = 11" in c.claim]


@pytest.mark.parametrize("name", list(TRIED))
def test_a_run_repeats_is_judged_by_rules_and_is_written_whole(name: str, tmp_path: Path) -> None:
    config = TRIED[name].base
    experiment = replace(all_experiments()[name], config=config, quick=config)
    first, second = ran(experiment), ran(experiment)
    assert first == second
    assert experiment.repeatable
    for finding in first.findings:
        assert finding.endswith((".", ")"))
        assert "\n" not in finding
    assert all(c.rule and c.identifier and c.certificate for c in first.comparisons)
    drawn = [a for a in experiment.plot(first).get_axes() if a.has_data()]
    assert drawn
    entry = Entry(experiment, first, 1.0)
    check_files(entry)
    write_outcome(entry, tmp_path)
    files = {f"{name}.{table}.csv" for table in first.tables}
    files |= {f"{name}.{kind}" for kind in ("json", "png", "pdf")}
    files |= {each.file for each in entry.refutations} | (
        {"verify.py"} if entry.refutations else set()
    )
    assert {path.name for path in tmp_path.iterdir()} == files
    assert min(path.stat().st_size for path in tmp_path.iterdir()) > 0
    record = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert set(record["tables"]) == set(first.tables)
    assert set(record["configuration"]) == {field.name for field in fields(config)}


@pytest.mark.parametrize("name", ["prior-figure-2", "prior-figure-4", "prior-figures-3-6-11"])
def test_another_seed_changes_the_tables(name: str) -> None:
    """The other seed of Figure 4 has an age group with a single letter."""
    experiment, config = all_experiments()[name], TRIED[name].base
    other = replace(config, seed=config.seed + 1)
    assert ran(experiment, config).tables != ran(experiment, other).tables


ROOT = Path(experiments.__file__).parent
MODULES = {
    ".".join(("experiments", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in ROOT.rglob("*.py")
}


def needed(module: str) -> set[str]:
    """Every module of the experiments that a module needs: written anywhere in it, or found."""
    found = imported(module)
    if module == "experiments.catalogue":
        found |= {*modules_with("EXPERIMENT"), *modules_with("EXPERIMENTS")}
    if module == "experiments.benchmarks.suite":
        found |= set(modules_with("BENCHMARKS"))
    return found & MODULES - {module}


def test_no_circle_of_imports() -> None:
    """At module level or inside functions; what the catalogue finds counts as imported by it."""
    graph = {module: needed(module) for module in MODULES}
    assert graph["experiments.registry"] <= {"experiments"}
    assert len(graph["experiments.catalogue"]) > 20
    TopologicalSorter(graph).prepare()
    looped = graph | {"experiments.registry": {"experiments.catalogue"}}
    with pytest.raises(CycleError):
        TopologicalSorter(looped).prepare()


def test_the_order_of_the_report() -> None:
    known = list(all_experiments().values())
    papers = list(dict.fromkeys(experiment.paper for experiment in known))
    assert papers == [*sorted(papers[:-1]), "Benchmarks"]
    items = [experiment.item for experiment in known if experiment.paper == "DaRRM"]
    assert items[:3] == ["Figure 2", "Figure 6 and Table 3", "Figure 7"]
    assert items[-7:] == [
        "Figure 10 and Table 4",
        "Tables 1, 6, 8 and 10",
        "Tables 2, 5, 7 and 9",
        "Claims",
        "Lemmas B.1 to B.11",
        "Algorithms 4 and 5, the sampled objective",
        "Lemma 5.1, the full and the reduced program",
    ]
