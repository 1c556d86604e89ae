"""What a sender may try: modules beside the verifier, and numbers below the smallest floats."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import dpopt
from dpopt import verify

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
    with pytest.raises(verify.Refused, match="not private"):
        program.private()
