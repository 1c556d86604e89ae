"""Benchmarks of kernels with symmetries: the program over orbits beside that over entries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import kernel
from experiments.benchmarks.spec import OURS, PAPER, SOLVER, Answer, Benchmark, Contender, limited

_EPSILON, _CYCLE_EPSILON = 1.0, 0.5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """A table of losses with its graph; a shape where inputs are words."""

    loss: Floats
    graph: str
    epsilon: float
    symmetry: str
    shape: tuple[int, ...] | None = None


def cube(places: int) -> Instance:
    """Return the Hamming loss of words of two letters."""
    words = np.arange(2**places)
    loss = np.zeros((words.size, words.size))
    for place in range(places):
        loss += (words[:, None] ^ words) >> place & 1
    return Instance(loss, "hamming", _EPSILON, "hamming", (2,) * places)


def cycle(inputs: int) -> Instance:
    """Return the distances on a cycle."""
    apart = np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    loss = np.minimum(apart, inputs - apart).astype(np.float64)
    return Instance(loss, "cycle", _CYCLE_EPSILON, "dihedral")


def letters(inputs: int) -> Instance:
    """Return the 0-1 loss of letters, every two of them neighbours."""
    return Instance(1.0 - np.eye(inputs), "complete", _EPSILON, "letters")


def over_orbits(instance: Instance) -> Answer:
    """Solve over orbits, repair and prove in integers."""
    return _designed(instance, instance.symmetry)


def over_entries(instance: Instance) -> Answer:
    """Solve over all entries, repair and prove in integers."""
    return _designed(instance, "none")


def _designed(instance: Instance, symmetry: str) -> Answer:
    setting = kernel.KernelSetting(
        instance.loss,
        epsilon=instance.epsilon,
        graph=instance.graph,
        shape=instance.shape,
        objective="minimax",
        symmetry=symmetry,
    )
    design = dpopt.design(setting)
    problem = design.problem
    rows = sum(block.count for block in problem.blocks.values())
    return Answer(design.value, note=f"{problem.size} variables, {rows} rows")


def by_name(places: int) -> Answer:
    """Solve over orbits with the loss by name, which is never written out; repair and prove."""
    setting = kernel.KernelSetting(
        "hamming",
        epsilon=_EPSILON,
        graph="hamming",
        shape=(2,) * places,
        objective="minimax",
        symmetry="hamming",
    )
    return Answer(dpopt.design(setting).value)


def same(size: int) -> int:
    """Return the size: nothing is prepared."""
    return size


def product_response(places: int) -> Answer:
    """Return the loss of product randomised response, which is optimal: d / (1 + e^epsilon)."""
    return Answer(places / (1.0 + math.exp(_EPSILON)))


def with_cvxpy(instance: Instance) -> Answer:
    """Write all entries and every ratio in cvxpy; solve with HiGHS."""
    import cvxpy as cp

    pairs = kernel.directed_pairs(instance.graph, len(instance.loss), instance.shape)
    inputs = len(instance.loss)
    if pairs is None:
        pairs = np.argwhere(~np.eye(inputs, dtype=bool))
    law, worst = cp.Variable((inputs, inputs), nonneg=True), cp.Variable()
    held = [
        cp.sum(law, axis=1) == 1,
        law[pairs[:, 0]] <= math.exp(instance.epsilon) * law[pairs[:, 1]],
        cp.sum(cp.multiply(instance.loss, law), axis=1) <= worst,
    ]
    problem = cp.Problem(cp.Minimize(worst), held)
    problem.solve(solver="HIGHS")
    return Answer(float(np.asarray(problem.value)))


_ORBITS = ("dpopt, orbits", "dpopt, all entries", "cvxpy + HiGHS, all entries")

CUBE = Benchmark(
    name="symmetry-cube",
    title="Words of two letters, Hamming loss",
    measures="From a table of losses to a proved kernel of least worst loss.",
    setting="epsilon = 1; words that differ in one place are neighbours",
    axis="places d",
    value="largest expected loss",
    sizes=(3, 4, 5, 10, 11),
    contenders=(
        Contender(_ORBITS[0], OURS, cube, over_orbits),
        Contender(_ORBITS[1], OURS, cube, over_entries, largest=5),
        Contender(_ORBITS[2], SOLVER, cube, with_cvxpy, largest=5),
    ),
    tolerance=1e-6,
    warm_up=2,
    limits=limited(120),
)

WORDS = Benchmark(
    name="symmetry-words",
    title="Words of two letters, Hamming loss by name",
    measures="From the number of places to a proved kernel of least worst loss.",
    setting="epsilon = 1; words that differ in one place are neighbours; 4^d entries",
    axis="places d",
    value="largest expected loss",
    sizes=(5, 8, 10, 15, 20),
    contenders=(
        Contender(_ORBITS[0], OURS, same, by_name),
        Contender("closed form", PAPER, same, product_response),
    ),
    tolerance=1e-9,
    warm_up=2,
)

CYCLE = Benchmark(
    name="symmetry-cycle",
    title="Points on a cycle",
    measures="From a table of losses to a proved kernel of least worst loss.",
    setting="epsilon = 0.5; loss is the distance; adjacent points are neighbours",
    axis="points n",
    value="largest expected loss",
    sizes=(20, 40, 100, 400, 1500),
    contenders=(
        Contender(_ORBITS[0], OURS, cycle, over_orbits),
        Contender(_ORBITS[1], OURS, cycle, over_entries, largest=40),
        Contender(_ORBITS[2], SOLVER, cycle, with_cvxpy, largest=40),
    ),
    tolerance=1e-6,
    warm_up=5,
)

LETTERS = Benchmark(
    name="symmetry-letters",
    title="Randomised response",
    measures="From a table of losses to a proved kernel of least worst loss.",
    setting="epsilon = 1; 0-1 loss; every two letters are neighbours",
    axis="letters n",
    value="largest expected loss",
    sizes=(10, 20, 50, 300, 2000),
    contenders=(
        Contender(_ORBITS[0], OURS, letters, over_orbits),
        Contender(_ORBITS[1], OURS, letters, over_entries, largest=50),
        Contender(_ORBITS[2], SOLVER, letters, with_cvxpy, largest=20),
    ),
    tolerance=1e-6,
    warm_up=4,
)

BENCHMARKS = (CUBE, WORDS, CYCLE, LETTERS)
