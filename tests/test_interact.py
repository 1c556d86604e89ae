"""Sliders: every kind's controls, what moving one shows, and what an answer's picture may hold."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

import dpopt
from dpopt import Kernel, Majority, ParameterError, RevealOrObscure, interact

widgets = pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")


def controls(box: Any) -> dict[str, Any]:
    return {control.description: control for control in box.children[:-1]}


def answer(box: Any) -> str:
    return box.children[-1].value


def shown(setting: dpopt.Setting) -> str:
    return dpopt.design(setting)._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("kind", dpopt.kinds(), ids=lambda kind: kind.kind)
def test_a_class_begins_at_its_example_whose_picture_fetches_nothing(kind: Any) -> None:
    example = kind.example()
    box = interact(kind)
    assert answer(box) == shown(example)
    for name, control in controls(box).items():
        assert control.value == getattr(example, name)
    svg = answer(box)[answer(box).index("<svg ") :].split("</svg>")[0]
    assert "#010203" not in svg
    assert "script" not in svg
    # Links point into the picture, or hold the pixels themselves; names are only names.
    links = re.findall(r'href="([^"]*)"', svg)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", svg)


@pytest.mark.slow
def test_what_is_moved_is_designed_anew() -> None:
    box = interact(Majority(11, 0.1, 3), voters=range(3, 22, 2), allowance=(1, 4))
    moved = controls(box)
    kinds = [(name, type(control).__name__) for name, control in moved.items()]
    assert kinds == [
        *(("voters", "SelectionSlider"), ("epsilon", "FloatLogSlider")),
        *(("allowance", "FloatSlider"), ("voter_delta", "FloatText"), ("delta", "FloatText")),
        *(("objective", "Dropdown"), ("contrary", "Checkbox")),
    ]
    moved["voters"].value = 5
    assert answer(box) == shown(Majority(5, 0.1, 3))
    moved["epsilon"].value = 0.5
    moved["objective"].value = "worst-case"
    moved["delta"].value = 1e-3
    assert answer(box) == shown(Majority(5, 0.5, 3, objective="worst-case", delta=1e-3))
    moved["delta"].value = 2.0
    assert answer(box).startswith("<p role='alert'>delta is 2.0; it must be")
    moved["delta"].value = 0.0
    assert answer(box) == shown(Majority(5, 0.5, 3, objective="worst-case"))


@pytest.mark.slow
def test_what_a_setting_fills_in_by_itself_follows_its_controls() -> None:
    """The outputs of a kernel are its inputs, unless they are stated."""
    box = interact(Kernel("absolute", 1.0, graph="path", inputs=4))
    assert "outputs" not in controls(box)
    controls(box)["inputs"].value = 6
    assert answer(box) == shown(Kernel("absolute", 1.0, graph="path", inputs=6))
    box = interact(Kernel("absolute", 1.0, graph="path", inputs=4), outputs=[4, 6])
    controls(box)["outputs"].value = 6
    assert answer(box) == shown(Kernel("absolute", 1.0, graph="path", inputs=4, outputs=6))


def test_a_range_holds_where_the_controls_begin() -> None:
    slider = controls(interact(RevealOrObscure(20, 3, 0.5), records=(5, 10)))["records"]
    assert (slider.min, slider.max, slider.value) == (5, 10, 10)
    slider = controls(interact(RevealOrObscure(20, 3, 0.5)))["epsilon"]
    assert (slider.base**slider.min, slider.base**slider.max) == pytest.approx((0.05, 5.0))


def test_what_is_no_setting_and_no_range() -> None:
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (
            RevealOrObscure,
            {"votes": (1, 2)},
            "votes is no field of reveal-or-obscure, which has re",
        ),
        (
            RevealOrObscure,
            {"records": (5, 5)},
            r"records is \(5, 5\); it must be the least and the",
        ),
        (RevealOrObscure, {"records": (1, 2, 3)}, "records is"),
        (RevealOrObscure, {"epsilon": 1.0}, "epsilon is 1.0; it must be"),
        (3, {}, "setting is 3; it must be a setting, or its class"),
    ]
    for setting, ranges, message in cases:
        with pytest.raises(ParameterError, match=message):
            interact(setting, **ranges)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"pip install 'dpopt\[explore\]'"):
        interact(RevealOrObscure)
