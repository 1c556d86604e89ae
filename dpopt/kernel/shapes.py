"""Rays of a kernel's columns: private columns that change by e^+-epsilon along every edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from dpopt._types import IntVector, Matrix, SparseMatrix
from dpopt.kernel.graph import all_pairs
from dpopt.kernel.setting import KernelSetting

# Each output starts with rays around at least as many inputs; with more while entries are few.
_FEWEST, _ENTRIES = 25, 300_000


@dataclass(frozen=True, eq=False)
class Rays:
    """Private columns, each for one output.

    Attributes:
        shapes: one column in each row, largest entry 1, shape (rays, inputs).
        outputs: the output that each is for, shape (rays,).
    """

    shapes: Matrix
    outputs: IntVector

    def over_kernel(self, outputs: int) -> SparseMatrix:
        """Return the matrix from weights to the flattened kernel, (inputs * outputs, rays)."""
        ray, x = np.nonzero(self.shapes)
        places = x * outputs + self.outputs[ray]
        size = (self.shapes.shape[1] * outputs, len(self.outputs))
        return sp.csr_array((self.shapes[ray, x], (places, ray)), shape=size)


def first_rays(setting: KernelSetting) -> Rays:
    """Return e^(-epsilon d(x, i)) for each output and the inputs i of least loss at it.

    Among inputs of equal loss those near the one of least loss come first.
    """
    distance = _distances(setting)
    loss = (setting.losses if setting.sense == "minimise" else -setting.losses).T
    nearness = distance[np.argmin(loss, axis=1)]
    taken = max(_FEWEST, _ENTRIES // (setting.inputs * setting.outputs))
    centres = np.lexsort((nearness, loss))[:, :taken]
    shapes = _decay(setting.epsilon, distance)[centres.ravel()]
    return Rays(shapes, np.repeat(np.arange(setting.outputs), centres.shape[1]))


def _distances(setting: KernelSetting) -> Matrix:
    """Return the lengths of shortest paths, infinite between components."""
    pairs = all_pairs(setting.pairs, setting.inputs)
    links = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (setting.inputs,) * 2)
    return shortest_path(links, unweighted=True)


def _decay(epsilon: float, distance: Matrix) -> Matrix:
    """Return e^(-epsilon d), 0 between components also for epsilon = 0."""
    near = np.isfinite(distance)
    return np.where(near, np.exp(-epsilon * np.where(near, distance, 0.0)), 0.0)


def keys_of(rays: Rays) -> list[bytes]:
    """Return a key for each ray; rays that differ by less than 1e-12 share it."""
    rounded = np.round(rays.shapes, 12)
    return [
        shape.tobytes() + int(y).to_bytes(8, "little")
        for shape, y in zip(rounded, rays.outputs, strict=True)
    ]
