"""The numbers of the findings are those of README.md and PAPERS.md, each of which is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpopt import roo

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = sorted((ROOT / "docs/findings").glob("*.md"))
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
_NUMBER = re.compile(r"\d*\.\d+|\d{2,}")


def numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text.replace(r"\,", "").replace(",", "")))


def own() -> set[str]:
    """Numbers that no other page has, computed here or rounded from what the others have."""
    obscured = float(roo.min_count(3, 2, 0.5, "journal").q[1])
    once, twice = (count / 3 + obscured * (1 / 2 - count / 3) for count in (1, 2))
    found = {f"{value:.4f}" for value in (obscured, once, twice, twice / once)}
    return found | {f"{value:.9f}" for value in (0.478070349009, 0.477756536586)}


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_every_number_is_one_that_is_tested(path: Path) -> None:
    checked = "\n".join((ROOT / name).read_text("utf-8") for name in ("README.md", "PAPERS.md"))
    assert {"0.478070349009", "0.477756536586"} <= numbers(checked)
    told = numbers(_CODE.sub("", path.read_text(encoding="utf-8")))
    assert sorted(told - numbers(checked) - own()) == []


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_every_command_is_one_that_there_is(path: Path) -> None:
    from experiments.catalogue import all_experiments

    text = path.read_text(encoding="utf-8")
    named = re.findall(r"python -m experiments run ([\w-]+)", text)
    assert set(named) <= set(all_experiments())
    assert named or path.stem in ("index", "kernels")
