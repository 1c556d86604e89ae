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
from experiments.verdicts import columns, judged, rounds_to

PAPER_SLACK = 1e-4
"""The delta' that the paper takes."""

_QUERIES: tuple[int, ...] = (20, 50, 100)
# Number of the table by m, and the printed (epsilon, delta) for each number of queries, by the
# voters' epsilon and m.
_TABLES = {1.0: 5, 3.0: 2, 5.0: 7, 7.0: 9}
_PRINTED: dict[tuple[float, float], tuple[tuple[float, float], ...]] = {
    (0.0892, 1.0): ((1.704, 0.002), (2.837, 0.005), (4.202, 0.010)),
    (0.0892, 3.0): ((5.352, 0.006), (9.901, 0.015), (15.044, 0.030)),
    (0.0892, 5.0): ((8.920, 0.010), (18.428, 0.025), (28.926, 0.049)),
    (0.0892, 7.0): ((12.488, 0.014), (28.392, 0.035), (45.683, 0.068)),
    (0.0852, 1.0): ((1.620, 0.002), (2.695, 0.005), (3.988, 0.010)),
    (0.0852, 3.0): ((5.112, 0.006), (9.382, 0.015), (14.219, 0.030)),
    (0.0852, 5.0): ((8.520, 0.010), (17.398, 0.025), (27.223, 0.049)),
    (0.0852, 7.0): ((11.928, 0.014), (26.738, 0.035), (42.873, 0.068)),
}
_SOURCE = "privacy losses as printed in Tables 2, 5, 7 and 9"
_DATA = {0.0892: "MNIST", 0.0852: "Fashion-MNIST"}
_MECHANISM_DELTA = 1e-4
# K, the voters that were trained once.
_VOTERS = 11


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


@experiment("majority-tables-2-5-7-9", config=Config())
def run(config: Config) -> Outcome:
    """Compose each loss over the printed numbers of queries, and over every number up to them."""
    totals: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    for epsilon, m in track([(e, m) for e in config.epsilon for m in config.allowance]):
        named = config.voter_delta == _MECHANISM_DELTA and epsilon in _DATA
        data = _DATA[epsilon] if named else f"epsilon = {epsilon:g}"
        printed = _PRINTED.get((epsilon, m), ()) if named else ()
        compared = printed if config.slack == PAPER_SLACK else ()
        # (m epsilon, m Delta) in decimals: 3 times 0.0892 is 0.2676.
        voter = Fraction(str(epsilon)), Fraction(str(config.voter_delta))
        one = Guarantee(*(float(Fraction(str(m)) * spent) for spent in voter))
        label = gaussian_rho(noisy_max.calibrate_gnmax(one)[0], noisy_max.SENSITIVITY)
        where: dict[str, Cell] = {"data": data, "m": whole(m)}
        for count in config.queries:
            pair = dict(zip(_QUERIES, compared, strict=False)).get(count)
            total = _total(one, voter, count, config.slack, pair)
            rho = float_up(count * Fraction(label))
            totals.append(
                {"table": _TABLES[m] if printed else None, **where}
                | {"query_epsilon": one.epsilon, "query_delta": one.delta, "queries": count}
                | total
                | {"gnmax_rdp_epsilon": rho_epsilon(rho, total["delta"])}
            )
        curves += [
            where
            | {"queries": count}
            | {"general": general_composition(one, count, config.slack).epsilon}
            | {"simple": simple_composition(one, count).epsilon}
            for count in range(1, max(config.queries) + 1)
        ]
    tables = {"totals": Table.of(totals), "curves": Table.of(curves)}
    printed_losses = (config.epsilon, config.voter_delta) == (Config.epsilon, Config.voter_delta)
    return Outcome(
        tables, tuple(of_totals(tables["totals"])), data=_SOURCE if printed_losses else ""
    )


def _total(
    one: Guarantee,
    voter: tuple[Fraction, Fraction],
    count: int,
    slack: float,
    printed: tuple[float, float] | None,
) -> dict[str, Any]:
    """Compose one loss, and compare it with what is printed."""
    total = general_composition(one, count, slack)
    terms = terms_of_theorem(one, count, slack)
    # Any number of labels of K voters costs no more (theorem 2.2, post-processing).
    together = [_VOTERS * spent for spent in voter]
    agrees = held = None
    if printed is not None:
        agrees = all(map(rounds_to, (total.epsilon, total.delta), printed, (3, 3)))
        held = all(a <= Fraction(str(b)) for a, b in zip(together, printed, strict=True))
    return {
        "epsilon": total.epsilon,
        "printed_epsilon": printed and printed[0],
        "delta": total.delta,
        "printed_delta": printed and printed[1],
        "agrees": agrees,
        "trained_once_epsilon": float(together[0]),
        "trained_once_delta": float(together[1]),
        "holds_trained_once": held,
        "smallest_term": min(terms, key=terms.__getitem__),
        **terms,
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


def of_totals(totals: Table) -> list[Comparison]:
    """Compare every printed total of Tables 2, 5, 7 and 9, and the composition of GNMax."""
    rows = [row for row in totals.records if row["printed_epsilon"] is not None]
    if not rows:
        return []
    comparisons = []
    for table in dict.fromkeys(row["table"] for row in rows):
        part = [row for row in rows if row["table"] == table]
        last = part[-1]
        comparisons.append(
            columns(
                f"Table {table}: totals over Q queries, such as ({last['printed_epsilon']:.3f}, "
                f"{last['printed_delta']:.3f}) at Q = {last['queries']} ({last['data']}).",
                part,
                {name: f"printed_{name}" for name in ("epsilon", "delta")},
                3,
                "closed form (theorem 2.3)",
                name=f"Table {table}",
            )
        )
    together = ("trained_once_epsilon", "trained_once_delta")

    def renyi_gain(row: Mapping[str, Any]) -> float:
        return row["epsilon"] - row["gnmax_rdp_epsilon"]

    at = max(rows, key=renyi_gain)
    return [
        *comparisons,
        judged(
            "The printed totals bound what the labels of teachers trained once spend (section "
            "6.2).",
            rows,
            lambda row: row["holds_trained_once"],
            "fractions; the labels are computed from K private teachers (theorem 2.2)",
            show=("data", *together),
            said="That is the cost of all labels together for any Q; composing queries does not "
            "prove it.",
            more=all(
                row[name] < row[name.replace("trained_once", "printed")]
                for row in rows
                for name in together
            ),
            more_if="the teachers together cost less than every total",
            name="totals for voters trained once",
        ),
        judged(
            f"GNMax's {at['queries']} labels spend epsilon = {at['printed_epsilon']:.3f} "
            f"({at['data']}, m = {at['m']}).",
            rows,
            lambda row: renyi_gain(row) >= 0.0,
            "closed form; theorem D.1 over all orders",
            show=("data", "m", "queries", "epsilon", "gnmax_rdp_epsilon"),
            worst=renyi_gain,
            said="The latter is composed as Renyi divergences, at the same delta.",
            more=renyi_gain(at) > 0.0,
            more_if="another composition gives less",
            name="totals of GNMax",
        ),
    ]


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the total epsilon against the number of queries, one panel for each data set."""
    totals, curves = outcome.tables["totals"], outcome.tables["curves"]
    allowances = curves.distinct("m")
    figure, panels = drawing.by_panel(
        curves,
        ["data"],
        "{data}",
        drawing.columns_for(len(curves.distinct("data"))),
        "queries $Q$",
        r"total $\varepsilon$ (nats)",
        height=0.8,
        sharey=True,
    )
    simple = {"linestyle": "--", "linewidth": 0.6}
    for axes, part in panels.items():
        for m, colour in zip(allowances, style.series(len(allowances)), strict=True):
            curve = part.select(m=m)
            x = curve.column("queries")
            axes.plot(x, curve.column("simple"), color=colour, **simple)
            label = f"general composition, $m$ = {m}"
            axes.plot(x, curve.column("general"), color=colour, label=label)
        noise = style.ROLES["noise"].colour
        axes.plot([], [], color=noise, label="simple composition", **simple)
        rows = totals.select(data=part.column("data")[0]).records
        shown = [(r["queries"], r["printed_epsilon"]) for r in rows if r["printed_epsilon"]]
        if shown:
            axes.plot(*zip(*shown, strict=True), **drawing.points("limit", label="printed"))
        together = max(row["trained_once_epsilon"] for row in rows)
        axes.axhline(together, **drawing.beside("limit", label="voters trained once, any $Q$"))
        top = max(together, *curves.column("general"), *curves.column("simple"))
        axes.set(ylim=(-0.03 * top, 1.05 * top), xlim=(0, 1.04 * max(curves.column("queries"))))
        axes.set_title(axes.get_title().replace("epsilon", r"$\varepsilon$"))
    return drawing.finish(figure, figure.axes)
