"""Lemma 3.2, equation 3 and lemma A.1: noise functions better than the paper states or reaches.

Errors below the bound and below those of the surrogate objective; then the constant gamma that
lemma A.1 allows, and the largest that is private.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

import dpopt
from dpopt import majority, solve
from dpopt.privacy import Guarantee, general_composition
from dpopt.prob import poisson_binomial_pmf
from experiments.majority.claims_record import (
    AT_LEAST,
    AT_MOST,
    Claim,
    Part,
    Proof,
    chance_of_one,
    proof_of,
    prove_for_every_epsilon,
    proved_by,
    require,
    short,
    surely_broken_by,
)
from experiments.majority.full_set import check_full
from experiments.majority.voters import PAPER_PRIOR
from experiments.registry import Cell, Table, advance

LEMMA, SURROGATE = "lemma 3.2", "surrogate objective"
_LOWER_BOUND = (
    "for epsilon and delta below 1/2, no (epsilon, delta)-DP majority has an error below "
    "|Pr[g = 1] - mean p|"
)
_EVERY = "exact: slacks in powers of e^epsilon - 1 have no negative coefficient, so every epsilon"

CONSTANT = "lemma A.1"
# The delta' of general composition.
_SLACK = 0.1

_SLACKS = tuple(float(x) for x in 10.0 ** -np.arange(0.5, 8.0, 0.25))


def harmonic(mechanisms: int) -> list[Fraction]:
    """Return gamma(l) = 1 / |2 l - K| on 0..K: epsilon-DP at m = 1 wherever it was checked."""
    return [Fraction(1, abs(2 * ones - mechanisms)) for ones in range(mechanisms + 1)]


def lower_bound(mechanisms: Sequence[int], epsilon: float, draws: int, seed: int) -> Part:
    """Try lemma 3.2 on gamma(l) = 1 / |2 l - K|, and on the program at m = 1.

    Args:
        mechanisms: each K, odd.
        epsilon: of each voter, for the program.
        draws: p's drawn from U[0, 1]^K for the sampled errors.
        seed: of the draws.
        advance: called once for each K.
    """
    claims, points, errors = _quarters(), [], []
    for k in mechanisms:
        claims.append(_unanimous(k))
        found, record = _at_one(k, epsilon, draws, seed)
        claims += found
        errors.append(record)
        points += _points(k, seed)
        advance()
    tables = {
        "errors-at-m-1": Table.of("Expected error at m = 1 under p ~ U[0, 1]^K.", errors),
        "lemma-3.2": Table.of("Error of gamma = 1/|2l - K| against lemma 3.2's bound.", points),
    }
    return Part(tuple(claims), tables)


def _unanimous(k: int) -> Claim:
    """The bare majority of ones, all certain: error 0 where the bound is (K - 1) / (2 K)."""
    gamma = harmonic(k)
    middle = (k + 1) // 2
    proof = prove_for_every_epsilon(gamma[middle:], 1, full=k <= 5)
    p = [Fraction(1)] * middle + [Fraction(0)] * (k - middle)
    return _pointwise(gamma, p, proof, f"p = 1 for {middle} voters, 0 for the others")


def _quarters() -> list[Claim]:
    gamma = harmonic(3)
    proof = prove_for_every_epsilon(gamma[2:], 1, full=True)
    p = [Fraction(3, 4), Fraction(3, 4), Fraction(1, 4)]
    return [_pointwise(gamma, p, proof, "p = (3/4, 3/4, 1/4)")]


def _pointwise(gamma: list[Fraction], p: list[Fraction], proof: Proof, where: str) -> Claim:
    truth = chance_of_one([Fraction(1)] * len(gamma), p)
    bound = abs(truth - sum(p, Fraction(0)) / len(p))
    error = abs(truth - chance_of_one(gamma, p))
    return Claim(
        claim=LEMMA,
        place="lemma 3.2",
        instance=f"K = {len(p)}, m = 1, {where}",
        says=_LOWER_BOUND,
        found=f"gamma(l) = 1/|2l - K| {'is' if proof.undecided == 0 else 'may not be'} epsilon-DP; "
        f"its error is {error}, the bound {bound}.",
        quantity="error",
        value_claimed=float(bound),
        value_found=float(error),
        relation=AT_LEAST,
        certificate=_EVERY if proof.undecided == 0 else f"{proof.undecided} rows are undecided",
        constraints=proof.constraints,
        proved=proof.undecided == 0,
    )


def _at_one(k: int, epsilon: float, draws: int, seed: int) -> tuple[list[Claim], dict[str, Cell]]:
    """The best gammas at m = 1 under U[0, 1]: of all, and of those that rise from the middle."""
    best = majority.design(k, epsilon, 1, prior=PAPER_PRIOR)
    setting = best.setting
    problem = majority.gamma_problem(
        setting, majority.expected_error_weights(k, majority.UniformPrior()).values
    )
    rises = np.diff(np.eye(setting.middle), axis=0)
    problem.add_rows("monotone", {"gamma": rises}, lower=0.0)
    monotone = majority.assess(setting, solve(problem)["gamma"], repair=True)
    sub = majority.assess(setting, majority.subsampling(k, 1), repair=True)
    mean, spread = _sampled_difference(best, sub, draws, seed)
    claims = []
    for kind, design in (("any gamma", best), ("monotone gamma", monotone)):
        proof = proof_of(design)
        upper = design.gamma[setting.middle :]
        found = (
            f"the best has error {short(design.expected_error)}, subsampling "
            f"{short(sub.expected_error)}; "
        )
        if design is best:
            found += f"drawn p: {mean:.4f} less, standard error {spread:.1g}."
        else:
            found += f"it lies between {upper.min():.6f} and {upper.max():.6f}."
        claims.append(
            Claim(
                claim=LEMMA,
                place="section 3.1, section 6.1 (Figure 2, m = 1)",
                instance=f"K = {k}, m = 1, epsilon = {epsilon:g}, p ~ U[0, 1]^K, {kind}",
                says="subsampling has the optimal error at m = 1",
                found=found,
                quantity="expected error",
                value_claimed=sub.expected_error,
                value_found=design.expected_error,
                relation=AT_LEAST,
                certificate=proved_by(proof),
                constraints=proof.constraints,
                slack=float(proof.slack),
            )
        )
    record: dict[str, Cell] = {
        "K": k,
        "epsilon": epsilon,
        "best": best.expected_error,
        "monotone": monotone.expected_error,
        "subsampling": sub.expected_error,
        "sampled_gain": mean,
        "standard_error": spread,
    }
    return claims, record


def _points(k: int, seed: int, count: int = 250) -> list[dict[str, Cell]]:
    """Error and bound at p's drawn from U[0, 1]^K."""
    p = np.random.default_rng(seed + k).random((count, k))
    laws = poisson_binomial_pmf(p)
    ones = np.arange(k + 1)
    truth = laws[:, ones > k / 2].sum(axis=1)
    gamma = np.array([float(value) for value in harmonic(k)])
    output = 0.5 + 0.5 * laws @ (np.sign(2 * ones - k) * gamma)
    bounds, errors = np.abs(truth - p.mean(axis=1)), np.abs(truth - output)
    return [
        {"K": k, "bound": float(b), "error": float(e)} for b, e in zip(bounds, errors, strict=True)
    ]


def objectives(cases: Sequence[tuple[int, int]], epsilon: float, draws: int, seed: int) -> Part:
    """Compare the paper's objective (equation 3) with the expected error that its figures plot.

    Args:
        cases: (K, m), Delta = 0.
        epsilon: of each voter.
        draws: p's drawn from U[0, 1]^K for the sampled errors.
        seed: of the draws.
        advance: called once for each case.
    """
    claims, records = [], []
    for k, m in cases:
        surrogate = majority.design(k, epsilon, m, objective="surrogate", prior=PAPER_PRIOR)
        ours = majority.design(k, epsilon, m, prior=PAPER_PRIOR)
        setting = ours.setting
        double = majority.assess(setting, majority.double_subsampling(k, m), repair=True)
        sub = majority.assess(setting, majority.subsampling(k, m), repair=True)
        mean, spread = _sampled_difference(ours, surrogate, draws, seed)
        proofs = [proof_of(design) for design in (surrogate, ours)]
        claims.append(
            Claim(
                claim=SURROGATE,
                place="equation 3, algorithms 4 and 5; Figures 2, 7, 8",
                instance=f"K = {k}, m = {m}, epsilon = {epsilon:g}, Delta = 0, p ~ U[0, 1]^K",
                says="the program's gamma has the lowest error",
                found=f"error {short(ours.expected_error)} instead of "
                f"{short(surrogate.expected_error)}; drawn p: {mean:.2e} less, standard error "
                f"{spread:.0e}.",
                quantity="expected error",
                value_claimed=surrogate.expected_error,
                value_found=ours.expected_error,
                relation=AT_LEAST,
                certificate=f"each: {proved_by(proofs[1])}; dual gap {ours.gap or 0.0:.0e}",
                constraints=proofs[0].constraints + proofs[1].constraints,
                slack=min(float(proof.slack) for proof in proofs),
            )
        )
        designs = {"surrogate": surrogate, "expected-error": ours, "double": double, "sub": sub}
        records += [
            {"K": k, "m": m, "curve": name, "expected_error": design.expected_error}
            for name, design in designs.items()
        ]
        advance()
    caption = f"Expected error under p ~ U[0, 1]^K, epsilon = {epsilon:g}, Delta = 0."
    return Part(tuple(claims), {"objectives": Table.of(caption, records)})


def _sampled_difference(
    better: dpopt.Design, worse: dpopt.Design, draws: int, seed: int
) -> tuple[float, float]:
    """Return mean and standard error of |error| of ``worse`` less that of ``better``, same p."""
    rng = np.random.default_rng(seed)
    margins = majority.sampled_margins(better.setting.mechanisms, better.setting.prior, rng, draws)
    middle = better.setting.middle
    gain = np.abs(margins @ (1.0 - worse.gamma[middle:]))
    gain -= np.abs(margins @ (1.0 - better.gamma[middle:]))
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(draws))


def constants(
    mechanisms: Sequence[tuple[int, tuple[int, ...]]],
    below: Sequence[tuple[int, int]],
    epsilon: float,
) -> Part:
    """Compare lemma A.1's constant with the largest constant that is private.

    Args:
        mechanisms: pairs (K, values of m), Delta = 0.
        below: (K, m) at which the lemma is tried with the tau of general composition.
        epsilon: of each voter.
        advance: called once for each K, and once more.
    """
    claims, records = [], []
    for k, allowances in mechanisms:
        for m in allowances:
            law = majority.parse_prior(PAPER_PRIOR)
            claim, record = _constant(majority.MajoritySetting(k, epsilon, m, prior=law))
            claims.append(claim)
            records.append(record)
        advance()
    claims += [_composed(k, m, epsilon) for k, m in below]
    advance()
    caption = f"Constant gammas and their errors under p ~ U[0, 1]^K, epsilon = {epsilon:g}."
    return Part(tuple(claims), {"constants": Table.of(caption, records)})


def _constant(setting: majority.MajoritySetting) -> tuple[Claim, dict[str, Cell]]:
    k, m, epsilon = setting.mechanisms, setting.allowance, setting.epsilon
    simple = majority.assess(setting, majority.constant(setting), repair=True)
    general = float(_by_general_composition(setting))
    best = majority.assess(setting, np.ones(k + 1), repair=True)
    value, proof = float(best.gamma[0]), proof_of(best)
    apart = abs(value - _constant_program(setting))
    require(apart < 1e-7, f"K = {k}, m = {m:g}: the one-variable program")
    printed = float(simple.gamma[0])
    claimed = max(printed, general)
    claim = Claim(
        claim=CONSTANT,
        place="lemma A.1, section 3.1",
        instance=f"K = {k}, m = {m:g}, epsilon = {epsilon:g}, Delta = 0",
        says="a constant gamma can be at most of order m / K (m / sqrt(K) by general composition)",
        found=f"{value:.6g} is private ({short(value / claimed)} times lemma A.1's "
        f"{short(claimed)}), with error {short(best.expected_error)}.",
        quantity="constant gamma",
        value_claimed=claimed,
        value_found=value,
        relation=AT_LEAST,
        sharpens=True,
        certificate=f"{proved_by(proof)}; the program over a constant gamma agrees to {apart:.0e}",
        constraints=proof.constraints,
        slack=float(proof.slack),
    )
    # The error is linear in a constant gamma: (1 - gamma) times what a fair coin loses.
    coin = majority.assess(setting, np.zeros(k + 1)).expected_error
    record: dict[str, Cell] = {
        "K": k,
        "m": m,
        "simple": printed,
        "general": general,
        "largest": value,
        "ratio": value / claimed,
        "error_simple": simple.expected_error,
        "error_general": (1.0 - general) * coin,
        "error_largest": best.expected_error,
    }
    return claim, record


def _by_general_composition(setting: majority.MajoritySetting) -> float:
    """Return lemma A.1's constant at the delta' that suits it best, where tau >= m."""
    voter = Guarantee(setting.epsilon, 0.0)
    found = [0.0]
    for slack in _SLACKS:
        whole = general_composition(voter, setting.mechanisms, slack)
        tau = whole.epsilon / setting.epsilon
        if tau >= setting.allowance:
            found.append(float(majority.constant(setting, tau, whole.delta)[0]))
    return max(found)


def _constant_program(setting: majority.MajoritySetting) -> float:
    """Return the optimum of DaRRM's program with gamma(l) = gamma(l + 1) for all l."""
    problem = majority.gamma_problem(setting, np.full(setting.middle, 1.0 / setting.middle))
    steps = np.diff(np.eye(setting.middle), axis=0)
    problem.add_rows("constant", {"gamma": steps}, lower=0.0, upper=0.0)
    return solve(problem).objective


def _composed(k: int, m: int, epsilon: float) -> Claim:
    """Lemma A.1 with tau by general composition, which may be below m.

    The lemma's proof takes one corner of the majority's polygon; if tau < m, (lambda, 0) is worse.
    """
    setting = majority.MajoritySetting(k, epsilon, m)
    whole = general_composition(Guarantee(epsilon, 0.0), k, _SLACK)
    tau, lam = whole.epsilon / epsilon, whole.delta
    allowed = _printed_constant(setting, tau, lam)
    gamma = np.full(k + 1, min(1.0, allowed))
    check = check_full(setting, gamma)
    broken = surely_broken_by(setting, gamma.tolist(), check.worst)
    found = f"p_const = {short(gamma[0])} spends {check.epsilon:.3g}"
    if broken > 0:
        found += "; the lemma's proof takes one corner where (lambda, 0) is the larger one, so it "
        found += "needs tau >= m"
    return Claim(
        claim=CONSTANT,
        place="lemma A.1",
        instance=f"K = {k}, m = {m}, epsilon = {epsilon:g}, delta = 0; the majority is "
        f"({tau:.4f} epsilon, {lam:.3g})-DP by general composition",
        says=f"p_const up to {short(allowed)}, at most 1, is ({m * epsilon:.3g}, 0)-DP",
        found=f"{found}.",
        quantity="epsilon spent by p_const",
        value_claimed=setting.guarantee.epsilon,
        # What is not proved to be broken counts as kept.
        value_found=check.epsilon if broken > 0 else min(check.epsilon, setting.guarantee.epsilon),
        relation=AT_MOST,
        certificate="exact: one broken row in fractions, voters and target rounded inward"
        if broken > 0
        else "no broken row was found",
        constraints=1,
        slack=-float(broken),
    )


def _printed_constant(setting: majority.MajoritySetting, tau: float, lam: float) -> float:
    """Return the right side of lemma A.1 (equation 4), infinite if its denominator is not > 0."""
    grown, r = float(np.exp(tau * setting.epsilon)), setting.ratio
    loss = 2.0 * (grown - r + (1.0 + r) * lam) / (grown + 1.0) + r - 1.0
    return setting.budget / loss if loss > 0.0 else float("inf")
