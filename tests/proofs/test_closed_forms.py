"""Optima as functions of e^epsilon: against formulas known otherwise, and against solves at one."""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_poly, fmpz_poly

import dpopt
from dpopt import Kernel, Majority, Multiclass, Plurality, verify
from dpopt.proofs import closed
from dpopt.proofs.closed import Ratio, Root, private_where, roots_above_one
from dpopt.proofs.exact import displayed
from dpopt.public_prior.setting import PublicPrior
from dpopt.roo.minimum import RevealOrObscure
from tests.kernel import brute
from tests.proofs.judging import read

SAMPLES = [Fraction(101, 100), Fraction(9, 7), Fraction(16, 9), Fraction(5, 2), Fraction(31, 9), 40]


def path(loss: str, inputs: int, objective: str = "worst-case", **other: Any) -> Kernel:
    return Kernel(loss, 1.0, inputs=inputs, graph="path", **{"objective": objective, **other})  # type: ignore[arg-type]


KNOWN = {
    2: lambda r: 1 / (r + 1),
    3: lambda r: 2 * r / (r**2 + 2 * r - 1),
    4: lambda r: 2 * r * (r**2 + r + 1) / (r**4 + 2 * r**3 + 2 * r**2 - 1),
    5: lambda r: 2 * r * (r + 1) ** 2 / (r**4 + 2 * r**3 + 4 * r**2 - 2 * r - 1),
}


@pytest.mark.parametrize("inputs", KNOWN)
def test_minimax_errors_of_paths_have_one_formula(inputs: int) -> None:
    form = dpopt.closed_form(path("absolute", inputs))
    assert (len(form.pieces), form.breaks, form.pieces[0].status) == (1, (), "proved")
    assert [form(r) for r in SAMPLES] == [KNOWN[inputs](Fraction(r)) for r in SAMPLES]


def test_minimax_squared_errors_are_the_known_ones() -> None:
    form = dpopt.closed_form(path("squared", 3))
    assert [str(piece.value) for piece in form.pieces] == [
        *("1", "(r + 3)/(r (r + 1))", "2 r/((r - 1) (r + 3))")
    ]
    assert [root.polynomial for root in form.breaks] == ["r^2 - 3", "r - 3"]
    assert form.epsilons == pytest.approx([math.log(3) / 2, math.log(3)])
    assert form(3) == Fraction(1, 2)
    # Of four inputs, in the last piece.
    form = dpopt.closed_form(path("squared", 4))
    assert len(form.pieces) == 3
    assert form.breaks[-1].polynomial == "r^2 - 5"
    for r in (Fraction(5, 2), Fraction(17, 4), Fraction(100)):
        assert form(r) == (2 * r**2 + 2 * r + 4) / (r**3 + r**2 + 3 * r - 5)


@pytest.mark.parametrize("inputs", [3, 5])
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_randomised_response_is_rediscovered(inputs: int, objective: Any) -> None:
    form = dpopt.closed_form(Kernel("zero-one", 1.0, inputs=inputs, objective=objective))
    assert str(form.pieces[0].value) == f"{inputs - 1}/(r + {inputs - 1})"
    kernel = form.point(Fraction(7, 2))
    assert kernel["K", 1, 1] == Fraction(7, 2) / (Fraction(7, 2) + inputs - 1)


PRIORS = [[0.25, 0.25, 0.5], [0.125, 0.25, 0.625], [0.0625, 0.0625, 0.375, 0.5]]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_kernel_of_a_public_prior_is_rediscovered(prior: list[float]) -> None:
    # Lemma 3 of the paper: K_xx <= r q / (r q + 1 - q) at the rarest letter. Algorithm 1 has it.
    q = Fraction(min(prior))
    form = dpopt.closed_form(PublicPrior(prior, 1.0))
    # The same program as a kernel of one's own, with the prior as an invariance.
    other = dpopt.closed_form(
        Kernel("zero-one", 1.0, inputs=len(prior), invariant=prior, objective="worst-case")
    )
    assert [piece.status for piece in form.pieces] == ["proved"]
    assert form.pieces[0].value == other.pieces[0].value
    for r in map(Fraction, SAMPLES):
        assert form(r) == 1 - r * q / (r * q + 1 - q)
        found = dpopt.design(dpopt.PublicPrior(prior, math.log(r)))
        assert 1 - float(min(np.diag(found.kernel))) == pytest.approx(float(form(r)), abs=1e-9)


@pytest.mark.parametrize("loss", ["mean", "worst-case"])
def test_a_kernel_that_keeps_a_prior_is_the_optimum_of_another_solver(loss: Any) -> None:
    kept = np.array(PRIORS[1])
    form = dpopt.closed_form(Kernel("absolute", 1.0, inputs=3, invariant=kept, objective=loss))
    losses, prior = np.abs(np.subtract.outer(range(3), range(3))), np.full(3, 1 / 3)
    edges = list(permutations(range(3), 2))
    for seed in range(4):
        r = random.Random(seed).uniform(1.1, 9.0)
        weights = prior if loss == "mean" else None
        least = brute.least_loss(losses, edges, math.log(r), prior=weights, fixed=kept)
        assert form(r) == pytest.approx(least, abs=1e-8)


def geometric_value(prior: list[Fraction], r: Fraction, power: int) -> Fraction:
    """The Bayes loss of the truncated geometric mechanism, each output read as is best for it."""
    last, a = len(prior) - 1, 1 / r
    total = Fraction(0)
    for y in range(last + 1):
        pmf = [
            a ** abs(x - y) * (1 if y in (0, last) else 1 - a) / (1 + a) * weight / sum(prior)
            for x, weight in enumerate(prior)
        ]
        total += min(
            sum(mass * abs(x - read) ** power for x, mass in enumerate(pmf))
            for read in range(last + 1)
        )
    return total


@pytest.mark.parametrize(
    ("prior", "loss", "power"),
    [([1, 1, 1], "absolute", 1), ([5, 4, 4, 3], "absolute", 1), ([1, 2, 2, 1], "squared", 2)],
)
def test_the_geometric_mechanism_is_rediscovered(prior: list[int], loss: str, power: int) -> None:
    # Ghosh, Roughgarden and Sundararajan: it is best for every prior, once its outputs are read.
    form = dpopt.closed_form(path(loss, len(prior), "mean", prior=prior))
    # The setting scales them to sum 1, in floats.
    weights = list(map(Fraction, form.setting["prior"] or prior))
    points = [Fraction(random.Random(i).randint(1001, 9000), 1000) for i in range(60)]
    assert [form(r) for r in points] == [geometric_value(weights, r, power) for r in points]
    assert len(form.pieces) > 1


SETTINGS: list[Any] = [
    path("squared", 4),
    Majority(3, 0.1, 2.0, 0.0625, 0.125, objective="surrogate"),
    path("absolute", 4, "mean"),
    path("absolute", 3, "mean", delta=0.125),
    Kernel([[0.0, 3.0, 1.0], [1.0, 0.0, 2.5], [2.0, 1.0, 0.0]], 1.0),
    Kernel([[0.0, 3.0], [1.0, 0.0], [2.0, 7.0]], 1.0, sense="maximise"),
    Kernel("squared", 1.0, graph="cycle", inputs=4, objective="worst-case"),
    Majority(3, 0.1, 1.0, objective="surrogate"),
    Majority(5, 0.1, 2.0, objective="surrogate"),
    path("squared", 3, delta=0.0625),
    Kernel("zero-one", 1.0, inputs=3, delta=0.25, objective="worst-case"),
    Kernel("zero-one", 1.0, inputs=3, invariant=[0.25, 0.25, 0.5], objective="worst-case"),
    Plurality(4, 3, 1.0),
    Multiclass(3, 3, 0.1, 1.0),
    Multiclass(3, 3, 0.1, 1.0, delta=0.125),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_formula_is_the_exact_optimum_wherever_it_is_asked(setting: Any) -> None:
    form = dpopt.closed_form(setting)
    near = Fraction(1, 10**6)
    points = [Fraction(r) for r in SAMPLES]
    for root in form.breaks:
        low, high = root.within(near)
        points += [low - near, high + near]
    for r in points:
        assert form(r) == dpopt.exact_optimum(setting, r).value
        # The formula of the point is feasible, and as good as is claimed.
        program = displayed(setting.kind, read(setting), r)
        program.private = None  # without units, the rows themselves are looked at
        program.point = dict(form.point(r))
        assert verify.decide(program).missed == 0
        assert program.value == form(r)
    # Neighbouring formulas agree where they meet.
    for before, after in pairwise(form.pieces):
        root = fmpq_poly(list(after.low.coefficients))
        a, b, c, d = (
            fmpq_poly(list(side))
            for side in (before.value.over, before.value.under, after.value.over, after.value.under)
        )
        assert before.high == after.low
        assert divmod(a * d - b * c, root)[1] == 0
        assert a * d != b * c


PLURALITIES = {
    (3, 3): {
        Fraction(5, 2): lambda r: 12 / (2 * r**2 + r + 6),
        4: lambda r: (5 * r + 1) / (3 * (r**2 + r)),
    },
    (4, 3): {3: lambda r: (r + 4) / (r**2 + 2 * r), 5: lambda r: 2 / (r + 2)},
    (6, 3): {
        Fraction(9, 4): lambda r: 8 / (r**2 + 3 * r),
        7: lambda r: (5 * r + 1) / (3 * (r**2 + r)),
    },
}


@pytest.mark.parametrize("size", PLURALITIES, ids=str)
def test_pluralities_of_least_worst_regret_have_the_known_formulas(size: tuple[int, int]) -> None:
    setting = Plurality(*size, 1.0, objective="worst-case", loss="regret")
    form = dpopt.closed_form(setting)
    known = PLURALITIES[size]
    for r, formula in known.items():
        piece = form.piece(Fraction(r))
        assert piece.status == "proved"
        for near in (Fraction(r), Fraction(r) + Fraction(1, 7)):
            assert piece.value(near) == formula(near)
    # The last formula of these begins at 3, or at 4 for four ballots.
    assert form.breaks[-1].rational == (4 if size == (4, 3) else 3)


def test_floats_give_floats_and_fractions_fractions() -> None:
    form = dpopt.closed_form(path("absolute", 3))
    assert form(2) == Fraction(4, 7)
    assert isinstance(form(2), Fraction)
    assert isinstance(form(2.0), float)
    assert form(math.e) == pytest.approx(dpopt.design(path("absolute", 3)).value, abs=1e-9)
    for r in (0.5, 0, Fraction(3, 4), math.nan, math.inf, "2", True):
        with pytest.raises(dpopt.ParameterError, match="r is .*at least 1"):
            form(r)  # type: ignore[arg-type]


def test_it_is_told_and_drawn() -> None:
    form = dpopt.closed_form(path("squared", 3))
    assert "\n" not in repr(form)
    assert "pieces=3" in repr(form)
    lines: Any = form.plot().lines
    assert len(lines) == 3
    epsilons, values = lines[0].get_data()
    assert (epsilons[0], epsilons[-1]) == (0.0, 1.5 * max(form.epsilons))
    assert values.tolist() == [float(form(Fraction(math.exp(each)))) for each in epsilons]
    assert pickle.loads(pickle.dumps(form)) == form


def test_what_is_known_of_rows_decides_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed, "_PROVED", set())
    assert dpopt.closed_form(path("absolute", 3)).pieces[0].status == "fitted"
    monkeypatch.setattr(closed, "_degrees", lambda *_: (0, 0))
    with pytest.raises(dpopt.ParameterError, match="polynomials"):
        dpopt.closed_form(path("absolute", 3))


# --- roots and text ---


def above_one(factor: fmpz_poly) -> tuple[Root, ...]:
    return roots_above_one(tuple(map(int, factor.coeffs())))


def changes(polynomial: fmpq_poly, x: int) -> int:
    """How often the sign changes along the Sturm sequence of a polynomial without double roots."""
    sequence = [polynomial, polynomial.derivative()]
    while sequence[-1].degree() > 0:
        sequence.append(-divmod(sequence[-2], sequence[-1])[1])
    signs = [value > 0 for value in (p(fmpq(x)) for p in sequence) if value != 0]
    return sum(a != b for a, b in pairwise(signs))


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(30))
def test_roots_are_as_many_as_sturm_s_theorem_says(seed: int) -> None:
    rng = random.Random(seed)
    polynomial = fmpz_poly([rng.randint(-9, 9) for _ in range(rng.randint(3, 9))] + [1])
    for factor, _ in polynomial.factor()[1]:
        found = [float(root) for root in above_one(factor)]
        rational = fmpq_poly([int(a) for a in factor.coeffs()])
        assert len(found) == changes(rational, 1) - changes(rational, 10**6)
        # And numpy, which knows neither.
        companion = np.roots([int(a) for a in reversed(factor.coeffs())])
        near = [z.real for z in companion if abs(z.imag) < 1e-7 and z.real > 1 + 1e-7]
        assert found == pytest.approx(sorted(near))


def test_roots_are_ordered_and_enclosed() -> None:
    root_two = above_one(fmpz_poly([-2, 0, 1]))[0]
    near = Root.of(Fraction(665857, 470832))  # a convergent of the square root of 2, above it
    assert root_two < near
    assert not near < root_two
    assert not root_two < root_two
    low, high = root_two.within(Fraction(1, 10**20))
    assert low**2 < 2 < high**2
    assert high - low <= Fraction(1, 10**20)
    assert float(root_two) == math.sqrt(2)
    assert str(root_two) == "1.41421"
    # (r^2 - 2)^2 = 1 / 10^12 has two roots near the square root of 2, told by their squares.
    size = 10**6
    polynomial = fmpz_poly([4 * size**2 - 1, 0, -4 * size**2, 0, size**2])
    roots = [root for factor, _ in polynomial.factor()[1] for root in above_one(factor)]
    squares = sorted(float(root) ** 2 for root in roots)
    assert squares == pytest.approx([2 - 1e-6, 2 + 1e-6], abs=1e-12)
    assert sorted(roots)[0] < sorted(roots)[1]


def test_ratios_in_lowest_terms_are_told_in_factors() -> None:
    for over, under, text in [
        ([0], [3], "0"),
        ([2], [4], "1/2"),
        ([1, 1], [2], "(r + 1)/2"),
        ([8, -1], [12], "(8 - r)/12"),
        ([0, -2], [1, 1], "-2 r/(r + 1)"),
        ([0, 0, 3], [1, 2, 1], "3 r^2/(r + 1)^2"),
        ([1], [0, 2], "1/(2 r)"),
        ([-1, 0, 1], [-1, 1], "r + 1"),
    ]:
        ratio, r = Ratio.of(fmpq_poly(over), fmpq_poly(under)), Fraction(7, 3)
        sides = [sum(a * r**i for i, a in enumerate(side)) for side in (over, under)]
        assert (str(ratio), ratio(r)) == (text, sides[0] / sides[1])


# --- where published rules are private ---


def test_randomised_response_of_fixed_chances_is_private_from_its_own_ratio_on() -> None:
    truth = {("K", x, y): Ratio((3,) if x == y else (1,), (5,)) for x in range(3) for y in range(3)}
    floors = {("u", y): Ratio((1,), (5,)) for y in range(3)}
    setting = Kernel("zero-one", 1.0, inputs=3)
    assert private_where(setting, {**truth, **floors}) == ((Root.of(Fraction(3)), None),)
    # A rule's variables are the program's.
    with pytest.raises(dpopt.ParameterError, match="point is"):
        private_where(RevealOrObscure(7, 2, 1.0), {("p", 0): Ratio((1,))})


@pytest.mark.parametrize(("records", "categories"), [(5, 2), (7, 2), (6, 3)])
def test_one_chance_for_all_counts_has_the_paper_s_formula(records: int, categories: int) -> None:
    # q = 1 / (1 + (n / k)(r - 1)), once for each smallest count 0..n // k.
    form = dpopt.closed_form(RevealOrObscure(records, categories, 1.0, rule="roo"))
    assert len(form.pieces) == 1
    for r in (Fraction(3, 2), Fraction(7, 2)):
        assert form(r) == (records // categories + 1) / (
            1 + Fraction(records, categories) * (r - 1)
        )


@pytest.mark.parametrize("rule", ["exact", "journal"])
def test_the_formulas_are_those_of_the_recursions(rule: Any) -> None:
    form = dpopt.closed_form(RevealOrObscure(7, 2, 1.0, rule=rule))
    for epsilon in (0.1, 0.25, 0.35, 0.6, 1.5):
        found = dpopt.design(RevealOrObscure(7, 2, epsilon, rule=rule))
        assert float(form(math.exp(epsilon))) == pytest.approx(sum(found.q), abs=1e-9)


def test_the_journal_s_rule_of_seven_records_is_not_private_between_two_ratios() -> None:
    form = dpopt.closed_form(RevealOrObscure(7, 2, 1.0, rule="journal"))
    gaps: list[tuple[Root, Root]] = []
    for piece in form.pieces:
        low = piece.low
        for high, point in piece.parts:
            for a, b in private_where(RevealOrObscure(7, 2, 1.0, rule="exact"), point):
                start, end = max(a, low), b if high is None or (b and b < high) else high
                if low < start:
                    gaps.append((low, start))
                if end is not None and end != high:
                    gaps.append((end, piece.high))  # type: ignore[arg-type]
            if high is not None:
                low = high
    assert [tuple(map(str, gap)) for gap in gaps] == [("1.24208", "1.32708"), ("1.32708", "4/3")]
    # The audit, which knows none of this, says the same just inside and just outside.
    for ratio, private in ((1.242, True), (1.2422, False), (1.33, False), (1.334, True)):
        assert (
            dpopt.design(RevealOrObscure(7, 2, math.log(ratio), rule="journal")).private is private
        )
