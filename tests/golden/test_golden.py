"""Values, bounds and tables are those that are kept: they change only on purpose.

``python -m tests.golden --write`` keeps others, and says what moved; see `tests.golden.tables` for
those of the experiments.
"""

from __future__ import annotations

import json

import pytest

from experiments.catalogue import all_experiments
from tests.golden.compare import VALUES, moved, numbers_of, read
from tests.golden.settings import CASES
from tests.golden.tables import TABLES, changes, digest, of_item, outcome_of

KEPT, KEPT_TABLES = read(VALUES), read(TABLES)
# Items that take a second at most; the others are compared by ``python -m tests.golden.tables``.
QUICK_ITEMS = (
    *("majority-figure-9", "majority-figure-10", "majority-tables-2-5-7-9"),
    *("prior-digits", "prior-example-1", "prior-figure-2", "prior-figure-4"),
    *("roo-figure-1", "roo-program", "smoothed-figure-1", "smoothed-claims", "workload-worst"),
)


@pytest.mark.every_case
@pytest.mark.slow_after(40)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.nightly] * c.slow) for n, c in CASES.items()]
)
def test_a_value(name: str) -> None:
    found = json.loads(json.dumps(numbers_of(CASES[name])))
    assert not list(moved(KEPT[name], found, CASES[name].tolerance))


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize("item", QUICK_ITEMS)
def test_an_item(item: str) -> None:
    found = json.loads(json.dumps(digest(outcome_of(all_experiments()[item]), item)))
    assert not list(changes(of_item(KEPT_TABLES, item), found))


def test_nothing_is_kept_of_what_is_gone() -> None:
    assert KEPT.keys() == CASES.keys()
    items = {name.partition(" | ")[0] for name in KEPT_TABLES}
    assert items == {name for name, each in all_experiments().items() if each.repeatable}


KNOWN = {"value": 0.5, "bound": 0.5, "gap": 1e-13, "private": True, "gamma": [0.0, 1.0]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 0.5 + 1e-8, "bound": 0.5 + 1e-8},
        {"bound": 0.5 + 1e-8, "gap": 1e-8},
        {"bound": 0.5 + 1e-8},
        {"gap": -1e-8, "bound": 0.5 - 1e-8},
        {"gap": None, "bound": None},
        {"private": False},
        {"gamma": [0.0, 0.999]},
        {"gamma": [0.0]},
        {"argmax": [1]},
    ],
)
def test_what_moved_is_told(wrong: dict[str, object]) -> None:
    assert list(moved(KNOWN, {**KNOWN, **wrong}, 1e-9))


def test_what_moved_within_limits_is_not() -> None:
    found = {"value": 0.5 + 1e-11, "bound": 0.5 + 1e-11, "gap": 0.0, "gamma": [1e-8, 1.0]}
    assert not list(moved(KNOWN, {**KNOWN, **found}, 1e-9))
