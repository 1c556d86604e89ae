"""What every figure of an experiment must show: nothing cut, everything named, all of it legible.

figure = drawn(experiment, outcome)             # in each style; fails with the list of faults
assert faults(figure) == []                     # for a figure made in another way
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox, Transform

from experiments import style
from experiments.registry import Experiment, Outcome

LEAST_POINTS = 5.0
"""The smallest print that a reader of a paper is asked to read."""

# Pixels by which things may touch: extents of text hold some air.
_TOUCH = 1.5
# Share of an axis that rounding may put a point beyond its limits.
_EDGE = 1e-6
_IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*_[a-z0-9_]+\b")
_NUMBER = re.compile(r"\d")
_LETTER = re.compile(r"\(([a-z])\)")


def drawn(
    experiment: Experiment, outcome: Outcome, styles: Sequence[str] = ("plain", "neurips", "icml")
) -> Figure:
    """Draw an outcome in each style and fail with the faults of the figures; return the last."""
    figure = Figure()
    for name in styles:
        with style.context(name) as measures:
            figure = experiment.plot(outcome)
            found = faults(figure)
        width = figure.get_figwidth()
        if width > measures.text + 0.01:
            found.append(f"the figure is {width:.2f} inches wide, the page {measures.text:.2f}")
        assert found == [], f"{experiment.name} in style {name}:\n" + "\n".join(found)
    return figure


def faults(figure: Figure) -> list[str]:
    """Return what is wrong with a figure, one sentence each.

    A point of a curve, bar or error bar beyond the limits of its axes, or a marker cut by their
    frame; an axis with numbers and no name; one of several panels without its letter, or two with
    the same; a python identifier with underscores in any text; print below `LEAST_POINTS`; text
    beyond the figure's edge or over other text; a legend over a curve of its panel.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    panels = [axes for axes in figure.get_axes() if _is_panel(axes)]
    found = [fault for axes in panels for fault in (*_cut(axes), *_unnamed(axes))]
    found += _unlettered([axes for axes in panels if axes.get_label() != "<colorbar>"])
    found += [fault for axes in panels for fault in _covered(axes)]
    return found + list(_illegible(figure))


def _is_panel(axes: Axes) -> bool:
    return axes.get_visible() and axes.axison


def _named(axes: Axes) -> str:
    title = " ".join(axes.get_title(where) for where in ("left", "center", "right")).strip()
    return f"panel {title or axes.get_ylabel() or '(no title)'!r}"


def _cut(axes: Axes) -> Iterator[str]:
    for artist, points, transform, radius in _points(axes):
        # Which of the two coordinates are data: not both for axhline and the like.
        data = transform.contains_branch_seperately(axes.transData)
        if not any(data) or not points.size:
            continue
        name = str(artist.get_label()).removeprefix("_") or type(artist).__name__
        for place, (is_data, limits) in enumerate(
            zip(data, (axes.get_xlim(), axes.get_ylim()), strict=True)
        ):
            if not is_data:
                continue
            low, high = sorted(limits)
            room = _EDGE * (high - low)
            values = points[:, place]
            beyond = values[(values < low - room) | (values > high + room)]
            if beyond.size:
                yield (
                    f"{_named(axes)}: {name} has {'xy'[place]} = {beyond[0]:g} beyond "
                    f"{low:g} to {high:g}"
                )
        if radius > 0.0 and all(data) and artist.get_clip_on():
            yield from _cut_markers(axes, name, transform.transform(points), radius)


def _cut_markers(axes: Axes, name: str, places: np.ndarray, radius: float) -> Iterator[str]:
    """Tell whether a marker loses more than a third of its radius at the frame."""
    room = np.minimum(places - axes.bbox.min, axes.bbox.max - places)
    if np.any(room < 0.67 * radius):
        yield f"{_named(axes)}: a marker of {name} is cut by the frame"


def _points(axes: Axes) -> Iterator[tuple[Artist, np.ndarray, Transform, float]]:
    """Yield artists, their finite points, what these are measured in, and markers' radii."""
    pixels = _dots(axes) / 72.0
    for line in axes.get_lines():
        if line.get_visible():
            marked = str(line.get_marker()).lower() not in ("none", "", " ")
            radius = 0.5 * float(line.get_markersize()) * pixels if marked else 0.0
            yield line, _finite(line.get_xydata()), line.get_transform(), radius
    for collection in axes.collections:
        if not collection.get_visible():
            continue
        if isinstance(collection, LineCollection) and len(collection.get_segments()):
            points = np.vstack([np.reshape(part, (-1, 2)) for part in collection.get_segments()])
            yield collection, _finite(points), collection.get_transform(), 0.0
        elif isinstance(collection, PathCollection):
            sizes = collection.get_sizes()
            radius = 0.5 * float(np.sqrt(np.max(sizes))) * pixels if len(sizes) else 0.0
            offsets = np.ma.filled(np.ma.asarray(collection.get_offsets(), float), np.nan)
            yield collection, _finite(offsets), collection.get_offset_transform(), radius
    for patch in axes.patches:
        if isinstance(patch, Rectangle) and patch.get_visible():
            corners = np.array(patch.get_bbox().get_points())
            for place, scale in enumerate((axes.get_xscale(), axes.get_yscale())):
                # Where a bar of a logarithmic axis begins means nothing.
                if scale == "log":
                    corners[corners[:, place] <= 0.0] = np.nan
            yield patch, _finite(corners), patch.get_data_transform(), 0.0


def _dots(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    return 100.0 if figure is None else float(figure.dpi)


def _finite(points: object) -> np.ndarray:
    array = np.asarray(points, dtype=float).reshape(-1, 2)
    return array[np.isfinite(array).all(axis=1)]


def _unnamed(axes: Axes) -> Iterator[str]:
    figure = axes.get_figure(root=True)
    for name, axis, shared, common in (
        ("x", axes.xaxis, axes.get_shared_x_axes(), "_supxlabel"),
        ("y", axes.yaxis, axes.get_shared_y_axes(), "_supylabel"),
    ):
        numbers = [t.get_text() for t in axis.get_ticklabels() if t.get_visible() and t.get_text()]
        # Ticks that are words name themselves.
        if not numbers or not any(_NUMBER.search(text) for text in numbers):
            continue
        whole = getattr(figure, common, None)
        names = [getattr(each, f"get_{name}label")() for each in shared.get_siblings(axes)]
        beside = [each for each in names if each] or (whole is not None and whole.get_text())
        if not beside:
            yield f"{_named(axes)}: the {name} axis has no name"


def _unlettered(panels: Sequence[Axes]) -> Iterator[str]:
    # Axes that lie on others, such as those of twinx, are no panels of their own.
    places = {tuple(np.round(axes.get_position().bounds, 6)): axes for axes in reversed(panels)}
    if len(places) < 2:
        return
    letters = []
    for axes in places.values():
        titles = [axes.get_title(where) for where in ("left", "center", "right")]
        marks = [found[1] for title in titles if (found := _LETTER.match(title))]
        if not marks:
            yield f"{_named(axes)} has no letter"
        letters += marks
    if len(set(letters)) < len(letters):
        yield f"panels share a letter: {', '.join(sorted(letters))}"


def _covered(axes: Axes) -> Iterator[str]:
    legend = axes.get_legend()
    if legend is None or not legend.get_visible():
        return
    box = legend.get_window_extent().padded(-_TOUCH)
    for artist, points, transform, _ in _points(axes):
        data = transform.contains_branch_seperately(axes.transData)
        if not any(data) or not points.size or artist.get_zorder() >= legend.get_zorder():
            continue
        if isinstance(artist, Rectangle):
            covers = Bbox(transform.transform(points)).overlaps(box) if len(points) == 2 else False
        else:
            joined = isinstance(artist, Line2D) and artist.get_linestyle() not in ("None", "", " ")
            covers = _touches(transform.transform(points), box, joined=joined)
        if covers:
            name = str(artist.get_label()).removeprefix("_") or type(artist).__name__
            yield f"{_named(axes)}: the legend lies over {name}"


def _touches(places: np.ndarray, box: Bbox, *, joined: bool) -> bool:
    """Whether a point, or the line through them all, lies in a box; both in pixels."""
    if joined:
        steps = np.linspace(0.0, 1.0, 50)[:, None, None]
        places = (places[:-1] * (1.0 - steps) + places[1:] * steps).reshape(-1, 2)
    inside = (places > [box.x0, box.y0]) & (places < [box.x1, box.y1])
    return bool(np.any(np.all(inside, axis=1)))


def _illegible(figure: Figure) -> Iterator[str]:
    texts = list(_texts(figure))
    page = figure.bbox.padded(_TOUCH)
    boxes = []
    for text in texts:
        words, box = text.get_text(), text.get_window_extent()
        boxes.append(box.padded(-_TOUCH))
        if float(text.get_fontsize()) < LEAST_POINTS:
            yield f"{words!r} is printed at {text.get_fontsize():.1f} points"
        if named := _IDENTIFIER.search(re.sub(r"\$[^$]*\$", "", words)):
            yield f"{words!r} shows the identifier {named[0]}"
        if box.x0 < page.x0 or box.x1 > page.x1 or box.y0 < page.y0 or box.y1 > page.y1:
            yield f"{words!r} runs beyond the figure's edge"
    for (one, here), (other, there) in combinations(zip(texts, boxes, strict=True), 2):
        if here.overlaps(there):
            yield f"{one.get_text()!r} and {other.get_text()!r} overlap"


def _texts(figure: Figure) -> Iterator[Text]:
    """Yield what is written, without the ticks that lie beyond their axis."""
    hidden = {tick for axes in figure.get_axes() for tick in _ticks_unseen(axes)}
    unseen = {
        text
        for axes in figure.get_axes()
        if not _is_panel(axes)
        for axis in (axes.xaxis, axes.yaxis)
        for text in axis.findobj(Text)
    }
    for text in figure.findobj(Text):
        seen = isinstance(text, Text) and text.get_visible() and text.get_text().strip()
        if seen and text not in hidden and text not in unseen and text.get_alpha() != 0:
            yield text


def _ticks_unseen(axes: Axes) -> Iterator[Text]:
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            inside = low <= tick.get_loc() <= high
            for label in (tick.label1, tick.label2):
                if not (inside and tick.get_visible() and label.get_visible()):
                    yield label
