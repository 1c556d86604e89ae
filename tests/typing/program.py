"""A user's program, which mypy --strict and pyright check against the installed package.

It is run, too: what it states of types holds at run time as far as `assert_type` cannot tell.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import lp, privacy, smoothed
from dpopt.proofs import Bound


def own_program() -> float:
    """A linear program of two shares."""
    problem = dpopt.Problem("shares")
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_rows("share", {"x": [[1.0, 1.0]]}, lower=1.0)
    problem.minimise({"x": [2.0, 1.0]})
    solution = dpopt.solve(problem, backend="highs")
    assert_type(solution, dpopt.Solution)
    assert_type(lp.solve(problem), dpopt.Solution)
    assert_type(solution.gap, float)
    shares: npt.NDArray[np.float64] = solution["x"]
    assert_type(solution.status, dpopt.Status)
    return solution.objective + float(shares.sum())


def categories(epsilon: float) -> dpopt.Problem:
    """A kernel of one's own: shaped variables, and privacy."""
    problem = dpopt.Problem("categories")
    problem.add_variables("K", (3, 3), lower=0.0, upper=1.0)
    problem.add_pmf("sums", "K")
    problem.add_private("privacy", "K", epsilon=epsilon)
    problem.add_rows("seldom", {"K": {(0, 2): 1.0, (2, 0): 1.0}}, upper=0.4)
    problem.minimise({"K": 1.0 - np.eye(3)})
    return problem


def proved_program() -> float:
    """A warm start, and the proof."""
    solution = dpopt.solve(categories(1.0))
    again = dpopt.solve(categories(1.5), start=solution)
    rows = [("seldom", [{(0, 2): 1.0, (2, 0): 1.0}], None, 0.4)]
    design = dpopt.certify(again["K"], 1.5, constraints=rows)
    assert_type(design, dpopt.Design)
    least = dpopt.certify(again["K"])
    assert_type(least, privacy.Least)
    setting = dpopt.Majority(3, 0.1, 1)
    vote = dpopt.certify([1.0, 0.0, 0.0, 1.0], setting=setting)
    assert_type(vote, dpopt.Design)
    return design.value + least.upper


def voters(folder: Path) -> list[privacy.Guarantee]:
    """One design of each kind, what it is worth, and what it releases."""
    design = dpopt.design(dpopt.Majority(voters=3, epsilon=0.1, allowance=1))
    assert_type(design, dpopt.Design)
    design.save(folder / "gamma.json")
    loaded = dpopt.load(folder / "gamma.json")
    if not isinstance(loaded, dpopt.Design):
        raise TypeError(loaded)
    label = loaded.release([1, 0, 1])
    rule = dpopt.design(dpopt.RevealOrObscure(records=10, categories=2, epsilon=0.5))
    prior = dpopt.design(dpopt.PublicPrior([0.2, 0.8], epsilon=1.0))
    assert_type(prior, dpopt.Design)
    best = dpopt.design(dpopt.Kernel(1.0 - np.eye(3), epsilon=1.0))
    assert_type(best.value, float)
    found = smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [0.4, 0.6])
    assert_type(found.delta, float)
    table = dpopt.sweep(own_cube, {"side": [1.0, 2.0]})
    assert_type(table, dpopt.SweepResult)
    if label not in (0, 1):
        raise ValueError(label)
    return [design.guarantee, rule.guarantee, prior.guarantee, best.guarantee]


def proofs(folder: Path) -> Fraction:
    """What proves that nothing is better: a bound, a saved proof, a fraction, and a formula."""
    setting = dpopt.Kernel("absolute", 1.0, graph="path", inputs=3, objective="worst-case")
    design = dpopt.design(setting)
    assert_type(design.bound, Bound | None)
    if design.bound is None or design.bound.how != "proved":
        raise ValueError(design)
    design.save(folder / "kernel.json", proof=True, verifier=True)
    exact = dpopt.exact_optimum(setting, Fraction(5, 2))
    assert_type(exact, dpopt.ExactOptimum)
    assert_type(exact.value, Fraction)
    exact.save(folder / "exact.json")
    form = dpopt.closed_form(setting)
    assert_type(form, dpopt.ClosedForm)
    assert_type(form.epsilons, tuple[float, ...])
    value = form(Fraction(5, 2))
    assert_type(value, Fraction)
    assert_type(form(2), Fraction)
    assert_type(form(2.5), float)
    return exact.value - value


def own_cube(side: float) -> dict[str, float]:
    """A function to sweep."""
    return {"cube": side**3}


def refused() -> str:
    """Errors are caught by the names that `dpopt` exports."""
    try:
        dpopt.design(dpopt.Majority(voters=4, epsilon=0.1, allowance=1))
    except dpopt.ParameterError as error:
        return str(error)
    raise ValueError("an even number of voters")


if __name__ == "__main__":
    own_program()
    voters(Path.cwd())
    if proofs(Path.cwd()):
        raise ValueError("two optima of one program")
    refused()
