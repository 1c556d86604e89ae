"""What the experiments on Reveal-or-Obscure share: rules, all data sets, distances from each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams

from dpopt import ParameterError, roo, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = "Reveal-or-Obscure"
VIOLATES = 1.0 + 1e-9
"""An excess factor above this is the rule's own; rounding q_m to 2^-62 stays far below."""


def look(role: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the keywords of a curve: those of its role, with changes."""
    return style.role(role).line | {"markeredgewidth": 0.8} | changes


HOLLOW = {"markerfacecolor": "white"}

RULES = {
    "conference": ("conference's recursion", look("baseline")),
    "journal": ("journal's recursion", look("paper")),
    "journal-repaired": ("journal's, repaired (ours)", look("variant", markersize=5.5, **HOLLOW)),
    "exact": ("exact rule (ours)", look("optimum", linestyle="--")),
    "roo": ("ROO", look("baseline-2")),
}
"""Label and look of each rule, in the order in which they are drawn."""


def shared_panels(
    count: int, columns: int, height: float, xlabel: str, ylabel: str
) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels with the same axes, at most three beside each other.

    Args:
        count: of panels.
        columns: wanted.
        height: of a panel, as a share of its width.
        xlabel: below the lowest panels.
        ylabel: left of the first ones.
    """
    columns = min(columns, count, 3)
    rows = math.ceil(count / columns)
    figure, grid = style.figure(
        rows, columns, height=height, wide=columns > 1, sharex=True, sharey=True
    )
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.remove()
    for place, axes in enumerate(panels[:count]):
        if place + columns >= count:
            axes.set_xlabel(xlabel)
            axes.tick_params(labelbottom=True)
        if place % columns == 0:
            axes.set_ylabel(ylabel)
    return figure, panels[:count]


# Characters of a line of a legend.
_WIDEST = 40


def legend_below(figure: Figure, panels: Sequence[Axes]) -> None:
    """Write one legend for all panels; a curve under another one says so, and in which panels.

    Call it when all is drawn.
    """
    handles: dict[str, Any] = {}
    under: dict[str, dict[str, list[int]]] = {}
    drawn: dict[str, int] = {}
    for place, axes in enumerate(panels):
        lines = axes.get_lines()
        names = [str(line.get_label()) for line in lines]
        style.tell_hidden(axes)
        for line, name in zip(lines, names, strict=True):
            told = str(line.get_label()).removeprefix(name).replace(" (ours)", "")
            line.set_label(name)
            drawn[name] = drawn.get(name, 0) + 1
            if told:
                under.setdefault(name, {}).setdefault(told, []).append(place)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = []
    for label in handles:
        words = [label]
        for told, places in under.get(label, {}).items():
            where = ", ".join(f"({ascii_lowercase[p]})" for p in places)
            words.append(told if len(places) == drawn[label] else f"{told[:-1]} in {where})")
        labels.append("\n".join(fill(part.strip(), _WIDEST) for part in words))
    widest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    size = float(rcParams["font.size"]) / 72
    columns = max(1, min(len(labels), int(figure.get_figwidth() / (0.5 * size * (widest + 6)))))
    figure.legend(handles.values(), labels, loc="outside lower center", ncols=columns)


def violates(sampler: roo.MinCountSampler) -> bool:
    """Return whether a rule exceeds e^epsilon by more than the rounding of its weights."""
    return sampler.audit.excess_factor > VIOLATES


def data_sets(sampler: roo.MinCountSampler) -> str:
    """Return the audit's neighbours in words: counts, or runs of counts for many letters."""
    witness = sampler.audit.witness
    if sampler.setting.letters <= 12:
        return f"{witness.counts} to {witness.neighbour}"
    sides = (
        ", ".join(f"{letters} x {count}" for count, letters in runs)
        for runs in (witness.runs, witness.neighbour_runs)
    )
    return " to ".join(sides)


def require_some(**values: Sequence[object]) -> None:
    """Refuse a parameter of several values that has none.

    Raises:
        ParameterError: naming it.
    """
    for name, value in values.items():
        if not value:
            raise ParameterError(f"{name} is (); it must hold at least one value.")


def two_level(letters: int, least: float, low: int) -> np.ndarray:
    """Return P with ``low`` letters at the least probability, the others equal."""
    rest = (1 - low * least) / (letters - low)
    return np.concatenate([np.full(low, least), np.full(letters - low, rest)])


def smooth_floor(n: int, k: int, epsilon: float) -> roo.SmoothFloorSampler | None:
    """Return the smooth floor, or None where epsilon is too small for so few records."""
    return roo.smooth_floor(n, k, epsilon) if epsilon > math.log1p(1 / n) else None


@dataclass(frozen=True)
class DataSets:
    """All sorted counts, and how much of the uniform law over counts each stands for."""

    counts: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, n: int, k: int) -> DataSets:
        """List them; P uniform on the simplex makes all counts alike likely."""
        rows = list(_partitions(n, k, n))
        orders = [
            math.factorial(k) // math.prod(math.factorial(row.count(c)) for c in set(row))
            for row in rows
        ]
        return cls(np.array(rows), np.array(orders) / math.comb(n + k - 1, k - 1))


def _partitions(n: int, k: int, most: int) -> Iterator[tuple[int, ...]]:
    if k == 1:
        if n <= most:
            yield (n,)
        return
    for first in range(min(n, most), -1, -1):
        for rest in _partitions(n - first, k - 1, first):
            yield (first, *rest)


def distances(sampler: roo.LetterSampler, data: DataSets) -> np.ndarray:
    """Return the total variation of K(x) from the empirical law, for each data set."""
    laws = np.array([sampler.output_distribution(row) for row in data.counts])
    return np.abs(laws - data.counts / data.counts[0].sum()).sum(axis=1) / 2


def estimated_distances(
    noise: roo.LaplaceProjection, data: DataSets, rng: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return an estimate of the distance on each data set, and its standard error."""
    values, errors = [], []
    for row in data.counts:
        laws = noise.noisy_laws(row, rng, draws)
        empirical = row / row.sum()
        gains = np.sign(laws.mean(axis=0) - empirical)
        each = (laws - empirical) @ gains / 2
        values.append(each.mean())
        errors.append(each.std(ddof=1) / math.sqrt(draws))
    return np.array(values), np.array(errors)
