"""``dpopt ledger``, and the options by which other commands write down what they release."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpopt._errors import ParameterError
from dpopt._kinds import described
from dpopt._numbers import shown
from dpopt.cli.options import File, Flag, command, parameters
from dpopt.cli.output import show_record

if TYPE_CHECKING:
    from dpopt.ledger import Ledger, Mechanism


@dataclass(frozen=True)
class Keeper:
    """A ledger as the options of a command name it: all that one command releases is one entry.

    Attributes:
        ledger: A ledger, where the release is written down before it is drawn; see dpopt ledger.
        dataset: with --ledger: your name of the data.  [unnamed]
        fresh: see `dpopt.Ledger.charge`.
    """

    ledger: Path | None = None
    dataset: str | None = None
    fresh: bool | None = None

    def charge(self, mechanism: Mechanism, count: int = 1) -> None:
        """Write all releases of the command down, before the first of them is drawn."""
        if self.ledger is not None:
            opened(self.ledger).charge(mechanism, self._name, count=count, fresh=self.fresh)
            return
        for name in ("dataset", "fresh"):
            if getattr(self, name) is not None:
                raise ParameterError(f"{name} is given and ledger is not; it needs one.")

    def tell(self) -> None:
        """Say on standard error what was spent of the data set, if anything takes it."""
        if self.ledger is not None:
            said = opened(self.ledger).statement(self._name)
            with suppress(OSError, ValueError):
                click.echo(f"{said}.", err=True)

    @property
    def _name(self) -> str:
        return "unnamed" if self.dataset is None else self.dataset


# The options of every command that may write a release down.
LEDGER = parameters(described(Keeper).fields[:2])


def opened(path: Path) -> Ledger:
    """Return the ledger at a path."""
    from dpopt.ledger import Ledger

    if not os.path.exists(path):  # noqa: PTH110 - a name that is too long is no file either
        raise ParameterError(
            f"ledger is {shown(str(path))}; there is none. Begin one with dpopt ledger PATH --new."
        )
    return Ledger(path)


@command()
def ledger(
    path: File,
    new: Flag = False,
    budget_epsilon: float | None = None,
    budget_delta: float | None = None,
    dataset: str | None = None,
    json: Flag = False,
) -> None:
    """Show what was released, what it spends together, and what is left of the budget.

    PATH is a ledger. With --new one is begun, with a budget for each data set if --budget-epsilon
    is given; the budget stays.

    Args:
        path: of the ledger.
        new: begin one, where there is no file.
        budget_epsilon: with --new: most that a data set may spend.
        budget_delta: with --budget-epsilon.  [0]
        dataset: only this data set.
        json: print entries and totals as JSON.

    Example:
        dpopt ledger study.ledger --new --budget-epsilon 1
    """
    if budget_epsilon is None and budget_delta is not None:
        raise ParameterError("budget_delta is given; give budget_epsilon with it.")
    if budget_epsilon is not None and not new:
        raise ParameterError("budget_epsilon is given; it is for a new ledger, with --new.")
    from dpopt import _checks
    from dpopt.ledger import Ledger, name_of
    from dpopt.privacy.guarantee import Guarantee, in_short

    if new:
        if os.path.lexists(path):
            raise ParameterError(f"path is {str(path)!r}; there is a file already, which stays.")
        limit = None
        if budget_epsilon is not None:
            epsilon = _checks.real("budget_epsilon", budget_epsilon, 0.0)
            delta = _checks.real("budget_delta", budget_delta or 0.0, 0.0, 1.0, open_upper=True)
            limit = Guarantee(epsilon, delta)
        Ledger(path, limit)
    ledger = opened(path)
    names = [name for name in ledger.datasets if dataset is None or name == name_of(dataset)]
    if dataset is not None and not names:
        raise ParameterError(f"dataset is {dataset!r}; the ledger knows no release of it.")
    entries, limit = ledger.entries(dataset), ledger.budget
    datasets = dict[str, object]()
    for name in names:
        by, spent = ledger.total(name)
        remaining = ledger.left(name)
        datasets[name] = {"composition": by, "total": asdict(spent), "epsilon_left": remaining}
    budget = None if limit is None else asdict(limit)
    listed = [asdict(entry) for entry in entries]
    lines = [
        f"{e.time}  {e.dataset}  {e.count:,} x {in_short(e.guarantee)}, in all {e.folds:,} x "
        f"{in_short(e.spent)}  {e.what}"
        for e in entries
    ]
    lines += [f"{ledger.statement(name)}." for name in names] or ["Nothing was released."]
    lines.append("No budget." if limit is None else f"Budget of each data set: {in_short(limit)}.")
    show_record(json, {"budget": budget, "datasets": datasets, "entries": listed}, lines)
