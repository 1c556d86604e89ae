"""A user's program type-checks against the installed package, strictly, and runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# A user's calls; and a mechanism of one's own, as far as its answer's class.
PROGRAMS = [Path(__file__).with_name(name) for name in ("program.py", "mechanism.py")]


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "mypy", "--strict", "--cache-dir", "cache"],
        ["-m", "pyright", "--pythonpath", sys.executable],
        ["-W", "error"],
    ],
    ids=["mypy", "pyright", "run"],
)
@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.stem)
def test_a_users_program(source: Path, command: list[str], tmp_path: Path) -> None:
    # From a folder of its own, so that the installed package is found and not the checkout.
    program = shutil.copy(source, tmp_path)
    done = subprocess.run(
        [sys.executable, *command, program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
