"""One design of each kind, solved once in a process, and of forms that no example has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import dpopt
from dpopt import _kinds, design, privacy
from dpopt.shape import Design, kind_of
from tests.kernel.brute import made_of


def _tight() -> Design:
    """A kernel at its limit: one unit more for output 0 of input 0 breaks it."""
    low = 2**62 // 5
    high = int(privacy.exp_lower(0.5) * low)
    return made_of([[high, 2**62 - high], [low, 2**62 - low]], 0.5)


def example(kind: str) -> Any:
    """Return the example of a kind, a setting."""
    found = kind_of(kind)
    assert found is not None
    return found.example()


_MAKERS: dict[str, Callable[[], Design]] = {
    **{kind: lambda kind=kind: design(example(kind)) for kind in _kinds.KINDS},
    "kernel-tight": _tight,
    "majority-delta": lambda: dpopt.design(dpopt.Majority(3, 0.4, 1, voter_delta=1e-3, delta=2e-3)),
    "roo-two": lambda: dpopt.design(dpopt.RevealOrObscure(9, 2, 0.3)),
    "labels": lambda: dpopt.design(dpopt.PublicPrior([0.2, 0.3, 0.5], 1.0, labels=["a", "b", "c"])),
}
SOLVED = sorted(_MAKERS)


@cache
def solved(name: str) -> Design:
    """Return the design of a kind's example, or of one of the other forms."""
    return _MAKERS[name]()
