"""Lemma 5.1: how many corner multisets decide privacy, and whether three corners are enough.

O(K^2) and O(K^4), or the O(K^3) and O(K^7) of the paper? Then optima over 00, 11 and bc alone,
and the rows that they break.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np
import numpy.typing as npt

from dpopt import Problem, Solution, majority, solve
from dpopt.prob import poisson_binomial_pmf
from experiments.majority.claims_record import (
    AT_LEAST,
    AT_MOST,
    Claim,
    Part,
    corner_voters,
    excess_at,
    surely_broken_by,
)
from experiments.majority.full_set import check_full, full_size
from experiments.registry import Cell, Table, advance

NUMBER, REDUCED = "number of constraints", "reduced set of constraints"
# Random private voters at which a privacy row is evaluated for each noise function.
_VOTERS = 200

CORNERS = "three corners"
_PLACE = "not in the paper; lemma 5.1 lists one corner more for each of them"
_ENOUGH = "these corners decide privacy"
_ROUNDED_INWARD = "exact: one broken row in fractions, voters and target rounded inward"


def counts(mechanisms: Sequence[int]) -> Part:
    """Count the paper's multisets and the reduced ones, for each K.

    Args:
        mechanisms: each K, odd.
        advance: called once.
    """
    records: list[dict[str, Cell]] = []
    claims = []
    for shift in (0.0, 1e-5):
        case, full, reduced = "Delta = 0" if shift == 0.0 else "Delta > 0", 0, 0
        for k in mechanisms:
            setting = majority.MajoritySetting(k, 0.1, 1.0, shift, shift)
            full, reduced = full_size(setting), majority.reduced_size(setting)
            records.append({"K": k, "case": case, "paper": full, "reduced": reduced})
        orders = ("O(K^3)", "O(K^2)") if shift == 0.0 else ("O(K^7)", "O(K^4)")
        claims.append(
            Claim(
                claim=NUMBER,
                place="lemma 5.1",
                instance=f"{case}, K = {mechanisms[-1]}",
                says=f"{orders[0]} multisets of corners decide privacy",
                found=f"{orders[1]} decide: {reduced:,} instead of {full:,}.",
                quantity="multisets",
                value_claimed=float(full),
                value_found=float(reduced),
                relation=AT_MOST,
                sharpens=True,
                certificate="proved: exchanging the p' of a voter at bc and one at cb leaves f as "
                "it is, and puts both on the segment from 00 to 11, where f is affine",
            )
        )
    advance()
    return Part(tuple(claims), {"counts": Table.of("Number of privacy rows.", records)})


def maxima(pure: Sequence[int], approximate: Sequence[int], draws: int, seed: int) -> Part:
    """Compare the largest row over the paper's set with that over the reduced set.

    Args:
        pure: each K for Delta = 0.
        approximate: each K for Delta > 0.
        draws: random gammas of each kind and K.
        seed: of the gammas.
        advance: called once for each K of either.
    """
    records: list[dict[str, Cell]] = []
    claims = []
    rng = np.random.default_rng(seed)
    for shift, sizes in ((0.0, pure), (1e-3, approximate)):
        start = len(records)
        for k in sizes:
            setting = majority.MajoritySetting(k, 0.7, 1.0, shift, shift)
            oracle = majority.CornerOracle(setting)
            for kind, upper in _gammas(setting, draws, rng):
                check = check_full(setting, np.concatenate([upper[::-1], upper]))
                reduced = 0.5 * setting.budget * oracle.price(upper).violation
                difference = abs(check.excess - reduced)
                sampled = _largest_sampled(setting, upper, rng)
                records.append(
                    {
                        "K": k,
                        "Delta": shift,
                        "gamma": kind,
                        "paper": check.excess,
                        "reduced": reduced,
                        "difference": difference,
                        "rounding": check.rounding,
                        "sampled": sampled,
                    }
                )
            advance()
        part = records[start:]
        if part:
            claims += [_reduced(part, shift, sizes), _decides(part, shift, sizes)]
    caption = "Largest excess over the paper's set and over the reduced set."
    return Part(tuple(claims), {"maxima": Table.of(caption, records)})


def _reduced(part: Sequence[Mapping[str, Cell]], shift: float, sizes: Sequence[int]) -> Claim:
    """Return whether the reduced set has the paper's maximum; the difference beside rounding."""
    pairs = [(_number(record["difference"]), 2.0 * _number(record["rounding"])) for record in part]
    largest, allowed = max(pairs, key=lambda pair: pair[0] - pair[1])
    return Claim(
        claim=REDUCED,
        place="not in the paper",
        instance=_instance(part, shift, sizes),
        says="the maximum of f over the reduced set is the one over all multisets of corners",
        found=f"they differ by {largest:.1e} where rounding allows {allowed:.1e}.",
        quantity="difference of the two maxima",
        value_claimed=allowed,
        value_found=largest,
        relation=AT_MOST,
        certificate="every multiset of both sets, double precision; the theorem is proved",
        own=True,
    )


def _decides(part: Sequence[Mapping[str, Cell]], shift: float, sizes: Sequence[int]) -> Claim:
    """Return whether random private voters stay below the maximum over the corners."""
    pairs = [
        (_number(record["sampled"]), _number(record["paper"]) + _number(record["rounding"]))
        for record in part
    ]
    highest, corner = max(pairs, key=lambda pair: pair[0] - pair[1])
    return Claim(
        claim=NUMBER,
        place="lemma 5.1",
        instance=_instance(part, shift, sizes),
        says="f is largest at a multiset of corners",
        found=f"{_VOTERS} draws of private voters for each gamma reach {highest:.2g}, corners "
        f"{corner:.2g}.",
        quantity="excess of a privacy row",
        value_claimed=corner,
        value_found=highest,
        relation=AT_MOST,
        certificate="every multiset of corners, and random voters, in double precision",
    )


def _instance(part: Sequence[object], shift: float, sizes: Sequence[int]) -> str:
    return f"Delta = {shift:g}, K = {', '.join(map(str, sizes))}, {len(part)} gammas"


def _number(cell: Cell) -> float:
    return float(cell or 0.0)


def _largest_sampled(
    setting: majority.MajoritySetting, upper: npt.NDArray[np.float64], rng: np.random.Generator
) -> float:
    """Return the largest excess of a privacy row at random pairs (p, p') of lemma 5.1's polygon.

    In probability, as `check_full` has it: half of f minus its bound.
    """
    names = ("00", "11", "bc", "cb") + (("D0", "0D", "1m", "m1") if setting.mechanism_delta else ())
    corners = np.array([setting.corner(name) for name in names])
    # Small concentrations draw voters near a corner, others from the middle of the polygon.
    shares = np.concatenate(
        [
            rng.dirichlet(np.full(len(names), near), (_VOTERS // 2, setting.mechanisms))
            for near in (0.02, 1.0)
        ]
    )
    here, there = (poisson_binomial_pmf(np.clip(shares @ corners[:, i], 0, 1)) for i in (0, 1))
    signed = np.concatenate([-upper[::-1], upper])
    f = here @ signed - setting.ratio * (there @ signed)
    return float(0.5 * (f.max() - setting.budget))


def _gammas(
    setting: majority.MajoritySetting, draws: int, rng: np.random.Generator
) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield random, extreme, optimal and adversarial noise functions, on their upper half."""
    n = setting.middle
    weights = majority.surrogate_weights(setting.mechanisms).values
    yield "optimal", solve(majority.gamma_problem(setting, weights))["gamma"]
    yield "optimal for three corners", solve_over(setting, weights, three(setting))["gamma"]
    yield "falling", np.linspace(1.0, 0.0, n)
    yield "alternating", np.resize([0.0, 1.0], n)
    for _ in range(draws):
        yield "random", rng.random(n)
        yield "zeros and ones", rng.integers(0, 2, n).astype(np.float64)
        yield (
            "a random program's",
            solve(majority.gamma_problem(setting, rng.normal(size=n)))["gamma"],
        )


@dataclass(frozen=True)
class Case:
    """A setting in which three corners are tried."""

    mechanisms: int
    allowance: float
    epsilon: float


def three(setting: majority.MajoritySetting) -> tuple[str, ...]:
    """Return the corners that are enough if gamma's sign times gamma rises with the count."""
    return ("00", "11", "bc") if setting.mechanism_delta == 0.0 else ("D0", "1m", "bc")


def solve_over(
    setting: majority.MajoritySetting, weights: npt.ArrayLike, corners: Sequence[str]
) -> Solution:
    """Solve DaRRM's program with the multisets of some corners only.

    Args:
        setting: the voters and the target.
        weights: maximised, on gamma's upper half, shape ((K + 1) / 2,).
        corners: names.
    """
    k = setting.mechanisms
    pairs = np.array([setting.corner(name) for name in corners])
    chosen = np.array([np.repeat(np.arange(len(corners)), c) for c in _splits(k, len(corners))])
    here, there = (poisson_binomial_pmf(pairs[chosen, side]) for side in (0, 1))
    f = here - setting.ratio * there
    rows = f[:, setting.middle :] - f[:, setting.middle - 1 :: -1]
    problem = Problem("DaRRM with fewer corners")
    problem.add_variables("gamma", setting.middle, lower=0.0, upper=1.0)
    problem.add_rows("corners", rows / setting.budget, upper=1.0)
    problem.maximise({"gamma": weights})
    return solve(problem)


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _splits(total - first, parts - 1):
            yield (first, *rest)


def three_corners(
    cases: Sequence[Case],
    swept: Sequence[tuple[int, float]],
    epsilons: Sequence[float],
) -> Part:
    """Solve with the corners 00, 11, bc, and say which voters break the result.

    Args:
        cases: where they are tried; the paper's objective, Delta = 0.
        swept: (K, m) of the figure's curves.
        epsilons: of these curves.
        advance: called once for each case, and twice more.
    """
    claims = []
    for case in cases:
        claims.append(_loss(case))
        advance()
    claims += [_with_delta(), _smallest()]
    advance()
    records: list[dict[str, Cell]] = [
        _swept(Case(k, m, epsilon)) for k, m in swept for epsilon in epsilons
    ]
    advance()
    caption = "What the optimum over the corners 00, 11, bc spends, in units of its target."
    return Part(tuple(claims), {"three-corners": Table.of(caption, records)})


def _swept(case: Case) -> dict[str, Cell]:
    setting = majority.MajoritySetting(case.mechanisms, case.epsilon, case.allowance)
    weights = majority.surrogate_weights(case.mechanisms).values
    solution = solve_over(setting, weights, three(setting))
    spent = check_full(setting, _whole(solution)).epsilon
    return {
        "K": case.mechanisms,
        "m": case.allowance,
        "epsilon": case.epsilon,
        "spent_over_target": spent / setting.guarantee.epsilon,
    }


def _whole(solution: Solution) -> npt.NDArray[np.float64]:
    upper = solution["gamma"]
    return np.concatenate([upper[::-1], upper])


def _loss(case: Case) -> Claim:
    """Return what the optimum over three corners spends, and the row that it breaks."""
    k = case.mechanisms
    setting = majority.MajoritySetting(k, case.epsilon, case.allowance)
    solution = solve_over(setting, majority.surrogate_weights(k).values, three(setting))
    check = check_full(setting, _whole(solution))
    broken = surely_broken_by(setting, _whole(solution).tolist(), check.worst)
    target = setting.guarantee.epsilon
    found = f"the optimum spends {check.epsilon:.4g} where {target:.4g} is allowed"
    if broken > 0:
        found += f"; voters {_voters(check.worst)} break their row by {float(broken):.2g}"
    return Claim(
        claim=CORNERS,
        place=_PLACE,
        instance=f"K = {k}, m = {case.allowance:g}, epsilon = {case.epsilon:g}, corners 00, 11, bc",
        says=_ENOUGH,
        found=f"{found}.",
        quantity="epsilon spent",
        value_claimed=target,
        # What is not proved to be broken counts as kept.
        value_found=check.epsilon if broken > 0 else min(check.epsilon, target),
        relation=AT_MOST,
        certificate=_ROUNDED_INWARD if broken > 0 else "no broken row was found",
        constraints=1,
        slack=-float(broken),
        own=True,
    )


def _voters(worst: Mapping[str, int]) -> str:
    return ", ".join(f"{n} at {name}" for name, n in worst.items())


def _with_delta() -> Claim:
    """K = 7, Delta > 0: the optimum over D0, 1m, bc is above the true one."""
    setting = majority.MajoritySetting(7, 0.5, 1.0, 1e-3, 1e-3)
    weights = np.ones(setting.middle)
    few = solve_over(setting, weights, three(setting))
    true = solve(majority.gamma_problem(setting, weights))
    worst = check_full(setting, _whole(few)).worst
    broken = surely_broken_by(setting, _whole(few).tolist(), worst)
    return Claim(
        claim=CORNERS,
        place=_PLACE,
        instance="K = 7, m = 1, epsilon = 0.5, Delta = delta = 0.001, uniform weights, corners "
        "D0, 1m, bc",
        says=_ENOUGH,
        found=f"they give {few.objective:.10f} where {true.objective:.10f} is the optimum; voters "
        f"{_voters(worst)} break their row by {float(broken):.2g}.",
        quantity="sum of gamma over l >= 4",
        value_claimed=few.objective,
        value_found=true.objective,
        relation=AT_LEAST,
        certificate=f"{_ROUNDED_INWARD}; dual bound {true.bound:.10f}",
        constraints=1,
        slack=-float(broken),
        own=True,
        proved=broken > 0,
    )


def _smallest() -> Claim:
    """K = 5, e^epsilon = 9/4, e^(m epsilon) = 2: every number of the broken row is rational."""
    ratio, target = Fraction(9, 4), Fraction(2)
    setting = majority.MajoritySetting(5, log(ratio), log(target) / log(ratio))
    weights = np.array([0.0, 1.0, 0.0])
    few = solve_over(setting, weights, three(setting))
    true = solve(majority.gamma_problem(setting, weights))
    worst = check_full(setting, _whole(few)).worst
    gamma = [Fraction(value) for value in _whole(few).tolist()]
    broken = excess_at(gamma, corner_voters(worst, ratio, Fraction(0)), target)
    return Claim(
        claim=CORNERS,
        place=_PLACE,
        instance="K = 5, e^epsilon = 9/4, e^(m epsilon) = 2, maximise gamma(4), corners 00, 11, bc",
        says=_ENOUGH,
        found=f"they give {few.objective:.10f} where {true.objective:.10f} is the optimum; voters "
        f"{_voters(worst)} break their row by {float(broken):.2g}.",
        quantity="gamma(4)",
        value_claimed=few.objective,
        value_found=true.objective,
        relation=AT_LEAST,
        certificate=f"exact: one broken row in fractions; dual bound {true.bound:.10f}",
        constraints=1,
        slack=-float(broken),
        own=True,
        proved=broken > 0,
    )
