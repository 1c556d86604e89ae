"""GNMax's noise for a given privacy loss: figure 10 and table 4 of the DaRRM paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfc, log_ndtr

from dpopt import ParameterError, gnmax
from dpopt.privacy import Guarantee
from dpopt.privacy.rdp import gaussian_epsilon
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.verdicts import numbers, observed, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER_VOTERS = 11
_SAME = 1e-9


@dataclass(frozen=True)
class Target:
    """A privacy loss per query, and what table 4 prints for it."""

    name: str
    epsilon: float
    delta: float
    printed_order: float
    printed_sigma: float


@dataclass(frozen=True)
class Example:
    """One query on two classes, by which Algorithm 6 is read as printed."""

    ones: int = 5
    zeros: int = 0
    sigma: float = 1.0
    order: float = 1.5


@dataclass(frozen=True)
class Config:
    """Parameters of the figure.

    Attributes:
        targets: of Table 4.
        voters: K.
        step: of the paper's grid of orders.
        last_order: of it.
        low_orders: further orders at which the data-dependent bound is tried; ours.
        many_voters: of the contrast, where the bound helps; ours.
        many_sigma: of the contrast; ours.
        example: votes, noise and order at which Algorithm 6 is read as printed; ours.
    """

    targets: tuple[Target, ...] = (
        Target("MNIST", 0.2676, 3e-4, 34.31, 21.46),
        Target("Fashion-MNIST", 0.2556, 3e-4, 35.74, 22.46),
    )
    voters: int = 11
    step: float = 0.5
    last_order: float = 500.0
    low_orders: tuple[float, ...] = (2.0, 5.0, 10.0, 20.0)
    many_voters: int = 250
    many_sigma: float = 40.0
    example: Example = Example()


def run(config: Config, advance: Advance) -> Outcome:
    """Calibrate, and evaluate the data-dependent bound on unanimous votes."""
    curves: list[dict[str, Cell]] = []
    noises: list[dict[str, Cell]] = []
    bounds: list[dict[str, Cell]] = []
    for target in config.targets:
        guarantee = Guarantee(target.epsilon, target.delta)
        orders = _grid(config, guarantee)
        variances = gnmax.variance_at_order(guarantee, orders)
        curves += [
            {"target": target.name, "order": float(o), "variance": float(v)}
            for o, v in zip(orders, variances, strict=True)
        ]
        noises.append(_record(config, target, orders, variances))
        best = gnmax.calibrate_gnmax(guarantee)
        tried = (*config.low_orders, target.printed_order, best.order or 0.0)
        bounds += [_bound(target.name, config.voters, best.sigma, order) for order in tried]
        advance()
    for order in config.low_orders:
        bounds.append(_bound("contrast", config.many_voters, config.many_sigma, order))
    advance()
    tables = {
        "calibration": Table.of("The order and the noise for each privacy loss.", noises),
        "data_dependent": Table.of(
            "The data-dependent bound, theorem 6 of Papernot et al., where all voters agree, two "
            f"classes. The orders {', '.join(f'{order:g}' for order in config.low_orders)} and the "
            f"contrast ({config.many_voters} voters, sigma = {config.many_sigma:g}) are ours.",
            bounds,
        ),
        "algorithm_6": Table.of(
            "Algorithm 6 read as printed, and with a logarithm put into line 11, beside the "
            "divergence that it is to bound. Votes, sigma and order are ours.",
            [_printed(config.example)],
        ),
        "curves": Table.of("The variance that each order proves to be enough.", curves),
    }
    return Outcome(tables, _findings(config, tables), of_gnmax(tables))


def _grid(config: Config, guarantee: Guarantee) -> np.ndarray:
    """Return the paper's orders: from the least possible one, which needs infinite noise, on."""
    least = 1.0 - float(np.log(guarantee.delta)) / guarantee.epsilon
    orders = np.arange(least, config.last_order, config.step)[1:]
    if not orders.size:
        raise ParameterError(
            f"last_order is {config.last_order:g}; it must be more than a step of {config.step:g} "
            f"above the least possible order, {least:g}."
        )
    return orders


def _record(
    config: Config, target: Target, orders: np.ndarray, variances: np.ndarray
) -> dict[str, Cell]:
    guarantee = Guarantee(target.epsilon, target.delta)
    rdp = gnmax.calibrate_gnmax(guarantee)
    counts = gnmax.calibrate_gnmax(guarantee, "analytic")
    label = gnmax.calibrate_gnmax(guarantee, "label", voters=config.voters)
    at_printed = gnmax.variance_at_order(guarantee, [target.printed_order])[0]
    least = 1.0 - float(np.log(target.delta)) / target.epsilon
    place = int(np.argmin(variances))
    return {
        "target": target.name,
        "epsilon": target.epsilon,
        "delta": target.delta,
        "order": rdp.order,
        "sigma": rdp.sigma,
        "grid_order": float(orders[place]),
        "grid_sigma": float(np.sqrt(variances[place])),
        "printed_order": target.printed_order,
        "printed_sigma": target.printed_sigma,
        "least_order": least,
        "printed_order_minus_least": target.printed_order - least,
        "sigma_at_printed_order": float(np.sqrt(at_printed)),
        "analytic_sigma": counts.sigma,
        "label_sigma": label.sigma,
        "counts_epsilon": gaussian_epsilon(target.delta, rdp.sigma, gnmax.SENSITIVITY),
        "label_epsilon": gnmax.label_epsilon(config.voters, rdp.sigma, target.delta),
        "unanimous_right": _right(config.voters, rdp.sigma),
        "unanimous_right_analytic": _right(config.voters, counts.sigma),
        "unanimous_right_label": _right(config.voters, label.sigma),
    }


def _right(voters: int, sigma: float) -> float:
    """Return the probability of the majority where all voters agree."""
    return float(gnmax.GNMax(sigma).output_distribution([0, voters])[1])


def _bound(name: str, voters: int, sigma: float, order: float) -> dict[str, Cell]:
    found = gnmax.data_dependent_rdp([voters, 0], sigma, order)
    return {
        "target": name,
        "voters": voters,
        "sigma": sigma,
        "order": order,
        "applies": found.applies,
        "order_limit": found.order_limit,
        "q": found.q,
        "q_limit": found.q_limit,
        "data_dependent": found.bound,
        "gaussian": found.gaussian,
    }


def _printed(at: Example) -> dict[str, Cell]:
    checked_votes(at.ones, at.zeros)
    votes = (at.ones, at.zeros, at.sigma, at.order)
    bound = gnmax.data_dependent_rdp([at.ones, at.zeros], at.sigma, at.order)
    return {
        "votes": f"{at.ones}:{at.zeros}",
        "sigma": at.sigma,
        "order": at.order,
        "as_printed": as_printed(*votes),
        "with_logarithm": as_printed(*votes, logarithm=True),
        "divergence": divergence(*votes),
        "theorem": bound.bound,
        "gaussian": bound.gaussian,
    }


def _findings(config: Config, tables: dict[str, Table]) -> tuple[str, ...]:
    found = []
    for at in tables["calibration"].records:
        found += [
            f"{at['target']}: sigma = {at['sigma']:.2f}, as printed, is least at lambda = "
            f"{at['order']:.2f}. The printed lambda, {at['printed_order']}, would need sigma = "
            f"{at['sigma_at_printed_order']:.2f}; it is the least possible lambda plus "
            f"{at['printed_order_minus_least']:.2f}.",
            f"{at['target']}: noisy counts with sigma = {at['sigma']:.2f} spend epsilon = "
            f"{at['counts_epsilon']:.4f} of {at['epsilon']}; sigma = {at['analytic_sigma']:.2f} is "
            f"enough. The label of K = {config.voters} voters spends {at['label_epsilon']:.4f}; "
            f"sigma = {at['label_sigma']:.2f} is enough, and raises the probability of the "
            f"majority on unanimous votes from {at['unanimous_right']:.3f} to "
            f"{at['unanimous_right_label']:.3f}.",
        ]
    bounds = tables["data_dependent"]
    for target in config.targets:
        rows = [r for r in bounds.records if r["target"] == target.name and r["applies"]]
        lower = [row for row in rows if row["data_dependent"] < row["gaussian"]]
        where = ", ".join(f"{row['order']:g}" for row in rows) or "none"
        found.append(
            f"{target.name}: on unanimous votes the conditions of the data-dependent bound hold "
            f"at these of the orders tried: {where}; it is below the Gaussian one at "
            f"{len(lower)} of them."
        )
    return tuple(found)


def as_printed(
    ones: int, zeros: int, sigma: float, order: float, *, logarithm: bool = False
) -> float | None:
    """Return lines 4 to 11 for one query on two classes; None where line 8's conditions fail.

    Line 7 has (mu_2 - 1)^epsilon_2 for (mu_2 - 1) epsilon_2; line 9 has q exp(epsilon_2)^(...) for
    (q exp(epsilon_2))^(...); line 11 has no logarithm.

    Args:
        ones: votes for one class, at least 0.
        zeros: votes for the other.
        sigma: above 0.
        order: lambda, above 1.
        logarithm: put the logarithm into line 11.
    """
    q = 0.5 * float(erfc(abs(ones - zeros) / (2 * sigma)))
    if not 0.0 < q < 1.0:
        return None
    second = sigma * math.sqrt(-math.log(q))
    first = second + 1.0
    if first < order or second <= 1.0:
        return None
    spent, more = second / sigma**2, first / sigma**2
    limit = _power(second - 1.0, spent) - second * math.log(
        first / (first - 1.0) * second / (second - 1.0)
    )
    share = q * math.exp(spent * (second - 1.0) / second)
    if math.log(q) > limit or share >= 1.0:
        return None
    a = (1.0 - q) / (1.0 - share)
    b = math.exp(more) / q ** (1.0 / (first - 1.0))
    mean = (1.0 - q) * a ** (order - 1.0) + q * b ** (order - 1.0)
    return (math.log(mean) if logarithm else mean) / (order - 1.0)


def _power(base: float, exponent: float) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf


def divergence(ones: int, zeros: int, sigma: float, order: float) -> float:
    """Return the Renyi divergence of the label when one vote leaves the larger class, exactly.

    Two classes: label 1 has probability Phi((ones - zeros) / (sigma sqrt 2)).
    """
    ahead = abs(ones - zeros)
    scale = sigma * gnmax.SENSITIVITY
    terms = [
        order * float(log_ndtr(side * ahead / scale))
        + (1.0 - order) * float(log_ndtr(side * (ahead - 2) / scale))
        for side in (1, -1)
    ]
    return float(np.logaddexp(terms[0], terms[1])) / (order - 1.0)


def checked_votes(ones: int, zeros: int) -> None:
    """Refuse votes of which none can move.

    Raises:
        ParameterError: if there are none, or one is negative.
    """
    if min(ones, zeros) < 0 or ones + zeros == 0:
        raise ParameterError(f"votes is {ones}:{zeros}; it must be counts, not both 0.")


def of_gnmax(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare Table 4 and what section D.2.1 says of the data-dependent bound.

    Args:
        tables: "calibration" and "data_dependent" of the run.
    """
    rows, bounds = tables["calibration"].records, tables["data_dependent"].records
    return (
        _column(rows, "sigma", "least over all Renyi orders, closed form"),
        _column(rows, "order", "stationary point of sigma over the order, closed form"),
        _label(rows),
        *_conditions(rows, bounds),
        *(_algorithm_6(row) for row in tables["algorithm_6"].records if _shown(row)),
    )


def _column(rows: list[dict[str, Any]], name: str, certificate: str) -> Comparison:
    shown = {"sigma": "sigma", "order": "lambda"}[name]
    printed = ", ".join(f"{row[f'printed_{name}']:.2f}" for row in rows)
    found = ", ".join(f"{row[name]:.2f}" for row in rows)
    ours = f"{shown} = {found}."
    if name == "order":
        needed = ", ".join(f"{row['sigma_at_printed_order']:.2f}" for row in rows)
        ours = f"{shown} = {found}; the printed orders would need sigma = {needed}."
    return numbers(
        f"Table 4: {shown} = {printed}.",
        ours,
        [(row[name], row[f"printed_{name}"]) for row in rows],
        2,
        certificate,
        name=f"Table 4, {shown}",
    )


def _label(rows: list[dict[str, Any]]) -> Comparison:
    """Return what the published noise is for, and what its label really spends."""
    at = rows[0]
    return statement(
        f"With sigma = {at['printed_sigma']}, a label of GNMax is ({at['epsilon']}, "
        f"{at['delta']:g})-private.",
        f"It spends {at['label_epsilon']:.4f}; sigma = {at['label_sigma']:.2f} is enough.",
        "exact law of the label, every vote and neighbour",
        holds=all(row["label_epsilon"] <= row["epsilon"] for row in rows),
        more=all(row["label_sigma"] < row["printed_sigma"] for row in rows),
        more_if="less noise is enough",
        name="Table 4, the label's loss",
    )


def _conditions(rows: list[dict[str, Any]], bounds: list[dict[str, Any]]) -> Iterator[Comparison]:
    """Judge whether the data-dependent bound applies to unanimous votes, of as many as there."""
    used = {(row["target"], row[order]) for row in rows for order in ("order", "printed_order")}
    targets = {row["target"] for row in rows}
    tried = [bound for bound in bounds if bound["target"] in targets]
    if any(bound["voters"] != PAPER_VOTERS for bound in tried):
        return
    met = [bound for bound in tried if bound["applies"]]
    useful = [bound for bound in met if bound["data_dependent"] < bound["gaussian"]]
    there = [bound for bound in met if (bound["target"], bound["order"]) in used]
    where = ", ".join(f"{bound['order']:g}" for bound in met)
    yield observed(
        f"Algorithm 6's conditions fail at K = {PAPER_VOTERS} voters and 2 classes even if all "
        "agree (D.2.1).",
        f"They hold at {len(there)} of the {len(used)} orders in use, and at {len(met)} of "
        f"{len(tried)} tried{f' ({where})' if met else ''}; the bound is below the Gaussian one at "
        f"{len(useful)}.",
        "theorem of Papernot et al., evaluated in double precision",
        alike=not there,
        rule="agrees if they fail at the printed orders and at those of the least sigma, which the "
        "experiments use; the other orders are ours",
        name="Algorithm 6, conditions",
    )


def _shown(row: dict[str, Any]) -> bool:
    return row["as_printed"] is not None and row["theorem"] is not None


def _algorithm_6(row: dict[str, Any]) -> Comparison:
    """Judge the pseudo-code by what it returns where the theorem applies too."""
    found, theorem, gaussian = row["as_printed"], row["theorem"], row["gaussian"]
    short = row["with_logarithm"] < row["divergence"]
    return observed(
        "Algorithm 6 computes the data-dependent bound of Papernot et al. (D.2.1).",
        f"At votes {row['votes']}, sigma = {row['sigma']:g}, lambda = {row['order']:g} (ours): "
        f"{found:.3f} as printed, Gaussian {gaussian:g}, theorem {theorem:.4f}; with a logarithm "
        f"in line 11 {row['with_logarithm']:.4f}, {'below' if short else 'above'} the divergence "
        f"{row['divergence']:.4f}.",
        "double precision; exact law of the label",
        alike=abs(found - theorem) <= _SAME * theorem,
        rule="agrees if what is printed gives the theorem's number to nine digits",
        name="Algorithm 6, pseudo-code",
    )


def plot(outcome: Outcome) -> Figure:
    """Draw sigma^2 against lambda, one panel for each target, with the minimum marked."""
    from matplotlib.figure import Figure

    noises, curves = outcome.tables["calibration"], outcome.tables["curves"]
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    panels = figure.subplots(1, len(noises.rows), squeeze=False, sharey=True)[0]
    for axes, at in zip(panels, noises.records, strict=True):
        part = curves.select(target=at["target"])
        _draw(axes, part, at)
    return figure


def _draw(axes: Axes, curve: Table, at: dict[str, Any]) -> None:
    axes.plot(curve.column("order"), curve.column("variance"), color="#2f5d9b")
    axes.plot(
        [at["order"]],
        [at["sigma"] ** 2],
        "o",
        color="#0b6e4f",
        label=rf"least: $\lambda$ = {at['order']:.2f}, $\sigma$ = {at['sigma']:.2f}",
    )
    axes.plot(
        [at["printed_order"]],
        [at["sigma_at_printed_order"] ** 2],
        "x",
        color="#c1432e",
        markersize=8,
        markeredgewidth=2,
        label=rf"printed $\lambda$ = {at['printed_order']}",
    )
    for name, label, style in (
        ("analytic_sigma", "enough for the noisy counts", "--"),
        ("label_sigma", "enough for the label", ":"),
    ):
        axes.axhline(at[name] ** 2, linestyle=style, color="#7a7a7a", label=label)
    axes.set_title(rf"{at['target']}, ({at['epsilon']}, {at['delta']})", fontsize=10)
    axes.set_xlabel(r"order $\lambda$")
    axes.set_ylabel(r"$\sigma^2$")
    axes.set_yscale("log")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)


_CONFIG = Config()

EXPERIMENTS = (
    Experiment(
        name="majority-figure-10",
        paper="DaRRM",
        item="Figure 10 and Table 4",
        summary="The noise of the baseline GNMax for a privacy loss per query: the variance that "
        "each Renyi order proves to be enough, its minimum, and what exact analyses ask for.",
        published="Table 4: lambda = 34.31, 35.74; sigma = 21.46, 22.46.",
        config=_CONFIG,
        quick=_CONFIG,
        steps=lambda config: len(config.targets) + 1,
        run=run,
        plot=plot,
    ),
)
