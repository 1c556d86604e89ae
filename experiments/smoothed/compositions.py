"""Figures 2 (left) and 4: smoothed delta against the number of votes, every composition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Lt, MinLen
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpopt import smoothed
from experiments import drawing
from experiments.arrays import fitted_line
from experiments.parameters import Count, Several, Some, configuration
from experiments.registry import Comparison, Outcome, Table, experiment, track
from experiments.smoothed.bounds import published_log_bound
from experiments.smoothed.elections import COUNTED, Pi, draw_targets, pmfs, units
from experiments.verdicts import not_comparable, observed, statement

_EPSILONS = (
    *(round(0.1 * step, 1) for step in range(11)),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0),
)
_SHOWN = (0.5, 1.0, 2.0, 7.0)
_TITLES = {"units": "units of 2020", "history": "elections since 1920"}

# The least r squared that counts as a line, and the fewest sizes for such a verdict.
_STRAIGHT, _FEWEST = 0.99, 5


@configuration
class Config:
    """Sets of distributions, losses, sizes and epsilons.

    Attributes:
        distributions: the sets Pi: "units" for all regions of 2020 (states, DC and districts),
            "history" for all elections, or "DC NE-2". Each set and each loss has a panel.
        beside: further sets that are evaluated but not drawn.
        lost_rates: shares of the votes that are lost at random.
        records: n, two or more numbers of votes.
        epsilons: in nats; of more than six the figure shows 0.5, 1, 2 and 7.
    """

    distributions: Several[Pi] = ("units",)
    beside: tuple[Pi, ...] = ("DC NE-2",)
    lost_rates: Several[Annotated[float, Ge(0.0), Lt(1.0)]] = (0.002,)
    records: Annotated[Several[Count], MinLen(2)] = tuple(range(100_000, 500_001, 50_000))
    epsilons: Some[Annotated[float, Ge(0.0)]] = _EPSILONS

    @property
    def drawn(self) -> tuple[float, ...]:
        """The epsilons of the figure and its fits."""
        shown = tuple(epsilon for epsilon in self.epsilons if epsilon in _SHOWN)
        return self.epsilons if len(self.epsilons) <= 6 else shown or self.epsilons

    def sets(self) -> dict[str, dict[str, float]]:
        """Return the vertices of each set's hull by its title, those of the panels first."""
        hulls = {}
        for text in (*self.distributions, *self.beside):
            shares = list(pmfs(text).items())
            vertices = smoothed.hull_vertices([(share, 1.0 - share) for _, share in shares])
            hulls[_TITLES.get(text, text)] = dict(shares[place] for place in vertices)
        return hulls


def run(config: Config) -> Outcome:
    """Maximise over every composition for each size, epsilon and setting."""
    hulls = config.sets()
    shown = {_TITLES.get(text, text) for text in config.distributions}
    records = [
        _solved(rate, n, list(hulls[title].values()), epsilon)
        | {"setting": title, "panel": title in shown}
        for title, rate, n in track(list(product(hulls, config.lost_rates, config.records)))
        for epsilon in config.epsilons
    ]
    vertices = [
        {"setting": title, "distribution": name, "share": share}
        for title, hull in hulls.items()
        for name, share in hull.items()
    ]
    table = Table.of(records)
    fits = [
        {"setting": title, "lost_rate": rate, "epsilon": epsilon}
        | fitted_line(curve.column("records"), curve.column("log10_delta"))
        for title, rate, epsilon in product(hulls, config.lost_rates, config.drawn)
        for curve in [table.select(setting=title, lost_rate=rate, epsilon=epsilon)]
        if title in shown
    ]
    tables = {"smoothed": table, "hull": Table.of(vertices), "fits": Table.of(fits)}
    return Outcome(tables, tuple(_comparisons(tables)), data=COUNTED)


def _solved(lost_rate: float, n: int, shares: list[float], epsilon: float) -> dict[str, Any]:
    """Return the record of one maximum; Remark 8's bound where it is stated."""
    mechanism = smoothed.SamplingHistogram.of_lost_rate(n, lost_rate)
    found = smoothed.smoothed_delta(mechanism, epsilon, shares)
    bound, lost = None, mechanism.lost / n
    if all(0.0 < share < 1.0 for share in shares) and lost > 0 and epsilon > -math.log(lost):
        rows = [[share, 1.0 - share] for share in shares]
        bound = published_log_bound(mechanism, epsilon, rows) / math.log(10.0)
    return {
        "lost_rate": lost_rate,
        "records": n,
        "epsilon": epsilon,
        "log10_delta": float(found.log10_delta) if np.isfinite(found.log10_delta) else None,
        "pure": max(found.argmax) == n,
        "certified": found.certified,
        "dp_delta": found.dp_delta,
        "log10_remark_8": bound,
    }


def _comparisons(tables: dict[str, Table]) -> Iterator[Comparison]:
    """Yield what the paper says of the hull and of the compositions."""
    vertices = tables["hull"].select(setting=_TITLES["units"]).column("distribution")
    if vertices:
        share = next(unit.share for unit in units() if unit.name == "NE-2")
        yield statement(
            "The hull of the units of 2020 has the vertices DC and NE-2 (Section 6).",
            f"{' and '.join(vertices)}; NE-2, at {share:.2%}, lies in the interior.",
            "smallest and largest share among all regions",
            holds=set(vertices) == {"DC", "NE-2"},
            name="vertices of 2020",
        )
    fits, values = tables["fits"].records, tables["smoothed"].select(panel=True)
    squares = [fit["r_squared"] or 0.0 for fit in fits]
    good = sum(
        square >= _STRAIGHT and fit["b"] < 0 for fit, square in zip(fits, squares, strict=True)
    )
    sizes, proved = len(values.distinct("records")), all(values.column("certified"))
    exponential = (
        "Smoothed delta is exponentially small in n, with exponential fits (Section 6, G.2).",
        f"log10 delta falls along a line in n (r squared of at least {_STRAIGHT}) in {good} of "
        f"{len(fits)} curves; the least r squared is {min(squares):.4f}, over {sizes} sizes.",
        f"{len(values.rows)} maxima over every composition, {'' if proved else 'not '}all "
        "certified",
    )
    name = "exponential in n, elections"
    if sizes < _FEWEST:
        why = f"{sizes} sizes are too few to tell a line from a curve"
        yield not_comparable(*exponential, why=why, name=name)
    else:
        rule = (
            f"agrees if each curve falls, and a line in n has an r squared of at least {_STRAIGHT};"
            f" needs at least {_FEWEST} sizes"
        )
        yield observed(*exponential, alike=good == len(fits), rule=rule, name=name)


def plot(outcome: Outcome) -> Figure:
    """Draw log10 of smoothed delta against n, with the fits and DP's delta."""
    fits, table = outcome.tables["fits"], outcome.tables["smoothed"].select(panel=True)
    settings = fits.distinct("setting", "lost_rate")
    across, up = "thousands of votes, $n$", r"$\log_{10}$ of smoothed $\delta$"
    height = 0.55 if len(settings) == 1 else 0.7
    figure, panels = drawing.panels(len(settings), 2, across, up, height=height)
    for axes, (setting, rate) in zip(panels, settings, strict=True):
        where = {"setting": setting, "lost_rate": rate}
        _panel(axes, table.select(**where), fits.select(**where))
        axes.set_title(f"{setting}, {100 * rate:g} % lost")
    return drawing.finish(figure, panels)


def _panel(axes: Axes, table: Table, fits: Table) -> None:
    looks = drawing.curves(fits.column("epsilon"))
    n = np.array(table.distinct("records"))
    for fit in fits.records:
        epsilon, look = fit["epsilon"], looks[fit["epsilon"]]
        values = np.array(table.select(epsilon=epsilon).column("log10_delta"), float)
        label = rf"$\varepsilon = {epsilon:g}$"
        axes.plot(n / 1000, values, linestyle="none", label=label, **look)
        if fit["b"] is not None:
            axes.plot(n / 1000, fit["a"] + fit["b"] * n, ":", color=look["color"])
    axes.plot([], [], ":", color="grey", label="exponential fits in $n$")
    stated = [row["epsilon"] for row in table.records if row["log10_remark_8"] is not None]
    if stated:
        bound = np.array(table.select(epsilon=max(stated)).column("log10_remark_8"), float)
        label = rf"Remark 8, $\varepsilon = {max(stated):g}$"
        axes.plot(n / 1000, bound, label=label, **drawing.beside("paper"))
    of_dp = table.select(epsilon=fits.column("epsilon")[0]).column("dp_delta")
    draw_targets(axes, n / 1000, n, np.log10(of_dp))


experiment("smoothed-figure-2-left", config=Config(), quick=Config(epsilons=_SHOWN))(run).figure(
    plot
)
experiment(
    "smoothed-figure-4", config=Config(("units", "history"), (), (0.002, 0.0001), epsilons=_SHOWN)
)(run).figure(plot)
