"""Claims of the DaRRM paper, judged by its own linear program and by exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from dpopt import ParameterError, majority
from experiments import drawing, style
from experiments.majority import claims_corners, claims_error, claims_sampling
from experiments.majority.claims_corners import NUMBER, REDUCED, Case
from experiments.majority.claims_error import CONSTANT, LEMMA, SURROGATE
from experiments.majority.claims_record import AT_LEAST, Claim, Part, short
from experiments.majority.claims_sampling import DOUBLE, QUERIES, SPENT, Repeated, Sampled
from experiments.majority.figures_drawing import scale_errors
from experiments.majority.figures_verdicts import AT_ONE, BEST, BEST_OF_ALL
from experiments.majority.voters import CURVES
from experiments.majority.words import cases
from experiments.registry import Comparison, Outcome, Table, experiment
from experiments.verdicts import not_comparable, statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BROKEN = "exact: one broken row in fractions, witness in table claims"
_INTEGERS = "exact integers over the reduced corner set, rounded outward"
_NO_PROOF = "no verdict where a certificate is missing"


# What a case of each parameter must look like; each begins with K and m, or M.
_FORMS: dict[str, tuple[str, tuple[Callable[[str], Any], ...]]] = {
    "objectives": ("K,m", (int, int)),
    "three": ("K,m,epsilon", (int, float, float)),
    "swept": ("K,m", (int, float)),
    "doubled_approximate": ("K,m,Delta", (int, int, float)),
    "sampled": ("K,M,epsilon,Delta", (int, int, float, float)),
    "below": ("K,m", (int, int)),
    "repeated": ("K,m,epsilon,Q", (int, float, float, int)),
}
_SIZES = ("at_one", "counted", "pure", "approximate", "doubled", "certified", "sampled_curve")


@dataclass(frozen=True)
class Config:
    """Parameters of the claims; they are ours, where the paper prints none.

    A case is a text of its numbers, such as 11,3 for K = 11 and m = 3.

    Attributes:
        epsilon: of each voter, in nats, unless a case has its own.
        draws: of (p_1, ..., p_K) for each sampled error.
        seed: of all draws.
        at_one: each K of lemma 3.2; odd, as every K is.
        objectives: cases K,m of the surrogate.
        counted: each K whose constraints are counted.
        pure: each K at which the two constraint sets are compared for Delta = 0.
        approximate: the same for Delta > 0; may be empty.
        gammas: random noise functions of each kind for that comparison.
        three: cases K,m,epsilon where three corners are tried.
        swept: cases K,m of its curves.
        swept_epsilons: epsilons of its curves.
        doubled: each K of theorem 4.1, for every epsilon.
        certified: each K of theorem 4.1 for the library's prover.
        certified_epsilons: epsilons of the latter.
        doubled_approximate: cases K,m,Delta at which theorem 4.1 is certified for Delta > 0.
        sampled: cases K,M,epsilon,Delta of subsampling M of K voters.
        sampled_curve: each K of its curve.
        constants: cases K,m or K,m,m,m of lemma A.1.
        below: cases K,m at which lemma A.1 is tried with the tau of general composition.
        repeated: cases K,m,epsilon,Q of a query put Q times to voters trained once.
    """

    epsilon: float = 0.1
    draws: int = 20_000
    seed: int = 5
    at_one: tuple[int, ...] = (3, 5, 7, 9, 11)
    objectives: tuple[str, ...] = ("11,1", "11,3", "11,5", "35,10", "101,10", "101,20")
    counted: tuple[int, ...] = (5, 7, 11, 21, 41, 71, 101)
    pure: tuple[int, ...] = (5, 11, 21, 31)
    approximate: tuple[int, ...] = (3, 5, 7)
    gammas: int = 3
    three: tuple[str, ...] = ("15,1,0.7755", "41,2,0.1", "9,2,0.9005")
    swept: tuple[str, ...] = ("9,2", "11,2", "15,1", "15,2")
    swept_epsilons: tuple[float, ...] = tuple(i / 100 for i in range(72, 110))
    doubled: tuple[int, ...] = tuple(range(3, 32, 2))
    certified: tuple[int, ...] = (3, 11, 21)
    certified_epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)
    doubled_approximate: tuple[str, ...] = ("5,2,0.001", "7,4,0.01")
    sampled: tuple[str, ...] = (
        "11,3,0.1,0",
        "11,5,0.1,0",
        "11,3,0.1,0.00001",
        "35,10,0.1,0",
        "101,10,0.1,0",
        "101,20,0.1,0",
    )
    sampled_curve: tuple[int, ...] = (11, 21, 35)
    constants: tuple[str, ...] = ("11,1,2,3,4,5", "35,1,3,5,8,10,13", "101,1,5,10,20,30")
    below: tuple[str, ...] = ("35,16", "101,28")
    repeated: tuple[str, ...] = ("41,1,0.5,12",)

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) == () and field.name != "approximate":
                raise ParameterError(f"{field.name} is (); it must hold at least one case.")
        for name, least in (("draws", 2), ("seed", 0), ("gammas", 0)):
            if getattr(self, name) < least:
                raise ParameterError(
                    f"{name} is {getattr(self, name)}; it must be at least {least}."
                )
        for name in _SIZES:
            for k in getattr(self, name):
                if k < 3 or k % 2 == 0:
                    raise ParameterError(f"{name} holds {k}; every K must be odd and at least 3.")
        majority.MajoritySetting(3, self.epsilon, 1)
        # Each case's K and m, which the setting refuses if they are none.
        for name in _FORMS:
            for k, m, *_ in self.cases(name):
                majority.MajoritySetting(k, self.epsilon, m)
        for k, allowances in self.constant_cases:
            for m in allowances:
                majority.MajoritySetting(k, self.epsilon, m)

    def cases(self, name: str) -> list[tuple]:
        """Return the numbers of every case of a parameter.

        Args:
            name: of the parameter: one of those that hold cases, but the constants.
        """
        return cases(name, getattr(self, name), *_FORMS[name])

    @property
    def constant_cases(self) -> list[tuple[int, tuple[int, ...]]]:
        """Each K of lemma A.1 with its values of m."""
        found = []
        for text in self.constants:
            kinds = (int,) * max(2, len(text.split(",")))
            ((k, *allowances),) = cases("constants", (text,), "K,m[,m...]", kinds)
            found.append((k, tuple(allowances)))
        return found


@experiment(
    "majority-claims",
    "DaRRM",
    "Claims",
    "What the paper states, judged by its program, exact arithmetic or a short proof: "
    "one row for each instance, with its certificate. K, m and epsilon of the instances are "
    "ours.",
    published="lemma 3.2, equation 3, lemma 5.1, theorem 4.1, lemmas 3.1 and A.1, section 6.2; "
    "no numbers.",
    config=Config(
        draws=200_000,
        at_one=(3, 5, 7, 9, 11, 21, 51),
        pure=(5, 11, 21, 31, 41),
        approximate=(3, 5, 7, 9),
        gammas=10,
        swept_epsilons=tuple(i / 400 for i in range(288, 440)),
        doubled=(*range(3, 32, 2), 51, 101),
        certified=(3, 11, 21, 31, 51),
        sampled_curve=(11, 21, 35, 51),
    ),
    quick=Config(),
    effort=("draws", "seed", "gammas", "swept_epsilons"),
    mathematics=(
        r"\text{lemma 3.2: } \text{error}(p) \ge \left| \Pr[g = 1] - \frac{1}{K} \sum_i p_i "
        r"\right|, \quad \text{refuted by } \gamma(l) = \frac{1}{|2l - K|},",
        r"\text{theorem 4.1: the majority of } 2m - 1 \text{ sampled voters is } "
        r"m \varepsilon \text{-DP, for unequal } p_i \text{ too},",
        r"\text{lemma A.1: } \gamma \le \frac{e^{m \varepsilon} - 1 + 2 \delta}{\frac{2 "
        r"(e^{\tau \varepsilon} - e^{m \varepsilon} + (1 + e^{m \varepsilon}) \lambda)}"
        r"{e^{\tau \varepsilon} + 1} + e^{m \varepsilon} - 1}.",
    ),
)
def run(config: Config) -> Outcome:
    """Compute every claim; its status follows from the values."""
    parts = list(_parts(config))
    claims = [claim for part in parts for claim in part.claims]
    caption = "One row for each instance of a claim: what the paper says, what is found, the proof."
    tables = {"claims": Table.of(caption, [claim.record for claim in claims])}
    for part in parts:
        tables |= part.tables
    return Outcome(tables, tuple(claim.sentence for claim in claims), of_claims(claims))


def _parts(config: Config) -> Iterator[Part]:
    epsilon, draws, seed = config.epsilon, config.draws, config.seed
    yield claims_error.lower_bound(config.at_one, epsilon, draws, seed)
    yield claims_error.objectives(config.cases("objectives"), epsilon, draws, seed)
    yield claims_corners.counts(config.counted)
    yield claims_corners.maxima(config.pure, config.approximate, config.gammas, seed)
    yield claims_corners.three_corners(
        [Case(k, m, own) for k, m, own in config.cases("three")],
        config.cases("swept"),
        config.swept_epsilons,
    )
    yield claims_sampling.double_subsampling(
        config.doubled,
        config.certified,
        config.certified_epsilons,
        config.cases("doubled_approximate"),
    )
    yield claims_error.constants(config.constant_cases, config.cases("below"), epsilon)
    sampled = [Sampled(*case) for case in config.cases("sampled")]
    yield claims_sampling.spent(sampled, config.sampled_curve, epsilon)
    repeated = [Repeated(*case) for case in config.cases("repeated")]
    yield claims_sampling.repeated_queries(repeated)


def of_claims(claims: Sequence[Claim]) -> tuple[Comparison, ...]:
    """Return one comparison for each statement; verdicts come from the claims' values.

    Args:
        claims: every instance of the run.
    """
    by: dict[str, list[Claim]] = {}
    for claim in claims:
        by.setdefault(claim.claim, []).append(claim)
    return (
        *_lemma(by[LEMMA]),
        _surrogate(by[SURROGATE]),
        *_counts(by[NUMBER], by[REDUCED]),
        _double(by[DOUBLE]),
        *_constants(by[CONSTANT]),
        _spent(by[SPENT]),
        _queries(by[QUERIES]),
    )


def _judged(
    words: str, ours: str, certificate: str, claims: Sequence[Claim], name: str, more_if: str = ""
) -> Comparison:
    """Judge a statement by its instances: refuted by one, sharper if more holds in all."""
    decided = [claim for claim in claims if claim.proved]
    if not decided:
        return not_comparable(words, ours, certificate, why="no instance is proved", name=name)
    return statement(
        words,
        ours,
        certificate,
        holds=all(claim.holds for claim in decided),
        more=all(claim.more for claim in decided),
        more_if=more_if,
        name=name,
    )


def _worst(claims: Sequence[Claim]) -> Claim:
    """Return the instance that lies farthest against its claim."""
    return min(claims, key=lambda claim: claim.beyond)


def _lemma(claims: list[Claim]) -> Iterator[Comparison]:
    pointwise = [claim for claim in claims if claim.quantity == "error"]
    worst = _worst(pointwise)
    yield _judged(
        "At m = 1 no private majority has an error below |Pr[g = 1] - mean p| (lemma 3.2).",
        f"gamma(l) = 1/|2l - K| has error {worst.value_found:g} where the bound is "
        f"{short(worst.value_claimed)} ({worst.instance}).",
        "exact for every epsilon: slacks in powers of e^epsilon - 1 without negative coefficients",
        pointwise,
        AT_ONE,
    )
    expected = [claim for claim in claims if claim.quantity == "expected error"]
    best = _worst(expected)
    yield _judged(
        "At m = 1 subsampling has the optimal error (section 3.1).",
        f"{best.instance}: {short(best.value_found)}, subsampling {short(best.value_claimed)}; "
        f"less in {sum(not c.holds for c in expected)} of {len(expected)} cases.",
        f"{_INTEGERS}; error by quadrature, sampled beside it",
        expected,
        AT_ONE,
    )


def _surrogate(claims: list[Claim]) -> Comparison:
    best = _worst(claims)
    return _judged(
        BEST_OF_ALL,
        f"{short(best.value_found)} instead of {short(best.value_claimed)} at {best.instance}; "
        f"less in {sum(not c.holds for c in claims)} of {len(claims)} cases.",
        f"{_INTEGERS}; dual bound",
        claims,
        BEST,
    )


def _counts(claims: list[Claim], reduced: list[Claim]) -> Iterator[Comparison]:
    sampled = [claim for claim in claims if not claim.sharpens]
    confirmed = all(claim.holds for claim in reduced)
    for claim in claims:
        if claim.sharpens:
            yield statement(
                f"{claim.says} (lemma 5.1).",
                f"{claim.instance}: {claim.value_found:,.0f} decide, of "
                f"{claim.value_claimed:,.0f}.",
                "proved; both maxima, and random voters, in table maxima",
                holds=all(part.holds for part in (claim, *sampled)),
                more=claim.more and confirmed,
                more_if="a smaller set has the same maximum",
                name=f"lemma 5.1, {claim.instance.partition(',')[0]}",
            )


def _double(claims: list[Claim]) -> Comparison:
    words = "Double subsampling is m epsilon-DP if all voters have the same p and p' (theorem 4.1)."
    rows = sum(claim.constraints or 0 for claim in claims)
    broken = sum(claim.value_found for claim in claims)
    certificate = f"proved by thinning; {rows:,} rows checked exactly besides"
    name = "theorem 4.1"
    if broken:
        # The rows are those of voters that need not be equal: they decide no more than they say.
        ours = f"{broken:g} rows or cases of unequal voters are broken or undecided."
        return not_comparable(words, ours, certificate, why=_NO_PROOF, name=name)
    return statement(
        words,
        "The same p is not needed.",
        certificate,
        holds=all(claim.holds for claim in claims),
        more=all(claim.holds for claim in claims),
        more_if="unequal voters are private too",
        name=name,
    )


def _constants(claims: list[Claim]) -> Iterator[Comparison]:
    larger = [claim for claim in claims if claim.relation == AT_LEAST]
    ratios = [claim.value_found / claim.value_claimed for claim in larger]
    yield _judged(
        "Where tau >= m, lemma A.1's constant gamma is private.",
        f"The largest that is private is {min(ratios):.2f} to {max(ratios):.2f} times as large, in "
        f"{len(larger)} cases.",
        f"{_INTEGERS}; linear program",
        larger,
        "lemma A.1",
        "a larger constant is private in every case",
    )
    spent = [claim for claim in claims if claim.relation != AT_LEAST]
    worst = _worst(spent)
    kept = f"{worst.instance.partition(';')[0]}: {short(worst.value_found)} is spent, of "
    yield _judged(
        "With p_const up to (4) RR is (m epsilon, delta)-DP, tau in [1, K] and lambda by simple or "
        "general composition (lemma A.1).",
        f"{'Holds' if worst.holds else 'Not for tau < m'}: {kept}{short(worst.value_claimed)}.",
        _BROKEN if not worst.holds else "no broken row was found",
        spent,
        "lemma A.1, any tau",
    )


def _spent(claims: list[Claim]) -> Comparison:
    best = min(claims, key=lambda claim: claim.value_found / claim.value_claimed)
    return _judged(
        "The majority of m sampled voters spends m epsilon (section 3.1).",
        f"{best.instance.partition(', Delta')[0]}: {short(best.value_found)}, of "
        f"{short(best.value_claimed)}; ceil(m / 2) epsilon exactly, where Delta = 0.",
        f"proved and attained; {_INTEGERS}",
        claims,
        "subsampling's loss",
        "less is spent in every case",
    )


def _queries(claims: list[Claim]) -> Comparison:
    worst = _worst(claims)
    return _judged(
        "The overall privacy loss over Q queries to the teachers, trained once, can be computed by "
        "general composition (section 6.2, theorem 2.3).",
        f"{worst.instance.partition(', Delta')[0]} (ours), one query "
        f"{worst.instance.partition('one query ')[2].partition(' to')[0]}: at least "
        f"{worst.value_found:g} is spent, of {worst.value_claimed:g}"
        f"{''.join(worst.found.partition('; the chance')[1:]).partition('. The')[0]}. The K voters "
        "together bound it; whether the printed totals do is judged with Tables 2, 5, 7 and 9.",
        "exact: one ratio in fractions, from the certified integers",
        claims,
        "composition of queries",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw one panel for each claim; double and plain subsampling share one."""
    figure, grid = style.figure(3, 2, height=0.85)
    panels = list(grid.ravel())
    names = ("lemma-3.2", "objectives", "counts", "three-corners", "subsampling", "constants")
    drawers = (
        _draw_lower_bound,
        _draw_objectives,
        _draw_counts,
        _draw_three_corners,
        _draw_subsampling,
        _draw_constants,
    )
    for axes, name, draw in zip(panels, names, drawers, strict=True):
        draw(axes, outcome.tables[name])
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.24),
            ncols=2,
            borderpad=0.0,
            columnspacing=1.2,
            handlelength=1.8,
        )
    style.letter(panels)
    return figure


def _values(table: Table, name: str) -> list[float]:
    return [float(value) for value in table.column(name)]


def _draw_lower_bound(axes: Axes, points: Table) -> None:
    sizes = sorted(set(points.column("K")))
    ends = list(dict.fromkeys((sizes[0], sizes[-1])))
    for k, colour in zip(ends, style.series(len(ends)), strict=True):
        part = points.select(K=k)
        axes.plot(
            part.column("bound"),
            part.column("error"),
            linestyle="",
            marker=".",
            color=colour,
            markersize=3.2,
            markeredgewidth=0,
            label=rf"$p \sim$ U[0, 1], $K$ = {k}",
        )
    end = max(points.column("bound"))
    axes.plot([0, end], [0, end], color=style.role("paper").colour, label="no point below (paper)")
    axes.margins(0.04)
    axes.set_title(r"lemma 3.2 and $\gamma(l) = 1/|2l - K|$")
    axes.set_xlabel(r"claimed bound $|\Pr[g = 1] - \bar{p}|$")
    axes.set_ylabel("error")


def _draw_objectives(axes: Axes, table: Table) -> None:
    names = {"sub": "subsampling"}
    curves = ["sub", "double", "surrogate", "expected-error"]
    first = table.select(curve="surrogate")
    labels = [f"{k}, {m:g}" for k, m in zip(first.column("K"), first.column("m"), strict=True)]
    for curve in curves:
        label, role = CURVES[names.get(curve, curve)]
        values = _values(table.select(curve=curve), "expected_error")
        look = style.role(role)
        axes.plot(
            range(len(values)),
            values,
            color=look.colour,
            marker=look.marker,
            linestyle="",
            label=label,
        )
    values = _values(table, "expected_error")
    scale = scale_errors(axes, values, [0.0] * len(values))
    axes.set_xticks(range(len(labels)), labels)
    axes.margins(x=0.08)
    axes.set_title(f"equation 3{scale}")
    axes.set_xlabel("$K$, $m$")
    axes.set_ylabel(r"error under $p \sim$ U[0, 1]")


def _draw_counts(axes: Axes, table: Table) -> None:
    for case, dash, fill in (("Delta > 0", "-", None), ("Delta = 0", "--", "white")):
        part = table.select(case=case)
        name = case.replace("Delta", r"$\Delta$")
        for column, role, whose in (("paper", "paper", "paper"), ("reduced", "optimum", "reduced")):
            look: dict[str, Any] = style.role(role).line | {"linestyle": dash}
            if fill:
                look["markerfacecolor"] = fill
            axes.plot(part.column("K"), part.column(column), **look, label=f"{whose}, {name}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.06)
    sizes = table.select(case="Delta = 0").column("K")
    axes.set_xticks(sizes if len(sizes) <= 8 else sizes[:: len(sizes) // 7])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_title("lemma 5.1, rows that decide")
    axes.set_xlabel("number of voters $K$")
    axes.set_ylabel("privacy rows")


def _draw_three_corners(axes: Axes, table: Table) -> None:
    pairs = list(dict.fromkeys(zip(table.column("K"), table.column("m"), strict=True)))
    for place, ((k, m), colour) in enumerate(zip(pairs, style.series(len(pairs)), strict=True)):
        part = table.select(K=k, m=m)
        axes.plot(
            part.column("epsilon"),
            part.column("spent_over_target"),
            color=colour,
            marker=".",
            **drawing.nested(place, len(pairs)),
            label=f"$K$ = {k}, $m$ = {m:g}",
        )
    axes.axhline(1.0, **drawing.beside("limit"), label="target")
    axes.margins(0.05)
    axes.set_title("corners 00, 11 and bc alone")
    axes.set_xlabel(r"$\varepsilon$ of each voter (nats)")
    axes.set_ylabel(r"spent $\varepsilon$ / $m\varepsilon$")


def _draw_subsampling(axes: Axes, table: Table) -> None:
    sizes = sorted(set(table.column("K")), reverse=True)
    last = max(table.column("M"))
    axes.plot([0, last], [0, last], color=style.role("paper").colour, label=r"$M$ (paper)")
    for place, (k, colour) in enumerate(zip(sizes, style.series(len(sizes)), strict=True)):
        part = table.select(K=k)
        axes.plot(
            part.column("M"),
            part.column("epsilons_spent"),
            linestyle="",
            marker="o",
            markeredgewidth=0,
            color=colour,
            markersize=1.6 + 3.4 * (len(sizes) - 1 - place) / max(1, len(sizes) - 1),
            label=f"spent, $K$ = {k}",
        )
    axes.margins(0.06)
    axes.set_title(r"subsampling spends $\lceil M/2 \rceil \, \varepsilon$")
    axes.set_xlabel("sampled voters $M$")
    axes.set_ylabel(r"privacy loss in units of $\varepsilon$")


def _draw_constants(axes: Axes, table: Table) -> None:
    styles = {
        "largest": (("-", "o"), "largest private"),
        "general": (("--", "s"), "lemma, general"),
        "simple": ((":", "^"), "lemma, simple"),
    }
    sizes = sorted(set(table.column("K")))
    for k, colour in zip(sizes, style.series(len(sizes)), strict=True):
        part = table.select(K=k)
        share = [m / k for m in _values(part, "m")]
        for name, ((dash, marker), _) in styles.items():
            axes.plot(
                share,
                part.column(name),
                color=colour,
                linestyle=dash,
                marker=marker,
                markersize=2.5,
                linewidth=0.9,
                label=f"$K$ = {k}" if name == "largest" else None,
            )
    for (dash, marker), label in styles.values():
        look = {"linestyle": dash, "marker": marker, "markersize": 2.5, "linewidth": 0.9}
        axes.plot([], [], color=style.role("noise").colour, **look, label=label)
    axes.margins(0.06)
    axes.set_title(r"lemma A.1, constant $\gamma$")
    axes.set_xlabel("$m / K$")
    axes.set_ylabel(r"$\gamma$")
