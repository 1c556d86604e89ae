"""Total privacy loss over many queries: tables 2, 5, 7 and 9 of the DaRRM paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpopt.mechanisms import gnmax
from dpopt.privacy import Guarantee, general_composition, simple_composition
from dpopt.privacy.rdp import concentrated_composition
from experiments.majority.comparisons_privacy import of_totals
from experiments.registry import Advance, Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMS = {
    "simple": "Q epsilon, which is simple composition,",
    "refined": "The term with log(e + sqrt(Q) epsilon / delta')",
    "plain": "The term with log(1 / delta')",
}

COLOURS = ("#2f5d9b", "#0b6e4f", "#c1432e", "#8a5aa8")


@dataclass(frozen=True)
class Row:
    """A privacy loss per query, and the printed (epsilon, delta) over each number of queries."""

    table: int
    data: str
    allowance: int
    epsilon: float
    delta: float
    printed: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Config:
    """What the tables print; slack is delta'."""

    rows: tuple[Row, ...] = (
        Row(5, "MNIST", 1, 0.0892, 1e-4, ((1.704, 0.002), (2.837, 0.005), (4.202, 0.010))),
        Row(2, "MNIST", 3, 0.2676, 3e-4, ((5.352, 0.006), (9.901, 0.015), (15.044, 0.030))),
        Row(7, "MNIST", 5, 0.4460, 5e-4, ((8.920, 0.010), (18.428, 0.025), (28.926, 0.049))),
        Row(9, "MNIST", 7, 0.6244, 7e-4, ((12.488, 0.014), (28.392, 0.035), (45.683, 0.068))),
        Row(5, "Fashion-MNIST", 1, 0.0852, 1e-4, ((1.620, 0.002), (2.695, 0.005), (3.988, 0.010))),
        Row(2, "Fashion-MNIST", 3, 0.2556, 3e-4, ((5.112, 0.006), (9.382, 0.015), (14.219, 0.030))),
        Row(7, "Fashion-MNIST", 5, 0.426, 5e-4, ((8.520, 0.010), (17.398, 0.025), (27.223, 0.049))),
        Row(
            9, "Fashion-MNIST", 7, 0.5964, 7e-4, ((11.928, 0.014), (26.738, 0.035), (42.873, 0.068))
        ),
    )
    queries: tuple[int, ...] = (20, 50, 100)
    slack: float = 1e-4


def run(config: Config, advance: Advance) -> Outcome:
    """Compose each loss over the printed numbers of queries, and over every number up to them."""
    totals: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    for row in config.rows:
        one = Guarantee(row.epsilon, row.delta)
        for count, printed in zip(config.queries, row.printed, strict=True):
            totals.append(_total(config, row, one, count, printed))
        curves += [_point(row, one, n, config.slack) for n in range(1, max(config.queries) + 1)]
        advance()
    tables = {
        "totals": Table.of("The total loss beside the printed one.", totals),
        "curves": Table.of("Epsilon by general and by simple composition.", curves),
    }
    totalled = tables["totals"]
    return Outcome(tables, _findings(totalled), of_totals(totalled))


def _point(row: Row, one: Guarantee, count: int, slack: float) -> dict[str, Cell]:
    return {
        "data": row.data,
        "m": row.allowance,
        "queries": count,
        "general": general_composition(one, count, slack).epsilon,
        "simple": simple_composition(one, count).epsilon,
    }


def _total(
    config: Config, row: Row, one: Guarantee, count: int, printed: tuple[float, float]
) -> dict[str, Cell]:
    total = general_composition(one, count, config.slack)
    simple = simple_composition(one, count)
    terms = terms_of_theorem(one, count, config.slack)
    noise = gnmax.gnmax_concentrated(gnmax.calibrate_gnmax(one).sigma)
    renyi = concentrated_composition(*[noise] * count).convert(total.delta)
    return {
        "table": row.table,
        "data": row.data,
        "m": row.allowance,
        "query_epsilon": row.epsilon,
        "query_delta": row.delta,
        "queries": count,
        "epsilon": total.epsilon,
        "printed_epsilon": printed[0],
        "epsilon_difference": total.epsilon - printed[0],
        "delta": total.delta,
        "printed_delta": printed[1],
        "delta_difference": total.delta - printed[1],
        "agrees": (round(total.epsilon, 3), round(total.delta, 3)) == printed,
        "smallest_term": min(terms, key=terms.__getitem__),
        **terms,
        "simple_delta": simple.delta,
        "gnmax_rdp_epsilon": renyi.epsilon,
    }


def terms_of_theorem(one: Guarantee, folds: int, slack: float) -> dict[str, float]:
    """Return the three expressions of theorem 2.3, of which epsilon is the least."""
    e = one.epsilon
    base = folds * e * math.tanh(e / 2)
    refined = math.log(math.e + math.sqrt(folds) * e / slack)
    return {
        "simple": folds * e,
        "refined": base + e * math.sqrt(2 * folds * refined),
        "plain": base + e * math.sqrt(2 * folds * math.log(1 / slack)),
    }


def _findings(totals: Table) -> tuple[str, ...]:
    rows = [dict(zip(totals.columns, row, strict=True)) for row in totals.rows]
    wrong = [row for row in rows if not row["agrees"]]
    found = [f"{len(rows) - len(wrong)} of {len(rows)} printed pairs agree to three decimals."]
    found += [
        f"Table {row['table']}, {row['data']}, Q = {row['queries']}: ({row['epsilon']:.4f}, "
        f"{row['delta']:.4f}); printed ({row['printed_epsilon']}, {row['printed_delta']})."
        for row in wrong
    ]
    for term, words in TERMS.items():
        pairs = [(r["data"], r["m"], r["queries"]) for r in rows if r["smallest_term"] == term]
        where = "; ".join(f"{data}, m = {m}, Q = {count}" for data, m, count in pairs)
        found.append(f"{words} is the least at: {where or 'none'}.")
    for row in rows:
        if row["m"] == 3 and row["queries"] == max(totals.column("queries")):
            found.append(
                f"{row['data']}, m = 3, Q = {row['queries']}: the same labels of GNMax, composed "
                f"as Renyi divergences, spend epsilon = {row['gnmax_rdp_epsilon']:.3f} at the "
                f"same delta, against {row['epsilon']:.3f} by theorem 2.3, which knows only the "
                "(epsilon, delta) of each."
            )
    return tuple(found)


def plot(outcome: Outcome) -> Figure:
    """Draw the total epsilon against the number of queries, one panel for each data set."""
    from matplotlib.figure import Figure

    totals, curves = outcome.tables["totals"], outcome.tables["curves"]
    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    names = list(dict.fromkeys(curves.column("data")))
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for axes, name in zip(panels, names, strict=True):
        allowances = dict.fromkeys(curves.select(data=name).column("m"))
        for m, colour in zip(allowances, COLOURS, strict=False):
            part, points = curves.select(data=name, m=m), totals.select(data=name, m=m)
            x = part.column("queries")
            axes.plot(x, part.column("general"), color=colour, label=f"$m$ = {m}")
            axes.plot(x, part.column("simple"), ":", color=colour, linewidth=1)
            axes.plot(
                points.column("queries"),
                points.column("printed_epsilon"),
                "o",
                color=colour,
                markerfacecolor="none",
            )
        axes.plot([], [], "-", color="#7a7a7a", label="general composition")
        axes.plot([], [], ":", color="#7a7a7a", linewidth=1, label="simple composition")
        axes.plot([], [], "o", color="#7a7a7a", markerfacecolor="none", label="printed")
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("queries $Q$")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel(r"total $\epsilon$")
    panels[0].legend(frameon=False, fontsize=9)
    return figure


_CONFIG = Config()

EXPERIMENTS = (
    Experiment(
        name="majority-tables-2-5-7-9",
        paper="DaRRM",
        item="Tables 2, 5, 7 and 9",
        summary="Total privacy loss over Q queries by general composition, delta' = 1e-4.",
        published="Epsilon and delta in the columns named so, three decimals each.",
        config=_CONFIG,
        quick=_CONFIG,
        steps=lambda config: len(config.rows),
        run=run,
        plot=plot,
    ),
)
