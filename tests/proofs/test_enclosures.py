"""Rows and verdicts where e^epsilon is known to a few digits: the ends that count are taken.

A row with an enclosed e^epsilon holds, at whatever number is inside, no more than the row of that
number, which is computed here with an exact rational in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product
from math import comb
from typing import Any

import pytest

import dpopt
from dpopt import Kernel, Majority, Mollifier, Population, PublicPrior, verify
from tests.majority.brute import reduced_multisets
from tests.oracles import votes
from tests.proofs.judging import program_of

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


def coefficients(row: verify.Row, names: Any) -> Iterator[tuple[Any, Any]]:
    """The ends of all coefficients of a row, and of its limit last."""
    yield from (verify.ends(row.terms.get(v, 0)) for v in names)
    yield verify.ends(row.limit)


def exponentials(monkeypatch: pytest.MonkeyPatch, known: Mapping[int, verify.Between]) -> None:
    """Have the file take these enclosures of e^x for x = 1, 2, ..., to however many bits."""
    monkeypatch.setattr(verify, "exp", lambda x, *_: known[int(x)])


def powers(ratio: Fraction, width: Fraction = Fraction(0)) -> dict[int, Any]:
    """Enclosures of ratio^x, that of x = 1 so wide on either side."""
    return {x: (ratio**x, ratio**x) for x in range(9)} | {1: (ratio - width, ratio + width)}


@pytest.mark.sample(6)
@pytest.mark.parametrize("setting", AFFINE, ids=repr)
def test_a_row_has_the_ends_of_what_is_enclosed(setting: Any) -> None:
    low, wide, high = (program_of(setting, ratio=r) for r in (LOW, (LOW, HIGH), HIGH))
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
    program = program_of(setting, {"bits": 62}, (LOW, HIGH))
    exact = [r * q / total / (r * q / total + 1 - q / total) for r in (LOW, HIGH)]
    assert program.row(("lemma 3",)).limit == tuple(exact)


def test_a_mollifier_s_limits_are_enclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Mollifier(PMF, 1.0, [0.25] * 4)
    exponentials(monkeypatch, {0: (LOW, HIGH)})
    program, total = program_of(setting), sum(map(Fraction, PMF))
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
    exact, sure = program_of(setting, ratio=RATIO), powers(RATIO)
    broad = {x: (RATIO**x - width * (x > 0), RATIO**x + width * (x > 0)) for x in range(9)}
    # The budget's e^(m epsilon) is taken once, the voters' powers when they are asked for.
    exponentials(monkeypatch, sure if wide == "voters" else broad)
    program, told = program_of(setting), 0
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


def votes_of(corner: Any, share: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The distribution of three classes' counts at a corner: of voters at loops and on edges."""
    signed, loops = corner
    pairs = zip(combinations(range(3), 2), signed, strict=True)
    edges = [pair[:: 1 if m > 0 else -1] for pair, m in pairs for _ in range(abs(m))]
    return votes(loops, edges, share)


def least_slack(setting: Any, chances: Any, b: Fraction, budget: Fraction) -> Fraction:
    """The least of delta + R P'(S) - P(S), S the first k classes, over corners; R is the budget."""
    delta, classes = Fraction(setting.delta), getattr(setting, "classes", 2)
    slacks = []
    # All choices of corners of all voters.
    for pairs in combinations_with_replacement(product(range(classes), repeat=2), setting.voters):
        one, other = (votes((0,) * classes, pairs, share) for share in (b, 1 - b))
        for size in range(1, classes if delta else 2):
            p, q = (sum(m * sum(chances(n)[:size]) for n, m in pmf.items()) for pmf in (one, other))
            slacks.append(delta + budget * q - p)
    return min(slacks)


def rounded_chance(ratio: Fraction) -> Fraction:
    """The larger chance of a voter, rounded up as it is once for all corners of a plurality."""
    unit = 1 << verify.CORNER
    return Fraction(-(-ratio * unit // (1 + ratio)), unit)


def slack_at(program: verify.Program, row: verify.Row) -> Any:
    """What a point leaves of a row's limit."""
    told = sum(verify.ends(a)[0] * program.point[v] for v, a in row.terms.items())
    return verify.ends(row.limit)[0] - told


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
    exponentials(monkeypatch, powers(ratio, width))
    program = program_of(setting, units)
    verdict = verify.decide(program)
    chances = partial(chances_of_three, units=units)
    exact = least_slack(setting, chances, rounded_chance(ratio + width), ratio - width)
    assert exact > 0
    assert verdict.slack <= exact <= verdict.slack + Fraction(1, 1 << 100)
    assert verdict.rows == sum(1 for _ in program.names())
    # It is a corner with voters on edges; the row that is named has that slack.
    assert any(verdict.at[2])
    slack = slack_at(program, program_of(setting, ratio=ratio + width).row(verdict.at))
    assert width or 0 <= slack - verdict.slack <= Fraction(1, 1 << 100)


def test_a_table_beyond_its_corners_is_refused_by_their_excess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = dpopt.Multiclass(3, 3, 1.0, 1.0)
    exponentials(monkeypatch, powers(RATIO))
    # All but the first count of two has what it had: too much for one epsilon.
    units = {"total": 105, "weights": [[61, 22], [90, 10, 5], [35]]}
    with pytest.raises(verify.Refused) as caught:
        verify.decide(program_of(setting, units))
    chances = partial(chances_of_three, units=units)
    exact = least_slack(setting, chances, rounded_chance(RATIO), RATIO)
    assert exact < 0
    assert -exact <= caught.value.missed <= -exact + Fraction(1, 1 << 100)


def test_a_plurality_s_rows_are_those_of_votes_at_corners() -> None:
    setting = dpopt.Multiclass(3, 3, 1.0, 2.0, delta=0.125)
    program = program_of(setting, UNITS, RATIO)
    for name in program.names():
        sides = []
        for share in (RATIO / (1 + RATIO), 1 / (1 + RATIO)):
            pmf = votes_of(name[2:], share)
            sides.append(sum(m * sum(chances_of_three(n)[: name[1]]) for n, m in pmf.items()))
        row = program.row(name)
        assert slack_at(program, row) == Fraction(1, 8) - sides[0] + RATIO**2 * sides[1]
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
    exponentials(monkeypatch, powers(RATIO, width))
    ones = [*(64 - a for a in upper[::-1]), *upper]

    def chances(counts: tuple[int, ...]) -> list[Fraction]:
        return [Fraction(ones[counts[0]], 64), 1 - Fraction(ones[counts[0]], 64)]

    exact = least_slack(setting, chances, 1 - 1 / (1 + RATIO + width), RATIO**2)
    verdict = verify.decide(program_of(setting, units))
    assert exact > 0
    assert verdict.slack <= exact
    if not width:
        # Up to floats: what is not close is not looked at in integers.
        assert float(verdict.slack) == pytest.approx(float(exact), rel=1e-12)
        # The row that is named has that slack, twice, and voters at a corner where there is a jump.
        assert bool(verdict.at[2]) == (len(set(upper)) == 1)
        program = program_of(setting, units, RATIO)
        assert slack_at(program, program.row(verdict.at)) / 2 == exact
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


def test_chances_at_corners_are_as_close_as_e_epsilon_is(monkeypatch: pytest.MonkeyPatch) -> None:
    exponentials(monkeypatch, {1: (LOW, HIGH), 2: (RATIO, RATIO)})
    setting, d = Majority(3, 1.0, 2.0, voter_delta=0.125, delta=0.25), Fraction(1, 8)
    voters = verify.Voters(setting.to_dict(), None)
    assert voters.chance("b") == ((LOW + d) / (LOW + 1), (HIGH + d) / (HIGH + 1))
    assert voters.chance("c") == ((1 - d) / (HIGH + 1), (1 - d) / (LOW + 1))
    known = {"0": Fraction(0), "D": d, "m": 1 - d, "1": Fraction(1)}
    assert all(voters.chance(corner) == (p, p) for corner, p in known.items())
    # Corners that are none.
    voters.row(("corner", 2, (("bc", 1),)))
    for ones, *placed in ((0, "zz", 1), (0, "bc", 4), (3, "bc", 1), (-1, "bc", 1), (0, "bc", -1)):
        with pytest.raises(verify.Malformed):
            voters.row(("corner", ones, (tuple(placed),)))


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
    exponentials(monkeypatch, powers(RATIO))
    setting = dpopt.Multiclass(3, 3, 1.0, 2.0, delta=delta)
    labels = verify.Labels(setting.to_dict(), verify.Ballots(3, 3, UNITS), None)
    unit, compared, b = 1 << verify.CORNER, 0, rounded_chance(RATIO)
    for size, signed, corners, ahead, back in labels.sides((0, size) for size in labels.sizes):
        for loops, *sides in zip(corners, ahead, back, strict=True):
            for share, side in zip((b, 1 - b), sides, strict=True):
                pmf = votes_of((signed, loops), share)
                exact = sum(m * sum(chances_of_three(n)[:size]) for n, m in pmf.items())
                assert 0 <= side - exact * 105 * unit < max(1, sum(map(abs, signed)))
                compared += 1
    assert compared > 100


@pytest.mark.parametrize("rule", ["exact", "roo"])
def test_a_rule_is_decided_for_the_least_that_e_epsilon_may_be(
    rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    exponentials(monkeypatch, {1: (LOW, HIGH)})
    q = [1 << 62] if rule == "roo" else [1 << 62, 1 << 61]
    program = program_of(dpopt.RevealOrObscure(7, 3, 1.0, rule), q)
    same = rule == "roo"
    assert verify.decide(program).slack == verify.decide_rule(7, 3, q, same, LOW).slack
    assert (
        verify.decide_rule(7, 3, q, same, LOW).slack < verify.decide_rule(7, 3, q, same, HIGH).slack
    )


def test_a_floor_is_decided_for_the_least_that_e_epsilon_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting, less = dpopt.SmoothFloor(12, 3, 1.0), dpopt.SmoothFloor(12, 3, 0.9)
    units = less.plain(dpopt.design(less).table)
    exponentials(monkeypatch, {1: (LOW, HIGH), 0: (Fraction(3, 2), Fraction(2))})
    floor = verify.Floor(12, 3, list(map(int, units[1])), 1 << int(units[0]))
    assert verify.decide(program_of(setting, units)).slack == floor.decide(LOW).slack
