"""Figure 2 (right) as it was estimated: 10^6 draws with a 99 % interval, beside exact values."""

from __future__ import annotations

import math
from dataclasses import dataclass as plain_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from pydantic.dataclasses import dataclass

from dpopt import smoothed
from experiments import drawing, style
from experiments.parameters import STRICT, Count, Probability, Seed, Several
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.smoothed import PAPER
from experiments.smoothed.gradients import Gradients, gradients
from experiments.smoothed.quantised import sample_database
from experiments.verdicts import not_comparable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PUBLISHED_DRAWS = 10**6
_CERTIFICATE = "exact law of a batch; the estimates are draws from it"


@dataclass(frozen=True, config=STRICT)
class Config:
    """The databases of each size, and how delta is estimated on them.

    Attributes:
        distributions: words "family:mean,deviation" with blanks between them, the family gaussian
            or laplace; all records of a database are from the first, unless `share` says less.
        share: part of the records from the first distribution; the rest is from the last.
        batches: T; the database has n = T^2 records, as in the paper.
        epsilons: in nats; each has a panel.
        databases: sampled for each n; delta and its estimates are averaged over them.
        draws: batches drawn from each database and each of its two neighbours.
        confidence: of the interval, for all databases of one n at once.
        bits: of the quantisation, from 1 to 16.
        seed: of numpy's generator.
    """

    distributions: str = "gaussian:0,0.12 gaussian:0.2,0.12"
    share: Annotated[float, Ge(0.0), Le(1.0)] = 0.0
    batches: Several[Count] = (6, 8, 10, 12, 15, 18)
    epsilons: Several[Annotated[float, Ge(0.0)]] = (0.5, 1.0, 2.0, 7.0)
    databases: Count = 5
    draws: Count = PUBLISHED_DRAWS
    confidence: Probability = 0.99
    bits: Annotated[int, Ge(1), Le(16)] = 8
    seed: Seed = 7

    def __post_init__(self) -> None:
        self.gradients()

    def gradients(self) -> Gradients:
        """Return the set of distributions."""
        return gradients((self.distributions,), self.bits)[0]


@plain_dataclass(frozen=True)
class Estimate:
    """An estimate of delta(x) from draws, and an interval for what it estimates.

    Attributes:
        value: the largest hockey-stick between the frequencies of two databases.
        lower: of the interval.
        upper: likewise.
    """

    value: float
    lower: float
    upper: float


@experiment(
    "smoothed-sgd-estimates",
    PAPER,
    "Figure 2 (right), estimates beside exact values",
    "delta of one SGD step from the paper's 10^6 draws, with the 99 % interval of "
    "Clopper and Pearson for the event that the draws choose, beside exact delta of the same "
    "databases. The interval is for one event's two probabilities; it knows nothing of how the "
    "event was chosen.",
    published="Probabilities are estimated from 10^6 independent trials; 99 % intervals.",
    config=Config(batches=(5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 20, 22), databases=40),
    quick=Config(),
    effort=("databases", "confidence", "seed"),
    mathematics=(
        r"S = \{a : \hat p_a > e^\varepsilon \hat p'_a\}, \qquad "
        r"\hat\delta = \hat p(S) - e^\varepsilon \hat p'(S), \qquad "
        r"[p_-(S) - e^\varepsilon p'_+(S),\ p_+(S) - e^\varepsilon p'_-(S)]",
    ),
)
def run(config: Config) -> Outcome:
    """Estimate delta of the same databases whose delta is computed exactly."""
    rows: list[dict[str, Cell]] = []
    for drawn in track(config.batches):
        rows += _size(config, drawn)
    table = Table.of(
        f"Mean of exact delta over {config.databases} databases, of its estimates from "
        f"{config.draws:,} draws, and of their {config.confidence:.0%} intervals.",
        rows,
    )
    return Outcome(
        {"estimates": table},
        tuple(_findings(rows)),
        tuple(_comparisons(config, rows)),
        data="gradients sampled from the distributions",
        generated=True,
    )


def _size(config: Config, drawn: int) -> list[dict[str, Cell]]:
    """Return the rows of one n."""
    given = config.gradients()
    counts = [0] * len(given.members)
    counts[0] = round(config.share * drawn**2)
    counts[-1] += drawn**2 - counts[0]
    rng = np.random.default_rng([config.seed, drawn])
    exact = np.zeros(len(config.epsilons))
    found: list[list[Estimate]] = [[] for _ in config.epsilons]
    for _ in range(config.databases):
        x = sample_database(given.members, counts, rng)
        exact += smoothed.sgd_profile(
            x, drawn, config.epsilons, lowest=given.lowest, highest=given.highest
        ).delta
        frequencies = _drawn(x, drawn, given, config.draws, rng)
        for place, epsilon in enumerate(config.epsilons):
            level = 1.0 - (1.0 - config.confidence) / config.databases
            found[place].append(_estimate(frequencies, epsilon, config.draws, level))
    rows: list[dict[str, Cell]] = []
    for epsilon, total, part in zip(config.epsilons, exact.tolist(), found, strict=True):
        delta = total / config.databases
        value, lower, upper = (
            float(np.mean([getattr(each, name) for each in part]))
            for name in ("value", "lower", "upper")
        )
        rows.append(
            {
                "records": drawn**2,
                "drawn": drawn,
                "epsilon": epsilon,
                "draws": config.draws,
                "confidence": config.confidence,
                "exact": delta,
                "estimate": value,
                "lower": lower,
                "upper": upper,
                "factor": value / delta if delta > 0.0 else None,
                "covers": lower <= delta <= upper,
                "dp_delta": drawn / drawn**2,
            }
        )
    return rows


def _drawn(
    x: np.ndarray, drawn: int, given: Gradients, draws: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return how often each output is drawn from the database and its two neighbours.

    The neighbours move a least value to the largest, and a largest to the least. Counts of
    independent draws are multinomial, so they are drawn as such from the exact law of a batch.
    """
    databases = [x, x.copy(), x.copy()]
    databases[1][int(x.argmin())] = given.highest
    databases[2][int(x.argmax())] = given.lowest
    laws = [smoothed.batch_law(values, drawn, rounded=True) for values in databases]
    first = min(law.lowest for law in laws)
    size = max(int(law.outputs[-1]) for law in laws) - first + 1
    return [rng.multinomial(draws, law.over(first, size)) for law in laws]


def _estimate(counts: list[np.ndarray], epsilon: float, draws: int, level: float) -> Estimate:
    """Return the largest hockey-stick between frequencies, and the interval of its event.

    The event is the one that the draws choose. Its two probabilities have Clopper and Pearson's
    intervals, each at half the error.
    """
    own, *others = counts
    factor = math.exp(epsilon)
    best = Estimate(0.0, 0.0, _interval(0, draws, level)[1])
    for other in others:
        for p, q in ((own, other), (other, own)):
            event = p > factor * q
            hits, missed = int(p[event].sum()), int(q[event].sum())
            value = (hits - factor * missed) / draws
            if value > best.value:
                low, high = _interval(hits, draws, level)
                least, most = _interval(missed, draws, level)
                best = Estimate(
                    value, max(0.0, low - factor * most), min(1.0, high - factor * least)
                )
    return best


def _interval(hits: int, draws: int, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval, at half the error that the level leaves."""
    from scipy import stats

    found = stats.binomtest(hits, draws).proportion_ci(0.5 + level / 2.0, method="exact")
    return float(found.low), float(found.high)


def _findings(rows: list[dict[str, Any]]) -> list[str]:
    found = []
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        part = [row for row in rows if row["epsilon"] == epsilon]
        covered = sum(row["covers"] for row in part)
        told = ", ".join(
            f"{row['factor']:.3g} ({row['records']})" for row in part if row["factor"] is not None
        )
        found.append(
            f"At epsilon = {epsilon:g} the mean estimate is delta times {told}, in brackets n; the "
            f"interval holds delta in {covered} of {len(part)} sizes."
        )
    return found


def _comparisons(config: Config, rows: list[dict[str, Any]]) -> list[Comparison]:
    covered = sum(row["covers"] for row in rows)
    return [
        not_comparable(
            "Figure 2 (right): delta from 10^6 independent trials, with a 99 % interval.",
            f"From {config.draws:,} draws on databases of ours, the {config.confidence:.0%} "
            f"interval of Clopper and Pearson holds exact delta in {covered} of {len(rows)} cases.",
            _CERTIFICATE,
            why="the databases and epsilons of the paper are not printed, nor how its interval is "
            "made",
        )
    ]


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each epsilon: exact delta, its estimate with the interval, DP's delta."""
    table = outcome.tables["estimates"]
    epsilons = list(dict.fromkeys(table.column("epsilon")))
    figure, panels = drawing.panels(
        len(epsilons),
        across=r"records $n$, batches of $\sqrt{n}$",
        up=r"probability $\delta$",
        height=0.55 if len(epsilons) == 1 else 0.7,
    )
    for axes, epsilon in zip(panels, epsilons, strict=True):
        _panel(axes, table.select(epsilon=epsilon))
        axes.set_title(rf"$\varepsilon = {epsilon:g}$")
    drawing.finish(figure, panels)
    return figure


def _panel(axes: Axes, part: Table) -> None:
    n = np.array(part.column("records"), float)
    exact, estimate, lower, upper, most = (
        np.array(part.column(name), float)
        for name in ("exact", "estimate", "lower", "upper", "dp_delta")
    )
    one = 1.0 / np.array(part.column("draws"), float)
    shown = np.concatenate([exact[exact > 0.0], estimate[estimate > 0.0], upper, one, 1.0 / n])
    axes.set_yscale("log")
    bottom = 0.3 * float(shown.min())
    axes.set_ylim(bottom, 3.0 * float(max(shown.max(), most.max())))
    # An interval that reaches 0 ends at the foot of the panel.
    feet = np.maximum(lower, bottom)
    axes.vlines(
        n,
        np.minimum(feet, upper),
        upper,
        color=style.role("paper").colour,
        linewidth=2.5,
        alpha=0.5,
        label=f"its {100 * part.column('confidence')[0]:g} % interval",
    )
    axes.plot(n, most, label=r"$\delta$ of DP, $T/n$", **drawing.beside("baseline"))
    axes.plot(n, 1.0 / n, label="$1/n$, the target", **drawing.beside("limit"))
    axes.plot(n, one, label="1/draws", **drawing.beside("noise"))
    axes.plot(n, np.where(exact > 0.0, exact, np.nan), label="exact", **style.role("optimum").line)
    axes.plot(
        n,
        np.where(estimate > 0.0, estimate, np.nan),
        label="estimate from draws",
        **drawing.points("paper", markerfacecolor="none"),
    )
