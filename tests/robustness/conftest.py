"""Hostile arguments are sometimes good paths: what they write goes to a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.getcwd()  # noqa: PTH109
    os.chdir(tmp_path_factory.mktemp("hostile"))
    yield
    os.chdir(before)
