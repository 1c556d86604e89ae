"""The samplers that Reveal-or-Obscure is compared with: SubRR, and Laplace noise with projection.

Cheu and Nayak, "Differentially private multi-sampling from distributions" (ALT 2025);
Raskhodnikova, Sivakumar, Smith, Swanberg, "Differentially private sampling from distributions"
(NeurIPS 2021).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import roo
from dpopt.prob.histograms import histograms
from dpopt.roo.minimum import RevealOrObscure, round_up
from dpopt.shape import Design, made
from experiments import drawing


def subrr(records: int, categories: int, epsilon: float) -> Design:
    """Return the sampler of Cheu and Nayak: k-ary randomised response on a random record.

    Randomised response of privacy e_0 keeps the category, or with probability
    q = k / (e^{e_0} + k - 1) replaces it with a uniform one: K(y | counts) = q/k + (1 - q) c_y / n,
    so it is ROO with another q, and the same proof applies. Drawing one of n records amplifies e_0
    to epsilon = log(1 + (e^{e_0} - 1) / n); solved for e_0 that is ROO itself. Here e_0 is that of
    their bound on the sample size, (k - 1)(1 - alpha) / (alpha epsilon): e^{e_0} = n epsilon, with
    privacy cost log(1 + epsilon - 1/n). If n epsilon < 1, e^{e_0} = 1 and the category is uniform.
    """
    setting = RevealOrObscure(records, categories, epsilon, "roo")
    n, k = setting.records, setting.categories
    response = max(Fraction(1), n * Fraction(setting.epsilon))
    return made(setting, (round_up(k / (response + k - 1)),), float_bound=None)


def noisy_pmfs(
    setting: roo.RooSetting, counts: npt.ArrayLike, rng: np.random.Generator, draws: int = 1
) -> npt.NDArray[np.float64]:
    """Return noisy empirical pmfs projected to the simplex: NOT private; shape (draws, k).

    A category sampled from one is epsilon-DP on paper, since one record changes the empirical
    distribution by 2 / n in the 1-norm and the noise has the scale 2 / (n epsilon). But noise in
    floating point has gaps that depend on what it is added to (Mironov 2012).

    Their mean estimates the distribution of the released category, with a standard error of at most
    1 / (2 sqrt(draws)) for each.
    """
    pmf = setting.fitting(counts) / setting.records
    scale = 2.0 / (setting.records * setting.epsilon)
    return project_to_simplex(pmf + rng.laplace(scale=scale, size=(draws, pmf.size)))


def project_to_simplex(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest probability vector to each point, in the 2-norm, shape (..., k).

    It is max(0, v - t), t the mean excess of the largest j entries over 1 / j, with the largest j
    whose entries all stay above t. It is also a nearest point in the 1-norm,
    which the paper uses; that one is not unique.
    """
    falling = -np.sort(-v, axis=-1)
    ranks = np.arange(1, v.shape[-1] + 1)
    means = (np.cumsum(falling, axis=-1) - 1.0) / ranks
    last = np.count_nonzero(falling > means, axis=-1, keepdims=True) - 1
    return np.maximum(v - np.take_along_axis(means, last, axis=-1), 0.0)


def rule_sampler(n: int, k: int, epsilon: float, rule: Any = "exact") -> Design:  # noqa: ANN401
    """Return the sampler of a rule in the smallest count."""
    return dpopt.design(RevealOrObscure(n, k, epsilon, rule))


VIOLATES = 1.0 + 1e-9
"""An excess factor above this is the rule's own; rounding q_m to 2^-62 stays far below."""


RULES = {
    "conference": ("conference's recursion", drawing.line("baseline")),
    "journal": ("journal's recursion", drawing.line("paper")),
    "journal-repaired": (
        "journal's, repaired",
        drawing.line("variant", markersize=5.5, markerfacecolor="white"),
    ),
    "exact": ("exact rule", drawing.line("optimum", linestyle="--")),
    "roo": ("ROO", drawing.line("baseline-2")),
}
"""Label and look of each rule, in the order in which they are drawn."""


def violates(sampler: Design) -> bool:
    """Return whether a rule exceeds e^epsilon by more than the rounding of its weights."""
    return sampler.audit.excess_factor > VIOLATES


def data_sets(sampler: Design) -> str:
    """Return the audit's neighbours in words: counts, or runs of counts for many categories."""
    witness = sampler.audit.witness
    if sampler.setting.categories <= 12:
        return f"{witness.counts} to {witness.neighbour}"
    sides = (
        ", ".join(f"{categories} x {count}" for count, categories in runs)
        for runs in (witness.runs, witness.neighbour_runs)
    )
    return " to ".join(sides)


def two_level(categories: int, least: float, low: int) -> np.ndarray:
    """Return P with ``low`` categories at the least probability, the others equal."""
    rest = (1 - low * least) / (categories - low)
    return np.concatenate([np.full(low, least), np.full(categories - low, rest)])


def smooth_floor(n: int, k: int, epsilon: float) -> Design | None:
    """Return the smooth floor, or None where epsilon is too small for so few records."""
    return dpopt.design(dpopt.SmoothFloor(n, k, epsilon)) if epsilon > math.log1p(1 / n) else None


@dataclass(frozen=True)
class DataSets:
    """All sorted counts, and the weight of each under the uniform distribution over counts."""

    counts: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, n: int, k: int) -> DataSets:
        """List them; P uniform on the simplex makes all counts alike likely."""
        every = Counter(tuple(sorted(row, reverse=True)) for row in histograms(n, k).tolist())
        rows = sorted(every, reverse=True)
        orders = np.array([every[row] for row in rows])
        return cls(np.array(rows), orders / math.comb(n + k - 1, k - 1))


def distances(sampler: Design, data: DataSets) -> np.ndarray:
    """Return the total variation of K(x) from the empirical distribution, for each data set."""
    pmfs = np.array([sampler.output_distribution(row) for row in data.counts])
    return np.abs(pmfs - data.counts / data.counts[0].sum()).sum(axis=1) / 2


def estimated_distances(
    setting: roo.RooSetting, data: DataSets, rng: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return an estimate of the distance on each data set, and its standard error."""
    means, errors = np.empty((2, len(data.counts)))
    for place, row in enumerate(data.counts):
        gaps = noisy_pmfs(setting, row, rng, draws) - row / row.sum()
        each = gaps @ np.sign(gaps.mean(axis=0)) / 2
        means[place], errors[place] = each.mean(), each.std(ddof=1) / math.sqrt(draws)
    return means, errors
