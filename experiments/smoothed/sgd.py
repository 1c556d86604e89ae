"""Figures 2 (right) and 5: smoothed delta of one step of SGD with 8-bit gradients, without noise.

Exact on each database, averaged over sampled databases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpopt import ParameterError, smoothed
from dpopt.smoothed import QuantisedGradient
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.smoothed import PAPER
from experiments.verdicts import not_comparable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LN10 = math.log(10.0)

COLOURS = ("#2f5d9b", "#0b6e4f", "#d98a29", "#8a5aa8", "#17a2b8", "#7a7a7a")
DP_COLOUR = "#d6409f"

PUBLISHED = (
    "delta falls exponentially in n, DP's delta does not; no numbers. Probabilities were estimated "
    "from independent trials, which makes delta too large at large epsilon (smoothed-sgd-bias)."
)


@dataclass(frozen=True)
class Setting:
    """Pi: two distributions of one gradient, and what the paper calls the pair."""

    label: str
    first: smoothed.QuantisedGradient
    second: smoothed.QuantisedGradient


@dataclass(frozen=True)
class Config:
    """Which distributions, sizes and epsilon; how many databases stand for the expectation.

    Attributes:
        settings: pairs of distributions.
        batches: T, at least two; the database has n = T^2 records, as in the paper.
        epsilons: in nats; the paper's text does not print those of its figures.
        shares: parts of the n records from the first distribution; both ends are among them.
        databases: at least 2, sampled for each composition and n.
        confidence: of the band, over all compositions of one n at once.
        seed: of numpy's generator.
    """

    settings: tuple[Setting, ...]
    batches: tuple[int, ...] = (6, 9, 12, 15)
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 7.0)
    shares: tuple[float, ...] = (0.0, 0.5, 1.0)
    databases: int = 12
    confidence: float = 0.99
    seed: int = 1

    def __post_init__(self) -> None:
        if len(set(self.batches)) < 2:
            raise ParameterError(f"batches is {self.batches}; a line needs at least 2 of them.")
        if self.databases < 2:
            raise ParameterError(f"databases is {self.databases}; a band needs at least 2.")


def steps(config: Config) -> int:
    """Return how often `run` advances."""
    return len(config.settings) * len(config.batches)


def run(config: Config, advance: Advance) -> Outcome:
    """Average delta over databases of each composition, and take the largest average."""
    averages: list[dict[str, Cell]] = []
    for (place, setting), drawn in product(enumerate(config.settings), config.batches):
        for share in config.shares:
            first = round(share * drawn**2)
            rng = np.random.default_rng([config.seed, place, drawn, first])
            deltas = _sample(config, setting, drawn, first, rng)
            averages += _average(config, setting, drawn, first, deltas)
        advance()
    largest = _largest(averages)
    tables = {
        "smoothed": Table.of(
            "The largest average of delta over the compositions tried, its "
            f"{config.confidence:.0%} band over sampled databases, and DP's delta.",
            largest,
        ),
        "fits": Table.of(
            "delta = exp(a + b n) and exp(a + b T), by least squares in log delta.", _fits(largest)
        ),
        "compositions": Table.of(
            "Average of delta over the databases of each composition; each database exact.",
            averages,
        ),
    }
    return Outcome(tables, tuple(_findings(tables)), (_comparison(config, tables),))


def _sample(
    config: Config, setting: Setting, drawn: int, first: int, rng: np.random.Generator
) -> np.ndarray:
    """Return log delta of sampled databases, shape (databases, epsilons)."""
    pair, composition = (setting.first, setting.second), (first, drawn**2 - first)
    return np.stack(
        [
            smoothed.sgd_log_profile(
                smoothed.sample_database(pair, composition, rng), drawn, config.epsilons
            )
            for _ in range(config.databases)
        ]
    )


def _average(
    config: Config, setting: Setting, drawn: int, first: int, log_deltas: np.ndarray
) -> list[dict[str, Cell]]:
    """Return the average at each epsilon, with a band in logarithms.

    The band is mean exp(+- t s / (mean sqrt(K))), Student's t at level (1 - confidence) / (number
    of compositions), so that it holds for all compositions of one n at once.
    """
    count = config.databases
    level = (1.0 - config.confidence) / len(config.shares)
    quantile = float(stats.t.ppf(1.0 - level / 2.0, count - 1))
    rows: list[dict[str, Cell]] = []
    for epsilon, logs in zip(config.epsilons, log_deltas.T, strict=True):
        scaled = np.exp(logs - logs.max())
        log_mean = float(logs.max() + math.log(scaled.mean()))
        relative = float(scaled.std(ddof=1) / scaled.mean())
        width = quantile * relative / math.sqrt(count)
        rows.append(
            {
                "setting": setting.label,
                "records": drawn**2,
                "drawn": drawn,
                "epsilon": epsilon,
                "from_first": first,
                "databases": count,
                "log10_average": log_mean / _LN10,
                "log10_lower": (log_mean - width) / _LN10,
                "log10_upper": (log_mean + width) / _LN10,
                "relative_deviation": relative,
                "share_of_largest": float(scaled.max() / scaled.sum()),
            }
        )
    return rows


def _largest(averages: Sequence[dict[str, Any]]) -> list[dict[str, Cell]]:
    """Return, for each setting, n and epsilon, the largest average and the largest ends.

    No delta is above T / n, the chance that the one record is drawn; nor is the band. "inside"
    tells whether the largest average is above those of both ends by more than the bands.
    """
    keys = dict.fromkeys((r["setting"], r["records"], r["drawn"], r["epsilon"]) for r in averages)
    found: list[dict[str, Cell]] = []
    for label, n, drawn, epsilon in keys:
        key = (label, n, epsilon)
        part = [r for r in averages if (r["setting"], r["records"], r["epsilon"]) == key]
        best = max(part, key=lambda row: row["log10_average"])
        highest = max(row["log10_upper"] for row in part)
        ends = [row["log10_upper"] for row in part if row["from_first"] in (0, n)]
        found.append(
            {
                "setting": label,
                "records": n,
                "drawn": drawn,
                "epsilon": epsilon,
                "from_first": best["from_first"],
                "inside": all(best["log10_lower"] > upper for upper in ends),
                "log10_delta": best["log10_average"],
                "log10_lower": max(row["log10_lower"] for row in part),
                "log10_upper": min(highest, math.log10(drawn / n)),
                "share_of_largest": best["share_of_largest"],
                "dp_delta": drawn / n,
            }
        )
    return found


def _fits(largest: Sequence[dict[str, Any]]) -> list[dict[str, Cell]]:
    """Return least-squares lines of log delta in n, as in the paper's figure, and in T."""
    keys = dict.fromkeys((row["setting"], row["epsilon"]) for row in largest)
    found: list[dict[str, Cell]] = []
    for (label, epsilon), variable in product(keys, ("records", "drawn")):
        part = [r for r in largest if (r["setting"], r["epsilon"]) == (label, epsilon)]
        sizes = np.array([row[variable] for row in part], dtype=float)
        line = stats.linregress(sizes, np.array([row["log10_delta"] for row in part]) * _LN10)
        found.append(
            {
                "setting": label,
                "epsilon": epsilon,
                "variable": variable,
                "a": float(line.intercept),
                "b": float(line.slope),
                "r_squared": float(line.rvalue**2),
            }
        )
    return found


def _comparison(config: Config, tables: dict[str, Table]) -> Comparison:
    """Put the paper's statement on how delta falls beside the two fits."""
    fits = {
        name: np.array(tables["fits"].select(variable=name).column("r_squared"))
        for name in ("records", "drawn")
    }
    better = int(np.count_nonzero(fits["drawn"] > fits["records"]))
    sizes = f"{min(config.batches) ** 2} to {max(config.batches) ** 2}"
    return not_comparable(
        "Section 6: the smoothed delta of SGD is exponentially small in n, with exponential fits.",
        f"Over n = {sizes}, log delta is closer to a line in T = sqrt(n) than to one in n in "
        f"{better} of {fits['drawn'].size} curves: mean r squared {fits['drawn'].mean():.4f} "
        f"against {fits['records'].mean():.4f}.",
        "delta of each database is exact; the average over databases is sampled, the fits are "
        "least squares (table fits)",
        why="the databases and epsilons are ours, and a few sizes do not tell the two fits apart",
        name="exponential in n, SGD",
    )


def _findings(tables: dict[str, Table]) -> list[str]:
    largest = tables["smoothed"].records
    averages = tables["compositions"]
    ends = sum(row["from_first"] in (0, row["records"]) for row in largest)
    inside = sum(row["inside"] for row in largest)
    found = [
        f"The largest average is at an end of the grid of compositions in {ends} of "
        f"{len(largest)} cases, and above both ends by more than the bands in {inside}; "
        "compositions between those of the grid are not evaluated.",
        f"{sum(averages.column('databases')) // len(set(averages.column('epsilon'))):,} databases, "
        "each exact over all replacements of one record; the band is for the choice of databases "
        "only.",
    ]
    top = max(row["records"] for row in largest)
    for label in dict.fromkeys(row["setting"] for row in largest):
        part = [row for row in largest if (row["setting"], row["records"]) == (label, top)]
        at = "; ".join(
            f"10^{row['log10_delta']:.2f} (10^{row['log10_lower']:.2f} to "
            f"10^{row['log10_upper']:.2f}) at epsilon = {row['epsilon']:g}"
            for row in part
        )
        found.append(f"{label}, n = {top}: {at}; DP's delta is {part[0]['dp_delta']:.3g}.")
    rough = [row for row in largest if row["share_of_largest"] > 1 / 3]
    if rough:
        where = sorted({row["epsilon"] for row in rough})
        found.append(
            f"In {len(rough)} cases, at epsilon = {', '.join(f'{e:g}' for e in where)}, one "
            "database carries more than a third of the average: delta is so skewed over databases "
            "that the band understates what is not known there."
        )
    return found


FIGURE_2 = (
    Setting("N(0, .12²), N(.2, .12²)", QuantisedGradient(0.0, 0.12), QuantisedGradient(0.2, 0.12)),
)
FIGURE_5 = (
    Setting(
        "1: N(0, .15²), N(.2, .15²)", QuantisedGradient(0.0, 0.15), QuantisedGradient(0.2, 0.15)
    ),
    Setting("2: N(0, .1²), N(.2, .1²)", QuantisedGradient(0.0, 0.1), QuantisedGradient(0.2, 0.1)),
    Setting(
        "3: N(0, .12²), L(0, .12²)",
        QuantisedGradient(0.0, 0.12),
        QuantisedGradient(0.0, 0.12, "laplace"),
    ),
    Setting(
        "4: L(0, .12²), L(.2, .12²)",
        QuantisedGradient(0.0, 0.12, "laplace"),
        QuantisedGradient(0.2, 0.12, "laplace"),
    ),
)


def plot(outcome: Outcome) -> Figure:
    """Draw delta against n for each setting: averages, bands, fits and DP's delta."""
    from matplotlib.figure import Figure

    tables = outcome.tables
    labels = list(dict.fromkeys(tables["smoothed"].column("setting")))
    columns = min(2, len(labels))
    rows = math.ceil(len(labels) / columns)
    figure = Figure(figsize=(5.6 * columns, 3.9 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, label in zip(grid.flat, labels, strict=False):
        parts = [
            tables["smoothed"].select(setting=label),
            tables["fits"].select(setting=label, variable="records"),
        ]
        _draw(axes, *(part.records for part in parts))
        axes.set_title(label, fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel("records $n$; batches of $\\sqrt{n}$")
    for axes in grid[:, 0]:
        axes.set_ylabel(r"$\delta$")
    grid[0, 0].legend(fontsize=8, frameon=False, loc="lower left")
    return figure


def _draw(axes: Axes, rows: list[dict[str, Any]], fits: list[dict[str, Any]]) -> None:
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    for epsilon, colour in zip(epsilons, cycle(COLOURS), strict=False):
        part = [row for row in rows if row["epsilon"] == epsilon]
        n = np.array([row["records"] for row in part])
        middle, lower, upper = (
            np.array([10.0 ** row[name] for row in part])
            for name in ("log10_delta", "log10_lower", "log10_upper")
        )
        axes.plot(
            n, middle, "o-", color=colour, markersize=3, label=rf"$\varepsilon = {epsilon:g}$"
        )
        axes.fill_between(n, lower, upper, color=colour, alpha=0.2, linewidth=0)
        fit = next(fit for fit in fits if fit["epsilon"] == epsilon)
        axes.plot(n, np.exp(fit["a"] + fit["b"] * n), ":", color=colour, linewidth=1)
    dp = {row["records"]: row["dp_delta"] for row in rows}
    axes.plot(list(dp), list(dp.values()), "--", color=DP_COLOUR, label=r"DP: $T / n$")
    axes.set_yscale("log")
    axes.grid(alpha=0.25)


def _experiment(name: str, item: str, quick: Config, full: Config) -> Experiment:
    return Experiment(
        name=name,
        paper=PAPER,
        item=item,
        summary="Smoothed delta of one SGD step with 8-bit gradients against n, batches of "
        "sqrt(n). delta of each database is exact, over all neighbours; its expectation is an "
        "average over sampled databases, with a 99 % band, for a grid of compositions that "
        "includes both ends. No delta is above T / n, and neither is the band. Dotted: "
        "exponential fits in n. Dashed: DP, T / n at every epsilon. sigma of a Laplace "
        "distribution is read as its standard deviation.",
        published=PUBLISHED,
        config=full,
        quick=quick,
        steps=steps,
        run=run,
        plot=plot,
    )


_QUICK_2 = Config(FIGURE_2, databases=10)
_QUICK_5 = Config(FIGURE_5, batches=(5, 8, 11), databases=6)
EXPERIMENTS = (
    _experiment(
        "smoothed-figure-2-right",
        "Figure 2 (right)",
        _QUICK_2,
        replace(
            _QUICK_2,
            batches=(5, 7, 9, 11, 13, 15, 17, 20),
            shares=(0.0, 0.25, 0.5, 0.75, 1.0),
            databases=40,
        ),
    ),
    _experiment(
        "smoothed-figure-5",
        "Figure 5",
        _QUICK_5,
        replace(
            _QUICK_5,
            batches=(5, 7, 9, 11, 13, 15),
            shares=(0.0, 0.25, 0.5, 0.75, 1.0),
            databases=20,
        ),
    ),
)
