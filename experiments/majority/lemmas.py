"""Lemmas B.1 to B.11 of the DaRRM paper, each in fractions over a grid that is chosen beforehand.

All voters are equal, as in the paper's appendix B, and Delta = delta = 0. Each votes 1 with
probability p, and with probability q on the neighbouring data. H(p) = E h(L), L ~ Binomial(K, p),
h = gamma above K / 2 and -gamma below; f(p, q) = H(p) - e^(m epsilon) H(q). A lemma's margin is the
least slack of its inequality; for an identity, minus the largest difference. Identities between
polynomials in p of degree K are proved by K + 1 points; the others are checked, not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from random import Random
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge
from pydantic.dataclasses import dataclass

from dpopt import ParameterError
from experiments import drawing, style
from experiments.parameters import STRICT, Seed, Some, Voters
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.verdicts import short, statement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Gamma = tuple[Fraction, ...]
"""gamma's upper half, l = (K + 1) / 2..K."""

LEMMAS = {
    "B.1": "For gamma symmetric, not falling away from the middle and above 0 there, f is largest "
    "only where q is the smallest that p allows.",
    "B.2": "For such a gamma f is largest only on the boundary of the pairs (p, q) allowed.",
    "B.3": "For gamma symmetric and not falling away from the middle, f(p, q) >= f(q, p) for "
    "p >= q.",
    "B.5": "For m >= (K + 1) / 2 the majority itself, gamma = 1, is m epsilon-private.",
    "B.7": "A gamma of the symmetric form family that meets conditions 107 and 108 is m "
    "epsilon-private.",
    "B.8": "K p E g(X) = E Y g(Y - 1) for X ~ Binomial(K - 1, p), Y ~ Binomial(K, p).",
    "B.9": "The mean of C(X, i) C(K - X, m - i) / C(K, m) for X ~ Binomial(K, p) is "
    "C(m, i) p^i (1 - p)^(m - i).",
    "B.10": "For m <= (K - 1) / 2 the majority of 2m - 1 sampled voters is m epsilon-private.",
    "B.11": "For voters that are alike, a pointwise larger symmetric gamma has no larger error.",
}
"""What they say, in our words; B.4 is theorem 4.1, from B.5 and B.10, and B.6 is a definition."""

_STRICT, _IDENTITIES = ("B.1", "B.2"), ("B.8", "B.9")


@dataclass(frozen=True, config=STRICT)
class Config:
    """Parameters of the audit, which we chose.

    Attributes:
        voters: each K, odd, at least 3.
        ratios: e^epsilon of each voter as texts of fractions above 1.
        points: steps of the grid of p, and of q for each p; at least 2.
        gammas: random noise functions for each K.
        seed: of the noise functions.
    """

    voters: Some[Annotated[Voters, Ge(3)]] = (3, 5, 7)
    ratios: Some[str] = ("11/10", "2", "5")
    points: Annotated[int, Ge(2)] = 8
    gammas: Annotated[int, Ge(0)] = 2
    seed: Seed = 1

    def __post_init__(self) -> None:
        self.exact_ratios()

    def exact_ratios(self) -> tuple[Fraction, ...]:
        """Return e^epsilon of each case."""
        found = []
        for text in self.ratios:
            try:
                value = Fraction(text)
            except (ValueError, ZeroDivisionError):
                value = Fraction(0)
            if value <= 1:
                raise ParameterError(f"ratios holds {text!r}; it must be a fraction above 1.")
            found.append(value)
        return tuple(found)


@experiment(
    "majority-lemmas",
    "DaRRM",
    "Lemmas B.1 to B.11",
    "The least slack of each lemma of appendix B, in fractions over a grid chosen beforehand. "
    "We chose K, e^epsilon and the noise functions.",
    published="lemmas B.1 to B.11; no numbers.",
    config=Config(voters=(3, 5, 7, 9, 11), points=24, gammas=6),
    quick=Config(),
    effort=("points", "gammas", "seed"),
    mathematics=(
        r"f(p, q) = H(p) - e^{m\varepsilon} H(q), \qquad H(p) = \sum_{l > K/2} \gamma(l)"
        r"\left(\alpha_l(p) - \alpha_{K-l}(p)\right), \qquad "
        r"\alpha_l(p) = \binom{K}{l} p^l (1-p)^{K-l}",
    ),
)
def run(config: Config) -> Outcome:
    """Take the least margin of every lemma for each K."""
    records: list[dict[str, Cell]] = []
    for k in track(config.voters):
        gammas = noise_functions(k, config)
        for lemma, judged in _AUDITS.items():
            margins = list(judged(k, gammas, config))
            least = min(margins) if margins else None
            records.append(
                {
                    "lemma": lemma,
                    "K": k,
                    "cases": len(margins),
                    "least_margin": None if least is None else float(least),
                    "holds": least is None or least > 0 or (least == 0 and lemma not in _STRICT),
                }
            )
    table = Table.of(
        "Least margin of each lemma over the cases of the grid, in fractions: the slack of its "
        "inequality; for identities minus the largest difference.",
        records,
    )
    return Outcome({"margins": table}, tuple(_findings()), tuple(_comparisons(table)))


def noise_functions(voters: int, config: Config) -> list[Gamma]:
    """Return upper halves that rise from above 0 at the middle to at most 1.

    Args:
        voters: K.
        config: the number of random ones, and their seed.
    """
    n, rng = (voters + 1) // 2, Random(config.seed * 1000 + voters)
    found = [(Fraction(1),) * n, (Fraction(1, 1000),) * (n - 1) + (Fraction(1),)]
    found.append(tuple(Fraction(i + 1, n) for i in range(n)))
    drawn = [[rng.randint(1, 100) for _ in range(n)] for _ in range(config.gammas)]
    return [*found, *(tuple(Fraction(x, 100) for x in sorted(each)) for each in drawn)]


@cache
def _pmf(k: int, p: Fraction) -> tuple[Fraction, ...]:
    return tuple(comb(k, i) * p**i * (1 - p) ** (k - i) for i in range(k + 1))


@cache
def mean_output(gamma: Gamma, p: Fraction) -> Fraction:
    """Return H(p)."""
    k = 2 * len(gamma) - 1
    pmf = _pmf(k, p)
    return sum(
        (g * (pmf[len(gamma) + i] - pmf[len(gamma) - 1 - i]) for i, g in enumerate(gamma)),
        Fraction(0),
    )


def allowed(p: Fraction, ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest q that epsilon-privacy allows for p."""
    return max(p / ratio, 1 - ratio * (1 - p)), min(p * ratio, 1 - (1 - p) / ratio)


def _pairs(ratio: Fraction, points: int) -> Iterator[tuple[Fraction, Fraction, Fraction, bool]]:
    """Yield p, q, the smallest q, and whether q is strictly feasible, for 0 < p < 1."""
    for i in range(1, points):
        p = Fraction(i, points)
        low, high = allowed(p, ratio)
        for j in range(1, points + 1):
            yield p, low + (high - low) * Fraction(j, points), low, j < points


def _cases(
    gammas: Sequence[Gamma], config: Config, allowances: Sequence[int]
) -> Iterator[tuple[Fraction, Gamma, Fraction]]:
    """Yield e^epsilon, gamma and e^(m epsilon)."""
    for ratio, gamma, m in product(config.exact_ratios(), gammas, allowances):
        yield ratio, gamma, ratio**m


def _lowest_q(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    for ratio, gamma, target in _cases(gammas, config, (1, (k + 1) // 2, k)):
        # f(p, low) - f(p, q) = e^(m epsilon) (H(q) - H(low)).
        for _, q, low, _ in _pairs(ratio, config.points):
            yield target * (mean_output(gamma, q) - mean_output(gamma, low))


def _boundary(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    for ratio, gamma, target in _cases(gammas, config, (1, (k + 1) // 2, k)):
        for p, q, _, inside in _pairs(ratio, config.points):
            if inside:
                ends = [mean_output(gamma, end) for end in allowed(p, ratio)]
                yield target * (mean_output(gamma, q) - min(ends))


def _ordered(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    flat = (Fraction(0),) * ((k + 1) // 2)
    for ratio, gamma, target in _cases((*gammas, flat), config, (1, k)):
        for p, q, _, _ in _pairs(ratio, config.points):
            high, low = (mean_output(gamma, x) for x in (max(p, q), min(p, q)))
            yield (high - target * low) - (low - target * high)


def _private(gamma: Gamma, ratio: Fraction, m: int, points: int) -> Iterator[Fraction]:
    """Yield e^(m epsilon) - 1 - f at the smallest q for each p."""
    target = ratio**m
    for i in range(points + 1):
        p = Fraction(i, points)
        low, _ = allowed(p, ratio)
        yield target - 1 - (mean_output(gamma, p) - target * mean_output(gamma, low))


def _whole_majority(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    del gammas
    for ratio, m in product(config.exact_ratios(), range((k + 1) // 2, k + 1)):
        yield from _private((Fraction(1),) * ((k + 1) // 2), ratio, m, config.points)


def _conditions(gamma: Gamma, ratio: Fraction, m: int, points: int) -> bool:
    """Whether conditions 107 and 108 hold on the grid."""
    k = 2 * len(gamma) - 1
    h = [(1 - g) / 2 for g in reversed(gamma)] + [(1 + g) / 2 for g in gamma]
    rise = [h[i + 1] - h[i] for i in range(k)]

    def mean(p: Fraction) -> Fraction:
        return sum((a * b for a, b in zip(_pmf(k - 1, p), rise, strict=True)), Fraction(0))

    top, bottom = 1 / (1 + ratio), ratio / (1 + ratio)
    for i in range(points + 1):
        q = top * Fraction(i, points)
        if ratio**m * mean(q) < ratio * mean(ratio * q):
            return False
        p = bottom + (1 - bottom) * Fraction(i, points)
        if ratio ** (m + 1) * mean(1 - ratio * (1 - p)) < mean(p):
            return False
    return True


def _sufficient(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    for ratio, gamma, m in product(config.exact_ratios(), gammas, range(1, k + 1)):
        if _conditions(gamma, ratio, m, config.points):
            yield from _private(gamma, ratio, m, config.points)


def _recurrence(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    del gammas, config
    # Both sides are linear in g: the functions that are 1 at one count decide.
    for i in range(k + 2):
        p = Fraction(i, k + 1)
        for j in range(k):
            yield -abs(k * p * _pmf(k - 1, p)[j] - (j + 1) * _pmf(k, p)[j + 1])


def _hypergeometric(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    del gammas, config
    for i in range(k + 1):
        p = Fraction(i, k)
        pmf = _pmf(k, p)
        for m in range(k + 1):
            for j in range(m + 1):
                terms = (pmf[x] * comb(x, j) * comb(k - x, m - j) for x in range(k + 1))
                mean = sum(terms, Fraction(0))
                yield -abs(mean / comb(k, m) - _pmf(m, p)[j])


def double_subsampling(voters: int, m: int) -> Gamma:
    """Return equation 148's gamma, in fractions."""
    size = 2 * m - 1
    whole = comb(voters, size)
    return tuple(
        2
        * Fraction(sum(comb(x, i) * comb(voters - x, size - i) for i in range(m, size + 1)), whole)
        - 1
        for x in range((voters + 1) // 2, voters + 1)
    )


def _sampled(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    del gammas
    for ratio, m in product(config.exact_ratios(), range(1, (k - 1) // 2 + 1)):
        yield from _private(double_subsampling(k, m), ratio, m, config.points)


def _errors(k: int, gammas: Sequence[Gamma], config: Config) -> Iterator[Fraction]:
    whole = (Fraction(1),) * ((k + 1) // 2)
    for one, other in product(gammas, repeat=2):
        lower = tuple(map(min, one, other))
        for i in range(config.points + 1):
            p = Fraction(i, config.points)
            larger, smaller = (
                abs(mean_output(whole, p) - mean_output(gamma, p)) / 2 for gamma in (lower, one)
            )
            yield larger - smaller


_AUDITS: dict[str, Callable[[int, Sequence[Gamma], Config], Iterator[Fraction]]] = {
    "B.1": _lowest_q,
    "B.2": _boundary,
    "B.3": _ordered,
    "B.5": _whole_majority,
    "B.7": _sufficient,
    "B.8": _recurrence,
    "B.9": _hypergeometric,
    "B.10": _sampled,
    "B.11": _errors,
}


def _comparisons(table: Table) -> Iterator[Comparison]:
    for lemma, words in LEMMAS.items():
        part = table.select(lemma=lemma)
        margins = [margin for margin in part.column("least_margin") if margin is not None]
        sizes = ", ".join(str(k) for k in part.column("K"))
        proof = "proved by K + 1 points" if lemma in _IDENTITIES else "in fractions on the grid"
        yield statement(
            f"{words} (lemma {lemma})",
            f"K = {sizes}: {sum(part.column('cases')):,} cases, least margin "
            f"{short(min(margins)) if margins else 'none'}.",
            f"{proof}; equal voters, Delta = 0",
            holds=all(part.column("holds")),
            name=f"lemma {lemma}",
        )


def unequal_errors() -> tuple[Fraction, Fraction]:
    """Return the errors of a gamma and of a larger one for p = (9/10, 9/10, 0), K = 3."""
    a = Fraction(9, 10)
    # L is 0, 1, 2 with these chances, and never 3.
    pmf = ((1 - a) ** 2, 2 * a * (1 - a), a**2, Fraction(0))
    gamma, larger = (Fraction(99, 100), Fraction(37, 100)), (Fraction(99, 100), Fraction(1))
    two = tuple(
        abs((1 - g[0]) * (pmf[2] - pmf[1]) + (1 - g[1]) * (pmf[3] - pmf[0])) / 2
        for g in (gamma, larger)
    )
    return two[0], two[1]


def _findings() -> Iterator[str]:
    small, large = unequal_errors()
    yield (
        "Lemma B.11 needs voters that are alike: for K = 3 and p = (9/10, 9/10, 0) gamma(2), "
        f"gamma(3) = 0.99, 0.37 has error {short(float(small))}, and 0.99, 1 has "
        f"{short(float(large))}."
    )
    yield (
        "Equation 83 as printed has one factor 1 - beta too few below K / 2: for K = 3, gamma = 1 "
        "and beta = 1/2 it gives 1/4 where the probability is 1/2. The proof of lemma B.3 goes on "
        "with the right one."
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the least margins of the lemmas that are strict somewhere; the note names the others."""
    table = outcome.tables["margins"]
    apart = [r for r in table.records if r["least_margin"]]
    figure, (panel,) = drawing.panels(1, across="voters $K$", up="least margin", height=0.6)
    lemmas = list(dict.fromkeys(row["lemma"] for row in apart))
    for place, (lemma, colour) in enumerate(zip(lemmas, style.series(len(lemmas)), strict=True)):
        part = [row for row in apart if row["lemma"] == lemma]
        at, margins = ([row[name] for row in part] for name in ("K", "least_margin"))
        panel.plot(
            at,
            margins,
            "o-",
            color=colour,
            label=f"lemma {lemma}",
            **drawing.nested(place, len(lemmas)),
        )
    panel.set_yscale("symlog", linthresh=1e-4)
    panel.axhline(0.0, color=style.role("limit").colour, linewidth=0.6)
    panel.set_xticks(sorted(set(table.column("K"))))
    equal = ", ".join(lemma for lemma in LEMMAS if lemma not in lemmas)
    drawing.finish(figure, [panel], f"No margin above 0 at any K: lemmas {equal}")
    return figure
