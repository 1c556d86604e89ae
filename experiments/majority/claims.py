"""Claims of the DaRRM paper, judged by its own linear program and by exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from dpopt import ParameterError
from experiments.majority import (
    claims_constant,
    claims_corners,
    claims_counts,
    claims_error,
    claims_queries,
    claims_sampling,
)
from experiments.majority.claims_compared import of_claims
from experiments.majority.claims_corners import Case
from experiments.majority.claims_figure import plot
from experiments.majority.claims_queries import Repeated
from experiments.majority.claims_record import Part
from experiments.majority.claims_sampling import Sampled
from experiments.registry import Advance, Experiment, Outcome, Table


@dataclass(frozen=True)
class Config:
    """Parameters of the claims; they are ours, where the paper prints none.

    Attributes:
        epsilon: of each voter, unless a case has its own.
        draws: p's for each sampled error.
        seed: of all draws.
        at_one: each K of lemma 3.2.
        objectives: (K, m) of the surrogate.
        counted: each K whose constraints are counted.
        pure: each K at which the two constraint sets are compared for Delta = 0.
        approximate: the same for Delta > 0; may be empty.
        gammas: random noise functions of each kind for that comparison.
        three: where three corners are tried.
        swept: (K, m) of its curves.
        swept_epsilons: epsilons of its curves.
        doubled: each K of theorem 4.1, for every epsilon.
        certified: each K of theorem 4.1 for the library's prover.
        certified_epsilons: epsilons of the latter.
        doubled_approximate: (K, m, Delta) at which theorem 4.1 is certified for Delta > 0.
        sampled: cases of subsampling.
        sampled_curve: each K of its curve.
        constants: (K, values of m) of lemma A.1.
        below: (K, m) at which lemma A.1 is tried with the tau of general composition.
        repeated: queries put several times to voters trained once.
    """

    epsilon: float = 0.1
    draws: int = 20_000
    seed: int = 5
    at_one: tuple[int, ...] = (3, 5, 7, 9, 11)
    objectives: tuple[tuple[int, int], ...] = (
        (11, 1),
        (11, 3),
        (11, 5),
        (35, 10),
        (101, 10),
        (101, 20),
    )
    counted: tuple[int, ...] = (5, 7, 11, 21, 41, 71, 101)
    pure: tuple[int, ...] = (5, 11, 21, 31)
    approximate: tuple[int, ...] = (3, 5, 7)
    gammas: int = 3
    three: tuple[Case, ...] = (
        Case(15, 1.0, 0.7755),
        Case(41, 2.0, 0.1),
        Case(9, 2.0, 0.9005),
    )
    swept: tuple[tuple[int, float], ...] = ((9, 2.0), (11, 2.0), (15, 1.0), (15, 2.0))
    swept_epsilons: tuple[float, ...] = tuple(i / 100 for i in range(72, 110))
    doubled: tuple[int, ...] = tuple(range(3, 32, 2))
    certified: tuple[int, ...] = (3, 11, 21)
    certified_epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)
    doubled_approximate: tuple[tuple[int, int, float], ...] = ((5, 2, 1e-3), (7, 4, 1e-2))
    sampled: tuple[Sampled, ...] = (
        Sampled(11, 3, 0.1),
        Sampled(11, 5, 0.1),
        Sampled(11, 3, 0.1, 1e-5),
        Sampled(35, 10, 0.1),
        Sampled(101, 10, 0.1),
        Sampled(101, 20, 0.1),
    )
    sampled_curve: tuple[int, ...] = (11, 21, 35)
    constants: tuple[tuple[int, tuple[int, ...]], ...] = (
        (11, (1, 2, 3, 4, 5)),
        (35, (1, 3, 5, 8, 10, 13)),
        (101, (1, 5, 10, 20, 30)),
    )
    below: tuple[tuple[int, int], ...] = ((35, 16), (101, 28))
    repeated: tuple[Repeated, ...] = (Repeated(41, 1.0, 0.5, 12),)

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) == () and field.name != "approximate":
                raise ParameterError(f"{field.name} is (); it must hold at least one case.")


def steps(config: Config) -> int:
    """Return how often `run` tells its progress."""
    lists = (
        config.at_one,
        config.objectives,
        config.pure,
        config.approximate,
        config.three,
        config.doubled,
        config.certified,
        config.sampled,
        config.sampled_curve,
        config.constants,
        config.repeated,
    )
    return sum(len(items) for items in lists) + 4


def run(config: Config, advance: Advance) -> Outcome:
    """Compute every claim; its status follows from the values."""
    parts = list(_parts(config, advance))
    claims = [claim for part in parts for claim in part.claims]
    caption = "One row for each instance of a claim: what the paper says, what is found, the proof."
    tables = {"claims": Table.of(caption, [claim.record for claim in claims])}
    for part in parts:
        tables |= part.tables
    return Outcome(tables, tuple(claim.sentence for claim in claims), of_claims(claims))


def _parts(config: Config, advance: Advance) -> Iterator[Part]:
    epsilon, draws, seed = config.epsilon, config.draws, config.seed
    yield claims_error.lower_bound(config.at_one, epsilon, draws, seed, advance)
    yield claims_error.objectives(config.objectives, epsilon, draws, seed, advance)
    yield claims_counts.counts(config.counted, advance)
    yield claims_counts.maxima(config.pure, config.approximate, config.gammas, seed, advance)
    yield claims_corners.three_corners(config.three, config.swept, config.swept_epsilons, advance)
    yield claims_sampling.double_subsampling(
        config.doubled,
        config.certified,
        config.certified_epsilons,
        config.doubled_approximate,
        advance,
    )
    yield claims_constant.constants(config.constants, config.below, epsilon, advance)
    yield claims_sampling.spent(config.sampled, config.sampled_curve, epsilon, advance)
    yield claims_queries.repeated_queries(config.repeated, advance)


EXPERIMENTS = (
    Experiment(
        name="majority-claims",
        paper="DaRRM",
        item="Claims",
        summary="What the paper states, judged by its program, exact arithmetic or a short proof: "
        "one row for each instance, with its certificate. K, m and epsilon of the instances are "
        "ours.",
        published="lemma 3.2, equation 3, lemma 5.1, theorem 4.1, lemmas 3.1 and A.1, section 6.2; "
        "no numbers.",
        config=Config(
            draws=200_000,
            at_one=(3, 5, 7, 9, 11, 21, 51),
            pure=(5, 11, 21, 31, 41),
            approximate=(3, 5, 7, 9),
            gammas=10,
            swept_epsilons=tuple(i / 400 for i in range(288, 440)),
            doubled=(*range(3, 32, 2), 51, 101),
            certified=(3, 11, 21, 31, 51),
            sampled_curve=(11, 21, 35, 51),
        ),
        quick=Config(),
        steps=steps,
        run=run,
        plot=plot,
    ),
)
