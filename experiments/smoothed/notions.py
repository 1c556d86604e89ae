"""Tables 1, 2 and 3: what each notion of privacy says of the same mechanism, in numbers."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Lt
from matplotlib.figure import Figure

from dpopt import smoothed
from experiments import drawing
from experiments.parameters import Positive, Some, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.smoothed.elections import COUNTED, pmfs
from experiments.smoothed.noisy import NoisyHistogram, least_epsilon, noisy_guarantee
from experiments.smoothed.program import distributional_delta
from experiments.verdicts import judged, not_comparable

# Shares of the records that are drawn, and the epsilons of noiseless sums and of the comparison.
_RATES, _RATE = (0.1, 0.5, 0.9), 0.9
_WITHOUT_NOISE, _COMPARED = (1.0, 3.0), (0.0, 0.5, 1.0)


@configuration
class Config:
    """Sizes, sampling rates and epsilons of each table.

    Attributes:
        records: n of Table 1 with noise.
        epsilons: of the noise there, in nats.
        without_noise: n of Table 1 without noise.
        lost_rate: share of the records that are lost there.
        compared: n of the comparison of three notions.
    """

    records: Some[Annotated[int, Ge(2)]] = (20, 40, 80)
    epsilons: Some[Positive] = (1.0, 4.0, 8.0)
    without_noise: Some[Annotated[int, Ge(2)]] = (1_000, 10_000, 100_000)
    lost_rate: Annotated[float, Ge(0.0), Lt(1.0)] = 0.05
    compared: Some[Annotated[int, Ge(2)]] = (4, 8, 12, 16, 20)


@experiment("smoothed-tables-1-2-3", config=Config())
def run(config: Config) -> Outcome:
    """Compute Table 1, and numbers for Tables 2 and 3."""
    shares = np.array([(share, 1.0 - share) for share in pmfs("units").values()])
    distributions = shares[smoothed.hull_vertices(shares)]
    noisy = [
        _with_noise(n, max(1, math.ceil(rate * n)), epsilon, distributions)
        for n in track(config.records)
        for rate in _RATES
        for epsilon in config.epsilons
    ]
    plain: list[dict[str, Any]] = []
    for n, epsilon in product(config.without_noise, _WITHOUT_NOISE):
        mechanism = smoothed.SamplingHistogram.of_lost_rate(n, config.lost_rate)
        worst = smoothed.smoothed_delta(mechanism, epsilon, distributions)
        row = {"records": n, "share_drawn": mechanism.drawn / n, "epsilon": epsilon}
        deltas = {"log10_smoothed_delta": worst.log10_delta, "dp_delta": worst.dp_delta}
        plain.append(row | deltas)
    notions: list[dict[str, Any]] = []
    for n, epsilon in track(list(product(config.compared, _COMPARED))):
        # All of fewer records would be drawn.
        mechanism = smoothed.SamplingHistogram(n, math.ceil(_RATE * n) if n >= 10 else n - 1)
        worst = smoothed.smoothed_delta(mechanism, epsilon, distributions)
        simulated = distributional_delta(mechanism, epsilon, distributions)
        notions.append(
            {
                "records": n,
                "drawn": mechanism.drawn,
                "epsilon": epsilon,
                "dp_delta": worst.dp_delta,
                "smoothed_delta": worst.delta,
                "distributional_delta": simulated.objective,
                "distributional_gap": simulated.gap,
            }
        )
    tables = {"table_1": noisy, "table_1_without_noise": plain, "tables_2_3": notions}
    compared = _comparisons(noisy, plain, notions)
    return Outcome({name: Table.of(rows) for name, rows in tables.items()}, compared, data=COUNTED)


def _with_noise(n: int, drawn: int, epsilon: float, distributions: np.ndarray) -> dict[str, Any]:
    mechanism = NoisyHistogram(n, drawn, epsilon)
    claimed = epsilon * drawn / n
    found = smoothed.smoothed_delta(mechanism, claimed, distributions)
    return {
        "records": n,
        "drawn": drawn,
        "epsilon": epsilon,
        "claimed_epsilon": claimed,
        "least_epsilon": float(least_epsilon(mechanism).max()),
        "amplified_epsilon": noisy_guarantee(mechanism).amplified,
        "dp_delta_at_claimed": found.dp_delta,
        "smoothed_delta_at_claimed": found.delta,
    }


def _comparisons(
    noisy: list[dict[str, Any]], plain: list[dict[str, Any]], notions: list[dict[str, Any]]
) -> tuple[Comparison, ...]:
    least = [
        min(row["log10_smoothed_delta"] for row in plain if row["records"] == n)
        for n in dict.fromkeys(row["records"] for row in plain)
    ]
    falling = all(a > b for a, b in pairwise(least))
    return (
        judged(
            "With noise the sampling-histogram is (eta epsilon, 0)-DP at a constant sampling rate "
            "eta, e.g. 99.8 % (Table 1).",
            noisy,
            lambda row: row["least_epsilon"] <= row["claimed_epsilon"],
            "every database, neighbour and output; closed form in noisy_guarantee",
            show=("records", "drawn", "epsilon", "least_epsilon", "claimed_epsilon"),
            worst=lambda row: row["least_epsilon"] / row["claimed_epsilon"],
            said="The paper's example has eta = 0.998.",
        ),
        judged(
            "Without noise it is (0, eta)-DP (Table 1).",
            plain,
            lambda row: abs(row["dp_delta"] - row["share_drawn"]) < 1e-12,
            "coupling proof",
        ),
        not_comparable(
            "Without noise smoothed delta is exp(-Theta(n)) (Table 1).",
            f"It {'falls' if falling else 'does not fall'} with n, to 10^{min(least):.0f}.",
            "every composition",
            why="exp(-Theta(n)) is a statement on a limit",
        ),
        judged(
            "Smoothed DP implies distributional DP (Proposition 9).",
            notions,
            lambda row: (
                row["distributional_delta"] - 1e-8
                <= row["smoothed_delta"]
                <= row["dp_delta"] * (1 + 1e-12)
            ),
            "linear program over simulators, dual bound within 1e-8",
        ),
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the noisy mechanism's least epsilon and the claim, and the three notions."""
    figure, (left, right) = drawing.panels(2, height=0.8)
    claimed, least = map(outcome.tables["table_1"].column, ("claimed_epsilon", "least_epsilon"))
    ends = sorted(set(claimed))
    if len(ends) > 1:
        left.plot(ends, ends, label=r"claimed, $\eta \varepsilon$", **drawing.beside("limit"))
    for fails, role, label in ((True, "paper", "claim fails"), (False, "optimum", "claim holds")):
        shown = [pair for pair in zip(claimed, least, strict=True) if (pair[1] > pair[0]) is fails]
        if shown:
            left.plot(*zip(*shown, strict=True), label=label, **drawing.points(role))
    left.set(
        xscale="log",
        yscale="log",
        xlabel=r"claimed $\eta \varepsilon$ (nats)",
        ylabel=r"least $\varepsilon$ with $\delta = 0$ (nats)",
        title=r"Table 1, noise of level $1 / \varepsilon$",
    )
    left.margins(0.08)
    table = outcome.tables["tables_2_3"]
    epsilons = table.distinct("epsilon")
    epsilon = epsilons[len(epsilons) // 2]
    curves = {
        "dp_delta": ("DP", drawing.line("baseline")),
        "smoothed_delta": ("smoothed DP", drawing.line("optimum")),
        "distributional_delta": ("distributional DP", drawing.line("variant")),
    }
    drawing.draw_columns(right, table.select(epsilon=epsilon), "records", curves, least=0.0)
    right.set(
        yscale="log",
        xlabel="records $n$",
        ylabel=rf"probability $\delta$ at $\varepsilon = {epsilon:g}$",
        title="three notions",
        xticks=table.distinct("records"),
    )
    right.margins(y=0.12)
    return drawing.finish(figure, (left, right))
