"""Subsampling and double subsampling: what they spend, for voters that need not be equal.

Theorem. Let Delta = 0. The majority of n = 2 m - 1 voters is m epsilon-DP, whatever the p_i, and
so is the majority of 2 m - 1 of K voters drawn at random.

Proof. p'_i >= e^-epsilon p_i, so L' stochastically dominates the number of ones left when each
one among the n votes is kept with probability e^-epsilon. Given L >= m, some m ones are all kept
with probability e^(-m epsilon); hence Pr[L' >= m] >= e^(-m epsilon) Pr[L >= m]. Output 0 needs at
least m zeros: the same. A draw that does not look at the votes averages both sides.

With Delta > 0, p'_i >= e^-epsilon max(p_i - Delta, 0), and n votes with p_i lowered by at most
Delta differ from the n votes with probability at most 1 - (1 - Delta)^n: the majority is
(m epsilon, 1 - (1 - Delta)^n)-DP.

This is the paper's theorem 4.1 without equal p_i, and with ceil(M / 2) epsilon for M sampled
voters where the paper's baseline counts M epsilon (for even M, a tied sample is a coin: the law of
the majority of M - 1). Nothing less is spent: with ceil(M / 2) voters at (b, c) and the others at
0, output 1 has ratio e^(ceil(M / 2) epsilon) exactly.

Then composing queries to voters trained once: what one query put several times spends.

The paper (section 6.2) composes Q labels, each (m epsilon, delta)-DP, by theorem 2.3. That holds if
the labels are independent given the data. Voters trained once answer one query the same way each
time: given L ones, Q labels are all 1 with probability Pr[1 | L]^Q, which is not what the noise was
certified for. With n voters at b, the others
at 0, and their neighbours at c and 0, the ratio of E Pr[1 | L]^Q is a rational number in
r = e^epsilon; it is computed for a rational r <= e^epsilon, at which the voters are still private.

What holds, for any number of queries, is the composition of the voters: all labels are computed
import dpopt
from K votes for each query, and K trained voters are (K epsilon, K Delta)-DP together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, floor, log

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import majority
from dpopt.privacy import exp_lower, exp_upper
from dpopt.prob import poisson_binomial_pmf
from experiments.majority.claims_record import (
    AT_MOST,
    Claim,
    Part,
    Proof,
    chance_of_one,
    corner_voters,
    majority_of_sample,
    proof_of,
    prove_for_every_epsilon,
    proved_by,
)
from experiments.majority.full_set import check_full
from experiments.registry import Cell, Table, advance

DOUBLE, SPENT, HALVED = "theorem 4.1", "subsampling", "subsampling, halved"
_COUNTED = ("undecided", "constraints")
# In units of epsilon; losses have nine digits.
_NEAR = 1e-8
_ROOM = 1.0 + 1e-12

QUERIES = "composition of queries"
_DIGITS = 1000


def double_subsampling(
    mechanisms: Sequence[int],
    certified: Sequence[int],
    epsilons: Sequence[float],
    approximate: Sequence[tuple[int, int, float]],
) -> Part:
    """Check that double subsampling is m epsilon-DP for unequal voters, for every epsilon.

    Args:
        mechanisms: each K, for which every m is decided by polynomials.
        certified: each K for which the library's prover is asked besides.
        epsilons: for the latter.
        approximate: (K, m, Delta) at which Delta > 0 is certified, for each epsilon.
        advance: called once for each K of either.
    """
    claims = []
    for k in mechanisms:
        middle = (k + 1) // 2
        proofs = [_double_proof(k, m) for m in range(1, middle + 1)]
        undecided, rows = (sum(getattr(p, name) for p in proofs) for name in _COUNTED)
        claims.append(
            _doubled(
                f"K = {k}, all integer m, every epsilon",
                f"of {rows:,} rows for all voters, m = 1..{middle}, {undecided} have a negative "
                f"coefficient; gamma = 1 from m = {middle} on.",
                "proved by thinning; checked exactly: slacks in powers of e^epsilon - 1",
                undecided,
                rows,
            )
        )
        advance()
    for k in certified:
        settings = [
            majority.MajoritySetting(k, epsilon, min(m * _ROOM, k))
            for epsilon in epsilons
            for m in range(1, (k + 1) // 2 + 1)
        ]
        gammas = [majority.double_subsampling(k, round(s.allowance)) for s in settings]
        claims.append(
            _certified(
                f"K = {k}, all integer m, epsilon in {_listed(epsilons)}",
                "at m (1 + 1e-12), gamma rounded to 2^-62.",
                settings,
                gammas,
            )
        )
        advance()
    claims += [_double_with_delta(*case, epsilons) for case in approximate]
    return Part(tuple(claims))


def _double_with_delta(k: int, m: int, shift: float, epsilons: Sequence[float]) -> Claim:
    delta = -float(np.expm1((2 * m - 1) * np.log1p(-shift)))
    gamma = majority.double_subsampling(k, m)
    settings = [
        majority.MajoritySetting(k, epsilon, min(m * _ROOM, k), shift, delta)
        for epsilon in epsilons
    ]
    return _certified(
        f"K = {k}, m = {m}, Delta = {shift:g}, epsilon in {_listed(epsilons)}",
        f"as (m epsilon, 1 - (1 - Delta)^{2 * m - 1})-DP, where the paper has Delta = 0 only.",
        settings,
        [gamma] * len(settings),
    )


def _certified(
    instance: str,
    how: str,
    settings: Sequence[majority.MajoritySetting],
    gammas: Sequence[npt.NDArray[np.float64]],
) -> Claim:
    """Ask the library's prover for each setting; what it does not certify counts as undecided."""
    designs = [majority.assess(s, gamma) for s, gamma in zip(settings, gammas, strict=True)]
    proofs = [design.certificate for design in designs if design.certificate is not None]
    undecided = len(designs) - len(proofs)
    rows = sum(proof.constraints for proof in proofs)
    return _doubled(
        instance,
        f"{len(proofs)} of {len(designs)} cases certified, {how}",
        f"proved; {rows:,} rows in integers, rounded outward",
        undecided,
        rows,
        min((float(proof.slack) for proof in proofs), default=None),
    )


def _listed(epsilons: Sequence[float]) -> str:
    return ", ".join(f"{epsilon:g}" for epsilon in epsilons)


def _double_proof(k: int, m: int) -> Proof:
    chances = majority_of_sample(k, min(2 * m - 1, k))
    return prove_for_every_epsilon([2 * chance - 1 for chance in chances[(k + 1) // 2 :]], m)


def _doubled(
    instance: str,
    found: str,
    certificate: str,
    undecided: int,
    constraints: int,
    slack: float | None = None,
) -> Claim:
    return Claim(
        claim=DOUBLE,
        place="theorem 4.1, which asks for voters with the same p and p'",
        instance=instance,
        says="double subsampling is m epsilon-DP for all voters",
        found=found,
        quantity="rows or cases that are broken or undecided",
        value_claimed=0.0,
        value_found=float(undecided),
        relation=AT_MOST,
        certificate=certificate,
        constraints=constraints,
        slack=slack,
        own=True,
        proved=undecided == 0,
    )


@dataclass(frozen=True)
class Sampled:
    """Subsampling of ``size`` of K voters that are (epsilon, mechanism_delta)-DP."""

    mechanisms: int
    size: int
    epsilon: float
    mechanism_delta: float = 0.0

    @property
    def setting(self) -> majority.MajoritySetting:
        """The paper's target: (M epsilon, 1 - (1 - Delta)^M)."""
        delta = -float(np.expm1(self.size * np.log1p(-self.mechanism_delta)))
        return majority.MajoritySetting(
            self.mechanisms, self.epsilon, self.size, self.mechanism_delta, delta
        )


def spent(cases: Sequence[Sampled], curve: Sequence[int], epsilon: float) -> Part:
    """Measure what subsampling M of K voters spends, and certify it.

    Args:
        cases: recorded, each with a certificate at what it spends.
        curve: each K whose loss is tabled for every M, Delta = 0.
        epsilon: of each voter, for the curves.
        advance: called once for each case and each K of the curve.
    """
    claims = []
    for case in cases:
        claims.append(_spent(case))
        advance()
    records: list[dict[str, Cell]] = []
    for k in curve:
        losses = [_loss(Sampled(k, size, epsilon)) / epsilon for size in range(1, k + 1)]
        records += [
            {"K": k, "M": size, "epsilons_spent": loss} for size, loss in enumerate(losses, 1)
        ]
        claims.append(_halved(k, losses, epsilon))
        advance()
    caption = "What the majority of M of K voters spends, in units of epsilon, Delta = 0."
    return Part(tuple(claims), {"subsampling": Table.of(caption, records)})


def _loss(case: Sampled) -> float:
    """Return the smallest epsilon over the paper's set, in double precision."""
    k, size = case.mechanisms, case.size
    chances = np.array([float(chance) for chance in majority_of_sample(k, size)])
    gamma = majority.subsampling(k, size)
    return check_full(case.setting, gamma, chances).epsilon


def _spent(case: Sampled) -> Claim:
    k, size, setting = case.mechanisms, case.size, case.setting
    loss = _loss(case)
    tight = majority.MajoritySetting(
        k, case.epsilon, loss / case.epsilon * (1 + 1e-9), case.mechanism_delta, setting.delta
    )
    proof = majority.assess(tight, majority.subsampling(k, size)).certificate
    attained = ""
    if case.mechanism_delta == 0.0 and _attained(k, size):
        attained = f" ceil({size}/2) epsilon is attained exactly."
    return Claim(
        claim=SPENT,
        place="section 3.1, lemma 3.1",
        instance=f"{size} of K = {k}, epsilon = {case.epsilon:g}, "
        f"Delta = {case.mechanism_delta:g}, delta = {setting.delta:.3g}",
        says="the majority of m sampled voters spends m epsilon",
        found=f"it spends {loss:.4g} instead of {setting.guarantee.epsilon:.4g}.{attained}",
        quantity="epsilon spent",
        value_claimed=setting.guarantee.epsilon,
        value_found=loss,
        relation=AT_MOST,
        certificate=f"{proved_by(proof)}, at {loss:.4g} (1 + 1e-9)" if proof else "not proved",
        constraints=proof.constraints if proof else None,
        slack=float(proof.slack) if proof else None,
        sharpens=True,
        proved=proof is not None,
    )


def _halved(k: int, losses: Sequence[float], epsilon: float) -> Claim:
    """Return how far the losses, in units of epsilon, are from ceil(M / 2)."""
    apart = max(abs(loss - ceil(size / 2)) for size, loss in enumerate(losses, 1))
    return Claim(
        claim=HALVED,
        place="not in the paper",
        instance=f"K = {k}, M = 1..{k}, epsilon = {epsilon:g}, Delta = 0",
        says="the majority of M sampled voters spends ceil(M / 2) epsilon",
        found=f"what they spend differs from it by at most {apart:.1e} epsilon.",
        quantity="largest difference in units of epsilon",
        value_claimed=_NEAR,
        value_found=apart,
        relation=AT_MOST,
        certificate="every multiset of corners, double precision; the theorem is proved",
        own=True,
    )


def _attained(k: int, size: int, r: Fraction = Fraction(11, 10)) -> bool:
    """Whether ceil(M / 2) voters at bc, the others at 00, have ratio r^ceil(M / 2) exactly."""
    half = ceil(size / 2)
    voters = corner_voters({"bc": half, "00": k - half}, r, Fraction(0))
    # DaRRM's gamma of subsampling may be 0 or 1 in the middle: Pr[1 | l] = 1/2 + h / 2.
    gamma = [abs(2 * chance - 1) for chance in majority_of_sample(k, size)]
    here, there = (chance_of_one(gamma, [pair[side] for pair in voters]) for side in (0, 1))
    return here == r**half * there


@dataclass(frozen=True)
class Repeated:
    """One query put several times to K voters trained once; Delta = 0, the paper's objective."""

    mechanisms: int
    allowance: float
    epsilon: float
    queries: int


def repeated_queries(cases: Sequence[Repeated]) -> Part:
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


def chances_of_one(design: dpopt.Design) -> list[Fraction]:
    """Return Pr[label 1 | L = l], l = 0..K, as `release` draws it."""
    upper = [Fraction(weight, design.table.total) for weight in design.table.weights[::2]]
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


def _claim(case: Repeated, design: dpopt.Design, chances: Sequence[Fraction]) -> Claim:
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
