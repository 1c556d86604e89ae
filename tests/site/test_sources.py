"""The sources of the site: all are read, and what they refer to is found, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.build import MISSING, built


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_the_sources_of_all_pages_are_read_without_a_warning(tmp_path: Path) -> None:
    """By the builder that writes nothing: to write pages takes as long again."""
    text = built("dummy", tmp_path / "pages", tmp_path / "run")
    assert text.endswith("[0]"), text
