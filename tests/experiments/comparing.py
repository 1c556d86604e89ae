"""What the tests of comparisons share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.registry import Comparison, Experiment, Outcome, Table

Cells = dict[str, Any]


def ran(experiment: Experiment, config: Any = None) -> Outcome:
    return experiment.run(experiment.quick if config is None else config, lambda: None)


def edited(table: Table, change: Callable[[Cells], Cells] | None = None, **same: Any) -> Table:
    """The table with the same cells, or those that ``change`` returns, put into every row."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    changes = [same if change is None else change(dict(row)) for row in rows]
    return Table.of(table.caption, [row | new for row, new in zip(rows, changes, strict=True)])


def only(found: Sequence[Comparison], words: str) -> Comparison:
    """The only comparison whose claim holds these words."""
    (one,) = [comparison for comparison in found if words in comparison.claim]
    return one


def verdict(found: Sequence[Comparison], words: str) -> str:
    return only(found, words).verdict
