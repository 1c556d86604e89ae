"""Whatever is released is written down: of which data, what it spends, and what all of it spends.

    ledger = dpopt.Ledger("votes.ledger", budget=dpopt.Guarantee(2.0, 1e-6))
    design.release(votes, ledger=ledger, dataset="votes of May")
    ledger.total("votes of May")

What is asked is written, and on disk, before anything is drawn; what would leave the budget is
refused. So no crash leaves a release that is not written down, though it may leave an entry whose
release was never drawn. The file is a `dpopt.privacy.journal`; why a budget holds although each
release may be chosen after seeing the ones before it, says `dpopt.privacy.account`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any
from weakref import WeakSet

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, shown, whole
from dpopt._page import result_page
from dpopt._types import Json
from dpopt.privacy import Guarantee
from dpopt.privacy.account import Account, Part
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.journal import FOREIGN, MALFORMED, Broken, Journal, now, parsed, timed
from dpopt.privacy.ledger import MOST_ATOMS, UNNAMED, Entry, name_of

__all__ = ["Entry", "Ledger"]

FORMAT, SCHEMA = "dpopt ledger", 1

# Bits of the integers of a pair that is written down.
_LONGEST_PAIR = 1 << 15
# Of the entries that differ in their time only, one is read.
_KNOWN_LINES = 4096
# A composition is told instead of the simple one, or beside the total if it needs a condition,
# where it saves more than a hundredth.
_WORTH = 0.99
# All ledgers of this process.
_OPEN: WeakSet[Ledger] = WeakSet()
_FIXED = "if their number and what each spends were fixed before the first"


class Ledger:
    """A file in which every release is written down before it is drawn; it refuses beyond a budget.

    Attributes:
        path: of the file, absolute.
        budget: what the releases of each data set may spend together; None if there is no limit.
        design: the digest of the certificate of the one design that the ledger is for; None if it
            is for all.
        adaptive: True, the default, if it may depend on earlier outputs whether there is another
            release, what it asks, and how much it spends. Then the budget is kept as a filter, see
            `dpopt.privacy.account`: by simple composition, or by concentrated composition with half
            of the budget's delta, and the deltas of the releases use no more than the other half. A
            first entry that has more takes all of it, and simple composition alone is left. False
            is your word that the number of releases and what each spends were fixed before the
            first output; what is asked may still depend on outputs. Then every composition counts.

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
            adaptive: see `Ledger`; of a new ledger True if None.

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
        self._journal = Journal(self.path, self._take, self._forget)
        self._forget()
        _OPEN.add(self)
        if not os.path.lexists(self.path):
            self._journal.begin(_head(budget, design, given is not False))
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
            dataset: your name of the data; "unnamed" if None. Spaces around it do not count, nor
                how Unicode writes its letters: names are kept in its composed form (NFC).
            count: number of releases.
            group: see `Entry`, as for the rest; None for releases that compose.
            at_most: guarantee of each mechanism that the group shares, or that is behind a release.
            folds: number of these.
            composes: of a group: True, False, or None if it is not known. None without a group: nor
                is known what they share with others.
            pair: the dominating pair of one release; one of many outcomes is not written down.

        Raises:
            ParameterError: if the releases would leave the budget of their data set, or cannot be
                written down. Nothing may be drawn then.
        """
        if pair is not None and not _few(pair):
            pair = None
        name = UNNAMED if dataset is None else dataset
        entry = Entry(now(), what, name, guarantee, count, group, at_most, folds, composes, pair)
        with self._alone, self._journal.writing() as append:
            account = self._accounts.get(entry.dataset, Account()).copy()
            account.add(entry)
            self._require_budget(entry, account)
            append(entry.to_dict())
            self._accounts[entry.dataset] = account
        return entry

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets of which something was released, in the order of the file."""
        with self._alone:
            self._catch_up()
            pending = [entry.dataset for entry in self._unended()]
            return tuple(dict.fromkeys([*self._accounts, *pending]))

    def releases(self, dataset: str | None = None) -> int:
        """Return the number of releases from a data set; from all together if None."""
        return self._account(dataset).releases

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in their order, read from the file one after the other.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        with self._alone:
            self._catch_up()
            records = self._journal.records()
        known: dict[bytes, Entry | None] = {}
        next(records)
        for body in records:
            entry = _entry(body, known)
            if entry is not None:
                yield replace(entry, time=timed(body)[0])
            if len(known) > _KNOWN_LINES:
                known.clear()

    def compositions(
        self, dataset: str | None = None, delta: float | None = None
    ) -> dict[str, Guarantee]:
        """Return every guarantee that is known for the releases from a data set, by name.

        "simple" holds however the releases were chosen, and so does "budget", the budget of an
        adaptive ledger, which no choice of releases leaves. All others hold if the number of
        releases and what each spends were fixed before the first output: "concentrated", "general"
        and "optimal" are from the guarantees alone, see `dpopt.privacy.composed`; "exact" is from
        the dominating pairs, through dp-accounting where it is installed. Each is rounded up, but
        of the delta of "exact" 1e-14 for each release is reserved for the rounding of its FFT,
        which is measured, not proved. One that promises nothing is left out.

        Args:
            dataset: its name; if None all data sets together, as if their records were the same.
            delta: of all together, in [0, 1); if None that of the budget, and without a budget that
                of simple composition.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        account = self._account(dataset)
        known = self._compositions(account, delta)
        limit = self.budget
        if limit and self.adaptive and dataset is not None and account.releases:
            known |= {"budget": limit} if delta is None or limit.delta <= delta else {}
        return known

    def total(
        self, dataset: str | None = None, delta: float | None = None
    ) -> tuple[str, Guarantee]:
        """Return the composition with the smallest epsilon, then delta, and its name.

        Simple composition, unless another one saves more than a hundredth of its epsilon, or a
        budget holds that is smaller. Of an adaptive ledger, only of those that hold however the
        releases were chosen.

        Args:
            dataset: see `compositions`.
            delta: see there.

        Raises:
            ParameterError: if the releases promise nothing at this delta, or the file cannot be
                read, or was changed.
        """
        return self._least(self.compositions(dataset, delta), _named(dataset))

    def left(self, dataset: str | None = None) -> float | None:
        """Return the epsilon that a data set has left of the budget, rounded down.

        None without a budget. One more release without a delta may have so much; what it adds to
        the total may be less. All data sets together have what their total leaves.

        Args:
            dataset: its name; if None all data sets together.

        Raises:
            ParameterError: if the file cannot be read, or was changed.
        """
        if self.budget is None:
            return None
        return self._left(self._account(dataset), filtered=dataset is not None)

    def statement(self, dataset: str | None = None) -> str:
        """Return what the releases from a data set spend together, in one line.

        Beside what holds however they were chosen, it says what is known if they were fixed.

        Args:
            dataset: its name; if None all data sets together.
        """
        count, of = self.releases(dataset), _named(dataset)
        number = f"{_number(count, 'release')} of {of} so far"
        spend = "spends" if count == 1 else "spend"
        known = self.compositions(dataset)
        if not known:
            return f"{number} promise{'s' if count == 1 else ''} nothing"
        name, spent = self._least(known, of)
        told = f"{number} {spend} {_told(spent)}"
        if count > 1:
            told += " together" if name == "simple" else f" together, {_by(name)}"
            told += self._condition(known, name, spent)
        left = self.left(dataset)
        return told if left is None else f"{told}; an epsilon of {_cut(left)} is left"

    def _condition(self, known: dict[str, Guarantee], name: str, spent: Guarantee) -> str:
        """Return under which condition a total holds, or a smaller one would."""
        if not self.adaptive:
            return "" if name == "simple" else f", {_FIXED}"
        best = min(known, key=lambda name: _order(known[name]))
        if known[best].epsilon >= _WORTH * spent.epsilon:
            return ""
        return f", and {_told(known[best])} {_by(best)}, {_FIXED}"

    def to_dict(self) -> Json:
        """Return budget, data sets and totals as plain values, ready for JSON."""
        told: Json = {}
        for dataset in self.datasets:
            known = self.compositions(dataset)
            least = self._least(known, "")[0] if self._held(known) else None
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
        releases = _number(self.releases(), "release")
        statement = f"{releases} from {_number(len(facts), 'data set')}, with {limit} each."
        return result_page(type(self).__name__, statement, None, facts)

    # What was spent.

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

    def _require_budget(self, entry: Entry, account: Account) -> None:
        """Refuse an account beyond the budget."""
        if self.budget is None or self._fits(account, self.budget):
            return
        before = self._accounts.get(entry.dataset, Account())
        number = _number(entry.count, "release")
        raise ParameterError(
            f"guarantee is {_told(entry.guarantee)}, for {number}; data set "
            f"{shown(entry.dataset)} has an epsilon of {_cut(self._left(before))} left of the "
            f"budget {_told(self.budget)} of ledger {str(self.path)!r}."
        )

    def _fits(self, account: Account, budget: Guarantee) -> bool:
        """Whether a budget allows an account; what is quickly known is asked first."""
        if self.adaptive:
            return account.allowed(budget)
        known = account.guarantees(budget.delta, _by_accountant)
        return any(g.epsilon <= budget.epsilon and g.delta <= budget.delta for _, g in known)

    def _left(self, account: Account, filtered: bool = True) -> float:
        budget = self.budget
        if budget is None:
            return float("inf")
        if self.adaptive and filtered:
            return account.room(budget)
        known = self._held(self._compositions(account, budget.delta))
        spent = [g.epsilon for g in known.values() if g.delta <= budget.delta]
        over = Fraction(budget.epsilon) - Fraction(min(spent, default=budget.epsilon))
        return max(0.0, float_down(max(Fraction(0), over)))

    def _account(self, dataset: str | None) -> Account:
        with self._alone:
            self._catch_up()
            accounts = dict(self._accounts)
            for entry in self._unended():
                accounts[entry.dataset] = accounts.get(entry.dataset, Account()).copy()
                accounts[entry.dataset].add(entry)
            if dataset is not None:
                return accounts.get(name_of(dataset), Account()).copy()
            together = Account()
            for name, account in accounts.items():
                together.join(account, name)
            return together

    def _compositions(self, account: Account, delta: float | None) -> dict[str, Guarantee]:
        if delta is None and self.budget is not None:
            delta = self.budget.delta
        known: dict[str, Guarantee] = {}
        for name, spent in account.guarantees(delta, _by_accountant):
            if name not in known or _order(spent) < _order(known[name]):
                known[name] = spent
        return known

    def _held(self, known: dict[str, Guarantee]) -> dict[str, Guarantee]:
        """Return those that hold for this ledger."""
        sure = ("simple", "budget")
        return {name: g for name, g in known.items() if not self.adaptive or name in sure}

    def _least(self, known: dict[str, Guarantee], of: str) -> tuple[str, Guarantee]:
        held = self._held(known)
        if not held:
            raise ParameterError(
                f"dataset is given, and the releases of {of} promise nothing at this delta; give a "
                "larger delta."
            )
        name = min(held, key=lambda name: _order(held[name]))
        simple = held.get("simple")
        if simple and name != "budget" and held[name].epsilon >= _WORTH * simple.epsilon:
            name = "simple"
        return name, held[name]

    # What the file holds.

    def _catch_up(self) -> None:
        with self._alone:
            self._journal.catch_up()

    def _forget(self) -> None:
        """Know nothing of the file, as before it was read."""
        self._accounts: dict[str, Account] = {}
        self._known: dict[bytes, Entry | None] = {}
        self._headed = False

    def _forked(self) -> None:
        """Begin anew in a new process: the thread that held the lock may not exist there."""
        self._alone = threading.RLock()
        self._journal.forked()

    def _take(self, bodies: Iterator[bytes]) -> None:
        """Count every record that is new, equal ones together."""
        seen: dict[bytes, int] = {}
        for body in bodies:
            if not self._headed:
                self._open_head(body)
                continue
            key = timed(body)[1]
            seen[key] = seen.get(key, 0) + 1
            _entry(body, self._known)
            if len(self._known) > _KNOWN_LINES:
                self._count(seen)
        self._count(seen)

    def _count(self, seen: dict[bytes, int]) -> None:
        for key, times in seen.items():
            entry = self._known[key]
            if entry is not None:
                account = self._accounts.setdefault(entry.dataset, Account())
                try:
                    account.add(entry, times)
                except ParameterError:
                    raise Broken("two of its lines differ in what a group shares") from None
        seen.clear()
        if len(self._known) > _KNOWN_LINES:
            self._known.clear()

    def _open_head(self, body: bytes) -> None:
        line = parsed(body)
        if line.get("format") != FORMAT:
            raise Broken(FOREIGN)
        if line.get("schema") != SCHEMA:
            raise Broken(f"its schema is {shown(line.get('schema'))}; this dpopt reads {SCHEMA}")
        budget, design = line.get("budget"), line.get("design")
        try:
            self.budget = None if budget is None else _guarantee_of(budget)
            self.adaptive = _checks.flag("adaptive", line["adaptive"])
        except (KeyError, TypeError, ValueError):
            raise Broken("its first line is malformed") from None
        if design is not None and not isinstance(design, str):
            raise Broken("its first line is malformed")
        self.design: str | None = design
        self._headed = True

    def _unended(self) -> list[Entry]:
        """Return the entry of a last line that lacks its end alone: it counts, if there is one."""
        found = [_entry(body, self._known) for body in self._journal.unended()]
        return [entry for entry in found if entry is not None]


def _after_fork() -> None:
    for ledger in list(_OPEN):
        ledger._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _entry(body: bytes, known: dict[bytes, Entry | None]) -> Entry | None:
    """Return the entry of a record, None of another record; its time may be another one's.

    Of records that differ in their time alone, one is parsed.
    """
    key = timed(body)[1]
    if key not in known:
        line = parsed(body)
        try:
            known[key] = None if "what" not in line else _entry_of(line)
        except (KeyError, TypeError, ValueError):
            raise Broken(MALFORMED) from None
    return known[key]


def _head(budget: Guarantee | None, design: str | None, adaptive: bool) -> Json:
    """Return the first record of a ledger."""
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "budget": None if budget is None else _pair_of(budget),
        "design": design,
        "adaptive": adaptive,
    }


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


def _number(count: int, of: str) -> str:
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def _named(dataset: str | None) -> str:
    return "all data sets together" if dataset is None else f"data set {shown(dataset)}"


def _told(guarantee: Guarantee) -> str:
    return f"({guarantee.epsilon:.6g}, {guarantee.delta:.6g})-DP"


def _cut(value: float) -> str:
    """Return six digits of a float, rounded down: as much may be spent."""
    cut = Context(prec=6, rounding=ROUND_DOWN).create_decimal(str(value))
    return f"{float(cut):.6g}"


def _by(name: str) -> str:
    return "by the budget" if name == "budget" else f"by {name} composition"


def _order(guarantee: Guarantee) -> tuple[float, float]:
    return guarantee.epsilon, guarantee.delta


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
