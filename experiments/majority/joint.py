"""Labels of voters trained once: one kernel for two questions, with three other ways beside it.

A voter answers both questions from one model, so the vector of its answers is epsilon-DP as a
whole: it is one vote among four classes, whose corners are those of `dpopt.Multiclass`. Proofs,
also of the objective's linear form, are in docs/findings/votes.md.
"""

from __future__ import annotations

from math import factorial, log, prod
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le
from matplotlib.figure import Figure
from scipy.special import betainc, comb

import dpopt
from dpopt import Majority, Problem
from dpopt.multiclass.corners import Pricing, configurations, histograms
from dpopt.privacy.exact import exp_lower, exp_upper
from dpopt.table import Graph
from experiments import drawing
from experiments.majority.baselines import chances_of
from experiments.majority.claims import STATEMENTS
from experiments.parameters import Positive, Several, Voters, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track
from experiments.verdicts import judged

Array = npt.NDArray[Any]

JOINTLY, ONLINE, SEPARATELY, SAMPLED = "jointly", "online", "separately", "by subsampling"
ROLES = {JOINTLY: "optimum", ONLINE: "variant", SEPARATELY: "paper", SAMPLED: "baseline"}
QUERIES = "composition of queries"
# Probabilities are multiples of 1 / _WHOLE^2; a share of the uniform kernel covers rounding.
_WHOLE, _UNIFORM = 1 << 50, 2.0**-27


@configuration
class Config:
    """Which voters, and what all labels together may spend.

    Attributes:
        labels: numbers of labels Q, 1 or 2.
        voters: each K, odd, up to 7.
        allowance: each m, up to the least K: all labels together are to be m epsilon-DP.
        epsilon: of a voter, for all of its answers together, in nats, up to 3.
    """

    labels: Several[Annotated[int, Ge(1), Le(2)]] = (1, 2)
    voters: Several[Annotated[Voters, Le(7)]] = (3, 5, 7)
    allowance: Several[Annotated[int, Ge(1)]] = (2, 3)
    epsilon: Several[Annotated[Positive, Le(3.0)]] = (0.1, 2.0)


@experiment("majority-joint-labels", config=Config(), quick=Config(voters=(3, 5)))
def run(config: Config) -> Outcome:
    """Find every kernel, its error, and what it spends."""
    rows = list[dict[str, Cell]]()
    for q, k in track([(q, k) for q in config.labels for k in config.voters]):
        votes = Answers(q, k)
        for epsilon, m in [(epsilon, m) for epsilon in config.epsilon for m in config.allowance]:
            case: dict[str, Cell] = {"labels": q, "voters": k, "epsilon": epsilon, "m": m}
            own = chances_of(dpopt.design(Majority(k, epsilon, m / q)).gamma)
            rows += [
                case | {"way": way} | votes.decided(weights, epsilon, m)
                for way, weights in {
                    JOINTLY: votes.whole(votes.best(epsilon, m)),
                    ONLINE: votes.whole(votes.best(epsilon, m, online=True), online=True),
                    SEPARATELY: votes.whole(votes.independent(own[votes.ones])),
                    SAMPLED: votes.whole(votes.sampled(m)),
                }.items()
            ]
    table = Table.of(rows)
    statement = judged(
        STATEMENTS[QUERIES].claim,
        table.select(labels=2, way=SEPARATELY).records,
        lambda row: row["spent"] <= row["m"],
        "all corners, in integers",
        show=("voters", "epsilon", "m", "spent"),
        worst=lambda row: row["spent"] - row["m"],
        said="Of two labels with a gamma each at m / 2; spent is in multiples of epsilon.",
        name=QUERIES,
    )
    return Outcome({"errors": table}, (statement,) if 2 in config.labels else ())


class Answers:
    """The numbers N of K voters with each vector of answers; a vector's top bit is the first."""

    def __init__(self, labels: int, voters: int) -> None:
        self.labels, self.voters, self.size = labels, voters, 2**labels
        self.counts: Array = histograms(voters, self.size)
        self.bits: Array = np.arange(self.size)[:, None] >> np.arange(labels)[::-1] & 1
        # N_q, how many answer 1 to question q: (N, Q).
        self.ones: Array = self.counts @ self.bits

    @property
    def costs(self) -> Array:
        """Pr[N] |E[sign(p_q - 1/2) | N_q]| where y_q is wrong, else 0: (N, y, Q)."""
        k, ones = self.voters, np.arange(self.voters + 1)
        signs = 1 - 2 * betainc(ones + 1, k - ones + 1, 0.5)
        wrong = (2 * self.ones > k)[:, None] != self.bits
        vectors = [factorial(k) / prod(map(factorial, n)) for n in self.counts.tolist()]
        chances = vectors / ((k + 1) * comb(k, self.ones)).prod(axis=1)
        return chances[:, None, None] * wrong * np.abs(signs)[self.ones][:, None]

    def independent(self, ones: Array) -> Array:
        """Return the kernel of labels that are 1 with probabilities (N, Q), independently."""
        return np.where(self.bits, ones[:, None], 1 - ones[:, None]).prod(axis=2)

    def sampled(self, sample: int) -> Array:
        """Return the kernel of the majorities of m sampled voters."""
        few = Answers(self.labels, sample)
        draws = comb(self.counts[:, None], few.counts).prod(axis=2) / comb(self.voters, sample)
        return draws @ few.independent((1 + np.sign(2 * few.ones - sample)) / 2)

    def best(self, epsilon: float, allowance: int, *, online: bool = False) -> Array:
        """Solve the program; its corners are added where they are violated."""
        index = {tuple(n): x for x, n in enumerate(self.counts.tolist())}
        # Symmetries, each its own inverse: negated labels, and offline the reversed vector.
        moves = [np.arange(self.size) ^ 1 << q for q in range(self.labels)]
        moves += [] if online else [self.bits @ (1 << np.arange(self.labels))]
        images = [np.array([index[tuple(n)] for n in self.counts[:, y].tolist()]) for y in moves]
        pairs = tuple(zip(images, moves, strict=True))
        inputs = Graph(len(index), self.size, None, pairs)
        table, corners = inputs.table(), Pricing(self.voters, self.size, epsilon, allowance)
        corners.variables, corners.size = table, inputs.size
        problem = Problem("labels of voters trained once")
        problem.add_variables("k", inputs.size, lower=0.0, upper=1.0)
        problem.add_rows("sums", {"k": inputs.sums}, lower=1.0, upper=1.0)
        if online and self.labels > 1:
            # Pr[y_1 = 1 | N], less that of the first N with as many ones in answer to question 1.
            first = np.zeros((len(index), inputs.size))
            np.add.at(first, (np.arange(len(index))[:, None], table[:, self.size // 2 :]), 1.0)
            first -= first[np.unique(self.ones[:, 0], return_index=True)[1][self.ones[:, 0]]]
            problem.add_rows("first", {"k": first[first.any(axis=1)]}, lower=0.0, upper=0.0)
        problem.add_family("corners", corners, over="k")
        problem.minimise({"k": np.bincount(table.ravel(), self.costs.mean(axis=2).ravel())})
        return dpopt.solve(problem)["k"][table]

    def whole(self, kernel: Array, *, online: bool = False) -> Array:
        """Return weights of sum _WHOLE^2: the first label, and the second one given the first."""
        # Axes: N, y_1, and y_2 of two labels.
        mixed = ((1 - _UNIFORM) * kernel + _UNIFORM / self.size).reshape(len(kernel), 2, -1)
        first, last = mixed.sum(axis=2)[:, 1], mixed[..., -1] / mixed.sum(axis=2)
        if online:
            ones = self.ones[:, 0]
            first = (np.bincount(ones, first) / np.bincount(ones))[ones]
        one, two = (np.rint(_WHOLE * share).astype(int).astype(object) for share in (first, last))
        seconds = np.stack([_WHOLE - two, two], axis=2)[..., -self.size // 2 :]
        return (np.stack([_WHOLE - one, one], axis=1)[..., None] * seconds).reshape(kernel.shape)

    def decided(self, weights: Array, epsilon: float, allowance: int) -> dict[str, Cell]:
        """Return the error of weights, what they spend, and whether it is proved to be at most m.

        In integers at all corners; both numbers are rounded to what the uniform share leaves.
        """
        ratio, target = exp_upper(epsilon), exp_lower(allowance * epsilon)
        spent, proved = 0.0, True
        for values in weights.T:
            walk = configurations(self.voters, self.size).walk(values, *ratio.as_integer_ratio())
            for _, means in walk:
                others = means[::-1]
                spent = max(spent, (means / others).max())
                proved &= bool((means * target.denominator <= target.numerator * others).all())
        error = float((self.costs.mean(axis=2) * (weights / _WHOLE**2)).sum())
        return {"error": round(error, 7), "spent": round(log(spent) / epsilon, 5), "proved": proved}


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the error of each way, for two labels if there are such."""
    table = outcome.tables["errors"]
    table = table.select(labels=max(table.column("labels")))
    figure, (axes,) = drawing.panels(1, 1, "$K$, $m$ and $\\varepsilon$", "error of a label")
    for way, role in ROLES.items():
        rows = table.select(way=way)
        names = ["{voters}\n{m}\n{epsilon:g}".format(**row) for row in rows.records]
        axes.plot(names, rows.column("error"), label=way, **drawing.points(role))
    axes.margins(0.12)
    return drawing.finish(figure, [axes])
