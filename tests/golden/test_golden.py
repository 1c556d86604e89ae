"""Values, bounds and tables are those that are kept: they change only on purpose.

``python -m tests.golden --write`` keeps others, and says what moved; see `tests.golden.tables` for
those of the experiments.
"""

from __future__ import annotations

import json

import pytest

from experiments.catalogue import all_experiments
from tests.golden.compare import VALUES, differences, moved, numbers_of, read
from tests.golden.settings import CASES
from tests.golden.tables import TABLES, TOLERANCE, digest

KEPT, KEPT_TABLES = read(VALUES), read(TABLES)
# Items that take a second at most; the others are compared by ``python -m tests.golden.tables``.
QUICK_ITEMS = (
    *("majority-figure-9", "majority-figure-10", "majority-tables-2-5-7-9"),
    *("prior-digits", "prior-example-1", "prior-figure-2", "prior-figure-4"),
    *("roo-figure-1", "roo-program", "smoothed-figure-1", "smoothed-claims", "workload-worst"),
)
# Names of cases that are no slow ones, by what stands before the first "/".
SUBJECTS = {
    subject: [name for name in CASES if name.startswith(f"{subject}/") and not CASES[name].slow]
    for subject in dict.fromkeys(name.partition("/")[0] for name in CASES)
}


def told(name: str) -> list[str]:
    """What moved of a case."""
    found = json.loads(json.dumps(numbers_of(CASES[name])))
    return [f"{name}: {line}" for line in moved(KEPT[name], found, CASES[name].tolerance)]


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_values(subject: str) -> None:
    assert [line for name in SUBJECTS[subject] for line in told(name)] == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.slow])
def test_a_slow_value(name: str) -> None:
    assert told(name) == []


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("item", QUICK_ITEMS)
def test_an_item(item: str) -> None:
    experiment = all_experiments()[item]
    found = json.loads(json.dumps(digest(experiment.run(experiment.quick), item)))
    kept = {name: value for name, value in KEPT_TABLES.items() if name.startswith(f"{item} | ")}
    assert list(differences(kept, found, TOLERANCE)) == []


def test_nothing_is_kept_of_what_is_gone() -> None:
    assert KEPT.keys() == CASES.keys()
    items = {name.partition(" | ")[0] for name in KEPT_TABLES}
    assert items == {name for name, each in all_experiments().items() if each.repeatable}
