"""Run the notebooks, and store what they show: ``python -m tests.notebooks.store``."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        metadata = notebook.metadata.copy()
        NotebookClient(
            notebook,
            record_timing=False,
            resources={"metadata": {"path": str(ROOT)}},
            extra_arguments=["--InlineBackend.rc={'figure.dpi': 80}"],
        ).execute()
        notebook.metadata = metadata
        nbformat.write(notebook, path)
