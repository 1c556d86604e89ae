"""Figure 2: a generated prior, and a user's law from nearly uniform to a point mass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpopt import public_prior, solve
from dpopt.prob import kl_divergence, total_variation
from experiments.public_prior.common import METHODS, PAPER, sampling_laws
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.verdicts import observed, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ERRORS = 3

_SHOWN = ("minimax", "leximin", "mollifier-kl", "mollifier-tv")


@dataclass(frozen=True)
class Config:
    """Parameters of the figure; n, epsilon and the number of runs as in the paper.

    Attributes:
        letters: n.
        epsilon: in nats.
        runs: priors drawn, each letter uniform in [0, 1] before normalisation.
        points: values of p_1, evenly spaced from 1/n to 1.
        seed: of the priors.
    """

    letters: int = 100
    epsilon: float = 8.0
    runs: int = 10
    points: int = 15
    seed: int = 2

    @property
    def first(self) -> np.ndarray:
        """The values of p_1."""
        return np.linspace(1 / self.letters, 1.0, self.points)

    @property
    def laws(self) -> np.ndarray:
        """P for each p_1, the other letters equal, shape (points, letters)."""
        first = self.first[:, None]
        rest = np.broadcast_to((1 - first) / (self.letters - 1), (self.points, self.letters - 1))
        return np.hstack([first, rest])


def run(config: Config, advance: Advance) -> Outcome:
    """Measure both divergences for every prior and p_1."""
    rng = np.random.default_rng(config.seed)
    values = np.empty((2, config.runs, len(_SHOWN), config.points))
    for repeat in range(config.runs):
        prior = rng.random(config.letters)
        prior /= prior.sum()
        for place, method in enumerate(_SHOWN):
            found = _released(method, prior, config)
            values[0, repeat, place] = total_variation(config.laws, found)
            values[1, repeat, place] = kl_divergence(config.laws, found)
        advance()
    table = Table.of(
        f"Divergence between p and its sampling law: mean and standard error over {config.runs} "
        "priors; the last two columns are errors of the difference from Algorithm 1.",
        _records(config, values),
    )
    return Outcome({"divergences": table}, tuple(_findings(table)), of_synthetic(table))


def _released(method: str, prior: np.ndarray, config: Config) -> np.ndarray:
    if method != "mollifier-tv":
        return sampling_laws(method, prior, config.laws, config.epsilon)
    programs = (public_prior.mollifier_problem(prior, law, config.epsilon) for law in config.laws)
    found = np.array([solve(program)["law"] for program in programs])
    # The solver keeps the limits up to its tolerance.
    found = np.maximum(found, prior * math.exp(-config.epsilon / 2))
    return found / found.sum(axis=1, keepdims=True)


def _records(config: Config, values: np.ndarray) -> list[dict[str, Cell]]:
    means = values.mean(axis=1)
    errors = values.std(axis=1, ddof=1) / math.sqrt(config.runs)
    # Both methods meet the same priors, so that their difference varies less than either.
    gaps = values - values[:, :, :1]
    spreads = gaps.std(axis=1, ddof=1) / math.sqrt(config.runs)
    return [
        {
            "method": method,
            "first": float(first),
            "tv": float(means[0, m, k]),
            "tv_error": float(errors[0, m, k]),
            "kl": float(means[1, m, k]),
            "kl_error": float(errors[1, m, k]),
            "tv_gap_error": float(spreads[0, m, k]),
            "kl_gap_error": float(spreads[1, m, k]),
        }
        for m, method in enumerate(_SHOWN)
        for k, first in enumerate(config.first)
    ]


def _findings(table: Table) -> list[str]:
    found = []
    for measure in ("tv", "kl"):
        ours = table.select(method="minimax").records
        other = table.select(method=f"mollifier-{measure}").records
        ahead = [a["first"] for a, b in zip(ours, other, strict=True) if a[measure] < b[measure]]
        start = f"from p_1 = {short(min(ahead))} on" if ahead else "at no p_1"
        found.append(
            f"{measure.upper()}: Algorithm 1 is below the {measure.upper()} mollifier {start}; at "
            f"p_1 = 1 {short(ours[-1][measure])} against {short(other[-1][measure])}, at "
            f"p_1 = 1/n {short(ours[0][measure])} against {short(other[0][measure])}."
        )
    pairs = zip(
        table.select(method="leximin").column("tv"),
        table.select(method="minimax").column("tv"),
        strict=True,
    )
    largest = max(abs(a - b) for a, b in pairs)
    found.append(f"Leximin and Algorithm 1 differ by at most {short(largest)} in mean TV.")
    return found


def of_synthetic(table: Table) -> tuple[Comparison, ...]:
    """Compare what section 5.2 sees in Figure 2, in each divergence.

    Args:
        table: "divergences" of the run.
    """
    return tuple(_crossing(table, measure) for measure in ("tv", "kl"))


def _crossing(table: Table, measure: str) -> Comparison:
    ours = table.select(method="minimax").records
    other = table.select(method=f"mollifier-{measure}").records
    ahead = [a[measure] < b[measure] for a, b in zip(ours, other, strict=True)]
    first = ahead.index(True) if any(ahead) else len(ahead)
    where = f"from p_1 = {short(ours[first]['first'])} on" if any(ahead) else "nowhere"
    gaps = [b[measure] - a[measure] for a, b in zip(ours, other, strict=True)]
    spreads = [_ERRORS * row[f"{measure}_gap_error"] for row in other]
    ends = gaps[0] < -spreads[0] and gaps[-1] > spreads[-1]
    return observed(
        f"{measure.upper()}: the mollifier is better near uniform p, Algorithm 1 as p_1 grows "
        "(Figure 2).",
        f"Algorithm 1 is lower {where}; at p_1 = 1 {short(ours[-1][measure])} against "
        f"{short(other[-1][measure])}.",
        "no certificate: drawn priors, standard errors in table divergences",
        alike=ends and all(ahead[first:]),
        rule="agrees if the mollifier's mean is lower at p_1 = 1/n and Algorithm 1's at p_1 = 1, "
        f"by more than {_ERRORS} standard errors of the difference, and the order changes once",
        name=f"Figure 2, {measure}",
    )


def plot(outcome: Outcome) -> Figure:
    """Draw total variation on the left, KL on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    table = outcome.tables["divergences"]
    _draw(left, table, "tv", "total variation")
    _draw(right, table, "kl", "KL divergence (nats)")
    left.legend(frameon=False, fontsize=8)
    return figure


def _draw(axes: Axes, table: Table, measure: str, label: str) -> None:
    for method in _SHOWN:
        name, colour, style = METHODS[method]
        part = table.select(method=method)
        axes.errorbar(
            part.column("first"),
            part.column(measure),
            yerr=part.column(f"{measure}_error"),
            fmt=style,
            color=colour,
            label=name,
            markersize=4,
            markerfacecolor="none",
        )
    axes.set_xlabel(r"$p_1$")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)


EXPERIMENT = Experiment(
    name="prior-figure-2",
    paper=PAPER,
    item="Figure 2",
    summary="Divergence between a user's law and the law of the released letter as the user's "
    "law goes from nearly uniform to a point mass: n = 100, epsilon = 8.",
    published=None,
    config=Config(points=41),
    quick=Config(),
    steps=lambda config: config.runs,
    run=run,
    plot=plot,
)
