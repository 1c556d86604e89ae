"""Figures 2 (left) and 4: smoothed delta against the number of votes, every composition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge, Lt
from pydantic.dataclasses import dataclass

from dpopt import ParameterError, smoothed
from experiments import drawing
from experiments.parameters import STRICT, Count, Several, Some
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.smoothed import PAPER
from experiments.smoothed.bounds import published_log_bound
from experiments.smoothed.votes import COUNTED, Law, history, laws, units
from experiments.verdicts import not_comparable, observed, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RECORDS = tuple(range(100_000, 500_001, 50_000))
_EPSILONS = (
    *(round(0.1 * step, 1) for step in range(11)),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0),
)
_PRINTED = "DC NE-2"
_TITLES = {"units": "units of 2020", "history": "elections since 1920"}

# The least r squared that is called a line, and the fewest sizes that one is judged on.
_STRAIGHT, _FEWEST = 0.99, 5
_LN10 = math.log(10.0)


@dataclass(frozen=True, config=STRICT)
class Config:
    """Sets of distributions, losses, sizes and epsilons.

    Attributes:
        distributions: the sets Pi, each a text of words with blanks between them: "units" for all
            units of 2020, "history" for all elections, the name of a unit such as DC, a year, or a
            share of the second candidate from 0 to 1. Each set and each loss has a panel.
        beside: sets that are evaluated too, and not drawn.
        lost_rates: shares of the votes that are lost at random.
        records: n, two or more numbers of votes.
        epsilons: in nats.
        shown: the epsilons of the figure and its fits; all that are not among `epsilons` are
            left out.
        units: CSV file of one's own in place of the units of 2020: names in the first column, the
            votes of two candidates in the last two.
        votes: the same in place of the elections since 1920.
    """

    distributions: Several[str] = ("units",)
    beside: tuple[str, ...] = (_PRINTED,)
    lost_rates: Several[Annotated[float, Ge(0.0), Lt(1.0)]] = (0.002,)
    records: Several[Count] = _RECORDS
    epsilons: Some[Annotated[float, Ge(0.0)]] = _EPSILONS
    shown: tuple[float, ...] = (0.5, 1.0, 2.0, 7.0)
    units: str | None = None
    votes: str | None = None

    def __post_init__(self) -> None:
        if len(self.records) < 2:
            raise ParameterError(
                f"records is {self.records}; it must hold 2 numbers or more: a line is fitted."
            )
        if not self.drawn:
            raise ParameterError(f"shown is {self.shown}; it must name one of the epsilons.")
        self.sets()

    @property
    def drawn(self) -> tuple[float, ...]:
        """The epsilons of the figure and its fits."""
        return tuple(epsilon for epsilon in self.shown if epsilon in self.epsilons)

    def sets(self) -> dict[str, tuple[Law, ...]]:
        """Return the distributions of each set by its title, those of the panels first."""
        places = units(self.units), history(self.votes)
        texts = dict.fromkeys((*self.distributions, *self.beside))
        return {_TITLES.get(text, text): laws(text, *places) for text in texts}

    @property
    def settings(self) -> tuple[tuple[str, float], ...]:
        """Titles of the sets and losses, those of the panels first."""
        panels = tuple(_TITLES.get(text, text) for text in self.distributions)
        others = tuple(title for title in self.sets() if title not in panels)
        return (*product(panels, self.lost_rates), *product(others, self.lost_rates))


def run(config: Config) -> Outcome:
    """Maximise over every composition for each size, epsilon and setting."""
    sets = config.sets()
    panels = {_TITLES.get(text, text) for text in config.distributions}
    vertices = {title: _vertices(found) for title, found in sets.items()}
    hulls: list[dict[str, Cell]] = [
        {"setting": title, "distribution": law.name, "share": law.share}
        for title, found in vertices.items()
        for law in found
    ]
    records = [
        _solved(title, rate, n, tuple(law.share for law in vertices[title]), epsilon)
        | {"panel": title in panels}
        for (title, rate), n in track(list(product(config.settings, config.records)))
        for epsilon in config.epsilons
    ]
    tables = {
        "smoothed": Table.of(
            "Smoothed delta, the maximum over every composition; Remark 8's bound where it is "
            "stated.",
            records,
        ),
        "hull": Table.of("Vertices of the convex hull of the distributions.", hulls),
        "fits": Table.of("log10 of smoothed delta = a + b n.", _fits(config, records)),
    }
    own = [path for path in (config.units, config.votes) if path is not None]
    source = ", ".join(own) if own else COUNTED
    return Outcome(
        tables, tuple(_beside(config, records)), tuple(_comparisons(config, tables)), data=source
    )


def _vertices(found: Sequence[Law]) -> list[Law]:
    shares = [(law.share, 1.0 - law.share) for law in found]
    return [found[place] for place in smoothed.hull_vertices(shares)]


def _solved(
    title: str, lost_rate: float, n: int, shares: tuple[float, ...], epsilon: float
) -> dict[str, Cell]:
    """Return the record of one maximum; Remark 8's bound where it is stated."""
    mechanism = smoothed.SamplingHistogram.of_lost_rate(n, lost_rate)
    found = smoothed.smoothed_delta(mechanism, epsilon, shares)
    # One distribution alone has a single count.
    first, *others = found.argmax
    stated = mechanism.lost > 0 and all(0.0 < share < 1.0 for share in shares)
    bound = None
    if stated and epsilon > -math.log(mechanism.lost / n):
        laws_of = [[share, 1.0 - share] for share in shares]
        bound = published_log_bound(mechanism, epsilon, laws_of) / _LN10
    return {
        "setting": title,
        "lost_rate": lost_rate,
        "records": n,
        "epsilon": epsilon,
        "log10_delta": float(found.log10_delta) if np.isfinite(found.log10_delta) else None,
        "from_first": first,
        "from_second": sum(others),
        "certified": found.certified,
        "evaluated": found.certificate.evaluated,
        "dp_delta": found.dp_delta,
        "log10_remark_8": bound,
    }


def _fits(config: Config, records: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    fits: list[dict[str, Cell]] = []
    panels = dict.fromkeys((r["setting"], r["lost_rate"]) for r in records if r["panel"])
    for (title, rate), epsilon in product(panels, config.drawn):
        key = (True, title, rate, epsilon)
        part: list[Any] = [
            (row["records"], row["log10_delta"])
            for row in records
            if (row["panel"], row["setting"], row["lost_rate"], row["epsilon"]) == key
            and row["log10_delta"] is not None
        ]
        fit = dict(zip(("a", "b", "r_squared"), _line(part), strict=True))
        fits.append({"setting": title, "lost_rate": rate, "epsilon": epsilon, **fit})
    return fits


def _line(points: list[Any]) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return intercept, slope and r squared; None each where fewer than two deltas are above 0."""
    if len(points) < 2:
        return None, None, None
    sizes, values = np.array(points, dtype=float).T
    slope, start = np.polyfit(sizes, values, 1)
    flat = bool(np.ptp(values) == 0.0)
    square = 1.0 if flat else float(np.corrcoef(sizes, values)[0, 1] ** 2)
    return float(start), float(slope), square


def _beside(config: Config, records: list[dict[str, Any]]) -> list[str]:
    """Say how far the sets that are drawn beside are from the first panel's."""
    own = {
        (row["lost_rate"], row["records"], row["epsilon"]): row
        for row in records
        if row["setting"] == config.settings[0][0]
    }
    found = []
    for title in dict.fromkeys(row["setting"] for row in records if not row["panel"]):
        part = [row for row in records if row["setting"] == title]
        logs = [
            (row["log10_delta"], own[row["lost_rate"], row["records"], row["epsilon"]])
            for row in part
        ]
        same = sum(value == row["log10_delta"] for value, row in logs)
        apart = [
            abs(value - row["log10_delta"])
            for value, row in logs
            if value is not None and row["log10_delta"] is not None
        ]
        pure = sum(not (row["from_first"] and row["from_second"]) for row in part)
        found.append(
            f"Over {title} smoothed delta is the same double as over {config.settings[0][0]} in "
            f"{same} of {len(part)} settings and at most {max(apart, default=0.0):.2g} away in "
            f"log10; the maximum has all records from one distribution in {pure}."
        )
    return found


def _comparisons(config: Config, tables: dict[str, Table]) -> list[Comparison]:
    """Return what the paper says of the hull and of the compositions."""
    vertices = tables["hull"].select(setting=_TITLES["units"]).column("distribution")
    found = []
    if vertices and config.units is None:
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
    return [*found, _exponential(tables["fits"], tables["smoothed"].select(panel=True))]


def _exponential(fits: Table, values: Table) -> Comparison:
    """Judge the exponential fits, where there are enough sizes to tell a line from a curve."""
    claim = "Smoothed delta is exponentially small in n, with exponential fits (Section 6, G.2)."
    squares = [0.0 if square is None else square for square in fits.column("r_squared")]
    slopes = [0.0 if slope is None else slope for slope in fits.column("b")]
    good = sum(b < 0 and r >= _STRAIGHT for b, r in zip(slopes, squares, strict=True))
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
    fits, table = outcome.tables["fits"], outcome.tables["smoothed"]
    panels = list(dict.fromkeys(zip(fits.column("setting"), fits.column("lost_rate"), strict=True)))
    figure, axes = drawing.panels(
        len(panels),
        across="thousands of votes, $n$",
        up=r"$\log_{10}$ of smoothed $\delta$",
        height=0.55 if len(panels) == 1 else 0.7,
    )
    for panel, (setting, rate) in zip(axes, panels, strict=True):
        where = {"setting": setting, "lost_rate": rate}
        _panel(panel, table.select(panel=True, **where), fits.select(**where))
        panel.margins(y=0.1)
        panel.locator_params(axis="y", steps=[1, 2, 5, 10])
        panel.set_title(f"{setting}, {100 * rate:g} % lost")
    drawing.finish(figure, axes)
    return figure


def _panel(axes: Axes, part: Table, fits: Table) -> None:
    sizes = np.array(sorted(set(part.column("records"))))
    looks = drawing.curves(fits.column("epsilon"))
    for fit in fits.records:
        epsilon, look = fit["epsilon"], looks[fit["epsilon"]]
        curve = part.select(epsilon=epsilon)
        axes.plot(
            [n / 1000 for n in curve.column("records")],
            np.array(curve.column("log10_delta"), float),
            linestyle="none",
            label=rf"$\varepsilon = {epsilon:g}$",
            **look,
        )
        if fit["b"] is not None:
            axes.plot(sizes / 1000, fit["a"] + fit["b"] * sizes, ":", color=look["color"])
    axes.plot([], [], ":", color="grey", label="exponential fits in $n$")
    first = part.select(epsilon=fits.column("epsilon")[0])
    bound = np.full(sizes.size, np.nan)
    stated = [row for row in part.records if row["log10_remark_8"] is not None]
    if stated:
        most = max(row["epsilon"] for row in stated)
        chosen = {r["records"]: r["log10_remark_8"] for r in stated if r["epsilon"] == most}
        bound = np.array([chosen.get(n, np.nan) for n in sizes.tolist()])
        axes.plot(
            sizes / 1000,
            bound,
            label=rf"Remark 8, $\varepsilon = {most:g}$",
            **drawing.beside("paper"),
        )
    axes.plot(sizes / 1000, -np.log10(sizes), label="$1/n$, the target", **drawing.beside("limit"))
    axes.plot(
        [n / 1000 for n in first.column("records")],
        np.log10(first.column("dp_delta")),
        label=r"$\delta$ of DP, $T/n$",
        **drawing.beside("baseline"),
    )


_MATHEMATICS = (
    r"\delta_{SDP}(\varepsilon) = \max_{\pi \in \Pi^n} E_{x \sim \pi} [\delta(x)] "
    r"= \max_{n_1 + n_2 = n} E [\delta(B(n_1, p_1) + B(n_2, p_2))]",
    r"\delta_{SDP}(\varepsilon) \leq e^{-g f n / 6} + m e^{-f n / 8}, \qquad "
    r"g = \left(\frac{1 - e^{-\varepsilon}}{\eta} - 1\right)^2, \qquad "
    r"\varepsilon > \ln \frac{1}{1 - \eta}, \qquad \eta = \frac{T}{n}",
)

_SHOWN = (0.5, 1.0, 2.0, 7.0)
_FIGURE_2 = Config()
_FIGURE_2_QUICK = Config(epsilons=_SHOWN)
_FIGURE_4 = Config(("units", "history"), (), (0.002, 0.0001), epsilons=_SHOWN)


experiment(
    "smoothed-figure-2-left",
    PAPER,
    "Figure 2 (left)",
    "Smoothed delta of publishing the votes when 0.2 % are lost, over the "
    "distributions of all units of 2020, with exponential fits and DP's delta.",
    published="exponentially small in n; vertices DC and NE-2",
    config=_FIGURE_2,
    quick=_FIGURE_2_QUICK,
    mathematics=_MATHEMATICS,
)(run).figure(plot)
experiment(
    "smoothed-figure-4",
    PAPER,
    "Figure 4",
    "The same over the units of 2020 and over all elections since 1920, for 0.2 % and "
    "0.01 % of the votes lost.",
    published="exponentially small in n in all four",
    config=_FIGURE_4,
    mathematics=_MATHEMATICS,
)(run).figure(plot)
