"""Labels of handwritten digits from teachers without privacy, each on images of its own.

One replaced image changes one teacher, hence one vote: the label is private in one ballot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt, Le
from matplotlib.figure import Figure

import dpopt
from dpopt.privacy import Guarantee
from experiments import drawing
from experiments.arrays import Floats
from experiments.data.groups import NAME
from experiments.ensembles.common import FOLDER, draw, error_note, measured, places, thin
from experiments.ensembles.pmfs import (
    gaussian_wins,
    gnmax_noise,
    laplace_wins,
    pure_share,
    ranged_share,
    rules_of,
    variables_of,
)
from experiments.ensembles.teachers import Polled, plain
from experiments.parameters import Count, Probability, Rising, Seed, Several, configuration
from experiments.registry import Cell, Outcome, Table, experiment, meanings, track
from experiments.verdicts import proved

# Images of each teacher, which no other one sees.
_PART = 40

LOOKS: drawing.Looks = {
    "optimal, uniform": ("optimal program", thin("optimum")),
    "ladder": ("ladder", thin("variant")),
    "permute-and-flip-audited": ("permute-and-flip, largest step", thin("baseline")),
    "permute-and-flip": ("permute-and-flip", thin("paper")),
    "exponential-audited": ("exponential, largest step", thin("baseline-2")),
    "exponential": ("exponential mechanism", thin("baseline-2", linestyle=":", marker="p")),
    "laplace": ("Laplace noise", thin("noise")),
    "gnmax": (r"GNMax, $\delta > 0$", thin("baseline-3")),
    "designed": (r"designed together, $\delta > 0$", thin("optimum")),
    "plurality": ("plurality, not private", thin("limit")),
}
# Rules that spend all of epsilon, as the ladder does.
_RIVALS = ("permute-and-flip-audited", "exponential-audited")


@configuration
class Votes:
    """What is voted on, in every item on teachers without privacy.

    Attributes:
        voters: each number of teachers K.
        queries: images to label, which no teacher sees.
        seeds: splits of the images, over which means and standard errors are taken.
        seed: of the first split; the others follow it.
        delta: of what is not purely private.
    """

    voters: Several[Annotated[int, Ge(1), Le(40)]] = (30, 20)
    queries: Count = 597
    seeds: Count = 5
    seed: Seed = 0
    delta: Probability = 1e-5

    def polled(self, most: int) -> list[Polled]:
        """Return the votes of the most teachers for each seed; the first K of them are fewer."""
        seeds = range(self.seed, self.seed + self.seeds)
        return [plain(most, _PART, self.queries, seed) for seed in seeds]


@configuration
class Config(Votes):
    """Parameters of one label.

    Attributes:
        epsilon: each budget of one label, in nats, rising.
        optimal: those of them at which the program is solved; none for no program.
        priors: of the program's counts, "uniform" or "dirichlet:A".
        most_solved: K up to which it is.
    """

    epsilon: Rising[Annotated[float, Gt(0.0), Le(10.0)]] = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
    optimal: tuple[float, ...] = (0.2, 0.3, 0.5)
    priors: tuple[str, ...] = ("uniform",)
    most_solved: int = 20


@configuration
class LabelsConfig(Votes):
    """Parameters of many labels.

    Attributes:
        epsilon: each budget of all labels together, in nats, rising.
        labels: each number of labels Q, rising.
        designed_voters: K of the labels that are designed together.
        designed_epsilon: budgets of them, rising.
        designed_labels: numbers Q of them, rising; none for no design.
    """

    voters: Several[Annotated[int, Ge(1), Le(40)]] = (30,)
    epsilon: Rising[Annotated[float, Gt(0.0), Le(20.0)]] = (1.0, 5.0)
    labels: Rising[Annotated[int, Ge(1), Le(10_000)]] = (1, 3, 10, 30, 100)
    designed_voters: Annotated[int, Ge(2), Le(20)] = 10
    designed_epsilon: Rising[Annotated[float, Gt(0.0), Le(20.0)]] = (5.0,)
    designed_labels: tuple[Annotated[int, Ge(1), Le(1_000)], ...] = (10, 30)


class Ballots:
    """The queries of all seeds, and the accuracy of a rule or of noise on them.

    Attributes:
        rules: of K ballots.
        variables: of the true class of each query, shape (seeds, queries).
        histograms: that differ, sorted, with the true class's count: shape (n, C).
        own: that count, shape (n,).
    """

    def __init__(self, polled: list[Polled]) -> None:
        self.rules = rules_of(polled[0].votes.shape[1], polled[0].classes)
        counts = np.concatenate([each.counts() for each in polled])
        labels = np.concatenate([each.labels for each in polled])
        shape, own = (len(polled), -1), counts[np.arange(len(labels)), labels]
        rows = np.column_stack([-np.sort(-counts, axis=1), own])
        distinct, places = np.unique(rows, axis=0, return_inverse=True)
        self.variables = variables_of(self.rules.inputs, counts, labels).reshape(shape)
        self.histograms, self.own = distinct[:, :-1], distinct[:, -1]
        self._places = places.reshape(shape)

    def right(self, share: Floats) -> Floats:
        """Return the expected accuracy of a rule for each seed."""
        return share[self.variables].mean(axis=1)

    def noisy(self, chances: Floats) -> Floats:
        """Return the same from the chances of `histograms`."""
        return chances[self._places].mean(axis=1)


Choice = tuple[Floats, float | None, float | None, float | None]
"""Accuracy for each seed, the parameter, and epsilon and delta of a label."""


def answers(
    ballots: Ballots, epsilon: float, ranged: float, gnmax: tuple[float, float | None, float | None]
) -> dict[str, Choice]:
    """Return every way of choosing a label, by its name in ``items.toml``.

    The parameter is r, s, scale or sigma; what a rule spends is audited.
    """
    rules = ballots.rules
    usual, wide, scale = math.exp(0.5 * epsilon), math.exp(0.5 * ranged), 2.0 / epsilon
    exponential, largest = (rules.exponential(wide), wide), rules.calibrated
    audited = largest(rules.exponential, epsilon)
    steps = {
        "ladder": largest(rules.ladder, epsilon),
        "permute-and-flip-audited": largest(rules.permute_and_flip, epsilon),
        "permute-and-flip": (rules.permute_and_flip(usual), usual),
        "exponential-audited": exponential if audited[1] < wide else audited,
        "exponential": exponential,
    }
    laplace = laplace_wins(ballots.histograms, ballots.own, scale)
    gaussian = gaussian_wins(ballots.histograms, ballots.own, gnmax[0])
    choices: dict[str, Choice] = {
        method: (ballots.right(share), step, rules.spent(share), 0.0)
        for method, (share, step) in steps.items()
    }
    return choices | {
        "laplace": (ballots.noisy(laplace), scale, epsilon, 0.0),
        "gnmax": (ballots.noisy(gaussian), *gnmax),
        "plurality": (ballots.right(rules.plurality()), None, None, None),
    }


def _optimal(ballots: Ballots, epsilon: float, prior: str) -> Choice:
    """Return the program's choice: it misses the plurality least often under its prior."""
    sizes = ballots.rules.inputs.records, ballots.rules.inputs.categories
    design = proved(dpopt.design(dpopt.Plurality(*sizes, epsilon, loss="error", prior=prior)))
    share = design.table.probabilities
    return ballots.right(share), None, ballots.rules.spent(share), 0.0


@experiment(
    "ensembles-digits-plain",
    config=Config(seeds=40, optimal=(0.2, 0.3, 0.5, 1.0, 2.0), priors=("uniform", "dirichlet:0.1")),
    quick=Config(),
    effort=("seeds", "seed"),
)
def run(config: Config) -> Outcome:
    """Measure every way of choosing one label."""
    rows, rivals = list[dict[str, Cell]](), list[dict[str, Cell]]()
    polled = config.polled(max(config.voters))
    for voters in track(config.voters):
        ballots = Ballots([each.first(voters) for each in polled])
        for epsilon in config.epsilon:
            sigma = gnmax_noise(Guarantee(epsilon, config.delta), 1)
            choices = answers(ballots, epsilon, epsilon, (sigma, epsilon, config.delta))
            if epsilon in config.optimal and voters <= config.most_solved:
                for prior in config.priors:
                    choices[f"optimal, {prior}"] = _optimal(ballots, epsilon, prior)
            where: dict[str, Cell] = {"voters": voters, "epsilon": epsilon}
            rows += _records(where, choices)
            rivals += [
                where | {"beside": name} | measured(choices["ladder"][0], choices[name][0])
                for name in _RIVALS
            ]
    tables = {"accuracy": Table.of(rows), "ladder": Table.of(rivals)}
    return Outcome(tables | _teachers(config, polled), data=NAME)


@experiment(
    "ensembles-digits-labels",
    config=LabelsConfig(
        voters=(30, 20),
        seeds=40,
        labels=(1, 3, 10, 30, 100, 300, 1000),
        designed_epsilon=(1.0, 5.0),
        designed_labels=(1, 3, 10, 30, 100),
    ),
    quick=LabelsConfig(),
    effort=("seeds", "seed"),
)
def run_labels(config: LabelsConfig) -> Outcome:
    """Measure every way of choosing many labels at one budget."""
    rows = list[dict[str, Cell]]()
    polled = config.polled(max(config.designed_voters, *config.voters))
    for voters in track(config.voters):
        ballots = Ballots([each.first(voters) for each in polled])
        for epsilon, labels in product(config.epsilon, config.labels):
            rows += _at_one_budget(ballots, Guarantee(epsilon, config.delta), labels)
    tables = {"accuracy": Table.of(rows)}
    if config.designed_labels:
        ballots = Ballots([each.first(config.designed_voters) for each in polled])
        rows = []
        for epsilon, labels in track(
            list(product(config.designed_epsilon, config.designed_labels))
        ):
            rows += _at_one_budget(ballots, Guarantee(epsilon, config.delta), labels, designed=True)
        tables["designed"] = Table.of(rows)
    return Outcome(tables | _teachers(config, polled), data=NAME)


def _at_one_budget(
    ballots: Ballots, total: Guarantee, labels: int, *, designed: bool = False
) -> list[dict[str, Cell]]:
    """Return the rows of so many labels, also of those that are designed together."""
    inputs, noise = ballots.rules.inputs, gnmax_noise(total, labels)
    shares = pure_share(total, labels), ranged_share(total, labels)
    choices = answers(ballots, *shares, (noise, None, None))
    if designed:
        together: dict[str, Any] = {"total_epsilon": total.epsilon, "total_delta": total.delta}
        together["releases"] = labels
        setting = dpopt.Plurality(inputs.records, inputs.categories, loss="error", **together)
        design = proved(dpopt.design(setting))
        share = ballots.right(design.table.probabilities)
        choices["designed"] = share, design.curve_parameter, None, None
    where: dict[str, Cell] = {"voters": inputs.records, "total_epsilon": total.epsilon}
    return _records(where | {"total_delta": total.delta, "labels": labels}, choices)


def _records(where: Mapping[str, Cell], choices: Mapping[str, Choice]) -> list[dict[str, Cell]]:
    beside = choices["permute-and-flip"][0]
    return [
        {**where, "method": method, **measured(accuracy, beside)}
        | {"label_epsilon": epsilon, "label_delta": delta, "parameter": parameter}
        for method, (accuracy, parameter, epsilon, delta) in choices.items()
    ]


def _teachers(config: Votes, polled: list[Polled]) -> dict[str, Table]:
    """Return how good the teachers are, and what the ways of choosing a label mean."""
    polls: list[dict[str, Cell]] = []
    for voters in config.voters:
        ensembles = [each.first(voters) for each in polled]
        ordered = [np.sort(each.counts(), axis=1) for each in ensembles]
        shares = {
            "single_teacher": [(e.votes == e.labels[:, None]).mean() for e in ensembles],
            "all_agree": [(counts[:, -1] == voters).mean() for counts in ordered],
            "lead_of_2_at_most": [(n[:, -1] - n[:, -2] <= 2).mean() for n in ordered],
        }
        means = {name: float(np.mean(values)) for name, values in shares.items()}
        polls.append({"voters": voters, **means})
    return {"teachers": Table.of(polls), "methods": meanings(FOLDER, "ensembles-digits-plain")}


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw accuracy against epsilon, and below it the gain over permute-and-flip."""
    table = outcome.tables["accuracy"]
    panels = {f"$K = {k}$": table.select(voters=k) for k in table.distinct("voters")}
    return _drawn(panels, "epsilon", r"$\varepsilon$ of the label")


@run_labels.figure
def plot_labels(outcome: Outcome) -> Figure:
    """Draw the same against the number of labels, for each budget."""
    table = outcome.tables["accuracy"]
    first = table.select(voters=table.column("voters")[0])
    panels = {
        rf"$K = {k}$, all labels: $\varepsilon = {epsilon:g}$": each.select(total_epsilon=epsilon)
        for each in (first, *(outcome.tables[n] for n in outcome.tables if n == "designed"))
        for k, epsilon in each.distinct("voters", "total_epsilon")
    }
    return _drawn(panels, "labels", "number of labels")


def _drawn(panels: Mapping[str, Table], across: str, name: str) -> Figure:
    count = len(panels)
    figure, axes = drawing.panels(2 * count, count, across=name, height=0.78)
    gained = {m: look for m, look in LOOKS.items() if m not in ("gnmax", "plurality")}
    for upper, lower, (title, part) in zip(axes, axes[count:], panels.items(), strict=False):
        draw(upper, part, across, "accuracy", LOOKS)
        draw(lower, part, across, "gain", gained)
        upper.set(title=title, ylabel="accuracy")
        lower.set(title="over permute-and-flip", ylabel="gain")
        for each in (upper, lower):
            places(each, part.distinct(across))
    return drawing.finish(figure, axes, error_note(*panels.values()))
