"""Table I of the journal paper as numbers, and the records that each sampler needs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any

from annotated_types import Gt, Lt
from matplotlib.figure import Figure

from dpopt import roo
from experiments import drawing
from experiments.parameters import Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo import published
from experiments.roo.accuracy import expected_output, lower_bound
from experiments.roo.baselines import rule_sampler, two_level
from experiments.verdicts import judged

# Where two numbers of records are close, the earlier is drawn wide below the later.
_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "laplace": ("Raskhodnikova et al., (5)", drawing.line("noise", linestyle="-")),
    "subrr": ("Cheu, Nayak, (6)", drawing.line("baseline-3", linestyle="-", markersize=5.0)),
    "roo": ("ROO, (9)", drawing.line("baseline-2", linestyle="-", linewidth=3.4, marker="")),
}
_DS_ROO = "DS-ROO by (50)", drawing.line("paper", markersize=2.5)
# Gamma times k.
_FRACTIONS = (0.2, 0.8)


@configuration
class Config:
    """Grids: gamma, the least probability of a category under P, is 0.2 or 0.8 of 1/k.

    Attributes:
        records: n of the cells of Table I.
        categories: k; the picture has a row of panels for each.
        epsilons: the picture has a column of panels for each.
        accuracies: alpha, for the records that each method needs, below 1/2.
    """

    records: Some[int] = (1_000, 10_000)
    categories: Some[int] = (3, 10, 30)
    epsilons: Some[float] = (0.1, 0.5, 1.0)
    accuracies: Some[Annotated[float, Gt(0.0), Lt(0.5)]] = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)


@experiment("roo-table-1", config=Config())
def run(config: Config) -> Outcome:
    """Evaluate the table's entries, and the sample sizes."""
    bounds: list[dict[str, Cell]] = []
    sizes: list[dict[str, Cell]] = []
    for k, epsilon in track(list(product(config.categories, config.epsilons))):
        for n, fraction in product(config.records, _FRACTIONS):
            bounds.append(_bound(n, k, epsilon, fraction / k))
        sizes += [_size(alpha, k, epsilon) for alpha in config.accuracies]
    tables = {"bounds": Table.of(bounds), "records": Table.of(sizes)}
    return Outcome(tables, of_table_one(tables))


def _bound(n: int, k: int, epsilon: float, gamma: float) -> dict[str, Cell]:
    setting = roo.RooSetting(n, k, epsilon)
    rate = published.ds_roo_rate(setting, gamma)
    journal, exact = (rule_sampler(n, k, epsilon, rule) for rule in ("journal", "exact"))
    best = published.ds_roo_bound(journal, gamma)
    return {
        "records": n,
        "categories": k,
        "epsilon": epsilon,
        "gamma": gamma,
        **{name: bound(setting) for name, bound in published.BOUNDS.items()},
        "table_i_leading": rate.leading,
        "rate_42": rate.value,
        "m_0_40": rate.minimum,
        "conditions_41": rate.applies,
        "q_at_m_0": journal.obscuring(rate.minimum) if rate.minimum <= n // k else None,
        "bound_50": best.value,
        "m_0_50": best.minimum,
        "first_zero_q": len(journal.q),
        "binomial": published.ds_roo_binomial_bound(exact, gamma),
        "exact": expected_output(exact, two_level(k, gamma, k - 1)).total_variation,
        "lower": lower_bound(setting).value,
    }


def _size(alpha: float, k: int, epsilon: float) -> dict[str, Cell]:
    sizes = {name: published.records_needed(name, alpha, k, epsilon) for name in published.BOUNDS}
    for share in _FRACTIONS:
        at_gamma = published.ds_roo_records(alpha, k, epsilon, share / k, "journal")
        sizes[f"ds_roo_{share:g}_of_1/k"] = at_gamma
    sizes["lower"] = published.lower_bound_records(alpha, k, epsilon)
    return {"categories": k, "epsilon": epsilon, "alpha": alpha, **sizes}


def of_table_one(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare theorem 1 and lemma 9 with the cells of Table I, and the sample sizes."""
    bounds = tables["bounds"].records
    applied = [row for row in bounds if row["conditions_41"]]
    above = sum(row["table_i_leading"] > row["roo"] for row in bounds)
    return (
        judged(
            "ROO needs strictly fewer records than known before (theorem 1, Table I).",
            tables["records"].records,
            lambda row: row["roo"] < min(row["laplace"], row["subrr"]),
            "closed forms; lower bound for any epsilon-DP sampler",
            show=("categories", "epsilon", "alpha", "roo", "lower"),
            worst=lambda row: row["roo"] / row["lower"],
            said="Table I's entry for DS-ROO, which holds for n to infinity, is above ROO's bound "
            f"in {above} of {len(bounds)} cells.",
        ),
        judged(
            "(40) and (41) make q_m0 = 0 (lemma 9).",
            applied,
            lambda row: row["q_at_m_0"] == 0.0,
            "the journal's recursion, weights over 2^62",
            show=("records", "categories", "epsilon", "m_0_40", "first_zero_q"),
            worst=lambda row: row["m_0_40"] / row["first_zero_q"],
            more=all(row["m_0_40"] > row["first_zero_q"] for row in applied) and bool(applied),
            more_if="in every such cell q_m = 0 from a smaller m on",
        ),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the records needed against alpha: a row for each k, a column for each epsilon."""
    sizes = outcome.tables["records"]
    figure, panels = drawing.by_panel(
        sizes,
        ("categories", "epsilon"),
        r"$k = {categories}$, $\varepsilon = {epsilon:g}$",
        min(3, len(sizes.distinct("epsilon"))),
        r"accuracy $\alpha$",
        "records $n$",
        height=0.85,
        sharex=True,
        sharey=True,
    )
    label, look = _DS_ROO
    curves = _NAMES | {
        f"ds_roo_{share:g}_of_1/k": (
            rf"{label}, $\gamma = {share:g}/k$",
            look | {"linestyle": dash},
        )
        for share, dash in zip(_FRACTIONS, ("-", "--"), strict=True)
    }
    for axes, rows in panels.items():
        if len(rows.rows) == 1:
            curves = {
                name: (label, look | {"marker": look["marker"] or "_"})
                for name, (label, look) in curves.items()
            }
        drawing.draw_columns(axes, rows, "alpha", curves)
        axes.set(xscale="log", yscale="log")
        axes.margins(0.08)
    return drawing.finish(figure, [*panels])
