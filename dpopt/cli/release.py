"""``dpopt release``, ``sample``, ``mode``: what is drawn. ``ledger``: what all of it spends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dpopt._errors import ParameterError
from dpopt._kinds import described
from dpopt._numbers import shown, typed_rational
from dpopt.cli.options import File, Flag, TextOrFile, command, parameters
from dpopt.cli.output import show_draw, show_record
from dpopt.files import contents, why_unread

if TYPE_CHECKING:
    from dpopt.ledger import Ledger
    from dpopt.shape import Design


@dataclass(frozen=True)
class _Keeper:
    """A ledger as the options of a command name it: all that one command releases is one entry.

    Attributes:
        ledger: A ledger, where the release is written down before it is drawn; see dpopt ledger.
        dataset: with --ledger: your name of the data.  [unnamed]
        fresh: see `dpopt.Ledger.charge`.
    """

    ledger: Path | None = None
    dataset: str | None = None
    fresh: bool | None = None

    def charge(self, mechanism: Design, count: int = 1) -> None:
        """Write all releases of the command down, before the first of them is drawn."""
        if self.ledger is not None:
            _opened(self.ledger).charge(mechanism, self._name, count=count, fresh=self.fresh)
            return
        for name in ("dataset", "fresh"):
            if getattr(self, name) is not None:
                raise ParameterError(f"{name} is given and ledger is not; it needs one.")

    def tell(self) -> None:
        """Say on standard error what was spent of the data set, if anything takes it."""
        if self.ledger is not None:
            said = _opened(self.ledger).statement(self._name)
            with suppress(OSError, ValueError):
                click.echo(f"{said}.", err=True)

    @property
    def _name(self) -> str:
        return "unnamed" if self.dataset is None else self.dataset


# The options of every command that may write a release down.
_LEDGER = parameters(described(_Keeper).fields[:2])


def _opened(path: Path) -> Ledger:
    """Return the ledger at a path."""
    from dpopt.ledger import Ledger

    if not os.path.exists(path):  # noqa: PTH110 - a name that is too long is no file either
        raise ParameterError(
            f"ledger is {shown(str(path))}; there is none. Begin one with dpopt ledger PATH --new."
        )
    return Ledger(path)


@command(
    *_LEDGER,
    click.Option(
        ["--trained-once/--fresh", "trained_once"],
        default=None,
        help="With --ledger, of a vote: whether voters were trained once, or every vote was drawn "
        "afresh.  [what covers both is written down]",
    ),
)
def release(
    file: File,
    input: TextOrFile | None = None,
    counts: TextOrFile | None = None,
    distribution: TextOrFile | None = None,
    json: Flag = False,
    **keeping: Any,  # noqa: ANN401
) -> None:
    """Release from a saved mechanism, once for each query, with the system's randomness.

    With --ledger it is written down before anything is drawn, and refused beyond the budget; what
    all releases from the data set spend so far is printed on standard error.

    Args:
        file: the mechanism.
        input: what the mechanism takes: votes 1,0,1,... of one query (majority, plurality), the
            counts of all categories (min-count), inputs, by name if they have names (kernel,
            public prior); or a file, a query a line.
        counts: for a plurality or one category of records, how many there are of each class
            instead; or a file, a query a line.
        distribution: for a kernel, the user's p instead: counts, decimals or fractions such as 1/3,
            in the order of the inputs; or a file. The user's own category is drawn from it first.
        json: print what is released as JSON.
        keeping: the fields of a `_Keeper`, trained_once for its opposite, fresh.

    Example:
        dpopt release gamma.json --input 1,1,1,0,0
    """
    if sum(value is not None for value in (input, counts, distribution)) > 1:
        raise ParameterError("give either --input or --counts or --distribution, one of them.")
    import numpy as np

    from dpopt.plurality.setting import Plurality
    from dpopt.public_prior import draw_own_category
    from dpopt.roo import CategorySetting, Tally
    from dpopt.shape import load

    mechanism = load(file)
    once = keeping.pop("trained_once", None)
    keeper = _Keeper(**keeping, fresh=None if once is None else not once)
    setting, p, labels = mechanism.setting, None, None
    if distribution is not None:
        what = "counts, decimals or fractions"
        rows = _rows("distribution", distribution, typed_rational, what)
        p = np.array([share for row in rows for share in row], dtype=object)
        if hasattr(mechanism, "apply"):
            labels = setting.labelled.labels
        elif setting.kind == "kernel":
            labels = setting.input_names or range(setting.domain.inputs)
        queries = [p.astype(float) if labels is None else labels[0]]
    elif counts is not None:
        if not isinstance(setting, Plurality | CategorySetting):
            raise ParameterError(
                "counts is given; it belongs to a plurality or one category of records, and only "
                "there."
            )
        queries = [
            Tally.of_counts(row, len(row)) for row in _rows("counts", counts, int, "integers")
        ]
    elif input is not None:
        named = getattr(setting, "input_names", None) or getattr(setting, "labels", None)
        by_text = {str(name): name for name in named or ()}
        called = f"names of inputs ({shown(list(by_text))[1:-1]})"
        rows = (
            _rows("input", input, by_text.__getitem__, called, blanks=False)
            if by_text
            else _rows("input", input, int, "integers")
        )
        queries = [query for row in rows for query in inputs_of(setting, row)]
    else:
        try:
            # Of a setting that holds the data, such as a mollifier.
            setting.output_weights(mechanism.table, None)
        except ParameterError:
            raise ParameterError(
                "the mechanism takes an input; give --input, or for a kernel --distribution."
            ) from None
        queries = [None]

    def draw() -> Sequence[object]:
        # All queries are checked before the first of them is written down, and draws.
        inputs = queries if labels is None else [labels[draw_own_category(p, len(labels))]]
        outputs = sum(mechanism._outputs(query) for query in inputs)
        keeper.charge(mechanism, -(-outputs // mechanism.setting.together))
        return [mechanism.release(query) for query in inputs]

    show_draw(draw, mechanism.guarantee, json)
    keeper.tell()


def inputs_of(setting: Any, row: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Return the inputs that a line of integers or names stands for.

    The counts of all categories; or one input each, where an input of the example is an integer;
    else all of the line is one input.
    """
    from dpopt.roo import CategorySetting, Tally

    if isinstance(setting, CategorySetting):
        return [Tally.of_counts(list(row), setting.categories)]
    example = next(iter(setting.example_neighbours()), (None,))[0]
    return list(row) if isinstance(example, int) else [list(row)]


def _rows(
    name: str, text: str, read: Callable[[str], Any], what: str, *, blanks: bool = True
) -> list[list[Any]]:
    """Return the words of a text, each read, or else those of each line of the file it names.

    Commas separate words, and blanks unless these may stand in one. What was typed may be data with
    a slip in it: it is not shown.
    """

    def line_read(line: str) -> list[Any]:
        words = line.replace(",", " ").split() if blanks else map(str.strip, line.split(","))
        return list(map(read, words))

    try:
        rows = [line_read(text)]
    except (LookupError, ValueError):
        path = Path(text)
        try:
            lines = contents(path).splitlines()
        except (OSError, ValueError) as error:
            if not os.path.exists(path):  # noqa: PTH110 - whatever was typed
                raise ParameterError(
                    f"{name} is no list of {what}, and there is no such file."
                ) from None
            raise ParameterError(f"{name} is {str(path)!r}; {why_unread(error)}.") from error
        try:
            rows = [line_read(line) for line in lines if line.strip()]
        except (LookupError, ValueError):
            raise ParameterError(f"{name} holds something other than {what}.") from None
    if not rows or not all(rows):
        raise ParameterError(f"{name} is empty; give {what}, separated by commas.")
    return rows


def _draw(
    make: Callable[[int, int], tuple[Any, dict[str, object]]],
    file: File,
    column: str,
    labels: TextOrFile,
    json: Flag = False,
    **keeping: Any,  # noqa: ANN401
) -> None:
    """Count a column, make the mechanism for so many records and categories, and release one.

    Args:
        make: returns the mechanism, and what is known of it beforehand.
        file: .csv or .parquet.
        column: name of the column that holds the categories.
        labels: the public categories: a list A,B,C or a text file with one category a line.
        json: print the category as JSON.
        keeping: see `_Keeper`.
    """
    from dpopt.data.tally import tally_file

    categories, keeper = _alphabet(labels), _Keeper(**keeping)
    tally = tally_file(file, column, categories)
    design, facts = make(int(tally.counts.sum()), len(categories))

    def draw() -> list[object]:
        design.releases(tally)
        keeper.charge(design)
        drawn = design.release(tally)
        # A vote is the place of its class, a sample the category itself.
        return [drawn if isinstance(drawn, str) else categories[int(drawn)]]

    show_draw(draw, design.guarantee, json, facts)
    keeper.tell()


# The options that `sample` and `mode` share.
_OPTIONS = [*parameters(described(_draw).fields[1:]), *_LEDGER]


@command(*_OPTIONS)
def sample(
    epsilon: float,
    rule: Literal["exact", "smooth-floor", "roo"] = "exact",
    **given: Any,  # noqa: ANN401
) -> None:
    """Release one private category from a column of a CSV or Parquet FILE.

    The alphabet is public: it must be fixed before the data are looked at. A record outside it is
    an error, not a category. The number of records is public too. With --ledger it is written down
    before it is drawn; the privacy cost is printed on standard error.

    Args:
        epsilon: privacy of the category, above 0.
        rule: by which the category is drawn.
        given: the column and the ledger.

    Example:
        dpopt sample visits.csv --column city --labels Bern,Basel,Chur --epsilon 1
    """
    from dpopt import RevealOrObscure, SmoothFloor, _checks, design

    _checks.choice("rule", rule, ("exact", "smooth-floor", "roo"))

    def make(records: int, categories: int) -> tuple[Any, dict[str, object]]:
        if rule == "smooth-floor":
            return design(SmoothFloor(records, categories, epsilon)), {}
        return design(RevealOrObscure(records, categories, epsilon, rule)), {}

    _draw(make, **given)


@command(*_OPTIONS)
def mode(
    epsilon: float,
    rule: Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"] = "best",
    **given: Any,  # noqa: ANN401
) -> None:
    """Release the most common category of a column of a CSV or Parquet FILE, privately.

    Private for one record that is replaced by another. The alphabet is public: it must be fixed
    before the data are looked at. A record outside it is an error, not a category. The number of
    records is public too. With --ledger the release is written down before it is drawn; its
    privacy cost is printed on standard error.

    Printed beside the category: by which rule it was drawn, and why that is private. By default it
    is the rule of least mean regret where its tables are small, as for few records, and
    permute-and-flip elsewhere.

    Args:
        epsilon: privacy of the category, above 0.
        rule: by which the category is drawn.
        given: the column and the ledger.

    Example:
        dpopt mode visits.csv --column city --labels Bern,Basel,Chur --epsilon 1
    """
    from dpopt.plurality.setting import mode_design

    def make(records: int, categories: int) -> tuple[Any, dict[str, object]]:
        if not records:
            raise ParameterError("data holds no records; a mode needs at least one.")
        mechanism = mode_design(records, categories, epsilon, rule=rule)
        return mechanism, {
            "rule": mechanism.setting.rule,
            "records": records,
            "proof": getattr(mechanism.certificate, "claim", ""),
        }

    _draw(make, **given)


def _alphabet(text: str) -> list[str]:
    """Return the categories of a list, or of a file with one a line."""
    categories = [name.strip() for name in text.split(",")]
    if os.path.isfile(text):  # noqa: PTH113 - a list that is too long is no file either
        try:
            lines = contents(Path(text)).splitlines()
        except (OSError, ValueError):
            raise ParameterError(f"labels is {text!r}; it cannot be read as text.") from None
        categories = [line.strip() for line in lines if line.strip()]
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ParameterError(f"labels is {text!r}; it holds bytes that are no text here.")
    if len(categories) < 2 or not all(categories) or len(set(categories)) != len(categories):
        raise ParameterError(
            f"labels is {text!r}; it must be a file or a list A,B,C of at least two categories, "
            "none empty and none twice."
        )
    return categories


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
    ledger = _opened(path)
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
