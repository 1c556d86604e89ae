"""Figures 2 (right) and 5: smoothed delta of one step of SGD with 8-bit gradients, without noise.

Exact on each database, averaged over sampled databases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from pydantic.dataclasses import dataclass

from dpopt import ParameterError, smoothed
from experiments import drawing
from experiments.parameters import STRICT, Count, Probability, Seed, Several, Some
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.smoothed import PAPER
from experiments.smoothed.gradients import Gradients, gradients
from experiments.smoothed.quantised import sample_database
from experiments.verdicts import not_comparable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LN10 = math.log(10.0)
_BITS = 8

PUBLISHED = (
    "delta falls exponentially in n, DP's delta does not; no numbers. Probabilities were estimated "
    "from independent trials, which makes delta too large at large epsilon (smoothed-sgd-bias)."
)


@dataclass(frozen=True, config=STRICT)
class Config:
    """Which distributions, sizes and epsilon; how many databases stand for the expectation.

    Attributes:
        distributions: the sets Pi, each a text of words "family:mean,deviation" with blanks between
            them, the family gaussian or laplace; each set has a panel.
        batches: T, at least two; the database has n = T^2 records, as in the paper.
        epsilons: in nats; the paper's text does not print those of its figures.
        shares: parts of the n records from one distribution of a set, the rest being from another,
            for every two of them; 0 and 1 are all from one alone.
        databases: at least 2, sampled for each composition and n.
        confidence: of the band, over all compositions of one n at once.
        seed: of numpy's generator.
    """

    distributions: Some[str]
    batches: Several[Count] = (6, 8, 10, 12, 15)
    epsilons: Some[Annotated[float, Ge(0.0)]] = (0.5, 1.0, 2.0, 7.0)
    shares: Some[Annotated[float, Ge(0.0), Le(1.0)]] = (0.0, 0.5, 1.0)
    databases: Annotated[int, Ge(2)] = 12
    confidence: Probability = 0.99
    seed: Seed = 1

    def __post_init__(self) -> None:
        if len(self.batches) < 2:
            raise ParameterError(
                f"batches is {self.batches}; it must hold 2 numbers or more: a line is fitted."
            )
        gradients(self.distributions, _BITS)

    @property
    def settings(self) -> tuple[Gradients, ...]:
        """The sets of distributions."""
        return gradients(self.distributions, _BITS)


def compositions(config: Config, members: int, records: int) -> dict[tuple[int, ...], list[int]]:
    """Return how many records come from each distribution, each with what its draws are seeded by.

    The grid runs along every edge of the simplex of compositions; its corners, which edges share,
    are there once.
    """
    found: dict[tuple[int, ...], list[int]] = {}
    if members == 1:
        return {(records,): [records]}
    for one, two in combinations(range(members), 2):
        for share in config.shares:
            counts = [0] * members
            counts[one] = round(share * records)
            counts[two] = records - counts[one]
            own = [] if (one, two) == (0, 1) else [one, two]
            found.setdefault(tuple(counts), [counts[one], *own])
    return found


def run(config: Config) -> Outcome:
    """Average delta over databases of each composition, and take the largest average."""
    averages: list[dict[str, Cell]] = []
    cases = list(product(enumerate(config.settings), config.batches))
    for (place, setting), drawn in track(cases):
        grid = compositions(config, len(setting.members), drawn**2)
        for counts, seed in grid.items():
            rng = np.random.default_rng([config.seed, place, drawn, *seed])
            deltas = _sample(config, setting, drawn, counts, rng)
            averages += _average(config, setting, drawn, counts, len(grid), deltas)
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
    return Outcome(
        tables,
        tuple(_findings(tables)),
        (_comparison(config, tables),),
        data="gradients sampled from the distributions",
        generated=True,
    )


def _sample(
    config: Config,
    setting: Gradients,
    drawn: int,
    counts: tuple[int, ...],
    rng: np.random.Generator,
) -> np.ndarray:
    """Return log delta of sampled databases, shape (databases, epsilons)."""
    return np.stack(
        [
            smoothed.sgd_profile(
                sample_database(setting.members, counts, rng),
                drawn,
                config.epsilons,
                lowest=setting.lowest,
                highest=setting.highest,
            ).log_delta
            for _ in range(config.databases)
        ]
    )


def _average(
    config: Config,
    setting: Gradients,
    drawn: int,
    counts: tuple[int, ...],
    tried: int,
    log_deltas: np.ndarray,
) -> list[dict[str, Cell]]:
    """Return the average at each epsilon, with a band in logarithms.

    The band is mean exp(+- t s / (mean sqrt(K))), Student's t at level (1 - confidence) / (number
    of compositions), so that it holds for all compositions of one n at once.
    """
    from scipy import stats

    count = config.databases
    level = (1.0 - config.confidence) / tried
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
                "from_first": counts[0],
                "pure": max(counts) == drawn**2,
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
        ends = [row["log10_upper"] for row in part if row["pure"]]
        found.append(
            {
                "setting": label,
                "records": n,
                "drawn": drawn,
                "epsilon": epsilon,
                "from_first": best["from_first"],
                "pure": best["pure"],
                "inside": bool(ends) and all(best["log10_lower"] > upper for upper in ends),
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
    from scipy import stats

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
    ends = sum(row["pure"] for row in largest)
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


FIGURE_2 = ("gaussian:0,0.12 gaussian:0.2,0.12",)
FIGURE_5 = (
    "gaussian:0,0.15 gaussian:0.2,0.15",
    "gaussian:0,0.1 gaussian:0.2,0.1",
    "gaussian:0,0.12 laplace:0,0.12",
    "laplace:0,0.12 laplace:0.2,0.12",
)


def plot(outcome: Outcome) -> Figure:
    """Draw delta against n for each setting: averages, bands, fits and DP's delta."""
    table, fits = outcome.tables["smoothed"], outcome.tables["fits"]
    labels = list(dict.fromkeys(table.column("setting")))
    figure, panels = drawing.panels(
        len(labels),
        across=r"records $n$, batches of $\sqrt{n}$",
        up=r"$\log_{10}$ of smoothed $\delta$",
        height=0.55 if len(labels) == 1 else 0.7,
    )
    for axes, label in zip(panels, labels, strict=True):
        part = table.select(setting=label)
        _draw(axes, part, fits.select(setting=label, variable="records"))
        axes.margins(y=0.1)
        axes.locator_params(axis="y", steps=[1, 2, 5, 10])
        axes.set_title(label)
    drawing.finish(figure, panels)
    return figure


def _draw(axes: Axes, table: Table, fits: Table) -> None:
    for epsilon, look in drawing.curves(table.column("epsilon")).items():
        part = table.select(epsilon=epsilon)
        n = np.array(part.column("records"))
        axes.plot(
            n,
            part.column("log10_delta"),
            linestyle="-",
            label=rf"$\varepsilon = {epsilon:g}$",
            **look,
        )
        lower, upper = part.column("log10_lower"), part.column("log10_upper")
        axes.fill_between(n, lower, upper, color=look["color"], alpha=0.2, linewidth=0)
        (fit,) = fits.select(epsilon=epsilon).records
        axes.plot(n, (fit["a"] + fit["b"] * n) / _LN10, ":", color=look["color"])
    first = table.select(epsilon=table.column("epsilon")[0])
    n = np.array(first.column("records"))
    axes.plot(n, -np.log10(n), label="$1/n$, the target", **drawing.beside("limit"))
    axes.plot(
        n,
        np.log10(first.column("dp_delta")),
        label=r"$\delta$ of DP, $T/n$",
        **drawing.beside("baseline"),
    )


_QUICK_2 = Config(FIGURE_2, databases=10)
_QUICK_5 = Config(FIGURE_5, batches=(4, 6, 8, 10, 12), databases=5)
_FULL = {"batches": (5, 7, 9, 11, 13, 15, 17, 20, 22), "shares": (0.0, 0.25, 0.5, 0.75, 1.0)}

for _name, _item, _quick, _databases in (
    ("smoothed-figure-2-right", "Figure 2 (right)", _QUICK_2, 40),
    ("smoothed-figure-5", "Figure 5", _QUICK_5, 20),
):
    experiment(
        _name,
        PAPER,
        _item,
        "Smoothed delta of one SGD step with 8-bit gradients against n, batches of "
        "sqrt(n). delta of each database is exact, over all neighbours; its expectation is an "
        "average over sampled databases, with a 99 % band, for a grid of compositions that "
        "includes both ends. No delta is above T / n, and neither is the band. Dotted: "
        "exponential fits in n. Dashed: DP, T / n at every epsilon. sigma of a Laplace "
        "distribution is read as its standard deviation.",
        published=PUBLISHED,
        config=replace(_quick, databases=_databases, **_FULL),
        quick=_quick,
        effort=("databases", "confidence", "seed"),
        mathematics=(
            r"\delta_{SDP}(\varepsilon) = \max_{n_1 + n_2 = n} E_{x \sim \pi_1^{n_1} \pi_2^{n_2}} "
            r"[\delta(x)], \qquad M(x) = \left\lfloor \frac{1}{T} \sum_{i \in B} x_i "
            r"+ \frac{1}{2} \right\rfloor, \qquad |B| = T = \sqrt{n}",
            r"\sum_s c_s y^s = [z^T] \prod_{i=1}^n (1 + z y^{x_i}), \qquad "
            r"\Pr\left[\sum_{i \in B} x_i = s\right] = c_s \binom{n}{T}^{-1}",
        ),
    )(run).figure(plot)
