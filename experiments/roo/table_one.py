"""Table I of the journal paper as numbers, and the records that each sampler needs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, product
from typing import Annotated, Any

from annotated_types import Gt, Le
from matplotlib.figure import Figure
from pydantic.dataclasses import dataclass

import dpopt
from dpopt import ParameterError, roo
from experiments import drawing
from experiments.parameters import STRICT, Positive, Some
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.accuracy import expected_output, lower_bound
from experiments.roo.common import PAPER, two_level
from experiments.roo.published import (
    METHODS,
    ds_roo_binomial_bound,
    ds_roo_bound,
    ds_roo_rate,
    ds_roo_records,
    laplace_bound,
    lower_bound_records,
    records_needed,
    roo_bound,
    subrr_bound,
)
from experiments.verdicts import statement

# Where two numbers of records are close, the earlier is drawn wide below the later.
_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "laplace": ("Raskhodnikova et al., (5)", drawing.line("noise", linestyle="-")),
    "subrr": ("Cheu, Nayak, (6)", drawing.line("baseline-3", linestyle="-", markersize=5.0)),
    "roo": ("ROO, (9)", drawing.line("baseline-2", linestyle="-", linewidth=3.4, marker="")),
    "ds_roo": ("DS-ROO by (50)", drawing.line("paper", markersize=2.5)),
}


@dataclass(frozen=True, config=STRICT)
class Config:
    """Grids: gamma, the least probability of a category under P, is a fraction of 1/k.

    Attributes:
        records: n of the cells of Table I.
        categories: k; the picture has a row of panels for each.
        epsilons: the picture has a column of panels for each.
        fractions: gamma times k, each above 0 and at most 1.
        accuracies: alpha, for the records that each method needs.
    """

    records: Some[int] = (1_000, 10_000)
    categories: Some[int] = (3, 10, 30)
    epsilons: Some[float] = (0.1, 0.5, 1.0)
    fractions: Some[Annotated[float, Gt(0.0), Le(1.0)]] = (0.2, 0.8)
    accuracies: Some[Positive] = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)

    def __post_init__(self) -> None:
        for n, k, epsilon in product(self.records, self.categories, self.epsilons):
            roo.RooSetting(n, k, epsilon)
        most = 1.0 - 1.0 / min(self.categories)
        if max(self.accuracies) >= most:
            raise ParameterError(
                f"accuracies is {self.accuracies}; it must hold numbers below 1 - 1/k, {most:g}."
            )


@experiment(
    "roo-table-1",
    PAPER,
    "Table I (journal)",
    "The bounds of Table I as numbers, with the exact value of DS-ROO and what no sampler "
    "can beat; the records that each method needs.",
    config=Config(),
    mathematics=(
        r"n' = \frac{2 k}{\alpha \varepsilon}, \quad "
        r"n'' = \frac{(k - 1)(1 - \alpha)}{\alpha \varepsilon}, \quad "
        r"n = \frac{k (1 - \alpha) - 1}{\alpha (e^\varepsilon - 1)}",
        r"d_{TV} \le q_0 (k - 1) e^{-2 n (\gamma - m_0 / n)^2}, \quad "
        r"m_0 \ge \max \left\{ 1 + \frac{1}{\varepsilon} \log \left( "
        r"\frac{e}{\varepsilon} - e + 1 \right), \frac{2}{e^\varepsilon - 1} \right\}",
    ),
)
def run(config: Config) -> Outcome:
    """Evaluate the table's entries, and the sample sizes."""
    bounds: list[dict[str, Cell]] = []
    sizes: list[dict[str, Cell]] = []
    for k, epsilon in track(list(product(config.categories, config.epsilons))):
        for n, fraction in product(config.records, config.fractions):
            bounds.append(_bound(n, k, epsilon, fraction / k))
        sizes += [_size(alpha, k, epsilon, config.fractions) for alpha in config.accuracies]
    tables = {
        "bounds": Table.of(
            "Table I evaluated; exact: k - 1 categories at gamma, the exact rule.", bounds
        ),
        "records": Table.of("Records that each method needs to be alpha-accurate.", sizes),
    }
    return Outcome(tables, (), of_table_one(tables))


def _bound(n: int, k: int, epsilon: float, gamma: float) -> dict[str, Cell]:
    setting = roo.RooSetting(n, k, epsilon)
    rate = ds_roo_rate(setting, gamma)
    journal = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon, "journal"))
    best = ds_roo_bound(journal, gamma)
    exact = dpopt.design(dpopt.RevealOrObscure(n, k, epsilon))
    return {
        "records": n,
        "categories": k,
        "epsilon": epsilon,
        "gamma": gamma,
        "laplace": laplace_bound(setting),
        "subrr": subrr_bound(setting),
        "roo": roo_bound(setting),
        "table_i_leading": rate.leading,
        "rate_42": rate.value,
        "m_0_40": rate.minimum,
        "conditions_41": rate.applies,
        "q_at_m_0": journal.obscuring(rate.minimum) if rate.minimum <= n // k else None,
        "bound_50": best.value,
        "m_0_50": best.minimum,
        "first_zero_q": len(journal.q),
        "binomial": ds_roo_binomial_bound(exact, gamma),
        "exact": expected_output(exact, two_level(k, gamma, k - 1)).total_variation,
        "lower": lower_bound(setting).value,
    }


def _size(alpha: float, k: int, epsilon: float, fractions: tuple[float, ...]) -> dict[str, Cell]:
    by_gamma = {
        f"ds_roo_{share:g}_of_1/k": ds_roo_records(alpha, k, epsilon, share / k, "journal")
        for share in fractions
    }
    return {
        "categories": k,
        "epsilon": epsilon,
        "alpha": alpha,
        **{name: records_needed(name, alpha, k, epsilon) for name in METHODS},
        **by_gamma,
        "lower": lower_bound_records(alpha, k, epsilon),
    }


def of_table_one(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare theorem 1 and lemma 9 with the cells of Table I, and the sample sizes."""
    bounds, sizes = tables["bounds"].records, tables["records"].records
    fewer = [row for row in sizes if row["roo"] < min(row["laplace"], row["subrr"])]
    applied = [row for row in bounds if row["conditions_41"]]
    zero = [row for row in applied if row["q_at_m_0"] == 0.0]
    ratios = [row["m_0_40"] / row["first_zero_q"] for row in applied]
    spread = f"m_0 is {min(ratios):.2g} to {max(ratios):.2g} times" if ratios else "no m_0 is"
    above = sum(row["table_i_leading"] > row["roo"] for row in bounds)
    return (
        statement(
            "ROO needs strictly fewer records than known before (theorem 1, Table I).",
            f"In {len(fewer)} of {len(sizes)} cells; no sampler needs fewer than 1 in "
            f"{max(row['roo'] / row['lower'] for row in sizes):.1f} of ROO's on the worst data "
            f"set. Table I's entry for DS-ROO, which holds for n to infinity, is above ROO's "
            f"bound in {above} of {len(bounds)} cells.",
            "closed forms; lower bound for any epsilon-DP sampler",
            holds=len(fewer) == len(sizes),
        ),
        statement(
            "(40) and (41) make q_m0 = 0 (lemma 9).",
            f"In {len(zero)} of {len(applied)} cells where they hold; {spread} the first m with "
            "q_m = 0.",
            "the journal's recursion, weights over 2^62",
            holds=len(zero) == len(applied),
            more=min(ratios, default=1.0) > 1.0,
            more_if="in every such cell q_m = 0 from a smaller m on",
        ),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the records needed against alpha: a row for each k, a column for each epsilon."""
    sizes = outcome.tables["records"]
    categories = sizes.distinct("categories")
    epsilons = sizes.distinct("epsilon")
    figure, panels = drawing.panels(
        len(categories) * len(epsilons),
        min(3, len(epsilons)),
        across=r"accuracy $\alpha$",
        up="records $n$",
        height=0.85,
        sharex=True,
        sharey=True,
    )
    for axes, (k, epsilon) in zip(panels, product(categories, epsilons), strict=True):
        part, dashes = sizes.select(categories=k, epsilon=epsilon), cycle(["-", "--", ":", "-."])
        for name in [n for n in part.columns[3:] if n != "lower"]:
            label, role = _NAMES["ds_roo" if name.startswith("ds_roo") else name]
            looks = dict(role)
            if name not in _NAMES:
                fraction = name.removeprefix("ds_roo_").removesuffix("_of_1/k")
                label += rf", $\gamma = {fraction}/k$"
                looks["linestyle"] = next(dashes)
            if len(part.rows) == 1:
                looks["marker"] = looks["marker"] or "_"
            axes.plot(part.column("alpha"), part.column(name), label=label, **looks)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.margins(0.08)
        axes.set_title(rf"$k = {k}$, $\varepsilon = {epsilon:g}$")
    return drawing.finish(figure, panels)
