"""Ways out: the same program for cvxpy, or in a file that any LP solver reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt.files import replacing
from dpopt.lp.model import Model, Rows

if TYPE_CHECKING:
    import cvxpy as cp


Stated = tuple[str, npt.NDArray[np.bool_], "cp.Constraint"]


def as_constraints(rows: Rows, x: cp.Expression) -> list[Stated]:
    """Return rows as constraints of cvxpy, each with its kind and the rows that are in it.

    Kinds are "equal", "lower" and "upper"; a row limited on both sides stands in both of the last.
    """
    equal = rows.lower == rows.upper
    stated: list[Stated] = []
    for kind, chosen in (
        ("equal", equal),
        ("lower", ~equal & np.isfinite(rows.lower)),
        ("upper", ~equal & np.isfinite(rows.upper)),
    ):
        if np.any(chosen):
            part = rows.take(chosen)
            values = part.matrix @ x
            if kind == "equal":
                constraint = values == part.lower
            else:
                constraint = values >= part.lower if kind == "lower" else values <= part.upper
            stated.append((kind, chosen, constraint))
    return stated


def to_cvxpy(model: Model, maximising: bool) -> cp.Problem:
    """Return the model as a `cvxpy.Problem`; constraints are labelled with their block's name."""
    import cvxpy as cp

    parts = {}
    for name, part in model.variables.items():
        shape = model.shapes[name]
        bounds = [model.lower[part].reshape(shape), model.upper[part].reshape(shape)]
        variable = cp.Variable(shape, name=name, bounds=bounds)
        parts[name] = variable if len(shape) == 1 else cp.vec(variable, order="C")
    x = cp.hstack(list(parts.values()))
    constraints: list[cp.Constraint] = []
    for name, place in model.blocks.items():
        for kind, _, constraint in as_constraints(model.rows.take(place), x):
            constraints.append(constraint.set_label(f"{name}:{kind}"))
    if maximising:
        return cp.Problem(cp.Maximize(-model.cost @ x), constraints)
    return cp.Problem(cp.Minimize(model.cost @ x), constraints)


def write(model: Model, name: str, path: Path, maximising: bool) -> None:
    """Write the model to a ``.mps`` or ``.lp`` file, with the names of variables and blocks."""
    import highspy

    from dpopt.lp.backends.highs import load_model

    if path.suffix.lower() not in (".mps", ".lp"):
        raise ParameterError(f"path is {str(path)!r}; its ending must be .mps or .lp.")
    solver = load_model(model)
    if maximising:
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        for column, cost in enumerate(model.cost):
            solver.changeColCost(column, -float(cost))
    for column, label in enumerate(model.column_names()):
        solver.passColName(column, _label(label, path))
    for row, label in enumerate(model.row_names()):
        solver.passRowName(row, _label(label, path))
    with replacing(path) as temporary:
        if solver.writeModel(str(temporary)) == highspy.HighsStatus.kError:
            raise ParameterError(f"HiGHS could not write {name!r} to {str(path)!r}.")


def _label(label: str, path: Path) -> str:
    """Return a name that the file's format allows: no blanks, and little else in LP files."""
    if path.suffix.lower() != ".lp":
        return re.sub(r"\s", "_", label)
    # The last underscore comes before the index, so that no two names become one.
    return re.sub(r"[^\w.]", "_", label.removesuffix("]").replace(",", "."))
