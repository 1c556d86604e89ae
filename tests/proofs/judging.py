"""What the checker displays of a design, its optimum by another solver, and the checker alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from dpopt import verify


def plain(design: Any) -> tuple[Any, Any]:
    """Return setting and units as a file has them."""
    setting = design.setting
    return tuple(json.loads(json.dumps([setting.to_dict(), setting.plain(design.table)])))


def displayed(design: Any) -> verify.Program:
    """Return the program that the checker displays for a design."""
    return verify.KINDS[design.setting.kind](*plain(design), None, {})


def optimum(program: verify.Program) -> float:
    """Return the optimum of a displayed program over all its rows, by scipy alone."""
    variables = [v for pmf, _ in program.pmfs for v in pmf] + list(program.boxes)
    place = {v: i for i, v in enumerate(dict.fromkeys(variables))}
    sign = -1 if program.maximise else 1

    def line(terms: dict[Any, Any]) -> np.ndarray:
        found = np.zeros(len(place))
        for v, a in terms.items():
            found[place[v]] = float(verify.ends(a)[0])
        return found

    above, limits = [], []
    equal = [line(dict.fromkeys(pmf, 1)) for pmf, _ in program.pmfs]
    sums = [float(mass) for _, mass in program.pmfs]
    for row in map(program.row, program.names()):
        (equal if row.equality else above).append(line(dict(row.terms)))
        (sums if row.equality else limits).append(float(verify.ends(row.limit)[0]))
    bounds = [(0.0, None)] * (len(place) - len(program.boxes))
    solved = linprog(
        sign * line(dict(program.cost)),
        above or None,
        limits or None,
        equal or None,
        sums or None,
        [*bounds, *((float(low), float(high)) for low, high in program.boxes.values())],
    )
    assert solved.status == 0
    return sign * float(solved.fun)


def alone(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    """Run a copy of the checker in a folder of its own, where no package is."""
    folder.mkdir(exist_ok=True)
    judge = Path(shutil.copy(verify.__file__, folder / "verify.py"))
    command = [sys.executable, "-I", str(judge), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
