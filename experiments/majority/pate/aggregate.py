"""From votes to labels: each way of aggregating, its exact accuracy, and draws from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np

import dpopt
from dpopt import NotPrivateError, ParameterError, majority
from dpopt.majority.voters import signed
from dpopt.privacy import Guarantee, general_composition
from experiments.arrays import Floats, Ints
from experiments.majority import baselines
from experiments.majority.noisy_max import calibrate_gnmax, label_probabilities, label_sigma
from experiments.majority.pate.published import allowed_difference, printed
from experiments.majority.pate.rates import KINDS, accuracies
from experiments.majority.pate.votes import Bits, Run, Votes
from experiments.majority.voters import PAPER_PRIOR
from experiments.registry import Cell, Table

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
    simulate: Callable[[Bits, np.random.Generator], Ints]
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
    sampled = majority.assess(setting, baselines.subsampling(k, allowance), repair=True)
    return (
        _gnmax("gnmax", k, calibrate_gnmax(setting.guarantee)[0]),
        _gnmax("gnmax-label", k, label_sigma(k, setting.guarantee)),
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
    chosen: Ints,
    rng: np.random.Generator,
) -> Floats:
    """Return the accuracy of each draw of queries."""
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
    def simulate(votes: Bits, rng: np.random.Generator) -> Ints:
        ones = votes.sum(axis=1, dtype=np.int64)
        counts = np.stack([teachers - ones, ones], axis=-1)
        return np.argmax(counts + sigma * rng.standard_normal(counts.shape), axis=-1)

    return Aggregator(method, False, label_probabilities(teachers, sigma), simulate, sigma=sigma)


def _darrm(method: str, design: dpopt.Design) -> Aggregator:
    if design.certificate is None:
        raise NotPrivateError(f"no proof for {method} at {design.setting.allowance}.")

    def simulate(votes: Bits, rng: np.random.Generator) -> Ints:
        return np.asarray(design.simulate(votes, rng))

    slack = float(design.certificate.slack)
    return Aggregator(method, True, 0.5 + 0.5 * signed(design.gamma), simulate, slack=slack)


def _whole(method: str, teachers: int) -> Aggregator:
    ones = np.arange(teachers + 1)

    def simulate(votes: Bits, rng: np.random.Generator) -> Ints:
        del rng
        return (2 * votes.sum(axis=1, dtype=np.int64) > teachers).astype(np.int64)

    chances = (2 * ones > teachers).astype(float)
    return Aggregator(method, method == "private-majority", chances, simulate)


_COMPOSITION_SLACK = 1e-4


def exact_record(votes: Votes, way: Aggregator, allowance: int) -> dict[str, Cell]:
    """Return the expected accuracy of one label, over all test images, for each training run."""
    means = [float(way.correct(run, votes.labels).mean()) for run in votes.runs]
    record: dict[str, Cell] = {
        "m": allowance,
        "method": way.method,
        "epsilon": allowance * votes.stated_epsilon,
        "delta": allowance * votes.delta,
        "sigma": way.sigma,
        "proof_slack": way.slack,
        "accuracy": fmean(means),
        "run_spread": stdev(means) if len(means) > 1 else None,
        "lowest": min(means),
        "highest": max(means),
    }
    return record | {f"seed_{run.seed}": m for run, m in zip(votes.runs, means, strict=True)}


def drawn_records(
    draws: int, seed: int, votes: Votes, ways: Sequence[Aggregator], allowance: int, queries: int
) -> list[dict[str, Cell]]:
    """Return one record for each aggregation method; all use the same images."""
    images = len(votes.labels)
    if queries > images:
        raise ParameterError(f"queries is {queries}; there are {images} test images.")
    rng = np.random.default_rng([seed, allowance, queries])
    chosen = np.array(
        [rng.choice(images, queries, replace=False) for _ in range(draws)], dtype=np.int64
    )
    records = []
    for way in ways:
        paper = printed(votes.dataset, allowance, queries, way.method)
        where: dict[str, Cell] = {"m": allowance, "Q": queries, "method": way.method}
        records.append(where | _over_runs(votes, way, chosen, rng, paper))
    return records


def _over_runs(
    votes: Votes,
    way: Aggregator,
    chosen: Ints,
    rng: np.random.Generator,
    paper: tuple[float, float] | None,
) -> dict[str, Cell]:
    """Return sampled and exact accuracy over all training runs, and the printed one."""
    correct = [way.correct(run, votes.labels) for run in votes.runs]
    exact = [float(right.mean()) for right in correct]
    drawn = np.array([draw_accuracies(way, r, votes.labels, chosen, rng) for r in votes.runs])
    spreads = [draw_spread(right, chosen.shape[1]) for right in correct]
    mean = fmean(exact)
    record: dict[str, Cell] = {
        "mean": float(drawn.mean()),
        # Within the draws of one run, as in the paper; the spread between runs is separate.
        "std": float(np.sqrt(drawn.var(axis=1, ddof=1).mean())),
        "exact_mean": mean,
        "exact_std": float(np.sqrt(np.mean(np.square(spreads)))),
        "run_spread": stdev(exact) if len(exact) > 1 else None,
    }
    record |= {f"seed_{run.seed}": x for run, x in zip(votes.runs, exact, strict=True)}
    allowed = None if paper is None else allowed_difference(exact, paper[1])
    return record | {
        "printed_mean": None if paper is None else paper[0],
        "printed_std": None if paper is None else paper[1],
        "exact_minus_printed": None if paper is None else mean - paper[0],
        "allowed_difference": allowed,
        "within": None if paper is None or allowed is None else abs(mean - paper[0]) <= allowed,
    }


def teacher_table(votes: Votes) -> Table:
    """Return how accurate the teachers of each run are, alone and as a majority."""
    columns = ("lowest", "mean", "highest", "majority")
    records: list[dict[str, Cell]] = [
        {"seed": run.seed, "teachers": kind}
        | dict(zip(columns, accuracies(cast, votes.labels), strict=True))
        | {"share_of_ones": float(cast.mean())}
        for run in votes.runs
        for kind, cast in zip(KINDS, (run.private, run.plain), strict=True)
    ]
    return Table.of(records)


def agreement_table(votes: Votes) -> Table:
    """Return how often l teachers vote for the majority, over all runs, and how often it is right.

    An aggregator that knows only the votes gains or loses accuracy through these two columns.
    """
    k = votes.teachers
    records: list[dict[str, Cell]] = []
    for place, kind in enumerate(KINDS):
        casts = [(run.private, run.plain)[place] for run in votes.runs]
        ones = np.concatenate([cast.sum(axis=0, dtype=np.int64) for cast in casts])
        right = (2 * ones > k) == np.tile(votes.labels, len(casts))
        size = np.maximum(ones, k - ones)
        for agreeing in range((k + 1) // 2, k + 1):
            here = size == agreeing
            share = float(right[here].mean()) if here.any() else None
            records.append(
                {
                    "teachers": kind,
                    "agreeing": agreeing,
                    "share_of_images": float(here.mean()),
                    "majority_right": share,
                }
            )
    return Table.of(records)


def totals_table(votes: Votes, allowances: Sequence[int], queries: Sequence[int]) -> Table:
    """Return the privacy cost of Q labels for each target, accounted in three ways."""
    records: list[dict[str, Cell]] = []
    for allowance in allowances:
        label = Guarantee(allowance * votes.stated_epsilon, allowance * votes.delta)
        for asked in queries:
            total = general_composition(label, asked, _COMPOSITION_SLACK)
            records.append(
                {
                    "m": allowance,
                    "Q": asked,
                    "composed_epsilon": total.epsilon,
                    "composed_delta": total.delta,
                    "all_teachers_epsilon": votes.teachers * votes.stated_epsilon,
                    "all_teachers_delta": votes.teachers * votes.delta,
                    "one_teacher_epsilon": votes.stated_epsilon,
                    "one_teacher_delta": votes.delta,
                }
            )
    return Table.of(records)
