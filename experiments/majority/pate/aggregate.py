"""From votes to labels: each way of aggregating, its exact accuracy, and draws from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev

import numpy as np

import dpopt
from dpopt import ParameterError
from dpopt.privacy import Guarantee, general_composition
from experiments.arrays import Floats, Ints
from experiments.majority.baselines import baseline, chances_of
from experiments.majority.noisy_max import calibrate_gnmax, label_probabilities, label_sigma
from experiments.majority.pate.published import allowed_difference, printed
from experiments.majority.pate.rates import ACCURACIES, KINDS, accuracies
from experiments.majority.pate.votes import Bits, Run, Votes
from experiments.majority.voters import PAPER_PRIOR
from experiments.registry import Cell, Table
from experiments.verdicts import proof_of


@dataclass(frozen=True)
class Aggregator:
    """A way of turning K votes into one label.

    Attributes:
        method: its name in ``items.toml``.
        teachers: whose votes it reads, "private" or "plain".
        chances: Pr[label 1 | l ones among the votes], l = 0..K, shape (K + 1,).
        simulate: labels of votes of shape (queries, K), from a seeded generator.
        sigma: of GNMax's noise; None for the others.
        slack: of DaRRM's exact proof, at least 0; None for the others.
    """

    method: str
    teachers: str
    chances: Floats
    simulate: Callable[[Bits, np.random.Generator], Ints]
    sigma: float | None = None
    slack: float | None = None

    def right(self, votes: Votes) -> Floats:
        """Return the probability that each label comes out right, shape (runs, images)."""
        return votes.right(self.teachers, self.chances)


def aggregators(votes: Votes, allowance: int) -> tuple[Aggregator, ...]:
    """Return every aggregator for the target (m epsilon, m Delta) of one label."""
    k, shift = votes.teachers, votes.delta
    setting = dpopt.Majority(k, votes.stated_epsilon, allowance, shift, allowance * shift)
    return (
        _gnmax("gnmax", k, calibrate_gnmax(setting.guarantee)[0]),
        _gnmax("gnmax-label", k, label_sigma(k, setting.guarantee)),
        _darrm("subsampling", baseline(setting, "subsampling", allowance)),
        _darrm("surrogate", dpopt.design(replace(setting, objective="surrogate"))),
        _darrm("mean", dpopt.design(replace(setting, prior=PAPER_PRIOR))),
        _darrm("common-p", dpopt.design(replace(setting, prior="common-uniform:0,1"))),
        _darrm("best-for-votes", dpopt.design(replace(setting, coefficients=_weights_of(votes)))),
        _whole("private", k),
        _whole("plain", k),
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
    way: Aggregator, run: Run, labels: Bits, chosen: Ints, rng: np.random.Generator
) -> Floats:
    """Return the accuracy of each draw of queries."""
    flat = chosen.ravel()
    outputs = way.simulate(getattr(run, way.teachers)[:, flat].T, rng)
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

    return Aggregator(method, "plain", label_probabilities(teachers, sigma), simulate, sigma=sigma)


def _darrm(method: str, design: dpopt.Design) -> Aggregator:
    slack = float(proof_of(design).slack)
    return Aggregator(method, "private", chances_of(design.gamma), design.simulate, slack=slack)


def _whole(teachers: str, count: int) -> Aggregator:
    def simulate(votes: Bits, _: np.random.Generator) -> Ints:
        return (2 * votes.sum(axis=1, dtype=np.int64) > count).astype(np.int64)

    chances = (2 * np.arange(count + 1) > count).astype(float)
    return Aggregator(f"{teachers}-majority", teachers, chances, simulate)


_COMPOSITION_SLACK = 1e-4


def exact_record(votes: Votes, way: Aggregator, allowance: int) -> dict[str, Cell]:
    """Return the expected accuracy of one label, over all test images, for each training run."""
    means = way.right(votes).mean(axis=1).tolist()
    record: dict[str, Cell] = {"m": allowance, "method": way.method}
    record |= {"epsilon": allowance * votes.stated_epsilon, "delta": allowance * votes.delta}
    record |= {"sigma": way.sigma, "proof_slack": way.slack, "accuracy": fmean(means)}
    record |= {"run_spread": _spread(means), "lowest": min(means), "highest": max(means)}
    return record | _by_seed(votes, means)


def _spread(means: Sequence[float]) -> float | None:
    return stdev(means) if len(means) > 1 else None


def _by_seed(votes: Votes, means: Sequence[float]) -> dict[str, Cell]:
    return {f"seed_{run.seed}": mean for run, mean in zip(votes.runs, means, strict=True)}


def drawn_records(
    draws: int, seed: int, votes: Votes, ways: Sequence[Aggregator], allowance: int, queries: int
) -> list[dict[str, Cell]]:
    """Return one record for each aggregation method; all use the same images."""
    images = len(votes.labels)
    if queries > images:
        raise ParameterError(f"queries is {queries}; there are {images} test images.")
    rng = np.random.default_rng([seed, allowance, queries])
    chosen = np.array([rng.choice(images, queries, replace=False) for _ in range(draws)])
    records = []
    for way in ways:
        where: dict[str, Cell] = {"m": allowance, "Q": queries, "method": way.method}
        paper = printed(votes.dataset, allowance, queries, way.method)
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
    right = way.right(votes)
    exact: list[float] = right.mean(axis=1).tolist()
    drawn = np.array([draw_accuracies(way, run, votes.labels, chosen, rng) for run in votes.runs])
    spreads = [draw_spread(each, chosen.shape[1]) for each in right]
    mean = fmean(exact)
    record: dict[str, Cell] = {
        "mean": float(drawn.mean()),
        # Within the draws of one run, as in the paper; the spread between runs is separate.
        "std": float(np.sqrt(drawn.var(axis=1, ddof=1).mean())),
        "exact_mean": mean,
        "exact_std": float(np.sqrt(np.mean(np.square(spreads)))),
        "run_spread": _spread(exact),
    }
    record |= _by_seed(votes, exact)
    names = ("printed_mean", "printed_std", "exact_minus_printed", "allowed_difference", "within")
    if paper is None:
        return record | dict.fromkeys(names)
    gap, allowed = mean - paper[0], allowed_difference(exact, paper[1])
    within = None if allowed is None else abs(gap) <= allowed
    return record | dict(zip(names, (*paper, gap, allowed, within), strict=True))


def teacher_table(votes: Votes) -> Table:
    """Return how accurate the teachers of each run are, alone and as a majority."""
    records: list[dict[str, Cell]] = [
        {"seed": run.seed, "teachers": kind}
        | dict(zip(ACCURACIES, accuracies(cast, votes.labels), strict=True))
        | {"share_of_ones": float(cast.mean())}
        for run in votes.runs
        for kind, cast in zip(KINDS, (run.private, run.plain), strict=True)
    ]
    return Table.of(records)


def agreement_table(votes: Votes) -> Table:
    """Return how often l teachers vote for the majority, over all runs, and how often it is right.

    An aggregator that knows only the votes gains or loses accuracy through these two columns.
    """
    k, records = votes.teachers, list[dict[str, Cell]]()
    for kind, name in zip(KINDS, ("private", "plain"), strict=True):
        ones = np.concatenate([getattr(r, name).sum(axis=0, dtype=np.int64) for r in votes.runs])
        right = (2 * ones > k) == np.tile(votes.labels, len(votes.runs))
        for agreeing in range((k + 1) // 2, k + 1):
            such = np.maximum(ones, k - ones) == agreeing
            share = float(right[such].mean()) if such.any() else None
            records.append(
                {"teachers": kind, "agreeing": agreeing, "share_of_images": float(such.mean())}
                | {"majority_right": share}
            )
    return Table.of(records)


def totals_table(votes: Votes, allowances: Sequence[int], queries: Sequence[int]) -> Table:
    """Return the privacy cost of Q labels for each target, accounted in three ways."""
    k, epsilon, delta = votes.teachers, votes.stated_epsilon, votes.delta
    records: list[dict[str, Cell]] = []
    for m, asked in product(allowances, queries):
        total = general_composition(Guarantee(m * epsilon, m * delta), asked, _COMPOSITION_SLACK)
        record: dict[str, Cell] = {"m": m, "Q": asked}
        record |= {"composed_epsilon": total.epsilon, "composed_delta": total.delta}
        record |= {"all_teachers_epsilon": k * epsilon, "all_teachers_delta": k * delta}
        records.append(record | {"one_teacher_epsilon": epsilon, "one_teacher_delta": delta})
    return Table.of(records)
