"""docs/adding.md, as a newcomer would follow it: its files, its commands, and its numbers."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from tests.shape.page import ROOT, Copy, Page, differs

PAGE = Page.of(ROOT / "docs/adding.md")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy.make(tmp_path_factory.mktemp("adding"), PAGE)


def test_the_page_adds_files_and_edits_a_list_alone() -> None:
    assert list(PAGE.entries) == [("dpopt/_kinds.py", "KINDS")]
    assert len([name for name in PAGE.files if name.startswith("dpopt/")]) == 2
    assert not [name for name in PAGE.files if (ROOT / name).exists()]
    # As promised at its beginning: short enough to be read at once.
    assert len(PAGE.files["dpopt/count.py"].splitlines()) <= 120


@pytest.mark.parametrize("place", range(len(PAGE.commands)), ids=lambda i: PAGE.commands[i][0])
def test_a_command(copy: Copy, place: int) -> None:
    for before, _ in PAGE.commands[:place]:
        if "--save" in before and not (copy.root / "count.json").exists():
            copy.shell(before)
    command, expected = PAGE.commands[place]
    wrong = differs(expected, copy.shell(command))
    assert wrong is None, wrong


@pytest.mark.parametrize("session", PAGE.sessions)
def test_a_session(copy: Copy, session: str, tmp_path: Path) -> None:
    path = tmp_path / "session.txt"
    path.write_text(session, encoding="utf-8")
    done = copy.python("-m", "doctest", "-o", "ELLIPSIS", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_new_kinds_are_found(copy: Copy) -> None:
    done = copy.python("-c", "import dpopt; print(*(kind.kind for kind in dpopt.kinds()))")
    assert {"count", "survey"} <= set(done.stdout.split()), done.stderr
    listed = copy.shell("dpopt --help")
    assert all(f"\n  {name} " in listed for name in ("count", "survey"))


def test_the_new_kinds_pass_what_every_kind_passes(copy: Copy) -> None:
    done = copy.shell("python -m pytest -q tests/shape/test_kinds.py -k survey")
    assert " passed" in done, done
    assert "failed" not in done, done


def test_the_new_files_are_as_clean_as_the_rest(copy: Copy) -> None:
    names = list(PAGE.files)
    typed = ["pyright", "--pythonpath", sys.executable]
    for command in (["ruff", "check"], ["ruff", "format", "--diff"], typed):
        done = copy.python("-m", *command, *names)
        assert done.returncode == 0, done.stdout + done.stderr
    done = copy.shell("python -m pytest -q tests/test_public_names.py tests/layers")
    assert "failed" not in done, done
    assert " passed" in done, done


def value_of(copy: Copy, command: str) -> float:
    return json.loads(copy.shell(f"{command} --json"))["value"]


def test_two_people_by_hand(copy: Copy) -> None:
    """A grid of kernels in fractions: none is better, and the best comes close.

    For e^epsilon = 2 and two people. By symmetry (x, y) -> (2 - x, 2 - y), and since the largest
    error is convex, rows 0 and 2 mirror each other and row 1 is its own mirror image.
    """
    found = value_of(copy, f"dpopt count --people 2 --epsilon {math.log(2)!r}")
    steps = 60
    best = Fraction(2)
    for a, b in product(range(steps + 1), repeat=2):
        if a + b > steps:
            continue
        end = (Fraction(a, steps), Fraction(b, steps), Fraction(steps - a - b, steps))
        for m in range(steps // 2 + 1):
            middle = (Fraction(m, steps), 1 - Fraction(2 * m, steps), Fraction(m, steps))
            if all(p <= 2 * q and q <= 2 * p for p, q in zip(end, middle, strict=True)):
                best = min(best, max(end[1] + 2 * end[2], middle[0] + middle[2]))
    assert found <= float(best) + 1e-9
    assert found == pytest.approx(float(best), abs=2 / steps)


@pytest.mark.parametrize(("answers", "epsilon"), [(2, math.log(3)), (4, 1.0), (1000, 20.0)])
def test_a_survey_by_its_formula(copy: Copy, answers: int, epsilon: float) -> None:
    for backend in ("", " --backend highs"):
        options = f"--answers {answers} --epsilon {epsilon!r}{backend}"
        found = value_of(copy, f"dpopt survey {options}")
        ratio = math.exp(epsilon)
        assert found == pytest.approx(ratio / (ratio + answers - 1), rel=1e-9)
