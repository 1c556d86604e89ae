"""docs/closed_forms.md and docs/referee.md, as a reader would follow them."""

from __future__ import annotations

import doctest
import shlex
from pathlib import Path

import pytest

import dpopt
from dpopt.roo.minimum import MinCount
from tests.cli.running import Capture, run
from tests.shape.page import ROOT, Page, differs

GUIDE, REFEREE = ROOT / "docs/closed_forms.md", ROOT / "docs/referee.md"


def test_the_sessions_one_after_the_other() -> None:
    text = "\n".join(Page.of(GUIDE).sessions)
    session = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
    assert len(session.examples) > 10
    printed: list[str] = []
    results = doctest.DocTestRunner().run(session, out=printed.append)
    assert results.failed == 0, "".join(printed)


def test_the_rule_of_the_last_sentence_is_not_private() -> None:
    assert not dpopt.design(MinCount(7, 2, 0.25, rule="journal")).private


def test_what_a_referee_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    session = REFEREE.read_text(encoding="utf-8").partition("```console\n")[2].partition("```")[0]
    commands = session.split("$ dpopt ")[1:]
    assert len(commands) == 2
    for command in commands:
        words, _, expected = command.partition("\n")
        code, out, _ = run(shlex.split(words), capsys)
        assert code == 0
        wrong = differs(expected, out)
        assert wrong is None, wrong
