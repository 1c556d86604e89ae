"""Statements of the paper on smoothed differential privacy."""

from __future__ import annotations

from functools import partial

from experiments.refuted.record import Refutation

# The utility of the adversary for row i of the distributions, above the threshold e / (e + 1).
_UTILITY = (
    "t = e/(e + 1)",
    "column(y) = [pmfs[i][y] for i in range(len(pmfs))]",
    "excess(y) = max(0, max(column(y))/sum(column(y)) - t)/(1 - t)",
    "utility(i) = sum(pmfs[i][y]*excess(y) for y in range(len(pmfs[0])))",
    "u = max([utility(i) for i in range(len(pmfs))])",
    "d(i, j) = sum(max(0, pmfs[i][y] - e*pmfs[j][y]) for y in range(len(pmfs[0])))",
)

_refutation = partial(Refutation, "Smoothed Differential Privacy")

REFUTATIONS = (
    _refutation(
        name="smoothed-remark-8",
        experiment="smoothed-claims",
        judges="delta <= exp(-g f n / 6) + m exp(-f n / 8) for epsilon > ln(1/(1 - eta)) "
        "(Remark 8).",
        source="smoothed differential privacy, remark 8",
        statement="delta <= exp(-g f n / 6) + m exp(-f n / 8) for epsilon > ln(1 / (1 - T / n)); "
        "here n = 127 fair coins, T = 1.",
        formulas=(
            "n = 127",
            "e = 66/65",
            "eta = 1/n",
            "f = 1/2",
            "g = ((1 - 1/e)/eta - 1)**2",
            "bound = exp(-g*f*n/6) + 2*exp(-f*n/8)",
            # One record of a database with h ones is shown.
            "gap(h, j) = max(0, h/n - e*j/n) + max(0, (n - h)/n - e*(n - j)/n)",
            "near(h, j) = 0 if j < 0 else 0 if j > n else max(gap(h, j), gap(j, h))",
            "delta(h) = max(near(h, h - 1), near(h, h + 1))",
            "smoothed = sum(comb(n, h)*delta(h) for h in range(n + 1))/2**n",
        ),
        given=("e > 1/(1 - eta)",),
        claim="smoothed <= bound",
    ),
    _refutation(
        name="smoothed-theorem-5",
        experiment="smoothed-claims",
        judges="With replacement no delta <= T/(n + 1) is enough for DP (Theorem 5).",
        source="smoothed differential privacy, theorem 5",
        statement="For no epsilon the count of T records drawn with replacement is "
        "(epsilon, delta)-DP with delta <= T / (n + 1); here it is, with n = 200, T = 3, "
        "epsilon = 0 and the largest delta of all databases.",
        formulas=(
            "n = 200",
            "T = 3",
            "pmf(h, y) = comb(T, y)*(h/n)**y*(1 - h/n)**(T - y)",
            "d(h, j) = sum(max(0, pmf(h, y) - pmf(j, y)) for y in range(T + 1))",
            "delta = max([max(d(h, h + 1), d(h + 1, h)) for h in range(n)])",
        ),
        claim="delta > T/(n + 1)",
    ),
    _refutation(
        name="smoothed-lemma-2",
        experiment="smoothed-claims",
        judges="u < d(x, x') + d(x', x) for every pair (Lemma 2), prior over all m categories.",
        source="smoothed differential privacy, lemma 2",
        statement="u < d(x, x') + d(x', x) for every pair; here one of n = 3 records is shown, two "
        "of them are known to be of categories 0 and 1, and x, x' hold 0 and 1 besides.",
        formulas=(
            "e = 2",
            "pmfs = [[2/3, 1/3, 0], [1/3, 2/3, 0], [1/3, 1/3, 1/3]]",
            *_UTILITY,
        ),
        claim="u < d(0, 1) + d(1, 0)",
    ),
    _refutation(
        name="smoothed-corollary-3",
        experiment="smoothed-claims",
        judges="u <= 2 delta(x) (Corollary 3), prior over all m categories.",
        source="smoothed differential privacy, corollary 3",
        statement="u <= 2 delta(x); here a mechanism on one record of fifteen categories, whose "
        "pmfs are rows over fifteen outputs, x being the first.",
        formulas=(
            "e = 9/5",
            "k = 13",
            "unit = 1/100",
            "first = [unit/12 if y > 0 else 0 for y in range(k + 1)]",
            "second = [e/12*unit if y > 0 else unit for y in range(k + 1)]",
            "other(j) = [(1 + e/12)*unit if y == j else 0 for y in range(k + 1)]",
            "begun = [first if i == 0 else second if i == 1 else other(i - 1) for i in range(k+2)]",
            "part(i, y) = begun[i][y] if y <= k else 1 - sum(begun[i])",
            "pmfs = [[part(i, y) for y in range(k + 2)] for i in range(k + 2)]",
            *_UTILITY,
            "delta = max([max(d(0, i), d(i, 0)) for i in range(len(pmfs))])",
        ),
        claim="u <= 2*delta",
    ),
    _refutation(
        name="smoothed-table-1-noise",
        experiment="smoothed-tables-1-2-3",
        judges="With noise the sampling-histogram is (eta epsilon, 0)-DP at a constant sampling "
        "rate eta, e.g. 99.8 % (Table 1).",
        source="smoothed differential privacy, table 1 and algorithm 4",
        statement="With noise the sampling-histogram is (eta epsilon, 0)-DP; here n = 8, T = 1, "
        "epsilon = 4 ln 3, all records of x are a, one of x' is b, and (0, 1) is told.",
        formulas=(
            "n = 8",
            "r = 1/3",
            "eta = 1/n",
            # Pr[y | h] = r^|y - h| / Z(h) in each coordinate.
            "Z(h) = (1 + r - r**(h + 1))/(1 - r)",
            "noise(y, h) = r**max(y - h, h - y)/Z(h)",
            "told_of_a = noise(0, 1)*noise(1, 0)",
            "told_of_b = noise(0, 0)*noise(1, 1)",
            "here = told_of_a",
            "there = (1 - eta)*told_of_a + eta*told_of_b",
        ),
        # e^(2 eta epsilon) = (1 / r)^(8 eta) = 3.
        given=("8*eta == 1",),
        claim="there**2 <= (1/r)*here**2",
    ),
)
