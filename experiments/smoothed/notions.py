"""Tables 1, 2 and 3: what each notion of privacy says of the same mechanism, in numbers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from pydantic.dataclasses import dataclass

from dpopt import smoothed
from experiments import drawing, style
from experiments.parameters import STRICT, Positive, Some
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.smoothed import PAPER
from experiments.smoothed.distributional import distributional_delta
from experiments.smoothed.noisy import NoisyHistogram, noisy_guarantee
from experiments.smoothed.votes import COUNTED, history, laws, units
from experiments.verdicts import not_comparable, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Rate = Annotated[float, Gt(0.0), Le(1.0)]


@dataclass(frozen=True, config=STRICT)
class Config:
    """Sizes, sampling rates and epsilons of each table, and the set of distributions.

    Attributes:
        records: n of Table 1 with noise.
        rates: eta, shares of the records that are drawn there, above 0 and up to 1.
        epsilons: of the noise there, in nats.
        without_noise: n of Table 1 without noise.
        without_noise_epsilons: in nats.
        lost_rate: share of the records that are lost there.
        compared: n of the comparison of three notions.
        compared_epsilons: in nats.
        compared_rate: share of the records that are drawn there.
        distributions: the set Pi, a text of words with blanks between them: "units" for all units
            of 2020, "history" for all elections, a unit, a year, or a share from 0 to 1.
    """

    records: Some[Annotated[int, Ge(2)]] = (20, 40, 80)
    rates: Some[Rate] = (0.1, 0.5, 0.9)
    epsilons: Some[Positive] = (1.0, 4.0, 8.0)
    without_noise: Some[Annotated[int, Ge(2)]] = (1_000, 10_000, 100_000)
    without_noise_epsilons: Some[Annotated[float, Ge(0.0)]] = (1.0, 3.0)
    lost_rate: Annotated[float, Ge(0.0), Lt(1.0)] = 0.05
    compared: Some[Annotated[int, Ge(2)]] = (4, 8, 12, 16, 20)
    compared_epsilons: Some[Annotated[float, Ge(0.0)]] = (0.0, 0.5, 1.0)
    compared_rate: Rate = 0.9
    distributions: str = "units"

    def __post_init__(self) -> None:
        self.laws()

    def laws(self) -> np.ndarray:
        """Return the vertices of the hull of the distributions, shape (l, 2)."""
        found = laws(self.distributions, units(), history())
        rows = np.array([(law.share, 1.0 - law.share) for law in found])
        return rows[smoothed.hull_vertices(rows)]


_CONFIG = Config()


@experiment(
    "smoothed-tables-1-2-3",
    PAPER,
    "Table 1; the notions of Tables 2 and 3 in numbers",
    "The sampling-histogram under DP, smoothed DP and distributional DP, with and "
    "without noise, over the two extreme units of 2020. Tables 2 and 3 of the paper hold words "
    "alone; what three of their notions give is computed.",
    published="Table 1: (0, eta)-DP and exp(-Theta(n)) without noise, (eta epsilon, 0)-DP with",
    config=_CONFIG,
    mathematics=(
        r"\Pr[\tilde h | h] = \frac{1}{Z} \exp\left(-\frac{\varepsilon}{4} "
        r"\sum_j |h_j - \tilde h_j|\right)",
        r"\varepsilon' = \ln(1 + \eta (e^{\varepsilon} - 1)) \geq \eta \varepsilon",
        r"\delta_{DDP} \leq \delta_{SDP} = \max_{\pi \in \Pi^n} E_{x \sim \pi} [\delta(x)] "
        r"\leq \delta_{DP} = \max_x \delta(x)",
    ),
)
def run(config: Config) -> Outcome:
    """Compute Table 1 and the numbers behind Tables 2 and 3."""
    distributions = config.laws()
    first: list[dict[str, Cell]] = []
    for n in track(config.records):
        for rate in config.rates:
            drawn = max(1, math.ceil(rate * n))
            first += [_with_noise(n, drawn, e, distributions) for e in config.epsilons]
    plain = [
        _without_noise(n, epsilon, config.lost_rate, distributions)
        for n in config.without_noise
        for epsilon in config.without_noise_epsilons
    ]
    second: list[dict[str, Cell]] = []
    for n in track(config.compared):
        rate = config.compared_rate
        # All of so few records would be drawn.
        drawn = max(1, math.ceil(rate * n) - (n < 10 and rate < 1.0 and math.ceil(rate * n) == n))
        second += [_notions(n, drawn, e, distributions) for e in config.compared_epsilons]
    noiseless = f"The same without noise, {100 * config.lost_rate:g} % lost."
    notions = f"delta of three notions, about {config.compared_rate:g} n of the records drawn."
    tables = {
        "table_1": Table.of("Sampling-histogram with noise of level 1 / epsilon.", first),
        "table_1_without_noise": Table.of(noiseless, plain),
        "tables_2_3": Table.of(notions, second),
    }
    return Outcome(
        tables, tuple(_findings(second)), tuple(_comparisons(first, plain, second)), data=COUNTED
    )


def _with_noise(n: int, drawn: int, epsilon: float, distributions: np.ndarray) -> dict[str, Cell]:
    mechanism = NoisyHistogram(n, drawn, epsilon)
    claimed = epsilon * drawn / n
    guarantee = noisy_guarantee(mechanism)
    found = smoothed.smoothed_delta(mechanism, claimed, distributions)
    return {
        "records": n,
        "drawn": drawn,
        "epsilon": epsilon,
        "claimed_epsilon": claimed,
        "least_epsilon": float(smoothed.general_epsilon(mechanism).max()),
        "amplified_epsilon": guarantee.amplified,
        "dp_delta_at_claimed": smoothed.worst_case_delta(mechanism, claimed).delta,
        "smoothed_delta_at_claimed": found.delta,
    }


def _without_noise(
    n: int, epsilon: float, lost_rate: float, distributions: np.ndarray
) -> dict[str, Cell]:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(n, lost_rate)
    found = smoothed.smoothed_delta(mechanism, epsilon, distributions)
    return {
        "records": n,
        "share_drawn": mechanism.drawn / n,
        "epsilon": float(epsilon),
        "log10_smoothed_delta": found.log10_delta,
        "dp_delta": found.dp_delta,
        "certified": found.certified,
    }


def _notions(n: int, drawn: int, epsilon: float, distributions: np.ndarray) -> dict[str, Cell]:
    mechanism = smoothed.SamplingHistogram(n, drawn)
    found = smoothed.smoothed_delta(mechanism, epsilon, distributions)
    apart = distributional_delta(mechanism, epsilon, distributions)
    return {
        "records": n,
        "drawn": mechanism.drawn,
        "epsilon": epsilon,
        "dp_delta": found.dp_delta,
        "smoothed_delta": found.delta,
        "distributional_delta": apart.objective,
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


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the noisy mechanism's least epsilon beside the claim, and the three notions."""
    figure, (panels,) = style.figure(1, 2, height=0.8)
    _noise(panels[0], outcome.tables["table_1"])
    _three(panels[1], outcome.tables["tables_2_3"])
    drawing.finish(figure, panels)
    return figure


def _three(axes: Axes, table: Table) -> None:
    epsilons = list(dict.fromkeys(table.column("epsilon")))
    epsilon = epsilons[len(epsilons) // 2]
    part = table.select(epsilon=epsilon)
    for column, label, look in (
        ("dp_delta", "DP", style.role("baseline").line),
        ("smoothed_delta", "smoothed DP", style.role("optimum").line),
        ("distributional_delta", "distributional DP", style.role("variant").line),
    ):
        # A gap stands for a delta of 0.
        values = [value if value > 0.0 else math.nan for value in part.column(column)]
        axes.plot(part.column("records"), values, label=label, **look)
    axes.set_yscale("log")
    axes.margins(y=0.12)
    axes.set_xlabel("records $n$")
    axes.set_ylabel(rf"probability $\delta$ at $\varepsilon = {epsilon:g}$")
    axes.set_title("three notions")


def _noise(axes: Axes, table: Table) -> None:
    claimed, least = table.column("claimed_epsilon"), table.column("least_epsilon")
    above = [b > a for a, b in zip(claimed, least, strict=True)]
    ends = [min(claimed), max(claimed)]
    if ends[0] < ends[1]:
        axes.plot(ends, ends, label=r"claimed, $\eta \varepsilon$", **drawing.beside("limit"))
    for fails, role, label in ((True, "paper", "claim fails"), (False, "optimum", "claim holds")):
        at = [i for i, flag in enumerate(above) if flag is fails]
        if at:
            axes.plot(
                [claimed[i] for i in at],
                [least[i] for i in at],
                label=label,
                **drawing.points(role),
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08)
    axes.set_xlabel(r"claimed $\eta \varepsilon$ (nats)")
    axes.set_ylabel(r"least $\varepsilon$ with $\delta = 0$ (nats)")
    axes.set_title(r"Table 1, noise of level $1 / \varepsilon$")
