"""Total privacy loss over many queries: tables 2, 5, 7 and 9 of the DaRRM paper.

The paper composes queries by theorem 2.3. That is an argument for votes drawn afresh for each
query, not for voters trained once, whose votes on several queries share the randomness of training:
there it can fail, see `experiments.majority.claims_sampling`. The printed totals bound what such
voters spend nevertheless, for another reason: all labels are computed from K voters, each
(epsilon, Delta)-DP; (K epsilon, K Delta) bounds any number of them, and every total is larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpopt import gnmax
from dpopt.privacy import Guarantee, general_composition, simple_composition
from dpopt.privacy.rdp import concentrated_composition
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.verdicts import numbers, rounds_to, statement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMS = {
    "simple": "Q epsilon, which is simple composition,",
    "refined": "The term with log(e + sqrt(Q) epsilon / delta')",
    "plain": "The term with log(1 / delta')",
}

PAPER_SLACK = 1e-4
"""The delta' that the paper takes."""

COLOURS = ("#2f5d9b", "#0b6e4f", "#c1432e", "#8a5aa8")


@dataclass(frozen=True)
class Row:
    """A privacy loss per query, and what is printed for it.

    Attributes:
        table: of the paper.
        data: its name.
        allowance: m.
        epsilon: m times the voters' epsilon.
        delta: m times the voters' Delta.
        printed: the printed (epsilon, delta) by number of queries, for the delta' of the paper.
    """

    table: int
    data: str
    allowance: int
    epsilon: float
    delta: float
    printed: Mapping[int, tuple[float, float]]


def _three(*totals: tuple[float, float]) -> dict[int, tuple[float, float]]:
    return dict(zip((20, 50, 100), totals, strict=True))


@dataclass(frozen=True)
class Config:
    """What the tables print.

    Attributes:
        rows: losses per query.
        queries: Q.
        slack: delta' of theorem 2.3.
        voters: K.
    """

    rows: tuple[Row, ...] = (
        Row(5, "MNIST", 1, 0.0892, 1e-4, _three((1.704, 0.002), (2.837, 0.005), (4.202, 0.010))),
        Row(2, "MNIST", 3, 0.2676, 3e-4, _three((5.352, 0.006), (9.901, 0.015), (15.044, 0.030))),
        Row(7, "MNIST", 5, 0.4460, 5e-4, _three((8.920, 0.010), (18.428, 0.025), (28.926, 0.049))),
        Row(9, "MNIST", 7, 0.6244, 7e-4, _three((12.488, 0.014), (28.392, 0.035), (45.683, 0.068))),
        Row(
            5,
            "Fashion-MNIST",
            1,
            0.0852,
            1e-4,
            _three((1.620, 0.002), (2.695, 0.005), (3.988, 0.010)),
        ),
        Row(
            2,
            "Fashion-MNIST",
            3,
            0.2556,
            3e-4,
            _three((5.112, 0.006), (9.382, 0.015), (14.219, 0.030)),
        ),
        Row(
            7,
            "Fashion-MNIST",
            5,
            0.426,
            5e-4,
            _three((8.520, 0.010), (17.398, 0.025), (27.223, 0.049)),
        ),
        Row(
            9,
            "Fashion-MNIST",
            7,
            0.5964,
            7e-4,
            _three((11.928, 0.014), (26.738, 0.035), (42.873, 0.068)),
        ),
    )
    queries: tuple[int, ...] = (20, 50, 100)
    slack: float = PAPER_SLACK
    voters: int = 11


def run(config: Config, advance: Advance) -> Outcome:
    """Compose each loss over the printed numbers of queries, and over every number up to them."""
    totals: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    for row in config.rows:
        one = Guarantee(row.epsilon, row.delta)
        totals += [_total(config, row, one, count) for count in config.queries]
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


def _printed(config: Config, row: Row, count: int) -> tuple[float, float] | None:
    return row.printed.get(count) if config.slack == PAPER_SLACK else None


def _total(config: Config, row: Row, one: Guarantee, count: int) -> dict[str, Cell]:
    total = general_composition(one, count, config.slack)
    simple = simple_composition(one, count)
    terms = terms_of_theorem(one, count, config.slack)
    printed = _printed(config, row, count)
    voter = trained_once(config.voters, row)
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
        "printed_epsilon": None if printed is None else printed[0],
        "epsilon_difference": None if printed is None else total.epsilon - printed[0],
        "delta": total.delta,
        "printed_delta": None if printed is None else printed[1],
        "delta_difference": None if printed is None else total.delta - printed[1],
        "agrees": None if printed is None else agrees(total, printed),
        "trained_once_epsilon": float(voter[0]),
        "trained_once_delta": float(voter[1]),
        "holds_trained_once": None if printed is None else holds_trained_once(voter, printed),
        "smallest_term": min(terms, key=terms.__getitem__),
        **terms,
        "simple_delta": simple.delta,
        "gnmax_rdp_epsilon": renyi.epsilon,
    }


def agrees(total: Guarantee, printed: tuple[float, float]) -> bool:
    """Return whether both numbers round to the printed ones, of three decimals."""
    pairs = zip((total.epsilon, total.delta), printed, strict=True)
    return all(rounds_to(found, shown, 3) for found, shown in pairs)


def trained_once(voters: int, row: Row) -> tuple[Fraction, Fraction]:
    """Return (K epsilon, K Delta), exactly, from the printed loss per query (m epsilon, m Delta).

    Any number of labels computed from K voters spends no more (theorem 2.2, and post-processing).
    """
    share = Fraction(voters, row.allowance)
    return share * Fraction(str(row.epsilon)), share * Fraction(str(row.delta))


def holds_trained_once(voter: tuple[Fraction, Fraction], printed: tuple[float, float]) -> bool:
    """Return whether a printed total bounds what voters trained once spend, in fractions."""
    return all(spent <= Fraction(str(shown)) for spent, shown in zip(voter, printed, strict=True))


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
    rows = totals.records
    shown = [row for row in rows if row["agrees"] is not None]
    wrong = [row for row in shown if not row["agrees"]]
    found = [f"{len(shown) - len(wrong)} of {len(shown)} printed pairs agree to three decimals."]
    if shown:
        held = sum(row["holds_trained_once"] for row in shown)
        voters = ", ".join(
            dict.fromkeys(
                f"({row['trained_once_epsilon']:.4f}, {row['trained_once_delta']:.4f}) for "
                f"{row['data']}"
                for row in shown
            )
        )
        found.append(
            "Composing queries is an argument for votes drawn afresh, not for teachers trained "
            f"once. {held} of {len(shown)} printed totals hold for teachers trained once all the "
            f"same: their labels spend no more than the teachers together, {voters}, whatever Q."
        )
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


def of_totals(totals: Table) -> tuple[Comparison, ...]:
    """Compare every printed total of Tables 2, 5, 7 and 9, and the composition of GNMax."""
    rows = [row for row in totals.records if row["printed_epsilon"] is not None]
    if not rows:
        return ()
    found = []
    for table in dict.fromkeys(row["table"] for row in rows):
        part = [row for row in rows if row["table"] == table]
        pairs = [
            (row[name], row[f"printed_{name}"]) for row in part for name in ("epsilon", "delta")
        ]
        same = sum(rounds_to(ours, printed, 3) for ours, printed in pairs)
        first = part[-1]
        found.append(
            numbers(
                f"Table {table}: totals over Q queries, such as ({first['printed_epsilon']:.3f}, "
                f"{first['printed_delta']:.3f}) at Q = {first['queries']} ({first['data']}).",
                f"({first['epsilon']:.3f}, {first['delta']:.3f}); {same} of {len(pairs)} numbers "
                "agree.",
                pairs,
                3,
                "closed form (theorem 2.3)",
                name=f"Table {table}",
            )
        )
    found.append(_trained_once(rows))
    at = max(rows, key=lambda row: row["epsilon"] - row["gnmax_rdp_epsilon"])
    found.append(
        statement(
            f"GNMax's {at['queries']} labels spend epsilon = {at['printed_epsilon']:.3f} "
            f"({at['data']}, m = {at['m']}).",
            f"Composed as Renyi divergences they spend {at['gnmax_rdp_epsilon']:.3f} at the same "
            "delta.",
            "closed form; theorem D.1 over all orders",
            holds=all(row["gnmax_rdp_epsilon"] <= row["epsilon"] for row in rows),
            more=at["gnmax_rdp_epsilon"] < at["epsilon"],
            more_if="another composition gives less",
            name="totals of GNMax",
        )
    )
    return tuple(found)


def _trained_once(rows: list[dict[str, Any]]) -> Comparison:
    """Judge the totals for the paper's teachers, who are trained once and asked Q times."""
    held = sum(row["holds_trained_once"] for row in rows)
    spent = " and ".join(
        dict.fromkeys(
            f"({row['trained_once_epsilon']:.4f}, {row['trained_once_delta']:.4f})" for row in rows
        )
    )
    return statement(
        "The printed totals bound what the labels of teachers trained once spend (section 6.2).",
        f"{held} of {len(rows)} do: all labels together spend at most {spent}, for any Q; "
        "composing queries does not show it.",
        "fractions; the labels are computed from K private teachers (theorem 2.2)",
        holds=held == len(rows),
        more=all(
            row["trained_once_epsilon"] < row["printed_epsilon"]
            and row["trained_once_delta"] < row["printed_delta"]
            for row in rows
        ),
        more_if="the teachers together spend less than every total",
        name="totals for voters trained once",
    )


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
            shown = [
                (count, total)
                for count, total in zip(
                    points.column("queries"), points.column("printed_epsilon"), strict=True
                )
                if total is not None
            ]
            axes.plot(
                [count for count, _ in shown],
                [total for _, total in shown],
                "o",
                color=colour,
                markerfacecolor="none",
            )
        axes.plot([], [], "-", color="#7a7a7a", label="general composition")
        axes.plot([], [], ":", color="#7a7a7a", linewidth=1, label="simple composition")
        axes.plot([], [], "o", color="#7a7a7a", markerfacecolor="none", label="printed")
        together = max(totals.select(data=name).column("trained_once_epsilon"))
        axes.axhline(together, color="black", linestyle="--", linewidth=1, label="trained once")
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
        summary="Total privacy loss over Q queries by general composition, delta' = 1e-4; beside "
        "it what K = 11 teachers spend who were trained once, and GNMax's labels by Renyi "
        "composition.",
        published="Epsilon and delta in the columns named so, three decimals each.",
        config=_CONFIG,
        quick=_CONFIG,
        steps=lambda config: len(config.rows),
        run=run,
        plot=plot,
    ),
)
