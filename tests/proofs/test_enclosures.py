"""Rows and verdicts where e^epsilon is known to a few digits: the ends that count are taken.

A row with an enclosed e^epsilon holds, at whatever number is inside, no more than the row of that
number, which is computed here with an exact rational in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any

import pytest

import dpopt
from dpopt import (
    Kernel,
    Majority,
    Mollifier,
    Population,
    PublicPrior,
    verify,
)
from tests.majority.brute import reduced_multisets

LOW, RATIO, HIGH = Fraction(21, 8), Fraction(8, 3), Fraction(11, 4)
PMF = [0.1, 0.2, 0.3, 0.4]
AFFINE: list[Any] = [
    Kernel("absolute", 1.0, inputs=3, objective="worst-case"),
    Kernel("absolute", 1.0, graph="path", inputs=3),
    Kernel("zero-one", 1.0, 0.125, graph="cycle", inputs=4),
    dpopt.Plurality(4, 3, 1.0),
    dpopt.Plurality(3, 2, 1.0, "worst-case"),
    dpopt.BestSampler(4, 3, 1.0),
    dpopt.BestSampler(3, 2, 1.0, "mean"),
    *(dpopt.RevealOrObscure(7, 3, 1.0, rule) for rule in ("exact", "roo", "journal", "conference")),
    Population(PMF, 1.0, [PMF[::-1]], slack=0.125),
]
VOTES: list[Any] = [
    Majority(5, 1.0, 2.0),
    Majority(3, 1.0, 2.0, voter_delta=0.125, delta=0.25),
    dpopt.Multiclass(3, 3, 1.0, 2.0),
    dpopt.Multiclass(2, 4, 1.0, 1.0, delta=0.125),
]


def program_of(setting: Any, ratio: Any, units: Any = None) -> verify.Program:
    plain = json.loads(json.dumps(setting.to_dict()))
    return verify.KINDS[setting.kind](plain, units, ratio, {})


def coefficients(row: verify.Row, names: Any) -> Iterator[tuple[Any, Any]]:
    """The ends of all coefficients of a row, and of its limit last."""
    yield from (verify.ends(row.terms.get(v, 0)) for v in names)
    yield verify.ends(row.limit)


def exponentials(monkeypatch: pytest.MonkeyPatch, known: Mapping[int, verify.Between]) -> None:
    """Have the file take these enclosures of e^x for x = 1, 2, ..., to however many bits."""
    monkeypatch.setattr(verify, "exp", lambda x, *_: known[int(x)])


@pytest.mark.sample(6)
@pytest.mark.parametrize("setting", AFFINE, ids=repr)
def test_a_row_has_the_ends_of_what_is_enclosed(setting: Any) -> None:
    low, wide, high = (program_of(setting, r) for r in ((LOW,) * 2, (LOW, HIGH), (HIGH,) * 2))
    names = list(wide.names())
    assert names == list(low.names())
    told = 0
    for name in names:
        rows = [program.row(name) for program in (low, wide, high)]
        variables = dict.fromkeys(v for row in rows for v in row.terms)
        for (a, _), both, (b, _) in zip(*(coefficients(r, variables) for r in rows), strict=True):
            assert both == (min(a, b), max(a, b))
            told += a != b
    assert told


def test_the_rarest_category_is_kept_by_no_more_than_lemma_3_says() -> None:
    q, setting = Fraction(0.1), PublicPrior(PMF, 1.0)
    total = sum(map(Fraction, PMF))
    program = program_of(setting, (LOW, HIGH), {"bits": 62})
    exact = [r * q / total / (r * q / total + 1 - q / total) for r in (LOW, HIGH)]
    assert program.row(("lemma 3",)).limit == tuple(exact)


def test_a_mollifier_s_limits_are_enclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Mollifier(PMF, 1.0, [0.25] * 4)
    exponentials(monkeypatch, {0: (LOW, HIGH)})
    program, total = program_of(setting, None), sum(map(Fraction, PMF))
    for j, mass in enumerate(PMF):
        a = Fraction(mass) / total
        above, below = (program.row((name, j)) for name in ("above", "below"))
        assert (above.terms, above.limit) == ({("r", j): 1}, (a * LOW, a * HIGH))
        assert (below.terms, below.limit) == ({("r", j): -1}, (-a / LOW, -a / HIGH))


@pytest.mark.sample(10)
@pytest.mark.parametrize("setting", VOTES, ids=repr)
@pytest.mark.parametrize("width", [Fraction(0), Fraction(1, 64)])
@pytest.mark.parametrize("wide", ["voters", "budget", "both"])
def test_a_corner_s_row_holds_what_is_enclosed(
    setting: Any, width: Fraction, wide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = program_of(setting, (RATIO, RATIO))
    sure = {x: (RATIO**x, RATIO**x) for x in range(9)}
    broad = {x: (RATIO**x - width * (x > 0), RATIO**x + width * (x > 0)) for x in range(9)}
    # The budget's e^(m epsilon) is taken once, the voters' powers when they are asked for.
    exponentials(monkeypatch, sure if wide == "voters" else broad)
    program, told = program_of(setting, None), 0
    exponentials(monkeypatch, sure if wide == "budget" else broad)
    for name in list(program.names()):
        rows = [program.row(name), exact.row(name)]
        variables = dict.fromkeys(v for row in rows for v in row.terms)
        *ours, limit = coefficients(rows[0], variables)
        *theirs, (stated, _) = coefficients(rows[1], variables)
        for (low, high), (true, _) in zip(ours, theirs, strict=True):
            assert low <= true <= high
            assert width or high - low <= Fraction(1, 1 << 200)
            told += low < high
        assert limit[0] <= stated <= limit[1]
    assert told


def votes_at_corners(setting: Any, b: Fraction) -> Iterator[tuple[Any, Any]]:
    """Both distributions of the counts of the votes, at every choice of corners of all voters."""
    voters, classes = setting.voters, getattr(setting, "classes", 2)
    pairs = list(product(range(classes), repeat=2))
    for chosen in combinations_with_replacement(pairs, voters):
        pmfs = []
        for first in (b, 1 - b):
            pmf: dict[tuple[int, ...], Fraction] = {(0,) * classes: Fraction(1)}
            for y, z in chosen:
                wider: dict[tuple[int, ...], Fraction] = {}
                for counts, mass in pmf.items():
                    for vote, share in ((y, first), (z, 1 - first)):
                        more = tuple(n + (x == vote) for x, n in enumerate(counts))
                        wider[more] = wider.get(more, Fraction(0)) + mass * share
                pmf = wider
            pmfs.append(pmf)
        yield pmfs[0], pmfs[1]


def least_slack(setting: Any, chances: Any, b: Fraction, budget: Fraction) -> Fraction:
    """The least of delta + R P'(S) - P(S), S the first k classes, over corners; R is the budget."""
    delta = Fraction(setting.delta)
    classes = getattr(setting, "classes", 2)
    sizes = range(1, classes if delta else 2)
    slacks = []
    for one, other in votes_at_corners(setting, b):
        for size in sizes:
            p, q = (sum(m * sum(chances(n)[:size]) for n, m in pmf.items()) for pmf in (one, other))
            slacks.append(delta + budget * q - p)
    return min(slacks)


def rounded_chance(ratio: Fraction) -> Fraction:
    """The larger chance of a voter, rounded up as it is once for all corners of a plurality."""
    unit = 1 << verify.CORNER
    return Fraction(-(-ratio * unit // (1 + ratio)), unit)


UNITS = {"total": 105, "weights": [[61, 22], [51, 32, 22], [35]]}
# The class of most votes is the least likely one.
RARE = {"total": 105, "weights": [[17, 44], [25, 36, 44], [35]]}


def chances_of_three(counts: tuple[int, ...], units: Any = UNITS) -> list[Fraction]:
    """The chances of the classes in such a table of three votes over three classes."""
    rows: dict[Any, Any] = dict(zip([(3, 0), (2, 1, 0), (1,)], units["weights"], strict=True))
    order = tuple(dict.fromkeys(sorted(counts, reverse=True)))
    known = dict(zip(order, rows[order], strict=True))
    return [Fraction(known[n], 105) for n in counts]


@pytest.mark.sample(5)
@pytest.mark.parametrize("units", [UNITS, RARE], ids=["plurality", "rarest"])
@pytest.mark.parametrize(
    ("ratio", "width"),
    [(RATIO, Fraction(0)), (RATIO, Fraction(1, 64)), (HIGH, Fraction(0))],
    ids=str,
)
@pytest.mark.parametrize("delta", [0.0, 0.125])
def test_a_plurality_s_slack_is_rounded_down(
    delta: float, ratio: Fraction, width: Fraction, units: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = dpopt.Multiclass(3, 3, 1.0, 1.0, delta=delta)
    known = {x: (ratio**x, ratio**x) for x in range(9)} | {1: (ratio - width, ratio + width)}
    exponentials(monkeypatch, known)
    program = program_of(setting, None, units)
    verdict = verify.decide(program)
    chances = partial(chances_of_three, units=units)
    exact = least_slack(setting, chances, rounded_chance(ratio + width), ratio - width)
    assert exact > 0
    assert verdict.slack <= exact <= verdict.slack + Fraction(1, 1 << 100)
    assert verdict.rows == sum(1 for _ in program.names())
    # It is a corner with voters on edges; the row that is named has that slack.
    assert any(verdict.at[2])
    row = program_of(setting, (ratio + width,) * 2).row(verdict.at)
    slack = verify.ends(row.limit)[0] - sum(
        verify.ends(a)[0] * program.point[v] for v, a in row.terms.items()
    )
    assert width or 0 <= slack - verdict.slack <= Fraction(1, 1 << 100)


def test_a_table_beyond_its_corners_is_refused_by_their_excess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = dpopt.Multiclass(3, 3, 1.0, 1.0)
    exponentials(monkeypatch, {x: (RATIO**x, RATIO**x) for x in range(9)})
    # All but the first count of two has what it had: too much for one epsilon.
    units = {"total": 105, "weights": [[61, 22], [90, 10, 5], [35]]}
    with pytest.raises(verify.Refused) as caught:
        verify.decide(program_of(setting, None, units))

    def chances(counts: tuple[int, ...]) -> list[Fraction]:
        beyond = {2: Fraction(90, 105), 1: Fraction(10, 105), 0: Fraction(5, 105)}
        return [beyond[n] for n in counts] if max(counts) == 2 else chances_of_three(counts)

    exact = least_slack(setting, chances, rounded_chance(RATIO), RATIO)
    assert exact < 0
    assert -exact <= caught.value.missed <= -exact + Fraction(1, 1 << 100)


def test_a_plurality_s_rows_are_those_of_votes_at_corners() -> None:
    setting = dpopt.Multiclass(3, 3, 1.0, 2.0, delta=0.125)
    program = program_of(setting, (RATIO, RATIO), UNITS)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for name in program.names():
        _, size, signed, loops = name
        sides = []
        for first in (RATIO / (1 + RATIO), 1 / (1 + RATIO)):
            pmf = {loops: Fraction(1)}
            edges = [(p, m) for p, m in zip(pairs, signed, strict=True) for _ in range(abs(m))]
            for (y, z), m in edges:
                wider: dict[Any, Fraction] = {}
                for counts, mass in pmf.items():
                    for vote, share in ((y if m > 0 else z, first), (z if m > 0 else y, 1 - first)):
                        more = tuple(n + (x == vote) for x, n in enumerate(counts))
                        wider[more] = wider.get(more, Fraction(0)) + mass * share
                pmf = wider
            sides.append(sum(m * sum(chances_of_three(n)[:size]) for n, m in pmf.items()))
        row = program.row(name)
        told = sum(verify.ends(a)[0] * program.point[v] for v, a in row.terms.items())
        assert told == sides[0] - RATIO**2 * sides[1]
        assert row.limit == Fraction(1, 8)


@pytest.mark.parametrize(
    "upper", [[34, 38, 40], [44, 44, 44], [20, 20, 20]], ids=["flat", "majority", "minority"]
)
@pytest.mark.parametrize("width", [Fraction(0), Fraction(1, 64)])
def test_a_majority_s_slack_is_that_of_its_worst_corner(
    width: Fraction, upper: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = Majority(5, 1.0, 2.0, contrary=True)
    units = {"total": 64, "weights": [[a, 64 - a] for a in upper]}
    known = {x: (RATIO**x, RATIO**x) for x in range(9)} | {1: (RATIO - width, RATIO + width)}
    exponentials(monkeypatch, known)
    ones = [*(64 - a for a in upper[::-1]), *upper]

    def chances(counts: tuple[int, ...]) -> list[Fraction]:
        return [Fraction(ones[counts[0]], 64), 1 - Fraction(ones[counts[0]], 64)]

    exact = least_slack(setting, chances, 1 - 1 / (1 + RATIO + width), RATIO**2)
    verdict = verify.decide(program_of(setting, None, units))
    assert exact > 0
    assert verdict.slack <= exact
    if not width:
        # Up to floats: what is not close is not looked at in integers.
        assert float(verdict.slack) == pytest.approx(float(exact), rel=1e-12)
        # The row that is named has that slack, twice, and voters at a corner where there is a jump.
        assert bool(verdict.at[2]) == (len(set(upper)) == 1)
        program = program_of(setting, (RATIO, RATIO), units)
        row = program.row(verdict.at)
        told = sum(verify.ends(a)[0] * program.point[v] for v, a in row.terms.items())
        assert (verify.ends(row.limit)[0] - told) / 2 == exact
    # The voters at one, and those placed at the one corner or at the other.
    assert verdict.rows == sum(2 * n for n in range(1, 6)) + 6


@pytest.mark.parametrize(("total", "classes"), [(4, 3), (2, 4), (1, 5)])
def test_corners_are_no_more_than_their_bound(total: int, classes: int) -> None:
    """Voters on directed pairs without circles, and at loops, against the number that limits."""
    pairs = comb(classes, 2)
    known = 0
    for signed in product(range(-total, total + 1), repeat=pairs):
        used = sum(map(abs, signed))
        if used <= total:
            known += comb(total - used + classes - 1, classes - 1)
    assert verify.corner_count(total, classes) == known


@pytest.mark.parametrize(
    "change",
    [
        {"allowance": 0.0},
        {"allowance": -1.0, "epsilon": -1.0},
        {"delta": 1.0},
        {"voter_delta": -0.125},
        {"voter_delta": 0.25, "delta": 0.125},
    ],
)
def test_voters_that_are_none_are_refused(change: dict[str, float]) -> None:
    setting = json.loads(json.dumps(Majority(3, 1.0, 2.0).to_dict()))

    def read(changed: dict[str, float]) -> verify.Voters:
        verify.allowed("majority", setting | changed)
        return verify.Voters(setting | changed, None)

    for more in ({}, {"voter_delta": 0.125, "delta": 0.125}):
        assert read(more).count == 3
    with pytest.raises(verify.Malformed):
        read(change)


def test_chances_at_corners_are_as_close_as_e_epsilon_is(monkeypatch: pytest.MonkeyPatch) -> None:
    exponentials(monkeypatch, {1: (LOW, HIGH), 2: (RATIO, RATIO)})
    setting, d = Majority(3, 1.0, 2.0, voter_delta=0.125, delta=0.25), Fraction(1, 8)
    voters = verify.Voters(setting.to_dict(), None)
    assert voters.chance("b") == ((LOW + d) / (LOW + 1), (HIGH + d) / (HIGH + 1))
    assert voters.chance("c") == ((1 - d) / (HIGH + 1), (1 - d) / (LOW + 1))
    known = {"0": Fraction(0), "D": d, "m": 1 - d, "1": Fraction(1)}
    assert all(voters.chance(corner) == (p, p) for corner, p in known.items())


@pytest.mark.parametrize(
    "name",
    [
        ("corner", 0, (("zz", 1),)),
        ("corner", 0, (("bc", 4),)),
        ("corner", 3, (("bc", 1),)),
        ("corner", -1, (("bc", 1),)),
        ("corner", 0, (("bc", -1),)),
    ],
)
def test_a_corner_that_is_none_is_refused(name: verify.Name) -> None:
    setting = Majority(3, 1.0, 2.0).to_dict()
    voters = verify.Voters(setting, None)
    voters.row(("corner", 2, (("bc", 1),)))
    with pytest.raises(verify.Malformed):
        voters.row(name)


@pytest.mark.parametrize(
    "setting",
    [
        Majority(1, 1.0, 1.0),
        Majority(5, 1.0, 2.0),
        Majority(3, 1.0, 2.0, voter_delta=0.125, delta=0.25),
    ],
    ids=repr,
)
def test_corners_of_voters_are_those_of_the_theorem(setting: Any) -> None:
    names = list(verify.Voters(setting.to_dict(), None).names())
    assert len(set(names)) == len(names)
    known = set()
    for counts in reduced_multisets(setting):
        placed = tuple(pair for pair in counts if pair[0] not in ("11", "00"))
        known.add(("corner", dict(counts).get("11", 0), placed))
    assert set(names) == known


@pytest.mark.parametrize("delta", [0.0, 0.125])
def test_both_sides_of_a_corner_are_those_of_its_votes(
    delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the chance that a voter is taken to have, which is rounded up once."""
    exponentials(monkeypatch, {x: (RATIO**x, RATIO**x) for x in range(9)})
    setting = dpopt.Multiclass(3, 3, 1.0, 2.0, delta=delta)
    labels = verify.Labels(setting.to_dict(), verify.Ballots(3, 3, UNITS), None)
    unit, pairs, seen = 1 << verify.CORNER, [(0, 1), (0, 2), (1, 2)], 0
    b = rounded_chance(RATIO)
    for size, signed, here, ahead, back in labels.sides((0, size) for size in labels.sizes):
        edges = [
            pair[:: 1 if m > 0 else -1]
            for pair, m in zip(pairs, signed, strict=True)
            for _ in range(abs(m))
        ]
        for loops, *told in zip(here, ahead, back, strict=True):
            for first, side in zip((b, 1 - b), told, strict=True):
                pmf = {loops: Fraction(1)}
                for y, z in edges:
                    wider: dict[Any, Fraction] = {}
                    for counts, mass in pmf.items():
                        for vote, share in ((y, first), (z, 1 - first)):
                            more = tuple(n + (x == vote) for x, n in enumerate(counts))
                            wider[more] = wider.get(more, Fraction(0)) + mass * share
                    pmf = wider
                exact = sum(m * sum(chances_of_three(n)[:size]) for n, m in pmf.items())
                assert 0 <= side - exact * 105 * unit < max(1, len(edges))
                seen += 1
    assert seen > 100


@pytest.mark.parametrize("rule", ["exact", "roo"])
def test_a_rule_is_decided_for_the_least_that_e_epsilon_may_be(
    rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    exponentials(monkeypatch, {1: (LOW, HIGH)})
    q = [1 << 62] if rule == "roo" else [1 << 62, 1 << 61]
    program = program_of(dpopt.RevealOrObscure(7, 3, 1.0, rule), None, q)
    same = rule == "roo"
    assert verify.decide(program).slack == verify.decide_rule(7, 3, q, same, LOW).slack
    assert (
        verify.decide_rule(7, 3, q, same, LOW).slack < verify.decide_rule(7, 3, q, same, HIGH).slack
    )


def test_a_floor_is_decided_for_the_least_that_e_epsilon_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting, less = dpopt.SmoothFloor(12, 3, 1.0), dpopt.SmoothFloor(12, 3, 0.9)
    units = json.loads(json.dumps(less.plain(dpopt.design(less).table)))
    exponentials(monkeypatch, {1: (LOW, HIGH), 0: (Fraction(3, 2), Fraction(2))})
    floor = verify.Floor(12, 3, list(map(int, units[1])), 1 << int(units[0]))
    assert verify.decide(program_of(setting, None, units)).slack == floor.decide(LOW).slack
