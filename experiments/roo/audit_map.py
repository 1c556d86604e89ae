"""Where the published recursions are private: exact audits over a grid of settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt import roo
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.roo.common import PAPER, VIOLATES, data_sets, violates
from experiments.verdicts import statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_AUDIT = "exact integers, every inequality of the rule; witness in table audits"

_AUDITED = ("journal", "conference", "journal-repaired", "exact")
_DRAWN = ("journal", "conference")


@dataclass(frozen=True)
class Config:
    """Grid of k, epsilon and M = floor(n / k); n = k M + r with r = 0, 1 and k - 1."""

    letters: tuple[int, ...] = (2, 3, 10)
    epsilons: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    minima: tuple[int, ...] = (1, 2, 3, 5, 10, 20, 50, 100)


def run(config: Config, advance: Advance) -> Outcome:
    """Audit each rule at each setting."""
    rows: list[dict[str, Cell]] = []
    for k, epsilon in product(config.letters, config.epsilons):
        rows += [
            _audit(k * minimum + remainder, k, epsilon, rule)
            for minimum in config.minima
            for remainder in sorted({0, 1, k - 1})
            for rule in _AUDITED
        ]
        advance()
    audits = Table.of("Exact audits of every rule at every setting.", rows)
    worst = [
        _worst(audits.select(rule=rule, letters=k)) for rule, k in product(_AUDITED, config.letters)
    ]
    tables = {
        "worst": Table.of("The largest excess factor of each rule for each k.", worst),
        "audits": audits,
    }
    return Outcome(tables, tuple(_findings(tables)), of_theorem_2(audits))


def _audit(n: int, k: int, epsilon: float, rule: str) -> dict[str, Cell]:
    sampler = roo.min_count(n, k, epsilon, rule)
    return {
        "letters": k,
        "epsilon": epsilon,
        "records": n,
        "largest_minimum": n // k,
        "share": n * epsilon / k,
        "rule": rule,
        "excess_factor": sampler.audit.excess_factor,
        "violates": violates(sampler),
        "inequalities": sampler.audit.rows,
        # Where lemma 2 does not reach: m = M above n / k - 1, and w_M < 0.
        "beyond_lemma_2": n % k != 0 and math.expm1(epsilon) * (n // k) < 1,
        "data_sets": data_sets(sampler),
    }


def _worst(part: Table) -> dict[str, Cell]:
    rows = part.records
    worst = max(rows, key=lambda row: row["excess_factor"])
    names = ("rule", "letters", "records", "epsilon", "excess_factor", "violates", "data_sets")
    return {
        **{name: worst[name] for name in names},
        "violations": sum(row["violates"] for row in rows),
        "settings": len(rows),
    }


def _findings(tables: dict[str, Table]) -> list[str]:
    audits = tables["audits"].records
    found = [
        f"{len(audits)} exact audits, {sum(row['inequalities'] for row in audits):,} inequalities "
        "in integers."
    ]
    for rule in _AUDITED:
        part = [row for row in audits if row["rule"] == rule]
        bad = sum(row["violates"] for row in part)
        worst = max(part, key=lambda row: row["excess_factor"])
        line = f"Rule {rule!r}: {bad} of {len(part)} settings violate"
        if bad:
            line += (
                f"; at most {worst['excess_factor']:.4f} e^epsilon, at n = {worst['records']}, "
                f"k = {worst['letters']}, epsilon = {worst['epsilon']}: {worst['data_sets']}"
            )
        found.append(line + ".")
    journal = [row for row in audits if row["rule"] == "journal"]
    gap = [row for row in journal if row["beyond_lemma_2"]]
    inside = sum(row["violates"] for row in gap)
    outside = sum(row["violates"] for row in journal) - inside
    found.append(
        f"The journal's recursion violates in {inside} of the {len(gap)} settings that lemma 2 "
        f"does not cover (k does not divide n, e^epsilon < 1 + 1/M), and in {outside} others."
    )
    largest = [row["largest_minimum"] for row in journal if row["violates"]]
    if largest:
        found.append(f"Its violations have M = floor(n / k) of at most {max(largest)}.")
    return found


def of_theorem_2(audits: Table) -> tuple[Comparison, ...]:
    """Judge that DS-ROO is epsilon-DP, for each paper's recursion.

    Args:
        audits: columns rule, records, letters, epsilon, excess_factor, violates, data_sets.
    """
    rows = audits.records
    return tuple(
        _private([row for row in rows if row["rule"] == rule], rule)
        for rule in ("conference", "journal")
    )


def _private(rows: Sequence[Mapping[str, Any]], rule: str) -> Comparison:
    bad = [row for row in rows if row["violates"]]
    ours = f"Holds in all {len(rows)} settings."
    if bad:
        at = max(bad, key=lambda row: row["excess_factor"])
        ours = (
            f"Not in {len(bad)} of {len(rows)} settings; {at['excess_factor']:.4f} e^epsilon at "
            f"n = {at['records']}, k = {at['letters']}, epsilon = {at['epsilon']}."
        )
    return statement(
        f"DS-ROO is epsilon-DP (theorem 2, {rule}).",
        ours,
        _AUDIT,
        holds=not bad,
        name=f"theorem 2, {rule}",
    )


def plot(outcome: Outcome) -> Figure:
    """Draw, for each published rule and k, the largest excess over the remainders of n."""
    from matplotlib.figure import Figure

    audits = outcome.tables["audits"]
    letters = sorted(set(audits.column("letters")))
    figure = Figure(figsize=(11.5, 6.6), layout="constrained")
    grid = figure.subplots(len(_DRAWN), len(letters), squeeze=False)
    image = None
    for (row, rule), (column, k) in product(enumerate(_DRAWN), enumerate(letters)):
        axes = grid[row, column]
        image = _draw(axes, audits.select(rule=rule, letters=k))
        axes.set_title(f"{rule}'s recursion, $k = {k}$", fontsize=10)
        axes.set_xlabel(r"$M = \lfloor n / k \rfloor$")
        axes.set_ylabel(r"$\varepsilon$")
    if image is not None:
        label = r"$\log_{10}$ of (worst ratio / $e^\varepsilon$ $-$ 1); blank: private"
        figure.colorbar(image, ax=grid, label=label, shrink=0.8)
    return figure


def _draw(axes: Axes, part: Table) -> AxesImage:
    """Draw one map, and a line where e^epsilon = 1 + 1/M."""
    minima = sorted(set(part.column("largest_minimum")))
    epsilons = sorted(set(part.column("epsilon")))
    values = np.full((len(epsilons), len(minima)), np.nan)
    for at in part.records:
        if at["excess_factor"] > VIOLATES:
            place = epsilons.index(at["epsilon"]), minima.index(at["largest_minimum"])
            values[place] = np.fmax(values[place], np.log10(at["excess_factor"] - 1))
    image = axes.imshow(values, origin="lower", aspect="auto", cmap="YlOrRd", vmin=-6, vmax=-0.5)
    limits = [math.log1p(1 / m) for m in minima]
    edges = np.interp(limits, epsilons, range(len(epsilons)), left=np.nan, right=np.nan)
    axes.plot(range(len(minima)), edges, "k--", linewidth=1)
    axes.set_xticks(range(len(minima)), [str(m) for m in minima], fontsize=8, rotation=90)
    axes.set_yticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons], fontsize=8)
    return image


EXPERIMENT = Experiment(
    name="roo-audit-map",
    paper=PAPER,
    item="Theorem 2 (journal and conference)",
    summary="Largest ratio of the published recursions between neighbouring data sets, over "
    "e^epsilon, in exact arithmetic. The repaired recursion and the exact rule are audited too; "
    "they are in the table. Dashed: e^epsilon = 1 + 1/M.",
    published="Both papers: DS-ROO is epsilon-differentially private.",
    config=Config(
        letters=(2, 3, 10, 50),
        epsilons=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
        minima=(1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100, 200),
    ),
    quick=Config(),
    steps=lambda config: len(config.letters) * len(config.epsilons),
    run=run,
    plot=plot,
)
