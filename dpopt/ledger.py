"""Whatever is released is written down: of which data, what it spends, and what all of it spends.

    ledger = dpopt.Ledger("votes.ledger", budget=dpopt.Guarantee(2.0, 1e-6))
    design.release(votes, ledger=ledger, dataset="votes of May")
    ledger.total("votes of May")

What is asked is written, and on disk, before anything is drawn; what would leave the budget is
refused. So no crash leaves a release that is not written down, though it may leave an entry whose
release was never drawn. Several processes may use one file at once: one at a time holds its lock.

A file of a ledger has a line for itself and one for each entry, each with the SHA-256 of all up to
it. What was edited, reordered or lost in the middle is refused. Lines that somebody cut off whole
from the end are not noticed: a ledger guards against mistakes, not against its keeper.

The end of a line that is missing is a crash while it was written. Nothing was drawn for it: a
release is drawn after `Ledger.charge` returned, which is after the file was synchronised, which is
after the whole line was written. So the part of a line is taken away by the next one who writes,
and a line says so. A line that lacks nothing but its end is kept and counts: if not for a release,
then to be on the safe side. Whatever else stands there is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._lock import locked
from dpopt._numbers import digits, float_down, shown, whole
from dpopt._page import result_page
from dpopt._types import Json
from dpopt.files import check_target, folder_to_disk, parse_json, why_unread
from dpopt.privacy import Guarantee
from dpopt.privacy.composed import (
    Parts,
    concentrated,
    general,
    larger,
    least_delta,
    optimal,
    simple,
)
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.ledger import MOST_ATOMS, UNNAMED, Entry

__all__ = ["Entry", "Ledger"]

FORMAT, SCHEMA = "dpopt ledger", 1

_OPEN, _HEX, _MIDDLE = b'{"chain":"', 64, b'","line":'
_TIME = b'{"time":"'
_TIME_ENDS = len(_TIME + b'2026-01-31T23:59:59Z"')
_FOREIGN = "it is no ledger of dpopt"
_CHANGED = "one of its lines was changed, moved or cut off after it was written"
_MOST_LINE = 1 << 16
# Bits of the integers of a pair that is written down.
_LONGEST_PAIR = 1 << 15
_BLOCK = 1 << 20
# Of the entries that differ in their time only, one is read.
_KNOWN_LINES = 4096
# Beyond these, ways to count groups are not tried in all combinations.
_MOST_WAYS = 16

Part = tuple[Guarantee, DominatingPair | None]
"""What one mechanism spends; its dominating pair if that is known."""

Way = dict[Part, int]
"""Mechanisms that spend together what releases do, with their numbers."""


@dataclass
class _Shared:
    """The releases of a group: their guarantees with numbers, and what they share."""

    at_most: Guarantee
    folds: int
    composes: bool | None
    releases: Way = field(default_factory=dict)

    @property
    def terms(self) -> tuple[object, ...]:
        """What all releases of the group share."""
        return self.at_most, self.folds, self.composes

    def ways(self) -> list[Way]:
        """Return the ways to count them that are valid; none if they promise nothing."""
        shared: Way = {(self.at_most, None): self.folds}
        if sum(self.releases.values()) == 1 or self.composes:
            return [self.releases, shared]
        if self.composes is not None:
            return [shared]
        # Either is what they spend, and it is not known which.
        both = larger(_parts(self.releases), _parts(shared))
        return [] if both is None else [{(both, None): 1}]


@dataclass
class _Account:
    """What was spent of one data set, equal entries merged.

    Attributes:
        alone: releases of no group, by guarantee, pair, and what is behind each of them.
        groups: by name.
        releases: their number.
    """

    alone: dict[tuple[Part, tuple[Guarantee, int] | None], int] = field(default_factory=dict)
    groups: dict[str, _Shared] = field(default_factory=dict)
    releases: int = 0

    def add(self, entry: Entry, times: int = 1) -> None:
        """Count an entry, or several that are equal.

        Raises:
            ParameterError: if it says something else of its group than earlier ones.
        """
        part = entry.guarantee, entry.pair
        if entry.group is None:
            behind = None if entry.at_most is None else (entry.at_most, entry.folds)
            key = part, behind
            self.alone[key] = self.alone.get(key, 0) + times * entry.count
        else:
            at_most = entry.at_most or entry.guarantee
            new = _Shared(at_most, entry.folds, entry.composes)
            group = self.groups.setdefault(entry.group, new)
            if new.terms != group.terms:
                raise ParameterError(
                    f"group is {shown(entry.group)}, of which the ledger knows another at_most, "
                    "folds or composes; name another group."
                )
            group.releases[part] = group.releases.get(part, 0) + times * entry.count
        self.releases += times * entry.count

    def copy(self) -> _Account:
        """Return another account of the same."""
        groups = {
            name: _Shared(g.at_most, g.folds, g.composes, dict(g.releases))
            for name, g in self.groups.items()
        }
        return _Account(dict(self.alone), groups, self.releases)

    def ways(self) -> list[Way]:
        """Return ways to count all releases, each valid; none if a group promises nothing."""
        choices: list[list[Way]] = []
        for (part, behind), count in self.alone.items():
            own: Way = {part: count}
            other: list[Way] = [] if behind is None else [{(behind[0], None): behind[1] * count}]
            choices.append([own, *other])
        choices += [group.ways() for group in self.groups.values()]
        return [_merged(picked) for picked in _picked(choices)]


class Ledger:
    """A file in which every release is written down before it is drawn; it refuses beyond a budget.

    Attributes:
        path: of the file, absolute.
        budget: what the releases of each data set may spend together; None if there is no limit.
        design: the digest of the certificate of the one design that the ledger is for; None if it
            is for all.
        adaptive: whether what is asked next, and how much it may spend, is decided after seeing
            earlier outputs. Only simple and concentrated composition allow this. If False, how
            much each release spends was fixed before; what is asked with it may depend on outputs.

    Example:
        >>> import dpopt, tempfile
        >>> path = f"{tempfile.mkdtemp()}/study.ledger"
        >>> ledger = dpopt.Ledger(path, budget=dpopt.Guarantee(1.0))
        >>> entry = ledger.charge(dpopt.Guarantee(0.25), what="a count", dataset="visits", count=3)
        >>> ledger.total("visits")
        ('simple', Guarantee(epsilon=0.75, delta=0.0))
        >>> ledger.charge(dpopt.Guarantee(0.5), what="another", dataset="visits")
        Traceback (most recent call last):
        ...
        dpopt._errors.ParameterError: guarantee is (0.5, 0)-DP, for 1 release; data set 'visits' ...
    """

    def __init__(
        self,
        path: str | Path,
        budget: Guarantee | None = None,
        *,
        design: str | None = None,
        adaptive: bool | None = None,
    ) -> None:
        """Open a ledger, or begin one where there is no file.

        Args:
            path: of the file.
            budget: of a new ledger, for each data set; None for no limit. Of one that is there, the
                budget that it has; None for whichever it has.
            design: the digest of a certificate: of a new ledger, the only one that it is for.
            adaptive: see `Ledger`; of a new ledger False if None.

        Raises:
            ParameterError: if the file is no ledger, was changed, or cannot be read or made; or if
                it has another budget, or is for another design.
        """
        if budget is not None:
            _checks.instance("budget", budget, Guarantee)
        given = None if adaptive is None else _checks.flag("adaptive", adaptive)
        if design is not None and (not isinstance(design, str) or not design):
            raise ParameterError(f"design is {shown(design)}; it must be a digest.")
        if not isinstance(path, str | os.PathLike):
            raise ParameterError(f"path is {shown(path)}; it must be the path of a file.")
        self.path = Path(path).absolute()
        self._alone = threading.RLock()
        self._forget()
        if not os.path.lexists(self.path):
            self._begin(budget, design, bool(given))
        self._catch_up()
        self._require_same(budget, design, given)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: another process opens the same file."""
        return Ledger, (str(self.path),)

    def __repr__(self) -> str:
        limit = "" if self.budget is None else f", budget={self.budget}"
        return f"Ledger({str(self.path)!r}{limit})"

    def charge(
        self,
        guarantee: Guarantee,
        *,
        what: str,
        dataset: str | None = None,
        count: int = 1,
        group: str | None = None,
        at_most: Guarantee | None = None,
        folds: int = 1,
        composes: bool | None = False,
        pair: DominatingPair | None = None,
    ) -> Entry:
        """Write releases down, before they are drawn; on disk when this returns.

        Args:
            guarantee: of one release.
            what: of what the releases are, in a few words.
            dataset: your name of the data; "unnamed" if None.
            count: number of releases.
            group: see `Entry`, as for the rest; None for releases that compose.
            at_most: guarantee of each mechanism that the group shares, or that is behind a release.
            folds: number of these.
            composes: of a group: True, False, or None if it is not known.
            pair: the dominating pair of one release; one of many outcomes is not written down.

        Raises:
            ParameterError: if the releases would leave the budget of their data set, or cannot be
                written down. Nothing may be drawn then.
        """
        if pair is not None and not _few(pair):
            pair = None
        entry = Entry(
            _now(),
            what,
            UNNAMED if dataset is None else dataset,
            guarantee,
            count,
            group,
            at_most,
            folds,
            composes,
            pair,
        )
        with self._alone, self._writing() as file:
            account = self._accounts.get(entry.dataset, _Account()).copy()
            account.add(entry)
            self._require_budget(entry, account)
            self._append(file, entry.to_dict())
            self._accounts[entry.dataset] = account
        return entry

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets of which something was released, in the order of the file."""
        with self._alone:
            self._catch_up()
            return tuple(self._accounts)

    def releases(self, dataset: str | None = None) -> int:
        """Return the number of releases from a data set; from all together if None."""
        return self._account(dataset).releases

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in their order, read from the file one after the other.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        with self._opened(os.O_RDONLY) as file:
            for body in _Reader().bodies(file):
                known = self._entry(body)
                if known is not None:
                    yield replace(known, time=_time_of(body))

    def compositions(
        self, dataset: str | None = None, delta: float | None = None
    ) -> dict[str, Guarantee]:
        """Return every guarantee that is known for the releases from a data set, by name.

        "simple", "general" and "optimal" are from the guarantees alone, see
        `dpopt.privacy.composed`; "exact" is from the dominating pairs, through dp-accounting where
        it is installed: each is rounded up, but of its delta 1e-14 for each release is reserved for
        the rounding of its FFT, which is measured, not proved. An adaptive ledger has "simple" and
        "concentrated". One that promises nothing is left out.

        Args:
            dataset: its name; if None all data sets together, as if their records were the same.
            delta: of all together, in [0, 1); if None that of the budget, and without a budget that
                of simple composition.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        account = self._account(dataset)
        return self._compositions(account, delta)

    def total(
        self, dataset: str | None = None, delta: float | None = None
    ) -> tuple[str, Guarantee]:
        """Return the composition with the smallest epsilon, then delta, and its name.

        Args:
            dataset: see `compositions`.
            delta: see there.

        Raises:
            ParameterError: if the releases promise nothing at this delta, or the file cannot be
                read, or was changed.
        """
        return _least(self.compositions(dataset, delta), _named(dataset))

    def left(self, dataset: str | None = None) -> float | None:
        """Return the epsilon that a data set has left of the budget, rounded down.

        None without a budget. What a release adds may be less than its epsilon.

        Args:
            dataset: its name; if None all data sets together.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        if self.budget is None:
            return None
        return _left(self.budget, self.compositions(dataset).values())

    def statement(self, dataset: str | None = None) -> str:
        """Return what the releases from a data set spend together, in one line.

        Args:
            dataset: its name; if None all data sets together.
        """
        count, of = self.releases(dataset), _named(dataset)
        number = f"{count:,} release{'' if count == 1 else 's'} of {of} so far"
        spend = "spends" if count == 1 else "spend"
        known = self.compositions(dataset)
        if not known:
            return f"{number} promise{'s' if count == 1 else ''} nothing"
        name, spent = _least(known, of)
        by = "" if count <= 1 or name == "simple" else f", by {name} composition"
        together = "" if count == 1 else " together"
        left = self.left(dataset)
        rest = "" if left is None else f"; an epsilon of {left:.6g} is left"
        return f"{number} {spend} {_told(spent)}{together}{by}{rest}"

    def to_dict(self) -> Json:
        """Return budget, data sets and totals as plain values, ready for JSON."""
        told: Json = {}
        for dataset in self.datasets:
            known = self.compositions(dataset)
            least = min(known, key=lambda name: _order(known[name])) if known else None
            told[dataset] = {
                "releases": self.releases(dataset),
                "composition": least,
                "total": None if least is None else _pair_of(known[least]),
                "compositions": {name: _pair_of(spent) for name, spent in known.items()},
                "epsilon_left": self.left(dataset),
            }
        return {
            "path": str(self.path),
            "budget": None if self.budget is None else _pair_of(self.budget),
            "design": self.design,
            "adaptive": self.adaptive,
            "datasets": told,
        }

    def _repr_html_(self) -> str:
        """Return what each data set has spent, for notebooks."""
        facts = {name: self.statement(name) for name in self.datasets}
        limit = "no budget" if self.budget is None else f"a budget of {_told(self.budget)}"
        statement = f"{self.releases():,} releases from {len(facts)} data sets, with {limit} each."
        return result_page(type(self).__name__, statement, None, facts)

    # What the file holds.

    def _forget(self) -> None:
        self._reader = _Reader()
        self._accounts: dict[str, _Account] = {}
        self._known: dict[bytes, Entry | None] = {}
        self.budget: Guarantee | None = None
        self.design: str | None = None
        self.adaptive = False

    def _begin(self, budget: Guarantee | None, design: str | None, adaptive: bool) -> None:
        """Make the file with its first line: whole, or not at all, by one process alone."""
        check_target(self.path)
        head = {
            "format": FORMAT,
            "schema": SCHEMA,
            "budget": None if budget is None else _pair_of(budget),
            "design": design,
            "adaptive": adaptive,
        }
        line = _line("", head)
        temporary = self.path.parent / f".dpopt-{secrets.token_hex(8)}.ledger"
        try:
            file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            try:
                _write(file, line)
            finally:
                os.close(file)
            # Where another process was first, its ledger stays.
            with suppress(FileExistsError):
                os.link(temporary, self.path)
            folder_to_disk(self.path.parent)
        except OSError as error:
            raise self._refuse(why_unread(error)) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _require_same(
        self, budget: Guarantee | None, design: str | None, adaptive: bool | None
    ) -> None:
        if budget is not None and budget != self.budget:
            has = "none" if self.budget is None else _told(self.budget)
            raise ParameterError(
                f"budget is {_told(budget)}; ledger {str(self.path)!r} has {has}, which stays."
            )
        if design is not None and self.design not in (None, design):
            raise ParameterError(
                f"ledger {str(self.path)!r} is for another design, or for other numbers of this "
                "one; name another ledger."
            )
        if adaptive is not None and adaptive != self.adaptive:
            raise ParameterError(
                f"adaptive is {adaptive}; ledger {str(self.path)!r} has {self.adaptive}, which "
                "stays."
            )

    def _require_budget(self, entry: Entry, account: _Account) -> None:
        """Refuse an account beyond the budget; what is quickly known is asked first."""
        if self.budget is None:
            return
        budget = self.budget
        for spent in self._each(account, budget.delta):
            if spent[1].epsilon <= budget.epsilon and spent[1].delta <= budget.delta:
                return
        before = self._accounts.get(entry.dataset, _Account())
        left = _left(budget, self._compositions(before, budget.delta).values())
        number = f"{entry.count:,} release{'' if entry.count == 1 else 's'}"
        raise ParameterError(
            f"guarantee is {_told(entry.guarantee)}, for {number}; data set "
            f"{shown(entry.dataset)} has an epsilon of {digits(left)} left of the budget "
            f"{_told(budget)} of ledger {str(self.path)!r}."
        )

    def _account(self, dataset: str | None) -> _Account:
        with self._alone:
            self._catch_up()
            if dataset is not None:
                return self._accounts.get(dataset, _Account()).copy()
            together = _Account()
            for name, account in self._accounts.items():
                copied = account.copy()
                for key, count in copied.alone.items():
                    together.alone[key] = together.alone.get(key, 0) + count
                # Equal names of groups in two data sets are two groups.
                groups = {f"{name}\n{group}": found for group, found in copied.groups.items()}
                together.groups.update(groups)
                together.releases += copied.releases
            return together

    def _compositions(self, account: _Account, delta: float | None) -> dict[str, Guarantee]:
        if delta is None and self.budget is not None:
            delta = self.budget.delta
        known: dict[str, Guarantee] = {}
        for name, spent in self._each(account, delta):
            if name not in known or _order(spent) < _order(known[name]):
                known[name] = spent
        return known

    def _each(self, account: _Account, delta: float | None) -> Iterator[tuple[str, Guarantee]]:
        """Yield guarantees by name, those first that take no time; delta is that of simple if None.

        Raises:
            ParameterError: for a delta out of range.
        """
        if delta is not None:
            delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
        ways = account.ways()
        rules = (concentrated,) if self.adaptive else (general, optimal)
        for way in ways:
            found = simple(_parts(way))
            if found is not None and (delta is None or found.delta <= delta):
                yield "simple", found
        for rule in rules:
            for way in ways:
                aim = _aim(way) if delta is None else delta
                found = None if aim is None else rule(_parts(way), aim)
                if found is not None:
                    yield rule.__name__, found
        for way in () if self.adaptive else ways:
            aim = _aim(way) if delta is None else delta
            found = None if aim is None else _by_accountant(tuple(way.items()), aim)
            if found is not None:
                yield "exact", found

    # The file.

    def _refuse(self, why: str) -> ParameterError:
        return ParameterError(
            f"ledger {str(self.path)!r} cannot be used: {why}; nothing was drawn."
        )

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """Yield the descriptor of the file; its errors become errors of the parameter."""
        try:
            check_target(self.path)
            extra = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            file = os.open(self.path, flags | extra | getattr(os, "O_CLOEXEC", 0))
            try:
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise self._refuse(why_unread(error)) from error
        except _Broken as error:
            raise self._refuse(str(error)) from None

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Yield the file, locked, read to its end, and without the part of a line."""
        with self._opened(os.O_RDWR | os.O_APPEND) as file, locked(file) as sure:
            if not sure:
                raise _Broken("its file system has no locks; keep it on a disk of your own")
            self._read(file)
            self._mend(file)
            yield file

    def _catch_up(self) -> None:
        with self._alone, self._opened(os.O_RDONLY) as file:
            self._read(file)

    def _read(self, file: int) -> None:
        """Read what is new: every line is counted, equal ones together.

        Raises:
            _Broken: if the file is none of a ledger, or is not the one that was read before.
        """
        self._reader.require_same(file)
        seen: dict[bytes, int] = {}
        for body in self._reader.bodies(file):
            if self._reader.count == 1:
                self._open_head(body)
                continue
            if not body.startswith(_TIME):
                raise _Broken("one of its lines is malformed")
            key = body[_TIME_ENDS:]
            seen[key] = seen.get(key, 0) + 1
            if key not in self._known:
                self._entry(body)
            if len(self._known) > _KNOWN_LINES:
                self._count(seen)
        self._count(seen)

    def _count(self, seen: dict[bytes, int]) -> None:
        for key, times in seen.items():
            entry = self._known[key]
            if entry is not None:
                account = self._accounts.setdefault(entry.dataset, _Account())
                try:
                    account.add(entry, times)
                except ParameterError:
                    raise _Broken("two of its lines differ in what a group shares") from None
        seen.clear()
        if len(self._known) > _KNOWN_LINES:
            self._known.clear()

    def _open_head(self, body: bytes) -> None:
        line = _parsed(body)
        if line.get("format") != FORMAT:
            raise _Broken(_FOREIGN)
        if line.get("schema") != SCHEMA:
            raise _Broken(f"its schema is {shown(line.get('schema'))}; this dpopt reads {SCHEMA}")
        budget, design = line.get("budget"), line.get("design")
        try:
            self.budget = None if budget is None else _guarantee_of(budget)
            self.adaptive = _checks.flag("adaptive", line["adaptive"])
        except (KeyError, TypeError, ValueError):
            raise _Broken("its first line is malformed") from None
        if design is not None and not isinstance(design, str):
            raise _Broken("its first line is malformed")
        self.design = design

    def _entry(self, body: bytes) -> Entry | None:
        """Return the entry of a line, None of another line; its time may be another one's.

        Of lines that differ in their time alone, one is parsed.
        """
        key = body[_TIME_ENDS:]
        if key not in self._known:
            line = _parsed(body)
            try:
                self._known[key] = None if "what" not in line else _entry_of(line)
            except (KeyError, TypeError, ValueError):
                raise _Broken("one of its lines is malformed") from None
        return self._known[key]

    def _mend(self, file: int) -> None:
        """Take away the part of a line, under the lock; or end a line that lacks its end alone."""
        tail = self._reader.tail
        if not tail:
            return
        whole = tail.rstrip(b"\0")
        if self._reader.complete(whole):
            os.ftruncate(file, self._reader.offset + len(whole))
            _write(file, b"\n")
            self._read(file)
            return
        os.ftruncate(file, self._reader.offset)
        self._append(file, {"time": _now(), "unfinished": len(tail)})

    def _append(self, file: int, record: Json) -> None:
        """Write a line; what a failure leaves of it is mended by the next one who writes."""
        line = _line(self._reader.chain, record)
        if len(line) > _MOST_LINE:
            raise ParameterError("what is too long an entry for a ledger; name fewer words.")
        _write(file, line)
        self._reader.passed(line)


class _Broken(Exception):  # noqa: N818 - it never leaves this module
    """The file cannot be used, and why."""


class _Reader:
    """What was read of a file, line by line, each with the chain of all before it.

    Attributes:
        offset: bytes that were read and whose lines are whole.
        count: number of these lines.
        chain: of the last one.
        tail: the bytes after them: part of a line, or a line without its end.
    """

    def __init__(self) -> None:
        self.offset, self.count, self.chain, self.tail = 0, 0, "", b""
        self._last = b""
        self._identity: tuple[int, int] | None = None

    def require_same(self, file: int) -> None:
        """Refuse another file than the one that was read before, or one that lost lines."""
        found = os.fstat(file)
        if self._identity is None:
            self._identity = found.st_dev, found.st_ino
        os.lseek(file, self.offset - len(self._last), os.SEEK_SET)
        same = self._identity == (found.st_dev, found.st_ino)
        if not same or _taken(file, len(self._last)) != self._last:
            raise _Broken("it was replaced or changed since it was opened")

    def bodies(self, file: int) -> Iterator[bytes]:
        """Yield what each new line says, its chain compared.

        Raises:
            _Broken: at a line that nobody wrote here, or was changed.
        """
        os.lseek(file, self.offset, os.SEEK_SET)
        rest = b""
        while block := os.read(file, _BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                body = self._body(line)
                if body is None:
                    raise _Broken(_FOREIGN if self.count == 0 else _CHANGED)
                self.passed(line + b"\n")
                yield body
            if len(rest) > _MOST_LINE:
                raise _Broken(_FOREIGN if self.count == 0 else _CHANGED)
        if self.count == 0:
            raise _Broken(_FOREIGN if rest else "it is empty, which a ledger never is")
        if not self._mendable(rest):
            raise _Broken(_CHANGED)
        self.tail = rest

    def passed(self, line: bytes) -> None:
        """Go on after a line that is whole."""
        self.offset += len(line)
        self.count += 1
        self.chain = line[len(_OPEN) : len(_OPEN) + _HEX].decode()
        self._last, self.tail = line, b""

    def complete(self, line: bytes) -> bool:
        """Whether these bytes are the next line but for its end."""
        return self._body(line) is not None

    def _body(self, line: bytes) -> bytes | None:
        start = len(_OPEN) + _HEX
        body = line[start + len(_MIDDLE) : -1]
        chain = _chained(self.chain, body)
        whole = b"".join((_OPEN, chain.encode(), _MIDDLE, body, b"}"))
        return body if whole == line else None

    def _mendable(self, tail: bytes) -> bool:
        """Whether bytes are part of the next line, perhaps with zeros that a crash left."""
        part = tail.rstrip(b"\0")
        if not part or self.complete(part):
            return True
        head, chain = part[: len(_OPEN)], part[len(_OPEN) : len(_OPEN) + _HEX]
        middle = part[len(_OPEN) + _HEX :][: len(_MIDDLE)]
        begun = _OPEN.startswith(head) and _MIDDLE.startswith(middle)
        # A line and something else than its end was changed by somebody.
        return begun and not chain.strip(b"0123456789abcdef") and not self.complete(part[:-1])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time_of(body: bytes) -> str:
    return body[len(_TIME) : _TIME_ENDS - 1].decode()


def _chained(chain: str, body: bytes) -> str:
    return hashlib.sha256(chain.encode() + body).hexdigest()


def _line(chain: str, record: Json) -> bytes:
    """Return the line of a record that follows a chain."""
    body = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    return b"".join((_OPEN, _chained(chain, body).encode(), _MIDDLE, body, b"}\n"))


def _parsed(body: bytes) -> Json:
    try:
        found = parse_json(body.decode())
    except ValueError:
        raise _Broken("one of its lines is malformed") from None
    if not isinstance(found, dict):
        raise _Broken("one of its lines is malformed")
    return found


def _entry_of(line: Json) -> Entry:
    at_most, pair = line.get("at_most"), line.get("pair")
    return Entry(
        time=str(line["time"]),
        what=line["what"],
        dataset=line["dataset"],
        guarantee=_guarantee_of(line),
        count=line["count"],
        group=line.get("group"),
        at_most=None if at_most is None else _guarantee_of(at_most),
        folds=line.get("folds", 1),
        composes=line.get("composes", False),
        pair=None if pair is None else _pair_read(pair),
    )


def _pair_read(plain: Json) -> DominatingPair:
    upper, lower = (tuple(map(whole, plain[name])) for name in ("upper", "lower"))
    scale = whole(plain["scale"])
    laws = min(*upper, *lower) >= 0 and sum(upper) == sum(lower) == scale > 0
    if not laws or len(upper) != len(lower) or 0 in lower[1:]:
        raise ValueError("no pair of laws")
    return DominatingPair(upper, lower, scale)


def _pair_of(guarantee: Guarantee) -> dict[str, float]:
    return {"epsilon": guarantee.epsilon, "delta": guarantee.delta}


def _guarantee_of(plain: Json) -> Guarantee:
    return Guarantee(plain["epsilon"], plain["delta"])


def _few(pair: object) -> bool:
    """Whether a pair is short enough to be written down."""
    _checks.instance("pair", pair, DominatingPair)
    found: Any = pair
    digits_ = len(found.upper) * found.scale.bit_length()
    return len(found.upper) <= MOST_ATOMS and digits_ <= _LONGEST_PAIR


def _write(file: int, line: bytes) -> None:
    """Write bytes at the end of a file, and wait for the disk."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def _taken(file: int, size: int) -> bytes:
    """Return the next bytes of a file, fewer only at its end."""
    found = b""
    while len(found) < size and (block := os.read(file, size - len(found))):
        found += block
    return found


def _named(dataset: str | None) -> str:
    return "all data sets together" if dataset is None else f"data set {shown(dataset)}"


def _told(guarantee: Guarantee) -> str:
    return f"({guarantee.epsilon:.6g}, {guarantee.delta:.6g})-DP"


def _order(guarantee: Guarantee) -> tuple[float, float]:
    return guarantee.epsilon, guarantee.delta


def _least(known: dict[str, Guarantee], of: str) -> tuple[str, Guarantee]:
    if not known:
        raise ParameterError(
            f"dataset is given, and the releases of {of} promise nothing at this delta; give a "
            "larger delta."
        )
    name = min(known, key=lambda name: _order(known[name]))
    return name, known[name]


def _left(budget: Guarantee, known: Iterable[Guarantee]) -> float:
    spent = [found.epsilon for found in known if found.delta <= budget.delta]
    if not spent:
        return 0.0
    return max(0.0, float_down(max(Fraction(0), Fraction(budget.epsilon) - Fraction(min(spent)))))


def _parts(way: Way) -> Parts:
    """Return guarantees with numbers: pairs are for accountants."""
    return [(guarantee, count) for (guarantee, _), count in way.items()]


def _aim(way: Way) -> float | None:
    """Return the delta of simple composition; where that is 1, the least one that is known."""
    found = simple(_parts(way))
    aim = least_delta(_parts(way)) if found is None else found.delta
    return aim if aim < 1 else None


def _merged(ways: Iterable[Way]) -> Way:
    merged: Way = {}
    for way in ways:
        for part, count in way.items():
            merged[part] = merged.get(part, 0) + count
    return merged


def _picked(choices: list[list[Way]]) -> list[tuple[Way, ...]]:
    """Return combinations of one way of each choice: all if they are few, else the likely best."""
    if prod(map(len, choices)) <= _MOST_WAYS:
        return list(product(*choices))

    def least(power: int) -> tuple[Way, ...]:
        def size(way: Way) -> Fraction:
            return sum((n * Fraction(g.epsilon) ** power for (g, _), n in way.items()), Fraction(0))

        return tuple(min(ways, key=size) for ways in choices)

    # Of simple composition the sum of epsilons decides; of the others, nearly that of the squares.
    return [least(1), least(2)]


@lru_cache(maxsize=256)
def _by_accountant(parts: tuple[tuple[Part, int], ...], delta: float) -> Guarantee | None:
    """Return the epsilon from dominating pairs; None without any, or without dp-accounting."""
    if all(pair is None for (_, pair), _ in parts):
        return None
    try:
        from dpopt.interop.accounting import mixed_epsilon
    except ImportError:
        return None
    mixed = [(guarantee if pair is None else pair, count) for (guarantee, pair), count in parts]
    try:
        epsilon = mixed_epsilon(mixed, delta)
    except ParameterError:
        # A delta below what is reserved, or too many releases.
        return None
    return Guarantee(epsilon, delta) if isfinite(epsilon) else None
