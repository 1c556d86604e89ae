"""A build of the site for tests: figures are stubs, and cells that have tests of their own rest."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from matplotlib.figure import Figure

from experiments.catalogue import all_experiments

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    *("sphinx", "furo", "myst_nb", "sphinx_click", "sphinx_design", "sphinx_copybutton"),
    "ziamath",
)
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
FIGURES = [name for name, each in all_experiments().items() if each.repeatable]
# Looking for garbage among a million nodes takes a quarter of the time.
_SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main())"
_BUILD = (sys.executable, "-c", _SPHINX, "-q", "-W", "--keep-going", "-b", "html")


def draw_stubs(folder: Path) -> None:
    """Draw a picture for each figure: the experiments' own tests look at what these really show."""
    folder.mkdir()
    figure = Figure(figsize=(2.0, 1.0))
    for kind in ("png", "pdf"):
        figure.savefig(folder / f"stub.{kind}")
        for name in FIGURES:
            shutil.copyfile(folder / f"stub.{kind}", folder / f"{name}.{kind}")


def built(out: Path, run: Path, rest: str) -> str:
    """Build the site; return what is said of it, and the exit code in brackets.

    Cells of the pages ``rest`` are not run: they have tests of their own.
    """
    draw_stubs(run)
    done = subprocess.run(
        [*_BUILD, "docs", str(out)],
        cwd=ROOT,
        env={**os.environ, "DPOPT_RUN": str(run), "DPOPT_NOT_RUN": rest},
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stderr}[{done.returncode}]"
