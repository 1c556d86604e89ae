"""The table of claims, read as what the paper states beside what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.majority.claims_constant import CONSTANT
from experiments.majority.claims_counts import NUMBER, REDUCED
from experiments.majority.claims_error import LEMMA, SURROGATE
from experiments.majority.claims_queries import QUERIES
from experiments.majority.claims_record import AT_LEAST, Claim, short
from experiments.majority.claims_sampling import DOUBLE, SPENT
from experiments.majority.comparisons import AT_ONE, BEST, BEST_OF_ALL
from experiments.registry import Comparison
from experiments.verdicts import not_comparable, statement

_BROKEN = "exact: one broken row in fractions, witness in table claims"
_INTEGERS = "exact integers over the reduced corner set, rounded outward"
_NO_PROOF = "no verdict where a certificate is missing"


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
        *_counts(by[NUMBER], by[REDUCED]),
        _double(by[DOUBLE]),
        *_constants(by[CONSTANT]),
        _spent(by[SPENT]),
        _queries(by[QUERIES]),
    )


def _judged(
    words: str, ours: str, certificate: str, claims: Sequence[Claim], name: str, more_if: str = ""
) -> Comparison:
    """Judge a statement by its instances: refuted by one, sharper if more holds in all."""
    decided = [claim for claim in claims if claim.proved]
    if not decided:
        return not_comparable(words, ours, certificate, why="no instance is proved", name=name)
    return statement(
        words,
        ours,
        certificate,
        holds=all(claim.holds for claim in decided),
        more=all(claim.more for claim in decided),
        more_if=more_if,
        name=name,
    )


def _worst(claims: Sequence[Claim]) -> Claim:
    """Return the instance that lies farthest against its claim."""
    return min(claims, key=lambda claim: claim.beyond)


def _lemma(claims: list[Claim]) -> Iterator[Comparison]:
    pointwise = [claim for claim in claims if claim.quantity == "error"]
    worst = _worst(pointwise)
    yield _judged(
        "At m = 1 no private majority has an error below |Pr[g = 1] - mean p| (lemma 3.2).",
        f"gamma(l) = 1/|2l - K| has error {worst.value_found:g} where the bound is "
        f"{short(worst.value_claimed)} ({worst.instance}).",
        "exact for every epsilon: slacks in powers of e^epsilon - 1 without negative coefficients",
        pointwise,
        AT_ONE,
    )
    expected = [claim for claim in claims if claim.quantity == "expected error"]
    best = _worst(expected)
    yield _judged(
        "At m = 1 subsampling has the optimal error (section 3.1).",
        f"{best.instance}: {short(best.value_found)}, subsampling {short(best.value_claimed)}; "
        f"less in {sum(not c.holds for c in expected)} of {len(expected)} cases.",
        f"{_INTEGERS}; error by quadrature, sampled beside it",
        expected,
        AT_ONE,
    )


def _surrogate(claims: list[Claim]) -> Comparison:
    best = _worst(claims)
    return _judged(
        BEST_OF_ALL,
        f"{short(best.value_found)} instead of {short(best.value_claimed)} at {best.instance}; "
        f"less in {sum(not c.holds for c in claims)} of {len(claims)} cases.",
        f"{_INTEGERS}; dual bound",
        claims,
        BEST,
    )


def _counts(claims: list[Claim], reduced: list[Claim]) -> Iterator[Comparison]:
    sampled = [claim for claim in claims if not claim.sharpens]
    confirmed = all(claim.holds for claim in reduced)
    for claim in claims:
        if claim.sharpens:
            yield statement(
                f"{claim.says} (lemma 5.1).",
                f"{claim.instance}: {claim.value_found:,.0f} decide, of "
                f"{claim.value_claimed:,.0f}.",
                "proved; both maxima, and random voters, in table maxima",
                holds=all(part.holds for part in (claim, *sampled)),
                more=claim.more and confirmed,
                more_if="a smaller set has the same maximum",
                name=f"lemma 5.1, {claim.instance.partition(',')[0]}",
            )


def _double(claims: list[Claim]) -> Comparison:
    words = "Double subsampling is m epsilon-DP if all voters have the same p and p' (theorem 4.1)."
    rows = sum(claim.constraints or 0 for claim in claims)
    broken = sum(claim.value_found for claim in claims)
    certificate = f"proved by thinning; {rows:,} rows checked exactly besides"
    name = "theorem 4.1"
    if broken:
        # The rows are those of voters that need not be equal: they decide no more than they say.
        ours = f"{broken:g} rows or cases of unequal voters are broken or undecided."
        return not_comparable(words, ours, certificate, why=_NO_PROOF, name=name)
    return statement(
        words,
        "The same p is not needed.",
        certificate,
        holds=all(claim.holds for claim in claims),
        more=all(claim.holds for claim in claims),
        more_if="unequal voters are private too",
        name=name,
    )


def _constants(claims: list[Claim]) -> Iterator[Comparison]:
    larger = [claim for claim in claims if claim.relation == AT_LEAST]
    ratios = [claim.value_found / claim.value_claimed for claim in larger]
    yield _judged(
        "Where tau >= m, lemma A.1's constant gamma is private.",
        f"The largest that is private is {min(ratios):.2f} to {max(ratios):.2f} times as large, in "
        f"{len(larger)} cases.",
        f"{_INTEGERS}; linear program",
        larger,
        "lemma A.1",
        "a larger constant is private in every case",
    )
    spent = [claim for claim in claims if claim.relation != AT_LEAST]
    worst = _worst(spent)
    kept = f"{worst.instance.partition(';')[0]}: {short(worst.value_found)} is spent, of "
    yield _judged(
        "With p_const up to (4) RR is (m epsilon, delta)-DP, tau in [1, K] and lambda by simple or "
        "general composition (lemma A.1).",
        f"{'Holds' if worst.holds else 'Not for tau < m'}: {kept}{short(worst.value_claimed)}.",
        _BROKEN if not worst.holds else "no broken row was found",
        spent,
        "lemma A.1, any tau",
    )


def _spent(claims: list[Claim]) -> Comparison:
    best = min(claims, key=lambda claim: claim.value_found / claim.value_claimed)
    return _judged(
        "The majority of m sampled voters spends m epsilon (section 3.1).",
        f"{best.instance.partition(', Delta')[0]}: {short(best.value_found)}, of "
        f"{short(best.value_claimed)}; ceil(m / 2) epsilon exactly, where Delta = 0.",
        f"proved and attained; {_INTEGERS}",
        claims,
        "subsampling's loss",
        "less is spent in every case",
    )


def _queries(claims: list[Claim]) -> Comparison:
    worst = _worst(claims)
    return _judged(
        "The overall privacy loss over Q queries to the teachers, trained once, can be computed by "
        "general composition (section 6.2, theorem 2.3).",
        f"{worst.instance.partition(', Delta')[0]} (ours), one query "
        f"{worst.instance.partition('one query ')[2].partition(' to')[0]}: at least "
        f"{worst.value_found:g} is spent, of {worst.value_claimed:g}"
        f"{''.join(worst.found.partition('; the chance')[1:]).partition('. The')[0]}. The K voters "
        "together bound it; whether the printed totals do is judged with Tables 2, 5, 7 and 9.",
        "exact: one ratio in fractions, from the certified integers",
        claims,
        "composition of queries",
    )
