"""What is asked of a kernel: loss, privacy along a graph, objective, invariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Json, Matrix, Vector, brief, frozen
from dpopt.kernel.graph import directed_pairs
from dpopt.lp.model import as_floats
from dpopt.privacy import Guarantee

OBJECTIVES = ("bayes", "minimax")
SENSES = ("minimise", "maximise")

Invariances = tuple[Matrix, Matrix]

_LARGEST_LOSS = 1e100
_LARGEST_EPSILON = 600.0


@dataclass(frozen=True, eq=False)
class KernelSetting:
    """The problem of the best private kernel K[x, y] = Pr[output y | input x].

    Attributes:
        loss: shape (inputs, outputs), at least 2 inputs; a utility if ``sense`` is "maximise".
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "hamming", or undirected edges of shape
            (edges, 2); see `directed_pairs`.
        shape: for "hamming": number of letters at each place of the word that an input is.
        prior: weights of the inputs for "bayes", shape (inputs,), non-negative, scaled to sum 1;
            uniform if None.
        objective: "bayes", sum_x prior_x sum_y loss_xy K_xy; or "minimax", the largest (smallest,
            for a utility) of sum_y loss_xy K_xy over x.
        sense: "minimise" a loss or "maximise" a utility.
        invariant: q with q K = q, non-negative with sum 1, where inputs and outputs are the same;
            or (A, B) with A K = B, shapes (m, inputs) and (m, outputs); or None.
        pairs: directed neighbours, shape (pairs, 2); None if every two inputs are neighbours.
        invariances: (A, B) as above, or None.
    """

    loss: npt.ArrayLike
    epsilon: float
    delta: float = 0.0
    graph: str | npt.ArrayLike = "complete"
    shape: Sequence[int] | None = None
    prior: npt.ArrayLike | None = None
    objective: str = "bayes"
    sense: str = "minimise"
    invariant: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    pairs: IntVector | None = field(init=False)
    invariances: Invariances | None = field(init=False)

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        loss = _checked_loss(self.loss)
        inputs = loss.shape[0]
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, _LARGEST_EPSILON)
        guarantee = Guarantee(epsilon, self.delta)
        _checks.choice("objective", self.objective, OBJECTIVES)
        _checks.choice("sense", self.sense, SENSES)
        if self.prior is not None and self.objective == "minimax":
            raise ParameterError(
                "prior is given and objective is 'minimax'; it belongs to objective 'bayes', "
                "and only there."
            )
        bayes = self.objective == "bayes"
        weights = np.ones(inputs) if self.prior is None else self.prior
        values: dict[str, object] = {
            "loss": loss,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "prior": _law("prior", weights, inputs) if bayes else None,
            "pairs": directed_pairs(self.graph, inputs, self.shape),
            "graph": self.graph if isinstance(self.graph, str) else _edges(self.graph),
            "shape": None if self.shape is None else tuple(int(size) for size in self.shape),
            "invariances": _invariances(self.invariant, loss.shape[0], loss.shape[1]),
        }
        values["invariant"] = values["invariances"]
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def graph_name(self) -> str:
        """Name of the graph; "edges" for the user's own."""
        return self.graph if isinstance(self.graph, str) else "edges"

    @property
    def losses(self) -> Matrix:
        """The loss as a read-only array, shape (inputs, outputs)."""
        return np.asarray(self.loss, dtype=np.float64)

    @property
    def weights(self) -> Vector | None:
        """The prior, shape (inputs,), sum 1; None for "minimax"."""
        return None if self.prior is None else np.asarray(self.prior, dtype=np.float64)

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self.losses.shape[0]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.losses.shape[1]

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges."""
        return Guarantee(self.epsilon, self.delta)

    def to_dict(self) -> Json:
        """Return the setting as plain values."""
        prior, fixed = self.weights, self.invariances
        return {
            "loss": self.losses.tolist(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "graph": self.graph_name,
            "shape": None if self.shape is None else list(self.shape),
            "pairs": None if self.pairs is None else self.pairs.tolist(),
            "prior": None if prior is None else prior.tolist(),
            "objective": self.objective,
            "sense": self.sense,
            "invariances": None if fixed is None else [part.tolist() for part in fixed],
        }


def _checked_loss(loss: npt.ArrayLike) -> Matrix:
    array = as_floats("loss", loss)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ParameterError(
            f"loss has shape {array.shape}; it must be (inputs, outputs) with at least 2 inputs "
            "and 1 output."
        )
    if not np.all(np.abs(array) <= _LARGEST_LOSS):
        raise ParameterError(
            f"loss holds a value that is not finite, or above {_LARGEST_LOSS:g} in size."
        )
    return frozen(array)


def _law(name: str, values: npt.ArrayLike, size: int) -> Vector:
    """Return non-negative weights scaled to sum 1."""
    array = as_floats(name, values)
    if array.shape != (size,):
        raise ParameterError(f"{name} has shape {array.shape}; it must be ({size},).")
    if not np.all(np.isfinite(array) & (array >= 0)) or float(array.max()) <= 0:
        raise ParameterError(f"{name} must be finite non-negative weights, not all zero.")
    array = array / array.max()
    return frozen(array / array.sum())


def _edges(graph: npt.ArrayLike) -> IntVector:
    """Return the user's edges as a read-only copy; `directed_pairs` checks them."""
    edges = np.array(graph)
    edges.setflags(write=False)
    return edges


def _is_pair(invariant: object) -> TypeGuard[tuple[npt.ArrayLike, npt.ArrayLike]]:
    """Whether this is (A, B), not a row of two numbers."""
    if not isinstance(invariant, tuple) or len(invariant) != 2:
        return False
    return isinstance(invariant[0], Sequence | np.ndarray)


def _invariances(invariant: object, inputs: int, outputs: int) -> Invariances | None:
    if invariant is None:
        return None
    if _is_pair(invariant):
        left = as_floats("the matrix of invariant", invariant[0])
        right = as_floats("the right side of invariant", invariant[1])
        fits = left.ndim == right.ndim == 2 and len(left) == len(right) > 0
        if not fits or left.shape[1] != inputs or right.shape[1] != outputs:
            raise ParameterError(
                f"invariant has shapes {left.shape} and {right.shape}; they must be "
                f"(m, {inputs}) and (m, {outputs})."
            )
        if not np.all(np.isfinite(left)) or not np.all(np.isfinite(right)):
            raise ParameterError("invariant holds a value that is not finite.")
        return frozen(left), frozen(right)
    row = as_floats("invariant", cast(npt.ArrayLike, invariant))
    if inputs != outputs:
        raise ParameterError(
            f"invariant is a row and loss has {inputs} inputs and {outputs} outputs; "
            "q K = q needs as many outputs as inputs."
        )
    law = _law("invariant", row, inputs)
    with np.errstate(over="ignore"):
        total = float(row.sum())
    if abs(total - 1.0) > 1e-9:
        raise ParameterError(f"invariant sums to {digits(total)}; it must sum to 1.")
    return frozen(law[None, :]), frozen(law[None, :])
