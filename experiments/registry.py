"""An experiment: configuration -> tables -> figure, registered under its name.

```python
@experiment("roo-table-1", config=Config())
def run(config: Config) -> Outcome:
    for records in track(config.records):
        ...

@run.figure
def plot(outcome: Outcome) -> Figure: ...
```
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | bool | None
_Case = TypeVar("_Case")
_Plot = TypeVar("_Plot", bound="Callable[[Any], Figure]")

NOT_COMPARABLE = "not comparable"
VERDICTS = ("agrees", "differs", "refuted", "misprint", "sharper", NOT_COMPARABLE)


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Attributes:
        caption: one sentence; what the table holds.
        columns: names.
        rows: one tuple of cells for each row, in the order of the columns.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def select(self, **where: Cell) -> Table:
        """Return the rows whose cells equal the given ones."""
        places = {self.columns.index(name): value for name, value in where.items()}
        rows = tuple(row for row in self.rows if all(row[i] == v for i, v in places.items()))
        return Table(self.caption, self.columns, rows)

    def column(self, name: str) -> list[Any]:
        """Return the cells of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def distinct(self, name: str, *others: str) -> list[Any]:
        """Return the cells of a column, or tuples of several columns, each once and in order."""
        cells = (
            zip(*map(self.column, (name, *others)), strict=True) if others else self.column(name)
        )
        return list(dict.fromkeys(cells))

    def grouped(self, name: str, *cases: str) -> dict[tuple[Any, ...], dict[Any, dict[str, Any]]]:
        """Return the rows of each case of some columns, by their cells of another one."""
        groups: dict[tuple[Any, ...], dict[Any, dict[str, Any]]] = {}
        for row in self.records:
            groups.setdefault(tuple(row[case] for case in cases), {})[row[name]] = row
        return groups

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows, each with its cells by name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Cell]], caption: str = "") -> Table:
        """Build a table from records with the same keys."""
        columns = tuple(records[0])
        return cls(caption, columns, tuple(tuple(record[c] for c in columns) for record in records))


@dataclass(frozen=True)
class Comparison:
    """What a paper printed or claimed, beside what this run found.

    Attributes:
        claim: the published number or statement, with its place in the paper.
        ours: what was found.
        verdict: among `VERDICTS`: "agrees", "differs" (another number), "refuted" (a statement
            that is false as meant), "misprint" (one that is false as printed alone: a strict < that
            holds with <=, or a sign that the paper prints right elsewhere), "sharper" (the
            statement holds, and more does), or "not comparable" (data or parameters are not the
            paper's, or the statement is about a limit).
        certificate: what proves it: the kind of arithmetic, and where it can be read.
        rule: how the verdict follows from the numbers, stated before they are known.
        statement: identifier of the statement within its paper; the same wherever a run of another
            item judges the same statement. The claim itself if empty.
    """

    claim: str
    ours: str
    verdict: str
    certificate: str
    rule: str = ""
    statement: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict is {self.verdict!r}; it must be one of {VERDICTS}.")

    @property
    def identifier(self) -> str:
        """What tells the statement apart from the others of its paper."""
        return self.statement or self.claim


@dataclass(frozen=True)
class Outcome:
    """What a run yields: tables by name, and the paper beside us.

    Attributes:
        tables: by name.
        comparisons: kept only where the run has the paper's own parameters.
        data: where the data come from, as a phrase such as "MovieLens 1M"; empty if none are read.
        generated: whether they are made up by us in the format of such data; the picture says so.
    """

    tables: Mapping[str, Table]
    comparisons: tuple[Comparison, ...] = ()
    data: str = ""
    generated: bool = False


Bar = Callable[[int, int], None]
"""Is told how many steps are done, and how many are to come besides those told before."""


def _silent(done: int, more: int) -> None:
    del done, more


_BARS: list[Bar] = [_silent]


@contextmanager
def telling(bar: Bar) -> Iterator[None]:
    """Tell a bar of the progress of the runs in the block, in all threads."""
    _BARS.append(bar)
    try:
        yield
    finally:
        _BARS.pop()


def track(cases: Iterable[_Case], count: int | None = None) -> Iterator[_Case]:
    """Yield the cases of a run, and move its bar on after each.

    They are listed first if their ``count`` is not known.
    """
    known = list(cases) if count is None else cases
    bar = _BARS[-1]
    bar(0, len(known) if isinstance(known, list) else count or 0)
    for case in known:
        yield case
        bar(1, 0)


@dataclass(eq=False)
class Experiment:
    """One figure or table of a paper.

    Attributes:
        name: used on the command line and for file names.
        paper: short name of the paper.
        item: what it reproduces, such as "Figure 2".
        summary: one sentence; what to see.
        config: frozen dataclass of the full run's parameters (`experiments.parameters`), each a
            plain value, or a tuple of such; its docstring tells what they are.
        run: computes the outcome of a configuration.
        quick: configuration of the quick run: fewer samples, or a coarser grid of settings; each
            setting is solved and proved whole. That of the full run if None.
        plot: draws an outcome; computes nothing. `figure` sets it.
        published: what the paper printed, in words or numbers; None if it printed no number.
        repeatable: whether runs give the same bytes; False for benchmarks, which run only when
            they are named.
        effort: names of the parameters that the paper does not fix and no verdict depends on:
            draws, seeds, the resolution of a curve.
        mathematics: what is computed, as displayed formulas in LaTeX without dollar signs.
        module: the module that registers it.
    """

    name: str
    paper: str
    item: str
    summary: str
    config: Any
    run: Callable[[Any], Outcome]
    quick: Any = None
    plot: Callable[[Any], Figure] = field(default=None)  # pyright: ignore
    published: str | None = None
    repeatable: bool = True
    effort: tuple[str, ...] = ()
    mathematics: tuple[str, ...] = ()
    module: str = ""

    def __post_init__(self) -> None:
        if self.quick is None:
            self.quick = self.config

    @property
    def title(self) -> str:
        """The paper and the item."""
        return f"{self.paper}, {self.item}"

    def __call__(self, config: Any = None) -> Outcome:  # noqa: ANN401
        """Return the outcome of a configuration, by default of the quick run."""
        return self.run(self.quick if config is None else config)

    def figure(self, plot: _Plot) -> _Plot:
        """Draw outcomes by a function: a decorator."""
        self.plot = plot
        return plot

    def at_paper(self, config: Any) -> bool:  # noqa: ANN401
        """Return whether a configuration is the paper's, up to effort: only then are verdicts."""
        return any(
            all(
                getattr(config, field.name) == getattr(own, field.name)
                for field in fields(config)
                if field.name not in self.effort
            )
            for own in (self.config, self.quick)
        )

    def parameters(self, full: bool) -> dict[str, Any]:
        """Return the configuration of a run as plain values."""
        return asdict(self.config if full else self.quick)

    def __reduce__(self) -> tuple[Callable[[str, str], Experiment], tuple[str, str]]:
        """Another process finds the experiment by its name."""
        return registered, (self.module, self.name)


REGISTERED: dict[str, Experiment] = {}
"""The experiments of the modules that are imported, by name."""


def registered(module: str, name: str) -> Experiment:
    """Return an experiment of a module, which is imported."""
    import_module(module)
    return REGISTERED[name]


@cache
def texts_of(folder: Path) -> Mapping[str, Any]:
    """Return what ``items.toml`` of a folder, or of one above it, says of its items."""
    path = folder / "items.toml"
    if not path.exists():
        return texts_of(folder.parent)
    return tomllib.loads(path.read_text(encoding="utf-8"))


def meanings(folder: Path, name: str, column: str = "method") -> Table:
    """Return what ``items.toml`` of a folder says of each value of a column, as a table."""
    known = texts_of(folder)["meanings"][name]
    return Table.of([{column: value, "meaning": meaning} for value, meaning in known.items()])


def experiment(
    name: str,
    *,
    config: Any,  # noqa: ANN401
    **about: Any,  # noqa: ANN401
) -> Callable[[Callable[[Any], Outcome]], Experiment]:
    """Register what computes the outcome of an experiment: a decorator.

    Paper, item, summary, mathematics, what is published, and the captions of tables without one
    stand in ``items.toml`` under its name.

    ``about`` are ``quick``, ``repeatable``, ``effort`` and ``plot`` of `Experiment`.
    """
    caller = sys._getframe(1).f_globals
    texts = texts_of(Path(caller["__file__"]).parent)
    said = {"paper": texts.get("paper"), **texts[name]}
    captions = texts.get("captions", {}) | said.pop("captions", {})
    said["mathematics"] = tuple(said.get("mathematics", ()))

    def register(run: Callable[[Any], Outcome]) -> Experiment:
        def captioned(config: Any) -> Outcome:  # noqa: ANN401
            outcome = run(config)
            tables = {
                key: replace(table, caption=table.caption or captions[key].format(config=config))
                for key, table in outcome.tables.items()
            }
            return replace(outcome, tables=tables)

        module = caller["__name__"]
        made = Experiment(name, config=config, run=captioned, module=module, **said, **about)
        REGISTERED[name] = made
        return made

    return register
