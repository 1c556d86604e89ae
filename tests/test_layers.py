"""Imports only point downwards, as the contracts of pyproject.toml say; the judge has none."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from dpopt import verify

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(importlib.util.find_spec("importlinter") is None, reason="no import-linter")
def test_imports_point_downwards() -> None:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    ]
    done = subprocess.run(
        [*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_judge_needs_nothing_but_python() -> None:
    tree = ast.parse(Path(verify.__file__).read_text(encoding="utf-8"))
    named = [n for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names]
    found = {alias.name for alias in named}
    found |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in found} <= sys.stdlib_module_names
