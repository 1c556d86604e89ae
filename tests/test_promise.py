"""docs/promise.md: files of a published schema are read and verified, whatever is changed later.

A folder of tests/data holds, for each schema, the example of each kind as it was written then. It
is not written again: a new schema gets a folder of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import dpopt
from dpopt import verify
from dpopt.proofs.saved import SCHEMA, proof_path

FOLDERS = sorted((Path(__file__).parent / "data").glob("schema_*"))
FILES = [file for folder in FOLDERS for file in folder.glob("*.json") if ".proof" not in file.name]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_published_file_is_read_and_verified(file: Path) -> None:
    design = dpopt.load(file)
    assert design.private
    assert design.setting.kind == file.stem
    proof = proof_path(file)
    assert verify.main([str(path) for path in (file, proof) if path.exists()]) == 0


def test_every_kind_has_a_file_of_todays_schema() -> None:
    kinds = {kind.kind for kind in dpopt.kinds() if kind.__module__.startswith("dpopt.")}
    assert kinds == {file.stem for file in FILES if file.parent.name == f"schema_{SCHEMA}"}
