"""The page: a tab for each kind of settings, its fields on the left, their answer on the right."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, TypeAlias

import panel as pn

from dpopt.design import Question, kinds
from dpopt.explore.fields import Field, fields_of, near, texts_of
from dpopt.explore.render import about
from dpopt.explore.worker import SECONDS, Worker

TITLE = "dpopt explorer"

Solve: TypeAlias = Callable[..., Coroutine[Any, Any, None]]

# One thread waits for one process, beside the thread that serves.
_WAITS = ThreadPoolExecutor(1, "dpopt-explore")
WORKER = Worker()
_WAITING = '<p class="verdict" role="status">Solving ... (if nothing follows, load it again)</p>'

_STYLE = files("dpopt.explore").joinpath("page.css").read_text(encoding="utf-8")
_CONTROLS = 324
_LONGEST_TEXT = 10_000

_FRAME = """\
{% extends base %}
{% block postamble %}
<meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{{ style }}</style>
{% endblock %}
{% block contents %}
<header><h1>dpopt explorer</h1>
<p>Each change solves, repairs and certifies again, on this machine, in {{ seconds }} seconds or
not at all.</p></header>
<main>{{ embed(roots.tabs) }}</main>
{% endblock %}
"""


def page() -> pn.Template:
    """Return the page of one visitor: a frame, which is filled once the browser has connected.

    What only asks for the document, and never connects, costs next to nothing.
    """
    frame = pn.Template(_FRAME)
    frame.add_variable("style", _STYLE)
    frame.add_variable("seconds", f"{SECONDS:g}")
    # Each widget is a tree of its own, into which the page's style does not reach.
    pn.config.raw_css = [_STYLE]
    body = pn.Column(pn.pane.HTML(_WAITING), sizing_mode="stretch_width")
    frame.add_panel("tabs", body)
    pn.state.onload(lambda: _fill(body))
    return frame


def tab_kinds() -> list[type[Question[Any]]]:
    """Return the kinds in the order of their tabs: those of one package side by side."""
    return sorted(kinds(), key=lambda kind: (kind.__module__.split(".")[:2], kind.kind))


def _fill(body: pn.Column) -> None:
    """Put the tabs into the page; a tab is filled, and computes, when it is first looked at."""
    waiting = dict(enumerate(tab_kinds()))
    # Side by side if there is room. A row would ask for the widths of both in any window.
    side_by_side = {"flex-direction": "row", "flex-wrap": "wrap"}
    boxes = [pn.Column(styles=side_by_side, sizing_mode="stretch_width") for _ in waiting]
    titles = [kind.kind for kind in waiting.values()]
    tabs = pn.Tabs(*zip(titles, boxes, strict=True), dynamic=True, sizing_mode="stretch_width")
    late: dict[int, Callable[[], None]] = {}

    def seen(_event: object = None) -> None:
        place = tabs.active
        kind = waiting.pop(place, None)
        if kind is not None:

            def put(show: Callable[[], None]) -> None:
                # What changes while it is no part of the page loses its styles: panel would ask
                # another machine for them.
                if tabs.active == place:
                    show()
                else:
                    late[place] = show

            boxes[place][:], solve = _tab(kind, put)
            pn.state.execute(solve)
        late.pop(place, lambda: None)()

    tabs.param.watch(seen, "active")
    body[:] = [tabs]
    seen()


def _tab(
    kind: type[Question[Any]], put: Callable[[Callable[[], None]], None]
) -> tuple[list[pn.viewable.Viewable], Solve]:
    """Return the two columns of a tab, and what fills the right one from the left one.

    Args:
        kind: that of the tab.
        put: does what it is called with, once the tab is looked at.
    """
    controls = _controls(kind)
    shown = pn.pane.HTML(
        _WAITING,
        css_classes=["shown", kind.kind],
        sizing_mode="stretch_width",
        min_width=320,
        margin=(4, 0, 0, 10),
        styles={"flex": "1 1 480px"},
    )
    asked = 0

    async def solve(*_events: object) -> None:
        nonlocal asked
        asked += 1
        mine, texts = asked, {name: control.text() for name, control in controls.items()}

        def answered() -> str | None:
            return WORKER.html(kind, texts) if mine == asked else None

        html = await asyncio.get_running_loop().run_in_executor(_WAITS, answered)
        # None: its values had changed before its turn came.
        if html is not None:
            put(partial(setattr, shown, "object", html))

    for control in controls.values():
        control.field.param.watch(solve, "value")
    column = pn.Column(
        pn.pane.HTML(about(kind), css_classes=["shown"], width=_CONTROLS),
        *(control.box for control in controls.values()),
        width=_CONTROLS,
        css_classes=["controls", kind.kind],
    )
    return [column, shown], solve


@dataclass(frozen=True)
class Control:
    """A control of a tab.

    Attributes:
        box: what is shown.
        field: the widget whose value is the parameter; it changes once a value is entered.
    """

    box: pn.viewable.Viewable
    field: pn.widgets.Widget

    def text(self) -> str:
        """Return the parameter as text."""
        return str(self.field.value)


def _controls(kind: type[Question[Any]]) -> dict[str, Control]:
    example = kind.example()
    texts = texts_of(example)
    controls = {}
    for field in fields_of(kind):
        numbers = near(example, field.name) if field.base in ("int", "float") else []
        controls[field.name] = _control(field, texts[field.name], [*map(str, numbers)])
    return controls


def _control(field: Field, text: str, numbers: list[str]) -> Control:
    label = f"{field.name}: {field.says}" if field.says else field.name
    options = ["true", "false"] if field.base == "bool" else list(field.choices)
    if options:
        return _alone(pn.widgets.Select(name=label, options=options, value=text))
    entry = pn.widgets.TextInput(name=label, value=text, max_length=_LONGEST_TEXT)
    return _with_slider(entry, numbers) if len(numbers) > 1 else _alone(entry)


def _alone(field: pn.widgets.Widget) -> Control:
    return Control(field, field)


def _with_slider(entry: pn.widgets.TextInput, numbers: list[str]) -> Control:
    """Return an entry with a slider over some numbers below, which sets it when it is let go.

    They are tied here and not in the browser: panel's own pair of the two is never freed, and
    needs a page that may turn text into code.
    """
    slider = pn.widgets.IntSlider(start=0, end=len(numbers) - 1, show_value=False, margin=(0, 10))

    def slid(event: Any) -> None:  # noqa: ANN401
        entry.value = numbers[event.new]

    def entered(_event: object = None) -> None:
        with suppress(ValueError):
            slider.value = max(0, bisect_right(numbers, float(entry.value), key=float) - 1)

    entered()
    slider.param.watch(slid, "value_throttled")
    entry.param.watch(entered, "value")
    return Control(pn.Column(entry, slider, margin=0), entry)
