"""The checker of figures finds each fault, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import style
from tests.experiments.pictures import faults


def two_panels() -> Figure:
    with style.context("neurips"):
        figure, grid = style.figure(1, 2)
        for axes, title in zip(grid[0], ("left", "right"), strict=True):
            axes.plot([0, 1, 2], [1, 3, 2], **style.ROLES["optimum"].line, label="curve")
            axes.bar([0, 1], [0.5, 1.0], label="bars")
            axes.errorbar([0.5], [2.0], yerr=[0.2], label="spread")
            axes.axhline(1.5, label="bound")
            axes.set_xlabel("length")
            axes.set_ylabel("width")
            axes.set_title(title)
            axes.set_ylim(0.0, 5.5)
        grid[0, 0].legend(loc="upper left", ncols=2)
        style.letter(list(grid[0]))
    return figure


def second(figure: Figure) -> Axes:
    return figure.get_axes()[1]


SPOILT: dict[str, Callable[[Figure], object]] = {
    "curve has y = 3 beyond 0 to 2.5": lambda f: second(f).set_ylim(0, 2.5),
    "curve has x = 2 beyond": lambda f: second(f).set_xlim(-0.5, 1.5),
    "bound has y = 1.5 beyond": lambda f: second(f).set_ylim(1.6, 5.0),
    "curve has x = 0 beyond": lambda f: second(f).set_xscale("log"),
    "marker of curve is cut": lambda f: second(f).set_xlim(-0.5, 2.0),
    "x axis has no name": lambda f: second(f).set_xlabel(""),
    "y axis has no name": lambda f: second(f).set_ylabel(""),
    "has no letter": lambda f: second(f).set_title("right"),
    "share a letter": lambda f: second(f).set_title("(a) right"),
    "shows the identifier sampled_error": lambda f: second(f).set_ylabel("sampled_error"),
    "printed at 4.0 points": lambda f: second(f).set_title("(b) right", fontsize=4),
    "runs beyond the figure's edge": lambda f: second(f).set_xlabel("length " * 30),
    "overlap": lambda f: second(f).set_xticks([0.0, 0.01]),
    "legend lies over curve": lambda f: second(f).legend(loc="lower right", frameon=False),
}


@pytest.mark.slow
def test_each_fault_is_told_and_no_other() -> None:
    assert faults(two_panels()) == []
    for words, spoil in SPOILT.items():
        figure = two_panels()
        spoil(figure)
        told = faults(figure)
        assert any(words in fault for fault in told), (words, told)
