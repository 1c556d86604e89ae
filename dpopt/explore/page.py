"""The page: controls on the left of each tab, what they give on the right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

import panel as pn

from dpopt import roo
from dpopt.explore import kernels, priors, rules
from dpopt.explore.kernels import kernel_view
from dpopt.explore.majority import MOST_VOTERS, majority_view
from dpopt.explore.priors import prior_view
from dpopt.explore.render import html_of
from dpopt.explore.rules import rule_view
from dpopt.explore.view import View

TITLE = "dpopt explorer"

Solve: TypeAlias = Callable[..., Coroutine[Any, Any, None]]

# One thread, beside that which serves: pages are served while it solves, and it draws with
# matplotlib, which two threads may not do at once.
_SOLVER = ThreadPoolExecutor(1, "dpopt-explore")
_WAITING = '<p class="verdict" role="status">Solving ... (if nothing follows, load it again)</p>'

_STYLE = files("dpopt.explore").joinpath("page.css").read_text(encoding="utf-8")
_SMALL = {"0": 0.0} | {f"1e-{power}": 10.0**-power for power in range(9, 1, -1)}
_CONTROLS = 324

_FRAME = """\
{% extends base %}
{% block postamble %}
<meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{{ style }}</style>
{% endblock %}
{% block contents %}
<header><h1>dpopt explorer</h1>
<p>Each change solves, repairs and certifies again, on this machine.</p></header>
<main>{{ embed(roots.tabs) }}</main>
{% endblock %}
"""


def page() -> pn.Template:
    """Return the page of one visitor: a frame, which is filled once the browser has connected.

    What only asks for the document, and never connects, costs next to nothing.
    """
    frame = pn.Template(_FRAME)
    frame.add_variable("style", _STYLE)
    # Each widget is a tree of its own, into which the page's style does not reach.
    pn.config.raw_css = [_STYLE]
    body = pn.Column(pn.pane.HTML(_WAITING), sizing_mode="stretch_width")
    frame.add_panel("tabs", body)
    pn.state.onload(lambda: _fill(body))
    return frame


def _fill(body: pn.Column) -> None:
    """Put the tabs into the page; a tab computes when it is first looked at."""
    made = {
        "Majority vote": _tab("majority", majority_view, _majority_controls()),
        "Kernel": _tab("kernel", kernel_view, _kernel_controls()),
        "Public prior": _tab("prior", prior_view, _prior_controls()),
        "Reveal or obscure": _tab("rule", rule_view, _rule_controls()),
    }
    tabs = pn.Tabs(
        *((title, box) for title, (box, _) in made.items()),
        dynamic=True,
        sizing_mode="stretch_width",
    )
    waiting = {place: solve for place, (_, solve) in enumerate(made.values())}

    def seen(_event: object = None) -> None:
        solve = waiting.pop(tabs.active, None)
        if solve is not None:
            pn.state.execute(solve)

    tabs.param.watch(seen, "active")
    body[:] = [tabs]
    seen()


def _tab(
    name: str, make: Callable[..., View], controls: Mapping[str, Control]
) -> tuple[pn.Column, Solve]:
    """Return the tab, and what fills it from its controls."""
    shown = pn.pane.HTML(
        _WAITING,
        css_classes=["shown", name],
        sizing_mode="stretch_width",
        min_width=320,
        margin=(4, 0, 0, 10),
        styles={"flex": "1 1 480px"},
    )

    async def solve(*_events: object) -> None:
        values = {key: control.field.value for key, control in controls.items()}
        loop = asyncio.get_running_loop()
        shown.object = await loop.run_in_executor(_SOLVER, html_of, make, values)

    for control in controls.values():
        control.field.param.watch(solve, "value")
    column = pn.Column(
        *(control.box for control in controls.values()),
        width=_CONTROLS,
        css_classes=["controls", name],
    )
    # Side by side if there is room. A row would ask for the widths of both in any window.
    side_by_side = {"flex-direction": "row", "flex-wrap": "wrap"}
    box = pn.Column(column, shown, styles=side_by_side, sizing_mode="stretch_width")
    return box, solve


@dataclass(frozen=True)
class Control:
    """A control of a tab.

    Attributes:
        box: what is shown.
        field: the widget whose value is the parameter; it changes once a value is entered.
    """

    box: pn.viewable.Viewable
    field: pn.widgets.WidgetBase


def _slider(
    kind: type[pn.widgets.WidgetBase], field: pn.widgets.WidgetBase, **limits: float
) -> Control:
    """Return a number with a slider below, which sets it when it is let go.

    They are tied here and not in the browser: panel's own pair of the two is never freed, and
    needs a page that may turn text into code.
    """
    slider = kind(value=field.value, show_value=False, margin=(0, 10), **limits)
    slider.param.watch(lambda event: field.param.update(value=event.new), "value_throttled")
    field.param.watch(lambda event: slider.param.update(value=event.new), "value")
    return Control(pn.Column(field, slider, margin=0), field)


def _float(name: str, start: float, end: float, value: float, step: float) -> Control:
    limits = {"start": start, "end": end, "step": step}
    field = pn.widgets.FloatInput(name=name, value=value, format="0[.]0[000]", **limits)
    return _slider(pn.widgets.FloatSlider, field, **limits)


def _integer(name: str, start: int, end: int, value: int, step: int = 1) -> Control:
    limits = {"start": start, "end": end, "step": step}
    field = pn.widgets.IntInput(name=name, value=value, **limits)
    return _slider(pn.widgets.IntSlider, field, **limits)


def _choice(name: str, options: Sequence[str] | Mapping[str, float]) -> Control:
    field = pn.widgets.Select(name=name, options=options)
    return Control(field, field)


def _text(name: str, value: str, longest: int) -> Control:
    field = pn.widgets.TextInput(name=name, value=value, max_length=longest)
    return Control(field, field)


def _majority_controls() -> dict[str, Control]:
    return {
        "mechanisms": _integer("Voters K", 1, MOST_VOTERS, 11, 2),
        "allowance": _float("Allowance m", 0.25, 20.0, 3.0, 0.25),
        "epsilon": _float("Epsilon of each voter", 0.01, 2.0, 0.1, 0.01),
        "mechanism_delta": _choice("Delta of each voter (mechanism_delta)", _SMALL),
        "delta": _choice("delta of the majority (delta)", _SMALL),
        "prior": _text("Prior of the voters' p", "uniform:0,1", 200),
        "objective": _choice("Objective", ["expected-error", "worst-case"]),
    }


def _kernel_controls() -> dict[str, Control]:
    return {
        "letters": _integer("Letters n", 2, kernels.MOST_LETTERS, 9),
        "epsilon": _float("Epsilon", 0.0, kernels.LARGEST_EPSILON, 1.0, 0.05),
        "loss": _choice("Loss", list(kernels.LOSSES)),
        "graph": _choice("Neighbours", ["path", "complete"]),
        "objective": _choice("Objective", ["bayes", "minimax"]),
    }


def _prior_controls() -> dict[str, Control]:
    return {
        "prior": _text("Public prior q", "0.05, 0.1, 0.15, 0.2, 0.5", 1000),
        "epsilon": _float("Epsilon", 0.05, priors.LARGEST_EPSILON, 1.0, 0.05),
    }


def _rule_controls() -> dict[str, Control]:
    return {
        "records": _integer("Records n", 1, rules.MOST_RECORDS, 20),
        "letters": _integer("Letters k", 2, rules.MOST_LETTERS, 3),
        "epsilon": _float("Epsilon", rules.LEAST_EPSILON, rules.LARGEST_EPSILON, 0.1, 0.01),
        "rule": _choice("Rule", list(roo.RULES)),
    }
