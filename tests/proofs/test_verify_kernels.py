"""Kernels and majorities in the checker: accepted, refused, and bounds against other sources."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import majority, verify
from tests.kernel import brute

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


def saved(setting: Any, folder: Path) -> tuple[Path, Path]:
    dpopt.design(setting).save(folder / "x.json", proof=True)
    return folder / "x.json", folder / "x.proof.json"


def test_a_ratio_one_unit_too_far_is_refused(tmp_path: Path) -> None:
    path, _ = saved(Kernel("zero-one", math.log(2), inputs=2), tmp_path)
    file = json.loads(path.read_text())
    units = file["body"]["table"]
    total = int(units["total"])
    low = math.floor(total / (1 + Fraction(verify.exp(Fraction(math.log(2)))[1])))
    for least, code in ((low - 1, 4), (low + 1, 0)):
        units["weights"] = [[str(total - least), str(least)], [str(least), str(total - least)]]
        path.write_text(json.dumps(file))
        assert verify.main([str(path)]) == code


def test_a_missed_row_is_compared_with_what_the_file_states(tmp_path: Path) -> None:
    path, _ = saved(SETTINGS["q K = q"], tmp_path)
    file = json.loads(path.read_text())
    weights = file["body"]["table"]["weights"]
    # Both rows move alike, and privacy does not change by more than its slack.
    for row in weights:
        row[0], row[1] = str(int(row[0], 0) + (1 << 30)), str(int(row[1], 0) - (1 << 30))
    for part in (file["body"]["setting"], file["body"]["guarantee"]):
        part["epsilon"] += 1e-6
    path.write_text(json.dumps(file))
    with pytest.raises(verify.Refused, match="states"):
        list(verify.check(str(path)))


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


def test_a_kernel_too_large_is_refused_by_its_size(tmp_path: Path) -> None:
    path, _ = saved(SETTINGS["words"], tmp_path)
    file = json.loads(path.read_text())
    file["body"]["setting"] |= {"shape": [2] * 15, "inputs": 2**15, "outputs": 2**15}
    path.write_text(json.dumps(file))
    assert verify.main([str(path)]) == 2


def test_two_inputs_on_a_path_are_all_there_are() -> None:
    path, cycle = ({"graph": graph, "shape": None} for graph in ("path", "cycle"))
    assert verify.neighbours(path, 2) is None
    assert verify.neighbours(path, 3) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert verify.neighbours(cycle, 3) is None
    assert verify.neighbours({"graph": [[0, 1]]}, 3) == [(0, 1), (1, 0)]
    setting = dpopt.Kernel("absolute", 1.0, graph=[(0, 1)], inputs=3).to_dict()
    known = json.loads(json.dumps(setting))
    verify.allowed("kernel", known)
    for edge in ([0, 3], [3, 0], [-1, 0], [0, -1]):
        with pytest.raises(verify.Malformed, match="graph"):
            verify.allowed("kernel", {**known, "graph": [edge]})
    # As many words as the shape says, and no other number.
    assert verify.neighbours({"graph": "hamming", "shape": [2, 2]}, 4) == [
        *((0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2))
    ]
    with pytest.raises(verify.Malformed, match="another number of words"):
        verify.allowed("kernel", {**known, "graph": "grid", "shape": [2, 2]})


def test_a_parameter_that_is_missing_and_one_that_is_unknown_are_told_apart() -> None:
    known = {"records": 3, "categories": 2, "epsilon": 1.0, "rule": "exact"}
    verify.allowed("reveal-or-obscure", known)
    with pytest.raises(verify.Malformed, match="the parameter rule of the setting is missing"):
        verify.allowed(
            "reveal-or-obscure",
            {name: known[name] for name in ("records", "categories", "epsilon")},
        )
    with pytest.raises(verify.Malformed, match="the parameter other of the setting is unknown"):
        verify.allowed("reveal-or-obscure", {**known, "other": 1})


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
    setting = dpopt.Kernel("absolute", 1.0, delta, graph, inputs=3).to_dict()
    program = verify.kernel(json.loads(json.dumps(setting)), None, None, {})
    rows = list(program.names())
    assert {name[0] for name in rows} == names
    pairs = {name[1:3] for name in rows if name[0] in ("privacy", "delta")}
    assert all(x != z for x, z in pairs)
    assert len(pairs) == (0 if "above" in names else 4 if graph == "path" else 6)


def test_a_loss_by_name_compares_inputs_with_outputs() -> None:
    setting = dpopt.Kernel("absolute", 1.0, graph="path", inputs=3, outputs=5).to_dict()
    program = verify.kernel(json.loads(json.dumps(setting)), None, None, {})
    assert program.cost == {
        ("K", x, y): Fraction(abs(x - y), 3) for x in range(3) for y in range(5)
    }


@pytest.mark.parametrize(("sense", "sign"), [("minimise", 1), ("maximise", -1)])
def test_a_row_says_that_no_loss_is_above_the_worst_one_or_no_utility_below(
    sense: Any, sign: int
) -> None:
    setting = Kernel([[0.0, 1.0], [2.0, 0.5]], 1.0, objective="worst-case", sense=sense)
    program = verify.kernel(json.loads(json.dumps(setting.to_dict())), None, None, {})
    losses = {("K", 1, 0): sign * 2, ("K", 1, 1): sign * Fraction(1, 2)}
    assert program.row(("worst", 1)) == verify.Row({**losses, ("t",): -sign})
    assert program.boxes["t",] == (0, 2)


@pytest.mark.parametrize(("sense", "worst"), [("minimise", 1), ("maximise", Fraction(3, 4))])
def test_a_worst_case_is_the_largest_loss_and_the_least_utility(sense: Any, worst: Any) -> None:
    table = [[1.0, 0.0], [0.0, 2.0]]
    setting = dpopt.Kernel(table, 1.0, sense=sense, objective="worst-case").to_dict()
    units = {"total": 4, "weights": [[3, 1], [2, 2]]}
    program = verify.kernel(json.loads(json.dumps(setting)), units, None, {})
    assert program.point["t",] == program.value == worst
    assert program.boxes["t",] == (0, 2)


@pytest.mark.parametrize("graph", ["complete", "path"])
@pytest.mark.parametrize("delta", [0.0, 0.125])
@pytest.mark.parametrize("weights", [[[5, 3], [4, 4], [3, 5]], [[7, 1], [4, 4], [1, 7]]])
def test_a_table_has_the_slack_of_all_its_neighbours(
    graph: Any, delta: float, weights: list[list[int]]
) -> None:
    """At e^epsilon = 2, in fractions."""
    setting = dpopt.Kernel("absolute", 1.0, delta, graph, inputs=3, outputs=2).to_dict()
    units, exact = {"total": 8, "weights": weights}, Fraction(2)
    program = verify.kernel(json.loads(json.dumps(setting)), units, (exact, exact), {})
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


def test_between_whom_a_kernel_is_private_in_words() -> None:
    assert verify.among(None, 3) == "between all 3 inputs"
    pairs = [(0, 1), (1, 0)]
    assert verify.among(pairs, 2) == "along 2 directed edges of 2 inputs"
    assert verify.among(pairs, 4).endswith("of 4 inputs; 2 inputs have no neighbour")


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


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"graph": "hamming"}, True),
        ({"graph": "cycle"}, False),
        ({"graph": [[0, 1], [2, 3]]}, False),
        ({"prior": [2, 2, 2, 2]}, True),
        ({"prior": [2, 2, 2, 1]}, False),
    ],
)
def test_a_symmetry_of_words_keeps_prior_and_neighbours(change: dict[str, Any], kept: bool) -> None:
    setting = dpopt.Kernel("hamming", 1.0, shape=(2, 2), symmetry="hamming").to_dict()
    known = {**json.loads(json.dumps(setting)), **change}
    if kept:
        verify.kernel(known, None, None, {})
        return
    with pytest.raises(verify.Malformed, match="symmetry changes the prior or the neighbours"):
        verify.kernel(known, None, None, {})


def test_what_a_symmetry_changes_is_refused() -> None:
    setting = dpopt.Kernel([[0.0, 1.0], [1.0, 0.0]], 1.0, symmetry="reflection").to_dict()
    known = json.loads(json.dumps(setting))
    for change in ({}, {"prior": [0.5, 0.5]}):
        verify.kernel({**known, **change}, None, None, {})
    three = {"inputs": 3, "outputs": 3, "loss": [[0, 1, 2], [1, 0, 1], [2, 1, 0]]}
    for change in ({"prior": [0.4, 0.6]}, {**three, "graph": [[0, 1]]}):
        with pytest.raises(verify.Malformed, match="symmetry changes the prior or the neighbours"):
            verify.kernel({**known, **change}, None, None, {})
    with pytest.raises(verify.Malformed, match="symmetry changes the loss"):
        verify.kernel({**known, "loss": [[0.0, 1.0], [2.0, 0.0]]}, None, None, {})


@pytest.mark.parametrize(
    "place", [[0, 2, 0], [0, 0, 3], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]
)
def test_rows_over_places_that_there_are_not_are_refused(place: list[int]) -> None:
    setting = dpopt.Kernel("absolute", 1.0, graph="path", inputs=2, outputs=3).to_dict()
    known = json.loads(json.dumps(setting))
    rows = [["mine", [[0, 1, 2]], [1.0], [0.1], [None]]]
    assert ("rows", "mine", 0, -1) in verify.own_rows({**known, "constraints": rows}, 2, 3)
    with pytest.raises(verify.Malformed, match="is no integer from 0"):
        verify.own_rows({**known, "constraints": [["mine", [place], [1.0], [0.1], [None]]]}, 2, 3)
    with pytest.raises(verify.Malformed, match="a name that is taken"):
        verify.allowed("kernel", {**known, "constraints": rows * 2})
