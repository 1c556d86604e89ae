"""What the tests of experiments share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dpopt import ParameterError
from experiments.registry import Comparison, Experiment, Outcome, Table, telling

Cells = dict[str, Any]


def ran(experiment: Experiment, config: Any = None) -> Outcome:
    """The outcome of a run, by default the quick one, whose bar ends at its end."""
    told = [0, 0]

    def bar(done: int, more: int) -> None:
        told[0] += done
        told[1] += more

    with telling(bar):
        outcome = experiment(config)
    assert told[0] == told[1]
    return outcome


def exit_code(main: Callable[[Sequence[str]], object], arguments: Sequence[str]) -> int:
    """The code with which a command ends."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def refusal(call: Callable[..., object], *given: Any, **named: Any) -> str:
    """The one sentence in which a call is refused."""
    with pytest.raises(ParameterError) as caught:
        call(*given, **named)
    message = str(caught.value)
    assert message.endswith((".", "?"))
    assert "\n" not in message
    return message


def edited(table: Table, change: Cells | Callable[[Cells], Cells]) -> Table:
    """The table with other cells in every row: the same ones, or those that ``change`` returns."""
    changed = [row | (change(row) if callable(change) else change) for row in table.records]
    return Table.of(changed, caption=table.caption)


def only(found: Sequence[Comparison], words: str) -> Comparison:
    """The only comparison whose claim holds these words."""
    (one,) = [comparison for comparison in found if words in comparison.claim]
    return one


def verdict(found: Sequence[Comparison], words: str) -> str:
    return only(found, words).verdict
