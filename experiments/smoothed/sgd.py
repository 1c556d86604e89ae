"""Figures 2 (right) and 5: smoothed delta of one step of SGD with 8-bit gradients, without noise.

Exact on each database, averaged over sampled databases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le, MinLen
from matplotlib.figure import Figure

from dpopt import smoothed
from experiments import drawing
from experiments.arrays import Ints, fitted_line
from experiments.parameters import Count, Seed, Several, Some, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.smoothed.elections import draw_targets
from experiments.smoothed.gradients import QuantisedGradient
from experiments.verdicts import not_comparable

_LN10 = math.log(10.0)
# The distributions of one gradient, Pi.
_Set = tuple[QuantisedGradient, QuantisedGradient]
# Of a band, over all compositions of one n at once.
_CONFIDENCE = 0.99


@configuration
class Config:
    """Sizes and epsilon, and the number of databases that estimate the expectation.

    Attributes:
        batches: T, at least two; the database has n = T^2 records, as in the paper.
        epsilons: in nats; the paper's text does not print those of its figures.
        shares: fractions of the n records from the first distribution of a set, the others being
            from the second; with 0 and 1 all records are from one.
        databases: at least 2, sampled for each composition and n.
        seed: of numpy's generator.
    """

    batches: Annotated[Several[Count], MinLen(2)] = (6, 8, 10, 12, 15)
    epsilons: Some[Annotated[float, Ge(0.0)]] = (0.5, 1.0, 2.0, 7.0)
    shares: Some[Annotated[float, Ge(0.0), Le(1.0)]] = (0.0, 0.5, 1.0)
    databases: Annotated[int, Ge(2)] = 12
    seed: Seed = 1


def run(sets: Mapping[str, _Set], config: Config) -> Outcome:
    """Average delta over databases of each composition, and take the largest average."""
    averages: list[dict[str, Any]] = []
    largest: list[dict[str, Any]] = []
    for (place, label), drawn in track(list(product(enumerate(sets), config.batches))):
        grid = list(dict.fromkeys(round(share * drawn**2) for share in config.shares))
        rows: list[dict[str, Any]] = []
        for first in grid:
            rng = np.random.default_rng([config.seed, place, drawn, first])
            logs = [
                smoothed.sgd_profile(
                    database(sets[label], first, drawn**2, rng), drawn, config.epsilons
                ).log_delta
                for _ in range(config.databases)
            ]
            case = {"setting": label, "records": drawn**2, "drawn": drawn}
            rows += [
                case
                | {"epsilon": epsilon, "from_first": first, "pure": first in (0, drawn**2)}
                | _average(of_epsilon, len(grid))
                for epsilon, of_epsilon in zip(config.epsilons, np.transpose(logs), strict=True)
            ]
        averages += rows
        largest += [
            _largest([row for row in rows if row["epsilon"] == epsilon])
            for epsilon in config.epsilons
        ]
    table = Table.of(largest)
    # Lines of log delta in n, as in the paper's figure, and in T.
    fits = Table.of(
        [
            {"setting": label, "epsilon": epsilon, "variable": variable}
            | fitted_line(curve.column(variable), np.array(curve.column("log10_delta")) * _LN10)
            for label, epsilon in table.distinct("setting", "epsilon")
            for curve in [table.select(setting=label, epsilon=epsilon)]
            for variable in ("records", "drawn")
        ]
    )
    tables = {"smoothed": table, "fits": fits, "compositions": Table.of(averages)}
    data = "gradients sampled from the distributions"
    return Outcome(tables, (_comparison(config, fits),), data=data, generated=True)


def database(members: _Set, first: int, records: int, rng: np.random.Generator) -> Ints:
    """Return x ~ pi with ``first`` records from the first member of a set, shape (n,)."""
    counted = zip(members, (first, records - first), strict=True)
    return np.concatenate([member.sample(count, rng) for member, count in counted])


def _largest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the composition of the largest average, with a band for the maximum over all."""
    best = max(rows, key=lambda row: row["log10_delta"])
    # No delta is above T / n, the chance that the one record is drawn; nor is the band.
    of_dp = 1 / best["drawn"]
    upper = min(max(row["log10_upper"] for row in rows), math.log10(of_dp))
    lower = max(row["log10_lower"] for row in rows)
    return best | {"log10_lower": lower, "log10_upper": upper, "dp_delta": of_dp}


def _average(logs: np.ndarray, compositions: int) -> dict[str, float]:
    """Return the average of exp(logs) over databases with a band, in decimal logarithms.

    The band is mean exp(+- t s / (mean sqrt(K))), Student's t at level (1 - confidence) / (number
    of compositions), so that it holds for all compositions of one n at once.
    """
    from scipy import stats

    level = (1.0 - _CONFIDENCE) / compositions
    scaled = np.exp(logs - logs.max())
    log_mean = float(logs.max() + math.log(scaled.mean()))
    relative = float(scaled.std(ddof=1) / scaled.mean())
    quantile = float(stats.t.ppf(1.0 - level / 2.0, logs.size - 1))
    width = quantile * relative / math.sqrt(logs.size)
    return {
        "log10_delta": log_mean / _LN10,
        "log10_lower": (log_mean - width) / _LN10,
        "log10_upper": (log_mean + width) / _LN10,
        "share_of_largest": float(scaled.max() / scaled.sum()),
    }


def _comparison(config: Config, fits: Table) -> Comparison:
    """Compare the paper's statement on how delta falls with the two fits."""
    in_n, in_t = (
        np.array(fits.select(variable=variable).column("r_squared"))
        for variable in ("records", "drawn")
    )
    return not_comparable(
        "Section 6: the smoothed delta of SGD is exponentially small in n, with exponential fits.",
        f"Over n = {min(config.batches) ** 2} to {max(config.batches) ** 2}, log delta is closer "
        f"to a line in T = sqrt(n) than to one in n in {np.count_nonzero(in_t > in_n)} of "
        f"{in_n.size} curves: mean r squared {in_t.mean():.4f} against {in_n.mean():.4f}.",
        "delta of each database is exact; the average over databases is sampled, the fits are "
        "least squares (table fits)",
        why="we chose the databases and epsilons, and a few sizes do not separate the two fits",
        name="exponential in n, SGD",
    )


def plot(outcome: Outcome) -> Figure:
    """Draw delta against n for each setting: averages, bands, fits and DP's delta."""
    table, fits = outcome.tables["smoothed"], outcome.tables["fits"].select(variable="records")
    figure, panels = drawing.by_panel(
        table,
        ["setting"],
        "{setting}",
        across=r"records $n$, batches of $\sqrt{n}$",
        up=r"$\log_{10}$ of smoothed $\delta$",
        height=0.7 if len(table.distinct("setting")) > 1 else 0.55,
    )
    for axes, of_setting in panels.items():
        for epsilon, look in drawing.curves(of_setting.column("epsilon")).items():
            curve = of_setting.select(epsilon=epsilon)
            (fit,) = fits.select(setting=curve.column("setting")[0], epsilon=epsilon).records
            n, mean = np.array(curve.column("records")), curve.column("log10_delta")
            axes.plot(n, mean, "-", label=rf"$\varepsilon = {epsilon:g}$", **look)
            band = curve.column("log10_lower"), curve.column("log10_upper")
            axes.fill_between(n, *band, color=look["color"], alpha=0.2, linewidth=0)
            axes.plot(n, (fit["a"] + fit["b"] * n) / _LN10, ":", color=look["color"])
            if epsilon == of_setting.column("epsilon")[-1]:
                draw_targets(axes, n, n, np.log10(curve.column("dp_delta")))
    return drawing.finish(figure, [*panels])


_normal, _laplace = QuantisedGradient, partial(QuantisedGradient, family="laplace")
_FIGURE_2 = {"N(0, .12²), N(.2, .12²)": (_normal(0, 0.12), _normal(0.2, 0.12))}
# Numbered as the paper numbers its settings.
_FIGURE_5 = {
    "1: N(0, .15²), N(.2, .15²)": (_normal(0, 0.15), _normal(0.2, 0.15)),
    "2: N(0, .1²), N(.2, .1²)": (_normal(0, 0.1), _normal(0.2, 0.1)),
    "3: N(0, .12²), L(0, .12²)": (_normal(0, 0.12), _laplace(0, 0.12)),
    "4: L(0, .12²), L(.2, .12²)": (_laplace(0, 0.12), _laplace(0.2, 0.12)),
}
_QUICK_5 = Config(batches=(4, 6, 8, 10, 12), databases=5)
_FULL = {"batches": (5, 7, 9, 11, 13, 15, 17, 20, 22), "shares": (0.0, 0.25, 0.5, 0.75, 1.0)}

for _name, _sets, _quick, _databases in (
    ("smoothed-figure-2-right", _FIGURE_2, Config(databases=10), 40),
    ("smoothed-figure-5", _FIGURE_5, _QUICK_5, 20),
):
    experiment(
        _name,
        config=replace(_quick, databases=_databases, **_FULL),
        quick=_quick,
        effort=("databases", "seed"),
    )(partial(run, _sets)).figure(plot)
