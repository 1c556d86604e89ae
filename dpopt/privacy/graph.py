"""Which inputs are neighbours: a graph by name, or the user's own edges."""

from __future__ import annotations

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
"""Up to here e^epsilon and its inverse are numbers."""

FORMS = ("auto", "edges", "columns")
"""Ways to write that all neighbours of a kernel are private."""

MOST_ROWS = 2_000_000
"""More privacy rows than anybody would wait for."""

_MOST_INPUTS = 2**31 - 1


def directed_pairs(
    graph: str | npt.ArrayLike, inputs: int, shape: Sequence[int] | None = None
) -> IntVector | None:
    """Return the directed neighbours of a graph, both directions of each edge, without repeats.

    Args:
        graph: "complete" (every two inputs), "path" (x and x + 1), "cycle" (a path whose ends are
            neighbours), "grid" (words that differ by 1 in one place), "hamming" (words that differ
            in one place), or undirected edges, shape (edges, 2), entries in 0..inputs-1.
        inputs: number of inputs.
        shape: for "grid" and "hamming" only: number of categories at each place; input x is the
            word ``np.unravel_index(x, shape)``.

    Returns:
        Shape (pairs, 2), sorted, read-only; None if every two inputs are neighbours.

    Raises:
        ParameterError: for an unknown name, an edge that is none, or a shape that does not fit.
    """
    inputs = _checks.integer("inputs", inputs, 1, _MOST_INPUTS)
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
    # One whole number for each pair: sorted ten times as fast as rows are, or as np.unique does.
    codes = np.sort(np.concatenate([first * inputs + second, second * inputs + first]))
    codes = codes[np.diff(codes, prepend=-1) > 0]
    if len(codes) == inputs * (inputs - 1):
        return None
    pairs = np.stack(np.divmod(codes, inputs), axis=1)
    pairs.setflags(write=False)
    return pairs


def all_pairs(pairs: IntVector | None, inputs: int) -> IntVector:
    """Return the directed neighbours written out, shape (pairs, 2)."""
    return np.argwhere(~np.eye(inputs, dtype=bool)) if pairs is None else pairs


def pair_count(pairs: IntVector | None, inputs: int) -> int:
    """Return how many directed neighbours there are."""
    return inputs * (inputs - 1) if pairs is None else len(pairs)


def selectors(pairs: IntVector, inputs: int) -> tuple[SparseMatrix, SparseMatrix]:
    """Return the matrices that take the rows of x and of x' out of a kernel, shape (pairs, n)."""
    ones, row = np.ones(len(pairs)), np.arange(len(pairs))
    shape = (len(pairs), inputs)
    first, second = (sp.csr_array((ones, (row, side)), shape=shape) for side in pairs.T)
    return first, second


def links(pairs: IntVector | None, inputs: int) -> SparseMatrix:
    """Return the directed neighbours as a matrix of ones, shape (inputs, inputs)."""
    first, second = all_pairs(pairs, inputs).T
    return sp.csr_array((np.ones(first.size), (first, second)), shape=(inputs, inputs))


def _path(inputs: int) -> IntVector:
    first = np.arange(inputs - 1)
    return np.stack([first, first + 1], axis=1).astype(np.int64)


def _named(graph: str, inputs: int, shape: Sequence[int] | None) -> IntVector:
    """Return the edges of a graph with a name, each once or more often."""
    if graph == "path":
        return _path(inputs)
    if graph == "cycle":
        ends = [[inputs - 1, 0]] if inputs > 2 else []
        return np.concatenate([_path(inputs), np.array(ends, dtype=np.int64).reshape(-1, 2)])
    index = np.arange(inputs, dtype=np.int64).reshape(_sizes(cast(Sequence[int], shape), inputs))
    edges = [np.empty((0, 2), dtype=np.int64)]
    for axis, size in enumerate(index.shape):
        # The words that are equal but at one place, a line each.
        lines = np.moveaxis(index, axis, -1).reshape(-1, size)
        if graph == "grid":
            low, high = _path(size).T
        else:
            low, high = np.triu_indices(size, 1)
        edges.append(np.stack([lines[:, low].ravel(), lines[:, high].ravel()], axis=1))
    return np.concatenate(edges)


def _sizes(shape: Sequence[int], inputs: int) -> tuple[int, ...]:
    """Return the number of categories at each place, if they make as many words as inputs."""
    listed = isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str)
    if not listed or len(shape) == 0:
        raise ParameterError(f"shape is {_checks.shown(shape)}; it must be a sequence of integers.")
    sizes = tuple(_checks.integer("shape", size, 1, inputs) for size in shape)
    words = 1
    for size in sizes:
        words *= size
    if words != inputs:
        raise ParameterError(f"shape is {sizes}, which makes {words} words of {inputs} inputs.")
    return sizes


def _own_edges(graph: npt.ArrayLike, inputs: int) -> IntVector:
    allowed = f"a name ({', '.join(GRAPHS)}) or at least one edge, integers of shape (edges, 2)"
    try:
        edges = np.asarray(graph)
    except ValueError:
        raise ParameterError(f"graph is ragged; it must be {allowed}.") from None
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
