"""What a notebook shows of a result fits on one line; of answers, `tests/shape` says the same."""

from __future__ import annotations

import dpopt
from dpopt import ParameterError
from dpopt._figure import result_page


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
