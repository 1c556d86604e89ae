"""Total privacy loss over many queries: tables 2, 5, 7 and 9 of the DaRRM paper.

The paper composes queries by theorem 2.3. That is an argument for votes drawn afresh for each
query, not for voters trained once, whose votes on several queries share the randomness of training:
there it can fail, see `experiments.majority.claims`. The printed totals still bound the privacy
cost of such voters, for another reason: all labels are computed from K voters, each
(epsilon, Delta)-DP; (K epsilon, K Delta) bounds any number of them, and every total is larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le
from matplotlib.figure import Figure

from dpopt._numbers import float_up
from dpopt.privacy import Guarantee, general_composition, simple_composition
from experiments import drawing, style
from experiments.majority import noisy_max
from experiments.majority.renyi import gaussian_rho, rho_epsilon
from experiments.majority.voters import whole
from experiments.parameters import Positive, Several, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import numbers, rounds_to, statement

PAPER_SLACK = 1e-4
"""The delta' that the paper takes."""

TABLES = {1.0: 5, 3.0: 2, 5.0: 7, 7.0: 9}
"""Number of the table by m."""

PRINTED: dict[tuple[str, float], tuple[tuple[float, float], ...]] = {
    ("MNIST", 1.0): ((1.704, 0.002), (2.837, 0.005), (4.202, 0.010)),
    ("MNIST", 3.0): ((5.352, 0.006), (9.901, 0.015), (15.044, 0.030)),
    ("MNIST", 5.0): ((8.920, 0.010), (18.428, 0.025), (28.926, 0.049)),
    ("MNIST", 7.0): ((12.488, 0.014), (28.392, 0.035), (45.683, 0.068)),
    ("Fashion-MNIST", 1.0): ((1.620, 0.002), (2.695, 0.005), (3.988, 0.010)),
    ("Fashion-MNIST", 3.0): ((5.112, 0.006), (9.382, 0.015), (14.219, 0.030)),
    ("Fashion-MNIST", 5.0): ((8.520, 0.010), (17.398, 0.025), (27.223, 0.049)),
    ("Fashion-MNIST", 7.0): ((11.928, 0.014), (26.738, 0.035), (42.873, 0.068)),
}
"""The printed (epsilon, delta) for Q = 20, 50, 100, by data set and m."""

_QUERIES = (20, 50, 100)
_SOURCE = "privacy losses as printed in Tables 2, 5, 7 and 9"
_DATA = {0.0892: "MNIST", 0.0852: "Fashion-MNIST"}
_MECHANISM_DELTA = 1e-4
# K, the voters that were trained once.
_VOTERS = 11


@dataclass(frozen=True)
class Row:
    """A privacy loss per query, and what is printed for it.

    Attributes:
        table: of the paper; None for a loss that it does not have.
        data: its name, or the voters' epsilon.
        allowance: m.
        voter: (epsilon, Delta) of a voter, exactly.
        printed: the printed (epsilon, delta) by number of queries, for the delta' of the paper.
    """

    table: int | None
    data: str
    allowance: float
    voter: tuple[Fraction, Fraction]
    printed: Mapping[int, tuple[float, float]]

    @property
    def guarantee(self) -> Guarantee:
        """(m epsilon, m Delta), computed in decimals: 3 times 0.0892 is 0.2676."""
        m = Fraction(str(self.allowance))
        return Guarantee(*(float(m * value) for value in self.voter))


@configuration
class Config:
    """Parameters of the tables.

    Attributes:
        allowance: m for each curve, in (0, K]: a query costs (m epsilon, m Delta).
        epsilon: of a voter, for each panel, in nats; 0.0892 is MNIST's, 0.0852 Fashion-MNIST's.
        voter_delta: Delta, of a voter.
        queries: Q of each total.
        slack: delta' of theorem 2.3.
    """

    allowance: Several[Positive] = (1.0, 3.0, 5.0, 7.0)
    epsilon: Several[Annotated[float, Gt(0.0), Le(100.0)]] = (0.0892, 0.0852)
    voter_delta: Positive = _MECHANISM_DELTA
    queries: Several[Annotated[int, Ge(1), Le(10**6)]] = _QUERIES
    slack: float = PAPER_SLACK

    @property
    def rows(self) -> tuple[Row, ...]:
        """Each voter's epsilon with each m."""
        known = self.voter_delta == _MECHANISM_DELTA
        found = []
        for epsilon in self.epsilon:
            voter = Fraction(str(epsilon)), Fraction(str(self.voter_delta))
            data = _DATA[epsilon] if known and epsilon in _DATA else f"epsilon = {epsilon:g}"
            for m in self.allowance:
                totals = PRINTED.get((data, m))
                printed: dict[int, tuple[float, float]] = {}
                if totals is not None:
                    printed |= zip(_QUERIES, totals, strict=True)
                table = TABLES[m] if printed else None
                found.append(Row(table, data, whole(m), voter, printed))
        return tuple(found)


@experiment("majority-tables-2-5-7-9", config=Config())
def run(config: Config) -> Outcome:
    """Compose each loss over the printed numbers of queries, and over every number up to them."""
    totals: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    for row in track(config.rows):
        one = row.guarantee
        label = gaussian_rho(noisy_max.calibrate_gnmax(one)[0], noisy_max.SENSITIVITY)
        totals += [_total(config, row, label, count) for count in config.queries]
        curves += [
            {
                "data": row.data,
                "m": row.allowance,
                "queries": count,
                "general": general_composition(one, count, config.slack).epsilon,
                "simple": simple_composition(one, count).epsilon,
            }
            for count in range(1, max(config.queries) + 1)
        ]
    tables = {"totals": Table.of(totals), "curves": Table.of(curves)}
    printed = (config.epsilon, config.voter_delta) == (Config.epsilon, Config.voter_delta)
    data = _SOURCE if printed else ""
    return Outcome(tables, of_totals(tables["totals"]), data=data)


def _total(config: Config, row: Row, label: float, count: int) -> dict[str, Cell]:
    """Compose one loss; ``label`` is the rho of GNMax's label at the same cost."""
    one = row.guarantee
    total = general_composition(one, count, config.slack)
    terms = terms_of_theorem(one, count, config.slack)
    printed = row.printed.get(count) if config.slack == PAPER_SLACK else None
    # Any number of labels of K voters costs no more (theorem 2.2, post-processing).
    together = [_VOTERS * spent for spent in row.voter]
    rho = float_up(count * Fraction(label))
    return {
        "table": row.table,
        "data": row.data,
        "m": row.allowance,
        "query_epsilon": one.epsilon,
        "query_delta": one.delta,
        "queries": count,
        "epsilon": total.epsilon,
        "printed_epsilon": None if printed is None else printed[0],
        "delta": total.delta,
        "printed_delta": None if printed is None else printed[1],
        "agrees": None
        if printed is None
        else rounds_to(total.epsilon, printed[0], 3) and rounds_to(total.delta, printed[1], 3),
        "trained_once_epsilon": float(together[0]),
        "trained_once_delta": float(together[1]),
        "holds_trained_once": None
        if printed is None
        else all(a <= Fraction(str(b)) for a, b in zip(together, printed, strict=True)),
        "smallest_term": min(terms, key=terms.__getitem__),
        **terms,
        "gnmax_rdp_epsilon": rho_epsilon(rho, total.delta),
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
            f"Composed as Renyi divergences, they cost {at['gnmax_rdp_epsilon']:.3f} at the same "
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
    """Decide whether the totals hold for teachers that are trained once and queried Q times."""
    held = sum(row["holds_trained_once"] for row in rows)
    spent = " and ".join(
        dict.fromkeys(
            f"({row['trained_once_epsilon']:.4f}, {row['trained_once_delta']:.4f})" for row in rows
        )
    )
    return statement(
        "The printed totals bound what the labels of teachers trained once spend (section 6.2).",
        f"{held} of {len(rows)} do: all labels together cost at most {spent}, for any Q; "
        "composing queries does not prove it.",
        "fractions; the labels are computed from K private teachers (theorem 2.2)",
        holds=held == len(rows),
        more=all(
            row["trained_once_epsilon"] < row["printed_epsilon"]
            and row["trained_once_delta"] < row["printed_delta"]
            for row in rows
        ),
        more_if="the teachers together cost less than every total",
        name="totals for voters trained once",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the total epsilon against the number of queries, one panel for each data set."""
    totals, curves = outcome.tables["totals"], outcome.tables["curves"]
    names = curves.distinct("data")
    allowances = curves.distinct("m")
    figure, panels = drawing.panels(
        len(names),
        drawing.columns_for(len(names)),
        across="queries $Q$",
        up=r"total $\varepsilon$ (nats)",
        height=0.8,
        sharey=True,
    )
    simple = {"linestyle": "--", "linewidth": 0.6}
    limit = style.ROLES["limit"]
    for axes, name in zip(panels, names, strict=True):
        for m, colour in zip(allowances, style.series(len(allowances)), strict=True):
            part = curves.select(data=name, m=m)
            x = part.column("queries")
            axes.plot(x, part.column("simple"), color=colour, **simple)
            label = f"general composition, $m$ = {m}"
            axes.plot(x, part.column("general"), color=colour, label=label)
        noise = style.ROLES["noise"].colour
        axes.plot([], [], color=noise, label="simple composition", **simple)
        rows = totals.select(data=name).records
        shown = [row for row in rows if row["printed_epsilon"] is not None]
        if shown:
            printed = [row["printed_epsilon"] for row in shown]
            look = drawing.points("limit", label="printed")
            axes.plot([row["queries"] for row in shown], printed, **look)
        together = max(row["trained_once_epsilon"] for row in rows)
        label = "voters trained once, any $Q$"
        axes.axhline(together, color=limit.colour, linestyle=limit.dash, label=label)
        top = max(together, *curves.column("general"), *curves.column("simple"))
        axes.set_ylim(-0.03 * top, 1.05 * top)
        axes.set_xlim(0, 1.04 * max(curves.column("queries")))
        axes.set_title(name.replace("epsilon", r"$\varepsilon$"))
    return drawing.finish(figure, panels)
