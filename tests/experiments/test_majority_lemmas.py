from fractions import Fraction as F
from itertools import product

import pytest

from dpopt import majority
from experiments.majority import lemmas
from experiments.majority.lemmas import (
    LEMMAS,
    Config,
    Gamma,
    allowed,
    double_subsampling,
    mean_output,
    run,
    unequal_errors,
)
from experiments.registry import Outcome
from tests.experiments.comparing import ran
from tests.oracles import poisson_binomial

SMALL = Config(voters=(3, 5), ratios=("3/2",), points=4, gammas=1)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return ran(run, SMALL)


@pytest.mark.parametrize("gamma", [(F(1, 3), F(1)), (F(1, 2), F(1, 2), F(3, 4))])
def test_the_mean_output_is_that_of_all_outcomes(gamma: Gamma) -> None:
    k = 2 * len(gamma) - 1
    whole = [-g for g in reversed(gamma)] + list(gamma)
    for p in (F(0), F(1, 7), F(2, 3), F(1)):
        exact = sum(a * h for a, h in zip(poisson_binomial((p,) * k), whole, strict=True))
        assert mean_output(gamma, p) == exact


def test_the_allowed_pairs_are_those_of_privacy() -> None:
    ratio = F(5, 2)

    def private(p: F, q: F) -> bool:
        pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
        return all(a <= ratio * b for a, b in pairs)

    for i, j in product(range(11), repeat=2):
        p, q = F(i, 10), F(j, 10)
        low, high = allowed(p, ratio)
        assert private(p, q) == (low <= q <= high)


def test_double_subsampling_is_the_package_s() -> None:
    for k, m in ((5, 2), (7, 3), (11, 4)):
        found = majority.double_subsampling(k, m)[(k + 1) // 2 :]
        assert [float(g) for g in double_subsampling(k, m)] == pytest.approx(found, abs=1e-12)


def test_every_lemma_holds_on_the_grid(outcome: Outcome) -> None:
    table = outcome.tables["margins"]
    assert len(table.rows) == 2 * len(LEMMAS)
    assert all(row["holds"] and row["cases"] > 0 for row in table.records)
    assert {c.identifier: c.verdict for c in outcome.comparisons} == {
        f"lemma {name}": "agrees" for name in LEMMAS
    }
    assert all(m > 0 for m in table.select(lemma="B.1").column("least_margin"))


def test_the_audit_finds_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """The majority of all voters in the place of that of 2m - 1."""

    def whole(voters: int, m: int) -> Gamma:
        del m
        return (F(1),) * ((voters + 1) // 2)

    monkeypatch.setattr(lemmas, "double_subsampling", whole)
    found = run(SMALL)
    verdicts = {c.identifier: c.verdict for c in found.comparisons}
    assert verdicts["lemma B.10"] == "refuted"
    assert list(verdicts.values()).count("refuted") == 1


def test_unequal_voters_break_lemma_b_11() -> None:
    """By all outcomes: the pointwise larger gamma has the larger error."""
    small, large = unequal_errors()
    for gamma, error in (((F(99, 100), F(37, 100)), small), ((F(99, 100), F(1)), large)):
        here = poisson_binomial((F(9, 10), F(9, 10), F(0)))
        noisy = sum(
            (a * (1 + s * gamma[max(i, 3 - i) - 2]) / 2)
            for i, (a, s) in enumerate(zip(here, (-1, -1, 1, 1), strict=True))
        )
        assert error == abs(noisy - here[2] - here[3])
    assert small == 0
    assert large == F(63, 20_000)


def test_equation_83_as_printed_is_another_number() -> None:
    half = F(1, 2)
    above = half * (3 * half**3 + half**3)
    printed = above - half * (half**2 + 3 * half * half) + half
    right = above - half * (half**3 + 3 * half**3) + half
    assert (printed, right) == (F(1, 4), half)
