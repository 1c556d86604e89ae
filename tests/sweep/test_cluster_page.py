"""docs/cluster.md, as a reader would follow it: the session, and the script on a cluster."""

from __future__ import annotations

import csv
import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpopt import majority
from tests.shape.page import ROOT, Page
from tests.sweep.test_cluster import PATIENCE, separate

GUIDE = ROOT / "docs/cluster.md"
PAGE = Page.of(GUIDE)


def test_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = PAGE.sessions
    session = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(session, out=printed.append).failed == 0, "".join(printed)


def test_the_script_and_its_resumption(tmp_path: Path) -> None:
    assert set(PAGE.files) == {"study.py", "slurm.py"}
    compile(PAGE.files["slurm.py"], "slurm.py", "exec")
    (tmp_path / "study.py").write_text(PAGE.files["study.py"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with separate(tmp_path):
        said = [
            subprocess.run(
                [sys.executable, "study.py"],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
            ).stdout.splitlines()[-1]
            for _ in range(2)
        ]
    assert said == ["27 points, 0 failed, 0 reused", "27 points, 0 failed, 27 reused"]
    with (tmp_path / "study.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["mechanisms"] for row in rows[::3]] == [str(k) for k in range(5, 23, 2)]
    for row in rows[::7]:
        mechanisms, allowance = int(row["mechanisms"]), int(row["allowance"])
        assert float(row["error"]) == majority.design(mechanisms, 0.1, allowance).expected_error
