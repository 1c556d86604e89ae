"""What a ledger writes down of a release, and what it is asked for before one is drawn."""

from __future__ import annotations

import os
import threading
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self
from weakref import WeakSet

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text, shown
from dpopt._types import Json, brief
from dpopt.privacy.composed import larger, simple
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.guarantee import Guarantee

UNNAMED = "unnamed"
"""Name of the data set of a release that names none."""

ENDING = ".ledger"
"""What is added to the name of a saved design for that of the ledger beside it."""

MOST_ATOMS = 64
"""Outcomes of a dominating pair that is written down; of a larger one, the guarantee is."""

# Of a proof this large, the dominating pair is not asked for at a release.
_MOST_CONSTRAINTS = 20_000
_LONGEST_NAME, _LONGEST_TEXT, _MOST_COUNT = 200, 1000, 1 << 53


@dataclass(frozen=True, repr=False)
class Entry:
    """Releases that were asked for at once, as a ledger holds them.

    Without a group, its releases compose with all others. If ``at_most`` is given, each of them is
    also computed from ``folds`` mechanisms of that guarantee, drawn for it alone. But if
    ``composes`` is None too, it is not known of these mechanisms whether they are the same for all
    releases, of this entry and of others: then each such entry spends what its releases do or what
    its mechanisms do, whichever is larger. That covers all cases.

    A group is all that is computed from the same ``folds`` mechanisms, run once, each with the
    guarantee ``at_most``: such as the votes of voters that were trained once. Together its releases
    spend no more than these mechanisms, however many there are. ``composes`` says whether they
    compose by themselves too; where it is not known, they spend the larger of both. A single
    release of a group always has its own guarantee.

    Attributes:
        time: in UTC, such as "2026-01-31T23:59:59Z".
        what: of what the releases are, for a reader.
        dataset: the user's name of the data, as `name_of` returns it.
        guarantee: of one release.
        count: number of releases.
        group: name of the mechanisms that the releases share; None if they share none.
        at_most: guarantee of each of these mechanisms, or of those behind one release.
        folds: number of these mechanisms.
        composes: of a group, whether its releases compose; None if that is not known, nor, without
            a group, with what they share their mechanisms.
        pair: the dominating pair of one release, for accountants; None if it is not known.
    """

    time: str
    what: str
    dataset: str
    guarantee: Guarantee
    count: int = 1
    group: str | None = None
    at_most: Guarantee | None = None
    folds: int = 1
    composes: bool | None = False
    pair: DominatingPair | None = None

    def __post_init__(self) -> None:
        """Refuse what no ledger could hold.

        Raises:
            ParameterError: for a name that is empty, too long or not printable, a number out of
                range, or a group without ``at_most``.
        """
        _checks.instance("guarantee", self.guarantee, Guarantee)
        _require_text("what", self.what, _LONGEST_TEXT)
        _require_text("dataset", self.dataset, _LONGEST_NAME)
        object.__setattr__(self, "dataset", name_of(self.dataset))
        for name, most in (("count", _MOST_COUNT), ("folds", _MOST_COUNT)):
            object.__setattr__(self, name, _checks.integer(name, getattr(self, name), 1, most))
        if self.at_most is not None:
            _checks.instance("at_most", self.at_most, Guarantee)
        elif self.group is not None:
            raise ParameterError("at_most is None; a group needs what its releases share.")
        if self.group is not None:
            _require_text("group", self.group, _LONGEST_NAME)
        if self.composes is not None:
            object.__setattr__(self, "composes", _checks.flag("composes", self.composes))
        if self.pair is not None:
            _checks.instance("pair", self.pair, DominatingPair)

    def to_dict(self) -> Json:
        """Return the entry as plain values, as a line of a ledger has them; integers as text."""
        line: Json = {
            "time": self.time,
            "what": self.what,
            "dataset": self.dataset,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "count": self.count,
        }
        if self.group is not None:
            line["group"] = self.group
        if self.group is not None or self.composes is None:
            line["composes"] = self.composes
        if self.at_most is not None:
            shared = {"epsilon": self.at_most.epsilon, "delta": self.at_most.delta}
            line |= {"at_most": shared, "folds": self.folds}
        if self.pair is not None:
            line["pair"] = {
                "upper": list(map(exact_text, self.pair.upper)),
                "lower": list(map(exact_text, self.pair.lower)),
                "scale": exact_text(self.pair.scale),
            }
        return line

    def __repr__(self) -> str:
        return brief(
            self,
            time=self.time,
            what=self.what,
            dataset=self.dataset,
            guarantee=self.guarantee,
            count=self.count,
        )


def name_of(dataset: str) -> str:
    """Return the name of a data set without spaces around it, in Unicode's composed form (NFC).

    What looks the same and was typed elsewhere is the same data set.
    """
    return unicodedata.normalize("NFC", dataset).strip()


def _require_text(name: str, value: object, most: int) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise ParameterError(
            f"{name} is {shown(value)}; it must be a text of at least one and at most {most} "
            "characters."
        )
    if not value.isprintable():
        raise ParameterError(f"{name} is {shown(value)}; it must hold printable characters only.")


class Recorder(Protocol):
    """What a release is written down by before it is drawn, such as a `dpopt.Ledger`."""

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
        """Write releases down, on disk when this returns; see `Entry` for the arguments.

        Raises:
            ParameterError: if they are refused; then nothing may be drawn.
        """
        ...


class Tally:
    """How many releases one object made, and in which calls; several threads may count."""

    def __init__(self) -> None:
        self._lock, self._calls = threading.Lock(), dict[int, int]()
        _TALLIES.add(self)

    @property
    def calls(self) -> dict[int, int]:
        """Number of the calls that released so many at once."""
        with self._lock:
            return dict(self._calls)

    @property
    def count(self) -> int:
        """Number of releases."""
        return sum(size * times for size, times in self.calls.items())

    def add(self, count: int) -> None:
        """Count the releases of a call."""
        with self._lock:
            self._calls[count] = self._calls.get(count, 0) + 1


_TALLIES: WeakSet[Tally] = WeakSet()


def _after_fork() -> None:
    """Renew the locks in a new process: threads that held them may not exist there."""
    for tally in list(_TALLIES):
        tally._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Releasing:
    """A proved mechanism that counts its releases, and has each written down before it is drawn.

    The count belongs to the object: it is neither compared, copied nor pickled. Which file the
    object is kept in goes along with its copies and pickles, and with its certificate: whatever is
    made of it releases what was proved there, and writes to the same ledger.
    """

    guarantee: Any
    certificate: Any

    @cached_property
    def _tally(self) -> Tally:
        return Tally()

    @property
    def releases(self) -> int:
        """How many releases this object made; what a ledger knows of others is not in it."""
        return self._tally.count

    @property
    def together(self) -> Guarantee | None:
        """What the releases of this object spend together, if all were of the same data.

        By simple composition. Of votes, each call spends what its votes or what all their voters
        do, whichever is larger: the object knows neither whether votes were drawn afresh, nor
        whether calls asked the same voters. None if there were none, or if so many promise nothing.
        """
        calls, behind = self._tally.calls, self._behind()
        count = self.releases
        if count <= 1 or behind is None:
            return simple([(self.guarantee, count)]) if count else None
        spent = [(larger([(self.guarantee, n)], [behind]), times) for n, times in calls.items()]
        kept = [(each, times) for each, times in spent if each is not None]
        return simple(kept) if len(kept) == len(spent) else None

    @property
    def ledger(self) -> Recorder | None:
        """The ledger beside the file of this object; None if it has no file, or that has none.

        Raises:
            ParameterError: if it cannot be used: changed, for another design, or taken away.
        """
        if "_opened" in vars(self):
            return vars(self)["_opened"]
        kept = self._kept_at()
        if kept is None:
            return None
        path, expected = beside(kept[0]), kept[1]
        if expected or os.path.lexists(path):
            vars(self)["_opened"] = opened(path, None, self.certificate.digest, new=False)
        return vars(self).get("_opened")

    def keep_at(self, file: Path, recorder: Recorder | None = None) -> None:
        """Have releases written down by the ledger beside a file, where there is one.

        Args:
            file: that the mechanism was read from, or saved to.
            recorder: the ledger, if it is open.
        """
        self._take_along({"_kept": (file.resolve(), os.path.lexists(beside(file)))})
        vars(self).pop("_opened", None)
        if recorder is not None:
            vars(self)["_opened"] = recorder

    def _kept_at(self) -> tuple[Path, bool] | None:
        """Return the file of the object, and whether a ledger was beside it; None without one."""
        for holder in (self, self.certificate):
            if "_kept" in getattr(holder, "__dict__", {}):
                return vars(holder)["_kept"]
        return None

    def _take_along(self, attributes: dict[str, Any]) -> Self:
        # `dataclasses.replace` hands on fields alone, and the certificate is one.
        for holder in (self, self.certificate):
            if holder is not None:
                vars(holder).update(attributes)
        return self

    def _along(self) -> dict[str, Any]:
        kept = self._kept_at()
        if kept is None:
            return {}
        return {"_kept": (kept[0], kept[1] or os.path.lexists(beside(kept[0])))}

    def write_down(
        self,
        count: int = 1,
        *,
        ledger: Recorder | None = None,
        dataset: str | None = None,
        trained_once: bool | None = None,
        group: str | None = None,
    ) -> Entry | None:
        """Write releases down before they are drawn, and count them; `release` does so itself.

        Args:
            count: number of releases, at least 1; each spends the whole guarantee.
            ledger: a `dpopt.Ledger`; if None the one beside the file, if there is one.
            dataset: your name of the data; "unnamed" if None. Spaces around it do not count, nor
                how Unicode writes its letters.
            trained_once: of votes, whether all are of voters that were trained once, or every vote
                was drawn afresh; see `dpopt.majority.Spending`. If None, what is written down
                covers both.
            group: your name of the voters in the ledger, the same for all that is ever asked of
                them, and another for others; needed where they were trained once. If None, each
                call is charged as if it may be of the same voters as others, and as if not.

        Returns:
            The entry; None without a ledger.

        Raises:
            ParameterError: if the ledger refuses; then nothing may be drawn.
        """
        recorder, entry = ledger, None
        voters = self._voters(trained_once, group)
        if recorder is None:
            recorder = self.ledger
        elif not callable(getattr(recorder, "charge", None)):
            raise ParameterError(f"ledger is {shown(recorder)}; it must be a dpopt.Ledger.")
        if recorder is not None:
            digest = self.certificate.digest
            if getattr(recorder, "design", None) not in (None, digest):
                raise ParameterError("ledger is for another design, or other numbers of this one.")
            if trained_once and group is None:
                raise ParameterError(
                    "group is None; voters trained once need a name in the ledger, the same for "
                    "all that is ever asked of them."
                )
            what = f"{self._kind()}, certificate {digest[:16]}{self._assumed()}"
            given: Any = {"what": what, "dataset": dataset, "count": count, **voters}
            entry = recorder.charge(self.guarantee, **given)
        for name, value in (("dataset", dataset), ("group", group)):
            if recorder is None and value is not None:
                raise ParameterError(
                    f"{name} is {shown(value)} and there is no ledger; give a dpopt.Ledger."
                )
        self._tally.add(count)
        return entry

    def _voters(self, trained_once: bool | None, group: str | None) -> Json:
        """Return what a ledger is told of the voters behind a vote; of others, the pair.

        Raises:
            ParameterError: if something is said of voters that are none, or that is not so.
        """
        behind = self._behind()
        if trained_once is not None:
            trained_once = _checks.flag("trained_once", trained_once)
        if behind is None:
            for name, value in (("trained_once", trained_once), ("group", group)):
                if value is not None:
                    raise ParameterError(
                        f"{name} is given; it belongs to a vote of private voters, and only there."
                    )
            return {"pair": self._few_atoms}
        shared: Json = {"at_most": behind[0], "folds": behind[1]}
        if trained_once is False:
            if group is not None:
                raise ParameterError(
                    f"group is {shown(group)}; it must be None where votes are drawn afresh."
                )
            return {**shared, "pair": self._few_atoms}
        return {**shared, "group": group, "composes": False if trained_once else None}

    def _kind(self) -> str:
        """Return what the mechanism is, in a word."""
        return type(self).__name__

    def _assumed(self) -> str:
        """Return what a line of a ledger says of neighbours, after a semicolon; or nothing."""
        return ""

    def _behind(self) -> tuple[Guarantee, int] | None:
        """Return guarantee and number of mechanisms whose outputs are the data; None of records."""
        return None

    def _pair(self) -> DominatingPair | None:
        """Return the dominating pair of one release, if it is known."""
        found = getattr(self, "dominating", None)
        return None if found is None else found()

    @cached_property
    def _few_atoms(self) -> DominatingPair | None:
        """The dominating pair, where it takes no time and has few outcomes."""
        if self.certificate.constraints > _MOST_CONSTRAINTS:
            return None
        try:
            pair = self._pair()
        except (ParameterError, NotPrivateError):
            return None
        return pair if pair is not None and len(pair.upper) <= MOST_ATOMS else None


def beside(file: Path) -> Path:
    """Return the path of the ledger beside a file: its name, and ".ledger".

    Links lead to the file itself: there is one ledger, by whichever name the file is opened.
    """
    file = file.resolve()
    return file.with_name(file.name + ENDING)


def opened(path: Path, budget: Guarantee | None, digest: str, *, new: bool) -> Recorder:
    """Open the ledger of one design, or begin it if it is new.

    Args:
        path: of the ledger.
        budget: see `dpopt.Ledger`.
        digest: of the design's certificate.
        new: whether to begin one where there is none.

    Raises:
        ParameterError: if it cannot be used, or is missing and not to be begun.
    """
    if not new and not os.path.lexists(path):
        raise ParameterError(
            f"ledger {str(path)!r} is missing, and it was beside the mechanism; put it back."
        )
    # By name: a ledger asks accountants, and so stands above what it is told by.
    return import_module("dpopt.ledger").Ledger(path, budget, design=digest)
