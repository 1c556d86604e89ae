"""The style file: print sizes, embedded fonts, colours that mean one thing, hidden curves."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import style as style_sheets
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import dpopt
from dpopt._figure import STYLES
from experiments import drawing, style

# What the venues' own style files state: the width of the text, and of a column, in inches.
WIDTHS = {"neurips": (5.5, 5.5), "icml": (3.25, 6.75), "ieee": (3.5, 7.16)}
# Okabe and Ito, "Color Universal Design", 2008, without yellow, which white paper swallows.
PALETTE = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"}


def test_the_package_knows_all_sheets() -> None:
    folder = files("dpopt.styles")
    assert {path.name for path in folder.iterdir()} == {f"{name}.mplstyle" for name in STYLES}
    assert tuple(style.STYLES) == STYLES


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", STYLES)
def test_figures_are_as_wide_as_the_page(name: str, tmp_path: Path) -> None:
    path = tmp_path / "gamma.pdf"
    # What plt.style.use does.
    with style_sheets.context(f"dpopt.styles.{name}"), mpl.rc_context({"pdf.compression": 0}):
        axes = dpopt.design(dpopt.Majority(5, 0.1, 3)).plot()
        (line, *_) = axes.get_lines()
        assert to_hex(line.get_color()).upper() == style.ROLES["optimum"].colour
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.savefig(path)
        assert mpl.rcParams["font.size"] == style.STYLES[name].size
    with style.context(name) as measures:
        assert WIDTHS.get(name, (5.0, 7.0)) == (measures.column, measures.text)
        one, several = style.figure()[0], style.figure(2, 3)[0]
        assert one.get_figwidth() == measures.column
        assert several.get_figwidth() == measures.text
    content = path.read_bytes()
    box = re.search(rb"/MediaBox *\[ *0 0 ([0-9.]+) ", content)
    assert box
    assert float(box[1]) == pytest.approx(72 * measures.column)
    assert b"/Subtype /Type3" not in content
    assert b"/CIDFontType2" in content


def test_each_role_has_looks_of_its_own() -> None:
    roles = list(style.ROLES.values())
    for look in ("colour", "marker", "hatch"):
        assert len({getattr(role, look) for role in roles}) == len(roles), look
    assert {role.colour for role in roles} >= PALETTE
    for role in roles:
        Figure().subplots().plot([0, 1], [0, 1], **role.line)
        Figure().subplots().bar([0], [1], **role.bar)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_hidden_curve_is_named(scale: str) -> None:
    axes = style.figure()[1][0, 0]
    axes.plot([1, 2, 3], [1, 10, 100], label="subsampling")
    axes.plot([1, 2, 3], [1, 11, 130], label="beside")
    axes.plot([1, 2, 3], [1, 10, 100.001], label="the program")
    axes.set_yscale(scale)
    pairs = [(a.get_label(), b.get_label()) for a, b in style.hidden(axes)]
    assert pairs == [("subsampling", "the program")]


@pytest.mark.parametrize(("name", "shown"), [("plain", True), ("ieee", False)])
def test_remarks_are_kept_for_the_caption_and_left_out_of_a_venue_s_figure(
    name: str, shown: bool
) -> None:
    with style.context(name):
        made, axes = drawing.panels(1)
        axes[0].plot([1, 2], [1, 2], label="below")
        axes[0].plot([1, 2], [1, 2], label="above")
        drawing.finish(made, axes, "Voters are equal.")
    assert made.remarks == ("Voters are equal.", "below lies under above")
    title = made.legends[0].get_title().get_text().replace("\n", " ")
    assert title == ("Voters are equal. below lies under above" if shown else "")


def test_what_still_shows_is_not_hidden() -> None:
    axes = style.figure()[1][0, 0]
    axes.plot([1, 2], [1, 2], linewidth=3.0, label="a rim")
    axes.plot([1, 2], [1, 2], linewidth=1.0, label="a line")
    axes.plot([1, 2], [1, 2], "o", label="points")
    axes.plot([1, 2], [1, 2], "s", markerfacecolor="none", label="open points")
    axes.plot([], [], label="a line of the legend")
    assert style.hidden(axes) == []
    axes.plot([1, 2], [1, 2], "s", label="squares")
    pairs = [(a.get_label(), b.get_label()) for a, b in style.hidden(axes)]
    assert pairs == [("points", "squares"), ("open points", "squares")]
