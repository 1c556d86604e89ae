"""Tables 1, 6, 8 and 10 of the DaRRM paper, both halves, from recorded votes of trained teachers.

Three training runs give wide intervals: that a printed mean lies within one says little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import gt
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from annotated_types import Ge
from matplotlib.figure import Figure

from experiments import drawing
from experiments.majority.pate.aggregate import (
    aggregators,
    agreement_table,
    drawn_records,
    exact_record,
    teacher_table,
    totals_table,
)
from experiments.majority.pate.published import ORDERED, PRINTED_METHODS, WITHIN
from experiments.majority.pate.rates import load_rates
from experiments.majority.pate.votes import SHIPPED, Votes, load_votes
from experiments.parameters import Count, Seed, Some, configuration
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, meanings, track
from experiments.verdicts import not_comparable, observed

_NAMES = {"gnmax": "GNMax", "subsampling": "Subsampling", "surrogate": "The optimised gamma"}
_VOTES = "exact accuracy on recorded votes; the teachers are not the paper's"
_ONE_RUN = "one training run has no spread"

Runs = Mapping[str, Sequence[float]]
_SHIPPED = "recorded votes of our teachers, shipped with the project"

_LOOKS: drawing.Looks = {
    "gnmax": ("GNMax, Rényi bound (the paper's)", drawing.line("baseline-3")),
    "gnmax-label": ("GNMax, exact for the label", drawing.line("baseline-2")),
    "subsampling": ("DaRRM, subsampling", drawing.line("baseline")),
    "surrogate": ("DaRRM, the paper's objective", drawing.line("paper")),
    "mean": ("DaRRM, expected error, independent $p_i$", drawing.line("optimum")),
    "common-p": ("DaRRM, expected error, common $p$", drawing.line("variant")),
    "private-majority": ("majority of private teachers, no noise", drawing.beside("noise")),
    "plain-majority": ("majority of teachers without privacy", drawing.beside("limit")),
}
_TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion"}


@configuration
class Config:
    """Parameters of the tables.

    Attributes:
        datasets: whose shipped votes are read, "mnist" and "fashion-mnist".
        votes: a votes file to use instead; none for the shipped ones.
        allowance: each m, a whole number; the target of one label is (m epsilon, m Delta).
        queries: Q, number of labels; each at most the number of test images.
        draws: how often Q images are drawn, for mean and spread as printed in the paper; at
            least 2.
        seed: of the draws and of the aggregators' noise.
    """

    datasets: Some[Literal["mnist", "fashion-mnist"]] = ("mnist", "fashion-mnist")
    votes: str | None = None
    allowance: Some[Count] = (1, 3, 5, 7)
    queries: Some[Count] = (20, 50, 100)
    draws: Annotated[int, Ge(2)] = 10
    seed: Seed = 10

    def sources(self) -> tuple[Path, ...]:
        """Return the votes files."""
        if self.votes is not None:
            return (Path(self.votes),)
        return tuple(SHIPPED[name] for name in self.datasets)


@experiment(
    "majority-tables-1-6-8-10",
    config=Config(draws=1000),
    quick=Config(),
    effort=("draws", "seed"),
)
def run(config: Config) -> Outcome:
    """Aggregate the votes in every way, for every target."""
    rows: dict[str, list[dict[str, Cell]]] = {}
    compared: list[Comparison] = []
    for path in config.sources():
        votes = load_votes(path)
        tables = _tables(votes, config)
        compared += comparisons(tables, votes.dataset)
        for name, table in tables.items():
            own = ({"dataset": votes.dataset, **record} for record in table.records)
            rows.setdefault(name, []).extend(own)
    whole = {name: Table.of(records) for name, records in rows.items()}
    whole["methods"] = meanings(Path(__file__).parent, "majority-tables-1-6-8-10")
    if config.votes is None:
        whole["learning-rates"] = load_rates()
    return Outcome(whole, tuple(compared), data=config.votes or _SHIPPED)


def _tables(votes: Votes, config: Config) -> dict[str, Table]:
    """Return the tables of one votes file."""
    exact: list[dict[str, Cell]] = []
    drawn: list[dict[str, Cell]] = []
    for allowance in track(config.allowance):
        ways = aggregators(votes, allowance)
        exact += [exact_record(votes, way, allowance) for way in ways]
        for queries in config.queries:
            drawn += drawn_records(config.draws, config.seed, votes, ways, allowance, queries)
    return {
        "accuracy": Table.of(exact),
        "queries": Table.of(drawn),
        "teachers": teacher_table(votes),
        "agreement": agreement_table(votes),
        "totals": totals_table(votes, config.allowance, config.queries),
    }


def comparisons(tables: Mapping[str, Table], dataset: str) -> tuple[Comparison, ...]:
    """Compare every printed accuracy, and the orders that the paper sees in them."""
    accuracy, queries = tables["accuracy"], tables["queries"]
    judged = [row for method in PRINTED_METHODS for row in _printed(queries, method)]
    at = {m: _runs(accuracy.select(m=m)) for m in accuracy.distinct("m")}
    if 3 in at:
        judged.append(_highest(at[3]))
    judged += [_independent(at), _private_teachers(at)]
    if dataset == "mnist":
        return tuple(judged)
    return tuple(
        replace(each, claim=f"{dataset}: {each.claim}", statement=f"{each.statement}, {dataset}")
        for each in judged
    )


def _runs(accuracy: Table) -> Runs:
    """Return the accuracy of every training run, by method."""
    seeds = [name for name in accuracy.columns if name.startswith("seed_")]
    columns = zip(*(accuracy.column(name) for name in seeds), strict=True)
    return dict(zip(accuracy.column("method"), columns, strict=True))


def _printed(queries: Table, method: str) -> list[Comparison]:
    """Compare the printed means of one method; none if the paper has none for these votes."""
    rows = [row for row in queries.select(method=method).records if row["printed_mean"] is not None]
    if not rows:
        return []
    shown = _most_queries(rows)
    printed = ", ".join(f"{row['printed_mean']:.2f}" for row in shown)
    claim = (
        f"{_NAMES[method]}: {printed} {_where([row['m'] for row in shown])}, Q = {shown[0]['Q']}, "
        "and for each other Q."
    )
    ours = f"{_means(row['exact_mean'] for row in shown)}"
    name = f"Tables 1, 6, 8 and 10, {method}"
    apart = f"mean difference {fmean(row['exact_minus_printed'] for row in rows):+.3f}"
    if any(row["within"] is None for row in rows):
        return [not_comparable(claim, f"{ours}; {apart}.", _VOTES, why=_ONE_RUN, name=name)]
    within = sum(row["within"] for row in rows)
    widths = [row["allowed_difference"] for row in rows]
    ours += f"; {within} of {len(rows)} within {min(widths):.2f} to {max(widths):.2f}, {apart}."
    return [observed(claim, ours, _VOTES, alike=within == len(rows), rule=WITHIN, name=name)]


def _most_queries(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = max(row["Q"] for row in rows)
    return [row for row in rows if row["Q"] == most]


def _means(means: Iterable[float]) -> str:
    return ", ".join(f"{mean:.3f}" for mean in means)


def _highest(at: Runs) -> Comparison:
    runs = list(zip(*(at[method] for method in PRINTED_METHODS), strict=True))
    first = sum(max(run) == run[PRINTED_METHODS.index("surrogate")] for run in runs)
    means = _means(fmean(at[method]) for method in PRINTED_METHODS)
    return observed(
        "At m = 3 the optimised gamma has the highest accuracy of the three (Table 1).",
        f"In {first} of {len(runs)} training runs; {', '.join(PRINTED_METHODS)}: {means}.",
        _VOTES,
        alike=first == len(runs),
        rule=ORDERED,
        name="Table 1, order",
    )


def _independent(at: Mapping[int, Runs]) -> Comparison:
    """Say where a belief in independent p_i loses to the paper's gamma in the mean."""
    paper, ours, common = (
        [fmean(row[method]) for row in at.values()] for method in ("surrogate", "mean", "common-p")
    )
    behind = [m for m, a, b in zip(at, ours, paper, strict=True) if a < b - 1e-9]
    return observed(
        f"The paper's gamma is right with {_means(paper)} on these votes {_where(at)}.",
        f"The least error for independent p_i loses {_where(behind)}: {_means(ours)}; for one p "
        f"common to all, this package's default, {_means(common)}.",
        _VOTES,
        alike=not behind,
        rule="agrees if the mean over the runs for independent p_i is nowhere lower",
        name="independent p_i on real votes",
    )


def _private_teachers(at: Mapping[int, Runs]) -> Comparison:
    """Compare private teachers with GNMax at the same loss: with the noise that its label needs.

    The paper's sigma makes GNMax's noisy counts private; its label costs less than DaRRM's.
    """

    def ahead(better: str, worse: str) -> list[int]:
        return [m for m, row in at.items() if all(map(gt, row[better], row[worse]))]

    still = ahead("surrogate", "gnmax-label")
    return observed(
        "There are regimes where ensembling private teachers gives a higher utility than GNMax, "
        "both with the same privacy loss (section 6.2).",
        f"With the paper's sigma in every run {_where(ahead('surrogate', 'gnmax'))}; with the "
        f"least noise for its label, the same loss, {_where(still)}, and GNMax is ahead in every "
        f"run {_where(ahead('gnmax-label', 'surrogate'))}.",
        _VOTES,
        alike=bool(still),
        rule="agrees if it holds in every training run at some m, against the least noise for the "
        "label",
        name="private teachers ahead of GNMax",
    )


def _where(allowances: Collection[int]) -> str:
    return f"at m = {', '.join(map(str, allowances))}" if allowances else "at no m"


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw exact accuracy against m for each data set, with what the paper printed."""
    accuracy, drawn = outcome.tables["accuracy"], outcome.tables["queries"]
    shape = {"height": 1.0, "sharex": True, "sharey": True}
    figure, panels = drawing.by_panel(
        accuracy, ["dataset"], "{dataset}", 2, "allowance $m$", "accuracy of labels", **shape
    )
    for axes, part in panels.items():
        drawing.draw(axes, part, "m", "accuracy", _LOOKS, by="method")
        name = part.column("dataset")[0]
        for method in PRINTED_METHODS:
            shown = drawn.select(dataset=name, method=method).records
            rows = [row for row in shown if row["printed_mean"] is not None]
            look = {"linestyle": "none", "markerfacecolor": "white", "markersize": 6}
            if rows:
                last, (label, line) = _most_queries(rows), _LOOKS[method]
                values = [row["m"] for row in last], [row["printed_mean"] for row in last]
                axes.plot(*values, label=f"_{label}", **line | look)
        axes.set(xticks=sorted(set(part.column("m"))), title=_TITLES.get(name, str(name)))
        axes.margins(0.06)
    spread = max((s for s in accuracy.column("run_spread") if s), default=0.0)
    note = f"Lines: exact, standard deviation over training runs at most {spread:.2f}"
    note += ". White: printed in the paper for the most queries."
    return drawing.finish(figure, figure.axes, note)
