"""Table I of the journal paper as numbers, and the records that each sampler needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

from dpopt import ParameterError, roo
from experiments import drawing
from experiments.registry import Cell, Comparison, Outcome, Table, advance, experiment
from experiments.roo.common import PAPER, require_some, two_level
from experiments.verdicts import short, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where two numbers of records are close, the earlier is drawn wide below the later.
_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "laplace": ("Raskhodnikova et al., (5)", drawing.line("noise", linestyle="-")),
    "subrr": ("Cheu, Nayak, (6)", drawing.line("baseline-3", linestyle="-", markersize=5.0)),
    "roo": ("ROO, (9)", drawing.line("baseline-2", linestyle="-", linewidth=3.4, marker="")),
    "ds_roo": ("DS-ROO by (50)", drawing.line("paper", markersize=2.5)),
    "lower": ("any sampler, worst case", drawing.line("limit")),
}
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Config:
    """Grids: gamma, the least probability of a letter under P, is a fraction of 1/k.

    Attributes:
        records: n of the cells of Table I.
        letters: k; the picture has a row of panels for each.
        epsilons: the picture has a column of panels for each.
        fractions: gamma times k, each above 0 and at most 1.
        accuracies: alpha, for the records that each method needs.
    """

    records: tuple[int, ...] = (1_000, 10_000)
    letters: tuple[int, ...] = (3, 10, 30)
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0)
    fractions: tuple[float, ...] = (0.2, 0.8)
    accuracies: tuple[float, ...] = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)

    def __post_init__(self) -> None:
        require_some(
            records=self.records,
            letters=self.letters,
            epsilons=self.epsilons,
            fractions=self.fractions,
            accuracies=self.accuracies,
        )
        for n, k, epsilon in product(self.records, self.letters, self.epsilons):
            roo.RooSetting(n, k, epsilon)
        for fraction in self.fractions:
            if not 0.0 < fraction <= 1.0:
                raise ParameterError(
                    f"fractions is {fraction:g}; it must be above 0 and at most 1."
                )
        for alpha in self.accuracies:
            if not 0.0 < alpha < 1.0 - 1.0 / min(self.letters):
                raise ParameterError(
                    f"accuracies is {alpha:g}; it must be above 0 and below 1 - 1/k for every k."
                )


_CONFIG = Config()


@experiment(
    "roo-table-1",
    PAPER,
    "Table I (journal)",
    "The bounds of Table I as numbers, with the exact value of DS-ROO and what no sampler "
    "can beat; the records that each method needs.",
    config=_CONFIG,
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
    for k, epsilon in product(config.letters, config.epsilons):
        for n, fraction in product(config.records, config.fractions):
            bounds.append(_bound(n, k, epsilon, fraction / k))
        sizes += [_size(alpha, k, epsilon, config.fractions) for alpha in config.accuracies]
        advance()
    tables = {
        "bounds": Table.of(
            "Table I evaluated; exact: k - 1 letters at gamma, the exact rule.", bounds
        ),
        "records": Table.of("Records that each method asks for to be alpha-accurate.", sizes),
    }
    return Outcome(tables, tuple(_findings(tables)), of_table_one(tables))


def _bound(n: int, k: int, epsilon: float, gamma: float) -> dict[str, Cell]:
    setting = roo.RooSetting(n, k, epsilon)
    rate = roo.ds_roo_rate(setting, gamma)
    journal = roo.min_count(n, k, epsilon, "journal")
    best = roo.ds_roo_bound(journal, gamma)
    exact = roo.min_count(n, k, epsilon)
    return {
        "records": n,
        "letters": k,
        "epsilon": epsilon,
        "gamma": gamma,
        "laplace": roo.laplace_bound(setting),
        "subrr": roo.subrr_bound(setting),
        "roo": roo.roo_bound(setting),
        "table_i_leading": rate.leading,
        "rate_42": rate.value,
        "m_0_40": rate.minimum,
        "conditions_41": rate.applies,
        "q_at_m_0": journal.obscuring(rate.minimum) if rate.minimum <= n // k else None,
        "bound_50": best.value,
        "m_0_50": best.minimum,
        "first_zero_q": len(journal.q),
        "binomial": roo.ds_roo_binomial_bound(exact, gamma),
        "exact": roo.expected_output(exact, two_level(k, gamma, k - 1)).total_variation,
        "lower": roo.lower_bound(setting).value,
    }


def _size(alpha: float, k: int, epsilon: float, fractions: tuple[float, ...]) -> dict[str, Cell]:
    names = ("laplace", "subrr", "roo")
    published = {name: roo.records_needed(name, alpha, k, epsilon) for name in names}
    by_gamma = {
        f"ds_roo_{fraction:g}_of_1/k": roo.ds_roo_records(
            alpha, k, epsilon, fraction / k, "journal"
        )
        for fraction in fractions
    }
    lower = roo.lower_bound_records(alpha, k, epsilon)
    return {
        "letters": k,
        "epsilon": epsilon,
        "alpha": alpha,
        **published,
        **by_gamma,
        "lower": lower,
    }


def _findings(tables: dict[str, Table]) -> list[str]:
    bounds, sizes = tables["bounds"].records, tables["records"].records
    applied = [row for row in bounds if row["conditions_41"]]
    zero = sum(row["q_at_m_0"] == 0.0 for row in applied)
    above = sum(row["table_i_leading"] > row["roo"] for row in bounds)
    ratio = [row["m_0_40"] / row["first_zero_q"] for row in applied]
    spread = f"{min(ratio):.2g} to {max(ratio):.2g}" if ratio else "never"
    gap = [row["roo"] / row["lower"] for row in sizes]
    gain = [row["laplace"] / row["roo"] for row in sizes]
    return [
        f"Conditions (40) and (41) hold in {len(applied)} of {len(bounds)} cells; q_m0 = 0 in "
        f"{zero} of these. m_0 of (40) is {spread} times the first m with q_m = 0.",
        f"Table I's entry for DS-ROO holds for n to infinity; at these n, without its o(1), it is "
        f"above ROO's bound in {above} of {len(bounds)} cells.",
        f"ROO needs {short(min(gain))} to {short(max(gain))} times fewer records than "
        f"Raskhodnikova et al., and {short(min(gap))} to {short(max(gap))} times the lower "
        "bound for any sampler on the worst data set.",
    ]


def of_table_one(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Compare theorem 1 and lemma 9 with the cells of Table I, and the sample sizes.

    Args:
        tables: "bounds" and "records" of the run.
    """
    bounds, sizes = tables["bounds"].records, tables["records"].records
    fewer = [row for row in sizes if row["roo"] < min(row["laplace"], row["subrr"])]
    applied = [row for row in bounds if row["conditions_41"]]
    zero = [row for row in applied if row["q_at_m_0"] == 0.0]
    ratios = [row["m_0_40"] / row["first_zero_q"] for row in applied]
    spread = f"m_0 is {min(ratios):.2g} to {max(ratios):.2g} times" if ratios else "no m_0 is"
    return (
        statement(
            "ROO needs strictly fewer records than known before (theorem 1, Table I).",
            f"In {len(fewer)} of {len(sizes)} cells; no sampler needs fewer than 1 in "
            f"{max(row['roo'] / row['lower'] for row in sizes):.1f} of ROO's.",
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
    letters = list(dict.fromkeys(sizes.column("letters")))
    epsilons = list(dict.fromkeys(sizes.column("epsilon")))
    figure, panels = drawing.panels(
        len(letters) * len(epsilons),
        min(3, len(epsilons)),
        across=r"accuracy $\alpha$",
        up="records $n$",
        height=0.85,
        sharex=True,
        sharey=True,
    )
    for axes, (k, epsilon) in zip(panels, product(letters, epsilons), strict=True):
        _draw(axes, sizes.select(letters=k, epsilon=epsilon))
        axes.set_title(rf"$k = {k}$, $\varepsilon = {epsilon:g}$")
    drawing.finish(figure, panels)
    return figure


def _draw(axes: Axes, part: Table) -> None:
    dashes = cycle(_DASHES)
    for name in part.columns[3:]:
        key = "ds_roo" if name.startswith("ds_roo") else name
        label, role = _NAMES[key]
        looks = dict(role)
        if key == "ds_roo":
            fraction = name.removeprefix("ds_roo_").removesuffix("_of_1/k")
            label = rf"{label}, $\gamma = {fraction}/k$"
            looks["linestyle"] = next(dashes)
        if len(part.rows) == 1:
            looks["marker"] = looks["marker"] or "_"
        axes.plot(part.column("alpha"), part.column(name), label=label, **looks)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08)
