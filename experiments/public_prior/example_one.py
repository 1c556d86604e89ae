"""Example 1: two sites, with and without a public prior, and the numbers that the paper prints."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from matplotlib.figure import Figure

from dpopt import public_prior
from experiments import drawing
from experiments.parameters import Probability, configuration
from experiments.public_prior.common import Epsilon, distances
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import not_comparable, numbers, short

# Decimals of what Example 1 prints for each prior.
_DIGITS = {"public": 2, "uniform": 1}

_PRIORS = {"public": ("public prior", "paper", 0.03), "uniform": ("uniform prior", "noise", 0.1)}
"""Label, role, and what the paper prints as Gamma_TV."""


@configuration
class Config:
    """Click rates and epsilon as in the paper.

    Attributes:
        public: click rate of the public on site A, in (0, 1).
        user: the user's own, in [0, 1].
        epsilon: in nats.
        points: click rates in the picture, evenly spaced from 0 to 1, at least 2.
    """

    public: Probability = 0.01
    user: Annotated[float, Ge(0.0), Le(1.0)] = 0.05
    epsilon: Epsilon = 2.0
    points: Annotated[int, Ge(2)] = 101


@experiment("prior-example-1", config=Config(), effort=("points",))
def run(config: Config) -> Outcome:
    """Compute the realised distance and the worst case under both priors."""
    priors = {"public": np.array([config.public, 1 - config.public]), "uniform": np.full(2, 0.5)}
    rates = np.append(config.user, np.linspace(0.0, 1.0, config.points))
    pmfs = np.column_stack([rates, 1 - rates])
    numbers: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    for name, prior in track(priors.items()):
        realised, *values = distances("minimax", prior, pmfs, config.epsilon).tolist()
        numbers.append(
            {
                "prior": name,
                "rate": config.user,
                "printed": _PRIORS[name][2],
                "realised": realised,
                "worst_case": public_prior.minimax_utility(prior, config.epsilon),
            }
        )
        curves += [
            {"prior": name, "rate": rate, "tv": value}
            for rate, value in zip(rates[1:].tolist(), values, strict=True)
        ]
    tables = {"numbers": Table.of(numbers), "curves": Table.of(curves)}
    of_paper = (config.public, config.user, config.epsilon) == (0.01, 0.05, 2.0)
    return Outcome(tables, of_example(tables["numbers"], own=of_paper))


def of_example(table: Table, *, own: bool) -> tuple[Comparison, ...]:
    """Compare the two printed values of Gamma_TV; their order is no statement of its own."""
    at = {row["prior"]: row for row in table.records}
    public, uniform = at["public"], at["uniform"]
    if not own:
        values = f"Gamma_TV = {public['worst_case']:.4f} and {uniform['worst_case']:.4f}."
        return (
            not_comparable(
                "Gamma_TV = 0.03 with the public prior, 0.1 with the uniform one (Example 1).",
                values,
                "closed form (theorem 1)",
                why="click rates or epsilon are not those of the example",
            ),
        )
    order = "raises" if public["worst_case"] > uniform["worst_case"] else "does not raise"
    return tuple(
        numbers(
            f"Gamma_TV = {row['printed']} with the {name} prior.",
            f"Gamma_TV = {row['worst_case']:.4f}; {short(row['realised'])} is the distance of "
            f"this user.{f' The public prior {order} Gamma_TV.' if row is public else ''}",
            [(row["worst_case"], row["printed"])],
            _DIGITS[name],
            "closed form (theorem 1); half a unit of the last digit",
        )
        for name, row in at.items()
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the distance against the user's click rate, with the worst case and the user."""
    across, up = "user's click rate on site A", r"total variation, $\mathrm{TV}(p, pK)$"
    figure, (axes,) = drawing.panels(1, 1, across, up, height=0.5)
    curves, numbers = outcome.tables["curves"], outcome.tables["numbers"]
    for name, (label, role, _) in _PRIORS.items():
        line = {"tv": (label, drawing.beside(role))}
        user = {"realised": (f"the user, {label}", drawing.points(role, clip_on=False))}
        drawing.draw_columns(axes, curves.select(prior=name), "rate", line)
        drawing.draw_columns(axes, numbers.select(prior=name), "rate", user)
    worst = numbers.column("worst_case")
    for place, level in enumerate(worst):
        bound = drawing.beside("limit", linewidth=0.8)
        axes.axhline(level, **bound, label="_other" if place else r"$\Gamma_{\mathrm{TV}}$")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.03 * max(worst), 1.06 * max(worst)))
    return drawing.finish(figure, [axes])
