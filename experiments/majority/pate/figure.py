"""Figure of Tables 1, 6, 8 and 10: accuracy by method, number of queries and target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.registry import Outcome, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS = {
    "gnmax": ("GNMax, Rényi bound (the paper's)", "#9a9a9a"),
    "gnmax-label": ("GNMax, exact for the label", "#5c5c5c"),
    "subsampling": ("DaRRM, subsampling", "#2f5d9b"),
    "surrogate": ("DaRRM, the paper's objective", "#c1432e"),
    "expected-error": ("DaRRM, expected error (independent p)", "#0b6e4f"),
    "common-p": ("DaRRM, expected error (common p)", "#7fc8a9"),
}
CEILINGS = {
    "private-majority": ("majority of private teachers, no noise", "--"),
    "plain-majority": ("majority of teachers without privacy", ":"),
}
_COIN = 0.5
_EXACT = "exact, mean of the training runs"
_WIDTH = 0.14


def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each m: drawn means with one std, exact values, printed values."""
    from matplotlib.figure import Figure

    drawn = outcome.tables["queries"]
    targets = list(dict.fromkeys(drawn.column("m")))
    figure = Figure(figsize=(3.4 * len(targets), 5.0), layout="constrained")
    panels = figure.subplots(1, len(targets), sharey=True, squeeze=False)[0]
    for axes, target in zip(panels, targets, strict=True):
        _draw_panel(axes, drawn.select(m=target))
        axes.set_title(f"$m = {target}$", fontsize=11)
        axes.set_xlabel("queries $Q$")
    panels[0].set_ylabel("accuracy of the labels (bars start at a coin's 0.5)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_panel(axes: Axes, drawn: Table) -> None:
    queries = list(dict.fromkeys(drawn.column("Q")))
    for place, (method, (label, colour)) in enumerate(BARS.items()):
        part = drawn.select(method=method)
        at = [i + (place - 2.5) * _WIDTH for i in range(len(queries))]
        axes.bar(
            at,
            [mean - _COIN for mean in part.column("mean")],
            0.9 * _WIDTH,
            bottom=_COIN,
            yerr=part.column("std"),
            color=colour,
            label=label,
            error_kw={"elinewidth": 0.8, "capsize": 2.0},
        )
        exact = part.column("exact_mean")
        axes.plot(at, exact, "_", color="black", markersize=9, label=None if place else _EXACT)
        shown = [(x, y) for x, y in zip(at, part.column("printed_mean"), strict=True) if y]
        if shown:
            axes.plot(
                *zip(*shown, strict=True),
                "D",
                color="#f2c14e",
                markeredgecolor="black",
                markersize=5,
                label=None if place else "printed in the paper",
            )
    for method, (label, style) in CEILINGS.items():
        level = drawn.select(method=method).column("exact_mean")[0]
        axes.axhline(level, color="black", linestyle=style, linewidth=1.0, label=label)
    axes.set_xticks(range(len(queries)), [str(q) for q in queries])
    axes.set_ylim(0.4, 1.02)
    axes.grid(axis="y", alpha=0.25)
