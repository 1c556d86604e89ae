"""Ways out: the same program for cvxpy, or in a file that any LP solver reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpopt._errors import ParameterError
from dpopt.files import replacing
from dpopt.lp.model import Model, Rows

if TYPE_CHECKING:
    import cvxpy as cp


def split_limits(rows: Rows) -> tuple[Rows, Rows, Rows]:
    """Split rows into equalities, rows with a lower limit, and rows with an upper limit.

    A row limited on both sides stands in both of the last two.
    """
    equal = rows.lower == rows.upper
    return (
        rows.take(equal),
        rows.take(~equal & np.isfinite(rows.lower)),
        rows.take(~equal & np.isfinite(rows.upper)),
    )


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
        chosen = np.zeros(model.rows.count, dtype=bool)
        chosen[place] = True
        for rows, limits in zip(
            split_limits(model.rows.take(chosen)), ("equal", "lower", "upper"), strict=True
        ):
            if rows.count == 0:
                continue
            values = rows.matrix @ x
            if limits == "equal":
                constraint = values == rows.lower
            else:
                constraint = values >= rows.lower if limits == "lower" else values <= rows.upper
            constraint.set_label(f"{name}:{limits}")
            constraints.append(constraint)
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
