"""Mechanisms of which several releases are private together, against recursions of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from operator import ge
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.stats import norm

import dpopt
from dpopt import Kernel, Majority, Multiclass, NotPrivateError, ParameterError, Plurality, verify
from dpopt.budget import Budgeted, curve_rows, gaussian_curve, gaussian_delta
from dpopt.composition import Engine, adaptive_delta
from dpopt.privacy.guarantee import Guarantee
from dpopt.shape import made
from dpopt.table import Graph, Table
from dpopt.table.least import pairs_of, undominated
from dpopt.votes import Spending
from tests.multiclass import pairs
from tests.oracles import by_histories, compositions, corners, counts_of_votes, in_floats, stick
from tests.proofs.judging import run

Pmf = tuple[Fraction, ...]
Pairs = Sequence[tuple[Pmf, Pmf]]
# A coin of .6 against one of .4, both ways.
COIN = Fraction(3, 5), Fraction(2, 5)
COINS: Pairs = [(COIN, COIN[::-1]), (COIN[::-1], COIN)]


def random_table(rng: np.random.Generator, inputs: int, outputs: int) -> Table:
    weights = rng.integers(1, 30, (inputs, outputs))
    total = int(np.lcm.reduce(weights.sum(axis=1)))
    scaled = [w * (total // int(row.sum())) for row in weights for w in row.tolist()]
    return Table(Graph(inputs, outputs), tuple(scaled), total)


def neighbours_of(table: Table) -> Pairs:
    rows = [
        tuple(Fraction(w, table.total) for w in table.row(x)) for x in range(table.inputs.inputs)
    ]
    return list(permutations(rows, 2))


def in_integers(table: Table) -> Any:
    """The pairs of rows, as weights."""
    return list(permutations([tuple(table.row(x)) for x in range(table.inputs.inputs)], 2))


# --- the recursion, over the pairs that count ----------------------------------------------------


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("seed", range(12))
def test_pairs_that_are_left_out_count_for_nothing(seed: int) -> None:
    """Of a random table, few pairs are kept, and the exact recursion over all is theirs."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, int(rng.integers(2, 6)), int(rng.integers(2, 4)))
    every = neighbours_of(table)
    fewer: Any = [
        tuple(tuple(Fraction(x, table.total) for x in side) for side in pair)
        for pair in undominated(set(in_integers(table)), table.total)
    ]
    assert set(fewer) <= set(every)
    growth = Fraction(int(rng.integers(8, 24)), 8)
    exact = by_histories([every] * 2, growth)
    assert by_histories([fewer] * 2, growth) == exact
    found = adaptive_delta(pairs_of(table), 2, math.log(growth))
    assert found.lower * (1 - 1e-9) - 1e-12 <= exact <= found.upper * (1 + 1e-9)
    assert found.upper <= float(exact) * 1.001 + 1e-9


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("seed", [*range(1, 12), 0])
def test_the_verifier_bounds_the_recursion(seed: int) -> None:
    """Integers that are rounded up: never below exact fractions, and close to them."""
    rng = np.random.default_rng(100 + seed)
    table = random_table(rng, int(rng.integers(2, 5)), int(rng.integers(2, 4)))
    epsilon, releases = Fraction(int(rng.integers(1, 16)), 8), int(rng.integers(1, 4))
    growth = Fraction(verify.exp(epsilon)[0])
    exact = by_histories([neighbours_of(table)] * releases, growth)
    pairs = in_integers(table)
    kept = verify.deciding(pairs, table.total)
    shown = verify.upper_delta(kept, table.total, releases, epsilon, 1000)
    assert exact <= shown <= exact * Fraction(1005, 1000) + Fraction(1, 10**9)
    if exact:
        with pytest.raises(verify.Refused, match="not shown to be private"):
            verify.decide_releases(pairs, table.total, releases, epsilon, exact * Fraction(99, 100))
    verdict = verify.decide_releases(
        pairs, table.total, releases, epsilon, exact * Fraction(101, 100) + Fraction(1, 10**6)
    )
    assert verdict.slack >= 0


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("seed", range(20))
def test_the_pairs_that_are_kept_are_those_below_no_other(seed: int) -> None:
    """By the definition, at every ratio of both; two codes keep the same curves."""
    rng = np.random.default_rng(200 + seed)
    table = random_table(rng, 6, int(rng.integers(3, 5)))
    every = neighbours_of(table)
    alphas = {p / q for pair in every for p, q in zip(*pair, strict=True)} | {Fraction(0)}
    profile = {pair: tuple(stick(*pair, alpha) for alpha in sorted(alphas)) for pair in every}
    maximal = {
        curve
        for curve in profile.values()
        if not any(other != curve and all(map(ge, other, curve)) for other in set(profile.values()))
    }
    integers = in_integers(table)
    names = dict(zip(integers, every, strict=True))
    for kept in (undominated(integers, table.total), verify.deciding(integers, table.total)):
        assert len(kept) == len(maximal)
        assert {profile[names[pair]] for pair in kept} == maximal


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(10))
def test_two_outputs_keep_the_corners_of_the_hull(seed: int) -> None:
    rng = np.random.default_rng(300 + seed)
    table = random_table(rng, 9, 2)
    pairs = in_integers(table)
    points = np.array([[q[i], p[i]] for i in range(2) for p, q in pairs])
    hull = ConvexHull([*points, [0, 0], [table.total, table.total]])
    corners_ = {tuple(point) for point in hull.points[hull.vertices] if point[1] > point[0]}
    for kept in (undominated(pairs, table.total), verify.deciding(pairs, table.total)):
        firsts = {verify.curve_of(pair)[0] for pair in kept}
        assert firsts == corners_


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1e-5, 1e-3])
def test_a_small_epsilon_has_about_the_total_variation(epsilon: float) -> None:
    """Of three coins .6 against .4, the exact sum; the grids stay small."""
    growth = Fraction(math.exp(epsilon))
    exact = by_histories([COINS] * 3, growth)
    spent = adaptive_delta([([0.6, 0.4], [0.4, 0.6])], 3, epsilon)
    assert spent.lower - 1e-12 <= exact <= spent.upper + 1e-12
    assert spent.upper - spent.lower < 1e-3
    integers = [((3, 2), (2, 3)), ((2, 3), (3, 2))]
    shown = verify.upper_delta(integers, 5, 3, Fraction(epsilon), 1000)
    assert exact * Fraction(10**12 - 1, 10**12) <= shown <= exact * Fraction(1001, 1000)


@pytest.mark.parametrize("outputs", [2, 3])
@pytest.mark.parametrize(
    ("total", "rare", "other", "delta"),
    [
        (4, 1, 1, 1e-12),
        (1 << 1200, 1, 1 << 1197, 0.45),
        (1 << 1200, 1, 2, 1e-6),
        (1 << 4000, 1 << 3998, (1 << 3998) + 1, 1e-6),
        (1 << 4000, 1, 0, 1e-6),
    ],
    ids=["equal", "ratio", "tiny", "long", "impossible"],
)
def test_tables_at_the_limits(
    outputs: int, total: int, rare: int, other: int, delta: float, tmp_path: Path
) -> None:
    """Equal rows, integers beyond floats, losses without bound: decided by both, alike."""
    setting = Kernel(
        "zero-one", inputs=2, outputs=outputs, releases=3, total_epsilon=1.0, total_delta=delta
    )
    rows = [[w, total - w, *[0] * (outputs - 2)] for w in (rare, other)]
    table = Table(setting.domain, tuple(w for row in rows for w in row), total)
    growth = Fraction(verify.exp(Fraction(1))[0])
    exact = by_histories([neighbours_of(table)] * 3, growth)
    assert exact < delta * 0.9
    design, path = made(setting, table, float_bound=None), tmp_path / "x.json"
    assert design.private
    design.save(path)
    assert dpopt.load(path).private
    assert run(path, None)[0] == 0


def test_a_design_stands_for_its_pairs() -> None:
    design = dpopt.design(Kernel("zero-one", 0.5, inputs=3))
    found = adaptive_delta(design, 3, 1.0)
    every = [(design.kernel[x], design.kernel[z]) for x, z in permutations(range(3), 2)]
    assert abs(found.upper / adaptive_delta(every, 3, 1.0).upper - 1) < 2e-3


def test_noise_that_ends_composes() -> None:
    """Of two shifts, the pairs are those of the pmf; one release spends what noise was made for."""
    noise = dpopt.design(dpopt.Noise(1, 0.5, 0.01))
    found = adaptive_delta(noise, 1, 0.5, accuracy=1e-6)
    assert found.lower - 1e-9 <= 0.01 <= found.upper + 1e-9
    pmf = noise.pmf(range(-200, 201))
    pair = [(np.append(pmf, 0), np.append(0, pmf))]
    twice = adaptive_delta(noise, 2, 0.7)
    assert abs(twice.upper / adaptive_delta(pair, 2, 0.7).upper - 1) < 3e-3
    # Noise that does not end has a dominating pair: each of two releases spends at most .5.
    endless = adaptive_delta(dpopt.design(dpopt.Noise(2, 0.5)), 2, 0.999)
    assert 0.0 < endless.upper < 1e-3
    assert endless.engine == Engine.LOSSES


@pytest.mark.parametrize(
    ("voters", "epsilon", "gamma", "releases", "total", "delta"),
    [
        (3, 0.5, [1, 1, 1, 1], 2, 1.0, 0.18409792625505),
        (3, 0.5, [1, 1, 1, 1], 3, 1.2, 0.20784392466204),
        (5, 0.3, [1, 0.5, 0.2, 0.2, 0.5, 1], 3, 0.4, 0.06219785644327),
    ],
)
def test_corners_that_are_left_out_count_for_nothing(
    voters: int, epsilon: float, gamma: list[float], releases: int, total: float, delta: float
) -> None:
    """The specification's values, from the reduced corners' hull."""
    setting = Majority(voters, epsilon, 0.5)
    design = dpopt.majority.assess(setting, gamma)
    pairs = setting.output_pairs(design.table)
    assert len(pairs) < len(corners(voters, epsilon, gamma))
    found = adaptive_delta(pairs, releases, total, accuracy=1e-6)
    assert found.lower - 1e-9 <= delta <= found.upper + 1e-12
    assert found.upper - delta < 1e-6
    if voters == 3 and releases == 2:
        every = corners(voters, epsilon, gamma)
        assert abs(in_floats(every, releases, total) - delta) < 1e-12


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("voters", "epsilon", "budgets"),
    [(2, 0.8, [(1, 0.5), (2, 1.5)]), (3, 0.7, [(1, 0.4), (2, 1.2), (3, 2.0)])],
)
def test_corners_of_three_classes(
    voters: int, epsilon: float, budgets: list[tuple[int, float]]
) -> None:
    """All 9^K choices of corners, circles too, against those that the theorems leave."""
    setting, ratio = Multiclass(voters, 3, epsilon, 1.5), Fraction(math.exp(epsilon))
    design = dpopt.design(setting)
    corner = [tuple(list(map(float, side)) for side in pair) for pair in pairs.corners(3, ratio)]
    shares = {
        counts: np.array(design.table.row(np.array(counts))) / design.table.total
        for counts in compositions(voters, 3)
    }
    every = []
    for chosen in product(corner, repeat=voters):
        sides = (counts_of_votes(side).items() for side in zip(*chosen, strict=True))
        every.append(tuple(sum(mass * shares[h] for h, mass in side) for side in sides))
    few = setting.output_pairs(design.table)
    assert len(few) < 50
    for releases, total in budgets:
        whole, kept = (adaptive_delta(each, releases, total) for each in (every, few))
        assert abs(whole.upper / kept.upper - 1) < 1e-6
        if voters == 2:
            brute = in_floats(every, releases, total)
            assert kept.lower - 1e-9 <= brute <= kept.upper + 1e-9


# --- designs -------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("releases", "total", "error"),
    [
        (20, 3.5246, 0.0333),
        (20, 5.3868, 0.0),
        (20, 3.0, 0.0480),
        (20, 2.0, 0.0970),
        (100, 9.7483, 0.0327),
    ],
)
def test_labels_of_eleven_voters(releases: int, total: float, error: float) -> None:
    """The specification's errors, to 1e-3; one release designed alone errs .06 at the first."""
    setting = Majority(11, 0.1, releases=releases, total_epsilon=total, total_delta=1e-5)
    design = dpopt.design(setting)
    assert design.private
    assert abs(design.expected_error - error) < 1e-3
    assert design.spent_delta <= 1e-5
    if error:
        alone = dpopt.design(Majority(11, 0.1, total / releases / 0.1))
        assert design.expected_error < 0.9 * alone.expected_error
        # The multipliers of the program bound all that are under the chosen curve.
        assert design.curve == "gaussian"
        assert 0 <= design.curve_bound - design.value < 1e-6
        assert design.bound is None
    else:
        assert design.gamma.tolist() == [1.0] * 12


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("releases", "total", "regret"), [(16, 4.0, 1.494), (20, 8.0, 0.688)])
def test_labels_of_fifteen_ballots(releases: int, total: float, regret: float) -> None:
    """The specification's mean regrets of three classes, which GNMax has at 1.898 and .963."""
    design = dpopt.design(
        Plurality(15, 3, releases=releases, total_epsilon=total, total_delta=1e-6)
    )
    assert regret - 0.01 < design.mean_regret < regret + 1e-3


def test_one_label_of_two_classes_under_a_gaussian_curve() -> None:
    """The closed form: the label is Phi(mu (c - n / 2)), for mu = .3 and 21 ballots .50796."""
    setting, n, mu = Plurality(21, 2, 1.0), 21, 0.3
    exact = sum(norm.cdf(-mu * abs(2 * c - n) / 2) * abs(2 * c - n) / (n + 1) for c in range(n + 1))
    assert abs(exact - 0.50796) < 1e-5
    value = dpopt.solve(setting.under(gaussian_curve(mu, 1e-9))).objective
    assert exact - 2e-3 < value <= exact + 1e-7


def test_two_labels_of_three_voters_by_brute_force() -> None:
    """What is promised holds for all corners and both labels, the second chosen after the first."""
    setting = Majority(3, 0.5, releases=2, total_epsilon=1.0, total_delta=0.01)
    design = dpopt.design(setting)
    spent = in_floats(corners(3, 0.5, design.gamma), 2, 1.0)
    assert spent <= 0.01
    assert abs(spent - design.spent_delta) < 1e-4
    assert spent > 0.0098


TOTAL: dict[str, Any] = {"total_epsilon": 2.0, "total_delta": 1e-3}
LABELS: dict[str, Any] = {"total_epsilon": 1.5, "total_delta": 1e-4, "releases": 6}
WORST: dict[str, Any] = {"objective": "worst-case"}
UTILITY = [[1.0, 0.0], [0.2, 1.0], [0.0, 1.0]]
SMALL: list[Any] = [
    Majority(5, 0.3, **LABELS),
    Majority(5, 0.3, **LABELS, **WORST),
    Multiclass(3, 3, 0.5, releases=4, **TOTAL),
    Plurality(5, 3, releases=5, **TOTAL),
    Plurality(5, 3, releases=5, **TOTAL, **WORST),
    Kernel("absolute", graph="path", inputs=5, releases=8, **TOTAL),
    Kernel(UTILITY, sense="maximise", releases=12, **TOTAL, **WORST),
    Kernel("zero-one", inputs=4, symmetry="symbols", releases=9, **TOTAL),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("setting", SMALL[::-1], ids=lambda each: f"{each.kind}-{each.releases}")
def test_designs_of_several_releases(setting: Budgeted, tmp_path: Path) -> None:
    """A design is saved, loaded and decided without the package; of more releases it is not.

    It is better than k designs of (total_epsilon / k, 0), which basic composition allows as well.
    """
    design, path = dpopt.design(setting), tmp_path / "x.json"
    share = dpopt.design(setting.one_release(Guarantee(setting.total_epsilon / setting.releases)))
    sign = 1 if setting.maximises else -1
    assert sign * design.value >= sign * share.value - 1e-6
    assert design.guarantee == Guarantee(setting.total_epsilon, setting.total_delta)
    assert design.certificate is not None
    assert design.certificate.arithmetic == "outward-rounded floats"
    design.save(path)
    again = dpopt.load(path)
    assert again.table == design.table
    code, lines, err = run(path, None)
    assert (code, err) == (0, "")
    assert f"{setting.releases} releases together" in lines[0]
    forged = json.loads(path.read_text())
    forged["body"]["setting"]["releases"] = 4 * setting.releases
    path.write_text(json.dumps(forged))
    assert run(path, None)[0] == 4
    with pytest.raises(NotPrivateError, match=f"{4 * setting.releases} releases are not"):
        dpopt.load(path)


def test_the_program_of_a_curve_has_its_rows() -> None:
    """The optimum under a curve keeps every event of every pair below each of its points."""
    setting, curve = Kernel("absolute", 1.0, graph="path", inputs=5), gaussian_curve(0.4, 1e-6)
    kernel = dpopt.solve(setting.under(curve))["kernel"].reshape(5, 5)
    assert kernel.sum(axis=1) == pytest.approx(np.ones(5))
    tight = 0
    for x, z in ((x, x + s) for x in range(5) for s in (-1, 1) if 0 <= x + s < 5):
        for point in curve:
            spent = np.maximum(kernel[x] - math.exp(point.epsilon) * kernel[z], 0).sum()
            assert spent <= point.delta + 1e-8
            tight += spent > point.delta - 1e-8
    assert tight > 5
    rows = curve_rows(setting.domain, curve)(np.eye(5).ravel())
    assert rows.worst > 0.5


def test_gaussian_delta_is_that_of_two_normals() -> None:
    for mu, epsilon in product((0.05, 0.5, 3.0), (0.0, 0.3, 4.0)):
        grid = np.linspace(-40, 40, 800_001)
        excess = norm.pdf(grid, mu) - math.exp(epsilon) * norm.pdf(grid)
        total = np.maximum(excess, 0).sum() * 1e-4
        assert gaussian_delta(mu, epsilon) == pytest.approx(total, rel=1e-4, abs=1e-9)


# --- what they spend -----------------------------------------------------------------------------


@pytest.mark.slow
def test_labels_together_spend_their_guarantee_once(tmp_path: Path) -> None:
    design = dpopt.design(SMALL[0])
    votes = [[1, 0, 1, 1, 0]] * 7
    assert [design.releases(votes[:n]) for n in (1, 6, 7)] == [1, 1, 2]
    assert len(design.release(votes)) == 7
    ledger = dpopt.Ledger(tmp_path / "a.ledger", dpopt.Guarantee(2.0, 1e-3))
    ledger.release(design, votes[:6], fresh=True)
    assert ledger.total("unnamed")[1] == design.guarantee
    with pytest.raises(dpopt.BudgetError):
        ledger.release(design, votes[:1], fresh=True)
    for fresh in (None, False):
        with pytest.raises(ParameterError, match=f"fresh is {fresh} and releases is 6"):
            ledger.charge(design, fresh=fresh)
    spending = Spending(SMALL[0], trained_once=False)
    assert spending.compositions(6)["simple"] == design.guarantee
    assert spending.compositions(13)["simple"].delta == pytest.approx(3e-4)
    batch = dpopt.vote(design, votes, trained_once=False)
    assert (batch.queries, batch.total.epsilon) == (7, 3.0)
    with pytest.raises(ParameterError, match="votes drawn afresh, trained_once=False"):
        Spending(SMALL[0], trained_once=True)
    with pytest.raises(ParameterError, match="of whom a record reaches one"):
        Spending(SMALL[3], voters_per_record=2)


@pytest.mark.parametrize("seed", range(5))
def test_a_hull_has_the_points_above_all_chords(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Many vertices, from x = 5 on; and few, with points above each other and on chords.
    arc = [(x, math.isqrt(400 * x) + int(rng.integers(0, 4))) for x in range(5, 60)]
    points = [(int(x), int(y)) for x, y in rng.integers(0, 9, (30, 2))] if seed % 2 else arc
    top = {x: max(y for other, y in points if other == x) for x, _ in points}
    sides = [(a, b) for a in top for b in top if a < b]

    def above(x: int) -> bool:
        return all(
            (top[x] - top[a]) * (b - a) > (top[b] - top[a]) * (x - a) for a, b in sides if a < x < b
        )

    assert verify.hull(points) == [(x, top[x]) for x in sorted(top) if above(x)]


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_takes_outputs_by_their_exact_ratio(seed: int) -> None:
    """Ratios that differ by 2^-120 and less, of weights from 1 to 2^60; Q may be 0."""
    rng = np.random.default_rng(seed)
    large = 2**60 + rng.integers(0, 4, (2, 12))
    small = rng.integers(0, 3, (2, 6))
    p, q = (np.concatenate(sides).tolist() for sides in zip(large, small, strict=True))
    kept = [(a, b) for a, b in zip(p, q, strict=True) if a]
    order = sorted(kept, key=lambda at: (at[1] == 0, Fraction(at[0], at[1] or 1), at), reverse=True)
    sums, expected = (0, 0), []
    for a, b in order:
        sums = sums[0] + b, sums[1] + a
        expected.append(sums)
    assert list(verify.curve_of((p, q))) == expected
