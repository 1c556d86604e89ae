"""From votes to labels: each way of aggregating, its exact accuracy, and draws from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import NotPrivateError, majority
from dpopt.majority.voters import signed
from experiments.majority.noisy_max import calibrate_gnmax, label_probabilities
from experiments.majority.pate.votes import Bits, Run, Votes
from experiments.majority.voters import PAPER_PRIOR

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

METHODS = {
    "gnmax": "GNMax on plain teachers, noise by the Renyi bound as in the paper",
    "gnmax-label": "GNMax on plain teachers, the least noise with which the label is private",
    "subsampling": "DaRRM on private teachers, gamma_Sub",
    "surrogate": "DaRRM on private teachers, the paper's objective",
    "mean": "DaRRM on private teachers, expected error for independent p_i ~ U[0, 1]",
    "common-p": "DaRRM on private teachers, expected error for one p ~ U[0, 1] of all voters",
    "best-for-votes": "DaRRM on private teachers, designed on these votes and labels: not private",
    "private-majority": "majority of the private teachers without noise",
    "plain-majority": "majority of the plain teachers without noise: not private",
}
"""The ways of aggregating, by name."""


@dataclass(frozen=True)
class Aggregator:
    """A way of turning K votes into one label.

    Attributes:
        method: one of `METHODS`.
        private_teachers: whether it reads the votes of the private teachers.
        chances: Pr[label 1 | l ones among the votes], l = 0..K, shape (K + 1,).
        simulate: labels of votes of shape (queries, K), from a seeded generator.
        sigma: of GNMax's noise; None for the others.
        slack: of DaRRM's exact proof, at least 0; None for the others.
    """

    method: str
    private_teachers: bool
    chances: Floats
    simulate: Callable[[Bits, np.random.Generator], Labels]
    sigma: float | None = None
    slack: float | None = None

    def votes(self, run: Run) -> Bits:
        """Return the votes that it reads, shape (K, images)."""
        return run.private if self.private_teachers else run.plain

    def correct(self, run: Run, labels: Bits) -> Floats:
        """Return the probability that each image's label comes out right, shape (images,)."""
        ones = self.votes(run).sum(axis=0, dtype=np.int64)
        return np.where(labels == 1, self.chances[ones], 1.0 - self.chances[ones])


def aggregators(votes: Votes, allowance: int) -> tuple[Aggregator, ...]:
    """Return every aggregator for the target (m epsilon, m Delta) of one label."""
    k, epsilon, shift = votes.teachers, votes.stated_epsilon, votes.delta
    delta = allowance * shift
    setting = dpopt.Majority(k, epsilon, allowance, shift, delta)
    # At m = 1 subsampling uses the whole budget, so rounding its gamma could break the proof.
    sampled = majority.assess(setting, majority.subsampling(k, allowance), repair=True)
    return (
        _gnmax("gnmax", k, calibrate_gnmax(setting.guarantee).sigma),
        _gnmax("gnmax-label", k, calibrate_gnmax(setting.guarantee, "label", voters=k).sigma),
        _darrm("subsampling", sampled),
        _darrm("surrogate", dpopt.design(replace(setting, objective="surrogate"))),
        _darrm("mean", dpopt.design(replace(setting, prior=PAPER_PRIOR))),
        _darrm("common-p", dpopt.design(replace(setting, prior="common-uniform:0,1"))),
        _darrm("best-for-votes", dpopt.design(replace(setting, coefficients=_weights_of(votes)))),
        _whole("private-majority", k),
        _whole("plain-majority", k),
    )


def _weights_of(votes: Votes) -> Floats:
    """Return, for l agreeing teachers, the share of images where they are right minus wrong."""
    k = votes.teachers
    balance = np.zeros(k + 1)
    for run in votes.runs:
        ones = run.private.sum(axis=0, dtype=np.int64)
        right = (2 * ones > k) == votes.labels
        np.add.at(balance, np.maximum(ones, k - ones), np.where(right, 1.0, -1.0))
    return balance[(k + 1) // 2 :] / (len(votes.runs) * len(votes.labels))


def draw_accuracies(
    aggregator: Aggregator,
    run: Run,
    labels: Bits,
    chosen: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> Floats:
    """Return the accuracy of each draw of queries.

    Returns:
        Shape (draws,).
    """
    flat = chosen.ravel()
    outputs = aggregator.simulate(aggregator.votes(run)[:, flat].T, rng)
    return (outputs == labels[flat]).reshape(chosen.shape).mean(axis=1)


def draw_spread(correct: Floats, queries: int) -> float:
    """Return the standard deviation of the accuracy on Q images drawn without replacement.

    sqrt(mean(a (1 - a)) / Q + var(a) / Q (N - Q) / (N - 1)), a the probabilities of a right label.
    """
    images = correct.size
    noise = float(np.mean(correct * (1.0 - correct)))
    choice = float(np.var(correct)) * (images - queries) / (images - 1)
    return float(np.sqrt((noise + choice) / queries))


def _gnmax(method: str, teachers: int, sigma: float) -> Aggregator:
    def simulate(votes: Bits, rng: np.random.Generator) -> Labels:
        ones = votes.sum(axis=1, dtype=np.int64)
        counts = np.stack([teachers - ones, ones], axis=-1)
        return np.argmax(counts + sigma * rng.standard_normal(counts.shape), axis=-1)

    return Aggregator(method, False, label_probabilities(teachers, sigma), simulate, sigma=sigma)


def _darrm(method: str, design: dpopt.Design) -> Aggregator:
    if design.certificate is None:
        raise NotPrivateError(f"no proof for {method} at {design.setting.allowance}.")

    def simulate(votes: Bits, rng: np.random.Generator) -> Labels:
        return np.asarray(design.simulate(votes, rng))

    slack = float(design.certificate.slack)
    return Aggregator(method, True, 0.5 + 0.5 * signed(design.gamma), simulate, slack=slack)


def _whole(method: str, teachers: int) -> Aggregator:
    ones = np.arange(teachers + 1)

    def simulate(votes: Bits, rng: np.random.Generator) -> Labels:
        del rng
        return (2 * votes.sum(axis=1, dtype=np.int64) > teachers).astype(np.int64)

    chances = (2 * ones > teachers).astype(float)
    return Aggregator(method, method == "private-majority", chances, simulate)
