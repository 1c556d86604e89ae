"""Smoothed delta of one step of quantised SGD: exact on each database, averaged over samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from dpopt import ParameterError, smoothed
from experiments.registry import Advance, Cell, Comparison, Outcome, Table
from experiments.verdicts import not_comparable

_LN10 = math.log(10.0)


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


def _rows(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


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
    largest = _rows(tables["smoothed"])
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
