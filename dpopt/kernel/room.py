"""Own rows: from a solver's point to a private table that keeps them.

A solver leaves every inequality broken by its tolerance. Each of them is convex, f(K) <= 0, so that
mixing with another kernel Z, with room f(Z) < 0, puts all right: `dpopt.table.repair` does it. Own
rows need a Z that keeps them: a program finds the one with the most room. Equalities have none, and
what Z leaves no room for neither: these hold up to the rounding of floats.

Where own rows leave little room, that is dear: 1e-10 of violation against 1e-5 of room costs 1e-5.
Then a second program is asked for the change D of K that puts all right. It is written in units of
the violation v itself, K + v D, so that the solver's tolerance counts relative to v: what is broken
afterwards is v times that tolerance, and mixing costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpopt._errors import InfeasibleError, NotPrivateError, SolverError
from dpopt._types import Vector
from dpopt.kernel.constraints import ConstraintBlock, add_constraints
from dpopt.lp import solve
from dpopt.lp.backends.highs import Highs
from dpopt.lp.model import Model
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
from dpopt.table.rounding import UNUSED, alike

# Room below which a row counts as having none: solvers do not tell it from 0.
_ROOM = 1e-8
# Probability moved by mixing that is not worth the second program; and the largest change that it
# may make, in units of the violation, and its seconds.
_SMALL, _FARTHEST, _SECONDS = 1e-8, 1e4, 20.0


def kept(
    inputs: Inputs,
    guarantee: Guarantee,
    blocks: Sequence[ConstraintBlock],
    point: Vector,
    bits: int,
) -> Table:
    """Return a table next to a point that is private and keeps own inequalities that leave room.

    Args:
        inputs: the variables.
        guarantee: what is asked.
        blocks: own rows.
        point: probability of one output of each variable, private and within the own rows up to a
            solver's tolerance.
        bits: of the total.

    Raises:
        NotPrivateError: if privacy has no room next to the point.
    """
    equal = alike(guarantee)
    values = polished(inputs, point, guarantee) if equal else _normalised(inputs, point)
    first = rounded(inputs, values, bits, equal=equal)
    with suppress(NotPrivateError):
        _judge(first, guarantee, _slacks(blocks, first).values())
        return first
    strict = _strict(inputs, guarantee, blocks, values, bits)
    if strict is None:
        return repair(
            first,
            interior(inputs, values, bits),
            lambda table: certify_table(table, guarantee),
            bits,
        )[0]
    with_room = [limit for limit, slack in _slacks(blocks, strict).items() if slack > _ROOM]

    def judged(table: Table) -> Certificate:
        slacks = _slacks(blocks, table)
        return _judge(table, guarantee, [slacks[limit] for limit in with_room])

    def repaired(table: Table) -> Table:
        return repair(table, strict, judged, bits)[0]

    mixed = repaired(first)
    if _moved(mixed, point) <= _SMALL:
        return mixed
    # Infeasible: some violation is no solver's noise.
    with suppress(InfeasibleError, SolverError):
        changed = _changed(inputs, guarantee, blocks, values)
        other = repaired(rounded(inputs, _normalised(inputs, changed), bits, equal=equal))
        return min(mixed, other, key=lambda table: _moved(table, point))
    return mixed


def _moved(table: Table, point: Vector) -> float:
    """Return the largest total variation between a row of a table and that of a point."""
    inputs = table.inputs
    away = np.abs(table.masses - np.maximum(point, 0.0) * inputs.counts)
    return float(np.bincount(inputs.rows, away).max()) / 2


def _changed(
    inputs: Inputs, guarantee: Guarantee, blocks: Sequence[ConstraintBlock], values: Vector
) -> Vector:
    """Return K + v D, v being the worst violation and D the change of least largest entry.

    D is the solution of the rows of privacy and the own ones, moved to K and divided by v.

    Raises:
        InfeasibleError: if entries would have to change by more than 10,000 v.
        SolverError: if the solver found no answer.
    """
    problem = Problem("kept")
    add_table(problem, inputs, guarantee)
    masses = over_masses(problem, inputs, guarantee, sp.eye_array(inputs.size, format="csr"))
    add_constraints(problem, inputs, guarantee, blocks)
    model = problem.assemble()
    matrix, rows = model.rows.matrix, model.rows
    none = {
        name: sp.csr_array((inputs.size, part.stop - part.start))
        for name, part in model.variables.items()
    }
    every = sp.hstack([masses.get(name, zeros) for name, zeros in none.items()], format="csr")
    x = _placed(model, inputs, guarantee, values)
    reached = matrix @ x
    broken = (rows.lower - reached, reached - rows.upper, model.lower - x, x - model.upper)
    unit = max(float(np.max(side)) for side in broken)
    if unit <= 0:
        return values
    least = np.maximum((model.lower - x) / unit, -_FARTHEST)
    most = np.minimum((model.upper - x) / unit, _FARTHEST)
    lower, upper = (rows.lower - reached) / unit, (rows.upper - reached) / unit
    # Limits that no change within the box can reach are left out.
    reach = _FARTHEST * np.abs(matrix).sum(axis=1)
    lower[lower < -reach], upper[upper > reach] = -math.inf, math.inf
    near = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    change = Problem("change")
    change.add_variables("change", x.size, lower=least, upper=most)
    change.add_variables("largest", 1, lower=0.0, upper=_FARTHEST)
    change.add_rows("rows", {"change": matrix[near]}, lower=lower[near], upper=upper[near])
    one = np.ones((inputs.size, 1))
    change.add_rows("above", {"change": every, "largest": -one}, upper=0.0)
    change.add_rows("below", {"change": -every, "largest": -one}, upper=0.0)
    change.minimise({"largest": [1.0]})
    solution = solve(change, Highs(interior=True), time_limit=_SECONDS)
    return values + unit * (every @ solution["change"]) / inputs.counts


def _placed(model: Model, inputs: Inputs, guarantee: Guarantee, values: Vector) -> Vector:
    """Return probabilities as a point of a program of tables."""
    x, part = np.zeros(model.cost.size), model.variables
    masses = values * inputs.counts
    if "kernel" in part:
        x[part["kernel"]] = masses
    else:
        ceilings = values[inputs.neighbours].max(axis=1)
        x[part["ceiling"]] = ceilings
        floor = math.exp(-guarantee.epsilon) * inputs.counts
        group = np.empty(inputs.size, dtype=np.int64)
        group[inputs.neighbours] = np.arange(len(ceilings))[:, None]
        x[part["excess"]] = masses - floor * ceilings[group]
    if "excess_mass" in part:
        # Of a row of privacy what is above 0, by the coefficient that its own excess has.
        privacy = model.rows.matrix[model.blocks["privacy"]]
        own = -privacy[:, part["excess_mass"]].diagonal()
        x[part["excess_mass"]] = np.maximum(privacy @ x, 0.0) / own
    return x


def _slacks(
    blocks: Sequence[ConstraintBlock], table: Table
) -> dict[tuple[str, int, str], Fraction]:
    """Return how far a table is within each limit of own inequalities, exactly.

    By block, row and side, in units of the row's largest coefficient.
    """
    slacks = dict[tuple[str, int, str], Fraction]()
    for block in blocks:
        sizes = np.zeros(block.count)
        np.maximum.at(sizes, block.places[:, 0], np.abs(block.coefficients))
        rows = zip(block.sums(table), sizes.tolist(), block.lower, block.upper, strict=True)
        for row, (value, size, lower, upper) in enumerate(rows):
            unit = Fraction(size or 1)
            if lower is not None and lower != upper:
                slacks[block.name, row, "lower"] = (value - Fraction(lower)) / unit
            if upper is not None and lower != upper:
                slacks[block.name, row, "upper"] = (Fraction(upper) - value) / unit
    return slacks


def _judge(table: Table, guarantee: Guarantee, slacks: Collection[Fraction]) -> Certificate:
    """Return a certificate whose slack is the least of privacy and of own rows.

    Raises:
        NotPrivateError: with the largest excess of both, if one is broken.
    """
    slack = min(slacks, default=Fraction(1))
    try:
        proof = certify_table(table, guarantee)
    except NotPrivateError as error:
        error.excess = max(error.excess or 0.0, float(-slack))
        raise
    if slack < 0:
        raise NotPrivateError("an own row is broken.", excess=float(-slack) or math.ulp(0.0))
    return replace(proof, slack=min(proof.slack, slack))


def _normalised(inputs: Inputs, point: Vector) -> Vector:
    """Return a point without noise in unused outputs, each row divided by its sum."""
    values = np.maximum(point, 0.0)
    largest = np.zeros(len(inputs.column_sizes))
    np.maximum.at(largest, inputs.columns, values)
    values = np.where(largest[inputs.columns] <= UNUSED, 0.0, values)
    return values / (inputs.sums @ values)[inputs.rows]


def _strict(
    inputs: Inputs,
    guarantee: Guarantee,
    blocks: Sequence[ConstraintBlock],
    values: Vector,
    bits: int,
) -> Table | None:
    """Return a table with room in privacy and in the own rows; None if privacy has none.

    It uses all outputs, or those that the point uses, since own rows may forbid the others. Privacy
    without a delta is tried first, which has room for any. Where some own row has no room, as one
    that says the same as an equality, as much room as there is in all of them together.
    """
    every = np.ones(len(inputs.column_sizes), dtype=bool)
    used = np.bincount(inputs.columns, values, len(every)) > 0
    deltas = dict.fromkeys((0.0, guarantee.delta))
    for delta, outputs, together in product(deltas, (every, used), (True, False)):
        asked = Guarantee(guarantee.epsilon, delta)
        with suppress(InfeasibleError, SolverError):
            solution = solve(_most_room(inputs, asked, blocks, outputs, together=together))
            if float(solution["margin"][0]) > _ROOM:
                middle = probabilities_of(inputs, asked, solution) * outputs[inputs.columns]
                return rounded(inputs, _normalised(inputs, middle), bits)
    return None


def _most_room(
    inputs: Inputs,
    guarantee: Guarantee,
    blocks: Sequence[ConstraintBlock],
    outputs: np.ndarray[Any, Any],
    *,
    together: bool,
) -> Problem:
    """Return the program of a table that has the most room.

    "margin" is that of privacy, and with ``together`` that of every own inequality as well, in
    units of its largest coefficient; otherwise each has a margin of its own, and their sum counts.
    """
    problem = Problem("room")
    add_table(problem, inputs, guarantee)
    problem.add_variables("margin", 1, lower=0.0, upper=1.0)
    allowed = outputs[inputs.columns].astype(float)
    _add_private_room(problem, inputs, guarantee, allowed)
    own_margins = dict[str, int]()
    for block in blocks:
        lower, upper = block.limits
        matrix, equal = block.over(inputs), lower == upper
        if equal.any():
            sides = over_masses(problem, inputs, guarantee, matrix[np.flatnonzero(equal)])
            problem.add_rows(f"{block.name}:equal", sides, lower=lower[equal], upper=upper[equal])
        for name, sign, limits in (("upper", 1.0, upper), ("lower", -1.0, -lower)):
            rows = np.flatnonzero(~equal & np.isfinite(limits))
            if not rows.size:
                continue
            own = sign * matrix[rows]
            # What stands over no output that may be used needs no room.
            size = np.abs(own @ sp.diags_array(allowed)).max(axis=1).toarray().ravel()
            sides = dict(over_masses(problem, inputs, guarantee, own))
            if together:
                sides["margin"] = sp.csr_array(size[:, None])
            else:
                named = f"{block.name}:{name}:margin"
                problem.add_variables(named, rows.size, lower=0.0, upper=1.0)
                sides[named] = sp.csr_array(sp.diags_array(size))
                own_margins[named] = rows.size
            problem.add_rows(f"{block.name}:{name}", sides, upper=limits[rows])
    count = sum(own_margins.values())
    weights = {name: np.full(many, 1.0 / count) for name, many in own_margins.items()}
    problem.maximise({"margin": [1.0], **weights})
    return problem


def _add_private_room(
    problem: Problem, inputs: Inputs, guarantee: Guarantee, allowed: Vector
) -> None:
    """Take "margin" off the privacy rows of outputs that may be used; forbid the others."""
    room = -math.expm1(-guarantee.epsilon)
    if "ceiling" in problem.variables:
        # K = e^-epsilon ceiling + excess: what exceeds the least that is private is room.
        problem.set_bounds("excess", upper=allowed)
        ceilings = allowed[inputs.neighbours[:, 0]]
        problem.set_bounds("ceiling", upper=ceilings)
        sides: dict[str, Any] = {"excess": -sp.eye_array(inputs.size)}
        sides["margin"] = (room * allowed)[:, None]
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
        sides = {"kernel": ratios, "margin": room * needed[:, None]}
        problem.replace_rows("privacy", sides, upper=0.0)
