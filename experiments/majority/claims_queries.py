"""Composing queries to voters trained once: what one query put several times spends.

The paper (section 6.2) composes Q labels, each (m epsilon, delta)-DP, by theorem 2.3. That holds if
the labels are independent given the data. Voters trained once answer one query the same way each
time: given L ones, Q labels are all 1 with probability Pr[1 | L]^Q, which is not what the noise was
certified for. With n voters at b, the others
at 0, and their neighbours at c and 0, the ratio of E Pr[1 | L]^Q is a rational number in
r = e^epsilon; it is computed for a rational r <= e^epsilon, at which the voters are still private.

What holds, for any number of queries, is the composition of the voters: all labels are computed
from K votes for each query, and K trained voters are (K epsilon, K Delta)-DP together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, floor, log

import numpy as np

from dpopt import majority
from dpopt.privacy import exp_lower, exp_upper
from dpopt.prob import poisson_binomial_pmf
from experiments.majority.claims_record import AT_MOST, Claim, Part, proof_of
from experiments.registry import Advance, Cell, Table

QUERIES = "composition of queries"
_DIGITS = 1000


@dataclass(frozen=True)
class Repeated:
    """One query put several times to K voters trained once; Delta = 0, the paper's objective."""

    mechanisms: int
    allowance: float
    epsilon: float
    queries: int


def repeated_queries(cases: Sequence[Repeated], advance: Advance) -> Part:
    """Bound from below what the labels of one query, put Q times, spend for each case.

    Args:
        cases: the last query count of each is recorded as a claim, all up to it in the table.
        advance: called once for each case.
    """
    claims: list[Claim] = []
    records: list[dict[str, Cell]] = []
    for case in cases:
        design = majority.design(
            case.mechanisms, case.epsilon, case.allowance, objective="surrogate"
        )
        chances = chances_of_one(design)
        for count in range(1, case.queries + 1):
            voters, spent = worst_voters(design.setting, chances, count)
            records.append(
                {
                    "K": case.mechanisms,
                    "m": case.allowance,
                    "epsilon": case.epsilon,
                    "queries": count,
                    "voters_at_bc": voters,
                    "spent_at_least": spent,
                    "composed": count * design.guarantee.epsilon,
                    "voters_composed": case.mechanisms * case.epsilon,
                }
            )
        claims.append(_claim(case, design, chances))
        advance()
    caption = (
        "What Q labels of one query to voters trained once spend at least, beside Q m epsilon and "
        "K epsilon; the paper's objective. K, m and epsilon are ours."
    )
    return Part(tuple(claims), {"repeated-queries": Table.of(caption, records)})


def chances_of_one(design: majority.MajorityDesign) -> list[Fraction]:
    """Return Pr[label 1 | L = l], l = 0..K, as `release` draws it: integers over 2^63."""
    upper = [Fraction((1 << 62) + weight, 1 << 63) for weight in design.weights]
    return [1 - chance for chance in reversed(upper)] + upper


def worst_voters(
    setting: majority.MajoritySetting, chances: Sequence[Fraction], queries: int
) -> tuple[int, float]:
    """Return how many voters at bc, the others at 0, raise the loss most, and log of the ratio."""
    k, (b, c) = setting.mechanisms, setting.corner("bc")
    events = np.array([float(chance) for chance in chances]) ** queries
    at = np.tri(k, k) > 0
    ratios = (poisson_binomial_pmf(at * b) @ events) / (poisson_binomial_pmf(at * c) @ events)
    worst = int(np.argmax(ratios))
    return worst + 1, float(np.log(ratios[worst]))


def exact_ratio(chances: Sequence[Fraction], queries: int, voters: int, r: Fraction) -> Fraction:
    """Return the ratio of E Pr[1 | L]^Q, L ~ Bin(voters, r/(r+1)) against Bin(voters, 1/(r+1))."""
    up, down = exact_chances(chances, queries, voters, r)
    return up / down


def exact_chances(
    chances: Sequence[Fraction], queries: int, voters: int, r: Fraction
) -> tuple[Fraction, Fraction]:
    """Return E Pr[1 | L]^Q for L ~ Bin(voters, r/(r+1)) and for L ~ Bin(voters, 1/(r+1))."""
    events = [chance**queries for chance in chances[: voters + 1]]
    terms = [comb(voters, ones) * event for ones, event in enumerate(events)]
    up = sum((term * r**ones for ones, term in enumerate(terms)), Fraction(0))
    down = sum((term * r ** (voters - ones) for ones, term in enumerate(terms)), Fraction(0))
    whole = (r + 1) ** voters
    return up / whole, down / whole


def _claim(case: Repeated, design: majority.MajorityDesign, chances: Sequence[Fraction]) -> Claim:
    setting, q = design.setting, case.queries
    voters, spent = worst_voters(setting, chances, q)
    here, there = exact_chances(chances, q, voters, exp_lower(setting.epsilon))
    ratio = here / there
    # A decimal below the loss, which exact arithmetic confirms.
    floored = Fraction(floor(spent * _DIGITS), _DIGITS)
    confirmed = exp_upper(floored) <= ratio
    composed = q * setting.guarantee.epsilon
    excess = float(here - exp_upper(composed) * there)
    above = (
        f"; the chance of it is {excess:.2g} above what ({composed:g}, 0)-DP allows, where the "
        "paper's delta' is 0.0001"
    )
    return Claim(
        claim=QUERIES,
        place="section 6.2, theorem 2.3",
        instance=f"K = {case.mechanisms}, m = {case.allowance:g}, epsilon = {case.epsilon:g}, "
        f"Delta = 0, the paper's objective, one query {q} times to voters trained once",
        says=f"{q} labels spend {composed:g}",
        found=f"{voters} voters at bc, the others at 0: all labels are 1 with a ratio of at least "
        f"e^{float(floored):g}{above if excess > 0.0 else ''}. The {case.mechanisms} voters "
        f"together spend {case.mechanisms * case.epsilon:g}, whatever is asked of them.",
        quantity="epsilon spent",
        value_claimed=composed,
        value_found=float(floored),
        relation=AT_MOST,
        certificate="exact: one ratio in fractions from the certified integers, voters rounded "
        "inward",
        constraints=proof_of(design).constraints,
        slack=float(log(ratio)) - composed,
        proved=confirmed,
    )
