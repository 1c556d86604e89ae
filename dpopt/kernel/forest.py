"""Privacy along a graph without cycles: the cone of private columns, decided in two passes.

A column of a kernel is private along a forest if it lies in the cone
C = {k >= 0 : k_x <= e^epsilon k_x' for all neighbours}. For a vector a, the least <a, k> over k in
C with k_r = 1 follows from messages along the edges: a part of the tree whose own least value is
v adds v e^-epsilon if v >= 0, and v e^epsilon if v < 0, to the node that it hangs from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from dpopt._types import IntVector, Matrix

Signs = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forest:
    """A graph without cycles, rooted anywhere in each of its components.

    Attributes:
        order: all nodes, every node after its parent, shape (inputs,).
        parent: the parent of each node, -1 for a root, shape (inputs,).
        part: number of the component of each node, shape (inputs,).
        inside: whether node r is x or below it, at place [x, r], shape (inputs, inputs).
        pairs: both directions of each edge, shape (pairs, 2).
    """

    order: IntVector
    parent: IntVector
    part: IntVector
    inside: Signs
    pairs: IntVector


@dataclass(frozen=True, eq=False)
class Prices:
    """What the two passes find for each column a.

    Attributes:
        worst: least <a, k> over private k with k_r = 1 at the root r of a component, where r is
            the node for which this is largest; shape (components, columns). Non-negative in all
            components if and only if <a, k> >= 0 for every private k.
        rays: the private k behind each of them, largest entry 1, zero outside the component;
            shape (components, inputs, columns).
        multipliers: of e^-epsilon k_x <= k_x' for each directed pair (x, x'), shape
            (pairs, columns), at least 0; with them the reduced cost is ``worst`` at the roots and
            0 elsewhere, up to rounding.
    """

    worst: Matrix
    rays: npt.NDArray[np.float64]
    multipliers: Matrix


def forest_of(pairs: IntVector, inputs: int) -> Forest | None:
    """Return the graph of directed neighbours as a forest; None if it has a cycle.

    Args:
        pairs: both directions of each edge, without repeats, shape (pairs, 2).
        inputs: number of nodes.
    """
    ones = np.ones(len(pairs))
    links = sp.csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(inputs, inputs))
    count, part = connected_components(links, directed=False)
    if len(pairs) != 2 * (inputs - count):
        return None
    orders, parent = [], np.full(inputs, -1, dtype=np.int64)
    for label in range(count):
        root = int(np.argmax(part == label))
        nodes, before = breadth_first_order(links, root, directed=False)
        orders.append(nodes)
        parent[nodes[1:]] = before[nodes[1:]]
    order = np.concatenate(orders).astype(np.int64)
    inside = np.eye(inputs, dtype=bool)
    for x in order[::-1].tolist():
        if parent[x] >= 0:
            inside[parent[x]] |= inside[x]
    return Forest(order, parent, part.astype(np.int64), inside, pairs)


def price(forest: Forest, cost: Matrix, epsilon: float) -> Prices:
    """Return the least value of <a, k> over private columns k, for each column a of ``cost``.

    Args:
        forest: the neighbours.
        cost: shape (inputs, columns).
        epsilon: in nats.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        up, down, total = _messages(forest, cost, epsilon)
        parts = range(int(forest.part.max()) + 1)
        places = [np.flatnonzero(forest.part == label) for label in parts]
        roots = np.stack([nodes[np.argmax(total[nodes], axis=0)] for nodes in places])
        steps = _steps(forest, roots, up, down)
        rays = np.zeros((len(places), *cost.shape))
        for label, nodes in enumerate(places):
            local = steps[nodes]
            rays[label, nodes] = np.exp(epsilon * (local - local.max(axis=0)))
        multipliers = _multipliers(forest, roots, up, down, epsilon)
    worst = np.stack([total[root, np.arange(cost.shape[1])] for root in roots])
    return Prices(worst, rays, multipliers)


def _messages(forest: Forest, cost: Matrix, epsilon: float) -> tuple[Matrix, Matrix, Matrix]:
    """Return what x tells its parent, what the parent tells x, and the value with x as root.

    Sums of the others' messages, never differences: a difference would lose the small ones.
    """
    up, down, total = cost.copy(), np.zeros_like(cost), cost.copy()
    children: list[list[int]] = [[] for _ in forest.order]
    for x in forest.order[::-1].tolist():
        above = int(forest.parent[x])
        if above >= 0:
            children[above].append(x)
            up[above] += _passed(up[x], epsilon)
    for x in forest.order.tolist():
        heard = [_passed(up[child], epsilon) for child in children[x]]
        first = cost[x] + _passed(down[x], epsilon) if forest.parent[x] >= 0 else cost[x].copy()
        after = [np.zeros_like(first)]
        for message in heard[:0:-1]:
            after.append(after[-1] + message)
        for child, message, rest in zip(children[x], heard, after[::-1], strict=False):
            down[child] = first + rest
            first = first + message
        total[x] = first
    return up, down, total


def _passed(value: Matrix, epsilon: float) -> Matrix:
    return value * np.where(value >= 0, math.exp(-epsilon), math.exp(epsilon))


def _steps(forest: Forest, roots: IntVector, up: Matrix, down: Matrix) -> Matrix:
    """Return log k / epsilon for the k of least value, up to a constant in each component."""
    below = np.take_along_axis(forest.inside, roots[forest.part], axis=1)
    fall = np.where(below, np.where(down >= 0, 1.0, -1.0), np.where(up >= 0, -1.0, 1.0))
    steps = np.zeros_like(up)
    for x in forest.order.tolist():
        above = int(forest.parent[x])
        if above >= 0:
            steps[x] = steps[above] + fall[x]
    return steps


def _multipliers(
    forest: Forest, roots: IntVector, up: Matrix, down: Matrix, epsilon: float
) -> Matrix:
    below = np.take_along_axis(forest.inside, roots[forest.part], axis=1)
    grow = math.exp(epsilon)
    # A surplus at one end pays at the other at a discount; a debt is paid by the other end.
    rising = np.where(below, np.maximum(-down, 0.0) * grow, np.maximum(up, 0.0))
    falling = np.where(below, np.maximum(down, 0.0), np.maximum(-up, 0.0) * grow)
    first, second = forest.pairs.T
    return np.where((forest.parent[second] == first)[:, None], rising[second], falling[first])
