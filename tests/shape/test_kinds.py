"""What the shape promises holds for every kind: none is named here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpopt
from tests.shape.checks import checks, run

CASES = [(kind, check) for kind in dpopt.kinds() for check in checks(kind)]


@pytest.mark.parametrize(
    ("kind", "check"), CASES, ids=[f"{kind.kind}-{check.__name__}" for kind, check in CASES]
)
def test_a_kind(kind: type[Any], check: Callable[..., None], tmp_path: Path) -> None:
    run(check, kind, tmp_path)
