"""Figure 2 (right) as estimated: 10^6 draws with a 99 % interval, and exact values."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge
from matplotlib.figure import Figure

from dpopt import smoothed
from experiments import drawing, style
from experiments.parameters import Count, Seed, Several, configuration
from experiments.registry import Outcome, Table, experiment, track
from experiments.smoothed.gradients import QuantisedGradient, drawn_counts
from experiments.verdicts import not_comparable

_CONFIDENCE = 0.99


@configuration
class Config:
    """The databases of each size, and how delta is estimated on them.

    Attributes:
        batches: T; the database has n = T^2 records, as in the paper.
        epsilons: in nats; each has a panel.
        databases: sampled for each n; delta and its estimates are averaged over them.
        draws: batches drawn from each database and each of its two neighbours.
        seed: of numpy's generator.
    """

    batches: Several[Count] = (6, 8, 10, 12, 15, 18)
    epsilons: Several[Annotated[float, Ge(0.0)]] = (0.5, 1.0, 2.0, 7.0)
    databases: Count = 5
    draws: Count = 10**6
    seed: Seed = 7


@experiment(
    "smoothed-sgd-estimates",
    config=Config(batches=(5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 20, 22), databases=40),
    quick=Config(),
    effort=("databases", "seed"),
)
def run(config: Config) -> Outcome:
    """Estimate delta of the same databases whose delta is computed exactly."""
    gradient = QuantisedGradient(0.2, 0.12)
    # The interval holds for all databases of one n at once.
    level = 1.0 - (1.0 - _CONFIDENCE) / config.databases
    rows: list[dict[str, Any]] = []
    for drawn in track(config.batches):
        rng = np.random.default_rng([config.seed, drawn])
        # Axes: epsilon, database; exact delta, estimate, and the ends of its interval.
        deltas = np.zeros((len(config.epsilons), config.databases, 4))
        for place in range(config.databases):
            x = gradient.sample(drawn**2, rng)
            profile = smoothed.sgd_profile(x, drawn, config.epsilons)
            outputs = drawn_counts(x, drawn, config.draws, rng)
            for row, epsilon, delta in zip(deltas, config.epsilons, profile.delta, strict=True):
                row[place] = delta, *estimate(outputs, epsilon, config.draws, level)
        case = {"records": drawn**2, "drawn": drawn}
        effort = {"draws": config.draws, "confidence": _CONFIDENCE}
        for epsilon, means in zip(config.epsilons, deltas.mean(axis=1).tolist(), strict=True):
            found = dict(zip(("exact", "estimate", "lower", "upper"), means, strict=True))
            covers = found["lower"] <= found["exact"] <= found["upper"]
            row = case | {"epsilon": epsilon} | effort | found
            rows.append(row | {"covers": covers, "dp_delta": 1 / drawn})
    covered = sum(row["covers"] for row in rows)
    comparison = not_comparable(
        "Figure 2 (right): delta from 10^6 independent trials, with a 99 % interval.",
        f"From {config.draws:,} draws on our databases, the 99 % interval "
        f"of Clopper and Pearson contains the exact delta in {covered} of {len(rows)} cases.",
        "exact distribution of a batch; the estimates are draws from it",
        why="the databases and epsilons of the paper are not printed, nor how its interval is made",
    )
    data = "gradients sampled from the distribution"
    return Outcome({"estimates": Table.of(rows)}, (comparison,), data=data, generated=True)


def estimate(
    counts: np.ndarray, epsilon: float, draws: int, level: float
) -> tuple[float, float, float]:
    """Return the largest hockey-stick between frequencies, and the interval of its event.

    The event is the one that the draws choose. Its two probabilities have Clopper and Pearson's
    intervals, each at half the error.
    """
    own, *others = counts
    factor = math.exp(epsilon)
    best = (0.0, 0.0, interval(0, draws, level)[1])
    for p, q in (pair for other in others for pair in ((own, other), (other, own))):
        event = p > factor * q
        hits, missed = int(p[event].sum()), int(q[event].sum())
        value = (hits - factor * missed) / draws
        if value > best[0]:
            low, high = interval(hits, draws, level)
            least, most = interval(missed, draws, level)
            best = (value, max(0.0, low - factor * most), min(1.0, high - factor * least))
    return best


def interval(hits: int, draws: int, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval, at half the error that the level leaves."""
    from scipy import stats

    ends = stats.binomtest(hits, draws).proportion_ci(0.5 + level / 2.0, method="exact")
    return float(ends.low), float(ends.high)


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each epsilon: exact delta, its estimate with the interval, DP's delta."""
    table = outcome.tables["estimates"]
    figure, panels = drawing.by_panel(
        table,
        ["epsilon"],
        r"$\varepsilon = {epsilon:g}$",
        across=r"records $n$, batches of $\sqrt{n}$",
        up=r"probability $\delta$",
        height=0.55 if len(table.distinct("epsilon")) == 1 else 0.7,
    )
    curves = {
        "dp_delta": (r"$\delta$ of DP, $T/n$", drawing.beside("baseline")),
        "target": ("$1/n$, the target", drawing.beside("limit")),
        "resolution": ("1/draws", drawing.beside("noise")),
        "exact": ("exact", drawing.line("optimum")),
        "estimate": ("estimate from draws", drawing.points("paper", markerfacecolor="none")),
    }
    for axes, rows in panels.items():
        shown = Table.of(
            [
                row | {"target": 1 / row["records"], "resolution": 1 / row["draws"]}
                for row in rows.records
            ]
        )
        values = [value for name in (*curves, "upper") for value in shown.column(name)]
        # A logarithmic axis has no 0: such a delta leaves a gap, such an interval ends at the foot.
        bottom = 0.3 * min(value for value in values if value > 0.0)
        axes.set(yscale="log", ylim=(bottom, 3.0 * max(values)))
        upper = np.array(rows.column("upper"))
        feet = np.minimum(np.maximum(rows.column("lower"), bottom), upper)
        axes.vlines(
            rows.column("records"),
            feet,
            upper,
            color=style.ROLES["paper"].colour,
            linewidth=2.5,
            alpha=0.5,
            label=f"its {100 * rows.column('confidence')[0]:g} % interval",
        )
        drawing.draw_columns(axes, shown, "records", curves, least=0.0)
    return drawing.finish(figure, [*panels])
