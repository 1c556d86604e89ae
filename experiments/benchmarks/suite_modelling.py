"""Benchmarks of modelling: a private program in cvxpy, linopy, `Problem` and the cvxpy door.

Each way is one function, from the sizes to the kernel, so that its lines can be counted. What is
timed is all of it: building, handing over, solving. The ways through dpopt state a bound and end in
a design that was proved and releases, which is in their lines and in their times.

cvxpy and linopy are called with the tolerance of 1e-10 that dpopt asks for: they leave HiGHS at
1e-7, by which every row may be missed, and so would answer a looser question with a lower optimum.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from experiments.benchmarks.memory import Limits
from experiments.benchmarks.rivals import feasible_within
from experiments.benchmarks.spec import Answer, Contender, benchmark

EPSILON, FAR = 1.0, 3
# Just above the least risk that a count of so many allows at epsilon = 1.
_RISKS = {9: 0.05, 20: 0.065, 40: 0.072}
_TIGHT = feasible_within(1e-10)
Run = Callable[[Any], Answer]


def count(inputs: int) -> tuple[np.ndarray, float]:
    """Return |x - y| for a count of 0..inputs-1, and the risk that is taken."""
    x = np.arange(inputs)
    return np.abs(x[:, None] - x), _RISKS.get(inputs, 0.072)


def in_cvxpy(instance: tuple[np.ndarray, float]) -> Answer:
    """Solve the count with a risk in cvxpy."""
    import cvxpy as cp

    loss, risk = instance
    r, n = np.exp(EPSILON), len(loss)
    kernel = cp.Variable((n, n), nonneg=True)
    rules = [
        cp.sum(kernel, axis=1) == 1,
        kernel[:-1] <= r * kernel[1:],
        kernel[1:] <= r * kernel[:-1],
        cp.sum(cp.multiply(loss >= FAR, kernel), axis=1) <= risk,
    ]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss / n, kernel))), rules)
    problem.solve(solver=cp.HIGHS, highs_options=_TIGHT)
    return _missed(problem)


def in_linopy(instance: tuple[np.ndarray, float]) -> Answer:
    """Solve the count with a risk in linopy."""
    import linopy
    import xarray as xr

    linopy.options["semantics"] = "v1"
    table, risk = instance
    r, x = np.exp(EPSILON), np.arange(len(table))
    loss = xr.DataArray(table, coords={"x": x, "y": x})
    model = linopy.Model()
    kernel = model.add_variables(lower=0, coords=loss.coords, name="K")
    low, high = (
        kernel.isel(x=slice(None, -1)),
        kernel.isel(x=slice(1, None)).assign_coords(x=x[:-1]),
    )
    model.add_constraints(kernel.sum("y") == 1, name="sums")
    model.add_constraints(low - r * high <= 0, name="up")
    model.add_constraints(high - r * low <= 0, name="down")
    model.add_constraints((kernel * (loss >= FAR)).sum("y") <= risk, name="risk")
    model.add_objective((kernel * loss / x.size).sum())
    model.solve("highs", output_flag=False, **_TIGHT)
    return Answer(float(cast(float, model.objective.value)))


def in_problem(instance: tuple[np.ndarray, float]) -> Answer:
    """Solve, prove and keep the count with a risk through `dpopt.Problem`."""
    import dpopt

    loss, risk = instance
    n = len(loss)
    far = np.eye(n)[:, :, None] * (loss >= FAR)
    problem = dpopt.Problem("count with a risk")
    problem.add_variables("K", (n, n), lower=0.0, upper=1.0)
    problem.add_pmf("sums", "K")
    problem.add_private("privacy", "K", epsilon=EPSILON, graph="path")
    problem.add_rows("risk", {"K": far}, upper=risk)
    problem.minimise({"K": loss / n})
    solution = dpopt.solve(problem)
    rows = [("risk", far, None, risk)]
    design = dpopt.certify(solution["K"], EPSILON, graph="path", constraints=rows)
    return _proved(solution, design)


def by_the_door(instance: tuple[np.ndarray, float]) -> Answer:
    """Model the count with a risk in cvxpy; solve, prove and keep it here."""
    import cvxpy as cp

    import dpopt

    loss, risk = instance
    n = len(loss)
    kernel = cp.Variable((n, n), nonneg=True, name="K")
    safe = cast(Any, cp.sum(cp.multiply(loss >= FAR, kernel), axis=1) <= risk).set_label("risk")
    rules = [
        cp.sum(kernel, axis=1) == 1,
        safe,
        *dpopt.privacy_constraints(kernel, EPSILON, graph="path"),
    ]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss / n, kernel))), rules)
    solution = dpopt.solve(problem)
    design = dpopt.certify(kernel, EPSILON, graph="path", constraints=[safe])
    return _proved(solution, design)


def lines(run: Run) -> int:
    """Return the lines of a way's body: neither blank, nor docstring, nor import."""
    body = inspect.getsource(run).split('"""')[2].splitlines()
    written = [line.strip() for line in body]
    return sum(bool(line) and not line.startswith(("import ", "return ")) for line in written)


def _missed(problem: Any) -> Answer:  # noqa: ANN401
    missed = max(float(np.max(rule.violation())) for rule in problem.constraints)
    return Answer(float(problem.value), note=f"rows missed by up to {missed:.1e}; no bound")


def _proved(solution: Any, design: Any) -> Answer:  # noqa: ANN401
    design._require_private()
    note = f"gap {solution.gap:.1e}; proved, at a cost of {design.value:.1e}"
    return Answer(float(solution.objective), note=note)


COUNT = benchmark(
    "modelling-count",
    sizes=(9, 14, 20, 28, 40),
    contenders=tuple(
        Contender(f"{name} ({lines(run)} lines)", count, run, needs=needs)
        for name, run, needs in (
            ("dpopt, from cvxpy", by_the_door, None),
            ("dpopt.Problem", in_problem, None),
            ("cvxpy + HiGHS at 1e-10", in_cvxpy, None),
            ("linopy + HiGHS at 1e-10", in_linopy, ("linopy", "interop")),
        )
    ),
    tolerance=1e-8,
    warm_up=9,
    limits=Limits(60),
)
