"""What the shape promises holds for every kind: none is named here."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Setting, _kinds
from tests.shape import toys
from tests.shape.checks import checks, run

CASES = [(kind, check) for kind in dpopt.kinds() for check in checks(kind)]


@pytest.mark.parametrize(
    ("kind", "check"), CASES, ids=[f"{kind.kind}-{check.__name__}" for kind, check in CASES]
)
def test_a_kind(kind: type[Any], check: Callable[..., None], tmp_path: Path) -> None:
    run(check, kind, tmp_path)


def below(cls: type[Any]) -> Iterator[type[Any]]:
    for part in cls.__subclasses__():
        yield part
        yield from below(part)


def listed(cls: type[Any]) -> bool:
    """Whether the list of kinds has a class, in its module and with its first sentence."""
    paragraph = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
    sentence = re.split(r"\.(?:\s|$)", paragraph)[0].replace("`", "")
    return _kinds.KINDS.get(cls.__dict__["kind"]) == (cls.__module__, sentence)


def test_the_list_of_kinds_is_complete_and_says_what_they_say() -> None:
    for part in pkgutil.walk_packages(dpopt.__path__, "dpopt."):
        # These may lack an optional library.
        extra = part.name.startswith("dpopt.interop")
        with suppress(ImportError) if extra else nullcontext():
            if not part.name.endswith("__main__"):
                import_module(part.name)
    own = [cls for cls in below(Setting) if cls.__module__.partition(".")[0] == "dpopt"]
    own = [cls for cls in own if "kind" in cls.__dict__]
    assert {cls.kind for cls in own} == set(_kinds.KINDS)
    assert [cls.__qualname__ for cls in own if not listed(cls)] == []
    assert not listed(toys.Coin)


def test_names_of_kinds_are_in_order_and_no_verbs() -> None:
    assert list(_kinds.KINDS) == sorted(_kinds.KINDS)
    assert not _kinds.KINDS.keys() & _kinds.VERBS
