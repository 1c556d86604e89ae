"""HiGHS writes to the descriptor of standard output, below Python; no way to it may say a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each in a process of its own: the header is written once, by the first instance.
ROUTES = {
    "highs": "dpopt.solve(problem)",
    "cvxpy": "dpopt.solve(problem, 'cvxpy:HIGHS')",
    "a problem of cvxpy": (
        "x = cp.Variable(3, nonneg=True)\n"
        "asked = cp.Problem(cp.Maximize(cp.sum(x)), [cp.sum(x) <= 1])\n"
        "assert abs(dpopt.solve(asked, backend='cvxpy:HIGHS').objective - 1) < 1e-6"
    ),
    "a conflict": (
        "problem.add_rows('other', {'x': np.ones((1, 3))}, lower=2.0)\n"
        "try:\n    dpopt.solve(problem)\nexcept dpopt.InfeasibleError:\n    pass"
    ),
    "threads": (
        "with ThreadPoolExecutor(4) as pool:\n"
        "    list(pool.map(lambda _: dpopt.solve(problem), range(8)))"
    ),
    "a thread and cvxpy": (
        "with ThreadPoolExecutor(2) as pool:\n"
        "    list(pool.map(lambda name: dpopt.solve(problem, name), ['cvxpy:HIGHS', 'highs']))"
    ),
    "a closed form's bound": "dpopt.design(dpopt.Kernel.example()).bound",
    "two solvers that cvxpy has": (
        "for name in ('CLARABEL', 'SCIPY'):\n    dpopt.solve(problem, 'cvxpy:' + name)"
    ),
}
BEFORE = """
from concurrent.futures import ThreadPoolExecutor
import cvxpy as cp
import numpy as np
import dpopt
import dpopt.interop, dpopt.kernel, dpopt.local, dpopt.majority, dpopt.smoothed
problem = dpopt.Problem("three shares")
problem.add_variables("x", 3, lower=0.0, upper=1.0)
problem.add_rows("sum", {"x": np.ones((1, 3))}, upper=1.0)
problem.maximise({"x": [1.0, 2.0, 3.0]})
"""


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_no_way_to_highs_writes_to_standard_output(route: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEFORE + ROUTES[route]], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
