"""Every notebook runs from top to bottom in a fresh kernel, and is committed without outputs.

It reads as a lesson: what must be so at its end stands in `tests.notebooks.lessons`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="nbclient is not installed (extra test-all)")

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tests.notebooks import lessons

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/*.ipynb"))
OURS = r"(dpopt|__main__)(\.|$)"
CHECK = """
import sys
from types import SimpleNamespace
sys.path.insert(0, {root!r})
from tests.notebooks import lessons
lessons.{name}(SimpleNamespace(**globals()))
"""
# The lessons on claims use experiments, which are beside the notebooks in the repository.
STRICT = f"""
import sys, warnings
sys.path.insert(0, {str(ROOT)!r})
warnings.filterwarnings('error', module={OURS!r})
"""


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def assigned(cell: NotebookNode) -> set[str]:
    """Return the names that a code cell assigns or defines."""
    lines = cell.source.splitlines()
    tree = ast.parse("\n".join("" if line.startswith("%") else line for line in lines))
    nodes = list(ast.walk(tree))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {n.name for n in nodes if isinstance(n, ast.FunctionDef)}


def check_of(name: str) -> NotebookNode:
    return nbformat.v4.new_code_cell(CHECK.format(root=str(ROOT), name=name))


def with_checks(path: Path, notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Yield the cells, each followed by the checks of what it is the first to assign."""
    start = f"{path.stem}__"
    left = [name for name in vars(lessons) if name.startswith(start)]
    assert left
    for cell in notebook.cells:
        yield cell
        if cell.cell_type == "code":
            now = [name for name in left if name.removeprefix(start) in assigned(cell)]
            left = [name for name in left if name not in now]
            yield from map(check_of, now)
    assert not left, f"no cell assigns what {left} are named after"


def test_there_is_a_notebook_for_each_mechanism() -> None:
    stems = {path.stem for path in NOTEBOOKS}
    assert {"majority", "reveal_or_obscure", "public_prior", "kernel", "smoothed"} <= stems
    assert {"your_program_proved", "majority_claims"} <= stems


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Run a notebook in a fresh kernel, in which warnings from our code are errors."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(STRICT))
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()


# Here, the client and its kernel manager may warn.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path) -> None:
    notebook = read(path)
    cells = code(notebook)
    assert cells
    notebook.cells = list(with_checks(path, notebook))
    execute(notebook, tmp_path)
    assert all(cell.execution_count for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_shows_results_and_checks_nothing(path: Path) -> None:
    for cell in code(read(path)):
        assert not re.search(r"^\s*assert\b", cell.source, re.MULTILINE), cell.source
        assert "frameon" not in cell.source


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_failed_check_is_an_error(tmp_path: Path) -> None:
    rows = nbformat.v4.new_code_cell("refused = ''")
    checked = check_of("reveal_or_obscure__refused")
    with pytest.raises(CellExecutionError, match="AssertionError"):
        execute(nbformat.v4.new_notebook(cells=[rows, checked]), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_warning_in_a_cell_is_an_error(tmp_path: Path) -> None:
    warns = nbformat.v4.new_code_cell("import warnings\nwarnings.warn('from a cell')")
    with pytest.raises(CellExecutionError, match="from a cell"):
        execute(nbformat.v4.new_notebook(cells=[warns]), tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stripped(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    for cell in code(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_short_and_begin_with_their_title(path: Path) -> None:
    cells = read(path).cells
    assert 12 <= len(cells) <= 25
    assert cells[0].cell_type == "markdown"
    assert re.match(r"# \w", cells[0].source)
    assert [cell.id for cell in cells] == [
        f"{cells[0].id.removesuffix('-00')}-{place:02d}" for place in range(len(cells))
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_release_in_a_notebook_takes_a_seed(path: Path) -> None:
    source = "\n".join(cell.source for cell in code(read(path)))
    calls = re.findall(r"\.(?:release|vote)\(([^\n]*)", source)
    assert not [call for call in calls if re.search(r"rng|seed", call)]
    assert not re.search(r"np\.random\.(seed|rand)\b|default_rng\(\)", source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_name_no_path_and_no_private_module(path: Path) -> None:
    for cell in read(path).cells:
        assert not re.search(r"(^|[\s\"'(])(/|~/|[A-Z]:\\)\w+/", cell.source)
        assert not re.search(r"(from|import) dpopt[\w.]*\._", cell.source)
        assert not re.search(r"(from|import) tests\b", cell.source)
