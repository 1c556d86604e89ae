"""The page: controls on the left of each tab, what they give on the right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

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
    """Return the page of one visitor; every tab computes when it is first looked at."""
    frame = pn.Template(_FRAME)
    frame.add_variable("style", _STYLE)
    # Each widget is a tree of its own, into which the page's style does not reach.
    pn.config.raw_css = [_STYLE]
    frame.add_panel(
        "tabs",
        pn.Tabs(
            ("Majority vote", _tab("majority", majority_view, _majority_controls())),
            ("Kernel", _tab("kernel", kernel_view, _kernel_controls())),
            ("Public prior", _tab("prior", prior_view, _prior_controls())),
            ("Reveal or obscure", _tab("rule", rule_view, _rule_controls())),
            dynamic=True,
            sizing_mode="stretch_width",
        ),
    )
    return frame


def _tab(
    name: str, make: Callable[..., View], controls: Mapping[str, pn.widgets.WidgetBase]
) -> pn.FlexBox:
    # A slider reports once it is let go, a text once it is entered.
    sources: dict[str, Any] = {
        key: control.param["value_throttled" if "value_throttled" in control.param else "value"]
        for key, control in controls.items()
    }

    def shown(**values: object) -> str:
        given = {
            key: controls[key].value if value is None else value for key, value in values.items()
        }
        return html_of(make, given)

    return pn.FlexBox(
        pn.Column(*controls.values(), width=_CONTROLS, css_classes=["controls", name]),
        pn.pane.HTML(
            pn.bind(shown, **sources),
            css_classes=["shown", name],
            sizing_mode="stretch_width",
            min_width=320,
            margin=(4, 0, 0, 10),
            styles={"flex": "1 1 480px"},
        ),
        flex_wrap="wrap",
        sizing_mode="stretch_width",
    )


def _float(name: str, start: float, end: float, value: float, step: float) -> pn.widgets.WidgetBase:
    return pn.widgets.EditableFloatSlider(
        name=name, start=start, end=end, value=value, step=step, fixed_start=start, fixed_end=end
    )


def _integer(name: str, start: int, end: int, value: int, step: int = 1) -> pn.widgets.WidgetBase:
    return pn.widgets.EditableIntSlider(
        name=name, start=start, end=end, value=value, step=step, fixed_start=start, fixed_end=end
    )


def _majority_controls() -> dict[str, pn.widgets.WidgetBase]:
    return {
        "mechanisms": _integer("Voters K", 1, MOST_VOTERS, 11, 2),
        "allowance": _float("Allowance m", 0.25, 20.0, 3.0, 0.25),
        "epsilon": _float("Epsilon of each voter", 0.01, 2.0, 0.1, 0.01),
        "mechanism_delta": pn.widgets.DiscreteSlider(
            name="Delta of each voter (mechanism_delta)", options=_SMALL
        ),
        "delta": pn.widgets.DiscreteSlider(name="delta of the majority (delta)", options=_SMALL),
        "prior": pn.widgets.TextInput(
            name="Prior of the voters' p", value="uniform:0,1", max_length=200
        ),
        "objective": pn.widgets.Select(name="Objective", options=["expected-error", "worst-case"]),
    }


def _kernel_controls() -> dict[str, pn.widgets.WidgetBase]:
    return {
        "letters": _integer("Letters n", 2, kernels.MOST_LETTERS, 9),
        "epsilon": _float("Epsilon", 0.0, kernels.LARGEST_EPSILON, 1.0, 0.05),
        "loss": pn.widgets.Select(name="Loss", options=list(kernels.LOSSES)),
        "graph": pn.widgets.Select(name="Neighbours", options=["path", "complete"]),
        "objective": pn.widgets.Select(name="Objective", options=["bayes", "minimax"]),
    }


def _prior_controls() -> dict[str, pn.widgets.WidgetBase]:
    return {
        "prior": pn.widgets.TextInput(
            name="Public prior q", value="0.05, 0.1, 0.15, 0.2, 0.5", max_length=1000
        ),
        "epsilon": _float("Epsilon", 0.05, priors.LARGEST_EPSILON, 1.0, 0.05),
    }


def _rule_controls() -> dict[str, pn.widgets.WidgetBase]:
    return {
        "records": _integer("Records n", 1, rules.MOST_RECORDS, 20),
        "letters": _integer("Letters k", 2, rules.MOST_LETTERS, 3),
        "epsilon": _float("Epsilon", rules.LEAST_EPSILON, rules.LARGEST_EPSILON, 0.1, 0.01),
        "rule": pn.widgets.Select(name="Rule", options=list(roo.RULES)),
    }
