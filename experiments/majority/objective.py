"""Appendix C.2: the paper's sampled weights of its objective (algorithms 4 and 5), and their limit.

The integral of equation 202 over p_i in [1/2, 1] is taken by the rectangle rule at T random points
of a grid. By independence it has a closed form: the weights are those of Binomial(K, 3/4). What
algorithm 5 prints is followed line by line, with N of its last line read as T.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import comb, factorial
from typing import Annotated

import numpy as np
from annotated_types import Ge
from matplotlib.figure import Figure

import dpopt
from dpopt import majority
from dpopt.majority.voters import fold
from dpopt.prob import binomial_pmf, poisson_binomial_pmf
from experiments import drawing, style
from experiments.arrays import Floats
from experiments.majority.voters import settings_within
from experiments.parameters import Count, Seed, Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import judged, observed, proved

# Probabilities held at once while sampling: of a block of draws for all voters.
_BLOCK = 200_000
_ALIKE = 0.1
STABLER = (
    "agrees if algorithm 4's relative standard error is, in the median of the weights, more than "
    f"{1 + _ALIKE:g} times algorithm 5's"
)


@configuration
class Config:
    """Parameters of the sampled objective.

    Attributes:
        voters: each K, odd.
        allowance: each m, at least 1; an m above K is skipped.
        epsilon: of each voter, in nats.
        voter_delta: Delta of each voter; delta is m Delta.
        points: tau, of the grid on [1/2, 1), at least 1.
        draws: T, of the probabilities of all voters.
        repeats: runs of the algorithm, each with another seed; at least 2.
        seed: of the first run; the others follow it.
    """

    voters: Some[int] = (5, 11, 35)
    allowance: Some[float] = (1.0, 3.0)
    epsilon: float = 0.1
    voter_delta: float = 0.0
    points: Count = 50
    draws: Count = 10_000
    repeats: Annotated[int, Ge(2)] = 5
    seed: Seed = 1


@experiment(
    "majority-objective",
    config=Config(voters=(5, 11, 21, 35, 51), allowance=(1.0, 3.0, 5.0), repeats=20),
    quick=Config(),
    effort=("repeats", "seed"),
)
def run(config: Config) -> Outcome:
    """Sample the weights, and solve the program with each."""
    weights: list[dict[str, Cell]] = []
    scales: list[dict[str, Cell]] = []
    losses: list[dict[str, Cell]] = []
    for k in track(config.voters):
        # One generator for each run and K: the weights do not depend on the other settings.
        seeds = range(config.seed, config.seed + config.repeats)
        rngs = [np.random.default_rng([seed, k]) for seed in seeds]
        # Axes: run, algorithm (5, 4), mean or standard error, l.
        sampled = np.array(
            [
                [sampled_weights(k, config.draws, rng, points) for points in (config.points, None)]
                for rng in rngs
            ]
        )
        five = sampled[:, 0, 0]
        exact, limit = majority.surrogate_weights(k).values, grid_limit(k, config.points)
        weights += _weight_records(k, exact, limit, sampled)
        factor = float(printed_factor(k, config.points))
        returned = factor * five.sum(axis=1) / exact.sum()
        scales.append(
            {"K": k, "points": config.points, "factor": factor}
            | {"returned_over_integral": float(returned.mean())}
            | {"spread": float(returned.std(ddof=1))}
            | {"limit": factor * float(limit.sum() / exact.sum())}
        )
        for setting in settings_within(k, config.epsilon, config.allowance, config.voter_delta):
            losses += _loss_records(setting, exact, dict(zip(seeds, five, strict=True)))
    tables = {"weights": Table.of(weights), "scale": Table.of(scales), "losses": Table.of(losses)}
    return Outcome(tables, tuple(_comparisons(tables)))


def sampled_weights(
    voters: int, draws: int, rng: np.random.Generator, points: int | None = None
) -> Floats:
    """Return mean and standard error of (alpha_l - alpha_{K-l}) / 2, shape (2, (K + 1) / 2).

    For l > K / 2 and p_i from points of the grid: algorithm 5, lines 5 to 10, without the factor w
    of line 9. Without points p_i ~ U[1/2, 1]: algorithm 4.
    """
    sums, size = np.zeros((2, (voters + 1) // 2)), max(1, _BLOCK // voters)
    for start in range(0, draws, size):
        shape = (min(size, draws - start), voters)
        if points is None:
            p = rng.uniform(0.5, 1.0, shape)
        else:
            p = 0.5 + 0.5 / points * rng.integers(0, points, shape)
        margins = 0.5 * fold(poisson_binomial_pmf(p))
        sums += [margins.sum(axis=0), np.square(margins).sum(axis=0)]
    mean, square = sums / draws
    return np.stack([mean, np.sqrt(np.maximum(0.0, square - mean**2) / draws)])


def grid_limit(voters: int, points: int) -> Floats:
    """Return what `sampled_weights` tends to: the weights of Binomial(K, mean of the grid)."""
    return 0.5 * fold(binomial_pmf(voters, 0.75 - 0.25 / points))


def printed_factor(voters: int, points: int) -> Fraction:
    """Return P w 2^K, w = theta^K K! and P = C(tau + K - 1, K): the product of 1 + i / tau.

    Algorithm 5 multiplies a mean over the grid by P w; the rectangle rule has 2^-K.
    """
    theta = Fraction(1, 2 * points)
    weight = theta**voters * factorial(voters)
    return comb(points + voters - 1, voters) * weight * 2**voters


def _weight_records(
    k: int, exact: Floats, limit: Floats, sampled: Floats
) -> Iterator[dict[str, Cell]]:
    five, four = sampled.mean(axis=0)
    for place, value in enumerate(exact.tolist()):
        yield {
            "K": k,
            "l": (k + 1) // 2 + place,
            "exact": value,
            "grid_limit": float(limit[place]),
            "algorithm_5": float(five[0, place]),
            "error_5": float(five[1, place]),
            "algorithm_4": float(four[0, place]),
            "error_4": float(four[1, place]),
            "grid_error": float(limit[place] / value - 1.0),
            "largest_error_5": float(np.abs(sampled[:, 0, 0, place] / value - 1.0).max()),
        }


def _loss_records(
    setting: dpopt.Majority, exact: Floats, sampled: Mapping[int, Floats]
) -> Iterator[dict[str, Cell]]:
    best = _designed(setting, exact)
    optimum = float(exact @ best)
    for seed, weights in sampled.items():
        gamma = _designed(setting, weights)
        value = float(exact @ gamma)
        yield (
            {"K": setting.voters, "m": setting.allowance, "seed": seed, "optimum": optimum}
            | {"objective": value, "loss": (optimum - value) / optimum}
            | {"gamma_difference": float(np.abs(gamma - best).max())}
        )


def _designed(setting: dpopt.Majority, weights: Floats) -> Floats:
    """Return the upper half of the gamma designed with some weights, proved private."""
    # A weight sampled below zero asks for no noise level: the designer takes none below it.
    design = proved(dpopt.design(replace(setting, coefficients=weights)))
    return np.asarray(design.gamma[setting.middle :])


def _comparisons(tables: Mapping[str, Table]) -> Iterator[Comparison]:
    scales, weights, losses = (tables[name].records for name in ("scale", "weights", "losses"))
    yield judged(
        "Algorithm 5 returns an approximation of the integral of equation 202.",
        scales,
        lambda row: row["factor"] == 1.0,
        "the factor in fractions; N of its last line read as T",
        show=("K", "factor"),
        worst=lambda row: row["factor"],
        said="The integral is multiplied by the factor P w 2^K = prod (1 + i / tau). A sample has "
        "K! orders only if its values differ, and points of the grid were drawn, not multisets. "
        "The factor is common to all l, so that the optimum stays.",
        reading="a sum over the P multisets of the grid's points, each with the weight printed",
        name="algorithm 5, scale",
    )
    yield judged(
        "Approximating the objective does not affect the privacy guarantee (appendix C.2).",
        losses,
        # One without a proof would have been refused.
        lambda _: True,
        "exact integers over the reduced corner set",
        show=("loss",),
        worst=lambda row: row["loss"],
        said="The loss is relative to the optimum.",
        name="algorithm 5, privacy",
    )
    ratios = [
        (row["error_4"] / row["algorithm_4"]) / (row["error_5"] / row["algorithm_5"])
        for row in weights
        if row["error_5"] > 0.0 and row["algorithm_4"] and row["algorithm_5"]
    ]
    if ratios:
        middle = float(np.median(ratios))
        yield observed(
            "Algorithm 4 is less stable numerically than algorithm 5 (appendix C.2.1).",
            f"With p_i ~ U[1/2, 1] in algorithm 4 its relative standard error is {middle:.2f} "
            f"times that of algorithm 5 in the median of {len(ratios)} weights.",
            "standard errors from the draws of seeded runs of both",
            alike=middle > 1.0 + _ALIKE,
            rule=STABLER,
            name="algorithm 4, stability",
        )


# Losses below the precision of a solution are drawn here.
_LEAST = 1e-12


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw weights and their errors against l / K, and what the optimum loses."""
    weights, losses = outcome.tables["weights"], outcome.tables["losses"]
    sizes = weights.distinct("K")
    colours = dict(zip(sizes, style.series(len(sizes)), strict=True))
    figure, (values, errors, lost) = drawing.panels(3, 3, height=1.1)
    for k in sizes:
        part, color = weights.select(K=k), colours[k]
        share = [number / k for number in part.column("l")]
        values.plot(share, part.column("exact"), color=color, label=f"$K = {k}$")
        values.plot(share, part.column("algorithm_5"), "o", color=color, mfc="none")
        errors.plot(share, part.column("largest_error_5"), "o", color=color, mfc="none")
        errors.plot(share, np.abs(part.column("grid_error")), color=color)
    values.plot([], [], "o", color="black", mfc="none", label="algorithm 5, mean or worst run")
    values.plot([], [], "-", color="black", label="closed form")
    values.set(title="weights", ylabel=r"weight of $\gamma(l)$")
    errors.set(title="relative errors", ylabel="relative error")
    for axes in (values, errors):
        axes.set_xlabel("ones over voters $l / K$")
        axes.margins(0.08)
    cases = losses.distinct("K", "m")
    for place, (k, m) in enumerate(cases):
        shown = np.maximum(losses.select(K=k, m=m).column("loss"), _LEAST)
        lost.plot([place] * len(shown), shown, "o", color=colours[k], mfc="none")
    lost.set(
        yscale="log",
        xlim=(-0.5, len(cases) - 0.5),
        ylim=(_LEAST / 8.0, 8.0 * max(1e-2, *losses.column("loss"))),
        xlabel="allowance $m$",
        ylabel="relative loss",
        title=r"optimum, from $10^{-12}$ up",
    )
    lost.set_xticks(range(len(cases)), [f"{m:g}" for _, m in cases])
    return drawing.finish(figure, [values, errors, lost])
