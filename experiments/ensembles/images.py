"""Labels of MNIST and Fashion-MNIST images, 5 against 8, from the shipped votes of teachers.

K = 11 teachers trained by DP-SGD, (epsilon, Delta)-private each, and as many without privacy. One
label may spend (m epsilon, m Delta); of many labels, two totals are compared: what all private
teachers spend together if all see the same images, and what one of them spends, which is enough
where each has images of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import plurality
from dpopt.privacy import Guarantee
from experiments import drawing
from experiments.arrays import Floats
from experiments.ensembles.common import FOLDER, draw, error_note, measured, places, thin
from experiments.ensembles.pmfs import gnmax_noise, pure_share
from experiments.majority import noisy_max
from experiments.majority.baselines import baseline, chances_of
from experiments.majority.pate.votes import SHIPPED, Votes, load_votes
from experiments.parameters import Rising, Some, configuration
from experiments.registry import Cell, Outcome, Table, experiment, meanings, track
from experiments.verdicts import proved

TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}
# Ways that read the votes of the teachers without privacy; the others read those of private ones.
PLAIN = ("gnmax", "gnmax-label", "ladder", "plain-majority")
LOOKS: drawing.Looks = {
    "common": ("DaRRM, one $p$ for all (default)", thin("optimum")),
    "independent": ("DaRRM, independent $p_i$", thin("variant")),
    "surrogate": ("DaRRM, the paper's objective", thin("paper")),
    "subsampling": ("DaRRM, subsampling", thin("baseline")),
    "gnmax-label": ("GNMax, plain teachers", thin("baseline-3")),
    "ladder": ("ladder, plain teachers", thin("baseline-2")),
    "private-majority": (r"private teachers, $(K \varepsilon, K \Delta)$", thin("noise")),
    "plain-majority": ("majority of plain teachers, not private", thin("limit")),
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


class Way(NamedTuple):
    """A way of choosing a label.

    Attributes:
        method: its name in ``items.toml``.
        chances: Pr[label 1 | l ones among the votes], l = 0..K, shape (K + 1,).
        spent: by a label; None if it is not private.
    """

    method: str
    chances: Floats
    spent: Guarantee | None

    @property
    def teachers(self) -> str:
        """Whose votes it reads."""
        return "plain" if self.method in PLAIN else "private"

    def right(self, votes: Votes) -> Floats:
        """Return the expected accuracy in each training run."""
        return votes.right(self.teachers, self.chances).mean(axis=1)


def per_label(votes: Votes, allowance: int) -> Iterator[Way]:
    """Yield the ways of choosing one label at (m epsilon, m Delta), and what is beside them."""
    k, epsilon, shift = votes.teachers, votes.stated_epsilon, votes.delta
    setting = dpopt.Majority(k, epsilon, allowance, shift, allowance * shift)
    budget = setting.guarantee
    for method, changes in {
        "common": {"prior": "common-uniform:0,1"},
        "independent": {"prior": "uniform:0,1"},
        "least-regret": {"objective": "least-regret"},
        "surrogate": {"objective": "surrogate"},
    }.items():
        gamma = proved(dpopt.design(replace(setting, **changes))).gamma
        yield Way(method, chances_of(gamma), budget)
    for method in ("subsampling", "constant"):
        gamma = proved(baseline(setting, method, allowance)).gamma
        yield Way(method, chances_of(gamma), budget)
    ones = np.arange(k + 1)
    whole = (2 * ones > k).astype(float)
    yield Way("one-teacher", ones / k, Guarantee(epsilon, shift))
    yield Way("private-majority", whole, Guarantee(k * epsilon, k * shift))
    noises = {"gnmax": gnmax_noise(budget, 1), "gnmax-label": noisy_max.label_sigma(k, budget)}
    for method, sigma in noises.items():
        yield Way(method, noisy_max.label_probabilities(k, sigma), budget)
    yield Way("ladder", _ladder(k, budget.epsilon), Guarantee(budget.epsilon))
    yield Way("plain-majority", whole, None)


def in_total(votes: Votes, total: Guarantee, labels: int, *, together: bool) -> Iterator[Way]:
    """Yield the ways of choosing Q labels that spend one total."""
    k = votes.teachers
    whole = (2 * np.arange(k + 1) > k).astype(float)
    yield Way("private-majority", whole, total)
    if together:
        # Anything computed from the teachers is free; the least noise is none.
        yield Way("one-teacher", np.arange(k + 1) / k, Guarantee(votes.stated_epsilon, votes.delta))
    sigma = gnmax_noise(total, labels)
    yield Way("gnmax", noisy_max.label_probabilities(k, sigma), total)
    yield Way("ladder", _ladder(k, pure_share(total, labels)), total)
    yield Way("plain-majority", whole, None)


def _ladder(voters: int, epsilon: float) -> Floats:
    """Return the ladder's chances of class 1, which are optimal for two classes."""
    design = proved(dpopt.design(dpopt.Plurality(voters, 2, epsilon, rule="ladder")))
    splits = [[voters - ones, ones] for ones in range(voters + 1)]
    pmfs = [design.setting.output_weights(design.table, plurality.Counts(n)) for n in splits]
    return np.array([pmf[1] / sum(pmf) for pmf in pmfs])


@experiment("ensembles-mnist", config=Config())
def run(config: Config) -> Outcome:
    """Measure every way on the votes of every data set."""
    labels: list[dict[str, Cell]] = []
    totals: list[dict[str, Cell]] = []
    for dataset in track(config.datasets):
        votes = load_votes(SHIPPED[dataset])
        for allowance in config.allowance:
            where: dict[str, Cell] = {"dataset": dataset, "m": allowance}
            labels += _rows(where, votes, per_label(votes, allowance), "surrogate")
        for data, many in (("same images", votes.teachers), ("own images", 1)):
            total = Guarantee(many * votes.stated_epsilon, many * votes.delta)
            for asked in config.labels:
                where = {"dataset": dataset, "teachers_see": data, "labels": asked}
                ways = in_total(votes, total, asked, together=many > 1)
                totals += _rows(where, votes, ways, "gnmax")
    methods = meanings(FOLDER, "ensembles-mnist")
    return Outcome({"labels": Table.of(labels), "totals": Table.of(totals), "methods": methods})


def _rows(
    where: Mapping[str, Cell], votes: Votes, ways: Iterable[Way], beside: str
) -> Iterator[dict[str, Cell]]:
    accuracies = [(way, way.right(votes)) for way in ways]
    (base,) = (accuracy for way, accuracy in accuracies if way.method == beside)
    for way, accuracy in accuracies:
        yield (
            {**where, "method": way.method, "teachers": way.teachers}
            | measured(accuracy, base)
            | {"spent_epsilon": way.spent and way.spent.epsilon}
            | {"spent_delta": way.spent and way.spent.delta}
        )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw accuracy against m, and against the number of labels at one total."""
    labels, totals = outcome.tables["labels"], outcome.tables["totals"]
    datasets = labels.distinct("dataset")
    many = totals.select(teachers_see="same images")
    figure, axes = drawing.panels(
        2 * len(datasets), len(datasets), up="expected accuracy of a label", height=0.72
    )
    totalled = {**LOOKS, "gnmax": LOOKS["gnmax-label"]}
    for upper, lower, dataset in zip(axes, axes[len(datasets) :], datasets, strict=False):
        one, below = labels.select(dataset=dataset), many.select(dataset=dataset)
        draw(upper, one, "m", "accuracy", LOOKS)
        upper.set_xticks(sorted(set(one.column("m"))))
        upper.margins(x=0.06)
        upper.set_xlabel(r"$m$: a label spends $(m \varepsilon, m \Delta)$")
        upper.set_title(f"{TITLES[dataset]}, one label")
        draw(lower, below, "labels", "accuracy", totalled)
        places(lower, sorted(set(below.column("labels"))))
        lower.set_xlabel(r"labels, $(K \varepsilon, K \Delta)$ in total")
        lower.set_title(f"{TITLES[dataset]}, many labels")
    return drawing.finish(figure, axes, error_note(labels))
