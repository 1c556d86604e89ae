"""Sliders in a notebook: the fields of a setting, and its answer, designed again at each move."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from html import escape
from typing import TYPE_CHECKING, Any, cast

from dpopt._errors import DpoptError, ParameterError
from dpopt._kinds import choices, is_default
from dpopt._numbers import shown
from dpopt.shape import Setting, design

if TYPE_CHECKING:
    from ipywidgets import VBox


def interact(setting: Setting | type[Setting], **ranges: Any) -> VBox:  # noqa: ANN401
    """Show a control for each number and each choice of a setting, in order, above its answer.

    In a notebook, at the end of a cell: ``interact(RevealOrObscure, epsilon=(0.1, 2))``.
    Moving a control designs anew, as long as that takes; what the setting refuses is shown in place
    of the answer. Needs ipywidgets (extra ``explore``).

    Args:
        setting: where the controls begin; a class begins at its example. Fields that are neither
            numbers, nor choices, nor in ``ranges`` stay what they are.
        ranges: of a field, by its name: its least and its largest number, or a list of values.

    Raises:
        ParameterError: for what is no setting, or a range that is none.
        ImportError: if ipywidgets is missing.
    """
    try:
        from ipywidgets import HTML, VBox
    except ImportError as error:
        raise ImportError("interact needs ipywidgets; pip install 'dpopt[explore]'.") from error
    start: Any = setting
    if isinstance(setting, type) and issubclass(setting, Setting):
        start = setting.example()
    if not isinstance(start, Setting):
        raise ParameterError(f"setting is {shown(setting)}; it must be a setting, or its class.")
    fields_by_name = {
        field.name: field
        for field in fields(cast(Any, start))
        if field.init and field.name not in start.unshown
    }
    for name in ranges.keys() - fields_by_name.keys():
        raise ParameterError(
            f"{name} is no field of {start.kind}, which has {', '.join(fields_by_name)}."
        )
    stated = {
        name: getattr(start, name)
        for name in fields_by_name
        if not is_default(start, fields_by_name[name])
    }
    controls: dict[str, Any] = {}
    for name, field in fields_by_name.items():
        value = stated.get(name, None if field.default is MISSING else field.default)
        control = _control(name, value, choices(str(field.type)), ranges.get(name))
        controls |= {} if control is None else {name: control}
    answer = HTML()

    def redraw(_: object = None) -> None:
        moved = {name: control.value for name, control in controls.items()}
        try:
            answer.value = design(type(start)(**{**stated, **moved}))._repr_html_()
        except DpoptError as error:
            answer.value = f"<p role='alert'>{escape(str(error))}</p>"

    for control in controls.values():
        control.observe(redraw, names="value")
    redraw()
    return VBox([*controls.values(), answer])


def _control(name: str, value: Any, words: tuple[str, ...], chosen: Any) -> Any:  # noqa: ANN401
    """Return the widget of a field, which reports on release; None if it has none."""
    import ipywidgets as widgets

    options: dict[str, Any] = {"description": name, "style": {"description_width": "initial"}}
    quiet = {**options, "continuous_update": False}
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if chosen is not None:
        pair = isinstance(chosen, tuple) and len(chosen) == 2
        ends = pair and all(isinstance(end, int | float) for end in chosen)
        listed = isinstance(chosen, list | range) and len(chosen) > 0
        if not listed and not (ends and chosen[0] < chosen[1]):
            allowed = "the least and the largest number in parentheses, or a list of values"
            raise ParameterError(f"{name} is {shown(chosen)}; it must be {allowed}.")
        if listed:
            begin = value if value in chosen else chosen[0]
            return widgets.SelectionSlider(options=list(chosen), value=begin, **quiet)
        low, high = chosen
        begin = min(max(value, low), high) if number else low
        if isinstance(low, int) and isinstance(begin, int):
            return widgets.IntSlider(begin, low, high, **quiet)
        return widgets.FloatSlider(begin, min=low, max=high, step=(high - low) / 100, **quiet)
    if words:
        return widgets.Dropdown(options=words, value=value, **options)
    if isinstance(value, bool):
        return widgets.Checkbox(value, **options)
    if not number:
        return None
    if not 0 < value < math.inf:
        # Around 0 no scale suggests itself.
        return (widgets.IntText if isinstance(value, int) else widgets.FloatText)(value, **options)
    if isinstance(value, int):
        return widgets.IntSlider(value, 1, 2 * value, **quiet)
    tens = math.log10(value)
    return widgets.FloatLogSlider(value, min=tens - 1, max=tens + 1, step=0.05, **quiet)
