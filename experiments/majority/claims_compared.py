"""The table of claims, read as what the paper states beside what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.majority.claims_constant import CONSTANT
from experiments.majority.claims_corners import CORNERS
from experiments.majority.claims_counts import NUMBER
from experiments.majority.claims_error import LEMMA, SURROGATE
from experiments.majority.claims_record import Claim, short
from experiments.majority.claims_sampling import DOUBLE, SPENT
from experiments.registry import Comparison
from experiments.verdicts import statement

_BROKEN = "exact: one broken row in fractions, witness in table claims"
_INTEGERS = "exact integers over the reduced corner set, rounded outward"


def of_claims(claims: Sequence[Claim]) -> tuple[Comparison, ...]:
    """Return one comparison for each statement; verdicts come from the claims' values.

    Args:
        claims: every instance of the run.
    """
    by: dict[str, list[Claim]] = {}
    for claim in claims:
        by.setdefault(claim.claim, []).append(claim)
    return (
        *_lemma(by[LEMMA]),
        _surrogate(by[SURROGATE]),
        *_counts(by[NUMBER]),
        *_corners(by[CORNERS]),
        _double(by[DOUBLE]),
        *_constants(by[CONSTANT]),
        _spent(by[SPENT]),
    )


def _lemma(claims: list[Claim]) -> Iterator[Comparison]:
    pointwise = [claim for claim in claims if claim.quantity == "error"]
    worst = max(pointwise, key=lambda claim: claim.value_claimed - claim.value_found)
    yield statement(
        "At m = 1 no private majority has an error below |Pr[g = 1] - mean p| (lemma 3.2).",
        f"gamma(l) = 1/|2l - K| is epsilon-DP with error {worst.value_found:g} where the bound is "
        f"{short(worst.value_claimed)} ({worst.instance}).",
        "exact for every epsilon: slacks in powers of e^epsilon - 1 without negative coefficients",
        holds=all(claim.value_found >= claim.value_claimed for claim in pointwise),
    )
    expected = [claim for claim in claims if claim.quantity == "expected error"]
    best = max(expected, key=lambda claim: claim.value_claimed - claim.value_found)
    yield statement(
        "At m = 1 subsampling has the optimal error (section 3.1).",
        f"{best.instance}: {short(best.value_found)}, subsampling {short(best.value_claimed)}; "
        f"less in {sum(c.value_found < c.value_claimed for c in expected)} of {len(expected)} "
        "cases.",
        f"{_INTEGERS}; error by quadrature, sampled beside it",
        holds=all(claim.value_found >= claim.value_claimed for claim in expected),
    )


def _surrogate(claims: list[Claim]) -> Comparison:
    best = max(claims, key=lambda claim: claim.value_claimed - claim.value_found)
    return statement(
        "The optimised gamma has the best utility among all gammas (section 1.1).",
        f"{short(best.value_found)} instead of {short(best.value_claimed)} at {best.instance}; "
        f"less in {sum(c.value_found < c.value_claimed for c in claims)} of {len(claims)} cases.",
        f"{_INTEGERS}; dual bound",
        holds=all(claim.value_found >= claim.value_claimed for claim in claims),
    )


def _counts(claims: list[Claim]) -> Iterator[Comparison]:
    apart = max(c.value_found for c in claims if c.value_claimed == 0.0)
    for claim in claims:
        if claim.value_claimed > 0.0:
            yield statement(
                f"{claim.says} (lemma 5.1).",
                f"{claim.instance}: {claim.value_found:,.0f} decide, of "
                f"{claim.value_claimed:,.0f}.",
                f"proved; both maxima agree to {apart:.0e} in table maxima",
                holds=True,
                more=claim.value_found < claim.value_claimed and apart < 1e-12,
            )


def _corners(claims: list[Claim]) -> Iterator[Comparison]:
    for claim in claims:
        if "released code" in claim.place:
            yield statement(
                "The released code's corners, with (b, b) for (c, b), decide privacy.",
                f"{claim.instance.partition(', corners')[0]}: the optimum spends "
                f"{short(claim.value_found)}, not {short(claim.value_claimed)}.",
                _BROKEN,
                holds=claim.value_found <= claim.value_claimed,
            )


def _double(claims: list[Claim]) -> Comparison:
    broken = sum(claim.value_found for claim in claims)
    rows = sum(claim.constraints or 0 for claim in claims)
    return statement(
        "Double subsampling is m epsilon-DP if all voters have the same p and p' (theorem 4.1).",
        "The same p is not needed." if not broken else f"{broken:g} rows are broken.",
        f"proved by thinning; {rows:,} rows checked exactly besides",
        holds=not broken,
        more=not broken,
    )


def _constants(claims: list[Claim]) -> Iterator[Comparison]:
    larger = [claim for claim in claims if claim.quantity == "constant gamma"]
    ratios = [claim.value_found / claim.value_claimed for claim in larger]
    yield statement(
        "Lemma A.1's constant gamma is private.",
        f"So is one {min(ratios):.2f} to {max(ratios):.2f} times as large, in {len(larger)} cases.",
        f"{_INTEGERS}; linear program",
        holds=min(ratios) >= 1.0,
        more=max(ratios) > 1.0,
    )
    spent = [claim for claim in claims if claim not in larger]
    worst = spent[0]
    yield statement(
        "Lemma A.1 holds for any (tau epsilon, lambda)-DP majority.",
        f"Not for tau < m: {worst.instance.partition(';')[0]}: "
        f"{short(worst.value_found)} is spent, not {short(worst.value_claimed)}.",
        _BROKEN,
        holds=all(claim.value_found <= claim.value_claimed for claim in spent),
    )


def _spent(claims: list[Claim]) -> Comparison:
    best = min(claims, key=lambda claim: claim.value_found / claim.value_claimed)
    return statement(
        "The majority of m sampled voters spends m epsilon (section 3.1).",
        f"{best.instance.partition(', Delta')[0]}: {short(best.value_found)}, not "
        f"{short(best.value_claimed)}; ceil(m / 2) epsilon exactly, where Delta = 0.",
        f"proved and attained; {_INTEGERS}",
        holds=all(claim.value_found <= claim.value_claimed for claim in claims),
        more=all(claim.value_found < claim.value_claimed for claim in claims),
    )
