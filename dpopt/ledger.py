"""Releases are written down before they are drawn: of which data, and what all of them spend.

    ledger = dpopt.Ledger("study.ledger", budget=dpopt.Guarantee(2.0, 1e-6))
    ledger.release(design, counts, "survey of May")
    ledger.total("survey of May")

A ledger is a database of SQLite. What is asked is an entry, committed and on disk, before anything
is drawn; what would leave the budget is refused. So no crash leaves a release that is not written
down, though it may leave an entry whose release was never drawn. Designs do not know of it. Why
a budget holds although each release may be chosen after seeing those before, says
`dpopt.privacy.guarantee`.

*Labels of private voters* compose where every vote was drawn afresh. Those of K voters that were
trained once spend together what the voters do: K folds of what each has. Where it is not known
which is so, each call spends the larger of both.
"""

from __future__ import annotations

import copy
import os
import secrets
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Context
from numbers import Number
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpopt import _checks
from dpopt._errors import BudgetError, ParameterError
from dpopt._numbers import shown
from dpopt._types import brief
from dpopt.data.tally import Tally
from dpopt.files import check_target, folder_to_disk, why_unread
from dpopt.privacy.guarantee import Guarantee, allowed, in_short, room, simple
from dpopt.shape import Design

__all__ = ["Entry", "Ledger"]

_MARK, _SCHEMA = 0x64706F70, 1
# What a new file holds, and the questions that it answers.
_TABLES = f"""BEGIN;
PRAGMA application_id = {_MARK};
PRAGMA user_version = {_SCHEMA};
CREATE TABLE head (identity TEXT, epsilon REAL, delta REAL);
CREATE TABLE entries (id INTEGER PRIMARY KEY, time TEXT, dataset TEXT, what TEXT, epsilon REAL,
    delta REAL, count INTEGER, spent_epsilon REAL, spent_delta REAL, folds INTEGER);
CREATE INDEX of_dataset ON entries (dataset);
CREATE TRIGGER kept BEFORE DELETE ON entries BEGIN SELECT raise(ABORT, 'entries stay'); END;
CREATE TRIGGER same BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'entries stay'); END;
"""
_LAST = "SELECT coalesce(max(id), 0) FROM entries"
_SPENT = """SELECT spent_epsilon, spent_delta, sum(folds)
    FROM (SELECT *, row_number() OVER (ORDER BY id) > 1 AS later FROM entries {})
    GROUP BY later, 1, 2 ORDER BY later"""
# Seconds that an entry waits for those of other processes.
_PATIENCE = 60.0
_LONGEST_NAME, _LONGEST_TEXT, _MOST_COUNT = 200, 1000, 1 << 53

# No connection is open while a process forks: closed in the child, it rolls back the parent's.
_ALONE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_ALONE.acquire, after_in_parent=_ALONE.release, after_in_child=_ALONE.release
    )


@dataclass(frozen=True, repr=False)
class Entry:
    """Releases that were asked for at once, as a ledger holds them.

    Attributes:
        time: in UTC, such as "2026-01-31T23:59:59Z".
        dataset: the user's name of the data.
        what: of what the releases are, for a reader.
        guarantee: of one release.
        count: number of releases.
        spent: together they spend this, ``folds`` times.
        folds: the count, but for labels of private voters.
    """

    time: str
    dataset: str
    what: str
    guarantee: Guarantee
    count: int
    spent: Guarantee
    folds: int

    def __post_init__(self) -> None:
        """Refuse what `Ledger.charge` does not write: anybody could have written a file."""
        _checked_text("time", self.time, _LONGEST_NAME)
        _checked_text("what", self.what, _LONGEST_TEXT)
        if name_of(self.dataset) != self.dataset:
            raise ParameterError(
                f"dataset is {shown(self.dataset)}; it must be a name as it is kept."
            )
        for name, number in (("count", self.count), ("folds", self.folds)):
            _checks.integer(name, number, 1, _MOST_COUNT)

    def __repr__(self) -> str:
        return brief(self, dataset=self.dataset, what=self.what, spent=self.spent, folds=self.folds)


class Ledger:
    """A file in which every release is written down before it is drawn; it refuses beyond a budget.

    Copies and pickles of a ledger are of the same file.

    Attributes:
        path: of the file, absolute.
        budget: the total (epsilon, delta) of each data set, also if you choose later releases after
            you saw earlier outputs; None if there is no limit.

    Example:
        >>> import dpopt, tempfile
        >>> path = f"{tempfile.mkdtemp()}/study.ledger"
        >>> ledger = dpopt.Ledger(path, budget=dpopt.Guarantee(1.0))
        >>> entry = ledger.charge(dpopt.Guarantee(0.25), "visits", what="a count", count=3)
        >>> ledger.total("visits")
        ('simple', Guarantee(epsilon=0.75, delta=0.0))
        >>> ledger.charge(dpopt.Guarantee(0.5), "visits", what="another")
        Traceback (most recent call last):
        ...
        dpopt._errors.BudgetError: guarantee is (0.5, 0)-DP, for 1 release; data set 'visits' ...
    """

    def __init__(self, path: str | Path, budget: Guarantee | None = None) -> None:
        """Open a ledger, or begin one where there is no file.

        Args:
            path: of the file, on a disk of this machine.
            budget: of a new file, the limit of each data set; None for no limit. For a file that is
                there, the budget that it has, or None to accept it.

        Raises:
            ParameterError: if the file is no ledger, or cannot be read or made; or if it has
                another budget.
        """
        budget = None if budget is None else _guarantee("budget", budget)
        if not isinstance(path, str | os.PathLike):
            raise ParameterError(f"path is {shown(path)}; it must be the path of a file.")
        self.path = Path(path).absolute()
        self._identity, self._entries = "", 0
        if not os.path.lexists(self.path):
            self._begin(budget)
        with self._opened() as db:
            self.budget = self._head(db)[1]
        if budget not in (None, self.budget):
            raise ParameterError(
                f"budget is {budget}; ledger {str(self.path)!r} has {self.budget}, which stays."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: another process opens the same file."""
        return Ledger, (str(self.path),)

    def __repr__(self) -> str:
        limit = "" if self.budget is None else f", budget={self.budget}"
        return f"Ledger({str(self.path)!r}{limit})"

    def release(
        self,
        mechanism: Design,
        data: Any = None,  # noqa: ANN401
        dataset: str = "unnamed",
        *,
        fresh: bool | None = None,
    ) -> Any:  # noqa: ANN401
        """Return what a mechanism releases from data, written down before it is drawn.

        Args:
            mechanism: a certified design.
            data: its input, or inputs; each of them spends its guarantee. They are read once: an
                array or list is copied before its inputs are counted.
            dataset: see `charge`.
            fresh: see there.

        Raises:
            BudgetError: if the releases would leave the budget of their data set.
            ParameterError: for data that the mechanism does not take, or if nothing can be written
                down. Nothing was drawn in either case.
            NotPrivateError: if the mechanism has no certificate.
        """
        _checks.instance("mechanism", mechanism, Design)
        if isinstance(data, Iterator):
            raise ParameterError("data is an iterator, which is read once; make a list of it.")
        data = _read_once(data)
        count = mechanism.releases(data)
        if count:
            self.charge(mechanism, dataset, count=count, fresh=fresh)
        return mechanism.release(data)

    def charge(
        self,
        of: Guarantee | Design,
        dataset: str = "unnamed",
        *,
        count: int = 1,
        what: str | None = None,
        fresh: bool | None = None,
    ) -> Entry:
        """Write releases down, before they are drawn; on disk when this returns.

        Args:
            of: the design, or the guarantee of one release of another program.
            dataset: your name of the data. Spaces around it are ignored, and names are compared in
                Unicode's composed form (NFC).
            count: number of releases.
            what: of what they are, in a few words; needed with a guarantee.
            fresh: of labels of private voters: True if every vote was drawn afresh, or its voters
                are asked for one label and never again; labels that were designed together need it.
                False if the voters were trained once: the cost of all of them is charged now, and
                later labels of theirs are free. None: the entry covers both cases, so that it costs
                at least as much.

        Raises:
            BudgetError: if the releases would leave the budget of their data set.
            ParameterError: if they cannot be written down. Nothing may be drawn in either case.
            NotPrivateError: if the mechanism has no certificate.
        """
        entry = _entry(of, dataset, count, what, fresh)
        with self._opened("BEGIN IMMEDIATE") as db:
            limit, before = self.budget, _parts(db, entry.dataset)
            if limit is not None and not allowed([*before, (entry.spent, entry.folds)], limit):
                raise BudgetError(
                    f"guarantee is {in_short(entry.guarantee)}, for {number(count, 'release')}; "
                    f"data set {shown(entry.dataset)} has an epsilon of "
                    f"{_cut(room(before, limit))} left of the budget {limit} of "
                    f"ledger {str(self.path)!r}."
                )
            each, spent = entry.guarantee, entry.spent
            row = (entry.time, entry.dataset, entry.what, each.epsilon, each.delta, entry.count)
            row = (*row, spent.epsilon, spent.delta, entry.folds)
            db.execute(f"INSERT INTO entries VALUES (NULL{', ?' * len(row)})", row)
        return entry

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return the entries of a data set in their order; those of all together if None."""
        with self._opened() as db:
            return _entries(db, *_of(dataset))

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets of which something was released, in the order of the file."""
        return tuple(dict.fromkeys(entry.dataset for entry in self.entries()))

    def total(self, dataset: str | None = None) -> tuple[str, Guarantee]:
        """Return what all releases from a data set spend together, and by which composition.

        The text is "simple" if the costs were added up, "budget" if the ledger's limit is less and
        holds instead.

        Args:
            dataset: its name; if None all data sets together, as if their records were the same.

        Raises:
            ParameterError: if the deltas reach 1, so that the releases promise nothing together; if
                the file cannot be read; or for a name that no data set can have.
        """
        with self._opened() as db:
            parts = _parts(db, dataset)
        budget = self.budget if dataset is not None and parts else None
        by = [("simple", simple(parts)), ("budget", budget)]
        stated = [(name, spent) for name, spent in by if spent is not None]
        if not stated:
            raise ParameterError(
                f"dataset is {shown(dataset)}, and its releases promise nothing together: their "
                "deltas reach 1."
            )
        return min(stated, key=lambda item: (item[1].epsilon, item[1].delta))

    def left(self, dataset: str = "unnamed") -> float | None:
        """Return the epsilon that a data set has left of the budget, rounded down.

        It is the largest epsilon of one more release with delta = 0, which may raise the total by
        less. None without a budget.

        Args:
            dataset: its name.

        Raises:
            ParameterError: if the file cannot be read, or for a name that no data set can have.
        """
        with self._opened() as db:
            parts = _parts(db, name_of(dataset))
        return None if self.budget is None else room(parts, self.budget)

    def statement(self, dataset: str = "unnamed") -> str:
        """Return what the releases from a data set spend together, in one line."""
        count = sum(entry.count for entry in self.entries(dataset))
        name, spent = self.total(dataset)
        said = f"{number(count, 'release')} of data set {shown(name_of(dataset))} so far "
        said += f"spend{'s' if count == 1 else ''} {in_short(spent)}"
        said += ", by the budget" if name == "budget" else ""
        remaining = self.left(dataset)
        return said if remaining is None else f"{said}; an epsilon of {_cut(remaining)} is left"

    # The file.

    def _begin(self, budget: Guarantee | None) -> None:
        """Make the file: whole, or not at all, by one process alone."""
        check_target(self.path)
        temporary = self.path.with_name(f".dpopt-{secrets.token_hex(8)}.ledger")
        limit = (None, None) if budget is None else (budget.epsilon, budget.delta)
        with self._refusing():
            try:
                with closing(_connected(temporary, "rwc")) as db:
                    db.executescript(_TABLES)
                    head = secrets.token_hex(16), *limit
                    db.execute("INSERT INTO head VALUES (?, ?, ?)", head)
                    db.execute("COMMIT")
                # Where another process was first, its file stays.
                with suppress(FileExistsError):
                    os.link(temporary, self.path)
                folder_to_disk(self.path.parent)
            finally:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)

    @contextmanager
    def _opened(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """Yield a connection within a transaction: committed, or rolled back after an error."""
        check_target(self.path)
        with _ALONE, self._refusing(), closing(_connected(self.path, "rw")) as db:
            db.execute(begin)
            self._require_same(db)
            yield db
            entries = db.execute(_LAST).fetchone()[0]
            db.execute("COMMIT")
            self._entries = entries

    def _require_same(self, db: sqlite3.Connection) -> None:
        """Refuse another file than a ledger, or than the one that was open before."""
        if db.execute("PRAGMA application_id").fetchone()[0] != _MARK:
            raise self._refusal("it is no ledger of dpopt")
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        if schema != _SCHEMA:
            raise self._refusal(f"its schema is {schema}; this dpopt reads {_SCHEMA}")
        # Before any table is read: one of them may be a view, whose query anybody may have written.
        # Spaces do not count, nor statistics of SQLite's own.
        ours = {" ".join(each.split()) for each in _TABLES.split(";\n") if "CREATE" in each}
        rows = db.execute("SELECT sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'")
        if {" ".join(str(sql).split()) for (sql,) in rows} != ours:
            raise self._refusal("its tables are not those of a ledger")
        if not self._identity and db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise self._refusal("it is damaged")
        identity = self._head(db)[0]
        entries = db.execute(_LAST).fetchone()[0]
        if self._identity not in ("", identity) or entries < self._entries:
            raise self._refusal("it was replaced or lost entries since it was opened")
        try:
            _entries(db, "WHERE id > ?", self._entries)
        except ParameterError:
            raise self._refusal("it holds an entry that no ledger writes") from None
        self._identity, self._entries = identity, entries

    def _head(self, db: sqlite3.Connection) -> tuple[str, Guarantee | None]:
        """Return the identity of the file and its budget, checked."""
        rows = db.execute("SELECT identity, epsilon, delta FROM head LIMIT 2").fetchall()
        try:
            ((identity, *limit),) = rows
            budget = None if limit == [None, None] else Guarantee(*limit)
        except ValueError:
            raise self._refusal("its head is not one row, or its budget no guarantee") from None
        if not isinstance(identity, str) or not identity:
            raise self._refusal("its head has no identity")
        return identity, budget

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Make errors of the file errors of the parameter."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._refusal(str(error)) from error
        except OSError as error:
            raise self._refusal(why_unread(error)) from error

    def _refusal(self, why: str) -> ParameterError:
        return ParameterError(
            f"ledger {str(self.path)!r} cannot be used: {why}; nothing was drawn."
        )


def name_of(dataset: str) -> str:
    """Return the name of a data set without spaces around it, in Unicode's composed form (NFC)."""
    name = unicodedata.normalize("NFC", dataset).strip() if isinstance(dataset, str) else dataset
    return _checked_text("dataset", name, _LONGEST_NAME)


def number(count: int, of: str) -> str:
    """Return a number of things in words, such as "2 releases"."""
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def _cut(value: float) -> str:
    """Return six digits of a float, rounded down: as much may be spent."""
    cut = Context(prec=6, rounding=ROUND_DOWN).create_decimal(str(value))
    return f"{float(cut):.6g}"


def _entry(
    of: Guarantee | Design, dataset: str, count: int, what: str | None, fresh: bool | None
) -> Entry:
    """Return what is to be written down, checked; see `Ledger.charge`."""
    count = _checks.integer("count", count, 1, _MOST_COUNT)
    each, base, together = of, None, 1
    if isinstance(of, Design):
        of._require_private()
        each, base, together = of.guarantee, of.setting.behind, of.setting.together
        if what is None:
            what = f"{of.setting.kind}, certificate {cast(Any, of.certificate).digest[:16]}"
    each = _guarantee("guarantee", each)
    what, dataset = _checked_text("what", what, _LONGEST_TEXT), name_of(dataset)
    if base is not None and together > 1 and fresh is not True:
        raise ParameterError(
            f"fresh is {fresh} and releases is {together}; labels that were designed together are "
            "of votes drawn afresh, fresh=True. Voters that were trained once have labels of "
            "releases=1."
        )
    if base is None and fresh is not None:
        raise ParameterError(
            "fresh is given; it belongs to labels of private voters, and only there."
        )
    if base is None or (fresh is not None and _checks.flag("fresh", fresh)):
        spent, folds = each, count
    elif fresh is not None:
        spent, folds = base
    else:
        labels, voters, folds = simple([(each, count)]), simple([base]), 1
        spent = (
            labels
            and voters
            and Guarantee(max(labels.epsilon, voters.epsilon), max(labels.delta, voters.delta))
        )
    if spent is None or simple([(spent, folds)]) is None:
        raise ParameterError(
            f"guarantee is {in_short(each)}, for {number(count, 'release')}; so many promise "
            "nothing together."
        )
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Entry(time, dataset, what, each, count, spent, folds)


def _checked_text(name: str, text: object, most: int) -> str:
    """Return a text of an entry; refuse another."""
    plain = text if isinstance(text, str) and text.isprintable() else ""
    if not 0 < len(plain.strip()) <= len(plain) <= most:
        raise ParameterError(
            f"{name} is {shown(text)}; it must be a text of at least one and at most {most} "
            "characters, all of them printable."
        )
    return plain


def _guarantee(name: str, value: Any) -> Guarantee:  # noqa: ANN401
    """Return a guarantee made anew, of numbers that are checked."""
    _checks.instance(name, value, Guarantee)
    return Guarantee(value.epsilon, value.delta)


def _read_once(data: Any) -> Any:  # noqa: ANN401
    """Return data of a design that are the same whenever they are read, whoever writes to them."""
    if data is None or isinstance(data, str | bytes | Number | np.generic | Tally):
        return data
    # Libraries of frames copy what they hold.
    of_library = type(data).__module__.partition(".")[0] in ("pandas", "polars")
    if of_library or isinstance(data, np.ndarray | set | frozenset):
        return copy.copy(data)
    if isinstance(data, Mapping):
        return {key: _read_once(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        plain = {bool, int, float, str}.issuperset(map(type, data))
        try:
            entries = list(data) if plain else [_read_once(entry) for entry in data]
        except RecursionError:
            raise ParameterError("data is nested too deeply; it must be an array.") from None
        return tuple(entries) if isinstance(data, tuple) else entries
    if hasattr(data, "__array__") or isinstance(data, memoryview):
        return _checks.array("data", data).copy()
    # A sequence of the old protocol has no __iter__.
    readable = isinstance(data, Iterable) or hasattr(type(data), "__getitem__")
    return _read_once(list(data)) if readable else data


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection that begins and commits on demand, and waits for the disk."""
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None
    )
    try:
        # Nothing that the file itself defines may call a function with side effects.
        db.execute("PRAGMA trusted_schema = OFF")
        # As FULL; and on return, the folder too knows that the journal of the transaction is gone.
        db.execute("PRAGMA synchronous = EXTRA")
        # On macOS, wait for the disk and not only for its memory; elsewhere there is no difference.
        db.execute("PRAGMA fullfsync = 1")
    except BaseException:
        # What is no database is not kept open: Windows would let nobody replace it.
        db.close()
        raise
    return db


def _of(dataset: str | None) -> tuple[str, ...]:
    """Return the condition of the entries of a data set, and its value; nothing for all."""
    return () if dataset is None else ("WHERE dataset = ?", name_of(dataset))


def _entries(db: sqlite3.Connection, which: str = "", *values: object) -> list[Entry]:
    """Return the entries of a condition in their order."""
    rows = db.execute(f"SELECT * FROM entries {which} ORDER BY id", values)
    return [
        Entry(time, name, what, Guarantee(e, d), count, Guarantee(spent_e, spent_d), folds)
        for _, time, name, what, e, d, count, spent_e, spent_d, folds in rows
    ]


def _parts(db: sqlite3.Connection, dataset: str | None) -> list[tuple[Guarantee, int]]:
    """Return what was spent of a data set, or of all together if None.

    First what its first entry spent, then the others, equal parts in one.
    """
    which, *values = _of(dataset) or ("",)
    rows = db.execute(_SPENT.format(which), values)
    return [(Guarantee(epsilon, delta), folds) for epsilon, delta, folds in rows]
