"""Graphs of neighbouring inputs: by name, or from the user's edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, SparseMatrix

GRAPHS = ("complete", "path", "cycle", "grid", "hamming")
"""Names of graphs."""

SHAPED = ("grid", "hamming")
"""Names of graphs on words, which need a shape."""

LARGEST_EPSILON = 600.0
"""In nats: up to here e^epsilon and its inverse are finite, nonzero floats."""


def directed_pairs(
    graph: str | npt.ArrayLike, inputs: int, shape: Sequence[int] | None = None
) -> IntVector | None:
    """Return the directed neighbours (x, x') of a graph: both directions of each edge, once each.

    Args:
        graph: "complete" (every two inputs), "path" (x and x + 1), "cycle" (a path whose ends are
            neighbours), "grid" (words that differ by 1 in one position), "hamming" (words that
            differ in one position), or undirected edges, shape (edges, 2), entries in 0..inputs-1.
        inputs: number of inputs.
        shape: for "grid" and "hamming" only: number of symbols at each position; input x is the
            word ``np.unravel_index(x, shape)``.

    Returns:
        Shape (pairs, 2), sorted, read-only; None if every two inputs are neighbours.

    Raises:
        ParameterError: for an unknown name, an invalid edge, or a shape that does not fit.
    """
    # Numbers of inputs stay below 2^31, so that codes x * inputs + x' fit in 64 bits.
    inputs = _checks.integer("inputs", inputs, 1, 2**31 - 1)
    if (shape is not None) != (isinstance(graph, str) and graph in SHAPED):
        raise ParameterError(
            f"shape is {_checks.shown(shape)}; it belongs to the graphs 'grid' and 'hamming' "
            "(and to losses by name), and only there."
        )
    if isinstance(graph, str):
        _checks.choice("graph", graph, GRAPHS)
        if graph == "complete":
            return None
        edges = _named(graph, inputs, shape)
    else:
        edges = _own_edges(graph, inputs)
    first, second = edges.T
    # One integer x * inputs + x' for each pair: ten times as fast as sorting rows, or np.unique.
    codes = np.sort(np.concatenate([first * inputs + second, second * inputs + first]))
    codes = codes[np.diff(codes, prepend=-1) > 0]
    if len(codes) == inputs * (inputs - 1):
        return None
    pairs = np.stack(np.divmod(codes, inputs), axis=1)
    pairs.setflags(write=False)
    return pairs


def all_pairs(pairs: IntVector | None, inputs: int) -> IntVector:
    """Return the directed neighbours, listing all pairs for None: shape (pairs, 2)."""
    return np.argwhere(~np.eye(inputs, dtype=bool)) if pairs is None else pairs


def pair_count(pairs: IntVector | None, inputs: int) -> int:
    """Return the number of directed neighbours."""
    return inputs * (inputs - 1) if pairs is None else len(pairs)


def require_rows(count: int) -> None:
    """Refuse a program of too many privacy rows."""
    # The solver's time fixes it.
    if count > 2_000_000:
        raise ParameterError(
            f"the program has at least {count:,} privacy rows; at most 2,000,000 are taken: use "
            "fewer outputs, a graph with fewer edges, or a symmetry."
        )


def links(pairs: IntVector | None, inputs: int) -> SparseMatrix:
    """Return the adjacency matrix of the directed neighbours, shape (inputs, inputs)."""
    first, second = all_pairs(pairs, inputs).T
    return sp.csr_array((np.ones(first.size), (first, second)), shape=(inputs, inputs))


def _named(graph: str, inputs: int, shape: Sequence[int] | None) -> IntVector:
    """Return the edges of a named graph, possibly with repeats; a path is a grid of one axis."""
    sizes = _sizes(cast(Sequence[int], shape), inputs) if graph in SHAPED else (inputs,)
    index = np.arange(inputs, dtype=np.int64).reshape(sizes)
    edges = [np.empty((0, 2), dtype=np.int64)]
    for axis, size in enumerate(index.shape):
        # Shape (lines, size): words that differ in the position `axis` alone form a line.
        lines = np.moveaxis(index, axis, -1).reshape(-1, size)
        if graph == "hamming":
            low, high = np.triu_indices(size, 1)
        else:
            low, high = np.arange(size - 1), np.arange(1, size)
        edges.append(np.stack([lines[:, low].ravel(), lines[:, high].ravel()], axis=1))
    if graph == "cycle" and inputs > 2:
        edges.append(np.array([[inputs - 1, 0]]))
    return np.concatenate(edges)


def _sizes(shape: Sequence[int], inputs: int) -> tuple[int, ...]:
    """Return the number of symbols at each position, if the words are as many as the inputs."""
    listed = isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str)
    if not listed or len(shape) == 0:
        raise ParameterError(f"shape is {_checks.shown(shape)}; it must be a sequence of integers.")
    sizes = tuple(_checks.integer("shape", size, 1, inputs) for size in shape)
    words = math.prod(sizes)
    if words != inputs:
        raise ParameterError(f"shape is {sizes}, which makes {words} words of {inputs} inputs.")
    return sizes


def _own_edges(graph: npt.ArrayLike, inputs: int) -> IntVector:
    allowed = f"a name ({', '.join(GRAPHS)}) or at least one edge, integers of shape (edges, 2)"
    edges = _checks.array("graph", graph)
    fits = edges.ndim == 2 and edges.shape[1] == 2 and len(edges) > 0
    if not fits or not np.issubdtype(edges.dtype, np.integer):
        raise ParameterError(f"graph has shape {edges.shape}; it must be {allowed}.")
    for x, other in edges.tolist():
        if x == other or not (0 <= x < inputs and 0 <= other < inputs):
            raise ParameterError(
                f"graph holds the edge ({x}, {other}); "
                f"an edge joins two different inputs of 0..{inputs - 1}."
            )
    return edges.astype(np.int64)
