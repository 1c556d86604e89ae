"""Claims of the DaRRM paper, checked with its own program and in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dpopt
from dpopt import majority
from dpopt.privacy import Guarantee, general_composition
from dpopt.prob import poisson_binomial_pmf
from experiments import drawing
from experiments.majority import baselines
from experiments.majority.baselines import baseline
from experiments.majority.figures import AT_ONE, BEST, BEST_OF_ALL
from experiments.majority.full_set import check_full
from experiments.majority.voters import PAPER_PRIOR, harmonic, printed_constant
from experiments.parameters import Positive, Several, Voters, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.verdicts import judged, proved

_ROUNDING = 1e-9
# The delta' of general composition in lemma A.1, and those among which its constant is best.
_SLACK, _SLACKS = 0.1, 10.0 ** -np.arange(0.5, 8.0, 0.25)
_INTEGERS = "exact integers over the reduced corner set, rounded outward"


@configuration
class Config:
    """Instances of the statements; we chose them where the paper prints none.

    Attributes:
        epsilon: of each voter, in nats, but of the query.
        at_one: each K of lemma 3.2.
        doubled: each K of theorem 4.1, for every m.
    """

    epsilon: Positive = 0.1
    at_one: Several[Voters] = (3, 5, 7, 9, 11)
    doubled: Several[Voters] = (3, 11, 21)


_PMF = majority.parse_prior(PAPER_PRIOR)
# K and m, or M of K voters; of the query K, epsilon and how often it is put, at m = 1.
_OBJECTIVES = ((11, 1), (11, 3), (11, 5), (35, 10), (101, 10), (101, 20))
_SAMPLED = ((11, 3), (11, 5), (35, 10), (101, 10), (101, 20))
_CONSTANTS = ((11, 1), (11, 3), (11, 5), (35, 1), (35, 5), (35, 13), (101, 1), (101, 30))
_BELOW = ((35, 16), (101, 28))
_REPEATED = ((41, 0.5, 12),)


def _settings(config: Config, cases: Sequence[tuple[int, int]]) -> Iterator[dpopt.Majority]:
    for k, m in track(cases):
        yield dpopt.Majority(k, config.epsilon, m, prior=_PMF)


@dataclass(frozen=True)
class Statement:
    """A number that the paper states, and how its verdict follows.

    Attributes:
        claim: in the paper's words, with the section or number.
        instances: yields the instance in words, the claimed number and the computed one.
        certificate: what proves the latter.
        least: whether the claimed number is a lower bound; an upper one if not.
        sharper: whether a better number in every instance is a stronger result than the paper's.
        wider: the assumption of the paper that the instances do not need.
    """

    claim: str
    instances: Callable[[Config], Iterator[tuple[str, float, float]]]
    certificate: str
    least: bool = True
    sharper: bool = False
    wider: str = ""

    def judge(self, name: str, rows: list[dict[str, Any]]) -> Comparison:
        """Decide the statement: one instance refutes it; it is sharper if more holds in all."""
        sign = 1.0 if self.least else -1.0

        def beyond(row: Mapping[str, Any]) -> float:
            scale = max(row["claimed"], row["found"]) or 1.0
            return sign * (row["found"] - row["claimed"]) / scale

        return judged(
            self.claim,
            rows,
            lambda row: beyond(row) >= -_ROUNDING,
            self.certificate,
            show=("instance", "found", "claimed"),
            worst=lambda row: -beyond(row),
            more=bool(self.wider) or (self.sharper and min(map(beyond, rows)) > _ROUNDING),
            more_if=self.wider or ("more holds in every instance" if self.sharper else ""),
            name=name.removesuffix(", subsampling"),
        )


def _lemma_3_2(config: Config) -> Iterator[tuple[str, float, float]]:
    """A bare majority of ones, all certain: no error, where the bound is (K - 1) / (2 K)."""
    for k in track(config.at_one):
        setting = dpopt.Majority(k, config.epsilon, 1)
        design = proved(majority.assess(setting, harmonic(k), repair=True))
        ones = (k + 1) // 2
        chance = float(design.table.matrix()[ones, 1])
        yield f"K = {k}, m = 1, p = 1 for {ones} voters", 1.0 - ones / k, 1.0 - chance


def _subsampling_at_one(config: Config) -> Iterator[tuple[str, float, float]]:
    for k in track(config.at_one):
        best = proved(dpopt.design(dpopt.Majority(k, config.epsilon, 1, prior=PAPER_PRIOR)))
        sampled = baseline(best.setting, "subsampling", 1)
        yield f"K = {k}, m = 1, p ~ U[0, 1]^K", sampled.expected_error, best.expected_error


def _surrogate(config: Config) -> Iterator[tuple[str, float, float]]:
    for setting in _settings(config, _OBJECTIVES):
        errors = [
            proved(dpopt.design(replace(setting, objective=objective))).expected_error
            for objective in ("surrogate", "mean")
        ]
        yield f"K = {setting.voters}, m = {setting.allowance:g}, p ~ U[0, 1]^K", *errors


def _double(config: Config) -> Iterator[tuple[str, float, float]]:
    """What unequal voters make of double subsampling; the same p is not needed."""
    for k in track(config.doubled):
        for m in range(1, (k + 1) // 2):
            setting = dpopt.Majority(k, config.epsilon, m)
            check = check_full(setting, baselines.double_subsampling(k, m))
            yield f"K = {k}, m = {m}, unequal p", m * config.epsilon, check.epsilon


def _sampled(config: Config) -> Iterator[tuple[str, float, float]]:
    for setting in _settings(config, _SAMPLED):
        k, size = setting.voters, round(setting.allowance)
        check = check_full(setting, baselines.subsampling(k, size))
        yield f"{size} of K = {k}", setting.guarantee.epsilon, check.epsilon


def _constants(config: Config) -> Iterator[tuple[str, float, float]]:
    for setting in _settings(config, _CONSTANTS):
        largest = proved(majority.assess(setting, np.ones(setting.voters + 1), repair=True))
        printed = [float(baselines.constant(setting)[0])]
        for slack in _SLACKS:
            whole = general_composition(Guarantee(setting.epsilon), setting.voters, slack)
            tau = whole.epsilon / setting.epsilon
            if tau >= setting.allowance:
                printed.append(float(baselines.constant(setting, tau, whole.delta)[0]))
        where = f"K = {setting.voters}, m = {setting.allowance:g}"
        yield where, max(printed), float(largest.gamma[0])


def _any_tau(config: Config) -> Iterator[tuple[str, float, float]]:
    """Lemma A.1's proof takes one corner where (lambda, 0) is the larger one if tau < m."""
    for setting in _settings(config, _BELOW):
        k = setting.voters
        whole = general_composition(Guarantee(setting.epsilon), k, _SLACK)
        gamma = np.full(k + 1, min(1.0, printed_constant(setting, whole)))
        where = f"K = {k}, m = {setting.allowance:g}, tau = {whole.epsilon / setting.epsilon:.4f}"
        yield where, setting.guarantee.epsilon, check_full(setting, gamma).epsilon


def _queries(_: Config) -> Iterator[tuple[str, float, float]]:
    """Some voters at b or c, the others at 0, and all labels of one query 1."""
    for k, epsilon, count in track(_REPEATED):
        design = proved(dpopt.design(dpopt.Majority(k, epsilon, 1, objective="surrogate")))
        all_ones = design.table.matrix()[:-1, 1] ** count
        at_corner = np.tri(k, k) > 0
        pmfs = [poisson_binomial_pmf(at_corner * p) for p in design.setting.corner("bc")]
        high, low = (pmf[:, :k] @ all_ones for pmf in pmfs)
        where = f"K = {k}, m = 1, epsilon = {epsilon:g}, one query {count} times"
        yield where, count * epsilon, float(np.log(high / low)[: k - 1].max())


STATEMENTS: Mapping[str, Statement] = {
    AT_ONE: Statement(
        "At m = 1 no private majority has an error below |Pr[g = 1] - mean p| (lemma 3.2).",
        _lemma_3_2,
        "gamma(l) = 1 / |2 l - K|, " + _INTEGERS,
    ),
    f"{AT_ONE}, subsampling": Statement(
        "At m = 1 subsampling has the optimal error (section 3.1).",
        _subsampling_at_one,
        _INTEGERS + "; error by quadrature",
    ),
    BEST: Statement(BEST_OF_ALL, _surrogate, _INTEGERS + "; dual bound"),
    "theorem 4.1": Statement(
        "Double subsampling is m epsilon-DP if all voters have the same p and p' (theorem 4.1).",
        _double,
        "proved by thinning; every multiset of corners, in double precision",
        least=False,
        wider="unequal voters are private too",
    ),
    "subsampling's loss": Statement(
        "The majority of m sampled voters spends m epsilon (section 3.1).",
        _sampled,
        "ceil(m / 2) epsilon is proved and attained; every multiset of corners",
        least=False,
        sharper=True,
    ),
    "lemma A.1": Statement(
        "Where tau >= m, a constant gamma can be at most that of lemma A.1.",
        _constants,
        _INTEGERS,
        sharper=True,
    ),
    "lemma A.1, any tau": Statement(
        "With p_const up to (4) RR is (m epsilon, delta)-DP, tau in [1, K] and lambda by simple or "
        "general composition (lemma A.1).",
        _any_tau,
        "exact for K = 35: darrm-lemma-a-1.finding.json",
        least=False,
    ),
    "composition of queries": Statement(
        "The overall privacy loss over Q queries to the teachers, trained once, can be computed by "
        "general composition (section 6.2, theorem 2.3).",
        _queries,
        "exact for K = 41: darrm-composition-of-queries.finding.json",
        least=False,
    ),
}


@experiment(
    "majority-claims",
    config=Config(at_one=(3, 5, 7, 9, 11, 21, 51), doubled=(3, 11, 21, 31, 51)),
    quick=Config(),
)
def run(config: Config) -> Outcome:
    """Evaluate every instance; the verdicts follow from the values."""
    rows = [
        {"statement": name, "instance": where, "claimed": claimed, "found": found}
        for name, each in STATEMENTS.items()
        for where, claimed, found in each.instances(config)
    ]
    table = Table.of(rows)
    found = {name: list(part) for name, part in groupby(rows, lambda row: row["statement"])}
    comparisons = tuple(STATEMENTS[name].judge(name, part) for name, part in found.items())
    return Outcome({"claims": table}, comparisons)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the computed over the claimed number of each instance, a row per statement."""
    table = outcome.tables["claims"]
    names = table.distinct("statement")
    figure, (axes,) = drawing.panels(1, 1, "computed / claimed", "statement", height=0.7)
    for place, name in enumerate(reversed(names)):
        least = STATEMENTS[name].least
        rows = table.select(statement=name).records
        ratios = [row["found"] / row["claimed"] for row in rows if row["claimed"]]
        look = drawing.points("optimum" if least else "baseline", markerfacecolor="none")
        label = f"the paper claims a {'least' if least else 'largest'} value"
        axes.plot(ratios, [place] * len(ratios), label=label, **look)
    axes.axvline(1.0, label="claimed", **drawing.beside("limit"))
    axes.set_yticks(range(len(names)), list(reversed(names)))
    axes.margins(0.05, 0.1)
    return drawing.finish(figure, [axes])
