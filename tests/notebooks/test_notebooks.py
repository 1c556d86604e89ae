"""Every notebook runs from top to bottom, and shows pictures where it stores some.

``python -m tests.notebooks.store`` stores what they show; numbers drawn at random differ.

It reads as a lesson, without checks: what its text says of its very numbers stands here, by the
name of the notebook. What mechanisms compute is tested with them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra test-all)")
pytest.importorskip("nbformat", reason="nbformat is not installed (extra test-all)")

import matplotlib.pyplot as plt
import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/*.ipynb"))
OURS = r"(dpopt|__main__)(\.|$)"
over_notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

LESSONS: dict[str, tuple[str, ...]] = {
    "kernel": (
        # The prices of single edges add up to the slope of the value in epsilon.
        "np.isclose(by_edge.sum(), (up - down) / (2 * h), rtol=0.001)",
        "held.value > design.value",
        "'near' in refused and 'privacy' in refused",
    ),
    "majority": (
        "round(design.expected_error, 4) == 0.0256",
        # Each is the best of the three under its own prior.
        "np.all(table.diagonal() <= table.min(axis=0) + 1e-9)",
        "table[0, 1] > 5 * table[1, 1]",
        "proof.constraints == 144",
        "abs(drawn.mean() - chance) < 5 * (chance * (1 - chance) / 50_000) ** 0.5",
        "refusal",
    ),
    "majority_claims": ("ratio > exp_upper(Fraction(6))",),
    "proofs": (
        "accepted[0] == 0 and 0 <= design.value - design.bound < 1e-11",
        "moved[1].startswith('REFUSED: not private: the ratio of variables')",
        "decided[1].startswith('optimal: 32420/43841 for e^epsilon = 5/2 (kernel, 66 rows)')",
        "form(2) == Fraction(5, 6)",
    ),
    "public_prior": (
        "abs(share - design.apply(p)).max() < 5 * 0.5 / 20000**0.5",
        "distance.mean() < kernel.mean() and worst > leximin.worst_tv",
    ),
    "noise": (
        "squared.table == approximate.table",
        "best[0.0][-1].value / laplace_error(5.0) < 0.21",
        "several.found < several.gaussian < several.laplace",
    ),
    "reveal_or_obscure": (
        "[name for name, sampler in rules.items() if not sampler.private] == ['conference']",
        "(witness.counts, witness.neighbour) == ((6, 6, 8), (7, 6, 7))",
        "all((lost['floor'] < lost['exact']) == (min(n) < 6) for n, lost in losses.items())",
    ),
    "smoothed": ("drawn[-1] > 100 * exact.delta[-1]",),
    "votes": (
        "[round(d.worst_regret, 2) for d in (best, minimax)] == [1.2, 1.1]",
        "(voting.queries_, voting.spent_.epsilon) == (30, 15.0) and 'affords 40' in refused",
        "[round(d.error, 4) for d in others.values()] == [0.1165, 0.1247, 0.1312, 0.1655]",
        "released == 3 and 'left of the budget' in beyond",
    ),
    "workload": (
        "np.isclose(compared['this'], compared['bound'], rtol=1e-8) and decoded > design.value",
        "np.all(abs(estimate.values - truth) <= 6 * estimate.standard_errors + 1e-6)",
    ),
    "your_program_proved": (
        "design.private and risk <= RISK + 1e-12",
        "abs(by_definition.objective - by_problem.objective) < 2e-7",
    ),
}


class Shell(InteractiveShell):
    """A kernel's shell without a window: pictures are outputs."""

    def enable_gui(self, gui: str | None = None) -> None:
        del gui


@pytest.fixture
def shell() -> Iterator[Shell]:
    """The only shell of this process, empty; pictures and main module are as before at the end."""
    main = sys.modules["__main__"]
    # What another test left open would be shown with the first cell's pictures.
    plt.close("all")
    with plt.rc_context():
        shell = Shell.instance()
        shell.reset()
        sys.modules["__main__"] = shell.user_module
        yield shell
        plt.switch_backend("agg")
    # Without it no process can be spawned.
    sys.modules["__main__"] = main


def cells_of(path: Path) -> list[Any]:
    """Return a notebook's code cells."""
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def code(path: Path) -> list[str]:
    """Return the sources of a notebook's code cells."""
    return [cell.source for cell in cells_of(path)]


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore", f"error:::{OURS}")
@over_notebooks
def test_notebooks_run(
    path: Path, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, in which the libraries are loaded already; warnings of ours are errors."""
    monkeypatch.chdir(tmp_path)
    outputs = list[Any]()
    for cell in cells_of(path):
        with capture_output() as captured:
            shell.run_cell(cell.source).raise_error()
        outputs += captured.outputs
        # Here what a cell returns may be printed.
        assert bool(captured.outputs or captured.stdout) == bool(cell.outputs)
        pictures = sum("image/png" in each.data for each in captured.outputs)
        assert pictures == sum("image/png" in each.get("data", {}) for each in cell.outputs)
        assert not captured.stderr, captured.stderr
    assert any("image/png" in output.data for output in outputs)
    for lesson in LESSONS[path.stem]:
        assert eval(lesson, shell.user_ns), lesson
    assert not list(tmp_path.iterdir())


@over_notebooks
def test_a_lesson_shows_results_by_public_names_and_checks_nothing(path: Path) -> None:
    for source in code(path):
        assert not re.search(r"^\s*assert\b", source, re.MULTILINE), source
        assert "frameon" not in source
        assert not re.search(r"(from|import) (dpopt[\w.]*\._|tests\b)", source)
    calls = re.findall(r"\.(?:release|vote)\(([^\n]*)", "\n".join(code(path)))
    assert not [call for call in calls if re.search(r"rng|seed", call)]
    assert not re.search(r"np\.random\.(seed|rand)\b|default_rng\(\)", "\n".join(code(path)))


@over_notebooks
def test_notebooks_are_stored_small_short_and_titled(path: Path) -> None:
    assert path.stat().st_size < 300_000
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = notebook.cells
    stored = [output for cell in cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in stored)
    assert all(output.get("name") != "stderr" for output in stored)
    assert str(ROOT) not in str(stored)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert 12 <= len(cells) <= 25
    assert cells[0].cell_type == "markdown"
    assert re.match(r"# \w", cells[0].source)
    for cell in cells:
        assert not re.search(r"(^|[\s\"'(])(/|~/|[A-Z]:\\)\w+/", cell.source)
