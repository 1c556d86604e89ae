"""Figures 3 and 6 to 11: users' clicks on sites by attribute and subcategory, Avazu's format."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from experiments import drawing, style
from experiments.data.avazu import ATTRIBUTES, Clicks, load_clicks, subcategories
from experiments.data.generate import generate_avazu
from experiments.data.groups import UserGroup
from experiments.parameters import Count, Seed, Several, configuration
from experiments.public_prior.common import Epsilon, distances, draw_points
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import not_comparable, numbers

# What section 5.3 prints, and its decimals.
_PRINTED = {
    "wins": ("Algorithm 1 has the lower largest TV in this share of the cases", 0.905, 3),
    "improvement": ("Mean improvement where it has", 0.46, 2),
    "loss": ("Mean loss where it has not", 0.009, 3),
}
_CERTIFICATE = "every user, double precision"
_SHOWN = ("mollifier-kl", "minimax", "leximin")
# Rows of the paper's file, at least.
_ROWS = 40_000_000
GENERATED, _OWN = "generated data", "own data in the format of Avazu"
# Rows of subcategories that are named one by one; of more, the attributes are.
_NAMED = 45
# Inches: of a row of the picture, of what is around the rows, of the fewest and the most rows.
_LINE, _AROUND, _LEAST, _TALLEST = 0.13, 0.95, 1.2, 6.2
# Of a panel, by the number of panels side by side: what inches are shares of.
_PANEL = 5.5


Attribute = Literal["C1", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21"]


@configuration
class Config:
    """Parameters of the figures; groups, epsilons and the full run's thresholds as in the paper.

    Attributes:
        path: train.csv of Avazu, also gzipped; None for generated data.
        groups: attributes whose values define the groups of users, among C1 and C14 to C21.
        user: column that identifies users: "device_id" as in the paper, or "device_ip".
        prior: "average" of the users' pmfs as in the paper, or "total" of their clicks.
        epsilon: one or more, in nats; a panel for each.
        sites: largest number of categories in a subcategory.
        minimum_clicks: fewest clicks of a user on these sites.
        minimum_users: fewest users of a subcategory.
        rows: of the generated file.
        seed: of the generated file.
    """

    path: str | None = None
    groups: Several[Attribute] = ATTRIBUTES
    user: Literal["device_id", "device_ip"] = "device_id"
    prior: Literal["average", "total"] = "average"
    epsilon: Several[Epsilon] = (8.0, 12.0, 16.0)
    sites: Count = 100
    minimum_clicks: Count = 20
    minimum_users: Count = 1000
    rows: Count = 300_000
    seed: Seed = 3


@experiment(
    "prior-figures-3-6-11",
    config=Config(rows=6_000_000),
    quick=Config(minimum_users=60),
    effort=("path", "rows", "seed"),
)
def run(config: Config) -> Outcome:
    """Measure the largest distance of each method in each subcategory."""
    clicks, source = _clicks(config), GENERATED if config.path is None else _OWN
    limits = {name: getattr(config, name) for name in ("sites", "minimum_clicks", "minimum_users")}
    rows: list[dict[str, Any]] = []
    for attribute in track(config.groups):
        for group in subcategories(clicks, attribute, **limits):
            if len(group.categories) > 1:
                rows += [_record(group, config.prior, source, each) for each in config.epsilon]
    parts = {
        f"{each:g}": [row for row in rows if row["epsilon"] == each] for each in config.epsilon
    }
    summary: list[dict[str, Cell]] = [
        {"epsilon": name} | _compared(part) for name, part in (parts | {"all": rows}).items()
    ]
    published = {name: printed for name, (_, printed, _) in _PRINTED.items()}
    tables = {"summary": Table.of([*summary, {"epsilon": "published", "cases": None} | published])}
    if rows:
        tables["cases"] = Table.of(rows)
    generated = config.path is None
    data = "generated data in the format of Avazu" if generated else source
    compared = of_avazu(tables["summary"], _other(config, clicks))
    return Outcome(tables, compared, data, generated)


def _other(config: Config, clicks: Clicks) -> str | None:
    """Return what is not as in the paper; None if nothing is."""
    if config.path is None:
        return "the users are generated, in the format of Avazu"
    if clicks.rows < _ROWS:
        return f"the file has {clicks.rows:,} rows, the paper's {_ROWS:,} or more"
    paper = Config()
    names = [each.name for each in fields(Config) if each.name not in ("path", "rows", "seed")]
    changed = [name for name in names if getattr(config, name) != getattr(paper, name)]
    return f"{', '.join(changed)}: not as in the paper" if changed else None


def _clicks(config: Config) -> Clicks:
    if config.path is not None:
        return load_clicks(config.path, config.user)
    with TemporaryDirectory(prefix="dpopt-") as folder:
        path = generate_avazu(Path(folder, "train.csv"), config.rows, config.seed)
        return load_clicks(path, config.user)


def _record(group: UserGroup, prior: str, source: str, epsilon: float) -> dict[str, Any]:
    inputs = (group.prior(prior), group.pmfs, epsilon)
    moved = {method: distances(method, *inputs) for method in _SHOWN}
    return {
        "data": source,
        "attribute": group.attribute,
        "value": group.value,
        "users": group.users,
        "categories": len(group.categories),
        "epsilon": epsilon,
        **{method: float(values.max()) for method, values in moved.items()},
        **{f"{method}_mean": float(values.mean()) for method, values in moved.items()},
    }


def _compared(rows: list[dict[str, Any]]) -> dict[str, Cell]:
    gains = np.array([row["mollifier-kl"] - row["minimax"] for row in rows])
    won, lost = gains[gains > 0], -gains[gains <= 0]
    return {
        "cases": len(rows),
        "wins": won.size / gains.size if gains.size else None,
        "improvement": float(won.mean()) if won.size else None,
        "loss": float(lost.mean()) if lost.size else None,
    }


def of_avazu(summary: Table, other: str | None) -> tuple[Comparison, ...]:
    """Compare the shares and means of section 5.3 on the paper's data."""
    (whole,) = summary.select(epsilon="all").records
    found = []
    for name, (words, printed, digits) in _PRINTED.items():
        if (value := whole[name]) is not None:
            claim = f"{words}: {printed} (section 5.3)."
            ours = f"{value:.{digits}f} in {whole['cases']} cases."
            found.append(
                numbers(claim, ours, [(value, printed)], digits, _CERTIFICATE)
                if other is None
                else not_comparable(claim, ours, _CERTIFICATE, why=other)
            )
    return tuple(found)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw a row for each attribute and subcategory, a panel for each epsilon."""
    if "cases" not in outcome.tables:
        figure, grid = style.figure(height=0.3)
        grid[0, 0].set_axis_off()
        grid[0, 0].text(0.5, 0.5, "no subcategory has enough users", ha="center", va="center")
        return figure
    table = outcome.tables["cases"]
    count = len(table.distinct("epsilon"))
    names = table.select(epsilon=table.column("epsilon")[0]).distinct("attribute", "value")
    tall = _AROUND + max(_LEAST, min(_TALLEST, _LINE * (len(names) + 1)))
    figure, panels = drawing.by_panel(
        table,
        ["epsilon"],
        r"$\varepsilon = {epsilon:g}$",
        count,
        "largest total variation",
        height=tall * count / _PANEL,
        sharey=True,
        wide=True,
    )
    for axes, rows in panels.items():
        _draw(axes, rows)
    _name_rows([*panels], names)
    return drawing.finish(figure, [*panels])


def _draw(axes: Axes, table: Table) -> None:
    values = np.array([table.column(method) for method in _SHOWN])
    # A mollifier that holds every user's distribution moves none of them: 0 has no logarithm.
    floor = min(values[values > 0], default=1e-6) / 3
    for method, shown in zip(_SHOWN, np.maximum(values, floor).tolist(), strict=True):
        draw_points(axes, method, shown, range(len(shown)))
    least = floor
    if values.min() <= 0:
        least = floor / 1.6
        axes.axvline(floor, color=style.ROLES["limit"].colour, linestyle=":", linewidth=0.8)
        axes.text(floor, -0.75, " 0", va="center", fontsize="small")
    axes.set(xscale="log", xlim=(least, 3 * max(floor, values.max())))
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _name_rows(panels: list[Axes], names: list[tuple[str, str]]) -> None:
    """Name the rows by attribute and value, or if they are many, attributes at their middle."""
    attributes = [attribute for attribute, _ in names]
    ends = [k + 0.5 for k, (a, b) in enumerate(pairwise(attributes)) if a != b]
    panels[0].set_ylim(len(names) - 0.4, -1.1)
    if len(names) <= _NAMED:
        panels[0].set_yticks(range(len(names)), [f"{a}: {value}" for a, value in names])
        panels[0].set_ylabel("attribute: subcategory")
    else:
        middles = [sum(pair) / 2 for pair in pairwise([-0.5, *ends, len(names) - 0.5])]
        panels[0].set_yticks(middles, list(dict.fromkeys(attributes)))
        panels[0].set_ylabel("attribute, and a row for each subcategory")
    for axes in panels:
        axes.grid(visible=False, axis="y", which="both")
        for end in ends:
            axes.axhline(end, color=style.ROLES["noise"].colour, linewidth=0.4)
