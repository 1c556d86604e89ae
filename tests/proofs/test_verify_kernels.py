"""Kernels and majorities in the checker: accepted, refused, and bounds against other sources."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import majority, verify
from tests.kernel import brute
from tests.proofs.judging import answer, program_of, read, saved

Kernel = dpopt.Kernel
PATH = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
UNIFORM = majority.parse_prior("uniform:0,1")
PRIOR = [0.2, 0.3, 0.5]
OWN = [
    ("near", np.eye(1, 16), [0.5], None),
    ("both", np.eye(2, 16, 5), [0.1, 0.2], [0.1, 0.3]),
]
SETTINGS: dict[str, Any] = {
    "kernel": Kernel.example(),
    "majority": dpopt.Majority.example(),
    "reflection": Kernel(PATH, 0.5, graph="path", objective="worst-case", symmetry="reflection"),
    "words": Kernel("hamming", 1.0, graph="hamming", shape=(2, 2), symmetry="hamming"),
    "symbols": Kernel("zero-one", 1.0, inputs=6, symmetry="symbols"),
    "dihedral": Kernel("zero-one", 1.0, 0.05, inputs=6, graph="cycle", symmetry="dihedral"),
    "generators": Kernel(PATH, 0.5, graph="path", symmetry=[([2, 1, 0], [2, 1, 0])]),
    "q K = q": Kernel(PATH, 0.5, prior=PRIOR, invariant=PRIOR),
    "own rows": Kernel("absolute", 1.0, inputs=4, graph="path", constraints=OWN),
    "epsilon = 0": Kernel("absolute", 0.0, inputs=4, graph="path"),
    "utility": Kernel(PATH, 0.7, sense="maximise", objective="worst-case"),
    "Delta": dpopt.Majority(5, 0.3, 1.5, voter_delta=1e-3, delta=0.01),
    "independent": dpopt.Majority(5, 0.5, 1.5, prior=UNIFORM),
    "coefficients": dpopt.Majority(3, 0.5, 1.5, coefficients=[1.0, 0.25]),
}


def test_a_ratio_one_unit_too_far_is_refused(tmp_path: Path) -> None:
    path, _ = saved(Kernel("zero-one", math.log(2), inputs=2), tmp_path)
    file = json.loads(path.read_text())
    units = file["body"]["table"]
    total = int(units["total"])
    low = math.floor(total / (1 + Fraction(verify.exp(Fraction(math.log(2)))[1])))
    for least, code in ((low - 1, 4), (low + 1, 0)):
        units["weights"] = [[str(total - least), str(least)], [str(least), str(total - least)]]
        assert answer(tmp_path, file)[0] == code


def test_a_missed_row_is_compared_with_what_the_file_states(tmp_path: Path) -> None:
    path, _ = saved(SETTINGS["q K = q"], tmp_path)
    file = json.loads(path.read_text())
    weights = file["body"]["table"]["weights"]
    # Both rows move alike, and privacy does not change by more than its slack.
    for row in weights:
        row[0], row[1] = str(int(row[0], 0) + (1 << 30)), str(int(row[1], 0) - (1 << 30))
    for part in (file["body"]["setting"], file["body"]["guarantee"]):
        part["epsilon"] += 1e-6
    code, _, complaint = answer(tmp_path, file)
    assert (code, "states" in complaint) == (4, True)


def test_a_kernel_too_large_is_refused_by_its_size(tmp_path: Path) -> None:
    file = json.loads(saved(SETTINGS["words"], tmp_path)[0].read_text())
    file["body"]["setting"] |= {"shape": [2] * 15, "inputs": 2**15, "outputs": 2**15}
    assert answer(tmp_path, file)[0] == 2


def test_a_kernel_of_the_user_has_no_bound(tmp_path: Path) -> None:
    given = dpopt.certify(np.full((3, 3), 1 / 3), setting=Kernel(PATH, 0.5))
    assert given.bound is None
    with pytest.warns(UserWarning, match="no proof of optimality"):
        given.save(tmp_path / "x.json", proof=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert len(list(verify.check(str(tmp_path / "x.json")))) == 4


@pytest.mark.parametrize("seed", range(12))
def test_a_bound_is_that_of_a_program_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs, outputs = (int(n) for n in rng.integers(2, 6, 2))
    loss, epsilon = rng.random((inputs, outputs)), float(rng.choice([0.0, 0.1, 1.0, 3.0]))
    delta = float(rng.choice([0.0, 0.05]))
    edges = [(x, int(rng.integers(x + 1, inputs))) for x in range(inputs - 1)]
    found: Any = dpopt.design(Kernel(loss, epsilon, delta, graph=edges))
    assert found.bound.how == "proved"
    assert found.optimality.gap <= 1e-12
    both = edges + [(z, x) for x, z in edges]
    expected = brute.least_loss(loss, both, epsilon, delta, prior=np.full(inputs, 1 / inputs))
    assert float(found.bound) == pytest.approx(expected, abs=1e-9)


def test_two_inputs_on_a_path_are_all_there_are() -> None:
    path, cycle = ({"graph": graph, "shape": None} for graph in ("path", "cycle"))
    assert verify.neighbours(path, 2) is None
    assert verify.neighbours(path, 3) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert verify.neighbours(cycle, 3) is None
    assert verify.neighbours({"graph": [[0, 1]]}, 3) == [(0, 1), (1, 0)]
    # As many words as the shape says.
    assert verify.neighbours({"graph": "hamming", "shape": [2, 2]}, 4) == [
        *((0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2))
    ]
    # In words.
    assert verify.among(None, 3) == "between all 3 inputs"
    pairs = [(0, 1), (1, 0)]
    assert verify.among(pairs, 2) == "along 2 directed edges of 2 inputs"
    assert verify.among(pairs, 4).endswith("of 4 inputs; 2 inputs have no neighbour")


@pytest.mark.parametrize(
    ("graph", "delta", "names"),
    [
        ("complete", 0.0, {"above", "below"}),
        ("complete", 0.125, {"privacy", "delta"}),
        ("path", 0.0, {"privacy"}),
        ("path", 0.125, {"privacy", "delta"}),
    ],
)
def test_rows_are_those_of_the_graph_and_of_delta(
    graph: Any, delta: float, names: set[str]
) -> None:
    program = program_of(Kernel("absolute", 1.0, delta, graph, inputs=3, outputs=5))
    rows = list(program.names())
    assert {name[0] for name in rows} == names
    pairs = {name[1:3] for name in rows if name[0] in ("privacy", "delta")}
    assert all(x != z for x, z in pairs)
    assert len(pairs) == (0 if "above" in names else 4 if graph == "path" else 6)
    # A loss by name compares inputs with outputs.
    cells = product(range(3), range(5))
    assert program.cost == {("K", x, y): Fraction(abs(x - y), 3) for x, y in cells}


@pytest.mark.parametrize(
    ("sense", "sign", "worst"), [("minimise", 1, 1), ("maximise", -1, Fraction(3, 4))]
)
def test_a_worst_case_is_the_largest_loss_and_the_least_utility(
    sense: Any, sign: int, worst: Any
) -> None:
    table = [[1.0, 0.0], [0.0, 2.0]]
    setting = Kernel(table, 1.0, sense=sense, objective="worst-case")
    program = program_of(setting, {"total": 4, "weights": [[3, 1], [2, 2]]})
    assert program.point["t",] == program.value == worst
    assert program.boxes["t",] == (0, 2)
    # No loss is above the worst one, no utility below.
    losses = {("K", 1, 0): 0, ("K", 1, 1): sign * 2}
    assert program.row(("worst", 1)) == verify.Row({**losses, ("t",): -sign})


@pytest.mark.parametrize("graph", ["complete", "path"])
@pytest.mark.parametrize("delta", [0.0, 0.125])
@pytest.mark.parametrize("weights", [[[5, 3], [4, 4], [3, 5]], [[7, 1], [4, 4], [1, 7]]])
def test_a_table_has_the_slack_of_all_its_neighbours(
    graph: Any, delta: float, weights: list[list[int]]
) -> None:
    """At e^epsilon = 2, in fractions."""
    setting, exact = Kernel("absolute", 1.0, delta, graph, inputs=3, outputs=2), Fraction(2)
    program = program_of(setting, {"total": 8, "weights": weights}, exact)
    pairs = [(x, z) for x in range(3) for z in range(3) if 0 < abs(x - z) <= 1 + (graph[0] == "c")]
    excess = [
        [
            Fraction(a, 8) - exact * Fraction(b, 8)
            for a, b in zip(weights[x], weights[z], strict=True)
        ]
        for x, z in pairs
    ]
    # Of sets of outputs that are not empty, where delta is above 0.
    worst = [sum(e for e in row if e > 0) if delta else max(row) for row in excess]
    worst = [one or max(row) for one, row in zip(worst, excess, strict=True)]
    slack = Fraction(delta) - max(worst)
    if slack < 0:
        with pytest.raises(verify.Refused) as caught:
            verify.decide(program)
        assert caught.value.missed == -slack
        return
    verdict = verify.decide(program)
    assert verdict.slack == slack
    assert verdict.rows == len(pairs) * (1 if delta else 2)


@pytest.mark.parametrize("shape", [[2, 2], [2, 3, 2], [3]])
def test_an_orbit_of_words_is_what_categories_and_positions_exchange(shape: list[int]) -> None:
    words = list(product(*map(range, shape)))
    generators = []
    for i, size in enumerate(shape):
        for category in range(1, size):
            swap = {0: category, category: 0}
            to = [tuple(swap.get(a, a) if p == i else a for p, a in enumerate(w)) for w in words]
            generators.append([words.index(w) for w in to])
        for j in (j for j in range(i) if shape[j] == size):
            order = [j if p == i else i if p == j else p for p in range(len(shape))]
            generators.append([words.index(tuple(w[p] for p in order)) for w in words])
    n = len(words)
    by_name = verify.orbits({"symmetry": "hamming", "shape": shape}, n, n)
    listed = [[side, side] for side in generators]
    written = verify.orbits({"symmetry": listed, "shape": shape}, n, n)
    both = {pair for rows in zip(by_name, written, strict=True) for pair in zip(*rows, strict=True)}
    assert len(both) == 1 + max(map(max, by_name)) == 1 + max(map(max, written))


THREE = {"inputs": 3, "outputs": 3, "loss": [[0, 1, 2], [1, 0, 1], [2, 1, 0]]}


@pytest.mark.parametrize(
    ("of_words", "change", "changed"),
    [
        *((True, change, None) for change in ({}, {"graph": "hamming"}, {"prior": [2, 2, 2, 2]})),
        (True, {"graph": "cycle"}, "the prior or the neighbours"),
        (True, {"graph": [[0, 1], [2, 3]]}, "the prior or the neighbours"),
        (True, {"prior": [2, 2, 2, 1]}, "the prior or the neighbours"),
        *((False, change, None) for change in ({}, {"prior": [0.5, 0.5]})),
        (False, {"prior": [0.4, 0.6]}, "the prior or the neighbours"),
        (False, {**THREE, "graph": [[0, 1]]}, "the prior or the neighbours"),
        (False, {"loss": [[0.0, 1.0], [2.0, 0.0]]}, "the loss"),
    ],
)
def test_what_a_symmetry_changes_is_refused(
    of_words: bool, change: dict[str, Any], changed: str | None
) -> None:
    words = Kernel("hamming", 1.0, shape=(2, 2), symmetry="hamming")
    swap = Kernel([[0.0, 1.0], [1.0, 0.0]], 1.0, symmetry="reflection")
    setting = {**read(words if of_words else swap), **change}
    with (
        nullcontext()
        if changed is None
        else pytest.raises(verify.Malformed, match=f"symmetry changes {changed}")
    ):
        verify.kernel(setting, None, None, {})


def test_rows_over_places_that_there_are_not_are_refused() -> None:
    setting = read(Kernel("absolute", 1.0, graph="path", inputs=2, outputs=3))

    def rows_at(place: list[int]) -> Any:
        rows = [["mine", [place], [1.0], [0.1], [None]]]
        return verify.own_rows({**setting, "constraints": rows}, 2, 3)

    assert ("rows", "mine", 0, -1) in rows_at([0, 1, 2])
    for wrong in ([0, 2, 0], [0, 0, 3], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]):
        with pytest.raises(verify.Malformed, match="is no integer from 0"):
            rows_at(wrong)
