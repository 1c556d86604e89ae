"""A mechanism of one's own is checked by mypy --strict and pyright as far as its answer's class."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("program.py")


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "mypy", "--strict", "--cache-dir", "cache"],
        ["-m", "pyright", "--pythonpath", sys.executable],
        ["-W", "error"],
    ],
    ids=["mypy", "pyright", "run"],
)
def test_a_kind_of_ones_own(command: list[str], tmp_path: Path) -> None:
    # From a folder of its own, so that the installed package is found and not the checkout.
    program = shutil.copy(PROGRAM, tmp_path)
    done = subprocess.run(
        [sys.executable, *command, program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
