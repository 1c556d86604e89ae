"""Labels of handwritten digits from teachers without privacy, each on images of its own.

One replaced image changes one teacher, hence one vote: the label is private in one ballot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le
from matplotlib.figure import Figure

import dpopt
from dpopt.privacy import Guarantee
from experiments import drawing
from experiments.arrays import Floats, Ints
from experiments.data.groups import NAME
from experiments.ensembles.common import Looks, draw, error_note, meanings, measured, places, room
from experiments.ensembles.pmfs import (
    Rules,
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
from experiments.registry import Cell, Outcome, Table, experiment, track

_CLASSES = 10
# Images of each teacher, which no other one sees.
_PART = 40

LOOKS: Looks = {
    "optimal, uniform": ("optimal program", drawing.line("optimum")),
    "ladder": ("ladder", drawing.line("variant")),
    "permute-and-flip-audited": ("permute-and-flip, largest step", drawing.line("baseline")),
    "permute-and-flip": ("permute-and-flip", drawing.line("paper")),
    "exponential-audited": ("exponential, largest step", drawing.line("baseline-2")),
    "exponential": ("exponential mechanism", drawing.line("baseline-2", linestyle=":", marker="p")),
    "laplace": ("Laplace noise", drawing.line("noise")),
    "gnmax": (r"GNMax, $\delta > 0$", drawing.line("baseline-3")),
    "designed": (r"designed together, $\delta > 0$", drawing.line("optimum")),
    "plurality": ("plurality, not private", drawing.line("limit")),
}

MEANING = {
    "ladder": "u_y(l) = u_y(l - e_top + e_y) / r, with the largest r found for which no replaced "
    "ballot changes a probability by more than e^epsilon",
    "permute-and-flip-audited": "permute-and-flip with the largest step found for which the same "
    "holds",
    "permute-and-flip": "permute-and-flip with the step e^(epsilon / 2), as in the literature",
    "exponential-audited": "the exponential mechanism with the largest step found",
    "exponential": "the exponential mechanism with the step e^(epsilon / 2), as in the literature",
    "laplace": "largest count after Laplace noise of scale 2 / epsilon on each: a replaced ballot "
    "moves two counts by 1",
    "optimal, PRIOR": "the program's rule: it misses the plurality least often under a prior of "
    "the counts, and is proved in integers",
    "designed": "the program's rule for Q labels at one budget: under the better of a pure and a "
    "Gaussian curve it misses the plurality least often if all counts are equally likely, and the "
    "Q labels are proved private together",
    "gnmax": "largest count after Gaussian noise, the least for which the counts are (epsilon, "
    "delta)-private: a replaced ballot moves them by sqrt 2",
    "plurality": "largest count without noise, ties even: not private",
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

    @property
    def most(self) -> int:
        """The most teachers that vote."""
        return max(self.voters)

    def polled(self) -> list[Polled]:
        """Return the votes of the most teachers for each seed; the first K of them are fewer."""
        seeds = range(self.seed, self.seed + self.seeds)
        return [plain(self.most, _PART, self.queries, seed) for seed in seeds]


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

    @property
    def most(self) -> int:
        """The most teachers that vote."""
        return max(self.designed_voters, *self.voters)


@dataclass(frozen=True)
class Ballots:
    """The queries of all seeds, and the accuracy of a rule or of noise on them.

    Attributes:
        rules: of K ballots.
        variables: of the true class of each query, shape (seeds, queries).
        histograms: that differ, sorted, with the true class's count: shape (n, C).
        own: that count, shape (n,).
        inverse: the row of each query, shape (seeds, queries).
    """

    rules: Rules
    variables: Ints
    histograms: Ints
    own: Ints
    inverse: Ints = field(repr=False)

    @classmethod
    def of(cls, polled: list[Polled]) -> Ballots:
        """Count the votes of every seed."""
        rules = rules_of(polled[0].votes.shape[1], polled[0].classes)
        counts = np.concatenate([each.counts() for each in polled])
        labels = np.concatenate([each.labels for each in polled])
        own = counts[np.arange(len(labels)), labels]
        shape = (len(polled), -1)
        rows = np.column_stack([-np.sort(-counts, axis=1), own])
        found, inverse = np.unique(rows, axis=0, return_inverse=True)
        variables = variables_of(rules.inputs, counts, labels)
        return cls(
            rules, variables.reshape(shape), found[:, :-1], found[:, -1], inverse.reshape(shape)
        )

    def right(self, share: Floats) -> Floats:
        """Return the expected accuracy of a rule for each seed."""
        return share[self.variables].mean(axis=1)

    def noisy(self, chances: Floats) -> Floats:
        """Return the same from the chances of `histograms`."""
        return chances[self.inverse].mean(axis=1)


Choice = tuple[Floats, float | None, float | None, float | None]
"""Accuracy for each seed, the parameter, and epsilon and delta of a label."""


def answers(
    ballots: Ballots, epsilon: float, ranged: float, gnmax: tuple[float, float | None, float | None]
) -> dict[str, Choice]:
    """Return every way of choosing a label, by its name in `MEANING`.

    The parameter is r, s, scale or sigma; what a rule spends is audited.
    """
    rules = ballots.rules
    usual, wide, scale = math.exp(0.5 * epsilon), math.exp(0.5 * ranged), 2.0 / epsilon
    steps = {
        "ladder": rules.calibrated(rules.ladder, epsilon),
        "permute-and-flip-audited": rules.calibrated(rules.permute_and_flip, epsilon),
        "permute-and-flip": (rules.permute_and_flip(usual), usual),
        "exponential-audited": rules.calibrated(rules.exponential, epsilon),
        "exponential": (rules.exponential(wide), wide),
    }
    if steps["exponential-audited"][1] < wide:
        steps["exponential-audited"] = steps["exponential"]
    laplace = laplace_wins(ballots.histograms, ballots.own, scale)
    gaussian = gaussian_wins(ballots.histograms, ballots.own, gnmax[0])
    return {
        **{
            method: (ballots.right(share), step, rules.spent(share), 0.0)
            for method, (share, step) in steps.items()
        },
        "laplace": (ballots.noisy(laplace), scale, epsilon, 0.0),
        "gnmax": (ballots.noisy(gaussian), *gnmax),
        "plurality": (ballots.right(rules.plurality()), None, None, None),
    }


def _optimal(ballots: Ballots, epsilon: float, prior: str) -> Choice:
    """Return the program's choice: it misses the plurality least often under its prior."""
    sizes = ballots.rules.inputs.records, ballots.rules.inputs.categories
    found = dpopt.design(dpopt.Plurality(*sizes, epsilon, loss="error", prior=prior))
    found._require_private()
    share = found.table.probabilities
    return ballots.right(share), None, ballots.rules.spent(share), 0.0


def run(config: Config) -> Outcome:
    """Measure every way of choosing one label."""
    rows: list[dict[str, Cell]] = []
    polls: list[dict[str, Cell]] = []
    rivals: list[dict[str, Cell]] = []
    whole = config.polled()
    for voters in track(config.voters):
        polled = [each.first(voters) for each in whole]
        polls.append(_poll(polled))
        ballots = Ballots.of(polled)
        for epsilon in config.epsilon:
            sigma = gnmax_noise(Guarantee(epsilon, config.delta), 1)
            found = answers(ballots, epsilon, epsilon, (sigma, epsilon, config.delta))
            if epsilon in config.optimal and voters <= config.most_solved:
                for prior in config.priors:
                    found[f"optimal, {prior}"] = _optimal(ballots, epsilon, prior)
            where: dict[str, Cell] = {"voters": voters, "epsilon": epsilon}
            rows += _records(where, found)
            rivals += [
                where | {"beside": name} | measured(found["ladder"][0], found[name][0])
                for name in _RIVALS
            ]
    tables = {
        "accuracy": Table.of(rows),
        "ladder": Table.of(rivals),
        "teachers": Table.of(polls),
        "methods": meanings(MEANING),
    }
    return Outcome(tables, data=NAME)


def run_labels(config: LabelsConfig) -> Outcome:
    """Measure every way of choosing many labels at one budget."""
    rows, polls, whole = list[dict[str, Cell]](), list[dict[str, Cell]](), config.polled()
    for voters in track(config.voters):
        polled = [each.first(voters) for each in whole]
        polls.append(_poll(polled))
        ballots = Ballots.of(polled)
        for epsilon, labels in product(config.epsilon, config.labels):
            rows += _at_one_budget(ballots, Guarantee(epsilon, config.delta), labels)
    tables = {"accuracy": Table.of(rows)}
    if config.designed_labels:
        ballots = Ballots.of([each.first(config.designed_voters) for each in whole])
        cases = list(product(config.designed_epsilon, config.designed_labels))
        tables["designed"] = Table.of(
            [
                row
                for epsilon, labels in track(cases)
                for row in _at_one_budget(
                    ballots, Guarantee(epsilon, config.delta), labels, designed=True
                )
            ]
        )
    tables |= {"teachers": Table.of(polls), "methods": meanings(MEANING)}
    return Outcome(tables, data=NAME)


def _at_one_budget(
    ballots: Ballots, total: Guarantee, labels: int, *, designed: bool = False
) -> list[dict[str, Cell]]:
    """Return the rows of so many labels, also of those that are designed together."""
    pure, ranged = pure_share(total, labels), ranged_share(total, labels)
    found = answers(ballots, pure, ranged, (gnmax_noise(total, labels), None, None))
    inputs = ballots.rules.inputs
    if designed:
        budget = {"total_epsilon": total.epsilon, "total_delta": total.delta, "releases": labels}
        setting = dpopt.Plurality(inputs.records, inputs.categories, loss="error", **budget)
        together = dpopt.design(setting)
        together._require_private()
        share = ballots.right(together.table.probabilities)
        found["designed"] = share, together.curve_parameter, None, None
    where: dict[str, Cell] = {
        "voters": inputs.records,
        "total_epsilon": total.epsilon,
        "total_delta": total.delta,
        "labels": labels,
    }
    return _records(where, found)


def _records(where: Mapping[str, Cell], found: Mapping[str, Choice]) -> list[dict[str, Cell]]:
    beside = found["permute-and-flip"][0]
    return [
        {**where, "method": method, **measured(accuracy, beside)}
        | {"label_epsilon": epsilon, "label_delta": delta, "parameter": parameter}
        for method, (accuracy, parameter, epsilon, delta) in found.items()
    ]


def _poll(polled: list[Polled]) -> dict[str, Cell]:
    single = [(each.votes == each.labels[:, None]).mean() for each in polled]
    agreed = [(each.counts().max(axis=1) == each.votes.shape[1]).mean() for each in polled]
    gaps = [np.sort(each.counts(), axis=1) for each in polled]
    close = [(rows[:, -1] - rows[:, -2] <= 2).mean() for rows in gaps]
    return {
        "voters": polled[0].votes.shape[1],
        "single_teacher": float(np.mean(single)),
        "all_agree": float(np.mean(agreed)),
        "lead_of_2_at_most": float(np.mean(close)),
    }


def plot(outcome: Outcome) -> Figure:
    """Draw accuracy against epsilon, and below it the gain over permute-and-flip."""
    table = outcome.tables["accuracy"]
    parts = {f"$K = {k}$": table.select(voters=k) for k in table.distinct("voters")}
    return _drawn(parts, "epsilon", r"$\varepsilon$ of the label")


def plot_labels(outcome: Outcome) -> Figure:
    """Draw the same against the number of labels, for each budget."""
    table = outcome.tables["accuracy"]
    tables = [table.select(voters=table.column("voters")[0])]
    tables += [outcome.tables["designed"]] if "designed" in outcome.tables else []
    parts = {
        rf"$K = {part.column('voters')[0]}$, all labels: $\varepsilon = {epsilon:g}$": part.select(
            total_epsilon=epsilon
        )
        for part in tables
        for epsilon in part.distinct("total_epsilon")
    }
    return _drawn(parts, "labels", "number of labels")


def _drawn(parts: Mapping[str, Table], across: str, name: str) -> Figure:
    figure, axes = drawing.panels(2 * len(parts), len(parts), across=name, height=0.78)
    gained = {m: look for m, look in LOOKS.items() if m not in ("gnmax", "plurality")}
    for (title, part), upper, lower in zip(
        parts.items(), axes[: len(parts)], axes[len(parts) :], strict=True
    ):
        draw(upper, part, across, "accuracy", LOOKS)
        upper.set_title(title)
        room(upper, part, "accuracy")
        draw(lower, part, across, "gain", gained)
        room(lower, part, "gain", gained)
        lower.set_title("over permute-and-flip")
        upper.set_ylabel("accuracy")
        lower.set_ylabel("gain")
        for each in (upper, lower):
            places(each, part.distinct(across))
    return drawing.finish(figure, axes, error_note(*parts.values()))


experiment(
    "ensembles-digits-plain",
    config=Config(seeds=40, optimal=(0.2, 0.3, 0.5, 1.0, 2.0), priors=("uniform", "dirichlet:0.1")),
    quick=Config(),
    effort=("seeds", "seed"),
)(run).figure(plot)
experiment(
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
)(run_labels).figure(plot_labels)
