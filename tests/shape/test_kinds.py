"""What the shape promises holds for every kind: none is named here."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Question, _kinds
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


def unlisted(package: str) -> list[str]:
    """The classes with a kind that the command line and `dpopt.load` do not find."""
    return [
        f'{cls.__module__}.{cls.__qualname__}: it must say `    kind: ClassVar[str] = "{cls.kind}"`'
        for cls in below(Question)
        if cls.__module__.partition(".")[0] == package and "kind" in cls.__dict__
        if cls.kind not in _kinds.homes()
        or _kinds.module_of(_kinds.homes()[cls.kind]) != cls.__module__
    ]


def test_every_class_with_a_kind_is_found_in_the_source() -> None:
    for part in pkgutil.walk_packages(dpopt.__path__, "dpopt."):
        # These may lack an optional library.
        extra = part.name.startswith(("dpopt.explore", "dpopt.interop"))
        with suppress(ImportError) if extra else nullcontext():
            if not part.name.endswith("__main__"):
                import_module(part.name)
    assert not unlisted("dpopt")
    # What the scan does not see, of another package.
    assert any(f"{toys.__name__}.Coin: it must" in line for line in unlisted("tests"))
