"""Repair under user constraints: from a solver's solution to a private table that satisfies them.

`dpopt.table.repair` mixes a solver's kernel with a strictly feasible one. With user constraints, a
linear program finds the one with the largest slack. Equalities have no slack, nor do inequalities
that cannot hold strictly: these hold up to float rounding.

With little slack, mixing is expensive: a violation of 1e-10 against a slack of 1e-5 moves 1e-5 of
probability. A second program then finds a correction D of K. It is scaled by the violation v, as
K + v D, so that the solver's tolerance is relative to v: the remaining violation is v times that
tolerance, and mixing then costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dpopt._errors import InfeasibleError, NotPrivateError, SolverError
from dpopt._types import Vector
from dpopt.kernel.constraints import ConstraintBlock, add_constraints
from dpopt.lp import solve
from dpopt.lp.backends.highs import Highs
from dpopt.lp.problem import Model
from dpopt.privacy import Certificate, Guarantee, Problem
from dpopt.table import (
    Inputs,
    Table,
    add_table,
    certify_table,
    interior,
    over_masses,
    polished,
    probabilities_of,
    repair,
    rounded,
)
from dpopt.table.table import alike, without_unused

if TYPE_CHECKING:
    from dpopt.kernel.setting import Kernel

# Slack over a row's largest coefficient; solvers cannot tell a smaller one from 0.
_LEAST_SLACK = 1e-8
# For the second program: the probability moved by mixing above which it is solved, the largest
# change that it may make, in multiples of the violation, and its time limit in seconds.
_SMALL, _LARGEST_CHANGE, _SECONDS = 1e-8, 1e4, 20.0


def constrained_repair(setting: Kernel, point: Vector) -> Table:
    """Return a private table near a point that satisfies all user inequalities that have slack."""
    inputs, guarantee, blocks = setting.domain, setting.guarantee, setting.blocks
    bits = setting.bits
    equal = alike(guarantee)
    values = polished(inputs, point, guarantee) if equal else _normalised(inputs, point)
    first = rounded(inputs, values, bits, equal=equal)
    with suppress(NotPrivateError):
        _certify(first, guarantee, _slacks(blocks, first).values())
        return first
    strict = _strict(setting, values)
    if strict is None:
        return repair(first, interior(inputs, values, bits), setting.judge, bits)[0]
    # Only limits that the strictly feasible table satisfies with slack can be required exactly.
    slack_limits = [
        limit for limit, slack in _slacks(blocks, strict).items() if slack > _LEAST_SLACK
    ]

    def certified(table: Table) -> Certificate:
        slacks = _slacks(blocks, table)
        return _certify(table, guarantee, [slacks[limit] for limit in slack_limits])

    def repaired(table: Table) -> Table:
        return repair(table, strict, certified, bits)[0]

    mixed = repaired(first)
    if moved(mixed, point) <= _SMALL:
        return mixed
    # The second program is infeasible if a violation is more than the solver's tolerance.
    with suppress(InfeasibleError, SolverError):
        changed = _corrected(setting, values)
        other = repaired(rounded(inputs, _normalised(inputs, changed), bits, equal=equal))
        return min(mixed, other, key=lambda table: moved(table, point))
    return mixed


def moved(table: Table, point: Vector) -> float:
    """Return the largest total variation between a row of a table and that of a point."""
    inputs = table.inputs
    away = np.abs(table.masses - np.maximum(point, 0.0) * inputs.counts)
    return float(np.bincount(inputs.rows, away).max()) / 2


def _corrected(setting: Kernel, values: Vector) -> Vector:
    """Return K + v D with the largest violation v and the correction D of least largest entry."""
    inputs, guarantee = setting.domain, setting.guarantee
    problem = Problem("kept")
    add_table(problem, inputs, guarantee)
    masses = over_masses(problem, inputs, guarantee, sp.eye_array(inputs.size, format="csr"))
    add_constraints(problem, inputs, guarantee, setting.blocks)
    model = problem.assemble()
    matrix, rows = model.rows.matrix, model.rows
    none = {
        name: sp.csr_array((inputs.size, block.stop - block.start))
        for name, block in model.variables.items()
    }
    every = sp.hstack([masses.get(name, zeros) for name, zeros in none.items()], format="csr")
    # `every` maps the program's variables to K; `point` is K as these variables.
    point = _program_point(model, inputs, guarantee, values)
    reached = matrix @ point
    broken = (rows.lower - reached, reached - rows.upper, model.lower - point, point - model.upper)
    violation = max(float(np.max(side)) for side in broken)
    if violation <= 0:
        return values
    least = np.maximum((model.lower - point) / violation, -_LARGEST_CHANGE)
    most = np.minimum((model.upper - point) / violation, _LARGEST_CHANGE)
    lower, upper = (rows.lower - reached) / violation, (rows.upper - reached) / violation
    # Limits that no change of the permitted size can reach are dropped.
    reach = _LARGEST_CHANGE * np.abs(matrix).sum(axis=1)
    lower[lower < -reach], upper[upper > reach] = -math.inf, math.inf
    reachable = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    change = Problem("change")
    change.add_variables("change", point.size, lower=least, upper=most)
    change.add_variables("largest", 1, lower=0.0, upper=_LARGEST_CHANGE)
    change.add_rows(
        "rows", {"change": matrix[reachable]}, lower=lower[reachable], upper=upper[reachable]
    )
    one = np.ones((inputs.size, 1))
    change.add_rows("above", {"change": every, "largest": -one}, upper=0.0)
    change.add_rows("below", {"change": -every, "largest": -one}, upper=0.0)
    change.minimise({"largest": [1.0]})
    solution = solve(change, Highs(interior=1e-12), time_limit=_SECONDS)
    return values + violation * (every @ solution["change"])


def _program_point(model: Model, inputs: Inputs, guarantee: Guarantee, values: Vector) -> Vector:
    """Return probabilities as values of the variables of a program of tables."""
    x, slices = np.zeros(model.cost.size), model.variables
    if "kernel" in slices:
        x[slices["kernel"]] = values
    else:
        ceilings = values[inputs.neighbours].max(axis=1)
        x[slices["ceiling"]] = ceilings
        group = np.empty(inputs.size, dtype=np.int64)
        group[inputs.neighbours] = np.arange(len(ceilings))[:, None]
        x[slices["excess"]] = values - math.exp(-guarantee.epsilon) * ceilings[group]
    if "excess_mass" in slices:
        # The excess of an entry makes its privacy row tight where that is violated.
        privacy = model.rows.matrix[model.blocks["privacy"]]
        coefficients = -privacy[:, slices["excess_mass"]].diagonal()
        x[slices["excess_mass"]] = np.maximum(privacy @ x, 0.0) / coefficients
    return x


def _slacks(
    blocks: Sequence[ConstraintBlock], table: Table
) -> dict[tuple[str, int, str], Fraction]:
    """Return the exact slack of a table in each limit of the user's inequalities."""
    slacks = dict[tuple[str, int, str], Fraction]()
    for block in blocks:
        sizes = np.zeros(block.count)
        np.maximum.at(sizes, block.places[:, 0], np.abs(block.coefficients))
        for (row, side), slack in block.slacks(table).items():
            if block.lower[row] != block.upper[row]:
                slacks[block.name, row, side] = slack / Fraction(sizes[row] or 1)
    return slacks


def _certify(table: Table, guarantee: Guarantee, slacks: Collection[Fraction]) -> Certificate:
    """Return a certificate whose slack is the least of privacy and of the given constraints."""
    slack = min(slacks, default=Fraction(1))
    try:
        proof = certify_table(table, guarantee)
    except NotPrivateError as error:
        error.excess = max(error.excess or 0.0, float(-slack))
        raise
    if slack < 0:
        raise NotPrivateError("a constraint is violated.", excess=float(-slack) or math.ulp(0.0))
    return replace(proof, slack=min(proof.slack, slack))


def _normalised(inputs: Inputs, point: Vector) -> Vector:
    """Return a point with unused outputs set to 0 and each row divided by its sum."""
    values = without_unused(inputs, np.maximum(point, 0.0))
    return values / (inputs.sums @ values)[inputs.rows]


def _strict(setting: Kernel, values: Vector) -> Table | None:
    """Return a table with slack in the privacy rows and constraints; None if privacy has none.

    It uses all outputs, or only those that the point uses, since constraints may forbid the others.
    Delta = 0 is tried first: what is strictly private for it is so for every delta. If some
    constraint cannot have slack, such as one implied by an equality, the sum of slacks is maximal.
    """
    inputs, guarantee = setting.domain, setting.guarantee
    every = np.ones(len(inputs.column_sizes), dtype=bool)
    used = np.bincount(inputs.columns, values, len(every)) > 0
    deltas = dict.fromkeys((0.0, guarantee.delta))
    for delta, outputs, together in product(deltas, (every, used), (True, False)):
        target = Guarantee(guarantee.epsilon, delta)
        with suppress(InfeasibleError, SolverError):
            solution = solve(
                _largest_margin(inputs, target, setting.blocks, outputs, together=together)
            )
            if float(solution["margin"][0]) > _LEAST_SLACK:
                middle = probabilities_of(inputs, target, solution) * outputs[inputs.columns]
                return rounded(inputs, _normalised(inputs, middle), setting.bits)
    return None


def _largest_margin(
    inputs: Inputs,
    guarantee: Guarantee,
    blocks: Sequence[ConstraintBlock],
    outputs: np.ndarray[Any, Any],
    *,
    together: bool,
) -> Problem:
    """Return the program of the table with the largest margin.

    "margin" is the slack of privacy; with ``together`` also that of every user inequality, divided
    by its largest coefficient. Otherwise each inequality has its own margin, and their sum counts.
    """
    problem = Problem("room")
    add_table(problem, inputs, guarantee)
    problem.add_variables("margin", 1, lower=0.0, upper=1.0)
    allowed = outputs[inputs.columns].astype(float)
    _add_privacy_margin(problem, inputs, guarantee, allowed)
    rows = sp.vstack(
        [block.matrix(len(inputs.row_sizes), len(outputs)) for block in blocks], format="csr"
    )
    lower, upper = np.hstack([block.limits for block in blocks])
    equal, objective = lower == upper, {"margin": np.ones(1)}
    if equal.any():
        sides = over_masses(problem, inputs, guarantee, rows[np.flatnonzero(equal)])
        problem.add_rows("equalities", sides, lower=lower[equal], upper=upper[equal])
    above = np.flatnonzero(~equal & np.isfinite(upper))
    below = np.flatnonzero(~equal & np.isfinite(lower))
    signed = sp.vstack([rows[above], -rows[below]], format="csr")
    limits = np.append(upper[above], -lower[below])
    if limits.size:
        # A row over outputs that are all unused needs no margin.
        size = np.abs(signed @ sp.diags_array(allowed)).max(axis=1).toarray().ravel()
        sides = dict(over_masses(problem, inputs, guarantee, signed))
        if together:
            sides["margin"] = sp.csr_array(size[:, None])
        else:
            problem.add_variables("margins", limits.size, lower=0.0, upper=1.0)
            sides["margins"] = sp.csr_array(sp.diags_array(size))
            objective["margins"] = np.full(limits.size, 1.0 / limits.size)
        problem.add_rows("inequalities", sides, upper=limits)
    problem.maximise(objective)
    return problem


def _add_privacy_margin(
    problem: Problem, inputs: Inputs, guarantee: Guarantee, allowed: Vector
) -> None:
    """Take "margin" off the privacy rows of outputs that may be used; forbid the others."""
    margin = -math.expm1(-guarantee.epsilon)
    if "ceiling" in problem.variables:
        # K = e^-epsilon ceiling + excess: an excess above 0 is slack in K >= e^-epsilon ceiling.
        problem.set_bounds("excess", upper=allowed)
        ceilings = allowed[inputs.neighbours[:, 0]]
        problem.set_bounds("ceiling", upper=ceilings)
        sides: dict[str, Any] = {"excess": -sp.eye_array(inputs.size)}
        sides["margin"] = (margin * allowed)[:, None]
        problem.add_rows("room", sides, upper=0.0)
        return
    problem.set_bounds("kernel", upper=allowed)
    if guarantee.delta > 0:
        budget = problem.blocks["delta"]
        sides = {"excess_mass": budget.matrix[:, problem.variables["excess_mass"]]}
        sides["margin"] = np.full((budget.count, 1), guarantee.delta)
        problem.replace_rows("delta", sides, upper=guarantee.delta)
    elif "privacy" in problem.blocks:
        ratios = problem.blocks["privacy"].matrix[:, problem.variables["kernel"]]
        needed = (abs(ratios) @ allowed > 0).astype(float)
        sides = {"kernel": ratios, "margin": margin * needed[:, None]}
        problem.replace_rows("privacy", sides, upper=0.0)
