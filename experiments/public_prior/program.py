"""Compare Algorithm 1 with its linear program: values, kernels, and exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, cast

import numpy as np
from annotated_types import Ge, Gt, Le
from matplotlib.figure import Figure

import dpopt
from dpopt import PublicPrior, public_prior
from dpopt.privacy import Certificate, exp_lower
from dpopt.prob import total_variation
from experiments import drawing, style
from experiments.parameters import Count, Seed, Several, configuration
from experiments.public_prior.accuracy import least_divergences
from experiments.public_prior.common import kl_divergence
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import judged, observed, short

PRIORS = ("uniform", "random", "skewed", "tiny")
_TINY = 1e-12
# The least mass of a skewed prior is this power of two of its largest, at least.
_SKEWED = 40
# Tolerances of the optimum and of its dual bound. If e^-epsilon is small, the reduced costs are
# less accurate than the optimum.
_TOLERANCE, _PROVED = 1e-9, 1e-6
# The largest epsilon of a program, its most categories for an experiment, and in fractions.
_MOST_EPSILON, _MOST_CATEGORIES, _MOST_EXACT = 16.0, 100, 16
# Where a difference of 0 is drawn on a logarithmic axis.
_FLOOR = 1e-17
_NAMES = {kind: f"{kind} prior" for kind in PRIORS[:-1]} | {PRIORS[-1]: "a tiny mass"}
_MARKERS = ("o", "s", "^", "D")


@configuration
class Config:
    """Settings: every n with every prior and every epsilon.

    Attributes:
        categories: n, each at least 2 and at most 100.
        priors: "uniform"; "random", weights uniform in [0, 1]; "skewed", each mass half of the one
            before; "tiny", one mass of 1e-12 and the others equal.
        epsilon: one or more, in nats, at most 16.
        backend: of the program; see `dpopt.solve`.
        second: another one, such as "cvxpy:CLARABEL", an interior-point method, for the settings
            with the fewest categories; none to omit it.
        second_categories: the most categories for this solver.
        pmfs: number of users' pmfs drawn for lemma 1, in each setting.
        points: of the curves of Gamma_TV, at least 2.
        seed: of the random priors and pmfs.
    """

    categories: Several[Annotated[int, Ge(2), Le(_MOST_CATEGORIES)]] = (2, 4, 8, 16)
    priors: Several[Literal["uniform", "random", "skewed", "tiny"]] = PRIORS
    epsilon: Several[Annotated[float, Gt(0.0), Le(_MOST_EPSILON)]] = (0.5, 2.0, 8.0)
    backend: str = "highs"
    second: str | None = "cvxpy:CLARABEL"
    second_categories: Count = 4
    pmfs: Count = 200
    points: Annotated[int, Ge(2)] = 41
    seed: Seed = 5


def prior_of(kind: str, categories: int, rng: np.random.Generator) -> np.ndarray:
    """Return a prior in ascending order, as Algorithm 1 takes it, shape (categories,)."""
    weights = np.ones(categories)
    if kind == "random":
        # Not 0, which no prior may have.
        weights = 1.0 - rng.random(categories)
    elif kind == "skewed":
        weights = 2.0 ** -np.linspace(0.0, min(categories - 1, _SKEWED), categories)
    elif kind == "tiny":
        weights[0] = _TINY * (categories - 1)
    return np.sort(weights / weights.sum())


@experiment(
    "prior-program",
    config=Config(
        categories=(2, 3, 4, 8, 16, 32),
        epsilon=(0.1, 0.5, 1.0, 2.0, 4.0, 8.0),
        second_categories=8,
        pmfs=1000,
        points=101,
    ),
    quick=Config(),
    effort=("second", "second_categories", "pmfs", "points", "seed"),
)
def run(config: Config) -> Outcome:
    """Solve every setting, and run Algorithm 1 on it in floats, in integers and in fractions."""
    rng = np.random.default_rng(config.seed)
    rows: list[dict[str, Cell]] = []
    curves: list[dict[str, Cell]] = []
    ends = min(config.epsilon) / 2, max(config.epsilon) * 1.1
    for categories in track(config.categories):
        for kind in config.priors:
            prior = prior_of(kind, categories, rng)
            pmfs = rng.dirichlet(np.full(categories, 0.5), config.pmfs)
            rows += [_record(config, kind, prior, epsilon, pmfs) for epsilon in config.epsilon]
            if categories == max(config.categories):
                curves += [
                    {"categories": categories, "prior": kind, "epsilon": epsilon}
                    | {"gamma": public_prior.minimax_utility(prior, epsilon)}
                    for epsilon in np.linspace(*ends, config.points).tolist()
                ]
    tables = {"settings": Table.of(rows), "curves": Table.of(curves)}
    return Outcome(tables, of_program(tables["settings"]))


def _record(
    config: Config, kind: str, prior: np.ndarray, epsilon: float, pmfs: np.ndarray
) -> dict[str, Cell]:
    setting = PublicPrior(prior, epsilon)
    ours, solved = dpopt.design(setting), dpopt.design(setting, backend=config.backend)
    solution: Any = solved.solution
    kernel, other = ours.kernel, solved.kernel
    second: Any = None
    if config.second and prior.size <= config.second_categories:
        second = dpopt.design(setting, backend=config.second).solution
    over = np.diag(other) - public_prior.diagonal_bounds(prior, epsilon)
    n, e, a = prior.size, math.exp(epsilon), float(prior[0])
    response = (1 + (e - 1) * np.eye(n)) / (e + n - 1)
    binary = np.array([[e * a, 1 - a], [a, (e - 1) * a + 1 - a]]) / (e * a + 1 - a)

    def apart(closed: np.ndarray) -> float:
        """Return the largest difference of the two kernels from a closed form."""
        return float(max(np.abs(each - closed).max() for each in (kernel, other)))

    record: dict[str, Cell] = {
        "categories": n,
        "prior": kind,
        "epsilon": epsilon,
        "least_mass": a,
        "gamma": public_prior.minimax_utility(prior, epsilon),
        "optimum": solution.objective,
        "bound": solution.bound,
        "second": None if second is None else second.objective,
        "kernels_apart": float(np.abs(kernel - other).max()),
        "over_lemma_3": float(over.max()),
        "rows": solution.rows_used,
        "residual": solution.residual,
        "slack": float(cast(Certificate, ours.certificate).slack),
        "drift": ours.drift,
        **_divergences(kernel, prior, epsilon, pmfs),
        "response_apart": apart(response) if kind == "uniform" else None,
        "binary_apart": apart(binary) if n == 2 else None,
    }
    exact = n <= _MOST_EXACT
    ratio = exp_lower(epsilon)
    return record | (_in_fractions(prior, ratio) if exact else dict.fromkeys(_EXACT))


def _divergences(
    kernel: np.ndarray, prior: np.ndarray, epsilon: float, pmfs: np.ndarray
) -> dict[str, Cell]:
    """Return by how much Gamma_f is exceeded or missed, relative to it, for three divergences."""
    points, least = np.eye(prior.size), least_divergences(prior, epsilon)
    measures = {"tv": total_variation, "kl": kl_divergence, "chi-square": _chi_square}
    missed, over = 0.0, 0.0
    for name, divergence in measures.items():
        worst = float(np.max(divergence(points, points @ kernel)))
        missed = max(missed, abs(worst / least[name] - 1))
        over = max(over, float(np.max(divergence(pmfs, pmfs @ kernel))) / worst - 1)
    twice = 2 * total_variation(pmfs, np.broadcast_to(prior, pmfs.shape))
    beyond = total_variation(pmfs, pmfs @ kernel) - twice
    return {"missed": missed, "over_point_masses": over, "over_triangle": float(np.max(beyond))}


def _chi_square(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return ((p - q) ** 2 / q).sum(axis=1)


_EXACT = ("sums_exact", "prior_exact", "private_exact", "ascending_exact", "least_exact")


def _in_fractions(prior: np.ndarray, ratio: Fraction) -> dict[str, Cell]:
    """Return what holds of Algorithm 1 as printed, in fractions: e^epsilon is the ratio."""
    masses = [Fraction(mass) for mass in prior.tolist()]
    masses = [mass / sum(masses) for mass in masses]
    kernel = printed_algorithm(masses, ratio)
    columns = list(zip(*kernel, strict=True))
    kept = [sum(q * k for q, k in zip(masses, column, strict=True)) for column in columns]
    diagonal = [row[i] for i, row in enumerate(kernel)]
    least = ratio * masses[0] / (ratio * masses[0] + 1 - masses[0])
    holds = (
        all(sum(row) == 1 for row in kernel),
        kept == masses,
        all(max(column) <= ratio * min(column) for column in columns),
        all(a <= b for a, b in pairwise(diagonal)),
        min(diagonal) == least,
    )
    return dict(zip(_EXACT, holds, strict=True))


def printed_algorithm(masses: Sequence[Fraction], ratio: Fraction) -> list[list[Fraction]]:
    """Return Algorithm 1 as the paper prints it, by recursion, in fractions."""
    first, n = masses[0], len(masses)
    d = ratio * first + 1 - first
    if n == 2:
        lower = [first / d, ((ratio - 1) * first + 1 - first) / d]
        return [[ratio * first / d, (1 - first) / d], lower]
    rest = sum(masses[1:])
    block = printed_algorithm([mass / rest for mass in masses[1:]], ratio)
    m = 1 - first / d
    return [
        [ratio * first / d, *(mass / d for mass in masses[1:])],
        *([first / d, *(m * entry for entry in row)] for row in block),
    ]


_WITHIN = f"double precision, up to {_TOLERANCE:g}"
_DRAWN = "p drawn from Dirichlet(1/2), double precision"
_FRACTIONS = "fractions, with a rational bound in place of e^epsilon"
_ONLY = " (its kernel is the only one: that of the program is the same)"
# By the place in the paper: the claim, the number of a row that may be the tolerance at most, and
# the certificate. A row without the number has another prior, or too many categories.
_STATEMENTS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any], str]] = {
    "corollary 1": (
        "Gamma_TV = (1 - q_min) / (e^epsilon q_min + 1 - q_min)",
        lambda row: abs(row["optimum"] - row["gamma"]),
        f"optima of programs over all kernels, up to {_TOLERANCE:g}",
    ),
    "proposition 2": (
        "No epsilon-LDP kernel with qK = q has a smaller worst case than Gamma_f",
        # For total variation, by the dual vector.
        lambda row: _TOLERANCE / _PROVED * (row["gamma"] - row["bound"]),
        f"weak duality, recomputed from the dual vector, up to {_PROVED:g}",
    ),
    "theorem 2": (
        "Algorithm 1 has the least worst case",
        lambda row: row["missed"],
        "its worst point mass has Gamma_f for total variation, KL and chi-square; " + _WITHIN,
    ),
    "lemma 1": (
        "sup_p D_f(p || pK) is attained at a point mass",
        lambda row: row["over_point_masses"],
        _DRAWN,
    ),
    "lemma 3": (
        "K_ii <= e^epsilon q_i / (e^epsilon q_i + 1 - q_i)",
        lambda row: row["over_lemma_3"],
        f"kernels of the programs, up to {_TOLERANCE:g}",
    ),
    "section 3, triangle": ("TV(p, pK) <= 2 TV(p, q)", lambda row: row["over_triangle"], _DRAWN),
    "proposition 3": (
        "Algorithm 1 is epsilon-LDP with qK = q",
        lambda row: _missing(row, _EXACT[:3]),
        _FRACTIONS,
    ),
    "proposition 4": (
        "Algorithm 1 attains the bound of proposition 2",
        lambda row: _missing(row, _EXACT[3:]),
        _FRACTIONS,
    ),
    "proposition 1": (
        "Two categories have the optimal mechanism of equation 7" + _ONLY,
        lambda row: row["binary_apart"],
        _WITHIN,
    ),
    "corollary 2": (
        "For the uniform prior n-ary randomised response is optimal" + _ONLY,
        lambda row: row["response_apart"],
        _WITHIN,
    ),
}


def _missing(row: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """Return how many of some columns are false; None if they were not computed."""
    return None if row[names[0]] is None else sum(not row[name] for name in names)


def of_program(table: Table) -> tuple[Comparison, ...]:
    """Compare the statements of section 3 and appendix A with every setting that they are about."""
    found = []
    for name, (claim, number, certificate) in _STATEMENTS.items():
        rows = [row | {"off": number(row)} for row in table.records]
        rows = [row for row in rows if row["off"] is not None]
        if rows:
            made = judged(
                f"{claim} ({name}).",
                rows,
                lambda row: row["off"] <= _TOLERANCE,
                certificate,
                show=("categories", "prior", "epsilon", "off"),
                worst=lambda row: row["off"],
                name=name,
            )
            found.append(made)
    uniform = [row for row in table.records if row["response_apart"] is not None]
    return (*found, *map(_of_appendix, uniform[:1]))


def _of_appendix(row: Mapping[str, Any]) -> Comparison:
    """Compare the equation of appendix A.7, at a uniform prior."""
    n, epsilon = row["categories"], row["epsilon"]
    m = 1 - 1 / (math.exp(epsilon) + n - 1)
    return observed(
        "m = 1 - 1 / (e^epsilon + n - 1) = (e^epsilon + n - 2) / (e^epsilon + n - 2) "
        "(appendix A.7).",
        f"m = (e^epsilon + n - 2) / (e^epsilon + n - 1), {short(m)} at n = {n}, epsilon = "
        f"{epsilon:g}; the printed fraction is 1. The proof needs the former.",
        "arithmetic",
        alike=abs(m - 1) <= _TOLERANCE,
        rule="agrees if both sides of the second equation are the same number",
        name="appendix A.7",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the values on the curves, their differences, and those of the kernels."""
    table, curves = outcome.tables["settings"], outcome.tables["curves"]
    figure, (left, middle, right) = drawing.panels(3, 3, height=1.25)
    priors, most = table.distinct("prior"), max(table.column("categories"))
    sizes = sorted(table.distinct("categories"))
    for place, (kind, colour) in enumerate(zip(priors, style.series(len(priors)), strict=True)):
        curve = curves.select(prior=kind)
        left.plot(curve.column("epsilon"), curve.column("gamma"), color=colour, linewidth=0.9)
        look = {"color": colour, "marker": _MARKERS[place], "linestyle": "none"}
        look |= {"markerfacecolor": "none"}
        part = table.select(prior=kind, categories=most)
        drawing.draw_columns(left, part, "epsilon", {"optimum": (_NAMES[kind], look)})
        # Side by side for each prior; what is 0 at the floor.
        rows = table.select(prior=kind).records
        shift = 0.18 * (place - (len(priors) - 1) / 2)
        at = [sizes.index(row["categories"]) + shift for row in rows]
        middle.plot(at, [max(_FLOOR, abs(row["optimum"] - row["gamma"])) for row in rows], **look)
        right.plot(at, [max(_FLOOR, row["kernels_apart"]) for row in rows], **look)
    left.set(
        ylim=(-0.04, 1.04),
        title=f"$n = {most}$; lines: corollary 1",
        xlabel=r"$\varepsilon$ (nats)",
        ylabel=r"optimum, $\Gamma_{\mathrm{TV}}$",
    )
    middle.set(title="optimum and corollary 1", ylabel="difference")
    right.set(title="kernel and Algorithm 1", ylabel="largest difference")
    powers = (-13, -9, -5, -1)
    for axes in (middle, right):
        axes.axhline(_TOLERANCE, label="tolerance", **drawing.beside("limit", linewidth=0.8))
        axes.set(xlabel="categories, $n$", yscale="log", xlim=(-0.5, len(sizes) - 0.5))
        axes.set_xticks(range(len(sizes)), [str(n) for n in sizes])
        ticks = [_FLOOR, *(10.0**power for power in powers)]
        axes.set_yticks(ticks, ["0", *(f"$10^{{{power}}}$" for power in powers)])
        axes.set_yticks([], minor=True)
        axes.set_ylim(_FLOOR / 10, 50.0)
    return drawing.finish(figure, [left, middle, right])
