"""Statements of the DaRRM paper, and one of ours on its corners."""

from __future__ import annotations

from functools import partial
from typing import Any

import dpopt
from dpopt import majority
from experiments.majority.voters import harmonic
from experiments.refuted.record import Refutation

# Pr[l ones] for voters that say 1 with p[0], ..., p[K - 1], the first i of them.
_PMF = (
    "pmf(p, i, l) = (1 if l == 0 else 0) if i == 0 else "
    "p[i - 1]*pmf(p, i - 1, l - 1) + (1 - p[i - 1])*pmf(p, i - 1, l)"
)
# What a label of DaRRM is 1 with, given l ones, and so the chance of 1.
_LABEL = (
    "chance(l) = (1 + gamma(l))/2 if 2*l > K else (1 - gamma(l))/2",
    "one(p) = sum(pmf(p, K, l)*chance(l) for l in range(K + 1))",
)
_TABLE = "gamma(l) = 2*weights[l - (K + 1)//2][0]/total - 1 if 2*l > K else gamma(K - l)"


def _harmonic(voters: int) -> Any:  # noqa: ANN401
    """Return the design of gamma(l) = 1 / |2 l - K|, at m = 1."""
    setting = dpopt.Majority(voters, 0.1, 1)
    return majority.assess(setting, harmonic(voters), repair=True)


_ON_AVERAGE = (
    "K = 3",
    "N = 5",
    _TABLE,
    # The label errs by half of |X|, and X is affine in each p_i.
    "X(p, a, b) = (1 - b)*(p[0]*p[1]*p[2] - (1-p[0])*(1-p[1])*(1-p[2])) + (1 - a)*("
    "p[0]*p[1]*(1-p[2]) + p[0]*(1-p[1])*p[2] + (1-p[0])*p[1]*p[2] - "
    "p[0]*(1-p[1])*(1-p[2]) - (1-p[0])*p[1]*(1-p[2]) - (1-p[0])*(1-p[1])*p[2])",
    "size(x) = max(x, -x)",
    # A cube of side 1 / N has |X in its middle| = |mean of X| <= mean of |X|.
    "middle(i, j, k) = size(X([(2*i+1)/(2*N), (2*j+1)/(2*N), (2*k+1)/(2*N)], 1/3, 1))",
    "subsampling_at_least = sum(sum(sum(middle(i, j, k) for k in range(N)) for j in range(N)) "
    "for i in range(N))/(2*N**3)",
    # |X| is convex in each p_i: its mean is at most that of the ends, and so of the corners.
    "corner(i, j, k) = part(i)*part(j)*part(k)*size(X([i/N, j/N, k/N], gamma(2), gamma(3)))",
    "part(i) = 1/2 if i == 0 else 1/2 if i == N else 1",
    "other_at_most = sum(sum(sum(corner(i, j, k) for k in range(N + 1)) for j in range(N + 1)) "
    "for i in range(N + 1))/(2*N**3)",
)

_refutation = partial(Refutation, "DaRRM")

REFUTATIONS = (
    _refutation(
        name="darrm-lemma-3-2",
        experiment="majority-claims",
        judges="lemma 3.2",
        source="DaRRM paper, lemma 3.2",
        statement="No private majority at m = 1 has an error below |Pr[g = 1] - mean p|.",
        formulas=(
            "K = 3",
            "p = [1, 1, 0]",
            _TABLE,
            _PMF,
            *_LABEL,
            "majority = sum(pmf(p, K, l) for l in range((K + 1)//2, K + 1))",
            "error = max(majority - one(p), one(p) - majority)",
            "mean = sum(p)/K",
            "bound = max(majority - mean, mean - majority)",
        ),
        claim="error >= bound",
        design=partial(_harmonic, 3),
    ),
    _refutation(
        name="darrm-subsampling-at-one",
        experiment="majority-claims",
        judges="lemma 3.2",
        source="DaRRM paper, section 3.1",
        statement="At m = 1 subsampling has the least error; here p_1, p_2, p_3 are independent "
        "and uniform on [0, 1], and the error is its mean.",
        formulas=_ON_AVERAGE,
        claim="subsampling_at_least <= other_at_most",
        design=partial(_harmonic, 3),
    ),
    _refutation(
        name="darrm-best-of-all",
        experiment="majority-claims",
        judges="equation 3",
        source="DaRRM paper, section 1.1 and equation 3",
        statement="With a small m and epsilon the optimised gamma has the best utility of all. "
        "This file takes from `dpopt` that at K = 3, m = 1, epsilon = 0.1 it is (1/3, 1), "
        "subsampling's; the utility is the error for independent p_i, uniform on [0, 1].",
        formulas=_ON_AVERAGE,
        claim="subsampling_at_least <= other_at_most",
        design=partial(_harmonic, 3),
    ),
    _refutation(
        name="darrm-three-corners",
        experiment="majority-claims",
        source="no paper; lemma 5.1 of the DaRRM paper has a fourth corner",
        statement="Voters at the corners 00, 11 and bc decide the privacy of a gamma.",
        formulas=(
            "K = 5",
            "e = 9/4",
            "target = 2",
            "gamma(l) = [1/6, 15/16, 0][l - 3] if 2*l > K else gamma(K - l)",
            "b = e/(e + 1)",
            "c = 1/(e + 1)",
            _PMF,
            *_LABEL,
            "voters(zeros, ones, others, p) = [0 if i < zeros else 1 if i < zeros + ones else p "
            "for i in range(zeros + ones + others)]",
            "kept(i, j) = one(voters(i, j, K - i - j, b)) <= target*one(voters(i, j, K-i-j, c))",
            "broken_at_three = sum(sum(0 if kept(i, j) else 1 for j in range(K + 1 - i)) "
            "for i in range(K + 1))",
        ),
        given=("broken_at_three == 0",),
        claim="one(voters(4, 0, 1, c)) <= target*one(voters(4, 0, 1, b))",
    ),
    _refutation(
        name="darrm-lemma-a-1",
        experiment="majority-claims",
        judges="lemma A.1, any tau",
        source="DaRRM paper, lemma A.1, with tau and lambda by general composition (theorem 2.3)",
        statement="With a constant gamma up to (4), DaRRM of (epsilon, Delta)-private voters is "
        "(m epsilon, m Delta)-DP for every tau in [1, K]; here gamma = 1, for which DaRRM is the "
        "majority itself.",
        formulas=(
            "K = 35",
            "m = 16",
            "epsilon = 1/10",
            "Delta = 1/10**9",
            "delta = m*Delta",
            "e = exp(epsilon)",
            "target = exp(m*epsilon)",
            "tau = 14034/1000",
            # What general composition is given, and the lambda that it returns.
            "part = 1/10",
            "loss = 1 - (1 - Delta)**K*(1 - part)",
            "general = K*(e - 1)/(e + 1)",
            "root = 59161/10000",
            "printed = (target - 1 + 2*delta)/(2*(exp(tau*epsilon) - target + (1 + target)*loss)"
            "/(exp(tau*epsilon) + 1) + target - 1)",
            "gamma = 1",
            "q = 11051709/10**7",
            "b = (q + Delta)/(q + 1)",
            "c = (1 - Delta)/(q + 1)",
            "one(p) = sum(comb(20, l)*p**l*(1 - p)**(20 - l) for l in range(18, 21))",
        ),
        given=(
            "tau >= general",
            # tau >= general + sqrt(2 K ln(exp(1) + sqrt(K) epsilon / part)).
            "root**2 >= K",
            "exp((tau - general)**2/(2*K)) >= exp(1) + root*epsilon/part",
            "gamma <= printed",
            "b <= e*c + Delta",
            "1 - c <= e*(1 - b) + Delta",
        ),
        claim="one(b) <= target*one(c) + delta",
    ),
    _refutation(
        name="darrm-composition-of-queries",
        experiment="majority-claims",
        judges="composition of queries",
        source="DaRRM paper, section 6.2, theorem 2.3",
        statement="Twelve labels of a gamma at m = 1, K = 41, epsilon = 0.5, spend 12 times "
        "epsilon together, though the voters are trained once; here one query is put twelve "
        "times, and all labels are 1.",
        formulas=(
            "K = 41",
            "queries = 12",
            "epsilon = 1/2",
            _TABLE,
            _LABEL[0],
            # 35 voters say 1 with b, or with c from the neighbour, the others 0.
            "q = 16487212707/10**10",
            "b = q/(q + 1)",
            "c = 1/(q + 1)",
            "all_ones(p) = sum(comb(35, l)*p**l*(1 - p)**(35 - l)*chance(l)**queries "
            "for l in range(36))",
        ),
        given=("b <= exp(epsilon)*c", "all_ones(b) >= exp(6048/1000)*all_ones(c)"),
        claim="all_ones(b) <= exp(queries*epsilon)*all_ones(c)",
        design=partial(dpopt.design, dpopt.Majority(41, 0.5, 1, objective="surrogate")),
    ),
    _refutation(
        name="darrm-algorithm-5",
        experiment="majority-objective",
        judges="algorithm 5, scale",
        source="DaRRM paper, algorithm 5 of appendix C.2",
        statement="The weights of algorithm 5 add up to one, as those of a mean; read as one for "
        "each multiset of K of its tau points, they are above 6/5 for K = 5 and 50 points.",
        formulas=(
            "K = 5",
            "tau = 50",
            "factorial(i) = 1 if i == 0 else i*factorial(i - 1)",
            "weight = (1/(2*tau))**K*factorial(K)",
            "points = comb(tau + K - 1, K)",
            "whole = points*weight*2**K",
        ),
        claim="whole <= 6/5",
    ),
)
