"""SECURITY.md names the test of each promise; each of them is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.findall(
    r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")
)


def test_each_promise_names_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promised = text.split("## What is promised")[1].split("## What is not")[0]
    promises = [part for part in promised.split("\n\n") if part.startswith("**")]
    assert len(promises) >= 7
    assert all("::test_" in promise for promise in promises)


def test_the_tests_it_names_are_there() -> None:
    for file, name in NAMED:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
