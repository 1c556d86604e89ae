"""Example 1: two sites, with and without a public prior, and the numbers that the paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpopt import public_prior
from experiments.public_prior.common import PAPER, distances
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.verdicts import not_comparable, numbers, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Decimals of what Example 1 prints for each prior.
_DIGITS = {"public": 2, "uniform": 1}

_PRIORS = {
    "public": ("public prior", "#2f5d9b", 0.03),
    "uniform": ("uniform prior", "#7a7a7a", 0.1),
}
"""Label, colour, and what the paper prints as Gamma_TV."""


@dataclass(frozen=True)
class Config:
    """Click rates on site A of the public and of the user, and epsilon, as in the paper."""

    public: float = 0.01
    user: float = 0.05
    epsilon: float = 2.0
    points: int = 101

    @property
    def printed(self) -> bool:
        """Whether the numbers are those of the paper."""
        return (self.public, self.user, self.epsilon) == (0.01, 0.05, 2.0)

    @property
    def priors(self) -> dict[str, np.ndarray]:
        """The prior with public data, and the one without."""
        return {"public": np.array([self.public, 1 - self.public]), "uniform": np.full(2, 0.5)}


def run(config: Config, advance: Advance) -> Outcome:
    """Compute the realised distance and the worst case under both priors."""
    rates = np.linspace(0.0, 1.0, config.points)
    numbers: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    for name, prior in config.priors.items():
        (realised,) = _realised(prior, np.array([config.user]), config.epsilon)
        numbers.append(
            {
                "prior": name,
                "rate": config.user,
                "printed": _PRIORS[name][2],
                "realised": realised,
                "worst_case": public_prior.minimax_utility(prior, config.epsilon),
            }
        )
        values = _realised(prior, rates, config.epsilon)
        curves += [
            {"prior": name, "rate": float(rate), "tv": value}
            for rate, value in zip(rates, values, strict=True)
        ]
        advance()
    tables = {
        "numbers": Table.of(
            "TV(p, pK) of the user, and Gamma_TV, the worst case over users.", numbers
        ),
        "curves": Table.of("TV(p, pK) for each click rate p on site A.", curves),
    }
    compared = of_example(tables["numbers"], own=config.printed)
    return Outcome(tables, tuple(_findings(config, tables["numbers"])), compared)


def _realised(prior: np.ndarray, rates: np.ndarray, epsilon: float) -> list[float]:
    laws = np.column_stack([rates, 1 - rates])
    return distances("minimax", prior, laws, epsilon).tolist()


def _findings(config: Config, numbers: Table) -> list[str]:
    found = [
        f"{_PRIORS[row['prior']][0].capitalize()}: printed for the paper's example "
        f"{row['printed']}; TV(p, pK) is {short(row['realised'])}, Gamma_TV "
        f"{row['worst_case']:.4f}."
        for row in numbers.records
    ]
    cut = all(str(row["realised"]).startswith(str(row["printed"])) for row in numbers.records)
    if config.printed and cut:
        found.append(
            "What the paper prints as Gamma_TV is the distance realised for this user, cut off "
            "after the last printed digit."
        )
    return found


def of_example(table: Table, *, own: bool) -> tuple[Comparison, ...]:
    """Compare the two printed values of Gamma_TV; their order is no statement of its own.

    Args:
        table: "numbers" of the run.
        own: whether the click rates and epsilon are those of the paper.
    """
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


def plot(outcome: Outcome) -> Figure:
    """Draw the distance against the user's click rate, with the worst case and the user."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, (label, colour, _) in _PRIORS.items():
        curve = outcome.tables["curves"].select(prior=name)
        axes.plot(curve.column("rate"), curve.column("tv"), color=colour, label=label)
        part = outcome.tables["numbers"].select(prior=name)
        axes.plot(part.column("rate"), part.column("realised"), "o", color=colour)
        (worst,) = part.column("worst_case")
        axes.axhline(worst, color=colour, linestyle=":", linewidth=1)
    axes.set_xlabel("user's click rate on site A; dots: the example's user")
    axes.set_ylabel(r"$\mathrm{TV}(p, pK)$; dotted: $\Gamma_{\mathrm{TV}}$")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENT = Experiment(
    name="prior-example-1",
    paper=PAPER,
    item="Example 1",
    summary="Two sites, epsilon = 2, a public click rate of 1 % on site A and a user's of 5 %: "
    "the realised distance and the worst case, with the public prior and with the uniform one.",
    published="Gamma_TV = 0.03 with the public prior, 0.1 with the uniform one",
    config=Config(),
    quick=Config(),
    steps=lambda config: len(config.priors),
    run=run,
    plot=plot,
)
