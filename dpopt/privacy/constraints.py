"""Privacy of a kernel as constraints of a cvxpy program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.privacy.graph import LARGEST_EPSILON, all_pairs, directed_pairs, pair_count, require_rows


def privacy_constraints(
    K: cp.Expression,  # noqa: N803
    epsilon: float | cp.Expression,
    delta: float | cp.Expression = 0.0,
    graph: str | npt.ArrayLike = "complete",
    *,
    shape: Sequence[int] | None = None,
    name: str = "privacy",
) -> list[cp.Constraint]:
    """Return labelled cvxpy constraints under which a kernel is (epsilon, delta)-private.

    K[x, y] is the probability of output y for input x. Privacy asks for every ordered pair of
    neighbours x, x' that sum_y max(0, K[x, y] - e^epsilon K[x', y]) <= delta. It is written in one
    of three forms, divided by e^epsilon so that no coefficient is above 1:

        delta = 0, "complete":  e^-epsilon w[y] <= K[x, y],
                                K[x, y] <= w[y]                             (label "NAME:ceiling")
        delta = 0, else:        e^-epsilon K[x, y] <= K[x', y]
        delta > 0:              e^-epsilon K[x, y] - K[x', y] <= e^-epsilon s[x, x', y],  s >= 0,
                                sum_y s[x, x', y] <= delta                  (label "NAME:delta")

    s and w are variables that are added.

    Add the constraints K >= 0 and sum_y K[x, y] = 1 yourself. A solver satisfies all of this only
    up to its tolerance: `dpopt.certify` turns its solution into a proved mechanism.

    Epsilon and delta may be cvxpy Parameters: cvxpy then compiles the program once, however often
    their values change (its rules of disciplined parametrized programming hold).

    Args:
        K: a cvxpy Variable or affine Expression of shape (inputs, outputs).
        epsilon: in [0, 600], in nats; or a scalar cvxpy Parameter, checked when it is used.
        delta: in [0, 1]; or a scalar cvxpy Parameter.
        graph: neighbouring inputs: a name or edges, see `directed_pairs`.
        shape: of the words of the graphs "grid" and "hamming".
        name: label of the constraints; others begin with it.

    Raises:
        ParameterError: if K is no affine matrix, or a value is out of range.

    Example:
        >>> import cvxpy as cp
        >>> from dpopt import privacy_constraints, solve
        >>> K = cp.Variable((2, 2), name="K", nonneg=True)
        >>> rows = [cp.sum(K, axis=1) == 1, *privacy_constraints(K, 1.0)]
        >>> problem = cp.Problem(cp.Maximize(cp.trace(K) / 2), rows)
        >>> round(solve(problem).objective, 6)
        0.731059
    """
    affine = isinstance(K, cp.Expression) and K.is_affine() and K.is_real() and K.variables()
    if not affine or K.ndim != 2 or 0 in K.shape:
        raise ParameterError(
            f"K is {_checks.shown(K)}; it must be a real cvxpy Variable or affine Expression of "
            "shape (inputs, outputs)."
        )
    inputs, outputs = K.shape
    if not isinstance(name, str) or not name:
        raise ParameterError(f"name is {_checks.shown(name)}; it must be a non-empty string.")
    pairs = directed_pairs(graph, inputs, shape)
    shrink = _derived("epsilon", epsilon, LARGEST_EPSILON, lambda value: math.exp(-value))
    budget = _derived("delta", delta, 1.0, float)
    pure = not isinstance(delta, cp.Expression) and float(delta) == 0.0
    if inputs == 1:
        return []
    if pairs is None and pure:
        lifted = np.ones((inputs, 1)) @ cp.Variable((1, outputs), name=f"{name}:ceiling")
        return [(shrink * lifted <= K).set_label(name), (lifted >= K).set_label(f"{name}:ceiling")]
    edges = pair_count(pairs, inputs)
    require_rows(edges * outputs)
    # A row over the outputs for each directed pair.
    first, second = (K[side] for side in all_pairs(pairs, inputs).T)
    if pure:
        return [(shrink * first <= second).set_label(name)]
    excess = cp.Variable((edges, outputs), name=f"{name}:excess", nonneg=True)
    return [
        (shrink * (first - excess) <= second).set_label(name),
        (cp.sum(excess, axis=1) <= budget).set_label(f"{name}:delta"),
    ]


def _derived(name: str, source: object, largest: float, of: Any) -> Any:  # noqa: ANN401
    """Return ``of`` applied to a number in [0, largest], or a Parameter with that value."""
    if not isinstance(source, cp.Expression):
        return of(_checks.real(name, source, 0.0, largest))
    if not source.is_constant() or not source.is_real() or source.size != 1:
        raise ParameterError(
            f"{name} is {str(source)[:60]!r}; it must be a number or a scalar cvxpy Parameter."
        )

    def value() -> float | None:
        if source.value is None:
            return None
        return of(_checks.real(name, np.asarray(source.value).item(), 0.0, largest))

    # If the parameter has a value already, check it now.
    value()
    derived: Any = cp.CallbackParam(value, nonneg=True, name=f"of {source}")
    # What a user must set, for messages.
    derived.derived_from = source.parameters()
    return derived
