"""The judge of `dpopt.verify`: against brute force in fractions, 60 digits, and forged files.

Nothing here shares code with it. `python -m tests.mutation judge` flips its comparisons and its
roundings one by one, and these tests have to fail for each.
"""

from __future__ import annotations

import copy
import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations, product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import dpopt
from dpopt import Setting, verify
from dpopt.privacy.graph import directed_pairs
from dpopt.shape import _KINDS
from dpopt.table import Graph, Inputs, Losses, rounded
from tests.proofs.judging import optimum
from tests.shape.checks import put

mpmath.mp.dps = 400
# An enclosure that is asked for 64 bits and more is at least so near.
NEAR = Fraction(1, 1 << 60)


@cache
def e_to(x: Fraction) -> Fraction:
    """e^x to 300 digits and more, by mpmath."""
    value = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
    return Fraction(int(value * mpmath.mpf(2) ** 1200), 1 << 1200)


EPSILONS = [Fraction(x) for x in ("0", "1/1000000000000", "1/10", "7/10", "1", "5/2", "20")]


# --- e^x ---

EXPONENTS = [
    *EPSILONS,
    *(Fraction(x) for x in ("-1/7", "-3", "600", "-600", "1/3", "255/256", "4000", "-4000")),
    Fraction(0.1),
    Fraction(1, 10**300),
]


@pytest.mark.parametrize("bits", [1, 8, 64, 320, 1000])
def test_exp_encloses_sixty_digits_and_more(bits: int) -> None:
    # The series of the last one ends before its second term, which is not far from a unit.
    for x in (*EXPONENTS, Fraction((1 << 30) - 1, 1 << (bits + 46))):
        low, high = verify.exp(x, bits)
        value = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        ends = [mpmath.mpf(end.numerator) / end.denominator for end in map(Fraction, (low, high))]
        # Beyond 400 digits mpmath itself is rounded.
        assert ends[0] <= value * (1 + mpmath.mpf(10) ** -390), x
        assert ends[1] >= value * (1 - mpmath.mpf(10) ** -390), x
        assert ends[1] - ends[0] <= value * mpmath.mpf(2) ** (1 - bits), x


def test_exp_of_zero_and_of_what_would_take_long() -> None:
    low, high = verify.exp(0)
    assert low == 1 < high <= 1 + Fraction(1, 1 << 320)
    for x in (4001, -4001, Fraction(4_000_001, 1000)):
        with pytest.raises(verify.Malformed, match="beyond 4000"):
            verify.exp(x)


@pytest.mark.sample(9)
@pytest.mark.parametrize("bits", [1, 64, 300])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_growth_is_enclosed_by_integers(epsilon: Fraction, bits: int) -> None:
    low, high, unit = verify.growth(epsilon)(bits)
    assert (type(low), type(high), unit) == (int, int, 1 << bits)
    assert low <= unit * e_to(epsilon) <= high
    assert high - low <= 2 * e_to(epsilon) + 2


def test_growth_of_a_rational_is_exact() -> None:
    ratio = Fraction(7, 3)
    assert verify.growth(1, (ratio, ratio))(64) == (7, 7, 3)
    # Of a wider enclosure nothing is taken for exact.
    assert verify.growth(1, (ratio, ratio + 1))(64) == verify.growth(1)(64)


# --- w_v <= e^epsilon w_u ---


def worst_ratio(
    weights: list[int], total: int, groups: list[list[int]], ratio: Fraction
) -> tuple[Fraction, set[tuple[int, int]]]:
    """The least slack of all rows that are not 0 <= 0, and the rows that have it."""
    slacks = {
        (v, u): (ratio * weights[u] - weights[v]) / total
        for group in groups
        for v, u in permutations(group, 2)
        if weights[v] or weights[u]
    }
    least = min(slacks.values(), default=Fraction(1))
    return least, {row for row, slack in slacks.items() if slack == least}


def columns_of(groups: list[list[int]]) -> list[list[int]]:
    return [list(column) for column in zip(*groups, strict=True)]


def random_groups(rng: random.Random) -> tuple[list[int], int, list[list[int]], Fraction]:
    total, epsilon = rng.randrange(1, 90), rng.choice(EPSILONS)
    low = rng.randrange(0, max(1, total // 2))
    weights = [rng.choice((0, rng.randint(low, total))) for _ in range(rng.randint(2, 8))]
    members = rng.choice((2, 2, 3, 4))
    groups = [
        rng.choices(range(len(weights)), k=members)
        if rng.random() < 0.2
        else (rng.sample(range(len(weights)), k=min(members, len(weights))) * 2)[:members]
        for _ in range(rng.randint(1, 6))
    ]
    return weights, total, groups, epsilon


@pytest.mark.sample(15)
@pytest.mark.parametrize("seed", range(40))
def test_ratio_verdicts_are_those_of_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        weights, total, groups, epsilon = random_groups(rng)
        slack, rows = worst_ratio(weights, total, groups, e_to(epsilon))
        grown, alike = verify.growth(epsilon), {(weights[v], weights[u]) for v, u in rows}
        if slack < 0:
            with pytest.raises(verify.Refused) as caught:
                verify.decide_ratios(weights, total, columns_of(groups), grown)
            v, u = caught.value.at
            assert (weights[v], weights[u]) in alike
            assert 0 <= caught.value.missed + slack <= NEAR * 10**9
            continue
        verdict = verify.decide_ratios(weights, total, columns_of(groups), grown)
        size = len(groups[0])
        assert verdict.rows == size * (size - 1) * len(groups)
        assert 0 <= slack - verdict.slack <= NEAR * 10**9
        # A group that is one variable again and again has no row, and slack all the same.
        if verdict.at is not None and alike:
            v, u = verdict.at
            assert (weights[v], weights[u]) in alike or v == u


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
def test_ratio_is_decided_to_one_unit(epsilon: Fraction) -> None:
    total, growth = 1 << 62, verify.growth(epsilon)
    for low in (1, 3, 10**6 + 7, total // 7):
        high = int(e_to(epsilon) * low)
        verdict = verify.decide_ratios([high, low], total, [[0], [1]], growth)
        assert verdict.at == (0, 1) or high == low
        with pytest.raises(verify.Refused) as caught:
            verify.decide_ratios([low, high + 1], total, [[0], [1]], growth)
        assert caught.value.at == (1, 0)
        assert caught.value.missed > 0


def test_ratio_of_few_weights() -> None:
    growth = verify.growth(0, (Fraction(5, 2), Fraction(5, 2)))
    assert verify.decide_ratios([5, 2], 7, [[0], [1]], growth) == verify.Verdict(2, 0, (0, 1))
    with pytest.raises(verify.Refused, match=r"by 0.143") as caught:
        verify.decide_ratios([6, 2], 7, [[0], [1]], growth)
    assert caught.value.missed == Fraction(1, 7)
    growth = verify.growth(0)
    assert verify.decide_ratios([3, 3, 3], 9, [[0, 1], [1, 2]], growth).slack == 0
    with pytest.raises(verify.Refused):
        verify.decide_ratios([1 << 62, (1 << 62) - 1], 1 << 63, [[0], [1]], growth)
    # Without neighbours, and of weights that are all zero.
    growth = verify.growth(1)
    for nothing in ([], [[], []]):
        assert verify.decide_ratios([1], 1, nothing, growth) == verify.Verdict(0, 1, None)
    assert verify.decide_ratios([0, 0, 1], 1, [[0], [1]], growth) == verify.Verdict(2, 1, None)
    # An output that nobody has hides no slack of the others.
    others = verify.decide_ratios([0, 0, 4, 3], 9, [[0, 2], [1, 3]], growth)
    alone = verify.decide_ratios([4, 3], 9, [[0], [1]], growth)
    assert (others.rows, others.slack, others.at) == (4, alone.slack, (2, 3))
    assert verify.decide_ratios([2, 2], 4, [[0], [0]], growth).at == (0, 0)
    assert verify.decide_ratios([2, 2], 4, [[0], [1]], growth, 600).rows == 600


Asked = list[int]


def coarse(asked: Asked, fine: int, ends: tuple[int, int], exact: tuple[int, int, int]) -> Any:
    """e^epsilon that is enclosed by given ends over 4, until it is asked for so many bits."""

    def grown(bits: int) -> tuple[int, int, int]:
        asked.append(bits)
        return exact if bits >= fine else (*ends, 4)

    return grown


def judged_by(kind: str, weights: tuple[int, int], total: int, grown: Any) -> Any:
    """The verdict of two weights of which each is the other's neighbour, by either judge."""
    if kind == "ratio":
        return verify.decide_ratios(list(weights), total, [[0], [1]], grown)
    edges = [([0], [1], [1])]
    return verify.decide_sets(list(weights), total, edges, grown, Fraction(0))


@pytest.mark.parametrize("kind", ["ratio", "set"])
def test_ratio_and_set_that_ends_do_not_tell_ask_for_more_bits(kind: str) -> None:
    # 4 / 2 = 2: refused at the lower end 7/4, and neither broken nor kept at the upper end 8/4.
    asked: Asked = []
    assert judged_by(kind, (4, 2), 6, coarse(asked, 200, (7, 8), (5, 5, 2))).slack == Fraction(1, 6)
    assert asked == [67, 134, 268]
    with pytest.raises(verify.Refused, match="above"):
        judged_by(kind, (4, 2), 6, coarse([], 200, (7, 8), (5, 5, 3)))
    # Broken at the upper end, too.
    asked = []
    with pytest.raises(verify.Refused) as caught:
        judged_by(kind, (4, 2), 6, coarse(asked, 200, (6, 7), (5, 5, 2)))
    assert asked == [67]
    assert caught.value.missed == Fraction(4, 24)


@pytest.mark.parametrize("kind", ["ratio", "set"])
def test_ratio_and_set_that_no_bits_tell_are_refused(kind: str) -> None:
    total, asked = 1 << 63, list[int]()
    assert verify.FINEST == 128 << 9
    with pytest.raises(verify.Refused, match="too close"):
        judged_by(kind, (4, 2), total, coarse(asked, 10**9, (7, 8), (1, 1, 1)))
    assert asked == [128 << n for n in range(10)]


# --- sum_y max(0, w_xy - e^epsilon w_x'y) <= delta ---


def worst_set(
    weights: list[int], total: int, edge: Any, ratio: Fraction, delta: Fraction
) -> list[Fraction]:
    """The slack of the worst set of outputs that is not empty, in both directions, of all sets."""
    slacks = []
    for here, there in ((edge[0], edge[1]), (edge[1], edge[0])):
        outputs = [
            (weights[a], weights[b])
            for a, b, n in zip(here, there, edge[2], strict=True)
            for _ in range(n)
            if weights[a] or weights[b]
        ]
        sets = (s for k in range(1, len(outputs) + 1) for s in combinations(outputs, k))
        losses = [sum(a - ratio * b for a, b in chosen) / total for chosen in sets]
        # A set that no direction favours has its best output alone.
        slacks.append(delta - max(losses, default=Fraction(0)))
    return slacks


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("seed", range(30))
def test_set_verdicts_are_those_of_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        total, epsilon = rng.randrange(4, 60), rng.choice(EPSILONS)
        weights = [rng.choice((0, rng.randint(0, total // 3))) for _ in range(6)]
        delta = rng.choice((Fraction(0), Fraction(1, 10**9), Fraction(rng.randint(0, 9), 10)))
        edges: list[Any] = [
            (rng.choices(range(6), k=k), rng.choices(range(6), k=k), rng.choices((1, 2), k=k))
            for k in (rng.randint(1, 4) for _ in range(rng.randint(1, 4)))
        ]
        ratio = e_to(epsilon)
        slacks = [s for edge in edges for s in worst_set(weights, total, edge, ratio, delta)]
        slack = min(slacks)
        grown = verify.growth(epsilon)
        if slack < 0:
            with pytest.raises(verify.Refused) as caught:
                verify.decide_sets(weights, total, edges, grown, delta)
            assert 0 <= caught.value.missed + slack <= NEAR * 10**9
            edge, turned = caught.value.at
        else:
            verdict = verify.decide_sets(weights, total, edges, grown, delta)
            assert verdict.rows == 2 * len(edges)
            assert 0 <= slack - verdict.slack <= NEAR * 10**9
            edge, turned = verdict.at
        assert abs(slacks[2 * edge + turned] - slack) <= NEAR * 10**9


def test_set_is_decided_to_one_unit() -> None:
    exact, total = verify.growth(0, (Fraction(2), Fraction(2))), 100
    edges = [([0, 1, 2], [3, 4, 5], [1, 2, 1])]
    # 40 - 2 * 10, and twice 9 - 2 * 2: 30 of 100 beyond; the other way round 48 - 2 * 2 = 44.
    weights = [40, 9, 42, 10, 2, 84]
    assert verify.decide_sets(weights, total, edges, exact, Fraction(3, 10)).slack == 0
    turned = [9, 2, 5, 9, 2, 86]
    for side, beyond, delta in ((0, weights, Fraction(299, 1000)), (1, turned, Fraction(3, 4))):
        with pytest.raises(verify.Refused) as caught:
            verify.decide_sets(beyond, total, edges, exact, delta)
        assert caught.value.at == (0, side)
        assert caught.value.missed == Fraction(1, 100)


def test_set_without_edges_and_outputs_that_both_never_have() -> None:
    growth = verify.growth(1)
    assert verify.decide_sets([1], 1, [], growth, Fraction(1, 2)) == verify.Verdict(0, 1, None)
    weights, total, delta = [4, 3, 0], 9, Fraction(1, 10)
    plain = verify.decide_sets(weights, total, [([0], [1], [1])], growth, delta)
    hidden = verify.decide_sets(weights, total, [([0, 2], [1, 2], [1, 1])], growth, delta)
    assert plain == hidden
    assert plain.slack > delta


# --- distributions ---


def test_distribution_is_of_weights_at_least_zero_that_sum_to_the_total() -> None:
    sizes, counts = [2, 2], [1, 2, 3, 1]
    table = verify.table_of({"total": 5, "weights": [[1, 2], [0, 5]]}, sizes, counts)
    assert (table.weights, table.starts, table.total) == ([1, 2, 0, 5], [0, 2, 4], 5)
    assert verify.table_of({"total": 1, "weights": []}, [], []).weights == []
    for weights, total, why in (
        ([[1, 2], [0, 4]], 5, "from 2 to 3 are no distribution"),
        ([[1, 2], [1, 5]], 5, "from 2 to 3 are no distribution"),
        ([[2, 2], [0, 5]], 5, "from 0 to 1 are no distribution"),
        ([[7, -1], [0, 5]], 5, "'7' is no integer from 0 to 5"),
        ([[5, -1], [0, 5]], 5, "'-1' is no integer from 0"),
        ([[1, 2], [0, 3]], 4, "from 0 to 1 are no distribution"),
        ([[0, 0], [0, 0]], 0, "'0' is no integer from 1"),
        ([[-1, -2], [0, -5]], -5, "'-5' is no integer from 1"),
    ):
        with pytest.raises((verify.Refused, verify.Malformed), match=why):
            verify.table_of({"total": total, "weights": weights}, sizes, counts)


# --- bounds and points of programs ---


def small_program(rng: random.Random, most: int) -> tuple[verify.Program, list[Any]]:
    """A program of one pmf of three variables and one box, and its rows: of enclosures if most."""
    names = [("x", i) for i in range(3)]

    def number() -> Any:
        low = Fraction(rng.randint(-4, 4))
        return rng.choice((low, (low, low + Fraction(rng.randint(0, most), 2))))

    rows = {
        ("row", r): verify.Row({v: number() for v in (*names, ("t",))}, number(), r == 1)
        for r in range(3)
    }
    cost = {v: Fraction(rng.randint(-5, 5)) for v in [*names, ("t",)]}
    low, high = sorted((Fraction(rng.randint(-3, 3)), Fraction(rng.randint(-3, 3))))
    program = verify.Program(
        [(names, Fraction(2))],
        {("t",): (low, high)},
        cost,
        lambda: rows,
        rows.__getitem__,
        rng.random() < 0.5,
    )
    return program, list(rows)


def points_of(program: verify.Program) -> Iterator[dict[Any, Any]]:
    (names, mass), box = program.pmfs[0], program.boxes["t",]
    for a, b in product(range(5), repeat=2):
        if a + b <= 4:
            shares = (Fraction(a, 4), Fraction(b, 4), Fraction(4 - a - b, 4))
            for t in (box[0], (box[0] + box[1]) / 2, box[1]):
                yield {**{v: mass * s for v, s in zip(names, shares, strict=True)}, ("t",): t}


@pytest.mark.parametrize("most", [0, 2])
def test_bound_is_the_lagrangian(most: int) -> None:
    """It is the least of cost + y a - y b over all points, coefficients and limits."""
    rng = random.Random(4)
    for _ in range(100):
        program, names = small_program(rng, most)
        ys = [(n, Fraction(rng.randint(0, 6), 2)) for n in names]
        ys = [(n, rng.choice((y, -y)) if program.row(n).equality else y) for n, y in ys]
        sign = -1 if program.maximise else 1
        rows = [(program.row(n), y) for n, y in ys]
        entries = [(v, [y * a for a in verify.ends(r.terms[v])]) for r, y in rows for v in r.terms]
        lagrangian = min(
            sign * sum(c * point[v] for v, c in program.cost.items())
            + sum(min(a * point[v] for a in ends) for v, ends in entries)
            for point in points_of(program)
        ) - sum(max(y * b for b in verify.ends(row.limit)) for row, y in rows)
        assert sign * verify.bound(program, ys) == lagrangian


def test_bound_refuses_a_negative_multiplier_of_an_inequality() -> None:
    program = verify.Program(
        [([("x",)], 1)], {}, {("x",): 1}, list, lambda _: verify.Row({("x",): 1}, 5)
    )
    assert verify.bound(program, [(("r",), 0)]) == 1
    with pytest.raises(verify.Refused, match="is negative"):
        verify.bound(program, [(("r",), Fraction(-1, 10**30))])


def test_decided_points_keep_distributions_boxes_and_rows() -> None:
    half, quarter, tiny = Fraction(1, 2), Fraction(1, 4), Fraction(1, 10**30)
    most = verify.Row({("x", 0): (Fraction(1), Fraction(2))}, (Fraction(1), Fraction(3)))
    rows = {("most",): most, ("same",): verify.Row({("t",): 2}, 1, equality=True)}

    def decided(x: Fraction, t: Fraction = half, rest: Any = None, **more: Any) -> verify.Verdict:
        masses = {("x", 0): x, ("x", 1): 1 - x if rest is None else rest}
        program = verify.Program([([*masses], 1)], {}, {}, lambda: rows, rows.__getitem__, **more)
        program.boxes["t",] = (half, Fraction(1))
        program.point = {**masses, ("t",): t}
        return verify.decide(program)

    # 2 x <= 1: the larger coefficient, and the smaller limit.
    assert decided(half) == verify.Verdict(2, 0, ("most",), 0)
    assert decided(quarter) == verify.Verdict(2, 0, ("same",), 0)
    assert decided(Fraction(0)).slack == 0
    for point, why in (
        ((half + tiny, half), "most"),
        ((half, Fraction(1)), "same"),
        ((Fraction(-1, 10), half), r"^\('x', 0\) and the others of its distribution are no dist"),
        ((half, half, quarter), "no distribution"),
        ((half, half - tiny), "outside its limits"),
        ((half, 1 + tiny), "outside its limits"),
    ):
        with pytest.raises(verify.Refused, match=why) as caught:
            decided(*point)
        if why in ("most", "same"):
            assert caught.value.at == (why,)
            assert caught.value.missed > 0
    # An equality is missed from below, too; what was not promised is told.
    rows["same",] = verify.Row({("t",): 2}, Fraction(3, 2), equality=True)
    with pytest.raises(verify.Refused, match="same"):
        decided(half)
    rows["same",] = verify.Row({("t",): 2}, Fraction(3, 2), equality=True, promised=False)
    assert decided(half) == verify.Verdict(2, 0, ("most",), half)
    rows["same",] = verify.Row({("t",): 2}, half, promised=False)
    assert decided(quarter) == verify.Verdict(2, half, ("most",), half)
    # Between 1 and 3/2, and meant between 1 and 2.
    rows["same",] = verify.Row({("t",): (2, 3)}, (1, 2), equality=True, promised=False)
    assert decided(half).missed == 1
    # Of more slack than 1 there is no word.
    rows["same",] = verify.Row({("t",): 2}, 3)
    assert decided(Fraction(0)).slack == 1
    # What privacy decides is its own; others are decided beside it.
    own = verify.Verdict(7, Fraction(1, 9), "own")
    assert decided(half, private=lambda: own) == own
    both = decided(half, private=lambda: own, rows={("most",): most})
    assert both == verify.Verdict(8, Fraction(1, 9), "own")
    # Of what may be negative.
    row = verify.Row({("t",): (Fraction(1), Fraction(2))}, Fraction(-3, 2))
    program = verify.Program([], {("t",): (-2, 0)}, {}, lambda: [("r",)], lambda _: row)
    program.point = {("t",): Fraction(-3, 2)}
    assert verify.decide(program).slack == 0
    program.point = {("t",): Fraction(-1)}
    with pytest.raises(verify.Refused, match="broken by 0.5"):
        verify.decide(program)


# --- files of a kind that is not known ---


def case(name: str) -> tuple[Inputs, Losses, dpopt.Guarantee]:
    """Inputs, losses and guarantee of a name: graph or symmetry, worst or mean, delta or not."""
    what, objective, delta = name.split(", ")
    turn, flip = np.roll(np.arange(5), 1), np.arange(4)[::-1].copy()
    inputs: Any = {
        "path": Graph(4, 4, directed_pairs("path", 4)),
        "complete": Graph(3, 4),
        "turned": Graph(5, 5, directed_pairs("cycle", 5), ((turn, turn),)),
        "two orbits": Graph(4, 4, directed_pairs("path", 4), ((flip, flip),)),
    }[what]
    plain = what in ("path", "complete")
    x, y = (inputs.rows, inputs.columns) if plain else inputs.representatives.T
    around = np.minimum(np.abs(x - y), 5 - np.abs(x - y)) if what == "turned" else np.abs(x - y)
    weights = np.arange(1.0, len(inputs.starts)) if objective == "mean" else None
    promised = dpopt.Guarantee(0.7, 0.05 if delta == "delta" else 0.0)
    return inputs, Losses(around.astype(float), weights), promised


NAMES = [
    ", ".join(parts)
    for parts in product(
        ("path", "complete", "turned", "two orbits"), ("worst", "mean"), ("delta", "pure")
    )
]


def setting_of(name: str) -> Any:
    """A setting of a kind of its own, that is not kept among the kinds."""
    inputs_, losses_, promised = case(name)

    @dataclass(frozen=True)
    class Mine(Setting):
        kind = "judged"
        domain = inputs_
        losses = losses_
        guarantee = promised  # type: ignore[assignment]

        @classmethod
        def example(cls) -> Any:
            return cls()

    del _KINDS["judged"]
    return Mine()


@cache
def written(name: str) -> tuple[str, str]:
    """The text of a saved design of a name, and of its proof."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        dpopt.design(setting_of(name)).save(path, proof=True)
        return path.read_text(), (Path(folder) / "x.proof.json").read_text()


def said(folder: Path, *records: Any) -> list[str]:
    """What the file alone shows of a design and its proof, as plain values."""
    paths = [folder / f"x{i}.json" for i in range(len(records))]
    for path, record in zip(paths, records, strict=True):
        path.write_text(json.dumps(record))
    return list(verify.check(*map(str, paths)))


@pytest.mark.parametrize("name", NAMES)
def test_files_are_accepted_and_displayed_programs_have_their_optimum(
    name: str, tmp_path: Path
) -> None:
    design, proof = map(json.loads, written(name))
    lines = said(tmp_path, design, proof)
    inputs, _, promised = case(name)
    groups, size = inputs.neighbours.shape
    listed = len(inputs.edges.listed()) if promised.delta else groups
    rows = 2 * listed if promised.delta else groups * size * (size - 1)
    # Beside privacy, that no input has a loss above the worst one.
    rows += len(inputs.starts) - 1 if ", worst, " in name else 0
    assert lines[0].startswith(f"private: table, (0.7, {promised.delta:g})-DP, {rows} inequalities")
    assert lines[0].endswith(f"among {listed} groups of neighbours that it lists")
    assert lines[3].startswith("optimal: ")
    body = design["body"]
    program = verify.KINDS["table"](body["displayed"], body["table"], None, {})
    assert float(program.value) == pytest.approx(body["value"], rel=1e-12)
    assert optimum(program) == pytest.approx(body["value"], rel=1e-7)
    # At its point all rows hold, also looked at one by one.
    decided = verify.decide(replace(program, private=None))
    assert decided.rows == len(list(program.names()))
    assert verify.decide(program).rows == rows
    # Without weights it is the same program.
    bare = verify.KINDS["table"](body["displayed"], None, None, {})
    assert list(bare.names()) == list(program.names())
    assert [bare.row(n) for n in bare.names()] == [program.row(n) for n in program.names()]


def test_displayed_edges_may_have_one_output() -> None:
    inputs = {"sizes": [1, 1], "counts": [3, 3], "edges": [[[0], [1], [3]]]}
    losses = {"costs": [1.0, 2.0], "weights": None}
    setting = {"epsilon": 1.0, "delta": 0.1, "inputs": inputs, "losses": losses}
    units = {"total": "3", "weights": [["1"], ["1"]]}
    program = verify.KINDS["table"](setting, units, None, {})
    assert (verify.decide(program).rows, program.value) == (4, 2)
    # An enclosed e^epsilon is an enclosed coefficient, its ends in order.
    wide = verify.KINDS["table"](setting, None, (Fraction(2), Fraction(9, 4)), {})
    third, names = Fraction(1, 3), [("K", 1), ("K", 0), ("s", 0, 1, 0)]
    coefficients = (third, (Fraction(-3, 4), Fraction(-2, 3)), -1)
    assert wide.row(("privacy", 0, 1, 0)).terms == dict(zip(names, coefficients, strict=True))


def test_displayed_neighbours_of_one_input_may_lack_an_output_that_stays_the_same() -> None:
    # Two inputs are one up to a reflection, under which the middle output is its own image.
    one = {"neighbours": [[0, 1]]}
    assert verify.listed_neighbours(one, [0, 3], [1, 1, 1], False) == ([[0, 1]], [])
    with pytest.raises(verify.Malformed, match="leave out outputs"):
        verify.listed_neighbours({"neighbours": [[0, 3]]}, [0, 3, 6], [1] * 6, False)


def broken_by_hand(name: str, table: dict[str, Any]) -> bool:
    """Whether the integers of a file are not private between the inputs of a case, written out."""
    inputs, _, promised = case(name)
    total = int(str(table["total"]), 0)
    weights = [int(w, 0) for row in table["weights"] for w in row]
    rows = [[weights[v] for v in row] for row in inputs.table().tolist()]
    pairs = inputs.pairs  # type: ignore[attr-defined]
    near = permutations(range(len(rows)), 2) if pairs is None else pairs.tolist()
    ratio, delta = e_to(Fraction(promised.epsilon)), Fraction(promised.delta)
    return any(
        sum(max(Fraction(0), a - ratio * b) for a, b in zip(rows[x], rows[z], strict=True))
        > delta * total
        for x, z in near
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NAMES)
def test_files_whose_weights_are_moved_are_decided_by_brute_force(
    name: str, tmp_path: Path
) -> None:
    original = json.loads(written(name)[0])
    inputs, _, _ = case(name)
    counts, starts = inputs.counts.tolist(), inputs.starts.tolist()
    outcomes = set()
    for power, (row, (a, b)) in product((0, 10, 40, 55, 58), enumerate(pairwise(starts))):
        for v, u in list(permutations(range(a, b), 2))[:6]:
            design = copy.deepcopy(original)
            line = design["body"]["table"]["weights"][row]
            line[v - a] = str(int(line[v - a], 0) + counts[u] * (1 << power))
            line[u - a] = str(int(line[u - a], 0) - counts[v] * (1 << power))
            if int(line[u - a]) < 0:
                continue
            # The value moves with them.
            program = verify.KINDS["table"](
                design["body"]["displayed"], design["body"]["table"], None, {}
            )
            design["body"]["value"] = float(program.value)
            broken = broken_by_hand(name, design["body"]["table"])
            outcomes.add(broken)
            if broken:
                with pytest.raises(verify.Refused, match="above"):
                    said(tmp_path, design)
            else:
                assert said(tmp_path, design)[0].startswith("private")
    assert outcomes == {True, False}


def edited(design: Any, path: str, value: Any) -> Any:
    """A copy of a file with another value at a path such as body.table.total."""
    keys = [int(key) if key.isdigit() else key for key in path.split(".")]
    return put(design, tuple(keys), value)


PURE, SETS = "path, worst, pure", "path, worst, delta"
FORGED: list[tuple[str, str, Any, str]] = [
    (PURE, "body.displayed.inputs.counts.0", 0, "no integer from 1"),
    (PURE, "body.displayed.inputs.counts.0", -1, "no integer from 1"),
    (PURE, "body.displayed.inputs.counts.0", 2, "no correspondence"),
    (PURE, "body.displayed.inputs.counts", [1] * 15, "counts are not one"),
    (PURE, "body.displayed.inputs.sizes.0", 0, "no integer from 1"),
    (PURE, "body.displayed.inputs.sizes", [4, 4, 4, 5], "counts are not one"),
    (PURE, "body.displayed.inputs.sizes", [3, 5, 4, 4], "leave out outputs"),
    (PURE, "body.displayed.inputs.sizes", [16], "table of 1 rows"),
    (PURE, "body.displayed.inputs.neighbours.0", [0], "different lengths"),
    (PURE, "body.displayed.inputs.neighbours", [[0]], "different lengths"),
    (PURE, "body.displayed.inputs.neighbours.0", [0, 4, 8], "different lengths"),
    (PURE, "body.displayed.inputs.neighbours.0", [0, 16], "from 0 to 15"),
    (PURE, "body.displayed.inputs.neighbours.0", [-1, 4], "from 0 to 15"),
    (PURE, "body.displayed.losses.costs", [0.0] * 15, "list of 16 numbers"),
    (PURE, "body.displayed.losses.weights", [1.0] * 3, "list of 4 numbers"),
    (PURE, "body.displayed.losses.weights", [1.0, 1.0, 1.0, -1.0], "weight below 0"),
    (PURE, "body.displayed.epsilon", 0.8, "smaller guarantee"),
    (PURE, "body.displayed.epsilon", 0.6, "above e\\^epsilon"),
    (PURE, "body.displayed.epsilon", -0.7, "epsilon is -0.7"),
    (PURE, "body.displayed.delta", 0.05, "edges"),
    (PURE, "body.guarantee.epsilon", 0.6, "smaller guarantee"),
    (PURE, "body.table.total", "4611686018427387905", "no distribution"),
    (PURE, "body.table.total", "0", "no integer from 1"),
    (PURE, "body.table.weights.0.0", "-1", "no integer from 0"),
    (PURE, "body.table.weights.3.3", "7", "no distribution"),
    (PURE, "body.table.weights.3", ["1"], "row of 4 weights"),
    (PURE, "body.table.weights.3", 5, "row of 4 weights"),
    (PURE, "body.table.weights", [], "table of 4 rows"),
    (PURE, "body.table.weights", {}, "table of 4 rows"),
    (PURE, "body.value", 0.9, "states the value"),
    (PURE, "body.displayed.losses.costs.0", 0.5, "states the value"),
    (PURE, "body.displayed.inputs.neighbours", [], "no inputs are listed"),
    (SETS, "body.displayed.inputs.edges", [], "no inputs are listed"),
    (SETS, "body.displayed.inputs.edges.0.0", [0, 1, 2], "different lengths"),
    (SETS, "body.displayed.inputs.edges.0.1", [4, 5, 6], "different lengths"),
    (SETS, "body.displayed.inputs.edges.0.2", [1, 1, 1], "different lengths"),
    (SETS, "body.displayed.inputs.edges.0", [[0, 1, 2], [4, 5, 6], [1, 1, 1]], "leaves out"),
    (SETS, "body.displayed.inputs.edges.0", [[], [], []], "leaves out"),
    (SETS, "body.displayed.inputs.edges.0.0", [0, 1, 2, 2], "leaves out"),
    (SETS, "body.displayed.inputs.edges.0.0", [0, 1, 2, 7], "leaves out"),
    (SETS, "body.displayed.inputs.edges.0.1", [4, 5, 6, 6], "leaves out"),
    (SETS, "body.displayed.inputs.edges.0.0.0", -1, "from 0 to 15"),
    (SETS, "body.displayed.inputs.edges.0.0.0", 16, "from 0 to 15"),
    (SETS, "body.displayed.inputs.edges.0.1.0", -1, "from 0 to 15"),
    (SETS, "body.displayed.inputs.edges.0.1.0", 16, "from 0 to 15"),
    (SETS, "body.displayed.inputs.edges.0.2.0", 2, "leaves out"),
    (SETS, "body.displayed.inputs.edges.0.2.0", 0, "no integer from 1"),
    (SETS, "body.displayed.inputs.edges.0.2.0", -1, "no integer from 1"),
    (SETS, "body.displayed.delta", 0.04, "above its limit"),
    (SETS, "body.displayed.delta", 0.06, "smaller guarantee"),
    (SETS, "body.displayed.delta", 0.0, "neighbours"),
]


def test_files_that_are_forged_are_refused(tmp_path: Path) -> None:
    for name, path, value, why in FORGED:
        forged = edited(json.loads(written(name)[0]), path, value)
        with pytest.raises((verify.Malformed, verify.Refused, KeyError), match=why):
            said(tmp_path, forged)


@pytest.mark.parametrize(("name", "fewer"), [(PURE, 8), (SETS, 2)])
def test_files_that_leave_neighbours_out_say_fewer(name: str, fewer: int, tmp_path: Path) -> None:
    design = json.loads(written(name)[0])
    listed = design["body"]["displayed"]["inputs"]
    first = said(tmp_path, design)[0]
    if name == PURE:
        groups = listed["neighbours"]
        listed["neighbours"] = groups[1:]
        with pytest.raises(verify.Malformed, match="leave out outputs"):
            said(tmp_path, design)
        # The four outputs of the first input, and those of its only neighbour.
        listed["neighbours"] = [group for group in groups if min(group) > 3]
    else:
        del listed["edges"][0]
    second = said(tmp_path, design)[0]
    counts = [int(line.split("-DP, ")[1].split()[0]) for line in (first, second)]
    assert counts[0] == counts[1] + fewer
    assert f"among {fewer} groups" in second
    assert "1 inputs have no neighbour" in second


# Rows that a program has not.
NO_ROWS = {
    PURE: "privacy -1 0 1, privacy 12 0 1, privacy 0 0 2, privacy 0 -1 1, privacy 0 0, losses 4, "
    "losses -1, delta 0 0, sums 0",
    SETS: "privacy -1 0 0, privacy 3 0 0, privacy 0 2 0, privacy 0 -1 0, privacy 0 0 4, "
    "privacy 0 0 -1, delta -1 0, delta 3 0, delta 0 2, delta 0 -1, other 0 0",
}


@pytest.mark.parametrize("name", NO_ROWS)
def test_files_with_rows_that_the_program_has_not_are_refused(name: str, tmp_path: Path) -> None:
    design, proof = map(json.loads, written(name))
    lines = proof["multipliers"]
    for kind, *place in map(str.split, NO_ROWS[name].split(",")):
        proof["multipliers"] = [*lines, [kind, *map(int, place), "1/7"]]
        with pytest.raises((verify.Malformed, ValueError)):
            said(tmp_path, design, proof)


@pytest.mark.parametrize("name", NAMES)
def test_displayed_rows_are_true_of_every_private_table(name: str) -> None:
    """All rows hold for tables that brute force finds private, and some row fails for others."""
    body = json.loads(written(name)[0])["body"]
    inputs, losses, promised = case(name)
    rng = np.random.default_rng(2)
    ratio, delta = e_to(Fraction(promised.epsilon)), Fraction(promised.delta)
    verdicts = set()
    for spread in (0.05, 0.2, 0.5, 1.0, 2.0, 3.0) * 3:
        table = rounded(inputs, np.exp(spread * rng.random(inputs.size)), 20)
        units = table.plain()
        broken = broken_by_hand(name, units)
        program = verify.KINDS["table"](body["displayed"], units, None, {})
        one = [Fraction(w, table.total) for w in table.weights]
        assert program.value == losses.value(table)
        rows = {n: program.row(n) for n in program.names()}
        sets = {}
        for n, row in rows.items():
            over = -verify.ends(row.limit)[1]
            over += sum(verify.ends(a)[1] * program.point[v] for v, a in row.terms.items())
            if n[0] == "privacy" and not delta:
                group = inputs.neighbours[n[1]].tolist()
                v, u = group[n[2]], group[n[3]]
                assert abs(over - (one[v] - ratio * one[u])) < NEAR
            elif n[0] == "delta":
                first, second, counts = inputs.edges.listed()[n[1]]
                ways = (first, second) if n[2] == 0 else (second, first)
                gains = (one[v] - ratio * one[u] for v, u in zip(*ways, strict=True))
                lost = sum(c * max(0, g) for c, g in zip(counts, gains, strict=True))
                assert abs(over - (lost - delta)) < NEAR
                sets[n] = over
        verdicts.add(broken)
        private = program.private
        assert private is not None
        if broken:
            with pytest.raises(verify.Refused):
                private()
        else:
            assert private().slack >= 0
            assert all(over <= 0 for over in sets.values())
    assert verdicts == {True, False}
