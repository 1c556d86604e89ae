"""Whatever is released is written down: of which data, what it spends, and what all of it spends.

    ledger = dpopt.Ledger("study.ledger", budget=dpopt.Guarantee(2.0, 1e-6))
    ledger.release(design, counts, "survey of May")
    ledger.total("survey of May")

A ledger is a database of SQLite. What is asked is an entry, committed and on disk, before anything
is drawn; what would leave the budget is refused. So no crash leaves a release that is not written
down, though it may leave an entry whose release was never drawn. Mechanisms do not know of it. Why
a budget holds although each release may be chosen after seeing those before, says
`dpopt.privacy.composed`.

*Labels of private voters* compose where every vote was drawn afresh. Those of K voters that were
trained once do not, but all of them are computed from the voters: K folds of what each voter has.
Where it is not known which of the two is so, each call spends the larger of both: calls that asked
the same voters spend no more than these voters once, and others compose.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from math import inf, isfinite
from pathlib import Path
from typing import Any, Protocol

from dpopt import _checks
from dpopt._errors import BudgetError, NotPrivateError, ParameterError
from dpopt._numbers import exact_text, float_down, shown, whole
from dpopt._types import brief
from dpopt.files import check_target, folder_to_disk, why_unread
from dpopt.interop.pairs import dominating_pair
from dpopt.privacy.composed import allowed, concentrated, optimal, room, simple
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.guarantee import Guarantee

__all__ = ["Entry", "Ledger", "Mechanism"]

Priced = list[tuple[Guarantee, int, DominatingPair | None]]
"""What mechanisms spend, how many of them do, and the dominating pair of each if it is known."""

_MARK, _SCHEMA = 0x64706F70, 1
_TABLES = f"""BEGIN;
PRAGMA application_id = {_MARK};
PRAGMA user_version = {_SCHEMA};
CREATE TABLE head (identity TEXT, epsilon REAL, delta REAL, adaptive INTEGER);
CREATE TABLE entries (id INTEGER PRIMARY KEY, time TEXT, dataset TEXT, what TEXT, epsilon REAL,
    delta REAL, count INTEGER, spent_epsilon REAL, spent_delta REAL, folds INTEGER, pair TEXT);
CREATE INDEX of_dataset ON entries (dataset);
CREATE TRIGGER kept BEFORE DELETE ON entries BEGIN SELECT raise(ABORT, 'entries stay'); END;
CREATE TRIGGER same BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'entries stay'); END;
"""
_LAST = "SELECT coalesce(max(id), 0) FROM entries"
_OF = "WHERE dataset = ? ORDER BY id"
_SPENT = "SELECT spent_epsilon, spent_delta, sum(folds), pair FROM entries {} GROUP BY 1, 2, pair"
# Seconds that an entry waits for those of other processes.
_PATIENCE = 60.0
_LONGEST_NAME, _LONGEST_TEXT, _MOST_COUNT = 200, 1000, 1 << 53
# Of a larger proof the pair is not asked for; one of more outcomes is not written down.
_MOST_CONSTRAINTS, _MOST_ATOMS = 20_000, 64
# A composition is told instead of the simple one where it saves more than a hundredth.
_WORTH = 0.99

# No connection is open while a process forks: closed in the child, it rolls back the parent's.
_ALONE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_ALONE.acquire, after_in_parent=_ALONE.release, after_in_child=_ALONE.release
    )


class Mechanism(Protocol):
    """What a ledger releases from: a design, a sampler, a kernel, or an object of your own."""

    @property
    def guarantee(self) -> Guarantee:
        """What each release spends."""
        ...

    @property
    def asked(self) -> Callable[..., int]:
        """Returns how many releases data ask for, all checked and none drawn."""
        ...

    @property
    def release(self) -> Callable[..., Any]:
        """Returns what is drawn for data."""
        ...


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
        pair: the dominating pair of one release; None if it is not written down.
    """

    time: str
    dataset: str
    what: str
    guarantee: Guarantee
    count: int
    spent: Guarantee
    folds: int
    pair: DominatingPair | None = None

    def __repr__(self) -> str:
        return brief(self, dataset=self.dataset, what=self.what, spent=self.spent, folds=self.folds)


class Ledger:
    """A file in which every release is written down before it is drawn; it refuses beyond a budget.

    Copies and pickles of a ledger are of the same file.

    Attributes:
        path: of the file, absolute.
        budget: what the releases of each data set may spend together; None if there is no limit.
        adaptive: True, the default, if it may depend on earlier outputs whether there is another
            release, what it asks, and how much it spends. Then the budget is kept as a filter.
            False is your word that the number of releases and what each spends were fixed before
            the first output; what is asked may still depend on outputs. Then every composition
            counts: optimal or concentrated, and that of dominating pairs where dp-accounting is
            installed.

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

    def __init__(
        self, path: str | Path, budget: Guarantee | None = None, *, adaptive: bool | None = None
    ) -> None:
        """Open a ledger, or begin one where there is no file.

        Args:
            path: of the file, on a disk of this machine.
            budget: of a new ledger, for each data set; None for no limit. Of one that is there, the
                budget that it has; None for whichever it has.
            adaptive: see `Ledger`; of a new ledger True if None.

        Raises:
            ParameterError: if the file is no ledger, or cannot be read or made; or if it has
                another budget.
        """
        if budget is not None:
            _checks.instance("budget", budget, Guarantee)
        given = None if adaptive is None else _checks.flag("adaptive", adaptive)
        if not isinstance(path, str | os.PathLike):
            raise ParameterError(f"path is {shown(path)}; it must be the path of a file.")
        self.path = Path(path).absolute()
        self._identity, self._entries = "", 0
        if not os.path.lexists(self.path):
            self._begin(budget, given is not False)
        with self._opened() as db:
            *limit, kept = db.execute("SELECT epsilon, delta, adaptive FROM head").fetchone()
        self.budget = None if limit[0] is None else Guarantee(*limit)
        self.adaptive = bool(kept)
        for name, asked, has in (
            ("budget", budget, self.budget),
            ("adaptive", given, self.adaptive),
        ):
            if asked not in (None, has):
                raise ParameterError(
                    f"{name} is {asked}; ledger {str(self.path)!r} has {has}, which stays."
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: another process opens the same file."""
        return Ledger, (str(self.path),)

    def __repr__(self) -> str:
        limit = "" if self.budget is None else f", budget={self.budget}"
        return f"Ledger({str(self.path)!r}{limit})"

    def release(
        self,
        mechanism: Mechanism,
        data: Any = None,  # noqa: ANN401
        dataset: str = "unnamed",
        *,
        fresh: bool | None = None,
        **given: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Return what a mechanism releases from data, written down before it is drawn.

        Args:
            mechanism: a design, a sampler, a kernel, or your own `Mechanism`.
            data: its input, or inputs; each of them spends its guarantee.
            dataset: see `charge`.
            fresh: see there.
            given: what else its ``release`` takes, such as an alphabet.

        Raises:
            BudgetError: if the releases would leave the budget of their data set.
            ParameterError: for data that the mechanism does not take, or if nothing can be written
                down. Nothing was drawn in either case.
            NotPrivateError: if the mechanism has no certificate.
        """
        if not callable(getattr(mechanism, "asked", None)):
            raise ParameterError(
                f"mechanism is {shown(mechanism)}; it must be a design, a sampler or a kernel."
            )
        if isinstance(data, Iterator):
            raise ParameterError("data is an iterator, which is read once; make a list of it.")
        count = mechanism.asked(data, **given)
        if count:
            self.charge(mechanism, dataset, count=count, fresh=fresh)
        return mechanism.release(data, **given)

    def charge(
        self,
        of: Guarantee | Mechanism,
        dataset: str = "unnamed",
        *,
        count: int = 1,
        what: str | None = None,
        fresh: bool | None = None,
    ) -> Entry:
        """Write releases down, before they are drawn; on disk when this returns.

        Args:
            of: the mechanism, or the guarantee of one release of another program.
            dataset: your name of the data. Spaces around it do not count, nor how Unicode writes
                its letters: names are kept in its composed form (NFC).
            count: number of releases.
            what: of what they are, in a few words; needed with a guarantee.
            fresh: of labels of private voters: True if every vote was drawn afresh, or its voters
                are asked for one label and never again. False if the voters were trained once:
                what all of them spend, so that every other label of theirs is free afterwards. None
                writes down what covers both.

        Raises:
            BudgetError: if the releases would leave the budget of their data set.
            ParameterError: if they cannot be written down. Nothing may be drawn in either case.
            NotPrivateError: if the mechanism has no certificate.
        """
        entry = self._entry(of, dataset, count, what, fresh)
        with self._opened("BEGIN IMMEDIATE") as db:
            priced, first = _priced(db, entry.dataset), _first(db, entry.dataset)
            if not self._fits(priced, first, entry):
                raise BudgetError(
                    f"guarantee is {told(entry.guarantee)}, for {number(count, 'release')}; data "
                    f"set {shown(entry.dataset)} has an epsilon of "
                    f"{_cut(self._left(priced, first))} left of the budget {self.budget} of ledger "
                    f"{str(self.path)!r}."
                )
            row = _row(entry)
            db.execute(f"INSERT INTO entries VALUES (NULL{', ?' * len(row)})", row)
        return entry

    def refused(
        self,
        of: Guarantee | Mechanism,
        dataset: str = "unnamed",
        *,
        count: int = 1,
        fresh: bool | None = None,
    ) -> bool:
        """Return whether `charge` would refuse now, for the budget; nothing is written.

        Args:
            of: see `charge`, as for the rest.
            dataset: see there.
            count: see there.
            fresh: see there.
        """
        entry = self._entry(of, dataset, count, "a question", fresh)
        with self._opened() as db:
            priced, first = _priced(db, entry.dataset), _first(db, entry.dataset)
        return not self._fits(priced, first, entry)

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return the entries of a data set in their order; those of all together if None."""
        with self._opened() as db:
            return _entries(db, "ORDER BY id" if dataset is None else _OF, dataset)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets of which something was released, in the order of the file."""
        return tuple(dict.fromkeys(entry.dataset for entry in self.entries()))

    def total(
        self, dataset: str | None = None, delta: float | None = None
    ) -> tuple[str, Guarantee]:
        """Return what all releases from a data set spend together, and by which composition.

        "simple", or "budget" where the budget of an adaptive ledger is less. If ``adaptive`` is
        False, the least epsilon of these and of "concentrated" and "optimal" composition, and of
        "exact", from dominating pairs through dp-accounting; but simple composition unless another
        one saves more than a hundredth of its epsilon. All are rounded up, but of the delta of
        "exact" 1e-14 for each release is reserved for the rounding of its FFT, which is measured,
        not proved.

        Args:
            dataset: its name; if None all data sets together, as if their records were the same.
            delta: of all together, in [0, 1); if None that of the budget, and without a budget that
                of simple composition.

        Raises:
            ParameterError: if the releases promise nothing at this delta, or the file cannot be
                read.
        """
        if delta is not None:
            delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
        with self._opened() as db:
            priced = _priced(db, dataset)
        limit = self.budget
        known = dict(self._compositions(priced, limit.delta if limit and delta is None else delta))
        kept = limit is not None and self.adaptive and dataset is not None and bool(priced)
        if limit and kept and (delta is None or limit.delta <= delta):
            known["budget"] = limit
        if not known:
            raise ParameterError(
                f"dataset is {shown(dataset)}, and its releases promise nothing at this delta; "
                "give a larger delta."
            )
        name = min(known, key=lambda name: (known[name].epsilon, known[name].delta))
        sums = known.get("simple")
        if sums and name != "budget" and known[name].epsilon >= _WORTH * sums.epsilon:
            name = "simple"
        return name, known[name]

    def left(self, dataset: str = "unnamed") -> float | None:
        """Return the epsilon that a data set has left of the budget, rounded down.

        None without a budget. One more release without a delta may have so much; what it adds to
        the total may be less.

        Args:
            dataset: its name.

        Raises:
            ParameterError: if the file cannot be read.
        """
        with self._opened() as db:
            priced, first = _priced(db, dataset), _first(db, dataset)
        return None if self.budget is None else self._left(priced, first)

    def statement(self, dataset: str = "unnamed") -> str:
        """Return what the releases from a data set spend together, in one line."""
        count = sum(entry.count for entry in self.entries(dataset))
        name, spent = self.total(dataset)
        said = f"{number(count, 'release')} of data set {shown(name_of(dataset))} so far "
        said += f"spend{'s' if count == 1 else ''} {told(spent)}"
        if name != "simple":
            said += ", by the budget" if name == "budget" else f", by {name} composition"
        left = self.left(dataset)
        return said if left is None else f"{said}; an epsilon of {_cut(left)} is left"

    # What is asked, and whether the budget allows it.

    def _entry(
        self,
        of: Guarantee | Mechanism,
        dataset: str,
        count: int,
        what: str | None,
        fresh: bool | None,
    ) -> Entry:
        count = _checks.integer("count", count, 1, _MOST_COUNT)
        each: Any = of if isinstance(of, Guarantee) else getattr(of, "guarantee", of)
        _checks.instance("guarantee", each, Guarantee)
        if hasattr(of, "require_private"):
            of.require_private()  # pyright: ignore
        what = _described(of) if what is None and not isinstance(of, Guarantee) else what
        for name, text, most in (
            ("what", what, _LONGEST_TEXT),
            ("dataset", dataset, _LONGEST_NAME),
        ):
            if not isinstance(text, str) or not text.strip() or len(text) > most:
                raise ParameterError(
                    f"{name} is {shown(text)}; it must be a text of at least one and at most "
                    f"{most} characters."
                )
            if not text.isprintable():
                raise ParameterError(
                    f"{name} is {shown(text)}; it must hold printable characters only."
                )
        behind = getattr(getattr(of, "setting", of), "behind", None)
        if behind is None and fresh is not None:
            raise ParameterError(
                "fresh is given; it belongs to labels of private voters, and only there."
            )
        if behind is None or (fresh is not None and _checks.flag("fresh", fresh)):
            spent, folds = each, count
        elif fresh is not None:
            spent, folds = behind
        else:
            spent, folds = _larger(simple([(each, count)]), simple([behind])), 1
        if spent is None or simple([(spent, folds)]) is None:
            raise ParameterError(
                f"guarantee is {told(each)}, for {number(count, 'release')}; so many promise "
                "nothing together."
            )
        pair = None if self.adaptive or spent is not each else _few_atoms(of)
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Entry(time, name_of(dataset), str(what), each, count, spent, folds, pair)

    def _fits(self, priced: Priced, first: Guarantee | None, entry: Entry) -> bool:
        """Whether the budget allows an entry after others; what is quickly known is asked first."""
        limit = self.budget
        if limit is None:
            return True
        more = [*priced, (entry.spent, entry.folds, entry.pair)]
        if self.adaptive:
            alone = first or simple([(entry.spent, entry.folds)])
            return allowed(_parts(more), limit, alone)
        known = self._compositions(more, limit.delta)
        return any(g.epsilon <= limit.epsilon and g.delta <= limit.delta for _, g in known)

    def _left(self, priced: Priced, first: Guarantee | None) -> float:
        limit, parts = self.budget, _parts(priced)
        if limit is None:
            return inf
        if self.adaptive:
            return room(parts, limit, first)
        whole_sum = sum((n * Fraction(g.epsilon) for g, n in parts), Fraction(0))
        spent = [
            whole_sum if name == "simple" else Fraction(g.epsilon)
            for name, g in self._compositions(priced, limit.delta)
        ]
        # To any composition, one more epsilon adds at most itself.
        over = Fraction(limit.epsilon) - min(spent, default=Fraction(limit.epsilon))
        return float_down(max(Fraction(0), over))

    def _compositions(self, priced: Priced, delta: float | None) -> Iterator[tuple[str, Guarantee]]:
        """Yield guarantees of all together by name, those first that take no time."""
        parts = _parts(priced)
        sums = simple(parts)
        aim = sums.delta if delta is None and sums else delta
        if sums and aim is not None and sums.delta <= aim:
            yield "simple", sums
        if aim is None or self.adaptive or not parts:
            return
        for name, rule in (("concentrated", concentrated), ("optimal", optimal)):
            found = rule(parts, aim)
            if found:
                yield name, found
        exact = _by_accountant(priced, aim)
        if exact:
            yield "exact", exact

    # The file.

    def _begin(self, budget: Guarantee | None, adaptive: bool) -> None:
        """Make the file: whole, or not at all, by one process alone."""
        check_target(self.path)
        temporary = self.path.with_name(f".dpopt-{secrets.token_hex(8)}.ledger")
        limit = (None, None) if budget is None else (budget.epsilon, budget.delta)
        head = secrets.token_hex(16), *limit, int(adaptive)
        with self._refusing():
            try:
                with closing(_connected(temporary, "rwc")) as db:
                    db.executescript(_TABLES)
                    db.execute("INSERT INTO head VALUES (?, ?, ?, ?)", head)
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
        if not self._identity and db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise self._refusal("it is damaged")
        identity = db.execute("SELECT identity FROM head").fetchone()[0]
        entries = db.execute(_LAST).fetchone()[0]
        if self._identity not in ("", identity) or entries < self._entries:
            raise self._refusal("it was replaced or lost entries since it was opened")
        self._identity, self._entries = identity, entries

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
    """Return the name of a data set without spaces around it, in Unicode's composed form (NFC).

    What looks the same and was typed elsewhere is the same data set.
    """
    return unicodedata.normalize("NFC", dataset).strip()


def number(count: int, of: str) -> str:
    """Return a number of things in words, such as "2 releases"."""
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def told(guarantee: Guarantee) -> str:
    """Return a guarantee in short, such as "(0.5, 0)-DP"."""
    return f"({guarantee.epsilon:.6g}, {guarantee.delta:.6g})-DP"


def _cut(value: float) -> str:
    """Return six digits of a float, rounded down: as much may be spent."""
    cut = Context(prec=6, rounding=ROUND_DOWN).create_decimal(str(value))
    return f"{float(cut):.6g}"


def _larger(one: Guarantee | None, other: Guarantee | None) -> Guarantee | None:
    """Return what covers both, where it is not known which holds; None if one promises nothing."""
    if one is None or other is None:
        return None
    return Guarantee(max(one.epsilon, other.epsilon), max(one.delta, other.delta))


def _described(mechanism: object) -> str:
    """Return in a few words what a mechanism is: its kind, its proof, and what neighbours are."""
    of, proof = (getattr(mechanism, name, None) for name in ("setting", "certificate"))
    of = mechanism if of is None else of
    kind = getattr(of, "kind", type(mechanism).__name__)
    proved = "" if proof is None else f", certificate {proof.digest[:16]}"
    neighbours = getattr(of, "neighbours", "")
    return f"{kind}{proved}; {neighbours}" if neighbours else f"{kind}{proved}"


def _few_atoms(of: Any) -> DominatingPair | None:  # noqa: ANN401
    """Return the dominating pair, where it takes no time and has few outcomes."""
    proof = getattr(of, "certificate", None)
    if proof is None or proof.constraints > _MOST_CONSTRAINTS:
        return None
    try:
        pair = dominating_pair(of)
    except (ParameterError, NotPrivateError):
        return None
    return pair if len(pair.upper) <= _MOST_ATOMS else None


def _by_accountant(priced: Priced, delta: float) -> Guarantee | None:
    """Return the epsilon from dominating pairs; None without any, or without dp-accounting."""
    if all(pair is None for *_, pair in priced):
        return None
    try:
        from dpopt.interop.accounting import mixed_epsilon
    except ImportError:
        return None
    try:
        found = mixed_epsilon([(pair or guarantee, n) for guarantee, n, pair in priced], delta)
    except ParameterError:
        # A delta below what is reserved, or too many releases.
        return None
    return Guarantee(found, delta) if isfinite(found) else None


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection that begins and commits when it is told, and waits for the disk."""
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None
    )
    # As FULL; and on return, the folder too knows that the journal of the transaction is gone.
    db.execute("PRAGMA synchronous = EXTRA")
    return db


def _entries(db: sqlite3.Connection, which: str, dataset: str | None) -> list[Entry]:
    given = () if dataset is None else (name_of(dataset),)
    rows = db.execute(f"SELECT * FROM entries {which}", given)
    return [
        Entry(time, name, what, Guarantee(e, d), count, Guarantee(*spent), folds, _read(pair))
        for _, time, name, what, e, d, count, *spent, folds, pair in rows
    ]


def _first(db: sqlite3.Connection, dataset: str) -> Guarantee | None:
    """Return what the first entry of a data set spends; None before it."""
    found = _entries(db, f"{_OF} LIMIT 1", dataset)
    return simple([(entry.spent, entry.folds) for entry in found]) if found else None


def _priced(db: sqlite3.Connection, dataset: str | None) -> Priced:
    """Return what was spent of a data set, or of all together if None, equal parts in one."""
    given = () if dataset is None else (name_of(dataset),)
    rows = db.execute(_SPENT.format("" if dataset is None else "WHERE dataset = ?"), given)
    return [(Guarantee(epsilon, delta), n, _read(pair)) for epsilon, delta, n, pair in rows]


def _parts(priced: Priced) -> list[tuple[Guarantee, int]]:
    return [(guarantee, n) for guarantee, n, _ in priced]


def _row(entry: Entry) -> Sequence[object]:
    """Return an entry as the columns of the table, but for its number."""
    pair, each, spent = entry.pair, entry.guarantee, entry.spent
    laws = pair and json.dumps([[exact_text(p) for p in law] for law in (pair.upper, pair.lower)])
    first = entry.time, entry.dataset, entry.what, each.epsilon, each.delta, entry.count
    return *first, spent.epsilon, spent.delta, entry.folds, laws


def _read(laws: str | None) -> DominatingPair | None:
    if laws is None:
        return None
    upper, lower = (tuple(map(whole, law)) for law in json.loads(laws))
    return DominatingPair(upper, lower, sum(upper))
