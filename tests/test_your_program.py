"""docs/your_program.md, as a reader would follow it: every line of it, and what it prints."""

from __future__ import annotations

import doctest
import shlex
from pathlib import Path

import pytest

from dpopt.cli import main
from tests.shape.page import ROOT, Page, differs

GUIDE = ROOT / "docs/your_program.md"
PAGE = Page.of(GUIDE)


def test_the_sessions_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(PAGE.sessions)
    session = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
    assert len(session.examples) > 40
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    results = runner.run(session, out=printed.append)
    assert results.failed == 0, "".join(printed)


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert PAGE.commands
    for command, expected in PAGE.commands:
        with pytest.raises(SystemExit) as caught:
            main(shlex.split(command)[1:])
        assert caught.value.code == 0, command
        wrong = differs(expected, capfd.readouterr().out)
        assert wrong is None, wrong
