"""verify.py refuses every setting that the package refuses: forged files, field by field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Kernel, Majority, Multiclass, Plurality, verify
from tests.proofs.judging import answer, read, run

KINDS: dict[str, Any] = {kind.kind: kind for kind in dpopt.kinds()}
OWN: Any = [("seldom", [[0.0, 1.0] + [0.0] * 7], None, [0.9])]
# Beside the example of each kind: settings whose other fields are in use.
SETTINGS: dict[str, Any] = {
    **{kind: KINDS[kind].example() for kind in verify.KINDS if kind in KINDS},
    "majority with Delta": Majority(3, 0.5, 1.5, 0.01, 0.02),
    "majority of coefficients": Majority(3, 0.5, 1.5, coefficients=[1.0, 0.5]),
    "majority of priors": Majority(3, 0.5, 1.5, objective="least-regret"),
    "multiclass by a rule": Multiclass(3, 3, 0.5, 1.5, 0.01, 0.02, rule="ladder"),
    "multiclass of a point": Multiclass(3, 3, 0.5, 1.5, prior="point:0.5,0.3,0.2"),
    "plurality by a rule": Plurality(6, 3, 1.0, rule="ladder", prior="dirichlet:1/2"),
    "kernel of a table": Kernel(
        [[0, 1, 2], [1, 0, 1], [2, 1, 0]],
        1.0,
        0.01,
        graph=[[0, 1], [1, 2]],
        prior=[0.25, 0.5, 0.25],
        invariant=[0.25, 0.5, 0.25],
        constraints=OWN,
    ),
    "kernel of words": Kernel("hamming", 1.0, graph="hamming", shape=(3, 3), symmetry="hamming"),
    "kernel on a grid": Kernel([[0.0, 1.0]] * 4, 1.0, graph="grid", shape=(2, 2)),
    "kernel around": Kernel("zero-one", 1.0, graph="cycle", inputs=4, symmetry="dihedral"),
    "kernel mirrored": Kernel(
        "absolute", 1.0, graph="path", inputs=3, symmetry=[([2, 1, 0], [2, 1, 0])]
    ),
    "kernel of names": Kernel(
        [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]],
        1.0,
        graph=[(0, 1), (1, 2)],
        input_names=["a", "b", "c"],
        output_names=["yes", "no"],
    ),
    "prior of names": KINDS["public-prior"]([0.25, 0.75], 1.0, labels=["a", "b"]),
    "workload of a table": KINDS["workload"](
        [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], 1.0, prior=[0.5, 0.3, 0.2]
    ),
    "workload at worst": KINDS["workload"]("marginals", 1.0, 4, objective="worst-case"),
}
WRONG: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 4, 12, 2.5, -0.5, 0.0, 0.3, 0.99, 1.0, 1e-320, 1e-9, 17.0),
    *(51, 101, 129, 601, 701, 5000, 10**7, 10**16, 1e101, 1e308, math.inf, 10**400),
    *("", "x", "1", "2", "1/2", "0x3", "uniform", "uniform:0,1", "uniform:1,0", "uniform:0,1,0,1"),
    *("uniform:0,2", "beta:0,1", "common-beta:1,20000", "common-point:1", "point:0.5", "point:2"),
    *("samples:3x5:0", "samples:3x5:0123456789abcdef", "common-uniform:0,0.5,0.4,1", "dirichlet"),
    *("dirichlet:0", "dirichlet:2000000", "dirichlet:20000", "dirichlet:1/2", "dirichlet:1,1"),
    *("point:0.5,0.3,0.3", "point:1,0,0", "optimal", "ladder", "subsampling", "exact", "journal"),
    *("bayes", "minimax", "worst", "worst-case", "mean", "output", "tv", "leximin", "surrogate"),
    *("absolute", "hamming", "complete", "path", "grid", "cycle", "maximise", "columns", "auto"),
    *("reflection", "cyclic", "categories", "marginals", "histogram", "mean"),
    *([], {}, [[]], [0], [1], [0.5, 0.5], [1, 1, 1], [0.2, 0.3, 0.5], [0.2, 0.3, 0.6], [-1, 1, 1]),
    *([0.0, 0.5, 0.5], [0.5, 0.25, 0.25], ["a", "a"], ["a", "b"], ["a", ["b"]], [math.inf, 1.0]),
    *([2, 2], [2, 3], [3, 2], [4], [0, 4], [True, 4], ["2", 2], [1e200, 1e200, 0], [0.0, 0.0, 0.0]),
    *([[0, 1]], [[0, 0]], [[0, 9]], [[0, 1], [1]], [[0, 1.0]], [["0", "1"]], [[0, 1, 2]], [[1, 0]]),
    *([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.6]], [[0.5, 0.6], [0.5, 0.5]], [[1, 1], [1, 1]]),
    *([[3, 0.5, 0.0]], [[2, 0.5, 0.0], [1, 0.4, 0.0]], [[2, 0.5], [3, 0.4]], [[5, 0.5, 1.0]]),
    *([["r", [[0, 0, 0]], [1.0], [None], [0.5]]], [["privacy", [[0, 0, 0]], [1.0], [None], [1.0]]]),
    *([["r", [[0, 0, 9]], [1.0], [None], [1.0]]], [["r", [[1, 0, 0]], [1.0], [None], [1.0]]]),
    *([["r", [[0, 0, 0]], [1.0, 2.0], [None], [1.0]]], [["r", [[0, 0, 0]], [1.0], [2.0], [1.0]]]),
    *(
        [["r", [[0, 0, 0]], [1.0], [None], [1.0]]] * 2,
        [["r", [], [], [], []]],
        [["", [], [], [0], [1]]],
    ),
    *([[[2, 1, 0], [0, 1, 2]]], [[[0, 0, 1], [0, 1, 2]]], [[[1, 0, 2], [1, 0, 2]]]),
    *([["r", [[0, 0, 1.0]], [1.0], [None], [1.0]]], [["r", [[0, 0, 0]], ["1"], [None], [1.0]]]),
    *([["r", [[0, 0, 0]], [1.0], [None, 0.0], [1.0]]], [["r", [[0, 0, 0]], [1.0], [None], ["1"]]]),
    *([[1, 1, 1], [1, 1, 1]], [[1e-200, 0, 0]], [1e-9, 1, 1], [1e300, 1e300, 1e300], [[0.4, 0.7]]),
    *([[[1.0, 0.0, 0.0]], [[0.0, 0.0]]], ["uniform:0,1", "beta:0,0"], ["uniform:0,1"]),
]


# Values of several fields that do not go together.
TOGETHER: dict[str, list[dict[str, Any]]] = {
    "kernel of a table": [
        {"invariant": [[[1.0, 0.0]], [[0.0] * 3]]},
        {"prior": [1.0, 1.0]},
        {"prior": [0.0] * 3},
    ],
}


def changes(setting: Any) -> Iterator[tuple[str, Any]]:
    """Each field with each wrong value, left out, and with a part of its own wrong; two swapped."""
    for name, own in setting.items():
        yield name, ...
        yield from ((name, value) for value in WRONG)
        if isinstance(own, int | float) and not isinstance(own, bool):
            yield from ((name, value) for value in (-own, own + 1, own * 1000, str(own), [own]))
        if isinstance(own, list) and own:
            for part in (None, True, -1, 2, 0.9, "x", "2", [], math.inf, *own[:1]):
                yield name, [*own[:-1], part]
            yield name, own[:-1]
            yield name, [*own, own[-1]]
            if isinstance(own[0], list):
                for part in (None, -1, "x", 7, math.inf):
                    yield name, [[*own[0][:-1], part], *own[1:]]
        if isinstance(own, dict):
            for key in own:
                yield name, {at: value for at, value in own.items() if at != key}
                yield from (
                    (name, own | {key: value}) for value in (None, -1, 1, 3, "x", [], [[1]])
                )
    yield "no_such_parameter", 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_what_the_package_refuses_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, setting, refused = tmp_path / "x.json", SETTINGS[name], 0
    dpopt.design(setting).save(path)
    text = path.read_text()
    assert run(path)[0] == 0
    plain = json.loads(text)["body"]["setting"]
    for fields in [*({at: value} for at, value in changes(plain)), *TOGETHER.get(name, [])]:
        other = {at: value for at, value in (plain | fields).items() if value is not ...}
        try:
            KINDS[setting.kind].from_dict(other)
        except dpopt.ParameterError:
            refused += 1
        else:
            continue
        forged = json.loads(text)
        forged["body"]["setting"] = other
        # As verify.read does; of a number beyond all floats both notations.
        written = json.dumps(forged).replace("Infinity", "1e999")
        record = json.loads(written, object_pairs_hook=verify.ReadObject)
        monkeypatch.setattr(verify, "read", lambda *_, record=record: record)
        code, lines, err = run(path)
        assert (code, lines) == (2, []), (other, lines, err)
        assert (err.count("\n"), "malformed" in err) == (1, False), (other, err)
    assert refused > 100


def test_an_even_number_of_voters_is_no_majority(tmp_path: Path) -> None:
    """gamma = .1456 with two voters: Pr[1] moves by a factor of e^.0714, not of e^.05."""
    path, gamma = tmp_path / "x.json", 0.1456
    dpopt.design(Majority(3, 0.5, 0.1)).save(path)
    record = json.loads(path.read_text())
    record["body"]["setting"]["voters"] = 2
    levels = [int(gamma * share * 2**62) for share in (1 / 3, 1)]
    weights = [[str(2**62 + w), str(2**62 - w)] for w in levels]
    record["body"]["table"] = {"total": str(2**63), "weights": weights}
    code, lines, err = answer(tmp_path, record)
    assert (code, lines) == (2, [])
    assert "voters is even; it must be odd" in err


def test_a_parameter_that_is_missing_and_one_that_is_unknown_are_told_apart() -> None:
    setting = {"records": 3, "categories": 2, "epsilon": 1.0}
    verify.allowed("reveal-or-obscure", {**setting, "rule": "exact"})
    for other, words in (({}, "rule .* missing"), ({"rule": "exact", "x": 1}, "x .* unknown")):
        with pytest.raises(verify.Malformed, match=f"the parameter {words}"):
            verify.allowed("reveal-or-obscure", {**setting, **other})


# A setting of each kind, and changes of it just inside and just outside what is allowed.
PLAIN: dict[str, dict[str, Any]] = {
    setting.kind: read(setting)
    for setting in (
        Majority(3, 0.5, 1.5),
        Multiclass(3, 3, 0.5, 1.5),
        Plurality(3, 3, 1.0),
        dpopt.BestSampler(4, 3, 1.0),
        dpopt.SmoothFloor(1, 3, 1.0),
        dpopt.PublicPrior([0.5, 0.5], 1.0),
        dpopt.Mollifier([0.5, 0.5], 1.0, [0.0, 1.0]),
        dpopt.Population([0.5, 0.5], 1.0, [[0.0, 1.0], [1.0, 0.0]], weights=[1.0, 1.0]),
        Kernel("absolute", 1.0, inputs=3, graph="path", objective="worst-case"),
        dpopt.Workload("histogram", 1.0, 3),
    )
}
LOSS = [[0, 1], [1, 0], [1, 1]]
FORGED: dict[str, list[Any]] = {
    "name": [5, "", "sums", "privacy", "losses"],
    "places": [[[0, 0]], [[0, 0, 0, 0]], [[0, 0, -1]], [0, 0, 0]],
    "coefficients": [["1"], [None]],
    "lower": [["x"], [], [2], [None, None], None],
    "upper": [["x"], [], [0], [None, None], None],
}
NAMES = [["a", "b"], ["a", "a", "b"], ["a", "a", "b", "c"], ["a", "b", "c", "d"], [1, "1", 2]]


def own_rows(*others: dict[str, Any]) -> dict[str, Any]:
    """Return constraints of the user's: rows with other parts."""
    row = {"name": "r", "places": [[0, 0, 0]], "coefficients": [1], "lower": [1], "upper": [1]}
    return {"constraints": [list((row | parts).values()) for parts in others]}


def several(field: str, values: list[Any]) -> list[dict[str, Any]]:
    """Return changes of one field."""
    return [{field: value} for value in values]


TWENTY = {"releases": 20, "total_epsilon": 28, "total_delta": 0.5}


def releases_of(field: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Several releases have a total, and nothing that is of one release."""
    inside = TWENTY | {field: None}
    others = [{"releases": 1001}, {"releases": 0}, {"total_epsilon": None}, {"total_epsilon": 0}]
    others += [{"total_epsilon": 28.1}, {"total_delta": 0}, {"total_delta": 9e-13}]
    others += [{"total_delta": 0.6}, {field: 1}]
    wrong = [inside | each for each in others]
    wrong += [{field: None}, {"total_epsilon": 1}, {"total_delta": 0.1}, {"releases": 2}]
    return [inside, inside | {"total_delta": 1e-12, "releases": 1000}], wrong


BOUNDARIES: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("majority", *releases_of("allowance")),
    ("multiclass", *releases_of("allowance")),
    ("multiclass", [], [TWENTY | {"allowance": None, "rule": "ladder"}]),
    ("majority", [], [TWENTY | {"allowance": None, "delta": 0.1}]),
    ("plurality", *releases_of("epsilon")),
    ("plurality", [], [TWENTY | {"epsilon": None, "rule": "ladder"}]),
    ("kernel", *releases_of("epsilon")),
    ("kernel", [], [TWENTY | {"epsilon": None, "delta": 0.1}]),
    (
        "majority",
        [
            {"voters": 501, "voter_delta": 0.1, "delta": 0.1},
            {"voters": 503},
            {"allowance": 3},
            {"allowance": 0.5, "epsilon": 600},
            {"allowance": 2, "epsilon": 300},
            {"coefficients": [1, 0.5]},
            {"priors": ["uniform:0,1", "beta:1,1"]},
        ],
        [
            {"voters": 503, "voter_delta": 0.1, "delta": 0.1},
            {"voter_delta": 0.1, "delta": 0.099},
            *({"allowance": 0}, {"allowance": -1, "epsilon": -1}, {"voter_delta": -0.125}),
            *({"delta": 1}, {"voters": 2}),
            {"allowance": 3.001},
            {"allowance": 2, "epsilon": 300.001},
            {"priors": ["uniform:0,1", "point:2"]},
            *several("coefficients", [[1], [1, 0.5, 0], [1, 0.5, 0, 0]]),
        ],
    ),
    (
        "majority",
        several("prior", ["samples:3x5:0123456789abcdef", "uniform:0,0.5,0.5,1", "beta:1e-300,1e4"])
        + several("prior", ["common-uniform:0,1", "common-beta:1,1", "point:0,1,0.5"]),
        several("prior", ["samples:3x5:0", "uniform:0,0", "uniform:0,0.5,0.4,1", "uniform:0,0.5,1"])
        + several("prior", ["uniform:0,0.5,0.5,0.5", "uniform:-0.1,1", "uniform:0,1.1", "beta:1"])
        + several("prior", ["beta:9e-301,1", "beta:1,10001", "beta:1,1,1", "point:2", "point:x"])
        + several("prior", ["common-point:1", "normal:0,1", "point:-0.1", "beta:x,1"]),
    ),
    (
        "multiclass",
        [
            {"allowance": 3},
            {"allowance": 1, "epsilon": 1e-07},
            {"allowance": 3, "epsilon": 200},
            {"rule": "ladder", "voter_delta": 0.1},
            {"rule": "subsampling"},
            *several("prior", ["point:1,0,0", "dirichlet:1e-4", "dirichlet:1e6"]),
        ],
        [
            {"allowance": 3.1},
            {"allowance": 1, "epsilon": 9e-08},
            {"allowance": 3, "epsilon": 200.1},
            {"rule": "subsampling", "voter_delta": 0.1},
            *({"epsilon": 0}, *several("voter_delta", [1, -1])),
            *several("prior", ["point:0.5,0.5", "point:1.0000000001,0,0", "point:-0.5,0.75,0.75"]),
            *several("prior", ["point:0.5,0.3,0.1", "normal:0.5,0.3,0.2", "normal:1", "uniform:1"]),
            *several("prior", ["dirichlet:9e-5", "dirichlet:1000001", "dirichlet:1,1"]),
            {"prior": "dirichlet:x"},
        ],
    ),
    (
        "best-sampler",
        [{"objective": "mean"}, *several("prior", [1e-3, 1e3])],
        [{"objective": "output"}, *several("prior", [9e-4, 1001])],
    ),
    # Above log(1 + 1/1), whose double is 0.6931471805599453.
    ("smooth-floor", [{"epsilon": 0.6931471805599454}], [{"epsilon": 0.6931471805599453}]),
    (
        "public-prior",
        [{"labels": ["a", 1]}, {"public": [0.5, 0.5 + 9e-10]}],
        several("labels", [["a", "a"], ["a"], ["a", "b", "c"]])
        + several("public", [[0.5, 0.5 + 2e-9], [0.5, 0.5 - 2e-9], [0, 1]]),
    ),
    ("mollifier", [{"distribution": [0.5, 0.5]}], several("distribution", [[1], [0.5, 0.6]])),
    (
        "population",
        [{"weights": [5e299, 0]}],
        several("weights", [[6e299, 0], [0, 0], [1], [1, 1, 1]])
        + several("users", [[[1], [1]], [[0, 1], [0.5, 0.6]], [[0, 1], [1.1, -0.1]]]),
    ),
    (
        "kernel",
        [{"graph": "grid", "shape": [3]}, {"shape": [3]}, {"graph": [[0, 2]]}]
        + [{"loss": LOSS, "outputs": 2, "graph": "grid", "shape": [3]}, {"outputs": 2}]
        + [{"loss": LOSS, "outputs": 2, "symmetry": s} for s in ("none", "reflection")]
        + [{"loss": LOSS, "outputs": 2, "symmetry": [[[0, 1, 2], [0, 1]]]}, {"symmetry": "cyclic"}]
        + [{"loss": "hamming", "shape": [3], "symmetry": "hamming"}]
        + [{"objective": "mean", "prior": [1, 1, 1]}, {"invariant": [0.25, 0.5, 0.25]}],
        several("graph", ["grid", [[0, 0]], [[0, 3]], [[3, 0]], [[-1, 0]], [[0, -1]]])
        + [{"shape": [4]}, {"graph": "grid", "shape": [2, 2]}]
        + [{"loss": LOSS, "outputs": 2, "shape": [3]}, {"shape": [3], "outputs": 2}]
        + [{"loss": LOSS, "outputs": 2, "shape": [3], "graph": [[0, 1]]}]
        + [{"loss": LOSS}, {"loss": LOSS, "outputs": 2, "inputs": 2}, {"loss": "hamming"}]
        + [{"outputs": 2, "symmetry": "cyclic"}, {"symmetry": "hamming"}, {"prior": [1, 1, 1]}]
        + [{"outputs": 2, "invariant": pmf} for pmf in ([0.5, 0.5], [0.25, 0.5, 0.25])]
        + several("invariant", [[0.5, 0.5], [0.25, 0.5, 0.5], [[[1, 0, -1]], [[0, 0, 0]]]])
        + [
            {"symmetry": "reflection"} | other
            for other in (own_rows({}), {"input_names": ["a", "b", "c"]})
        ]
        + [{"symmetry": "reflection", "invariant": [0.25, 0.5, 0.25]}],
    ),
    (
        "kernel",
        [own_rows({"name": name}) for name in ("r", "invariance", "delta")]
        + [own_rows({"name": "losses"}) | {"objective": "mean"}]
        + [own_rows({}, {"name": "s"}), own_rows()]
        + [own_rows({"lower": [None, 1, None], "upper": [1, None, None]})]
        + [own_rows({"places": [], "coefficients": []})]
        + [{field: ["a", "b", 1]} for field in ("input_names", "output_names")],
        [own_rows({part: value}) for part, wrong in FORGED.items() for value in wrong]
        + [own_rows({}, {}), own_rows({"name": "delta"}) | {"delta": 0.1}]
        + [own_rows({"name": "invariance"}) | {"invariant": [0.25, 0.5, 0.25]}]
        + [{f"{side}put_names": names} for side in ("in", "out") for names in NAMES]
        + several("input_names", [["a", "b", word] for word in ("", "None", "inf", "-inf")])
        + [{"output_names": ["a", "b", "c"], "symmetry": "reflection"}],
    ),
    (
        "workload",
        several("queries", [[[1, 1, 1], [1, 0, 0]], [[0, 0, 1e-100]], [[-1e100, 0, 1]]])
        + several("prior", [[1, 1e6, 1]])
        + [{"objective": "worst-case"}],
        several("queries", [[[1, 1, 1], [2, 2, 2]], [[0, 0, 9e-101]], [[0, 1, -1.1e100]]])
        + several("prior", [[1, 1000001, 1]])
        + [{"objective": "worst-case", "prior": [1, 1, 1]}],
    ),
]


def is_allowed(kind: str, fields: dict[str, Any]) -> bool:
    """Whether a file may hold a setting with other fields."""
    try:
        # Tuples are lists of a file.
        verify.allowed(kind, json.loads(json.dumps(PLAIN[kind] | fields)))
    except verify.Malformed:
        return False
    return True


def test_settings_at_the_boundary_of_what_is_allowed() -> None:
    for kind, inside, outside in BOUNDARIES:
        assert [fields for fields in [{}, *inside] if not is_allowed(kind, fields)] == []
        assert [fields for fields in outside if is_allowed(kind, fields)] == []


NONE_OF_ALL = (None, True, "x", "1", [], {}, math.nan, math.inf, -math.inf)


def test_values_that_a_parameter_may_have() -> None:
    for wanted, inside, outside in [
        ("number in (-1, 2]", (-0.9, 0, 1.9, 2), (-1, -1.1, 2.1, *NONE_OF_ALL)),
        ("number in [-1, 2)", (-1, -1.0, 1.9), (-1.1, 2, 2.1, *NONE_OF_ALL)),
        ("number in [0, 1]", (0, 0.5, 1), (-0.1, 1.1, *NONE_OF_ALL)),
        ("number in (0, 1)", (0.1, 0.9), (0, 1, *NONE_OF_ALL)),
        ("integer in [2, 4]", (2, 3.0, 4), (1, 2.5, 5, *NONE_OF_ALL)),
        ("a | b", ("a", "b"), ("c", "", "ab", 1, ["a"], *NONE_OF_ALL)),
        ("null | a", ("a", None), ("b", *NONE_OF_ALL[1:])),
        ("list 1..2 of a", (["a"], ["a"] * 2), (["a"] * 3, ["a", "b"], "a")),
        ("list of a", (["a"],), NONE_OF_ALL),
        (
            "table of a",
            ([["a"]], [["a"], ["a"]], [["a"] * 2] * 2),
            ([["a"], ["a"] * 2], [[], []], [["a"], ["b"]], ["a", "a"], *NONE_OF_ALL),
        ),
        ("text", ("", "a"), [v for v in NONE_OF_ALL if not isinstance(v, str)]),
        ("truth value", (True, False), (0, 1, None)),
        ("object", ({},), [v for v in NONE_OF_ALL if v != {}]),
        ("index", (0, verify.MOST), (-1, verify.MOST + 1, 1.0, *NONE_OF_ALL)),
        ("name", ("", "a", -1), (1.0, None, True, [])),
        ("limit", (None, 0, -1e308), ("1", [], math.inf)),
        ("block", ([0] * 5,), ([0] * 4, [0] * 6, "12345")),
    ]:
        fits = verify.accepts(wanted)
        assert [fits(value) for value in inside] == [True] * len(inside)
        assert [fits(value) for value in outside] == [False] * len(outside)


def test_what_is_no_number_is_refused() -> None:
    """Also what Python alone takes for a number."""
    texts = ["1.5", "1e3", "1e5", "1/0", "0x", "--1", "+1", "0b1", "1_0", "1/-2", "٣"]
    others = (True, None, [], math.nan, math.inf)
    for value in (*others, "", " 1", "1 ", "1\n", "0x" + "f" * 5000, *texts):
        with pytest.raises(verify.Malformed, match="is no number"):
            verify.number(value)


def test_numbers_of_a_file_are_exact() -> None:
    longest = "0x" + "f" * (verify.LONGEST - 2)
    assert verify.number(longest) == 16 ** (verify.LONGEST - 2) - 1
    known = {
        0.1: Fraction(0.1),
        "-3/6": Fraction(-1, 2),
        "0x10": 16,
        "-0x1/0x3": Fraction(-1, 3),
        7: 7,
    }
    assert {value: verify.number(value) for value in known} == known


def test_integers_within_their_limits() -> None:
    assert [verify.integer(n, 2, 4) for n in (2, 3, "4")] == [2, 3, 4]
    for wrong in (1, 5, 2.5, "1", True):
        with pytest.raises(verify.Malformed, match="is no integer from 2 to 4|is no number"):
            verify.integer(wrong, 2, 4)
    assert verify.integers([2, 4], 2, 4) == [2, 4]
    assert verify.integers(["2", 4.0], 2, 4) == [2, 4]
    for several in ([1, 3], [3, 5], [2, True], [], "23", None):
        with pytest.raises(verify.Malformed):
            verify.integers(several, 2, 4)


def test_weights_of_a_file() -> None:
    half = Fraction(1, 2)
    assert verify.vector([0.5, "1/2"], 2) == [half, half]
    assert verify.shares_of([0, 0.5, 1.5], 3) == [0, half / 2, half * 3 / 2]
    assert verify.integer_weights([0.5, 0.25], 2) == ([2, 1], 4)
    assert verify.integer_weights(["1/2", "1/3", 0], 3) == ([3, 2, 0], 6)
    assert verify.matrix([[1], [2]], 2, 1) == [[1], [2]]
    for wrong in ([0.5], [0.0, 0.0], [-0.5, 1.0], [0.5, 0.5, 0.5]):
        for weights_of in (verify.shares_of, verify.integer_weights):
            with pytest.raises(verify.Malformed):
                weights_of(wrong, 2)
    for table in ([[1]], [[1], [2], [3]], [[1], [2, 3]], None):
        with pytest.raises(verify.Malformed):
            verify.matrix(table, 2, 1)
