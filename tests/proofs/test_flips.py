"""Decisions of verify.py that no other default test would notice if they were turned round."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import dpopt
from dpopt import Kernel, Majority, verify

# Settings


@pytest.mark.parametrize(
    "fields",
    [
        {"delta": 1e-15, "sensitivity": 100},
        {"delta": 0, "sensitivity": 1000, "epsilon": 0.1},
        {"loss": [0, 0, 1]},
        {"loss": [0, 1, 1]},
    ],
    ids=str,
)
def test_noise_that_is_just_allowed(fields: dict[str, Any]) -> None:
    plain = {"sensitivity": 1, "epsilon": 1, "delta": 0, "loss": "absolute", "releases": 1}
    verify.allowed("noise", plain | fields)
    nearly = [
        {"delta": 9e-16},
        {"delta": 0.1, "sensitivity": 101},
        {"sensitivity": 101, "epsilon": 0.01},
        {"loss": [1, 1]},
        {"loss": [0, 1, 0.5, 2]},
        {"releases": 2},
    ]
    for wrong in nearly:
        with pytest.raises(verify.Malformed):
            verify.allowed("noise", plain | wrong)


@pytest.mark.parametrize("symmetry", ["cyclic", "dihedral"])
def test_pairs_on_a_ring_are_alike_by_their_distance(symmetry: str) -> None:
    steps = [0, 1, 2, 3, 4] if symmetry == "cyclic" else [0, 1, 2, 2, 1]
    known = [[steps[(y - x) % 5] for y in range(5)] for x in range(5)]
    assert verify.orbits({"symmetry": symmetry}, 5, 5) == known


def test_sizes_are_multiplied() -> None:
    verify.require_size(verify.MOST, 0)
    for beyond in ((verify.MOST + 1,), (10**4, 10**4), (0, verify.MOST, 2)):
        with pytest.raises(verify.Malformed, match="a size is beyond"):
            verify.require_size(*beyond)


def test_words_of_unequal_alphabets_have_all_neighbours_in_one_symbol() -> None:
    known = list(product(range(2), range(3)))
    pairs = verify.neighbours({"graph": "hamming", "shape": [2, 3]}, 6)
    assert pairs == [
        (x, z)
        for (x, one), (z, other) in permutations(enumerate(known), 2)
        if (one[0] != other[0]) + (one[1] != other[1]) == 1
    ]


# Distributions


def test_one_voter_of_a_uniform_that_is_not_even() -> None:
    """E|p - 1/2| on [1/4, 1]: triangles of sides 1/4 and 1/2, over the length 3/4."""
    mean = (Fraction(1, 32) + Fraction(1, 8)) / Fraction(3, 4)
    assert verify.pmf_of_uniform(1, [Fraction(1, 4), Fraction(1)]) == [-mean, mean]


def test_neighbours_of_a_majority_are_those_of_its_votes() -> None:
    """All m voters of a record answer alike with chance b, or 1 - b; the others are fixed."""
    table = {"total": "10", "weights": [["6", "4"], ["9", "1"]]}
    chance = [Fraction(ones, 10) for ones in (1, 4, 6, 9)]
    setting = {"voters": 3, "epsilon": 0.5, "allowance": 1, "voter_delta": 0, "delta": 0}
    listed, scale = verify.labels_of_majority(setting, table)
    with mp.workdps(100):
        share = int(mp.ceil(mp.exp(0.5) / (1 + mp.exp(0.5)) * (1 << verify.CORNER)))
    known = list[tuple[Fraction, ...]]()
    for direction in (1, -1):
        b = Fraction(share, 1 << verify.CORNER)
        for m, ones in [(3, 0), (2, 0), (2, 1), (1, 0), (1, 1), (1, 2)]:
            sides = [
                sum(
                    math.comb(m, i) * p**i * (1 - p) ** (m - i) * chance[ones + i]
                    for i in range(m + 1)
                )
                for p in (b, 1 - b)
            ]
            known.append(tuple(map(Fraction, sides[::direction])))
    shown = [(Fraction(one[0], scale), Fraction(other[0], scale)) for one, other in listed]
    assert np.allclose(
        np.array(sorted(shown), float), np.array(sorted(known), float), rtol=0, atol=1e-12
    )
    for p, q in shown:
        exact, other = min(known, key=lambda pair: abs(pair[0] - p) + abs(pair[1] - q))
        # The first is rounded up, the second down.
        assert exact <= p
        assert q <= other


def test_a_small_variance_is_within_its_box() -> None:
    """Randomised response a : b has variance 1/2 ((a - b)^-2 - 1) for two categories."""
    setting = {"queries": "histogram", "categories": 2, "epsilon": 8.0, "prior": None}
    table = {"total": 1001, "weights": [[1000, 1], [1, 1000]]}
    program = verify.workload({**setting, "objective": "mean"}, table, None, {})
    assert verify.decide(program).missed == 0
    assert program.value == (Fraction(1001, 999) ** 2 - 1) / 2


def test_rows_and_costs_of_a_rule_are_of_the_least_counts_that_it_has() -> None:
    """Of 6 records over 2 categories least counts go to 3, whose q the conference paper halves."""
    setting = {"records": 6, "categories": 2, "rule": "exact", "epsilon": 1.0}
    program = verify.roo(setting, [1 << 61], None, {})
    assert set(program.cost) == {("q", 0), ("q", 1), ("q", 2)}
    for name in verify.moves(6, 2, 3, "exact"):
        with pytest.raises(verify.Malformed):
            program.row(name)
    for stored, last in ((None, [Fraction(1, 2)]), ([1 << 61], [])):
        costs = verify.roo({**setting, "rule": "conference"}, stored, None, {}).cost
        assert list(costs.values()) == [1, 1, 1, *last]
    # One q for all four least counts; and one record, whose least count is 0.
    assert verify.roo({**setting, "rule": "roo"}, None, None, {}).cost == {("q", 0): 4}
    one = {**setting, "records": 1, "rule": "conference"}
    assert verify.roo(one, None, None, {}).cost == {("q", 0): 1}


def test_growth_of_a_floor_counts_its_first_step_beyond_the_table() -> None:
    """W(0) = 15/16, W(1) = 1 and W(2) = 2."""
    setting = {"records": 3, "categories": 3, "epsilon": 1.0}
    assert verify.smooth_floor(setting, [4, [15]], None, {}).note == " for growth 1.0"


def test_rows_of_a_sampler_enclose_e_epsilon() -> None:
    setting = {"records": 2, "categories": 2, "epsilon": 1.0, "objective": "worst-case"}
    program = verify.optimal_sampler(setting, None, (Fraction(2), Fraction(3)), {})
    # From (2, 0) to (1, 1), where both categories have count 1.
    row = program.row(("privacy", (2, 0), 2, (1, 1), 1))
    assert row.terms == {("K", (1, 1), 1): 1, ("K", (2, 0), 2): (-6, -4)}


def test_edges_of_voters_are_all_without_a_circle_of_three() -> None:
    setting = {"voters": 3, "epsilon": 0.5, "allowance": 1, "voter_delta": 0, "delta": 0}
    labels = verify.Labels(setting, verify.Ballots(3, 4, None), None)
    pairs = list(combinations(range(4), 2))

    def circular(signed: tuple[int, ...]) -> bool:
        arcs = {pair[:: 1 if m > 0 else -1] for pair, m in zip(pairs, signed, strict=True) if m}
        return any({(x, y), (y, z), (z, x)} <= arcs for x, y, z in permutations(range(4), 3))

    every = [m for m in product(range(-3, 4), repeat=6) if sum(map(abs, m)) <= 3]
    known = {m for m in every if not circular(m)}
    listed = list(labels.edges())
    assert len(listed) == len(known) < len(every)
    assert set(listed) == known
    halved = list(labels.edges(turned=False))
    assert {*halved, *(tuple(-n for n in m) for m in halved)} == known
    assert len(halved) == (len(known) + 1) // 2


def test_two_releases_are_decided_on_finer_grids_where_that_is_needed() -> None:
    """Two answers of 3 : 2 against two of 2 : 3 have a total variation of 9/25 - 4/25."""
    pairs = [((3, 2), (2, 3)), ((2, 3), (3, 2))]
    least = Fraction(1, 5)
    for delta in (Fraction(1, 2), least + Fraction(1, 20_000)):
        slack = verify.decide_releases(pairs, 5, 2, Fraction(0), delta).slack
        assert delta - least - Fraction(1, 1000) <= slack <= delta - least
    with pytest.raises(verify.Refused) as caught:
        verify.decide_releases(pairs, 5, 2, Fraction(0), Fraction(1, 10))
    assert 0 <= caught.value.missed - (least - Fraction(1, 10)) <= Fraction(1, 1000)


def test_a_step_is_its_sum_over_outputs_rounded_up() -> None:
    """In fractions: chords between breakpoints, a line to 0 on their left, slope 1 on the right."""
    rng, looked_at = random.Random(2), 0
    while looked_at < 500:
        points = [0, *sorted(rng.sample(range(1, 16), 3))]
        values = [0, *sorted(rng.choices(range(12), k=3))]
        rises = [b - a for a, b in pairwise(values)]
        slopes = [Fraction(r, b - a) for r, (a, b) in zip(rises, pairwise(points), strict=True)]
        if sorted([*slopes, 1]) != [*slopes, 1]:
            continue
        looked_at += 1
        total, t = rng.randint(2, 9), rng.randint(1, 20)
        ones, others = rng.randint(0, total), rng.randint(0, total)
        pair = (ones, total - ones), (others, total - others)
        exact = Fraction(0)
        for p, q in zip(*pair, strict=True):
            # A convex function is the largest of its lines.
            lines = zip(points, values, [*slopes, 1], strict=True)
            exact += max(q * v + k * (t * p - q * a) for a, v, k in lines)
        shown = verify.stepped(pair, total, t, points[1:], values[1:])
        assert exact / total <= shown < exact / total + 1 + Fraction(2, total)


@pytest.mark.parametrize(("voters", "classes"), [(4, 3), (6, 3), (2, 10)])
def test_each_ballot_is_replaced_once_in_each_way(voters: int, classes: int) -> None:
    """Up to the names of classes of the same count; every class is one of the outputs."""
    rows = [[1] * len(copies) for copies in verify.Ballots(voters, classes, None).copies]
    ballots = verify.Ballots(voters, classes, {"total": classes, "weights": rows})
    for at, state in enumerate(ballots.states):
        known = set[tuple[tuple[int, int], ...]]()
        for i, j in permutations(range(len(state)), 2):
            after = [c - (y == i) + (y == j) for y, c in enumerate(state)]
            known |= {tuple(sorted(zip(state, after, strict=True)))} if state[i] else set()
        moves = [tuple(sorted(zip(state, after, strict=True))) for after in ballots.moves(at)]
        assert sorted(moves) == sorted(known)
    assert {sum(side) for pair in ballots.pairs() for side in pair} == {classes}


# Files


def saved(setting: Any, folder: Path) -> tuple[dict[str, Any], Path]:
    """Return the record of a design that is saved with a proof, and its file."""
    dpopt.design(setting).save(folder / "x.json", proof=True)
    return json.loads((folder / "x.json").read_text()), folder / "x.proof.json"


def answered(record: dict[str, Any], folder: Path, *proof: Path) -> int:
    """Return the exit code for a record."""
    (folder / "forged.json").write_text(json.dumps(record))
    return verify.main([str(folder / "forged.json"), *map(str, proof)])


@pytest.mark.parametrize("setting", [Majority(3, 0.1, 1.1), Kernel("zero-one", 1.0, inputs=2)])
def test_no_smaller_guarantee_is_stated(setting: Any, tmp_path: Path) -> None:
    """Not by a unit of the last place; the double of 1.1 times 0.1 is below their product."""
    record, _ = saved(setting, tmp_path)
    assert answered(record, tmp_path) == 0
    smaller = 1.1 * 0.1 if setting.kind == "majority" else math.nextafter(1.0, 0)
    record["body"]["guarantee"]["epsilon"] = smaller
    assert answered(record, tmp_path) == 4


def test_rows_may_be_missed_by_the_largest_residual(tmp_path: Path) -> None:
    """The mean of both rows is (.55, .45), of what was asked for (.5, .5)."""
    record, _ = saved(Kernel([[0.0, 1.0], [1.0, 0.0]], 1.0, invariant=[0.5, 0.5]), tmp_path)
    table = {"total": "10", "weights": [["6", "4"], ["5", "5"]]}
    record["body"] |= {"table": table, "value": 0.45, "bound": None}
    for residuals, code in (({"a": 0, "invariance": 0.1}, 0), ({"a": 0, "invariance": 0.04}, 4)):
        record["body"]["residuals"] = residuals
        assert answered(record, tmp_path) == code


@pytest.mark.parametrize("sense", ["minimise", "maximise"])
def test_a_stated_bound_is_no_better_than_the_proof_shows(sense: Any, tmp_path: Path) -> None:
    """Values from 0 to 1 are decided up to 1e-9, however small they are."""
    loss = [[0.0, 1.0], [1.0, 0.0]]
    record, proof = saved(Kernel(loss, 5.0, sense=sense), tmp_path)
    bound, better = record["body"]["bound"], 1 if sense == "minimise" else -1
    for change, code in ((0.0, 0), (5e-10, 0), (2e-9, 4), (-2e-9, 0)):
        record["body"]["bound"] = bound + better * change
        assert answered(record, tmp_path, proof) == code, change


def test_ratios_of_an_exact_optimum(tmp_path: Path) -> None:
    """From 1, where both rows are equal, to 256 bits: randomised response r : 1 is best at r."""
    setting = Kernel("zero-one", 1.0, inputs=2)
    assert answered(dpopt.exact_optimum(setting, 1).to_dict(), tmp_path) == 0
    plain = dpopt.exact_optimum(setting, 3).to_dict()
    for r, code in ((3, 0), ((1 << 256) - 1, 0), (1 << 256, 2)):
        at_r = {"3": r, "1/4": Fraction(1, r + 1), "3/4": Fraction(r, r + 1)}
        at_r |= {"1/8": Fraction(1, 2 * r + 2), "3/8": Fraction(r, 2 * r + 2)}
        record = {name: at_r.get(str(part), part) for name, part in plain.items()}
        for name in ("point", "multipliers"):
            record[name] = [[*variable, at_r[number]] for *variable, number in plain[name]]
        assert answered(json.loads(json.dumps(record, default=str)), tmp_path) == code
    # Of the same value, but not private.
    for place, number in zip(plain["point"][:4], ["1", "0", "1/2", "1/2"], strict=True):
        place[-1] = number
    assert answered(plain, tmp_path) == 4


def test_the_surrogate_weighs_votes_as_those_of_p_three_quarters() -> None:
    prior = "common-uniform:0,1"
    setting = {"voters": 5, "prior": prior, "objective": "surrogate", "coefficients": None}
    chances = [Fraction(math.comb(5, ones) * 3**ones, 4**5) for ones in range(6)]
    margins = [(chances[ones] - chances[5 - ones]) / 2 for ones in (3, 4, 5)]
    assert verify.vote_weights(setting, {}) == (margins, "")


def test_what_main_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["-h"], ["a", "b", "c"]):
        assert verify.main(arguments) == 2
        out, err = capsys.readouterr()
        assert (out, err) == ("", "usage: python verify.py x.json [x.proof.json]\n")
    record, _ = saved(Kernel("zero-one", 1.0, inputs=2), tmp_path)
    assert answered(record | {"a\n~ b\x1b[31m\x7f\u202e": 1}, tmp_path) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "setting.total_delta" not in out
    assert out.endswith(", file.a\\n~ b\\x1b[31m\\x7f\\u202e\n")
