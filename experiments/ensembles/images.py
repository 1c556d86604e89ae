"""Labels of MNIST and Fashion-MNIST images, 5 against 8, from the shipped votes of teachers.

K = 11 teachers trained by DP-SGD, (epsilon, Delta)-private each, and as many without privacy. One
label may spend (m epsilon, m Delta); of many labels, two totals are compared: what all private
teachers spend together if all see the same images, and what one of them spends, which is enough
where each has images of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import majority, plurality
from dpopt.privacy import Guarantee
from experiments import drawing
from experiments.arrays import Floats
from experiments.ensembles.common import Looks, draw, error_note, meanings, measured, places, room
from experiments.ensembles.pmfs import gnmax_noise, pure_share
from experiments.majority import baselines, noisy_max
from experiments.majority.pate.votes import SHIPPED, Votes, load_votes
from experiments.parameters import Rising, Some, configuration
from experiments.registry import Cell, Outcome, Table, experiment, track

TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}

PRIVATE = {
    "common": "DaRRM, expected error for one p ~ U[0, 1] of all voters: the default",
    "independent": "DaRRM, expected error for independent p_i ~ U[0, 1]: the default before",
    "least-regret": "DaRRM, least regret over three priors",
    "surrogate": "DaRRM, the paper's objective",
    "subsampling": "DaRRM, gamma_Sub: the majority of m voters",
    "constant": "DaRRM, one gamma for all votes",
    "one-teacher": "one private teacher; spends (epsilon, Delta)",
    "private-majority": "the majority of all private teachers; spends (K epsilon, K Delta)",
}
PLAIN = {
    "gnmax": "GNMax, the least noise for which the counts are private",
    "gnmax-label": "GNMax, the least noise for which the label is private",
    "ladder": "the ladder, two classes, purely m epsilon-private",
    "plain-majority": "the majority of the plain teachers; not private",
}
LOOKS: Looks = {
    "common": ("DaRRM, one $p$ for all (default)", drawing.line("optimum")),
    "independent": ("DaRRM, independent $p_i$", drawing.line("variant")),
    "surrogate": ("DaRRM, the paper's objective", drawing.line("paper")),
    "subsampling": ("DaRRM, subsampling", drawing.line("baseline")),
    "gnmax-label": ("GNMax, plain teachers", drawing.line("baseline-3")),
    "ladder": ("ladder, plain teachers", drawing.line("baseline-2")),
    "private-majority": (r"private teachers, $(K \varepsilon, K \Delta)$", drawing.line("noise")),
    "plain-majority": ("majority of plain teachers, not private", drawing.line("limit")),
}


@configuration
class Config:
    """Parameters of the tables.

    Attributes:
        datasets: whose shipped votes are read, "mnist" and "fashion-mnist".
        allowance: each m, a whole number, rising; one label may spend (m epsilon, m Delta).
        labels: each number of labels Q of the totals, rising.
    """

    datasets: Some[Literal["mnist", "fashion-mnist"]] = ("mnist", "fashion-mnist")
    allowance: Rising[Annotated[int, Ge(1), Le(10)]] = (1, 3, 5, 7)
    labels: Rising[Annotated[int, Ge(1), Le(100_000)]] = (1, 10, 100, 1000)


@dataclass(frozen=True)
class Way:
    """A way of choosing a label.

    Attributes:
        method: one of `PRIVATE` or `PLAIN`.
        chances: Pr[label 1 | l ones among the votes], l = 0..K, shape (K + 1,).
        epsilon: what a label spends at ``delta``; None if it is not private.
        delta: of a label.
    """

    method: str
    chances: Floats
    epsilon: float | None
    delta: float | None

    def right(self, votes: Votes) -> Floats:
        """Return the expected accuracy in each training run."""
        found = []
        for run in votes.runs:
            votes_cast = run.private if self.method in PRIVATE else run.plain
            ones = votes_cast.sum(axis=0, dtype=np.int64)
            chances = self.chances[ones]
            found.append(np.where(votes.labels == 1, chances, 1.0 - chances).mean())
        return np.array(found)


def per_label(votes: Votes, allowance: int) -> Iterator[Way]:
    """Yield the ways of choosing one label at (m epsilon, m Delta), and what is beside them."""
    k, epsilon, shift = votes.teachers, votes.stated_epsilon, votes.delta
    setting = dpopt.Majority(k, epsilon, allowance, shift, allowance * shift)
    budget = setting.guarantee
    made: dict[str, Callable[[], dpopt.Design]] = {
        "common": lambda: dpopt.design(replace(setting, prior="common-uniform:0,1")),
        "independent": lambda: dpopt.design(replace(setting, prior="uniform:0,1")),
        "least-regret": lambda: dpopt.design(replace(setting, objective="least-regret")),
        "surrogate": lambda: dpopt.design(replace(setting, objective="surrogate")),
        "subsampling": lambda: majority.assess(
            setting, baselines.subsampling(k, allowance), repair=True
        ),
        "constant": lambda: majority.assess(setting, baselines.constant(setting), repair=True),
    }
    ones = np.arange(k + 1)
    signs = np.where(2 * ones > k, 1.0, -1.0)
    for method, design in made.items():
        found = design()
        found._require_private()
        chances = 0.5 + 0.5 * signs * found.gamma
        yield Way(method, chances, budget.epsilon, budget.delta)
    whole = (2 * ones > k).astype(float)
    yield Way("one-teacher", ones / k, epsilon, shift)
    yield Way("private-majority", whole, k * epsilon, k * shift)
    noises = {"gnmax": gnmax_noise(budget, 1), "gnmax-label": noisy_max.label_sigma(k, budget)}
    for method, sigma in noises.items():
        yield Way(method, noisy_max.label_probabilities(k, sigma), budget.epsilon, budget.delta)
    yield Way("ladder", _ladder(k, budget.epsilon), budget.epsilon, 0.0)
    yield Way("plain-majority", whole, None, None)


def in_total(votes: Votes, total: Guarantee, labels: int, *, together: bool) -> Iterator[Way]:
    """Yield the ways of choosing Q labels that spend one total."""
    k = votes.teachers
    whole = (2 * np.arange(k + 1) > k).astype(float)
    yield Way("private-majority", whole, total.epsilon, total.delta)
    if together:
        # Anything computed from the teachers is free; the least noise is none.
        yield Way("one-teacher", np.arange(k + 1) / k, votes.stated_epsilon, votes.delta)
    yield Way(
        "gnmax",
        noisy_max.label_probabilities(k, gnmax_noise(total, labels)),
        total.epsilon,
        total.delta,
    )
    share = pure_share(total, labels)
    yield Way("ladder", _ladder(k, share), total.epsilon, total.delta)
    yield Way("plain-majority", whole, None, None)


def _ladder(voters: int, epsilon: float) -> Floats:
    """Return the ladder's chances of class 1, which are optimal for two classes."""
    found = dpopt.design(dpopt.Plurality(voters, 2, epsilon, rule="ladder"))
    found._require_private()
    splits = [[voters - ones, ones] for ones in range(voters + 1)]
    pmfs = [found.setting.output_weights(found.table, plurality.Counts(n)) for n in splits]
    return np.array([pmf[1] / sum(pmf) for pmf in pmfs])


_CONFIG = Config()


@experiment("ensembles-mnist", config=_CONFIG)
def run(config: Config) -> Outcome:
    """Measure every way on the votes of every data set."""
    labels: list[dict[str, Cell]] = []
    totals: list[dict[str, Cell]] = []
    for dataset in track(config.datasets):
        votes = load_votes(SHIPPED[dataset])
        for allowance in config.allowance:
            where: dict[str, Cell] = {"dataset": dataset, "m": allowance}
            labels += _rows(where, votes, list(per_label(votes, allowance)), "surrogate")
        k, epsilon, shift = votes.teachers, votes.stated_epsilon, votes.delta
        for data, many in (("same images", k), ("own images", 1)):
            total = Guarantee(many * epsilon, many * shift)
            for asked in config.labels:
                where = {"dataset": dataset, "teachers_see": data, "labels": asked}
                found = list(in_total(votes, total, asked, together=many > 1))
                totals += _rows(where, votes, found, "gnmax")
    tables = {
        "labels": Table.of(labels),
        "totals": Table.of(totals),
        "methods": meanings(PRIVATE | PLAIN),
    }
    return Outcome(tables)


def _rows(
    where: Mapping[str, Cell], votes: Votes, found: list[Way], beside: str
) -> Iterator[dict[str, Cell]]:
    right = [way.right(votes) for way in found]
    (base,) = (at for way, at in zip(found, right, strict=True) if way.method == beside)
    for way, at in zip(found, right, strict=True):
        yield {
            **where,
            "method": way.method,
            "teachers": "private" if way.method in PRIVATE else "plain",
            **measured(at, base),
            "spent_epsilon": way.epsilon,
            "spent_delta": way.delta,
        }


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw accuracy against m, and against the number of labels at one total."""
    labels, totals = outcome.tables["labels"], outcome.tables["totals"]
    known = labels.distinct("dataset")
    many = totals.select(teachers_see="same images")
    figure, axes = drawing.panels(
        2 * len(known), len(known), up="expected accuracy of a label", height=0.72
    )
    totalled = {**LOOKS, "gnmax": LOOKS["gnmax-label"]}
    for place, dataset in enumerate(known):
        upper, lower = axes[place], axes[place + len(known)]
        part, below = labels.select(dataset=dataset), many.select(dataset=dataset)
        draw(upper, part, "m", "accuracy", LOOKS)
        room(upper, part, "accuracy", LOOKS)
        upper.set_xticks(sorted(set(part.column("m"))))
        upper.margins(x=0.06)
        upper.set_xlabel(r"$m$: a label spends $(m \varepsilon, m \Delta)$")
        upper.set_title(f"{TITLES[dataset]}, one label")
        draw(lower, below, "labels", "accuracy", totalled)
        room(lower, below, "accuracy", totalled)
        places(lower, sorted(set(below.column("labels"))))
        lower.set_xlabel(r"labels, $(K \varepsilon, K \Delta)$ in total")
        lower.set_title(f"{TITLES[dataset]}, many labels")
    return drawing.finish(figure, axes, error_note(labels))
