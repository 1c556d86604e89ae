"""``dpopt ledger``, and the options by which other commands write down what they release."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpopt._errors import ParameterError
from dpopt.cli.output import show, to_json

if TYPE_CHECKING:
    from dpopt.privacy import Guarantee
    from dpopt.privacy.ledger import Entry

Command = TypeVar("Command", bound=Callable[..., Any])


def ledger_options(default: str = "") -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of a ledger; see `Keeper`.

    Args:
        default: the ledger's path, for the help, if none is named; the command has --no-ledger.
    """
    told = f"  [{default}]" if default else ""
    options = [
        click.option(
            "--ledger",
            type=click.Path(path_type=Path),
            help=f"Where the release is written down; made if missing.{told}",
        ),
        *([click.option("--no-ledger", is_flag=True, help="Write nothing down.")] * bool(default)),
        click.option("--dataset", help="Your name of the data, by which it adds up.  [unnamed]"),
        click.option(
            "--budget-epsilon", type=float, help="Of a new ledger: most that a data set may spend."
        ),
        click.option("--budget-delta", type=float, help="With --budget-epsilon.  [0]"),
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class Keeper:
    """A ledger as the options of a command name it: all that one command releases is one entry.

    It is opened, or made, only when its command has checked its input and is about to draw.

    Attributes:
        times: how many equal releases the command makes.
    """

    def __init__(
        self,
        ledger: Path | None = None,
        no_ledger: bool = False,
        dataset: str | None = None,
        budget_epsilon: float | None = None,
        budget_delta: float | None = None,
        *,
        beside: Path | None = None,
        digest: str | None = None,
    ) -> None:
        """Take the options.

        Args:
            ledger: path; None for the default.
            no_ledger: whether nothing is to be written down.
            dataset: name of the data.
            budget_epsilon: of a new ledger.
            budget_delta: of a new ledger.
            beside: path of the default; None if there is none.
            digest: of the only design that the default is for.

        Raises:
            ParameterError: for options that do not go together.
        """
        from dpopt import _checks
        from dpopt.privacy import Guarantee
        from dpopt.privacy.ledger import UNNAMED

        if ledger is not None and no_ledger:
            raise ParameterError("give either --ledger or --no-ledger, not both.")
        if budget_delta is not None and budget_epsilon is None:
            raise ParameterError("budget_delta is given; give budget_epsilon with it.")
        self.times = 1
        self._path = None if no_ledger else ledger or beside
        self._digest = digest if ledger is None else None
        self._dataset = UNNAMED if dataset is None else dataset
        self._budget = None
        if budget_epsilon is not None:
            epsilon = _checks.real("budget_epsilon", budget_epsilon, 0.0)
            delta = _checks.real("budget_delta", budget_delta or 0.0, 0.0, 1.0, open_upper=True)
            self._budget = Guarantee(epsilon, delta)
        if self._path is None and self._budget is not None:
            raise ParameterError("budget_epsilon is given; without a ledger nothing keeps it.")
        self._said = ""
        self._entry: Entry | None = None

    def charge(self, guarantee: Guarantee, **given: Any) -> Entry:  # noqa: ANN401
        """Write all releases of the command down, when the first of them is about to be drawn.

        Args:
            guarantee: of each.
            given: see `dpopt.Ledger.charge`.

        Raises:
            ParameterError: if the ledger refuses.
        """
        if self._entry is None:
            given |= {"dataset": self._dataset, "count": self.times * given.get("count", 1)}
            self._entry = self._written(guarantee, given)
        return self._entry

    def _written(self, guarantee: Guarantee, given: dict[str, Any]) -> Entry:
        from dpopt.privacy.ledger import Entry

        if self._path is None:
            entry = Entry("", guarantee=guarantee, **given)
            each = " each" if entry.count > 1 else ""
            number = f"{entry.count:,} release{'s' if entry.count > 1 else ''}"
            self._said = (
                f"{number} of ({guarantee.epsilon:.6g}, {guarantee.delta:.6g})-DP{each} from data "
                f"set {self._dataset!r}; nothing was written down"
            )
            return entry
        from dpopt.ledger import Ledger

        if self._budget is not None and not os.path.lexists(self._path):
            self._require_room(self._budget, Entry("", guarantee=guarantee, **given))
        ledger = Ledger(self._path, self._budget, design=self._digest)
        entry = ledger.charge(guarantee, **given)
        self._said = ledger.statement(self._dataset)
        if ledger.releases(self._dataset) > 1:
            self._said += _why_voters(entry)
        return entry

    def _require_room(self, budget: Guarantee, entry: Entry) -> None:
        """Refuse what a new ledger would refuse, before it is made: its budget would stay."""
        from dpopt._numbers import digits, shown
        from dpopt.privacy.account import Account

        account = Account()
        account.add(entry)
        if account.allowed(budget):
            return
        spends, releases = entry.guarantee, "a release that is"
        if entry.count > 1:
            releases = f"{entry.count:,} releases, each of them"
        raise ParameterError(
            f"budget_epsilon is {shown(budget.epsilon)}, with a delta of {shown(budget.delta)}; "
            f"it must be enough for {releases} ({digits(spends.epsilon)}, {digits(spends.delta)})"
            "-DP; no ledger was made, and nothing was drawn."
        )

    def tell(self) -> None:
        """Say on standard error what was spent, if anything takes it."""
        if self._said:
            with suppress(OSError, ValueError):
                click.echo(f"{self._said}.", err=True)


def _why_voters(entry: Entry) -> str:
    """Return why votes are charged as they are, where the command line does not say more of them.

    A sentence after the total, without its full stop; nothing where the votes are known.
    """
    if entry.at_most is None or entry.composes is not None:
        return ""
    if entry.group is not None:
        return (
            ". Votes of the same voters may share randomness, so these are charged as all labels "
            "or as all voters, whichever is more: say --trained-once or --fresh"
        )
    return (
        ". Votes of the same voters may share randomness, and no name says which voters these are, "
        "so each release is charged as its labels or as all its voters, whichever is more: name "
        "the voters by --group, and say --trained-once, or say --fresh"
    )


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dataset", help="Only this data set.")
@click.option("--json", "as_json", is_flag=True, help="Print entries and totals as JSON.")
def ledger(path: Path, dataset: str | None, as_json: bool) -> None:
    """Show what was released, what it spends together, and what is left of the budget.

    PATH is a ledger, such as the gamma.json.ledger that lies beside gamma.json. One that was
    changed by hand is refused.

    Example: dpopt ledger gamma.json.ledger
    """
    from dpopt._numbers import shown
    from dpopt.ledger import Ledger
    from dpopt.privacy.ledger import name_of

    if not os.path.exists(path):  # noqa: PTH110 - a name that is too long is no file either
        raise ParameterError(f"path is {shown(str(path))}; there is no such ledger.")
    found = Ledger(path)
    if dataset is not None:
        dataset = name_of(dataset)
    entries = [entry for entry in found.entries() if dataset in (None, entry.dataset)]
    names = [name for name in found.datasets if dataset in (None, name)]
    if dataset is not None and not names:
        raise ParameterError(f"dataset is {dataset!r}; the ledger knows no release of it.")
    if as_json:
        told = found.to_dict()
        told["datasets"] = {name: told["datasets"][name] for name in names}
        show(to_json({**told, "entries": [entry.to_dict() for entry in entries]}))
        return
    lines = [
        f"{e.time}  {e.dataset}  {e.count:,} x ({e.guarantee.epsilon:.6g}, "
        f"{e.guarantee.delta:.6g})-DP  {e.what}"
        for e in entries
    ]
    limit = found.budget
    lines += [f"{found.statement(name)}." for name in names] or ["Nothing was released."]
    lines.append(
        "No budget."
        if limit is None
        else f"Budget of each data set: ({limit.epsilon:.6g}, {limit.delta:.6g})-DP."
    )
    show("\n".join(lines))
