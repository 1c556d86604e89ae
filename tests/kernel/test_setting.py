"""What a kernel is asked for: losses by name, the user's own rows, and what files hold of both."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Kernel, ParameterError
from dpopt.kernel import ConstraintBlock, read_constraints
from tests.kernel.brute import distances, least_loss, optimal, path, rows_of, sure
from tests.robustness.commands import run

FOUR = "--loss absolute --inputs 4 --graph path --epsilon 1"
ROWS = Path(__file__).parents[1] / "data" / "rows.json"


def by_definition(name: str, x: tuple[int, ...], y: tuple[int, ...]) -> float:
    """Return a loss by name at two words, as the docstring of the setting has it."""
    pairs = list(zip(x, y, strict=True))
    return {
        "absolute": sum(abs(a - b) for a, b in pairs),
        "squared": sum((a - b) ** 2 for a, b in pairs),
        "zero-one": int(x != y),
        "hamming": sum(a != b for a, b in pairs),
    }[name]


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ["absolute", "squared", "zero-one", "hamming"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (3, 1, 2), (2, 2, 2)])
def test_a_loss_by_name_is_its_formula(name: str, shape: tuple[int, ...]) -> None:
    words = list(itertools.product(*map(range, shape)))
    expected = [[by_definition(name, x, y) for y in words] for x in words]
    setting = Kernel(name, 1.0, shape=shape)
    assert (setting.inputs, setting.outputs) == (len(words), len(words))
    assert setting.loss_table.tolist() == expected
    assert not setting.loss_table.flags.writeable
    x, y = np.array([[0], [len(words) - 1]]), np.array([1, 0, 2])
    assert setting.loss_at(x, y).tolist() == np.array(expected)[x, y].tolist()
    table = Kernel(expected, 1.0)
    assert table.loss_at(x, y).tolist() == np.array(expected)[x, y].tolist()
    if len(shape) == 1 and name != "hamming":
        plain = Kernel(name, 1.0, inputs=5, outputs=3)
        assert plain.loss_table.tolist() == [line[:3] for line in expected]
    for bad in ([len(words)], [-1], [0.5]):
        with pytest.raises(ParameterError, match="x must hold integers in 0.."):
            setting.loss_at(bad, [0])


def test_a_loss_by_name_is_not_written_out() -> None:
    """A table of 2^20 inputs would take eight terabytes, one of 2^14 two gigabytes."""
    cases: list[dict[str, Any]] = [
        {"inputs": 2**20},
        {"inputs": 2**14, "graph": "cycle"},
        {"shape": (2,) * 14, "graph": "hamming"},
    ]
    for options in cases:
        setting = Kernel("absolute", 1.0, objective="worst-case", **options)
        n = setting.inputs
        assert n == setting.outputs >= 2**14
        assert setting.loss == "absolute"
        assert setting.loss_at([0], [n - 1]).item() == (14 if setting.shape else n - 1)
        with pytest.raises(ParameterError, match="at most 20,000,000 entries"):
            _ = setting.loss_table
        with pytest.raises(ParameterError, match="at most 2,000,000"):
            setting.problem()


def written(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_the_command_is_the_program(tmp_path: Path) -> None:
    """Each value by the package's command, and by the program of the definition in scipy."""
    squared = (np.arange(5.0)[:, None] - np.arange(7)) ** 2
    prior = np.array([5, 1, 1, 2, 1]) / 10
    table = written(tmp_path / "loss.txt", *(" ".join(map(str, row)) for row in squared.tolist()))
    weights = written(tmp_path / "prior.txt", *map(str, prior))
    flat = np.full(5, 0.2)
    cases: list[tuple[str, float]] = [
        (
            "--loss absolute --inputs 9 --graph path --epsilon 1 --objective worst-case",
            least_loss(distances(9), path(9), 1.0),
        ),
        (
            "--loss squared --inputs 5 --outputs 7 --graph path --epsilon 0.7",
            least_loss(squared, path(5), 0.7, prior=flat),
        ),
        (
            "--loss squared --inputs 5 --outputs 7 --graph path --epsilon 0.7 --delta 0.03",
            least_loss(squared, path(5), 0.7, 0.03, prior=flat),
        ),
        (
            f"--loss {table} --graph path --epsilon 0.7 --prior {weights}",
            least_loss(squared, path(5), 0.7, prior=prior),
        ),
        (
            "--loss absolute --graph 0:1,1:2,2:3,3:4,4:0 --epsilon 0.5 --delta 0.1 --inputs 5 "
            "--objective worst-case",
            least_loss(distances(5), [*path(5), (4, 0), (0, 4)], 0.5, 0.1),
        ),
        # Randomised response: a symbol is told with probability e / (e + 8).
        ("--loss zero-one --inputs 9 --epsilon 1", 8 / (math.e + 8)),
        ("--loss zero-one --inputs 9 --epsilon 1 --objective worst-case", 8 / (math.e + 8)),
        # Each of three bits by randomised response.
        ("--loss hamming --shape 2,2,2 --graph hamming --epsilon 1", 3 / (math.e + 1)),
    ]
    for words, expected in cases:
        ended = run("kernel", *words.split(), "--json")
        assert (ended.code, ended.err) == (0, ""), words
        found = json.loads(ended.out)
        assert found["value"] == pytest.approx(expected, abs=1e-8), words
        assert found["bound"] <= expected + 1e-8, words
        assert found["private"], words


def test_own_rows_of_a_file_hold_cost_and_are_saved(tmp_path: Path) -> None:
    blocks: dict[str, list[tuple[dict[tuple[int, int], float], float | None, float | None]]] = {
        "near": [
            ({(0, 0): 1.0, (0, 1): 1.0}, 0.8, None),
            ({(1, 0): 1.0, (1, 1): 1.0}, 0.6, None),
        ],
        "rare": [({(2, 2): 1.0}, None, 0.25)],
    }
    rows, prior = [row for block in blocks.values() for row in block], np.full(4, 0.25)
    expected = least_loss(distances(4), path(4), 1.0, prior=prior, rows=rows)
    saved = tmp_path / "kernel.json"
    asked = ["kernel", *FOUR.split()]
    free = json.loads(run(*asked, "--json").out)["value"]
    ended = run(*asked, "--constraints", str(ROWS), "--save", str(saved), "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["value"] == pytest.approx(expected, abs=1e-8)
    assert found["value"] > free + 1e-3
    again = dpopt.load(saved)
    assert [block.name for block in again.setting.blocks] == ["near", "rare"]
    assert again.setting.blocks[0].lower == (0.8, 0.6)
    weights = rows_of(again)
    for name, block in blocks.items():
        missed = Fraction(0)
        for entries, lower, upper in block:
            mass = Fraction(sum(weights[x][y] for x, y in entries), again.table.total)
            over = Fraction(lower) - mass if lower is not None else mass - Fraction(upper or 0.0)
            missed = max(missed, over)
        assert again.residuals[name] == found["residuals"][name] == float(missed) <= 1e-9
    assert found["residuals"].keys() == again.residuals.keys() == blocks.keys()
    released = run("release", str(saved), "--input", "2", "--json")
    assert (released.code, released.err) == (0, "")
    assert json.loads(released.out)["released"][0] in range(4)
    same = Kernel("absolute", 1.0, graph="path", inputs=4, constraints=read_constraints(ROWS))
    assert rows_of(dpopt.design(same)) == weights
    # The program of the file, asked again.
    assert dpopt.design(again.setting).value == pytest.approx(expected, abs=1e-8)


def test_rows_of_tuples_are_put_in_the_setting() -> None:
    cap = np.zeros((1, 9))
    cap[0, 8] = 1.0
    setting = Kernel("zero-one", 1.0, inputs=3, constraints=[("cap", cap, None, 0.3)])
    (block,) = setting.blocks
    assert isinstance(block, ConstraintBlock)
    assert (block.places.tolist(), block.coefficients.tolist()) == ([[0, 2, 2]], [1.0])
    assert (block.lower, block.upper) == ((None,), (0.3,))
    assert "cap" in setting.problem().blocks
    design = dpopt.design(setting)
    assert design.kernel[2, 2] == pytest.approx(0.3, abs=1e-9)


BAD_FILES = [
    ("", "it is not JSON"),
    ("{}", "it must hold a list"),
    ('[["a", [[0, 0, 0]], [1], [0.5]]]', "it must be [name, places, coefficients, lower, upper]"),
    ('[["", [[0, 0, 0]], [1], [0.5], [null]]]', "it must be a text, not empty"),
    ('[["a", [[0, -1, 0]], [1], [0.5], [null]]]', "places of rows 'a' are below 0"),
    ('[["a", [[0, 0, 0]], [1e999], [0.5], [null]]]', "it holds a number that is not finite"),
]


def test_a_file_of_rows_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for text, message in BAD_FILES:
        name = str(tmp_path / "rows.json")
        (tmp_path / "rows.json").write_text(text)
        with pytest.raises(ParameterError) as caught:
            read_constraints(name)
        assert message in str(caught.value)
        assert "rows.json" in str(caught.value)
        ended = run("kernel", *FOUR.split(), "--constraints", name)
        assert (ended.code, ended.out) == (2, "")
        assert message in ended.err


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-101, 1e-50, 1e-16, 1e-11])
@pytest.mark.parametrize("graph", ["complete", "path"])
def test_a_delta_below_what_solvers_tell_apart(graph: str, delta: float) -> None:
    """With epsilon = 0, rows are equal up to a delta too small for the integers of a kernel."""
    for objective in ("mean", "worst-case"):
        design = optimal(
            "absolute", epsilon=0.0, delta=delta, graph=graph, objective=objective, inputs=4
        )
        assert design.value == pytest.approx(1.0 if objective == "mean" else 1.5, abs=1e-9)
        assert sure(design.certificate).guarantee.delta == delta
        assert abs(sure(design.gap)) <= 1e-9


def test_the_sense_of_a_kernel() -> None:
    asked: dict[str, Any] = {"epsilon": 1.0, "graph": "path", "inputs": 3}
    british = Kernel("absolute", sense="maximise", **asked)
    american = Kernel("absolute", sense="maximize", **asked)
    assert american.to_dict() == british.to_dict()
    assert american.maximises


def test_rows_are_part_of_what_was_proved() -> None:
    setting = Kernel("absolute", 1.0, graph="path", inputs=4, constraints=read_constraints(ROWS))
    design = dpopt.design(setting)
    for change in ({"constraints": None}, {"loss": "squared"}, {"constraints": setting.blocks[:1]}):
        with pytest.raises(ParameterError, match="not about"):
            replace(design, setting=replace(setting, **change))
    assert setting.to_dict()["constraints"] == Kernel(**setting.to_dict()).to_dict()["constraints"]


def test_the_setting_keeps_its_own_copies() -> None:
    loss, edges, q = np.eye(3), np.array([[0, 1]]), np.array([0.2, 0.3, 0.5])
    setting = Kernel(loss, 1.0, graph=edges, prior=q, invariant=q)
    loss[0, 0], edges[0, 1], q[0] = 9.0, 2, 0.9
    assert setting.loss_table[0, 0] == 1.0
    assert setting.pairs is not None
    assert setting.pairs.tolist() == [[0, 1], [1, 0]]
    assert setting.weights is not None
    assert setting.weights.tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert isinstance(setting.invariant, np.ndarray)
    assert setting.invariant.tolist() == pytest.approx([0.2, 0.3, 0.5])
    for array in (setting.loss_table, setting.weights, setting.pairs, setting.invariant):
        assert not array.flags.writeable
