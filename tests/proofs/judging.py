"""What the checker displays and says, its optimum by another solver, and the checker alone."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

import dpopt
from dpopt import verify


def read(plain: Any) -> Any:
    """Return a setting's parameters, or units, as a file has them."""
    return json.loads(json.dumps(plain.to_dict() if hasattr(plain, "to_dict") else plain))


def program_of(
    setting: Any, units: Any = None, ratio: Any = None, record: Any = None
) -> verify.Program:
    """Return the program displayed for a setting and units, at a ratio or between two."""
    between = ratio if ratio is None or isinstance(ratio, tuple) else (ratio, ratio)
    return verify.KINDS[setting.kind](read(setting), read(units), between, record or {})


def displayed(design: Any, record: Any = None) -> verify.Program:
    """Return the program that the checker displays for a design."""
    setting = design.setting
    return program_of(setting, setting.plain(design.table), record=record)


def solved(program: verify.Program) -> tuple[float, list[tuple[Any, Fraction]]]:
    """Return optimum and multipliers of a displayed program over all its rows, by scipy alone."""
    variables = dict.fromkeys([*(v for pmf, _ in program.pmfs for v in pmf), *program.boxes])
    column = {v: i for i, v in enumerate(variables)}
    sign = -1 if program.maximise else 1

    def line(terms: dict[Any, Any]) -> np.ndarray:
        coefficients = np.zeros(len(column))
        for v, a in terms.items():
            coefficients[column[v]] = float(verify.ends(a)[0])
        return coefficients

    rows = [(name, program.row(name)) for name in program.names()]
    rows.sort(key=lambda row: row[1].equality)
    sums = [line(dict.fromkeys(pmf, 1)) for pmf, _ in program.pmfs]
    above, equal = ([line(dict(r.terms)) for _, r in rows if r.equality == e] for e in (0, 1))
    limits = [float(verify.ends(row.limit)[0]) for _, row in rows]
    optimum = linprog(
        sign * line(dict(program.cost)),
        above or None,
        limits[: len(above)] or None,
        [*equal, *sums] or None,
        [*limits[len(above) :], *(float(mass) for _, mass in program.pmfs)] or None,
        [
            *[(0.0, None)] * (len(column) - len(program.boxes)),
            *((float(low), float(high)) for low, high in program.boxes.values()),
        ],
    )
    assert optimum.status == 0
    prices = [*optimum.ineqlin.marginals.clip(max=0.0), *optimum.eqlin.marginals]
    multipliers = [(name, Fraction(-y)) for (name, _), y in zip(rows, prices, strict=False)]
    return sign * float(optimum.fun), multipliers


def optimum(program: verify.Program) -> float:
    """Return the optimum of a displayed program over all its rows, by scipy alone."""
    return solved(program)[0]


def saved(setting: Any, folder: Path, backend: str | None = None) -> tuple[Path, Path]:
    """Save a setting's design and its proof, and return their files."""
    dpopt.design(setting, backend=backend).save(folder / "x.json", proof=True)
    return folder / "x.json", folder / "x.proof.json"


def edited(path: Path, **parts: Any) -> None:
    """Change parts of a file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


def run(*paths: Path | str | None) -> tuple[int, list[str], str]:
    """Return the checker's exit code, the lines that it prints, and its complaint."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = verify.main([str(path) for path in paths if path is not None])
    return code, out.getvalue().splitlines(), err.getvalue()


def answer(folder: Path, *records: Any) -> tuple[int, list[str], str]:
    """Return what the checker says of records, saved as a file each."""
    paths = [folder / f"record{i}.json" for i in range(len(records))]
    for path, record in zip(paths, records, strict=True):
        path.write_text(json.dumps(record))
    return run(*paths)


def alone(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    """Run a copy of the checker in a folder of its own, where no package is."""
    folder.mkdir(exist_ok=True)
    judge = Path(shutil.copy(verify.__file__, folder / "verify.py"))
    command = [sys.executable, "-I", str(judge), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
