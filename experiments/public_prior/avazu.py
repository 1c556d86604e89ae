"""Figures 3 and 6 to 11: users' clicks on sites by attribute and subcategory, Avazu's format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.data.avazu import ATTRIBUTES, Clicks, load_clicks, subcategories
from experiments.data.generate import generate_avazu
from experiments.data.groups import UserGroup
from experiments.public_prior.common import METHODS, PAPER, distances, scratch
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.verdicts import not_comparable, numbers, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PRINTED = {"wins": (0.905, 3), "improvement": (0.46, 2), "loss": (0.009, 3)}

_SHOWN = ("minimax", "leximin", "mollifier-kl")
# Rows of the paper's file, at least, and its choices.
_ROWS = 40_000_000
_CHOICES = {
    "user": "device_id",
    "prior": "average",
    "epsilons": (8.0, 12.0, 16.0),
    "sites": 100,
    "minimum_clicks": 20,
    "minimum_users": 1000,
}
GENERATED = "generated data"
_PUBLISHED = {"wins": 0.905, "improvement": 0.46, "loss": 0.009}


@dataclass(frozen=True)
class Config:
    """Parameters of the figures; thresholds and epsilons of the full run as in the paper.

    Attributes:
        path: train.csv of Avazu, plain or gzipped; None for a generated one.
        user: column that tells users apart: "device_id" as in the paper, or "device_ip".
        prior: "average" of the users' laws as in the paper, or "total" of their clicks.
        epsilons: in nats.
        sites: most letters of a subcategory.
        minimum_clicks: fewest clicks of a user on these sites.
        minimum_users: fewest users of a subcategory.
        rows: of the generated file.
        seed: of the generated file.
    """

    path: str | None = None
    user: str = "device_id"
    prior: str = "average"
    epsilons: tuple[float, ...] = (8.0, 12.0, 16.0)
    sites: int = 100
    minimum_clicks: int = 20
    minimum_users: int = 1000
    rows: int = 300_000
    seed: int = 3


def run(config: Config, advance: Advance) -> Outcome:
    """Measure the largest distance of each method in each subcategory."""
    clicks = _clicks(config)
    advance()
    rows: list[dict[str, Any]] = []
    for attribute in ATTRIBUTES:
        groups = subcategories(
            clicks,
            attribute,
            sites=config.sites,
            minimum_clicks=config.minimum_clicks,
            minimum_users=config.minimum_users,
        )
        rows += [record for group in groups for record in _records(group, config)]
        advance()
    source = _source(config)
    tables = {
        "summary": Table.of(
            "Algorithm 1 against the KL mollifier: share of the cases it wins, mean improvement of "
            "the largest TV where it wins, mean loss where it does not; and as published on Avazu.",
            _summary(config, rows),
        ),
    }
    if rows:
        tables["cases"] = Table.of(
            f"Largest and mean total variation over the users of each subcategory, {source}.", rows
        )
    compared = of_avazu(tables["summary"], other=_other(config, clicks))
    return Outcome(tables, tuple(_findings(config, clicks, tables)), compared)


def _source(config: Config) -> str:
    return GENERATED if config.path is None else "own data in the format of Avazu"


def _other(config: Config, clicks: Clicks) -> str | None:
    """Return what is not as in the paper; None if nothing is."""
    if config.path is None:
        return "the users are generated, in the format of Avazu"
    if clicks.rows < _ROWS:
        return f"the file has {clicks.rows:,} rows, the paper's {_ROWS:,} or more"
    changed = [name for name, value in _CHOICES.items() if getattr(config, name) != value]
    return f"{', '.join(changed)}: not as in the paper" if changed else None


def _clicks(config: Config) -> Clicks:
    if config.path is not None:
        return load_clicks(config.path, config.user)
    with scratch() as folder:
        path = generate_avazu(folder / "train.csv", config.rows, config.seed)
        return load_clicks(path, config.user)


def _records(group: UserGroup, config: Config) -> list[dict[str, Any]]:
    if len(group.letters) < 2:
        return []
    prior, laws = group.prior(config.prior), group.laws
    rows: list[dict[str, Any]] = []
    for epsilon in config.epsilons:
        found = {method: distances(method, prior, laws, epsilon) for method in _SHOWN}
        rows.append(
            {
                "data": _source(config),
                "attribute": group.attribute,
                "value": group.value,
                "users": group.users,
                "letters": len(group.letters),
                "epsilon": epsilon,
                **{method: float(values.max()) for method, values in found.items()},
                **{f"{method}_mean": float(values.mean()) for method, values in found.items()},
            }
        )
    return rows


def _summary(config: Config, rows: list[dict[str, Any]]) -> list[dict[str, Cell]]:
    parts = {
        f"{epsilon:g}": [r for r in rows if r["epsilon"] == epsilon] for epsilon in config.epsilons
    }
    return [
        *({"epsilon": name, **_compared(part)} for name, part in parts.items()),
        {"epsilon": "all", **_compared(rows)},
        {"epsilon": "published", "cases": None, **_PUBLISHED},
    ]


def _compared(rows: list[dict[str, Any]]) -> dict[str, Cell]:
    gains = np.array([row["mollifier-kl"] - row["minimax"] for row in rows])
    won, lost = gains[gains > 0], -gains[gains <= 0]
    return {
        "cases": len(rows),
        "wins": won.size / gains.size if gains.size else None,
        "improvement": float(won.mean()) if won.size else None,
        "loss": float(lost.mean()) if lost.size else None,
    }


def _findings(config: Config, clicks: Clicks, tables: dict[str, Table]) -> list[str]:
    found = [f"{clicks.rows} rows, {clicks.frame.height} clicks."]
    if config.path is None:
        found.append("The data are generated: no number here is one of Avazu.")
    for row in tables["summary"].records[:-1]:
        if not row["cases"]:
            found.append(f"Epsilon {row['epsilon']}: no subcategory has enough users.")
            continue
        words = [f"{row['cases']} cases, Algorithm 1 wins {100 * row['wins']:.1f} %"]
        words += [
            f"mean {name} {short(row[name])}"
            for name in ("improvement", "loss")
            if row[name] is not None
        ]
        found.append(f"Epsilon {row['epsilon']}: {', '.join(words)}.")
    return found


def of_avazu(summary: Table, *, other: str | None) -> tuple[Comparison, ...]:
    """Compare the shares and means of section 5.3 on the paper's data.

    Args:
        summary: "summary" of the run.
        other: what of the data or of the thresholds is not the paper's; None if all is.
    """
    whole = next(row for row in summary.records if row["epsilon"] == "all")
    words = {
        "wins": "Algorithm 1 has the lower largest TV in this share of the cases",
        "improvement": "Mean improvement where it has",
        "loss": "Mean loss where it has not",
    }
    certificate = "every user, double precision"
    found = []
    for name, (printed, digits) in _PRINTED.items():
        if whole[name] is None:
            continue
        claim = f"{words[name]}: {printed} (section 5.3)."
        ours = f"{whole[name]:.{digits}f} in {whole['cases']} cases."
        found.append(
            numbers(claim, ours, [(whole[name], printed)], digits, certificate)
            if other is None
            else not_comparable(claim, ours, certificate, why=other)
        )
    return tuple(found)


def plot(outcome: Outcome) -> Figure:
    """Draw one row of panels for each attribute, one column for each epsilon."""
    from matplotlib.figure import Figure

    if "cases" not in outcome.tables:
        figure = Figure(figsize=(6, 1.5), layout="constrained")
        figure.text(0.5, 0.5, "no subcategory has enough users", ha="center", va="center")
        return figure
    table = outcome.tables["cases"]
    attributes = list(dict.fromkeys(table.column("attribute")))
    epsilons = list(dict.fromkeys(table.column("epsilon")))
    figure = Figure(figsize=(3.6 * len(epsilons), 1.9 * len(attributes) + 0.6))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(len(attributes), len(epsilons), squeeze=False, sharey=True)
    for line, attribute in zip(grid, attributes, strict=True):
        for axes, epsilon in zip(line, epsilons, strict=True):
            _draw(axes, table.select(attribute=attribute, epsilon=epsilon))
        line[0].set_ylabel(f"{attribute}\nlargest TV")
    for axes, epsilon in zip(grid[0], epsilons, strict=True):
        axes.set_title(rf"$\varepsilon = {epsilon:g}$", fontsize=10)
    (source,) = set(table.column("data"))
    said = "generated data in Avazu's format, not Avazu" if source == GENERATED else source
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=said,
        frameon=False,
        fontsize=8,
        ncols=len(_SHOWN),
        loc="outside upper center",
    )
    return figure


def _draw(axes: Axes, table: Table) -> None:
    places = list(range(len(table.rows)))
    for method in reversed(_SHOWN):
        label, colour, style = METHODS[method]
        axes.plot(
            places,
            table.column(method),
            style[0],
            color=colour,
            label=label,
            markersize=5,
            markerfacecolor="none",
        )
    if len(places) <= 12:
        axes.set_xticks(places, table.column("value"), fontsize=7)
    else:
        axes.set_xlabel(f"{len(places)} subcategories", fontsize=8)
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_yscale("log")
    axes.grid(axis="y", alpha=0.25)


EXPERIMENT = Experiment(
    name="prior-figures-3-6-11",
    paper=PAPER,
    item="Figures 3 and 6 to 11",
    summary="Largest total variation over the users of each attribute and subcategory, epsilon = "
    "8, 12 and 16: p is a user's clicks over the 100 sites with the most clicks, q the average of "
    "the users' laws. The data are generated in Avazu's format unless the configuration names "
    "the file of a download.",
    published="on Avazu, all cases: Algorithm 1 wins 90.5 % with a mean improvement of 0.46, and "
    "loses the others by 0.009",
    config=Config(rows=6_000_000),
    quick=Config(minimum_users=60),
    steps=lambda _: 1 + len(ATTRIBUTES),
    run=run,
    plot=plot,
)
