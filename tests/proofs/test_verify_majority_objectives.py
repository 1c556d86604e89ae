"""Worst cases and least regrets of majorities in the checker, against programs written out here."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import majority, verify
from dpopt.majority.priors import SamplePrior
from experiments.majority import baselines
from tests.oracles import poisson_binomial
from tests.proofs.judging import edited, run, saved

Array = npt.NDArray[np.float64]
Setting: Any = dpopt.Majority

WORST = ["uniform:0,1", "uniform:0.6,0.9", "common-uniform:0.6,1", "point:0.8,0.7,0.9,0.4,0.6"]
PAIR: Any = ("common-uniform:0,1", "common-uniform:0.8,1")
SETTINGS: dict[str, Any] = {
    **{f"worst {name}": Setting(5, 0.3, 1.0, objective="worst-case", prior=name) for name in WORST},
    "worst common-beta": Setting(5, 0.3, 1.0, objective="worst-case", prior="common-beta:2,2"),
    "worst pieces": Setting(
        11, 0.3, 3.0, objective="worst-case", prior="common-uniform:0,0.1,0.9,1"
    ),
    "worst Delta": Setting(5, 0.3, 1.0, 1e-3, 0.01, objective="worst-case"),
    "regret pair": Setting(11, 0.3, 3.0, objective="least-regret", priors=PAIR),
    "regret": Setting(11, 0.3, 3.0, objective="least-regret"),
}


def folded(masses: list[Any]) -> Array:
    """Return a_l - a_(K-l) for l above the middle."""
    pmf = np.array(masses)
    return (pmf - pmf[::-1])[len(pmf) // 2 :]


def corner_rows(voters: int, epsilon: float, allowance: float) -> tuple[Array, float]:
    """Return a and b of a . gamma <= b for every way to put voters at corners, Delta = 0."""
    b, growth = math.exp(epsilon) / (1 + math.exp(epsilon)), math.exp(allowance * epsilon)
    corners, rows = [(b, 1 - b), (1 - b, b), (1.0, 1.0), (0.0, 0.0)], []
    for placed in combinations_with_replacement(corners, voters):
        p, q = (folded(poisson_binomial(side)) for side in zip(*placed, strict=True))
        rows.append(p - growth * q)
    return np.array(rows), growth - 1


def margins_of(name: str, voters: int) -> Array:
    """Return (a_l - a_(K-l)) / 2 at many p, for independent p_i at all corners of their box."""
    kind, _, text = name.partition(":")
    numbers = [float(part) for part in text.split(",")]
    if kind == "uniform":
        points = product(numbers, repeat=voters)
    elif kind == "point":
        points = iter([tuple(numbers)])
    else:
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        points = ((p,) * voters for low, high in pairs for p in np.linspace(low, high, 2001))
    return np.array([folded(poisson_binomial(p)) / 2 for p in points])


def weights_of(name: str, voters: int) -> Array:
    """Return E sign(p - 1/2) (a_l - a_(K-l)) / 2 of a common p, by Gauss and Legendre."""
    low, high = (float(part) for part in name.partition(":")[2].split(","))
    nodes, shares = np.polynomial.legendre.leggauss(voters + 1)
    total = np.zeros((voters + 1) // 2)
    for a, b, sign in ((low, min(high, 0.5), -1), (max(low, 0.5), high, 1)):
        for node, share in zip(nodes, shares, strict=True) if a < b else ():
            p = (a + b) / 2 + (b - a) / 2 * node
            total += sign * share * (b - a) / 2 * folded(poisson_binomial([p] * voters)) / 2
    return total / (high - low)


@pytest.mark.parametrize("name", WORST)
def test_a_worst_case_is_that_of_the_program_written_out(name: str) -> None:
    found = dpopt.design(SETTINGS[f"worst {name}"])
    assert found.bound is not None
    assert found.bound.how == "proved"
    # The least t over (gamma, t).
    (rows, limit), margins = corner_rows(5, 0.3, 1.0), margins_of(name, 5)
    signed = np.vstack([margins, -margins])
    upper = [*np.insert(rows, 3, 0.0, axis=1), *np.insert(-signed, 3, -1.0, axis=1)]
    limits = [*[limit] * len(rows), *-signed.sum(axis=1)]
    least = linprog([0.0] * 3 + [1.0], upper, limits, bounds=(0, 1)).fun
    assert least > 0.01
    # A grid of 2,001 p has the peak within 1e-4 of its place.
    assert -float(found.bound) == pytest.approx(least, abs=1e-7 if "common" in name else 1e-9)


def test_a_regret_is_that_of_the_programs_written_out() -> None:
    found: Any = dpopt.design(Setting(5, 0.3, 1.0, objective="least-regret", priors=PAIR))
    rows, limit = corner_rows(5, 0.3, 1.0)
    upper, limits = [[*row, 0.0] for row in rows], [limit] * len(rows)
    for c in (weights_of(name, 5) for name in PAIR):
        # error = coin - c . gamma <= best + t coin, and best = coin - the largest c . gamma.
        alone = linprog(-c, rows, np.full(len(rows), limit), bounds=(0, 1))
        upper.append([*(-c), -c.sum()])
        limits.append(alone.fun)
    least = linprog([0.0] * 3 + [1.0], upper, limits, bounds=(0, 1)).fun
    assert -float(found.optimality.bound) == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("name", [*WORST[:3], "common-uniform:0,0.1,0.9,1", "common-beta:2,3"])
def test_a_largest_error_is_enclosed(name: str) -> None:
    rng = np.random.default_rng(len(name))
    rule = verify.LargestError({"voters": 5, "prior": name})
    margins = margins_of("common-uniform:0,1" if "beta" in name else name, 5)
    for _ in range(20):
        gamma = rng.integers(0, 1 << 20, 3) * rng.integers(0, 2, 3)
        most = float(np.abs(margins @ (1 - gamma / (1 << 20))).max())
        found = float(rule.largest(((1 << 20) - gamma).tolist(), 1 << 21))
        assert most - 1e-15 <= found <= most + (1e-6 if "common" in name else 1e-15)


BETWEEN = "uniform:0.1,0.3,0.6,0.9"


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("prior", "at", "voters"),
    [
        (BETWEEN, 0, [0.1] * 5),
        (BETWEEN, 2, [0.9] * 2 + [0.1] * 3),
        (BETWEEN, 5, [0.9] * 5),
        (f"common-{BETWEEN}", "1/5", ["1/5"] * 5),
        *((f"common-{BETWEEN}", p, [p] * 5) for p in (0.1, 0.3, 0.6, 0.9)),
        ("common-beta:2,2", 1, [1] * 5),
        ("beta:2,2", 1, [1, 0, 0, 0, 0]),
        ("point:0.7", None, [0.7] * 5),
        ("point:0.1,0.2,0.3,0,1", None, [0.1, 0.2, 0.3, 0, 1]),
    ],
)
def test_rows_of_an_error_enclose_those_over_all_votes(prior: str, at: Any, voters: Any) -> None:
    rule, chances = verify.LargestError({"voters": 5, "prior": prior}), [*map(Fraction, voters)]
    assert rule.voters(at) == chances
    pmf, unit = poisson_binomial(chances), 1 << verify.FIXED
    below, short = rule.pmf(at)
    assert short == sum(p not in (0, 1) for p in chances)
    assert all(0 <= a * unit - b <= short for a, b in zip(pmf, below, strict=True))
    for sign in (1, -1):
        row = rule.row(("error", at, sign))
        # sign sum (a_l - a_(5 - l)) (1 - gamma_l) / 2 <= t
        terms = {n: -sign * (pmf[n] - pmf[5 - n]) / 2 for n in (3, 4, 5)}
        assert list(row.terms) == [*(("gamma", n) for n in terms), ("t",)]
        assert row.terms["t",] == -1
        ends: Any = [*((row.terms["gamma", n], a) for n, a in terms.items())]
        for (low, high), exact in [*ends, (row.limit, sum(terms.values()))]:
            assert low <= exact <= high
            assert high - low <= Fraction(3 * short, unit)
        assert not row.equality
    # The largest is that of these rows.
    gamma = [Fraction(1, 3), Fraction(0), Fraction(1, 2)]
    if not prior.startswith("common"):
        rows = [at] if "point" in prior else range(6)
        each = [poisson_binomial(rule.voters(j)) for j in rows]
        most = max(
            abs(sum((a[3 + i] - a[2 - i]) * (1 - g) / 2 for i, g in enumerate(gamma))) for a in each
        )
        found = rule.largest([4, 6, 3], 12)
        assert 0 <= found - most <= Fraction(10 * 5, unit)


def test_errors_without_a_row() -> None:
    for prior, at, sign in [
        *((f"common-{BETWEEN}", p, 1) for p in (0.09, 0.31, 0.59, 0.91, -1, None)),
        *((BETWEEN, j, 1) for j in (-1, 6, 0.5, None)),
        *((BETWEEN, 0, sign) for sign in (0, 2, None)),
        # Priors without a largest error.
        *((prior, 0, 1) for prior in ("point:0.1,0.2", "samples:3x5:0123456789abcdef")),
    ]:
        with pytest.raises(verify.Malformed):
            verify.LargestError({"voters": 5, "prior": prior}).row(("error", at, sign))


@pytest.mark.parametrize("at", [Fraction(1, 3), Fraction(1, 2), Fraction(3, 4)])
def test_a_polynomial_is_split_where_it_is_asked_for(at: Fraction) -> None:
    """Its coefficients on [0, at] are the means of the first ones under Binomial(i, at)."""
    part = [5, -7, 11, 2, -1]

    def means(part: list[int], p: Fraction) -> list[Fraction]:
        pmfs = [poisson_binomial([p] * i) for i in range(len(part))]
        return [sum((a * b for a, b in zip(pmf, part, strict=False)), Fraction(0)) for pmf in pmfs]

    left, right = verify.split(part, at)
    for half, exact in ((left, means(part, at)), (right[::-1], means(part[::-1], 1 - at))):
        assert len(half) == len(part)
        assert all(0 <= a - b < i + 1 for i, (a, b) in enumerate(zip(exact, half, strict=True)))


def test_a_coefficient_as_large_as_the_tolerance_still_bounds() -> None:
    """f = (-1, -3, 3, 1) 2^-51 has 1 at p = 1, and a coefficient that is above it by 2^-50."""
    rule = verify.LargestError({"voters": 3, "prior": "common-uniform:0,1"})
    pmf = poisson_binomial([Fraction(4, 5)] * 3)
    error = -pmf[0] - 3 * pmf[1] + 3 * pmf[2] + pmf[3]
    assert error == Fraction(171, 125)
    assert error <= rule.largest([3, 1], 1 << 51) * (1 << 51) < error + 2


# Of one voter, the error is |p - 1/2| (1 - gamma): units that are shown have gamma = (5 - 3) / 8.
ALONE = Setting(1, 0.3, 1.0).to_dict()
SHOWN = {"total": "8", "weights": [["5", "3"]]}
QUARTER: dict[str, Any] = {"prior": "common-uniform:0,1", "best": 0, "multipliers": []}
POINT: dict[str, Any] = {"prior": "point:0.875", "coefficients": [0.375], "multipliers": []}


def test_the_worst_case_of_one_voter_by_hand() -> None:
    setting = {**ALONE, "objective": "worst-case", "prior": "uniform:0,1"}
    program = verify.majority(setting, SHOWN, None, {})
    assert (program.cost, program.value) == ({("t",): -1}, -Fraction(3, 8))
    assert program.boxes["t",] == (0, 1)
    assert program.row(("error", 0, 1)).terms["t",] == -1
    corner = next(iter(program.names()))
    assert ("t",) not in program.row(corner).terms
    with pytest.raises(verify.Malformed, match="with its weights alone"):
        verify.majority(setting, None, None, {})


def regrets_of(*proofs: dict[str, Any], units: Any = SHOWN) -> verify.Program:
    """Display one voter's least regret, of priors with their proofs."""
    priors = [proof["prior"] for proof in proofs]
    setting = {**ALONE, "objective": "least-regret", "priors": priors}
    return verify.majority(setting, units, None, {"priors": list(proofs)})


def test_the_regrets_of_one_voter_by_hand() -> None:
    """E|p - 1/2| is 1/4 and 3/8; a best error of -3/32 adds 1/4 to the regret 1 - gamma = 3/4."""
    program = regrets_of(QUARTER, POINT | {"best": "-3/32"})
    # Nothing shows that some rule reaches the errors that a proof calls the best.
    assert program.among == " against these least errors"
    assert program.row(("prior", 0)) == verify.Row(
        {("gamma", 1): -Fraction(1, 4), ("t",): -Fraction(1, 4)}, -Fraction(1, 4)
    )
    assert program.row(("prior", 1)) == verify.Row(
        {("gamma", 1): -Fraction(3, 8), ("t",): -Fraction(3, 8)}, -Fraction(15, 32)
    )
    *corners, first, second = program.names()
    assert [first, second] == [("prior", 0), ("prior", 1)]
    assert all(("t",) not in program.row(name).terms for name in corners)
    assert (program.cost, program.value) == ({("t",): -1}, -1)
    assert program.note.endswith("below for the proof's coefficients)")
    # No error is below 0, and no more than that is shown without multipliers.
    program = regrets_of(QUARTER, QUARTER)
    assert (program.value, program.note[-6:]) == (-Fraction(3, 4), "below)")
    assert regrets_of(POINT | {"best": 0}, QUARTER).note.endswith("coefficients)")
    assert regrets_of(QUARTER, QUARTER, units=None).point == {}
    with pytest.raises(verify.Refused, match="not shown to be the best"):
        regrets_of(QUARTER, QUARTER | {"best": "1/1000000000000"})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (POINT | {"prior": "point:0.5", "coefficients": [0], "best": 0}, "a fair coin"),
        (QUARTER | {"prior": "beta:2,3"}, "no coefficients are computed"),
    ],
)
def test_priors_without_a_regret(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(verify.Malformed, match=said):
        regrets_of(QUARTER, wrong)
    setting = {**ALONE, "objective": "least-regret", "priors": [QUARTER["prior"]] * 2}
    with pytest.raises(verify.Malformed, match="other priors"):
        verify.majority(setting, SHOWN, None, {"priors": [QUARTER]})


def test_a_common_p_is_enclosed_below_1e_14() -> None:
    # gamma = 1 - e_3 of five voters: the error is 5 p^2 (1 - p)^2 (2 p - 1), largest where
    # 5 (p^2 - p) = -1.
    rule = verify.LargestError({"voters": 5, "prior": "common-uniform:0,1"})
    most = 5 * 0.2**2 * math.sqrt(1 - 4 * 0.2)
    found = float(rule.largest([1, 0, 0], 2))
    assert abs(found - most) <= 1e-14
    piece = verify.LargestError({"voters": 5, "prior": "common-uniform:0,0.125,0.875,1"})
    exact = 5 * Fraction(7, 64) ** 2 * Fraction(3, 4)
    assert 0 <= piece.largest([1, 0, 0], 2) - exact <= Fraction(1, 10**14)
    inner = verify.LargestError({"voters": 5, "prior": "common-uniform:0.125,0.25"})
    exact = 5 * Fraction(3, 16) ** 2 * Fraction(1, 2)
    assert 0 <= inner.largest([1, 0, 0], 2) - exact <= Fraction(1, 10**14)
    # No p is sought between the intervals.
    design = dpopt.design(SETTINGS["worst pieces"])
    margins = margins_of("common-uniform:0,0.1,0.9,1", 11)
    most = float(np.abs(margins @ (1 - design.gamma[6:])).max())
    assert -design.value == pytest.approx(most, abs=1e-12)


def test_a_best_error_that_is_not_shown_is_refused(tmp_path: Path) -> None:
    path, proof = saved(SETTINGS["regret pair"], tmp_path)
    first, second = json.loads(proof.read_text())["priors"]
    for priors, code in (
        ([first | {"best": first["best"] + 1e-6}, second], 4),
        ([first], 2),
        ([first | {"multipliers": []}, second], 4),
    ):
        edited(proof, priors=priors)
        assert run(path, proof)[0] == code


def test_a_p_that_the_prior_does_not_allow_is_no_row(tmp_path: Path) -> None:
    path, proof = saved(SETTINGS["worst common-uniform:0.6,1"], tmp_path)
    lines = json.loads(proof.read_text())["multipliers"]
    for p in ("1/2", "0.7", 2, None, "-1"):
        edited(proof, multipliers=[*lines, ["error", p, 1, "1"]])
        assert run(path, proof)[0] == 2


@pytest.mark.parametrize("told", [{"objective": "least-regret"}, {"prior": "uniform:0,1"}])
def test_privacy_is_decided_without_the_coefficients(told: Any, tmp_path: Path) -> None:
    dpopt.design(Setting(5, 0.3, 1.0, **told)).save(tmp_path / "x.json")
    lines = list(verify.check(str(tmp_path / "x.json")))
    assert lines[0].startswith("private: majority")
    assert lines[2] == "value: to be looked at with the proof, which has its coefficients"


def test_what_has_no_bound_to_prove(tmp_path: Path) -> None:
    """A rule of the user's, and a worst case over samples."""
    setting, path = Setting(5, 0.3, 1.0, objective="worst-case"), tmp_path / "x.json"
    rule = majority.assess(setting, baselines.constant(setting))
    with pytest.warns(UserWarning, match="nothing says that a 'majority' like this is best"):
        rule.save(path, proof=True)
    assert list(tmp_path.iterdir()) == [path]
    _, lines, _ = run(path)
    assert len(lines) == 4
    assert lines[2].endswith("(minus the largest error for uniform:0,1)")
    samples = SamplePrior(np.array([[0.6] * 5, [0.7] * 5]))
    found: Any = dpopt.design(replace(setting, prior=samples))
    assert found.bound.how == "float"
    with pytest.raises(dpopt.ParameterError, match="does not say which p it allows"):
        found.save(path, proof=True)


def told_of(count: int, allowance: float, weight: int) -> str:
    """What the checker says of a constant gamma, over 2^62."""
    voters = verify.Voters(Setting(count, 0.1, allowance).to_dict(), None)
    half, unit = (count + 1) // 2, 1 << 62
    chances = [unit - weight] * half + [unit + weight] * half
    try:
        return str(voters.private(chances, 2 * unit).rows)
    except (verify.Refused, verify.Malformed) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("count", [1, 5, 21])
def test_an_allowance_below_all_floats_is_decided(count: int) -> None:
    # A constant output keeps any epsilon; any other moves with a vote by far more than 1e-301.
    assert told_of(count, 1e-300, 0) == str((count + 1) ** 2)
    assert told_of(count, 1e-300, 1 << 40).startswith("Refused")


@pytest.mark.slow
def test_too_many_close_corners_are_refused_before_they_are_decided() -> None:
    assert told_of(1001, 1e-300, 0).startswith("Malformed: a size is beyond")
    assert told_of(1001, 1.0, 0) == str(1002**2)
