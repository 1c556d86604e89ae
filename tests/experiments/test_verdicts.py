"""Verdicts follow the numbers."""

from __future__ import annotations

import pytest

from experiments.registry import Comparison
from experiments.verdicts import not_comparable, numbers, observed, rounds_to, statement


def test_half_a_unit_of_the_last_digit() -> None:
    for found, printed, digits, same in [
        (0.1249, 0.12, 2, True),
        (0.1251, 0.12, 2, False),
        (0.115, 0.12, 2, True),
        (0.1149, 0.12, 2, False),
        (21.4604, 21.46, 2, True),
        (62.12, 34.31, 2, False),
        (-0.5, 0.0, 0, True),
    ]:
        assert rounds_to(found, printed, digits) is same
        made = numbers("c", "o", [(printed, printed), (found, printed)], digits, "p")
        assert (made.claim, made.ours, made.certificate) == ("c", "o", "p")
        assert made.verdict == ("agrees" if same else "differs")
        assert "half a unit" in made.rule


def test_statements() -> None:
    assert statement("c", "o", "p", holds=False, more=True).verdict == "refuted"
    assert statement("c", "o", "p", holds=True, more=True).verdict == "sharper"
    assert statement("c", "o", "p", holds=True).verdict == "agrees"
    assert statement("c", "o", "p", holds=False, corrected=True).verdict == "misprint"
    assert statement("c", "o", "p", holds=True, corrected=True).verdict == "agrees"
    with_rule = statement("c", "o", "p", holds=False, corrected_if="x")
    assert with_rule.verdict == "refuted"
    assert with_rule.rule.endswith("; misprint if x")
    assert statement("c", "o.", "p", holds=False, reading="r").ours == "o. Read as: r."
    assert observed("c", "o", "p", alike=True).verdict == "agrees"
    assert observed("c", "o", "p", alike=False).verdict == "differs"
    assert not_comparable("c", "o", "p", why="w").verdict == "not comparable"
    assert statement("c", "o", "p", holds=True, more_if="x").rule.endswith("; sharper if x")
    assert statement("c", "o", "p", holds=True).identifier == "c"
    assert statement("c", "o", "p", holds=True, name="lemma 1").identifier == "lemma 1"
    with pytest.raises(ValueError, match="proved"):
        Comparison("c", "o", "proved", "p")
