"""Figures 2 (left) and 4: smoothed delta against the number of votes, every composition."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt import ParameterError, smoothed
from experiments.registry import Advance, Cell, Comparison, Experiment, Outcome, Table
from experiments.smoothed import PAPER
from experiments.smoothed.votes import Election, history, units
from experiments.verdicts import not_comparable, observed, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZES = tuple(range(100_000, 500_001, 50_000))
_EPSILONS = (
    *(round(0.1 * step, 1) for step in range(11)),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0),
)

# The least r squared that is called a line, and the fewest sizes that one is judged on.
_STRAIGHT, _FEWEST = 0.99, 5
# So few maxima take less time than to start two processes.
_FEW = 16
_COLOURS = ("#2f5d9b", "#c1432e", "#d98a29", "#3b7f4a")


@dataclass(frozen=True)
class Setting:
    """A set of distributions and a loss."""

    title: str
    votes: str
    lost_rate: str


_DISTRICTS = Setting("units of 2020", "units", "0.002")


@dataclass(frozen=True)
class Config:
    """Sizes, at least two, epsilons, and the settings; those ``shown`` are in the figure."""

    settings: tuple[Setting, ...] = (_DISTRICTS,)
    sizes: tuple[int, ...] = _SIZES
    epsilons: tuple[float, ...] = _EPSILONS
    shown: tuple[float, ...] = (0.5, 1.0, 2.0, 7.0)

    def __post_init__(self) -> None:
        if len(set(self.sizes)) < 2:
            raise ParameterError(f"sizes is {self.sizes}; a line needs at least 2 of them.")
        if not self.drawn:
            raise ParameterError(f"shown is {self.shown}; it must name one of the epsilons.")

    @property
    def drawn(self) -> tuple[float, ...]:
        """The epsilons of the figure and its fits."""
        return tuple(epsilon for epsilon in self.shown if epsilon in self.epsilons)


def run(config: Config, advance: Advance) -> Outcome:
    """Maximise over every composition for each size, epsilon and setting."""
    cases: list[_Case] = []
    hulls: list[dict[str, Cell]] = []
    for setting in config.settings:
        elections = units() if setting.votes == "units" else history()
        laws = [(election.share, 1.0 - election.share) for election in elections]
        vertices = [elections[place] for place in smoothed.hull_vertices(laws)]
        hulls += [_vertex(setting, election) for election in vertices]
        shares = tuple(unit.share for unit in vertices)
        cases += [_Case(setting, n, shares, e) for n in config.sizes for e in config.epsilons]
    records: list[dict[str, Cell]] = []
    for place, record in enumerate(_solve_all(cases), start=1):
        records.append(record)
        if place % len(config.epsilons) == 0:
            advance()
    tables = {
        "smoothed": Table.of("Smoothed delta, the maximum over every composition.", records),
        "hull": Table.of("Vertices of the convex hull of the distributions.", hulls),
        "fits": Table.of("log10 of smoothed delta = a + b n.", _fits(config, records)),
    }
    return Outcome(tables, tuple(_findings(records, hulls)), tuple(_comparisons(tables)))


@dataclass(frozen=True)
class _Case:
    """One maximum to compute."""

    setting: Setting
    records: int
    shares: tuple[float, ...]
    epsilon: float


def _solve_all(cases: Sequence[_Case]) -> Iterator[dict[str, Cell]]:
    """Yield the record of each maximum in turn; many are shared by two processes."""
    if len(cases) <= _FEW:
        yield from map(_solved, cases)
        return
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_solved, cases)


def _solved(case: _Case) -> dict[str, Cell]:
    """Return the record of one maximum; called in a process of the pool too."""
    mechanism = smoothed.SamplingHistogram.of_lost_rate(case.records, case.setting.lost_rate)
    found = smoothed.smoothed_delta(mechanism, case.epsilon, case.shares)
    return _record(case.setting, case.epsilon, found)


def _vertex(setting: Setting, election: Election) -> dict[str, Cell]:
    return {"setting": setting.title, "distribution": election.name, "share": election.share}


def _record(setting: Setting, epsilon: float, found: smoothed.SmoothedDelta) -> dict[str, Cell]:
    finite = np.isfinite(found.log10_delta)
    return {
        "setting": setting.title,
        "lost_rate": float(setting.lost_rate),
        "records": found.mechanism.records,
        "epsilon": epsilon,
        "log10_delta": float(found.log10_delta) if finite else None,
        "from_first": found.argmax[0],
        "from_second": found.argmax[1],
        "certified": found.certified,
        "evaluated": found.certificate.evaluated,
        "dp_delta": found.dp_delta,
    }


def _fits(config: Config, records: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    fits: list[dict[str, Cell]] = []
    for setting in config.settings:
        for epsilon in config.drawn:
            part: list[Any] = [
                (row["records"], row["log10_delta"])
                for row in records
                if _of(row, setting)
                and row["epsilon"] == epsilon
                and row["log10_delta"] is not None
            ]
            sizes, values = np.array(part, dtype=float).T
            slope, start = np.polyfit(sizes, values, 1)
            fits.append(
                {
                    "setting": setting.title,
                    "lost_rate": float(setting.lost_rate),
                    "epsilon": epsilon,
                    "a": float(start),
                    "b": float(slope),
                    "r_squared": float(np.corrcoef(sizes, values)[0, 1] ** 2),
                }
            )
    return fits


def _of(row: dict[str, Cell], setting: Setting) -> bool:
    return row["setting"] == setting.title and row["lost_rate"] == float(setting.lost_rate)


def _findings(records: list[dict[str, Cell]], hulls: list[dict[str, Cell]]) -> list[str]:
    names = dict.fromkeys(
        f"{row['distribution']} ({float(row['share'] or 0):.2%})"
        for row in hulls
        if row["setting"] == _DISTRICTS.title
    )
    certified = sum(bool(row["certified"]) for row in records)
    inside = sum(bool(row["from_first"]) and bool(row["from_second"]) for row in records)
    extreme = f" The extreme units of 2020 are {' and '.join(names)}." if names else ""
    return [
        f"The maximum over all n + 1 compositions is certified in {certified} of {len(records)} "
        f"settings; it lies strictly between the two ends in {inside}.{extreme}"
    ]


def _comparisons(tables: dict[str, Table]) -> list[Comparison]:
    """Return what the paper says of the hull and of the compositions."""
    vertices = tables["hull"].select(setting=_DISTRICTS.title).column("distribution")
    found = []
    if vertices:
        share = next(unit.share for unit in units() if unit.name == "NE-2")
        found.append(
            statement(
                "The hull of the units of 2020 has the vertices DC and NE-2 (Section 6).",
                f"{' and '.join(dict.fromkeys(vertices))}; NE-2, at {share:.2%}, lies inside.",
                "smallest and largest share among all units",
                holds=set(vertices) == {"DC", "NE-2"},
                name="vertices of 2020",
            )
        )
    return [*found, _exponential(tables["fits"], tables["smoothed"])]


def _exponential(fits: Table, values: Table) -> Comparison:
    """Judge the exponential fits, where there are enough sizes to tell a line from a curve."""
    claim = "Smoothed delta is exponentially small in n, with exponential fits (Section 6, G.2)."
    squares = fits.column("r_squared")
    good = sum(b < 0 and r >= _STRAIGHT for b, r in zip(fits.column("b"), squares, strict=True))
    sizes = len(set(values.column("records")))
    ours = (
        f"log10 delta falls along a line in n (r squared of at least {_STRAIGHT}) in {good} of "
        f"{len(squares)} curves; the least r squared is {min(squares):.4f}, over {sizes} sizes."
    )
    certified = "all certified" if all(values.column("certified")) else "not all certified"
    certificate = f"{len(values.rows)} maxima over every composition, {certified}"
    if sizes < _FEWEST:
        why = f"{sizes} sizes are too few to tell a line from a curve"
        return not_comparable(claim, ours, certificate, why=why, name="exponential in n, elections")
    return observed(
        claim,
        ours,
        certificate,
        alike=good == len(squares),
        rule=f"agrees if each curve falls, and a line in n has an r squared of at least "
        f"{_STRAIGHT}; judged from {_FEWEST} sizes on",
        name="exponential in n, elections",
    )


def plot(outcome: Outcome) -> Figure:
    """Draw log10 of smoothed delta against n, with the fits and DP's delta."""
    from matplotlib.figure import Figure

    fits = outcome.tables["fits"]
    panels = list(dict.fromkeys(zip(fits.column("setting"), fits.column("lost_rate"), strict=True)))
    rows = (len(panels) + 1) // 2
    size = (5.6, 4.0) if len(panels) == 1 else (10.4, 3.8 * rows)
    figure = Figure(figsize=size, layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, min(len(panels), 2)))
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes, (setting, rate) in zip(grid.flat, panels, strict=False):
        where = {"setting": setting, "lost_rate": rate}
        _panel(axes, outcome.tables["smoothed"].select(**where), fits.select(**where))
        axes.set_title(f"{setting}, {rate:.2%} lost", fontsize=10)
    grid.flat[0].legend(frameon=False, fontsize=8)
    return figure


def _panel(axes: Axes, part: Table, fits: Table) -> None:
    sizes = sorted(set(part.column("records")))
    for colour, fit in zip(cycle(_COLOURS), fits.rows, strict=False):
        epsilon, start, slope = fit[2:5]
        curve = part.select(epsilon=epsilon)
        values = curve.column("log10_delta")
        axes.plot(
            [n / 1000 for n in curve.column("records")],
            values,
            "o",
            color=colour,
            markersize=4,
            label=rf"$\varepsilon = {epsilon:g}$",
        )
        line = [float(start or 0.0) + float(slope or 0.0) * n for n in sizes]
        axes.plot([n / 1000 for n in sizes], line, ":", color=colour)
    axes.axhline(float(np.log10(part.column("dp_delta")[0])), color="#b0468f", ls="--", label="DP")
    axes.set_xlabel("thousands of votes")
    axes.set_ylabel(r"$\log_{10} \delta$")
    axes.grid(alpha=0.25)


_FIGURE_2 = Config()
_FIGURE_2_QUICK = Config(epsilons=(0.5, 1.0, 2.0, 7.0))
_FOUR = (
    _DISTRICTS,
    Setting("units of 2020", "units", "0.0001"),
    Setting("elections since 1920", "history", "0.002"),
    Setting("elections since 1920", "history", "0.0001"),
)
_FIGURE_4 = Config(_FOUR, epsilons=(0.5, 1.0, 2.0, 7.0))
_FIGURE_4_QUICK = Config(_FOUR, (100_000, 200_000, 300_000), (0.5, 1.0, 2.0, 7.0))

EXPERIMENTS = (
    Experiment(
        name="smoothed-figure-2-left",
        paper=PAPER,
        item="Figure 2 (left)",
        summary="Smoothed delta of publishing the votes when 0.2 % are lost, over the "
        "distributions of all units of 2020, with exponential fits and DP's delta.",
        published="exponentially small in n; vertices DC and NE-2",
        config=_FIGURE_2,
        quick=_FIGURE_2_QUICK,
        steps=lambda config: len(config.sizes) * len(config.settings),
        run=run,
        plot=plot,
    ),
    Experiment(
        name="smoothed-figure-4",
        paper=PAPER,
        item="Figure 4",
        summary="The same over the units of 2020 and over all elections since 1920, for 0.2 % and "
        "0.01 % of the votes lost.",
        published="exponentially small in n in all four",
        config=_FIGURE_4,
        quick=_FIGURE_4_QUICK,
        steps=lambda config: len(config.sizes) * len(config.settings),
        run=run,
        plot=plot,
    ),
)
