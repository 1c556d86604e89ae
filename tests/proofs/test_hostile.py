"""What a sender may try: modules beside the verifier, numbers below all floats, and sizes."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import verify
from dpopt.composition import decided_delta
from dpopt.privacy.guarantee import Guarantee, in_short
from dpopt.table import Graph, Table
from dpopt.table.least import pairs_of
from tests.proofs.judging import answer

# Modules of the standard library that Python looks for beside a script first.
SHADOWED = ("__future__", "ast", "dataclasses", "heapq", "json", "re", "typing")


def test_a_senders_modules_are_not_imported(tmp_path: Path) -> None:
    dpopt.design(dpopt.Kernel([[0, 1], [1, 0]], 1.0)).save(tmp_path / "x.json")
    shutil.copy(verify.__file__, tmp_path / "verify.py")
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text("import os\nprint('private')\nos._exit(0)\n")
    design = json.loads((tmp_path / "x.json").read_text())
    design["body"]["table"]["weights"][0] = design["body"]["table"]["weights"][1][::-1]
    (tmp_path / "forged.json").write_text(json.dumps(design).replace('"value"', '"valve"'))
    for file, code in (("x.json", 0), ("forged.json", 2)):
        for folder, script in ((tmp_path, "verify.py"), (Path.cwd(), tmp_path / "verify.py")):
            command = [sys.executable, script, tmp_path / file]
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert ended.returncode == code, ended.stderr
            assert ended.stdout.startswith("private: kernel, (1, 0)-DP") == (code == 0)


@pytest.mark.parametrize("voters", [5, 21])
def test_a_chance_below_the_smallest_float_is_not_rounded_up_before_it_grows(voters: int) -> None:
    # e^600 times 2^-1074 is about delta; half of 2^-1074 as a float is 0 or 2^-1074.
    least = 0.7 / 1.5 * math.exp(600) * 2.0**-1074
    total = 2 << 1200
    small = round(Fraction(51, 100) / 2**1074 * total)
    rows = [[total // 2, total // 2]] * (voters // 2) + [[total - small, small]]
    setting = dpopt.Majority(voters, 600.0, 1, least, least).to_dict()
    # By hand: all voters at (Delta, 0), of whom at least one says 1, against none.
    p = Fraction(1, 2) - (Fraction(1, 2) - Fraction(small, total)) * (1 - Fraction(least)) ** voters
    growth = verify.exp(Fraction(600), 400)[1]
    assert p > growth * Fraction(small, total) + Fraction(least)
    weights = {"total": hex(total), "weights": [[hex(w) for w in row] for row in rows]}
    program = verify.KINDS["majority"](setting, weights, None, None)
    assert program.private is not None
    with pytest.raises(verify.Refused, match="not private"):
        program.private()


File = dict[str, Any]
KERNEL = dpopt.Kernel([[0, 1], [1, 0]], 1.0).to_dict()


def design_of(kind: str, setting: File, weights: Any, total: Any = 2) -> File:
    return {
        "format": "dpopt mechanism",
        "body": {
            "kind": kind,
            "setting": setting,
            "table": {"total": total, "weights": weights},
            "value": 0.0,
            "bound": 0.0,
            "guarantee": {"epsilon": 1e9, "delta": 0.5},
        },
    }


def proof_of(design: File, multipliers: list[Any], **more: Any) -> File:
    body = design["body"]
    proof = {"format": "dpopt proof", "kind": body["kind"], "setting": body["setting"]}
    return {**proof, "bound": 0, "multipliers": multipliers, **more}


def too_large() -> Iterator[tuple[str, list[File]]]:
    """Files, each with its proof if it has one, that would take long."""
    lines = ["v = 10**4200", "l = [v for i in range(100000)]", "f(a, b) = b"]
    given = ["sum(f(l, i) for i in range(5)) >= 0"]
    finding = {"format": "dpopt finding", "formulas": lines, "given": given}
    yield "long numbers in formulas", [{**finding, "claim": "1 < 0", "statement": "x"}]

    noise = dpopt.Noise(1, 1.0).to_dict()
    design = design_of("noise", noise, [])
    design["body"]["table"] = {"weights": ["3", "1"], "ratio": "1/2"}
    yield "far noise", [design, proof_of(design, [], last=3_999_990, rows=[], ends=[0])]
    design = design_of("noise", {**noise, "loss": [0] * 99_999 + [1]}, [])
    ratio = f"{1 << 80}/{(1 << 81) - 1}"
    design["body"]["table"] = {"weights": ["16", "8", "4"], "ratio": ratio}
    yield "a long loss", [design]
    design = design_of("noise", noise, [])
    design["body"]["table"] = {"weights": ["1"] * 20_000, "ratio": f"1/0x1{'0' * 4900}"}
    yield "noise of long weights", [design]

    ladder = dpopt.Plurality(1000, 2, 1.0, rule="ladder").to_dict()
    states = [[1] if top == 500 else [1, 1] for top in range(1000, 499, -1)]
    for prior in (f"point:0.{'3' * 29},0.{'6' * 28}7", f"dirichlet:1.{'3' * 59}1"):
        yield prior, [design_of("plurality", {**ladder, "prior": prior}, states)]

    n, unit = 24, 16**200
    units = [[unit - (u * 7919 + o) % 97 for o in range(n - 1)] for u in range(n)]
    weights = [[*map(hex, row), hex(unit * n - sum(row))] for row in units]
    queries = dpopt.Workload("prefix", 12.0, n).to_dict()
    yield "long weights of queries", [design_of("workload", queries, weights, hex(unit * n))]

    ends = ",".join(str(i / 200) for i in range(200))
    setting = dpopt.Majority(4001, 1.0, 1.0, objective="worst-case").to_dict()
    pieces = {**setting, "prior": f"common-uniform:{ends}"}
    yield "many pieces", [design_of("majority", pieces, [[1, 1]] * 2001)]
    half = 16**1000
    setting = dpopt.Majority(25, 1e-300, 1.0, 1e-300, 1e-300).to_dict()
    yield "close corners", [design_of("majority", setting, [[hex(half)] * 2] * 13, hex(2 * half))]
    setting = dpopt.Majority(4001, 1.0, 1.0, objective="surrogate").to_dict()
    design = design_of("majority", setting, [[1, 1]] * 2001)
    rows = [["corner", 0, [["bc", 4000 - i]], 0] for i in range(300)]
    yield "many corners", [design, proof_of(design, rows)]

    n, m, several = 200, 60, {"releases": 2, "total_epsilon": 1, "total_delta": 1e-6}
    weights = [[10 + (x * y * y) % 31 for y in range(m - 1)] for x in range(n)]
    weights = [[*row, 100 * m - sum(row)] for row in weights]
    setting = dpopt.Kernel("absolute", inputs=n, outputs=m, **several).to_dict()  # type: ignore[arg-type]
    yield "releases of many pairs", [design_of("kernel", setting, weights, 100 * m)]
    block = ["a", [[0, 0, 0]], [0.1], [None], [1e6]]
    design = design_of("kernel", {**KERNEL, "constraints": [block]}, [[1, 1], [1, 1]])
    design["body"]["value"] = 0.5
    yield "stands twice", [design, proof_of(design, [["rows", "a", 0, 1, 0]] * 3)]
    yield "many objects", [{"format": "dpopt mechanism", "x": [{}] * 400_001}]
    cycle = [*range(1, 300), 0]
    setting = dpopt.Kernel("zero-one", 1.0, inputs=300, outputs=300).to_dict()
    setting |= {"symmetry": [[cycle, cycle]] * 50}
    yield "many generators", [design_of("kernel", setting, [[1, 1]], 300)]


def test_a_file_of_too_large_numbers_is_refused_before_the_work(tmp_path: Path) -> None:
    for name, records in too_large():
        code, lines, complaint = answer(tmp_path, *records)
        assert (code, lines, complaint.count("\n")) == (2, [], 1), name
        assert ("a size is beyond" if name != "stands twice" else name) in complaint, name


def test_sizes_are_refused_when_a_design_is_loaded() -> None:
    empty = {"total": "1", "weights": list[Any]()}
    for inputs, outputs in ((4_000_000, 4_000_000), (30_000, 30_000)):
        with pytest.raises(dpopt.ParameterError, match="rows of other lengths"):
            Table.read(Graph(inputs, outputs), empty)
    ends = ",".join(str(i / 5000) for i in range(4000))
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"objective": "worst-case", "prior": f"common-uniform:{ends}"},
            "2000 intervals.* most 1 ",
        ),
        ({"prior": f"uniform:{ends}"}, "2000 intervals; for 4001 voters it may have at most 99"),
        ({"objective": "least-regret", "priors": ["uniform:0,1"] * 50}, "50 priors; .* at most 4"),
    ]
    for setting, told in cases:
        with pytest.raises(dpopt.ParameterError, match=told):
            dpopt.Majority(4001, 1.0, 1.0, **setting)


def test_releases_of_too_many_outcomes_are_refused() -> None:
    table = Table(Graph(130, 60), (1,) * (130 * 60), 60)
    with pytest.raises(dpopt.ParameterError, match="neighbours have 503,100 outcomes"):
        pairs_of(table)
    rng = np.random.default_rng(1)
    rows = rng.integers(1 << 20, 1 << 21, (60, 40)).tolist()
    rows = [[*row, (41 << 21) - sum(row)] for row in rows]
    table = Table(Graph(60, 41), tuple(weight for row in rows for weight in row), 41 << 21)
    pairs = pairs_of(table)
    outcomes = sum(p.size for p, _ in pairs)
    with pytest.raises(dpopt.ParameterError, match=f"{outcomes:,} outcomes that count; .* at most"):
        decided_delta(pairs, 500_000 // outcomes + 1, 1.0, 1e-6)


def test_optimal_is_measured_by_the_costs(tmp_path: Path) -> None:
    # A kernel that ignores its input is far from the best one, however small the losses are.
    for unit in (1.0, 1e-6, 1e-12):
        setting = dpopt.Kernel([[0, unit], [unit, 0]], 1.0).to_dict()
        design = design_of("kernel", setting, [[1, 1], [1, 1]])
        design["body"]["value"] = unit / 2
        code, lines, _ = answer(tmp_path, design, proof_of(design, []))
        assert code == 0
        assert any(line.startswith("bounded: no other is below 0.0") for line in lines)
        # A value is compared with the range of the costs, too.
        design["body"] |= {"value": 0.0, "bound": None}
        assert answer(tmp_path, design)[0] == 4


def test_a_guarantee_is_never_shown_smaller() -> None:
    for value, text in [
        (0.1, "0.1"),
        (Fraction(0.1) * 3, "0.3"),
        (1.0000049, "1.00001"),
        (1.0000049e-6, "1.00001e-06"),
        (1 / 3, "0.333334"),
        (0, "0"),
        (12345678.9, "1.23457e+07"),
    ]:
        assert verify.not_below(value) == text
        assert in_short(Guarantee(float(value))) == f"({text}, 0)-DP"


def test_a_formula_causes_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        formulas = verify.Formulas(["x = 1if 2else 3"], {})
        assert formulas.sides(formulas.parsed("x < 4"), {})[0]
