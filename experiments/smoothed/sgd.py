"""Figures 2 (right) and 5: smoothed delta of one step of SGD with 8-bit gradients, without noise.

Exact on each database, averaged over sampled databases.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le, MinLen
from matplotlib.figure import Figure

from dpopt import smoothed
from experiments import drawing
from experiments.parameters import Count, Seed, Several, Some, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.smoothed.gradients import Gradients, QuantisedGradient, gradients
from experiments.verdicts import not_comparable

_LN10 = math.log(10.0)


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


def run(sets: tuple[Gradients, ...], config: Config) -> Outcome:
    """Average delta over databases of each composition, and take the largest average."""
    averages, largest = [], []
    for (place, setting), drawn in track(list(product(enumerate(sets), config.batches))):
        grid = list(dict.fromkeys(round(share * drawn**2) for share in config.shares))
        rows = []
        for first in grid:
            counts = (first, drawn**2 - first)
            rng = np.random.default_rng([config.seed, place, drawn, first])
            logs = [
                smoothed.sgd_profile(setting.sample(counts, rng), drawn, config.epsilons).log_delta
                for _ in range(config.databases)
            ]
            rows += [
                {
                    "setting": setting.label,
                    "records": drawn**2,
                    "drawn": drawn,
                    "epsilon": epsilon,
                    "from_first": first,
                    "pure": max(counts) == drawn**2,
                }
                | _average(of_epsilon, len(grid))
                for epsilon, of_epsilon in zip(config.epsilons, np.transpose(logs), strict=True)
            ]
        averages += rows
        for epsilon in config.epsilons:
            group = [row for row in rows if row["epsilon"] == epsilon]
            best = max(group, key=lambda row: row["log10_delta"])
            # No delta is above T / n, the chance that the one record is drawn; nor is the band.
            upper = min(max(row["log10_upper"] for row in group), math.log10(1 / drawn))
            lower = max(row["log10_lower"] for row in group)
            ends = {"log10_lower": lower, "log10_upper": upper, "dp_delta": 1 / drawn}
            largest.append(best | ends)
    fits = _fits(largest)
    tables = {
        "smoothed": Table.of(largest),
        "fits": Table.of(fits),
        "compositions": Table.of(averages),
    }
    return Outcome(
        tables,
        (_comparison(config, fits),),
        data="gradients sampled from the distributions",
        generated=True,
    )


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


def _fits(largest: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return least-squares lines of log delta in n, as in the paper's figure, and in T."""
    from scipy import stats

    fits = []
    for setting, epsilon in dict.fromkeys((row["setting"], row["epsilon"]) for row in largest):
        curve = [row for row in largest if (row["setting"], row["epsilon"]) == (setting, epsilon)]
        logs = np.array([row["log10_delta"] for row in curve]) * _LN10
        for variable in ("records", "drawn"):
            line = stats.linregress([float(row[variable]) for row in curve], logs)
            fit = {"a": line.intercept, "b": line.slope, "r_squared": line.rvalue**2}
            of_fit = {"setting": setting, "epsilon": epsilon, "variable": variable}
            fits.append(of_fit | {name: float(value) for name, value in fit.items()})
    return fits


def _comparison(config: Config, fits: list[dict[str, Any]]) -> Comparison:
    """Compare the paper's statement on how delta falls with the two fits."""
    in_n, in_t = (
        np.array([fit["r_squared"] for fit in fits if fit["variable"] == variable])
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
    labels = table.distinct("setting")
    figure, panels = drawing.panels(
        len(labels),
        across=r"records $n$, batches of $\sqrt{n}$",
        up=r"$\log_{10}$ of smoothed $\delta$",
        height=0.55 if len(labels) == 1 else 0.7,
    )
    for axes, label in zip(panels, labels, strict=True):
        of_label = table.select(setting=label)
        curve = of_label.select(epsilon=of_label.column("epsilon")[0])
        n = np.array(curve.column("records"))
        for epsilon, look in drawing.curves(of_label.column("epsilon")).items():
            curve = of_label.select(epsilon=epsilon)
            axes.plot(
                n, curve.column("log10_delta"), "-", label=rf"$\varepsilon = {epsilon:g}$", **look
            )
            band = curve.column("log10_lower"), curve.column("log10_upper")
            axes.fill_between(n, *band, color=look["color"], alpha=0.2, linewidth=0)
            (fit,) = fits.select(setting=label, epsilon=epsilon).records
            axes.plot(n, (fit["a"] + fit["b"] * n) / _LN10, ":", color=look["color"])
        axes.plot(n, -np.log10(n), label="$1/n$, the target", **drawing.beside("limit"))
        of_dp = np.log10(curve.column("dp_delta"))
        axes.plot(n, of_dp, label=r"$\delta$ of DP, $T/n$", **drawing.beside("baseline"))
        axes.margins(y=0.1)
        axes.locator_params(axis="y", steps=[1, 2, 5, 10])
        axes.set_title(label)
    return drawing.finish(figure, panels)


_normal, _laplace = QuantisedGradient, partial(QuantisedGradient, family="laplace")
_FIGURE_2 = gradients((_normal(0, 0.12), _normal(0.2, 0.12)))
_FIGURE_5 = gradients(
    (_normal(0, 0.15), _normal(0.2, 0.15)),
    (_normal(0, 0.1), _normal(0.2, 0.1)),
    (_normal(0, 0.12), _laplace(0, 0.12)),
    (_laplace(0, 0.12), _laplace(0.2, 0.12)),
)
_QUICK_2 = Config(databases=10)
_QUICK_5 = Config(batches=(4, 6, 8, 10, 12), databases=5)
_FULL = {"batches": (5, 7, 9, 11, 13, 15, 17, 20, 22), "shares": (0.0, 0.25, 0.5, 0.75, 1.0)}

for _name, _sets, _quick, _databases in (
    ("smoothed-figure-2-right", _FIGURE_2, _QUICK_2, 40),
    ("smoothed-figure-5", _FIGURE_5, _QUICK_5, 20),
):
    experiment(
        _name,
        config=replace(_quick, databases=_databases, **_FULL),
        quick=_quick,
        effort=("databases", "seed"),
    )(partial(run, _sets)).figure(plot)
