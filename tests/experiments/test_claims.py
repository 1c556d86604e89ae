from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from math import ceil, comb, exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import dpopt
from dpopt import DpoptError, majority
from experiments.majority import (
    claims_error,
    claims_record,
    claims_sampling,
)
from experiments.majority.claims import _judged, run
from experiments.majority.claims_record import (
    AGREES,
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    IMPROVED,
    REFUTED,
    UNDECIDED,
    Claim,
    Proof,
    proof_of,
    require,
)
from experiments.registry import Outcome, Table

pytestmark = pytest.mark.slow

CLAIMS = run
SMALL = replace(
    CLAIMS.quick,
    draws=4_000,
    at_one=(3, 5, 11),
    counted=(5, 11, 41),
    pure=(5, 11),
    approximate=(5,),
    gammas=1,
    swept=("9,2",),
    swept_epsilons=(0.8, 0.9),
    doubled=(3, 5, 11),
    certified=(5,),
    sampled=("11,3,0.1,0", "11,3,0.1,1e-5", "35,10,0.1,0"),
    sampled_curve=(7,),
    constants=("5,1,2", "11,1,3"),
)
RATIOS = [Fraction(101, 100), Fraction(11, 10), Fraction(8, 5), Fraction(2), Fraction(50)]
Pair = tuple[Fraction, Fraction]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return CLAIMS.run(SMALL)


@pytest.fixture(scope="module")
def claims(outcome: Outcome) -> Table:
    return outcome.tables["claims"]


def row(table: Table, claim: str, start: str) -> dict:
    """The only row of a claim whose instance starts like this."""
    found = table.records
    (one,) = [r for r in found if r["claim"] == claim and str(r["instance"]).startswith(start)]
    return one


def corner_pairs(r: Fraction, shift: Fraction = Fraction(0)) -> list[Pair]:
    """The polygon's corners from its inequalities: where two of its edges meet."""
    edges = [  # a p + b q = c, each with <= for feasible points
        (Fraction(1), -r, shift),
        (-r, Fraction(1), shift),
        (-Fraction(1), r, r - 1 + shift),
        (r, -Fraction(1), r - 1 + shift),
        (Fraction(-1), Fraction(0), Fraction(0)),
        (Fraction(1), Fraction(0), Fraction(1)),
        (Fraction(0), Fraction(-1), Fraction(0)),
        (Fraction(0), Fraction(1), Fraction(1)),
    ]
    found = set()
    for i, (a, b, c) in enumerate(edges):
        for d, e, f in edges[:i]:
            if (det := a * e - b * d) != 0:
                p, q = (c * e - b * f) / det, (a * f - c * d) / det
                if all(x * p + y * q <= z for x, y, z in edges):
                    found.add((p, q))
    return sorted(found)


def output_one(gamma: Sequence[Fraction], p: Sequence[Fraction]) -> Fraction:
    """Pr[DaRRM outputs 1], over all outcomes of the votes and of the two coins."""
    total = Fraction(0)
    for votes in product((0, 1), repeat=len(p)):
        chance = reduce(
            lambda a, b: a * b, (q if v else 1 - q for q, v in zip(p, votes, strict=True))
        )
        keep = gamma[sum(votes)]
        total += chance * (keep * (2 * sum(votes) > len(p)) + (1 - keep) / 2)
    return total


def worst_ratio(gamma: Sequence[Fraction], pairs: Sequence[Pair]) -> Fraction:
    """Largest Pr[o | p] / Pr[o | p'] over all voters at the given pairs and both outputs."""
    found = []
    for voters in combinations_with_replacement(pairs, len(gamma) - 1):
        one, other = (output_one(gamma, [v[side] for v in voters]) for side in (0, 1))
        for here, there in ((one, other), (1 - one, 1 - other)):
            assert there > 0 or here == 0
            if there > 0:
                found.append(here / there)
    return max(found)


def test_the_corners_are_those_of_lemma_5_1() -> None:
    r = Fraction(3, 2)
    b, c = r / (r + 1), 1 / (r + 1)
    assert set(corner_pairs(r)) == {(0, 0), (1, 1), (b, c), (c, b)}
    assert len(corner_pairs(r, Fraction(1, 50))) == 8


@pytest.mark.parametrize("r", RATIOS)
def test_the_noise_function_that_refutes_lemma_3_2_is_private(r: Fraction) -> None:
    third, one = Fraction(1, 3), Fraction(1)
    gamma = [third, one, one, third]
    assert worst_ratio(gamma, corner_pairs(r)) == r
    for p, error, bound in (
        ((one, one, 0 * one), Fraction(0), Fraction(1, 3)),
        ((Fraction(3, 4), Fraction(3, 4), Fraction(1, 4)), Fraction(1, 32), Fraction(7, 96)),
    ):
        truth = output_one([one] * 4, p)
        assert abs(truth - output_one(gamma, p)) == error
        assert abs(truth - sum(p) / 3) == bound


@pytest.mark.parametrize("r", RATIOS[1:4])
def test_the_harmonic_noise_function_is_private_for_five_voters(r: Fraction) -> None:
    gamma = [Fraction(1, n) for n in (5, 3, 1, 1, 3, 5)]
    assert worst_ratio(gamma, corner_pairs(r)) == r


def test_slack_polynomials_cover_the_paper_s_set_and_find_what_is_broken() -> None:
    third, one = Fraction(1, 3), Fraction(1)
    proof = claims_record.prove_for_every_epsilon([one, third], 1, full=True)
    assert (proof.constraints, proof.undecided) == (20, 0)
    assert proof.tight == 3
    reduced = claims_record.prove_for_every_epsilon([one, third], 1)
    assert (reduced.constraints, reduced.undecided) == (16, 0)
    broken = claims_record.prove_for_every_epsilon([one, one], 1)
    assert broken.undecided > 0
    assert worst_ratio([one] * 4, corner_pairs(Fraction(2))) == 4


@given(
    st.lists(st.fractions(0, 1, max_denominator=20), min_size=3, max_size=3),
    st.integers(1, 3),
    st.fractions(1, 5, max_denominator=7),
)
def test_what_the_polynomials_prove_holds(upper: list[Fraction], m: int, r: Fraction) -> None:
    gamma = [*reversed(upper), *upper]
    pairs = corner_pairs(r)
    proof = claims_record.prove_for_every_epsilon(upper, m, full=True)
    assert proof.constraints == 56
    voters = [pairs[i % len(pairs)] for i in (0, 1, 2, 2, 3)]
    holds = claims_record.excess_at(gamma, voters, r**m) <= 0
    assert holds or proof.undecided > 0
    one, other = (output_one(gamma, [v[side] for v in voters]) for side in (0, 1))
    assert holds == (one <= r**m * other)


def test_gains_at_m_1_are_seen_in_samples(outcome: Outcome) -> None:
    errors = outcome.tables["errors-at-m-1"]
    for best, monotone, sub, gain, spread in zip(
        *(
            errors.column(c)
            for c in ("best", "monotone", "subsampling", "sampled_gain", "standard_error")
        ),
        strict=True,
    ):
        assert best < monotone < sub
        assert gain > 6 * spread
        assert gain == pytest.approx(sub - best, abs=5 * spread + 0.01 * sub)


def test_counts_are_those_of_the_spec(outcome: Outcome) -> None:
    table = outcome.tables["counts"]
    found = {
        (k, case): (paper, reduced)
        for k, case, paper, reduced in zip(
            *(table.column(c) for c in ("K", "case", "paper", "reduced")), strict=True
        )
    }
    assert found[11, "Delta > 0"] == (31_824, 7_008)
    assert found[11, "Delta = 0"] == (364, 144)
    # One of each pair of corners: the coefficient of x^K in (1 + 2x + 2x^2 + ..)^3 / (1 - x)^2.
    pair, free = np.array([1, *[2] * 41], object), np.ones(42, object)
    series = reduce(lambda a, b: np.convolve(a, b)[:42], [pair, pair, pair, free, free])
    assert found[41, "Delta > 0"] == (comb(48, 7), series[41])
    assert [round(count / 1e6, 2) for count in found[41, "Delta > 0"]] == [73.63, 1.04]


def test_the_maxima_agree(outcome: Outcome) -> None:
    table = outcome.tables["maxima"]
    assert {"optimal for three corners", "zeros and ones"} <= set(table.column("gamma"))
    for paper, reduced, rounding in zip(
        *(table.column(c) for c in ("paper", "reduced", "rounding")), strict=True
    ):
        assert abs(paper - reduced) <= 2 * rounding < 1e-12
    assert max(table.column("paper")) > 1e-2


def test_the_smallest_counterexample_by_another_solver_and_in_fractions() -> None:
    r, target = Fraction(9, 4), Fraction(2)
    pairs = corner_pairs(r)
    b, c = r / (r + 1), 1 / (r + 1)
    few = [pair for pair in pairs if pair != (c, b)]

    def rows(allowed: list[Pair]) -> list[list[Fraction]]:
        found = []
        for voters in combinations_with_replacement(allowed, 5):
            # f is linear in gamma: read its coefficients off unit noise functions.
            units = [[Fraction(int(min(n, 5 - n) == i)) for n in range(6)] for i in (2, 1, 0)]
            sides = [[2 * output_one(u, [v[s] for v in voters]) - 1 for u in units] for s in (0, 1)]
            found.append([x - target * y for x, y in zip(*sides, strict=True)])
        return found

    optima = {}
    for name, allowed in (("few", few), ("all", pairs)):
        matrix = np.array(rows(allowed), dtype=float)
        solved = linprog([0, -1, 0], A_ub=matrix, b_ub=np.ones(len(matrix)), bounds=(0, 1))
        optima[name] = solved.x
    assert optima["few"][1] == pytest.approx(0.9408553251, abs=1e-9)
    assert optima["all"][1] == pytest.approx(0.9354298401, abs=1e-9)
    upper = [Fraction(float(x)) for x in optima["few"]]
    gamma = [*reversed(upper), *upper]
    voters = [(0 * b, 0 * b)] * 4 + [(c, b)]
    one, other = (output_one(gamma, [v[side] for v in voters]) for side in (0, 1))
    assert one - target * other > Fraction(1, 200)


def test_broken_rows_are_broken_for_private_voters() -> None:
    setting = majority.MajoritySetting(5, 0.9, 1.0)
    counts = {"cb": 3, "00": 2}
    low = claims_record.surely_broken_by(setting, [1.0] * 6, counts)
    b, c = setting.corner("bc")
    voters = [(c, b)] * 3 + [(0.0, 0.0)] * 2
    float_excess = voters[0][0] ** 3 - exp(0.9) * voters[0][1] ** 3
    assert float_excess < 0
    assert float(low) == pytest.approx(float_excess, abs=1e-14)
    assert low <= Fraction(c) ** 3 - Fraction(exp(0.9)) * Fraction(b) ** 3 + Fraction(1, 10**14)
    assert claims_record.surely_broken_by(setting, [1.0] * 6, {"bc": 3, "00": 2}) > 0


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("r", [Fraction(11, 10), Fraction(3)])
def test_sampling_spends_exactly_half_rounded_up(k: int, r: Fraction) -> None:
    for size in range(1, k + 1):
        chances = claims_record.majority_of_sample(k, size)
        gamma = [abs(2 * chance - 1) for chance in chances]
        assert worst_ratio(gamma, corner_pairs(r)) == r ** ceil(size / 2)
        np.testing.assert_allclose(
            [float(g) for g in gamma], majority.subsampling(k, size), atol=1e-15
        )


@given(
    st.integers(1, 3).flatmap(
        lambda m: st.tuples(
            st.just(m),
            st.lists(
                st.tuples(st.fractions(0, 1, max_denominator=9), st.fractions(0, 1)),
                min_size=2 * m - 1,
                max_size=2 * m - 1,
            ),
        )
    ),
    st.fractions(1, 4, max_denominator=9),
    st.sampled_from([Fraction(0), Fraction(1, 10)]),
)
def test_the_majority_theorem(voters: tuple[int, list[Pair]], r: Fraction, shift: Fraction) -> None:
    """Only p <= r p' + Delta is used, which is half of what privacy gives."""
    m, draws = voters
    p = [first for first, _ in draws]
    # Any p' between (p - Delta) / r and 1.
    lowest = [max(x - shift, Fraction(0)) / r for x in p]
    q = [low + share * (1 - low) for low, (_, share) in zip(lowest, draws, strict=True)]
    ones = [Fraction(1)] * (2 * m)
    allowed = 1 - (1 - shift) ** (2 * m - 1)
    assert output_one(ones, p) <= r**m * output_one(ones, q) + allowed


@pytest.mark.parametrize("m", [1, 2])
def test_the_largest_constant_by_brute_force(claims: Table, m: int) -> None:
    r = Fraction(exp(0.1))
    target = Fraction(exp(0.1 * m))
    largest = Fraction(1)
    for voters in combinations_with_replacement(corner_pairs(r), 5):
        one, other = (output_one([Fraction(1)] * 6, [v[s] for v in voters]) for s in (0, 1))
        f = (2 * one - 1) - target * (2 * other - 1)
        if f > 0:
            largest = min(largest, (target - 1) / f)
    found = row(claims, "lemma A.1", f"K = 5, m = {m},")
    assert found["value_found"] == pytest.approx(float(largest), rel=1e-12)
    assert found["value_claimed"] < found["value_found"]


def test_lemma_a_1_fails_below_tau(claims: Table) -> None:
    k, m, epsilon, slack = 35, 16, 0.1, 0.1
    # Theorem 2.3 at delta = 0, written out.
    tau = (exp(epsilon) - 1) * k / (exp(epsilon) + 1) + sqrt(
        2 * k * min(log(np.e + sqrt(k * epsilon**2) / slack), log(1 / slack))
    )
    found = row(claims, "lemma A.1", "K = 35, m = 16")
    assert f"({tau:.4f} epsilon, 0.1)-DP" in found["instance"]
    assert tau < m
    assert found["value_claimed"] == pytest.approx(1.6)
    # Output 1 from 18 voters at b or at c, the others at 0: a ratio of e^(18 epsilon).
    assert found["value_found"] == pytest.approx(1.8)
    r = Fraction(exp(epsilon))
    b, c = r / (r + 1), 1 / (r + 1)
    assert b**18 > r**16 * c**18
    assert found["status"] == REFUTED
    whole = row(claims, "lemma A.1", "K = 101, m = 28")
    assert whole["value_found"] == pytest.approx(5.1)
    g = (exp(1.6) - 1) / (
        2 * (exp(tau * 0.1) - exp(1.6) + (1 + exp(1.6)) * slack) / (exp(tau * 0.1) + 1)
        + exp(1.6)
        - 1
    )
    setting = majority.MajoritySetting(k, epsilon, m)
    assert claims_error._printed_constant(setting, tau, slack) == pytest.approx(g, rel=1e-12)
    assert g >= 1


def a_claim(**changes: Any) -> Claim:
    words = ("claim", "place", "instance", "says", "found", "quantity")
    known: dict[str, Any] = dict.fromkeys(words, "")
    values = {"value_claimed": 1.0, "value_found": 1.0, "relation": AT_MOST, "certificate": ""}
    return Claim(**{**known, **values, **changes})


@pytest.mark.parametrize(
    ("relation", "found", "sharpens", "status"),
    [
        (AT_MOST, 1.0, False, AGREES),
        (AT_MOST, 1.0 + 1e-12, True, AGREES),
        (AT_MOST, 1.1, True, REFUTED),
        (AT_MOST, 0.9, False, AGREES),
        (AT_MOST, 0.9, True, IMPROVED),
        (AT_LEAST, 0.9, False, REFUTED),
        (AT_LEAST, 1.1, False, AGREES),
        (AT_LEAST, 1.1, True, IMPROVED),
    ],
)
def test_a_status_follows_from_the_values(
    relation: str, found: float, sharpens: bool, status: str
) -> None:
    claim = a_claim(relation=relation, value_found=found, sharpens=sharpens)
    assert claim.status == status
    assert replace(claim, proved=False).status == UNDECIDED
    assert replace(claim, own=True).status == (FAILS if status == REFUTED else HOLDS)


def test_a_statement_that_holds_agrees_and_does_not_stop_the_run() -> None:
    """At K = 3, m = 2 and 3 no gamma has a lower error, three corners are enough, and so on."""
    config = replace(
        SMALL,
        draws=50,
        at_one=(3,),
        objectives=("3,3", "3,2"),
        counted=(5,),
        pure=(3,),
        approximate=(3,),
        three=("3,1,0.1",),
        doubled=(3,),
        certified=(3,),
        sampled=("3,1,0.5,0",),
        sampled_curve=(3,),
        constants=("3,3",),
        below=("35,5",),
        repeated=("3,1,0.1,2",),
    )
    outcome = CLAIMS.run(config)
    claims = outcome.tables["claims"]
    found = {
        name: set(claims.select(claim=name).column("status"))
        for name in set(claims.column("claim"))
    }
    assert found["surrogate objective"] == {AGREES}
    assert found["lemma A.1"] == {AGREES}
    assert found["subsampling"] == {AGREES}
    assert found["composition of queries"] == {AGREES}
    assert row(claims, "three corners", "K = 3, m = 1")["status"] == HOLDS
    words = {
        "With a small m and epsilon, the optimised gamma achieves the best utility": "agrees",
        "Where tau >= m, lemma A.1": "agrees",
        "With p_const up to (4) RR is": "agrees",
        "The majority of m sampled voters": "agrees",
        "The overall privacy loss over Q queries": "agrees",
    }
    for start, expected in words.items():
        (one,) = [c for c in outcome.comparisons if c.claim.startswith(start)]
        assert one.verdict == expected


def test_a_lost_proof_leaves_a_claim_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [a_claim(claim="x", value_found=2.0, proved=False)]
    judged = _judged("Words.", "Ours.", "none", claims, "x")
    assert judged.verdict == "not comparable"
    lost = Proof(constraints=3, tight=0, undecided=1)
    monkeypatch.setattr(claims_error, "prove_for_every_epsilon", lambda *_, **__: lost)
    assert claims_error._unanimous(5).status == UNDECIDED


def test_queries_to_voters_trained_once_do_not_compose(claims: Table) -> None:
    """The paper's own gamma in its own range: 12 labels at epsilon 0.5 each spend over 6."""
    record = row(claims, "composition of queries", "K = 41, m = 1, epsilon = 0.5")
    assert (record["value_claimed"], record["value_found"]) == (6.0, 6.048)
    assert "35 voters at bc" in record["found"]
    design = majority.design(41, 0.5, 1, objective="surrogate")
    # Rational voters with p / p' below e^(1/2): 1.6487 < sqrt(e) = 1.64872...
    r = Fraction(16487, 10000)
    assert float(r) < exp(0.5)
    laws = []
    for p in (r / (r + 1), 1 / (r + 1)):
        law = [comb(35, ones) * p**ones * (1 - p) ** (35 - ones) for ones in range(36)]
        chances = [Fraction(output_of(design, ones)) for ones in range(36)]
        laws.append(sum(mass * chance**12 for mass, chance in zip(law, chances, strict=True)))
    # e^6 < 403.4287935: the ratio is above it in fractions.
    assert laws[0] / laws[1] > Fraction(4034287935, 10**7) > Fraction(exp(6))
    assert log(laws[0] / laws[1]) == pytest.approx(6.048, abs=2e-3)
    # More than the delta' = 0.0001 with which the paper composes; r, and so the excess, is rounded.
    assert float(laws[0]) - exp(6) * float(laws[1]) == pytest.approx(0.0029, abs=1e-4)
    assert "the chance of it is 0.0029 above what (6, 0)-DP allows" in record["found"]


def output_of(design: dpopt.Design, ones: int) -> Fraction:
    """Pr[label 1 | ones], from the certified integers."""
    votes = [1] * ones + [0] * (design.setting.mechanisms - ones)
    return Fraction(design.table.row(votes)[1], design.table.total)


def test_an_exact_ratio_by_hand() -> None:
    chances = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    r = Fraction(2)
    # Two voters at 2/3 against 1/3: 0, 1, 2 ones with 1/9, 4/9, 4/9 and 4/9, 4/9, 1/9.
    up, down = 1 * 1 + 4 * 4 + 4 * 9, 4 * 1 + 4 * 4 + 1 * 9
    assert claims_sampling.exact_ratio(chances, 2, 2, r) == Fraction(up, down)


def test_every_query_more_is_bounded_by_the_voters(outcome: Outcome) -> None:
    table = outcome.tables["repeated-queries"]
    assert table.column("queries") == list(range(1, 13))
    spent, composed = table.column("spent_at_least"), table.column("composed")
    assert spent == sorted(spent)
    assert max(spent) < table.column("voters_composed")[0] == 20.5
    # One query is within its guarantee; ten are not.
    above = [a > b + 1e-9 for a, b in zip(spent, composed, strict=True)]
    assert above == [False] * 9 + [True] * 3


def test_two_computations_that_differ_stop_the_run() -> None:
    with pytest.raises(DpoptError, match="K = 7: two computations"):
        require(False, "K = 7")
    require(True, "K = 7")
    broken = majority.assess(majority.MajoritySetting(5, 0.1, 1), np.ones(6))
    with pytest.raises(DpoptError, match="not private"):
        proof_of(broken)
