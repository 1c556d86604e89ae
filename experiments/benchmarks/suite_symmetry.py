"""Benchmarks of kernels with symmetries: the program over orbits beside that over entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import dpopt
from dpopt import kernel
from experiments.arrays import Floats
from experiments.benchmarks import rivals
from experiments.benchmarks.memory import Limits
from experiments.benchmarks.spec import Answer, Contender, benchmark

_EPSILON, _CYCLE_EPSILON = 1.0, 0.5


@dataclass(frozen=True)
class Instance:
    """A table of losses with its graph; a shape where inputs are words."""

    loss: Floats
    graph: str
    epsilon: float
    shape: tuple[int, ...] | None = None


def cube(places: int) -> Instance:
    """Return the Hamming loss of words of two categories."""
    words = np.arange(2**places)
    loss = np.zeros((words.size, words.size))
    for place in range(places):
        loss += (words[:, None] ^ words) >> place & 1
    return Instance(loss, "hamming", _EPSILON, (2,) * places)


def cycle(inputs: int) -> Instance:
    """Return the distances on a cycle."""
    apart = np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    loss = np.minimum(apart, inputs - apart).astype(np.float64)
    return Instance(loss, "cycle", _CYCLE_EPSILON)


def designed(symmetry: str, instance: Instance) -> Answer:
    """Solve over the orbits of a symmetry, or over all entries; repair and prove in integers."""
    setting = dpopt.Kernel(
        instance.loss,
        epsilon=instance.epsilon,
        graph=instance.graph,
        shape=instance.shape,
        objective="worst-case",
        symmetry=symmetry,
    )
    design = dpopt.design(setting)
    problem = design.setting.problem()
    rows = sum(block.count for block in problem.blocks.values())
    return Answer(design.value, note=f"{problem.size} variables, {rows} rows")


def with_cvxpy(instance: Instance) -> Answer:
    """Write all entries and every ratio in cvxpy; solve with HiGHS."""
    import cvxpy as cp

    pairs = kernel.directed_pairs(instance.graph, len(instance.loss), instance.shape)
    inputs = len(instance.loss)
    if pairs is None:
        raise ValueError("every two inputs are neighbours; the rows of a graph are asked for.")
    pmf, worst = cp.Variable((inputs, inputs), nonneg=True), cp.Variable()
    held = [
        cp.sum(pmf, axis=1) == 1,
        pmf[pairs[:, 0]] <= math.exp(instance.epsilon) * pmf[pairs[:, 1]],
        cp.sum(cp.multiply(instance.loss, pmf), axis=1) <= worst,
    ]
    return Answer(rivals.least(worst, held))


def _contenders(
    prepare: Callable[[int], Instance], symmetry: str, largest: int
) -> tuple[Contender, ...]:
    return (
        Contender("dpopt, orbits", prepare, partial(designed, symmetry)),
        Contender("cvxpy + HiGHS, all entries", prepare, with_cvxpy, largest),
    )


CUBE = benchmark(
    "symmetry-cube",
    sizes=(3, 4, 5, 10, 11),
    contenders=_contenders(cube, "hamming", 5),
    warm_up=2,
    limits=Limits(120),
)

CYCLE = benchmark(
    "symmetry-cycle", sizes=(20, 40, 100, 400, 1500), contenders=_contenders(cycle, "dihedral", 40)
)
