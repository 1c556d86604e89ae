"""Labels of handwritten digits from private voters that all see the same images.

Each voter is epsilon-DP by itself; one label of K of them may spend m epsilon. Voters are of two
kinds. "response": randomised response of one classifier's prediction, drawn afresh for each label.
"output": multinomial regression with noise on its weights, trained once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Gt, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import ParameterError
from dpopt.multiclass.setting import sampled_plurality
from dpopt.table import rounded
from dpopt.verify import corner_count
from experiments import drawing
from experiments.arrays import Floats, Ints
from experiments.data.groups import NAME
from experiments.ensembles.common import FOLDER, draw, error_note, measured, thin
from experiments.ensembles.pmfs import Rules, response, rules_of, variables_of
from experiments.ensembles.teachers import Fitted, fitted
from experiments.parameters import Count, Rising, Seed, Some, configuration
from experiments.registry import Cell, Outcome, Table, experiment, meanings, track
from experiments.verdicts import proved

# Cells along a side of an image, whose ink is a feature; the regularisation of the regression; and
# the share of the images that voters are trained on, the others being asked.
_FITTED = (4, 0.1, 2 / 3)
# Of corners of private voters: eleven voters over three classes have 20,670.
_MOST_CONFIGURATIONS = 100_000

_SHORT = {"response": "randomised response", "output": "noise on weights"}

LOOKS: drawing.Looks = {
    "one-strong": (r"one voter at $m \varepsilon$", thin("baseline-3")),
    "optimal": ("optimal program", thin("optimum")),
    "ladder": ("ladder", thin("variant")),
    "sampled": ("plurality of $m$ voters", thin("baseline")),
    "one-voter": ("one voter", thin("noise")),
    "double": ("plurality of $2 m - 1$, spends more", thin("baseline-2")),
    "all": (r"plurality of all, spends $K \varepsilon$", thin("limit")),
}


@configuration
class Config:
    """Parameters of the tables.

    Attributes:
        digits: each set of classes, three digits or more, in one word.
        teachers: kinds of voters, "response" and "output".
        epsilon: of each voter, in nats, rising.
        allowance: each m, a whole number; one label may spend m epsilon.
        voters: K, above every m.
        seeds: splits of the images, over which means and standard errors are taken.
        seed: of the first split; the others follow it.
        draws: of the noise of K voters in each split, for "output".
    """

    digits: Some[str] = ("358", "0123456789")
    teachers: Some[Literal["response", "output"]] = ("response", "output")
    epsilon: Rising[Annotated[float, Gt(0.0), Le(10.0)]] = (0.5, 1.0, 2.0)
    allowance: Rising[Count] = (1, 3, 5)
    voters: Annotated[int, Ge(2), Le(25)] = 11
    seeds: Count = 5
    seed: Seed = 0
    draws: Count = 4

    def __post_init__(self) -> None:
        if not all(len({*w}) == len(w) >= 3 and w.isdecimal() for w in self.digits):
            raise ParameterError(
                f"digits is {self.digits}; it must hold words of three digits or more, none twice."
            )


class Way(NamedTuple):
    """A way of choosing a label.

    Attributes:
        method: its name in ``items.toml``.
        voters: K, of which one is asked, some, or all.
        voter_epsilon: of each of them.
        share: its distribution, by the variables of that many ballots.
        spent: epsilon of a label, by a bound.
    """

    method: str
    voters: int
    voter_epsilon: float
    share: Floats
    spent: float


@lru_cache(maxsize=256)
def _designed(rule: Any, voters: int, classes: int, epsilon: float, allowance: int) -> Floats:  # noqa: ANN401
    """Return the distribution of a design, by the variables of its histograms; it is proved."""
    setting = dpopt.Multiclass(voters, classes, epsilon, allowance, rule=rule)
    return proved(dpopt.design(setting)).kernel


@lru_cache(maxsize=256)
def _sampled(voters: int, classes: int, count: int, epsilon: float) -> tuple[Floats, float]:
    """Return the plurality of some of the voters, as a rule on all votes, and what it spends.

    Of few configurations it is the exact largest ratio, otherwise what those voters spend together.
    """
    inputs = rules_of(voters, classes).inputs
    exact = sampled_plurality(inputs, count)
    share = np.array([float(value) for value in exact])
    spent = count * epsilon
    if solved(voters, classes):
        setting = dpopt.Multiclass(voters, classes, epsilon, voters)
        spent = min(spent, setting.spent(rounded(inputs, exact), None, 0.0).upper)
    return share, spent


def solved(voters: int, classes: int) -> bool:
    """Whether the program is solved, and what is spent found exactly: for few configurations."""
    return corner_count(voters, classes) <= _MOST_CONFIGURATIONS


def ways(config: Config, classes: int, epsilon: float, allowance: int) -> Iterator[Way]:
    """Yield the ways of choosing a label that may spend m epsilon, and what they are beside."""
    voters, budget = config.voters, allowance * epsilon
    rules = ("optimal", "ladder", "permute-and-flip")
    for rule in rules if solved(voters, classes) else rules[1:]:
        share = _designed(rule, voters, classes, epsilon, allowance)
        yield Way(rule, voters, epsilon, share, budget)
    asked = {"one-voter": 1, "sampled": allowance, "double": min(2 * allowance - 1, voters)}
    for method, count in (asked | {"all": voters}).items():
        share, spent = _sampled(voters, classes, count, epsilon)
        yield Way(method, voters, epsilon, share, spent)
    strong, _ = _sampled(voters, classes, 1, budget)
    yield Way("one-strong", voters, budget, strong, budget)


def response_right(rules: Rules, share: Floats, epsilon: float) -> float:
    """Return the chance that a rule on K randomised responses of one class answers it.

    Over all histograms, sorted ones times their orders: K! / prod n_i! p^c q^(K - c), c the count
    of that class.
    """
    inputs = rules.inputs
    true, other = response(epsilon, inputs.categories)
    total = 0.0
    for variable, (row, count) in enumerate(zip(inputs.rows, inputs.values, strict=True)):
        ways_to_fall = math.factorial(inputs.records)
        for value in inputs.histograms[row].tolist():
            ways_to_fall //= math.factorial(value)
        # The orders of the other classes' counts: those of all, by the share of this count.
        orders = inputs.row_sizes[row] * int(inputs.counts[variable]) // inputs.categories
        chance = true ** int(count) * other ** int(inputs.records - count)
        total += ways_to_fall * orders * chance * float(share[variable])
    return total


def _of_responses(way: Way, models: list[Fitted]) -> Floats:
    classes = len(models[0].weights)
    right = response_right(rules_of(way.voters, classes), way.share, way.voter_epsilon)
    known = np.array([(model.predicted == model.labels).mean() for model in models])
    return known * right + (1.0 - known) * (1.0 - right) / (classes - 1)


def _variables(models: list[Fitted], draws: int, epsilon: float, voters: int) -> Ints:
    """Return the variable of the true class of each query, shape (seeds, draws x queries)."""
    variables = []
    for model in models:
        rng = np.random.default_rng([model.seed, voters, round(1e6 * epsilon)])
        polled = [model.noisy(epsilon, voters, rng) for _ in range(draws)]
        counts = np.concatenate([each.counts() for each in polled])
        labels = np.concatenate([each.labels for each in polled])
        inputs = rules_of(voters, polled[0].classes).inputs
        variables.append(variables_of(inputs, counts, labels))
    return np.array(variables)


@experiment(
    "ensembles-digits-private",
    config=Config(seeds=20, draws=20),
    quick=Config(),
    effort=("seeds", "seed", "draws"),
)
def run(config: Config) -> Outcome:
    """Measure every way for every kind of voters."""
    rows: list[dict[str, Cell]] = []
    classifiers: list[dict[str, Cell]] = []
    for word in track(config.digits):
        digits = tuple(sorted(map(int, word)))
        seeds = range(config.seed, config.seed + config.seeds)
        models = [fitted(digits, *_FITTED, seed) for seed in seeds]
        right = [float((model.predicted == model.labels).mean()) for model in models]
        classifiers.append(
            {"digits": word, "accuracy": float(np.mean(right)), "images": models[0].images}
            | {"asked": len(models[0].labels), "sensitivity": models[0].sensitivity}
        )
        for kind, epsilon in product(config.teachers, config.epsilon):
            rows += _rows(config, word, kind, epsilon, models)
    kinds = [row for row in meanings(FOLDER, "voters", "voters").rows if row[0] in config.teachers]
    tables = {
        "accuracy": Table.of(rows),
        "classifiers": Table.of(classifiers),
        "methods": meanings(FOLDER, "ensembles-digits-private"),
        "voters": Table("", ("voters", "meaning"), tuple(kinds)),
    }
    return Outcome(tables, data=NAME)


def _rows(
    config: Config, word: str, kind: str, epsilon: float, models: list[Fitted]
) -> Iterator[dict[str, Cell]]:
    # Voters of one epsilon are the same in every way.
    drawn = cache(partial(_variables, models, config.draws))

    def accuracy_of(way: Way) -> Floats:
        if kind == "response":
            return _of_responses(way, models)
        return way.share[drawn(way.voter_epsilon, way.voters)].mean(axis=1)

    for allowance in config.allowance:
        every = ways(config, len(word), epsilon, allowance)
        accuracies = [(way, accuracy_of(way)) for way in every]
        (beside,) = (accuracy for way, accuracy in accuracies if way.method == "sampled")
        where: dict[str, Cell] = {"digits": word, "voters": kind, "epsilon": epsilon}
        for way, accuracy in accuracies:
            within = way.spent <= allowance * epsilon * (1.0 + 1e-9)
            yield (
                where
                | {"m": allowance, "method": way.method, **measured(accuracy, beside)}
                | {"spent_epsilon": way.spent, "within_budget": within}
            )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw accuracy against m for each set of digits and kind of voters, at the middle epsilon."""
    table = outcome.tables["accuracy"]
    epsilons = table.distinct("epsilon")
    middle = epsilons[len(epsilons) // 2]
    table = table.select(epsilon=middle)
    groups = table.distinct("digits", "voters")
    figure, panels = drawing.panels(
        len(groups), 2, across="allowance $m$", up="expected accuracy of a label", height=0.7
    )
    for axes, (word, kind) in zip(panels, groups, strict=True):
        part = table.select(digits=word, voters=kind)
        draw(axes, part, "m", "accuracy", LOOKS)
        axes.set(title=f"{len(word)} digits, {_SHORT[kind]}", xticks=sorted(set(part.column("m"))))
        axes.margins(x=0.06)
    note = rf"Voters are $\varepsilon$-DP, $\varepsilon = {middle:g}$ each."
    return drawing.finish(figure, panels, note, error_note(table))
