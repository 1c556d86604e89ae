"""The figure of the claims: six panels, from the tables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.registry import Outcome, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREEN, _RED, _BLUE, _PURPLE, _GREY = "#0b6e4f", "#c1432e", "#2f5d9b", "#8a5aa8", "#7a7a7a"
_COLOURS = (_GREEN, _RED, _BLUE, _PURPLE, "#b07d12")


def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each claim; double and plain subsampling share one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.5, 8.0), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    tables = outcome.tables
    _lower_bound(axes[0], tables["lemma-3.2"])
    _objectives(axes[1], tables["objectives"])
    _counts(axes[2], tables["counts"])
    _three_corners(axes[3], tables["three-corners"])
    _subsampling(axes[4], tables["subsampling"])
    _constants(axes[5], tables["constants"])
    for part in axes:
        part.grid(alpha=0.25)
        part.title.set_fontsize(10.5)
    return figure


def _values(table: Table, name: str) -> list[float]:
    return [float(value) for value in table.column(name)]


def _lower_bound(axes: Axes, points: Table) -> None:
    sizes = sorted(set(points.column("K")))
    for k, colour in ((sizes[0], _GREEN), (sizes[-1], _BLUE)):
        part = points.select(K=k)
        axes.plot(
            part.column("bound"),
            part.column("error"),
            ".",
            color=colour,
            markersize=4,
            label=f"p drawn from U[0, 1], K = {k}",
        )
    end = max(points.column("bound"))
    axes.plot([0, end], [0, end], color=_RED, label="lemma 3.2: no point below")
    axes.set_title(r"Lemma 3.2 ($m = 1$): $\gamma(l) = 1/|2l - K|$ goes below")
    axes.set_xlabel(r"claimed bound $|\Pr[g = 1] - \bar p|$")
    axes.set_ylabel("error")
    axes.legend(frameon=False, fontsize=8)


def _objectives(axes: Axes, table: Table) -> None:
    names = {
        "sub": ("subsampling", _BLUE, "^"),
        "double": ("double subsampling", _PURPLE, "d"),
        "surrogate": ("LP, the paper's objective", _RED, "s"),
        "expected-error": ("LP, expected error (ours)", _GREEN, "o"),
    }
    first = table.select(curve="surrogate")
    labels = [f"{k}, {m}" for k, m in zip(first.column("K"), first.column("m"), strict=True)]
    for curve, (label, colour, marker) in names.items():
        values = _values(table.select(curve=curve), "expected_error")
        axes.plot(range(len(values)), values, marker, color=colour, label=label)
    if min(_values(table, "expected_error")) > 0.0:
        axes.set_yscale("log")
    else:
        axes.set_yscale("symlog", linthresh=1e-7)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_title("Equation 3: the objective is not the error that is plotted")
    axes.set_xlabel("$K$, $m$")
    axes.set_ylabel(r"expected error, $p_i \sim U[0, 1]$")
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _counts(axes: Axes, table: Table) -> None:
    for case, colour in (("Delta > 0", _RED), ("Delta = 0", _BLUE)):
        part = table.select(case=case)
        name = case.replace("Delta", r"$\Delta$")
        axes.plot(
            part.column("K"), part.column("paper"), "s--", color=colour, label=f"paper, {name}"
        )
        axes.plot(
            part.column("K"), part.column("reduced"), "o-", color=colour, label=f"reduced, {name}"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(table.select(case="Delta = 0").column("K"))
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_title("Lemma 5.1: how many multisets decide")
    axes.set_xlabel("$K$")
    axes.set_ylabel("number of privacy rows")
    axes.legend(frameon=False, fontsize=8)


def _three_corners(axes: Axes, table: Table) -> None:
    pairs = dict.fromkeys(zip(table.column("K"), table.column("m"), strict=True))
    for (k, m), colour in zip(pairs, _COLOURS, strict=False):
        part = table.select(K=k, m=m)
        axes.plot(
            part.column("epsilon"),
            part.column("spent_over_target"),
            "o-",
            color=colour,
            linewidth=1.4,
            markersize=2.5,
            label=f"K = {k}, m = {m:g}",
        )
    axes.axhline(1.0, color=_GREY, linewidth=1.0, label="target")
    axes.set_title("Corners 00, 11, bc alone: what the optimum spends")
    axes.set_xlabel(r"$\varepsilon$ of each voter")
    axes.set_ylabel(r"spent / $m\varepsilon$")
    axes.legend(frameon=False, fontsize=8)


def _subsampling(axes: Axes, table: Table) -> None:
    sizes = sorted(set(table.column("K")), reverse=True)
    last = max(table.column("M"))
    axes.plot([0, last], [0, last], color=_RED, label=r"the paper's count, $M\varepsilon$")
    for k, colour, size in zip(sizes, (_BLUE, _GREEN, _PURPLE, _GREY), (7, 5, 3, 2), strict=False):
        part = table.select(K=k)
        axes.plot(
            part.column("M"),
            part.column("epsilons_spent"),
            "o",
            color=colour,
            markersize=size,
            label=f"spent, K = {k}",
        )
    axes.set_title(r"Theorem 4.1 without equal $p_i$: $\lceil M/2 \rceil\,\varepsilon$ is spent")
    axes.set_xlabel("sampled voters $M$")
    axes.set_ylabel(r"privacy loss in units of $\varepsilon$")
    axes.legend(frameon=False, fontsize=8)


def _constants(axes: Axes, table: Table) -> None:
    styles = {
        "largest": ("-o", "largest that is private"),
        "general": ("--s", "lemma A.1, general"),
        "simple": (":^", "lemma A.1, simple"),
    }
    for k, colour in zip(sorted(set(table.column("K"))), _COLOURS, strict=False):
        part = table.select(K=k)
        share = [m / k for m in _values(part, "m")]
        for name, (style, _) in styles.items():
            axes.plot(share, part.column(name), style, color=colour, markersize=4)
        axes.plot([], [], color=colour, linewidth=5, label=f"K = {k}")
    for style, label in styles.values():
        axes.plot([], [], style, color=_GREY, markersize=4, label=label)
    axes.set_title("Lemma A.1: the constant gamma")
    axes.set_xlabel("$m / K$")
    axes.set_ylabel(r"$\gamma$")
    axes.set_xlim(right=0.75)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
