"""Tables 1, 2 and 3: what each notion of privacy says of the same mechanism, in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpopt import smoothed
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.smoothed import PAPER
from experiments.smoothed.votes import units
from experiments.verdicts import not_comparable, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Sizes, sampling rates and epsilons; Pi holds the two extreme units of 2020."""

    sizes: tuple[int, ...] = (20, 40, 80)
    rates: tuple[str, ...] = ("0.1", "0.5", "0.9")
    epsilons: tuple[float, ...] = (1.0, 4.0, 8.0)
    without_noise: tuple[int, ...] = (1_000, 10_000, 100_000)
    compared: tuple[int, ...] = (4, 8, 12, 16, 20)


def run(config: Config, advance: Advance) -> Outcome:
    """Compute Table 1 and the numbers behind Tables 2 and 3."""
    laws = _laws()
    first: list[dict[str, Cell]] = []
    for n in config.sizes:
        for rate in config.rates:
            drawn = max(1, math.ceil(float(rate) * n))
            first += [_with_noise(n, drawn, epsilon, laws) for epsilon in config.epsilons]
        advance()
    plain = [_without_noise(n, epsilon, laws) for n in config.without_noise for epsilon in (1, 3)]
    advance()
    second: list[dict[str, Cell]] = []
    for n in config.compared:
        second += [_notions(n, epsilon, laws) for epsilon in (0.0, 0.5, 1.0)]
        advance()
    tables = {
        "table_1": Table.of("Sampling-histogram with noise of level 1 / epsilon.", first),
        "table_1_without_noise": Table.of("The same without noise, 5 % lost.", plain),
        "tables_2_3": Table.of("delta of three notions, about 0.9 n of the records drawn.", second),
    }
    return Outcome(tables, tuple(_findings(second)), tuple(_comparisons(first, plain, second)))


def _laws() -> np.ndarray:
    rows = np.array([(unit.share, 1.0 - unit.share) for unit in units()])
    return rows[smoothed.hull_vertices(rows)]


def _with_noise(n: int, drawn: int, epsilon: float, laws: np.ndarray) -> dict[str, Cell]:
    mechanism = smoothed.NoisyHistogram(n, drawn, epsilon)
    claimed = epsilon * drawn / n
    guarantee = smoothed.noisy_guarantee(mechanism)
    return {
        "records": n,
        "drawn": drawn,
        "epsilon": epsilon,
        "claimed_epsilon": claimed,
        "least_epsilon": float(smoothed.general_epsilon(mechanism).max()),
        "amplified_epsilon": guarantee.amplified,
        "dp_delta_at_claimed": smoothed.worst_case_delta(mechanism, claimed).delta,
        "smoothed_delta_at_claimed": smoothed.smoothed_delta(mechanism, claimed, laws).delta,
    }


def _without_noise(n: int, epsilon: float, laws: np.ndarray) -> dict[str, Cell]:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(n, "0.05")
    found = smoothed.smoothed_delta(mechanism, epsilon, laws)
    return {
        "records": n,
        "share_drawn": mechanism.drawn / n,
        "epsilon": float(epsilon),
        "log10_smoothed_delta": found.log10_delta,
        "dp_delta": found.dp_delta,
        "certified": found.certified,
    }


def _notions(n: int, epsilon: float, laws: np.ndarray) -> dict[str, Cell]:
    mechanism = smoothed.SamplingHistogram(n, max(1, math.ceil(0.9 * n) - (n < 10)))
    found = smoothed.smoothed_delta(mechanism, epsilon, laws)
    apart = smoothed.distributional_delta(mechanism, epsilon, laws)
    return {
        "records": n,
        "drawn": mechanism.drawn,
        "epsilon": epsilon,
        "dp_delta": found.dp_delta,
        "smoothed_delta": found.delta,
        "distributional_delta": apart.value,
        "distributional_gap": apart.gap,
    }


def _number(row: dict[str, Cell], name: str) -> float:
    return float(row[name] or 0.0)


def _findings(second: list[dict[str, Cell]]) -> list[str]:
    last = second[-1]
    return [
        f"n = {last['records']}, epsilon = {last['epsilon']}: DP's delta "
        f"{_number(last, 'dp_delta'):.3g}, smoothed {_number(last, 'smoothed_delta'):.3g}, "
        f"distributional {_number(last, 'distributional_delta'):.3g}."
    ]


def _comparisons(
    first: list[dict[str, Cell]], plain: list[dict[str, Cell]], second: list[dict[str, Cell]]
) -> list[Comparison]:
    broken = [r for r in first if _number(r, "least_epsilon") > _number(r, "claimed_epsilon")]
    ordered = all(
        _number(r, "distributional_delta") - 1e-8
        <= _number(r, "smoothed_delta")
        <= _number(r, "dp_delta") * (1 + 1e-12)
        for r in second
    )
    without = all(abs(_number(r, "dp_delta") - _number(r, "share_drawn")) < 1e-12 for r in plain)
    least = [
        min(_number(r, "log10_smoothed_delta") for r in plain if r["records"] == n)
        for n in dict.fromkeys(r["records"] for r in plain)
    ]
    falling = all(a > b for a, b in pairwise(least))
    strict = sum(_number(r, "distributional_delta") < _number(r, "smoothed_delta") for r in second)
    return [
        statement(
            "With noise the sampling-histogram is (eta epsilon, 0)-DP at a constant sampling rate "
            "eta, e.g. 99.8 % (Table 1).",
            _broken(broken, len(first)) if broken else "Holds in all settings.",
            "every database, neighbour and output; closed form in noisy_guarantee",
            holds=not broken,
        ),
        statement(
            "Without noise it is (0, eta)-DP (Table 1).",
            f"delta is T/n at every epsilon of {len(plain)} settings."
            if without
            else "DP's delta is above T/n, or below it.",
            "coupling proof",
            holds=without,
        ),
        not_comparable(
            "Without noise smoothed delta is exp(-Theta(n)) (Table 1).",
            f"It {'falls' if falling else 'does not fall'} with n, to 10^{min(least):.0f}.",
            "every composition",
            why="exp(-Theta(n)) is a statement on a limit",
        ),
        statement(
            "Smoothed DP implies distributional DP (Proposition 9).",
            f"Holds in {len(second)} settings, strictly in {strict}." if ordered else "Fails.",
            "linear program over simulators, dual bound within 1e-8",
            holds=ordered,
        ),
    ]


def _broken(broken: list[dict[str, Cell]], settings: int) -> str:
    """Say where (eta epsilon, 0)-DP fails: at which shares, and from which epsilon on."""
    worst = max(broken, key=lambda r: _number(r, "least_epsilon") / _number(r, "claimed_epsilon"))
    share = max(_number(r, "drawn") / _number(r, "records") for r in broken)
    return (
        f"False in {len(broken)} of {settings} settings of ours, all with eta of at most {share:g} "
        f"and epsilon of at least {min(_number(r, 'epsilon') for r in broken):g}: at n = "
        f"{worst['records']}, T = {worst['drawn']}, epsilon = {worst['epsilon']:g} the least is "
        f"{_number(worst, 'least_epsilon'):.4f}, not {_number(worst, 'claimed_epsilon'):.4f}. The "
        "paper's example has eta = 0.998."
    )


def plot(outcome: Outcome) -> Figure:
    """Draw the noisy mechanism's least epsilon beside the claim, and the three notions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    _noise(left, outcome.tables["table_1"])
    part = outcome.tables["tables_2_3"].select(epsilon=0.5)
    for column, label, style in (
        ("dp_delta", "DP", "s--"),
        ("smoothed_delta", "smoothed DP", "o-"),
        ("distributional_delta", "distributional DP", "^:"),
    ):
        right.semilogy(part.column("records"), part.column(column), style, label=label)
    right.set_xlabel("records $n$")
    right.set_ylabel(r"$\delta$ at $\varepsilon = 0.5$")
    right.set_title(r"three notions, $T \approx 0.9 n$", fontsize=10)
    right.legend(frameon=False, fontsize=9)
    right.grid(alpha=0.25)
    return figure


def _noise(axes: Axes, table: Table) -> None:
    claimed, least = table.column("claimed_epsilon"), table.column("least_epsilon")
    above = [b > a for a, b in zip(claimed, least, strict=True)]
    for chosen, colour, label in ((True, "#c1432e", "claim fails"), (False, "#2f5d9b", "holds")):
        at = [i for i, flag in enumerate(above) if flag is chosen]
        axes.loglog(
            [claimed[i] for i in at], [least[i] for i in at], "o", color=colour, label=label
        )
    ends = [min(claimed), max(claimed)]
    axes.loglog(ends, ends, ":", color="#555555", label=r"$\eta \varepsilon$")
    axes.set_xlabel(r"claimed: $\eta \varepsilon$")
    axes.set_ylabel(r"least $\varepsilon$ with $\delta = 0$")
    axes.set_title("Table 1: noise of level $1 / \\varepsilon$", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25)


_CONFIG = Config()

EXPERIMENTS = (
    Experiment(
        name="smoothed-tables-1-2-3",
        paper=PAPER,
        item="Table 1; the notions of Tables 2 and 3 in numbers",
        summary="The sampling-histogram under DP, smoothed DP and distributional DP, with and "
        "without noise, over the two extreme units of 2020. Tables 2 and 3 of the paper hold words "
        "alone; what three of their notions give is computed.",
        published="Table 1: (0, eta)-DP and exp(-Theta(n)) without noise, (eta epsilon, 0)-DP with",
        config=_CONFIG,
        quick=_CONFIG,
        steps=lambda config: len(config.sizes) + 1 + len(config.compared),
        run=run,
        plot=plot,
    ),
)
