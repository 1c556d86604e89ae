"""Rows of Tables 1, 6, 8 and 10: accuracies, agreement of the teachers, privacy costs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from dpopt.privacy import Guarantee, general_composition
from experiments.majority.pate.aggregate import Aggregator, draw_accuracies, draw_spread
from experiments.majority.pate.published import allowed_difference, printed
from experiments.majority.pate.rates import KINDS, accuracies
from experiments.majority.pate.votes import Votes
from experiments.registry import Cell, Table

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
    draws: int,
    seed: int,
    votes: Votes,
    ways: Sequence[Aggregator],
    allowance: int,
    queries: int,
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
    chosen: npt.NDArray[np.int64],
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
    return Table.of(
        "Accuracy of single teachers and of their majority without noise, for each training run.",
        records,
    )


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
    return Table.of("How many of the teachers agree, and how often they are right.", records)


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
    return Table.of(
        "Privacy cost of Q labels: by theorem 2.3 as in Tables 2, 5, 7 and 9; by releasing all K "
        "private teachers, so that the labels are post-processing; and the same if each record is "
        "in one teacher's part only, as in these runs: by parallel composition.",
        records,
    )
