"""What a notebook shows of a result fits on one line; of answers, `tests/shape` says the same."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import pytest

import dpopt
from dpopt import ParameterError, certify
from dpopt._page import result_page

TABLE = [[0.8, 0.2], [0.3, 0.7]]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: certify(TABLE), ("1.25276", "inputs 1 and 0")),
        (lambda: certify(TABLE, epsilon=1.5).certificate, ("inequalities",)),
    ],
)
def test_a_notebook_is_shown_statement_and_facts(
    made: Callable[[], Any], words: tuple[str, ...]
) -> None:
    page = made()._repr_html_()
    assert "<svg" not in page
    assert "border-left" in page
    for word in words:
        assert escape(word) in page, page[-800:]


def test_only_what_is_proved_is_called_a_guarantee() -> None:
    failing, private = (
        dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1, "conference")),
        dpopt.design(dpopt.RevealOrObscure(20, 3, 0.1)),
    )
    for shown in (repr(failing), failing._repr_html_()):
        assert "guarantee" not in shown
        assert "target" in shown
    assert "guarantee" in repr(private)
    assert "guarantee" in private._repr_html_()


def test_where_a_plot_refuses_its_reason_is_shown() -> None:
    def refuse(axes: object) -> None:
        del axes
        raise ParameterError("n is 1e9; a plot is made up to <1e6>.")

    page = result_page("Thing", "a < b", None, {"<x>": "<y>"}, refuse)
    assert "No picture: n is 1e9; a plot is made up to &lt;1e6&gt;." in page
    assert "a &lt; b" in page
    assert "&lt;x&gt;" in page
    assert "<y>" not in page
