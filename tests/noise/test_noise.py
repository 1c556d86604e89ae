"""Noise on all integers: the specification's values, a judge in fractions, bounds, releases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import Noise, NotPrivateError, ParameterError, verify
from dpopt.noise.many import certified_delta, gaussian, laplace
from dpopt.noise.table import NoiseTable
from dpopt.shape import made
from tests.oracles import exponential

Masses = dict[int, Fraction]


def exp_enclosed(epsilon: float) -> tuple[Fraction, Fraction]:
    """e^epsilon between two rationals, 100 digits after the point."""
    low = exponential(epsilon)
    return low, low + Fraction(1, 10**100)


def written_out(table: NoiseTable, periods: int) -> Masses:
    """Weights of -N..N and of so many periods beyond, not normalised."""
    weights = {x: Fraction(w) for x, w in enumerate(table.weights)}
    for j in range(1, periods + 1):
        for x in range(table.last - table.period + 1, table.last + 1):
            weights[x + j * table.period] = table.weights[x] * table.ratio**j
    return {s * x: w for x, w in weights.items() for s in (1, -1)}


def total_of(table: NoiseTable, masses: Masses) -> Fraction:
    """The sum of all weights, those beyond the core with all their repetitions."""
    core = table.last - table.period
    ends = sum(w for x, w in masses.items() if core < abs(x) <= table.last)
    return sum(w for x, w in masses.items() if abs(x) <= core) + ends / (1 - table.ratio)


def spent(table: NoiseTable, ratio: Fraction) -> list[Fraction]:
    """Hockey sticks of all shifts at a ratio, in both directions, over the total; in whole numbers.

    What lies beyond three periods of a window that ends beyond the core repeats it in proportion.
    """
    masses, scale = written_out(table, 5), table.ratio.denominator**5
    reach, period = table.last + 5 * table.period, table.period
    weights = np.array([int(masses[x] * scale) for x in range(-reach, reach + 1)], dtype=object)
    source, target = weights * ratio.denominator, weights * ratio.numerator
    whole, tail = total_of(table, masses) * scale * ratio.denominator, 1 / (1 - table.ratio)
    sticks = []
    for shift in range(1, period + 1):
        edge = table.last - period + shift
        window = np.arange(reach - edge - period, reach + edge + period + 1)
        for step in (shift, -shift):
            excess = np.maximum(source[window] - target[window + step], 0)
            inner, ends = excess[period:-period], np.append(excess[:period], excess[-period:])
            sticks.append((inner.sum() + tail * ends.sum()) / whole)
    return sticks


SPECIFIED = [
    (3, "absolute", 1.0, 0.0, 2.86083248956),
    (10, "squared", 3.0, 0.0, 15.1940593244),
    (3, "squared", 1.0, 0.05, 9.894754718),
    (3, "absolute", 1.0, 1e-3, 2.83705653756),
    (2, "squared", math.log(2), 1e-6, 16.3967071771),
    (1, "absolute", 1.0, 0.05, 0.681016322195),
    (1, "absolute", 1.0, 1e-3, 0.842984043354),
]


@pytest.mark.parametrize(("sensitivity", "loss", "epsilon", "delta", "value"), SPECIFIED)
def test_specified(sensitivity: int, loss: Any, epsilon: float, delta: float, value: float) -> None:
    """Certified values of the specification, and its closed form to 1e-12."""
    design = dpopt.design(Noise(sensitivity, epsilon, delta, loss))
    assert design.value == pytest.approx(value, rel=1e-12 if sensitivity == 1 else 1e-9)
    assert design.bound is not None
    assert 0 <= design.value - design.bound <= 1e-9 * value
    assert design.bound.how == "proved"


@pytest.mark.sample(6)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1, 0.4])
def test_sensitivity_one(epsilon: float, delta: float) -> None:
    """F(m) = max(0, p0 r^(1 - m) - delta) / (r - 1): one distribution for every loss."""
    ratio = math.exp(epsilon)
    p0 = (ratio - 1 + 2 * delta) / (ratio + 1)
    m = np.arange(1, 2 + math.ceil(math.log(p0 / delta) / epsilon))
    tails = np.maximum(0, p0 * ratio ** (1.0 - m) - delta) / (ratio - 1)
    designs = [dpopt.design(Noise(1, epsilon, delta, loss)) for loss in ("absolute", "squared")]
    assert designs[0].value == pytest.approx(2 * tails.sum(), rel=1e-9)
    assert designs[1].value == pytest.approx(2 * ((2 * m - 1) @ tails), rel=1e-9)
    assert designs[0].table == designs[1].table


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.4), (4, 0.7), (7, 2.5), (20, 0.1)])
def test_staircase(sensitivity: int, epsilon: float) -> None:
    """Geng and Viswanath's staircase, summed for each step by hand; HiGHS agrees."""
    x = np.arange(0, sensitivity * math.ceil(60 / epsilon))
    values = []
    for step in range(1, sensitivity + 1):
        weights = np.exp(-epsilon * ((x + sensitivity - step) // sensitivity)) * np.where(x, 2, 1)
        values.append(float(weights @ x / weights.sum()))
    design = dpopt.design(Noise(sensitivity, epsilon))
    assert design.value == pytest.approx(min(values), rel=1e-9)
    solved = dpopt.design(Noise(sensitivity, epsilon), backend="highs")
    assert solved.value == pytest.approx(design.value, rel=1e-7)
    assert design.support == math.inf


def settings_to_100(count: int) -> Iterator[Noise]:
    """Log-uniform sensitivity from 1 to 100, epsilon from .01 to 10, delta from 1e-12 to .1."""
    rng = np.random.default_rng(2026)
    for _ in range(count):
        sensitivity = round(math.exp(rng.uniform(0, math.log(100))))
        epsilon = math.exp(rng.uniform(math.log(0.01), math.log(10)))
        delta = math.exp(rng.uniform(math.log(1e-12), math.log(0.1)))
        yield Noise(sensitivity, epsilon, delta, ("absolute", "squared")[int(rng.integers(2))])


NUMBERS = [
    *((1, 1.0, 0.01), (2, 0.5, 0.0), (2, 3.0, 1e-4)),
    *((3, 1.0, 0.2), (4, 0.3, 1e-3), (4, 1.0, 1e-5)),
]
LOSSES: list[Any] = ["absolute", "squared", [0, 1], [0.0, 0.5, 0.5, 3.0]]
GRID = [Noise(*numbers, loss) for numbers in NUMBERS for loss in LOSSES]
# Large sensitivities, small deltas, ends that are hard to find, probabilities of very different
# size; the last but one is endless, and HiGHS fails at first at the last.
HARD = [
    Noise(6, 8.1, 4e-10, "absolute"),
    Noise(12, 9.9, 1e-12, "squared"),
    Noise(2, 0.001, 0.5, "absolute"),
    Noise(3, 10.0, 1e-15, "absolute"),
    Noise(5, 0.1, 1e-6, [0.0, 0.0, 0.0, 1.0, 4.0]),
    Noise(6, 0.05, 3e-9, "squared"),
    Noise(14, 4.7, 6e-7, "absolute"),
    Noise(13, 4.58, 1.5e-12, "squared"),
    Noise(4, 0.0873, 1.98e-11, "absolute"),
    Noise(10, 2.849611023501739, 2.2332357141171e-12, "squared"),
]
# Of a loss that levels off: their noise may have no end.
LEVEL = [Noise(2, 0.05, delta, [0, 0, 1, 5]) for delta in (1e-5, 1e-3)]
LEVEL.append(Noise(2, 0.1, 1e-5, [0, 1, 2, 5]))
# Thirteen of them were once without end, refused or loose; a few small ones are quick.
RANDOM = sorted(settings_to_100(300), key=lambda one: one.sensitivity / min(1, 6 * one.epsilon))
AT_NIGHT = [pytest.param(setting, 1e-7, marks=pytest.mark.nightly) for setting in RANDOM[12:]]


@pytest.mark.parametrize(
    ("setting", "apart"),
    [
        *((setting, 1e-7) for setting in [*GRID, *RANDOM[:12]]),
        *((setting, 1e-8) for setting in HARD),
        *((setting, 1e-9) for setting in LEVEL),
        *AT_NIGHT,
    ],
    ids=repr,
)
def test_private_and_next_to_its_bound(setting: Noise, apart: float) -> None:
    """By the judge in fractions, at the lower end of e^epsilon."""
    design = dpopt.design(setting)
    assert max(spent(design.table, exp_enclosed(setting.epsilon)[0])) <= Fraction(setting.delta)
    assert design.private
    assert design.bound is not None
    assert -1e-12 <= design.value / design.bound - 1 <= apart


@pytest.mark.parametrize("backend", ["highs", "cvxpy:CLARABEL"])
def test_other_solvers(backend: str) -> None:
    """The program written out, solved by others; one that is too large says so."""
    setting = Noise(3, 1.0, 1e-3)
    found, own = dpopt.design(setting, backend=backend), dpopt.design(setting)
    assert found.value == pytest.approx(own.value, rel=1e-6)
    assert found.bound is not None
    assert found.bound <= own.value * (1 + 1e-9)
    assert found.bound == pytest.approx(own.value, rel=1e-6)
    with pytest.raises(ParameterError, match="written out up to 200,000. Leave out backend"):
        dpopt.design(Noise(300, 1.0), backend=backend)
    with pytest.raises(dpopt.SolverError, match="time for additive noise is used up"):
        dpopt.design(setting, time_limit=0.0)


@pytest.mark.parametrize("setting", [Noise.example(), Noise(2, 1.0), Noise(1, 1.0, 1e-3)], ids=repr)
def test_a_point_of_the_program(setting: Noise) -> None:
    point = setting.point(dpopt.solve(setting.problem()))
    design = dpopt.certify(point, setting=setting)
    assert design.private
    assert design.value == pytest.approx(dpopt.design(setting).value, rel=1e-6)
    with pytest.raises(ParameterError, match="the variables p of the program"):
        dpopt.certify(point[1:], setting=setting)
    with pytest.raises(ParameterError, match="releases is 3; for several it is no linear program"):
        dpopt.certify(point, setting=Noise(1, 1.0, 1e-6, releases=3))


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "loss"),
    [
        (2, 1.0, 0.05, "squared"),
        (2, 0.7, 0.2, "absolute"),
        (3, 1.0, 0.1, [0, 1]),
        (2, 1.5, 1e-3, "absolute"),
    ],
)
def test_no_uneven_noise_is_better(
    sensitivity: int, epsilon: float, delta: float, loss: Any
) -> None:
    """A program over all p on a window, not only even ones, by another solver."""
    setting, reach = Noise(sensitivity, epsilon, delta, loss), 24
    x, ratio = np.arange(-reach, reach + 1), math.exp(epsilon)
    shifts, eye = [s * d for d in range(1, sensitivity + 1) for s in (1, -1)], np.eye(x.size)
    losses = np.vstack([eye - ratio * np.eye(x.size, k=shift) for shift in shifts])
    spared = np.kron(np.eye(len(shifts)), np.ones(x.size))
    rows = np.block([[losses, -np.eye(len(losses))], [np.zeros((len(shifts), x.size)), spared]])
    limits = np.append(np.zeros(len(losses)), np.full(len(shifts), delta))
    cost = np.append(setting.losses_of(np.abs(x)), np.zeros(len(losses)))
    total = np.append(np.ones(x.size), np.zeros(len(losses)))
    answer = linprog(cost, rows, limits, total[None], [1.0], bounds=(0, None))
    design = dpopt.design(setting)
    assert design.bound is not None
    assert answer.fun >= design.bound - 1e-6
    # The window of the program is a restriction; where it holds the optimum, both agree.
    if loss != [0, 1]:
        assert answer.fun == pytest.approx(design.value, rel=1e-6)


def test_refused_by_a_unit() -> None:
    """A weight moved beyond the limit is refused, with the shift; within it, not."""
    setting = Noise(3, 1.0, 0.05, "squared")
    table = dpopt.design(setting).table
    low, high = exp_enclosed(1.0)
    for place in range(1, table.last + 1):
        weights = list(table.weights)
        weights[place] += weights[place] // 1000 + 1
        changed = NoiseTable(tuple(weights), table.ratio, table.period)
        most = max(spent(changed, low)), max(spent(changed, high))
        if most[1] > Fraction(setting.delta):
            with pytest.raises(NotPrivateError, match="delta is exceeded"):
                made(setting, changed)
        elif most[0] <= Fraction(setting.delta):
            assert made(setting, changed).private


@pytest.mark.parametrize("ratio", [Fraction(1, 4), Fraction(367, 1000), Fraction(368, 1000)])
def test_a_tail_must_not_fall_too_fast(ratio: Fraction) -> None:
    """A staircase at epsilon 1 with another ratio: e^-1 = 0.36788 decides."""
    table = NoiseTable((1000, 1000, 368, 368, 368), ratio, 3)
    if ratio < Fraction(36787, 100000):
        with pytest.raises(NotPrivateError):
            made(Noise(3, 1.0), table)
    else:
        assert made(Noise(3, 1.0), table).private


def saved(folder: Path, design: Any) -> Path:
    path = folder / "noise.json"
    design.save(path, proof=True)
    return path


CASES = [
    Noise(3, 1.0),
    Noise(3, 1.0, 0.05, "squared"),
    Noise(4, 1.0, 1e-5, [0, 1]),
    Noise(1, 0.5, 1e-6, [0, 0.5, 2]),
]


@pytest.mark.parametrize("setting", CASES, ids=repr)
def test_proof_of_the_bound(tmp_path: Path, setting: Noise) -> None:
    """Weak duality by hand: the least column minus delta times the largest multipliers."""
    path = saved(tmp_path, dpopt.design(setting))
    lines = list(verify.check(str(path), str(tmp_path / "noise.proof.json")))
    assert any(line.startswith("optimal: no other is below") for line in lines)
    proof = json.loads((tmp_path / "noise.proof.json").read_text())
    scale = {line[1]: Fraction(line[2]) for line in proof["multipliers"]}
    last, reach = proof["last"], proof["last"] + setting.sensitivity
    _, ratio = exp_enclosed(setting.epsilon)
    losses = setting.losses_of(np.arange(reach + 2)).tolist()
    columns = {x: Fraction(losses[abs(x)]) for x in range(-reach - 1, reach + 2)}
    price = Fraction(0)
    for shift, places, values in proof["rows"]:
        factor, end = scale.get(shift, Fraction(0)), Fraction(proof["ends"][shift - 1])
        for x, value in zip(places, values, strict=True):
            # A row and its mirror image, half each.
            for sign in (1, -1):
                columns[sign * x] += factor * Fraction(value) / 2
                columns[sign * (x + shift)] -= ratio * factor * Fraction(value) / 2
        for x in range(last + 1, reach + 2):
            for sign in (1, -1):
                columns[sign * x] += factor * end * (1 if x <= last + shift else 1 - ratio) / 2
        price += factor * max([Fraction(value) for value in values] + [end])
    bound = min(columns.values()) - Fraction(setting.delta) * price
    assert Fraction(proof["bound"]) <= bound + Fraction(1, 10**60)


@pytest.mark.parametrize("setting", CASES, ids=repr)
def test_forged_files(tmp_path: Path, setting: Noise) -> None:
    """What is no longer private, or no longer proved, is refused."""
    path = saved(tmp_path, dpopt.design(setting))
    content = json.loads(path.read_text())
    weights = content["body"]["table"]["weights"]
    ratio = content["body"]["table"]["ratio"]
    forged = [
        {"weights": [str(3 * int(weights[0])), *weights[1:]], "ratio": ratio},
        {"weights": weights, "ratio": "1/10" if ratio != "0" else "1"},
        {"weights": [*weights[:-1], "-1"], "ratio": ratio},
        {"weights": weights[: setting.sensitivity], "ratio": ratio},
    ]
    for table in forged:
        path.write_text(json.dumps({**content, "body": {**content["body"], "table": table}}))
        assert verify.main([str(path)]) in (2, 4)
        with pytest.raises(dpopt.DpoptError):
            dpopt.load(path)
    path.write_text(json.dumps(content))
    proof_path = tmp_path / "noise.proof.json"
    proof = json.loads(proof_path.read_text())
    shift, places, values = proof["rows"][0]
    wrong: list[dict[str, Any]] = [
        {"rows": [[shift, places, [-1.0, *values[1:]]], *proof["rows"][1:]]},
        {"rows": [proof["rows"][0], *proof["rows"]]},
        {"rows": [[shift, [proof["last"] + 1, *places[1:]], values], *proof["rows"][1:]]},
        {"bound": "1000"},
        {"ends": [-1.0] * setting.sensitivity},
    ]
    for change in wrong:
        proof_path.write_text(json.dumps({**proof, **change}))
        assert verify.main([str(path), str(proof_path)]) in (2, 4), change


def test_tails_of_draws() -> None:
    """Periods beyond the table, drawn in parts: mean, and Pr[|Z| >= m] far out."""
    design = dpopt.design(Noise(2, 0.02))
    signed = design.simulate(np.zeros(100_000, dtype=int), np.random.default_rng(6))
    assert np.sign(signed).mean() == pytest.approx(0, abs=0.02)
    draws = np.abs(signed)
    assert draws.mean() == pytest.approx(design.mean_absolute, rel=0.02)
    far = 400
    x = np.arange(far, 20_000)
    assert np.mean(draws >= far) == pytest.approx(2 * design.pmf(x).sum(), rel=0.1)
    assert np.mean(draws.astype(float) ** 2) == pytest.approx(design.variance, rel=0.05)


def test_data() -> None:
    """Any integers, of the shape given; int64 where it holds, else Python's."""
    design = dpopt.design(Noise(1, 1.0, 1e-3))
    assert type(design.release(7)) is int
    assert type(design.release(10**30)) is int
    assert abs(design.release(10**30) - 10**30) <= design.support
    matrix = design.release(np.arange(6).reshape(2, 3))
    assert matrix.dtype == np.int64
    assert matrix.shape == (2, 3)
    edge = design.release(np.full(50, 2**63 - 1))
    assert max(edge) > 2**63 - 1
    assert design.release([1, 10**20]).dtype == object
    assert design.release(np.array([], dtype=int)).size == 0
    assert design.releases([1, 2, 3]) == 3
    for wrong in (1.0, True, "1", [1.5], None, np.array([True]), [[1], [2, 3]]):
        with pytest.raises(ParameterError, match="^data must be"):
            design.release(wrong)


@pytest.mark.parametrize("setting", CASES, ids=repr)
def test_numbers(setting: Noise) -> None:
    """Moments and the dominating pair by plain sums."""
    design = dpopt.design(setting)
    masses = written_out(design.table, 60 if design.table.ratio else 0)
    total = sum(masses.values())
    variance = sum(w * x * x for x, w in masses.items()) / total
    assert design.variance == pytest.approx(float(variance), rel=1e-9)
    pair = setting.dominating(design.table)
    assert pair.delta(setting.epsilon * (1 + 1e-15)) <= setting.delta + 1e-15
    low, _ = exp_enclosed(setting.epsilon / 2)
    assert pair.delta(setting.epsilon / 2) == pytest.approx(
        float(max(spent(design.table, low))), rel=1e-9
    )
    least = dpopt.certify(design, delta=max(setting.delta, 1e-9))
    assert least.upper <= setting.epsilon * (1 + 1e-12)


def test_delta_of_several_releases() -> None:
    """Two releases, by all pairs of outputs in floats; discrete Laplace noise is pure."""
    for pmf in (gaussian(12, 2.0), laplace(30, 1.5)):
        whole = np.concatenate([pmf[:0:-1], pmf])
        one, other = np.append(whole, 0.0), np.append(0.0, whole)
        exact = np.maximum(np.outer(one, one) - math.exp(0.8) * np.outer(other, other), 0).sum()
        upper = certified_delta(pmf, 2, 0.8)
        assert exact * (1 - 1e-12) <= upper <= exact * (1 + 1e-4)


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "releases", "by_gaussian", "by_laplace", "by_search"),
    [
        (8.0, 16, 6.826, 7.834, 6.096),
        (1.0, 8, 142.8, 127.8, 117.2),
        (4.0, 12, 17.10, 17.83, 14.93),
        (4.0, 16, 22.79, 31.67, 21.05),
        (8.0, 64, 27.29, 49.9, 27.0),
    ],
)
def test_several_releases(
    epsilon: float, releases: int, by_gaussian: float, by_laplace: float, by_search: float
) -> None:
    """The specification's variances, to 1e-3; what is released is certified."""
    setting = Noise(1, epsilon, 1e-6, "squared", releases)
    design = dpopt.design(setting)
    assert design.gaussian == pytest.approx(by_gaussian, rel=1e-3)
    assert design.laplace == pytest.approx(by_laplace, rel=1e-3)
    assert design.value <= by_search * (1 + 1e-3)
    assert design.value == design.found
    assert design.bound is None
    assert certified_delta(design.table.probabilities, releases, epsilon) <= 1e-6
    assert design.certificate is not None
    assert design.certificate.arithmetic == "outward-rounded floats"
    assert design.releases(np.arange(releases + 1)) == 2


@pytest.mark.nightly
@pytest.mark.slow
def test_a_few_releases(tmp_path: Path) -> None:
    """Design, save, load; a table with more delta is refused, and so is a solver."""
    setting = Noise(1, 2.0, 1e-3, "absolute", 3)
    design = dpopt.design(setting)
    assert design.search == "found, not proved optimal"
    assert design.value <= min(design.gaussian, design.laplace)
    design.save(tmp_path / "x.json")
    assert dpopt.load(tmp_path / "x.json").table == design.table
    with pytest.raises(NotPrivateError, match="3 releases are not shown to be"):
        made(setting, dpopt.design(Noise(1, 2.0, 1e-3)).table)
    with pytest.raises(ParameterError, match="^releases is 3"):
        dpopt.design(setting, backend="highs")
    assert verify.main([str(tmp_path / "x.json")]) == 2


# What the verifier's own noise decides, against sums over all integers.

UNTIDY = [
    NoiseTable(weights, ratio, period)
    for weights, ratio, period in (
        ((9, 7, 8, 5, 1), Fraction(0), 1),
        ((9, 4), Fraction(2, 5), 1),
        ((9, 4, 6), Fraction(1, 3), 2),
        ((9, 4, 6, 1, 5), Fraction(1, 3), 2),
        ((5, 9, 0, 3, 2, 7), Fraction(1, 2), 3),
        ((5, 9, 0, 3), Fraction(3, 4), 3),
    )
]


@pytest.mark.parametrize("table", UNTIDY, ids=lambda table: str(table.weights))
def test_the_verdict_is_of_the_worst_shift(table: NoiseTable) -> None:
    """Both directions of a shift spend the same; e^epsilon is between 1.5 and 1.6."""
    exp_to: verify.Growth = lambda bits: (15, 16, 10)  # noqa: ARG005, E731
    ends = [spent(table, Fraction(ratio, 10)) for ratio in (15, 16)]
    assert all(sticks[::2] == sticks[1::2] for sticks in ends)
    low, high = (sticks[::2] for sticks in ends)
    verdict = table.exact.decide(max(low) + Fraction(1, 3), exp_to)
    assert (verdict.rows, verdict.slack) == (2 * table.period, Fraction(1, 3))
    assert verdict.at == 1 + low.index(max(low))
    assert table.exact.decide(max(low), exp_to).slack == 0
    for limit in (Fraction(0), max(low) - Fraction(1, 10**9), *high):
        first = next(i for i, stick in enumerate(low) if stick > limit)
        surely = "is not" if high[first] > limit else "is not shown"
        with pytest.raises(verify.Refused, match=f"the noise {surely} within delta") as caught:
            table.exact.decide(limit, exp_to)
        assert (caught.value.at, caught.value.missed) == (1 + first, low[first] - limit)


@pytest.mark.parametrize(
    ("weights", "ratio"), [([1], 0), ([0, 0], 0), ([1, 1], 1), ([1, 1], Fraction(-1, 2))]
)
def test_no_noise(weights: list[int], ratio: Any) -> None:
    with pytest.raises(verify.Malformed, match="no noise"):
        verify.Noise(weights, Fraction(ratio), 1)


@pytest.mark.parametrize("table", UNTIDY, ids=lambda table: str(table.weights))
def test_rows_of_a_proof_are_sums_over_all_integers(table: NoiseTable) -> None:
    """Multipliers given up to 4, and one for all x beyond: sum_x lambda(x) (p(x) - 2 p(x + d))."""
    rng, most, last = np.random.default_rng(len(table.weights)), table.period, 4
    proof = {
        "last": last,
        "rows": [[d, [*range(-last, last + 1, d)], []] for d in range(1, most + 1)],
        "ends": rng.integers(1, 9, most).tolist(),
    }
    for row in proof["rows"]:
        row[2] = rng.integers(0, 9, len(row[1])).tolist()
    setting = {"sensitivity": most, "delta": 0.25, "epsilon": 1.0, "loss": "absolute"}
    units = {"weights": list(table.weights), "ratio": str(table.ratio)}

    def program(low: int, high: int) -> Any:
        enclosed = Fraction(low), Fraction(high)
        return verify.noise({**setting, "releases": 1}, units, enclosed, proof)

    # Far out, what is left has less than a millionth of the mass.
    masses, reach = written_out(table, 100), 60
    total = sum(masses.values())
    exact = program(2, 2)
    assert sum(exact.point.values()) == 1
    for x in range(min(table.last - most, last + most) + 1):
        assert exact.point["p", x] == pytest.approx(float(masses[x] * (2 if x else 1) / total))
    assert ("p", table.last - most + 1) not in exact.point
    near = range(last + most + 1)
    point: dict[Any, Any] = {("p", x): masses.get(x, 0) * (2 if x else 1) for x in near}
    point["beyond",] = total - sum(point.values())
    for d, places, multipliers in proof["rows"]:
        given, end = dict(zip(places, multipliers, strict=True)), proof["ends"][d - 1]
        plain = Fraction(0)
        for x in range(-reach, 400):
            multiplier = end if x > last else given.get(x, 0)
            source, target = masses.get(x, 0), masses.get(x + d, 0)
            plain += multiplier * (source - 2 * target)
        row = exact.row(("privacy", d))
        assert all(low == high for low, high in row.terms.values())
        side = sum(row.terms[v][0] * point[v] for v in row.terms)
        assert float(side) == pytest.approx(float(plain), rel=1e-9)
        assert row.limit == max(*multipliers, end) / 4
        wide, coarse = program(2, 3).row(("privacy", d)), program(3, 3).row(("privacy", d))
        for v, ends in wide.terms.items():
            assert ends == (coarse.terms[v][0], row.terms[v][0])
            assert ends[0] <= ends[1]


def test_a_shift_without_positions_has_the_row_of_its_end() -> None:
    proof = {"last": 3, "rows": [[1, [], []]], "ends": [2]}
    rows = verify.noise_rows(proof, 1, 3, Fraction(1), (Fraction(2), Fraction(2)))
    assert rows["privacy", 1].terms == {("p", 4): (1, 1), ("beyond",): (-1, -1)}


@pytest.mark.parametrize("table", UNTIDY, ids=lambda table: str(table.weights))
def test_the_first_draw_has_the_distribution(table: NoiseTable) -> None:
    """In fractions; the last period stands for all that repeat it."""
    (drawn,) = table._core._weights
    most, masses = len(drawn) - 1, written_out(table, 400)
    assert (most > table.last) == (table.ratio > 0)
    beyond = table.ratio / (1 - table.ratio)
    total = total_of(table, masses)
    for x, weight in enumerate(drawn):
        repeated = 1 + beyond if x > most - table.period else 1
        assert Fraction(weight, sum(drawn)) == masses[x] * (2 if x else 1) * repeated / total


def test_of_equal_shifts_the_smallest_is_named() -> None:
    proof = dpopt.design(Noise(3, 1.0)).certificate
    assert proof is not None
    assert proof.tightest == "integers 1 apart"
