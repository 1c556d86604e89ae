"""``dpopt ledger``, and the options by which other commands write down what they release."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from dpopt._errors import ParameterError
from dpopt.cli.output import show, to_json

if TYPE_CHECKING:
    from dpopt.ledger import Mechanism

Command = TypeVar("Command", bound=Callable[..., Any])


def ledger_options(command: Command) -> Command:
    """Give a command the options of a ledger; see `Keeper`."""
    told = "A ledger, where the release is written down before it is drawn; see dpopt ledger."
    option = click.option("--dataset", help="With --ledger: your name of the data.  [unnamed]")
    return click.option("--ledger", type=click.Path(path_type=Path), help=told)(option(command))


class Keeper(NamedTuple):
    """A ledger as the options of a command name it: all that one command releases is one entry.

    Attributes:
        ledger: path; None for no ledger.
        dataset: name of the data.
        fresh: see `dpopt.Ledger.charge`.
    """

    ledger: Path | None
    dataset: str | None
    fresh: bool | None = None

    def charge(self, mechanism: Mechanism, count: int = 1) -> None:
        """Write all releases of the command down, before the first of them is drawn.

        Raises:
            ParameterError: if there is no such ledger, or the options do not go together.
            BudgetError: if it refuses.
        """
        if self.ledger is None:
            for name in ("dataset", "fresh"):
                if getattr(self, name) is not None:
                    raise ParameterError(f"{name} is given and ledger is not; it needs one.")
            return
        opened(self.ledger).charge(mechanism, self._name, count=count, fresh=self.fresh)

    def tell(self) -> None:
        """Say on standard error what was spent of the data set, if anything takes it."""
        if self.ledger is not None:
            said = opened(self.ledger).statement(self._name)
            with suppress(OSError, ValueError):
                click.echo(f"{said}.", err=True)

    @property
    def _name(self) -> str:
        return "unnamed" if self.dataset is None else self.dataset


def opened(path: Path) -> Any:  # noqa: ANN401
    """Return the ledger at a path.

    Raises:
        ParameterError: if there is none: a name that is mistyped begins no other one.
    """
    from dpopt._numbers import shown
    from dpopt.ledger import Ledger

    if not os.path.exists(path):  # noqa: PTH110 - a name that is too long is no file either
        raise ParameterError(
            f"ledger is {shown(str(path))}; there is none. Begin one with dpopt ledger PATH --new."
        )
    return Ledger(path)


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--new", is_flag=True, help="Begin one, where there is no file.")
@click.option("--budget-epsilon", type=float, help="With --new: most that a data set may spend.")
@click.option("--budget-delta", type=float, help="With --budget-epsilon.  [0]")
@click.option("--dataset", help="Only this data set.")
@click.option("--json", "as_json", is_flag=True, help="Print entries and totals as JSON.")
def ledger(
    path: Path,
    new: bool,
    budget_epsilon: float | None,
    budget_delta: float | None,
    dataset: str | None,
    as_json: bool,
) -> None:
    """Show what was released, what it spends together, and what is left of the budget.

    PATH is a ledger. With --new one is begun, with a budget for each data set if --budget-epsilon
    is given; the budget stays.

    Example: dpopt ledger study.ledger --new --budget-epsilon 1
    """
    from dpopt import _checks
    from dpopt.ledger import Ledger, name_of, told
    from dpopt.privacy import Guarantee

    if budget_epsilon is None and budget_delta is not None:
        raise ParameterError("budget_delta is given; give budget_epsilon with it.")
    if budget_epsilon is not None and not new:
        raise ParameterError("budget_epsilon is given; it is for a new ledger, with --new.")
    if new and os.path.lexists(path):
        raise ParameterError(f"path is {str(path)!r}; there is a file already, which stays.")
    if new:
        limit = None
        if budget_epsilon is not None:
            epsilon = _checks.real("budget_epsilon", budget_epsilon, 0.0)
            delta = _checks.real("budget_delta", budget_delta or 0.0, 0.0, 1.0, open_upper=True)
            limit = Guarantee(epsilon, delta)
        Ledger(path, limit)
    found = opened(path)
    names = [name for name in found.datasets if dataset is None or name == name_of(dataset)]
    if dataset is not None and not names:
        raise ParameterError(f"dataset is {dataset!r}; the ledger knows no release of it.")
    entries = found.entries(dataset)
    if as_json:
        show(to_json(_plain(found, names, entries)))
        return
    lines = [
        f"{e.time}  {e.dataset}  {e.count:,} x {told(e.guarantee)}, in all {e.folds:,} x "
        f"{told(e.spent)}  {e.what}"
        for e in entries
    ]
    lines += [f"{found.statement(name)}." for name in names] or ["Nothing was released."]
    limit = found.budget
    lines.append("No budget." if limit is None else f"Budget of each data set: {told(limit)}.")
    show("\n".join(lines))


def _plain(found: Any, names: list[str], entries: list[Any]) -> dict[str, Any]:  # noqa: ANN401
    """Return budget, totals and entries as plain values."""
    from dataclasses import asdict

    totals = {name: found.total(name) for name in names}
    return {
        "budget": None if found.budget is None else asdict(found.budget),
        "datasets": {
            name: {"composition": by, "total": asdict(spent), "epsilon_left": found.left(name)}
            for name, (by, spent) in totals.items()
        },
        "entries": [asdict(entry) for entry in entries],
    }
