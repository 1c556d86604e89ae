"""How many corner multisets decide privacy: O(K^2) and O(K^4) instead of O(K^3) and O(K^7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dpopt import majority, solve
from experiments.majority.claims_corners import solve_over, three
from experiments.majority.claims_record import IMPROVED, Claim, Part, require
from experiments.registry import Advance, Cell, Table

NUMBER = "number of constraints"


def counts(mechanisms: Sequence[int], advance: Advance) -> Part:
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
            full, reduced = majority.full_size(setting), majority.reduced_size(setting)
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
                status=IMPROVED,
                certificate="proved: exchanging the p' of a voter at bc and one at cb leaves f as "
                "it is, and puts both on the segment from 00 to 11, where f is affine",
            )
        )
    advance()
    return Part(tuple(claims), {"counts": Table.of("Number of privacy rows.", records)})


def maxima(
    pure: Sequence[int], approximate: Sequence[int], draws: int, seed: int, advance: Advance
) -> Part:
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
                check = majority.check_full(setting, np.concatenate([upper[::-1], upper]))
                reduced = 0.5 * setting.budget * oracle.price(upper).violation
                difference = abs(check.excess - reduced)
                require(difference <= 2 * check.rounding, f"K = {k}, {kind} gamma")
                records.append(
                    {
                        "K": k,
                        "Delta": shift,
                        "gamma": kind,
                        "paper": check.excess,
                        "reduced": reduced,
                        "difference": difference,
                        "rounding": check.rounding,
                    }
                )
            advance()
        part = records[start:]
        largest = max(float(record["difference"] or 0.0) for record in part)
        claims.append(
            Claim(
                claim=NUMBER,
                place="lemma 5.1",
                instance=f"Delta = {shift:g}, K = {sizes[0]}..{sizes[-1]}, {len(part)} gammas",
                says="the maximum of f is over all multisets of corners",
                found="the maxima over the paper's and the reduced set differ by at most "
                f"{largest:.1e}, which is rounding.",
                quantity="largest difference of the two maxima",
                value_claimed=0.0,
                value_found=largest,
                status=IMPROVED,
                certificate="every multiset of both sets, double precision; the theorem is proved",
            )
        )
    caption = "Largest excess over the paper's set and over the reduced set."
    return Part(tuple(claims), {"maxima": Table.of(caption, records)})


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
