"""docs/closed_forms.md, as a reader would follow it."""

from __future__ import annotations

import doctest

import dpopt
from dpopt.roo.minimum import MinCount
from tests.shape.page import ROOT, Page

GUIDE = ROOT / "docs/closed_forms.md"


def test_the_sessions_one_after_the_other() -> None:
    text = "\n".join(Page.of(GUIDE).sessions)
    session = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
    assert len(session.examples) > 10
    printed: list[str] = []
    results = doctest.DocTestRunner().run(session, out=printed.append)
    assert results.failed == 0, "".join(printed)


def test_the_rule_of_the_last_sentence_is_not_private() -> None:
    assert not dpopt.design(MinCount(7, 2, 0.25, rule="journal")).private
