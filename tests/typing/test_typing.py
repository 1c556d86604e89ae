"""A user's program and mechanisms type-check against the installed package, strictly, and run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import Page

# A user's calls; and the mechanisms that docs/adding.md adds.
PROGRAMS = {
    "program.py": Path(__file__).with_name("program.py").read_text(encoding="utf-8"),
    **{
        Path(name).name: text
        for name, text in Page.of("docs/adding.md").files.items()
        if name.startswith("dpopt/")
    },
}

RUN = "import runpy, sys; [runpy.run_path(name, run_name='__main__') for name in sys.argv[1:]]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *(
            pytest.param(["-m", *checker], marks=pytest.mark.nightly)
            for checker in (
                ("mypy", "--strict", "--cache-dir", "cache"),
                ("pyright", "--pythonpath", sys.executable),
            )
        ),
        ["-W", "error", "-c", RUN],
    ],
    ids=["mypy", "pyright", "run"],
)
def test_users_programs(command: list[str], tmp_path: Path) -> None:
    # From a folder of its own, so that the installed package is found and not the checkout.
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *command, *PROGRAMS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
