"""docs/adding.md, as a newcomer would follow it: its files, its commands, and its numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpopt import Setting
from tests.pages import ROOT, Page, differs

pytestmark = pytest.mark.slow

TEXT = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
PAGE = Page.of("docs/adding.md")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process says that follows the whole page."""
    folder = tmp_path_factory.mktemp("adding")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.shape.follow", str(folder)],
        cwd=ROOT,
        env={**inherited, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_page_is_short_and_adds_files_alone() -> None:
    assert len(TEXT.splitlines()) <= 365
    assert PAGE.scripts == []
    assert list(PAGE.entries) == [("dpopt/_kinds.py", "KINDS")]
    assert len([name for name in PAGE.files if name.startswith("dpopt/")]) == 2
    assert not [name for name in PAGE.files if (ROOT / name).exists()]


def test_it_names_what_a_setting_may_say_and_counts_it() -> None:
    section = TEXT.partition("## What a setting may say")[2].partition("\n## ")[0]
    first, rest = section.split("say otherwise")
    cells = [
        [row.split("|")[1:3] for row in part.splitlines() if row.startswith("|") and "`" in row]
        for part in (first, rest)
    ]
    ten = {name for row in cells[0] for name in row[0].split("`")[1::2]}
    others = {name for row in cells[1] for name in row[1].split("`")[1::2]}
    # `keep` is for a setting to call.
    own = {name for name in (*vars(Setting), *Setting.__annotations__) if name[0] != "_"} - {"keep"}
    assert ten | others == own
    assert not ten & others
    assert len(ten) == 10
    assert f"{len(others)} members" in section


def test_it_prints_what_it_says_and_its_kinds_pass_what_every_kind_passes(
    told: dict[str, Any],
) -> None:
    for (command, expected), printed in zip(PAGE.commands, told["commands"], strict=True):
        assert differs(expected, printed) == "", command
    assert len(PAGE.sessions) == 2
    assert told["sessions"] == ""
    assert told["broken"] == []
    assert all(f"\n  {name} " in told["help"] for name in ("count", "survey"))


def test_its_files_are_as_clean_as_the_rest(tmp_path: Path) -> None:
    for name, text in PAGE.files.items():
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    ours = ["--config", "lint.isort.known-first-party = ['dpopt']"]
    for command in (["check"], ["format", "--diff"]):
        words = [sys.executable, "-m", "ruff", *command, *ours, "--config", ROOT / "pyproject.toml"]
        done = subprocess.run(
            [*words, "."], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
