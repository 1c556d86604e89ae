"""Lemma A.1: the constant gamma that it allows, and the largest that is private."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpopt import majority, solve
from dpopt.privacy import Guarantee, general_composition
from experiments.majority.claims_exact import surely_broken_by
from experiments.majority.claims_record import (
    AT_LEAST,
    AT_MOST,
    Claim,
    Part,
    proof_of,
    proved_by,
    require,
    short,
)
from experiments.registry import Advance, Cell, Table

CONSTANT = "lemma A.1"
# The delta' of general composition.
_SLACK = 0.1
_SLACKS = tuple(float(x) for x in 10.0 ** -np.arange(0.5, 8.0, 0.25))


def constants(
    mechanisms: Sequence[tuple[int, tuple[int, ...]]],
    below: Sequence[tuple[int, int]],
    epsilon: float,
    advance: Advance,
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
            claim, record = _constant(majority.MajoritySetting(k, epsilon, m))
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
    check = majority.check_full(setting, gamma)
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
