"""Figure 4: largest distance over the users of each age group, in the format of MovieLens 1M."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from annotated_types import Ge
from matplotlib.figure import Figure
from pydantic import AfterValidator

from dpopt import ParameterError
from experiments.data.generate import generate_movielens
from experiments.data.groups import UserGroup
from experiments.data.movielens import AGES, GENRES, NAMES, USERS, load_movielens, release_of
from experiments.parameters import Count, Seed, Several, Some, configuration
from experiments.public_prior.common import Epsilon, drawn, measured, of_bound
from experiments.registry import Comparison, Outcome, Table, experiment
from experiments.verdicts import not_comparable, observed, rounds_to

_YOUNG = "18-24"
_FIGURE_4 = "Ages 18-24: 0.62 with the mollifier, below 0.3 with Algorithm 1 (Figure 4)."

# What the paper measures: MovieLens 1M, its users, epsilon and prior.
_RELEASE, _EPSILON, _PRIOR = "1m", 4.0, "total"
GENERATED = "generated data"
_GROUPS = tuple(AGES.values())


def _group(name: str) -> str:
    if name not in _GROUPS:
        raise ValueError(f"hold some of {'; '.join(_GROUPS)}")
    return name


@configuration
class Config:
    """Parameters of the figure; epsilon, groups and prior as in the paper.

    Attributes:
        path: folder of MovieLens 1M or 100k, recognised by its files; None for generated
            data.
        epsilon: one or more, in nats; a panel for each.
        groups: age groups of MovieLens 1M, such as "18-24;25-34".
        prior: of a group: "total" of its ratings, or "average" of its users' pmfs.
        users: of the generated data.
        movies: of the generated data, at least one for each of the 18 genres.
        seed: of the generated data.
    """

    path: str | None = None
    epsilon: Several[Epsilon] = (_EPSILON,)
    groups: Some[Annotated[str, AfterValidator(_group)]] = _GROUPS
    prior: Literal["total", "average"] = _PRIOR
    users: Count = 1000
    movies: Annotated[int, Ge(len(GENRES))] = 1000
    seed: Seed = 4


@experiment(
    "prior-figure-4",
    config=Config(users=6040, movies=3883),
    quick=Config(),
    effort=("path", "users", "movies", "seed"),
)
def run(config: Config) -> Outcome:
    """Measure every method on the users of every age group."""
    every = _every_group(config)
    groups = [group for group in every if group.value in config.groups]
    if not groups:
        raise ParameterError(
            f"groups is {config.groups!r}; it must hold an age group that has users."
        )
    source, other = _source(config, sum(group.users for group in every))
    table = measured(groups, config.prior, config.epsilon, source, "age")
    generated = config.path is None
    data = "generated data in the format of MovieLens 1M" if generated else source
    return Outcome({"distances": table}, of_movielens(table, other), data, generated)


def _source(config: Config, users: int) -> tuple[str, str | None]:
    """Return whose data they are, and what is not as in the paper, or None."""
    if config.path is None:
        return GENERATED, "the users are generated, in the format of MovieLens 1M"
    release = release_of(config.path)
    whole = users == USERS[release]
    name = NAMES[release] if whole else f"own data in the format of {NAMES[release]}"
    differences = {
        "the data are MovieLens 100k, the paper's are MovieLens 1M": release != _RELEASE,
        f"the folder has {users:,} users, MovieLens 1M has {USERS[_RELEASE]:,}": not whole,
        f"the prior is the {config.prior}, the paper's is the {_PRIOR}": config.prior != _PRIOR,
        f"no epsilon is {_EPSILON:g}, as the paper's is": _EPSILON not in config.epsilon,
    }
    return name, next((said for said, differs in differences.items() if differs), None)


def _every_group(config: Config) -> tuple[UserGroup, ...]:
    if config.path is not None:
        return load_movielens(config.path)
    with TemporaryDirectory(prefix="dpopt-") as folder:
        generate_movielens(folder, config.users, config.movies, config.seed)
        return load_movielens(folder)


def of_movielens(table: Table, other: str | None) -> tuple[Comparison, ...]:
    """Compare the worst case with theorem 1, and on the paper's data with Figure 4."""
    bound = of_bound(table, "age")
    epsilons = table.column("epsilon")
    shown = _EPSILON if _EPSILON in epsilons else epsilons[0]
    young = table.grouped("method", "age", "epsilon").get((_YOUNG, shown))
    if young is None:
        return (bound,)
    mollifier, minimax = (young[name]["largest"] for name in ("mollifier-kl", "minimax"))
    said = (_FIGURE_4, f"{mollifier:.3f} and {minimax:.3f}.", "every user, double precision")
    if other is not None:
        return (bound, not_comparable(*said, why=other))
    alike = rounds_to(mollifier, 0.62, 2) and minimax < 0.3
    rule = "agrees if 0.62 is right within half a unit of its last digit and the other is below 0.3"
    return (bound, observed(*said, alike=alike, rule=rule))


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the largest distance of each method in each age group as bars."""
    return drawn(outcome.tables["distances"], "age", "age group")
