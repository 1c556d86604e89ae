"""The numbered lemmas of both papers, in fractions over a grid chosen beforehand.

If e^epsilon is replaced by a rational e > 1, the recursion and every inequality of the lemmas are
rational, and each is decided without rounding. e equals e^epsilon for some epsilon, so a
counterexample refutes the lemma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Le
from pydantic.dataclasses import dataclass

from dpopt import ParameterError, roo
from experiments import drawing
from experiments.parameters import STRICT, Some
from experiments.registry import Cell, Comparison, Outcome, Table, experiment, track
from experiments.roo.common import PAPER
from experiments.verdicts import statement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EXACT = "exact fractions, own recursion; counterexample in table lemmas"
Margins = Iterator[tuple[int, Fraction]]
"""m, and the right side minus the left side."""


@dataclass(frozen=True, config=STRICT)
class Config:
    """Grid of n, k and e for the lemmas on q_m, and of n, k, gamma, gamma' for lemma 8.

    Attributes:
        records: n; only n > k is used.
        categories: k.
        bases: e, which replaces e^epsilon, as fractions above 1.
        sample_records: n of lemma 8, at most 60.
        sample_categories: k of lemma 8, at most 6.
        fractions: gamma times k of lemma 8, as fractions above 0 and at most 1.
        thresholds: gamma' over gamma of lemma 8, as fractions above 0 and below 1.
    """

    records: Some[int] = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 20, 21, 25, 30, 31)
    categories: Some[int] = (2, 3, 4, 5, 7)
    bases: Some[str] = tuple(
        "1001/1000 101/100 31/30 21/20 11/10 6/5 4/3 3/2 5/3 2 3".split()  # noqa: SIM905
    )
    sample_records: Some[Annotated[int, Ge(1), Le(60)]] = (5, 10, 20, 30)
    sample_categories: Some[Annotated[int, Ge(2), Le(6)]] = (2, 3, 4)
    fractions: Some[str] = ("1/5", "1/2", "9/10", "1")
    thresholds: Some[str] = ("1/10", "1/2", "3/4", "19/20")

    def __post_init__(self) -> None:
        for n, k in self.settings:
            roo.RooSetting(n, k, 1.0)
        if not self.settings:
            raise ParameterError(f"records is {self.records}; it must hold an n above some k.")
        for name, low, high in (("bases", 1, 1000), ("fractions", 0, 1), ("thresholds", 0, 1)):
            for text in getattr(self, name):
                value = _fraction(text)
                if not low < value <= high or (name == "thresholds" and value == 1):
                    raise ParameterError(
                        f"{name} is {text!r}; it must be a fraction above {low} and "
                        f"{'below' if name == 'thresholds' else 'at most'} {high}."
                    )

    @property
    def settings(self) -> list[tuple[int, int]]:
        """(n, k) with n > k, as the lemmas require."""
        return [(n, k) for n, k in product(self.records, self.categories) if n > k]


def _fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return Fraction(-1)


@plain_dataclass(frozen=True)
class Case:
    """One setting, and the recursion of one of the papers at it.

    Attributes:
        n: records.
        k: categories.
        e: replaces e^epsilon.
        conference: whether the recursion is the conference paper's, without u', v' and w'.
    """

    n: int
    k: int
    e: Fraction
    conference: bool

    @property
    def last(self) -> int:
        """M = floor(n / k)."""
        return self.n // self.k

    @property
    def free(self) -> int:
        """The largest m that lemma 2 is about: floor(1 / (e - 1)), at most M."""
        return min(self.last, math.floor(1 / (self.e - 1)))

    def u(self, m: int) -> Fraction:
        """u_m, (65)."""
        return Fraction(1, self.k) - Fraction(m + 1, self.n)

    def v(self, m: int) -> Fraction:
        """v_m, (66)."""
        return self.e * (Fraction(1, self.k) - Fraction(m, self.n))

    def w(self, m: int) -> Fraction:
        """w_m, (67)."""
        return (m * self.e - m - 1) / self.n

    def t(self, m: int) -> Fraction:
        """w_m / (u_m - v_m), (83)."""
        return self.w(m) / (self.u(m) - self.v(m))

    @cached_property
    def primed(self) -> tuple[Fraction, Fraction, Fraction]:
        """u', v' and w', (62) to (64)."""
        part = Fraction(1, self.k) - 1
        return part - Fraction(1, self.n), self.e * part, self.e - 1 - Fraction(1, self.n)

    def first(self, m: int) -> Fraction:
        """f_1(m, q_{m-1}), for m < n / k."""
        return (self.u(m) * self.q[m - 1] - self.w(m)) / self.v(m)

    def second(self, m: int) -> Fraction:
        """f_2(q_{m-1})."""
        u, v, w = self.primed
        return (v * self.q[m - 1] + w) / u

    @cached_property
    def q(self) -> list[Fraction]:
        """q_0, ..., q_M by algorithm 2."""
        n, k = self.n, self.k
        q = [1 / (1 + Fraction(n, k) * (self.e - 1))]
        u, v, w = self.primed
        for m in range(1, self.last + 1):
            terms = [Fraction(0)]
            if m * k < n:
                terms.append((self.u(m) * q[-1] - self.w(m)) / self.v(m))
            if not self.conference:
                terms.append((v * q[-1] + w) / u)
            q.append(max(terms))
        return q


@plain_dataclass(frozen=True)
class Lemma:
    """A lemma, restated.

    Attributes:
        name: paper and number.
        words: what it says, with its domain.
        margins: right side minus left side, for each m of the domain.
        strict: whether the paper prints < instead of <=.
        reversed_of: the equation with the opposite sign elsewhere in the paper; empty if none.
        conference: whether it is from the conference paper.
    """

    name: str
    words: str
    margins: Callable[[Case], Margins]
    strict: bool = False
    reversed_of: str = ""
    conference: bool = False


def _row_69(case: Case) -> Margins:
    q = case.q
    for m in range(case.last):
        yield m, case.v(m) * q[m] + case.w(m) - case.u(m) * q[m + 1]


def _row_72(case: Case) -> Margins:
    u, v, w = case.primed
    yield from ((m, w - (u - v) * case.q[m]) for m in range(case.last + 1))


def _row_74(case: Case) -> Margins:
    u, v, w = case.primed
    q = case.q
    yield from ((m, v * q[m] + w - u * q[m - 1]) for m in range(1, case.last + 1))


def _from(case: Case, start: int) -> Margins:
    """Return how far q_m is above t_m; the conference paper has no q_m at m = n / k."""
    end = min(case.free, -(-case.n // case.k) - 1) if case.conference else case.free
    yield from ((m, case.q[m] - case.t(m)) for m in range(start, end + 1))


LEMMAS = (
    Lemma(
        "lemma 2",
        "q_m >= t_m = w_m / (u_m - v_m) for every m up to 1 / (e - 1), n > k; it gives (68)",
        lambda case: _from(case, 0),
    ),
    Lemma(
        "lemma 3",
        "f_1(m, q_{m-1}) <= q_{m-1} for 1 <= m < n / k, n > k",
        lambda case: ((m, case.q[m - 1] - case.first(m)) for m in range(1, -(-case.n // case.k))),
    ),
    Lemma(
        "lemma 4",
        "f_2(q_{m-1}) <= q_{m-1} for 1 <= m <= M, n > k",
        lambda case: ((m, case.q[m - 1] - case.second(m)) for m in range(1, case.last + 1)),
    ),
    Lemma(
        "lemma 5",
        "u_m q_{m+1} < v_m q_m + w_m for 0 <= m < M, n > k; it gives (69)",
        _row_69,
        strict=True,
    ),
    Lemma(
        "lemma 6",
        "(u' - v') q_m < w' for 0 <= m <= M, n > k; it gives (72)",
        _row_72,
        strict=True,
    ),
    Lemma(
        "lemma 7",
        "u' q_{m-1} < v' q_m + w' for 1 <= m <= M, n > k; it gives (74)",
        _row_74,
        strict=True,
    ),
    Lemma(
        "(31)",
        "(u_m - v_m) q_m >= w_m for every m, as section IV prints what (68) has as <=",
        lambda case: (
            (m, (case.u(m) - case.v(m)) * case.q[m] - case.w(m)) for m in range(case.last + 1)
        ),
        reversed_of="(68)",
    ),
    Lemma(
        "conference lemma 2",
        "q_m <= q_{m-1} for 1 <= m < n / k, n > k",
        lambda case: ((m, case.q[m - 1] - case.q[m]) for m in range(1, -(-case.n // case.k))),
        conference=True,
    ),
    Lemma(
        "conference lemma 3",
        "q_m > t_m for every m < n / k from 1 up to 1 / (e - 1)",
        lambda case: _from(case, 1),
        strict=True,
        conference=True,
    ),
    Lemma(
        "conference lemma 4",
        "u_m q_{m+1} < v_m q_m + w_m for 0 <= m < M",
        _row_69,
        strict=True,
        conference=True,
    ),
)


@experiment(
    "roo-lemmas",
    PAPER,
    "Lemmas 2 to 8 (journal), 2 to 4 (conference)",
    "Each lemma used for theorems 2 and 3, decided in fractions over a grid. The figure shows "
    "where lemma 2 fails: at the last m, where k does not divide n and e^epsilon < 1 + 1/M. "
    "Lemmas 1 and 9 are with Table I.",
    published="The lemmas hold for all n > k, k >= 2 and epsilon > 0.",
    config=Config(
        records=(*range(3, 41), 50, 51, 60, 61, 80, 81),
        categories=(2, 3, 4, 5, 6, 7, 10),
        sample_records=(5, 10, 20, 30, 50),
    ),
    quick=Config(),
    mathematics=(
        r"f_1(m, q) = \frac{u_m q - w_m}{v_m}, \quad f_2(q) = \frac{v' q + w'}{u'}, \quad "
        r"q_m = \max \{ 0, f_1(m, q_{m-1}), f_2(q_{m-1}) \}",
        r"t_m = \frac{w_m}{u_m - v_m} = \frac{1 - m (e - 1)}{1 + (e - 1)(n / k - m)}, \quad "
        r"e = e^\varepsilon",
        r"\Pr \left\{ \min_x \hat P(x) < \gamma' \right\} \le k e^{-2 n (\gamma - \gamma')^2}",
    ),
)
def run(config: Config) -> Outcome:
    """Decide every lemma in every case."""
    cases = [
        Case(n, k, Fraction(e), conference)
        for (n, k), e, conference in product(config.settings, config.bases, (False, True))
    ]
    counts = [
        _decided(lemma, [case for case in cases if case.conference == lemma.conference])
        for lemma in track(LEMMAS)
    ]
    counts.append(_concentration(config))
    last: list[dict[str, Cell]] = [
        {
            "records": case.n,
            "categories": case.k,
            "base": str(case.e),
            "growth": float(case.e - 1),
            "largest_minimum": case.last,
            "holds": case.q[case.last] >= case.t(case.last),
        }
        for case in cases
        if not case.conference and case.n % case.k and case.w(case.last) < 0
    ]
    none: dict[str, Cell] = dict.fromkeys(
        ("records", "categories", "base", "growth", "largest_minimum", "holds")
    )
    tables = {
        "lemmas": Table.of("Every lemma over the grid.", counts),
        "last": Table.of(
            "Lemma 2 at the last m, where k does not divide n and e < 1 + 1/M.", last or [none]
        ),
    }
    small = sum(not case.conference and case.primed[2] < 0 for case in cases)
    proof = (
        "The printed proof of lemma 6 bounds w' q_m by w', which needs w' >= 0. In "
        f"{small} settings w' < 0, and the lemma holds for another reason (q_m >= q*, see "
        "dpopt.roo.journal_is_private)."
    )
    return Outcome(tables, (proof,), of_lemmas(tables))


def _decided(lemma: Lemma, cases: Sequence[Case]) -> dict[str, Cell]:
    found = [(margin, case, m) for case in cases for m, margin in lemma.margins(case)]
    failing = [at for at in found if at[0] < 0]
    equal = [at for at in found if at[0] == 0]
    shown = min(failing, key=lambda at: at[0]) if failing else None
    if shown is None and lemma.strict and equal:
        shown = min(equal, key=lambda at: (at[1].n, at[1].k, at[1].e))
    return {
        "lemma": lemma.name,
        "words": lemma.words,
        "strict": lemma.strict,
        "reversed_of": lemma.reversed_of,
        "cases": len(found),
        "fail": len(failing),
        "equal": len(equal),
        "at_last": sum(m == case.last and case.n % case.k > 0 for _, case, m in failing),
        "least": float(min((at[0] for at in found), default=Fraction(0))),
        "counterexample": None
        if shown is None
        else f"n = {shown[1].n}, k = {shown[1].k}, e = {shown[1].e}, m = {shown[2]}: "
        f"margin {shown[0]}",
    }


def _concentration(config: Config) -> dict[str, Cell]:
    """Decide lemma 8 for pmfs with some categories at gamma and the others equal."""
    margins: list[tuple[Fraction, str]] = []
    for n, k, share, part in product(
        config.sample_records, config.sample_categories, config.fractions, config.thresholds
    ):
        gamma = Fraction(share) / k
        threshold = Fraction(part) * gamma
        bound = k / exp_above(2 * n * (gamma - threshold) ** 2)
        for low in range(1, k):
            pmf = [gamma] * low + [(1 - low * gamma) / (k - low)] * (k - low)
            chance = 1 - all_reach(pmf, n, math.ceil(n * threshold))
            words = (
                f"n = {n}, k = {k}, gamma = {gamma}, gamma' = {threshold}, {low} categories at it"
            )
            margins.append((bound - chance, words))
    least = min(margins)
    return {
        "lemma": "lemma 8",
        "words": "the smallest share is below gamma' < gamma with probability at most "
        "k exp(-2 n (gamma - gamma')^2), for P >= gamma",
        "strict": False,
        "reversed_of": "",
        "cases": len(margins),
        "fail": sum(margin < 0 for margin, _ in margins),
        "equal": sum(margin == 0 for margin, _ in margins),
        "at_last": 0,
        "least": float(least[0]),
        "counterexample": least[1] if least[0] < 0 else None,
    }


def exp_above(x: Fraction) -> Fraction:
    """Return an upper bound of e^x for x >= 0: a Taylor sum and its remainder."""
    terms = 4 * math.ceil(x) + 30
    term, total = Fraction(1), Fraction(0)
    for i in range(1, terms + 1):
        total += term
        term = term * x / i
    # Each further term is at most x / (terms + 1) of the one before it.
    return total + term / (1 - x / (terms + 1))


def all_reach(pmf: Sequence[Fraction], records: int, least: int) -> Fraction:
    """Return the probability that each category has at least ``least`` of n records."""
    sums = [Fraction(1)] + [Fraction(0)] * records
    for p in pmf:
        new = [Fraction(0)] * (records + 1)
        for done, weight in enumerate(sums):
            if weight:
                for count in range(least, records - done + 1):
                    new[done + count] += weight * p**count / math.factorial(count)
        sums = new
    return sums[records] * math.factorial(records)


def of_lemmas(tables: Mapping[str, Table]) -> tuple[Comparison, ...]:
    """Decide each lemma: refuted if an inequality fails.

    It is a misprint if it fails only with equality where < is printed, or if the paper prints the
    same inequality with the opposite sign elsewhere. That inequality has its own verdict.

    Args:
        tables: "lemmas" of the run.
    """
    (known,) = tables["lemmas"].select(lemma="lemma 2").column("fail")
    return tuple(_decision(row, known) for row in tables["lemmas"].records)


def _decision(row: Mapping[str, Any], fail_in_lemma_2: int) -> Comparison:
    broken = row["fail"] + (row["equal"] if row["strict"] else 0)
    ours = f"Holds in all {row['cases']} cases."
    if broken:
        ours = f"Fails in {broken} of {row['cases']} cases; {row['counterexample']}."
    if broken and not row["fail"]:
        ours += " With <= instead of < it holds in all cases, which suffices for theorem 2."
    if broken and row["reversed_of"]:
        ours += f" {row['reversed_of']} has the sign that the proofs use; see lemma 2."
    corrected, corrected_if = False, ""
    if row["strict"]:
        corrected, corrected_if = not row["fail"], "it holds in all of them with <= for <"
    if row["reversed_of"]:
        reversed_fails = row["cases"] - row["fail"] - row["equal"]
        corrected = reversed_fails <= fail_in_lemma_2
        corrected_if = f"with the sign of {row['reversed_of']} it fails only where lemma 2 does"
    name = row["lemma"]
    return statement(
        f"{name[0].upper()}{name[1:]}: {row['words']}.",
        ours,
        _EXACT,
        holds=not broken,
        corrected=corrected,
        corrected_if=corrected_if,
        name=name,
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw where lemma 2 fails at the last m."""
    rows = [row for row in outcome.tables["last"].records if row["records"] is not None]
    figure, (axes,) = drawing.panels(
        1, 1, r"$M = \lfloor n / k \rfloor$, $k$ not dividing $n$", r"$e^\varepsilon - 1$"
    )
    at = [row["largest_minimum"] for row in rows]
    line = [1 + max(at, default=1) * i / 50 for i in range(51)]
    label = r"$e^\varepsilon = 1 + 1/M$"
    axes.plot(line, [1 / m for m in line], label=label, **drawing.beside("limit"))
    for holds, label, looks in (
        (True, "lemma 2 holds at $m = M$", drawing.points("optimum", markersize=6.0)),
        (False, "fails for some $n$", drawing.points("paper", markersize=3.0)),
    ):
        points = {(r["largest_minimum"], r["growth"]) for r in rows if r["holds"] == holds}
        looks |= {"markerfacecolor": "none"} if holds else {}
        axes.plot([m for m, _ in points], [s for _, s in points], label=label, **looks)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08)
    drawing.finish(figure, [axes])
    return figure
