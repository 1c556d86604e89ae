"""What is promised of every kind holds for every kind, and for forms that its example has not."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Guarantee, Setting, _kinds
from tests.shape import checks, toys

CASES = [(kind, check) for kind in dpopt.kinds() for check in checks.CHECKS]


@pytest.mark.every_case
@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("kind", "check"), CASES, ids=[f"{kind.kind}-{check.__name__}" for kind, check in CASES]
)
def test_a_kind(kind: type[Any], check: Callable[..., None], tmp_path: Path) -> None:
    checks.run(check, kind, tmp_path)


PRIOR = [0.2, 0.3, 0.5]
PATH = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
SQUARE = [[0.0, 1.0, 1.0, 2.0], [1.0, 0.0, 2.0, 1.0], [1.0, 2.0, 0.0, 1.0], [2.0, 1.0, 1.0, 0.0]]
CIRCLE = [[0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [1.0, 2.0, 1.0, 0.0]]

# A setting whose proof is another one than its example's, and an input of it.
VOTES = [0, 0, 0, 1, 1, 2]
WORDS: dict[str, Any] = {"graph": "hamming", "shape": (2, 2), "symmetry": "hamming"}
TURNED: dict[str, Any] = {"graph": "path", "objective": "worst-case", "symmetry": "reflection"}
VARIANTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "deltas": (lambda: dpopt.Majority(3, 0.5, 1.5, voter_delta=1e-3, delta=0.01), [0, 1, 1]),
    "one q": (lambda: dpopt.RevealOrObscure(6, 3, 0.9, "roo"), VOTES),
    "journal": (lambda: dpopt.RevealOrObscure(6, 3, 0.9, "journal-repaired"), VOTES),
    "leximin": (lambda: dpopt.PublicPrior(PRIOR, 0.8, objective="leximin"), 1),
    "delta": (lambda: dpopt.Kernel(PATH, 0.5, 0.1, graph="path"), 1),
    "complete": (lambda: dpopt.Kernel(PATH, 0.5, prior=PRIOR, invariant=PRIOR), 1),
    "orbits": (lambda: dpopt.Kernel(PATH, 0.5, **TURNED), 1),
    "orbits with delta": (
        lambda: dpopt.Kernel(CIRCLE, 0.5, 0.1, graph="cycle", symmetry="dihedral"),
        1,
    ),
    "orbits of words": (lambda: dpopt.Kernel(SQUARE, 0.5, **WORDS), 1),
}
OF_A_VARIANT = (
    *(checks.survives_its_file, checks.comes_back_from_its_file, checks.releases_its_pmf),
    *(checks.a_changed_file_is_not_loaded, checks.copies_are_the_same),
    *(checks.proof_refuses_units_more, checks.proof_is_about_its_integers),
    *(checks.a_forged_pickle_is_proved_again, checks.without_a_proof_nothing_is_released),
    checks.pairs_are_within_the_guarantee,
)


@cache
def variant(name: str) -> Callable[[], Any]:
    """The same example for every check."""
    setting = VARIANTS[name][0]()
    return lambda: setting


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("check", OF_A_VARIANT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant(
    name: str, check: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = variant(name)
    kind = type(example())
    monkeypatch.setattr(kind, "example", example)
    monkeypatch.setattr(checks, "input_of", lambda _: VARIANTS[name][1])
    checks.run(check, kind, tmp_path)


def test_the_guarantees_are_those_asked_for() -> None:
    assert dpopt.design(VARIANTS["deltas"][0]()).guarantee == Guarantee(0.75, 0.01)
    assert dpopt.design(VARIANTS["delta"][0]()).guarantee == Guarantee(0.5, 0.1)


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
