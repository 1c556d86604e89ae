"""Every experiment of the catalogue: it repeats, is drawn, written and judged by stated rules.

At a small configuration, and at one in which every parameter is another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import experiments
from experiments.benchmarks import page
from experiments.catalogue import MODULES, all_experiments
from experiments.kept import Entry, record_of, to_csv, write_outcome
from experiments.parameters import Parameter, configured, parameters_of, parsed
from experiments.registry import Experiment, Outcome
from experiments.runner import Job, computed
from experiments.store import Store
from tests.experiments.comparing import ran, refusal
from tests.experiments.pictures import drawn
from tests.robustness.hostile import NIGHTLY

# NAME: a small configuration -> another value of each parameter.
TRIED = """
ensembles-digits-plain: voters=5 | queries=50 | seeds=2 | epsilon=0.5,2.0 | optimal=2.0 |
    most_solved=5 -> epsilon=0.1 | optimal= | priors=dirichlet:0.1 | most_solved=1 | voters=4,3 |
    queries=10 | seeds=1 | seed=1 | delta=1e-09
ensembles-digits-labels: voters=5 | queries=50 | seeds=2 | epsilon=1.0 | labels=1,10 |
    designed_voters=3 | designed_labels=2 -> epsilon=0.1 | labels=1 | voters=4,3 |
    queries=10 | seeds=1 | seed=1 | delta=1e-09 | designed_voters=2 | designed_labels= |
    designed_epsilon=2.0
ensembles-digits-private: digits=358 | epsilon=1.0 | allowance=1,3 | voters=5 | seeds=2 |
    draws=1 -> digits=3589 | teachers=response | epsilon=0.1 | allowance=1 | voters=4 |
    seeds=1 | seed=1 | draws=2
ensembles-mnist: datasets=mnist | allowance=3 | labels=1,100 -> datasets=fashion-mnist |
    allowance=1 | labels=1
majority-figure-2: voters=5 | draws=50 | repeats=2 | allowance=1.0,3.0 -> voters=3 |
    voter_delta=5e-06 | allowance=1.0 | delta=2e-05 | epsilon=0.02 | prior=beta:2,2 |
    curves=surrogate | draws=1 | repeats=3 | seed=0
majority-figure-6: voters=5 | draws=50 | repeats=2 | samples=1,3 -> voters=3 |
    voter_delta=1e-06 | samples=1 | slack=1e-06 | epsilon=0.02 | prior=beta:2,2 |
    curves=surrogate | draws=1 | repeats=3 | seed=0
majority-figure-7: voters=5 | draws=50 | repeats=2 | allowance=1.0,3.0 -> voters=3 |
    voter_delta=0.0001 | allowance=1.0 | delta=0.01 | epsilon=0.02 | prior=beta:2,2 |
    curves=surrogate | draws=1 | repeats=3 | seed=0
majority-figure-8: voters=5 | draws=50 | repeats=2 | allowance=1.0,3.0 -> voters=3 |
    voter_delta=0.0001 | allowance=1.0 | delta=0.01 | epsilon=0.02 | prior=beta:2,2 |
    curves=surrogate | draws=1 | repeats=3 | seed=0
majority-figure-9: voters=5 | allowance=3.0 -> voters=3 | epsilon=0.01 |
    voter_delta=1e-05 | allowance=1.0 | delta=1e-05 | priors=beta:2,2 | actual=beta:2,2
majority-priors: priors=uniform:0,1;beta:2,2 -> epsilon=0.01 |
    priors=common-uniform:0,1;uniform:0,1
majority-figure-10: epsilon=0.2676 -> epsilon=0.5 | delta=0.001 | voters=1
majority-tables-2-5-7-9: allowance=1.0 | epsilon=0.0892 -> allowance=2.5 |
    epsilon=0.0892,0.0852,1.0 | voter_delta=0.001 | queries=20,100 | slack=0.001
majority-tables-1-6-8-10: allowance=3 -> datasets=mnist | allowance=1 |
    queries=20 | draws=2 | seed=0
majority-claims: at_one=3,5 | doubled=3,5 -> epsilon=0.01 | at_one=3 | doubled=3
majority-labels: labels=1,6 | voters=3 | epsilon=0.5 | ballot_labels=2,12 | ballots=4 |
    ballot_epsilon=2.0 | ballot_delta=0.001 -> labels=2 | voters=5 | epsilon=0.2 |
    total_epsilon=1.0 | total_delta=0.001 | ballot_labels=3 | ballots=5 | classes=2 |
    ballot_epsilon=1.0 | ballot_delta=1e-05
majority-joint-labels: voters=3 | allowance=2 | epsilon=0.5 -> labels=2 | voters=5 |
    allowance=1,3 | epsilon=2.0,3.0
majority-corner-sets: voters=3,5 | voters_approximate=3 | allowance=1.0 ->
    voters=7,15 | voters_approximate=5 | epsilon=0.5 | voter_delta=0.001 |
    allowance=1.0,2.0
majority-objective: voters=3 | allowance=1.0 | draws=50 | repeats=2 -> voters=5 |
    allowance=2.0 | epsilon=0.01 | voter_delta=1e-08 | points=1 | draws=1 | repeats=3 | seed=0
roo-figure-1: records=12 | categories=3 | rules=journal | epsilons=0.1 -> records=2 |
    categories=5 | rules=conference | epsilons=0.05,0.1,0.2,0.5,1.0
roo-figure-2: epsilon=0.5 | categories=5 | gammas=0.05 | alphabets=3 | smallest=50 | largest=400 |
    points=3 -> epsilon=0.05 | categories=2 | gammas=0.01,0.05 | gamma=0.01 | alphabets= |
    smallest=5
    | largest=60 | points=1
roo-conference-figures-2-3: records=50 | categories=3 | points=3 -> records=4 | categories=4 |
    epsilon=0.01 | width=0.2 | lowest=0.001 | highest=1.0 | points=1
roo-table-1: records=100 | categories=3 | epsilons=0.5 | accuracies=0.1,0.05 ->
    records=10 | categories=2 | epsilons=0.3 | accuracies=0.3
roo-audit-map: categories=2 | epsilons=0.5,1.0 | minima=1,5 -> categories=3 | epsilons=0.3 |
    minima=2
roo-program: records=5,12 | categories=3 | epsilons=0.3 | cvxpy_records= ->
    records=1 | categories=2 | epsilons=0.02 | cvxpy_records=1 | tolerance=1e-06
roo-utility: categories=3 | records=2,4 | draws=50 -> categories=2 | epsilons=0.5 | records=3 |
    draws=10 | seed=0
prior-figure-2: categories=6 | runs=3 | points=4 -> categories=2 | epsilon=0.5 |
    runs=2 | points=2 | seed=0
prior-figure-4: users=30 | movies=40 -> epsilon=0.5 | groups=25-34 | prior=average | users=5 |
    movies=18 | seed=0
prior-digits: digits=0,1 -> epsilon=0.5 | digits=7 | prior=average
prior-figures-3-6-11: epsilon=8.0 | minimum_clicks=3 | minimum_users=5 | rows=4000 ->
    groups=C18 | user=device_ip | prior=total | epsilon=1.0 | sites=2 | minimum_clicks=1 |
    minimum_users=1 | rows=500 | seed=0
prior-example-1:  -> public=0.001 | user=0.0 | epsilon=0.1 | points=2
prior-kernels: categories=3 | epsilon=1.0 | training=10 | held_out=50 | sizes=5 -> categories=2 |
    epsilon=0.5 | training=5 | held_out=10 | sizes=2 |
    seed=0
prior-program: categories=2,3 | priors=random | epsilon=1.0 | second_categories=2 | pmfs=5 |
    points=3
    -> categories=2 | priors=tiny | epsilon=0.1 | backend=cvxpy | second=cvxpy | second_categories=1
    | pmfs=1 | points=2 | seed=0
smoothed-figure-1:  -> thresholds=0.5 | lost_rates=0.0001
smoothed-figure-3: thresholds=0.51 | lost_rates=0.002 -> thresholds=0.5 | lost_rates=0.0001
smoothed-figure-2-left: lost_rates=0.01 | records=300,600 | epsilons=0.5,1.0 ->
    distributions=history | beside= | lost_rates=0.05 | records=200,400,800 | epsilons=0.5,1.0,3.0
smoothed-figure-4: distributions=units | beside=DC NE-2 | lost_rates=0.01 | records=300,600 |
    epsilons=0.5,1.0,2.0,3.0,4.0 -> distributions=history |
    beside=units | lost_rates=0.05 | records=200,400,800 | epsilons=0.5,1.0,3.0
smoothed-figure-2-right: batches=3,4 | epsilons=0.5,2.0 | shares=0.0,1.0 | databases=2 ->
    batches=2,3 | epsilons=0.0 | shares=1.0 | databases=3 | seed=0
smoothed-figure-5: batches=3,4 | epsilons=0.5,2.0 | shares=0.0,1.0 | databases=2 ->
    batches=2,3 | epsilons=0.0 | shares=1.0 | databases=3 | seed=0
smoothed-tables-1-2-3: records=10 | epsilons=1.0 | without_noise=100 | compared=4
    -> records=5 | epsilons=0.1 | without_noise=50 |
    lost_rate=0.0 | compared=3
smoothed-claims: records=50 | drawn=1,10 | above=0.1 | replacement=1,3 | pairs=20 -> records=20
    | drawn=2 | above=0.001 | replacement=1 | pairs=5 | seed=0
smoothed-theorem-2: records=2,3 | records_of_three=2 | definition=5000 -> records=1 |
    records_of_three=1 | definition=0
smoothed-programs: records=4 | epsilons=0.5 -> records=3,5 | epsilons=0.0,2.0 | shares=0.2 |
    tolerance=1e-06
smoothed-sgd-estimates: batches=3,4 | epsilons=0.5,2.0 | databases=2 | draws=1000 ->
    batches=2 | epsilons=0.0 | databases=1 | draws=1 | seed=0
smoothed-sgd-bias: records=16 | drawn=4 | epsilons=0.5,1.0 | draws=500 | estimates=2 ->
    records=9 | drawn=2 | epsilons=0.0 | draws=100 | estimates=1 | seed=0
noise-table: sensitivities=1,2 | epsilons=1.0 | deltas=0.0,0.01 -> sensitivities=1 | epsilons=0.5 |
    deltas=0.0 | loss=squared
noise-releases: releases=2 -> releases=3 | epsilon=8.0 | delta=0.01
workload-growth: categories=4,5 | closed=4,8 -> workload=range | categories=2 | closed=2 |
    epsilon=0.1
workload-simulation: categories=4 | people=100,1000 | runs=20 -> workload=histogram | categories=2 |
    epsilon=0.1 | people=7,1000000 | runs=5 | seed=0
workload-table: categories=4 | steps=20 -> workloads=prefix | categories=2 | epsilons=3.0 | tries=2
    |
    steps=1 | seed=1
workload-worst: categories=2,4 -> workload=histogram | categories=2 | epsilon=0.1
"""

# Values that others, or the setting that they belong to, do not allow.
REFUSED = """
ensembles-digits-plain: queries=1700 | priors=none
ensembles-digits-private: digits=35 | allowance=99
majority-figure-2: voters=4 | voters=503 | allowance=12.0 | delta=1e-9 | prior=normal:0,1 |
    prior=point:0.1,0.2 | curves=double
majority-figure-6: samples=36 | slack=0.0
majority-figure-9: voters=10 | allowance=20.0 | actual=uniform | priors=point:0.5
majority-figure-10: delta=0.1,0.2,0.3 | epsilon=0.5,0.5
majority-tables-2-5-7-9: slack=0.0
majority-priors: priors=uniform:0,1 | priors=uniform:0,1;gauss:1 |
    epsilon=0.0
majority-joint-labels: allowance=4
majority-corner-sets: voters=105 | voters_approximate=17 | voter_delta=0.0 | voters=4
majority-objective: voters=4 | epsilon=-1
roo-figure-1: rules=journal,conference | epsilons=-1.0
roo-figure-2: gammas=0.4
roo-table-1: accuracies=0.5 | categories=1
smoothed-claims: drawn=200
smoothed-figure-5: batches=6
smoothed-sgd-bias: drawn=300
smoothed-figure-2-left: distributions=XX | records=5
"""

# Benchmarks cost processes of their own: tried in test_benchmarks.py.
OWN_TESTS = {page.run.name}
# Parameters of which the only other value is a file of the user's own.
FILES = {"path", "votes"}


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each name of a table, and what stands behind it in all its lines."""
    for block in re.split(r"\n(?=\S)", text.strip()):
        name, _, settings = " ".join(block.split()).partition(":")
        yield name, settings


def settings_of(text: str) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in re.split(r" \|(?: |$)", text.strip()) if part]
    return [(name, value) for name, _, value in parts]


CASES = dict(blocks(TRIED))


@cache
def tried(name: str) -> tuple[Any, dict[str, Any]]:
    """A configuration that runs fast, and other values of all its parameters."""
    experiment = all_experiments()[name]
    first, second = (parsed(experiment, dict(settings_of(t))) for t in CASES[name].split("->"))
    return configured(experiment, False, first), second


# Drawn with other parameters and run a second time, too; at night all.
DRAWN = [*CASES] if NIGHTLY else [*CASES][::5]
# Written, too: a figure as PDF takes most of a run.
WRITTEN = [*CASES] if NIGHTLY else [*CASES][::24]


def test_every_experiment_and_every_parameter_is_tried() -> None:
    known = all_experiments()
    assert set(CASES) | OWN_TESTS == set(known)
    for name in CASES:
        base, others = tried(name)
        names = {field.name for field in fields(base)}
        assert set(others) == names - FILES | set(others) & FILES, name
        for field, value in others.items():
            assert value != getattr(base, field), (name, field)


def check_files(entry: Entry) -> None:
    """Record and tables can be written, and a line holds a row."""
    assert entry.outcome is not None
    json.dumps(record_of(entry), allow_nan=False)
    for table in entry.outcome.tables.values():
        assert to_csv(table).count("\n") == 1 + len(table.rows)


@pytest.mark.sample(17)
@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_runs_with_every_parameter_changed(name: str) -> None:
    experiment: Experiment = all_experiments()[name]
    base, others = tried(name)
    config = replace(base, **others)
    outcome = ran(experiment, config)
    if name in DRAWN:
        drawn(experiment, outcome, ("icml",))
    check_files(Entry(replace(experiment, config=config, quick=config), outcome, 1.0))
    if name == "majority-figure-10":
        assert not [c for c in outcome.comparisons if "K = 11" in c.claim]


def small(name: str) -> Experiment:
    """The experiment with its small configuration."""
    config, _ = tried(name)
    return replace(all_experiments()[name], config=config, quick=config)


def beyond(parameter: Parameter) -> Iterator[str]:
    """Texts that a parameter's own annotation does not allow."""
    scalar = parameter._scalar
    yield from [] if scalar["type"] == "string" and "enum" not in scalar else ["nonsense"]
    steps = {"minimum": -1, "exclusiveMinimum": 0, "maximum": 1, "exclusiveMaximum": 0}
    yield from (str(scalar[bound] + step) for bound, step in steps.items() if bound in scalar)
    if parameter._schema.get("minItems"):
        yield ""


def attempted(experiment: Experiment, field: str, text: str) -> Outcome:
    config = configured(experiment, False, parsed(experiment, {field: text}))
    return computed(Job(experiment, config), Store(None)).outcome or Outcome({})


def refused(experiment: Experiment, field: str, text: str) -> None:
    """By its annotation, or by the package's own settings as soon as the run makes them."""
    message = refusal(attempted, experiment, field, text)
    assert re.match(r"[\w ]+ (is|has|holds?) |[\w-]+ cannot be run with ", message), message


def test_values_beyond_an_annotation_are_refused() -> None:
    for name in CASES:
        experiment = all_experiments()[name]
        for field, parameter in parameters_of(experiment).items():
            for text in beyond(parameter):
                refused(experiment, field, text)


def test_parameters_that_make_no_sense_are_refused_in_one_sentence() -> None:
    for name, text in list(blocks(REFUSED)):
        for field, value in settings_of(text):
            refused(small(name), field, value)


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_run_repeats_and_is_judged_by_rules(name: str, tmp_path: Path) -> None:
    experiment = small(name)
    first = ran(experiment)
    if name in DRAWN and "seed" in {field.name for field in fields(experiment.quick)}:
        assert ran(experiment) == first
    assert experiment.repeatable
    assert all(c.rule and c.identifier and c.certificate for c in first.comparisons)
    assert [a for a in drawn(experiment, first, ("neurips",)).get_axes() if a.has_data()]
    entry = Entry(experiment, first, 1.0)
    check_files(entry)
    if name not in WRITTEN:
        return
    write_outcome(entry, tmp_path)
    files = {f"{name}.{table}.csv" for table in first.tables}
    files |= {f"{name}.{kind}" for kind in ("json", "png", "pdf", "txt")}
    proofs = {each.file for each in entry.refutations}
    files |= {"verify.py", *proofs} if proofs else set()
    assert {path.name for path in tmp_path.iterdir()} == files
    assert min(path.stat().st_size for path in tmp_path.iterdir()) > 0
    record = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert set(record["tables"]) == set(first.tables)
    assert set(record["configuration"]) == {field.name for field in fields(experiment.quick)}


@pytest.mark.parametrize("name", ["prior-figure-2", "prior-figure-4", "prior-figures-3-6-11"])
def test_another_seed_changes_the_tables(name: str) -> None:
    """The other seed of Figure 4 has an age group with a single category."""
    experiment, config = all_experiments()[name], tried(name)[0]
    other = replace(config, seed=config.seed + 1)
    assert ran(experiment, config).tables != ran(experiment, other).tables


def test_every_module_that_registers_is_in_the_catalogue() -> None:
    root = Path(experiments.__file__).parent
    registers = re.compile(r"^ *@?experiment\(", re.MULTILINE)
    found = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if path.name != "registry.py" and registers.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(MODULES)
