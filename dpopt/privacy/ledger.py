"""What a ledger writes down of a release, and what it is asked for before one is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import shown
from dpopt._types import brief
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.guarantee import Guarantee

UNNAMED = "unnamed"
"""Name of the data set of a release that names none."""

ENDING = ".ledger"
"""What is added to the name of a saved design for that of the ledger beside it."""

MOST_ATOMS = 64
"""Outcomes of a dominating pair that is written down; of a larger one, the guarantee is."""

_LONGEST_NAME, _LONGEST_TEXT, _MOST_COUNT = 200, 1000, 1 << 53


@dataclass(frozen=True, repr=False)
class Entry:
    """Releases that were asked for at once, as a ledger holds them.

    Without a group, its releases compose with all others. If ``at_most`` is given, each of them is
    also computed from ``folds`` mechanisms of that guarantee, drawn for it alone.

    A group is all that is computed from the same ``folds`` mechanisms, run once, each with the
    guarantee ``at_most``: such as the votes of voters that were trained once. Together its releases
    spend no more than these mechanisms, however many there are. ``composes`` says whether they
    compose by themselves too; where it is not known, they spend the larger of both. A single
    release of a group always has its own guarantee.

    Attributes:
        time: in UTC, such as "2026-01-31T23:59:59Z".
        what: of what the releases are, for a reader.
        dataset: the user's name of the data.
        guarantee: of one release.
        count: number of releases.
        group: name of the mechanisms that the releases share; None if they share none.
        at_most: guarantee of each of these mechanisms, or of those behind one release.
        folds: number of these mechanisms.
        composes: of a group, whether its releases compose; None if that is not known.
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

    def __repr__(self) -> str:
        return brief(
            self,
            time=self.time,
            what=self.what,
            dataset=self.dataset,
            guarantee=self.guarantee,
            count=self.count,
        )


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
