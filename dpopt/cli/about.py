"""``dpopt cite``, ``doctor``: what to cite, what works here."""

from __future__ import annotations

import time
from importlib.resources import files
from typing import Any

from dpopt._errors import DpoptError, SolverError
from dpopt.cli.options import Flag, command
from dpopt.cli.output import listed, show, show_record


@command()
def cite() -> None:
    """Print BibTeX: the papers behind the commands, this package, the solvers, related software.

    Example:
        dpopt cite
    """
    show(*(files("dpopt") / "references.bib").read_text(encoding="utf-8").strip().split("\n"))


@command()
def doctor(json: Flag = False) -> None:
    """Print versions, and solve a known program with each backend.

    Exit code 3 if a backend does not return the known optimum.

    Args:
        json: print the findings as JSON.

    Example:
        dpopt doctor
    """
    from dpopt.provenance import versions

    installed = versions(
        *("pandas", "polars", "scikit-learn", "opendp", "dp-accounting", "joblib", "torch")
    )
    backends = [_tried(name) for name in _backends()]
    ends = {
        entry["backend"]: f"{entry['failure'] or 'optimum 11 found'} in {entry['seconds']:.3f} s"
        for entry in backends
    }
    show_record(json, {"versions": installed, "backends": backends}, listed({**installed, **ends}))
    wrong = [entry["backend"] for entry in backends if not entry["correct"]]
    if wrong:
        raise SolverError(f"the known optimum was not found by {', '.join(wrong)}.")


def _backends() -> list[str]:
    import cvxpy

    return ["highs", *(f"cvxpy:{name}" for name in cvxpy.installed_solvers())]


def _tried(backend: str) -> dict[str, Any]:
    """Solve max 3a + 2b, a + b <= 4, a + 3b <= 6, a <= 3: 11 at (3, 1)."""
    from dpopt import Problem, solve

    problem = Problem("known optimum 11")
    problem.add_variables("x", 2, lower=0.0, upper=10.0)
    problem.add_rows("limits", {"x": [[1.0, 1.0], [1.0, 3.0], [1.0, 0.0]]}, upper=[4.0, 6.0, 3.0])
    problem.maximise({"x": [3.0, 2.0]})
    start = time.perf_counter()
    try:
        objective = solve(problem, backend=backend).objective
        failure = None if abs(objective - 11.0) < 1e-4 else f"FAILED: {objective} for 11"
    except DpoptError as error:
        objective, failure = None, f"FAILED: {error}"
    return {
        "backend": backend,
        "objective": objective,
        "correct": failure is None,
        "failure": failure,
        "seconds": time.perf_counter() - start,
    }
