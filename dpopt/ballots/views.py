"""What a table of a choice among classes looks like: its lines, and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt._types import Vector
from dpopt.table import SortedHistograms, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def columns_of(inputs: SortedHistograms, table: Table) -> Mapping[str, Sequence[Any]]:
    """Return the probability of a class by its count and the counts of all, a line for each."""
    names = [" ".join(map(str, state)) for state in inputs.listed()]
    return {
        "counts": [names[row] for row in inputs.rows.tolist()],
        "count": inputs.values.tolist(),
        "classes": inputs.counts.tolist(),
        "probability": table.probabilities.tolist(),
    }


def draw_by_lead(
    axes: Axes, inputs: SortedHistograms, table: Table, chances: Vector, label: str | None
) -> None:
    """Draw the probability that a class of the largest count is output, against its lead.

    The line is the mean over the prior, the band from the least to the largest of all counts.

    Args:
        axes: to draw on.
        inputs: the histograms.
        table: over them.
        chances: the prior, shape (histograms,).
        label: of the line.
    """
    frame_by_lead(axes)
    lead = inputs.histograms[:, 0] - inputs.histograms[:, 1]
    right, leads = table.masses[inputs.starts[:-1]], np.unique(lead)
    # A histogram that never occurs counts where there is no other.
    weights = chances + 1e-300
    means = [np.average(right[lead == at], weights=weights[lead == at]) for at in leads]
    ends = [[end(right[lead == at]) for at in leads] for end in (np.min, np.max)]
    line = axes.plot(leads, means, marker="o", markersize=3, clip_on=False, label=label)[0]
    axes.fill_between(leads, *ends, color=line.get_color(), alpha=0.2, linewidth=0)


def frame_by_lead(axes: Axes) -> None:
    """Name the axes of a picture of probabilities by lead."""
    axes.set_xlabel("lead of the largest count")
    axes.set_ylabel("probability of a largest class")
    axes.set_ylim(-0.03, 1.03)
    axes.locator_params(axis="x", integer=True)
