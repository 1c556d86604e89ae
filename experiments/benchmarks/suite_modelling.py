"""Benchmarks of modelling: two private programs in cvxpy, linopy, `Problem` and the cvxpy door.

Each way is one function, from the sizes to the kernel, so that its lines can be counted. What is
timed is all of it: building, handing over, solving. The ways through dpopt state a bound and end in
a design that was proved and releases, which is in their lines and in their times.

cvxpy and linopy leave HiGHS at its tolerance of 1e-7, by which every row may be missed. Called so,
as one would, they answer a looser question, whose optimum is lower: they are shown and not judged.
With the tolerance of 1e-10 that dpopt asks for they answer the same one, and must agree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from experiments.benchmarks.spec import OURS, SOLVER, Answer, Benchmark, Contender, limited

EPSILON, DELTA, FAR = 1.0, 0.01, 3
# Just above the least risk that a count of so many allows at epsilon = 1.
_RISKS = {9: 0.05, 20: 0.065, 40: 0.072}
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
Run = Callable[[Any], Answer]


def count(inputs: int) -> tuple[np.ndarray, float]:
    """Return |x - y| for a count of 0..inputs-1, and the risk that is taken."""
    x = np.arange(inputs)
    return np.abs(x[:, None] - x), _RISKS.get(inputs, 0.072)


def letters(inputs: int) -> np.ndarray:
    """Return a public law of so many letters, the last the likeliest."""
    return np.arange(1, inputs + 1) / np.arange(1, inputs + 1).sum()


def count_in_cvxpy(instance: tuple[np.ndarray, float], **options: Any) -> Answer:  # noqa: ANN401
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
    problem.solve(solver=cp.HIGHS, highs_options=options)
    return _missed(problem)


def count_in_linopy(instance: tuple[np.ndarray, float], **options: Any) -> Answer:  # noqa: ANN401
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
    model.solve("highs", output_flag=False, **options)
    return Answer(float(cast(float, model.objective.value)))


def count_in_cvxpy_tightly(instance: tuple[np.ndarray, float]) -> Answer:
    """Solve the count with a risk in cvxpy, with HiGHS at its least tolerance."""
    return count_in_cvxpy(instance, **TIGHT)


def count_in_linopy_tightly(instance: tuple[np.ndarray, float]) -> Answer:
    """Solve the count with a risk in linopy, with HiGHS at its least tolerance."""
    return count_in_linopy(instance, **TIGHT)


def count_in_problem(instance: tuple[np.ndarray, float]) -> Answer:
    """Solve, prove and keep the count with a risk through `dpopt.Problem`."""
    import dpopt

    loss, risk = instance
    n = len(loss)
    far = np.eye(n)[:, :, None] * (loss >= FAR)
    problem = dpopt.Problem("count with a risk")
    problem.add_variables("K", (n, n), lower=0.0, upper=1.0)
    problem.add_law("sums", "K")
    problem.add_private("privacy", "K", epsilon=EPSILON, graph="path")
    problem.add_rows("risk", {"K": far}, upper=risk)
    problem.minimise({"K": loss / n})
    solution = dpopt.solve(problem)
    rows = [("risk", far, None, risk)]
    design = dpopt.certify(solution["K"], EPSILON, graph="path", rows=rows)
    return _proved(solution, design)


def count_by_the_door(instance: tuple[np.ndarray, float]) -> Answer:
    """Model the count with a risk in cvxpy; solve, prove and keep it here."""
    import cvxpy as cp

    import dpopt

    loss, risk = instance
    n = len(loss)
    kernel = cp.Variable((n, n), nonneg=True, name="K")
    safe = cast(Any, cp.sum(cp.multiply(loss >= FAR, kernel), axis=1) <= risk).set_label("risk")
    rules = [cp.sum(kernel, axis=1) == 1, safe, *dpopt.private(kernel, EPSILON, graph="path")]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss / n, kernel))), rules)
    solution = dpopt.solve(problem)
    design = dpopt.certify(kernel, EPSILON, graph="path", rows=[safe])
    return _proved(solution, design)


def letters_in_cvxpy(q: np.ndarray, **options: Any) -> Answer:  # noqa: ANN401
    """Solve the letters with a law to keep in cvxpy."""
    import cvxpy as cp

    r, n = np.exp(EPSILON), q.size
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    kernel = cp.Variable((n, n), nonneg=True)
    excess = cp.sum(cp.pos(kernel[first] - r * kernel[second]), axis=1)
    rules = [cp.sum(kernel, axis=1) == 1, excess <= DELTA, q @ kernel == q]
    problem = cp.Problem(cp.Minimize(1 - q @ cp.diag(kernel)), rules)
    problem.solve(solver=cp.HIGHS, highs_options=options)
    return _missed(problem)


def letters_in_linopy(q: np.ndarray, **options: Any) -> Answer:  # noqa: ANN401
    """Solve the letters with a law to keep in linopy."""
    import linopy
    import xarray as xr

    linopy.options["semantics"] = "v1"
    r, x = np.exp(EPSILON), np.arange(q.size)
    law = xr.DataArray(q, coords={"x": x})
    right = xr.DataArray(np.diag(q), coords={"x": x, "y": x})
    model = linopy.Model()
    kernel = model.add_variables(lower=0, coords=right.coords, name="K")
    excess = model.add_variables(lower=0, coords={"x": x, "other": x, "y": x}, name="excess")
    model.add_constraints(kernel.sum("y") == 1, name="sums")
    model.add_constraints(kernel - r * kernel.rename(x="other") - excess <= 0, name="privacy")
    model.add_constraints(excess.sum("y") <= DELTA, name="delta")
    model.add_constraints((kernel * law).sum("x") == law.rename(x="y"), name="invariance")
    model.add_objective((kernel * right).sum(), sense="max")
    model.solve("highs", output_flag=False, **options)
    return Answer(1.0 - float(cast(float, model.objective.value)))


def letters_in_cvxpy_tightly(q: np.ndarray) -> Answer:
    """Solve the letters with a law to keep in cvxpy, with HiGHS at its least tolerance."""
    return letters_in_cvxpy(q, **TIGHT)


def letters_in_linopy_tightly(q: np.ndarray) -> Answer:
    """Solve the letters with a law to keep in linopy, with HiGHS at its least tolerance."""
    return letters_in_linopy(q, **TIGHT)


def letters_in_problem(q: np.ndarray) -> Answer:
    """Solve, prove and keep the letters with a law to keep through `dpopt.Problem`."""
    import dpopt

    n = q.size
    kept = np.eye(n)[:, None, :] * q[None, :, None]
    problem = dpopt.Problem("letters with a law to keep")
    problem.add_variables("K", (n, n), lower=0.0, upper=1.0)
    problem.add_law("sums", "K")
    problem.add_private("privacy", "K", epsilon=EPSILON, delta=DELTA)
    problem.add_rows("invariance", {"K": kept}, lower=q, upper=q)
    problem.minimise({"K": q[:, None] * (1 - np.eye(n))})
    solution = dpopt.solve(problem)
    rows = [("invariance", kept, q, q)]
    design = dpopt.certify(solution["K"], EPSILON, DELTA, rows=rows)
    return _proved(solution, design)


def letters_by_the_door(q: np.ndarray) -> Answer:
    """Model the letters with a law to keep in cvxpy; solve, prove and keep them here."""
    import cvxpy as cp

    import dpopt

    kernel = cp.Variable((q.size, q.size), nonneg=True, name="K")
    kept = (q @ kernel == q).set_label("invariance")
    rules = [cp.sum(kernel, axis=1) == 1, kept, *dpopt.private(kernel, EPSILON, DELTA)]
    problem = cp.Problem(cp.Minimize(1 - q @ cp.diag(kernel)), rules)
    solution = dpopt.solve(problem)
    design = dpopt.certify(kernel, EPSILON, DELTA, rows=[kept])
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
    design.require_private()
    note = f"gap {solution.gap:.1e}; proved, at a cost of {design.value:.1e}"
    return Answer(float(solution.objective), note=note)


def _contenders(
    prepare: Callable[[int], Any], door: Run, problem: Run, **others: tuple[Run, Run]
) -> tuple[Contender, ...]:
    """Return the ways: ``others`` are, for each library, one with tight options and one without."""
    ways = [
        Contender(f"dpopt, from cvxpy ({lines(door)} lines)", OURS, prepare, door),
        Contender(f"dpopt.Problem ({lines(problem)} lines)", OURS, prepare, problem),
    ]
    needs = {"linopy": ("linopy", "interop")}
    for library, (tight, plain) in others.items():
        asked: dict[str, Any] = {"needs": needs.get(library)}
        called = f"{library} + HiGHS"
        tightly = f"{called} at 1e-10 ({lines(plain)} lines)"
        as_it_is = f"{called} as called by default"
        ways.append(Contender(tightly, SOLVER, prepare, tight, **asked))
        ways.append(Contender(as_it_is, SOLVER, prepare, plain, same=False, **asked))
    return tuple(ways)


COUNT = Benchmark(
    name="modelling-count",
    title="A count with a risk constraint",
    measures="From the parameters to the optimum: building, handing over, solving; through dpopt "
    "also a dual bound, and a kernel of integers that is proved private.",
    setting="epsilon = 1, path; mean error |x - y|; Pr[|x - y| >= 3] at most .05, .065, .072",
    axis="counts n",
    value="mean error",
    sizes=(9, 14, 20, 28, 40),
    contenders=_contenders(
        count,
        count_by_the_door,
        count_in_problem,
        cvxpy=(count_in_cvxpy_tightly, count_in_cvxpy),
        linopy=(count_in_linopy_tightly, count_in_linopy),
    ),
    tolerance=1e-8,
    warm_up=9,
    limits=limited(60),
)

LETTERS = Benchmark(
    name="modelling-letters",
    title="(epsilon, delta)-private letters that keep a public law",
    measures="As above.",
    setting="epsilon = 1, delta = .01, all letters neighbours; q K = q, q = (1, ..., n) / sum",
    axis="letters n",
    value="probability of another letter",
    sizes=(5, 7, 10, 14, 20),
    contenders=_contenders(
        letters,
        letters_by_the_door,
        letters_in_problem,
        cvxpy=(letters_in_cvxpy_tightly, letters_in_cvxpy),
        linopy=(letters_in_linopy_tightly, letters_in_linopy),
    ),
    tolerance=1e-8,
    warm_up=5,
    limits=limited(60),
)

BENCHMARKS = (COUNT, LETTERS)
